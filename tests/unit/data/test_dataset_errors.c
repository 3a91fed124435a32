/* SPDX-License-Identifier: Apache-2.0 */
/* Bad elements: skipped, counted, listed, written down, and too many of them at their place,
 * whatever the number of threads. */
#include <limits.h>

#include "dataset_fixture.h"

#include "data/core/quoted.h"
#include "data/iterator/iterator.h"

static int begin(void **state)
{
    return begin_with(state, 64 * PL_MIB, 2);
}

/* Numbers that leave `rest` when divided by `by` are bad; some take longer than others. */
typedef struct rule {
    int64_t by, rest;
} rule;

static int apply(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                 int n_outputs, pl_error *reterr)
{
    (void)n_inputs, (void)n_outputs;
    const rule *own = context;
    int64_t x = number_in(inputs[0].tensor, 0);
    if (x % 11 == 0)
        usleep(100);
    if (x % own->by == own->rest)
        return pl_error_set(reterr, PL_ECORRUPT, "%lld is \"bad\"", (long long)x);
    return pl_tensor_new(runtime, PL_I64, &(pl_shape){0}, &x, "x", &outputs[0].tensor, reterr);
}

static pl_dataset *ruled(pl_dataset *input, const rule *own, int n_parallel, const char *name)
{
    static const pl_spec spec = {.dtype = PL_I64};
    const pl_function function = {.call = apply,
                                  .output_specs = &spec,
                                  .n_inputs = 1,
                                  .n_outputs = 1,
                                  .context = (void *)own};
    pl_dataset *dataset = NULL;
    int r = pl_dataset_map(input, &function, n_parallel, &dataset, &error);
    pl_dataset_unref(input);
    must(r, dataset);
    assert_int_equal(pl_dataset_set_name(dataset, name, &error), 0);
    return dataset;
}

