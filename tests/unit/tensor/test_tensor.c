/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: views share a buffer, files are read where they are, and all comes out as it went in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/npy/npy_tensor.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

static pl_runtime *runtime;
static pl_error error;
static char folder[64], path[128];

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/plimsoll-tensor-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/t.npy", folder);
    const pl_runtime_options options = {.cap_bytes = 4 * PL_MIB, .spill_directory = folder};
    return pl_runtime_new(&options, &runtime, &error);
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    pl_runtime_unref(runtime);
    unlink(path);
    return rmdir(folder);
}

static pl_tensor *count_up(pl_shape shape)
{
    int64_t n;
    pl_tensor *tensor;
    assert_int_equal(pl_shape_count(&shape, &n, &error), 0);
    int32_t *data = malloc((size_t)n * sizeof *data + 1);
    for (int64_t i = 0; i < n; i++)
        data[i] = (int32_t)i;
    assert_int_equal(pl_tensor_new(runtime, PL_I32, &shape, data, "count", &tensor, &error), 0);
    free(data);
    return tensor;
}

static int32_t element(pl_tensor *tensor, int64_t i, int64_t k)
{
    int32_t value;
    const int64_t begin[] = {i, k}, extent[] = {1, 1};
    assert_int_equal(pl_tensor_read(tensor, begin, extent, &value, &error), 0);
    return value;
}

static void views_share_the_buffer_and_outlive_the_tensor(void **state)
{
    (void)state;
    pl_tensor *whole = count_up(PL_SHAPE(10, 20)), *slice, *turned;
    uint64_t claimed = pl_runtime_claimed_bytes(runtime);
    const int64_t start[] = {9, 1}, step[] = {-2, 3}, count[] = {5, 6};
    assert_int_equal(pl_tensor_slice(whole, start, step, count, &slice, &error), 0);
    assert_int_equal(pl_tensor_transpose(slice, (int[]){1, 0}, &turned, &error), 0);
    assert_int_equal(pl_runtime_claimed_bytes(runtime), claimed);
    pl_tensor_unref(whole);
    pl_tensor_unref(slice);
    assert_string_equal(PL_SHAPE_TEXT(pl_tensor_shape(turned)), "[6,5]");
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 5; k++)
            assert_int_equal(element(turned, i, k), (9 - 2 * k) * 20 + 1 + 3 * i);
    pl_tensor_unref(turned);
}

static void a_slice_that_is_not_there_is_refused(void **state)
{
    (void)state;
    pl_tensor *whole = count_up(PL_SHAPE(10)), *view = NULL;
    const struct {
        int64_t start, step, count;
    } bad[] = {{0, 1, 11}, {10, 1, 1}, {-1, 1, 1}, {5, -3, 3}, {0, INT64_MAX, 3}, {0, 1, -1}};
    for (size_t i = 0; i < PL_COUNT_OF(bad); i++)
        assert_int_equal(
            pl_tensor_slice(whole, &bad[i].start, &bad[i].step, &bad[i].count, &view, &error),
            -EINVAL);
    const int64_t begin = 4, extent = 7;
    int32_t data[7];
    assert_int_equal(pl_tensor_read(whole, &begin, &extent, data, &error), -EINVAL);
    assert_int_equal(pl_tensor_transpose(whole, (int[]){1}, &view, &error), -EINVAL);
    assert_null(view);
    pl_tensor_unref(whole);
}

static void a_file_is_read_where_it_is(void **state)
{
    (void)state;
    pl_tensor *whole = count_up(PL_SHAPE(300, 700)), *file;
    assert_int_equal(pl_tensor_save_npy(whole, path, &error), 0);
    pl_tensor_unref(whole);
    assert_int_equal(pl_tensor_open_npy(runtime, path, &file, &error), 0);
    assert_int_equal(pl_tensor_dtype(file), PL_I32);
    assert_int_equal(pl_tensor_bytes(file), 300 * 700 * 4);
    assert_int_equal(element(file, 299, 699), 300 * 700 - 1);
    int32_t part[2][3];
    const int64_t begin[] = {17, 650}, extent[] = {2, 3};
    assert_int_equal(pl_tensor_read(file, begin, extent, part, &error), 0);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++)
            assert_int_equal(part[i][k], (17 + i) * 700 + 650 + k);
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    pl_tensor_unref(file);
}

/* '>i4' and Fortran order, as NumPy writes them. */
static void swapped_and_fortran_files_are_what_numpy_says(void **state)
{
    (void)state;
    const char text[] = "{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3), }";
    char header[128];
    const unsigned char data[24] = {0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1,
                                    0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 5};
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(header + 10, text, sizeof text - 1);
    header[127] = '\n';
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, header, sizeof header), sizeof header);
    assert_int_equal(write(fd, data, sizeof data), sizeof data);
    close(fd);
    pl_tensor *tensor;
    assert_int_equal(pl_tensor_open_npy(runtime, path, &tensor, &error), 0);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++)
            assert_int_equal(element(tensor, i, k), 3 * i + k);
    pl_tensor_unref(tensor);
}

