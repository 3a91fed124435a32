/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers, from the copy of a ledger and the story of its crash, what the verdict rests on. */
#ifndef PL_REPORT_FACTS_H
#define PL_REPORT_FACTS_H

#include "report/snapshot.h"
#include "report/story.h"
#include "report/verdict.h"

/* `story` is NULL when nothing crashed. `lock_cycle`: a ring of locks was seen in the hang. */
void pl_facts_gather(const pl_snapshot *snapshot, const pl_story *story, bool lock_cycle,
                     pl_facts *ret_facts);

#endif
