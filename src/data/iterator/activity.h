/* SPDX-License-Identifier: Apache-2.0 */
/* Finds which stages of a pass are at work, from outside, for the watchdog. Safe from any
 * thread. */
#ifndef PL_DATA_ITERATOR_ACTIVITY_H
#define PL_DATA_ITERATOR_ACTIVITY_H

#include "data/core/stage.h"

/* Returns a number that changes whenever a stage makes an element, or skips a bad one. */
uint64_t pl_activity_progress(pl_pass *pass);

enum { PL_ACTIVITY_TEXT_BYTES = 200 };

/* Names the stages that hold up the pass: "map 'decode': element 17: its function has not
 * returned". */
void pl_activity_describe(pl_pass *pass, char text[PL_ACTIVITY_TEXT_BYTES]);

#endif
