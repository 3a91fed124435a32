/* SPDX-License-Identifier: Apache-2.0 */
/* The first elements, or all but the first. */
#include <errno.h>
#include <inttypes.h>

#include "data/core/stage.h"
#include "data/persist/state.h"

typedef struct counted_dataset {
    pl_dataset base;
    int64_t n; /* negative: all */
} counted_dataset;

typedef struct counted_stage {
    pl_stage base;
    int64_t n_gone; /* taken, or skipped */
} counted_stage;

static int64_t n_of(const pl_dataset *dataset)
{
    return ((const counted_dataset *)dataset)->n;
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    return pl_save_int(saver, ((counted_stage *)stage)->n_gone, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    int64_t n = n_of(stage->dataset);
    return pl_load_int(loader, 0, n < 0 ? PL_COUNT_MOST : n, &((counted_stage *)stage)->n_gone,
                       reterr);
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    fprintf(to, "n=%" PRId64, n_of(dataset));
}

/* ---- take ---- */

static int next_taken(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    counted_stage *own = (counted_stage *)stage;
    int64_t n = n_of(stage->dataset);
    if (n >= 0 && own->n_gone == n)
        return 0;
    int r = pl_stage_next(stage->inputs[0], ret_element, reterr);
    if (r > 0 && n >= 0)
        own->n_gone++;
    return r;
}

static int get_taken(pl_stage *stage, int64_t at, pl_element *ret_element, pl_error *reterr)
{
    return pl_stage_get(stage->inputs[0], at, ret_element, reterr);
}

static const pl_dataset_class take_class = {
    .name = "take",
    .dataset_bytes = sizeof(counted_dataset),
    .stage_bytes = sizeof(counted_stage),
    .next = next_taken,
    .get = get_taken,
    .save = save,
    .restore = restore,
    .describe = describe,
};

int pl_dataset_take(pl_dataset *input, int64_t n, pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    int r = pl_dataset_make_over(&take_class, input, ret_dataset, reterr);
    if (r < 0)
        return r;
    pl_dataset *dataset = *ret_dataset;
    ((counted_dataset *)dataset)->n = n < 0 ? -1 : n;
    if (n >= 0 && (input->cardinality == PL_CARDINALITY_INFINITE || input->cardinality > n))
        dataset->cardinality = n;
    return 0;
}

/* ---- skip ---- */

static int next_behind(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    counted_stage *own = (counted_stage *)stage;
    int64_t n = n_of(stage->dataset);
    while (n < 0 || own->n_gone < n) {
        pl_element element;
        int r = pl_stage_next(stage->inputs[0], &element, reterr);
        if (r <= 0)
            return r;
        pl_stage_dropped(stage, &element);
        own->n_gone += n >= 0;
    }
    return pl_stage_next(stage->inputs[0], ret_element, reterr);
}

static int get_behind(pl_stage *stage, int64_t at, pl_element *ret_element, pl_error *reterr)
{
    return pl_stage_get(stage->inputs[0], at + n_of(stage->dataset), ret_element, reterr);
}

static const pl_dataset_class skip_class = {
    .name = "skip",
    .dataset_bytes = sizeof(counted_dataset),
    .stage_bytes = sizeof(counted_stage),
    .next = next_behind,
    .get = get_behind,
    .save = save,
    .restore = restore,
    .describe = describe,
};

int pl_dataset_skip(pl_dataset *input, int64_t n, pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    int r = pl_dataset_make_over(&skip_class, input, ret_dataset, reterr);
    if (r < 0)
        return r;
    pl_dataset *dataset = *ret_dataset;
    ((counted_dataset *)dataset)->n = n < 0 ? -1 : n;
    if (input->cardinality >= 0)
        dataset->cardinality = n < 0 || n > input->cardinality ? 0 : input->cardinality - n;
    return 0;
}
