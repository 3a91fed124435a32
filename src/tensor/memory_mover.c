/* SPDX-License-Identifier: Apache-2.0 */
/* See memory_private.h. The mover waits for calls (ledger/room.h) and makes each memory of the
 * process free what is idle, until there is room for all that is wanted. It is a thread of its own
 * because the caller is inside malloc(), in any thread of any process, and moving takes locks and
 * writes to a disk. It never needs Python's lock, which the waiting thread may hold. */
#include <pthread.h>
#include <signal.h>

#include "ledger/room.h"
#include "tensor/memory_private.h"

/* Interval for checking how much is still wanted. */
#define STEP_BYTES (16 * PL_MIB)

/* How often nothing was found where something had just been idle: it had been taken into use. */
enum { LOOKS = 3 };

static struct {
    pthread_mutex_t mu;
    bool runs; /* mu; what follows is constant while it does */
    pl_ledger *ledger;
    pl_memory_guard guard;
    pl_owner room;
} mover = {.mu = PTHREAD_MUTEX_INITIALIZER};

static uint64_t move_out(uint64_t bytes, pl_error *reterr)
{
    uint64_t freed = 0;
    pl_memory *memory;
    for (int n = 0; freed < bytes && (memory = pl_memory_ref_nth(n)); n++) {
        freed += pl_memory_move_out(memory, bytes - freed, reterr);
        pl_memory_unref(memory);
    }
    if (freed > 0)
        mover.guard.look();
    return freed;
}

/* Returns whether less can be moved than is wanted. */
static bool make_room(void)
{
    uint64_t missing;
    for (int looks = 0; looks < LOOKS && (missing = pl_room_missing_bytes(mover.ledger)) > 0;) {
        pl_error error = {0};
        uint64_t freed = move_out(pl_min_u64(missing, STEP_BYTES), &error);
        if (freed == 0 && error.code < 0)
            return false;
        looks = freed > 0 ? 0 : looks + 1;
        if (freed > 0)
            pl_room_tell_progress(mover.ledger);
    }
    return true;
}

static void *answer_calls(void *unused)
{
    uint32_t call = 0;
    (void)unused;
    mover.guard.hold(1); /* never waits for itself */
    for (;;) {
        call = pl_room_wait_for_call(mover.ledger, call);
        bool stuck = !make_room();
        pl_room_answer(mover.ledger, mover.room, call, stuck);
    }
    return NULL;
}

/* Blocks signals: their handlers are the program's, and expect the program's threads. */
static bool start_thread(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, answer_calls, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return false;
    pthread_setname_np(thread, "plimsoll-mover");
    pthread_detach(thread);
    return true;
}

/* A child has the ledger mapped already, and another slot in it. */
static bool prepare(const pl_memory_line *line)
{
    if (!mover.ledger && pl_ledger_open_run(&mover.ledger, NULL) < 0)
        return false;
    mover.guard = line->guard;
    mover.room = line->guard.owner();
    return pl_room_is_own(mover.room);
}

pl_owner pl_memory_start_mover(const pl_memory_line *line)
{
    if (!pl_memory_line_is_guarded(line))
        return -1;
    pthread_mutex_lock(&mover.mu);
    if (!mover.runs)
        mover.runs = prepare(line) && start_thread();
    pl_owner room = mover.runs ? mover.room : -1;
    pthread_mutex_unlock(&mover.mu);
    return room;
}

void pl_memory_forget_mover(void)
{
    pthread_mutex_init(&mover.mu, NULL);
    mover.runs = false;
}
