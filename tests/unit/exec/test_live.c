/* SPDX-License-Identifier: Apache-2.0 */
/* What is live is listed; what is closed or freed is gone, in whichever order that happens. */
#include "faults.h"

#include "session_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

#include "plimsoll/live.h"
#include "tensor/runtime.h"

static int begin(void **state)
{
    return begin_with(state, 4 * PL_MIB, 2);
}

#define LIVE_CASE(function) cmocka_unit_test_setup_teardown(function, begin, finish)

static pl_live *must_list(const char *scope)
{
    pl_live *live;
    if (pl_live_new(runtime, scope, &live, &error) < 0)
        fail_msg("%s", error.message);
    return live;
}

/* The entry of this kind and name; NULL if there is none. */
static const pl_live_entry *find(const pl_live *live, pl_live_kind kind, const char *name)
{
    for (int i = 0; i < pl_live_n_entries(live); i++) {
        const pl_live_entry *entry = pl_live_entry_at(live, i);
        if (entry->kind == kind && strcmp(entry->name, name) == 0)
            return entry;
    }
    return NULL;
}

static void constants_variables_and_tensors_are_listed_with_their_bytes(void **state)
{
    (void)state;
    constant_of("layer/table", 0, 100);
    variable_of("layer/weights", 0, 10);
    pl_tensor *mine = tensor_named("mine", 0, 1000);
    pl_live *live = must_list(NULL);
    assert_int_equal(pl_live_n_entries(live), 4);
    const pl_live_entry *entry = pl_live_entry_at(live, 0);
    assert_string_equal(entry->name, "layer/weights");
    assert_int_equal(entry->kind, PL_LIVE_VARIABLE);
    assert_string_equal(entry->scope, "layer");
    assert_int_equal(entry->bytes, 80);
    assert_int_equal(entry->session, 1);
    assert_int_equal(entry->where, PL_LIVE_MEMORY);
    assert_int_equal(entry->dtype, PL_F64);
    assert_int_equal(entry->shape.dims[0], 10);
    assert_int_equal(find(live, PL_LIVE_CONSTANT, "layer/table")->bytes, 800);
    assert_string_equal(find(live, PL_LIVE_TENSOR, "mine")->scope, "");
    assert_int_equal(find(live, PL_LIVE_SESSION, "session 1")->bytes, 80);
    assert_int_equal(pl_live_n_totals(live), 2);
    assert_string_equal(pl_live_total_at(live, 0)->scope, "");
    assert_int_equal(pl_live_total_at(live, 0)->memory_bytes, 8000);
    assert_string_equal(pl_live_total_at(live, 1)->scope, "layer");
    assert_int_equal(pl_live_total_at(live, 1)->memory_bytes, 880);
    assert_null(pl_live_entry_at(live, 4));
    pl_live_free(live);
    pl_tensor_unref(mine);
}

static void a_scope_is_listed_alone(void **state)
{
    (void)state;
    constant_of("a/b/one", 0, 1);
    constant_of("a/two", 0, 1);
    constant_of("ab/three", 0, 1);
    constant_of("a", 0, 1);
    pl_live *live = must_list("a");
    assert_int_equal(pl_live_n_entries(live), 2);
    assert_non_null(find(live, PL_LIVE_CONSTANT, "a/two"));
    assert_string_equal(find(live, PL_LIVE_CONSTANT, "a/b/one")->scope, "a/b");
    assert_int_equal(pl_live_n_totals(live), 2);
    pl_live_free(live);
}

