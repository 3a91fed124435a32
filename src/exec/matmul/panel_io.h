/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes large pieces of files while other threads compute.
 *   request  rows of bytes to move between memory and a file. The caller owns it, and does not
 *            touch it until it has waited for it
 *   direct   bypassing the page cache, so that bytes are not in memory twice. Needs an address
 *            equal to the file's offset modulo PL_FILE_DIRECT_BYTES; otherwise the bytes are copied
 *            through a small buffer
 *
 * Two threads do the work with pread() and pwrite(), in pieces large enough for the kernel to queue
 * many at the disk: measured as fast as io_uring (3.4 and 3.3 GB/s in pieces of 4 MiB), and, unlike
 * io_uring, no container forbids them. Without threads a request is done when it is submitted.
 *
 * A panel_io belongs to one thread, which submits and waits. */
#ifndef PL_EXEC_MATMUL_PANEL_IO_H
#define PL_EXEC_MATMUL_PANEL_IO_H

#include "base/base.h"

/* The bounce buffer of each thread, for bytes that cannot go straight to their place. */
#define PL_PANEL_BOUNCE_BYTES (256 * PL_KIB)
#define PL_PANEL_THREADS      2

/* An open file, and one more descriptor for direct access: -1 if it has none. */
typedef struct pl_panel_file {
    int fd, direct_fd;
} pl_panel_file;

/* The caller keeps `fd`. Never fails: without direct access, requests use the page cache. */
pl_panel_file pl_panel_file_open(int fd);
void pl_panel_file_close(pl_panel_file *file);

typedef struct pl_panel_request {
    const pl_panel_file *file;
    bool write;
    char *data;
    uint64_t offset; /* of the first row in the file */
    int64_t n_rows;
    uint64_t row_bytes;                      /* bytes of each row to move */
    uint64_t file_row_bytes, data_row_bytes; /* from one row to the next */
    int result;                              /* 0, or an error code; valid once waited for */
    int state;                               /* private */
    struct pl_panel_request *next;           /* private */
} pl_panel_request;

typedef struct pl_panel_io pl_panel_io;

/* `bounce` has PL_PANEL_THREADS * PL_PANEL_BOUNCE_BYTES bytes, aligned to PL_FILE_DIRECT_BYTES. The
 * caller owns it, with its claim. */
PL_MUST_CHECK int pl_panel_io_new(void *bounce, pl_panel_io **ret_io, pl_error *reterr);

/* Waits for all submitted requests. NULL is allowed. */
void pl_panel_io_free(pl_panel_io *io);

/* The request must not be under way. Requests begin in the order they are submitted. */
void pl_panel_io_submit(pl_panel_io *io, pl_panel_request *request);

/* Returns the request's result, at once for one that was never submitted (all zero). PL_ECORRUPT if
 * the file ends too early. */
PL_MUST_CHECK int pl_panel_io_wait(pl_panel_io *io, pl_panel_request *request);

#endif
