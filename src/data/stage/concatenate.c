/* SPDX-License-Identifier: Apache-2.0 */
/* All elements of one dataset, then all of another. */
#include <errno.h>

#include "data/core/stage.h"
#include "data/persist/state.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

typedef struct concatenate_stage {
    pl_stage base;
    int64_t at; /* the input that it is at; 2: behind both */
} concatenate_stage;

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    concatenate_stage *own = (concatenate_stage *)stage;
    for (; own->at < stage->dataset->n_inputs; own->at++) {
        int r = pl_stage_next(stage->inputs[own->at], ret_element, reterr);
        if (r != 0)
            return r;
    }
    return 0;
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    return pl_save_int(saver, ((concatenate_stage *)stage)->at, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    return pl_load_int(loader, 0, stage->dataset->n_inputs, &((concatenate_stage *)stage)->at,
                       reterr);
}

static const pl_dataset_class concatenate_class = {
    .name = "concatenate",
    .dataset_bytes = sizeof(pl_dataset),
    .stage_bytes = sizeof(concatenate_stage),
    .next = next,
    .save = save,
    .restore = restore,
};

/* A spec that covers both: a dimension in which they differ is unknown. */
static void widen(pl_shape *shape, const pl_shape *other)
{
    if (shape->rank != other->rank)
        shape->rank = PL_RANK_UNKNOWN;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] != other->dims[i])
            shape->dims[i] = PL_UNKNOWN;
}

static const char *kind_of(const pl_spec *spec)
{
    return spec->dtype ? pl_dtype_info_of(spec->dtype)->name : "a dataset";
}

static int check(const pl_dataset *input, const pl_dataset *other, pl_error *reterr)
{
    if (input->n_components != other->n_components)
        return pl_error_set(reterr, -EINVAL,
                            "concatenate: elements with %d components, then with %d",
                            input->n_components, other->n_components);
    for (int i = 0; i < input->n_components; i++)
        if (input->spec[i].dtype != other->spec[i].dtype)
            return pl_error_set(reterr, -EINVAL, "concatenate: component %d is %s, then %s", i,
                                kind_of(&input->spec[i]), kind_of(&other->spec[i]));
    return 0;
}

static int64_t cardinality_of(int64_t a, int64_t b)
{
    int64_t sum;
    if (a == PL_CARDINALITY_INFINITE || b == PL_CARDINALITY_INFINITE)
        return PL_CARDINALITY_INFINITE;
    if (a < 0 || b < 0)
        return PL_CARDINALITY_UNKNOWN;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int pl_dataset_concatenate(pl_dataset *input, pl_dataset *other, pl_dataset **ret_dataset,
                           pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(other, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    pl_dataset *both[] = {input, other}, *dataset;
    int r = check(input, other, reterr);
    if (r == 0)
        r = pl_dataset_make(&concatenate_class, input->runtime, both, 2, input->n_components,
                            &dataset, reterr);
    if (r < 0)
        return r;
    dataset->cardinality = cardinality_of(input->cardinality, other->cardinality);
    for (int i = 0; r == 0 && i < input->n_components; i++) {
        r = pl_spec_copy(&dataset->spec[i], &input->spec[i]);
        widen(&dataset->spec[i].shape, &other->spec[i].shape);
    }
    if (r < 0) {
        pl_dataset_unref(dataset);
        return pl_error_set(reterr, r, "out of memory for a dataset");
    }
    *ret_dataset = dataset;
    return 0;
}
