/* SPDX-License-Identifier: Apache-2.0 */
/* See quarantine.h. Paths are bytes and JSON is UTF-8: a path that is not is written as
 * hexadecimal digits, under another key. */
#include "verify/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/utf8.h"
#include "verify/move_file.h"
#include "json/document.h"

#define MANIFEST           "manifest.jsonl"
#define MANIFEST_BYTES_MAX PL_GIB

static int refuse(pl_error *reterr, int code, const char *what, const char *path)
{
    return pl_error_set(reterr, code, "cannot %s '%s': %s", what, path, pl_error_text(code));
}

static int join(char to[PATH_MAX], const char *folder, const char *name)
{
    return snprintf(to, PATH_MAX, "%s/%s", folder, name) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* ---- the manifest ---- */

/* Of "000012-name", which a line calls "to"; 0: it cannot be told. */
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

/* The highest number that was given, which is not how many lines there are once some were restored.
 * What was cut off when a process died has no line end, and stands for nothing. */
static int read_manifest(pl_quarantine *quarantine)
{
    char path[PATH_MAX], *text = NULL;
    uint64_t n = 0;
    int r = join(path, quarantine->folder, MANIFEST);
    if (r == 0)
        r = pl_json_read(path, MANIFEST_BYTES_MAX, &text, &n);
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

static int open_manifest(const char *folder, int flags, int *ret_fd, pl_error *reterr)
{
    char path[PATH_MAX];
    int r = join(path, folder, MANIFEST);
    int fd = r < 0 ? -1 : open(path, O_RDWR | O_APPEND | O_CLOEXEC | flags, 0666);
    if (fd < 0)
        return refuse(reterr, r < 0 ? r : -errno, "open", path);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &whole) < 0) {
        r = errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
        close(fd);
        return refuse(reterr, r, "have for ourselves", path);
    }
    *ret_fd = fd;
    return 0;
}

int pl_quarantine_open(pl_quarantine *quarantine, const char *folder, pl_error *reterr)
{
    pl_quarantine made = {.manifest_fd = -1};
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        return refuse(reterr, -errno, "make the folder", folder);
    if (realpath(folder, made.folder) == NULL)
        return refuse(reterr, -errno, "find the folder", folder);
    int r = open_manifest(made.folder, O_CREAT, &made.manifest_fd, reterr);
    if (r < 0)
        return r;
    r = read_manifest(&made);
    if (r < 0) {
        close(made.manifest_fd);
        return refuse(reterr, r, "read the manifest in", made.folder);
    }
    *quarantine = made;
    return 0;
}

void pl_quarantine_close(pl_quarantine *quarantine)
{
    close(quarantine->manifest_fd);
    quarantine->manifest_fd = -1;
}

pl_verify_folder pl_quarantine_identity(const pl_quarantine *quarantine)
{
    struct stat status;
    if (stat(quarantine->folder, &status) < 0)
        return (pl_verify_folder){0};
    return (pl_verify_folder){.device = status.st_dev, .inode = status.st_ino};
}

static bool is_utf8(const char *text)
{
    return pl_utf8_valid_bytes(text, strlen(text), NULL) == strlen(text);
}

