/* SPDX-License-Identifier: Apache-2.0 */
/* The guard: a preloaded library that keeps unmodified programs within the line.
 *
 *   small     a request under PL_LARGE_BYTES. Never claimed by itself: it lowers the thread's
 *             countdown by its size, and only when that runs out does the guard read what the
 *             process really uses. The nearer the line, the shorter the countdown.
 *   large     a request of PL_LARGE_BYTES or more from the malloc family. Claimed in full before it
 *             is made, and refused with ENOMEM if that would exceed the line.
 *   look      reads what the process has resident and charges what no claim covers as measured
 *   tracked   a block that the guard must recognise when it is freed: large, or sampled
 *   sampled   a block whose allocation ran a countdown out. It represents the mean distance between
 *             two samples, or its own size if that is larger.
 *   inside    this thread is in the guard's own slow path: what it allocates passes through
 *   outsider  a process of the run that could not join: all passes through, and the supervisor
 *             watches it. Memory that it inherited by fork stays its parent's, in the ledger too.
 *             The ledger counts outsiders by cause; one that only lacked descriptors tries again.
 *
 * Rules: no allocation, no lock, no stdio on any path that malloc() can reach. errno is the real
 * allocator's. The allocator's state is not changed while there is no pressure.
 *
 * The files: entry.c (the interposed symbols), real.c (the functions beneath them), tracked_block.c
 * (tracked blocks), line.c (look, relieve, refuse), runtime.c (services for plimsoll's runtime),
 * handling.c (room for handling an exception), callsite.c (the code that makes a request),
 * interpreter.c (exceptions in Python), kernel.c (a notebook kernel's own work), crash.c and
 * exception.c (the crash record of a dying process), start.c (joining, fork), notebook.c (the
 * functions for a notebook kernel, see notebook.h). */
#ifndef PL_GUARD_GUARD_H
#define PL_GUARD_GUARD_H

#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/base.h"
#include "ledger/ledger.h"

#define PL_HIDDEN __attribute__((visibility("hidden")))
#define PL_TLS    _Thread_local PL_HIDDEN __attribute__((tls_model("initial-exec")))

/* The size from which requests are refused: NumPy, pandas and PyTorch turn NULL for an array into
 * an exception; for smaller requests too much code ignores NULL. */
#define PL_LARGE_BYTES PL_MIB

/* The most that a thread may ask for in small requests before the guard looks: half of the large
 * size, so that no large request can hide inside a countdown. It is the mean distance of the
 * samples as well; tcmalloc and jemalloc sample at the same. */
#define PL_COUNTDOWN_BYTES (512 * PL_KIB)

typedef struct pl_guard_thread {
    uint64_t countdown;     /* small bytes until the slow path; 0 in a new thread */
    uint64_t granted;       /* what countdown was set to last; 0 in a new thread */
    uint64_t mean;          /* the mean it was drawn about */
    uint64_t over_bytes;    /* small bytes asked for while over the line */
    uint64_t refused_bytes; /* over_bytes when this thread was last refused a small request */
    uint64_t over_number;   /* which excursion over the line over_bytes belongs to */
    uint64_t refused_at;    /* charged when the last exception began here; 0: it was handled */
    uint64_t refused_code;  /* pl_callsite_code() at that time */
    uint32_t random;
    uint32_t n_held;       /* held locks that making room needs: ledger/guarded.h */
    uint64_t set_aside;    /* the countdown, while is_arena_refused */
    bool is_arena_refused; /* refuse the malloc() that pymalloc falls back to */
    bool is_raising;       /* an asynchronous exception was set and not cancelled */
    bool inside;
    bool ready;
} pl_guard_thread;

extern PL_TLS pl_guard_thread pl_thread;

/* One per process; constant once `ledger` is set, except where said. */
typedef struct pl_guard {
    pl_ledger *ledger; /* NULL: not in a run, or an outsider: everything passes through */
    pl_ledger *run;    /* the same; in an outsider, the ledger that it could not join */
    pl_owner owner;
    pid_t pid;
    uint32_t generation;           /* raised in each forked child: older blocks are the parent's */
    uint64_t fork_bytes;           /* anonymous memory inherited by fork, shared with the parent */
    bool refuses;                  /* not --observe */
    bool sparse;                   /* large requests count when touched */
    char program[PATH_MAX];        /* path of the executable: the loader calls it "" */
    char directory[PATH_MAX];      /* of the run's record; "": not known */
    pl_atomic_u64 spent_bytes;     /* by small requests and mappings, of all threads */
    pl_atomic_u64 look_at;         /* spent_bytes at which to look next */
    pl_atomic_u64 over_number;     /* counts excursions over the line; odd while over it */
    pl_atomic_u64 raised_at;       /* charged when an exception was last raised; 0: not this time */
    pl_atomic_u64 reported_number; /* the last excursion that was put into the record */
    pl_atomic_u64 trimmed_ns;      /* when memory was last given back */
    pl_atomic_u64 trim_cost_ns;    /* how long that took */
    pl_atomic_u64 freed_bytes;     /* of large blocks, since then */
    pl_atomic_u64 n_gives_begun, n_gives_ended; /* of tracked memory: a look should not meet one */
    _Atomic bool trim_due; /* the line was passed: freed memory must go back to the system */
    pl_atomic_u32 call;    /* the ledger's, when we last applied it */
} pl_guard;

