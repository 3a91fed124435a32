/* SPDX-License-Identifier: Apache-2.0 */
/* Combines datasets: an element has the components of one element of each.
 *
 * With a bad element the other inputs' elements at its place are dropped too, so that the inputs stay
 * aligned. */
#include <errno.h>
#include <stdlib.h>

#include "data/core/stage.h"
#include "data/persist/state.h"

typedef struct zip_stage {
    pl_stage base;
    pl_element *row; /* one of each input */
    int64_t n_row;   /* inputs that were pulled for it */
    pl_error error;  /* the first of the row; code 0: it is good */
    bool ended;
} zip_stage;

static int open_zip(pl_stage *stage, pl_error *reterr)
{
    zip_stage *own = (zip_stage *)stage;
    own->row = calloc((size_t)stage->dataset->n_inputs, sizeof *own->row);
    return own->row ? 0 : pl_error_set(reterr, -ENOMEM, "out of memory for 'zip'");
}

static void close_zip(pl_stage *stage)
{
    zip_stage *own = (zip_stage *)stage;
    for (int64_t i = 0; i < own->n_row; i++)
        pl_element_clear(&own->row[i]);
    free(own->row);
}

static void drop_row(pl_stage *stage)
{
    zip_stage *own = (zip_stage *)stage;
    for (int64_t i = 0; i < own->n_row; i++)
        pl_stage_dropped(stage, &own->row[i]);
    own->n_row = 0;
}

/* Pulls every input, even if one fails, unless the pass ends. */
static int pull(pl_stage *stage, pl_error *reterr)
{
    zip_stage *own = (zip_stage *)stage;
    while (own->n_row < stage->dataset->n_inputs) {
        pl_element element = {0};
        pl_error error = {0};
        int r = pl_stage_next(stage->inputs[own->n_row], &element, &error);
        if (r == 0)
            own->ended = true;
        if (r == 0 || (r < 0 && (r != PL_REPORTED || pl_pass_is_over(stage->pass)))) {
            pl_error_move(reterr, &error);
            return r;
        }
        if (r < 0 && own->error.code == 0)
            pl_error_move(&own->error, &error);
        pl_error_done(&error);
        own->row[own->n_row++] = r > 0 ? element : (pl_element){.offset = -1};
    }
    return 1;
}

static int join(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    zip_stage *own = (zip_stage *)stage;
    pl_element made;
    int r = pl_element_init(&made, stage->dataset->n_components);
    if (r < 0)
        return pl_pass_fail(stage->pass, r, reterr, "out of memory for an element");
    made.n_items = 0;
    pl_item *to = pl_element_items(&made);
    for (int64_t i = 0; i < own->n_row; i++) {
        pl_item *from = pl_element_items(&own->row[i]);
        for (int k = 0; k < own->row[i].n; k++) {
            *to++ = from[k];
            from[k] = (pl_item){0};
        }
        pl_element_pass_on(&own->row[i], &made);
        pl_element_clear(&own->row[i]);
    }
    own->n_row = 0;
    *ret_element = made;
    return 1;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    zip_stage *own = (zip_stage *)stage;
    int r = own->ended ? 0 : pull(stage, reterr);
    if (r < 0)
        return r;
    if (r > 0 && own->error.code == 0)
        return join(stage, ret_element, reterr);
    drop_row(stage);
    if (own->error.code == 0)
        return 0;
    pl_error_move(reterr, &own->error);
    return pl_policy_may_skip(stage->policy, reterr->code)
               ? pl_stage_fail_as(ret_element, NULL, reterr->code)
               : PL_REPORTED;
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    const zip_stage *own = (const zip_stage *)stage;
    int r = pl_save_int(saver, own->n_row, reterr);
    for (int64_t i = 0; r == 0 && i < own->n_row; i++) {
        r = pl_save_int(saver, own->row[i].n > 0, reterr);
        if (r == 0 && own->row[i].n > 0)
            r = pl_save_element(saver, &own->row[i], reterr);
    }
    if (r == 0)
        r = pl_save_int(saver, own->ended, reterr);
    return r < 0 ? r : pl_save_error(saver, &own->error, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    zip_stage *own = (zip_stage *)stage;
    int64_t n = 0, flag = 0;
    int r = pl_load_int(loader, 0, stage->dataset->n_inputs, &n, reterr);
    while (r == 0 && own->n_row < n) {
        r = pl_load_int(loader, 0, 1, &flag, reterr);
        if (r == 0 && flag)
            r = pl_load_element(loader, stage->dataset->inputs[own->n_row], &own->row[own->n_row],
                                reterr);
        own->n_row += r == 0;
    }
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &flag, reterr);
    own->ended = flag;
    if (r == 0)
        r = pl_load_error(loader, &own->error, reterr);
    return r;
}

static const pl_dataset_class zip_class = {
    .name = "zip",
    .dataset_bytes = sizeof(pl_dataset),
    .stage_bytes = sizeof(zip_stage),
    .open = open_zip,
    .next = next,
    .close = close_zip,
    .save = save,
    .restore = restore,
    .in_step = true,
};

/* The fewest. */
static int64_t cardinality_of(pl_dataset *const *inputs, int n_inputs)
{
    int64_t n = PL_CARDINALITY_INFINITE;
    for (int i = 0; i < n_inputs; i++) {
        int64_t each = inputs[i]->cardinality;
        if (each == PL_CARDINALITY_UNKNOWN)
            return each;
        if (each >= 0 && (n < 0 || each < n))
            n = each;
    }
    return n;
}

int pl_dataset_zip(pl_dataset *const *inputs, int n_inputs, pl_dataset **ret_dataset,
                   pl_error *reterr)
{
    PL_NOT_NULLS(inputs, n_inputs, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    if (n_inputs < 1)
        return pl_error_set(reterr, -EINVAL, "zip: of no datasets");
    int n = 0;
    for (int i = 0; i < n_inputs; i++)
        n += inputs[i]->n_components;
    pl_dataset *dataset;
    int r = pl_dataset_make(&zip_class, inputs[0]->runtime, inputs, n_inputs, n, &dataset, reterr);
    if (r < 0)
        return r;
    dataset->cardinality = cardinality_of(inputs, n_inputs);
    n = 0;
    for (int i = 0; r == 0 && i < n_inputs; i++)
        for (int k = 0; r == 0 && k < inputs[i]->n_components; k++)
            r = pl_spec_copy(&dataset->spec[n++], &inputs[i]->spec[k]);
    if (r < 0) {
        pl_dataset_unref(dataset);
        return pl_error_set(reterr, r, "out of memory for a dataset");
    }
    *ret_dataset = dataset;
    return 0;
}
