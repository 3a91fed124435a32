/* SPDX-License-Identifier: Apache-2.0 */
/* Makes its input's elements before they are asked for. */
#include <errno.h>
#include <inttypes.h>

#include "data/ahead/ahead.h"

typedef struct prefetch_dataset {
    pl_dataset base;
    int64_t n;
} prefetch_dataset;

typedef struct prefetch_stage {
    pl_stage base;
    pl_ahead ahead;
} prefetch_stage;

static int begin(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    return pl_stage_next(stage->inputs[0], ret_element, reterr);
}

static const pl_ahead_class prefetch_ahead = {begin, NULL};

static int open_prefetch(pl_stage *stage, pl_error *reterr)
{
    int64_t n = ((const prefetch_dataset *)stage->dataset)->n;
    if (n == 0)
        return 0;
    return pl_ahead_init(&((prefetch_stage *)stage)->ahead, stage, &prefetch_ahead, n, 1, reterr);
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    if (((const prefetch_dataset *)stage->dataset)->n == 0)
        return begin(stage, ret_element, reterr);
    return pl_ahead_next(&((prefetch_stage *)stage)->ahead, ret_element, reterr);
}

static void close_prefetch(pl_stage *stage)
{
    pl_ahead_done(&((prefetch_stage *)stage)->ahead);
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    bool ahead = ((const prefetch_dataset *)stage->dataset)->n != 0;
    return ahead ? pl_ahead_save(&((prefetch_stage *)stage)->ahead, saver, reterr) : 0;
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    bool ahead = ((const prefetch_dataset *)stage->dataset)->n != 0;
    return ahead ? pl_ahead_restore(&((prefetch_stage *)stage)->ahead, loader, reterr) : 0;
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    int64_t n = ((const prefetch_dataset *)dataset)->n;
    if (n == PL_AUTO)
        fputs("n=auto", to);
    else
        fprintf(to, "n=%" PRId64, n);
}

static const pl_dataset_class prefetch_class = {
    .name = "prefetch",
    .dataset_bytes = sizeof(prefetch_dataset),
    .stage_bytes = sizeof(prefetch_stage),
    .open = open_prefetch,
    .next = next,
    .close = close_prefetch,
    .save = save,
    .restore = restore,
    .describe = describe,
};

int pl_dataset_prefetch(pl_dataset *input, int64_t n, pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    if (n < 0 && n != PL_AUTO)
        return pl_error_set(reterr, -EINVAL, "prefetch: %" PRId64 " elements ahead", n);
    int r = pl_dataset_make_over(&prefetch_class, input, ret_dataset, reterr);
    if (r == 0)
        ((prefetch_dataset *)*ret_dataset)->n = n;
    return r;
}
