/* SPDX-License-Identifier: Apache-2.0 */
/* See cell.h. The bytes that a cell holds are not stored: they are the sum over its sites, computed
 * when a cell ends (8 KiB of numbers, and the few that match), so that no second account can
 * disagree with the first. */
#include "ledger/cell.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static uint64_t hash(const char *text)
{
    uint64_t sum = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *text; text++)
        sum = (sum ^ (uint8_t)*text) * UINT64_C(1099511628211);
    return sum ? sum : 1;
}

/* Frames keep the tail of a long name, in whole characters: see pl_python_frame. */
static uint64_t hash_file(const char *file)
{
    size_t room = sizeof((pl_python_frame *)NULL)->file - 1;
    size_t n = strlen(file);
    if (n > room) {
        file += n - room;
        while (((uint8_t)*file & 0xc0) == 0x80)
            file++;
    }
    return hash(file);
}

/* If the kernel of this run died and was replaced, the old one begins no more cells. */
static bool is_kernel(pl_ledger *ledger)
{
    uint32_t own = (uint32_t)getpid(), kernel = 0;
    if (atomic_compare_exchange_strong(&ledger->sum.kernel_pid, &kernel, own) || kernel == own)
        return true;
    return kill((pid_t)kernel, 0) < 0 && errno == ESRCH &&
           atomic_compare_exchange_strong(&ledger->sum.kernel_pid, &kernel, own);
}

static pl_cell *running_cell(pl_ledger *ledger)
{
    uint32_t place = atomic_load(&ledger->sum.cell);
    return place >= 1 && place <= PL_CELLS ? &ledger->cells[place - 1] : NULL;
}

static void disown_sites(pl_ledger *ledger, uint32_t place)
{
    for (int i = 0; i < PL_SITES; i++)
        if (atomic_load(&ledger->site_cells[i]) == place + 1)
            atomic_store(&ledger->site_cells[i], 0);
}

const char *pl_cell_kept_id(const char *id)
{
    size_t n = strlen(id), room = sizeof((pl_cell *)NULL)->id - 1;
    if (n <= room)
        return id;
    id += n - room;
    while (((uint8_t)*id & 0xc0) == 0x80) /* in the middle of a character */
        id++;
    return id;
}

static void describe(pl_cell *cell, uint64_t key, const char *id)
{
    memset(cell, 0, sizeof *cell);
    strncpy(cell->id, pl_cell_kept_id(id), sizeof cell->id - 1);
    atomic_store(&cell->key, key);
}

/* Finds the cell with this id, or gives it a free place, or that of the cell run longest ago. */
static pl_cell *take_cell(pl_ledger *ledger, const char *id)
{
    uint64_t key = hash(id);
    pl_cell *oldest = NULL;
    for (uint64_t i = 0; i < PL_CELLS; i++) {
        pl_cell *cell = &ledger->cells[(key + i) % PL_CELLS];
        uint64_t seen = atomic_load(&cell->key);
        if (seen == key)
            return cell;
        if (seen == 0) {
            describe(cell, key, id);
            return cell;
        }
        if (!oldest || atomic_load(&cell->started_ns) < atomic_load(&oldest->started_ns))
            oldest = cell;
    }
    disown_sites(ledger, (uint32_t)(oldest - ledger->cells));
    describe(oldest, key, id);
    return oldest;
}

int pl_cell_begin(pl_ledger *ledger, const char *id, uint32_t number)
{
    pl_cell_run unended;
    if (!is_kernel(ledger))
        return -EBUSY;
    if (pl_cell_end(ledger, &unended) < 0)
        unended.number = 0; /* normal: none ran */
    pl_cell *cell = take_cell(ledger, id);
    uint64_t charged = pl_ledger_charged_bytes(ledger);
    atomic_store(&cell->number, number);
    atomic_fetch_add(&cell->n_runs, 1);
    atomic_store(&cell->before_bytes, charged);
    atomic_store(&cell->after_bytes, 0);
    atomic_store(&cell->peak_bytes, 0);
    atomic_store(&cell->ended_ns, 0);
    atomic_store(&cell->started_ns, pl_clock_monotonic_ns());
    atomic_store(&ledger->sum.cell_peak_bytes, charged);
    atomic_store(&ledger->sum.cell_number, number);
    atomic_store(&ledger->sum.cell, (uint32_t)(cell - ledger->cells) + 1);
    return 0;
}

enum { FILE_PROBES = 16 };

