/* SPDX-License-Identifier: Apache-2.0 */
/* See record_file.h: how files are read. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "codec/record/crc32c.h"
#include "data/persist/record_file_format.h"
#include "sys/file.h"

int pl_record_file_fail(const char *path, int code, pl_error *reterr)
{
    if (code != PL_ECORRUPT || !reterr)
        return code;
    pl_error_reword(reterr, "'%.200s' is corrupt: %s; remove it, to have it written anew", path,
                    pl_error_reason(reterr));
    pl_error_names_file(reterr, path);
    return code;
}

static int fail(const pl_record_file_reader *reader, int code, pl_error *reterr)
{
    if (code == PL_ECORRUPT)
        return pl_error_set(reterr, code, "it ends before byte %" PRIu64, reader->file_bytes);
    return pl_error_set(reterr, code, "cannot read '%s': %s", reader->path, pl_error_text(code));
}

/* ---- its start and its end ---- */

static int check_start(pl_record_file_reader *reader, const char *kind, pl_error *reterr)
{
    uint8_t there[PL_RECORD_FILE_START_BYTES] = {0};
    size_t n = (size_t)pl_min_u64(reader->file_bytes, sizeof there);
    int r = pl_file_read(reader->fd, there, n, 0);
    if (r < 0)
        return fail(reader, r, reterr);
    if (!pl_record_file_starts_as(there, n, kind))
        return pl_error_set(reterr, PL_EFORMAT, PL_RECORD_FILE_NOT_OURS, reader->path, kind);
    pl_tfrecord record;
    r = pl_tfrecord_find(there, n, 0, &record, reterr);
    if (r == 0)
        r = pl_error_set(reterr, PL_ECORRUPT, "it is empty");
    if (r > 0)
        r = pl_tfrecord_check(&record, reterr);
    if (r < 0)
        return r;
    pl_record_file_start_data start;
    memcpy(&start, record.data, sizeof start);
    if (start.version != PL_RECORD_FILE_VERSION)
        return pl_error_set(reterr, PL_EVERSION,
                            "'%s' is of version %u, and this program reads %d: remove it, or use "
                            "the program that wrote it",
                            reader->path, start.version, PL_RECORD_FILE_VERSION);
    return 0;
}

static int read_end(pl_record_file_reader *reader, pl_error *reterr)
{
    uint8_t there[PL_RECORD_FILE_END_BYTES];
    pl_record_file_end_data end;
    pl_tfrecord record;
    if (reader->file_bytes < PL_RECORD_FILE_START_BYTES + PL_RECORD_FILE_END_BYTES)
        return pl_error_set(reterr, PL_ECORRUPT, "it is cut off at byte %" PRIu64,
                            reader->file_bytes);
    int r = pl_file_read(reader->fd, there, sizeof there, reader->file_bytes - sizeof there);
    if (r < 0)
        return fail(reader, r, reterr);
    bool good = pl_tfrecord_find(there, sizeof there, 0, &record, NULL) == 1 &&
                record.data_bytes == sizeof end && pl_tfrecord_check(&record, NULL) == 0;
    if (good)
        memcpy(&end, record.data, sizeof end);
    if (!good || end.tag != PL_RECORD_FILE_TAG_END)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "it is cut off at byte %" PRIu64 ", or the end is not right",
                            reader->file_bytes);
    reader->end_bytes = end.stream_bytes;
    reader->end_sum = end.sum;
    return 0;
}

/* ---- records ---- */

/* The record at the offset, into the window. */
static int read_record(pl_record_file_reader *reader, pl_tfrecord *ret_record, pl_error *reterr)
{
    uint64_t offset = reader->next.offset;
    size_t n = (size_t)pl_min_u64(reader->file_bytes - offset, PL_RECORD_FILE_WINDOW_BYTES);
    int r = pl_file_read(reader->fd, reader->window.data, n, offset);
    if (r < 0)
        return fail(reader, r, reterr);
    bool good = pl_tfrecord_find(reader->window.data, n, 0, ret_record, NULL) == 1 &&
                pl_tfrecord_check(ret_record, NULL) == 0 && ret_record->data_bytes > 0;
    if (!good)
        return pl_error_set(reterr, PL_ECORRUPT, "the record at byte %" PRIu64 " is not right",
                            offset);
    return 0;
}

static int next_record(pl_loader *loader, pl_error *reterr)
{
    pl_record_file_reader *reader = (pl_record_file_reader *)loader;
    pl_tfrecord record;
    int r = read_record(reader, &record, reterr);
    if (r < 0)
        return r;
    if (record.data[0] != PL_RECORD_FILE_TAG_PIECE || record.data_bytes < 2)
        return pl_error_set(reterr, PL_ECORRUPT, "it ends at byte %" PRIu64 ", in the middle",
                            reader->next.offset);
    const uint8_t *foot = record.data + record.data_bytes;
    reader->now = reader->next;
    reader->next = (struct pl_record_position){
        .offset = reader->now.offset + record.next,
        .stream_bytes = reader->now.stream_bytes + record.data_bytes - 1,
        .sum = pl_crc32c(reader->now.sum, foot, PL_TFRECORD_FOOT_BYTES),
    };
    loader->at = (const char *)record.data + 1;
    loader->end = (const char *)foot;
    loader->behind_bytes = reader->file_bytes - reader->next.offset;
    return 0;
}

int pl_record_file_check_end(pl_record_file_reader *reader, pl_error *reterr)
{
    if (reader->loader.at != reader->loader.end)
        return pl_error_set(reterr, PL_ECORRUPT, "more follows where it should end");
    if (reader->next.offset != reader->file_bytes - PL_RECORD_FILE_END_BYTES)
        return pl_error_set(reterr, PL_ECORRUPT, "it should end at byte %" PRIu64,
                            reader->next.offset);
    if (reader->next.stream_bytes != reader->end_bytes || reader->next.sum != reader->end_sum)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "the checksum of all %" PRIu64 " bytes is another than the end says",
                            reader->next.stream_bytes);
    return 0;
}

