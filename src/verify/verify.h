/* SPDX-License-Identifier: Apache-2.0 */
/* `plimsoll check`: which of these files could not be read, before a training finds out.
 *   walk     the files, in order of their names, found by one of the threads while the others look
 *   check    looks at one file, whole, by one of several threads
 *   turn     of a thread: it hands over the files it has looked at, and takes the next ones,
 *            several where they are small
 *   slot     what is kept of each file until the end: 56 bytes
 *   told     findings are told in the order of the walk, whatever the threads: as soon as all files
 *            before have been handed over. Notes come last: they are about the whole
 *
 * Memory: per thread a head and a window (256 KiB and 512 KiB) and one decoded image, or one record
 * or sample if that is larger; the paths and slots; all claimed. Nothing is mapped: a file that is
 * cut off meanwhile is a finding, not a signal.
 *
 * The threads that are started have tables of descriptors of their own: what `tell` and `progress`
 * use must be open before, or be opened and closed within one call. */
#ifndef PL_VERIFY_VERIFY_H
#define PL_VERIFY_VERIFY_H

#include "verify/file.h"
#include "verify/walk.h"

typedef struct pl_verify_summary {
    uint64_t n_files;   /* found by the walk so far, or sampled of all */
    uint64_t n_checked; /* looked at: fewer after an interruption */
    uint64_t n_unknown; /* of these, that could be read, of no format that is known */
    uint64_t n_unread;  /* of these, of which no byte could be read, so that no format is known */
    uint64_t n_errors, n_warnings, n_notes;
    uint64_t n_bytes; /* of the files looked at */
    uint64_t n_of_format[PL_VERIFY_N_FORMATS];
    uint64_t n_elements, element_bytes, total_bytes; /* the largest; of all */
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
    pl_verify_format format; /* all files are of this one; PL_VERIFY_UNKNOWN: by content */
    uint64_t n_sample;       /* so many of the files, spread over all; 0: all */
    int n_jobs;              /* 0: as many as there are processors */
    bool values;             /* count NaN and Inf in .npy and .npz */
    bool size_only;          /* for a plan */
    bool notes;
    pl_verify_folder skip;
    pl_memory *memory;
    const atomic_bool *stopped;
    void *context;
    /* One at a time, by any thread. Negative ends the check. */
    int (*tell)(void *context, const pl_verify_told *told, pl_error *reterr);
    /* Now and then, likewise; may be NULL. */
    void (*progress)(void *context, const pl_verify_summary *so_far);
} pl_verify_options;

/* 0 whatever was found, also after an interruption; negative if it could not be run to its end. The
 * summary is of what was done, also then. */
PL_MUST_CHECK int pl_verify_run(const pl_verify_options *options, pl_verify_summary *ret_summary,
                                pl_error *reterr);

/* Looks at one file: finds out what it is, and has it validated. For verify.c. */
PL_MUST_CHECK int pl_verify_look(pl_verify_file *file, const pl_verify_options *options,
                                 pl_error *reterr);

#endif
