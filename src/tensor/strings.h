/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of strings, from inside: elements are bytes of any length.
 *   position  where an element's bytes begin, from the beginning of the buffer
 *
 *   buffer = positions[n + 1], then the bytes of all elements, one after the other
 *
 * An element of a tensor is addressed like one of any other dtype, with PL_STRING_ITEM_BYTES bytes:
 * its position is there, followed by that of the next element in the buffer, which is its end. So
 * views use offset and strides as always. Constant once made; safe from any thread, except that a
 * maker belongs to one thread. */
#ifndef PL_TENSOR_STRINGS_H
#define PL_TENSOR_STRINGS_H

#include "tensor/runtime.h"
#include "tensor/tensor.h"

#define PL_STRING_ITEM_BYTES sizeof(int64_t)

/* Returns the bytes of the buffer for `n` elements of `n_bytes` together; UINT64_MAX if too many.
 */
uint64_t pl_strings_buffer_bytes(int64_t n, uint64_t n_bytes);

/* ---- reading ---- */

/* Pins the elements of a tensor in memory, until pl_strings_unpin(). */
typedef struct pl_strings {
    pl_tensor *tensor; /* borrowed */
    const char *base;  /* of the buffer */
    int64_t n;
} pl_strings;

PL_MUST_CHECK int pl_strings_pin(pl_strings *strings, pl_tensor *tensor, pl_error *reterr);
void pl_strings_unpin(pl_strings *strings);

/* Returns an element by number, last axis first. */
pl_string pl_strings_at(const pl_strings *strings, int64_t number);

/* ---- making ---- */

typedef struct pl_strings_maker {
    pl_buffer *buffer;
    int64_t *positions; /* of the next element, and of the one behind it */
    char *base;
    pl_shape shape;
} pl_strings_maker;

/* Starts a tensor of this shape whose elements have `n_bytes` together. PL_EBUDGET. */
PL_MUST_CHECK int pl_strings_begin(pl_strings_maker *maker, pl_runtime *runtime,
                                   const pl_shape *shape, uint64_t n_bytes, const char *what,
                                   pl_error *reterr);

/* Adds the next element, of `n` bytes, which the caller writes to the returned address. */
char *pl_strings_add(pl_strings_maker *maker, size_t n);

/* Finishes the tensor once all were added. The maker is done then, even on failure: -ENOMEM. */
PL_MUST_CHECK int pl_strings_end(pl_strings_maker *maker, pl_tensor **ret_tensor, pl_error *reterr);

/* Abandons it instead. Does nothing to a maker that was never started (all zero). */
void pl_strings_drop(pl_strings_maker *maker);

#endif
