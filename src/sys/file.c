/* SPDX-License-Identifier: Apache-2.0 */
/* See file.h. */
#include "sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "sys/fixed_text.h"

/* Copied from linux/magic.h, which not every libc has. */
enum { TMPFS = 0x01021994, RAMFS = 0x858458f6 };

/* The kernel cuts one call at 2 GiB less a page; whole pieces keep direct access aligned. */
#define PIECE_BYTES PL_GIB

/* Linux follows this many links. */
#define LINKS_MAX 40

static int open_and_unlink(const char *directory)
{
    char path[PATH_MAX];
    pl_fixed_text text = pl_fixed_text_begin(path, sizeof path);
    pl_fixed_text_add(&text, directory);
    pl_fixed_text_add(&text, "/plimsoll-XXXXXX");
    if (text.overflow)
        return -ENAMETOOLONG;
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    unlink(path);
    return fd;
}

int pl_file_make_folders(const char *path, mode_t mode)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof part)
        return -ENAMETOOLONG;
    memcpy(part, path, n + 1);
    for (char *slash = part + 1;; slash++) {
        slash = strchrnul(slash, '/');
        char kept = *slash;
        *slash = '\0';
        if (mkdir(part, mode) < 0 && errno != EEXIST)
            return -errno;
        if (kept == '\0')
            break;
        *slash = kept;
    }
    struct stat st;
    if (stat(path, &st) < 0)
        return -errno;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int pl_file_open_unnamed(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* EISDIR: a kernel, or a file system below it, that does not know the flag. */
    return errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL ? open_and_unlink(directory)
                                                                     : -errno;
}

int pl_file_open_direct(int fd)
{
    char path[48];
    pl_fixed_text text = pl_fixed_text_begin(path, sizeof path);
    pl_fixed_text_add(&text, "/proc/thread-self/fd/"); /* it may have its own descriptor table */
    pl_fixed_text_add_u64(&text, (uint64_t)fd);
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -errno;
    int direct = open(path, (flags & O_ACCMODE) | O_DIRECT | O_CLOEXEC);
    return direct < 0 ? -errno : direct;
}

int pl_file_open_regular(const char *path, uint64_t *ret_bytes)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int r = fstat(fd, &info) < 0 ? -errno : S_ISREG(info.st_mode) ? 0 : -EINVAL;
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_bytes = (uint64_t)info.st_size;
    return fd;
}

/* Opens one part of a path and closes the folder that it is in. */
static int open_part(int folder, const char *name)
{
    struct stat info;
    int fd = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0 ? -errno : fd;
    if (r == -ENOTDIR && fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(info.st_mode))
        r = -ELOOP;
    close(folder);
    return r;
}

int pl_file_open_folder(const char *path)
{
    char name[NAME_MAX + 1];
    if (path[0] != '/')
        return -EINVAL;
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (const char *next = path; fd >= 0 && *(next += strspn(next, "/")) != '\0';) {
        size_t n = strcspn(next, "/");
        if (n >= sizeof name || (n == 2 && memcmp(next, "..", 2) == 0)) {
            close(fd);
            return n >= sizeof name ? -ENAMETOOLONG : -EINVAL;
        }
        memcpy(name, next, n);
        name[n] = '\0';
        fd = open_part(fd, name);
        next += n;
    }
    return fd;
}

/* Replaces a link by its target, relative to the folder that the link is in. */
static int follow_once(char path[PATH_MAX], const char *to)
{
    const char *slash = strrchr(path, '/');
    size_t n = to[0] != '/' && slash ? (size_t)(slash - path) + 1 : 0;
    if (n + strlen(to) >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(path + n, to, strlen(to) + 1);
    return 0;
}

int pl_file_follow_links(const char *path, char name[PATH_MAX])
{
    char to[PATH_MAX];
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(name, path, strlen(path) + 1);
    for (int i = 0; i < LINKS_MAX; i++) {
        ssize_t n = readlink(name, to, sizeof to - 1);
        if (n < 0)
            return 0;
        to[n] = '\0';
        int r = follow_once(name, to);
        if (r < 0)
            return r;
    }
    return -ELOOP;
}

static bool names(const char *path, int fd)
{
    struct stat named, open;
    return stat(path, &named) == 0 && fstat(fd, &open) == 0 && named.st_dev == open.st_dev &&
           named.st_ino == open.st_ino;
}

/* Is it our own regular file, with one name only? Another user may have prepared a name that can be
 * guessed: as a link to a file that must not be truncated, or as a pipe. */
static bool is_own(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink <= 1 &&
           info.st_uid == geteuid();
}

static int open_found(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ELOOP || errno == EISDIR || errno == ENXIO ? -EEXIST : -errno;
    if (is_own(fd))
        return fd;
    close(fd);
    return -EEXIST;
}

int pl_file_open_own(const char *path, bool *ret_found)
{
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        *ret_found = fd < 0 && errno == EEXIST;
        if (!*ret_found)
            return fd < 0 ? -errno : fd;
        fd = open_found(path);
        if (fd != -ENOENT) /* otherwise it disappeared in between */
            return fd;
    }
}

