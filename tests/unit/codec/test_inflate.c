/* SPDX-License-Identifier: Apache-2.0 */
/* What libdeflate packs is unpacked, in pieces of any length; what is wrong is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "codec/archive/inflate.h"

enum { DATA_BYTES = 200000, PACKED_BYTES = 300000 };

static uint8_t data[DATA_BYTES], packed[PACKED_BYTES], unpacked[DATA_BYTES + 1];
static void *room;

/* Words that come again, and some that do not: all kinds of blocks. */
static int make_data(void **state)
{
    (void)state;
    srandom(1);
    for (size_t at = 0; at < DATA_BYTES;) {
        size_t n = (size_t)random() % 40 + 1, from = at ? (size_t)random() % at : 0;
        bool again = random() % 3 > 0 && at > 100;
        for (; n > 0 && at < DATA_BYTES; n--, at++)
            data[at] = again ? data[from++] : (uint8_t)random();
    }
    room = aligned_alloc(64, (pl_inflate_bytes() + 63) / 64 * 64);
    return room ? 0 : -1;
}

static int free_room(void **state)
{
    (void)state;
    free(room);
    return 0;
}

static size_t pack(pl_packing packing, int level, size_t n, uint8_t *to, size_t n_room)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
    size_t packed_bytes = packing == PL_PACKING_GZIP
                              ? libdeflate_gzip_compress(compressor, data, n, to, n_room)
                              : libdeflate_zlib_compress(compressor, data, n, to, n_room);
    libdeflate_free_compressor(compressor);
    assert_true(packed_bytes > 0);
    return packed_bytes;
}

/* All of it, in pieces of that many bytes. Says how many came out; *ret_end how it ended. */
static size_t unpack(pl_packing packing, const uint8_t *in, size_t n, size_t in_step,
                     size_t out_step, int *ret_end, pl_error *reterr)
{
    pl_inflate *inflate = pl_inflate_begin(room, packing);
    pl_inflate_piece piece = {.in = in, .out = unpacked};
    size_t given = 0;
    int r = 1;
    while (r > 0) {
        if (piece.n_in == 0) {
            piece.n_in = pl_min_u64(in_step, n - given);
            given += piece.n_in;
            piece.last = given == n;
        }
        size_t out = (size_t)(piece.out - unpacked);
        assert_true(out <= DATA_BYTES);
        piece.n_out = pl_min_u64(out_step, sizeof unpacked - out);
        r = pl_inflate_go_on(inflate, &piece, reterr);
    }
    *ret_end = r;
    return (size_t)(piece.out - unpacked);
}

static void assert_unpacked(pl_packing packing, size_t n_packed, size_t in_step, size_t out_step,
                            size_t n_wanted)
{
    int end;
    pl_error error = {0};
    memset(unpacked, 0, sizeof unpacked);
    size_t n = unpack(packing, packed, n_packed, in_step, out_step, &end, &error);
    if (end < 0)
        fail_msg("%s", error.message);
    assert_int_equal(n, n_wanted);
    assert_memory_equal(unpacked, data, n);
}

/* Small steps through a little, and large ones through much. */
static void unpack_in_steps(pl_packing packing, int level, size_t n, const size_t *steps)
{
    size_t n_packed = pack(packing, level, n, packed, sizeof packed);
    for (size_t i = 0; steps[i]; i++)
        for (size_t k = 0; steps[k]; k++)
            assert_unpacked(packing, n_packed, steps[i], steps[k], n);
}

static void data_is_unpacked_in_pieces_of_any_length(void **state)
{
    (void)state;
    static const size_t small[] = {1, 2, 3, 7, 64, 300, SIZE_MAX / 2, 0};
    static const size_t large[] = {300, 4096, 65536, SIZE_MAX / 2, 0};
    static const int levels[] = {0, 1, 6, 12};
    for (size_t l = 0; l < PL_COUNT_OF(levels); l++)
        for (pl_packing packing = PL_PACKING_GZIP; packing <= PL_PACKING_ZLIB; packing++) {
            unpack_in_steps(packing, levels[l], 3000, small);
            unpack_in_steps(packing, levels[l], DATA_BYTES, large);
        }
}

