/* SPDX-License-Identifier: Apache-2.0 */
/* The full text, for `plimsoll explain`: every section of the report that is not empty. */
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "report/brief.h"
#include "report/printer.h"
#include "report/sites.h"

enum { SHOWN_REFUSALS = 8, SHOWN_PROCESSES = 16, SHOWN_MARKS = 8, PLOT_COLUMNS = 60 };

static void heading(const pl_printer *printer, const char *title)
{
    fprintf(printer->out, "\n%s%s%s\n", printer->color ? "\033[1m" : "", title,
            printer->color ? "\033[0m" : "");
}

static void row(const pl_printer *printer, const char *label, const char *text)
{
    if (text[0] == '\0')
        return;
    fprintf(printer->out, "  %-10s ", label);
    pl_print_clean(printer, text);
    putc('\n', printer->out);
}

static void row_bytes(const pl_printer *printer, const char *label, uint64_t bytes)
{
    if (bytes > 0)
        row(printer, label, PL_SIZE(bytes));
}

static void print_strings(const pl_printer *printer, const char *title, const char *key)
{
    const json_t *lines = json_object_get(printer->report, key);
    if (json_array_size(lines) == 0)
        return;
    heading(printer, title);
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const char *text = json_string_value(json_array_get(lines, i));
        fputs("  - ", printer->out);
        pl_print_clean(printer, text != NULL ? text : "");
        putc('\n', printer->out);
    }
}

static void print_command(const pl_printer *printer)
{
    const json_t *command = json_object_get(printer->report, "command");
    fprintf(printer->out, "  %-10s", "command");
    for (size_t i = 0; i < json_array_size(command); i++) {
        const char *argument = json_string_value(json_array_get(command, i));
        putc(' ', printer->out);
        pl_print_clean(printer, argument != NULL ? argument : "?");
    }
    putc('\n', printer->out);
}

static void print_run(const pl_printer *printer)
{
    const json_t *end = json_object_get(printer->report, "exit");
    heading(printer, "run");
    row(printer, "id", pl_get_text(printer->report, "run"));
    print_command(printer);
    row(printer, "in", pl_get_text(printer->report, "directory"));
    row(printer, "started", pl_get_text(printer->report, "started"));
    row(printer, "ended", pl_get_text(printer->report, "ended"));
    fprintf(printer->out, "  %-10s %.1f s\n", "took", pl_get_real(printer->report, "duration_s"));
    if (json_is_object(end)) {
        const char *signal = pl_get_text(end, "signal");
        fprintf(printer->out, "  %-10s %" PRIu64 "%s", "status", pl_get_u64(end, "status"),
                signal[0] != '\0' ? ", by " : "");
        pl_print_clean(printer, signal);
        putc('\n', printer->out);
    }
}

static uint64_t point_bytes(const json_t *timeline, size_t i)
{
    json_int_t bytes = json_integer_value(json_array_get(json_array_get(timeline, i), 2));
    return bytes > 0 ? (uint64_t)bytes : 0;
}

static double point_s(const json_t *timeline, size_t i)
{
    return json_number_value(json_array_get(json_array_get(timeline, i), 0));
}

/* Fills each column with the highest point of its time span, or the point before when none falls
 * into it. Returns the highest of all. */
static uint64_t fill_columns(const json_t *timeline, double whole_s, uint64_t columns[PLOT_COLUMNS])
{
    size_t n = json_array_size(timeline), next = 0;
    uint64_t before = point_bytes(timeline, 0), most = 0;
    for (size_t i = 0; i < PLOT_COLUMNS; i++) {
        double end_s = whole_s * (double)(i + 1) / PLOT_COLUMNS;
        bool any = false;
        columns[i] = before;
        for (; next < n && (point_s(timeline, next) <= end_s || i + 1 == PLOT_COLUMNS); next++) {
            before = point_bytes(timeline, next);
            columns[i] = any ? pl_max_u64(columns[i], before) : before;
            any = true;
        }
        most = pl_max_u64(most, columns[i]);
    }
    return most;
}

enum { AXIS_LABEL_BYTES = 32 };

/* Writes a time in the unit that suits the whole axis: "0 s", "7.5 min", "3.0 h". */
static void write_time(double at_s, double whole_s, char text[AXIS_LABEL_BYTES])
{
    double unit_s = whole_s >= 7200 ? 3600 : whole_s >= 120 ? 60 : 1;
    const char *unit = whole_s >= 7200 ? "h" : whole_s >= 120 ? "min" : "s";
    snprintf(text, AXIS_LABEL_BYTES, "%.*f %s", at_s > 0, at_s / unit_s, unit);
}

