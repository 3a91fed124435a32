/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes line tables. The formats are described in CPython's Objects/lnotab_notes.txt (up to
 * 3.10) and Objects/locations.md (from 3.11). */
#include "probe/lines.h"

#include "probe/reader.h"

enum {
    CODE_UNIT_BYTES = 2,
    PIECE_BYTES = 256,
    /* A table of this size describes over a million instructions; one that claims more is torn. */
    TABLE_BYTES_MAX = 4 << 20,
};

struct stream {
    const pl_reader *reader;
    uint64_t address;
    uint64_t left;        /* not yet viewed */
    const uint8_t *piece; /* in view, from `at` to `end` */
    size_t at;
    size_t end;
    uint8_t scratch[PIECE_BYTES];
};

/* Makes the next byte visible. False at the end, or where memory cannot be read. */
static bool stream_fill(struct stream *stream)
{
    if (PL_LIKELY(stream->at < stream->end))
        return true;
    size_t n = pl_min_u64(stream->left, PIECE_BYTES);
    stream->piece = n == 0 ? NULL : pl_view(stream->reader, stream->address, stream->scratch, n);
    if (!stream->piece)
        return false;
    stream->address += n;
    stream->left -= n;
    stream->at = 0;
    stream->end = n;
    return true;
}

static bool stream_next(struct stream *stream, uint8_t *ret_byte)
{
    if (!stream_fill(stream))
        return false;
    *ret_byte = stream->piece[stream->at++];
    return true;
}

/* Searches pairs (bytes of code, signed lines): a line starts where its pair begins. */
static int64_t find_in_lnotab(struct stream *stream, int64_t line, uint64_t offset)
{
    uint64_t end = 0;
    uint8_t n_code_bytes;
    uint8_t n_lines;
    while (stream_next(stream, &n_code_bytes) && stream_next(stream, &n_lines)) {
        end += n_code_bytes;
        if (end > offset)
            break;
        line += (int8_t)n_lines;
    }
    return line;
}

/* Searches pairs (bytes of code, signed lines): the line changes first, then covers those bytes. */
static int64_t find_in_ranges(struct stream *stream, int64_t line, uint64_t offset)
{
    const int8_t no_line = INT8_MIN;
    uint64_t end = 0;
    uint8_t n_code_bytes;
    uint8_t n_lines;
    while (stream_next(stream, &n_code_bytes) && stream_next(stream, &n_lines)) {
        end += n_code_bytes;
        if ((int8_t)n_lines != no_line)
            line += (int8_t)n_lines;
        if (end > offset)
            return (int8_t)n_lines == no_line ? 0 : line;
    }
    return 0;
}

/* Six bits a byte, lowest first; bit 6 says that more follow. */
static bool read_varint(struct stream *stream, uint32_t *ret_value)
{
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 30; shift += 6) {
        uint8_t byte;
        if (!stream_next(stream, &byte))
            return false;
        value |= (uint32_t)(byte & 0x3f) << shift;
        if (!(byte & 0x40)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

enum location_kind {
    LOCATION_ONE_LINE_FIRST = 10, /* 10, 11, 12: move by that many lines, less 10 */
    LOCATION_ONE_LINE_LAST = 12,
    LOCATION_NO_COLUMNS = 13,
    LOCATION_LONG = 14,
    LOCATION_NONE = 15,
};

/* Reads by how many lines an entry moves, from the first bytes of the entry. */
static bool read_line_delta(struct stream *stream, unsigned kind, int64_t *ret_delta)
{
    *ret_delta = 0;
    if (kind >= LOCATION_ONE_LINE_FIRST && kind <= LOCATION_ONE_LINE_LAST)
        *ret_delta = (int64_t)kind - LOCATION_ONE_LINE_FIRST;
    if (kind != LOCATION_NO_COLUMNS && kind != LOCATION_LONG)
        return true;
    uint32_t value;
    if (!read_varint(stream, &value))
        return false;
    *ret_delta = value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
    return true;
}

/* Skips the columns, which are not needed. Only the first byte of an entry has bit 7. */
static void skip_to_next_entry(struct stream *stream)
{
    while (stream_fill(stream) && !(stream->piece[stream->at] & 0x80))
        stream->at++;
}

static int64_t find_in_locations(struct stream *stream, int64_t line, uint64_t offset)
{
    uint64_t end = 0;
    uint8_t first;
    while (stream_next(stream, &first) && first & 0x80) {
        unsigned kind = (first >> 3) & 15;
        int64_t delta;
        if (!read_line_delta(stream, kind, &delta))
            return 0;
        line += delta;
        end += ((first & 7) + 1u) * CODE_UNIT_BYTES;
        if (end > offset)
            return kind == LOCATION_NONE ? 0 : line;
        skip_to_next_entry(stream);
    }
    return 0;
}

uint32_t pl_line_table_find(const pl_line_table *table, uint64_t instruction)
{
    if (table->n_bytes > TABLE_BYTES_MAX || table->first_line > INT32_MAX)
        return 0;
    struct stream stream = {
        .reader = table->reader, .address = table->address, .left = table->n_bytes};
    uint64_t offset = instruction * CODE_UNIT_BYTES;
    int64_t line = table->first_line;
    switch (table->format) {
    case PL_PYTHON_LINES_LNOTAB:
        line = find_in_lnotab(&stream, line, offset);
        break;
    case PL_PYTHON_LINES_RANGES:
        line = find_in_ranges(&stream, line, offset);
        break;
    case PL_PYTHON_LINES_LOCATIONS:
        line = find_in_locations(&stream, line, offset);
        break;
    }
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}
