/* SPDX-License-Identifier: Apache-2.0 */
/* One file that is checked, by one thread.
 *   head     its first bytes, read once: PL_VERIFY_HEAD_BYTES, or all of it
 *   finding  the worst problem, and among equals the first; the others are only counted
 *   room     memory for pixels and bytes, one per thread: claimed, and kept for the next file
 *
 * A validator reads the file with the datasets' own reader or codec, and reports their errors. It
 * returns 0 for any findings; negative only if the check itself failed, which is not evidence about
 * the file: -ECANCELED, out of memory. */
#ifndef PL_VERIFY_FILE_H
#define PL_VERIFY_FILE_H

#include <stdatomic.h>

#include "tensor/memory.h"
#include "verify/format.h"

enum { PL_VERIFY_HEAD_BYTES = 256 * 1024 };

typedef enum pl_verify_severity {
    PL_VERIFY_GOOD,
    PL_VERIFY_NOTE,    /* worth knowing about all files: sizes, copies, labels */
    PL_VERIFY_WARNING, /* it can be read, but is not what it seems */
    PL_VERIFY_ERROR,   /* it cannot be read in full */
} pl_verify_severity;

const char *pl_verify_severity_name(pl_verify_severity severity);

#define PL_VERIFY_NO_OFFSET UINT64_MAX

enum { PL_VERIFY_REASON_BYTES = PL_ERROR_MESSAGE_BYTES };

typedef struct pl_verify_finding {
    pl_verify_severity severity;
    uint64_t offset;              /* unpacked; or PL_VERIFY_NO_OFFSET */
    uint64_t n_more;              /* other findings in this file, not reported */
    int64_t record, line, column; /* as in pl_error; -1: unknown */
    char reason[PL_VERIFY_REASON_BYTES];
} pl_verify_finding;

/* The folder of a thread's last file: looking names up below it costs less than whole paths. Opened
 * for the second file there. */
typedef struct pl_verify_near {
    const char *path; /* of a file in it, borrowed */
    size_t n_path;    /* the part of it that names the folder */
    int fd;           /* 0: not opened */
} pl_verify_near;

typedef struct pl_verify_room {
    pl_block head; /* PL_VERIFY_HEAD_BYTES */
    pl_block unpacked_head, pixels, bytes;
    pl_verify_near folder;
} pl_verify_room;

/* Claims the head. On failure the room is all zero: PL_EBUDGET. */
PL_MUST_CHECK int pl_verify_room_init(pl_verify_room *room, pl_memory *memory, pl_error *reterr);
void pl_verify_room_done(pl_verify_room *room, pl_memory *memory);

/* Call it in the thread that used the folder: others may not have the descriptor. */
void pl_verify_leave_folder(pl_verify_near *folder);

struct pl_verify_schema;

typedef struct pl_verify_file {
    const char *path;
    int fd;
    const uint8_t *head;
    size_t n_head;
    bool is_whole;       /* the head is the whole file */
    uint64_t file_bytes; /* as stored */
    bool is_packed;      /* gzip */
    pl_verify_format format, promise;
    bool want_values;           /* count NaN and Inf */
    bool want_size_only;        /* for --plan: the cost of an element, not whether it is good */
    uint64_t limit_bytes;       /* of a CSV record */
    pl_memory *memory;          /* borrowed */
    pl_verify_room *room;       /* the thread's */
    const atomic_bool *stopped; /* set when the check must end */
    /* Results: */
    pl_verify_finding finding;
    int64_t height, width;           /* of an image */
    int channels;                    /* as stored in the file */
    uint64_t n_elements;             /* images, records, lines, arrays */
    uint64_t element_bytes;          /* the largest, decoded */
    uint64_t total_bytes;            /* all together, decoded */
    struct pl_verify_schema *schema; /* of a TFRecord's first example; the caller frees it */
} pl_verify_file;

/* Remembers a finding. */
void pl_verify_report(pl_verify_file *file, pl_verify_severity severity, uint64_t offset,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Does the same for an error of a codec or reader. `where` goes before its message; the error's
 * byte is counted from offset `begin` of the file. */
void pl_verify_report_fault(pl_verify_file *file, pl_verify_severity severity, uint64_t begin,
                            const char *where, const pl_error *why);

/* Does the same for an error that has the place in the file. */
void pl_verify_report_place(pl_verify_file *file, pl_verify_severity severity, const pl_error *why);

/* Does the same for a reader's error, at `offset` if the error has no place. Returns 0; or the
 * code, in *reterr, if the error is not about the file. */
PL_MUST_CHECK int pl_verify_report_error(pl_verify_file *file, uint64_t offset, const pl_error *why,
                                         pl_error *reterr);

/* Reports content that differs from the promise of the file's name. An image with another image's
 * name is read all the same, because decoders go by content: a warning. `where` as for
 * pl_verify_image_bytes(). */
void pl_verify_report_promise(pl_verify_file *file, pl_verify_format format,
                              pl_verify_format promise, uint64_t offset, const char *where);

/* Returns -ECANCELED once the check must end. */
PL_MUST_CHECK int pl_verify_go_on(const pl_verify_file *file, pl_error *reterr);

/* Gives a block of the thread's with at least `bytes`. PL_EBUDGET. */
PL_MUST_CHECK int pl_verify_room_for(pl_verify_file *file, pl_block *block, uint64_t bytes,
                                     const char *what, pl_error *reterr);

/* Gives all bytes of the file: the head, or read into the thread's room. PL_EBUDGET, -EIO. */
PL_MUST_CHECK int pl_verify_all_bytes(pl_verify_file *file, const uint8_t **ret_bytes,
                                      pl_error *reterr);

/* Counts one more element, of so many bytes. */
void pl_verify_count(pl_verify_file *file, uint64_t element_bytes);

/* ---- the validators, each in a file of its own ---- */

typedef int pl_verify_check(pl_verify_file *file, pl_error *reterr);

pl_verify_check pl_verify_npy;
pl_verify_check pl_verify_npz;
pl_verify_check pl_verify_records;
pl_verify_check pl_verify_image;
pl_verify_check pl_verify_text;
pl_verify_check pl_verify_csv;
pl_verify_check pl_verify_tar;
pl_verify_check pl_verify_json;

/* Checks an image in memory; `where` is "" or "'a.jpg': ", and goes before the message. */
PL_MUST_CHECK int pl_verify_image_bytes(pl_verify_file *file, const void *bytes, size_t n,
                                        uint64_t offset, const char *where, pl_error *reterr);

#endif
