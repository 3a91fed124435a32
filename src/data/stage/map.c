/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function with each element: one after the other, or several at once, in order. */
#include <errno.h>

#include "data/ahead/ahead_stage.h"
#include "data/persist/state.h"

typedef struct map_dataset {
    pl_dataset base;
    pl_bound_function *function;
    int n_parallel;
} map_dataset;

typedef struct map_stage {
    pl_ahead_stage ahead; /* begun: several calls at once */
    pl_element starved;   /* else: the input that the next call is for */
} map_stage;

static void free_map(pl_dataset *dataset)
{
    pl_bound_function_unref(((map_dataset *)dataset)->function);
}

static int open_map(pl_stage *stage, pl_error *reterr)
{
    const map_dataset *own = (const map_dataset *)stage->dataset;
    if (own->n_parallel == 1 || pl_bound_function_is_trivial(own->function))
        return 0;
    return pl_ahead_stage_begin(stage, own->function, PL_AUTO, own->n_parallel, reterr);
}

/* One call after the other. */
static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    pl_bound_function *function = ((const map_dataset *)stage->dataset)->function;
    map_stage *own = (map_stage *)stage;
    pl_element input = own->starved;
    own->starved = (pl_element){0};
    int r = input.n > 0 ? 1 : pl_stage_next(stage->inputs[0], &input, reterr);
    if (r <= 0)
        return r;
    r = pl_bound_function_map(function, stage, &input, ret_element, reterr);
    if (r == PL_RETRY_ALONE)
        own->starved = input;
    return r;
}

static void close_map(pl_stage *stage)
{
    pl_ahead_stage_close(stage);
    pl_element_clear(&((map_stage *)stage)->starved);
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    return pl_ahead_stage_has_begun(stage)
               ? pl_ahead_stage_save(stage, saver, reterr)
               : pl_save_waiting(saver, &((map_stage *)stage)->starved, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    return pl_ahead_stage_has_begun(stage)
               ? pl_ahead_stage_restore(stage, loader, reterr)
               : pl_load_waiting(loader, stage->dataset->inputs[0], &((map_stage *)stage)->starved,
                                 reterr);
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    int n = ((const map_dataset *)dataset)->n_parallel;
    if (n == PL_AUTO)
        fputs("parallel=auto", to);
    else
        fprintf(to, "parallel=%d", n);
}

static const pl_dataset_class map_class = {
    .name = "map",
    .dataset_bytes = sizeof(map_dataset),
    .stage_bytes = sizeof(map_stage),
    .free = free_map,
    .open = open_map,
    .next = next,
    .close = close_map,
    .save = save,
    .restore = restore,
    .describe = describe,
};

int pl_dataset_map(pl_dataset *input, const pl_function *function, int n_parallel,
                   pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(function, reterr);
    PL_NOT_NULL_OR_RELEASE(function, input, reterr);
    PL_NOT_NULL_OR_RELEASE(function, ret_dataset, reterr);
    pl_bound_function *bound;
    int r =
        pl_bound_function_new(function, input->spec, input->n_components, "map", &bound, reterr);
    if (r < 0)
        return r;
    pl_dataset *dataset = NULL;
    if (n_parallel < 1 && n_parallel != PL_AUTO)
        r = pl_error_set(reterr, -EINVAL, "map: %d calls at once", n_parallel);
    if (r == 0)
        r = pl_dataset_make(&map_class, input->runtime, &input, 1,
                            pl_bound_function_n_outputs(bound), &dataset, reterr);
    for (int i = 0; r == 0 && i < dataset->n_components; i++)
        if (pl_spec_copy(&dataset->spec[i], pl_bound_function_spec(bound, i)) < 0)
            r = pl_error_set(reterr, -ENOMEM, "out of memory for a dataset");
    if (r < 0) {
        pl_bound_function_unref(bound);
        pl_dataset_unref(dataset);
        return r;
    }
    dataset->cardinality = input->cardinality;
    ((map_dataset *)dataset)->function = bound;
    ((map_dataset *)dataset)->n_parallel = n_parallel;
    *ret_dataset = dataset;
    return 0;
}
