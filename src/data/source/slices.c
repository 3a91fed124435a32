/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as elements: all of them as one, or their slices along the first axis. A slice is a view:
 * a tensor in a file is read when it is needed. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/core/stage.h"
#include "data/persist/state.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

typedef struct slices_dataset {
    pl_dataset base;
    pl_tensor **tensors;
} slices_dataset;

typedef struct slices_stage {
    pl_stage base;
    int64_t at;
} slices_stage;

static void free_slices(pl_dataset *dataset)
{
    slices_dataset *own = (slices_dataset *)dataset;
    for (int i = 0; own->tensors && i < dataset->n_components; i++)
        pl_tensor_unref(own->tensors[i]);
    free(own->tensors);
}

static int whole(pl_tensor *tensor, int64_t at, pl_item *ret_item, pl_error *reterr)
{
    (void)at, (void)reterr;
    *ret_item = (pl_item){.tensor = pl_tensor_ref(tensor)};
    return 0;
}

/* A scalar is read at once: a tensor for it would cost more than everything else. */
static int number(pl_tensor *tensor, int64_t at, pl_item *ret_item, pl_error *reterr)
{
    pl_item item = pl_item_scalar(tensor->dtype, 0);
    int r = pl_tensor_read(tensor, &at, &(int64_t){1}, &item.bits, reterr);
    if (r == 0)
        *ret_item = item;
    return r;
}

static int slice(pl_tensor *tensor, int64_t at, pl_item *ret_item, pl_error *reterr)
{
    if (tensor->shape.rank == 1 && tensor->dtype != PL_STRING)
        return number(tensor, at, ret_item, reterr);
    pl_shape shape = {.rank = tensor->shape.rank - 1};
    memcpy(shape.dims, &tensor->shape.dims[1], (size_t)shape.rank * sizeof shape.dims[0]);
    return pl_tensor_wrap(pl_buffer_ref(tensor->buffer), tensor->dtype, &shape, &tensor->strides[1],
                          tensor->offset_bytes + at * tensor->strides[0], &ret_item->tensor,
                          reterr);
}

static int get_by(pl_stage *stage, int64_t at,
                  int (*part)(pl_tensor *tensor, int64_t at, pl_item *ret_item, pl_error *reterr),
                  pl_element *ret_element, pl_error *reterr)
{
    const slices_dataset *own = (const slices_dataset *)stage->dataset;
    pl_element element;
    int r = pl_element_init(&element, own->base.n_components);
    if (r < 0)
        return pl_error_set(reterr, r, "out of memory for an element");
    for (int i = 0; r == 0 && i < own->base.n_components; i++)
        r = part(own->tensors[i], at, &pl_element_items(&element)[i], reterr);
    if (r < 0) {
        pl_element_clear(&element);
        return pl_pass_later(stage->pass, r) ? PL_RETRY_ALONE : r;
    }
    pl_element_name(&element);
    *ret_element = element;
    return 1;
}

static int get_slice(pl_stage *stage, int64_t at, pl_element *ret_element, pl_error *reterr)
{
    return get_by(stage, at, slice, ret_element, reterr);
}

static int get_whole(pl_stage *stage, int64_t at, pl_element *ret_element, pl_error *reterr)
{
    return get_by(stage, at, whole, ret_element, reterr);
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    slices_stage *own = (slices_stage *)stage;
    if (own->at == stage->dataset->cardinality)
        return 0;
    int r = stage->dataset->class->get(stage, own->at, ret_element, reterr);
    own->at += r != PL_RETRY_ALONE;
    return r;
}

static int64_t read_block(pl_stage *stage, int64_t n, char *const *to)
{
    const slices_dataset *own = (const slices_dataset *)stage->dataset;
    int64_t *at = &((slices_stage *)stage)->at, left = stage->dataset->cardinality - *at;
    int64_t begin[PL_RANK_MAX] = {*at}, extent[PL_RANK_MAX];
    extent[0] = n = n < left ? n : left;
    for (int i = 0; i < own->base.n_components; i++) {
        pl_tensor *tensor = own->tensors[i];
        memcpy(&extent[1], &tensor->shape.dims[1], sizeof extent - sizeof extent[0]);
        if (pl_tensor_read(tensor, begin, extent, to[i], NULL) < 0)
            return 0;
    }
    *at += n;
    return n;
}

