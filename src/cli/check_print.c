/* SPDX-License-Identifier: Apache-2.0 */
/* See check_print.h. */
#include "cli/check_print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "report/report.h"
#include "json/document.h"

/* There can be as many copies as files; --json lists them all. */
enum { MOST_NOTES = 20 };

void pl_check_printer_init(pl_check_printer *printer, pl_check_form form)
{
    *printer = (pl_check_printer){
        .form = form,
        .text = {.out = stdout, .color = pl_report_wants_color(stdout)},
        .bar = isatty(STDERR_FILENO),
        .begin_ns = pl_clock_monotonic_ns(),
    };
    if (form == PL_CHECK_JSON)
        printer->findings = json_array();
}

void pl_check_printer_done(pl_check_printer *printer)
{
    json_decref(printer->findings);
    printer->findings = NULL;
}

/* ---- the bar ---- */

static void clear_bar(pl_check_printer *printer)
{
    if (printer->bar_is_shown)
        fputs("\r\033[K", stderr);
    printer->bar_is_shown = false;
}

/* Prints one terminal line: one that wrapped could not be erased. The bar shrinks to fit. */
static void show_line(double part, const char *text)
{
    enum { WIDTH = 24, LEAST = 4 };
    struct winsize size;
    char marks[WIDTH + 1] = "";
    int n = (int)strlen(text), width = WIDTH, room = n;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        room = size.ws_col - 1;
        width = room - n - 3 < WIDTH ? room - n - 3 : WIDTH;
    }
    if (width < LEAST) {
        fprintf(stderr, "\r%.*s\033[K", room, text);
        return;
    }
    memset(marks, '-', (size_t)width);
    memset(marks, '#', (size_t)(width * part));
    fprintf(stderr, "\r[%s] %s\033[K", marks, text);
}

void pl_check_print_progress(pl_check_printer *printer, const pl_verify_summary *so_far)
{
    char text[200], left[32] = "";
    double seconds = (double)(pl_clock_monotonic_ns() - printer->begin_ns) / 1e9;
    double done = (double)so_far->n_checked, all = (double)so_far->n_files;
    if (!printer->bar || seconds <= 0 || all == 0)
        return;
    if (so_far->all_found)
        snprintf(left, sizeof left, ", %.0f s left", seconds * (all - done) / (done + 1));
    snprintf(text, sizeof text, "%" PRIu64 " of %" PRIu64 "%s files, %.0f files/s, %.1f MB/s%s",
             so_far->n_checked, so_far->n_files, so_far->all_found ? "" : " or more",
             done / seconds, (double)so_far->n_bytes / 1e6 / seconds, left);
    show_line(done / all, text);
    printer->bar_is_shown = true;
}

/* ---- findings ---- */

/* Encodes a path that is not UTF-8 in hex, as the quarantine's manifest does. */
static json_t *hex_of(const char *path)
{
    size_t n = strlen(path);
    char *hex = malloc(2 * n + 1);
    for (size_t i = 0; hex && i < n; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)path[i]);
    json_t *text = hex ? json_stringn_nocheck(hex, 2 * n) : NULL;
    free(hex);
    return text;
}

/* "path" loses bytes that are not UTF-8, so "path_hex" has the exact path. */
static void put_path(pl_json *json, json_t *object, const char *path)
{
    json_t *exact = json_string(path);
    pl_json_put(json, object, "path", exact ? exact : pl_json_text(path));
    if (!exact)
        pl_json_put(json, object, "path_hex", hex_of(path));
}

/* For --jsonl the number of further findings is put into the text: its keys are always the same. */
static json_t *reason_to_json(const pl_verify_finding *finding, bool counts)
{
    char reason[sizeof finding->reason + 32];
    snprintf(reason, sizeof reason, "%s (and %" PRIu64 " more)", finding->reason, finding->n_more);
    return pl_json_text(counts && finding->n_more > 0 ? reason : finding->reason);
}

