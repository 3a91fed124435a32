/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps of a plan, one after the other, each in parallel over its tiles. See run.h. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "exec/matmul/blas.h"
#include "exec/step/device_step.h"
#include "exec/step/run.h"
#include "exec/step/seats.h"
#include "plan/device_work.h"
#include "tensor/dtype.h"

int pl_run_check(const pl_run *run)
{
    const pl_run_options *options = run->options;
    if (atomic_load_explicit(run->cancelled, memory_order_relaxed) != 0)
        return -ECANCELED;
    if (options && options->cancel && __atomic_load_n(options->cancel, __ATOMIC_RELAXED) != 0)
        return -ECANCELED;
    return 0;
}

static bool is_cancelled(const void *context)
{
    return pl_run_check(context) < 0;
}

pl_stop pl_run_stop(const pl_run *run)
{
    return (pl_stop){is_cancelled, run};
}

static _Thread_local bool is_telling;

bool pl_run_is_telling(void)
{
    return is_telling;
}

static void call_back(const pl_run *run, double fraction)
{
    bool before = is_telling; /* a callback may start a run that reports, too */
    is_telling = true;
    const char *name =
        run->plan->n_steps > 0 ? run->plan->steps[run->step].node->name : run->after_eager_ops;
    run->options->progress(run->options->progress_context, fraction, name);
    is_telling = before;
}

/* All steps count alike, however long they are. The fraction never falls, even if a step goes over
 * its parts twice. */
void pl_run_tell(pl_run *run, double in_step)
{
    const pl_run_options *options = run->options;
    if (!options || !options->progress || pthread_mutex_trylock(&run->telling) != 0)
        return;
    double fraction = ((double)run->step + in_step) / (double)run->plan->n_steps;
    if (fraction >= run->told && fraction < 1) {
        run->told = fraction;
        call_back(run, fraction);
    }
    pthread_mutex_unlock(&run->telling);
}

/* No other thread can be reporting now. */
void pl_run_tell_end(const pl_run *run)
{
    const pl_run_options *options = run->options;
    if (options && options->progress && (run->plan->n_steps > 0 || run->after_eager_ops))
        call_back(run, 1);
}

typedef struct job {
    pl_run *run;
    pl_frame *frames;
    int64_t n_parts;
    pl_run_part *part;
    void *context;
    _Atomic int64_t next, n_done;
    pthread_mutex_t mu;
    int64_t failed; /* mu, like all that follows: the lowest part that failed */
    int code;
    pl_error error;
} job;

/* Notes the failure of the lowest part, whichever failed first. */
static void note_failure(job *j, int64_t part, int code, const pl_error *error)
{
    pthread_mutex_lock(&j->mu);
    if (j->code == 0 || part < j->failed) {
        j->failed = part;
        j->code = code;
        j->error = *error;
    }
    pthread_mutex_unlock(&j->mu);
}

/* One frame takes parts until there are none left. */
static void take_parts(job *j, pl_frame *frame)
{
    for (;;) {
        int64_t part = atomic_fetch_add(&j->next, 1);
        if (part >= j->n_parts)
            return;
        pl_error_init(&frame->error);
        int r = pl_run_check(j->run);
        if (r == 0)
            r = j->part(frame, part, j->context);
        if (r < 0) {
            note_failure(j, part, r, &frame->error);
            atomic_store(&j->next, j->n_parts);
            return;
        }
        int64_t n_done = atomic_fetch_add(&j->n_done, 1) + 1;
        pl_run_tell(j->run, (double)n_done / (double)j->n_parts);
    }
}

static int work(void *context, int64_t at, int worker)
{
    job *j = context;
    (void)worker;
    pl_seats_take(j->frames[at].seats);
    take_parts(j, &j->frames[at]);
    pl_seats_give(j->frames[at].seats);
    return 0;
}

/* An extra frame with a thread of its own: it mostly waits for the disk, which computing threads
 * should not do. */
