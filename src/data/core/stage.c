/* SPDX-License-Identifier: Apache-2.0 */
/* Stages: opens, pulls and closes them; completes the messages of errors, and skips bad elements if
 * the policy allows. */
#include "data/core/stage.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "data/core/counter_random.h"
#include "tensor/shape.h"

/* ---- open and close ---- */

static const pl_policy *policy_for(const pl_dataset *dataset, const pl_stage *parent)
{
    bool inherits = parent && !parent->dataset->class->in_step;
    return dataset->policy ? dataset->policy : inherits ? parent->policy : &pl_policy_fail;
}

static int open_inputs(pl_stage *stage, pl_error *reterr)
{
    const pl_dataset *dataset = stage->dataset;
    stage->inputs = calloc((size_t)dataset->n_inputs + 1, sizeof(pl_stage *));
    if (!stage->inputs)
        return pl_error_set(reterr, -ENOMEM, "out of memory for '%s'", pl_dataset_name(dataset));
    int r = 0;
    for (int i = 0; r == 0 && !dataset->class->opens_inputs && i < dataset->n_inputs; i++)
        r = pl_stage_open(dataset->inputs[i], stage, &stage->inputs[i], reterr);
    return r;
}

/* Lists it for the watchdog and explain, which read the stages of a pass. */
static void list(pl_stage *stage)
{
    pl_pass *pass = stage->pass;
    pthread_mutex_lock(&pass->mu);
    stage->earlier = pass->stages;
    if (stage->earlier)
        stage->earlier->later = stage;
    pass->stages = stage;
    pthread_mutex_unlock(&pass->mu);
}

static void unlist(pl_stage *stage)
{
    pl_pass *pass = stage->pass;
    pthread_mutex_lock(&pass->mu);
    if (stage->later)
        stage->later->earlier = stage->earlier;
    else
        pass->stages = stage->earlier;
    if (stage->earlier)
        stage->earlier->later = stage->later;
    pthread_mutex_unlock(&pass->mu);
}

static int open_below(pl_dataset *dataset, pl_pass *pass, pl_stage *parent, uint64_t round,
                      pl_stage **ret_stage, pl_error *reterr)
{
    pl_stage *stage = calloc(1, dataset->class->stage_bytes);
    if (!stage)
        return pl_error_set(reterr, -ENOMEM, "out of memory for '%s'", pl_dataset_name(dataset));
    stage->dataset = pl_dataset_ref(dataset);
    stage->next = dataset->class->next;
    stage->pass = pass;
    stage->parent = parent;
    stage->policy = policy_for(dataset, parent);
    stage->round = round;
    list(stage);
    int r = open_inputs(stage, reterr);
    if (r == 0 && dataset->class->open)
        r = dataset->class->open(stage, reterr);
    if (r < 0) {
        pl_stage_close(stage);
        return r;
    }
    *ret_stage = stage;
    return 0;
}

int pl_stage_open(pl_dataset *dataset, pl_stage *parent, pl_stage **ret_stage, pl_error *reterr)
{
    return open_below(dataset, parent->pass, parent, parent->round, ret_stage, reterr);
}

int pl_stage_open_round(pl_dataset *dataset, pl_stage *parent, uint64_t number,
                        pl_stage **ret_stage, pl_error *reterr)
{
    uint64_t round = pl_draw(parent->round, number);
    return open_below(dataset, parent->pass, parent, round, ret_stage, reterr);
}

int pl_stage_open_first(pl_dataset *dataset, pl_pass *pass, pl_stage **ret_stage, pl_error *reterr)
{
    int r = open_below(dataset, pass, NULL, 0, ret_stage, reterr);
    pass->opened = r == 0;
    return r;
}

void pl_stage_close(pl_stage *stage)
{
    if (!stage)
        return;
    if (stage->dataset->class->close)
        stage->dataset->class->close(stage);
    for (int i = 0; stage->inputs && i < stage->dataset->n_inputs; i++)
        pl_stage_close(stage->inputs[i]);
    unlist(stage);
    free(stage->inputs);
    if (stage->parent && stage->before.n_items > 0) /* otherwise another thread may own the
                                                     * parent */
        pl_element_pass_on(&stage->before, &stage->parent->before);
    pl_element_clear(&stage->before);
    pl_dataset_unref(stage->dataset);
    free(stage);
}

