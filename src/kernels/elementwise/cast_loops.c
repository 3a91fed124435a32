/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between the dtypes that ops compute in, for one instruction set; cast.c has the
 * others. */
#include "kernels/elementwise/cast_loops.h"

#include "kernels/strip.h"

/* The result of the processor's conversion for values that do not fit: it is undefined in C, so
 * they are checked first. NaN is not inside any range. */
static inline int32_t whole_i32(double x)
{
    return ((x > -2147483649.0) & (x < 2147483648.0)) ? (int32_t)x : INT32_MIN;
}

static inline int32_t whole_i32_f32(float x)
{
    return ((x >= -2147483648.0f) & (x < 2147483648.0f)) ? (int32_t)x : INT32_MIN;
}

static inline int64_t whole_i64(double x)
{
    return ((x >= -0x1p63) & (x < 0x1p63)) ? (int64_t)x : INT64_MIN;
}

static inline uint64_t whole_u64(double x)
{
    return x >= 0x1p63 ? (uint64_t)whole_i64(x - 0x1p63) ^ UINT64_C(1) << 63
                       : (uint64_t)whole_i64(x);
}

#define BY_C(T, x)       ((T)(x))
#define BY_TRUTH(T, x)   ((T)((x) != 0))
#define BY_I32(T, x)     ((T)whole_i32(x))
#define BY_I32_F32(T, x) ((T)whole_i32_f32(x))
#define BY_I64(T, x)     ((T)whole_i64(x))
#define BY_U64(T, x)     ((T)whole_u64(x))

#define DEFINE_CAST(FROM, F, TO, T, E)                                                             \
    static void FROM##_to_##TO(void *out_, const void *in_, size_t n)                              \
    {                                                                                              \
        T *out = out_;                                                                             \
        const F *in = in_;                                                                         \
        PL_EACH(i, n) out[i] = E(T, in[i]);                                                        \
    }

/* Integers of one size are the same bytes, whatever their sign: cast.c copies those. */
#define FROM_INTEGER(X, FROM, F)                                                                   \
    X(FROM, F, BOOL, uint8_t, BY_TRUTH)                                                            \
    X(FROM, F, U8, uint8_t, BY_C)                                                                  \
    X(FROM, F, I8, int8_t, BY_C)                                                                   \
    X(FROM, F, U16, uint16_t, BY_C)                                                                \
    X(FROM, F, I16, int16_t, BY_C)                                                                 \
    X(FROM, F, U32, uint32_t, BY_C)                                                                \
    X(FROM, F, I32, int32_t, BY_C)                                                                 \
    X(FROM, F, U64, uint64_t, BY_C)                                                                \
    X(FROM, F, I64, int64_t, BY_C)                                                                 \
    X(FROM, F, F32, float, BY_C)                                                                   \
    X(FROM, F, F64, double, BY_C)

#define FROM_FLOAT(X, FROM, F, SMALL)                                                              \
    X(FROM, F, BOOL, uint8_t, BY_TRUTH)                                                            \
    X(FROM, F, U8, uint8_t, SMALL)                                                                 \
    X(FROM, F, I8, int8_t, SMALL)                                                                  \
    X(FROM, F, U16, uint16_t, SMALL)                                                               \
    X(FROM, F, I16, int16_t, SMALL)                                                                \
    X(FROM, F, U32, uint32_t, BY_I64)                                                              \
    X(FROM, F, I32, int32_t, SMALL)                                                                \
    X(FROM, F, U64, uint64_t, BY_U64)                                                              \
    X(FROM, F, I64, int64_t, BY_I64)                                                               \
    X(FROM, F, F32, float, BY_C)                                                                   \
    X(FROM, F, F64, double, BY_C)

#define ROWS(X)                                                                                    \
    FROM_INTEGER(X, BOOL, uint8_t)                                                                 \
    FROM_INTEGER(X, U8, uint8_t)                                                                   \
    FROM_INTEGER(X, I8, int8_t)                                                                    \
    FROM_INTEGER(X, U16, uint16_t)                                                                 \
    FROM_INTEGER(X, I16, int16_t)                                                                  \
    FROM_INTEGER(X, U32, uint32_t)                                                                 \
    FROM_INTEGER(X, I32, int32_t)                                                                  \
    FROM_INTEGER(X, U64, uint64_t)                                                                 \
    FROM_INTEGER(X, I64, int64_t)                                                                  \
    FROM_FLOAT(X, F32, float, BY_I32_F32)                                                          \
    FROM_FLOAT(X, F64, double, BY_I32)

ROWS(DEFINE_CAST)

#define CASE_KEY(from, to) ((unsigned)(from) << 4 | (unsigned)(to))
#define CASE(FROM, F, TO, T, E)                                                                    \
    case CASE_KEY(PL_##FROM, PL_##TO):                                                             \
        return FROM##_to_##TO;

pl_cast_kernel PL_OF_ISA(pl_cast_loop)(pl_dtype from, pl_dtype to)
{
    switch (CASE_KEY(from, to)) {
        ROWS(CASE)
    default:
        return NULL;
    }
}

/* Rounds to the nearest f32 whose last bit is odd, unless one is equal. Rounded again, to a format
 * at least two bits shorter, this gives what rounding the f64 once would give. */
void PL_OF_ISA(pl_cast_f64_to_odd_f32)(float *out, const double *in, size_t n)
{
    PL_EACH(i, n)
    {
        union {
            float value;
            uint32_t bits;
        } odd = {.value = (float)in[i]};
        double back = (double)odd.value;
        bool is_larger = __builtin_fabs(back) > __builtin_fabs(in[i]);
        bool is_inexact = (back != in[i]) & (in[i] == in[i]);
        odd.bits -= is_larger ? 1 : 0;
        odd.bits |= is_inexact ? 1 : 0;
        out[i] = odd.value;
    }
}
