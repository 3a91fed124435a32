/* SPDX-License-Identifier: Apache-2.0 */
/* A list of live objects, from inside: live.c gathers it, live_text.c writes it. Belongs to the
 * thread that made it. */
#ifndef PL_EXEC_SESSION_LIVE_H
#define PL_EXEC_SESSION_LIVE_H

#include "plimsoll/live.h"

struct pl_live {
    pl_live_entry *entries; /* owns their names and scopes */
    int n_entries, n_places;
    pl_live_total *totals; /* scopes belong to the entries */
    int n_totals;
};

#endif
