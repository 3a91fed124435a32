/* SPDX-License-Identifier: Apache-2.0 */
/* See product.h. */
#include "plan/product.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph/geometry.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* Multiplications, and elements of an operand: below both, a step of its own gains nothing, and the
 * product is one tile. 100 x 100 x 100 takes some 20 us. */
#define LARGE_PRODUCTS 0x1p20
#define LARGE_OPERAND  0x1p16

/* Multiplications in one product of a batch that is not all in memory: smaller products are read
 * many at a time, as tiles. */
#define LARGE_FROM_DISK 0x1p27

/* How much faster a product must become with more memory before others are made to leave. */
#define PAYS_FACTOR 2

static double multiplications(const pl_matmul_question *q)
{
    return (double)q->m * (double)q->n * (double)q->k;
}

/* ---- what is read ---- */

static bool swaps_last_two(const pl_node *transpose)
{
    int axes[PL_RANK_MAX];
    pl_transpose_axes(transpose, axes);
    return pl_axes_swap_last_two(axes, transpose->shape.rank);
}

/* Returns whether only whole matrices are repeated, which strides of 0 can do. */
static bool repeats_matrices(const pl_node *broadcast, const pl_shape *shapes)
{
    const pl_shape *to = &shapes[broadcast->number],
                   *from = pl_node_input_shape(broadcast, shapes, 0);
    return from->rank >= 2 && from->dims[from->rank - 1] == to->dims[to->rank - 1] &&
           from->dims[from->rank - 2] == to->dims[to->rank - 2];
}

/* Returns whether the node leaves the matrices where they are. */
static bool is_seen_through(const pl_node *node, const pl_shape *shapes, bool *ret_swaps)
{
    *ret_swaps = node->op->id == PL_OP_transpose;
    switch (node->op->id) {
    case PL_OP_transpose:
        return swaps_last_two(node);
    case PL_OP_broadcast_to:
        return repeats_matrices(node, shapes);
    default:
        return node->op->id == PL_OP_identity || node->op->id == PL_OP_ensure_shape;
    }
}

static bool is_stored(const pl_plan *plan, const bool *stored, const pl_node *node)
{
    return stored ? stored[node->number] : plan->value_of[node->number] >= 0;
}

/* Results of steps are dense. */
static bool will_be_dense(const pl_plan *plan, const bool *stored, const pl_node *node)
{
    int value = plan->value_of[node->number];
    if (value < 0)
        return !stored;
    return !plan->values[value].permuted && !plan->values[value].scattered;
}

pl_product_base pl_product_base_of(const pl_plan *plan, const bool *stored, const pl_node *input)
{
    pl_product_base base = {input, input, false};
    while (!is_stored(plan, stored, base.node)) {
        const pl_node *node = base.node;
        bool swaps;
        if (node->op->id == PL_OP_reshape && will_be_dense(plan, stored, node->inputs[0])) {
            base.node = node->inputs[0];
            return base;
        }
        if (!is_seen_through(node, plan->shapes, &swaps))
            return base;
        base.swapped ^= swaps;
        base.node = base.shaped = node->inputs[0];
    }
    return base;
}

bool pl_product_is_large(const pl_node *node, const pl_shape *shapes)
{
    const pl_shape *c = &shapes[node->number];
    pl_matmul_dims dims = pl_matmul_dims_of(node, pl_node_input_shape(node, shapes, 0),
                                            pl_node_input_shape(node, shapes, 1));
    double products = (double)dims.inner;
    int64_t longer = dims.rows > dims.columns ? dims.rows : dims.columns;
    for (int i = 0; i < c->rank; i++) {
        if (c->dims[i] <= 0) /* or not known */
            return false;
        products *= (double)c->dims[i];
    }
    bool large = products >= LARGE_PRODUCTS || (double)dims.inner * (double)longer > LARGE_OPERAND;
    return dims.inner > 0 && large && pl_matmul_takes(node->dtype);
}

/* ---- how it lies ---- */

