/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a word of shared memory to change, and wakes waiters, between threads or processes.
 * Allocates nothing, so the guard may call it from inside malloc(). */
#ifndef PL_SYS_FUTEX_H
#define PL_SYS_FUTEX_H

#include "base/base.h"

/* Returns when the word is no longer `seen`, on a wake, when `most_ns` have passed (0: no limit),
 * or spuriously: the caller must check again. */
void pl_futex_wait(const _Atomic uint32_t *word, uint32_t seen, uint64_t most_ns);

void pl_futex_wake_all(const _Atomic uint32_t *word);

#endif