extern PL_HIDDEN pl_guard pl_guard_state;

/* ---- real.c: the functions beneath, found with RTLD_NEXT ---- */

/* One line per interposed symbol. tests/symbols checks the exports against it. */
#define PL_REAL_FUNCTIONS(X)                                                                       \
    X(malloc, void *, (size_t size))                                                               \
    X(free, void, (void *block))                                                                   \
    X(calloc, void *, (size_t count, size_t size))                                                 \
    X(realloc, void *, (void *block, size_t size))                                                 \
    X(posix_memalign, int, (void **ret_block, size_t alignment, size_t size))                      \
    X(aligned_alloc, void *, (size_t alignment, size_t size))                                      \
    X(memalign, void *, (size_t alignment, size_t size))                                           \
    X(valloc, void *, (size_t size))                                                               \
    X(pvalloc, void *, (size_t size))                                                              \
    X(mmap, void *, (void *address, size_t n, int protection, int flags, int fd, off_t offset))    \
    X(mremap, void *, (void *old, size_t old_n, size_t new_n, int flags, void *to))                \
    X(munmap, int, (void *address, size_t n))                                                      \
    X(pthread_create, int,                                                                         \
      (pthread_t * ret_thread, const pthread_attr_t *attributes, void *(*routine)(void *),         \
       void *argument))                                                                            \
    X(_exit, void, (int status))

typedef struct pl_real_functions {
#define PL_REAL_FIELD(name, result, parameters) result(*name) parameters;
    PL_REAL_FUNCTIONS(PL_REAL_FIELD)
#undef PL_REAL_FIELD
    int (*malloc_trim)(size_t pad);                                 /* glibc; NULL beneath others */
    int (*mallctl)(const char *, void *, size_t *, void *, size_t); /* jemalloc */
    void (*release_free_memory)(void);                              /* tcmalloc */
    uintptr_t allocator_low;  /* where the allocator's code lies: its own mappings */
    uintptr_t allocator_high; /* are not counted */
} pl_real_functions;

/* Before pl_real_resolve() every pointer leads to a function that resolves first. */
extern PL_HIDDEN pl_real_functions pl_real;

PL_HIDDEN void pl_real_resolve(void);

/* Blocks handed out while dlsym() itself asked for memory: they are never freed. */
PL_HIDDEN bool pl_bootstrap_owns(const void *block);
PL_HIDDEN size_t pl_bootstrap_bytes(const void *block);

/* Makes the allocator give unused memory back to the system. */
PL_HIDDEN void pl_real_trim(void);

/* ---- tracked_block.c: tracked blocks ---- */

typedef struct pl_tracked_block {
    uint64_t claimed_bytes; /* charged to us for this block; 0: only sampled */
    uint64_t weight_bytes;  /* the bytes that it represents in its site */
    pl_site *site;          /* NULL: unattributed */
    uint32_t generation;
    uint32_t
        large_place; /* 1 + its place among the large blocks, by pl_tracked_block_add(); 0: none */
} pl_tracked_block;

/* One counter per page (modulo the table): does a tracked block begin there? free() reads this and,
 * nearly always, nothing else. */
enum { PL_FILTER_PAGES = 1 << 20 };
extern PL_HIDDEN _Atomic uint8_t pl_tracked_block_filter[PL_FILTER_PAGES];

static inline size_t pl_filter_index(const void *block)
{
    return ((uintptr_t)block >> 12) & (PL_FILTER_PAGES - 1);
}

static inline bool pl_tracked_block_maybe(const void *block)
{
    return atomic_load_explicit(&pl_tracked_block_filter[pl_filter_index(block)],
                                memory_order_relaxed);
}

/* Marks pages that free() must always look at (the bootstrap pool's). */
PL_HIDDEN void pl_filter_add(const void *block);

/* False when the table is full: the block then stays untracked. */
PL_HIDDEN bool pl_tracked_block_add(void *address, const pl_tracked_block *block);

/* Looks a block up, or takes it out of the table. False: it is not tracked. A block that was taken
 * still counts with what it has touched, until pl_tracked_block_end(). */
