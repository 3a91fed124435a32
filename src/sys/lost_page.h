/* SPDX-License-Identifier: Apache-2.0 */
/* Survives files that another program truncates while they are mapped. Touching a page beyond the
 * end of its file raises SIGBUS, which ends a program. A program that only watches others, and does
 * not trust the data it reads there, should go on: the page is replaced by a private one of zeros.
 *
 * For the commands; the library installs no signal handlers. */
#ifndef PL_SYS_LOST_PAGE_H
#define PL_SYS_LOST_PAGE_H

#include "base/base.h"

/* Takes effect in all threads, until exec(). If the handler cannot be installed, SIGBUS ends the
 * process as before. */
void pl_lost_page_survive(void);

/* Returns how many pages have been replaced. */
uint64_t pl_lost_page_count(void);

#endif
