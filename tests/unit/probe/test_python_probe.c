/* SPDX-License-Identifier: Apache-2.0 */
/* Python's structures, made by hand at made-up addresses in every supported layout, are read; the
 * same with bits flipped, chains closed to rings, or nothing but noise, is survived. Real Pythons
 * are read in tests/run/test_python_probe.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe/lines.h"
#include "python_image.h"

static pl_python_offsets offsets_of(const pl_python *python)
{
    pl_python_offsets scratch;
    return *pl_python_offsets_of(python, &scratch);
}

static void threads_and_who_runs_are_found_in_every_layout(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(versions); i++) {
        pl_python python = make_image(versions[i]);
        pl_python_thread threads[4];
        assert_int_equal(pl_python_threads(&python, threads, 4), 2);
        assert_int_equal(threads[0].state, STATE);
        assert_int_equal(threads[1].state, STATE + 0x400);
        assert_int_equal(threads[1].thread_ident, 7001);
        assert_int_equal(threads[1].tid, versions[i] < 0x030b0000 ? 0 : 101);
        assert_int_equal(pl_python_threads(&python, threads, 1), 1);
        assert_true(pl_python_runs(&python, STATE));
        assert_false(pl_python_runs(&python, STATE + 0x400));
        assert_false(pl_python_runs(&python, 0));
        assert_int_equal(pl_python_is_free_threaded(&python), i == PL_COUNT_OF(versions) - 1);
        assert_int_equal(pl_python_check(&python, STATE), 0);
        assert_int_equal(pl_python_check(&python, STATE + 0x400), -EAGAIN); /* no frame yet */
    }
}

static void frames_are_read_in_every_layout(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(versions); i++) {
        pl_python python = make_image(versions[i]);
        pl_python_frame frames[8];
        assert_int_equal(pl_python_stack(&python, STATE, frames, 8), N_FRAMES);
        for (uint32_t k = 0; k < N_FRAMES; k++) {
            assert_string_equal(frames[k].file, "/home/ada/train.py");
            assert_string_equal(frames[k].function, "f\xc3\xbcr");
            assert_int_equal(frames[k].line, FIRST_LINE + 5 + k);
        }
        assert_int_equal(pl_python_stack(&python, STATE, frames, 2), 2);
        assert_int_equal(pl_python_stack(&python, STATE + 0x400, frames, 8), 0);
    }
}

static void spots_name_code_and_instruction(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(versions); i++) {
        pl_python python = make_image(versions[i]);
        pl_python_spot spots[8];
        assert_int_equal(pl_python_spots(&python, STATE, spots, 8), N_FRAMES);
        assert_int_equal(spots[2].code, CODE);
        assert_int_equal(spots[2].instruction, 7);
        assert_int_equal(pl_python_spots(&python, STATE, spots, 1), 1);
        assert_int_equal(spots[0].instruction, 5);
    }
}

static void a_thread_that_let_go_does_not_run(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(versions); i++) {
        pl_python python = make_image(versions[i]);
        pl_python_offsets offsets = offsets_of(&python);
        if (offsets.runtime_current)
            put_u64(RUNTIME + offsets.runtime_current, 0);
        else
            put_u32(STATE + offsets.state_status, 0x0b);
        assert_false(pl_python_runs(&python, STATE));
    }
}

static void a_state_of_another_interpreter_passes_if_that_knows_its_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(versions); i++) {
        pl_python python = make_image(versions[i]);
        pl_python_offsets offsets = offsets_of(&python);
        put_u64(RUNTIME + offsets.runtime_main, COPIES);
        assert_int_equal(pl_python_check(&python, STATE), 0);
        put_u64(INTERP + offsets.interp_threads, FRAME);
        assert_int_equal(pl_python_check(&python, STATE), PL_EFORMAT);
        put_u64(RUNTIME + offsets.runtime_main, 0);
        assert_int_equal(pl_python_check(&python, STATE), -EAGAIN);
    }
}

static void a_copy_that_is_not_there_ends_the_stack(void **state)
{
    (void)state;
    pl_python python = make_image(versions[PL_COUNT_OF(versions) - 1]);
    pl_python_offsets offsets = offsets_of(&python);
    pl_python_spot spots[8];
    put_u32(frame_at(1) + offsets.frame_bytecode, 2);
    assert_int_equal(pl_python_spots(&python, STATE, spots, 8), 1);
    put_u32(frame_at(0) + offsets.frame_bytecode, UINT32_MAX);
    assert_int_equal(pl_python_spots(&python, STATE, spots, 8), PL_EFORMAT);
    make_image(versions[PL_COUNT_OF(versions) - 1]);
    put_u64(CODE + offsets.code_bytecodes, 0);
    assert_int_equal(pl_python_spots(&python, STATE, spots, 8), PL_EFORMAT);
}

