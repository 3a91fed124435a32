/* SPDX-License-Identifier: Apache-2.0 */
/* See notebook.h. */
#include "guard/notebook.h"

#include <errno.h>
#include <stdio.h>

#include "base/size.h"
#include "guard/guard.h"
#include "plimsoll/budget.h"

static pl_guard *const guard = &pl_guard_state;

/* The guard must not count its own work: its allocations in between pass through. */
static bool look(void)
{
    if (!guard->ledger)
        return false;
    pl_thread.inside = true;
    pl_line_look_exactly();
    pl_thread.inside = false;
    return true;
}

int pl_guard_interface(void)
{
    return PL_GUARD_INTERFACE;
}

int pl_guard_cell_begin(const char *id, uint32_t number)
{
    int r = guard->ledger ? pl_cell_begin(guard->ledger, id, number) : -ENOENT;
    if (r == 0) {
        pl_kernel_note_threads();
        pl_kernel_code_runs(false);
    }
    return r;
}

int pl_guard_cell_file(const char *file)
{
    if (!guard->ledger)
        return -ENOENT;
    pl_cell_set_file(guard->ledger, file);
    pl_handling_end();
    pl_kernel_code_runs(true);
    return 0;
}

int pl_guard_cell_end(pl_cell_run *ret_run)
{
    pl_kernel_code_runs(false);
    return look() ? pl_cell_end(guard->ledger, ret_run) : -ENOENT;
}

uint64_t pl_guard_n_refusals(void)
{
    return guard->ledger ? atomic_load(&guard->ledger->slots[guard->owner].n_refusals) : 0;
}

int pl_guard_refusal(char *text, size_t size)
{
    return guard->ledger ? pl_interpreter_refusal(text, size) : -ENOENT;
}

int pl_guard_memory_read(pl_guard_memory *ret_memory)
{
    if (!look())
        return -ENOENT;
    *ret_memory = (pl_guard_memory){
        .line_bytes = pl_ledger_limit_bytes(guard->ledger),
        .charged_bytes = pl_ledger_charged_bytes(guard->ledger),
        .peak_bytes = pl_ledger_peak_bytes(guard->ledger),
        .reserve_bytes = pl_ledger_reserve_bytes(guard->ledger),
        .true_limit_bytes = guard->ledger->header.true_limit_bytes,
    };
    return 0;
}

/* Moves the line. If the old one was passed, later requests count as a new excursion. */
static void move_line(uint64_t line_bytes)
{
    pl_ledger_set_limit_bytes(guard->ledger, line_bytes);
    look();
}

static int parse_line(const char *request, uint64_t *ret_bytes, pl_error *reterr)
{
    uint64_t bytes, true_limit = guard->ledger->header.true_limit_bytes;
    uint64_t most = pl_sub_sat_u64(true_limit, guard->ledger->header.reserve_bytes);
    int r = pl_size_parse(request, true_limit, &bytes, reterr);
    if (r < 0)
        return r;
    if (bytes < PL_BUDGET_MIN_BYTES)
        return pl_error_set(reterr, PL_EBUDGET, "a budget of %s is too small: the least is %s",
                            PL_SIZE(bytes), PL_SIZE(PL_BUDGET_MIN_BYTES));
    if (true_limit && bytes > most)
        return pl_error_set(reterr, PL_EBUDGET,
                            "a budget of %s is more than the system gives: %s, less a reserve of "
                            "%s, leaves at most %s",
                            PL_SIZE(bytes), PL_SIZE(true_limit),
                            PL_SIZE(guard->ledger->header.reserve_bytes), PL_SIZE(most));
    *ret_bytes = bytes;
    return 0;
}

int pl_guard_set_line(const char *request, uint64_t *ret_line_bytes, char *message, size_t size)
{
    pl_error error = {0};
    uint64_t bytes = 0;
    if (!guard->ledger)
        return -ENOENT;
    int r = parse_line(request, &bytes, &error);
    if (r < 0) {
        snprintf(message, size, "%s", error.message);
        return r;
    }
    atomic_store(&guard->ledger->sum.cell_limit_bytes, 0);
    move_line(bytes);
    *ret_line_bytes = bytes;
    return 0;
}

int pl_guard_tighten_line(uint64_t more_bytes, uint64_t *ret_before)
{
    if (!look())
        return -ENOENT;
    uint64_t before = pl_ledger_wanted_bytes(guard->ledger);
    uint64_t tighter = pl_add_sat_u64(pl_ledger_charged_bytes(guard->ledger), more_bytes);
    *ret_before = before;
    if (tighter < before) {
        atomic_store(&guard->ledger->sum.cell_limit_bytes, tighter);
        move_line(tighter);
    }
    return 0;
}

int pl_guard_restore_line(uint64_t before)
{
    if (!guard->ledger)
        return -ENOENT;
    atomic_store(&guard->ledger->sum.cell_limit_bytes, 0);
    move_line(before);
    return 0;
}
