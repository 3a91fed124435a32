/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what each thread of a process waits for, from the system call it sleeps in, and the cycle
 * of threads that wait for each other's locks.
 *
 * A cycle is only reported when it is proved. The threads are looked at one after another, so we
 * read each thread's count of voluntary switches and then its system call, and read them again, in
 * the other order, after all the locks. The kernel shows the call of a sleeping thread only, and
 * counts a switch when a thread goes to sleep: so a thread that sleeps in the same call with the
 * same count has slept all the while, and all edges of the ring stood at the same moment. The count
 * alone is not enough: a thread that woke up, and runs with the lock that it had waited for, has
 * not changed it yet. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise/inspect_private.h"
#include "sys/fixed_text.h"
#include "sys/proc.h"

enum {
    PROOF_ATTEMPTS = 3, /* a real deadlock is proved by the first: its threads never move */
    RUNNING = -2,       /* in place of a system call's number; -1 is the kernel's own "none" */
    UNREADABLE = -3,
};

typedef struct system_call {
    long number;
    uint64_t arguments[6];
    uint64_t n_switches; /* voluntary switches, before the call was read */
} system_call;

static int read_task_file(pid_t pid, pid_t tid, const char *name, char *text, size_t n)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", pid, tid, name);
    return pl_proc_read_file(path, text, n);
}

static bool read_switches(pid_t pid, pid_t tid, uint64_t *ret_n)
{
    char text[4096]; /* measured: 1,400 bytes on kernel 6.18 */
    return read_task_file(pid, tid, "status", text, sizeof text) > 0 &&
           pl_fixed_text_find_u64(text, "voluntary_ctxt_switches:", ret_n);
}

/* Reads "202 0x7ffd3c 0x80 0x2 0x0 0x0 0x0 0x7ffd10 0x7f12ab": number, arguments, stack and
 * instruction pointers; "running"; or "-1" and the pointers alone, for a thread that sleeps outside
 * of a call. */
static system_call read_call(pid_t pid, pid_t tid)
{
    system_call found = {.number = UNREADABLE};
    char text[256];
    if (read_task_file(pid, tid, "syscall", text, sizeof text) <= 0)
        return found;
    uint64_t *a = found.arguments;
    if (strncmp(text, "running", 7) == 0)
        found.number = RUNNING;
    else if (sscanf(text,
                    "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
                    &found.number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5]) < 1)
        found.number = UNREADABLE;
    return found;
}

static system_call read_counted_call(pid_t pid, pid_t tid)
{
    uint64_t n_switches;
    if (!read_switches(pid, tid, &n_switches))
        return (system_call){.number = UNREADABLE};
    system_call found = read_call(pid, tid);
    found.n_switches = n_switches;
    return found;
}

static bool read_remote(pid_t pid, uint64_t address, void *buffer, size_t n)
{
    return pl_proc_read_memory(pid, address, buffer, n) == (ssize_t)n;
}

static int find_thread(const pl_inspect_process *process, pid_t tid)
{
    for (int i = 0; i < process->n_threads; i++)
        if (process->threads[i].tid == tid)
            return i;
    return -1;
}

__attribute__((format(printf, 3, 4))) static void say(pl_inspect_thread *thread, bool outside,
                                                      const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(thread->waits_for, sizeof thread->waits_for, format, arguments);
    va_end(arguments);
    thread->waits_outside = outside;
}

/* --- descriptors --- */

/* Majors of Documentation/admin-guide/devices.txt: 4 consoles and serial lines, 5 /dev/tty, 136 to
 * 143 pseudo-terminals. */
static bool is_terminal(dev_t device)
{
    unsigned number = major(device);
    return number == 4 || number == 5 || (number >= 136 && number <= 143);
}

typedef struct descriptor_kind {
    const char *name;
    bool outside; /* another process can make it ready */
} descriptor_kind;

static descriptor_kind anonymous_kind(const char *path)
{
    char target[64] = "";
    if (readlink(path, target, sizeof target - 1) < 0)
        return (descriptor_kind){"unknown", false};
    if (strstr(target, "[eventfd]"))
        return (descriptor_kind){"an event counter", false};
    if (strstr(target, "[eventpoll]"))
        return (descriptor_kind){"an epoll set", true};
    if (strstr(target, "[timerfd]"))
        return (descriptor_kind){"a timer", true};
    return (descriptor_kind){"unknown", false};
}

