/* SPDX-License-Identifier: Apache-2.0 */
/* The files of datasets: checkpoints, caches, snapshots. docs/dataset-files.md has every byte.
 *   kind    the type of file, as four letters
 *   record  a piece of the file with its length and two checksums: TFRecord's framing
 *   stream  the data of all records, one after the other: savers write it, loaders read it
 *   end     the last record, with the length and a checksum of all before it
 *   part    "PATH.part", the file while it is written, renamed to PATH when all of it is on the
 *           disk
 *
 * PATH exists only if it is complete. A writer locks its part (by the open file description), so
 * there is never a second one; a writer that was killed leaves a part without a lock, which the
 * next one takes over if it begins as such. Readers need no lock: a file that is replaced stays
 * unchanged for readers that have it open. The window is claimed from the runtime's memory. Belongs
 * to one thread. */
#ifndef PL_DATA_PERSIST_RECORD_FILE_H
#define PL_DATA_PERSIST_RECORD_FILE_H

#include "data/persist/state.h"

enum { PL_RECORD_FILE_KIND_BYTES = 4 };

#define PL_RECORD_FILE_CHECKPOINT "ckpt"
#define PL_RECORD_FILE_ELEMENTS   "elem"
#define PL_RECORD_FILE_FOLDER     "fold"

typedef struct pl_record_file_writer {
    pl_saver saver;
    int fd;     /* -1: it is not open */
    char *path; /* the part's final name */
    char *part; /* NULL: it is written under its final name */
    pl_block window;
    uint64_t offset;       /* of the next record */
    uint64_t stream_bytes; /* in records before it */
    uint32_t sum;          /* of these records' checksums */
    uint32_t generation;   /* of the process that writes */
} pl_record_file_writer;

/* Fails with -EBUSY if another writer has it, -EEXIST if another kind of file has the part's name,
 * PL_EBUDGET without room for the window. */
PL_MUST_CHECK int pl_record_file_begin(pl_record_file_writer *writer, pl_runtime *runtime,
                                       const char *path, const char *kind, pl_error *reterr);

/* pl_record_file_begin() without lock and part, for a name that no other process knows yet. */
PL_MUST_CHECK int pl_record_file_create(pl_record_file_writer *writer, pl_runtime *runtime,
                                        const char *path, const char *kind, pl_error *reterr);

/* Completes the file: it is on the disk under its name, or, on failure, removed. */
PL_MUST_CHECK int pl_record_file_end(pl_record_file_writer *writer, pl_error *reterr);

/* Removes it instead. A writer that is all zero, or done, is allowed. */
void pl_record_file_drop(pl_record_file_writer *writer);

typedef struct pl_record_file_reader {
    pl_loader loader;
    int fd; /* valid while path is not NULL */
    char *path;
    pl_block window;
    uint64_t file_bytes;
    struct pl_record_position {
        uint64_t offset;       /* of a record */
        uint64_t stream_bytes; /* in those before it */
        uint32_t sum;          /* of those before it */
    } next, now;               /* `now` is in the window */
    uint64_t end_bytes; /* of the stream, and its checksum, from the end record: they identify the
                           file */
    uint32_t end_sum;
} pl_record_file_reader;

/* Fails with -ENOENT; PL_EFORMAT if it is another kind of file; PL_EVERSION; PL_ECORRUPT without a
 * valid end. Messages name the path. */
PL_MUST_CHECK int pl_record_file_open(pl_record_file_reader *reader, pl_runtime *runtime,
                                      const char *path, const char *kind, pl_error *reterr);

/* Checks that this is the end, and the checksum of all before it. PL_ECORRUPT. */
PL_MUST_CHECK int pl_record_file_check_end(pl_record_file_reader *reader, pl_error *reterr);
void pl_record_file_close(pl_record_file_reader *reader);

/* A position, to go back to. */
typedef struct pl_record_file_mark {
    struct pl_record_position place; /* of a record */
    size_t at;                       /* within it */
} pl_record_file_mark;

pl_record_file_mark pl_record_file_mark_of(const pl_record_file_reader *reader);
PL_MUST_CHECK int pl_record_file_go_back(pl_record_file_reader *reader, pl_record_file_mark mark,
                                         pl_error *reterr);

/* Position and identity of the file, for a checkpoint; and back there. -EINVAL for another file of
 * the same name. */
PL_MUST_CHECK int pl_record_file_save_position(const pl_record_file_reader *reader, pl_saver *saver,
                                               pl_error *reterr);
PL_MUST_CHECK int pl_record_file_load_position(pl_record_file_reader *reader, pl_loader *loader,
                                               pl_error *reterr);

/* Adds path and advice to a message that says only what is wrong. Returns the code. */
int pl_record_file_fail(const char *path, int code, pl_error *reterr);

#endif
