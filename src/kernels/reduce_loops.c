/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of reductions over elements. Compiled once per instruction set: see strip.h. The loops
 * themselves are in reduce_typed.inc, included for each type. */
#include <assert.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/reduce_loops.h"
#include "kernels/scalar_math.h"
#include "kernels/strip.h"

/* Elements of a row that are summed before rounding errors are kept, or compared before it is asked
 * where the largest is: in the first-level cache, and few enough for the bound in reduce.h. */
#define BLOCK 512

/* Columns whose partials stay in the second-level cache while rows go by: narrower, and the rows'
 * parts lie too far apart for the processor to fetch them ahead (half the speed, measured). */
#define WIDE_CHUNK 4096

/* Columns that are worked on in arrays on the stack, and rows that are looked at twice. */
#define CHUNK      256
#define BLOCK_ROWS 32

/* Elements of a row that are compared before it is asked where the best is. */
#define SEARCH_BLOCK 1024

/* 32 lanes, in as many vectors as the processor needs for them. */
#if defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define F64_LANES ((int)(VECTOR_BYTES / sizeof(double)))
#define N_VECTORS (32 / F64_LANES)

typedef double f64v __attribute__((vector_size(VECTOR_BYTES)));
typedef float f32v __attribute__((vector_size(VECTOR_BYTES)));
typedef int64_t i64v __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t i32v __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t u64v __attribute__((vector_size(VECTOR_BYTES)));

static inline __attribute__((always_inline)) f64v load_f32(const float *x)
{
#if defined(__AVX__)
    return _mm256_cvtps_pd(_mm_loadu_ps(x)); /* gcc 12 makes more of __builtin_convertvector() */
#elif defined(__SSE2__)
    return _mm_cvtps_pd(_mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)x));
#else
    return (f64v){(double)x[0], (double)x[1]};
#endif
}

static inline __attribute__((always_inline)) f64v load_f64(const double *x)
{
    f64v vector;
    memcpy(&vector, x, sizeof vector);
    return vector;
}

/* next > best ? next : best, and the same for <, lane by lane: so a NaN in `next` is passed over.
 */
#define DEFINE_EXTREME(name, vector, mask, beats)                                                  \
    static inline __attribute__((always_inline)) vector name(vector next, vector best)             \
    {                                                                                              \
        mask take = next beats best;                                                               \
        return (vector)((take & (mask)next) | (~take & (mask)best));                               \
    }
DEFINE_EXTREME(vector_max_i64, i64v, i64v, >)
DEFINE_EXTREME(vector_min_i64, i64v, i64v, <)
DEFINE_EXTREME(vector_max_u64, u64v, u64v, >)
DEFINE_EXTREME(vector_min_u64, u64v, u64v, <)
#if defined(__AVX__) || defined(__SSE2__)
#if defined(__AVX__)
#define INTRINSIC(name) _mm256_##name
#else
#define INTRINSIC(name) _mm_##name
#endif
#define DEFINE_INTRINSIC(name, vector, intrinsic)                                                  \
    static inline __attribute__((always_inline)) vector name(vector next, vector best)             \
    {                                                                                              \
        return INTRINSIC(intrinsic)(next, best);                                                   \
    }
DEFINE_INTRINSIC(vector_max_f32, f32v, max_ps)
DEFINE_INTRINSIC(vector_min_f32, f32v, min_ps)
DEFINE_INTRINSIC(vector_max_f64, f64v, max_pd)
DEFINE_INTRINSIC(vector_min_f64, f64v, min_pd)
#else
DEFINE_EXTREME(vector_max_f32, f32v, i32v, >)
DEFINE_EXTREME(vector_min_f32, f32v, i32v, <)
DEFINE_EXTREME(vector_max_f64, f64v, i64v, >)
DEFINE_EXTREME(vector_min_f64, f64v, i64v, <)
#endif

/* Always the same tree of 32 leaves, whatever the vectors. The vectors are used up. */
static inline double sum_of_vectors(f64v vector[])
{
    double leaf[4];
    for (int width = N_VECTORS / 2; width * F64_LANES >= 4; width /= 2)
        for (int i = 0; i < width; i++)
            vector[i] += vector[i + width];
    memcpy(leaf, vector, sizeof leaf);
    return (leaf[0] + leaf[1]) + (leaf[2] + leaf[3]);
}

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#define FN(name) PL_ISA_NAME(name, SUFFIX)

