/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that hang: named in an error, and left behind without harm; cancelled passes; passes
 * that a fork took along. */
#include "dataset_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

static int begin(void **state)
{
    return begin_with(state, 64 * PL_MIB, 2);
}

/* A function that hangs at one number until the gate is opened. */
typedef struct gate {
    pthread_mutex_t mu;
    pthread_cond_t changed;
    bool open;
    bool released; /* nobody needs the function any more */
    int n_inside;
    int64_t hangs_at;
} gate;

static gate *new_gate(int64_t hangs_at)
{
    gate *own = calloc(1, sizeof *own);
    pthread_mutex_init(&own->mu, NULL);
    pthread_cond_init(&own->changed, NULL);
    own->hangs_at = hangs_at;
    return own;
}

static int pass_gate(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                     int n_outputs, pl_error *reterr)
{
    (void)n_inputs, (void)n_outputs;
    gate *own = context;
    int64_t x = number_in(inputs[0].tensor, 0);
    pthread_mutex_lock(&own->mu);
    if (x == own->hangs_at) {
        own->n_inside++;
        pthread_cond_broadcast(&own->changed);
        while (!own->open)
            pthread_cond_wait(&own->changed, &own->mu);
        own->n_inside--;
    }
    pthread_mutex_unlock(&own->mu);
    return pl_tensor_new(runtime, PL_I64, &(pl_shape){0}, &x, "x", &outputs[0].tensor, reterr);
}

static void release_gate(void *context)
{
    gate *own = context;
    pthread_mutex_lock(&own->mu);
    own->released = true;
    pthread_cond_broadcast(&own->changed);
    pthread_mutex_unlock(&own->mu);
}

static pl_dataset *gated(pl_dataset *input, gate *own, int n_parallel)
{
    static const pl_spec spec = {.dtype = PL_I64};
    const pl_function function = {.call = pass_gate,
                                  .output_specs = &spec,
                                  .n_inputs = 1,
                                  .n_outputs = 1,
                                  .context = own,
                                  .release = release_gate};
    pl_dataset *dataset = NULL;
    int r = pl_dataset_map(input, &function, n_parallel, &dataset, &error);
    pl_dataset_unref(input);
    must(r, dataset);
    assert_int_equal(pl_dataset_set_name(dataset, "gate", &error), 0);
    return dataset;
}

/* What hung goes on, finds that nobody wants it, and lets go of everything. */
static void open_gate(gate *own)
{
    pthread_mutex_lock(&own->mu);
    own->open = true;
    pthread_cond_broadcast(&own->changed);
    while (!own->released || own->n_inside > 0)
        pthread_cond_wait(&own->changed, &own->mu);
    pthread_mutex_unlock(&own->mu);
    pthread_cond_destroy(&own->changed);
    pthread_mutex_destroy(&own->mu);
    free(own);
}

/* The thread that hung gives back what it had a moment after the function. */
static int finish_late(void **state)
{
    while (pl_runtime_claimed_bytes(runtime) > 0)
        usleep(1000);
    usleep(20000);
    return finish(state);
}

static void check_bark(pl_dataset *dataset, gate *own, int64_t n_before)
{
    const pl_dataset_options options = {.watchdog_ms = 1500};
    pl_iterator *iterator = pass_over(with(dataset, options));
    pl_value value;
    for (int64_t i = 0; i < n_before; i++)
        assert_int_equal(next_number(iterator), i);
    for (int again = 0; again < 3; again++) {
        assert_int_equal(pl_iterator_next(iterator, &value, &error), -ETIMEDOUT);
        assert_non_null(strstr(error.message, "no progress for 1.5 s: map 'gate': its function has "
                                              "not returned after"));
        assert_null(strstr(error.message, "prefetch"));
        assert_null(strstr(error.message, "range"));
    }
    assert_int_equal(pl_iterator_save(iterator, "/nowhere", &error), -ETIMEDOUT);
    pl_iterator_free(iterator);
    open_gate(own);
}

static void a_function_that_hangs_is_named_and_left_behind(void **state)
{
    (void)state;
    gate *own = new_gate(3);
    check_bark(gated(range(10), own, 1), own, 3);
    own = new_gate(3);
    check_bark(gated(range(10), own, 2), own, 3);
    own = new_gate(3);
    check_bark(prefetched(gated(range(10), own, 2), 2), own, 3);
    own = new_gate(0);
    check_bark(batched(gated(range(10), own, PL_AUTO), 4, false), own, 0);
}

static void what_is_slow_but_goes_on_is_not_barked_at(void **state)
{
    (void)state;
    gate *own = new_gate(-1);
    pl_dataset *dataset = gated(range(2000), own, 2);
    pl_iterator *iterator =
        pass_over(with(batched(dataset, 500, false), (pl_dataset_options){.watchdog_ms = 30000}));
    pl_value value;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pl_iterator_next(iterator, &value, &error), 1);
        assert_int_equal(number_in(value.tensor, 7), 500 * i + 7);
        pl_tensor_unref(value.tensor);
    }
    assert_int_equal(pl_iterator_next(iterator, &value, &error), 0);
    assert_int_equal(pl_iterator_next(iterator, &value, &error), 0);
    pl_iterator_free(iterator);
    open_gate(own);
}

