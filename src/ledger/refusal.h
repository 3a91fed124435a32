/* SPDX-License-Identifier: Apache-2.0 */
/* A refusal is described once, by its event in the ledger (struct pl_event): which process was
 * refused how much, where in its Python code, and how full the line was. Everything else is made
 * from that:
 *   refusal_snapshot    guard/interpreter.c: the event and the holders of memory at that time, for
 *                       the text of the exception in the refused process
 *   pl_fact_refusal     report/verdict.h: the event, with names and places in words, for the
 *                       verdict
 *   "refusals"          docs/report-format.md: the event as JSON
 * The conclusions that both sides draw from its numbers are made here. Pure; never allocates. */
#ifndef PL_LEDGER_REFUSAL_H
#define PL_LEDGER_REFUSAL_H

#include "base/base.h"
#include "ledger/layout.h"

bool pl_event_is_refusal(const pl_event *event);

/* Returns the size of the request. 0 when small requests were refused, or an exception was raised
 * for them: `bytes` is then the sum of the thread's many requests since the line was passed. */
uint64_t pl_refusal_asked_bytes(const pl_event *event);

enum pl_refusal_fit {
    PL_FIT_WHEN_FREED, /* less than the line: it would fit once enough is freed */
    PL_FIT_HIGHER_LINE,
    PL_FIT_NEVER, /* more than the system would give, even with a higher line */
};

/* Can a request of `asked_bytes` ever be granted? `true_limit_bytes` 0: unknown. */
enum pl_refusal_fit pl_refusal_fit(uint64_t asked_bytes, uint64_t limit_bytes,
                                   uint64_t true_limit_bytes);

/* Names the option that raises the line: a cell with a limit of its own raises that. */
const char *pl_line_option(bool line_is_cells, bool in_notebook);

#endif