static void nothing_is_data_too(void **state)
{
    (void)state;
    for (pl_packing packing = PL_PACKING_GZIP; packing <= PL_PACKING_ZLIB; packing++)
        for (size_t step = 1; step < 40; step++)
            assert_unpacked(packing, pack(packing, 6, 0, packed, sizeof packed), step, 9, 0);
}

/* Of lengths that leave every number of bits in the library's hands at the end of one. */
static void members_follow_each_other_with_zeros_behind(void **state)
{
    (void)state;
    for (size_t n = 0; n < 40; n++) {
        size_t n_packed = pack(PL_PACKING_GZIP, 6, n, packed, sizeof packed);
        struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(9);
        for (size_t at = n; at < 400; at += 100) {
            size_t rest = pl_min_u64(100, 400 - at);
            n_packed += libdeflate_gzip_compress(compressor, data + at, rest, packed + n_packed,
                                                 sizeof packed - n_packed);
        }
        libdeflate_free_compressor(compressor);
        memset(packed + n_packed, 0, 512);
        for (size_t step = 1; step < 700; step += step < 30 ? 1 : 97) {
            assert_unpacked(PL_PACKING_GZIP, n_packed, step, 1000, 400);
            assert_unpacked(PL_PACKING_GZIP, n_packed + 512, step, 1000, 400);
        }
    }
}

static void assert_refused(pl_packing packing, size_t n, size_t step, const char *why)
{
    int end;
    pl_error error = {0};
    size_t n_out = unpack(packing, packed, n, step, 1000, &end, &error);
    assert_int_equal(end, PL_ECORRUPT);
    assert_int_equal(error.code, PL_ECORRUPT);
    if (!strstr(error.message, why))
        fail_msg("'%s' is not in '%s'", why, error.message);
    assert_memory_equal(unpacked, data, n_out);
}

/* A gzip file whose head has everything, and its bytes; `flags` say what of it. */
static size_t make_head(uint8_t flags)
{
    static const uint8_t fixed[] = {0x1f, 0x8b, 8, 0, 1, 2, 3, 4, 0, 3};
    size_t n_packed = pack(PL_PACKING_GZIP, 6, 100, packed, sizeof packed), n = sizeof fixed;
    uint8_t all[400];
    memcpy(all, fixed, n);
    all[3] = flags;
    if (flags & 4) { /* more, of 5 bytes */
        memcpy(all + n, "\5\0\0abcd", 7);
        n += 7;
    }
    if (flags & 8) {
        memcpy(all + n, "name.txt", 9);
        n += 9;
    }
    if (flags & 16) {
        memcpy(all + n, "why", 4);
        n += 4;
    }
    if (flags & 2) {
        uint32_t sum = libdeflate_crc32(0, all, n);
        all[n++] = (uint8_t)sum;
        all[n++] = (uint8_t)(sum >> 8);
    }
    memmove(packed + n, packed + sizeof fixed, n_packed - sizeof fixed);
    memcpy(packed, all, n);
    return n + n_packed - sizeof fixed;
}

static void heads_have_any_parts_in_any_pieces(void **state)
{
    (void)state;
    for (uint8_t flags = 0; flags < 32; flags++)
        for (size_t step = 1; step < 60; step++)
            assert_unpacked(PL_PACKING_GZIP, make_head(flags), step, 1000, 100);
    size_t n = make_head(4);
    packed[10] = 0; /* more, but of nothing */
    memmove(packed + 12, packed + 17, n - 17);
    assert_unpacked(PL_PACKING_GZIP, n - 5, 3, 1000, 100);
}

