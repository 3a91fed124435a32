/* SPDX-License-Identifier: Apache-2.0 */
/* Maps a node to the kernels' reduction. Pure. */
#ifndef PL_PLAN_REDUCTION_H
#define PL_PLAN_REDUCTION_H

#include "graph/node.h"
#include "kernels/reduce/reduce.h"
#include "plan/program.h"

static inline pl_reduce pl_reduction_of(const pl_node *node)
{
    static const pl_reduce_op ops[PL_N_OPS] = {
        [PL_OP_sum] = PL_REDUCE_SUM,
        [PL_OP_mean] = PL_REDUCE_MEAN,
        [PL_OP_prod] = PL_REDUCE_PROD,
        [PL_OP_max] = PL_REDUCE_MAX,
        [PL_OP_min] = PL_REDUCE_MIN,
        [PL_OP_any] = PL_REDUCE_ANY,
        [PL_OP_all] = PL_REDUCE_ALL,
        [PL_OP_argmax] = PL_REDUCE_ARGMAX,
        [PL_OP_argmin] = PL_REDUCE_ARGMIN,
        [PL_OP_variance] = PL_REDUCE_VARIANCE,
        [PL_OP_logsumexp] = PL_REDUCE_LOGSUMEXP,
    };
    return (pl_reduce){ops[node->op->id], pl_program_compute_dtype(node->inputs[0]->dtype)};
}

#endif
