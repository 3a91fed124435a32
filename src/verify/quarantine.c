/* SPDX-License-Identifier: Apache-2.0 */
/* See quarantine.h; restore.c moves files back. */
#include "verify/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/file.h"
#include "verify/move_file.h"
#include "verify/quarantine_private.h"

/* ---- the manifest ---- */

/* Returns the number in "000012-name", the "to" of a line; 0: there is none. */
static uint64_t number_in(const char *text, size_t n)
{
    json_t *line = NULL;
    json_error_t unused;
    const char *name = NULL;
    if (pl_json_parse(text, n, 0, &line, &unused) == 0)
        name = json_string_value(json_object_get(line, "to"));
    uint64_t number = name ? strtoull(name, NULL, 10) : 0;
    json_decref(line);
    return number;
}

/* Finds the highest number given, which is not the number of lines once some were restored. A line
 * cut off when a process died has no line end, and is ignored. */
static int read_manifest(pl_quarantine *quarantine)
{
    char *text = NULL;
    uint64_t n = 0;
    int r = pl_quarantine_read(quarantine, &text, &n);
    if (r < 0)
        return r;
    const char *line = text, *end = text + n;
    for (const char *feed; line < end && (feed = memchr(line, '\n', (size_t)(end - line)));
         line = feed + 1)
        quarantine->last = pl_max_u64(quarantine->last, number_in(line, (size_t)(feed - line)));
    quarantine->manifest_bytes = (uint64_t)(line - text);
    free(text);
    return ftruncate(quarantine->manifest_fd, (off_t)quarantine->manifest_bytes) < 0 ? -errno : 0;
}

int pl_quarantine_open(pl_quarantine *quarantine, const char *folder, pl_error *reterr)
{
    pl_quarantine made;
    if (mkdir(folder, 0775) < 0 && errno != EEXIST)
        return pl_quarantine_refuse(reterr, -errno, "make the folder", folder);
    int r = pl_quarantine_attach(&made, folder, O_CREAT, reterr);
    if (r < 0)
        return r;
    r = read_manifest(&made);
    if (r < 0) {
        pl_quarantine_close(&made);
        return pl_quarantine_refuse(reterr, r, "read the manifest in", made.folder);
    }
    *quarantine = made;
    return 0;
}

void pl_quarantine_close(pl_quarantine *quarantine)
{
    close(quarantine->manifest_fd);
    close(quarantine->folder_fd);
    quarantine->manifest_fd = quarantine->folder_fd = -1;
}

pl_verify_folder pl_quarantine_identity(const pl_quarantine *quarantine)
{
    struct stat status;
    if (fstat(quarantine->folder_fd, &status) < 0)
        return (pl_verify_folder){0};
    return (pl_verify_folder){.device = status.st_dev, .inode = status.st_ino};
}

static int write_line(int fd, const char *text)
{
    size_t n = strlen(text);
    while (n > 0) {
        ssize_t written = write(fd, text, n);
        if (written < 0)
            return -errno;
        text += written;
        n -= (size_t)written;
    }
    return 0;
}

/* Returns when the line is on disk. */
static int add_line(pl_quarantine *quarantine, const char *from, const char *name,
                    const char *reason)
{
    json_t *line = json_object();
    const char *why = pl_quarantine_is_utf8(reason) ? reason : "";
    bool good = line &&
                json_object_set_new(line, pl_quarantine_path_key(from),
                                    pl_quarantine_path_to_json(from)) == 0 &&
                json_object_set_new(line, "to", json_string(name)) == 0 &&
                json_object_set_new(line, "reason", json_string(why)) == 0;
    char *text = good ? pl_json_dump(line, JSON_COMPACT) : NULL;
    json_decref(line);
    if (!text)
        return -ENOMEM;
    int r = write_line(quarantine->manifest_fd, text);
    uint64_t bytes = strlen(text) + 1;
    free(text);
    if (r == 0)
        r = write_line(quarantine->manifest_fd, "\n");
    if (r == 0 && fsync(quarantine->manifest_fd) < 0)
        r = -errno;
    quarantine->manifest_bytes += r == 0 ? bytes : 0;
    return r;
}

