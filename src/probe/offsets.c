/* SPDX-License-Identifier: Apache-2.0 */
/* The offsets for a version: from a table up to 3.12, from CPython's own description from 3.13 on.
 * tests/run/test_python_probe.py compares them with CPython's headers for every version whose
 * headers are installed. */
#include "probe/offsets.h"

#include <pthread.h>

#include "probe/reader.h"

/* The objects of every build with a GIL. */
#define OBJECT_OFFSETS                                                                             \
    .object_type = 8, .type_name = 24, .bytes_size = 16, .bytes_data = 32, .text_length = 16,      \
    .text_state = 32, .text_kind_bit = 2

/* Two mutexes precede the GIL's holder in _PyRuntime; glibc's has 40 bytes, on arm64 48. The rest
 * is the same on both machines. */
enum { MUTEXES_MORE_BYTES = 2 * (sizeof(pthread_mutex_t) - 40) };

/* 3.8 to 3.10 differ in the GIL's place, f_lasti and the line table. */
#define FRAME_OBJECT_OFFSETS                                                                       \
    OBJECT_OFFSETS, .runtime_main = 40, .interp_threads = 8, .state_next = 8, .state_interp = 16,  \
                    .state_frame = 24, .state_ident = 176, .has_frame_objects = true,              \
                    .frame_code = 32, .frame_previous = 24, .frame_bytes = 112, .code_file = 104,  \
                    .code_function = 112, .code_lines = 120, .code_first_line = 40,                \
                    .code_bytes = 128, .text_ascii_bytes = 48, .text_compact_bytes = 72

static const pl_python_offsets offsets_3_8 = {
    FRAME_OBJECT_OFFSETS,
    .runtime_current = 1368 + MUTEXES_MORE_BYTES,
    .frame_instruction = 104,
    .lasti_unit_bytes = 1,
    .lines = PL_PYTHON_LINES_LNOTAB,
};

static const pl_python_offsets offsets_3_9 = {
    FRAME_OBJECT_OFFSETS,
    .runtime_current = 568 + MUTEXES_MORE_BYTES,
    .frame_instruction = 104,
    .lasti_unit_bytes = 1,
    .lines = PL_PYTHON_LINES_LNOTAB,
};

static const pl_python_offsets offsets_3_10 = {
    FRAME_OBJECT_OFFSETS,
    .runtime_current = 568 + MUTEXES_MORE_BYTES,
    .frame_instruction = 96,
    .lasti_unit_bytes = 2,
    .lines = PL_PYTHON_LINES_RANGES,
};

static const pl_python_offsets offsets_3_11 = {
    OBJECT_OFFSETS,           .runtime_main = 48,       .runtime_current = 576 + MUTEXES_MORE_BYTES,
    .interp_threads = 16,     .state_next = 8,          .state_interp = 16,
    .state_frame = 56,        .state_ident = 152,       .state_tid = 160,
    .has_cframe = true,       .cframe_frame = 8,        .frame_code = 32,
    .frame_previous = 48,     .frame_instruction = 56,  .frame_owner = 69,
    .frame_bytes = 72,        .code_file = 112,         .code_function = 128,
    .code_lines = 136,        .code_first_line = 72,    .code_first_traceable = 168,
    .code_instructions = 184, .code_bytes = 184,        .lines = PL_PYTHON_LINES_LOCATIONS,
    .text_ascii_bytes = 48,   .text_compact_bytes = 72,
};

static const pl_python_offsets offsets_3_12 = {
    OBJECT_OFFSETS,           .runtime_main = 48,       .interp_threads = 72,
    .state_next = 8,          .state_interp = 16,       .state_frame = 56,
    .state_ident = 136,       .state_tid = 144,         .state_status = 24,
    .has_cframe = true,       .cframe_frame = 0,        .frame_code = 0,
    .frame_previous = 8,      .frame_instruction = 56,  .frame_owner = 70,
    .frame_bytes = 72,        .code_file = 112,         .code_function = 128,
    .code_lines = 136,        .code_first_line = 68,    .code_first_traceable = 176,
    .code_instructions = 192, .code_bytes = 192,        .lines = PL_PYTHON_LINES_LOCATIONS,
    .text_ascii_bytes = 40,   .text_compact_bytes = 56,
};

/* --- CPython's own description --- */

/* The words that are read from _Py_DebugOffsets, which opens _PyRuntime and is an array of 8-byte
 * words. */
