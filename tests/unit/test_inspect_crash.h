/* SPDX-License-Identifier: Apache-2.0 */
/* A crash as the inspect tests need it: a child that runs a function to its death and leaves a
 * pl_crash and a file crash.PID, in the format of the guard's handler. */
#ifndef PL_TESTS_INSPECT_CRASH_H
#define PL_TESTS_INSPECT_CRASH_H

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "supervise/inspect.h"

enum { STACK_COPY_BYTES = 128 * 1024, COPY_CHUNK_BYTES = 1024 };

static char crash_directory[] = "/tmp/plimsoll-inspect-XXXXXX";
static pl_crash *crash_record; /* shared with the child */

static void copy_maps(int to)
{
    int from = open("/proc/self/maps", O_RDONLY);
    char chunk[4096];
    ssize_t n;
    while ((n = read(from, chunk, sizeof chunk)) > 0)
        if (write(to, chunk, (size_t)n) == n)
            crash_record->maps_bytes += (uint64_t)n;
    close(from);
}

/* The call fails where the stack ends, instead of faulting. Not by write(): AddressSanitizer would
 * object to a copy across the frames of others. */
static void copy_stack(int to)
{
    const char *from = (const char *)crash_record->registers[PL_REGISTER_SP];
    for (uint64_t done = 0; done < STACK_COPY_BYTES; done += COPY_CHUNK_BYTES)
        if (syscall(SYS_write, to, from + done, COPY_CHUNK_BYTES) == COPY_CHUNK_BYTES)
            crash_record->stack_bytes += COPY_CHUNK_BYTES;
}

static void write_crash(int number, siginfo_t *info, void *context)
{
    pl_registers_copy(crash_record->registers, context);
    crash_record->signal = number;
    crash_record->address = (uint64_t)info->si_addr;
    crash_record->pid = getpid();
    crash_record->tid = gettid();
    char path[128];
    snprintf(path, sizeof path, "%s/crash.%d", crash_directory, crash_record->pid);
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    copy_maps(file);
    copy_stack(file);
    close(file);
    _exit(42);
}

static int crash_setup(void **state)
{
    (void)state;
    crash_record =
        mmap(NULL, sizeof *crash_record, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return crash_record == MAP_FAILED || !mkdtemp(crash_directory);
}

static int crash_teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", crash_directory);
    return system(command);
}

static void crash_path(char *path, size_t n)
{
    snprintf(path, n, "%s/crash.%d", crash_directory, crash_record->pid);
}

/* Runs `body` in a child until it dies of a fault. */
static void crash_in_child(void (*body)(void))
{
    memset(crash_record, 0, sizeof *crash_record);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct sigaction action = {.sa_sigaction = write_crash, .sa_flags = SA_SIGINFO};
        static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE};
        for (size_t i = 0; i < PL_COUNT_OF(faults); i++)
            sigaction(faults[i], &action, NULL);
        body();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
    assert_true(crash_record->maps_bytes > 0);
    assert_true(crash_record->stack_bytes > 0);
}

#endif
