/* SPDX-License-Identifier: Apache-2.0 */
/* Eager ops, computed as whole tensors before the plan: ops of class data, and all ops on strings.
 *
 * The size of their results is known only when files are opened and strings are read, so they
 * cannot be planned with the others: see eager_ops.h for their order. Each gets its inputs as
 * tensors and makes one tensor. Errors name op and node. A call belongs to one thread. */
#ifndef PL_EXEC_EAGER_WHOLE_OPS_H
#define PL_EXEC_EAGER_WHOLE_OPS_H

#include "graph/node.h"
#include "plimsoll/session.h"
#include "tensor/admission.h"
#include "tensor/runtime.h"
#include "tensor/strings.h"
#include "tensor/tensor.h"

/* A graph that an op builds to compute with, and its inputs and limits. */
typedef struct pl_eager_graph {
    pl_session *session;
    pl_fetch fetch;
    const pl_feed *feeds;
    int n_feeds;
    uint64_t budget_bytes;
} pl_eager_graph;

typedef int pl_eager_run_graph(void *context, const pl_eager_graph *graph, pl_tensor **ret_tensor,
                               pl_error *reterr);

typedef struct pl_eager_call {
    pl_runtime *runtime;
    const pl_node *node;
    const pl_node *decoded;        /* of a resize: the picture's node, if decoded on the way */
    pl_tensor *const *inputs;      /* borrowed, as many as the node has, or `decoded` */
    uint64_t budget_bytes;         /* for values and scratch, inputs included */
    pl_admission *admission;       /* begun once, before the op claims memory: pl_eager_promise() */
    pl_eager_run_graph *run_graph; /* only before that: the graph has an admission of its own */
    void *context;
} pl_eager_call;

/* Returns whether the node is computed here. Sources never are. */
bool pl_is_eager(const pl_node *node);

/* Computes the node's value. */
PL_MUST_CHECK int pl_eager_op_run(const pl_eager_call *call, pl_tensor **ret_tensor,
                                  pl_error *reterr);

/* ---- between the files ---- */

/* Fails with the message "op 'node': message". Returns the code. */
PL_MUST_CHECK int pl_eager_fail(const pl_eager_call *call, int code, pl_error *reterr,
                                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Promises the bytes to the call, or fails with PL_EBUDGET if it may not take that many. Once in a
 * call; `of` says what the memory is for. */
PL_MUST_CHECK int pl_eager_check_budget(const pl_eager_call *call, uint64_t bytes, const char *of,
                                        pl_error *reterr);

/* The two halves of pl_eager_check_budget(), for callers with a longer message: the first fails
 * with PL_EBUDGET or -ECANCELED without a message; the second sets the message, and returns the
 * code. */
PL_MUST_CHECK int pl_eager_promise(const pl_eager_call *call, uint64_t bytes);
PL_MUST_CHECK int pl_eager_not_promised(const pl_eager_call *call, int code, uint64_t bytes,
                                        const char *of, pl_error *reterr);

/* pl_eager_check_budget() without the promise: for checks before the exact size is known. */
PL_MUST_CHECK int pl_eager_must_fit(const pl_eager_call *call, uint64_t bytes, const char *of,
                                    pl_error *reterr);

/* The memory of inputs that are strings. */
uint64_t pl_eager_input_bytes(const pl_eager_call *call);

/* pl_strings_begin() for a result made from string inputs; promises it first. */
PL_MUST_CHECK int pl_eager_begin_strings(const pl_eager_call *call, pl_strings_maker *maker,
                                         const pl_shape *shape, uint64_t n_bytes, pl_error *reterr);

/* pl_eager_new() for a result made from string inputs; promises it first. */
PL_MUST_CHECK int pl_eager_new_promised(const pl_eager_call *call, pl_dtype dtype,
                                        const pl_shape *shape, pl_tensor **ret_tensor,
                                        void **ret_data, pl_error *reterr);

/* Makes a dense tensor, pinned for writing until pl_buffer_unpin(tensor->buffer). */
PL_MUST_CHECK int pl_eager_new(const pl_eager_call *call, pl_dtype dtype, const pl_shape *shape,
                               pl_tensor **ret_tensor, void **ret_data, pl_error *reterr);

/* image_ops.c, resize_images.c */
PL_MUST_CHECK int pl_eager_decode(const pl_eager_call *call, pl_tensor **ret_tensor,
                                  pl_error *reterr);
PL_MUST_CHECK int pl_eager_resize(const pl_eager_call *call, pl_tensor **ret_tensor,
                                  pl_error *reterr);

/* The memory that the resize needs besides its tensors. */
uint64_t pl_eager_resize_scratch_bytes(pl_runtime *runtime, const pl_node *node, const pl_shape *in,
                                       const pl_shape *out);

/* Returns whether one thread can make the resize from rows of bytes that arrive one by one. */
bool pl_eager_takes_rows(const pl_node *resize);

/* Resizes from such rows: both shapes are one picture's, `scratch` has
 * pl_eager_resize_scratch_bytes(), `made` is the result. Owns nothing. */
typedef struct pl_eager_rows pl_eager_rows;
uint64_t pl_eager_rows_bytes(const pl_node *resize, const pl_shape *in, const pl_shape *out);
pl_eager_rows *pl_eager_rows_begin(const pl_node *resize, const pl_shape *in, const pl_shape *out,
                                   void *scratch, void *made);
void pl_eager_rows_take(void *rows, int64_t y, const uint8_t *row);

/* Decodes a picture and resizes it, with only some of the picture's rows in memory at a time. */
PL_MUST_CHECK int pl_eager_decode_resized(const pl_eager_call *call, pl_tensor **ret_tensor,
                                          pl_error *reterr);

/* string_ops.c */
PL_MUST_CHECK int pl_eager_string_length(const pl_eager_call *call, pl_tensor **ret_tensor,
                                         pl_error *reterr);
PL_MUST_CHECK int pl_eager_string_strip(const pl_eager_call *call, pl_tensor **ret_tensor,
                                        pl_error *reterr);
PL_MUST_CHECK int pl_eager_string_substr(const pl_eager_call *call, pl_tensor **ret_tensor,
                                         pl_error *reterr);
PL_MUST_CHECK int pl_eager_string_split(const pl_eager_call *call, pl_tensor **ret_tensor,
                                        pl_error *reterr);
PL_MUST_CHECK int pl_eager_string_join(const pl_eager_call *call, pl_tensor **ret_tensor,
                                       pl_error *reterr);
PL_MUST_CHECK int pl_eager_compare(const pl_eager_call *call, pl_tensor **ret_tensor,
                                   pl_error *reterr);

/* string_number.c */
PL_MUST_CHECK int pl_eager_string_to_number(const pl_eager_call *call, pl_tensor **ret_tensor,
                                            pl_error *reterr);

/* string_move.c: views and moves of strings, and where. */
PL_MUST_CHECK int pl_eager_move(const pl_eager_call *call, pl_tensor **ret_tensor,
                                pl_error *reterr);

#endif
