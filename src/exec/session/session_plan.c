/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a run, kept or new, and its admission beside other runs. See pipeline.h,
 * session_plans.h and admission.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "exec/matmul/blas.h"
#include "exec/session/pipeline.h"
#include "exec/step/device_step.h"
#include "plan/matmul_plan.h"
#include "tensor/pool.h"

/* ---- a new plan ---- */

static bool is_source(const pl_pipeline *p, const pl_node *node)
{
    for (int i = 0; i < p->gather.n_sources; i++)
        if (p->gather.sources[i].node == node)
            return true;
    return false;
}

/* A value that is fetched twice becomes a tensor first; but a value from outside is written to each
 * of its files. */
static bool goes_to_file(const pl_pipeline *p, int fetch)
{
    const pl_node *node = p->request.fetches[fetch].node;
    bool alone = p->check->n_fetched[node->number] == 1 && node->op->op_class != PL_CLASS_STATE;
    return p->request.fetches[fetch].npy_path && (alone || is_source(p, node));
}

/* Workers call BLAS side by side, each with one thread. */
static uint64_t blas_bytes(pl_dtype dtype, int64_t rows)
{
    return pl_matmul_workspace_bytes(dtype, rows, 1);
}

static void count_plan(pl_session *session)
{
    pthread_mutex_lock(&session->mu);
    session->n_planned++;
    pthread_mutex_unlock(&session->mu);
}

int pl_pipeline_make_plan(pl_pipeline *p, pl_error *reterr)
{
    pl_runtime *runtime = p->request.session->runtime;
    pl_pool_state state;
    pl_pool_state_read(runtime->pool, &state);
    pl_plan_fetch *fetches = calloc((size_t)p->request.n_fetches + 1, sizeof *fetches);
    if (!fetches)
        return pl_pipeline_no_memory(reterr);
    for (int i = 0; i < p->request.n_fetches; i++)
        fetches[i] = (pl_plan_fetch){p->request.fetches[i].node, goes_to_file(p, i)};
    pl_plan_device *devices;
    pl_plan_request request = {
        .graph = p->request.session->graph,
        .fetches = fetches,
        .n_fetches = p->request.n_fetches,
        .sources = p->gather.sources,
        .n_sources = p->gather.n_sources,
        .budget_bytes = pl_admission_budget_bytes(&p->admit.admission),
        .own_bytes = p->eager.held_bytes,
        .disk = state.room,
        .slab_bytes = runtime->pool->slab_bytes,
        .small_bytes = runtime->pool->slab_bytes / PL_POOL_SMALL_SHARE,
        .library_bytes = blas_bytes,
        .library_there_bytes = pl_blas_there_bytes(),
        .n_threads = pl_threads_count(runtime->threads),
    };
    int r = pl_request_devices(runtime, &request, &devices, reterr);
    if (r == 0)
        r = pl_plan_new(&request, &p->plan.plan, reterr);
    free(devices);
    free(fetches);
    count_plan(p->request.session);
    return r;
}

/* ---- a kept plan ---- */

static bool all_plain(const pl_gather_phase *g)
{
    for (int i = 0; i < g->n_sources; i++)
        if (!g->sources[i].resident || g->sources[i].permuted || g->sources[i].scattered)
            return false;
    return true;
}

/* A kept plan's peak includes what eager ops held when it was made; this replaces that by what they
 * hold now. */
static uint64_t with_held_now(const pl_pipeline *p, const pl_kept_plan *kept, uint64_t bytes)
{
    return bytes - kept->held_bytes + p->eager.held_bytes;
}

static bool use_kept_plan(pl_pipeline *p)
{
    if (!all_plain(&p->gather))
        return false;
    pl_kept_plan *kept =
        pl_session_find_plan(p->request.session, p->check, p->gather.sources, p->gather.n_sources);
    if (!kept)
        return false;
    uint64_t fitted_bytes = with_held_now(p, kept, kept->plan->fitted_bytes);
    if (!pl_admission_allows(&p->admit.admission, fitted_bytes * PL_KEPT_SHARE)) {
        pl_kept_plan_unref(kept);
        return false;
    }
    p->plan = (pl_plan_phase){kept->plan, kept, with_held_now(p, kept, kept->plan->peak_bytes)};
    return true;
}

static void keep_plan(pl_pipeline *p)
{
    const pl_plan *plan = p->plan.plan;
    if (plan->device_of || plan->disk_bytes > 0 ||
        plan->fitted_bytes > plan->budget_bytes / PL_KEPT_SHARE || !all_plain(&p->gather))
        return;
    p->plan.kept = pl_session_keep_plan(p->request.session, p->check, p->gather.sources,
                                        p->gather.n_sources, p->eager.held_bytes, p->plan.plan);
}

