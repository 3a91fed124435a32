/* SPDX-License-Identifier: Apache-2.0 */
/* See sites.h. */
#include "report/sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger.h"
#include "probe/python.h"
#include "report/code_place.h"

typedef struct site {
    const pl_site *entry;
    uint64_t bytes;
    uint64_t untouched_bytes; /* of them */
} site;

static uint64_t load(const pl_atomic_u64 *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* How the sites are read: as of which moment, and scaled down by which share. */
typedef struct view {
    const struct pl_ledger *ledger;
    enum pl_sites_moment moment;
    pl_unclaimed unclaimed;
    double share;
} view;

static uint64_t recorded_bytes(view *of, const pl_site *entry)
{
    if (of->moment == PL_SITES_AT_PEAK)
        return load(&entry->at_peak_bytes);
    if (of->moment == PL_SITES_AT_REFUSAL)
        return load(&entry->at_refusal_bytes);
    return pl_site_held_bytes(of->ledger, entry, &of->unclaimed);
}

static uint64_t sum_of_sites(const struct pl_ledger *ledger, enum pl_sites_moment moment)
{
    view all = {.ledger = ledger, .moment = moment};
    uint64_t sum = 0;
    for (int i = 0; i < PL_SITES; i++)
        sum = pl_add_sat_u64(sum, recorded_bytes(&all, &ledger->sites[i]));
    return sum;
}

uint64_t pl_sites_in_use_bytes(const pl_snapshot *snapshot, enum pl_sites_moment moment)
{
    const pl_ledger_sum *sum = &snapshot->ledger->sum;
    if (moment == PL_SITES_AT_PEAK)
        return load(&sum->sites_peak_bytes);
    if (moment == PL_SITES_AT_REFUSAL)
        return load(&sum->sites_refusal_bytes);
    return load(&sum->charged_bytes);
}

/* Sites are read one after the other while blocks come and go, and samples overestimate by chance.
 * Their sum is scaled down to the memory in use. */
static view view_of(const pl_snapshot *snapshot, enum pl_sites_moment moment)
{
    uint64_t sum = sum_of_sites(snapshot->ledger, moment);
    uint64_t in_use = pl_sites_in_use_bytes(snapshot, moment);
    double share = sum > in_use ? (double)in_use / (double)sum : 1;
    return (view){.ledger = snapshot->ledger, .moment = moment, .share = share};
}

static uint64_t bytes_of(view *of, const pl_site *entry)
{
    uint64_t bytes = recorded_bytes(of, entry);
    return of->share < 1 ? (uint64_t)((double)bytes * of->share) : bytes;
}

static uint64_t untouched_bytes(const pl_site *entry, enum pl_sites_moment moment)
{
    int64_t now = atomic_load_explicit(&entry->untouched_bytes, memory_order_relaxed);
    if (moment == PL_SITES_AT_PEAK)
        return load(&entry->untouched_at_peak_bytes);
    if (moment == PL_SITES_AT_REFUSAL)
        return load(&entry->untouched_at_refusal_bytes);
    return now > 0 ? (uint64_t)now : 0;
}

enum pl_sites_moment pl_sites_moment_of(const pl_snapshot *snapshot, bool about_refusal)
{
    if (pl_snapshot_runs(snapshot))
        return PL_SITES_NOW;
    if (about_refusal && load(&snapshot->ledger->sum.sites_refusal_bytes) > 0)
        return PL_SITES_AT_REFUSAL;
    bool freed = sum_of_sites(snapshot->ledger, PL_SITES_AT_PEAK) >
                 sum_of_sites(snapshot->ledger, PL_SITES_AT_END);
    return freed ? PL_SITES_AT_PEAK : PL_SITES_AT_END;
}

static const char *const moment_names[] = {
    [PL_SITES_NOW] = "now",
    [PL_SITES_AT_REFUSAL] = "refusal",
    [PL_SITES_AT_PEAK] = "peak",
    [PL_SITES_AT_END] = "end",
};

const char *pl_sites_moment_name(enum pl_sites_moment moment)
{
    return moment_names[moment];
}

enum pl_sites_moment pl_sites_moment_parse(const char *name)
{
    for (size_t i = 0; i < PL_COUNT_OF(moment_names); i++)
        if (strcmp(name, moment_names[i]) == 0)
            return (enum pl_sites_moment)i;
    return PL_SITES_AT_END;
}

static bool is_described(const pl_site *entry)
{
    return atomic_load_explicit(&entry->key, memory_order_acquire) != 0 &&
           (pl_json_has_frame(&entry->python) || entry->n_frames > 0);
}

/* Keeps the largest in order: sixteen places, so plain insertion. */
static int collect(const pl_snapshot *snapshot, enum pl_sites_moment moment,
                   site largest[PL_REPORT_SITES])
{
    int n = 0;
    view of = view_of(snapshot, moment);
    for (int i = 0; i < PL_SITES; i++) {
        const pl_site *entry = &snapshot->ledger->sites[i];
        uint64_t bytes = bytes_of(&of, entry);
        if (bytes == 0 || !is_described(entry))
            continue;
        int at = n < PL_REPORT_SITES ? n++ : PL_REPORT_SITES;
        for (; at > 0 && largest[at - 1].bytes < bytes; at--)
            if (at < PL_REPORT_SITES)
                largest[at] = largest[at - 1];
        if (at < PL_REPORT_SITES)
            largest[at] = (site){entry, bytes, pl_min_u64(untouched_bytes(entry, moment), bytes)};
    }
    return n;
}

static int native_frames(const struct pl_ledger *ledger, const pl_site *entry, bool with_names,
                         pl_native_frame frames[PL_SITE_FRAMES])
{
    int n = (int)pl_min_u64(entry->n_frames, PL_SITE_FRAMES);
    for (int i = 0; i < n; i++) {
        const pl_site_frame *from = &entry->frames[i];
        frames[i] = (pl_native_frame){.offset = from->offset};
        if (from->module < PL_MODULES)
            pl_json_clean(ledger->modules[from->module].path,
                          sizeof(ledger->modules[from->module].path), frames[i].module,
                          sizeof(frames[i].module));
        else
            frames[i].address = from->offset;
    }
    if (with_names)
        pl_inspect_symbols(frames, (size_t)n);
    return n;
}

/* Writes "" when nothing is known of it. */
static void native_place(const pl_native_frame *frames, int n, char place[PL_FACT_PLACE_BYTES])
{
    int picked = pl_code_place_pick_native(frames, n);
    place[0] = '\0';
    if (picked >= 0)
        pl_code_place_native(&frames[picked], place);
}

uint32_t pl_sites_cell_number(const pl_snapshot *snapshot, uint32_t cell)
{
    if (cell == 0 || cell > PL_CELLS)
        return 0;
    return atomic_load_explicit(&snapshot->ledger->cells[cell - 1].number, memory_order_relaxed);
}

static json_t *build_site(pl_json *json, const pl_snapshot *snapshot, const site *from,
                          char place[PL_FACT_PLACE_BYTES])
{
    const pl_site *entry = from->entry;
    int64_t count = atomic_load_explicit(&entry->n_held, memory_order_relaxed);
    /* An estimate, like the held bytes, and never more than there was in all. */
    uint64_t peak = pl_min_u64(atomic_load_explicit(&entry->peak_bytes, memory_order_relaxed),
                               snapshot->peak_bytes);
    uint32_t number = pl_sites_cell_number(snapshot, pl_site_cell(snapshot->ledger, entry));
    json_t *object = json_object();
    pl_json_put(json, object, "bytes", pl_json_u64(from->bytes));
    if (from->untouched_bytes != 0)
        pl_json_put(json, object, "untouched_bytes", pl_json_u64(from->untouched_bytes));
    pl_json_put(json, object, "peak_bytes", pl_json_u64(pl_max_u64(from->bytes, peak)));
    pl_json_put(json, object, "count", json_integer(count > 0 ? count : 0));
    pl_json_put(json, object, "pid",
                json_integer(atomic_load_explicit(&entry->owner_pid, memory_order_relaxed)));
    if (number != 0)
        pl_json_put(json, object, "cell", json_integer(number));
    if (entry->python.line == PL_LINE_OF_FILE) {
        pl_code_place_python(&entry->python, &snapshot->places, place);
        pl_json_put_text(json, object, "file", place);
    } else if (pl_json_has_frame(&entry->python)) {
        pl_json_put(json, object, "python",
                    pl_json_python_frame(json, &snapshot->places, &entry->python));
        pl_code_place_python(&entry->python, &snapshot->places, place);
    } else {
        pl_native_frame frames[PL_SITE_FRAMES];
        int n = native_frames(snapshot->ledger, entry, true, frames);
        native_place(frames, n, place);
        pl_json_put(json, object, "native", pl_json_native_stack(json, frames, (size_t)n));
    }
    pl_json_put_text(json, object, "place", place);
    return object;
}

static enum pl_holder_kind holder_kind(const pl_snapshot *snapshot, const pl_site *entry)
{
    static const char memfd[] = "memfd:"; /* as supervise/shared_files.c calls them */
    char file[sizeof(entry->python.file) + 1];
    pl_json_clean(entry->python.file, sizeof(entry->python.file), file, sizeof(file));
    if (entry->python.line == PL_LINE_OF_FILE)
        return strncmp(file, memfd, strlen(memfd)) == 0 ? PL_HOLDER_MEMFD : PL_HOLDER_FILE;
    bool in_cell = pl_cell_sources_number(snapshot->places.cells, file) != 0;
    return !in_cell && pl_python_is_import(file) ? PL_HOLDER_MODULES : PL_HOLDER_CODE;
}

json_t *pl_sites_build(pl_json *json, const pl_snapshot *snapshot, enum pl_sites_moment moment,
                       pl_holder *ret_holder)
{
    site largest[PL_REPORT_SITES];
    int n = collect(snapshot, moment, largest);
    json_t *array = json_array();
    uint64_t held_bytes = 0;
    pl_holder holder = {.kind = PL_HOLDER_UNKNOWN};
    for (int i = 0; i < n; i++) {
        char place[PL_FACT_PLACE_BYTES] = "";
        pl_json_add(json, array, build_site(json, snapshot, &largest[i], place));
        if (i == 0)
            memcpy(holder.place, place, sizeof(place));
        if (strcmp(place, holder.place) == 0) /* workers run the same lines */
            held_bytes = pl_add_sat_u64(held_bytes, largest[i].bytes);
    }
    uint64_t whole_bytes = pl_sites_in_use_bytes(snapshot, moment);
    if (moment == PL_SITES_AT_REFUSAL) /* little of the line was in use: the request was large */
        whole_bytes = pl_max_u64(whole_bytes, snapshot->limit_bytes);
    if (moment == PL_SITES_AT_PEAK || moment == PL_SITES_AT_END) /* unseen memory has no site */
        whole_bytes = pl_max_u64(whole_bytes, snapshot->peak_bytes);
    if (holder.place[0] != '\0' && held_bytes >= whole_bytes / PL_SITES_NOTICEABLE)
        holder.kind = holder_kind(snapshot, largest[0].entry);
    *ret_holder = holder;
    return array;
}

static int64_t growth_bytes(const pl_site *entry)
{
    int64_t last = atomic_load_explicit(&entry->run_bytes[0], memory_order_relaxed);
    int64_t before = atomic_load_explicit(&entry->run_bytes[1], memory_order_relaxed), growth;
    return __builtin_sub_overflow(last, before, &growth) ? 0 : growth;
}

static bool same_line(const pl_python_frame *a, const pl_python_frame *b)
{
    return a->line == b->line && strncmp(a->file, b->file, sizeof(a->file)) == 0 &&
           strncmp(a->function, b->function, sizeof(a->function)) == 0;
}

static bool same_frames(const pl_site *a, const pl_site *b)
{
    size_t n = pl_min_u64(a->n_frames, PL_SITE_FRAMES);
    if (pl_json_has_frame(&a->python) || pl_json_has_frame(&b->python))
        return same_line(&a->python, &b->python);
    return n == pl_min_u64(b->n_frames, PL_SITE_FRAMES) &&
           memcmp(a->frames, b->frames, n * sizeof(a->frames[0])) == 0;
}

static pl_site_group *find_group(pl_site_groups *groups, const pl_site *entry, uint32_t cell)
{
    for (size_t i = 0; i < groups->n; i++)
        if (groups->groups[i].cell == cell && same_frames(groups->groups[i].site, entry))
            return &groups->groups[i];
    groups->groups[groups->n] = (pl_site_group){.site = entry, .cell = cell};
    return &groups->groups[groups->n++];
}

static void add_to_group(pl_site_groups *groups, const pl_site *entry, uint32_t cell,
                         uint64_t bytes)
{
    int64_t count = atomic_load_explicit(&entry->n_held, memory_order_relaxed);
    pl_site_group *group = find_group(groups, entry, cell <= PL_CELLS ? cell : 0);
    group->bytes = pl_add_sat_u64(group->bytes, bytes);
    group->count = pl_add_sat_u64(group->count, count > 0 ? (uint64_t)count : 0);
    if (__builtin_add_overflow(group->growth_bytes, growth_bytes(entry), &group->growth_bytes))
        group->growth_bytes = 0;
}

static int compare_largest_first(const void *left, const void *right)
{
    const pl_site_group *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->site < b->site ? -1 : a->site > b->site;
}

/* Reading a library's symbols may take 80 ms: only the largest are worth it. */
static void write_places(const pl_snapshot *snapshot, pl_site_groups *groups)
{
    for (size_t i = 0; i < groups->n; i++) {
        pl_site_group *group = &groups->groups[i];
        pl_native_frame frames[PL_SITE_FRAMES];
        if (pl_json_has_frame(&group->site->python))
            pl_code_place_python(&group->site->python, &snapshot->places, group->place);
        else
            native_place(frames,
                         native_frames(snapshot->ledger, group->site, i < PL_REPORT_SITES, frames),
                         group->place);
    }
}

int pl_sites_group(const pl_snapshot *snapshot, enum pl_sites_moment moment,
                   pl_site_groups *ret_groups)
{
    const struct pl_ledger *ledger = snapshot->ledger;
    view of = view_of(snapshot, moment);
    pl_site_groups groups = {.groups = calloc(PL_SITES, sizeof(pl_site_group))};
    if (groups.groups == NULL)
        return -ENOMEM;
    for (int i = 0; i < PL_SITES; i++) {
        const pl_site *entry = &ledger->sites[i];
        uint64_t bytes = bytes_of(&of, entry);
        if (bytes > 0 && is_described(entry))
            add_to_group(&groups, entry, pl_site_cell(ledger, entry), bytes);
    }
    qsort(groups.groups, groups.n, sizeof(pl_site_group), compare_largest_first);
    write_places(snapshot, &groups);
    *ret_groups = groups;
    return 0;
}

void pl_sites_groups_done(pl_site_groups *groups)
{
    free(PL_TAKE(groups->groups));
    groups->n = 0;
}
