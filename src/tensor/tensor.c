/* SPDX-License-Identifier: Apache-2.0 */
/* See tensor.h and plimsoll/tensor.h. Copies of elements are made in tensor_new.c and
 * exec/npy/elements.c; .npy files are exec/npy/npy_tensor.c's. */
#include "tensor/tensor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/dtype.h"
#include "tensor/pool.h"
#include "tensor/runtime.h"
#include "tensor/shape.h"
#include "tensor/strings.h"

/* for a string: its position's, see strings.h */
static size_t item_bytes_of(const pl_tensor *tensor)
{
    return tensor->dtype == PL_STRING ? PL_STRING_ITEM_BYTES
                                      : pl_dtype_info_of(tensor->dtype)->item_bytes;
}

static int refuse_strings(const pl_tensor *tensor, pl_error *reterr)
{
    return pl_error_set(reterr, -EINVAL,
                        "'%s' holds strings: read them with pl_tensor_pin_string()",
                        pl_buffer_what(tensor->buffer));
}

/* Allocates a tensor with room for a label; returns NULL if out of memory, and releases the buffer.
 */
static pl_tensor *tensor_alloc(pl_buffer *buffer, size_t n_label)
{
    pl_tensor *tensor = calloc(1, sizeof *tensor + n_label + 1);
    if (!tensor) {
        pl_buffer_unref(buffer);
        return NULL;
    }
    tensor->n_refs = 1;
    tensor->kind = PL_LIVE_TENSOR;
    tensor->buffer = buffer;
    return tensor;
}

static void tensor_ready(pl_tensor *tensor, pl_tensor **ret_tensor)
{
    pl_links_add(tensor->buffer->pool->tensors, &tensor->link);
    *ret_tensor = tensor;
}

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "no memory to describe a tensor");
}

int pl_tensor_wrap(pl_buffer *buffer, pl_dtype dtype, const pl_shape *shape, const int64_t *strides,
                   int64_t offset_bytes, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_tensor *tensor = tensor_alloc(buffer, 0);
    if (!tensor)
        return no_memory(reterr);
    tensor->dtype = dtype;
    tensor->shape = *shape;
    tensor->offset_bytes = offset_bytes;
    if (strides)
        memcpy(tensor->strides, strides, (size_t)shape->rank * sizeof *strides);
    else
        pl_shape_strides(shape, item_bytes_of(tensor), tensor->strides);
    tensor_ready(tensor, ret_tensor);
    return 0;
}

int pl_tensor_hold(pl_tensor *tensor, enum pl_live_kind kind, const char *label, uint64_t session,
                   pl_tensor **ret_held, pl_error *reterr)
{
    pl_tensor *held = tensor_alloc(pl_buffer_ref(tensor->buffer), strlen(label));
    if (!held)
        return no_memory(reterr);
    held->kind = kind;
    held->session = session;
    held->dtype = tensor->dtype;
    held->shape = tensor->shape;
    memcpy(held->strides, tensor->strides, sizeof held->strides);
    held->offset_bytes = tensor->offset_bytes;
    strcpy(held->label, label);
    tensor_ready(held, ret_held);
    return 0;
}

void pl_tensor_let_go(pl_tensor *held)
{
    if (held)
        atomic_store(&held->kind, PL_LIVE_TENSOR);
    pl_tensor_unref(held);
}

const char *pl_tensor_label(const pl_tensor *tensor)
{
    return tensor->label[0] ? tensor->label : pl_buffer_what(tensor->buffer);
}

int pl_tensor_size(pl_dtype dtype, const pl_shape *shape, int64_t *ret_bytes, pl_error *reterr)
{
    size_t item_bytes = pl_dtype_info_of(dtype)->item_bytes;
    if (dtype == PL_STRING)
        return pl_error_set(reterr, -EINVAL,
                            "strings have no fixed size: make them with pl_tensor_new_strings()");
    if (item_bytes == 0)
        return pl_error_set(reterr, -EINVAL, "a tensor cannot have elements of dtype %s",
                            pl_dtype_info_of(dtype)->name);
    return pl_shape_bytes(shape, item_bytes, ret_bytes, reterr);
}

