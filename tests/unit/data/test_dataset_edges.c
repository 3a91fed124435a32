/* SPDX-License-Identifier: Apache-2.0 */
/* What passes meet at their edges: stages that are not open, functions that say little, files
 * that fail in the middle of a batch, forks. */
#include "dataset_fixture.h"

#include <sys/wait.h>

static int begin(void **state)
{
    return begin_with(state, 16 * PL_MIB, 2);
}

/* ---- explain ---- */

static pl_dataset *repeated(pl_dataset *input, int64_t n)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_repeat(input, n, &dataset, &error);
    pl_dataset_unref(input);
    return must(r, dataset);
}

static pl_dataset *cached(pl_dataset *input)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_cache(input, NULL, &dataset, &error);
    pl_dataset_unref(input);
    return must(r, dataset);
}

static void explain_once(pl_iterator *iterator, const char *says)
{
    for (int as_json = 0; as_json <= 1; as_json++) {
        char *text = NULL;
        assert_int_equal(pl_iterator_explain(iterator, as_json, &text, &error), 0);
        assert_non_null(strstr(text, says));
        free(text);
    }
}

static void what_a_cache_does_not_open_is_left_out_of_explain(void **state)
{
    (void)state;
    pl_dataset *dataset = cached(range(3));
    for (int pass = 0; pass < 2; pass++) {
        pl_iterator *iterator = pass_over(pl_dataset_ref(dataset));
        explain_once(iterator, "nothing was asked for yet");
        for (int64_t i = 0; i < 3; i++)
            assert_int_equal(next_number(iterator), i);
        assert_int_equal(next_number(iterator), INT64_MIN);
        explain_once(iterator, "cache");
        pl_iterator_free(iterator);
    }
    pl_dataset_unref(dataset);
}

/* Copying batches is nearly all of the work here: rows of 128 KiB, so that a thread that is put
 * aside is put aside within a copy. */
static void explain_asks_for_no_second_prefetch(void **state)
{
    (void)state;
    const pl_shape shape = PL_SHAPE(1 << 5, 1 << 14);
    double *data = calloc(1 << 19, sizeof *data);
    char *text = NULL;
    pl_tensor *rows = NULL;
    pl_dataset *dataset = NULL;
    assert_int_equal(pl_tensor_new(runtime, PL_F64, &shape, data, "rows", &rows, &error), 0);
    int r = pl_dataset_from_slices(runtime, &rows, 1, &dataset, &error);
    must(r, dataset);
    pl_iterator *iterator = pass_over(prefetched(batched(repeated(dataset, 40), 8, true), 2));
    pl_value value;
    while ((r = pl_iterator_next(iterator, &value, &error)) > 0)
        pl_tensor_unref(value.tensor);
    assert_int_equal(r, 0);
    assert_int_equal(pl_iterator_explain(iterator, false, &text, &error), 0);
    assert_null(strstr(text, "put a prefetch behind it"));
    free(text);
    pl_iterator_free(iterator);
    pl_tensor_unref(rows);
    free(data);
}

static void explain_looks_while_stages_below_come_and_go(void **state)
{
    (void)state;
    pl_iterator *iterator = pass_over(prefetched(repeated(batched(range(3), 2, false), -1), 8));
    for (int i = 0; i < 2000; i++) {
        (void)next_number(iterator);
        explain_once(iterator, "repeat");
    }
    pl_iterator_free(iterator);
}

/* ---- functions that say little ---- */

static int say_nothing(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                       int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs, (void)reterr;
    if (number_in(inputs[0].tensor, 0) % 2 == 1)
        return -EIO;
    outputs[0].tensor = pl_tensor_ref(inputs[0].tensor);
    return 0;
}

