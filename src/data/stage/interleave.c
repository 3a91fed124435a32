/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the datasets that a function makes from elements: one after the other (flat_map), or
 * several in turn.
 *   cycle   places, pulled in turn; each has a subdataset (subdataset.h), or is empty
 *   block   elements taken from a subdataset before the next one's turn
 *   coming  subdatasets opened before a place is free, in the input's order
 *
 * A subdataset that has ended leaves its place empty, and the turn goes on; when it comes round
 * again, the place goes to the input's next element. So the order is as with one thread, whatever
 * the workers do: they pull subdatasets ahead, in the order of their turns, into their queues.
 *
 * next() belongs to one thread at a time, which alone fills places and closes subdatasets. The
 * engine's `mu` is a leaf; the thread that has set `busy` pulls a subdataset, the one that has set
 * `opening` the input. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "data/core/seeds.h"
#include "data/persist/state.h"
#include "data/stage/subdataset.h"

enum {
    /* For PL_AUTO: the same on every machine, because the order follows from it. */
    AUTO_CYCLE = 16,
    CYCLE_MOST = 65536,
};

typedef struct interleave_dataset {
    pl_dataset base;
    pl_bound_function *function;
    int64_t cycle, block;
    int n_parallel;
} interleave_dataset;

typedef struct interleave_stage {
    pl_stage base;
    pl_ahead ahead;
    pl_subdataset **places;      /* cycle; written by the consumer, under mu */
    int64_t at, n_taken;         /* the consumer's: the place whose turn it is, and of its block */
    int64_t n_open;              /* the consumer's: places with a subdataset */
    bool input_ended;            /* the consumer's: and nothing is coming */
    int n_queue;                 /* elements of a subdataset ahead, at most. Constant */
    pl_subdataset *first, *last; /* coming; the engine's mu, as is all that follows */
    int n_coming;
    uint64_t n_opened;  /* subdatasets, ever */
    bool opening;       /* somebody pulls the input */
    pl_element starved; /* of the input: its subdataset did not fit. Of the thread that opens */
    bool exhausted;     /* the input has ended */
} interleave_stage;

static const interleave_dataset *dataset_of(const interleave_stage *own)
{
    return (const interleave_dataset *)own->base.dataset;
}

/* ---- making elements, ahead or not ---- */

/* Pulls one element of a subdataset that is not busy. An element or its error goes to the queue;
 * returns 0 at the end, or a code after which the pull is repeated. Call with mu held, which it
 * releases meanwhile. */
static int pull(interleave_stage *own, pl_subdataset *subdataset, uint64_t room_bytes)
{
    pl_element element = {0};
    pl_error error = {0};
    subdataset->busy = true;
    pl_ahead_unlock(&own->ahead);
    int r = pl_stage_next(subdataset->stage, &element, &error);
    pl_ahead_lock(&own->ahead);
    subdataset->busy = false;
    if (r > 0 || r == PL_REPORTED) {
        pl_ahead_slot *slot = pl_subdataset_add(subdataset, room_bytes);
        pl_ahead_fill(&own->ahead, slot, r, &element, &error);
        return r;
    }
    subdataset->ended |= r == 0;
    pl_prefetch_budget_give(&own->base.pass->prefetch_budget, room_bytes);
    pl_ahead_changed(&own->ahead);
    pl_error_done(&error); /* of one that is to be pulled again */
    return r;
}

static void add_coming(interleave_stage *own, pl_subdataset *subdataset)
{
    if (own->last)
        own->last->after = subdataset;
    else
        own->first = subdataset;
    own->last = subdataset;
    own->n_coming++;
}

static pl_subdataset *take_coming(interleave_stage *own)
{
    pl_subdataset *subdataset = own->first;
    own->first = subdataset->after;
    if (!own->first)
        own->last = NULL;
    subdataset->after = NULL;
    own->n_coming--;
    return subdataset;
}

/* Makes a subdataset from the next element of the input; from a bad one, with its error. Returns 0
 * if there are no more. Call without mu. */
