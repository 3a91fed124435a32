/* SPDX-License-Identifier: Apache-2.0 */
/* A question that may hang or crash who asks it, put by a child that does not live long. For a
 * process with one thread. */
#ifndef PL_PREFLIGHT_CHILD_H
#define PL_PREFLIGHT_CHILD_H

#include "base/base.h"

/* Calls work(context, fd) in a forked child, whose standard streams are /dev/null, and
 * returns how many of at most `n` bytes it wrote to `fd` before it ended. -ETIMEDOUT, and the child
 * is killed; -ECHILD if a signal ended it. */
PL_MUST_CHECK int pl_child_ask(void (*work)(const void *context, int fd), const void *context,
                               int timeout_ms, void *answer, size_t n);

#endif
