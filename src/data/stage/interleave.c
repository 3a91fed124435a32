/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that a function makes of elements: one after the other (flat_map), or several in turn.
 *   cycle   places of which each has a lane (subdataset.h), or is empty; pulled in turn
 *   block   elements that are taken from a lane before it is the next one's turn
 *   coming  lanes that were opened before there is a place for them, in the input's order
 *
 * A lane that has ended leaves its place empty, and the turn goes on; when it comes round again the
 * input's next element gets the place. So the order is that of one thread, whatever the workers do:
 * these pull lanes ahead, those first whose turn is next, into the lanes' queues.
 *
 * next() belongs to one thread at a time, who alone opens places and closes lanes. `mu` is a leaf;
 * a lane's stage, and the input, are pulled by whoever has set `busy`, or `opening`. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "data/ahead/worker_pool.h"
#include "data/core/seeds.h"
#include "data/persist/state.h"
#include "data/stage/subdataset.h"

enum {
    /* Of PL_AUTO: always the same, because the order follows from it. */
    AUTO_CYCLE = 16,
    CYCLE_MOST = 65536,
    LOOK_MS = 50, /* whoever waits looks so often whether the pass was cancelled */
};

typedef struct interleave_dataset {
    pl_dataset base;
    pl_called *called;
    int64_t cycle, block;
    int n_parallel;
} interleave_dataset;

typedef struct interleave_stage interleave_stage;

typedef struct worker {
    pl_job base;
    interleave_stage *stage;
    bool busy; /* mu; submitted, or at work */
} worker;

struct interleave_stage {
    pl_stage base;
    pl_lane **places;    /* cycle; written by the consumer, under mu */
    int64_t at, n_taken; /* the consumer's: the place whose turn it is, and of its block */
    int64_t n_open;      /* the consumer's: places with a lane */
    bool input_ended;    /* the consumer's: and nothing is coming */
    int n_most;          /* workers; 0: none, the consumer does all. Constant */
    worker *workers;     /* n_most */
    int n_queue;         /* elements of a lane ahead, at most. Constant */
    pthread_mutex_t mu;
    pthread_cond_t changed; /* mu, as is all that follows */
    pl_lane *first, *last;  /* coming */
    int n_coming;
    uint64_t n_opened;  /* lanes, ever */
    bool opening;       /* somebody pulls the input */
    pl_element starved; /* of the input, that no lane had room for; of whoever opens */
    bool exhausted;     /* the input has ended */
    bool closing;
    int n_parallel, n_working;
    uint64_t element_bytes; /* of the largest so far, and 1; 0: none was made yet */
};

static const interleave_dataset *dataset_of(const interleave_stage *own)
{
    return (const interleave_dataset *)own->base.dataset;
}

static void lock(interleave_stage *own)
{
    pthread_mutex_lock(&own->mu);
}

static void unlock(interleave_stage *own)
{
    pthread_mutex_unlock(&own->mu);
}

static void run_worker(pl_job *job);

/* ---- open and close ---- */

static void free_interleave(pl_dataset *dataset)
{
    pl_called_unref(((interleave_dataset *)dataset)->called);
}

static int set_workers(interleave_stage *own, pl_error *reterr)
{
    int n = dataset_of(own)->n_parallel;
    pl_crew *crew = own->base.pass->crew;
    if (n == 1)
        return 0;
    int n_may = n == PL_AUTO ? pl_crew_size(crew) : pl_crew_want(crew, n);
    own->n_most = n == PL_AUTO || n > n_may ? n_may : n;
    own->n_parallel = n == PL_AUTO ? 1 : own->n_most;
    own->workers = calloc((size_t)own->n_most + 1, sizeof *own->workers);
    if (!own->workers)
        return pl_error_set(reterr, -ENOMEM, "no memory for %d workers", own->n_most);
    for (int i = 0; i < own->n_most; i++)
        own->workers[i] = (worker){.base = {.run = run_worker}, .stage = own};
    return 0;
}

