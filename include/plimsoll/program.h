/* SPDX-License-Identifier: Apache-2.0 */
/* Lazy evaluation: values are described first, and computed when they are needed.
 *   expr        an expression: a value; a placeholder; an op of graph.h over other exprs; or an
 *               item, one output of a call. Its dtype and shape are inferred once, when it is made
 *   call        an operation that a graph cannot express: a condition, a loop, a parser, a foreign
 *               function
 *   pending     an op or item without a value yet. When it gets one, it releases its inputs
 *   symbolic    depending on a placeholder: it has a value only in a run that feeds it
 *   trace       the number of the graph or function under construction that an expr was made in; 0:
 *               none. Exprs of a trace do not keep values: each run computes them again
 *   evaluator   a runtime, and the programs that recently ran in it
 *   program     the graphs, and the calls between them, that some exprs need. Exprs with the same
 *               ops, attributes, topology, names, devices and leaf types share one, with its plans,
 *               so that a loop plans only its first round
 *   evaluation  a program with the values that it starts from, to be run or explained
 *   traced      a function: placeholders, and outputs computed from them
 *
 * Exprs, traced functions and evaluators are reference-counted, atomically; the caller must unref
 * those that it receives. An expr never changes once made, except for its value, which is set once,
 * so any number of threads may share one. Its maker may call the setters below until it shares the
 * expr. One lock guards walks over exprs, the setting of values, and the programs that evaluators
 * keep. It is never held while anything is computed, freed or called. */
#ifndef PLIMSOLL_PROGRAM_H
#define PLIMSOLL_PROGRAM_H

#include "plimsoll/dataset.h"
#include "plimsoll/graph.h"
#include "plimsoll/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_expr pl_expr;
typedef struct pl_evaluator pl_evaluator;
typedef struct pl_evaluation pl_evaluation;
typedef struct pl_traced pl_traced;

/* ---- exprs ---- */

/* Keeps a reference to the tensor. */
PL_API PL_MUST_CHECK int pl_expr_of_value(pl_tensor *value, pl_expr **ret_expr, pl_error *reterr);

/* The rank may be PL_RANK_UNKNOWN. */
PL_API PL_MUST_CHECK int pl_expr_placeholder(const char *name, const pl_type *type,
                                             pl_expr **ret_expr, pl_error *reterr);

/* Makes an op by its number, see pl_op_find(). Fails as pl_op_infer() does; `name` (may be NULL) is
 * the new expr's name in that message only: see pl_expr_set_name(). */
PL_API PL_MUST_CHECK int pl_expr_op(int op, const char *name, pl_expr *const *inputs, int n_inputs,
                                    const pl_attr *attrs, int n_attrs, pl_expr **ret_expr,
                                    pl_error *reterr);

PL_API pl_expr *pl_expr_ref(pl_expr *expr);
PL_API void pl_expr_unref(pl_expr *expr); /* NULL is allowed */

/* Returns the type as far as known; if the expr has a value, the value's. */
PL_API pl_type pl_expr_type(const pl_expr *expr);
PL_API pl_dtype pl_expr_dtype(const pl_expr *expr);

/* Returns the value, borrowed from the expr, or NULL if it has none yet. */
PL_API pl_tensor *pl_expr_value(const pl_expr *expr);

PL_API bool pl_expr_is_placeholder(const pl_expr *expr);
PL_API bool pl_expr_is_pending(const pl_expr *expr);
PL_API bool pl_expr_is_symbolic(const pl_expr *expr);
PL_API uint64_t pl_expr_trace(const pl_expr *expr);

/* Returns its name in messages: its own name, else its op's. Lives as long as the expr. */
PL_API const char *pl_expr_label(const pl_expr *expr);

/* Returns the name that it was given; NULL: none. */
PL_API const char *pl_expr_name(const pl_expr *expr);

/* Returns "matmul"; "cond" for an item; "placeholder"; "constant" once it has a value. Static. */
PL_API const char *pl_expr_op_name(const pl_expr *expr);
PL_API int pl_expr_item(const pl_expr *expr);           /* which output of its call; else 0 */
PL_API const char *pl_expr_device(const pl_expr *expr); /* NULL: anywhere */

