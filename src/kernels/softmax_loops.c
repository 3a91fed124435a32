/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of softmax. Compiled once per instruction set: see strip.h. The compiler makes vectors
 * of them, as nothing but the sum depends on an order. */
#include "kernels/softmax_loops.h"
#include "kernels/scalar_math.h"
#include "kernels/strip.h"

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
    static void exp_by_##suffix(const T *in, T *out, int64_t n, const double *centre,              \
                                const double *by)                                                  \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = (T)((double)EXP(in[i] - (T)centre[i]) * by[i]);                               \
    }                                                                                              \
    static void log_by_##suffix(const T *in, T *out, int64_t n, const double *centre,              \
                                const double *by)                                                  \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = (T)(((double)in[i] - centre[i]) - by[i]);                                     \
    }

DEFINE(f32, float, exp_f32)
DEFINE(f64, double, exp_f64)

const pl_softmax_loops PL_OF_ISA(pl_softmax_loops) = {
    exp_row_f32, exp_row_f64, scale_f32, scale_f64, exp_by_f32, exp_by_f64, log_by_f32, log_by_f64,
};