static int open_next(interleave_stage *own, uint64_t number, pl_subdataset **ret_subdataset,
                     pl_error *reterr)
{
    pl_element bad = {.offset = -1};
    int r = own->starved.n > 0 ? 1 : pl_stage_next(own->base.inputs[0], &own->starved, reterr);
    if (r > 0)
        r = pl_subdataset_open(&own->base, dataset_of(own)->function, number, &own->starved,
                               ret_subdataset, &bad, reterr);
    else if (r == 0)
        return 0;
    if (r == PL_RETRY_ALONE)
        return r;
    if (r < 0)
        *ret_subdataset = pl_subdataset_of_error(number, r, reterr, &bad);
    return *ret_subdataset ? 1
                           : pl_pass_fail(own->base.pass, -ENOMEM, reterr,
                                          "out of memory while reporting an error");
}

/* Opens one more coming subdataset, if no thread is opening. Call with mu held, which it releases
 * meanwhile. */
static int open_coming(interleave_stage *own, pl_error *reterr)
{
    pl_subdataset *subdataset = NULL;
    uint64_t number = own->n_opened + 1;
    own->opening = true;
    pl_ahead_unlock(&own->ahead);
    int r = open_next(own, number, &subdataset, reterr);
    pl_ahead_lock(&own->ahead);
    own->opening = false;
    own->exhausted |= r == 0;
    if (r > 0) {
        own->n_opened++;
        add_coming(own, subdataset);
    }
    pl_ahead_changed(&own->ahead);
    return r;
}

/* ---- ahead ---- */

static bool wants(const interleave_stage *own, const pl_subdataset *subdataset)
{
    return subdataset && !subdataset->busy && !subdataset->ended &&
           subdataset->n_queued < own->n_queue;
}

/* Returns the subdataset to pull ahead: the one with the fewest elements, earliest in turn. Call
 * with mu held. */
static pl_subdataset *find_subdataset(interleave_stage *own)
{
    int64_t n = dataset_of(own)->cycle;
    pl_subdataset *best = NULL;
    for (int64_t i = 0; i < n; i++) {
        pl_subdataset *at = own->places[(own->at + i) % n];
        if (wants(own, at) && (!best || at->n_queued < best->n_queued))
            best = at;
        if (best && best->n_queued == 0)
            return best;
    }
    for (pl_subdataset *at = own->first; at; at = at->after)
        if (wants(own, at) && (!best || at->n_queued < best->n_queued))
            best = at;
    return best;
}

static bool step(pl_stage *stage)
{
    interleave_stage *own = (interleave_stage *)stage;
    pl_error error = {0};
    uint64_t room_bytes;
    if (pl_pass_get_mode(stage->pass) != PL_PASS_SHARED)
        return false;
    if (!own->opening && !own->exhausted && own->n_coming < own->ahead.n_most)
        return open_coming(own, &error) >= 0;
    pl_subdataset *subdataset = own->ahead.element_bytes > 0 ? find_subdataset(own) : NULL;
    return subdataset && pl_ahead_take_room(&own->ahead, &room_bytes) &&
           pull(own, subdataset, room_bytes) != PL_RETRY_ALONE;
}

/* ---- open and close ---- */

static void free_interleave(pl_dataset *dataset)
{
    pl_bound_function_unref(((interleave_dataset *)dataset)->function);
}

static int open_interleave(pl_stage *stage, pl_error *reterr)
{
    interleave_stage *own = (interleave_stage *)stage;
    const interleave_dataset *dataset = dataset_of(own);
    int64_t block = dataset->block;
    own->n_queue = (int)(block < PL_SUBDATASET_QUEUE - 1 ? block + 1 : PL_SUBDATASET_QUEUE);
    own->places = calloc((size_t)dataset->cycle, sizeof(pl_subdataset *));
    if (!own->places)
        return pl_error_set(reterr, -ENOMEM, "out of memory for a cycle of %" PRId64,
                            dataset->cycle);
    int n_parallel = dataset->n_parallel == 1 ? 0 : dataset->n_parallel;
    int r = pl_ahead_init(&own->ahead, stage, step, n_parallel, reterr);
    own->ahead.n_ahead_most = dataset->cycle * own->n_queue;
    return r;
}

static void close_interleave(pl_stage *stage)
{
    interleave_stage *own = (interleave_stage *)stage;
    pl_ahead_stop(&own->ahead);
    for (int64_t i = 0; own->places && i < dataset_of(own)->cycle; i++)
        pl_subdataset_close(stage, own->places[i]);
    while (own->first)
        pl_subdataset_close(stage, take_coming(own));
    pl_element_clear(&own->starved);
    free(own->places);
    pl_ahead_done(&own->ahead);
}