static bool read_places(pl_stage *stage, const int64_t *places, int64_t n, char *const *to)
{
    const slices_dataset *own = (const slices_dataset *)stage->dataset;
    bool read = true;
    for (int i = 0; read && i < own->base.n_components; i++)
        read = pl_tensor_read_slices(own->tensors[i], places, n, to[i], NULL) == 0;
    return read;
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    return pl_save_int(saver, ((slices_stage *)stage)->at, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    return pl_load_int(loader, 0, stage->dataset->cardinality, &((slices_stage *)stage)->at,
                       reterr);
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    fprintf(to, "n=%" PRId64, dataset->cardinality);
}

static const pl_dataset_class tensors_class = {
    .name = "from_tensors",
    .dataset_bytes = sizeof(slices_dataset),
    .stage_bytes = sizeof(slices_stage),
    .free = free_slices,
    .next = next,
    .get = get_whole,
    .save = save,
    .restore = restore,
    .describe = describe,
};

static const pl_dataset_class slices_class = {
    .name = "from_slices",
    .dataset_bytes = sizeof(slices_dataset),
    .stage_bytes = sizeof(slices_stage),
    .free = free_slices,
    .next = next,
    .get = get_slice,
    .read_block = read_block,
    .read_places = read_places,
    .save = save,
    .restore = restore,
    .describe = describe,
};

static int make(const pl_dataset_class *class, pl_runtime *runtime, pl_tensor *const *tensors,
                int n_tensors, pl_dataset **ret_dataset, pl_error *reterr)
{
    if (n_tensors < 1)
        return pl_error_set(reterr, -EINVAL, "%s: an element has at least one component",
                            class->name);
    int r = pl_dataset_make(class, runtime, NULL, 0, n_tensors, ret_dataset, reterr);
    if (r < 0)
        return r;
    slices_dataset *own = (slices_dataset *)*ret_dataset;
    own->tensors = calloc((size_t)n_tensors, sizeof(pl_tensor *));
    if (!own->tensors) {
        pl_dataset_unref(PL_TAKE(*ret_dataset));
        return pl_error_set(reterr, -ENOMEM, "out of memory for a dataset");
    }
    for (int i = 0; i < n_tensors; i++) {
        own->tensors[i] = pl_tensor_ref(tensors[i]);
        own->base.spec[i] = (pl_spec){.dtype = tensors[i]->dtype, .shape = tensors[i]->shape};
    }
    return 0;
}

int pl_dataset_from_tensors(pl_runtime *runtime, pl_tensor *const *tensors, int n_tensors,
                            pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULLS(tensors, n_tensors, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    int r = make(&tensors_class, runtime, tensors, n_tensors, ret_dataset, reterr);
    if (r == 0)
        (*ret_dataset)->cardinality = 1;
    return r;
}

static int check_slices(pl_tensor *const *tensors, int n_tensors, pl_error *reterr)
{
    for (int i = 0; i < n_tensors; i++) {
        if (tensors[i]->shape.rank == 0)
            return pl_error_set(reterr, -EINVAL,
                                "from_slices: component %d is a scalar, which has "
                                "no slices",
                                i);
        if (tensors[i]->shape.dims[0] != tensors[0]->shape.dims[0])
            return pl_error_set(reterr, -EINVAL,
                                "from_slices: component 0 has %" PRId64
                                " slices, component %d has %" PRId64,
                                tensors[0]->shape.dims[0], i, tensors[i]->shape.dims[0]);
    }
    return 0;
}

int pl_dataset_from_slices(pl_runtime *runtime, pl_tensor *const *tensors, int n_tensors,
                           pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULLS(tensors, n_tensors, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    int r = check_slices(tensors, n_tensors, reterr);
    if (r == 0)
        r = make(&slices_class, runtime, tensors, n_tensors, ret_dataset, reterr);
    if (r < 0)
        return r;
    pl_dataset *dataset = *ret_dataset;
    dataset->cardinality = tensors[0]->shape.dims[0];
    for (int i = 0; i < n_tensors; i++) {
        pl_shape *shape = &dataset->spec[i].shape;
        shape->rank--;
        memmove(&shape->dims[0], &shape->dims[1], (size_t)shape->rank * sizeof shape->dims[0]);
    }
    return 0;
}
