/* SPDX-License-Identifier: Apache-2.0 */
/* pl_region_copy(): a copy between any two layouts.
 *
 * The axes are put in the destination's order and merged where both sides are one piece, so that
 * most copies become a few large memcpy(). What is left is walked in planes of two axes: `a`, the
 * innermost of the destination, and `b`, the innermost of the source. Where these lie crosswise (a
 * transpose), a plane is copied in blocks of at most one cache line squared, so that a line is used
 * up while it is in the cache. Two rows that become one (a stack along the last axis), three that
 * were one (a picture's channels), rows backwards and every other element have loops of their own.
 * Tried and dropped: a buffer between the two sides (a third slower, and no better where rows are a
 * power of two apart), prefetching, reading a panel's rows in order before, and stores around the
 * cache.
 *
 * The functions that take `item_bytes` as their last argument are inlined where it is a constant.
 */
#include <string.h>

#include "tensor/region.h"
#include "tensor/region_vectors.h"

enum {
    LINE_BYTES = 64,
    /* Elements a side of a panel of blocks: it visits the same pages many times before it moves on,
     * which spares address translations. Of 64 to 1024, 512 was the fastest on most shapes. */
    PANEL = 512,
};

/* The copy, outermost axis of the destination first. */
typedef struct layout {
    int rank;
    int64_t extent[PL_RANK_MAX];
    int64_t dst[PL_RANK_MAX]; /* strides */
    int64_t src[PL_RANK_MAX];
    size_t item_bytes;
} layout;

/* Two axes of a layout. */
typedef struct plane {
    int64_t n_a, n_b;
    int64_t dst_a, dst_b; /* strides */
    int64_t src_a, src_b;
} plane;

