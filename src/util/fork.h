/* SPDX-License-Identifier: Apache-2.0 */
/* Forks of this process, for what does not survive them: threads, locks that another thread held,
 * files that both would write to.
 *   generation  how many forks lie between the first process and this one. An object that keeps the
 *               generation it was made in knows by comparing whether it is its maker's copy
 * Seen is fork(), not a bare clone(). Safe from any thread. */
#ifndef PL_UTIL_FORK_H
#define PL_UTIL_FORK_H

#include "base/base.h"

/* -ENOMEM: forks could not be seen. Call it before the first pl_fork_generation(). */
PL_MUST_CHECK int pl_fork_watch(void);

uint32_t pl_fork_generation(void);

#endif
