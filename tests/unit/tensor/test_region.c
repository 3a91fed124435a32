/* SPDX-License-Identifier: Apache-2.0 */
/* Regions map to the inputs that they need; tiles cover each element once, in order and within
 * their bytes; copies meet a naive twin over random layouts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/region.h"
#include "tensor/shape.h"

/* REGION({begin, ...}, {extent, ...}) of rank 2 */
#define REGION2(b0, b1, e0, e1)                                                                    \
    ((pl_region){.rank = 2, .begin = {(b0), (b1)}, .extent = {(e0), (e1)}})
#define REGION1(b, e) ((pl_region){.rank = 1, .begin = {b}, .extent = {e}})

static void assert_region(pl_region region, pl_region wanted)
{
    if (!pl_region_equal(&region, &wanted))
        fail_msg("[%lld+%lld,%lld+%lld] of rank %d", (long long)region.begin[0],
                 (long long)region.extent[0], (long long)region.begin[1],
                 (long long)region.extent[1], region.rank);
}

static void the_whole_of_a_shape_is_inside_of_it(void **state)
{
    (void)state;
    pl_region whole = pl_region_whole(&PL_SHAPE(2, 3));
    assert_region(whole, REGION2(0, 0, 2, 3));
    assert_true(pl_region_inside(&whole, &PL_SHAPE(2, 3)));
    assert_false(pl_region_inside(&whole, &PL_SHAPE(2, 2)));
    assert_false(pl_region_inside(&whole, &PL_SHAPE(2, 3, 1)));
    assert_false(pl_region_inside(&REGION1(-1, 1), &PL_SHAPE(5)));
    assert_false(pl_region_inside(&REGION1(1, -1), &PL_SHAPE(5)));
    assert_false(pl_region_inside(&REGION1(INT64_MAX, INT64_MAX), &PL_SHAPE(5)));
    assert_true(pl_region_inside(&REGION1(5, 0), &PL_SHAPE(5)));
    assert_int_equal(pl_region_count(&whole), 6);
    assert_int_equal(pl_region_count(&(pl_region){.rank = 0}), 1);
    assert_int_equal(pl_region_offset(&REGION2(1, 2, 1, 1), (int64_t[8]){12, 4}), 20);
}

static void regions_intersect_where_both_are(void **state)
{
    (void)state;
    pl_region both;
    assert_true(pl_region_intersect(&REGION2(0, 0, 4, 4), &REGION2(2, 3, 9, 9), &both));
    assert_region(both, REGION2(2, 3, 2, 1));
    assert_false(pl_region_intersect(&REGION2(0, 0, 4, 4), &REGION2(4, 0, 1, 4), &both));
    assert_true(pl_region_is_empty(&both));
    assert_true(pl_region_contains(&REGION2(1, 1, 3, 3), &REGION2(2, 1, 2, 3)));
    assert_false(pl_region_contains(&REGION2(1, 1, 3, 3), &REGION2(0, 1, 2, 3)));
    assert_false(pl_region_contains(&REGION2(1, 1, 3, 3), &REGION2(2, 1, 3, 3)));
    assert_true(pl_region_contains(&REGION2(1, 1, 3, 3), &REGION2(9, 9, 0, 3)));
    assert_false(pl_region_contains(&REGION2(1, 1, 3, 3), &REGION1(1, 1)));
}

static void a_repeated_input_is_needed_once(void **state)
{
    (void)state;
    assert_region(pl_region_of_broadcast(&REGION2(2, 3, 4, 5), &PL_SHAPE(9, 9)),
                  REGION2(2, 3, 4, 5));
    assert_region(pl_region_of_broadcast(&REGION2(2, 3, 4, 5), &PL_SHAPE(1, 9)),
                  REGION2(0, 3, 1, 5));
    assert_region(pl_region_of_broadcast(&REGION2(2, 3, 4, 5), &PL_SHAPE(9)), REGION1(3, 5));
    assert_region(pl_region_of_broadcast(&REGION2(2, 3, 4, 5), &PL_SHAPE()),
                  (pl_region){.rank = 0});
    pl_region none = pl_region_of_broadcast(&REGION2(2, 3, 0, 5), &PL_SHAPE(9));
    assert_true(pl_region_is_empty(&none));
}

