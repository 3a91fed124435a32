/* SPDX-License-Identifier: Apache-2.0 */
/* The report as text: what both forms share, and the short form for the end of a run. */
#include "report/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "report/place.h"
#include "report/report.h"

enum { SHORT_SITES = 3, SHORT_THREADS = 4 };

const char *pl_get_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

uint64_t pl_get_u64(const json_t *object, const char *key)
{
    json_int_t number = json_integer_value(json_object_get(object, key));
    return number > 0 ? (uint64_t)number : 0;
}

double pl_get_real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* C0 and DEL are single bytes; C1, which some terminals obey as well, is C2 80 to C2 9F. */
void pl_print_clean(const pl_printer *printer, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f)
            c++;
        else if (*c >= 0x20 && *c != 0x7f)
            putc(*c, printer->out);
        else
            putc(' ', printer->out);
    }
}

void pl_print_label(const pl_printer *printer, const char *label)
{
    fprintf(printer->out, "  %s%s:%s%*s", printer->color ? "\033[1m" : "", label,
            printer->color ? "\033[0m" : "", (int)(strlen(label) < 6 ? 6 - strlen(label) : 1), "");
}

static const char *verdict_color(const char *verdict)
{
    if (strcmp(verdict, "finished") == 0 || strcmp(verdict, "running") == 0)
        return "\033[1;32m";
    if (strcmp(verdict, "finished-after-refusals") == 0 || strcmp(verdict, "killed") == 0)
        return "\033[1;33m";
    return "\033[1;31m";
}

/* Colours what stands before the first colon: the verdict in words. */
void pl_print_summary(const pl_printer *printer)
{
    const char *summary = pl_get_text(printer->report, "summary");
    const char *verdict = pl_get_text(printer->report, "verdict");
    char lead[64];
    size_t n = strcspn(summary, ":");
    n = n < sizeof(lead) ? n : 0;
    memcpy(lead, summary, n);
    lead[n] = '\0';
    fputs("plimsoll: ", printer->out);
    if (printer->color)
        fputs(verdict_color(verdict), printer->out);
    pl_print_clean(printer, lead);
    if (printer->color)
        fputs("\033[0m", printer->out);
    pl_print_clean(printer, summary + n);
    putc('\n', printer->out);
}

void pl_print_peak(const pl_printer *printer)
{
    const json_t *memory = json_object_get(printer->report, "memory");
    const char *source = pl_get_text(memory, "true_limit_source");
    uint64_t line_bytes = pl_get_u64(memory, "limit_bytes");
    uint64_t claimed_bytes = pl_get_u64(memory, "peak_charged_bytes");
    uint64_t true_limit_bytes = pl_get_u64(memory, "true_limit_bytes");
    if (claimed_bytes > 0 && line_bytes < true_limit_bytes - true_limit_bytes / 10)
        fprintf(printer->out, "%s claimed of %s, ", PL_SIZE(claimed_bytes), PL_SIZE(line_bytes));
    fprintf(printer->out, "%s resident of %s", PL_SIZE(pl_get_u64(memory, "peak_resident_bytes")),
            PL_SIZE(true_limit_bytes));
    if (source[0] != '\0') {
        fputs(" (", printer->out);
        pl_print_clean(printer, source);
        putc(')', printer->out);
    }
}

void pl_print_python_frame(const pl_printer *printer, const json_t *frame)
{
    const char *function = pl_get_text(frame, "function");
    pl_print_clean(printer, pl_get_text(frame, "file"));
    fprintf(printer->out, ":%" PRIu64, pl_get_u64(frame, "line"));
    if (function[0] != '\0') {
        fputs(" in ", printer->out);
        pl_print_clean(printer, function);
    }
}

void pl_print_native_frame(const pl_printer *printer, const json_t *frame)
{
    const char *module = pl_get_text(frame, "module"), *symbol = pl_get_text(frame, "symbol");
    const char *source = pl_get_text(frame, "source");
    pl_print_clean(printer, module[0] != '\0' ? pl_place_file_name(module) : "?");
    if (symbol[0] != '\0') {
        putc(' ', printer->out);
        pl_print_clean(printer, symbol);
    } else {
        fprintf(printer->out, "+0x%" PRIx64, pl_get_u64(frame, "offset"));
    }
    if (source[0] != '\0') {
        fputs(" (", printer->out);
        pl_print_clean(printer, source);
        putc(')', printer->out);
    }
}

static bool is_one_of(const char *verdict, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(verdict, names[i]) == 0)
            return true;
    return false;
}

static bool is_about_memory(const char *verdict)
{
    static const char *const names[] = {"refused", "leak", "killed-for-memory",
                                        "stopped-for-memory", "finished-after-refusals"};
    return is_one_of(verdict, names, PL_COUNT_OF(names));
}

