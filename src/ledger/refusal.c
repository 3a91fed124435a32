/* SPDX-License-Identifier: Apache-2.0 */
/* See refusal.h. */
#include "ledger/refusal.h"

bool pl_event_is_refusal(const pl_event *event)
{
    return event->kind == PL_EVENT_REFUSED || event->kind == PL_EVENT_RAISED ||
           event->kind == PL_EVENT_REFUSED_SMALL;
}

uint64_t pl_refusal_asked_bytes(const pl_event *event)
{
    return event->kind == PL_EVENT_REFUSED ? event->bytes : 0;
}

enum pl_refusal_fit pl_refusal_fit(uint64_t asked_bytes, uint64_t limit_bytes,
                                   uint64_t true_limit_bytes)
{
    if (asked_bytes <= limit_bytes)
        return PL_FIT_WHEN_FREED;
    return true_limit_bytes == 0 || asked_bytes <= true_limit_bytes ? PL_FIT_HIGHER_LINE
                                                                    : PL_FIT_NEVER;
}

const char *pl_line_option(bool line_is_cells, bool in_notebook)
{
    if (line_is_cells)
        return "%%plimsoll limit=SIZE";
    return in_notebook ? "%plimsoll budget SIZE" : "--budget";
}