static int64_t size_of(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

static void insert_axis(layout *all, int64_t extent, int64_t dst, int64_t src)
{
    int at = all->rank++;
    for (; at > 0 && size_of(all->dst[at - 1]) < size_of(dst); at--) {
        all->extent[at] = all->extent[at - 1];
        all->dst[at] = all->dst[at - 1];
        all->src[at] = all->src[at - 1];
    }
    all->extent[at] = extent;
    all->dst[at] = dst;
    all->src[at] = src;
}

/* Merges each axis with the next outer one if both sides continue without a gap. */
static void merge_axes(layout *all)
{
    int n = 0;
    for (int i = 0; i < all->rank; i++) {
        bool goes_on = n > 0 && all->dst[n - 1] == all->dst[i] * all->extent[i] &&
                       all->src[n - 1] == all->src[i] * all->extent[i];
        if (goes_on)
            all->extent[n - 1] *= all->extent[i];
        else
            all->extent[n++] = all->extent[i];
        all->dst[n - 1] = all->dst[i];
        all->src[n - 1] = all->src[i];
    }
    all->rank = n;
}

/* Treats a row that is contiguous on both sides as one element. */
static void widen_item(layout *all)
{
    int last = all->rank - 1;
    int64_t item = (int64_t)all->item_bytes;
    if (last >= 0 && all->dst[last] == item && all->src[last] == item) {
        all->item_bytes *= (size_t)all->extent[last];
        all->rank = last;
    }
}

/* Up to 128 bytes by moves that may overlap: a call of memcpy() takes longer than they do. */
ALWAYS_INLINE void copy_row(char *dst, const char *src, size_t n)
{
    struct pair {
        uint64_t words[2];
    };
    struct four {
        uint64_t words[4];
    };
    struct eight {
        uint64_t words[8];
    };
#define TWICE(type)                                                                                \
    do {                                                                                           \
        type head, tail;                                                                           \
        memcpy(&head, src, sizeof head);                                                           \
        memcpy(&tail, src + n - sizeof tail, sizeof tail);                                         \
        memcpy(dst, &head, sizeof head);                                                           \
        memcpy(dst + n - sizeof tail, &tail, sizeof tail);                                         \
    } while (0)
    if (n > 2 * sizeof(struct eight) || n < sizeof(uint16_t))
        memcpy(dst, src, n);
    else if (n >= sizeof(struct eight))
        TWICE(struct eight);
    else if (n >= sizeof(struct four))
        TWICE(struct four);
    else if (n >= sizeof(struct pair))
        TWICE(struct pair);
    else if (n >= sizeof(uint64_t))
        TWICE(uint64_t);
    else if (n >= sizeof(uint32_t))
        TWICE(uint32_t);
    else
        TWICE(uint16_t);
#undef TWICE
}

/* Gathers separate elements into a row, combined into words: half as many stores, or fewer. */
ALWAYS_INLINE void gather_line(char *restrict dst, const char *restrict src, int64_t src_stride,
                               int64_t n, size_t item_bytes)
{
    const int64_t item = (int64_t)item_bytes, n_word = sizeof(uint64_t) / item_bytes;
    int64_t i = 0;
    for (; n_word > 1 && i + n_word <= n; i += n_word) {
        uint64_t word = 0;
        for (int64_t k = 0; k < n_word; k++) {
            uint64_t one = 0;
            memcpy(&one, src + (i + k) * src_stride, item_bytes);
            word |= one << (8 * item * k);
        }
        memcpy(dst + i * item, &word, sizeof word);
    }
    for (; i < n; i++)
        memcpy(dst + i * item, src + i * src_stride, item_bytes);
}

/* A row backwards: src is its last element. */
ALWAYS_INLINE void reverse_line(char *restrict dst, const char *restrict src, int64_t n,
                                size_t item_bytes)
{
    const int64_t item = (int64_t)item_bytes, n_vector = VECTOR_BYTES / item;
    int64_t i = 0;
    for (; item_bytes < VECTOR_BYTES && i + n_vector <= n; i += n_vector) {
        vector x = reversed(load_vector(src - (i + n_vector - 1) * item), item_bytes);
        memcpy(dst + i * item, &x, sizeof x);
    }
    for (; i < n; i++)
        memcpy(dst + i * item, src - i * item, item_bytes);
}

/* Every other element. Both vectors are read to their end, where there may be no element: so the
 * last ones are not read this way. */
ALWAYS_INLINE void halve_line(char *restrict dst, const char *restrict src, int64_t n,
                              size_t item_bytes)
{
    const int64_t item = (int64_t)item_bytes, n_vector = VECTOR_BYTES / item;
    int64_t i = 0;
    for (; item_bytes < VECTOR_BYTES && i + n_vector < n; i += n_vector) {
        const char *from = src + 2 * i * item;
        vector x = evens(load_vector(from), load_vector(from + VECTOR_BYTES), item_bytes);
        memcpy(dst + i * item, &x, sizeof x);
    }
    for (; i < n; i++)
        memcpy(dst + i * item, src + 2 * i * item, item_bytes);
}

ALWAYS_INLINE void copy_line(char *restrict dst, int64_t dst_stride, const char *restrict src,
                             int64_t src_stride, int64_t n, size_t item_bytes)
{
    const int64_t item = (int64_t)item_bytes;
    if (dst_stride == item && src_stride == 0) {
        char repeated[VECTOR_BYTES];
        memcpy(repeated, src, item_bytes);
        for (int64_t i = 0; i < n; i++)
            memcpy(dst + i * item, repeated, item_bytes);
    } else if (dst_stride == item && src_stride == -item) {
        reverse_line(dst, src, n, item_bytes);
    } else if (dst_stride == item && src_stride == 2 * item) {
        halve_line(dst, src, n, item_bytes);
    } else if (dst_stride == item) {
        gather_line(dst, src, src_stride, n, item_bytes);
    } else {
        for (int64_t i = 0; i < n; i++)
            memcpy(dst + i * dst_stride, src + i * src_stride, item_bytes);
    }
}

/* The longer axis is the inner loop: a picture's three channels make a poor one. */
ALWAYS_INLINE void copy_lines(char *dst, const char *src, const plane *p, size_t item_bytes)
{
    if (p->n_a >= p->n_b)
        for (int64_t b = 0; b < p->n_b; b++)
            copy_line(dst + b * p->dst_b, p->dst_a, src + b * p->src_b, p->src_a, p->n_a,
                      item_bytes);
    else
        for (int64_t a = 0; a < p->n_a; a++)
            copy_line(dst + a * p->dst_a, p->dst_b, src + a * p->src_a, p->src_b, p->n_b,
                      item_bytes);
}

/* At most a line's worth of rows, a line each; both are whole vectors. */
ALWAYS_INLINE void transpose_block(char *dst, int64_t dst_stride, const char *src,
                                   int64_t src_stride, int64_t n_a, int64_t n_b, size_t item_bytes)
{
    const int64_t item = (int64_t)item_bytes, step = VECTOR_BYTES / item;
    for (int64_t a = 0; a < n_a; a += step)
        for (int64_t b = 0; b < n_b; b += step)
            transpose_vectors(dst + b * dst_stride + a * item, dst_stride,
                              src + a * src_stride + b * item, src_stride, item_bytes);
}

/* The part of a plane from (a, b) on, of n_a x n_b elements. */
static plane part_of(const plane *p, int64_t n_a, int64_t n_b)
{
    plane part = *p;
    part.n_a = n_a;
    part.n_b = n_b;
    return part;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Where the rows of both sides are whole vectors, crosswise. */
ALWAYS_INLINE void transpose_panel(char *dst, const char *src, const plane *p, size_t item_bytes)
{
    const int64_t n = LINE_BYTES / item_bytes;
    for (int64_t b = 0; b < p->n_b; b += n)
        for (int64_t a = 0; a < p->n_a; a += n)
            transpose_block(dst + a * p->dst_a + b * p->dst_b, p->dst_b,
                            src + a * p->src_a + b * p->src_b, p->src_a, least(n, p->n_a - a),
                            least(n, p->n_b - b), item_bytes);
}

ALWAYS_INLINE void copy_panel(char *dst, const char *src, const plane *p, bool transposed,
                              size_t item_bytes)
{
    const int64_t n = item_bytes < VECTOR_BYTES ? VECTOR_BYTES / item_bytes : 1;
    int64_t whole_a = transposed ? p->n_a - p->n_a % n : 0;
    int64_t whole_b = whole_a > 0 ? p->n_b - p->n_b % n : 0;
    plane whole = part_of(p, whole_a, whole_b);
    plane right = part_of(p, p->n_a - whole_a, whole_b);
    plane below = part_of(p, p->n_a, p->n_b - whole_b);
    if (item_bytes < VECTOR_BYTES)
        transpose_panel(dst, src, &whole, item_bytes);
    copy_lines(dst + whole_a * p->dst_a, src + whole_a * p->src_a, &right, item_bytes);
    copy_lines(dst + whole_b * p->dst_b, src + whole_b * p->src_b, &below, item_bytes);
}

/* Interleaves two rows. */
ALWAYS_INLINE void interleave(char *dst, const char *src, const plane *p, size_t item_bytes)
{
    const int64_t item = (int64_t)item_bytes, n = VECTOR_BYTES / item;
    int64_t b = 0;
    for (; b + n <= p->n_b; b += n) {
        vector x = load_vector(src + b * item), y = load_vector(src + p->src_a + b * item);
        vector first = first_halves(x, y, item_bytes), last = last_halves(x, y, item_bytes);
        memcpy(dst + 2 * b * item, &first, sizeof first);
        memcpy(dst + 2 * b * item + VECTOR_BYTES, &last, sizeof last);
    }
    for (; b < p->n_b; b++)
        for (int64_t a = 0; a < 2; a++)
            memcpy(dst + (2 * b + a) * item, src + a * p->src_a + b * item, item_bytes);
}

/* Splits a picture's three channels into three rows. */
ALWAYS_INLINE void deinterleave(char *dst, const char *src, const plane *p, size_t item_bytes)
{
    const int64_t item = (int64_t)item_bytes, n = VECTOR_BYTES / item;
    int64_t a = 0;
    for (; a + n <= p->n_a; a += n) {
        vector x[3];
        for (int k = 0; k < 3; k++)
            x[k] = load_vector(src + 3 * a * item + k * VECTOR_BYTES);
        deinterleave_3(x, item_bytes);
        for (int k = 0; k < 3; k++)
            memcpy(dst + k * p->dst_b + a * item, &x[k], sizeof x[k]);
    }
    for (; a < p->n_a; a++)
        for (int64_t k = 0; k < 3; k++)
            memcpy(dst + k * p->dst_b + a * item, src + (3 * a + k) * item, item_bytes);
}

ALWAYS_INLINE void copy_plane(char *dst, const char *src, const plane *p, size_t item_bytes)
{
    const int64_t item = (int64_t)item_bytes, n = PANEL;
    bool crosswise = p->n_b > 1 && size_of(p->src_b) < size_of(p->src_a);
    bool transposed = p->dst_a == item && p->src_b == item && item_bytes < VECTOR_BYTES;
    if (!crosswise) {
        copy_lines(dst, src, p, item_bytes);
        return;
    }
    if (transposed && p->n_a == 2 && p->dst_b == 2 * item) {
        interleave(dst, src, p, item_bytes);
        return;
    }
    if (transposed && p->n_b == 3 && p->src_a == 3 * item) {
        deinterleave(dst, src, p, item_bytes);
        return;
    }
    for (int64_t a = 0; a < p->n_a; a += n) {
        for (int64_t b = 0; b < p->n_b; b += n) {
            int64_t left_a = p->n_a - a, left_b = p->n_b - b;
            plane panel = part_of(p, left_a < n ? left_a : n, left_b < n ? left_b : n);
            copy_panel(dst + a * p->dst_a + b * p->dst_b, src + a * p->src_a + b * p->src_b, &panel,
                       transposed, item_bytes);
        }
    }
}

static void copy_rows(char *dst, const char *src, const plane *p, size_t row_bytes)
{
    for (int64_t b = 0; b < p->n_b; b++)
        for (int64_t a = 0; a < p->n_a; a++)
            copy_row(dst + b * p->dst_b + a * p->dst_a, src + b * p->src_b + a * p->src_a,
                     row_bytes);
}

static void copy_any_plane(char *dst, const char *src, const plane *p, size_t item_bytes)
{
    switch (item_bytes) {
    case 1:
        return copy_plane(dst, src, p, 1);
    case 2:
        return copy_plane(dst, src, p, 2);
    case 4:
        return copy_plane(dst, src, p, 4);
    case 8:
        return copy_plane(dst, src, p, 8);
    case 16:
        return copy_plane(dst, src, p, 16);
    default:
        return copy_rows(dst, src, p, item_bytes);
    }
}

/* Takes axis `axis` out of the layout, into the plane's b (then a). An axis that is not there is
 * one of a single element. */
static void take_axis(layout *all, int axis, plane *p)
{
    p->n_b = p->n_a, p->dst_b = p->dst_a, p->src_b = p->src_a;
    p->n_a = 1, p->dst_a = p->src_a = 0;
    if (axis < 0)
        return;
    p->n_a = all->extent[axis], p->dst_a = all->dst[axis], p->src_a = all->src[axis];
    all->rank--;
    for (int i = axis; i < all->rank; i++) {
        all->extent[i] = all->extent[i + 1];
        all->dst[i] = all->dst[i + 1];
        all->src[i] = all->src[i + 1];
    }
}

/* Returns the outer axis that is innermost in the source; the innermost one if none is inside the
 * last one. -1 if there is none. */
static int choose_b(const layout *all)
{
    int last = all->rank - 1, best = last;
    for (int i = last - 1; i >= 0; i--)
        if (size_of(all->src[i]) < size_of(all->src[best]))
            best = i;
    return best < last ? best : last - 1;
}

/* Steps to the next place of the outer axes; false after the last. */
static bool advance(const layout *all, int64_t at[PL_RANK_MAX], char **dst, const char **src)
{
    for (int i = all->rank - 1; i >= 0; i--) {
        *dst += all->dst[i];
        *src += all->src[i];
        if (++at[i] < all->extent[i])
            return true;
        *dst -= all->dst[i] * all->extent[i];
        *src -= all->src[i] * all->extent[i];
        at[i] = 0;
    }
    return false;
}

void pl_region_copy(void *dst, const int64_t *dst_strides, const void *src,
                    const int64_t *src_strides, const int64_t *extents, int rank, size_t item_bytes)
{
    layout all = {.item_bytes = item_bytes};
    for (int i = 0; i < rank; i++) {
        if (extents[i] == 0)
            return;
        if (extents[i] > 1)
            insert_axis(&all, extents[i], dst_strides[i], src_strides[i]);
    }
    merge_axes(&all);
    widen_item(&all);

    plane p = {.n_a = 1};
    int b = choose_b(&all);
    int a = all.rank - 1 - (b >= 0);
    take_axis(&all, b, &p);
    take_axis(&all, a, &p);

    char *to = dst;
    const char *from = src;
    int64_t at[PL_RANK_MAX] = {0};
    do
        copy_any_plane(to, from, &p, all.item_bytes);
    while (advance(&all, at, &to, &from));
}