/* Workers run the same lines: their bytes are added up, and each place is named once. */
static uint64_t sum_of_place(const json_t *sites, size_t first)
{
    const char *place = pl_get_text(json_array_get(sites, first), "place");
    uint64_t bytes = 0;
    for (size_t i = 0; i < json_array_size(sites); i++) {
        const json_t *site = json_array_get(sites, i);
        if (strcmp(pl_get_text(site, "place"), place) != 0)
            continue;
        if (i < first)
            return 0; /* named before */
        bytes = pl_add_sat_u64(bytes, pl_get_u64(site, "bytes"));
    }
    return bytes;
}

static void print_held(const pl_printer *printer)
{
    const json_t *sites = json_object_get(printer->report, "sites");
    int n_printed = 0;
    for (size_t i = 0; i < json_array_size(sites) && n_printed < SHORT_SITES; i++) {
        const char *place = pl_get_text(json_array_get(sites, i), "place");
        uint64_t bytes = sum_of_place(sites, i);
        if (bytes == 0 || place[0] == '\0')
            continue;
        if (n_printed++ == 0)
            pl_print_label(printer, "held");
        else
            fputs(", ", printer->out);
        pl_print_clean(printer, place);
        fprintf(printer->out, " %s", PL_SIZE(bytes));
    }
    if (n_printed > 0)
        putc('\n', printer->out);
}

/* Where a crash happened natively, when the summary names the Python line. */
static void print_native(const pl_printer *printer)
{
    const json_t *native = json_object_get(printer->report, "native");
    if (json_array_size(native) == 0 ||
        json_array_size(json_object_get(printer->report, "python")) == 0)
        return;
    pl_print_label(printer, "in");
    pl_print_native_frame(printer, json_array_get(native, 0));
    putc('\n', printer->out);
}

static void print_waits(const pl_printer *printer)
{
    const json_t *threads = json_object_get(json_object_get(printer->report, "hang"), "threads");
    size_t n = json_array_size(threads);
    for (size_t i = 0; i < n && i < SHORT_THREADS; i++) {
        const json_t *thread = json_array_get(threads, i);
        const json_t *frame = json_array_get(json_object_get(thread, "python"), 0);
        const char *waits_for = pl_get_text(thread, "waits_for");
        pl_print_label(printer, "wait");
        fprintf(printer->out, "thread %" PRIu64 " '", pl_get_u64(thread, "tid"));
        pl_print_clean(printer, pl_get_text(thread, "name"));
        fputs("' for ", printer->out);
        pl_print_clean(printer, waits_for[0] != '\0' ? waits_for : "something unknown");
        if (frame != NULL) {
            fputs(" at ", printer->out);
            pl_print_python_frame(printer, frame);
        }
        putc('\n', printer->out);
    }
    if (n > SHORT_THREADS)
        fprintf(printer->out, "         and %zu threads more\n", n - SHORT_THREADS);
}

static void print_next(const pl_printer *printer)
{
    const json_t *next = json_object_get(printer->report, "next");
    size_t n = json_array_size(next);
    if (n == 0)
        return;
    pl_print_label(printer, "next");
    for (size_t i = 0; i < n && i < 2; i++) {
        const char *text = json_string_value(json_array_get(next, i));
        fputs(i > 0 ? "; " : "", printer->out);
        pl_print_clean(printer, text != NULL ? text : "");
    }
    putc('\n', printer->out);
}

static void print_short(const pl_printer *printer)
{
    const char *verdict = pl_get_text(printer->report, "verdict");
    bool finished = strcmp(verdict, "finished") == 0;
    if (finished && json_object_get(printer->report, "over") == NULL &&
        json_object_get(printer->report, "deaths") == NULL)
        return;
    pl_print_summary(printer);
    if (finished || strcmp(verdict, "failed") == 0)
        return; /* nothing to do, or the program's own affair: one line is enough */
    if (is_about_memory(verdict)) {
        pl_print_label(printer, "peak");
        pl_print_peak(printer);
        putc('\n', printer->out);
        print_held(printer);
    }
    print_native(printer);
    if (strcmp(verdict, "hang") == 0)
        print_waits(printer);
    print_next(printer);
    pl_print_label(printer, "more");
    fputs("plimsoll explain ", printer->out);
    pl_print_clean(printer, pl_get_text(printer->report, "record"));
    putc('\n', printer->out);
}

void pl_report_text(const json_t *report, FILE *out, unsigned flags)
{
    pl_printer printer = {.out = out, .color = flags & PL_REPORT_COLOR, .report = report};
    if (flags & PL_REPORT_FULL)
        pl_print_full(&printer);
    else
        print_short(&printer);
}

bool pl_report_wants_color(FILE *out)
{
    const char *no_color = getenv("NO_COLOR");
    return (no_color == NULL || no_color[0] == '\0') && isatty(fileno(out)) == 1;
}
