/* SPDX-License-Identifier: Apache-2.0 */
/* Quotients and remainders with NumPy's signs, and powers of integers.
 *
 * No vector instruction divides integers, so floats are divided instead: with |x| < 2^m, x / y is
 * at least 1 / |y| away from every other integer, and its rounding error is below 2^m / |y| x 2^-24
 * (2^-53): too small to reach one for m <= 16 in f32, and m <= 32 in f64. */
#include <math.h>

#include "kernels/elementwise/elementwise_group.h"

/* quotient_D(): truncated, wrapping, and 0 for y == 0. */
#define DEFINE_QUOTIENT_BY_FLOAT(D, T)                                                             \
    static inline T quotient_##D(T x, T y)                                                         \
    {                                                                                              \
        int32_t q = (int32_t)((float)x / (float)(y == 0 ? 1 : y));                                 \
        return y == 0 ? (T)0 : (T)q;                                                               \
    }
DEFINE_QUOTIENT_BY_FLOAT(U8, uint8_t)
DEFINE_QUOTIENT_BY_FLOAT(I8, int8_t)
DEFINE_QUOTIENT_BY_FLOAT(U16, uint16_t)
DEFINE_QUOTIENT_BY_FLOAT(I16, int16_t)

/* -1 is handled separately, because -2^31 / -1 does not fit an i32. */
static inline int32_t quotient_I32(int32_t x, int32_t y)
{
    int32_t safe = ((y == 0) | (y == -1)) ? 1 : y;
    int32_t q = (int32_t)((double)x / (double)safe);
    return y == 0 ? 0 : y == -1 ? (int32_t)(0 - (uint32_t)x) : q;
}

