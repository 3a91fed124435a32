/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of a tar file, as WebDataset lays them out: see codec/archive/sample_name.h.
 *   sample  the files of one key, which are behind each other
 *   part    one of these files: its extension and its data
 *   wanted  extensions that are asked for, in their order; "jpg;jpeg;png" takes any of these
 *
 * A sample's parts are in memory that is claimed for them, and used again for the next one; of what
 * is not wanted nothing is read. What is wrong with a sample costs that sample:
 *   - an extension that it has twice, or one that is wanted and that it does not have,
 *   - a key that was there before: its files are not behind each other,
 *   - a file that cannot be read; if nothing behind it can, the next call is at the end.
 * Where an archive fails behind a sample that has all that is wanted, that one is given first.
 * Keys are remembered as 64 bits each, claimed as well. One thread at a time. */
#ifndef PL_DATA_READER_SAMPLE_READER_H
#define PL_DATA_READER_SAMPLE_READER_H

#include "data/reader/key_set.h"
#include "data/reader/tar_reader.h"

enum { PL_SAMPLE_PARTS_MAX = 64, PL_SAMPLE_EXTENSION_BYTES = 64 };

typedef struct pl_sample_part {
    char extension[PL_SAMPLE_EXTENSION_BYTES]; /* in lower case */
    const void *data;                          /* NULL: none such is there */
    uint64_t data_bytes;
    uint64_t offset; /* of the data, in the file */
} pl_sample_part;

typedef struct pl_sample {
    const char *key; /* ends in NUL */
    uint64_t offset; /* of its first entry */
    int n_parts;
    const pl_sample_part *parts; /* those wanted, in that order; or all, as they come */
} pl_sample;

typedef struct pl_sample_reader pl_sample_reader;

/* `path`, `wanted` and `memory` are borrowed; wanted NULL: all. -EINVAL for too many, -ENOMEM,
 * PL_EBUDGET; -ENOENT and so on. */
PL_MUST_CHECK int pl_sample_reader_new(const char *path, pl_packing packing,
                                       const char *const *wanted, int n_wanted, pl_memory *memory,
                                       pl_sample_reader **ret_reader, pl_error *reterr);
void pl_sample_reader_free(pl_sample_reader *reader); /* NULL is allowed */

/* 1 and the next sample, good until the next call; 0 at the end. PL_EFORMAT, PL_ECORRUPT, -ENOTSUP:
 * what is wrong with it, as above; *ret_offset is set on failure as well. PL_EBUDGET, -EIO and so
 * on. */
PL_MUST_CHECK int pl_sample_reader_next(pl_sample_reader *reader, pl_sample *ret_sample,
                                        uint64_t *ret_offset, pl_error *reterr);

/* Before the next sample; to a place that was told. Keys from before it are not remembered then. */
uint64_t pl_sample_reader_tell(const pl_sample_reader *reader);
PL_MUST_CHECK int pl_sample_reader_seek(pl_sample_reader *reader, uint64_t offset,
                                        pl_error *reterr);

#endif