static int open_interleave(pl_stage *stage, pl_error *reterr)
{
    interleave_stage *own = (interleave_stage *)stage;
    int64_t block = dataset_of(own)->block;
    own->n_queue = (int)(block < PL_LANE_QUEUE - 1 ? block + 1 : PL_LANE_QUEUE);
    own->places = calloc((size_t)dataset_of(own)->cycle, sizeof(pl_lane *));
    if (!own->places)
        return pl_error_set(reterr, -ENOMEM, "no memory for a cycle of %" PRId64,
                            dataset_of(own)->cycle);
    pthread_mutex_init(&own->mu, NULL);
    pthread_cond_init(&own->changed, NULL);
    return set_workers(own, reterr);
}

/* With mu held: takes back the jobs that nobody has begun. */
static void withdraw(interleave_stage *own)
{
    for (int i = 0; i < own->n_most; i++)
        if (own->workers[i].busy && pl_crew_withdraw(own->base.pass->crew, &own->workers[i].base)) {
            own->workers[i].busy = false;
            own->n_working--;
        }
}

static void close_interleave(pl_stage *stage)
{
    interleave_stage *own = (interleave_stage *)stage;
    if (!own->places)
        return;
    lock(own);
    own->closing = true;
    withdraw(own);
    while (own->n_working > 0)
        pthread_cond_wait(&own->changed, &own->mu);
    unlock(own);
    for (int64_t i = 0; i < dataset_of(own)->cycle; i++)
        pl_lane_close(stage, own->places[i]);
    while (own->first) {
        pl_lane *lane = own->first;
        own->first = lane->after;
        pl_lane_close(stage, lane);
    }
    pl_element_clear(&own->starved);
    free(own->places);
    free(own->workers);
    pthread_cond_destroy(&own->changed);
    pthread_mutex_destroy(&own->mu);
}

/* ---- pulling, ahead or not ---- */

/* With mu held, and returns so; the lane is not busy: pulls one element. What is not an element or
 * its error is returned: 0 at the lane's end, and what is to be tried again. */
static int pull(interleave_stage *own, pl_lane *lane, uint64_t room_bytes)
{
    pl_element element = {0};
    pl_error error = {0};
    lane->busy = true;
    unlock(own);
    int r = pl_stage_next(lane->stage, &element, &error);
    lock(own);
    lane->busy = false;
    own->element_bytes = pl_max_u64(own->element_bytes, pl_element_bytes(&element) + 1);
    if (r > 0 || r == PL_REPORTED) {
        pl_lane_put(lane, r, &element, &error, room_bytes);
    } else {
        lane->ended |= r == 0;
        pl_headway_give(&own->base.pass->headway, room_bytes);
    }
    pthread_cond_broadcast(&own->changed);
    return r;
}

static void add_coming(interleave_stage *own, pl_lane *lane)
{
    if (own->last)
        own->last->after = lane;
    else
        own->first = lane;
    own->last = lane;
    own->n_coming++;
}

/* Without mu: the next element of the input, as a lane; of a bad one with its error. 0: there are
 * no more. */
static int open_next(interleave_stage *own, uint64_t number, pl_lane **ret_lane, pl_error *reterr)
{
    pl_element bad = {.offset = -1};
    int r = own->starved.n > 0 ? 1 : pl_stage_next(own->base.inputs[0], &own->starved, reterr);
    if (r == 0 || r == PL_RETRY_ALONE)
        return r;
    if (r > 0)
        r = pl_lane_open(&own->base, dataset_of(own)->called, number, &own->starved, ret_lane, &bad,
                         reterr);
    if (r == PL_RETRY_ALONE)
        return r;
    if (r < 0)
        *ret_lane = pl_lane_of_error(number, r, reterr, &bad);
    return *ret_lane ? 1 : pl_pass_fail(own->base.pass, -ENOMEM, reterr, "no memory for an error");
}