static inline int64_t quotient_I64(int64_t x, int64_t y)
{
    return y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

static inline uint32_t quotient_U32(uint32_t x, uint32_t y)
{
    return y == 0 ? 0 : x / y;
}

static inline uint64_t quotient_U64(uint64_t x, uint64_t y)
{
    return y == 0 ? 0 : x / y;
}

#define DEFINE_INTEGER_DIVISION(op, E, D, T, U)                                                    \
    static inline T fmod_##D(T x, T y)                                                             \
    {                                                                                              \
        T r = (T)((U)x - (U)quotient_##D(x, y) * (U)y);                                            \
        return y == 0 ? (T)0 : r;                                                                  \
    }                                                                                              \
    /* Was a negative quotient cut? For r != 0, `< 1` is `< 0`, and compiles for unsigned. */      \
    static inline bool is_between_##D(T r, T y)                                                    \
    {                                                                                              \
        return (r != 0) & (((r < 1) ^ (y < 1)) != 0);                                              \
    }                                                                                              \
    static inline T floordiv_##D(T x, T y)                                                         \
    {                                                                                              \
        return (T)((U)quotient_##D(x, y) - (U)is_between_##D(fmod_##D(x, y), y));                  \
    }                                                                                              \
    static inline T mod_##D(T x, T y)                                                              \
    {                                                                                              \
        T r = fmod_##D(x, y);                                                                      \
        return (T)((U)r + (is_between_##D(r, y) ? (U)y : (U)0));                                   \
    }
PL_INTEGERS(DEFINE_INTEGER_DIVISION, , )

/* Computes by squaring. A negative exponent gives a fraction, which is dropped, unless x is 1 or
 * -1. */
#define DEFINE_POWER(op, E, D, T, U)                                                               \
    static T pow_##D(T x, T y)                                                                     \
    {                                                                                              \
        if (y < 1 && y != 0)                                                                       \
            return (T)(x == 1 ? 1 : x != (T)(-1) ? 0 : (U)y % 2 ? -1 : 1);                         \
        U power = 1, square = (U)x;                                                                \
        for (U left = (U)y; left > 0; left >>= 1, square *= square)                                \
            if (left & 1)                                                                          \
                power *= square;                                                                   \
        return (T)power;                                                                           \
    }
PL_INTEGERS(DEFINE_POWER, , )

/* fmod of floats is exact. So is x - q * y, fused, if q is the truncated quotient or one more: its
 * magnitude is then at most |y|. It is one more if x / y was rounded up to it, and the remainder
 * then has the wrong sign. This requires that x / y fits the significand with room to spare; the
 * library computes the rest, bit by bit. */
#ifdef __FMA__
#define IS_EASY(x, y, F, limit, inf) ((F(x) < F(y) * (limit)) & (F(y) < (inf)))
#else
#define IS_EASY(x, y, F, limit, inf) false
#endif

/* mod_of and floordiv_of finish what fmod began, as NumPy's npy_divmod() does. */
#define DEFINE_FLOAT_DIVISION(D, T, f, limit)                                                      \
    static inline bool is_easy_##D(T x, T y)                                                       \
    {                                                                                              \
        (void)x, (void)y;                                                                          \
        return IS_EASY(x, y, __builtin_fabs##f, limit, __builtin_inf##f());                        \
    }                                                                                              \
    static inline bool are_apart_##D(T x, T y) /* by zero: one below, one above */                 \
    {                                                                                              \
        return ((x < 0) & (y > 0)) | ((x > 0) & (y < 0));                                          \
    }                                                                                              \
    static inline T fmod_easy_##D(T x, T y)                                                        \
    {                                                                                              \
        T r = __builtin_fma##f(-__builtin_trunc##f(x / y), y, x);                                  \
        T size = __builtin_fabs##f(y);                                                             \
        T fixed = r + __builtin_copysign##f(size, x);                                              \
        r = are_apart_##D(x, r) ? fixed : r;                                                       \
        return __builtin_copysign##f(r, x);                                                        \
    }                                                                                              \
    static inline T fmod_general_##D(T x, T y)                                                     \
    {                                                                                              \
        return fmod##f(x, y);                                                                      \
    }                                                                                              \
    static inline T mod_of_##D(T y, T r)                                                           \
    {                                                                                              \
        T other = r + y, shifted = are_apart_##D(y, r) ? other : r;                                \
        return r != 0 ? shifted : __builtin_copysign##f(0, y);                                     \
    }                                                                                              \
    static inline T floordiv_of_##D(T x, T y, T r)                                                 \
    {                                                                                              \
        T q = (x - r) / y;                                                                         \
        q -= are_apart_##D(y, r) ? (T)1 : (T)0;                                                    \
        T whole = __builtin_floor##f(q);                                                           \
        whole += q - whole > (T)0.5 ? (T)1 : (T)0;                                                 \
        return q != 0 ? whole : __builtin_copysign##f(0, x / y);                                   \
    }                                                                                              \
    static inline T mod_easy_##D(T x, T y)                                                         \
    {                                                                                              \
        return mod_of_##D(y, fmod_easy_##D(x, y));                                                 \
    }                                                                                              \
    static inline T mod_general_##D(T x, T y)                                                      \
    {                                                                                              \
        T r = fmod##f(x, y);                                                                       \
        return y == 0 ? r : mod_of_##D(y, r);                                                      \
    }                                                                                              \
    static inline T floordiv_easy_##D(T x, T y)                                                    \
    {                                                                                              \
        return floordiv_of_##D(x, y, fmod_easy_##D(x, y));                                         \
    }                                                                                              \
    static inline T floordiv_general_##D(T x, T y)                                                 \
    {                                                                                              \
        return y == 0 ? x / y : floordiv_of_##D(x, y, fmod##f(x, y));                              \
    }
DEFINE_FLOAT_DIVISION(F32, float, f, 0x1p22f)
DEFINE_FLOAT_DIVISION(F64, double, , 0x1p51)

PL_DEFINE_GUARDED(fmod, F32, float, uint32_t, is_easy_F32, fmod_easy_F32, fmod_general_F32)
PL_DEFINE_GUARDED(fmod, F64, double, uint64_t, is_easy_F64, fmod_easy_F64, fmod_general_F64)
PL_DEFINE_GUARDED(mod, F32, float, uint32_t, is_easy_F32, mod_easy_F32, mod_general_F32)
PL_DEFINE_GUARDED(mod, F64, double, uint64_t, is_easy_F64, mod_easy_F64, mod_general_F64)
PL_DEFINE_GUARDED(floordiv, F32, float, uint32_t, is_easy_F32, floordiv_easy_F32,
                  floordiv_general_F32)
PL_DEFINE_GUARDED(floordiv, F64, double, uint64_t, is_easy_F64, floordiv_easy_F64,
                  floordiv_general_F64)

/* The versions of clang-format disagree about _Generic. */
/* clang-format off */
#define OF_TYPE(function, T, x, y)                                                                 \
    _Generic((T)0,                                                                                 \
             uint8_t: function##_U8, int8_t: function##_I8,                                        \
             uint16_t: function##_U16, int16_t: function##_I16,                                    \
             uint32_t: function##_U32, int32_t: function##_I32,                                    \
             uint64_t: function##_U64, int64_t: function##_I64)(x, y)
/* clang-format on */
#define INTEGER_FLOORDIV(T, U, x, y) OF_TYPE(floordiv, T, x, y)
#define INTEGER_MOD(T, U, x, y)      OF_TYPE(mod, T, x, y)
#define INTEGER_FMOD(T, U, x, y)     OF_TYPE(fmod, T, x, y)
#define INTEGER_POW(T, U, x, y)      OF_TYPE(pow, T, x, y)

#define INTEGER_ROWS(BINARY)                                                                       \
    PL_INTEGERS(BINARY, floordiv, INTEGER_FLOORDIV)                                                \
    PL_INTEGERS(BINARY, mod, INTEGER_MOD)                                                          \
    PL_INTEGERS(BINARY, fmod, INTEGER_FMOD)                                                        \
    PL_INTEGERS(BINARY, pow, INTEGER_POW)
#define ROWS(BINARY, ...)                                                                          \
    INTEGER_ROWS(BINARY)                                                                           \
    PL_FLOATS(BINARY, floordiv, )                                                                  \
    PL_FLOATS(BINARY, mod, )                                                                       \
    PL_FLOATS(BINARY, fmod, )

INTEGER_ROWS(PL_DEFINE_BINARY)
PL_DEFINE_GROUP(pl_elementwise_division, ROWS)
