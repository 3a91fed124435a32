/* SPDX-License-Identifier: Apache-2.0 */
/* See brief.h. Each line is written to a stream in memory, with the same functions as the full
 * text. */
#include "report/brief.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "report/code_place.h"
#include "report/json.h"
#include "report/printer.h"
#include "report/sites.h"

enum { SHORT_SITES = 3, SHORT_THREADS = 4, SHORT_ADVICE = 2 };

/* Leaves out places that held less than a MENTIONED_SHARE-th of the memory in use. */
enum { MENTIONED_SHARE = 10 };

/* A shorter running time is not mentioned: the cell has only just begun. */
static const double noticeable_s = 1;

typedef struct brief {
    const json_t *report;
    const json_t *notebook; /* NULL: the run is not a notebook's */
    enum pl_verdict_kind verdict;
    json_t *lines;
    pl_json json;
} brief;

typedef void write_line(const pl_printer *printer, const json_t *subject);

/* Adds the text that `write` makes of `subject`, unless it is empty. */
static void add(brief *b, const char *label, write_line *write, const json_t *subject)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (out == NULL) {
        b->json.failed = true;
        return;
    }
    pl_printer printer = {.out = out, .report = b->report, .verdict = b->verdict};
    write(&printer, subject);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        b->json.failed = true;
    } else if (n > 0) {
        json_t *line = json_object();
        pl_json_put(&b->json, line, "label", json_string(label));
        pl_json_put(&b->json, line, "text", pl_json_text(text));
        pl_json_add(&b->json, b->lines, line);
    }
    free(text);
}

static void write_summary(const pl_printer *printer, const json_t *report)
{
    pl_print_clean(printer, pl_get_text(report, "summary"));
}

void pl_brief_cell(const json_t *notebook, char text[PL_BRIEF_CELL_BYTES])
{
    const json_t *cell = json_object_get(notebook, "cell");
    const char *source = pl_get_text(cell, "source");
    uint64_t line = pl_get_u64(cell, "line");
    double running_s = pl_get_real(cell, "running_s");
    text[0] = '\0';
    if (!json_is_object(cell))
        return;
    int n = snprintf(text, PL_BRIEF_CELL_BYTES, "In [%" PRIu64 "]", pl_get_u64(cell, "number"));
    if (line > 0)
        n += snprintf(text + n, (size_t)(PL_BRIEF_CELL_BYTES - n), " line %" PRIu64, line);
    if (source[0] != '\0')
        n += snprintf(text + n, (size_t)(PL_BRIEF_CELL_BYTES - n), "%s: %.200s",
                      line > 0 ? "" : ", which begins", source);
    if (running_s >= noticeable_s && running_s < 1e12)
        snprintf(text + n, (size_t)(PL_BRIEF_CELL_BYTES - n), ", running for %.0f s", running_s);
}

/* Returns the line of the cell that holds most memory, if that is a noticeable part of all. A death
 * by memory leaves no stack, so this is the best answer to where it happened. */
static const json_t *largest_of_cell(const pl_printer *printer, const json_t *cell)
{
    const json_t *sites = json_object_get(printer->report, "sites");
    uint64_t in_use_bytes = pl_get_u64(printer->report, "sites_in_use_bytes");
    if (cell == NULL || json_object_get(cell, "line") != NULL ||
        !pl_verdict_has(printer->verdict, PL_TRAIT_MEMORY))
        return NULL;
    for (size_t i = 0; i < json_array_size(sites); i++) {
        const json_t *site = json_array_get(sites, i), *frame = json_object_get(site, "python");
        if (pl_get_u64(frame, "cell") == pl_get_u64(cell, "number") &&
            pl_get_u64(site, "bytes") >= in_use_bytes / PL_SITES_NOTICEABLE)
            return frame;
    }
    return NULL;
}

