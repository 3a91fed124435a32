/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger's promises, while processes of several threads claim, release, measure, reclaim, fork,
 * exec, are stopped, and are killed at any instruction.
 *   ledger_storm [SECONDS]    in all; 30 by default, 5 under a sanitizer
 * What must hold, and who looks:
 *   - charged never passes the bound (the line; with the reserve's kind, line + reserve): a watcher
 *     all the time, and every worker after each of its operations;
 *   - a slot, and charged, hold at least what any one thread of that process holds: every worker.
 *     A slot given away while its owner lived would be found by this;
 *   - a newcomer's slot is empty: every worker;
 *   - while somebody is known to use more than the line, nothing is granted: the measuring storm,
 * in which the watcher also measures the others, as the supervisor does;
 *   - pl_ledger_check() finds nothing: the watcher, all the time;
 *   - with everyone dead, one reclaim leaves nothing charged, no slot taken, nothing unsettled.
 *
 * The test's process watches; a breeder, its child, has one thread, so that its forks are plain,
 * and raises and kills the workers. Alone:
 *   gcc -std=gnu17 -D_GNU_SOURCE -O2 -fno-strict-aliasing -Iinclude -Isrc \
 *       tests/torture/ledger_storm.c src/ledger/[a-z]*.c src/sys/proc.c src/sys/fixed_text.c \
 *       src/base/error.c -lcmocka -lpthread     (add -fsanitize=address,undefined or =thread) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../emulated.h"
#include "../sanitized.h"
#include "base/clock.h"
#include "ledger/ledger.h"
#include "sys/proc.h"

enum {
    N_WORKERS = 8,
    N_THREADS = 3,
    N_MODES = 3,
    MAX_CLAIMS = 16, /* at a time and thread: all together ask for 9 times the line */
    MAX_BYTES = 50,
    LIMIT = 1000,
    RESERVE = 200,
    FAR_OVER = 2 * LIMIT,
};

enum mode { REFUSABLE_ONLY, WITH_RESERVE, WITH_MEASURE };

/* The storm goes on while a failure is written: its end would kill the writer. */
enum failure_state { NO_FAILURE, FAILURE_BEING_WRITTEN, FAILURE_TOLD };

/* What the storm's processes tell each other: a mapped file, because it has to survive exec. */
typedef struct score {
    pl_atomic_u64 n_granted, n_refused, n_forks, n_execs, n_kills, n_reclaimed, n_checks;
    pl_atomic_u64 over_phase; /* odd: more than the line is measured, and nothing may be granted */
    pl_atomic_u32 failure_state; /* enum failure_state */
    char failure[200];           /* of the first who failed */
} score;

/* What a process of the storm knows; constant once it runs. */
static struct storm {
    char folder[64];
    enum mode mode;
    pl_ledger *ledger;
    score *score;
    pl_owner owner;
} storm;

static uint64_t total_ns = (SANITIZED ? 5 : 30) * PL_NS_PER_SEC;

/* xorshift64: each thread its own */
static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static uint64_t random_below(uint64_t *seed, uint64_t n)
{
    return (next_random(seed) >> 16) % n;
}

static uint64_t new_seed(void)
{
    return pl_clock_monotonic_ns() * 2654435761u + (uint64_t)getpid() + 1;
}

static void pause_at_most(uint64_t *seed, uint64_t max_us)
{
    usleep((useconds_t)random_below(seed, max_us));
}

static __attribute__((format(printf, 1, 2))) void fail_storm(const char *format, ...)
{
    uint32_t none = NO_FAILURE;
    if (!atomic_compare_exchange_strong(&storm.score->failure_state, &none, FAILURE_BEING_WRITTEN))
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(storm.score->failure, sizeof storm.score->failure, format, args);
    va_end(args);
    atomic_store(&storm.score->failure_state, FAILURE_TOLD);
}

static void path_of(const char *name, char path[96])
{
    snprintf(path, 96, "%s/%s", storm.folder, name);
}

static score *map_score(void)
{
    char path[96];
    path_of("score", path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(score)) < 0)
        return NULL;
    void *address = mmap(NULL, sizeof(score), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return address == MAP_FAILED ? NULL : address;
}

static void check_bound(void)
{
    uint64_t bound = storm.mode == WITH_RESERVE ? LIMIT + RESERVE : LIMIT;
    uint64_t charged = pl_ledger_charged_bytes(storm.ledger);
    if (storm.mode != WITH_MEASURE && charged > bound)
        fail_storm("%" PRIu64 " bytes are charged, the bound is %" PRIu64, charged, bound);
}

/* Workers */

typedef struct worker {
    uint64_t seed;
    uint64_t held_bytes; /* by this thread, so that nobody else can lower it while it looks */
    uint64_t n_granted, n_refused; /* not yet in the score: that would be most of the work */
    uint32_t n_claims;
    uint32_t claims[MAX_CLAIMS];
} worker;

static void check_own(const worker *w)
{
    uint64_t claimed = atomic_load(&storm.ledger->slots[storm.owner].claimed_bytes);
    uint64_t charged = pl_ledger_charged_bytes(storm.ledger);
    if (claimed < w->held_bytes || charged < w->held_bytes)
        fail_storm("a thread holds %" PRIu64 " bytes, its slot %" PRIu64 ", %" PRIu64
                   " are charged",
                   w->held_bytes, claimed, charged);
    check_bound();
}

static void claim_some(worker *w)
{
    if (w->n_claims == MAX_CLAIMS)
        return;
    uint32_t bytes = 1 + (uint32_t)random_below(&w->seed, MAX_BYTES);
    enum pl_claim_kind kind = PL_CLAIM_REFUSABLE;
    if (storm.mode == WITH_RESERVE && random_below(&w->seed, 4) == 0)
        kind = PL_CLAIM_RESERVE;

    uint64_t phase = atomic_load(&storm.score->over_phase);
    if (pl_ledger_claim(storm.ledger, storm.owner, bytes, kind) < 0) {
        w->n_refused++;
        return;
    }
    if (phase % 2 == 1 && atomic_load(&storm.score->over_phase) == phase)
        fail_storm("%" PRIu32 " bytes were granted while %d were measured", bytes, FAR_OVER);
    w->claims[w->n_claims++] = bytes;
    w->held_bytes += bytes;
    w->n_granted++;
}

static void release_some(worker *w)
{
    if (w->n_claims == 0)
        return;
    uint32_t bytes = w->claims[--w->n_claims];
    w->held_bytes -= bytes;
    pl_ledger_release(storm.ledger, storm.owner, bytes);
}

static void join_or_exit(void)
{
    if (pl_ledger_join(storm.ledger, 1, &storm.owner) < 0)
        _exit(0); /* every slot holds somebody who is not reclaimed yet */
    const pl_ledger_slot *slot = &storm.ledger->slots[storm.owner];
    uint64_t bytes = atomic_load(&slot->claimed_bytes);
    if (storm.mode != WITH_MEASURE) /* else the watcher may have measured it already */
        bytes += atomic_load(&slot->measured_bytes);
    if (bytes)
        fail_storm("a newcomer's slot holds %" PRIu64 " bytes", bytes);
}

/* The child of a threaded process: a short life on its own, ended in one of three ways. */
static void live_as_child(worker *w)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    join_or_exit();
    *w = (worker){.seed = new_seed()};
    for (int i = 0; i < 40; i++) {
        random_below(&w->seed, 2) ? claim_some(w) : release_some(w);
        check_own(w);
    }
    switch (random_below(&w->seed, 3)) {
    case 0:
        pl_ledger_leave(storm.ledger, storm.owner);
        break;
    case 1:
        raise(SIGKILL);
        break;
    default:
        break;
    }
    _exit(0);
}

