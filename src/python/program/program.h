/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: what some tensors need, as graphs of the library and calls between them.
 *   fetch    a node whose value is wanted
 *   leaf     a node that has a value, or is given one: an input of the program
 *   step     a session's run of one graph, or a call
 *   slot     where a value lies while the program runs: the leaves first
 *   signature  ops, attributes, topology, names, devices, dtypes and shapes of leaves, and fetches,
 *            as bytes. Programs with the same signature are one: the last PROGRAM_KEPT are kept,
 *            with their graphs and the plans in them, so that a loop plans its first round only
 *
 *   no step reads a slot that is not a leaf and that no step before it wrote
 *   without calls there is one step
 *   calls that are impure are made once each, in the order in which the walk met them
 *
 * Made with the GIL, then constant. Counted, atomically; runs need no GIL, and go on in any number
 * of threads at once. */
#ifndef PL_PYTHON_PROGRAM_PROGRAM_H
#define PL_PYTHON_PROGRAM_PROGRAM_H

#include "python/tensor/tensor.h"

#define PROGRAM_KEPT 128

typedef struct program program;

/* Of one run; what it calls gets the same. */
struct run_state {
    const int *cancel;      /* may be NULL; read atomically */
    uint64_t budget_bytes;  /* 0: what the runtime has left */
    uint64_t random_stream; /* random ops draw otherwise for each; see pl_run_options */
    void (*progress)(void *context, double fraction, const char *node_name); /* may be NULL */
    void *progress_context;
    bool *raised; /* may be NULL; set when a Python function that it calls raises an exception */
};

/* Before the fetches: a call that is made, wanted or not; or, if there is a target, a node that
 * stands for that. */
typedef struct program_first {
    tensor *node; /* references */
    tensor *target;
} program_first;

/* What a program is made of; all borrowed. */
typedef struct program_nodes {
    tensor *const *fetches;
    tensor *const *leaves; /* whose values the caller gives: feeds, a function's inputs; any node */
    const pl_type *leaf_types;  /* NULL: the nodes' own */
    const program_first *first; /* met in this order */
    int n_fetches, n_leaves, n_first;
} program_nodes;

/* What the fetches need of the leaves. Nodes with values that are met beside them become leaves
 * behind these: *ret_values, in their order, new references in a PyMem array. *ret_stream is what a
 * run adds to its random_stream, and *ret_eager: nodes of no graph draw by it. NULL with an
 * exception: InvalidArgumentError for a placeholder that is nobody's leaf. */
program *program_of(const program_nodes *of, pl_tensor ***ret_values, int *ret_n_values,
                    uint64_t *ret_stream, bool *ret_eager);

/* With the GIL. Who has a reference has one to each of its calls as well; that of the cache has
 * not. */
program *program_ref(program *self);
void program_unref(program *self); /* with or without the GIL; NULL is allowed */

/* No GIL. `npy_paths` (may be NULL) by fetch: where there is one the output is NULL. */
int program_run(program *self, pl_tensor *const *leaves, const char *const *npy_paths,
                const run_state *state, pl_tensor **outputs, pl_error *reterr);

/* No GIL. The plans of its graphs: a table or JSON, to free(). */
int program_explain(program *self, pl_tensor *const *leaves, const run_state *state, bool as_json,
                    char **ret_text, pl_run_cost *ret_cost, pl_error *reterr);

/* Has it no calls, so that all of it can be one graph? */
bool program_is_graph(const program *self);

/* Does it call what has effects, so that it cannot be run again in place of a run that was ended?
 */
bool program_is_impure(const program *self);

/* Programs that are kept are made anew when they are needed next. */
void program_cache_forget_all(void);

/* ---- what Python asks for ---- */

/* Computes what is pending in these nodes, in one program, with what of their inputs somebody holds
 * and is small; they then have values. -1 with an exception. Releases the GIL meanwhile. */
int evaluate(tensor *const *nodes, int n_nodes);

/* What is evaluated in this thread from now on is part of that run, and cancelled with it: of a
 * Python function that the run calls. Returns what it was before; NULL: of none. */
const run_state *evaluate_within(const run_state *state);

/* The one it is in now; NULL: none. */
const run_state *evaluate_outer(void);

#endif
