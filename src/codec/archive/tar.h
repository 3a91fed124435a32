/* SPDX-License-Identifier: Apache-2.0 */
/* Tar archives: their entries, one after the other, in a stream that is looked at through windows.
 *   header   512 bytes with a checksum: name, type and size of an entry
 *   entry    a header and, of a file, its data, filled up to whole 512 bytes
 *   meta     an entry that says something of the next one: a long name (GNU's types L and K), or
 *            any of its attributes (pax, type x; for all that follow: type g)
 *   end      a header of zeros
 *
 * ustar, GNU's and pax archives are read, and what came before them. Of the attributes, name and
 * size matter. Nothing in an archive is trusted: checksums are verified, and sizes held against the
 * file's before anybody allocates by them. Sparse files are refused, and cost themselves only. An
 * archive that has no end is cut off, and said to be so after its last entry.
 *
 * Messages say what is wrong and at which byte; the caller says with which file. Borrows the bytes,
 * allocates nothing; a pl_tar belongs to one thread. */
#ifndef PL_CODEC_ARCHIVE_TAR_H
#define PL_CODEC_ARCHIVE_TAR_H

#include "base/base.h"

enum {
    PL_TAR_BLOCK_BYTES = 512,
    PL_TAR_NAME_BYTES = 4096,  /* with its NUL; longer ones are refused */
    PL_TAR_META_BYTES = 65536, /* larger ones are refused */
    PL_TAR_WINDOW_BYTES = PL_TAR_META_BYTES + PL_TAR_BLOCK_BYTES, /* is always enough */
};

#define PL_TAR_SIZE_UNKNOWN UINT64_MAX

typedef struct pl_tar_entry {
    const char *name;     /* in the pl_tar, until the next entry; ends in NUL */
    size_t n_name;        /* its bytes, which are any but NUL */
    bool is_file;         /* a regular one, with data; all others are for the caller to pass by */
    char type;            /* the header's: '5' is a folder */
    uint64_t offset;      /* of its header, or of the meta entries before it */
    uint64_t data_offset; /* of its data */
    uint64_t data_bytes;
} pl_tar_entry;

typedef struct pl_tar {
    uint64_t file_bytes; /* at most; or PL_TAR_SIZE_UNKNOWN */
    uint64_t offset;     /* of what is to be parsed next */
    uint64_t begin;      /* of the entry: its first meta entry */
    /* What meta entries say of the next one. */
    bool has_name, has_size, is_sparse;
    uint64_t size;
    size_t n_name;
    char name[PL_TAR_NAME_BYTES];
    bool more_map; /* a sparse file's map goes on */
    uint64_t map_data_bytes;
} pl_tar;

/* A stream of so many bytes. All else is as at its beginning; to begin at another entry, set its
 * offset. */
void pl_tar_init(pl_tar *tar, uint64_t file_bytes);

/* The next entry; `bytes` are those from tar->offset on. 1: an entry; tar->offset is then behind
 * its data. 0, and *ret_need is 0: the end. 0, and it is not: so many bytes are needed from
 * tar->offset on, which may be further than it was; n were too few. PL_ECORRUPT: there is no going
 * on. -ENOTSUP: a sparse file, behind which tar->offset is. With `is_last` nothing is behind the
 * bytes. */
PL_MUST_CHECK int pl_tar_next(pl_tar *tar, const void *bytes, size_t n, bool is_last,
                              pl_tar_entry *ret_entry, size_t *ret_need, pl_error *reterr);

#endif
