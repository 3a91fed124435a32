/* SPDX-License-Identifier: Apache-2.0 */
/* The options stage passes its input through, and counts bad elements. Too many are an error at
 * their place, and in all later calls. Its options are read when a pass begins. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/persist/state.h"

typedef struct options_dataset {
    pl_dataset base;
    pl_dataset_options options;
    pl_policy policy;
    char *quarantine_path;
} options_dataset;

typedef struct options_stage {
    pl_stage base;
    pl_bad_count count;
    pl_error failed; /* too many were bad; code 0: not yet */
    pl_error one;    /* the last bad element's */
} options_stage;

static void free_options(pl_dataset *dataset)
{
    free(((options_dataset *)dataset)->quarantine_path);
}

static void close_options(pl_stage *stage)
{
    pl_error_done(&((options_stage *)stage)->failed);
    pl_error_done(&((options_stage *)stage)->one);
}

/* 0, or PL_REPORTED: too many. */
static int count(options_stage *own, const pl_element *element, bool at_end, pl_error *reterr)
{
    const options_dataset *dataset = (const options_dataset *)own->base.dataset;
    own->count.n_bad += element->n_bad;
    own->count.n_items += (uint64_t)element->n_items;
    if (element->n_bad == 0 && !at_end)
        return 0;
    if (element->bad)
        pl_error_copy(&own->one, &element->bad->error);
    if (pl_policy_check(&dataset->policy, &own->count, at_end, &own->one, &own->failed) == 0)
        return 0;
    pl_error_copy(reterr, &own->failed);
    return PL_REPORTED;
}

static bool is_below(const pl_stage *stage, uintptr_t other)
{
    while (stage->parent && (uintptr_t)stage->parent != other)
        stage = stage->parent;
    return stage->parent != NULL;
}

/* Returns at least the number of good elements under way to here: all that any stage has made,
 * except those that became the bad ones. */
static uint64_t count_under_way(pl_pass *pass, uintptr_t of)
{
    uint64_t n = 0;
    pthread_mutex_lock(&pass->mu);
    for (const pl_stage *stage = pass->stages; stage; stage = stage->earlier)
        if (!is_below(stage, of))
            n += atomic_load_explicit(&stage->profile.n_elements, memory_order_relaxed);
    pthread_mutex_unlock(&pass->mu);
    return n;
}

/* Called after many bad ones in a row. Returns 0 if they would not be too many if all elements
 * under way, and the next one too, were good. Otherwise the error remains; if it was a question,
 * this answers it. */
static int answer(options_stage *own, int r, pl_error *reterr)
{
    const options_dataset *dataset = (const options_dataset *)own->base.dataset;
    if (r != PL_REPORTED || reterr->code != PL_CHECK_LIMIT ||
        dataset->policy.on_error == PL_ON_ERROR_INHERIT)
        return 1;
    const pl_error *one;
    const pl_bad_row *row = pl_policy_asked(reterr, &one);
    uint64_t n_others = own->count.n_items + count_under_way(own->base.pass, row->stage) + 1;
    const pl_bad_count all = {own->count.n_bad + row->count.n_bad, n_others + row->count.n_items};
    if (pl_policy_check(&dataset->policy, &all, false, one, &own->failed) == 0)
        return 0;
    pl_error_copy(reterr, &own->failed);
    return 1;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    options_stage *own = (options_stage *)stage;
    if (own->failed.code != 0) {
        pl_error_copy(reterr, &own->failed);
        return PL_REPORTED;
    }
    pl_element rest = {0};
    int r;
    do
        r = pl_stage_next(stage->inputs[0], ret_element, reterr);
    while (answer(own, r, reterr) == 0);
    if (r < 0)
        return r;
    if (r == 0)
        pl_stage_gather_before(stage->inputs[0], &rest);
    int counted = count(own, r > 0 ? ret_element : &rest, r == 0, reterr);
    pl_stage_dropped(stage, &rest);
    if (counted < 0)
        pl_element_clear(ret_element);
    return counted < 0 ? counted : r;
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    const pl_bad_count *count = &((options_stage *)stage)->count;
    int r = pl_save_int(saver, (int64_t)count->n_bad, reterr);
    return r < 0 ? r : pl_save_int(saver, (int64_t)count->n_items, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    options_stage *own = (options_stage *)stage;
    const pl_policy *policy = &((const options_dataset *)stage->dataset)->policy;
    int64_t n_bad = 0, n_items = 0;
    int r = pl_load_count(loader, &n_bad, reterr);
    if (r == 0)
        r = pl_load_int(loader, n_bad, PL_COUNT_MOST, &n_items, reterr);
    own->count = (pl_bad_count){(uint64_t)n_bad, (uint64_t)n_items};
    if (r == 0 && pl_policy_check(policy, &own->count, false, NULL, &own->failed) < 0)
        return 0; /* it had failed when it was saved, and stays failed */
    return r;
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    static const char *const policies[] = {"", "on_error=fail", "on_error=skip",
                                           "on_error=quarantine"};
    fputs(policies[((const options_dataset *)dataset)->options.on_error], to);
}

static const pl_dataset_class options_class = {
    .name = "options",
    .dataset_bytes = sizeof(options_dataset),
    .stage_bytes = sizeof(options_stage),
    .free = free_options,
    .next = next,
    .close = close_options,
    .save = save,
    .restore = restore,
    .describe = describe,
};

static int check(const pl_dataset_options *options, pl_error *reterr)
{
    if (options->on_error < PL_ON_ERROR_INHERIT || options->on_error > PL_ON_ERROR_QUARANTINE)
        return pl_error_set(reterr, -EINVAL, "options: %d is not a policy on errors",
                            (int)options->on_error);
    if (options->on_error == PL_ON_ERROR_QUARANTINE && !options->quarantine_path)
        return pl_error_set(reterr, -EINVAL, "options: a quarantine needs a path for its records");
    if (!(options->max_bad_fraction >= 0 && options->max_bad_fraction <= 1))
        return pl_error_set(reterr, -EINVAL, "options: max_bad_fraction is %g, not within 0 and 1",
                            options->max_bad_fraction);
    if (options->n_threads < 0)
        return pl_error_set(reterr, -EINVAL, "options: %d threads", options->n_threads);
    return 0;
}

int pl_dataset_with_options(pl_dataset *input, const pl_dataset_options *options,
                            pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(options, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    PL_TAKE_OPTIONS(pl_dataset_options, options, nondeterministic, reterr);
    pl_dataset *dataset;
    int r = check(options, reterr);
    if (r == 0)
        r = pl_dataset_make_over(&options_class, input, &dataset, reterr);
    if (r < 0)
        return r;
    options_dataset *own = (options_dataset *)dataset;
    own->options = *options;
    own->options.quarantine_path = NULL;
    if (options->quarantine_path && !(own->quarantine_path = strdup(options->quarantine_path))) {
        pl_dataset_unref(dataset);
        return pl_error_set(reterr, -ENOMEM, "out of memory for options");
    }
    own->policy = (pl_policy){options->on_error, options->max_bad, options->max_bad_fraction,
                              own->quarantine_path};
    dataset->options = &own->options;
    if (options->on_error != PL_ON_ERROR_INHERIT)
        dataset->policy = &own->policy;
    *ret_dataset = dataset;
    return 0;
}
