/* SPDX-License-Identifier: Apache-2.0 */
/* Private to matmul*.c: shared by the planning of strips and of tiles. Pure. */
#ifndef PL_PLAN_MATMUL_PLAN_PRIVATE_H
#define PL_PLAN_MATMUL_PLAN_PRIVATE_H

#include "plan/matmul_plan.h"
#include "tensor/dtype.h"
#include "tensor/memory.h"

/* BLAS packs this deep at a time (GEMM_Q on Zen). Thinner steps pass over C more often than a whole
 * product would; deeper ones only add time to load and write. */
enum { DEPTH_F32 = 320, DEPTH_F64 = 256, DEPTH_INTEGER = 128 };

/* A strip or tile is loaded and written in at most this many groups, each of at least this many
 * rows. */
enum { PL_MATMUL_GROUPS_MOST = 4, PL_MATMUL_GROUP_ROWS = 64 };

/* Returns false if nothing fits. On entry the plan has its question and is otherwise empty. */
bool pl_matmul_plan_strips(pl_matmul_plan *plan);
bool pl_matmul_plan_tiles(pl_matmul_plan *plan);

/* Sets scratch_bytes and workspace_bytes to those of the smallest tiling; returns false if there is
 * none. */
bool pl_matmul_least_strips(pl_matmul_plan *plan);
bool pl_matmul_least_tiles(pl_matmul_plan *plan);

typedef const pl_matmul_question question;

static inline uint64_t item_of(question *q)
{
    return pl_dtype_info_of(q->dtype)->item_bytes;
}

static inline int64_t depth_of(question *q)
{
    return q->dtype == PL_F32 ? DEPTH_F32 : q->dtype == PL_F64 ? DEPTH_F64 : DEPTH_INTEGER;
}

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t parts_of(int64_t n, int64_t part)
{
    return (n + part - 1) / part;
}

static inline int64_t round_up(int64_t n, int64_t unit)
{
    return parts_of(n, unit) * unit;
}

/* Returns a part size near `part` such that all parts are about equally large. */
static inline int64_t even_part(int64_t n, int64_t part)
{
    return parts_of(n, parts_of(n, part));
}

/* As stored. A B without rows counts as one empty row, so that there is a step. */
static inline int64_t b_rows(question *q)
{
    return most(q->b_transposed ? q->n : q->k, 1);
}

static inline uint64_t matrix_bytes(question *q, int64_t rows, int64_t columns)
{
    return (uint64_t)rows * (uint64_t)columns * item_of(q);
}

static inline bool fits(const pl_matmul_plan *plan)
{
    return plan->scratch_bytes + plan->workspace_bytes <= plan->question.budget_bytes;
}

static inline void set_groups(pl_matmul_plan *plan)
{
    plan->n_groups = most(1, least(plan->tile_rows / PL_MATMUL_GROUP_ROWS, PL_MATMUL_GROUPS_MOST));
}

static inline void set_workspace(pl_matmul_plan *plan, int64_t rows)
{
    question *q = &plan->question;
    plan->workspace_bytes = pl_matmul_workspace_bytes(q->dtype, rows, q->n_threads);
}

#endif