static void write_cell(const pl_printer *printer, const json_t *notebook)
{
    char text[PL_BRIEF_CELL_BYTES];
    const json_t *cell = json_object_get(notebook, "cell");
    const json_t *largest = largest_of_cell(printer, cell);
    if (largest != NULL)
        snprintf(text, sizeof(text),
                 "In [%" PRIu64 "] line %" PRIu64 ", which took most of it: %.200s",
                 pl_get_u64(cell, "number"), pl_get_u64(largest, "line"),
                 pl_get_text(largest, "source"));
    else
        pl_brief_cell(notebook, text);
    pl_print_clean(printer, text);
}

static void write_peak(const pl_printer *printer, const json_t *report)
{
    (void)report;
    pl_print_peak(printer);
}

/* Workers run the same lines: their bytes are added up, and each place is named once. */
static uint64_t sum_of_place(const json_t *sites, size_t first, const char *field)
{
    const char *place = pl_get_text(json_array_get(sites, first), "place");
    uint64_t bytes = 0;
    for (size_t i = 0; i < json_array_size(sites); i++) {
        const json_t *site = json_array_get(sites, i);
        if (strcmp(pl_get_text(site, "place"), place) != 0)
            continue;
        if (i < first)
            return 0; /* named before */
        bytes = pl_add_sat_u64(bytes, pl_get_u64(site, field));
    }
    return bytes;
}

/* Says when the memory was held, unless the summary above already does. */
static const char *moment_of_holders(const pl_printer *printer)
{
    switch (pl_sites_moment_parse(pl_get_text(printer->report, "sites_at"))) {
    case PL_SITES_AT_REFUSAL:
        return printer->verdict == PL_VERDICT_FINISHED_AFTER_REFUSALS ? "at the last refusal: "
                                                                      : "";
    case PL_SITES_AT_PEAK:
        return "at the peak: ";
    case PL_SITES_NOW:
    case PL_SITES_AT_END:
        break;
    }
    return "";
}

static void write_held(const pl_printer *printer, const json_t *sites)
{
    uint64_t in_use_bytes = pl_get_u64(printer->report, "sites_in_use_bytes");
    int n_written = 0;
    for (size_t i = 0; i < json_array_size(sites) && n_written < SHORT_SITES; i++) {
        const char *place = pl_get_text(json_array_get(sites, i), "place");
        uint64_t bytes = sum_of_place(sites, i, "bytes");
        uint64_t untouched_bytes = sum_of_place(sites, i, "untouched_bytes");
        if (bytes == 0 || place[0] == '\0' || bytes < in_use_bytes / MENTIONED_SHARE)
            continue;
        fputs(n_written++ > 0 ? ", " : moment_of_holders(printer), printer->out);
        pl_print_clean(printer, place);
        fprintf(printer->out, " %s", PL_SIZE(bytes));
        if (untouched_bytes >= bytes / MENTIONED_SHARE)
            fprintf(printer->out, " (%s reserved, untouched)", PL_SIZE(untouched_bytes));
    }
}

static void write_thread(const pl_printer *printer, const json_t *thread)
{
    const json_t *frame = json_array_get(json_object_get(thread, "python"), 0);
    const char *waits_for = pl_get_text(thread, "waits_for");
    fprintf(printer->out, "thread %" PRIu64 " '", pl_get_u64(thread, "tid"));
    pl_print_clean(printer, pl_get_text(thread, "name"));
    fputs("' for ", printer->out);
    pl_print_clean(printer, waits_for[0] != '\0' ? waits_for : "something unknown");
    if (frame != NULL) {
        fputs(" at ", printer->out);
        pl_print_python_frame(printer, frame);
    }
}

static void write_more_threads(const pl_printer *printer, const json_t *threads)
{
    fprintf(printer->out, "and %zu more threads", json_array_size(threads) - SHORT_THREADS);
}

static void write_next(const pl_printer *printer, const json_t *next)
{
    for (size_t i = 0; i < json_array_size(next) && i < SHORT_ADVICE; i++) {
        const char *text = json_string_value(json_array_get(next, i));
        fputs(i > 0 ? "; " : "", printer->out);
        pl_print_clean(printer, text != NULL ? text : "");
    }
}

