/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of the doctor.
 *   verdict  ok: it will work; warn: it may fail or be slow; fail: it will fail
 *   finding  a verdict on one thing: the check that made it, a sentence on what will happen, and
 *            the command or change that fixes it ("" if nothing needs fixing)
 *   worst    the highest verdict of all findings
 *
 * Allocates; running out of memory is remembered, and reported once at the end. One thread. */
#ifndef PL_PREFLIGHT_FINDINGS_H
#define PL_PREFLIGHT_FINDINGS_H

#include "base/base.h"

typedef enum pl_finding_verdict {
    PL_FINDING_OK,
    PL_FINDING_WARN,
    PL_FINDING_FAIL
} pl_finding_verdict;

enum { PL_FINDING_SAYS_BYTES = 640, PL_FINDING_FIX_BYTES = 320 };

typedef struct pl_finding {
    const char *check; /* from the table in doctor.c: constant */
    pl_finding_verdict verdict;
    char says[PL_FINDING_SAYS_BYTES];
    char fix[PL_FINDING_FIX_BYTES];
} pl_finding;

typedef struct pl_findings {
    size_t n;
    pl_finding *items;
    const char *check; /* the check that is running */
    bool failed;       /* out of memory for a finding */
} pl_findings;

void pl_findings_done(pl_findings *findings);

/* Adds a finding for the current check. Longer texts are cut. */
void pl_say(pl_findings *findings, pl_finding_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds the fix to the last finding. */
void pl_fix(pl_findings *findings, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns whether the current check has not reported anything yet. */
bool pl_findings_silent(const pl_findings *findings);

size_t pl_findings_count(const pl_findings *findings, pl_finding_verdict verdict);

/* "ok", "warn", "fail". */
const char *pl_finding_verdict_name(pl_finding_verdict verdict);

#endif
