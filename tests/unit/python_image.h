/* SPDX-License-Identifier: Apache-2.0 */
/* Python's structures, made by hand at made-up addresses in every supported layout, and a reader
 * that knows nothing else. For the tests of the probe. */
#ifndef PL_TESTS_PYTHON_IMAGE_H
#define PL_TESTS_PYTHON_IMAGE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probe/offsets.h"
#include "probe/python.h"
#include "probe/reader.h"

enum {
    IMAGE_BYTES = 0xa000,
    N_FRAMES = 3,
    FIRST_LINE = 40,
    FIRST_TRACEABLE = 2, /* of the code object, in code units */
};

/* Where everything is; made so that each fits in every version. */
enum {
    IMAGE = 0x10000000,
    RUNTIME = IMAGE,
    INTERP = IMAGE + 0x1000, /* 3.13 keeps its threads 7344 bytes into it */
    COPIES =
        IMAGE + 0x3000,     /* of the bytecode: an array of pointers to them; the second 0x100 on */
    STATE = IMAGE + 0x4000, /* and a second one 0x400 above */
    CFRAME = IMAGE + 0x4800,
    FRAME = IMAGE + 0x5000, /* 0x100 each */
    CODE = IMAGE + 0x6000,
    TYPES = IMAGE + 0x6400,
    LINES = IMAGE + 0x7000,
    FUNCTION = IMAGE + 0x8000,
    FILE_NAME = IMAGE + 0x9000,
};

static uint8_t image[IMAGE_BYTES];
static uint64_t n_peeks;

static inline int peek_image(const pl_reader *reader, uint64_t address, void *buffer, size_t n)
{
    (void)reader;
    n_peeks++;
    if (address < IMAGE || address - IMAGE > IMAGE_BYTES || IMAGE_BYTES - (address - IMAGE) < n)
        return -EFAULT;
    memcpy(buffer, image + (address - IMAGE), n);
    return 0;
}

static const pl_reader image_reader = {.peek = peek_image};

/* The last is a free-threaded build. */
static const uint32_t versions[] = {
    0x030812f0, 0x030912f0, 0x030a0df0, 0x030b02f0, 0x030c01f0,
    0x030d00f0, 0x030f02f0, 0x030e0af0, 0x030e07f0,
};

static inline pl_python python_of(uint32_t version)
{
    return (pl_python){.reader = &image_reader, .version = version, .runtime = RUNTIME};
}

static inline void put_u64(uint64_t address, uint64_t value)
{
    memcpy(image + (address - IMAGE), &value, sizeof(value));
}

static inline void put_u32(uint64_t address, uint32_t value)
{
    memcpy(image + (address - IMAGE), &value, sizeof(value));
}

static inline void put_type(const pl_python_offsets *offsets, uint64_t address, const char *name)
{
    put_u64(address + offsets->type_name, address + 0x40);
    memcpy(image + (address - IMAGE) + 0x40, name, strlen(name) + 1);
}

static inline void put_text(const pl_python_offsets *offsets, uint64_t address,
                            const void *characters, uint32_t width, bool is_ascii, size_t n)
{
    put_u64(address + offsets->object_type, TYPES + 0x100);
    put_u64(address + offsets->text_length, n);
    uint32_t kind = width | 1u << 3 | (uint32_t)is_ascii << 4;
    put_u32(address + offsets->text_state, kind << offsets->text_kind_bit | 2); /* interned */
    uint32_t head = is_ascii ? offsets->text_ascii_bytes : offsets->text_compact_bytes;
    memcpy(image + (address - IMAGE) + head, characters, n * width);
}

static inline void put_bytes(const pl_python_offsets *offsets, uint64_t address,
                             const uint8_t *bytes, size_t n)
{
    put_u64(address + offsets->object_type, TYPES + 0x200);
    put_u64(address + offsets->bytes_size, n);
    memcpy(image + (address - IMAGE) + offsets->bytes_data, bytes, n);
}

