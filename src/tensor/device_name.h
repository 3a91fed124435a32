/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and prints device names, as described in plimsoll/device.h. Pure; never allocates; safe
 * from any thread. */
#ifndef PL_TENSOR_DEVICE_NAME_H
#define PL_TENSOR_DEVICE_NAME_H

#include "base/base.h"
#include "plimsoll/device.h"

#define PL_DEVICE_ANY (-1) /* no number given */

typedef struct pl_device_name {
    pl_device_kind kind;
    int number; /* or PL_DEVICE_ANY */
} pl_device_name;

/* False if it is not a device name, or names a device on another machine. */
PL_MUST_CHECK bool pl_device_name_parse(const char *text, pl_device_name *ret_name);

/* Formats "/GPU:0"; a name without a number is the first device. Returns `text`. */
const char *pl_device_name_format(pl_device_name name, char text[PL_DEVICE_NAME_BYTES]);

#endif