static void what_stands_behind_is_refused(void **state)
{
    (void)state;
    for (size_t step = 1; step < 300; step += 23) {
        size_t n = pack(PL_PACKING_GZIP, 6, 200, packed, sizeof packed);
        memcpy(packed + n, "junk", 4);
        assert_refused(PL_PACKING_GZIP, n + 4, step, "something else behind it");
        memcpy(packed + n, "\0\0\x1f\x8b", 4);
        assert_refused(PL_PACKING_GZIP, n + 4, step, "something else behind it");
        memcpy(packed + n, "\x1f\x8c\x08\0", 4);
        memset(packed + n + 4, 0, 20);
        assert_refused(PL_PACKING_GZIP, n + 24, step, "does not begin as such");
        memcpy(packed + n, "\x1f\x8b\x08", 3);
        assert_refused(PL_PACKING_GZIP, n + 3, step, "is cut off");
    }
    /* Of lengths that leave every number of bits in the library's hands. */
    for (size_t length = 0; length < 60; length++)
        for (size_t step = 1; step < 100; step += 9) {
            size_t n = pack(PL_PACKING_ZLIB, 6, length, packed, sizeof packed);
            memset(packed + n, 0, 9);
            assert_unpacked(PL_PACKING_ZLIB, n + 9, step, 1000, length);
            for (size_t k = 0; k < 9; k += 4) {
                packed[n + k] = 0x78;
                assert_refused(PL_PACKING_ZLIB, n + 9, step, "something else behind it");
                packed[n + k] = 0;
            }
        }
}

static void heads_that_are_none_are_refused(void **state)
{
    (void)state;
    size_t n = make_head(2);
    for (size_t at = 0; at < 4; at++) {
        packed[at] ^= 0x20;
        assert_refused(PL_PACKING_GZIP, n, 5,
                       at == 3 ? "has flags that there are not, at packed byte 3"
                               : "does not begin as such");
        packed[at] ^= 0x20;
    }
    packed[5] ^= 1;
    assert_refused(PL_PACKING_GZIP, n, 5, "its head's checksum does not match");
    n = pack(PL_PACKING_ZLIB, 6, 200, packed, sizeof packed);
    packed[1] ^= 1;
    assert_refused(PL_PACKING_ZLIB, n, 1, "does not begin as such");
    packed[1] = 0xbb; /* wants a dictionary */
    assert_refused(PL_PACKING_ZLIB, n, 1, "needs a dictionary");
    packed[0] = 0x77;
    assert_refused(PL_PACKING_ZLIB, n, 1, "does not begin as such");
    packed[0] = 0x88;
    assert_refused(PL_PACKING_ZLIB, n, 1, "does not begin as such");
}

static void data_cut_off_anywhere_is_told_and_gives_what_it_has(void **state)
{
    (void)state;
    for (pl_packing packing = PL_PACKING_GZIP; packing <= PL_PACKING_ZLIB; packing++)
        for (int level = 0; level <= 6; level += 6) {
            size_t n = pack(packing, level, 400, packed, sizeof packed);
            for (size_t cut = 0; cut < n; cut++)
                for (size_t step = 1; step < 1000; step *= 9)
                    assert_refused(packing, cut, step, "is cut off");
            int end;
            size_t n_out = unpack(packing, packed, n - 5, 100, 1000, &end, NULL);
            /* All but what the last byte would add; gzip has four more behind the data. */
            assert_in_range(n_out, packing == PL_PACKING_GZIP ? 400 : level ? 390 : 399, 400);
        }
}

static void a_flipped_bit_never_gives_other_data_unnoticed(void **state)
{
    (void)state;
    for (pl_packing packing = PL_PACKING_GZIP; packing <= PL_PACKING_ZLIB; packing++) {
        size_t n = pack(packing, 6, 300, packed, sizeof packed), n_unnoticed = 0;
        for (size_t bit = 0; bit < 8 * n; bit++) {
            int end;
            pl_error error = {0};
            packed[bit / 8] ^= (uint8_t)(1 << bit % 8);
            size_t n_out = unpack(packing, packed, n, 50, 77, &end, &error);
            packed[bit / 8] ^= (uint8_t)(1 << bit % 8);
            if (end < 0) {
                assert_non_null(strstr(error.message, "at packed byte "));
                continue;
            }
            assert_int_equal(n_out, 300);
            assert_memory_equal(unpacked, data, 300);
            n_unnoticed++;
        }
        /* Of gzip's head: its time, what packed it, on what system; flags of no meaning. */
        assert_true(n_unnoticed <= (packing == PL_PACKING_GZIP ? 8 * 10 : 8));
    }
}