static void bytes_that_are_shared_count_once(void **state)
{
    (void)state;
    pl_node *v = variable_of("v", 0, 100);
    pl_tensor *same, *part;
    assert_int_equal(pl_session_get(session, v, &same, &error), 0);
    assert_int_equal(
        pl_tensor_slice(same, (int64_t[]){0}, (int64_t[]){1}, (int64_t[]){7}, &part, &error), 0);
    pl_live *live = must_list("");
    assert_int_equal(pl_live_n_entries(live), 3);
    assert_int_equal(find(live, PL_LIVE_VARIABLE, "v")->n_refs, 2);
    assert_false(find(live, PL_LIVE_VARIABLE, "v")->shared);
    assert_true(find(live, PL_LIVE_TENSOR, "given")->shared);
    assert_int_equal(find(live, PL_LIVE_TENSOR, "given")->bytes, 56);
    assert_int_equal(pl_live_n_totals(live), 1);
    assert_int_equal(pl_live_total_at(live, 0)->memory_bytes, 800);
    pl_live_free(live);
    pl_session_close(session);
    live = must_list(""); /* what was got from it is a tensor as any other */
    assert_int_equal(pl_live_n_entries(live), 2);
    assert_int_equal(find(live, PL_LIVE_TENSOR, "v")->bytes, 800);
    assert_int_equal(find(live, PL_LIVE_TENSOR, "v")->session, 0);
    pl_live_free(live);
    pl_tensor_unref(same);
    pl_tensor_unref(part);
}

static void results_have_the_name_of_their_node(void **state)
{
    (void)state;
    pl_node *x = constant_of("x", 1, 3);
    pl_tensor *result = must_run(must_add("neg", "loss/minus", NODES(x), NO_ATTRS));
    pl_live *live = must_list("loss");
    assert_int_equal(pl_live_n_entries(live), 1);
    assert_int_equal(find(live, PL_LIVE_TENSOR, "loss/minus")->bytes, 24);
    pl_live_free(live);
    pl_tensor_unref(result);
}

static void a_file_has_no_scope_and_takes_no_memory(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/x.npy", folder);
    pl_tensor *x = tensor_named("x", 0, 50), *file;
    assert_int_equal(pl_tensor_save_npy(x, path, &error), 0);
    assert_int_equal(pl_tensor_open_npy(runtime, path, &file, &error), 0);
    unlink(path);
    pl_live *live = must_list("");
    assert_int_equal(find(live, PL_LIVE_TENSOR, path)->where, PL_LIVE_FILE);
    assert_string_equal(find(live, PL_LIVE_TENSOR, path)->scope, "");
    assert_int_equal(pl_live_total_at(live, 0)->file_bytes, 400);
    assert_int_equal(pl_live_total_at(live, 0)->memory_bytes, 400);
    pl_live_free(live);
    pl_tensor_unref(x);
    pl_tensor_unref(file);
}

static void lists_are_tables_and_json_whatever_the_names(void **state)
{
    (void)state;
    pl_tensor *x = tensor_named("a \"b\"\\\n\xff\xc3\xa4\xed\xa0\x80", 0, 2);
    pl_live *live = must_list("");
    char *json = pl_live_text(live, true), *text = pl_live_text(live, false);
    assert_string_equal(
        json, "{\"schema\":1,\"entries\":[{\"kind\":\"tensor\",\"name\":\"a \\\"b\\\"\\\\\\u000a"
              "\\ufffd\xc3\xa4\\ufffd\\ufffd\\ufffd\",\"scope\":\"\",\"dtype\":\"float64\","
              "\"shape\":[2],\"where\":\"memory\",\"shared\":false,\"pinned\":false,\"bytes\":16,"
              "\"n_refs\":1},{\"kind\":\"session\",\"name\":\"session 1\",\"scope\":\"\","
              "\"session\":1,\"bytes\":0,\"n_refs\":1}],\"totals\":[{\"scope\":\"\",\"n\":1,"
              "\"memory_bytes\":16,\"spill_bytes\":0,\"file_bytes\":0}]}\n");
    assert_non_null(strstr(text, "tensor   a \"b\"\\??????"));
    assert_non_null(strstr(text, "session  session 1 "));
    assert_non_null(strstr(text, "(none) "));
    free(json);
    free(text);
    pl_live_free(live);
    pl_tensor_unref(x);
}