/* Finds the bytes before the first element that others occupy, and all that they span. */
static uint64_t span(const pl_shape *shape, const int64_t *strides, size_t item_bytes,
                     int64_t *ret_before)
{
    int64_t before = 0, behind = (int64_t)item_bytes;
    for (int i = 0; i < shape->rank; i++) {
        int64_t reach = (shape->dims[i] - 1) * strides[i];
        *(reach < 0 ? &before : &behind) += reach;
    }
    *ret_before = -before;
    return (uint64_t)(behind - before);
}

/* Separate, because release() is called even if this fails. */
static int why_not_borrow(const pl_runtime *runtime, const pl_shape *shape, const void *data,
                          pl_tensor **ret_tensor, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(shape, reterr);
    PL_NOT_NULL_IF(!pl_shape_is_empty(shape), data, reterr);
    PL_NOT_NULL(ret_tensor, reterr);
    return 0;
}

int pl_tensor_borrow(pl_runtime *runtime, pl_dtype dtype, const pl_shape *shape,
                     const int64_t *strides, const void *data, void (*release)(void *context),
                     void *context, const char *what, pl_tensor **ret_tensor, pl_error *reterr)
{
    int64_t bytes, before = 0;
    pl_buffer *buffer;
    PL_NOT_NULL(release, reterr);
    int r = why_not_borrow(runtime, shape, data, ret_tensor, reterr);
    if (r == 0)
        r = pl_tensor_size(dtype, shape, &bytes, reterr);
    if (r == 0) {
        uint64_t all_bytes = (uint64_t)bytes;
        if (strides && bytes > 0)
            all_bytes = span(shape, strides, pl_dtype_info_of(dtype)->item_bytes, &before);
        r = pl_buffer_borrow(runtime->pool, (const char *)data - before, all_bytes, release,
                             context, pl_tensor_what(what), &buffer, reterr);
    }
    if (r < 0) {
        release(context);
        return r;
    }
    return pl_tensor_wrap(buffer, dtype, shape, strides, before, ret_tensor, reterr);
}

pl_tensor *pl_tensor_ref(pl_tensor *tensor)
{
    PL_NULL_GIVES(tensor, NULL);
    atomic_fetch_add(&tensor->n_refs, 1);
    return tensor;
}

void pl_tensor_unref(pl_tensor *tensor)
{
    if (!tensor || atomic_fetch_sub(&tensor->n_refs, 1) > 1)
        return;
    pl_links_remove(tensor->buffer->pool->tensors, &tensor->link);
    pl_buffer_unref(tensor->buffer);
    free(tensor);
}

pl_dtype pl_tensor_dtype(const pl_tensor *tensor)
{
    PL_NULL_GIVES(tensor, PL_DTYPE_NONE);
    return tensor->dtype;
}

const pl_shape *pl_tensor_shape(const pl_tensor *tensor)
{
    PL_NULL_GIVES(tensor, NULL);
    return &tensor->shape;
}

uint64_t pl_tensor_bytes(const pl_tensor *tensor)
{
    PL_NULL_GIVES(tensor, 0);
    pl_region whole = pl_region_whole(&tensor->shape);
    if (tensor->dtype == PL_STRING)
        return pl_buffer_bytes(tensor->buffer);
    return (uint64_t)pl_region_count(&whole) * item_bytes_of(tensor);
}

