/* SPDX-License-Identifier: Apache-2.0 */
/* See verify.h. The first thread walks, and then looks as the others do, who wait for files where
 * there are none yet; whoever ends the one that all wait for tells what is known by then. */
#include "verify/verify.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "util/threads.h"
#include "verify/schema.h"
#include "verify/slots.h"

/* The window around a record of CSV doubles until it has all of it, and what it was before is kept
 * for the next file: twice the record's bytes, in each thread. With the rest, below 64 MiB. */
#define CSV_LIMIT_BYTES (16 * PL_MIB)

#define PROGRESS_NS (100 * PL_NS_PER_MS)

typedef struct worker {
    pl_block head;
    pl_verify_room room;
} worker;

typedef struct verify_run {
    const pl_verify_options *options;
    worker *workers;
    int n_workers;
    pthread_mutex_t lock; /* for all below, and while anything is told */
    pthread_cond_t found; /* more files, or there are no more, or nobody wants them */
    pl_verify_slots slots;
    pl_verify_summary summary;
    size_t n_taken; /* files before this one are being looked at */
    size_t n_told;  /* files before this one are told */
    uint64_t next_progress_ns;
    pl_verify_schema *schema; /* of the first TFRecord file */
    const char *schema_path;
    int failure;    /* of telling: nothing is told any more */
    bool ended;     /* by a thread that failed: no more files are taken */
    pl_error error; /* of the first that failed */
} verify_run;

/* ---- telling, with the lock held ---- */

static void count_finding(pl_verify_summary *summary, pl_verify_severity severity)
{
    summary->n_errors += severity == PL_VERIFY_ERROR;
    summary->n_warnings += severity == PL_VERIFY_WARNING;
}

/* Files of examples are one dataset: the first one's features are all others'. */
static void compare_schema(verify_run *run, pl_verify_slot *slot, const char *path,
                           pl_verify_finding *finding)
{
    char text[PL_VERIFY_DIFFERENCE_BYTES];
    pl_verify_schema *schema = PL_TAKE(slot->schema);
    if (!schema)
        return;
    if (!run->schema) {
        run->schema = schema;
        run->schema_path = path;
        return;
    }
    pl_verify_file file = {.path = path, .finding = *finding};
    pl_verify_severity severity = pl_verify_schema_compare_schema(run->schema, schema, text);
    if (severity != PL_VERIFY_GOOD)
        pl_verify_report(&file, severity, 0, "record 0: %s; the first is '%.120s'", text,
                         run->schema_path);
    *finding = file.finding;
    pl_verify_schema_free(schema);
}

static int tell_slot(verify_run *run, size_t i, pl_error *reterr)
{
    pl_verify_slot *slot = pl_verify_slot_at(&run->slots, i);
    const char *path = pl_paths_at(&run->slots.paths, i);
    if (!slot->finding && !slot->schema)
        return 0;
    pl_verify_finding finding = {0};
    if (slot->finding)
        finding = *slot->finding;
    compare_schema(run, slot, path, &finding);
    free(PL_TAKE(slot->finding));
    if (finding.severity == PL_VERIFY_GOOD)
        return 0;
    count_finding(&run->summary, finding.severity);
    const pl_verify_told told = {.path = path, .format = slot->format, .finding = &finding};
    return run->options->tell(run->options->context, &told, reterr);
}

/* All that is done from the first on; with `all`, whatever is done. */
static void tell_done(verify_run *run, bool all)
{
    for (; run->n_told < run->n_taken && run->failure == 0; run->n_told++) {
        if (pl_verify_slot_at(&run->slots, run->n_told)->is_done)
            run->failure = tell_slot(run, run->n_told, &run->error);
        else if (!all)
            break;
    }
}

static void show_progress(verify_run *run)
{
    uint64_t now = run->options->progress ? pl_clock_monotonic_ns() : 0;
    if (now < run->next_progress_ns || !run->options->progress)
        return;
    run->next_progress_ns = now + PROGRESS_NS;
    run->options->progress(run->options->context, &run->summary);
}

/* ---- looking ---- */

static void count_file(pl_verify_summary *summary, const pl_verify_file *file)
{
    summary->n_checked++;
    summary->n_unknown += file->format == PL_VERIFY_UNKNOWN && file->n_head > 0;
    summary->n_of_format[file->format]++;
    summary->n_bytes += file->file_bytes;
    summary->n_elements += file->n_elements;
    summary->total_bytes = pl_add_sat_u64(summary->total_bytes, file->total_bytes);
    summary->element_bytes = pl_max_u64(summary->element_bytes, file->element_bytes);
}

typedef struct looked {
    pl_verify_file file;
    pl_verify_finding *finding; /* a copy of the file's, if it is not good */
    XXH128_hash_t head;
} looked;

/* With the lock held. */
static int keep(verify_run *run, size_t i, const looked *what)
{
    const pl_verify_file *file = &what->file;
    *pl_verify_slot_at(&run->slots, i) = (pl_verify_slot){
        .file_bytes = file->file_bytes,
        .head = what->head,
        .finding = what->finding,
        .schema = file->schema,
        .height = (uint32_t)file->height,
        .width = (uint32_t)file->width,
        .format = (uint8_t)file->format,
        .is_done = true,
    };
    count_file(&run->summary, file);
    if (i == run->n_told)
        tell_done(run, false);
    show_progress(run);
    return run->failure;
}

