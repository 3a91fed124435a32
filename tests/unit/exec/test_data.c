/* SPDX-License-Identifier: Apache-2.0 */
/* Files, images and strings in sessions: what fails is told with its node, leaves nothing claimed,
 * and changes no variable. What they compute is tests/kernels/test_data.py's. */
#include "faults.h"

#include "session_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "small_images.h"
#include "tensor/runtime.h"

static char path[128];

static int begin(void **state)
{
    fault_io_reset();
    int r = begin_with(state, 8 * PL_MIB, 2);
    snprintf(path, sizeof path, "%s/image", folder);
    return r;
}

static int end(void **state)
{
    fault_io_reset();
    unlink(path);
    return finish(state);
}

#define DATA_CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

static void write_image(const uint8_t *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static pl_tensor *strings_of(pl_shape shape, const char *const *texts)
{
    pl_string strings[4];
    pl_tensor *tensor = NULL;
    for (int i = 0; i < 4 && (i == 0 || (shape.rank > 0 && i < shape.dims[0])); i++)
        strings[i] = (pl_string){texts[i], strlen(texts[i])};
    assert_int_equal(pl_tensor_new_strings(runtime, &shape, strings, "texts", &tensor, &error), 0);
    return tensor;
}

/* One that keeps nothing of earlier runs. */
static void renew_session(void)
{
    pl_session_free(session);
    assert_int_equal(pl_session_new(graph, runtime, &session, &error), 0);
}

/* read, decoded, resized, added up: all of it is 4 x 4 x 3 and one number. */
static pl_node *image_graph(pl_node **ret_name)
{
    *ret_name = place("name", PL_STRING, PL_SHAPE());
    pl_node *file = must_add("read_file", "file", NODES(*ret_name), NO_ATTRS);
    pl_node *image =
        must_add("decode_image", "image", NODES(file), ATTRS(pl_attr_int("channels", 3)));
    pl_node *small = must_add("resize", "small", NODES(image), ATTRS(INTS("size", 4, 4)));
    return must_add("sum", "total", NODES(small), NO_ATTRS);
}

static int run_on(pl_node *fetch, pl_node *placeholder, pl_tensor *tensor,
                  const pl_run_options *options, float *ret_value)
{
    pl_tensor *result = NULL;
    const pl_fetch fetches = {fetch, NULL};
    const pl_feed feed = {placeholder, tensor};
    error.message[0] = '\0';
    int r = pl_session_run(session, &fetches, 1, &feed, 1, options, &result, &error);
    if (r == 0)
        assert_int_equal(pl_tensor_read(result, NULL, NULL, ret_value, &error), 0);
    pl_tensor_unref(result);
    return r;
}

/* Of a session that has kept its plans, or has none. */
static void fail_each_allocation(const uint8_t *bytes, size_t n, bool kept, int n_failed_least)
{
    pl_node *name, *total = image_graph(&name);
    pl_tensor *text = strings_of(PL_SHAPE(), (const char *[]){path});
    float wanted, got = 0;
    int n_failed = 0;
    write_image(bytes, n);
    if (run_on(total, name, text, NULL, &wanted) < 0)
        fail_msg("%s", error.message);
    uint64_t claimed = pl_runtime_claimed_bytes(runtime);
    for (int number = 1;; number++) {
        if (!kept)
            renew_session();
        fault_alloc_begin(number);
        int r = run_on(total, name, text, NULL, &got);
        bool hit = fault_alloc_end();
        assert_int_equal(pl_runtime_claimed_bytes(runtime), claimed);
        assert_true(r < 0 ? strlen(error.message) > 0 : got == wanted);
        n_failed += r < 0;
        if (!hit)
            break;
        assert_true(number < 10000);
    }
    assert_true(n_failed > n_failed_least);
    pl_tensor_unref(text);
}

static void every_allocation_for_a_jpeg_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    fail_each_allocation(small_jpeg, sizeof small_jpeg, false, 40);
}

static void every_allocation_for_a_png_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    fail_each_allocation(small_png, sizeof small_png, false, 40);
}

static void every_allocation_of_a_run_with_a_kept_plan_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    fail_each_allocation(small_png, sizeof small_png, true, 5);
}

