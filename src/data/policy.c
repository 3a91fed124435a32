/* SPDX-License-Identifier: Apache-2.0 */
#include "data/policy.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

const pl_policy pl_policy_fail = {.on_error = PL_ON_ERROR_FAIL};

pl_bad *pl_bad_new(int code, const char *message)
{
    size_t n = strlen(message) + 1;
    pl_bad *bad = malloc(sizeof *bad + n);
    if (!bad)
        return NULL;
    atomic_init(&bad->n_refs, 1);
    bad->code = code;
    memcpy(bad->message, message, n);
    return bad;
}

pl_bad *pl_bad_ref(pl_bad *bad)
{
    atomic_fetch_add_explicit(&bad->n_refs, 1, memory_order_relaxed);
    return bad;
}

void pl_bad_unref(pl_bad *bad)
{
    if (bad && atomic_fetch_sub_explicit(&bad->n_refs, 1, memory_order_acq_rel) == 1)
        free(bad);
}

bool pl_policy_may_skip(const pl_policy *policy, int code)
{
    bool of_the_pass = code == -ENOMEM || code == -ECANCELED || code == -ETIMEDOUT;
    return policy->on_error != PL_ON_ERROR_FAIL && !of_the_pass;
}

int pl_policy_note(const pl_policy *policy, const pl_element *element, const char *stage,
                   int64_t index, pl_error *reterr)
{
    (void)policy, (void)element, (void)stage, (void)index, (void)reterr;
    return 0;
}
