/* SPDX-License-Identifier: Apache-2.0 */
/* where, clip and mul_add, in all forms. */
#include "kernels/elementwise/elementwise_group.h"

/* A, B, C: whether this operand is repeated. F is the type of the first. */
#define DEFINE_FORM(name, E, F, T, U, A, B, C)                                                     \
    static void name(PL_STRIP_ARGUMENTS)                                                           \
    {                                                                                              \
        T *out = out_;                                                                             \
        const F *a = a_, x = (A) ? *a : (F)0;                                                      \
        const T *b = b_, y = (B) ? *b : (T)0;                                                      \
        const T *c = c_, z = (C) ? *c : (T)0;                                                      \
        PL_EACH(i, n)                                                                              \
        {                                                                                          \
            const F first = (A) ? x : a[i];                                                        \
            const T second = (B) ? y : b[i], third = (C) ? z : c[i];                               \
            out[i] = E(T, U, first, second, third);                                                \
        }                                                                                          \
    }
#define DEFINE_FORMS(name, E, F, T, U)                                                             \
    DEFINE_FORM(name##_0, E, F, T, U, false, false, false)                                         \
    DEFINE_FORM(name##_1, E, F, T, U, true, false, false)                                          \
    DEFINE_FORM(name##_2, E, F, T, U, false, true, false)                                          \
    DEFINE_FORM(name##_3, E, F, T, U, true, true, false)                                           \
    DEFINE_FORM(name##_4, E, F, T, U, false, false, true)                                          \
    DEFINE_FORM(name##_5, E, F, T, U, true, false, true)                                           \
    DEFINE_FORM(name##_6, E, F, T, U, false, true, true)                                           \
    static const pl_elementwise_kernel name##_forms[] = {name##_0, name##_1, name##_2, name##_3,   \
                                                         name##_4, name##_5, name##_6};
#define DEFINE_TERNARY(op, E, D, T, U) DEFINE_FORMS(op##_##D, E, T, T, U)

#define CHOSEN(T, U, x, y, z)        ((x) != 0 ? (y) : (z))
#define WRAP_MUL_ADD(T, U, x, y, z)  (T)((U)(x) * (U)(y) + (U)(z))
#define FLOAT_MUL_ADD(T, U, x, y, z) ((x) * (y) + (z)) /* rounds twice: see strip.h */

/* Keeps NaNs as maximum and minimum in elementwise_arithmetic.c do. */
#define INTEGER_LARGER(x, y)        ((x) > (y) ? (x) : (y))
#define INTEGER_CLIP(T, U, x, y, z) (INTEGER_LARGER(x, y) < (z) ? INTEGER_LARGER(x, y) : (z))
#define FLOAT_LARGER(x, y)          ((((x) > (y)) | ((x) != (x))) ? (x) : (y))
#define FLOAT_CLIP(T, U, x, y, z)                                                                  \
    (((FLOAT_LARGER(x, y) < (z)) | ((x) != (x)) | ((y) != (y))) ? FLOAT_LARGER(x, y) : (z))

#define ROWS(TERNARY, ...)                                                                         \
    PL_WHOLES(TERNARY, clip, INTEGER_CLIP)                                                         \
    PL_FLOATS(TERNARY, clip, FLOAT_CLIP)                                                           \
    PL_INTEGERS(TERNARY, mul_add, WRAP_MUL_ADD)                                                    \
    PL_FLOATS(TERNARY, mul_add, FLOAT_MUL_ADD)

ROWS(DEFINE_TERNARY)

/* where moves bytes: one kernel for all dtypes of a size. */
DEFINE_FORMS(where_1, CHOSEN, uint8_t, uint8_t, uint8_t)
DEFINE_FORMS(where_2, CHOSEN, uint8_t, uint16_t, uint16_t)
DEFINE_FORMS(where_4, CHOSEN, uint8_t, uint32_t, uint32_t)
DEFINE_FORMS(where_8, CHOSEN, uint8_t, uint64_t, uint64_t)

static pl_elementwise_forms find_where(pl_dtype dtype)
{
    switch (dtype) {
#define WHERE_CASE(number, constant, name, descr, bytes, kind)                                     \
    case constant:                                                                                 \
        return bytes == 1   ? where_1_forms                                                        \
               : bytes == 2 ? where_2_forms                                                        \
               : bytes == 4 ? where_4_forms                                                        \
               : bytes == 8 ? where_8_forms                                                        \
                            : NULL;
        PL_DTYPE_TABLE(WHERE_CASE)
#undef WHERE_CASE
    default:
        return NULL;
    }
}

static PL_DEFINE_GROUP(find_other, ROWS)

    pl_elementwise_forms PL_OF_ISA(pl_elementwise_ternary)(pl_elementwise op, pl_dtype dtype)
{
    return op == PL_ELEMENTWISE_where ? find_where(dtype) : PL_OF_ISA(find_other)(op, dtype);
}
