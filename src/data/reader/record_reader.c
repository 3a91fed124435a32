/* SPDX-License-Identifier: Apache-2.0 */
/* See record_reader.h.
 *
 *   window:  | given out | at ... checked ... records that are read | end ... free |
 *
 * Records are checked several at a time, ahead of those given out: the bytes before `checked` are
 * whole records with correct checksums. When the next record is not whole in the window, its bytes
 * are moved to the front, and one read fills the rest of the window. */
#include "data/reader/record_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "codec/record/crc32c.h"
#include "codec/record/tfrecord.h"
#include "data/reader/byte_stream.h"

/* A head must fit; windows as small as this are only for tests. */
enum { WINDOW_BYTES_MIN = PL_TFRECORD_FRAME_BYTES };

/* The bytes to check at a time: they are then in the nearest cache for the consumer. */
enum { CHECK_BYTES = 16 * 1024 };

struct pl_record_reader {
    char *path;
    pl_memory *memory;
    pl_byte_stream stream;
    pl_block window;
    size_t at, end;
    size_t checked; /* less than `at`: no record is checked */
    pl_record_place next;
    uint64_t large_bytes; /* of a large record that was found and not read: all but its head */
    uint64_t large_data_bytes;
    bool at_end; /* the end of the file: there is nothing more to read */
    bool lost;
    pl_error loss; /* reported again */
};

static uint8_t *window_at(const pl_record_reader *reader)
{
    return (uint8_t *)reader->window.data + reader->at;
}

static size_t n_there(const pl_record_reader *reader)
{
    return reader->end - reader->at;
}

/* ---- failures ---- */

/* Adds the place to a codec's error, which says what is wrong with the next record, but not
 * where. */
static int locate(const pl_record_reader *reader, int code, pl_error *reterr)
{
    pl_error_in_file(reterr, reader->path);
    pl_error_at_record(reterr, reader->next.index, reader->next.offset);
    return code;
}

/* Ends reading: nothing after this can be read. The stream's messages name the file. */
static int lose(pl_record_reader *reader, int code, pl_error *reterr)
{
    reader->lost = true;
    pl_error_copy(reterr, &reader->loss);
    return code;
}

static int lose_here(pl_record_reader *reader, int code, pl_error *reterr)
{
    return lose(reader, locate(reader, code, &reader->loss), reterr);
}

/* ---- the window ---- */

/* Fills the window with at least `n` bytes, which fit it, or with the rest of the file. */
static int fill(pl_record_reader *reader, size_t n, pl_error *reterr)
{
    uint8_t *window = reader->window.data;
    if (PL_LIKELY(n_there(reader) >= n))
        return 0;
    memmove(window, window_at(reader), n_there(reader));
    reader->end -= reader->at;
    reader->at = reader->checked = 0;
    while (reader->end < n && !reader->at_end) {
        size_t got, room = reader->window.bytes - reader->end;
        int r =
            pl_byte_stream_read(&reader->stream, window + reader->end, room, &got, &reader->loss);
        if (r < 0)
            return lose(reader, r, reterr);
        reader->end += got;
        reader->at_end = got == 0;
    }
    return 0;
}

static void empty_window(pl_record_reader *reader)
{
    reader->at = reader->end = reader->checked = 0;
    reader->at_end = false;
}

/* Skips bytes, some of which may be in the window. */
static int pass_over(pl_record_reader *reader, uint64_t n, pl_error *reterr)
{
    if (n <= n_there(reader)) {
        reader->at += n;
        return 0;
    }
    uint64_t to = reader->stream.offset + (n - n_there(reader));
    empty_window(reader);
    int r = pl_byte_stream_seek(&reader->stream, to, reader->window.data, reader->window.bytes,
                                &reader->loss);
    return r < 0 ? lose(reader, r, reterr) : 0;
}

/* ---- heads ---- */

static int refuse_cut(pl_record_reader *reader, uint64_t record_bytes, uint64_t there_bytes,
                      pl_error *reterr)
{
    int r = pl_tfrecord_refuse_cut(reader->next.offset, record_bytes, there_bytes, &reader->loss);
    return lose_here(reader, r, reterr);
}

