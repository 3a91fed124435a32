/* SPDX-License-Identifier: Apache-2.0 */
/* Handling an exception needs room. CPython 3.13 imports a dozen modules before it prints the first
 * traceback; a program's own handler logs, saves, or starts another program. A second exception in
 * the middle of that would hide the first one, and its traceback would be lost.
 *
 * A thread is taken to be handling one when:
 *   - it was refused memory, or given an exception, and no more than half of the reserve was taken
 *     since. Freeing memory ends that: the exception has been handled.
 *   - its process holds almost nothing, while others have filled the line.
 *   - its stack has no frames, or only the standard library's. The interpreter is then at work by
 *     itself: it starts, imports, prints a traceback, ends a thread or the program. No code of the
 *     program would catch an exception raised there. The import system is left alone too when the
 *     program has called it: it is in the middle of its own locks and tables. */
#include "guard/guard.h"

static pl_guard *const guard = &pl_guard_state;

static uint64_t reserve(void)
{
    return pl_ledger_reserve_bytes(guard->ledger);
}

/* Above this mark only the interpreter itself is served: see pl_handling_is_spared(). */
static uint64_t mark(void)
{
    return pl_ledger_limit_bytes(guard->ledger) + reserve() - reserve() / 4;
}

void pl_handling_begin(void)
{
    pl_thread.refused_at = pl_ledger_charged_bytes(guard->ledger);
}

void pl_handling_end(void)
{
    pl_thread.refused_at = 0;
}

void pl_handling_look(void)
{
    if (pl_ledger_charged_bytes(guard->ledger) + reserve() / 8 < pl_thread.refused_at)
        pl_handling_end();
}

static bool has_room(void)
{
    if (pl_thread.refused_at == 0)
        return false;
    uint64_t from = pl_max_u64(pl_thread.refused_at, pl_ledger_limit_bytes(guard->ledger));
    return pl_ledger_charged_bytes(guard->ledger) <= pl_min_u64(from + reserve() / 2, mark());
}

/* For example a program that a handler starts: it holds so little that refusing it would free
 * nothing. */
static bool holds_little(void)
{
    const pl_ledger_slot *slot = &guard->ledger->slots[guard->owner];
    uint64_t own = atomic_load(&slot->claimed_bytes) + atomic_load(&slot->measured_bytes);
    return own <= reserve() / 2 && pl_ledger_charged_bytes(guard->ledger) <=
                                       pl_ledger_limit_bytes(guard->ledger) + reserve() / 2;
}

bool pl_handling_is_under_way(void)
{
    return has_room() || holds_little() || pl_callsite_worker() == PL_WORKER_INTERPRETER;
}

/* The last sixteenth covers what is not seen between two looks. */
bool pl_handling_is_spared(void)
{
    uint64_t last = pl_ledger_limit_bytes(guard->ledger) + reserve() - reserve() / 16;
    return pl_ledger_charged_bytes(guard->ledger) <= last &&
           pl_callsite_worker() == PL_WORKER_INTERPRETER;
}

/* The program's own requests are refused even while it handles an exception: it may try again with
 * less. */
bool pl_handling_needs(uint64_t bytes)
{
    if (pl_add_sat_u64(pl_ledger_charged_bytes(guard->ledger), bytes) > mark())
        return false;
    enum pl_worker worker = pl_callsite_worker();
    return worker == PL_WORKER_INTERPRETER || (worker == PL_WORKER_LIBRARY && has_room());
}
