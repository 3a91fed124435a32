/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the ledger other than the sum: events, the timeline, call sites, modules. */
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/ledger.h"

/* Entries are copied word by word: a reader may look while a writer writes, and must detect that
 * afterwards. Release and acquire on each word ensure it: a reader that saw a new word also sees
 * that the entry is, or was, being written. On x86-64 both are plain moves. */
enum { EVENT_WORDS = sizeof(pl_event) / sizeof(uint64_t) };

static_assert(offsetof(pl_event, sequence) == 0, "word 0 is the sequence");

static void write_entry(pl_event *entry, const pl_event *event)
{
    uint64_t words[EVENT_WORDS];
    memcpy(words, event, sizeof words);
    for (int i = 1; i < EVENT_WORDS; i++)
        __atomic_store_n((uint64_t *)entry + i, words[i], __ATOMIC_RELEASE);
}

static void read_entry(const pl_event *entry, pl_event *ret_event)
{
    uint64_t words[EVENT_WORDS];
    for (int i = 0; i < EVENT_WORDS; i++)
        words[i] = __atomic_load_n((const uint64_t *)entry + i, __ATOMIC_ACQUIRE);
    memcpy(ret_event, words, sizeof words);
}

#define BEING_WRITTEN UINT64_MAX

/* An entry that is still being written, or already has something newer, is skipped, and the next
 * number taken. Each writer that died inside an entry costs one of PL_EVENTS permanently; after
 * eight such in a row the event is lost. */
enum { EVENT_TRIES = 8 };

static pl_event *take_entry(pl_ledger *ledger, uint64_t *ret_number)
{
    for (int i = 0; i < EVENT_TRIES; i++) {
        uint64_t number = atomic_fetch_add(&ledger->sum.next_event, 1);
        pl_event *entry = &ledger->events[number % PL_EVENTS];
        uint64_t seen = atomic_load(&entry->sequence);
        if (seen > number ||
            !atomic_compare_exchange_strong(&entry->sequence, &seen, BEING_WRITTEN))
            continue;
        *ret_number = number;
        return entry;
    }
    return NULL;
}

void pl_ledger_event(pl_ledger *ledger, pl_event *event)
{
    event->time_ns = pl_clock_monotonic_ns();
    event->charged_bytes = pl_ledger_charged_bytes(ledger);
    event->limit_bytes = pl_ledger_limit_bytes(ledger);
    event->cell_number = atomic_load(&ledger->sum.cell_number);

    uint64_t number;
    pl_event *entry = take_entry(ledger, &number);
    if (!entry)
        return;
    write_entry(entry, event);
    atomic_store(&entry->sequence, number + 1);
}

bool pl_ledger_event_read(const pl_ledger *ledger, uint64_t number, pl_event *ret_event)
{
    const pl_event *entry = &ledger->events[number % PL_EVENTS];
    if (number >= BEING_WRITTEN - 1 || atomic_load(&entry->sequence) != number + 1)
        return false; /* the last two numbers would look like entries without an event */
    pl_event event;
    read_entry(entry, &event);
    if (atomic_load(&entry->sequence) != number + 1)
        return false;
    *ret_event = event;
    return true;
}

void pl_ledger_mark(pl_ledger *ledger, const char *text)
{
    PL_NULL_DOES_NOTHING(ledger);
    PL_NULL_DOES_NOTHING(text);
    pl_event event = {.kind = PL_EVENT_MARK, .pid = getpid(), .tid = (int32_t)syscall(SYS_gettid)};
    strncpy(event.where.function, text, sizeof event.where.function - 1);
    pl_ledger_event(ledger, &event);
}

/* A timeline of fixed size for a run of any length: when it is full, every second sample goes. */
static uint64_t halve_samples(pl_ledger *ledger)
{
    uint64_t n = PL_SAMPLES / 2;
    for (uint64_t i = 0; i < n; i++)
        ledger->samples[i] = ledger->samples[2 * i];
    uint64_t step = atomic_load(&ledger->sum.sample_step_ns);
    atomic_store(&ledger->sum.sample_step_ns, step ? 2 * step : 20 * PL_NS_PER_MS);
    atomic_store(&ledger->sum.n_samples, n);
    return n;
}

/* The last sample is always the newest, however long the step has grown: the moments before a death
 * matter most. It stays in place once it is a step away from the one before it. */
