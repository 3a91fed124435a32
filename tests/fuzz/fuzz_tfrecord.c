/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of records: the reader, in windows of several sizes, gives the same as the
 * parser over the whole, and no byte behind the end is touched. Their sums would refuse nearly all:
 * they are set right first, unless the first byte is odd. */
#include <sys/mman.h>
#include <unistd.h>

#include "codec/record/crc32c.h"
#include "codec/record/tfrecord.h"
#include "data/reader/record_reader.h"
#include "fuzz_records.h"

enum { FILE_BYTES_MAX = 4096, RECORDS_MAX = FILE_BYTES_MAX / 16 + 1 };

/* What a file gives: the sum of each record's data, or that it is bad; and how it ends. */
typedef struct outcome {
    uint64_t offsets[RECORDS_MAX];
    uint32_t sums[RECORDS_MAX];
    bool good[RECORDS_MAX];
    size_t n;
    int end;
} outcome;

/* Sets every sum right that can be reached. */
static void set_sums(uint8_t *file, size_t n)
{
    for (size_t at = 0; n - at >= PL_TFRECORD_HEAD_BYTES;) {
        uint64_t length;
        memcpy(&length, file + at, sizeof length);
        pl_tfrecord_write_head(length, file + at);
        if (length > n - at || length + PL_TFRECORD_FRAME_BYTES > n - at)
            return;
        uint8_t *data = file + at + PL_TFRECORD_HEAD_BYTES;
        if (data[length] % 4) /* some stay wrong */
            pl_tfrecord_write_foot(pl_crc32c(0, data, length), data + length);
        at += length + PL_TFRECORD_FRAME_BYTES;
    }
}

static void parse(const uint8_t *file, size_t n, outcome *ret)
{
    pl_tfrecord record = {0};
    pl_error error = {0};
    ret->n = 0;
    while ((ret->end = pl_tfrecord_find(file, n, record.next, &record, &error)) > 0) {
        REQUIRE(ret->n < RECORDS_MAX);
        REQUIRE(record.data + record.data_bytes + PL_TFRECORD_FOOT_BYTES <= file + n);
        int r = pl_tfrecord_check(&record, &error);
        check_outcome(r, &error);
        ret->offsets[ret->n] = record.offset;
        ret->sums[ret->n] = pl_crc32c(0, record.data, record.data_bytes);
        ret->good[ret->n++] = r == 0;
    }
    check_outcome(ret->end, &error);
}

/* The next record, which must be the one that was parsed; its result. */
static int read_one(pl_record_reader *reader, const outcome *wanted, pl_error *error)
{
    static uint8_t own[FILE_BYTES_MAX];
    pl_record record;
    int r = pl_record_reader_next(reader, &record, error);
    if (r <= 0)
        return r;
    REQUIRE(record.place.index < wanted->n);
    REQUIRE(record.place.offset == wanted->offsets[record.place.index]);
    REQUIRE(record.data_bytes <= sizeof own);
    if (!record.data && (r = pl_record_reader_read(reader, own, error)) < 0)
        return r;
    const uint8_t *data = record.data ? record.data : own;
    REQUIRE(pl_crc32c(0, data, record.data_bytes) == wanted->sums[record.place.index]);
    return 1;
}

static void read_all(const char *path, size_t window_bytes, pl_memory *memory,
                     const outcome *wanted)
{
    pl_record_reader *reader;
    REQUIRE(pl_record_reader_new(path, PL_PACKING_NONE, window_bytes, memory, &reader, NULL) == 0);
    int r = 1;
    for (size_t i = 0; r != 0 && !pl_record_reader_is_lost(reader); i++) {
        pl_error error = {0};
        r = read_one(reader, wanted, &error);
        check_outcome(r, &error);
        bool more = i < wanted->n;
        REQUIRE(r == (!more ? wanted->end : wanted->good[i] ? 1 : PL_ECORRUPT));
    }
    pl_record_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const size_t windows[] = {16, 40, 300, PL_RECORD_WINDOW_BYTES};
    static pl_memory *memory;
    static int fd = -1;
    static outcome wanted;
    char path[64];
    if (n < 1 || n - 1 > FILE_BYTES_MAX)
        return 0;
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        REQUIRE(fd >= 0 && pl_memory_new(NULL, &memory, NULL) == 0);
    }
    uint8_t *file = malloc(n); /* one more than its bytes, for those that have none */
    REQUIRE(file != NULL);
    memcpy(file, data + 1, n - 1);
    file = realloc(file, n > 1 ? n - 1 : 1);
    if (data[0] % 2 == 0)
        set_sums(file, n - 1);
    parse(file, n - 1, &wanted);
    REQUIRE(pwrite(fd, file, n - 1, 0) == (ssize_t)n - 1 && ftruncate(fd, (off_t)n - 1) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_all(path, windows[data[0] / 2 % 4], memory, &wanted);
    free(file);
    return 0;
}

#ifndef PL_LIBFUZZER

static size_t make_records(uint8_t *file)
{
    static const uint8_t zeros[400];
    uint8_t *to = file;
    for (long left = random() % 6; left >= 0; left--)
        to = pl_tfrecord_write(zeros, (uint64_t)(random() % (random() % 4 ? 40 : 400)), to);
    return (size_t)(to - file);
}

static void no_bytes_harm_whoever_reads_them(void **state)
{
    (void)state;
    static uint8_t input[FILE_BYTES_MAX + 1];
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        size_t n = make_records(input + 1);
        if (random() % 4)
            n = damage(input + 1, n);
        if (random() % 4 == 0 && n >= 8) /* a length of any size */
            input[1 + random() % 8] = (uint8_t)random();
        input[0] = (uint8_t)random();
        try_input(input, n + 1);
    }
    assert_true(n_tries < 1000 || n_taken > n_tries);
    assert_true(n_tries < 1000 || n_refused > n_tries / 4);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 20000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_harm_whoever_reads_them),
    };
    return cmocka_run_group_tests_name("fuzz_tfrecord", tests, NULL, NULL);
}

#endif