static void what_fails_leaves_no_file_and_no_claim(void **state)
{
    (void)state;
    pl_tensor *whole = count_up(PL_SHAPE(10)), *file;
    assert_int_equal(pl_tensor_save_npy(whole, "/nonexistent/x.npy", &error), -ENOENT);
    assert_string_equal(error.message,
                        "cannot write '/nonexistent/x.npy': No such file or directory");
    assert_int_equal(pl_tensor_open_npy(runtime, path, &file, &error), -ENOENT);
    const pl_shape too_large = PL_SHAPE(8 * PL_MIB);
    assert_int_equal(pl_tensor_new(runtime, PL_U8, &too_large, &too_large, "large", &file, &error),
                     PL_EBUDGET);
    const pl_shape one = PL_SHAPE(1);
    assert_int_equal(pl_tensor_new(runtime, PL_U8, &one, "", NULL, &file, &error), 0);
    pl_tensor_unref(file);
    const pl_shape no_rank[] = {{.rank = PL_RANK_MAX + 1}, {.rank = PL_RANK_UNKNOWN}};
    for (size_t i = 0; i < PL_COUNT_OF(no_rank); i++) {
        assert_int_equal(pl_tensor_new(runtime, PL_U8, &no_rank[i], "", "no", &file, &error),
                         -EINVAL);
        assert_non_null(strstr(error.message, "a tensor has 0 to 8 axes"));
    }
    pl_tensor_unref(whole);
}

/* 6 MiB of a file, where 4 are allowed. */
static void a_view_of_a_file_is_read_and_saved_without_room_for_all_of_it(void **state)
{
    (void)state;
    enum { ROWS = 1200, COLUMNS = 1311 };
    const pl_shape shape = PL_SHAPE(ROWS, COLUMNS);
    pl_npy_file made;
    uint64_t offset;
    assert_int_equal(pl_npy_create(path, PL_I32, &shape, &made, &offset, &error), 0);
    for (int i = 0; i < ROWS; i++) {
        int32_t numbers[COLUMNS];
        for (int k = 0; k < COLUMNS; k++)
            numbers[k] = i * COLUMNS + k;
        assert_int_equal(pwrite(made.fd, numbers, sizeof numbers,
                                (off_t)(offset + (uint64_t)i * sizeof numbers)),
                         sizeof numbers);
    }
    assert_int_equal(pl_npy_look(&made, &error), 0);
    assert_int_equal(pl_npy_publish(&made, &error), 0);
    pl_tensor *file, *turned, *view, *saved;
    assert_int_equal(pl_tensor_open_npy(runtime, path, &file, &error), 0);
    assert_int_equal(pl_tensor_transpose(file, (const int[]){1, 0}, &turned, &error), 0);
    const int64_t start[] = {COLUMNS - 1, 1}, step[] = {-2, 3}, count[] = {COLUMNS / 2, ROWS / 3};
    assert_int_equal(pl_tensor_slice(turned, start, step, count, &view, &error), 0);
    assert_int_equal(element(view, 5, 7), (7 * 3 + 1) * COLUMNS + COLUMNS - 1 - 10);
    assert_int_equal(pl_tensor_save_npy(view, path, &error), 0); /* over the file that it is of */
    assert_int_equal(pl_tensor_open_npy(runtime, path, &saved, &error), 0);
    for (int i = 0; i < COLUMNS / 2; i += 11)
        for (int k = 0; k < ROWS / 3; k += 7)
            assert_int_equal(element(saved, i, k), (k * 3 + 1) * COLUMNS + COLUMNS - 1 - 2 * i);
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    pl_tensor_unref(saved);
    pl_tensor_unref(view);
    pl_tensor_unref(turned);
    pl_tensor_unref(file);
}

static void save_first_number(int number, const char *to, int code)
{
    const pl_shape shape = PL_SHAPE(1);
    pl_tensor *tensor;
    assert_int_equal(pl_tensor_new(runtime, PL_I32, &shape, &number, "n", &tensor, &error), 0);
    assert_int_equal(pl_tensor_save_npy(tensor, to, &error), code);
    pl_tensor_unref(tensor);
}

static int first_number(const char *from)
{
    pl_tensor *file;
    assert_int_equal(pl_tensor_open_npy(runtime, from, &file, &error), 0);
    int number = element(file, 0, 0);
    pl_tensor_unref(file);
    return number;
}