/* Instruction i is on line FIRST_LINE + i, in each format. */
static inline void put_lines(const pl_python_offsets *offsets)
{
    enum pl_python_lines format = offsets->lines;
    uint8_t table[60];
    for (size_t i = 0; i < 20; i++) {
        uint8_t step = i > 0;
        if (format == PL_PYTHON_LINES_LOCATIONS)
            memcpy(table + 3 * i, (uint8_t[]){0x80 | (uint8_t)(10 + step) << 3, 1, 2}, 3);
        else
            memcpy(table + 2 * i, (uint8_t[]){2, format == PL_PYTHON_LINES_LNOTAB ? 1 : step}, 2);
    }
    put_bytes(offsets, LINES, table, format == PL_PYTHON_LINES_LOCATIONS ? 60 : 40);
}

static inline void put_code(const pl_python_offsets *offsets)
{
    put_type(offsets, TYPES, "code");
    put_type(offsets, TYPES + 0x100, "str");
    put_type(offsets, TYPES + 0x200, "bytes");
    put_text(offsets, FILE_NAME, "/home/ada/train.py", 1, true, 18);
    put_text(offsets, FUNCTION, "f\xfcr", 1, false, 3);
    put_lines(offsets);
    put_u64(CODE + offsets->object_type, TYPES);
    put_u64(CODE + offsets->code_file, FILE_NAME);
    put_u64(CODE + offsets->code_function, FUNCTION);
    put_u64(CODE + offsets->code_lines, LINES);
    put_u32(CODE + offsets->code_first_line, FIRST_LINE);
    if (!offsets->has_frame_objects)
        put_u32(CODE + offsets->code_first_traceable, FIRST_TRACEABLE);
    if (offsets->code_bytecodes) {
        put_u64(CODE + offsets->code_bytecodes, COPIES);
        put_u64(COPIES, 2);
        put_u64(COPIES + 8, CODE + offsets->code_instructions);
        put_u64(COPIES + 16, COPIES + 0x100);
    }
}

static inline uint64_t frame_at(int i)
{
    return (uint64_t)FRAME + 0x100 * (uint64_t)i;
}

static inline void put_frame(const pl_python_offsets *offsets, int i, int instruction, int owner)
{
    uint64_t frame = frame_at(i);
    uint64_t bytecode = CODE + offsets->code_instructions;
    put_u64(frame + offsets->frame_code, CODE);
    put_u64(frame + offsets->frame_previous, i + 1 < N_FRAMES ? frame_at(i + 1) : 0);
    if (offsets->has_frame_objects) {
        put_u32(frame + offsets->frame_instruction,
                (uint32_t)(instruction * 2 / (int)offsets->lasti_unit_bytes));
        return;
    }
    if (offsets->code_bytecodes) {
        put_u64(frame + offsets->frame_code, CODE | 1); /* a deferred reference */
        put_u32(frame + offsets->frame_bytecode, (uint32_t)i % 2);
        bytecode = i % 2 ? COPIES + 0x100 : bytecode;
    }
    put_u64(frame + offsets->frame_instruction, bytecode + (uint64_t)(int64_t)(2 * instruction));
    image[frame - IMAGE + offsets->frame_owner] = (uint8_t)owner;
}

static inline void put_threads(const pl_python_offsets *offsets)
{
    put_u64(RUNTIME + offsets->runtime_main, INTERP);
    put_u64(INTERP + offsets->interp_threads, STATE);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t state = STATE + 0x400 * i;
        put_u64(state + offsets->state_next, i == 0 ? STATE + 0x400 : 0);
        put_u64(state + offsets->state_interp, INTERP);
        put_u64(state + offsets->state_ident, 7000 + i);
        if (offsets->state_tid)
            put_u64(state + offsets->state_tid, 100 + i);
    }
    put_u64(STATE + offsets->state_frame, offsets->has_cframe ? (uint64_t)CFRAME : frame_at(0));
    if (offsets->has_cframe)
        put_u64(CFRAME + offsets->cframe_frame, frame_at(0));
    if (offsets->runtime_current)
        put_u64(RUNTIME + offsets->runtime_current, STATE);
    else
        put_u32(STATE + offsets->state_status, 0x1b); /* initialized, bound, active */
}

