/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons, truth and bits. Comparisons with a NaN are untrue, but for not_equal. */
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

/* A count that is negative is a large one when unsigned: more than there are bits, as NumPy has it.
 * The count is bounded before it is used, because the vectorizer shifts first and chooses then.
 * `< 1 and not 0` is `< 0`, said so that it also compiles, to nothing, for unsigned types. */
#define N_BITS(T)                  (8 * sizeof(T))
#define FITS(T, U, count)          ((U)(count) < N_BITS(T))
#define BOUNDED(T, U, count)       ((U)(count) & (N_BITS(T) - 1))
#define SHIFT_LEFT(T, U, x, count) (FITS(T, U, count) ? (T)((U)(x) << BOUNDED(T, U, count)) : (T)0)
#define SHIFT_RIGHT(T, U, x, count)                                                                \
    (FITS(T, U, count) ? (T)((x) >> BOUNDED(T, U, count)) : (T)((x) < (T)1 && (x) != 0 ? -1 : 0))

#define ROWS(UNARY, UNARY_BOOL, BINARY, BINARY_BOOL)                                               \
    PL_ANY(UNARY_BOOL, LOGICAL_NOT, IS_UNTRUE)                                                     \
    PL_FLOATS(UNARY_BOOL, IS_NAN, NAN_IS)                                                          \
    PL_FLOATS(UNARY_BOOL, IS_INF, INF_IS)                                                          \
    PL_FLOATS(UNARY_BOOL, IS_FINITE, FINITE_IS)                                                    \
    PL_BOOLS(UNARY, BITWISE_NOT, IS_UNTRUE)                                                        \
    PL_INTEGERS(UNARY, BITWISE_NOT, BITS_NOT)                                                      \
    PL_ANY(BINARY_BOOL, EQUAL, IS_EQUAL)                                                           \
    PL_ANY(BINARY_BOOL, NOT_EQUAL, IS_NOT_EQUAL)                                                   \
    PL_ANY(BINARY_BOOL, LESS, IS_LESS)                                                             \
    PL_ANY(BINARY_BOOL, LESS_EQUAL, IS_LESS_EQUAL)                                                 \
    PL_ANY(BINARY_BOOL, GREATER, IS_GREATER)                                                       \
    PL_ANY(BINARY_BOOL, GREATER_EQUAL, IS_GREATER_EQUAL)                                           \
    PL_ANY(BINARY_BOOL, LOGICAL_AND, BOTH_TRUE)                                                    \
    PL_ANY(BINARY_BOOL, LOGICAL_OR, SOME_TRUE)                                                     \
    PL_ANY(BINARY_BOOL, LOGICAL_XOR, ONE_IS_TRUE)                                                  \
    PL_WHOLES(BINARY, BITWISE_AND, BITS_AND)                                                       \
    PL_WHOLES(BINARY, BITWISE_OR, BITS_OR)                                                         \
    PL_WHOLES(BINARY, BITWISE_XOR, BITS_XOR)                                                       \
    PL_INTEGERS(BINARY, LEFT_SHIFT, SHIFT_LEFT)                                                    \
    PL_INTEGERS(BINARY, RIGHT_SHIFT, SHIFT_RIGHT)

ROWS(PL_DEFINE_UNARY, PL_DEFINE_UNARY_BOOL, PL_DEFINE_BINARY, PL_DEFINE_BINARY_BOOL)
PL_DEFINE_GROUP(pl_elementwise_logic, ROWS)
