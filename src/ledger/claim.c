/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: the arithmetic of the line, which stays right when a process dies at any instruction.
 *
 * A claim changes two words, charged (everyone's) and claimed (its owner's), and a process can be
 * killed between the two. So:
 *   - up: charged first, then the slot; down: the slot first, then charged. A process that dies in
 *     between leaves charged too high, never too low: the line holds.
 *   - each operation is bracketed by n_begun and n_done of the slot of the process that does it,
 *     also the emptying of a slot. If the two differ in a slot whose owner is dead, a settling is
 *     requested: when every slot is seen at rest, charged must equal the sum of the slots, and the
 *     excess is subtracted.
 *   - only the owner brackets in a slot and, after its death, the process with the duty of emptying
 *     it. So both counters can be made equal when a slot is emptied: nobody is still inside whose
 *     end would be counted afterwards. If the supervisor bracketed in the slot that it measures, it
 *     could be inside: n_done would pass n_begun for good and hide another process's unfinished
 *     operation; a settling in the middle of that operation would then subtract bytes that are
 *     released a second time. So a process that measures another brackets in its own slot.
 *   - a dead process's slot is emptied under a duty, held by pid: one at a time, and another takes
 *     over when the holder dies. The holder checks the owner again; from then on the slot cannot
 *     change hands, because a newcomer only takes a slot whose pid is 0, and only the holder of the
 *     duty sets it to 0. Others are measured under the same duty: their bytes never land in a free
 *     slot, or a newcomer's. An owner that leaves while somebody has the duty only marks its slot
 *     as left, which is as good as dead.
 *   - measured and claimed change by exchange and compare-and-swap, and the process that changes
 *     one changes charged by the same amount: so an exec may empty a slot that is being measured.
 *     The measure of the old image may then stand until the next look at the new one.
 *   - slots from n_slots on were never used. It is raised before a slot there is taken, and so
 *     before anything is charged to it: a reader that sees the charge, and reads n_slots after it,
 *     sees the slot.
 * A process that is stopped, not dead, inside an operation delays the settling, or the return of
 * the slot that it was emptying; the line holds. All atomics here are sequentially consistent: the
 * bracket argument needs one order over several words, and a claim stands for at least a megabyte,
 * so the cost of a fence is negligible. */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "ledger/room.h"
#include "sys/proc.h"

static void begin(pl_ledger_slot *slot)
{
    atomic_fetch_add(&slot->n_begun, 1);
}

static void end(pl_ledger_slot *slot)
{
    atomic_fetch_add(&slot->n_done, 1);
}

int pl_ledger_n_slots(const pl_ledger *ledger)
{
    return (int)pl_min_u64(atomic_load(&ledger->sum.n_slots), PL_SLOTS);
}

static uint64_t slot_bytes(const pl_ledger_slot *slot)
{
    return atomic_load(&slot->claimed_bytes) + atomic_load(&slot->measured_bytes);
}

static void raise_peaks(pl_ledger *ledger, pl_ledger_slot *slot, uint64_t charged)
{
    pl_peak_raise(&ledger->sum.peak_bytes, charged);
    pl_peak_raise(&ledger->sum.cell_peak_bytes, charged);
    pl_peak_raise(&slot->peak_bytes, slot_bytes(slot));
}

static bool fits(uint64_t charged, uint64_t bytes, uint64_t mark)
{
    return bytes <= mark && charged <= mark - bytes;
}

/* Adds to charged unless that would pass `mark`. Returns the new value, or 0 when refused. */
static uint64_t charge_up_to(pl_ledger *ledger, uint64_t bytes, uint64_t mark)
{
    uint64_t charged = atomic_load(&ledger->sum.charged_bytes);
    do {
        if (!fits(charged, bytes, mark))
            return 0;
    } while (!atomic_compare_exchange_weak(&ledger->sum.charged_bytes, &charged, charged + bytes));
    return charged + bytes;
}

