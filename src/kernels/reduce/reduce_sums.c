/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of sums, means and products: see reduce_vectors.h. */
#include "kernels/reduce/reduce_vectors.h"

#define PART "kernels/reduce/reduce_sums.inc"
#include "kernels/reduce/reduce_types.inc"

const pl_reduce_loops PL_OF_ISA(pl_reduce_sums) = {
    .rows = {LOOPS_OF_ALL(PL_REDUCE_SUM, sum, rows), LOOPS_OF_ALL(PL_REDUCE_MEAN, mean, rows),
             LOOPS_OF_ALL(PL_REDUCE_PROD, prod, rows)},
    .columns = {LOOPS_OF_ALL(PL_REDUCE_SUM, sum, columns),
                LOOPS_OF_ALL(PL_REDUCE_MEAN, mean, columns),
                LOOPS_OF_ALL(PL_REDUCE_PROD, prod, columns)},
};