static void print_axis(const pl_printer *printer, double whole_s)
{
    char middle[AXIS_LABEL_BYTES], end[AXIS_LABEL_BYTES], begin[AXIS_LABEL_BYTES];
    write_time(0, whole_s, begin);
    write_time(whole_s / 2, whole_s, middle);
    write_time(whole_s, whole_s, end);
    fprintf(printer->out, "  %-10s %-*s%-*s%*s\n", "", PLOT_COLUMNS / 2 + 1, begin,
            PLOT_COLUMNS / 2 + 1 - (int)strlen(end), middle, (int)strlen(end), end);
}

/* Draws each height as a character, which any terminal or log can show. The scale ends at the line,
 * unless the run stayed so far below it that nothing would be seen. */
static void print_plot(const pl_printer *printer, uint64_t limit_bytes)
{
    static const char levels[] = " .:-=+*#%@";
    const size_t top = sizeof(levels) - 2;
    const json_t *timeline = json_object_get(printer->report, "timeline");
    size_t n = json_array_size(timeline);
    double whole_s = n > 0 ? point_s(timeline, n - 1) : 0;
    uint64_t columns[PLOT_COLUMNS];
    if (n < 2 || !(whole_s > 0))
        return;
    uint64_t peak_bytes = fill_columns(timeline, whole_s, columns);
    bool to_line = peak_bytes >= limit_bytes / 4;
    uint64_t whole_bytes = to_line ? limit_bytes : peak_bytes;
    if (whole_bytes == 0)
        return;
    fprintf(printer->out, "  %-10s |", "over time");
    for (size_t i = 0; i < PLOT_COLUMNS; i++) {
        double level = (double)columns[i] / (double)whole_bytes * (double)top;
        putc(levels[level < (double)top ? (size_t)level : top], printer->out);
    }
    fprintf(printer->out, "| '@' is the %s\n", to_line ? "line" : "peak");
    print_axis(printer, whole_s);
}

static void print_memory(const pl_printer *printer)
{
    const json_t *memory = json_object_get(printer->report, "memory");
    uint64_t limit_bytes = pl_get_u64(memory, "limit_bytes");
    heading(printer, "memory");
    row_bytes(printer, "line", limit_bytes);
    row_bytes(printer, "reserve", pl_get_u64(memory, "reserve_bytes"));
    fprintf(printer->out, "  %-10s ", "peak");
    pl_print_peak(printer);
    putc('\n', printer->out);
    if (pl_get_u64(memory, "n_refusals") > 0)
        fprintf(printer->out, "  %-10s %" PRIu64 "\n", "refusals",
                pl_get_u64(memory, "n_refusals"));
    print_plot(printer, limit_bytes);
}

static const char *title_of_sites(enum pl_sites_moment moment)
{
    static const char *const titles[] = {
        [PL_SITES_NOW] = "what holds the memory now",
        [PL_SITES_AT_REFUSAL] = "what held the memory at the last refusal",
        [PL_SITES_AT_PEAK] = "what held the memory at the peak",
        [PL_SITES_AT_END] = "what held the memory at the end",
    };
    return titles[moment];
}

static void print_sites(const pl_printer *printer)
{
    const json_t *sites = json_object_get(printer->report, "sites");
    if (json_array_size(sites) == 0)
        return;
    const char *at = pl_get_text(printer->report, "sites_at");
    heading(printer, title_of_sites(pl_sites_moment_parse(at)));
    row_bytes(printer, "in use", pl_get_u64(printer->report, "sites_in_use_bytes"));
    for (size_t i = 0; i < json_array_size(sites); i++) {
        const json_t *site = json_array_get(sites, i);
        fprintf(printer->out, "  %10s  ", PL_SIZE(pl_get_u64(site, "bytes")));
        pl_print_clean(printer, pl_get_text(site, "place"));
        fprintf(printer->out, " (pid %" PRIu64, pl_get_u64(site, "pid"));
        if (json_object_get(site, "untouched_bytes") != NULL)
            fprintf(printer->out, "; %s reserved, untouched",
                    PL_SIZE(pl_get_u64(site, "untouched_bytes")));
        fputs(")\n", printer->out);
    }
}

