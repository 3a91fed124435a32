/* SPDX-License-Identifier: Apache-2.0 */
/* See verify.h. The first thread walks, and then checks files like the others, which wait when
 * there are no files yet. A thread takes files in a turn with the lock held, checks them without
 * it, and hands over the results in the next turn, where it also reports the findings known by
 * then. */
#include "verify/verify.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "util/threads.h"
#include "verify/schema.h"
#include "verify/tell.h"

/* The window around a CSV record doubles until it holds the whole record, and the old window is
 * kept for the next file: twice the record's bytes, in each thread. With the rest, below 64 MiB. */
#define CSV_LIMIT_BYTES (16 * PL_MIB)

#define PROGRESS_NS (100 * PL_NS_PER_MS)

/* A thread that waits for files is woken when there are MOST_AT_ONCE of them, because waking costs
 * as much as checking several small ones. Otherwise it looks by itself from time to time, because a
 * folder may take long to read, and the files before it long to check. */
#define WAIT_NS (5 * PL_NS_PER_MS)

/* A thread takes this many files in one turn if those of its last turn were as small as this on
 * average: with a turn for each file, two threads lose a seventh of their time. Larger ones are
 * taken one by one, and reported as soon as they are done. */
enum { MOST_AT_ONCE = 32, SMALL_BYTES = 16 * 1024 };

/* Neither moves while more files are found. */
typedef struct taken_file {
    const char *path;
    pl_verify_slot *slot;
} taken_file;

typedef struct worker {
    pl_verify_room room;
    taken_file taken[MOST_AT_ONCE];
    size_t n_taken;
    pl_verify_summary done; /* counts for these files: n_checked and so on */
} worker;

typedef struct verify_run {
    const pl_verify_options *options;
    worker *workers;
    int n_workers;
    pthread_mutex_t lock; /* held for all below, and during any report */
    pthread_cond_t found; /* many files, or no more files, or the check must end */
    pl_verify_slots slots;
    pl_verify_summary summary;
    size_t n_taken; /* files before this one are taken */
    pl_verify_teller teller;
    uint64_t next_progress_ns;
    bool ended;     /* set by a thread that failed: no more files are taken */
    pl_error error; /* from the first thread that failed */
} verify_run;

/* ---- checking, without the lock ---- */

static void count_file(pl_verify_summary *done, const pl_verify_file *file)
{
    done->n_checked++;
    done->n_unknown += file->format == PL_VERIFY_UNKNOWN && file->n_head > 0;
    done->n_unread += file->format == PL_VERIFY_UNKNOWN && file->n_head == 0;
    done->n_of_format[file->format]++;
    done->n_bytes += file->file_bytes;
    done->n_elements += file->n_elements;
    done->total_bytes = pl_add_sat_u64(done->total_bytes, file->total_bytes);
    done->element_bytes = pl_max_u64(done->element_bytes, file->element_bytes);
}

static int keep_finding(const pl_verify_file *file, pl_verify_slot *slot, pl_error *reterr)
{
    if (file->finding.severity == PL_VERIFY_GOOD)
        return 0;
    slot->finding = malloc(sizeof *slot->finding);
    if (!slot->finding)
        return pl_error_set(reterr, -ENOMEM, "no memory for what was found in '%s'", file->path);
    *slot->finding = file->finding;
    return 0;
}

/* The slot belongs to this thread until it is handed over. */
static int keep(const pl_verify_file *file, pl_verify_slot *slot, bool notes, pl_error *reterr)
{
    int r = keep_finding(file, slot, reterr);
    if (r < 0)
        return r;
    slot->file_bytes = file->file_bytes;
    slot->schema = file->schema;
    slot->height = (uint32_t)file->height;
    slot->width = (uint32_t)file->width;
    slot->channels = (uint8_t)file->channels;
    slot->format = (uint8_t)file->format;
    if (notes)
        slot->head =
            XXH3_128bits(file->room->head.data, pl_min_u64(file->file_bytes, PL_VERIFY_HEAD_BYTES));
    return 0;
}

static int look(const verify_run *run, worker *w, const taken_file *taken, pl_error *reterr)
{
    const pl_verify_options *options = run->options;
    pl_verify_file file = {
        .path = taken->path,
        .memory = options->memory,
        .room = &w->room,
        .stopped = options->stopped,
        .want_values = options->values,
        .want_size_only = options->size_only,
        .limit_bytes = pl_max_u64(CSV_LIMIT_BYTES / (uint64_t)run->n_workers, PL_MIB),
    };
    int r = pl_verify_go_on(&file, reterr);
    if (r == 0)
        r = pl_verify_look(&file, options, reterr);
    if (r == 0)
        r = keep(&file, taken->slot, options->notes, reterr);
    if (r == 0)
        count_file(&w->done, &file);
    else
        pl_verify_schema_free(file.schema);
    return r;
}

/* ---- threads ---- */

/* Handing over, reporting and taking files, with the lock held. */

