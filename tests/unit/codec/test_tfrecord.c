/* SPDX-License-Identifier: Apache-2.0 */
/* Records are found and checked; what is wrong with one is told, and what it costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/record/tfrecord.h"

static const char *const texts[] = {"foobar", "", "a longer one, of several words", "x"};
enum { N_TEXTS = 4, FILE_BYTES = 6 + 0 + 30 + 1 + 16 * N_TEXTS };

static void make_file(uint8_t file[FILE_BYTES])
{
    uint8_t *to = file;
    for (int i = 0; i < N_TEXTS; i++)
        to = pl_tfrecord_write(texts[i], strlen(texts[i]), to);
    assert_ptr_equal(to, file + FILE_BYTES);
}

/* Which of the records are read: a bit each; less what is corrupt. *ret_end is how it ended. */
static unsigned read_all(const uint8_t *file, size_t n, int *ret_end, pl_error *reterr)
{
    pl_tfrecord record = {0};
    unsigned good = 0;
    for (int i = 0;; i++) {
        *ret_end = pl_tfrecord_find(file, n, record.next, &record, reterr);
        if (*ret_end <= 0)
            return good;
        assert_true(i < N_TEXTS);
        if (pl_tfrecord_check(&record, reterr) < 0)
            continue;
        assert_int_equal(record.data_bytes, strlen(texts[i]));
        assert_memory_equal(record.data, texts[i], record.data_bytes);
        good |= 1u << i;
    }
}

/* From a block without a byte to spare. */
static unsigned read_exact(const uint8_t *file, size_t n, int *ret_end, pl_error *reterr)
{
    uint8_t *exact = malloc(n ? n : 1);
    assert_non_null(exact);
    memcpy(exact, file, n);
    unsigned good = read_all(exact, n, ret_end, reterr);
    free(exact);
    return good;
}

static void a_record_is_written_as_tensorflow_does(void **state)
{
    (void)state;
    static const char wanted[] = "\x06\x00\x00\x00\x00\x00\x00\x00\x73\x69\xd5\x37"
                                 "foobar\x96\x05\x81\x5b";
    uint8_t record[22];
    assert_ptr_equal(pl_tfrecord_write("foobar", 6, record), record + sizeof record);
    assert_memory_equal(record, wanted, sizeof record);
}

static void all_records_are_read_back(void **state)
{
    (void)state;
    uint8_t file[FILE_BYTES];
    int end;
    make_file(file);
    assert_int_equal(read_exact(file, FILE_BYTES, &end, NULL), 0xf);
    assert_int_equal(end, 0);
    assert_int_equal(read_exact(file, 0, &end, NULL), 0);
    assert_int_equal(end, 0);
}

static void a_file_cut_off_anywhere_gives_what_is_whole(void **state)
{
    (void)state;
    uint8_t file[FILE_BYTES];
    make_file(file);
    size_t ends[] = {22, 38, 84, 101};
    for (size_t n = 0; n < FILE_BYTES; n++) {
        int end;
        unsigned wanted = 0;
        bool between = n == 0;
        pl_error error = {0};
        for (int i = 0; i < N_TEXTS; i++) {
            wanted |= n >= ends[i] ? 1u << i : 0;
            between = between || n == ends[i];
        }
        assert_int_equal(read_exact(file, n, &end, &error), wanted);
        assert_int_equal(end, between ? 0 : PL_ECORRUPT);
        if (!between)
            assert_non_null(strstr(error.message, "cut off"));
    }
}

static void a_flipped_bit_costs_its_record_or_what_follows_a_length(void **state)
{
    (void)state;
    uint8_t file[FILE_BYTES];
    size_t begins[] = {0, 22, 38, 84};
    make_file(file);
    for (size_t at = 0; at < FILE_BYTES; at++)
        for (int bit = 0; bit < 8; bit++) {
            int hit = 0, end;
            pl_error error = {0};
            while (hit + 1 < N_TEXTS && at >= begins[hit + 1])
                hit++;
            bool in_head = at - begins[hit] < PL_TFRECORD_HEAD_BYTES;
            file[at] ^= (uint8_t)(1 << bit);
            unsigned good = read_exact(file, FILE_BYTES, &end, &error);
            file[at] ^= (uint8_t)(1 << bit);
            assert_int_equal(good, in_head ? (1u << hit) - 1 : 0xf & ~(1u << hit));
            assert_int_equal(end, in_head ? PL_ECORRUPT : 0);
            assert_int_equal(error.code, PL_ECORRUPT);
            char where[32];
            snprintf(where, sizeof where, "at byte %zu ", begins[hit]);
            assert_non_null(strstr(error.message, hit || !in_head ? where : "at byte 0"));
        }
}

static void a_length_that_lies_is_held_against_the_file(void **state)
{
    (void)state;
    uint8_t file[FILE_BYTES];
    static const uint64_t lengths[] = {
        FILE_BYTES - 15, UINT64_C(1) << 40, UINT64_C(1) << 62, (UINT64_C(1) << 62) + 1,
        INT64_MAX,       UINT64_MAX - 15,   UINT64_MAX};
    make_file(file);
    for (size_t i = 0; i < PL_COUNT_OF(lengths); i++) {
        int end;
        pl_error error = {0};
        pl_tfrecord_write_head(lengths[i], file);
        assert_int_equal(read_exact(file, FILE_BYTES, &end, &error), 0);
        assert_int_equal(end, PL_ECORRUPT);
        assert_non_null(
            strstr(error.message, lengths[i] > UINT64_C(1) << 62 ? "cannot be true" : "cut off"));
    }
}

static void messages_have_the_numbers(void **state)
{
    (void)state;
    uint8_t file[FILE_BYTES];
    pl_error error = {0};
    int end;
    make_file(file);
    (void)read_exact(file, 50, &end, &error);
    assert_string_equal(error.message, "it is cut off: the record at byte 38 takes 46 bytes, and "
                                       "12 are left");
    (void)read_exact(file, 40, &end, &error);
    assert_string_equal(error.message,
                        "it is cut off: the record at byte 38 takes 12 bytes for its "
                        "head alone, and 2 are left");
    (void)read_exact((const uint8_t *)"no such file at all", 19, &end, &error);
    assert_non_null(strstr(error.message, "it does not begin with a TFRecord"));
    file[12] ^= 1;
    (void)read_exact(file, 22, &end, &error);
    assert_non_null(strstr(error.message, "the data of the record at byte 0 (6 bytes) is corrupt: "
                                          "its checksum is 5b810596, not "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_written_as_tensorflow_does),
        cmocka_unit_test(all_records_are_read_back),
        cmocka_unit_test(a_file_cut_off_anywhere_gives_what_is_whole),
        cmocka_unit_test(a_flipped_bit_costs_its_record_or_what_follows_a_length),
        cmocka_unit_test(a_length_that_lies_is_held_against_the_file),
        cmocka_unit_test(messages_have_the_numbers),
    };
    return cmocka_run_group_tests_name("tfrecord", tests, NULL, NULL);
}
