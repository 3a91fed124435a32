/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks elements of different shapes along a new first axis, each padded to the largest of them, or
 * to a given shape.
 *
 * The size of a batch is known only with its last element, so the elements are held until then: a
 * batch costs its elements and itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/core/claimed_array.h"
#include "data/core/stage.h"
#include "data/persist/state.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/strings.h"
#include "tensor/tensor.h"

typedef struct padded_dataset {
    pl_dataset base;
    int64_t n;
    bool drop_remainder;
    pl_shape *shapes;    /* by component, of an element; PL_UNKNOWN: as the largest */
    pl_tensor **padding; /* by component, scalars; NULL: 0, or an empty string */
} padded_dataset;

typedef struct padded_stage {
    pl_stage base;
    pl_claimed_array elements;
    bool ended;
} padded_stage;

static const padded_dataset *dataset_of(const pl_stage *stage)
{
    return (const padded_dataset *)stage->dataset;
}

static void free_padded(pl_dataset *dataset)
{
    padded_dataset *own = (padded_dataset *)dataset;
    for (int i = 0; own->padding && i < dataset->n_components; i++)
        pl_tensor_unref(own->padding[i]);
    free(own->padding);
    free(own->shapes);
}

static void close_padded(pl_stage *stage)
{
    pl_claimed_array_clear_elements(&((padded_stage *)stage)->elements);
}

/* ---- gathering ---- */

static int check_item(const pl_shape *wanted, const pl_item *item, int component, pl_error *reterr)
{
    pl_shape shape = pl_item_shape(item);
    if (shape.rank != wanted->rank)
        return pl_error_set(reterr, -EINVAL,
                            "component %d has shape %s, and is to be padded to %s: not as many "
                            "axes",
                            component, PL_SHAPE_TEXT(&shape), PL_SHAPE_TEXT(wanted));
    for (int i = 0; i < shape.rank; i++)
        if (wanted->dims[i] != PL_UNKNOWN && shape.dims[i] > wanted->dims[i]) {
            pl_error_set(reterr, -EINVAL,
                         "component %d has shape %s, which is larger than %s, to which it is to be "
                         "padded",
                         component, PL_SHAPE_TEXT(&shape), PL_SHAPE_TEXT(wanted));
            pl_error_of_kind(reterr, PL_KIND_TOO_LARGE_TO_PAD);
            return -EINVAL;
        }
    return 0;
}

static int check(const pl_stage *stage, const pl_element *element, pl_error *reterr)
{
    int r = 0;
    for (int i = 0; r == 0 && i < element->n; i++)
        r = check_item(&dataset_of(stage)->shapes[i], &pl_element_peek(element)[i], i, reterr);
    return r;
}

static PL_COLD int refuse(pl_stage *stage, int code, pl_error *reterr)
{
    if (pl_pass_later(stage->pass, code))
        return PL_RETRY_ALONE;
    pl_error_reword(reterr, "no room for a batch of %" PRId64 " elements: %s",
                    ((padded_stage *)stage)->elements.n, pl_error_reason(reterr));
    pl_stage_locate(stage, code, reterr);
    return pl_pass_end(stage->pass, reterr);
}

static int gather(pl_stage *stage, pl_element *ret_bad, pl_error *reterr)
{
    padded_stage *own = (padded_stage *)stage;
    while (!own->ended && own->elements.n < dataset_of(stage)->n) {
        pl_element element;
        int r = pl_claimed_array_room(&own->elements, stage->pass->runtime->memory, sizeof element,
                                      "padded_batch", reterr);
        if (r < 0)
            return refuse(stage, r, reterr);
        r = pl_stage_next(stage->inputs[0], &element, reterr);
        if (r < 0)
            return r;
        own->ended = r == 0;
        if (r == 0)
            break;
        r = check(stage, &element, reterr);
        if (r < 0)
            return pl_stage_spoil(stage, &element, ret_bad, r);
        pl_claimed_array_add_element(&own->elements, &element);
    }
    return 0;
}

/* ---- the batch ---- */

/* The batch's shape: for each axis the given size, or the largest of an element. */
static pl_shape batch_shape(const pl_stage *stage, int component)
{
    const pl_claimed_array *elements = &((const padded_stage *)stage)->elements;
    const pl_shape *said = &dataset_of(stage)->shapes[component];
    pl_shape shape = {.rank = said->rank + 1, .dims = {elements->n}};
    for (int i = 0; i < said->rank; i++) {
        shape.dims[i + 1] = said->dims[i] == PL_UNKNOWN ? 0 : said->dims[i];
        for (int64_t k = 0; said->dims[i] == PL_UNKNOWN && k < elements->n; k++) {
            pl_shape of =
                pl_item_shape(&pl_element_items(pl_claimed_array_element(elements, k))[component]);
            if (of.dims[i] > shape.dims[i + 1])
                shape.dims[i + 1] = of.dims[i];
        }
    }
    return shape;
}

