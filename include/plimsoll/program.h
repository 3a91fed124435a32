/* SPDX-License-Identifier: Apache-2.0 */
/* Lazy evaluation: values are described now and computed when somebody asks for them.
 *   expr        an expression: a value; a placeholder; an op of graph.h over other exprs; or an item,
 *               one output of a call. Its dtype and shape are inferred once, when it is made
 *   call        what a graph cannot express: a condition, a loop, a parser, a foreign function
 *   pending     an op or item without a value yet. When it gets one, it lets go of its inputs
 *   symbolic    depends on a placeholder: it has a value only in a run that feeds it
 *   trace       a number that tells which graph or function under construction an expr was made in;
 *               0: none. Exprs of a trace are not settled: each run computes them anew
 *   evaluator   a runtime, and the programs that were run in it lately
 *   program     what some exprs need: graphs, and the calls between them. Exprs with the same ops,
 *               attributes, topology, names, devices and leaf types share one, with the plans in it,
 *               so that a loop plans its first round only
 *   evaluation  a program together with the values that it starts from: what can be run or explained
 *   traced      a function: placeholders, and outputs that are made of them
 *
 * Exprs, traced functions and evaluators are counted, atomically: what is given out is the caller's
 * to unref. An expr never changes once it is made, but for its value, which is set once; so any
 * number of threads may share one. The setters below are for its maker, before others have it. One
 * lock guards walks over exprs, values as they are set, and the programs that evaluators keep. It
 * is never held while anything is computed, freed or called. */
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

/* An op by its number, see pl_op_find(). Fails as pl_op_infer() does; `name` (may be NULL) is the
 * new expr's in that message only: see pl_expr_set_name(). */
PL_API PL_MUST_CHECK int pl_expr_op(int op, const char *name, pl_expr *const *inputs, int n_inputs,
                                    const pl_attr *attrs, int n_attrs, pl_expr **ret_expr,
                                    pl_error *reterr);

PL_API pl_expr *pl_expr_ref(pl_expr *expr);
PL_API void pl_expr_unref(pl_expr *expr); /* NULL is allowed */

/* As far as it is known; of an expr that has a value, the value's. */
PL_API pl_type pl_expr_type(const pl_expr *expr);
PL_API pl_dtype pl_expr_dtype(const pl_expr *expr);

/* Borrowed from the expr; NULL: it has none yet. */
PL_API pl_tensor *pl_expr_value(const pl_expr *expr);

PL_API bool pl_expr_is_placeholder(const pl_expr *expr);
PL_API bool pl_expr_is_pending(const pl_expr *expr);
PL_API bool pl_expr_is_symbolic(const pl_expr *expr);
PL_API uint64_t pl_expr_trace(const pl_expr *expr);

/* The name in messages: the expr's own, else its op's. Lives as long as the expr. */
PL_API const char *pl_expr_label(const pl_expr *expr);

/* The name that it was given; NULL: none. */
PL_API const char *pl_expr_name(const pl_expr *expr);

/* "matmul"; "cond" of an item; "placeholder"; "constant" once there is a value. Static. */
PL_API const char *pl_expr_op_name(const pl_expr *expr);
PL_API int pl_expr_item(const pl_expr *expr);           /* which output of its call; else 0 */
PL_API const char *pl_expr_device(const pl_expr *expr); /* NULL: anywhere */

/* An input: for an item, of its call. A new reference, or NULL past the end: an expr with a value
 * has no inputs. */
PL_API pl_expr *pl_expr_input(const pl_expr *expr, int i);

/* 1 and the largest depth of its pending inputs; 0 with a value. Chains of any depth can be
 * evaluated and freed; a front end may want to evaluate one that grows without end. */
PL_API uint32_t pl_expr_depth(const pl_expr *expr);

/* Setters: of an item, they set the same for its call. The names of graphs hold letters, digits and
 * "_.-/": others are replaced when a graph is built. -ENOMEM. */
PL_API PL_MUST_CHECK int pl_expr_set_name(pl_expr *expr, const char *name, pl_error *reterr);
PL_API PL_MUST_CHECK int pl_expr_set_device(pl_expr *expr, const char *device, pl_error *reterr);
PL_API void pl_expr_set_trace(pl_expr *expr, uint64_t trace);

/* Adds what is known of the shape from elsewhere. -EINVAL if both cannot be true. */
PL_API PL_MUST_CHECK int pl_expr_narrow(pl_expr *expr, const pl_shape *shape, pl_error *reterr);

/* Where it was made, as the caller counts it; the expr only keeps it. release() may be NULL, and is
 * called from any thread. */
PL_API void pl_expr_set_site(pl_expr *expr, void *source, int64_t at,
                             void (*release)(void *source));
PL_API void *pl_expr_site(const pl_expr *expr, int64_t *ret_at); /* NULL: not known */

/* A front end's object for the expr, which the library only keeps. While there is one the expr is
 * held: an evaluation that needs its value leaves it there, if that is small. May be set at any
 * time, by one thread. */
