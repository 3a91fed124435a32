/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the inspect_*.c files, and included by no others: how they open libdw, name an address,
 * and walk a thread. */
#ifndef PL_SUPERVISE_INSPECT_PRIVATE_H
#define PL_SUPERVISE_INSPECT_PRIVATE_H

#include <elfutils/libdwfl.h>

#include "supervise/inspect.h"

/* inspect_symbols.c */

/* A new libdw state that asks no server; NULL when memory is short. */
Dwfl *pl_symbols_begin(void);
void pl_symbols_endp(Dwfl **dwfl);

/* Fills every field of `frame` for the code at `address`. A return address is looked up one byte
 * before itself: the call it follows may be the last instruction of its function or line. */
void pl_symbols_name(Dwfl *dwfl, uint64_t address, bool is_return, pl_native_frame *frame);

/* Copies bytes that no process can have changed: those of a module's read-only segments. */
bool pl_symbols_read(Dwfl *dwfl, uint64_t address, void *buffer, size_t n);

/* inspect_unwind.c */

/* The frames of a thread, without names: quick to collect, so that a live thread is stopped only
 * briefly. */
typedef struct pl_unwound {
    int n;
    uint64_t addresses[PL_NATIVE_FRAMES]; /* innermost first */
    bool is_return[PL_NATIVE_FRAMES];
} pl_unwound;

/* Adds the frames of an attached thread. `first_is_return` says that the thread's registers were
 * set one byte before a return address. */
void pl_unwind_thread(Dwfl *dwfl, pid_t tid, bool first_is_return, pl_unwound *unwound);
void pl_unwound_name(Dwfl *dwfl, const pl_unwound *unwound, pl_native_stack *ret_stack);

/* inspect_locks.c */

/* Fills waits_for, lock_* and waits_outside of each thread, and the cycle. Call it while the
 * threads run: a stopped one no longer shows its system call. */
void pl_locks_read(pl_inspect_process *process);

#endif
