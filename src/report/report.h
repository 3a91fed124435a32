/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a document from the state of a run, and text from the document. docs/report-format.md
 * describes the fields; nothing else turns a record into text. Allocates; not for signal handlers
 * or the guard. Records are not trusted: a torn or corrupt one gives an error or an incomplete
 * report. */
#ifndef PL_REPORT_REPORT_H
#define PL_REPORT_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "base/base.h"
#include "plimsoll/ledger.h"
#include "report/verdict_kind.h"
#include "supervise/inspect.h"
#include "supervise/run_record.h"

enum { PL_REPORT_SCHEMA = 1 };

/* The flags for every document: indented for people, and in ASCII for any locale. Reals are seconds
 * to a millisecond, of runs of up to 30 years: 12 digits. */
#define PL_REPORT_JSON_FLAGS (JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12))

/* Returns the verdict of a document; PL_VERDICT_UNREADABLE when it names none that we know. */
enum pl_verdict_kind pl_report_verdict(const json_t *report);

/* Builds the document from a ledger, live or dead, and the files beside it in the record. The
 * caller owns *ret_report (json_decref). */
PL_MUST_CHECK int pl_report_build(const pl_ledger *ledger, const char *record_directory,
                                  json_t **ret_report, pl_error *reterr);

/* Loads the document of a record: report.json if it is whole, else built from the ledger. Changes
 * nothing. PL_ECORRUPT, PL_EVERSION or -errno, with a message, when neither can be read; -ENOMEM
 * rather than an incomplete report. */
PL_MUST_CHECK int pl_report_load(const pl_run_record *record, json_t **ret_report,
                                 pl_error *reterr);

/* Writes the document to `path`, whole or not at all. */
PL_MUST_CHECK int pl_report_save(const json_t *report, const char *path, pl_error *reterr);

/* Writes a document to a stream: whole, or nothing when out of memory. The caller checks the stream
 * for errors (ferror). */
PL_MUST_CHECK int pl_report_print(const json_t *document, FILE *out, pl_error *reterr);

/* Writes the supervisor's findings about a hang into the record, for the report. */
PL_MUST_CHECK int pl_report_write_hang(const char *record_directory,
                                       const pl_inspect_process *processes, size_t n, double idle_s,
                                       pl_error *reterr);

enum pl_report_flags {
    PL_REPORT_COLOR = 1u << 0,
    PL_REPORT_FULL = 1u << 1, /* everything, for `explain`; else a few lines for a run's end */
};

/* Writes the document as text. The short form is empty for a run that is news for nobody. */
void pl_report_text(const json_t *report, FILE *out, unsigned flags);

/* Lists runs, newest first, as an array; and as a table. A record that cannot be read is listed as
 * "unreadable", so that one bad file does not hide the others. */
PL_MUST_CHECK int pl_report_runs(json_t **ret_runs, pl_error *reterr);
void pl_report_runs_text(const json_t *runs, FILE *out);

/* Describes the state of a run now, from its ledger alone, as "plimsoll top" in
 * docs/report-format.md; and as tables. Fails as pl_report_load() does. */
PL_MUST_CHECK int pl_report_top(const pl_run_record *record, json_t **ret_top, pl_error *reterr);
void pl_report_top_text(const json_t *top, FILE *out, unsigned flags);

/* Finds the run to show when none is named: the one that this process is in, else the newest that
 * is still running. -ENOENT with a message when there is none. */
PL_MUST_CHECK int pl_report_top_find(pl_run_record *ret_record, pl_error *reterr);

/* Should output to this stream be coloured? True for a terminal, unless NO_COLOR is set. */
bool pl_report_wants_color(FILE *out);

#endif
