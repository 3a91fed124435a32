/* SPDX-License-Identifier: Apache-2.0 */
/* `plimsoll check`: finds the files that cannot be read before a training does.
 *   walk     finds the files, in order of their names, in one of the threads while the others check
 *   check    examines one whole file, in one of several threads
 *   turn     of a thread: it hands over the files that it has checked, and takes the next ones,
 *            several if they are small
 *   slot     the results that are kept for each file until the end: 56 bytes
 *   report   findings are reported in the order of the walk, with any number of threads: as soon as
 *            all files before have been handed over. Notes come last: they are about all files
 *
 * Memory: per thread a head and a window (256 KiB and 512 KiB) and one decoded image, or one record
 * or sample if that is larger; the paths and slots; all claimed. Nothing is mapped: a file that is
 * truncated meanwhile is a finding, not a signal.
 *
 * The threads that are started have tables of descriptors of their own: descriptors that `tell` and
 * `progress` use must be open before the check, or be opened and closed within one call. */
#ifndef PL_VERIFY_VERIFY_H
#define PL_VERIFY_VERIFY_H

#include "verify/file.h"
#include "verify/walk.h"

typedef struct pl_verify_summary {
    uint64_t n_files;   /* found by the walk so far, or chosen as the sample */
    uint64_t n_checked; /* checked: fewer after an interruption */
    uint64_t n_unknown; /* of these, readable files of unknown format */
    uint64_t n_unread;  /* of these, files without a readable byte, whose format is unknown */
    uint64_t n_errors, n_warnings, n_notes;
    uint64_t n_bytes; /* in the checked files */
    uint64_t n_of_format[PL_VERIFY_N_FORMATS];
    uint64_t n_elements, element_bytes, total_bytes; /* the largest one; all of them */
    bool all_found;                                  /* else n_files still grows */
    bool interrupted;
} pl_verify_summary;

typedef struct pl_verify_told {
    const char *path;
    pl_verify_format format;
    const pl_verify_finding *finding;
} pl_verify_told;

typedef struct pl_verify_options {
    const char *const *roots;
    size_t n_roots;
    pl_verify_format format; /* the format of all files; PL_VERIFY_UNKNOWN: by content */
    uint64_t n_sample;       /* check only so many of the files, spread over all; 0: all */
    int n_jobs;              /* 0: one for each processor */
    bool values;             /* count NaN and Inf in .npy and .npz */
    bool size_only;          /* for a plan */
    bool notes;
    pl_verify_folder skip;
    pl_memory *memory;
    const atomic_bool *stopped;
    void *context;
    /* Called by any thread, one call at a time. A negative result ends the check. */
    int (*tell)(void *context, const pl_verify_told *told, pl_error *reterr);
    /* Called now and then, in the same way; may be NULL. */
    void (*progress)(void *context, const pl_verify_summary *so_far);
} pl_verify_options;

/* Returns 0 for any findings, also after an interruption; negative if the check could not be
 * completed. The summary covers the work done, also on failure. */
PL_MUST_CHECK int pl_verify_run(const pl_verify_options *options, pl_verify_summary *ret_summary,
                                pl_error *reterr);

/* Checks one file: recognises its format, and has it validated. For verify.c. */
PL_MUST_CHECK int pl_verify_look(pl_verify_file *file, const pl_verify_options *options,
                                 pl_error *reterr);

#endif
