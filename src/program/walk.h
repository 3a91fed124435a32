/* SPDX-License-Identifier: Apache-2.0 */
/* A walk over the exprs that some exprs are computed from, down to leaves: their order and their
 * signature.
 *   leaf     an expr that has a value, or is given one
 *   inner    computed from leaves: ops, calls and their items
 *   place    leaves in the order they were met, from 0; inner exprs too, inputs before users
 *   slot     of a leaf its place; of an inner expr the number of leaves plus its place
 *   stream   of a random op, or of a call that draws. The signature holds only the distance from the
 *            first stream, so that a loop that draws anew each time is the same program
 *
 * The walk marks exprs, and so holds the lock of expr.h: nothing may be called or freed between
 * walk_begin() and walk_done(). The walk takes no references. */
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
    int n_given;           /* leaves that were given */
    const pl_type *types;  /* of the given leaves; NULL: their own types */
    bool draws;            /* some expr has a stream */
    bool draws_eagerly;    /* some expr of no trace has one */
    bool draws_in_trace;   /* some expr of a trace has one */
    uint64_t first_stream; /* signed streams are distances from it */
    int n_calls;
    struct pl_lazy_program *dropped; /* freed when the walk has released the lock */
    pl_error *reterr;
} pl_walk;

/* Takes the lock; pl_walk_done() releases it, also after a failure. No leaf may be given twice. All
 * of these functions may fail with -ENOMEM. */
PL_MUST_CHECK int pl_walk_begin(pl_walk *self, pl_expr *const *given, int n_given,
                                const pl_type *types, pl_error *reterr);
void pl_walk_done(pl_walk *self);

/* Walks the expr and all that it is computed from. -EINVAL for a placeholder that is not a leaf. */
PL_MUST_CHECK int pl_walk_add(pl_walk *self, pl_expr *expr);

/* Walks a call that must be made even if none of its items (`expr` is one) is wanted. Walks any
 * other expr like pl_walk_add(). */
PL_MUST_CHECK int pl_walk_add_call(pl_walk *self, pl_expr *expr);

/* Walks the target. Wherever the walk meets the expr later, it takes the target instead. */
PL_MUST_CHECK int pl_walk_add_instead(pl_walk *self, pl_expr *expr, pl_expr *target);

/* Signs the fetches, at the end of the signature. */
PL_MUST_CHECK int pl_walk_fetch(pl_walk *self, pl_expr *const *fetches, int n_fetches);

static inline bool pl_walk_has(const pl_walk *self, const pl_expr *expr)
{
    return expr->walk == self->number;
}

/* A leaf's place is written as it is, an inner expr's inverted (~place). */
static inline int pl_walk_slot(const pl_walk *self, const pl_expr *expr)
{
    return expr->place >= 0 ? expr->place : self->leaves.n + ~expr->place;
}

/* For other code that marks exprs, under the lock: a number that no walk has had. */
uint64_t pl_walk_next_number(void);

PL_MUST_CHECK int pl_expr_list_add(pl_expr_list *self, pl_expr *expr, pl_error *reterr);

#endif
