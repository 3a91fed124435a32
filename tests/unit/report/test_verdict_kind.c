/* SPDX-License-Identifier: Apache-2.0 */
/* The table of verdicts, and who hears of one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/verdict_kind.h"

static void every_name_is_parsed_to_its_own_verdict(void **state)
{
    (void)state;
    for (int i = 0; i < PL_VERDICTS; i++) {
        enum pl_verdict_kind kind = PL_VERDICTS;
        assert_true(pl_verdict_parse(pl_verdict_name((enum pl_verdict_kind)i), &kind));
        assert_int_equal(kind, i);
    }
}

static void a_name_that_is_not_a_verdict_is_refused(void **state)
{
    (void)state;
    enum pl_verdict_kind kind = PL_VERDICT_HANG;
    assert_false(pl_verdict_parse("", &kind));
    assert_false(pl_verdict_parse("finish", &kind));
    assert_false(pl_verdict_parse("Finished", &kind));
    assert_int_equal(kind, PL_VERDICT_HANG);
}

/* They are in ledgers that an earlier version wrote. */
static void the_numbers_of_verdicts_do_not_change(void **state)
{
    (void)state;
    assert_int_equal(PL_VERDICT_FINISHED, 0);
    assert_int_equal(PL_VERDICT_REFUSED, 3);
    assert_int_equal(PL_VERDICT_CRASHED, 8);
    assert_int_equal(PL_VERDICT_LOST, 12);
    assert_int_equal(PL_VERDICT_UNREADABLE, 13);
}

static enum pl_news in_notebook(enum pl_verdict_kind kind, bool in_cell, bool after_cell)
{
    return pl_news_judge(kind, &(pl_news_facts){.in_notebook = true,
                                                .cell_was_running = in_cell,
                                                .cells_have_run = after_cell});
}

static void a_kernel_that_may_have_been_asked_to_end_is_news_only_in_a_cell(void **state)
{
    (void)state;
    assert_int_equal(in_notebook(PL_VERDICT_FINISHED, false, true), PL_NEWS_FOR_NOBODY);
    assert_int_equal(in_notebook(PL_VERDICT_FINISHED, true, true), PL_NEWS_FOR_USER);
    static const enum pl_verdict_kind as_asked[] = {PL_VERDICT_FINISHED_AFTER_REFUSALS,
                                                    PL_VERDICT_KILLED, PL_VERDICT_LOST};
    for (size_t i = 0; i < PL_COUNT_OF(as_asked); i++) {
        assert_int_equal(in_notebook(as_asked[i], false, true), PL_NEWS_FOR_LOG);
        assert_int_equal(in_notebook(as_asked[i], true, true), PL_NEWS_FOR_USER);
    }
}

static void a_kernel_that_failed_is_news_once_a_cell_has_run(void **state)
{
    (void)state;
    assert_int_equal(in_notebook(PL_VERDICT_FAILED, false, false), PL_NEWS_FOR_LOG);
    assert_int_equal(in_notebook(PL_VERDICT_FAILED, false, true), PL_NEWS_FOR_USER);
}

static void a_death_is_always_news(void **state)
{
    (void)state;
    assert_int_equal(in_notebook(PL_VERDICT_CRASHED, false, false), PL_NEWS_FOR_USER);
    assert_int_equal(in_notebook(PL_VERDICT_KILLED_FOR_MEMORY, false, false), PL_NEWS_FOR_USER);
}

static void what_still_runs_is_not_shown_by_the_next_kernel(void **state)
{
    (void)state;
    assert_int_equal(in_notebook(PL_VERDICT_RUNNING, true, true), PL_NEWS_FOR_LOG);
}

static void on_a_terminal_only_a_plain_success_is_no_news(void **state)
{
    (void)state;
    pl_news_facts facts = {0};
    assert_int_equal(pl_news_judge(PL_VERDICT_FINISHED, &facts), PL_NEWS_FOR_NOBODY);
    assert_int_equal(pl_news_judge(PL_VERDICT_FAILED, &facts), PL_NEWS_FOR_USER);
    assert_int_equal(pl_news_judge(PL_VERDICT_KILLED, &facts), PL_NEWS_FOR_USER);
    facts.is_incomplete_success = true;
    assert_int_equal(pl_news_judge(PL_VERDICT_FINISHED, &facts), PL_NEWS_FOR_USER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_parsed_to_its_own_verdict),
        cmocka_unit_test(a_name_that_is_not_a_verdict_is_refused),
        cmocka_unit_test(the_numbers_of_verdicts_do_not_change),
        cmocka_unit_test(a_kernel_that_may_have_been_asked_to_end_is_news_only_in_a_cell),
        cmocka_unit_test(a_kernel_that_failed_is_news_once_a_cell_has_run),
        cmocka_unit_test(a_death_is_always_news),
        cmocka_unit_test(what_still_runs_is_not_shown_by_the_next_kernel),
        cmocka_unit_test(on_a_terminal_only_a_plain_success_is_no_news),
    };
    return cmocka_run_group_tests_name("verdict_kind", tests, NULL, NULL);
}
