/* SPDX-License-Identifier: Apache-2.0 */
/* Records the crash of a dying process: signal, registers, Python lines, and, in the file
 * crash.PID, the memory map and the top of the stack. It writes raw bytes with system calls, and
 * does not format, allocate or lock. Then the signal takes its course, as it would have without the
 * guard.
 *
 * A handler that the program installs itself replaces ours, as it replaces the default. Python's
 * faulthandler, for one, prints first and then hands the signal on to us. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "guard/guard.h"
#include "sys/fixed_text.h"
#include "sys/proc.h"

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

/* Our handler takes under 8 KiB, and about 2 more for reading Python frames. But a program that
 * installs its own handler with SA_ONSTACK and no stack for it, as Python does, and libraries meant
 * to be used with Go, has it run on ours. It needs as much room there as on the thread's own stack;
 * a megabyte is far more than such a handler may count on. */
enum {
    STACK_LEAST_BYTES = 64 * 1024,
    STACK_MOST_BYTES = 1024 * 1024,
    STACK_GUARD_BYTES = 64 * 1024, /* whatever the size of a page */
    STACK_COPY_BYTES = 512 * 1024,
};

static pthread_key_t alternate_stack_key;
static bool have_key;
/* The size of this thread's alternate stack, without the guard pages. */
static _Thread_local __attribute__((tls_model("initial-exec"))) size_t alternate_bytes;

/* glibc keeps the message of an abort here: "malloc(): corrupted top size", or assert's. */
typedef struct abort_message {
    unsigned int size;
    char text[];
} abort_message;

static abort_message **abort_messages;

static bool copy_bytes(void *to, uint64_t from, size_t n)
{
    return pl_proc_read_memory(getpid(), from, to, n) == (ssize_t)n;
}

static void copy_text(char *to, size_t n, uint64_t from)
{
    size_t i = 0;
    while (i + 1 < n && copy_bytes(to + i, from + i, 1) && to[i])
        i++;
    to[i] = '\0';
}

static void copy_instruction(pl_crash *crash)
{
    uint64_t at = crash->registers[PL_REGISTER_PC];
    for (crash->n_instruction_bytes = 0; crash->n_instruction_bytes < sizeof crash->instruction &&
                                         copy_bytes(&crash->instruction[crash->n_instruction_bytes],
                                                    at + crash->n_instruction_bytes, 1);
         crash->n_instruction_bytes++)
        ;
}

static void copy_file(int to, const char *path, uint64_t *ret_bytes)
{
    static char buffer[4096];
    int from = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;
    *ret_bytes = 0;
    if (from < 0)
        return;
    while ((n = read(from, buffer, sizeof buffer)) > 0 && write(to, buffer, (size_t)n) == n)
        *ret_bytes += (uint64_t)n;
    close(from);
}

/* write() returns an error where a copy would fault: at the end of the stack's mapping. */
static void copy_stack(int to, pl_crash *crash)
{
    enum { PAGE = 4096 };
    uint64_t at = crash->registers[PL_REGISTER_SP];
    crash->stack_bytes = 0;
    while (crash->stack_bytes < STACK_COPY_BYTES) {
        size_t n = PAGE - (size_t)((at + crash->stack_bytes) % PAGE);
        if (write(to, (const void *)(uintptr_t)(at + crash->stack_bytes), n) != (ssize_t)n)
            break;
        crash->stack_bytes += n;
    }
}

static bool name_crash_file(pid_t pid, char path[PATH_MAX + 32])
{
    pl_fixed_text text = pl_fixed_text_begin(path, PATH_MAX + 32);
    pl_fixed_text_add(&text, pl_guard_state.directory);
    pl_fixed_text_add(&text, "/crash.");
    pl_fixed_text_add_u64(&text, (uint64_t)pid);
    return !text.overflow && pl_guard_state.directory[0];
}

/* One thread at a time records its crash, on a small stack. */
static char crash_file[PATH_MAX + 32];

/* Asks for the pid again: a child of vfork() has its parent's memory, but its own file. O_NONBLOCK:
 * another program of the run may have made a pipe of that name. */
