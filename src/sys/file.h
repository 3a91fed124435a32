/* SPDX-License-Identifier: Apache-2.0 */
/* Files as bytes at offsets: whole reads and writes, unnamed files, space reserved in advance.
 *   whole    all of the bytes or an error: a call that did less, or was interrupted, is continued
 *   direct   bypassing the page cache (O_DIRECT); memory, offset and length must be multiples of
 *            PL_FILE_DIRECT_BYTES
 * Never allocates. Safe from any thread; descriptors are closed on exec. */
#ifndef PL_SYS_FILE_H
#define PL_SYS_FILE_H

#include <limits.h>
#include <sys/types.h>

#include "base/base.h"

/* The alignment that every disk accepts; 512 would do for most. */
#define PL_FILE_DIRECT_BYTES 4096

/* Works as mkdir -p: makes the folder and all above it, each with `mode` less the umask. A folder
 * that exists is fine; -ENOTDIR if something else has the name. */
PL_MUST_CHECK int pl_file_make_folders(const char *path, mode_t mode);

/* Opens an unnamed file for reading and writing. It disappears with its last descriptor, even when
 * the process is killed. Returns the descriptor. */
PL_MUST_CHECK int pl_file_open_unnamed(const char *directory);

/* Checks that a file may have this many bytes. -EFBIG beyond the process's limit (RLIMIT_FSIZE),
 * where a write would raise a signal. */
PL_MUST_CHECK int pl_file_may_grow(uint64_t bytes);

/* Opens one more descriptor of an open file, for direct access. -EINVAL if the file system does not
 * support that. */
PL_MUST_CHECK int pl_file_open_direct(int fd);

/* Opens a regular file for reading. -EINVAL for anything else; never waits, as a pipe would. */
PL_MUST_CHECK int pl_file_open_regular(const char *path, uint64_t *ret_bytes);

/* Opens the folder of an absolute path without following a link anywhere on the way. Returns a
 * descriptor (O_PATH) to name files below. -ELOOP: a part of the path is a link. -EINVAL: the path
 * is not absolute, or has a `..`. */
PL_MUST_CHECK int pl_file_open_folder(const char *path);

/* Resolves `path`, if it is a link or a chain of links, to the path to write to, which need not
 * exist yet. -ELOOP, -ENAMETOOLONG. */
PL_MUST_CHECK int pl_file_follow_links(const char *path, char name[PATH_MAX]);

/* Opens a file that only this descriptor may write. Makes it if it is missing (*ret_found is then
 * false), else keeps its content, and locks it until the last copy of the descriptor is closed.
 * -EBUSY if it is locked, in this process or another. -EEXIST if it may belong to someone else and
 * must not be written: a link, not a regular file, another user's, or one that has another name.
 * The caller can recognise a file of its own only by the content. */
PL_MUST_CHECK int pl_file_open_locked(const char *path, bool *ret_found);

/* Opens it without a lock, for file systems without locks (-ENOLCK or -EOPNOTSUPP). */
PL_MUST_CHECK int pl_file_open_own(const char *path, bool *ret_found);

/* PL_ECORRUPT if the file ends before: someone truncated it. */
PL_MUST_CHECK int pl_file_read(int fd, void *data, size_t n, uint64_t offset);
PL_MUST_CHECK int pl_file_write(int fd, const void *data, size_t n, uint64_t offset);

/* Reads into `room`, which must be PL_FILE_AROUND_BYTES larger than the bytes to read. If `direct`
 * is a descriptor for direct access and the file system does not refuse, reads the whole pages
 * around the bytes, bypassing the page cache. *ret_data points to the bytes. */
#define PL_FILE_AROUND_BYTES (3 * PL_FILE_DIRECT_BYTES)
PL_MUST_CHECK int pl_file_read_around(int fd, int direct, void *room, size_t n, uint64_t offset,
                                      void **ret_data);

/* Writes whole pages past the page cache if `direct` is a descriptor for that, and the address has
 * the same place in its page as the offset; writes the ends, and everything else, through the
 * cache. Others may write other parts of the same pages meanwhile, and nothing of that is lost.
 * -EINVAL: the file system accepted the flag but refuses the call; `direct` should be -1 from then
 * on. */
PL_MUST_CHECK int pl_file_write_straight(int fd, int direct, const void *data, size_t n,
                                         uint64_t offset);

/* Reserves disk space for [offset, offset + n), so that writing there cannot meet a full disk.
 * -ENOSPC, or -EFBIG at the limit on file sizes (without the signal); -EOPNOTSUPP if the file
 * system cannot reserve: a later write may then fail. */
PL_MUST_CHECK int pl_file_reserve(int fd, uint64_t offset, uint64_t n);

/* Truncates the file to `bytes`. */
PL_MUST_CHECK int pl_file_cut(int fd, uint64_t bytes);

typedef struct pl_file_space {
    uint64_t free_bytes; /* available to this user */
    bool in_memory;      /* tmpfs or ramfs: written data uses memory */
} pl_file_space;

/* Describes the file system of a folder, or of an open file. */
PL_MUST_CHECK int pl_file_space_at(const char *directory, pl_file_space *ret_space);
PL_MUST_CHECK int pl_file_space_of(int fd, pl_file_space *ret_space);

#endif