/* ---- the consumer ---- */

/* Call with mu held. */
static void advance(interleave_stage *own)
{
    own->at = (own->at + 1) % dataset_of(own)->cycle;
    own->n_taken = 0;
}

/* Gives the turn to another place whose subdataset has an element ready, if order does not matter.
 * Call with mu held. */
static void turn_to_ready(interleave_stage *own)
{
    int64_t n = dataset_of(own)->cycle;
    for (int64_t i = 0; i < n; i++) {
        pl_subdataset *subdataset = own->places[(own->at + i) % n];
        if (!subdataset || !pl_subdataset_first(subdataset))
            continue;
        if (i > 0)
            own->n_taken = 0;
        own->at = (own->at + i) % n;
        return;
    }
}

static bool is_ready(interleave_stage *own)
{
    if (own->base.pass->nondeterministic)
        turn_to_ready(own);
    pl_subdataset *subdataset = own->places[own->at];
    return pl_subdataset_first(subdataset) || subdataset->ended;
}

/* Waits until the subdataset whose turn it is has an element, or has ended. Call with mu held,
 * which it releases meanwhile. */
static int await_subdataset(interleave_stage *own, pl_error *reterr)
{
    int r = 1;
    uint64_t begun_ns = pl_ahead_short_begin(&own->ahead);
    while (r > 0 && !is_ready(own)) {
        pl_subdataset *subdataset = own->places[own->at];
        pl_ahead_call(&own->ahead, 1);
        if (pl_pass_is_over(own->base.pass))
            r = pl_pass_over(own->base.pass, reterr);
        else if (subdataset->busy)
            pl_ahead_wait(&own->ahead);
        else if (pull(own, subdataset, 0) == PL_RETRY_ALONE)
            r = PL_RETRY_ALONE;
    }
    pl_ahead_short_end(&own->ahead, begun_ns);
    return r;
}

/* 1 and an element, as a class's next(); 0: the subdataset has ended, and its place is empty. */
static int next_of_place(interleave_stage *own, pl_element *ret_element, pl_error *reterr)
{
    pl_ahead_lock(&own->ahead);
    int r = is_ready(own) ? 1 : await_subdataset(own, reterr);
    if (r < 0) {
        pl_ahead_unlock(&own->ahead);
        return r;
    }
    pl_subdataset *subdataset = own->places[own->at];
    if (!pl_subdataset_first(subdataset)) {
        own->places[own->at] = NULL;
        advance(own);
        pl_ahead_unlock(&own->ahead);
        pl_subdataset_close(&own->base, subdataset);
        own->n_open--;
        return 0;
    }
    r = pl_subdataset_take(subdataset, &own->base.pass->prefetch_budget, ret_element, reterr);
    own->ahead.growth.n_taken++;
    if (++own->n_taken == dataset_of(own)->block)
        advance(own);
    if (subdataset->n_queued <= own->n_queue / 2)
        pl_ahead_call(&own->ahead, 1);
    pl_ahead_unlock(&own->ahead);
    return r;
}

/* Returns 1 and the next coming subdataset, or 0 if there are no more. Call with mu held, which it
 * releases meanwhile. */
static int await_coming(interleave_stage *own, pl_subdataset **ret_subdataset, pl_error *reterr)
{
    while (!own->first) {
        if (pl_pass_is_over(own->base.pass))
            return pl_pass_over(own->base.pass, reterr);
        if (own->opening) {
            pl_ahead_wait(&own->ahead);
            continue;
        }
        int r = own->exhausted ? 0 : open_coming(own, reterr);
        if (r <= 0)
            return r;
    }
    *ret_subdataset = take_coming(own);
    return 1;
}

/* Skips the place, which is empty and stays so. */
static void pass_by(interleave_stage *own)
{
    pl_ahead_lock(&own->ahead);
    advance(own);
    pl_ahead_unlock(&own->ahead);
}

