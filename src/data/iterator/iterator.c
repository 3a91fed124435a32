/* SPDX-License-Identifier: Apache-2.0 */
/* A pass as the consumer sees it. */
#include "data/iterator/iterator.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

/* ---- begin and end ---- */

/* Called by the thread that pulls, once the consumer has left. */
static void destroy(void *context)
{
    pl_iterator *iterator = context;
    pl_stage_close(iterator->first);
    pl_pass_done(&iterator->pass);
    pl_dataset_unref(iterator->dataset);
    pl_bad_free(iterator->bads);
    free(iterator);
}

static int pull(void *context, pl_element *ret_element, pl_error *reterr);

static int set_up(pl_iterator *iterator, pl_error *reterr)
{
    int r = pl_pass_init(&iterator->pass, iterator->dataset, reterr);
    if (r == 0)
        r = pl_stage_open_first(iterator->dataset, &iterator->pass, &iterator->first, reterr);
    const pl_watched_pull how = {pull, destroy, iterator};
    if (r == 0 && iterator->pass.watchdog_ns > 0)
        r = pl_watchdog_thread_new(&how, &iterator->pass, &iterator->watchdog, reterr);
    return r;
}

int pl_iterator_new(pl_dataset *dataset, pl_iterator **ret_iterator, pl_error *reterr)
{
    PL_NOT_NULL(dataset, reterr);
    PL_NOT_NULL(ret_iterator, reterr);
    pl_iterator *iterator = calloc(1, sizeof *iterator);
    if (!iterator)
        return pl_error_set(reterr, -ENOMEM, "out of memory for an iterator");
    iterator->dataset = pl_dataset_ref(dataset);
    pl_error error = {0};
    int r = set_up(iterator, &error);
    if (r < 0) {
        r = r == PL_REPORTED ? error.code : r;
        pl_error_move(reterr, &error);
        pl_iterator_free(iterator);
        return r;
    }
    *ret_iterator = iterator;
    return 0;
}

void pl_iterator_cancel(pl_iterator *iterator)
{
    PL_NULL_DOES_NOTHING(iterator);
    pl_error error;
    pl_error_init(&error);
    (void)pl_pass_fail(&iterator->pass, -ECANCELED, &error, "the pass was cancelled");
    pl_error_done(&error);
}

void pl_iterator_free(pl_iterator *iterator)
{
    if (!iterator || pl_pass_is_lost(&iterator->pass))
        return;
    if (iterator->first)
        pl_iterator_cancel(iterator);
    if (iterator->watchdog)
        pl_watchdog_thread_free(iterator->watchdog);
    else
        destroy(iterator);
}

/* ---- what was bad ---- */

pl_bad_count pl_iterator_bad_count(const pl_iterator *iterator)
{
    PL_NULL_GIVES(iterator, ((pl_bad_count){0}));
    return iterator->count;
}

int pl_iterator_bads(const pl_iterator *iterator, pl_bad_element *ret_bads, int n_most)
{
    PL_NULL_GIVES(iterator, 0);
    if (n_most > 0 && ret_bads == NULL)
        return 0;
    int n = 0;
    for (const pl_bad *bad = iterator->bads; bad; bad = bad->next, n++)
        if (n < n_most)
            ret_bads[n] = (pl_bad_element){.message = bad->error.message,
                                           .stage = bad->stage,
                                           .index = bad->error.element,
                                           .path = bad->path,
                                           .offset = pl_error_offset(&bad->error),
                                           .code = bad->error.code,
                                           .reason = pl_error_what(&bad->error),
                                           .error = &bad->error};
    return n;
}

static void count(pl_iterator *iterator, pl_element *element)
{
    iterator->count.n_bad += element->n_bad;
    iterator->count.n_items += (uint64_t)element->n_items;
    iterator->bads = pl_bad_join(iterator->bads, PL_TAKE(element->bad));
}

/* ---- next ---- */

