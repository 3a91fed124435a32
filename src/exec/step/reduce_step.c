/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: folds tiles of the input into the partials of their results.
 *   results   a tile of the output; one worker folds into it, in a fixed order
 *   chunk     a part of the folded input, if there are few results: each chunk has its own
 *             partials, which are merged in order when all are done
 * So the bits of a result do not depend on the number of threads. */
#include <string.h>

#include "exec/step/run.h"
#include "exec/step/strips.h"
#include "graph/geometry.h"
#include "kernels/elementwise/cast.h"
#include "plan/reduction.h"
#include "tensor/dtype.h"

typedef struct reduction {
    const pl_step *step;
    const pl_shape *shape; /* of the input */
    uint32_t folded;       /* axes */
    pl_reduce reduce;
    size_t partial_bytes;   /* of one result */
    int64_t n_folded;       /* tiles of the input for each tile of results */
    uint64_t results_bytes; /* partials of a tile of results, rounded up */
    char *shared;
} reduction;

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int64_t n_along(const reduction *red, int axis)
{
    int64_t extent = red->step->extent[axis];
    return extent == 0 ? 0 : (red->shape->dims[axis] + extent - 1) / extent;
}

/* Sets the axes that are folded, or those that are not, to the tile with this number. */
static void set_axes(const reduction *red, bool folded, int64_t number, pl_region *tile)
{
    for (int i = red->shape->rank - 1; i >= 0; i--) {
        if (((red->folded >> i) & 1) != folded)
            continue;
        int64_t n = n_along(red, i), extent = red->step->extent[i];
        tile->begin[i] = n > 0 ? number % n * extent : 0;
        int64_t left = red->shape->dims[i] - tile->begin[i];
        tile->extent[i] = extent < left ? extent : left;
        number /= n > 0 ? n : 1;
    }
}

/* Groups of axes that are all folded or all kept, outermost first. */
typedef struct groups {
    int n;
    int64_t extent[PL_RANK_MAX];
    bool folded[PL_RANK_MAX];
} groups;

static groups group_axes(const reduction *red, const pl_region *tile)
{
    groups g = {0};
    for (int i = 0; i < tile->rank; i++) {
        bool folded = (red->folded >> i) & 1;
        if (tile->extent[i] == 1)
            continue;
        if (g.n > 0 && g.folded[g.n - 1] == folded) {
            g.extent[g.n - 1] *= tile->extent[i];
        } else {
            g.extent[g.n] = tile->extent[i];
            g.folded[g.n++] = folded;
        }
    }
    return g;
}

typedef struct fold {
    const reduction *red;
    const groups *g;
    int64_t item_bytes;
    int64_t first_index; /* along the one axis of argmax and argmin */
    pl_partials partials;
} fold;

/* Folds the last two groups: rows that each fold into a result, or columns that do. */
static void fold_matrix(const fold *f, const char *data, int64_t at)
{
    const groups *g = f->g;
    int64_t n_columns = g->n > 0 ? g->extent[g->n - 1] : 1;
    int64_t n_rows = g->n > 1 ? g->extent[g->n - 2] : 1;
    pl_reduce_tile tile = {.data = data,
                           .row_bytes = n_columns * f->item_bytes,
                           .n_rows = n_rows,
                           .n_columns = n_columns,
                           .first_index = f->first_index,
                           .index_step = 1};
    if (g->n > 0 && g->folded[g->n - 1])
        pl_reduce_rows(f->red->reduce, &tile, f->partials, at);
    else
        pl_reduce_columns(f->red->reduce, &tile, f->partials, at);
}

/* Goes through groups before the last two, one element at a time. `at` is the first result. */
static void fold_groups(const fold *f, int group, const char *data, int64_t at)
{
    const groups *g = f->g;
    if (group >= g->n - 2) {
        fold_matrix(f, data, at);
        return;
    }
    int64_t bytes = f->item_bytes, n_results = 1;
    for (int i = group + 1; i < g->n; i++) {
        bytes *= g->extent[i];
        n_results *= g->folded[i] ? 1 : g->extent[i];
    }
    fold inner = *f;
    for (int64_t i = 0; i < g->extent[group]; i++) {
        fold_groups(&inner, group + 1, data + i * bytes, at);
        if (!g->folded[group])
            at += n_results;
    }
}

