/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops on packed operands, which repeat along axes where they are 1. */
#include "kernels/elementwise.h"

#include <errno.h>
#include <pthread.h>

#include "exec/run.h"
#include "tensor/dtype.h"

static pl_elementwise by_op[PL_N_OPS];
static pthread_once_t by_op_once = PTHREAD_ONCE_INIT;

static void fill_by_op(void)
{
    for (int i = 0; i < PL_N_OPS; i++)
        by_op[i] = pl_elementwise_by_name(pl_op_of((pl_op_id)i)->name);
    by_op[PL_OP_assign_add] = PL_ELEMENTWISE_ADD;
    by_op[PL_OP_assign_sub] = PL_ELEMENTWISE_SUB;
}

enum { OPERANDS = 3 };

/* A walk over the output, its axes merged where all operands allow it. */
typedef struct walk {
    int rank, n_operands;
    int64_t extent[PL_RANK_MAX];
    int64_t strides[OPERANDS][PL_RANK_MAX]; /* bytes; 0: repeated */
} walk;

/* Strides of an operand along the output's axes. */
static void operand_strides(const pl_region *in, const pl_region *out, size_t item_bytes,
                            int64_t strides[PL_RANK_MAX])
{
    int n_new = out->rank - in->rank;
    int64_t packed[PL_RANK_MAX];
    pl_region_packed_strides(in, item_bytes, packed);
    for (int i = 0; i < out->rank; i++)
        strides[i] = i < n_new || in->extent[i - n_new] == 1 ? 0 : packed[i - n_new];
}

/* Outermost first: an axis of 1 is left out; one whose strides go on where the next axis ends
 * becomes one with it. */
static void merge_axes(walk *w, const pl_region *out)
{
    int n_operands = w->n_operands;
    walk merged = {.n_operands = n_operands};
    for (int i = 0; i < out->rank; i++) {
        if (out->extent[i] == 1)
            continue;
        int last = merged.rank - 1;
        bool joins = last >= 0;
        for (int k = 0; joins && k < n_operands; k++)
            joins = merged.strides[k][last] == w->strides[k][i] * out->extent[i];
        if (!joins)
            merged.extent[last = merged.rank++] = out->extent[i];
        else
            merged.extent[last] *= out->extent[i];
        for (int k = 0; k < n_operands; k++)
            merged.strides[k][last] = w->strides[k][i];
    }
    if (merged.rank == 0)
        merged.extent[merged.rank++] = 1;
    *w = merged;
}

/* Calls the kernel for each run of the innermost axis. */
static void run_walk(const walk *w, pl_elementwise_kernel kernel, char *to, size_t to_item_bytes,
                     const char *const operands[OPERANDS])
{
    int64_t at[PL_RANK_MAX] = {0};
    const char *from[OPERANDS] = {operands[0], operands[1], operands[2]};
    int64_t n = w->extent[w->rank - 1];
    for (;;) {
        kernel(to, from[0], from[1], from[2], (size_t)n);
        to += n * (int64_t)to_item_bytes;
        int axis = w->rank - 2;
        for (; axis >= 0; axis--) {
            for (int k = 0; k < w->n_operands; k++)
                from[k] += w->strides[k][axis];
            if (++at[axis] < w->extent[axis])
                break;
            for (int k = 0; k < w->n_operands; k++)
                from[k] -= w->strides[k][axis] * w->extent[axis];
            at[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}

int pl_op_elementwise(const pl_op_call *call)
{
    pthread_once(&by_op_once, fill_by_op);
    const char *operands[OPERANDS] = {0};
    int n = call->instr->n_inputs;
    walk w = {.n_operands = n};
    for (int i = 0; i < n; i++) {
        size_t item_bytes = pl_dtype_info_of(pl_call_input(call, i)->dtype)->item_bytes;
        operands[i] = pl_call_data(call, i);
        operand_strides(pl_call_region(call, i), call->out, item_bytes, w.strides[i]);
    }
    merge_axes(&w, call->out);
    unsigned repeated = 0;
    for (int i = 0; i < n && w.extent[w.rank - 1] > 1; i++)
        if (w.strides[i][w.rank - 1] == 0)
            repeated |= 1u << i;
    pl_elementwise_kernel kernel = pl_elementwise_find(by_op[call->instr->node->op->id],
                                                       pl_call_input(call, n - 1)->dtype, repeated);
    if (!kernel)
        return pl_error_set(&call->frame->error, -ENOTSUP, "there is no kernel for dtype %s",
                            pl_dtype_info_of(pl_call_input(call, n - 1)->dtype)->name);
    run_walk(&w, kernel, call->to, pl_dtype_info_of(call->instr->dtype)->item_bytes, operands);
    return 0;
}
