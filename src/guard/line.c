/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping the line: look, relieve, refuse.
 *
 * Small requests are too many to count. Their sum is resident memory, which can be read; the
 * question is only how often. A thread cannot grow by more than it asks for, so it may ask for a
 * fixed share of the headroom before the next look: far from the line a look is rare, near it there
 * is one for every few pages.
 *
 * Over the line, in this order:
 *   1. large requests are refused (pl_line_claim);
 *   2. Python code that grows by small objects gets a MemoryError (pl_interpreter_raise), and again
 *      after another half of the reserve;
 *   3. deep in the reserve, the small requests of the Python thread that took it are refused.
 * None of this happens while such an exception is being handled, as far as the reserve lasts: see
 * handling.c. A program without Python never meets 2 and 3. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "guard/guard.h"
#include "ledger/room.h"
#include "sys/proc.h"

/* Look again after a sixteenth of the headroom was asked for: the error of one look is then at most
 * that, and of P processes with T threads P*T times the smallest step, which the reserve covers. */
enum { LOOK_SHARE = 16 };
#define LOOK_LEAST_BYTES (256 * PL_KIB)
#define LOOK_MOST_BYTES  (64 * PL_MIB)
#define COUNTDOWN_LEAST  (32 * PL_KIB)

/* malloc_trim() walks all arenas, a few ms for a large heap: at most ten times a second and for a
 * twentieth of the time, unless this much was freed in large blocks since the last time. */
#define TRIM_INTERVAL_NS (100 * PL_NS_PER_MS)
#define TRIM_FREED_BYTES (16 * PL_MIB)

static pl_guard *const guard = &pl_guard_state;

static uint64_t charged(void)
{
    return pl_ledger_charged_bytes(guard->ledger);
}

static uint64_t line(void)
{
    return pl_ledger_limit_bytes(guard->ledger);
}

static void send_event(uint32_t kind, uint64_t bytes)
{
    pl_event event = {
        .kind = kind,
        .pid = guard->pid,
        .tid = (int32_t)syscall(SYS_gettid),
        .bytes = bytes,
    };
    pl_callsite_python(&event.where);
    pl_handling_begin();
    pl_ledger_event(guard->ledger, &event);
    pl_interpreter_refused(&event);
    atomic_fetch_add(&guard->ledger->slots[guard->owner].n_refusals, 1);
    pl_ledger_mark_refusal(guard->ledger);
    /* Nearly the peak, and measured exactly, which the supervisor's own mark is not. */
    if (charged() + charged() / 64 > atomic_load(&guard->ledger->sum.sites_peak_bytes))
        pl_ledger_mark_peak(guard->ledger);
}

/* Opens the count of a new excursion when the line is passed, and closes it below. */
static bool update_over(void)
{
    bool over = charged() > line();
    uint64_t number = atomic_load(&guard->over_number);
    if (over != (bool)(number & 1) &&
        atomic_compare_exchange_strong(&guard->over_number, &number, number + 1)) {
        atomic_store(&guard->raised_at, 0);
        atomic_store(&guard->trim_due, true);
    }
    return over;
}

/* Records a point of the timeline, and what each site holds, at each new height. The supervisor
 * samples by the clock, and on a busy machine memory may be full before its next turn. */
static void note_rise(void)
{
    uint64_t steps = charged() / pl_max_u64(line() / PL_RISES, 1);
    uint32_t reached = (uint32_t)pl_min_u64(steps, 2 * PL_RISES);
    uint32_t seen = atomic_load(&guard->ledger->sum.n_rises);
    while (reached > seen)
        if (atomic_compare_exchange_weak(&guard->ledger->sum.n_rises, &seen, reached)) {
            pl_event event = {.kind = PL_EVENT_ROSE, .pid = guard->pid, .bytes = charged()};
            pl_ledger_event(guard->ledger, &event);
            pl_ledger_mark_peak(guard->ledger);
            return;
        }
}

void pl_line_begin_give(void)
{
    atomic_fetch_add(&guard->n_gives_begun, 1);
}

void pl_line_end_give(void)
{
    atomic_fetch_add(&guard->n_gives_ended, 1);
}

