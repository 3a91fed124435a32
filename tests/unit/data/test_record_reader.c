/* SPDX-License-Identifier: Apache-2.0 */
/* Files of records, read in windows of all sizes: what is whole is given, what is not is told, and
 * nothing is claimed that was not asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codec/record/tfrecord.h"
#include "data/reader/record_reader.h"
#include "faults.h"

/* ---- files ---- */

static const size_t lengths[] = {0, 1, 5, 100, 300, 40, 1000, 3};
enum { N_RECORDS = 8, ALL = 0xff, FILE_BYTES = 1449 + 16 * N_RECORDS, ROOM_BYTES = 1 << 16 };

static uint8_t data[4096], plain[ROOM_BYTES], packed[ROOM_BYTES];
static size_t begins[N_RECORDS + 1];
static pl_memory *memory;

static int make_all(void **state)
{
    (void)state;
    srandom(1);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(random() % 20);
    uint8_t *to = plain;
    for (int i = 0; i < N_RECORDS; i++) {
        begins[i] = (size_t)(to - plain);
        to = pl_tfrecord_write(data + i, lengths[i], to);
    }
    begins[N_RECORDS] = (size_t)(to - plain);
    return pl_memory_new(NULL, &memory, NULL);
}

static int free_all(void **state)
{
    (void)state;
    bool all = pl_memory_claimed_bytes(memory) == 0;
    pl_memory_unref(memory);
    return all ? 0 : -1;
}

static size_t pack(pl_packing packing, const uint8_t *bytes, size_t n)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(6);
    size_t n_packed = packing == PL_PACKING_GZIP
                          ? libdeflate_gzip_compress(compressor, bytes, n, packed, ROOM_BYTES)
                          : libdeflate_zlib_compress(compressor, bytes, n, packed, ROOM_BYTES);
    libdeflate_free_compressor(compressor);
    assert_true(n_packed > 0);
    return n_packed;
}

/* A file in memory, which has a path as long as it is open. */
typedef struct file {
    int fd;
    char path[64];
} file;

static file make_file(const void *bytes, size_t n)
{
    file made = {.fd = memfd_create("records", MFD_CLOEXEC)};
    assert_true(made.fd >= 0);
    assert_int_equal(write(made.fd, bytes, n), n);
    snprintf(made.path, sizeof made.path, "/proc/self/fd/%d", made.fd);
    return made;
}

static pl_record_reader *open_reader(const char *path, pl_packing packing, size_t window_bytes)
{
    pl_record_reader *reader;
    pl_error error = {0};
    if (pl_record_reader_new(path, packing, window_bytes, memory, &reader, &error) < 0)
        fail_msg("%s", error.message);
    return reader;
}

/* ---- reading ---- */

enum { READ_LARGE, PASS_LARGE };

/* The next record, a large one into a buffer of its own; PL_ECORRUPT. */
static int next_record(pl_record_reader *reader, int large, pl_error *reterr)
{
    pl_record record;
    int r = pl_record_reader_next(reader, &record, reterr);
    if (r <= 0)
        return r;
    uint64_t i = record.place.index;
    assert_true(i < N_RECORDS);
    assert_int_equal(record.place.offset, begins[i]);
    assert_int_equal(record.data_bytes, lengths[i]);
    if (record.data) {
        assert_memory_equal(record.data, data + i, lengths[i]);
        return 1;
    }
    if (large == PASS_LARGE)
        return 1;
    uint8_t *own = malloc(record.data_bytes); /* without a byte to spare */
    assert_non_null(own);
    r = pl_record_reader_read(reader, own, reterr);
    if (r == 0)
        assert_memory_equal(own, data + i, lengths[i]);
    free(own);
    return r < 0 ? r : 1;
}

/* Bits of the records that were good; *ret_end is 0, or why no more could be had; *reterr is the
 * first error. */