static void fill(char *data, int64_t bytes, const char *item, size_t item_bytes)
{
    bool zero = true;
    for (size_t i = 0; i < item_bytes; i++)
        zero = zero && item[i] == 0;
    if (zero)
        memset(data, 0, (size_t)bytes);
    for (int64_t at = 0; !zero && at < bytes; at += (int64_t)item_bytes)
        memcpy(data + at, item, item_bytes);
}

/* A tensor that is read into its place in the batch: axes from `whole` on at once. */
typedef struct copying {
    pl_tensor *tensor;
    int whole;
    const int64_t *strides; /* of the batch, by axis of the tensor */
    int64_t begin[PL_RANK_MAX], extent[PL_RANK_MAX];
} copying;

static int copy_axis(copying *own, int axis, char *to, pl_error *reterr)
{
    if (axis >= own->whole)
        return pl_tensor_read(own->tensor, own->begin, own->extent, to, reterr);
    int r = 0;
    for (int64_t i = 0; r == 0 && i < own->tensor->shape.dims[axis]; i++) {
        own->begin[axis] = i;
        r = copy_axis(own, axis + 1, to + i * own->strides[axis], reterr);
    }
    return r;
}

/* Not brought into memory as a whole: it may be a slice of a file. `padded` and `strides`
 * are the batch's behind its first axis. */
static int copy_item(char *to, const pl_item *item, const int64_t *padded, const int64_t *strides,
                     pl_error *reterr)
{
    if (!item->tensor)
        return pl_item_read(item, to, reterr);
    const pl_shape *shape = &item->tensor->shape;
    copying own = {.tensor = item->tensor, .whole = shape->rank - 1, .strides = strides};
    while (own.whole > 0 && shape->dims[own.whole] == padded[own.whole])
        own.whole--;
    for (int i = 0; i < shape->rank; i++) {
        own.extent[i] = i < own.whole ? 1 : shape->dims[i];
        if (shape->dims[i] == 0)
            return 0;
    }
    return copy_axis(&own, 0, to, reterr);
}

static int join_numbers(pl_stage *stage, int component, const pl_shape *shape,
                        pl_tensor **ret_tensor, pl_error *reterr)
{
    const pl_claimed_array *elements = &((padded_stage *)stage)->elements;
    pl_dtype dtype = stage->dataset->spec[component].dtype;
    size_t item_bytes = pl_dtype_info_of(dtype)->item_bytes;
    pl_tensor *padding = dataset_of(stage)->padding[component];
    char item[16] = {0};
    int64_t bytes = 0, strides[PL_RANK_MAX];
    pl_buffer *buffer;
    void *data;
    int r = padding ? pl_item_read(&(pl_item){.tensor = padding}, item, reterr) : 0;
    if (r == 0)
        r = pl_shape_bytes(shape, item_bytes, &bytes, reterr);
    if (r == 0)
        r = pl_buffer_new(stage->pass->runtime->pool, (uint64_t)bytes, "padded_batch", &buffer,
                          &data, reterr);
    if (r < 0)
        return r;
    pl_shape_strides(shape, item_bytes, strides);
    fill(data, bytes, item, item_bytes);
    for (int64_t i = 0; r == 0 && i < elements->n; i++) {
        pl_item *from = &pl_element_items(pl_claimed_array_element(elements, i))[component];
        r = copy_item((char *)data + i * strides[0], from, &shape->dims[1], &strides[1], reterr);
    }
    pl_buffer_unpin(buffer);
    if (r < 0) {
        pl_buffer_unref(buffer);
        return r;
    }
    return pl_tensor_wrap(buffer, dtype, shape, NULL, 0, ret_tensor, reterr);
}

/* ---- strings ---- */

/* The number of an element in a tensor of its own shape, by its number in a padded one; -1: it is
 * padding. */
static int64_t number_within(const pl_shape *shape, const int64_t *padded, int64_t number)
{
    int64_t within = 0, step = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        int64_t at = number % padded[i];
        number /= padded[i];
        if (at >= shape->dims[i])
            return -1;
        within += at * step;
        step *= shape->dims[i];
    }
    return within;
}

