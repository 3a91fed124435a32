/* SPDX-License-Identifier: Apache-2.0 */
/* Survives files that another program truncates while they are mapped. Touching a page that is no
 * longer in its file is SIGBUS, which ends a program. One that only watches others, and does not
 * trust what it reads there, should go on: such a page is replaced by a private one of zeros.
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
