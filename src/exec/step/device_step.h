/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: how they are described to the planner, and steps that run there.
 *
 * Steps are run by the thread of their run; runs side by side wait for each other's room on a
 * device (device/room.h), never while they have some of it. */
#ifndef PL_EXEC_STEP_DEVICE_STEP_H
#define PL_EXEC_STEP_DEVICE_STEP_H

#include "exec/step/run.h"

/* Adds the runtime's devices to the request, if the graph places nodes; *ret_devices is to be freed
 * when the plan is made. -ENOMEM. */
PL_MUST_CHECK int pl_request_devices(pl_runtime *runtime, pl_plan_request *request,
                                     pl_plan_device **ret_devices, pl_error *reterr);

/* Tells what is computed elsewhere than it was placed. */
void pl_plan_tell_fallbacks(pl_runtime *runtime, const pl_plan *plan);

/* A step of kind PL_STEP_DEVICE, in its scratch. What it claims there, and what stays there, is the
 * run's from then on. */
PL_MUST_CHECK int pl_run_device(pl_run *run, const pl_step *step, char *scratch, pl_error *reterr);

/* Of a value that stays on a device, if it is one. */
void pl_run_leave_device(pl_live_value *value);

/* Lets go of all that a run has on a device. */
void pl_run_release_device(pl_run *run);

#endif
