/* SPDX-License-Identifier: Apache-2.0 */
/* See record_file.h: how files are written. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/record/crc32c.h"
#include "codec/record/tfrecord.h"
#include "data/persist/record_file_format.h"
#include "sys/file.h"
#include "util/fork.h"

static int refuse(const char *path, int code, pl_error *reterr)
{
    const char *next = code == -ENOSPC || code == -EDQUOT ? ": make room there, or write elsewhere"
                       : code == -EFBIG ? ": raise the limit on file sizes (ulimit -f)"
                                        : "";
    return pl_error_set(reterr, code, "cannot write '%s': %s%s", path, pl_error_text(code), next);
}

/* ---- the part ---- */

/* Refuses to replace a file that is not ours, complete or not. */
static int check_place(const char *path, const char *kind, pl_error *reterr)
{
    uint8_t start[PL_RECORD_FILE_START_BYTES];
    uint64_t file_bytes;
    int fd = pl_file_open_regular(path, &file_bytes);
    if (fd == -ENOENT)
        return 0;
    if (fd == -EINVAL)
        return pl_error_set(reterr, fd, "cannot write '%s': it is not a regular file", path);
    if (fd < 0)
        return refuse(path, fd, reterr);
    size_t n = (size_t)pl_min_u64(file_bytes, sizeof start);
    int r = pl_file_read(fd, start, n, 0);
    close(fd);
    if (r < 0)
        return refuse(path, r, reterr);
    return pl_record_file_starts_as(start, n, kind)
               ? 0
               : pl_error_set(reterr, PL_EFORMAT, PL_RECORD_FILE_NOT_OURS, path, kind);
}

/* A part left by a killed process begins as ours do; any other file is the user's own. */
static int take_over(int fd, const char *kind)
{
    uint8_t start[PL_RECORD_FILE_START_BYTES];
    struct stat info;
    if (fstat(fd, &info) < 0)
        return -errno;
    size_t n = (size_t)pl_min_u64((uint64_t)info.st_size, sizeof start);
    int r = pl_file_read(fd, start, n, 0);
    if (r < 0)
        return r;
    return pl_record_file_starts_as(start, n, kind) ? pl_file_cut(fd, 0) : -EEXIST;
}

static int refuse_part(const pl_record_file_writer *writer, int code, pl_error *reterr)
{
    if (code != -EEXIST)
        return refuse(writer->part, code, reterr);
    return pl_error_set(reterr, code,
                        "cannot write '%s': '%s', which it is written as, is there and no part of "
                        "such a file: move that away, or give another path",
                        writer->path, writer->part);
}

static int begin_part(pl_record_file_writer *writer, const char *kind, pl_error *reterr)
{
    bool found;
    int checked = check_place(writer->path, kind, reterr);
    if (checked < 0)
        return checked;
    int fd = pl_file_open_locked(writer->part, &found);
    if (fd == -EBUSY)
        return pl_error_set(reterr, -EBUSY,
                            "'%s' is being written by another process or pass: wait for it, or "
                            "give another path",
                            writer->path);
    int r = fd >= 0 && found ? take_over(fd, kind) : fd;
    if (r >= 0)
        writer->fd = fd;
    else if (fd >= 0)
        close(fd);
    return r < 0 ? refuse_part(writer, r, reterr) : 0;
}

