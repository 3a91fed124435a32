/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a run: in memory, spilled, or in the caller's .npy files. See run.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "codec/npy/npy.h"
#include "exec/npy/npy_tensor.h"
#include "exec/step/device_step.h"
#include "exec/step/run.h"
#include "sys/file.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

static int make_in_memory(pl_run *run, const pl_plan_value *plan, pl_live_value *value,
                          pl_error *reterr)
{
    void *data;
    int r;
    if (plan->kept) {
        r = pl_buffer_new(run->runtime->pool, plan->bytes, plan->node->name, &value->buffer, &data,
                          reterr);
        value->pinned = r == 0;
    } else {
        r = pl_memory_take(run->runtime->memory, plan->bytes, plan->node->name, &value->block,
                           reterr);
        data = value->block.data;
    }
    if (r < 0)
        return r;
    value->data = data;
    pl_shape_strides(&run->plan->shapes[plan->node->number],
                     pl_dtype_info_of(plan->node->dtype)->item_bytes, value->strides);
    return 0;
}

/* Reserves its space at once, so that a full disk does not show only when all is computed. */
static int make_file(const pl_run *run, const pl_plan_value *plan, pl_live_value *value,
                     pl_error *reterr)
{
    int r = pl_npy_create(value->path, plan->node->dtype, &run->plan->shapes[plan->node->number],
                          value->file, &value->offset, reterr);
    if (r == 0)
        value->fd = value->file->fd;
    if (r < 0 || plan->bytes == 0)
        return r;
    r = pl_file_reserve(value->fd, value->offset, plan->bytes);
    if (r == 0 || r == -EOPNOTSUPP)
        return 0;
    return pl_error_set(reterr, r, "cannot write '%s': no %s for it: %s", value->path,
                        PL_SIZE(plan->bytes), pl_error_text(r));
}

int pl_run_name_error(const pl_node *node, int code, const pl_error *why, pl_error *reterr)
{
    if (code != -ECANCELED && why->code != 0)
        pl_error_copy(reterr, why);
    else
        pl_error_set(reterr, code, "%s",
                     code == -ECANCELED ? "the run was cancelled" : pl_error_text(code));
    if (reterr)
        reterr->code = code;
    pl_error_in_op(reterr, node->op->name, node->name);
    return code;
}

static int make_value(pl_run *run, int number, pl_error *reterr)
{
    const pl_plan_value *plan = &run->plan->values[number];
    pl_live_value *value = &run->values[number];
    switch (plan->place) {
    case PL_PLACE_MEMORY:
        return make_in_memory(run, plan, value, reterr);
    case PL_PLACE_SPILL:
        return pl_buffer_new_spilled(run->runtime->pool, plan->bytes, plan->node->name,
                                     &value->buffer, reterr);
    case PL_PLACE_FILE:
        return make_file(run, plan, value, reterr);
    case PL_PLACE_DEVICE:
        return 0; /* by its step, when the device is claimed */
    }
    return pl_error_set(reterr, -EINVAL, "it has no place");
}

int pl_run_make_value(pl_run *run, int number, pl_error *reterr)
{
    pl_error why = {0};
    int r = make_value(run, number, &why);
    return r < 0 ? pl_run_name_error(run->plan->values[number].node, r, &why, reterr) : 0;
}

void pl_run_drop_value(pl_run *run, int number)
{
    pl_live_value *value = &run->values[number];
    if (value->pinned)
        pl_buffer_unpin(value->buffer);
    if (value->buffer && pl_value_arrives(&run->plan->values[number]))
        pl_buffer_leave(value->buffer);
    pl_buffer_unref(value->buffer);
    pl_run_leave_device(value);
    pl_memory_give(run->runtime->memory, &value->block);
    *value = (pl_live_value){.fd = -1, .path = value->path, .file = value->file};
}

int pl_run_pin_uses(pl_run *run, const pl_step *step, pl_error *reterr)
{
    for (int i = 0; i < step->n_uses; i++) {
        const pl_plan_value *plan = &run->plan->values[step->uses[i]];
        pl_live_value *value = &run->values[step->uses[i]];
        void *data;
        if (!plan->from_outside || plan->place != PL_PLACE_MEMORY)
            continue;
        pl_error why = {0};
        int r = pl_buffer_pin_unless(value->buffer, pl_run_stop(run), &data, &why);
        if (r < 0)
            return pl_run_name_error(plan->node, r, &why, reterr);
        value->pinned = true;
        value->data = (char *)data + value->offset;
    }
    return 0;
}

