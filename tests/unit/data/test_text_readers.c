/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of text, CSV and tar files: what they claim and give back, what they do when the system
 * fails them. What they read is tested in tests/kernels (test_lines.py, test_csv.py, test_tar.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/reader/csv_reader.h"
#include "data/reader/sample_reader.h"
#include "data/reader/text_reader.h"
#include "faults.h"

enum { CAP = 8 << 20 };

static pl_memory *memory;

static int begin(void **state)
{
    (void)state;
    return pl_memory_new(&(pl_memory_options){.cap_bytes = CAP}, &memory, NULL);
}

static int end(void **state)
{
    (void)state;
    bool all = pl_memory_claimed_bytes(memory) == 0;
    pl_memory_unref(memory);
    return all ? 0 : -1;
}

/* A file in memory, which has a path as long as it is open. */
typedef struct file {
    int fd;
    char path[64];
} file;

static file make_file(const void *bytes, size_t n)
{
    file made = {.fd = memfd_create("text", MFD_CLOEXEC)};
    assert_true(made.fd >= 0);
    assert_int_equal(write(made.fd, bytes, n), n);
    snprintf(made.path, sizeof made.path, "/proc/self/fd/%d", made.fd);
    return made;
}

static pl_text_reader open_text(const file *from, uint64_t window_bytes)
{
    pl_text_reader reader;
    const pl_text_options options = {.window_bytes = window_bytes};
    assert_int_equal(pl_text_reader_init(&reader, from->path, &options, memory, NULL), 0);
    return reader;
}

/* `n_lines` of `n` bytes each, their ends included. */
static char *make_lines(int n_lines, size_t n)
{
    char *text = malloc((size_t)n_lines * n);
    assert_non_null(text);
    memset(text, 'x', (size_t)n_lines * n);
    for (int i = 1; i <= n_lines; i++)
        text[(size_t)i * n - 1] = '\n';
    return text;
}

static int next_line(pl_text_reader *reader, pl_error *reterr)
{
    pl_string line;
    pl_text_place place;
    return pl_text_reader_next(reader, &line, &place, reterr);
}

/* ---- the window ---- */

static void a_window_is_claimed_grows_for_what_is_long_and_shrinks_again(void **state)
{
    (void)state;
    char *text = make_lines(4, 1500000);
    memset(text + 3000000, '\n', 2999999); /* two long ones, and very short ones */
    file made = make_file(text, 6000000);
    pl_text_reader reader = open_text(&made, 0);
    uint64_t usual = pl_memory_cost_bytes(PL_FILE_WINDOW_BYTES);
    assert_int_equal(pl_memory_claimed_bytes(memory), usual);
    assert_int_equal(next_line(&reader, NULL), 1);
    assert_int_equal(next_line(&reader, NULL), 1);
    assert_true(pl_memory_claimed_bytes(memory) >= 1500000);
    assert_true(pl_memory_peak_bytes(memory) < 4 * 1500000);
    for (int i = 0; i < 2900000; i++)
        assert_int_equal(next_line(&reader, NULL), 1);
    assert_int_equal(pl_memory_claimed_bytes(memory), usual);
    pl_text_reader_done(&reader);
    pl_text_reader_done(&reader);
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    close(made.fd);
    free(text);
}

static void a_line_that_the_budget_has_no_room_for_is_refused_with_what_it_needs(void **state)
{
    (void)state;
    char *text = make_lines(1, 2 * CAP);
    text[99] = text[2 * CAP - 100] = '\n';
    file made = make_file(text, 2 * CAP);
    pl_text_reader reader = open_text(&made, 0);
    pl_error error = {0};
    assert_int_equal(next_line(&reader, NULL), 1);
    assert_int_equal(next_line(&reader, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, made.path));
    assert_non_null(strstr(error.message, "line 2, byte 100: no room for "));
    assert_true(pl_memory_claimed_bytes(memory) <= CAP);
    assert_int_equal(next_line(&reader, NULL), 1); /* it costs that line */
    assert_int_equal(next_line(&reader, NULL), 0);
    pl_text_reader_done(&reader);
    close(made.fd);
    free(text);
}

static void a_record_that_the_budget_has_no_room_for_costs_its_first_line(void **state)
{
    (void)state;
    char *text = make_lines(1, 2 * CAP);
    memcpy(text, "a\n\"\nb\n", 6);
    text[2 * CAP - 100] = '\n';
    file made = make_file(text, 2 * CAP);
    const pl_csv_column column = {.dtype = PL_STRING};
    const pl_csv_format format = {.delimiter = ',', .columns = &column, .n_columns = 1};
    static const int wanted[] = {1, PL_EBUDGET, 1, PL_EBUDGET, 1, 0, 0};
    pl_csv_reader reader;
    assert_int_equal(pl_csv_reader_init(&reader, made.path, &format, NULL, memory, NULL), 0);
    for (size_t i = 0; i < PL_COUNT_OF(wanted); i++) {
        pl_csv_value value;
        pl_text_place place;
        assert_int_equal(pl_csv_reader_next(&reader, &value, &place, NULL), wanted[i]);
    }
    pl_csv_reader_done(&reader);
    close(made.fd);
    free(text);
}

static void nothing_is_claimed_that_the_file_cannot_have(void **state)
{
    (void)state;
    char *text = make_lines(1, 300000);
    file made = make_file(text, 300000);
    pl_text_reader reader = open_text(&made, 200000);
    assert_int_equal(next_line(&reader, NULL), 1);
    assert_true(pl_memory_claimed_bytes(memory) <= pl_memory_cost_bytes(300001));
    pl_text_reader_done(&reader);
    close(made.fd);
    free(text);
}

/* ---- the system ---- */

static void short_and_interrupted_reads_go_on(void **state)
{
    (void)state;
    char *text = make_lines(100, 33);
    file made = make_file(text, 3300);
    for (size_t most = 1; most < 100; most += 31) {
        fault_io_reset();
        fault_io.most_bytes = most;
        fault_io.n_interruptions = 3;
        pl_text_reader reader = open_text(&made, 50);
        int n = 0;
        while (next_line(&reader, NULL) == 1)
            n++;
        assert_int_equal(n, 100);
        pl_text_reader_done(&reader);
    }
    fault_io_reset();
    close(made.fd);
    free(text);
}

static void a_read_error_is_told_once_at_its_place_and_can_be_tried_again(void **state)
{
    (void)state;
    char *text = make_lines(10, 100);
    file made = make_file(text, 1000);
    pl_text_reader reader = open_text(&made, 250);
    pl_error error = {0};
    fault_io_reset();
    fault_io.read_error = EIO;
    fault_io.n_before = 1;
    assert_int_equal(next_line(&reader, NULL), 1);
    assert_int_equal(next_line(&reader, NULL), 1);
    pl_text_place place = pl_text_reader_tell(&reader);
    assert_true(place.offset == 200 && place.line == 3);
    assert_int_equal(next_line(&reader, &error), -EIO);
    assert_non_null(strstr(error.message, ", byte 250: cannot read it: Input/output error"));
    assert_int_equal(next_line(&reader, NULL), 0);
    fault_io_reset();
    assert_int_equal(pl_text_reader_seek(&reader, place, NULL), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(next_line(&reader, NULL), 1);
    assert_int_equal(next_line(&reader, NULL), 0);
    pl_text_reader_done(&reader);
    close(made.fd);
    free(text);
}

static void a_file_that_shrinks_while_it_is_read_just_ends(void **state)
{
    (void)state;
    char *text = make_lines(10, 100);
    file made = make_file(text, 1000);
    pl_text_reader reader = open_text(&made, 250);
    assert_int_equal(next_line(&reader, NULL), 1);
    assert_int_equal(ftruncate(made.fd, 350), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(next_line(&reader, NULL), 1);
    assert_int_equal(next_line(&reader, NULL), 0);
    pl_error error = {0};
    assert_int_equal(pl_text_reader_seek(&reader, (pl_text_place){400, 5}, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "it ends at byte 350"));
    assert_int_equal(next_line(&reader, NULL), 0);
    pl_text_reader_done(&reader);
    close(made.fd);
    free(text);
}

/* ---- tar ---- */

static size_t add_entry(char *archive, const char *name, size_t n_data)
{
    unsigned sum = 0;
    memset(archive, 0, 512);
    strcpy(archive, name);
    snprintf(archive + 124, 12, "%011zo", n_data);
    archive[156] = '0';
    memcpy(archive + 257,
           "ustar\0"
           "00",
           8);
    memset(archive + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)archive[i];
    snprintf(archive + 148, 7, "%06o", sum);
    size_t all = (n_data + 511) / 512 * 512;
    memset(archive + 512, 'd', n_data);
    return 512 + all;
}

static size_t make_archive(char *archive, int n_samples, size_t n_data)
{
    size_t n = 0;
    for (int i = 0; i < n_samples; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.a", i);
        n += add_entry(archive + n, name, n_data);
        snprintf(name, sizeof name, "%d.b", i);
        n += add_entry(archive + n, name, 1);
    }
    memset(archive + n, 0, 1024);
    return n + 1024;
}

static void a_tar_that_shrinks_while_it_is_read_is_told_once(void **state)
{
    (void)state;
    static char archive[1 << 20];
    size_t n = make_archive(archive, 2, 300000);
    file made = make_file(archive, n);
    pl_tar_reader reader;
    pl_tar_entry entry;
    pl_error error = {0};
    char *data = malloc(300000);
    assert_int_equal(pl_tar_reader_init(&reader, made.path, PL_PACKING_NONE, 4096, memory, NULL),
                     0);
    assert_int_equal(pl_tar_reader_next(&reader, &entry, NULL), 1);
    assert_true(entry.is_file && entry.data_bytes == 300000);
    assert_int_equal(ftruncate(made.fd, 100000), 0);
    assert_int_equal(pl_tar_reader_read(&reader, data, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, ", byte 100000: it ends here, and "));
    assert_int_equal(pl_tar_reader_next(&reader, &entry, NULL), 0);
    pl_tar_reader_done(&reader);
    free(data);
    close(made.fd);
}

static void a_sample_goes_on_from_any_place_that_was_told(void **state)
{
    (void)state;
    static char archive[1 << 16];
    size_t n = make_archive(archive, 9, 700);
    file made = make_file(archive, n);
    pl_sample_reader *reader, *other;
    pl_sample sample;
    uint64_t offset;
    assert_int_equal(
        pl_sample_reader_new(made.path, PL_PACKING_AUTO, NULL, 0, memory, &reader, NULL), 0);
    assert_int_equal(
        pl_sample_reader_new(made.path, PL_PACKING_AUTO, NULL, 0, memory, &other, NULL), 0);
    for (int i = 0; i < 9; i++) {
        char key[8];
        snprintf(key, sizeof key, "%d", i);
        uint64_t place = pl_sample_reader_tell(reader);
        assert_int_equal(pl_sample_reader_seek(other, place, NULL), 0);
        assert_int_equal(pl_sample_reader_next(other, &sample, &offset, NULL), 1);
        assert_string_equal(sample.key, key);
        assert_true(offset == place && sample.n_parts == 2);
        assert_int_equal(pl_sample_reader_next(reader, &sample, &offset, NULL), 1);
        assert_string_equal(sample.key, key);
    }
    assert_int_equal(pl_sample_reader_next(reader, &sample, &offset, NULL), 0);
    assert_int_equal(pl_sample_reader_next(reader, &sample, &offset, NULL), 0);
    pl_sample_reader_free(reader);
    pl_sample_reader_free(other);
    pl_sample_reader_free(NULL);
    close(made.fd);
}

static void too_many_extensions_are_refused(void **state)
{
    (void)state;
    const char *wanted[65] = {0};
    pl_sample_reader *reader;
    assert_int_equal(pl_sample_reader_new("/x", PL_PACKING_NONE, wanted, 65, memory, &reader, NULL),
                     -EINVAL);
}

/* ---- want of memory ---- */

static int read_csv(const char *path)
{
    const pl_csv_column columns[] = {{.dtype = PL_I64}, {.dtype = PL_STRING}};
    const pl_csv_format format = {.delimiter = ',', .columns = columns, .n_columns = 2};
    pl_csv_reader reader;
    pl_csv_value values[2];
    pl_text_place place;
    int r = pl_csv_reader_init(&reader, path, &format, NULL, memory, NULL);
    if (r < 0)
        return r;
    while ((r = pl_csv_reader_next(&reader, values, &place, NULL)) > 0)
        ;
    pl_csv_reader_done(&reader);
    return r;
}

static int read_samples(const char *path)
{
    pl_sample_reader *reader;
    pl_sample sample;
    uint64_t offset;
    int r = pl_sample_reader_new(path, PL_PACKING_AUTO, NULL, 0, memory, &reader, NULL);
    if (r < 0)
        return r;
    while ((r = pl_sample_reader_next(reader, &sample, &offset, NULL)) > 0)
        ;
    pl_sample_reader_free(reader);
    return r;
}

static void fail_each_allocation(int (*read)(const char *path), const char *path)
{
    int n_failed = 0;
    for (int number = 1;; number++) {
        pl_memory_trim(memory); /* what is kept is live as well */
        long live = fault_live;
        fault_alloc_begin(number);
        int r = read(path);
        bool hit = fault_alloc_end();
        pl_memory_trim(memory);
        assert_int_equal(pl_memory_claimed_bytes(memory), 0);
        if (!hit) {
            assert_int_equal(r, 0);
            break;
        }
        assert_int_equal(fault_live, live);
        n_failed += r < 0;
    }
    assert_true(n_failed >= 2);
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    static char archive[1 << 20], text[600000];
    size_t n = make_archive(archive, 3, 100000);
    file tar = make_file(archive, n);
    memset(text, 'x', sizeof text);
    memcpy(text, "1,", 2);
    file csv = make_file(text, sizeof text);
    fail_each_allocation(read_samples, tar.path);
    fail_each_allocation(read_csv, csv.path);
    close(tar.fd);
    close(csv.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_is_claimed_grows_for_what_is_long_and_shrinks_again),
        cmocka_unit_test(a_line_that_the_budget_has_no_room_for_is_refused_with_what_it_needs),
        cmocka_unit_test(a_record_that_the_budget_has_no_room_for_costs_its_first_line),
        cmocka_unit_test(nothing_is_claimed_that_the_file_cannot_have),
        cmocka_unit_test(short_and_interrupted_reads_go_on),
        cmocka_unit_test(a_read_error_is_told_once_at_its_place_and_can_be_tried_again),
        cmocka_unit_test(a_file_that_shrinks_while_it_is_read_just_ends),
        cmocka_unit_test(a_tar_that_shrinks_while_it_is_read_is_told_once),
        cmocka_unit_test(a_sample_goes_on_from_any_place_that_was_told),
        cmocka_unit_test(too_many_extensions_are_refused),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("text_readers", tests, begin, end);
}
