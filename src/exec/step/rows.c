/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that need all of an axis (cumsum, softmax, sort and the like), and products of matrices. Rows
 * whose axis is not the last are transposed, computed and transposed back, except for softmax,
 * which has loops over columns. */
#include <errno.h>
#include <string.h>

#include "exec/matmul/matmul_product.h"
#include "exec/step/run.h"
#include "graph/geometry.h"
#include "kernels/reduce/reduce.h"
#include "kernels/row/scan.h"
#include "kernels/row/softmax.h"
#include "kernels/row/sort.h"
#include "tensor/dtype.h"

typedef struct rows {
    pl_dtype in_dtype, out_dtype;
    int64_t in_item, out_item; /* bytes */
    int64_t n_rows, n_in, n_out;
    const char *in;
    char *out, *work;
    const pl_run *run;
} rows;

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Swaps the row's axis with the last between two packed layouts of the region. */
static void turn(const pl_region *region, int axis, size_t item_bytes, const char *from, char *to,
                 bool back)
{
    pl_region turned = *region;
    int last = region->rank - 1;
    int64_t natural[PL_RANK_MAX], strides[PL_RANK_MAX], of_turned[PL_RANK_MAX];
    turned.extent[axis] = region->extent[last];
    turned.extent[last] = region->extent[axis];
    pl_region_packed_strides(region, item_bytes, natural);
    pl_region_packed_strides(&turned, item_bytes, of_turned);
    memcpy(strides, of_turned, sizeof strides);
    strides[axis] = of_turned[last];
    strides[last] = of_turned[axis];
    if (back)
        pl_region_copy(to, natural, from, strides, region->extent, region->rank, item_bytes);
    else
        pl_region_copy(to, strides, from, natural, region->extent, region->rank, item_bytes);
}

static void do_cumsum(const pl_node *node, const rows *r)
{
    pl_scan scan = {r->in_dtype, node->attrs[PL_ATTR_cumsum_exclusive].value.i,
                    node->attrs[PL_ATTR_cumsum_reverse].value.i};
    for (int64_t i = 0; i < r->n_rows; i++) {
        uint64_t carry = 0;
        pl_scan_tile tile = {r->in + i * r->n_in * r->in_item,
                             r->out + i * r->n_out * r->out_item,
                             r->n_in * r->in_item,
                             r->n_out * r->out_item,
                             1,
                             r->n_in};
        pl_scan_rows(scan, &tile, &carry);
    }
}

static void do_softmax(const pl_node *node, const rows *r)
{
    pl_softmax_tile tile = {r->in,     r->out, r->n_in * r->in_item, r->n_out * r->out_item,
                            r->n_rows, r->n_in};
    pl_softmax_rows(r->in_dtype, node->op->id == PL_OP_log_softmax, &tile);
}

static void do_log_softmax_columns(const rows *r, const pl_softmax_tile *tile)
{
    const pl_reduce sum = {PL_REDUCE_LOGSUMEXP, r->in_dtype};
    const pl_partials partials = {r->work, tile->n_columns};
    const pl_reduce_tile in = {.data = tile->in,
                               .row_bytes = tile->in_row_bytes,
                               .n_rows = tile->n_rows,
                               .n_columns = tile->n_columns};
    pl_reduce_init(sum, partials, 0, tile->n_columns);
    pl_reduce_columns(sum, &in, partials, 0);
    pl_softmax_columns_by(r->in_dtype, true, tile, partials, 0);
}

/* Computes along an axis that is not the last, `n_behind` columns at a time, in place. */
static void do_softmax_columns(const pl_node *node, const rows *r, int64_t n_behind)
{
    int64_t row_bytes = n_behind * r->in_item, matrix_bytes = r->n_in * row_bytes;
    for (int64_t i = 0; i < r->n_rows / n_behind; i++) {
        const pl_softmax_tile tile = {r->in + i * matrix_bytes,
                                      r->out + i * matrix_bytes,
                                      row_bytes,
                                      row_bytes,
                                      r->n_in,
                                      n_behind};
        if (node->op->id == PL_OP_log_softmax)
            do_log_softmax_columns(r, &tile);
        else
            pl_softmax_columns(r->in_dtype, &tile);
    }
}

static int64_t count_behind(const pl_region *region, int axis)
{
    int64_t n = 1;
    for (int i = axis + 1; i < region->rank; i++)
        n *= region->extent[i];
    return n;
}

/* Can be stopped, because a single row may take seconds. */
static pl_sort sort_of(const rows *r, bool descending)
{
    return (pl_sort){r->in_dtype, descending, pl_run_stop(r->run)};
}

static void do_sort(const pl_node *node, const rows *r)
{
    pl_sort sort = sort_of(r, node->attrs[PL_ATTR_sort_descending].value.i);
    for (int64_t i = 0; i < r->n_rows; i++) {
        const char *in = r->in + i * r->n_in * r->in_item;
        char *out = r->out + i * r->n_out * r->out_item;
        if (node->op->id == PL_OP_sort)
            pl_sort_row(sort, in, r->n_in, out, r->work);
        else
            pl_argsort_row(sort, in, r->n_in, (int64_t *)(void *)out, r->work);
    }
}