int pl_ledger_claim(pl_ledger *ledger, pl_owner owner, uint64_t bytes, enum pl_claim_kind kind)
{
    PL_NULL_GIVES(ledger, -EINVAL);
    if (bytes == 0)
        return 0;
    pl_ledger_slot *slot = &ledger->slots[owner];
    uint64_t mark = atomic_load(&ledger->sum.limit_bytes);
    if (kind == PL_CLAIM_RESERVE)
        mark = pl_add_sat_u64(mark, ledger->header.reserve_bytes);
    /* Refuses outside the bracket where possible: a process that asks again and again must not keep
     * the slots from being seen at rest, when a settling may be what makes room. */
    if (!fits(atomic_load(&ledger->sum.charged_bytes), bytes, mark))
        return PL_EBUDGET;

    begin(slot);
    uint64_t charged = charge_up_to(ledger, bytes, mark);
    if (charged)
        atomic_fetch_add(&slot->claimed_bytes, bytes);
    end(slot);

    if (!charged)
        return PL_EBUDGET;
    raise_peaks(ledger, slot, charged);
    return 0;
}

void pl_ledger_release(pl_ledger *ledger, pl_owner owner, uint64_t bytes)
{
    PL_NULL_DOES_NOTHING(ledger);
    pl_ledger_slot *slot = &ledger->slots[owner];
    begin(slot);
    atomic_fetch_sub(&slot->claimed_bytes, bytes);
    atomic_fetch_sub(&ledger->sum.charged_bytes, bytes);
    end(slot);
}

/* `actor` is the slot of the process that measures. */
static void measure(pl_ledger *ledger, pl_ledger_slot *actor, pl_ledger_slot *slot, uint64_t bytes)
{
    begin(actor);
    uint64_t before = atomic_load(&slot->measured_bytes);
    for (;;) {
        if (bytes > before)
            atomic_fetch_add(&ledger->sum.charged_bytes, bytes - before);
        uint64_t seen = before;
        if (atomic_compare_exchange_strong(&slot->measured_bytes, &seen, bytes))
            break;
        if (bytes > before)
            atomic_fetch_sub(&ledger->sum.charged_bytes, bytes - before);
        before = seen;
    }
    if (bytes < before)
        atomic_fetch_sub(&ledger->sum.charged_bytes, before - bytes);
    end(actor);
    raise_peaks(ledger, slot, atomic_load(&ledger->sum.charged_bytes));
}

void pl_ledger_measure(pl_ledger *ledger, pl_owner owner, uint64_t bytes)
{
    PL_NULL_DOES_NOTHING(ledger);
    measure(ledger, &ledger->slots[owner], &ledger->slots[owner], bytes);
}

/* Gives back the bytes of a slot, within a bracket that the caller has begun. */
static void empty_slot(pl_ledger *ledger, pl_ledger_slot *slot)
{
    uint64_t bytes =
        atomic_exchange(&slot->claimed_bytes, 0) + atomic_exchange(&slot->measured_bytes, 0);
    atomic_fetch_sub(&ledger->sum.charged_bytes, bytes);
    atomic_store(&slot->flags, 0);
    atomic_store(&slot->peak_bytes, 0);
    atomic_store(&slot->resident_bytes, 0);
    atomic_store(&slot->n_refusals, 0);
    pl_room_empty(ledger, slot);
    slot->python_version = 0;
    slot->python_runtime = 0;
    slot->name[0] = '\0';
}

/* needs_settling is odd while a settling is requested, and never has a value twice: an even,
 * unchanged value means that nothing was unsettled in between. */
static void ask_for_settling(pl_ledger *ledger)
{
    uint32_t seen = atomic_load(&ledger->sum.needs_settling);
    while (!atomic_compare_exchange_weak(&ledger->sum.needs_settling, &seen, (seen + 2) | 1))
        ;
}

/* Empties the slot of a process that can do nothing any more: it died, or became another program by
 * exec. Ends the operations that it died in, after requesting a settling of their leftovers. */
static void empty_dead_slot(pl_ledger *ledger, pl_ledger_slot *slot)
{
    if (atomic_load(&slot->n_begun) != atomic_load(&slot->n_done))
        ask_for_settling(ledger);
    begin(slot);
    empty_slot(ledger, slot);
    atomic_store(&slot->n_done, atomic_load(&slot->n_begun)); /* both only ever rise */
}

/* pid last: the slot is then anyone's. */
static void free_slot(pl_ledger_slot *slot)
{
    atomic_store(&slot->start_ticks, 0);
    atomic_store(&slot->pid, 0);
}

/* Makes the caller the holder of `word` if it was free or its holder died. */
static bool take_duty(pl_atomic_u32 *word)
{
    uint32_t holder = atomic_load(word);
    if (holder && pl_proc_alive((pid_t)holder, 0))
        return false;
    return atomic_compare_exchange_strong(word, &holder, (uint32_t)getpid());
}