static void put_place(pl_json *json, json_t *object, const char *name, int64_t number)
{
    pl_json_put(json, object, name, number < 0 ? json_null() : pl_json_u64((uint64_t)number));
}

static json_t *to_json(pl_check_printer *printer, const pl_verify_told *told, const char *moved_to,
                       const char *stays)
{
    pl_json *json = &printer->json;
    bool is_line = printer->form == PL_CHECK_JSONL;
    const pl_verify_finding *finding = told->finding;
    json_t *object = json_object();
    put_path(json, object, told->path);
    pl_json_put(json, object, "format", json_string(pl_verify_format_name(told->format)));
    pl_json_put(json, object, "offset",
                finding->offset == PL_VERIFY_NO_OFFSET ? json_null()
                                                       : pl_json_u64(finding->offset));
    if (!is_line) {
        put_place(json, object, "record", finding->record);
        put_place(json, object, "line", finding->line);
        put_place(json, object, "column", finding->column);
    }
    pl_json_put(json, object, "reason", reason_to_json(finding, is_line));
    pl_json_put(json, object, "severity", json_string(pl_verify_severity_name(finding->severity)));
    if (finding->n_more > 0 && !is_line)
        pl_json_put(json, object, "n_more", pl_json_u64(finding->n_more));
    pl_json_put_text(json, object, "moved_to", moved_to);
    pl_json_put_text(json, object, "not_moved", stays);
    return object;
}

static void print_line(pl_check_printer *printer, json_t *object)
{
    char *text =
        printer->json.failed ? NULL : pl_json_dump(object, JSON_COMPACT | JSON_ENSURE_ASCII);
    if (text)
        puts(text);
    else
        printer->json.failed = true;
    fflush(stdout); /* findings are kept even if the process is killed */
    free(text);
    json_decref(object);
}

static void print_text(pl_check_printer *printer, const pl_verify_told *told, const char *moved_to,
                       const char *stays)
{
    static const char *const colors[] = {"", "", "\033[1;33m", "\033[1;31m"};
    const pl_printer *out = &printer->text;
    const pl_verify_finding *finding = told->finding;
    if (finding->severity == PL_VERIFY_NOTE && printer->n_notes_shown++ >= MOST_NOTES)
        return;
    printf("%s%-7s%s  ", out->color ? colors[finding->severity] : "",
           pl_verify_severity_name(finding->severity), out->color ? "\033[0m" : "");
    pl_print_clean(out, told->path);
    if (told->format != PL_VERIFY_UNKNOWN)
        printf(" (%s)", pl_verify_format_name(told->format));
    fputs(": ", stdout);
    pl_print_clean(out, finding->reason);
    if (finding->n_more > 0)
        printf(" (and %" PRIu64 " more)", finding->n_more);
    if (*moved_to) {
        printf("\n%9smoved to ", "");
        pl_print_clean(out, moved_to);
    }
    if (*stays) {
        printf("\n%9snot moved: ", "");
        pl_print_clean(out, stays);
    }
    putchar('\n');
    fflush(stdout);
}

void pl_check_print(pl_check_printer *printer, const pl_verify_told *told, const char *moved_to,
                    const char *stays)
{
    clear_bar(printer);
    if (printer->form == PL_CHECK_TEXT)
        print_text(printer, told, moved_to, stays);
    else if (printer->form == PL_CHECK_JSONL)
        print_line(printer, to_json(printer, told, moved_to, stays));
    else
        pl_json_add(&printer->json, printer->findings, to_json(printer, told, moved_to, stays));
}

/* ---- the summary ---- */