static void every_allocation_for_strings_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    pl_node *texts = place("texts", PL_STRING, PL_SHAPE(PL_UNKNOWN));
    pl_node *two = must_add("concat", "two", NODES(texts, texts), ATTRS(pl_attr_int("axis", 0)));
    pl_node *joined = must_add("string_join", "joined", NODES(two, two), NO_ATTRS);
    pl_node *numbers = must_add("string_to_number", "numbers", NODES(joined), NO_ATTRS);
    pl_node *total = must_add("sum", "total", NODES(numbers), NO_ATTRS);
    pl_tensor *tensor = strings_of(PL_SHAPE(3), (const char *[]){"1", "2", "33"});
    uint64_t claimed = pl_runtime_claimed_bytes(runtime);
    for (int number = 1;; number++) {
        float got = 0;
        renew_session();
        fault_alloc_begin(number);
        int r = run_on(total, texts, tensor, NULL, &got);
        bool hit = fault_alloc_end();
        assert_int_equal(pl_runtime_claimed_bytes(runtime), claimed);
        assert_true(r < 0 ? strlen(error.message) > 0 : got == 2 * (11 + 22 + 3333));
        if (!hit)
            break;
        assert_true(number < 10000);
    }
    pl_tensor_unref(tensor);
}

static void a_file_that_cannot_be_read_is_told_with_its_node(void **state)
{
    (void)state;
    pl_node *name, *total = image_graph(&name);
    pl_tensor *text = strings_of(PL_SHAPE(), (const char *[]){path});
    char wanted[256];
    float got;
    write_image(small_png, sizeof small_png);
    fault_io.read_error = EIO;
    assert_int_equal(run_on(total, name, text, NULL, &got), -EIO);
    snprintf(wanted, sizeof wanted, "read_file 'file': cannot read '%s': %s", path, strerror(EIO));
    assert_string_equal(error.message, wanted);
    fault_io_reset();
    fault_io.most_bytes = 7; /* short reads go on, and interrupted ones */
    fault_io.n_interruptions = 2;
    assert_int_equal(run_on(total, name, text, NULL, &got), 0);
    pl_tensor_unref(text);
}

static void what_is_not_fed_is_told(void **state)
{
    (void)state;
    pl_node *name, *total = image_graph(&name);
    const pl_fetch fetch = {total, NULL};
    pl_tensor *none = NULL;
    assert_int_equal(pl_session_run(session, &fetch, 1, NULL, 0, NULL, &none, &error), -EINVAL);
    assert_string_equal(error.message, "placeholder 'name' has no value: feed it");
}

static void a_stage_can_be_cancelled(void **state)
{
    (void)state;
    pl_node *name, *total = image_graph(&name);
    pl_tensor *text = strings_of(PL_SHAPE(), (const char *[]){path});
    const int cancel = 1;
    const pl_run_options options = {.cancel = &cancel};
    float got;
    write_image(small_png, sizeof small_png);
    assert_int_equal(run_on(total, name, text, &options, &got), -ECANCELED);
    assert_string_equal(error.message, "read_file 'file': the run was cancelled");
    pl_tensor_unref(text);
}

static void the_budget_of_a_run_holds_for_its_stages(void **state)
{
    (void)state;
    pl_node *name, *total = image_graph(&name);
    pl_tensor *text = strings_of(PL_SHAPE(), (const char *[]){path});
    const pl_run_options options = {.budget_bytes = 200 * PL_KIB};
    float got;
    write_image(small_jpeg, sizeof small_jpeg);
    assert_int_equal(run_on(total, name, text, &options, &got), PL_EBUDGET);
    assert_non_null(strstr(error.message, "decode_image 'image': a JPEG of 6 x 5 x 3 pixels"));
    assert_non_null(strstr(error.message, "the budget is 200.0 KiB"));
    pl_tensor_unref(text);
}

/* What is small is taken in a slab, which can be more than a run may have. */
static void a_stage_whose_slab_passes_the_budget_is_refused(void **state)
{
    (void)state;
    const pl_shape shape = PL_SHAPE(2);
    pl_node *x = place("x", PL_STRING, shape);
    pl_node *unequal = must_add("not_equal", "unequal", NODES(x, x), NO_ATTRS);
    pl_tensor *text = strings_of(shape, (const char *[]){"1", "2"});
    const pl_run_options options = {.budget_bytes = 20 * PL_KIB};
    const pl_fetch fetch = {unequal, NULL};
    const pl_feed feed = {x, text};
    pl_run_cost cost;
    pl_tensor *none = NULL;
    assert_int_equal(
        pl_session_explain(session, &fetch, 1, &feed, 1, &options, false, NULL, &cost, &error),
        PL_EBUDGET);
    assert_non_null(strstr(error.message, "not_equal 'unequal': what it reads and makes needs "));
    assert_int_equal(pl_session_run(session, &fetch, 1, &feed, 1, &options, &none, &error),
                     PL_EBUDGET);
    assert_non_null(strstr(error.message, "; the budget is 20.0 KiB: give at least "));
    pl_tensor_unref(text);
}

