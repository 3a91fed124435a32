/* SPDX-License-Identifier: Apache-2.0 */
/* Caches, snapshots, saved datasets: complete or not there, and never somebody else's. */
#include "dataset_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "tensor/dtype.h"

static char path[128];
static _Atomic int n_calls;

static int begin_in(void **state, uint64_t cap_bytes)
{
    int r = begin_with(state, cap_bytes, 2);
    snprintf(path, sizeof path, "%s/kept", folder);
    atomic_store(&n_calls, 0);
    return r;
}

static int begin(void **state)
{
    return begin_in(state, 64 * PL_MIB);
}

enum { LITTLE = 8 * PL_MIB };

static int begin_in_little(void **state)
{
    return begin_in(state, LITTLE);
}

/* Files in a folder, or -1: there is none. With `remove` they are gone then, and the folder. */
static int files_in(const char *name, bool remove)
{
    DIR *opened = opendir(name);
    if (!opened)
        return -1;
    int n = 0;
    for (struct dirent *entry; (entry = readdir(opened));)
        if (entry->d_name[0] != '.') {
            n++;
            if (remove)
                unlinkat(dirfd(opened), entry->d_name, 0);
        }
    closedir(opened);
    if (remove)
        rmdir(name);
    return n;
}

static int end(void **state)
{
    unlink(path);
    files_in(path, true);
    return finish(state); /* nothing else is left in the folder: no part, no shard */
}

/* ---- what is kept ---- */

/* 17 is bad. */
static int counted(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                   int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs;
    atomic_fetch_add(&n_calls, 1);
    int64_t x = number_in(inputs[0].tensor, 0);
    if (x == 17)
        return pl_error_set(reterr, -EIO, "unlucky");
    return pl_tensor_new(runtime, PL_I64, &(pl_shape){0}, &x, "counted", &outputs[0].tensor,
                         reterr);
}

static pl_dataset *cached(pl_dataset *input, const char *where)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_cache(input, where, &dataset, &error);
    pl_dataset_unref(input);
    return must(r, dataset);
}

static pl_dataset *snapped(pl_dataset *input, int64_t n_shards)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_snapshot(input, path, n_shards, &dataset, &error);
    pl_dataset_unref(input);
    return must(r, dataset);
}

static pl_dataset *loaded(void)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_load(runtime, path, &dataset, &error);
    return must(r, dataset);
}

/* A pass over the dataset has the numbers below n. */
static void check_numbers(pl_dataset *dataset, int64_t n)
{
    pl_iterator *iterator = pass_over(pl_dataset_ref(dataset));
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(next_number(iterator), i);
    assert_int_equal(next_number(iterator), INT64_MIN);
    pl_iterator_free(iterator);
}

static void leave_after(pl_dataset *dataset, int64_t n)
{
    pl_iterator *iterator = pass_over(pl_dataset_ref(dataset));
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(next_number(iterator), i);
    pl_iterator_free(iterator);
}

static void check_second_pass_reads(pl_dataset *dataset)
{
    check_numbers(dataset, 16);
    assert_int_equal(atomic_load(&n_calls), 16);
    check_numbers(dataset, 16);
    assert_int_equal(atomic_load(&n_calls), 16);
    pl_dataset_unref(dataset);
}

static pl_dataset *source(void)
{
    return mapped(range(16), counted, 2);
}

static void the_second_pass_reads_what_the_first_has_kept(void **state)
{
    (void)state;
    check_second_pass_reads(cached(source(), NULL));
    atomic_store(&n_calls, 0);
    check_second_pass_reads(cached(source(), path));
    pl_dataset *same = cached(source(), path); /* another dataset, the same in all */
    check_numbers(same, 16);
    pl_dataset_unref(same);
    assert_int_equal(atomic_load(&n_calls), 16);
}