/* Makes an element that did not fit beside others again, while no other thread works. */
static int pull_alone(pl_iterator *iterator, pl_element *ret_element, pl_error *reterr)
{
    pl_pass *pass = &iterator->pass;
    pl_pass_set_mode(pass, PL_PASS_DRAINING);
    pl_worker_pool_pause(pass->pool);
    pl_pass_set_mode(pass, PL_PASS_ALONE);
    int r = pl_stage_next(iterator->first, ret_element, reterr);
    pl_pass_set_mode(pass, PL_PASS_SHARED);
    pl_worker_pool_resume(pass->pool);
    if (r > 0)
        pl_prefetch_budget_shrink(&pass->prefetch_budget);
    return r;
}

static int pull(void *context, pl_element *ret_element, pl_error *reterr)
{
    pl_iterator *iterator = context;
    int r = pl_stage_next(iterator->first, ret_element, reterr);
    if (r == PL_RETRY_ALONE)
        r = pull_alone(iterator, ret_element, reterr);
    if (r == 0)
        pl_stage_gather_before(iterator->first, ret_element);
    return r;
}

int pl_iterator_check_lost(const pl_iterator *iterator, pl_error *reterr)
{
    if (!pl_pass_is_lost(&iterator->pass))
        return 0;
    pl_error_set(reterr, -ENOTSUP,
                 "the pass has threads that are not in this process, which was forked since: "
                 "make runtime and datasets after the fork");
    return PL_REPORTED;
}

static int next_element(pl_iterator *iterator, pl_element *ret_element, pl_error *reterr)
{
    pl_element element = {0};
    int r = pl_iterator_check_lost(iterator, reterr);
    if (r < 0)
        return r;
    r = iterator->watchdog ? pl_watchdog_thread_next(iterator->watchdog, &element, reterr)
                           : pull(iterator, &element, reterr);
    if (r >= 0)
        count(iterator, &element);
    if (r == 0 && iterator->ended_ns == 0)
        iterator->ended_ns = pl_clock_monotonic_ns();
    if (r > 0)
        *ret_element = element;
    else
        pl_element_clear(&element);
    return r;
}

/* Makes tensors for an element's scalars, and moves its values out. */
static int hand_over(pl_iterator *iterator, pl_element *element, pl_value *ret_values,
                     pl_error *reterr)
{
    pl_item *items = pl_element_items(element);
    int r = 1;
    for (int i = 0; r > 0 && i < element->n; i++)
        if (pl_item_settle(&items[i], iterator->pass.runtime, reterr) < 0)
            r = PL_REPORTED;
    for (int i = 0; r > 0 && i < element->n; i++)
        ret_values[i] = (pl_value){PL_TAKE(items[i].tensor), PL_TAKE(items[i].dataset)};
    pl_element_clear(element);
    return r;
}

int pl_iterator_pull(pl_iterator *iterator, pl_element *ret_element, pl_error *reterr)
{
    int r = next_element(iterator, ret_element, reterr);
    return r < 0 ? reterr->code : r;
}

int pl_iterator_next(pl_iterator *iterator, pl_value *ret_values, pl_error *reterr)
{
    PL_NOT_NULL(iterator, reterr);
    PL_NOT_NULL(ret_values, reterr);
    pl_error error;
    pl_error_init(&error);
    pl_element element;
    uint64_t begun_ns = pl_clock_is_due(&iterator->clock) ? pl_clock_monotonic_ns() : 0;
    if (iterator->begun_ns == 0)
        iterator->begun_ns = begun_ns;
    int r = next_element(iterator, &element, &error);
    if (r > 0)
        r = hand_over(iterator, &element, ret_values, &error);
    if (begun_ns)
        iterator->inside_ns +=
            pl_clock_sampled(&iterator->clock, pl_clock_monotonic_ns() - begun_ns);
    return r < 0 ? pl_error_move(reterr, &error) : r;
}