static void fork_child(worker *w)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    pid_t pid = fork();
    if (pid == 0)
        live_as_child(w);
    if (pid > 0)
        atomic_fetch_add(&storm.score->n_forks, 1);
}

/* The other threads end wherever they are. */
static void become_another(void)
{
    char mode[2] = {(char)('0' + storm.mode), '\0'}, self[400] = "";
    atomic_fetch_add(&storm.score->n_execs, 1);
    if (!emulator())
        execl("/proc/self/exe", "ledger_storm", "--worker", storm.folder, mode, (char *)NULL);
    else if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
        execl(emulator(), "ledger_storm", self, "--worker", storm.folder, mode, (char *)NULL);
    fail_storm("exec: %s", strerror(errno));
}

/* Without rest, nothing could be settled. */
static void rest(worker *w)
{
    atomic_fetch_add(&storm.score->n_granted, w->n_granted);
    atomic_fetch_add(&storm.score->n_refused, w->n_refused);
    w->n_granted = w->n_refused = 0;
    pause_at_most(&w->seed, 1000);
}

static void act(worker *w)
{
    uint64_t dice = random_below(&w->seed, 65536);
    if (dice == 0)
        become_another();
    else if (dice < 4)
        fork_child(w);
    else if (dice < 10)
        pl_ledger_reclaim(storm.ledger);
    else if (dice < 26)
        rest(w);
    else if (dice < 24576 && storm.mode == WITH_MEASURE)
        pl_ledger_measure(storm.ledger, storm.owner, random_below(&w->seed, MAX_BYTES));
    else
        dice % 2 ? claim_some(w) : release_some(w);
    check_own(w);
}

