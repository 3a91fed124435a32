/* SPDX-License-Identifier: Apache-2.0 */
/* Between softmax.c and the builds of softmax_loops.c: see isa_table.h. */
#ifndef PL_KERNELS_SOFTMAX_LOOPS_H
#define PL_KERNELS_SOFTMAX_LOOPS_H

#include "kernels/softmax.h"

typedef struct pl_softmax_loops {
    /* out[i] = exp(in[i] - centre), and their sum. No in[i] is over the centre. */
    double (*exp_f32)(const float *in, float *out, int64_t n, float centre);
    double (*exp_f64)(const double *in, double *out, int64_t n, double centre);
    /* x[i] *= factor */
    void (*scale_f32)(float *x, int64_t n, double factor);
    void (*scale_f64)(double *x, int64_t n, double factor);
    /* out[i] = exp(in[i] - centre[i]) * by[i] */
    void (*exp_by_f32)(const float *in, float *out, int64_t n, const double *centre,
                       const double *by);
    void (*exp_by_f64)(const double *in, double *out, int64_t n, const double *centre,
                       const double *by);
    /* out[i] = (in[i] - centre[i]) - by[i] */
    void (*log_by_f32)(const float *in, float *out, int64_t n, const double *centre,
                       const double *by);
    void (*log_by_f64)(const double *in, double *out, int64_t n, const double *centre,
                       const double *by);
} pl_softmax_loops;

extern const pl_softmax_loops pl_softmax_loops_plain, pl_softmax_loops_avx2;

#endif