/* ---- quarantine ---- */

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static char *text_of(const char *path)
{
    static char text[16384];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int count_of(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

static void a_quarantine_has_a_line_for_each_bad_element(void **state)
{
    (void)state;
    static const rule by_seven = {7, 3};
    char path[128];
    strcpy(path, in_folder("bad.jsonl"));
    for (int pass = 1; pass <= 2; pass++) {
        pl_iterator *iterator = pass_over(
            with(ruled(range(20), &by_seven, 2, "sieve"), (pl_dataset_options){
                                                              .on_error = PL_ON_ERROR_QUARANTINE,
                                                              .quarantine_path = path,
                                                          }));
        for (int64_t i = 0; i < 20; i++)
            if (i % 7 != 3)
                assert_int_equal(next_number(iterator), i);
        assert_int_equal(next_number(iterator), INT64_MIN);
        pl_iterator_free(iterator);
        const char *text = text_of(path);
        assert_int_equal(count_of(text, "\n"), 3 * pass);
        assert_int_equal(count_of(text, "{\"time\": \"2"), 3 * pass);
        assert_int_equal(count_of(text,
                                  "Z\", \"stage\": \"sieve\", \"index\": 10, \"path\": null, "
                                  "\"offset\": null, \"code\": \"PL_ECORRUPT\", \"op\": null, "
                                  "\"reason\": "
                                  "\"10 is \\\"bad\\\"\"}\n"),
                         pass);
    }
    unlink(path);
}

static void a_quarantine_that_cannot_be_written_ends_the_pass(void **state)
{
    (void)state;
    static const rule third = {1000, 3};
    const pl_dataset_options options = {.on_error = PL_ON_ERROR_QUARANTINE,
                                        .quarantine_path = "/dev/full"};
    pl_iterator *iterator = pass_over(with(ruled(range(20), &third, 1, "sieve"), options));
    pl_value value;
    for (int64_t i = 0; i < 3; i++)
        assert_int_equal(next_number(iterator), i);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(pl_iterator_next(iterator, &value, &error), -ENOSPC);
        assert_non_null(strstr(error.message, "quarantine '/dev/full'"));
        assert_non_null(strstr(error.message, "3 is \"bad\""));
    }
    pl_iterator_free(iterator);
}

static void any_bytes_are_quoted_as_json(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    pl_quoted_json("a\"\\\n\x7f\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xff\xc0\xaf\xed\xa0\x80", to);
    fclose(to);
    assert_string_equal(text, "\"a\\\"\\\\\\u000a\\u007f\\u00e4\\u20ac\\ud83d\\ude00\\udcff\\udcc0"
                              "\\udcaf\\udced\\udca0\\udc80\"");
    free(text);
}

/* ---- names ---- */

static int refuse(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                  int n_outputs, pl_error *reterr)
{
    (void)context, (void)inputs, (void)n_inputs, (void)outputs, (void)n_outputs;
    return pl_error_set(reterr, PL_ECORRUPT, "no");
}

/* The path that a bad element of these texts has. */
static const char *path_of(const char *text)
{
    static char path[PATH_MAX];
    static const pl_spec spec = {.dtype = PL_I64};
    const pl_function function = {
        .call = refuse, .output_specs = &spec, .n_inputs = 2, .n_outputs = 1};
    const pl_string string = {text, strlen(text)};
    pl_tensor *tensors[2];
    pl_dataset *slices = NULL, *mapped = NULL;
    const pl_shape one = {.rank = 1, .dims = {1}};
    assert_int_equal(pl_tensor_new(runtime, PL_I64, &one, &(int64_t){7}, "n", &tensors[0], &error),
                     0);
    assert_int_equal(pl_tensor_new_strings(runtime, &one, &string, "s", &tensors[1], &error), 0);
    must(pl_dataset_from_slices(runtime, tensors, 2, &slices, &error), slices);
    must(pl_dataset_map(slices, &function, 1, &mapped, &error), mapped);
    pl_iterator *iterator =
        pass_over(with(mapped, (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP}));
    assert_int_equal(next_number(iterator), INT64_MIN);
    pl_bad_element bad;
    assert_int_equal(pl_iterator_bads(iterator, &bad, 1), 1);
    snprintf(path, sizeof path, "%s", bad.path ? bad.path : "-");
    pl_iterator_free(iterator);
    pl_dataset_unref(slices);
    pl_tensor_unref(tensors[0]);
    pl_tensor_unref(tensors[1]);
    return path;
}

static void a_text_that_reads_like_a_file_names_its_element(void **state)
{
    (void)state;
    static char long_text[PATH_MAX + 10];
    memset(long_text, '/', sizeof long_text - 1);
    const char *const names[] = {"cats/3", "3.jpg", "a b.tfrecord", "../x", "a.b.npy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(path_of(names[i]), names[i]);
    const char *const others[] = {"a cat", "the end.",        ".jpg",          "to be.\nor/not",
                                  "",      "a.much_too_long", "no. it is not", long_text};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_string_equal(path_of(others[i]), "-");
}

/* ---- limits and lists ---- */

static void limits_count_what_is_below_them(void **state)
{
    (void)state;
    static const rule by_two = {2, 1};
    pl_dataset *dataset = with(ruled(range(100), &by_two, 2, "inner"),
                               (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP, .max_bad = 4});
    pl_iterator *iterator =
        pass_over(with(prefetched(dataset, 8), (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP}));
    pl_value value;
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(next_number(iterator), 2 * i);
    for (int again = 0; again < 3; again++) {
        assert_int_equal(pl_iterator_next(iterator, &value, &error), PL_ECORRUPT);
        assert_string_equal(
            error.message,
            "5 elements are bad, and 4 may be; one of them: map 'inner': element 9, 9 is \"bad\"");
    }
    pl_iterator_free(iterator);
}

static void a_row_of_bad_elements_does_not_go_on_for_ever(void **state)
{
    (void)state;
    static const rule all = {1, 0};
    pl_iterator *iterator =
        pass_over(with(ruled(range(INT64_MAX), &all, 2, "all"),
                       (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP, .max_bad = 500}));
    pl_value value;
    assert_int_equal(pl_iterator_next(iterator, &value, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "501 elements are bad, and 500 may be"));
    pl_iterator_free(iterator);
}

/* As a chain, and in threads of their own behind each other. */
static pl_dataset *with_share(pl_dataset *input, double most, int64_t n_ahead)
{
    return with(prefetched(batched(prefetched(input, n_ahead), 100, false), n_ahead),
                (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP, .max_bad_fraction = most});
}

static void a_share_of_bad_elements_is_looked_at_where_no_good_one_comes(void **state)
{
    (void)state;
    static const rule all = {1, 0};
    for (int n = 1; n <= 3; n++) {
        pl_iterator *iterator =
            pass_over(with_share(ruled(range(INT64_MAX), &all, n, "all"), 0.9, n - 1));
        pl_value value;
        for (int again = 0; again < 2; again++) {
            assert_int_equal(pl_iterator_next(iterator, &value, &error), PL_ECORRUPT);
            assert_non_null(strstr(error.message, "elements are bad, and 90 % may be; one of them: "
                                                  "map 'all': element 0, 0 is \"bad\""));
        }
        pl_iterator_free(iterator);
    }
}

static void a_share_that_is_too_large_at_the_end_names_one_of_the_bad(void **state)
{
    (void)state;
    static const rule by_three = {3, 1};
    pl_iterator *iterator = pass_over(
        with(ruled(range(9), &by_three, 1, "some"),
             (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP, .max_bad_fraction = 0.1}));
    pl_value value;
    for (int64_t i = 0; i < 9; i++)
        if (i % 3 != 1)
            assert_int_equal(next_number(iterator), i);
    assert_int_equal(pl_iterator_next(iterator, &value, &error), PL_ECORRUPT);
    assert_string_equal(error.message, "3 of 9 elements are bad, and 10 % may be; one of them: map "
                                       "'some': element 7, 7 is \"bad\"");
    pl_iterator_free(iterator);
}

/* Adds up, but for one that it cannot take. */
static int add_but_five(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                        int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs;
    const int64_t none[1] = {0};
    int64_t sum, number;
    if (pl_tensor_read(inputs[0].tensor, none, none, &sum, reterr) < 0 ||
        pl_tensor_read(inputs[1].tensor, none, none, &number, reterr) < 0)
        return reterr->code;
    if (number == 5)
        return pl_error_set(reterr, -EDOM, "not this one");
    sum += number;
    return pl_tensor_new(runtime, PL_I64, &(const pl_shape){0}, &sum, "sum", &outputs[0].tensor,
                         reterr);
}

static void what_a_reduce_cannot_take_is_told_by_its_own_index(void **state)
{
    (void)state;
    static const pl_spec spec = {.dtype = PL_I64};
    const pl_function add = {
        .call = add_but_five, .output_specs = &spec, .n_inputs = 2, .n_outputs = 1};
    pl_tensor *zero;
    pl_value sum;
    assert_int_equal(
        pl_tensor_new(runtime, PL_I64, &(const pl_shape){0}, &(int64_t){0}, "zero", &zero, &error),
        0);
    pl_dataset *numbers = range(9);
    assert_int_equal(pl_dataset_reduce(numbers, &zero, 1, &add, &sum, &error), -EDOM);
    assert_string_equal(error.message, "reduce: element 5, not this one");
    pl_dataset_unref(numbers);
    pl_tensor_unref(zero);
}

static pl_dataset *concatenated(pl_dataset *input, pl_dataset *other)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_concatenate(input, other, &dataset, &error);
    pl_dataset_unref(input);
    pl_dataset_unref(other);
    return must(r, dataset);
}

/* 500 bad ones in a row, of which their own stage knows nothing else, behind 6000 good ones. */
static void a_row_of_bad_elements_is_a_share_of_all_before_it(void **state)
{
    (void)state;
    static const rule all = {1, 0};
    for (int n = 1; n <= 3; n++) {
        pl_dataset *bad = ruled(range(500), &all, n, "bad");
        pl_iterator *iterator = pass_over(
            with_share(concatenated(concatenated(range(6000), bad), range(7)), 0.1, n - 1));
        for (int64_t i = 0; i < 6000; i += 100)
            assert_int_equal(next_number(iterator), i);
        assert_int_equal(next_number(iterator), 0);
        assert_int_equal(next_number(iterator), INT64_MIN);
        assert_int_equal(pl_iterator_bad_count(iterator).n_bad, 500);
        assert_int_equal(pl_iterator_bad_count(iterator).n_items, 6507);
        pl_iterator_free(iterator);
    }
}

static void the_first_bad_elements_are_listed_in_order(void **state)
{
    (void)state;
    static const rule by_three = {3, 1};
    pl_dataset *dataset = batched(ruled(range(600), &by_three, 3, "sieve"), 7, false);
    pl_iterator *iterator =
        pass_over(with(prefetched(dataset, 4), (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP}));
    pl_value value;
    while (pl_iterator_next(iterator, &value, &error) == 1)
        pl_tensor_unref(value.tensor);
    pl_bad_element bads[100];
    assert_int_equal(pl_iterator_bad_count(iterator).n_bad, 200);
    assert_int_equal(pl_iterator_bad_count(iterator).n_items, 600);
    assert_int_equal(pl_iterator_bads(iterator, bads, 100), PL_BAD_CHAIN);
    for (int i = 0; i < PL_BAD_CHAIN; i++) {
        char reason[32];
        snprintf(reason, sizeof reason, "%d is \"bad\"", 3 * i + 1);
        assert_string_equal(bads[i].reason, reason);
        assert_string_equal(bads[i].stage, "sieve");
        assert_int_equal(bads[i].index, 3 * i + 1);
        assert_int_equal(bads[i].code, PL_ECORRUPT);
        assert_null(bads[i].path);
    }
    assert_string_equal(bads[0].message, "map 'sieve': element 1, 1 is \"bad\"");
    pl_iterator_free(iterator);
}

static void bad_elements_of_several_stages_are_all_counted_in_order(void **state)
{
    (void)state;
    static const rule by_three = {3, 1}, by_five = {5, 0};
    for (int n_parallel = 1; n_parallel <= 2; n_parallel++) {
        pl_dataset *dataset = ruled(range(90), &by_three, n_parallel, "inner");
        dataset = ruled(dataset, &by_five, n_parallel, "outer");
        pl_iterator *iterator = pass_over(
            with(batched(dataset, 7, false), (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP}));
        pl_value value;
        while (pl_iterator_next(iterator, &value, &error) == 1)
            pl_tensor_unref(value.tensor);
        pl_bad_element bads[PL_BAD_CHAIN];
        assert_int_equal(pl_iterator_bad_count(iterator).n_bad, 42);
        assert_int_equal(pl_iterator_bad_count(iterator).n_items, 90);
        int n = pl_iterator_bads(iterator, bads, PL_BAD_CHAIN), at = 0;
        assert_int_equal(n, 42);
        for (int64_t x = 0; x < 90; x++)
            if (x % 3 == 1 || x % 5 == 0) {
                assert_int_equal(atoi(bads[at].reason), x);
                assert_string_equal(bads[at++].stage, x % 3 == 1 ? "inner" : "outer");
            }
        pl_iterator_free(iterator);
    }
}

static void the_nearest_options_decide(void **state)
{
    (void)state;
    static const rule by_ten = {10, 5}, by_eight = {8, 6};
    pl_dataset *inner = with(ruled(range(20), &by_ten, 1, "inner"),
                             (pl_dataset_options){.on_error = PL_ON_ERROR_FAIL});
    pl_iterator *iterator = pass_over(with(ruled(inner, &by_eight, 1, "outer"),
                                           (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP}));
    pl_value value;
    for (int64_t i = 0; i < 20; i++) {
        if (i % 10 == 5) {
            assert_int_equal(pl_iterator_next(iterator, &value, &error), PL_ECORRUPT);
            assert_non_null(strstr(error.message, "map 'inner': element"));
        } else if (i % 8 != 6) {
            assert_int_equal(next_number(iterator), i);
        }
    }
    assert_int_equal(next_number(iterator), INT64_MIN);
    assert_int_equal(pl_iterator_bad_count(iterator).n_bad, 2);
    pl_iterator_free(iterator);
}

/* ---- the same with any number of threads ---- */

static uint64_t next_random;

static int64_t random_below(int64_t n)
{
    next_random = next_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((next_random >> 33) % (uint64_t)n);
}

enum { N_RULES = 3 };

static rule rules[N_RULES];

/* A pipeline that only the seed says, but for `n_parallel`: 1: nothing runs ahead. */
static pl_dataset *random_pipeline(uint64_t seed, int n_parallel)
{
    next_random = seed;
    pl_dataset *dataset = range(50 + random_below(300));
    for (int i = 0; i < N_RULES; i++) {
        rules[i] = (rule){2 + random_below(30), 0};
        rules[i].rest = random_below(rules[i].by + rules[i].by / 2); /* or none is bad */
        dataset = ruled(dataset, &rules[i], n_parallel, "rule");
        if (random_below(2)) {
            pl_on_error on_error = (pl_on_error)random_below(3);
            dataset = with(dataset, (pl_dataset_options){
                                        .on_error = on_error,
                                        .max_bad = random_below(3) ? 0 : (uint64_t)random_below(20),
                                        .max_bad_fraction = random_below(3) ? 0 : 0.1,
                                    });
        }
        int64_t n_ahead = random_below(10);
        if (n_ahead > 4 && n_parallel != 1)
            dataset = prefetched(dataset, n_ahead);
    }
    return dataset;
}

/* All that a consumer sees, up to the third error in a row. */
static char *seen_of(pl_dataset *dataset)
{
    char *seen = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&seen, &n);
    pl_iterator *iterator = pass_over(dataset);
    pl_value value;
    for (int r = 1, n_errors = 0; r != 0 && n_errors < 3;) {
        r = pl_iterator_next(iterator, &value, &error);
        n_errors = r < 0 ? n_errors + 1 : 0;
        if (r < 0)
            fprintf(to, "%d: %s\n", r, error.message);
        if (r > 0) {
            fprintf(to, "%lld\n", (long long)number_in(value.tensor, 0));
            pl_tensor_unref(value.tensor);
        }
        pl_bad_count count = pl_iterator_bad_count(iterator);
        fprintf(to, "%llu of %llu\n", (unsigned long long)count.n_bad,
                (unsigned long long)count.n_items);
    }
    pl_iterator_free(iterator);
    fclose(to);
    return seen;
}

