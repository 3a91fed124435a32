/* SPDX-License-Identifier: Apache-2.0 */
#include "data/stage/subdataset.h"

#include <errno.h>
#include <stdlib.h>

#include "data/persist/state.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* ---- opening ---- */

int pl_subdataset_check(const pl_bound_function *function, const char *what, pl_error *reterr)
{
    bool one = pl_bound_function_n_outputs(function) == 1;
    if (!one || pl_bound_function_spec(function, 0)->dtype != PL_DTYPE_NONE)
        return pl_error_set(reterr, -EINVAL, "%s: the function is to make one dataset, not %s",
                            what, one ? "a tensor" : "several things");
    return 0;
}

/* Does the dataset match the specs of the function's output? */
static int check(const pl_spec *said, const pl_dataset *made, const pl_dataset *whole,
                 pl_error *reterr)
{
    if (made->runtime != whole->runtime)
        return pl_error_set(reterr, -EINVAL, "the function made a dataset of another runtime");
    if (made->n_components != said->n_of)
        return pl_error_set(reterr, -EINVAL,
                            "the function made elements with %d components, where its spec has %d",
                            made->n_components, said->n_of);
    for (int i = 0; i < said->n_of; i++) {
        const pl_spec *spec = &made->spec[i], *of = &said->of[i];
        bool known = spec->shape.rank != PL_RANK_UNKNOWN && of->shape.rank != PL_RANK_UNKNOWN;
        if (spec->dtype != of->dtype)
            return pl_error_set(
                reterr, -EINVAL,
                "the function made elements whose component %d is %s, where its spec "
                "says %s",
                i, spec->dtype ? pl_dtype_info_of(spec->dtype)->name : "a dataset",
                of->dtype ? pl_dtype_info_of(of->dtype)->name : "a dataset");
        if (known && !pl_shape_compatible(&spec->shape, &of->shape))
            return pl_error_set(
                reterr, -EINVAL,
                "the function made elements whose component %d is %s, where its spec "
                "says %s",
                i, PL_SHAPE_TEXT(&spec->shape), PL_SHAPE_TEXT(&of->shape));
    }
    return 0;
}

/* The function's dataset. */
static int call(pl_stage *stage, pl_bound_function *function, const pl_element *input,
                pl_dataset **ret_dataset, pl_error *reterr)
{
    pl_element given, made = {0};
    int r = pl_element_share(input, &given);
    if (r < 0)
        return pl_pass_fail(stage->pass, r, reterr, "out of memory for an element");
    r = pl_bound_function_run(function, stage, &given, &made, reterr);
    pl_element_clear(&given);
    pl_dataset *dataset = r > 0 ? PL_TAKE(pl_element_items(&made)[0].dataset) : NULL;
    pl_element_clear(&made);
    if (r < 0)
        return r;
    r = check(pl_bound_function_spec(function, 0), dataset, stage->dataset, reterr);
    if (r < 0)
        pl_dataset_unref(dataset);
    else
        *ret_dataset = dataset;
    return r;
}

static int open_stage(pl_stage *stage, pl_bound_function *function, pl_subdataset *subdataset,
                      pl_error *reterr)
{
    pl_dataset *dataset = NULL;
    int r = call(stage, function, &subdataset->input, &dataset, reterr);
    if (r < 0)
        return r;
    r = pl_stage_open_round(dataset, stage, subdataset->number, &subdataset->stage, reterr);
    pl_dataset_unref(dataset);
    return r;
}

int pl_subdataset_open(pl_stage *stage, pl_bound_function *function, uint64_t number,
                       pl_element *input, pl_subdataset **ret_subdataset, pl_element *ret_bad,
                       pl_error *reterr)
{
    pl_subdataset *subdataset = calloc(1, sizeof *subdataset);
    if (!subdataset) {
        pl_element_clear(input);
        return pl_pass_fail(stage->pass, -ENOMEM, reterr, "out of memory for a dataset's pass");
    }
    subdataset->number = number;
    subdataset->input = *input;
    *input = (pl_element){0};
    int r = open_stage(stage, function, subdataset, reterr);
    if (r == 0) {
        *ret_subdataset = subdataset;
        return 0;
    }
    if (pl_pass_later(stage->pass, r)) {
        *input = subdataset->input;
        subdataset->input = (pl_element){0};
        r = PL_RETRY_ALONE;
    } else {
        pl_element_pass_on(&subdataset->input, ret_bad);
    }
    pl_subdataset_close(stage, subdataset);
    return r;
}