static const char *s(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_formats(const pl_verify_summary *summary)
{
    const char *before = " (";
    for (int i = PL_VERIFY_NPY; i < PL_VERIFY_N_FORMATS; i++)
        if (summary->n_of_format[i] > 0) {
            printf("%s%" PRIu64 " %s", before, summary->n_of_format[i],
                   pl_verify_format_name((pl_verify_format)i));
            before = ", ";
        }
    if (*before == ',')
        putchar(')');
}

static void print_summary_text(const pl_check_printer *printer, const pl_verify_summary *summary,
                               uint64_t n_moved)
{
    double seconds = (double)(pl_clock_monotonic_ns() - printer->begin_ns) / 1e9;
    if (printer->n_notes_shown > MOST_NOTES)
        printf("note     %" PRIu64 " more notes: --json has them all\n",
               printer->n_notes_shown - MOST_NOTES);
    if (summary->n_errors + summary->n_warnings + summary->n_notes > 0)
        putchar('\n');
    if (summary->interrupted)
        printf("interrupted after %" PRIu64 " of %" PRIu64 " files\n", summary->n_checked,
               summary->n_files);
    printf("%" PRIu64 " file%s, %s in %.1f s", summary->n_checked, s(summary->n_checked),
           PL_SIZE(summary->n_bytes), seconds);
    print_formats(summary);
    if (summary->n_unknown > 0)
        printf("; %" PRIu64 " of unknown format, not checked", summary->n_unknown);
    if (summary->n_unread > 0)
        printf("; %" PRIu64 " empty or unreadable", summary->n_unread);
    printf("\n%" PRIu64 " error%s, %" PRIu64 " warning%s, %" PRIu64 " note%s", summary->n_errors,
           s(summary->n_errors), summary->n_warnings, s(summary->n_warnings), summary->n_notes,
           s(summary->n_notes));
    if (n_moved > 0)
        printf("; %" PRIu64 " file%s moved to quarantine", n_moved, s(n_moved));
    putchar('\n');
}

static int print_summary_json(pl_check_printer *printer, const pl_verify_summary *summary,
                              uint64_t n_moved, pl_error *reterr)
{
    pl_json *json = &printer->json;
    json_t *root = json_object(), *formats = json_object();
    for (int i = PL_VERIFY_NPY; i < PL_VERIFY_N_FORMATS; i++)
        if (summary->n_of_format[i] > 0)
            pl_json_put(json, formats, pl_verify_format_name((pl_verify_format)i),
                        pl_json_u64(summary->n_of_format[i]));
    pl_json_put(json, root, "schema", json_integer(1));
    pl_json_put(json, root, "n_files", pl_json_u64(summary->n_files));
    pl_json_put(json, root, "n_checked", pl_json_u64(summary->n_checked));
    pl_json_put(json, root, "n_unknown", pl_json_u64(summary->n_unknown));
    pl_json_put(json, root, "n_unread", pl_json_u64(summary->n_unread));
    pl_json_put(json, root, "n_bytes", pl_json_u64(summary->n_bytes));
    pl_json_put(json, root, "n_errors", pl_json_u64(summary->n_errors));
    pl_json_put(json, root, "n_warnings", pl_json_u64(summary->n_warnings));
    pl_json_put(json, root, "n_notes", pl_json_u64(summary->n_notes));
    pl_json_put(json, root, "n_moved", pl_json_u64(n_moved));
    pl_json_put(json, root, "interrupted", json_boolean(summary->interrupted));
    pl_json_put(json, root, "formats", formats);
    pl_json_put(json, root, "findings", PL_TAKE(printer->findings));
    int r = json->failed ? -ENOMEM : pl_report_print(root, stdout, reterr);
    json_decref(root);
    return r;
}

int pl_check_print_summary(pl_check_printer *printer, const pl_verify_summary *summary,
                           uint64_t n_moved, pl_error *reterr)
{
    int r = 0;
    clear_bar(printer);
    if (printer->form == PL_CHECK_TEXT)
        print_summary_text(printer, summary, n_moved);
    else if (printer->form == PL_CHECK_JSON)
        r = print_summary_json(printer, summary, n_moved, reterr);
    if (printer->json.failed)
        return pl_error_set(reterr, -ENOMEM, "out of memory for the answer");
    return r;
}
