/* SPDX-License-Identifier: Apache-2.0 */
/* The table of offsets. It is compared with CPython's own headers by tests/run/test_python_probe.py
 * for every version whose headers are installed. */
#include "probe/offsets.h"
#include "probe/reader.h"

/* 3.8 to 3.10 differ in the GIL's place, f_lasti and the line table. */
#define FRAME_OBJECT_OFFSETS                                                                       \
    .runtime_main = 40, .interp_threads = 8, .state_next = 8, .state_interp = 16,                  \
    .state_frame = 24, .state_ident = 176, .has_frame_objects = true, .frame_code = 32,            \
    .frame_previous = 24, .frame_bytes = 112, .code_file = 104, .code_function = 112,              \
    .code_lines = 120, .code_first_line = 40, .code_bytes = 128, .text_ascii_bytes = 48,           \
    .text_compact_bytes = 72

static const pl_python_offsets offsets_3_8 = {
    FRAME_OBJECT_OFFSETS,  .runtime_current = 1368,         .frame_instruction = 104,
    .lasti_unit_bytes = 1, .lines = PL_PYTHON_LINES_LNOTAB,
};

static const pl_python_offsets offsets_3_9 = {
    FRAME_OBJECT_OFFSETS,  .runtime_current = 568,          .frame_instruction = 104,
    .lasti_unit_bytes = 1, .lines = PL_PYTHON_LINES_LNOTAB,
};

static const pl_python_offsets offsets_3_10 = {
    FRAME_OBJECT_OFFSETS,  .runtime_current = 568,          .frame_instruction = 96,
    .lasti_unit_bytes = 2, .lines = PL_PYTHON_LINES_RANGES,
};

static const pl_python_offsets offsets_3_11 = {
    .runtime_main = 48,
    .runtime_current = 576,
    .interp_threads = 16,
    .state_next = 8,
    .state_interp = 16,
    .state_frame = 56,
    .state_ident = 152,
    .state_tid = 160,
    .has_cframe = true,
    .cframe_frame = 8,
    .frame_code = 32,
    .frame_previous = 48,
    .frame_instruction = 56,
    .frame_owner = 69,
    .frame_bytes = 72,
    .code_file = 112,
    .code_function = 128,
    .code_lines = 136,
    .code_first_line = 72,
    .code_first_traceable = 168,
    .code_instructions = 184,
    .code_bytes = 184,
    .lines = PL_PYTHON_LINES_LOCATIONS,
    .text_ascii_bytes = 48,
    .text_compact_bytes = 72,
};

static const pl_python_offsets offsets_3_12 = {
    .runtime_main = 48,
    .interp_threads = 72,
    .interp_gil = 384,
    .gil_holder = 8,
    .gil_locked = 16,
    .state_next = 8,
    .state_interp = 16,
    .state_frame = 56,
    .state_ident = 136,
    .state_tid = 144,
    .has_cframe = true,
    .cframe_frame = 0,
    .frame_code = 0,
    .frame_previous = 8,
    .frame_instruction = 56,
    .frame_owner = 70,
    .frame_bytes = 72,
    .code_file = 112,
    .code_function = 128,
    .code_lines = 136,
    .code_first_line = 68,
    .code_first_traceable = 176,
    .code_instructions = 192,
    .code_bytes = 192,
    .lines = PL_PYTHON_LINES_LOCATIONS,
    .text_ascii_bytes = 40,
    .text_compact_bytes = 56,
};

/* _Py_DebugOffsets of 3.13, which opens _PyRuntime: its fields as 8-byte words. The table itself
 * keeps its shape from 3.13.0 on, while what it describes differs between builds. */
enum debug_word {
    DEBUG_COOKIE = 0,
    DEBUG_VERSION = 1,
    DEBUG_FREE_THREADED = 2,
    DEBUG_RUNTIME_HEAD = 5,
    DEBUG_INTERP_THREADS = 9,
    DEBUG_INTERP_GIL = 14,
    DEBUG_INTERP_OWN_GIL = 15,
    DEBUG_INTERP_OWN_GIL_LOCKED = 17,
    DEBUG_INTERP_OWN_GIL_HOLDER = 18,
    DEBUG_STATE_NEXT = 21,
    DEBUG_STATE_INTERP = 22,
    DEBUG_STATE_FRAME = 23,
    DEBUG_STATE_IDENT = 24,
    DEBUG_STATE_TID = 25,
    DEBUG_FRAME_PREVIOUS = 29,
    DEBUG_FRAME_CODE = 30,
    DEBUG_FRAME_INSTRUCTION = 31,
    DEBUG_FRAME_LOCALS = 32,
    DEBUG_FRAME_OWNER = 33,
    DEBUG_CODE_FILE = 35,
    DEBUG_CODE_QUALNAME = 37,
    DEBUG_CODE_LINES = 38,
    DEBUG_CODE_FIRST_LINE = 39,
    DEBUG_CODE_INSTRUCTIONS = 43,
    DEBUG_WORDS = 44,
};

/* The offset of an 8-byte field, which must end within `limit`; else *fits becomes false. */
static uint32_t debug_offset(const uint8_t *table, enum debug_word word, uint64_t limit, bool *fits)
{
    uint64_t offset = pl_load_u64(table, (size_t)word * 8);
    if (offset > limit || limit - offset < 8)
        *fits = false;
    return (uint32_t)offset;
}

