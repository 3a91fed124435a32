/* SPDX-License-Identifier: Apache-2.0 */
/* The spill file gives back what was put there, or an error that says where and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "faults.h"
#include "sys/file.h"
#include "tensor/spill.h"

#define BIG (3 * PL_MIB + 100)

static long statfs_type; /* what statfs() says; 0: the truth */

int statfs(const char *path, struct statfs *info)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    int r = fd < 0 ? -1 : fstatfs(fd, info);
    if (fd >= 0)
        close(fd);
    if (r == 0 && statfs_type)
        info->f_type = statfs_type;
    return r;
}

static char folder[64];
static pl_spill *spill;
static unsigned char *data, *back; /* of BIG, page-aligned */

static void *pages(size_t n)
{
    void *address = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return address == MAP_FAILED ? NULL : address;
}

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/plimsoll-spill-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    fault_io_reset();
    statfs_type = 0;
    data = pages(BIG);
    back = pages(BIG);
    if (!data || !back)
        return -1;
    for (size_t i = 0; i < BIG; i++)
        data[i] = (unsigned char)(i * 31 + i / 256);
    return pl_spill_new(folder, 0, &spill, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    fault_io_reset();
    pl_spill_free(spill);
    munmap(data, BIG);
    munmap(back, BIG);
    return rmdir(folder); /* it is empty: the file had no name */
}

static pl_extent reserve(uint64_t bytes)
{
    pl_extent extent = {0};
    pl_error error = {0};
    if (pl_spill_reserve(spill, bytes, &extent, &error) < 0)
        fail_msg("%s", error.message);
    return extent;
}

static void assert_round_trip(pl_extent extent, uint64_t at, const void *from, void *to, size_t n)
{
    assert_int_equal(pl_spill_write(spill, extent.offset + at, from, n, NULL), 0);
    memset(to, 0, n);
    assert_int_equal(pl_spill_read(spill, extent.offset + at, to, n, NULL), 0);
    assert_memory_equal(to, from, n);
}

static void what_is_written_comes_back_at_any_size_and_alignment(void **state)
{
    (void)state;
    pl_extent extent = reserve(BIG);
    assert_round_trip(extent, 0, data, back, BIG);
    assert_round_trip(extent, 0, data, back, 2 * PL_MIB);
    assert_round_trip(extent, 0, data + 3, back + 1, 2 * PL_MIB);
    assert_round_trip(extent, 17, data, back, 2 * PL_MIB);
    assert_round_trip(extent, 4096, data + 4096, back, 1);
    /* Written past the page cache, read through it, and the other way round. */
    assert_int_equal(pl_spill_write(spill, extent.offset, data, BIG, NULL), 0);
    assert_int_equal(pl_spill_read(spill, extent.offset + 5, back, PL_MIB, NULL), 0);
    assert_memory_equal(back, data + 5, PL_MIB);
    assert_int_equal(pl_spill_write(spill, extent.offset, data + 1, BIG - 1, NULL), 0);
    assert_int_equal(pl_spill_read(spill, extent.offset, back, BIG - 1, NULL), 0);
    assert_memory_equal(back, data + 1, BIG - 1);
    pl_spill_release(spill, extent);
    assert_int_equal(pl_spill_used_bytes(spill), 0);
}

static int count_entries(void)
{
    int n = 0;
    DIR *entries = opendir(folder);
    while (entries && readdir(entries))
        n++;
    closedir(entries);
    return n;
}

static void the_file_has_no_name_and_is_made_when_it_is_needed(void **state)
{
    (void)state;
    int first_free = dup(0);
    close(first_free);
    assert_string_equal(pl_spill_directory(spill), folder);
    int next = dup(0);
    close(next);
    assert_int_equal(next, first_free);
    reserve(1);
    assert_int_equal(count_entries(), 2);
    next = dup(0);
    close(next);
    assert_true(next > first_free);
}

