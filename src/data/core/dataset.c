/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that all datasets share: components, inputs, a name, a reference count. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "data/core/stage.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "out of memory for a dataset");
}

/* ---- specs ---- */

void pl_spec_clear(pl_spec *spec)
{
    for (int i = 0; i < spec->n_of; i++)
        pl_spec_clear((pl_spec *)&spec->of[i]);
    free((pl_spec *)spec->of);
    *spec = (pl_spec){0};
}

int pl_spec_copy(pl_spec *to, const pl_spec *from)
{
    *to = *from;
    to->of = NULL;
    to->n_of = 0;
    if (from->n_of == 0)
        return 0;
    pl_spec *of = calloc((size_t)from->n_of, sizeof *of);
    if (!of)
        return -ENOMEM;
    to->of = of;
    for (; to->n_of < from->n_of; to->n_of++)
        if (pl_spec_copy(&of[to->n_of], &from->of[to->n_of]) < 0) {
            pl_spec_clear(to);
            return -ENOMEM;
        }
    return 0;
}

static bool fits(const pl_shape *spec, const pl_shape *shape)
{
    return spec->rank == PL_RANK_UNKNOWN || pl_shape_compatible(spec, shape);
}

uint64_t pl_spec_bytes(const pl_spec *spec)
{
    int64_t bytes;
    int r = pl_tensor_size(spec->dtype, &spec->shape, &bytes, NULL);
    return r < 0 ? 0 : (uint64_t)bytes;
}

int pl_spec_check(const pl_spec *spec, const pl_item *item, int component, pl_error *reterr)
{
    if ((item->dataset != NULL) != (spec->dtype == PL_DTYPE_NONE))
        return pl_error_set(reterr, -EINVAL, "component %d is a %s, not a %s", component,
                            item->dataset ? "dataset" : "tensor",
                            item->dataset ? "tensor" : "dataset");
    if (item->dataset)
        return 0;
    pl_shape shape = pl_item_shape(item);
    if (pl_item_dtype(item) != spec->dtype)
        return pl_error_set(reterr, -EINVAL, "component %d is %s, but its spec says %s", component,
                            pl_dtype_info_of(pl_item_dtype(item))->name,
                            pl_dtype_info_of(spec->dtype)->name);
    if (!fits(&spec->shape, &shape))
        return pl_error_set(reterr, -EINVAL, "component %d has shape %s, but its spec says %s",
                            component, PL_SHAPE_TEXT(&shape), PL_SHAPE_TEXT(&spec->shape));
    return 0;
}

/* ---- making ---- */

static int take_inputs(pl_dataset *dataset, pl_dataset *const *inputs, int n_inputs,
                       pl_error *reterr)
{
    int64_t n_stages = 1;
    dataset->inputs = calloc((size_t)n_inputs + 1, sizeof(pl_dataset *));
    if (!dataset->inputs)
        return no_memory(reterr);
    for (; dataset->n_inputs < n_inputs; dataset->n_inputs++) {
        pl_dataset *input = inputs[dataset->n_inputs];
        if (input->runtime != dataset->runtime)
            return pl_error_set(reterr, -EINVAL, "%s: '%s' is of another runtime",
                                dataset->class->name, pl_dataset_name(input));
        dataset->inputs[dataset->n_inputs] = pl_dataset_ref(input);
        n_stages += input->n_stages;
        if (dataset->depth < input->depth)
            dataset->depth = input->depth;
    }
    if (n_stages > PL_DATASET_STAGES_MAX)
        return pl_error_set(reterr, -EINVAL,
                            "%s: a pass would have %" PRId64 " stages open at once, and the most "
                            "are %d: a dataset that comes in several times is opened as often; "
                            "repeat it, or join datasets by flat_map or interleave over what tells "
                            "them apart",
                            dataset->class->name, n_stages, PL_DATASET_STAGES_MAX);
    dataset->n_stages = (int)n_stages;
    if (dataset->depth++ == PL_DATASET_DEPTH_MAX)
        return pl_error_set(reterr, -EINVAL,
                            "%s: it would be the last of more than %d stages in a row: many "
                            "datasets are joined by flat_map or interleave over what tells them "
                            "apart",
                            dataset->class->name, PL_DATASET_DEPTH_MAX);
    return 0;
}