enum described {
    RUNTIME_HEAD,      /* runtime_state.interpreters_head */
    INTERP_THREADS,    /* interpreter_state.threads_head */
    STATE_NEXT,        /* thread_state.next */
    STATE_INTERP,      /* thread_state.interp */
    STATE_FRAME,       /* thread_state.current_frame */
    STATE_IDENT,       /* thread_state.thread_id */
    STATE_TID,         /* thread_state.native_thread_id */
    STATE_STATUS,      /* thread_state.status */
    FRAME_PREVIOUS,    /* interpreter_frame.previous */
    FRAME_CODE,        /* interpreter_frame.executable */
    FRAME_INSTRUCTION, /* interpreter_frame.instr_ptr */
    FRAME_LOCALS,      /* interpreter_frame.localsplus */
    FRAME_OWNER,       /* interpreter_frame.owner */
    FRAME_BYTECODE,    /* interpreter_frame.tlbc_index */
    CODE_FILE,         /* code_object.filename */
    CODE_QUALNAME,     /* code_object.qualname */
    CODE_LINES,        /* code_object.linetable */
    CODE_FIRST_LINE,   /* code_object.firstlineno */
    CODE_INSTRUCTIONS, /* code_object.co_code_adaptive */
    CODE_BYTECODES,    /* code_object.co_tlbc */
    OBJECT_TYPE,       /* pyobject.ob_type */
    TYPE_NAME,         /* type_object.tp_name */
    BYTES_SIZE,        /* bytes_object.ob_size */
    BYTES_DATA,        /* bytes_object.ob_sval */
    TEXT_STATE,        /* unicode_object.state */
    TEXT_LENGTH,       /* unicode_object.length */
    TEXT_ASCII_BYTES,  /* unicode_object.asciiobject_size */
    N_DESCRIBED,
};

/* The index of the word for each member of the enum. Up to now, words were only added, and only
 * between minor versions; their values differ between builds. 0: not described (word 0 is the
 * cookie). */
typedef uint8_t description[N_DESCRIBED];

enum { WORD_VERSION = 1, WORD_FREE_THREADED = 2, N_WORDS = 93 };

static const description descriptions[] = {
    /* 3.13 */ {5,  9,  21, 22, 23, 24, 25, 27, 29, 30, 31, 32, 33, 0,
                35, 37, 38, 39, 43, 0,  45, 47, 65, 66, 68, 69, 70},
    /* 3.14 */ {5,  9,  24, 25, 26, 27, 28, 30, 32, 33, 34, 35, 36, 38,
                40, 42, 43, 44, 48, 49, 51, 53, 75, 76, 78, 79, 80},
    /* 3.15 */ {5,  9,  24, 25, 26, 30, 31, 33, 40, 41, 42, 43, 44, 46,
                48, 50, 51, 52, 56, 57, 59, 61, 87, 88, 90, 91, 92},
};

enum { FIRST_KNOWN = 0x0308, FIRST_DESCRIBED = 0x030d, FIRST_INTERNED_BYTE = 0x030e };

typedef struct word_table {
    const uint8_t *words;
    const uint8_t *word_of;
    bool fits; /* false once an offset lies outside of its structure */
} word_table;

static bool is_described(const word_table *table, enum described what)
{
    uint8_t word = table->word_of[what];
    return word && pl_load_u64(table->words, (size_t)word * 8) != 0;
}

/* Returns the offset of a field of `n` bytes, which must end within `limit`. */
static uint32_t offset_of(word_table *table, enum described what, size_t n, uint64_t limit)
{
    uint64_t offset = pl_load_u64(table->words, (size_t)table->word_of[what] * 8);
    if (offset > limit || limit - offset < n)
        table->fits = false;
    return (uint32_t)offset;
}

static void fill_states(word_table *table, pl_python_offsets *ret)
{
    const uint64_t end = PL_PYTHON_STATE_BYTES;
    ret->runtime_main = 8 + offset_of(table, RUNTIME_HEAD, 16, PL_MIB);
    /* The interpreter's structure holds its arenas and caches: 195 kB in 3.13.0. */
    ret->interp_threads = offset_of(table, INTERP_THREADS, 8, PL_MIB);
    ret->state_next = offset_of(table, STATE_NEXT, 8, end);
    ret->state_interp = offset_of(table, STATE_INTERP, 8, end);
    ret->state_frame = offset_of(table, STATE_FRAME, 8, end);
    ret->state_ident = offset_of(table, STATE_IDENT, 8, end);
    ret->state_tid = offset_of(table, STATE_TID, 8, end);
    ret->state_status = offset_of(table, STATE_STATUS, 4, end);
}