static void consumers_see_the_same_whatever_the_threads(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        char *expected = seen_of(random_pipeline(seed * 1000, 1));
        for (int n = 2; n <= 4; n++) {
            char *seen = seen_of(random_pipeline(seed * 1000, n == 4 ? PL_AUTO : n));
            if (strcmp(seen, expected) != 0)
                fail_msg("seed %d, %d at once: another sequence:\n%s\ninstead of\n%s", (int)seed, n,
                         seen, expected);
            free(seen);
        }
        free(expected);
    }
}

/* ---- what an error carries ---- */

static _Atomic int n_payloads_made, n_payloads_freed;

typedef struct numbered {
    pl_error_payload payload;
    int64_t number;
} numbered;

static void free_numbered(pl_error_payload *payload)
{
    n_payloads_freed++;
    free(payload);
}

/* Every number is bad, and its error carries it. */
static int fail_with_number(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                            int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)outputs, (void)n_outputs;
    numbered *own = calloc(1, sizeof *own);
    *own = (numbered){{.n_refs = 1, .free = free_numbered}, number_in(inputs[0].tensor, 0)};
    n_payloads_made++;
    pl_error_set(reterr, PL_ECORRUPT, "number %lld", (long long)own->number);
    pl_error_attach(reterr, &own->payload);
    return PL_ECORRUPT;
}