/* Finds the place of a file's name, or a free one, or that of the cell run longest ago. */
static pl_cell_file *take_file(pl_ledger *ledger, uint64_t key)
{
    pl_cell_file *oldest = NULL;
    for (uint64_t i = 0; i < FILE_PROBES; i++) {
        pl_cell_file *file = &ledger->cell_files[(key + i) % PL_CELL_FILES];
        uint64_t seen = atomic_load(&file->key);
        if (seen == key || seen == 0)
            return file;
        if (!oldest || atomic_load(&file->number) < atomic_load(&oldest->number))
            oldest = file;
    }
    return oldest;
}

void pl_cell_set_file(pl_ledger *ledger, const char *file)
{
    const pl_cell *cell = running_cell(ledger);
    if (!cell)
        return;
    uint64_t key = hash_file(file);
    pl_cell_file *place = take_file(ledger, key);
    if (atomic_load(&place->key) != key)
        atomic_store(&place->key, 0); /* a stale name must not lead to our number */
    atomic_store(&place->number, atomic_load(&cell->number));
    atomic_store(&place->key, key);
}

/* Adds up what the cell's sites hold; each site remembers its part, to compare the next run
 * with. */
static uint64_t settle_sites(pl_ledger *ledger, uint32_t place)
{
    uint64_t sum = 0;
    pl_unclaimed unclaimed = {0};
    for (int i = 0; i < PL_SITES; i++) {
        pl_site *site = &ledger->sites[i];
        if (atomic_load_explicit(&ledger->site_cells[i], memory_order_relaxed) != place + 1)
            continue;
        uint64_t held = pl_site_held_bytes(ledger, site, &unclaimed);
        atomic_store(&site->run_bytes[1], atomic_load(&site->run_bytes[0]));
        atomic_store(&site->run_bytes[0], (int64_t)held);
        sum = pl_add_sat_u64(sum, held);
    }
    return sum;
}

int pl_cell_end(pl_ledger *ledger, pl_cell_run *ret_run)
{
    pl_cell *cell = running_cell(ledger);
    if (!cell)
        return -ENOENT;
    uint32_t n_runs = atomic_load(&cell->n_runs);
    uint64_t held = settle_sites(ledger, (uint32_t)(cell - ledger->cells));
    uint64_t before = n_runs > 1 ? atomic_load(&cell->held_bytes[(n_runs - 1) % PL_CELL_RUNS]) : 0;
    bool grew = n_runs > 1 && held >= before + PL_CELL_GROWTH_BYTES;
    uint64_t charged = pl_ledger_charged_bytes(ledger);
    uint64_t peak = pl_max_u64(charged, atomic_load(&ledger->sum.cell_peak_bytes));

    atomic_store(&cell->held_bytes[n_runs % PL_CELL_RUNS], held);
    atomic_store(&cell->n_growing, grew ? atomic_load(&cell->n_growing) + 1 : 0);
    atomic_store(&cell->after_bytes, charged);
    atomic_store(&cell->peak_bytes, peak);
    pl_peak_raise(&cell->highest_bytes, peak);
    atomic_store(&cell->ended_ns, pl_clock_monotonic_ns());
    atomic_store(&ledger->sum.cell, 0);
    atomic_store(&ledger->sum.cell_number, 0);
    *ret_run = (pl_cell_run){
        .number = atomic_load(&cell->number),
        .n_runs = n_runs,
        .n_growing = atomic_load(&cell->n_growing),
        .before_bytes = atomic_load(&cell->before_bytes),
        .after_bytes = charged,
        .peak_bytes = peak,
        .held_bytes = held,
        .growth_bytes = (int64_t)(held - before),
    };
    return 0;
}

uint32_t pl_cell_number_of(const pl_ledger *ledger, const char *file)
{
    uint64_t key = hash_file(file);
    for (uint64_t i = 0; i < FILE_PROBES; i++) {
        const pl_cell_file *place = &ledger->cell_files[(key + i) % PL_CELL_FILES];
        if (atomic_load(&place->key) == key)
            return atomic_load(&place->number);
    }
    return 0;
}

uint64_t pl_cell_held_bytes(const pl_ledger *ledger, uint32_t place)
{
    uint64_t sum = 0;
    pl_unclaimed unclaimed = {0};
    for (int i = 0; i < PL_SITES; i++)
        if (atomic_load(&ledger->site_cells[i]) == place + 1)
            sum = pl_add_sat_u64(sum, pl_site_held_bytes(ledger, &ledger->sites[i], &unclaimed));
    return sum;
}