static void *cancel_when_inside(void *context)
{
    void **both = context;
    gate *own = both[0];
    pthread_mutex_lock(&own->mu);
    while (own->n_inside == 0)
        pthread_cond_wait(&own->changed, &own->mu);
    pthread_mutex_unlock(&own->mu);
    pl_iterator_cancel(both[1]);
    return NULL;
}

static void a_cancelled_next_returns_although_its_function_hangs(void **state)
{
    (void)state;
    for (int n_parallel = 1; n_parallel <= 2; n_parallel++) {
        gate *own = new_gate(1);
        pl_dataset *dataset = gated(range(10), own, n_parallel);
        pl_iterator *iterator =
            pass_over(with(dataset, (pl_dataset_options){.watchdog_ms = 3600000}));
        void *both[] = {own, iterator};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, cancel_when_inside, both), 0);
        pl_value value;
        int r = pl_iterator_next(iterator, &value, &error);
        if (r == 1) { /* of two at once, the first may be there before */
            pl_tensor_unref(value.tensor);
            r = pl_iterator_next(iterator, &value, &error);
        }
        assert_int_equal(r, -ECANCELED);
        assert_string_equal(error.message, "the pass was cancelled");
        pthread_join(thread, NULL);
        pl_iterator_free(iterator);
        open_gate(own);
    }
}

/* Of a pass whose threads are not there. */
static void use_in_child(pl_iterator *iterator)
{
    pl_value value;
    int r = pl_iterator_next(iterator, &value, &error);
    if (r != -ENOTSUP || !strstr(error.message, "forked"))
        _exit(1);
    pl_iterator_free(iterator);
    _exit(0);
}

static void a_forked_child_is_told_that_the_threads_are_not_there(void **state)
{
    (void)state;
    for (int watched = 0; watched <= 1; watched++) {
        gate *own = new_gate(-1);
        pl_dataset *dataset = prefetched(gated(range(1000), own, 2), 4);
        pl_iterator *iterator =
            pass_over(with(dataset, (pl_dataset_options){.watchdog_ms = watched ? 30000 : 0}));
        assert_int_equal(next_number(iterator), 0);
        pid_t child = fork();
        if (child == 0)
            use_in_child(iterator);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(next_number(iterator), 1);
        pl_iterator_free(iterator);
        open_gate(own);
    }
}

/* ---- explain ---- */

static int sleep_a_little(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                          int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs, (void)reterr;
    usleep(2000);
    outputs[0].tensor = pl_tensor_ref(inputs[0].tensor);
    return 0;
}

static void explain_names_what_holds_up_the_rest(void **state)
{
    (void)state;
    for (int n_parallel = 1; n_parallel <= 2; n_parallel++) {
        pl_dataset *dataset = mapped(range(40), sleep_a_little, n_parallel);
        assert_int_equal(pl_dataset_set_name(dataset, "nap", &error), 0);
        pl_iterator *iterator = pass_over(batched(dataset, 4, false));
        char *text = NULL;
        assert_int_equal(pl_iterator_explain(iterator, false, &text, &error), 0);
        assert_non_null(strstr(text, "nothing was asked for yet"));
        free(text);
        pl_value value;
        while (pl_iterator_next(iterator, &value, &error) == 1)
            pl_tensor_unref(value.tensor);
        assert_int_equal(pl_iterator_explain(iterator, false, &text, &error), 0);
        assert_non_null(strstr(text, "map 'nap' holds up the rest: "));
        assert_non_null(
            strstr(text, n_parallel == 1 ? "it makes one call at a time" : "all processors are"));
        assert_non_null(strstr(text, "  map 'nap' parallel="));
        free(text);
        assert_int_equal(pl_iterator_explain(iterator, true, &text, &error), 0);
        assert_non_null(strstr(text, "{\"class\": \"map\", \"name\": \"nap\", \"parameters\": "));
        assert_non_null(
            strstr(text, "\"depth\": 1, \"elements\": 40, \"bad\": 0, \"bytes\": 320,"));
        assert_non_null(strstr(text, "\"bottleneck\": 1, "));
        free(text);
        pl_iterator_free(iterator);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_function_that_hangs_is_named_and_left_behind, begin,
                                        finish_late),
        cmocka_unit_test_setup_teardown(what_is_slow_but_goes_on_is_not_barked_at, begin, finish),
        cmocka_unit_test_setup_teardown(a_cancelled_next_returns_although_its_function_hangs, begin,
                                        finish_late),
        cmocka_unit_test_setup_teardown(a_forked_child_is_told_that_the_threads_are_not_there,
                                        begin, finish),
        cmocka_unit_test_setup_teardown(explain_names_what_holds_up_the_rest, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
