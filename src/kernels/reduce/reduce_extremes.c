/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of extremes and their places: see reduce_vectors.h. */
#include <assert.h>

#include "kernels/reduce/reduce_vectors.h"

#define PART "kernels/reduce/reduce_extremes.inc"
#include "kernels/reduce/reduce_types.inc"

const pl_reduce_loops PL_OF_ISA(pl_reduce_extremes) = {
    .rows = {LOOPS_OF_ALL(PL_REDUCE_MAX, max, rows), LOOPS_OF_ALL(PL_REDUCE_MIN, min, rows),
             LOOPS_OF_ALL(PL_REDUCE_ARGMAX, argmax, rows),
             LOOPS_OF_ALL(PL_REDUCE_ARGMIN, argmin, rows)},
    .columns = {LOOPS_OF_ALL(PL_REDUCE_MAX, max, columns),
                LOOPS_OF_ALL(PL_REDUCE_MIN, min, columns),
                LOOPS_OF_ALL(PL_REDUCE_ARGMAX, argmax, columns),
                LOOPS_OF_ALL(PL_REDUCE_ARGMIN, argmin, columns)},
};
