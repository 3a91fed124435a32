/* SPDX-License-Identifier: Apache-2.0 */
/* All of libplimsoll: what failed (error.h), the budget that a process tree shares (ledger.h), how
 * large it can truly be (budget.h), tensors (tensor.h), what is to be computed with them
 * (graph.h), what computes it (session.h) and where (device.h), what is live (live.h),
 * datasets (dataset.h), and pictures to files (picture.h). Each header may be included alone. */
#ifndef PLIMSOLL_PLIMSOLL_H
#define PLIMSOLL_PLIMSOLL_H

#include "plimsoll/budget.h"
#include "plimsoll/dataset.h"
#include "plimsoll/device.h"
#include "plimsoll/error.h"
#include "plimsoll/graph.h"
#include "plimsoll/ledger.h"
#include "plimsoll/live.h"
#include "plimsoll/picture.h"
#include "plimsoll/session.h"
#include "plimsoll/tensor.h"

/* Of these headers. Compare as PLIMSOLL_VERSION >= PLIMSOLL_VERSION_OF(0, 2, 0). */
#define PLIMSOLL_VERSION_MAJOR 0
#define PLIMSOLL_VERSION_MINOR 1
#define PLIMSOLL_VERSION_PATCH 0

#define PLIMSOLL_VERSION_OF(major, minor, patch) (1000000 * (major) + 1000 * (minor) + (patch))
#define PLIMSOLL_VERSION                                                                           \
    PLIMSOLL_VERSION_OF(PLIMSOLL_VERSION_MAJOR, PLIMSOLL_VERSION_MINOR, PLIMSOLL_VERSION_PATCH)

#endif
