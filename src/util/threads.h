/* SPDX-License-Identifier: Apache-2.0 */
/* Compute threads: one set per process, one per available processor.
 *   job     a function called once for each part of [0, n_parts), by any thread, in any order
 *   part    a piece of a job; parts are handed out in order, one at a time
 *   worker  a thread's number within one job, for scratch space of its own
 *
 * The caller works too, so a job never waits for a free thread: if all others are busy, the caller
 * does every part itself. A job may run another inside a part, to any depth. Nothing can deadlock:
 * a thread that waits for a job has first taken all its remaining parts, and waits only for threads
 * that are inside a part.
 *
 * Idle threads look for work for some microseconds, then sleep. All signals except those of a
 * thread's own faults go to the program's other threads. In the child of a fork the threads are
 * gone: pl_threads_run() then does all parts in the caller; a child that wants threads makes its
 * own. Safe from any thread, with several jobs at once. */
#ifndef PL_UTIL_THREADS_H
#define PL_UTIL_THREADS_H

#include <signal.h>

#include "base/base.h"

typedef struct pl_threads pl_threads;

typedef int pl_threads_work(void *context, int64_t part, int worker);

/* `n_threads` includes the caller of a job: one less is started. 0: one per available processor. If
 * the system allows fewer, those are used: see pl_threads_count(). */
PL_MUST_CHECK int pl_threads_new(int n_threads, pl_threads **ret_threads, pl_error *reterr);

/* No job may be running. NULL is allowed. */
void pl_threads_free(pl_threads *threads);

/* Returns how many threads can work on a job, its caller included. */
int pl_threads_count(const pl_threads *threads);

/* Calls work(context, part, worker) for every part; 0 <= worker < pl_threads_count(), and no two
 * threads have the same one in this job. A negative result ends the job: parts not yet begun are
 * skipped, and the result of the lowest failed part is returned, whatever the number of threads. 0
 * on success. */
PL_MUST_CHECK int pl_threads_run(pl_threads *threads, int64_t n_parts, pl_threads_work *work,
                                 void *context);

/* Makes the calling thread do all parts of its jobs itself, or stop doing so: for threads that
 * already work side by side and would only get in each other's way. Returns the previous setting.
 */
bool pl_threads_work_alone(bool alone);

/* Returns pl_threads_count() for jobs of the calling thread. */
int pl_threads_count_here(const pl_threads *threads);

/* Call around pthread_create() for a thread of one's own: leaves signals to the program's other
 * threads. Signals that a thread raises by a fault stay unblocked: if blocked, the kernel would
 * kill without calling the handler. */
void pl_threads_block_signals(sigset_t *ret_before);

#endif
