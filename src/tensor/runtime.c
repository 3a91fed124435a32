/* SPDX-License-Identifier: Apache-2.0 */
/* See runtime.h and plimsoll/tensor.h. */
#include "tensor/runtime.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "plimsoll/tensor.h"

int pl_runtime_new(const pl_runtime_options *options, pl_runtime **ret_runtime, pl_error *reterr)
{
    PL_NOT_NULL(ret_runtime, reterr);
    PL_TAKE_OPTIONS(pl_runtime_options, options, n_threads, reterr);
    const pl_runtime_options none = {0};
    options = options ? options : &none;
    pl_runtime *runtime = calloc(1, sizeof *runtime);
    if (!runtime)
        return pl_error_set(reterr, -ENOMEM, "no memory for a runtime");
    runtime->n_refs = 1;
    pthread_mutex_init(&runtime->admissions.mu, NULL);
    pthread_cond_init(&runtime->admissions.ended, NULL);
    const pl_memory_options memory = {options->budget_text, options->cap_bytes};
    const pl_pool_options pool = {options->spill_directory, options->spill_limit_bytes};
    int r = pl_memory_new(&memory, &runtime->memory, reterr);
    if (r == 0)
        r = pl_pool_new(runtime->memory, &pool, &runtime->pool, reterr);
    runtime->sessions = pl_links_new();
    if (r == 0 && !runtime->sessions)
        r = pl_error_set(reterr, -ENOMEM, "no memory for a runtime");
    if (r == 0)
        r = pl_threads_new(options->n_threads, &runtime->threads, reterr);
    if (r < 0) {
        pl_runtime_unref(runtime);
        return r;
    }
    *ret_runtime = runtime;
    return 0;
}

pl_runtime *pl_runtime_ref(pl_runtime *runtime)
{
    PL_NULL_GIVES(runtime, NULL);
    atomic_fetch_add(&runtime->n_refs, 1);
    return runtime;
}

void pl_runtime_unref(pl_runtime *runtime)
{
    if (!runtime || atomic_fetch_sub(&runtime->n_refs, 1) > 1)
        return;
    pl_links_free(runtime->sessions);
    pl_runtime_part *devices = atomic_load(&runtime->devices);
    if (devices)
        devices->free(devices);
    pl_threads_free(runtime->threads);
    pl_pool_unref(runtime->pool);
    pl_memory_unref(runtime->memory);
    pthread_mutex_destroy(&runtime->admissions.mu);
    pthread_cond_destroy(&runtime->admissions.ended);
    free(runtime);
}

uint64_t pl_runtime_limit_bytes(const pl_runtime *runtime)
{
    PL_NULL_GIVES(runtime, 0);
    return pl_memory_limit_bytes(runtime->memory);
}

uint64_t pl_runtime_claimed_bytes(const pl_runtime *runtime)
{
    PL_NULL_GIVES(runtime, 0);
    return pl_memory_claimed_bytes(runtime->memory);
}

uint64_t pl_runtime_peak_bytes(const pl_runtime *runtime)
{
    PL_NULL_GIVES(runtime, 0);
    return pl_memory_peak_bytes(runtime->memory);
}

uint64_t pl_runtime_idle_bytes(pl_runtime *runtime)
{
    uint64_t own = pl_pool_idle_bytes(runtime->pool);
    return pl_add_sat_u64(own, pl_memory_idle_elsewhere(runtime->memory, own));
}

uint64_t pl_runtime_left_bytes(pl_runtime *runtime)
{
    PL_NULL_GIVES(runtime, 0);
    return pl_add_sat_u64(pl_memory_headroom_bytes(runtime->memory),
                          pl_runtime_idle_bytes(runtime));
}

uint64_t pl_runtime_make_room(pl_runtime *runtime, uint64_t bytes)
{
    PL_NULL_GIVES(runtime, 0);
    pl_error reason; /* why the rest stays: what there is was given */
    pl_error_init(&reason);
    uint64_t freed = 0, part = 1;
    while (freed < bytes && part > 0) {
        part = pl_pool_evict(runtime->pool, bytes - freed, &reason);
        freed += part;
    }
    pl_memory_trim(runtime->memory);
    return freed;
}