static bool fill_state_offsets(const uint8_t *table, pl_python_offsets *ret)
{
    /* The interpreter's structure holds its arenas and caches: 195 kB in 3.13.0. */
    const uint64_t interp_limit = PL_MIB;
    bool fits = true;
    ret->runtime_main = 8 + debug_offset(table, DEBUG_RUNTIME_HEAD, PL_MIB, &fits);
    ret->interp_threads = debug_offset(table, DEBUG_INTERP_THREADS, interp_limit, &fits);
    ret->interp_gil = debug_offset(table, DEBUG_INTERP_GIL, interp_limit, &fits);
    /* Of the GIL inside the interpreter; interp_gil may point to another one of the same make. */
    uint32_t gil = debug_offset(table, DEBUG_INTERP_OWN_GIL, interp_limit, &fits);
    ret->gil_holder = debug_offset(table, DEBUG_INTERP_OWN_GIL_HOLDER, interp_limit, &fits) - gil;
    ret->gil_locked = debug_offset(table, DEBUG_INTERP_OWN_GIL_LOCKED, interp_limit, &fits) - gil;
    fits = fits && ret->gil_holder < 4096 && ret->gil_locked < 4096;
    ret->state_next = debug_offset(table, DEBUG_STATE_NEXT, PL_PYTHON_STATE_BYTES, &fits);
    ret->state_interp = debug_offset(table, DEBUG_STATE_INTERP, PL_PYTHON_STATE_BYTES, &fits);
    ret->state_frame = debug_offset(table, DEBUG_STATE_FRAME, PL_PYTHON_STATE_BYTES, &fits);
    ret->state_ident = debug_offset(table, DEBUG_STATE_IDENT, PL_PYTHON_STATE_BYTES, &fits);
    ret->state_tid = debug_offset(table, DEBUG_STATE_TID, PL_PYTHON_STATE_BYTES, &fits);
    return fits;
}

static bool fill_frame_offsets(const uint8_t *table, pl_python_offsets *ret)
{
    bool fits = true;
    uint32_t end = debug_offset(table, DEBUG_FRAME_LOCALS, PL_PYTHON_FRAME_BYTES_MAX, &fits);
    ret->frame_bytes = end;
    ret->frame_code = debug_offset(table, DEBUG_FRAME_CODE, end, &fits);
    ret->frame_previous = debug_offset(table, DEBUG_FRAME_PREVIOUS, end, &fits);
    ret->frame_instruction = debug_offset(table, DEBUG_FRAME_INSTRUCTION, end, &fits);
    ret->frame_owner = debug_offset(table, DEBUG_FRAME_OWNER, end + 7, &fits); /* one byte */

    end = debug_offset(table, DEBUG_CODE_INSTRUCTIONS, PL_PYTHON_CODE_BYTES_MAX, &fits);
    ret->code_bytes = end;
    ret->code_instructions = end;
    ret->code_first_traceable = end - 16; /* the one field that the table leaves out */
    ret->code_file = debug_offset(table, DEBUG_CODE_FILE, end, &fits);
    ret->code_function = debug_offset(table, DEBUG_CODE_QUALNAME, end, &fits);
    ret->code_lines = debug_offset(table, DEBUG_CODE_LINES, end, &fits);
    ret->code_first_line = debug_offset(table, DEBUG_CODE_FIRST_LINE, end, &fits);
    return fits && end >= 16;
}

/* A build without the GIL has other object headers: it is not read. */
static const pl_python_offsets *offsets_3_13(const pl_python *python, pl_python_offsets *scratch)
{
    uint8_t buffer[DEBUG_WORDS * 8];
    const uint8_t *table = pl_view(python->reader, python->runtime, buffer, sizeof(buffer));
    if (!table || memcmp(table, "xdebugpy", 8) != 0 ||
        pl_load_u64(table, DEBUG_VERSION * 8) >> 16 != python->version >> 16 ||
        pl_load_u64(table, DEBUG_FREE_THREADED * 8) != 0)
        return NULL;
    *scratch = (pl_python_offsets){
        .lines = PL_PYTHON_LINES_LOCATIONS,
        .text_ascii_bytes = 40,
        .text_compact_bytes = 56,
    };
    return fill_state_offsets(table, scratch) && fill_frame_offsets(table, scratch) ? scratch
                                                                                    : NULL;
}

/* Final releases only: layouts still move between release candidates (3.13.0rc1 to rc3 did). */
bool pl_python_supported(uint32_t version)
{
#ifdef __x86_64__
    uint32_t minor = version >> 16;
    return minor >= 0x0308 && minor <= 0x030d && (version & 0xf0) == 0xf0;
#else
    (void)version;
    return false;
#endif
}

const pl_python_offsets *pl_python_offsets_of(const pl_python *python, pl_python_offsets *scratch)
{
    static const pl_python_offsets *const known[] = {
        &offsets_3_8, &offsets_3_9, &offsets_3_10, &offsets_3_11, &offsets_3_12,
    };
    if (!pl_python_supported(python->version))
        return NULL;
    uint32_t index = (python->version >> 16) - 0x0308;
    return index < PL_COUNT_OF(known) ? known[index] : offsets_3_13(python, scratch);
}
