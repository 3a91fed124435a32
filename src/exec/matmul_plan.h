/* SPDX-License-Identifier: Apache-2.0 */
/* How a product of two matrices is computed within a budget, and what that costs. Pure: no clock,
 * no I/O, no allocation.
 *   resident  in memory: somebody else's claim covers it
 *   whole     everything is resident: one product. (Strips even so, where there is no room for the
 *             workspace that all rows at once would take.)
 *   strips    strips of rows of A and C are in memory, whole rows each; all of B passes by for
 *             each, in panels of whole rows, two in memory at a time. Every byte is read in the
 *             order that it lies in, and nothing is written but the result
 *   tiles     where a strip would be thin: A and B are first copied to scratch on disk, cut into
 *             blocks that lie together; a tile of C stays in memory while a row of blocks of A and
 *             a column of blocks of B pass by
 *   step      one panel, or one pair of blocks, applied to the strip or tile
 *
 *   scratch_bytes + workspace_bytes <= budget_bytes */
#ifndef PL_EXEC_MATMUL_PLAN_H
#define PL_EXEC_MATMUL_PLAN_H

#include "base/base.h"
#include "plimsoll/tensor.h"

typedef struct pl_matmul_question {
    pl_dtype dtype; /* see pl_product_takes() */
    int64_t m, n, k;
    bool a_transposed, b_transposed; /* stored as k x m, as n x k */
    bool a_resident, b_resident, c_resident;
    bool b_is_a; /* the same matrix, used the other way round: half the work, if resident */
    uint64_t budget_bytes;
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
    int64_t tile_rows;    /* of C, in a strip or tile */
    int64_t tile_columns; /* of C in a tile; n in a strip */
    int64_t depth;        /* along k, in a step; k where B is transposed and passes in panels */
    int64_t panel_rows;   /* of B as it is stored, in a panel */
    int64_t band_rows;    /* of an operand as it is stored, that are copied to blocks at a time */
    int64_t n_groups;     /* that a strip's or tile's rows are loaded and written in */
    uint64_t scratch_bytes;
    uint64_t workspace_bytes; /* of BLAS; it stays with the process afterwards */
    uint64_t scratch_disk_bytes;
    uint64_t read_bytes, written_bytes; /* from and to the disk, at most; scratch included */
    double flops;
} pl_matmul_plan;

/* PL_EBUDGET with what would do: "the smallest tiling needs 4.3 MiB ...". -ENOTSUP for a dtype that
 * is not multiplied, -EOVERFLOW for sizes that nothing could hold. */
PL_MUST_CHECK int pl_matmul_plan_make(const pl_matmul_question *question, pl_matmul_plan *ret_plan,
                                      pl_error *reterr);

const char *pl_matmul_strategy_name(pl_matmul_strategy strategy);

/* Blocks that an operand is copied to: all extents as it is stored. Each begins on a page of the
 * scratch file, and has the rows of its own width. */
typedef struct pl_matmul_blocks {
    int64_t rows, columns;             /* of the operand */
    int64_t block_rows, block_columns; /* the last ones may have fewer */
    int64_t n_down, n_across;
    uint64_t item_bytes;
    uint64_t block_bytes; /* from one to the next in the file */
} pl_matmul_blocks;

/* `right`: of B. */
pl_matmul_blocks pl_matmul_blocks_of(const pl_matmul_plan *plan, bool right);
uint64_t pl_matmul_blocks_disk_bytes(const pl_matmul_blocks *blocks);

/* Room for `bytes` of a file, wherever in a page they begin, in whole pages. */
uint64_t pl_matmul_buffer_bytes(uint64_t bytes);

#endif
