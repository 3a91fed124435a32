/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of elements: snapshots, and datasets that were saved.
 *   shard     a file of elements (element_file.h): element i is in shard i % n_shards
 *   metadata  the file "metadata": what is in the folder, and which shards
 *   run       a unique name of one writing; shards begin with it
 *
 * The folder has elements only if it has metadata, which comes last, when all shards are on the
 * disk. A run that is killed leaves shards that no metadata names; the next one removes them. A
 * run that replaces another removes the old shards once its own metadata is there; readers have the
 * old ones open. Only one run writes at a time: the metadata's part is locked, see record_file.h.
 * Each struct belongs to one thread. */
#ifndef PL_DATA_PERSIST_FOLDER_H
#define PL_DATA_PERSIST_FOLDER_H

#include "data/persist/element_file.h"

enum { PL_FOLDER_SHARDS_MOST = 4096, PL_FOLDER_RUN_BYTES = 17 };

typedef struct pl_folder_info {
    char run[PL_FOLDER_RUN_BYTES]; /* 16 hexadecimal digits */
    char *tree;                    /* of the dataset that was written */
    int64_t n_shards, n_elements;
    pl_spec *specs;
    int n_components;
    pl_element tail; /* only counts */
} pl_folder_info;

/* -ENOENT if there is none; as pl_record_file_open(). */
PL_MUST_CHECK int pl_folder_look(pl_runtime *runtime, const char *path, pl_folder_info *ret_info,
                                 pl_error *reterr);
void pl_folder_forget(pl_folder_info *info); /* all zero is allowed */

typedef struct pl_folder_writer {
    pl_folder_info info;
    pl_runtime *runtime; /* borrowed */
    char *path;
    pl_record_file_writer metadata;
    pl_element_writer *shards;
} pl_folder_writer;

/* -EBUSY. `dataset` gives tree and specs. */
PL_MUST_CHECK int pl_folder_begin(pl_folder_writer *writer, const pl_dataset *dataset,
                                  const char *path, int64_t n_shards, pl_error *reterr);
PL_MUST_CHECK int pl_folder_add(pl_folder_writer *writer, const pl_element *element,
                                pl_error *reterr);

/* Complete, or nothing of it is left; the writer is done. */
PL_MUST_CHECK int pl_folder_end(pl_folder_writer *writer, const pl_element *tail, pl_error *reterr);
void pl_folder_drop(pl_folder_writer *writer); /* all zero, or done, is allowed */

typedef struct pl_folder_reader {
    pl_folder_info info;
    pl_element_reader *shards;
    int64_t n; /* read so far */
} pl_folder_reader;

PL_MUST_CHECK int pl_folder_open(pl_folder_reader *reader, pl_runtime *runtime, const char *path,
                                 pl_error *reterr);
void pl_folder_close(pl_folder_reader *reader); /* all zero is allowed */

/* 1; 0 at the end. */
PL_MUST_CHECK int pl_folder_next(pl_folder_reader *reader, const pl_dataset *dataset,
                                 pl_element *ret_element, pl_error *reterr);

PL_MUST_CHECK int pl_folder_save(const pl_folder_reader *reader, pl_saver *saver, pl_error *reterr);
PL_MUST_CHECK int pl_folder_restore(pl_folder_reader *reader, pl_loader *loader, pl_error *reterr);

#endif