/* With mu held, and returns so; nobody is opening: one more lane that is coming. */
static int open_coming(interleave_stage *own, pl_error *reterr)
{
    pl_lane *lane = NULL;
    uint64_t number = own->n_opened + 1;
    own->opening = true;
    unlock(own);
    int r = open_next(own, number, &lane, reterr);
    lock(own);
    own->opening = false;
    own->exhausted |= r == 0;
    if (r > 0) {
        own->n_opened++;
        add_coming(own, lane);
    }
    pthread_cond_broadcast(&own->changed);
    return r;
}

/* ---- workers ---- */

static bool is_over(const interleave_stage *own)
{
    return own->closing || pl_pass_is_over(own->base.pass);
}

static bool wants(const interleave_stage *own, const pl_lane *lane)
{
    return lane && !lane->busy && !lane->ended && lane->n_queued < own->n_queue;
}

/* With mu held: the lane to be pulled ahead: whose turn is next, and that has fewest. */
static pl_lane *find_lane(interleave_stage *own)
{
    int64_t n = dataset_of(own)->cycle;
    pl_lane *best = NULL;
    for (int64_t i = 0; i < n; i++) {
        pl_lane *lane = own->places[(own->at + i) % n];
        if (wants(own, lane) && (!best || lane->n_queued < best->n_queued))
            best = lane;
        if (best && best->n_queued == 0)
            return best;
    }
    for (pl_lane *lane = own->first; lane; lane = lane->after)
        if (wants(own, lane) && (!best || lane->n_queued < best->n_queued))
            best = lane;
    return best;
}

/* With mu held, and returns so: does something ahead. False: there is nothing to do. */
static bool work(interleave_stage *own)
{
    pl_error error = {0};
    if (is_over(own) || pl_pass_turn(own->base.pass) != PL_TURN_ALL)
        return false;
    if (!own->opening && !own->exhausted && own->n_coming < own->n_most)
        return open_coming(own, &error) >= 0;
    pl_lane *lane = own->element_bytes > 0 ? find_lane(own) : NULL;
    uint64_t bytes = own->element_bytes;
    if (!lane)
        return false;
    if (!pl_headway_try(&own->base.pass->headway, bytes)) {
        atomic_fetch_add_explicit(&own->base.profile.n_held, 1, memory_order_relaxed);
        return false;
    }
    return pull(own, lane, bytes) != PL_RETRY_ALONE;
}

static void run_worker(pl_job *job)
{
    worker *self = (worker *)job;
    interleave_stage *own = self->stage;
    lock(own);
    while (!pl_crew_is_paused(own->base.pass->crew) && own->n_working <= own->n_parallel &&
           work(own))
        ;
    self->busy = false;
    own->n_working--;
    pthread_cond_broadcast(&own->changed);
    unlock(own);
}

/* With mu held: lets the crew go on, with one more each time. */
static void call_crew(interleave_stage *own)
{
    if (is_over(own) || own->n_working >= own->n_parallel)
        return;
    int i = 0;
    while (i < own->n_most && own->workers[i].busy)
        i++;
    if (i == own->n_most)
        return;
    own->workers[i].busy = true;
    own->n_working++;
    pl_crew_submit(own->base.pass->crew, &own->workers[i].base);
}

/* With mu held: somebody else is at what is needed. */
static void wait(interleave_stage *own)
{
    if (own->n_parallel < own->n_most)
        own->n_parallel++;
    uint64_t begun_ns = pl_clock_monotonic_ns(), until_ns = begun_ns + LOOK_MS * PL_NS_PER_MS;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / PL_NS_PER_SEC),
                                   .tv_nsec = (long)(until_ns % PL_NS_PER_SEC)};
    pthread_cond_clockwait(&own->changed, &own->mu, CLOCK_MONOTONIC, &until);
    atomic_fetch_add_explicit(&own->base.profile.waiting_ns, pl_clock_monotonic_ns() - begun_ns,
                              memory_order_relaxed);
}

