/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a tar file, one after the other: see codec/archive/tar.h.
 *
 * Headers pass through a window; data goes from the file to where the caller wants it, or is not
 * read. An entry's size is known, and held against the file, before anything is claimed for it.
 * Behind what is corrupt there is nothing. One thread at a time. */
#ifndef PL_DATA_READER_TAR_READER_H
#define PL_DATA_READER_TAR_READER_H

#include "codec/archive/tar.h"
#include "data/reader/file_window.h"

typedef struct pl_tar_reader {
    pl_file_window window;
    pl_tar tar;
    pl_tar_entry entry;  /* the last that was told */
    bool lost;           /* there is no going on */
    uint64_t most_bytes; /* that the file has */
} pl_tar_reader;

/* `path` and `memory` are borrowed. `window_bytes` 0: PL_FILE_WINDOW_BYTES. PL_EBUDGET; -ENOENT and
 * so on. */
PL_MUST_CHECK int pl_tar_reader_init(pl_tar_reader *reader, const char *path, pl_packing packing,
                                     uint64_t window_bytes, pl_memory *memory, pl_error *reterr);
void pl_tar_reader_done(pl_tar_reader *reader);

/* 1 and the next entry, its name good until the next call; or 0 at the end. PL_ECORRUPT; then the
 * next call is at the end. -ENOTSUP: a sparse file; the next call goes on. -EIO and so on. */
PL_MUST_CHECK int pl_tar_reader_next(pl_tar_reader *reader, pl_tar_entry *ret_entry,
                                     pl_error *reterr);

/* The data of the entry that was just told: its data_bytes. Once. PL_ECORRUPT if it cannot be
 * unpacked, or the file has been cut off meanwhile; then the next call is at the end. */
PL_MUST_CHECK int pl_tar_reader_read(pl_tar_reader *reader, void *to, pl_error *reterr);

/* Before the next entry; to the offset of any entry. */
uint64_t pl_tar_reader_tell(const pl_tar_reader *reader);
PL_MUST_CHECK int pl_tar_reader_seek(pl_tar_reader *reader, uint64_t offset, pl_error *reterr);

#endif
