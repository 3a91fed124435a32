/* SPDX-License-Identifier: Apache-2.0 */
/* A run from outside: how far it is, stopping it, and what its workers met. */
#include "session_fixture.h"

#include <pthread.h>

#include "exec/step/run.h"
#include "tensor/admission.h"

enum { N = 400000 };

static int begin(void **state)
{
    return begin_with(state, 32 * PL_MIB, 4);
}

#define CONTROL_CASE(function) cmocka_unit_test_setup_teardown(function, begin, finish)

/* Three steps, each of several tiles. */
static pl_node *three_steps(void)
{
    pl_node *x;
    const pl_shape shape = PL_SHAPE(N);
    assert_int_equal(pl_graph_fill(graph, "x", PL_F64, &shape, 1, &x, &error), 0);
    pl_node *sum = must_add("sum", "sum", NODES(x), NO_ATTRS);
    pl_node *apart = must_add("sub", "apart", NODES(x, sum), NO_ATTRS);
    pl_node *most = must_add("max", "most", NODES(apart), NO_ATTRS);
    return must_add("add", "end", NODES(apart, most), NO_ATTRS);
}

/* ---- progress ---- */

typedef struct watch {
    double last;
    int n_calls, n_ends;
    bool wrong;
    int cancel, cancel_at; /* at which call; 0: never */
} watch;

static void look_on(void *context, double fraction, const char *name)
{
    watch *w = context;
    w->n_calls++;
    w->n_ends += fraction == 1;
    w->wrong = w->wrong || fraction < w->last || fraction <= 0 || fraction > 1 ||
               !pl_graph_find(graph, name);
    w->last = fraction;
    if (w->n_calls == w->cancel_at)
        __atomic_store_n(&w->cancel, 1, __ATOMIC_RELAXED);
}

/* In chunks: first parts of them all, then one pass over the results, which begins anew. */
static pl_node *four_sums(void)
{
    pl_node *x;
    const pl_shape shape = PL_SHAPE(4, N);
    assert_int_equal(pl_graph_fill(graph, NULL, PL_F64, &shape, 1, &x, &error), 0);
    return must_add("sum", NULL, NODES(x), ATTRS(INTS("axes", 1)));
}

static void progress_never_falls_and_ends_with_one(void **state)
{
    (void)state;
    pl_node *ends[] = {three_steps(), four_sums()};
    for (int i = 0; i < 20; i++) {
        watch w = {0};
        int r;
        const pl_run_options options = {.progress = look_on, .progress_context = &w};
        pl_tensor_unref(run_for(ends[i % 2], &options, &r));
        assert_int_equal(r, 0);
        assert_false(w.wrong);
        assert_int_equal(w.n_ends, 1);
        assert_true(w.last == 1 && w.n_calls >= 2);
    }
}

static void what_has_nothing_to_compute_tells_nothing(void **state)
{
    (void)state;
    watch w = {0};
    int r;
    const pl_run_options options = {.progress = look_on, .progress_context = &w};
    pl_tensor_unref(run_for(constant_of("c", 0, 3), &options, &r));
    assert_int_equal(r, 0);
    assert_int_equal(w.n_calls, 0);
}

/* ---- cancelling ---- */

static void a_run_can_be_cancelled_at_any_tile(void **state)
{
    (void)state;
    pl_node *v = variable_of("v", 5, N);
    pl_node *set = must_add("assign", "set", NODES(v, three_steps()), NO_ATTRS);
    uint64_t claimed = pl_runtime_claimed_bytes(runtime);
    for (int at = 1;; at++) {
        watch w = {.cancel_at = at};
        int r;
        const pl_run_options options = {
            .cancel = &w.cancel, .progress = look_on, .progress_context = &w};
        pl_tensor_unref(run_for(set, &options, &r));
        if (w.n_ends > 0) { /* it was through */
            assert_true(at > 1);
            break;
        }
        assert_int_equal(r, -ECANCELED);
        assert_non_null(strstr(error.message, "': the run was cancelled"));
        assert_true(pl_runtime_claimed_bytes(runtime) <= claimed);
        pl_tensor *value;
        assert_int_equal(pl_session_get(session, v, &value, &error), 0);
        assert_true(element_of(value, 0) == 5);
        pl_tensor_unref(value);
        assert_true(at < 10000);
    }
}