static int open_crash_file(void)
{
    return name_crash_file(getpid(), crash_file)
               ? open(crash_file,
                      O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600)
               : -1;
}

static void write_crash_file(pl_crash *crash)
{
    int fd = open_crash_file();
    if (fd < 0)
        return;
    copy_file(fd, "/proc/self/maps", &crash->maps_bytes);
    copy_stack(fd, crash);
    close(fd);
}

static void copy_reason(pl_crash *crash)
{
    abort_message *message;
    uint64_t name;
    if (abort_messages &&
        copy_bytes(&message, (uint64_t)(uintptr_t)abort_messages, sizeof message) && message)
        copy_text(crash->abort_message, sizeof crash->abort_message,
                  (uint64_t)(uintptr_t)message->text);
    /* A type_info is a vtable pointer and then the name. */
    const void *type =
        crash->signal == SIGABRT ? pl_exception_type(crash->registers[PL_REGISTER_SP]) : NULL;
    if (type && copy_bytes(&name, (uint64_t)(uintptr_t)type + sizeof(void *), sizeof name))
        copy_text(crash->exception_type, sizeof crash->exception_type, name);
}

static bool take(pl_crash *crash, uint32_t state)
{
    return atomic_compare_exchange_strong(&crash->state, &state, PL_CRASH_WRITING);
}

/* Its record is reused for another crash. Removing the file keeps repeated crashes from filling the
 * disk. */
static void remove_crash_file(pid_t pid)
{
    if (name_crash_file(pid, crash_file))
        syscall(SYS_unlinkat, AT_FDCWD, crash_file, 0);
}

/* The latest record of a process other than the command, which may have one too. */
static pl_crash *take_last(void)
{
    pl_crash *crash = &pl_guard_state.ledger->crashes[PL_CRASH_LAST];
    if (take(crash, PL_CRASH_FREE))
        return crash;
    if (!take(crash, PL_CRASH_COMPLETE))
        return NULL;
    remove_crash_file(crash->pid);
    memset((char *)crash + sizeof crash->state, 0, sizeof *crash - sizeof crash->state);
    return crash;
}

static pl_crash *take_record(void)
{
    pl_ledger *ledger = pl_guard_state.ledger;
    if (!ledger)
        return NULL; /* an outsider */
    if (atomic_load(&ledger->header.command_pid) == (uint32_t)getpid() &&
        take(&ledger->crashes[PL_CRASH_COMMAND], PL_CRASH_FREE))
        return &ledger->crashes[PL_CRASH_COMMAND];
    for (int i = 0; i < PL_CRASH_LAST; i++)
        if (take(&ledger->crashes[i], PL_CRASH_FREE))
            return &ledger->crashes[i];
    return take_last();
}

static bool is_own_process(void)
{
    return pl_guard_state.pid == getpid();
}

static uint64_t start_ticks(void)
{
    pl_proc_stat stat;
    if (is_own_process())
        return atomic_load(&pl_guard_state.ledger->slots[pl_guard_state.owner].start_ticks);
    return pl_proc_identity_read(getpid(), &stat) < 0 ? 0 : stat.start_ticks;
}

static void record(int signal, const siginfo_t *info, const ucontext_t *context)
{
    pl_crash *crash = take_record();
    if (!crash)
        return;
    crash->pid = getpid();
    crash->tid = (int32_t)syscall(SYS_gettid);
    crash->signal = signal;
    crash->signal_code = info->si_code;
    crash->sender_pid = info->si_code <= 0 ? info->si_pid : 0;
    crash->address = info->si_code > 0 ? (uint64_t)(uintptr_t)info->si_addr : 0;
    crash->time_ns = pl_clock_monotonic_ns();
    crash->start_ticks = start_ticks();
    prctl(PR_GET_NAME, crash->thread_name);
    pl_registers_copy(crash->registers, context);
    copy_instruction(crash);
    copy_reason(crash);
    write_crash_file(crash);
    int n = pl_callsite_python_stack(crash->python, PL_PYTHON_FRAMES);
    crash->n_python_frames = (uint32_t)n;
    atomic_store(&crash->state, PL_CRASH_COMPLETE);
}

/* Passes the signal on as if the guard were not here: a fault happens again when the handler
 * returns, a signal that was sent is sent again. */
