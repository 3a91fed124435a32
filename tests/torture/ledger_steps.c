/* SPDX-License-Identifier: Apache-2.0 */
/* Death at every instruction: a child is led step by step through one operation of the ledger and
 * killed after the first step, after the second, and so on to the last. After each death
 *   - charged is not less than what the slots hold, and not more than the line;
 *   - one reclaim gives everything back that the child had, and nothing of anyone else's.
 * And while it measures somebody else, that one begins anew (exec), leaves, or sees it die, after
 * each step of it. The storm (ledger_storm.c) has threads and chance; this has order: each death is
 * met once. Where an operation has more than MAX_DEATHS instructions (sanitizers) they are spread
 * evenly. Alone:
 *   gcc -std=gnu17 -D_GNU_SOURCE -O2 -fno-strict-aliasing -Iinclude -Isrc \
 *       tests/torture/ledger_steps.c src/ledger/[a-z]*.c src/sys/proc.c src/sys/fixed_text.c \
 *       src/base/error.c -lcmocka */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/ledger.h"

/* TSan makes an operation fifty times as long, and has nothing to say of a process of one thread.
 */
#ifdef __SANITIZE_THREAD__
enum { MAX_DEATHS = 8, MAX_BRACKET_STEPS = 1 };
#else
enum { MAX_DEATHS = 400, MAX_BRACKET_STEPS = 48 };
#endif

enum { LIMIT = 1000, OURS = 7 };

typedef void operation(pl_ledger *ledger, pl_owner owner);

static int set_up(void **state)
{
    char folder[] = "/tmp/plimsoll-steps-XXXXXX";
    char path[64];
    const pl_ledger_params params = {.limit_bytes = LIMIT, .reserve_bytes = 100};
    pl_ledger *ledger;
    pl_owner owner;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/ledger", folder);
    int r = pl_ledger_create(path, &params, &ledger, NULL);
    unlink(path);
    rmdir(folder);
    if (r < 0 || pl_ledger_join(ledger, 1, &owner) < 0)
        return -1;
    *state = ledger;
    return pl_ledger_claim(ledger, owner, OURS, PL_CLAIM_REFUSABLE);
}

static int tear_down(void **state)
{
    pl_ledger_close(*state);
    return 0;
}

static uint64_t held_by_slots(const pl_ledger *ledger)
{
    uint64_t sum = 0;
    for (int i = 0; i < pl_ledger_n_slots(ledger); i++)
        sum += atomic_load(&ledger->slots[i].claimed_bytes) +
               atomic_load(&ledger->slots[i].measured_bytes);
    return sum;
}

/* The child stops itself before and after the operation. */
static _Noreturn void live_between_stops(pl_ledger *ledger, operation *operate)
{
    pl_owner owner;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || pl_ledger_join(ledger, 1, &owner) < 0)
        _exit(1);
    if (pl_ledger_claim(ledger, owner, 30, PL_CLAIM_REFUSABLE) < 0)
        _exit(1);
    pl_ledger_measure(ledger, owner, 20);
    raise(SIGSTOP);
    operate(ledger, owner);
    raise(SIGSTOP);
    _exit(0);
}

static pid_t start_child(pl_ledger *ledger, operation *operate)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        live_between_stops(ledger, operate);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    return pid;
}

/* Leads the child through at most `max` instructions. Returns how many it took until it stopped. */
static long step(pid_t pid, long max)
{
    long n = 0;
    for (; n < max; n++) {
        int status;
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSTOPPED(status));
        if (WSTOPSIG(status) != SIGTRAP)
            break;
    }
    return n;
}

