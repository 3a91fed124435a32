/* SPDX-License-Identifier: Apache-2.0 */
/* Resizes images, rows in parallel. Rows of the input are first resized to the result's width; a
 * worker does this once per input row, for all the result rows that it makes from it. See
 * whole_ops.h. */
#include <string.h>

#include "exec/eager/whole_ops.h"
#include "kernels/elementwise/cast.h"
#include "kernels/move/resize.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* Rows of the result that one worker makes at a time, if there are several workers: at the start of
 * each strip it makes rows again that the strip before has already made. */
enum { ROWS_AT_ONCE = 64 };

/* Rows of the input that are added up in one go. */
enum { SUMMED_AT_ONCE = 8 };

typedef struct job {
    pl_dtype dtype; /* of the input */
    const char *in;
    char *out;
    int64_t n, channels, in_height, in_width, height, width;
    int64_t n_strips, strip_rows; /* of each image */
    int n_workers;
    pl_resize_tap *across, *down;
    pl_resize_picks picks;                     /* of `across` */
    bool picked;                               /* rows are made by them */
    pl_resize_span *spans_across, *spans_down; /* antialiased: instead of taps */
    float *weights_across, *weights_down;
    int64_t places_across, places_down;
    char *scratch; /* of all workers */
    uint64_t worker_bytes;
} job;

static int64_t row_items(int64_t width, int64_t channels)
{
    return width * channels + PL_RESIZE_EXTRA;
}

static const char *input_row(const job *j, int64_t image, int64_t y)
{
    size_t row_bytes = (size_t)(j->in_width * j->channels) * pl_dtype_info_of(j->dtype)->item_bytes;
    return j->in + (size_t)(image * j->in_height + y) * row_bytes;
}

/* ---- bilinear ---- */

/* Two rows of the input in the result's width, and their numbers. */
typedef struct widened {
    float *rows[2];
    int64_t numbers[2];
    float *converted; /* a row of the input, if it is neither u8 nor f32 */
} widened;

static void widen_row(const job *j, const void *row, float *converted, float *out)
{
    if (j->picked) {
        pl_resize_picked_row(&j->picks, row, out);
        return;
    }
    pl_dtype dtype = j->dtype;
    if (dtype != PL_U8 && dtype != PL_F32) {
        pl_cast_find(dtype, PL_F32)(converted, row, (size_t)(j->in_width * j->channels));
        row = converted;
        dtype = PL_F32;
    }
    pl_resize_row(dtype, row, j->in_width, j->channels, j->across, j->width, out);
}

static const float *widen(const job *j, widened *w, int64_t image, int64_t y, int64_t keep)
{
    for (int i = 0; i < 2; i++)
        if (w->numbers[i] == y)
            return w->rows[i];
    int at = w->numbers[0] == keep;
    w->numbers[at] = y;
    widen_row(j, input_row(j, image, y), w->converted, w->rows[at]);
    return w->rows[at];
}

static void make_bilinear(const job *j, int64_t image, int64_t y_begin, int64_t y_end, char *room)
{
    int64_t n_row = row_items(j->width, j->channels);
    float *floats = (float *)room;
    widened w = {{floats, floats + n_row}, {-1, -1}, floats + 2 * n_row};
    for (int64_t y = y_begin; y < y_end; y++) {
        const pl_resize_tap *tap = &j->down[y];
        const float *top = widen(j, &w, image, tap->lower, tap->upper);
        const float *bottom = widen(j, &w, image, tap->upper, tap->lower);
        float *out = (float *)j->out + (image * j->height + y) * j->width * j->channels;
        pl_resize_blend(top, bottom, tap->lerp, out, j->width * j->channels);
    }
}

/* ---- antialiased ---- */

/* Makes a row of the input in the result's width; the last `places_down` are kept, each in its own
 * place. */
static const float *span_row(const job *j, float *rows, int64_t *numbers, float *converted,
                             int64_t image, int64_t y)
{
    int64_t at = y % j->places_down;
    float *wide = rows + at * row_items(j->width, j->channels);
    if (numbers[at] == y)
        return wide;
    const void *row = input_row(j, image, y);
    pl_dtype dtype = j->dtype;
    if (dtype != PL_U8 && dtype != PL_F32) {
        pl_cast_find(dtype, PL_F32)(converted, row, (size_t)(j->in_width * j->channels));
        row = converted;
        dtype = PL_F32;
    }
    pl_resize_span_row(dtype, row, j->in_width, j->channels, j->spans_across, j->weights_across,
                       j->places_across, j->width, wide);
    numbers[at] = y;
    return wide;
}

