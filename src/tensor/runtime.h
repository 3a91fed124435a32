/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime from inside: the account, the pool on it, and the threads that compute. Constant once
 * made; safe from any thread. */
#ifndef PL_TENSOR_RUNTIME_H
#define PL_TENSOR_RUNTIME_H

#include "tensor/buffer.h"
#include "util/threads.h"

struct pl_runtime {
    _Atomic int n_refs;
    pl_memory *memory;
    pl_pool *pool;
    pl_threads *threads;
};

#endif
