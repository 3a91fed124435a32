/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files of /proc about a process, each by one read(2) into a stack buffer. Never
 * allocates, so that the ledger and the guard may call it from inside malloc(). Process names are
 * parsed from the last ')' on: a program may call itself anything. */
#ifndef PL_SYS_PROC_H
#define PL_SYS_PROC_H

#include <sys/types.h>

#include "base/base.h"

typedef struct pl_proc_stat {
    char name[32];
    char state; /* R S D Z T ... */
    pid_t parent_pid;
    pid_t group_pid;
    uint64_t cpu_ticks; /* user + system, of this process alone */
    uint64_t n_threads;
    bool forked;          /* and not exec'd since: its pages are shared with its parent */
    uint64_t start_ticks; /* since boot: with the pid, it identifies a process */
} pl_proc_stat;

/* -ENOENT or -ESRCH when there is no such process; PL_EFORMAT when the kernel's text cannot be
 * parsed. */
PL_MUST_CHECK int pl_proc_stat_read(pid_t pid, pl_proc_stat *ret_stat);

/* Reads the process's first thread, /proc/PID/task/PID/stat: cpu_ticks is of that thread only, and
 * start_ticks is the same for every reader, including the process itself. For a process that
 * qemu-user runs (in a container for another processor), its own /proc/PID/stat is made up: the
 * start time is some ticks late, and a forked child has that of its parent (seen in 7.2). */
PL_MUST_CHECK int pl_proc_identity_read(pid_t pid, pl_proc_stat *ret_stat);

/* Parses the text of such a file; false when it is malformed. */
bool pl_proc_stat_parse(const char *text, pl_proc_stat *ret_stat);

/* Is the process that had this pid and start time still there? A zombie is not. start_ticks 0
 * matches any start time. */
bool pl_proc_alive(pid_t pid, uint64_t start_ticks);

typedef struct pl_proc_memory {
    uint64_t resident_bytes; /* all of RSS */
    uint64_t private_bytes;  /* RSS less what is file-backed or shared: anonymous memory */
} pl_proc_memory;

/* Reads statm: about 3 us. pid 0 is the caller. */
PL_MUST_CHECK int pl_proc_memory_read(pid_t pid, pl_proc_memory *ret_memory);

/* Returns the seccomp mode: 0 none, 1 strict, 2 a filter, 3 killed by it. Works for zombies too. */
PL_MUST_CHECK int pl_proc_seccomp_read(pid_t pid, uint32_t *ret_mode);

/* Proportional set size from smaps_rollup: pages shared by fork are counted once, but the kernel
 * walks the page tables (about 10 ms per GiB). */
PL_MUST_CHECK int pl_proc_pss_read(pid_t pid, uint64_t *ret_anonymous_bytes);

/* Do two processes share one address space, as a child of vfork() and its parent do until exec? By
 * kcmp(); where that is refused (a container's filter) or missing, judged by /proc. */
bool pl_proc_same_memory(pid_t parent, pid_t child);

/* Lists the children of all threads of a process, from /proc/PID/task/TID/children. Returns how
 * many there are; writes at most `max`. */
PL_MUST_CHECK int pl_proc_children(pid_t pid, pid_t *pids, int max);

/* Returns the inode of /proc/self/ns/pid, which names the caller's pid namespace; 0: unknown. */
uint64_t pl_proc_pid_namespace(void);

/* Copies up to n bytes of a process's memory, as far as they are mapped. Returns how many, or
 * -EFAULT when not even the first is mapped, -ESRCH if the process does not exist. Uses
 * process_vm_readv() or, where that is refused or missing (a container's filter, qemu-user),
 * /proc/PID/mem. Preserves errno: safe in malloc() and in signal handlers, also with the caller's
 * own pid. */
PL_MUST_CHECK ssize_t pl_proc_read_memory(pid_t pid, uint64_t address, void *buffer, size_t n);

/* Reads a small file of /proc or /sys whole and appends a NUL. Returns its length, cut at n - 1. */
PL_MUST_CHECK int pl_proc_read_file(const char *path, char *buffer, size_t n);

#endif