static void what_is_cancelled_before_it_begins_computes_nothing(void **state)
{
    (void)state;
    watch w = {.cancel = 1};
    int r;
    const pl_run_options options = {
        .cancel = &w.cancel, .progress = look_on, .progress_context = &w};
    assert_null(run_for(three_steps(), &options, &r));
    assert_int_equal(r, -ECANCELED);
    assert_int_equal(w.n_calls, 0);
}

/* ---- what is promised, and taken by others ---- */

/* A user who makes a tensor while others run, and holds it. */
typedef struct intruder {
    int n_times; /* that are left */
    int64_t n;   /* elements */
    pl_tensor *tensors[8];
    int n_tensors;
    watch progress;
} intruder;

static void intrude(void *context, double fraction, const char *name)
{
    intruder *in = context;
    const void *data;
    int64_t strides[PL_RANK_MAX];
    look_on(&in->progress, fraction, name);
    if (in->n_times == 0 || strcmp(name, "second") != 0)
        return;
    in->n_times--;
    pl_tensor *tensor;
    double *zeros = calloc((size_t)in->n, sizeof *zeros);
    if (pl_tensor_new(runtime, PL_F64, &PL_SHAPE(in->n), zeros, "intruder", &tensor, NULL) == 0) {
        in->tensors[in->n_tensors++] = tensor;
        (void)!pl_tensor_pin(tensor, &data, strides, NULL);
    }
    free(zeros);
}

static void leave(intruder *in)
{
    for (int i = 0; i < in->n_tensors; i++) {
        pl_tensor_unpin(in->tensors[i]);
        pl_tensor_unref(in->tensors[i]);
    }
    in->n_tensors = 0;
}

/* Values of 6 MiB, of which three are there at once in the end. */
static pl_node *three_values(void)
{
    const pl_shape shape = PL_SHAPE(64, 12 * 1024);
    pl_node *x;
    assert_int_equal(pl_graph_fill(graph, "x", PL_F64, &shape, 3, &x, &error), 0);
    pl_node *first = must_add("cumsum", "first", NODES(x), ATTRS(pl_attr_int("axis", 1)));
    pl_node *second = must_add("cumsum", "second", NODES(first), ATTRS(pl_attr_int("axis", 1)));
    return must_add("sub", "third", NODES(second, first), NO_ATTRS);
}

static double last_of(pl_tensor *table)
{
    double value;
    const int64_t at[PL_RANK_MAX] = {63, 12 * 1024 - 1}, one[PL_RANK_MAX] = {1, 1};
    assert_int_equal(pl_tensor_read(table, at, one, &value, &error), 0);
    return value;
}

static void a_run_whose_promise_is_broken_is_planned_in_what_is_left(void **state)
{
    (void)state;
    pl_node *third = three_values();
    const double n = 12 * 1024, wanted = 3 * n * (n + 1) / 2 - 3 * n;
    intruder in = {.n_times = 1, .n = 2 * 1024 * 1024}; /* 16 of 32 MiB */
    const pl_run_options options = {.progress = intrude, .progress_context = &in};
    int r;
    pl_tensor *result = run_for(third, &options, &r);
    if (r < 0)
        fail_msg("%s", error.message);
    assert_true(last_of(result) == wanted);
    assert_int_equal(in.n_tensors, 1);
    assert_false(in.progress.wrong); /* it never falls, and ends once */
    assert_int_equal(in.progress.n_ends, 1);
    pl_tensor_unref(result);
    leave(&in);
}

/* Whose files are there only when all has gone well. */
static void a_run_whose_promise_is_broken_writes_its_file_anew(void **state)
{
    (void)state;
    char path[128];
    intruder in = {.n_times = 1, .n = 2 * 1024 * 1024};
    const pl_run_options options = {.progress = intrude, .progress_context = &in};
    pl_node *third = three_values();
    pl_node *first = pl_graph_find(graph, "first");
    snprintf(path, sizeof path, "%s/first.npy", folder);
    const pl_fetch fetches[] = {{first, path}, {third, NULL}};
    pl_tensor *results[2] = {0}, *read;
    if (pl_session_run(session, fetches, 2, NULL, 0, &options, results, &error) < 0)
        fail_msg("%s", error.message);
    assert_null(results[0]);
    assert_int_equal(pl_tensor_open_npy(runtime, path, &read, &error), 0);
    assert_true(last_of(read) == 3 * 12 * 1024);
    pl_tensor_unref(read);
    pl_tensor_unref(results[1]);
    leave(&in);
    assert_int_equal(unlink(path), 0);
}

