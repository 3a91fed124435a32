/* SPDX-License-Identifier: Apache-2.0 */
/* A run: its plan is found in its turn, the steps are run, and what is kept goes to the caller and
 * to the variables. See plimsoll/session.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/npy/npy_tensor.h"
#include "exec/session/session_call.h"

typedef pl_call call;

/* Of one call, with plans for what is left each time. Who makes tensors for ever can still keep it
 * from ending well. */
enum { RUNS_MAX = 5 };

static int set_values(call *c, pl_error *reterr)
{
    pl_run *run = &c->run;
    run->runtime = c->session->runtime;
    run->plan = c->plan;
    run->options = c->options;
    run->after_stages = c->staged ? c->mark.name : NULL;
    run->cancelled = c->outer ? &c->outer->mark.cancelled : &c->mark.cancelled;
    pthread_mutex_init(&run->telling, NULL);
    run->values = calloc((size_t)c->plan->n_values + 1, sizeof *run->values);
    c->files = calloc((size_t)c->n_fetches + 1, sizeof *c->files);
    if (!run->values || !c->files)
        return pl_call_no_memory(reterr);
    for (int i = 0; i < c->plan->n_values; i++)
        run->values[i].fd = -1;
    for (int i = 0; i < c->n_sources; i++) {
        pl_live_value *value = &run->values[c->plan->value_of[c->sources[i].node->number]];
        const pl_tensor *tensor = c->given[i];
        value->buffer = pl_buffer_ref(tensor->buffer);
        value->offset = (uint64_t)tensor->offset_bytes;
        memcpy(value->strides, tensor->strides, sizeof value->strides);
        pl_tensor_order(tensor, value->order);
    }
    for (int i = 0; i < c->n_fetches; i++) {
        pl_live_value *value = &run->values[c->plan->value_of[c->fetches[i].node->number]];
        value->path = c->fetches[i].npy_path;
        value->file = &c->files[i];
    }
    return 0;
}

int pl_call_kept(call *c, const pl_node *node, pl_tensor **ret_tensor, pl_error *reterr)
{
    int number = c->plan->value_of[node->number];
    pl_live_value *value = &c->run.values[number];
    if (c->plan->values[number].from_outside) { /* the first values are the sources */
        *ret_tensor = pl_tensor_ref(c->given[number]);
        return 0;
    }
    return pl_tensor_wrap(pl_buffer_ref(value->buffer), node->dtype, &c->plan->shapes[node->number],
                          NULL, 0, ret_tensor, reterr);
}

/* Results that are not in their files yet are written; files get their names later, together. */
static int finish_fetch(call *c, int i, pl_tensor **ret_tensor, pl_error *reterr)
{
    const pl_fetch *fetch = &c->fetches[i];
    const pl_plan_value *value = &c->plan->values[c->plan->value_of[fetch->node->number]];
    if (value->place == PL_PLACE_FILE && !value->from_outside)
        return 0;
    int r = pl_call_kept(c, fetch->node, ret_tensor, reterr);
    if (r < 0 || !fetch->npy_path)
        return r;
    r = pl_npy_write(*ret_tensor, fetch->npy_path, &c->files[i], reterr);
    if (value->saved)
        pl_buffer_leave((*ret_tensor)->buffer);
    pl_tensor_unref(PL_TAKE(*ret_tensor));
    return r;
}

