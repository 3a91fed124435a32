/* SPDX-License-Identifier: Apache-2.0 */
/* See memory_line.h. */
#include "tensor/memory_line.h"

#include <dlfcn.h>
#include <string.h>

#include "base/size.h"
#include "plimsoll/budget.h"
#include "sys/proc.h"

static bool find_function(const char *name, void *ret_function)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(ret_function, &found, sizeof found);
    return found != NULL;
}

/* See ledger/guarded.h. The guard is not linked, it is there or not. */
static bool find_guard(pl_memory_line *line)
{
    pl_memory_guard guard;
    bool found = find_function("pl_guard_map", &guard.map) &&
                 find_function("pl_guard_spare", &guard.spare) &&
                 find_function("pl_guard_hold", &guard.hold) &&
                 find_function("pl_guard_owner", &guard.owner) &&
                 find_function("pl_guard_look", &guard.look) &&
                 find_function("pl_guard_refusal", &guard.refusal);
    if (!found || guard.owner() < 0 || pl_ledger_open_run(&line->ledger, NULL) < 0)
        return false; /* preloaded, but in no run */
    line->guard = guard;
    line->owner = -1;
    return true;
}

static int cap_below_the_run(pl_memory_line *line, const char *budget_text, pl_error *reterr)
{
    if (!budget_text)
        return 0;
    return pl_size_parse(budget_text, pl_ledger_limit_bytes(line->ledger), &line->cap_bytes,
                         reterr);
}

static bool is_request(const pl_budget_source *source)
{
    return strcmp(source->name, "request") == 0;
}

/* The process's own bytes are added back where a source has subtracted them: it already has them. A
 * limit on the process alone (an rlimit) is reported whole. */
static uint64_t find_true_limit(const pl_budget *budget, uint64_t own_bytes)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < budget->n_sources; i++) {
        const pl_budget_source *source = &budget->sources[i];
        if (!source->present || is_request(source))
            continue;
        bool is_what_is_left = source->bytes != source->limit_bytes;
        least = pl_min_u64(least, source->bytes + (is_what_is_left ? own_bytes : 0));
    }
    return least;
}

/* Like budget.h, but without counting the process's own bytes as used. */
static uint64_t find_reserve(uint64_t asked_bytes, uint64_t true_bytes)
{
    return pl_min_u64(PL_BUDGET_RESERVE_BYTES, pl_min_u64(asked_bytes, true_bytes) / 8);
}

static int find_line(const char *budget_text, uint64_t own_bytes, pl_ledger_params *ret_params,
                     pl_error *reterr)
{
    pl_budget budget;
    const pl_budget_options options = {.request_text = budget_text};
    int r = pl_budget_discover(&options, &budget, reterr);
    if (r < 0)
        return r;
    uint64_t most = find_true_limit(&budget, own_bytes);
    uint64_t asked = budget_text ? budget.sources[budget.n_sources - 1].bytes : UINT64_MAX;
    uint64_t reserve = find_reserve(asked, most);
    ret_params->limit_bytes = pl_min_u64(asked, pl_sub_sat_u64(most, reserve));
    ret_params->reserve_bytes = reserve;
    if (own_bytes < pl_add_sat_u64(ret_params->limit_bytes, reserve))
        return 0;
    return pl_error_set(reterr, PL_EBUDGET,
                        "a budget of %s is too small: the process uses %s already",
                        PL_SIZE(ret_params->limit_bytes), PL_SIZE(own_bytes));
}

/* Without /proc nothing is measured: claims alone keep the line. */
static uint64_t own_bytes_now(void)
{
    pl_proc_memory memory;
    return pl_proc_memory_read(0, &memory) < 0 ? 0 : memory.private_bytes;
}

static int begin_own_ledger(pl_memory_line *line, const char *budget_text, pl_error *reterr)
{
    pl_ledger_params params;
    int r = find_line(budget_text, own_bytes_now(), &params, reterr);
    if (r < 0)
        return r;
    r = pl_ledger_new_private(&params, &line->ledger);
    if (r == 0)
        r = pl_ledger_join(line->ledger, 1, &line->owner);
    if (r < 0)
        return pl_error_set(reterr, r, "cannot start accounting for memory: %s", pl_error_text(r));
    return 0;
}

int pl_memory_line_init(pl_memory_line *line, const char *budget_text, pl_error *reterr)
{
    *line = (pl_memory_line){.cap_bytes = UINT64_MAX, .room = -1};
    int r = find_guard(line) ? cap_below_the_run(line, budget_text, reterr)
                             : begin_own_ledger(line, budget_text, reterr);
    if (r < 0)
        pl_memory_line_done(line);
    return r;
}

void pl_memory_line_done(pl_memory_line *line)
{
    pl_ledger_close(line->ledger);
    line->ledger = NULL;
}
