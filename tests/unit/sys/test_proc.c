/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of real processes: live, dead, renamed, half ended, with children. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../emulated.h"
#include "../sanitized.h"
#include "sys/proc.h"

/* A child that runs `body` (may be NULL), says so, and waits to be killed. */
static pid_t start_child(void (*body)(void))
{
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (body)
            body();
        if (write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char byte;
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void end_child(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void own_stat_is_told(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("its /proc/self/stat is made up");
    pl_proc_stat own, same;
    assert_int_equal(pl_proc_stat_read(0, &own), 0);
    assert_int_equal(pl_proc_stat_read(getpid(), &same), 0);
    assert_int_equal(own.parent_pid, getppid());
    assert_int_equal(own.group_pid, getpgrp());
    assert_int_equal(own.state, 'R');
    assert_true(own.start_ticks > 0);
    assert_int_equal(own.start_ticks, same.start_ticks);
    assert_string_equal(own.name, same.name);
}

static uint64_t *told_ticks; /* shared with children */

static void tell_start_time(void)
{
    pl_proc_stat own;
    if (pl_proc_identity_read(getpid(), &own) < 0 || own.parent_pid != getppid() ||
        own.group_pid != getpgrp() || own.state != 'R' || !pl_proc_alive(0, own.start_ticks))
        _exit(1);
    *told_ticks = own.start_ticks;
}

/* Not skipped under qemu-user: there the ledger's slots depend on it. */
static void a_start_time_is_the_same_for_everyone(void **state)
{
    (void)state;
    told_ticks =
        mmap(NULL, sizeof *told_ticks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(told_ticks != MAP_FAILED);
    usleep(20000); /* two ticks: the child begins in another one than its parent */
    pid_t pid = start_child(tell_start_time);
    pl_proc_stat parent, child;
    int r = pl_proc_identity_read(0, &parent);
    int r_child = pl_proc_stat_read(pid, &child);
    bool alive = pl_proc_alive(pid, *told_ticks);
    end_child(pid);
    assert_int_equal(r, 0);
    assert_int_equal(r_child, 0);
    assert_int_equal(*told_ticks, child.start_ticks);
    assert_true(*told_ticks > parent.start_ticks);
    assert_true(alive);
    munmap(told_ticks, sizeof *told_ticks);
}

static void *sleep_forever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void start_one_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleep_forever, NULL) != 0)
        _exit(1);
}

static void start_three_threads(void)
{
    for (int i = 0; i < 3; i++)
        start_one_thread();
}

static uint64_t n_threads_of_child(void (*body)(void))
{
    pid_t pid = start_child(body);
    pl_proc_stat stat;
    int r = pl_proc_stat_read(pid, &stat);
    end_child(pid);
    assert_int_equal(r, 0);
    return stat.n_threads;
}

/* By difference: a sanitizer adds threads of its own to a process that has several. */
static void threads_are_counted(void **state)
{
    (void)state;
    uint64_t n_with_one = n_threads_of_child(start_one_thread);
    assert_true(n_with_one >= 2);
    assert_int_equal(n_threads_of_child(start_three_threads), n_with_one + 2);
}

static void rename_nastily(void)
{
    if (prctl(PR_SET_NAME, ") Z 1 (2) 3") != 0)
        _exit(1);
}

static void a_name_with_parentheses_does_not_fool(void **state)
{
    (void)state;
    pid_t pid = start_child(rename_nastily);
    pl_proc_stat stat;
    int r = pl_proc_stat_read(pid, &stat);
    end_child(pid);
    assert_int_equal(r, 0);
    assert_string_equal(stat.name, ") Z 1 (2) 3");
    assert_int_equal(stat.parent_pid, getpid());
    assert_int_not_equal(stat.state, 'Z');
}

static void burn_cpu(void)
{
    struct rusage usage;
    do
        getrusage(RUSAGE_SELF, &usage);
    while (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec < 200000 && usage.ru_utime.tv_sec == 0 &&
           usage.ru_stime.tv_sec == 0);
}

static void processor_time_is_user_and_system(void **state)
{
    (void)state;
    pid_t pid = start_child(burn_cpu);
    pl_proc_stat stat;
    int r = pl_proc_stat_read(pid, &stat);
    end_child(pid);
    assert_int_equal(r, 0);
    /* 0.2 s were used; each of the two parts is rounded down to a tick. */
    uint64_t ticks_per_second = (uint64_t)sysconf(_SC_CLK_TCK);
    assert_in_range(stat.cpu_ticks, ticks_per_second / 5 - 2, ticks_per_second * 10);
}

static void a_process_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    pid_t pid = start_child(NULL);
    end_child(pid);
    pl_proc_stat stat = {.state = '?'};
    pl_proc_memory memory;
    uint64_t bytes;
    assert_int_equal(pl_proc_stat_read(pid, &stat), -ENOENT);
    assert_int_equal(stat.state, '?');
    assert_int_equal(pl_proc_memory_read(pid, &memory), -ENOENT);
    assert_int_equal(pl_proc_pss_read(pid, &bytes), -ENOENT);
    assert_int_equal(pl_proc_children(pid, NULL, 0), -ENOENT);
    assert_int_equal(pl_proc_stat_read(-1, &stat), -ESRCH);
    assert_int_equal(pl_proc_identity_read(-1, &stat), -ESRCH);
}

