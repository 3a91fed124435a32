/* SPDX-License-Identifier: Apache-2.0 */
/* A program from inside: made of a walk (program_build.c), kept (program_cache.c), run (program.c).
 *   part     an inner node of the walk; its slot is the number of leaves and its place
 *   level    how many calls must have been run before: of an op, the highest at which its first
 *            user still finds it, so that it is computed together with that one
 *   variant  a step's graph, for one set of ranks of those inputs whose rank is known only in a run
 *
 * Graphs are built when they are first needed, under one lock for all, without the GIL. Variants
 * are never taken away before the program ends: whoever sees one may use it. */
#ifndef PL_PYTHON_PROGRAM_PROGRAM_PRIVATE_H
#define PL_PYTHON_PROGRAM_PROGRAM_PRIVATE_H

#include <stdatomic.h>

#include "python/program/program.h"
#include "python/program/walk.h"

typedef struct program_part {
    tensor_kind kind; /* OP, CALL or ITEM */
    int op;
    int item;
    int level;
    int n_inputs, first; /* slots: inputs[first] and so on */
    attributes *attrs;   /* a reference; NULL: none */
    bool draws;
    uint64_t stream;           /* from the program's first */
    call *call;                /* of a CALL; see program_ref() */
    pl_type type;              /* as it was known before */
    const char *name, *device; /* in texts; NULL: none */
} program_part;

typedef struct variant {
    struct variant *next;
    pl_graph *graph;
    pl_session *session;
    pl_runtime *runtime; /* the session's: told apart only, for a fork's child has another */
    pl_node **inputs;    /* as the step's */
    pl_node **outputs;   /* as the step's */
    signed char ranks[]; /* of the step's inputs */
} variant;

typedef struct program_step {
    int call;                    /* the part; -1: a graph */
    int n_parts, *parts;         /* of a graph */
    int n_inputs, *inputs;       /* slots that it reads */
    int n_outputs, *outputs;     /* slots that others read, or the caller wants */
    bool open;                   /* the rank of an input is not known before */
    _Atomic(variant *) variants; /* the last one made first */
} program_step;

struct program {
    _Atomic int n_refs;
    int n_leaves, n_given;
    pl_type *leaf_types;
    int n_parts;
    program_part *parts;
    int *inputs;
    int n_outputs, *outputs; /* slots */
    int n_steps;
    program_step *steps;
    int *last_use; /* by slot: the last step that reads it; n_steps: the caller does */
    int n_calls;
    call **calls; /* of the parts: see program_ref() */
    char *texts;
    /* program_cache.c; all with the GIL */
    bool kept;
    uint64_t hash;
    size_t n_signature;
    char *signature;
    struct program *before, *after; /* used more lately, longer ago */
    struct program *next;           /* of the same hash, or nearly */
};

static inline int program_n_slots(const program *self)
{
    return self->n_leaves + self->n_parts;
}

static inline const pl_type *program_type(const program *self, int slot)
{
    return slot < self->n_leaves ? &self->leaf_types[slot]
                                 : &self->parts[slot - self->n_leaves].type;
}

/* ---- program_build.c ---- */

/* One reference. NULL with MemoryError. */
program *program_build(const node_walk *walk, tensor *const *fetches, int n_fetches);
void program_free(program *self);

/* No GIL. The step's graph for inputs of these ranks; built if there is none. */
int program_variant(program *self, program_step *step, const pl_type *types, variant **ret,
                    pl_error *reterr);

/* No GIL. A graph of all parts, with constants in place of the last `n_captured` leaves, and whose
 * streams count from `stream`. */
int program_whole(program *self, const pl_type *types, pl_tensor *const *captured, int n_captured,
                  uint64_t stream, variant **ret, pl_error *reterr);
void variant_free(variant *self);

/* pthread_atfork(): nobody else is building when a child begins. */
int program_build_add(void);

/* ---- program_cache.c ---- */

/* The program of the walk's signature, one more reference; NULL: there is none. */
program *program_cache_find(const node_walk *walk);

/* Keeps it, in place of the one that was used longest ago. For want of memory it does not. */
void program_cache_keep(program *self, const node_walk *walk);

/* What has the call in it is kept no more. */
void program_cache_forget(const call *call);

/* ---- program.c ---- */

/* A reference that has none of the calls': of the cache. */
void program_let_go(program *self);

/* As program_of(), of a walk that is made, and whose fetches are signed. NULL with an exception. */
program *program_of_walk(node_walk *walk, tensor *const *fetches, int n_fetches);

#endif
