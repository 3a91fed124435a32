/* SPDX-License-Identifier: Apache-2.0 */
/* See strings.h and plimsoll/tensor.h. */
#include "tensor/strings.h"

#include <errno.h>
#include <string.h>

#include "tensor/shape.h"

uint64_t pl_strings_buffer_bytes(int64_t n, uint64_t n_bytes)
{
    uint64_t positions;
    if (__builtin_mul_overflow((uint64_t)n + 1, PL_STRING_ITEM_BYTES, &positions))
        return UINT64_MAX;
    return pl_add_sat_u64(positions, n_bytes);
}

/* ---- reading ---- */

int pl_strings_pin(pl_strings *strings, pl_tensor *tensor, pl_error *reterr)
{
    void *base;
    pl_region whole = pl_region_whole(&tensor->shape);
    int r = pl_buffer_pin(tensor->buffer, PL_PIN_READ, &base, reterr);
    if (r == 0)
        *strings = (pl_strings){tensor, base, pl_region_count(&whole)};
    return r;
}

void pl_strings_unpin(pl_strings *strings)
{
    if (strings->tensor)
        pl_buffer_unpin(strings->tensor->buffer);
    *strings = (pl_strings){0};
}

static pl_string string_at(const char *base, int64_t offset)
{
    const int64_t *positions = (const int64_t *)(base + offset);
    return (pl_string){base + positions[0], (size_t)(positions[1] - positions[0])};
}

pl_string pl_strings_at(const pl_strings *strings, int64_t number)
{
    const pl_tensor *tensor = strings->tensor;
    int64_t offset = tensor->offset_bytes;
    for (int i = tensor->shape.rank - 1; i >= 0; i--) {
        offset += number % tensor->shape.dims[i] * tensor->strides[i];
        number /= tensor->shape.dims[i];
    }
    return string_at(strings->base, offset);
}

int pl_tensor_pin_string(pl_tensor *tensor, const int64_t *at, pl_string *ret_string,
                         pl_error *reterr)
{
    PL_NOT_NULL(tensor, reterr);
    PL_NOT_NULL(ret_string, reterr);
    PL_NOT_NULL_IF(tensor->shape.rank > 0, at, reterr);
    int64_t offset = tensor->offset_bytes;
    void *base;
    if (tensor->dtype != PL_STRING)
        return pl_error_set(reterr, -EINVAL, "'%s' does not hold strings",
                            pl_buffer_what(tensor->buffer));
    for (int i = 0; i < tensor->shape.rank; i++) {
        if (at[i] < 0 || at[i] >= tensor->shape.dims[i])
            return pl_error_set(reterr, -EINVAL, "'%s' %s has no element %lld on axis %d",
                                pl_buffer_what(tensor->buffer), PL_SHAPE_TEXT(&tensor->shape),
                                (long long)at[i], i);
        offset += at[i] * tensor->strides[i];
    }
    int r = pl_buffer_pin(tensor->buffer, PL_PIN_READ, &base, reterr);
    if (r == 0)
        *ret_string = string_at(base, offset);
    return r;
}

/* ---- making ---- */

int pl_strings_begin(pl_strings_maker *maker, pl_runtime *runtime, const pl_shape *shape,
                     uint64_t n_bytes, const char *what, pl_error *reterr)
{
    int64_t n;
    void *base;
    int r = pl_shape_count(shape, &n, reterr);
    if (r < 0)
        return r;
    pl_strings_maker made = {.shape = *shape};
    r = pl_buffer_new(runtime->pool, pl_strings_buffer_bytes(n, n_bytes), what, &made.buffer, &base,
                      reterr);
    if (r < 0)
        return r;
    made.base = base;
    made.positions = base;
    made.positions[0] = (n + 1) * (int64_t)PL_STRING_ITEM_BYTES;
    *maker = made;
    return 0;
}

char *pl_strings_add(pl_strings_maker *maker, size_t n)
{
    char *to = maker->base + maker->positions[0];
    maker->positions[1] = maker->positions[0] + (int64_t)n;
    maker->positions++;
    return to;
}

int pl_strings_end(pl_strings_maker *maker, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_buffer_unpin(maker->buffer);
    return pl_tensor_wrap(PL_TAKE(maker->buffer), PL_STRING, &maker->shape, NULL, 0, ret_tensor,
                          reterr);
}

void pl_strings_drop(pl_strings_maker *maker)
{
    if (!maker->buffer)
        return;
    pl_buffer_unpin(maker->buffer);
    pl_buffer_unref(PL_TAKE(maker->buffer));
}

int pl_tensor_new_strings(pl_runtime *runtime, const pl_shape *shape, const pl_string *strings,
                          const char *what, pl_tensor **ret_tensor, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(shape, reterr);
    PL_NOT_NULL(ret_tensor, reterr);
    PL_NOT_NULL_IF(!pl_shape_is_empty(shape), strings, reterr);
    int64_t n;
    uint64_t n_bytes = 0;
    pl_strings_maker maker;
    int r = pl_shape_count(shape, &n, reterr);
    for (int64_t i = 0; r == 0 && i < n; i++)
        n_bytes = pl_add_sat_u64(n_bytes, strings[i].n);
    if (r == 0)
        r = pl_strings_begin(&maker, runtime, shape, n_bytes, pl_tensor_what(what), reterr);
    if (r < 0)
        return r;
    for (int64_t i = 0; i < n; i++) {
        char *to = pl_strings_add(&maker, strings[i].n);
        if (strings[i].n > 0)
            memcpy(to, strings[i].data, strings[i].n);
    }
    return pl_strings_end(&maker, ret_tensor, reterr);
}