static bool set_operand(const pl_plan *plan, const bool *stored, const pl_node *node, int i,
                        pl_operand *operand, bool *ret_transposed)
{
    pl_product_base base = pl_product_base_of(plan, stored, node->inputs[i]);
    int value = plan->value_of[base.node->number];
    const pl_shape *c = &plan->shapes[node->number], *in = &plan->shapes[base.shaped->number];
    if (value < 0)
        return false;
    const pl_plan_value *v = &plan->values[value];
    if (v->scattered || (v->permuted && !v->swapped))
        return false;
    bool flag =
        node->attrs[i == 0 ? PL_ATTR_matmul_transpose_a : PL_ATTR_matmul_transpose_b].value.i;
    *operand = (pl_operand){.value = value};
    *ret_transposed = flag ^ base.swapped ^ v->swapped;
    int64_t stride =
        in->dims[in->rank - 2] * in->dims[in->rank - 1] * pl_dtype_info_of(node->dtype)->item_bytes;
    for (int axis = in->rank - 3; axis >= 0; axis--) {
        operand->strides[axis + c->rank - in->rank] = in->dims[axis] == 1 ? 0 : stride;
        stride *= in->dims[axis];
    }
    return true;
}

static void drop_axis(pl_product *p, int axis)
{
    size_t n = (size_t)(--p->rank - axis) * sizeof *p->dims;
    memmove(p->dims + axis, p->dims + axis + 1, n);
    memmove(p->a.strides + axis, p->a.strides + axis + 1, n);
    memmove(p->b.strides + axis, p->b.strides + axis + 1, n);
}

/* With one right operand for all, and left operands one after the other, it is one product with all
 * their rows. */
static void join_rows(pl_product *p)
{
    pl_matmul_question *q = &p->question;
    int64_t stride = q->m * q->k * pl_dtype_info_of(q->dtype)->item_bytes;
    for (int i = p->rank - 1; i >= 0; i--) {
        if (q->a_transposed || p->b.strides[i] != 0 || p->a.strides[i] != stride)
            return;
        stride *= p->dims[i];
    }
    q->m *= p->n_products;
    p->rank = 0;
    p->n_products = 1;
}

static void set_batch(const pl_plan *plan, const pl_node *node, pl_product *p)
{
    const pl_shape *c = &plan->shapes[node->number];
    p->rank = c->rank - 2;
    p->n_products = 1;
    for (int i = p->rank - 1; i >= 0; i--) {
        p->dims[i] = c->dims[i];
        p->n_products *= c->dims[i];
        if (c->dims[i] == 1)
            drop_axis(p, i);
    }
    join_rows(p);
    pl_matmul_question *q = &p->question;
    q->b_is_a = p->a.value == p->b.value && q->a_transposed != q->b_transposed && q->m == q->n &&
                memcmp(p->a.strides, p->b.strides, sizeof p->a.strides) == 0;
}

int pl_product_new(const pl_plan *plan, const bool *stored, const pl_node *node,
                   pl_product **ret_product)
{
    pl_product p = {0};
    pl_matmul_question *q = &p.question;
    *ret_product = NULL;
    if (!pl_product_is_large(node, plan->shapes) ||
        !set_operand(plan, stored, node, 0, &p.a, &q->a_transposed) ||
        !set_operand(plan, stored, node, 1, &p.b, &q->b_transposed))
        return 0;
    pl_matmul_dims dims = pl_matmul_dims_of(node, pl_node_input_shape(node, plan->shapes, 0),
                                            pl_node_input_shape(node, plan->shapes, 1));
    q->dtype = node->dtype;
    q->m = dims.rows;
    q->n = dims.columns;
    q->k = dims.inner;
    set_batch(plan, node, &p);
    *ret_product = malloc(sizeof p);
    if (!*ret_product)
        return -ENOMEM;
    **ret_product = p;
    return 0;
}

/* ---- what it takes ---- */

static bool is_resident(const pl_plan *plan, int value)
{
    return plan->values[value].place == PL_PLACE_MEMORY;
}

static bool all_resident(const pl_plan *plan, const pl_step *step)
{
    return is_resident(plan, step->product->a.value) && is_resident(plan, step->product->b.value) &&
           is_resident(plan, step->value);
}

bool pl_step_is_product(const pl_plan *plan, pl_step *step)
{
    const pl_product *p = step->product;
    if (!p)
        return false;
    bool is_product = p->n_products == 1 || all_resident(plan, step) ||
                      multiplications(&p->question) >= LARGE_FROM_DISK;
    step->kind = is_product ? PL_STEP_MATMUL : PL_STEP_TILES;
    return is_product;
}

