/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp HOW: allows itself few system calls, and then makes another.
 *   own     its own: getuid()
 *   trap    the same, by a filter that sends SIGSYS
 *   guard   it only asks for memory: what the guard does at times is forbidden
 *   strict  seccomp's strict mode, and getuid() */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Enough for malloc() and to end; the architecture is not looked at: this is no filter to copy. */
#define ALLOW(call)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int forbid(unsigned int action)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(brk),
        ALLOW(mmap),
        ALLOW(munmap),
        ALLOW(mprotect),
        ALLOW(madvise),
        ALLOW(getrandom),
        ALLOW(write),
        ALLOW(exit_group),
        ALLOW(rt_sigreturn),
        BPF_STMT(BPF_RET | BPF_K, action),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    const char *how = argv[1];
    int failed = strcmp(how, "strict") == 0 ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)
                 : strcmp(how, "trap") == 0 ? forbid(SECCOMP_RET_TRAP)
                                            : forbid(SECCOMP_RET_KILL_PROCESS);
    if (failed)
        return 77; /* not possible here */
    if (strcmp(how, "guard") != 0)
        syscall(SYS_getuid);
    for (int i = 0; i < 10000; i++)
        if (malloc(10000) == NULL)
            return 3;
    return 0;
}
