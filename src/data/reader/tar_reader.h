/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the entries of a tar file one by one: see codec/archive/tar.h.
 *
 * Headers pass through a window; data goes from the file to the caller's memory, or is not read. An
 * entry's size is checked against the file before the entry is returned, and so before anything is
 * claimed for it. Corrupt data ends the file. One thread at a time. */
#ifndef PL_DATA_READER_TAR_READER_H
#define PL_DATA_READER_TAR_READER_H

#include "codec/archive/tar.h"
#include "data/reader/file_window.h"

typedef struct pl_tar_reader {
    pl_file_window window;
    pl_tar tar;
    pl_tar_entry entry;  /* the last one returned */
    bool lost;           /* nothing more can be read */
    uint64_t most_bytes; /* the size of the file, at most */
} pl_tar_reader;

/* Borrows `path` and `memory`. `window_bytes` 0: PL_FILE_WINDOW_BYTES. PL_EBUDGET; -ENOENT and so
 * on. */
PL_MUST_CHECK int pl_tar_reader_init(pl_tar_reader *reader, const char *path, pl_packing packing,
                                     uint64_t window_bytes, pl_memory *memory, pl_error *reterr);
void pl_tar_reader_done(pl_tar_reader *reader);

/* Returns 1 and the next entry, whose name is valid until the next call; or 0 at the end.
 * PL_ECORRUPT: the next call returns 0. -ENOTSUP: a sparse file; the next call continues after it.
 * -EIO and so on. */
PL_MUST_CHECK int pl_tar_reader_next(pl_tar_reader *reader, pl_tar_entry *ret_entry,
                                     pl_error *reterr);

/* Reads the data of the entry just returned: its data_bytes, once. PL_ECORRUPT if it cannot be
 * unpacked, or the file has been truncated meanwhile; the next call then returns 0. */
PL_MUST_CHECK int pl_tar_reader_read(pl_tar_reader *reader, void *to, pl_error *reterr);

/* The offset before the next entry, and a way to the offset of any entry. */
uint64_t pl_tar_reader_tell(const pl_tar_reader *reader);
PL_MUST_CHECK int pl_tar_reader_seek(pl_tar_reader *reader, uint64_t offset, pl_error *reterr);

#endif