static descriptor_kind describe_descriptor(pid_t pid, int fd)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    struct stat status;
    if (stat(path, &status) != 0)
        return (descriptor_kind){"closed", false};
    if (S_ISFIFO(status.st_mode))
        return (descriptor_kind){"a pipe", true};
    if (S_ISSOCK(status.st_mode))
        return (descriptor_kind){"a socket", true};
    if (S_ISCHR(status.st_mode))
        return (descriptor_kind){is_terminal(status.st_rdev) ? "a terminal" : "a device", true};
    if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode))
        return (descriptor_kind){"a file", false};
    return anonymous_kind(path);
}

static void say_descriptor(pl_inspect_thread *thread, pid_t pid, const char *words, int fd)
{
    descriptor_kind kind = describe_descriptor(pid, fd);
    say(thread, kind.outside, "%s descriptor %d (%s)", words, fd, kind.name);
}

static void say_poll(pl_inspect_thread *thread, pid_t pid, const system_call *call)
{
    struct pollfd only;
    uint64_t n = call->arguments[1];
    if (n == 0)
        say(thread, true, "a timer");
    else if (n == 1 && read_remote(pid, call->arguments[0], &only, sizeof only))
        say_descriptor(thread, pid, only.events & POLLIN ? "input on" : "an event on", only.fd);
    else
        say(thread, true, "any of %" PRIu64 " descriptors", n);
}

static void say_select(pl_inspect_thread *thread, const system_call *call)
{
    if (call->arguments[0] == 0)
        say(thread, true, "a timer");
    else
        say(thread, true, "any of several descriptors");
}

static void say_child(pl_inspect_thread *thread, int pid)
{
    if (pid > 0)
        say(thread, true, "child process %d", pid);
    else
        say(thread, true, "a child process");
}

/* --- futexes --- */

/* The first fields of glibc's pthread_mutex_t on 64-bit machines. */
typedef struct mutex_words {
    uint32_t lock;
    uint32_t count;
    int32_t owner;
    uint32_t n_users;
    uint32_t kind;
} mutex_words;

/* All bits that glibc sets: type 0-3, robust, priority, shared, elision. */
static const uint32_t mutex_kinds = 0x3ff;

/* glibc waits with 2 for a normal mutex and with the owner's tid for a robust one; the kernel
 * itself waits for one with priority inheritance. */
static bool is_mutex_wait(uint64_t command, uint32_t expected, const mutex_words *mutex)
{
    if (mutex->kind & ~mutex_kinds || mutex->lock == 0)
        return false;
    if (command == FUTEX_LOCK_PI)
        return true;
    return expected == 2 || expected == (FUTEX_WAITERS | (uint32_t)mutex->owner);
}

static void say_owner(pl_inspect_thread *thread, uint64_t address, pid_t owner)
{
    thread->lock_owner_tid = owner;
    thread->lock_address = address;
    if (owner == thread->tid)
        say(thread, false, "a lock that it holds itself");
    else
        say(thread, false, "a lock held by thread %d", owner);
}

/* Returns the thread that pthread_join() waits for; 0: this is another wait, or the thread is not
 * found.
 *
 * With glibc 2.41 the futex is the thread's tid itself, which the kernel zeroes when the thread
 * ends. With 2.43 it is `joinstate` in the same `struct pthread`, which is 2 while the thread runs
 * (x86-64: joinstate at 0x628, tid at 0x2d0). Offsets change between versions, so we search the
 * words before joinstate for a tid of this process, and give up if two different ones are there.
 * Only this wait of glibc has no time limit, uses FUTEX_WAIT_BITSET, and is not private. */
static pid_t joined_thread(const pl_inspect_process *process, pid_t waiter, const system_call *call,
                           uint32_t now)
{
    enum { RUNS = 2, WORDS_BEFORE = 512 };
    uint32_t expected = (uint32_t)call->arguments[2];
    if (now != expected)
        return 0;
    if (find_thread(process, (pid_t)expected) >= 0)
        return (pid_t)expected;
    if (expected != RUNS || call->arguments[3] != 0 ||
        call->arguments[1] != (FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME))
        return 0;
    uint32_t words[WORDS_BEFORE];
    if (!read_remote(process->pid, call->arguments[0] - sizeof words, words, sizeof words))
        return 0;
    pid_t found = 0;
    for (size_t i = 0; i < PL_COUNT_OF(words); i++) {
        pid_t tid = (pid_t)words[i];
        if (tid <= 0 || tid == waiter || tid == found || find_thread(process, tid) < 0)
            continue;
        if (found)
            return 0;
        found = tid;
    }
    return found;
}

