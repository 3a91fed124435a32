/* SPDX-License-Identifier: Apache-2.0 */
/* Parses tar archives: their entries one by one, in a stream that the caller shows in windows.
 *   header   512 bytes with a checksum: name, type and size of an entry
 *   entry    a header and, for a file, its data, padded to a multiple of 512 bytes
 *   meta     an entry that describes the next one: a long name (GNU's types L and K), or any
 *            attributes (pax, type x; for all following entries: type g)
 *   end      a header of zeros
 *
 * Reads ustar, GNU and pax archives, and older ones. Of the attributes, only name and size matter.
 * Nothing in an archive is trusted: checksums are verified, and sizes are checked against the
 * file's before anybody allocates by them. A sparse file is refused, and costs only itself. An
 * archive without an end is truncated: that is reported after its last entry.
 *
 * Messages say what is wrong and at which byte; the caller adds the file. Borrows the bytes,
 * allocates nothing; a pl_tar belongs to one thread. */
#ifndef PL_CODEC_ARCHIVE_TAR_H
#define PL_CODEC_ARCHIVE_TAR_H

#include "base/base.h"

enum {
    PL_TAR_BLOCK_BYTES = 512,
    PL_TAR_NAME_BYTES = 4096,  /* including the NUL; longer ones are refused */
    PL_TAR_META_BYTES = 65536, /* larger ones are refused */
    PL_TAR_WINDOW_BYTES = PL_TAR_META_BYTES + PL_TAR_BLOCK_BYTES, /* always enough */
};

#define PL_TAR_SIZE_UNKNOWN UINT64_MAX

typedef struct pl_tar_entry {
    const char *name;     /* in the pl_tar, until the next entry; NUL-terminated */
    size_t n_name;        /* any bytes but NUL */
    bool is_file;         /* a regular file, with data; callers skip all others */
    char type;            /* from the header: '5' is a folder */
    uint64_t offset;      /* of its header, or of the first meta entry before it */
    uint64_t data_offset; /* of its data */
    uint64_t data_bytes;
} pl_tar_entry;

typedef struct pl_tar {
    uint64_t file_bytes; /* at most; or PL_TAR_SIZE_UNKNOWN */
    uint64_t offset;     /* of the next bytes to parse */
    uint64_t begin;      /* of the entry: its first meta entry */
    /* From meta entries, for the next entry. */
    bool has_name, has_size, is_sparse;
    uint64_t size;
    size_t n_name;
    char name[PL_TAR_NAME_BYTES];
    bool more_map; /* a sparse file's map continues */
    uint64_t map_data_bytes;
} pl_tar;

/* Begins a stream of so many bytes. To begin at another entry, set its offset. */
void pl_tar_init(pl_tar *tar, uint64_t file_bytes);

/* Finds the next entry; `bytes` are those from tar->offset on. 1: an entry; tar->offset is then
 * after its data. 0, and *ret_need is 0: the end. 0, and *ret_need is not 0: n was too few; so
 * many bytes are needed from tar->offset on, which may have moved. PL_ECORRUPT: nothing more can
 * be read. -ENOTSUP: a sparse file; tar->offset is after it. With `is_last` nothing follows the
 * bytes. */
PL_MUST_CHECK int pl_tar_next(pl_tar *tar, const void *bytes, size_t n, bool is_last,
                              pl_tar_entry *ret_entry, size_t *ret_need, pl_error *reterr);

#endif
