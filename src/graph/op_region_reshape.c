/* SPDX-License-Identifier: Apache-2.0 */
/* The region of a reshape. Both shapes fall into groups of axes with the same number of elements:
 *   [6,4,5] -> [2,3,20]   is  [6] -> [2,3]  and  [4,5] -> [20]
 * A group's elements keep their order and do not mix with another's, so each is mapped on its own:
 * the range from the first to the last wanted element becomes a box in the input's axes. A group of
 * one axis on both sides is exact, as all groups are if the reshape only adds or removes axes of
 * 1. */
#include "graph/op_region.h"

/* Axes [begin, end) of a shape. */
typedef struct span {
    int begin, end;
} span;

/* Finds the first and last element of a region's axes in a span, counted along them. */
static void linear_range(const pl_region *region, const pl_shape *shape, span axes,
                         int64_t *ret_first, int64_t *ret_last)
{
    *ret_first = *ret_last = 0;
    for (int i = axes.begin; i < axes.end; i++) {
        *ret_first = *ret_first * shape->dims[i] + region->begin[i];
        *ret_last = *ret_last * shape->dims[i] + region->begin[i] + region->extent[i] - 1;
    }
}

/* Finds the smallest box that has all elements from `first` to `last`: where both have the same
 * place along the outer axes, that place; then the range in between; then all of the inner axes. */
static void box_of_range(int64_t first, int64_t last, const pl_shape *shape, span axes,
                         pl_region *region)
{
    int64_t stride = 1;
    for (int i = axes.begin; i < axes.end; i++)
        stride *= shape->dims[i];
    for (int i = axes.begin; i < axes.end; i++) {
        stride /= shape->dims[i];
        int64_t a = first / stride, b = last / stride;
        region->begin[i] = a;
        region->extent[i] = b - a + 1;
        if (a == b) {
            first -= a * stride;
            last -= b * stride;
        } else {
            for (int k = i + 1; k < axes.end; k++) {
                region->begin[k] = 0;
                region->extent[k] = shape->dims[k];
            }
            return;
        }
    }
}

/* Finds the next group after `a` and `b`: the fewest axes of both with the same number of elements,
 * and axes of 1 that follow. No dimension is 0, because the region is not empty. */
static void next_group(const pl_shape *from, const pl_shape *to, span *a, span *b)
{
    int64_t n_a = 1, n_b = 1;
    a->begin = a->end;
    b->begin = b->end;
    do {
        if (n_a <= n_b && a->end < from->rank)
            n_a *= from->dims[a->end++];
        else
            n_b *= to->dims[b->end++];
    } while (n_a != n_b);
    while (a->end < from->rank && from->dims[a->end] == 1)
        a->end++;
    while (b->end < to->rank && to->dims[b->end] == 1)
        b->end++;
}

PL_REGION_RULE(reshape)
{
    const pl_shape *from = pl_node_input_shape(node, shapes, i), *to = &shapes[node->number];
    span a = {0}, b = {0};
    while (a.end < from->rank || b.end < to->rank) {
        int64_t first, last;
        next_group(from, to, &a, &b);
        linear_range(out, to, b, &first, &last);
        box_of_range(first, last, from, a, ret_in);
    }
    return true;
}
