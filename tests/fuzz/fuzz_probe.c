/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the memory of a Python: the reader answers from the input. Whatever it says, frames
 * are texts that end, in UTF-8, or there are none; and no chain or table is followed for ever.
 *
 * The first byte chooses a version, and how memory that is not there answers; then what differs
 * from a good image of that version: where (2 bytes), how many (1), the bytes. */
#include "fuzz.h"

#include "../unit/python_image.h"
#include "codec/text/utf8.h"
#include "probe/lines.h"

enum {
    MANY = 8,
    /* A table of a million entries is read through: what handlers.c and lines.c take at most, a few
     * times over. A ring that is followed without an end passes it. */
    PEEKS_MAX = 64 << 20,
};

static long n_described; /* 0 would make the test worthless */

/* Every address answers: with what lies at the same place of some copy of the image. */
static int peek_everywhere(const pl_reader *reader, uint64_t address, void *buffer, size_t n)
{
    (void)reader;
    n_peeks++;
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)buffer)[i] = image[(address + i) % IMAGE_BYTES];
    return 0;
}

static const pl_reader everywhere_reader = {.peek = peek_everywhere};

static void check_text(const char *text, size_t n_bytes)
{
    size_t n = strnlen(text, n_bytes);
    REQUIRE(n < n_bytes && pl_utf8_valid_bytes(text, n, NULL) == n);
}

static void check_frames(const pl_python_frame *frames, int n)
{
    REQUIRE(n <= MANY);
    for (int i = 0; i < n; i++) {
        check_text(frames[i].file, sizeof frames[i].file);
        check_text(frames[i].function, sizeof frames[i].function);
        (void)pl_python_is_users(frames[i].file);
        (void)pl_python_is_library(frames[i].file);
        (void)pl_python_is_import(frames[i].file);
        n_described++;
    }
}

static void read_thread(const pl_python *python, uint64_t state)
{
    pl_python_spot spots[MANY];
    pl_python_frame frames[MANY] = {0};
    check_frames(frames, pl_python_stack(python, state, frames, MANY));
    (void)!pl_python_check(python, state);
    (void)pl_python_runs(python, state);
    int n = pl_python_spots(python, state, spots, MANY);
    REQUIRE(n <= MANY);
    for (int i = 0; i < n && i < 2; i++) {
        if (pl_python_describe(python, &spots[i], frames) == 0)
            check_frames(frames, 1);
        (void)pl_python_caught_alike(python, &spots[i], false);
        (void)pl_python_caught_alike(python, &spots[i], true);
    }
}

static void read_everything(const pl_python *python)
{
    pl_python_thread threads[MANY];
    n_peeks = 0;
    (void)pl_python_is_free_threaded(python);
    (void)pl_python_lists_locked(python);
    int n = pl_python_threads(python, threads, MANY);
    REQUIRE(n <= MANY);
    for (int i = 0; i < n && i < 2; i++)
        read_thread(python, threads[i].state);
    read_thread(python, STATE);
    REQUIRE(n_peeks < PEEKS_MAX);
}

/* The table that every format is read as, wherever it ends. */
static void read_lines(const pl_reader *reader, uint64_t n_bytes, uint64_t instruction)
{
    for (int format = PL_PYTHON_LINES_LNOTAB; format <= PL_PYTHON_LINES_LOCATIONS; format++) {
        pl_line_table table = {.reader = reader,
                               .format = (enum pl_python_lines)format,
                               .address = LINES,
                               .n_bytes = n_bytes,
                               .first_line = FIRST_LINE};
        (void)pl_line_table_find(&table, instruction);
    }
}

