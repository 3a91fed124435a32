/* SPDX-License-Identifier: Apache-2.0 */
#include "data/stage/subdataset.h"

#include <errno.h>
#include <stdlib.h>

#include "data/persist/state.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* ---- opening ---- */

int pl_lane_check(const pl_called *called, const char *what, pl_error *reterr)
{
    bool one = pl_called_n_outputs(called) == 1;
    if (!one || pl_called_spec(called, 0)->dtype != PL_DTYPE_NONE)
        return pl_error_set(reterr, -EINVAL, "%s: the function is to make one dataset, not %s",
                            what, one ? "a tensor" : "several things");
    return 0;
}

/* Is it what the function said that it makes? */
static int check(const pl_spec *said, const pl_dataset *made, const pl_dataset *whole,
                 pl_error *reterr)
{
    if (made->runtime != whole->runtime)
        return pl_error_set(reterr, -EINVAL, "the function made a dataset of another runtime");
    if (made->n_components != said->n_of)
        return pl_error_set(reterr, -EINVAL,
                            "the function made elements with %d components, where %d were said",
                            made->n_components, said->n_of);
    for (int i = 0; i < said->n_of; i++) {
        const pl_spec *spec = &made->spec[i], *of = &said->of[i];
        bool known = spec->shape.rank != PL_RANK_UNKNOWN && of->shape.rank != PL_RANK_UNKNOWN;
        if (spec->dtype != of->dtype)
            return pl_error_set(reterr, -EINVAL,
                                "the function made elements whose component %d is %s, where %s "
                                "was said",
                                i, spec->dtype ? pl_dtype_info_of(spec->dtype)->name : "a dataset",
                                of->dtype ? pl_dtype_info_of(of->dtype)->name : "a dataset");
        if (known && !pl_shape_compatible(&spec->shape, &of->shape))
            return pl_error_set(reterr, -EINVAL,
                                "the function made elements whose component %d is %s, where %s "
                                "was said",
                                i, PL_SHAPE_TEXT(&spec->shape), PL_SHAPE_TEXT(&of->shape));
    }
    return 0;
}

/* The function's dataset. */
static int call(pl_stage *stage, pl_called *called, const pl_element *input,
                pl_dataset **ret_dataset, pl_error *reterr)
{
    pl_element given, made = {0};
    int r = pl_element_share(input, &given);
    if (r < 0)
        return pl_pass_fail(stage->pass, r, reterr, "no memory for an element");
    r = pl_called_run(called, stage, &given, &made, reterr);
    pl_element_clear(&given);
    pl_dataset *dataset = r > 0 ? PL_TAKE(pl_element_items(&made)[0].dataset) : NULL;
    pl_element_clear(&made);
    if (r < 0)
        return r;
    r = check(pl_called_spec(called, 0), dataset, stage->dataset, reterr);
    if (r < 0)
        pl_dataset_unref(dataset);
    else
        *ret_dataset = dataset;
    return r;
}

static int open_stage(pl_stage *stage, pl_called *called, pl_lane *lane, pl_error *reterr)
{
    pl_dataset *dataset = NULL;
    int r = call(stage, called, &lane->input, &dataset, reterr);
    if (r < 0)
        return r;
    r = pl_stage_open_round(dataset, stage, lane->number, &lane->stage, reterr);
    pl_dataset_unref(dataset);
    return r;
}

int pl_lane_open(pl_stage *stage, pl_called *called, uint64_t number, pl_element *input,
                 pl_lane **ret_lane, pl_element *ret_bad, pl_error *reterr)
{
    pl_lane *lane = calloc(1, sizeof *lane);
    if (!lane) {
        pl_element_clear(input);
        return pl_pass_fail(stage->pass, -ENOMEM, reterr, "no memory for a dataset's pass");
    }
    lane->number = number;
    lane->input = *input;
    *input = (pl_element){0};
    int r = open_stage(stage, called, lane, reterr);
    if (r == 0) {
        *ret_lane = lane;
        return 0;
    }
    if (pl_pass_later(stage->pass, r)) {
        *input = lane->input;
        lane->input = (pl_element){0};
        r = PL_RETRY_ALONE;
    } else {
        pl_element_pass_on(&lane->input, ret_bad);
    }
    pl_lane_close(stage, lane);
    return r;
}

pl_lane *pl_lane_of_error(uint64_t number, int result, pl_error *error, pl_element *bad)
{
    pl_lane *lane = calloc(1, sizeof *lane);
    if (!lane) {
        pl_element_clear(bad);
        return NULL;
    }
    lane->number = number;
    lane->ended = true;
    pl_lane_put(lane, result, bad, error, 0);
    return lane;
}

void pl_lane_close(pl_stage *stage, pl_lane *lane)
{
    if (!lane)
        return;
    while (pl_lane_first(lane)) {
        pl_element element;
        pl_error error = {0};
        if (pl_lane_take(lane, &stage->pass->headway, &element, &error) != 0)
            pl_element_clear(&element);
        pl_error_done(&error);
    }
    pl_stage_close(lane->stage);
    pl_element_clear(&lane->input);
    free(lane);
}

