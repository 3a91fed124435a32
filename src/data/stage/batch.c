/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks elements along a new first axis.
 *
 * The first element determines the size of a batch, which is claimed then; for fewer elements if the
 * input says that it has fewer. Each element is copied to its place and released as it comes, so a
 * batch costs itself and one element. If both do not fit, the batch is unpinned while an element is
 * made, and may be spilled meanwhile: an element that would fit by itself is not bad, and no policy
 * may skip it. The size of strings is not known in advance: they are held until the batch is
 * complete. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "data/core/stage.h"
#include "data/persist/state.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/strings.h"
#include "tensor/tensor.h"

typedef struct batch_dataset {
    pl_dataset base;
    int64_t n;
    bool drop_remainder;
} batch_dataset;

/* A component that is being gathered. */
typedef struct column {
    pl_dtype dtype;
    pl_shape shape; /* of an element */
    size_t bytes;   /* of an element */
    pl_buffer *buffer;
    char *data; /* while it is pinned */
    bool pinned;
    pl_tensor **strings; /* instead of the buffer; n of the batch */
} column;

typedef struct batch_stage {
    pl_stage base;
    column *columns;
    int64_t n_gathered;
    int64_t n_room;     /* that are claimed for */
    pl_element made_of; /* counts and origin of what was gathered */
    pl_element waiting; /* the first of a batch that found no room yet */
    bool ended;
} batch_stage;

static int64_t size_of(const pl_stage *stage)
{
    return ((const batch_dataset *)stage->dataset)->n;
}

/* The number of elements that a new batch has room for. */
static int64_t room_of(const pl_stage *stage)
{
    int64_t n_input = stage->dataset->inputs[0]->cardinality;
    return n_input > 0 && n_input < size_of(stage) ? n_input : size_of(stage);
}

static void drop_column(column *c, int64_t n_gathered)
{
    if (c->pinned)
        pl_buffer_unpin(c->buffer);
    pl_buffer_unref(c->buffer);
    for (int64_t i = 0; c->strings && i < n_gathered; i++)
        pl_tensor_unref(c->strings[i]);
    free(c->strings);
    *c = (column){0};
}

static void drop_columns(pl_stage *stage)
{
    batch_stage *own = (batch_stage *)stage;
    for (int i = 0; own->columns && i < stage->dataset->n_components; i++)
        drop_column(&own->columns[i], own->n_gathered);
    own->n_gathered = 0;
    pl_element_clear(&own->made_of);
}

static int open_batch(pl_stage *stage, pl_error *reterr)
{
    batch_stage *own = (batch_stage *)stage;
    own->n_room = room_of(stage);
    own->columns = calloc((size_t)stage->dataset->n_components + 1, sizeof *own->columns);
    return own->columns ? 0 : pl_error_set(reterr, -ENOMEM, "out of memory for a batch");
}

static void close_batch(pl_stage *stage)
{
    drop_columns(stage);
    free(((batch_stage *)stage)->columns);
    pl_element_clear(&((batch_stage *)stage)->waiting);
}

/* ---- the first element ---- */

/* Fails for lack of room, with an error that no policy skips. */
static PL_COLD int refuse(pl_stage *stage, const column *c, int code, pl_error *reterr)
{
    char all[PL_SIZE_TEXT_BYTES], one[PL_SIZE_TEXT_BYTES];
    int64_t n = ((const batch_stage *)stage)->n_room;
    if (pl_pass_later(stage->pass, code))
        return PL_RETRY_ALONE;
    pl_size_format(c->bytes * (uint64_t)n, all);
    pl_size_format(c->bytes, one);
    pl_error_reword(reterr, "one batch needs %s (%" PRId64 " x %s): %s", all, n, one,
                    pl_error_reason(reterr));
    pl_stage_locate(stage, code, reterr);
    return PL_REPORTED;
}

static void let_go(pl_stage *stage)
{
    for (int i = 0; i < stage->dataset->n_components; i++) {
        column *c = &((batch_stage *)stage)->columns[i];
        if (c->pinned)
            pl_buffer_unpin(c->buffer);
        c->pinned = false;
    }
}

static int bring_back(pl_stage *stage, pl_error *reterr)
{
    for (int i = 0; i < stage->dataset->n_components; i++) {
        column *c = &((batch_stage *)stage)->columns[i];
        void *data;
        if (!c->buffer || c->pinned)
            continue;
        int r = pl_buffer_pin(c->buffer, PL_PIN_WRITE, &data, reterr);
        if (r < 0)
            return refuse(stage, c, r, reterr);
        c->data = data;
        c->pinned = true;
    }
    return 0;
}

