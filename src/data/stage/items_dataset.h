/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset of existing items: one component of a window's elements. */
#ifndef PL_DATA_STAGE_ITEMS_DATASET_H
#define PL_DATA_STAGE_ITEMS_DATASET_H

#include "data/core/claimed_array.h"
#include "data/core/stage.h"

/* Takes `items` (of pl_item), also on failure; they do not count as items of a source. */
PL_MUST_CHECK int pl_dataset_held(pl_runtime *runtime, const pl_spec *spec, pl_claimed_array *items,
                                  pl_dataset **ret_dataset, pl_error *reterr);

/* Clears an array of items. */
void pl_claimed_array_clear_items(pl_claimed_array *items);

#endif
