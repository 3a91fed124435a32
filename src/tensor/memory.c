/* SPDX-License-Identifier: Apache-2.0 */
/* See memory.h. Where blocks come from:
 *   - small ones, from aligned malloc(), within a claim; in a guarded run the guard measures them;
 *   - all others are mappings of their own, within a claim, and their pages go back with them. In a
 *     guarded run the guard claims and maps, so that its report knows of them. */
#include "tensor/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/size.h"
#include "ledger/room.h"
#include "tensor/memory_private.h"

/* From this size on, huge pages are requested: a fault for each 4 KiB costs as much as an
 * elementwise pass over them. */
#define HUGE_FROM_BYTES (4 * PL_MIB)

/* ---- an account begins and ends ---- */

int pl_memory_new(const pl_memory_options *options, pl_memory **ret_memory, pl_error *reterr)
{
    pl_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return pl_error_set(reterr, -ENOMEM, "no memory for an account of memory");
    int r = pl_memory_line_init(&memory->line, options ? options->budget_text : NULL, reterr);
    if (r < 0) {
        free(memory);
        return r;
    }
    if (options && options->cap_bytes)
        memory->line.cap_bytes = pl_min_u64(memory->line.cap_bytes, options->cap_bytes);
    atomic_store(&memory->n_refs, 1);
    pthread_mutex_init(&memory->mu, NULL);
    pthread_cond_init(&memory->evict_end, NULL);
    r = pl_memory_join_forks(memory);
    if (r < 0) {
        pl_memory_unref(memory);
        return pl_error_set(reterr, r, "cannot watch for forks: %s", pl_error_text(r));
    }
    pl_memory_look(memory);
    memory->line.room = pl_memory_start_mover(&memory->line);
    *ret_memory = memory;
    return 0;
}

pl_memory *pl_memory_ref(pl_memory *memory)
{
    atomic_fetch_add_explicit(&memory->n_refs, 1, memory_order_relaxed);
    return memory;
}

void pl_memory_unref(pl_memory *memory)
{
    if (!memory || atomic_fetch_sub(&memory->n_refs, 1) > 1)
        return;
    pl_memory_leave_forks(memory);
    pl_memory_drop_spares(memory);
    if (memory->line.owner >= 0)
        pl_ledger_leave(memory->line.ledger, memory->line.owner);
    pl_memory_line_done(&memory->line);
    pthread_cond_destroy(&memory->evict_end);
    pthread_mutex_destroy(&memory->mu);
    free(memory);
}

/* ---- claims ---- */

uint64_t pl_memory_cost_bytes(uint64_t bytes)
{
    if (bytes > INT64_MAX)
        return UINT64_MAX;
    uint64_t unit = bytes < PL_MEMORY_PAGED_BYTES ? PL_MEMORY_ALIGN_BYTES : PL_MEMORY_PAGE;
    return (bytes + unit - 1) / unit * unit;
}

static bool claim_below_cap(pl_memory *memory, uint64_t cost)
{
    uint64_t claimed = atomic_load(&memory->claimed_bytes);
    do {
        if (cost > memory->line.cap_bytes || claimed > memory->line.cap_bytes - cost)
            return false;
    } while (!atomic_compare_exchange_weak(&memory->claimed_bytes, &claimed, claimed + cost));
    return true;
}

/* Claims below the cap, where spares count too, and in the ledger; a spare of that size already has
 * its claim there. */
static int claim(pl_memory *memory, uint64_t cost, enum pl_map_kind kind, pl_mapping **ret_spare)
{
    if (!claim_below_cap(memory, cost))
        return PL_EBUDGET;
    uint64_t claimed = atomic_load(&memory->claimed_bytes);
    pl_mapping *spare = pl_memory_take_spare(memory, cost);
    if (claimed + atomic_load(&memory->spare_bytes) > memory->line.cap_bytes)
        pl_memory_drop_spares(memory);
    int r = 0;
    if (!spare && memory->line.owner >= 0)
        r = pl_ledger_claim(memory->line.ledger, memory->line.owner, cost,
                            kind == PL_MAP_RESERVE ? PL_CLAIM_RESERVE : PL_CLAIM_REFUSABLE);
    if (r < 0) {
        atomic_fetch_sub(&memory->claimed_bytes, cost);
        return r;
    }
    pl_peak_raise(&memory->peak_bytes, claimed);
    *ret_spare = spare;
    return 0;
}