#define T        uint8_t
#define FLAG_T   uint8_t
#define SUFFIX   u8
#define BLOCK_T  uint32_t
#define NARROW_T int32_t
#include "kernels/reduce_typed.inc"
#define T        int8_t
#define FLAG_T   uint8_t
#define SUFFIX   i8
#define BLOCK_T  int32_t
#define NARROW_T int32_t
#include "kernels/reduce_typed.inc"
#define T        uint16_t
#define FLAG_T   uint16_t
#define SUFFIX   u16
#define BLOCK_T  uint32_t
#define NARROW_T int32_t
#include "kernels/reduce_typed.inc"
#define T        int16_t
#define FLAG_T   uint16_t
#define SUFFIX   i16
#define BLOCK_T  int32_t
#define NARROW_T int32_t
#include "kernels/reduce_typed.inc"
#define T        uint32_t
#define FLAG_T   uint32_t
#define SUFFIX   u32
#define BLOCK_T  uint64_t
#define NARROW_T int32_t
#include "kernels/reduce_typed.inc"
#define T        int32_t
#define FLAG_T   uint32_t
#define SUFFIX   i32
#define BLOCK_T  int64_t
#define NARROW_T int32_t
#include "kernels/reduce_typed.inc"
#define T        uint64_t
#define FLAG_T   uint64_t
#define SUFFIX   u64
#define VECTOR   u64v
#define MASK     u64v
#define NARROW_T int64_t
#include "kernels/reduce_typed.inc"
#define T        int64_t
#define FLAG_T   uint64_t
#define SUFFIX   i64
#define VECTOR   i64v
#define MASK     i64v
#define NARROW_T int64_t
#include "kernels/reduce_typed.inc"
#define T        float
#define FLAG_T   uint32_t
#define SUFFIX   f32
#define VECTOR   f32v
#define MASK     i32v
#define NARROW_T int32_t
#define EXP      exp_f32
#include "kernels/reduce_typed.inc"
#define T        double
#define FLAG_T   uint64_t
#define SUFFIX   f64
#define VECTOR   f64v
#define MASK     i64v
#define NARROW_T int64_t
#define EXP      exp_f64
#include "kernels/reduce_typed.inc"

#define ROW(op, name, way)                                                                         \
    [op] = {[PL_BOOL] = way##_##name##_u8, [PL_U8] = way##_##name##_u8,                            \
            [PL_I8] = way##_##name##_i8,   [PL_U16] = way##_##name##_u16,                          \
            [PL_I16] = way##_##name##_i16, [PL_U32] = way##_##name##_u32,                          \
            [PL_I32] = way##_##name##_i32, [PL_U64] = way##_##name##_u64,                          \
            [PL_I64] = way##_##name##_i64, [PL_F32] = way##_##name##_f32,                          \
            [PL_F64] = way##_##name##_f64}
#define TABLE(way)                                                                                 \
    {                                                                                              \
        ROW(PL_REDUCE_SUM, sum, way), ROW(PL_REDUCE_MEAN, mean, way),                              \
            ROW(PL_REDUCE_PROD, prod, way), ROW(PL_REDUCE_MAX, max, way),                          \
            ROW(PL_REDUCE_MIN, min, way), ROW(PL_REDUCE_ANY, any, way),                            \
            ROW(PL_REDUCE_ALL, all, way), ROW(PL_REDUCE_ARGMAX, argmax, way),                      \
            ROW(PL_REDUCE_ARGMIN, argmin, way),                                                    \
            [PL_REDUCE_LOGSUMEXP] =                                                                \
                {[PL_F32] = way##_logsumexp_f32, [PL_F64] = way##_logsumexp_f64},                  \
            ROW(PL_REDUCE_VARIANCE, variance, way)                                                 \
    }

const pl_reduce_loops PL_OF_ISA(pl_reduce_loops) = {.rows = TABLE(rows), .columns = TABLE(columns)};
