/* SPDX-License-Identifier: Apache-2.0 */
/* The slices of each element along the first axis. They are copies: a view would keep the
 * whole batch in memory while one of its rows is in a buffer. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "data/core/stage.h"
#include "data/persist/state.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/strings.h"
#include "tensor/tensor.h"

typedef struct unbatch_stage {
    pl_stage base;
    pl_element batch; /* the one whose rows are given out */
    int64_t at, n;    /* its rows */
} unbatch_stage;

/* ---- rows ---- */

static int copy_strings(pl_tensor *row, pl_runtime *runtime, pl_tensor **ret_tensor,
                        pl_error *reterr)
{
    pl_strings strings;
    int r = pl_strings_pin(&strings, row, reterr);
    if (r < 0)
        return r;
    uint64_t n_bytes = 0;
    for (int64_t i = 0; i < strings.n; i++)
        n_bytes += pl_strings_at(&strings, i).n;
    pl_strings_maker maker = {0};
    r = pl_strings_begin(&maker, runtime, &row->shape, n_bytes, "unbatch", reterr);
    for (int64_t i = 0; r == 0 && i < strings.n; i++) {
        pl_string string = pl_strings_at(&strings, i);
        if (string.n > 0)
            memcpy(pl_strings_add(&maker, string.n), string.data, string.n);
        else
            pl_strings_add(&maker, 0);
    }
    pl_strings_unpin(&strings);
    return r < 0 ? r : pl_strings_end(&maker, ret_tensor, reterr);
}

static int copy_numbers(pl_tensor *row, pl_runtime *runtime, pl_tensor **ret_tensor,
                        pl_error *reterr)
{
    pl_buffer *buffer;
    void *data;
    static const int64_t nowhere[PL_RANK_MAX];
    int r = pl_buffer_new(runtime->pool, pl_tensor_bytes(row), "unbatch", &buffer, &data, reterr);
    if (r < 0)
        return r;
    r = pl_tensor_read(row, nowhere, row->shape.dims, data, reterr);
    pl_buffer_unpin(buffer);
    if (r < 0) {
        pl_buffer_unref(buffer);
        return r;
    }
    return pl_tensor_wrap(buffer, row->dtype, &row->shape, NULL, 0, ret_tensor, reterr);
}

static int row_of(pl_tensor *batch, int64_t at, pl_runtime *runtime, pl_item *ret_item,
                  pl_error *reterr)
{
    pl_shape shape = {.rank = batch->shape.rank - 1};
    memcpy(shape.dims, &batch->shape.dims[1], (size_t)shape.rank * sizeof shape.dims[0]);
    if (shape.rank == 0 && batch->dtype != PL_STRING) {
        ret_item->dtype = batch->dtype;
        return pl_tensor_read(batch, &at, &(int64_t){1}, &ret_item->bits, reterr);
    }
    pl_tensor *view;
    int r = pl_tensor_wrap(pl_buffer_ref(batch->buffer), batch->dtype, &shape, &batch->strides[1],
                           batch->offset_bytes + at * batch->strides[0], &view, reterr);
    if (r < 0)
        return r;
    r = (batch->dtype == PL_STRING ? copy_strings : copy_numbers)(view, runtime, &ret_item->tensor,
                                                                  reterr);
    pl_tensor_unref(view);
    return r;
}

static int next_row(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    unbatch_stage *own = (unbatch_stage *)stage;
    const pl_item *batch = pl_element_peek(&own->batch);
    pl_element row;
    int r = pl_element_init(&row, own->batch.n);
    for (int i = 0; r == 0 && i < own->batch.n; i++)
        r = row_of(batch[i].tensor, own->at, stage->pass->runtime, &pl_element_items(&row)[i],
                   reterr);
    if (r < 0) {
        pl_element_clear(&row);
        if (pl_pass_later(stage->pass, r))
            return PL_RETRY_ALONE;
        own->at++;
        return pl_stage_fail_as(ret_element, &own->batch, r);
    }
    own->at++;
    row.n_items = 0;
    row.origin = own->batch.origin ? pl_origin_ref(own->batch.origin) : NULL;
    row.offset = own->batch.offset;
    *ret_element = row;
    return 1;
}

/* ---- batches ---- */