/* Values and places are found together; the unwanted ones go to `work`. */
static void do_top_k(const pl_node *node, const rows *r)
{
    pl_sort sort = sort_of(r, true);
    char *other = r->work, *scratch = r->work + round_up((uint64_t)r->n_out * 8);
    bool values = node->op->id == PL_OP_top_k_values;
    for (int64_t i = 0; i < r->n_rows; i++) {
        char *out = r->out + i * r->n_out * r->out_item;
        pl_top_k_row(sort, r->in + i * r->n_in * r->in_item, r->n_in, r->n_out, 0,
                     values ? out : other, (int64_t *)(void *)(values ? other : out), scratch);
    }
}

static void do_rows(const pl_node *node, const rows *r)
{
    switch (node->op->id) {
    case PL_OP_cumsum:
        do_cumsum(node, r);
        break;
    case PL_OP_softmax:
    case PL_OP_log_softmax:
        do_softmax(node, r);
        break;
    case PL_OP_sort:
    case PL_OP_argsort:
        do_sort(node, r);
        break;
    default:
        do_top_k(node, r);
        break;
    }
}

int pl_op_row(const pl_op_call *call)
{
    const pl_node *node = call->instr->node;
    const pl_region *in = pl_call_region(call, 0), *out = call->out;
    int axis = pl_row_axis(node);
    rows r = {.in_dtype = pl_call_input(call, 0)->dtype,
              .out_dtype = call->instr->dtype,
              .n_in = in->extent[axis],
              .n_out = out->extent[axis],
              .in = pl_call_data(call, 0),
              .out = call->to,
              .work = call->work,
              .run = call->frame->run};
    r.in_item = pl_dtype_info_of(r.in_dtype)->item_bytes;
    r.out_item = pl_dtype_info_of(r.out_dtype)->item_bytes;
    r.n_rows = pl_region_count(out) / r.n_out;
    if (axis == in->rank - 1) {
        do_rows(node, &r);
        return pl_run_check(r.run);
    }
    if (pl_row_goes_by_columns(node)) {
        do_softmax_columns(node, &r, count_behind(in, axis));
        return 0;
    }
    /* where layout.c placed them: by the boxes' bounds, which are at least these regions */
    char *turned_in = r.work;
    char *turned_out = turned_in + round_up((uint64_t)(pl_region_count(in) * r.in_item));
    r.work = turned_out + round_up((uint64_t)(pl_region_count(out) * r.out_item));
    turn(in, axis, (size_t)r.in_item, r.in, turned_in, false);
    r.in = turned_in;
    r.out = turned_out;
    do_rows(node, &r);
    turn(out, axis, (size_t)r.out_item, turned_out, call->to, true);
    return pl_run_check(r.run);
}

/* Returns the offset of a batch's matrices in a packed operand, which repeats along axes of 1. */
static int64_t batch_offset(const pl_region *in, const pl_region *out, const int64_t *at,
                            int64_t item_bytes)
{
    int64_t strides[PL_RANK_MAX], offset = 0;
    int n_new = out->rank - in->rank;
    pl_region_packed_strides(in, (size_t)item_bytes, strides);
    for (int i = n_new; i < out->rank - 2; i++)
        if (in->extent[i - n_new] > 1)
            offset += at[i] * strides[i - n_new];
    return offset;
}

static bool goes_on(void *context, double fraction)
{
    (void)fraction;
    return pl_run_check(context) == 0;
}

int pl_op_matmul(const pl_op_call *call)
{
    const pl_node *node = call->instr->node;
    const pl_region *a = pl_call_region(call, 0), *b = pl_call_region(call, 1), *out = call->out;
    int64_t item = pl_dtype_info_of(call->instr->dtype)->item_bytes, at[PL_RANK_MAX] = {0};
    int rank = out->rank;
    pl_gemm gemm = {.dtype = call->instr->dtype,
                    .m = out->extent[rank - 2],
                    .n = out->extent[rank - 1],
                    .a_transposed = node->attrs[PL_ATTR_matmul_transpose_a].value.i,
                    .b_transposed = node->attrs[PL_ATTR_matmul_transpose_b].value.i,
                    .a_row_bytes = a->extent[a->rank - 1] * item,
                    .b_row_bytes = b->extent[b->rank - 1] * item,
                    .c_row_bytes = out->extent[rank - 1] * item,
                    .c = call->to};
    gemm.k = a->extent[a->rank - (gemm.a_transposed ? 2 : 1)];
    if (!pl_call_needs(call, 0) || !pl_call_needs(call, 1))
        gemm.k = 0;
    const pl_product_part part = pl_product_part_of(NULL, &gemm);
    for (int64_t left = pl_region_count(out) / (gemm.m * gemm.n); left > 0; left--) {
        if (gemm.k > 0) {
            gemm.a = pl_call_data(call, 0) + batch_offset(a, out, at, item);
            gemm.b = pl_call_data(call, 1) + batch_offset(b, out, at, item);
        }
        if (!pl_product_run_in_parts(NULL, &gemm, &part, goes_on, call->frame->run))
            return -ECANCELED;
        gemm.c = (char *)gemm.c + gemm.m * gemm.n * item;
        for (int i = rank - 3; i >= 0 && ++at[i] == out->extent[i]; i--)
            at[i] = 0;
    }
    return 0;
}
