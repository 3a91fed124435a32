/* SPDX-License-Identifier: Apache-2.0 */
/* Death at every instruction: a child is led step by step through one operation of the ledger and
 * killed after the first step, after the second, and so on to the last. After each death
 *   - charged is not less than what the slots hold, and not more than the line;
 *   - one reclaim gives everything back that the child had, and nothing of anyone else's.
 * The storm (ledger_storm.c) has threads and chance; this has order: each death is met once. Where
 * an operation has more than MAX_DEATHS instructions (sanitizers) they are spread evenly. Alone:
 *   gcc -std=gnu17 -D_GNU_SOURCE -O2 -fno-strict-aliasing -Iinclude -Isrc \
 *       tests/torture/ledger_steps.c src/ledger/[a-z]*.c src/sys/proc.c src/sys/text.c \
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
    for (int i = 0; i < PL_SLOTS; i++)
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
        const pl_slot *slot = &ledger->slots[1];
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(inside_a_claim),
        TEST(inside_a_claim_that_is_refused),
        TEST(inside_a_release),
        TEST(inside_a_measure_that_rises),
        TEST(inside_a_measure_that_falls),
        TEST(inside_a_leave),
        TEST(inside_a_fresh_start),
    };
    return cmocka_run_group_tests_name("ledger_steps", tests, NULL, NULL);
}
