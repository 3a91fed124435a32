/* SPDX-License-Identifier: Apache-2.0 */
/* A walk over what some nodes are made of, down to leaves: their order, and their signature.
 *   leaf     a node that is given a value, or that has one
 *   inner    what is computed of them: ops, calls and their items
 *   place    leaves in the order they were met, from 0; inner nodes likewise, inputs before users
 *   slot     of a leaf its place; of an inner node the leaves' number and its place
 *   stream   of a random op, or of a call that draws: kept apart from the signature, as a distance
 *            from the first one's, so that a loop that draws anew each time is the same program
 *
 * Nodes are marked while it goes on: nothing that could run Python code happens between
 * walk_begin() and walk_done(), and only one walk goes on at a time. Nothing is referenced. */
#ifndef PL_PYTHON_PROGRAM_WALK_H
#define PL_PYTHON_PROGRAM_WALK_H

#include "python/tensor/tensor.h"

typedef struct byte_list {
    char *data;
    size_t n, n_most;
} byte_list;

typedef struct node_list {
    tensor **at;
    int n, n_most;
} node_list;

typedef struct node_walk {
    uint64_t number;
    node_list leaves;
    node_list inner;
    node_list stack;
    byte_list signature;
    int n_given;           /* leaves that were said before */
    const pl_type *types;  /* of these; NULL: their own */
    bool draws;            /* there are streams */
    bool draws_eagerly;    /* and one of them is of a node that is of no graph */
    bool draws_in_graph;   /* and one is of a node that is */
    uint64_t first_stream; /* that the others are told apart from */
    int n_calls;
    pl_error error; /* of what walk_add() found */
} node_walk;

/* -1 with MemoryError, from all of them. Of the given leaves each is there once. */
int walk_begin(node_walk *self, tensor *const *given, int n_given, const pl_type *types);
void walk_done(node_walk *self);

/* All that the node is made of, and itself. -1 also for a placeholder that is no leaf: the
 * exception is set, or, if there is none, `error`, to be raised when the walk is done. */
int walk_add(node_walk *self, tensor *node);

/* A call of which nothing may be wanted but that it happens, given as one of its items; anything
 * else is added as it is. */
int walk_add_call(node_walk *self, tensor *node);

/* The target, and wherever the node is met from now on, that is meant. */
int walk_add_instead(node_walk *self, tensor *node, tensor *target);

/* What is wanted, at the end of the signature. */
int walk_fetch(node_walk *self, tensor *const *fetches, int n_fetches);

static inline bool walk_has(const node_walk *self, const tensor *node)
{
    return node->walk == self->number;
}

/* A leaf's place is stored as it is, an inner node's with all its bits the other way. */
static inline int walk_slot(const node_walk *self, const tensor *node)
{
    return node->place >= 0 ? node->place : self->leaves.n + ~node->place;
}

/* For others who mark nodes: a number that no walk has had. */
uint64_t walk_next_number(void);

/* The `stream` of a node that has one. */
bool walk_stream(const tensor *node, uint64_t *ret_stream);

int nodes_add(node_list *self, tensor *node);

#endif