static int64_t number_of(const pl_error *failed)
{
    assert_non_null(failed->payload);
    return ((const numbered *)failed->payload)->number;
}

static void a_payload_reaches_the_consumer_and_is_freed_once(void **state)
{
    (void)state;
    for (int n_parallel = 1; n_parallel <= 4; n_parallel++) {
        n_payloads_made = n_payloads_freed = 0;
        pl_iterator *iterator =
            pass_over(prefetched(mapped(range(200), fail_with_number, n_parallel), 4));
        for (int64_t i = 0; i < 200; i++) {
            pl_value value;
            pl_error failed = PL_ERROR_INIT;
            assert_int_equal(pl_iterator_next(iterator, &value, &failed), PL_ECORRUPT);
            assert_int_equal(number_of(&failed), i);
            assert_int_equal(failed.element, i);
            assert_string_equal(failed.stage, "map");
            pl_error_done(&failed);
        }
        pl_iterator_free(iterator);
        assert_int_equal(n_payloads_made, 200);
        assert_int_equal(n_payloads_freed, 200);
    }
}

static void a_pass_that_is_dropped_frees_what_is_on_its_way(void **state)
{
    (void)state;
    n_payloads_made = n_payloads_freed = 0;
    pl_dataset *both[2] = {mapped(range(300), fail_with_number, 3), range(300)}, *zipped = NULL;
    assert_int_equal(pl_dataset_zip(both, 2, &zipped, &error), 0);
    pl_dataset_unref(both[0]);
    pl_dataset_unref(both[1]);
    pl_iterator *iterator = pass_over(prefetched(zipped, 8));
    pl_value values[2];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pl_iterator_next(iterator, values, NULL), PL_ECORRUPT);
    pl_iterator_free(iterator);
    assert_true(n_payloads_made >= 3);
    assert_int_equal(n_payloads_freed, n_payloads_made);
}

