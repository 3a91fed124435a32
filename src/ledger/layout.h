/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a ledger file, which all processes under one line share, and which outlives them.
 *
 *   header    who runs what, under which line; constant once created, except `limit_bytes`
 *   sum       charged and peak, each on a cache line of its own
 *   slots     one per process of the tree, named by pid and start time; the lowest are used first
 *   rooms     one for each of the first slots: the bytes that its process could give back, and
 *             those that it waits for; the last one is shared by all others, which only wait
 *   events    a ring: refusals, marks, deaths; the newest PL_EVENTS are kept
 *   samples   the run's timeline; when full, every second one is dropped and the step doubles
 *   sites     sampled call sites and the bytes that they hold, per process
 *   modules   paths of the ELF files that site frames point into
 *   cells     of a notebook: when each ran, and how much it left behind; only its kernel writes
 *   crashes   written by dying processes: fixed bytes only
 *
 * Every field is fixed-width, there are no pointers, and the offsets are pinned below: a ledger is
 * read by other processes, by other builds of this version, and after a crash. Text fields end in a
 * NUL unless the writer died inside them: readers bound every read by the field's size. */
#ifndef PL_LEDGER_LAYOUT_H
#define PL_LEDGER_LAYOUT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/registers.h"

#define PL_LEDGER_MAGIC   UINT64_C(0x6c6c6f736d696c70) /* "plimsoll", little-endian */
#define PL_LEDGER_VERSION (PL_REGISTERS_MACHINE << 16 | 6u)

enum {
    PL_SLOTS = 32768, /* 4 MiB, of which only those in use are ever read */
    PL_ROOMS = 2048,
    PL_EVENTS = 1024,
    PL_SAMPLES = 4096,
    PL_SITES = 2048,
    PL_MODULES = 256,
    PL_CELLS = 512,
    PL_CELL_RUNS = 8,
    PL_CELL_FILES = 1024,
    PL_CRASHES = 8,
    PL_CRASH_COMMAND =
        PL_CRASHES - 1, /* the place of the command's own, even if others crashed before */
    PL_CRASH_LAST = PL_CRASHES - 2, /* for others, of which the first and the last are kept */
    PL_SITE_FRAMES = 8,
    PL_PYTHON_FRAMES = 24,
    PL_SPARSE_PROGRAMS = 8,
    PL_RISES = 64,
};

typedef _Atomic uint64_t pl_atomic_u64;
typedef _Atomic int64_t pl_atomic_i64;
typedef _Atomic uint32_t pl_atomic_u32;

/* Stands in place of a line: the frame is a file in memory (tmpfs, memfd), not a place in
 * source. */
#define PL_LINE_OF_FILE UINT32_MAX

/* A place in Python source. `file` keeps the path's tail when it is too long. line 0: unknown. */
typedef struct pl_python_frame {
    char file[120];
    char function[68];
    uint32_t line;
} pl_python_frame;

enum pl_run_flags {
    PL_RUN_OBSERVE = 1u << 0,        /* record and explain, refuse nothing */
    PL_RUN_SPARSE = 1u << 1,         /* large requests count when touched, not when asked for */
    PL_RUN_OWN_PRESSURE = 1u << 2,   /* stalls are those of the run's cgroup, not of the machine */
    PL_RUN_OWN_DATA_LIMIT = 1u << 3, /* data_limit_bytes was set by the supervisor */
};

/* Why a guarded process could not join: it runs, but is not watched by the guard. */
enum pl_outside_cause {
    PL_OUTSIDE_DESCRIPTORS, /* it had no free descriptor to read its identity with */
    PL_OUTSIDE_NO_PROC,     /* /proc is not mounted where it runs */
    PL_OUTSIDE_NAMESPACE,   /* its pids belong to another pid namespace */
    PL_OUTSIDE_FULL,        /* PL_SLOTS processes live */
    PL_OUTSIDE_OTHER,
    PL_OUTSIDE_CAUSES,
};