static void a_snapshot_is_read_by_the_second_pass_and_by_load(void **state)
{
    (void)state;
    check_second_pass_reads(snapped(source(), 3));
    assert_int_equal(files_in(path, false), 4);
    pl_dataset *again = loaded();
    assert_int_equal(pl_dataset_cardinality(again), 16);
    check_numbers(again, 16);
    pl_dataset_unref(again);
}

/* ---- dtypes ---- */

static pl_tensor *tensor_of(pl_dtype dtype, const pl_shape *shape, int64_t n)
{
    pl_tensor *tensor;
    static char bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(dtype == PL_BOOL ? i % 2 : i * 37 + dtype);
    pl_string strings[64];
    for (int64_t i = 0; i < n && i < 64; i++)
        strings[i] = (pl_string){bytes + i, (size_t)(i * i % 11)};
    int r = dtype == PL_STRING
                ? pl_tensor_new_strings(runtime, shape, strings, "given", &tensor, &error)
                : pl_tensor_new(runtime, dtype, shape, bytes, "given", &tensor, &error);
    if (r < 0)
        fail_msg("%s", error.message);
    return tensor;
}

static void assert_same_strings(pl_tensor *one, pl_tensor *other, const pl_shape *shape)
{
    int64_t at[PL_RANK_MAX] = {0};
    if (shape->rank == 2 && shape->dims[0] > 1)
        at[0] = 1;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] == 0)
            return;
    pl_string a, b;
    assert_int_equal(pl_tensor_pin_string(one, at, &a, &error), 0);
    assert_int_equal(pl_tensor_pin_string(other, at, &b, &error), 0);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.data, b.data, a.n);
    pl_tensor_unpin(one);
    pl_tensor_unpin(other);
}

static void assert_same(pl_tensor *one, pl_tensor *other)
{
    const pl_shape *shape = pl_tensor_shape(one);
    assert_int_equal(pl_tensor_dtype(one), pl_tensor_dtype(other));
    assert_int_equal(shape->rank, pl_tensor_shape(other)->rank);
    assert_memory_equal(shape->dims, pl_tensor_shape(other)->dims,
                        (size_t)shape->rank * sizeof shape->dims[0]);
    if (pl_tensor_dtype(one) == PL_STRING) {
        assert_same_strings(one, other, shape);
        return;
    }
    static char a[4096], b[4096];
    static const int64_t nowhere[PL_RANK_MAX];
    memset(a, 1, sizeof a);
    memset(b, 1, sizeof b);
    assert_int_equal(pl_tensor_read(one, nowhere, shape->dims, a, &error), 0);
    assert_int_equal(pl_tensor_read(other, nowhere, shape->dims, b, &error), 0);
    assert_memory_equal(a, b, sizeof a);
}

static void check_kept_as_it_is(pl_tensor *tensor)
{
    pl_dataset *dataset = NULL;
    pl_value value;
    assert_int_equal(pl_dataset_from_tensors(runtime, &tensor, 1, &dataset, &error), 0);
    assert_int_equal(pl_dataset_save(dataset, path, 1, &error), 0);
    pl_dataset_unref(dataset);
    pl_iterator *iterator = pass_over(loaded());
    assert_int_equal(pl_iterator_next(iterator, &value, &error), 1);
    assert_same(tensor, value.tensor);
    pl_tensor_unref(value.tensor);
    assert_int_equal(pl_iterator_next(iterator, &value, &error), 0);
    pl_iterator_free(iterator);
}

static void every_dtype_and_shape_comes_back_as_it_was(void **state)
{
    (void)state;
    static const struct {
        pl_shape shape;
        int64_t n;
    } cases[] = {{{0}, 1}, {{1, {0}}, 0}, {{1, {5}}, 5}, {{2, {3, 7}}, 21}, {{3, {2, 0, 4}}, 0}};
    for (pl_dtype dtype = PL_BOOL; dtype <= PL_STRING; dtype++)
        for (size_t i = 0; i < PL_COUNT_OF(cases); i++) {
            pl_tensor *tensor = tensor_of(dtype, &cases[i].shape, cases[i].n);
            check_kept_as_it_is(tensor);
            if (cases[i].shape.rank == 2) {
                pl_tensor *turned;
                assert_int_equal(pl_tensor_transpose(tensor, (const int[]){1, 0}, &turned, &error),
                                 0);
                check_kept_as_it_is(turned);
                pl_tensor_unref(turned);
            }
            pl_tensor_unref(tensor);
        }
}

