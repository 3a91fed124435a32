/* SPDX-License-Identifier: Apache-2.0 */
/* See story.h. */
#include "report/story.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/json.h"
#include "supervise/record.h"

/* /proc/PID/maps of a process with torch and 200 threads is 300 KiB; a corrupt length is not
 * trusted with more than this. */
enum { MAPS_MAX_BYTES = 8 << 20 };

/* Where rsp stands among the registers, in DWARF's order. */
enum { REGISTER_RSP = 7 };

/* The kernel keeps 256 pages free below a stack that grows (stack_guard_gap), and a frame may jump
 * over some: a fault this near to the stack's low end is the stack's. */
static const uint64_t stack_gap_bytes = PL_MIB;

pid_t pl_story_sender(const pl_crash *crash)
{
    bool sent = crash->signal_code == SI_USER || crash->signal_code == SI_TKILL ||
                crash->signal_code == SI_QUEUE;
    return sent && crash->sender_pid > 0 && crash->sender_pid != crash->pid ? crash->sender_pid : 0;
}

static bool is_stack_overflow(const pl_crash *crash)
{
    if (crash->signal != SIGSEGV || crash->stack_low == 0)
        return false;
    uint64_t low = pl_sub_sat_u64(crash->stack_low, stack_gap_bytes);
    uint64_t high = pl_add_sat_u64(crash->stack_low, 2 * 4096);
    uint64_t rsp = crash->registers[REGISTER_RSP];
    return crash->address >= low && crash->address < high && rsp >= low &&
           rsp < pl_add_sat_u64(crash->stack_low, stack_gap_bytes);
}

static const char *fpe_reason(int code)
{
    switch (code) {
    case FPE_INTDIV:
        return "an integer was divided by zero, or the quotient does not fit";
    case FPE_INTOVF:
        return "an integer overflowed";
    case FPE_FLTDIV:
        return "a number was divided by zero, with that trap on";
    case FPE_FLTOVF:
    case FPE_FLTUND:
    case FPE_FLTRES:
    case FPE_FLTINV:
        return "a floating point operation failed, with its trap on";
    default:
        return "";
    }
}

static void segv_reason(const pl_crash *crash, pl_story *story)
{
    if (story->stack_overflow)
        snprintf(story->reason, sizeof(story->reason),
                 "the stack of %" PRIu64 " KiB is full: endless recursion, most likely",
                 pl_sub_sat_u64(crash->stack_high, crash->stack_low) / PL_KIB);
    else if (crash->signal_code == SEGV_MAPERR)
        snprintf(story->reason, sizeof(story->reason),
                 "access to address 0x%" PRIx64 ", where nothing is mapped", crash->address);
    else if (crash->signal_code == SEGV_ACCERR)
        snprintf(story->reason, sizeof(story->reason),
                 "access to address 0x%" PRIx64 ", which is protected%s%.150s", crash->address,
                 story->mapping[0] != '\0' ? ": " : "", story->mapping);
    else if (crash->signal_code == SI_KERNEL)
        snprintf(story->reason, sizeof(story->reason),
                 "access to an address that no process can have: a wild pointer");
}

static void bus_reason(const pl_crash *crash, pl_story *story)
{
    if (crash->signal_code == BUS_ADRALN)
        snprintf(story->reason, sizeof(story->reason),
                 "access to address 0x%" PRIx64 ": misaligned", crash->address);
    else if (strncmp(story->mapping, "/dev/shm/", strlen("/dev/shm/")) == 0)
        snprintf(story->reason, sizeof(story->reason),
                 "/dev/shm is full, or '%.150s' was cut short", story->mapping);
    else if (story->mapping[0] == '/')
        snprintf(story->reason, sizeof(story->reason),
                 "the mapped file '%.150s' is shorter than its mapping, or its disk failed",
                 story->mapping);
    else
        snprintf(story->reason, sizeof(story->reason),
                 "the file behind the mapping is shorter, or /dev/shm is full");
}

