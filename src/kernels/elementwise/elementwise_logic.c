/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons, logical and bit operations. Comparisons with a NaN are false, except not_equal. */
#include "kernels/elementwise/elementwise_group.h"

#define IS_EQUAL(T, U, x, y)         ((x) == (y))
#define IS_NOT_EQUAL(T, U, x, y)     ((x) != (y))
#define IS_LESS(T, U, x, y)          ((x) < (y))
#define IS_LESS_EQUAL(T, U, x, y)    ((x) <= (y))
#define IS_GREATER(T, U, x, y)       ((x) > (y))
#define IS_GREATER_EQUAL(T, U, x, y) ((x) >= (y))

#define IS_UNTRUE(T, U, x)      ((x) == 0)
#define BOTH_TRUE(T, U, x, y)   (((x) != 0) & ((y) != 0))
#define SOME_TRUE(T, U, x, y)   (((x) != 0) | ((y) != 0))
#define ONE_IS_TRUE(T, U, x, y) (((x) != 0) ^ ((y) != 0))

#define NAN_IS(T, U, x)    ((x) != (x))
#define INF_IS(T, U, x)    (((x) == (T)__builtin_inf()) | ((x) == -(T)__builtin_inf()))
#define FINITE_IS(T, U, x) (((x) > -(T)__builtin_inf()) & ((x) < (T)__builtin_inf()))

#define BITS_NOT(T, U, x)    (~(U)(x))
#define BITS_AND(T, U, x, y) ((x) & (y))
#define BITS_OR(T, U, x, y)  ((x) | (y))
#define BITS_XOR(T, U, x, y) ((x) ^ (y))

/* A negative count is a large one when unsigned: more than the number of bits, as in NumPy. The
 * count is bounded before use, because the vectorizer shifts first and selects then. `< 0` is
 * written as `< 1 and not 0`, which also compiles, to nothing, for unsigned types. */
#define N_BITS(T)                  (8 * sizeof(T))
#define FITS(T, U, count)          ((U)(count) < N_BITS(T))
#define BOUNDED(T, U, count)       ((U)(count) & (N_BITS(T) - 1))
#define SHIFT_LEFT(T, U, x, count) (FITS(T, U, count) ? (T)((U)(x) << BOUNDED(T, U, count)) : (T)0)
#define SHIFT_RIGHT(T, U, x, count)                                                                \
    (FITS(T, U, count) ? (T)((x) >> BOUNDED(T, U, count)) : (T)((x) < (T)1 && (x) != 0 ? -1 : 0))

#define ROWS(UNARY, UNARY_BOOL, BINARY, BINARY_BOOL)                                               \
    PL_ANY(UNARY_BOOL, logical_not, IS_UNTRUE)                                                     \
    PL_FLOATS(UNARY_BOOL, is_nan, NAN_IS)                                                          \
    PL_FLOATS(UNARY_BOOL, is_inf, INF_IS)                                                          \
    PL_FLOATS(UNARY_BOOL, is_finite, FINITE_IS)                                                    \
    PL_BOOLS(UNARY, bitwise_not, IS_UNTRUE)                                                        \
    PL_INTEGERS(UNARY, bitwise_not, BITS_NOT)                                                      \
    PL_ANY(BINARY_BOOL, equal, IS_EQUAL)                                                           \
    PL_ANY(BINARY_BOOL, not_equal, IS_NOT_EQUAL)                                                   \
    PL_ANY(BINARY_BOOL, less, IS_LESS)                                                             \
    PL_ANY(BINARY_BOOL, less_equal, IS_LESS_EQUAL)                                                 \
    PL_ANY(BINARY_BOOL, greater, IS_GREATER)                                                       \
    PL_ANY(BINARY_BOOL, greater_equal, IS_GREATER_EQUAL)                                           \
    PL_ANY(BINARY_BOOL, logical_and, BOTH_TRUE)                                                    \
    PL_ANY(BINARY_BOOL, logical_or, SOME_TRUE)                                                     \
    PL_ANY(BINARY_BOOL, logical_xor, ONE_IS_TRUE)                                                  \
    PL_WHOLES(BINARY, bitwise_and, BITS_AND)                                                       \
    PL_WHOLES(BINARY, bitwise_or, BITS_OR)                                                         \
    PL_WHOLES(BINARY, bitwise_xor, BITS_XOR)                                                       \
    PL_INTEGERS(BINARY, left_shift, SHIFT_LEFT)                                                    \
    PL_INTEGERS(BINARY, right_shift, SHIFT_RIGHT)

ROWS(PL_DEFINE_UNARY, PL_DEFINE_UNARY_BOOL, PL_DEFINE_BINARY, PL_DEFINE_BINARY_BOOL)
PL_DEFINE_GROUP(pl_elementwise_logic, ROWS)
