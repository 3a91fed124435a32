/* SPDX-License-Identifier: Apache-2.0 */
/* What is computed whole, before the plan: ops of class data, and all that touches strings.
 *
 * The size of what a file holds is known only when it is looked at, so these nodes cannot be
 * planned with the others: see eager_ops.h for their order. Each here gets its inputs as tensors and
 * makes one. Errors name op and node. A call belongs to one thread. */
#ifndef PL_EXEC_EAGER_WHOLE_OPS_H
#define PL_EXEC_EAGER_WHOLE_OPS_H

#include "graph/node.h"
#include "plimsoll/session.h"
#include "tensor/runtime.h"
#include "tensor/strings.h"
#include "tensor/tensor.h"

/* A graph that an op makes to compute with, and all that it needs. */
typedef struct pl_data_graph {
    pl_session *session;
    pl_fetch fetch;
    const pl_feed *feeds;
    int n_feeds;
    uint64_t budget_bytes;
} pl_data_graph;

typedef int pl_data_run_graph(void *context, const pl_data_graph *graph, pl_tensor **ret_tensor,
                              pl_error *reterr);

typedef struct pl_data_call {
    pl_runtime *runtime;
    const pl_node *node;
    const pl_node *decoded;   /* of a resize: the picture's node, if that is made on the way */
    pl_tensor *const *inputs; /* borrowed, as many as the node has, or `decoded` */
    uint64_t budget_bytes;    /* that values and scratch may take, inputs included */
    /* Called once, before what it makes is claimed: so many bytes, inputs included, will be.
     * Negative ends the call. */
    int (*promise)(void *context, uint64_t bytes);
    pl_data_run_graph *run_graph; /* only before the promise: it has a turn of its own */
    void *context;
} pl_data_call;

/* Is the node computed here? Sources never are. */
bool pl_data_takes(const pl_node *node);

/* The node's value. */
PL_MUST_CHECK int pl_data_run(const pl_data_call *call, pl_tensor **ret_tensor, pl_error *reterr);

/* ---- between the files ---- */

/* "op 'node': message". Returns the code. */
PL_MUST_CHECK int pl_data_fail(const pl_data_call *call, int code, pl_error *reterr,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));

/* PL_EBUDGET if so many bytes are more than the call may take; else it is promised them. Once in a
 * call; `of` says what for. */
PL_MUST_CHECK int pl_data_check_budget(const pl_data_call *call, uint64_t bytes, const char *of,
                                       pl_error *reterr);

/* Its two halves, for who has much to say: PL_EBUDGET or -ECANCELED, and nothing is told; and what
 * is to be told then. Returns the code. */
PL_MUST_CHECK int pl_data_promise(const pl_data_call *call, uint64_t bytes);
PL_MUST_CHECK int pl_data_not_promised(const pl_data_call *call, int code, uint64_t bytes,
                                       const char *of, pl_error *reterr);

/* The same, without the promise: what is to be looked at before more is known. */
PL_MUST_CHECK int pl_data_must_fit(const pl_data_call *call, uint64_t bytes, const char *of,
                                   pl_error *reterr);

/* What the inputs that are strings take in memory. */
uint64_t pl_data_input_bytes(const pl_data_call *call);

/* pl_strings_begin() for what is made of inputs that are strings, once it is promised. */
PL_MUST_CHECK int pl_data_begin_strings(const pl_data_call *call, pl_strings_maker *maker,
                                        const pl_shape *shape, uint64_t n_bytes, pl_error *reterr);

/* pl_data_new() for the same. */
PL_MUST_CHECK int pl_data_new_promised(const pl_data_call *call, pl_dtype dtype,
                                       const pl_shape *shape, pl_tensor **ret_tensor,
                                       void **ret_data, pl_error *reterr);

/* A new dense tensor, pinned for writing until pl_buffer_unpin(tensor->buffer). */
PL_MUST_CHECK int pl_data_new(const pl_data_call *call, pl_dtype dtype, const pl_shape *shape,
                              pl_tensor **ret_tensor, void **ret_data, pl_error *reterr);

/* image_ops.c, resize_images.c */
PL_MUST_CHECK int pl_data_decode(const pl_data_call *call, pl_tensor **ret_tensor,
                                 pl_error *reterr);
PL_MUST_CHECK int pl_data_resize(const pl_data_call *call, pl_tensor **ret_tensor,
                                 pl_error *reterr);

/* What that takes beside its tensors. */
uint64_t pl_data_resize_scratch_bytes(pl_runtime *runtime, const pl_node *node, const pl_shape *in,
                                      const pl_shape *out);

/* Can the resize be made of rows of bytes that come one by one, by one thread? */
bool pl_data_takes_rows(const pl_node *resize);

/* Then so: both shapes are a picture's, `scratch` has as many bytes, `made` is the result. Owns
 * nothing. */
typedef struct pl_data_rows pl_data_rows;
uint64_t pl_data_rows_bytes(const pl_node *resize, const pl_shape *in, const pl_shape *out);
pl_data_rows *pl_data_rows_begin(const pl_node *resize, const pl_shape *in, const pl_shape *out,
                                 void *scratch, void *made);
void pl_data_rows_take(void *rows, int64_t y, const uint8_t *row);

/* A resize with the picture that it is of, of which no more than some rows are there at a time. */
PL_MUST_CHECK int pl_data_decode_resized(const pl_data_call *call, pl_tensor **ret_tensor,
                                         pl_error *reterr);

/* string_ops.c */
PL_MUST_CHECK int pl_data_string_length(const pl_data_call *call, pl_tensor **ret_tensor,
                                        pl_error *reterr);
PL_MUST_CHECK int pl_data_string_strip(const pl_data_call *call, pl_tensor **ret_tensor,
                                       pl_error *reterr);
PL_MUST_CHECK int pl_data_string_substr(const pl_data_call *call, pl_tensor **ret_tensor,
                                        pl_error *reterr);
PL_MUST_CHECK int pl_data_string_split(const pl_data_call *call, pl_tensor **ret_tensor,
                                       pl_error *reterr);
PL_MUST_CHECK int pl_data_string_join(const pl_data_call *call, pl_tensor **ret_tensor,
                                      pl_error *reterr);
PL_MUST_CHECK int pl_data_compare(const pl_data_call *call, pl_tensor **ret_tensor,
                                  pl_error *reterr);

/* string_number.c */
PL_MUST_CHECK int pl_data_string_to_number(const pl_data_call *call, pl_tensor **ret_tensor,
                                           pl_error *reterr);

/* string_move.c: views and moves of strings, and where. */
PL_MUST_CHECK int pl_data_move(const pl_data_call *call, pl_tensor **ret_tensor, pl_error *reterr);

#endif