static void alive_means_same_pid_and_same_start(void **state)
{
    (void)state;
    pid_t pid = start_child(NULL);
    pl_proc_stat stat;
    assert_int_equal(pl_proc_stat_read(pid, &stat), 0);
    assert_true(pl_proc_alive(pid, stat.start_ticks));
    assert_true(pl_proc_alive(pid, 0));
    assert_false(pl_proc_alive(pid, stat.start_ticks + 1));
    end_child(pid);
    assert_false(pl_proc_alive(pid, stat.start_ticks));
    assert_false(pl_proc_alive(pid, 0));
}

static void a_zombie_is_not_alive(void **state)
{
    (void)state;
    pid_t pid = start_child(NULL);
    siginfo_t info;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    bool alive = pl_proc_alive(pid, 0);
    uint64_t bytes;
    int pss = pl_proc_pss_read(pid, &bytes);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(alive);
    assert_int_equal(pss, -ESRCH);
}

static void *tell_when_first_thread_is_gone(void *fd)
{
    pl_proc_stat stat;
    do
        if (pl_proc_stat_read(getpid(), &stat) < 0)
            _exit(1);
    while (stat.state != 'Z');
    if (write(*(int *)fd, "r", 1) != 1)
        _exit(1);
    return sleep_forever(NULL);
}

static void a_process_whose_first_thread_ended_is_alive(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("its first thread stays until the last has ended");
    static int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, tell_when_first_thread_is_gone, &ready[1]) != 0)
            _exit(1);
        pthread_exit(NULL);
    }
    char byte;
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    bool alive = pl_proc_alive(pid, 0);
    end_child(pid);
    assert_true(alive);
}

static void in_want_of_descriptors_a_process_counts_as_alive(void **state)
{
    (void)state;
    struct rlimit old, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool alive = pl_proc_alive(getpid(), 0);
    pl_proc_stat stat;
    int r = pl_proc_stat_read(getpid(), &stat);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(r, -EMFILE);
    assert_true(alive);
}

enum { TOUCHED_BYTES = 32 << 20 };

/* Filled by the kernel: a store of ours would also fill a sanitizer's shadow memory. */
static char *map_filled(int sharing)
{
    return mmap(NULL, TOUCHED_BYTES, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_POPULATE | sharing,
                -1, 0);
}

static void touch_private_memory(void)
{
    if (map_filled(MAP_PRIVATE) == MAP_FAILED)
        _exit(1);
}

static void touch_shared_memory(void)
{
    if (map_filled(MAP_SHARED) == MAP_FAILED)
        _exit(1);
}

static pl_proc_memory memory_of_child(void (*body)(void), uint64_t *ret_pss_bytes)
{
    pid_t pid = start_child(body);
    pl_proc_memory memory;
    int r = pl_proc_memory_read(pid, &memory);
    int pss = pl_proc_pss_read(pid, ret_pss_bytes);
    end_child(pid);
    assert_int_equal(r, 0);
    assert_int_equal(pss, 0);
    return memory;
}

/* The kernel may keep up to 64 pages per thread out of the sums. */
#define assert_near(bytes, expected)                                                               \
    assert_in_range((bytes) + PL_MIB, (expected), (expected) + 2 * PL_MIB)

