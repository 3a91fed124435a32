/* SPDX-License-Identifier: Apache-2.0 */
/* One file that is checked, by one thread.
 *   head     its first bytes, read once: PL_VERIFY_HEAD_BYTES, or all of it
 *   finding  what is wrong: the worst problem, and among equals the first; the others are counted
 *   room     memory for pixels and bytes, a thread's own: claimed, and kept for the next file
 *
 * A validator reads the file with the datasets' own reader or codec, and reports their errors. It
 * returns 0 whatever it finds; negative only if the check itself failed, which says nothing about
 * the file: -ECANCELED, out of memory. */
#ifndef PL_VERIFY_FILE_H
#define PL_VERIFY_FILE_H

#include <stdatomic.h>

#include "tensor/memory.h"
#include "verify/format.h"

enum { PL_VERIFY_HEAD_BYTES = 256 * 1024 };

typedef enum pl_verify_severity {
    PL_VERIFY_GOOD,
    PL_VERIFY_NOTE,    /* worth knowing of the whole: sizes, copies, labels */
    PL_VERIFY_WARNING, /* it can be read, and is not what it seems */
    PL_VERIFY_ERROR,   /* it cannot be read whole */
} pl_verify_severity;

const char *pl_verify_severity_name(pl_verify_severity severity);

#define PL_VERIFY_NO_OFFSET UINT64_MAX

enum { PL_VERIFY_REASON_BYTES = PL_ERROR_MESSAGE_BYTES };

typedef struct pl_verify_finding {
    pl_verify_severity severity;
    uint64_t offset;              /* unpacked; or PL_VERIFY_NO_OFFSET */
    uint64_t n_more;              /* findings of this file that are not reported */
    int64_t record, line, column; /* as in pl_error; -1: unknown */
    char reason[PL_VERIFY_REASON_BYTES];
} pl_verify_finding;

/* The folder of a thread's last file: names are looked up below it at less cost than whole paths.
 * Opened for the second file there. */
typedef struct pl_verify_near {
    const char *path; /* of a file in it, borrowed */
    size_t n_path;    /* the folder's bytes of that */
    int fd;           /* 0: not opened */
} pl_verify_near;

typedef struct pl_verify_room {
    pl_block head; /* PL_VERIFY_HEAD_BYTES */
    pl_block unpacked_head, pixels, bytes;
    pl_verify_near folder;
} pl_verify_room;

/* All zero, or with a head: PL_EBUDGET. */
PL_MUST_CHECK int pl_verify_room_init(pl_verify_room *room, pl_memory *memory, pl_error *reterr);
void pl_verify_room_done(pl_verify_room *room, pl_memory *memory);

/* By the thread that looked there: another may not have the descriptor. */
void pl_verify_leave_folder(pl_verify_near *folder);

struct pl_verify_schema;

typedef struct pl_verify_file {
    const char *path;
    int fd;
    const uint8_t *head;
    size_t n_head;
    bool is_whole;       /* the head is all of it */
    uint64_t file_bytes; /* as they lie there */
    bool is_packed;      /* gzip */
    pl_verify_format format, promise;
    bool want_values;           /* count NaN and Inf */
    bool want_size_only;        /* for --plan: what an element costs, not whether it is good */
    uint64_t limit_bytes;       /* of a record of CSV */
    pl_memory *memory;          /* borrowed */
    pl_verify_room *room;       /* the thread's */
    const atomic_bool *stopped; /* somebody wants to end */
    /* What was found: */
    pl_verify_finding finding;
    int64_t height, width;           /* of an image */
    int channels;                    /* as its file has them */
    uint64_t n_elements;             /* images, records, lines, arrays */
    uint64_t element_bytes;          /* of the largest, decoded */
    uint64_t total_bytes;            /* of all, decoded */
    struct pl_verify_schema *schema; /* of a TFRecord's first example; the caller's to free */
} pl_verify_file;

/* Remembers a finding. */
void pl_verify_report(pl_verify_file *file, pl_verify_severity severity, uint64_t offset,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same for what a codec or reader found. `where` stands before its words; `begin` is where in
 * the file the data begins that the error's byte is counted from. */
void pl_verify_report_fault(pl_verify_file *file, pl_verify_severity severity, uint64_t begin,
                            const char *where, const pl_error *why);

/* The same, where the error has the place in the file. */
void pl_verify_report_place(pl_verify_file *file, pl_verify_severity severity, const pl_error *why);

/* The same for an error of a reader, at `offset` if the error does not say where. Returns 0; or the
 * code, in *reterr, if the error says nothing about the file. */
PL_MUST_CHECK int pl_verify_report_error(pl_verify_file *file, uint64_t offset, const pl_error *why,
                                         pl_error *reterr);

/* That its content is another than its name promises. An image by another image's name is read all
 * the same, because decoders go by content: a warning. `where` as for pl_verify_image_bytes(). */
void pl_verify_report_promise(pl_verify_file *file, pl_verify_format format,
                              pl_verify_format promise, uint64_t offset, const char *where);

/* -ECANCELED once somebody wants to end. */
PL_MUST_CHECK int pl_verify_go_on(const pl_verify_file *file, pl_error *reterr);

/* A thread's block of at least `bytes`. PL_EBUDGET. */
PL_MUST_CHECK int pl_verify_room_for(pl_verify_file *file, pl_block *block, uint64_t bytes,
                                     const char *what, pl_error *reterr);

/* All bytes of the file: the head, or read into the thread's room. PL_EBUDGET, -EIO. */
PL_MUST_CHECK int pl_verify_all_bytes(pl_verify_file *file, const uint8_t **ret_bytes,
                                      pl_error *reterr);

/* One element more, of so many bytes. */
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

/* An image that lies in memory; `where` is "" or "'a.jpg': ", before what is said. */
PL_MUST_CHECK int pl_verify_image_bytes(pl_verify_file *file, const void *bytes, size_t n,
                                        uint64_t offset, const char *where, pl_error *reterr);

#endif