int pl_tensor_pin(pl_tensor *tensor, const void **ret_data, int64_t strides[PL_RANK_MAX],
                  pl_error *reterr)
{
    PL_NOT_NULL(tensor, reterr);
    PL_NOT_NULL(ret_data, reterr);
    PL_NOT_NULL(strides, reterr);
    void *data;
    if (tensor->dtype == PL_STRING)
        return refuse_strings(tensor, reterr);
    int r = pl_buffer_pin(tensor->buffer, PL_PIN_READ, &data, reterr);
    if (r < 0)
        return r;
    memcpy(strides, tensor->strides, sizeof tensor->strides);
    *ret_data = (const char *)data + tensor->offset_bytes;
    return 0;
}

void pl_tensor_unpin(pl_tensor *tensor)
{
    PL_NULL_DOES_NOTHING(tensor);
    pl_buffer_unpin(tensor->buffer);
}

/* Sorts axes outermost first, by falling stride; axes of 1 can be anywhere. */
bool pl_tensor_order(const pl_tensor *tensor, int axes[PL_RANK_MAX])
{
    int rank = tensor->shape.rank;
    for (int i = 0; i < rank; i++) {
        int at = i;
        for (; at > 0 && tensor->strides[axes[at - 1]] < tensor->strides[i]; at--)
            axes[at] = axes[at - 1];
        axes[at] = i;
    }
    int64_t stride = (int64_t)item_bytes_of(tensor);
    for (int i = rank - 1; i >= 0; i--) {
        int64_t dim = tensor->shape.dims[axes[i]];
        if (dim != 1 && tensor->strides[axes[i]] != stride)
            return false;
        stride *= dim;
    }
    return true;
}

int pl_tensor_read_dense(pl_buffer *buffer, uint64_t offset_bytes, const pl_shape *shape,
                         size_t item_bytes, const pl_region *region, void *data, pl_error *reterr)
{
    pl_region_runs runs;
    int64_t offset;
    char *to = data;
    pl_region_runs_init(&runs, region, shape, item_bytes);
    while (pl_region_runs_next(&runs, &offset)) {
        int r = pl_buffer_read(buffer, offset_bytes + (uint64_t)offset, to, (size_t)runs.run_bytes,
                               reterr);
        if (r < 0)
            return r;
        to += runs.run_bytes;
    }
    return 0;
}

/* Reads at most this much at once for elements that are not in order, and at least this fraction of
 * it must be wanted: a page costs as much as one element of it. */
#define SPAN_BYTES (16 * PL_KIB)
#define SPAN_PAGE  (4 * PL_KIB)
#define SPAN_SHARE 8

typedef struct scattered {
    pl_buffer *buffer;
    const int64_t *strides, *to_strides;
    int rank;
    size_t item_bytes;
    char *room; /* SPAN_BYTES */
} scattered;

/* Finds the span of the elements; *ret_before: of those before `at`. *ret_axis: the axis along
 * which they are furthest apart. */
static uint64_t span_of(const scattered *s, const int64_t *extent, uint64_t *ret_before,
                        int *ret_axis)
{
    uint64_t after = s->item_bytes, most = 0;
    *ret_before = 0;
    *ret_axis = 0;
    for (int i = 0; i < s->rank; i++) {
        uint64_t way = (uint64_t)(extent[i] - 1) * (uint64_t)llabs(s->strides[i]);
        *(s->strides[i] < 0 ? ret_before : &after) += way;
        if (way > most) {
            most = way;
            *ret_axis = i;
        }
    }
    return *ret_before + after;
}

/* Reads close elements together; otherwise one half, then the other. */
static int read_scattered(const scattered *s, uint64_t at, const int64_t *extent, char *to,
                          pl_error *reterr)
{
    uint64_t before, n = s->item_bytes;
    int axis;
    uint64_t span = span_of(s, extent, &before, &axis);
    for (int i = 0; i < s->rank; i++)
        n *= (uint64_t)extent[i];
    if (span <= SPAN_PAGE || (span <= SPAN_BYTES && n >= span / SPAN_SHARE)) {
        int r = pl_buffer_read(s->buffer, at - before, s->room, span, reterr);
        if (r == 0)
            pl_region_copy(to, s->to_strides, s->room + before, s->strides, extent, s->rank,
                           s->item_bytes);
        return r;
    }
    int64_t half[PL_RANK_MAX], first = extent[axis] / 2;
    memcpy(half, extent, (size_t)s->rank * sizeof *half);
    half[axis] = first;
    int r = read_scattered(s, at, half, to, reterr);
    half[axis] = extent[axis] - first;
    return r < 0 ? r
                 : read_scattered(s, at + (uint64_t)(first * s->strides[axis]), half,
                                  to + first * s->to_strides[axis], reterr);
}

