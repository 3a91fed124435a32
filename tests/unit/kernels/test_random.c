/* SPDX-License-Identifier: Apache-2.0 */
/* The generator is Philox4x32-10: its authors' known answers (Random123, kat_vectors). What is made
 * of it is tested in tests/kernels/test_random.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/random.h"
#include "kernels/isa_table.h"
#include <cmocka.h>

static void the_generator_gives_the_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], words[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
         {UINT32_MAX, UINT32_MAX},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < PL_COUNT_OF(known); i++) {
        uint32_t words[4];
        pl_philox(known[i].counter, known[i].key, words);
        assert_memory_equal(words, known[i].words, sizeof words);
    }
}

static void words_of_a_stream_begin_at_any_index(void **state)
{
    (void)state;
    uint32_t whole[2000], part[40];
    pl_random random = {77, 88};
    pl_random_words(random, 0, 2000, whole);
    for (uint64_t first = 0; first < 1900; first += 137) {
        pl_random_words(random, first, 40, part);
        assert_memory_equal(part, whole + first, sizeof part);
    }
}

static void an_index_above_32_bits_is_another_one(void **state)
{
    (void)state;
    uint32_t near[4], far[4];
    pl_random random = {77, 88};
    pl_random_words(random, 0, 4, near);
    pl_random_words(random, UINT64_C(1) << 34, 4, far);
    assert_memory_not_equal(near, far, sizeof near);
    pl_philox((uint32_t[]){0, 1, 88, 0}, (uint32_t[]){77, 0}, near);
    assert_memory_equal(near, far, sizeof near);
}

static void integers_stay_in_their_range(void **state)
{
    (void)state;
    int8_t narrow[500];
    uint64_t wide[500];
    pl_random_integers((pl_random){1, 2}, PL_I8, (uint64_t)-128, 256, 0, 500, narrow);
    pl_random_integers((pl_random){1, 2}, PL_U64, 10, 3, 0, 500, wide);
    int least = 127, most = -128;
    for (int i = 0; i < 500; i++) {
        assert_in_range(wide[i], 10, 12);
        least = narrow[i] < least ? narrow[i] : least;
        most = narrow[i] > most ? narrow[i] : most;
    }
    assert_true(least < -120 && most > 120);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_gives_the_known_answers),
        cmocka_unit_test(words_of_a_stream_begin_at_any_index),
        cmocka_unit_test(an_index_above_32_bits_is_another_one),
        cmocka_unit_test(integers_stay_in_their_range),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pl_isa_limit(PL_ISA_PLAIN);
    return failed + cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