/* Adds a row to the maker; with that NULL, its bytes to *n_bytes. */
static int add_row(pl_tensor *tensor, const int64_t *padded, int64_t n_padded, pl_string padding,
                   pl_strings_maker *maker, uint64_t *n_bytes, pl_error *reterr)
{
    pl_strings strings;
    int r = pl_strings_pin(&strings, tensor, reterr);
    for (int64_t i = 0; r == 0 && i < n_padded; i++) {
        int64_t within = number_within(&tensor->shape, padded, i);
        pl_string string = within < 0 ? padding : pl_strings_at(&strings, within);
        *n_bytes += string.n;
        char *to = maker ? pl_strings_add(maker, string.n) : NULL;
        if (to && string.n > 0)
            memcpy(to, string.data, string.n);
    }
    if (r == 0)
        pl_strings_unpin(&strings);
    return r;
}

static int join_rows(pl_stage *stage, int component, const pl_shape *shape, pl_string padding,
                     pl_tensor **ret_tensor, pl_error *reterr)
{
    const pl_claimed_array *elements = &((padded_stage *)stage)->elements;
    pl_strings_maker maker = {0};
    uint64_t n_bytes = 0;
    int64_t n_padded = 1;
    int r = 0;
    for (int i = 1; i < shape->rank; i++)
        n_padded *= shape->dims[i];
    for (int pass = 0; r == 0 && pass < 2; pass++) {
        if (pass == 1)
            r = pl_strings_begin(&maker, stage->pass->runtime, shape, n_bytes, "padded_batch",
                                 reterr);
        for (int64_t i = 0; r == 0 && i < elements->n; i++)
            r = add_row(pl_element_items(pl_claimed_array_element(elements, i))[component].tensor,
                        &shape->dims[1], n_padded, padding, pass == 1 ? &maker : NULL, &n_bytes,
                        reterr);
    }
    if (r == 0)
        return pl_strings_end(&maker, ret_tensor, reterr);
    pl_strings_drop(&maker);
    return r;
}

static int join_strings(pl_stage *stage, int component, const pl_shape *shape,
                        pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_tensor *tensor = dataset_of(stage)->padding[component];
    if (!tensor)
        return join_rows(stage, component, shape, (pl_string){0}, ret_tensor, reterr);
    pl_strings padding;
    int r = pl_strings_pin(&padding, tensor, reterr);
    if (r < 0)
        return r;
    r = join_rows(stage, component, shape, pl_strings_at(&padding, 0), ret_tensor, reterr);
    pl_strings_unpin(&padding);
    return r;
}

/* ---- next ---- */

static int join(pl_stage *stage, int component, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_shape shape = batch_shape(stage, component);
    int64_t count;
    int r = pl_shape_count(&shape, &count, reterr);
    if (r < 0)
        return r;
    bool strings = stage->dataset->spec[component].dtype == PL_STRING;
    return (strings ? join_strings : join_numbers)(stage, component, &shape, ret_tensor, reterr);
}

static int end(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    padded_stage *own = (padded_stage *)stage;
    pl_element batch;
    int r = pl_element_init(&batch, stage->dataset->n_components);
    for (int i = 0; r == 0 && i < batch.n; i++)
        r = join(stage, i, &pl_element_items(&batch)[i].tensor, reterr);
    if (r < 0) {
        pl_element_clear(&batch);
        return refuse(stage, r, reterr);
    }
    batch.n_items = 0;
    for (int64_t i = 0; i < own->elements.n; i++)
        pl_element_pass_on(pl_claimed_array_element(&own->elements, i), &batch);
    pl_claimed_array_drop_elements(&own->elements, own->elements.n);
    *ret_element = batch;
    return 1;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    padded_stage *own = (padded_stage *)stage;
    int r = gather(stage, ret_element, reterr);
    if (r < 0 || own->elements.n == 0)
        return r;
    bool short_one = own->elements.n < dataset_of(stage)->n;
    if (!short_one || !dataset_of(stage)->drop_remainder)
        return end(stage, ret_element, reterr);
    for (int64_t i = 0; i < own->elements.n; i++)
        pl_stage_dropped(stage, pl_claimed_array_element(&own->elements, i));
    pl_claimed_array_clear_elements(&own->elements);
    return 0;
}

/* ---- state ---- */

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    const padded_stage *own = (const padded_stage *)stage;
    int r = pl_save_int(saver, own->ended, reterr);
    if (r == 0)
        r = pl_save_int(saver, own->elements.n, reterr);
    for (int64_t i = 0; r == 0 && i < own->elements.n; i++)
        r = pl_save_element(saver, pl_claimed_array_element(&own->elements, i), reterr);
    return r;
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    padded_stage *own = (padded_stage *)stage;
    int64_t ended = 0, n = 0;
    int r = pl_load_int(loader, 0, 1, &ended, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, dataset_of(stage)->n, &n, reterr);
    own->ended = ended;
    while (r == 0 && own->elements.n < n) {
        r = pl_load_to_array(loader, stage->dataset->inputs[0], &own->elements, "padded_batch",
                             reterr);
        if (r == 0)
            r = check(stage, pl_claimed_array_element(&own->elements, own->elements.n - 1), reterr);
    }
    return r;
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    const padded_dataset *own = (const padded_dataset *)dataset;
    fprintf(to, "n=%" PRId64 "%s", own->n, own->drop_remainder ? ", drop_remainder" : "");
}