static void skipped_elements_free_theirs_with_the_pass(void **state)
{
    (void)state;
    for (int fraction = 0; fraction < 2; fraction++) {
        n_payloads_made = n_payloads_freed = 0;
        pl_dataset_options options = {.on_error = PL_ON_ERROR_SKIP,
                                      .max_bad_fraction = fraction ? 0.5 : 0};
        pl_iterator *iterator = pass_over(with(mapped(range(1000), fail_with_number, 2), options));
        pl_value value;
        pl_error failed = PL_ERROR_INIT;
        int r = pl_iterator_next(iterator, &value, &failed);
        assert_int_equal(r, fraction ? PL_ECORRUPT : 0);
        if (fraction) { /* one of them is the example, and gives its payload */
            assert_non_null(strstr(failed.message, "one of them: map: element"));
            assert_true(number_of(&failed) >= 0);
        } else {
            pl_bad_element bads[64];
            assert_int_equal(pl_iterator_bads(iterator, bads, 64), 64);
            for (int i = 0; i < 64; i++) {
                assert_int_equal(number_of(bads[i].error), i);
                assert_int_equal(bads[i].error->element, i);
                assert_ptr_equal(bads[i].message, bads[i].error->message);
            }
        }
        pl_iterator_free(iterator);
        pl_error_done(&failed);
        assert_int_equal(n_payloads_freed, n_payloads_made);
    }
}

