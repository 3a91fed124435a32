/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of bad elements.
 *   policy  what an options stage says, for all below it until another says otherwise
 *   bad     one of them, as it is told
 *
 * A bad element that is skipped is counted by the next good one at its place (pl_element), so the
 * limits are looked at where the consumer gets that one: in order, whatever the threads. A
 * quarantine's line is written when the element is found to be bad. Safe from any thread. */
#ifndef PL_DATA_POLICY_H
#define PL_DATA_POLICY_H

#include "data/element.h"
#include "plimsoll/dataset.h"

struct pl_bad {
    _Atomic int n_refs;
    int code;
    char message[]; /* in full, as the consumer would have got it */
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
pl_bad *pl_bad_ref(pl_bad *bad);
void pl_bad_unref(pl_bad *bad); /* NULL is allowed */

/* Is it an error of the element, so that a policy may skip it? Not -ENOMEM, -ECANCELED... */
bool pl_policy_may_skip(const pl_policy *policy, int code);

/* One more: writes its line, if there is a quarantine. `element` has the bad one, and what it was
 * read from; `stage` and `index` are where it was met. An error of the quarantine itself is the
 * pass's. */
PL_MUST_CHECK int pl_policy_note(const pl_policy *policy, const pl_element *element,
                                 const char *stage, int64_t index, pl_error *reterr);

#endif