/* Beside what a child has anyway: 16 MiB of private memory with TSan of gcc 16. */
static void touched_memory_is_private_and_shared_memory_is_not(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("it maps nothing beforehand");
    uint64_t plain_pss, private_pss, shared_pss;
    pl_proc_memory plain = memory_of_child(NULL, &plain_pss);
    pl_proc_memory private = memory_of_child(touch_private_memory, &private_pss);
    pl_proc_memory shared = memory_of_child(touch_shared_memory, &shared_pss);
    assert_near(private.resident_bytes, plain.resident_bytes + TOUCHED_BYTES);
    assert_near(private.private_bytes, plain.private_bytes + TOUCHED_BYTES);
    assert_near(private_pss, plain_pss + TOUCHED_BYTES);
    assert_near(shared.resident_bytes, plain.resident_bytes + TOUCHED_BYTES);
    assert_near(shared.private_bytes, plain.private_bytes);
    assert_near(shared_pss, plain_pss);
}

static void pages_shared_by_fork_are_counted_once(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("it maps nothing beforehand");
    char *memory = map_filled(MAP_PRIVATE);
    assert_ptr_not_equal(memory, MAP_FAILED);
    pid_t pid = start_child(NULL);
    uint64_t own, childs;
    int r = pl_proc_pss_read(0, &own), s = pl_proc_pss_read(pid, &childs);
    end_child(pid);
    munmap(memory, TOUCHED_BYTES);
    assert_int_equal(r, 0);
    assert_int_equal(s, 0);
    assert_in_range(childs, TOUCHED_BYTES / 2, TOUCHED_BYTES - 1);
    assert_true(own >= TOUCHED_BYTES / 2);
}

static void *fork_sleeper(void *ret_pid)
{
    pid_t pid = fork();
    if (pid == 0)
        sleep_forever(NULL);
    *(_Atomic pid_t *)ret_pid = pid;
    return sleep_forever(NULL);
}