static void a_function_that_gives_no_reason_has_that_of_its_code(void **state)
{
    (void)state;
    for (int n_parallel = 1; n_parallel <= 2; n_parallel++) {
        pl_iterator *iterator = pass_over(with(mapped(range(6), say_nothing, n_parallel),
                                               (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP}));
        for (int64_t i = 0; i < 6; i += 2)
            assert_int_equal(next_number(iterator), i);
        assert_int_equal(next_number(iterator), INT64_MIN);
        pl_bad_element bads[3];
        assert_int_equal(pl_iterator_bads(iterator, bads, 3), 3);
        for (int i = 0; i < 3; i++) {
            char says[64];
            snprintf(says, sizeof says, "map: element %d, %s", 2 * i + 1, pl_error_text(-EIO));
            assert_string_equal(bads[i].message, says);
            assert_string_equal(bads[i].reason, pl_error_text(-EIO));
        }
        pl_iterator_free(iterator);
    }
}

/* ---- batches ---- */

static int deepest(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                   int n_outputs, pl_error *reterr)
{
    (void)context, (void)inputs, (void)n_inputs, (void)n_outputs;
    pl_shape shape = {.rank = PL_RANK_MAX};
    for (int i = 0; i < PL_RANK_MAX; i++)
        shape.dims[i] = 1;
    return pl_tensor_new(runtime, PL_I64, &shape, &(int64_t){7}, "deep", &outputs[0].tensor,
                         reterr);
}

static void a_batch_refuses_elements_that_have_no_room_for_its_axis(void **state)
{
    (void)state;
    static const pl_spec spec = {.dtype = PL_I64, .shape = {.rank = PL_RANK_UNKNOWN}};
    const pl_function function = {
        .call = deepest, .output_specs = &spec, .n_inputs = 1, .n_outputs = 1};
    pl_dataset *input = range(3), *dataset = NULL;
    must(pl_dataset_map(input, &function, 1, &dataset, &error), dataset);
    pl_dataset_unref(input);
    pl_iterator *iterator = pass_over(batched(dataset, 2, false));
    pl_value value;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pl_iterator_next(iterator, &value, &error), -EINVAL);
        assert_non_null(strstr(error.message, "no room for one more axis"));
    }
    assert_int_equal(pl_iterator_next(iterator, &value, &error), 0);
    pl_iterator_free(iterator);
}

static void stages_in_a_row_are_so_many_at_most(void **state)
{
    (void)state;
    pl_dataset *dataset = range(3);
    int n = 1, r = 0;
    for (; r == 0 && n < 100000; n++) {
        pl_dataset *next = NULL;
        r = pl_dataset_take(dataset, 2, &next, &error);
        if (r == 0) {
            pl_dataset_unref(dataset);
            dataset = next;
        }
    }
    assert_int_equal(r, -EINVAL);
    assert_int_equal(n, 8193);
    assert_non_null(strstr(error.message, "more than 8192 stages in a row"));
    pl_dataset_unref(dataset);
}

/* Joined with itself it doubles: so do the stages that a pass would have to open. */
static void stages_that_a_pass_would_open_are_so_many_at_most(void **state)
{
    (void)state;
    pl_dataset *dataset = range(1);
    int n = 0, r = 0;
    for (; r == 0 && n < 40; n++) {
        pl_dataset *next = NULL;
        r = n == 5 ? pl_dataset_zip((pl_dataset *[]){dataset, dataset}, 2, &next, &error)
                   : pl_dataset_concatenate(dataset, dataset, &next, &error);
        if (r == 0) {
            pl_dataset_unref(dataset);
            dataset = next;
        }
    }
    assert_int_equal(r, -EINVAL);
    assert_int_equal(n, 17); /* 2^18 - 1 stages are too many, 2^17 - 1 are not */
    assert_string_equal(error.message,
                        "concatenate: a pass would have 262143 stages open at once, and the most "
                        "are 131072: a dataset that comes in several times is opened as often; "
                        "repeat it, or join datasets by flat_map or interleave over what tells "
                        "them apart");
    pl_iterator *iterator = pass_over(dataset);
    pl_value values[2];
    assert_int_equal(pl_iterator_next(iterator, values, &error), 1);
    pl_tensor_unref(values[0].tensor);
    pl_tensor_unref(values[1].tensor);
    pl_iterator_free(iterator);
}

/* A name, and a number of a file; every other one's is cut off by now. */
typedef struct cut_files {
    pl_tensor *name, *numbers[2];
    int64_t n_asked;
} cut_files;