/* Returns an input that is still needed; for an item, an input of its call. A new reference, or
 * NULL past the end: an expr that has a value has no inputs. */
PL_API pl_expr *pl_expr_input(const pl_expr *expr, int i);

/* Returns 1 plus the largest depth of its pending inputs; 0 if it has a value. Chains of any depth
 * can be evaluated and freed; a front end may want to evaluate one that grows without bound. */
PL_API uint32_t pl_expr_depth(const pl_expr *expr);

/* Setters. On an item they also apply to its call. Names in graphs consist of letters, digits and
 * "_.-/": other characters are replaced when a graph is built. -ENOMEM. */
PL_API PL_MUST_CHECK int pl_expr_set_name(pl_expr *expr, const char *name, pl_error *reterr);
PL_API PL_MUST_CHECK int pl_expr_set_device(pl_expr *expr, const char *device, pl_error *reterr);
PL_API void pl_expr_set_trace(pl_expr *expr, uint64_t trace);

/* Adds what is known about the shape from elsewhere. -EINVAL if it contradicts the known shape. */
PL_API PL_MUST_CHECK int pl_expr_narrow(pl_expr *expr, const pl_shape *shape, pl_error *reterr);

/* Records where it was made, in the caller's terms; the expr only keeps it. release() may be NULL,
 * and may be called from any thread. */
PL_API void pl_expr_set_site(pl_expr *expr, void *source, int64_t at,
                             void (*release)(void *source));
PL_API void *pl_expr_site(const pl_expr *expr, int64_t *ret_at); /* NULL: unknown */

/* Sets a front end's object for the expr, which the library only keeps. An expr that has one is
 * held: an evaluation that computes its value keeps it there, if it is small. May be set at any
 * time, by one thread. */
PL_API void pl_expr_set_owner(pl_expr *expr, void *owner);
PL_API void *pl_expr_owner(const pl_expr *expr);

/* Returns a number that no trace has had before. */
PL_API uint64_t pl_trace_next(void);

/* Maps each number to a stream of random numbers far from any other. */
PL_API uint64_t pl_stream_mix(uint64_t number);

/* ---- evaluators ---- */

/* Makes an evaluator that keeps the last `n_programs` programs; 0: 128. -ENOMEM. */
PL_API PL_MUST_CHECK int pl_evaluator_new(pl_runtime *runtime, int n_programs,
                                          pl_evaluator **ret_evaluator, pl_error *reterr);
PL_API pl_evaluator *pl_evaluator_ref(pl_evaluator *evaluator);
PL_API void pl_evaluator_unref(pl_evaluator *evaluator);                /* NULL is allowed */
PL_API pl_runtime *pl_evaluator_runtime(const pl_evaluator *evaluator); /* borrowed */

/* Sets the end of PL_EBUDGET messages for results that do not fit in memory: advice, in the
 * caller's words, on how to write them to a file instead. Not copied: must be static, or live as
 * long as the evaluator. */
PL_API void pl_evaluator_set_advice(pl_evaluator *evaluator, const char *advice);

/* Drops the kept programs; they are made again when needed. */
PL_API void pl_evaluator_forget(pl_evaluator *evaluator);

/* Computes what is pending in these exprs, in one program; they then have values. Inputs that are
 * held also get their values, if small (an eighth of the free budget). `options` may be NULL; its
 * random_stream is added to the ops'. -EINVAL for a symbolic expr; else the errors of
 * pl_session_run(). */
PL_API PL_MUST_CHECK int pl_evaluate(pl_evaluator *evaluator, pl_expr *const *exprs, int n_exprs,
                                     const pl_run_options *options, pl_error *reterr);

/* pl_evaluate() in two steps, for callers that wait for the run themselves. If nothing is pending,
 * *ret_evaluation is NULL. */
PL_API PL_MUST_CHECK int pl_evaluation_of_pending(pl_evaluator *evaluator, pl_expr *const *exprs,
                                                  int n_exprs, pl_evaluation **ret_evaluation,
                                                  pl_error *reterr);

/* For computing some exprs with others given, as in a session's run, but with any exprs. */
typedef struct pl_expr_feed {
    pl_expr *expr; /* has this value in the run: a placeholder, or any other expr */
    pl_tensor *value;
} pl_expr_feed;

