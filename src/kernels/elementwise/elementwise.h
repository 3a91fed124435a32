/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on strips, one element at a time.
 *   strip     n contiguous elements, aligned to their size. The caller chooses n; it is fastest if
 *             a step's strips stay in the first-level cache (docs/kernels.md)
 *   repeated  an operand that is one element, used n times
 *   kernel    a function that computes one strip; chosen once for the machine it runs on
 *
 * The output is a strip; it may be exactly one of the operands that are strips, or must not overlap
 * any of them. All operands have the dtype that the kernel was asked for, except the condition of
 * `where`, which is bool. bool is 0 or 1 in every output; `where` and the logical operations treat
 * any other byte as true.
 *
 * An element's result depends only on its operands: not on n, its place in the strip, its
 * neighbours or the form of the kernel. So tiling and fusion do not change a bit, and no kernel
 * contracts: mul_add rounds twice, as mul and add do. Two exceptions: which of two NaNs is
 * propagated (its sign and payload), and which of two zeros of different sign is the larger.
 * Machines with other instructions may give other last bits for inexact functions.
 *
 * All functions are exact or correctly rounded, except these, which are off by at most 2 units in
 * the last place (sigmoid, erfc: 3):
 *   exp expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf
 *   erfc pow atan2 rsqrt
 *
 * Integers wrap. Dividing one by zero gives 0 (floordiv, mod, fmod), as NumPy does; so does 0 to a
 * negative power. An integer to a negative power is the truncated result, where NumPy raises an
 * error. No flag reports these cases, because it would slow the loop down. Shifts by less than 0,
 * or by at least the number of bits, shift everything out. Kernels assume the default rounding
 * mode.
 *
 * Pure: nothing is allocated, kept or reported. Safe from any thread. */
#ifndef PL_KERNELS_ELEMENTWISE_ELEMENTWISE_H
#define PL_KERNELS_ELEMENTWISE_ELEMENTWISE_H

#include "base/base.h"
#include "plimsoll/tensor.h"

/* The dtypes that an operation takes, by the names of graph/ops.def. f16 and bf16 are only storage:
 * cast them first, except for `where`, which only moves elements. The graph casts other inputs as
 * NumPy does: sin of an i32 is sin of an f64, a bool plus a bool is `logical_or`. Strings have no
 * kernels. */
enum {
    PL_TAKES_INTEGERS = 1 << PL_KIND_SIGNED | 1 << PL_KIND_UNSIGNED,
    PL_TAKES_FLOATS = 1 << PL_KIND_FLOAT,
    PL_TAKES_NUMBERS = PL_TAKES_INTEGERS | PL_TAKES_FLOATS,
    PL_TAKES_BITS = PL_TAKES_INTEGERS | 1 << PL_KIND_BOOL,
    PL_TAKES_UNTEXT = PL_TAKES_NUMBERS | 1 << PL_KIND_BOOL,
    PL_TAKES_ANY = PL_TAKES_UNTEXT,
};

typedef enum pl_elementwise_gives {
    PL_GIVES_SAME, /* the operands' dtype */
    PL_GIVES_BOOL,
    PL_GIVES_SECOND = PL_GIVES_SAME, /* of `where`: the operands after the condition */
} pl_elementwise_gives;

/* PL_ELEMENTWISE_<name>, from the table of ops. The order is not part of the ABI. */
typedef enum pl_elementwise {
#define PL_ELEMENTWISE(name, ...) PL_ELEMENTWISE_##name,
#include "kernels/elementwise/elementwise.def"
    PL_ELEMENTWISE_COUNT
} pl_elementwise;

typedef struct pl_elementwise_info {
    const char *name;
    uint8_t n_operands; /* 1 to 3 */
    uint8_t takes;      /* PL_TAKES_... */
    pl_elementwise_gives gives;
} pl_elementwise_info;

/* Operands that the operation does not have are ignored, and may be NULL. */
typedef void (*pl_elementwise_kernel)(void *out, const void *a, const void *b, const void *c,
                                      size_t n);

/* Says which operands are repeated: 0, or a sum of these. At least one must be a strip: if all are
 * repeated, compute one element, and repeat the result. */
enum {
    PL_REPEATED_A = 1,
    PL_REPEATED_B = 2,
    PL_REPEATED_C = 4,
};

const pl_elementwise_info *pl_elementwise_info_of(pl_elementwise op);

/* Returns the operation called `name`; PL_ELEMENTWISE_COUNT if unknown. */
pl_elementwise pl_elementwise_by_name(const char *name);

/* Returns the dtype of the result for operands of `dtype`; PL_DTYPE_NONE if the operation does not
 * take them. */
pl_dtype pl_elementwise_result(pl_elementwise op, pl_dtype dtype);

/* Returns the kernel for this machine, or NULL if the operation does not take the dtype, or all
 * operands are repeated. Always returns the same; takes a few nanoseconds. */
pl_elementwise_kernel pl_elementwise_find(pl_elementwise op, pl_dtype dtype, unsigned repeated);

#endif
