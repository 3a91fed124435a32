/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's view of real processes that have one memory, or share its pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../emulated.h"
#include "../sanitized.h"
#include "base/clock.h"
#include "supervise/process_tree.h"

#define TOUCHED_BYTES (64 * PL_MIB)

static pl_ledger ledger; /* with nobody in it */
static pl_process_tree tree;

/* Runs beside its parent in one memory, down to errno: no call that might write there. */
UNWATCHED static int wait_to_be_killed(void *argument)
{
    (void)argument;
    for (;;)
        syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
    return 0;
}

static pid_t start_child(int flags)
{
    static _Alignas(16) char stack[64 * 1024];
    return unwatched_clone(wait_to_be_killed, stack + sizeof stack, flags | SIGCHLD, NULL);
}

UNWATCHED static void touch(char *bytes)
{
    for (size_t i = 0; i < TOUCHED_BYTES; i += 4096)
        bytes[i] = 1;
}

/* A process with TOUCHED_BYTES of its own and a child: with CLONE_VM in its memory, as by vfork();
 * with 0 by fork(). */
static pid_t start_parent(int flags, pid_t *ret_child)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char *bytes =
            mmap(NULL, TOUCHED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bytes == MAP_FAILED)
            _exit(1);
        touch(bytes);
        pid_t child = start_child(flags);
        if (write(ready[1], &child, sizeof child) != sizeof child)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], ret_child, sizeof *ret_child), sizeof *ret_child);
    assert_true(*ret_child > 0);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Each time an hour later: whatever is rationed is due. */
static void read_tree(void)
{
    static uint64_t hours;
    uint64_t now_ns = pl_clock_monotonic_ns() + ++hours * 3600 * PL_NS_PER_SEC;
    pl_process_tree_read(&tree, &ledger, getpid(), now_ns, true);
}

static const pl_tree_process *find(const pl_process_tree *in, pid_t pid)
{
    for (int i = 0; i < in->n; i++)
        if (in->processes[i].pid == pid)
            return &in->processes[i];
    fail_msg("process %d is not in the tree", (int)pid);
    return NULL;
}

/* Nothing is judged before all have ended: a case that fails must not leave them behind. */
static void one_memory_counts_once(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("it makes a fork() of it");
    static pl_process_tree both;
    pid_t child, parent = start_parent(CLONE_VM, &child);
    read_tree();
    read_tree();
    both = tree;
    end(parent); /* the child has the memory for itself now, and is ours */
    read_tree();
    end(child);

    assert_int_equal(both.n, 2);
    assert_true(find(&both, parent)->used_bytes >= TOUCHED_BYTES);
    assert_int_equal(find(&both, child)->used_bytes, 0);
    assert_int_equal(both.used_bytes, find(&both, parent)->used_bytes);
    assert_int_equal(both.resident_bytes, both.used_bytes);
    assert_int_equal(both.unguarded_bytes, both.used_bytes);
    assert_int_equal(tree.n, 1);
    assert_true(find(&tree, child)->used_bytes >= TOUCHED_BYTES);
}

static void pages_shared_by_fork_count_once(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("/proc is of the process that emulates");
    pid_t child, parent = start_parent(0, &child);
    read_tree();
    end(parent);
    end(child);
    assert_true(find(&tree, child)->used_bytes >= TOUCHED_BYTES / 3);
    assert_true(tree.used_bytes >= TOUCHED_BYTES);
    assert_true(tree.used_bytes < find(&tree, parent)->private_bytes + TOUCHED_BYTES / 2);
}

/* The children of children that were ended become ours. qemu 7.2 has no such call, and no case. */
static int adopt(void **state)
{
    (void)state;
    return emulator() ? 0 : prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_memory_counts_once),
        cmocka_unit_test(pages_shared_by_fork_count_once),
    };
    return cmocka_run_group_tests(tests, adopt, NULL);
}
