/* SPDX-License-Identifier: Apache-2.0 */
/* When a run begins: with a plan that was kept or is made now, beside others that are under way.
 * See session_call.h, session_plans.h and admission.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "exec/session/admission.h"
#include "exec/session/session_call.h"
#include "tensor/shape.h"

/* ---- the plan of a run that was alike ---- */

static pl_kept_key key_of(const pl_call *c)
{
    return (pl_kept_key){c->fetches, c->n_fetches, c->feeds, c->n_feeds};
}

static void keep_plan(pl_call *c)
{
    const pl_kept_key key = key_of(c);
    if (c->staged || c->plan->device_of || c->plan->disk_bytes > 0 ||
        c->plan->fitted_bytes > c->plan->budget_bytes / PL_KEPT_SHARE)
        return;
    for (int i = 0; i < c->n_sources; i++)
        if (!pl_source_is_plain(&c->sources[i]))
            return;
    c->kept = pl_session_keep_plan(c->session, &key, c->sources, c->n_sources, c->assigns, c->plan);
}

/* The tensor for a source of the kept plan; NULL if it is not as it was. */
static pl_tensor *same_source(const pl_call *c, const pl_kept_source *kept, pl_plan_source *source)
{
    pl_tensor *tensor = NULL;
    if (kept->feed >= 0) {
        tensor = pl_tensor_ref(c->feeds[kept->feed].tensor);
    } else if (kept->node->op->id != PL_OP_placeholder &&
               pl_call_find_given(c, kept->node, &tensor, NULL) < 0) {
        pl_tensor_unref(PL_TAKE(tensor));
    }
    if (!tensor)
        return NULL;
    pl_call_describe(kept->node, tensor, source);
    if (pl_source_is_plain(source) && pl_shape_equal(&source->shape, &kept->shape) &&
        tensor->dtype == kept->node->dtype)
        return tensor;
    pl_tensor_unref(tensor);
    return NULL;
}

/* Gathers what the kept plan needs. False if it does not serve: then nothing is gathered. */
static bool use_kept(pl_call *c)
{
    const pl_kept_plan *kept = c->kept;
    size_t n = (size_t)kept->n_sources + 1;
    c->sources = calloc(n, sizeof *c->sources);
    c->given = calloc(n, sizeof(pl_tensor *));
    bool same =
        c->sources && c->given && pl_call_has_budget(c, kept->plan->fitted_bytes * PL_KEPT_SHARE);
    for (int i = 0; same && i < kept->n_sources; i++) {
        c->given[i] = same_source(c, &kept->sources[i], &c->sources[i]);
        same = c->given[i] != NULL;
        c->n_sources += same;
    }
    if (same)
        return true;
    if (c->given)
        pl_call_drop_sources(c);
    free(PL_TAKE(c->sources));
    free(PL_TAKE(c->given));
    return false;
}

/* Of a run that assigns, when no other does, because variables are read. */
static int find_plan(pl_call *c, pl_error *reterr)
{
    if (c->kept && use_kept(c)) {
        c->plan = c->kept->plan;
        return 0;
    }
    pl_kept_plan_unref(PL_TAKE(c->kept));
    int r = c->needed ? 0 : pl_call_prepare(c, reterr);
    if (r == 0)
        r = pl_call_plan(c, reterr);
    if (r == 0)
        keep_plan(c);
    return r;
}

/* All that a plan was made of, so that another can be made. */
static void forget_plan(pl_call *c)
{
    if (c->given)
        pl_call_drop_sources(c);
    if (!c->kept)
        pl_plan_free(c->plan);
    c->plan = NULL;
    pl_kept_plan_unref(PL_TAKE(c->kept));
    if (c->needed)
        return;
    free(PL_TAKE(c->sources));
    free(PL_TAKE(c->given));
}

/* ---- beside other runs ---- */

int pl_call_check(const pl_call *c)
{
    const pl_call *top = c->outer ? c->outer : c; /* what the session knows of */
    if (atomic_load_explicit(&top->mark.cancelled, memory_order_relaxed) != 0)
        return -ECANCELED;
    if (c->options && c->options->cancel &&
        __atomic_load_n(c->options->cancel, __ATOMIC_RELAXED) != 0)
        return -ECANCELED;
    return 0;
}

static int check_call(const void *context)
{
    return pl_call_check(context);
}

/* What is refused may fit when another run has ended. */
static int wait_for_others(pl_call *c, int r)
{
    if (r != PL_EBUDGET && r != -ENOSPC)
        return r;
    int waited = pl_turn_wait(&c->turn);
    return waited == -EAGAIN ? r : waited;
}

static int find_turn(pl_call *c, pl_error *reterr)
{
    for (;;) {
        int r = find_plan(c, reterr);
        if (r == 0)
            r = pl_turn_begin(&c->turn, c->plan->peak_bytes);
        else
            r = wait_for_others(c, r);
        if (r != 0)
            return r;
        forget_plan(c); /* and make another, for what there is now */
    }
}

/* With the session's lock held. */
static int wait_to_assign(pl_call *c)
{
    pl_session *session = c->session;
    int r = 0;
    while (r == 0 && session->assigning) {
        struct timespec until = pl_turn_look_at();
        pthread_cond_clockwait(&session->assigned, &session->mu, CLOCK_MONOTONIC, &until);
        r = check_call(c);
    }
    return r;
}

int pl_call_begin_assigning(pl_call *c, pl_error *reterr)
{
    pl_session *session = c->session;
    pthread_mutex_lock(&session->mu);
    int r = session->assigning && pl_run_is_telling() ? -EDEADLK : wait_to_assign(c);
    if (r == 0)
        session->assigning = true;
    pthread_mutex_unlock(&session->mu);
    if (r == -EDEADLK)
        return pl_error_set(reterr, r,
                            "'%s' assigns, and so does a run of session %llu that is under way: a "
                            "callback cannot wait for it; run it when that one has ended",
                            c->mark.name, (unsigned long long)session->number);
    return r < 0 ? pl_error_set(reterr, r, "the run was cancelled before it began") : 0;
}

void pl_call_end_assigning(pl_call *c)
{
    pthread_mutex_lock(&c->session->mu);
    c->session->assigning = false;
    pthread_cond_broadcast(&c->session->assigned);
    pthread_mutex_unlock(&c->session->mu);
}

/* A callback of a run would wait for that run, and so for itself: there, what does not fit is an
 * error. */
int pl_call_take_turn(pl_call *c, pl_error *reterr)
{
    c->turn.may_wait = !pl_run_is_telling();
    int r = find_turn(c, reterr);
    c->promised = r > 0;
    pl_turn_done(&c->turn);
    if (r == -ECANCELED)
        return pl_error_set(reterr, r, "the run was cancelled before it began");
    return r < 0 ? r : 0;
}

/* Whether the run assigns decides when its turn is, so that much is found out before. */
int pl_call_begin(pl_call *c, pl_error *reterr)
{
    const pl_kept_key key = key_of(c);
    c->turn = (pl_turn){.runtime = c->session->runtime, .check = check_call, .context = c};
    c->kept = c->staged ? NULL : pl_session_find_plan(c->session, &key);
    if (!c->kept)
        return pl_call_prepare(c, reterr);
    c->assigns = c->kept->assigns;
    return pl_call_check_paths(c, reterr); /* a run that was alike wrote to others, perhaps */
}

void pl_call_end_turn(pl_call *c)
{
    if (c->promised)
        pl_turn_end(&c->turn, c->plan->peak_bytes);
    c->promised = false;
    forget_plan(c);
}
