/* SPDX-License-Identifier: Apache-2.0 */
/* How a file of elementwise kernels is written: a list of rows, expanded once into functions and
 * once into the cases of a switch. An expression E(T, U, x, ...) computes one element; T is the
 * dtype's type, and U the type to compute in where T would overflow or be promoted to int. */
#ifndef PL_KERNELS_ELEMENTWISE_ELEMENTWISE_GROUP_H
#define PL_KERNELS_ELEMENTWISE_ELEMENTWISE_GROUP_H

#include "kernels/elementwise/elementwise.h"
#include "kernels/strip.h"

/* Kernels of one operation and dtype, by which operands are repeated. */
typedef const pl_elementwise_kernel *pl_elementwise_forms;

/* Finds the kernels in one file for one instruction set; NULL if the file does not have them. */
typedef pl_elementwise_forms pl_elementwise_group(pl_elementwise op, pl_dtype dtype);

#define PL_GROUP_DECLARE(isa)                                                                      \
    pl_elementwise_group pl_elementwise_arithmetic_##isa, pl_elementwise_division_##isa,           \
        pl_elementwise_logic_##isa, pl_elementwise_ternary_##isa, pl_elementwise_functions_##isa
PL_GROUP_DECLARE(plain);
PL_GROUP_DECLARE(avx2);
PL_GROUP_DECLARE(avx512);
#undef PL_GROUP_DECLARE

#define PL_STRIP_ARGUMENTS                                                                         \
    void *out_, const void *a_, __attribute__((unused)) const void *b_,                            \
        __attribute__((unused)) const void *c_, size_t n

/* Unary: R is the result's type. */
#define PL_DEFINE_UNARY_TO(op, E, D, T, U, R)                                                      \
    static void op##_##D##_v(PL_STRIP_ARGUMENTS)                                                   \
    {                                                                                              \
        R *out = out_;                                                                             \
        const T *a = a_;                                                                           \
        PL_EACH(i, n) out[i] = (R)E(T, U, a[i]);                                                   \
    }                                                                                              \
    static const pl_elementwise_kernel op##_##D##_forms[] = {op##_##D##_v};
#define PL_DEFINE_UNARY(op, E, D, T, U)      PL_DEFINE_UNARY_TO(op, E, D, T, U, T)
#define PL_DEFINE_UNARY_BOOL(op, E, D, T, U) PL_DEFINE_UNARY_TO(op, E, D, T, U, uint8_t)

/* Binary: for a strip and a strip, an element and a strip, a strip and an element. */
#define PL_DEFINE_BINARY_TO(op, E, D, T, U, R)                                                     \
    static void op##_##D##_vv(PL_STRIP_ARGUMENTS)                                                  \
    {                                                                                              \
        R *out = out_;                                                                             \
        const T *a = a_, *b = b_;                                                                  \
        PL_EACH(i, n) out[i] = (R)E(T, U, a[i], b[i]);                                             \
    }                                                                                              \
    static void op##_##D##_sv(PL_STRIP_ARGUMENTS)                                                  \
    {                                                                                              \
        R *out = out_;                                                                             \
        const T x = *(const T *)a_, *b = b_;                                                       \
        PL_EACH(i, n) out[i] = (R)E(T, U, x, b[i]);                                                \
    }                                                                                              \
    static void op##_##D##_vs(PL_STRIP_ARGUMENTS)                                                  \
    {                                                                                              \
        R *out = out_;                                                                             \
        const T *a = a_, y = *(const T *)b_;                                                       \
        PL_EACH(i, n) out[i] = (R)E(T, U, a[i], y);                                                \
    }                                                                                              \
    PL_BINARY_FORMS(op, D)
#define PL_BINARY_FORMS(op, D)                                                                     \
    static const pl_elementwise_kernel op##_##D##_forms[] = {op##_##D##_vv, op##_##D##_sv,         \
                                                             op##_##D##_vs};
#define PL_DEFINE_BINARY(op, E, D, T, U)      PL_DEFINE_BINARY_TO(op, E, D, T, U, T)
#define PL_DEFINE_BINARY_BOOL(op, E, D, T, U) PL_DEFINE_BINARY_TO(op, E, D, T, U, uint8_t)

/* Binary, where a plain expression works only for `is_easy` operands, and a slow function for all
 * others. Looks ahead over a few elements, so that the loop over easy ones has no branch. A is true
 * if a is repeated, B if b is. */
enum { PL_LOOK_AHEAD = 64 };
#define PL_DEFINE_GUARDED_FORM(name, T, MASK, A, B, is_easy, easy, general)                        \
    static void name(PL_STRIP_ARGUMENTS)                                                           \
    {                                                                                              \
        T *out = out_;                                                                             \
        const T *a = a_, *b = b_;                                                                  \
        const T x = (A) ? *a : (T)0, y = (B) ? *b : (T)0;                                          \
        while (n > 0) {                                                                            \
            size_t count = n < PL_LOOK_AHEAD ? n : PL_LOOK_AHEAD;                                  \
            MASK n_hard = 0;                                                                       \
            for (size_t i = 0; i < count; i++)                                                     \
                n_hard += is_easy((A) ? x : a[i], (B) ? y : b[i]) ? 0 : 1;                         \
            if (PL_LIKELY(n_hard == 0))                                                            \
                PL_EACH(i, count) out[i] = easy((A) ? x : a[i], (B) ? y : b[i]);                   \
            else                                                                                   \
                for (size_t i = 0; i < count; i++)                                                 \
                    out[i] = general((A) ? x : a[i], (B) ? y : b[i]);                              \
            out += count, n -= count;                                                              \
            a += (A) ? 0 : count, b += (B) ? 0 : count;                                            \
        }                                                                                          \
    }
#define PL_DEFINE_GUARDED(op, D, T, MASK, is_easy, easy, general)                                  \
    PL_DEFINE_GUARDED_FORM(op##_##D##_vv, T, MASK, false, false, is_easy, easy, general)           \
    PL_DEFINE_GUARDED_FORM(op##_##D##_sv, T, MASK, true, false, is_easy, easy, general)            \
    PL_DEFINE_GUARDED_FORM(op##_##D##_vs, T, MASK, false, true, is_easy, easy, general)            \
    PL_BINARY_FORMS(op, D)

#define PL_CASE_KEY(op, dtype) ((unsigned)(op) << 4 | (unsigned)(dtype))
#define PL_CASE(op, E, D, T, U)                                                                    \
    case PL_CASE_KEY(PL_ELEMENTWISE_##op, PL_##D):                                                 \
        return op##_##D##_forms;

/* The file's one exported function, from its list of all rows. */
#define PL_DEFINE_GROUP(name, ROWS)                                                                \
    pl_elementwise_forms PL_OF_ISA(name)(pl_elementwise op, pl_dtype dtype)                        \
    {                                                                                              \
        switch (PL_CASE_KEY(op, dtype)) {                                                          \
            ROWS(PL_CASE, PL_CASE, PL_CASE, PL_CASE)                                               \
        default:                                                                                   \
            return NULL;                                                                           \
        }                                                                                          \
    }

#endif