static void show_progress(verify_run *run)
{
    uint64_t now = run->options->progress ? pl_clock_monotonic_ns() : 0;
    if (now < run->next_progress_ns || !run->options->progress)
        return;
    run->next_progress_ns = now + PROGRESS_NS;
    run->options->progress(run->options->context, &run->summary);
}

/* Publishes the results of a thread. */
static int hand_over(verify_run *run, worker *w, pl_error *reterr)
{
    pl_verify_summary *all = &run->summary;
    const pl_verify_summary *done = &w->done;
    all->n_checked += done->n_checked;
    all->n_unknown += done->n_unknown;
    all->n_unread += done->n_unread;
    all->n_bytes += done->n_bytes;
    all->n_elements += done->n_elements;
    all->total_bytes = pl_add_sat_u64(all->total_bytes, done->total_bytes);
    all->element_bytes = pl_max_u64(all->element_bytes, done->element_bytes);
    for (int i = 0; i < PL_VERIFY_N_FORMATS; i++)
        all->n_of_format[i] += done->n_of_format[i];
    for (size_t i = 0; i < done->n_checked; i++)
        w->taken[i].slot->is_done = true;
    int r = pl_verify_tell(&run->teller, run->n_taken, false, reterr);
    show_progress(run);
    return r;
}

/* Leaves most of the remaining files to the others: the last ones are taken one by one, so that no
 * thread has many of them while the others have nothing to do. */
static size_t count_to_take(const verify_run *run, const worker *w)
{
    size_t n_left = run->summary.n_files - run->n_taken;
    size_t n_each = n_left / (4 * (size_t)run->n_workers);
    bool small = w->n_taken > 0 && w->done.n_bytes <= w->n_taken * SMALL_BYTES;
    if (!small || n_each == 0)
        return pl_min_u64(n_left, 1);
    return pl_min_u64(n_each, MOST_AT_ONCE);
}

static void wait_for_files(verify_run *run)
{
    uint64_t end_ns = pl_clock_monotonic_ns() + WAIT_NS;
    const struct timespec until = {.tv_sec = (time_t)(end_ns / PL_NS_PER_SEC),
                                   .tv_nsec = (long)(end_ns % PL_NS_PER_SEC)};
    pthread_cond_clockwait(&run->found, &run->lock, CLOCK_MONOTONIC, &until);
}

/* Takes the next files. False: there are no more, or the check must end. */
static bool take_files(verify_run *run, worker *w)
{
    while (run->n_taken == run->summary.n_files && !run->summary.all_found && !run->ended)
        wait_for_files(run);
    w->n_taken = run->ended ? 0 : count_to_take(run, w);
    w->done = (pl_verify_summary){0};
    for (size_t i = 0; i < w->n_taken; i++, run->n_taken++)
        w->taken[i] = (taken_file){
            .path = pl_paths_at(&run->slots.paths, run->n_taken),
            .slot = pl_verify_slot_at(&run->slots, run->n_taken),
        };
    return w->n_taken > 0;
}

static int look_at_taken(verify_run *run, worker *w, pl_error *reterr)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < w->n_taken; i++)
        r = look(run, w, &w->taken[i], reterr);
    return r;
}

static int add_files(verify_run *run, const char *folder, const pl_paths *names, pl_error *reterr)
{
    int r = run->ended ? -ECANCELED : 0; /* the other thread has the error */
    for (size_t i = 0; r == 0 && i < names->n; i++)
        r = pl_paths_add_below(&run->slots.paths, folder, pl_paths_at(names, i), reterr);
    if (r == 0 && run->options->n_sample == 0)
        r = pl_verify_slots_make(&run->slots, reterr);
    if (r == 0)
        run->summary.n_files = run->slots.paths.n;
    return r;
}

static int take_names(void *context, const char *folder, const pl_paths *names, pl_error *reterr)
{
    verify_run *run = context;
    if (atomic_load(run->options->stopped))
        return pl_error_set(reterr, -ECANCELED, "interrupted within '%s'", folder);
    pthread_mutex_lock(&run->lock);
    int r = add_files(run, folder, names, reterr);
    if (run->summary.n_files - run->n_taken >= MOST_AT_ONCE)
        pthread_cond_broadcast(&run->found);
    pthread_mutex_unlock(&run->lock);
    return r;
}

static int walk(verify_run *run, pl_error *reterr)
{
    const pl_verify_options *options = run->options;
    int r = pl_verify_walk(options->roots, options->n_roots, options->skip, options->memory,
                           take_names, run, reterr);
    pthread_mutex_lock(&run->lock);
    pl_paths_close(&run->slots.paths);
    run->summary.all_found = r == 0;
    pthread_cond_broadcast(&run->found);
    pthread_mutex_unlock(&run->lock);
    return r;
}

