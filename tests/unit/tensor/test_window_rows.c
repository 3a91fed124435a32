/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a file in any order are what the file has there, however they are read: from a mapping,
 * one by one where there is none, and where either fails halfway. A file that is cut off is an
 * error and never a signal. */
#include "faults.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "../emulated.h"
#include "tensor/buffer.h"

enum { FILE_BYTES = 3 * 1024 * 1024 + 1000, BEGIN = 4224, MOST_ROWS = 1000 };

static char folder[64], path[96];
static pl_memory *memory;
static pl_pool *pool;
static pl_buffer *window;
static unsigned char *file_bytes, *got;

/* ---- what stands in front of the system ---- */

static struct {
    _Atomic int n_copies;
    int error;      /* 0: none */
    ssize_t most;   /* bytes of one call; 0: as asked */
    bool cut_first; /* the file, before the next call */
} copies;

ssize_t process_vm_writev(pid_t pid, const struct iovec *from, unsigned long n_from,
                          const struct iovec *to, unsigned long n_to, unsigned long flags)
{
    copies.n_copies++;
    struct iovec less = *to;
    if (copies.most && (ssize_t)less.iov_len > copies.most)
        less.iov_len = (size_t)copies.most;
    if (copies.cut_first && truncate(path, BEGIN + PL_MIB + 10) < 0)
        return -1;
    errno = copies.error;
    return copies.error ? -1
                        : syscall(SYS_process_vm_writev, pid, from, n_from, &less, n_to, flags);
}

/* Can a row be had here without waiting? Not on every file system. */
static bool has_no_wait(void)
{
    char byte;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = preadv2(fd, &(struct iovec){&byte, 1}, 1, BEGIN, RWF_NOWAIT);
    close(fd);
    return n == 1;
}

static void skip_without_no_wait(void)
{
    if (!has_no_wait()) {
        print_message("this file system cannot tell what is in memory\n");
        skip();
    }
}

/* ---- the file ---- */

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/plimsoll-rows-XXXXXX");
    const pl_memory_options options = {.cap_bytes = 64 * PL_MIB};
    if (!mkdtemp(folder) || pl_memory_new(&options, &memory, NULL) < 0 ||
        pl_pool_new(memory, &(pl_pool_options){.spill_directory = folder}, &pool, NULL) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/x.npy", folder);
    file_bytes = malloc(BEGIN + FILE_BYTES);
    got = malloc((size_t)MOST_ROWS * 65536);
    FILE *file = fopen(path, "wb");
    if (!file_bytes || !got || !file)
        return -1;
    for (size_t i = 0; i < BEGIN + FILE_BYTES; i++)
        file_bytes[i] = (unsigned char)(i * 7 + i / 251 + i / 70001 + 1);
    size_t n = fwrite(file_bytes, 1, BEGIN + FILE_BYTES, file);
    memset(&copies, 0, sizeof copies);
    fault_io_reset();
    return fclose(file) == 0 && n == BEGIN + FILE_BYTES
               ? pl_buffer_open_window(pool, path, BEGIN, FILE_BYTES, "rows", &window, NULL)
               : -1;
}

static int tear_down(void **state)
{
    (void)state;
    fault_io_reset();
    pl_buffer_unref(window);
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    pl_pool_unref(pool);
    pl_memory_unref(memory);
    free(file_bytes);
    free(got);
    unlink(path);
    return rmdir(folder);
}

/* Rows in an order that jumps about, some of them twice. */
typedef struct wanted {
    pl_buffer_rows rows;
    int64_t places[MOST_ROWS];
} wanted;

static pl_buffer_rows *want(wanted *to, size_t row_bytes, int64_t n)
{
    int64_t n_rows = FILE_BYTES / (int64_t)row_bytes;
    for (int64_t i = 0; i < n; i++)
        to->places[i] = i * 1000003 % n_rows;
    to->rows = (pl_buffer_rows){
        .stride = (int64_t)row_bytes, .row_bytes = row_bytes, .rows = to->places, .n = n};
    return &to->rows;
}

/* The first row that is another; -1: none. */
static int64_t first_wrong(const pl_buffer_rows *rows, const unsigned char *data)
{
    for (int64_t i = 0; i < rows->n; i++) {
        const unsigned char *row = file_bytes + BEGIN + rows->offset + rows->rows[i] * rows->stride;
        if (memcmp(data + (size_t)i * rows->row_bytes, row, rows->row_bytes) != 0)
            return i;
    }
    return -1;
}

