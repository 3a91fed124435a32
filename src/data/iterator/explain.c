/* SPDX-License-Identifier: Apache-2.0 */
/* Reports what the stages of a pass have done, and which one holds up the rest.
 *   own      what a stage itself took: all of its calls by all threads, or, of one that is pulled
 *            by its consumer, the time in next() less its inputs'
 *   share    own, of the time since the first next(), by the number of calls that it makes at once
 *   waiting  for elements that others were making
 * The largest share, or that of the consumer, is what the speed of the pass depends on. Stages that
 * come and go within another (those of flat_map's datasets) are the other's own. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "data/core/quoted.h"
#include "data/iterator/iterator.h"

typedef struct row {
    const pl_dataset *dataset; /* the stage itself may be gone meanwhile */
    int depth;
    uint64_t n_elements, n_bad, bytes, inside_ns, busy_ns, own_ns, waiting_ns, n_held;
    int64_t n_ahead;
    int64_t n_parallel; /* 0: it makes nothing ahead */
    double share;
} row;

typedef struct picture {
    row *rows;
    int n_rows;
    uint64_t wall_ns;
    int n_threads;
    double consumer_share;
    const row *first, *worst; /* of all stages; worst: NULL: the consumer */
} picture;

static double seconds(uint64_t ns)
{
    return (double)ns / (double)PL_NS_PER_SEC;
}

/* ---- looking ---- */