static int begin_column_as(pl_stage *stage, column *c, pl_dtype dtype, const pl_shape *shape,
                           pl_error *reterr)
{
    c->dtype = dtype;
    c->shape = *shape;
    int64_t n = ((const batch_stage *)stage)->n_room, count, bytes = 0;
    if (shape->rank == PL_RANK_MAX)
        return pl_error_set(reterr, -EINVAL, "shape %s has no room for one more axis",
                            PL_SHAPE_TEXT(shape));
    if (c->dtype == PL_STRING) {
        c->strings = calloc((size_t)size_of(stage), sizeof(pl_tensor *));
        return c->strings ? 0 : refuse(stage, c, -ENOMEM, reterr);
    }
    int r = pl_shape_bytes(&c->shape, pl_dtype_info_of(c->dtype)->item_bytes, &count, reterr);
    if (r == 0 && __builtin_mul_overflow(count, n, &bytes))
        r = pl_error_set(reterr, -EOVERFLOW, "the size of a batch overflows");
    if (r < 0)
        return r;
    c->bytes = (size_t)count;
    void *data;
    r = pl_buffer_new(stage->pass->runtime->pool, (uint64_t)bytes, "batch", &c->buffer, &data,
                      reterr);
    if (r < 0)
        return refuse(stage, c, r, reterr);
    c->data = data;
    c->pinned = true;
    return 0;
}

static int begin_column(pl_stage *stage, column *c, const pl_item *item, pl_error *reterr)
{
    pl_shape shape = pl_item_shape(item);
    return begin_column_as(stage, c, pl_item_dtype(item), &shape, reterr);
}

