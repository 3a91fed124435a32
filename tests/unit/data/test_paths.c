/* SPDX-License-Identifier: Apache-2.0 */
/* Paths are sorted alike however many they are and whatever memory there is: as strcmp() has it,
 * each once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/source/paths.h"

enum { NAME_BYTES = 32, CHUNK_BYTES = 64 * 1024 };

typedef char name[NAME_BYTES];

static pl_memory *new_memory(uint64_t cap_bytes)
{
    pl_memory *memory;
    pl_error error = {0};
    const pl_memory_options options = {.cap_bytes = cap_bytes};
    if (pl_memory_new(&options, &memory, &error) < 0)
        fail_msg("%s", error.message);
    return memory;
}

static uint32_t chance(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Sorts `n` of them, which are left sorted as well. */
static void check_sort(pl_memory *memory, name *names, size_t n)
{
    pl_paths paths;
    pl_error error = {0};
    pl_paths_init(&paths, memory);
    for (size_t i = 0; i < n; i++)
        if (pl_paths_add(&paths, names[i], &error) < 0)
            fail_msg("%s", error.message);
    uint64_t claimed = pl_memory_claimed_bytes(memory);
    pl_paths_sort(&paths, false);
    assert_int_equal(pl_memory_claimed_bytes(memory), claimed);
    qsort(names, n, sizeof *names, by_bytes);
    size_t n_unlike = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(names[i - 1], names[i]) != 0) {
            assert_true(n_unlike < paths.n);
            assert_string_equal(pl_paths_at(&paths, n_unlike++), names[i]);
        }
    assert_int_equal(paths.n, n_unlike);
    pl_paths_done(&paths);
}

/* Below, at and above the numbers at which they are sorted in another way. */
static const size_t numbers[] = {0, 1, 2, 3, 100, 1000, 4096, 4097, 16384, 16385};

static void check_all(void make(char *to, uint32_t i))
{
    pl_memory *memory = new_memory(0);
    for (size_t k = 0; k < PL_COUNT_OF(numbers); k++) {
        name *names = calloc(numbers[k] + 1, sizeof *names);
        for (size_t i = 0; i < numbers[k]; i++)
            make(names[i], (uint32_t)i);
        check_sort(memory, names, numbers[k]);
        free(names);
    }
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    pl_memory_unref(memory);
}

static void make_number(char *to, uint32_t i)
{
    snprintf(to, NAME_BYTES, "image_%u.jpg", i * 7919 % 100003);
}

static void numbers_behind_what_all_begin_with(void **state)
{
    (void)state;
    check_all(make_number);
}

/* Of few bytes, so that many are another's beginning, or there several times. */
static void make_short(char *to, uint32_t i)
{
    static const char bytes[] = "a\x01\x7f\x80\xff";
    uint32_t n = chance() % 14;
    for (uint32_t at = 0; at < n; at++)
        to[at] = bytes[chance() % (sizeof bytes - 1)];
    to[n] = '\0';
    (void)i;
}

static void any_bytes_of_any_length(void **state)
{
    (void)state;
    check_all(make_short);
}

/* What tells them apart comes late. */
static void make_late(char *to, uint32_t i)
{
    (void)i;
    uint32_t first = chance() % 3, last = chance() % 5000;
    snprintf(to, NAME_BYTES, "%u-the-same-in-all-%u", first, last);
}

static void names_that_differ_late(void **state)
{
    (void)state;
    check_all(make_late);
}

static void without_memory_for_it(void **state)
{
    (void)state;
    pl_memory *memory = new_memory(CHUNK_BYTES);
    name names[3000];
    for (uint32_t i = 0; i < PL_COUNT_OF(names); i++)
        make_number(names[i], i);
    check_sort(memory, names, PL_COUNT_OF(names));
    pl_memory_unref(memory);
}

static void by_part_a_folder_is_before_what_goes_on(void **state)
{
    (void)state;
    static const char *const sorted[] = {"a", "a/x", "a/y", "a-b/x", "a-c", "b"};
    pl_memory *memory = new_memory(0);
    pl_paths paths;
    pl_paths_init(&paths, memory);
    for (size_t i = PL_COUNT_OF(sorted); i-- > 0;)
        assert_int_equal(pl_paths_add(&paths, sorted[i], NULL), 0);
    pl_paths_sort(&paths, true);
    assert_int_equal(paths.n, PL_COUNT_OF(sorted));
    for (size_t i = 0; i < paths.n; i++)
        assert_string_equal(pl_paths_at(&paths, i), sorted[i]);
    pl_paths_done(&paths);
    pl_memory_unref(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_behind_what_all_begin_with),
        cmocka_unit_test(any_bytes_of_any_length),
        cmocka_unit_test(names_that_differ_late),
        cmocka_unit_test(without_memory_for_it),
        cmocka_unit_test(by_part_a_folder_is_before_what_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
