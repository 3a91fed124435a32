/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger's arithmetic and its file: claims, marks, deaths at chosen instructions, bad files.
 * What only chance can find is in tests/torture/ledger_storm.c. Alone:
 *   gcc -std=gnu17 -D_GNU_SOURCE -fno-strict-aliasing -Iinclude -Isrc \
 *       tests/unit/ledger/test_ledger.c src/ledger/[a-z]*.c src/sys/proc.c src/sys/fixed_text.c \
 *       src/base/error.c -lcmocka -lpthread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "sys/proc.h"

enum { LIMIT = 1000, RESERVE = 100, NOT_POSSIBLE_HERE = 77 };

typedef struct fixture {
    char folder[64];
    char path[96];
    pl_ledger *ledger;
    pl_ledger_slot *slot; /* ours */
    pl_owner owner;
    bool broken; /* on purpose: not to be checked at the end */
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    strcpy(f->folder, "/tmp/plimsoll-ledger-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/ledger", f->folder);
    const pl_ledger_params params = {.limit_bytes = LIMIT, .reserve_bytes = RESERVE};
    if (pl_ledger_create(f->path, &params, &f->ledger, NULL) < 0)
        return -1;
    if (pl_ledger_join(f->ledger, 0, &f->owner) < 0)
        return -1;
    f->slot = &f->ledger->slots[f->owner];
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    pl_error error = {0};
    int r = f->broken ? 0 : pl_ledger_check(f->ledger, &error);
    if (r < 0)
        print_error("%s\n", error.message);
    pl_ledger_close(f->ledger);
    unlink(f->path);
    rmdir(f->folder);
    free(f);
    return r;
}

static int claim(fixture *f, uint64_t bytes)
{
    return pl_ledger_claim(f->ledger, f->owner, bytes, PL_CLAIM_REFUSABLE);
}

static int claim_from_reserve(fixture *f, uint64_t bytes)
{
    return pl_ledger_claim(f->ledger, f->owner, bytes, PL_CLAIM_RESERVE);
}

static void assert_charged(const fixture *f, uint64_t bytes)
{
    assert_int_equal(pl_ledger_charged_bytes(f->ledger), bytes);
}

/* Runs `act` in a child with a slot of its own, which it passes on, and waits for its end. */
static int run_child(fixture *f, void (*act)(pl_ledger *, pl_owner), pid_t *ret_pid)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pl_owner owner;
        if (pl_ledger_join(f->ledger, 1, &owner) < 0)
            _exit(1);
        act(f->ledger, owner);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (ret_pid)
        *ret_pid = pid;
    return status;
}

static void run_child_to_death(fixture *f, void (*act)(pl_ledger *, pl_owner))
{
    int status = run_child(f, act, NULL);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Claims */

static void refuses_the_byte_that_crosses_the_line(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, LIMIT), 0);
    assert_int_equal(claim(f, 1), PL_EBUDGET);
    assert_charged(f, LIMIT);
    assert_int_equal(atomic_load(&f->slot->claimed_bytes), LIMIT);
}

static void grants_again_what_was_released(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, LIMIT), 0);
    pl_ledger_release(f->ledger, f->owner, 300);
    assert_charged(f, LIMIT - 300);
    assert_int_equal(claim(f, 301), PL_EBUDGET);
    assert_int_equal(claim(f, 300), 0);
    pl_ledger_release(f->ledger, f->owner, LIMIT);
    assert_charged(f, 0);
}

static void enters_the_reserve_with_its_kind_only_and_never_passes_it(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, LIMIT), 0);
    assert_int_equal(claim_from_reserve(f, RESERVE), 0);
    assert_int_equal(claim_from_reserve(f, 1), PL_EBUDGET);
    assert_int_equal(claim(f, 1), PL_EBUDGET);
    assert_charged(f, LIMIT + RESERVE);
}

static void grants_nothing_for_nothing(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, LIMIT), 0);
    assert_int_equal(claim(f, 0), 0);
    assert_charged(f, LIMIT);
}

static void refuses_sizes_whose_sum_would_wrap(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 1), 0);
    assert_int_equal(claim(f, UINT64_MAX), PL_EBUDGET);
    pl_ledger_set_limit_bytes(f->ledger, UINT64_MAX);
    assert_int_equal(claim(f, UINT64_MAX), PL_EBUDGET);
    assert_int_equal(claim_from_reserve(f, UINT64_MAX), PL_EBUDGET);
    assert_charged(f, 1);
}

static void moves_the_line_and_keeps_what_is_charged(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 900), 0);
    pl_ledger_set_limit_bytes(f->ledger, 500);
    assert_int_equal(pl_ledger_limit_bytes(f->ledger), 500);
    assert_charged(f, 900);
    assert_int_equal(claim(f, 1), PL_EBUDGET);
    assert_int_equal(pl_ledger_headroom_bytes(f->ledger), 0);
    pl_ledger_set_limit_bytes(f->ledger, 901);
    assert_int_equal(pl_ledger_headroom_bytes(f->ledger), 1);
    assert_int_equal(claim(f, 1), 0);
}

