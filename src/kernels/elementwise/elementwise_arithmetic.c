/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, products, signs, extremes and roundings: operations of one or a few instructions. */
#include <math.h>

#include "kernels/elementwise/elementwise_group.h"

/* Integers go through an unsigned type that is not promoted to int: they wrap there by definition.
 */
#define WRAP_NEG(T, U, x)                   (T)((U)0 - (U)(x))
#define WRAP_ADD(T, U, x, y)                (T)((U)(x) + (U)(y))
#define WRAP_SUB(T, U, x, y)                (T)((U)(x) - (U)(y))
#define WRAP_MUL(T, U, x, y)                (T)((U)(x) * (U)(y))
#define WRAP_SQUARE(T, U, x)                WRAP_MUL(T, U, x, x)
#define WRAP_SQUARED_DIFFERENCE(T, U, x, y) (T)(((U)(x) - (U)(y)) * ((U)(x) - (U)(y)))

#define UNSIGNED_ABS(T, U, x)  (x)
#define SIGNED_ABS(T, U, x)    ((x) < 0 ? WRAP_NEG(T, U, x) : (x))
#define FLOAT_ABS(T, U, x)     (sizeof(T) == sizeof(float) ? (T)fabsf((float)(x)) : (T)fabs(x))
#define UNSIGNED_SIGN(T, U, x) ((x) != 0)
#define SIGNED_SIGN(T, U, x)   ((x) > 0) - ((x) < 0)
#define FLOAT_SIGN(T, U, x)    ((x) > 0 ? (T)1 : (x) < 0 ? (T)(-1) : (x) == 0 ? (T)0 : (x))
#define UNSIGNED_RELU(T, U, x) (x)
#define SIGNED_RELU(T, U, x)   ((x) > 0 ? (x) : (T)0)
#define FLOAT_RELU(T, U, x)    ((x) <= 0 ? (T)0 : (x)) /* a NaN is not less, so it is propagated */

#define FLOAT_NEG(T, U, x)                   (-(x))
#define FLOAT_ADD(T, U, x, y)                ((x) + (y))
#define FLOAT_SUB(T, U, x, y)                ((x) - (y))
#define FLOAT_MUL(T, U, x, y)                ((x) * (y))
#define FLOAT_DIV(T, U, x, y)                ((x) / (y))
#define FLOAT_SQUARE(T, U, x)                ((x) * (x))
#define FLOAT_SQUARED_DIFFERENCE(T, U, x, y) (((x) - (y)) * ((x) - (y)))
#define FLOAT_RECIPROCAL(T, U, x)            ((T)1 / (x))

#define BY_SIZE(T, name, x)  (sizeof(T) == sizeof(float) ? (T)name##f((float)(x)) : (T)name(x))
#define FLOAT_SQRT(T, U, x)  BY_SIZE(T, sqrt, x)
#define FLOAT_RSQRT(T, U, x) ((T)1 / BY_SIZE(T, sqrt, x))
#define FLOAT_FLOOR(T, U, x) BY_SIZE(T, floor, x)
#define FLOAT_CEIL(T, U, x)  BY_SIZE(T, ceil, x)
#define FLOAT_ROUND(T, U, x) BY_SIZE(T, rint, x)

/* x != x keeps a NaN on the left; a NaN on the right is chosen because the comparison is false. */
#define INTEGER_MAXIMUM(T, U, x, y) ((x) > (y) ? (x) : (y))
#define INTEGER_MINIMUM(T, U, x, y) ((x) < (y) ? (x) : (y))
#define FLOAT_MAXIMUM(T, U, x, y)   ((((x) > (y)) | ((x) != (x))) ? (x) : (y))
#define FLOAT_MINIMUM(T, U, x, y)   ((((x) < (y)) | ((x) != (x))) ? (x) : (y))

#define ROWS(UNARY, BINARY, ...)                                                                   \
    PL_INTEGERS(UNARY, neg, WRAP_NEG)                                                              \
    PL_FLOATS(UNARY, neg, FLOAT_NEG)                                                               \
    PL_UNSIGNED(UNARY, abs, UNSIGNED_ABS)                                                          \
    PL_SIGNED(UNARY, abs, SIGNED_ABS)                                                              \
    PL_FLOATS(UNARY, abs, FLOAT_ABS)                                                               \
    PL_INTEGERS(UNARY, square, WRAP_SQUARE)                                                        \
    PL_FLOATS(UNARY, square, FLOAT_SQUARE)                                                         \
    PL_UNSIGNED(UNARY, sign, UNSIGNED_SIGN)                                                        \
    PL_SIGNED(UNARY, sign, SIGNED_SIGN)                                                            \
    PL_FLOATS(UNARY, sign, FLOAT_SIGN)                                                             \
    PL_UNSIGNED(UNARY, relu, UNSIGNED_RELU)                                                        \
    PL_SIGNED(UNARY, relu, SIGNED_RELU)                                                            \
    PL_FLOATS(UNARY, relu, FLOAT_RELU)                                                             \
    PL_FLOATS(UNARY, sqrt, FLOAT_SQRT)                                                             \
    PL_FLOATS(UNARY, rsqrt, FLOAT_RSQRT)                                                           \
    PL_FLOATS(UNARY, reciprocal, FLOAT_RECIPROCAL)                                                 \
    PL_FLOATS(UNARY, floor, FLOAT_FLOOR)                                                           \
    PL_FLOATS(UNARY, ceil, FLOAT_CEIL)                                                             \
    PL_FLOATS(UNARY, round, FLOAT_ROUND)                                                           \
    PL_INTEGERS(BINARY, add, WRAP_ADD)                                                             \
    PL_FLOATS(BINARY, add, FLOAT_ADD)                                                              \
    PL_INTEGERS(BINARY, sub, WRAP_SUB)                                                             \
    PL_FLOATS(BINARY, sub, FLOAT_SUB)                                                              \
    PL_INTEGERS(BINARY, mul, WRAP_MUL)                                                             \
    PL_FLOATS(BINARY, mul, FLOAT_MUL)                                                              \
    PL_FLOATS(BINARY, div, FLOAT_DIV)                                                              \
    PL_WHOLES(BINARY, maximum, INTEGER_MAXIMUM)                                                    \
    PL_FLOATS(BINARY, maximum, FLOAT_MAXIMUM)                                                      \
    PL_WHOLES(BINARY, minimum, INTEGER_MINIMUM)                                                    \
    PL_FLOATS(BINARY, minimum, FLOAT_MINIMUM)                                                      \
    PL_INTEGERS(BINARY, squared_difference, WRAP_SQUARED_DIFFERENCE)                               \
    PL_FLOATS(BINARY, squared_difference, FLOAT_SQUARED_DIFFERENCE)

ROWS(PL_DEFINE_UNARY, PL_DEFINE_BINARY)
PL_DEFINE_GROUP(pl_elementwise_arithmetic, ROWS)
