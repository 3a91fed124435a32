/* SPDX-License-Identifier: Apache-2.0 */
/* The document of top.c as tables. */
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "report/printer.h"
#include "report/report.h"

enum { SHOWN_PROCESSES = 16, WIDTH_NAME = 20, MAX_PLACE = 72 };

static void heading(const pl_printer *printer, const char *columns)
{
    fprintf(printer->out, "  %s%s%s\n", printer->color ? "\033[1m" : "", columns,
            printer->color ? "\033[0m" : "");
}

/* Returns the columns that a text takes if each character is one column wide. */
static size_t columns_of(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void print_padded(const pl_printer *printer, const char *text, size_t width)
{
    size_t n = columns_of(text);
    pl_print_clean(printer, text);
    fprintf(printer->out, "%*s", (int)(n < width ? width - n : 0), "");
}

static void print_summary(const pl_printer *printer)
{
    const json_t *memory = json_object_get(printer->report, "memory");
    uint64_t n_refusals = pl_get_u64(memory, "n_refusals");
    fputs("run ", printer->out);
    pl_print_clean(printer, pl_get_text(printer->report, "run"));
    fprintf(printer->out, ": %s of %s in use (peak %s)",
            PL_SIZE(pl_get_u64(memory, "charged_bytes")), PL_SIZE(pl_get_u64(memory, "line_bytes")),
            PL_SIZE(pl_get_u64(memory, "peak_bytes")));
    if (n_refusals > 0)
        fprintf(printer->out, ", %" PRIu64 " refused", n_refusals);
    if (!json_is_true(json_object_get(printer->report, "running")))
        fputs("; it has ended", printer->out);
    putc('\n', printer->out);
}

static void print_processes(const pl_printer *printer)
{
    const json_t *processes = json_object_get(printer->report, "processes");
    size_t n = json_array_size(processes);
    if (n == 0)
        return;
    heading(printer, "process                  pid      in use    resident        peak");
    for (size_t i = 0; i < n && i < SHOWN_PROCESSES; i++) {
        const json_t *process = json_array_get(processes, i);
        fputs("  ", printer->out);
        print_padded(printer, pl_get_text(process, "name"), WIDTH_NAME);
        fprintf(printer->out, " %7" PRIu64 "  %10s  %10s  %10s\n", pl_get_u64(process, "pid"),
                PL_SIZE(pl_get_u64(process, "charged_bytes")),
                PL_SIZE(pl_get_u64(process, "resident_bytes")),
                PL_SIZE(pl_get_u64(process, "peak_bytes")));
    }
    if (n > SHOWN_PROCESSES)
        fprintf(printer->out, "  and %zu more\n", n - SHOWN_PROCESSES);
}

/* Writes "+128.0 MiB", "-2.0 MiB", "0 B"; "-" for a cell that ran only once. */
static void format_growth(const json_t *cell, char text[PL_SIZE_TEXT_BYTES + 1])
{
    json_int_t bytes = json_integer_value(json_object_get(cell, "growth_bytes"));
    if (json_array_size(json_object_get(cell, "held_series")) < 2) {
        strcpy(text, "-");
        return;
    }
    uint64_t size = bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes;
    text[0] = bytes < 0 ? '-' : '+';
    pl_size_format(size, text + (bytes != 0));
}

static void print_cell(const pl_printer *printer, const json_t *cell)
{
    char name[32], growth[PL_SIZE_TEXT_BYTES + 1];
    snprintf(name, sizeof(name), "In [%" PRIu64 "]%s", pl_get_u64(cell, "number"),
             json_is_true(json_object_get(cell, "running")) ? "*" : "");
    format_growth(cell, growth);
    fprintf(printer->out, "  %-9s %4" PRIu64 "  %10s  %10s  %11s  ", name,
            pl_get_u64(cell, "n_runs"), PL_SIZE(pl_get_u64(cell, "held_bytes")),
            PL_SIZE(pl_get_u64(cell, "peak_bytes")), growth);
    pl_print_clean(printer, pl_get_text(cell, "source"));
    putc('\n', printer->out);
}

void pl_print_cells(const pl_printer *printer, const json_t *cells)
{
    size_t n = json_array_size(cells);
    if (n == 0)
        return;
    heading(printer, "cell      runs        held        peak       growth  source");
    for (size_t i = 0; i < n; i++)
        print_cell(printer, json_array_get(cells, i));
}

static size_t widest_place(const json_t *sites)
{
    size_t widest = strlen("held by");
    for (size_t i = 0; i < json_array_size(sites); i++) {
        size_t n = columns_of(pl_get_text(json_array_get(sites, i), "place"));
        widest = n > widest ? n : widest;
    }
    return widest < MAX_PLACE ? widest : MAX_PLACE;
}

static void print_sites(const pl_printer *printer)
{
    const json_t *sites = json_object_get(printer->report, "sites");
    int width = (int)widest_place(sites);
    if (json_array_size(sites) == 0)
        return;
    fprintf(printer->out, "  %s%-*s  %10s  %6s  cell%s\n", printer->color ? "\033[1m" : "", width,
            "held by", "bytes", "count", printer->color ? "\033[0m" : "");
    for (size_t i = 0; i < json_array_size(sites); i++) {
        const json_t *site = json_array_get(sites, i);
        uint64_t cell = pl_get_u64(site, "cell");
        fputs("  ", printer->out);
        print_padded(printer, pl_get_text(site, "place"), (size_t)width);
        fprintf(printer->out, "  %10s  %6" PRIu64, PL_SIZE(pl_get_u64(site, "bytes")),
                pl_get_u64(site, "count"));
        if (cell > 0)
            fprintf(printer->out, "  In [%" PRIu64 "]", cell);
        putc('\n', printer->out);
    }
}

void pl_report_top_text(const json_t *top, FILE *out, unsigned flags)
{
    pl_printer printer = {.out = out, .color = flags & PL_REPORT_COLOR, .report = top};
    print_summary(&printer);
    print_processes(&printer);
    pl_print_cells(&printer, json_object_get(top, "cells"));
    print_sites(&printer);
}
