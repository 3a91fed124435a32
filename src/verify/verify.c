/* SPDX-License-Identifier: Apache-2.0 */
/* See verify.h. Threads take the next file; whoever ends the one that all wait for tells what is
 * known by then. */
#include "verify/verify.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "util/threads.h"
#include "verify/schema.h"
#include "verify/slots.h"

#define PROGRESS_NS (100 * PL_NS_PER_MS)

typedef struct worker {
    pl_block head;
    pl_verify_room room;
} worker;

typedef struct verify_run {
    const pl_verify_options *options;
    pl_verify_slots slots;
    pl_block slot_block, chosen_block;
    worker *workers;
    int n_workers;
    pthread_mutex_t lock; /* for all below, and while anything is told */
    pl_verify_summary summary;
    size_t n_told; /* files before this one are told */
    uint64_t next_progress_ns;
    pl_verify_schema *schema; /* of the first TFRecord file */
    const char *schema_path;
    atomic_int failure; /* of telling: nothing is told any more */
    pl_error error;     /* of the first that failed */
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
    pl_verify_slot *slot = &run->slots.slots[i];
    const char *path = pl_verify_path_at(&run->slots, i);
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

static void fail(verify_run *run, int r)
{
    if (r < 0)
        atomic_store(&run->failure, r);
}

/* All that is done from the first on; with `all`, whatever is done. */
static void tell_done(verify_run *run, bool all)
{
    for (; run->n_told < run->slots.n && atomic_load(&run->failure) == 0; run->n_told++) {
        if (run->slots.slots[run->n_told].is_done)
            fail(run, tell_slot(run, run->n_told, &run->error));
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
    summary->n_unknown += file->format == PL_VERIFY_UNKNOWN;
    summary->n_of_format[file->format]++;
    summary->n_bytes += file->file_bytes;
    summary->n_elements += file->n_elements;
    summary->total_bytes = pl_add_sat_u64(summary->total_bytes, file->total_bytes);
    summary->element_bytes = pl_max_u64(summary->element_bytes, file->element_bytes);
}

static void keep(verify_run *run, size_t i, const pl_verify_file *file, pl_verify_finding *finding,
                 XXH128_hash_t head)
{
    pthread_mutex_lock(&run->lock);
    run->slots.slots[i] = (pl_verify_slot){
        .file_bytes = file->file_bytes,
        .head = head,
        .finding = finding,
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
    pthread_mutex_unlock(&run->lock);
}

static int look(verify_run *run, size_t i, worker *w, pl_error *reterr)
{
    const pl_verify_options *options = run->options;
    pl_verify_finding *finding = NULL;
    pl_verify_file file = {
        .path = pl_verify_path_at(&run->slots, i),
        .memory = options->memory,
        .room = &w->room,
        .stopped = options->stopped,
        .want_values = options->values,
        .want_size_only = options->size_only,
    };
    int r = pl_verify_go_on(&file, reterr);
    if (r == 0)
        r = pl_verify_look(&file, options, w->head.data, reterr);
    if (r == 0 && file.finding.severity != PL_VERIFY_GOOD) {
        finding = malloc(sizeof *finding);
        if (!finding)
            r = pl_error_set(reterr, -ENOMEM, "no memory for what was found in '%s'", file.path);
        else
            *finding = file.finding;
    }
    if (r < 0) {
        pl_verify_schema_free(file.schema);
        return r;
    }
    uint64_t n_head = pl_min_u64(file.file_bytes, PL_VERIFY_HEAD_BYTES);
    XXH128_hash_t none = {0};
    keep(run, i, &file, finding, options->notes ? XXH3_128bits(w->head.data, n_head) : none);
    return atomic_load(&run->failure);
}

static int look_at_part(void *context, int64_t part, int number)
{
    verify_run *run = context;
    pl_error error = {0};
    int r = look(run, (size_t)part, &run->workers[number], &error);
    if (r < 0 && error.code < 0) {
        pthread_mutex_lock(&run->lock);
        if (run->error.code == 0)
            run->error = error;
        pthread_mutex_unlock(&run->lock);
    }
    return r;
}

/* ---- before and after ---- */

/* So many of the paths, each as likely, in their order: the same ones each time. */
static int choose(verify_run *run, const pl_paths *paths, uint64_t n, pl_error *reterr)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15), left = paths->n;
    int r = pl_memory_take(run->options->memory, n * sizeof(uint32_t), "sample", &run->chosen_block,
                           reterr);
    if (r < 0)
        return r;
    uint32_t *chosen = run->chosen_block.data;
    for (uint32_t i = 0; n > 0; i++, left--) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if ((state >> 33) % left < n) {
            *chosen++ = i;
            n--;
        }
    }
    run->slots.chosen = run->chosen_block.data;
    return 0;
}

static int make_slots(verify_run *run, const pl_paths *paths, pl_error *reterr)
{
    uint64_t n_sample = run->options->n_sample;
    bool sampled = n_sample > 0 && n_sample < paths->n;
    run->slots.paths = paths;
    run->slots.n = run->summary.n_files = sampled ? n_sample : paths->n;
    int r = sampled ? choose(run, paths, n_sample, reterr) : 0;
    uint64_t bytes = run->slots.n * sizeof(pl_verify_slot);
    if (r == 0)
        r = pl_memory_take(run->options->memory, bytes, "files", &run->slot_block, reterr);
    if (r < 0)
        return r;
    run->slots.slots = memset(run->slot_block.data, 0, bytes);
    return 0;
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
    }
    free(PL_TAKE(run->workers));
    run->n_workers = 0;
}

static void finish(verify_run *run)
{
    for (size_t i = 0; run->slots.slots && i < run->slots.n; i++) {
        free(run->slots.slots[i].finding);
        pl_verify_schema_free(run->slots.slots[i].schema);
    }
    pl_verify_schema_free(run->schema);
    pl_memory_give(run->options->memory, &run->slot_block);
    pl_memory_give(run->options->memory, &run->chosen_block);
    pthread_mutex_destroy(&run->lock);
}

static int look_at_all(verify_run *run, pl_error *reterr)
{
    pl_threads *threads = NULL;
    int r = pl_threads_new(run->options->n_jobs, &threads, reterr);
    if (r == 0)
        r = make_workers(run, pl_threads_count(threads), reterr);
    if (r == 0)
        r = pl_threads_run(threads, (int64_t)run->slots.n, look_at_part, run);
    pl_threads_free(threads);
    free_workers(run);
    if (r < 0 && run->error.code < 0) {
        *reterr = run->error;
        run->error = (pl_error){0};
    }
    run->summary.interrupted = r == -ECANCELED;
    r = r == -ECANCELED ? 0 : r;
    tell_done(run, true);
    if (r == 0 && (r = atomic_load(&run->failure)) < 0)
        *reterr = run->error;
    return r;
}

int pl_verify_run(const pl_verify_options *options, pl_verify_summary *ret_summary,
                  pl_error *reterr)
{
    verify_run run = {.options = options, .lock = PTHREAD_MUTEX_INITIALIZER};
    pl_paths paths;
    pl_paths_init(&paths, options->memory);
    int r = pl_verify_walk(options->roots, options->n_roots, options->skip, &paths, reterr);
    if (r == 0)
        r = make_slots(&run, &paths, reterr);
    if (r == 0)
        r = look_at_all(&run, reterr);
    if (r == 0 && options->notes && !run.summary.interrupted)
        r = pl_verify_notes(&run.slots, options, &run.summary.n_notes, reterr);
    *ret_summary = run.summary;
    finish(&run);
    pl_paths_done(&paths);
    return r;
}