static void make_antialiased(const job *j, int64_t image, int64_t y_begin, int64_t y_end,
                             char *room)
{
    int64_t *numbers = (int64_t *)room, n = j->width * j->channels;
    float *rows = (float *)(numbers + j->places_down);
    float *converted = rows + j->places_down * row_items(j->width, j->channels);
    for (int64_t i = 0; i < j->places_down; i++)
        numbers[i] = -1;
    for (int64_t y = y_begin; y < y_end; y++) {
        const pl_resize_span *span = &j->spans_down[y];
        float *out = (float *)j->out + (image * j->height + y) * n;
        for (int64_t k = 0; k < span->n; k += SUMMED_AT_ONCE) {
            const float *summed[SUMMED_AT_ONCE];
            int n_summed = 0;
            for (; n_summed < SUMMED_AT_ONCE && k + n_summed < span->n; n_summed++)
                summed[n_summed] =
                    span_row(j, rows, numbers, converted, image, span->begin + k + n_summed);
            pl_resize_sum(summed, j->weights_down + y * j->places_down + k, n_summed, k == 0, out,
                          n);
        }
    }
}

/* ---- nearest ---- */

static void make_nearest(const job *j, int64_t image, int64_t y_begin, int64_t y_end)
{
    size_t pixel_bytes = (size_t)j->channels * pl_dtype_info_of(j->dtype)->item_bytes;
    for (int64_t y = y_begin; y < y_end; y++) {
        const char *row = input_row(j, image, pl_resize_nearest(j->in_height, j->height, y));
        char *out = j->out + (size_t)((image * j->height + y) * j->width) * pixel_bytes;
        for (int64_t x = 0; x < j->width; x++)
            memcpy(out + (size_t)x * pixel_bytes, row + (size_t)j->across[x].lower * pixel_bytes,
                   pixel_bytes);
    }
}

/* ---- all ---- */

