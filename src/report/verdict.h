/* SPDX-License-Identifier: Apache-2.0 */
/* Judges facts: a verdict, and the evidence that it rests on. Pure: no files, no clock, no system.
 *   facts     the data from the record and the system, bounded and with valid text
 *   verdict   one word for how the run ended, one sentence, and the evidence
 * The command is the process that `plimsoll run` started; a worker is any other of its tree. */
#ifndef PL_REPORT_VERDICT_H
#define PL_REPORT_VERDICT_H

#include <sys/types.h>

#include "base/base.h"
#include "ledger/layout.h"
#include "report/leak.h"
#include "report/verdict_kind.h"

enum { PL_FACT_NAME_BYTES = 64, PL_FACT_PLACE_BYTES = 224, PL_VERDICT_EVIDENCE = 8 };

/* A process of the tree. */
typedef struct pl_fact_process {
    pid_t pid;      /* 0: none */
    bool is_kernel; /* of a notebook */
    char name[PL_FACT_NAME_BYTES];
    uint64_t bytes;
    double before_end_s; /* how long before the end of the run, or before now, it happened */
} pl_fact_process;

typedef struct pl_fact_refusal {
    pl_fact_process process; /* bytes: the size of the request; 0 for an exception that we raised */
    uint64_t charged_bytes;
    uint64_t limit_bytes;
    bool in_python;                  /* Python code got it, as a MemoryError */
    char place[PL_FACT_PLACE_BYTES]; /* "train.py:12 in load()"; "" = unknown */
} pl_fact_refusal;

/* The system moved the line while the run went on. */
typedef struct pl_fact_line {
    int n;                   /* how often; 0: never, and nothing below means anything */
    pl_fact_process process; /* the neighbour that took most, if known. bytes: all that they
                              * took, or the new limit (0: lifted) */
    uint64_t line_bytes;     /* the line from then on */
    double since_start_s;
    char file[PL_FACT_PLACE_BYTES]; /* of a limit: "/sys/fs/cgroup/a/memory.max" */
} pl_fact_line;

/* Causes that have advice, or a verdict, of their own. */
enum pl_crash_cause {
    PL_CRASH_CAUSE_OTHER,
    PL_CRASH_STACK_OVERFLOW,
    PL_CRASH_BAD_ALLOC,       /* std::bad_alloc, which nothing caught */
    PL_CRASH_DOUBLE_FREE,     /* glibc: a block was freed twice */
    PL_CRASH_HEAP_CORRUPTION, /* glibc: its heap was overwritten, or given a bad pointer */
};

typedef struct pl_fact_crash {
    pl_fact_process process;
    int signal;
    pid_t sender_pid; /* another process that sent the signal; 0: it was the process's own fault */
    double refused_before_s; /* time since a refusal in that process; < 0: none */
    enum pl_crash_cause cause;
    char reason[256];                  /* in words: "access to address 0x0, ..."; "" = unknown */
    char place[PL_FACT_PLACE_BYTES];   /* Python line, else native symbol; "" = unknown */
    char mapping[PL_FACT_PLACE_BYTES]; /* file behind the address that a bus error touched */
    char missing_set[32]; /* instruction set that the faulting bytes need and this CPU lacks */
    char module[PL_FACT_NAME_BYTES]; /* file name of the module it happened in */
    bool in_interpreter;             /* that module is Python's own */
    bool in_program;                 /* it is the program itself, not a library */
    bool has_line;                   /* place names a line of source */
} pl_fact_crash;