static void drop_duty(pl_atomic_u32 *word)
{
    uint32_t self = (uint32_t)getpid();
    atomic_compare_exchange_strong(word, &self, 0);
}

/* A thread that held a duty when another thread called exec is gone, yet its pid is alive; and a
 * newborn may have the pid of a dead holder. */
static void drop_inherited_duties(pl_ledger *ledger, uint32_t self)
{
    drop_duty(&ledger->sum.settler_pid);
    for (int i = 0; i < pl_ledger_n_slots(ledger); i++)
        if (atomic_load(&ledger->slots[i].keeper_pid) == self)
            drop_duty(&ledger->slots[i].keeper_pid);
}

int pl_ledger_measure_other(pl_ledger *ledger, pl_owner actor, pl_owner other, pid_t pid,
                            uint64_t bytes)
{
    pl_ledger_slot *slot = &ledger->slots[other];
    if (!take_duty(&slot->keeper_pid))
        return -EBUSY;
    bool there =
        atomic_load(&slot->pid) == (uint32_t)pid && atomic_load(&slot->start_ticks) != PL_SLOT_LEFT;
    if (there)
        measure(ledger, &ledger->slots[actor], slot, bytes);
    drop_duty(&slot->keeper_pid);
    return there ? 0 : -ESRCH;
}

/* Every slot at rest, from before the reads to after them: done is read first, begun last. Neither
 * ever falls, and no slot has done more than it has begun; so if the totals are equal, they are
 * equal in each slot, and nothing was under way in between. */
static bool sum_at_rest(const pl_ledger *ledger, uint64_t *ret_charged, uint64_t *ret_sum)
{
    uint64_t n_done = 0, n_begun = 0, sum = 0;
    for (int i = 0; i < pl_ledger_n_slots(ledger); i++)
        n_done += atomic_load(&ledger->slots[i].n_done);
    uint64_t charged = atomic_load(&ledger->sum.charged_bytes);
    for (int i = 0; i < pl_ledger_n_slots(ledger); i++)
        sum += slot_bytes(&ledger->slots[i]);
    for (int i = 0; i < pl_ledger_n_slots(ledger); i++)
        n_begun += atomic_load(&ledger->slots[i].n_begun);
    *ret_charged = charged;
    *ret_sum = sum;
    return n_begun == n_done;
}

/* The excess that dead processes left does not change with what live ones do. charged may have
 * moved on since it was seen at rest; the swap then fails, and where it succeeds, exactly the
 * excess is taken off. A request that came during the settling stays. */
static bool settle_once(pl_ledger *ledger, uint32_t request)
{
    uint64_t charged, sum;
    if (!sum_at_rest(ledger, &charged, &sum) || charged < sum)
        return false;
    if (!atomic_compare_exchange_strong(&ledger->sum.charged_bytes, &charged, sum))
        return false;
    atomic_compare_exchange_strong(&ledger->sum.needs_settling, &request, request + 1);
    return true;
}

/* Looks sixteen times, about 10 us each; if all of them fall into another process's operation, the
 * next reclaim looks again. */
static void settle(pl_ledger *ledger)
{
    if (!(atomic_load(&ledger->sum.needs_settling) & 1) || !take_duty(&ledger->sum.settler_pid))
        return;
    uint32_t request = atomic_load(&ledger->sum.needs_settling);
    for (int tries = 0; tries < 16 && (request & 1); tries++)
        if (settle_once(ledger, request))
            break;
    drop_duty(&ledger->sum.settler_pid);
}

/* Pid and start time are two words: read twice, so that they are one process's. */
static bool owner_is_dead(const pl_ledger_slot *slot)
{
    uint32_t pid = atomic_load(&slot->pid);
    uint64_t start_ticks = atomic_load(&slot->start_ticks);
    if (!pid || (start_ticks != PL_SLOT_LEFT && pl_proc_alive((pid_t)pid, start_ticks)))
        return false;
    return atomic_load(&slot->pid) == pid && atomic_load(&slot->start_ticks) == start_ticks;
}