static void kill_child(pid_t pid)
{
    int status;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

/* Returns how many instructions it took; fewer than `max` when it came to the end. */
static long die_after(pl_ledger *ledger, operation *operate, long max)
{
    pid_t pid = start_child(ledger, operate);
    long n = step(pid, max);
    kill_child(pid);

    uint64_t charged = pl_ledger_charged_bytes(ledger);
    if (charged < held_by_slots(ledger) || charged > LIMIT)
        fail_msg("killed after %ld instructions: %lu bytes charged, %lu held, the line is at %d", n,
                 charged, held_by_slots(ledger), LIMIT);
    pl_ledger_reclaim(ledger);
    charged = pl_ledger_charged_bytes(ledger);
    if (charged != OURS || held_by_slots(ledger) != OURS)
        fail_msg("killed after %ld instructions, reclaimed: %lu bytes charged, %lu held", n,
                 charged, held_by_slots(ledger));
    assert_int_equal(pl_ledger_check(ledger, NULL), 0);
    return n;
}

static void die_everywhere(pl_ledger *ledger, operation *operate)
{
    long n_instructions = die_after(ledger, operate, INT32_MAX);
    long stride = 1 + n_instructions / MAX_DEATHS;
    for (long i = 0; i < n_instructions; i += stride)
        die_after(ledger, operate, i);
    print_message("# %ld instructions, a death at every %ld.\n", n_instructions, stride);
    assert_true(n_instructions > 10);
    assert_true(atomic_load(&ledger->sum.needs_settling) > 0); /* some fell inside the bracket */
}

static void claim(pl_ledger *ledger, pl_owner owner)
{
    if (pl_ledger_claim(ledger, owner, 200, PL_CLAIM_REFUSABLE) < 0)
        _exit(1);
}

static void claim_what_is_refused(pl_ledger *ledger, pl_owner owner)
{
    if (pl_ledger_claim(ledger, owner, LIMIT, PL_CLAIM_REFUSABLE) == 0)
        _exit(1);
}

static void release(pl_ledger *ledger, pl_owner owner)
{
    pl_ledger_release(ledger, owner, 30);
}

static void measure_more(pl_ledger *ledger, pl_owner owner)
{
    pl_ledger_measure(ledger, owner, 400);
}

static void measure_less(pl_ledger *ledger, pl_owner owner)
{
    pl_ledger_measure(ledger, owner, 5);
}

static void start_again(pl_ledger *ledger, pl_owner owner)
{
    /* As after exec: emptied by its own process, which holds bytes. */
    if (pl_ledger_join(ledger, 1, &owner) < 0)
        _exit(1);
}

static void inside_a_claim(void **state)
{
    die_everywhere(*state, claim);
}

static void inside_a_claim_that_is_refused(void **state)
{
    pl_ledger *ledger = *state;
    for (long i = 0; i < MAX_DEATHS && die_after(ledger, claim_what_is_refused, i) == i; i++)
        ;
    assert_int_equal(atomic_load(&ledger->sum.needs_settling), 0);
}

static void inside_a_release(void **state)
{
    die_everywhere(*state, release);
}

static void inside_a_measure_that_rises(void **state)
{
    die_everywhere(*state, measure_more);
}

static void inside_a_measure_that_falls(void **state)
{
    die_everywhere(*state, measure_less);
}

static void inside_a_leave(void **state)
{
    die_everywhere(*state, pl_ledger_leave);
}

/* The look at /proc and at all slots comes first, some ten thousand instructions: the steps are
 * counted from where the slot's bracket opens. It is some 40 instructions long, most of which are
 * those of a leave: every fourth will do. */
static void inside_a_fresh_start(void **state)
{
    pl_ledger *ledger = *state;
    for (long i = 0; i < MAX_BRACKET_STEPS; i += 4) {
        pid_t pid = start_child(ledger, start_again);
        const pl_ledger_slot *slot = &ledger->slots[1];
        uint64_t n_begun = atomic_load(&slot->n_begun);
        while (atomic_load(&slot->n_begun) == n_begun && step(pid, 1) == 1)
            ;
        step(pid, i);
        kill_child(pid);
        assert_true(pl_ledger_charged_bytes(ledger) >= held_by_slots(ledger));
        pl_ledger_reclaim(ledger);
        assert_int_equal(pl_ledger_charged_bytes(ledger), OURS);
        assert_int_equal(pl_ledger_check(ledger, NULL), 0);
    }
    assert_true(atomic_load(&ledger->sum.needs_settling) > 0);
}

/* The test's own process, whose slot is the first. Asking for it by getppid() would be a thousand
 * instructions of the loader's. */
static pid_t tester;

static void measure_more_of_another(pl_ledger *ledger, pl_owner owner)
{
    (void)!pl_ledger_measure_other(ledger, owner, 0, tester, 400);
}

static void measure_less_of_another(pl_ledger *ledger, pl_owner owner)
{
    (void)!pl_ledger_measure_other(ledger, owner, 0, tester, 5);
}

static void finish_child(pid_t pid)
{
    int status;
    assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
}

/* Everybody is at rest, and each operation was counted once where it began and once at its end. */
static void assert_whole(const pl_ledger *ledger, const char *when, long n)
{
    for (int i = 0; i < pl_ledger_n_slots(ledger); i++) {
        const pl_ledger_slot *slot = &ledger->slots[i];
        if (atomic_load(&slot->n_begun) != atomic_load(&slot->n_done))
            fail_msg("%s after %ld instructions: slot %d began %lu operations and did %lu", when, n,
                     i, atomic_load(&slot->n_begun), atomic_load(&slot->n_done));
    }
    uint64_t charged = pl_ledger_charged_bytes(ledger);
    if (charged != held_by_slots(ledger))
        fail_msg("%s after %ld instructions: %lu bytes charged, %lu held", when, n, charged,
                 held_by_slots(ledger));
    assert_int_equal(pl_ledger_check(ledger, NULL), 0);
}

typedef void meanwhile(pl_ledger *ledger, pid_t child);

static void see_it_die(pl_ledger *ledger, pid_t child)
{
    (void)ledger;
    kill_child(child);
}

/* Returns how many instructions it took; fewer than `max` when it came to the end before. */
static long meet_after(pl_ledger *ledger, operation *operate, meanwhile *act, const char *when,
                       long max)
{
    /* Like this, because a child that died may have been at it. */
    assert_int_equal(pl_ledger_measure_other(ledger, 0, 0, tester, 20), 0);
    pid_t pid = start_child(ledger, operate);
    long n = step(pid, max);
    act(ledger, pid);
    assert_true(pl_ledger_charged_bytes(ledger) >= held_by_slots(ledger));
    if (act != see_it_die) {
        if (n == max)
            finish_child(pid);
        kill_child(pid);
    }
    pl_ledger_reclaim(ledger);
    assert_whole(ledger, when, n);
    return n;
}

static void meet_everywhere(pl_ledger *ledger, meanwhile *act, const char *when)
{
    operation *const operations[] = {measure_more_of_another, measure_less_of_another};
    for (size_t i = 0; i < PL_COUNT_OF(operations); i++) {
        long n_instructions = meet_after(ledger, operations[i], act, when, INT32_MAX);
        long stride = 1 + n_instructions / MAX_DEATHS;
        for (long n = 0; n < n_instructions; n += stride)
            meet_after(ledger, operations[i], act, when, n);
        print_message("# %ld instructions, one meeting at every %ld.\n", n_instructions, stride);
        assert_true(n_instructions > 10);
    }
}

static void begin_anew(pl_ledger *ledger, pid_t child)
{
    pl_owner owner;
    (void)child;
    assert_int_equal(pl_ledger_join(ledger, 1, &owner), 0);
    assert_int_equal(owner, 0);
}

static void who_is_measured_begins_anew(void **state)
{
    meet_everywhere(*state, begin_anew, "joined anew");
}

/* Nothing is left where it was: neither what it had, nor what was measured of it too late. */
static void leave(pl_ledger *ledger, pid_t child)
{
    (void)child;
    pl_ledger_leave(ledger, 0);
}

static void who_is_measured_leaves(void **state)
{
    pl_ledger *ledger = *state;
    pl_owner owner;
    long n_instructions = 1, stride = 1;
    for (long n = INT32_MAX; n >= 0; n = n == INT32_MAX ? n_instructions : n - stride) {
        long taken = meet_after(ledger, measure_more_of_another, leave, "left", n);
        assert_int_equal(pl_ledger_charged_bytes(ledger), 0);
        assert_int_equal(pl_ledger_join(ledger, 1, &owner), 0);
        assert_int_equal(owner, 0);
        if (n == INT32_MAX) {
            n_instructions = taken;
            stride = 1 + taken / MAX_DEATHS;
        }
    }
}

static void who_measures_another_dies(void **state)
{
    meet_everywhere(*state, see_it_die, "killed");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    tester = getpid();
    const struct CMUnitTest tests[] = {
        TEST(inside_a_claim),
        TEST(inside_a_claim_that_is_refused),
        TEST(inside_a_release),
        TEST(inside_a_measure_that_rises),
        TEST(inside_a_measure_that_falls),
        TEST(inside_a_leave),
        TEST(inside_a_fresh_start),
        TEST(who_is_measured_begins_anew),
        TEST(who_is_measured_leaves),
        TEST(who_measures_another_dies),
    };
    return cmocka_run_group_tests_name("ledger_steps", tests, NULL, NULL);
}