/* Checks that the file can have so many bytes after the head. */
static int check_length(pl_record_reader *reader, uint64_t data_bytes, pl_error *reterr)
{
    uint64_t left = 0, record_bytes = data_bytes + PL_TFRECORD_FRAME_BYTES;
    int r = pl_byte_stream_most_left(&reader->stream, &left, &reader->loss);
    if (r < 0)
        return lose(reader, r, reterr);
    left = pl_add_sat_u64(left, n_there(reader));
    return record_bytes <= left ? 0 : refuse_cut(reader, record_bytes, left, reterr);
}

/* Skips a large record that the caller did not read. */
static int leave_large(pl_record_reader *reader, pl_error *reterr)
{
    uint64_t n = reader->large_bytes;
    reader->large_bytes = 0;
    return n > 0 ? pass_over(reader, n, reterr) : 0;
}

/* Finds the head of the next record, and brings it into the window: 1, or 0 at the end. */
static int find_head(pl_record_reader *reader, uint64_t *ret_data_bytes, pl_error *reterr)
{
    if (PL_UNLIKELY(reader->lost))
        return lose(reader, reader->loss.code, reterr);
    int r = leave_large(reader, reterr);
    if (r == 0)
        r = fill(reader, PL_TFRECORD_HEAD_BYTES, reterr);
    if (r < 0)
        return r;
    if (n_there(reader) == 0)
        return 0;
    if (n_there(reader) < PL_TFRECORD_HEAD_BYTES)
        return refuse_cut(reader, PL_TFRECORD_HEAD_BYTES, n_there(reader), reterr);
    r = pl_tfrecord_read_head(window_at(reader), reader->next.offset, ret_data_bytes,
                              &reader->loss);
    return r < 0 ? lose_here(reader, r, reterr) : 1;
}

static void go_on(pl_record_reader *reader, uint64_t data_bytes)
{
    reader->next.offset += data_bytes + PL_TFRECORD_FRAME_BYTES;
    reader->next.index++;
}

/* ---- records ---- */

static int find_large(pl_record_reader *reader, pl_record *record, pl_error *reterr)
{
    int r = check_length(reader, record->data_bytes, reterr);
    if (r < 0)
        return r;
    reader->at += PL_TFRECORD_HEAD_BYTES;
    reader->large_data_bytes = record->data_bytes;
    reader->large_bytes = record->data_bytes + PL_TFRECORD_FOOT_BYTES;
    go_on(reader, record->data_bytes);
    return 1;
}

static int find_small(pl_record_reader *reader, pl_record *record, pl_error *reterr)
{
    size_t record_bytes = record->data_bytes + PL_TFRECORD_FRAME_BYTES;
    int r = fill(reader, record_bytes, reterr);
    if (r < 0)
        return r;
    if (n_there(reader) < record_bytes)
        return refuse_cut(reader, record_bytes, n_there(reader), reterr);
    const uint8_t *data = window_at(reader) + PL_TFRECORD_HEAD_BYTES;
    r = pl_tfrecord_check_foot(data + record->data_bytes, pl_crc32c(0, data, record->data_bytes),
                               record->place.offset, record->data_bytes, reterr);
    if (r < 0)
        locate(reader, r, reterr);
    reader->at += record_bytes;
    go_on(reader, record->data_bytes);
    record->data = r < 0 ? NULL : data;
    return r < 0 ? r : 1;
}

/* Takes the next record, if it is one of those already checked. */
static bool take_checked(pl_record_reader *reader, pl_record *ret_record)
{
    if (reader->at >= reader->checked) {
        if (reader->lost || reader->large_bytes > 0)
            return false;
        reader->checked =
            reader->at + pl_tfrecord_scan(window_at(reader), n_there(reader), CHECK_BYTES);
        if (reader->at == reader->checked)
            return false;
    }
    const uint8_t *head = window_at(reader);
    uint64_t data_bytes;
    memcpy(&data_bytes, head, sizeof data_bytes);
    *ret_record = (pl_record){
        .place = reader->next, .data = head + PL_TFRECORD_HEAD_BYTES, .data_bytes = data_bytes};
    reader->at += data_bytes + PL_TFRECORD_FRAME_BYTES;
    go_on(reader, data_bytes);
    return true;
}

