/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of each dtype, and conversions between the stored and the computed type. Conversions
 * are pure and work on borrowed arrays of n elements, which must not overlap and need only their
 * elements' alignment. Never allocates; safe from any thread. */
#ifndef PL_TENSOR_DTYPE_H
#define PL_TENSOR_DTYPE_H

#include "base/base.h"
#include "plimsoll/tensor.h"

typedef struct pl_dtype_info {
    const char *name;   /* "float32" */
    const char *descr;  /* "<f4", as NumPy writes it; for strings without the width */
    uint8_t item_bytes; /* 0: a string, which has no fixed size */
    bool is_storage;    /* converted before computing */
    enum pl_kind kind;
} pl_dtype_info;

/* Never NULL: for an invalid number, the row of PL_DTYPE_NONE, named "none". */
const pl_dtype_info *pl_dtype_info_of(pl_dtype dtype);

/* Returns the dtype called `name`, or PL_DTYPE_NONE. */
pl_dtype pl_dtype_by_name(const char *name);

/* Converts to half precision: to nearest, ties to even; from 65520 on infinity. A NaN stays one:
 * quiet, with its sign and the upper bits of its payload. The conversion to f32 is exact. The
 * results are the same with and without the processor's own instruction (F16C). */
void pl_f32_to_f16(const float *from, uint16_t *to, size_t n);
void pl_f16_to_f32(const uint16_t *from, float *to, size_t n);
void pl_f32_to_bf16(const float *from, uint16_t *to, size_t n);
void pl_bf16_to_f32(const uint16_t *from, float *to, size_t n);

/* The conversions of halves in plain integer arithmetic: used on machines without F16C, and as the
 * reference for the fast ones. */
void pl_f32_to_f16_portable(const float *from, uint16_t *to, size_t n);
void pl_f16_to_f32_portable(const uint16_t *from, float *to, size_t n);

/* Reverses the bytes of each of n elements of 2, 4 or 8 bytes, in place and at any alignment; other
 * sizes are unchanged. */
void pl_bytes_swap(void *elements, size_t n, size_t item_bytes);

#endif
