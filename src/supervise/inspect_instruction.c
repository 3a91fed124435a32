/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the instruction set that some bytes need, and checks that this CPU has it.
 *
 * capstone decodes. It is loaded when first needed: linked in, its tables would add 3.2 MiB of
 * resident memory and 1.5 ms to the start of every run (measured, capstone 4.0.2), for something
 * that few runs meet. The file of each machine finds the needs of the decoded instruction, and what
 * the bytes say without capstone. */
#include "supervise/inspect_instruction.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "sys/fixed_text.h"
#include "sys/proc.h"

#define STRINGIFY_(x)   #x
#define STRINGIFY(x)    STRINGIFY_(x)
#define CAPSTONE_SONAME "libcapstone.so." STRINGIFY(CS_API_MAJOR)

enum { FLAGS_BYTES = 8192 };

/* --- this CPU --- */

bool pl_flags_have(const char *flags, const char *flag)
{
    size_t n = strlen(flag);
    for (const char *at = flags; (at = strstr(at, flag)); at += n)
        if (at > flags && at[-1] == ' ' && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

#if defined(__x86_64__)

static const pl_instruction_machine *const this_machine = &pl_instructions_x86_64;

/* The kernel's flags, not CPUID's: it leaves out what the machine has but programs may not use. */
static void read_flags(char *flags, size_t n)
{
    /* The first CPU's part of the file has 1,181 bytes (measured). */
    char *line = pl_proc_read_file("/proc/cpuinfo", flags, n) < 0 ? NULL : strstr(flags, "\nflags");
    if (!line) {
        flags[0] = '\0';
        return;
    }
    size_t length = strcspn(line + 1, "\n");
    memmove(flags, line + 1, length);
    flags[length] = '\0';
}

#else

static const pl_instruction_machine *const this_machine = &pl_instructions_arm64;

/* The kernel's names for the bits of AT_HWCAP and then AT_HWCAP2, as in /proc/cpuinfo
 * (arch/arm64/kernel/cpuinfo.c). The vector is read and not that file, because under qemu the file
 * describes the host. */
static const char *const hwcap_words[] = {
    "fp",       "asimd",      "evtstrm",  "aes",     "pmull",         "sha1",     "sha2",
    "crc32",    "atomics",    "fphp",     "asimdhp", "cpuid",         "asimdrdm", "jscvt",
    "fcma",     "lrcpc",      "dcpop",    "sha3",    "sm3",           "sm4",      "asimddp",
    "sha512",   "sve",        "asimdfhm", "dit",     "uscat",         "ilrcpc",   "flagm",
    "ssbs",     "sb",         "paca",     "pacg",    [32] = "dcpodp", "sve2",     "sveaes",
    "svepmull", "svebitperm", "svesha3",  "svesm4",  "flagm2",        "frint",    "svei8mm",
    "svef32mm", "svef64mm",   "svebf16",  "i8mm",    "bf16",          "dgh",      "rng",
    "bti",      "mte",        "ecv",      "afp",     "rpres",         "mte3",     "sme"};

static void read_flags(char *flags, size_t n)
{
    uint64_t bits[] = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
    pl_fixed_text text = pl_fixed_text_begin(flags, n);
    for (size_t i = 0; i < PL_COUNT_OF(hwcap_words); i++) {
        if (!(bits[i / 32] >> i % 32 & 1))
            continue;
        pl_fixed_text_add(&text, " ");
        pl_fixed_text_add(&text, hwcap_words[i]);
    }
}

#endif

/* --- capstone --- */

typedef struct capstone {
    void *library;
    __typeof__(cs_open) *open;
    __typeof__(cs_close) *close;
    __typeof__(cs_option) *option;
    __typeof__(cs_disasm) *disasm;
    __typeof__(cs_free) *free;
} capstone;

static bool capstone_load(capstone *self)
{
    self->library = dlopen(CAPSTONE_SONAME, RTLD_LAZY | RTLD_LOCAL);
    if (!self->library)
        return false;
    /* POSIX lets the pointers be one size; ISO C has no cast between them. */
    *(void **)&self->open = dlsym(self->library, "cs_open");
    *(void **)&self->close = dlsym(self->library, "cs_close");
    *(void **)&self->option = dlsym(self->library, "cs_option");
    *(void **)&self->disasm = dlsym(self->library, "cs_disasm");
    *(void **)&self->free = dlsym(self->library, "cs_free");
    return self->open && self->close && self->option && self->disasm && self->free;
}

static void capstone_done(capstone *self)
{
    if (self->library)
        dlclose(self->library);
}

/* capstone 4 writes "zmm0 , zmm1". */
static void write_decoded(const cs_insn *decoded, pl_instruction *ret)
{
    pl_fixed_text text = pl_fixed_text_begin(ret->text, sizeof ret->text);
    pl_fixed_text_add(&text, decoded->mnemonic);
    pl_fixed_text_add(&text, decoded->op_str[0] ? " " : "");
    for (const char *at = decoded->op_str; *at; at++)
        if (at[0] != ' ' || at[1] != ',')
            pl_fixed_text_add_n(&text, at, 1);
}

static const pl_instruction_set *decode(const capstone *library, csh handle,
                                        const pl_instruction_machine *machine, const uint8_t *bytes,
                                        size_t n, const char *flags, pl_instruction *ret)
{
    cs_insn *decoded;
    library->option(handle, CS_OPT_DETAIL, CS_OPT_ON);
    if (library->disasm(handle, bytes, n, 0, 1, &decoded) != 1)
        return machine->needed_set(NULL, bytes, n, flags);
    write_decoded(decoded, ret);
    const pl_instruction_set *set = machine->needed_set(decoded, bytes, n, flags);
    library->free(decoded, 1);
    return set;
}

static const pl_instruction_set *disassemble(const pl_instruction_machine *machine,
                                             const uint8_t *bytes, size_t n, const char *flags,
                                             pl_instruction *ret)
{
    PL_CLEANUP(capstone_done) capstone library = {0};
    csh handle;
    if (!capstone_load(&library) ||
        library.open(machine->arch, machine->mode, &handle) != CS_ERR_OK)
        return machine->needed_set(NULL, bytes, n, flags);
    const pl_instruction_set *set = decode(&library, handle, machine, bytes, n, flags, ret);
    library.close(&handle);
    return set;
}

int pl_instruction_tell(const pl_instruction_machine *machine, const uint8_t *bytes, size_t n,
                        const char *flags, pl_instruction *ret)
{
    if (n == 0)
        return -ENODATA;
    n = pl_min_u64(n, machine->bytes_max);
    *ret = (pl_instruction){.deliberate = machine->is_deliberate(bytes, n)};
    const pl_instruction_set *set = disassemble(machine, bytes, n, flags, ret);
    if (!ret->text[0])
        machine->write_text(bytes, n, ret->text, sizeof ret->text);
    if (set && !ret->deliberate) {
        snprintf(ret->set, sizeof ret->set, "%s", set->name);
        ret->cpu_has_set = pl_flags_have(flags, set->flag);
    }
    return 0;
}

int pl_inspect_instruction(const uint8_t *bytes, size_t n, pl_instruction *ret)
{
    char flags[FLAGS_BYTES];
    read_flags(flags, sizeof flags);
    return pl_instruction_tell(this_machine, bytes, n, flags, ret);
}