/* ---- strip by strip, where the last axis is folded ----
 * A strip is part of one row, or a number of whole rows whose results lie one after the other. */

/* Returns the elements of a row of the tile, and in *ret_n_rows how many rows there are before
 * their results repeat. */
static int64_t row_of(const groups *g, int64_t *ret_n_rows)
{
    bool folded = g->n > 0 && g->folded[g->n - 1];
    int of_results = g->n - 1 - folded;
    *ret_n_rows = of_results >= 0 ? g->extent[of_results] : 1;
    return folded ? g->extent[g->n - 1] : 1;
}

static int64_t limit_strip(void *context, int64_t from, int64_t wanted)
{
    const fold *f = context;
    int64_t n_rows, row = row_of(f->g, &n_rows), in_row = from % row;
    if (in_row > 0 || row >= wanted)
        return row - in_row < wanted ? row - in_row : wanted;
    int64_t n = wanted / row, left = n_rows - from / row % n_rows;
    return (n < left ? n : left) * row;
}

/* The result that a row belongs to: its place among the kept axes. */
static int64_t result_of_row(const groups *g, int64_t row)
{
    int64_t at = 0, step = 1;
    for (int i = g->n - 1 - (g->n > 0 && g->folded[g->n - 1]); i >= 0; i--) {
        if (!g->folded[i]) {
            at += row % g->extent[i] * step;
            step *= g->extent[i];
        }
        row /= g->extent[i];
    }
    return at;
}

static void fold_strip(void *context, const char *data, int64_t from, int64_t n)
{
    const fold *f = context;
    int64_t n_rows, row = row_of(f->g, &n_rows), in_row = from % row;
    bool part = in_row > 0 || n < row;
    pl_reduce_tile tile = {.data = data,
                           .row_bytes = row * f->item_bytes,
                           .n_rows = part ? 1 : n / row,
                           .n_columns = part ? n : row,
                           .first_index = f->first_index + in_row,
                           .index_step = 1};
    pl_reduce_rows(f->red->reduce, &tile, f->partials, result_of_row(f->g, from / row));
}

/* Folds tiles [begin, end) of the input for the results of `kept`. */
static int fold_tiles(pl_frame *frame, const reduction *red, const pl_region *kept, int64_t begin,
                      int64_t end, pl_partials partials)
{
    fold f = {.red = red,
              .item_bytes = pl_dtype_info_of(red->reduce.dtype)->item_bytes,
              .partials = partials};
    const pl_strip_taker taker = {limit_strip, fold_strip, &f};
    int r = 0;
    frame->taker = red->step->folds_strips ? &taker : NULL;
    for (int64_t i = begin; r == 0 && i < end; i++) {
        pl_region tile = *kept;
        const char *data;
        set_axes(red, true, i, &tile);
        groups g = group_axes(red, &tile);
        f.g = &g;
        for (int k = 0; k < tile.rank; k++)
            if (red->folded >> k & 1)
                f.first_index = tile.begin[k]; /* argmax and argmin fold one axis */
        r = i > begin ? pl_run_check(frame->run) : 0;
        if (r == 0)
            r = pl_tile_compute(frame, &tile, &data);
        if (r == 0 && !frame->taker)
            fold_groups(&f, 0, data, 0);
    }
    frame->taker = NULL;
    return r;
}

static int64_t n_results_of(const reduction *red, const pl_region *kept)
{
    int64_t n = 1;
    for (int i = 0; i < kept->rank; i++)
        n *= red->folded >> i & 1 ? 1 : kept->extent[i];
    return n;
}

static pl_region region_of_results(const reduction *red, const pl_region *kept, int out_rank)
{
    pl_region out = {.rank = out_rank};
    bool keepdims = out_rank == kept->rank;
    for (int i = 0, at = 0; i < kept->rank; i++) {
        bool folded = red->folded >> i & 1;
        if (folded && !keepdims)
            continue;
        out.begin[at] = folded ? 0 : kept->begin[i];
        out.extent[at++] = folded ? 1 : kept->extent[i];
    }
    return out;
}

static double ddof_of(const pl_node *node)
{
    if (node->op->id != PL_OP_variance)
        return 0;
    const pl_attr *ddof = &node->attrs[PL_ATTR_variance_ddof];
    return ddof->type == PL_ATTR_INT ? (double)ddof->value.i : ddof->value.f;
}

