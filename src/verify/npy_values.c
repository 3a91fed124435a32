/* SPDX-License-Identifier: Apache-2.0 */
/* See npy_values.h. Values are compared as bits: without the sign, the largest exponent alone is
 * infinite, and anything above it is NaN. */
#include "verify/npy_values.h"

#include <string.h>

static uint64_t swap_bytes(uint64_t bits, uint32_t n)
{
    return __builtin_bswap64(bits) >> (64 - 8 * n);
}

/* Returns the bits of infinity; 0: not a float. */
static uint64_t infinity_of(pl_dtype dtype)
{
    switch (dtype) {
    case PL_F16:
        return 0x7c00;
    case PL_BF16:
        return 0x7f80;
    case PL_F32:
        return 0x7f800000;
    case PL_F64:
        return UINT64_C(0x7ff0000000000000);
    default:
        return 0;
    }
}

static void count_one(pl_npy_values *values, const uint8_t *at, uint32_t n, bool swap,
                      uint64_t infinity)
{
    uint64_t bits = 0;
    memcpy(&bits, at, n);
    bits = swap ? swap_bytes(bits, n) : bits;
    bits &= (UINT64_C(1) << (8 * n - 1)) - 1;
    values->n_nan += bits > infinity;
    values->n_inf += bits == infinity;
}

static void count_all(pl_npy_values *values, const uint8_t *at, size_t n_values, uint32_t n,
                      bool swap, uint64_t infinity)
{
    for (size_t i = 0; i < n_values; i++)
        count_one(values, at + i * n, n, swap, infinity);
}

void pl_npy_values_add(pl_npy_values *values, const pl_npy *npy, uint64_t offset, const void *bytes,
                       size_t n)
{
    uint64_t begin = npy->data_offset, end = begin + npy->data_bytes;
    uint64_t from = pl_clamp_u64(offset, begin, end), to = pl_clamp_u64(offset + n, begin, end);
    uint64_t infinity = infinity_of(npy->dtype);
    const uint8_t *at = (const uint8_t *)bytes + (from - offset);
    size_t left = (size_t)(to - from);
    uint32_t item = npy->item_bytes;
    if (infinity == 0 || left == 0)
        return;
    while (values->n_part > 0 && values->n_part < sizeof values->part && left > 0) {
        values->part[values->n_part++] = *at++;
        left--;
        if (values->n_part == item) {
            count_one(values, values->part, item, npy->swap, infinity);
            values->n_part = 0;
        }
    }
    switch (item) { /* gives each loop a constant value size */
    case 2:
        count_all(values, at, left / 2, 2, npy->swap, infinity);
        break;
    case 4:
        count_all(values, at, left / 4, 4, npy->swap, infinity);
        break;
    default:
        count_all(values, at, left / 8, 8, npy->swap, infinity);
        break;
    }
    values->n_part = (uint32_t)(left % item);
    memcpy(values->part, at + left - left % item, left % item);
}