/* Memory that is freed between the two readings would count as unclaimed until the next look, and
 * cause a refusal. In a program that frees all the time, the least of four readings comes close. */
static int measure(bool exactly, pl_proc_memory *ret_memory, uint64_t *ret_unclaimed)
{
    *ret_unclaimed = UINT64_MAX;
    for (int tries = 0; tries < 4; tries++) {
        uint64_t n_ended = atomic_load(&guard->n_gives_ended);
        int r = pl_proc_memory_read(0, ret_memory);
        if (r < 0)
            return r;
        uint64_t own = pl_sub_sat_u64(ret_memory->private_bytes, guard->fork_bytes);
        uint64_t unclaimed = pl_sub_sat_u64(own, pl_tracked_block_touched_bytes(exactly));
        *ret_unclaimed = pl_min_u64(*ret_unclaimed, unclaimed);
        if (atomic_load(&guard->n_gives_begun) == n_ended)
            break;
    }
    return 0;
}

static void look(bool exactly)
{
    pl_proc_memory memory;
    uint64_t unclaimed;
    if (measure(exactly, &memory, &unclaimed) < 0)
        return; /* no /proc here: claims alone keep the line */
    atomic_store(&guard->ledger->slots[guard->owner].resident_bytes, memory.resident_bytes);
    pl_ledger_measure(guard->ledger, guard->owner, unclaimed);
    note_rise();

    uint64_t step = pl_clamp_u64(pl_ledger_headroom_bytes(guard->ledger) / LOOK_SHARE,
                                 LOOK_LEAST_BYTES, LOOK_MOST_BYTES);
    atomic_store(&guard->look_at, atomic_load(&guard->spent_bytes) + step);
    update_over();
}

void pl_line_look(void)
{
    look(false);
}

void pl_line_look_exactly(void)
{
    look(true);
}

/* Makes the allocator return its unused memory. False if that was done just now. */
static bool relieve(void)
{
    uint64_t now = pl_clock_monotonic_ns();
    uint64_t last = atomic_load(&guard->trimmed_ns);
    uint64_t interval = pl_max_u64(TRIM_INTERVAL_NS, 20 * atomic_load(&guard->trim_cost_ns));
    bool due = now - last >= interval || atomic_load(&guard->freed_bytes) >= TRIM_FREED_BYTES;
    if (!due || !atomic_compare_exchange_strong(&guard->trimmed_ns, &last, now))
        return false;
    atomic_store(&guard->freed_bytes, 0);
    pl_real_trim();
    atomic_store(&guard->trim_cost_ns, pl_clock_monotonic_ns() - now);
    atomic_fetch_add(&guard->ledger->sum.n_trims, 1);
    pl_line_look();
    return true;
}

static void follow_call(void)
{
    uint32_t call = atomic_load(&guard->ledger->sum.call);
    uint32_t seen = atomic_load(&guard->call);
    if (call != seen && atomic_compare_exchange_strong(&guard->call, &seen, call))
        relieve();
}

bool pl_line_claim_if_room(uint64_t bytes, enum pl_claim_kind kind)
{
    if (pl_ledger_claim(guard->ledger, guard->owner, bytes, kind) < 0)
        return false;
    note_rise();
    return true;
}

static bool claim(uint64_t bytes)
{
    return pl_line_claim_if_room(bytes, PL_CLAIM_REFUSABLE);
}

/* Has idle tensors moved to disk, in this process and in the others. Not for a thread that holds a
 * lock which moving them takes: the mover would wait for it. */
static bool make_room(uint64_t bytes)
{
    if (pl_thread.n_held > 0 || !pl_room_ask(guard->ledger, guard->owner, bytes))
        return false;
    look(true);
    return true;
}

/* Another process may claim the room first, so this tries again, but not without end. */
enum { ROOM_TRIES = 64 };

static bool claim_in_room_made(uint64_t bytes)
{
    for (int tries = 0; tries < ROOM_TRIES && make_room(bytes); tries++)
        if (claim(bytes))
            return true;
    return false;
}

/* Makes room for memory that was not claimed: a little more than is needed, so that the next look
 * is not due at once. */