static void a_failure_is_told_again(void **state)
{
    (void)state;
    pl_inflate *inflate = pl_inflate_begin(room, PL_PACKING_ZLIB);
    const uint8_t bad[] = "no such data";
    pl_inflate_piece piece = {bad, sizeof bad, unpacked, 100, true};
    assert_int_equal(pl_inflate_go_on(inflate, &piece, NULL), PL_ECORRUPT);
    assert_int_equal(pl_inflate_go_on(inflate, &piece, NULL), PL_ECORRUPT);
    inflate = pl_inflate_begin(room, PL_PACKING_ZLIB);
    size_t n = pack(PL_PACKING_ZLIB, 6, 50, packed, sizeof packed);
    piece = (pl_inflate_piece){packed, n, unpacked, 100, true};
    assert_int_equal(pl_inflate_go_on(inflate, &piece, NULL), 0);
    assert_memory_equal(unpacked, data, 50);
}

static void a_packing_is_known_by_its_beginning(void **state)
{
    (void)state;
    for (int level = 0; level < 12; level += 3)
        for (pl_packing packing = PL_PACKING_GZIP; packing <= PL_PACKING_ZLIB; packing++) {
            size_t n = pack(packing, level, 50, packed, sizeof packed);
            assert_int_equal(pl_packing_guess(packed, n), packing);
            assert_int_equal(pl_packing_guess(packed, 2), packing);
            assert_int_equal(pl_packing_guess(packed, 1), PL_PACKING_NONE);
        }
    assert_int_equal(pl_packing_guess("text", 4), PL_PACKING_NONE);
    assert_int_equal(pl_packing_guess("", 0), PL_PACKING_NONE);
    assert_int_equal(pl_packing_most_bytes(PL_PACKING_NONE, 7), 7);
    assert_int_equal(pl_packing_most_bytes(PL_PACKING_GZIP, UINT64_MAX / 2), UINT64_MAX);
}

static void no_data_unpacks_to_more_than_is_told(void **state)
{
    (void)state;
    static uint8_t kept[DATA_BYTES];
    memcpy(kept, data, sizeof kept);
    memset(data, 0, sizeof data);
    size_t n = pack(PL_PACKING_ZLIB, 12, DATA_BYTES, packed, sizeof packed);
    memcpy(data, kept, sizeof kept);
    assert_true(DATA_BYTES <= pl_packing_most_bytes(PL_PACKING_ZLIB, n));
    assert_true(DATA_BYTES > pl_packing_most_bytes(PL_PACKING_ZLIB, n) / 2); /* nor far from it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_is_unpacked_in_pieces_of_any_length),
        cmocka_unit_test(nothing_is_data_too),
        cmocka_unit_test(members_follow_each_other_with_zeros_behind),
        cmocka_unit_test(heads_have_any_parts_in_any_pieces),
        cmocka_unit_test(what_stands_behind_is_refused),
        cmocka_unit_test(heads_that_are_none_are_refused),
        cmocka_unit_test(data_cut_off_anywhere_is_told_and_gives_what_it_has),
        cmocka_unit_test(a_flipped_bit_never_gives_other_data_unnoticed),
        cmocka_unit_test(a_failure_is_told_again),
        cmocka_unit_test(a_packing_is_known_by_its_beginning),
        cmocka_unit_test(no_data_unpacks_to_more_than_is_told),
    };
    return cmocka_run_group_tests_name("inflate", tests, make_data, free_room);
}