typedef struct pl_ledger_header {
    uint64_t magic;
    uint32_t version;
    uint32_t flags; /* pl_run_flags */
    uint64_t file_bytes;
    uint64_t reserve_bytes;       /* above the line: for requests that cannot safely be refused */
    uint64_t true_limit_bytes;    /* what the system would really give; set by the supervisor */
    uint64_t started_realtime_ns; /* CLOCK_REALTIME */
    uint64_t started_monotonic_ns;
    int32_t supervisor_pid;
    pl_atomic_u32 command_pid; /* 0 until started */
    uint64_t supervisor_start_ticks;
    uint64_t command_start_ticks;
    uint64_t baseline_oom_kills;    /* of the cgroup and its ancestors, see supervise/ */
    uint64_t baseline_vm_oom_kills; /* of the machine (/proc/vmstat) */
    uint64_t cgroup_limit_bytes;    /* smallest cgroup limit above us; 0 = none */
    uint64_t cgroup_id;             /* of the memory cgroup: its path may be another one's later */
    uint64_t data_limit_bytes;      /* RLIMIT_DATA of the command, at last at its end; 0 = none */
    uint64_t address_limit_bytes;   /* RLIMIT_AS of it, at its end; 0 = none */
    uint64_t steady_limit_bytes;    /* the least fixed limit: rlimits, MEM_LIMIT; 0 = none */
    uint64_t pid_namespace;         /* inode: pids of another one mean others */
    char boot_id[40];
    char limit_source[256];  /* which limit decided the true limit: "cgroup v1 /a/b" ... */
    char steady_source[160]; /* of steady_limit_bytes */
    char cgroup_path[512];   /* folder of the memory cgroup, for later readers */
    char directory[512];     /* working directory of the command */
    char command[2048];      /* argv, each argument followed by one NUL; ends with an empty one */
    char sparse_programs[PL_SPARSE_PROGRAMS][32]; /* names for which PL_RUN_SPARSE holds */

    /* The argv of the last program that the command became by exec; in the form of `command`, cut
     * to fit. Written by that program's guard; empty: there was none yet. */
    char executed[512];

    /* A notebook kernel's run (run --kernel); else empty. */
    char kernel[512];   /* its connection file: the kernel that is started after it has the same */
    char notebook[512]; /* the notebook's path, if the server passes it */
    char previous[64];  /* the run of the kernel before this one */

    /* Written by the supervisor at each sample: since the start. */
    uint64_t stalled_some_us; /* some task waited for memory (PSI) */
    uint64_t stalled_full_us; /* all of them did */
    uint64_t n_throttles;     /* a task was made to wait above memory.high */

    /* Written by the supervisor when the command ended; ended_realtime_ns last (release). */
    int32_t wait_status;  /* as waitpid gave it */
    uint32_t n_oom_kills; /* of the cgroup since the baseline */
    uint32_t n_vm_oom_kills;
    uint32_t stop_signal; /* the last signal that the supervisor passed on, or 0 */
    uint32_t
        seccomp_mode; /* of the command, from /proc: 0 none, 1 strict, 2 a filter, 3 killed by it */
    uint32_t spare;
    pl_atomic_u64 ended_realtime_ns;
} pl_ledger_header;

/* The two words that every claim touches. */
typedef struct pl_ledger_sum {
    _Alignas(64) pl_atomic_u64 limit_bytes; /* the line: the less of the next two; seldom written */
    pl_atomic_u64 wanted_bytes;             /* as the user sets it */
    pl_atomic_u64 system_bytes;             /* as cgroups allow it now; the supervisor's */
    pl_atomic_u32 cell;                     /* 1 + the place in cells[] of the one that runs */
    pl_atomic_u32 cell_number;              /* its number; both 0 between cells */
    pl_atomic_u32 kernel_pid;               /* whose cells they are; 0: no cell was begun yet */
    pl_atomic_u32 n_rises;                  /* PL_RISES-ths of the line that were ever reached */
    pl_atomic_u32 n_slots;                  /* those from here on were never used; only rises */
    pl_atomic_u32 next_look;                /* where a newcomer looks for dead owners next */
    pl_atomic_u32 n_outsiders[PL_OUTSIDE_CAUSES]; /* processes that could not join, by cause */
    _Alignas(64) pl_atomic_u64 charged_bytes;     /* sum over slots of claimed + measured */
    _Alignas(64) pl_atomic_u64 peak_bytes;        /* of charged */
    pl_atomic_u64 cell_peak_bytes;                /* of charged, since the last cell began */
    pl_atomic_u64 peak_resident_bytes;            /* of the tree, as sampled */
    pl_atomic_u64 n_refusals;
    pl_atomic_u64 n_raised; /* exceptions put into Python code */
    pl_atomic_u64 n_trims;
    pl_atomic_u32 call;    /* raised when a process is about to be refused: trim, see room.h */
    pl_atomic_u32 n_moves; /* rises while room is made for a call */
    pl_atomic_u64 next_event;
    pl_atomic_u32 settler_pid;      /* the process that compares the sum with the slots; 0: none */
    pl_atomic_u32 needs_settling;   /* odd: a process died inside an operation; only rises */
    pl_atomic_u64 sites_peak_bytes; /* charged when the sites' at_peak_bytes were taken */
    pl_atomic_u64 sites_refusal_bytes; /* and their at_refusal_bytes; 0: nothing was refused */
    pl_atomic_u64 cell_limit_bytes;    /* the line, while it is a cell's own limit; else 0 */
    pl_atomic_u32 n_rooms;             /* of rooms[], that were ever used: the first ones */
    uint32_t spare;
    _Alignas(64) pl_atomic_u64 n_samples; /* live entries of samples[] */
    pl_atomic_u64 sample_step_ns;
} pl_ledger_sum;