static void charges_what_is_measured_over_every_mark_and_takes_it_back(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 10), 0);
    pl_ledger_measure(f->ledger, f->owner, 5 * LIMIT);
    assert_charged(f, 5 * LIMIT + 10);
    assert_int_equal(claim_from_reserve(f, 1), PL_EBUDGET);
    pl_ledger_measure(f->ledger, f->owner, 40);
    assert_charged(f, 50);
    assert_int_equal(claim(f, LIMIT - 50), 0);
    pl_ledger_measure(f->ledger, f->owner, 0);
    assert_charged(f, LIMIT - 40);
}

static void remembers_the_peak_of_the_sum_and_of_each_owner(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 700), 0);
    pl_ledger_release(f->ledger, f->owner, 600);
    assert_int_equal(claim(f, 1), 0);
    assert_int_equal(pl_ledger_peak_bytes(f->ledger), 700);
    assert_int_equal(atomic_load(&f->slot->peak_bytes), 700);
    pl_ledger_measure(f->ledger, f->owner, 2000);
    pl_ledger_measure(f->ledger, f->owner, 0);
    assert_int_equal(pl_ledger_peak_bytes(f->ledger), 2101);
    assert_int_equal(atomic_load(&f->slot->peak_bytes), 2101);
    assert_int_equal(claim(f, 5000), PL_EBUDGET);
    assert_int_equal(pl_ledger_peak_bytes(f->ledger), 2101);
}

/* Slots */

static void gives_everything_back_when_an_owner_leaves(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 10), 0);
    pl_ledger_measure(f->ledger, f->owner, 20);
    pl_ledger_leave(f->ledger, f->owner);
    assert_charged(f, 0);
    assert_int_equal(atomic_load(&f->slot->pid), 0);
}

static void gives_the_same_slot_to_whoever_joins_twice(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 10), 0);
    pl_owner again = -1;
    assert_int_equal(pl_ledger_join(f->ledger, 0, &again), 0);
    assert_int_equal(again, f->owner);
    assert_charged(f, 10);
    assert_int_equal(pl_ledger_join(f->ledger, 1, &again), 0);
    assert_int_equal(again, f->owner);
    assert_charged(f, 0);
    assert_int_equal(atomic_load(&f->slot->pid), getpid());
}

static void claim_thirty(pl_ledger *ledger, pl_owner owner)
{
    if (pl_ledger_claim(ledger, owner, 30, PL_CLAIM_REFUSABLE) < 0)
        _exit(1);
}

static void gives_a_slot_of_its_own_to_the_child_of_a_fork(void **state)
{
    fixture *f = *state;
    pid_t child;
    assert_int_equal(run_child(f, claim_thirty, &child), 0);
    assert_charged(f, 30);
    assert_int_equal(atomic_load(&f->slot->claimed_bytes), 0);
    pl_ledger_slot *next = f->slot + 1;
    assert_int_equal(atomic_load(&next->pid), child);
    assert_int_equal(atomic_load(&next->parent_pid), getpid());
    assert_int_equal(atomic_load(&next->claimed_bytes), 30);
    assert_int_equal(pl_ledger_reclaim(f->ledger), 1);
}

static void bequeath(pl_ledger *ledger, pl_ledger_slot *slot, uint32_t dead, uint64_t bytes)
{
    uint32_t n = (uint32_t)(slot - ledger->slots) + 1;
    if (atomic_load(&ledger->sum.n_slots) < n)
        atomic_store(&ledger->sum.n_slots, n);
    atomic_store(&slot->start_ticks, 1);
    atomic_store(&slot->pid, dead);
    atomic_fetch_add(&slot->n_begun, 1);
    atomic_fetch_add(&ledger->sum.charged_bytes, bytes);
    atomic_fetch_add(&slot->claimed_bytes, bytes);
    atomic_fetch_add(&slot->n_done, 1);
}

/* With somebody: pid 1 lives, and another user may not read who it is. */
static void fill_slots(fixture *f, uint32_t n, uint32_t pid)
{
    atomic_store(&f->ledger->sum.n_slots, n);
    for (uint32_t i = 0; i < n; i++)
        atomic_store(&f->ledger->slots[i].pid, pid);
}

static uint32_t dead_pid(void)
{
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    waitpid(dead, NULL, 0);
    return (uint32_t)dead;
}

static void says_so_when_no_slot_is_free(void **state)
{
    fixture *f = *state;
    pl_ledger_leave(f->ledger, f->owner);
    fill_slots(f, PL_SLOTS, 1);
    pl_owner owner = -1;
    assert_int_equal(pl_ledger_join(f->ledger, 0, &owner), PL_EFULL);
    assert_int_equal(owner, -1);
    atomic_store(&f->ledger->slots[PL_SLOTS - 1].pid, 0);
    assert_int_equal(pl_ledger_join(f->ledger, 0, &owner), 0);
    assert_int_equal(owner, PL_SLOTS - 1);
}