static int copy_finding(looked *what, pl_error *reterr)
{
    if (what->file.finding.severity == PL_VERIFY_GOOD)
        return 0;
    what->finding = malloc(sizeof *what->finding);
    if (!what->finding)
        return pl_error_set(reterr, -ENOMEM, "no memory for what was found in '%s'",
                            what->file.path);
    *what->finding = what->file.finding;
    return 0;
}

static int look(const verify_run *run, const char *path, worker *w, looked *ret_what,
                pl_error *reterr)
{
    const pl_verify_options *options = run->options;
    *ret_what =
        (looked){.file = {
                     .path = path,
                     .memory = options->memory,
                     .room = &w->room,
                     .stopped = options->stopped,
                     .want_values = options->values,
                     .want_size_only = options->size_only,
                     .limit_bytes = pl_max_u64(CSV_LIMIT_BYTES / (uint64_t)run->n_workers, PL_MIB),
                 }};
    pl_verify_file *file = &ret_what->file;
    int r = pl_verify_go_on(file, reterr);
    if (r == 0)
        r = pl_verify_look(file, options, w->head.data, reterr);
    if (r == 0)
        r = copy_finding(ret_what, reterr);
    if (r < 0) {
        pl_verify_schema_free(file->schema);
        return r;
    }
    if (options->notes)
        ret_what->head =
            XXH3_128bits(w->head.data, pl_min_u64(file->file_bytes, PL_VERIFY_HEAD_BYTES));
    return 0;
}

/* ---- threads ---- */

/* The next file, with the lock held. False: there are no more, or nobody wants them. */
static bool take_file(verify_run *run, size_t *ret_i, const char **ret_path)
{
    while (run->n_taken == run->summary.n_files && !run->summary.all_found && !run->ended)
        pthread_cond_wait(&run->found, &run->lock);
    bool taken = run->n_taken < run->summary.n_files && !run->ended;
    if (taken) {
        *ret_i = run->n_taken++;
        *ret_path = pl_paths_at(&run->slots.paths, *ret_i);
    }
    return taken;
}

static int add_files(verify_run *run, const char *folder, const pl_paths *names, pl_error *reterr)
{
    int r = run->ended ? -ECANCELED : 0; /* the error is the other thread's */
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

/* What became of a file is kept, and the next one taken, in one turn at the lock. */
static int look_at_some(verify_run *run, worker *w, pl_error *reterr)
{
    size_t i;
    const char *path;
    looked what;
    int r = 0;
    pthread_mutex_lock(&run->lock);
    while (r == 0 && take_file(run, &i, &path)) {
        pthread_mutex_unlock(&run->lock);
        r = look(run, path, w, &what, reterr);
        pthread_mutex_lock(&run->lock);
        if (r == 0)
            r = keep(run, i, &what);
    }
    pthread_mutex_unlock(&run->lock);
    return r;
}

static int work(void *context, int64_t part, int number)
{
    verify_run *run = context;
    pl_error error = {0};
    int r = part == 0 && !run->summary.all_found ? walk(run, &error) : 0;
    if (r == 0)
        r = look_at_some(run, &run->workers[number], &error);
    if (r < 0)
        end(run, &error);
    return r;
}

/* ---- before and after ---- */

/* Of a sample, all files are found before the first is looked at. */
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
        r = pl_memory_take(run->options->memory, PL_VERIFY_HEAD_BYTES, "head of a file",
                           &run->workers[i].head, reterr);
    return r;
}

static void free_workers(verify_run *run)
{
    for (int i = 0; i < run->n_workers; i++) {
        worker *w = &run->workers[i];
        pl_memory_give(run->options->memory, &w->head);
        pl_memory_give(run->options->memory, &w->room.head);
        pl_memory_give(run->options->memory, &w->room.pixels);
        pl_memory_give(run->options->memory, &w->room.bytes);
        if (w->room.folder.fd > 0)
            close(w->room.folder.fd);
    }
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

/* What was found is told also where looking ended early, with `r`; an interruption is no failure.
 */
static int tell_all(verify_run *run, int r, pl_error *reterr)
{
    run->summary.interrupted = r == -ECANCELED;
    r = r == -ECANCELED ? 0 : r;
    tell_done(run, true);
    if (r < 0 || run->failure == 0)
        return r;
    *reterr = run->error;
    return run->failure;
}

int pl_verify_run(const pl_verify_options *options, pl_verify_summary *ret_summary,
                  pl_error *reterr)
{
    verify_run run = {
        .options = options, .lock = PTHREAD_MUTEX_INITIALIZER, .found = PTHREAD_COND_INITIALIZER};
    pl_verify_slots_init(&run.slots, options->memory);
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
    pl_verify_schema_free(run.schema);
    pl_verify_slots_done(&run.slots);
    pthread_mutex_destroy(&run.lock);
    pthread_cond_destroy(&run.found);
    return r;
}
