/* SPDX-License-Identifier: Apache-2.0 */
/* See move_file.h. A copy has no name until it is whole: a killed process leaves nothing behind,
 * and no unused name has to be guessed. On file systems without unnamed files it has a random
 * name. */
#include "verify/move_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 * 1024, DRAFT_NAME_BYTES = 40 };

/* Renames without replacing anything. Some file systems do not support this; there we look
 * first. */
static int rename_new(int from_folder, const char *from, int to_folder, const char *to)
{
    if (renameat2(from_folder, from, to_folder, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (faccessat(to_folder, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(from_folder, from, to_folder, to) < 0 ? -errno : 0;
}

/* Opens a file for reading: never a pipe, or the target of a link. */
static int open_file(int folder, const char *name, struct stat *ret_status)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int r = fstat(fd, ret_status) < 0 ? -errno : S_ISREG(ret_status->st_mode) ? 0 : -EINVAL;
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

/* ---- drafts: copies that are not whole yet ---- */

typedef struct draft {
    int fd;
    char name[DRAFT_NAME_BYTES]; /* "": it has no name */
} draft;

static int open_named_draft(int folder, draft *made)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return -EIO;
    snprintf(made->name, sizeof made->name, ".plimsoll-%016" PRIx64, random);
    made->fd =
        openat(folder, made->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return made->fd < 0 ? -errno : 0;
}

/* An unnamed file gets a name through /proc: through the thread's own part of it, because each of
 * the checking threads has a table of descriptors of its own. */
static int open_draft(int folder, draft *made)
{
    made->name[0] = '\0';
    bool can_be_named = access("/proc/thread-self/fd", F_OK) == 0;
    made->fd = can_be_named ? openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (made->fd >= 0)
        return 0;
    bool unknown = errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL;
    return unknown || !can_be_named ? open_named_draft(folder, made) : -errno;
}

static int publish(const draft *made, int folder, const char *name)
{
    char path[48];
    if (made->name[0] != '\0')
        return rename_new(folder, made->name, folder, name);
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", made->fd);
    return linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* ---- copying ---- */

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

static int fill(int in, const struct stat *status, int out)
{
    const struct timespec times[2] = {status->st_atim, status->st_mtim};
    int r = copy_bytes(in, out);
    if (r == 0 && fchown(out, status->st_uid, status->st_gid) < 0)
        errno = 0; /* only root may; the bytes matter more */
    if (r == 0 &&
        (fchmod(out, status->st_mode & 07777) < 0 || futimens(out, times) < 0 || fsync(out) < 0))
        r = -errno;
    return r;
}

static int copy_file(int from_folder, const char *from, int to_folder, const char *to)
{
    struct stat status;
    draft made;
    int in = open_file(from_folder, from, &status);
    int r = in < 0 ? in : open_draft(to_folder, &made);
    if (r == 0) {
        r = fill(in, &status, made.fd);
        if (r == 0)
            r = publish(&made, to_folder, to);
        if (r < 0 && made.name[0] != '\0')
            unlinkat(to_folder, made.name, 0);
        close(made.fd);
    }
    if (in >= 0)
        close(in);
    return r;
}

static bool read_link(int folder, const char *name, char target[PATH_MAX])
{
    ssize_t n = readlinkat(folder, name, target, PATH_MAX);
    if (n < 0 || n >= PATH_MAX)
        return false;
    target[n] = '\0';
    return true;
}

/* Copies a link as a link: its target may not exist, and is not ours. */
static int copy(int from_folder, const char *from, int to_folder, const char *to)
{
    char target[PATH_MAX];
    if (!read_link(from_folder, from, target))
        return copy_file(from_folder, from, to_folder, to);
    return symlinkat(target, to_folder, to) < 0 ? -errno : 0;
}

/* Makes sure that the new name is on disk before the old one is removed. */
static int sync_folder(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
    close(fd);
    return r;
}

static int move_by_copy(int from_folder, const char *from, int to_folder, const char *to)
{
    int r = copy(from_folder, from, to_folder, to);
    if (r < 0)
        return r;
    r = sync_folder(to_folder);
    if (r == 0 && unlinkat(from_folder, from, 0) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(to_folder, to, 0);
    return r;
}

int pl_move_file(int from_folder, const char *from, int to_folder, const char *to)
{
    int r = rename_new(from_folder, from, to_folder, to);
    return r == -EXDEV ? move_by_copy(from_folder, from, to_folder, to) : r;
}

/* ---- comparing ---- */

static bool have_same_bytes(int a, int b)
{
    char x[4096], y[4096];
    for (;;) {
        ssize_t n = read(a, x, sizeof x), done = 0;
        for (ssize_t got; n > 0 && done < n; done += got)
            if ((got = read(b, y + done, (size_t)(n - done))) <= 0)
                return false;
        if (n <= 0 || memcmp(x, y, (size_t)n) != 0)
            return n == 0;
    }
}

bool pl_files_are_same(int folder_a, const char *a, int folder_b, const char *b)
{
    char to_a[PATH_MAX], to_b[PATH_MAX];
    struct stat status_a, status_b;
    bool link_a = read_link(folder_a, a, to_a), link_b = read_link(folder_b, b, to_b);
    if (link_a || link_b)
        return link_a && link_b && strcmp(to_a, to_b) == 0;
    int one = open_file(folder_a, a, &status_a), two = open_file(folder_b, b, &status_b);
    bool same =
        one >= 0 && two >= 0 && status_a.st_size == status_b.st_size && have_same_bytes(one, two);
    if (one >= 0)
        close(one);
    if (two >= 0)
        close(two);
    return same;
}