static bool make_room_below_line(void)
{
    uint64_t bytes = pl_clamp_u64(line() / 64, PL_MIB, 32 * PL_MIB);
    for (int tries = 0; tries < ROOM_TRIES && make_room(bytes); tries++)
        if (!update_over())
            return true;
    return false;
}

static bool claim_after_relief(uint64_t bytes)
{
    look(true);
    if (bytes > line())
        return false; /* no memory that can be freed would make enough room */
    if (claim(bytes))
        return true;
    pl_room_call(guard->ledger);
    atomic_store(&guard->call, atomic_load(&guard->ledger->sum.call));
    relieve();
    if (claim(bytes) || (pl_ledger_reclaim(guard->ledger) > 0 && claim(bytes)))
        return true;
    return claim_in_room_made(bytes);
}

/* Cancels an exception that is waiting for this thread: this error comes in its place. */
static bool refuse_as(uint32_t kind, uint64_t bytes)
{
    pl_interpreter_take_back();
    atomic_fetch_add(&guard->ledger->sum.n_refusals, 1);
    send_event(kind, bytes);
    errno = ENOMEM;
    return false;
}

static bool refuse(uint64_t bytes)
{
    return refuse_as(PL_EVENT_REFUSED, bytes);
}

bool pl_line_claim(uint64_t bytes, uint64_t asked_bytes)
{
    if (claim(bytes) || claim_after_relief(bytes))
        return true;
    /* A notebook's output, or a traceback: the reserve exists for these, as far as it goes. */
    if ((pl_kernel_is_at_work(0) || pl_handling_needs(bytes)) &&
        pl_ledger_claim(guard->ledger, guard->owner, bytes, PL_CLAIM_RESERVE) == 0)
        return true;
    return refuse(asked_bytes);
}

bool pl_line_room(uint64_t bytes)
{
    if (!guard->refuses || charged() <= line())
        return true;
    pl_line_look();
    if (charged() <= line())
        return true;
    relieve();
    return charged() <= line() || make_room_below_line() || pl_handling_needs(bytes) ||
           refuse(bytes);
}

void pl_line_release(uint64_t bytes)
{
    pl_ledger_release(guard->ledger, guard->owner, bytes);
    atomic_fetch_add(&guard->freed_bytes, bytes);
}

/* After an excursion over the line, memory that the program frees must return to the system, not
 * stay with the allocator. Trimming takes time: we stop when a trim below the line frees nothing
 * more. */
static void trim_after_excursion(void)
{
    const pl_ledger_slot *slot = &guard->ledger->slots[guard->owner];
    uint64_t before = atomic_load(&slot->measured_bytes);
    if (relieve() && !update_over() &&
        pl_sub_sat_u64(before, atomic_load(&slot->measured_bytes)) < PL_MIB)
        atomic_store(&guard->trim_due, false);
}

void pl_line_freed(void)
{
    if (!atomic_load_explicit(&guard->trim_due, memory_order_relaxed) || pl_thread.inside ||
        !guard->ledger)
        return;
    pl_thread.inside = true;
    int saved = errno;
    trim_after_excursion();
    errno = saved;
    pl_thread.inside = false;
}

/* OpenBLAS maps 128 MiB at its start, of which it touches 11, and when refused it asks again
 * without end. So we let a caller through that insists: a mapping counts only as it is touched. */
static bool insists(uint64_t bytes, const void *caller)
{
    enum { PATIENCE = 3 };
    static pl_atomic_u64 last_request, n_refused;
    uint64_t request = bytes ^ (uint64_t)(uintptr_t)caller << 16;
    if (atomic_exchange(&last_request, request) != request)
        atomic_store(&n_refused, 0);
    return atomic_fetch_add(&n_refused, 1) >= PATIENCE;
}

bool pl_line_fits(uint64_t bytes, const void *caller)
{
    if (!guard->refuses || guard->sparse || bytes <= line() || insists(bytes, caller))
        return true;
    return refuse(bytes);
}

static bool is_limited(int resource)
{
    struct rlimit limit;
    return syscall(SYS_prlimit64, 0, resource, NULL, &limit) == 0 &&
           limit.rlim_cur != RLIM_INFINITY;
}

/* A program may try smaller and smaller pieces, or go on asking: the first few are enough for the
 * record. */
