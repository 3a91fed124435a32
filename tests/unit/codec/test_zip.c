/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a zip is found and read; whatever byte of it is another, nothing outside of the
 * bytes is looked at (a sanitizer sees that), and no entry is outside of the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codec/archive/zip.h"

enum { LOCAL = 30 + 5, ENTRY = 46 + 5, END = 22, FILE_BYTES = LOCAL + 3 + ENTRY + END };

/* One stored file "a.npy" of three bytes, as zip writes it. */
static void make_zip(uint8_t zip[FILE_BYTES])
{
    memset(zip, 0, FILE_BYTES);
    memcpy(zip, "PK\x03\x04", 4);
    zip[26] = 5;
    memcpy(zip + 30, "a.npyxyz", 8);
    uint8_t *entry = zip + LOCAL + 3;
    memcpy(entry, "PK\x01\x02", 4);
    memcpy(entry + 16, "\x67\xba\x8e\xeb", 4); /* the sum of "xyz" */
    entry[20] = entry[24] = 3;
    entry[28] = 5;
    memcpy(entry + 46, "a.npy", 5);
    uint8_t *end = entry + ENTRY;
    memcpy(end, "PK\x05\x06", 4);
    end[8] = end[10] = 1;
    end[12] = ENTRY;
    end[16] = LOCAL + 3;
}

/* All entries; the code that ended it. Each is held against the file. */
static int read_all(const uint8_t *zip, size_t n, int *ret_n, pl_error *reterr)
{
    pl_zip_directory directory;
    pl_zip_entry entry;
    size_t at = 0;
    *ret_n = 0;
    int r = pl_zip_find_directory(zip, n, n, &directory, reterr);
    if (r < 0)
        return r;
    while ((r = pl_zip_next(&directory, zip + directory.offset, &at, &entry, reterr)) > 0) {
        uint64_t offset;
        if (entry.local_offset > n || n - entry.local_offset < PL_ZIP_LOCAL_BYTES)
            return PL_ECORRUPT; /* as whoever reads it finds out */
        r = pl_zip_data_offset(&entry, zip + entry.local_offset, n, &offset, reterr);
        if (r < 0)
            return r;
        assert_true(offset <= n && entry.packed_bytes <= n - offset);
        ++*ret_n;
    }
    return r;
}

static void the_directory_is_read(void **state)
{
    (void)state;
    uint8_t zip[FILE_BYTES];
    pl_zip_directory directory;
    pl_zip_entry entry;
    uint64_t offset;
    size_t at = 0;
    make_zip(zip);
    assert_int_equal(pl_zip_find_directory(zip, sizeof zip, sizeof zip, &directory, NULL), 0);
    const uint8_t *bytes = zip + directory.offset;
    assert_int_equal(pl_zip_next(&directory, bytes, &at, &entry, NULL), 1);
    assert_int_equal(entry.n_name, 5);
    assert_memory_equal(entry.name, "a.npy", 5);
    assert_int_equal(entry.unpacked_bytes, 3);
    assert_int_equal(pl_zip_data_offset(&entry, zip, sizeof zip, &offset, NULL), 0);
    assert_memory_equal(zip + offset, "xyz", 3);
    assert_int_equal(pl_zip_next(&directory, bytes, &at, &entry, NULL), 0);
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    uint8_t zip[FILE_BYTES];
    int n_entries;
    make_zip(zip);
    for (size_t n = 0; n < sizeof zip; n++) {
        uint8_t *part = malloc(n + 1); /* of its own, so that a sanitizer sees what is behind it */
        memcpy(part, zip, n);
        assert_int_equal(read_all(part, n, &n_entries, NULL), PL_ECORRUPT);
        free(part);
    }
}

static void every_changed_byte_stays_within_the_file(void **state)
{
    (void)state;
    uint8_t *zip = malloc(FILE_BYTES);
    int n_entries;
    for (size_t at = 0; at < FILE_BYTES; at++)
        for (int value = 0; value < 256; value++) {
            make_zip(zip);
            zip[at] = (uint8_t)value;
            int r = read_all(zip, FILE_BYTES, &n_entries, NULL);
            assert_true(r == 0 || r == PL_ECORRUPT || r == -ENOTSUP);
        }
    free(zip);
}

static void what_cannot_be_unpacked_is_passed_over(void **state)
{
    (void)state;
    uint8_t zip[FILE_BYTES];
    int n_entries;
    pl_error error = {0};
    make_zip(zip);
    zip[LOCAL + 3 + 8] = 1; /* encrypted */
    assert_int_equal(read_all(zip, sizeof zip, &n_entries, &error), -ENOTSUP);
    assert_string_equal(error.message, "'a.npy' is encrypted");
}

static void places_that_touch_are_apart_and_those_that_overlap_are_not(void **state)
{
    (void)state;
    const pl_zip_directory directory = {.offset = 1000};
    pl_error error = {0};
    pl_zip_place apart[] = {{500, 1000}, {0, 200}, {200, 500}};
    assert_int_equal(pl_zip_check_apart(&directory, apart, 3, &error), 0);
    assert_int_equal(pl_zip_check_apart(&directory, NULL, 0, &error), 0);
    pl_zip_place overlap[] = {{500, 1000}, {0, 201}, {200, 500}};
    assert_int_equal(pl_zip_check_apart(&directory, overlap, 3, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "bytes 0 and 200 "));
    pl_zip_place same[] = {{5, 40}, {5, 40}};
    assert_int_equal(pl_zip_check_apart(&directory, same, 2, &error), PL_ECORRUPT);
    pl_zip_place beyond[] = {{500, 1001}};
    assert_int_equal(pl_zip_check_apart(&directory, beyond, 1, &error), PL_ECORRUPT);
    const pl_zip_entry entry = {.local_offset = UINT64_MAX - 1, .packed_bytes = 7};
    beyond[0] = pl_zip_place_of(&entry);
    assert_int_equal(pl_zip_check_apart(&directory, beyond, 1, &error), PL_ECORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_that_touch_are_apart_and_those_that_overlap_are_not),
        cmocka_unit_test(the_directory_is_read),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(every_changed_byte_stays_within_the_file),
        cmocka_unit_test(what_cannot_be_unpacked_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