static void closing_frees_at_once_and_every_use_is_told(void **state)
{
    (void)state;
    pl_node *v = variable_of("v", 0, 100000);
    pl_tensor *tensor = NULL;
    const pl_fetch fetch = {v, NULL};
    assert_true(pl_runtime_claimed_bytes(runtime) >= 800000);
    pl_session_close(session);
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    assert_int_equal(pl_session_run(session, &fetch, 1, NULL, 0, NULL, &tensor, &error), -ESTALE);
    assert_string_equal(error.message,
                        "session 1 is closed, or its graph was freed: make a new one");
    assert_int_equal(pl_session_explain(session, &fetch, 1, NULL, 0, NULL, false, NULL, NULL, NULL),
                     -ESTALE);
    assert_int_equal(pl_session_get(session, v, &tensor, &error), -ESTALE);
    tensor = tensor_named("x", 0, 100000);
    assert_int_equal(pl_session_set(session, v, tensor, &error), -ESTALE);
    pl_tensor_unref(tensor);
    pl_session_cancel(session);
    pl_session_close(session);
    pl_live *live = must_list("");
    assert_int_equal(pl_live_n_entries(live), 0);
    pl_live_free(live);
}

static void a_graph_takes_its_sessions_along(void **state)
{
    (void)state;
    pl_session *never_freed;
    pl_node *v = variable_of("v", 0, 1000);
    constant_of("c", 0, 1000);
    assert_int_equal(pl_session_new(graph, runtime, &never_freed, &error), 0);
    pl_tensor *tensor = tensor_named("x", 0, 1000);
    assert_int_equal(pl_session_set(never_freed, v, tensor, &error), 0);
    pl_tensor_unref(tensor);
    pl_live *live = must_list("");
    assert_non_null(find(live, PL_LIVE_SESSION, "session 1"));
    assert_int_equal(find(live, PL_LIVE_SESSION, "session 2")->bytes, 8000);
    pl_live_free(live);
    pl_graph_free(PL_TAKE(graph));
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    live = must_list("");
    assert_int_equal(pl_live_n_entries(live), 0);
    pl_live_free(live);
    const pl_fetch fetch = {NULL, NULL};
    assert_int_equal(pl_session_run(session, &fetch, 0, NULL, 0, NULL, &tensor, &error), -ESTALE);
    pl_session_free(PL_TAKE(session)); /* after its graph; the other one is left to the runtime */
}

static void what_a_user_still_has_outlives_graph_and_session(void **state)
{
    (void)state;
    pl_node *x = constant_of("x", 5, 3), *v = variable_of("v", 7, 3);
    pl_tensor *constant = must_run(x), *variable = must_run(v);
    pl_tensor *sum = must_run(must_add("add", "sum", NODES(x, v), NO_ATTRS));
    pl_session_free(PL_TAKE(session));
    pl_graph_free(PL_TAKE(graph));
    assert_true(element_of(constant, 1) == 6);
    assert_true(element_of(variable, 1) == 8);
    assert_true(element_of(sum, 1) == 14);
    pl_live *live = must_list("");
    assert_int_equal(pl_live_n_entries(live), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pl_live_entry_at(live, i)->kind, PL_LIVE_TENSOR);
    pl_live_free(live);
    pl_tensor_unref(constant);
    pl_tensor_unref(variable);
    pl_tensor_unref(sum);
}

/* ---- while something runs ---- */

/* Tells that the run has begun, and holds it until it is let go. */
typedef struct gate {
    _Atomic int begun, open;
} gate;

static void wait_at(void *context, double fraction, const char *name)
{
    gate *g = context;
    (void)fraction;
    (void)name;
    g->begun = 1;
    while (!g->open)
        usleep(100);
}

typedef struct runner {
    pthread_t thread;
    pl_node *fetch;
    gate gate;
    int r;
} runner;

static void *run_one(void *context)
{
    runner *one = context;
    const pl_run_options options = {.progress = wait_at, .progress_context = &one->gate};
    const pl_fetch fetch = {one->fetch, NULL};
    pl_tensor *result = NULL;
    one->r = pl_session_run(session, &fetch, 1, NULL, 0, &options, &result, NULL);
    pl_tensor_unref(result);
    return NULL;
}