/* Handled before the fetches: a call that runs whether needed or not; or, with a target, an expr
 * that replaces the target wherever it is found from then on. */
typedef struct pl_expr_first {
    pl_expr *expr;
    pl_expr *target; /* NULL: a call */
} pl_expr_first;

typedef struct pl_evaluation_request {
    size_t size; /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    pl_expr *const *fetches;
    int n_fetches;
    int n_feeds;
    const pl_expr_feed *feeds;
    const pl_expr_first *first; /* handled in this order */
    int n_first;
} pl_evaluation_request;

/* Makes an evaluation. -EINVAL for a placeholder that is needed and not fed. Returns 1 if some
 * exprs outside any trace draw random numbers, beside others in a trace. The former are drawn once,
 * the latter in each run: evaluate the exprs that pl_evaluation_draws() returns, and begin
 * again. */
PL_API PL_MUST_CHECK int pl_evaluation_new(pl_evaluator *evaluator,
                                           const pl_evaluation_request *request,
                                           pl_evaluation **ret_evaluation, pl_error *reterr);
PL_API void pl_evaluation_free(pl_evaluation *evaluation); /* NULL is allowed */
PL_API pl_expr *const *pl_evaluation_draws(const pl_evaluation *evaluation, int *ret_n);

/* Returns whether it calls functions with side effects, so that a run that was aborted cannot be
 * repeated. */
PL_API bool pl_evaluation_is_impure(const pl_evaluation *evaluation);

/* Runs it. Refuses results that no budget has room for, before anything is computed: PL_EBUDGET if
 * those without a path are larger than what is left. `npy_paths` (may be NULL) is by fetch: a value
 * with a path is written there, and its tensor is NULL. ret_tensors has an entry for each fetch (it
 * may be NULL for an evaluation of pending exprs, which get their values). */
PL_API PL_MUST_CHECK int pl_evaluation_run(pl_evaluation *evaluation, const char *const *npy_paths,
                                           const pl_run_options *options, pl_tensor **ret_tensors,
                                           pl_error *reterr);

/* Returns the plans of its graphs, as pl_session_explain() does. Graphs after a call can only be
 * planned once the call has run, so they are only named. */
PL_API PL_MUST_CHECK int pl_evaluation_explain(pl_evaluation *evaluation,
                                               const pl_run_options *options, bool as_json,
                                               char **ret_text, pl_run_cost *ret_cost,
                                               pl_error *reterr);

/* Gives the pending expr this value; one that has a value already keeps it. */
PL_API void pl_expr_settle(pl_expr *expr, pl_tensor *value);

/* ---- traced functions ----
 *   own       an expr that belongs to the function: made in its trace, or depending on its inputs
 *   captured  an expr outside the function that the outputs depend on. Values, and pending exprs of
 *             no trace (computed once), are kept with the function. Exprs of another trace, and
 *             foreign placeholders, have a value only when that trace runs: the caller passes it
 *             after the inputs */

/* `trace` is the one that its inputs and outputs were made in; 0: none. -EINVAL for an input that
 * is not a placeholder, or is given twice. */
PL_API PL_MUST_CHECK int pl_traced_new(pl_expr *const *inputs, int n_inputs,
                                       pl_expr *const *outputs, int n_outputs, uint64_t trace,
                                       pl_traced **ret_traced, pl_error *reterr);
PL_API pl_traced *pl_traced_ref(pl_traced *traced);
PL_API void pl_traced_unref(pl_traced *traced); /* NULL is allowed */

PL_API int pl_traced_n_inputs(const pl_traced *traced);
PL_API int pl_traced_n_outputs(const pl_traced *traced);
PL_API int pl_traced_n_captures(const pl_traced *traced);        /* of other traces */
PL_API pl_expr *pl_traced_input(const pl_traced *traced, int i); /* borrowed; so are the next two */
PL_API pl_expr *pl_traced_output(const pl_traced *traced, int i);
PL_API pl_expr *pl_traced_capture(const pl_traced *traced, int i);

/* Returns whether it calls functions with side effects. */
PL_API bool pl_traced_is_impure(const pl_traced *traced);