static void abort_reason(const pl_crash *crash, pl_story *story)
{
    char message[sizeof(crash->abort_message)];
    pl_json_clean(crash->abort_message, sizeof(crash->abort_message), message, sizeof(message));
    message[strcspn(message, "\n")] = '\0';
    if (message[0] != '\0')
        snprintf(story->reason, sizeof(story->reason), "%s", message);
    else if (story->exception[0] != '\0')
        snprintf(story->reason, sizeof(story->reason), "nothing caught the C++ exception %s",
                 story->exception);
    else
        snprintf(story->reason, sizeof(story->reason), "it called abort()");
}

static void find_reason(const pl_crash *crash, pl_story *story)
{
    if (pl_story_sender(crash) != 0) {
        snprintf(story->reason, sizeof(story->reason), "process %d sent it",
                 (int)crash->sender_pid);
        return;
    }
    switch (crash->signal) {
    case SIGSEGV:
        segv_reason(crash, story);
        break;
    case SIGBUS:
        bus_reason(crash, story);
        break;
    case SIGFPE:
        snprintf(story->reason, sizeof(story->reason), "%s", fpe_reason(crash->signal_code));
        break;
    case SIGABRT:
        abort_reason(crash, story);
        break;
    case SIGILL:
        if (story->has_instruction && story->instruction.deliberate)
            snprintf(story->reason, sizeof(story->reason),
                     "the program trapped itself, by '%s': a check of its own failed",
                     story->instruction.text);
        else if (story->has_instruction)
            snprintf(story->reason, sizeof(story->reason), "it stopped at '%s'",
                     story->instruction.text);
        break;
    default:
        break;
    }
}

bool pl_story_find_mapping(const char *maps, uint64_t address, char *path, size_t n)
{
    for (const char *line = maps; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        uint64_t low, high;
        int at_path = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %*x %*x:%*x %*u%n", &low, &high, &at_path) ==
                2 &&
            at_path > 0 && (size_t)at_path <= length && address >= low && address < high) {
            const char *name = line + at_path;
            name += strspn(name, " ");
            pl_json_clean(name, strcspn(name, "\n"), path, n);
            return true;
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

/* The maps stand at the head of crash.PID. */
static void find_mapping(const pl_crash *crash, const char *record_directory, pl_story *story)
{
    char file[32], path[PATH_MAX];
    snprintf(file, sizeof(file), "crash.%d", (int)crash->pid);
    if (pl_record_path(record_directory, file, path) < 0)
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return;
    size_t n = (size_t)pl_min_u64(crash->maps_bytes, MAPS_MAX_BYTES);
    char *maps = malloc(n + 1);
    ssize_t got = maps != NULL ? pread(fd, maps, n, 0) : -1;
    if (got >= 0) {
        maps[got] = '\0';
        pl_story_find_mapping(maps, crash->address, story->mapping, sizeof(story->mapping));
    }
    free(maps);
    close(fd);
}

void pl_story_tell(const pl_crash *crash, const char *record_directory, pl_story *ret_story)
{
    *ret_story = (pl_story){.stack_overflow = is_stack_overflow(crash)};
    if (pl_inspect_crash(crash, record_directory, &ret_story->native, NULL) < 0)
        ret_story->native.n_frames = 0;
    if (crash->signal == SIGBUS || crash->signal == SIGSEGV)
        find_mapping(crash, record_directory, ret_story);
    if (crash->exception_type[0] != '\0')
        pl_inspect_type_name(crash->exception_type, ret_story->exception,
                             sizeof(ret_story->exception));
    if (crash->signal == SIGILL && crash->n_instruction_bytes > 0)
        ret_story->has_instruction =
            pl_inspect_instruction(crash->instruction, crash->n_instruction_bytes,
                                   &ret_story->instruction) >= 0;
    find_reason(crash, ret_story);
}
