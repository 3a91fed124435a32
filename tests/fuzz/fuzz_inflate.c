/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as gzip or zlib data: what is unpacked is what libdeflate makes of it, in pieces of any
 * length; what is refused, libdeflate or zlib refuses too. ISA-L is written in assembler, where
 * sanitizers see nothing: so in- and output end where a page does that may not be touched. The
 * first three bytes are packing and lengths of pieces. */
#include <libdeflate.h>
#include <sys/mman.h>
#include <zlib.h>

#include "codec/archive/inflate.h"
#include "fuzz_records.h"

enum { PACKED_MAX = 4096, UNPACKED_MAX = 1 << 16, PAGE = 4096, HEAD = 3 };

static uint8_t *in_end, *out_end; /* behind both nothing may be touched */
static void *room;
static struct libdeflate_decompressor *decompressor;

/* The end of so many bytes. */
static uint8_t *map_before_gap(size_t n)
{
    size_t pages = (n + PAGE - 1) / PAGE * PAGE;
    uint8_t *bytes =
        mmap(NULL, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(bytes != MAP_FAILED && mprotect(bytes + pages, PAGE, PROT_NONE) == 0);
    return bytes + pages;
}

static void prepare(void)
{
    if (room)
        return;
    in_end = map_before_gap(PACKED_MAX);
    out_end = map_before_gap(UNPACKED_MAX);
    room = map_before_gap(pl_inflate_bytes());
    room = (uint8_t *)room - (pl_inflate_bytes() + 63) / 64 * 64;
    decompressor = libdeflate_alloc_decompressor();
    REQUIRE(decompressor != NULL);
}

/* Whatever comes out, up to UNPACKED_MAX; *ret_end is 1 if there was more. */
static size_t unpack(pl_packing packing, const uint8_t *data, size_t n, size_t in_step,
                     size_t out_step, uint8_t *to, int *ret_end)
{
    pl_inflate *inflate = pl_inflate_begin(room, packing);
    pl_inflate_piece piece = {0};
    pl_error error = {0};
    size_t given = 0, done = 0;
    int r = 1;
    while (r > 0 && done < UNPACKED_MAX) {
        if (piece.n_in == 0) {
            size_t step = pl_min_u64(in_step, n - given);
            piece.in = memcpy(in_end - step, data + given, step);
            piece.n_in = step;
            given += step;
            piece.last = given == n;
        }
        size_t out = pl_min_u64(out_step, UNPACKED_MAX - done);
        piece.out = out_end - out;
        piece.n_out = out;
        r = pl_inflate_go_on(inflate, &piece, &error);
        memcpy(to + done, out_end - out, out - piece.n_out);
        done += out - piece.n_out;
    }
    check_outcome(r, &error);
    *ret_end = r;
    return done;
}

/* The same by libdeflate, which takes one member at a time: 0, or less than that. */
static int unpack_whole(pl_packing packing, const uint8_t *data, size_t n, uint8_t *to,
                        size_t *ret_n)
{
    size_t at = 0, done = 0, taken, given;
    do {
        enum libdeflate_result result =
            packing == PL_PACKING_GZIP
                ? libdeflate_gzip_decompress_ex(decompressor, data + at, n - at, to + done,
                                                UNPACKED_MAX - done, &taken, &given)
                : libdeflate_zlib_decompress_ex(decompressor, data + at, n - at, to + done,
                                                UNPACKED_MAX - done, &taken, &given);
        if (result != LIBDEFLATE_SUCCESS)
            return -1;
        at += taken;
        done += given;
    } while (packing == PL_PACKING_GZIP && at < n && data[at] == 0x1f);
    for (; at < n; at++)
        if (data[at] != 0)
            return -1;
    *ret_n = done;
    return 0;
}

/* zlib judges what only libdeflate takes: a head whose own checksum is wrong, and the codes 286 and
 * 287, which RFC 1951 gives no meaning. libdeflate has taken all of it, so it fits. */
static bool zlib_refuses(pl_packing packing, const uint8_t *data, size_t n)
{
    static uint8_t unpacked[UNPACKED_MAX];
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)data, .avail_in = (unsigned)n};
    REQUIRE(inflateInit2(&stream, packing == PL_PACKING_GZIP ? 16 + MAX_WBITS : MAX_WBITS) == Z_OK);
    int r;
    do {
        stream.next_out = unpacked;
        stream.avail_out = sizeof unpacked;
        r = inflate(&stream, Z_FINISH);
    } while (r == Z_STREAM_END && stream.avail_in > 0 && *stream.next_in == 0x1f &&
             inflateReset(&stream) == Z_OK);
    inflateEnd(&stream);
    return r != Z_STREAM_END;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static uint8_t ours[UNPACKED_MAX], theirs[UNPACKED_MAX];
    if (n < HEAD || n - HEAD > PACKED_MAX)
        return 0;
    prepare();
    pl_packing packing = data[0] % 2 ? PL_PACKING_ZLIB : PL_PACKING_GZIP;
    size_t in_step = data[1] % 2 ? 1u + data[1] / 2 : PACKED_MAX;
    size_t out_step = data[2] % 2 ? 1u + data[2] / 2 : 1 + 200 * (size_t)data[2];
    size_t n_theirs;
    int end;
    size_t n_ours = unpack(packing, data + HEAD, n - HEAD, in_step, out_step, ours, &end);
    int other = unpack_whole(packing, data + HEAD, n - HEAD, theirs, &n_theirs);
    /* libdeflate refuses codes that are not complete, also where nothing uses what is missing. */
    if (end == 0 && other == 0)
        REQUIRE(n_ours == n_theirs && memcmp(ours, theirs, n_ours) == 0);
    if (end < 0)
        REQUIRE(other < 0 || zlib_refuses(packing, data + HEAD, n - HEAD));
    return 0;
}

#ifndef PL_LIBFUZZER

static size_t make_packed(uint8_t *to)
{
    static uint8_t plain[3000];
    size_t n = (size_t)random() % (random() % 3 ? 60 : sizeof plain), n_packed = 0;
    static struct libdeflate_compressor *compressors[10];
    long level = random() % 10;
    if (!compressors[level])
        compressors[level] = libdeflate_alloc_compressor((int)level);
    struct libdeflate_compressor *compressor = compressors[level];
    for (size_t i = 0; i < n; i++)
        plain[i] =
            (uint8_t)(i > 8 && random() % 3 ? plain[i - 1 - (size_t)random() % 8] : random());
    to[0] = (uint8_t)random();
    to[1] = (uint8_t)random();
    to[2] = (uint8_t)random();
    if (to[0] % 2)
        n_packed = libdeflate_zlib_compress(compressor, plain, n, to + HEAD, PACKED_MAX);
    else
        for (long left = random() % 3; left >= 0; left--)
            n_packed += libdeflate_gzip_compress(compressor, plain, n, to + HEAD + n_packed,
                                                 PACKED_MAX - n_packed);
    return n_packed + HEAD;
}

static void no_bytes_harm_whoever_unpacks_them(void **state)
{
    (void)state;
    static uint8_t input[PACKED_MAX + HEAD];
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        size_t n = make_packed(input);
        if (random() % 4)
            n = HEAD + damage(input + HEAD, n - HEAD);
        try_input(input, n);
    }
    assert_true(n_tries < 1000 || n_taken > n_tries / 5);
    assert_true(n_tries < 1000 || n_refused > n_tries / 5);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 20000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_harm_whoever_unpacks_them),
    };
    return cmocka_run_group_tests_name("fuzz_inflate", tests, NULL, NULL);
}

#endif