static bool contains(const pid_t *pids, int n, pid_t pid)
{
    for (int i = 0; i < n; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

static void children_of_all_threads_are_found(void **state)
{
    (void)state;
    static _Atomic pid_t from_thread;
    pthread_t thread;
    pid_t from_main = start_child(NULL);
    assert_int_equal(pthread_create(&thread, NULL, fork_sleeper, &from_thread), 0);
    while (from_thread == 0)
        usleep(1000);
    pid_t pids[8];
    int n = pl_proc_children(0, pids, 8);
    end_child(from_thread);
    end_child(from_main);
    assert_int_equal(pthread_cancel(thread), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(n, 2);
    assert_true(contains(pids, n, from_main));
    assert_true(contains(pids, n, from_thread));
    assert_int_equal(pl_proc_children(0, pids, 8), 0);
}

/* More than the reader's 512 bytes of pids: some pid is split between two reads. */
static void many_children_are_all_counted_and_none_is_written_too_far(void **state)
{
    (void)state;
    enum { CHILDREN = 200 };
    pid_t started[CHILDREN], found[CHILDREN + 1];
    for (int i = 0; i < CHILDREN; i++)
        started[i] = start_child(NULL);
    int n = pl_proc_children(getpid(), found, CHILDREN + 1);
    pid_t two[3] = {-1, -1, -1};
    int n_when_full = pl_proc_children(getpid(), two, 2);
    for (int i = 0; i < CHILDREN; i++)
        end_child(started[i]);
    assert_int_equal(n, CHILDREN);
    assert_int_equal(n_when_full, CHILDREN);
    assert_int_not_equal(two[1], -1);
    assert_int_equal(two[2], -1);
    for (int i = 0; i < CHILDREN; i++)
        assert_true(contains(found, n, started[i]));
}

/* From here on a system call fails with EPERM, as by a container's filter. */
static bool forbid(uint32_t call)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {PL_COUNT_OF(filter), filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* The number of what is wrong; 0: nothing is. */
static int read_own_memory(pid_t pid)
{
    enum { PAGE = 4096 };
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char buffer[16] = "";
    if (pages == MAP_FAILED || munmap(pages + PAGE, PAGE) != 0)
        return 1;
    strcpy(pages + PAGE - 8, "the end");
    uint64_t end = (uint64_t)(uintptr_t)pages + PAGE;
    errno = 77;
    if (pl_proc_read_memory(pid, end - 8, buffer, 8) != 8 || strcmp(buffer, "the end") != 0)
        return 2;
    if (pl_proc_read_memory(pid, end - 8, buffer, 16) != 8)
        return 3;
    if (pl_proc_read_memory(pid, end, buffer, 8) != -EFAULT ||
        pl_proc_read_memory(pid, 0, buffer, 8) != -EFAULT ||
        pl_proc_read_memory(pid, UINT64_MAX - 7, buffer, 8) != -EFAULT)
        return 4;
    if (pl_proc_read_memory(pid, end - 8, buffer, 0) != 0)
        return 5;
    return errno == 77 ? 0 : 6;
}

static void memory_is_read_as_far_as_it_is_mapped(void **state)
{
    (void)state;
    assert_int_equal(read_own_memory(getpid()), 0);
    char byte;
    pid_t gone = start_child(NULL);
    end_child(gone);
    assert_int_equal(pl_proc_read_memory(gone, 4096, &byte, 1), -ESRCH);
}

static void where_the_call_is_forbidden_memory_is_read_all_the_same(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("it has no filters; nor the call, so that the case before has shown it");
    pid_t pid = fork();
    if (pid == 0)
        _exit(forbid(SYS_process_vm_readv) ? read_own_memory(getpid()) : 99);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Runs beside its parent in one memory, down to errno: no call that might write there. */
UNWATCHED static int wait_to_be_killed(void *argument)
{
    (void)argument;
    for (;;)
        syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
    return 0;
}

static void look_for_one_memory(void)
{
    static _Alignas(16) char stack[64 * 1024];
    pid_t inside =
        unwatched_clone(wait_to_be_killed, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
    assert_true(inside > 0);
    errno = 77;
    bool is_one = pl_proc_same_memory(getpid(), inside);
    int kept = errno;
    end_child(inside);
    pid_t forked = start_child(NULL);
    bool is_one_by_fork = pl_proc_same_memory(getpid(), forked);
    end_child(forked);
    assert_true(is_one);
    assert_int_equal(kept, 77);
    assert_false(is_one_by_fork);
    assert_false(pl_proc_same_memory(getpid(), forked)); /* it is gone */
}

static void one_memory_of_two_processes_is_seen(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("it makes a fork() of it");
    look_for_one_memory();
}

/* The last one: the filter stays. */
static void where_kcmp_is_forbidden_one_memory_is_seen_all_the_same(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("it has no filters");
    assert_true(forbid(SYS_kcmp));
    look_for_one_memory();
}

static void a_file_is_cut_to_the_buffer_and_ended(void **state)
{
    (void)state;
    char path[] = "/tmp/plimsoll-proc-XXXXXX", buffer[8];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "0123456789", 10), 10);
    close(fd);
    memset(buffer, 'x', sizeof buffer);
    int cut = pl_proc_read_file(path, buffer, 5);
    assert_string_equal(buffer, "0123");
    assert_int_equal(buffer[5], 'x');
    assert_int_equal(cut, 4);
    assert_int_equal(pl_proc_read_file(path, buffer, 0), -EINVAL);
    unlink(path);
    assert_int_equal(pl_proc_read_file(path, buffer, sizeof buffer), -ENOENT);
    assert_int_equal(pl_proc_read_file("/proc", buffer, sizeof buffer), -EISDIR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_stat_is_told),
        cmocka_unit_test(a_start_time_is_the_same_for_everyone),
        cmocka_unit_test(threads_are_counted),
        cmocka_unit_test(a_name_with_parentheses_does_not_fool),
        cmocka_unit_test(processor_time_is_user_and_system),
        cmocka_unit_test(a_process_that_is_not_there_is_an_error),
        cmocka_unit_test(alive_means_same_pid_and_same_start),
        cmocka_unit_test(a_zombie_is_not_alive),
        cmocka_unit_test(a_process_whose_first_thread_ended_is_alive),
        cmocka_unit_test(in_want_of_descriptors_a_process_counts_as_alive),
        cmocka_unit_test(touched_memory_is_private_and_shared_memory_is_not),
        cmocka_unit_test(pages_shared_by_fork_are_counted_once),
        cmocka_unit_test(children_of_all_threads_are_found),
        cmocka_unit_test(many_children_are_all_counted_and_none_is_written_too_far),
        cmocka_unit_test(memory_is_read_as_far_as_it_is_mapped),
        cmocka_unit_test(where_the_call_is_forbidden_memory_is_read_all_the_same),
        cmocka_unit_test(one_memory_of_two_processes_is_seen),
        cmocka_unit_test(a_file_is_cut_to_the_buffer_and_ended),
        cmocka_unit_test(where_kcmp_is_forbidden_one_memory_is_seen_all_the_same),
    };
    return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