static void a_cancelled_pass_keeps_no_payload(void **state)
{
    (void)state;
    n_payloads_made = n_payloads_freed = 0;
    pl_iterator *iterator = pass_over(mapped(range(100), fail_with_number, 2));
    pl_value value;
    pl_error failed = PL_ERROR_INIT;
    assert_int_equal(pl_iterator_next(iterator, &value, &failed), PL_ECORRUPT);
    pl_iterator_cancel(iterator);
    assert_int_equal(pl_iterator_next(iterator, &value, &failed), -ECANCELED);
    assert_null(failed.payload);
    pl_iterator_free(iterator);
    assert_int_equal(n_payloads_freed, n_payloads_made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_quarantine_has_a_line_for_each_bad_element, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(a_quarantine_that_cannot_be_written_ends_the_pass, begin,
                                        finish),
        cmocka_unit_test(any_bytes_are_quoted_as_json),
        cmocka_unit_test_setup_teardown(a_text_that_reads_like_a_file_names_its_element, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(limits_count_what_is_below_them, begin, finish),
        cmocka_unit_test_setup_teardown(a_row_of_bad_elements_does_not_go_on_for_ever, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(a_share_that_is_too_large_at_the_end_names_one_of_the_bad,
                                        begin, finish),
        cmocka_unit_test_setup_teardown(what_a_reduce_cannot_take_is_told_by_its_own_index, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(
            a_share_of_bad_elements_is_looked_at_where_no_good_one_comes, begin, finish),
        cmocka_unit_test_setup_teardown(a_row_of_bad_elements_is_a_share_of_all_before_it, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(the_first_bad_elements_are_listed_in_order, begin, finish),
        cmocka_unit_test_setup_teardown(bad_elements_of_several_stages_are_all_counted_in_order,
                                        begin, finish),
        cmocka_unit_test_setup_teardown(the_nearest_options_decide, begin, finish),
        cmocka_unit_test_setup_teardown(consumers_see_the_same_whatever_the_threads, begin, finish),
        cmocka_unit_test_setup_teardown(a_payload_reaches_the_consumer_and_is_freed_once, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(a_pass_that_is_dropped_frees_what_is_on_its_way, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(skipped_elements_free_theirs_with_the_pass, begin, finish),
        cmocka_unit_test_setup_teardown(a_cancelled_pass_keeps_no_payload, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