static unsigned read_on(pl_record_reader *reader, int large, int *ret_end, pl_error *reterr)
{
    unsigned good = 0;
    for (;;) {
        uint64_t index = pl_record_reader_tell(reader).index;
        pl_error error = {0};
        int r = next_record(reader, large, &error);
        if (r < 0 && reterr && reterr->code == 0)
            *reterr = error;
        *ret_end = r;
        if (r == 0 || (r < 0 && pl_record_reader_is_lost(reader))) {
            pl_error again = {0};
            assert_int_equal(next_record(reader, large, &again), r);
            assert_string_equal(again.message, error.message);
            return good;
        }
        assert_true(index < N_RECORDS);
        assert_int_equal(pl_record_reader_tell(reader).index, index + 1);
        good |= r > 0 ? 1u << index : 0;
    }
}

static unsigned read_file(const void *bytes, size_t n, pl_packing packing, size_t window_bytes,
                          int *ret_end, pl_error *reterr)
{
    file made = make_file(bytes, n);
    pl_record_reader *reader = open_reader(made.path, packing, window_bytes);
    unsigned good = read_on(reader, READ_LARGE, ret_end, reterr);
    pl_record_reader_free(reader);
    close(made.fd);
    return good;
}

static const size_t windows[] = {16, 17, 28, 64, 131, 500, 4096, 0, PL_MIB};

static void all_records_are_read_in_any_window_and_packing(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(windows); i++)
        for (pl_packing packing = PL_PACKING_NONE; packing <= PL_PACKING_ZLIB; packing++)
            for (int guessed = 0; guessed < 2; guessed++) {
                bool is_packed = packing != PL_PACKING_NONE;
                size_t n = is_packed ? pack(packing, plain, FILE_BYTES) : FILE_BYTES;
                file made = make_file(is_packed ? packed : plain, n);
                pl_record_reader *reader =
                    open_reader(made.path, guessed ? PL_PACKING_AUTO : packing, windows[i]);
                int end;
                assert_int_equal(pl_record_reader_packing(reader), packing);
                assert_int_equal(read_on(reader, READ_LARGE, &end, NULL), ALL);
                assert_int_equal(end, 0);
                assert_int_equal(pl_record_reader_tell(reader).offset, FILE_BYTES);
                assert_int_equal(pl_record_reader_seek(reader, (pl_record_place){0}, NULL), 0);
                assert_int_equal(read_on(reader, PASS_LARGE, &end, NULL), ALL);
                assert_int_equal(end, 0);
                pl_record_reader_free(reader);
                close(made.fd);
            }
}

/* A record of 35615 bytes begins as gzip does, one of 40056 as zlib. */
static void a_length_that_looks_packed_is_none(void **state)
{
    (void)state;
    static const size_t looks[] = {0x8b1f, 0x9c78};
    static uint8_t file_bytes[ROOM_BYTES];
    for (size_t i = 0; i < PL_COUNT_OF(looks); i++) {
        size_t n = (size_t)(pl_tfrecord_write(plain, looks[i], file_bytes) - file_bytes);
        assert_true(pl_packing_guess(file_bytes, n) != PL_PACKING_NONE);
        file made = make_file(file_bytes, n);
        pl_record_reader *reader = open_reader(made.path, PL_PACKING_AUTO, 0);
        pl_record record;
        assert_int_equal(pl_record_reader_next(reader, &record, NULL), 1);
        assert_int_equal(record.data_bytes, looks[i]);
        pl_record_reader_free(reader);
        close(made.fd);
    }
}

static void an_empty_file_has_no_records(void **state)
{
    (void)state;
    int end;
    pl_error error = {0};
    assert_int_equal(read_file("", 0, PL_PACKING_AUTO, 0, &end, NULL), 0);
    assert_int_equal(end, 0);
    size_t n = pack(PL_PACKING_GZIP, plain, 0);
    assert_int_equal(read_file(packed, n, PL_PACKING_AUTO, 0, &end, NULL), 0);
    assert_int_equal(end, 0);
    assert_int_equal(read_file("", 0, PL_PACKING_GZIP, 0, &end, &error), 0);
    assert_int_equal(end, PL_ECORRUPT);
    assert_non_null(strstr(error.message, "cut off"));
}

/* ---- what is wrong ---- */

