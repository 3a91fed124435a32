/* SPDX-License-Identifier: Apache-2.0 */
/* pl_session_run(): check -> gather -> eager ops -> plan -> admit -> run -> commit, and the last two
 * of these phases. See pipeline.h and plimsoll/session.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/npy/npy_tensor.h"
#include "exec/session/pipeline.h"

typedef pl_pipeline pipeline;

/* Attempts for one request: a run that is refused memory that it was promised is planned again for
 * what is left. A user who keeps making tensors can still make it fail. */
enum { RUNS_MAX = 5 };

/* ---- run ---- */

static int set_values(pipeline *p, pl_error *reterr)
{
    pl_run *steps = &p->run.steps;
    const pl_plan *plan = p->plan.plan;
    steps->runtime = p->request.session->runtime;
    steps->plan = plan;
    steps->options = p->request.options;
    steps->after_eager_ops = p->check->has_eager_ops ? p->mark.name : NULL;
    steps->cancelled = p->outer ? &p->outer->mark.cancelled : &p->mark.cancelled;
    pthread_mutex_init(&steps->telling, NULL);
    steps->values = calloc((size_t)plan->n_values + 1, sizeof *steps->values);
    p->run.files = calloc((size_t)p->request.n_fetches + 1, sizeof *p->run.files);
    if (!steps->values || !p->run.files)
        return pl_pipeline_no_memory(reterr);
    for (int i = 0; i < plan->n_values; i++)
        steps->values[i].fd = -1;
    for (int i = 0; i < p->gather.n_sources; i++) {
        pl_live_value *value = &steps->values[plan->value_of[p->gather.sources[i].node->number]];
        const pl_tensor *tensor = p->gather.tensors[i];
        value->buffer = pl_buffer_ref(tensor->buffer);
        value->offset = (uint64_t)tensor->offset_bytes;
        memcpy(value->strides, tensor->strides, sizeof value->strides);
        pl_tensor_order(tensor, value->order);
    }
    for (int i = 0; i < p->request.n_fetches; i++) {
        const pl_fetch *fetch = &p->request.fetches[i];
        pl_live_value *value = &steps->values[plan->value_of[fetch->node->number]];
        value->path = fetch->npy_path;
        value->file = &p->run.files[i];
    }
    return 0;
}

int pl_pipeline_result(pipeline *p, const pl_node *node, pl_tensor **ret_tensor, pl_error *reterr)
{
    const pl_plan *plan = p->plan.plan;
    int number = plan->value_of[node->number];
    if (plan->values[number].from_outside) { /* the first values are the sources */
        *ret_tensor = pl_tensor_ref(p->gather.tensors[number]);
        return 0;
    }
    return pl_tensor_wrap(pl_buffer_ref(p->run.steps.values[number].buffer), node->dtype,
                          &plan->shapes[node->number], NULL, 0, ret_tensor, reterr);
}

/* Writes results that are not in their files yet; files get their names later, together. */
static int finish_fetch(pipeline *p, int i, pl_tensor **ret_tensor, pl_error *reterr)
{
    const pl_fetch *fetch = &p->request.fetches[i];
    const pl_plan *plan = p->plan.plan;
    const pl_plan_value *value = &plan->values[plan->value_of[fetch->node->number]];
    if (value->place == PL_PLACE_FILE && !value->from_outside)
        return 0;
    int r = pl_pipeline_result(p, fetch->node, ret_tensor, reterr);
    if (r < 0 || !fetch->npy_path)
        return r;
    r = pl_npy_write(*ret_tensor, fetch->npy_path, &p->run.files[i], reterr);
    if (value->saved)
        pl_buffer_leave((*ret_tensor)->buffer);
    pl_tensor_unref(PL_TAKE(*ret_tensor));
    return r;
}