/* ---- what is not complete ---- */

static void a_pass_that_is_left_keeps_nothing(void **state)
{
    (void)state;
    pl_dataset *datasets[] = {cached(range(16), NULL), cached(range(16), path)};
    for (size_t i = 0; i < PL_COUNT_OF(datasets); i++) {
        leave_after(datasets[i], 7);
        assert_int_equal(access(path, F_OK), -1);
        check_numbers(datasets[i], 16);
        pl_dataset_unref(datasets[i]);
    }
    unlink(path);
    pl_dataset *folders = snapped(range(16), 2);
    leave_after(folders, 7);
    assert_int_equal(files_in(path, false), -1);
    check_numbers(folders, 16);
    pl_dataset_unref(folders);
}

static void a_bad_element_that_is_told_is_not_kept(void **state)
{
    (void)state;
    pl_dataset *dataset = cached(mapped(range(20), counted, 1), path);
    for (int pass = 1; pass <= 2; pass++) {
        pl_iterator *iterator = pass_over(pl_dataset_ref(dataset));
        pl_value value;
        for (int i = 0; i < 17; i++)
            assert_int_equal(next_number(iterator), i);
        assert_int_equal(pl_iterator_next(iterator, &value, &error), -EIO);
        assert_int_equal(next_number(iterator), 18);
        assert_int_equal(next_number(iterator), 19);
        assert_int_equal(next_number(iterator), INT64_MIN);
        pl_iterator_free(iterator);
        assert_int_equal(atomic_load(&n_calls), 20 * pass);
        assert_int_equal(access(path, F_OK), -1);
    }
    pl_dataset_unref(dataset);
}

/* Bad ones in the middle and behind the last good one. */
static void skipped_elements_are_counted_in_every_pass(void **state)
{
    (void)state;
    for (int where = 0; where < 3; where++)
        for (int64_t n = 18; n <= 19; n++) {
            pl_dataset *all = mapped(range(n), counted, 1);
            pl_dataset *kept = where == 0   ? cached(all, NULL)
                               : where == 1 ? cached(all, path)
                                            : snapped(all, 2);
            pl_dataset *dataset = with(kept, (pl_dataset_options){.on_error = PL_ON_ERROR_SKIP});
            for (int pass = 0; pass < 3; pass++) {
                pl_iterator *iterator = pass_over(pl_dataset_ref(dataset));
                while (next_number(iterator) != INT64_MIN)
                    ;
                assert_int_equal(pl_iterator_bad_count(iterator).n_bad, 1);
                assert_int_equal(pl_iterator_bad_count(iterator).n_items, n);
                pl_iterator_free(iterator);
            }
            pl_dataset_unref(dataset);
            unlink(path);
            files_in(path, true);
        }
}

static size_t read_file(const char *name, char **ret_bytes)
{
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    *ret_bytes = malloc(1 << 20);
    size_t n = fread(*ret_bytes, 1, 1 << 20, file);
    fclose(file);
    return n;
}

