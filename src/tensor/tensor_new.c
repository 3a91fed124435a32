/* SPDX-License-Identifier: Apache-2.0 */
/* Makes tensors from given elements. They are written to their place in memory, in parallel;
 * without room, one window after the other is filled and written to the spill file. Nothing is
 * evicted for a tensor that would not fit even then. See tensor.h and plimsoll/tensor.h. */
#include <errno.h>
#include <string.h>

#include "base/size.h"
#include "tensor/dtype.h"
#include "tensor/runtime.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

/* The part that a thread makes at a time: enough to be worth distributing, and short enough to
 * notice a cancellation. */
#define PART_BYTES (4 * PL_MIB)

typedef struct job {
    pl_runtime *runtime;
    const pl_tensor_maker *maker;
    const char *what;
    uint64_t bytes;
    size_t item_bytes;
    char *to;
} job;

static int64_t n_elements(const job *j)
{
    return (int64_t)(j->bytes / j->item_bytes);
}

/* ---- in memory ---- */

static int make_part(void *context, int64_t part, int worker)
{
    const job *j = context;
    int64_t most = (int64_t)(PART_BYTES / j->item_bytes), first = part * most;
    int64_t left = n_elements(j) - first;
    (void)worker;
    if (pl_must_stop(j->maker->stop))
        return -ECANCELED;
    j->maker->make(j->maker->context, first, left < most ? left : most,
                   j->to + first * (int64_t)j->item_bytes);
    return 0;
}

static int cancelled(const job *j, pl_error *reterr)
{
    return pl_error_set(reterr, -ECANCELED, "making '%s' was cancelled", j->what);
}

static int make_resident(job *j, pl_buffer **ret_buffer, pl_error *reterr)
{
    pl_buffer *buffer;
    void *to;
    int r = pl_buffer_new(j->runtime->pool, j->bytes, j->what, &buffer, &to, reterr);
    if (r < 0)
        return r;
    j->to = to;
    int64_t n_parts = (int64_t)((j->bytes + PART_BYTES - 1) / PART_BYTES);
    r = n_parts <= 1 ? make_part(j, 0, 0)
                     : pl_threads_run(j->runtime->threads, n_parts, make_part, j);
    pl_buffer_unpin(buffer);
    if (r < 0) {
        pl_buffer_unref(buffer);
        return cancelled(j, reterr);
    }
    *ret_buffer = buffer;
    return 0;
}

/* ---- in the spill file ---- */

static int write_windows(const job *j, pl_buffer *buffer, char *window, pl_error *reterr)
{
    for (uint64_t at = 0; at < j->bytes; at += PL_MEMORY_WINDOW_BYTES) {
        uint64_t n = pl_min_u64(j->bytes - at, PL_MEMORY_WINDOW_BYTES);
        if (pl_must_stop(j->maker->stop))
            return cancelled(j, reterr);
        j->maker->make(j->maker->context, (int64_t)(at / j->item_bytes),
                       (int64_t)(n / j->item_bytes), window);
        int r = pl_buffer_write(buffer, at, window, n, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

static int make_spilled(const job *j, pl_buffer **ret_buffer, pl_error *reterr)
{
    pl_block window;
    pl_buffer *buffer;
    int r = pl_memory_take_window(j->runtime->memory, j->what, &window, reterr);
    if (r < 0)
        return r;
    r = pl_buffer_new_spilled(j->runtime->pool, j->bytes, j->what, &buffer, reterr);
    if (r < 0) {
        pl_memory_give(j->runtime->memory, &window);
        return r == -ENOMEM ? r : PL_EBUDGET; /* the disk has no room, or there is none */
    }
    r = write_windows(j, buffer, window.data, reterr);
    pl_memory_give(j->runtime->memory, &window);
    if (r < 0)
        pl_buffer_unref(buffer);
    else
        *ret_buffer = buffer;
    return r;
}

/* ---- either ---- */

static int refuse(const job *j, uint64_t left_bytes, const pl_error *reason, pl_error *reterr)
{
    return pl_error_set(reterr, PL_EBUDGET,
                        "no room for %s for '%s': %s of the %s budget are left for tensors, and it "
                        "cannot be spilled, because %s",
                        PL_SIZE(j->bytes), j->what, PL_SIZE(left_bytes),
                        PL_SIZE(pl_runtime_limit_bytes(j->runtime)), reason->message);
}

/* Returns the room left, after evicting idle buffers if that is needed. */
static uint64_t find_left(const job *j, uint64_t cost)
{
    uint64_t left = pl_memory_headroom_for(j->runtime->memory, cost);
    return left >= cost ? left : pl_runtime_left_bytes(j->runtime);
}

/* A tensor no larger than a window gains nothing from one. */
static int make_buffer(job *j, pl_buffer **ret_buffer, pl_error *reterr)
{
    bool may_spill = j->maker->may_spill && j->bytes > PL_MEMORY_WINDOW_BYTES;
    uint64_t cost = pl_memory_cost_bytes(j->bytes);
    uint64_t left = may_spill ? find_left(j, cost) : UINT64_MAX;
    pl_error reason;
    pl_error_init(&reason);
    int r = PL_EBUDGET;
    if (cost <= left)
        r = make_resident(j, ret_buffer, reterr);
    if (r != PL_EBUDGET || !may_spill)
        return r;
    r = make_spilled(j, ret_buffer, &reason);
    if (r == PL_EBUDGET)
        return refuse(j, left, &reason, reterr);
    return r < 0 ? pl_error_set(reterr, r, "%s", reason.message) : 0;
}

int pl_tensor_new_made(pl_runtime *runtime, pl_dtype dtype, const pl_shape *shape,
                       const pl_tensor_maker *maker, const char *what, pl_tensor **ret_tensor,
                       pl_error *reterr)
{
    int64_t bytes;
    pl_buffer *buffer = NULL;
    int r = pl_tensor_size(dtype, shape, &bytes, reterr);
    if (r < 0)
        return r;
    job j = {.runtime = runtime,
             .maker = maker,
             .what = pl_tensor_what(what),
             .bytes = (uint64_t)bytes,
             .item_bytes = pl_dtype_info_of(dtype)->item_bytes};
    r = make_buffer(&j, &buffer, reterr);
    return r < 0 ? r : pl_tensor_wrap(buffer, dtype, shape, NULL, 0, ret_tensor, reterr);
}

typedef struct dense {
    const char *data;
    size_t item_bytes;
} dense;

static void copy_dense(const void *context, int64_t first, int64_t n, void *to)
{
    const dense *from = context;
    if (n > 0)
        memcpy(to, from->data + (size_t)first * from->item_bytes, (size_t)n * from->item_bytes);
}

int pl_tensor_new(pl_runtime *runtime, pl_dtype dtype, const pl_shape *shape, const void *data,
                  const char *what, pl_tensor **ret_tensor, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(shape, reterr);
    PL_NOT_NULL(ret_tensor, reterr);
    PL_NOT_NULL_IF(!pl_shape_is_empty(shape), data, reterr);
    const dense from = {.data = data, .item_bytes = pl_dtype_info_of(dtype)->item_bytes};
    const pl_tensor_maker maker = {.make = copy_dense, .context = &from};
    return pl_tensor_new_made(runtime, dtype, shape, &maker, what, ret_tensor, reterr);
}