static void frames_that_python_hides_are_left_out(void **state)
{
    (void)state;
    for (size_t i = 3; i < PL_COUNT_OF(versions); i++) {
        pl_python python = make_image(versions[i]);
        pl_python_offsets offsets = offsets_of(&python);
        put_frame(&offsets, 0, -1, 0);                  /* just made */
        put_frame(&offsets, 1, FIRST_TRACEABLE - 1, 1); /* a generator's, which is shown */
        put_frame(&offsets, 2, 9, 3);                   /* an entry from C */
        pl_python_spot spots[8];
        assert_int_equal(pl_python_spots(&python, STATE, spots, 8), 1);
        assert_int_equal(spots[0].instruction, FIRST_TRACEABLE - 1);
    }
}

static void what_is_no_code_object_ends_the_stack(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(versions); i++) {
        pl_python python = make_image(versions[i]);
        pl_python_offsets offsets = offsets_of(&python);
        pl_python_frame frames[8];
        pl_python_spot spot = {.code = FILE_NAME};
        put_u64(frame_at(1) + offsets.frame_code, FILE_NAME);
        pl_python_spot spots[8];
        assert_int_equal(pl_python_spots(&python, STATE, spots, 8), 1);
        assert_int_equal(pl_python_stack(&python, STATE, frames, 8), 1);
        assert_int_equal(pl_python_describe(&python, &spot, frames), PL_EFORMAT);
        put_u64(frame_at(0) + offsets.frame_code, FILE_NAME);
        assert_int_equal(pl_python_stack(&python, STATE, frames, 8), PL_EFORMAT);
        assert_int_equal(pl_python_check(&python, STATE), PL_EFORMAT);
    }
}

static void a_thread_of_no_interpreter_is_none(void **state)
{
    (void)state;
    pl_python python = make_image(0x030b02f0);
    pl_python_offsets offsets = offsets_of(&python);
    pl_python_thread threads[4];
    put_u64(STATE + 0x400 + offsets.state_interp, COPIES);
    assert_int_equal(pl_python_threads(&python, threads, 4), 1);
    put_u64(STATE + offsets.state_interp, COPIES);
    assert_int_equal(pl_python_threads(&python, threads, 4), PL_EFORMAT);
    put_u64(RUNTIME + offsets.runtime_main, 0);
    assert_int_equal(pl_python_threads(&python, threads, 4), -EAGAIN);
}

static void rings_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(versions); i++) {
        pl_python python = make_image(versions[i]);
        pl_python_offsets offsets = offsets_of(&python);
        pl_python_spot spots[100];
        pl_python_thread threads[100];
        put_u64(frame_at(2) + offsets.frame_previous, frame_at(0));
        assert_int_equal(pl_python_spots(&python, STATE, spots, 100), 100);
        put_u64(STATE + 0x400 + offsets.state_next, STATE);
        assert_int_equal(pl_python_threads(&python, threads, 100), 100);
        if (offsets.has_frame_objects)
            continue;
        for (int k = 0; k < N_FRAMES; k++)
            image[frame_at(k) - IMAGE + offsets.frame_owner] = 3;
        n_peeks = 0;
        assert_int_equal(pl_python_spots(&python, STATE, spots, 100), 0);
        assert_in_range(n_peeks, 100, 300);
    }
}

static void only_final_releases_of_known_versions_are_read(void **state)
{
    (void)state;
    static const uint32_t unknown[] = {0,          0x020712f0, 0x030712f0, 0x031000f0,
                                       0x030b00c1, 0x030d00a1, 0x040b00f0, UINT32_MAX};
    for (size_t i = 0; i < PL_COUNT_OF(versions); i++)
        assert_true(pl_python_supported(versions[i]));
    for (size_t i = 0; i < PL_COUNT_OF(unknown); i++) {
        make_image(0x030b02f0);
        pl_python python = python_of(unknown[i]);
        pl_python_thread thread;
        pl_python_spot spot;
        assert_false(pl_python_supported(unknown[i]));
        assert_int_equal(pl_python_threads(&python, &thread, 1), -ENOTSUP);
        assert_int_equal(pl_python_spots(&python, STATE, &spot, 1), -ENOTSUP);
        assert_false(pl_python_runs(&python, STATE));
    }
}

