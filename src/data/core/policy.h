/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to bad elements.
 *   policy  what an options stage says, for all stages below it that have no options of their own
 *   bad     one bad element: its error, and the names that an error would cut
 *   chain   several, in order; an element carries those that went before it. The first PL_BAD_CHAIN
 *           of them: skipping for long must not gather memory
 *   row     bad elements with no good one behind them yet
 *
 * A bad element that is skipped is counted by the next good one at its place (pl_element). The
 * options stage that sets limits checks them as it hands that element on: in order, whatever the
 * threads. While no good one comes, the options stage is asked now and then (pl_policy_ask()). A
 * quarantine's line is written when the element is found to be bad. Safe from any thread; a chain
 * belongs to its element. */
#ifndef PL_DATA_CORE_POLICY_H
#define PL_DATA_CORE_POLICY_H

#include "data/core/element.h"
#include "plimsoll/dataset.h"

enum { PL_BAD_CHAIN = 64 };

struct pl_bad {
    struct pl_bad *next; /* the one after it */
    pl_error error;      /* as the consumer would have got it */
    const char *stage;   /* its name in full; NULL: unknown */
    const char *path;    /* in full; NULL: unknown */
    char texts[];
};

typedef struct pl_policy {
    pl_on_error on_error; /* never INHERIT */
    uint64_t max_bad;
    double max_bad_fraction;
    const char *quarantine_path;
} pl_policy;

extern const pl_policy pl_policy_fail;

/* A copy of the error, with names in full, which may be NULL. NULL: out of memory. */
pl_bad *pl_bad_new(const pl_error *error, const char *stage, const char *path);

/* All of a chain; NULL if that is empty, or out of memory. */
pl_bad *pl_bad_copy(const pl_bad *chain);
void pl_bad_free(pl_bad *chain); /* all of it; NULL is allowed */

/* `after` behind `before`: one chain, of which the first few are kept. Either may be NULL. */
pl_bad *pl_bad_join(pl_bad *before, pl_bad *after);

/* Is it an error of the element, so that a policy may skip it? Not -ENOMEM, -ECANCELED... */
bool pl_policy_may_skip(const pl_policy *policy, int code);

/* One more: writes its line, if there is a quarantine. An error of the quarantine itself is the
 * pass's. */
PL_MUST_CHECK int pl_policy_note(const pl_policy *policy, const pl_bad *bad, pl_error *reterr);

/* Are these too many? 0; PL_ECORRUPT and how many are and may be. `one` of them is given as an
 * example, with its payload; may be NULL. */
PL_MUST_CHECK int pl_policy_check(const pl_policy *policy, const pl_bad_count *count, bool at_end,
                                  const pl_error *one, pl_error *reterr);

/* Below all codes that callers see, as those of pass.h: is this too many? It goes up to the options
 * stage as an error does, in its place, and the stages go on behind it. */
#define PL_CHECK_LIMIT (-9003)

typedef struct pl_bad_row {
    pl_bad_count count;
    uintptr_t stage; /* where; only to be compared */
} pl_bad_row;

/* After the first hundred of a row, and then whenever it has twice as many as *n_asked:
 * PL_CHECK_LIMIT, with the row and `one` of it as the error's payload. Else 0: also when there is no
 * memory to ask. */
PL_MUST_CHECK int pl_policy_ask(const pl_policy *policy, const pl_bad_row *row, const pl_error *one,
                                uint64_t *n_asked, pl_error *reterr);

/* What a PL_CHECK_LIMIT asks: the row, and one of it, which the error owns. */
const pl_bad_row *pl_policy_asked(const pl_error *error, const pl_error **ret_one);

#endif