static void a_file_cut_off_anywhere_gives_what_is_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(windows); i += 3)
        for (size_t n = 0, whole = 0; n < FILE_BYTES; n++) {
            int end;
            pl_error error = {0};
            while (n >= begins[whole + 1])
                whole++;
            unsigned good = read_file(plain, n, PL_PACKING_NONE, windows[i], &end, &error);
            assert_int_equal(good, (1u << whole) - 1);
            assert_int_equal(end, n == begins[whole] ? 0 : PL_ECORRUPT);
            char where[64];
            snprintf(where, sizeof where, "record %zu of '/proc/self/fd/", whole);
            if (end < 0 && (!strstr(error.message, where) || !strstr(error.message, "cut off")))
                fail_msg("cut at %zu: %s", n, error.message);
        }
}

static void a_packed_file_cut_off_anywhere_is_told(void **state)
{
    (void)state;
    for (pl_packing packing = PL_PACKING_GZIP; packing <= PL_PACKING_ZLIB; packing++) {
        size_t n_packed = pack(packing, plain, FILE_BYTES);
        unsigned before = 0;
        for (size_t n = 0; n < n_packed; n++) {
            int end;
            pl_error error = {0};
            unsigned good = read_file(packed, n, packing, 500, &end, &error);
            assert_int_equal(end, PL_ECORRUPT);
            assert_non_null(strstr(error.message, "is cut off, at packed byte"));
            assert_int_equal(good & before, before); /* more of it gives no less */
            before = good;
        }
        assert_int_equal(before, ALL); /* but for the sum of all */
    }
}

static void a_flipped_bit_costs_its_record_or_what_follows_a_length(void **state)
{
    (void)state;
    for (size_t w = 0; w < PL_COUNT_OF(windows); w += 4)
        for (size_t at = 0, hit = 0; at < FILE_BYTES; at++) {
            int end;
            pl_error error = {0};
            while (at >= begins[hit + 1])
                hit++;
            bool in_head = at - begins[hit] < PL_TFRECORD_HEAD_BYTES;
            plain[at] ^= (uint8_t)(1 << at % 8);
            unsigned good = read_file(plain, FILE_BYTES, PL_PACKING_NONE, windows[w], &end, &error);
            plain[at] ^= (uint8_t)(1 << at % 8);
            assert_int_equal(good, in_head ? (1u << hit) - 1 : ALL & ~(1u << hit));
            assert_int_equal(end, in_head ? PL_ECORRUPT : 0);
            char where[64];
            snprintf(where, sizeof where, "record %zu of '/proc/self/fd/", hit);
            if (error.code != PL_ECORRUPT || !strstr(error.message, where))
                fail_msg("flipped at %zu: %s", at, error.message);
        }
}

static void a_length_that_lies_is_never_told_as_a_record(void **state)
{
    (void)state;
    static const uint64_t lies[] = {FILE_BYTES, PL_MIB, UINT64_C(1) << 40, UINT64_C(1) << 62,
                                    UINT64_MAX};
    for (size_t i = 0; i < PL_COUNT_OF(lies); i++)
        for (pl_packing packing = PL_PACKING_NONE; packing <= PL_PACKING_GZIP; packing++) {
            static uint8_t lying[FILE_BYTES];
            memcpy(lying, plain, FILE_BYTES);
            pl_tfrecord_write_head(lies[i], lying + begins[3]);
            bool is_packed = packing != PL_PACKING_NONE;
            size_t n = is_packed ? pack(packing, lying, FILE_BYTES) : FILE_BYTES;
            file made = make_file(is_packed ? packed : lying, n);
            pl_record_reader *reader = open_reader(made.path, packing, 200);
            uint64_t n_skipped;
            pl_record record;
            assert_int_equal(pl_record_reader_skip(reader, 3, &n_skipped, NULL), 0);
            int r = pl_record_reader_next(reader, &record, NULL);
            /* Of packed data only so much is known: it cannot become more than this. */
            bool could_be = is_packed && lies[i] < PL_MIB / 2;
            assert_int_equal(r, could_be ? 1 : PL_ECORRUPT);
            if (r > 0) {
                uint8_t *own = malloc(record.data_bytes);
                assert_non_null(own);
                assert_int_equal(pl_record_reader_read(reader, own, NULL), PL_ECORRUPT);
                free(own);
            }
            assert_true(pl_record_reader_is_lost(reader));
            pl_record_reader_free(reader);
            close(made.fd);
        }
}

/* ---- places ---- */