static void the_limit_is_kept_and_room_says_what_is_left(void **state)
{
    (void)state;
    pl_spill *small;
    pl_extent a, b;
    pl_error error = {0};
    assert_int_equal(pl_spill_new(folder, 8 * PL_MIB, &small, NULL), 0);
    assert_int_equal(pl_spill_look_for_room(small).bytes, 8 * PL_MIB);
    assert_int_equal(pl_spill_reserve(small, 5 * PL_MIB, &a, NULL), 0);
    assert_int_equal(pl_spill_look_for_room(small).bytes, 3 * PL_MIB);
    assert_int_equal(pl_spill_reserve(small, 3 * PL_MIB + 1, &b, &error), -ENOSPC);
    assert_non_null(strstr(error.message, folder));
    assert_non_null(strstr(error.message, "already holds 5.0 MiB: the limit is 8.0 MiB"));
    assert_int_equal(pl_spill_reserve(small, 3 * PL_MIB, &b, NULL), 0);
    assert_int_equal(pl_spill_look_for_room(small).bytes, 0);
    pl_spill_release(small, a);
    assert_int_equal(pl_spill_reserve(small, 4 * PL_MIB, &a, NULL), 0);
    assert_int_equal(a.offset, 0);
    assert_int_equal(pl_spill_reserve(small, UINT64_MAX, &a, NULL), -EFBIG);
    pl_spill_free(small);
}

static void assert_room_says(pl_spill *of, const char *expected)
{
    const pl_spill_room room = pl_spill_look_for_room(of);
    assert_string_equal(PL_SPILL_ROOM_TEXT(&room), expected);
}

static void what_is_short_is_named_with_what_to_change(void **state)
{
    (void)state;
    pl_spill *other;
    pl_extent taken;
    assert_int_equal(pl_spill_new(folder, 8 * PL_MIB, &other, NULL), 0);
    assert_int_equal(pl_spill_reserve(other, 5 * PL_MIB, &taken, NULL), 0);
    assert_room_says(other, "the limit of 8.0 MiB on what is spilled leaves 3.0 MiB: raise the "
                            "runtime's spill_limit_bytes");
    pl_spill_free(other);
    char text[PL_ERROR_MESSAGE_BYTES], expected[PL_ERROR_MESSAGE_BYTES];
    pl_spill_room room = pl_spill_look_for_room(spill);
    assert_int_equal(room.bound, PL_SPILL_DISK_BOUND);
    room.bytes = 2 * PL_MIB;
    snprintf(expected, sizeof expected,
             "the disk of '%s' has room for 2.0 MiB: set PLIMSOLL_SPILL to a folder with more",
             folder);
    assert_string_equal(pl_spill_room_text(&room, text), expected);
    assert_int_equal(pl_spill_new("/nowhere/at/all", 0, &other, NULL), 0);
    assert_room_says(other,
                     "there is no folder '/nowhere/at/all' for it: set PLIMSOLL_SPILL to one");
    pl_spill_free(other);
    statfs_type = 0x01021994;
    assert_int_equal(pl_spill_new(NULL, 0, &other, NULL), 0);
    room = pl_spill_look_for_room(other);
    assert_non_null(strstr(pl_spill_room_text(&room, text), "is memory (tmpfs), where nothing is"));
    pl_spill_free(other);
}

/* What is free in pieces is no room for a larger one, and still it is not the disk that is full. */
static void a_limit_that_is_met_in_pieces_is_not_called_a_full_disk(void **state)
{
    (void)state;
    pl_spill *small;
    pl_extent piece[8], whole;
    pl_error error = {0};
    assert_int_equal(pl_spill_new(folder, 8 * PL_MIB, &small, NULL), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pl_spill_reserve(small, PL_MIB, &piece[i], NULL), 0);
    for (int i = 0; i < 8; i += 2)
        pl_spill_release(small, piece[i]);
    assert_int_equal(pl_spill_reserve(small, 2 * PL_MIB, &whole, &error), -ENOSPC);
    assert_non_null(strstr(error.message, "the limit is 8.0 MiB; raise the runtime's "
                                          "spill_limit_bytes"));
    pl_spill_free(small);
}