/* ---- the queue ---- */

void pl_lane_put(pl_lane *lane, int result, pl_element *element, pl_error *error,
                 uint64_t room_bytes)
{
    pl_pulled *last = &lane->queue[(lane->head + lane->n_queued++) % PL_LANE_QUEUE];
    *last = (pl_pulled){.result = result, .element = *element, .room_bytes = room_bytes};
    *element = (pl_element){0};
    if (result < 0 && (last->error = calloc(1, sizeof *error)))
        pl_error_move(last->error, error);
}

int pl_lane_take(pl_lane *lane, pl_headway *headway, pl_element *ret_element, pl_error *reterr)
{
    pl_pulled first = lane->queue[lane->head];
    lane->head = (lane->head + 1) % PL_LANE_QUEUE;
    lane->n_queued--;
    pl_headway_give(headway, first.room_bytes);
    *ret_element = first.element;
    if (first.result < 0 && first.error)
        pl_error_move(reterr, first.error);
    else if (first.result < 0)
        pl_error_set(reterr, -ENOMEM, "out of memory while reporting an error");
    free(first.error);
    return first.result;
}

/* ---- state ---- */

static int save_queue(pl_lane *lane, pl_saver *saver, pl_error *reterr)
{
    int r = pl_save_int(saver, lane->n_queued, reterr);
    for (int i = 0; r == 0 && i < lane->n_queued; i++) {
        const pl_pulled *at = &lane->queue[(lane->head + i) % PL_LANE_QUEUE];
        pl_error none = {.code = -ENOMEM, .message = "out of memory while reporting an error"};
        r = pl_save_int(saver, at->result, reterr);
        if (r == 0 && at->result < 0)
            r = pl_save_error(saver, at->error ? at->error : &none, reterr);
        if (r == 0)
            r = pl_save_element(saver, &at->element, reterr);
    }
    return r;
}

int pl_lane_save(pl_lane *lane, pl_saver *saver, pl_error *reterr)
{
    int r = pl_save_int(saver, (int64_t)lane->number, reterr);
    if (r == 0)
        r = pl_save_int(saver, lane->ended, reterr);
    if (r == 0)
        r = pl_save_int(saver, lane->stage != NULL, reterr);
    if (r == 0 && lane->stage)
        r = pl_save_element(saver, &lane->input, reterr);
    if (r == 0 && lane->stage)
        r = pl_save_stage(saver, lane->stage, reterr);
    return r < 0 ? r : save_queue(lane, saver, reterr);
}

static int load_pulled(pl_stage *stage, pl_lane *lane, pl_loader *loader, pl_error *reterr)
{
    int64_t result = 0;
    pl_element element = {0};
    pl_error error = {0};
    int r = pl_load_int(loader, -INT16_MAX, 1, &result, reterr);
    if (r == 0 && (result == 0 || (result > 0 && !lane->stage)))
        r = pl_load_refuse(reterr, "an element of a dataset's queue is none");
    if (r == 0 && result < 0)
        r = pl_load_error(loader, &error, reterr);
    if (r == 0)
        r = pl_load_element(loader, result < 0 ? NULL : stage->dataset, &element, reterr);
    if (r < 0)
        return r;
    uint64_t bytes = pl_element_bytes(&element) + 1;
    pl_headway_take(&stage->pass->headway, bytes);
    pl_lane_put(lane, (int)result, &element, &error, bytes);
    return 0;
}

static int load(pl_stage *stage, pl_called *called, pl_lane *lane, pl_loader *loader,
                pl_error *reterr)
{
    int64_t number, ended = 0, opened = 0, n = 0;
    int r = pl_load_int(loader, 1, PL_COUNT_MOST, &number, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &ended, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &opened, reterr);
    if (r < 0)
        return r;
    lane->number = (uint64_t)number;
    lane->ended = ended || !opened;
    if (opened)
        r = pl_load_element(loader, stage->dataset->inputs[0], &lane->input, reterr);
    if (r == 0 && opened)
        r = open_stage(stage, called, lane, reterr);
    if (r == 0 && opened)
        r = pl_load_stage(loader, lane->stage, reterr);
    if (r == 0)
        r = pl_load_int(loader, opened ? 0 : 1, opened ? PL_LANE_QUEUE : 1, &n, reterr);
    while (r == 0 && lane->n_queued < n)
        r = load_pulled(stage, lane, loader, reterr);
    return r;
}

int pl_lane_load(pl_stage *stage, pl_called *called, pl_loader *loader, pl_lane **ret_lane,
                 pl_error *reterr)
{
    pl_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return pl_error_set(reterr, -ENOMEM, "no memory for a dataset's pass");
    int r = load(stage, called, lane, loader, reterr);
    if (r < 0) {
        pl_lane_close(stage, lane);
        return r;
    }
    *ret_lane = lane;
    return 0;
}