static void any_number_of_records_is_skipped(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(windows); i++)
        for (pl_packing packing = PL_PACKING_NONE; packing <= PL_PACKING_GZIP; packing++)
            for (unsigned n = 0; n <= N_RECORDS + 1; n++) {
                bool is_packed = packing != PL_PACKING_NONE;
                size_t n_bytes = is_packed ? pack(packing, plain, FILE_BYTES) : FILE_BYTES;
                file made = make_file(is_packed ? packed : plain, n_bytes);
                pl_record_reader *reader = open_reader(made.path, packing, windows[i]);
                uint64_t n_skipped;
                int end;
                if (n > 2 && next_record(reader, PASS_LARGE, NULL) != 1)
                    fail_msg("the first record cannot be read");
                unsigned wanted = n > 2 ? n - 1 : n;
                assert_int_equal(pl_record_reader_skip(reader, wanted, &n_skipped, NULL), 0);
                assert_int_equal(n_skipped, n > N_RECORDS ? wanted - 1 : wanted);
                unsigned good = read_on(reader, READ_LARGE, &end, NULL);
                assert_int_equal(good, ALL & ~((1u << n) - 1));
                assert_int_equal(end, 0);
                pl_record_reader_free(reader);
                close(made.fd);
            }
}

static void data_that_is_skipped_is_not_looked_at(void **state)
{
    (void)state;
    plain[begins[4] + 50] ^= 1;
    file made = make_file(plain, FILE_BYTES);
    plain[begins[4] + 50] ^= 1;
    pl_record_reader *reader = open_reader(made.path, PL_PACKING_NONE, 64);
    uint64_t n_skipped;
    int end;
    assert_int_equal(pl_record_reader_skip(reader, 6, &n_skipped, NULL), 0);
    assert_int_equal(read_on(reader, READ_LARGE, &end, NULL), 0xc0);
    pl_record_reader_free(reader);
    close(made.fd);
}

static void a_reader_goes_on_from_any_place_that_was_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(windows); i += 2)
        for (pl_packing packing = PL_PACKING_NONE; packing <= PL_PACKING_ZLIB; packing++) {
            bool is_packed = packing != PL_PACKING_NONE;
            size_t n = is_packed ? pack(packing, plain, FILE_BYTES) : FILE_BYTES;
            file made = make_file(is_packed ? packed : plain, n);
            pl_record_place places[N_RECORDS + 1];
            pl_record_reader *reader = open_reader(made.path, packing, windows[i]);
            int end;
            for (int k = 0; k <= N_RECORDS; k++) {
                places[k] = pl_record_reader_tell(reader);
                assert_int_equal(next_record(reader, k % 2, NULL), k < N_RECORDS);
            }
            for (int k = N_RECORDS; k >= 0; k--) {
                assert_int_equal(pl_record_reader_seek(reader, places[k], NULL), 0);
                unsigned good = read_on(reader, READ_LARGE, &end, NULL);
                assert_int_equal(good, ALL & ~((1u << k) - 1));
            }
            pl_record_reader_free(reader);
            reader = open_reader(made.path, packing, windows[i]); /* as after a restart */
            assert_int_equal(pl_record_reader_seek(reader, places[5], NULL), 0);
            assert_int_equal(read_on(reader, READ_LARGE, &end, NULL), 0xe0);
            pl_record_reader_free(reader);
            close(made.fd);
        }
}

static void a_place_behind_the_end_is_refused_and_another_helps(void **state)
{
    (void)state;
    for (pl_packing packing = PL_PACKING_NONE; packing <= PL_PACKING_GZIP; packing++) {
        bool is_packed = packing != PL_PACKING_NONE;
        size_t n = is_packed ? pack(packing, plain, FILE_BYTES) : FILE_BYTES;
        file made = make_file(is_packed ? packed : plain, n);
        pl_record_reader *reader = open_reader(made.path, packing, 0);
        pl_error error = {0};
        int end;
        const pl_record_place behind = {FILE_BYTES + 1, 9}, within = {3, 0};
        assert_int_equal(pl_record_reader_seek(reader, behind, &error), PL_ECORRUPT);
        assert_non_null(strstr(error.message, "it ends at byte 1577"));
        assert_int_equal(next_record(reader, 0, &error), PL_ECORRUPT);
        assert_int_equal(pl_record_reader_seek(reader, within, NULL), 0);
        assert_int_equal(next_record(reader, 0, &error), PL_ECORRUPT);
        assert_true(pl_record_reader_is_lost(reader));
        assert_int_equal(pl_record_reader_seek(reader, (pl_record_place){0}, NULL), 0);
        assert_int_equal(read_on(reader, READ_LARGE, &end, NULL), ALL);
        pl_record_reader_free(reader);
        close(made.fd);
    }
}

