/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of any and all: see reduce_vectors.h. */
#include "kernels/reduce/reduce_vectors.h"

#define FLAGS_BYTES 8192

#define PART "kernels/reduce/reduce_flags.inc"
#include "kernels/reduce/reduce_types.inc"

const pl_reduce_loops PL_OF_ISA(pl_reduce_flags) = {
    .rows = {LOOPS_OF_ALL(PL_REDUCE_ANY, any, rows), LOOPS_OF_ALL(PL_REDUCE_ALL, all, rows)},
    .columns = {LOOPS_OF_ALL(PL_REDUCE_ANY, any, columns),
                LOOPS_OF_ALL(PL_REDUCE_ALL, all, columns)},
};