/* Loads elements that are not in order, if there is room for all. */
static int read_unordered(pl_tensor *tensor, const pl_region *region, char *data, pl_error *reterr)
{
    const void *from;
    char room[SPAN_BYTES];
    int64_t strides[PL_RANK_MAX], to_strides[PL_RANK_MAX];
    pl_shape shape = {.rank = region->rank};
    memcpy(shape.dims, region->extent, sizeof shape.dims);
    pl_shape_strides(&shape, item_bytes_of(tensor), to_strides);
    int r = pl_tensor_pin(tensor, &from, strides, reterr);
    if (r == PL_EBUDGET) {
        const scattered s = {.buffer = tensor->buffer,
                             .strides = tensor->strides,
                             .to_strides = to_strides,
                             .rank = region->rank,
                             .item_bytes = item_bytes_of(tensor),
                             .room = room};
        int64_t at = tensor->offset_bytes + pl_region_offset(region, tensor->strides);
        return read_scattered(&s, (uint64_t)at, region->extent, data, reterr);
    }
    if (r < 0)
        return r;
    pl_region_copy(data, to_strides, (const char *)from + pl_region_offset(region, strides),
                   strides, region->extent, region->rank, item_bytes_of(tensor));
    pl_tensor_unpin(tensor);
    return 0;
}

int pl_tensor_read(pl_tensor *tensor, const int64_t *begin, const int64_t *extent, void *data,
                   pl_error *reterr)
{
    PL_NOT_NULL(tensor, reterr);
    PL_NOT_NULL_IF(tensor->shape.rank > 0, begin, reterr);
    PL_NOT_NULL_IF(tensor->shape.rank > 0, extent, reterr);
    PL_NOT_NULL_IF(!pl_shape_is_empty(&tensor->shape), data, reterr);
    pl_region region = {.rank = tensor->shape.rank};
    int axes[PL_RANK_MAX];
    if (tensor->dtype == PL_STRING)
        return refuse_strings(tensor, reterr);
    bool in_order = pl_tensor_order(tensor, axes);
    for (int i = 0; i < region.rank; i++) {
        region.begin[i] = begin[i];
        region.extent[i] = extent[i];
        in_order = in_order && axes[i] == i;
    }
    if (!pl_region_inside(&region, &tensor->shape))
        return pl_error_set(reterr, -EINVAL, "cannot read '%s': the region is outside %s",
                            pl_buffer_what(tensor->buffer), PL_SHAPE_TEXT(&tensor->shape));
    if (pl_region_is_empty(&region))
        return 0;
    if (!in_order)
        return read_unordered(tensor, &region, data, reterr);
    return pl_tensor_read_dense(tensor->buffer, (uint64_t)tensor->offset_bytes, &tensor->shape,
                                item_bytes_of(tensor), &region, data, reterr);
}

int pl_tensor_read_slices(pl_tensor *tensor, const int64_t *places, int64_t n, void *data,
                          pl_error *reterr)
{
    int64_t dense[PL_RANK_MAX];
    pl_shape_strides(&tensor->shape, item_bytes_of(tensor), dense);
    bool is_dense = tensor->shape.rank > 0 && tensor->dtype != PL_STRING &&
                    memcmp(&tensor->strides[1], &dense[1],
                           (size_t)(tensor->shape.rank - 1) * sizeof dense[0]) == 0;
    if (!is_dense)
        return pl_error_set(reterr, -ENOTSUP, "slices of '%s' are not contiguous",
                            pl_buffer_what(tensor->buffer));
    uint64_t n_slices = pl_max_u64((uint64_t)tensor->shape.dims[0], 1);
    const pl_buffer_rows rows = {.offset = tensor->offset_bytes,
                                 .stride = tensor->strides[0],
                                 .row_bytes = pl_tensor_bytes(tensor) / n_slices,
                                 .rows = places,
                                 .n = n};
    return pl_buffer_read_rows(tensor->buffer, &rows, data, reterr);
}

