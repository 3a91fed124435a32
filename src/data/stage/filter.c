/* SPDX-License-Identifier: Apache-2.0 */
/* The elements for which a function is true. */
#include <errno.h>

#include "data/core/function.h"
#include "data/persist/state.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

typedef struct filter_dataset {
    pl_dataset base;
    pl_bound_function *function;
} filter_dataset;

typedef struct filter_stage {
    pl_stage base;
    pl_element starved; /* the function had no room for it */
} filter_stage;

static void free_filter(pl_dataset *dataset)
{
    pl_bound_function_unref(((filter_dataset *)dataset)->function);
}

/* 1: it stays; 0: it goes; negative: it is bad. */
static int ask(pl_stage *stage, const pl_element *element, pl_error *reterr)
{
    pl_element answer = {0}, asked;
    int r = pl_element_share(element, &asked);
    if (r < 0)
        return pl_pass_fail(stage->pass, r, reterr, "out of memory for an element");
    r = pl_bound_function_run(((filter_dataset *)stage->dataset)->function, stage, &asked, &answer,
                              reterr);
    pl_element_clear(&asked);
    if (r < 0) {
        pl_element_clear(&answer);
        return r;
    }
    uint8_t truth = 0;
    const pl_item *item = &pl_element_items(&answer)[0];
    pl_shape shape = pl_item_shape(item);
    r = shape.rank == 0 ? pl_item_read(item, &truth, reterr)
                        : pl_error_set(reterr, -EINVAL, "the function gives %s, not a scalar",
                                       PL_SHAPE_TEXT(&shape));
    pl_element_clear(&answer);
    return r < 0 ? r : truth;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    filter_stage *own = (filter_stage *)stage;
    for (;;) {
        pl_element element = own->starved;
        own->starved = (pl_element){0};
        int r = element.n > 0 ? 1 : pl_stage_next(stage->inputs[0], &element, reterr);
        if (r <= 0)
            return r;
        r = ask(stage, &element, reterr);
        if (pl_pass_later(stage->pass, r)) {
            own->starved = element;
            return PL_RETRY_ALONE;
        }
        if (r > 0) {
            *ret_element = element;
            return 1;
        }
        if (r < 0 && r != PL_REPORTED)
            return pl_stage_spoil(stage, &element, ret_element, r);
        pl_stage_dropped(stage, &element);
        if (r < 0)
            return r;
    }
}

static void close_filter(pl_stage *stage)
{
    pl_element_clear(&((filter_stage *)stage)->starved);
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    return pl_save_waiting(saver, &((filter_stage *)stage)->starved, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    return pl_load_waiting(loader, stage->dataset->inputs[0], &((filter_stage *)stage)->starved,
                           reterr);
}

static const pl_dataset_class filter_class = {
    .name = "filter",
    .dataset_bytes = sizeof(filter_dataset),
    .stage_bytes = sizeof(filter_stage),
    .free = free_filter,
    .next = next,
    .close = close_filter,
    .save = save,
    .restore = restore,
};

static int check(const pl_bound_function *function, pl_error *reterr)
{
    if (pl_bound_function_n_outputs(function) != 1)
        return pl_error_set(reterr, -EINVAL, "filter: the function has %d outputs, not one",
                            pl_bound_function_n_outputs(function));
    const pl_spec *spec = pl_bound_function_spec(function, 0);
    if (spec->dtype != PL_BOOL || spec->shape.rank > 0)
        return pl_error_set(reterr, -EINVAL, "filter: the function gives %s, not a bool scalar",
                            spec->dtype ? pl_dtype_info_of(spec->dtype)->name : "a dataset");
    return 0;
}

int pl_dataset_filter(pl_dataset *input, const pl_function *function, pl_dataset **ret_dataset,
                      pl_error *reterr)
{
    PL_NOT_NULL(function, reterr);
    PL_NOT_NULL_OR_RELEASE(function, input, reterr);
    PL_NOT_NULL_OR_RELEASE(function, ret_dataset, reterr);
    pl_bound_function *bound;
    int r =
        pl_bound_function_new(function, input->spec, input->n_components, "filter", &bound, reterr);
    if (r < 0)
        return r;
    r = check(bound, reterr);
    if (r == 0)
        r = pl_dataset_make_over(&filter_class, input, ret_dataset, reterr);
    if (r < 0) {
        pl_bound_function_unref(bound);
        return r;
    }
    (*ret_dataset)->cardinality = PL_CARDINALITY_UNKNOWN;
    ((filter_dataset *)*ret_dataset)->function = bound;
    return 0;
}
