/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: graphs of the library and the calls between them, which compute some exprs. A walk is
 * made into one (lazy_build.c), an evaluator caches it (evaluator.c), lazy_run.c runs it.
 *   fetch     an expr whose value is wanted
 *   leaf      an expr that has a value, or is given one: an input of the program
 *   step      a session's run of one graph, or a call
 *   slot      the place of a value while the program runs: the leaves come first
 *   part      an inner expr of the walk; its slot is the number of leaves plus its place
 *   level     how many calls must have run before: for an op, the highest level at which its first
 *             user still finds it, so that it is computed together with that user
 *   variant   a step's graph, for one set of ranks of those inputs whose rank only a run shows
 *   refined   a slot of which a graph knows more than its expr did, because a leaf was fed
 *
 *   a step reads only leaves and slots that earlier steps wrote
 *   without calls there is one step
 *   each impure call is made once, in the order in which the walk met them
 *
 * Constant once made, except for the variants: those are built when they are first needed, under
 * one lock for all programs, and are freed with the program only, so a thread may keep using one.
 * The reference count is atomic; any number of threads may run a program at once. */
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
    bool narrowed;             /* the type differs from the op's: see pl_expr_narrow() */
    uint64_t stream;           /* counted from the program's first */
    pl_routine *routine;       /* of a CALL; see pl_lazy_program_ref() */
    pl_type type;              /* the expr's, as inferred when it was made */
    const char *name, *device; /* within texts; NULL: none */
} pl_program_part;

typedef struct pl_variant {
    struct pl_variant *next;
    pl_graph *graph;
    pl_session *session;
    pl_runtime *runtime; /* the session's: only compared, a fork's child has another */
    pl_node **inputs;    /* as the step's */
    pl_node **outputs;   /* as the step's */
    signed char ranks[]; /* of the step's inputs */
} pl_variant;

typedef struct pl_program_step {
    int call;                       /* the part; -1: a graph */
    int n_parts, *parts;            /* of a graph */
    int n_inputs, *inputs;          /* slots that the step reads */
    int n_outputs, *outputs;        /* slots that other steps or the caller want */
    bool open;                      /* the rank of an input is not known before the run */
    _Atomic(pl_variant *) variants; /* the newest */
} pl_program_step;

typedef struct pl_lazy_program {
    _Atomic int n_refs;
    int n_leaves, n_given;
    pl_type *leaf_types;
    bool *refined; /* by leaf: the value's type says more than the expr's */
    int n_parts;
    pl_program_part *parts;
    int *inputs;
    int n_outputs, *outputs; /* slots */
    int n_steps;
    pl_program_step *steps;
    int *last_use; /* by slot: the last step that reads it; n_steps: the caller reads it */
    int n_calls;
    pl_routine **calls; /* the parts' routines: see pl_lazy_program_ref() */
    char *texts;
    /* for evaluator.c, under the lock of expr.h */
    bool kept;
    uint64_t hash;
    size_t n_signature;
    char *signature;
    struct pl_lazy_program *before, *after; /* the next more and less recently used */
    struct pl_lazy_program *next;           /* with the same hash, or dropped */
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

/* Returns one reference. Call it during the walk. */
PL_MUST_CHECK int pl_lazy_program_build(const pl_walk *walk, pl_expr *const *fetches, int n_fetches,
                                        pl_lazy_program **ret, pl_error *reterr);
void pl_lazy_program_free(pl_lazy_program *self);

/* ---- lazy_graph.c ---- */

/* The step's graph for inputs of these ranks; builds it if there is none. */
PL_MUST_CHECK int pl_program_variant(pl_lazy_program *self, pl_program_step *step,
                                     pl_runtime *runtime, const pl_type *types, pl_variant **ret,
                                     pl_error *reterr);

/* A graph of all parts, in which the last `n_captured` leaves are constants, and whose streams
 * count from `stream`. */
PL_MUST_CHECK int pl_program_whole(pl_lazy_program *self, pl_runtime *runtime, const pl_type *types,
                                   pl_tensor *const *captured, int n_captured, uint64_t stream,
                                   pl_variant **ret, pl_error *reterr);
void pl_variant_free(pl_variant *self);

/* ---- evaluator.c ---- */

/* The program of a walk whose fetches are signed: the cached one, or a new one. Call it during the
 * walk. Returns one reference. */
PL_MUST_CHECK int pl_evaluator_program(pl_evaluator *self, pl_walk *walk, pl_expr *const *fetches,
                                       int n_fetches, pl_lazy_program **ret);

/* Appends the evaluator's advice to the message of PL_EBUDGET; returns `r`. */
int pl_evaluator_advise(const pl_evaluator *self, int r, pl_error *reterr);

/* Drops all cached programs that contain the routine. */
void pl_evaluators_forget(const pl_routine *ended);

/* ---- lazy_run.c ---- */

/* Such a reference includes one to each of the program's calls. An evaluator's reference does not,
 * so that a call is freed when its last user drops it. */
pl_lazy_program *pl_lazy_program_ref(pl_lazy_program *self);
void pl_lazy_program_unref(pl_lazy_program *self); /* NULL is allowed */

/* Drops a reference without the calls' (an evaluator's), and those of the programs chained behind
 * by `next`. */
void pl_lazy_program_let_go(pl_lazy_program *self);

bool pl_lazy_program_is_impure(const pl_lazy_program *self);

/* `npy_paths` (may be NULL) is by fetch: a fetch that has a path gets no tensor in `outputs`. */
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
