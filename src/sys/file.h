/* SPDX-License-Identifier: Apache-2.0 */
/* Files as bytes at offsets: whole reads and writes, files without a name, space taken ahead.
 *   whole    all of the bytes or an error: a call that did less, or was interrupted, goes on
 *   direct   bypassing the page cache (O_DIRECT); memory, offset and length are then multiples of
 *            PL_FILE_DIRECT_BYTES
 * Never allocates. Safe from any thread; descriptors are closed on exec. */
#ifndef PL_SYS_FILE_H
#define PL_SYS_FILE_H

#include <limits.h>
#include <sys/types.h>

#include "base/base.h"

/* The alignment that every disk accepts; 512 would do for most. */
#define PL_FILE_DIRECT_BYTES 4096

/* mkdir -p: the folder and all above it, each with `mode` less the umask. A folder that exists is
 * fine; -ENOTDIR if it is not a folder. */
PL_MUST_CHECK int pl_file_make_folders(const char *path, mode_t mode);

/* A file for reading and writing that no name leads to: it is gone with its last descriptor, also
 * when the process is killed. Returns the descriptor. */
PL_MUST_CHECK int pl_file_open_unnamed(const char *directory);

/* May a file have this many bytes? -EFBIG beyond the process's limit (RLIMIT_FSIZE), where a write
 * would cause a signal. */
PL_MUST_CHECK int pl_file_may_grow(uint64_t bytes);

/* One more descriptor of an open file, for direct access to what it may be used for. -EINVAL where
 * the file system has none. */
PL_MUST_CHECK int pl_file_open_direct(int fd);

/* A regular file for reading. -EINVAL for anything else; nothing is waited for. */
PL_MUST_CHECK int pl_file_open_regular(const char *path, uint64_t *ret_bytes);

/* The folder of an absolute path, without following a link anywhere on the way: a descriptor to
 * name files below (O_PATH). -ELOOP: a part of it is a link. -EINVAL: not absolute, or with a `..`.
 */
PL_MUST_CHECK int pl_file_open_folder(const char *path);

/* Resolves `path` where it is a link, or a chain of links, to the path to write to, which need not
 * exist yet. -ELOOP, -ENAMETOOLONG. */
PL_MUST_CHECK int pl_file_follow_links(const char *path, char name[PATH_MAX]);

/* Opens a file for this descriptor alone to write: makes it if it is missing (*ret_found is then
 * false), else keeps its content, and locks it until the last copy of the descriptor is closed.
 * -EBUSY if it is locked, in this process or another. -EEXIST if it must not be written to, because
 * it may belong to someone else: a link, not a regular file, another user's, or one with another
 * name. Whether the caller made it, its content must show. */
PL_MUST_CHECK int pl_file_open_locked(const char *path, bool *ret_found);

/* Opens it without a lock, for a file system that has none (-ENOLCK or -EOPNOTSUPP). */
PL_MUST_CHECK int pl_file_open_own(const char *path, bool *ret_found);

/* PL_ECORRUPT if the file ends before: someone cut it off. */
PL_MUST_CHECK int pl_file_read(int fd, void *data, size_t n, uint64_t offset);
PL_MUST_CHECK int pl_file_write(int fd, const void *data, size_t n, uint64_t offset);

/* Reads into `room`, which has PL_FILE_AROUND_BYTES more than are read: whole pages around them,
 * bypassing the page cache, if `direct` is a descriptor for that and the file system does not
 * refuse. *ret_data is where the bytes are. */
#define PL_FILE_AROUND_BYTES (3 * PL_FILE_DIRECT_BYTES)
PL_MUST_CHECK int pl_file_read_around(int fd, int direct, void *room, size_t n, uint64_t offset,
                                      void **ret_data);

/* Writes whole pages past the page cache where `direct` is a descriptor for that, and the address
 * lies in its page as the offset does; the ends, and all else, through it. Of a page that others
 * write another part of nothing is lost. -EINVAL: the file system took the flag and refuses the
 * call; then `direct` should be -1. */
PL_MUST_CHECK int pl_file_write_straight(int fd, int direct, const void *data, size_t n,
                                         uint64_t offset);

/* Takes disk space for [offset, offset + n), so that writing there cannot meet a full disk.
 * -ENOSPC, or -EFBIG at the limit on file sizes (never its signal); -EOPNOTSUPP where the file
 * system cannot: a write then shows it. */
PL_MUST_CHECK int pl_file_reserve(int fd, uint64_t offset, uint64_t n);

/* Gives back what lies behind `bytes`. */
PL_MUST_CHECK int pl_file_cut(int fd, uint64_t bytes);

typedef struct pl_file_space {
    uint64_t free_bytes; /* for this user */
    bool in_memory;      /* tmpfs or ramfs: what is written there uses memory */
} pl_file_space;

/* About the file system that a folder, or an open file, is on. */
PL_MUST_CHECK int pl_file_space_at(const char *directory, pl_file_space *ret_space);
PL_MUST_CHECK int pl_file_space_of(int fd, pl_file_space *ret_space);

#endif