static void a_transposed_region_follows_its_axes(void **state)
{
    (void)state;
    const pl_region out = {.rank = 3, .begin = {1, 2, 3}, .extent = {4, 5, 6}};
    const pl_region wanted = {.rank = 3, .begin = {2, 3, 1}, .extent = {5, 6, 4}};
    assert_region(pl_region_of_transpose(&out, (int[8]){2, 0, 1}), wanted);
}

static void a_slice_spans_from_its_first_to_its_last_element(void **state)
{
    (void)state;
    /* Elements 10, 13, 16, 19, ... of which 1, 2 and 3 are wanted; 20, 18, 16, ... */
    assert_region(
        pl_region_of_slice(&REGION2(1, 1, 3, 2), (int64_t[8]){10, 20}, (int64_t[8]){3, -2}),
        REGION2(13, 16, 7, 3));
    assert_region(pl_region_of_slice(&REGION1(0, 1), (int64_t[8]){4}, (int64_t[8]){-1}),
                  REGION1(4, 1));
    pl_region none = pl_region_of_slice(&REGION1(0, 0), (int64_t[8]){4}, (int64_t[8]){-1});
    assert_true(pl_region_is_empty(&none));
}

static void padding_needs_only_what_lies_under_the_region(void **state)
{
    (void)state;
    pl_region in, out;
    const int64_t before[8] = {2, -1};
    assert_true(pl_region_of_pad(&REGION2(0, 0, 4, 9), before, &PL_SHAPE(3, 5), &in, &out));
    assert_region(in, REGION2(0, 1, 2, 4));
    assert_region(out, REGION2(2, 0, 2, 4));
    assert_false(pl_region_of_pad(&REGION2(0, 0, 2, 9), before, &PL_SHAPE(3, 5), &in, &out));
    assert_region(in, REGION2(0, 1, 2, 4));
}

static void concatenated_inputs_share_a_region_without_gap_or_overlap(void **state)
{
    (void)state;
    pl_region in, out;
    const pl_region region = REGION2(1, 3, 1, 6);
    assert_true(pl_region_of_concat(&region, 1, 0, &PL_SHAPE(2, 4), &in, &out));
    assert_region(in, REGION2(1, 3, 1, 1));
    assert_region(out, REGION2(1, 3, 1, 1));
    assert_false(pl_region_of_concat(&region, 1, 4, &PL_SHAPE(2, 0), &in, &out));
    assert_true(pl_region_of_concat(&region, 1, 4, &PL_SHAPE(2, 4), &in, &out));
    assert_region(in, REGION2(1, 0, 1, 4));
    assert_region(out, REGION2(1, 4, 1, 4));
    assert_true(pl_region_of_concat(&region, 1, 8, &PL_SHAPE(2, 4), &in, &out));
    assert_region(in, REGION2(1, 0, 1, 1));
    assert_false(pl_region_of_concat(&region, 1, 12, &PL_SHAPE(2, 4), &in, &out));
}

static void tiles_are_cut_from_the_outermost_axes_into_equal_parts(void **state)
{
    (void)state;
    pl_region tile;
    pl_region_tiles tiles;
    const pl_region whole = pl_region_whole(&PL_SHAPE(10, 100));
    assert_int_equal(pl_region_tiles_init(&tiles, &whole, 4, 4000), 0);
    assert_int_equal(tiles.n_tiles, 1);
    assert_int_equal(pl_region_tiles_init(&tiles, &whole, 4, 3999), 0);
    assert_int_equal(tiles.n_tiles, 2);
    assert_true(pl_region_tiles_next(&tiles, &tile));
    assert_region(tile, REGION2(0, 0, 5, 100)); /* not nine rows and one */
    assert_int_equal(pl_region_tiles_init(&tiles, &whole, 4, 399), 0);
    assert_int_equal(tiles.n_tiles, 20);
    assert_true(pl_region_tiles_next(&tiles, &tile));
    assert_region(tile, REGION2(0, 0, 1, 50));
    assert_true(pl_region_tiles_next(&tiles, &tile));
    assert_region(tile, REGION2(0, 50, 1, 50));
    assert_true(pl_region_tiles_next(&tiles, &tile));
    assert_region(tile, REGION2(1, 0, 1, 50));
}

