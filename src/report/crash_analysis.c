/* SPDX-License-Identifier: Apache-2.0 */
/* See crash_analysis.h. */
#include "report/crash_analysis.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "report/json.h"
#include "supervise/run_record.h"

/* /proc/PID/maps of a process with torch and 200 threads is 300 KiB; a corrupt length is not
 * trusted with more than this. */
enum { MAPS_MAX_BYTES = 8 << 20 };

/* A fault this near to the stack pointer is an access to the stack itself: calls and pushes touch
 * the pointer, locals lie at most a frame away, and larger frames are probed page by page. */
static const uint64_t near_stack_bytes = 64 * PL_KIB;

pid_t pl_crash_sender(const pl_crash *crash)
{
    bool sent = crash->signal_code == SI_USER || crash->signal_code == SI_TKILL ||
                crash->signal_code == SI_QUEUE;
    return sent && crash->sender_pid > 0 && crash->sender_pid != crash->pid ? crash->sender_pid : 0;
}

/* The stack overflowed when the access was near its pointer and not inside it: below a main
 * thread's stack nothing is mapped, below another's lies a guard page. The mapping above is the
 * stack. */
static void find_full_stack(const pl_crash *crash, const char *maps, pl_crash_analysis *analysis)
{
    uint64_t sp = crash->registers[PL_REGISTER_SP], address = crash->address;
    uint64_t apart = sp > address ? sp - address : address - sp;
    bool fault = crash->signal_code == SEGV_MAPERR || crash->signal_code == SEGV_ACCERR;
    if (crash->signal != SIGSEGV || !fault || sp == 0 || apart > near_stack_bytes)
        return;
    pl_map_region mapping;
    bool found = pl_map_region_find(maps, address, &mapping);
    if (found && address >= mapping.low) /* the guard page */
        found = pl_map_region_find(maps, mapping.high, &mapping);
    if (!found)
        return;
    analysis->full_stack_bytes = mapping.high - mapping.low;
    analysis->cause = PL_CRASH_STACK_OVERFLOW;
}

static bool contains_any(const char *text, const char *const *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(text, parts[i]) != NULL)
            return true;
    return false;
}

/* Classifies text from elsewhere: glibc's last message and the name of a C++ exception. This is the
 * only place that looks for words in it; all later code uses the enum. glibc (malloc/malloc.c, the
 * calls of malloc_printerr()) names the function or structure whose check failed: "free(): invalid
 * pointer", "corrupted size vs. prev_size", "double free or corruption (out)". The message of a
 * failed assert() quotes the program's own expression, which may contain any of these words: only
 * the text before it counts ("malloc.c:2379: sysmalloc: Assertion `..."). */
static enum pl_crash_cause classify_abort(const char *whole_message, const char *exception)
{
    char message[sizeof(((pl_crash *)NULL)->abort_message)];
    static const char *const heap[] = {"malloc",         "realloc()",  "calloc()", "free()",
                                       "munmap_chunk()", "memalign()", "corrupted"};
    snprintf(message, sizeof(message), "%s", whole_message);
    char *quoted = strstr(message, "Assertion `");
    if (quoted != NULL)
        *quoted = '\0';
    if (strstr(message, "double free") != NULL)
        return PL_CRASH_DOUBLE_FREE;
    if (contains_any(message, heap, PL_COUNT_OF(heap)))
        return PL_CRASH_HEAP_CORRUPTION;
    if (strstr(exception, "bad_alloc") != NULL)
        return PL_CRASH_BAD_ALLOC;
    return PL_CRASH_CAUSE_OTHER;
}

static const char *fpe_reason(int code)
{
    switch (code) {
    case FPE_INTDIV:
        return "integer division by zero, or its quotient overflows";
    case FPE_INTOVF:
        return "integer overflow";
    case FPE_FLTDIV:
        return "floating-point division by zero (trap enabled)";
    case FPE_FLTOVF:
    case FPE_FLTUND:
    case FPE_FLTRES:
    case FPE_FLTINV:
        return "floating-point exception (trap enabled)";
    default:
        return "";
    }
}

static void segv_reason(const pl_crash *crash, pl_crash_analysis *analysis)
{
    if (analysis->full_stack_bytes > 0)
        snprintf(analysis->reason, sizeof(analysis->reason),
                 "stack overflow: all %s are used, most likely by endless recursion",
                 PL_SIZE(analysis->full_stack_bytes));
    else if (crash->signal_code == SEGV_MAPERR)
        snprintf(analysis->reason, sizeof(analysis->reason),
                 "access to address 0x%" PRIx64 ", where nothing is mapped", crash->address);
    else if (crash->signal_code == SEGV_ACCERR)
        snprintf(analysis->reason, sizeof(analysis->reason),
                 "access to address 0x%" PRIx64 ", which is protected%s%.150s", crash->address,
                 analysis->mapping[0] != '\0' ? ": " : "", analysis->mapping);
    else if (crash->signal_code == SI_KERNEL)
        snprintf(analysis->reason, sizeof(analysis->reason),
                 "access to an address outside the address space: a wild pointer");
}

static void bus_reason(const pl_crash *crash, pl_crash_analysis *analysis)
{
    if (crash->signal_code == BUS_ADRALN)
        snprintf(analysis->reason, sizeof(analysis->reason),
                 "access to address 0x%" PRIx64 ": misaligned", crash->address);
    else if (strncmp(analysis->mapping, "/dev/shm/", strlen("/dev/shm/")) == 0)
        snprintf(analysis->reason, sizeof(analysis->reason),
                 "/dev/shm is full, or '%.150s' was truncated", analysis->mapping);
    else if (analysis->mapping[0] == '/')
        snprintf(analysis->reason, sizeof(analysis->reason),
                 "the mapped file '%.150s' is shorter than its mapping, or its disk failed",
                 analysis->mapping);
    else
        snprintf(analysis->reason, sizeof(analysis->reason),
                 "the mapped file is shorter than its mapping, or /dev/shm is full");
}

