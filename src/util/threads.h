/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for computing: one set per process, as many as there are processors to use.
 *   job     a function called once for each part of [0, n_parts), by any thread, in any order
 *   part    a piece of a job; handed out in order, one at a time
 *   worker  a thread's number within one job, for scratch space of its own
 *
 * The caller works too, so a job never waits for somebody to be free: with all others busy it does
 * every part itself. A job may run another inside of a part, to any depth. Nothing can deadlock:
 * who waits for a job has first taken all parts of it that were left, and waits only for threads
 * that are inside of a part.
 *
 * Idle threads sleep, after looking out for work for some microseconds. All signals but those of a
 * thread's own faults go to the program's other threads. In the child of a fork the threads are
 * gone: pl_threads_run() then does all parts in the caller; a child that wants threads makes its
 * own. Safe from any thread, several jobs at once. */
#ifndef PL_UTIL_THREADS_H
#define PL_UTIL_THREADS_H

#include <signal.h>

#include "base/base.h"

typedef struct pl_threads pl_threads;

typedef int pl_threads_work(void *context, int64_t part, int worker);

/* `n_threads` counts the caller of a job: so many, less one, are started. 0: as many as the process
 * has processors to use. Where the system lets us have fewer, these are used: see
 * pl_threads_count(). */
PL_MUST_CHECK int pl_threads_new(int n_threads, pl_threads **ret_threads, pl_error *reterr);

/* No job may be under way. NULL is allowed. */
void pl_threads_free(pl_threads *threads);

/* How many work on a job at most, its caller included. */
int pl_threads_count(const pl_threads *threads);

/* Calls work(context, part, worker) for every part; 0 <= worker < pl_threads_count(), and no two
 * threads have the same one in this job. A negative result ends the job: parts that were not begun
 * are left out, and of the results the one of the lowest part is returned, which is the same
 * however many threads there are. 0 if all went well. */
PL_MUST_CHECK int pl_threads_run(pl_threads *threads, int64_t n_parts, pl_threads_work *work,
                                 void *context);

/* From now on the calling thread does all parts of its jobs itself, or does so no more: for threads
 * that work side by side on things of their own already, and would only get in each other's way.
 * Returns how it was. */
bool pl_threads_work_alone(bool alone);

/* pl_threads_count() for jobs of the calling thread. */
int pl_threads_count_here(const pl_threads *threads);

/* For whoever starts a thread of its own, around pthread_create(): signals are for the program's
 * other threads. What a thread does to itself must reach its handlers all the same: blocked, the
 * kernel would kill without them. */
void pl_threads_block_signals(sigset_t *ret_before);

#endif
