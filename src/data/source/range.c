/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers, one after the other. */
#include <errno.h>
#include <inttypes.h>

#include "data/core/stage.h"
#include "data/persist/state.h"

typedef struct range_dataset {
    pl_dataset base;
    int64_t start, step;
} range_dataset;

typedef struct range_stage {
    pl_stage base;
    int64_t at;
} range_stage;

static int get(pl_stage *stage, int64_t at, pl_element *ret_element, pl_error *reterr)
{
    (void)reterr;
    const range_dataset *own = (const range_dataset *)stage->dataset;
    int r = pl_element_init(ret_element, 1);
    if (r < 0)
        return r;
    uint64_t value = (uint64_t)own->start + (uint64_t)at * (uint64_t)own->step;
    ret_element->few[0] = pl_item_scalar(PL_I64, value);
    return 1;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    range_stage *own = (range_stage *)stage;
    if (own->at == stage->dataset->cardinality)
        return 0;
    return get(stage, own->at++, ret_element, reterr);
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    return pl_save_int(saver, ((range_stage *)stage)->at, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    return pl_load_int(loader, 0, stage->dataset->cardinality, &((range_stage *)stage)->at, reterr);
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    const range_dataset *own = (const range_dataset *)dataset;
    fprintf(to, "start=%" PRId64 ", step=%" PRId64 ", n=%" PRId64, own->start, own->step,
            dataset->cardinality);
}

static const pl_dataset_class range_class = {
    .name = "range",
    .dataset_bytes = sizeof(range_dataset),
    .stage_bytes = sizeof(range_stage),
    .next = next,
    .get = get,
    .save = save,
    .restore = restore,
    .describe = describe,
};

/* How many numbers there are; INT64_MAX at most, because step 1 over all of them is more. */
static int64_t count(int64_t start, int64_t stop, int64_t step)
{
    if (step > 0 ? start >= stop : start <= stop)
        return 0;
    uint64_t span = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t stride = step > 0 ? (uint64_t)step : -(uint64_t)step;
    uint64_t n = (span - 1) / stride + 1;
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

int pl_dataset_range(pl_runtime *runtime, int64_t start, int64_t stop, int64_t step,
                     pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    if (step == 0)
        return pl_error_set(reterr, -EINVAL, "range: a step of 0 never ends");
    pl_dataset *dataset;
    int r = pl_dataset_make(&range_class, runtime, NULL, 0, 1, &dataset, reterr);
    if (r < 0)
        return r;
    dataset->spec[0] = (pl_spec){.dtype = PL_I64};
    dataset->cardinality = count(start, stop, step);
    ((range_dataset *)dataset)->start = start;
    ((range_dataset *)dataset)->step = step;
    *ret_dataset = dataset;
    return 0;
}