/* ---- the system ---- */

static void short_and_interrupted_reads_go_on(void **state)
{
    (void)state;
    for (size_t most = 1; most < 100; most += 31) {
        int end;
        fault_io_reset();
        fault_io.most_bytes = most;
        fault_io.n_interruptions = 3;
        assert_int_equal(read_file(plain, FILE_BYTES, PL_PACKING_NONE, 100, &end, NULL), ALL);
        size_t n = pack(PL_PACKING_GZIP, plain, FILE_BYTES);
        fault_io.n_interruptions = 3;
        assert_int_equal(read_file(packed, n, PL_PACKING_AUTO, 100, &end, NULL), ALL);
    }
    fault_io_reset();
}

static void a_read_error_is_told_at_its_place_and_can_be_tried_again(void **state)
{
    (void)state;
    file made = make_file(plain, FILE_BYTES);
    pl_record_reader *reader = open_reader(made.path, PL_PACKING_NONE, 200);
    pl_error error = {0};
    int end;
    fault_io_reset();
    fault_io.read_error = EIO;
    fault_io.n_before = 1;
    assert_int_equal(read_on(reader, READ_LARGE, &end, &error), 0x0f);
    assert_int_equal(end, -EIO);
    assert_non_null(strstr(error.message, "'/proc/self/fd/"));
    assert_non_null(strstr(error.message, ", byte 200: cannot read it: Input/output error"));
    fault_io_reset();
    pl_record_place place = {begins[4], 4};
    assert_int_equal(pl_record_reader_seek(reader, place, NULL), 0);
    assert_int_equal(read_on(reader, READ_LARGE, &end, NULL), 0xf0);
    pl_record_reader_free(reader);
    close(made.fd);
}

static void a_file_that_shrinks_while_it_is_read_is_cut_off(void **state)
{
    (void)state;
    file made = make_file(plain, FILE_BYTES);
    pl_record_reader *reader = open_reader(made.path, PL_PACKING_NONE, 200);
    pl_record record;
    uint8_t own[1000];
    uint64_t n_skipped;
    pl_error error = {0};
    assert_int_equal(pl_record_reader_skip(reader, 6, &n_skipped, NULL), 0);
    assert_int_equal(pl_record_reader_next(reader, &record, NULL), 1);
    assert_null(record.data);
    assert_int_equal(ftruncate(made.fd, (off_t)begins[6] + 400), 0);
    assert_int_equal(pl_record_reader_read(reader, own, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "record 6 of '"));
    assert_non_null(strstr(error.message, "cut off"));
    pl_record_reader_free(reader);
    close(made.fd);
}

static void what_is_no_file_of_records_is_refused(void **state)
{
    (void)state;
    pl_record_reader *reader = NULL;
    pl_error error = {0};
    int end;
    const char *missing = "/no/such/file";
    assert_int_equal(pl_record_reader_new(missing, PL_PACKING_AUTO, 0, memory, &reader, &error),
                     -ENOENT);
    assert_non_null(strstr(error.message, "cannot read '/no/such/file': No such file"));
    assert_int_equal(pl_record_reader_new("/dev/null", PL_PACKING_AUTO, 0, memory, &reader, &error),
                     -EINVAL);
    assert_non_null(strstr(error.message, "not a regular file"));
    assert_int_equal(
        pl_record_reader_new("/dev/null", PL_PACKING_AUTO, 15, memory, &reader, &error), -EINVAL);
    assert_int_equal(
        pl_record_reader_new("/dev/null", PL_PACKING_AUTO, PL_MIB + 1, memory, &reader, &error),
        -EINVAL);
    assert_null(reader);
    error.code = 0;
    assert_int_equal(read_file("{\"key\": 1, \"text\": 2}", 21, PL_PACKING_AUTO, 0, &end, &error),
                     0);
    assert_int_equal(end, PL_ECORRUPT);
    assert_non_null(strstr(error.message, "does not begin with a TFRecord"));
    error.code = 0;
    read_file(plain, FILE_BYTES, PL_PACKING_ZLIB, 0, &end, &error);
    assert_non_null(strstr(error.message, "its zlib data does not begin as such"));
    struct {
        pl_record_reader *reader;
        file file;
    } open = {.file = make_file(plain, FILE_BYTES)};
    open.reader = open_reader(open.file.path, PL_PACKING_NONE, 0);
    assert_int_equal(pl_record_reader_read(open.reader, data, NULL), -EINVAL);
    pl_record_reader_free(open.reader);
    close(open.file.fd);
    pl_record_reader_free(NULL);
}