typedef struct ahead {
    job *job;
    int64_t frame;
    pthread_t thread;
} ahead;

static void *work_ahead(void *context)
{
    const ahead *a = context;
    (void)work(a->job, a->frame, 0);
    return NULL;
}

/* Starts as many as the system allows; the others do the work of those that cannot start. */
static int start_ahead(job *j, int n_workers, int n, ahead threads[])
{
    sigset_t before;
    int n_started = 0;
    pl_threads_block_signals(&before);
    for (; n_started < n; n_started++) {
        threads[n_started] = (ahead){.job = j, .frame = n_workers + n_started};
        if (pthread_create(&threads[n_started].thread, NULL, work_ahead, &threads[n_started]) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return n_started;
}

static int run_job(job *j, int n_frames)
{
    const pl_step *step = j->frames[0].step;
    ahead threads[PL_STEP_AHEAD_MAX];
    int n_ahead = n_frames > step->n_workers ? n_frames - step->n_workers : 0;
    int n_started = n_ahead > 0 ? start_ahead(j, n_frames - n_ahead, n_ahead, threads) : 0;
    int r = pl_threads_run(j->run->runtime->threads, n_frames - n_ahead, work, j);
    for (int i = 0; i < n_started; i++)
        pthread_join(threads[i].thread, NULL);
    return r;
}

int pl_run_parallel(pl_run *run, pl_frame *frames, int n_frames, int64_t n_parts, pl_run_part *part,
                    void *context, pl_error *reterr)
{
    job j = {.run = run, .frames = frames, .n_parts = n_parts, .part = part, .context = context};
    pthread_mutex_init(&j.mu, NULL);
    int r = run_job(&j, n_frames);
    pthread_mutex_destroy(&j.mu);
    if (r == 0 && j.code == 0)
        return 0;
    int code = r < 0 ? r : j.code;
    if (j.error.code == 0)
        return pl_run_name_error(frames[0].step->node, code, &j.error, reterr);
    pl_error_move(reterr, &j.error);
    return code;
}

/* Uses the slot of the last instruction, if there is room, so that the tile has the same position
 * within a page as in the file. */
static char *place_for_file(const pl_frame *frame, const pl_region *tile)
{
    const pl_program *program = &frame->step->program;
    const pl_instr *last = &program->instrs[program->n_instrs - 1];
    uint64_t bytes = (uint64_t)pl_region_count(tile) * pl_dtype_info_of(last->dtype)->item_bytes;
    if (last->slot == PL_NO_SLOT || last->work < bytes + PL_BUFFER_AROUND_BYTES)
        return NULL;
    int64_t in_page = pl_run_in_page(frame->run, frame->step->value, tile);
    if (in_page < 0)
        return NULL;
    uintptr_t slot = (uintptr_t)frame->scratch + last->slot;
    return (char *)(slot + (uintptr_t)-slot % PL_FILE_DIRECT_BYTES + (uint64_t)in_page);
}

static int compute_tile(pl_frame *frame, int64_t part, void *context)
{
    const pl_step *step = frame->step;
    const pl_live_value *value = &frame->run->values[step->value];
    pl_region tile = pl_region_tile_at(&step->program.boxes[0].shape, step->extent, part);
    const char *data;
    (void)context;
    frame->target = step->direct ? value->data + pl_region_offset(&tile, value->strides)
                                 : place_for_file(frame, &tile);
    int r = pl_tile_compute(frame, &tile, &data);
    if (r < 0 || step->direct)
        return r;
    pl_seats_give(frame->seats);
    r = pl_run_store(frame->run, step->value, &tile, data, &frame->error);
    pl_seats_take(frame->seats);
    return r;
}

static int run_frames(pl_run *run, const pl_step *step, pl_frame *frames, char *shared,
                      pl_error *reterr)
{
    if (step->kind == PL_STEP_REDUCE)
        return pl_run_reduce(run, step, frames, shared, reterr);
    if (step->kind == PL_STEP_LONG_ROWS)
        return pl_run_long_rows(run, step, frames, reterr);
    return pl_run_parallel(run, frames, pl_step_n_frames(step), step->n_tiles, compute_tile, NULL,
                           reterr);
}

static int with_blas(pl_run *run, const pl_step *step, pl_frame *frames, char *shared,
                     pl_error *reterr)
{
    pl_blas_use use;
    if (step->library_bytes == 0)
        return run_frames(run, step, frames, shared, reterr);
    int r = pl_blas_use_begin(&use, run->runtime->memory, 1, step->library_bytes, reterr);
    if (r < 0)
        return r;
    r = run_frames(run, step, frames, shared, reterr);
    pl_blas_use_end(&use);
    return r;
}

static int with_frames(pl_run *run, const pl_step *step, char *scratch, pl_error *reterr)
{
    int n = pl_step_n_frames(step), r = 0;
    pl_seats seats;
    pl_frame *frames = calloc((size_t)n, sizeof *frames);
    if (!frames)
        r = pl_error_set(reterr, -ENOMEM, "%s '%s': out of memory", step->node->op->name,
                         step->node->name);
    pl_seats_init(&seats, step->n_workers);
    for (int i = 0; r == 0 && i < n; i++) {
        r = pl_frame_init(&frames[i], run, step, scratch + step->worker_bytes * (uint64_t)i,
                          reterr);
        frames[i].seats = step->n_ahead > 0 ? &seats : NULL;
    }
    if (r == 0)
        r = with_blas(run, step, frames, scratch + step->worker_bytes * (uint64_t)n, reterr);
    for (int i = 0; frames && i < n; i++)
        pl_frame_done(&frames[i]);
    pl_seats_done(&seats);
    free(frames);
    return r;
}

static int run_step(pl_run *run, const pl_step *step, pl_error *reterr)
{
    pl_block scratch = {0};
    bool is_product = step->kind == PL_STEP_MATMUL;
    uint64_t bytes = step->worker_bytes * (uint64_t)pl_step_n_frames(step) + step->shared_bytes;
    int r = pl_run_make_value(run, step->value, reterr);
    run->direct_fd = -1;
    if (r == 0 && run->values[step->value].fd >= 0)
        run->direct_fd = pl_file_open_direct(run->values[step->value].fd);
    if (r == 0)
        r = pl_run_pin_uses(run, step, reterr);
    if (r == 0 && is_product)
        r = pl_run_product(run, step, reterr);
    if (r == 0 && !is_product)
        r = pl_memory_take(run->runtime->memory, bytes, step->node->name, &scratch, reterr);
    if (r == 0 && !is_product)
        r = step->kind == PL_STEP_DEVICE ? pl_run_device(run, step, scratch.data, reterr)
                                         : with_frames(run, step, scratch.data, reterr);
    pl_memory_give(run->runtime->memory, &scratch);
    pl_run_unpin_uses(run, step);
    if (run->direct_fd >= 0)
        close(run->direct_fd);
    return r;
}

static void drop_last_used(pl_run *run, int s)
{
    const pl_step *step = &run->plan->steps[s];
    for (int i = 0; i < step->n_uses; i++) {
        const pl_plan_value *value = &run->plan->values[step->uses[i]];
        if (value->last_use == s && !value->from_outside)
            pl_run_drop_value(run, step->uses[i]);
        else if (value->last_use == s && pl_value_arrives(value))
            pl_buffer_leave(run->values[step->uses[i]].buffer);
    }
}

int pl_run_steps(pl_run *run, pl_error *reterr)
{
    const pl_plan *plan = run->plan;
    for (int s = 0; s < plan->n_steps; s++) {
        const pl_step *step = &plan->steps[s];
        run->step = s;
        int r = run_step(run, step, reterr);
        if (r == 0)
            drop_last_used(run, s);
        if (r < 0 || (step->work && step->work->lets_go))
            pl_run_release_device(run);
        if (r < 0)
            return r;
    }
    return 0;
}
