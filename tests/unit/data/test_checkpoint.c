/* SPDX-License-Identifier: Apache-2.0 */
/* Passes that are written to a file and go on from it, wherever they were cut; files that are not
 * what they should be. */
#include "dataset_fixture.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>

#include "data/persist/record_file_format.h"

enum { CUTS = 3, LONGEST = 4000 };

static uint64_t n_pipelines = 60; /* or as many as the first argument says */

static char path[128];

static int begin(void **state)
{
    int r = begin_with(state, 64 * PL_MIB, 2);
    snprintf(path, sizeof path, "%s/checkpoint", folder);
    return r;
}

static int end(void **state)
{
    unlink(path);
    return finish(state);
}

/* ---- elements as text, so that any two can be compared ---- */

static void print_tensor(pl_tensor *tensor, FILE *to)
{
    const pl_shape *shape = pl_tensor_shape(tensor);
    int64_t n = 1;
    for (int i = 0; i < shape->rank; i++)
        n *= shape->dims[i];
    fprintf(to, "%d/%d[", pl_tensor_dtype(tensor), shape->rank);
    char *data = calloc(1, pl_tensor_bytes(tensor) + 1);
    static const int64_t nowhere[PL_RANK_MAX];
    if (pl_tensor_read(tensor, nowhere, shape->dims, data, &error) < 0)
        fail_msg("%s", error.message);
    size_t bytes = n > 0 ? pl_tensor_bytes(tensor) / (size_t)n : 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        memcpy(&bits, data + (size_t)i * bytes, bytes);
        fprintf(to, "%llx ", (unsigned long long)bits);
    }
    free(data);
    fputs("] ", to);
}

static void print_elements(pl_iterator *iterator, FILE *to);

static void print_value(pl_value *value, FILE *to)
{
    if (value->tensor) {
        print_tensor(value->tensor, to);
        pl_tensor_unref(value->tensor);
        return;
    }
    fputs("{ ", to);
    pl_iterator *inner = pass_over(value->dataset);
    print_elements(inner, to);
    pl_iterator_free(inner);
    fputs("} ", to);
}

/* False at the end. */
static bool print_next(pl_iterator *iterator, int n_components, FILE *to)
{
    pl_value values[4];
    int r = pl_iterator_next(iterator, values, &error);
    if (r < 0)
        fprintf(to, "%s\n", error.message);
    for (int i = 0; r > 0 && i < n_components; i++)
        print_value(&values[i], to);
    pl_bad_count count = pl_iterator_bad_count(iterator);
    if (r > 0) /* at the end what was made ahead counts, too, which depends on the threads */
        fprintf(to, "%llu/%llu", (unsigned long long)count.n_bad,
                (unsigned long long)count.n_items);
    fputc('\n', to);
    return r != 0;
}

static void print_elements(pl_iterator *iterator, FILE *to)
{
    while (print_next(iterator, 1, to))
        ;
}

/* At most LONGEST elements: some pipelines have no end. */
static char *rest_of(pl_iterator *iterator, int n_components)
{
    char *text;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    int left = LONGEST;
    while (left-- > 0 && print_next(iterator, n_components, to))
        ;
    fclose(to);
    return text;
}

/* ---- random pipelines ---- */

static uint64_t random_state;

static int64_t below(int64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((random_state >> 33) % (uint64_t)n);
}

/* Every thirteenth number is bad, and some take longer than others. */
static int jagged(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                  int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs;
    int64_t x = number_in(inputs[0].tensor, 0);
    if (x % 7 == 0)
        usleep(20);
    if (x % 13 == 5)
        return pl_error_set(reterr, -EIO, "unlucky");
    x = 3 * x + 1;
    return pl_tensor_new(runtime, PL_I64, &(pl_shape){0}, &x, "made", &outputs[0].tensor, reterr);
}

static int as_it_is(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                    int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs, (void)reterr;
    outputs[0].dataset = pl_dataset_ref(inputs[0].dataset);
    return 0;
}

/* A few numbers from this one on. */
static int a_few(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                 int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs;
    int64_t x = number_in(inputs[0].tensor, 0) % 1000;
    return pl_dataset_range(runtime, x, x + x % 4, 1, &outputs[0].dataset, reterr);
}

static bool is_number(const pl_dataset *dataset)
{
    const pl_spec *spec = pl_dataset_spec(dataset, 0);
    return pl_dataset_n_components(dataset) == 1 && spec->dtype == PL_I64 && spec->shape.rank == 0;
}