void pl_run_unpin_uses(pl_run *run, const pl_step *step)
{
    for (int i = 0; i < step->n_uses; i++) {
        pl_live_value *value = &run->values[step->uses[i]];
        if (!run->plan->values[step->uses[i]].from_outside || !value->pinned)
            continue;
        pl_buffer_unpin(value->buffer);
        value->pinned = false;
        value->data = NULL;
    }
}

int pl_run_read(const pl_live_value *value, const pl_shape *shape, size_t item_bytes,
                const pl_region *region, void *data, pl_error *reterr)
{
    if (value->fd < 0)
        return pl_tensor_read_dense(value->buffer, value->offset, shape, item_bytes, region, data,
                                    reterr);
    pl_region_runs runs;
    int64_t offset;
    char *to = data;
    pl_region_runs_init(&runs, region, shape, item_bytes);
    while (pl_region_runs_next(&runs, &offset)) {
        int r =
            pl_file_read(value->fd, to, (size_t)runs.run_bytes, value->offset + (uint64_t)offset);
        if (r < 0)
            return pl_error_set(reterr, r, "cannot read '%s': %s", value->path, pl_error_text(r));
        to += runs.run_bytes;
    }
    return 0;
}

int pl_run_read_permuted(const pl_live_value *value, const pl_shape *shape, size_t item_bytes,
                         const pl_region *region, void *data, int64_t strides[PL_RANK_MAX],
                         pl_error *reterr)
{
    pl_shape stored = *shape;
    pl_region part = *region;
    int64_t packed[PL_RANK_MAX];
    for (int i = 0; i < region->rank; i++) {
        stored.dims[i] = shape->dims[value->order[i]];
        part.begin[i] = region->begin[value->order[i]];
        part.extent[i] = region->extent[value->order[i]];
    }
    pl_region_packed_strides(&part, item_bytes, packed);
    for (int i = 0; i < region->rank; i++)
        strides[value->order[i]] = packed[i];
    return pl_run_read(value, &stored, item_bytes, &part, data, reterr);
}

int64_t pl_run_in_page(const pl_run *run, int number, const pl_region *region)
{
    const pl_node *node = run->plan->values[number].node;
    const pl_shape *shape = &run->plan->shapes[node->number];
    const pl_live_value *value = &run->values[number];
    int64_t strides[PL_RANK_MAX];
    if (value->data || !pl_is_in_one_piece(shape, region->extent))
        return -1;
    pl_shape_strides(shape, pl_dtype_info_of(node->dtype)->item_bytes, strides);
    uint64_t at = value->offset + (uint64_t)pl_region_offset(region, strides);
    return (int64_t)(value->fd < 0 ? pl_buffer_in_page(value->buffer, at)
                                   : at % PL_FILE_DIRECT_BYTES);
}

static int write_file(const pl_run *run, int fd, const char *data, size_t n, uint64_t at)
{
    int r = pl_file_write_straight(fd, run->direct_fd, data, n, at);
    return r == -EINVAL ? pl_file_write(fd, data, n, at) : r;
}

/* Writes packed elements to a value that is not in memory. */
static int write_region(const pl_run *run, const pl_live_value *value, const pl_shape *shape,
                        size_t item_bytes, const pl_region *region, const void *data,
                        pl_error *reterr)
{
    pl_region_runs runs;
    int64_t offset;
    const char *from = data;
    pl_region_runs_init(&runs, region, shape, item_bytes);
    while (pl_region_runs_next(&runs, &offset)) {
        uint64_t at = value->offset + (uint64_t)offset;
        size_t n = (size_t)runs.run_bytes;
        int r = value->fd < 0 ? pl_buffer_write(value->buffer, at, from, n, reterr)
                              : write_file(run, value->fd, from, n, at);
        if (r < 0 && value->fd >= 0)
            pl_error_set(reterr, r, "cannot write '%s': %s", value->path, pl_error_text(r));
        if (r < 0)
            return r;
        from += n;
    }
    return 0;
}

int pl_run_store(pl_run *run, int number, const pl_region *region, const void *data,
                 pl_error *reterr)
{
    const pl_node *node = run->plan->values[number].node;
    const pl_live_value *value = &run->values[number];
    size_t item_bytes = pl_dtype_info_of(node->dtype)->item_bytes;
    if (!value->data) {
        pl_error why = {0};
        int r = write_region(run, value, &run->plan->shapes[node->number], item_bytes, region, data,
                             &why);
        return r < 0 ? pl_run_name_error(node, r, &why, reterr) : 0;
    }
    int64_t strides[PL_RANK_MAX];
    pl_region_packed_strides(region, item_bytes, strides);
    pl_region_copy(value->data + pl_region_offset(region, value->strides), value->strides, data,
                   strides, region->extent, region->rank, item_bytes);
    return 0;
}