static void an_element_larger_than_a_tile_is_refused_and_nothing_has_no_tiles(void **state)
{
    (void)state;
    pl_region tile;
    pl_region_tiles tiles;
    assert_int_equal(pl_region_tiles_init(&tiles, &REGION1(0, 5), 8, 7), PL_EBUDGET);
    assert_int_equal(pl_region_tiles_init(&tiles, &REGION1(0, 0), 8, 8), 0);
    assert_int_equal(tiles.n_tiles, 0);
    assert_false(pl_region_tiles_next(&tiles, &tile));
    assert_int_equal(pl_region_tiles_init(&tiles, &(pl_region){.rank = 0}, 8, 8), 0);
    assert_true(pl_region_tiles_next(&tiles, &tile));
    assert_false(pl_region_tiles_next(&tiles, &tile));
}

static int64_t random_below(int64_t n)
{
    return random() % n;
}

static pl_region random_region(int64_t max_extent)
{
    pl_region region = {.rank = (int)random_below(5)};
    for (int i = 0; i < region.rank; i++) {
        region.begin[i] = random_below(3);
        region.extent[i] = 1 + random_below(max_extent);
    }
    return region;
}

/* The place of a tile's element `k` in a C layout with these strides. */
static int64_t place_of(const pl_region *tile, int64_t k, const int64_t *strides)
{
    int64_t place = pl_region_offset(tile, strides);
    for (int i = tile->rank - 1; i >= 0; k /= tile->extent[i--])
        place += k % tile->extent[i] * strides[i];
    return place;
}

static void tiles_cover_each_element_once_within_their_bytes(void **state)
{
    (void)state;
    static uint8_t seen[4096];
    srandom(1);
    for (int round = 0; round < 3000; round++) {
        pl_region_tiles tiles;
        pl_region whole = random_region(6), tile;
        uint64_t max_bytes = 4 + (uint64_t)random_below(4000);
        int64_t strides[PL_RANK_MAX], n_tiles = 0, n_elements = 0, last = -1;
        pl_shape shape = {.rank = whole.rank};
        memcpy(shape.dims, whole.extent, sizeof shape.dims);
        pl_shape_strides(&shape, 1, strides);
        int64_t origin = pl_region_offset(&whole, strides);
        memset(seen, 0, sizeof seen);
        assert_int_equal(pl_region_tiles_init(&tiles, &whole, 4, max_bytes), 0);
        for (; pl_region_tiles_next(&tiles, &tile); n_tiles++) {
            assert_true(pl_region_contains(&whole, &tile));
            assert_true((uint64_t)pl_region_count(&tile) * 4 <= max_bytes);
            int64_t first = pl_region_offset(&tile, strides) - origin;
            assert_true(first > last);
            last = first;
            n_elements += pl_region_count(&tile);
            for (int64_t k = 0; k < pl_region_count(&tile); k++)
                assert_int_equal(seen[place_of(&tile, k, strides) - origin]++, 0);
        }
        assert_int_equal(n_tiles, tiles.n_tiles);
        assert_int_equal(n_elements, pl_region_count(&whole));
    }
}

enum { ROOM = 1 << 20, MAX_COPIED = 1 << 17 };

/* A random layout of `extents` within ROOM bytes: axes in any order and direction, with gaps.
 * Returns where the first element lies. */
