/* SPDX-License-Identifier: Apache-2.0 */
/* Which known word was meant by one that is misspelt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/nearest.h"

static const char *meant(const char *word, const char *ends)
{
    static const char *const known[] = {"run", "runs", "explain", "--budget", "20261116-031522-41"};
    static char text[PL_NEAREST_TEXT_BYTES];
    pl_nearest nearest = pl_nearest_begin(word, ends);
    for (size_t i = 0; i < PL_COUNT_OF(known); i++)
        pl_nearest_try(&nearest, known[i]);
    return pl_nearest_text(&nearest, text);
}

static void a_letter_too_many_too_few_or_swapped_is_forgiven(void **state)
{
    (void)state;
    assert_string_equal(meant("explainn", ""), ": did you mean 'explain'?");
    assert_string_equal(meant("eplain", ""), ": did you mean 'explain'?");
    assert_string_equal(meant("expalin", ""), ": did you mean 'explain'?");
    assert_string_equal(meant("axplein", ""), ": did you mean 'explain'?");
    assert_string_equal(meant("rum", ""), ": did you mean 'run'?");
    assert_string_equal(meant("20261116-031522-14", ""), ": did you mean '20261116-031522-41'?");
}

static void what_follows_the_word_is_not_looked_at(void **state)
{
    (void)state;
    assert_string_equal(meant("--bugdet=400M", "="), ": did you mean '--budget'?");
    assert_string_equal(meant("--bugdet=400M", ""), "");
}

static void what_is_far_from_all_is_not_guessed_at(void **state)
{
    (void)state;
    assert_string_equal(meant("", ""), "");
    assert_string_equal(meant("xyz", ""), "");
    assert_string_equal(meant("au", ""), "");
    assert_string_equal(meant("20261117-041523-41", ""), "");
    char word[300];
    memset(word, 'a', sizeof word);
    word[sizeof word - 1] = '\0';
    assert_string_equal(meant(word, ""), "");
    char text[PL_NEAREST_TEXT_BYTES];
    pl_nearest none = pl_nearest_begin("run", "");
    assert_string_equal(pl_nearest_text(&none, text), "");
    pl_nearest_try(&none, word); /* longer than any word of ours */
    assert_string_equal(pl_nearest_text(&none, text), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_letter_too_many_too_few_or_swapped_is_forgiven),
        cmocka_unit_test(what_follows_the_word_is_not_looked_at),
        cmocka_unit_test(what_is_far_from_all_is_not_guessed_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