static void *run_thread(void *unused)
{
    int marker;
    worker w = {.seed = new_seed() ^ (uint64_t)(uintptr_t)&marker};
    (void)unused;
    for (;;)
        act(&w);
    return NULL;
}

static _Noreturn void live_as_worker(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    join_or_exit();
    for (int i = 1; i < N_THREADS; i++) {
        pthread_t thread;
        while (pthread_create(&thread, NULL, run_thread, NULL) != 0)
            usleep(100); /* EAGAIN: a thread before it is inside exec, which ends this one too */
    }
    run_thread(NULL);
    _exit(1);
}

/* After exec: ledger_storm --worker FOLDER MODE. */
static int begin_again(char **argv)
{
    snprintf(storm.folder, sizeof storm.folder, "%s", argv[2]);
    storm.mode = (enum mode)(argv[3][0] - '0');
    char path[96];
    path_of("ledger", path);
    storm.score = map_score();
    if (!storm.score || pl_ledger_open(path, 1, &storm.ledger, NULL) < 0)
        return 1; /* the storm is over, and its folder gone */
    live_as_worker();
}

/* The breeder */

static pid_t raise_worker(void)
{
    pid_t pid = fork();
    if (pid == 0)
        live_as_worker();
    return pid;
}

static void kill_worker(pid_t pid, uint64_t *seed)
{
    if (random_below(seed, 4) == 0) {
        kill(pid, SIGSTOP);
        pause_at_most(seed, 1000);
    }
    kill(pid, SIGKILL);
    atomic_fetch_add(&storm.score->n_kills, 1);
}

/* What never reached the things it is for would prove nothing: on a slow machine it lasts longer.
 */
static bool was_a_storm(void)
{
    const score *s = storm.score;
    return s->n_granted > 0 && s->n_refused > 0 && s->n_kills > 0 && s->n_forks > 0 &&
           s->n_execs > 0 && atomic_load(&storm.ledger->sum.needs_settling) > 0;
}

static bool goes_on(uint64_t end_ns)
{
    return atomic_load(&storm.score->failure_state) != FAILURE_TOLD &&
           (pl_clock_monotonic_ns() < end_ns || !was_a_storm());
}

