/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a place in a code object: its file and function, and the line of an instruction. */
#include "probe/code.h"

#include <errno.h>

#include "probe/lines.h"
#include "probe/reader.h"

/* Replaces characters that have no place in a report: half of a surrogate pair (Python's form for
 * file names that are not UTF-8), NUL, and numbers that are not characters. */
#define REPLACEMENT_CHARACTER 0xfffdu

/* The longest type name that is compared, with its NUL. */
enum { TYPE_NAME_BYTES = 8 };

bool pl_python_type_is(const pl_reader *reader, const pl_python_offsets *offsets, uint64_t type,
                       const char *name)
{
    uint8_t scratch[TYPE_NAME_BYTES];
    uint64_t pointer_scratch;
    size_t n = strlen(name) + 1;
    if (n > sizeof(scratch))
        return false;
    const uint8_t *pointer =
        pl_view(reader, type + offsets->type_name, &pointer_scratch, sizeof(pointer_scratch));
    if (!pointer)
        return false;
    const uint8_t *text = pl_view(reader, pl_load_u64(pointer, 0), scratch, n);
    return text && memcmp(text, name, n) == 0;
}

/* The characters of a compact str, at any address. */
struct text {
    uint64_t address; /* of the first character */
    uint64_t n_characters;
    uint32_t width; /* bytes of each: 1, 2 or 4 */
};

static int text_find(const pl_reader *reader, const pl_python_offsets *offsets, uint64_t object,
                     struct text *ret_text)
{
    uint8_t scratch[PL_PYTHON_HEAD_BYTES_MAX];
    const uint8_t *head = pl_view(reader, object, scratch, offsets->text_ascii_bytes);
    if (!head)
        return -EFAULT;
    if (!pl_python_type_is(reader, offsets, pl_load_u64(head, offsets->object_type), "str"))
        return PL_EFORMAT;

    /* struct { interned; kind:3; compact:1; ascii:1; ... } from the lowest bit up. */
    uint32_t state = pl_load_u32(head, offsets->text_state) >> offsets->text_kind_bit;
    uint32_t width = state & 7;
    bool is_compact = (state >> 3) & 1;
    bool is_ascii = (state >> 4) & 1;
    uint64_t n_characters = pl_load_u64(head, offsets->text_length);
    if (!is_compact || (width != 1 && width != 2 && width != 4) || n_characters > PL_GIB)
        return PL_EFORMAT;

    *ret_text = (struct text){
        .address = object + (is_ascii ? offsets->text_ascii_bytes : offsets->text_compact_bytes),
        .n_characters = n_characters,
        .width = width,
    };
    return 0;
}

static uint32_t character_at(const uint8_t *characters, uint32_t width, size_t index)
{
    uint32_t c = 0;
    memcpy(&c, characters + index * width, width); /* little-endian, as x86-64 is */
    bool is_surrogate = c >= 0xd800 && c < 0xe000;
    return c == 0 || is_surrogate || c > 0x10ffff ? REPLACEMENT_CHARACTER : c;
}

static size_t utf8_bytes(uint32_t c)
{
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

static char *utf8_put(char *out, uint32_t c)
{
    static const uint8_t lead[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    size_t n = utf8_bytes(c);
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return out + n;
}

/* The tail of a str as UTF-8: as many whole characters as fit before the NUL. The tail
 * distinguishes a path, or a nested function, from its neighbours. */
static int text_read(const pl_reader *reader, const pl_python_offsets *offsets, uint64_t object,
                     char *out, size_t out_bytes)
{
    struct text text;
    int r = text_find(reader, offsets, object, &text);
    if (r < 0)
        return r;

    uint8_t scratch[4 * sizeof(((pl_python_frame *)NULL)->file)];
    size_t n = pl_min_u64(text.n_characters, pl_min_u64(out_bytes - 1, sizeof(scratch) / 4));
    uint64_t address = text.address + (text.n_characters - n) * text.width;
    const uint8_t *characters = pl_view(reader, address, scratch, n * text.width);
    if (!characters)
        return -EFAULT;

    size_t first = n;
    size_t room = out_bytes - 1;
    while (first > 0) {
        size_t needed = utf8_bytes(character_at(characters, text.width, first - 1));
        if (needed > room)
            break;
        room -= needed;
        first--;
    }
    for (size_t i = first; i < n; i++)
        out = utf8_put(out, character_at(characters, text.width, i));
    *out = '\0';
    return 0;
}

/* Returns 0 when there is no table, or it has no line for the instruction. */
static uint32_t line_of(const pl_reader *reader, const pl_python_offsets *offsets, uint64_t table,
                        uint32_t first_line, uint64_t instruction)
{
    uint8_t scratch[PL_PYTHON_HEAD_BYTES_MAX];
    const uint8_t *head = pl_view(reader, table, scratch, offsets->bytes_data);
    if (!head ||
        !pl_python_type_is(reader, offsets, pl_load_u64(head, offsets->object_type), "bytes"))
        return 0;
    pl_line_table lines = {
        .reader = reader,
        .format = offsets->lines,
        .address = table + offsets->bytes_data,
        .n_bytes = pl_load_u64(head, offsets->bytes_size),
        .first_line = first_line,
    };
    return pl_line_table_find(&lines, instruction);
}

int pl_python_code_describe(const pl_reader *reader, const pl_python_offsets *offsets,
                            uint64_t code, uint64_t instruction, pl_python_frame *ret_frame)
{
    uint8_t scratch[PL_PYTHON_CODE_BYTES_MAX];
    const uint8_t *view = pl_view(reader, code, scratch, offsets->code_bytes);
    if (!view)
        return -EFAULT;
    if (!pl_python_type_is(reader, offsets, pl_load_u64(view, offsets->object_type), "code"))
        return PL_EFORMAT;

    pl_python_frame frame = {0};
    int r = text_read(reader, offsets, pl_load_u64(view, offsets->code_file), frame.file,
                      sizeof(frame.file));
    if (r < 0)
        return r;
    r = text_read(reader, offsets, pl_load_u64(view, offsets->code_function), frame.function,
                  sizeof(frame.function));
    if (r < 0)
        return r;
    frame.line = line_of(reader, offsets, pl_load_u64(view, offsets->code_lines),
                         pl_load_u32(view, offsets->code_first_line), instruction);
    *ret_frame = frame;
    return 0;
}
