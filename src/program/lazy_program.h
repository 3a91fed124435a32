/* SPDX-License-Identifier: Apache-2.0 */
/* What some exprs need, as graphs of the library and calls between them: made of a walk
 * (lazy_build.c), kept by an evaluator (evaluator.c), run (lazy_run.c).
 *   fetch     an expr whose value is wanted
 *   leaf      an expr that has a value, or is given one: an input of the program
 *   step      a session's run of one graph, or a call
 *   slot      where a value lies while the program runs: the leaves first
 *   part      an inner expr of the walk; its slot is the number of leaves and its place
 *   level     how many calls must have been run before: of an op, the highest at which its first user
 *             still finds it, so that it is computed together with that one
 *   variant   a step's graph, for one set of ranks of those inputs whose rank only a run tells
 *   refined   a slot of which a graph knows more than its expr did, because a leaf was fed
 *
 *   no step reads a slot that is not a leaf and that no step before it wrote
 *   without calls there is one step
 *   calls that are impure are made once each, in the order in which the walk met them
 *
 * Constant once made, but for the variants: those are built when they are first needed, under one
 * lock for all, and never taken away before the program ends, so whoever sees one may use it.
 * Counted, atomically; runs go on in any number of threads at once. */
#ifndef PL_PROGRAM_LAZY_PROGRAM_H
#define PL_PROGRAM_LAZY_PROGRAM_H

#include <stdatomic.h>

#include "program/walk.h"

typedef struct pl_program_part {
    pl_expr_kind kind; /* OP, CALL or ITEM */
    int op;
    int item;
    int level;
    int n_inputs, first; /* slots: inputs[first] and so on */
    pl_attrs *attrs;     /* a reference; NULL: none */
    bool draws;
    bool narrowed;             /* the type is not what the op gives: see pl_expr_narrow() */
    uint64_t stream;           /* from the program's first */
    pl_routine *routine;       /* of a CALL; see pl_lazy_program_ref() */
    pl_type type;              /* the expr's, inferred when it was made */
    const char *name, *device; /* in texts; NULL: none */
} pl_program_part;

typedef struct pl_variant {
    struct pl_variant *next;
    pl_graph *graph;
    pl_session *session;
    pl_runtime *runtime; /* the session's: only compared, for a fork's child has another */
    pl_node **inputs;    /* as the step's */
    pl_node **outputs;   /* as the step's */
    signed char ranks[]; /* of the step's inputs */
} pl_variant;

typedef struct pl_program_step {
    int call;                       /* the part; -1: a graph */
    int n_parts, *parts;            /* of a graph */
    int n_inputs, *inputs;          /* slots that it reads */
    int n_outputs, *outputs;        /* slots that others read, or the caller wants */
    bool open;                      /* the rank of an input is not known before */
    _Atomic(pl_variant *) variants; /* the last one made first */
} pl_program_step;

typedef struct pl_lazy_program {
    _Atomic int n_refs;
    int n_leaves, n_given;
    pl_type *leaf_types;
    bool *refined; /* by leaf: what it is given is not what its expr said */
    int n_parts;
    pl_program_part *parts;
    int *inputs;
    int n_outputs, *outputs; /* slots */
    int n_steps;
    pl_program_step *steps;
    int *last_use; /* by slot: the last step that reads it; n_steps: the caller does */
    int n_calls;
    pl_routine **calls; /* of the parts: see pl_lazy_program_ref() */
    char *texts;
    /* evaluator.c; the lock of expr.h */
    bool kept;
    uint64_t hash;
    size_t n_signature;
    char *signature;
    struct pl_lazy_program *before, *after; /* used more lately, longer ago */
    struct pl_lazy_program *next;           /* in the evaluator's place, or among the dropped */
} pl_lazy_program;

static inline int pl_program_n_slots(const pl_lazy_program *self)
{
    return self->n_leaves + self->n_parts;
}

static inline const pl_type *pl_program_type(const pl_lazy_program *self, int slot)
{
    return slot < self->n_leaves ? &self->leaf_types[slot]
                                 : &self->parts[slot - self->n_leaves].type;
}

/* ---- lazy_build.c ---- */

/* One reference. During the walk. */
PL_MUST_CHECK int pl_lazy_program_build(const pl_walk *walk, pl_expr *const *fetches, int n_fetches,
                                        pl_lazy_program **ret, pl_error *reterr);
void pl_lazy_program_free(pl_lazy_program *self);

/* ---- lazy_graph.c ---- */

/* The step's graph for inputs of these ranks; built if there is none. */
PL_MUST_CHECK int pl_program_variant(pl_lazy_program *self, pl_program_step *step,
                                     pl_runtime *runtime, const pl_type *types, pl_variant **ret,
                                     pl_error *reterr);

/* A graph of all parts, with constants in place of the last `n_captured` leaves, and whose streams
 * count from `stream`. */
PL_MUST_CHECK int pl_program_whole(pl_lazy_program *self, pl_runtime *runtime, const pl_type *types,
                                   pl_tensor *const *captured, int n_captured, uint64_t stream,
                                   pl_variant **ret, pl_error *reterr);
void pl_variant_free(pl_variant *self);

/* ---- evaluator.c ---- */

/* The program of a walk whose fetches are signed, kept or made; during the walk. One reference. */
PL_MUST_CHECK int pl_evaluator_program(pl_evaluator *self, pl_walk *walk, pl_expr *const *fetches,
                                       int n_fetches, pl_lazy_program **ret);

/* Adds the evaluator's advice to the message of PL_EBUDGET; returns `r`. */
int pl_evaluator_advise(const pl_evaluator *self, int r, pl_error *reterr);

/* Nobody keeps a program with the routine in it any more. */
void pl_evaluators_forget(const pl_routine *ended);

/* ---- lazy_run.c ---- */

/* Who has a reference has one to each of its calls as well; an evaluator has not, so that a call ends
 * when its last user does. */
pl_lazy_program *pl_lazy_program_ref(pl_lazy_program *self);
void pl_lazy_program_unref(pl_lazy_program *self); /* NULL is allowed */

/* A reference that has none of the calls': of an evaluator; and of those chained behind by `next`. */
void pl_lazy_program_let_go(pl_lazy_program *self);

bool pl_lazy_program_is_impure(const pl_lazy_program *self);

/* `npy_paths` (may be NULL) by fetch: where there is one the output is NULL. */
PL_MUST_CHECK int pl_lazy_program_run(pl_lazy_program *self, pl_evaluator *evaluator,
                                      pl_tensor *const *leaves, const char *const *npy_paths,
                                      const pl_run_options *options, pl_tensor **outputs,
                                      pl_error *reterr);

/* ---- lazy_explain.c ---- */

PL_MUST_CHECK int pl_lazy_program_explain(pl_lazy_program *self, pl_runtime *runtime,
                                          pl_tensor *const *leaves, const pl_run_options *options,
                                          bool as_json, char **ret_text, pl_run_cost *ret_cost,
                                          pl_error *reterr);

#endif
