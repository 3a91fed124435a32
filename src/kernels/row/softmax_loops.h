/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by softmax.c and the builds of softmax_loops.c: see isa_table.h. */
#ifndef PL_KERNELS_ROW_SOFTMAX_LOOPS_H
#define PL_KERNELS_ROW_SOFTMAX_LOOPS_H

#include "kernels/row/softmax.h"

/* Columns that are computed together: their data is on the stack. */
enum { SOFTMAX_COLUMNS = 256 };

typedef struct pl_softmax_loops {
    /* out[i] = exp(in[i] - centre), and their sum. No in[i] is above the centre. */
    double (*exp_f32)(const float *in, float *out, int64_t n, float centre);
    double (*exp_f64)(const double *in, double *out, int64_t n, double centre);
    /* x[i] *= factor */
    void (*scale_f32)(float *x, int64_t n, double factor);
    void (*scale_f64)(double *x, int64_t n, double factor);
    /* Columns [from, from + n) of the tile: out = exp(in - centre) * by, or, `log`,
     * (in - centre) - by. `centre` is of the tile's dtype. */
    void (*by_f32)(bool log, const pl_softmax_tile *tile, int64_t from, int64_t n,
                   const void *centre, const double *by);
    void (*by_f64)(bool log, const pl_softmax_tile *tile, int64_t from, int64_t n,
                   const void *centre, const double *by);
    /* Columns [from, from + n) of the tile, at most SOFTMAX_COLUMNS: out = exp(in - centre), added
     * to their sums, which the caller initializes. */
    void (*exp_columns_f32)(const pl_softmax_tile *tile, int64_t from, int64_t n,
                            const void *centre, double *sums);
    void (*exp_columns_f64)(const pl_softmax_tile *tile, int64_t from, int64_t n,
                            const void *centre, double *sums);
    /* out *= factor */
    void (*scale_columns_f32)(const pl_softmax_tile *tile, int64_t from, int64_t n,
                              const double *factors);
    void (*scale_columns_f64)(const pl_softmax_tile *tile, int64_t from, int64_t n,
                              const double *factors);
} pl_softmax_loops;

extern const pl_softmax_loops pl_softmax_loops_plain, pl_softmax_loops_avx2;

#endif
