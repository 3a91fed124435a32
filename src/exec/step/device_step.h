/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: how they are described to the planner, and steps that run there.
 *
 * The thread of the run executes its steps. Runs side by side wait for each other to release device
 * memory (device/room.h), but never while they hold some themselves. */
#ifndef PL_EXEC_STEP_DEVICE_STEP_H
#define PL_EXEC_STEP_DEVICE_STEP_H

#include "exec/step/run.h"

/* Adds the runtime's devices to the request, if the graph places nodes. The caller frees
 * *ret_devices when the plan is made. Fails with -ENOMEM. */
PL_MUST_CHECK int pl_request_devices(pl_runtime *runtime, pl_plan_request *request,
                                     pl_plan_device **ret_devices, pl_error *reterr);

/* Reports what is computed elsewhere than where it was placed. */
void pl_plan_tell_fallbacks(pl_runtime *runtime, const pl_plan *plan);

/* Runs a step of kind PL_STEP_DEVICE, in its scratch. The run owns what the step claims there, and
 * what stays there. */
PL_MUST_CHECK int pl_run_device(pl_run *run, const pl_step *step, char *scratch, pl_error *reterr);

/* Frees the device memory of a value, if it is one that stays on a device. */
void pl_run_leave_device(pl_live_value *value);

/* Releases all that a run has on a device. */
void pl_run_release_device(pl_run *run);

#endif
