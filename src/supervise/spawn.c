/* SPDX-License-Identifier: Apache-2.0 */
/* fork and exec, with the guard in the environment; reports the reason when exec fails. */
#include "supervise/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "supervise/executable.h"

extern char **environ;

static bool is_guard(const char *path, size_t n)
{
    static const char name[] = "libplimsoll-guard.so";
    size_t n_name = sizeof name - 1;
    return n >= n_name && memcmp(path + n - n_name, name, n_name) == 0;
}

/* Goes before the guard's path, so that only glibc's loader finds it. glibc replaces $LIB by the
 * name of its library folder (lib, lib64, lib/x86_64-linux-gnu), and the dots lead from there back
 * to the root: four, for /lib may be a link to /usr/lib, and dots beyond the root do no harm.
 * musl's loader replaces nothing, finds no such file and starts the program without the guard;
 * given the plain path it would load the guard and give up at the first symbol that musl lacks. ""
 * if the folders do not exist. */
static const char *glibc_prefix(void)
{
    bool found = access("/lib", F_OK) == 0;
#if defined __x86_64__
    found = found && access("/lib64", F_OK) == 0;
#endif
    return found ? "/$LIB/../../../.." : "";
}

/* Libraries that are preloaded already stay, behind us: we wrap whatever allocator the user chose.
 * An outer run's guard does not stay: there is one guard in a process, and it joins the inner
 * ledger. */
static int set_environment(const pl_spawn_options *options, bool guarded)
{
    char preload[2 * PATH_MAX] = "";
    size_t used = guarded ? (size_t)snprintf(preload, sizeof preload, "%s%s", glibc_prefix(),
                                             options->guard_path)
                          : 0;
    const char *present = getenv("LD_PRELOAD");
    while (present && *present) {
        size_t n = strcspn(present, ": ");
        if (n && !is_guard(present, n) && used < sizeof preload)
            used += (size_t)snprintf(preload + used, sizeof preload - used, "%s%.*s",
                                     used ? ":" : "", (int)n, present);
        present += n + (present[n] != '\0');
    }
    if (used >= sizeof preload)
        return -ENAMETOOLONG;
    if ((used ? setenv("LD_PRELOAD", preload, 1) : unsetenv("LD_PRELOAD")) < 0 ||
        setenv(PL_LEDGER_VARIABLE, options->ledger_path, 1) < 0)
        return -errno;
    return 0;
}

static void limit_data(uint64_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_DATA, &limit) == 0 && bytes < limit.rlim_cur) {
        limit.rlim_cur = bytes;
        setrlimit(RLIMIT_DATA, &limit);
    }
}

static _Noreturn void become_command(const pl_spawn_options *options,
                                     enum pl_executable_obstacle obstacle, int failure_fd)
{
    /* A static program has no loader to read the variable, and musl's ignores it. Their children
     * may be glibc's. */
    bool guarded = obstacle == PL_EXECUTABLE_NONE || obstacle == PL_EXECUTABLE_STATIC ||
                   (obstacle == PL_EXECUTABLE_LIBC && *glibc_prefix());
    int error = -set_environment(options, guarded);
    if (error == 0) {
        if (obstacle != PL_EXECUTABLE_NONE && options->data_limit_bytes)
            limit_data(options->data_limit_bytes);
        sigprocmask(SIG_SETMASK, &options->mask, NULL);
        execvp(options->command[0], options->command);
        error = errno;
    }
    ssize_t n = write(failure_fd, &error, sizeof error);
    (void)n; /* the parent sees a closed pipe and an exit status then */
    _exit(127);
}

/* exec closes the pipe; if exec fails, the pipe carries the reason. */
static int read_failure(int fd, pid_t pid)
{
    int error = 0;
    ssize_t n;
    do
        n = read(fd, &error, sizeof error);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof error)
        return 0;
    waitpid(pid, NULL, 0);
    return -error;
}

const char *pl_spawn_cure(int error)
{
    return error == -EMFILE ? ": allow more of them (ulimit -n)" : "";
}

int pl_spawn(const pl_spawn_options *options, pid_t *ret_pid, pl_error *reterr)
{
    const char *name = options->command[0];
    if (strpbrk(options->guard_path, " :"))
        return pl_error_set(reterr, -EINVAL,
                            "cannot preload '%s': its path contains a space or a colon",
                            options->guard_path);
    pl_executable program;
    pl_executable_look(name, options->guard_path, &program);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return pl_error_set(reterr, -errno, "cannot make a pipe: %s%s", strerror(errno),
                            pl_spawn_cure(-errno));
    pid_t pid = fork();
    if (pid == 0)
        become_command(options, program.obstacle, ends[1]);
    int error = errno;
    close(ends[1]);
    int r = pid < 0 ? -error : read_failure(ends[0], pid);
    close(ends[0]);
    if (r < 0)
        return pl_error_set(reterr, r, "cannot run '%s': %s", name, pl_error_text(r));
    *ret_pid = pid;
    return 0;
}