/* A mutex names its owner, and a join the thread that it waits for. Conditions, semaphores and
 * Python's locks have no owner. */
static void say_futex(pl_inspect_thread *thread, const pl_inspect_process *process,
                      const system_call *call)
{
    uint64_t address = call->arguments[0];
    uint64_t command = call->arguments[1] & FUTEX_CMD_MASK;
    uint32_t expected = (uint32_t)call->arguments[2];
    mutex_words words = {0};
    pid_t joined = 0;
    bool whole = read_remote(process->pid, address, &words, sizeof words);
    if (whole && is_mutex_wait(command, expected, &words) &&
        find_thread(process, words.owner) >= 0) {
        say_owner(thread, address, words.owner);
    } else if (command != FUTEX_LOCK_PI && whole &&
               (joined = joined_thread(process, thread->tid, call, words.lock)) > 0) {
        thread->lock_owner_tid = joined;
        say(thread, false, "the end of thread %d", (int)joined);
    } else if (command == FUTEX_LOCK_PI || expected == 2) {
        thread->lock_address = address;
        say(thread, false, "a lock");
    } else {
        say(thread, false, "a condition or semaphore");
    }
}

/* --- system calls --- */

typedef enum wait_kind {
    WAIT_INSIDE,     /* the words say it all */
    WAIT_OUTSIDE,    /* the same, and another process ends it */
    WAIT_DESCRIPTOR, /* the first argument is one */
    WAIT_POLL,
    WAIT_SELECT,
    WAIT_CHILD,
    WAIT_CHILD_ID, /* waitid: id type, then id */
    WAIT_FUTEX,
} wait_kind;

static const struct wait_rule {
    long number;
    wait_kind kind;
    const char *words;
} wait_rules[] = {
    {SYS_futex, WAIT_FUTEX, NULL},
    {SYS_read, WAIT_DESCRIPTOR, "input on"},
    {SYS_readv, WAIT_DESCRIPTOR, "input on"},
    {SYS_pread64, WAIT_DESCRIPTOR, "input on"},
    {SYS_recvfrom, WAIT_DESCRIPTOR, "input on"},
    {SYS_recvmsg, WAIT_DESCRIPTOR, "input on"},
    {SYS_write, WAIT_DESCRIPTOR, "room for output on"},
    {SYS_writev, WAIT_DESCRIPTOR, "room for output on"},
    {SYS_pwrite64, WAIT_DESCRIPTOR, "room for output on"},
    {SYS_sendto, WAIT_DESCRIPTOR, "room for output on"},
    {SYS_sendmsg, WAIT_DESCRIPTOR, "room for output on"},
    {SYS_accept, WAIT_DESCRIPTOR, "a connection on"},
    {SYS_accept4, WAIT_DESCRIPTOR, "a connection on"},
    {SYS_connect, WAIT_DESCRIPTOR, "a connection by"},
    {SYS_fsync, WAIT_DESCRIPTOR, "the disk, to sync"},
    {SYS_fdatasync, WAIT_DESCRIPTOR, "the disk, to sync"},
    {SYS_epoll_pwait, WAIT_DESCRIPTOR, "events on"},
#ifdef SYS_epoll_wait /* the older calls, which newer architectures do without */
    {SYS_epoll_wait, WAIT_DESCRIPTOR, "events on"},
    {SYS_poll, WAIT_POLL, NULL},
    {SYS_select, WAIT_SELECT, NULL},
    {SYS_pause, WAIT_OUTSIDE, "a signal"},
#endif
    {SYS_ppoll, WAIT_POLL, NULL},
    {SYS_pselect6, WAIT_SELECT, NULL},
    {SYS_wait4, WAIT_CHILD, NULL},
    {SYS_waitid, WAIT_CHILD_ID, NULL},
    {SYS_nanosleep, WAIT_OUTSIDE, "a timer"},
    {SYS_clock_nanosleep, WAIT_OUTSIDE, "a timer"},
    {SYS_restart_syscall, WAIT_OUTSIDE, "a timer, or something with a time limit"},
    {SYS_rt_sigsuspend, WAIT_OUTSIDE, "a signal"},
    {SYS_rt_sigtimedwait, WAIT_OUTSIDE, "a signal"},
    {SYS_flock, WAIT_DESCRIPTOR, "a file lock on"},
    {SYS_fcntl, WAIT_DESCRIPTOR, "a file lock on"},
    {SYS_openat, WAIT_INSIDE, "a file to open"},
    {SYS_semtimedop, WAIT_INSIDE, "a System V semaphore"},
    {SYS_msgrcv, WAIT_INSIDE, "a System V message"},
    {SYS_io_getevents, WAIT_OUTSIDE, "asynchronous input or output"},
    {SYS_io_uring_enter, WAIT_OUTSIDE, "asynchronous input or output"},
};

