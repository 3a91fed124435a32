/* SPDX-License-Identifier: Apache-2.0 */
/* A record file of elements: a cache, or a shard of a folder.
 *   label  identifies the elements: the text of the dataset (dataset_text.h), or a folder's run
 *   tail   counts behind the last element: bad ones that were skipped at the end
 *
 *   stream = label, then a 1 and an element as often as there are some, then a 0, their number and
 *            the tail
 *
 * Belongs to one thread. */
#ifndef PL_DATA_PERSIST_ELEMENT_FILE_H
#define PL_DATA_PERSIST_ELEMENT_FILE_H

#include "data/persist/record_file.h"

typedef struct pl_element_writer {
    pl_record_file_writer file;
    int64_t n;
} pl_element_writer;

/* `in_place`: see pl_record_file_create(). */
PL_MUST_CHECK int pl_element_writer_begin(pl_element_writer *writer, pl_runtime *runtime,
                                          const char *path, const char *label, bool in_place,
                                          pl_error *reterr);
PL_MUST_CHECK int pl_element_writer_add(pl_element_writer *writer, const pl_element *element,
                                        pl_error *reterr);

/* Complete, or gone. `tail` may be NULL. */
PL_MUST_CHECK int pl_element_writer_end(pl_element_writer *writer, const pl_element *tail,
                                        pl_error *reterr);
void pl_element_writer_drop(pl_element_writer *writer); /* all zero is allowed */

typedef struct pl_element_reader {
    pl_record_file_reader file;
    int64_t n;       /* read so far */
    pl_element tail; /* at the end; the caller may take it */
    bool ended;
} pl_element_reader;

/* As pl_record_file_open(); -EINVAL for another label. */
PL_MUST_CHECK int pl_element_reader_open(pl_element_reader *reader, pl_runtime *runtime,
                                         const char *path, const char *label, pl_error *reterr);
void pl_element_reader_close(pl_element_reader *reader); /* all zero is allowed */

/* 1; 0 at the end; PL_ECORRUPT, with the path and advice. PL_EBUDGET leaves the reader unchanged. */
PL_MUST_CHECK int pl_element_reader_next(pl_element_reader *reader, const pl_dataset *dataset,
                                         pl_element *ret_element, pl_error *reterr);

PL_MUST_CHECK int pl_element_reader_save(const pl_element_reader *reader, pl_saver *saver,
                                         pl_error *reterr);
PL_MUST_CHECK int pl_element_reader_restore(pl_element_reader *reader, pl_loader *loader,
                                            pl_error *reterr);

#endif