static void assert_rows(const pl_buffer_rows *rows)
{
    pl_error error = {0};
    memset(got, 0, (size_t)rows->n * rows->row_bytes);
    if (pl_buffer_read_rows(window, rows, got, &error) < 0)
        fail_msg("%s", error.message);
    if (first_wrong(rows, got) >= 0)
        fail_msg("row %d of %d with %zu bytes is another", (int)first_wrong(rows, got),
                 (int)rows->n, rows->row_bytes);
}

static void assert_cut_off(const pl_buffer_rows *rows)
{
    pl_error error = {0};
    assert_int_equal(pl_buffer_read_rows(window, rows, got, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "was truncated"));
    assert_non_null(strstr(error.message, path));
}

/* ---- tests ---- */

static void rows_of_any_length_are_the_files(void **state)
{
    (void)state;
    wanted w;
    const size_t lengths[] = {1, 3, 64, 100, 4096, 5000, 32768, 32769, 65536};
    const int64_t numbers[] = {0, 1, 15, 16, 127, 132, 133, MOST_ROWS};
    for (size_t i = 0; i < PL_COUNT_OF(lengths); i++)
        for (size_t j = 0; j < PL_COUNT_OF(numbers); j++)
            assert_rows(want(&w, lengths[i], numbers[j]));
}

static void rows_may_be_far_apart_and_go_backwards(void **state)
{
    (void)state;
    wanted w;
    pl_buffer_rows *rows = want(&w, 100, 300);
    for (int i = 0; i < 300; i++)
        w.places[i] %= FILE_BYTES / 9000;
    rows->stride = 9000;
    assert_rows(rows);
    rows->offset = FILE_BYTES - 100;
    rows->stride = -9000;
    assert_rows(rows);
}

static void what_is_cached_takes_a_call_for_a_hundred_rows(void **state)
{
    (void)state;
    wanted w;
    SKIP_UNDER_QEMU("it has no process_vm_writev()");
    skip_without_no_wait();
    assert_rows(want(&w, 4096, 500));
    assert_int_equal(fault_io.n_reads, 0);
    assert_int_equal(copies.n_copies, 4);
    assert_rows(want(&w, 65536, 40));
    assert_int_equal(fault_io.n_reads, 40);
    assert_int_equal(copies.n_copies, 4);
}

