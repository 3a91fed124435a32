/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts, one word each for how a run ended, and everything that follows from the word alone.
 *   severity   the colour of the verdict
 *   shown      when the next kernel of a notebook shows the verdict to its user
 *   traits     the sections that the report adds for such a verdict
 * C code passes the enum on. Its name is written once, into the document, and read back in one
 * place, pl_verdict_parse(). Pure. */
#ifndef PL_REPORT_VERDICT_KIND_H
#define PL_REPORT_VERDICT_KIND_H

#include "base/base.h"

enum pl_verdict_severity {
    PL_SEVERITY_GOOD,
    PL_SEVERITY_WARNING,
    PL_SEVERITY_BAD,
};

/* Jupyter ends kernels as well: a shutdown or restart looks like the end of the process by itself,
 * like a signal, or, when the supervisor gets the signal too, like nothing on record. That is news
 * only to a user whose cell was running. */
enum pl_verdict_shown {
    PL_SHOWN_NEVER,
    PL_SHOWN_IN_CELL,    /* if a cell was running */
    PL_SHOWN_AFTER_CELL, /* if any cell has run: a kernel that fails to start, say because its ports
                            are taken, is started again by Jupyter */
    PL_SHOWN_ALWAYS,
};

enum pl_verdict_trait {
    PL_TRAIT_MEMORY = 1u << 0,   /* memory decided it: show the peak, and the holders of memory */
    PL_TRAIT_REFUSAL = 1u << 1,  /* a refusal did: show the holders of memory at the last one */
    PL_TRAIT_SIGNAL = 1u << 2,   /* a signal did: if a crash record explains it, show its stack */
    PL_TRAIT_EXPLAINS = 1u << 3, /* a run around this one explains its own failure by it */
};

/* In the order of docs/report-format.md. The numbers are kept in ledgers (PL_EVENT_INNER): add new
 * verdicts at the end. X(kind, name, severity, shown, traits) */
#define PL_VERDICT_TABLE(X)                                                                        \
    X(FINISHED, "finished", GOOD, IN_CELL, 0)                                                      \
    X(FINISHED_AFTER_REFUSALS, "finished-after-refusals", WARNING, IN_CELL,                        \
      PL_TRAIT_MEMORY | PL_TRAIT_REFUSAL)                                                          \
    X(FAILED, "failed", BAD, AFTER_CELL, 0)                                                        \
    X(REFUSED, "refused", BAD, ALWAYS, PL_TRAIT_MEMORY | PL_TRAIT_REFUSAL | PL_TRAIT_EXPLAINS)     \
    X(LEAK, "leak", BAD, ALWAYS, PL_TRAIT_MEMORY | PL_TRAIT_REFUSAL | PL_TRAIT_EXPLAINS)           \
    X(KILLED_FOR_MEMORY, "killed-for-memory", BAD, ALWAYS, PL_TRAIT_MEMORY | PL_TRAIT_EXPLAINS)    \
    X(STOPPED_FOR_MEMORY, "stopped-for-memory", BAD, ALWAYS, PL_TRAIT_MEMORY | PL_TRAIT_EXPLAINS)  \
    X(KILLED, "killed", WARNING, IN_CELL, PL_TRAIT_SIGNAL)                                         \
    X(CRASHED, "crashed", BAD, ALWAYS, PL_TRAIT_SIGNAL | PL_TRAIT_EXPLAINS)                        \
    X(ILLEGAL_INSTRUCTION, "illegal-instruction", BAD, ALWAYS,                                     \
      PL_TRAIT_SIGNAL | PL_TRAIT_EXPLAINS)                                                         \
    X(HANG, "hang", BAD, ALWAYS, PL_TRAIT_EXPLAINS)                                                \
    X(RUNNING, "running", GOOD, NEVER, 0)                                                          \
    X(LOST, "lost", BAD, IN_CELL, 0)                                                               \
    X(UNREADABLE, "unreadable", BAD, NEVER, 0) /* in lists of runs: no record to judge by */

enum pl_verdict_kind {
#define PL_VERDICT_ENUM(kind, name, severity, shown, traits) PL_VERDICT_##kind,
    PL_VERDICT_TABLE(PL_VERDICT_ENUM)
#undef PL_VERDICT_ENUM
        PL_VERDICTS, /* how many there are */
};

const char *pl_verdict_name(enum pl_verdict_kind kind);

/* False, and *ret_kind untouched, when no verdict has that name. */
bool pl_verdict_parse(const char *name, enum pl_verdict_kind *ret_kind);

enum pl_verdict_severity pl_verdict_severity(enum pl_verdict_kind kind);
enum pl_verdict_shown pl_verdict_shown(enum pl_verdict_kind kind);
bool pl_verdict_has(enum pl_verdict_kind kind, enum pl_verdict_trait trait);

/* Who should see the end of a run without asking. "news_for" in the document. */
enum pl_news {
    PL_NEWS_FOR_NOBODY, /* the run just finished */
    PL_NEWS_FOR_LOG,    /* where the run's messages go: of a kernel, its server's log */
    PL_NEWS_FOR_USER,   /* the terminal; of a kernel, also the notebook, by the next kernel */
};

const char *pl_news_name(enum pl_news news);

/* The facts that decide it, beside the verdict. */
typedef struct pl_news_facts {
    bool in_notebook;
    bool cell_was_running;
    bool cells_have_run;
    bool is_incomplete_success; /* it finished, but over the line, or without one of its workers */
} pl_news_facts;

/* The only answer to "is this news?": neither the command line nor the Python package decides
 * again. */
enum pl_news pl_news_judge(enum pl_verdict_kind kind, const pl_news_facts *facts);

#endif