PL_API void pl_expr_set_owner(pl_expr *expr, void *owner);
PL_API void *pl_expr_owner(const pl_expr *expr);

/* No trace has had it before. */
PL_API uint64_t pl_trace_next(void);

/* A stream of random numbers far from any other, for each number. */
PL_API uint64_t pl_stream_mix(uint64_t number);

/* ---- evaluators ---- */

/* Keeps the last `n_programs` programs; 0: 128. -ENOMEM. */
PL_API PL_MUST_CHECK int pl_evaluator_new(pl_runtime *runtime, int n_programs,
                                          pl_evaluator **ret_evaluator, pl_error *reterr);
PL_API pl_evaluator *pl_evaluator_ref(pl_evaluator *evaluator);
PL_API void pl_evaluator_unref(pl_evaluator *evaluator);                /* NULL is allowed */
PL_API pl_runtime *pl_evaluator_runtime(const pl_evaluator *evaluator); /* borrowed */

/* How messages of PL_EBUDGET end when a result does not fit in memory: the caller's words for
 * writing it to a file instead. Not copied: static, or lives as long as the evaluator. */
PL_API void pl_evaluator_set_advice(pl_evaluator *evaluator, const char *advice);

/* Programs that are needed again are made anew. */
PL_API void pl_evaluator_forget(pl_evaluator *evaluator);

/* Computes what is pending in these exprs, in one program; they then have values. Of their inputs,
 * those that are held get one as well, while they are small (an eighth of the free budget).
 * `options` may be NULL; its random_stream is added to the ops'. -EINVAL for a symbolic expr; else
 * what pl_session_run() fails with. */
PL_API PL_MUST_CHECK int pl_evaluate(pl_evaluator *evaluator, pl_expr *const *exprs, int n_exprs,
                                     const pl_run_options *options, pl_error *reterr);

/* The same in two steps, for who waits for the run. Nothing is pending: *ret_evaluation is NULL. */
PL_API PL_MUST_CHECK int pl_evaluation_of_pending(pl_evaluator *evaluator, pl_expr *const *exprs,
                                                  int n_exprs, pl_evaluation **ret_evaluation,
                                                  pl_error *reterr);

/* The values of some exprs, with others given: as a session's run, of any exprs. */
typedef struct pl_expr_feed {
    pl_expr *expr; /* whose value this is in the run: a placeholder, or any other */
    pl_tensor *value;
} pl_expr_feed;

/* Comes before the fetches: a call that is made, wanted or not; or, with a target, an expr that
 * stands for the target wherever it is met from then on. */
typedef struct pl_expr_first {
    pl_expr *expr;
    pl_expr *target; /* NULL: the call */
} pl_expr_first;

typedef struct pl_evaluation_request {
    size_t size; /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    pl_expr *const *fetches;
    int n_fetches;
    int n_feeds;
    const pl_expr_feed *feeds;
    const pl_expr_first *first; /* met in this order */
    int n_first;
} pl_evaluation_request;

/* -EINVAL for a placeholder that is needed and not fed. 1: some exprs of no trace draw random
 * numbers, beside others of a trace. Those are drawn once, these in each run: evaluate what
 * pl_evaluation_draws() gives, and begin again. */
PL_API PL_MUST_CHECK int pl_evaluation_new(pl_evaluator *evaluator,
                                           const pl_evaluation_request *request,
                                           pl_evaluation **ret_evaluation, pl_error *reterr);
PL_API void pl_evaluation_free(pl_evaluation *evaluation); /* NULL is allowed */
PL_API pl_expr *const *pl_evaluation_draws(const pl_evaluation *evaluation, int *ret_n);

/* Does it call what has effects, so that a run that was ended cannot be made again? */
PL_API bool pl_evaluation_is_impure(const pl_evaluation *evaluation);

/* Refuses results that no budget has room for, before anything is computed: PL_EBUDGET when those
 * without a path are larger than what is left. `npy_paths` (may be NULL) is by fetch: where there is
 * one, the value is written there and its tensor is NULL. ret_tensors (may be NULL for an evaluation
 * of pending exprs, which get their values) has a place for each fetch. */
PL_API PL_MUST_CHECK int pl_evaluation_run(pl_evaluation *evaluation, const char *const *npy_paths,
                                           const pl_run_options *options, pl_tensor **ret_tensors,
                                           pl_error *reterr);

/* The plans of its graphs, as pl_session_explain() gives them. What lies behind a call is planned
 * when that has been run, and only named. */
PL_API PL_MUST_CHECK int pl_evaluation_explain(pl_evaluation *evaluation,
                                               const pl_run_options *options, bool as_json,
                                               char **ret_text, pl_run_cost *ret_cost,
                                               pl_error *reterr);

/* The pending expr has this value from now on; one that has a value already keeps it. */
PL_API void pl_expr_settle(pl_expr *expr, pl_tensor *value);

/* ---- traced functions ----
 *   own       an expr that belongs to the function: made in its trace, or depending on its inputs
 *   captured  what else the outputs depend on. Values, and pending exprs of no trace (computed
 *             once), go with the function. Exprs of another trace, and foreign placeholders, have a
 *             value only where that is run: who calls the function gives it, behind the inputs */

