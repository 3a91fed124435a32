/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a runtime beside its CPU: found when they are first asked for, and then the same
 * until the runtime ends. Safe from any thread. */
#ifndef PL_DEVICE_DEVICES_H
#define PL_DEVICE_DEVICES_H

#include "device/device.h"
#include "plimsoll/device.h"

typedef struct pl_devices pl_devices;

/* The runtime's, made if there are none yet; NULL if out of memory. Asks for no device. */
pl_devices *pl_devices_of(pl_runtime *runtime);

bool pl_devices_are_strict(const pl_devices *devices);

/* How many GPUs; the first call looks for them. One that cannot say what it is does not count. */
int pl_devices_count(pl_devices *devices);
pl_device *pl_devices_at(pl_devices *devices, int number);

/* Reports a warning, unless it was reported before. */
void pl_devices_say(pl_devices *devices, const char *text);

#endif
