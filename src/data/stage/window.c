/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over consecutive elements: each component becomes a dataset over the window's elements.
 * Windows that overlap share tensors. */
#include <errno.h>
#include <inttypes.h>

#include "data/core/stage.h"
#include "data/persist/state.h"
#include "data/stage/items_dataset.h"

typedef struct window_dataset {
    pl_dataset base;
    int64_t size, shift, stride;
    int64_t span; /* elements from the first to the last of a window */
    bool drop_remainder;
} window_dataset;

typedef struct window_stage {
    pl_stage base;
    pl_claimed_array buffer; /* elements from the window's first on */
    int64_t n_skip;          /* to be dropped before the next window: it begins behind the buffer */
    bool ended;
} window_stage;

static const window_dataset *dataset_of(const pl_stage *stage)
{
    return (const window_dataset *)stage->dataset;
}

static void close_window(pl_stage *stage)
{
    pl_claimed_array_clear_elements(&((window_stage *)stage)->buffer);
}

static PL_COLD int refuse(pl_stage *stage, int code, pl_error *reterr)
{
    if (pl_pass_later(stage->pass, code))
        return PL_RETRY_ALONE;
    pl_error_reword(reterr, "no room for a window: %s", pl_error_reason(reterr));
    pl_stage_locate(stage, code, reterr);
    return pl_pass_end(stage->pass, reterr);
}

/* ---- the buffer ---- */

static int skip(pl_stage *stage, pl_error *reterr)
{
    window_stage *own = (window_stage *)stage;
    while (own->n_skip > 0 && !own->ended) {
        pl_element element;
        int r = pl_stage_next(stage->inputs[0], &element, reterr);
        if (r < 0)
            return r;
        own->ended = r == 0;
        own->n_skip--;
        if (r > 0)
            pl_stage_dropped(stage, &element);
    }
    return 0;
}

static int fill(pl_stage *stage, pl_error *reterr)
{
    window_stage *own = (window_stage *)stage;
    int r = skip(stage, reterr);
    while (r == 0 && !own->ended && own->buffer.n < dataset_of(stage)->span) {
        pl_element element;
        r = pl_claimed_array_room(&own->buffer, stage->pass->runtime->memory, sizeof element,
                                  "window", reterr);
        if (r < 0)
            return refuse(stage, r, reterr);
        r = pl_stage_next(stage->inputs[0], &element, reterr);
        if (r < 0)
            return r;
        own->ended = r == 0;
        if (r == 0)
            break;
        pl_stage_counted(stage, &element);
        pl_claimed_array_add_element(&own->buffer, &element);
        r = 0;
    }
    return r;
}

static void move_on(pl_stage *stage)
{
    window_stage *own = (window_stage *)stage;
    int64_t shift = dataset_of(stage)->shift;
    own->n_skip = shift > own->buffer.n ? shift - own->buffer.n : 0;
    pl_claimed_array_drop_elements(&own->buffer, shift - own->n_skip);
}

/* ---- windows ---- */

/* A component of all elements of the window, as a dataset. */
static int column(pl_stage *stage, int component, pl_dataset **ret_dataset, pl_error *reterr)
{
    const pl_claimed_array *buffer = &((window_stage *)stage)->buffer;
    pl_claimed_array items = {0};
    for (int64_t at = 0; at < buffer->n; at += dataset_of(stage)->stride) {
        pl_item *item = pl_claimed_array_add(&items, stage->pass->runtime->memory, sizeof *item,
                                             "window", reterr);
        if (!item) {
            pl_claimed_array_clear_items(&items);
            return reterr->code;
        }
        *item = pl_element_items(pl_claimed_array_element(buffer, at))[component];
        if (item->tensor)
            pl_tensor_ref(item->tensor);
        if (item->dataset)
            pl_dataset_ref(item->dataset);
    }
    return pl_dataset_held(stage->pass->runtime, &stage->dataset->inputs[0]->spec[component],
                           &items, ret_dataset, reterr);
}

