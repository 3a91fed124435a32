/* SPDX-License-Identifier: Apache-2.0 */
/* Large pieces of files, read and written while others compute.
 *   request  rows of bytes between memory and a file; the caller's storage, not touched by the
 *            caller until it was waited for
 *   direct   past the page cache, so that what is read is in nobody's memory twice. Needs an
 *            address that lies like the file's offset within PL_FILE_DIRECT_BYTES: else the bytes
 *            go through a small buffer, which costs a copy
 *
 * Two threads do the work with pread() and pwrite(), in pieces large enough for the kernel to queue
 * many at the disk: measured as fast as io_uring (3.4 and 3.3 GB/s in pieces of 4 MiB), and no
 * container forbids them. Without threads a request is done when it is submitted.
 *
 * A panel_io belongs to one thread, which submits and waits. */
#ifndef PL_EXEC_MATMUL_PANEL_IO_H
#define PL_EXEC_MATMUL_PANEL_IO_H

#include "base/base.h"

/* Of each thread, for bytes that cannot go straight to their place. */
#define PL_PANEL_BOUNCE_BYTES (256 * PL_KIB)
#define PL_PANEL_THREADS      2

/* An open file, and one more descriptor for direct access: -1 where there is none. */
typedef struct pl_panel_file {
    int fd, direct_fd;
} pl_panel_file;

/* `fd` stays the caller's. Never fails: without direct access it goes through the page cache. */
pl_panel_file pl_panel_file_open(int fd);
void pl_panel_file_close(pl_panel_file *file);

typedef struct pl_panel_request {
    const pl_panel_file *file;
    bool write;
    char *data;
    uint64_t offset; /* of the first row in the file */
    int64_t n_rows;
    uint64_t row_bytes;                      /* of each row that are moved */
    uint64_t file_row_bytes, data_row_bytes; /* from one row to the next */
    int result;                              /* 0, or why it failed; once waited for */
    int state;                               /* private */
    struct pl_panel_request *next;           /* private */
} pl_panel_request;

typedef struct pl_panel_io pl_panel_io;

/* `bounce` is PL_PANEL_THREADS * PL_PANEL_BOUNCE_BYTES, aligned to PL_FILE_DIRECT_BYTES, and the
 * caller's: its claim covers it. */
PL_MUST_CHECK int pl_panel_io_new(void *bounce, pl_panel_io **ret_io, pl_error *reterr);

/* Waits for all that was submitted. NULL is allowed. */
void pl_panel_io_free(pl_panel_io *io);

/* The request must not be under way. Those submitted first are begun first. */
void pl_panel_io_submit(pl_panel_io *io, pl_panel_request *request);

/* Its result, at once for one that was never submitted (all zero). PL_ECORRUPT if the file ends
 * before. */
PL_MUST_CHECK int pl_panel_io_wait(pl_panel_io *io, pl_panel_request *request);

#endif