/* Asks for the product with its values where they are now. */
static pl_matmul_question question_of(const pl_plan *plan, const pl_step *step, int n_threads)
{
    const pl_product *p = step->product;
    pl_matmul_question q = p->question;
    q.a_resident = is_resident(plan, p->a.value);
    q.b_resident = is_resident(plan, p->b.value);
    q.c_resident = is_resident(plan, step->value);
    q.n_threads = n_threads;
    return q;
}

/* The disk space that other values leave. */
static uint64_t disk_room(const pl_plan *plan, const pl_plan_request *request)
{
    uint64_t spilled = 0;
    for (int i = 0; i < plan->n_values; i++)
        if (!plan->values[i].from_outside && plan->values[i].place == PL_PLACE_SPILL)
            spilled += plan->values[i].bytes;
    return pl_sub_sat_u64(request->disk.bytes, spilled);
}

static bool plan_batch(const pl_plan *plan, const pl_step *step, int n_threads, uint64_t room)
{
    pl_product *p = step->product;
    const pl_matmul_question *q = &p->question;
    uint64_t bytes =
        pl_matmul_batch_workspace_bytes(q->dtype, q->m, q->n, q->k, p->n_products, n_threads);
    p->as_batch = p->n_products > 1 && all_resident(plan, step) && bytes <= room;
    if (!p->as_batch)
        return false;
    double all = multiplications(q) * (double)p->n_products;
    p->plan = (pl_matmul_plan){.question = question_of(plan, step, n_threads),
                               .workspace_bytes = bytes,
                               .flops = q->b_is_a ? all : 2 * all};
    return true;
}

static bool pays(const pl_matmul_plan *product)
{
    pl_matmul_plan ample;
    pl_matmul_question q = product->question;
    q.budget_bytes = UINT64_MAX / 4;
    return pl_matmul_plan_make(&q, &ample, NULL) < 0 ||
           pl_matmul_plan_seconds(product) <= PAYS_FACTOR * pl_matmul_plan_seconds(&ample);
}

static int64_t n_tiles_of(const pl_matmul_plan *p)
{
    if (p->strategy == PL_MATMUL_WHOLE)
        return 1;
    int64_t down = (p->question.m + p->tile_rows - 1) / p->tile_rows;
    if (p->symmetric)
        return down * (down + 1) / 2;
    return down * ((p->question.n + p->tile_columns - 1) / p->tile_columns);
}

static int plan_one(const pl_plan *plan, const pl_step *step, const pl_plan_request *request,
                    int n_threads, uint64_t room, pl_error *reterr)
{
    pl_error why = {0};
    pl_matmul_question q = question_of(plan, step, n_threads);
    q.budget_bytes = room;
    q.disk_bytes = pl_max_u64(disk_room(plan, request), 1);
    int r = pl_matmul_plan_make(&q, &step->product->plan, &why);
    if (r < 0 && r != PL_EBUDGET)
        pl_error_set(reterr, r, "%s '%s': %s", step->node->op->name, step->node->name, why.message);
    return r;
}

int pl_step_plan_product(const pl_plan *plan, pl_step *step, const pl_plan_request *request,
                         int n_threads, uint64_t room, bool must_pay, uint64_t *ret_bytes,
                         pl_error *reterr)
{
    pl_product *p = step->product;
    if (!plan_batch(plan, step, n_threads, room)) {
        int r = plan_one(plan, step, request, n_threads, room, reterr);
        if (r < 0)
            return r;
        if (must_pay && !pays(&p->plan))
            return PL_EBUDGET;
        p->plan.flops *= (double)p->n_products;
    }
    step->n_tiles = p->as_batch ? p->n_products : p->n_products * n_tiles_of(&p->plan);
    step->n_workers = n_threads;
    step->flops = p->plan.flops;
    step->direct = false;
    step->worker_bytes = step->tile_bytes = 0;
    step->shared_bytes = p->plan.scratch_bytes;
    step->library_bytes = p->plan.workspace_bytes;
    *ret_bytes = pl_add_sat_u64(p->plan.scratch_bytes, p->plan.workspace_bytes);
    return 0;
}

pl_matmul_plan pl_step_least_product(const pl_plan *plan, const pl_step *step)
{
    pl_matmul_question q = question_of(plan, step, 1);
    return pl_matmul_plan_least(&q);
}