/* Somebody takes away what is written. */
typedef struct thief {
    char partial[160];
    watch progress;
} thief;

static void steal(void *context, double fraction, const char *name)
{
    thief *t = context;
    look_on(&t->progress, fraction, name);
    unlink(t->partial);
}

static void a_run_whose_file_cannot_get_its_name_does_not_tell_its_end(void **state)
{
    (void)state;
    char path[128];
    thief t = {0};
    const pl_run_options options = {.progress = steal, .progress_context = &t};
    pl_node *third = three_values();
    snprintf(path, sizeof path, "%s/third.npy", folder);
    snprintf(t.partial, sizeof t.partial, "%s.partial", path);
    const pl_fetch fetch = {third, path};
    assert_int_equal(pl_session_run(session, &fetch, 1, NULL, 0, &options, NULL, &error), -ENOENT);
    assert_true(t.progress.n_calls > 0);
    assert_int_equal(t.progress.n_ends, 0);
}

/* With less and less left there is an end to it. */
static void a_run_that_cannot_have_anything_ends_with_an_error(void **state)
{
    (void)state;
    pl_node *third = three_values();
    intruder in = {.n_times = 8, .n = 1024 * 1024};
    const pl_run_options options = {.progress = intrude, .progress_context = &in};
    int r;
    pl_tensor_unref(run_for(third, &options, &r));
    assert_true(r == 0 || r == PL_EBUDGET);
    leave(&in);
    pl_tensor *result = must_run(third); /* nothing is left of it */
    pl_tensor_unref(result);
}

/* ---- a callback that runs something itself ---- */

typedef struct nested {
    pl_node *node;
    int r;
    bool ran;
} nested;

static void run_inside(void *context, double fraction, const char *name)
{
    nested *n = context;
    pl_tensor *result = NULL;
    const pl_fetch fetch = {n->node, NULL};
    (void)fraction;
    (void)name;
    if (n->ran)
        return;
    n->ran = true;
    n->r = pl_session_run(session, &fetch, 1, NULL, 0, NULL, &result, NULL);
    pl_tensor_unref(result);
}

static void a_run_inside_of_a_callback_is_run_or_refused(void **state)
{
    (void)state;
    pl_node *x, *end = three_steps();
    const pl_shape large = PL_SHAPE(1, 3 * 1024 * 1024); /* 24 of 32 MiB, in one row */
    assert_int_equal(pl_graph_fill(graph, "l", PL_F64, &large, 1, &x, &error), 0);
    pl_node *product;
    assert_int_equal(pl_graph_matmul(graph, "p", x, x, false, true, &product, &error), 0);
    nested small = {.node = must_add("neg", "n", NODES(constant_of("c", 1, 10)), NO_ATTRS)};
    nested big = {.node = product};
    int r;
    const pl_run_options with_small = {.progress = run_inside, .progress_context = &small};
    const pl_run_options with_big = {.progress = run_inside, .progress_context = &big};
    pl_tensor_unref(run_for(end, &with_small, &r));
    assert_true(r == 0 && small.ran && small.r == 0);
    pl_tensor_unref(run_for(end, &with_big, &r));
    assert_true(r == 0 && big.ran && big.r == PL_EBUDGET); /* it would wait for itself */
}

static void tell_inside(void *context, double fraction, const char *name)
{
    bool *still_telling = context;
    pl_tensor *result = NULL;
    watch w = {0};
    const pl_run_options options = {.progress = look_on, .progress_context = &w};
    const pl_fetch fetch = {pl_graph_find(graph, "n"), NULL};
    (void)fraction;
    (void)name;
    assert_int_equal(pl_session_run(session, &fetch, 1, NULL, 0, &options, &result, NULL), 0);
    pl_tensor_unref(result);
    *still_telling = w.n_ends == 1 && pl_run_is_telling();
}