/* ---- places ---- */

/* Bytes left in the window are read again. */
pl_record_file_mark pl_record_file_mark_of(const pl_record_file_reader *reader)
{
    const char *begin = (const char *)reader->window.data + PL_TFRECORD_HEAD_BYTES + 1;
    if (reader->loader.at == reader->loader.end)
        return (pl_record_file_mark){.place = reader->next};
    return (pl_record_file_mark){reader->now, (size_t)(reader->loader.at - begin)};
}

int pl_record_file_go_back(pl_record_file_reader *reader, pl_record_file_mark mark,
                           pl_error *reterr)
{
    reader->next = mark.place;
    reader->loader.at = reader->loader.end = NULL;
    reader->loader.behind_bytes = reader->file_bytes - mark.place.offset;
    int r = mark.at > 0 ? next_record(&reader->loader, reterr) : 0;
    if (r < 0)
        return pl_record_file_fail(reader->path, r, reterr);
    if (mark.at > (size_t)(reader->loader.end - reader->loader.at))
        return pl_load_refuse(reterr, "a place in '%s' is not in it", reader->path);
    reader->loader.at += mark.at;
    return 0;
}

int pl_record_file_save_position(const pl_record_file_reader *reader, pl_saver *saver,
                                 pl_error *reterr)
{
    const pl_record_file_mark mark = pl_record_file_mark_of(reader);
    const int64_t values[] = {
        (int64_t)reader->file_bytes,
        (int64_t)reader->end_bytes,
        reader->end_sum,
        (int64_t)mark.place.offset,
        (int64_t)mark.place.stream_bytes,
        mark.place.sum,
        (int64_t)mark.at,
    };
    int r = pl_save_bytes(saver, values, sizeof values, reterr);
    return r < 0 ? r
                 : pl_save_text(saver, reader->loader.origin ? reader->loader.origin->path : "",
                                reterr);
}

static int load_origin(pl_record_file_reader *reader, pl_loader *loader, pl_error *reterr)
{
    char *path;
    int r = pl_load_text(loader, PL_STATE_PATH_MOST, &path, reterr);
    if (r < 0)
        return r;
    pl_loader_done(&reader->loader);
    if (*path && !(reader->loader.origin = pl_origin_new(path)))
        r = pl_error_set(reterr, -ENOMEM, "out of memory for a path");
    free(path);
    return r;
}

int pl_record_file_load_position(pl_record_file_reader *reader, pl_loader *loader, pl_error *reterr)
{
    int64_t values[7];
    int r = pl_load_bytes(loader, values, sizeof values, reterr);
    if (r == 0)
        r = load_origin(reader, loader, reterr);
    if (r < 0)
        return r;
    if ((uint64_t)values[0] != reader->file_bytes || (uint64_t)values[1] != reader->end_bytes ||
        values[2] != reader->end_sum)
        return pl_error_set(reterr, -EINVAL,
                            "'%s' is another file than when the checkpoint was written, and its "
                            "place there is lost: begin anew",
                            reader->path);
    uint64_t offset = (uint64_t)values[3], least = PL_RECORD_FILE_START_BYTES;
    if (offset < least || offset > reader->file_bytes - PL_RECORD_FILE_END_BYTES || values[6] < 0)
        return pl_load_refuse(reterr, "a place in '%s' is not in it", reader->path);
    const struct pl_record_position place = {offset, (uint64_t)values[4], (uint32_t)values[5]};
    return pl_record_file_go_back(reader, (pl_record_file_mark){place, (size_t)values[6]}, reterr);
}

/* ---- open and close ---- */

static int open_file(pl_record_file_reader *reader, const char *path, pl_error *reterr)
{
    reader->path = strdup(path);
    if (!reader->path)
        return pl_error_set(reterr, -ENOMEM, "out of memory: cannot read '%s'", path);
    reader->fd = pl_file_open_regular(path, &reader->file_bytes);
    if (reader->fd == -EINVAL)
        return pl_error_set(reterr, -EINVAL, "cannot read '%s': it is not a regular file", path);
    if (reader->fd < 0)
        return fail(reader, reader->fd, reterr);
    return pl_memory_take(reader->loader.runtime->memory, PL_RECORD_FILE_WINDOW_BYTES,
                          "file window", &reader->window, reterr);
}

int pl_record_file_open(pl_record_file_reader *reader, pl_runtime *runtime, const char *path,
                        const char *kind, pl_error *reterr)
{
    *reader = (pl_record_file_reader){
        .loader = {.more = next_record, .runtime = pl_runtime_ref(runtime)},
        .fd = -1,
        .next = {.offset = PL_RECORD_FILE_START_BYTES},
    };
    int r = open_file(reader, path, reterr);
    if (r == 0) {
        r = check_start(reader, kind, reterr);
        if (r == 0)
            r = read_end(reader, reterr);
        r = pl_record_file_fail(path, r, reterr);
    }
    if (r < 0)
        pl_record_file_close(reader);
    else
        reader->loader.behind_bytes = reader->file_bytes - reader->next.offset;
    return r;
}

void pl_record_file_close(pl_record_file_reader *reader)
{
    pl_runtime *runtime = reader->loader.runtime;
    if (!runtime)
        return;
    if (reader->fd >= 0)
        close(reader->fd);
    pl_loader_done(&reader->loader);
    pl_memory_give(runtime->memory, &reader->window);
    free(reader->path);
    *reader = (pl_record_file_reader){.fd = -1};
    pl_runtime_unref(runtime);
}