void pl_line_denied(uint64_t bytes)
{
    enum { MOST_REPORTED = 8 };
    static pl_atomic_u64 n_reported;
    if (atomic_fetch_add(&n_reported, 1) >= MOST_REPORTED)
        return;
    pl_event event = {.kind = PL_EVENT_DENIED,
                      .pid = guard->pid,
                      .tid = (int32_t)syscall(SYS_gettid),
                      .bytes = bytes};
    if (is_limited(RLIMIT_AS))
        event.detail |= PL_DENIED_ADDRESS;
    if (is_limited(RLIMIT_DATA))
        event.detail |= PL_DENIED_DATA;
    pl_callsite_python(&event.where);
    pl_ledger_event(guard->ledger, &event);
}

void pl_line_raised(void)
{
    atomic_fetch_add(&guard->ledger->sum.n_raised, 1);
    send_event(PL_EVENT_RAISED, pl_thread.over_bytes);
}

static void start_thread(void)
{
    pl_thread.ready = true;
    pl_thread.random = (uint32_t)syscall(SYS_gettid) * 2654435761u | 1;
    pl_crash_install_thread(0);
}

/* The distance between samples, and between looks: at most PL_COUNTDOWN_BYTES, less near the
 * line. */
static uint64_t mean_countdown(void)
{
    return pl_clamp_u64(pl_ledger_headroom_bytes(guard->ledger) / 32, COUNTDOWN_LEAST,
                        PL_COUNTDOWN_BYTES);
}

/* Half to one and a half times the mean, so that a program's rhythm cannot coincide with ours. */
static uint64_t draw_distance(uint64_t mean)
{
    pl_thread.random ^= pl_thread.random << 13;
    pl_thread.random ^= pl_thread.random >> 17;
    pl_thread.random ^= pl_thread.random << 5;
    return mean / 2 + pl_thread.random % (uint32_t)mean;
}

/* Starts the countdown to the next sample `passed` bytes before the end of this request: starting
 * it at the end would put samples further apart than their mean, by half a request. Returns what
 * the samples represent that fall into those bytes. */
static uint64_t start_countdown(uint64_t passed)
{
    uint64_t mean = mean_countdown(), weight = 0, distance = draw_distance(mean);
    for (; distance <= passed; distance = draw_distance(mean)) {
        passed -= distance;
        weight += mean;
    }
    pl_thread.mean = mean;
    pl_thread.granted = pl_thread.countdown = distance - passed;
    return weight;
}

/* Returns what this request adds to the count, and its weight as a sample. A request as large as
 * the distance between samples is always sampled with its own size, apart from the countdown; a
 * smaller one that runs the countdown out has the mean as its weight. */
static uint64_t spend(uint64_t bytes, uint64_t *ret_weight)
{
    if (pl_thread.granted && bytes >= pl_thread.mean) {
        *ret_weight = bytes;
        return bytes;
    }
    uint64_t spent = pl_thread.granted - pl_thread.countdown + bytes;
    *ret_weight = 0;
    if (!pl_thread.granted) {
        (void)start_countdown(0);
    } else {
        uint64_t weight = pl_thread.mean;
        *ret_weight = weight + start_countdown(pl_sub_sat_u64(bytes, pl_thread.countdown));
    }
    return spent;
}

/* Reports each excursion once, even if no request is refused. */
static void report_over(uint64_t number)
{
    uint64_t reported = atomic_load(&guard->reported_number);
    if (reported != number &&
        atomic_compare_exchange_strong(&guard->reported_number, &reported, number)) {
        pl_event event = {.kind = PL_EVENT_OVER, .pid = guard->pid, .bytes = charged()};
        memcpy(event.where.function, guard->ledger->slots[guard->owner].name,
               sizeof guard->ledger->slots[guard->owner].name);
        pl_ledger_event(guard->ledger, &event);
    }
}

/* Without an arena, pymalloc asks malloc() for the single object, and for an arena again with the
 * next one: list(range(n)) would pass the line without end. This sends that malloc() to the slow
 * path, where it is refused, however much of the countdown is left. */
static void await_fallback(void)
{
    pl_thread.is_arena_refused = true;
    pl_thread.set_aside = pl_thread.countdown;
    pl_thread.countdown = 0;
}

