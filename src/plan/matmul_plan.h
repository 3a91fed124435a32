/* SPDX-License-Identifier: Apache-2.0 */
/* How a product of two matrices is computed within a budget, and what that costs. Pure: no clock,
 * no I/O, no allocation.
 *   resident  in memory, and covered by another claim
 *   whole     everything is resident: one product. (Strips are used even then if the workspace for
 *             all rows at once does not fit.)
 *   strips    a strip of whole rows of A and C is in memory, and all of B is read for each strip,
 *             in panels of whole rows, two in memory at a time. All reads are sequential, and only
 *             the result is written
 *   tiles     used where strips would be thin: A and B are first copied to scratch on disk as
 *             contiguous blocks. A tile of C stays in memory while a row of blocks of A and a
 *             column of blocks of B are read. Tiles of C narrower than its rows go to scratch first
 *             and to their place at the end, because their rows begin and end within pages, which
 *             would be read and written once per row
 *   step      one panel, or one pair of blocks, applied to the strip or tile
 *
 *   scratch_bytes + workspace_bytes <= budget_bytes */
#ifndef PL_PLAN_MATMUL_PLAN_H
#define PL_PLAN_MATMUL_PLAN_H

#include "base/base.h"
#include "plimsoll/tensor.h"

typedef struct pl_matmul_question {
    pl_dtype dtype; /* see pl_matmul_takes() */
    int64_t m, n, k;
    bool a_transposed, b_transposed; /* stored as k x m, as n x k */
    bool a_resident, b_resident, c_resident;
    bool b_is_a; /* the same matrix, transposed: half the work, whole or in tiles */
    uint64_t budget_bytes;
    uint64_t disk_bytes; /* the most that scratch may take; 0: no limit */
    int n_threads;
} pl_matmul_question;

typedef enum pl_matmul_strategy {
    PL_MATMUL_WHOLE,
    PL_MATMUL_STRIPS,
    PL_MATMUL_TILES,
} pl_matmul_strategy;

typedef struct pl_matmul_plan {
    pl_matmul_question question;
    pl_matmul_strategy strategy;
    bool symmetric;    /* tiles left of the diagonal are computed, and also written right of it */
    int64_t tile_rows; /* of C, in a strip or tile */
    int64_t tile_columns;   /* of C in a tile; n in a strip */
    int64_t depth;          /* along k, in a step; k where B is transposed and passes in panels */
    int64_t panel_rows;     /* of B as it is stored, in a panel */
    int64_t band_rows;      /* of a matrix as it is stored, copied to or from blocks at a time */
    bool c_in_blocks;       /* tiles of C go to scratch first */
    int64_t n_groups;       /* that a strip's or tile's rows are loaded and written in */
    uint64_t scratch_bytes; /* the next three, and the buffers that move bytes */
    uint64_t a_bytes, b_bytes, c_bytes;
    uint64_t workspace_bytes; /* of BLAS; the process keeps it afterwards */
    uint64_t scratch_disk_bytes;
    uint64_t read_bytes, written_bytes; /* from and to the disk, at most; scratch included */
    double flops;
} pl_matmul_plan;

/* Plans a product. Fails with PL_EBUDGET and what would do ("the smallest tiling needs 4.3 MiB
 * ..."), -ENOTSUP for a dtype that cannot be multiplied, or -EOVERFLOW for sizes that nothing could
 * hold. */
PL_MUST_CHECK int pl_matmul_plan_make(const pl_matmul_question *question, pl_matmul_plan *ret_plan,
                                      pl_error *reterr);

/* Returns the cost of the smallest tiling; the rest of the plan is empty. */
pl_matmul_plan pl_matmul_plan_least(const pl_matmul_question *question);

/* Lists the memory in use meanwhile: "A 20.5 MiB + C 20.5 MiB + workspace 4.2 MiB". */
enum { PL_MATMUL_PARTS_BYTES = 160 };
void pl_matmul_plan_parts(const pl_matmul_plan *plan, uint64_t value_bytes,
                          char text[PL_MATMUL_PARTS_BYTES]);

/* A rough estimate, to compare plans by. */
double pl_matmul_plan_seconds(const pl_matmul_plan *plan);

const char *pl_matmul_strategy_name(pl_matmul_strategy strategy);

/* The blocks that an operand is copied to, or that C is made of; all extents are as stored. Each
 * block begins on a page of the scratch file. Its rows are as long as the block is wide, except for
 * C, whose blocks all have the width of the first. */
typedef struct pl_matmul_blocks {
    int64_t rows, columns;             /* of the matrix */
    int64_t block_rows, block_columns; /* the last ones may have fewer */
    bool padded;                       /* all have the width of the first */
    int64_t n_down, n_across;
    uint64_t item_bytes;
    uint64_t block_bytes; /* from one to the next in the file */
} pl_matmul_blocks;

/* `right`: for B, else for A. */
pl_matmul_blocks pl_matmul_blocks_of(const pl_matmul_plan *plan, bool right);
pl_matmul_blocks pl_matmul_blocks_of_c(const pl_matmul_plan *plan);
uint64_t pl_matmul_blocks_disk_bytes(const pl_matmul_blocks *blocks);

/* The bytes for this many rows, cut into their pieces of blocks, each piece in pages of its own. */
uint64_t pl_matmul_pieces_bytes(const pl_matmul_blocks *blocks, int64_t band_rows);

/* The bytes, in whole pages, for `bytes` of a file that may begin anywhere in a page. */
uint64_t pl_matmul_buffer_bytes(uint64_t bytes);

/* ---- what parts of the executor take: shared with it ---- */

#define PL_MATMUL_PAGE_BYTES    4096           /* PL_FILE_DIRECT_BYTES */
#define PL_MATMUL_BOUNCE_BYTES  (512 * PL_KIB) /* of all threads of a pl_panel_io */
#define PL_MATMUL_REQUEST_BYTES 80             /* at most, of a pl_panel_request */
#define PL_MATMUL_ROWS_MOST     16384          /* of the left operand, in one call of BLAS */

/* Returns false for bool, f16, bf16 and strings: the caller must convert them first. */
bool pl_matmul_takes(pl_dtype dtype);

/* The most workspace that BLAS keeps in a call with this many rows of the left operand, with the
 * cost of claiming it. */
uint64_t pl_matmul_workspace_bytes(pl_dtype dtype, int64_t rows, int n_threads);

/* For many products of one shape, all resident: returns whether threads share out the products,
 * instead of all working on each; and the memory that BLAS needs for them. */
bool pl_matmul_is_shared_out(int64_t m, int64_t n, int64_t k, int64_t n_products, int n_threads);
uint64_t pl_matmul_batch_workspace_bytes(pl_dtype dtype, int64_t m, int64_t n, int64_t k,
                                         int64_t n_products, int n_threads);

#endif
