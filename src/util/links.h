/* SPDX-License-Identifier: Apache-2.0 */
/* A list of members of one owner: the tensors and sessions of a runtime, the sessions of a graph.
 *   link   a member's place in one list; all zero while it is in none
 *   owner  has the list. When it ends, members that can end are ended first
 *
 * One lock, held for a few loads and stores, and while the list is walked. In the child of a fork a
 * list starts empty, because it may have been copied half-changed: earlier members are not in it,
 * and removing them does nothing. Safe from any thread. */
#ifndef PL_UTIL_LINKS_H
#define PL_UTIL_LINKS_H

#include "base/base.h"

typedef struct pl_link pl_link;
typedef struct pl_links pl_links;

/* For a member that can end: `hold` keeps it alive, and is called with the list locked; `end`,
 * called without the lock, removes it from the list and releases what `hold` took. */
typedef struct pl_link_ends {
    void (*hold)(pl_link *link);
    void (*end)(pl_link *link);
} pl_link_ends;

struct pl_link {
    pl_link *before, *after;
    const pl_link_ends *ends; /* NULL: it never outlives the list */
    uint32_t generation;      /* of the process that added it */
    bool is_in;
};

/* Returns NULL if out of memory. */
pl_links *pl_links_new(void);

/* Ends all remaining members, newest first. NULL is allowed. */
void pl_links_free(pl_links *links);

/* Adds a member in front. */
void pl_links_add(pl_links *links, pl_link *link);

/* Removes a member; does nothing if it is not in a list. */
void pl_links_remove(pl_links *links, pl_link *link);

/* Locks the list and returns its first member, or NULL. Walk by `after`, then unlock. */
pl_link *pl_links_lock(pl_links *links);
void pl_links_unlock(pl_links *links);

#endif