static _Noreturn void live_as_breeder(uint64_t end_ns)
{
    pid_t workers[N_WORKERS];
    uint64_t seed = new_seed();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int i = 0; i < N_WORKERS; i++)
        workers[i] = raise_worker();

    while (goes_on(end_ns)) {
        pause_at_most(&seed, 4000);
        pid_t *victim = &workers[random_below(&seed, N_WORKERS)];
        kill_worker(*victim, &seed);
        waitpid(*victim, NULL, 0);
        *victim = raise_worker();
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ; /* the children of the dead */
    }
    for (int i = 0; i < N_WORKERS; i++)
        kill(workers[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    _exit(0);
}

/* The watchers */

static pl_atomic_u32 storm_is_over;

static void *watch_charged(void *unused)
{
    (void)unused;
    while (!atomic_load(&storm_is_over)) {
        for (int i = 0; i < 256; i++)
            check_bound();
        usleep(50);
    }
    return NULL;
}

static void *reclaim_and_check(void *unused)
{
    (void)unused;
    while (!atomic_load(&storm_is_over)) {
        int n_freed = pl_ledger_reclaim(storm.ledger);
        atomic_fetch_add(&storm.score->n_reclaimed, (uint64_t)n_freed);
        pl_error error = {0};
        if (pl_ledger_check(storm.ledger, &error) < 0)
            fail_storm("%s", error.message);
        atomic_fetch_add(&storm.score->n_checks, 1);
        usleep(300);
    }
    return NULL;
}

/* Somebody who lives, and uses more than the line now and then. */
static void *measure_far_over(void *unused)
{
    (void)unused;
    while (!atomic_load(&storm_is_over)) {
        pl_ledger_measure(storm.ledger, storm.owner, FAR_OVER);
        atomic_fetch_add(&storm.score->over_phase, 1);
        usleep(500);
        atomic_fetch_add(&storm.score->over_phase, 1);
        pl_ledger_measure(storm.ledger, storm.owner, 0);
        usleep(2000);
    }
    return NULL;
}

/* Somebody who measures everybody else all the time, whatever becomes of them meanwhile. */
static void *measure_others(void *unused)
{
    uint64_t seed = new_seed();
    (void)unused;
    while (!atomic_load(&storm_is_over)) {
        for (int i = 0; i < pl_ledger_n_slots(storm.ledger); i++) {
            uint32_t pid = atomic_load(&storm.ledger->slots[i].pid);
            if (pid && i != storm.owner)
                (void)!pl_ledger_measure_other(storm.ledger, storm.owner, i, (pid_t)pid,
                                               random_below(&seed, MAX_BYTES));
        }
        pause_at_most(&seed, 20);
    }
    return NULL;
}

static int set_up(void **state)
{
    (void)state;
    strcpy(storm.folder, "/tmp/plimsoll-storm-XXXXXX");
    if (!mkdtemp(storm.folder))
        return -1;
    char path[96];
    path_of("ledger", path);
    const pl_ledger_params params = {.limit_bytes = LIMIT, .reserve_bytes = RESERVE};
    storm.score = map_score();
    atomic_store(&storm_is_over, 0);
    return storm.score ? pl_ledger_create(path, &params, &storm.ledger, NULL) : -1;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"ledger", "score"};
    for (size_t i = 0; i < PL_COUNT_OF(names); i++) {
        char path[96];
        path_of(names[i], path);
        unlink(path);
    }
    rmdir(storm.folder);
    pl_ledger_close(storm.ledger);
    munmap(storm.score, sizeof *storm.score);
    return 0;
}

static void print_summary(void)
{
    const score *s = storm.score;
    print_message("# %" PRIu64 " granted, %" PRIu64 " refused, %" PRIu64 " kills, %" PRIu64
                  " forks, %" PRIu64 " execs, %" PRIu64 " slots reclaimed by the watcher, %" PRIu64
                  " checks, %" PRIu32 " requests and acts of settling, peak %" PRIu64 "\n",
                  s->n_granted, s->n_refused, s->n_kills, s->n_forks, s->n_execs, s->n_reclaimed,
                  s->n_checks, atomic_load(&storm.ledger->sum.needs_settling),
                  pl_ledger_peak_bytes(storm.ledger));
}

