/* SPDX-License-Identifier: Apache-2.0 */
/* See child.h. */
#include "preflight/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

__attribute__((noreturn)) static void be_child(void (*work)(const void *context, int fd),
                                               const void *context, int fd)
{
    int nothing = open("/dev/null", O_RDWR);
    for (int i = 0; i <= 2 && nothing >= 0; i++)
        dup2(nothing, i); /* the child writes nothing but its answer */
    work(context, fd);
    _exit(0);
}

/* Reads until the child closes the pipe. A killed child can be stuck in the kernel; it is then left
 * to init. */
static int read_answer(int fd, int timeout_ms, char *answer, size_t n)
{
    uint64_t end_ns = pl_clock_monotonic_ns() + (uint64_t)timeout_ms * PL_NS_PER_MS;
    size_t used = 0;
    for (;;) {
        uint64_t left_ns = pl_sub_sat_u64(end_ns, pl_clock_monotonic_ns());
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        int r = poll(&readable, 1, (int)(left_ns / PL_NS_PER_MS));
        if (r == 0)
            return -ETIMEDOUT;
        char rest[64]; /* what is too much is read too, so that the child can end */
        ssize_t got =
            r < 0 ? -1
                  : read(fd, used < n ? answer + used : rest, used < n ? n - used : sizeof rest);
        if (got == 0)
            return (int)used;
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got > 0 && used < n)
            used += (size_t)got;
    }
}

int pl_child_ask(void (*work)(const void *context, int fd), const void *context, int timeout_ms,
                 void *answer, size_t n)
{
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        be_child(work, context, ends[1]);
    int r = pid < 0 ? -errno : 0;
    close(ends[1]);
    if (pid > 0)
        r = read_answer(ends[0], timeout_ms, answer, n);
    close(ends[0]);
    if (r < 0 && pid > 0)
        kill(pid, SIGKILL);
    if (pid > 0 && waitpid(pid, &status, r == -ETIMEDOUT ? WNOHANG : 0) == pid && r >= 0 &&
        WIFSIGNALED(status))
        r = -ECHILD;
    return r;
}