static void a_callback_is_one_also_after_its_own_run_has_told(void **state)
{
    (void)state;
    bool still_telling = false;
    int r;
    must_add("neg", "n", NODES(constant_of("c", 1, 10)), NO_ATTRS);
    const pl_run_options options = {.progress = tell_inside, .progress_context = &still_telling};
    pl_tensor_unref(run_for(three_steps(), &options, &r));
    assert_int_equal(r, 0);
    assert_true(still_telling);
    assert_false(pl_run_is_telling());
}

/* ---- runs that assign, one after the other ---- */

static void a_run_that_assigns_is_refused_inside_of_one(void **state)
{
    (void)state;
    pl_node *v = variable_of("v", 5, N), *u = variable_of("u", 5, 10);
    pl_node *set = must_add("assign", "set", NODES(v, three_steps()), NO_ATTRS);
    nested inside = {.node = must_add("assign_add", "more", NODES(u, u), NO_ATTRS)};
    const pl_run_options options = {.progress = run_inside, .progress_context = &inside};
    int r;
    pl_tensor_unref(run_for(set, &options, &r));
    assert_true(r == 0 && inside.ran && inside.r == -EDEADLK);
    inside.ran = false;
    pl_tensor_unref(run_for(pl_graph_find(graph, "end"), &options, &r));
    assert_true(r == 0 && inside.ran && inside.r == 0); /* the one outside assigns nothing */
}

typedef struct holder {
    pthread_t thread;
    pl_node *node;
    _Atomic int begun, open;
    int r;
} holder;

static void wait_at(void *context, double fraction, const char *name)
{
    holder *h = context;
    (void)fraction;
    (void)name;
    h->begun = 1;
    while (!h->open)
        usleep(100);
}

static void *hold(void *context)
{
    holder *h = context;
    const pl_run_options options = {.progress = wait_at, .progress_context = h};
    const pl_fetch fetch = {h->node, NULL};
    h->r = pl_session_run(session, &fetch, 1, NULL, 0, &options, NULL, NULL);
    return NULL;
}

static void *cancel_soon(void *cancel)
{
    usleep(20000); /* so that it waits already, usually */
    if (cancel)
        __atomic_store_n((int *)cancel, 1, __ATOMIC_RELAXED);
    else
        pl_session_cancel(session);
    return NULL;
}

static void what_waits_to_assign_can_be_cancelled(void **state)
{
    (void)state;
    pl_node *v = variable_of("v", 5, N), *u = variable_of("u", 5, 10);
    pl_node *more = must_add("assign_add", "more", NODES(u, u), NO_ATTRS);
    holder h = {.node = must_add("assign", "set", NODES(v, three_steps()), NO_ATTRS)};
    assert_int_equal(pthread_create(&h.thread, NULL, hold, &h), 0);
    while (!h.begun)
        usleep(100);
    for (int i = 0; i < 2; i++) {
        pthread_t canceller;
        int cancel = 0, r;
        const pl_run_options options = {.cancel = &cancel};
        assert_int_equal(pthread_create(&canceller, NULL, cancel_soon, i ? NULL : &cancel), 0);
        assert_null(run_for(more, &options, &r));
        assert_int_equal(r, -ECANCELED);
        assert_string_equal(error.message, "the run was cancelled before it began");
        pthread_join(canceller, NULL);
    }
    h.open = 1;
    pthread_join(h.thread, NULL);
    assert_int_equal(h.r, -ECANCELED); /* by the session, with the other */
}

/* ---- admission ---- */

typedef struct queuer {
    pthread_t thread;
    pl_admission admission;
    uint64_t bytes;
    _Atomic int waits;
    int r;
} queuer;

static int go_on(const void *context)
{
    queuer *q = (queuer *)context;
    if (q)
        q->waits = 1;
    return 0;
}

static void *queue_up(void *context)
{
    queuer *q = context;
    q->r = pl_admission_begin(&q->admission, q->bytes);
    return NULL;
}

/* What a run of 20 of 32 MiB is told that comes while another one is urgent, and while so much is
 * claimed; before it is admitted, so much more or less is. */