static int work(void *context, int64_t part, int worker)
{
    const job *j = context;
    int64_t image = part / j->n_strips, begin = part % j->n_strips * j->strip_rows;
    int64_t end = begin + j->strip_rows < j->height ? begin + j->strip_rows : j->height;
    char *room = j->scratch + (uint64_t)worker * j->worker_bytes;
    if (j->spans_down)
        make_antialiased(j, image, begin, end, room);
    else if (j->down)
        make_bilinear(j, image, begin, end, room);
    else
        make_nearest(j, image, begin, end);
    return 0;
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static bool is_antialiased(const pl_node *node)
{
    const pl_attr *attrs = node->attrs;
    return attrs[PL_ATTR_resize_antialias].value.i &&
           strcmp(attrs[PL_ATTR_resize_method].value.text, "bilinear") == 0;
}

static job describe(const pl_node *node, int n_workers, const pl_shape *in, const pl_shape *out)
{
    int at = in->rank - 3;
    job j = {.dtype = node->inputs[0]->dtype,
             .n = at > 0 ? in->dims[0] : 1,
             .channels = in->dims[at + 2],
             .in_height = in->dims[at],
             .in_width = in->dims[at + 1],
             .height = out->dims[at],
             .width = out->dims[at + 1],
             .n_workers = n_workers};
    j.strip_rows = n_workers > 1 || j.height == 0 ? ROWS_AT_ONCE : j.height;
    j.n_strips = (j.height + j.strip_rows - 1) / j.strip_rows;
    int64_t n_wide = 2;
    if (is_antialiased(node) && j.in_height > 0 && j.in_width > 0 && j.height > 0 && j.width > 0) {
        j.places_across = pl_resize_span_places(j.in_width, j.width);
        n_wide = j.places_down = pl_resize_span_places(j.in_height, j.height);
    }
    j.worker_bytes = rounded(sizeof(int64_t) * (uint64_t)n_wide +
                             sizeof(float) * (uint64_t)(n_wide * row_items(j.width, j.channels) +
                                                        row_items(j.in_width, j.channels)));
    return j;
}

/* The bytes of picks, for rows of bytes with two taps. */
static uint64_t picks_bytes(const job *j)
{
    bool are_bytes = j->dtype == PL_U8 && j->places_down == 0;
    return are_bytes ? pl_resize_picks_bytes(j->width, j->channels) : 0;
}

/* The bytes of picks and of taps or spans; the workers' scratch follows them. */
static uint64_t table_bytes(const job *j)
{
    uint64_t n = (uint64_t)(j->width + j->height + 2);
    if (j->places_down == 0)
        return picks_bytes(j) + rounded(sizeof(pl_resize_tap) * n);
    uint64_t n_weights =
        (uint64_t)(j->width * j->places_across) + (uint64_t)(j->height * j->places_down);
    return rounded(sizeof(pl_resize_span) * n + sizeof(float) * n_weights);
}

static uint64_t scratch_bytes(const job *j)
{
    return table_bytes(j) + (uint64_t)j->n_workers * j->worker_bytes;
}

uint64_t pl_eager_resize_scratch_bytes(pl_runtime *runtime, const pl_node *node, const pl_shape *in,
                                       const pl_shape *out)
{
    const job j = describe(node, pl_threads_count(runtime->threads), in, out);
    return pl_memory_cost_bytes(scratch_bytes(&j));
}

static void set_spans(job *j, char *scratch)
{
    j->spans_across = (pl_resize_span *)scratch;
    j->spans_down = j->spans_across + j->width;
    j->weights_across = (float *)(j->spans_down + j->height);
    j->weights_down = j->weights_across + j->width * j->places_across;
    pl_resize_spans(j->in_width, j->width, j->spans_across, j->weights_across);
    pl_resize_spans(j->in_height, j->height, j->spans_down, j->weights_down);
}

static bool is_nearest(const pl_node *node)
{
    return strcmp(node->attrs[PL_ATTR_resize_method].value.text, "nearest") == 0;
}

static void set_tables(const pl_node *node, job *j, char *scratch)
{
    bool nearest = is_nearest(node);
    j->scratch = scratch + table_bytes(j);
    j->across = (pl_resize_tap *)(scratch + picks_bytes(j));
    if (nearest) {
        for (int64_t x = 0; x < j->width; x++)
            j->across[x].lower = pl_resize_nearest(j->in_width, j->width, x);
    } else if (j->places_down > 0) {
        set_spans(j, scratch);
    } else {
        j->down = j->across + j->width;
        pl_resize_taps(j->in_width, j->width, j->across);
        pl_resize_taps(j->in_height, j->height, j->down);
        j->picked = j->dtype == PL_U8 && pl_resize_picks_set(&j->picks, j->across, j->in_width,
                                                             j->channels, j->width, scratch);
    }
}

/* Pins the input's elements contiguously: where they are, or a copy in `block`. */
static int pin_dense(const pl_eager_call *call, const void **ret_in, pl_block *block, bool *pinned,
                     pl_error *reterr)
{
    pl_tensor *in = call->inputs[0];
    int64_t strides[PL_RANK_MAX], dense[PL_RANK_MAX], begin[PL_RANK_MAX] = {0};
    pl_shape_strides(&in->shape, pl_dtype_info_of(in->dtype)->item_bytes, dense);
    if (memcmp(in->strides, dense, sizeof *dense * (size_t)in->shape.rank) == 0) {
        int r = pl_tensor_pin(in, ret_in, strides, reterr);
        *pinned = r == 0;
        return r;
    }
    int r =
        pl_memory_take(call->runtime->memory, pl_tensor_bytes(in), call->node->name, block, reterr);
    if (r == 0)
        r = pl_tensor_read(in, begin, in->shape.dims, block->data, reterr);
    *ret_in = block->data;
    return r;
}

static int resize(const pl_eager_call *call, job *j, pl_tensor *tensor, void *out, pl_error *reterr)
{
    const void *in;
    bool pinned = false;
    pl_block copy = {0}, scratch = {0};
    int r = pin_dense(call, &in, &copy, &pinned, reterr);
    if (r == 0)
        r = pl_memory_take(call->runtime->memory, scratch_bytes(j), call->node->name, &scratch,
                           reterr);
    if (r == 0) {
        j->in = in;
        j->out = out;
        set_tables(call->node, j, scratch.data);
        r = pl_threads_run(call->runtime->threads, j->n * j->n_strips, work, j);
    }
    pl_memory_give(call->runtime->memory, &scratch);
    pl_memory_give(call->runtime->memory, &copy);
    if (pinned)
        pl_tensor_unpin(call->inputs[0]);
    pl_buffer_unpin(tensor->buffer);
    return r;
}

int pl_eager_resize(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    const int64_t *size = call->node->attrs[PL_ATTR_resize_size].value.values;
    const pl_shape *in = &call->inputs[0]->shape;
    pl_shape shape = *in;
    int64_t bytes;
    void *out;
    pl_tensor *tensor;
    shape.dims[in->rank - 3] = size[0];
    shape.dims[in->rank - 2] = size[1];
    int r = pl_tensor_size(call->node->dtype, &shape, &bytes, reterr);
    if (r < 0)
        return r;
    job j = describe(call->node, pl_threads_count_here(call->runtime->threads), in, &shape);
    uint64_t needed = pl_add_sat_u64(pl_buffer_new_cost_bytes(call->runtime->pool, (uint64_t)bytes),
                                     pl_memory_cost_bytes(pl_tensor_bytes(call->inputs[0])));
    r = pl_eager_check_budget(call, pl_add_sat_u64(needed, scratch_bytes(&j)),
                              "what it reads and makes", reterr);
    if (r == 0)
        r = pl_eager_new(call, call->node->dtype, &shape, &tensor, &out, reterr);
    if (r < 0)
        return r;
    if (bytes == 0)
        pl_buffer_unpin(tensor->buffer);
    else
        r = resize(call, &j, tensor, out, reterr);
    if (r == 0)
        *ret_tensor = tensor;
    else
        pl_tensor_unref(tensor);
    return r;
}

/* ---- row by row ---- */

struct pl_eager_rows {
    job j;
    float *wide[2]; /* the last two useful input rows, by their number */
    int64_t next;   /* row of the result */
};

bool pl_eager_takes_rows(const pl_node *resize)
{
    const int64_t *size = resize->attrs[PL_ATTR_resize_size].value.values;
    return resize->op->id == PL_OP_resize && resize->inputs[0]->dtype == PL_U8 &&
           !is_nearest(resize) && !is_antialiased(resize) && size[0] > 0 && size[1] > 0;
}

uint64_t pl_eager_rows_bytes(const pl_node *resize, const pl_shape *in, const pl_shape *out)
{
    const job j = describe(resize, 1, in, out);
    return rounded(sizeof(pl_eager_rows)) + scratch_bytes(&j);
}

pl_eager_rows *pl_eager_rows_begin(const pl_node *resize, const pl_shape *in, const pl_shape *out,
                                   void *scratch, void *made)
{
    pl_eager_rows *rows = scratch;
    *rows = (pl_eager_rows){.j = describe(resize, 1, in, out)};
    set_tables(resize, &rows->j, (char *)scratch + rounded(sizeof *rows));
    rows->j.out = made;
    rows->wide[0] = (float *)rows->j.scratch;
    rows->wide[1] = rows->wide[0] + row_items(rows->j.width, rows->j.channels);
    return rows;
}

/* The lower of two taps is the upper one or the row before it, so both are there when the upper one
 * is. */
void pl_eager_rows_take(void *context, int64_t y, const uint8_t *row)
{
    pl_eager_rows *rows = context;
    const job *j = &rows->j;
    int64_t n = j->width * j->channels;
    if (rows->next == j->height || y < j->down[rows->next].lower)
        return;
    widen_row(j, row, NULL, rows->wide[y % 2]);
    for (; rows->next < j->height && j->down[rows->next].upper <= y; rows->next++) {
        const pl_resize_tap *tap = &j->down[rows->next];
        pl_resize_blend(rows->wide[tap->lower % 2], rows->wide[tap->upper % 2], tap->lerp,
                        (float *)j->out + rows->next * n, n);
    }
}