static int begin_in_place(pl_record_file_writer *writer, pl_error *reterr)
{
    writer->fd = open(writer->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return writer->fd < 0 ? refuse(writer->path, -errno, reterr) : 0;
}

/* ---- records ---- */

static int put(pl_record_file_writer *writer, const void *bytes, size_t n, pl_error *reterr)
{
    int r = pl_file_may_grow(writer->offset + n);
    if (r == 0)
        r = pl_file_write(writer->fd, bytes, n, writer->offset);
    if (r < 0)
        return refuse(writer->path, r, reterr);
    writer->offset += n;
    return 0;
}

static char *window_data(pl_record_file_writer *writer)
{
    return (char *)writer->window.data + PL_TFRECORD_HEAD_BYTES + 1;
}

static void empty_window(pl_record_file_writer *writer)
{
    writer->saver.at = window_data(writer);
    writer->saver.end = window_data(writer) + PL_RECORD_FILE_PIECE_BYTES;
}

/* Writes the window as a record, unless it is empty. */
static int flush(pl_saver *saver, pl_error *reterr)
{
    pl_record_file_writer *writer = (pl_record_file_writer *)saver;
    size_t n = (size_t)(saver->at - window_data(writer));
    if (n == 0)
        return 0;
    char *record = writer->window.data, *data = record + PL_TFRECORD_HEAD_BYTES;
    data[0] = PL_RECORD_FILE_TAG_PIECE;
    pl_tfrecord_write_head(n + 1, record);
    pl_tfrecord_write_foot(pl_crc32c(0, data, n + 1), data + n + 1);
    writer->sum = pl_crc32c(writer->sum, data + n + 1, PL_TFRECORD_FOOT_BYTES);
    writer->stream_bytes += n;
    int r = put(writer, record, n + 1 + PL_TFRECORD_FRAME_BYTES, reterr);
    empty_window(writer);
    return r;
}

static int put_start(pl_record_file_writer *writer, const char *kind, pl_error *reterr)
{
    uint8_t record[PL_RECORD_FILE_START_BYTES];
    pl_record_file_format_start(kind, PL_RECORD_FILE_VERSION, record);
    return put(writer, record, sizeof record, reterr);
}

static int put_end(pl_record_file_writer *writer, pl_error *reterr)
{
    pl_record_file_end_data end = {
        .tag = PL_RECORD_FILE_TAG_END, .stream_bytes = writer->stream_bytes, .sum = writer->sum};
    uint8_t record[PL_RECORD_FILE_END_BYTES];
    pl_tfrecord_write(&end, sizeof end, record);
    return put(writer, record, sizeof record, reterr);
}

/* ---- from begin to end ---- */

static int set_up(pl_record_file_writer *writer, const char *path, const char *kind, bool in_place,
                  pl_error *reterr)
{
    char name[PATH_MAX];
    int followed = pl_file_follow_links(path, name);
    if (followed < 0)
        return refuse(path, followed, reterr);
    bool made = (writer->path = strdup(name)) &&
                (in_place || asprintf(&writer->part, "%s" PL_RECORD_FILE_PART, name) > 0);
    if (!made)
        return pl_error_set(reterr, -ENOMEM, "out of memory: cannot write '%s'", path);
    int r = pl_memory_take(writer->saver.runtime->memory, PL_RECORD_FILE_WINDOW_BYTES,
                           "file window", &writer->window, reterr);
    if (r == 0)
        r = in_place ? begin_in_place(writer, reterr) : begin_part(writer, kind, reterr);
    return r;
}

static int begin(pl_record_file_writer *writer, pl_runtime *runtime, const char *path,
                 const char *kind, bool in_place, pl_error *reterr)
{
    *writer = (pl_record_file_writer){
        .saver = {.more = flush, .runtime = pl_runtime_ref(runtime)},
        .fd = -1,
        .generation = pl_fork_generation(),
    };
    int r = set_up(writer, path, kind, in_place, reterr);
    if (r == 0)
        r = put_start(writer, kind, reterr);
    if (r < 0)
        pl_record_file_drop(writer);
    else
        empty_window(writer);
    return r;
}

int pl_record_file_begin(pl_record_file_writer *writer, pl_runtime *runtime, const char *path,
                         const char *kind, pl_error *reterr)
{
    return begin(writer, runtime, path, kind, false, reterr);
}

int pl_record_file_create(pl_record_file_writer *writer, pl_runtime *runtime, const char *path,
                          const char *kind, pl_error *reterr)
{
    return begin(writer, runtime, path, kind, true, reterr);
}

static void release(pl_record_file_writer *writer)
{
    pl_saver_done(&writer->saver);
    if (writer->saver.runtime)
        pl_memory_give(writer->saver.runtime->memory, &writer->window);
    pl_runtime_unref(writer->saver.runtime);
    free(writer->path);
    free(writer->part);
    *writer = (pl_record_file_writer){.fd = -1};
}

void pl_record_file_drop(pl_record_file_writer *writer)
{
    if (!writer->saver.runtime)
        return;
    /* In a forked child the file belongs to the parent. */
    if (writer->fd >= 0 && writer->generation == pl_fork_generation())
        unlink(writer->part ? writer->part : writer->path);
    if (writer->fd >= 0)
        close(writer->fd);
    release(writer);
}

/* Without this a power loss could undo the rename, and bring the old file back. */
static int sync_folder_of(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    char *slash = strrchr(copy, '/');
    if (slash)
        slash[slash == copy] = '\0';
    int fd = open(slash ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -errno : fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
    if (fd >= 0)
        close(fd);
    free(copy);
    return r;
}

static int publish(pl_record_file_writer *writer, pl_error *reterr)
{
    int r = fsync(writer->fd) < 0 ? -errno : 0;
    if (r == 0 && writer->part)
        r = rename(writer->part, writer->path) < 0 ? -errno : 0;
    if (r == 0)
        r = sync_folder_of(writer->path);
    return r < 0 ? refuse(writer->path, r, reterr) : 0;
}

int pl_record_file_end(pl_record_file_writer *writer, pl_error *reterr)
{
    int r = flush(&writer->saver, reterr);
    if (r == 0)
        r = put_end(writer, reterr);
    if (r == 0)
        r = publish(writer, reterr);
    if (r < 0) {
        pl_record_file_drop(writer);
        return r;
    }
    close(writer->fd);
    release(writer);
    return 0;
}
