/* SPDX-License-Identifier: Apache-2.0 */
/* Computes products of matrices, in memory or larger than memory, as pl_matmul_plan_make() has
 * planned.
 *   matrix    rows of elements, as they are stored: resident, in a file, or computed on demand
 *   file      dense rows from `offset` on: an .npy file's data, an extent of a spill file
 *   computed  a function writes rows on request, some more than once, always with the same values
 *
 * A product claims at most the plan's scratch_bytes and workspace_bytes, and releases them at the
 * end; only BLAS's workspace stays, and is measured with the rest of the process. Results depend on
 * the plan only in rounding (see matmul_product.h), and are the same for the same plan and number
 * of threads. After a failure the content of the result is undefined. Safe from any thread. */
#ifndef PL_EXEC_MATMUL_MATMUL_H
#define PL_EXEC_MATMUL_MATMUL_H

#include "base/stop.h"
#include "plan/matmul_plan.h"
#include "tensor/memory.h"
#include "util/threads.h"

typedef enum pl_matrix_where {
    PL_MATRIX_RESIDENT,
    PL_MATRIX_FILE,
    PL_MATRIX_COMPUTED,
} pl_matrix_where;

/* Writes rows [row, row + n_rows) to `data`, densely. Runs on the thread that runs the product. */
typedef int pl_matrix_fill(void *context, int64_t row, int64_t n_rows, void *data,
                           pl_error *reterr);

typedef struct pl_matrix {
    pl_matrix_where where;
    const char *name;  /* for messages */
    void *data;        /* resident: the first row; not written if it is an operand */
    int64_t row_bytes; /* resident: from one row to the next; at least a row */
    int fd;            /* file: for reading; of a result for reading and writing */
    uint64_t offset;
    pl_matrix_fill *fill; /* computed */
    void *context;
} pl_matrix;

typedef struct pl_matmul_job {
    pl_matrix a, b; /* as they are stored: see the question's flags */
    pl_matrix c;    /* resident or a file; overlaps no operand */
    pl_memory *memory;
    pl_threads *threads;
    int scratch_fd;          /* for a plan with scratch_disk_bytes: the product owns these bytes */
    uint64_t scratch_offset; /* a multiple of PL_FILE_DIRECT_BYTES */
    pl_stop stop;            /* checked before each step: -ECANCELED */
    void (*progress)(void *context, double fraction); /* NULL, or called after each step */
    void *progress_context;
} pl_matmul_job;

PL_MUST_CHECK int pl_matmul_run(const pl_matmul_plan *plan, const pl_matmul_job *job,
                                pl_error *reterr);

/* Many products of one shape, all resident: operand i begins at the sum of index * stride along the
 * batch's axes; a stride of 0 repeats it. */
typedef struct pl_matmul_batch {
    const pl_matmul_question *question; /* of one */
    const void *a, *b;
    void *c;
    int64_t a_row_bytes, b_row_bytes, c_row_bytes;
    int32_t rank;
    int64_t dims[PL_RANK_MAX];
    int64_t a_strides[PL_RANK_MAX], b_strides[PL_RANK_MAX], c_strides[PL_RANK_MAX]; /* bytes */
} pl_matmul_batch;

/* Uses question->n_threads threads. Claims at most pl_matmul_batch_workspace_bytes(). */
PL_MUST_CHECK int pl_matmul_batch_run(const pl_matmul_batch *batch, pl_memory *memory,
                                      pl_threads *threads, pl_stop stop, pl_error *reterr);

#endif