int pl_record_reader_next(pl_record_reader *reader, pl_record *ret_record, pl_error *reterr)
{
    if (PL_LIKELY(take_checked(reader, ret_record)))
        return 1;
    *ret_record = (pl_record){.place = reader->next};
    int r = find_head(reader, &ret_record->data_bytes, reterr);
    if (r <= 0)
        return r;
    return ret_record->data_bytes + PL_TFRECORD_FRAME_BYTES > reader->window.bytes
               ? find_large(reader, ret_record, reterr)
               : find_small(reader, ret_record, reterr);
}

/* Reads all of the large record's data and computes its checksum, a window at a time, while the
 * bytes are in the cache. */
static int read_large(pl_record_reader *reader, uint8_t *to, uint32_t *ret_crc, pl_error *reterr)
{
    uint64_t n = reader->large_data_bytes, done = pl_min_u64(n_there(reader), n);
    memcpy(to, window_at(reader), done);
    reader->at += done;
    uint32_t crc = pl_crc32c(0, to, done);
    while (done < n) {
        size_t got, wanted = pl_min_u64(n - done, reader->window.bytes);
        int r = pl_byte_stream_read(&reader->stream, to + done, wanted, &got, &reader->loss);
        if (r < 0)
            return lose(reader, r, reterr);
        if (got == 0)
            return refuse_cut(reader, n + PL_TFRECORD_FRAME_BYTES, done + PL_TFRECORD_HEAD_BYTES,
                              reterr);
        crc = pl_crc32c(crc, to + done, got);
        done += got;
    }
    *ret_crc = crc;
    return 0;
}

int pl_record_reader_read(pl_record_reader *reader, void *to, pl_error *reterr)
{
    uint32_t crc = 0;
    pl_record_place after = reader->next;
    uint64_t n = reader->large_data_bytes;
    if (reader->large_bytes == 0)
        return pl_error_set(reterr, -EINVAL, "'%s' has no large record to be read here",
                            reader->path);
    reader->large_bytes = 0;
    reader->next.offset -= n + PL_TFRECORD_FRAME_BYTES; /* for messages */
    reader->next.index--;
    int r = read_large(reader, to, &crc, reterr);
    if (r == 0)
        r = fill(reader, PL_TFRECORD_FOOT_BYTES, reterr);
    if (r < 0)
        return r;
    if (n_there(reader) < PL_TFRECORD_FOOT_BYTES)
        return refuse_cut(reader, n + PL_TFRECORD_FRAME_BYTES,
                          n + PL_TFRECORD_HEAD_BYTES + n_there(reader), reterr);
    r = pl_tfrecord_check_foot(window_at(reader), crc, reader->next.offset, n, reterr);
    if (r < 0)
        locate(reader, r, reterr);
    reader->at += PL_TFRECORD_FOOT_BYTES;
    reader->next = after;
    return r;
}

/* ---- places ---- */

int pl_record_reader_skip(pl_record_reader *reader, uint64_t n, uint64_t *ret_n, pl_error *reterr)
{
    uint64_t data_bytes = 0, done = 0;
    for (; done < n; done++) {
        int r = find_head(reader, &data_bytes, reterr);
        if (r == 0)
            break;
        uint64_t record_bytes = r > 0 ? data_bytes + PL_TFRECORD_FRAME_BYTES : 0;
        if (r > 0)
            r = record_bytes > n_there(reader) ? check_length(reader, data_bytes, reterr) : 0;
        if (r == 0)
            r = pass_over(reader, record_bytes, reterr);
        if (r < 0)
            return r;
        go_on(reader, data_bytes);
    }
    *ret_n = done;
    return 0;
}

bool pl_record_reader_is_lost(const pl_record_reader *reader)
{
    return reader->lost;
}

pl_record_place pl_record_reader_tell(const pl_record_reader *reader)
{
    return reader->next;
}