/* ---- the consumer ---- */

/* With mu held. */
static void advance(interleave_stage *own)
{
    own->at = (own->at + 1) % dataset_of(own)->cycle;
    own->n_taken = 0;
}

/* With mu held: in any order, another place whose lane has something ready takes its turn. */
static void turn_to_ready(interleave_stage *own)
{
    int64_t n = dataset_of(own)->cycle;
    for (int64_t i = 0; i < n; i++) {
        pl_lane *lane = own->places[(own->at + i) % n];
        if (!lane || !pl_lane_first(lane))
            continue;
        if (i > 0)
            own->n_taken = 0;
        own->at = (own->at + i) % n;
        return;
    }
}

/* With mu held, and returns so: until the lane whose turn it is has an element, or has ended. */
static int await_lane(interleave_stage *own, pl_error *reterr)
{
    for (;;) {
        if (own->base.pass->nondeterministic)
            turn_to_ready(own);
        pl_lane *lane = own->places[own->at];
        if (pl_lane_first(lane) || lane->ended)
            return 1;
        if (pl_pass_is_over(own->base.pass))
            return pl_pass_over(own->base.pass, reterr);
        call_crew(own);
        if (lane->busy) {
            wait(own);
            continue;
        }
        if (pull(own, lane, 0) == PL_RETRY_ALONE)
            return PL_RETRY_ALONE;
    }
}

/* 1 and an element, as a class's next(); 0: the lane has ended, and its place is empty. */
static int next_of_lane(interleave_stage *own, pl_element *ret_element, pl_error *reterr)
{
    lock(own);
    int r = await_lane(own, reterr);
    if (r < 0) {
        unlock(own);
        return r;
    }
    pl_lane *lane = own->places[own->at];
    if (!pl_lane_first(lane)) {
        own->places[own->at] = NULL;
        advance(own);
        unlock(own);
        pl_lane_close(&own->base, lane);
        own->n_open--;
        return 0;
    }
    r = pl_lane_take(lane, &own->base.pass->headway, ret_element, reterr);
    if (++own->n_taken == dataset_of(own)->block)
        advance(own);
    if (lane->n_queued <= own->n_queue / 2)
        call_crew(own);
    unlock(own);
    return r;
}

/* With mu held, and returns so: 1 and the lane that comes next; 0: there is none any more. */
static int await_coming(interleave_stage *own, pl_lane **ret_lane, pl_error *reterr)
{
    while (!own->first) {
        if (pl_pass_is_over(own->base.pass))
            return pl_pass_over(own->base.pass, reterr);
        if (own->exhausted && !own->opening)
            return 0;
        if (own->opening) {
            wait(own);
            continue;
        }
        int r = open_coming(own, reterr);
        if (r <= 0)
            return r;
    }
    pl_lane *lane = own->first;
    own->first = lane->after;
    if (!own->first)
        own->last = NULL;
    lane->after = NULL;
    own->n_coming--;
    *ret_lane = lane;
    return 1;
}

/* The place is empty, and stays so. */
static void pass_by(interleave_stage *own)
{
    lock(own);
    advance(own);
    unlock(own);
}

/* Gives an empty place the next lane, if there is one. Negative: the element is bad. */
static int fill_place(interleave_stage *own, pl_element *ret_element, pl_error *reterr)
{
    pl_lane *lane = NULL;
    lock(own);
    int r = await_coming(own, &lane, reterr);
    if (r > 0 && lane->stage)
        own->places[own->at] = lane;
    unlock(own);
    own->input_ended = r == 0;
    if (r <= 0)
        return r;
    if (lane->stage) {
        own->n_open++;
        pl_stage_counted(&own->base, &lane->input);
        return 0;
    }
    pl_element bad;
    r = pl_lane_take(lane, &own->base.pass->headway, &bad, reterr);
    pl_lane_close(&own->base, lane);
    if (r != PL_REPORTED)
        return pl_stage_spoil(&own->base, &bad, ret_element, r);
    pl_stage_dropped(&own->base, &bad);
    return r;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    interleave_stage *own = (interleave_stage *)stage;
    while (!own->input_ended || own->n_open > 0) {
        int r = 0;
        if (own->places[own->at])
            r = next_of_lane(own, ret_element, reterr);
        else if (own->input_ended)
            pass_by(own);
        else
            r = fill_place(own, ret_element, reterr);
        if (r != 0)
            return r;
    }
    return 0;
}

