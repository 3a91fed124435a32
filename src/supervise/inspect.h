/* SPDX-License-Identifier: Apache-2.0 */
/* Finds native stacks, symbols, instructions and locks of a dead or hanging process. The only users
 * of libdw, libiberty and capstone. Allocates; runs in the supervisor and in `explain` only, never
 * in the inspected process. Everything degrades: a frame without a name keeps its module and
 * offset, a stack that cannot be read is empty, and no input, however corrupt, crashes it. Nothing
 * is looked up beyond this machine's files. No state is kept between calls. */
#ifndef PL_SUPERVISE_INSPECT_H
#define PL_SUPERVISE_INSPECT_H

#include <sys/types.h>

#include "base/base.h"
#include "ledger/layout.h"

enum { PL_NATIVE_FRAMES = 48, PL_INSPECT_THREADS = 256, PL_INSPECT_CYCLE = 64 };

typedef struct pl_native_frame {
    uint64_t address; /* as seen in the process; 0 where only module and offset are known */
    uint64_t offset;  /* in the module: the address less the load bias, as addr2line wants it */
    char module[256]; /* path of the ELF file; "" = unknown */
    char symbol[256]; /* demangled where C++; "" = unknown */
    char source[160]; /* "file.c:12" where there is debug information, else "" */
} pl_native_frame;

typedef struct pl_native_stack {
    int n_frames;
    pl_native_frame frames[PL_NATIVE_FRAMES]; /* innermost first */
} pl_native_stack;

/* Unwinds the crashed thread from its registers and the copy of its stack in
 * `record_directory`/crash.PID (maps text, then stack bytes; see pl_crash). The stack ends where
 * the next caller cannot be proved: frames are never guessed. */
PL_MUST_CHECK int pl_inspect_crash(const pl_crash *crash, const char *record_directory,
                                   pl_native_stack *ret_stack, pl_error *reterr);

/* Names module + offset of sampled frames; fills symbol and source of each. The offsets are those
 * of return addresses: the call before them is what gets the name. */
void pl_inspect_symbols(pl_native_frame *frames, size_t n);
void pl_inspect_symbol(pl_native_frame *frame);

/* Writes the C++ name of a mangled type ("St9bad_alloc": "std::bad_alloc"), or the text itself when
 * it is not a mangled type. Always NUL-terminated. */
void pl_inspect_type_name(const char *mangled, char *name, size_t n);

typedef struct pl_inspect_thread {
    pid_t tid;
    char name[16];
    char waits_for[96];   /* in words: "a lock held by thread 4123", "input on descriptor 0", ... */
    pid_t lock_owner_tid; /* the thread that must move first: owner of the pthread mutex that it
                             waits for, or the thread that it joins; else 0 */
    uint64_t lock_address; /* of that mutex */
    bool waits_outside;    /* on a terminal, socket, pipe, child or timer: not stuck on itself */
    pl_native_stack native;
    int n_python_frames;
    pl_python_frame python[PL_PYTHON_FRAMES];
} pl_inspect_thread;

typedef struct pl_inspect_process {
    pid_t pid;
    int n_threads;
    pl_inspect_thread *threads;    /* ours: pl_inspect_process_done() frees them */
    int n_cycle;                   /* threads of a proved deadlock; 0: none */
    pid_t cycle[PL_INSPECT_CYCLE]; /* each waits for the next, the last for the first */
} pl_inspect_process;

/* Looks at every thread of a live process. python_* as in its slot; 0 when it has none. All threads
 * are stopped together while they are unwound, by ptrace and without a signal; a system call that
 * is never restarted (epoll_wait) then returns EINTR. Where ptrace is refused, native stacks are
 * empty. The exit status of a process that ends meanwhile is left for its parent. */
PL_MUST_CHECK int pl_inspect_live(pid_t pid, uint32_t python_version, uint64_t python_runtime,
                                  pl_inspect_process *ret_process, pl_error *reterr);
void pl_inspect_process_done(pl_inspect_process *process);

typedef struct pl_instruction {
    char text[96];    /* "vaddps zmm0, zmm1, zmm2"; "" when it cannot be decoded */
    char set[32];     /* "AVX-512F", "AVX2", "FMA" ...; "" = not a known extension */
    bool deliberate;  /* ud2 and friends: the program trapped itself */
    bool cpu_has_set; /* does this machine's CPU offer it? meaningful when set is not "" */
} pl_instruction;

/* Decodes the bytes at which SIGILL stopped. If they need several sets, names the one that this CPU
 * lacks. -ENODATA without bytes. */
PL_MUST_CHECK int pl_inspect_instruction(const uint8_t *bytes, size_t n, pl_instruction *ret);

#endif
