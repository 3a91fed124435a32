/* SPDX-License-Identifier: Apache-2.0 */
/* What options stages say. Pure; the datasets' own memory. */
#ifndef PL_DATA_CORE_OPTIONS_H
#define PL_DATA_CORE_OPTIONS_H

#include "data/core/stage.h"

/* The policy that the dataset says itself; NULL: none. */
const pl_policy *pl_options_policy(const pl_dataset *dataset);

/* Of a whole pass: for each the outermost that says it, else 0. Texts and policy are not in it. */
void pl_options_gather(const pl_dataset *dataset, pl_dataset_options *ret_options);

#endif
