/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA GPUs: what the kernel driver reports about itself, and what its library (NVML) reports
 * about the devices. A child process loads the library and has five seconds, so that a driver that
 * hangs or a library that crashes becomes a finding and does not end the doctor. Never allocates.
 */
#ifndef PL_PREFLIGHT_GPU_H
#define PL_PREFLIGHT_GPU_H

#include "base/base.h"

enum { PL_GPU_DEVICES = 16 };

typedef struct pl_gpu_device {
    char name[96];
    int major, minor; /* compute capability; 0.0: unknown */
    uint64_t total_bytes, free_bytes;
} pl_gpu_device;

/* NVML's answer. A `status` above 0 is NVML's, a negative one ours. */
typedef struct pl_nvml {
    int status;       /* 0; -ENOENT: library not found; -ETIMEDOUT; -ECHILD: it crashed */
    char driver[32];  /* "550.54.14" */
    int cuda_version; /* the newest one the driver supports: 12040 */
    int n_devices;    /* can exceed PL_GPU_DEVICES */
    pl_gpu_device devices[PL_GPU_DEVICES];
} pl_nvml;

enum { PL_NVML_DRIVER_NOT_LOADED = 9, PL_NVML_MISMATCH = 18, PL_NVML_NO_PERMISSION = 4 };

typedef struct pl_gpu {
    bool on_bus;     /* an NVIDIA display controller is on the PCI bus */
    char driver[32]; /* version of the kernel module; "": not loaded */
    pl_nvml nvml;
} pl_gpu;

void pl_gpu_read(const char *root, pl_gpu *ret_gpu);

/* Internal to pl_gpu_read(). */
void pl_nvml_read(pl_nvml *ret_nvml);

/* Parses the version from the text of /proc/driver/nvidia/version; "" if there is none. */
void pl_gpu_parse_driver(const char *text, char driver[32]);

#endif
