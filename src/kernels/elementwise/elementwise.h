/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on strips, one element at a time.
 *   strip     n elements one after the other, aligned to their size; n is the caller's choice, and
 *             fastest where a step's strips stay in the first-level cache (docs/kernels.md)
 *   repeated  an operand that is one element, used n times
 *   kernel    a function that computes one strip; chosen once for the machine it runs on
 *
 * The output is a strip; it may be exactly one of the operands that are strips, or apart from all
 * of them. All operands have the dtype that the kernel was asked for, except the condition of
 * `where`, which is bool. bool is 0 or 1 in every output; `where` and the logical operations take
 * any other byte for true.
 *
 * An element's result depends on its operands alone: not on n, on its place in the strip, on its
 * neighbours or on the form of the kernel. So neither tiling nor fusion changes a bit, and no
 * kernel contracts: mul_add rounds twice, as mul and add do. Two exceptions: which of two NaNs goes
 * on (its sign and payload), and which of two zeros that differ in sign is the larger. Machines
 * with other instructions may give other last bits for the functions that are not exact.
 *
 * Exact or rounded correctly: all but these, which are at most 2 units in the last place off
 * (sigmoid, erfc: 3):
 *   exp expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf
 *   erfc pow atan2 rsqrt
 *
 * Integers wrap. Dividing one by zero gives 0 (floordiv, mod, fmod), as NumPy does; so does 0 to a
 * negative power. An integer to a negative power is the true result without its fraction, where
 * NumPy refuses. No flag says so: the loop would pay for it. Shifts by less than 0 or by all bits
 * and more shift everything out. Kernels assume the default rounding mode.
 *
 * Pure: nothing is allocated, kept or said. Safe from any thread. */
#ifndef PL_KERNELS_ELEMENTWISE_ELEMENTWISE_H
#define PL_KERNELS_ELEMENTWISE_ELEMENTWISE_H

#include "base/base.h"
#include "plimsoll/tensor.h"

/* Which dtypes an operation takes, by the names of graph/ops.def. f16 and bf16 are storage: cast
 * them, but for `where`, which moves what it does not look at. For the rest the graph casts first, as
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
    PL_GIVES_SECOND = PL_GIVES_SAME, /* of `where`: its operands are those behind the condition */
} pl_elementwise_gives;

/* PL_ELEMENTWISE_<name>, from the table of ops. The order is no ABI. */
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

/* Which operands are repeated: 0, or a sum of these. Not all of them at once: compute that as one
 * element of strips, and repeat the result. */
enum {
    PL_REPEATED_A = 1,
    PL_REPEATED_B = 2,
    PL_REPEATED_C = 4,
};

const pl_elementwise_info *pl_elementwise_info_of(pl_elementwise op);

/* The operation called `name`; PL_ELEMENTWISE_COUNT if there is none. */
pl_elementwise pl_elementwise_by_name(const char *name);

/* The dtype of the result for operands of `dtype`; PL_DTYPE_NONE if the operation does not take
 * them. */
pl_dtype pl_elementwise_result(pl_elementwise op, pl_dtype dtype);

/* The kernel for this machine, or NULL if the operation does not take the dtype, or all operands
 * are repeated. The same answer each time; a few nanoseconds. */
pl_elementwise_kernel pl_elementwise_find(pl_elementwise op, pl_dtype dtype, unsigned repeated);

#endif
