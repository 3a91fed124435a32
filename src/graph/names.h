/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a graph: of nodes and of scopes, each once.
 *   taken   a name that is there already; the next free one is made by adding "_1", "_2" ...
 *
 * Texts are borrowed: they live as long as the names. Belongs to one thread while names are added.
 */
#ifndef PL_GRAPH_NAMES_H
#define PL_GRAPH_NAMES_H

#include "base/base.h"
#include "plimsoll/graph.h"

typedef struct pl_name {
    const char *text; /* NULL: a free place */
    uint32_t hash;
    uint32_t next_suffix; /* where to look for the next free one; 0: not looked yet */
    pl_node *node;        /* NULL: a scope */
} pl_name;

/* All zero is an empty one. */
typedef struct pl_names {
    pl_name *places; /* a power of two of them, at most half of them used */
    size_t n_places, n_used;
    char *scratch; /* the name that is being made */
    size_t scratch_bytes;
} pl_names;

void pl_names_done(pl_names *names);

/* NULL if there is none. */
const pl_name *pl_names_find(const pl_names *names, const char *text);

/* Makes `prefix` + `name`, with a suffix if that is taken, in the scratch space: *ret_text is good
 * until the next call. Takes nothing. Makes room for one more name, too. -ENOMEM. */
PL_MUST_CHECK int pl_names_make(pl_names *names, const char *prefix, const char *name,
                                const char **ret_text);

/* Adds a copy of what pl_names_make() has just made. Cannot fail: there is room. */
void pl_names_add(pl_names *names, const char *copy, pl_node *node);

/* Names are letters, digits and any of "_.-/", the first a letter, digit or '.'; not empty. NULL
 * for one that is so, or a word on what is not, for a message. */
const char *pl_name_problem(const char *text);

#endif