static int64_t random_layout(const int64_t *extents, int rank, int64_t item, int64_t *strides)
{
    int64_t stride = item, first = 0;
    int order[PL_RANK_MAX];
    for (int i = 0; i < rank; i++) {
        int at = (int)random_below(i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    for (int i = 0; i < rank; i++) {
        int axis = order[i];
        if (random_below(4) == 0)
            stride += random_below(2 * item + 1);
        strides[axis] = random_below(4) ? stride : -stride;
        if (strides[axis] < 0)
            first += stride * (extents[axis] - 1);
        stride *= extents[axis];
    }
    return first;
}

static void copy_naively(char *dst, const int64_t *dst_strides, const char *src,
                         const int64_t *src_strides, const int64_t *extents, int rank, size_t item)
{
    if (rank == 0) {
        memcpy(dst, src, item);
        return;
    }
    for (int64_t i = 0; i < extents[0]; i++)
        copy_naively(dst + i * dst_strides[0], dst_strides + 1, src + i * src_strides[0],
                     src_strides + 1, extents + 1, rank - 1, item);
}

/* Extents whose product with gaps stays within ROOM. */
static int random_extents(int64_t *extents, int64_t item)
{
    int rank = (int)random_below(PL_RANK_MAX + 1);
    int64_t left = MAX_COPIED / item / 4;
    for (int i = 0; i < rank; i++) {
        int64_t limit = random_below(3) ? 5 : left;
        extents[i] = 1 + random_below(limit < left ? limit : left);
        left = left / extents[i] > 0 ? left / extents[i] : 1;
    }
    return rank;
}

static void any_layout_is_copied_as_element_by_element(void **state)
{
    (void)state;
    static const int64_t items[] = {1, 2, 4, 8, 16, 3, 5, 12, 31, 32, 33};
    char *src = malloc(ROOM), *dst = malloc(ROOM), *wanted = malloc(ROOM);
    assert_true(src && dst && wanted);
    srandom(2);
    for (int i = 0; i < ROOM; i++)
        src[i] = (char)random();
    for (int round = 0; round < 3000; round++) {
        int64_t extents[PL_RANK_MAX], to[PL_RANK_MAX], from[PL_RANK_MAX];
        int64_t item = items[random_below(PL_COUNT_OF(items))];
        int rank = random_extents(extents, item);
        int64_t dst_first = random_layout(extents, rank, item, to);
        int64_t src_first = random_layout(extents, rank, item, from) + random_below(8);
        if (rank > 0 && random_below(4) == 0)
            from[random_below(rank)] = 0; /* repeated; then less of the source is used */
        if (rank > 0 && random_below(50) == 0)
            extents[random_below(rank)] = 0;
        memset(dst, 7, ROOM / 2);
        memset(wanted, 7, ROOM / 2);
        copy_naively(wanted + dst_first, to, src + src_first, from, extents, rank, (size_t)item);
        pl_region_copy(dst + dst_first, to, src + src_first, from, extents, rank, (size_t)item);
        if (memcmp(dst, wanted, ROOM / 2) != 0)
            fail_msg("round %d, rank %d, %lld bytes an element", round, rank, (long long)item);
    }
    free(src);
    free(dst);
    free(wanted);
}

static void transposes_of_every_size_around_a_block_are_right(void **state)
{
    (void)state;
    static char src[80 * 80 * 16], dst[80 * 80 * 16], wanted[80 * 80 * 16];
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (char)(i * 31 + i / 251);
    for (int64_t item = 1; item <= 16; item *= 2) {
        for (int64_t n = 0; n < 80 * 80; n++) {
            const int64_t extents[] = {1 + n / 80, 1 + n % 80};
            const int64_t to[] = {item * extents[1], item}, from[] = {item, item * extents[0]};
            copy_naively(wanted, to, src, from, extents, 2, (size_t)item);
            pl_region_copy(dst, to, src, from, extents, 2, (size_t)item);
            assert_memory_equal(dst, wanted, (size_t)(item * extents[0] * extents[1]));
        }
    }
}

static void a_transpose_of_several_panels_is_right(void **state)
{
    (void)state;
    enum { N = 1100, M = 530 };
    uint16_t *src = malloc(2 * N * M), *dst = malloc(2 * N * M);
    assert_true(src && dst);
    for (int i = 0; i < N * M; i++)
        src[i] = (uint16_t)(i * 7 + i / 65536);
    const int64_t extents[] = {N, M}, to[] = {2 * M, 2}, from[] = {2, 2 * N};
    pl_region_copy(dst, to, src, from, extents, 2, 2);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < M; k++)
            if (dst[i * M + k] != src[k * N + i])
                fail_msg("element %d,%d", i, k);
    free(src);
    free(dst);
}

/* In memory that ends where they do: what reads beyond it is found by the sanitizer. */
static void check_line(int64_t n, int64_t step, int64_t item)
{
    int64_t size = step < 0 ? -step : step, bytes = ((n - 1) * size + 1) * item;
    char *src = malloc((size_t)bytes), *dst = malloc((size_t)(n * item));
    char *wanted = malloc((size_t)(n * item));
    assert_true(src && dst && wanted);
    for (int64_t i = 0; i < bytes; i++)
        src[i] = (char)(i * 37 + i / 256);
    const char *first = step < 0 ? src + bytes - item : src;
    const int64_t to = item, from = step * item;
    copy_naively(wanted, &to, first, &from, &n, 1, (size_t)item);
    pl_region_copy(dst, &to, first, &from, &n, 1, (size_t)item);
    if (memcmp(dst, wanted, (size_t)(n * item)) != 0)
        fail_msg("%lld elements of %lld bytes by %lld", (long long)n, (long long)item,
                 (long long)step);
    free(src);
    free(dst);
    free(wanted);
}

static void rows_backwards_and_with_gaps_are_right_to_their_end(void **state)
{
    (void)state;
    for (int64_t item = 1; item <= 16; item *= 2)
        for (int64_t n = 1; n <= 70; n++)
            for (int64_t step = -3; step <= 4; step++)
                if (step != 0)
                    check_line(n, step, item);
}

/* Of two arrays that lie anywhere, as when they are stacked. */
static void two_rows_become_one_wherever_they_are(void **state)
{
    (void)state;
    static char room[4096], dst[1024], wanted[1024];
    for (size_t i = 0; i < sizeof room; i++)
        room[i] = (char)(i * 37 + i / 256);
    for (int64_t item = 1; item <= 8; item *= 2)
        for (int64_t n = 1; n <= 60; n++)
            for (int64_t apart = -1500; apart <= 1500; apart += 1000) {
                const int64_t extents[] = {n, 2}, to[] = {2 * item, item}, from[] = {item, apart};
                copy_naively(wanted, to, room + 1800, from, extents, 2, (size_t)item);
                pl_region_copy(dst, to, room + 1800, from, extents, 2, (size_t)item);
                assert_memory_equal(dst, wanted, (size_t)(2 * n * item));
            }
}

static void what_cannot_be_counted_counts_as_the_most(void **state)
{
    (void)state;
    pl_shape huge = PL_SHAPE(INT64_MAX / 2, 4, 3), none = PL_SHAPE(INT64_MAX / 2, 4, 0);
    pl_region of_huge = pl_region_whole(&huge), of_none = pl_region_whole(&none);
    assert_int_equal(pl_region_count(&of_huge), INT64_MAX);
    assert_int_equal(pl_region_count(&of_none), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_of_a_shape_is_inside_of_it),
        cmocka_unit_test(what_cannot_be_counted_counts_as_the_most),
        cmocka_unit_test(regions_intersect_where_both_are),
        cmocka_unit_test(a_repeated_input_is_needed_once),
        cmocka_unit_test(a_transposed_region_follows_its_axes),
        cmocka_unit_test(a_slice_spans_from_its_first_to_its_last_element),
        cmocka_unit_test(padding_needs_only_what_lies_under_the_region),
        cmocka_unit_test(concatenated_inputs_share_a_region_without_gap_or_overlap),
        cmocka_unit_test(tiles_are_cut_from_the_outermost_axes_into_equal_parts),
        cmocka_unit_test(an_element_larger_than_a_tile_is_refused_and_nothing_has_no_tiles),
        cmocka_unit_test(tiles_cover_each_element_once_within_their_bytes),
        cmocka_unit_test(any_layout_is_copied_as_element_by_element),
        cmocka_unit_test(transposes_of_every_size_around_a_block_are_right),
        cmocka_unit_test(a_transpose_of_several_panels_is_right),
        cmocka_unit_test(rows_backwards_and_with_gaps_are_right_to_their_end),
        cmocka_unit_test(two_rows_become_one_wherever_they_are),
    };
    return cmocka_run_group_tests_name("region", tests, NULL, NULL);
}