static uint64_t counter(const _Atomic uint64_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

/* With the pass's mu held. */
static void look(const pl_stage *stage, int depth, picture *p)
{
    const pl_profile *profile = &stage->profile;
    row *own = &p->rows[p->n_rows++];
    *own = (row){
        .dataset = stage->dataset,
        .depth = depth,
        .n_elements = counter(&profile->n_elements),
        .n_bad = counter(&profile->n_bad),
        .bytes = counter(&profile->bytes),
        .inside_ns = counter(&profile->inside_ns),
        .busy_ns = counter(&profile->busy_ns),
        .waiting_ns = counter(&profile->waiting_ns),
        .n_held = counter(&profile->n_held),
        .n_ahead = atomic_load_explicit(&profile->n_ahead, memory_order_relaxed),
        .n_parallel = atomic_load_explicit(&profile->n_parallel, memory_order_relaxed),
    };
    uint64_t below_ns = 0;
    for (int i = 0; i < stage->dataset->n_inputs; i++) {
        if (!stage->inputs[i]) /* a cache need not open its */
            continue;
        const row *input = &p->rows[p->n_rows];
        look(stage->inputs[i], depth + 1, p);
        below_ns += input->inside_ns;
    }
    if (own->n_parallel > 0)
        own->own_ns = own->busy_ns;
    else
        own->own_ns = own->inside_ns > below_ns ? own->inside_ns - below_ns : 0;
    int64_t n = own->n_parallel > 1 ? own->n_parallel : 1;
    own->share = p->wall_ns > 0 ? (double)own->own_ns / (double)p->wall_ns / (double)n : 0;
    own->share = own->share < 1 ? own->share : 1; /* clocks are sampled */
}

static int take_picture(pl_iterator *iterator, picture *p)
{
    uint64_t end_ns = iterator->ended_ns ? iterator->ended_ns : pl_clock_monotonic_ns();
    *p = (picture){.wall_ns = iterator->begun_ns ? end_ns - iterator->begun_ns : 0,
                   .n_threads = pl_worker_pool_size(iterator->pass.pool)};
    p->rows = calloc((size_t)iterator->dataset->n_stages, sizeof *p->rows);
    if (!p->rows)
        return -ENOMEM;
    pthread_mutex_lock(&iterator->pass.mu);
    look(iterator->first, 0, p);
    pthread_mutex_unlock(&iterator->pass.mu);
    p->first = &p->rows[0];
    if (p->wall_ns > iterator->inside_ns)
        p->consumer_share = (double)(p->wall_ns - iterator->inside_ns) / (double)p->wall_ns;
    double most = p->consumer_share;
    for (int i = 0; i < p->n_rows; i++)
        if (p->rows[i].share > most) {
            p->worst = &p->rows[i];
            most = p->worst->share;
        }
    return 0;
}

/* ---- words ---- */

static void write_name(const pl_dataset *dataset, FILE *to)
{
    fputs(dataset->class->name, to);
    if (dataset->name)
        fprintf(to, " '%s'", dataset->name);
}

/* Is what it makes taken by a thread of its own already? */
static bool is_beside(const picture *p, const row *r)
{
    for (const row *behind = r; behind-- > p->rows;)
        if (behind->depth < r->depth)
            return behind->n_parallel > 0;
    return false;
}

static const char *advice(const picture *p)
{
    const row *worst = p->worst;
    bool takes_turns = p->first->n_parallel == 0 && p->consumer_share > 0.2;
    if (p->wall_ns == 0)
        return "nothing was asked for yet";
    if (!worst)
        return p->consumer_share < 0.8 && p->first->n_parallel == 0
                   ? "it and the stages take turns: a prefetch at the end lets both work at once"
                   : "the stages are fast enough";
    if (worst->n_parallel > 0 && worst->n_held > 0 && worst->n_parallel < p->n_threads)
        return "the budget keeps it from making more at once: give the pass more memory, or make "
               "its elements smaller";
    if (worst->n_parallel > 0 && worst->n_parallel < p->n_threads)
        return "let it make more calls at once (PL_AUTO)";
    if (worst->n_parallel > 0)
        return "all processors are busy: a cheaper function or a cache behind it would help";
    if (takes_turns)
        return "it and the consumer take turns: a prefetch at the end lets both work at once";
    if (worst->busy_ns > 0)
        return p->n_threads > 1 ? "it makes one call at a time: let it make several (PL_AUTO)"
                                : "a cheaper function or a cache behind it would help";
    if (worst->dataset->n_inputs == 0)
        return "read several files at once with interleave, or put a cache behind it";
    if (is_beside(p, worst))
        return "it works beside the others already: put a cache behind it, or shard its input";
    return "put a prefetch behind it, so that it works beside the others";
}

static void write_sentence(const picture *p, FILE *to)
{
    const row *worst = p->worst;
    if (!worst)
        fprintf(to, "the consumer holds up the rest: %.0f %% of the time is its own",
                p->consumer_share * 100);
    else
        write_name(worst->dataset, to);
    if (worst && worst->n_parallel > 0)
        fprintf(to, " holds up the rest: %.0f %% busy on %" PRId64 " of %d threads",
                worst->share * 100, worst->n_parallel, p->n_threads);
    else if (worst)
        fprintf(to, " holds up the rest: %.0f %% of the time is its own", worst->share * 100);
    fprintf(to, ": %s", advice(p));
}

static void write_row(const row *r, FILE *to)
{
    char *label = NULL;
    size_t n = 0;
    FILE *text = open_memstream(&label, &n);
    if (!text)
        return; /* the caller finds its own text short */
    fprintf(text, "%*s", 2 * r->depth, "");
    write_name(r->dataset, text);
    if (r->dataset->class->describe) {
        fputc(' ', text);
        r->dataset->class->describe(r->dataset, text);
    }
    fclose(text);
    fprintf(to, "%-36s %10" PRIu64 " %5" PRIu64 " %10s %9.3f %9.3f %5.0f %%", label ? label : "",
            r->n_elements, r->n_bad, PL_SIZE(r->bytes), seconds(r->own_ns), seconds(r->waiting_ns),
            r->share * 100);
    if (r->n_parallel > 0)
        fprintf(to, " %8" PRId64 " %6" PRId64, r->n_parallel, r->n_ahead);
    fputc('\n', to);
    free(label);
}

static void write_table(const picture *p, FILE *to)
{
    fprintf(to, "%-36s %10s %5s %10s %9s %9s %7s %8s %6s\n", "stage", "elements", "bad", "bytes",
            "own s", "waiting s", "share", "parallel", "ahead");
    for (int i = 0; i < p->n_rows; i++)
        write_row(&p->rows[i], to);
    fprintf(to, "%.3f s since the first element was asked for, %.0f %% of them the consumer's\n",
            seconds(p->wall_ns), p->consumer_share * 100);
    write_sentence(p, to);
    fputc('\n', to);
}

/* ---- JSON ---- */

static void write_described(const pl_dataset *dataset, FILE *to)
{
    char *text = NULL;
    size_t n = 0;
    FILE *described = open_memstream(&text, &n);
    if (described && dataset->class->describe)
        dataset->class->describe(dataset, described);
    if (described)
        fclose(described);
    pl_quoted_json(text ? text : "", to);
    free(text);
}

static void write_json_row(const row *r, FILE *to)
{
    const pl_dataset *dataset = r->dataset;
    fprintf(to, "{\"class\": \"%s\", \"name\": ", dataset->class->name);
    pl_quoted_json(pl_dataset_name(dataset), to);
    fputs(", \"parameters\": ", to);
    write_described(dataset, to);
    fprintf(to,
            ", \"depth\": %d, \"elements\": %" PRIu64 ", \"bad\": %" PRIu64 ", \"bytes\": %" PRIu64
            ", \"inside_ns\": %" PRIu64 ", \"busy_ns\": %" PRIu64 ", \"own_ns\": %" PRIu64
            ", \"waiting_ns\": %" PRIu64 ", \"share\": %.4f, \"parallel\": %" PRId64
            ", \"ahead\": %" PRId64 ", \"held\": %" PRIu64 "}",
            r->depth, r->n_elements, r->n_bad, r->bytes, r->inside_ns, r->busy_ns, r->own_ns,
            r->waiting_ns, r->share, r->n_parallel, r->n_ahead, r->n_held);
}

static void write_json(const picture *p, FILE *to)
{
    fprintf(to, "{\"wall_ns\": %" PRIu64 ", \"consumer_share\": %.4f, \"threads\": %d, ",
            p->wall_ns, p->consumer_share, p->n_threads);
    fputs("\"stages\": [", to);
    for (int i = 0; i < p->n_rows; i++) {
        fputs(i > 0 ? ", " : "", to);
        write_json_row(&p->rows[i], to);
    }
    fputs("], \"bottleneck\": ", to);
    if (p->worst)
        fprintf(to, "%d", (int)(p->worst - p->rows));
    else
        fputs("null", to);
    fputs(", \"advice\": ", to);
    pl_quoted_json(advice(p), to);
    fputs("}\n", to);
}

int pl_iterator_explain(pl_iterator *iterator, bool as_json, char **ret_text, pl_error *reterr)
{
    PL_NOT_NULL(iterator, reterr);
    PL_NOT_NULL(ret_text, reterr);
    picture p = {0};
    char *text = NULL;
    size_t n = 0;
    FILE *to = take_picture(iterator, &p) == 0 ? open_memstream(&text, &n) : NULL;
    if (to && as_json)
        write_json(&p, to);
    else if (to)
        write_table(&p, to);
    free(p.rows);
    bool whole = to && !ferror(to);
    if (to && fclose(to) != 0)
        whole = false;
    if (!whole) {
        free(text);
        return pl_error_set(reterr, -ENOMEM, "out of memory while explaining a pass");
    }
    *ret_text = text;
    return 0;
}