static int begin_after_urgent(uint64_t before, uint64_t after)
{
    pl_admission small = {.runtime = runtime, .check = go_on}, urgent = small;
    queuer q = {.admission = {.runtime = runtime, .check = go_on, .context = &q, .may_wait = true},
                .bytes = 20 * PL_MIB};
    pl_block block = {0};
    urgent.crowded = urgent.may_wait = true;
    assert_int_equal(pl_admission_wait(&urgent), 0); /* for nobody */
    assert_int_equal(pl_admission_begin(&small, 0), 1);
    assert_int_equal(pl_memory_take(runtime->memory, before, "before", &block, &error), 0);
    assert_int_equal(pthread_create(&q.thread, NULL, queue_up, &q), 0);
    while (!q.waits)
        usleep(100);
    pl_memory_give(runtime->memory, &block);
    assert_int_equal(pl_memory_take(runtime->memory, after, "after", &block, &error), 0);
    pl_admission_done(&urgent);
    pthread_join(q.thread, NULL);
    pl_memory_give(runtime->memory, &block);
    if (q.r == 1)
        pl_admission_end(&q.admission);
    pl_admission_end(&small);
    return q.r;
}

static void who_lets_others_go_first_counts_on_what_they_have_left(void **state)
{
    (void)state;
    assert_int_equal(begin_after_urgent(PL_MIB, PL_MIB), 1);
    assert_int_equal(begin_after_urgent(PL_MIB, 24 * PL_MIB), 0);
    assert_int_equal(begin_after_urgent(24 * PL_MIB, PL_MIB), 1);
}

/* ---- errors of workers ---- */

static pl_tensor *indices(const int64_t *bad, int n_bad)
{
    pl_tensor *tensor;
    const pl_shape shape = PL_SHAPE(N);
    int32_t *data = calloc(N, sizeof *data);
    for (int i = 0; i < n_bad; i++)
        data[bad[i]] = (int32_t)(100 + i);
    assert_int_equal(pl_tensor_new(runtime, PL_I32, &shape, data, "i", &tensor, &error), 0);
    free(data);
    return tensor;
}

/* Of several, the first one's, whichever worker came first. */
static void no_error_of_a_worker_is_lost(void **state)
{
    (void)state;
    pl_node *table = constant_of("table", 0, 10), *at = place("at", PL_I32, PL_SHAPE(N));
    pl_node *picked = must_add("gather", "picked", NODES(table, at), NO_ATTRS);
    pl_node *sum = must_add("sum", "sum", NODES(picked), NO_ATTRS);
    const int64_t places[][2] = {{0, N - 1}, {N - 1, N - 1}, {N / 2, N / 2 + 1}, {70000, 300000}};
    for (int round = 0; round < 40; round++) {
        pl_tensor *index = indices(places[round % 4], 2), *result = NULL;
        const pl_feed feed = {at, index};
        const pl_fetch fetch = {round % 2 ? sum : picked, NULL};
        assert_int_equal(pl_session_run(session, &fetch, 1, &feed, 1, NULL, &result, &error),
                         -EINVAL);
        assert_non_null(strstr(error.message, "gather 'picked': index 10"));
        if (places[round % 4][0] < places[round % 4][1])
            assert_non_null(strstr(error.message, "index 100 is not in axis 0"));
        pl_tensor_unref(index);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTROL_CASE(progress_never_falls_and_ends_with_one),
        CONTROL_CASE(what_has_nothing_to_compute_tells_nothing),
        CONTROL_CASE(a_run_can_be_cancelled_at_any_tile),
        CONTROL_CASE(what_is_cancelled_before_it_begins_computes_nothing),
        CONTROL_CASE(a_run_whose_promise_is_broken_is_planned_in_what_is_left),
        CONTROL_CASE(a_run_whose_promise_is_broken_writes_its_file_anew),
        CONTROL_CASE(a_run_whose_file_cannot_get_its_name_does_not_tell_its_end),
        CONTROL_CASE(a_run_that_cannot_have_anything_ends_with_an_error),
        CONTROL_CASE(a_run_inside_of_a_callback_is_run_or_refused),
        CONTROL_CASE(a_callback_is_one_also_after_its_own_run_has_told),
        CONTROL_CASE(a_run_that_assigns_is_refused_inside_of_one),
        CONTROL_CASE(what_waits_to_assign_can_be_cancelled),
        CONTROL_CASE(who_lets_others_go_first_counts_on_what_they_have_left),
        CONTROL_CASE(no_error_of_a_worker_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