static const struct wait_rule *find_rule(long number)
{
    for (size_t i = 0; i < PL_COUNT_OF(wait_rules); i++)
        if (wait_rules[i].number == number)
            return &wait_rules[i];
    return NULL;
}

static void say_call(pl_inspect_thread *thread, const pl_inspect_process *process,
                     const system_call *call)
{
    const struct wait_rule *rule = find_rule(call->number);
    if (!rule) {
        say(thread, false, "system call %ld", call->number);
        return;
    }
    int first = (int)call->arguments[0];
    switch (rule->kind) {
    case WAIT_INSIDE:
    case WAIT_OUTSIDE:
        say(thread, rule->kind == WAIT_OUTSIDE, "%s", rule->words);
        break;
    case WAIT_DESCRIPTOR:
        say_descriptor(thread, process->pid, rule->words, first);
        break;
    case WAIT_POLL:
        say_poll(thread, process->pid, call);
        break;
    case WAIT_SELECT:
        say_select(thread, call);
        break;
    case WAIT_CHILD:
        say_child(thread, first);
        break;
    case WAIT_CHILD_ID:
        say_child(thread, first == P_PID ? (int)call->arguments[1] : 0);
        break;
    case WAIT_FUTEX:
        say_futex(thread, process, call);
        break;
    }
}

static void say_wait(pl_inspect_thread *thread, const pl_inspect_process *process,
                     const system_call *call)
{
    thread->lock_owner_tid = 0;
    thread->lock_address = 0;
    if (call->number == RUNNING)
        say(thread, false, "nothing: it runs");
    else if (call->number == UNREADABLE)
        say(thread, false, "unknown");
    else if (call->number < 0)
        say(thread, false, "the kernel, outside of a system call");
    else
        say_call(thread, process, call);
}

/* --- the ring --- */

/* Follows the ring through thread `first`, if there is one: gives its length, and the indices in
 * order. */
static int follow(const pl_inspect_process *process, int first, int ring[PL_INSPECT_CYCLE])
{
    int at = first;
    for (int n = 0; n < PL_INSPECT_CYCLE;) {
        ring[n++] = at;
        pid_t next = process->threads[at].lock_owner_tid;
        at = next > 0 ? find_thread(process, next) : -1;
        if (at == first)
            return n;
        if (at < 0)
            return 0;
    }
    return 0;
}

/* Has it not moved since its call was read? */
static bool has_slept(pid_t pid, pid_t tid, const system_call *before)
{
    uint64_t n_switches;
    system_call now = read_call(pid, tid);
    return now.number == before->number &&
           memcmp(now.arguments, before->arguments, sizeof now.arguments) == 0 &&
           read_switches(pid, tid, &n_switches) && n_switches == before->n_switches;
}

static bool all_slept(const pl_inspect_process *process, const system_call *calls, const int *ring,
                      int n)
{
    for (int i = 0; i < n; i++)
        if (!has_slept(process->pid, process->threads[ring[i]].tid, &calls[ring[i]]))
            return false;
    return true;
}

/* True when the question is settled: there is no cycle, or one that is proved. */
static bool find_cycle(pl_inspect_process *process, const system_call *calls)
{
    bool doubt = false;
    for (int i = 0; i < process->n_threads; i++) {
        int ring[PL_INSPECT_CYCLE];
        int n = follow(process, i, ring);
        if (n == 0)
            continue;
        if (!all_slept(process, calls, ring, n)) {
            doubt = true;
            continue;
        }
        for (int j = 0; j < n; j++)
            process->cycle[j] = process->threads[ring[j]].tid;
        process->n_cycle = n;
        return true;
    }
    return !doubt;
}

void pl_locks_read(pl_inspect_process *process)
{
    process->n_cycle = 0;
    system_call *calls = calloc((size_t)process->n_threads, sizeof *calls);
    if (!calls)
        return;
    for (int attempt = 0; attempt < PROOF_ATTEMPTS; attempt++) {
        for (int i = 0; i < process->n_threads; i++)
            calls[i] = read_counted_call(process->pid, process->threads[i].tid);
        for (int i = 0; i < process->n_threads; i++)
            say_wait(&process->threads[i], process, &calls[i]);
        if (find_cycle(process, calls))
            break;
    }
    free(calls);
}
