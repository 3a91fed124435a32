/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are kept: checkpoints, caches, snapshots. docs/dataset-files.md has every byte.
 *   kind    what the file is, as four letters
 *   record  a piece of the file with its length and two checksums: TFRecord's framing
 *   stream  what savers write and loaders read: the records' data behind each other
 *   end     the last record, with the length and a checksum of all before it
 *   part    "PATH.part", which is written, and becomes PATH when all of it is on the disk
 *
 * There is a file PATH only if it is complete. Whoever writes one has its part locked (by its open
 * file description), so that two writers never meet in it; one that was killed leaves a part that
 * nobody has locked, which the next writer takes over if it begins as one. Whoever reads has no
 * lock: a file that is replaced meanwhile stays what it was to him. The window is claimed from the
 * runtime's memory. Belongs to one thread.
 */
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
    char *path; /* that it becomes */
    char *part; /* NULL: it is written in its place */
    pl_block window;
    uint64_t offset;       /* of the next record */
    uint64_t stream_bytes; /* in records before it */
    uint32_t sum;          /* of these records' checksums */
    uint32_t generation;   /* of the process that writes */
} pl_record_file_writer;

/* -EBUSY: somebody else writes it, now. -EEXIST: its part's name is another file's. PL_EBUDGET for
 * the window. */
PL_MUST_CHECK int pl_record_file_begin(pl_record_file_writer *writer, pl_runtime *runtime,
                                       const char *path, const char *kind, pl_error *reterr);

/* The same without a lock or a part, for a file of a name that nobody knows yet. */
PL_MUST_CHECK int pl_record_file_create(pl_record_file_writer *writer, pl_runtime *runtime,
                                        const char *path, const char *kind, pl_error *reterr);

/* All is written: the file is complete, on the disk, and has its name; or, on failure, is gone. */
PL_MUST_CHECK int pl_record_file_end(pl_record_file_writer *writer, pl_error *reterr);

/* Instead of that. One that is all zero, or done, is left alone. */
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
    uint64_t end_bytes; /* of the stream, and its checksum, as the end tells: what the file is known
                           by */
    uint32_t end_sum;
} pl_record_file_reader;

/* -ENOENT; PL_EFORMAT: it is another kind of file altogether; PL_EVERSION; PL_ECORRUPT: it has no
 * end, or that is not right. Messages name the path. */
PL_MUST_CHECK int pl_record_file_open(pl_record_file_reader *reader, pl_runtime *runtime,
                                      const char *path, const char *kind, pl_error *reterr);

/* Is this the end, and was all before it as it was written? PL_ECORRUPT. */
PL_MUST_CHECK int pl_record_file_check_end(pl_record_file_reader *reader, pl_error *reterr);
void pl_record_file_close(pl_record_file_reader *reader);

/* Where it is, to go back there. */
typedef struct pl_record_file_mark {
    struct pl_record_position place; /* of a record */
    size_t at;                       /* within it */
} pl_record_file_mark;

pl_record_file_mark pl_record_file_mark_of(const pl_record_file_reader *reader);
PL_MUST_CHECK int pl_record_file_go_back(pl_record_file_reader *reader, pl_record_file_mark mark,
                                         pl_error *reterr);

/* Where it is, and which file that is, for a checkpoint; and back there. -EINVAL for another file
 * of the same name. */
PL_MUST_CHECK int pl_record_file_save_position(const pl_record_file_reader *reader, pl_saver *saver,
                                               pl_error *reterr);
PL_MUST_CHECK int pl_record_file_load_position(pl_record_file_reader *reader, pl_loader *loader,
                                               pl_error *reterr);

/* Puts path and what to do before a message that says only what is wrong. Returns the code. */
int pl_record_file_fail(const char *path, int code, pl_error *reterr);

#endif
