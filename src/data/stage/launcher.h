/* SPDX-License-Identifier: Apache-2.0 */
/* Finds which of several processes this one is, from the environment set by a launcher: torchrun,
 * Open MPI, launchers that use PMI (MPICH, Intel MPI), Slurm. */
#ifndef PL_DATA_STAGE_LAUNCHER_H
#define PL_DATA_STAGE_LAUNCHER_H

#include "base/base.h"

/* Returns 0 of 1 without a launcher. Fails with -EINVAL and the variable if its settings are
 * incomplete or invalid. */
PL_MUST_CHECK int pl_launcher_place(int64_t *ret_n, int64_t *ret_index, pl_error *reterr);

#endif