PL_HIDDEN bool pl_tracked_block_find(const void *address, pl_tracked_block *ret_block);
PL_HIDDEN bool pl_tracked_block_take(const void *address, pl_tracked_block *ret_block);
PL_HIDDEN void pl_tracked_block_end(const pl_tracked_block *block);

/* Gives a tracked block to another site. The caller updates both sites. */
PL_HIDDEN bool pl_tracked_block_change_site(const void *address, pl_site *site,
                                            pl_tracked_block *ret_before);

/* Bytes of large, claimed blocks that have been touched: as they are now if `exactly`, or as of the
 * last walk that was worth its cost. Updates the sites on the way. */
PL_HIDDEN uint64_t pl_tracked_block_touched_bytes(bool exactly);

/* ---- line.c ---- */

enum pl_small_kind {
    PL_SMALL_PLAIN,
    PL_SMALL_MAPPING, /* mmap() by the interpreter, for its small objects */
    PL_SMALL_FOREIGN, /* any other mmap(): never refused */
};

/* A small request of `bytes` ran the countdown out. Looks if that is due, raises an exception if it
 * must, and restarts the countdown. False: refuse this request. *ret_weight is what the request
 * represents as a sample, 0 when it is not one. */
PL_HIDDEN bool pl_line_small(uint64_t bytes, enum pl_small_kind kind, uint64_t *ret_weight);

/* Claims `bytes` for a large request of `asked_bytes` (less, if a block grows). False: refused;
 * errno is ENOMEM and the event is in the ledger. */
PL_HIDDEN bool pl_line_claim(uint64_t bytes, uint64_t asked_bytes);
PL_HIDDEN void pl_line_release(uint64_t bytes);

/* Claims `bytes` for plimsoll's runtime, without a refusal: it can move tensors out first. */
PL_HIDDEN bool pl_line_claim_if_room(uint64_t bytes, enum pl_claim_kind kind);

/* Enclose every call that gives tracked memory back to the system. A look in between would charge
 * memory that is no longer claimed and not yet gone. */
PL_HIDDEN void pl_line_begin_give(void);
PL_HIDDEN void pl_line_end_give(void);

/* Call it when a tracked block was freed. */
PL_HIDDEN void pl_line_freed(void);

/* For requests that are not claimed: refuses (false) when the line has been passed already. */
PL_HIDDEN bool pl_line_room(uint64_t bytes);

/* Is this mapping more than the whole line? Then it is refused, as pl_line_claim does, unless the
 * caller has asked for the same several times in a row. */
PL_HIDDEN bool pl_line_fits(uint64_t bytes, const void *caller);

/* Call it when this thread got an exception for the small requests that it made over the line. */
PL_HIDDEN void pl_line_raised(void);

/* The system refused what the line had room for: RLIMIT_AS, RLIMIT_DATA or its overcommit. */
PL_HIDDEN void pl_line_denied(uint64_t bytes);

/* Reads what the process uses and charges it. */
PL_HIDDEN void pl_line_look(void);
PL_HIDDEN void pl_line_look_exactly(void); /* and what is touched, now */

/* ---- entry.c, called by runtime.c ---- */

/* The slow path begins and ends: the thread is inside, and cannot be cancelled. */
PL_HIDDEN int pl_guard_enter(void);
PL_HIDDEN void pl_guard_leave(int cancel);

/* Tracks `data` from here on, for the code that `caller` returns to. */
PL_HIDDEN void pl_guard_track(void *data, uint64_t bytes, uint64_t claimed, const void *caller);

/* Moves a tracked block from its site to `site`; NULL: to no site. */
PL_HIDDEN void pl_guard_change_site(void *data, pl_site *site);

/* ---- handling.c ---- */

/* Call it when an exception begins in this thread: memory was refused, or the guard raised one. */
PL_HIDDEN void pl_handling_begin(void);

/* Call it when the exception was handled: the caller knows, or the freed memory shows it. */
PL_HIDDEN void pl_handling_end(void);
PL_HIDDEN void pl_handling_look(void);

/* Is this thread still handling an exception, or doing the interpreter's own work? Then the guard
 * raises none. */
PL_HIDDEN bool pl_handling_is_under_way(void);

/* Is this the interpreter's own work, for which small requests are not refused? */
PL_HIDDEN bool pl_handling_is_spared(void);

/* Is a large request of `bytes` part of such work, and does it fit into the reserve's share for
 * that? */
PL_HIDDEN bool pl_handling_needs(uint64_t bytes);

/* ---- callsite.c ---- */

/* The code that this thread runs belongs to this, judged by its innermost frame. */
enum pl_worker {
    PL_WORKER_UNKNOWN,     /* no Python code, or the stack cannot be read */
    PL_WORKER_PROGRAM,     /* the user's, or an installed package's */
    PL_WORKER_LIBRARY,     /* the library's, called by the program */
    PL_WORKER_INTERPRETER, /* the import system's, or the library's own work */
};
PL_HIDDEN enum pl_worker pl_callsite_worker(void);