static int next_of_files(void *state, pl_value *ret_values, int n_values, pl_error *reterr)
{
    (void)n_values, (void)reterr;
    cut_files *own = state;
    if (own->n_asked == 6)
        return 0;
    ret_values[0].tensor = pl_tensor_ref(own->name);
    ret_values[1].tensor = pl_tensor_ref(own->numbers[own->n_asked++ % 2]);
    return 1;
}

static void make_files(cut_files *own, const char *path)
{
    pl_tensor *numbers;
    const pl_shape shape = PL_SHAPE(6);
    *own = (cut_files){0};
    assert_int_equal(pl_tensor_new_strings(runtime, &(pl_shape){0}, &(pl_string){"name", 4}, "name",
                                           &own->name, &error),
                     0);
    assert_int_equal(
        pl_tensor_new(runtime, PL_I64, &shape, (int64_t[6]){1, 2}, "n", &numbers, &error), 0);
    for (int i = 1; i >= 0; i--) {
        assert_int_equal(pl_tensor_save_npy(numbers, path, &error), 0);
        assert_int_equal(pl_tensor_open_npy(runtime, path, &own->numbers[i], &error), 0);
        assert_int_equal(i == 0 ? truncate(path, 130) : unlink(path), 0);
    }
    pl_tensor_unref(numbers);
}

static void what_cannot_be_read_leaves_nothing_in_the_batch(void **state)
{
    (void)state;
    char path[128];
    cut_files files;
    snprintf(path, sizeof path, "%s/n.npy", folder);
    make_files(&files, path);
    static const pl_spec specs[] = {{.dtype = PL_STRING},
                                    {.dtype = PL_I64, .shape = {.rank = 1, .dims = {6}}}};
    const pl_generator generator = {.next = next_of_files,
                                    .specs = specs,
                                    .n_components = 2,
                                    .cardinality = 6,
                                    .context = &files};
    pl_dataset *dataset = NULL;
    must(pl_dataset_generator(runtime, &generator, &dataset, &error), dataset);
    pl_iterator *iterator = pass_over(batched(dataset, 8, false));
    pl_value values[2];
    for (int i = 0; i < 3; i++) {
        int r = pl_iterator_next(iterator, values, &error);
        assert_true(r < 0);
    }
    assert_int_equal(pl_iterator_next(iterator, values, &error), 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pl_tensor_shape(values[i].tensor)->dims[0], 3);
        pl_tensor_unref(values[i].tensor);
    }
    assert_int_equal(pl_iterator_next(iterator, values, &error), 0);
    pl_iterator_free(iterator);
    pl_tensor_unref(files.name);
    pl_tensor_unref(files.numbers[0]);
    pl_tensor_unref(files.numbers[1]);
    unlink(path);
}

/* ---- forks ---- */

static void a_pass_that_had_no_threads_does_not_wait_for_them_in_a_child(void **state)
{
    (void)state;
    pl_iterator *iterator = pass_over(prefetched(range(50), 4));
    pid_t child = fork();
    if (child == 0) {
        pl_value value;
        alarm(60); /* it would wait for ever */
        for (int i = 0; i < 10; i++)
            if (pl_iterator_next(iterator, &value, &error) == 0)
                _exit(1);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pl_iterator_free(iterator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_cache_does_not_open_is_left_out_of_explain, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(explain_asks_for_no_second_prefetch, begin, finish),
        cmocka_unit_test_setup_teardown(explain_looks_while_stages_below_come_and_go, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(a_function_that_gives_no_reason_has_that_of_its_code, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(a_batch_refuses_elements_that_have_no_room_for_its_axis,
                                        begin, finish),
        cmocka_unit_test_setup_teardown(stages_in_a_row_are_so_many_at_most, begin, finish),
        cmocka_unit_test_setup_teardown(stages_that_a_pass_would_open_are_so_many_at_most, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_leaves_nothing_in_the_batch, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(
            a_pass_that_had_no_threads_does_not_wait_for_them_in_a_child, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