/* ---- state ---- */

static int save_lanes(interleave_stage *own, pl_saver *saver, pl_error *reterr)
{
    int r = 0;
    for (int64_t i = 0; r == 0 && i < dataset_of(own)->cycle; i++) {
        r = pl_save_int(saver, own->places[i] != NULL, reterr);
        if (r == 0 && own->places[i])
            r = pl_lane_save(own->places[i], saver, reterr);
    }
    if (r == 0)
        r = pl_save_int(saver, own->n_coming, reterr);
    for (pl_lane *lane = own->first; r == 0 && lane; lane = lane->after)
        r = pl_lane_save(lane, saver, reterr);
    return r;
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    interleave_stage *own = (interleave_stage *)stage;
    const int64_t numbers[] = {(int64_t)pl_seed_pass_number(stage->pass),
                               own->at,
                               own->n_taken,
                               own->input_ended,
                               own->exhausted,
                               (int64_t)own->n_opened};
    int r = 0;
    for (size_t i = 0; r == 0 && i < PL_COUNT_OF(numbers); i++)
        r = pl_save_int(saver, numbers[i], reterr);
    if (r == 0)
        r = pl_save_waiting(saver, &own->starved, reterr);
    return r < 0 ? r : save_lanes(own, saver, reterr);
}

static int load_lanes(interleave_stage *own, pl_loader *loader, pl_error *reterr)
{
    pl_called *called = dataset_of(own)->called;
    int64_t there = 0, n_coming = 0;
    int r = 0;
    for (int64_t i = 0; r == 0 && i < dataset_of(own)->cycle; i++) {
        r = pl_load_int(loader, 0, 1, &there, reterr);
        if (r == 0 && there)
            r = pl_lane_load(&own->base, called, loader, &own->places[i], reterr);
        own->n_open += own->places[i] != NULL;
    }
    if (r == 0)
        r = pl_load_int(loader, 0, INT32_MAX, &n_coming, reterr);
    while (r == 0 && own->n_coming < n_coming) {
        pl_lane *lane;
        r = pl_lane_load(&own->base, called, loader, &lane, reterr);
        if (r == 0)
            add_coming(own, lane);
    }
    return r;
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    interleave_stage *own = (interleave_stage *)stage;
    const interleave_dataset *dataset = dataset_of(own);
    int64_t number, input_ended = 0, exhausted = 0, n_opened = 0;
    int r = pl_load_count(loader, &number, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, dataset->cycle - 1, &own->at, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, dataset->block - 1, &own->n_taken, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &input_ended, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &exhausted, reterr);
    if (r == 0)
        r = pl_load_count(loader, &n_opened, reterr);
    if (r == 0)
        r = pl_load_waiting(loader, stage->dataset->inputs[0], &own->starved, reterr);
    if (r < 0)
        return r;
    pl_seed_set_pass_number(stage->pass, (uint64_t)number);
    own->input_ended = input_ended;
    own->exhausted = exhausted;
    own->n_opened = (uint64_t)n_opened;
    return load_lanes(own, loader, reterr);
}

/* ---- the classes ---- */

static void describe(const pl_dataset *dataset, FILE *to)
{
    const interleave_dataset *own = (const interleave_dataset *)dataset;
    fprintf(to, "cycle=%" PRId64 ", block=%" PRId64, own->cycle, own->block);
}

