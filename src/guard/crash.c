/* SPDX-License-Identifier: Apache-2.0 */
/* The last words of a dying process: signal, registers, Python lines, and, in the file crash.PID,
 * the memory map and the top of the stack. Raw bytes by system calls only; nothing is formatted,
 * allocated or locked. Then the signal takes its course, as it would have without us.
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
#include "sys/proc.h"

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

/* The handler itself takes under 8 KiB; reading Python frames about 2 more. */
enum { ALTERNATE_STACK_BYTES = 64 * 1024, STACK_COPY_BYTES = 512 * 1024 };

static char main_alternate_stack[ALTERNATE_STACK_BYTES];
static pthread_key_t alternate_stack_key;
static bool have_key;

/* glibc keeps the text of its last words here: "malloc(): corrupted top size", or assert's. */
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

/* write() fails where a copy would fault: at the end of the stack's mapping. */
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

static void write_crash_file(pl_crash *crash)
{
    int fd = open(pl_guard_state.crash_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
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

static pl_crash *take_record(void)
{
    if (!pl_guard_state.ledger)
        return NULL; /* a forked child that could not join */
    for (int i = 0; i < PL_CRASHES; i++) {
        uint32_t unused = PL_CRASH_FREE;
        pl_crash *crash = &pl_guard_state.ledger->crashes[i];
        if (atomic_compare_exchange_strong(&crash->state, &unused, PL_CRASH_WRITING))
            return crash;
    }
    return NULL;
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
    crash->start_ticks =
        atomic_load(&pl_guard_state.ledger->slots[pl_guard_state.owner].start_ticks);
    prctl(PR_GET_NAME, crash->thread_name);
    pl_registers_copy(crash->registers, context);
    copy_instruction(crash);
    copy_reason(crash);
    write_crash_file(crash);
    int n = pl_callsite_python_stack(crash->python, PL_PYTHON_FRAMES);
    crash->n_python_frames = (uint32_t)n;
    atomic_store(&crash->state, PL_CRASH_COMPLETE);
}

/* The signal goes on as if we had not been here: a fault happens again when we return, a signal
 * that was sent is sent again. */
static void hand_on(int signal, const siginfo_t *info)
{
    struct sigaction normal = {.sa_handler = SIG_DFL};
    sigaction(signal, &normal, NULL);
    if (info->si_code <= 0 || signal == SIGTRAP || signal == SIGSYS)
        syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), signal);
}

static void on_fatal_signal(int signal, siginfo_t *info, void *context)
{
    static _Atomic int recorder;
    int saved = errno;
    int nobody = 0;
    int tid = (int)syscall(SYS_gettid);
    if (atomic_compare_exchange_strong(&recorder, &nobody, tid)) {
        pl_thread.inside = true;
        record(signal, info, context);
    } else if (nobody != tid) {
        /* Another thread is writing its last words, and the process ends with those; or a child of
         * vfork() wrote them, and it does not. */
        nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    }
    hand_on(signal, info);
    errno = saved;
}

static void free_alternate_stack(void *stack)
{
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    munmap(stack, ALTERNATE_STACK_BYTES);
}

static void use_stack(void *stack)
{
    stack_t alternate = {.ss_sp = stack, .ss_size = ALTERNATE_STACK_BYTES};
    sigaltstack(&alternate, NULL);
}

/* An overflown stack has no room for its own handler: each thread gets 64 KiB elsewhere, of which
 * nothing is touched until it is needed. */
void pl_crash_install_thread(void)
{
    stack_t present;
    if (!have_key || sigaltstack(NULL, &present) != 0 || !(present.ss_flags & SS_DISABLE))
        return;
    if (syscall(SYS_gettid) == getpid()) {
        use_stack(main_alternate_stack);
        return;
    }
    void *stack = pl_real.mmap(NULL, ALTERNATE_STACK_BYTES, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        return;
    if (pthread_setspecific(alternate_stack_key, stack) != 0) {
        pl_real.munmap(stack, ALTERNATE_STACK_BYTES);
        return;
    }
    use_stack(stack);
}

void pl_crash_install(void)
{
    abort_messages = dlvsym(RTLD_DEFAULT, "__abort_msg", "GLIBC_PRIVATE");
    have_key = pthread_key_create(&alternate_stack_key, free_alternate_stack) == 0;
    pl_crash_install_thread();
    struct sigaction action = {.sa_sigaction = on_fatal_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (size_t i = 0; i < PL_COUNT_OF(fatal_signals); i++) {
        struct sigaction present;
        if (sigaction(fatal_signals[i], NULL, &present) == 0 && present.sa_handler == SIG_DFL)
            sigaction(fatal_signals[i], &action, NULL);
    }
}
