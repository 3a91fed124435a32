/* SPDX-License-Identifier: Apache-2.0 */
/* Generates values wherever a tile needs them: fill, range, random. Each element depends only on
 * its place in the whole. */
#include <math.h>
#include <string.h>

#include "exec/step/run.h"
#include "kernels/elementwise/cast.h"
#include "kernels/elementwise/random.h"
#include "kernels/move/gather.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

void pl_element_of(const pl_attr *number, pl_dtype dtype, void *element)
{
    if (number->type == PL_ATTR_INT)
        pl_cast_find(PL_I64, dtype)(element, &number->value.i, 1);
    else
        pl_cast_find(PL_F64, dtype)(element, &number->value.f, 1);
}

static double number_of(const pl_attr *number)
{
    return number->type == PL_ATTR_INT ? (double)number->value.i : number->value.f;
}

static void fill(const pl_op_call *call)
{
    const pl_node *node = call->instr->node;
    uint64_t element = 0;
    pl_element_of(&node->attrs[PL_ATTR_fill_value], node->dtype, &element);
    pl_fill(call->to, pl_region_count(call->out), &element,
            pl_dtype_info_of(node->dtype)->item_bytes);
}

/* Halves go through f32, a few at a time, because kernels do not support them. */
enum { PIECE = 512 };

static void range(const pl_op_call *call)
{
    const pl_node *node = call->instr->node;
    pl_dtype dtype = pl_program_compute_dtype(node->dtype);
    uint64_t start = 0, step = 0;
    float piece[PIECE];
    int64_t n = call->out->extent[0];
    pl_element_of(&node->attrs[PL_ATTR_range_start], dtype, &start);
    pl_element_of(&node->attrs[PL_ATTR_range_step], dtype, &step);
    if (dtype == node->dtype) {
        pl_range(dtype, &start, &step, call->out->begin[0], n, call->to);
        return;
    }
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t some = n - i < PIECE ? n - i : PIECE;
        pl_range(dtype, &start, &step, call->out->begin[0] + i, some, piece);
        pl_cast_find(dtype, node->dtype)(call->to + 2 * i, piece, (size_t)some);
    }
}

typedef struct random_op {
    pl_random random;
    pl_distribution distribution;
    pl_dtype dtype;           /* computed in */
    double shift, scale, end; /* x * scale + shift, and below end */
    double last;              /* values not below `end` become this */
    uint64_t low, range;      /* of integers */
} random_op;

static float half_as_float(uint16_t bits, pl_dtype dtype)
{
    float value;
    pl_cast_find(dtype, PL_F32)(&value, &bits, 1);
    return value;
}

/* Returns the largest number of the dtype that is below `end`. A half is rounded once more than its
 * computed value, and must not become `end` by that. */
static double below(double end, pl_dtype dtype)
{
    float end_f32 = (float)end;
    uint16_t bits;
    if (dtype == PL_F64)
        return nextafter(end, -INFINITY);
    if (dtype == PL_F32)
        return nextafterf(end_f32, -INFINITY);
    pl_cast_find(PL_F32, dtype)(&bits, &end_f32, 1);
    if (half_as_float(bits, dtype) < end)
        return half_as_float(bits, dtype);
    bool negative = bits & 0x8000;
    return half_as_float(bits == 0 ? 0x8001 : negative ? bits + 1 : bits - 1, dtype);
}

/* Streams far apart and near are equally independent, so a sum will do; a caller that draws for
 * many runs mixes the differences in itself. */
static uint64_t stream_of(int64_t said, const pl_run_options *options)
{
    return (uint64_t)said + (options ? options->random_stream : 0);
}