static bool reclaim_slot(pl_ledger *ledger, pl_ledger_slot *slot)
{
    if (!owner_is_dead(slot) || !take_duty(&slot->keeper_pid))
        return false;
    /* Before the duty was taken, another may have reclaimed the slot and a newcomer joined. */
    bool dead = owner_is_dead(slot);
    if (dead) {
        pl_ledger_forget_sites(ledger, (pid_t)atomic_load(&slot->pid));
        empty_dead_slot(ledger, slot);
        free_slot(slot);
    }
    drop_duty(&slot->keeper_pid);
    return dead;
}

static int find_own_slot(const pl_ledger *ledger, uint32_t pid, uint64_t start_ticks)
{
    int n = pl_ledger_n_slots(ledger);
    for (int i = 0; i < n; i++)
        if (atomic_load(&ledger->slots[i].pid) == pid &&
            atomic_load(&ledger->slots[i].start_ticks) == start_ticks)
            return i;
    return PL_EFULL;
}

static bool take_slot(pl_ledger_slot *slot, uint32_t pid)
{
    uint32_t nobody = 0;
    return atomic_load(&slot->pid) == 0 && atomic_compare_exchange_strong(&slot->pid, &nobody, pid);
}

static int take_used_slot(pl_ledger *ledger, uint32_t pid)
{
    int n = pl_ledger_n_slots(ledger);
    for (int i = 0; i < n; i++)
        if (take_slot(&ledger->slots[i], pid))
            return i;
    return PL_EFULL;
}

static int take_unused_slot(pl_ledger *ledger, uint32_t pid)
{
    for (uint32_t i = (uint32_t)pl_ledger_n_slots(ledger); i < PL_SLOTS; i++) {
        uint32_t seen = i;
        while (seen <= i && !atomic_compare_exchange_weak(&ledger->sum.n_slots, &seen, i + 1))
            ;
        if (take_slot(&ledger->slots[i], pid))
            return (int)i;
    }
    return PL_EFULL;
}

/* The supervisor normally reclaims several times a second. In a burst of short processes, or when
 * the supervisor is dead, each newcomer looks at some slots for dead owners itself. Each look reads
 * /proc, some 10 us. Sixteen find more than the one that is needed as soon as a sixteenth of the
 * owners is dead. */
enum { CROWD = 1024, CROWD_LOOKS = 16, FULL_LOOKS = 1024 };

static int take_dead_slot(pl_ledger *ledger, uint32_t pid, int n_looks)
{
    uint32_t n = (uint32_t)pl_ledger_n_slots(ledger);
    for (int i = 0; i < n_looks; i++)
        reclaim_slot(ledger, &ledger->slots[atomic_fetch_add(&ledger->sum.next_look, 1) % n]);
    settle(ledger);
    return take_used_slot(ledger, pid);
}

static int take_any_slot(pl_ledger *ledger, uint32_t pid)
{
    int owner = take_used_slot(ledger, pid);
    if (owner < 0 && pl_ledger_n_slots(ledger) >= CROWD)
        owner = take_dead_slot(ledger, pid, CROWD_LOOKS);
    if (owner < 0)
        owner = take_unused_slot(ledger, pid);
    if (owner < 0)
        owner = take_dead_slot(ledger, pid, FULL_LOOKS);
    return owner;
}

int pl_ledger_join(pl_ledger *ledger, int fresh, pl_owner *ret_owner)
{
    PL_NULL_GIVES(ledger, -EINVAL);
    PL_NULL_GIVES(ret_owner, -EINVAL);
    uint32_t pid = (uint32_t)getpid();
    uint64_t pid_namespace = pl_proc_pid_namespace();
    pl_proc_stat stat;
    if (pid_namespace != ledger->header.pid_namespace)
        return pid_namespace ? -EXDEV : -ENOENT;
    int r = pl_proc_identity_read((pid_t)pid, &stat);
    if (r < 0)
        return r;
    if (fresh)
        drop_inherited_duties(ledger, pid);

    int owner = find_own_slot(ledger, pid, stat.start_ticks);
    if (owner >= 0 && fresh) { /* by exec: the old image's memory is gone */
        pl_ledger_forget_sites(ledger, (pid_t)pid);
        empty_dead_slot(ledger, &ledger->slots[owner]);
    }
    if (owner < 0) {
        owner = take_any_slot(ledger, pid);
        if (owner < 0)
            return owner;
        atomic_store(&ledger->slots[owner].start_ticks, stat.start_ticks);
        atomic_store(&ledger->slots[owner].parent_pid, (uint32_t)stat.parent_pid);
    }
    *ret_owner = owner;
    return 0;
}

