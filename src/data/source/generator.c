/* SPDX-License-Identifier: Apache-2.0 */
/* A source whose elements a program makes, one after the other. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/core/stage.h"
#include "data/persist/state.h"

typedef struct generator_dataset {
    pl_dataset base;
    pl_generator generator; /* without its specs */
} generator_dataset;

typedef struct generator_stage {
    pl_stage base;
    void *state; /* what begin() gave */
    bool begun;
    bool ended;
    int64_t n_asked; /* elements, bad ones included */
    pl_value *values;
} generator_stage;

static const pl_generator *generator_of(const pl_stage *stage)
{
    return &((const generator_dataset *)stage->dataset)->generator;
}

static void free_generator(pl_dataset *dataset)
{
    const pl_generator *own = &((const generator_dataset *)dataset)->generator;
    if (own->release)
        own->release(own->context);
}

static int open_generator(pl_stage *stage, pl_error *reterr)
{
    generator_stage *own = (generator_stage *)stage;
    own->values = calloc((size_t)stage->dataset->n_components, sizeof *own->values);
    return own->values ? 0 : pl_error_set(reterr, -ENOMEM, "out of memory for a generator");
}

static void close_generator(pl_stage *stage)
{
    generator_stage *own = (generator_stage *)stage;
    if (own->begun && generator_of(stage)->end)
        generator_of(stage)->end(own->state);
    free(own->values);
}

/* When it is first asked for something: a pass that is only made begins nothing. */
static int begin(pl_stage *stage, pl_error *reterr)
{
    generator_stage *own = (generator_stage *)stage;
    const pl_generator *generator = generator_of(stage);
    own->state = generator->context;
    int r = generator->begin ? generator->begin(generator->context, &own->state, reterr) : 0;
    if (r < 0) {
        pl_error_reword(reterr, "it did not begin: %s", pl_error_reason(reterr));
        pl_stage_locate(stage, r, reterr);
        return pl_pass_end(stage->pass, reterr);
    }
    own->begun = true;
    return 0;
}

static void drop_values(generator_stage *own, int n)
{
    for (int i = 0; i < n; i++) {
        pl_tensor_unref(own->values[i].tensor);
        pl_dataset_unref(own->values[i].dataset);
    }
}

/* 1, 0 or a code, and the values. */
static int ask(pl_stage *stage, pl_error *reterr)
{
    generator_stage *own = (generator_stage *)stage;
    int n = stage->dataset->n_components;
    memset(own->values, 0, (size_t)n * sizeof *own->values);
    int r = own->begun ? 0 : begin(stage, reterr);
    if (r < 0)
        return r;
    atomic_fetch_add_explicit(&stage->profile.n_inside, 1, memory_order_relaxed);
    r = generator_of(stage)->next(own->state, own->values, n, reterr);
    atomic_fetch_sub_explicit(&stage->profile.n_inside, 1, memory_order_relaxed);
    own->ended = r == 0;
    own->n_asked += r != 0;
    if (r <= 0)
        drop_values(own, n);
    return r;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    generator_stage *own = (generator_stage *)stage;
    int r = own->ended ? 0 : ask(stage, reterr);
    if (r <= 0)
        return r == 0 || r == PL_REPORTED ? r : pl_stage_fail_as(ret_element, NULL, r);
    pl_element element;
    int n = stage->dataset->n_components;
    if (pl_element_init(&element, n) < 0) {
        drop_values(own, n);
        return pl_pass_fail(stage->pass, -ENOMEM, reterr, "out of memory for an element");
    }
    pl_item *items = pl_element_items(&element);
    for (int i = 0; i < n; i++)
        items[i] = (pl_item){.tensor = own->values[i].tensor, .dataset = own->values[i].dataset};
    for (int i = 0; i < n && r > 0; i++)
        r = !items[i].tensor && !items[i].dataset
                ? pl_error_set(reterr, -EINVAL, "it made no component %d", i)
            : pl_spec_check(&stage->dataset->spec[i], &items[i], i, reterr) < 0 ? reterr->code
                                                                                : 1;
    if (r < 0) {
        pl_element_clear(&element);
        return pl_stage_fail_as(ret_element, NULL, r);
    }
    pl_element_name(&element);
    *ret_element = element;
    return 1;
}

/* ---- state: what was asked for already is asked for again ---- */

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    const generator_stage *own = (const generator_stage *)stage;
    int r = pl_save_int(saver, own->n_asked, reterr);
    return r < 0 ? r : pl_save_int(saver, own->ended, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    generator_stage *own = (generator_stage *)stage;
    int64_t n = 0, ended = 0;
    int r = pl_load_count(loader, &n, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &ended, reterr);
    while (r == 0 && own->n_asked < n) {
        pl_error error = {0}; /* a bad one was reported before */
        int made = ask(stage, &error);
        if (made == PL_REPORTED)
            return pl_pass_over(stage->pass, reterr);
        if (made > 0)
            drop_values(own, stage->dataset->n_components);
        if (own->ended)
            r = pl_error_set(reterr, -EINVAL,
                             "%s: it ended after %" PRId64 " elements, where it had %" PRId64
                             " before: it must give the same again",
                             pl_dataset_name(stage->dataset), own->n_asked, n);
    }
    own->ended = own->ended || ended;
    return r;
}

static const pl_dataset_class generator_class = {
    .name = "generator",
    .dataset_bytes = sizeof(generator_dataset),
    .stage_bytes = sizeof(generator_stage),
    .free = free_generator,
    .open = open_generator,
    .next = next,
    .close = close_generator,
    .save = save,
    .restore = restore,
};

static int check(const pl_generator *generator, pl_error *reterr)
{
    if (generator->n_components < 1 || !generator->next)
        return pl_error_set(reterr, -EINVAL,
                            "generator: it needs next(), and at least one component");
    if (generator->cardinality < PL_CARDINALITY_UNKNOWN)
        return pl_error_set(reterr, -EINVAL, "generator: %" PRId64 " elements",
                            generator->cardinality);
    return 0;
}

int pl_dataset_generator(pl_runtime *runtime, const pl_generator *generator,
                         pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(generator, reterr);
    PL_NOT_NULL_OR_RELEASE(generator, runtime, reterr);
    PL_NOT_NULL_OR_RELEASE(generator, ret_dataset, reterr);
    pl_dataset *dataset = NULL;
    int r = check(generator, reterr);
    if (r == 0)
        r = pl_dataset_make(&generator_class, runtime, NULL, 0, generator->n_components, &dataset,
                            reterr);
    for (int i = 0; r == 0 && i < generator->n_components; i++)
        if (pl_spec_copy(&dataset->spec[i], &generator->specs[i]) < 0)
            r = pl_error_set(reterr, -ENOMEM, "out of memory for a dataset");
    if (r < 0) {
        pl_dataset_unref(dataset);
        if (generator->release)
            generator->release(generator->context);
        return r;
    }
    ((generator_dataset *)dataset)->generator = *generator;
    ((generator_dataset *)dataset)->generator.specs = NULL;
    dataset->cardinality = generator->cardinality;
    *ret_dataset = dataset;
    return 0;
}