/* The previous holder may have renamed or removed it between our open() and our lock. */
int pl_file_open_locked(const char *path, bool *ret_found)
{
    for (;;) {
        int fd = pl_file_open_own(path, ret_found);
        if (fd < 0)
            return fd;
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int r = fcntl(fd, F_OFD_SETLK, &whole) < 0 ? -errno : 0;
        if (r == 0 && names(path, fd))
            return fd;
        close(fd);
        if (r < 0)
            return r == -EAGAIN || r == -EACCES ? -EBUSY : r;
    }
}

int pl_file_read(int fd, void *data, size_t n, uint64_t offset)
{
    char *to = data;
    while (n > 0) {
        ssize_t got = pread(fd, to, pl_min_u64(n, PIECE_BYTES), (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            return PL_ECORRUPT;
        to += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return 0;
}

int pl_file_may_grow(uint64_t bytes)
{
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur;
    return limited || bytes > INT64_MAX ? -EFBIG : 0;
}

int pl_file_write(int fd, const void *data, size_t n, uint64_t offset)
{
    const char *from = data;
    if (pl_file_may_grow(pl_add_sat_u64(offset, n)) < 0)
        return -EFBIG;
    while (n > 0) {
        ssize_t put = pwrite(fd, from, pl_min_u64(n, PIECE_BYTES), (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) /* 0 for more than 0 bytes: POSIX allows it, and a retry might never end */
            return put < 0 ? -errno : -EIO;
        from += put;
        n -= (size_t)put;
        offset += (uint64_t)put;
    }
    return 0;
}

/* Reads whole pages. Stops early at the file's end, or when a read ends inside a page; *ret_got
 * says where. */
static int read_pages(int direct, char *data, size_t n, uint64_t offset, size_t *ret_got)
{
    size_t got = 0;
    while (got < n && got % PL_FILE_DIRECT_BYTES == 0) {
        ssize_t more =
            pread(direct, data + got, pl_min_u64(n - got, PIECE_BYTES), (off_t)(offset + got));
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -errno;
        if (more == 0)
            break;
        got += (size_t)more;
    }
    *ret_got = got;
    return 0;
}

int pl_file_read_around(int fd, int direct, void *room, size_t n, uint64_t offset, void **ret_data)
{
    uintptr_t page =
        ((uintptr_t)room + PL_FILE_DIRECT_BYTES - 1) & ~(uintptr_t)(PL_FILE_DIRECT_BYTES - 1);
    size_t before = offset % PL_FILE_DIRECT_BYTES, got = 0;
    size_t pages = (before + n + PL_FILE_DIRECT_BYTES - 1) / PL_FILE_DIRECT_BYTES;
    char *data = (char *)page + before;
    int r = direct < 0 ? -EINVAL
                       : read_pages(direct, (char *)page, pages * PL_FILE_DIRECT_BYTES,
                                    offset - before, &got);
    if (r < 0 && r != -EINVAL)
        return r;
    got = got > before ? pl_min_u64(got - before, n) : 0;
    r = pl_file_read(fd, data + got, n - got, offset + got);
    if (r == 0)
        *ret_data = data;
    return r;
}

int pl_file_write_straight(int fd, int direct, const void *data, size_t n, uint64_t offset)
{
    const char *from = data;
    size_t before = (size_t)(-offset % PL_FILE_DIRECT_BYTES);
    bool straight = ((uintptr_t)data - offset) % PL_FILE_DIRECT_BYTES == 0;
    if (direct < 0 || !straight || n < before + PL_FILE_DIRECT_BYTES)
        return pl_file_write(fd, data, n, offset);
    size_t pages = (n - before) / PL_FILE_DIRECT_BYTES * PL_FILE_DIRECT_BYTES;
    int r = pl_file_write(direct, from + before, pages, offset + before);
    if (r == 0)
        r = pl_file_write(fd, data, before, offset);
    if (r == 0)
        r = pl_file_write(fd, from + before + pages, n - before - pages, offset + before + pages);
    return r;
}

int pl_file_reserve(int fd, uint64_t offset, uint64_t n)
{
    uint64_t end;
    if (__builtin_add_overflow(offset, n, &end) || pl_file_may_grow(end) < 0)
        return -EFBIG;
    while (fallocate(fd, 0, (off_t)offset, (off_t)n) < 0)
        if (errno != EINTR)
            return errno == ENOSYS ? -EOPNOTSUPP : -errno;
    return 0;
}

int pl_file_cut(int fd, uint64_t bytes)
{
    while (ftruncate(fd, (off_t)bytes) < 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}

static pl_file_space space_of(const struct statfs *info)
{
    uint64_t free_bytes;
    if (__builtin_mul_overflow((uint64_t)info->f_bavail, (uint64_t)info->f_bsize, &free_bytes))
        free_bytes = UINT64_MAX;
    uint32_t type = (uint32_t)info->f_type;
    return (pl_file_space){
        .free_bytes = free_bytes,
        .in_memory = type == (uint32_t)TMPFS || type == (uint32_t)RAMFS,
    };
}

int pl_file_space_at(const char *directory, pl_file_space *ret_space)
{
    struct statfs info;
    if (statfs(directory, &info) < 0)
        return -errno;
    *ret_space = space_of(&info);
    return 0;
}

int pl_file_space_of(int fd, pl_file_space *ret_space)
{
    struct statfs info;
    if (fstatfs(fd, &info) < 0)
        return -errno;
    *ret_space = space_of(&info);
    return 0;
}