/* Only the feed says that there are none. */
static void a_picture_without_pixels_is_not_resized(void **state)
{
    (void)state;
    const pl_shape shapes[] = {PL_SHAPE(5, 0, 3), PL_SHAPE(0, 5, 3)};
    const char *const methods[] = {"bilinear", "nearest"};
    pl_node *x = place("x", PL_F32, PL_SHAPE(PL_UNKNOWN, PL_UNKNOWN, 3));
    for (int i = 0; i < 4; i++) {
        pl_tensor *none = NULL;
        float got;
        char wanted[80];
        pl_node *large =
            must_add("resize", i == 0 ? "large" : NULL, NODES(x),
                     ATTRS(INTS("size", 4, 4), pl_attr_string("method", methods[i / 2])));
        pl_node *sum = must_add("sum", NULL, NODES(large), NO_ATTRS);
        assert_int_equal(pl_tensor_new(runtime, PL_F32, &shapes[i % 2], "", "none", &none, &error),
                         0);
        assert_int_equal(run_on(sum, x, none, NULL, &got), -EINVAL);
        snprintf(wanted, sizeof wanted, "resize '%s': shape %s: there are no pixels ('x')",
                 large->name, PL_SHAPE_TEXT(&shapes[i % 2]));
        assert_string_equal(error.message, wanted);
        pl_tensor_unref(none);
    }
}

static char first_byte(pl_node *variable)
{
    pl_tensor *tensor = NULL;
    pl_string string;
    assert_int_equal(pl_session_get(session, variable, &tensor, &error), 0);
    assert_int_equal(pl_tensor_pin_string(tensor, (int64_t[]){0}, &string, &error), 0);
    char byte = *(const char *)string.data;
    pl_tensor_unpin(tensor);
    pl_tensor_unref(tensor);
    return byte;
}

/* A variable of strings, one of numbers beneath a stage, and a failure behind both. */
static void a_run_that_fails_changes_no_variable(void **state)
{
    (void)state;
    pl_node *v, *given = place("given", PL_STRING, PL_SHAPE(PL_UNKNOWN));
    const pl_shape shape = PL_SHAPE(2);
    assert_int_equal(pl_graph_variable(graph, "v", PL_STRING, &shape, &v, &error), 0);
    pl_node *set = must_add("assign", "set", NODES(v, given), NO_ATTRS);
    pl_node *number = must_add("string_to_number", "number", NODES(set), NO_ATTRS);
    pl_tensor *old = strings_of(shape, (const char *[]){"1", "2"});
    pl_tensor *bad = strings_of(shape, (const char *[]){"3", "x"});
    pl_tensor *good = strings_of(shape, (const char *[]){"5", "6"});
    float value;
    assert_int_equal(pl_session_set(session, v, old, &error), 0);
    assert_int_equal(run_on(number, given, bad, NULL, &value), -EINVAL);
    assert_string_equal(error.message, "string_to_number 'number': string 1, 'x', is no float32");
    assert_int_equal(first_byte(v), '1');

    pl_node *sum = must_add("sum", "sum", NODES(number), NO_ATTRS);
    assert_int_equal(run_on(sum, given, good, NULL, &value), 0);
    assert_true(value == 11);
    assert_int_equal(first_byte(v), '5');
    pl_tensor_unref(old);
    pl_tensor_unref(bad);
    pl_tensor_unref(good);
}

static void a_variable_of_strings_keeps_its_shape(void **state)
{
    (void)state;
    pl_node *v, *given = place("given", PL_STRING, PL_SHAPE(PL_UNKNOWN));
    const pl_shape shape = PL_SHAPE(2);
    assert_int_equal(pl_graph_variable(graph, "v", PL_STRING, &shape, &v, &error), 0);
    pl_node *set = must_add("assign", "set", NODES(v, given), NO_ATTRS);
    pl_tensor *three = strings_of(PL_SHAPE(3), (const char *[]){"1", "2", "3"});
    pl_tensor *now;
    assert_int_equal(run_on(set, given, three, NULL, NULL), -EINVAL);
    assert_non_null(strstr(error.message, "assign 'set': "));
    assert_int_equal(pl_session_get(session, v, &now, &error), 0);
    assert_null(now);
    pl_tensor_unref(three);
}

