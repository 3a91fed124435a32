/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of a device, compiled once for each text and kept as long as the device. Safe from
 * any thread; a device compiles one program at a time, and others wait. */
#ifndef PL_DEVICE_KERNEL_CACHE_H
#define PL_DEVICE_KERNEL_CACHE_H

#include "device/device.h"

/* Returns a new kernel, which the caller must release. Takes ownership of `source`, and frees it
 * with free(). */
PL_MUST_CHECK int pl_cached_kernel(pl_device *device, char *source, const char *name,
                                   cl_kernel *ret_kernel, pl_error *reterr);

void pl_cached_free(pl_device *device);

#endif
