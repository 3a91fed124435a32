/* SPDX-License-Identifier: Apache-2.0 */
/* See cell_table.h. Numbers are read from a ledger that may be written to meanwhile, or corrupt:
 * each is read once, and every index is checked. */
#include "report/cell_table.h"

#include <stdlib.h>
#include <string.h>

enum { CELL_SITES = 3 };

static uint64_t load(const pl_atomic_u64 *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static uint32_t load_u32(const pl_atomic_u32 *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static json_int_t cell_of(const json_t *frame)
{
    return json_integer_value(json_object_get(frame, "cell"));
}

/* The line that the cell `number` was at: the innermost frame in any cell. If that frame is in a
 * function of another cell, the line that called it: the outermost frame of the running cell. */
static const json_t *find_line(const json_t *stack, json_int_t number)
{
    size_t n = json_array_size(stack), i = 0;
    while (i < n && cell_of(json_array_get(stack, i)) == 0)
        i++;
    if (i < n && cell_of(json_array_get(stack, i)) == number)
        return json_array_get(stack, i);
    while (n > i)
        if (cell_of(json_array_get(stack, --n)) == number)
            return json_array_get(stack, n);
    return NULL;
}

/* The id, made valid UTF-8 and ended. */
static void read_id(const pl_cell *cell, char id[sizeof((pl_cell *)NULL)->id])
{
    pl_json_clean(cell->id, sizeof(cell->id), id, sizeof(cell->id));
}

static json_t *build_running(pl_json *json, const pl_snapshot *snapshot, const json_t *stack)
{
    const pl_cell *cell = &snapshot->ledger->cells[snapshot->cell - 1];
    const json_t *line = find_line(stack, snapshot->cell_number);
    char id[sizeof(cell->id)], title[PL_CELLS_TITLE_BYTES];
    read_id(cell, id);
    pl_cell_sources_title(snapshot->cells, id, title);
    json_t *object = json_object(), *source = json_object_get(line, "source");
    pl_json_put(json, object, "number", json_integer(snapshot->cell_number));
    pl_json_put(json, object, "id", json_string(id));
    if (line != NULL)
        pl_json_put(json, object, "line",
                    json_integer(json_integer_value(json_object_get(line, "line"))));
    if (source != NULL)
        pl_json_put(json, object, "source", json_incref(source));
    else if (line == NULL)
        pl_json_put_text(json, object, "source", title);
    pl_json_put(json, object, "running_s",
                pl_json_seconds(pl_snapshot_before_end_s(snapshot, load(&cell->started_ns))));
    return object;
}

json_t *pl_cell_table_notebook(pl_json *json, const pl_snapshot *snapshot, const json_t *stack)
{
    json_t *notebook = json_object();
    pl_json_put_text(json, notebook, "kernel", snapshot->header.kernel);
    pl_json_put_text(json, notebook, "path", snapshot->header.notebook);
    pl_json_put_text(json, notebook, "previous", snapshot->header.previous);
    if (snapshot->cell != 0)
        pl_json_put(json, notebook, "cell", build_running(json, snapshot, stack));
    return notebook;
}

/* The bytes that the cell held after each of its last runs, oldest first. */
typedef struct series {
    uint64_t bytes[PL_CELL_RUNS];
    uint32_t n;
} series;

static series read_series(const pl_cell *cell)
{
    uint32_t n_runs = load_u32(&cell->n_runs);
    uint32_t n_ended = n_runs > 0 && load(&cell->ended_ns) == 0 ? n_runs - 1 : n_runs;
    series held = {.n = (uint32_t)pl_min_u64(n_ended, PL_CELL_RUNS)};
    for (uint32_t i = 0; i < held.n; i++)
        held.bytes[i] = load(&cell->held_bytes[(n_ended - held.n + 1 + i) % PL_CELL_RUNS]);
    return held;
}

static json_int_t signed_bytes(uint64_t bytes)
{
    return (json_int_t)pl_min_u64(bytes, INT64_MAX);
}

static json_int_t last_growth(const series *held)
{
    json_int_t last = held->n > 0 ? signed_bytes(held->bytes[held->n - 1]) : 0;
    return held->n > 1 ? last - signed_bytes(held->bytes[held->n - 2]) : last;
}

/* Sorts the sites that grew most first for a cell that keeps growing; else the largest. */
static int64_t weight(const pl_site_group *group, bool grows)
{
    return grows ? group->growth_bytes : (int64_t)pl_min_u64(group->bytes, INT64_MAX);
}

static json_t *build_sites(pl_json *json, const pl_site_groups *groups, uint32_t cell, bool grows)
{
    const pl_site_group *most[CELL_SITES];
    int n = 0;
    for (size_t i = 0; i < groups->n; i++) {
        const pl_site_group *group = &groups->groups[i];
        if (group->cell != cell || group->place[0] == '\0')
            continue;
        int at = n < CELL_SITES ? n++ : CELL_SITES;
        for (; at > 0 && weight(most[at - 1], grows) < weight(group, grows); at--)
            if (at < CELL_SITES)
                most[at] = most[at - 1];
        if (at < CELL_SITES)
            most[at] = group;
    }
    json_t *array = json_array();
    for (int i = 0; i < n; i++) {
        json_t *object = json_object();
        pl_json_put(json, object, "place", pl_json_text(most[i]->place));
        pl_json_put(json, object, "bytes", pl_json_u64(most[i]->bytes));
        pl_json_put(json, object, "growth_bytes", json_integer(most[i]->growth_bytes));
        pl_json_add(json, array, object);
    }
    return array;
}

/* Once a run has ended, the sites of its dead processes are gone except for their part in the peak.
 * A cell that had no part in it is shown with the bytes that it held after its last run. */
static uint64_t held_bytes(const pl_snapshot *snapshot, const pl_site_groups *groups, uint32_t cell,
                           const series *held)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < groups->n; i++)
        if (groups->groups[i].cell == cell)
            bytes = pl_add_sat_u64(bytes, groups->groups[i].bytes);
    return bytes == 0 && !pl_snapshot_runs(snapshot) && held->n > 0 ? held->bytes[held->n - 1]
                                                                    : bytes;
}

