/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of a device, compiled once for each text and kept as long as the device. Safe from any
 * thread; one program of a device is compiled at a time, and others wait. */
#ifndef PL_DEVICE_KERNEL_CACHE_H
#define PL_DEVICE_KERNEL_CACHE_H

#include "device/device.h"

/* A kernel of its own, to release. Takes `source`, which is free()d. */
PL_MUST_CHECK int pl_cached_kernel(pl_device *device, char *source, const char *name,
                                   cl_kernel *ret_kernel, pl_error *reterr);

void pl_cached_free(pl_device *device);

#endif