static int finish_fetches(call *c, pl_tensor **tensors, pl_error *reterr)
{
    for (int i = 0; i < c->plan->n_values; i++) { /* all is written */
        pl_live_value *value = &c->run.values[i];
        value->fd = -1;
        if (c->plan->values[i].kept && value->pinned) {
            pl_buffer_unpin(value->buffer);
            value->pinned = false;
        }
    }
    for (int i = 0; i < c->n_fetches; i++) {
        int r = finish_fetch(c, i, &tensors[i], reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The variable that a value of the plan is assigned to; NULL: none. Assignments are values of the
 * plan, or were made by stages before it and are sources of it. */
static const pl_node *variable_at(const call *c, int value)
{
    const pl_node *node = c->plan->values[value].node;
    return node->op->op_class == PL_CLASS_STATE ? node->inputs[0] : NULL;
}

/* held[]: by value of the plan. */
static int hold_variables(call *c, pl_tensor **held, pl_error *reterr)
{
    int r = 0;
    for (int i = 0; r == 0 && i < c->plan->n_values; i++) {
        pl_tensor *tensor = NULL;
        if (!variable_at(c, i))
            continue;
        r = pl_call_kept(c, c->plan->values[i].node, &tensor, reterr);
        if (r == 0)
            r = pl_session_hold(c->session, variable_at(c, i), tensor, &held[i], reterr);
        pl_tensor_unref(tensor);
    }
    return r;
}

/* Or lets go of what is held. */
static void put_variables(const call *c, pl_tensor **held, bool well)
{
    for (int i = 0; i < c->plan->n_values; i++)
        if (held[i] && well)
            pl_session_put(c->session, variable_at(c, i), held[i]);
        else
            pl_tensor_let_go(held[i]);
}

/* All of them or none, as far as a look ahead can tell. */
static int publish_files(const call *c, pl_error *reterr)
{
    int r = 0;
    for (int i = 0; r == 0 && i < c->n_fetches; i++)
        r = pl_npy_look(&c->files[i], reterr);
    for (int i = 0; r == 0 && i < c->n_fetches; i++)
        r = pl_npy_publish(&c->files[i], reterr);
    return r;
}

static void discard_files(call *c)
{
    for (int i = 0; c->files && i < c->n_fetches; i++)
        pl_npy_discard(&c->files[i]);
    free(PL_TAKE(c->files));
}

static void drop_run(call *c)
{
    for (int i = 0; c->run.values && i < c->plan->n_values; i++)
        pl_run_drop_value(&c->run, i);
    if (c->run.runtime)
        pthread_mutex_destroy(&c->run.telling);
    free(c->run.values);
    c->run = (pl_run){0};
}

void pl_call_done(call *c)
{
    discard_files(c);
    drop_run(c);
    pl_call_end_turn(c);
    pl_call_drop_stages(c);
    free(c->needed);
    free(c->feed_of);
    free(c->n_fetched);
    free(c->sources);
    free(c->given);
}

/* What was promised was taken by somebody who asks no one: a user's tensor. *ret_begun: not the
 * plan was refused, but a claim of its run. */
static int run_plan_once(call *c, pl_tensor **tensors, bool *ret_begun, pl_error *reterr)
{
    int r = pl_call_take_turn(c, reterr);
    *ret_begun = r == 0;
    if (r == 0)
        r = set_values(c, reterr);
    if (r == 0)
        atomic_store(&c->mark.peak_bytes, c->plan->peak_bytes);
    if (r == 0)
        r = pl_run_steps(&c->run, reterr);
    if (r == 0)
        r = finish_fetches(c, tensors, reterr);
    return r;
}

/* Nobody has seen anything of it: files have no names yet, and variables are as they were. But that
 * progress was told, which then waits until it is as far again. */
static void undo_run(call *c, pl_tensor **tensors)
{
    double told = c->run.told;
    for (int i = 0; i < c->n_fetches; i++)
        pl_tensor_unref(PL_TAKE(tensors[i]));
    discard_files(c);
    drop_run(c);
    pl_call_end_turn(c);
    c->run.told = told;
}

/* A run that is refused what it was promised is planned anew, in what is left. */
int pl_call_run_plan(call *c, pl_tensor **tensors, pl_error *reterr)
{
    for (int i = 0;; i++) {
        bool begun;
        int r = run_plan_once(c, tensors, &begun, reterr);
        if (r != PL_EBUDGET || !begun || i == RUNS_MAX - 1)
            return r;
        undo_run(c, tensors);
    }
}

/* What can fail comes first, so that files get their names and variables their values, or neither.
 */
static int commit(call *c, pl_error *reterr)
{
    if (!c->assigns)
        return publish_files(c, reterr);
    pl_tensor **held = calloc((size_t)c->plan->n_values + 1, sizeof(pl_tensor *));
    if (!held)
        return pl_call_no_memory(reterr);
    int r = hold_variables(c, held, reterr);
    if (r == 0)
        r = publish_files(c, reterr);
    put_variables(c, held, r == 0);
    free(held);
    return r;
}

/* Have stages made all that is fetched? As functions of datasets have it that only read: then a
 * plan would have no steps. It is made all the same for who wants to be told, or written to. */
static bool is_made(const call *c)
{
    bool made = c->staged && !c->assigns && !(c->options && c->options->progress);
    for (int i = 0; made && i < c->n_fetches; i++)
        made = !c->fetches[i].npy_path && c->staged[c->fetches[i].node->number];
    return made;
}

static int fetch_made(const call *c, pl_tensor **tensors, pl_error *reterr)
{
    if (pl_call_check(c) < 0)
        return pl_error_set(reterr, -ECANCELED, "the run was cancelled");
    for (int i = 0; i < c->n_fetches; i++)
        tensors[i] = pl_tensor_ref(c->staged[c->fetches[i].node->number]);
    return 0;
}

static int run_call(call *c, pl_tensor **tensors, pl_error *reterr)
{
    int r = c->staged ? pl_call_run_stages(c, reterr) : 0;
    if (r == 0 && is_made(c))
        return fetch_made(c, tensors, reterr);
    if (r == 0)
        r = pl_call_run_plan(c, tensors, reterr);
    if (r == 0)
        r = commit(c, reterr);
    if (r < 0)
        discard_files(c);
    else
        pl_run_tell_end(&c->run);
    return r;
}

/* Alone among those who assign, for what a run leaves must not be lost to another's. */
static int run_in_turn(call *c, pl_tensor **tensors, pl_error *reterr)
{
    if (!c->assigns)
        return run_call(c, tensors, reterr);
    int r = pl_call_begin_assigning(c, reterr);
    if (r < 0)
        return r;
    r = run_call(c, tensors, reterr);
    pl_call_end_assigning(c);
    return r;
}

int pl_session_run(pl_session *session, const pl_fetch *fetches, int n_fetches,
                   const pl_feed *feeds, int n_feeds, const pl_run_options *options,
                   pl_tensor **ret_tensors, pl_error *reterr)
{
    PL_NOT_NULL(session, reterr);
    PL_NOT_NULL_IF(n_fetches > 0, fetches, reterr);
    PL_NOT_NULL_IF(n_feeds > 0, feeds, reterr);
    PL_TAKE_OPTIONS(pl_run_options, options, random_stream, reterr);
    call c = {session, fetches, n_fetches, feeds, n_feeds, options};
    int r = pl_call_check_given(&c, reterr);
    if (r < 0)
        return r;
    c.mark.name = n_fetches > 0 ? fetches[0].node->name : "";
    r = pl_session_enter(session, &c.mark, reterr);
    if (r < 0)
        return r;
    pl_tensor **tensors = calloc((size_t)n_fetches + 1, sizeof(pl_tensor *));
    r = tensors ? pl_call_begin(&c, reterr) : pl_call_no_memory(reterr);
    if (r == 0 && !c.kept)
        r = pl_call_find_stages(&c, reterr);
    if (r == 0)
        r = run_in_turn(&c, tensors, reterr);
    pl_call_done(&c);
    pl_session_leave(session, &c.mark);
    for (int i = 0; tensors && i < n_fetches; i++)
        if (r == 0 && ret_tensors)
            ret_tensors[i] = tensors[i];
        else
            pl_tensor_unref(tensors[i]);
    free(tensors);
    return r;
}