static int windows_flattened(pl_dataset *input, pl_dataset **ret_dataset)
{
    static const pl_spec number = {.dtype = PL_I64};
    static const pl_spec numbers = {.of = &number, .n_of = 1};
    const pl_function function = {
        .call = as_it_is, .output_specs = &numbers, .n_inputs = 1, .n_outputs = 1};
    pl_dataset *windows = NULL;
    int64_t size = 1 + below(5);
    int r = pl_dataset_window(input, size, 1 + below(4), 1, below(2), &windows, &error);
    if (r == 0 && below(2)) {
        *ret_dataset = prefetched(windows, 3);
        windows = PL_TAKE(*ret_dataset);
    }
    if (r == 0)
        r = pl_dataset_flat_map(windows, &function, ret_dataset, &error);
    pl_dataset_unref(windows);
    return r;
}

static int interleaved(pl_dataset *input, pl_dataset **ret_dataset)
{
    static const pl_spec number = {.dtype = PL_I64};
    static const pl_spec numbers = {.of = &number, .n_of = 1};
    const pl_function function = {
        .call = a_few, .output_specs = &numbers, .n_inputs = 1, .n_outputs = 1};
    return pl_dataset_interleave(input, &function, 1 + below(4), 1 + below(3), below(2) ? 1 : 3,
                                 ret_dataset, &error);
}

static int one_more(pl_dataset *input, pl_dataset **ret_dataset)
{
    static const pl_spec number = {.dtype = PL_I64};
    const pl_function function = {
        .call = jagged, .output_specs = &number, .n_inputs = 1, .n_outputs = 1};
    bool of_numbers = is_number(input);
    switch (below(12)) {
    case 0:
    case 1:
        if (of_numbers)
            return pl_dataset_map(input, &function, 1 + (int)below(4), ret_dataset, &error);
        return pl_dataset_prefetch(input, below(5), ret_dataset, &error);
    case 2:
        if (!of_numbers && pl_dataset_spec(input, 0)->shape.rank < 3)
            return pl_dataset_unbatch(input, ret_dataset, &error);
        return pl_dataset_batch(input, 1 + below(9), below(2), ret_dataset, &error);
    case 3:
        return pl_dataset_prefetch(input, PL_AUTO, ret_dataset, &error);
    case 4:
        return pl_dataset_cache(input, NULL, ret_dataset, &error);
    case 5:
        return pl_dataset_shuffle(input, 1 + below(20), below(1000), below(2), ret_dataset, &error);
    case 6:
        return pl_dataset_repeat(input, 1 + below(3), ret_dataset, &error);
    case 7:
        return pl_dataset_take(input, below(60), ret_dataset, &error);
    case 8:
        return pl_dataset_skip(input, below(10), ret_dataset, &error);
    case 9:
        return of_numbers ? windows_flattened(input, ret_dataset)
                          : pl_dataset_shard(input, 2, below(2), ret_dataset, &error);
    case 10:
        return of_numbers ? interleaved(input, ret_dataset)
                          : pl_dataset_concatenate(input, input, ret_dataset, &error);
    default:
        return pl_dataset_with_options(
            input,
            &(pl_dataset_options){.on_error = below(2) ? PL_ON_ERROR_SKIP : PL_ON_ERROR_FAIL},
            ret_dataset, &error);
    }
}

static pl_dataset *pipeline(uint64_t seed)
{
    random_state = seed;
    pl_dataset *dataset = range(below(120));
    for (int64_t n = 1 + below(6); n > 0; n--) {
        pl_dataset *input = dataset;
        if (one_more(input, &dataset) < 0)
            fail_msg("%s", error.message);
        pl_dataset_unref(input);
    }
    return dataset;
}

static void print_pipeline(uint64_t seed, int64_t cut, const char *one, const char *other)
{
    size_t at = 0;
    while (one[at] == other[at] && one[at])
        at++;
    fprintf(stderr, "pipeline %llu cut at %lld, byte %zu:\n%.200s\n---\n%.200s\n",
            (unsigned long long)seed, (long long)cut, at, one + (at > 60 ? at - 60 : 0),
            other + (at > 60 ? at - 60 : 0));
}