/* An assignment that only a stage asks for is made, once, with all others. */
static void an_assignment_beneath_a_stage_is_made(void **state)
{
    (void)state;
    const pl_shape shape = PL_SHAPE(2, 2, 1);
    const float three[] = {3, 3, 3, 3};
    pl_node *v, *x = place("x", PL_F32, shape);
    pl_tensor *tensor = NULL, *got = NULL;
    float value, now[4];
    assert_int_equal(pl_graph_variable(graph, "v", PL_F32, &shape, &v, &error), 0);
    pl_node *add = must_add("assign_add", "add", NODES(v, x), NO_ATTRS);
    pl_node *twice = must_add("add", "twice", NODES(add, add), NO_ATTRS);
    pl_node *small = must_add("resize", "small", NODES(twice), ATTRS(INTS("size", 1, 1)));
    pl_node *sum = must_add("sum", "sum", NODES(small), NO_ATTRS);
    assert_int_equal(pl_tensor_new(runtime, PL_F32, &shape, three, "three", &tensor, &error), 0);
    assert_int_equal(pl_session_set(session, v, tensor, &error), 0);
    assert_int_equal(run_on(sum, x, tensor, NULL, &value), 0);
    assert_true(value == 12);
    assert_int_equal(pl_session_get(session, v, &got, &error), 0);
    assert_int_equal(pl_tensor_read(got, (int64_t[]){0, 0, 0}, shape.dims, now, &error), 0);
    assert_true(now[0] == 6 && now[3] == 6);
    pl_tensor_unref(got);
    pl_tensor_unref(tensor);
}

static void *run_many(void *context)
{
    const pl_feed *feed = context;
    const pl_fetch fetch = {pl_graph_find(graph, "total"), NULL};
    for (int i = 0; i < 30; i++) {
        pl_tensor *result = NULL;
        if (pl_session_run(session, &fetch, 1, feed, 1, NULL, &result, NULL) < 0)
            return "failed";
        pl_tensor_unref(result);
    }
    return NULL;
}

static void several_threads_decode_side_by_side(void **state)
{
    (void)state;
    pl_node *name;
    pthread_t threads[3];
    image_graph(&name);
    pl_tensor *text = strings_of(PL_SHAPE(), (const char *[]){path});
    const pl_feed feed = {name, text};
    write_image(small_palette, sizeof small_palette);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, (void *)&feed), 0);
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    pl_tensor_unref(text);
}

/* Twenty of a MiB in a budget of eight, and no disk to put them on. */
static void what_no_stage_reads_any_more_is_let_go_of(void **state)
{
    (void)state;
    const pl_runtime_options options = {.cap_bytes = 8 * PL_MIB,
                                        .spill_directory = folder,
                                        .spill_limit_bytes = 64 * PL_KIB,
                                        .n_threads = 1};
    pl_session_free(PL_TAKE(session));
    pl_runtime_unref(PL_TAKE(runtime));
    assert_int_equal(pl_runtime_new(&options, &runtime, &error), 0);
    assert_int_equal(pl_session_new(graph, runtime, &session, &error), 0);

    char *text = malloc(PL_MIB + 1);
    memset(text, 'x', PL_MIB);
    text[PL_MIB] = '\0';
    pl_tensor *tensor = strings_of(PL_SHAPE(), (const char *const[]){text});
    pl_node *given = place("given", PL_STRING, PL_SHAPE()), *part = given;
    for (int i = 0; i < 20; i++)
        part = must_add("string_substr", NULL, NODES(part),
                        ATTRS(pl_attr_int("start", 1), pl_attr_int("length", INT64_MAX)));
    pl_node *n = must_add("string_length", NULL, NODES(part), NO_ATTRS);
    pl_node *as_float = must_add("cast", NULL, NODES(n), ATTRS(pl_attr_dtype("dtype", PL_F32)));
    float got = 0;
    if (run_on(as_float, given, tensor, NULL, &got) < 0)
        fail_msg("%s", error.message);
    assert_true(got == (float)(PL_MIB - 20));
    pl_tensor_unref(tensor);
    free(text);
}

/* ---- what idles ---- */

static pl_tensor *one_mebibyte(void)
{
    char *text = malloc(PL_MIB + 1);
    memset(text, 'x', PL_MIB);
    text[PL_MIB] = '\0';
    pl_tensor *tensor = strings_of(PL_SHAPE(), (const char *const[]){text});
    free(text);
    return tensor;
}

static pl_node *sum_of(pl_node **nodes, int n)
{
    pl_node *sum = nodes[0];
    for (int i = 1; i < n; i++)
        sum = must_add("add", NULL, NODES(sum, nodes[i]), NO_ATTRS);
    return sum;
}