enum pl_slot_flags {
    PL_SLOT_PYTHON = 1u << 0,   /* the process has a Python interpreter */
    PL_SLOT_GUARDED = 1u << 1,  /* our library is in it */
    PL_SLOT_EXITED = 1u << 2,   /* it ran its exit handlers: not a sudden death */
    PL_SLOT_STOPPED = 1u << 3,  /* the supervisor stopped it for memory */
    PL_SLOT_OBSERVER = 1u << 4, /* the supervisor's own: holds what no process claimed */
    PL_SLOT_FORKED = 1u << 5,   /* forked without exec: its pages are shared with its parent */
};

/* The start time of an owner that left: it matches no process, so the slot can be reclaimed. */
#define PL_SLOT_LEFT UINT64_MAX

typedef struct pl_ledger_slot {
    _Alignas(64) pl_atomic_u32 pid; /* 0: free. Taken by compare-and-swap from 0 */
    pl_atomic_u32 flags;            /* pl_slot_flags */
    pl_atomic_u64 start_ticks;      /* see pl_proc_identity_read(); 0 while joining; PL_SLOT_LEFT */
    pl_atomic_u64 claimed_bytes;    /* exact: asked for and not yet given back */
    pl_atomic_u64 measured_bytes;   /* resident, and covered by no claim */
    pl_atomic_u64 resident_bytes;   /* last seen; for reports */
    pl_atomic_u64 peak_bytes;       /* of claimed + measured */
    pl_atomic_u64 n_begun;          /* operations of its owner, and done ones: equal at rest */
    _Alignas(64) pl_atomic_u64 n_done;
    pl_atomic_u32 n_refusals;
    pl_atomic_u32 keeper_pid; /* the process that measures it or gives it back; 0: none */
    pl_atomic_u32 parent_pid;
    uint32_t python_version; /* PY_VERSION_HEX */
    uint64_t python_runtime; /* address of _PyRuntime in that process; 0: none */
    char name[32];           /* the program, or the Python script */
} pl_ledger_slot;

enum pl_event_kind {
    PL_EVENT_NONE,
    PL_EVENT_REFUSED,       /* a request of `bytes` got ENOMEM */
    PL_EVENT_RAISED,        /* MemoryError put into a Python thread */
    PL_EVENT_REFUSED_SMALL, /* past the reserve: NULL for a small request */
    PL_EVENT_STOPPED,       /* the supervisor stopped process `pid`, which held `bytes` */
    PL_EVENT_MARK,          /* a mark of the program's own, text in where.function */
    PL_EVENT_DIED,          /* a process of the tree ended by signal `detail` */
    PL_EVENT_HANG,          /* no progress for `bytes` nanoseconds */
    PL_EVENT_OVER,          /* the line was passed by memory that nobody requested */
    PL_EVENT_ROSE,          /* one more PL_RISES-th of the line was reached, for the first time */
    PL_EVENT_LINE,          /* the line moved to limit_bytes; detail: pl_line_cause */
    PL_EVENT_DENIED,        /* the system refused `bytes` that were below the line; see below */
    PL_EVENT_INNER,         /* a run inside this one failed; see below */
};

/* Why the line moved, and the fields of PL_EVENT_LINE. */
enum pl_line_cause {
    PL_LINE_LIMIT = 1, /* `bytes` is the cgroup's limit now (0: none), where.file its path */
    PL_LINE_NEIGHBOUR, /* `bytes`: taken by others in the cgroup since the start; pid
                        * and where.function: who took most, if it can be seen */
};

