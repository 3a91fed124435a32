/* SPDX-License-Identifier: Apache-2.0 */
/* Files that somebody else cuts short while they are mapped. To touch a page that is not in its
 * file any more is SIGBUS, which ends a program. One that only watches others, and takes nothing
 * that it reads there for granted, had better go on: such a page becomes a private one of zeros.
 *
 * For the commands; the library installs no signal handlers. */
#ifndef PL_SYS_LOST_PAGE_H
#define PL_SYS_LOST_PAGE_H

#include "base/base.h"

/* From here on, in all threads, until exec(). Where the handler cannot be installed, SIGBUS ends
 * the process as before. */
void pl_lost_page_survive(void);

/* How many pages have been replaced. */
uint64_t pl_lost_page_count(void);

#endif