static void put_bytes(pl_json *json, const pl_snapshot *snapshot, const pl_cell *cell, bool running,
                      json_t *object)
{
    uint64_t peak = load(running ? &snapshot->ledger->sum.cell_peak_bytes : &cell->peak_bytes);
    pl_json_put(json, object, "peak_bytes", pl_json_u64(peak));
    pl_json_put(json, object, "highest_bytes",
                pl_json_u64(pl_max_u64(peak, load(&cell->highest_bytes))));
    pl_json_put(json, object, "before_bytes", pl_json_u64(load(&cell->before_bytes)));
    if (!running)
        pl_json_put(json, object, "after_bytes", pl_json_u64(load(&cell->after_bytes)));
}

static json_t *build_cell(pl_json *json, const pl_snapshot *snapshot, const pl_site_groups *groups,
                          const pl_cell *cell)
{
    uint32_t place = (uint32_t)(cell - snapshot->ledger->cells) + 1;
    uint32_t n_growing = load_u32(&cell->n_growing);
    bool running = place == snapshot->cell;
    series held = read_series(cell);
    char id[sizeof(cell->id)], title[PL_CELLS_TITLE_BYTES];
    read_id(cell, id);
    pl_cell_sources_title(snapshot->cells, id, title);
    json_t *object = json_object(), *held_series = json_array();
    for (uint32_t i = 0; i < held.n; i++)
        pl_json_add(json, held_series, pl_json_u64(held.bytes[i]));
    pl_json_put(json, object, "number", json_integer(load_u32(&cell->number)));
    pl_json_put(json, object, "id", json_string(id));
    pl_json_put(json, object, "n_runs", json_integer(load_u32(&cell->n_runs)));
    pl_json_put(json, object, "running", json_boolean(running));
    pl_json_put(json, object, "held_bytes",
                pl_json_u64(held_bytes(snapshot, groups, place, &held)));
    put_bytes(json, snapshot, cell, running, object);
    pl_json_put(json, object, "growth_bytes", json_integer(last_growth(&held)));
    pl_json_put(json, object, "n_growing", json_integer(n_growing));
    pl_json_put(json, object, "held_series", held_series);
    pl_json_put_text(json, object, "source", title);
    pl_json_put(json, object, "sites", build_sites(json, groups, place, n_growing > 0));
    return object;
}

typedef struct numbered {
    uint32_t number;
    const pl_cell *cell;
} numbered;

static int compare_numbers(const void *left, const void *right)
{
    const numbered *a = left, *b = right;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return a->cell < b->cell ? -1 : a->cell > b->cell;
}

json_t *pl_cell_table_build(pl_json *json, const pl_snapshot *snapshot,
                            const pl_site_groups *groups)
{
    numbered known[PL_CELLS];
    size_t n = 0;
    for (int i = 0; i < PL_CELLS; i++) {
        const pl_cell *cell = &snapshot->ledger->cells[i];
        uint32_t number = load_u32(&cell->number);
        if (atomic_load_explicit(&cell->key, memory_order_acquire) != 0 && number != 0)
            known[n++] = (numbered){number, cell};
    }
    qsort(known, n, sizeof(known[0]), compare_numbers);
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        pl_json_add(json, array, build_cell(json, snapshot, groups, known[i].cell));
    return array;
}
