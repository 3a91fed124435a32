/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files with the loops of reductions: reduce_sums.c, reduce_extremes.c,
 * reduce_flags.c and reduce_moments.c, each compiled once per instruction set (see strip.h). Their
 * loops are in .inc files of the same names, which reduce_types.inc includes for each type. */
#ifndef PL_KERNELS_REDUCE_REDUCE_VECTORS_H
#define PL_KERNELS_REDUCE_REDUCE_VECTORS_H

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/reduce/reduce_loops.h"
#include "kernels/strip.h"

/* Elements of a row that are summed before rounding errors are kept, or compared before looking for
 * the largest: they fit the first-level cache, and are few enough for the bound in reduce.h. */
#define BLOCK 512

/* Columns whose partials stay in the second-level cache while rows go by. */
#define WIDE_CHUNK 4096

/* Columns of floats are added four rows at a time; this many rows before rounding errors are kept,
 * in sums that stay in the first-level cache. */
#define SUM_ROWS  32
#define SUM_CHUNK 2048

/* Four rows at once are four streams, which the processor does not prefetch by itself unless they
 * are long. So each line of them is prefetched this many bytes ahead, into the second-level cache:
 * up to three times as fast. Prefetching nearer, into the first level, or many lines at once was
 * slower; a missed line, as at the end of a row, costs all that was gained. Rows shorter than
 * FOUND_BYTES together form one stream. */
#define AHEAD_BYTES 32768
#define FOUND_BYTES 256
#define LINE_BYTES  64

/* Along rows there is one stream, but the processor prefetches only up to the end of a page. So
 * each line is prefetched a page ahead: a quarter less time with two threads. Half the distance
 * lost most of it, four times the distance gained nothing. Not for the strips of a chain, which are
 * short, and cached already. ASKED_BYTES: prefetched at once, in loops that the compiler
 * vectorizes. */
#define ROW_AHEAD_BYTES      4096
#define ROW_AHEAD_FROM_BYTES 32768
#define ASKED_BYTES          2048

/* Narrow integers are added in integers twice as wide: as many rows as these can hold, and columns
 * that stay in the first-level cache. */
#define SMALL_ROWS  256
#define SMALL_CHUNK 4096

/* Columns that are kept in arrays on the stack, and rows that are read twice. */
#define CHUNK      256
#define BLOCK_ROWS 32

/* Elements of a row that are compared before looking for the best one. */
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
    return _mm256_cvtps_pd(_mm_loadu_ps(x)); /* gcc 12 makes more of the builtin */
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

/* next > best ? next : best, and the same for <, lane by lane: so a NaN in `next` is ignored. */
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

/* The distance from four rows to those prefetched with them, `bytes` of each being used; 0:
 * none. */
static inline int64_t distance_ahead(const pl_reduce_tile *tile, int64_t bytes)
{
    return bytes < FOUND_BYTES ? 0 : (AHEAD_BYTES / bytes / 4 + 1) * 4 * tile->row_bytes;
}

/* The distance from an element of long, contiguous rows to the element prefetched with it. */
static inline int64_t distance_along(const pl_reduce_tile *tile, int64_t item_bytes)
{
    int64_t bytes = tile->n_columns * item_bytes;
    return bytes * tile->n_rows >= ROW_AHEAD_FROM_BYTES && tile->row_bytes == bytes
               ? ROW_AHEAD_BYTES
               : 0;
}

/* Prefetches a line of each of four rows, which may lie past the end. */
static inline __attribute__((always_inline)) void ask_for_four(const void *data, int64_t row_bytes,
                                                               int64_t distance)
{
    for (int64_t k = 0; k < 4; k++)
        __builtin_prefetch((const void *)((uintptr_t)data + (uintptr_t)(distance + k * row_bytes)),
                           0, 2);
}

/* Prefetches the rest after whole lines: as rows need not begin with a line, up to two. */
static inline __attribute__((always_inline)) void ask_for_ends(const void *data, int64_t bytes,
                                                               int64_t row_bytes, int64_t distance)
{
    if (distance == 0)
        return;
    ask_for_four(data, row_bytes, distance);
    ask_for_four((const char *)data + bytes - 1, row_bytes, distance);
}

/* Prefetches lines of a row at this distance, which may lie past the end; 0: none. */
static inline __attribute__((always_inline)) void ask_for_lines(const void *data, int64_t bytes,
                                                                int64_t distance)
{
    for (int64_t k = 0; distance != 0 && k < bytes; k += LINE_BYTES)
        __builtin_prefetch((const void *)((uintptr_t)data + (uintptr_t)(distance + k)), 0, 2);
}

/* Put before a loop to be vectorized: gcc would otherwise unroll a short one first, and then not
 * vectorize it. */
#ifdef __clang__
#define NOT_UNROLLED
#else
#define NOT_UNROLLED _Pragma("GCC unroll 1")
#endif

/* Runs its last argument for each column i < n of the rows a, b, c and d. */
#define FOR_COLUMNS_OF_FOUR(n, row_bytes, distance, ...)                                           \
    do {                                                                                           \
        const int64_t n_ = n, n_line_ = (int64_t)(LINE_BYTES / sizeof *a);                         \
        int64_t at_ = 0;                                                                           \
        for (; (distance) != 0 && at_ + n_line_ <= n_; at_ += n_line_) {                           \
            ask_for_four(a + at_, row_bytes, distance);                                            \
            NOT_UNROLLED for (int64_t i = at_; i < at_ + n_line_; i++) __VA_ARGS__;                \
        }                                                                                          \
        ask_for_ends(a + at_, (n_ - at_) * (int64_t)sizeof *a, row_bytes, distance);               \
        for (int64_t i = at_; i < n_; i++)                                                         \
            __VA_ARGS__;                                                                           \
    } while (0)

/* Always the same tree of 32 leaves, whatever the vector size. Overwrites the vectors. */
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

/* The loops over a tile, for one type of element: see reduce_types.inc. */
#define FN(name)        PL_ISA_NAME(name, SUFFIX)
#define ROW_OF(tile, r) ((const T *)((const char *)(tile)->data + (r) * (tile)->row_bytes))

/* A row of a table of loops: `way` is rows or columns. */
#define LOOPS_OF_ALL(op, name, way)                                                                \
    [op] = {[PL_BOOL] = way##_##name##_u8, [PL_U8] = way##_##name##_u8,                            \
            [PL_I8] = way##_##name##_i8,   [PL_U16] = way##_##name##_u16,                          \
            [PL_I16] = way##_##name##_i16, [PL_U32] = way##_##name##_u32,                          \
            [PL_I32] = way##_##name##_i32, [PL_U64] = way##_##name##_u64,                          \
            [PL_I64] = way##_##name##_i64, [PL_F32] = way##_##name##_f32,                          \
            [PL_F64] = way##_##name##_f64}

#endif
