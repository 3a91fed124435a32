/* SPDX-License-Identifier: Apache-2.0 */
/* The seeds of a pass: each shuffle's seed, and the number of passes over it before. Fixed when the
 * pass begins, so that all rounds of a repeat agree, and saved in checkpoints, so that a restored
 * pass draws the same. Datasets made later (by a flat_map) use the number of passes over the
 * outermost dataset. Safe from any thread. */
#ifndef PL_DATA_CORE_SEEDS_H
#define PL_DATA_CORE_SEEDS_H

#include "data/core/stage.h"

typedef struct pl_seed {
    uint64_t seed;
    uint64_t number; /* earlier passes over the dataset */
} pl_seed;

/* `seed` is the dataset's own. Always returns the same within a pass. Fails with -ENOMEM. */
PL_MUST_CHECK int pl_seed_take(pl_pass *pass, pl_dataset *dataset, uint64_t seed, pl_seed *ret_seed,
                               pl_error *reterr);

/* Replaces the one taken; for restore(). */
void pl_seed_set(pl_pass *pass, const pl_dataset *dataset, pl_seed seed);

/* Returns the number of earlier passes over the outermost dataset; stages that open datasets save
 * it too. */
uint64_t pl_seed_pass_number(pl_pass *pass);
void pl_seed_set_pass_number(pl_pass *pass, uint64_t number);

/* Draws a seed from the system. */
PL_MUST_CHECK int pl_seed_random(uint64_t *ret_seed, pl_error *reterr);

#endif
