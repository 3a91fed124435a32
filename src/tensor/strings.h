/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of strings, from inside: elements are bytes of any length.
 *   position  where an element's bytes begin, counted from the beginning of the buffer
 *
 *   buffer = positions[n + 1], then the bytes of all elements, one behind the other
 *
 * An element of a tensor lies where that of any other dtype would, as one of PL_STRING_ITEM_BYTES:
 * its position is there, and behind it that of the next one in the buffer, which is its end. So
 * views are made of offset and strides, as always. Constant once made; safe from any thread, but
 * that a maker belongs to one. */
#ifndef PL_TENSOR_STRINGS_H
#define PL_TENSOR_STRINGS_H

#include "tensor/runtime.h"
#include "tensor/tensor.h"

#define PL_STRING_ITEM_BYTES sizeof(int64_t)

/* Bytes of the buffer for `n` elements of `n_bytes` together; UINT64_MAX if there are too many. */
uint64_t pl_strings_buffer_bytes(int64_t n, uint64_t n_bytes);

/* ---- reading ---- */

/* The elements of a tensor in memory, until pl_strings_unpin(). */
typedef struct pl_strings {
    pl_tensor *tensor; /* borrowed */
    const char *base;  /* of the buffer */
    int64_t n;
} pl_strings;

PL_MUST_CHECK int pl_strings_pin(pl_strings *strings, pl_tensor *tensor, pl_error *reterr);
void pl_strings_unpin(pl_strings *strings);

/* By number, last axis first. */
pl_string pl_strings_at(const pl_strings *strings, int64_t number);

/* ---- making ---- */

typedef struct pl_strings_maker {
    pl_buffer *buffer;
    int64_t *positions; /* of the next element, and of the one behind it */
    char *base;
    pl_shape shape;
} pl_strings_maker;

/* Room for all elements of a shape, which have `n_bytes` together. PL_EBUDGET. */
PL_MUST_CHECK int pl_strings_begin(pl_strings_maker *maker, pl_runtime *runtime,
                                   const pl_shape *shape, uint64_t n_bytes, const char *what,
                                   pl_error *reterr);

/* The next element has `n` bytes, which the caller writes there. */
char *pl_strings_add(pl_strings_maker *maker, size_t n);

/* Once all were added. The maker is done then, also on failure: -ENOMEM. */
PL_MUST_CHECK int pl_strings_end(pl_strings_maker *maker, pl_tensor **ret_tensor, pl_error *reterr);

/* Instead of that. One that was never begun (all zero) is left alone. */
void pl_strings_drop(pl_strings_maker *maker);

#endif
