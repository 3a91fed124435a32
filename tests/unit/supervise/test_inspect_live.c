/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of live children: what they wait for, where they stand, the ring of a deadlock, and that
 * looking at them changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise/inspect.h"

enum {
    PATIENCE = 3000, /* looks, 10 ms apart: far more than threads need to fall asleep */
    CONTENDERS = 8,
    CONTENDED_LOOKS = 100,
    SIGNALS = 30,
    EXITING_CHILDREN = 40, /* each ends at another moment of being looked at */
};

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both_hold;
static int to_child[2], from_child[2];

static pid_t start_child(void (*body)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body();
        _exit(0);
    }
    return pid;
}

static void end_child(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static pthread_t start_thread(const char *name, void *(*body)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) != 0)
        _exit(1);
    pthread_setname_np(thread, name);
    return thread;
}

static void look(pid_t pid, pl_inspect_process *process)
{
    pl_error error = {0};
    if (pl_inspect_live(pid, 0, 0, process, &error) < 0)
        fail_msg("%s", error.message);
}

static const pl_inspect_thread *find_thread(const pl_inspect_process *process, const char *name)
{
    for (int i = 0; i < process->n_threads; i++)
        if (strcmp(process->threads[i].name, name) == 0)
            return &process->threads[i];
    return NULL;
}

/* Looks until `n` threads are there and all of them sleep. */
static void look_until_asleep(pid_t pid, int n, pl_inspect_process *process)
{
    for (int i = 0; i < PATIENCE; i++) {
        usleep(10000);
        look(pid, process);
        int n_asleep = 0;
        for (int j = 0; j < process->n_threads; j++)
            n_asleep += strncmp(process->threads[j].waits_for, "nothing", 7) != 0;
        if (n_asleep == n && process->n_threads == n)
            return;
        pl_inspect_process_done(process);
    }
    fail_msg("process %d does not fall asleep", pid);
}

static bool stands_in(const pl_inspect_thread *thread, const char *symbol)
{
    for (int i = 0; i < thread->native.n_frames; i++)
        if (strcmp(thread->native.frames[i].symbol, symbol) == 0)
            return true;
    return false;
}

/* --- a deadlock among other threads --- */

static PL_NOINLINE void *take_first_then_second(void *unused)
{
    pthread_mutex_lock(&first);
    pthread_barrier_wait(&both_hold);
    pthread_mutex_lock(&second);
    return unused;
}

static PL_NOINLINE void *take_second_then_first(void *unused)
{
    pthread_mutex_lock(&second);
    pthread_barrier_wait(&both_hold);
    pthread_mutex_lock(&first);
    return unused;
}

static PL_NOINLINE void *wait_for_condition(void *unused)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_cond_wait(&never, &mutex);
    return unused;
}

/* Sends back every byte that it gets. */
static PL_NOINLINE void *echo(void *unused)
{
    char byte;
    while (read(to_child[0], &byte, 1) == 1)
        if (write(from_child[1], &byte, 1) != 1)
            _exit(1);
    return unused;
}

static void *nap(void *unused)
{
    for (;;)
        sleep(1000);
    return unused;
}

static PL_NOINLINE void deadlock(void)
{
    pthread_barrier_init(&both_hold, NULL, 2);
    pthread_t joined = start_thread("ab", take_first_then_second);
    start_thread("ba", take_second_then_first);
    start_thread("condition", wait_for_condition);
    start_thread("echo", echo);
    start_thread("nap", nap);
    pthread_join(joined, NULL);
    _exit(1);
}

static void assert_waits(const pl_inspect_process *process, const char *name, const char *words,
                         pid_t owner, bool outside)
{
    const pl_inspect_thread *thread = find_thread(process, name);
    assert_non_null(thread);
    char expected[96];
    snprintf(expected, sizeof expected, words, owner ? owner : to_child[0]);
    assert_string_equal(thread->waits_for, expected);
    assert_int_equal(thread->lock_owner_tid, owner);
    assert_int_equal(thread->waits_outside, outside);
}

