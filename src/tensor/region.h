/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes in a shape: what is computed, loaded or copied at a time.
 *   region  along each axis the elements [begin, begin + extent)
 *   empty   some extent is 0; rank 0 is one element, and never empty
 *   tile    one of the regions that a larger one is cut into
 *
 *   0 <= begin, 0 <= extent, begin + extent <= dimension <= INT64_MAX, in a shape that
 *   pl_shape_bytes() accepts: so no sum or product below overflows
 *
 * The pl_region_of_... functions return the region of an input that an operation needs for a region
 * of its output; they are pure, and assume inferred shapes. Never allocates; safe from any thread.
 */
#ifndef PL_TENSOR_REGION_H
#define PL_TENSOR_REGION_H

#include "base/base.h"
#include "plimsoll/tensor.h"

typedef struct pl_region {
    int32_t rank;
    int64_t begin[PL_RANK_MAX];
    int64_t extent[PL_RANK_MAX];
} pl_region;

pl_region pl_region_whole(const pl_shape *shape);
bool pl_region_is_empty(const pl_region *region);
bool pl_region_equal(const pl_region *a, const pl_region *b);
bool pl_region_inside(const pl_region *region, const pl_shape *shape);

/* Returns whether every element of `inner` is in `outer`; true for an empty one. */
bool pl_region_contains(const pl_region *outer, const pl_region *inner);

/* Intersects a and b; false, and an empty region, if they share nothing. *ret_both may be a or b.
 */
bool pl_region_intersect(const pl_region *a, const pl_region *b, pl_region *ret_both);

/* INT64_MAX if there are more: a shape can be described even if nothing could hold it. */
int64_t pl_region_count(const pl_region *region);

/* Returns the offset of the region's first element, in bytes from the shape's first. */
int64_t pl_region_offset(const pl_region *region, const int64_t strides[PL_RANK_MAX]);

/* For an input that is repeated along axes where it is 1 or that it lacks. */
pl_region pl_region_of_broadcast(const pl_region *out, const pl_shape *in);

/* For a transpose: axis i of the output is axis `axes[i]` of the input. */
pl_region pl_region_of_transpose(const pl_region *out, const int axes[PL_RANK_MAX]);

/* For a slice: element i of the output's axis is element start + i * step of the input's; a step
 * may be negative, and is not 0. The region includes skipped elements. */
pl_region pl_region_of_slice(const pl_region *out, const int64_t start[PL_RANK_MAX],
                             const int64_t step[PL_RANK_MAX]);

/* For padding: the input is in the output with its first element at `before`, which may be negative
 * (the input is then cut off). False if the region contains none of it. *ret_in is what is needed
 * of the input, and *ret_out its place in the output. */
bool pl_region_of_pad(const pl_region *out, const int64_t before[PL_RANK_MAX], const pl_shape *in,
                      pl_region *ret_in, pl_region *ret_out);

/* For concatenation: one of several inputs one after another along `axis`, this one from `begin`
 * on. */
bool pl_region_of_concat(const pl_region *out, int axis, int64_t begin, const pl_shape *in,
                         pl_region *ret_in, pl_region *ret_out);

/* A walk over the tiles of a region, in the order of its elements. Copy it to walk again. */
typedef struct pl_region_tiles {
    pl_region whole;
    int64_t extent[PL_RANK_MAX]; /* extents of a tile; the last along an axis may be smaller */
    int64_t n_tiles;
    pl_region next; /* the next tile */
    bool done;
} pl_region_tiles;

/* Cuts `region` into tiles of at most `max_bytes`: along the outermost axes first, so that
 * contiguous elements stay together, and into parts that are as equal as possible. An empty region
 * has no tiles. PL_EBUDGET if one element is larger. */
PL_MUST_CHECK int pl_region_tiles_init(pl_region_tiles *tiles, const pl_region *region,
                                       uint64_t item_bytes, uint64_t max_bytes);
bool pl_region_tiles_next(pl_region_tiles *tiles, pl_region *ret_tile);

/* Returns the tile with this number, in element order, of a shape cut into tiles of these extents.
 */
pl_region pl_region_tile_at(const pl_shape *shape, const int64_t *extents, int64_t number);

/* Copies extents[0] x ... elements between two layouts. Strides are in bytes and may be negative; 0
 * in the source repeats an element. The two must not overlap, nor the destination itself. Elements
 * of any size and alignment. As fast as memory when either side's rows are whole; transposes go
 * through the cache in blocks. */
void pl_region_copy(void *dst, const int64_t *dst_strides, const void *src,
                    const int64_t *src_strides, const int64_t *extents, int rank,
                    size_t item_bytes);

#endif