static const pl_dataset_class padded_class = {
    .name = "padded_batch",
    .dataset_bytes = sizeof(padded_dataset),
    .stage_bytes = sizeof(padded_stage),
    .free = free_padded,
    .next = next,
    .close = close_padded,
    .save = save,
    .restore = restore,
    .describe = describe,
};

/* ---- making ---- */

static int check_shape(const pl_spec *spec, const pl_shape *said, int component, pl_error *reterr)
{
    if (spec->dtype == PL_DTYPE_NONE)
        return pl_error_set(reterr, -EINVAL, "padded_batch: component %d is a dataset", component);
    if (said->rank == PL_RANK_UNKNOWN)
        return pl_error_set(reterr, -EINVAL,
                            "padded_batch: component %d has a shape that is not known: say to "
                            "which it is to be padded",
                            component);
    if (said->rank == PL_RANK_MAX)
        return pl_error_set(reterr, -EINVAL, "padded_batch: shape %s has no room for one more axis",
                            PL_SHAPE_TEXT(said));
    bool fits = spec->shape.rank == PL_RANK_UNKNOWN || spec->shape.rank == said->rank;
    for (int i = 0; fits && i < spec->shape.rank; i++)
        fits = said->dims[i] == PL_UNKNOWN || spec->shape.dims[i] <= said->dims[i];
    return fits ? 0
                : pl_error_set(reterr, -EINVAL,
                               "padded_batch: component %d has shape %s, which cannot be padded "
                               "to %s",
                               component, PL_SHAPE_TEXT(&spec->shape), PL_SHAPE_TEXT(said));
}

static int check_padding(const pl_spec *spec, const pl_tensor *padding, int component,
                         pl_error *reterr)
{
    if (!padding || (padding->dtype == spec->dtype && padding->shape.rank == 0))
        return 0;
    return pl_error_set(reterr, -EINVAL,
                        "padded_batch: component %d is %s, and is padded with %s %s, not a scalar "
                        "of its own",
                        component, pl_dtype_info_of(spec->dtype)->name,
                        pl_dtype_info_of(padding->dtype)->name, PL_SHAPE_TEXT(&padding->shape));
}

static int set_component(padded_dataset *own, int i, const pl_shape *said, pl_tensor *padding,
                         pl_error *reterr)
{
    pl_spec *spec = &own->base.spec[i];
    pl_shape shape = said ? *said : spec->shape;
    int r = check_shape(spec, &shape, i, reterr);
    if (r == 0)
        r = check_padding(spec, padding, i, reterr);
    if (r < 0)
        return r;
    own->shapes[i] = shape;
    own->padding[i] = padding ? pl_tensor_ref(padding) : NULL;
    spec->shape.rank = shape.rank + 1;
    spec->shape.dims[0] = own->drop_remainder ? own->n : PL_UNKNOWN;
    memcpy(&spec->shape.dims[1], shape.dims, (size_t)shape.rank * sizeof shape.dims[0]);
    return 0;
}

int pl_dataset_padded_batch(pl_dataset *input, int64_t n, const pl_shape *padded_shapes,
                            pl_tensor *const *padding_values, bool drop_remainder,
                            pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    if (n < 1)
        return pl_error_set(reterr, -EINVAL, "padded_batch: %" PRId64 " elements", n);
    pl_dataset *dataset;
    int r = pl_dataset_make_over(&padded_class, input, &dataset, reterr);
    if (r < 0)
        return r;
    padded_dataset *own = (padded_dataset *)dataset;
    own->n = n;
    own->drop_remainder = drop_remainder;
    own->shapes = calloc((size_t)dataset->n_components, sizeof *own->shapes);
    own->padding = calloc((size_t)dataset->n_components, sizeof *own->padding);
    if (!own->shapes || !own->padding)
        r = pl_error_set(reterr, -ENOMEM, "out of memory for a dataset");
    for (int i = 0; r == 0 && i < dataset->n_components; i++)
        r = set_component(own, i, padded_shapes ? &padded_shapes[i] : NULL,
                          padding_values ? padding_values[i] : NULL, reterr);
    if (r < 0) {
        pl_dataset_unref(dataset);
        return r;
    }
    if (input->cardinality >= 0)
        dataset->cardinality = input->cardinality / n + (!drop_remainder && input->cardinality % n);
    *ret_dataset = dataset;
    return 0;
}
