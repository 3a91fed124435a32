/* SPDX-License-Identifier: Apache-2.0 */
/* Checks one file: opens it, reads it once, recognises it, and passes it to its validator. A small
 * file costs one open, one read and one close, and no other system calls. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/reader/file_window.h"
#include "verify/verify.h"

static pl_verify_check *const checks[PL_VERIFY_N_FORMATS] = {
#define PL_VERIFY_CHECK(format, name, check) [PL_VERIFY_##format] = check,
    PL_VERIFY_FORMATS(PL_VERIFY_CHECK)
#undef PL_VERIFY_CHECK
};

static int read_head(pl_verify_file *file)
{
    struct stat status;
    ssize_t n = read(file->fd, file->room->head.data, PL_VERIFY_HEAD_BYTES);
    if (n < 0)
        return -errno;
    file->head = file->room->head.data;
    file->n_head = (size_t)n;
    file->file_bytes = (uint64_t)n;
    file->is_whole = n < PL_VERIFY_HEAD_BYTES;
    if (file->is_whole)
        return 0;
    if (fstat(file->fd, &status) < 0)
        return -errno;
    file->file_bytes = pl_max_u64((uint64_t)status.st_size, (uint64_t)n);
    return 0;
}

/* Can the validator read it when it is packed? */
static bool is_streamed(pl_verify_format format)
{
    return format == PL_VERIFY_TFRECORD || format == PL_VERIFY_TEXT || format == PL_VERIFY_CSV ||
           format == PL_VERIFY_TAR || format == PL_VERIFY_JSON;
}

/* Replaces the head by its unpacked bytes. */
static int unpack_head(pl_verify_file *file, pl_error *reterr)
{
    enum { UNPACKED_BYTES = 64 * 1024 };
    pl_byte_stream stream;
    pl_error why = {0};
    int r = pl_verify_room_for(file, &file->room->unpacked_head, UNPACKED_BYTES, file->path, &why);
    if (r == 0)
        r = pl_byte_stream_init(&stream, file->path, file->memory, &why);
    if (r == 0) {
        r = pl_byte_stream_unpack(&stream, PL_PACKING_GZIP, &why);
        if (r == 0)
            r = pl_byte_stream_read(&stream, file->room->unpacked_head.data, UNPACKED_BYTES,
                                    &file->n_head, &why);
        pl_byte_stream_done(&stream);
    }
    file->head = file->room->unpacked_head.data;
    file->is_packed = true;
    file->is_whole = false;
    return r < 0 ? pl_verify_report_error(file, 0, &why, reterr) : 1;
}

/* Reads all of a packed file, to see whether it can be unpacked. */
static int check_packing(pl_verify_file *file, pl_error *reterr)
{
    pl_file_window window;
    pl_error why = {0};
    int r = pl_file_window_init(&window, file->path, PL_PACKING_GZIP, 0, file->memory, &why);
    if (r < 0)
        return pl_verify_report_error(file, PL_VERIFY_NO_OFFSET, &why, reterr);
    do {
        pl_file_window_take(&window, window.n);
        r = pl_file_window_more(&window, 1, &why);
        if (r == 0)
            r = pl_verify_go_on(file, &why);
    } while (r == 0 && window.n > 0);
    pl_file_window_done(&window);
    return r < 0 ? pl_verify_report_error(file, PL_VERIFY_NO_OFFSET, &why, reterr) : 0;
}

static int recognise(pl_verify_file *file, const pl_verify_options *options, pl_error *reterr)
{
    bool packed = file->n_head >= 2 && file->head[0] == 0x1f && file->head[1] == 0x8b;
    int r = packed ? unpack_head(file, reterr) : 1;
    if (r <= 0) {
        file->format = PL_VERIFY_GZIP;
        return r;
    }
    bool is_all = file->is_whole || (packed && file->n_head < 64 * 1024);
    file->format = options->format != PL_VERIFY_UNKNOWN
                       ? options->format
                       : pl_verify_sniff(file->head, file->n_head, is_all, file->promise);
    if (packed && !is_streamed(file->format))
        file->format = PL_VERIFY_GZIP;
    return 1;
}

static int check_content(pl_verify_file *file, const pl_verify_options *options, pl_error *reterr)
{
    file->promise = pl_verify_promise(file->path);
    if (file->n_head == 0) {
        file->format = options->format ? options->format : file->promise;
        pl_verify_report(file, PL_VERIFY_ERROR, 0, "it is empty: 0 bytes");
        return 0;
    }
    int r = recognise(file, options, reterr);
    if (r <= 0)
        return r;
    if (file->format == PL_VERIFY_GZIP)
        return check_packing(file, reterr);
    bool is_promised = file->promise == PL_VERIFY_UNKNOWN || file->promise == file->format;
    if (options->format == PL_VERIFY_UNKNOWN && !is_promised)
        pl_verify_report_promise(file, file->format, file->promise, 0, "");
    return checks[file->format] ? checks[file->format](file, reterr) : 0;
}

static bool is_near(const pl_verify_near *folder, const char *path, size_t n)
{
    return folder->path && folder->n_path == n && memcmp(folder->path, path, n) == 0;
}

static void open_near(pl_verify_near *folder)
{
    char path[PATH_MAX];
    if (folder->n_path >= sizeof path)
        return;
    memcpy(path, folder->path, folder->n_path);
    path[folder->n_path] = '\0';
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    folder->fd = fd > 0 ? fd : 0;
}

static int open_file(const char *path, pl_verify_near *folder)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK; /* does not wait for a pipe */
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n == 0)
        return open(path, flags);
    if (!is_near(folder, path, n)) {
        pl_verify_leave_folder(folder);
        *folder = (pl_verify_near){.path = path, .n_path = n};
        return open(path, flags);
    }
    if (folder->fd == 0)
        open_near(folder);
    return folder->fd > 0 ? openat(folder->fd, slash + 1, flags) : open(path, flags);
}

static void report_unread(pl_verify_file *file, int code)
{
    if (code == -EISDIR) /* the walk had no room for it */
        pl_verify_report(file, PL_VERIFY_ERROR, PL_VERIFY_NO_OFFSET,
                         "it is more than %d folders deep: check it by itself",
                         PL_VERIFY_FOLDERS_DEEP);
    else
        pl_verify_report(file, PL_VERIFY_ERROR, PL_VERIFY_NO_OFFSET, "it cannot be read: %s",
                         strerror(-code));
}

int pl_verify_look(pl_verify_file *file, const pl_verify_options *options, pl_error *reterr)
{
    file->fd = open_file(file->path, &file->room->folder);
    int r = file->fd < 0 ? -errno : read_head(file);
    if (r == 0)
        r = check_content(file, options, reterr);
    else if (r == -EMFILE || r == -ENFILE)
        pl_error_set(reterr, r, "cannot open '%s': %s", file->path, strerror(-r));
    else {
        report_unread(file, r);
        r = 0;
    }
    if (file->fd >= 0)
        close(file->fd);
    return r;
}