static void assert_nothing_is_left(void)
{
    pl_error error = {0};
    pl_ledger_reclaim(storm.ledger);
    assert_int_equal(pl_ledger_charged_bytes(storm.ledger), 0);
    assert_int_equal(atomic_load(&storm.ledger->sum.needs_settling) % 2, 0);
    for (int i = 0; i < pl_ledger_n_slots(storm.ledger); i++)
        assert_int_equal(atomic_load(&storm.ledger->slots[i].pid), 0);
    if (pl_ledger_check(storm.ledger, &error) < 0)
        fail_msg("%s", error.message);
}

/* The breeder has waited for those whose parents died before them, but not under qemu-user, which
 * refuses PR_SET_CHILD_SUBREAPER (7.2). All have inherited `lives`, a pipe's end, and the pipe ends
 * with the last of them; the kernel closes it a moment before that one counts as dead. */
static void wait_for_orphans(int lives)
{
    char byte;
    ssize_t n;
    do
        n = read(lives, &byte, 1);
    while (n < 0 && errno == EINTR);
    assert_int_equal(n, 0);
    close(lives);
    for (int i = 0; i < pl_ledger_n_slots(storm.ledger); i++) {
        const pl_ledger_slot *slot = &storm.ledger->slots[i];
        uint32_t pid;
        while ((pid = atomic_load(&slot->pid)) != 0 && pid != (uint32_t)getpid() &&
               pl_proc_alive((pid_t)pid, atomic_load(&slot->start_ticks)))
            usleep(1000);
    }
}

static void run_storm(enum mode mode)
{
    int lives[2];
    storm.mode = mode;
    assert_int_equal(pipe(lives), 0);
    pid_t breeder = fork();
    assert_true(breeder >= 0);
    if (breeder == 0)
        live_as_breeder(pl_clock_monotonic_ns() + total_ns / N_MODES);
    close(lives[1]);

    void *(*const watchers[])(void *) = {watch_charged, reclaim_and_check, measure_far_over,
                                         measure_others};
    int n_watchers = mode == WITH_MEASURE ? 4 : 2;
    pthread_t threads[4];
    if (mode == WITH_MEASURE)
        assert_int_equal(pl_ledger_join(storm.ledger, 1, &storm.owner), 0);
    for (int i = 0; i < n_watchers; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, watchers[i], NULL), 0);
    int status;
    assert_int_equal(waitpid(breeder, &status, 0), breeder);
    wait_for_orphans(lives[0]);
    atomic_store(&storm_is_over, 1);
    for (int i = 0; i < n_watchers; i++)
        pthread_join(threads[i], NULL);
    if (mode == WITH_MEASURE)
        pl_ledger_leave(storm.ledger, storm.owner);

    print_summary();
    if (atomic_load(&storm.score->failure_state) != NO_FAILURE)
        fail_msg("%s", storm.score->failure);
    assert_int_equal(status, 0);
    assert_nothing_is_left();
}

static void refusable_claims_never_pass_the_line(void **state)
{
    (void)state;
    run_storm(REFUSABLE_ONLY);
}

static void no_claim_ever_passes_the_reserve(void **state)
{
    (void)state;
    run_storm(WITH_RESERVE);
}

static void nothing_is_granted_while_more_than_the_line_is_used(void **state)
{
    (void)state;
    run_storm(WITH_MEASURE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--worker") == 0)
        return begin_again(argv);
    if (argc > 1 && atoi(argv[1]) > 0)
        total_ns = (uint64_t)atoi(argv[1]) * PL_NS_PER_SEC;

    const struct CMUnitTest tests[] = {
        TEST(refusable_claims_never_pass_the_line),
        TEST(no_claim_ever_passes_the_reserve),
        TEST(nothing_is_granted_while_more_than_the_line_is_used),
    };
    return cmocka_run_group_tests_name("ledger_storm", tests, NULL, NULL);
}