/* In a notebook the command is given as a magic. */
static void write_more(const pl_printer *printer, const json_t *notebook)
{
    fprintf(printer->out, "%splimsoll explain ", notebook != NULL ? "%" : "");
    pl_print_clean(printer, pl_get_text(printer->report, "record"));
}

static void add_threads(brief *b)
{
    const json_t *threads = json_object_get(json_object_get(b->report, "hang"), "threads");
    size_t n = json_array_size(threads);
    for (size_t i = 0; i < n && i < SHORT_THREADS; i++)
        add(b, "wait", write_thread, json_array_get(threads, i));
    if (n > SHORT_THREADS)
        add(b, "wait", write_more_threads, threads);
}

/* The innermost frames of an abort are those of abort() itself: show the first that is not. */
static const json_t *pick_native(const json_t *report, const json_t *native)
{
    const char *signal = pl_get_text(json_object_get(report, "crash"), "signal");
    for (size_t i = 0; strcmp(signal, "SIGABRT") == 0 && i < json_array_size(native); i++)
        if (!pl_code_place_is_plumbing(pl_get_text(json_array_get(native, i), "module")))
            return json_array_get(native, i);
    return json_array_get(native, 0);
}

/* Says where a crash happened natively, when the summary names the Python line. */
static void add_native(brief *b)
{
    const json_t *native = json_object_get(b->report, "native");
    if (json_array_size(native) > 0 && json_array_size(json_object_get(b->report, "python")) > 0)
        add(b, "in", pl_print_native_frame, pick_native(b->report, native));
}

static void add_lines(brief *b)
{
    bool about_memory = pl_verdict_has(b->verdict, PL_TRAIT_MEMORY);
    add(b, "", write_summary, b->report);
    bool by_itself = b->verdict == PL_VERDICT_FINISHED || b->verdict == PL_VERDICT_FAILED;
    if (by_itself && b->notebook == NULL) {
        /* The program ended itself: one line is enough, unless there is something to do. */
        if (json_array_size(json_object_get(b->report, "next")) > 0)
            add(b, "next", write_next, json_object_get(b->report, "next"));
        return;
    }
    add(b, "cell", write_cell, b->notebook);
    if (about_memory || b->notebook != NULL)
        add(b, "peak", write_peak, b->report);
    if (about_memory)
        add(b, "held", write_held, json_object_get(b->report, "sites"));
    add_native(b);
    if (b->verdict == PL_VERDICT_HANG)
        add_threads(b);
    add(b, "next", write_next, json_object_get(b->report, "next"));
    add(b, "more", write_more, b->notebook);
}

static enum pl_news judge_news(const brief *b)
{
    pl_news_facts facts = {
        .in_notebook = b->notebook != NULL,
        .cell_was_running = json_object_get(b->notebook, "cell") != NULL,
        .cells_have_run = json_array_size(json_object_get(b->report, "cells")) > 0,
        .is_incomplete_success = json_array_size(json_object_get(b->report, "next")) > 0 ||
                                 json_object_get(b->report, "over") != NULL ||
                                 json_object_get(b->report, "deaths") != NULL,
    };
    return pl_news_judge(b->verdict, &facts);
}

int pl_brief_put(json_t *report, enum pl_verdict_kind verdict)
{
    brief b = {
        .report = report, .notebook = json_object_get(report, "notebook"), .verdict = verdict};
    enum pl_news news = judge_news(&b);
    if (news != PL_NEWS_FOR_NOBODY) {
        b.lines = json_array();
        add_lines(&b);
        pl_json_put(&b.json, report, "brief", b.lines);
    }
    pl_json_put(&b.json, report, "news_for", json_string(pl_news_name(news)));
    return b.json.failed ? -ENOMEM : 0;
}
