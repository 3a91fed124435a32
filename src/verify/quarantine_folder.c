/* SPDX-License-Identifier: Apache-2.0 */
/* See quarantine_private.h. Paths are bytes and JSON is UTF-8: a path that is not UTF-8 is written
 * as hexadecimal digits, under another key. */
#include "verify/quarantine_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/text/utf8.h"
#include "sys/file.h"

#define MANIFEST_BYTES_MAX PL_GIB

int pl_quarantine_refuse(pl_error *reterr, int code, const char *what, const char *path)
{
    return pl_error_set(reterr, code, "cannot %s '%s': %s", what, path, pl_error_text(code));
}

/* ---- the folder ---- */

/* A folder that others may write to holds files that others chose. */
static int check_owner(int fd, const char *path, pl_error *reterr)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return pl_quarantine_refuse(reterr, -errno, "look at", path);
    if (status.st_uid != geteuid())
        return pl_error_set(reterr, -EPERM,
                            "'%s' belongs to another user (%u): it is not used as quarantine", path,
                            (unsigned)status.st_uid);
    if ((status.st_mode & S_IWOTH) != 0)
        return pl_error_set(reterr, -EPERM,
                            "'%s' may be written to by everybody: it is not used as quarantine; "
                            "see what is in it, then chmod o-w",
                            path);
    return 0;
}

static int open_folder(pl_quarantine *quarantine, const char *folder, pl_error *reterr)
{
    if (realpath(folder, quarantine->folder) == NULL)
        return pl_quarantine_refuse(reterr, -errno, "find the folder", folder);
    int fd = pl_file_open_folder(quarantine->folder);
    if (fd < 0)
        return pl_quarantine_refuse(reterr, fd, "open", quarantine->folder);
    int r = check_owner(fd, quarantine->folder, reterr);
    if (r < 0) {
        close(fd);
        return r;
    }
    quarantine->folder_fd = fd;
    return 0;
}

/* With a second name elsewhere, that file would be written to as well. */
static int check_manifest(int fd, const char *path, pl_error *reterr)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return pl_quarantine_refuse(reterr, -errno, "look at", path);
    if (!S_ISREG(status.st_mode) || status.st_nlink > 1)
        return pl_error_set(reterr, -EINVAL, "'%s' is not a file of its own: it is not used", path);
    return check_owner(fd, path, reterr);
}

static int lock(int fd, const char *path, pl_error *reterr)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &whole) == 0)
        return 0;
    bool busy = errno == EAGAIN || errno == EACCES;
    return pl_quarantine_refuse(reterr, busy ? -EBUSY : -errno, "have for ourselves", path);
}

static int open_manifest(pl_quarantine *quarantine, int flags, pl_error *reterr)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" PL_MANIFEST, quarantine->folder) >= (int)sizeof path)
        return pl_quarantine_refuse(reterr, -ENAMETOOLONG, "use", quarantine->folder);
    int fd = openat(quarantine->folder_fd, PL_MANIFEST,
                    O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0644);
    if (fd < 0 && errno == ELOOP)
        return pl_error_set(reterr, -ELOOP, "cannot open '%s': it is a link", path);
    if (fd < 0)
        return pl_quarantine_refuse(reterr, -errno, "open", path);
    int r = check_manifest(fd, path, reterr);
    if (r == 0)
        r = lock(fd, path, reterr);
    if (r < 0)
        close(fd);
    else
        quarantine->manifest_fd = fd;
    return r;
}

int pl_quarantine_attach(pl_quarantine *quarantine, const char *folder, int flags, pl_error *reterr)
{
    pl_quarantine made = {.folder_fd = -1, .manifest_fd = -1};
    int r = open_folder(&made, folder, reterr);
    if (r == 0)
        r = open_manifest(&made, flags, reterr);
    if (r < 0) {
        if (made.folder_fd >= 0)
            close(made.folder_fd);
        return r;
    }
    *quarantine = made;
    return 0;
}

/* ---- the manifest ---- */

int pl_quarantine_read(const pl_quarantine *quarantine, char **ret_text, uint64_t *ret_n)
{
    struct stat status;
    if (fstat(quarantine->manifest_fd, &status) < 0)
        return -errno;
    uint64_t n = (uint64_t)status.st_size;
    char *text = n <= MANIFEST_BYTES_MAX ? malloc(n + 1) : NULL;
    if (!text)
        return n <= MANIFEST_BYTES_MAX ? -ENOMEM : -EFBIG;
    int r = pl_file_read(quarantine->manifest_fd, text, n, 0);
    if (r < 0) {
        free(text);
        return r;
    }
    *ret_text = text;
    *ret_n = n;
    return 0;
}

bool pl_quarantine_is_utf8(const char *text)
{
    return pl_utf8_valid_bytes(text, strlen(text), NULL) == strlen(text);
}

const char *pl_quarantine_path_key(const char *path)
{
    return pl_quarantine_is_utf8(path) ? "from" : "from_hex";
}

json_t *pl_quarantine_path_to_json(const char *path)
{
    static const char digits[] = "0123456789abcdef";
    char hex[2 * PATH_MAX];
    size_t n = 0;
    if (pl_quarantine_is_utf8(path))
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

bool pl_quarantine_path_from_json(const json_t *line, char path[PATH_MAX])
{
    const char *text = json_string_value(json_object_get(line, "from"));
    const char *hex = json_string_value(json_object_get(line, "from_hex"));
    if (text)
        return snprintf(path, PATH_MAX, "%s", text) < PATH_MAX;
    size_t n = hex ? strlen(hex) / 2 : PATH_MAX;
    for (size_t i = 0; i < n && n < PATH_MAX; i++) {
        int high = digit_of(hex[2 * i]), low = digit_of(hex[2 * i + 1]);
        if (high < 0 || low < 0 || (high | low) == 0)
            return false;
        path[i] = (char)(high << 4 | low);
    }
    if (n < PATH_MAX)
        path[n] = '\0';
    return n < PATH_MAX;
}