void pl_stage_set_input(pl_stage *stage, int input, pl_stage *opened)
{
    pthread_mutex_lock(&stage->pass->mu);
    pl_stage *before = stage->inputs[input];
    stage->inputs[input] = opened;
    pthread_mutex_unlock(&stage->pass->mu);
    pl_stage_close(before);
}

void pl_stage_dropped(pl_stage *stage, pl_element *element)
{
    pl_origin_unref(PL_TAKE(element->origin)); /* the next one has its own */
    pl_element_pass_on(element, &stage->before);
    pl_element_clear(element);
}

void pl_stage_counted(pl_stage *stage, pl_element *element)
{
    pl_element counts = {.n_items = element->n_items, .n_bad = element->n_bad, .offset = -1};
    counts.bad = PL_TAKE(element->bad);
    element->n_items = 0;
    element->n_bad = 0;
    pl_stage_dropped(stage, &counts);
}

int pl_stage_spoil(pl_stage *stage, pl_element *input, pl_element *ret_element, int code)
{
    code = pl_stage_fail_as(ret_element, input, code);
    input->n_items -= input->n_items > 0; /* the element itself counts as a bad one */
    pl_stage_dropped(stage, input);
    return code;
}

void pl_stage_gather_before(pl_stage *stage, pl_element *to)
{
    if (!stage->ended)
        return;
    pl_element_pass_on(&stage->before, to);
    for (int i = 0; i < stage->dataset->n_inputs; i++)
        if (stage->inputs[i])
            pl_stage_gather_before(stage->inputs[i], to);
}

/* ---- errors ---- */

int pl_stage_fail_as(pl_element *ret_element, const pl_element *input, int code)
{
    *ret_element = (pl_element){.offset = -1};
    if (input && input->origin) {
        ret_element->origin = pl_origin_ref(input->origin);
        ret_element->offset = input->offset;
    }
    return code;
}

int pl_stage_fail(pl_element *ret_element, const pl_element *input, int code, pl_error *reterr,
                  const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pl_error_vset(reterr, code, format, arguments);
    va_end(arguments);
    return pl_stage_fail_as(ret_element, input, code);
}

/* "map 'decode': element 17, 'cats/3.jpg': REASON", as far as known. */
static void locate(const pl_stage *stage, int64_t index, const pl_element *bad, int code,
                   pl_error *reterr)
{
    if (reterr->code == 0) /* the class has set none */
        pl_error_set(reterr, code, "%s", pl_error_text(code));
    reterr->code = code;
    if (bad->origin && !reterr->path[0]) {
        pl_error_in_file(reterr, bad->origin->path);
        if (bad->offset >= 0)
            pl_error_at_offset(reterr, (uint64_t)bad->offset);
    }
    pl_error_in_stage(reterr, stage->dataset->class->name, stage->dataset->name, index);
}

void pl_stage_locate(const pl_stage *stage, int code, pl_error *reterr)
{
    const pl_dataset *dataset = stage->dataset;
    reterr->code = code;
    pl_error_in_stage(reterr, dataset->class->name, dataset->name, -1);
}

static const pl_error *error_of(const pl_bad *bad)
{
    return bad ? &bad->error : NULL;
}

/* Counts one more bad element before the next. If they are too many already, fails at once, without
 * waiting for a good one to carry their number to the options stage. Only that stage can tell
 * whether their share is too large, because it knows the stages beside this one, so it is asked. */
static int skip(pl_stage *stage, pl_element *bad, pl_bad *one, pl_error *reterr)
{
    pl_profile_add(&stage->profile.n_bad, 1);
    int r = pl_policy_note(stage->policy, one, reterr);
    bad->bad = pl_bad_join(bad->bad, one);
    if (r < 0)
        r = pl_pass_end(stage->pass, reterr);
    pl_stage_dropped(stage, bad);
    const pl_error *example = error_of(stage->before.bad);
    pl_bad_row row = {.count = {.n_bad = stage->before.n_bad}, .stage = (uintptr_t)stage};
    if (r == 0 && pl_policy_check(stage->policy, &row.count, false, example, reterr) < 0)
        r = PL_REPORTED;
    row.count.n_items = (uint64_t)stage->before.n_items;
    if (r == 0 && pl_policy_ask(stage->policy, &row, example, &stage->n_asked, reterr) < 0)
        r = PL_REPORTED;
    return r;
}

/* Returns whether the element failed because others use the memory (a user's pinned tensor, another
 * pass), and not because it is too large itself. */
static bool is_starved(const pl_stage *stage, int code)
{
    pl_runtime *runtime = stage->pass->runtime;
    return code == PL_EBUDGET &&
           pl_runtime_left_bytes(runtime) < pl_runtime_limit_bytes(runtime) / 2;
}

