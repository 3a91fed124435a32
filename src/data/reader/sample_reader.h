/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the samples of a tar file in the WebDataset layout: see codec/archive/sample_name.h.
 *   sample  the files with the same key, one after the other
 *   part    one of these files: its extension and its data
 *   wanted  the extensions to return, in order; "jpg;jpeg;png" accepts any of these
 *
 * The parts of a sample lie in claimed memory, which the next sample reuses; unwanted files are not
 * read. An error in a sample costs only that sample:
 *   - a duplicate extension, or a missing wanted one,
 *   - a key that occurred before: its files are not in one place,
 *   - a file that cannot be read; if nothing after it can be read either, the next call returns 0.
 * If an archive fails after a sample that has all wanted parts, that sample is returned first. Keys
 * are remembered as 64 bits each, in claimed memory. One thread at a time. */
#ifndef PL_DATA_READER_SAMPLE_READER_H
#define PL_DATA_READER_SAMPLE_READER_H

#include "data/reader/key_set.h"
#include "data/reader/tar_reader.h"

enum { PL_SAMPLE_PARTS_MAX = 64, PL_SAMPLE_EXTENSION_BYTES = 64 };

typedef struct pl_sample_part {
    char extension[PL_SAMPLE_EXTENSION_BYTES]; /* in lower case */
    const void *data;                          /* NULL: the sample has no such part */
    uint64_t data_bytes;
    uint64_t offset; /* of the data, in the file */
} pl_sample_part;

typedef struct pl_sample {
    const char *key; /* NUL-terminated */
    uint64_t offset; /* of its first entry */
    int n_parts;
    const pl_sample_part *parts; /* the wanted ones, in that order; or all, in file order */
} pl_sample;

typedef struct pl_sample_reader pl_sample_reader;

/* Borrows `path`, `wanted` and `memory`; wanted NULL: all. -EINVAL for too many, -ENOMEM,
 * PL_EBUDGET; -ENOENT and so on. */
PL_MUST_CHECK int pl_sample_reader_new(const char *path, pl_packing packing,
                                       const char *const *wanted, int n_wanted, pl_memory *memory,
                                       pl_sample_reader **ret_reader, pl_error *reterr);
void pl_sample_reader_free(pl_sample_reader *reader); /* NULL is allowed */

/* Returns 1 and the next sample, valid until the next call; 0 at the end. PL_EFORMAT, PL_ECORRUPT,
 * -ENOTSUP: an error in the sample, as above; *ret_offset is set on failure too. PL_EBUDGET, -EIO
 * and so on. */
PL_MUST_CHECK int pl_sample_reader_next(pl_sample_reader *reader, pl_sample *ret_sample,
                                        uint64_t *ret_offset, pl_error *reterr);

/* The offset before the next sample, and a way back to such an offset. Keys from before it are then
 * forgotten. */
uint64_t pl_sample_reader_tell(const pl_sample_reader *reader);
PL_MUST_CHECK int pl_sample_reader_seek(pl_sample_reader *reader, uint64_t offset,
                                        pl_error *reterr);

#endif
