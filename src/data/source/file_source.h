/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of sources that read files one after the other.
 *   reader    one open file, in the format of its class
 *   position  where a reader is, as two numbers, for checkpoints
 *
 * The input's elements are paths, as strings. A file that cannot be opened is one bad element, as
 * is the rest of a file whose reader is lost; the next file follows. A file or an element that does
 * not fit beside elements made ahead is read again later. Every element knows its file and byte.
 * The dataset struct of such a class begins with pl_file_source, and its table uses the functions
 * below. */
#ifndef PL_DATA_SOURCE_FILE_SOURCE_H
#define PL_DATA_SOURCE_FILE_SOURCE_H

#include "codec/archive/inflate.h"
#include "data/core/stage.h"

typedef struct pl_file_position {
    uint64_t offset, number;
} pl_file_position;

typedef struct pl_reader_class {
    size_t bytes; /* of a reader; all zero at first */
    int (*open)(const pl_stage *stage, void *reader, const char *path, pl_error *reterr);
    void (*close)(void *reader); /* also of one that open() failed on */
    /* 1 and the items of an element, which has room for them; 0 at the end; negative: it is bad.
     * Where it is, in the file, is set in any case. */
    int (*next)(const pl_stage *stage, void *reader, pl_item *items, uint64_t *ret_offset,
                pl_error *reterr);
    bool (*is_lost)(const void *reader); /* nothing more can be read; NULL: never */
    pl_file_position (*tell)(const void *reader);
    int (*seek)(void *reader, pl_file_position place, pl_error *reterr);
} pl_reader_class;

typedef struct pl_file_source {
    pl_dataset base;
    const pl_reader_class *reader;
    pl_packing packing; /* AUTO, unless pl_file_source_unpack() sets another */
} pl_file_source;

typedef struct pl_file_source_stage {
    pl_stage base;
    pl_origin *origin; /* the file; NULL: the next path's is opened next */
    bool is_open;      /* else it waits for room */
    void *reader;
} pl_file_source_stage;

/* The members of a class's table. */
#define PL_FILE_SOURCE_CLASS                                                                       \
    .stage_bytes = sizeof(pl_file_source_stage), .open = pl_file_source_open,                      \
    .next = pl_file_source_next, .close = pl_file_source_close, .save = pl_file_source_save,       \
    .restore = pl_file_source_restore
PL_MUST_CHECK int pl_file_source_open(pl_stage *stage, pl_error *reterr);
PL_MUST_CHECK int pl_file_source_next(pl_stage *stage, pl_element *ret_element, pl_error *reterr);
void pl_file_source_close(pl_stage *stage);
PL_MUST_CHECK int pl_file_source_save(pl_stage *stage, pl_saver *saver, pl_error *reterr);
PL_MUST_CHECK int pl_file_source_restore(pl_stage *stage, pl_loader *loader, pl_error *reterr);

/* Makes a dataset over paths: fails with -EINVAL if the input's elements are anything else. */
PL_MUST_CHECK int pl_file_source_make(const pl_dataset_class *class, const pl_reader_class *reader,
                                      pl_dataset *paths, int n_components, pl_dataset **ret_dataset,
                                      pl_error *reterr);

/* Sets how its files are compressed. For an invalid compression, fails with -EINVAL and
 * unreferences the dataset. */
PL_MUST_CHECK int pl_file_source_unpack(pl_dataset *dataset, pl_compression compression,
                                        pl_dataset **ret_dataset, pl_error *reterr);

static inline pl_packing pl_file_source_packing(const pl_stage *stage)
{
    return ((const pl_file_source *)stage->dataset)->packing;
}

/* "zlib" and so on, for descriptions; NULL: found out by reading. */
const char *pl_file_source_compression(const pl_dataset *dataset);

/* A string as an item. */
PL_MUST_CHECK int pl_file_source_string(const pl_stage *stage, const void *bytes, size_t n,
                                        pl_item *ret_item, pl_error *reterr);

#endif