static int make(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    const pl_element *first = pl_claimed_array_element(&((window_stage *)stage)->buffer, 0);
    pl_element made;
    int r = pl_element_init(&made, stage->dataset->n_components);
    for (int i = 0; r == 0 && i < stage->dataset->n_components; i++)
        r = column(stage, i, &pl_element_items(&made)[i].dataset, reterr);
    if (r < 0) {
        pl_element_clear(&made);
        return refuse(stage, r, reterr);
    }
    made.n_items = 0;
    made.origin = first->origin ? pl_origin_ref(first->origin) : NULL;
    made.offset = first->offset;
    move_on(stage);
    *ret_element = made;
    return 1;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    const window_dataset *dataset = dataset_of(stage);
    window_stage *own = (window_stage *)stage;
    int r = fill(stage, reterr);
    if (r < 0)
        return r;
    if (own->buffer.n == 0 || (dataset->drop_remainder && own->buffer.n < dataset->span))
        return 0;
    return make(stage, ret_element, reterr);
}

/* ---- state ---- */

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    const window_stage *own = (const window_stage *)stage;
    int r = pl_save_int(saver, own->n_skip, reterr);
    if (r == 0)
        r = pl_save_int(saver, own->ended, reterr);
    if (r == 0)
        r = pl_save_int(saver, own->buffer.n, reterr);
    for (int64_t i = 0; r == 0 && i < own->buffer.n; i++)
        r = pl_save_element(saver, pl_claimed_array_element(&own->buffer, i), reterr);
    return r;
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    window_stage *own = (window_stage *)stage;
    int64_t ended = 0, n = 0;
    int r = pl_load_int(loader, 0, dataset_of(stage)->shift, &own->n_skip, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &ended, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, dataset_of(stage)->span, &n, reterr);
    own->ended = ended;
    while (r == 0 && own->buffer.n < n)
        r = pl_load_to_array(loader, stage->dataset->inputs[0], &own->buffer, "window", reterr);
    return r;
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    const window_dataset *own = (const window_dataset *)dataset;
    fprintf(to, "size=%" PRId64 ", shift=%" PRId64 ", stride=%" PRId64 "%s", own->size, own->shift,
            own->stride, own->drop_remainder ? ", drop_remainder" : "");
}

static const pl_dataset_class window_class = {
    .name = "window",
    .dataset_bytes = sizeof(window_dataset),
    .stage_bytes = sizeof(window_stage),
    .next = next,
    .close = close_window,
    .save = save,
    .restore = restore,
    .describe = describe,
};

static int64_t cardinality_of(const window_dataset *own, int64_t n)
{
    if (n < 0)
        return n;
    if (own->drop_remainder)
        return n < own->span ? 0 : (n - own->span) / own->shift + 1;
    return n / own->shift + (n % own->shift != 0);
}

/* Each component becomes a dataset of such components. */
static int set_specs(pl_dataset *dataset, const pl_dataset *input)
{
    for (int i = 0; i < input->n_components; i++)
        if (pl_spec_copy(&dataset->spec[i], &(pl_spec){.of = &input->spec[i], .n_of = 1}) < 0)
            return -ENOMEM;
    return 0;
}

int pl_dataset_window(pl_dataset *input, int64_t size, int64_t shift, int64_t stride,
                      bool drop_remainder, pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    int64_t span;
    if (size < 1 || shift < 1 || stride < 1)
        return pl_error_set(reterr, -EINVAL,
                            "window: size %" PRId64 ", shift %" PRId64 ", stride %" PRId64
                            ": each is at least 1",
                            size, shift, stride);
    if (__builtin_mul_overflow(size - 1, stride, &span) || __builtin_add_overflow(span, 1, &span))
        return pl_error_set(reterr, -EINVAL, "window: size and stride are too large");
    pl_dataset *dataset;
    int r = pl_dataset_make(&window_class, input->runtime, &input, 1, input->n_components, &dataset,
                            reterr);
    if (r < 0)
        return r;
    if (set_specs(dataset, input) < 0) {
        pl_dataset_unref(dataset);
        return pl_error_set(reterr, -ENOMEM, "out of memory for a dataset");
    }
    window_dataset *own = (window_dataset *)dataset;
    own->size = size;
    own->shift = shift;
    own->stride = stride;
    own->span = span;
    own->drop_remainder = drop_remainder;
    dataset->cardinality = cardinality_of(own, input->cardinality);
    *ret_dataset = dataset;
    return 0;
}