void pl_ledger_sample(pl_ledger *ledger, const pl_memory_sample *sample)
{
    uint64_t n = pl_min_u64(atomic_load(&ledger->sum.n_samples), PL_SAMPLES);
    uint64_t step = atomic_load(&ledger->sum.sample_step_ns);
    bool replace = n > 1 && ledger->samples[n - 1].time_ns - ledger->samples[n - 2].time_ns < step;
    if (replace)
        n--;
    else if (n == PL_SAMPLES)
        n = halve_samples(ledger);
    ledger->samples[n] = *sample;
    atomic_store(&ledger->sum.n_samples, n + 1);
}

/* Far enough to find a place in a table that is nearly full, near enough to stay within a few
 * cache lines of headers. */
enum { SITE_PROBES = 32 };

static pl_site *find_site(pl_ledger *ledger, uint64_t key, pid_t pid)
{
    for (uint64_t i = 0; i < SITE_PROBES; i++) {
        pl_site *site = &ledger->sites[(key + i) % PL_SITES];
        if (atomic_load(&site->key) == key && atomic_load(&site->owner_pid) == (uint32_t)pid)
            return site;
    }
    return NULL;
}

/* Takes a place that is free, or whose process is dead and remembered only for the peak. */
static bool take_site(pl_site *site, pid_t pid, bool from_the_dead)
{
    uint32_t owner = atomic_load(&site->owner_pid);
    if (owner != 0 && !(from_the_dead && atomic_load(&site->key) == PL_SITE_DEAD))
        return false;
    return atomic_compare_exchange_strong(&site->owner_pid, &owner, (uint32_t)pid);
}

static pl_site *new_site(pl_ledger *ledger, uint64_t key, pid_t pid, bool from_the_dead)
{
    for (uint64_t i = 0; i < SITE_PROBES; i++) {
        pl_site *site = &ledger->sites[(key + i) % PL_SITES];
        if (!take_site(site, pid, from_the_dead))
            continue;
        atomic_store(&site->key, 0);
        site->n_frames = 0;
        memset(&site->python, 0, sizeof site->python);
        atomic_store(&site->held_bytes, 0);
        atomic_store(&site->n_held, 0);
        atomic_store(&site->peak_bytes, 0);
        atomic_store(&site->at_peak_bytes, 0);
        atomic_store(&site->unclaimed_bytes, 0);
        atomic_store(&site->untouched_bytes, 0);
        atomic_store(&site->untouched_at_peak_bytes, 0);
        atomic_store(&site->at_refusal_bytes, 0);
        atomic_store(&site->untouched_at_refusal_bytes, 0);
        atomic_store(&site->run_bytes[0], 0);
        atomic_store(&site->run_bytes[1], 0);
        atomic_store(&ledger->site_cells[site - ledger->sites], atomic_load(&ledger->sum.cell));
        atomic_store(&site->key, key);
        return site;
    }
    return NULL;
}

pl_site *pl_ledger_site(pl_ledger *ledger, uint64_t key, pid_t pid, bool *ret_is_new)
{
    key = pl_max_u64(key, PL_SITE_DEAD + 1);
    pl_site *site = find_site(ledger, key, pid);
    *ret_is_new = false;
    if (site)
        return site;
    site = new_site(ledger, key, pid, false);
    if (!site)
        site = new_site(ledger, key, pid, true);
    *ret_is_new = site != NULL;
    return site;
}

void pl_site_add(pl_site *site, int64_t bytes, int64_t n_blocks)
{
    int64_t held = atomic_fetch_add(&site->held_bytes, bytes) + bytes;
    atomic_fetch_add(&site->n_held, n_blocks);
    if (held > 0)
        pl_peak_raise(&site->peak_bytes, (uint64_t)held);
}

void pl_site_add_unclaimed(pl_site *site, int64_t bytes, int64_t n_blocks)
{
    atomic_fetch_add(&site->unclaimed_bytes, bytes);
    pl_site_add(site, bytes, n_blocks);
}