static int finish_fetches(pipeline *p, pl_tensor **results, pl_error *reterr)
{
    const pl_plan *plan = p->plan.plan;
    for (int i = 0; i < plan->n_values; i++) { /* all is written */
        pl_live_value *value = &p->run.steps.values[i];
        value->fd = -1;
        if (plan->values[i].kept && value->pinned) {
            pl_buffer_unpin(value->buffer);
            value->pinned = false;
        }
    }
    for (int i = 0; i < p->request.n_fetches; i++) {
        int r = finish_fetch(p, i, &results[i], reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

static int run_steps(pipeline *p, pl_tensor **results, pl_error *reterr)
{
    int r = set_values(p, reterr);
    if (r < 0)
        return r;
    atomic_store(&p->mark.peak_bytes, p->plan.peak_bytes);
    r = pl_run_steps(&p->run.steps, reterr);
    return r < 0 ? r : finish_fetches(p, results, reterr);
}

static void discard_files(pipeline *p)
{
    for (int i = 0; p->run.files && i < p->request.n_fetches; i++)
        pl_npy_discard(&p->run.files[i]);
    free(PL_TAKE(p->run.files));
}

/* Must be called before the plan is dropped. */
static void drop_steps(pipeline *p)
{
    pl_run *steps = &p->run.steps;
    discard_files(p);
    for (int i = 0; steps->values && i < p->plan.plan->n_values; i++)
        pl_run_drop_value(steps, i);
    if (steps->runtime)
        pthread_mutex_destroy(&steps->telling);
    free(steps->values);
    *steps = (pl_run){0};
}

/* Nothing of the run is visible outside: files have no names yet, and variables are unchanged. Only
 * progress was reported; it pauses until the run gets there again. */
static void undo_run(pipeline *p, pl_tensor **results)
{
    double told = p->run.steps.told;
    for (int i = 0; i < p->request.n_fetches; i++)
        pl_tensor_unref(PL_TAKE(results[i]));
    drop_steps(p);
    pl_pipeline_drop_plan(p);
    p->run.steps.told = told;
}

/* ---- commit ---- */

/* Returns the variable that a value of the plan is assigned to; NULL: none. Assignments are values
 * of the plan, or sources of it that eager ops have made. */
static const pl_node *variable_at(const pipeline *p, int value)
{
    const pl_node *node = p->plan.plan->values[value].node;
    return node->op->op_class == PL_CLASS_STATE ? node->inputs[0] : NULL;
}

/* held[]: by value of the plan. */
static int hold_variables(pipeline *p, pl_tensor **held, pl_error *reterr)
{
    int r = 0;
    for (int i = 0; r == 0 && i < p->plan.plan->n_values; i++) {
        pl_tensor *tensor = NULL;
        if (!variable_at(p, i))
            continue;
        r = pl_pipeline_result(p, p->plan.plan->values[i].node, &tensor, reterr);
        if (r == 0)
            r = pl_session_hold(p->request.session, variable_at(p, i), tensor, &held[i], reterr);
        pl_tensor_unref(tensor);
    }
    return r;
}

static void put_variables(const pipeline *p, pl_tensor **held, bool committed)
{
    for (int i = 0; i < p->plan.plan->n_values; i++)
        if (held[i] && committed)
            pl_session_put(p->request.session, variable_at(p, i), held[i]);
        else
            pl_tensor_let_go(held[i]);
}

/* Names all files or none, as far as checks beforehand can tell. */
static int publish_files(const pipeline *p, pl_error *reterr)
{
    int r = 0;
    for (int i = 0; r == 0 && i < p->request.n_fetches; i++)
        r = pl_npy_look(&p->run.files[i], reterr);
    for (int i = 0; r == 0 && i < p->request.n_fetches; i++)
        r = pl_npy_publish(&p->run.files[i], reterr);
    return r;
}

/* Steps that can fail come first, so that files get their names and variables their values, or
 * neither. */
static int commit(pipeline *p, pl_error *reterr)
{
    if (!p->check->assigns)
        return publish_files(p, reterr);
    pl_tensor **held = calloc((size_t)p->plan.plan->n_values + 1, sizeof(pl_tensor *));
    if (!held)
        return pl_pipeline_no_memory(reterr);
    int r = hold_variables(p, held, reterr);
    if (r == 0)
        r = publish_files(p, reterr);
    put_variables(p, held, r == 0);
    free(held);
    return r;
}

/* ---- all phases ---- */

static int check_cancelled(const void *context)
{
    return pl_pipeline_cancelled(context);
}

/* A callback of a run that waited for that run would wait for itself: there, a request that does
 * not fit is an error. */
void pl_pipeline_init(pipeline *p, const pl_run_request *request, pipeline *outer)
{
    const pl_run_options *options = request->options;
    *p = (pipeline){.request = *request, .outer = outer};
    const pl_node *first = request->n_fetches > 0 ? request->fetches[0].node : NULL;
    p->mark.name = first ? first->name : "";
    p->admit.admission = (pl_admission){.runtime = request->session->runtime,
                                        .check = check_cancelled,
                                        .context = p,
                                        .most_bytes = options ? options->budget_bytes : 0,
                                        .may_wait = !pl_run_is_telling()};
}

void pl_pipeline_done(pipeline *p)
{
    drop_steps(p);
    pl_pipeline_drop_plan(p);
    pl_admission_done(&p->admit.admission);
    pl_pipeline_end_assigning(p);
    bool shared = p->outer && p->gather.values == p->outer->gather.values;
    for (int i = 0; p->gather.values && !shared && i < p->check->n_nodes; i++)
        pl_tensor_unref(p->gather.values[i]);
    if (!shared)
        free(p->gather.values);
    free(p->gather.sources);
    pl_checked_request_unref(p->check);
}

/* plan -> admit -> run, on the gathered values. Starts over if other runs came in between, or if a
 * user has taken promised memory, which tensors of users do not ask for. */
static int plan_and_run(pipeline *p, pl_tensor **results, pl_error *reterr)
{
    for (int n_runs = 0;;) {
        int r = pl_pipeline_plan(p, reterr);
        r = pl_pipeline_admit(p, r, reterr);
        if (r < 0)
            return r;
        if (r > 0) {
            r = run_steps(p, results, reterr);
            if (r != PL_EBUDGET || ++n_runs == RUNS_MAX)
                return r;
            undo_run(p, results);
        }
        r = pl_pipeline_gather(p, reterr);
        if (r < 0)
            return r;
    }
}

int pl_pipeline_run_nested(pipeline *p, pl_tensor **results, pl_error *reterr)
{
    int r = pl_pipeline_check(p, reterr);
    if (r == 0)
        r = pl_pipeline_gather(p, reterr);
    return r < 0 ? r : plan_and_run(p, results, reterr);
}

/* Returns whether eager ops have made all that is fetched, as in datasets' functions that only
 * read. The plan would then have no steps; it is needed only to report progress or to write
 * files. */
static bool is_made(const pipeline *p)
{
    bool made = p->check->has_eager_ops && !p->check->assigns &&
                !(p->request.options && p->request.options->progress);
    for (int i = 0; made && i < p->request.n_fetches; i++)
        made =
            !p->request.fetches[i].npy_path && p->gather.values[p->request.fetches[i].node->number];
    return made;
}

static int take_made(const pipeline *p, pl_tensor **results, pl_error *reterr)
{
    if (pl_pipeline_cancelled(p) < 0)
        return pl_error_set(reterr, -ECANCELED, "the run was cancelled");
    for (int i = 0; i < p->request.n_fetches; i++)
        results[i] = pl_tensor_ref(p->gather.values[p->request.fetches[i].node->number]);
    return 0;
}

/* check -> gather -> eager ops -> plan -> admit -> run -> commit */
static int run_phases(pipeline *p, pl_tensor **results, pl_error *reterr)
{
    int r = pl_pipeline_check(p, reterr);
    if (r == 0 && p->check->assigns)
        r = pl_pipeline_begin_assigning(p, reterr);
    if (r == 0)
        r = pl_pipeline_gather(p, reterr);
    if (r == 0 && p->check->has_eager_ops)
        r = pl_pipeline_run_eager_ops(p, reterr);
    if (r == 0 && is_made(p))
        return take_made(p, results, reterr);
    if (r == 0)
        r = plan_and_run(p, results, reterr);
    if (r == 0)
        r = commit(p, reterr);
    if (r == 0)
        pl_run_tell_end(&p->run.steps);
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
    const pl_run_request request = {session, fetches, n_fetches, feeds, n_feeds, options};
    pipeline p;
    pl_pipeline_init(&p, &request, NULL);
    int r = pl_session_enter(session, &p.mark, reterr);
    if (r < 0)
        return r;
    pl_tensor **results = calloc((size_t)n_fetches + 1, sizeof(pl_tensor *));
    r = results ? run_phases(&p, results, reterr) : pl_pipeline_no_memory(reterr);
    pl_pipeline_done(&p);
    pl_session_leave(session, &p.mark);
    for (int i = 0; results && i < n_fetches; i++)
        if (r == 0 && ret_tensors)
            ret_tensors[i] = results[i];
        else
            pl_tensor_unref(results[i]);
    free(results);
    return r;
}
