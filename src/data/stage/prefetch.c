/* SPDX-License-Identifier: Apache-2.0 */
/* Makes its input's elements before they are asked for. */
#include <errno.h>
#include <inttypes.h>

#include "data/ahead/ahead_stage.h"

typedef struct prefetch_dataset {
    pl_dataset base;
    int64_t n;
} prefetch_dataset;

static int open_prefetch(pl_stage *stage, pl_error *reterr)
{
    int64_t n = ((const prefetch_dataset *)stage->dataset)->n;
    return n == 0 ? 0 : pl_ahead_stage_begin(stage, NULL, n, 1, reterr);
}

/* n=0: nothing is made ahead. */
static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    return pl_stage_next(stage->inputs[0], ret_element, reterr);
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
    .stage_bytes = sizeof(pl_ahead_stage),
    .open = open_prefetch,
    .next = next,
    .close = pl_ahead_stage_close,
    .save = pl_ahead_stage_save,
    .restore = pl_ahead_stage_restore,
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