static void a_link_is_followed_and_what_is_no_file_stays(void **state)
{
    (void)state;
    char link[128], far[160], pipe[128];
    struct stat info;
    snprintf(link, sizeof link, "%s/link.npy", folder);
    snprintf(far, sizeof far, "%s/far.npy", folder);
    snprintf(pipe, sizeof pipe, "%s/pipe.npy", folder);
    assert_int_equal(symlink("link.npy", path), 0);
    assert_int_equal(symlink(far, link), 0);
    save_first_number(1, path, 0); /* to what is not there yet */
    save_first_number(2, path, 0);
    assert_int_equal(first_number(far), 2);
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(mkfifo(pipe, 0600), 0);
    save_first_number(3, pipe, -EINVAL);
    assert_non_null(strstr(error.message, "it is not a regular file"));
    assert_int_equal(lstat(pipe, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    unlink(link);
    assert_int_equal(symlink("t.npy", link), 0); /* in a circle */
    save_first_number(4, path, -ELOOP);
    unlink(link);
    unlink(far);
    unlink(pipe);
}

/* Two who write one file at the same time: it is one's or the other's, never half of each. */
static void each_writer_has_a_file_of_its_own(void **state)
{
    (void)state;
    const pl_shape shape = PL_SHAPE(1);
    pl_npy_file first, second;
    uint64_t offset;
    int number = 1;
    assert_int_equal(pl_npy_create(path, PL_I32, &shape, &first, &offset, &error), 0);
    assert_int_equal(pwrite(first.fd, &number, sizeof number, (off_t)offset), sizeof number);
    assert_int_equal(pl_npy_create(path, PL_I32, &shape, &second, &offset, &error), 0);
    assert_int_equal(pl_npy_look(&first, &error), 0);
    assert_int_equal(pl_npy_publish(&first, &error), 0);
    number = 2;
    assert_int_equal(pwrite(second.fd, &number, sizeof number, (off_t)offset), sizeof number);
    assert_int_equal(first_number(path), 1);
    save_first_number(3, path, 0);
    assert_int_equal(first_number(path), 3);
    assert_int_equal(pl_npy_look(&second, &error), 0);
    assert_int_equal(pl_npy_publish(&second, &error), 0);
    assert_int_equal(first_number(path), 2);
}

static void nothing_and_one_element_go_to_a_file_and_back(void **state)
{
    (void)state;
    const pl_shape shapes[] = {PL_SHAPE(3, 0), PL_SHAPE()};
    for (size_t i = 0; i < PL_COUNT_OF(shapes); i++) {
        pl_tensor *tensor = count_up(shapes[i]), *file;
        assert_int_equal(pl_tensor_save_npy(tensor, path, &error), 0);
        assert_int_equal(pl_tensor_open_npy(runtime, path, &file, &error), 0);
        assert_true(pl_shape_equal(pl_tensor_shape(file), &shapes[i]));
        pl_tensor_unref(tensor);
        pl_tensor_unref(file);
    }
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

static void count_release(void *context)
{
    ++*(int *)context;
}

static void what_is_borrowed_is_read_where_it_is_until_nobody_needs_it(void **state)
{
    (void)state;
    int n_released = 0;
    int32_t data[6] = {0, 1, 2, 3, 4, 5};
    const int64_t backwards[] = {-12, 4}; /* of rows */
    const pl_shape shape = PL_SHAPE(2, 3);
    pl_tensor *tensor, *view;
    const void *at;
    int64_t strides[PL_RANK_MAX];
    assert_int_equal(pl_tensor_borrow(runtime, PL_I32, &shape, backwards, &data[3], count_release,
                                      &n_released, "theirs", &tensor, &error),
                     0);
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    assert_int_equal(element(tensor, 0, 0), 3);
    assert_int_equal(element(tensor, 1, 2), 2);
    assert_int_equal(pl_tensor_pin(tensor, &at, strides, &error), 0);
    assert_ptr_equal(at, &data[3]);
    pl_tensor_unpin(tensor);
    assert_int_equal(pl_tensor_transpose(tensor, (const int[]){1, 0}, &view, &error), 0);
    pl_tensor_unref(tensor);
    assert_int_equal(n_released, 0);
    assert_int_equal(element(view, 2, 1), 2);
    pl_tensor_unref(view);
    assert_int_equal(n_released, 1);
    assert_int_equal(pl_tensor_borrow(runtime, PL_STRING, &shape, NULL, data, count_release,
                                      &n_released, "theirs", &tensor, &error),
                     -EINVAL);
    assert_int_equal(n_released, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_is_borrowed_is_read_where_it_is_until_nobody_needs_it),
        CASE(views_share_the_buffer_and_outlive_the_tensor),
        CASE(a_slice_that_is_not_there_is_refused),
        CASE(a_file_is_read_where_it_is),
        CASE(swapped_and_fortran_files_are_what_numpy_says),
        CASE(what_fails_leaves_no_file_and_no_claim),
        CASE(a_view_of_a_file_is_read_and_saved_without_room_for_all_of_it),
        CASE(a_link_is_followed_and_what_is_no_file_stays),
        CASE(each_writer_has_a_file_of_its_own),
        CASE(nothing_and_one_element_go_to_a_file_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
