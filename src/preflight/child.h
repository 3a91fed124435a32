/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a function that may hang or crash in a short-lived child process. The caller must have one
 * thread. */
#ifndef PL_PREFLIGHT_CHILD_H
#define PL_PREFLIGHT_CHILD_H

#include "base/base.h"

/* Calls work(context, fd) in a forked child whose standard streams are /dev/null. Returns how many
 * of at most `n` bytes it wrote to `fd` before it exited. -ETIMEDOUT, after killing the child;
 * -ECHILD if a signal ended it. */
PL_MUST_CHECK int pl_child_ask(void (*work)(const void *context, int fd), const void *context,
                               int timeout_ms, void *answer, size_t n);

#endif