/* Checks again under the duty: another process may have reclaimed the slot since it was left. */
void pl_ledger_leave(pl_ledger *ledger, pl_owner owner)
{
    PL_NULL_DOES_NOTHING(ledger);
    pl_ledger_slot *slot = &ledger->slots[owner];
    begin(slot);
    empty_slot(ledger, slot);
    end(slot);
    atomic_store(&slot->start_ticks, PL_SLOT_LEFT);
    if (!take_duty(&slot->keeper_pid))
        return; /* its holder is measuring: the next reclaim frees the slot */
    if (atomic_load(&slot->pid) == (uint32_t)getpid() &&
        atomic_load(&slot->start_ticks) == PL_SLOT_LEFT) {
        empty_dead_slot(ledger, slot);
        free_slot(slot);
    }
    drop_duty(&slot->keeper_pid);
}

int pl_ledger_reclaim_if(pl_ledger *ledger, bool (*may)(const void *context, int index),
                         const void *context)
{
    int n_freed = 0;
    for (int i = 0; i < pl_ledger_n_slots(ledger); i++)
        if (may(context, i))
            n_freed += reclaim_slot(ledger, &ledger->slots[i]);
    settle(ledger);
    return n_freed;
}

static bool any_slot(const void *context, int index)
{
    (void)context;
    (void)index;
    return true;
}

int pl_ledger_reclaim(pl_ledger *ledger)
{
    PL_NULL_GIVES(ledger, 0);
    return pl_ledger_reclaim_if(ledger, any_slot, NULL);
}

/* Too low is never right; too high is allowed until the excess of dead processes is settled. */
static int check_sum(const pl_ledger *ledger, pl_error *reterr)
{
    uint64_t charged, sum;
    uint32_t request = atomic_load(&ledger->sum.needs_settling);
    if (!sum_at_rest(ledger, &charged, &sum) || charged == sum)
        return 0;
    bool settled = !(request & 1) && request == atomic_load(&ledger->sum.needs_settling);
    if (charged > sum && !settled)
        return 0;
    return pl_error_set(reterr, PL_ECORRUPT,
                        "charged is %" PRIu64 " bytes, the slots hold %" PRIu64, charged, sum);
}

int pl_ledger_check(const pl_ledger *ledger, pl_error *reterr)
{
    PL_NOT_NULL(ledger, reterr);
    const pl_ledger_header *header = &ledger->header;
    if (header->magic != PL_LEDGER_MAGIC || header->version != PL_LEDGER_VERSION ||
        header->file_bytes != sizeof *ledger)
        return pl_error_set(reterr, PL_ECORRUPT, "the header is damaged");

    if (atomic_load(&ledger->sum.n_slots) > PL_SLOTS)
        return pl_error_set(reterr, PL_ECORRUPT, "%u slots of %d are in use",
                            atomic_load(&ledger->sum.n_slots), PL_SLOTS);
    for (int i = 0; i < pl_ledger_n_slots(ledger); i++) {
        const pl_ledger_slot *slot = &ledger->slots[i];
        uint64_t n_begun = atomic_load(&slot->n_begun);
        bool free = atomic_load(&slot->pid) == 0;
        uint64_t bytes = slot_bytes(slot);
        if (free && bytes != 0 && atomic_load(&slot->pid) == 0 &&
            n_begun == atomic_load(&slot->n_begun)) /* not a newcomer's */
            return pl_error_set(reterr, PL_ECORRUPT, "free slot %d holds %" PRIu64 " bytes", i,
                                bytes);
        if (atomic_load(&slot->claimed_bytes) > INT64_MAX)
            return pl_error_set(reterr, PL_ECORRUPT, "slot %d released more than it claimed", i);
    }
    if (atomic_load(&ledger->sum.charged_bytes) > INT64_MAX)
        return pl_error_set(reterr, PL_ECORRUPT, "more was released than charged");
    if (atomic_load(&ledger->sum.n_samples) > PL_SAMPLES)
        return pl_error_set(reterr, PL_ECORRUPT, "the timeline claims %" PRIu64 " samples",
                            atomic_load(&ledger->sum.n_samples));

    return check_sum(ledger, reterr);
}
