/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a PNG. Its checksums would refuse nearly all: they are set right first, unless the
 * first byte is odd; how many channels it is decoded to is in the byte's next bits. */
#include "fuzz_images.h"

#include "codec/image/png_chunks.h"

static uint32_t sum_of(const uint8_t *bytes, size_t n)
{
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        sum ^= bytes[i];
        for (int k = 0; k < 8; k++)
            sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
    }
    return ~sum;
}

static void set_sums(uint8_t *file, size_t n)
{
    pl_png_chunk chunk = {0};
    while (pl_png_next(file, n, &chunk)) {
        uint32_t sum = sum_of(chunk.at + 4, (size_t)chunk.n + 4);
        uint8_t *to = file + (pl_png_data_of(chunk) + chunk.n - file);
        for (int i = 0; i < 4; i++)
            to[i] = (uint8_t)(sum >> (24 - 8 * i));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2 || n > 60000)
        return 0;
    uint8_t *file = malloc(n - 1);
    REQUIRE(file != NULL);
    memcpy(file, data + 1, n - 1);
    if (data[0] % 2 == 0)
        set_sums(file, n - 1);
    try_image(file, n - 1, data[0] / 2 % 5);
    free(file);
    return 0;
}

#ifndef PL_LIBFUZZER

#include "unit/small_images.h"

/* The header of a small picture of any kind, and a palette. Returns their bytes. */
static size_t make_head(uint8_t *file)
{
    static const uint8_t head[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0_\0\0\0_";
    static const uint8_t palette[] = "\0\0\0\6PLTEabcdef____";
    size_t n = sizeof head - 1;
    memcpy(file, head, n);
    file[n - 5] = (uint8_t)(1 + random() % 9); /* width */
    file[n - 1] = (uint8_t)(1 + random() % 9);
    file[n++] = (uint8_t)(1 << random() % 5);
    file[n++] = (uint8_t)(random() % 7);
    memset(file + n, 0, 7); /* compression, filters, passes, checksum */
    file[n + 2] = (uint8_t)(random() % 2);
    n += 7;
    memcpy(file + n, palette, sizeof palette - 1);
    return n + sizeof palette - 1;
}

/* Data that is not compressed, and the end. Returns the bytes of all. */
static size_t add_data(uint8_t *file, size_t n, size_t n_data)
{
    uint8_t *to = file + n;
    memcpy(to, (uint8_t[]){0, 0, (uint8_t)((n_data + 11) >> 8), (uint8_t)(n_data + 11)}, 4);
    memcpy(to + 4, (uint8_t[]){'I', 'D', 'A', 'T', 0x78, 1, 1}, 7);
    memcpy(to + 11, (uint8_t[]){(uint8_t)n_data, (uint8_t)(n_data >> 8)}, 2);
    memcpy(to + 13, (uint8_t[]){(uint8_t)~n_data, (uint8_t)(~n_data >> 8)}, 2);
    uint32_t a = 1, b = 0; /* Adler's sum */
    to += 15;
    for (size_t i = 0; i < n_data; i++, to++) {
        *to = (uint8_t)(random() % 20 ? random() % 5 : random()); /* most are filters, too */
        a = (a + *to) % 65521;
        b = (b + a) % 65521;
    }
    memcpy(to, (uint8_t[]){(uint8_t)(b >> 8), (uint8_t)b, (uint8_t)(a >> 8), (uint8_t)a}, 4);
    memcpy(to + 8, "\0\0\0\0IEND____", 12);
    return (size_t)(to + 20 - file);
}

static size_t make_stored(uint8_t *file)
{
    pl_png png;
    size_t n_head = make_head(file), n = add_data(file, n_head, 1);
    if (pl_png_parse(file, n, &png, NULL) < 0)
        return n;
    return add_data(file, n_head, (size_t)png.filtered_bytes);
}

static void no_bytes_harm_whoever_decodes_them(void **state)
{
    (void)state;
    static uint8_t input[2048];
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        uint8_t *file = input + 1;
        size_t n;
        switch (random() % 4) {
        case 0:
            n = sizeof small_png;
            memcpy(file, small_png, n);
            break;
        case 1:
            n = sizeof small_palette;
            memcpy(file, small_palette, n);
            break;
        default:
            n = make_stored(file);
        }
        n = random() % 2 ? damage(file, n) : n;
        input[0] = (uint8_t)(random() % 8 ? random() & ~1 : random());
        try_input(input, n + 1);
    }
    assert_true(n_tries < 1000 || n_decoded > n_tries / 20);
    assert_true(n_tries < 1000 || n_refused > n_tries / 100);
}

static void what_is_whole_is_decoded(void **state)
{
    (void)state;
    long before = n_decoded;
    try_image(small_png, sizeof small_png, 0);
    try_image(small_palette, sizeof small_palette, 4);
    assert_int_equal(n_decoded, before + 2);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 50000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_whole_is_decoded),
        cmocka_unit_test(no_bytes_harm_whoever_decodes_them),
    };
    return cmocka_run_group_tests_name("fuzz_png", tests, NULL, NULL);
}

#endif
