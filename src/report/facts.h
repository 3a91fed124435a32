/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the facts for the verdict, from the copy of a ledger and the analysis of its crash. */
#ifndef PL_REPORT_FACTS_H
#define PL_REPORT_FACTS_H

#include "report/crash_analysis.h"
#include "report/ledger_snapshot.h"
#include "report/verdict.h"

/* `analysis` is NULL when nothing crashed. `lock_cycle`: a deadlock was seen in the hang. */
void pl_facts_gather(const pl_snapshot *snapshot, const pl_crash_analysis *analysis,
                     bool lock_cycle, pl_facts *ret_facts);

#endif