static pl_node *two_steps(void)
{
    pl_node *x = constant_of("x", 0, 100000);
    pl_node *sum = must_add("sum", "far/sum", NODES(x), NO_ATTRS);
    return must_add("sum", "far/apart", NODES(must_add("sub", "d", NODES(x, sum), NO_ATTRS)),
                    NO_ATTRS);
}

static void begin_run(runner *one, pl_node *fetch)
{
    one->fetch = fetch;
    assert_int_equal(pthread_create(&one->thread, NULL, run_one, one), 0);
    while (!one->gate.begun)
        usleep(100);
}

static void end_run(runner *one)
{
    one->gate.open = 1;
    pthread_join(one->thread, NULL);
}

static void a_run_is_listed_with_the_most_that_it_claims(void **state)
{
    (void)state;
    runner one = {0};
    pl_run_cost cost;
    pl_node *fetch = two_steps();
    const pl_fetch fetches = {fetch, NULL};
    assert_int_equal(
        pl_session_explain(session, &fetches, 1, NULL, 0, NULL, false, NULL, &cost, &error), 0);
    begin_run(&one, fetch);
    pl_live *live = must_list("far");
    assert_int_equal(find(live, PL_LIVE_RUN, "far/apart")->bytes, cost.peak_bytes);
    assert_int_equal(find(live, PL_LIVE_RUN, "far/apart")->session, 1);
    pl_live_free(live);
    end_run(&one);
    assert_int_equal(one.r, 0);
    live = must_list("far");
    assert_int_equal(pl_live_n_entries(live), 0);
    pl_live_free(live);
}

static void a_session_cancels_what_runs_and_nothing_later(void **state)
{
    (void)state;
    runner one = {0};
    pl_node *fetch = two_steps();
    begin_run(&one, fetch);
    pl_session_cancel(session);
    end_run(&one);
    assert_int_equal(one.r, -ECANCELED);
    pl_tensor_unref(must_run(fetch));
}

static void *let_go_soon(void *context)
{
    runner *one = context;
    usleep(20000); /* so that whoever closes has to wait, usually */
    one->gate.open = 1;
    return NULL;
}

static void closing_and_freeing_wait_for_what_runs(void **state)
{
    (void)state;
    runner one = {0};
    pthread_t helper;
    begin_run(&one, two_steps());
    assert_int_equal(pthread_create(&helper, NULL, let_go_soon, &one), 0);
    pl_graph_free(PL_TAKE(graph)); /* nodes are in use until the run has ended */
    assert_int_equal(one.gate.open, 1);
    pthread_join(helper, NULL);
    pthread_join(one.thread, NULL);
    assert_int_equal(one.r, -ECANCELED);
}

static void *list_once(void *unused)
{
    pl_live *live;
    (void)unused;
    if (pl_live_new(runtime, "", &live, NULL) == 0)
        pl_live_free(live);
    return NULL;
}

static void *free_one(void *another)
{
    pl_session_free(another);
    return NULL;
}

/* Who lists stands before who frees at the list's lock, usually: a session is found that nobody has
 * any more, and that is not out of the list yet. */
static void a_session_that_is_just_freed_is_left_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        pl_session *another;
        pthread_t lists, frees;
        assert_int_equal(pl_session_new(graph, runtime, &another, &error), 0);
        pl_links_lock(runtime->sessions);
        assert_int_equal(pthread_create(&lists, NULL, list_once, NULL), 0);
        usleep(2000);
        assert_int_equal(pthread_create(&frees, NULL, free_one, another), 0);
        usleep(2000);
        pl_links_unlock(runtime->sessions);
        pthread_join(lists, NULL);
        pthread_join(frees, NULL);
    }
}

/* ---- in the child of a fork ---- */

/* What the parent made can be let go of and says so when it is used; the graph is as good as new.
 */