/* The site of the caller, for `weight` bytes. */
PL_HIDDEN pl_site *pl_callsite_find(const void *return_address);

/* Finds the line of the user's Python code, for an event. Leaves the frame empty if there is
 * none. */
PL_HIDDEN void pl_callsite_python(pl_python_frame *ret_frame);

/* Does this thread run the user's own Python code, among its innermost frames? */
PL_HIDDEN bool pl_callsite_is_users(void);

/* Is this thread's innermost Python code that of ipykernel, which takes what a cell prints? */
PL_HIDDEN bool pl_callsite_is_output(void);

/* Would an exception from outside be caught where it should, in the innermost `n_frames`? */
PL_HIDDEN bool pl_callsite_catches(int n_frames, bool at_spot);

/* May this thread be given an asynchronous exception? It must hold the GIL, and the lock that
 * setting one takes must be free. */
PL_HIDDEN bool pl_callsite_may_interrupt(void);

/* The address of the code object that this thread runs; 0: none. */
PL_HIDDEN uint64_t pl_callsite_code(void);

/* Copies the whole Python stack of this thread, without a read that could fault: for crash.c. */
PL_HIDDEN int pl_callsite_python_stack(pl_python_frame *frames, int max);

/* ---- interpreter.c ---- */

PL_HIDDEN void pl_interpreter_find(void); /* in start.c's constructor: it calls dlsym() */
PL_HIDDEN bool pl_interpreter_present(void);
PL_HIDDEN uint32_t pl_interpreter_version(void);
PL_HIDDEN uint64_t pl_interpreter_runtime(void);

/* This thread's PyThreadState; NULL outside Python. */
PL_HIDDEN void *pl_interpreter_thread(void);

/* Makes a MemoryError appear in this thread's Python code. False if that is impossible here. */
PL_HIDDEN bool pl_interpreter_raise(void);

/* Cancels an asynchronous exception that this thread has not seen yet. Called when a request of the
 * thread is refused: the handler of that error would meet a second one. In the main thread the
 * pending call checks this itself. */
PL_HIDDEN void pl_interpreter_take_back(void);

/* Keeps a refusal, for the text of the MemoryError that it causes. */
PL_HIDDEN void pl_interpreter_refused(const pl_event *event);

/* Writes the sentence of the last refusal in this process; "" before one. Returns as snprintf()
 * does. */
PL_HIDDEN int pl_interpreter_refusal(char *text, size_t size);

/* Is this an address of the interpreter's own code, not of one of its modules? */
PL_HIDDEN bool pl_interpreter_calls(const void *return_address);

/* Is this a build without a GIL? Its objects come from mimalloc, which it includes. */
PL_HIDDEN bool pl_interpreter_is_free_threaded(void);

/* ---- exception.c ---- */

/* The type_info of the C++ exception that ends this thread, whose stack begins there; NULL: none.
 */
PL_HIDDEN const void *pl_exception_type(uint64_t stack_pointer);

/* ---- kernel.c ---- */

/* Called before the first cell: the threads that exist now are the kernel's own. */
PL_HIDDEN void pl_kernel_note_threads(void);

/* Called in the main thread when a cell's code begins to run, or has ended. */
PL_HIDDEN void pl_kernel_code_runs(bool runs);

/* Does this thread of a notebook kernel do the kernel's own work now, and ask for `bytes` over the
 * line? Then we refuse no small request, and raise no exception. */
PL_HIDDEN bool pl_kernel_is_at_work(uint64_t bytes);

/* ---- crash.c, start.c ---- */

PL_HIDDEN void pl_crash_install(void); /* handlers, for the process */
/* A stack for them, for this thread, whose own has `stack_bytes` (0: the usual). */
PL_HIDDEN void pl_crash_install_thread(size_t stack_bytes);
PL_HIDDEN void pl_guard_start(void);      /* joins the ledger, or tries to again */
PL_HIDDEN void pl_guard_after_fork(void); /* joins again, as another process */

/* A word that the kernel wipes in every forked child (MADV_WIPEONFORK), for every call that can
 * fork; atfork handlers see only fork(), and run after those of others, which free memory too. A
 * child of vfork() shares the word, like all other memory of the guard. */
extern PL_HIDDEN pl_atomic_u32 *pl_same_process;

static inline void pl_guard_notice_fork(void)
{
    if (PL_UNLIKELY(atomic_load_explicit(pl_same_process, memory_order_relaxed) == 0))
        pl_guard_after_fork();
}
PL_HIDDEN void pl_guard_exit(void); /* this process exits by itself */

#endif