static void abort_reason(const pl_crash *crash, pl_crash_analysis *analysis)
{
    char message[sizeof(crash->abort_message)];
    pl_json_clean(crash->abort_message, sizeof(crash->abort_message), message, sizeof(message));
    message[strcspn(message, "\n")] = '\0';
    analysis->cause = classify_abort(message, analysis->exception);
    if (message[0] != '\0')
        snprintf(analysis->reason, sizeof(analysis->reason), "%s", message);
    else if (analysis->exception[0] != '\0')
        snprintf(analysis->reason, sizeof(analysis->reason), "uncaught C++ exception %s",
                 analysis->exception);
    else
        snprintf(analysis->reason, sizeof(analysis->reason), "it called abort()");
}

static void find_reason(const pl_crash *crash, pl_crash_analysis *analysis)
{
    if (pl_crash_sender(crash) != 0) {
        snprintf(analysis->reason, sizeof(analysis->reason), "process %d sent it",
                 (int)crash->sender_pid);
        return;
    }
    switch (crash->signal) {
    case SIGSEGV:
        segv_reason(crash, analysis);
        break;
    case SIGBUS:
        bus_reason(crash, analysis);
        break;
    case SIGFPE:
        snprintf(analysis->reason, sizeof(analysis->reason), "%s", fpe_reason(crash->signal_code));
        break;
    case SIGABRT:
        abort_reason(crash, analysis);
        break;
    case SIGILL:
        if (analysis->has_instruction && analysis->instruction.deliberate)
            snprintf(analysis->reason, sizeof(analysis->reason),
                     "the program stopped itself by '%s': one of its own checks failed",
                     analysis->instruction.text);
        else if (analysis->has_instruction)
            snprintf(analysis->reason, sizeof(analysis->reason), "it stopped at '%s'",
                     analysis->instruction.text);
        break;
    default:
        break;
    }
}

/* Reads the line at `line`, which ends before `length`. */
static bool parse_mapping(const char *line, size_t length, pl_map_region *mapping)
{
    int at_path = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %*x %*x:%*x %*u%n", &mapping->low,
               &mapping->high, &at_path) != 2 ||
        at_path <= 0 || (size_t)at_path > length || mapping->low >= mapping->high)
        return false;
    size_t n_blanks = strspn(line + at_path, " ");
    const char *path = line + at_path + n_blanks;
    pl_json_clean(path, length - (size_t)at_path - n_blanks, mapping->path, sizeof(mapping->path));
    return true;
}

bool pl_map_region_find(const char *maps, uint64_t address, pl_map_region *ret_mapping)
{
    bool found = false;
    for (const char *line = maps; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        pl_map_region mapping;
        if (parse_mapping(line, length, &mapping) && address < mapping.high &&
            (!found || mapping.low < ret_mapping->low)) {
            *ret_mapping = mapping;
            found = true;
        }
        line += length + (line[length] == '\n');
    }
    return found;
}

/* The maps stand at the head of crash.PID. *ret_maps stays NULL when they cannot be read; the
 * caller frees. */
static int read_maps(const pl_crash *crash, const char *record_directory, char **ret_maps)
{
    char file[32], path[PATH_MAX];
    snprintf(file, sizeof(file), "crash.%d", (int)crash->pid);
    if (pl_run_record_path(record_directory, file, path) < 0)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    size_t n = (size_t)pl_min_u64(crash->maps_bytes, MAPS_MAX_BYTES);
    char *maps = malloc(n + 1);
    ssize_t got = maps != NULL ? pread(fd, maps, n, 0) : -1;
    close(fd);
    if (maps == NULL)
        return -ENOMEM;
    if (got < 0) {
        free(maps);
        return 0;
    }
    maps[got] = '\0';
    *ret_maps = maps;
    return 0;
}

static int look_at_maps(const pl_crash *crash, const char *record_directory,
                        pl_crash_analysis *analysis)
{
    char *maps = NULL;
    int r = read_maps(crash, record_directory, &maps);
    if (maps == NULL)
        return r;
    pl_map_region mapping;
    if (pl_map_region_find(maps, crash->address, &mapping) && crash->address >= mapping.low)
        memcpy(analysis->mapping, mapping.path, sizeof(analysis->mapping));
    find_full_stack(crash, maps, analysis);
    free(maps);
    return 0;
}

int pl_crash_analyse(const pl_crash *crash, const char *record_directory,
                     pl_crash_analysis *ret_analysis)
{
    *ret_analysis = (pl_crash_analysis){0};
    int r = pl_inspect_crash(crash, record_directory, &ret_analysis->native, NULL);
    if (r < 0)
        ret_analysis->native.n_frames = 0;
    if (r != -ENOMEM && (crash->signal == SIGBUS || crash->signal == SIGSEGV))
        r = look_at_maps(crash, record_directory, ret_analysis);
    if (r == -ENOMEM)
        return r;
    if (crash->exception_type[0] != '\0')
        pl_inspect_type_name(crash->exception_type, ret_analysis->exception,
                             sizeof(ret_analysis->exception));
    if (crash->signal == SIGILL && crash->n_instruction_bytes > 0)
        ret_analysis->has_instruction =
            pl_inspect_instruction(crash->instruction, crash->n_instruction_bytes,
                                   &ret_analysis->instruction) >= 0;
    find_reason(crash, ret_analysis);
    return 0;
}
