/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: what computes, and the memory that it has.
 *   device     "/CPU:0", which is always there, and "/GPU:0" and so on, one for each OpenCL device
 *   name       of a device, as TensorFlow writes it: "/GPU:0", "/device:GPU:0", "gpu:0", "GPU" or
 *              "/job:localhost/replica:0/task:0/device:GPU:0" are all the same
 *   placed     a node that was made inside of pl_graph_push_device() is to be computed there
 *   soft       a node whose device is missing, cannot run its op, or has no room for its smallest
 *              tile, is computed on the CPU, and that is said once; strict: the run is refused
 *   budget     the most that steps may have on a device at a time
 *
 *   in use <= budget at every instant
 *
 * What is had from outside or made from nothing, and views, compute nothing: they are wherever they
 * are used, and placing them means nothing. No OpenCL library is touched before devices are listed,
 * or a graph with nodes on a GPU is run or explained. Safe from any thread. */
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
    uint64_t memory_bytes; /* that it has */
    uint64_t budget_bytes; /* of that, for us */
    uint64_t in_use_bytes; /* now */
    uint64_t peak_bytes;   /* the most that ever was */
} pl_device_info;

typedef struct pl_device_limit {
    const char *device;
    uint64_t bytes;
} pl_device_limit;

typedef struct pl_device_options {
    size_t size; /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    bool strict; /* placement; else soft */
    /* Does an OpenCL device that is a CPU count as a GPU? 1: yes, -1: no, 0: if the environment has
     * PLIMSOLL_OPENCL_CPU=1. */
    int opencl_cpu;
    /* Names of GPUs that are not to be used; "GPU" without a number hides all of them. Numbers are
     * those that they would have if none were hidden; the others are then numbered anew. */
    const char *const *hidden;
    int n_hidden;
    /* Budgets; of a device that is not named, seven eighths of its memory. More than it has counts
     * as all that it has. The CPU's is the runtime's. */
    const pl_device_limit *limits;
    int n_limits;
    /* May be NULL. Called when nodes are computed elsewhere than where they were placed, from the
     * thread that runs, once for each reason in the runtime's life. */
    void (*message)(void *context, const char *text);
    void *message_context;
} pl_device_options;

/* What is said here holds for all sessions of the runtime. Texts are copied. -EINVAL for a name
 * that is none; -EBUSY when devices have been listed or used already; -ENOMEM. */
PL_API PL_MUST_CHECK int pl_runtime_set_devices(pl_runtime *runtime,
                                                const pl_device_options *options, pl_error *reterr);

/* Placement from now on, also when devices are in use; plans that are kept stay as they are.
 * -ENOMEM. */
PL_API PL_MUST_CHECK int pl_runtime_set_strict(pl_runtime *runtime, bool strict, pl_error *reterr);

/* At least 1. Number 0 is /CPU:0. */
PL_API int pl_runtime_n_devices(pl_runtime *runtime);

/* -EINVAL for a number that there is not. */
PL_API PL_MUST_CHECK int pl_runtime_device(pl_runtime *runtime, int number,
                                           pl_device_info *ret_info, pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
