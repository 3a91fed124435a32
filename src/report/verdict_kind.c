/* SPDX-License-Identifier: Apache-2.0 */
/* See verdict_kind.h. */
#include "report/verdict_kind.h"

#include <string.h>

static const struct {
    const char *name;
    enum pl_verdict_severity severity;
    enum pl_verdict_shown shown;
    unsigned traits;
} verdicts[PL_VERDICTS] = {
#define PL_VERDICT_ROW(kind, name_, severity_, shown_, traits_)                                    \
    [PL_VERDICT_##kind] = {name_, PL_SEVERITY_##severity_, PL_SHOWN_##shown_, traits_},
    PL_VERDICT_TABLE(PL_VERDICT_ROW)
#undef PL_VERDICT_ROW
};

const char *pl_verdict_name(enum pl_verdict_kind kind)
{
    return verdicts[kind].name;
}

bool pl_verdict_parse(const char *name, enum pl_verdict_kind *ret_kind)
{
    for (int kind = 0; kind < PL_VERDICTS; kind++) {
        if (strcmp(name, verdicts[kind].name) != 0)
            continue;
        *ret_kind = (enum pl_verdict_kind)kind;
        return true;
    }
    return false;
}

enum pl_verdict_severity pl_verdict_severity(enum pl_verdict_kind kind)
{
    return verdicts[kind].severity;
}

enum pl_verdict_shown pl_verdict_shown(enum pl_verdict_kind kind)
{
    return verdicts[kind].shown;
}

bool pl_verdict_has(enum pl_verdict_kind kind, enum pl_verdict_trait trait)
{
    return verdicts[kind].traits & trait;
}

const char *pl_news_name(enum pl_news news)
{
    static const char *const names[] = {
        [PL_NEWS_FOR_NOBODY] = "nobody",
        [PL_NEWS_FOR_LOG] = "log",
        [PL_NEWS_FOR_USER] = "user",
    };
    return names[news];
}

static bool is_shown_by_next_kernel(enum pl_verdict_kind kind, const pl_news_facts *facts)
{
    switch (pl_verdict_shown(kind)) {
    case PL_SHOWN_NEVER:
        return false;
    case PL_SHOWN_IN_CELL:
        return facts->cell_was_running;
    case PL_SHOWN_AFTER_CELL:
        return facts->cells_have_run;
    case PL_SHOWN_ALWAYS:
        return true;
    }
    return false;
}

enum pl_news pl_news_judge(enum pl_verdict_kind kind, const pl_news_facts *facts)
{
    if (kind == PL_VERDICT_RUNNING)
        return PL_NEWS_FOR_LOG;
    if (facts->in_notebook ? is_shown_by_next_kernel(kind, facts)
                           : kind != PL_VERDICT_FINISHED || facts->is_incomplete_success)
        return PL_NEWS_FOR_USER;
    return kind == PL_VERDICT_FINISHED ? PL_NEWS_FOR_NOBODY : PL_NEWS_FOR_LOG;
}