int pl_dataset_make(const pl_dataset_class *class, pl_runtime *runtime, pl_dataset *const *inputs,
                    int n_inputs, int n_components, pl_dataset **ret_dataset, pl_error *reterr)
{
    pl_dataset *dataset = calloc(1, class->dataset_bytes);
    if (!dataset)
        return no_memory(reterr);
    dataset->class = class;
    atomic_init(&dataset->n_refs, 1);
    dataset->runtime = pl_runtime_ref(runtime);
    dataset->cardinality = PL_CARDINALITY_UNKNOWN;
    dataset->spec = calloc((size_t)n_components + 1, sizeof *dataset->spec);
    int r = dataset->spec ? take_inputs(dataset, inputs, n_inputs, reterr) : no_memory(reterr);
    if (r < 0) {
        pl_dataset_unref(dataset);
        return r;
    }
    dataset->n_components = n_components;
    *ret_dataset = dataset;
    return 0;
}

int pl_dataset_make_over(const pl_dataset_class *class, pl_dataset *input, pl_dataset **ret_dataset,
                         pl_error *reterr)
{
    pl_dataset *dataset;
    int r =
        pl_dataset_make(class, input->runtime, &input, 1, input->n_components, &dataset, reterr);
    if (r < 0)
        return r;
    dataset->cardinality = input->cardinality;
    for (int i = 0; r == 0 && i < input->n_components; i++)
        r = pl_spec_copy(&dataset->spec[i], &input->spec[i]);
    if (r < 0) {
        pl_dataset_unref(dataset);
        return no_memory(reterr);
    }
    *ret_dataset = dataset;
    return 0;
}

pl_dataset *pl_dataset_ref(pl_dataset *dataset)
{
    PL_NULL_GIVES(dataset, NULL);
    atomic_fetch_add_explicit(&dataset->n_refs, 1, memory_order_relaxed);
    return dataset;
}

static void free_dataset(pl_dataset *dataset)
{
    if (dataset->class->free)
        dataset->class->free(dataset);
    for (int i = 0; i < dataset->n_components; i++)
        pl_spec_clear(&dataset->spec[i]);
    free(dataset->spec);
    for (int i = 0; i < dataset->n_inputs; i++)
        pl_dataset_unref(dataset->inputs[i]);
    free(dataset->inputs);
    free(dataset->name);
    pl_runtime_unref(dataset->runtime);
    free(dataset);
}

void pl_dataset_unref(pl_dataset *dataset)
{
    if (dataset && atomic_fetch_sub_explicit(&dataset->n_refs, 1, memory_order_acq_rel) == 1)
        free_dataset(dataset);
}

/* ---- what it is ---- */

int pl_dataset_n_components(const pl_dataset *dataset)
{
    PL_NULL_GIVES(dataset, 0);
    return dataset->n_components;
}

const pl_spec *pl_dataset_spec(const pl_dataset *dataset, int component)
{
    PL_NULL_GIVES(dataset, NULL);
    return component >= 0 && component < dataset->n_components ? &dataset->spec[component] : NULL;
}

int64_t pl_dataset_cardinality(const pl_dataset *dataset)
{
    PL_NULL_GIVES(dataset, PL_CARDINALITY_UNKNOWN);
    return dataset->cardinality;
}

bool pl_dataset_has_places(const pl_dataset *dataset)
{
    while (dataset->class->get && dataset->cardinality >= 0 && dataset->n_inputs > 0)
        dataset = dataset->inputs[0];
    return dataset->class->get && dataset->cardinality >= 0;
}

int pl_dataset_set_name(pl_dataset *dataset, const char *name, pl_error *reterr)
{
    PL_NOT_NULL(dataset, reterr);
    PL_NOT_NULL(name, reterr);
    char *copy = strdup(name);
    if (!copy)
        return no_memory(reterr);
    free(dataset->name);
    dataset->name = copy;
    return 0;
}

const char *pl_dataset_name(const pl_dataset *dataset)
{
    PL_NULL_GIVES(dataset, NULL);
    return dataset->name ? dataset->name : dataset->class->name;
}
