/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of variances and of logarithms of sums of exponentials: see reduce_vectors.h. */
#include "kernels/elementwise/scalar_math.h"
#include "kernels/reduce/reduce_vectors.h"

#define PART "kernels/reduce/reduce_moments.inc"
#include "kernels/reduce/reduce_types.inc"

const pl_reduce_loops PL_OF_ISA(pl_reduce_moments) = {
    .rows =
        {LOOPS_OF_ALL(PL_REDUCE_VARIANCE, variance, rows),
         [PL_REDUCE_LOGSUMEXP] = {[PL_F32] = rows_logsumexp_f32, [PL_F64] = rows_logsumexp_f64}},
    .columns = {LOOPS_OF_ALL(PL_REDUCE_VARIANCE, variance, columns),
                [PL_REDUCE_LOGSUMEXP] =
                    {[PL_F32] = columns_logsumexp_f32, [PL_F64] = columns_logsumexp_f64}},
};
