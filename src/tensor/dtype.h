/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each dtype, and conversions between what is stored and what is computed with.
 * Conversions are pure and work on borrowed arrays of n elements, which need not be aligned beyond
 * their element and must not overlap. Never allocates; safe from any thread. */
#ifndef PL_TENSOR_DTYPE_H
#define PL_TENSOR_DTYPE_H

#include "base/base.h"
#include "plimsoll/tensor.h"

typedef struct pl_dtype_info {
    const char *name;   /* "float32" */
    const char *descr;  /* "<f4", as NumPy writes it; of a string without its width */
    uint8_t item_bytes; /* 0: a string, whose elements have no common size */
    bool is_storage;    /* converted before it is computed with */
    enum pl_kind kind;
} pl_dtype_info;

/* Never NULL: for a number that is no dtype, the row of PL_DTYPE_NONE, named "none". */
const pl_dtype_info *pl_dtype_info_of(pl_dtype dtype);

/* The dtype called `name`, or PL_DTYPE_NONE. */
pl_dtype pl_dtype_by_name(const char *name);

/* To half precision: to the nearest, ties to even; from 65520 on infinity. A NaN stays one: quiet,
 * with its sign and the upper bits of its payload. To f32 every value is exact. The same bits
 * whether the processor's own instruction (F16C) is there or not. */
void pl_f32_to_f16(const float *from, uint16_t *to, size_t n);
void pl_f16_to_f32(const uint16_t *from, float *to, size_t n);
void pl_f32_to_bf16(const float *from, uint16_t *to, size_t n);
void pl_bf16_to_f32(const uint16_t *from, float *to, size_t n);

/* The halves' conversions in plain integer arithmetic: what machines without F16C run, and what
 * the fast ones are held against. */
void pl_f32_to_f16_portable(const float *from, uint16_t *to, size_t n);
void pl_f16_to_f32_portable(const uint16_t *from, float *to, size_t n);

/* Reverses the bytes of each of n elements of 2, 4 or 8 bytes, in place and at any alignment; other
 * sizes have no order, and are left alone. */
void pl_bytes_swap(void *elements, size_t n, size_t item_bytes);

#endif