typedef struct pl_facts {
    pl_fact_process command;
    bool in_notebook; /* advice is phrased for a notebook */
    uint32_t cell;    /* number of the notebook's cell that ran at the end; 0: none */
    bool observed;    /* run with --observe: nothing was refused or stopped */

    /* The end, as the supervisor saw it. */
    bool ended;
    int wait_status; /* as from waitpid() */
    int stop_signal; /* passed on by the supervisor; 0: none */
    uint32_t
        seccomp_mode; /* of the command at its end: 0 none, 1 strict, 2 a filter, 3 killed by it */
    uint64_t n_oom_kills;    /* of the cgroup, since the start */
    uint64_t n_vm_oom_kills; /* of the whole machine, since the start */
    bool has_memory_cgroup;  /* n_oom_kills means something */
    bool group_gone;         /* it was in a memory cgroup that no longer exists */
    bool vm_counted;         /* n_vm_oom_kills means something, if the end was not seen */

    /* When it did not see the end. */
    bool supervisor_alive;
    bool command_alive;
    bool rebooted;
    bool cut_short; /* a part of the record is lost: see pl_run_record_state */

    /* Memory. */
    uint64_t limit_bytes;
    uint64_t budget_bytes; /* where the line would be if cgroups left more */
    uint64_t reserve_bytes;
    uint64_t true_limit_bytes;
    bool line_is_cells;  /* the line is a cell's own limit, not the budget */
    uint64_t peak_bytes; /* of the tree's resident memory */
    bool sampled;        /* the next two are known */
    uint64_t last_resident_bytes;
    uint64_t last_available_bytes;
    pl_leak leak;
    double lasted_s;
    double stalled_s;      /* some process of its cgroup waited for memory */
    double stalled_full_s; /* all of them did */
    bool own_stalls;       /* those of the cgroup, not of the machine */
    uint64_t n_throttles;  /* waits above memory.high */

    /* Other limits that may have refused memory. */
    uint64_t address_limit_bytes; /* RLIMIT_AS of the command; 0: none */
    uint64_t data_limit_bytes;    /* RLIMIT_DATA of it; 0: none */
    bool own_data_limit;          /* set by us: the guard cannot be in the command */
    pl_fact_process denied;       /* the last process that the system refused memory; pid 0: none */
    uint32_t denied_limits;       /* pl_denied_limits that were in force */
    char denied_place[PL_FACT_PLACE_BYTES];
    bool has_inner; /* a run inside this one failed, and may explain this one's failure */
    enum pl_verdict_kind inner_verdict;
    char inner_run[PL_FACT_NAME_BYTES]; /* its id, or its record's path */

    pl_fact_line moved_limit; /* the last of the changes of a cgroup's limit */
    pl_fact_line neighbours;  /* others in the cgroup that grew, at the time when they left least */

    /* Events during the run. */
    uint64_t n_refusals;
    pl_fact_refusal refusal; /* the last one; process.pid 0: none */
    pl_fact_crash crash;     /* of the command, else the last; process.pid 0: none */
    pl_fact_process over;    /* passed the line and could not be refused; pid 0: none */
    uint64_t n_stopped;
    pl_fact_process stopped;       /* of the command, else the last stopped by the supervisor */
    pl_fact_process killed_worker; /* the last that SIGKILL ended, and not by us */
    uint64_t n_outside[PL_OUTSIDE_CAUSES]; /* processes that could not join, by cause */
    bool hangs;                            /* no progress was seen, and none since */
    double idle_s;
    bool lock_cycle; /* a deadlock: threads wait for each other's locks */
} pl_facts;

typedef struct pl_verdict {
    enum pl_verdict_kind kind;
    bool leaked; /* a steady rise led to it: the report shows its slope */
    char summary[768];
    int n_evidence;
    char evidence[PL_VERDICT_EVIDENCE][384]; /* strongest first */
} pl_verdict;

void pl_verdict_judge(const pl_facts *facts, pl_verdict *ret_verdict);

/* Did it wait for memory so long, or so often, that the user should act? */
bool pl_verdict_stalled(const pl_facts *facts);

/* Does the crash on record explain how the command ended? */
bool pl_verdict_crash_explains_end(const pl_facts *facts);

enum pl_holder_kind {
    PL_HOLDER_UNKNOWN, /* no place is known to hold a good part */
    PL_HOLDER_CODE,
    PL_HOLDER_MODULES, /* the import system: the code of what was imported */
    PL_HOLDER_FILE,    /* a file in memory: of a tmpfs */
    PL_HOLDER_MEMFD,   /* a file in memory, which has no name in any folder */
};

/* The place that holds most of the memory. */
typedef struct pl_holder {
    enum pl_holder_kind kind;
    char place[PL_FACT_PLACE_BYTES];
} pl_holder;

/* Advises on the next steps, most useful first: writes at most `max` lines, returns how many. */
enum { PL_ADVICE_BYTES = 384 };
int pl_advice(const pl_facts *facts, enum pl_verdict_kind kind, const pl_holder *holder,
              char (*lines)[PL_ADVICE_BYTES], int max);

/* Was the command ended for a system call that its seccomp mode forbids? */
bool pl_verdict_is_seccomp(const pl_facts *facts);

/* Returns the signal that ended the command, or its child, as a shell reports by 128+N. 0: none. */
int pl_verdict_signal(int wait_status);

/* Says in a few words why a process could not join. */
const char *pl_outside_reason(enum pl_outside_cause cause);

/* Returns "SIGKILL". Valid until the calling thread's next call. */
const char *pl_signal_name(int signal);

/* Returns "segmentation fault"; NULL for a signal that is not a fault of the program's own. */
const char *pl_signal_fault(int signal);

#endif
