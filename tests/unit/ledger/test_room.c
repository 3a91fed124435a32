/* SPDX-License-Identifier: Apache-2.0 */
/* Room is made before anybody is refused, by whoever has something idle; and nobody waits for those
 * that cannot make any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/room.h"

#define LINE (100 * PL_MIB)

static pl_ledger *new_ledger(pl_owner *ret_owner)
{
    pl_ledger *ledger;
    const pl_ledger_params params = {.limit_bytes = LINE};
    assert_int_equal(pl_ledger_new_private(&params, &ledger), 0);
    assert_int_equal(pl_ledger_join(ledger, 1, ret_owner), 0);
    return ledger;
}

/* A process that has `idle` bytes claimed and idle, and gives back `step` at each turn. */
typedef struct mover {
    pl_ledger *ledger;
    pl_owner owner;
    uint64_t idle, step;
    bool is_stuck;
} mover;

static void begin_idle(mover *m)
{
    assert_int_equal(pl_ledger_claim(m->ledger, m->owner, m->idle, PL_CLAIM_REFUSABLE), 0);
    pl_room_add_idle(m->ledger, m->owner, (int64_t)m->idle);
}

static void answer(mover *m, uint32_t call)
{
    while (!m->is_stuck && m->idle > 0 && pl_room_missing_bytes(m->ledger) > 0) {
        uint64_t step = pl_min_u64(m->step, m->idle);
        m->idle -= step;
        pl_room_add_idle(m->ledger, m->owner, -(int64_t)step);
        pl_ledger_release(m->ledger, m->owner, step);
        pl_room_tell_progress(m->ledger);
    }
    pl_room_answer(m->ledger, m->owner, call, m->is_stuck);
}

static void *answer_one_call(void *context)
{
    mover *m = context;
    answer(m, pl_room_wait_for_call(m->ledger, 0));
    return NULL;
}

static void nobody_is_asked_where_nothing_is_idle(void **state)
{
    (void)state;
    pl_owner owner;
    pl_ledger *ledger = new_ledger(&owner);
    assert_false(pl_room_ask(ledger, owner, PL_MIB));
    assert_int_equal(atomic_load(&ledger->sum.call), 0);
    assert_int_equal(pl_room_idle_bytes(ledger), 0);
    pl_ledger_close(ledger);
}

static void no_more_is_moved_than_is_wanted(void **state)
{
    (void)state;
    mover m = {.idle = 90 * PL_MIB, .step = PL_MIB};
    pthread_t thread;
    m.ledger = new_ledger(&m.owner);
    begin_idle(&m);
    assert_int_equal(pl_room_idle_bytes(m.ledger), 90 * PL_MIB);
    assert_int_equal(pthread_create(&thread, NULL, answer_one_call, &m), 0);
    assert_true(pl_room_ask(m.ledger, m.owner, 40 * PL_MIB));
    pthread_join(thread, NULL);
    assert_int_equal(m.idle, 60 * PL_MIB);
    assert_int_equal(pl_ledger_claim(m.ledger, m.owner, 40 * PL_MIB, PL_CLAIM_REFUSABLE), 0);
    assert_int_equal(pl_room_missing_bytes(m.ledger), 0);
    pl_ledger_close(m.ledger);
}

static void who_has_given_all_is_not_waited_for(void **state)
{
    (void)state;
    mover m = {.idle = 90 * PL_MIB, .step = 32 * PL_MIB};
    pthread_t thread;
    m.ledger = new_ledger(&m.owner);
    begin_idle(&m);
    assert_int_equal(pthread_create(&thread, NULL, answer_one_call, &m), 0);
    assert_true(pl_room_ask(m.ledger, m.owner, LINE + 1));
    pthread_join(thread, NULL);
    assert_int_equal(m.idle, 0);
    assert_false(pl_room_ask(m.ledger, m.owner, LINE + 1));
    pl_ledger_close(m.ledger);
}

static void who_cannot_write_is_not_asked_again_at_once(void **state)
{
    (void)state;
    mover m = {.idle = 90 * PL_MIB, .step = PL_MIB, .is_stuck = true};
    pthread_t thread;
    m.ledger = new_ledger(&m.owner);
    begin_idle(&m);
    assert_int_equal(pthread_create(&thread, NULL, answer_one_call, &m), 0);
    assert_true(pl_room_ask(m.ledger, m.owner, 40 * PL_MIB));
    pthread_join(thread, NULL);
    assert_true(atomic_load(&m.ledger->rooms[m.owner].stuck_until_ns) > 0);
    /* The next call that it can answer ends that. */
    m.is_stuck = false;
    answer(&m, atomic_load(&m.ledger->sum.call));
    assert_int_equal(pl_room_idle_bytes(m.ledger), m.idle);
    pl_ledger_close(m.ledger);
}

