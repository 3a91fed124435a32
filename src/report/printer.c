/* SPDX-License-Identifier: Apache-2.0 */
/* The report as text: the parts that both forms share. */
#include "report/printer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "probe/frame_text.h"
#include "report/code_place.h"
#include "report/report.h"

/* Being over the line by less than a NOTICEABLY_OVER-th of it needs no explanation. */
enum { NOTICEABLY_OVER = 64 };

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

/* Characters that reverse the direction of writing, or end a line, so that one name looks like
 * another: U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069. */
static bool is_disguise(const unsigned char *c)
{
    if (c[0] != 0xe2 || (c[1] != 0x80 && c[1] != 0x81))
        return false;
    bool turns = c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae);
    return c[1] == 0x80 ? turns : c[2] >= 0xa6 && c[2] <= 0xa9;
}

/* C0 and DEL are single bytes; C1, which some terminals obey as well, is C2 80 to C2 9F. */
void pl_print_clean(const pl_printer *printer, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f)
            c++;
        else if (is_disguise(c))
            c += 2;
        else if (*c >= 0x20 && *c != 0x7f)
            putc(*c, printer->out);
        else
            putc(' ', printer->out);
    }
}

/* "  next:  ", in a column of its own. */
static void print_label(const pl_printer *printer, const char *label)
{
    fprintf(printer->out, "  %s", printer->color ? "\033[1m" : "");
    pl_print_clean(printer, label);
    fprintf(printer->out, ":%s%*s", printer->color ? "\033[0m" : "",
            (int)(strlen(label) < 6 ? 6 - strlen(label) : 1), "");
}

static const char *severity_color(enum pl_verdict_severity severity)
{
    static const char *const colors[] = {
        [PL_SEVERITY_GOOD] = "\033[1;32m",    /* green */
        [PL_SEVERITY_WARNING] = "\033[1;33m", /* yellow */
        [PL_SEVERITY_BAD] = "\033[1;31m",     /* red */
    };
    return colors[severity];
}

/* Colours the text before the first colon: the verdict in words. */
void pl_print_summary(const pl_printer *printer, const char *summary)
{
    char lead[64];
    size_t n = strcspn(summary, ":");
    n = n < sizeof(lead) ? n : 0;
    memcpy(lead, summary, n);
    lead[n] = '\0';
    fputs("plimsoll: ", printer->out);
    if (printer->color)
        fputs(severity_color(pl_verdict_severity(printer->verdict)), printer->out);
    pl_print_clean(printer, lead);
    if (printer->color)
        fputs("\033[0m", printer->out);
    pl_print_clean(printer, summary + n);
    putc('\n', printer->out);
}

/* Explains in a few words why the line was passed. */
static const char *why_over(const pl_printer *printer, uint64_t over_bytes)
{
    const json_t *memory = json_object_get(printer->report, "memory");
    if (json_is_true(json_object_get(memory, "observed")))
        return ": --observe refuses nothing";
    if (json_array_size(json_object_get(printer->report, "line")) > 0)
        return ": the system has moved the line since the start";
    if (over_bytes <= pl_get_u64(memory, "reserve_bytes"))
        return ", within the reserve: small requests, and memory touched without a request, are "
               "not refused at once";
    return ", beyond the reserve: taken where the guard is not asked, as by static programs, or "
           "for stacks, shared memory and pages written after a fork";
}

static void print_claimed(const pl_printer *printer, uint64_t claimed_bytes, uint64_t line_bytes)
{
    uint64_t over_bytes = pl_sub_sat_u64(claimed_bytes, line_bytes);
    fprintf(printer->out, "%s claimed of %s", PL_SIZE(claimed_bytes), PL_SIZE(line_bytes));
    if (over_bytes >= line_bytes / NOTICEABLY_OVER)
        fprintf(printer->out, " (%s over%s)", PL_SIZE(over_bytes), why_over(printer, over_bytes));
    fputs(", ", printer->out);
}

void pl_print_peak(const pl_printer *printer)
{
    const json_t *memory = json_object_get(printer->report, "memory");
    const char *source = pl_get_text(memory, "true_limit_source");
    uint64_t line_bytes = pl_get_u64(memory, "limit_bytes");
    uint64_t claimed_bytes = pl_get_u64(memory, "peak_charged_bytes");
    uint64_t true_limit_bytes = pl_get_u64(memory, "true_limit_bytes");
    if (claimed_bytes > 0 && line_bytes < true_limit_bytes - true_limit_bytes / 10)
        print_claimed(printer, claimed_bytes, line_bytes);
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
    uint64_t cell = pl_get_u64(frame, "cell");
    if (cell > 0 && cell <= UINT32_MAX) {
        char place[PL_FACT_PLACE_BYTES];
        pl_frame_text("", pl_get_u64(frame, "line"), function, (uint32_t)cell, place,
                      sizeof(place));
        pl_print_clean(printer, place);
        return;
    }
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
    pl_print_clean(printer, module[0] != '\0' ? pl_code_place_file_name(module) : "?");
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

/* The short form: the lines of "brief". */
static void print_short(const pl_printer *printer)
{
    const json_t *brief = json_object_get(printer->report, "brief");
    for (size_t i = 0; i < json_array_size(brief); i++) {
        const json_t *line = json_array_get(brief, i);
        const char *label = pl_get_text(line, "label"), *text = pl_get_text(line, "text");
        if (label[0] == '\0') {
            pl_print_summary(printer, text);
            continue;
        }
        bool is_magic =
            strcmp(label, "more") == 0 && text[0] == '%'; /* here, a command without it */
        print_label(printer, label);
        pl_print_clean(printer, text + is_magic);
        putc('\n', printer->out);
    }
}

enum pl_verdict_kind pl_report_verdict(const json_t *report)
{
    enum pl_verdict_kind kind = PL_VERDICT_UNREADABLE;
    (void)!pl_verdict_parse(pl_get_text(report, "verdict"), &kind);
    return kind;
}

void pl_report_text(const json_t *report, FILE *out, unsigned flags)
{
    pl_printer printer = {.out = out,
                          .color = flags & PL_REPORT_COLOR,
                          .report = report,
                          .verdict = pl_report_verdict(report)};
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
