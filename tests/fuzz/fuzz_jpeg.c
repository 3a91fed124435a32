/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a JPEG, decoded to as many channels as the first byte says. */
#include "fuzz_images.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const int channels[] = {0, 1, 3};
    if (n < 1)
        return 0;
    try_image(data + 1, n - 1, channels[data[0] % 3]);
    return 0;
}

#ifndef PL_LIBFUZZER

#include "unit/small_images.h"

static void no_bytes_harm_whoever_decodes_them(void **state)
{
    (void)state;
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        bool plain = random() % 2;
        const uint8_t *from = plain ? small_jpeg : small_progressive;
        size_t n = plain ? sizeof small_jpeg : sizeof small_progressive;
        uint8_t *input = malloc(n + 1);
        memcpy(input + 1, from, n);
        n = damage(input + 1, n);
        input[0] = (uint8_t)random();
        input = realloc(input, n + 1);
        try_input(input, n + 1);
        free(input);
    }
    assert_true(n_tries < 1000 || n_decoded > n_tries / 100);
    assert_true(n_tries < 1000 || n_refused > n_tries / 100);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 50000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_harm_whoever_decodes_them),
    };
    return cmocka_run_group_tests_name("fuzz_jpeg", tests, NULL, NULL);
}

#endif
