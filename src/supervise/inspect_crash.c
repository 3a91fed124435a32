/* SPDX-License-Identifier: Apache-2.0 */
/* Unwinds the stack of a process that is gone, from the file crash.PID that its handler wrote:
 *
 *   [ text of /proc/PID/maps: maps_bytes ][ stack from its pointer upwards: stack_bytes ]
 *
 * Code comes from the ELF files that the maps name. A file that changed after the crash is not the
 * one that ran: it gives no names. Both lengths are checked against the file before they are
 * trusted; a stack cut short is unwound as far as possible. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervise/inspect_private.h"
#include "sys/file.h"

enum {
    MAPPINGS_MAX = 65530 + 1, /* vm.max_map_count, and the vsyscall page */
    THE_TID = 1,              /* libdw wants a name for the one thread; ours may be garbage */
};

static const uint64_t file_bytes_max = 64 * PL_MIB;

typedef struct mapping {
    uint64_t start;
    uint64_t end;
    uint64_t offset;
    bool executable;
    const char *path; /* in the text; "" = anonymous */
} mapping;

typedef struct image {
    char *bytes; /* the whole of crash.PID */
    struct timespec written;
    mapping *mappings; /* in ascending order, none overlapping */
    size_t n_mappings;
    const char *stack;
    uint64_t stack_start;
    uint64_t stack_bytes;
    uint64_t registers[PL_CRASH_REGISTERS];
} image;

static void image_done(image *self)
{
    free(self->bytes);
    free(self->mappings);
}

static void closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* O_NONBLOCK: the path comes from a file, and may name a pipe. */
static int open_regular(const char *path, struct stat *ret_status)
{
    PL_CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, ret_status) != 0)
        return -errno;
    if (!S_ISREG(ret_status->st_mode))
        return PL_EFORMAT;
    int opened = fd;
    fd = -1;
    return opened;
}

static int image_load(image *self, const pl_crash *crash, const char *path)
{
    struct stat status;
    PL_CLEANUP(closep) int fd = open_regular(path, &status);
    if (fd < 0)
        return fd;
    uint64_t size = (uint64_t)status.st_size;
    if (size > file_bytes_max || crash->maps_bytes == 0 || crash->maps_bytes > size)
        return PL_ECORRUPT;

    self->bytes = malloc(size);
    if (!self->bytes)
        return -ENOMEM;
    int r = pl_file_read(fd, self->bytes, size, 0);
    if (r < 0)
        return r;
    self->written = status.st_mtim;
    self->stack = self->bytes + crash->maps_bytes;
    self->stack_bytes = pl_min_u64(crash->stack_bytes, size - crash->maps_bytes);
    self->stack_start = crash->registers[PL_REGISTER_SP];
    memcpy(self->registers, crash->registers, sizeof self->registers);
    return 0;
}

/* "55d0c7a00000-55d0c7a2e000 r-xp 00002000 08:01 1234   /usr/bin/python3.11" */
static bool parse_mapping(const char *line, mapping *ret)
{
    char permissions[5];
    int path_at = 0;
    mapping found = {0};
    if (sscanf(line, "%16" SCNx64 "-%16" SCNx64 " %4s %16" SCNx64 " %*9[0-9a-f:] %*20u %n",
               &found.start, &found.end, permissions, &found.offset, &path_at) != 4 ||
        path_at == 0 || found.start >= found.end || strlen(permissions) != 4)
        return false;
    found.executable = permissions[2] == 'x';
    found.path = line + path_at;
    *ret = found;
    return true;
}

static size_t count_lines(const char *text, size_t n)
{
    size_t lines = 1;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

/* Lines that do not parse, or are not in the kernel's order, are skipped. */
static int image_parse_maps(image *self, size_t maps_bytes)
{
    size_t max = pl_min_u64(count_lines(self->bytes, maps_bytes), MAPPINGS_MAX);
    self->mappings = calloc(max, sizeof *self->mappings);
    if (!self->mappings)
        return -ENOMEM;
    char *end = self->bytes + maps_bytes;
    uint64_t mapped_to = 0;
    for (char *line = self->bytes; line < end && self->n_mappings < max;) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        if (!newline)
            break; /* the handler died inside this line */
        *newline = '\0';
        mapping *next = &self->mappings[self->n_mappings];
        if (parse_mapping(line, next) && next->start >= mapped_to) {
            mapped_to = next->end;
            self->n_mappings++;
        }
        line = newline + 1;
    }
    return self->n_mappings > 0 ? 0 : PL_ECORRUPT;
}

