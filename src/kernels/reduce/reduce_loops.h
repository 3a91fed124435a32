/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by reduce.c and the builds of reduce_sums.c, reduce_extremes.c, reduce_flags.c and
 * reduce_moments.c: see isa_table.h. Planes of a partial, each packed by its own type, 8 bytes per
 * output set aside:
 *
 *   sum, prod of integers   uint64_t
 *   sum of floats           double sum, double error
 *   mean                    double sum, double error, double count
 *   prod of floats          double
 *   max, min                element
 *   any, all                uint8_t
 *   argmax, argmin          element, int64_t index (-1: nothing yet)
 *   logsumexp               double max, double sum of exp(x - max)
 *   variance                double count, double mean, double sum of squared distances from it */
#ifndef PL_KERNELS_REDUCE_REDUCE_LOOPS_H
#define PL_KERNELS_REDUCE_REDUCE_LOOPS_H

#include <math.h>

#include "kernels/reduce/reduce.h"

#define PL_REDUCE_N_DTYPES (PL_F64 + 1)

/* planes[i] begins with the first output. Loops over columns do not update the counts of means. */
typedef void pl_reduce_loop(const pl_reduce_tile *tile, void *const planes[PL_REDUCE_PLANES]);

/* The loops of the reductions that a file has; NULL for others. */
typedef struct pl_reduce_loops {
    pl_reduce_loop *rows[PL_N_REDUCE_OPS][PL_REDUCE_N_DTYPES];
    pl_reduce_loop *columns[PL_N_REDUCE_OPS][PL_REDUCE_N_DTYPES];
} pl_reduce_loops;

extern const pl_reduce_loops pl_reduce_sums_plain, pl_reduce_sums_avx2, pl_reduce_extremes_plain,
    pl_reduce_extremes_avx2, pl_reduce_flags_plain, pl_reduce_flags_avx2, pl_reduce_moments_plain,
    pl_reduce_moments_avx2;

/* sum + error + value, where the error receives what the sum cannot hold (Knuth's two-sum). Once
 * the sum is infinite or NaN the error is NaN: pl_sum_total() then leaves it out. */
static inline void pl_sum_add(double *sum, double *error, double value)
{
    double total = *sum + value, part = total - *sum;
    *error += (*sum - (total - part)) + (value - part);
    *sum = total;
}

static inline double pl_sum_total(double sum, double error)
{
    double total = sum + error;
    return total == total ? total : sum;
}

/* Chan, Golub and LeVeque: merges count, mean and squares. */
static inline void pl_moments_add(double *count, double *mean, double *squares, double more,
                                  double more_mean, double more_squares)
{
    double total = *count + more, distance = more_mean - *mean;
    if (total == 0)
        return;
    /* An empty side has a mean of 0, which must not be combined with an infinity on the other
     * side. */
    if (*count == 0) {
        *mean = more_mean;
        *squares = more_squares;
    } else {
        *mean += distance * (more / total);
        *squares += more_squares + distance * distance * (*count * (more / total));
    }
    *count = total;
}

/* The larger maximum of both, and the sum of exp(x - that). If the maximum is infinite or NaN, the
 * result depends on it alone: its sum stays 0. */
static inline void pl_logsumexp_add(double *max, double *sum, double more_max, double more_sum)
{
    double both = *max > more_max || *max != *max ? *max : more_max;
    if (isfinite(both))
        *sum = (*sum != 0 ? *sum * exp(*max - both) : 0) +
               (more_sum != 0 ? more_sum * exp(more_max - both) : 0);
    else
        *sum = 0;
    *max = both;
}

#endif
