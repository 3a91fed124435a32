/* SPDX-License-Identifier: Apache-2.0 */
/* See region.h. Copying is in region_copy.c. */
#include "tensor/region.h"

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

pl_region pl_region_whole(const pl_shape *shape)
{
    pl_region whole = {.rank = shape->rank};
    for (int i = 0; i < shape->rank; i++)
        whole.extent[i] = shape->dims[i];
    return whole;
}

bool pl_region_is_empty(const pl_region *region)
{
    for (int i = 0; i < region->rank; i++)
        if (region->extent[i] == 0)
            return true;
    return false;
}

bool pl_region_equal(const pl_region *a, const pl_region *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->begin[i] != b->begin[i] || a->extent[i] != b->extent[i])
            return false;
    return true;
}

bool pl_region_inside(const pl_region *region, const pl_shape *shape)
{
    if (region->rank != shape->rank)
        return false;
    for (int i = 0; i < region->rank; i++)
        if (region->begin[i] < 0 || region->extent[i] < 0 ||
            region->begin[i] > shape->dims[i] - region->extent[i])
            return false;
    return true;
}

bool pl_region_contains(const pl_region *outer, const pl_region *inner)
{
    if (outer->rank != inner->rank)
        return false;
    if (pl_region_is_empty(inner))
        return true;
    for (int i = 0; i < outer->rank; i++)
        if (inner->begin[i] < outer->begin[i] ||
            inner->begin[i] + inner->extent[i] > outer->begin[i] + outer->extent[i])
            return false;
    return true;
}

/* Clips [begin, begin + extent) to [low, high). */
static void clip(int64_t *begin, int64_t *extent, int64_t low, int64_t high)
{
    int64_t from = max_i64(*begin, low), to = min_i64(*begin + *extent, high);
    *begin = from;
    *extent = max_i64(to - from, 0);
}

bool pl_region_intersect(const pl_region *a, const pl_region *b, pl_region *ret_both)
{
    pl_region both = *a;
    for (int i = 0; i < a->rank; i++)
        clip(&both.begin[i], &both.extent[i], b->begin[i], b->begin[i] + b->extent[i]);
    *ret_both = both;
    return !pl_region_is_empty(&both);
}

int64_t pl_region_count(const pl_region *region)
{
    int64_t count = 1;
    for (int i = 0; i < region->rank; i++)
        if (__builtin_mul_overflow(count, region->extent[i], &count))
            count = INT64_MAX;
    return count;
}

int64_t pl_region_offset(const pl_region *region, const int64_t strides[PL_RANK_MAX])
{
    int64_t offset = 0;
    for (int i = 0; i < region->rank; i++)
        offset += region->begin[i] * strides[i];
    return offset;
}

pl_region pl_region_of_broadcast(const pl_region *out, const pl_shape *in)
{
    pl_region region = {.rank = in->rank};
    bool empty = pl_region_is_empty(out); /* an axis that the input lacks counts too */
    for (int i = 0; i < in->rank; i++) {
        int axis = i + out->rank - in->rank;
        bool repeated = in->dims[i] == 1;
        region.begin[i] = repeated ? 0 : out->begin[axis];
        region.extent[i] = empty ? 0 : repeated ? 1 : out->extent[axis];
    }
    return region;
}

pl_region pl_region_of_transpose(const pl_region *out, const int axes[PL_RANK_MAX])
{
    pl_region region = {.rank = out->rank};
    for (int i = 0; i < out->rank; i++) {
        region.begin[axes[i]] = out->begin[i];
        region.extent[axes[i]] = out->extent[i];
    }
    return region;
}

pl_region pl_region_of_slice(const pl_region *out, const int64_t start[PL_RANK_MAX],
                             const int64_t step[PL_RANK_MAX])
{
    pl_region region = {.rank = out->rank};
    if (pl_region_is_empty(out))
        return region;
    for (int i = 0; i < out->rank; i++) {
        int64_t first = start[i] + out->begin[i] * step[i];
        int64_t last = first + (out->extent[i] - 1) * step[i];
        region.begin[i] = min_i64(first, last);
        region.extent[i] = max_i64(first, last) - region.begin[i] + 1;
    }
    return region;
}

bool pl_region_of_pad(const pl_region *out, const int64_t before[PL_RANK_MAX], const pl_shape *in,
                      pl_region *ret_in, pl_region *ret_out)
{
    pl_region there = *out;
    for (int i = 0; i < out->rank; i++)
        clip(&there.begin[i], &there.extent[i], before[i], before[i] + in->dims[i]);
    if (pl_region_is_empty(&there))
        return false;

    *ret_out = *ret_in = there;
    for (int i = 0; i < out->rank; i++)
        ret_in->begin[i] -= before[i];
    return true;
}

bool pl_region_of_concat(const pl_region *out, int axis, int64_t begin, const pl_shape *in,
                         pl_region *ret_in, pl_region *ret_out)
{
    int64_t before[PL_RANK_MAX] = {0};
    before[axis] = begin;
    return pl_region_of_pad(out, before, in, ret_in, ret_out);
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Returns the tile at `begin`; the last one along an axis ends with it. */
static void set_extents(pl_region_tiles *tiles)
{
    pl_region *next = &tiles->next;
    const pl_region *whole = &tiles->whole;
    for (int i = 0; i < whole->rank; i++)
        next->extent[i] =
            min_i64(tiles->extent[i], whole->begin[i] + whole->extent[i] - next->begin[i]);
}

int pl_region_tiles_init(pl_region_tiles *tiles, const pl_region *region, uint64_t item_bytes,
                         uint64_t max_bytes)
{
    if (item_bytes > max_bytes)
        return PL_EBUDGET;

    pl_region_tiles made = {.whole = *region, .next = *region, .n_tiles = 1};
    made.done = pl_region_is_empty(region);
    int64_t room = (int64_t)pl_min_u64(max_bytes / pl_max_u64(item_bytes, 1), INT64_MAX);
    for (int i = region->rank - 1; i >= 0 && !made.done; i--) {
        int64_t n_parts =
            divide_up(region->extent[i], max_i64(min_i64(room, region->extent[i]), 1));
        made.extent[i] = divide_up(region->extent[i], n_parts);
        made.n_tiles *= divide_up(region->extent[i], made.extent[i]);
        room /= made.extent[i]; /* 1 once an axis is cut: its parts are over half of the room */
    }
    if (made.done)
        made.n_tiles = 0;
    set_extents(&made);
    *tiles = made;
    return 0;
}

bool pl_region_tiles_next(pl_region_tiles *tiles, pl_region *ret_tile)
{
    if (tiles->done)
        return false;
    *ret_tile = tiles->next;

    const pl_region *whole = &tiles->whole;
    int axis = whole->rank - 1;
    for (; axis >= 0; axis--) {
        tiles->next.begin[axis] += tiles->next.extent[axis];
        if (tiles->next.begin[axis] < whole->begin[axis] + whole->extent[axis])
            break;
        tiles->next.begin[axis] = whole->begin[axis];
    }
    tiles->done = axis < 0;
    set_extents(tiles);
    return true;
}

pl_region pl_region_tile_at(const pl_shape *shape, const int64_t *extents, int64_t number)
{
    pl_region tile = {.rank = shape->rank};
    for (int i = shape->rank - 1; i >= 0; i--) {
        int64_t n = (shape->dims[i] + extents[i] - 1) / extents[i];
        tile.begin[i] = number % n * extents[i];
        tile.extent[i] = min_i64(extents[i], shape->dims[i] - tile.begin[i]);
        number /= n;
    }
    return tile;
}
