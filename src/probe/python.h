/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the Python stack of a thread out of raw memory: the caller's own, or another process's. It
 * does not call into Python, takes no lock and allocates nothing, so it works inside malloc(), in a
 * signal handler, and from outside on a process that hangs. The memory may be torn or corrupt:
 * every read goes through the reader, and every length and chain is bounded.
 *
 *   reader   copies bytes from an address of the inspected process; fails instead of faulting
 *   runtime  the address of _PyRuntime there
 *   state    the address of a PyThreadState there
 *   spot     code object + instruction: names a line without decoding it, for caches
 *
 * Knows the layouts of the versions that pl_python_supported() accepts; reads nothing of others. */
#ifndef PL_PROBE_PYTHON_H
#define PL_PROBE_PYTHON_H

#include <sys/types.h>

#include "base/base.h"
#include "ledger/layout.h"

typedef struct pl_reader {
    /* 0 when all n bytes were copied, else -errno. */
    int (*peek)(const struct pl_reader *reader, uint64_t address, void *buffer, size_t n);
    pid_t pid; /* of the inspected process */
} pl_reader;

/* Copies the caller's own memory with memcpy: the fastest, for a thread that reads its own
 * state. */
extern const pl_reader pl_reader_own;

/* Reads through the kernel: fails with -EFAULT where memcpy would crash. In signal handlers, pid is
 * the caller's own; in a supervisor, the child's. */
pl_reader pl_reader_process(pid_t pid);

typedef struct pl_python {
    const pl_reader *reader;
    uint32_t version; /* PY_VERSION_HEX: 0x030b02f0 is 3.11.2 */
    uint64_t runtime;
} pl_python;

typedef struct pl_python_spot {
    uint64_t code;        /* address of the code object */
    uint64_t instruction; /* offset in it, in code units */
} pl_python_spot;

typedef struct pl_python_thread {
    uint64_t state;
    uint64_t thread_ident; /* pthread_t */
    pid_t tid;             /* the kernel's thread id; 0 where the version does not keep it */
} pl_python_thread;

bool pl_python_supported(uint32_t version);

/* Returns 0 when the memory matches the version's layout: the state of a thread, its way back to
 * its interpreter, and its innermost frame's file and function can be read. Call it once through
 * pl_reader_process before you read the same memory with pl_reader_own: a build with another layout
 * is then rejected, instead of causing a fault. The thread must not run meanwhile, unless it is the
 * caller's own. -EAGAIN: Python is not up yet; PL_EFORMAT: another layout. */
PL_MUST_CHECK int pl_python_check(const pl_python *python, uint64_t state);

/* Lists the threads of the main interpreter. Returns how many were written, at most `max`, or < 0:
 * -ENOTSUP for an unknown version, -EAGAIN before Python is up. */
PL_MUST_CHECK int pl_python_threads(const pl_python *python, pl_python_thread *threads, int max);

/* Is it a free-threaded build? It may have switched a GIL on, which makes no difference here. */
bool pl_python_is_free_threaded(const pl_python *python);

/* Does the thread of this state run Python code now? It then holds the GIL or, in a
 * free-threaded build, where many do so at once, is attached to the interpreter. False when that
 * cannot be read. */
bool pl_python_runs(const pl_python *python, uint64_t state);

/* Is a thread changing the interpreter's lists of interpreters and threads, or is that unknown? */
bool pl_python_lists_locked(const pl_python *python);

/* Lists the spots of a thread, innermost first. Returns how many were written, or < 0. */
PL_MUST_CHECK int pl_python_spots(const pl_python *python, uint64_t state, pl_python_spot *spots,
                                  int max);

/* Gives file, function and line of a spot. The function is the qualified name from 3.11 on. Of a
 * text that is too long the tail is kept, in whole characters. */
PL_MUST_CHECK int pl_python_describe(const pl_python *python, const pl_python_spot *spot,
                                     pl_python_frame *ret_frame);

/* Does both: gives the stack of a thread as frames, innermost first. */
PL_MUST_CHECK int pl_python_stack(const pl_python *python, uint64_t state, pl_python_frame *frames,
                                  int max);

/* Would an exception that is set from outside, at the end of the loop around the spot (`at_spot`:
 * the spot is that end), reach the same handler as an exception raised at the spot? Always, except
 * for a bug in 3.11 and 3.12: see handlers.c. */
bool pl_python_caught_alike(const pl_python *python, const pl_python_spot *spot, bool at_spot);

/* Does this file belong to the user, not to Python's library or an installed package? */
bool pl_python_is_users(const char *file);

/* Does it belong to Python's own library? The second: to its import system? */
bool pl_python_is_library(const char *file);
bool pl_python_is_import(const char *file);

#endif