static void each_wait_is_told_and_the_ring_is_found(void **state)
{
    (void)state;
    assert_int_equal(pipe(to_child), 0);
    assert_int_equal(pipe(from_child), 0);
    pid_t pid = start_child(deadlock);
    pl_inspect_process process;
    look_until_asleep(pid, 6, &process);

    const pl_inspect_thread *ab = find_thread(&process, "ab");
    const pl_inspect_thread *ba = find_thread(&process, "ba");
    assert_true(ab && ba);
    assert_waits(&process, "ab", "a lock held by thread %d", ba->tid, false);
    assert_waits(&process, "ba", "a lock held by thread %d", ab->tid, false);
    assert_waits(&process, "condition", "a condition or semaphore", 0, false);
    assert_waits(&process, "echo", "input on descriptor %d (a pipe)", 0, true);
    assert_true(find_thread(&process, "nap")->waits_outside);
    assert_int_equal(process.threads[0].tid, pid);
    assert_int_equal(process.threads[0].lock_owner_tid, ab->tid); /* it joins that thread */
    assert_int_equal(ab->lock_address, (uint64_t)&second);

    assert_int_equal(process.n_cycle, 2);
    assert_int_equal(process.cycle[0], ab->tid);
    assert_int_equal(process.cycle[1], ba->tid);

    assert_true(stands_in(ab, "take_first_then_second"));
    assert_true(stands_in(ba, "take_second_then_first"));
    assert_true(stands_in(find_thread(&process, "condition"), "wait_for_condition"));
    assert_true(stands_in(find_thread(&process, "echo"), "echo"));
    assert_true(stands_in(&process.threads[0], "deadlock"));
    pl_inspect_process_done(&process);

    char byte;
    assert_int_equal(write(to_child[1], "!", 1), 1);
    assert_int_equal(read(from_child[0], &byte, 1), 1); /* it goes on as before */
    assert_int_equal(byte, '!');
    end_child(pid);
}

/* --- rings that are special, and rings that are none --- */

static void lock_twice(void)
{
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&first);
}

static void a_thread_that_waits_for_itself_is_a_ring_of_one(void **state)
{
    (void)state;
    pid_t pid = start_child(lock_twice);
    pl_inspect_process process;
    look_until_asleep(pid, 1, &process);
    assert_string_equal(process.threads[0].waits_for, "a lock that it holds itself");
    assert_int_equal(process.n_cycle, 1);
    assert_int_equal(process.cycle[0], pid);
    pl_inspect_process_done(&process);
    end_child(pid);
}

static void *want_first(void *unused)
{
    pthread_mutex_lock(&first);
    return unused;
}

static void hold_first_and_join(void)
{
    pthread_mutex_lock(&first);
    pthread_join(start_thread("wants", want_first), NULL);
}

static void a_join_closes_a_ring_too(void **state)
{
    (void)state;
    pid_t pid = start_child(hold_first_and_join);
    pl_inspect_process process;
    look_until_asleep(pid, 2, &process);
    char expected[64];
    snprintf(expected, sizeof expected, "the end of thread %d", process.threads[1].tid);
    assert_string_equal(process.threads[0].waits_for, expected);
    assert_int_equal(process.n_cycle, 2);
    pl_inspect_process_done(&process);
    end_child(pid);
}

static void hold_first_and_nap(void)
{
    pthread_mutex_lock(&first);
    start_thread("wants", want_first);
    nap(NULL);
}

static void a_lock_whose_owner_sleeps_outside_is_no_ring(void **state)
{
    (void)state;
    pid_t pid = start_child(hold_first_and_nap);
    pl_inspect_process process;
    look_until_asleep(pid, 2, &process);
    assert_waits(&process, "wants", "a lock held by thread %d", pid, false);
    assert_int_equal(process.n_cycle, 0);
    pl_inspect_process_done(&process);
    end_child(pid);
}

