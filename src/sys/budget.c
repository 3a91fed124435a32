/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the budget: asks each source, takes the smallest. See plimsoll/budget.h. */
#include "plimsoll/budget.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/base.h"
#include "base/size.h"
#include "sys/cgroup.h"
#include "sys/machine.h"

static_assert(PL_BUDGET_SOURCES >= PL_CGROUP_LEVELS + 5, "each source has a place");

/* Cgroups and variables may have any name, and the name reaches terminals and JSON. */
static void make_printable(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

/* Takes the next free place and names it. A `detail` that is too long loses its head, not its
 * tail. */
static pl_budget_source *add_source(pl_budget *budget, const char *name, const char *detail)
{
    pl_budget_source *source = &budget->sources[budget->n_sources++];
    size_t length = strlen(detail), room = sizeof source->detail - 1;
    *source = (pl_budget_source){0};
    snprintf(source->name, sizeof source->name, "%s", name);
    if (length <= room)
        memcpy(source->detail, detail, length + 1);
    else
        snprintf(source->detail, sizeof source->detail, "...%s", detail + length - (room - 3));
    make_printable(source->detail);
    return source;
}

static void set_bytes(pl_budget_source *source, uint64_t limit_bytes, uint64_t bytes)
{
    source->present = true;
    source->limit_bytes = limit_bytes;
    source->bytes = bytes;
}

/* A level whose usage cannot be read counts with its whole limit. */
static void add_cgroup_level(pl_budget *budget, const pl_cgroup *cgroup, int index)
{
    const pl_cgroup_level *level = &cgroup->levels[index];
    char detail[PL_CGROUP_PATH_BYTES + 32];
    snprintf(detail, sizeof detail, "%.*s%s%s", (int)level->path_length, cgroup->path,
             level->limit_file ? "/" : "", level->limit_file ? level->limit_file : "");
    pl_budget_source *source =
        add_source(budget, cgroup->version == 1 ? "cgroup v1" : "cgroup v2", detail);
    uint64_t usage = 0;
    if (level->limit_bytes == 0)
        return;
    if (pl_cgroup_level_usage_bytes(cgroup, index, &usage) < 0)
        usage = 0;
    set_bytes(source, level->limit_bytes, pl_sub_sat_u64(level->limit_bytes, usage));
}

static void add_cgroups(pl_budget *budget, const char *root)
{
    pl_cgroup cgroup;
    if (pl_cgroup_init(&cgroup, root, 0) < 0)
        add_source(budget, "cgroup", "no memory cgroup can be seen");
    for (int i = 0; i < cgroup.n_levels; i++)
        if (i == 0 || cgroup.levels[i].limit_bytes > 0)
            add_cgroup_level(budget, &cgroup, i);
    pl_cgroup_done(&cgroup);
}

static void add_machine(pl_budget *budget, const char *root)
{
    pl_budget_source *source = add_source(budget, "MemAvailable", "/proc/meminfo");
    pl_machine_memory memory;
    if (pl_machine_memory_read(root, &memory) == 0)
        set_bytes(source, memory.total_bytes, memory.available_bytes);
}

/* The command starts with none of it used: an rlimit counts each process alone. */
static void add_rlimit(pl_budget *budget, int resource, const char *name, const char *detail)
{
    pl_budget_source *source = add_source(budget, name, detail);
    struct rlimit limit;
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        set_bytes(source, limit.rlim_cur, limit.rlim_cur);
}

/* JupyterHub sets bytes; people also write "2G". The name may mean something else elsewhere, so a
 * value that is not a size is shown and ignored. */
static void add_mem_limit(pl_budget *budget)
{
    const char *text = getenv("MEM_LIMIT");
    if (!text || !*text)
        return;
    char detail[96];
    uint64_t bytes;
    bool is_size = pl_size_parse(text, 0, &bytes, NULL) == 0;
    snprintf(detail, sizeof detail, "environment: MEM_LIMIT=%.40s%s", text,
             is_size ? "" : " is not a size; ignored");
    pl_budget_source *source = add_source(budget, "MEM_LIMIT", detail);
    if (is_size)
        set_bytes(source, bytes, bytes);
}

static void find_true_limit(pl_budget *budget)
{
    budget->tightest = -1;
    for (int i = 0; i < budget->n_sources; i++) {
        const pl_budget_source *source = &budget->sources[i];
        if (!source->present)
            continue;
        if (budget->tightest < 0 || source->bytes < budget->true_limit_bytes) {
            budget->tightest = i;
            budget->true_limit_bytes = source->bytes;
        }
    }
}

static int add_request(pl_budget *budget, const char *text, uint64_t *ret_bytes, pl_error *reterr)
{
    int r = pl_size_parse(text, budget->true_limit_bytes, ret_bytes, reterr);
    if (r < 0)
        return r;
    char detail[96];
    snprintf(detail, sizeof detail, "--budget %.60s", text);
    set_bytes(add_source(budget, "request", detail), *ret_bytes, *ret_bytes);
    return 0;
}

/* request_bytes is UINT64_MAX when nothing was asked for. */
static void draw_line(pl_budget *budget, uint64_t request_bytes, uint64_t reserve_bytes)
{
    uint64_t most = budget->tightest < 0 ? UINT64_MAX : budget->true_limit_bytes;
    if (reserve_bytes == 0)
        reserve_bytes = pl_min_u64(PL_BUDGET_RESERVE_BYTES, pl_min_u64(request_bytes, most) / 8);
    uint64_t highest = pl_sub_sat_u64(most, reserve_bytes);
    bool fits = request_bytes <= highest;
    budget->reserve_bytes = reserve_bytes;
    budget->line_bytes = fits ? request_bytes : highest;
    budget->decisive = fits ? budget->n_sources - 1 : budget->tightest;
    budget->cut = !fits && request_bytes != UINT64_MAX;
}

static int check_system(const pl_budget *budget, pl_error *reterr)
{
    if (budget->line_bytes >= PL_BUDGET_MIN_BYTES)
        return 0;
    const pl_budget_source *source = &budget->sources[budget->tightest];
    return pl_error_set(
        reterr, PL_EBUDGET,
        "too little memory: %s (%.200s) leaves %s, less a reserve of %s; the least is %s",
        source->name, source->detail, PL_SIZE(source->bytes), PL_SIZE(budget->reserve_bytes),
        PL_SIZE(PL_BUDGET_MIN_BYTES));
}

static int check_request(const pl_budget *budget, pl_error *reterr)
{
    if (budget->line_bytes >= PL_BUDGET_MIN_BYTES)
        return 0;
    return pl_error_set(reterr, PL_EBUDGET, "a budget of %s is too small: the least is %s",
                        PL_SIZE(budget->line_bytes), PL_SIZE(PL_BUDGET_MIN_BYTES));
}

static void ask_system(pl_budget *budget, const char *root)
{
    add_cgroups(budget, root);
    add_machine(budget, root);
    add_rlimit(budget, RLIMIT_AS, "RLIMIT_AS", "soft limit of address space (ulimit -v)");
    add_rlimit(budget, RLIMIT_DATA, "RLIMIT_DATA", "soft limit of private memory (ulimit -d)");
    add_mem_limit(budget);
    find_true_limit(budget);
}

/* Draws the line that the system alone would allow. */
static int draw_system_line(pl_budget *budget, const pl_budget_options *options, pl_error *reterr)
{
    if (budget->tightest < 0)
        return pl_error_set(reterr, PL_EBUDGET,
                            "no memory limit can be read here: give --budget SIZE");
    draw_line(budget, UINT64_MAX, options->reserve_bytes);
    return check_system(budget, reterr);
}

static int draw_requested_line(pl_budget *budget, const pl_budget_options *options,
                               pl_error *reterr)
{
    uint64_t bytes;
    int r = add_request(budget, options->request_text, &bytes, reterr);
    if (r < 0)
        return r;
    draw_line(budget, bytes, options->reserve_bytes);
    return check_request(budget, reterr);
}

int pl_budget_discover(const pl_budget_options *options, pl_budget *ret_budget, pl_error *reterr)
{
    PL_NOT_NULL(ret_budget, reterr);
    PL_TAKE_OPTIONS(pl_budget_options, options, reserve_bytes, reterr);
    const pl_budget_options defaults = {0};
    if (!options)
        options = &defaults;

    pl_budget budget = {0};
    ask_system(&budget, options->root ? options->root : "");
    int r = 0;
    if (budget.tightest >= 0 || !options->request_text)
        r = draw_system_line(&budget, options, reterr);
    if (r == 0 && options->request_text)
        r = draw_requested_line(&budget, options, reterr);
    if (r < 0)
        return r;
    *ret_budget = budget;
    return 0;
}