/* What the spill file takes of the disk: it is the one open file of this folder. */
static uint64_t bytes_on_disk(void)
{
    for (int fd = 3; fd < 256; fd++) {
        char link[64], path[256] = "";
        struct stat info;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, path, sizeof path - 1) > 0 &&
            strncmp(path, folder, strlen(folder)) == 0 && fstat(fd, &info) == 0)
            return (uint64_t)info.st_blocks * 512;
    }
    fail_msg("there is no spill file");
    return 0;
}

static void space_is_taken_ahead_and_goes_back_to_the_disk(void **state)
{
    (void)state;
    pl_extent first = reserve(PL_MIB), large = reserve(256 * PL_MIB);
    assert_true(bytes_on_disk() >= 257 * PL_MIB);
    pl_spill_release(spill, large);
    assert_true(bytes_on_disk() < 80 * PL_MIB);
    assert_round_trip(first, 0, data, back, PL_MIB);
    pl_spill_release(spill, first);
}

static void short_calls_and_interruptions_go_on(void **state)
{
    (void)state;
    pl_extent extent = reserve(BIG);
    static const size_t most[] = {4096, 65536, 1000};
    for (size_t i = 0; i < PL_COUNT_OF(most); i++) {
        fault_io_reset();
        fault_io.most_bytes = most[i];
        fault_io.n_interruptions = 5;
        assert_int_equal(pl_spill_write(spill, extent.offset, data, BIG, NULL), 0);
        fault_io.n_interruptions = 5;
        memset(back, 0, BIG);
        assert_int_equal(pl_spill_read(spill, extent.offset, back, BIG, NULL), 0);
        assert_memory_equal(back, data, BIG);
        assert_true(fault_io.n_reads > (int)(BIG / most[i]));
    }
    fault_io_reset();
    fault_io.n_interruptions = 3;
    reserve(64 * PL_MIB);
    assert_true(fault_io.n_reserves >= 4);
}

static void errors_name_the_place(void **state)
{
    (void)state;
    pl_error error = {0};
    pl_extent extent = reserve(BIG);
    fault_io.write_error = EIO;
    assert_int_equal(pl_spill_write(spill, 4096, data, BIG, &error), -EIO);
    assert_non_null(strstr(error.message, "cannot write 3145828 bytes at 4096"));
    assert_non_null(strstr(error.message, folder));
    fault_io_reset();
    fault_io.read_error = EIO;
    assert_int_equal(pl_spill_read(spill, extent.offset, back, 10, &error), -EIO);
    assert_non_null(strstr(error.message, "cannot read 10 bytes"));
    fault_io_reset();
    assert_int_equal(pl_spill_read(spill, UINT64_C(1) << 40, back, 10, &error), PL_ECORRUPT);
}

static void a_full_disk_shows_before_anything_is_written(void **state)
{
    (void)state;
    pl_extent extent;
    pl_error error = {0};
    fault_io.reserve_error = ENOSPC;
    assert_int_equal(pl_spill_reserve(spill, BIG, &extent, &error), -ENOSPC);
    assert_non_null(strstr(error.message, "No space left"));
    assert_int_equal(fault_io.n_writes, 0);
    fault_io_reset();
    /* What is not needed at once is not insisted on: the larger request fails, the exact one not.
     */
    reserve(4 * PL_MIB);
    fault_io.reserve_error = ENOSPC;
    fault_io.n_failures = 1;
    reserve(PL_MIB);
    assert_int_equal(fault_io.n_reserves, 3);
}

static void file_systems_that_cannot_do_everything_will_do(void **state)
{
    (void)state;
    fault_io.reserve_error = EOPNOTSUPP;
    pl_extent extent = reserve(BIG);
    fault_io_reset();
    fault_io.write_error = EINVAL; /* for the direct write */
    fault_io.n_failures = 1;
    assert_round_trip(extent, 0, data, back, BIG);
    assert_int_equal(fault_io.n_writes, 2);
    assert_int_equal(fault_io.n_reads, 1); /* no direct part any more */
}

static void the_limit_on_file_sizes_is_an_error_and_no_signal(void **state)
{
    (void)state;
    struct rlimit before, small = {.rlim_cur = PL_MIB, .rlim_max = RLIM_INFINITY};
    pl_extent extent;
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_FSIZE, &small);
    int r = pl_spill_reserve(spill, 2 * PL_MIB, &extent, NULL);
    int fits = pl_spill_reserve(spill, PL_MIB / 2, &extent, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(r, -EFBIG);
    assert_int_equal(fits, 0);
}