/* A pass to the cut, to a file, and on; another one, of a dataset made anew, on from the file. */
static void check_cut(uint64_t seed, int64_t cut)
{
    pl_iterator *first = pass_over(pipeline(seed));
    pl_dataset *again = pipeline(seed);
    int n_components = pl_dataset_n_components(again);
    pl_iterator *second = pass_over(again);
    FILE *nowhere = fopen("/dev/null", "w");
    for (int64_t i = 0; i < cut && print_next(first, n_components, nowhere); i++)
        ;
    fclose(nowhere);
    if (pl_iterator_save(first, path, &error) < 0 || pl_iterator_restore(second, path, &error) < 0)
        fail_msg("pipeline %llu cut at %lld: %s", (unsigned long long)seed, (long long)cut,
                 error.message);
    char *one = rest_of(first, n_components), *other = rest_of(second, n_components);
    if (strcmp(one, other) != 0)
        print_pipeline(seed, cut, one, other);
    assert_string_equal(one, other);
    free(one);
    free(other);
    pl_iterator_free(first);
    pl_iterator_free(second);
}

static void a_pass_that_is_cut_anywhere_goes_on_as_if_it_were_not(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < n_pipelines; seed++)
        for (int cut = 0; cut < CUTS; cut++) {
            random_state = seed * CUTS + (uint64_t)cut + 77;
            check_cut(seed, below(cut == 0 ? 4 : 60));
        }
}

static pl_dataset *shuffled(void)
{
    pl_dataset *numbers = range(50), *dataset = NULL;
    int r = pl_dataset_shuffle(numbers, 50, 7, true, &dataset, &error);
    pl_dataset_unref(numbers);
    return must(r, dataset);
}

static void a_restored_pass_counts_as_the_one_that_it_was(void **state)
{
    (void)state;
    pl_dataset *datasets[] = {shuffled(), shuffled()};
    for (int pass = 0; pass < 2; pass++)
        pl_iterator_free(pass_over(pl_dataset_ref(datasets[0])));
    pl_iterator *third = pass_over(pl_dataset_ref(datasets[0]));
    pl_iterator *again = pass_over(pl_dataset_ref(datasets[1]));
    assert_int_equal(pl_iterator_save(third, path, &error), 0);
    assert_int_equal(pl_iterator_restore(again, path, &error), 0);
    pl_iterator_free(third);
    pl_iterator_free(again);
    char *rests[2];
    for (int i = 0; i < 2; i++) {
        pl_iterator *fourth = pass_over(datasets[i]);
        rests[i] = rest_of(fourth, 1);
        pl_iterator_free(fourth);
    }
    assert_string_equal(rests[0], rests[1]);
    free(rests[0]);
    free(rests[1]);
}

/* ---- strings, all dtypes, shapes ---- */

static pl_tensor *strings_of(int64_t n)
{
    pl_tensor *tensor;
    pl_string each[16] = {0};
    for (int64_t i = 0; i < n; i++)
        each[i] = (pl_string){&"elementary"[i % 10], (size_t)(10 - i % 10) % 7};
    if (pl_tensor_new_strings(runtime, &(pl_shape){1, {n}}, each, "texts", &tensor, &error) < 0)
        fail_msg("%s", error.message);
    return tensor;
}

static void a_batch_of_strings_is_cut_in_its_middle(void **state)
{
    (void)state;
    pl_tensor *texts = strings_of(13);
    for (int cut = 0; cut < 5; cut++) {
        pl_iterator *passes[2];
        for (int i = 0; i < 2; i++) {
            pl_dataset *dataset = NULL;
            assert_int_equal(pl_dataset_from_slices(runtime, &texts, 1, &dataset, &error), 0);
            passes[i] = pass_over(prefetched(batched(dataset, 4, false), 2));
        }
        pl_value values[2];
        for (int i = 0; i < cut; i++)
            if (pl_iterator_next(passes[0], values, &error) == 1)
                pl_tensor_unref(values[0].tensor);
        assert_int_equal(pl_iterator_save(passes[0], path, &error), 0);
        assert_int_equal(pl_iterator_restore(passes[1], path, &error), 0);
        for (int r = 1; r > 0;) {
            r = pl_iterator_next(passes[0], &values[0], &error);
            assert_int_equal(pl_iterator_next(passes[1], &values[1], &error), r);
            int64_t n = r > 0 ? pl_tensor_shape(values[0].tensor)->dims[0] : 0;
            for (int64_t at = 0; at < n; at++) {
                pl_string one, other;
                assert_int_equal(pl_tensor_pin_string(values[0].tensor, &at, &one, &error), 0);
                assert_int_equal(pl_tensor_pin_string(values[1].tensor, &at, &other, &error), 0);
                assert_int_equal(one.n, other.n);
                assert_memory_equal(one.data, other.data, one.n);
                pl_tensor_unpin(values[0].tensor);
                pl_tensor_unpin(values[1].tensor);
            }
            for (int i = 0; r > 0 && i < 2; i++)
                pl_tensor_unref(values[i].tensor);
        }
        pl_iterator_free(passes[0]);
        pl_iterator_free(passes[1]);
    }
    pl_tensor_unref(texts);
}