typedef struct pl_event {
    pl_atomic_u64 sequence; /* 1 + its number; 0: never written; all ones: being written */
    uint64_t time_ns;       /* CLOCK_MONOTONIC */
    uint32_t kind;
    int32_t pid;
    int32_t tid;
    uint32_t detail;
    uint64_t bytes;
    uint64_t charged_bytes;
    uint64_t limit_bytes;
    pl_python_frame where;
    uint32_t cell_number; /* of the notebook cell that ran; 0: none */
    uint32_t spare;
} pl_event;

typedef struct pl_memory_sample {
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint64_t charged_bytes;
    uint64_t resident_bytes; /* of the tree: PSS where cheap, else RSS */
    uint64_t cgroup_bytes;   /* usage less file cache, less the baseline */
    uint64_t cpu_ns;         /* of the tree */
    uint32_t n_processes;
    uint32_t psi_some_ppm;    /* share of the time that some task stalled for memory, 1e-6 */
    uint64_t available_bytes; /* MemAvailable */
    uint64_t n_oom_kills;     /* as counted, not less the baseline */
} pl_memory_sample;

typedef struct pl_site_frame {
    uint64_t offset; /* from the module's load address */
    uint32_t module; /* index into modules; PL_MODULES: unknown, and offset is an address */
    uint32_t spare;
} pl_site_frame;

/* The key of a site whose process is dead: it holds nothing, and is kept for the bytes that it held
 * at the run's peak or last refusal. */
#define PL_SITE_DEAD UINT64_C(1)

/* The bytes held by blocks whose allocation was sampled here, while one cell ran or outside of any,
 * scaled up to all blocks. */
typedef struct pl_site {
    pl_atomic_u64 key;       /* hash of owner and place, written last; or PL_SITE_DEAD */
    pl_atomic_u32 owner_pid; /* 0: free. Taken by compare-and-swap from 0 */
    uint32_t n_frames;
    pl_atomic_i64 held_bytes;
    pl_atomic_i64 n_held;
    pl_atomic_u64 peak_bytes;      /* the most that this site ever held */
    pl_atomic_u64 at_peak_bytes;   /* bytes that it held when the whole run was at its peak */
    pl_atomic_i64 unclaimed_bytes; /* of held: covered by no claim, and so an estimate */
    pl_atomic_i64 untouched_bytes; /* of held: claimed, but never written to, at the last look */
    pl_atomic_u64 untouched_at_peak_bytes;
    pl_atomic_u64 at_refusal_bytes; /* bytes that it held at the last refusal in any process */
    pl_atomic_u64 untouched_at_refusal_bytes;
    pl_atomic_i64 run_bytes[2]; /* held after its cell's last run, and after the one before */
    pl_site_frame frames[PL_SITE_FRAMES]; /* innermost first; empty when python.line is known */
    pl_python_frame python;
} pl_site;

/* A notebook cell, however often it ran. One writer: the kernel's main thread. */
typedef struct pl_cell {
    pl_atomic_u64 key;           /* hash of its id; 0: free */
    pl_atomic_u32 number;        /* of its last run: In [number] */
    pl_atomic_u32 n_runs;        /* begun */
    pl_atomic_u64 started_ns;    /* CLOCK_MONOTONIC; of its last run, like all that follows */
    pl_atomic_u64 ended_ns;      /* 0 while it runs */
    pl_atomic_u64 before_bytes;  /* charged when it began */
    pl_atomic_u64 after_bytes;   /* charged when it ended */
    pl_atomic_u64 peak_bytes;    /* the most that was charged meanwhile */
    pl_atomic_u64 highest_bytes; /* the same, over all its runs */
    pl_atomic_u32 n_growing; /* runs in a row after which it held more than after the one before */
    uint32_t spare;
    pl_atomic_u64
        held_bytes[PL_CELL_RUNS]; /* bytes of its allocations, after run N: in N % PL_CELL_RUNS */
    char id[64];                  /* the notebook's own, or a hash of the source */
} pl_cell;

/* The name that tracebacks use for the source of a cell. An edited cell has one for each version of
 * its text, and so has each piece that a magic runs. */
typedef struct pl_cell_file {
    pl_atomic_u64 key;    /* hash of the name; 0: free */
    pl_atomic_u32 number; /* of the cell that ran it last */
    uint32_t spare;
} pl_cell_file;

