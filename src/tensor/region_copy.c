/* SPDX-License-Identifier: Apache-2.0 */
/* pl_region_copy(): a copy between any two layouts.
 *
 * The axes are put in the destination's order and merged where both sides are one piece, so that
 * most copies become a few large memcpy(). What is left is walked in planes of two axes: `a`, the
 * innermost of the destination, and `b`, the innermost of the source. Where these lie crosswise (a
 * transpose), a plane is copied in blocks of at most one cache line squared, so that a line is used
 * up while it is in the cache. Tried and dropped: a buffer between the two sides (a third slower,
 * and no better where rows are a power of two apart), prefetching, and stores around the cache.
 *
 * The functions that take `item_bytes` as their last argument are inlined where it is a constant.
 */
#include <string.h>

#include "tensor/region.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum {
    LINE_BYTES = 64,
    VECTOR_BYTES = 16,
    /* Elements a side of a panel of blocks: it visits the same pages many times before it moves on,
     * which spares address translations. Of 64 to 1024, 512 was the fastest on most shapes. */
    PANEL = 512,
};

/* What is to be copied, outermost axis of the destination first. */
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

/* Joins each axis to the one outside of it where both sides go on without a gap. */
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

/* A row that is one piece on both sides becomes the element. */
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

/* Elements that lie apart into a row, collected in words: half as many stores and more. */
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
        gather_line(dst, src, -item, n, item_bytes); /* a stride that the compiler knows */
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

typedef uint8_t vector __attribute__((vector_size(VECTOR_BYTES)));
typedef uint16_t vector_2 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t vector_4 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t vector_8 __attribute__((vector_size(VECTOR_BYTES)));

/* The first, or the last, elements of a and b by turns: a0 b0 a1 b1 ... */
ALWAYS_INLINE vector first_halves(vector a, vector b, size_t item_bytes)
{
    if (item_bytes == 1)
        return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                                       23);
    if (item_bytes == 2)
        return (vector)__builtin_shufflevector((vector_2)a, (vector_2)b, 0, 8, 1, 9, 2, 10, 3, 11);
    if (item_bytes == 4)
        return (vector)__builtin_shufflevector((vector_4)a, (vector_4)b, 0, 4, 1, 5);
    return (vector)__builtin_shufflevector((vector_8)a, (vector_8)b, 0, 2);
}

ALWAYS_INLINE vector last_halves(vector a, vector b, size_t item_bytes)
{
    if (item_bytes == 1)
        return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
                                       15, 31);
    if (item_bytes == 2)
        return (vector)__builtin_shufflevector((vector_2)a, (vector_2)b, 4, 12, 5, 13, 6, 14, 7,
                                               15);
    if (item_bytes == 4)
        return (vector)__builtin_shufflevector((vector_4)a, (vector_4)b, 2, 6, 3, 7);
    return (vector)__builtin_shufflevector((vector_8)a, (vector_8)b, 1, 3);
}

/* n rows of n elements, a vector each: interleaving rows i and i + n/2 log2(n) times transposes
 * them. */
ALWAYS_INLINE void transpose_vectors(char *dst, int64_t dst_stride, const char *src,
                                     int64_t src_stride, size_t item_bytes)
{
    const size_t n = VECTOR_BYTES / item_bytes;
    vector rows[VECTOR_BYTES], next[VECTOR_BYTES];
    for (size_t i = 0; i < n; i++)
        memcpy(&rows[i], src + (int64_t)i * src_stride, VECTOR_BYTES);
    for (size_t done = 1; done < n; done *= 2) {
        for (size_t i = 0; i < n / 2; i++) {
            next[2 * i] = first_halves(rows[i], rows[i + n / 2], item_bytes);
            next[2 * i + 1] = last_halves(rows[i], rows[i + n / 2], item_bytes);
        }
        for (size_t i = 0; i < n; i++)
            rows[i] = next[i];
    }
    for (size_t i = 0; i < n; i++)
        memcpy(dst + (int64_t)i * dst_stride, &rows[i], VECTOR_BYTES);
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

ALWAYS_INLINE void copy_plane(char *dst, const char *src, const plane *p, size_t item_bytes)
{
    const int64_t item = (int64_t)item_bytes, n = PANEL;
    bool crosswise = p->n_b > 1 && size_of(p->src_b) < size_of(p->src_a);
    bool transposed = p->dst_a == item && p->src_b == item && item_bytes < VECTOR_BYTES;
    if (!crosswise) {
        copy_lines(dst, src, p, item_bytes);
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

/* Of the axes outside of the last, the innermost of the source; the innermost if none is inside of
 * the last one. -1 if there is none. */
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
