/* SPDX-License-Identifier: Apache-2.0 */
/* All of libplimsoll: errors (error.h), the budget that a process tree shares (ledger.h), how large
 * it can be (budget.h), tensors (tensor.h), computations on them (graph.h), running those
 * (session.h) and where (device.h), lazily (program.h), memory in use (live.h), datasets (dataset.h), encoding pictures
 * (picture.h), and the version (version.h). Each header can be included alone. */
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
#include "plimsoll/program.h"
#include "plimsoll/session.h"
#include "plimsoll/tensor.h"
#include "plimsoll/version.h"

#endif