/* What _PyRuntime begins with, after the cookie: as words of 8 bytes there. */
static const uint32_t description_3_13[] = {
    0x30d00f0, 0,  283320, 608,  632, 194968, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16,
    7752,      0,  7768,   7760, 304, 0,      8,    16,   72,   152,  160,  232,  32,   80,
    8,         0,  56,     72,   70,  208,    112,  120,  128,  136,  68,   52,   96,   104,
    200,       16, 8,      416,  24,  88,     168,  32,   24,   16,   40,   24,   16,   48,
    32,        40, 24,     16,   32,  16,     24,   40,   16,   32,   64,   32,   16,   40};

static const uint32_t description_3_14[] = {
    0x30e0af0, 0,    316616, 784,  808,  225864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680,
    16,        7784, 0,      7800, 7792, 7992,   0,    832,  0,    8,    16,   72,   152,  160,
    232,       32,   88,     8,    0,    56,     80,   74,   64,   0,    216,  112,  120,  128,
    136,       68,   52,     96,   104,  208,    0,    16,   8,    416,  24,   88,   168,  40,
    32,        16,   40,     24,   16,   200,    24,   40,   32,   48,   32,   40,   24,   16,
    32,        16,   24,     40,   16,   32,     64,   32,   16,   40};

static const uint32_t description_3_14t[] = {
    0x30e07f0, 1,    362368, 784,  808,  246720, 7280,  7272, 7344, 7360, 7408, 7712, 7696, 7704,
    16,        7808, 0,      7832, 7824, 8024,   17628, 832,  0,    8,    16,   72,   152,  160,
    232,       32,   88,     8,    0,    56,     80,    78,   64,   72,   240,  128,  136,  144,
    152,       84,   68,     112,  120,  232,    224,   32,   24,   432,  40,   104,  184,  56,
    48,        32,   56,     40,   32,   216,    40,    56,   48,   64,   48,   56,   40,   32,
    48,        32,   40,     56,   32,   48,     80,    48,   32,   56};

static const uint32_t description_3_15[] = {
    0x30f02f0, 0,    346568, 912,  936,  226240, 7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584,
    16,        7736, 0,      7752, 7744, 7944,   0,    888,  0,    8,    16,   72,   80,   88,
    96,        176,  184,    256,  32,   36,     40,   136,  288,  0,    88,   8,    0,    56,
    80,        74,   64,     0,    216,  112,    120,  128,  136,  68,   52,   96,   104,  208,
    0,         16,   8,      424,  24,   88,     168,  32,   288,  944,  888,  40,   32,   16,
    40,        24,   16,     200,  24,   40,     32,   48,   32,   40,   24,   16,   32,   16,
    24,        40,   16,     32,   64,   32,     16,   40};

static inline void put_description(uint32_t version)
{
#define DESCRIPTION(name)                                                                          \
    {                                                                                              \
        description_##name, PL_COUNT_OF(description_##name)                                        \
    }
    static const struct {
        const uint32_t *words;
        size_t n;
    } all[] = {DESCRIPTION(3_13), DESCRIPTION(3_14), DESCRIPTION(3_14t), DESCRIPTION(3_15)};
#undef DESCRIPTION
    for (size_t i = 0; i < PL_COUNT_OF(all); i++)
        if (all[i].words[0] == version) {
            memcpy(image, "xdebugpy", 8);
            for (size_t k = 0; k < all[i].n; k++)
                put_u64(RUNTIME + 8 * (k + 1), all[i].words[k]);
        }
}

/* A thread with three frames, at instructions 5, 6 and 7, and one with none. */
static inline pl_python make_image(uint32_t version)
{
    memset(image, 0, sizeof(image));
    put_description(version);
    pl_python python = python_of(version);
    pl_python_offsets scratch;
    const pl_python_offsets *offsets = pl_python_offsets_of(&python, &scratch);
    if (!offsets)
        abort();
    put_threads(offsets);
    put_code(offsets);
    for (int i = 0; i < N_FRAMES; i++)
        put_frame(offsets, i, 5 + i, 0);
    return python;
}

#endif
