/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes elements: how many at once, and with how many threads each. */
#include "dataset_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "tensor/runtime.h"
#include "util/threads.h"

enum { N_THREADS = 3, N_ELEMENTS = 12, WAIT_MOST_S = 20 };

static int begin(void **state)
{
    return begin_with(state, 64 * PL_MIB, N_THREADS);
}

static struct {
    pthread_mutex_t mu;
    pthread_cond_t came;
    int n_inside, n_most;      /* mu */
    int n_threads[N_ELEMENTS]; /* mu; that a job of each call's has */
} seen;

static void forget(void)
{
    memset(&seen, 0, sizeof seen);
    pthread_mutex_init(&seen.mu, NULL);
    pthread_cond_init(&seen.came, NULL);
}

static int hand_on(int64_t x, pl_value *outputs, pl_error *reterr)
{
    return pl_tensor_new(runtime, PL_I64, &(pl_shape){0}, &x, "met", &outputs[0].tensor, reterr);
}

/* The first call returns at once; of those that follow each waits until as many as there are
 * threads have met. */
static int meet(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs;
    int64_t x = number_in(inputs[0].tensor, 0);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MOST_S;
    pthread_mutex_lock(&seen.mu);
    seen.n_threads[x] = pl_threads_count_here(runtime->threads);
    seen.n_inside++;
    seen.n_most = seen.n_inside > seen.n_most ? seen.n_inside : seen.n_most;
    pthread_cond_broadcast(&seen.came);
    int r = 0;
    while (r == 0 && x > 0 && seen.n_most < N_THREADS)
        r = pthread_cond_timedwait(&seen.came, &seen.mu, &until);
    int n_most = seen.n_most;
    seen.n_inside--;
    pthread_mutex_unlock(&seen.mu);
    return r == 0 ? hand_on(x, outputs, reterr)
                  : pl_error_set(reterr, -ETIMEDOUT, "only %d have met", n_most);
}

static int note(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs;
    int64_t x = number_in(inputs[0].tensor, 0);
    seen.n_threads[x] = pl_threads_count_here(runtime->threads);
    return hand_on(x, outputs, reterr);
}

static void go_through(pl_dataset *dataset)
{
    pl_iterator *iterator = pass_over(with(dataset, (pl_dataset_options){.n_threads = N_THREADS}));
    for (int64_t i = 0; i < N_ELEMENTS; i++)
        assert_int_equal(next_number(iterator), i);
    pl_iterator_free(iterator);
}

static void auto_begins_with_a_worker_for_each_thread(void **state)
{
    (void)state;
    forget();
    go_through(mapped(range(N_ELEMENTS), meet, PL_AUTO));
    assert_int_equal(seen.n_most, N_THREADS);
}

static void functions_side_by_side_have_one_thread_each(void **state)
{
    (void)state;
    forget();
    go_through(mapped(range(N_ELEMENTS), meet, N_THREADS));
    int n_alone = 0;
    for (int i = 1; i <= N_THREADS; i++) /* those that met; the first may have come before others */
        n_alone += seen.n_threads[i] == 1;
    assert_true(n_alone >= N_THREADS - 1);
}

static void a_function_that_is_alone_has_all_threads(void **state)
{
    (void)state;
    forget();
    go_through(mapped(range(N_ELEMENTS), note, 1));
    for (int i = 0; i < N_ELEMENTS; i++)
        assert_int_equal(seen.n_threads[i], N_THREADS);
    assert_int_equal(pl_threads_count_here(runtime->threads), N_THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(auto_begins_with_a_worker_for_each_thread, begin, finish),
        cmocka_unit_test_setup_teardown(functions_side_by_side_have_one_thread_each, begin, finish),
        cmocka_unit_test_setup_teardown(a_function_that_is_alone_has_all_threads, begin, finish),
    };
    return cmocka_run_group_tests_name("dataset_workers", tests, NULL, NULL);
}