static json_t *path_to_json(const char *path)
{
    static const char digits[] = "0123456789abcdef";
    char hex[2 * PATH_MAX];
    size_t n = 0;
    if (is_utf8(path))
        return json_string(path);
    for (const uint8_t *c = (const uint8_t *)path; *c; c++) {
        hex[n++] = digits[*c >> 4];
        hex[n++] = digits[*c & 15];
    }
    return json_stringn(hex, n);
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* False: there is none, or it is too long. */
static bool path_from_json(const json_t *line, char path[PATH_MAX])
{
    const char *text = json_string_value(json_object_get(line, "from"));
    const char *hex = json_string_value(json_object_get(line, "from_hex"));
    if (text)
        return snprintf(path, PATH_MAX, "%s", text) < PATH_MAX;
    size_t n = hex ? strlen(hex) / 2 : PATH_MAX;
    for (size_t i = 0; i < n && n < PATH_MAX; i++) {
        int high = digit_of(hex[2 * i]), low = digit_of(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        path[i] = (char)(high << 4 | low);
    }
    if (n < PATH_MAX)
        path[n] = '\0';
    return n < PATH_MAX;
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

/* Is on disk then. */
static int add_line(pl_quarantine *quarantine, const char *from, const char *name,
                    const char *reason)
{
    json_t *line = json_object();
    bool good =
        line &&
        json_object_set_new(line, is_utf8(from) ? "from" : "from_hex", path_to_json(from)) == 0 &&
        json_object_set_new(line, "to", json_string(name)) == 0 &&
        json_object_set_new(line, "reason", json_string(is_utf8(reason) ? reason : "")) == 0;
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

/* Of a file that was not moved: it would be one too many for whoever reads the manifest. */
static void take_line_back(pl_quarantine *quarantine, uint64_t manifest_bytes)
{
    if (ftruncate(quarantine->manifest_fd, (off_t)manifest_bytes) == 0)
        quarantine->manifest_bytes = manifest_bytes;
}

/* ---- moving ---- */

/* Absolute, with links of folders followed, but not of the file itself. */
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
    return join(to, strcmp(real, "/") == 0 ? "" : real, slash ? slash + 1 : path);
}

/* Why this one is not moved; NULL: it can be tried. Folders are told when they cannot be read, or
 * lie too deep, and hold files that nobody has looked at. */
static const char *why_not(const char *from)
{
    struct stat status;
    if (lstat(from, &status) < 0)
        return strerror(errno);
    return S_ISDIR(status.st_mode) ? "it is a folder" : NULL;
}

/* 1 if it was moved; 0, and why in *why, if it is where it was; negative: the manifest's. */
static int note_and_move(pl_quarantine *quarantine, const char *from, const char *reason,
                         char to[PATH_MAX], const char **why)
{
    char name[NAME_MAX + 1];
    uint64_t before = quarantine->manifest_bytes;
    const char *last = strrchr(from, '/') + 1;
    snprintf(name, sizeof name, "%06" PRIu64 "-%.200s", quarantine->last + 1,
             is_utf8(last) && strlen(last) <= 200 ? last : "file");
    int r = join(to, quarantine->folder, name);
    if (r == 0)
        r = add_line(quarantine, from, name, reason);
    if (r < 0) {
        take_line_back(quarantine, before);
        return r;
    }
    quarantine->last++;
    r = pl_move_file(from, to);
    if (r == 0)
        return 1;
    take_line_back(quarantine, before);
    *why = pl_error_text(r);
    return 0;
}

int pl_quarantine_move(pl_quarantine *quarantine, const char *path, const char *reason,
                       char to[PATH_MAX], pl_error *reterr)
{
    char from[PATH_MAX];
    int r = absolute(path, from);
    const char *why = r < 0 ? pl_error_text(r) : why_not(from);
    r = why == NULL ? note_and_move(quarantine, from, reason, to, &why) : 0;
    if (r < 0)
        return refuse(reterr, r, "write the manifest in", quarantine->folder);
    if (r == 0) {
        to[0] = '\0';
        pl_error_set(reterr, -ECANCELED, "%s", why);
    }
    return r;
}

/* ---- moving back ---- */

/* NULL: it is where it was; *moved says whether it was moved now. Else why not. */
static const char *restore_one(const char *from, const char *to, bool *moved)
{
    bool is_back = faccessat(AT_FDCWD, from, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    bool is_away = faccessat(AT_FDCWD, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    *moved = false;
    pl_move_file_clean(to);
    if (!is_away)
        return is_back ? NULL : "it is neither there nor in quarantine";
    if (is_back && pl_files_are_same(from, to)) /* a copy was made, and we died before the end */
        return unlink(to) < 0 ? strerror(errno) : NULL;
    int r = is_back ? -EEXIST : pl_move_file(to, from);
    *moved = r == 0;
    return r == -EEXIST ? "another file is there by now" : r < 0 ? pl_error_text(r) : NULL;
}

typedef struct restoration {
    const char *folder;
    void (*tell)(const char *path, const char *why);
    FILE *left; /* lines that stay */
    pl_quarantine_restored done;
} restoration;

static void restore_line(restoration *restoring, const char *text, size_t n)
{
    json_t *line = NULL;
    json_error_t unused;
    char from[PATH_MAX], to[PATH_MAX];
    bool moved = false;
    const char *why = "the manifest's line cannot be read", *name = NULL;
    if (pl_json_parse(text, n, 0, &line, &unused) == 0)
        name = json_string_value(json_object_get(line, "to"));
    bool good = name && strchr(name, '/') == NULL && path_from_json(line, from) &&
                join(to, restoring->folder, name) == 0;
    if (good)
        why = restore_one(from, to, &moved);
    restoring->done.n_restored += moved;
    if (why) {
        restoring->done.n_left++;
        restoring->tell(good ? from : restoring->folder, why);
        fprintf(restoring->left, "%.*s\n", (int)n, text);
    }
    json_decref(line);
}

static void restore_lines(restoration *restoring, char *text, uint64_t n)
{
    char *end = text + n;
    for (char *line = text, *feed; line < end && (feed = memchr(line, '\n', (size_t)(end - line)));
         line = feed + 1)
        restore_line(restoring, line, (size_t)(feed - line));
}

/* The lines that are left take the manifest's place. */
static int end_restoring(const restoration *restoring, const char *manifest, const char *rest)
{
    int r = fflush(restoring->left) != 0 || fsync(fileno(restoring->left)) < 0 ? -errno : 0;
    if (fclose(restoring->left) != 0 && r == 0)
        r = -errno;
    if (r < 0)
        return r;
    if (restoring->done.n_left > 0)
        return rename(rest, manifest) < 0 ? -errno : 0;
    if (unlink(rest) < 0 || unlink(manifest) < 0)
        return -errno;
    return rmdir(restoring->folder) < 0 && errno != ENOTEMPTY && errno != EEXIST ? -errno : 0;
}

int pl_quarantine_restore(const char *folder, void (*tell)(const char *path, const char *why),
                          pl_quarantine_restored *ret_restored, pl_error *reterr)
{
    char manifest[PATH_MAX], rest[PATH_MAX], *text = NULL;
    uint64_t n = 0;
    int fd;
    restoration restoring = {.folder = folder, .tell = tell};
    int r = open_manifest(folder, 0, &fd, reterr);
    if (r < 0)
        return r;
    r = join(manifest, folder, MANIFEST);
    if (r == 0)
        r = join(rest, folder, MANIFEST ".left");
    if (r == 0)
        r = pl_json_read(manifest, MANIFEST_BYTES_MAX, &text, &n);
    if (r == 0 && (restoring.left = fopen(rest, "we")) == NULL)
        r = -errno;
    if (r == 0) {
        restore_lines(&restoring, text, n);
        r = end_restoring(&restoring, manifest, rest);
    }
    free(text);
    close(fd);
    *ret_restored = restoring.done;
    return r < 0 ? refuse(reterr, r, "restore from", folder) : 0;
}
