/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of contiguous bytes in a region: what is read and written in one call. See tensor.h. */
#include "tensor/shape.h"
#include "tensor/tensor.h"

int64_t pl_region_run_bytes(const pl_region *region, const pl_shape *shape, size_t item_bytes,
                            int *ret_n_outer)
{
    int axis = region->rank - 1;
    int64_t bytes = (int64_t)item_bytes;
    while (axis >= 0 && region->extent[axis] == shape->dims[axis])
        bytes *= region->extent[axis--];
    if (axis >= 0)
        bytes *= region->extent[axis--];
    *ret_n_outer = axis + 1;
    return bytes;
}

void pl_region_runs_init(pl_region_runs *runs, const pl_region *region, const pl_shape *shape,
                         size_t item_bytes)
{
    *runs = (pl_region_runs){.region = *region, .done = pl_region_is_empty(region)};
    if (runs->done)
        return;
    runs->run_bytes = pl_region_run_bytes(region, shape, item_bytes, &runs->n_outer);
    pl_shape_strides(shape, item_bytes, runs->strides);
}

bool pl_region_runs_next(pl_region_runs *runs, int64_t *ret_offset_bytes)
{
    if (runs->done)
        return false;
    int64_t offset = pl_region_offset(&runs->region, runs->strides);
    int axis = runs->n_outer - 1;
    for (int i = 0; i <= axis; i++)
        offset += runs->at[i] * runs->strides[i];
    for (; axis >= 0; axis--) {
        if (++runs->at[axis] < runs->region.extent[axis])
            break;
        runs->at[axis] = 0;
    }
    runs->done = axis < 0;
    *ret_offset_bytes = offset;
    return true;
}