static random_op random_of(const pl_node *node, const pl_run_options *options)
{
    pl_dtype dtype = pl_program_compute_dtype(node->dtype);
    bool is_float = pl_dtype_info_of(dtype)->kind == PL_KIND_FLOAT;
    random_op op = {.dtype = dtype, .end = INFINITY};
    op.last = is_float ? below(INFINITY, dtype) : 0;
    const pl_attr *attrs = node->attrs;
    if (node->op->id == PL_OP_random_uniform) {
        const pl_attr *low = &attrs[PL_ATTR_uniform_low], *high = &attrs[PL_ATTR_uniform_high];
        op.random = (pl_random){(uint64_t)attrs[PL_ATTR_uniform_seed].value.i,
                                stream_of(attrs[PL_ATTR_uniform_stream].value.i, options)};
        op.distribution = PL_RANDOM_UNIFORM;
        op.shift = number_of(low);
        op.scale = number_of(high) - number_of(low);
        op.end = number_of(high);
        if (is_float)
            op.last = below(op.end, node->dtype);
        if (dtype != node->dtype)
            op.end = nextafterf((float)op.last, INFINITY);
        op.low = (uint64_t)low->value.i;
        op.range = (uint64_t)high->value.i - (uint64_t)low->value.i;
        return op;
    }
    op.random = (pl_random){(uint64_t)attrs[PL_ATTR_normal_seed].value.i,
                            stream_of(attrs[PL_ATTR_normal_stream].value.i, options)};
    op.distribution =
        node->op->id == PL_OP_random_normal ? PL_RANDOM_NORMAL : PL_RANDOM_TRUNCATED_NORMAL;
    op.shift = number_of(&attrs[PL_ATTR_normal_mean]);
    op.scale = number_of(&attrs[PL_ATTR_normal_stddev]);
    return op;
}

/* Computes floats in their own dtype; a value that rounding takes to `end` becomes the number
 * before it. */
static void scale_floats(const random_op *op, void *data, int64_t n)
{
    if (op->dtype == PL_F32) {
        float shift = (float)op->shift, scale = (float)op->scale, end = (float)op->end;
        float *x = data, last = (float)op->last;
        for (int64_t i = 0; i < n; i++) {
            x[i] = x[i] * scale + shift;
            x[i] = x[i] < end ? x[i] : last;
        }
    } else {
        double *x = data, last = op->last;
        for (int64_t i = 0; i < n; i++) {
            x[i] = x[i] * op->scale + op->shift;
            x[i] = x[i] < op->end ? x[i] : last;
        }
    }
}

/* Generates elements [first, first + n) of the whole. */
static void random_run(const random_op *op, pl_dtype dtype, int64_t first, int64_t n, char *to)
{
    pl_kind kind = pl_dtype_info_of(dtype)->kind;
    if (kind == PL_KIND_SIGNED || kind == PL_KIND_UNSIGNED) {
        pl_random_integers(op->random, dtype, op->low, op->range, (uint64_t)first, n, to);
        return;
    }
    if (op->dtype == dtype) {
        pl_random_floats(op->random, op->distribution, dtype, (uint64_t)first, n, to);
        scale_floats(op, to, n);
        return;
    }
    float piece[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t some = n - i < PIECE ? n - i : PIECE;
        pl_random_floats(op->random, op->distribution, PL_F32, (uint64_t)(first + i), some, piece);
        scale_floats(op, piece, some);
        pl_cast_find(PL_F32, dtype)(to + 2 * i, piece, (size_t)some);
    }
}

static void random_numbers(const pl_op_call *call)
{
    const pl_node *node = call->instr->node;
    random_op op = random_of(node, call->frame->run->options);
    int64_t item_bytes = pl_dtype_info_of(node->dtype)->item_bytes, offset;
    char *to = call->to;
    pl_region_runs runs;
    pl_region_runs_init(&runs, call->out, &call->frame->run->plan->shapes[node->number],
                        (size_t)item_bytes);
    while (pl_region_runs_next(&runs, &offset)) {
        random_run(&op, node->dtype, offset / item_bytes, runs.run_bytes / item_bytes, to);
        to += runs.run_bytes;
    }
}

int pl_op_generate(const pl_op_call *call)
{
    if (call->instr->node->op->id == PL_OP_fill)
        fill(call);
    else if (call->instr->node->op->id == PL_OP_range)
        range(call);
    else
        random_numbers(call);
    return 0;
}
