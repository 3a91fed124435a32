/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of Python code in words, and what is concluded from a refusal's numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "ledger/refusal.h"
#include "probe/frame_text.h"

static void assert_text(const char *file, uint64_t line, const char *function, uint32_t cell,
                        const char *expected)
{
    char text[128];
    size_t n = pl_frame_text(file, line, function, cell, text, sizeof text);
    assert_string_equal(text, expected);
    assert_int_equal(n, strlen(expected));
}

static void a_line_is_named_by_file_line_and_function(void **state)
{
    (void)state;
    assert_text("train.py", 4, "load", 0, "train.py:4 in load()");
    assert_text("train.py", 4, "Model.load", 0, "train.py:4 in Model.load()");
    assert_text("train.py", 4, "<listcomp>", 0, "train.py:4 in <listcomp>");
    assert_text("train.py", 4, "<module>", 0, "train.py:4");
    assert_text("train.py", 4, "", 0, "train.py:4");
}

static void a_line_of_a_cell_is_named_by_the_cell(void **state)
{
    (void)state;
    assert_text("/tmp/ipykernel_1/2.py", 4, "load", 3, "In [3] line 4 in load()");
    assert_text("/tmp/ipykernel_1/2.py", 4, "<cell line: 1>", 3, "In [3] line 4");
}

static void the_import_system_and_files_in_memory_have_no_line(void **state)
{
    (void)state;
    assert_text("<frozen importlib._bootstrap>", 241, "_call", 0, PL_IMPORTED_MODULES);
    assert_text("/dev/shm/torch_1", PL_LINE_OF_FILE, "", 0, "/dev/shm/torch_1");
}

static void a_text_that_does_not_fit_is_cut(void **state)
{
    (void)state;
    char text[12];
    assert_int_equal(pl_frame_text("train.py", 4, "load", 0, text, sizeof text), 11);
    assert_string_equal(text, "train.py:4 ");
    assert_int_equal(pl_frame_text("training.py", 44, "load", 0, text, 5), 4);
    assert_string_equal(text, "trai");
}

static void only_a_large_request_has_a_size(void **state)
{
    (void)state;
    pl_event event = {.kind = PL_EVENT_REFUSED, .bytes = 7};
    assert_true(pl_event_is_refusal(&event));
    assert_int_equal(pl_refusal_asked_bytes(&event), 7);
    event.kind = PL_EVENT_RAISED;
    assert_true(pl_event_is_refusal(&event));
    assert_int_equal(pl_refusal_asked_bytes(&event), 0);
    event.kind = PL_EVENT_STOPPED;
    assert_false(pl_event_is_refusal(&event));
}

static void a_request_may_fit_later_or_never(void **state)
{
    (void)state;
    assert_int_equal(pl_refusal_fit(8, 8, 10), PL_FIT_WHEN_FREED);
    assert_int_equal(pl_refusal_fit(9, 8, 10), PL_FIT_HIGHER_LINE);
    assert_int_equal(pl_refusal_fit(11, 8, 10), PL_FIT_NEVER);
    assert_int_equal(pl_refusal_fit(11, 8, 0), PL_FIT_HIGHER_LINE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_named_by_file_line_and_function),
        cmocka_unit_test(a_line_of_a_cell_is_named_by_the_cell),
        cmocka_unit_test(the_import_system_and_files_in_memory_have_no_line),
        cmocka_unit_test(a_text_that_does_not_fit_is_cut),
        cmocka_unit_test(only_a_large_request_has_a_size),
        cmocka_unit_test(a_request_may_fit_later_or_never),
    };
    return cmocka_run_group_tests_name("frame_text", tests, NULL, NULL);
}
