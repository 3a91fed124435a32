/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several processes this one is, by the environment that a launcher gave it: torchrun,
 * Open MPI, what speaks PMI (MPICH, Intel MPI), Slurm. */
#ifndef PL_DATA_STAGE_LAUNCHER_H
#define PL_DATA_STAGE_LAUNCHER_H

#include "base/base.h"

/* 0 of 1 without a launcher. -EINVAL for one that says half, or nonsense, with the variable. */
PL_MUST_CHECK int pl_launcher_place(int64_t *ret_n, int64_t *ret_index, pl_error *reterr);

#endif