static void end(verify_run *run, const pl_error *error)
{
    pthread_mutex_lock(&run->lock);
    if (run->error.code == 0)
        run->error = *error;
    run->ended = true;
    pthread_cond_broadcast(&run->found);
    pthread_mutex_unlock(&run->lock);
}

static int look_at_some(verify_run *run, worker *w, pl_error *reterr)
{
    int r = 0;
    pthread_mutex_lock(&run->lock);
    while (r == 0 && take_files(run, w)) {
        pthread_mutex_unlock(&run->lock);
        r = look_at_taken(run, w, reterr);
        pthread_mutex_lock(&run->lock);
        int told = hand_over(run, w, r < 0 ? NULL : reterr);
        r = r < 0 ? r : told;
    }
    pthread_mutex_unlock(&run->lock);
    return r;
}

/* Threads that share a table of descriptors take turns at it in the kernel, whenever one opens or
 * closes a file: a sixth of the time for small ones. So each thread started here, unlike the
 * caller's, gets its own table, which begins as a copy. A thread closes all that it opens from here
 * on. Where a sandbox forbids this, the threads go on sharing one table, which also works. */
static void part_descriptors(int number)
{
#if defined(__SANITIZE_THREAD__)
    number = 0; /* TSan mixes up descriptors with the same number in different threads */
#endif
    if (number > 0)
        (void)unshare(CLONE_FILES);
}

static int work(void *context, int64_t part, int number)
{
    verify_run *run = context;
    worker *w = &run->workers[number];
    pl_error error = {0};
    part_descriptors(number);
    int r = part == 0 && !run->summary.all_found ? walk(run, &error) : 0;
    if (r == 0)
        r = look_at_some(run, w, &error);
    pl_verify_leave_folder(&w->room.folder);
    if (r < 0)
        end(run, &error);
    return r;
}

/* ---- before and after ---- */

/* For a sample, finds all files before the first is checked. */
static int choose_sample(verify_run *run, pl_error *reterr)
{
    int r = walk(run, reterr);
    if (r < 0)
        return r;
    pl_paths_thin(&run->slots.paths, run->options->n_sample);
    run->summary.n_files = run->slots.paths.n;
    return pl_verify_slots_make(&run->slots, reterr);
}

static int make_workers(verify_run *run, int n, pl_error *reterr)
{
    run->workers = calloc((size_t)n, sizeof *run->workers);
    if (!run->workers)
        return pl_error_set(reterr, -ENOMEM, "no memory for %d threads", n);
    run->n_workers = n;
    int r = 0;
    for (int i = 0; r == 0 && i < n; i++)
        r = pl_verify_room_init(&run->workers[i].room, run->options->memory, reterr);
    return r;
}

static void free_workers(verify_run *run)
{
    for (int i = 0; i < run->n_workers; i++)
        pl_verify_room_done(&run->workers[i].room, run->options->memory);
    free(PL_TAKE(run->workers));
    run->n_workers = 0;
}

static int look_at_all(verify_run *run, pl_error *reterr)
{
    pl_threads *threads = NULL;
    int r = pl_threads_new(run->options->n_jobs, &threads, reterr);
    if (r == 0)
        r = make_workers(run, pl_threads_count(threads), reterr);
    if (r == 0 && pl_threads_run(threads, run->n_workers, work, run) < 0) {
        *reterr = run->error;
        r = run->error.code;
    }
    pl_threads_free(threads);
    free_workers(run);
    return r;
}

/* Reports the findings even if the check ended early, with `r`; an interruption is not a
 * failure. */
static int tell_all(verify_run *run, int r, pl_error *reterr)
{
    run->summary.interrupted = r == -ECANCELED;
    bool failed = r < 0 && r != -ECANCELED;
    int told = pl_verify_tell(&run->teller, run->n_taken, true, failed ? NULL : reterr);
    return failed ? r : told;
}

int pl_verify_run(const pl_verify_options *options, pl_verify_summary *ret_summary,
                  pl_error *reterr)
{
    verify_run run = {
        .options = options, .lock = PTHREAD_MUTEX_INITIALIZER, .found = PTHREAD_COND_INITIALIZER};
    pl_verify_slots_init(&run.slots, options->memory);
    run.teller = (pl_verify_teller){&run.slots, options, &run.summary};
    int r = pl_verify_check_roots(options->roots, options->n_roots, reterr);
    if (r == 0 && options->n_sample > 0)
        r = choose_sample(&run, reterr);
    if (r == 0)
        r = look_at_all(&run, reterr);
    r = tell_all(&run, r, reterr);
    if (r == 0 && options->notes && !run.summary.interrupted)
        r = pl_verify_notes(&run.slots, options, &run.summary.n_notes, reterr);
    run.summary.interrupted |= r == 0 && atomic_load(options->stopped);
    *ret_summary = run.summary;
    pl_verify_teller_done(&run.teller);
    pl_verify_slots_done(&run.slots);
    pthread_mutex_destroy(&run.lock);
    pthread_cond_destroy(&run.found);
    return r;
}