static int begin(pl_stage *stage, const pl_element *element, pl_error *reterr)
{
    const pl_item *items = pl_element_peek(element);
    for (int i = 0; i < element->n; i++) {
        int r = begin_column(stage, &((batch_stage *)stage)->columns[i], &items[i], reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- one more ---- */

static int widen_column(pl_stage *stage, column *c, pl_error *reterr)
{
    const batch_stage *own = (const batch_stage *)stage;
    column wider = *c;
    int r = c->strings ? 0 : begin_column_as(stage, &wider, c->dtype, &c->shape, reterr);
    if (r < 0 || c->strings)
        return r;
    memcpy(wider.data, c->data, (size_t)own->n_gathered * c->bytes);
    pl_buffer_unpin(c->buffer);
    pl_buffer_unref(c->buffer);
    *c = wider;
    return 0;
}

/* Widens the batch if the input has more elements than announced, as a generator may. */
static int widen(pl_stage *stage, pl_error *reterr)
{
    batch_stage *own = (batch_stage *)stage;
    int64_t before = own->n_room;
    int r = 0;
    own->n_room = size_of(stage);
    for (int i = 0; r == 0 && i < stage->dataset->n_components; i++)
        r = widen_column(stage, &own->columns[i], reterr);
    if (r < 0) /* some may be wider by then, which does no harm */
        own->n_room = before;
    return r;
}

static int check(const column *c, const pl_item *item, int component, pl_error *reterr)
{
    if (!item->tensor && c->shape.rank == 0)
        return 0;
    pl_shape shape = pl_item_shape(item);
    if (pl_shape_equal(&shape, &c->shape))
        return 0;
    return pl_error_set(reterr, -EINVAL,
                        "component %d has shape %s, and those before it in the batch %s: pad or "
                        "resize them, or use padded_batch",
                        component, PL_SHAPE_TEXT(&shape), PL_SHAPE_TEXT(&c->shape));
}

/* Strings come last: what may fail is then done. */
static int read_to(column *c, int64_t at, const pl_item *item, pl_error *reterr)
{
    if (c->strings)
        return 0;
    return pl_item_read(item, c->data + (size_t)at * c->bytes, reterr);
}

/* Returns 0 if the element was added, or a negative code if it is bad and was not. */
static int gather(pl_stage *stage, pl_element *element, pl_element *ret_bad, pl_error *reterr)
{
    batch_stage *own = (batch_stage *)stage;
    pl_item *items = pl_element_items(element);
    int r = own->n_gathered == 0             ? begin(stage, element, reterr)
            : own->n_gathered == own->n_room ? widen(stage, reterr)
                                             : 0;
    if (r < 0) {
        if (own->n_gathered == 0)
            drop_columns(stage);
        if (r != PL_REPORTED && r != PL_RETRY_ALONE)
            return pl_stage_fail_as(ret_bad, element, r);
        own->waiting = *element;
        *element = (pl_element){0};
        return r;
    }
    for (int i = 0; r == 0 && i < element->n; i++)
        r = check(&own->columns[i], &items[i], i, reterr);
    for (int i = 0; r == 0 && i < element->n; i++)
        r = read_to(&own->columns[i], own->n_gathered, &items[i], reterr);
    if (r < 0) {
        if (own->n_gathered == 0) /* the next one begins the batch */
            drop_columns(stage);
        return pl_stage_fail_as(ret_bad, element, r);
    }
    for (int i = 0; i < element->n; i++)
        if (own->columns[i].strings)
            own->columns[i].strings[own->n_gathered] = PL_TAKE(items[i].tensor);
    own->n_gathered++;
    pl_element_pass_on(element, &own->made_of);
    return 0;
}

/* ---- the batch ---- */

/* Adds the strings of a tensor to `maker`, or, if that is NULL, their bytes to *n_bytes. */
static int copy_strings(pl_tensor *tensor, pl_strings_maker *maker, uint64_t *n_bytes,
                        pl_error *reterr)
{
    pl_strings strings;
    int r = pl_strings_pin(&strings, tensor, reterr);
    if (r < 0)
        return r;
    for (int64_t i = 0; i < strings.n; i++) {
        pl_string string = pl_strings_at(&strings, i);
        *n_bytes += string.n;
        if (maker)
            memcpy(pl_strings_add(maker, string.n), string.data, string.n);
    }
    pl_strings_unpin(&strings);
    return 0;
}

static int end_strings(pl_stage *stage, column *c, const pl_shape *shape, pl_tensor **ret_tensor,
                       pl_error *reterr)
{
    pl_strings_maker maker = {0};
    int64_t n = ((batch_stage *)stage)->n_gathered;
    uint64_t n_bytes = 0;
    int r = 0;
    for (int64_t i = 0; r == 0 && i < n; i++)
        r = copy_strings(c->strings[i], NULL, &n_bytes, reterr);
    if (r == 0)
        r = pl_strings_begin(&maker, stage->pass->runtime, shape, n_bytes, "batch", reterr);
    for (int64_t i = 0; r == 0 && i < n; i++)
        r = copy_strings(c->strings[i], &maker, &n_bytes, reterr);
    if (r == 0)
        return pl_strings_end(&maker, ret_tensor, reterr);
    pl_strings_drop(&maker);
    return r;
}

static int end_column(pl_stage *stage, column *c, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_shape shape = {.rank = c->shape.rank + 1, .dims = {((batch_stage *)stage)->n_gathered}};
    memcpy(&shape.dims[1], c->shape.dims, (size_t)c->shape.rank * sizeof shape.dims[0]);
    if (c->strings)
        return end_strings(stage, c, &shape, ret_tensor, reterr);
    pl_buffer_unpin(c->buffer);
    c->pinned = false;
    return pl_tensor_wrap(PL_TAKE(c->buffer), c->dtype, &shape, NULL, 0, ret_tensor, reterr);
}

/* Strings first: while only these are made, running out of room loses nothing. */
static int end_columns(pl_stage *stage, bool strings, pl_element *batch, pl_error *reterr)
{
    column *columns = ((batch_stage *)stage)->columns;
    int r = 0;
    for (int i = 0; r == 0 && i < batch->n; i++)
        if ((columns[i].strings != NULL) == strings)
            r = end_column(stage, &columns[i], &pl_element_items(batch)[i].tensor, reterr);
    return r;
}

static PL_COLD int fail_to_end(pl_stage *stage, int code, pl_error *reterr)
{
    drop_columns(stage);
    pl_stage_locate(stage, code, reterr);
    return PL_REPORTED;
}

static int end(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    batch_stage *own = (batch_stage *)stage;
    pl_element batch;
    int r = pl_element_init(&batch, stage->dataset->n_components);
    if (r < 0)
        return pl_pass_fail(stage->pass, r, reterr, "out of memory for a batch");
    r = end_columns(stage, true, &batch, reterr);
    bool later = pl_pass_later(stage->pass, r);
    if (r == 0)
        r = end_columns(stage, false, &batch, reterr);
    if (r < 0) {
        pl_element_clear(&batch);
        return later ? PL_RETRY_ALONE : fail_to_end(stage, r, reterr);
    }
    batch.n_items = 0;
    pl_element_pass_on(&own->made_of, &batch);
    drop_columns(stage);
    *ret_element = batch;
    return 1;
}

/* ---- several elements at once ---- */

static int begin_by_spec(pl_stage *stage)
{
    const pl_dataset *input = stage->dataset->inputs[0];
    pl_error ignored = {0}; /* taking elements one by one meets it again */
    int r = 0;
    for (int i = 0; r == 0 && i < input->n_components; i++)
        r = begin_column_as(stage, &((batch_stage *)stage)->columns[i], input->spec[i].dtype,
                            &input->spec[i].shape, &ignored);
    if (r < 0)
        drop_columns(stage);
    return r;
}

/* Reads as many elements as the input gives at once; the rest is gathered one by one. */
static void gather_block(pl_stage *stage)
{
    batch_stage *own = (batch_stage *)stage;
    char *to[PL_BLOCK_COMPONENTS];
    if (!pl_stage_has_block(stage->inputs[0]) || begin_by_spec(stage) < 0)
        return;
    for (int i = 0; i < stage->dataset->n_components; i++)
        to[i] = own->columns[i].data;
    own->n_gathered = pl_stage_read_block(stage->inputs[0], size_of(stage), to, &own->made_of);
    if (own->n_gathered == 0)
        drop_columns(stage);
}

/* The one that waits, or the input's. */
static int next_of_input(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    batch_stage *own = (batch_stage *)stage;
    *ret_element = own->waiting;
    own->waiting = (pl_element){0};
    if (ret_element->n > 0)
        return 1;
    if (pl_pass_get_mode(stage->pass) == PL_PASS_ALONE)
        let_go(stage);
    int r = pl_stage_next(stage->inputs[0], ret_element, reterr);
    int back = r < 0 ? 0 : bring_back(stage, reterr);
    if (back == 0)
        return r;
    own->ended = r == 0;
    own->waiting = *ret_element;
    return back;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    batch_stage *own = (batch_stage *)stage;
    if (own->n_gathered == 0 && !own->ended && own->waiting.n == 0)
        gather_block(stage);
    int r = bring_back(stage, reterr);
    if (r < 0)
        return r;
    while (!own->ended && own->n_gathered < size_of(stage)) {
        pl_element element;
        r = next_of_input(stage, &element, reterr);
        if (r < 0)
            return r;
        own->ended = r == 0;
        if (r > 0) {
            r = gather(stage, &element, ret_element, reterr);
            pl_element_clear(&element);
            if (r < 0)
                return r;
        }
    }
    bool short_one = own->n_gathered < size_of(stage);
    if (own->n_gathered == 0)
        return 0;
    if (!short_one || !((const batch_dataset *)stage->dataset)->drop_remainder)
        return end(stage, ret_element, reterr);
    pl_stage_dropped(stage, &own->made_of);
    drop_columns(stage);
    return 0;
}

/* ---- checkpoints ---- */

/* The gathered elements of a column, as items of the input's. */
static int save_column(const column *c, int64_t n, pl_saver *saver, pl_error *reterr)
{
    int r = 0;
    for (int64_t i = 0; r == 0 && c->strings && i < n; i++)
        r = pl_save_item(saver, &(pl_item){.tensor = c->strings[i]}, reterr);
    if (c->strings || r < 0)
        return r;
    r = pl_save_int(saver, c->shape.rank, reterr);
    for (int i = 0; r == 0 && i < c->shape.rank; i++)
        r = pl_save_int(saver, c->shape.dims[i], reterr);
    return r < 0 ? r : pl_save_bytes(saver, c->data, (size_t)n * c->bytes, reterr);
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    batch_stage *own = (batch_stage *)stage;
    int r = bring_back(stage, reterr);
    if (r == 0)
        r = pl_save_int(saver, own->ended, reterr);
    if (r == 0)
        r = pl_save_int(saver, own->n_gathered, reterr);
    if (r == 0)
        r = pl_save_element(saver, &own->made_of, reterr);
    if (r == 0)
        r = pl_save_waiting(saver, &own->waiting, reterr);
    for (int i = 0; r == 0 && own->n_gathered > 0 && i < stage->dataset->n_components; i++)
        r = save_column(&own->columns[i], own->n_gathered, saver, reterr);
    return r;
}

static int load_strings(pl_stage *stage, column *c, int component, int64_t n, pl_loader *loader,
                        pl_error *reterr)
{
    const pl_spec *spec = &stage->dataset->inputs[0]->spec[component];
    int r = 0;
    for (int64_t i = 0; r == 0 && i < n; i++) {
        pl_item item = {0};
        r = pl_load_item(loader, spec, component, &item, reterr);
        if (r == 0 && i == 0)
            r = begin_column(stage, c, &item, reterr);
        if (r == 0)
            r = check(c, &item, component, reterr);
        if (r == 0)
            c->strings[i] = PL_TAKE(item.tensor);
        pl_item_clear(&item);
    }
    return r;
}

static int load_numbers(pl_stage *stage, column *c, int component, int64_t n, pl_loader *loader,
                        pl_error *reterr)
{
    const pl_spec *spec = &stage->dataset->inputs[0]->spec[component];
    int64_t rank, bytes;
    pl_shape shape = {0};
    int r = pl_load_int(loader, 0, PL_RANK_MAX - 1, &rank, reterr);
    for (int i = 0; r == 0 && i < rank; i++)
        r = pl_load_count(loader, &shape.dims[i], reterr);
    if (r < 0)
        return r;
    shape.rank = (int32_t)rank;
    bool fits = spec->shape.rank == PL_RANK_UNKNOWN || pl_shape_compatible(&spec->shape, &shape);
    if (!fits || pl_tensor_size(spec->dtype, &shape, &bytes, NULL) < 0 ||
        __builtin_mul_overflow(bytes, n, &bytes))
        return pl_load_refuse(reterr, "component %d of a batch has shape %s", component,
                              PL_SHAPE_TEXT(&shape));
    r = pl_load_check_left(loader, (uint64_t)bytes, reterr);
    if (r == 0)
        r = begin_column_as(stage, c, spec->dtype, &shape, reterr);
    return r < 0 ? r : pl_load_bytes(loader, c->data, (size_t)bytes, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    batch_stage *own = (batch_stage *)stage;
    int64_t ended, n;
    int r = pl_load_int(loader, 0, 1, &ended, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, size_of(stage), &n, reterr);
    if (r == 0)
        r = pl_load_element(loader, NULL, &own->made_of, reterr);
    if (r == 0)
        r = pl_load_waiting(loader, stage->dataset->inputs[0], &own->waiting, reterr);
    if (r < 0)
        return r;
    own->ended = ended;
    own->n_gathered = n;
    own->n_room = n > own->n_room ? size_of(stage) : own->n_room;
    for (int i = 0; r == 0 && n > 0 && i < stage->dataset->n_components; i++)
        r = stage->dataset->spec[i].dtype == PL_STRING
                ? load_strings(stage, &own->columns[i], i, n, loader, reterr)
                : load_numbers(stage, &own->columns[i], i, n, loader, reterr);
    return r;
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    const batch_dataset *own = (const batch_dataset *)dataset;
    fprintf(to, "n=%" PRId64 "%s", own->n, own->drop_remainder ? ", drop_remainder" : "");
}

static const pl_dataset_class batch_class = {
    .name = "batch",
    .dataset_bytes = sizeof(batch_dataset),
    .stage_bytes = sizeof(batch_stage),
    .open = open_batch,
    .next = next,
    .close = close_batch,
    .save = save,
    .restore = restore,
    .describe = describe,
};

/* A batch's spec: its elements', with an axis before it. */
static int spec_of(pl_spec *spec, int64_t n, pl_error *reterr)
{
    if (spec->dtype == PL_DTYPE_NONE)
        return pl_error_set(reterr, -EINVAL, "batch: datasets cannot be batched");
    if (spec->shape.rank == PL_RANK_UNKNOWN)
        return 0;
    if (spec->shape.rank == PL_RANK_MAX)
        return pl_error_set(reterr, -EINVAL, "batch: shape %s has no room for one more axis",
                            PL_SHAPE_TEXT(&spec->shape));
    memmove(&spec->shape.dims[1], &spec->shape.dims[0],
            (size_t)spec->shape.rank * sizeof spec->shape.dims[0]);
    spec->shape.rank++;
    spec->shape.dims[0] = n;
    return 0;
}

int pl_dataset_batch(pl_dataset *input, int64_t n, bool drop_remainder, pl_dataset **ret_dataset,
                     pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    if (n < 1)
        return pl_error_set(reterr, -EINVAL, "batch: %" PRId64 " elements", n);
    pl_dataset *dataset;
    int r = pl_dataset_make_over(&batch_class, input, &dataset, reterr);
    for (int i = 0; r == 0 && i < dataset->n_components; i++) {
        r = spec_of(&dataset->spec[i], drop_remainder ? n : PL_UNKNOWN, reterr);
        if (r < 0)
            pl_dataset_unref(dataset);
    }
    if (r < 0)
        return r;
    if (input->cardinality >= 0)
        dataset->cardinality = input->cardinality / n + (!drop_remainder && input->cardinality % n);
    ((batch_dataset *)dataset)->n = n;
    ((batch_dataset *)dataset)->drop_remainder = drop_remainder;
    *ret_dataset = dataset;
    return 0;
}