static void a_reader_costs_what_it_says_and_not_a_byte_is_kept(void **state)
{
    (void)state;
    for (pl_packing packing = PL_PACKING_NONE; packing <= PL_PACKING_ZLIB; packing++) {
        bool is_packed = packing != PL_PACKING_NONE;
        size_t n = is_packed ? pack(packing, plain, FILE_BYTES) : FILE_BYTES;
        file made = make_file(is_packed ? packed : plain, n);
        uint64_t before = pl_memory_claimed_bytes(memory);
        pl_record_reader *reader = open_reader(made.path, packing, 0);
        assert_int_equal(pl_memory_claimed_bytes(memory) - before,
                         pl_record_reader_cost_bytes(packing, 0));
        pl_record_reader_free(reader);
        assert_int_equal(pl_memory_claimed_bytes(memory), before);
        pl_memory *small;
        pl_error error = {0};
        const pl_memory_options options = {.cap_bytes =
                                               pl_record_reader_cost_bytes(packing, 0) - 1};
        assert_int_equal(pl_memory_new(&options, &small, NULL), 0);
        assert_int_equal(pl_record_reader_new(made.path, packing, 0, small, &reader, &error),
                         PL_EBUDGET);
        assert_non_null(strstr(error.message, made.path));
        assert_int_equal(pl_memory_claimed_bytes(small), 0);
        pl_memory_unref(small);
        close(made.fd);
    }
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    size_t n = pack(PL_PACKING_GZIP, plain, FILE_BYTES);
    file made = make_file(packed, n);
    int n_failed = 0;
    for (int number = 1;; number++) {
        pl_record_reader *reader = NULL;
        long live = fault_live;
        fault_alloc_begin(number);
        int r = pl_record_reader_new(made.path, PL_PACKING_AUTO, 0, memory, &reader, NULL);
        bool hit = fault_alloc_end();
        pl_record_reader_free(reader);
        assert_int_equal(fault_live, live);
        if (!hit) {
            assert_int_equal(r, 0);
            break;
        }
        n_failed += r < 0;
    }
    assert_true(n_failed >= 2);
    close(made.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_records_are_read_in_any_window_and_packing),
        cmocka_unit_test(a_length_that_looks_packed_is_none),
        cmocka_unit_test(an_empty_file_has_no_records),
        cmocka_unit_test(a_file_cut_off_anywhere_gives_what_is_whole),
        cmocka_unit_test(a_packed_file_cut_off_anywhere_is_told),
        cmocka_unit_test(a_flipped_bit_costs_its_record_or_what_follows_a_length),
        cmocka_unit_test(a_length_that_lies_is_never_told_as_a_record),
        cmocka_unit_test(any_number_of_records_is_skipped),
        cmocka_unit_test(data_that_is_skipped_is_not_looked_at),
        cmocka_unit_test(a_reader_goes_on_from_any_place_that_was_told),
        cmocka_unit_test(a_place_behind_the_end_is_refused_and_another_helps),
        cmocka_unit_test(short_and_interrupted_reads_go_on),
        cmocka_unit_test(a_read_error_is_told_at_its_place_and_can_be_tried_again),
        cmocka_unit_test(a_file_that_shrinks_while_it_is_read_is_cut_off),
        cmocka_unit_test(what_is_no_file_of_records_is_refused),
        cmocka_unit_test(a_reader_costs_what_it_says_and_not_a_byte_is_kept),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("record_reader", tests, make_all, free_all);
}