/* Values that eager ops have left in memory may be all that prevents the plan. */
static int make_plan_with_room(pl_pipeline *p, pl_error *reterr)
{
    int r = pl_pipeline_make_plan(p, reterr);
    if (r != PL_EBUDGET || p->eager.held_bytes == 0 || !pl_pipeline_evict_held(p, NULL))
        return r;
    pl_pipeline_list_sources(p);
    r = pl_pipeline_count_held(p);
    return r < 0 ? pl_pipeline_no_memory(reterr) : pl_pipeline_make_plan(p, reterr);
}

int pl_pipeline_plan(pl_pipeline *p, pl_error *reterr)
{
    if (p->gather.values) {
        pl_pipeline_list_sources(p);
        if (pl_pipeline_count_held(p) < 0)
            return pl_pipeline_no_memory(reterr);
    }
    if (use_kept_plan(p))
        return 0;
    int r = make_plan_with_room(p, reterr);
    if (r < 0)
        return r;
    p->plan.peak_bytes = p->plan.plan->peak_bytes;
    if (p->plan.plan->n_fallbacks > 0)
        pl_plan_tell_fallbacks(p->request.session->runtime, p->plan.plan);
    keep_plan(p);
    return 0;
}

void pl_pipeline_drop_plan(pl_pipeline *p)
{
    (void)pl_admission_end(&p->admit.admission);
    pl_pipeline_drop_sources(p);
    if (!p->plan.kept)
        pl_plan_free(p->plan.plan);
    pl_kept_plan_unref(p->plan.kept);
    p->plan = (pl_plan_phase){0};
}

/* ---- admission ---- */

int pl_pipeline_cancelled(const pl_pipeline *p)
{
    const pl_pipeline *top = p->outer ? p->outer : p; /* the one that the session cancels */
    const pl_run_options *options = p->request.options;
    if (atomic_load_explicit(&top->mark.cancelled, memory_order_relaxed) != 0)
        return -ECANCELED;
    if (options && options->cancel && __atomic_load_n(options->cancel, __ATOMIC_RELAXED) != 0)
        return -ECANCELED;
    return 0;
}

static int cancelled_before(pl_error *reterr)
{
    return pl_error_set(reterr, -ECANCELED, "the run was cancelled before it began");
}

/* A plan that was refused may fit when another run has ended. */
static int wait_for_others(pl_pipeline *p, int refused)
{
    if (refused != PL_EBUDGET && refused != -ENOSPC)
        return refused;
    int waited = pl_admission_wait(&p->admit.admission);
    return waited == -EAGAIN ? refused : waited;
}

int pl_pipeline_admit(pl_pipeline *p, int planned, pl_error *reterr)
{
    int r = planned == 0 ? pl_admission_begin(&p->admit.admission, p->plan.peak_bytes)
                         : wait_for_others(p, planned);
    if (r == 0) {
        pl_pipeline_drop_plan(p);
        return 0;
    }
    pl_admission_done(&p->admit.admission);
    return r == -ECANCELED ? cancelled_before(reterr) : r;
}

/* Call with the session's lock held. */
static int wait_to_assign(pl_pipeline *p)
{
    pl_session *session = p->request.session;
    int r = 0;
    while (r == 0 && session->assigning) {
        struct timespec until = pl_admission_poll_at();
        pthread_cond_clockwait(&session->assigned, &session->mu, CLOCK_MONOTONIC, &until);
        r = pl_pipeline_cancelled(p);
    }
    return r;
}

int pl_pipeline_begin_assigning(pl_pipeline *p, pl_error *reterr)
{
    pl_session *session = p->request.session;
    pthread_mutex_lock(&session->mu);
    int r = session->assigning && pl_run_is_telling() ? -EDEADLK : wait_to_assign(p);
    if (r == 0)
        session->assigning = p->admit.assigning = true;
    pthread_mutex_unlock(&session->mu);
    if (r == -EDEADLK)
        return pl_error_set(reterr, r,
                            "'%s' assigns, and so does a run of session %llu that is under way: a "
                            "callback cannot wait for it; run it when that one has ended",
                            p->mark.name, (unsigned long long)session->number);
    return r < 0 ? cancelled_before(reterr) : 0;
}

void pl_pipeline_end_assigning(pl_pipeline *p)
{
    pl_session *session = p->request.session;
    if (!p->admit.assigning)
        return;
    pthread_mutex_lock(&session->mu);
    session->assigning = p->admit.assigning = false;
    pthread_cond_broadcast(&session->assigned);
    pthread_mutex_unlock(&session->mu);
}