static void takes_a_slot_of_the_dead_when_all_are_taken(void **state)
{
    fixture *f = *state;
    pl_ledger_leave(f->ledger, f->owner);
    fill_slots(f, PL_SLOTS, dead_pid());
    atomic_store(&f->ledger->slots[5].claimed_bytes, 60);
    atomic_store(&f->ledger->sum.charged_bytes, 60);
    assert_int_equal(pl_ledger_join(f->ledger, 0, &f->owner), 0);
    assert_int_equal(f->owner, 0);
    assert_charged(f, 0);
    pl_ledger_reclaim(f->ledger);
}

static void uses_the_slots_of_the_dead_before_more_than_a_crowd(void **state)
{
    fixture *f = *state;
    enum { CROWD = 1024 };
    pl_ledger_leave(f->ledger, f->owner);
    fill_slots(f, CROWD, dead_pid());
    assert_int_equal(pl_ledger_join(f->ledger, 0, &f->owner), 0);
    assert_int_equal(atomic_load(&f->ledger->sum.n_slots), CROWD);
    pl_ledger_reclaim(f->ledger);
}

static void has_room_for_more_than_a_crowd_of_the_living(void **state)
{
    fixture *f = *state;
    enum { CROWD = 1100 };
    pl_ledger_leave(f->ledger, f->owner);
    fill_slots(f, CROWD, 1);
    assert_int_equal(pl_ledger_join(f->ledger, 0, &f->owner), 0);
    assert_int_equal(f->owner, CROWD);
    assert_int_equal(pl_ledger_claim(f->ledger, f->owner, LIMIT, PL_CLAIM_REFUSABLE), 0);
    assert_int_equal(pl_ledger_claim(f->ledger, f->owner, 1, PL_CLAIM_REFUSABLE), PL_EBUDGET);
    pl_ledger_leave(f->ledger, f->owner);
    fill_slots(f, CROWD, 0);
}

static void uses_the_lowest_slot_that_is_free(void **state)
{
    fixture *f = *state;
    fill_slots(f, 9, 1);
    atomic_store(&f->ledger->slots[4].pid, 0);
    atomic_store(&f->ledger->slots[7].pid, 0);
    assert_int_equal(pl_ledger_join(f->ledger, 0, &f->owner), 0);
    assert_int_equal(f->owner, 4);
    assert_int_equal(atomic_load(&f->ledger->sum.n_slots), 9);
}

static void a_slot_that_is_being_measured_is_free_only_afterwards(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 10), 0);
    atomic_store(&f->slot->keeper_pid, 1);
    pl_ledger_leave(f->ledger, f->owner);
    assert_charged(f, 0);
    assert_int_equal(atomic_load(&f->slot->pid), getpid());
    pl_owner other;
    assert_int_equal(pl_ledger_join(f->ledger, 0, &other), 0);
    assert_int_not_equal(other, f->owner);
    atomic_store(&f->slot->keeper_pid, 0);
    assert_int_equal(pl_ledger_reclaim(f->ledger), 1);
    assert_int_equal(atomic_load(&f->slot->pid), 0);
}

static void measures_another_process_in_its_slot_only(void **state)
{
    fixture *f = *state;
    pl_ledger_slot *other = f->slot + 1;
    pl_owner place = f->owner + 1;
    bequeath(f->ledger, other, 1, 0);
    assert_int_equal(pl_ledger_measure_other(f->ledger, f->owner, place, 1, 40), 0);
    assert_int_equal(atomic_load(&other->measured_bytes), 40);
    assert_charged(f, 40);
    assert_int_equal(pl_ledger_measure_other(f->ledger, f->owner, place, 2, 50), -ESRCH);
    atomic_store(&other->start_ticks, PL_SLOT_LEFT);
    assert_int_equal(pl_ledger_measure_other(f->ledger, f->owner, place, 1, 50), -ESRCH);
    atomic_store(&other->keeper_pid, 1);
    assert_int_equal(pl_ledger_measure_other(f->ledger, f->owner, place, 1, 50), -EBUSY);
    assert_charged(f, 40);
    atomic_store(&other->keeper_pid, 0);
    assert_int_equal(pl_ledger_reclaim(f->ledger), 1);
    assert_charged(f, 0);
}

/* A bracket of its own in the other's slot would be counted after that was emptied. */
static void brackets_what_it_measures_of_another_in_its_own_slot(void **state)
{
    fixture *f = *state;
    bequeath(f->ledger, f->slot + 1, 1, 0);
    uint64_t n_own = atomic_load(&f->slot->n_done), n_other = atomic_load(&f->slot[1].n_done);
    assert_int_equal(pl_ledger_measure_other(f->ledger, f->owner, f->owner + 1, 1, 40), 0);
    assert_int_equal(atomic_load(&f->slot->n_done), n_own + 1);
    assert_int_equal(atomic_load(&f->slot[1].n_begun), n_other);
    assert_int_equal(atomic_load(&f->slot[1].n_done), n_other);
    pl_ledger_measure(f->ledger, f->owner + 1, 0);
    atomic_store(&f->slot[1].pid, 0);
}

