/* SPDX-License-Identifier: Apache-2.0 */
/* A list of what is live, from inside: gathered by live.c, written by live_text.c. Belongs to the
 * thread that has it made. */
#ifndef PL_EXEC_SESSION_LIVE_H
#define PL_EXEC_SESSION_LIVE_H

#include "plimsoll/live.h"

struct pl_live {
    pl_live_entry *entries; /* names and scopes are its own */
    int n_entries, n_places;
    pl_live_total *totals; /* scopes are its entries' */
    int n_totals;
};

#endif
