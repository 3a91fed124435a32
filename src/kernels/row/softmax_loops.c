/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of softmax. Compiled once per instruction set: see strip.h. The compiler can vectorize
 * them, because only the sum depends on an order. */
#include "kernels/row/softmax_loops.h"
#include "kernels/elementwise/scalar_math.h"
#include "kernels/strip.h"

#define IN_ROW(T, tile, r)  ((const T *)((const char *)(tile)->in + (r) * (tile)->in_row_bytes))
#define OUT_ROW(T, tile, r) ((T *)((char *)(tile)->out + (r) * (tile)->out_row_bytes))

/* Rows whose exponentials are added before they go to the sums. */
enum { SUM_ROWS = 32 };

#define DEFINE(suffix, T, EXP)                                                                     \
    static double exp_row_##suffix(const T *in, T *out, int64_t n, T centre)                       \
    {                                                                                              \
        double sums[8] = {0};                                                                      \
        int64_t i = 0;                                                                             \
        for (int64_t k = 0; k < n; k++)                                                            \
            out[k] = EXP(in[k] - centre);                                                          \
        for (; i + 8 <= n; i += 8)                                                                 \
            for (int lane = 0; lane < 8; lane++)                                                   \
                sums[lane] += (double)out[i + lane];                                               \
        for (; i < n; i++)                                                                         \
            sums[0] += (double)out[i];                                                             \
        return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +                                       \
               ((sums[4] + sums[5]) + (sums[6] + sums[7]));                                        \
    }                                                                                              \
    static void scale_##suffix(T *x, int64_t n, double factor)                                     \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            x[i] = (T)((double)x[i] * factor);                                                     \
    }                                                                                              \
    static void exp_columns_##suffix(const pl_softmax_tile *tile, int64_t from, int64_t n,         \
                                     const void *centres, double *sums)                            \
    {                                                                                              \
        const T *centre = centres;                                                                 \
        double few[SOFTMAX_COLUMNS] = {0};                                                         \
        for (int64_t r = 0; r < tile->n_rows; r++) {                                               \
            const T *in = IN_ROW(T, tile, r) + from;                                               \
            T *out = OUT_ROW(T, tile, r) + from;                                                   \
            PL_EACH(i, (size_t)n)                                                                  \
            out[i] = EXP(in[i] - centre[i]);                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                few[i] += (double)out[i];                                                          \
            if (r % SUM_ROWS != SUM_ROWS - 1 && r < tile->n_rows - 1)                              \
                continue;                                                                          \
            for (int64_t i = 0; i < n; i++) {                                                      \
                sums[i] += few[i];                                                                 \
                few[i] = 0;                                                                        \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void scale_columns_##suffix(const pl_softmax_tile *tile, int64_t from, int64_t n,       \
                                       const double *factors)                                      \
    {                                                                                              \
        for (int64_t r = 0; r < tile->n_rows; r++) {                                               \
            T *out = OUT_ROW(T, tile, r) + from;                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                out[i] = (T)((double)out[i] * factors[i]);                                         \
        }                                                                                          \
    }                                                                                              \
    static void exp_by_##suffix(const T *in, T *out, int64_t n, const T *centre, const double *by) \
    {                                                                                              \
        PL_EACH(i, (size_t)n)                                                                      \
        out[i] = (T)((double)EXP(in[i] - centre[i]) * by[i]);                                      \
    }                                                                                              \
    static void log_by_##suffix(const T *in, T *out, int64_t n, const T *centre, const double *by) \
    {                                                                                              \
        PL_EACH(i, (size_t)n)                                                                      \
        out[i] = (T)(((double)in[i] - (double)centre[i]) - by[i]);                                 \
    }                                                                                              \
    static void softmax_by_##suffix(bool log, const pl_softmax_tile *tile, int64_t from,           \
                                    int64_t n, const void *centre, const double *by)               \
    {                                                                                              \
        for (int64_t r = 0; r < tile->n_rows; r++) {                                               \
            const T *in = IN_ROW(T, tile, r) + from;                                               \
            T *out = OUT_ROW(T, tile, r) + from;                                                   \
            if (log)                                                                               \
                log_by_##suffix(in, out, n, centre, by);                                           \
            else                                                                                   \
                exp_by_##suffix(in, out, n, centre, by);                                           \
        }                                                                                          \
    }

DEFINE(f32, float, exp_f32)
DEFINE(f64, double, exp_f64)

const pl_softmax_loops PL_OF_ISA(pl_softmax_loops) = {
    exp_row_f32,    exp_row_f64,     scale_f32,       scale_f64,         softmax_by_f32,
    softmax_by_f64, exp_columns_f32, exp_columns_f64, scale_columns_f32, scale_columns_f64,
};
