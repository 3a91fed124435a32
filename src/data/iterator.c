/* SPDX-License-Identifier: Apache-2.0 */
/* A pass as its consumer sees it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "data/checkpoint.h"
#include "data/stage.h"

/* A share says little of the first few. */
enum { FRACTION_FROM = 100 };

struct pl_iterator {
    pl_pass pass;
    pl_dataset *dataset;
    pl_stage *first;
    pl_bad_count count;
};

int pl_iterator_new(pl_dataset *dataset, pl_iterator **ret_iterator, pl_error *reterr)
{
    pl_iterator *iterator = calloc(1, sizeof *iterator);
    if (!iterator)
        return pl_error_set(reterr, -ENOMEM, "no memory for an iterator");
    iterator->dataset = pl_dataset_ref(dataset);
    pl_error error = {0};
    int r = pl_pass_init(&iterator->pass, dataset, &error);
    if (r == 0)
        r = pl_stage_open_first(dataset, &iterator->pass, &iterator->first, &error);
    if (r < 0) {
        if (reterr)
            *reterr = error;
        pl_iterator_free(iterator);
        return r == PL_TOLD ? error.code : r;
    }
    *ret_iterator = iterator;
    return 0;
}

void pl_iterator_cancel(pl_iterator *iterator)
{
    pl_error error;
    pl_pass_fail(&iterator->pass, -ECANCELED, &error, "the pass was cancelled");
}

void pl_iterator_free(pl_iterator *iterator)
{
    if (!iterator)
        return;
    if (iterator->first)
        pl_iterator_cancel(iterator);
    pl_stage_close(iterator->first);
    pl_pass_done(&iterator->pass);
    pl_dataset_unref(iterator->dataset);
    free(iterator);
}

pl_bad_count pl_iterator_bad_count(const pl_iterator *iterator)
{
    return iterator->count;
}

/* Looks at the limits of the policy where the bad ones are counted. */
static int count(pl_iterator *iterator, pl_element *element, bool at_end, pl_error *reterr)
{
    pl_bad_count *total = &iterator->count;
    const pl_policy *policy = iterator->first->policy;
    total->n_bad += element->n_bad;
    total->n_items += (uint64_t)element->n_items;
    if (element->n_bad == 0 && !at_end)
        return 0;
    const char *last = element->bad ? element->bad->message : "";
    if (policy->max_bad > 0 && total->n_bad > policy->max_bad)
        return pl_pass_fail(&iterator->pass, PL_ECORRUPT, reterr,
                            "%" PRIu64 " elements are bad, and %" PRIu64 " may be; the last: %s",
                            total->n_bad, policy->max_bad, last);
    double share = total->n_items > 0 ? (double)total->n_bad / (double)total->n_items : 0;
    bool enough = at_end || total->n_items >= FRACTION_FROM;
    if (policy->max_bad_fraction > 0 && enough && share > policy->max_bad_fraction)
        return pl_pass_fail(&iterator->pass, PL_ECORRUPT, reterr,
                            "%" PRIu64 " of %" PRIu64
                            " elements are bad, and %g %% may be; the last: %s",
                            total->n_bad, total->n_items, policy->max_bad_fraction * 100, last);
    return 0;
}

static int next_element(pl_iterator *iterator, pl_element *ret_element, pl_error *reterr)
{
    pl_element element = {0};
    int r = pl_stage_next(iterator->first, &element, reterr);
    if (r == 0)
        pl_stage_gather_before(iterator->first, &element);
    if (r >= 0 && count(iterator, &element, r == 0, reterr) < 0)
        r = PL_TOLD;
    if (r > 0)
        *ret_element = element;
    else
        pl_element_clear(&element);
    return r;
}

int pl_iterator_next(pl_iterator *iterator, pl_value *ret_values, pl_error *reterr)
{
    pl_error error = {0};
    pl_element element;
    int r = next_element(iterator, &element, &error);
    pl_item *items = r > 0 ? pl_element_items(&element) : NULL;
    for (int i = 0; r > 0 && i < element.n; i++)
        if (pl_item_settle(&items[i], iterator->pass.runtime, &error) < 0) {
            pl_element_clear(&element);
            r = PL_TOLD;
        }
    for (int i = 0; r > 0 && i < element.n; i++)
        ret_values[i] = (pl_value){PL_TAKE(items[i].tensor), PL_TAKE(items[i].dataset)};
    if (r > 0)
        pl_element_clear(&element);
    if (r < 0 && reterr)
        *reterr = error;
    return r < 0 ? error.code : r;
}

/* ---- checkpoints ---- */

/* The crew's threads leave the stages between two elements; nobody else is in one, because next()
 * and this belong to one thread. */
static int save_at_rest(pl_iterator *iterator, const char *path, pl_error *reterr)
{
    pl_crew_pause(iterator->pass.crew);
    int r = pl_pass_is_over(&iterator->pass)
                ? pl_pass_over(&iterator->pass, reterr)
                : pl_checkpoint_write(iterator->first, &iterator->count, path, reterr);
    pl_crew_resume(iterator->pass.crew);
    return r;
}

int pl_iterator_save(pl_iterator *iterator, const char *path, pl_error *reterr)
{
    pl_error error = {0};
    int r = save_at_rest(iterator, path, &error);
    if (r < 0 && reterr)
        *reterr = error;
    return r == PL_TOLD ? error.code : r;
}

int pl_iterator_restore(pl_iterator *iterator, const char *path, pl_error *reterr)
{
    pl_error error = {0};
    int r =
        iterator->first->n_next == 0 && iterator->count.n_items == 0
            ? pl_checkpoint_read(iterator->first, &iterator->count, path, &error)
            : pl_error_set(&error, -EINVAL,
                           "cannot restore '%s' into a pass that has begun: make a new one", path);
    if (r == PL_TOLD)
        r = error.code;
    if (r < 0) {
        pl_pass_end(&iterator->pass, &error);
        if (reterr)
            *reterr = error;
    }
    return r;
}