typedef struct pl_module {
    pl_atomic_u64 key; /* hash of the path; 0: free; 1: being written */
    char path[248];
} pl_module;

enum pl_crash_state {
    PL_CRASH_FREE,
    PL_CRASH_WRITING,
    PL_CRASH_COMPLETE,
};

typedef struct pl_crash {
    pl_atomic_u32 state; /* pl_crash_state */
    int32_t pid;
    int32_t tid;
    int32_t signal;
    int32_t signal_code;
    int32_t sender_pid; /* for signals that a process sent */
    uint64_t address;   /* of the fault */
    uint64_t time_ns;
    uint64_t start_ticks;
    uint64_t registers[PL_CRASH_REGISTERS]; /* see registers.h */
    uint8_t instruction[16];
    uint32_t n_instruction_bytes;
    uint32_t n_python_frames;
    uint64_t stack_bytes;     /* copied into crash.PID, from the stack pointer on, after the maps */
    uint64_t maps_bytes;      /* text of /proc/self/maps at the head of crash.PID */
    char abort_message[256];  /* glibc's, for heap corruption and assert */
    char exception_type[128]; /* mangled C++ type of the exception in flight */
    char thread_name[16];
    pl_python_frame python[PL_PYTHON_FRAMES]; /* innermost first */
} pl_crash;

/* See ledger/room.h. Each on a cache line of its own: idle_bytes changes with every run. */
typedef struct pl_ledger_room {
    _Alignas(64) pl_atomic_u64 idle_bytes;
    pl_atomic_u64 wanted_bytes;   /* those that wait, in this process */
    pl_atomic_u64 stuck_until_ns; /* CLOCK_MONOTONIC; 0: it is not */
    pl_atomic_u32 answered;       /* a call; 0: none yet; also for missed */
    pl_atomic_u32 missed;
} pl_ledger_room;

struct pl_ledger {
    _Alignas(4096) pl_ledger_header header;
    _Alignas(4096) pl_ledger_sum sum;
    _Alignas(4096) pl_ledger_slot slots[PL_SLOTS];
    _Alignas(4096) pl_event events[PL_EVENTS];
    _Alignas(4096) pl_memory_sample samples[PL_SAMPLES];
    _Alignas(4096) pl_site sites[PL_SITES];
    pl_atomic_u32 site_cells[PL_SITES]; /* 1 + the place in cells[]; 0: no cell ran. Apart from the
                                           sites, to be walked at the end of each cell */
    _Alignas(4096) pl_module modules[PL_MODULES];
    _Alignas(4096) pl_cell cells[PL_CELLS];
    pl_cell_file cell_files[PL_CELL_FILES];
    _Alignas(4096) pl_crash crashes[PL_CRASHES];
    _Alignas(4096) pl_ledger_room rooms[PL_ROOMS];
};

enum pl_denied_limits {
    PL_DENIED_ADDRESS = 1, /* RLIMIT_AS was in force */
    PL_DENIED_DATA = 2,    /* RLIMIT_DATA was */
};

/* PL_EVENT_DENIED: `pid` made the request at `where`; detail: pl_denied_limits.
 * PL_EVENT_INNER: `pid` was its supervisor; detail: 1 + its verdict (report/verdict_kind.h, whose
 * numbers never change); where.file: its record. */
static_assert(sizeof(pl_python_frame) == 192, "shared layout");
static_assert(sizeof(pl_ledger_slot) == 128, "shared layout");
static_assert(offsetof(pl_ledger_sum, n_slots) == 40, "tests/programs/outsider.py writes it");
static_assert(offsetof(pl_ledger_sum, charged_bytes) == 128, "tests/programs/ledger.py reads it");
static_assert(sizeof(pl_ledger_room) == 64, "shared layout");
static_assert(sizeof(pl_event) == 256, "shared layout");
static_assert(sizeof(pl_memory_sample) == 64, "shared layout");
static_assert(sizeof(pl_site) == 424, "shared layout");
static_assert(sizeof(pl_module) == 256, "shared layout");
static_assert(sizeof(pl_cell) == 200, "shared layout");
static_assert(sizeof(pl_cell_file) == 16, "shared layout");
static_assert(sizeof(pl_ledger_header) <= 8192, "the header is two pages");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "atomics work between processes only when lock-free");

#endif
