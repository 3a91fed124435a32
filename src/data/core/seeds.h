/* SPDX-License-Identifier: Apache-2.0 */
/* With what a pass draws: each shuffle's seed, and how often it was gone through before. Taken when
 * the pass begins, so that all rounds of a repeat agree on it, and kept with its state, so that a
 * pass that is restored elsewhere goes on alike. Datasets that come up later (those of a flat_map)
 * go by how often the outermost was gone through. Safe from any thread. */
#ifndef PL_DATA_CORE_SEEDS_H
#define PL_DATA_CORE_SEEDS_H

#include "data/core/stage.h"

typedef struct pl_seed {
    uint64_t seed;
    uint64_t number; /* of passes over the dataset before this one */
} pl_seed;

/* `seed` is the dataset's own. Always the same within a pass. -ENOMEM. */
PL_MUST_CHECK int pl_seed_take(pl_pass *pass, pl_dataset *dataset, uint64_t seed, pl_seed *ret_seed,
                               pl_error *reterr);

/* Instead of what was taken. */
void pl_seed_set(pl_pass *pass, const pl_dataset *dataset, pl_seed seed);

/* How often the outermost was gone through before: what stages that open datasets save as well. */
uint64_t pl_seed_pass_number(pl_pass *pass);
void pl_seed_set_pass_number(pl_pass *pass, uint64_t number);

/* From the system. */
PL_MUST_CHECK int pl_seed_random(uint64_t *ret_seed, pl_error *reterr);

#endif