static const mapping *image_find(const image *self, uint64_t address)
{
    for (size_t i = 0; i < self->n_mappings; i++)
        if (address >= self->mappings[i].start && address < self->mappings[i].end)
            return &self->mappings[i];
    return NULL;
}

static bool is_executable(const image *self, uint64_t address)
{
    const mapping *found = image_find(self, address);
    return found && found->executable;
}

/* Finds the load bias, the distance by which the file's addresses were moved, from the program
 * header that was mapped here. */
static bool find_bias(Elf *elf, const mapping *code, uint64_t *ret_bias)
{
    size_t n_headers;
    if (elf_getphdrnum(elf, &n_headers) != 0)
        return false;
    uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
    for (size_t i = 0; i < n_headers && i < INT_MAX; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD ||
            !(header.p_flags & PF_X) || code->offset < (header.p_offset & ~page_mask) ||
            code->offset >= pl_add_sat_u64(header.p_offset, header.p_filesz))
            continue;
        *ret_bias = code->start - (header.p_vaddr - header.p_offset + code->offset);
        return true;
    }
    return false;
}

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* Reports one mapped ELF file to libdw, which then owns its descriptor. Returns the end of the
 * module, 0 when there is none. It compares ctime, because a package manager sets mtime from the
 * archive. */
static uint64_t report_module(const image *self, Dwfl *dwfl, const mapping *code)
{
    struct stat status;
    PL_CLEANUP(closep) int fd = open_regular(code->path, &status);
    if (fd < 0 || is_later(status.st_ctim, self->written))
        return 0;
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    uint64_t bias = 0;
    bool mapped = elf && find_bias(elf, code, &bias);
    elf_end(elf);
    Dwfl_Module *module =
        mapped ? dwfl_report_elf(dwfl, code->path, code->path, fd, bias, true) : NULL;
    if (!module)
        return 0;
    fd = -1;
    Dwarf_Addr end = 0;
    dwfl_module_info(module, NULL, NULL, &end, NULL, NULL, NULL, NULL);
    return end;
}

/* Reports only mappings that hold code: libraries and programs, not the files that a program maps
 * as data. Further code inside a module was reported with it. */
static void report_modules(const image *self, Dwfl *dwfl)
{
    elf_version(EV_CURRENT);
    uint64_t reported_to = 0;
    for (size_t i = 0; i < self->n_mappings; i++) {
        const mapping *code = &self->mappings[i];
        if (code->executable && code->path[0] == '/' && code->start >= reported_to)
            reported_to = pl_max_u64(reported_to, report_module(self, dwfl, code));
    }
    dwfl_report_end(dwfl, NULL, NULL);
}

static bool read_stack(const image *self, uint64_t address, uint64_t *ret_word)
{
    if (address < self->stack_start || self->stack_bytes < sizeof *ret_word ||
        address - self->stack_start > self->stack_bytes - sizeof *ret_word)
        return false;
    memcpy(ret_word, self->stack + (address - self->stack_start), sizeof *ret_word);
    return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret_word, void *argument)
{
    uint64_t word;
    if (!read_stack(argument, address, &word) &&
        !pl_symbols_read(dwfl, address, &word, sizeof word))
        return false;
    *ret_word = word;
    return true;
}

static pid_t next_thread(Dwfl *dwfl, void *argument, void **thread)
{
    (void)dwfl;
    if (*thread)
        return 0;
    *thread = argument;
    return THE_TID;
}

static bool set_registers(Dwfl_Thread *thread, void *argument)
{
    const image *self = argument;
    Dwarf_Word words[PL_UNWOUND_REGISTERS];
    for (int i = 0; i < PL_UNWOUND_REGISTERS; i++)
        words[i] = self->registers[i];
    if (!dwfl_thread_state_registers(thread, 0, PL_UNWOUND_REGISTERS, words))
        return false;
    dwfl_thread_state_register_pc(thread, self->registers[PL_REGISTER_PC]);
    return true;
}

static const Dwfl_Thread_Callbacks image_callbacks = {
    .next_thread = next_thread,
    .memory_read = read_memory,
    .set_initial_registers = set_registers,
};

#if defined(__x86_64__)