static void print_leak(const pl_printer *printer)
{
    const json_t *leak = json_object_get(printer->report, "leak");
    if (!json_is_object(leak))
        return;
    heading(printer, "rise");
    fprintf(printer->out, "  %s each second for %.1f s: from %s to %s\n",
            PL_SIZE(pl_get_u64(leak, "bytes_per_s")), pl_get_real(leak, "over_s"),
            PL_SIZE(pl_get_u64(leak, "from_bytes")), PL_SIZE(pl_get_u64(leak, "to_bytes")));
}

static void print_refusals(const pl_printer *printer)
{
    const json_t *refusals = json_object_get(printer->report, "refusals");
    size_t n = json_array_size(refusals);
    if (n == 0)
        return;
    heading(printer, "last refusals");
    for (size_t i = n > SHOWN_REFUSALS ? n - SHOWN_REFUSALS : 0; i < n; i++) {
        const json_t *refusal = json_array_get(refusals, i);
        bool large = strcmp(pl_get_text(refusal, "kind"), "large") == 0;
        fprintf(printer->out, "  %8.1f s  pid %" PRIu64 "  %s", pl_get_real(refusal, "time_s"),
                pl_get_u64(refusal, "pid"),
                large ? PL_SIZE(pl_get_u64(refusal, "bytes")) : "MemoryError");
        fprintf(printer->out, ", %s in use", PL_SIZE(pl_get_u64(refusal, "charged_bytes")));
        if (json_object_get(refusal, "python") != NULL) {
            fputs("  ", printer->out);
            pl_print_python_frame(printer, json_object_get(refusal, "python"));
        }
        putc('\n', printer->out);
    }
}

typedef void print_frame(const pl_printer *printer, const json_t *frame);

/* A frame in a notebook's cell is followed by the source of its line, because there is no file to
 * look it up in. */
static void print_stack(const pl_printer *printer, const char *indent, const json_t *frames,
                        print_frame *print)
{
    for (size_t i = 0; i < json_array_size(frames); i++) {
        const json_t *frame = json_array_get(frames, i);
        fputs(indent, printer->out);
        print(printer, frame);
        putc('\n', printer->out);
        if (json_object_get(frame, "cell") != NULL && pl_get_text(frame, "source")[0] != '\0') {
            fprintf(printer->out, "%s    ", indent);
            pl_print_clean(printer, pl_get_text(frame, "source"));
            putc('\n', printer->out);
        }
    }
}

static void print_crash(const pl_printer *printer)
{
    const json_t *crash = json_object_get(printer->report, "crash");
    if (!json_is_object(crash))
        return;
    heading(printer, "crash");
    row(printer, "signal", pl_get_text(crash, "signal"));
    row(printer, "kind", pl_get_text(crash, "kind"));
    row(printer, "reason", pl_get_text(crash, "reason"));
    row(printer, "exception", pl_get_text(crash, "exception"));
    row(printer, "address", pl_get_text(crash, "address"));
    row(printer, "mapping", pl_get_text(crash, "mapping"));
    fprintf(printer->out, "  %-10s %" PRIu64 " of process %" PRIu64 " ", "thread",
            pl_get_u64(crash, "tid"), pl_get_u64(crash, "pid"));
    pl_print_clean(printer, pl_get_text(crash, "thread"));
    putc('\n', printer->out);
}

static void print_instruction(const pl_printer *printer)
{
    const json_t *instruction = json_object_get(printer->report, "instruction");
    if (!json_is_object(instruction))
        return;
    const json_t *has = json_object_get(instruction, "cpu_has_set");
    heading(printer, "instruction");
    row(printer, "text", pl_get_text(instruction, "text"));
    row(printer, "set", pl_get_text(instruction, "set"));
    row(printer, "module", pl_get_text(instruction, "module"));
    if (json_is_boolean(has))
        row(printer, "this CPU", json_is_true(has) ? "has it" : "lacks it");
}

static void print_stacks(const pl_printer *printer)
{
    const json_t *python = json_object_get(printer->report, "python");
    const json_t *native = json_object_get(printer->report, "native");
    if (json_array_size(python) > 0) {
        heading(printer, "python, innermost first");
        print_stack(printer, "  ", python, pl_print_python_frame);
    }
    if (json_array_size(native) > 0) {
        heading(printer, "native, innermost first");
        print_stack(printer, "  ", native, pl_print_native_frame);
    }
}