static void write_file(const char *name, const char *bytes, size_t n)
{
    FILE *file = fopen(name, "w");
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

/* What is wrong with it is seen before its first element, or told as an error with what to do;
 * never is an element another one. */
static void check_damaged(void)
{
    pl_iterator *iterator = pass_over(cached(range(16), path));
    pl_value value;
    int64_t i = 0;
    int r;
    while ((r = pl_iterator_next(iterator, &value, &error)) > 0) {
        assert_int_equal(number_in(value.tensor, 0), i++);
        pl_tensor_unref(value.tensor);
    }
    if (r < 0) {
        assert_true(r == PL_ECORRUPT || r == PL_EFORMAT);
        assert_non_null(strstr(error.message, path));
        assert_non_null(strstr(error.message, "remove it"));
    } else {
        assert_int_equal(i, 16);
    }
    pl_iterator_free(iterator);
}

static void a_cache_that_is_wrong_anywhere_gives_no_wrong_element(void **state)
{
    (void)state;
    pl_dataset *dataset = cached(range(16), path);
    check_numbers(dataset, 16);
    pl_dataset_unref(dataset);
    char *bytes;
    size_t n = read_file(path, &bytes);
    for (size_t at = 0; at < n; at++) {
        bytes[at] ^= (char)(1 << at % 8);
        write_file(path, bytes, n);
        check_damaged();
        bytes[at] ^= (char)(1 << at % 8);
    }
    free(bytes);
}

static void a_cache_that_is_cut_off_is_written_anew(void **state)
{
    (void)state;
    pl_dataset *dataset = cached(range(16), path);
    check_numbers(dataset, 16);
    char *bytes, *again;
    size_t n = read_file(path, &bytes);
    for (size_t at = 0; at < n; at += 11) {
        write_file(path, bytes, at);
        check_numbers(dataset, 16);
        assert_int_equal(read_file(path, &again), n);
        assert_memory_equal(again, bytes, n);
        free(again);
    }
    pl_dataset_unref(dataset);
    free(bytes);
}

static void a_cache_of_another_dataset_is_written_anew(void **state)
{
    (void)state;
    for (int64_t n = 14; n < 17; n++) {
        pl_dataset *dataset = cached(range(n), path);
        check_numbers(dataset, n);
        check_numbers(dataset, n);
        pl_dataset_unref(dataset);
    }
    files_in(path, true);
    unlink(path);
    for (int64_t n = 14; n < 17; n++) {
        pl_dataset *dataset = snapped(range(n), 2);
        check_numbers(dataset, n);
        check_numbers(dataset, n);
        pl_dataset_unref(dataset);
        assert_int_equal(files_in(path, false), 3); /* the others' shards are gone */
    }
}

static void a_file_that_is_the_users_stays_his(void **state)
{
    (void)state;
    static const char text[] = "name,label\ncat,1\n";
    write_file(path, text, sizeof text - 1);
    pl_iterator *iterator = pass_over(cached(range(16), path));
    pl_value value;
    assert_int_equal(pl_iterator_next(iterator, &value, &error), PL_EFORMAT);
    assert_non_null(strstr(error.message, "give another path"));
    pl_iterator_free(iterator);
    char *bytes;
    assert_int_equal(read_file(path, &bytes), sizeof text - 1);
    assert_memory_equal(bytes, text, sizeof text - 1);
    free(bytes);
}

static void assert_text(const char *name, const char *text)
{
    char *bytes;
    assert_int_equal(read_file(name, &bytes), strlen(text));
    assert_memory_equal(bytes, text, strlen(text));
    free(bytes);
}

/* The part's name is one that we make up: what has it was not named by anybody. */
static void check_part_is_refused(void)
{
    pl_value value;
    pl_iterator *iterator = pass_over(cached(range(16), path));
    assert_int_equal(pl_iterator_next(iterator, &value, &error), -EEXIST);
    assert_non_null(strstr(error.message, ".part', which it is written as, is there"));
    pl_iterator_free(iterator);
    pl_dataset *dataset = range(5);
    iterator = NULL;
    assert_int_equal(pl_iterator_new(dataset, &iterator, &error), 0);
    assert_int_equal(pl_iterator_save(iterator, path, &error), -EEXIST);
    pl_iterator_free(iterator);
    pl_dataset_unref(dataset);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_file_of_the_parts_name_is_neither_cut_nor_written_through(void **state)
{
    (void)state;
    static const char text[] = "precious\n";
    char part[PATH_MAX], other[PATH_MAX];
    snprintf(part, sizeof part, "%s.part", path);
    snprintf(other, sizeof other, "%s.other", path);
    write_file(part, text, strlen(text));
    check_part_is_refused();
    assert_text(part, text);
    assert_int_equal(rename(part, other), 0);
    assert_int_equal(symlink(other, part), 0);
    check_part_is_refused();
    assert_int_equal(unlink(part), 0);
    assert_int_equal(link(other, part), 0);
    check_part_is_refused();
    assert_int_equal(unlink(part), 0);
    assert_text(other, text);
    assert_int_equal(mkfifo(part, 0600), 0); /* and is not waited for */
    check_part_is_refused();
    assert_int_equal(unlink(part), 0);
    assert_int_equal(unlink(other), 0);
}

static void a_part_that_was_left_is_taken_over(void **state)
{
    (void)state;
    char part[PATH_MAX], *bytes;
    snprintf(part, sizeof part, "%s.part", path);
    pl_dataset *dataset = cached(range(16), path);
    check_numbers(dataset, 16);
    size_t n = read_file(path, &bytes);
    for (size_t left = 0; left <= n; left += left < 40 ? 1 : n - 40) {
        write_file(part, bytes, left);
        assert_int_equal(truncate(path, 0), 0);
        check_numbers(dataset, 16);
        assert_int_equal(access(part, F_OK), -1);
    }
    free(bytes);
    pl_dataset_unref(dataset);
}

static void a_snapshot_that_lacks_a_shard_is_written_anew(void **state)
{
    (void)state;
    pl_dataset *dataset = snapped(range(16), 3);
    check_numbers(dataset, 16);
    DIR *opened = opendir(path);
    for (struct dirent *entry; (entry = readdir(opened));)
        if (strstr(entry->d_name, "-00001-of"))
            unlinkat(dirfd(opened), entry->d_name, 0);
    closedir(opened);
    pl_dataset *none = NULL;
    assert_int_equal(pl_dataset_load(runtime, path, &none, &error), 0);
    pl_iterator *iterator = NULL;
    assert_int_equal(pl_iterator_new(none, &iterator, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "lacks shards"));
    pl_dataset_unref(none);
    check_numbers(dataset, 16);
    assert_int_equal(files_in(path, false), 4);
    pl_dataset_unref(dataset);
}

/* ---- two at once ---- */

static void of_two_passes_at_once_one_writes_and_both_are_right(void **state)
{
    (void)state;
    pl_iterator *passes[2] = {pass_over(cached(range(16), path)),
                              pass_over(cached(range(16), path))};
    for (int64_t i = 0; i < 16; i++)
        for (int k = 0; k < 2; k++)
            assert_int_equal(next_number(passes[k]), i);
    assert_int_equal(next_number(passes[1]), INT64_MIN);
    assert_int_equal(access(path, F_OK), -1); /* it was the first that wrote */
    assert_int_equal(next_number(passes[0]), INT64_MIN);
    assert_int_equal(access(path, F_OK), 0);
    for (int k = 0; k < 2; k++)
        pl_iterator_free(passes[k]);
    pl_dataset *dataset = cached(range(16), path);
    check_numbers(dataset, 16);
    pl_dataset_unref(dataset);
}

static void a_save_beside_another_is_refused(void **state)
{
    (void)state;
    pl_iterator *iterator = pass_over(snapped(range(16), 2));
    assert_int_equal(next_number(iterator), 0);
    pl_dataset *dataset = range(5);
    assert_int_equal(pl_dataset_save(dataset, path, 1, &error), -EBUSY);
    assert_non_null(strstr(error.message, "is being written"));
    pl_iterator_free(iterator);
    assert_int_equal(pl_dataset_save(dataset, path, 1, &error), 0);
    pl_dataset_unref(dataset);
}

/* ---- more than memory ---- */

static void a_cache_that_does_not_fit_into_memory_is_spilled(void **state)
{
    (void)state;
    enum { N = 2 * LITTLE / 8, EACH = N / 256 }; /* twice what there is, as numbers of 8 bytes */
    pl_dataset *dataset = cached(batched(range(N), EACH, false), NULL);
    for (int pass = 0; pass < 2; pass++) {
        pl_iterator *iterator = pass_over(pl_dataset_ref(dataset));
        for (int64_t first = 0; first < N; first += EACH)
            assert_int_equal(next_number(iterator), first);
        assert_int_equal(next_number(iterator), INT64_MIN);
        pl_iterator_free(iterator);
    }
    assert_true(pl_runtime_peak_bytes(runtime) <= LITTLE);
    pl_dataset_unref(dataset);
}

static void what_a_pass_has_still_to_give_can_be_saved(void **state)
{
    (void)state;
    pl_iterator *iterator = pass_over(range(20));
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(next_number(iterator), i);
    assert_int_equal(pl_iterator_save_rest(iterator, path, 1, &error), 0);
    assert_int_equal(next_number(iterator), INT64_MIN);
    pl_iterator_free(iterator);
    pl_iterator *rest = pass_over(loaded());
    for (int64_t i = 5; i < 20; i++)
        assert_int_equal(next_number(rest), i);
    assert_int_equal(next_number(rest), INT64_MIN);
    pl_iterator_free(rest);
}

static void a_pass_that_is_cancelled_leaves_nothing_of_what_it_saved(void **state)
{
    (void)state;
    pl_iterator *iterator = pass_over(range(20));
    pl_iterator_cancel(iterator);
    assert_int_equal(pl_iterator_save_rest(iterator, path, 1, &error), -ECANCELED);
    assert_int_equal(files_in(path, false), -1);
    pl_iterator_free(iterator);
}

static void what_cannot_be_saved_is_refused(void **state)
{
    (void)state;
    pl_dataset *numbers = range(20), *endless = NULL, *none = NULL;
    assert_int_equal(pl_dataset_repeat(numbers, -1, &endless, &error), 0);
    assert_int_equal(pl_dataset_save(endless, path, 1, &error), -EINVAL);
    assert_int_equal(pl_dataset_save(numbers, path, 0, &error), -EINVAL);
    assert_int_equal(pl_dataset_load(runtime, path, &none, &error), -ENOENT);
    pl_dataset_unref(endless);
    pl_dataset *bad = mapped(numbers, counted, 2);
    assert_int_equal(pl_dataset_save(bad, path, 2, &error), -EIO);
    assert_string_equal(error.message, "map: element 17, unlucky");
    assert_int_equal(files_in(path, false), -1);
    pl_dataset_unref(bad);
}

int main(void)
{
#define KEPT(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        KEPT(the_second_pass_reads_what_the_first_has_kept),
        KEPT(a_snapshot_is_read_by_the_second_pass_and_by_load),
        KEPT(every_dtype_and_shape_comes_back_as_it_was),
        KEPT(a_pass_that_is_left_keeps_nothing),
        KEPT(a_bad_element_that_is_told_is_not_kept),
        KEPT(skipped_elements_are_counted_in_every_pass),
        KEPT(a_cache_that_is_wrong_anywhere_gives_no_wrong_element),
        KEPT(a_cache_that_is_cut_off_is_written_anew),
        KEPT(a_cache_of_another_dataset_is_written_anew),
        KEPT(a_file_that_is_the_users_stays_his),
        KEPT(a_file_of_the_parts_name_is_neither_cut_nor_written_through),
        KEPT(a_part_that_was_left_is_taken_over),
        KEPT(a_snapshot_that_lacks_a_shard_is_written_anew),
        KEPT(of_two_passes_at_once_one_writes_and_both_are_right),
        KEPT(a_save_beside_another_is_refused),
        cmocka_unit_test_setup_teardown(a_cache_that_does_not_fit_into_memory_is_spilled,
                                        begin_in_little, end),
        KEPT(what_a_pass_has_still_to_give_can_be_saved),
        KEPT(a_pass_that_is_cancelled_leaves_nothing_of_what_it_saved),
        KEPT(what_cannot_be_saved_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