static void what_is_not_cached_is_read_row_by_row(void **state)
{
    (void)state;
    wanted w;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(fsync(fd), 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    if (has_no_wait()) {
        print_message("it stays: a file system in memory\n");
        skip();
    }
    assert_rows(want(&w, 4096, 500));
    assert_int_equal(copies.n_copies, 0);
}

static void a_copy_that_ends_early_is_gone_on_with_by_reading(void **state)
{
    (void)state;
    wanted w;
    const int errors[] = {ENOSYS, EPERM, EFAULT};
    for (size_t i = 0; i < PL_COUNT_OF(errors); i++) {
        copies.error = errors[i];
        assert_rows(want(&w, 4096, 300));
    }
    copies.error = 0;
    for (copies.most = 1; copies.most < 300000; copies.most = copies.most * 3 + 1)
        assert_rows(want(&w, 100, 300));
}

static void a_file_that_was_cut_off_is_an_error(void **state)
{
    (void)state;
    wanted w;
    const off_t ends[] = {BEGIN + 2 * PL_MIB, BEGIN + PL_MIB + 10, PL_MIB, BEGIN + 10, 0};
    assert_rows(want(&w, 4096, 500)); /* it is mapped from here on */
    for (size_t i = 0; i < PL_COUNT_OF(ends); i++) {
        assert_int_equal(truncate(path, ends[i]), 0);
        assert_cut_off(want(&w, 4096, 500));
        assert_cut_off(want(&w, 10, MOST_ROWS));
    }
}

static void rows_before_the_cut_are_still_there(void **state)
{
    (void)state;
    wanted w;
    assert_rows(want(&w, 100, 300));
    assert_int_equal(truncate(path, BEGIN + PL_MIB), 0);
    pl_buffer_rows *rows = want(&w, 100, 300);
    for (int i = 0; i < 300; i++)
        w.places[i] %= 10000;
    assert_rows(rows);
}

/* A page that the end lies in is there to its own end, with zeros. */
static void the_rest_of_the_last_page_is_no_row(void **state)
{
    (void)state;
    wanted w;
    pl_buffer_rows *rows = want(&w, 10, 20);
    for (int i = 0; i < 20; i++)
        w.places[i] = i < 10 ? i : 200;
    assert_rows(rows);
    assert_int_equal(truncate(path, BEGIN + 2005), 0);
    assert_cut_off(rows);
}

static void a_file_may_be_cut_off_at_any_moment(void **state)
{
    (void)state;
    wanted w;
    skip_without_no_wait();
    copies.cut_first = true;
    pl_buffer_rows *rows = want(&w, 4096, 500);
    for (int i = 0; i < 8; i++)
        w.places[i] = i;
    assert_cut_off(rows);
}

static void page_tables_are_claimed(void **state)
{
    (void)state;
    wanted w;
    skip_without_no_wait();
    assert_rows(want(&w, 4096, 500));
    uint64_t claimed = pl_memory_claimed_bytes(memory);
    assert_true(claimed >= FILE_BYTES / 512 && claimed <= FILE_BYTES / 512 + 4 * 4096);
}

/* A pool of its own, in so much. */
static void read_in_room_of(uint64_t bytes, const pl_buffer_rows *rows)
{
    pl_buffer *before = window;
    pl_memory *small;
    pl_pool *own;
    const pl_memory_options options = {.cap_bytes = bytes};
    assert_int_equal(pl_memory_new(&options, &small, NULL), 0);
    assert_int_equal(pl_pool_new(small, &(pl_pool_options){.spill_directory = folder}, &own, NULL),
                     0);
    assert_int_equal(pl_buffer_open_window(own, path, BEGIN, FILE_BYTES, "rows", &window, NULL), 0);
    assert_rows(rows);
    pl_buffer_unref(window);
    window = before;
    assert_int_equal(pl_memory_claimed_bytes(small), 0);
    pl_pool_unref(own);
    pl_memory_unref(small);
}

static void nothing_is_mapped_where_room_is_short(void **state)
{
    (void)state;
    wanted w;
    read_in_room_of(512 * PL_KIB, want(&w, 4096, 500));
    assert_int_equal(copies.n_copies, 0);
    read_in_room_of(64 * PL_MIB, want(&w, 4096, 500));
    assert_int_equal(copies.n_copies > 0, has_no_wait());
}

static void nothing_is_mapped_where_address_space_is_limited(void **state)
{
    (void)state;
    wanted w;
    SKIP_UNDER_QEMU("it sets no limit of address space, and says that it did");
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limit = (struct rlimit){UINT64_C(1) << 60, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    read_in_room_of(64 * PL_MIB, want(&w, 4096, 500));
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(copies.n_copies, 0);
    read_in_room_of(64 * PL_MIB, want(&w, 4096, 500));
    assert_int_equal(copies.n_copies > 0, has_no_wait());
}

static void *read_in_a_thread(void *context)
{
    wanted w;
    const pl_buffer_rows *rows = want(&w, 4096, 500);
    unsigned char *data = context;
    for (int i = 0; i < 20; i++)
        if (pl_buffer_read_rows(window, rows, data, NULL) < 0 || first_wrong(rows, data) >= 0)
            return NULL;
    return context;
}

static void threads_may_read_rows_at_once(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_in_a_thread, got + i * 500 * 4096),
                         0);
    for (size_t i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_non_null(result);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_of_any_length_are_the_files),
        TEST(rows_may_be_far_apart_and_go_backwards),
        TEST(what_is_cached_takes_a_call_for_a_hundred_rows),
        TEST(what_is_not_cached_is_read_row_by_row),
        TEST(a_copy_that_ends_early_is_gone_on_with_by_reading),
        TEST(a_file_that_was_cut_off_is_an_error),
        TEST(rows_before_the_cut_are_still_there),
        TEST(the_rest_of_the_last_page_is_no_row),
        TEST(a_file_may_be_cut_off_at_any_moment),
        TEST(page_tables_are_claimed),
        TEST(nothing_is_mapped_where_room_is_short),
        TEST(nothing_is_mapped_where_address_space_is_limited),
        TEST(threads_may_read_rows_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
