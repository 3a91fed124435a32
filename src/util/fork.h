/* SPDX-License-Identifier: Apache-2.0 */
/* Detects forks, for what does not survive them: threads, locks that another thread held, files
 * that both processes would write to.
 *   generation  the number of forks between the first process and this one. An object that stores
 *               the generation it was made in can tell by comparing whether it was copied by a fork
 * Detects fork(), not a bare clone(). Safe from any thread. */
#ifndef PL_UTIL_FORK_H
#define PL_UTIL_FORK_H

#include "base/base.h"

/* Starts detection; call it before the first pl_fork_generation(). -ENOMEM: forks cannot be
 * detected. */
PL_MUST_CHECK int pl_fork_watch(void);

uint32_t pl_fork_generation(void);

#endif