/* Is it the malloc() that await_fallback() waits for? */
static bool is_fallback(uint64_t bytes, enum pl_small_kind kind)
{
    enum { PYMALLOC_MOST = 512, DEBUG_MORE = 64 }; /* Objects/obmalloc.c; with PYTHONMALLOC=debug */
    if (!pl_thread.is_arena_refused)
        return false;
    pl_thread.is_arena_refused = false;
    pl_thread.countdown += pl_thread.set_aside;
    return kind == PL_SMALL_PLAIN && bytes <= PYMALLOC_MOST + DEBUG_MORE;
}

static bool refuse_small(uint64_t spent)
{
    pl_thread.refused_bytes = pl_thread.over_bytes;
    pl_thread.refused_code = pl_callsite_code();
    return refuse_as(PL_EVENT_REFUSED_SMALL, spent);
}

/* mimalloc does not give up at once: it collects free memory and tries again, and its caller may
 * get a few more objects before it fails. */
static bool is_asked_again(void)
{
    return pl_thread.refused_at != 0 && pl_thread.refused_code != 0 &&
           pl_thread.refused_code == pl_callsite_code();
}

/* A thread is over the line by small requests. False: refuse this one. */
static bool over_the_line(uint64_t spent, enum pl_small_kind kind)
{
    uint64_t number = atomic_load(&guard->over_number);
    if (pl_thread.over_number != number) {
        pl_thread.over_number = number;
        pl_thread.over_bytes = pl_thread.refused_bytes = 0;
    }
    if (pl_kernel_is_at_work(spent))
        return true;
    pl_thread.over_bytes += spent;
    if (!guard->refuses)
        return true;
    if (!pl_interpreter_present()) {
        report_over(number);
        return true;
    }

    uint64_t now = charged();
    uint64_t reserve = pl_ledger_reserve_bytes(guard->ledger);
    uint64_t raised_at = atomic_load(&guard->raised_at);
    bool of_mimalloc = kind == PL_SMALL_MAPPING && pl_interpreter_is_free_threaded();
    bool due = (raised_at == 0 || now > raised_at + reserve / 2) && !pl_handling_is_under_way();
    if (due && raised_at == 0) {
        look(true); /* bytes touched since the last walk count twice until the next */
        if (!update_over())
            return true;
        now = charged();
    }
    if (due && atomic_compare_exchange_strong(&guard->raised_at, &raised_at, now)) {
        if (pl_interpreter_raise())
            return true;
        if (of_mimalloc)
            return refuse_small(spent); /* replaces the exception */
    }
    if (of_mimalloc && is_asked_again())
        return refuse_small(spent);
    /* Refuses the thread that took more than a quarter of the reserve; the others go on. The last
     * quarter of the reserve is for handling the exception, so the thread is refused again only
     * after another eighth. */
    uint64_t mark = line() + reserve - reserve / 4;
    if (kind != PL_SMALL_FOREIGN && now > mark && pl_interpreter_thread() &&
        pl_thread.over_bytes > pl_thread.refused_bytes + reserve / 8 &&
        pl_thread.over_bytes > reserve / 4 && !pl_handling_is_spared()) {
        if (kind == PL_SMALL_MAPPING)
            await_fallback();
        return refuse_small(spent);
    }
    return true;
}

bool pl_line_small(uint64_t bytes, enum pl_small_kind kind, uint64_t *ret_weight)
{
    if (!pl_thread.ready)
        start_thread();
    if (is_fallback(bytes, kind)) {
        *ret_weight = 0;
        return false;
    }
    uint64_t spent = spend(bytes, ret_weight);
    uint64_t total = atomic_fetch_add(&guard->spent_bytes, spent) + spent;
    follow_call();
    if (pl_thread.refused_at)
        pl_handling_look();
    if (total >= atomic_load(&guard->look_at))
        pl_line_look();
    bool granted = true;
    if (update_over()) {
        relieve();
        if (update_over() && pl_thread.n_held == 0 && !make_room_below_line())
            granted = over_the_line(spent, kind);
    } else if (atomic_load(&guard->trim_due)) {
        trim_after_excursion();
    }
    return granted;
}
