/* SPDX-License-Identifier: Apache-2.0 */
/* See room.h. */
#include "ledger/room.h"

#include "base/clock.h"
#include "sys/futex.h"
#include "sys/proc.h"

/* A waiting process checks this often whether those that do not answer are still alive. */
#define LOOK_NS (50 * PL_NS_PER_MS)

/* The time to wait without any progress. A mover reports every 16 MiB that it writes, for which a
 * busy disk may take a second or two. */
#define PATIENCE_NS (5 * PL_NS_PER_SEC)

/* The time to wait in all, however much others free and take meanwhile. */
#define LONGEST_NS (120 * PL_NS_PER_SEC)

/* A process that could not move anything is not asked again for this long. */
#define STUCK_NS PL_NS_PER_SEC

bool pl_room_is_own(pl_owner owner)
{
    return owner >= 0 && owner < PL_ROOMS - 1;
}

/* In the last one, which is shared, only wanted_bytes counts. A process killed while it waits
 * leaves its bytes there: others then move tensors out a little sooner. */
static pl_ledger_room *room_of(pl_ledger *ledger, pl_owner owner)
{
    return &ledger->rooms[pl_room_is_own(owner) ? owner : PL_ROOMS - 1];
}

static bool is_before(uint32_t call, uint32_t other)
{
    return (int32_t)(call - other) < 0; /* they wrap around */
}

static uint32_t n_rooms(const pl_ledger *ledger)
{
    uint32_t n = atomic_load(&ledger->sum.n_rooms);
    return n < PL_ROOMS ? n : PL_ROOMS;
}

static void use_room(pl_ledger *ledger, pl_owner owner)
{
    uint32_t used = atomic_load_explicit(&ledger->sum.n_rooms, memory_order_relaxed);
    while (used <= (uint32_t)owner &&
           !atomic_compare_exchange_weak(&ledger->sum.n_rooms, &used, (uint32_t)owner + 1))
        ;
}

static bool would_answer(const pl_ledger_room *room, uint64_t now_ns)
{
    uint32_t missed = atomic_load(&room->missed);
    uint64_t idle = atomic_load(&room->idle_bytes);
    return idle > 0 && idle <= INT64_MAX && now_ns >= atomic_load(&room->stuck_until_ns) &&
           (missed == 0 || !is_before(atomic_load(&room->answered), missed));
}

uint64_t pl_room_idle_bytes(const pl_ledger *ledger)
{
    uint64_t bytes = 0, now_ns = pl_clock_monotonic_ns();
    for (uint32_t i = 0; i < n_rooms(ledger); i++)
        if (would_answer(&ledger->rooms[i], now_ns))
            bytes = pl_add_sat_u64(bytes, atomic_load(&ledger->rooms[i].idle_bytes));
    return bytes;
}

/* ---- a process that is about to be refused ---- */

/* Is there a process that still has to answer the call? */
static bool is_awaited(const pl_ledger *ledger, uint32_t call)
{
    uint64_t now_ns = pl_clock_monotonic_ns();
    for (uint32_t i = 0; i < n_rooms(ledger); i++) {
        const pl_ledger_room *room = &ledger->rooms[i];
        if (would_answer(room, now_ns) && is_before(atomic_load(&room->answered), call))
            return true;
    }
    return false;
}

static bool can_answer(const pl_ledger_slot *slot)
{
    pl_proc_stat stat;
    if (pl_proc_stat_read((pid_t)atomic_load(&slot->pid), &stat) < 0)
        return false;
    return stat.state != 'T' && stat.state != 't' && stat.state != 'Z' && stat.state != 'X';
}

/* Gives up on the processes that have not answered: the stopped ones, or all of them. */
static void give_up_on(pl_ledger *ledger, uint32_t call, bool all)
{
    for (uint32_t i = 0; i < n_rooms(ledger); i++) {
        pl_ledger_room *room = &ledger->rooms[i];
        if (atomic_load(&room->idle_bytes) > 0 && is_before(atomic_load(&room->answered), call) &&
            (all || !can_answer(&ledger->slots[i])))
            atomic_store(&room->missed, call);
    }
}

