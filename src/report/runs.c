/* SPDX-License-Identifier: Apache-2.0 */
/* The list of runs: one entry for each record, and the table made from it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "report/json.h"
#include "report/printer.h"
#include "report/report.h"

static json_t *build_entry(pl_json *json, const pl_run_record *record)
{
    static const char *const kept[] = {"started", "ended",   "duration_s", "pid",
                                       "verdict", "summary", "command"};
    json_t *entry = json_object(), *report = NULL;
    pl_error error = {0};
    pl_json_put(json, entry, "run", pl_json_text(record->id));
    int r = pl_report_load(record, &report, &error);
    if (r < 0) {
        json->failed |= r == -ENOMEM; /* the record may be fine */
        pl_json_put(json, entry, "verdict", json_string(pl_verdict_name(PL_VERDICT_UNREADABLE)));
        pl_json_put(json, entry, "summary", pl_json_text(error.message));
        return entry;
    }
    for (size_t i = 0; i < PL_COUNT_OF(kept); i++) {
        json_t *value = json_object_get(report, kept[i]);
        if (value != NULL)
            pl_json_put(json, entry, kept[i], json_incref(value));
    }
    json_t *peak = json_object_get(json_object_get(report, "memory"), "peak_resident_bytes");
    if (peak != NULL)
        pl_json_put(json, entry, "peak_resident_bytes", json_incref(peak));
    json_decref(report);
    return entry;
}

int pl_report_runs(json_t **ret_runs, pl_error *reterr)
{
    pl_run_record *records = NULL;
    size_t n = 0;
    int r = pl_run_record_list(&records, &n, reterr);
    if (r < 0)
        return r;
    pl_json json = {0};
    json_t *runs = json_array();
    for (size_t i = 0; i < n; i++)
        pl_json_add(&json, runs, build_entry(&json, &records[i]));
    free(records);
    if (runs == NULL || json.failed) {
        json_decref(runs);
        return pl_error_set(reterr, -ENOMEM, "cannot list the runs: out of memory");
    }
    *ret_runs = runs;
    return 0;
}

static void print_padded(const pl_printer *printer, const char *text, size_t width)
{
    size_t n = strlen(text);
    pl_print_clean(printer, text);
    fprintf(printer->out, "%*s  ", (int)(n < width ? width - n : 0), "");
}

/* "2026-11-16T03:15:22+01:00" as "2026-11-16 03:15:22": a list is read in local time. */
static void print_when(const pl_printer *printer, const char *started)
{
    char when[20] = "";
    if (strlen(started) >= sizeof(when) - 1) {
        memcpy(when, started, sizeof(when) - 1);
        when[10] = ' ';
    }
    print_padded(printer, when, sizeof(when) - 1);
}

static void print_command(const pl_printer *printer, const json_t *command)
{
    for (size_t i = 0; i < json_array_size(command); i++) {
        const char *argument = json_string_value(json_array_get(command, i));
        fputs(i > 0 ? " " : "", printer->out);
        pl_print_clean(printer, argument != NULL ? argument : "?");
    }
}

void pl_report_runs_text(const json_t *runs, FILE *out)
{
    pl_printer printer = {.out = out, .report = runs};
    if (json_array_size(runs) == 0) {
        fputs("no run is recorded yet\n", out);
        return;
    }
    fprintf(out, "%-24s  %-19s  %9s  %-23s  %10s  %s\n", "run", "when", "took", "verdict", "peak",
            "command");
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        print_padded(&printer, pl_get_text(run, "run"), 24);
        print_when(&printer, pl_get_text(run, "started"));
        fprintf(out, "%7.1f s  ", pl_get_real(run, "duration_s"));
        print_padded(&printer, pl_get_text(run, "verdict"), 23);
        fprintf(out, "%10s  ", PL_SIZE(pl_get_u64(run, "peak_resident_bytes")));
        print_command(&printer, json_object_get(run, "command"));
        putc('\n', out);
    }
}
