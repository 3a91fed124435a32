/* SPDX-License-Identifier: Apache-2.0 */
/* Reads zip archives, which .npz files are: the directory at the end, and its entries.
 *   end        the last record of the file: gives the place of the directory. In large files
 *              (zip64) another record before it does
 *   directory  an entry for each file: name, lengths, checksum, place of its local header
 *   packed     stored as it is, or deflated; anything else, or encrypted, is refused
 *
 * Nothing in a file is trusted: every offset and length is checked against the file's size.
 * Messages say what is wrong and at which byte; the caller adds the file. Borrows the bytes,
 * allocates nothing; pure, safe from any thread. */
#ifndef PL_CODEC_ARCHIVE_ZIP_H
#define PL_CODEC_ARCHIVE_ZIP_H

#include "base/base.h"

enum {
    PL_ZIP_TAIL_BYTES = 65536 + 22 + 20 + 56, /* the end records are within these last bytes */
    PL_ZIP_LOCAL_BYTES = 30,                  /* of a local header, without name and extra */
    PL_ZIP_ENTRY_BYTES = 46,                  /* of a directory entry, without name and extra */
    PL_ZIP_DEFLATED = 8,
};

typedef struct pl_zip_directory {
    uint64_t offset, bytes;
    uint64_t n_entries;
} pl_zip_directory;

typedef struct pl_zip_entry {
    const char *name; /* in the directory; no NUL */
    size_t n_name;
    uint16_t method; /* 0 (stored) or PL_ZIP_DEFLATED */
    uint32_t crc;    /* of the unpacked bytes: CRC-32 */
    uint64_t packed_bytes, unpacked_bytes;
    uint64_t local_offset; /* of the local header */
} pl_zip_entry;

/* Finds the directory from the last `n` bytes of a file of `file_bytes`; n is PL_ZIP_TAIL_BYTES, or
 * the whole file. PL_ECORRUPT: truncated, or not a zip at all. */
PL_MUST_CHECK int pl_zip_find_directory(const void *tail, size_t n, uint64_t file_bytes,
                                        pl_zip_directory *ret_directory, pl_error *reterr);

/* Parses the entry at byte *at of the directory's bytes, and moves *at past it. 1; 0 at the end;
 * PL_ECORRUPT; -ENOTSUP for an entry that cannot be unpacked, with *at past it. */
PL_MUST_CHECK int pl_zip_next(const pl_zip_directory *directory, const void *bytes, size_t *at,
                              pl_zip_entry *ret_entry, pl_error *reterr);

/* The least part of the file that an entry takes: local header and packed bytes. */
typedef struct pl_zip_place {
    uint64_t begin, end;
} pl_zip_place;

pl_zip_place pl_zip_place_of(const pl_zip_entry *entry);

/* Checks that entries do not overlap: each would be unpacked, so a small file could cost any time
 * and have any size. Sorts the places. PL_ECORRUPT. */
PL_MUST_CHECK int pl_zip_check_apart(const pl_zip_directory *directory, pl_zip_place *places,
                                     size_t n, pl_error *reterr);

/* Finds where an entry's data begins, from the PL_ZIP_LOCAL_BYTES at its local offset.
 * PL_ECORRUPT. */
PL_MUST_CHECK int pl_zip_data_offset(const pl_zip_entry *entry, const void *local,
                                     uint64_t file_bytes, uint64_t *ret_offset, pl_error *reterr);

#endif
