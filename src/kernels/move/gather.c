/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers elements by index, or generates them by place: see gather.h. */
#include <assert.h>
#include <string.h>

#include "kernels/move/gather.h"

#define FOR_INTEGERS(X)                                                                            \
    X(PL_BOOL, uint8_t)                                                                            \
    X(PL_U8, uint8_t)                                                                              \
    X(PL_I8, int8_t)                                                                               \
    X(PL_U16, uint16_t)                                                                            \
    X(PL_I16, int16_t)                                                                             \
    X(PL_U32, uint32_t)                                                                            \
    X(PL_I32, int32_t)                                                                             \
    X(PL_U64, uint64_t)                                                                            \
    X(PL_I64, int64_t)

/* Returns INT64_MIN for an index that does not fit an int64_t: it is always out of range. */
static int64_t index_at(pl_dtype dtype, const void *indices, int64_t i)
{
    switch (dtype) {
    case PL_U64:
        if (((const uint64_t *)indices)[i] > INT64_MAX)
            return INT64_MIN;
        return (int64_t)((const uint64_t *)indices)[i];
#define CASE(constant, type)                                                                       \
    case constant:                                                                                 \
        return (int64_t)((const type *)indices)[i];
        CASE(PL_BOOL, uint8_t)
        CASE(PL_U8, uint8_t)
        CASE(PL_I8, int8_t)
        CASE(PL_U16, uint16_t)
        CASE(PL_I16, int16_t)
        CASE(PL_U32, uint32_t)
        CASE(PL_I32, int32_t)
        CASE(PL_I64, int64_t)
#undef CASE
    default:
        assert(!"indices are integers");
        return INT64_MIN;
    }
}

int64_t pl_gather_map(pl_dtype dtype, const void *indices, int64_t n, int64_t size,
                      int64_t *ret_map)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t index = index_at(dtype, indices, i);
        if (index < -size || index >= size)
            return i;
        ret_map[i] = index < 0 ? index + size : index;
    }
    return -1;
}

/* With a constant size, memcpy() becomes a load and a store. */
#define COPY_ROWS(bytes)                                                                           \
    for (int64_t i = 0; i < n; i++)                                                                \
    memcpy((char *)out + i * out_stride, (const char *)in + (map[i] - first) * in_stride,          \
           (size_t)(bytes))

void pl_gather_rows(void *out, int64_t out_stride, const void *in, int64_t in_stride,
                    int64_t row_bytes, const int64_t *map, int64_t n, int64_t first)
{
    switch (row_bytes) {
    case 1:
        COPY_ROWS(1);
        break;
    case 2:
        COPY_ROWS(2);
        break;
    case 4:
        COPY_ROWS(4);
        break;
    case 8:
        COPY_ROWS(8);
        break;
    case 16:
        COPY_ROWS(16);
        break;
    default:
        COPY_ROWS(row_bytes);
    }
}

static int64_t modulo(int64_t a, int64_t b)
{
    int64_t rest = a % b;
    return rest < 0 ? rest + b : rest;
}

static int64_t source_of(pl_gather_mode mode, int64_t i, int64_t size)
{
    int64_t period;
    switch (mode) {
    case PL_GATHER_TILE:
        return modulo(i, size);
    case PL_GATHER_REFLECT: /* 0 1 2 1 | 0 1 2 1 */
        period = size > 1 ? 2 * size - 2 : 1;
        i = modulo(i, period);
        return i < size ? i : period - i;
    case PL_GATHER_SYMMETRIC: /* 0 1 2 2 1 0 | 0 1 2 2 1 0 */
        period = 2 * size;
        i = modulo(i, period);
        return i < size ? i : period - 1 - i;
    default:
        return i < 0 ? 0 : i >= size ? size - 1 : i;
    }
}

void pl_gather_axis(pl_gather_mode mode, int64_t begin, int64_t n, int64_t before, int64_t size,
                    int64_t *ret_map)
{
    for (int64_t i = 0; i < n; i++)
        ret_map[i] = source_of(mode, begin + i - before, size);
}

/* Doubles the filled part until all is filled: few calls, however small the element is. */
void pl_fill(void *out, int64_t n, const void *value, size_t item_bytes)
{
    const size_t total = (size_t)n * item_bytes, most = 4096 / item_bytes * item_bytes;
    if (total == 0)
        return;
    memcpy(out, value, item_bytes);
    for (size_t done = item_bytes; done < total;) {
        size_t more = done < total - done ? done : total - done;
        more = most > 0 && more > most ? most : more; /* from the cache, not from memory */
        memcpy((char *)out + done, out, more);
        done += more;
    }
}

static void range_f32(float start, float step, int64_t first, int64_t n, float *out)
{
    const float next = start + step, delta = next - start;
    for (int64_t i = 0; i < n; i++)
        out[i] = start + (float)(first + i) * delta;
}

static void range_f64(double start, double step, int64_t first, int64_t n, double *out)
{
    const double next = start + step, delta = next - start;
    for (int64_t i = 0; i < n; i++)
        out[i] = start + (double)(first + i) * delta;
}

void pl_range(pl_dtype dtype, const void *start, const void *step, int64_t first, int64_t n,
              void *out)
{
    switch (dtype) {
#define CASE(constant, type)                                                                       \
    case constant: {                                                                               \
        const type *begin = start, *by = step;                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((type *)out)[i] =                                                                     \
                (type)((uint64_t)begin[0] + (uint64_t)(first + i) * (uint64_t)by[0]);              \
        break;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    case PL_F32:
        range_f32(*(const float *)start, *(const float *)step, first, n, out);
        break;
    case PL_F64:
        range_f64(*(const double *)start, *(const double *)step, first, n, out);
        break;
    default:
        assert(!"no range of this dtype");
    }
}

void pl_one_hot(pl_dtype index_dtype, const void *indices, int64_t n, int64_t first_class,
                int64_t n_classes, const void *on, const void *off, size_t item_bytes, void *out)
{
    pl_fill(out, n * n_classes, off, item_bytes);
    for (int64_t i = 0; i < n; i++) {
        int64_t index = index_at(index_dtype, indices, i);
        if (index < first_class || index - first_class >= n_classes)
            continue;
        int64_t column = index - first_class;
        memcpy((char *)out + (i * n_classes + column) * (int64_t)item_bytes, on, item_bytes);
    }
}