static void release(pl_memory *memory, uint64_t cost)
{
    if (memory->line.owner >= 0)
        pl_ledger_release(memory->line.ledger, memory->line.owner, cost);
    atomic_fetch_sub(&memory->claimed_bytes, cost);
}

/* ---- blocks ---- */

static int take_from_malloc(pl_memory *memory, uint64_t cost, pl_block *ret_block)
{
    size_t alignment = cost < PL_MEMORY_PAGED_BYTES ? PL_MEMORY_ALIGN_BYTES : PL_MEMORY_PAGE;
    void *data;
    if (posix_memalign(&data, alignment, cost) != 0)
        return pl_memory_is_guarded(memory) ? PL_EBUDGET : -ENOMEM;
    atomic_fetch_add(&memory->small_bytes, cost);
    ret_block->data = data;
    return 0;
}

static pl_mapping **list_of(pl_memory *memory, const pl_mapping *mapping)
{
    return mapping->is_full ? &memory->first_full : &memory->first_mapping;
}

static void link_mapping(pl_memory *memory, pl_mapping *mapping)
{
    pl_mapping **first = list_of(memory, mapping);
    mapping->before = NULL;
    mapping->after = *first;
    if (mapping->after)
        mapping->after->before = mapping;
    *first = mapping;
    memory->full_bytes += mapping->is_full ? mapping->bytes : 0;
}

void pl_memory_hook_mapping(pl_memory *memory, pl_mapping *mapping)
{
    mapping->is_full = false;
    link_mapping(memory, mapping);
}

void pl_memory_unhook_mapping(pl_memory *memory, pl_mapping *mapping)
{
    if (memory->next_full == mapping)
        memory->next_full = mapping->after;
    if (mapping->before)
        mapping->before->after = mapping->after;
    else
        *list_of(memory, mapping) = mapping->after;
    if (mapping->after)
        mapping->after->before = mapping->before;
    memory->full_bytes -= mapping->is_full ? mapping->bytes : 0;
}

void pl_memory_mark_full(pl_memory *memory, pl_mapping *mapping, bool is_full)
{
    pl_memory_unhook_mapping(memory, mapping);
    mapping->is_full = is_full;
    link_mapping(memory, mapping);
}

static int map(const pl_memory *memory, uint64_t cost, enum pl_map_kind kind, void **ret_data)
{
    if (pl_memory_is_guarded(memory))
        return memory->line.guard.map(cost, kind, ret_data);
    void *data = mmap(NULL, cost, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return -ENOMEM;
    *ret_data = data;
    return 0;
}

static int take_mapping(pl_memory *memory, uint64_t cost, enum pl_map_kind kind,
                        pl_block *ret_block)
{
    pl_mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping)
        return -ENOMEM;
    int r = map(memory, cost, kind, &mapping->data);
    if (r < 0) {
        free(mapping);
        return r;
    }
    if (cost >= HUGE_FROM_BYTES)
        madvise(mapping->data, cost, MADV_HUGEPAGE); /* where there are none it is as well */
    mapping->bytes = cost;
    pthread_mutex_lock(&memory->mu);
    pl_memory_hook_mapping(memory, mapping);
    pthread_mutex_unlock(&memory->mu);
    ret_block->data = mapping->data;
    ret_block->mapping = mapping;
    return 0;
}

/* Claim, then allocate. */
static int try_to_take(pl_memory *memory, uint64_t cost, enum pl_map_kind kind, pl_block *ret_block)
{
    pl_mapping *spare;
    int r = claim(memory, cost, kind, &spare);
    if (r < 0)
        return r;
    *ret_block = (pl_block){.generation = memory->generation};
    if (spare) {
        ret_block->data = spare->data;
        ret_block->mapping = spare;
        return 0;
    }
    r = cost < PL_MEMORY_PAGED_BYTES ? take_from_malloc(memory, cost, ret_block)
                                     : take_mapping(memory, cost, kind, ret_block);
    if (r < 0) {
        release(memory, cost);
        return r;
    }
    if (!pl_memory_is_guarded(memory)) /* the guard looks for itself */
        pl_memory_look_if_due(memory, cost);
    return 0;
}

/* Subtracts `margin_bytes` for what the rest may have grown by. */
static uint64_t headroom_within(const pl_memory *memory, uint64_t margin_bytes)
{
    uint64_t below_cap =
        pl_sub_sat_u64(memory->line.cap_bytes, atomic_load(&memory->claimed_bytes));
    uint64_t below_line = pl_add_sat_u64(pl_ledger_headroom_bytes(memory->line.ledger),
                                         atomic_load(&memory->spare_bytes));
    return pl_min_u64(below_cap, pl_sub_sat_u64(below_line, margin_bytes));
}