static void takes_a_pid_with_another_start_time_for_another_process(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 10), 0);
    atomic_fetch_sub(&f->slot->start_ticks, 1);
    pl_owner mine;
    assert_int_equal(pl_ledger_join(f->ledger, 0, &mine), 0);
    assert_int_not_equal(mine, f->owner);
    assert_int_equal(pl_ledger_reclaim(f->ledger), 1);
    assert_charged(f, 0);
    assert_int_equal(atomic_load(&f->ledger->slots[mine].pid), getpid());
}

/* Deaths */

static void claim_all_kinds_and_die(pl_ledger *ledger, pl_owner owner)
{
    claim_thirty(ledger, owner);
    pl_ledger_measure(ledger, owner, 12);
    raise(SIGKILL);
}

static void reclaims_what_a_killed_process_held(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 5), 0);
    run_child_to_death(f, claim_all_kinds_and_die);
    assert_charged(f, 47);
    assert_int_equal(pl_ledger_reclaim(f->ledger), 1);
    assert_charged(f, 5);
    assert_int_equal(pl_ledger_reclaim(f->ledger), 0);
}

static void reclaims_the_slot_of_a_process_that_is_not_waited_for(void **state)
{
    fixture *f = *state;
    pid_t pid = fork();
    if (pid == 0) {
        pl_owner owner;
        if (pl_ledger_join(f->ledger, 1, &owner) == 0)
            claim_all_kinds_and_die(f->ledger, owner);
        _exit(1);
    }
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(pl_ledger_reclaim(f->ledger), 1);
    assert_charged(f, 0);
    waitpid(pid, NULL, 0);
}

static void leaves_the_living_alone(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 5), 0);
    assert_int_equal(pl_ledger_reclaim(f->ledger), 0);
    assert_charged(f, 5);
}

/* What claim.c does up to the chosen instruction, by hand. */
static void die_inside_a_claim(pl_ledger *ledger, pl_owner owner)
{
    claim_thirty(ledger, owner);
    atomic_fetch_add(&ledger->slots[owner].n_begun, 1);
    atomic_fetch_add(&ledger->sum.charged_bytes, 200);
    raise(SIGKILL);
}

static void die_inside_a_release(pl_ledger *ledger, pl_owner owner)
{
    claim_thirty(ledger, owner);
    atomic_fetch_add(&ledger->slots[owner].n_begun, 1);
    atomic_fetch_sub(&ledger->slots[owner].claimed_bytes, 20);
    raise(SIGKILL);
}

static void die_before_touching_anything(pl_ledger *ledger, pl_owner owner)
{
    claim_thirty(ledger, owner);
    atomic_fetch_add(&ledger->slots[owner].n_begun, 1);
    raise(SIGKILL);
}

static void takes_off_what_a_process_killed_inside_an_operation_left(void **state)
{
    fixture *f = *state;
    void (*const deaths[])(pl_ledger *, pl_owner) = {die_inside_a_claim, die_inside_a_release,
                                                     die_before_touching_anything};
    assert_int_equal(claim(f, 7), 0);
    for (size_t i = 0; i < PL_COUNT_OF(deaths); i++) {
        run_child_to_death(f, deaths[i]);
        assert_int_equal(pl_ledger_reclaim(f->ledger), 1);
        assert_charged(f, 7);
        assert_int_equal(pl_ledger_check(f->ledger, NULL), 0);
    }
}

static void waits_with_the_settling_until_everyone_is_at_rest(void **state)
{
    fixture *f = *state;
    run_child_to_death(f, die_inside_a_claim);
    atomic_fetch_add(&f->slot->n_begun, 1);
    atomic_fetch_add(&f->ledger->sum.charged_bytes, 50); /* ours, not yet in the slot */
    assert_int_equal(pl_ledger_reclaim(f->ledger), 1);
    assert_charged(f, 250);
    assert_int_equal(pl_ledger_check(f->ledger, NULL), 0);

    atomic_fetch_add(&f->slot->claimed_bytes, 50);
    atomic_fetch_add(&f->slot->n_done, 1);
    assert_int_equal(pl_ledger_reclaim(f->ledger), 0);
    assert_charged(f, 50);
}

static void refusals_do_not_keep_the_ledger_from_rest(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, LIMIT), 0);
    uint64_t n_begun = atomic_load(&f->slot->n_begun);
    assert_int_equal(claim(f, 1), PL_EBUDGET);
    assert_int_equal(atomic_load(&f->slot->n_begun), n_begun);
}

/* A slot that a process left behind when it died: ours cannot have started at tick 1. */
static pl_ledger_slot *bequeath_slot(fixture *f, uint64_t bytes)
{
    bequeath(f->ledger, f->slot + 1, dead_pid(), bytes);
    return f->slot + 1;
}