/* Returns how many streams its random ops draw from; a copy needs as many. */
PL_API uint64_t pl_traced_n_streams(const pl_traced *traced);

/* Called for each own expr that is copied (an item, once per output of its call); `of` is the
 * original. */
typedef struct pl_traced_copied {
    int (*made)(void *context, pl_expr *copy, const pl_expr *of, pl_error *reterr);
    void *context;
} pl_traced_copied;

/* Computes its outputs from other inputs: exprs of no trace, new references. Random ops draw from
 * `first_stream` on. `copied` may be NULL. */
PL_API PL_MUST_CHECK int pl_traced_call(const pl_traced *traced, pl_expr *const *given,
                                        uint64_t first_stream, const pl_traced_copied *copied,
                                        pl_expr **ret_outputs, pl_error *reterr);

/* Makes the outputs with some exprs replaced by others: nodes[i] by given[i]. */
PL_API PL_MUST_CHECK int pl_exprs_substitute(pl_expr *const *outputs, int n_outputs,
                                             pl_expr *const *nodes, pl_expr *const *given, int n,
                                             uint64_t (*take_streams)(uint64_t n),
                                             const pl_traced_copied *copied, pl_expr **ret_outputs,
                                             pl_error *reterr);

/* Runs it: `inputs` has the inputs' values, then the captures' values. */
PL_API PL_MUST_CHECK int pl_traced_run(pl_traced *traced, pl_evaluator *evaluator,
                                       pl_tensor *const *inputs, const pl_run_options *options,
                                       pl_tensor **ret_outputs, pl_error *reterr);

/* Makes a function for a stage of a dataset, which will call it with such elements: one graph if
 * possible, else a callback. Fills *ret_function, whose release() releases the traced function.
 * -EINVAL if it has captures. */
PL_API PL_MUST_CHECK int pl_traced_function(pl_traced *traced, pl_evaluator *evaluator,
                                            const pl_spec *inputs, int n_inputs,
                                            pl_function *ret_function, pl_error *reterr);

/* ---- calls: ret_items receives the items, new references ---- */

/* Both functions take `inputs`, and have equally many outputs, of the same dtypes; `pred` is a
 * scalar bool. `stream`: the random stream that ops inside draw from. */
PL_API PL_MUST_CHECK int pl_expr_cond(pl_expr *pred, pl_traced *on_true, pl_traced *on_false,
                                      pl_expr *const *inputs, int n_inputs, uint64_t stream,
                                      pl_expr **ret_items, pl_error *reterr);

/* While `condition` is true for the inputs, `body` computes new values for the first of them; there
 * are as many items as the body has outputs. At most n_most rounds; negative: any number. */
PL_API PL_MUST_CHECK int pl_expr_while(pl_traced *condition, pl_traced *body,
                                       pl_expr *const *inputs, int n_inputs, int64_t n_most,
                                       uint64_t stream, pl_expr **ret_items, pl_error *reterr);

/* Makes an item for each feature of tf.train.Example records: a scalar string, or a list of
 * them. */
PL_API PL_MUST_CHECK int pl_expr_parse_examples(pl_runtime *runtime, pl_expr *records,
                                                const pl_feature_spec *features, int n_features,
                                                pl_expr **ret_items, pl_error *reterr);

/* A function of the caller's, called between graphs. */
typedef struct pl_foreign {
    size_t size;      /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    const char *name; /* in messages; static */
    bool pure;        /* without side effects. Otherwise it is called once, in order, in each run */
    /* Called from any thread. The inputs are borrowed; `outputs` receives new references. */
    int (*call)(void *context, pl_tensor *const *inputs, int n_inputs, pl_tensor **outputs,
                int n_outputs, const pl_run_options *options, pl_error *reterr);
    const pl_type *outputs; /* copied: the types of its outputs, as far as known */
    int n_outputs;
    void *context;
    void (*release)(void *context); /* may be NULL; called once, also if making the call fails */
} pl_foreign;

PL_API PL_MUST_CHECK int pl_expr_foreign(const pl_foreign *foreign, pl_expr *const *inputs,
                                         int n_inputs, pl_expr **ret_items, pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