int pl_record_reader_seek(pl_record_reader *reader, pl_record_place place, pl_error *reterr)
{
    reader->lost = false;
    reader->large_bytes = 0;
    empty_window(reader);
    reader->next = place;
    int r = pl_byte_stream_seek(&reader->stream, place.offset, reader->window.data,
                                reader->window.bytes, &reader->loss);
    return r < 0 ? lose(reader, r, reterr) : 0;
}

pl_packing pl_record_reader_packing(const pl_record_reader *reader)
{
    return reader->stream.packing;
}

/* ---- its life ---- */

/* A length may look like the beginning of a packed file, but its checksum decides. */
static int guess_packing(pl_record_reader *reader, pl_packing *ret_packing, pl_error *reterr)
{
    uint8_t first[PL_TFRECORD_HEAD_BYTES];
    uint64_t data_bytes;
    size_t n;
    int r = pl_byte_stream_peek(&reader->stream, first, sizeof first, &n, reterr);
    if (r < 0)
        return r;
    bool is_record = n == sizeof first && pl_tfrecord_read_head(first, 0, &data_bytes, NULL) == 0;
    *ret_packing = is_record ? PL_PACKING_NONE : pl_packing_guess(first, n);
    return 0;
}

static uint64_t window_bytes_of(uint64_t window_bytes)
{
    return window_bytes ? window_bytes : PL_RECORD_WINDOW_BYTES;
}

uint64_t pl_record_reader_cost_bytes(pl_packing packing, uint64_t window_bytes)
{
    return pl_memory_cost_bytes(window_bytes_of(window_bytes)) +
           (packing == PL_PACKING_NONE ? 0
                                       : pl_memory_cost_bytes(pl_byte_stream_room_bytes(packing)));
}

static int take_window(pl_record_reader *reader, uint64_t bytes, pl_error *reterr)
{
    int r = pl_memory_take(reader->memory, bytes, "a window", &reader->window, reterr);
    if (r < 0)
        pl_error_in_file(reterr, reader->path);
    return r;
}

static int open_reader(pl_record_reader *reader, pl_packing packing, uint64_t window_bytes,
                       pl_error *reterr)
{
    int r = pl_byte_stream_init(&reader->stream, reader->path, reader->memory, reterr);
    if (r == 0 && packing == PL_PACKING_AUTO)
        r = guess_packing(reader, &packing, reterr);
    if (r == 0)
        r = take_window(reader, window_bytes, reterr);
    if (r == 0)
        r = pl_byte_stream_unpack(&reader->stream, packing, reterr);
    return r;
}

int pl_record_reader_new(const char *path, pl_packing packing, uint64_t window_bytes,
                         pl_memory *memory, pl_record_reader **ret_reader, pl_error *reterr)
{
    window_bytes = window_bytes_of(window_bytes);
    if (window_bytes < WINDOW_BYTES_MIN || window_bytes > PL_RECORD_WINDOW_BYTES_MAX)
        return pl_error_set(
            reterr, -EINVAL, "a window of %s for '%s': it has %d bytes at least, and %s at most",
            PL_SIZE(window_bytes), path, WINDOW_BYTES_MIN, PL_SIZE(PL_RECORD_WINDOW_BYTES_MAX));
    pl_record_reader *reader = calloc(1, sizeof *reader);
    char *own_path = strdup(path);
    if (!reader || !own_path) {
        free(reader);
        free(own_path);
        return pl_error_set(reterr, -ENOMEM, "no memory to read '%s'", path);
    }
    reader->path = own_path;
    reader->memory = memory;
    reader->stream.fd = -1;
    int r = open_reader(reader, packing, window_bytes, reterr);
    if (r < 0)
        pl_record_reader_free(reader);
    else
        *ret_reader = reader;
    return r;
}

void pl_record_reader_free(pl_record_reader *reader)
{
    if (!reader)
        return;
    pl_byte_stream_done(&reader->stream);
    pl_memory_give(reader->memory, &reader->window);
    free(reader->path);
    free(reader);
}
