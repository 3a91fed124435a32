/* SPDX-License-Identifier: Apache-2.0 */
/* pl_tensor_new_from(): tensors from elements that lie anywhere, in any dtype. Elements that are
 * not contiguous are first put in order, a few at a time, on the stack. See plimsoll/tensor.h. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "kernels/elementwise/cast.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

/* How many bytes are put in order at a time: they stay in the nearest cache until they are cast. */
#define ORDERED_BYTES (16 * PL_KIB)

typedef struct source {
    pl_shape shape;
    int64_t strides[PL_RANK_MAX];
    const char *data;
    size_t item_bytes, to_bytes;
    bool in_order; /* and aligned, as kernels want it */
    pl_cast_kernel cast;
    bool is_cast; /* to another dtype */
} source;

/* Finds the largest box that begins with element `first`, counted last axis first, and whose
 * elements have consecutive numbers, at most `most` of them. Returns how many it has. */
static int64_t box_at(const pl_shape *shape, int64_t first, int64_t most, pl_region *ret_box)
{
    int64_t n = 1;
    bool whole = true; /* all axes after this one are */
    *ret_box = (pl_region){.rank = shape->rank};
    for (int i = shape->rank - 1; i >= 0; i--) {
        int64_t dim = shape->dims[i], at = first % dim, count = 1;
        first /= dim;
        if (whole) {
            count = dim - at < most / n ? dim - at : most / n;
            n *= count;
            whole = count == dim;
        }
        ret_box->begin[i] = at;
        ret_box->extent[i] = count;
    }
    return n;
}

static void order_box(const source *from, const pl_region *box, void *to)
{
    int64_t to_strides[PL_RANK_MAX];
    pl_shape shape = {.rank = box->rank};
    memcpy(shape.dims, box->extent, sizeof shape.dims);
    pl_shape_strides(&shape, from->item_bytes, to_strides);
    pl_region_copy(to, to_strides, from->data + pl_region_offset(box, from->strides), from->strides,
                   box->extent, box->rank, from->item_bytes);
}

static void make_elements(const void *context, int64_t first, int64_t n, void *to)
{
    _Alignas(PL_MEMORY_ALIGN_BYTES) char ordered[ORDERED_BYTES];
    const source *from = context;
    char *next = to;
    if (n > 0 && from->in_order) { /* an empty array may have no address */
        from->cast(next, from->data + first * (int64_t)from->item_bytes, (size_t)n);
        return;
    }
    int64_t most = from->is_cast ? (int64_t)(sizeof ordered / from->item_bytes) : n;
    for (int64_t count; n > 0; n -= count, first += count) {
        pl_region box;
        count = box_at(&from->shape, first, n < most ? n : most, &box);
        order_box(from, &box, from->is_cast ? ordered : next);
        if (from->is_cast)
            from->cast(next, ordered, (size_t)count);
        next += count * (int64_t)from->to_bytes;
    }
}

static bool is_asked(const void *cancel)
{
    return __atomic_load_n((const int *)cancel, __ATOMIC_RELAXED) != 0;
}

static int check(pl_dtype dtype, const pl_shape *shape, const pl_elements *elements,
                 pl_error *reterr)
{
    int64_t bytes, n_from, n_to;
    int r = pl_tensor_size(dtype, shape, &bytes, reterr);
    if (r == 0)
        r = pl_tensor_size(elements->dtype, &elements->shape, &bytes, reterr);
    if (r == 0)
        r = pl_shape_count(shape, &n_to, reterr);
    if (r == 0)
        r = pl_shape_count(&elements->shape, &n_from, reterr);
    if (r < 0 || n_from == n_to)
        return r;
    return pl_error_set(reterr, -EINVAL,
                        "a tensor of %s cannot be made of the elements of %s: they are %" PRId64
                        ", and it has %" PRId64,
                        PL_SHAPE_TEXT(shape), PL_SHAPE_TEXT(&elements->shape), n_from, n_to);
}

static void describe(const pl_elements *elements, pl_dtype dtype, source *ret_source)
{
    source *s = ret_source;
    int64_t dense[PL_RANK_MAX];
    *s = (source){.shape = elements->shape,
                  .data = elements->data,
                  .item_bytes = pl_dtype_info_of(elements->dtype)->item_bytes,
                  .to_bytes = pl_dtype_info_of(dtype)->item_bytes,
                  .cast = pl_cast_find(elements->dtype, dtype),
                  .is_cast = elements->dtype != dtype};
    pl_shape_strides(&s->shape, s->item_bytes, dense);
    memcpy(s->strides, elements->strides ? elements->strides : dense,
           (size_t)s->shape.rank * sizeof dense[0]);
    s->in_order = (uintptr_t)s->data % s->item_bytes == 0;
    for (int i = 0; i < s->shape.rank; i++)
        s->in_order = s->in_order && (s->shape.dims[i] == 1 || s->strides[i] == dense[i]);
}

int pl_tensor_new_from(pl_runtime *runtime, pl_dtype dtype, const pl_shape *shape,
                       const pl_elements *elements, const pl_copy_options *options,
                       const char *what, pl_tensor **ret_tensor, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(shape, reterr);
    PL_NOT_NULL(elements, reterr);
    PL_NOT_NULL(ret_tensor, reterr);
    PL_TAKE_OPTIONS(pl_copy_options, options, never_spilled, reterr);
    source from;
    int r = check(dtype, shape, elements, reterr);
    if (r < 0)
        return r;
    describe(elements, dtype, &from);
    const int *cancel = options ? options->cancel : NULL;
    const pl_tensor_maker maker = {.make = make_elements,
                                   .context = &from,
                                   .stop = {.asked = cancel ? is_asked : NULL, .context = cancel},
                                   .may_spill = !options || !options->never_spilled};
    return pl_tensor_new_made(runtime, dtype, shape, &maker, what, ret_tensor, reterr);
}