/* Threads that take one lock at a time, now this and now that: never a deadlock, but threads looked
 * at one after another seem to be in one. */
static void *take_in_turn(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&first);
        usleep(1);
        pthread_mutex_unlock(&first);
        pthread_mutex_lock(&second);
        usleep(1);
        pthread_mutex_unlock(&second);
    }
    return unused;
}

static void contend(void)
{
    for (int i = 1; i < CONTENDERS; i++)
        start_thread("contender", take_in_turn);
    take_in_turn(NULL);
}

static void contention_is_not_taken_for_a_deadlock(void **state)
{
    (void)state;
    pid_t pid = start_child(contend);
    int n_lock_waits = 0;
    for (int i = 0; i < CONTENDED_LOOKS; i++) {
        pl_inspect_process process;
        look(pid, &process);
        for (int j = 0; j < process.n_threads; j++)
            n_lock_waits += process.threads[j].lock_owner_tid != 0;
        assert_int_equal(process.n_cycle, 0);
        pl_inspect_process_done(&process);
    }
    assert_true(n_lock_waits > 0); /* else there was nothing to be mistaken about */
    end_child(pid);
}

/* --- what looking must not change --- */

static _Atomic int *n_handled; /* shared with the child */

static void count_signal(int number)
{
    (void)number;
    atomic_fetch_add(n_handled, 1);
}

static void handle_signals(void)
{
    signal(SIGUSR1, count_signal);
    atomic_store(n_handled, 0);
    for (;;)
        pause();
}

static void no_signal_is_lost_while_looking(void **state)
{
    (void)state;
    n_handled =
        mmap(NULL, sizeof *n_handled, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(n_handled, MAP_FAILED);
    atomic_store(n_handled, -1);
    pid_t pid = start_child(handle_signals);
    while (atomic_load(n_handled) < 0)
        usleep(1000);
    for (int i = 1; i <= SIGNALS; i++) {
        pl_inspect_process process;
        assert_int_equal(kill(pid, SIGUSR1), 0);
        look(pid, &process);
        pl_inspect_process_done(&process);
        while (atomic_load(n_handled) < i)
            usleep(100); /* a lost signal makes this hang */
    }
    assert_int_equal(atomic_load(n_handled), SIGNALS);
    end_child(pid);
}

static void exit_soon(void)
{
    start_thread("nap", nap);
    usleep(500 + (useconds_t)(getpid() * 37 % 2000));
    _exit(7);
}

static void an_exit_while_looking_is_left_for_the_parent(void **state)
{
    (void)state;
    for (int i = 0; i < EXITING_CHILDREN; i++) {
        pid_t pid = start_child(exit_soon);
        siginfo_t info = {0};
        while (info.si_pid == 0) {
            pl_inspect_process process = {0};
            if (pl_inspect_live(pid, 0, 0, &process, NULL) >= 0)
                pl_inspect_process_done(&process);
            assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 7);
    }
}

static void a_process_that_is_gone_is_an_error(void **state)
{
    (void)state;
    pid_t pid = start_child(lock_twice);
    end_child(pid);
    pl_inspect_process process;
    pl_error error = {0};
    assert_int_equal(pl_inspect_live(pid, 0, 0, &process, &error), -ENOENT);
    assert_true(strlen(error.message) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wait_is_told_and_the_ring_is_found),
        cmocka_unit_test(a_thread_that_waits_for_itself_is_a_ring_of_one),
        cmocka_unit_test(a_join_closes_a_ring_too),
        cmocka_unit_test(a_lock_whose_owner_sleeps_outside_is_no_ring),
        cmocka_unit_test(contention_is_not_taken_for_a_deadlock),
        cmocka_unit_test(no_signal_is_lost_while_looking),
        cmocka_unit_test(an_exit_while_looking_is_left_for_the_parent),
        cmocka_unit_test(a_process_that_is_gone_is_an_error),
    };
    return cmocka_run_group_tests_name("inspect_live", tests, NULL, NULL);
}