static void takes_over_from_a_reclaimer_that_died(void **state)
{
    fixture *f = *state;
    pl_ledger_slot *slot = bequeath_slot(f, 60);
    atomic_store(&slot->keeper_pid, atomic_load(&slot->pid)); /* any dead process */
    atomic_fetch_add(&slot->n_begun, 1);
    atomic_store(&slot->claimed_bytes, 0); /* it died before charged was lowered */
    assert_int_equal(pl_ledger_reclaim(f->ledger), 1);
    assert_charged(f, 0);
    assert_int_equal(atomic_load(&slot->keeper_pid), 0);
}

static void leaves_the_slot_to_a_reclaimer_that_lives(void **state)
{
    fixture *f = *state;
    pl_ledger_slot *slot = bequeath_slot(f, 60);
    atomic_store(&slot->keeper_pid, 1);
    assert_int_equal(pl_ledger_reclaim(f->ledger), 0);
    assert_charged(f, 60);
}

static void uses_a_slot_again_whose_reclaimer_died_at_the_last_step(void **state)
{
    fixture *f = *state;
    pl_ledger_slot *slot = bequeath_slot(f, 0);
    atomic_store(&slot->keeper_pid, atomic_load(&slot->pid));
    atomic_store(&slot->pid, 0);
    pid_t child;
    assert_int_equal(run_child(f, claim_thirty, &child), 0);
    assert_int_equal(atomic_load(&slot->pid), child);
    assert_int_equal(pl_ledger_reclaim(f->ledger), 1);
    assert_charged(f, 0);
}

static void drops_the_duties_of_threads_that_an_exec_ended(void **state)
{
    fixture *f = *state;
    pl_ledger_slot *slot = bequeath_slot(f, 60);
    atomic_store(&slot->keeper_pid, (uint32_t)getpid());
    atomic_store(&f->ledger->sum.settler_pid, (uint32_t)getpid());
    assert_int_equal(pl_ledger_reclaim(f->ledger), 0);
    pl_owner owner;
    assert_int_equal(pl_ledger_join(f->ledger, 1, &owner), 0);
    assert_int_equal(atomic_load(&f->ledger->sum.settler_pid), 0);
    assert_int_equal(pl_ledger_reclaim(f->ledger), 1);
    assert_charged(f, 0);
}

static void settles_what_the_threads_ended_by_an_exec_left(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 5), 0);
    atomic_fetch_add(&f->slot->n_begun, 1);
    atomic_fetch_add(&f->ledger->sum.charged_bytes, 70);
    pl_owner owner;
    assert_int_equal(pl_ledger_join(f->ledger, 1, &owner), 0);
    assert_charged(f, 70);
    assert_int_equal(pl_ledger_reclaim(f->ledger), 0);
    assert_charged(f, 0);
}

/* The check */

static void assert_check_says(fixture *f, const char *text)
{
    pl_error error = {0};
    f->broken = true;
    assert_int_equal(pl_ledger_check(f->ledger, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, text));
    assert_int_equal(pl_ledger_check(f->ledger, NULL), PL_ECORRUPT);
}

static void check_finds_a_damaged_header(void **state)
{
    fixture *f = *state;
    f->ledger->header.magic++;
    assert_check_says(f, "header");
    f->ledger->header.magic--;
    assert_int_equal(pl_ledger_check(f->ledger, NULL), 0);
    f->ledger->header.version++;
    assert_check_says(f, "header");
    f->ledger->header.version--;
    f->ledger->header.file_bytes--;
    assert_check_says(f, "header");
}

static void check_finds_a_free_slot_that_holds_bytes(void **state)
{
    fixture *f = *state;
    atomic_store(&f->ledger->sum.n_slots, 8);
    atomic_store(&f->ledger->slots[7].claimed_bytes, 3);
    atomic_store(&f->ledger->sum.charged_bytes, 3);
    assert_check_says(f, "free slot 7 holds 3 bytes");
}

static void check_finds_a_slot_that_released_too_much(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 10), 0);
    pl_ledger_release(f->ledger, f->owner, 11);
    assert_check_says(f, "slot 0 released more than it claimed");
}

static void check_finds_a_charge_below_zero(void **state)
{
    fixture *f = *state;
    atomic_store(&f->ledger->sum.charged_bytes, (uint64_t)-1);
    assert_check_says(f, "more was released than charged");
}

static void check_finds_an_impossible_timeline(void **state)
{
    fixture *f = *state;
    atomic_store(&f->ledger->sum.n_samples, PL_SAMPLES);
    assert_int_equal(pl_ledger_check(f->ledger, NULL), 0);
    atomic_store(&f->ledger->sum.n_samples, PL_SAMPLES + 1);
    assert_check_says(f, "4097 samples");
}

static void check_finds_a_charge_that_no_slot_holds(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 10), 0);
    atomic_fetch_add(&f->ledger->sum.charged_bytes, 1);
    assert_check_says(f, "charged is 11 bytes, the slots hold 10");
}

