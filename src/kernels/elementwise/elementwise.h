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

/* Which dtypes an operation takes. f16 and bf16 are storage: cast them, but for `where`, which
 * moves what it does not look at. For the rest the graph casts first, as NumPy does: sin of an i32
 * is sin of an f64, a bool plus a bool is `logical_or`. */
enum {
    PL_TAKES_BOOL = 1 << PL_KIND_BOOL,
    PL_TAKES_INTEGER = 1 << PL_KIND_SIGNED | 1 << PL_KIND_UNSIGNED,
    PL_TAKES_FLOAT = 1 << PL_KIND_FLOAT,
    PL_TAKES_NUMBER = PL_TAKES_INTEGER | PL_TAKES_FLOAT,
    PL_TAKES_WHOLE = PL_TAKES_BOOL | PL_TAKES_INTEGER,
    PL_TAKES_ANY = PL_TAKES_BOOL | PL_TAKES_NUMBER,
};

typedef enum pl_elementwise_gives {
    PL_GIVES_SAME, /* the operands' dtype */
    PL_GIVES_BOOL,
} pl_elementwise_gives;

/* One table: constant, name, operands, dtypes, result. The order is no ABI. */
#define PL_ELEMENTWISE_TABLE(X)                                                                    \
    X(NEG, "neg", 1, PL_TAKES_NUMBER, PL_GIVES_SAME)                                               \
    X(ABS, "abs", 1, PL_TAKES_NUMBER, PL_GIVES_SAME)                                               \
    X(SQUARE, "square", 1, PL_TAKES_NUMBER, PL_GIVES_SAME)                                         \
    X(SIGN, "sign", 1, PL_TAKES_NUMBER, PL_GIVES_SAME)                                             \
    X(RELU, "relu", 1, PL_TAKES_NUMBER, PL_GIVES_SAME)                                             \
    X(SQRT, "sqrt", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                              \
    X(RSQRT, "rsqrt", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                            \
    X(RECIPROCAL, "reciprocal", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                  \
    X(FLOOR, "floor", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                            \
    X(CEIL, "ceil", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                              \
    X(ROUND, "round", 1, PL_TAKES_FLOAT, PL_GIVES_SAME) /* half to even */                         \
    X(EXP, "exp", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                                \
    X(EXPM1, "expm1", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                            \
    X(LOG, "log", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                                \
    X(LOG1P, "log1p", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                            \
    X(SIN, "sin", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                                \
    X(COS, "cos", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                                \
    X(TAN, "tan", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                                \
    X(ASIN, "asin", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                              \
    X(ACOS, "acos", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                              \
    X(ATAN, "atan", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                              \
    X(SINH, "sinh", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                              \
    X(COSH, "cosh", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                              \
    X(TANH, "tanh", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                              \
    X(ASINH, "asinh", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                            \
    X(ACOSH, "acosh", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                            \
    X(ATANH, "atanh", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                            \
    X(SIGMOID, "sigmoid", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                        \
    X(ERF, "erf", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                                \
    X(ERFC, "erfc", 1, PL_TAKES_FLOAT, PL_GIVES_SAME)                                              \
    X(LOGICAL_NOT, "logical_not", 1, PL_TAKES_ANY, PL_GIVES_BOOL)                                  \
    X(IS_NAN, "is_nan", 1, PL_TAKES_FLOAT, PL_GIVES_BOOL)                                          \
    X(IS_INF, "is_inf", 1, PL_TAKES_FLOAT, PL_GIVES_BOOL)                                          \
    X(IS_FINITE, "is_finite", 1, PL_TAKES_FLOAT, PL_GIVES_BOOL)                                    \
    X(BITWISE_NOT, "bitwise_not", 1, PL_TAKES_WHOLE, PL_GIVES_SAME)                                \
    X(ADD, "add", 2, PL_TAKES_NUMBER, PL_GIVES_SAME)                                               \
    X(SUB, "sub", 2, PL_TAKES_NUMBER, PL_GIVES_SAME)                                               \
    X(MUL, "mul", 2, PL_TAKES_NUMBER, PL_GIVES_SAME)                                               \
    X(DIV, "div", 2, PL_TAKES_FLOAT, PL_GIVES_SAME)                                                \
    X(FLOORDIV, "floordiv", 2, PL_TAKES_NUMBER, PL_GIVES_SAME) /* towards minus infinity */        \
    X(MOD, "mod", 2, PL_TAKES_NUMBER, PL_GIVES_SAME)           /* has the divisor's sign */        \
    X(FMOD, "fmod", 2, PL_TAKES_NUMBER, PL_GIVES_SAME)         /* has the dividend's sign */       \
    X(POW, "pow", 2, PL_TAKES_NUMBER, PL_GIVES_SAME)                                               \
    X(ATAN2, "atan2", 2, PL_TAKES_FLOAT, PL_GIVES_SAME)                                            \
    X(MAXIMUM, "maximum", 2, PL_TAKES_ANY, PL_GIVES_SAME) /* a NaN goes on */                      \
    X(MINIMUM, "minimum", 2, PL_TAKES_ANY, PL_GIVES_SAME)                                          \
    X(SQUARED_DIFFERENCE, "squared_difference", 2, PL_TAKES_NUMBER, PL_GIVES_SAME)                 \
    X(EQUAL, "equal", 2, PL_TAKES_ANY, PL_GIVES_BOOL)                                              \
    X(NOT_EQUAL, "not_equal", 2, PL_TAKES_ANY, PL_GIVES_BOOL)                                      \
    X(LESS, "less", 2, PL_TAKES_ANY, PL_GIVES_BOOL)                                                \
    X(LESS_EQUAL, "less_equal", 2, PL_TAKES_ANY, PL_GIVES_BOOL)                                    \
    X(GREATER, "greater", 2, PL_TAKES_ANY, PL_GIVES_BOOL)                                          \
    X(GREATER_EQUAL, "greater_equal", 2, PL_TAKES_ANY, PL_GIVES_BOOL)                              \
    X(LOGICAL_AND, "logical_and", 2, PL_TAKES_ANY, PL_GIVES_BOOL)                                  \
    X(LOGICAL_OR, "logical_or", 2, PL_TAKES_ANY, PL_GIVES_BOOL)                                    \
    X(LOGICAL_XOR, "logical_xor", 2, PL_TAKES_ANY, PL_GIVES_BOOL)                                  \
    X(BITWISE_AND, "bitwise_and", 2, PL_TAKES_WHOLE, PL_GIVES_SAME)                                \
    X(BITWISE_OR, "bitwise_or", 2, PL_TAKES_WHOLE, PL_GIVES_SAME)                                  \
    X(BITWISE_XOR, "bitwise_xor", 2, PL_TAKES_WHOLE, PL_GIVES_SAME)                                \
    X(LEFT_SHIFT, "left_shift", 2, PL_TAKES_INTEGER, PL_GIVES_SAME)                                \
    X(RIGHT_SHIFT, "right_shift", 2, PL_TAKES_INTEGER, PL_GIVES_SAME)                              \
    X(WHERE, "where", 3, PL_TAKES_ANY, PL_GIVES_SAME)        /* a ? b : c */                       \
    X(CLIP, "clip", 3, PL_TAKES_ANY, PL_GIVES_SAME)          /* minimum(maximum(a, b), c) */       \
    X(MUL_ADD, "mul_add", 3, PL_TAKES_NUMBER, PL_GIVES_SAME) /* a * b + c */

typedef enum pl_elementwise {
#define PL_ELEMENTWISE_ENUM(constant, name, arity, takes, gives) PL_ELEMENTWISE_##constant,
    PL_ELEMENTWISE_TABLE(PL_ELEMENTWISE_ENUM)
#undef PL_ELEMENTWISE_ENUM
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