/* Six parts of a MiB, each of which idles until all are there. */
static void what_idles_between_stages_is_in_the_budget(void **state)
{
    (void)state;
    const pl_run_options options = {.budget_bytes = 7 * PL_MIB / 2};
    pl_node *given = place("given", PL_STRING, PL_SHAPE()), *parts[6];
    for (int i = 0; i < 6; i++)
        parts[i] = must_add("string_substr", NULL, NODES(given),
                            ATTRS(pl_attr_int("start", i), pl_attr_int("length", INT64_MAX)));
    for (int i = 0; i < 6; i++)
        parts[i] = must_add("cast", NULL,
                            NODES(must_add("string_length", NULL, NODES(parts[i]), NO_ATTRS)),
                            ATTRS(pl_attr_dtype("dtype", PL_F32)));
    pl_tensor *tensor = one_mebibyte();
    float got = 0;
    uint64_t before = pl_runtime_claimed_bytes(runtime);
    if (run_on(sum_of(parts, 6), given, tensor, &options, &got) < 0)
        fail_msg("%s", error.message);
    assert_true(got == (float)(6 * PL_MIB - 15));
    assert_true(before >
                PL_MIB); /* the feed, which is the user's, and in the budget when it is read */
    assert_true(pl_runtime_peak_bytes(runtime) <= options.budget_bytes + before);
    pl_tensor_unref(tensor);
}

/* All four are in memory when the plan is made, and it cannot have them there. */
static void what_idles_when_the_plan_is_made_is_in_the_budget(void **state)
{
    (void)state;
    const pl_run_options options = {.budget_bytes = 3 * PL_MIB};
    pl_node *given = place("given", PL_STRING, PL_SHAPE()), *parts[4];
    for (int i = 0; i < 4; i++)
        parts[i] =
            must_add("decode_raw", NULL, NODES(given), ATTRS(pl_attr_dtype("dtype", PL_F32)));
    pl_node *total = must_add("max", NULL, NODES(sum_of(parts, 4)), NO_ATTRS);
    pl_tensor *tensor = one_mebibyte();
    float got = 0, wanted;
    memset(&wanted, 'x', sizeof wanted);
    uint64_t before = pl_runtime_claimed_bytes(runtime);
    if (run_on(total, given, tensor, &options, &got) < 0)
        fail_msg("%s", error.message);
    assert_true(got == 4 * wanted);
    assert_true(pl_runtime_peak_bytes(runtime) <= options.budget_bytes + before);
    pl_tensor_unref(tensor);
}

/* ---- what is known before ---- */

/* Nothing is read from files, so that all is known: a picture that is made smaller, and that again,
 * and then summed up. */