/* How many rows it has: all components equally many. */
static int count(const pl_element *batch, int64_t *ret_n, pl_error *reterr)
{
    const pl_item *items = pl_element_peek(batch);
    for (int i = 0; i < batch->n; i++) {
        pl_shape shape = pl_item_shape(&items[i]);
        if (shape.rank == 0)
            return pl_error_set(reterr, -EINVAL, "component %d is a scalar, which has no slices",
                                i);
        if (i > 0 && shape.dims[0] != *ret_n)
            return pl_error_set(reterr, -EINVAL,
                                "component 0 has %" PRId64 " slices, component %d has %" PRId64,
                                *ret_n, i, shape.dims[0]);
        *ret_n = shape.dims[0];
    }
    return 0;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    unbatch_stage *own = (unbatch_stage *)stage;
    while (own->at == own->n) {
        pl_element_clear(&own->batch);
        own->at = own->n = 0;
        pl_element batch;
        int r = pl_stage_next(stage->inputs[0], &batch, reterr);
        if (r <= 0)
            return r;
        int64_t n = 0;
        r = count(&batch, &n, reterr);
        if (r < 0)
            return pl_stage_spoil(stage, &batch, ret_element, r);
        pl_stage_counted(stage, &batch);
        own->batch = batch;
        own->n = n;
    }
    return next_row(stage, ret_element, reterr);
}

static void close_unbatch(pl_stage *stage)
{
    pl_element_clear(&((unbatch_stage *)stage)->batch);
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    unbatch_stage *own = (unbatch_stage *)stage;
    int r = pl_save_int(saver, own->n - own->at, reterr);
    if (r < 0 || own->at == own->n)
        return r;
    r = pl_save_int(saver, own->at, reterr);
    return r < 0 ? r : pl_save_element(saver, &own->batch, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    unbatch_stage *own = (unbatch_stage *)stage;
    int64_t n_left = 0, n = 0;
    int r = pl_load_count(loader, &n_left, reterr);
    if (r < 0 || n_left == 0)
        return r;
    r = pl_load_count(loader, &own->at, reterr);
    if (r == 0)
        r = pl_load_element(loader, stage->dataset->inputs[0], &own->batch, reterr);
    if (r == 0)
        r = count(&own->batch, &n, reterr);
    own->n = own->at + n_left;
    if (r == 0 && n != own->n)
        r = pl_error_set(reterr, PL_ECORRUPT, "unbatch: row %" PRId64 " of a batch of %" PRId64,
                         own->n, n);
    if (r < 0)
        own->at = own->n = 0;
    return r;
}

static const pl_dataset_class unbatch_class = {
    .name = "unbatch",
    .dataset_bytes = sizeof(pl_dataset),
    .stage_bytes = sizeof(unbatch_stage),
    .next = next,
    .close = close_unbatch,
    .save = save,
    .restore = restore,
};

/* A row's spec; *rows is what is known of their number. */
static int spec_of(pl_spec *spec, int component, int64_t *rows, pl_error *reterr)
{
    pl_shape *shape = &spec->shape;
    if (spec->dtype == PL_DTYPE_NONE)
        return pl_error_set(reterr, -EINVAL, "unbatch: component %d is a dataset", component);
    if (shape->rank == 0)
        return pl_error_set(reterr, -EINVAL,
                            "unbatch: component %d is a scalar, which has no slices", component);
    if (shape->rank == PL_RANK_UNKNOWN)
        return 0;
    if (shape->dims[0] != PL_UNKNOWN && *rows != PL_UNKNOWN && shape->dims[0] != *rows)
        return pl_error_set(reterr, -EINVAL,
                            "unbatch: component %d has %" PRId64 " slices, another has %" PRId64,
                            component, shape->dims[0], *rows);
    if (shape->dims[0] != PL_UNKNOWN)
        *rows = shape->dims[0];
    shape->rank--;
    memmove(&shape->dims[0], &shape->dims[1], (size_t)shape->rank * sizeof shape->dims[0]);
    return 0;
}

int pl_dataset_unbatch(pl_dataset *input, pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    pl_dataset *dataset;
    int r = pl_dataset_make_over(&unbatch_class, input, &dataset, reterr);
    if (r < 0)
        return r;
    int64_t rows = PL_UNKNOWN;
    for (int i = 0; r == 0 && i < dataset->n_components; i++)
        r = spec_of(&dataset->spec[i], i, &rows, reterr);
    if (r < 0) {
        pl_dataset_unref(dataset);
        return r;
    }
    if (input->cardinality >= 0 &&
        (rows == PL_UNKNOWN ||
         __builtin_mul_overflow(input->cardinality, rows, &dataset->cardinality)))
        dataset->cardinality = PL_CARDINALITY_UNKNOWN;
    *ret_dataset = dataset;
    return 0;
}