static const pl_dataset_class flat_map_class = {
    .name = "flat_map",
    .dataset_bytes = sizeof(interleave_dataset),
    .stage_bytes = sizeof(interleave_stage),
    .free = free_interleave,
    .open = open_interleave,
    .next = next,
    .close = close_interleave,
    .save = save,
    .restore = restore,
};

static const pl_dataset_class interleave_class = {
    .name = "interleave",
    .dataset_bytes = sizeof(interleave_dataset),
    .stage_bytes = sizeof(interleave_stage),
    .free = free_interleave,
    .open = open_interleave,
    .next = next,
    .close = close_interleave,
    .save = save,
    .restore = restore,
    .describe = describe,
};

static int make(const pl_dataset_class *class, pl_dataset *input, const pl_function *function,
                pl_dataset **ret_dataset, pl_error *reterr)
{
    pl_called *called;
    int r = pl_called_new(function, input->spec, input->n_components, class->name, &called, reterr);
    if (r < 0)
        return r;
    pl_dataset *dataset = NULL;
    r = pl_lane_check(called, class->name, reterr);
    const pl_spec *of = r < 0 ? NULL : pl_called_spec(called, 0);
    if (r == 0)
        r = pl_dataset_make(class, input->runtime, &input, 1, of->n_of, &dataset, reterr);
    for (int i = 0; r == 0 && i < of->n_of; i++)
        if (pl_spec_copy(&dataset->spec[i], &of->of[i]) < 0)
            r = pl_error_set(reterr, -ENOMEM, "no memory for a dataset");
    if (r < 0) {
        pl_called_unref(called);
        pl_dataset_unref(dataset);
        return r;
    }
    interleave_dataset *own = (interleave_dataset *)dataset;
    own->called = called;
    own->cycle = own->block = own->n_parallel = 1;
    *ret_dataset = dataset;
    return 0;
}

int pl_dataset_flat_map(pl_dataset *input, const pl_function *function, pl_dataset **ret_dataset,
                        pl_error *reterr)
{
    PL_NOT_NULL(function, reterr);
    PL_NOT_NULL_OR_RELEASE(function, input, reterr);
    PL_NOT_NULL_OR_RELEASE(function, ret_dataset, reterr);
    return make(&flat_map_class, input, function, ret_dataset, reterr);
}

static int check(int64_t cycle, int64_t block, int n_parallel, pl_error *reterr)
{
    if (cycle < 1 || cycle > CYCLE_MOST)
        return pl_error_set(reterr, -EINVAL,
                            "interleave: a cycle of %" PRId64 ", not within 1 and %d", cycle,
                            CYCLE_MOST);
    if (block < 1)
        return pl_error_set(reterr, -EINVAL, "interleave: blocks of %" PRId64 " elements", block);
    if (n_parallel < 1 && n_parallel != PL_AUTO)
        return pl_error_set(reterr, -EINVAL, "interleave: %d calls at once", n_parallel);
    return 0;
}

int pl_dataset_interleave(pl_dataset *input, const pl_function *function, int64_t cycle_length,
                          int64_t block_length, int n_parallel, pl_dataset **ret_dataset,
                          pl_error *reterr)
{
    PL_NOT_NULL(function, reterr);
    PL_NOT_NULL_OR_RELEASE(function, input, reterr);
    PL_NOT_NULL_OR_RELEASE(function, ret_dataset, reterr);
    int64_t cycle = cycle_length == PL_AUTO ? AUTO_CYCLE : cycle_length;
    int r = check(cycle, block_length, n_parallel, reterr);
    if (r < 0) {
        if (function->release)
            function->release(function->context);
        return r;
    }
    r = make(&interleave_class, input, function, ret_dataset, reterr);
    if (r < 0)
        return r;
    interleave_dataset *own = (interleave_dataset *)*ret_dataset;
    own->cycle = cycle;
    own->block = block_length;
    own->n_parallel = n_parallel;
    return 0;
}