/* Makes results from partials, in `space`, and stores them. */
static int finish(pl_frame *frame, const reduction *red, const pl_region *kept,
                  pl_partials partials, char *space)
{
    const pl_node *node = red->step->node;
    int64_t n = n_results_of(red, kept);
    pl_dtype dtype = pl_reduce_result(red->reduce);
    pl_reduce_finish(red->reduce, partials, 0, n, ddof_of(node), space);
    if (dtype != node->dtype) {
        char *cast = space + round_up((uint64_t)n * 8);
        pl_cast_find(dtype, node->dtype)(cast, space, (size_t)n);
        space = cast;
    }
    pl_region out = region_of_results(red, kept, frame->run->plan->shapes[node->number].rank);
    return pl_run_store(frame->run, red->step->value, &out, space, &frame->error);
}

static char *tile_space(const pl_frame *frame)
{
    return frame->scratch + frame->step->worker_bytes - frame->step->tile_bytes;
}

static int reduce_results(pl_frame *frame, int64_t part, void *context)
{
    const reduction *red = context;
    pl_region kept = {.rank = red->shape->rank};
    set_axes(red, false, part, &kept);
    pl_partials partials = {tile_space(frame), n_results_of(red, &kept)};
    pl_reduce_init(red->reduce, partials, 0, partials.n);
    int r = fold_tiles(frame, red, &kept, 0, red->n_folded, partials);
    if (r < 0)
        return r;
    return finish(frame, red, &kept, partials, tile_space(frame) + red->results_bytes);
}

static pl_partials shared_partials(const reduction *red, const pl_region *kept, int64_t part)
{
    return (pl_partials){red->shared + red->results_bytes * (uint64_t)part,
                         n_results_of(red, kept)};
}

static int reduce_chunk(pl_frame *frame, int64_t part, void *context)
{
    const reduction *red = context;
    int64_t n_chunks = red->step->n_chunks, chunk = part % n_chunks;
    pl_region kept = {.rank = red->shape->rank};
    set_axes(red, false, part / n_chunks, &kept);
    pl_partials partials = shared_partials(red, &kept, part);
    pl_reduce_init(red->reduce, partials, 0, partials.n);
    return fold_tiles(frame, red, &kept, red->n_folded * chunk / n_chunks,
                      red->n_folded * (chunk + 1) / n_chunks, partials);
}

static int merge_chunks(pl_frame *frame, int64_t part, void *context)
{
    const reduction *red = context;
    pl_region kept = {.rank = red->shape->rank};
    set_axes(red, false, part, &kept);
    int64_t first = part * red->step->n_chunks;
    pl_partials all = shared_partials(red, &kept, first);
    for (int64_t i = 1; i < red->step->n_chunks; i++)
        pl_reduce_merge(red->reduce, all, 0, shared_partials(red, &kept, first + i), 0, all.n);
    return finish(frame, red, &kept, all, tile_space(frame));
}

int pl_run_reduce(pl_run *run, const pl_step *step, pl_frame *frames, char *shared,
                  pl_error *reterr)
{
    reduction red = {.step = step,
                     .shape = &step->program.boxes[0].shape,
                     .folded = pl_reduced_axes(step->node),
                     .reduce = pl_reduction_of(step->node),
                     .n_folded = 1,
                     .shared = shared};
    red.partial_bytes = pl_reduce_bytes(red.reduce);
    pl_region largest = {.rank = red.shape->rank};
    memcpy(largest.extent, step->extent, sizeof largest.extent);
    red.results_bytes = round_up((uint64_t)n_results_of(&red, &largest) * red.partial_bytes);
    for (int i = 0; i < red.shape->rank; i++)
        if (red.folded >> i & 1)
            red.n_folded *= n_along(&red, i);
    if (step->n_chunks == 1)
        return pl_run_parallel(run, frames, pl_step_n_frames(step), step->n_tiles, reduce_results,
                               &red, reterr);
    int r = pl_run_parallel(run, frames, pl_step_n_frames(step), step->n_tiles * step->n_chunks,
                            reduce_chunk, &red, reterr);
    if (r < 0)
        return r;
    return pl_run_parallel(run, frames, 1, step->n_tiles, merge_chunks, &red, reterr);
}