static void patch_image(const uint8_t *data, size_t n)
{
    while (n > 3) {
        size_t where = (data[0] | (size_t)data[1] << 8) % IMAGE_BYTES, length = data[2];
        length = pl_min_u64(length, pl_min_u64(n - 3, IMAGE_BYTES - where));
        memcpy(image + where, data + 3, length);
        data += 3 + length;
        n -= 3 + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    pl_python python = make_image(versions[data[0] % PL_COUNT_OF(versions)]);
    patch_image(data + 1, n - 1);
    if (data[0] & 0x80)
        python.reader = &everywhere_reader;
    read_everything(&python);
    read_lines(python.reader, n, data[n - 1]);
    return 0;
}

#ifndef PL_LIBFUZZER

static void a_good_image_of_each_version_has_frames(void **state)
{
    (void)state;
    for (uint8_t i = 0; i < PL_COUNT_OF(versions); i++) {
        n_described = 0;
        try_input(&i, 1);
        assert_true(n_described >= N_FRAMES);
    }
}

static uint8_t *add_patch(uint8_t *to, uint64_t address, const void *bytes, uint8_t n)
{
    uint64_t where = address - IMAGE;
    memcpy(to, (uint8_t[]){(uint8_t)where, (uint8_t)(where >> 8), n}, 3);
    memcpy(to + 3, bytes, n);
    return to + 3 + n;
}

/* Threads in a ring, and frames in another, of which none is to be shown. */
static void rings_have_an_end(void **state)
{
    (void)state;
    for (uint8_t i = 0; i < PL_COUNT_OF(versions); i++) {
        uint8_t input[128] = {i}, *end = input + 1, no_code = 3;
        uint64_t first_thread = STATE, first_frame = frame_at(0);
        pl_python python = make_image(versions[i]);
        pl_python_offsets scratch;
        const pl_python_offsets *offsets = pl_python_offsets_of(&python, &scratch);
        end = add_patch(end, STATE + 0x400 + offsets->state_next, &first_thread, 8);
        end = add_patch(end, frame_at(2) + offsets->frame_previous, &first_frame, 8);
        try_input(input, (size_t)(end - input));
        for (int k = 0; !offsets->has_frame_objects && k < N_FRAMES; k++)
            end = add_patch(end, frame_at(k) + offsets->frame_owner, &no_code, 1);
        try_input(input, (size_t)(end - input));
    }
}

/* Where pointers and lengths are: the first 128 bytes of each structure. */
static uint16_t choose_place(void)
{
    static const uint32_t starts[] = {RUNTIME, INTERP, COPIES,   STATE,     CFRAME, FRAME,
                                      CODE,    TYPES,  FUNCTION, FILE_NAME, LINES};
    uint32_t start = starts[(size_t)random() % PL_COUNT_OF(starts)] - IMAGE;
    return (uint16_t)(start + (uint32_t)random() % 16 * 8);
}

/* A pointer within the image, a number at an edge, or noise. */
static uint64_t choose_word(void)
{
    static const uint64_t edges[] = {0, 1, 7, 4096, UINT32_MAX, INT64_MAX, UINT64_MAX};
    switch (random() % 3) {
    case 0:
        return IMAGE + (uint64_t)random() % (IMAGE_BYTES / 8) * 8;
    case 1:
        return edges[(size_t)random() % PL_COUNT_OF(edges)];
    default:
        return (uint64_t)random() << 32 ^ (uint64_t)random();
    }
}

static void no_memory_misleads_who_reads_it(void **state)
{
    (void)state;
    uint8_t input[1 + 8 * 11];
    srandom(1);
    n_described = 0;
    for (long i = 0; i < n_tries; i++) {
        size_t n = 1;
        input[0] = (uint8_t)random();
        for (long k = random() % 8; k >= 0; k--, n += 11) {
            uint16_t where = choose_place();
            uint64_t word = choose_word();
            memcpy(input + n, (uint8_t[]){(uint8_t)where, (uint8_t)(where >> 8), 8}, 3);
            memcpy(input + n + 3, &word, 8);
        }
        try_input(input, n);
    }
    assert_true(n_described > n_tries / 4);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 3000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_image_of_each_version_has_frames),
        cmocka_unit_test(rings_have_an_end),
        cmocka_unit_test(no_memory_misleads_who_reads_it),
    };
    return cmocka_run_group_tests_name("fuzz_probe", tests, NULL, NULL);
}

#endif