static void check_allows_too_much_charged_until_it_is_settled_but_never_too_little(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 10), 0);
    atomic_store(&f->ledger->sum.needs_settling, 1);
    atomic_fetch_add(&f->ledger->sum.charged_bytes, 1);
    assert_int_equal(pl_ledger_check(f->ledger, NULL), 0);
    atomic_fetch_sub(&f->ledger->sum.charged_bytes, 2);
    assert_check_says(f, "charged is 9 bytes, the slots hold 10");
}

static void check_does_not_compare_while_an_operation_is_under_way(void **state)
{
    fixture *f = *state;
    atomic_fetch_add(&f->slot->n_begun, 1);
    atomic_fetch_add(&f->ledger->sum.charged_bytes, 10);
    assert_int_equal(pl_ledger_check(f->ledger, NULL), 0);
    atomic_fetch_add(&f->slot->n_done, 1);
    assert_check_says(f, "charged is 10 bytes");
}

/* The last slots are the furthest from where the check reads charged: there a wrong order of reads
 * has microseconds to show. Pauses of about the length of a look let looks fall between operations,
 * and over their edges. */
enum { N_USED = 1024 };

static void *work_at_intervals(void *context)
{
    pl_ledger *ledger = context;
    enum { ROUNDS = 20000, OWN = N_USED - 2, DEAD = N_USED - 1 };
    uint64_t seed = 1;
    for (int i = 0; i < ROUNDS; i++) {
        if (pl_ledger_claim(ledger, OWN, 10, PL_CLAIM_REFUSABLE) == 0)
            pl_ledger_release(ledger, OWN, 10);
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        for (uint64_t n = seed >> 52; n > 0; n--)
            __asm__ volatile("");
        if (i % 4 == 0) {
            bequeath(ledger, &ledger->slots[DEAD], (uint32_t)getpid(), 60);
            pl_ledger_reclaim(ledger);
        }
    }
    atomic_store(&ledger->slots[OWN].pid, 0);
    return NULL;
}

static void check_is_not_fooled_by_operations_that_it_meets(void **state)
{
    fixture *f = *state;
    pl_atomic_u32 *pid = &f->ledger->slots[N_USED - 2].pid;
    atomic_store(&f->ledger->sum.n_slots, N_USED);
    atomic_store(pid, (uint32_t)getpid());
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, work_at_intervals, f->ledger), 0);
    pl_error error = {0};
    int r = 0;
    while (r == 0 && atomic_load(pid))
        r = pl_ledger_check(f->ledger, &error);
    pthread_join(thread, NULL);
    if (r < 0)
        fail_msg("%s", error.message);
}

/* The file */

static void creates_no_ledger_over_an_existing_file(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 10), 0);
    const pl_ledger_params params = {.limit_bytes = 1};
    pl_ledger *other = NULL;
    pl_error error = {0};
    assert_int_equal(pl_ledger_create(f->path, &params, &other, &error), -EEXIST);
    assert_null(other);
    assert_non_null(strstr(error.message, f->path));
    assert_int_equal(pl_ledger_open(f->path, 0, &other, NULL), 0);
    assert_int_equal(pl_ledger_charged_bytes(other), 10);
    pl_ledger_close(other);
}

static void says_when_the_folder_is_missing(void **state)
{
    (void)state;
    const pl_ledger_params params = {.limit_bytes = 1};
    pl_ledger *ledger = NULL;
    const char *path = "/tmp/plimsoll-no-such-folder/ledger";
    assert_int_equal(pl_ledger_create(path, &params, &ledger, NULL), -ENOENT);
    assert_int_equal(pl_ledger_open(path, 0, &ledger, NULL), -ENOENT);
    assert_null(ledger);
}

