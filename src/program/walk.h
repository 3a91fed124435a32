/* SPDX-License-Identifier: Apache-2.0 */
/* A walk over what some exprs are made of, down to leaves: their order, and their signature.
 *   leaf     an expr that is given a value, or that has one
 *   inner    computed from leaves: ops, calls and their items
 *   place    leaves in the order they were met, from 0; inner exprs likewise, inputs before users
 *   slot     of a leaf its place; of an inner expr the number of leaves, and its place
 *   stream   of a random op, or of a call that draws: kept out of the signature but for its distance
 *            from the first one's, so that a loop that draws anew each time is the same program
 *
 * Exprs are marked while it goes on, and so it holds the lock of expr.h: nothing is called or freed
 * between walk_begin() and walk_done(). Nothing is referenced. */
#ifndef PL_PROGRAM_WALK_H
#define PL_PROGRAM_WALK_H

#include "program/expr.h"

typedef struct pl_byte_list {
    char *data;
    size_t n, n_most;
} pl_byte_list;

typedef struct pl_expr_list {
    pl_expr **at;
    int n, n_most;
} pl_expr_list;

struct pl_lazy_program;

typedef struct pl_walk {
    uint64_t number;
    pl_expr_list leaves;
    pl_expr_list inner;
    pl_expr_list stack;
    pl_byte_list signature;
    int n_given;           /* leaves that were named before */
    const pl_type *types;  /* of these; NULL: their own */
    bool draws;            /* there are streams */
    bool draws_eagerly;    /* and one of them is of an expr of no trace */
    bool draws_in_trace;   /* and one is of an expr of a trace */
    uint64_t first_stream; /* the others are distances from it */
    int n_calls;
    struct pl_lazy_program *dropped; /* to be let go of when the lock is free */
    pl_error *reterr;
} pl_walk;

/* -ENOMEM, from all of them. Of the given leaves each is there once. Takes the lock; walk_done()
 * gives it back, also after a failure. */
PL_MUST_CHECK int pl_walk_begin(pl_walk *self, pl_expr *const *given, int n_given,
                                const pl_type *types, pl_error *reterr);
void pl_walk_done(pl_walk *self);

/* All that the expr is made of, and itself. -EINVAL for a placeholder that is not a leaf. */
PL_MUST_CHECK int pl_walk_add(pl_walk *self, pl_expr *expr);

/* A call that is made whether or not its items are wanted, given as one of these; anything else is
 * added as it is. */
PL_MUST_CHECK int pl_walk_add_call(pl_walk *self, pl_expr *expr);

/* The target; and wherever the expr is met from now on, the target is meant. */
PL_MUST_CHECK int pl_walk_add_instead(pl_walk *self, pl_expr *expr, pl_expr *target);

/* What is wanted, at the end of the signature. */
PL_MUST_CHECK int pl_walk_fetch(pl_walk *self, pl_expr *const *fetches, int n_fetches);

static inline bool pl_walk_has(const pl_walk *self, const pl_expr *expr)
{
    return expr->walk == self->number;
}

/* A leaf's place is stored as it is, an inner expr's with all its bits inverted. */
static inline int pl_walk_slot(const pl_walk *self, const pl_expr *expr)
{
    return expr->place >= 0 ? expr->place : self->leaves.n + ~expr->place;
}

/* For others who mark exprs, with the lock: a number that no walk has had. */
uint64_t pl_walk_next_number(void);

PL_MUST_CHECK int pl_expr_list_add(pl_expr_list *self, pl_expr *expr, pl_error *reterr);

#endif