/* Handles a bad element of this stage: returns 0 if it is skipped. */
static int apply_policy(pl_stage *stage, pl_element *bad, int code, pl_error *reterr)
{
    bool of_all = stage->dataset->class->of_all;
    int64_t index = of_all ? stage->inputs[0]->n_next - 1 : stage->n_next++;
    locate(stage, index, bad, code, reterr);
    if (!pl_policy_may_skip(stage->policy, code) || is_starved(stage, code)) {
        pl_stage_dropped(stage, bad); /* counts carried so far still apply */
        return PL_REPORTED;
    }
    pl_bad *one = pl_bad_new(reterr, pl_dataset_name(stage->dataset),
                             bad->origin       ? bad->origin->path
                             : reterr->path[0] ? reterr->path
                                               : NULL);
    if (one) {
        bad->n_bad++;
        bad->n_items++;
        return skip(stage, bad, one, reterr);
    }
    pl_element_clear(bad);
    return pl_pass_fail(stage->pass, -ENOMEM, reterr,
                        "out of memory while reporting a bad element");
}

/* ---- next ---- */

int pl_stage_next_good(pl_stage *stage, int code, pl_element *ret_element, pl_error *reterr)
{
    int r = code;
    while (!pl_stage_is_final(r)) {
        r = apply_policy(stage, ret_element, r, reterr);
        if (r < 0)
            return r;
        r = pl_stage_call_next(stage, ret_element, reterr);
    }
    return r;
}

int pl_stage_get(pl_stage *stage, int64_t at, pl_element *ret_element, pl_error *reterr)
{
    if (!stage->dataset->class->get)
        return pl_error_set(reterr, -ENOTSUP, "%s has its elements only in order",
                            stage->dataset->class->name);
    uint64_t begun_ns = pl_stage_begin_clock(stage);
    *ret_element = (pl_element){0};
    pl_error_done(reterr);
    int r = stage->dataset->class->get(stage, at, ret_element, reterr);
    if (pl_stage_is_final(r))
        pl_stage_made(stage, r, ret_element);
    else
        r = apply_policy(stage, ret_element, r, reterr);
    pl_stage_end_clock(stage, begun_ns);
    return r;
}

/* ---- several at once ---- */

bool pl_stage_has_block(const pl_stage *stage)
{
    const pl_dataset *dataset = stage->dataset;
    bool has = dataset->class->read_block && stage->n_next < dataset->cardinality &&
               dataset->n_components <= PL_BLOCK_COMPONENTS;
    if (has && dataset->class->may_read_block)
        has = dataset->class->may_read_block(stage);
    for (int i = 0; has && i < dataset->n_components; i++) {
        const pl_spec *spec = &dataset->spec[i];
        has = spec->dtype != PL_DTYPE_NONE && spec->dtype != PL_STRING &&
              pl_shape_is_known(&spec->shape);
    }
    return has;
}

static void count_block(pl_stage *stage, int64_t n)
{
    uint64_t element_bytes = 0;
    for (int i = 0; i < stage->dataset->n_components; i++)
        element_bytes += pl_spec_bytes(&stage->dataset->spec[i]);
    stage->n_next += n;
    pl_profile_add(&stage->profile.n_elements, (uint64_t)n);
    pl_profile_add(&stage->profile.bytes, (uint64_t)n * element_bytes);
}

int64_t pl_stage_read_block(pl_stage *stage, int64_t n, char *const *to, pl_element *made_of)
{
    uint64_t begun_ns = pl_stage_begin_clock(stage);
    int64_t n_read =
        pl_pass_is_over(stage->pass) ? 0 : stage->dataset->class->read_block(stage, n, to);
    pl_stage_end_clock(stage, begun_ns);
    count_block(stage, n_read);
    made_of->n_items += n_read;
    if (n_read > 0 && stage->before.n_items > 0)
        pl_element_put_before(&stage->before, made_of);
    return n_read;
}

bool pl_stage_read_places(pl_stage *stage, const int64_t *places, int64_t n, char *const *to)
{
    const pl_dataset_class *class = stage->dataset->class;
    if (!class->read_places)
        return false;
    uint64_t begun_ns = pl_stage_begin_clock(stage);
    bool read = class->read_places(stage, places, n, to);
    pl_stage_end_clock(stage, begun_ns);
    if (read)
        count_block(stage, n);
    return read;
}
