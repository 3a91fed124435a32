/* SPDX-License-Identifier: Apache-2.0 */
/* See proc.h. Folders are read with getdents64, because opendir() allocates. */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sys/fixed_text.h"
#include "sys/proc.h"

enum {
    PATH_BYTES = 64,      /* "/proc/4194304/task/4194304/children" has 35 */
    STAT_BYTES = 1024,    /* 52 fields of at most 20 digits would be 1092; real ones are near 330 */
    STATUS_BYTES = 8192,  /* 1.4 KiB on 6.18; lists of groups and nodes may be long */
    ROLLUP_BYTES = 2048,  /* 23 lines, 700 bytes on 6.18 */
    CHILDREN_CHUNK = 512, /* pids are read in pieces, any number of them */
};

static void add_process(pl_fixed_text *path, pid_t pid)
{
    pl_fixed_text_add(path, "/proc/");
    if (pid == 0)
        pl_fixed_text_add(path, "self");
    else
        pl_fixed_text_add_u64(path, (uint64_t)pid);
}

static int open_retry(const char *path, int flags)
{
    int fd;
    do
        fd = open(path, flags | O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

static ssize_t read_retry(int fd, void *buffer, size_t n)
{
    ssize_t got;
    do
        got = read(fd, buffer, n);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

int pl_proc_read_file(const char *path, char *buffer, size_t n)
{
    if (n == 0 || n > INT32_MAX)
        return -EINVAL;
    /* O_NONBLOCK: a path may come from a record, and a FIFO there is an error, not a wait. */
    int fd = open_retry(path, O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fd;
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 && length < n - 1) {
        got = read_retry(fd, buffer + length, n - 1 - length);
        if (got > 0)
            length += (size_t)got;
    }
    close(fd);
    if (got < 0)
        return (int)got;
    buffer[length] = '\0';
    return (int)length;
}

static int read_process_file(pid_t pid, const char *name, char *buffer, size_t n)
{
    if (pid < 0)
        return -ESRCH;
    char storage[PATH_BYTES];
    pl_fixed_text path = pl_fixed_text_begin(storage, sizeof storage);
    add_process(&path, pid);
    pl_fixed_text_add(&path, name);
    return path.overflow ? -ENAMETOOLONG : pl_proc_read_file(storage, buffer, n);
}

/* Moves the cursor behind `n` fields and the space that follows each. */
static bool skip_fields(const char **cursor, int n)
{
    for (; n > 0; n--) {
        const char *space = strchr(*cursor, ' ');
        if (!space)
            return false;
        *cursor = space + 1;
    }
    return true;
}

static bool take_field(const char **cursor, uint64_t *ret_number)
{
    return pl_fixed_text_take_u64(cursor, ret_number) && skip_fields(cursor, 1);
}

/* PF_FORKNOEXEC of the kernel's sched.h, unchanged since 2.6. */
enum { FORKED_WITHOUT_EXEC = 0x40 };

/* The numbers are those of proc(5): 3 state, 4 ppid, 5 pgrp, 9 flags, 14 utime, 15 stime, 20
 * num_threads, 22 starttime. Skipped fields may be negative. */
static bool parse_stat_numbers(const char *field3, pl_proc_stat *stat)
{
    const char *cursor = field3;
    uint64_t parent, group, flags, user, system;
    stat->state = *cursor;
    if (!skip_fields(&cursor, 1) || !take_field(&cursor, &parent) || !take_field(&cursor, &group))
        return false;
    if (!skip_fields(&cursor, 3) || !take_field(&cursor, &flags))
        return false;
    if (!skip_fields(&cursor, 4) || !take_field(&cursor, &user) || !take_field(&cursor, &system))
        return false;
    if (!skip_fields(&cursor, 4) || !take_field(&cursor, &stat->n_threads))
        return false;
    if (!skip_fields(&cursor, 1) || !take_field(&cursor, &stat->start_ticks))
        return false;
    stat->parent_pid = (pid_t)parent;
    stat->group_pid = (pid_t)group;
    stat->forked = flags & FORKED_WITHOUT_EXEC;
    stat->cpu_ticks = pl_add_sat_u64(user, system);
    return true;
}

bool pl_proc_stat_parse(const char *text, pl_proc_stat *ret_stat)
{
    const char *open = strchr(text, '(');
    const char *close = strrchr(text, ')');
    if (!open || !close || close < open || close[1] != ' ')
        return false;
    pl_proc_stat stat = {0};
    size_t n = pl_min_u64((uint64_t)(close - open - 1), sizeof stat.name - 1);
    memcpy(stat.name, open + 1, n);
    if (!parse_stat_numbers(close + 2, &stat))
        return false;
    *ret_stat = stat;
    return true;
}

int pl_proc_stat_read(pid_t pid, pl_proc_stat *ret_stat)
{
    char text[STAT_BYTES];
    int r = read_process_file(pid, "/stat", text, sizeof text);
    if (r < 0)
        return r;
    return pl_proc_stat_parse(text, ret_stat) ? 0 : PL_EFORMAT;
}

int pl_proc_identity_read(pid_t pid, pl_proc_stat *ret_stat)
{
    if (pid < 0)
        return -ESRCH;
    char storage[PATH_BYTES], text[STAT_BYTES];
    pl_fixed_text path = pl_fixed_text_begin(storage, sizeof storage);
    add_process(&path, pid);
    pl_fixed_text_add(&path, "/task/");
    pl_fixed_text_add_u64(&path, (uint64_t)(pid ? pid : getpid()));
    pl_fixed_text_add(&path, "/stat");
    int r = path.overflow ? -ENAMETOOLONG : pl_proc_read_file(storage, text, sizeof text);
    if (r < 0)
        return r;
    return pl_proc_stat_parse(text, ret_stat) ? 0 : PL_EFORMAT;
}

/* A process whose first thread ended before the others shows as a zombie, and holds its memory. */
static bool stat_is_dead(const pl_proc_stat *stat)
{
    return stat->state == 'X' || (stat->state == 'Z' && stat->n_threads <= 1);
}

/* In doubt the answer is yes: the claims of a living process must never be given away. So a process
 * that /proc hides (hidepid), and one that cannot be read because no descriptor is free, counts as
 * alive. */
bool pl_proc_alive(pid_t pid, uint64_t start_ticks)
{
    pl_proc_stat stat;
    int r = pl_proc_identity_read(pid, &stat);
    if (r == -ESRCH)
        return false;
    if (r == -ENOENT)
        return kill(pid, 0) == 0 || errno == EPERM;
    if (r < 0)
        return true;
    return !stat_is_dead(&stat) && (start_ticks == 0 || stat.start_ticks == start_ticks);
}

int pl_proc_memory_read(pid_t pid, pl_proc_memory *ret_memory)
{
    char text[256]; /* seven numbers of at most 20 digits */
    /* The process has no memory in "self" once its first thread has ended; a thread of it has. */
    int r = pid == 0 ? pl_proc_read_file("/proc/thread-self/statm", text, sizeof text)
                     : read_process_file(pid, "/statm", text, sizeof text);
    if (r < 0)
        return r;
    const char *cursor = text;
    uint64_t resident, shared;
    if (!skip_fields(&cursor, 1) || !take_field(&cursor, &resident) ||
        !take_field(&cursor, &shared))
        return PL_EFORMAT;
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    ret_memory->resident_bytes = resident * page_bytes;
    ret_memory->private_bytes = pl_sub_sat_u64(resident, shared) * page_bytes;
    return 0;
}

int pl_proc_seccomp_read(pid_t pid, uint32_t *ret_mode)
{
    char text[STATUS_BYTES];
    uint64_t mode;
    int r = read_process_file(pid, "/status", text, sizeof text);
    if (r < 0)
        return r;
    if (!pl_fixed_text_find_u64(text, "Seccomp:", &mode) || mode > UINT32_MAX)
        return PL_EFORMAT; /* a kernel without it */
    *ret_mode = (uint32_t)mode;
    return 0;
}

static int read_rollup(pid_t pid, char text[ROLLUP_BYTES])
{
    int r = read_process_file(pid, "/smaps_rollup", text, ROLLUP_BYTES);
    return r == 0 ? -ESRCH : r; /* a zombie: it has no memory any more */
}

int pl_proc_pss_read(pid_t pid, uint64_t *ret_anonymous_bytes)
{
    char text[ROLLUP_BYTES];
    int r = read_rollup(pid, text);
    if (r < 0)
        return r;
    uint64_t kib;
    if (!pl_fixed_text_find_u64(text, "Pss_Anon:", &kib) || kib > UINT64_MAX / PL_KIB)
        return PL_EFORMAT;
    *ret_anonymous_bytes = kib * PL_KIB;
    return 0;
}

static bool same_size(pid_t one, pid_t other)
{
    char here[256], there[256];
    if (read_process_file(one, "/statm", here, sizeof here) < 0 ||
        read_process_file(other, "/statm", there, sizeof there) < 0)
        return false;
    return strncmp(here, there, strcspn(here, " ") + 1) == 0;
}

/* After fork(), parent and child share some pages permanently: the loader's relocations, which are
 * read-only, and the environment. A child that shares none, and has its parent's size, uses its
 * parent's memory itself. */
static bool shares_no_page(pid_t pid)
{
    char text[ROLLUP_BYTES];
    uint64_t all_kib, share_kib;
    return read_rollup(pid, text) >= 0 && pl_fixed_text_find_u64(text, "Anonymous:", &all_kib) &&
           pl_fixed_text_find_u64(text, "Pss_Anon:", &share_kib) && share_kib >= all_kib;
}

bool pl_proc_same_memory(pid_t parent, pid_t child)
{
    int saved_errno = errno;
    long order = syscall(SYS_kcmp, parent, child, KCMP_VM, 0, 0); /* 0: equal */
    bool unknown = order < 0 && errno != ESRCH;
    errno = saved_errno;
    return unknown ? same_size(parent, child) && shares_no_page(child) : order == 0;
}

typedef struct pid_list {
    pid_t *pids;
    int max;
    int n; /* found; may pass max */
} pid_list;

static void add_pid(pid_list *list, uint64_t pid)
{
    if (list->n < list->max)
        list->pids[list->n] = (pid_t)pid;
    list->n++;
}

/* Reads pids separated by spaces; one may be split between two reads. */
static int read_children_file(int fd, pid_list *list)
{
    char chunk[CHILDREN_CHUNK];
    uint64_t pid = 0;
    ssize_t got;
    while ((got = read_retry(fd, chunk, sizeof chunk)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (chunk[i] >= '0' && chunk[i] <= '9') {
                pid = pid * 10 + (uint64_t)(chunk[i] - '0');
            } else if (pid > 0) {
                add_pid(list, pid);
                pid = 0;
            }
        }
    }
    if (pid > 0)
        add_pid(list, pid);
    return (int)got;
}

static int add_thread_children(pid_t pid, const char *tid, pid_list *list)
{
    char storage[PATH_BYTES];
    pl_fixed_text path = pl_fixed_text_begin(storage, sizeof storage);
    add_process(&path, pid);
    pl_fixed_text_add(&path, "/task/");
    pl_fixed_text_add(&path, tid);
    pl_fixed_text_add(&path, "/children");
    if (path.overflow)
        return -ENAMETOOLONG;
    int fd = open_retry(storage, 0);
    if (fd < 0)
        return fd;
    int r = read_children_file(fd, list);
    close(fd);
    return r;
}

/* An entry as getdents64(2) writes it. */
typedef struct folder_entry {
    uint64_t inode;
    int64_t next_offset;
    uint16_t entry_bytes;
    uint8_t type;
    char name[];
} folder_entry;

static bool has_ended(int code)
{
    return code == -ENOENT || code == -ESRCH;
}

/* Reads the children of every thread that still exists when its turn comes. */
static int add_folder_children(int task_fd, pid_t pid, pid_list *list)
{
    _Alignas(folder_entry) char buffer[2048];
    long got;
    while ((got = syscall(SYS_getdents64, task_fd, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < got;) {
            const folder_entry *entry = (const folder_entry *)(buffer + at);
            at += entry->entry_bytes;
            if (entry->name[0] == '.')
                continue;
            int r = add_thread_children(pid, entry->name, list);
            if (r < 0 && !has_ended(r))
                return r;
        }
    }
    return got < 0 ? -errno : 0;
}

int pl_proc_children(pid_t pid, pid_t *pids, int max)
{
    if (pid < 0)
        return -ESRCH;
    char storage[PATH_BYTES];
    pl_fixed_text path = pl_fixed_text_begin(storage, sizeof storage);
    add_process(&path, pid);
    pl_fixed_text_add(&path, "/task");
    int fd = open_retry(storage, O_DIRECTORY);
    if (fd < 0)
        return fd;
    pid_list list = {.pids = pids, .max = max};
    int r = add_folder_children(fd, pid, &list);
    close(fd);
    return r < 0 ? r : list.n;
}

uint64_t pl_proc_pid_namespace(void)
{
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 ? (uint64_t)info.st_ino : 0;
}

/* The kernel takes an address in the upper half for a negative offset, and refuses it. */
static ssize_t read_memory_file(pid_t pid, uint64_t address, void *buffer, size_t n)
{
    char path[PATH_BYTES];
    pl_fixed_text text = pl_fixed_text_begin(path, sizeof path);
    add_process(&text, pid);
    pl_fixed_text_add(&text, "/mem");
    int fd = open_retry(path, 0);
    if (fd < 0)
        return fd == -ENOENT ? -ESRCH : fd;
    ssize_t n_read = pread(fd, buffer, n, (off_t)address);
    if (n_read < 0)
        n_read = errno == EIO || errno == EINVAL ? -EFAULT : -errno;
    close(fd);
    return n_read == 0 && n > 0 ? -EFAULT : n_read;
}

ssize_t pl_proc_read_memory(pid_t pid, uint64_t address, void *buffer, size_t n)
{
    int saved_errno = errno;
    struct iovec here = {.iov_base = buffer, .iov_len = n};
    struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = n};
    ssize_t n_read = process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (n_read < 0)
        n_read =
            errno == ENOSYS || errno == EPERM ? read_memory_file(pid, address, buffer, n) : -errno;
    errno = saved_errno;
    return n_read;
}
