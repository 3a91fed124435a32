/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a graph: nodes and scopes, each unique.
 *   taken   a name that exists already; adding "_1", "_2" ... makes the next free one
 *
 * Texts are borrowed: they live as long as the names. Belongs to one thread while names are
 * added. */
#ifndef PL_GRAPH_NAMES_H
#define PL_GRAPH_NAMES_H

#include "base/base.h"
#include "plimsoll/graph.h"

typedef struct pl_name {
    const char *text; /* NULL: a free place */
    uint32_t hash;
    uint32_t next_suffix; /* where to look for the next free one; 0: not searched yet */
    pl_node *node;        /* NULL: a scope */
} pl_name;

/* All zero: empty. */
typedef struct pl_names {
    pl_name *places; /* their number is a power of two, and at most half are used */
    size_t n_places, n_used;
    char *scratch; /* the name being made */
    size_t scratch_bytes;
} pl_names;

void pl_names_done(pl_names *names);

/* Returns NULL if the name is unknown. */
const pl_name *pl_names_find(const pl_names *names, const char *text);

/* Makes `prefix` + `name`, with a suffix if that is taken, in scratch space: *ret_text is valid
 * until the next call. Does not add it, but reserves room for one more name. Fails with -ENOMEM. */
PL_MUST_CHECK int pl_names_make(pl_names *names, const char *prefix, const char *name,
                                const char **ret_text);

/* Adds a copy of the name that pl_names_make() has just made. Cannot fail: room is reserved. */
void pl_names_add(pl_names *names, const char *copy, pl_node *node);

/* Checks that a name consists of letters, digits and any of "_.-/", begins with a letter, digit or
 * '.', and is not empty. Returns NULL if so, or words for a message. */
const char *pl_name_problem(const char *text);

#endif
