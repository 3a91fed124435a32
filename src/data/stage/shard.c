/* SPDX-License-Identifier: Apache-2.0 */
/* Every n-th element, for one of n processes. If the input has random access, the elements of other
 * processes are not even made. */
#include <errno.h>
#include <inttypes.h>

#include "data/core/stage.h"
#include "data/persist/state.h"
#include "data/stage/launcher.h"

typedef struct shard_dataset {
    pl_dataset base;
    int64_t n, index;
} shard_dataset;

typedef struct shard_stage {
    pl_stage base;
    int64_t at; /* of the input: the next one */
} shard_stage;

/* The place in the input of our element `at`. */
static int64_t place_of(const pl_stage *stage, int64_t at)
{
    const shard_dataset *own = (const shard_dataset *)stage->dataset;
    return own->index + at * own->n;
}

static int get(pl_stage *stage, int64_t at, pl_element *ret_element, pl_error *reterr)
{
    return pl_stage_get(stage->inputs[0], place_of(stage, at), ret_element, reterr);
}

static int next_by_place(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    shard_stage *own = (shard_stage *)stage;
    while (own->at < stage->dataset->cardinality) {
        int r = get(stage, own->at, ret_element, reterr);
        own->at += r != PL_RETRY_ALONE;
        if (r != 0)
            return r;
    }
    return 0;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    const shard_dataset *dataset = (const shard_dataset *)stage->dataset;
    shard_stage *own = (shard_stage *)stage;
    if (pl_dataset_has_places(stage->dataset->inputs[0]))
        return next_by_place(stage, ret_element, reterr);
    for (;;) {
        pl_element element;
        int r = pl_stage_next(stage->inputs[0], &element, reterr);
        if (r == 0 || r == PL_RETRY_ALONE || (r < 0 && reterr->code == PL_CHECK_LIMIT))
            return r;
        bool ours = own->at++ % dataset->n == dataset->index;
        if (r < 0)
            return r;
        if (ours) {
            *ret_element = element;
            return 1;
        }
        pl_element_clear(&element); /* and is counted where it is read */
    }
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    return pl_save_int(saver, ((shard_stage *)stage)->at, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    return pl_load_count(loader, &((shard_stage *)stage)->at, reterr);
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    const shard_dataset *own = (const shard_dataset *)dataset;
    fprintf(to, "n=%" PRId64 ", index=%" PRId64, own->n, own->index);
}

static const pl_dataset_class shard_class = {
    .name = "shard",
    .dataset_bytes = sizeof(shard_dataset),
    .stage_bytes = sizeof(shard_stage),
    .next = next,
    .get = get,
    .save = save,
    .restore = restore,
    .describe = describe,
};

int pl_dataset_shard(pl_dataset *input, int64_t n, int64_t index, pl_dataset **ret_dataset,
                     pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    int r = n == PL_AUTO ? pl_launcher_place(&n, &index, reterr) : 0;
    if (r < 0)
        return r;
    if (n < 1)
        return pl_error_set(reterr, -EINVAL, "shard: %" PRId64 " shards", n);
    if (index < 0 || index >= n)
        return pl_error_set(reterr, -EINVAL, "shard: index %" PRId64 " of %" PRId64 " shards",
                            index, n);
    r = pl_dataset_make_over(&shard_class, input, ret_dataset, reterr);
    if (r < 0)
        return r;
    shard_dataset *own = (shard_dataset *)*ret_dataset;
    own->n = n;
    own->index = index;
    if (input->cardinality >= 0)
        own->base.cardinality = input->cardinality / n + (index < input->cardinality % n);
    return 0;
}
