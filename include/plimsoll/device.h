/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: processors that compute, with their memory.
 *   device     "/CPU:0", which always exists, and "/GPU:0" and so on, one for each OpenCL device
 *   name       as TensorFlow writes it: "/GPU:0", "/device:GPU:0", "gpu:0", "GPU" and
 *              "/job:localhost/replica:0/task:0/device:GPU:0" all mean the same
 *   placed     a node made inside pl_graph_push_device() is to be computed on that device
 *   soft       if its device is missing, cannot run its op, or has no room for its smallest tile, a
 *              node is computed on the CPU, which is reported once; strict: the run is refused
 *   budget     the most memory that steps may use on a device at a time
 *
 *   in use <= budget at every instant
 *
 * Inputs, constants and views compute nothing, so placing them has no effect. No OpenCL library is
 * loaded before devices are listed, or a graph with nodes on a GPU is run or explained. Safe from
 * any thread. */
#ifndef PLIMSOLL_DEVICE_H
#define PLIMSOLL_DEVICE_H

#include "plimsoll/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pl_device_kind {
    PL_DEVICE_CPU,
    PL_DEVICE_GPU,
} pl_device_kind;

#define PL_DEVICE_NAME_BYTES 24 /* "/GPU:" and an int */

typedef struct pl_device_info {
    char name[PL_DEVICE_NAME_BYTES];
    pl_device_kind kind;
    char description[256];
    uint64_t memory_bytes; /* all that the device has */
    uint64_t budget_bytes; /* the part that we may use */
    uint64_t in_use_bytes; /* now */
    uint64_t peak_bytes;   /* the most in use so far */
} pl_device_info;

typedef struct pl_device_limit {
    const char *device;
    uint64_t bytes;
} pl_device_limit;

typedef struct pl_device_options {
    size_t size; /* sizeof this struct; 0: as in version 0.1; see libplimsoll(3) */
    bool strict; /* placement; else soft */
    /* Counts OpenCL devices that are CPUs as GPUs: 1: yes, -1: no, 0: if PLIMSOLL_OPENCL_CPU=1 is
     * set. */
    int opencl_cpu;
    /* GPUs to hide, by name; "GPU" without a number hides all. The numbers are those before hiding;
     * the rest are then renumbered. */
    const char *const *hidden;
    int n_hidden;
    /* Budgets. The default is seven eighths of the device's memory, and the most is all of it. The
     * CPU's budget is the runtime's. */
    const pl_device_limit *limits;
    int n_limits;
    /* May be NULL. Called when nodes are computed elsewhere than placed, from the thread that runs,
     * once per reason in the runtime's life. */
    void (*message)(void *context, const char *text);
    void *message_context;
} pl_device_options;

/* Sets options for all sessions of the runtime. Texts are copied. -EINVAL for an invalid name;
 * -EBUSY if devices have already been listed or used; -ENOMEM. */
PL_API PL_MUST_CHECK int pl_runtime_set_devices(pl_runtime *runtime,
                                                const pl_device_options *options, pl_error *reterr);

/* Changes placement for later plans, even if devices are in use; cached plans are unaffected.
 * -ENOMEM. */
PL_API PL_MUST_CHECK int pl_runtime_set_strict(pl_runtime *runtime, bool strict, pl_error *reterr);

/* Returns the number of devices, at least 1. Number 0 is /CPU:0. */
PL_API int pl_runtime_n_devices(pl_runtime *runtime);

/* Describes a device. -EINVAL if there is no such number. */
PL_API PL_MUST_CHECK int pl_runtime_device(pl_runtime *runtime, int number,
                                           pl_device_info *ret_info, pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