static void a_description_that_makes_no_sense_is_not_read(void **state)
{
    (void)state;
    /* Each is an offset that lies outside of its structure, or is another version's. */
    static const struct {
        uint32_t version;
        uint32_t word;
        uint64_t value;
    } changes[] = {
        {0x030d00f0, 0, 0},      {0x030d00f0, 1, 0x030e00f0}, {0x030d00f0, 5, UINT64_MAX - 3},
        {0x030d00f0, 9, PL_GIB}, {0x030d00f0, 23, 250},       {0x030d00f0, 25, 1000},
        {0x030d00f0, 27, 253},   {0x030d00f0, 30, 70},        {0x030d00f0, 32, 200},
        {0x030d00f0, 33, 72},    {0x030d00f0, 35, 196},       {0x030d00f0, 43, 8},
        {0x030d00f0, 43, 1000},  {0x030d00f0, 45, 60},        {0x030d00f0, 47, 60},
        {0x030d00f0, 65, 28},    {0x030d00f0, 66, 65},        {0x030d00f0, 68, 40},
        {0x030d00f0, 69, 36},    {0x030d00f0, 70, 1000},      {0x030e07f0, 38, 78},
        {0x030e07f0, 49, 226},   {0x030e07f0, 49, 8},         {0x030e07f0, 1, 0x030f00f0},
        {0x030f02f0, 92, 65},    {0x030f02f0, 26, 250},
    };
    for (size_t i = 0; i < PL_COUNT_OF(changes); i++) {
        pl_python python = make_image(changes[i].version);
        pl_python_thread threads[4];
        assert_int_equal(pl_python_threads(&python, threads, 4), 2);
        put_u64(RUNTIME + 8 * (uint64_t)changes[i].word, changes[i].value);
        if (pl_python_threads(&python, threads, 4) != -ENOTSUP)
            fail_msg("word %u of %x", changes[i].word, changes[i].version);
    }
}

static const char *described_file(const pl_python *python)
{
    static pl_python_frame frame;
    pl_python_spot spot = {.code = CODE, .instruction = 3};
    memset(&frame, 0xee, sizeof(frame));
    assert_int_equal(pl_python_describe(python, &spot, &frame), 0);
    return frame.file;
}

static void every_width_of_character_becomes_utf8(void **state)
{
    (void)state;
    static const uint16_t two[] = {'a', 0xe9, 0x65e5, 0xdcff, 0, 'z'};
    static const uint32_t four[] = {'a', 0x1f600, 0x110000, 0xd800, 'z'};
    for (size_t i = 0; i < PL_COUNT_OF(versions); i++) {
        pl_python python = make_image(versions[i]);
        pl_python_offsets offsets = offsets_of(&python);
        put_text(&offsets, FILE_NAME, two, 2, false, PL_COUNT_OF(two));
        assert_string_equal(described_file(&python),
                            "a\xc3\xa9\xe6\x97\xa5\xef\xbf\xbd\xef\xbf\xbdz");
        put_text(&offsets, FILE_NAME, four, 4, false, PL_COUNT_OF(four));
        assert_string_equal(described_file(&python), "a\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbdz");
        put_text(&offsets, FILE_NAME, "", 1, true, 0);
        assert_string_equal(described_file(&python), "");
    }
}

static void the_tail_of_a_long_path_is_kept_in_whole_characters(void **state)
{
    (void)state;
    pl_python python = make_image(0x030b02f0);
    pl_python_offsets offsets = offsets_of(&python);
    uint16_t path[200];
    for (size_t i = 0; i < 200; i++)
        path[i] = 0x65e5; /* three bytes each: 39 fit into 119, and 2 bytes stay free */
    put_text(&offsets, FILE_NAME, path, 2, false, 200);
    const char *file = described_file(&python);
    assert_int_equal(strlen(file), 117);
    assert_memory_equal(file, "\xe6\x97\xa5", 3);
    memcpy(path + 197, (uint16_t[]){'.', 'p', 'y'}, 6);
    put_text(&offsets, FILE_NAME, path, 2, false, 200);
    file = described_file(&python);
    assert_int_equal(strlen(file), 38 * 3 + 3);
    assert_string_equal(file + 38 * 3, ".py");
}

