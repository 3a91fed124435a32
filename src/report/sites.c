/* SPDX-License-Identifier: Apache-2.0 */
/* See sites.h. Bytes are those of the run's peak where the ledger marked one: a program that ends
 * by an exception has freed most by its end. */
#include "report/sites.h"

#include <stdlib.h>
#include <string.h>

#include "report/place.h"

typedef struct site {
    const pl_site *entry;
    uint64_t bytes;
} site;

static uint64_t held_bytes(const pl_site *entry)
{
    int64_t held = atomic_load_explicit(&entry->held_bytes, memory_order_relaxed);
    return held > 0 ? (uint64_t)held : 0;
}

static uint64_t at_peak_bytes(const pl_site *entry)
{
    return atomic_load_explicit(&entry->at_peak_bytes, memory_order_relaxed);
}

static bool use_peak(const struct pl_ledger *ledger)
{
    uint64_t held = 0, at_peak = 0;
    for (int i = 0; i < PL_SITES; i++) {
        held = pl_add_sat_u64(held, held_bytes(&ledger->sites[i]));
        at_peak = pl_add_sat_u64(at_peak, at_peak_bytes(&ledger->sites[i]));
    }
    return at_peak > held;
}

static bool is_described(const pl_site *entry)
{
    return atomic_load_explicit(&entry->key, memory_order_acquire) != 0 &&
           (pl_json_has_frame(&entry->python) || entry->n_frames > 0);
}

/* Keeps the largest in order: sixteen places, so plain insertion. */
static int collect(const struct pl_ledger *ledger, site largest[PL_REPORT_SITES])
{
    int n = 0;
    bool peak = use_peak(ledger);
    for (int i = 0; i < PL_SITES; i++) {
        const pl_site *entry = &ledger->sites[i];
        uint64_t bytes = peak ? at_peak_bytes(entry) : held_bytes(entry);
        if (bytes == 0 || !is_described(entry))
            continue;
        int at = n < PL_REPORT_SITES ? n++ : PL_REPORT_SITES;
        for (; at > 0 && largest[at - 1].bytes < bytes; at--)
            if (at < PL_REPORT_SITES)
                largest[at] = largest[at - 1];
        if (at < PL_REPORT_SITES)
            largest[at] = (site){entry, bytes};
    }
    return n;
}

static int native_frames(const struct pl_ledger *ledger, const pl_site *entry,
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
    pl_inspect_symbols(frames, (size_t)n);
    return n;
}

static json_t *build_site(pl_json *json, const pl_snapshot *snapshot, const site *from,
                          char place[PL_FACT_PLACE_BYTES])
{
    const pl_site *entry = from->entry;
    int64_t count = atomic_load_explicit(&entry->n_held, memory_order_relaxed);
    json_t *object = json_object();
    pl_json_put(json, object, "bytes", pl_json_u64(from->bytes));
    pl_json_put(json, object, "peak_bytes",
                pl_json_u64(atomic_load_explicit(&entry->peak_bytes, memory_order_relaxed)));
    pl_json_put(json, object, "count", json_integer(count > 0 ? count : 0));
    pl_json_put(json, object, "pid",
                json_integer(atomic_load_explicit(&entry->owner_pid, memory_order_relaxed)));
    if (pl_json_has_frame(&entry->python)) {
        pl_json_put(json, object, "python", pl_json_python_frame(json, &entry->python));
        pl_place_python(&entry->python, snapshot->header.directory, place);
    } else {
        pl_native_frame frames[PL_SITE_FRAMES];
        int n = native_frames(snapshot->ledger, entry, frames);
        int picked = pl_place_pick_native(frames, n);
        if (picked >= 0)
            pl_place_native(&frames[picked], place);
        pl_json_put(json, object, "native", pl_json_native_stack(json, frames, (size_t)n));
    }
    pl_json_put_text(json, object, "place", place);
    return object;
}

json_t *pl_sites_build(pl_json *json, const pl_snapshot *snapshot, char holder[PL_FACT_PLACE_BYTES])
{
    site largest[PL_REPORT_SITES];
    int n = collect(snapshot->ledger, largest);
    json_t *array = json_array();
    holder[0] = '\0';
    for (int i = 0; i < n; i++) {
        char place[PL_FACT_PLACE_BYTES] = "";
        pl_json_add(json, array, build_site(json, snapshot, &largest[i], place));
        if (i == 0)
            memcpy(holder, place, sizeof(place));
    }
    return array;
}
