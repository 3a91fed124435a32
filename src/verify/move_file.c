/* SPDX-License-Identifier: Apache-2.0 */
/* See move_file.h. */
#include "verify/move_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 * 1024 };

/* Without replacing anything; some file systems know no such rename, and we look first. */
static int rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (faccessat(AT_FDCWD, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return rename(from, to) < 0 ? -errno : 0;
}

static int copy_bytes(int in, int out)
{
    char piece[PIECE_BYTES];
    for (;;) {
        ssize_t n = read(in, piece, sizeof piece);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        for (ssize_t done = 0; done < n;) {
            ssize_t written = write(out, piece + done, (size_t)(n - done));
            if (written < 0)
                return -errno;
            done += written;
        }
    }
}

static int copy_file(int in, const char *to)
{
    struct stat status;
    int out =
        fstat(in, &status) < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out < 0)
        return -errno;
    const struct timespec times[2] = {status.st_atim, status.st_mtim};
    int r = copy_bytes(in, out);
    if (r == 0 && fchown(out, status.st_uid, status.st_gid) < 0)
        errno = 0; /* only root may; the bytes matter more */
    if (r == 0 &&
        (fchmod(out, status.st_mode & 07777) < 0 || futimens(out, times) < 0 || fsync(out) < 0))
        r = -errno;
    if (close(out) < 0 && r == 0)
        r = -errno;
    return r;
}

/* That the new name is on disk, before the old one goes. */
static int sync_parent(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
    close(fd);
    return r;
}

static bool name_partial(const char *to, char partial[PATH_MAX])
{
    return snprintf(partial, PATH_MAX, "%s.partial", to) < PATH_MAX;
}

static bool read_link(const char *path, char target[PATH_MAX])
{
    ssize_t n = readlink(path, target, PATH_MAX);
    if (n < 0 || n >= PATH_MAX)
        return false;
    target[n] = '\0';
    return true;
}

/* Of a link, the link: what it leads to may be nothing, and is somebody else's. */
static int copy(const char *from, const char *to)
{
    char target[PATH_MAX];
    if (read_link(from, target)) {
        unlink(to);
        return symlink(target, to) < 0 ? -errno : 0;
    }
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (in < 0)
        return -errno;
    int r = copy_file(in, to);
    close(in);
    return r;
}

static int move_by_copy(const char *from, const char *to)
{
    char partial[PATH_MAX];
    if (!name_partial(to, partial))
        return -ENAMETOOLONG;
    int r = copy(from, partial);
    if (r == 0)
        r = rename_new(partial, to);
    if (r < 0) {
        unlink(partial);
        return r;
    }
    r = sync_parent(to);
    if (r == 0 && unlink(from) < 0)
        r = -errno;
    if (r < 0)
        unlink(to);
    return r;
}

int pl_move_file(const char *from, const char *to)
{
    int r = rename_new(from, to);
    return r == -EXDEV ? move_by_copy(from, to) : r;
}

void pl_move_file_clean(const char *to)
{
    char partial[PATH_MAX];
    if (name_partial(to, partial))
        unlink(partial);
}

bool pl_files_are_same(const char *a, const char *b)
{
    char to_a[PATH_MAX], to_b[PATH_MAX];
    bool link_a = read_link(a, to_a), link_b = read_link(b, to_b);
    if (link_a || link_b)
        return link_a && link_b && strcmp(to_a, to_b) == 0;
    FILE *one = fopen(a, "rbe"), *two = fopen(b, "rbe");
    char x[4096], y[4096];
    bool same = one && two;
    for (size_t n = 1; same && n > 0;) {
        n = fread(x, 1, sizeof x, one);
        same =
            fread(y, 1, sizeof y, two) == n && memcmp(x, y, n) == 0 && !ferror(one) && !ferror(two);
    }
    if (one)
        fclose(one);
    if (two)
        fclose(two);
    return same;
}