static uint64_t unclaimed_bytes(const pl_site *site)
{
    int64_t bytes = atomic_load_explicit(&site->unclaimed_bytes, memory_order_relaxed);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

static pl_unclaimed find_unclaimed(const pl_ledger *ledger, uint32_t pid)
{
    pl_unclaimed found = {.pid = pid, .measured_bytes = UINT64_MAX}; /* without a slot: not known */
    for (int i = 0; i < pl_ledger_n_slots(ledger); i++)
        if (atomic_load_explicit(&ledger->slots[i].pid, memory_order_relaxed) == pid) {
            found.measured_bytes = atomic_load(&ledger->slots[i].measured_bytes);
            break;
        }
    for (int i = 0; i < PL_SITES; i++)
        if (atomic_load_explicit(&ledger->sites[i].owner_pid, memory_order_relaxed) == pid)
            found.estimated_bytes =
                pl_add_sat_u64(found.estimated_bytes, unclaimed_bytes(&ledger->sites[i]));
    return found;
}

uint64_t pl_site_held_bytes(const pl_ledger *ledger, const pl_site *site, pl_unclaimed *unclaimed)
{
    int64_t held = atomic_load(&site->held_bytes);
    uint64_t bytes = held > 0 ? (uint64_t)held : 0;
    uint64_t estimate = pl_min_u64(unclaimed_bytes(site), bytes);
    if (estimate == 0)
        return bytes;
    uint32_t pid = atomic_load(&site->owner_pid);
    if (unclaimed->pid != pid)
        *unclaimed = find_unclaimed(ledger, pid);
    if (unclaimed->estimated_bytes <= unclaimed->measured_bytes)
        return bytes;
    double share = (double)unclaimed->measured_bytes / (double)unclaimed->estimated_bytes;
    return bytes - estimate + pl_min_u64((uint64_t)((double)estimate * share), estimate);
}

/* Drops the site of a dead process that had no part in the remembered peak or refusal. */
static void drop_if_dead(pl_site *site)
{
    uint32_t owner = atomic_load(&site->owner_pid);
    if (atomic_load(&site->key) == PL_SITE_DEAD && atomic_load(&site->at_peak_bytes) == 0 &&
        atomic_load(&site->at_refusal_bytes) == 0)
        atomic_compare_exchange_strong(&site->owner_pid, &owner, 0);
}

static uint64_t untouched_bytes(const pl_site *site)
{
    int64_t bytes = atomic_load(&site->untouched_bytes);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

void pl_ledger_mark_peak(pl_ledger *ledger)
{
    pl_unclaimed unclaimed = {0};
    atomic_store(&ledger->sum.sites_peak_bytes, pl_ledger_charged_bytes(ledger));
    for (int i = 0; i < PL_SITES; i++) {
        pl_site *site = &ledger->sites[i];
        if (atomic_load(&site->owner_pid) == 0)
            continue;
        atomic_store(&site->at_peak_bytes, pl_site_held_bytes(ledger, site, &unclaimed));
        atomic_store(&site->untouched_at_peak_bytes, untouched_bytes(site));
        drop_if_dead(site);
    }
}

void pl_ledger_mark_refusal(pl_ledger *ledger)
{
    pl_unclaimed unclaimed = {0};
    atomic_store(&ledger->sum.sites_refusal_bytes, pl_ledger_charged_bytes(ledger));
    for (int i = 0; i < PL_SITES; i++) {
        pl_site *site = &ledger->sites[i];
        if (atomic_load(&site->owner_pid) == 0)
            continue;
        atomic_store(&site->at_refusal_bytes, pl_site_held_bytes(ledger, site, &unclaimed));
        atomic_store(&site->untouched_at_refusal_bytes, untouched_bytes(site));
        drop_if_dead(site);
    }
}

void pl_ledger_forget_sites(pl_ledger *ledger, pid_t pid)
{
    for (int i = 0; i < PL_SITES; i++) {
        pl_site *site = &ledger->sites[i];
        if (atomic_load(&site->owner_pid) != (uint32_t)pid)
            continue;
        atomic_store(&site->key, PL_SITE_DEAD);
        atomic_store(&site->held_bytes, 0);
        atomic_store(&site->unclaimed_bytes, 0);
        atomic_store(&site->untouched_bytes, 0);
        atomic_store(&site->n_held, 0);
        drop_if_dead(site);
    }
}

static uint64_t hash_path(const char *path)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *path; path++)
        hash = (hash ^ (uint8_t)*path) * UINT64_C(1099511628211);
    return hash < 2 ? 2 : hash; /* 0 and 1 are taken: free, being written */
}

uint32_t pl_ledger_module(pl_ledger *ledger, const char *path)
{
    uint64_t key = hash_path(path);
    for (uint32_t i = 0; i < PL_MODULES; i++) {
        uint32_t index = (uint32_t)((key + i) % PL_MODULES);
        pl_module *module = &ledger->modules[index];
        uint64_t seen = 0;
        if (atomic_compare_exchange_strong(&module->key, &seen, 1)) {
            strncpy(module->path, path, sizeof module->path - 1);
            atomic_store(&module->key, key);
            return index;
        }
        if (seen == key)
            return index;
    }
    return PL_MODULES;
}