static int use_in_child(pl_node *y, pl_tensor *tensor)
{
    const pl_runtime_options options = {.cap_bytes = 4 * PL_MIB, .n_threads = 1};
    const pl_fetch fetch = {y, NULL};
    pl_runtime *own;
    pl_session *new_one;
    pl_tensor *result = NULL;
    pl_live *live;
    if (pl_live_new(runtime, NULL, &live, &error) != -ECHILD ||
        pl_session_run(session, &fetch, 1, NULL, 0, NULL, &result, &error) != -ECHILD)
        return 2;
    pl_session_cancel(session);
    pl_session_close(session);
    pl_session_free(session);
    pl_tensor_unref(tensor);
    if (pl_runtime_new(&options, &own, &error) < 0 ||
        pl_session_new(graph, own, &new_one, &error) < 0)
        return 3;
    if (pl_session_run(new_one, &fetch, 1, NULL, 0, NULL, &result, &error) < 0 ||
        element_of(result, 2) != 9)
        return 4;
    pl_tensor_unref(result);
    pl_graph_free(graph); /* closes the child's, and leaves the parent's alone */
    if (pl_session_run(new_one, &fetch, 0, NULL, 0, NULL, &result, &error) != -ESTALE)
        return 5;
    pl_session_free(new_one);
    pl_runtime_unref(own);
    return 0;
}

static void a_forked_child_leaves_the_parents_lists_alone(void **state)
{
    (void)state;
    pl_node *x;
    const pl_shape shape = PL_SHAPE(3);
    assert_int_equal(pl_graph_fill(graph, "x", PL_F64, &shape, 3, &x, &error), 0);
    pl_node *y = must_add("square", "y", NODES(x), NO_ATTRS);
    pl_tensor *tensor = tensor_named("before", 0, 3);
    pid_t child = fork();
    if (child == 0)
        _exit(use_in_child(y, tensor));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    pl_live *live = must_list("");
    assert_non_null(find(live, PL_LIVE_TENSOR, "before"));
    assert_non_null(find(live, PL_LIVE_SESSION, "session 1"));
    pl_live_free(live);
    pl_tensor_unref(must_run(y));
    pl_tensor_unref(tensor);
}

static int make_and_list(pl_node *v)
{
    pl_session *another;
    pl_live *live;
    int r = pl_session_new(graph, runtime, &another, &error);
    if (r < 0)
        return r;
    pl_tensor *tensor = NULL;
    r = pl_session_get(session, v, &tensor, &error);
    if (r == 0)
        r = pl_session_set(another, v, tensor, &error);
    if (r == 0)
        r = pl_live_new(runtime, NULL, &live, &error);
    if (r == 0) {
        free(pl_live_text(live, true));
        pl_live_free(live);
    }
    pl_tensor_unref(tensor);
    pl_session_free(another);
    return r;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    pl_node *v = variable_of("a/v", 0, 100);
    uint64_t claimed = pl_runtime_claimed_bytes(runtime);
    int n_failed = 0;
    bool hit = true;
    for (int number = 1; hit; number++) {
        fault_alloc_begin(number);
        int r = make_and_list(v);
        hit = fault_alloc_end();
        assert_int_equal(pl_runtime_claimed_bytes(runtime), claimed);
        assert_true(r == 0 || r == -ENOMEM);
        n_failed += r < 0;
    }
    assert_in_range(n_failed, 6, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE_CASE(constants_variables_and_tensors_are_listed_with_their_bytes),
        LIVE_CASE(a_scope_is_listed_alone),
        LIVE_CASE(bytes_that_are_shared_count_once),
        LIVE_CASE(results_have_the_name_of_their_node),
        LIVE_CASE(a_file_has_no_scope_and_takes_no_memory),
        LIVE_CASE(lists_are_tables_and_json_whatever_the_names),
        LIVE_CASE(closing_frees_at_once_and_every_use_is_told),
        LIVE_CASE(a_graph_takes_its_sessions_along),
        LIVE_CASE(what_a_user_still_has_outlives_graph_and_session),
        LIVE_CASE(a_run_is_listed_with_the_most_that_it_claims),
        LIVE_CASE(a_session_cancels_what_runs_and_nothing_later),
        LIVE_CASE(closing_and_freeing_wait_for_what_runs),
        LIVE_CASE(a_session_that_is_just_freed_is_left_alone),
        LIVE_CASE(a_forked_child_leaves_the_parents_lists_alone),
        LIVE_CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