/* `trace` is the one its inputs and outputs were made in; 0: none. -EINVAL for an input that is not
 * a placeholder, or that is given twice. */
PL_API PL_MUST_CHECK int pl_traced_new(pl_expr *const *inputs, int n_inputs,
                                       pl_expr *const *outputs, int n_outputs, uint64_t trace,
                                       pl_traced **ret_traced, pl_error *reterr);
PL_API pl_traced *pl_traced_ref(pl_traced *traced);
PL_API void pl_traced_unref(pl_traced *traced); /* NULL is allowed */

PL_API int pl_traced_n_inputs(const pl_traced *traced);
PL_API int pl_traced_n_outputs(const pl_traced *traced);
PL_API int pl_traced_n_captures(const pl_traced *traced);        /* of other traces */
PL_API pl_expr *pl_traced_input(const pl_traced *traced, int i); /* borrowed; so are these two */
PL_API pl_expr *pl_traced_output(const pl_traced *traced, int i);
PL_API pl_expr *pl_traced_capture(const pl_traced *traced, int i);

/* Does it call what has effects? */
PL_API bool pl_traced_is_impure(const pl_traced *traced);

/* How many streams its random ops draw from: as many are needed for a copy. */
PL_API uint64_t pl_traced_n_streams(const pl_traced *traced);

/* made() is called for each own expr that is copied, and once for each item of a call; `of` is the
 * original. */
typedef struct pl_traced_copied {
    int (*made)(void *context, pl_expr *copy, const pl_expr *of, pl_error *reterr);
    void *context;
} pl_traced_copied;

/* Its outputs, made of other inputs: exprs of no trace, new references. Random ops draw from
 * `first_stream` on. `copied` may be NULL. */
PL_API PL_MUST_CHECK int pl_traced_call(const pl_traced *traced, pl_expr *const *given,
                                        uint64_t first_stream, const pl_traced_copied *copied,
                                        pl_expr **ret_outputs, pl_error *reterr);

/* Outputs with any exprs in place of others: nodes[i] by given[i]. */
PL_API PL_MUST_CHECK int pl_exprs_substitute(pl_expr *const *outputs, int n_outputs,
                                             pl_expr *const *nodes, pl_expr *const *given, int n,
                                             uint64_t (*take_streams)(uint64_t n),
                                             const pl_traced_copied *copied, pl_expr **ret_outputs,
                                             pl_error *reterr);

/* Runs it: `inputs` has the inputs' values, then the captures'. */
PL_API PL_MUST_CHECK int pl_traced_run(pl_traced *traced, pl_evaluator *evaluator,
                                       pl_tensor *const *inputs, const pl_run_options *options,
                                       pl_tensor **ret_outputs, pl_error *reterr);

/* For a stage of a dataset, which will call it with such elements: as one graph where that can be,
 * else as a callback. Fills *ret_function, whose release() lets go of the function. -EINVAL if it
 * has captures. */
PL_API PL_MUST_CHECK int pl_traced_function(pl_traced *traced, pl_evaluator *evaluator,
                                            const pl_spec *inputs, int n_inputs,
                                            pl_function *ret_function, pl_error *reterr);

/* ---- calls: the items go to ret_items, new references ---- */

/* Either function takes `inputs`, and has as many outputs, of the same dtypes; `pred` is a scalar
 * bool. `stream`: which random ops inside draw from. */
PL_API PL_MUST_CHECK int pl_expr_cond(pl_expr *pred, pl_traced *on_true, pl_traced *on_false,
                                      pl_expr *const *inputs, int n_inputs, uint64_t stream,
                                      pl_expr **ret_items, pl_error *reterr);

/* While `condition` gives true for the inputs, `body` gives new values for the first of them; as many
 * items as the body has outputs. n_most rounds; negative: any number. */
PL_API PL_MUST_CHECK int pl_expr_while(pl_traced *condition, pl_traced *body,
                                       pl_expr *const *inputs, int n_inputs, int64_t n_most,
                                       uint64_t stream, pl_expr **ret_items, pl_error *reterr);

/* One item for each feature of tf.train.Example records: a scalar string, or a list of them. */
PL_API PL_MUST_CHECK int pl_expr_parse_examples(pl_runtime *runtime, pl_expr *records,
                                                const pl_feature_spec *features, int n_features,
                                                pl_expr **ret_items, pl_error *reterr);

/* A function of the caller's, called between graphs. */
typedef struct pl_foreign {
    size_t size;      /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    const char *name; /* in messages; static */
    bool pure;        /* it has no effects. Else it is called once, in order, in each run */
    /* From any thread. The inputs are borrowed; `outputs` gets new references. */
    int (*call)(void *context, pl_tensor *const *inputs, int n_inputs, pl_tensor **outputs,
                int n_outputs, const pl_run_options *options, pl_error *reterr);
    const pl_type *outputs; /* copied: what it gives, as far as that is known */
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