/* It has joined, has something idle, and never answers. */
static pid_t start_silent(pl_ledger *ledger, pl_owner *ret_owner)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pl_owner owner;
        if (pl_ledger_join(ledger, 1, &owner) < 0 ||
            pl_ledger_claim(ledger, owner, 90 * PL_MIB, PL_CLAIM_REFUSABLE) < 0)
            _exit(1);
        pl_room_add_idle(ledger, owner, 90 * (int64_t)PL_MIB);
        raise(SIGSTOP);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    for (*ret_owner = 0; atomic_load(&ledger->slots[*ret_owner].pid) != (uint32_t)child;)
        ++*ret_owner;
    return child;
}

static void who_is_stopped_is_given_up_on_until_it_answers(void **state)
{
    (void)state;
    pl_owner owner, silent;
    pl_ledger *ledger = new_ledger(&owner);
    pid_t child = start_silent(ledger, &silent);
    assert_true(pl_room_ask(ledger, owner, 40 * PL_MIB));
    assert_int_equal(atomic_load(&ledger->rooms[silent].missed), 1);
    assert_false(pl_room_ask(ledger, owner, 40 * PL_MIB));
    pl_room_answer(ledger, silent, 1, false);
    assert_int_equal(pl_room_idle_bytes(ledger), 90 * PL_MIB);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    pl_ledger_close(ledger);
}

static void what_a_dead_process_had_idle_goes_with_it(void **state)
{
    (void)state;
    pl_owner owner, silent;
    pl_ledger *ledger = new_ledger(&owner);
    pid_t child = start_silent(ledger, &silent);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(pl_ledger_reclaim(ledger), 1);
    assert_int_equal(pl_room_idle_bytes(ledger), 0);
    assert_false(pl_room_ask(ledger, owner, PL_MIB));
    pl_ledger_close(ledger);
}

static void calls_come_round(void **state)
{
    (void)state;
    mover m = {.idle = 90 * PL_MIB, .step = PL_MIB};
    pthread_t thread;
    m.ledger = new_ledger(&m.owner);
    begin_idle(&m);
    atomic_store(&m.ledger->sum.call, UINT32_MAX);
    atomic_store(&m.ledger->rooms[m.owner].answered, UINT32_MAX);
    pl_room_call(m.ledger); /* 0 is no call */
    assert_int_equal(atomic_load(&m.ledger->sum.call), 1);
    assert_int_equal(pthread_create(&thread, NULL, answer_one_call, &m), 0);
    assert_true(pl_room_ask(m.ledger, m.owner, 40 * PL_MIB));
    pthread_join(thread, NULL);
    pl_ledger_close(m.ledger);
}

static void who_has_no_place_can_ask_as_well(void **state)
{
    (void)state;
    mover m = {.idle = 90 * PL_MIB, .step = PL_MIB};
    pthread_t thread;
    m.ledger = new_ledger(&m.owner);
    begin_idle(&m);
    assert_true(pl_room_is_own(PL_ROOMS - 2) && !pl_room_is_own(PL_ROOMS - 1));
    assert_int_equal(pthread_create(&thread, NULL, answer_one_call, &m), 0);
    assert_true(pl_room_ask(m.ledger, PL_SLOTS - 1, 40 * PL_MIB));
    pthread_join(thread, NULL);
    assert_int_equal(m.idle, 60 * PL_MIB);
    assert_int_equal(atomic_load(&m.ledger->rooms[PL_ROOMS - 1].wanted_bytes), 0);
    pl_ledger_close(m.ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_asked_where_nothing_is_idle),
        cmocka_unit_test(no_more_is_moved_than_is_wanted),
        cmocka_unit_test(who_has_given_all_is_not_waited_for),
        cmocka_unit_test(who_cannot_write_is_not_asked_again_at_once),
        cmocka_unit_test(who_is_stopped_is_given_up_on_until_it_answers),
        cmocka_unit_test(what_a_dead_process_had_idle_goes_with_it),
        cmocka_unit_test(calls_come_round),
        cmocka_unit_test(who_has_no_place_can_ask_as_well),
    };
    return cmocka_run_group_tests_name("room", tests, NULL, NULL);
}