static int no_slice(const pl_tensor *tensor, int axis, int64_t start, int64_t step, int64_t count,
                    pl_error *reterr)
{
    return pl_error_set(
        reterr, -EINVAL,
        "cannot slice '%s' %s: axis %d has no %" PRId64 " elements from %" PRId64 " on by %" PRId64,
        pl_buffer_what(tensor->buffer), PL_SHAPE_TEXT(&tensor->shape), axis, count, start, step);
}

/* Returns whether start, start + step, ... are all inside [0, dim). */
static bool slice_fits(int64_t dim, int64_t start, int64_t step, int64_t count)
{
    int64_t last;
    if (count <= 0)
        return count == 0;
    return !__builtin_mul_overflow(count - 1, step, &last) &&
           !__builtin_add_overflow(start, last, &last) && start >= 0 && start < dim && last >= 0 &&
           last < dim;
}

int pl_tensor_slice(pl_tensor *tensor, const int64_t *start, const int64_t *step,
                    const int64_t *count, pl_tensor **ret_view, pl_error *reterr)
{
    PL_NOT_NULL(tensor, reterr);
    PL_NOT_NULL(ret_view, reterr);
    PL_NOT_NULL_IF(tensor->shape.rank > 0, start, reterr);
    PL_NOT_NULL_IF(tensor->shape.rank > 0, step, reterr);
    PL_NOT_NULL_IF(tensor->shape.rank > 0, count, reterr);
    pl_shape shape = tensor->shape;
    int64_t strides[PL_RANK_MAX], offset = tensor->offset_bytes;
    for (int i = 0; i < shape.rank; i++) {
        if (!slice_fits(shape.dims[i], start[i], step[i], count[i]))
            return no_slice(tensor, i, start[i], step[i], count[i], reterr);
        shape.dims[i] = count[i];
        if (count[i] > 0)
            offset += start[i] * tensor->strides[i];
        strides[i] = count[i] > 1 ? step[i] * tensor->strides[i] : tensor->strides[i];
    }
    return pl_tensor_wrap(pl_buffer_ref(tensor->buffer), tensor->dtype, &shape, strides, offset,
                          ret_view, reterr);
}

int pl_tensor_transpose(pl_tensor *tensor, const int *axes, pl_tensor **ret_view, pl_error *reterr)
{
    PL_NOT_NULL(tensor, reterr);
    PL_NOT_NULL(ret_view, reterr);
    PL_NOT_NULL_IF(tensor->shape.rank > 0, axes, reterr);
    pl_shape shape = tensor->shape;
    int64_t strides[PL_RANK_MAX];
    unsigned seen = 0;
    for (int i = 0; i < shape.rank; i++) {
        if (axes[i] < 0 || axes[i] >= shape.rank || seen & 1u << axes[i])
            return pl_error_set(
                reterr, -EINVAL,
                "cannot transpose '%s' %s: axis %d is given twice or does not exist",
                pl_buffer_what(tensor->buffer), PL_SHAPE_TEXT(&tensor->shape), axes[i]);
        seen |= 1u << axes[i];
        shape.dims[i] = tensor->shape.dims[axes[i]];
        strides[i] = tensor->strides[axes[i]];
    }
    return pl_tensor_wrap(pl_buffer_ref(tensor->buffer), tensor->dtype, &shape, strides,
                          tensor->offset_bytes, ret_view, reterr);
}
