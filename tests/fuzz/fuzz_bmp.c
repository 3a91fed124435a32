/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a BMP; how many channels it is decoded to is in the first byte. */
#include "fuzz_images.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2 || n > 60000)
        return 0;
    uint8_t *file = malloc(n - 1);
    REQUIRE(file != NULL);
    memcpy(file, data + 1, n - 1);
    try_image(file, n - 1, data[0] % 5);
    free(file);
    return 0;
}

#ifndef PL_LIBFUZZER

static void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* A whole one of any kind; at most 8 x 8 pixels. Returns its bytes. */
static size_t make(uint8_t *file)
{
    static const int kinds[] = {8, 24, 32};
    int bits = kinds[random() % 3], width = 1 + (int)(random() % 8),
        height = (int)(random() % 17) - 8;
    uint32_t n_colours = bits == 8 ? (uint32_t)(1 + random() % 256) : 0, header = 40;
    header = random() % 4 ? header : 124;
    uint32_t offset = 14 + header + 4 * n_colours;
    size_t row = (size_t)(width * bits / 8 + 3) / 4 * 4;
    size_t n = offset + row * (size_t)(height < 0 ? -height : height);
    memset(file, 0, offset);
    memcpy(file, "BM", 2);
    put_u32(file + 10, offset);
    put_u32(file + 14, header);
    put_u32(file + 18, (uint32_t)width);
    put_u32(file + 22, (uint32_t)height);
    file[26] = 1;
    file[28] = (uint8_t)bits;
    put_u32(file + 46, n_colours);
    bool grey = random() % 2;
    for (uint32_t i = 0; i < 4 * n_colours; i++)
        file[14 + header + i] = (uint8_t)(grey ? i / 4 : (uint32_t)random());
    for (size_t i = offset; i < n; i++)
        file[i] = (uint8_t)(n_colours ? random() % (n_colours + (random() % 64 == 0)) : random());
    return n;
}

/* Bytes of the header mostly, where all that matters is; or it is cut off. */
static size_t damage_bmp(uint8_t *file, size_t n)
{
    for (int i = 0; i < 1 + (int)(random() % 4); i++)
        file[(size_t)random() % (random() % 4 ? 54 : n)] =
            (uint8_t)(random() % 2 ? random() : (random() % 2 ? 0 : 255));
    return random() % 4 ? n : (size_t)random() % n;
}

static void no_bytes_harm_whoever_decodes_them(void **state)
{
    (void)state;
    static uint8_t input[4096];
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        size_t n = make(input + 1);
        n = random() % 2 ? damage_bmp(input + 1, n) : n;
        input[0] = (uint8_t)random();
        try_input(input, n + 1);
    }
    assert_true(n_tries < 1000 || n_decoded > n_tries / 4);
    assert_true(n_tries < 1000 || n_refused > n_tries / 20);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 200000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_harm_whoever_decodes_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
