/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function with each element: one after the other, or several at once, in order. */
#include <errno.h>

#include "data/ahead/ahead.h"
#include "data/core/function.h"
#include "data/persist/state.h"

typedef struct map_dataset {
    pl_dataset base;
    pl_called *called;
    int n_parallel;
} map_dataset;

typedef struct map_stage {
    pl_stage base;
    bool parallel;
    pl_ahead ahead;     /* if it is */
    pl_element starved; /* else: an input that is to be called with again */
} map_stage;

static pl_called *called_of(const pl_stage *stage)
{
    return ((const map_dataset *)stage->dataset)->called;
}

static void free_map(pl_dataset *dataset)
{
    pl_called_unref(((map_dataset *)dataset)->called);
}

static int begin(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    int r = pl_stage_next(stage->inputs[0], ret_element, reterr);
    if (r > 0 && !pl_called_is_trivial(called_of(stage)))
        ret_element->draw = pl_called_draw(stage);
    return r;
}

static int finish(pl_stage *stage, pl_element *begun, pl_element *ret_element, pl_error *reterr)
{
    int r = pl_called_run(called_of(stage), stage, begun, ret_element, reterr);
    if (pl_pass_later(stage->pass, r)) {
        pl_element_clear(ret_element);
        return PL_RETRY_ALONE;
    }
    if (r < 0 && r != PL_REPORTED) {
        begun->n_items -= begun->n_items > 0; /* itself: it is counted as a bad one */
        pl_element_pass_on(begun, ret_element);
    }
    pl_element_clear(begun);
    return r;
}

static const pl_ahead_class map_ahead = {begin, finish};

static int open_map(pl_stage *stage, pl_error *reterr)
{
    const map_dataset *own = (const map_dataset *)stage->dataset;
    map_stage *map = (map_stage *)stage;
    map->parallel = own->n_parallel != 1 && !pl_called_is_trivial(own->called);
    if (!map->parallel)
        return 0;
    return pl_ahead_init(&map->ahead, stage, &map_ahead, PL_AUTO, own->n_parallel, reterr);
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    map_stage *map = (map_stage *)stage;
    if (map->parallel)
        return pl_ahead_next(&map->ahead, ret_element, reterr);
    pl_element input = map->starved;
    map->starved = (pl_element){0};
    int r = input.n > 0 ? 1 : begin(stage, &input, reterr);
    if (r > 0)
        r = finish(stage, &input, ret_element, reterr);
    if (r == PL_RETRY_ALONE)
        map->starved = input;
    return r;
}

static void close_map(pl_stage *stage)
{
    pl_ahead_done(&((map_stage *)stage)->ahead);
    pl_element_clear(&((map_stage *)stage)->starved);
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    map_stage *map = (map_stage *)stage;
    return map->parallel ? pl_ahead_save(&map->ahead, saver, reterr)
                         : pl_save_waiting(saver, &map->starved, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    map_stage *map = (map_stage *)stage;
    return map->parallel
               ? pl_ahead_restore(&map->ahead, loader, reterr)
               : pl_load_waiting(loader, stage->dataset->inputs[0], &map->starved, reterr);
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
    pl_called *called;
    int r = pl_called_new(function, input->spec, input->n_components, "map", &called, reterr);
    if (r < 0)
        return r;
    pl_dataset *dataset = NULL;
    if (n_parallel < 1 && n_parallel != PL_AUTO)
        r = pl_error_set(reterr, -EINVAL, "map: %d calls at once", n_parallel);
    if (r == 0)
        r = pl_dataset_make(&map_class, input->runtime, &input, 1, pl_called_n_outputs(called),
                            &dataset, reterr);
    for (int i = 0; r == 0 && i < dataset->n_components; i++)
        if (pl_spec_copy(&dataset->spec[i], pl_called_spec(called, i)) < 0)
            r = pl_error_set(reterr, -ENOMEM, "no memory for a dataset");
    if (r < 0) {
        pl_called_unref(called);
        pl_dataset_unref(dataset);
        return r;
    }
    dataset->cardinality = input->cardinality;
    ((map_dataset *)dataset)->called = called;
    ((map_dataset *)dataset)->n_parallel = n_parallel;
    *ret_dataset = dataset;
    return 0;
}
