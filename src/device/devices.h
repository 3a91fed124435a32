/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a runtime other than its CPU: found on first use, and then the same until the
 * runtime ends. Safe from any thread. */
#ifndef PL_DEVICE_DEVICES_H
#define PL_DEVICE_DEVICES_H

#include "device/device.h"
#include "plimsoll/device.h"

typedef struct pl_devices pl_devices;

/* Returns the runtime's devices, allocating the list on first use; NULL if out of memory. Does not
 * look for devices. */
pl_devices *pl_devices_of(pl_runtime *runtime);

bool pl_devices_are_strict(const pl_devices *devices);

/* Returns the number of GPUs; the first call looks for them. A device that cannot describe itself
 * does not count. */
int pl_devices_count(pl_devices *devices);
pl_device *pl_devices_at(pl_devices *devices, int number);

/* Reports a warning, unless it has been reported before. */
void pl_devices_say(pl_devices *devices, const char *text);

#endif