static void print_hang(const pl_printer *printer)
{
    const json_t *hang = json_object_get(printer->report, "hang");
    const json_t *threads = json_object_get(hang, "threads"),
                 *cycle = json_object_get(hang, "cycle");
    if (!json_is_object(hang))
        return;
    heading(printer, "threads when it hung");
    if (json_array_size(cycle) > 0) {
        fputs("  deadlock:", printer->out);
        for (size_t i = 0; i < json_array_size(cycle); i++)
            fprintf(printer->out, " %" JSON_INTEGER_FORMAT " ->",
                    json_integer_value(json_array_get(cycle, i)));
        fprintf(printer->out, " %" JSON_INTEGER_FORMAT "\n",
                json_integer_value(json_array_get(cycle, 0)));
    }
    for (size_t i = 0; i < json_array_size(threads); i++) {
        const json_t *thread = json_array_get(threads, i);
        fprintf(printer->out, "  %" PRIu64 " of process %" PRIu64 " '", pl_get_u64(thread, "tid"),
                pl_get_u64(thread, "pid"));
        pl_print_clean(printer, pl_get_text(thread, "name"));
        fputs("' waits for ", printer->out);
        pl_print_clean(printer, pl_get_text(thread, "waits_for"));
        putc('\n', printer->out);
        print_stack(printer, "      ", json_object_get(thread, "python"), pl_print_python_frame);
        print_stack(printer, "      ", json_object_get(thread, "native"), pl_print_native_frame);
    }
}

static void print_notebook(const pl_printer *printer)
{
    const json_t *notebook = json_object_get(printer->report, "notebook");
    if (!json_is_object(notebook))
        return;
    char cell[PL_BRIEF_CELL_BYTES];
    pl_brief_cell(notebook, cell);
    heading(printer, "notebook");
    row(printer, "path", pl_get_text(notebook, "path"));
    row(printer, "kernel", pl_get_text(notebook, "kernel"));
    row(printer, "before it", pl_get_text(notebook, "previous"));
    row(printer, "cell", cell);
    if (json_array_size(json_object_get(printer->report, "cells")) > 0)
        heading(printer, "cells");
    pl_print_cells(printer, json_object_get(printer->report, "cells"));
}

/* Prints processes that were stopped (their bytes) or died (their signal). */
static void print_processes(const pl_printer *printer, const char *title, const char *key)
{
    const json_t *processes = json_object_get(printer->report, key);
    size_t n = json_array_size(processes);
    if (n == 0)
        return;
    heading(printer, title);
    for (size_t i = n > SHOWN_PROCESSES ? n - SHOWN_PROCESSES : 0; i < n; i++) {
        const json_t *process = json_array_get(processes, i);
        const char *signal = pl_get_text(process, "signal");
        fprintf(printer->out, "  %8.1f s  pid %" PRIu64 "  ", pl_get_real(process, "time_s"),
                pl_get_u64(process, "pid"));
        pl_print_clean(printer, pl_get_text(process, "name"));
        putc(' ', printer->out);
        pl_print_clean(printer, signal[0] != '\0' ? signal : PL_SIZE(pl_get_u64(process, "bytes")));
        putc('\n', printer->out);
    }
}

static void print_marks(const pl_printer *printer)
{
    const json_t *marks = json_object_get(printer->report, "marks");
    size_t n = json_array_size(marks);
    if (n == 0)
        return;
    heading(printer, "last marks");
    for (size_t i = n > SHOWN_MARKS ? n - SHOWN_MARKS : 0; i < n; i++) {
        const json_t *mark = json_array_get(marks, i);
        fprintf(printer->out, "  %8.1f s  ", pl_get_real(mark, "time_s"));
        pl_print_clean(printer, pl_get_text(mark, "text"));
        putc('\n', printer->out);
    }
}

void pl_print_full(const pl_printer *printer)
{
    pl_print_summary(printer, pl_get_text(printer->report, "summary"));
    print_strings(printer, "evidence", "evidence");
    print_strings(printer, "next", "next");
    print_crash(printer);
    print_instruction(printer);
    print_stacks(printer);
    print_notebook(printer);
    print_hang(printer);
    print_leak(printer);
    print_sites(printer);
    print_refusals(printer);
    print_processes(printer, "stopped for memory", "stopped");
    print_processes(printer, "ended by a signal", "deaths");
    print_marks(printer);
    print_memory(printer);
    print_run(printer);
}