static uint64_t headroom_bytes(const pl_memory *memory)
{
    return headroom_within(memory, 0);
}

static uint64_t run_evictor(pl_memory *memory, uint64_t bytes, pl_error *reterr)
{
    pthread_mutex_lock(&memory->mu);
    pl_memory_evict *function = memory->evict;
    void *context = memory->evict_context;
    memory->n_evicting += function != NULL;
    pthread_mutex_unlock(&memory->mu);
    if (!function)
        return 0;

    uint64_t freed = function(context, bytes, reterr);
    pthread_mutex_lock(&memory->mu);
    if (--memory->n_evicting == 0)
        pthread_cond_broadcast(&memory->evict_end);
    pthread_mutex_unlock(&memory->mu);
    return freed;
}

static uint64_t evict(pl_memory *memory, uint64_t cost, pl_error *reterr)
{
    uint64_t missing = pl_max_u64(pl_sub_sat_u64(cost, headroom_bytes(memory)), 1);
    return run_evictor(memory, missing, reterr);
}

uint64_t pl_memory_move_out(pl_memory *memory, uint64_t bytes, pl_error *reterr)
{
    uint64_t freed = pl_memory_drop_spares(memory);
    return freed >= bytes ? freed : freed + run_evictor(memory, bytes - freed, reterr);
}

/* Finally asks the guard to have others make room; it writes each refusal into the run's record. */
static int take_with_eviction(pl_memory *memory, uint64_t cost, enum pl_map_kind last,
                              pl_block *ret_block, pl_error *ret_reason)
{
    int r = try_to_take(memory, cost, PL_MAP_IF_ROOM, ret_block);
    if (r == PL_EBUDGET) {
        pl_memory_drop_spares(memory);
        pl_memory_look_at_line(memory);
    }
    while (r == PL_EBUDGET) {
        r = try_to_take(memory, cost, PL_MAP_IF_ROOM, ret_block);
        if (r == PL_EBUDGET && evict(memory, cost, ret_reason) == 0)
            break;
    }
    if (r == PL_EBUDGET) {
        pl_memory_relieve(memory);
        r = try_to_take(memory, cost, last, ret_block);
        ret_block->of_reserve = r == 0 && last == PL_MAP_RESERVE;
    }
    return r;
}

static int refuse(pl_memory *memory, uint64_t cost, const char *what, const pl_error *reason,
                  pl_error *reterr)
{
    char guard[256] = "";
    uint64_t claimed = atomic_load(&memory->claimed_bytes), cap = memory->line.cap_bytes;
    const char *why = reason->code ? "; idle tensors could not be spilled: " : "";
    const char *more = reason->code ? reason->message : "";
    if (cost > cap || claimed > cap - cost)
        return pl_error_set(reterr, PL_EBUDGET,
                            "no room for %s for '%s': tensors already use %s of their %s limit%s%s",
                            PL_SIZE(cost), what, PL_SIZE(claimed), PL_SIZE(cap), why, more);
    if (pl_memory_is_guarded(memory) && memory->line.guard.refusal(guard, sizeof guard) > 0)
        return pl_error_set(reterr, PL_EBUDGET, "no room for '%s': %s%s%s", what, guard, why, more);
    uint64_t charged = pl_ledger_charged_bytes(memory->line.ledger);
    return pl_error_set(reterr, PL_EBUDGET,
                        "no room for %s for '%s': %s of the %s budget are in use, %s of it by "
                        "tensors; free some, or raise the budget%s%s",
                        PL_SIZE(cost), what, PL_SIZE(charged),
                        PL_SIZE(pl_ledger_limit_bytes(memory->line.ledger)), PL_SIZE(claimed), why,
                        more);
}

static int take(pl_memory *memory, uint64_t bytes, const char *what, enum pl_map_kind last,
                pl_block *ret_block, pl_error *reterr)
{
    static _Alignas(PL_MEMORY_ALIGN_BYTES) char nothing[PL_MEMORY_ALIGN_BYTES];
    uint64_t cost = pl_memory_cost_bytes(bytes);
    pl_block block = {.data = nothing};
    pl_error reason = {0};
    int r = 0;
    if (bytes > 0)
        r = take_with_eviction(memory, cost, last, &block, &reason);
    if (r == PL_EBUDGET)
        return refuse(memory, cost, what, &reason, reterr);
    if (r < 0)
        return pl_error_set(reterr, r,
                            "the system refused %s for '%s', although the budget allows it: %s",
                            PL_SIZE(cost), what, pl_error_text(r));
    block.bytes = bytes;
    *ret_block = block;
    return 0;
}

