/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a zip archive: its directory and all entries lie within it, or it is refused with a
 * message. */
#include <errno.h>

#include "codec/archive/zip.h"
#include "fuzz.h"

enum { FILE_MAX = 1 << 17 };

static long n_entries, n_refused; /* 0 of either would make the test worthless */

static int read_local(const pl_zip_entry *entry, const uint8_t *file, size_t n, pl_error *error)
{
    uint64_t offset;
    if (entry->local_offset > n || n - entry->local_offset < PL_ZIP_LOCAL_BYTES)
        return 0; /* whoever reads it finds out */
    uint8_t *local = exact(file + entry->local_offset, PL_ZIP_LOCAL_BYTES);
    int r = pl_zip_data_offset(entry, local, n, &offset, error);
    free(local);
    if (r == 0)
        REQUIRE(offset <= n && entry->packed_bytes <= n - offset);
    return r;
}

static int read_directory(const pl_zip_directory *directory, const uint8_t *file, size_t n,
                          pl_error *error)
{
    pl_zip_entry entry;
    size_t at = 0;
    int r;
    REQUIRE(directory->offset <= n && directory->bytes <= n - directory->offset);
    char *bytes = exact(file + directory->offset, directory->bytes);
    do {
        size_t before = at;
        r = pl_zip_next(directory, bytes, &at, &entry, error);
        REQUIRE(at <= directory->bytes && (r == 0 || r == PL_ECORRUPT || at > before));
        if (r == 1) {
            n_entries++;
            REQUIRE(entry.name >= bytes && entry.name + entry.n_name <= bytes + directory->bytes);
            r = read_local(&entry, file, n, error) < 0 ? PL_ECORRUPT : 1;
        } else if (r == -ENOTSUP) {
            check_message(r, error);
        }
    } while (r == 1 || r == -ENOTSUP);
    free(bytes);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n > FILE_MAX)
        return 0;
    pl_zip_directory directory;
    pl_error error = {0};
    size_t n_tail = n < PL_ZIP_TAIL_BYTES ? n : PL_ZIP_TAIL_BYTES;
    uint8_t *tail = exact(data + n - n_tail, n_tail);
    int r = pl_zip_find_directory(tail, n_tail, n, &directory, &error);
    free(tail);
    if (r == 0)
        r = read_directory(&directory, data, n, &error);
    n_refused += r < 0;
    if (r < 0)
        check_message(r, &error);
    return 0;
}

#ifndef PL_LIBFUZZER

static void put(uint8_t *at, uint32_t value, int n)
{
    for (int i = 0; i < n; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* Up to three files that are stored, as zip writes them. Returns the archive's bytes. */
static size_t make_zip(uint8_t *zip)
{
    uint32_t offsets[3], n_files = 1 + (uint32_t)random() % 3, at = 0;
    memset(zip, 0, 1024);
    for (uint32_t i = 0; i < n_files; i++) {
        offsets[i] = at;
        memcpy(zip + at, "PK\x03\x04", 4);
        put(zip + at + 26, 5, 2);
        memcpy(zip + at + 30, "a.npyxyz", 8);
        at += 38;
    }
    uint32_t directory = at;
    for (uint32_t i = 0; i < n_files; i++) {
        memcpy(zip + at, "PK\x01\x02", 4);
        put(zip + at + 10, random() % 4 ? 0 : PL_ZIP_DEFLATED, 2);
        put(zip + at + 20, 3, 4);
        put(zip + at + 24, 3, 4);
        put(zip + at + 28, 5, 2);
        put(zip + at + 42, offsets[i], 4);
        memcpy(zip + at + 46, "a.npy", 5);
        at += 51;
    }
    memcpy(zip + at, "PK\x05\x06", 4);
    put(zip + at + 8, n_files, 2);
    put(zip + at + 10, n_files, 2);
    put(zip + at + 12, at - directory, 4);
    put(zip + at + 16, directory, 4);
    return at + 22;
}

static void no_bytes_harm_whoever_reads_them(void **state)
{
    (void)state;
    static uint8_t input[1024];
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        size_t n = make_zip(input);
        for (long left = random() % 4; left > 0; left--)
            input[(size_t)random() % n] =
                (uint8_t)(random() % 2 ? edges[random() % 6] : random() % 256);
        try_input(input, random() % 8 ? n : (size_t)random() % n);
    }
    assert_true(n_tries < 1000 || n_entries > n_tries / 2);
    assert_true(n_tries < 1000 || n_refused > n_tries / 10);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 100000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_harm_whoever_reads_them),
    };
    return cmocka_run_group_tests_name("fuzz_zip", tests, NULL, NULL);
}

#endif