static void strings_of_another_make_are_refused(void **state)
{
    (void)state;
    static const uint32_t states[] = {
        1u << 2 | 1u << 6, /* not compact */
        3u << 2 | 1u << 5, /* a width that is none */
        1u << 5,           /* a width of 0 */
    };
    pl_python_spot spot = {.code = CODE};
    pl_python_frame frame;
    for (size_t i = 0; i < PL_COUNT_OF(states); i++) {
        pl_python python = make_image(0x030b02f0);
        put_u32(FILE_NAME + offsets_of(&python).text_state, states[i]);
        assert_int_equal(pl_python_describe(&python, &spot, &frame), PL_EFORMAT);
    }
    pl_python python = make_image(0x030b02f0);
    put_u64(FILE_NAME + offsets_of(&python).text_length, UINT64_MAX);
    assert_int_equal(pl_python_describe(&python, &spot, &frame), PL_EFORMAT);
    put_u64(FILE_NAME + offsets_of(&python).text_length, 1 << 20);
    assert_int_equal(pl_python_describe(&python, &spot, &frame), -EFAULT);
}

static uint32_t line_in(enum pl_python_lines format, const uint8_t *table, size_t n,
                        uint64_t instruction)
{
    pl_line_table lines = {
        .reader = &pl_reader_own,
        .format = format,
        .address = (uint64_t)(uintptr_t)table,
        .n_bytes = n,
        .first_line = 100,
    };
    return pl_line_table_find(&lines, instruction);
}

static void lnotab_is_decoded(void **state)
{
    (void)state;
    /* 4 bytes of line 100, 255 + 5 of line 101, then 127 + 3 lines on, then 2 lines back. */
    static const uint8_t table[] = {4, 1, 255, 0, 5, 127, 0, 3, 6, 0xfe};
    static const uint32_t expected[][2] = {{0, 100},   {1, 100},   {2, 101},   {131, 101},
                                           {132, 231}, {134, 231}, {135, 229}, {9999, 229}};
    for (size_t i = 0; i < PL_COUNT_OF(expected); i++)
        assert_int_equal(line_in(PL_PYTHON_LINES_LNOTAB, table, sizeof(table), expected[i][0]),
                         expected[i][1]);
    assert_int_equal(line_in(PL_PYTHON_LINES_LNOTAB, table, 0, 7), 100);
}

static void ranges_are_decoded(void **state)
{
    (void)state;
    /* 4 bytes of 101, 2 with no line, 0 to go 127 on, 254 of 238, 6 of 236. */
    static const uint8_t table[] = {4, 1, 2, 0x80, 0, 127, 254, 10, 6, 0xfe};
    static const uint32_t expected[][2] = {{0, 101},   {1, 101},   {2, 0},     {3, 238},
                                           {129, 238}, {130, 236}, {132, 236}, {133, 0}};
    for (size_t i = 0; i < PL_COUNT_OF(expected); i++)
        assert_int_equal(line_in(PL_PYTHON_LINES_RANGES, table, sizeof(table), expected[i][0]),
                         expected[i][1]);
}

static void locations_are_decoded(void **state)
{
    (void)state;
    static const uint8_t table[] = {
        0x80 | 13 << 3 | 1, 0x02,                       /* 2 units: +1 */
        0x80 | 0 << 3 | 0,  0x12,                       /* 1 unit: same line, short columns */
        0x80 | 12 << 3 | 7, 0x01,        0x02,          /* 8 units: +2 */
        0x80 | 15 << 3 | 0,                             /* 1 unit: no line */
        0x80 | 14 << 3 | 0, 0x40 | 0x28, 0x1f, 2, 3, 4, /* 1 unit: +1012 in two bytes */
        0x80 | 14 << 3 | 0, 0x40 | 0x11, 0x01, 0, 0, 0, /* 1 unit: -40 */
        0x80 | 10 << 3 | 0, 0x00,        0x00,          /* 1 unit: +0 */
    };
    static const uint32_t expected[][2] = {{0, 101}, {1, 101},   {2, 101},   {3, 103},   {10, 103},
                                           {11, 0},  {12, 1115}, {13, 1075}, {14, 1075}, {15, 0}};
    for (size_t i = 0; i < PL_COUNT_OF(expected); i++)
        assert_int_equal(line_in(PL_PYTHON_LINES_LOCATIONS, table, sizeof(table), expected[i][0]),
                         expected[i][1]);
}

