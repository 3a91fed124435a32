/* SPDX-License-Identifier: Apache-2.0 */
/* Threads run, assign, cancel, close, free, evict and list at random, on sessions that they share,
 * in less memory than the values take, on a disk that fails now and then. Results are right or an
 * error that may be; what was assigned is neither lost nor counted twice; the cap is never passed;
 * in the end nothing is claimed. usage: session_storm [SECONDS] */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/faults.h"
#include "base/clock.h"
#include "plimsoll/live.h"
#include "plimsoll/session.h"
#include "tensor/runtime.h"
#include "tensor/shape.h"

enum { N_THREADS = 4, N_SHELVES = 3, N_CONSTANTS = 6, N = 64 * 1024, MODES = 2 };

#define CAP (4 * PL_MIB) /* the constants take 3, a run of them all up to 4 */

static uint64_t total_ns = 4 * PL_NS_PER_SEC;

/* A session that everybody may use, but for who frees it. */
typedef struct shelf {
    pthread_rwlock_t use;
    pl_session *session;
    _Atomic bool closed;
    _Atomic int64_t n_assigned; /* runs that went well */
} shelf;

static struct {
    pl_runtime *runtime;
    pl_graph *graph;
    pl_tensor *zero; /* made once: room for what users make is nobody's promise */
    pl_node *sums[N_CONSTANTS], *all, *counter, *count;
    shelf shelves[N_SHELVES];
    char folder[64];
    _Atomic bool over, failed, with_faults;
    char failure[512];
    _Atomic uint64_t n_runs, n_assigned, n_cancelled, n_stale, n_refused, n_faults, n_lists,
        n_freed;
} storm;

static uint64_t random_below(uint64_t *seed, uint64_t n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % n;
}

static void fail_storm(const char *format, ...)
{
    bool not_yet = false;
    if (!atomic_compare_exchange_strong(&storm.failed, &not_yet, true))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(storm.failure, sizeof storm.failure, format, arguments);
    va_end(arguments);
}

static void need(int r, const pl_error *error)
{
    if (r < 0)
        fail_msg("%s", error->message);
}

/* What may happen: it was cancelled, or closed; and with faults, whatever the disk does. Runs wait
 * for each other, so that there is room for each. */
static bool went_well(int r, const pl_error *error)
{
    if (r == 0)
        return true;
    bool faulty = r == -EIO || r == -ENOSPC || r == PL_EBUDGET;
    if (r == -ECANCELED)
        storm.n_cancelled++;
    else if (r == -ESTALE)
        storm.n_stale++;
    else if (storm.with_faults && faulty)
        storm.n_refused++;
    else
        fail_storm("an unexpected error: %s", error->message);
    return false;
}

/* ---- the graph ---- */

