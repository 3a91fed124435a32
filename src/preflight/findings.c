/* SPDX-License-Identifier: Apache-2.0 */
/* See findings.h. */
#include "preflight/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void pl_findings_done(pl_findings *findings)
{
    free(findings->items);
    *findings = (pl_findings){0};
}

/* The array is full when its length is a power of two. */
static pl_finding *add(pl_findings *findings)
{
    size_t n = findings->n;
    if ((n & (n - 1)) == 0) {
        size_t room = n == 0 ? 1 : 2 * n;
        pl_finding *items = realloc(findings->items, room * sizeof *items);
        if (items == NULL) {
            findings->failed = true;
            return NULL;
        }
        findings->items = items;
    }
    findings->n++;
    findings->items[n] = (pl_finding){.check = findings->check};
    return &findings->items[n];
}

void pl_say(pl_findings *findings, pl_finding_verdict verdict, const char *format, ...)
{
    pl_finding *finding = add(findings);
    if (finding == NULL)
        return;
    finding->verdict = verdict;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->says, sizeof finding->says, format, arguments);
    va_end(arguments);
}

void pl_fix(pl_findings *findings, const char *format, ...)
{
    if (findings->n == 0 || findings->failed)
        return;
    pl_finding *finding = &findings->items[findings->n - 1];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->fix, sizeof finding->fix, format, arguments);
    va_end(arguments);
}

bool pl_findings_silent(const pl_findings *findings)
{
    return findings->n == 0 || findings->items[findings->n - 1].check != findings->check;
}

size_t pl_findings_count(const pl_findings *findings, pl_finding_verdict verdict)
{
    size_t n = 0;
    for (size_t i = 0; i < findings->n; i++)
        n += findings->items[i].verdict == verdict;
    return n;
}

const char *pl_finding_verdict_name(pl_finding_verdict verdict)
{
    static const char *const names[] = {"ok", "warn", "fail"};
    return names[verdict];
}
