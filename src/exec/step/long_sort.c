/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts rows on disk.
 *   run    a sorted stretch of a row; all but the last of a row are equally long
 *   block  the part of a run being merged that is in memory
 *   bound  the least of the last elements of blocks whose runs continue: elements not above it can
 *          be output, because later ones are not below it
 *
 * Several runs at a time are merged into one, from one buffer to another, until one run is left.
 * Output is collected in the order of its runs and sorted like a part of a row, so nothing is
 * merged element by element, and equal elements keep their order: those of runs before the bound's
 * run go out with it, those of later runs wait. */
#include <string.h>

#include "exec/step/long_rows.h"
#include "exec/step/seats.h"
#include "kernels/row/sort.h"
#include "tensor/dtype.h"
#include "tensor/runtime.h"

/* The most runs merged at a time; fewer, if blocks would become shorter than a page. */
enum { RUNS_MOST = 64, BLOCK_BYTES = 4096 };

typedef struct run {
    int64_t next, end; /* in the row: what is still on disk */
    int64_t n, taken;  /* of its block */
} run;

typedef struct merge {
    const pl_long_sort *sort;
    const pl_row_part *part;
    const pl_long_rows *rows;
    pl_sort how;
    bool with_places;
    int64_t item, length; /* bytes of an element; elements of a row */
    int64_t row;
    int from; /* the buffers that are read, of both */
    int n_runs;
    int64_t block; /* elements */
    run runs[RUNS_MOST];
} merge;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static merge merge_of(const pl_long_sort *sort, const pl_row_part *part)
{
    const pl_long_rows *rows = &part->run->rows;
    const pl_node *node = part->run->step->node;
    return (merge){.sort = sort,
                   .part = part,
                   .rows = rows,
                   .how = {rows->in, node->attrs[PL_ATTR_sort_descending].value.i},
                   .with_places = node->op->id == PL_OP_argsort,
                   .item = pl_dtype_info_of(rows->in)->item_bytes,
                   .length = part->run->shape->dims[rows->axis]};
}

static char *values_at(const merge *m, uint64_t place)
{
    return m->part->space + place;
}

static int64_t *places_at(const merge *m, uint64_t place)
{
    return (int64_t *)(void *)(m->part->space + place);
}

/* Adds the node's name, which errors of the spill file do not have. */
static int name_error(const pl_row_part *part, int r)
{
    pl_frame *frame = part->frame;
    return r < 0 ? pl_run_name_error(part->run->step->node, r, &frame->error, &frame->error) : 0;
}

int pl_long_sort_init(pl_long_sort *sort, const pl_row_part *part)
{
    merge m = merge_of(sort, part);
    pl_pool *pool = part->frame->run->runtime->pool;
    const char *what = part->run->step->node->name;
    uint64_t n = (uint64_t)(part->n_rows * m.length);
    int r = 0;
    *sort = (pl_long_sort){0};
    for (int i = 0; r == 0 && i < 2; i++) {
        r = pl_buffer_new_spilled(pool, n * (uint64_t)m.item, what, &sort->values[i],
                                  &part->frame->error);
        if (r == 0 && m.with_places)
            r = pl_buffer_new_spilled(pool, n * 8, what, &sort->places[i], &part->frame->error);
    }
    return name_error(part, r);
}

void pl_long_sort_done(pl_long_sort *sort)
{
    for (int i = 0; i < 2; i++) {
        pl_buffer_unref(sort->values[i]);
        pl_buffer_unref(sort->places[i]);
    }
}

/* Reads or writes elements of the row, where runs are or where they go, from or to these
 * addresses. */
static int transfer(const merge *m, bool write, int64_t at, int64_t n, void *values, void *places)
{
    pl_frame *frame = m->part->frame;
    int which = write ? !m->from : m->from;
    uint64_t first = (uint64_t)(m->row * m->length + at), item = (uint64_t)m->item;
    pl_buffer *of_values = m->sort->values[which], *of_places = m->sort->places[which];
    pl_seats_give(frame->seats);
    int r = 0;
    if (values)
        r = write
                ? pl_buffer_write(of_values, first * item, values, (size_t)n * item, &frame->error)
                : pl_buffer_read(of_values, first * item, values, (size_t)n * item, &frame->error);
    if (r == 0 && m->with_places && places)
        r = write ? pl_buffer_write(of_places, first * 8, places, (size_t)n * 8, &frame->error)
                  : pl_buffer_read(of_places, first * 8, places, (size_t)n * 8, &frame->error);
    pl_seats_take(frame->seats);
    return name_error(m->part, r);
}

/* Sorts the n collected elements, and writes them from `at` on. */
static int sort_collected(const merge *m, int64_t n, int64_t at)
{
    const pl_long_rows *rows = m->rows;
    char *values = values_at(m, rows->candidates), *sorted = values_at(m, rows->sorted);
    void *work = values_at(m, rows->work);
    if (!m->with_places) {
        pl_sort_row(m->how, values, n, sorted, work);
        return transfer(m, true, at, n, sorted, NULL);
    }
    const int64_t *places = places_at(m, rows->candidate_places);
    int64_t *order = places_at(m, rows->order), *sorted_places = places_at(m, rows->sorted_places);
    pl_argsort_row(m->how, values, n, order, work);
    for (int64_t i = 0; i < n; i++) {
        memcpy(sorted + i * m->item, values + order[i] * m->item, (size_t)m->item);
        sorted_places[i] = places[order[i]];
    }
    return transfer(m, true, at, n, sorted, sorted_places);
}

