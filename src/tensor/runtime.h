/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime from inside: its memory, the pool on it, and the compute threads. Everything except
 * counts and admissions is constant once made; safe from any thread. */
#ifndef PL_TENSOR_RUNTIME_H
#define PL_TENSOR_RUNTIME_H

#include <pthread.h>

#include "tensor/buffer.h"
#include "util/links.h"
#include "util/threads.h"

/* Attached by a later layer and freed with the runtime; the first member of the layer's own struct.
 */
typedef struct pl_runtime_part {
    void (*free)(struct pl_runtime_part *part);
} pl_runtime_part;

/* Runs in progress, and what they were promised: see tensor/admission.h. */
typedef struct pl_admissions {
    pthread_mutex_t mu;   /* leaf lock */
    pthread_cond_t ended; /* mu, as is all that follows */
    int n_running;
    int n_urgent; /* that have waited: no other begins before them */
    uint64_t n_ended;
    uint64_t promised_bytes;
} pl_admissions;

struct pl_runtime {
    _Atomic int n_refs;
    pl_memory *memory;
    pl_pool *pool;
    pl_threads *threads;
    pl_links *sessions; /* of exec/session/session.c; includes closed ones that were not freed */
    _Atomic uint64_t n_sessions;        /* made so far: gives their numbers */
    _Atomic(pl_runtime_part *) devices; /* set once, when first asked for */
    pl_admissions admissions;
};

/* Returns what could be moved out for a claim: in its own pool, and elsewhere under the run's line.
 */
uint64_t pl_runtime_idle_bytes(struct pl_runtime *runtime);

#endif