static void is_private_to_its_user(void **state)
{
    fixture *f = *state;
    struct stat info;
    assert_int_equal(stat(f->path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_true((uint64_t)info.st_blocks * 512 >= sizeof(pl_ledger)); /* nothing left to allocate */
}

static void keeps_no_space_for_slots_that_were_never_used(void **state)
{
    fixture *f = *state;
    struct stat before, after;
    assert_int_equal(claim(f, 10), 0);
    assert_int_equal(stat(f->path, &before), 0);
    pl_ledger_shrink(f->ledger);
    assert_int_equal(stat(f->path, &after), 0);
    if (after.st_blocks == before.st_blocks)
        skip(); /* a file system that makes no holes */
    assert_int_equal(after.st_size, before.st_size);
    assert_true((uint64_t)after.st_blocks * 512 < sizeof(pl_ledger) / 2);
    assert_int_equal(pl_ledger_check(f->ledger, NULL), 0);
    assert_charged(f, 10);
}

static void shares_one_sum_between_mappings(void **state)
{
    fixture *f = *state;
    pl_ledger *other;
    assert_int_equal(pl_ledger_open(f->path, 1, &other, NULL), 0);
    assert_int_equal(claim(f, 600), 0);
    assert_int_equal(pl_ledger_claim(other, f->owner, 600, PL_CLAIM_REFUSABLE), PL_EBUDGET);
    assert_int_equal(pl_ledger_claim(other, f->owner, 400, PL_CLAIM_REFUSABLE), 0);
    pl_ledger_close(other);
    assert_charged(f, LIMIT); /* claims outlive the mapping */
    pl_ledger_close(NULL);
}

/* Writes a file beside the ledger and returns what opening it says. */
static int open_bytes(fixture *f, const void *bytes, size_t n, off_t length, pl_error *error)
{
    char path[128];
    snprintf(path, sizeof path, "%s/other", f->folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(ftruncate(fd, length), 0);
    close(fd);
    pl_ledger *ledger = NULL;
    int r = pl_ledger_open(path, 0, &ledger, error);
    assert_int_equal(r == 0, ledger != NULL);
    pl_ledger_close(ledger);
    unlink(path);
    return r;
}

static void opens_nothing_that_is_not_a_whole_ledger_of_this_version(void **state)
{
    fixture *f = *state;
    enum { HEAD = sizeof(pl_ledger_header) };
    pl_error error = {0};
    pl_ledger_header head = f->ledger->header;
    assert_int_equal(open_bytes(f, &head, HEAD, sizeof(pl_ledger), NULL), 0);

    assert_int_equal(open_bytes(f, &head, 0, 0, NULL), PL_ECORRUPT);
    assert_int_equal(open_bytes(f, &head, 8, 8, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "not a ledger"));
    assert_int_equal(open_bytes(f, &head, 0, sizeof(pl_ledger), NULL), PL_ECORRUPT);
    assert_int_equal(open_bytes(f, &head, HEAD, HEAD, NULL), PL_ECORRUPT);
    assert_int_equal(open_bytes(f, &head, HEAD, sizeof(pl_ledger) - 1, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "truncated"));

    head.version++;
    assert_int_equal(open_bytes(f, &head, HEAD, sizeof(pl_ledger), &error), PL_EVERSION);
    char reads[32];
    snprintf(reads, sizeof reads, "reads version %u", PL_LEDGER_VERSION & 0xffff);
    assert_non_null(strstr(error.message, reads));
    head.version--;
    head.file_bytes++;
    assert_int_equal(open_bytes(f, &head, HEAD, sizeof(pl_ledger), NULL), PL_ECORRUPT);
    head.file_bytes--;
    head.magic ^= 1;
    assert_int_equal(open_bytes(f, &head, HEAD, sizeof(pl_ledger), NULL), PL_ECORRUPT);
}

static void opens_neither_folders_nor_pipes(void **state)
{
    fixture *f = *state;
    pl_ledger *ledger = NULL;
    assert_int_equal(pl_ledger_open(f->folder, 0, &ledger, NULL), -EISDIR);
    char path[128];
    snprintf(path, sizeof path, "%s/pipe", f->folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    /* And does not wait for a writer. */
    assert_int_equal(pl_ledger_open(path, 0, &ledger, NULL), PL_ECORRUPT);
    assert_null(ledger);
    unlink(path);
}

static void exit_on_fault(int signal)
{
    (void)signal;
    _exit(42);
}

static void reads_but_cannot_write_a_ledger_opened_for_reading(void **state)
{
    fixture *f = *state;
    assert_int_equal(claim(f, 10), 0);
    pl_ledger *reader;
    assert_int_equal(pl_ledger_open(f->path, 0, &reader, NULL), 0);
    assert_int_equal(pl_ledger_charged_bytes(reader), 10);
    assert_int_equal(pl_ledger_limit_bytes(reader), LIMIT);
    assert_int_equal(pl_ledger_reserve_bytes(reader), RESERVE);
    assert_int_equal(pl_ledger_check(reader, NULL), 0);

    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, exit_on_fault);
        pl_ledger_set_limit_bytes(reader, 1);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    assert_int_equal(pl_ledger_limit_bytes(f->ledger), LIMIT);
    pl_ledger_close(reader);
}

static void opens_the_ledger_of_the_run_it_is_in(void **state)
{
    fixture *f = *state;
    pl_ledger *ledger = NULL;
    pl_error error = {0};
    unsetenv(PL_LEDGER_VARIABLE);
    assert_int_equal(pl_ledger_open_run(&ledger, &error), -ENOENT);
    assert_non_null(strstr(error.message, PL_LEDGER_VARIABLE));
    setenv(PL_LEDGER_VARIABLE, "", 1);
    assert_int_equal(pl_ledger_open_run(&ledger, NULL), -ENOENT);
    assert_null(ledger);
    setenv(PL_LEDGER_VARIABLE, f->path, 1);
    assert_int_equal(pl_ledger_open_run(&ledger, NULL), 0);
    assert_int_equal(pl_ledger_limit_bytes(ledger), LIMIT);
    pl_ledger_close(ledger);
    unsetenv(PL_LEDGER_VARIABLE);
}

/* 0 when creating a ledger at `path` fails with `code` and leaves no file behind. */
static int create_fails(const char *path, int code)
{
    const pl_ledger_params params = {.limit_bytes = LIMIT};
    pl_ledger *ledger = NULL;
    pl_error error = {0};
    int r = pl_ledger_create(path, &params, &ledger, &error);
    if (r != code || ledger || !strstr(error.message, path))
        return 1;
    return access(path, F_OK) == 0 ? 2 : 0;
}

static void fails_without_a_signal_at_the_limit_on_file_sizes(void **state)
{
    fixture *f = *state;
    pid_t pid = fork();
    if (pid == 0) {
        char path[128];
        snprintf(path, sizeof path, "%s/large", f->folder);
        const struct rlimit limit = {sizeof(pl_ledger) - 1, RLIM_INFINITY};
        _exit(setrlimit(RLIMIT_FSIZE, &limit) < 0 ? 3 : create_fails(path, -EFBIG));
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* A file system of 64 KiB, seen by this process only. */
static bool mount_small_disk(const char *folder)
{
    if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return false;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return false;
    return mount("none", folder, "tmpfs", 0, "size=64k") == 0;
}

static void fails_without_a_signal_on_a_full_disk(void **state)
{
    fixture *f = *state;
    pid_t pid = fork();
    if (pid == 0)
        _exit(mount_small_disk(f->folder) ? create_fails(f->path, -ENOSPC) : NOT_POSSIBLE_HERE);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_POSSIBLE_HERE) {
        print_message("this machine lets nobody mount a file system\n");
        skip();
    }
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(refuses_the_byte_that_crosses_the_line),
        TEST(grants_again_what_was_released),
        TEST(enters_the_reserve_with_its_kind_only_and_never_passes_it),
        TEST(grants_nothing_for_nothing),
        TEST(refuses_sizes_whose_sum_would_wrap),
        TEST(moves_the_line_and_keeps_what_is_charged),
        TEST(charges_what_is_measured_over_every_mark_and_takes_it_back),
        TEST(remembers_the_peak_of_the_sum_and_of_each_owner),
        TEST(gives_everything_back_when_an_owner_leaves),
        TEST(gives_the_same_slot_to_whoever_joins_twice),
        TEST(gives_a_slot_of_its_own_to_the_child_of_a_fork),
        TEST(says_so_when_no_slot_is_free),
        TEST(takes_a_slot_of_the_dead_when_all_are_taken),
        TEST(uses_the_slots_of_the_dead_before_more_than_a_crowd),
        TEST(has_room_for_more_than_a_crowd_of_the_living),
        TEST(uses_the_lowest_slot_that_is_free),
        TEST(a_slot_that_is_being_measured_is_free_only_afterwards),
        TEST(measures_another_process_in_its_slot_only),
        TEST(brackets_what_it_measures_of_another_in_its_own_slot),
        TEST(takes_a_pid_with_another_start_time_for_another_process),
        TEST(reclaims_what_a_killed_process_held),
        TEST(reclaims_the_slot_of_a_process_that_is_not_waited_for),
        TEST(leaves_the_living_alone),
        TEST(takes_off_what_a_process_killed_inside_an_operation_left),
        TEST(waits_with_the_settling_until_everyone_is_at_rest),
        TEST(refusals_do_not_keep_the_ledger_from_rest),
        TEST(takes_over_from_a_reclaimer_that_died),
        TEST(leaves_the_slot_to_a_reclaimer_that_lives),
        TEST(uses_a_slot_again_whose_reclaimer_died_at_the_last_step),
        TEST(drops_the_duties_of_threads_that_an_exec_ended),
        TEST(settles_what_the_threads_ended_by_an_exec_left),
        TEST(check_finds_a_damaged_header),
        TEST(check_finds_a_free_slot_that_holds_bytes),
        TEST(check_finds_a_slot_that_released_too_much),
        TEST(check_finds_a_charge_below_zero),
        TEST(check_finds_an_impossible_timeline),
        TEST(check_finds_a_charge_that_no_slot_holds),
        TEST(check_allows_too_much_charged_until_it_is_settled_but_never_too_little),
        TEST(check_does_not_compare_while_an_operation_is_under_way),
        TEST(check_is_not_fooled_by_operations_that_it_meets),
        TEST(creates_no_ledger_over_an_existing_file),
        TEST(says_when_the_folder_is_missing),
        TEST(is_private_to_its_user),
        TEST(keeps_no_space_for_slots_that_were_never_used),
        TEST(shares_one_sum_between_mappings),
        TEST(opens_nothing_that_is_not_a_whole_ledger_of_this_version),
        TEST(opens_neither_folders_nor_pipes),
        TEST(reads_but_cannot_write_a_ledger_opened_for_reading),
        TEST(opens_the_ledger_of_the_run_it_is_in),
        TEST(fails_without_a_signal_at_the_limit_on_file_sizes),
        TEST(fails_without_a_signal_on_a_full_disk),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