int pl_long_sort_add(const pl_long_sort *sort, const pl_row_part *part)
{
    merge m = merge_of(sort, part);
    int64_t n = part->tile.extent[m.rows->axis];
    char *values = values_at(&m, m.rows->candidates);
    int64_t *places = places_at(&m, m.rows->candidate_places);
    m.from = 1; /* runs are written to the first */
    for (; m.row < part->n_rows; m.row++) {
        const char *in =
            part->in +
            (m.row / part->n_behind * n * part->n_behind + m.row % part->n_behind) * m.item;
        for (int64_t i = 0; i < n; i++)
            memcpy(values + i * m.item, in + i * part->n_behind * m.item, (size_t)m.item);
        for (int64_t i = 0; m.with_places && i < n; i++)
            places[i] = part->n_before + i;
        int r = sort_collected(&m, n, part->n_before);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Reads the next block of every run that has none in memory. */
static int fill_blocks(merge *m)
{
    int r = 0;
    for (int i = 0; r == 0 && i < m->n_runs; i++) {
        run *one = &m->runs[i];
        if (one->taken < one->n || one->next == one->end)
            continue;
        one->taken = 0;
        one->n = least(m->block, one->end - one->next);
        r = transfer(m, false, one->next, one->n,
                     values_at(m, m->rows->blocks) + i * m->block * m->item,
                     places_at(m, m->rows->block_places) + i * m->block);
        one->next += one->n;
    }
    return r;
}

static char *block_of(const merge *m, int i)
{
    return values_at(m, m->rows->blocks) + (i * m->block + m->runs[i].taken) * m->item;
}

static const char *last_of(const merge *m, int i)
{
    return values_at(m, m->rows->blocks) + (i * m->block + m->runs[i].n - 1) * m->item;
}

/* Counts the elements in `sorted` that come before x or equal it. */
static int64_t count(const merge *m, const char *sorted, int64_t n, const char *x, bool equals)
{
    return pl_sort_count(m->how, sorted, n, x, equals);
}

/* Returns the run whose last element is the bound; -1: all have ended. */
static int find_bound(const merge *m)
{
    int bound = -1;
    for (int i = 0; i < m->n_runs; i++)
        if (m->runs[i].next < m->runs[i].end &&
            (bound < 0 || count(m, last_of(m, i), 1, last_of(m, bound), false) > 0))
            bound = i;
    return bound;
}

/* Collects all elements that can be output; returns how many. */
static int64_t collect(merge *m)
{
    int bound = find_bound(m);
    int64_t n_all = 0;
    for (int i = 0; i < m->n_runs; i++) {
        run *one = &m->runs[i];
        int64_t n = one->n - one->taken;
        if (bound >= 0 && n > 0)
            n = count(m, block_of(m, i), n, last_of(m, bound), i <= bound);
        memcpy(values_at(m, m->rows->candidates) + n_all * m->item, block_of(m, i),
               (size_t)(n * m->item));
        if (m->with_places)
            memcpy(places_at(m, m->rows->candidate_places) + n_all,
                   places_at(m, m->rows->block_places) + i * m->block + one->taken,
                   (size_t)n * sizeof(int64_t));
        one->taken += n;
        n_all += n;
    }
    return n_all;
}

/* Merges runs of `length`, from `at` on, into one. */
static int merge_runs(merge *m, int64_t at, int64_t length)
{
    int64_t end = m->length - at < length * m->n_runs ? m->length : at + length * m->n_runs;
    for (int i = 0; i < m->n_runs; i++) {
        int64_t begin = least(at + i * length, end);
        m->runs[i] = (run){.next = begin, .end = least(begin + length, end)};
    }
    while (at < end) {
        int r = pl_run_check(m->part->frame->run);
        if (r == 0)
            r = fill_blocks(m);
        if (r < 0)
            return r;
        int64_t n = collect(m);
        r = sort_collected(m, n, at);
        if (r < 0)
            return r;
        at += n;
    }
    return 0;
}

/* Stores the sorted rows, part by part. */
static int store_rows(merge *m, pl_row_part *part)
{
    const pl_long_rows *rows = m->rows;
    int64_t item = m->with_places ? 8 : m->item;
    char *all = values_at(m, rows->result);
    char *one = values_at(m, m->with_places ? rows->candidate_places : rows->candidates);
    int r = 0;
    for (int64_t i = 0; r == 0 && i < rows->n_parts; i++) {
        pl_row_part_set(part, i);
        int64_t n = part->tile.extent[rows->axis], behind = part->n_behind;
        for (m->row = 0; r == 0 && m->row < part->n_rows; m->row++) {
            r = transfer(m, false, part->n_before, n, m->with_places ? NULL : one, one);
            char *to = all + (m->row / behind * n * behind + m->row % behind) * item;
            for (int64_t k = 0; k < n; k++)
                memcpy(to + k * behind * item, one + k * item, (size_t)item);
        }
        if (r == 0)
            r = pl_row_part_store(part);
    }
    return r;
}

int pl_long_sort_finish(pl_long_sort *sort, pl_row_part *part)
{
    merge m = merge_of(sort, part);
    int64_t room = part->run->step->extent[m.rows->axis];
    int64_t n_runs = room * m.item / BLOCK_BYTES;
    m.n_runs = (int)(n_runs < 2 ? 2 : least(n_runs, RUNS_MOST));
    m.block = room < m.n_runs ? 1 : room / m.n_runs;
    for (int64_t length = room; length < m.length; m.from = !m.from) {
        int64_t merged = m.length / length < m.n_runs ? m.length : length * m.n_runs;
        for (m.row = 0; m.row < part->n_rows; m.row++)
            for (int64_t at = 0; at < m.length; at += least(merged, m.length - at)) {
                int r = merge_runs(&m, at, length);
                if (r < 0)
                    return r;
            }
        length = merged;
    }
    return store_rows(&m, part);
}