static const char *place_of_new_spill(const char *tmpdir, const char *named)
{
    static char place[256];
    pl_spill *chosen;
    if (tmpdir)
        setenv("TMPDIR", tmpdir, 1);
    if (named)
        setenv(PL_SPILL_VARIABLE, named, 1);
    assert_int_equal(pl_spill_new(NULL, 0, &chosen, NULL), 0);
    snprintf(place, sizeof place, "%s", pl_spill_directory(chosen));
    pl_spill_free(chosen);
    unsetenv("TMPDIR");
    unsetenv(PL_SPILL_VARIABLE);
    return place;
}

static void the_folder_is_the_named_one_or_one_on_a_disk(void **state)
{
    (void)state;
    pl_file_space space;
    assert_string_equal(place_of_new_spill(folder, NULL), folder);
    assert_string_equal(place_of_new_spill("/nowhere", folder), folder);
    assert_string_equal(place_of_new_spill("/nowhere", NULL), "/var/tmp");
    if (pl_file_space_at("/dev/shm", &space) == 0 && space.in_memory)
        assert_string_equal(place_of_new_spill("/dev/shm", NULL), "/var/tmp");
}

static void where_all_is_memory_nothing_is_spilled_unless_somebody_says_so(void **state)
{
    (void)state;
    pl_spill *other;
    pl_extent extent;
    pl_error error = {0};
    statfs_type = 0x01021994;
    assert_int_equal(pl_spill_new(NULL, 0, &other, NULL), 0);
    assert_int_equal(pl_spill_look_for_room(other).bytes, 0);
    assert_int_equal(pl_spill_reserve(other, 1, &extent, &error), -ENOSPC);
    assert_non_null(strstr(error.message, "is in memory (tmpfs)"));
    assert_non_null(strstr(error.message, "$PLIMSOLL_SPILL"));
    pl_spill_free(other);
    reserve(PL_MIB);
}

static void a_folder_that_is_not_there_is_told_when_it_is_needed(void **state)
{
    (void)state;
    pl_spill *other;
    pl_extent extent;
    pl_error error = {0};
    assert_int_equal(pl_spill_new("/nowhere/at/all", 0, &other, NULL), 0);
    assert_int_equal(pl_spill_look_for_room(other).bytes, 0);
    assert_int_equal(pl_spill_reserve(other, 1, &extent, &error), -ENOENT);
    assert_non_null(strstr(error.message, "'/nowhere/at/all'"));
    pl_spill_free(other);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    bool hit = true;
    for (int number = 1; hit; number++) {
        pl_spill *other = NULL;
        pl_extent extent;
        fault_alloc_begin(number);
        int r = pl_spill_new(folder, 0, &other, NULL);
        for (int i = 0; r == 0 && i < 40; i++)
            r = pl_spill_reserve(other, 1, &extent, NULL);
        hit = fault_alloc_end();
        assert_int_equal(r, hit ? -ENOMEM : 0);
        pl_spill_free(other);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_comes_back_at_any_size_and_alignment),
        TEST(the_file_has_no_name_and_is_made_when_it_is_needed),
        TEST(the_limit_is_kept_and_room_says_what_is_left),
        TEST(what_is_short_is_named_with_what_to_change),
        TEST(a_limit_that_is_met_in_pieces_is_not_called_a_full_disk),
        TEST(space_is_taken_ahead_and_goes_back_to_the_disk),
        TEST(short_calls_and_interruptions_go_on),
        TEST(errors_name_the_place),
        TEST(a_full_disk_shows_before_anything_is_written),
        TEST(file_systems_that_cannot_do_everything_will_do),
        TEST(the_limit_on_file_sizes_is_an_error_and_no_signal),
        TEST(the_folder_is_the_named_one_or_one_on_a_disk),
        TEST(where_all_is_memory_nothing_is_spilled_unless_somebody_says_so),
        TEST(a_folder_that_is_not_there_is_told_when_it_is_needed),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("spill", tests, NULL, NULL);
}