static void wait_for_answers(pl_ledger *ledger, uint32_t call, uint64_t bytes)
{
    uint64_t begun_ns = pl_clock_monotonic_ns(), moved_ns = begun_ns;
    for (;;) {
        uint32_t n_moves = atomic_load(&ledger->sum.n_moves);
        if (pl_ledger_headroom_bytes(ledger) >= bytes || !is_awaited(ledger, call))
            return;
        pl_futex_wait(&ledger->sum.n_moves, n_moves, LOOK_NS);
        uint64_t now_ns = pl_clock_monotonic_ns();
        if (atomic_load(&ledger->sum.n_moves) != n_moves)
            moved_ns = now_ns;
        else
            give_up_on(ledger, call, now_ns - moved_ns >= PATIENCE_NS);
        if (now_ns - begun_ns >= LONGEST_NS)
            return;
    }
}

/* Skips 0, which is not a call. */
static uint32_t raise_call(pl_ledger *ledger)
{
    uint32_t call = atomic_fetch_add(&ledger->sum.call, 1) + 1;
    if (call == 0)
        call = atomic_fetch_add(&ledger->sum.call, 1) + 1;
    pl_futex_wake_all(&ledger->sum.call);
    return call;
}

void pl_room_call(pl_ledger *ledger)
{
    (void)raise_call(ledger);
}

bool pl_room_ask(pl_ledger *ledger, pl_owner owner, uint64_t bytes)
{
    if (pl_room_idle_bytes(ledger) == 0)
        return false;
    pl_ledger_room *own = room_of(ledger, owner);
    use_room(ledger, (pl_owner)(own - ledger->rooms));
    atomic_fetch_add(&own->wanted_bytes, bytes);
    wait_for_answers(ledger, raise_call(ledger), bytes);
    atomic_fetch_sub(&own->wanted_bytes, bytes);
    return true;
}

/* ---- movers ---- */

void pl_room_add_idle(pl_ledger *ledger, pl_owner owner, int64_t bytes)
{
    use_room(ledger, owner);
    atomic_fetch_add(&ledger->rooms[owner].idle_bytes, (uint64_t)bytes);
}

uint32_t pl_room_wait_for_call(pl_ledger *ledger, uint32_t seen)
{
    uint32_t call;
    while ((call = atomic_load(&ledger->sum.call)) == seen)
        pl_futex_wait(&ledger->sum.call, seen, 0);
    return call;
}

uint64_t pl_room_missing_bytes(const pl_ledger *ledger)
{
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < n_rooms(ledger); i++)
        wanted = pl_add_sat_u64(wanted, atomic_load(&ledger->rooms[i].wanted_bytes));
    uint64_t after = pl_add_sat_u64(pl_ledger_charged_bytes(ledger), wanted);
    return pl_sub_sat_u64(after, pl_ledger_limit_bytes(ledger));
}

void pl_room_tell_progress(pl_ledger *ledger)
{
    atomic_fetch_add(&ledger->sum.n_moves, 1);
    pl_futex_wake_all(&ledger->sum.n_moves);
}

void pl_room_answer(pl_ledger *ledger, pl_owner owner, uint32_t call, bool is_stuck)
{
    pl_ledger_room *room = &ledger->rooms[owner];
    atomic_store(&room->stuck_until_ns, is_stuck ? pl_clock_monotonic_ns() + STUCK_NS : 0);
    atomic_store(&room->answered, call);
    pl_room_tell_progress(ledger);
}

void pl_room_empty(pl_ledger *ledger, const pl_ledger_slot *slot)
{
    pl_owner owner = (pl_owner)(slot - ledger->slots);
    if (!pl_room_is_own(owner))
        return;
    pl_ledger_room *room = &ledger->rooms[owner];
    atomic_store(&room->idle_bytes, 0);
    atomic_store(&room->wanted_bytes, 0);
    atomic_store(&room->stuck_until_ns, 0);
    atomic_store(&room->answered, 0);
    atomic_store(&room->missed, 0);
}