static void fill_frames(word_table *table, pl_python_offsets *ret)
{
    uint32_t end = offset_of(table, FRAME_LOCALS, 0, PL_PYTHON_FRAME_BYTES_MAX);
    ret->frame_bytes = end;
    ret->frame_code = offset_of(table, FRAME_CODE, 8, end);
    ret->frame_previous = offset_of(table, FRAME_PREVIOUS, 8, end);
    ret->frame_instruction = offset_of(table, FRAME_INSTRUCTION, 8, end);
    ret->frame_owner = offset_of(table, FRAME_OWNER, 1, end);
}

/* The instructions come after _co_firsttraceable, the one field that is not described, a pointer
 * and, if threads have copies of the instructions, a pointer to those. */
static void fill_code(word_table *table, pl_python_offsets *ret)
{
    uint32_t end = offset_of(table, CODE_INSTRUCTIONS, 0, PL_PYTHON_CODE_BYTES_MAX);
    ret->code_bytes = end;
    ret->code_instructions = end;
    ret->code_file = offset_of(table, CODE_FILE, 8, end);
    ret->code_function = offset_of(table, CODE_QUALNAME, 8, end);
    ret->code_lines = offset_of(table, CODE_LINES, 8, end);
    ret->code_first_line = offset_of(table, CODE_FIRST_LINE, 4, end);
    ret->code_first_traceable = end - 16;
    if (is_described(table, CODE_BYTECODES)) {
        ret->code_bytecodes = offset_of(table, CODE_BYTECODES, 8, end);
        ret->frame_bytecode = offset_of(table, FRAME_BYTECODE, 4, ret->frame_bytes);
        ret->code_first_traceable = ret->code_bytecodes - 16;
    }
    table->fits = table->fits && ret->code_first_traceable < end;
}

static void fill_objects(word_table *table, pl_python_offsets *ret)
{
    const uint64_t end = PL_PYTHON_HEAD_BYTES_MAX;
    ret->object_type = offset_of(table, OBJECT_TYPE, 8, end);
    ret->type_name = offset_of(table, TYPE_NAME, 8, end);
    ret->bytes_data = offset_of(table, BYTES_DATA, 0, end);
    ret->bytes_size = offset_of(table, BYTES_SIZE, 8, ret->bytes_data);
    ret->text_ascii_bytes = offset_of(table, TEXT_ASCII_BYTES, 0, end);
    ret->text_compact_bytes = ret->text_ascii_bytes + 16; /* length and pointer for UTF-8 */
    ret->text_state = offset_of(table, TEXT_STATE, 4, ret->text_ascii_bytes);
    ret->text_length = offset_of(table, TEXT_LENGTH, 8, ret->text_ascii_bytes);
    /* Every head is viewed up to its data, including the type. */
    table->fits = table->fits && ret->object_type + 8 <= ret->bytes_data &&
                  ret->object_type + 8 <= ret->text_ascii_bytes &&
                  ret->object_type + 8 <= ret->code_bytes;
}

static const pl_python_offsets *read_description(const pl_python *python,
                                                 pl_python_offsets *scratch)
{
    uint8_t buffer[N_WORDS * 8];
    uint32_t minor = python->version >> 16;
    word_table table = {
        .words = pl_view(python->reader, python->runtime, buffer, sizeof(buffer)),
        .word_of = descriptions[minor - FIRST_DESCRIBED],
        .fits = true,
    };
    if (!table.words || memcmp(table.words, "xdebugpy", 8) != 0 ||
        pl_load_u64(table.words, WORD_VERSION * 8) >> 16 != minor)
        return NULL;
    bool is_free_threaded = pl_load_u64(table.words, WORD_FREE_THREADED * 8) != 0;
    *scratch = (pl_python_offsets){
        .is_free_threaded = is_free_threaded,
        .lines = PL_PYTHON_LINES_LOCATIONS,
        /* The interned flag has a byte of its own where threads may change it concurrently. */
        .text_kind_bit = is_free_threaded && minor >= FIRST_INTERNED_BYTE ? 8 : 2,
    };
    fill_states(&table, scratch);
    fill_frames(&table, scratch);
    fill_code(&table, scratch);
    fill_objects(&table, scratch);
    return table.fits ? scratch : NULL;
}

/* Final releases only: layouts still move between release candidates (3.13.0rc1 to rc3 did). */
bool pl_python_supported(uint32_t version)
{
#if defined(__x86_64__) || defined(__aarch64__)
    uint32_t minor = version >> 16;
    return minor >= FIRST_KNOWN && minor < FIRST_DESCRIBED + PL_COUNT_OF(descriptions) &&
           (version & 0xf0) == 0xf0;
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
    uint32_t index = (python->version >> 16) - FIRST_KNOWN;
    return index < PL_COUNT_OF(known) ? known[index] : read_description(python, scratch);
}