static void what_stages_cost_is_stated_where_it_is_known(void **state)
{
    (void)state;
    const int64_t middle[] = {256, 256}, small[] = {16, 16};
    const pl_shape shape = PL_SHAPE(512, 512, 3);
    pl_node *picture = place("picture", PL_U8, shape);
    pl_node *first =
        must_add("resize", "first", NODES(picture), ATTRS(pl_attr_ints("size", middle, 2)));
    pl_node *second =
        must_add("resize", "second", NODES(first), ATTRS(pl_attr_ints("size", small, 2)));
    pl_node *total = must_add("sum", "total", NODES(second), NO_ATTRS);
    uint8_t *pixels = calloc(512, 512 * 3);
    pl_tensor *tensor;
    assert_int_equal(pl_tensor_new(runtime, PL_U8, &shape, pixels, "x", &tensor, &error), 0);
    free(pixels);
    const pl_fetch fetch = {total, NULL};
    const pl_feed feed = {picture, tensor};
    pl_run_cost cost;
    char *text;
    if (pl_session_explain(session, &fetch, 1, &feed, 1, NULL, false, &text, &cost, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(cost.n_unknown, 0);
    assert_null(strstr(text, "known"));
    assert_non_null(strstr(text, "\neager ops take up to "));
    free(text);
    float got;
    uint64_t before = pl_runtime_claimed_bytes(runtime);
    assert_int_equal(run_on(total, picture, tensor, NULL, &got), 0);
    uint64_t taken = pl_runtime_peak_bytes(runtime); /* with a slab, and blocks that are kept */
    assert_true(taken <= cost.peak_bytes + PL_MIB / 8 && before >= 512 * 512 * 3);
    assert_true(cost.peak_bytes <= taken + taken / 4);
    pl_tensor_unref(tensor);
}

static void what_is_not_known_before_is_said(void **state)
{
    (void)state;
    pl_node *name, *total = image_graph(&name);
    pl_tensor *file = strings_of(PL_SHAPE(), (const char *[]){path});
    const pl_fetch fetch = {total, NULL};
    const pl_feed feed = {name, file};
    pl_run_cost cost;
    char *text;
    if (pl_session_explain(session, &fetch, 1, &feed, 1, NULL, false, &text, &cost, &error) < 0)
        fail_msg("%s", error.message);
    assert_true(cost.n_unknown >= 2); /* the file is not even there */
    assert_non_null(strstr(text, "; the cost of "));
    assert_non_null(strstr(text, "; its cost is not known yet"));
    free(text);
    pl_tensor_unref(file);
}

/* ---- beside another run ---- */

/* A run of another session that has most of the budget, and goes on when it is told to. */
typedef struct holder {
    pl_session *session;
    pthread_t thread;
    pl_node *node;
    _Atomic bool holds, may_end;
    int r;
} holder;

static void hold_on(void *context, double fraction, const char *name)
{
    holder *h = context;
    (void)fraction;
    (void)name;
    h->holds = true;
    while (!h->may_end)
        usleep(1000);
}

static void *hold(void *context)
{
    holder *h = context;
    pl_tensor *result = NULL;
    const pl_fetch fetch = {h->node, NULL};
    const pl_run_options options = {.progress = hold_on, .progress_context = h};
    h->r = pl_session_run(h->session, &fetch, 1, NULL, 0, &options, &result, NULL);
    pl_tensor_unref(result);
    return NULL;
}

static void hold_begin(holder *h)
{
    pl_node *x;
    const pl_shape shape = PL_SHAPE(800000); /* 6.1 MiB of 8 */
    *h = (holder){0};
    assert_int_equal(pl_graph_fill(graph, NULL, PL_F64, &shape, 1, &x, &error), 0);
    h->node = must_add("add", NULL, NODES(x, x), NO_ATTRS);
    assert_int_equal(pl_session_new(graph, runtime, &h->session, &error), 0);
    assert_int_equal(pthread_create(&h->thread, NULL, hold, h), 0);
    while (!h->holds)
        usleep(1000);
}

static void hold_end(holder *h)
{
    h->may_end = true;
    pthread_join(h->thread, NULL);
    assert_int_equal(h->r, 0);
    pl_session_free(h->session);
}

typedef struct waiter {
    pthread_t thread;
    pl_node *node;
    pl_feed feed;
    int r;
    pl_error error;
} waiter;

static void *run_waiter(void *context)
{
    waiter *w = context;
    pl_tensor *result = NULL;
    const pl_fetch fetch = {w->node, NULL};
    w->r = pl_session_run(session, &fetch, 1, &w->feed, w->feed.tensor != NULL, NULL, &result,
                          &w->error);
    pl_tensor_unref(result);
    return NULL;
}

/* Returns when it waits for room. */
static void wait_begin(waiter *w)
{
    assert_int_equal(pthread_create(&w->thread, NULL, run_waiter, w), 0);
    for (int n_urgent = 0; n_urgent == 0; usleep(1000)) {
        pthread_mutex_lock(&runtime->admissions.mu);
        n_urgent = runtime->admissions.n_urgent;
        pthread_mutex_unlock(&runtime->admissions.mu);
    }
}

static pl_tensor *empty_strings(int64_t n)
{
    pl_tensor *tensor = NULL;
    pl_string *strings = calloc((size_t)n, sizeof *strings);
    const pl_shape shape = PL_SHAPE(n);
    assert_int_equal(pl_tensor_new_strings(runtime, &shape, strings, "texts", &tensor, &error), 0);
    free(strings);
    return tensor;
}

static waiter strings_that_wait(void)
{
    pl_node *texts = place("texts", PL_STRING, PL_SHAPE(PL_UNKNOWN));
    pl_node *back = must_add("reverse", "back", NODES(texts), ATTRS(INTS("axes", 0)));
    return (waiter){.node = back, .feed = {texts, empty_strings(150000)}};
}

static void strings_are_moved_when_another_run_has_ended(void **state)
{
    (void)state;
    holder h;
    waiter w = strings_that_wait();
    hold_begin(&h);
    wait_begin(&w);
    hold_end(&h);
    pthread_join(w.thread, NULL);
    if (w.r < 0)
        fail_msg("%s", w.error.message);
    pl_tensor_unref(w.feed.tensor);
}

static void a_stage_that_waits_for_room_can_be_cancelled(void **state)
{
    (void)state;
    holder h;
    waiter w = strings_that_wait();
    hold_begin(&h);
    wait_begin(&w);
    pl_session_cancel(session);
    pthread_join(w.thread, NULL);
    hold_end(&h);
    assert_int_equal(w.r, -ECANCELED);
    assert_string_equal(w.error.message, "reverse 'back': the run was cancelled");
    pl_tensor_unref(w.feed.tensor);
}

/* 3.1 MiB that only a stage asks for. */
static void a_plan_for_a_stage_that_waits_for_room_can_be_cancelled(void **state)
{
    (void)state;
    holder h;
    pl_node *x;
    const pl_shape shape = PL_SHAPE(900, 900, 1);
    assert_int_equal(pl_graph_fill(graph, "x", PL_F32, &shape, 1, &x, &error), 0);
    pl_node *twice = must_add("add", "twice", NODES(x, x), NO_ATTRS);
    waiter w = {.node = must_add("resize", "small", NODES(twice), ATTRS(INTS("size", 1, 1)))};
    hold_begin(&h);
    wait_begin(&w);
    pl_session_cancel(session);
    pthread_join(w.thread, NULL);
    hold_end(&h);
    assert_int_equal(w.r, -ECANCELED);
    assert_string_equal(w.error.message, "the run was cancelled before it began");
}

static void *cancel_again_and_again(void *context)
{
    for (; !*(_Atomic bool *)context; usleep(100))
        pl_session_cancel(session);
    return NULL;
}

static void a_session_cancels_between_stages(void **state)
{
    (void)state;
    pthread_t thread;
    _Atomic bool done = false;
    int r = 0;
    pl_node *given = place("given", PL_STRING, PL_SHAPE(PL_UNKNOWN)), *part = given;
    for (int i = 0; i < 20; i++)
        part = must_add("string_strip", NULL, NODES(part), NO_ATTRS);
    pl_tensor *tensor = empty_strings(10000);
    assert_int_equal(pthread_create(&thread, NULL, cancel_again_and_again, &done), 0);
    for (int i = 0; r == 0 && i < 200; i++) {
        pl_tensor *result = NULL;
        const pl_fetch fetch = {part, NULL};
        const pl_feed feed = {given, tensor};
        r = pl_session_run(session, &fetch, 1, &feed, 1, NULL, &result, &error);
        pl_tensor_unref(result);
    }
    done = true;
    pthread_join(thread, NULL);
    assert_int_equal(r, -ECANCELED);
    pl_tensor_unref(tensor);
}

/* ---- what is made ---- */

/* 1500 x 1500 of two times 1500. */
static void what_strings_broadcast_to_is_in_the_budget(void **state)
{
    (void)state;
    const pl_run_options options = {.budget_bytes = PL_MIB};
    pl_node *texts = place("texts", PL_STRING, PL_SHAPE(1500));
    const pl_shape column = PL_SHAPE(1500, 1);
    pl_node *down =
        must_add("reshape", "down", NODES(texts), ATTRS(pl_attr_shape("shape", &column)));
    pl_tensor *tensor = empty_strings(1500);
    const char *const ops[] = {"string_join", "equal"};
    for (int i = 0; i < 2; i++) {
        pl_node *all = must_add(ops[i], ops[i], NODES(down, texts), NO_ATTRS);
        assert_int_equal(run_on(all, texts, tensor, &options, NULL), PL_EBUDGET);
        assert_non_null(strstr(error.message, ops[i]));
        assert_non_null(strstr(error.message, "the budget is 1.0 MiB"));
    }
    pl_tensor_unref(tensor);
}

static void strings_are_moved_within_the_budget(void **state)
{
    (void)state;
    waiter w = strings_that_wait();
    const pl_run_options options = {.budget_bytes = 64 * PL_KIB};
    assert_int_equal(run_on(w.node, pl_graph_find(graph, "texts"), w.feed.tensor, &options, NULL),
                     PL_EBUDGET);
    assert_non_null(strstr(error.message, "reverse 'back': what it reads needs "));
    assert_non_null(strstr(error.message, "the budget is 64.0 KiB"));
    pl_tensor_unref(w.feed.tensor);
}

/* ---- what is told ---- */

typedef struct watch {
    double last;
    int n_ends;
    bool wrong;
} watch;

static void look_on(void *context, double fraction, const char *name)
{
    watch *w = context;
    w->wrong |= fraction < w->last || !pl_graph_find(graph, name);
    w->n_ends += fraction == 1;
    w->last = fraction;
}

/* Plans for two stages, and one behind them; then the stages alone. */
static void progress_ends_once_with_stages_too(void **state)
{
    (void)state;
    pl_node *x;
    const pl_shape shape = PL_SHAPE(8, 8, 1);
    assert_int_equal(pl_graph_fill(graph, "x", PL_F32, &shape, 1, &x, &error), 0);
    pl_node *twice = must_add("add", "twice", NODES(x, x), NO_ATTRS);
    pl_node *small = must_add("resize", "small", NODES(twice), ATTRS(INTS("size", 4, 4)));
    pl_node *more = must_add("add", "more", NODES(small, small), NO_ATTRS);
    pl_node *one = must_add("resize", "one", NODES(more), ATTRS(INTS("size", 1, 1)));
    pl_node *ends[] = {must_add("sum", "sum", NODES(one), NO_ATTRS), one};
    for (int i = 0; i < 2; i++) {
        watch w = {0};
        pl_tensor *result = NULL;
        const pl_fetch fetch = {ends[i], NULL};
        const pl_run_options options = {.progress = look_on, .progress_context = &w};
        assert_int_equal(pl_session_run(session, &fetch, 1, NULL, 0, &options, &result, &error), 0);
        pl_tensor_unref(result);
        assert_false(w.wrong);
        assert_int_equal(w.n_ends, 1);
    }
}

static void what_is_before_the_plan_is_explained(void **state)
{
    (void)state;
    pl_node *name, *total = image_graph(&name);
    const pl_fetch fetch = {total, NULL};
    char *text = NULL;
    assert_int_equal(
        pl_session_explain(session, &fetch, 1, NULL, 0, NULL, false, &text, NULL, &error), 0);
    assert_non_null(strstr(text, "decode_image 'image'         [?,?,3]                   ?"));
    assert_non_null(strstr(text, "resize 'small'               [4,4,3]               192 B"));
    assert_non_null(strstr(text, "sum 'total'"));
    free(text);
}

/* The shape of what stages make is known, or is not. */
static void what_a_run_would_refuse_is_not_explained(void **state)
{
    (void)state;
    pl_node *v, *given = place("given", PL_STRING, PL_SHAPE(PL_UNKNOWN));
    pl_node *known = place("known", PL_STRING, PL_SHAPE(2));
    const pl_shape shape = PL_SHAPE(2);
    assert_int_equal(pl_graph_variable(graph, "v", PL_STRING, &shape, &v, &error), 0);
    pl_node *a = must_add("assign", "a", NODES(v, known), NO_ATTRS);
    pl_node *b = must_add("assign", "b", NODES(v, known), NO_ATTRS);
    pl_node *any = must_add("string_strip", "any", NODES(given), NO_ATTRS);
    const pl_fetch fetches[] = {{a, NULL}, {b, NULL}, {any, NULL}};
    for (int n = 2; n <= 3; n++) {
        char *text = NULL;
        assert_int_equal(
            pl_session_explain(session, fetches, n, NULL, 0, NULL, false, &text, NULL, &error),
            -EINVAL);
        assert_string_equal(error.message, "'a' and 'b' both assign to 'v' in one run");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DATA_CASE(every_allocation_for_a_jpeg_may_fail),
        DATA_CASE(every_allocation_for_a_png_may_fail),
        DATA_CASE(every_allocation_of_a_run_with_a_kept_plan_may_fail),
        DATA_CASE(every_allocation_for_strings_may_fail),
        DATA_CASE(a_file_that_cannot_be_read_is_told_with_its_node),
        DATA_CASE(what_is_not_fed_is_told),
        DATA_CASE(a_stage_can_be_cancelled),
        DATA_CASE(the_budget_of_a_run_holds_for_its_stages),
        DATA_CASE(a_stage_whose_slab_passes_the_budget_is_refused),
        DATA_CASE(what_stages_cost_is_stated_where_it_is_known),
        DATA_CASE(what_is_not_known_before_is_said),
        DATA_CASE(what_idles_between_stages_is_in_the_budget),
        DATA_CASE(what_idles_when_the_plan_is_made_is_in_the_budget),
        DATA_CASE(a_picture_without_pixels_is_not_resized),
        DATA_CASE(a_run_that_fails_changes_no_variable),
        DATA_CASE(a_variable_of_strings_keeps_its_shape),
        DATA_CASE(an_assignment_beneath_a_stage_is_made),
        DATA_CASE(several_threads_decode_side_by_side),
        DATA_CASE(what_no_stage_reads_any_more_is_let_go_of),
        DATA_CASE(strings_are_moved_when_another_run_has_ended),
        DATA_CASE(a_stage_that_waits_for_room_can_be_cancelled),
        DATA_CASE(a_plan_for_a_stage_that_waits_for_room_can_be_cancelled),
        DATA_CASE(a_session_cancels_between_stages),
        DATA_CASE(what_strings_broadcast_to_is_in_the_budget),
        DATA_CASE(strings_are_moved_within_the_budget),
        DATA_CASE(progress_ends_once_with_stages_too),
        DATA_CASE(what_is_before_the_plan_is_explained),
        DATA_CASE(what_a_run_would_refuse_is_not_explained),
    };
    return cmocka_run_group_tests_name("data", tests, NULL, NULL);
}
