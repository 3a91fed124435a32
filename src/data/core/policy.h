/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of bad elements.
 *   policy  what an options stage says, for all below it until another says otherwise
 *   bad     one of them, as it is told
 *   chain   several, in order; an element has those that went before it. The first PL_BAD_CHAIN of
 *           them: what is skipped for long must not gather memory
 *
 * A bad element that is skipped is counted by the next good one at its place (pl_element). The
 * limits are looked at by the options stage that sets them, as it hands that one on: in order,
 * whatever the threads. Where none comes, it is asked now and then (pl_policy_ask()). A
 * quarantine's line is written when the element is found to be bad. Safe from any thread; a chain
 * belongs to its element. */
#ifndef PL_DATA_CORE_POLICY_H
#define PL_DATA_CORE_POLICY_H

#include "data/core/element.h"
#include "plimsoll/dataset.h"

enum { PL_BAD_CHAIN = 64 };

struct pl_bad {
    struct pl_bad *next; /* the one after it */
    int code;
    int64_t index;                     /* at its stage; -1: unknown */
    int64_t offset;                    /* in the file; -1: none */
    const char *stage, *path, *reason; /* NULL: unknown; within message */
    char message[];                    /* in full, as the consumer would have got it; then texts */
};

typedef struct pl_policy {
    pl_on_error on_error; /* never INHERIT */
    uint64_t max_bad;
    double max_bad_fraction;
    const char *quarantine_path;
} pl_policy;

extern const pl_policy pl_policy_fail;

/* A new one; NULL for want of memory. */
pl_bad *pl_bad_new(int code, const char *message);

/* The same with what the message is made of; its reason is the end of it, from byte `reason_at`. */
pl_bad *pl_bad_new_at(const pl_error *error, size_t reason_at, const char *stage, int64_t index,
                      const pl_element *element);

/* All of a chain; NULL for want of memory, or of none. */
pl_bad *pl_bad_copy(const pl_bad *chain);
void pl_bad_free(pl_bad *chain); /* all of it; NULL is allowed */

/* `after` behind `before`: one chain, of which the first few are kept. Either may be NULL. */
pl_bad *pl_bad_join(pl_bad *before, pl_bad *after);

/* Is it an error of the element, so that a policy may skip it? Not -ENOMEM, -ECANCELED... */
bool pl_policy_may_skip(const pl_policy *policy, int code);

/* One more: writes its line, if there is a quarantine. An error of the quarantine itself is the
 * pass's. */
PL_MUST_CHECK int pl_policy_note(const pl_policy *policy, const pl_bad *bad, pl_error *reterr);

/* Are these too many? 0; PL_ECORRUPT and how many are and may be. `message`: that of one of them.
 */
PL_MUST_CHECK int pl_policy_check(const pl_policy *policy, const pl_bad_count *count, bool at_end,
                                  const char *message, pl_error *reterr);

/* Below all codes that callers see, as those of pass.h: is this too many? It goes up to the options
 * as an error does, in its place, and they go on behind it. */
#define PL_ASKED (-9003)

/* Bad ones that the options know nothing of yet, because none that is good came behind them. */
typedef struct pl_bad_row {
    pl_bad_count count;
    uintptr_t stage; /* where; only to be compared */
} pl_bad_row;

/* After the first hundred of a row, and then whenever it has twice as many as *n_asked: PL_ASKED.
 * Else 0. The text of the error has the numbers: it is all that every stage hands on. */
PL_MUST_CHECK int pl_policy_ask(const pl_policy *policy, const pl_bad_row *row, const char *message,
                                uint64_t *n_asked, pl_error *reterr);

/* What was asked. Returns the message. */
const char *pl_policy_asked(const pl_error *error, pl_bad_row *ret_row);

#endif
