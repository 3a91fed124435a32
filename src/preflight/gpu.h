/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's GPUs: what the kernel's driver says of itself, and what its library (NVML) says of the
 * devices. The library is loaded by name in a child that has five seconds: a driver that hangs, or
 * a library that crashes, is a finding and not our end. Never allocates. */
#ifndef PL_PREFLIGHT_GPU_H
#define PL_PREFLIGHT_GPU_H

#include "base/base.h"

enum { PL_GPU_DEVICES = 16 };

typedef struct pl_gpu_device {
    char name[96];
    int major, minor; /* compute capability; 0.0: it did not say */
    uint64_t total_bytes, free_bytes;
} pl_gpu_device;

/* What NVML answered. Numbers of `status` are NVML's; negative ones ours. */
typedef struct pl_nvml {
    int status;       /* 0; -ENOENT: there is no library; -ETIMEDOUT; -ECHILD: it crashed */
    char driver[32];  /* "550.54.14" */
    int cuda_version; /* the newest that the driver runs: 12040 */
    int n_devices;    /* may be more than there is room for */
    pl_gpu_device devices[PL_GPU_DEVICES];
} pl_nvml;

enum { PL_NVML_DRIVER_NOT_LOADED = 9, PL_NVML_MISMATCH = 18, PL_NVML_NO_PERMISSION = 4 };

typedef struct pl_gpu {
    bool on_bus;     /* a display controller of NVIDIA's is on the PCI bus */
    char driver[32]; /* of the kernel's module; "": it is not loaded */
    pl_nvml nvml;
} pl_gpu;

void pl_gpu_read(const char *root, pl_gpu *ret_gpu);

/* For pl_gpu_read() alone. */
void pl_nvml_read(pl_nvml *ret_nvml);

/* The version in the text of /proc/driver/nvidia/version; "" when there is none. */
void pl_gpu_parse_driver(const char *text, char driver[32]);

#endif