static void malformed_locations_have_no_line(void **state)
{
    (void)state;
    static const uint8_t endless[] = {0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f};
    static const uint8_t headless[] = {0x12, 0x80};
    static const uint8_t below_zero[] = {0x80 | 13 << 3, 0x40 | 0x3f, 0x3f};
    static const uint8_t cut[] = {0x80 | 14 << 3, 0x40 | 0x3f};
    assert_int_equal(line_in(PL_PYTHON_LINES_LOCATIONS, endless, sizeof(endless), 0), 0);
    assert_int_equal(line_in(PL_PYTHON_LINES_LOCATIONS, headless, sizeof(headless), 0), 0);
    assert_int_equal(line_in(PL_PYTHON_LINES_LOCATIONS, below_zero, sizeof(below_zero), 0), 0);
    assert_int_equal(line_in(PL_PYTHON_LINES_LOCATIONS, cut, sizeof(cut), 0), 0);
    assert_int_equal(line_in(PL_PYTHON_LINES_LOCATIONS, cut, UINT64_C(1) << 62, 0), 0);
}

/* xorshift64*: the same noise in every run. */
static uint64_t random_u64(void)
{
    static uint64_t x = 88172645463325252u;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    return x * 2685821657736338717u;
}

static void read_all(const pl_python *python)
{
    pl_python_thread threads[8];
    pl_python_frame frames[8];
    n_peeks = 0;
    int n = pl_python_threads(python, threads, 8);
    assert_true(n <= 8);
    (void)!pl_python_check(python, STATE);
    (void)pl_python_runs(python, STATE);
    for (int i = 0; i < n; i++) {
        int n_frames = pl_python_stack(python, threads[i].state, frames, 8);
        assert_true(n_frames <= 8);
        for (int k = 0; k < n_frames; k++) {
            assert_non_null(memchr(frames[k].file, 0, sizeof(frames[k].file)));
            assert_non_null(memchr(frames[k].function, 0, sizeof(frames[k].function)));
        }
    }
    /* Eight stacks of eight frames, at most one hidden frame each, some twenty looks a frame and
     * one for every 256 bytes of a line table that ends with the image. */
    assert_in_range(n_peeks, 0, 8 * 24 * (20 + IMAGE_BYTES / 256));
}

static void flipped_bits_are_survived(void **state)
{
    (void)state;
    static const uint32_t regions[] = {RUNTIME, INTERP, COPIES, STATE,    STATE + 0x400, CFRAME,
                                       FRAME,   CODE,   TYPES,  FUNCTION, FILE_NAME,     LINES};
    for (int round = 0; round < 20000; round++) {
        pl_python python = make_image(versions[(size_t)round % PL_COUNT_OF(versions)]);
        for (uint64_t n = random_u64() % 8 + 1; n > 0; n--) {
            uint32_t at = regions[random_u64() % PL_COUNT_OF(regions)] - IMAGE;
            image[at + random_u64() % 0x400] ^= (uint8_t)(1u << random_u64() % 8);
        }
        read_all(&python);
    }
}

static int peek_noise(const pl_reader *reader, uint64_t address, void *buffer, size_t n)
{
    (void)reader;
    n_peeks++;
    if (address == RUNTIME && n >= 352)
        return peek_image(reader, address, buffer, n); /* so that 3.13 and later go on */
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = random_u64() & 3 ? random_u64() % (1u << 30) & ~UINT64_C(7) : random_u64();
        memcpy((uint8_t *)buffer + i, &word, n - i < 8 ? n - i : 8);
    }
    return 0;
}

static void noise_is_survived(void **state)
{
    (void)state;
    const pl_reader noise = {.peek = peek_noise};
    for (int round = 0; round < 20000; round++) {
        pl_python python = make_image(versions[(size_t)round % PL_COUNT_OF(versions)]);
        python.reader = &noise;
        read_all(&python);
    }
}

static void the_process_reader_fails_where_a_copy_would_crash(void **state)
{
    (void)state;
    pl_reader reader = pl_reader_process(getpid());
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(two != MAP_FAILED);
    two[page - 1] = 42;
    assert_int_equal(munmap(two + page, page), 0);

    uint8_t bytes[2] = {0};
    uint64_t last = (uint64_t)(uintptr_t)two + page - 1;
    errno = 1234;
    assert_int_equal(reader.peek(&reader, last, bytes, 1), 0);
    assert_int_equal(bytes[0], 42);
    assert_int_equal(reader.peek(&reader, last, bytes, 2), -EFAULT);
    assert_int_equal(reader.peek(&reader, last + 1, bytes, 1), -EFAULT);
    assert_int_equal(errno, 1234);
    munmap(two, page);
}