static void hand_on(int signal, const siginfo_t *info)
{
    struct sigaction normal = {.sa_handler = SIG_DFL};
    sigaction(signal, &normal, NULL);
    if (info->si_code <= 0 || signal == SIGTRAP || signal == SIGSYS)
        syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), signal);
}

/* When another thread is recording its crash, the process ends with that one; or it is a child of
 * vfork(), and its parent's threads go on. A second signal in the thread that is recording is not
 * recorded. */
static bool take_turn(_Atomic int *recorder, int tid)
{
    enum { TRIES = 200, PAUSE_NS = 10 * 1000 * 1000 };
    for (int i = 0; i < TRIES; i++) {
        int nobody = 0;
        if (atomic_compare_exchange_strong(recorder, &nobody, tid))
            return true;
        if (nobody == tid)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return false;
}

/* A child of vfork() restores all state, because its parent goes on with the same memory. */
static void on_fatal_signal(int signal, siginfo_t *info, void *context)
{
    static _Atomic int recorder;
    int saved = errno;
    bool inside = pl_thread.inside;
    if (take_turn(&recorder, (int)syscall(SYS_gettid))) {
        pl_thread.inside = true;
        record(signal, info, context);
        if (!is_own_process()) {
            pl_thread.inside = inside;
            atomic_store(&recorder, 0);
        }
    }
    hand_on(signal, info);
    errno = saved;
}

static void free_alternate_stack(void *stack)
{
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    munmap((char *)stack - STACK_GUARD_BYTES, STACK_GUARD_BYTES + alternate_bytes);
}

/* Below the stack lie pages that fault, so that an overflow does not overwrite other memory. */
static void *map_stack(size_t bytes)
{
    char *low = pl_real.mmap(NULL, STACK_GUARD_BYTES + bytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (low == MAP_FAILED)
        return NULL;
    if (mprotect(low + STACK_GUARD_BYTES, bytes, PROT_READ | PROT_WRITE) == 0)
        return low + STACK_GUARD_BYTES;
    pl_real.munmap(low, STACK_GUARD_BYTES + bytes);
    return NULL;
}

static size_t choose_bytes(size_t stack_bytes)
{
    uint64_t bytes = stack_bytes ? stack_bytes : STACK_MOST_BYTES;
    bytes = pl_clamp_u64(bytes, STACK_LEAST_BYTES, STACK_MOST_BYTES);
    return (size_t)bytes / STACK_LEAST_BYTES * STACK_LEAST_BYTES;
}

/* A stack that overflowed has no room for its handler: each thread gets a second one, which takes
 * no memory until it is used. Where memory is limited it may be smaller. */
void pl_crash_install_thread(size_t stack_bytes)
{
    stack_t present;
    if (!have_key || sigaltstack(NULL, &present) != 0 || !(present.ss_flags & SS_DISABLE))
        return;
    size_t bytes = choose_bytes(stack_bytes);
    void *stack = map_stack(bytes);
    if (!stack)
        stack = map_stack(bytes = STACK_LEAST_BYTES);
    if (!stack)
        return;
    alternate_bytes = bytes;
    bool is_main = syscall(SYS_gettid) == getpid(); /* has it to its very end */
    if (!is_main && pthread_setspecific(alternate_stack_key, stack) != 0) {
        pl_real.munmap((char *)stack - STACK_GUARD_BYTES, STACK_GUARD_BYTES + bytes);
        return;
    }
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = bytes}, NULL);
}

void pl_crash_install(void)
{
    abort_messages = dlvsym(RTLD_DEFAULT, "__abort_msg", "GLIBC_PRIVATE");
    have_key = pthread_key_create(&alternate_stack_key, free_alternate_stack) == 0;
    pl_crash_install_thread(0);
    struct sigaction action = {.sa_sigaction = on_fatal_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (size_t i = 0; i < PL_COUNT_OF(fatal_signals); i++) {
        struct sigaction present;
        if (sigaction(fatal_signals[i], NULL, &present) == 0 && present.sa_handler == SIG_DFL)
            sigaction(fatal_signals[i], &action, NULL);
    }
}
