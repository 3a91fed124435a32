/* SPDX-License-Identifier: Apache-2.0 */
/* From facts to a verdict, and the evidence that it rests on. Pure: no files, no clock, no system.
 *   facts     what the record and the system say, already bounded and cleaned of bad text
 *   verdict   one word for what happened, one sentence, and why we say so
 * The command is the process that `plimsoll run` started; a worker is any other of its tree. */
#ifndef PL_REPORT_VERDICT_H
#define PL_REPORT_VERDICT_H

#include <sys/types.h>

#include "base/base.h"
#include "report/leak.h"

/* In the order of docs/report-format.md. */
#define PL_VERDICT_TABLE(X)                                                                        \
    X(PL_VERDICT_FINISHED, "finished")                                                             \
    X(PL_VERDICT_FINISHED_AFTER_REFUSALS, "finished-after-refusals")                               \
    X(PL_VERDICT_FAILED, "failed")                                                                 \
    X(PL_VERDICT_REFUSED, "refused")                                                               \
    X(PL_VERDICT_LEAK, "leak")                                                                     \
    X(PL_VERDICT_KILLED_FOR_MEMORY, "killed-for-memory")                                           \
    X(PL_VERDICT_STOPPED_FOR_MEMORY, "stopped-for-memory")                                         \
    X(PL_VERDICT_KILLED, "killed")                                                                 \
    X(PL_VERDICT_CRASHED, "crashed")                                                               \
    X(PL_VERDICT_ILLEGAL_INSTRUCTION, "illegal-instruction")                                       \
    X(PL_VERDICT_HANG, "hang")                                                                     \
    X(PL_VERDICT_RUNNING, "running")                                                               \
    X(PL_VERDICT_LOST, "lost")

enum pl_verdict_kind {
#define PL_VERDICT_ENUM(kind, name) kind,
    PL_VERDICT_TABLE(PL_VERDICT_ENUM)
#undef PL_VERDICT_ENUM
};

const char *pl_verdict_name(enum pl_verdict_kind kind);

enum { PL_FACT_NAME_BYTES = 64, PL_FACT_PLACE_BYTES = 224, PL_VERDICT_EVIDENCE = 8 };

/* A process of the tree. */
typedef struct pl_fact_process {
    pid_t pid;      /* 0: there is none */
    bool is_kernel; /* of a notebook */
    char name[PL_FACT_NAME_BYTES];
    uint64_t bytes;
    double before_end_s; /* how long before the end of the run, or before now, it happened */
} pl_fact_process;

typedef struct pl_fact_refusal {
    pl_fact_process process; /* bytes: what it asked for; 0 for an exception that we raised */
    uint64_t charged_bytes;
    uint64_t limit_bytes;
    bool in_python;                  /* it reached Python code, as a MemoryError */
    char place[PL_FACT_PLACE_BYTES]; /* "train.py:12 in load()"; "" = unknown */
} pl_fact_refusal;

typedef struct pl_fact_crash {
    pl_fact_process process;
    int signal;
    pid_t sender_pid; /* another process that sent the signal; 0: it was the process's own fault */
    double refused_before_s;           /* time since a refusal in that process; < 0: none */
    bool stack_full;                   /* its stack was used up */
    bool bad_alloc;                    /* ended by std::bad_alloc, which nobody caught */
    char reason[256];                  /* "access to address 0x0, ..."; "" = unknown */
    char place[PL_FACT_PLACE_BYTES];   /* Python line, else native symbol; "" = unknown */
    char mapping[PL_FACT_PLACE_BYTES]; /* file behind the address that a bus error touched */
    char missing_set[32]; /* instruction set that the faulting bytes need and this CPU lacks */
    char module[PL_FACT_NAME_BYTES]; /* file name of the module it happened in */
    bool in_interpreter;             /* that module is Python's own */
} pl_fact_crash;

typedef struct pl_facts {
    pl_fact_process command;
    bool in_notebook; /* what to do is said in a notebook's words */
    uint32_t cell;    /* number of the notebook's cell that ran at the end; 0: none */

    /* The end, as the supervisor saw it. */
    bool ended;
    int wait_status;         /* as from waitpid() */
    int stop_signal;         /* passed on by the supervisor; 0: none */
    uint64_t n_oom_kills;    /* of the cgroup, since the start */
    uint64_t n_vm_oom_kills; /* of the whole machine, since the start */
    bool has_memory_cgroup;  /* n_oom_kills means something */

    /* When it did not see the end. */
    bool supervisor_alive;
    bool command_alive;
    bool rebooted;

    /* Memory. */
    uint64_t limit_bytes;
    uint64_t true_limit_bytes;
    uint64_t peak_bytes; /* of the tree's resident memory */
    bool sampled;        /* the next two are known */
    uint64_t last_resident_bytes;
    uint64_t last_available_bytes;
    pl_leak leak;

    /* What happened on the way. */
    uint64_t n_refusals;
    pl_fact_refusal refusal; /* the last one; process.pid 0: none */
    pl_fact_crash crash;     /* of the command, else the last; process.pid 0: none */
    pl_fact_process over;    /* passed the line and could not be refused; pid 0: nobody */
    uint64_t n_stopped;
    pl_fact_process stopped;       /* the command, else the last that the supervisor stopped */
    pl_fact_process killed_worker; /* the last that SIGKILL ended, and not by us */
    bool hangs;                    /* no progress was seen, and none since */
    double idle_s;
    bool lock_cycle; /* threads wait for each other in a ring */
} pl_facts;

typedef struct pl_verdict {
    enum pl_verdict_kind kind;
    bool leaked; /* a steady rise led to it: the report shows its slope */
    char summary[768];
    int n_evidence;
    char evidence[PL_VERDICT_EVIDENCE][384]; /* strongest first */
} pl_verdict;

void pl_verdict_judge(const pl_facts *facts, pl_verdict *ret_verdict);

/* What to do next, most useful first: writes at most `max` lines, returns how many.
 * `holder` is the place that holds most memory, "" when unknown. */
enum { PL_ADVICE_BYTES = 384 };
int pl_advice(const pl_facts *facts, enum pl_verdict_kind kind, const char *holder,
              char (*lines)[PL_ADVICE_BYTES], int max);

/* The signal that ended the command: itself, or its child as a shell tells (128+N). 0: none. */
int pl_verdict_signal(int wait_status);

/* "SIGKILL". Lives for ever, or until the calling thread asks for the next one. */
const char *pl_signal_name(int signal);

/* "segmentation fault"; NULL for a signal that is not a fault of the program's own. */
const char *pl_signal_fault(int signal);

#endif