/* Gives an empty place the next subdataset, if there is one. Negative: the element is bad. */
static int fill_place(interleave_stage *own, pl_element *ret_element, pl_error *reterr)
{
    pl_subdataset *subdataset = NULL;
    pl_ahead_lock(&own->ahead);
    int r = await_coming(own, &subdataset, reterr);
    if (r > 0 && subdataset->stage)
        own->places[own->at] = subdataset;
    pl_ahead_unlock(&own->ahead);
    own->input_ended = r == 0;
    if (r <= 0)
        return r;
    if (subdataset->stage) {
        own->n_open++;
        pl_stage_counted(&own->base, &subdataset->input);
        return 0;
    }
    pl_element bad;
    r = pl_subdataset_take(subdataset, &own->base.pass->prefetch_budget, &bad, reterr);
    pl_subdataset_close(&own->base, subdataset);
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
            r = next_of_place(own, ret_element, reterr);
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

static int save_subdatasets(interleave_stage *own, pl_saver *saver, pl_error *reterr)
{
    int r = 0;
    for (int64_t i = 0; r == 0 && i < dataset_of(own)->cycle; i++) {
        r = pl_save_int(saver, own->places[i] != NULL, reterr);
        if (r == 0 && own->places[i])
            r = pl_subdataset_save(own->places[i], saver, reterr);
    }
    if (r == 0)
        r = pl_save_int(saver, own->n_coming, reterr);
    for (pl_subdataset *subdataset = own->first; r == 0 && subdataset;
         subdataset = subdataset->after)
        r = pl_subdataset_save(subdataset, saver, reterr);
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
    return r < 0 ? r : save_subdatasets(own, saver, reterr);
}

static int load_subdatasets(interleave_stage *own, pl_loader *loader, pl_error *reterr)
{
    pl_bound_function *function = dataset_of(own)->function;
    int64_t there = 0, n_coming = 0;
    int r = 0;
    for (int64_t i = 0; r == 0 && i < dataset_of(own)->cycle; i++) {
        r = pl_load_int(loader, 0, 1, &there, reterr);
        if (r == 0 && there)
            r = pl_subdataset_load(&own->base, function, loader, &own->places[i], reterr);
        own->n_open += own->places[i] != NULL;
    }
    if (r == 0)
        r = pl_load_int(loader, 0, INT32_MAX, &n_coming, reterr);
    while (r == 0 && own->n_coming < n_coming) {
        pl_subdataset *subdataset;
        r = pl_subdataset_load(&own->base, function, loader, &subdataset, reterr);
        if (r == 0)
            add_coming(own, subdataset);
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
    return load_subdatasets(own, loader, reterr);
}

/* ---- the classes ---- */

static void describe(const pl_dataset *dataset, FILE *to)
{
    const interleave_dataset *own = (const interleave_dataset *)dataset;
    fprintf(to, "cycle=%" PRId64 ", block=%" PRId64, own->cycle, own->block);
}

#define INTERLEAVE_CLASS                                                                           \
    .dataset_bytes = sizeof(interleave_dataset), .stage_bytes = sizeof(interleave_stage),          \
    .free = free_interleave, .open = open_interleave, .next = next, .close = close_interleave,     \
    .save = save, .restore = restore

static const pl_dataset_class flat_map_class = {.name = "flat_map", INTERLEAVE_CLASS};

static const pl_dataset_class interleave_class = {
    .name = "interleave", INTERLEAVE_CLASS, .describe = describe};

static int make(const pl_dataset_class *class, pl_dataset *input, const pl_function *function,
                pl_dataset **ret_dataset, pl_error *reterr)
{
    pl_bound_function *bound;
    int r = pl_bound_function_new(function, input->spec, input->n_components, class->name, &bound,
                                  reterr);
    if (r < 0)
        return r;
    pl_dataset *dataset = NULL;
    r = pl_subdataset_check(bound, class->name, reterr);
    const pl_spec *of = r < 0 ? NULL : pl_bound_function_spec(bound, 0);
    if (r == 0)
        r = pl_dataset_make(class, input->runtime, &input, 1, of->n_of, &dataset, reterr);
    for (int i = 0; r == 0 && i < of->n_of; i++)
        if (pl_spec_copy(&dataset->spec[i], &of->of[i]) < 0)
            r = pl_error_set(reterr, -ENOMEM, "out of memory for a dataset");
    if (r < 0) {
        pl_bound_function_unref(bound);
        pl_dataset_unref(dataset);
        return r;
    }
    interleave_dataset *own = (interleave_dataset *)dataset;
    own->function = bound;
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