static void impossible_addresses_are_not_followed_even_in_own_memory(void **state)
{
    (void)state;
    static const uint64_t addresses[] = {0, 8, PL_ADDRESSES_END, UINT64_C(1) << 63,
                                         UINT64_MAX - 999};
    for (size_t i = 0; i < PL_COUNT_OF(addresses); i++) {
        pl_python python = {&pl_reader_own, 0x030b02f0, addresses[i]};
        pl_python_spot spot = {.code = addresses[i]};
        pl_python_frame frame;
        pl_python_thread thread;
        assert_int_equal(pl_python_threads(&python, &thread, 1), -EAGAIN);
        assert_int_equal(pl_python_spots(&python, addresses[i], &spot, 1), 0);
        assert_int_equal(pl_python_describe(&python, &spot, &frame), -EFAULT);
        assert_false(pl_python_runs(&python, addresses[i]));
    }
}

static void a_users_file_is_told_from_a_librarys(void **state)
{
    (void)state;
    static const char *const users[] = {
        "/home/ada/train.py",
        "train.py",
        "<stdin>",
        "<string>",
        "",
        "/tmp/ipykernel_123/456.py",
        "/srv/lib/python/a.py",
        "<ipython-input-3-0af1>",
        "/home/ada/plimsoll/train.py", /* a folder of the name is not the package */
        "/home/ada/plimsoll/tf/model.py",
        "/home/ada/my-plimsoll/errors.py",
        "/home/ada/tf/_ops/creation.py",
        "/home/ada/plimsoll/",
    };
    static const char *const others[] = {
        "/usr/lib/python3.11/json/decoder.py",
        "/usr/lib/python3/dist-packages/numpy/core/numeric.py",
        "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py",
        "C/site-packages/x.py",
        "/opt/app/dist-packages/x.py",
        "<frozen importlib._bootstrap>",
        "<__array_function__ internals>",
        "/usr/lib/python3/dist-packages/plimsoll/tf/_ops/creation.py", /* the Debian package */
        "/usr/local/lib/plimsoll/python/plimsoll/tf/_ops/creation.py", /* make install */
        "/home/ada/plimsoll/python/plimsoll/tf/_ops/creation.py",      /* in place */
        "/tmp/app.pyz/plimsoll/__init__.py",
        "lent/plimsoll/notebook/limit.py", /* a link, or a folder that PYTHONPATH names */
        "plimsoll/errors.py",              /* a program frozen whole */
        "a-path-whose-head-was-cut-off/plimsoll/tf/data/_dataset.py",
    };
    for (size_t i = 0; i < PL_COUNT_OF(users); i++)
        if (!pl_python_is_users(users[i]))
            fail_msg("'%s' is the user's", users[i]);
    for (size_t i = 0; i < PL_COUNT_OF(others); i++)
        if (pl_python_is_users(others[i]))
            fail_msg("'%s' is not the user's", others[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_and_who_runs_are_found_in_every_layout),
        cmocka_unit_test(frames_are_read_in_every_layout),
        cmocka_unit_test(spots_name_code_and_instruction),
        cmocka_unit_test(a_thread_that_let_go_does_not_run),
        cmocka_unit_test(a_state_of_another_interpreter_passes_if_that_knows_its_threads),
        cmocka_unit_test(a_copy_that_is_not_there_ends_the_stack),
        cmocka_unit_test(frames_that_python_hides_are_left_out),
        cmocka_unit_test(what_is_no_code_object_ends_the_stack),
        cmocka_unit_test(a_thread_of_no_interpreter_is_none),
        cmocka_unit_test(rings_end),
        cmocka_unit_test(only_final_releases_of_known_versions_are_read),
        cmocka_unit_test(a_description_that_makes_no_sense_is_not_read),
        cmocka_unit_test(every_width_of_character_becomes_utf8),
        cmocka_unit_test(the_tail_of_a_long_path_is_kept_in_whole_characters),
        cmocka_unit_test(strings_of_another_make_are_refused),
        cmocka_unit_test(lnotab_is_decoded),
        cmocka_unit_test(ranges_are_decoded),
        cmocka_unit_test(locations_are_decoded),
        cmocka_unit_test(malformed_locations_have_no_line),
        cmocka_unit_test(flipped_bits_are_survived),
        cmocka_unit_test(noise_is_survived),
        cmocka_unit_test(the_process_reader_fails_where_a_copy_would_crash),
        cmocka_unit_test(impossible_addresses_are_not_followed_even_in_own_memory),
        cmocka_unit_test(a_users_file_is_told_from_a_librarys),
    };
    return cmocka_run_group_tests_name("python_probe", tests, NULL, NULL);
}