pl_subdataset *pl_subdataset_of_error(uint64_t number, int result, pl_error *error, pl_element *bad)
{
    pl_subdataset *subdataset = calloc(1, sizeof *subdataset);
    if (!subdataset) {
        pl_element_clear(bad);
        return NULL;
    }
    subdataset->number = number;
    subdataset->ended = true;
    pl_ahead_slot_fill(pl_subdataset_add(subdataset, 0), result, bad, error);
    return subdataset;
}

void pl_subdataset_close(pl_stage *stage, pl_subdataset *subdataset)
{
    if (!subdataset)
        return;
    for (int i = 0; i < PL_SUBDATASET_QUEUE; i++)
        pl_ahead_slot_clear(&subdataset->queue[i], &stage->pass->prefetch_budget);
    pl_stage_close(subdataset->stage);
    pl_element_clear(&subdataset->input);
    free(subdataset);
}

/* ---- the queue ---- */

pl_ahead_slot *pl_subdataset_add(pl_subdataset *subdataset, uint64_t room_bytes)
{
    int at = (subdataset->head + subdataset->n_queued++) % PL_SUBDATASET_QUEUE;
    subdataset->queue[at].room_bytes = room_bytes;
    return &subdataset->queue[at];
}

int pl_subdataset_take(pl_subdataset *subdataset, pl_prefetch_budget *budget,
                       pl_element *ret_element, pl_error *reterr)
{
    pl_ahead_slot *first = &subdataset->queue[subdataset->head];
    subdataset->head = (subdataset->head + 1) % PL_SUBDATASET_QUEUE;
    subdataset->n_queued--;
    return pl_ahead_slot_take(first, budget, ret_element, reterr);
}

/* ---- state ---- */

static int save_queue(const pl_subdataset *subdataset, pl_saver *saver, pl_error *reterr)
{
    int r = pl_save_int(saver, subdataset->n_queued, reterr);
    for (int i = 0; r == 0 && i < subdataset->n_queued; i++) {
        int at = (subdataset->head + i) % PL_SUBDATASET_QUEUE;
        r = pl_ahead_slot_save(&subdataset->queue[at], saver, reterr);
    }
    return r;
}

int pl_subdataset_save(pl_subdataset *subdataset, pl_saver *saver, pl_error *reterr)
{
    int r = pl_save_int(saver, (int64_t)subdataset->number, reterr);
    if (r == 0)
        r = pl_save_int(saver, subdataset->ended, reterr);
    if (r == 0)
        r = pl_save_int(saver, subdataset->stage != NULL, reterr);
    if (r == 0 && subdataset->stage)
        r = pl_save_element(saver, &subdataset->input, reterr);
    if (r == 0 && subdataset->stage)
        r = pl_save_stage(saver, subdataset->stage, reterr);
    return r < 0 ? r : save_queue(subdataset, saver, reterr);
}

static int load_slot(pl_stage *stage, pl_subdataset *subdataset, pl_loader *loader,
                     pl_error *reterr)
{
    pl_ahead_slot *slot = pl_subdataset_add(subdataset, 0);
    int r = pl_ahead_slot_load(slot, stage, NULL, loader, reterr);
    if (r == 0 && slot->result > 0 && !subdataset->stage)
        r = pl_load_refuse(reterr, "element of a dataset that was not opened");
    return r;
}

static int load(pl_stage *stage, pl_bound_function *function, pl_subdataset *subdataset,
                pl_loader *loader, pl_error *reterr)
{
    int64_t number, ended = 0, opened = 0, n = 0;
    int r = pl_load_int(loader, 1, PL_COUNT_MOST, &number, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &ended, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &opened, reterr);
    if (r < 0)
        return r;
    subdataset->number = (uint64_t)number;
    subdataset->ended = ended || !opened;
    if (opened)
        r = pl_load_element(loader, stage->dataset->inputs[0], &subdataset->input, reterr);
    if (r == 0 && opened)
        r = open_stage(stage, function, subdataset, reterr);
    if (r == 0 && opened)
        r = pl_load_stage(loader, subdataset->stage, reterr);
    if (r == 0)
        r = pl_load_int(loader, opened ? 0 : 1, opened ? PL_SUBDATASET_QUEUE : 1, &n, reterr);
    while (r == 0 && subdataset->n_queued < n)
        r = load_slot(stage, subdataset, loader, reterr);
    return r;
}

int pl_subdataset_load(pl_stage *stage, pl_bound_function *function, pl_loader *loader,
                       pl_subdataset **ret_subdataset, pl_error *reterr)
{
    pl_subdataset *subdataset = calloc(1, sizeof *subdataset);
    if (!subdataset)
        return pl_error_set(reterr, -ENOMEM, "out of memory for a dataset's pass");
    int r = load(stage, function, subdataset, loader, reterr);
    if (r < 0) {
        pl_subdataset_close(stage, subdataset);
        return r;
    }
    *ret_subdataset = subdataset;
    return 0;
}
