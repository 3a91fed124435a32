/* SPDX-License-Identifier: Apache-2.0 */
/* All of libplimsoll: what failed (error.h), the budget that a process tree shares (ledger.h), how
 * large it can truly be (budget.h), tensors (tensor.h), what is to be computed with them
 * (graph.h), what computes it (session.h) and where (device.h), lazy evaluation
 * (program.h), what is live (live.h),
 * datasets (dataset.h), pictures to files (picture.h), and which version this is (version.h). Each
 * header may be included alone. */
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