/* ---- files that are not what they should be ---- */

static pl_dataset *sample(int64_t n)
{
    return prefetched(batched(mapped(range(n), jagged, 2), 4, false), 2);
}

static void write_sample(void)
{
    pl_iterator *iterator = pass_over(sample(100));
    pl_value value;
    for (int i = 0; i < 5; i++)
        if (pl_iterator_next(iterator, &value, &error) > 0)
            pl_tensor_unref(value.tensor);
    assert_int_equal(pl_iterator_save(iterator, path, &error), 0);
    pl_iterator_free(iterator);
}

static int restore_sample(int64_t n)
{
    pl_iterator *iterator = pass_over(sample(n));
    int r = pl_iterator_restore(iterator, path, &error);
    pl_value value;
    if (r < 0)
        assert_int_equal(pl_iterator_next(iterator, &value, NULL), r);
    pl_iterator_free(iterator);
    return r;
}

static size_t read_file(char **ret_bytes)
{
    FILE *file = fopen(path, "r");
    *ret_bytes = malloc(1 << 20);
    size_t n = fread(*ret_bytes, 1, 1 << 20, file);
    fclose(file);
    return n;
}

static void write_file(const char *bytes, size_t n)
{
    FILE *file = fopen(path, "w");
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static void a_file_that_is_wrong_at_any_byte_is_refused(void **state)
{
    (void)state;
    write_sample();
    char *bytes;
    size_t n = read_file(&bytes);
    for (size_t at = 0; at < n; at++) {
        bytes[at] ^= (char)(1 << at % 8);
        write_file(bytes, n);
        int r = restore_sample(100);
        assert_true(r == PL_ECORRUPT || r == PL_EFORMAT || r == PL_EVERSION);
        assert_non_null(strstr(error.message, path));
        bytes[at] ^= (char)(1 << at % 8);
    }
    free(bytes);
}

static void a_file_that_is_cut_off_at_any_byte_is_refused(void **state)
{
    (void)state;
    write_sample();
    char *bytes;
    size_t n = read_file(&bytes);
    for (size_t at = 0; at < n; at++) {
        write_file(bytes, at);
        assert_int_equal(restore_sample(100), PL_ECORRUPT);
    }
    memset(bytes + n, 0, 40);
    write_file(bytes, n + 1 + n % 40);
    assert_int_equal(restore_sample(100), PL_ECORRUPT);
    write_file(bytes, n);
    assert_int_equal(restore_sample(100), 0);
    free(bytes);
}

static void a_file_of_another_dataset_is_refused_with_what_differs(void **state)
{
    (void)state;
    write_sample();
    assert_int_equal(restore_sample(101), -EINVAL);
    assert_non_null(strstr(error.message, "it has 'range(start=0, step=1, n=100): int64[]' where "
                                          "this one has 'range(start=0, step=1, n=101): int64[]'"));
}

static void a_file_of_another_kind_or_none_is_refused(void **state)
{
    (void)state;
    assert_int_equal(restore_sample(100), -ENOENT);
    write_file("a,b\n1,2\n", 8);
    assert_int_equal(restore_sample(100), PL_EFORMAT);
    assert_non_null(strstr(error.message, "is not a file of this kind"));
}

static void a_file_of_another_version_is_refused(void **state)
{
    (void)state;
    write_sample();
    char *bytes;
    size_t n = read_file(&bytes);
    pl_record_file_format_start(PL_RECORD_FILE_CHECKPOINT, PL_RECORD_FILE_VERSION + 1, bytes);
    write_file(bytes, n);
    assert_int_equal(restore_sample(100), PL_EVERSION);
    assert_non_null(strstr(error.message, "is of version 2, and this program reads 1"));
    free(bytes);
}

static pl_dataset *many_kept(void)
{
    pl_dataset *numbers = range(100000), *dataset = NULL;
    int r = pl_dataset_cache(numbers, NULL, &dataset, &error);
    pl_dataset_unref(numbers);
    return must(r, dataset);
}

/* Each record is as it was written, and has whole elements: only the sum of all tells. */
static void records_in_another_order_are_refused(void **state)
{
    (void)state;
    enum { RECORD = PL_RECORD_FILE_WINDOW_BYTES };
    pl_iterator *iterator = pass_over(many_kept());
    for (int64_t i = 0; i < 90000; i++)
        assert_int_equal(next_number(iterator), i);
    assert_int_equal(pl_iterator_save(iterator, path, &error), 0);
    pl_iterator_free(iterator);
    static char records[2][RECORD];
    FILE *file = fopen(path, "r+");
    for (int turned = 0; turned < 2; turned++) {
        fseek(file, PL_RECORD_FILE_START_BYTES + RECORD, SEEK_SET);
        assert_int_equal(fread(records, RECORD, 2, file), 2);
        fseek(file, PL_RECORD_FILE_START_BYTES + RECORD, SEEK_SET);
        assert_int_equal(fwrite(records[1], RECORD, 1, file), 1);
        assert_int_equal(fwrite(records[0], RECORD, 1, file), 1);
        fflush(file);
        iterator = pass_over(many_kept());
        assert_int_equal(pl_iterator_restore(iterator, path, &error), turned ? 0 : PL_ECORRUPT);
        pl_iterator_free(iterator);
    }
    fclose(file);
}

static void only_a_new_pass_is_restored(void **state)
{
    (void)state;
    write_sample();
    pl_iterator *iterator = pass_over(sample(100));
    pl_value value;
    assert_int_equal(pl_iterator_next(iterator, &value, &error), 1);
    pl_tensor_unref(value.tensor);
    assert_int_equal(pl_iterator_restore(iterator, path, &error), -EINVAL);
    pl_iterator_free(iterator);
}

static void a_pass_that_is_over_is_not_saved(void **state)
{
    (void)state;
    pl_iterator *iterator = pass_over(sample(100));
    pl_iterator_cancel(iterator);
    assert_int_equal(pl_iterator_save(iterator, path, &error), -ECANCELED);
    assert_int_equal(access(path, F_OK), -1);
    pl_iterator_free(iterator);
}

static int save_to(const char *name)
{
    pl_dataset *numbers = sample(100);
    pl_iterator *iterator;
    assert_int_equal(pl_iterator_new(numbers, &iterator, &error), 0);
    int r = pl_iterator_save(iterator, name, &error);
    pl_iterator_free(iterator);
    pl_dataset_unref(numbers);
    return r;
}

static void what_is_no_checkpoint_is_not_replaced(void **state)
{
    (void)state;
    struct stat info;
    char link[160], *bytes;
    write_file("my thesis", 9);
    assert_int_equal(save_to(path), PL_EFORMAT);
    assert_non_null(strstr(error.message, "is not a file of this kind"));
    assert_int_equal(read_file(&bytes), 9);
    assert_memory_equal(bytes, "my thesis", 9);
    free(bytes);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(save_to(path), -EINVAL);
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    unlink(path);
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(symlink("checkpoint", link), 0);
    assert_int_equal(save_to(link), 0); /* to where it leads */
    assert_int_equal(save_to(link), 0);
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    unlink(link);
}

static void what_cannot_be_written_leaves_the_old_file(void **state)
{
    (void)state;
    write_sample();
    pl_iterator *iterator = pass_over(sample(100));
    char there[160];
    snprintf(there, sizeof there, "%s/none/checkpoint", folder);
    assert_int_equal(pl_iterator_save(iterator, there, &error), -ENOENT);
    assert_non_null(strstr(error.message, there));
    pl_value value; /* the pass goes on */
    assert_int_equal(pl_iterator_next(iterator, &value, &error), 1);
    pl_tensor_unref(value.tensor);
    pl_iterator_free(iterator);
    assert_int_equal(restore_sample(100), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        n_pipelines = strtoull(argv[1], NULL, 10);
#define KEPT(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        KEPT(a_pass_that_is_cut_anywhere_goes_on_as_if_it_were_not),
        KEPT(a_restored_pass_counts_as_the_one_that_it_was),
        KEPT(a_batch_of_strings_is_cut_in_its_middle),
        KEPT(a_file_that_is_wrong_at_any_byte_is_refused),
        KEPT(a_file_that_is_cut_off_at_any_byte_is_refused),
        KEPT(a_file_of_another_dataset_is_refused_with_what_differs),
        KEPT(a_file_of_another_kind_or_none_is_refused),
        KEPT(a_file_of_another_version_is_refused),
        KEPT(records_in_another_order_are_refused),
        KEPT(only_a_new_pass_is_restored),
        KEPT(a_pass_that_is_over_is_not_saved),
        KEPT(what_is_no_checkpoint_is_not_replaced),
        KEPT(what_cannot_be_written_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
