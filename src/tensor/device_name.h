/* SPDX-License-Identifier: Apache-2.0 */
/* Names of devices, as plimsoll/device.h describes them, as values. Pure; never allocates; safe
 * from any thread. */
#ifndef PL_TENSOR_DEVICE_NAME_H
#define PL_TENSOR_DEVICE_NAME_H

#include "base/base.h"
#include "plimsoll/device.h"

#define PL_DEVICE_ANY (-1) /* no number was given */

typedef struct pl_device_name {
    pl_device_kind kind;
    int number; /* or PL_DEVICE_ANY */
} pl_device_name;

/* False if it is no name, or one of a device on another machine. */
PL_MUST_CHECK bool pl_device_name_parse(const char *text, pl_device_name *ret_name);

/* "/GPU:0"; without a number it is the first. Returns `text`. */
const char *pl_device_name_format(pl_device_name name, char text[PL_DEVICE_NAME_BYTES]);

#endif