static pl_tensor *tensor_of(double value, int64_t n)
{
    pl_tensor *tensor = NULL;
    pl_error error = {0};
    const pl_shape shape = PL_SHAPE(n);
    double *data = malloc((size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++)
        data[i] = value;
    int r = pl_tensor_new(storm.runtime, PL_F64, &shape, data, "numbers", &tensor, &error);
    free(data);
    went_well(r, &error);
    return tensor;
}

/* Each sum goes through a value as large as a constant; the sum of all, through all of them. */
static void make_graph(void)
{
    pl_error error = {0};
    need(pl_graph_new(&storm.graph, &error), &error);
    pl_node *one, *all = NULL;
    const pl_shape shape = PL_SHAPE(N), small = PL_SHAPE(100);
    for (int i = 0; i < N_CONSTANTS; i++) {
        pl_node *c, *sorted;
        need(pl_graph_constant(storm.graph, "c", PL_F64, &shape, &c, &error), &error);
        pl_tensor *tensor = tensor_of(i + 1, N);
        need(pl_constant_set(c, tensor, &error), &error);
        pl_tensor_unref(tensor);
        need(pl_graph_unary(storm.graph, "sort", NULL, c, &sorted, &error), &error);
        need(pl_graph_reduce(storm.graph, "sum", "sum", sorted, NULL, 0, false, &storm.sums[i],
                             &error),
             &error);
        if (all)
            need(pl_graph_binary(storm.graph, "add", NULL, all, sorted, &all, &error), &error);
        else
            all = sorted;
    }
    need(pl_graph_reduce(storm.graph, "sum", "all", all, NULL, 0, false, &storm.all, &error),
         &error);
    need(pl_graph_variable(storm.graph, "counter", PL_F64, &small, &storm.counter, &error), &error);
    need(pl_graph_fill(storm.graph, "one", PL_F64, &small, 1, &one, &error), &error);
    need(pl_graph_binary(storm.graph, "assign_add", "count", storm.counter, one, &storm.count,
                         &error),
         &error);
}

/* ---- what a thread does ---- */

static bool run_for(pl_session *session, pl_node *node, double *ret_value)
{
    pl_error error = {0};
    pl_tensor *result = NULL;
    const pl_fetch fetch = {node, NULL};
    const int64_t at[PL_RANK_MAX] = {0}, one[PL_RANK_MAX] = {1};
    int r = pl_session_run(session, &fetch, 1, NULL, 0, NULL, &result, &error);
    if (r == 0)
        r = pl_tensor_read(result, at, one, ret_value, &error);
    pl_tensor_unref(result);
    return went_well(r, &error);
}

static void run_sum(shelf *s, uint64_t *random)
{
    int i = (int)random_below(random, N_CONSTANTS + 1);
    double sum, expected = i < N_CONSTANTS ? (double)(i + 1) * N
                                           : (double)N * N_CONSTANTS * (N_CONSTANTS + 1) / 2;
    if (!run_for(s->session, i < N_CONSTANTS ? storm.sums[i] : storm.all, &sum))
        return;
    storm.n_runs++;
    if (sum != expected)
        fail_storm("the sum of %d is %g, and was %g", i, expected, sum);
}

/* Counted when the run went well, though a read of the result after it may not have. */
static void assign(shelf *s)
{
    pl_error error = {0};
    const pl_fetch fetch = {storm.count, NULL};
    if (!went_well(pl_session_run(s->session, &fetch, 1, NULL, 0, NULL, NULL, &error), &error))
        return;
    s->n_assigned++;
    storm.n_assigned++;
}

static void put_new_session(shelf *s)
{
    pl_error error = {0};
    need(pl_session_new(storm.graph, storm.runtime, &s->session, &error), &error);
    s->closed = false;
    s->n_assigned = 0;
    need(pl_session_set(s->session, storm.counter, storm.zero, &error), &error);
}

/* With nobody else on the shelf. */
static void check_and_free(shelf *s)
{
    pl_error error = {0};
    pl_tensor *tensor = NULL;
    double value;
    const int64_t at[PL_RANK_MAX] = {0}, one[PL_RANK_MAX] = {1};
    int r = s->closed ? -ESTALE : pl_session_get(s->session, storm.counter, &tensor, &error);
    if (r == 0)
        r = pl_tensor_read(tensor, at, one, &value, &error);
    if (r == 0 && value != (double)s->n_assigned)
        fail_storm("%" PRId64 " were added, and the counter is %g", s->n_assigned, value);
    went_well(r, &error);
    pl_tensor_unref(tensor);
    pl_session_free(PL_TAKE(s->session));
    storm.n_freed++;
}

static void replace(shelf *s)
{
    pthread_rwlock_wrlock(&s->use);
    check_and_free(s);
    put_new_session(s);
    pthread_rwlock_unlock(&s->use);
}

/* A graph of the thread's own that ends while its session runs in another thread is test_live's;
 * here both end, in either order, beside everybody else. */
static void make_and_free(uint64_t *random)
{
    pl_graph *graph;
    pl_session *session;
    pl_node *x, *y;
    pl_error error = {0};
    double value;
    const pl_shape shape = PL_SHAPE(1000);
    need(pl_graph_new(&graph, &error), &error);
    need(pl_graph_fill(graph, NULL, PL_F64, &shape, 3, &x, &error), &error);
    need(pl_graph_unary(graph, "square", NULL, x, &y, &error), &error);
    need(pl_session_new(graph, storm.runtime, &session, &error), &error);
    if (run_for(session, y, &value) && value != 9)
        fail_storm("the square of 3 was %g", value);
    bool graph_first = random_below(random, 2);
    if (graph_first)
        pl_graph_free(graph);
    pl_session_free(session);
    if (!graph_first)
        pl_graph_free(graph);
}

static void list(void)
{
    pl_live *live;
    pl_error error = {0};
    need(pl_live_new(storm.runtime, NULL, &live, &error), &error);
    free(pl_live_text(live, true));
    int n = 0;
    for (int i = 0; i < pl_live_n_entries(live); i++)
        n += pl_live_entry_at(live, i)->kind == PL_LIVE_CONSTANT;
    if (n != N_CONSTANTS)
        fail_storm("%d constants are listed", n);
    pl_live_free(live);
    storm.n_lists++;
}

static void use(shelf *s, uint64_t *random)
{
    uint64_t what = random_below(random, 32);
    pthread_rwlock_rdlock(&s->use);
    if (what < 16)
        run_sum(s, random);
    else if (what < 26)
        assign(s);
    else if (what < 30)
        pl_session_cancel(s->session);
    else if (what < 31) {
        pl_session_close(s->session);
        s->closed = true;
    } else
        pl_pool_evict(storm.runtime->pool, random_below(random, CAP), NULL);
    pthread_rwlock_unlock(&s->use);
}

static void *live(void *argument)
{
    uint64_t random = (uintptr_t)argument * 7919;
    while (!storm.over && !storm.failed) {
        shelf *s = &storm.shelves[random_below(&random, N_SHELVES)];
        switch (random_below(&random, 16)) {
        case 0:
            replace(s);
            break;
        case 1:
            make_and_free(&random);
            break;
        case 2:
            list();
            break;
        default:
            use(s, &random);
        }
    }
    return NULL;
}

static void *disturb(void *unused)
{
    (void)unused;
    uint64_t random = 99;
    while (!storm.over) {
        uint64_t kind = random_below(&random, 4);
        fault_io.read_error = kind == 0 ? EIO : 0;
        fault_io.write_error = kind == 1 ? EIO : kind == 2 ? ENOSPC : 0;
        fault_io.reserve_error = kind == 3 ? ENOSPC : 0;
        storm.n_faults++;
        usleep(500);
        fault_io_reset();
        usleep(1500);
    }
    return NULL;
}

/* ---- the storm ---- */

static int set_up(void **state)
{
    (void)state;
    memset(&storm, 0, sizeof storm);
    strcpy(storm.folder, "/var/tmp/plimsoll-storm-XXXXXX");
    if (!mkdtemp(storm.folder))
        return -1;
    const pl_runtime_options options = {
        .cap_bytes = CAP, .spill_directory = storm.folder, .n_threads = 2};
    if (pl_runtime_new(&options, &storm.runtime, NULL) < 0)
        return -1;
    make_graph();
    storm.zero = tensor_of(0, 100);
    for (int i = 0; i < N_SHELVES; i++) {
        pthread_rwlock_init(&storm.shelves[i].use, NULL);
        put_new_session(&storm.shelves[i]);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_runtime_unref(storm.runtime);
    return rmdir(storm.folder);
}

/* What never reached the things it is for would prove nothing: on a slow machine it lasts longer.
 */
static bool was_a_storm(void)
{
    return storm.n_runs > 20 && storm.n_assigned > 20 && storm.n_cancelled > 3 &&
           storm.n_stale > 3 && storm.n_freed > 3 && storm.n_lists > 3 &&
           (!storm.with_faults || storm.n_refused > 3);
}

static void assert_nothing_is_left(void)
{
    pl_error error = {0};
    assert_int_equal(pl_pool_check(storm.runtime->pool, &error), 0);
    for (int i = 0; i < N_SHELVES; i++)
        check_and_free(&storm.shelves[i]);
    pl_graph_free(storm.graph);
    pl_tensor_unref(storm.zero);
    if (storm.failed)
        fail_msg("%s", storm.failure);
    print_message("# %" PRIu64 " sums, %" PRIu64 " assignments, %" PRIu64 " cancelled, %" PRIu64
                  " on closed sessions, %" PRIu64 " refused, %" PRIu64 " spells of faults\n",
                  storm.n_runs, storm.n_assigned, storm.n_cancelled, storm.n_stale, storm.n_refused,
                  storm.n_faults);
    assert_int_equal(pl_runtime_claimed_bytes(storm.runtime), 0);
    assert_true(pl_runtime_peak_bytes(storm.runtime) <= CAP);
}

static void run_storm(bool with_faults)
{
    pthread_t threads[N_THREADS], disturber;
    uint64_t end_ns = pl_clock_monotonic_ns() + total_ns / MODES;
    storm.with_faults = with_faults;
    for (uintptr_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, live, (void *)(i + 1)), 0);
    if (with_faults)
        assert_int_equal(pthread_create(&disturber, NULL, disturb, NULL), 0);
    while (!storm.failed && (pl_clock_monotonic_ns() < end_ns || !was_a_storm()))
        usleep(10000);
    storm.over = true;
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    if (with_faults)
        pthread_join(disturber, NULL);
    fault_io_reset();
    assert_nothing_is_left();
}

static void runs_are_right_in_a_crowd(void **state)
{
    (void)state;
    run_storm(false);
}

static void runs_are_right_on_a_disk_that_fails(void **state)
{
    (void)state;
    run_storm(true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    if (argc > 1)
        total_ns = (uint64_t)atoi(argv[1]) * PL_NS_PER_SEC;
    const struct CMUnitTest tests[] = {
        TEST(runs_are_right_in_a_crowd),
        TEST(runs_are_right_on_a_disk_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