/* Is there a call instruction that ends at `address`? E8 rel32, or FF /2 with any addressing. */
static bool follows_call(Dwfl *dwfl, uint64_t address)
{
    enum { CALL_BYTES_MAX = 7 }; /* longest `call *disp32(base,index)`, REX prefix not counted */
    uint8_t code[CALL_BYTES_MAX];
    if (!pl_symbols_read(dwfl, address - sizeof code, code, sizeof code))
        return false;
    if (code[CALL_BYTES_MAX - 5] == 0xe8)
        return true;
    for (int n = 2; n <= CALL_BYTES_MAX; n++) {
        const uint8_t *call = code + CALL_BYTES_MAX - n;
        if (call[0] == 0xff && (call[1] & 0x38) == 0x10)
            return true;
    }
    return false;
}

/* A call pushes its return address. */
static bool take_return_address(image *self, uint64_t *ret_address)
{
    if (!read_stack(self, self->registers[PL_REGISTER_SP], ret_address))
        return false;
    self->registers[PL_REGISTER_SP] += sizeof *ret_address;
    return true;
}

#else

/* Is there a call instruction that ends at `address`? bl, or blr and its kinds that check a
 * signature (blraa and others). */
static bool follows_call(Dwfl *dwfl, uint64_t address)
{
    uint32_t code;
    if (address % sizeof code != 0 ||
        !pl_symbols_read(dwfl, address - sizeof code, &code, sizeof code))
        return false;
    return (code & 0xfc000000) == 0x94000000 || (code & 0xfefff000) == 0xd63f0000;
}

/* A call leaves its return address in a register. */
static bool take_return_address(image *self, uint64_t *ret_address)
{
    *ret_address = self->registers[PL_REGISTER_LR];
    return true;
}

#endif

/* After a call of a bad address, the caller is at the return address, if a call instruction
 * precedes that. The frame of the bad address is added here. */
static bool step_back_from_bad_jump(image *self, Dwfl *dwfl, pl_unwound *unwound)
{
    uint64_t caller;
    unwound->addresses[unwound->n++] = self->registers[PL_REGISTER_PC];
    if (!take_return_address(self, &caller) || !is_executable(self, caller) ||
        !follows_call(dwfl, caller))
        return false;
    self->registers[PL_REGISTER_PC] = caller - 1;
    return true;
}

/* libdw does not know modules without a file; the maps still name them. */
static void name_unreported(const image *self, pl_native_stack *stack)
{
    for (int i = 0; i < stack->n_frames; i++) {
        pl_native_frame *frame = &stack->frames[i];
        const mapping *found = image_find(self, frame->address);
        if (frame->module[0] || !found || !found->path[0])
            continue;
        snprintf(frame->module, sizeof frame->module, "%s", found->path);
        frame->offset = frame->address - found->start + found->offset;
    }
}

static void unwind(image *self, Dwfl *dwfl, pl_unwound *unwound)
{
    bool jumped = !is_executable(self, self->registers[PL_REGISTER_PC]);
    if (jumped && !step_back_from_bad_jump(self, dwfl, unwound))
        return;
    if (dwfl_attach_state(dwfl, NULL, THE_TID, &image_callbacks, self))
        pl_unwind_thread(dwfl, THE_TID, jumped, unwound);
}

static int inspect_image(image *self, size_t maps_bytes, pl_native_stack *ret_stack)
{
    int r = image_parse_maps(self, maps_bytes);
    if (r < 0)
        return r;
    PL_CLEANUP(pl_symbols_endp) Dwfl *dwfl = pl_symbols_begin();
    if (!dwfl)
        return -ENOMEM;
    report_modules(self, dwfl);
    pl_unwound unwound = {0};
    unwind(self, dwfl, &unwound);
    pl_unwound_name(dwfl, &unwound, ret_stack);
    name_unreported(self, ret_stack);
    return 0;
}

int pl_inspect_crash(const pl_crash *crash, const char *record_directory,
                     pl_native_stack *ret_stack, pl_error *reterr)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/crash.%d", record_directory, crash->pid);
    if (n < 0 || (size_t)n >= sizeof path)
        return pl_error_set(reterr, -ENAMETOOLONG, "'%s': the path is too long", record_directory);

    PL_CLEANUP(image_done) image self = {0};
    int r = image_load(&self, crash, path);
    if (r >= 0)
        r = inspect_image(&self, crash->maps_bytes, ret_stack);
    return r < 0 ? pl_error_set(reterr, r, "'%s': %s", path, pl_error_text(r)) : 0;
}