int pl_memory_take(pl_memory *memory, uint64_t bytes, const char *what, pl_block *ret_block,
                   pl_error *reterr)
{
    return take(memory, bytes, what, PL_MAP_OR_REFUSE, ret_block, reterr);
}

int pl_memory_take_window(pl_memory *memory, const char *what, pl_block *ret_block,
                          pl_error *reterr)
{
    return take(memory, PL_MEMORY_WINDOW_BYTES, what, PL_MAP_RESERVE, ret_block, reterr);
}

void pl_memory_give(pl_memory *memory, pl_block *block)
{
    uint64_t cost = pl_memory_cost_bytes(block->bytes);
    bool ours = block->generation == memory->generation;
    if (block->bytes > 0 && block->mapping) {
        /* Bytes lent from the reserve go back to it. */
        if (ours && !block->of_reserve && pl_memory_keep_spare(memory, block->mapping)) {
            atomic_fetch_sub(&memory->claimed_bytes, cost);
            *block = (pl_block){0};
            return;
        }
        atomic_fetch_add(&memory->n_gives_begun, 1);
        pthread_mutex_lock(&memory->mu);
        if (ours)
            pl_memory_unhook_mapping(memory, block->mapping);
        pthread_mutex_unlock(&memory->mu);
        munmap(block->data, cost);
        atomic_fetch_add(&memory->n_gives_ended, 1);
        free(block->mapping);
    } else if (block->bytes > 0) {
        free(block->data);
        if (ours)
            atomic_fetch_sub(&memory->small_bytes, cost);
    }
    if (block->bytes > 0 && ours)
        release(memory, cost);
    *block = (pl_block){0};
}

/* ---- what is asked of it ---- */

void pl_memory_hold(pl_memory *memory, int more)
{
    if (memory->line.guard.hold)
        memory->line.guard.hold(more);
}

void pl_memory_add_idle(pl_memory *memory, int64_t bytes)
{
    if (memory->line.room >= 0)
        pl_room_add_idle(memory->line.ledger, memory->line.room, bytes);
}

uint64_t pl_memory_idle_elsewhere(const pl_memory *memory, uint64_t own_bytes)
{
    if (!pl_memory_is_guarded(memory))
        return 0;
    uint64_t own = pl_add_sat_u64(own_bytes, atomic_load(&memory->spare_bytes));
    return pl_sub_sat_u64(pl_room_idle_bytes(memory->line.ledger), own);
}

void pl_memory_tell_progress(pl_memory *memory)
{
    if (memory->line.room >= 0)
        pl_room_tell_progress(memory->line.ledger);
}

void pl_memory_trim(pl_memory *memory)
{
    (void)pl_memory_drop_spares(memory);
}

uint64_t pl_memory_limit_bytes(const pl_memory *memory)
{
    return pl_min_u64(memory->line.cap_bytes, pl_ledger_limit_bytes(memory->line.ledger));
}

uint64_t pl_memory_claimed_bytes(const pl_memory *memory)
{
    return atomic_load(&memory->claimed_bytes);
}

uint64_t pl_memory_peak_bytes(const pl_memory *memory)
{
    return atomic_load(&memory->peak_bytes);
}

uint64_t pl_memory_headroom_bytes(pl_memory *memory)
{
    pl_memory_look(memory);
    return headroom_bytes(memory);
}

uint64_t pl_memory_headroom_for(pl_memory *memory, uint64_t bytes)
{
    uint64_t since_bytes;
    if (pl_memory_looked_lately(memory, &since_bytes)) {
        uint64_t lately = headroom_within(memory, since_bytes);
        if (lately >= bytes)
            return lately;
    }
    return pl_memory_headroom_bytes(memory);
}

bool pl_memory_is_guarded(const pl_memory *memory)
{
    return pl_memory_line_is_guarded(&memory->line);
}

void pl_memory_set_evictor(pl_memory *memory, pl_memory_evict *function, void *context)
{
    pthread_mutex_lock(&memory->mu);
    memory->evict = function;
    memory->evict_context = context;
    while (memory->n_evicting > 0)
        pthread_cond_wait(&memory->evict_end, &memory->mu);
    pthread_mutex_unlock(&memory->mu);
}
