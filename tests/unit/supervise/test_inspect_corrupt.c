/* SPDX-License-Identifier: Apache-2.0 */
/* Records of crashes that were damaged at random: cut short, bits flipped in the maps, the stack,
 * the registers and the lengths. Whatever they say, the answer is an error or a stack within its
 * bounds; the sanitizers see the rest. PLIMSOLL_FUZZ_ROUNDS and PLIMSOLL_FUZZ_SEED make it longer
 * and other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>

#include "test_inspect_crash.h"

enum { ROUNDS = 200, FLIPS_MAX = 24 };

typedef struct file_copy {
    char path[PATH_MAX];
    size_t n;
    char *bytes;
    pl_crash crash;
} file_copy;

static uint64_t random_state;

/* xorshift64*: the same everywhere, unlike rand(). */
static uint64_t next_random(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(0x2545F4914F6CDD1D);
}

static uint64_t random_below(uint64_t n)
{
    return next_random() % n;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value ? strtoull(value, NULL, 10) : otherwise;
}

static PL_NOINLINE int compare_badly(const void *a, const void *b)
{
    (void)a;
    (void)b;
    abort();
}

static void crash_in_sort(void)
{
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof numbers[0], compare_badly);
}

static void load_good(file_copy *good)
{
    crash_in_child(crash_in_sort);
    crash_path(good->path, sizeof good->path);
    good->crash = *crash_record;
    good->n = good->crash.maps_bytes + good->crash.stack_bytes;
    good->bytes = malloc(good->n);
    assert_non_null(good->bytes);
    FILE *file = fopen(good->path, "r");
    assert_non_null(file);
    assert_int_equal(fread(good->bytes, 1, good->n, file), good->n);
    fclose(file);
}

static void save(const file_copy *good, const char *bytes, size_t n)
{
    FILE *file = fopen(good->path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static void flip_bits(void *bytes, size_t n)
{
    for (uint64_t i = random_below(FLIPS_MAX) + 1; i > 0; i--)
        ((uint8_t *)bytes)[random_below(n)] ^= (uint8_t)(1u << random_below(8));
}

/* A digit for a digit leaves a line that parses, and lies. */
static void swap_digits(char *maps, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (uint64_t i = random_below(FLIPS_MAX) + 1; i > 0; i--) {
        char *at = &maps[random_below(n)];
        if (strchr(digits, *at))
            *at = digits[random_below(16)];
    }
}

static uint64_t random_length(uint64_t good)
{
    switch (random_below(4)) {
    case 0:
        return next_random();
    case 1:
        return random_below(good + 1);
    case 2:
        return good + random_below(4096);
    default:
        return UINT64_MAX - random_below(16);
    }
}

/* Damages a copy of the file and of the crash; returns how much of the file is kept. */
static size_t damage(const file_copy *good, char *bytes, pl_crash *crash)
{
    switch (random_below(7)) {
    case 0:
        flip_bits(bytes, crash->maps_bytes);
        break;
    case 1:
        swap_digits(bytes, crash->maps_bytes);
        break;
    case 2:
        flip_bits(bytes + crash->maps_bytes, crash->stack_bytes);
        break;
    case 3:
        flip_bits(crash->registers, sizeof crash->registers);
        break;
    case 4:
        crash->maps_bytes = random_length(crash->maps_bytes);
        break;
    case 5:
        crash->stack_bytes = random_length(crash->stack_bytes);
        crash->registers[PL_REGISTER_SP] = UINT64_MAX - random_below(64);
        break;
    default:
        return random_below(good->n);
    }
    return good->n;
}

static void no_damage_leads_out_of_bounds(void **state)
{
    (void)state;
    static pl_native_stack stack;
    file_copy good = {0};
    load_good(&good);
    char *bytes = malloc(good.n);
    assert_non_null(bytes);
    int n_unwound = 0;
    random_state = setting("PLIMSOLL_FUZZ_SEED", UINT64_C(0x504c494d534f4c4c));
    for (uint64_t i = setting("PLIMSOLL_FUZZ_ROUNDS", ROUNDS); i > 0; i--) {
        pl_crash crash = good.crash;
        memcpy(bytes, good.bytes, good.n);
        save(&good, bytes, damage(&good, bytes, &crash));
        stack.n_frames = 0;
        int r = pl_inspect_crash(&crash, crash_directory, &stack, NULL);
        assert_true(r <= 0);
        assert_in_range(stack.n_frames, 0, PL_NATIVE_FRAMES);
        for (int frame = 0; frame < stack.n_frames; frame++)
            assert_true(strlen(stack.frames[frame].symbol) < sizeof stack.frames[0].symbol);
        n_unwound += stack.n_frames > 1;
    }
    assert_true(n_unwound > 0); /* else the damage was so plain that nothing was tested */
    free(bytes);
    free(good.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_damage_leads_out_of_bounds)};
    return cmocka_run_group_tests_name("inspect_corrupt", tests, crash_setup, crash_teardown);
}