/* Removes the line of a file that was not moved: readers of the manifest would count it. */
static void take_line_back(pl_quarantine *quarantine, uint64_t manifest_bytes)
{
    if (ftruncate(quarantine->manifest_fd, (off_t)manifest_bytes) == 0)
        quarantine->manifest_bytes = manifest_bytes;
}

/* ---- moving ---- */

/* A file, by the folder that it is in. */
typedef struct source {
    char path[PATH_MAX]; /* absolute; links to folders are followed, the file's own is not */
    int folder;
    const char *name; /* in `path` */
} source;

static int absolute(const char *path, char to[PATH_MAX])
{
    char folder[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof folder)
        return -ENAMETOOLONG;
    memcpy(folder, path, n);
    folder[n] = '\0';
    if (realpath(slash == NULL ? "." : n == 0 ? "/" : folder, real) == NULL)
        return -errno;
    n = (size_t)snprintf(to, PATH_MAX, "%s/%s", strcmp(real, "/") == 0 ? "" : real,
                         slash ? slash + 1 : path);
    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int find_source(const char *path, source *from)
{
    char folder[PATH_MAX];
    int r = absolute(path, from->path);
    if (r < 0)
        return r;
    from->name = strrchr(from->path, '/') + 1;
    snprintf(folder, sizeof folder, "%.*s", (int)(from->name - from->path), from->path);
    from->folder = pl_file_open_folder(folder);
    return from->folder < 0 ? from->folder : 0;
}

/* Returns why this file is not moved; NULL: it can be tried. Folders are reported when they cannot
 * be read, or lie too deep, and hold files that were not checked. */
static const char *why_not(const source *from)
{
    struct stat status;
    if (fstatat(from->folder, from->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return strerror(errno);
    return S_ISDIR(status.st_mode) ? "it is a folder" : NULL;
}

/* Returns 1 if it was moved; 0, with the reason in *why, if it is where it was; negative if the
 * manifest failed. */
static int note_and_move(pl_quarantine *quarantine, const source *from, const char *reason,
                         char to[PATH_MAX], const char **why)
{
    char name[NAME_MAX + 1];
    uint64_t before = quarantine->manifest_bytes;
    bool plain = pl_quarantine_is_utf8(from->name) && strlen(from->name) <= 200;
    snprintf(name, sizeof name, "%06" PRIu64 "-%.200s", quarantine->last + 1,
             plain ? from->name : "file");
    int r =
        snprintf(to, PATH_MAX, "%s/%s", quarantine->folder, name) < PATH_MAX ? 0 : -ENAMETOOLONG;
    if (r == 0)
        r = add_line(quarantine, from->path, name, reason);
    if (r < 0) {
        take_line_back(quarantine, before);
        return r;
    }
    quarantine->last++;
    r = pl_move_file(from->folder, from->name, quarantine->folder_fd, name);
    if (r == 0)
        return 1;
    take_line_back(quarantine, before);
    *why = pl_error_text(r);
    return 0;
}

int pl_quarantine_move(pl_quarantine *quarantine, const char *path, const char *reason,
                       char to[PATH_MAX], pl_error *reterr)
{
    source from = {.folder = -1};
    int r = find_source(path, &from);
    const char *why = r < 0 ? pl_error_text(r) : why_not(&from);
    r = why == NULL ? note_and_move(quarantine, &from, reason, to, &why) : 0;
    if (from.folder >= 0)
        close(from.folder);
    if (r < 0)
        return pl_quarantine_refuse(reterr, r, "write the manifest in", quarantine->folder);
    if (r == 0) {
        to[0] = '\0';
        pl_error_set(reterr, -ECANCELED, "%s", why);
    }
    return r;
}
