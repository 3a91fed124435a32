/* SPDX-License-Identifier: Apache-2.0 */
/* What goes on in a pass, seen from outside: for watchdog and explain. Safe from any thread. */
#ifndef PL_DATA_CORE_ACTIVITY_H
#define PL_DATA_CORE_ACTIVITY_H

#include "data/core/stage.h"

/* Another number whenever any stage has made an element, or skipped a bad one. */
uint64_t pl_activity_progress(pl_pass *pass);

enum { PL_ACTIVITY_TEXT_BYTES = 200 };

/* The stages that would have to do something, now: "map 'decode': element 17: its function has not
 * returned". */
void pl_activity_describe(pl_pass *pass, char text[PL_ACTIVITY_TEXT_BYTES]);

#endif
