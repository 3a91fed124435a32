/* SPDX-License-Identifier: Apache-2.0 */
/* Policies for bad elements.
 *   policy  the settings of an options stage, for all stages below it that have no options of their
 *           own
 *   bad     one bad element: its error, and the names that an error would truncate
 *   chain   several, in order; an element carries those that came before it. Only the first
 *           PL_BAD_CHAIN are kept, so that long skipping does not gather memory
 *   row     bad elements that no good one has followed yet
 *
 * A bad element that is skipped is counted by the next good one at its place (pl_element). The
 * options stage that sets limits checks them when it passes that element on: in order, whatever the
 * number of threads. While no good one comes, the options stage is asked now and then
 * (pl_policy_ask()). A quarantine's line is written when the element is found to be bad. Safe from
 * any thread; a chain belongs to its element. */
#ifndef PL_DATA_CORE_POLICY_H
#define PL_DATA_CORE_POLICY_H

#include "data/core/element.h"
#include "plimsoll/dataset.h"

enum { PL_BAD_CHAIN = 64 };

struct pl_bad {
    struct pl_bad *next; /* the one after it */
    pl_error error;      /* as the consumer would get it */
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

/* Copies the error, with full names, which may be NULL. Returns NULL if out of memory. */
pl_bad *pl_bad_new(const pl_error *error, const char *stage, const char *path);

/* Copies a whole chain. Returns NULL if it is empty, or out of memory. */
pl_bad *pl_bad_copy(const pl_bad *chain);
void pl_bad_free(pl_bad *chain); /* all of it; NULL is allowed */

/* Appends `after` to `before`: one chain, of which the first few are kept. Either may be NULL. */
pl_bad *pl_bad_join(pl_bad *before, pl_bad *after);

/* Returns whether a policy may skip the error, because it concerns the element. Not -ENOMEM,
 * -ECANCELED... */
bool pl_policy_may_skip(const pl_policy *policy, int code);

/* Notes one more: writes its line, if there is a quarantine. An error of the quarantine itself ends
 * the pass. */
PL_MUST_CHECK int pl_policy_note(const pl_policy *policy, const pl_bad *bad, pl_error *reterr);

/* Checks the limits: 0, or PL_ECORRUPT with how many are bad and may be. `one` of them becomes the
 * example, with its payload; may be NULL. */
PL_MUST_CHECK int pl_policy_check(const pl_policy *policy, const pl_bad_count *count, bool at_end,
                                  const pl_error *one, pl_error *reterr);

/* Below all codes that callers see, like those of pass.h: asks whether a row is too long. It goes
 * up to the options stage like an error, in its place, and the stages continue after it. */
#define PL_CHECK_LIMIT (-9003)

typedef struct pl_bad_row {
    pl_bad_count count;
    uintptr_t stage; /* the stage that asks; only for comparing */
} pl_bad_row;

/* Asks after the first hundred of a row, and then whenever it has twice as many as *n_asked: fails
 * with PL_CHECK_LIMIT, with the row and `one` of it as the error's payload. Otherwise returns 0,
 * also if out of memory. */
PL_MUST_CHECK int pl_policy_ask(const pl_policy *policy, const pl_bad_row *row, const pl_error *one,
                                uint64_t *n_asked, pl_error *reterr);

/* Returns the row that a PL_CHECK_LIMIT asks about, and one of its errors; the error owns both. */
const pl_bad_row *pl_policy_asked(const pl_error *error, const pl_error **ret_one);

#endif
