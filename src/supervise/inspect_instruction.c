/* SPDX-License-Identifier: Apache-2.0 */
/* Which instruction set do these bytes need, and does this CPU have it?
 *
 * Decoding is capstone's. It is loaded when first needed: linked in, its tables would add 3.2 MiB
 * of resident memory and 1.5 ms to the start of every run (measured, capstone 4.0.2), for something
 * that few runs meet. What it does not know, or without it, the prefix still tells the family. */
#include <capstone/capstone.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "supervise/inspect.h"
#include "sys/proc.h"
#include "sys/text.h"

#define STRINGIFY_(x)   #x
#define STRINGIFY(x)    STRINGIFY_(x)
#define CAPSTONE_SONAME "libcapstone.so." STRINGIFY(CS_API_MAJOR)

enum { CPUINFO_BYTES = 8192, INSTRUCTION_BYTES_MAX = 15 };

typedef struct instruction_set {
    const char *name;
    const char *flag; /* in /proc/cpuinfo, see arch/x86/include/asm/cpufeatures.h */
} instruction_set;

/* The most special first: where an instruction is in several groups and the CPU has them all, the
 * first says most. */
static const struct group_rule {
    unsigned group;
    instruction_set set;
} group_rules[] = {
    {X86_GRP_ERI, {"AVX-512ER", "avx512er"}},
    {X86_GRP_PFI, {"AVX-512PF", "avx512pf"}},
    {X86_GRP_CDI, {"AVX-512CD", "avx512cd"}},
    {X86_GRP_BWI, {"AVX-512BW", "avx512bw"}},
    {X86_GRP_DQI, {"AVX-512DQ", "avx512dq"}},
    {X86_GRP_VLX, {"AVX-512VL", "avx512vl"}},
    {X86_GRP_AVX512, {"AVX-512F", "avx512f"}},
    {X86_GRP_FMA, {"FMA", "fma"}},
    {X86_GRP_FMA4, {"FMA4", "fma4"}},
    {X86_GRP_XOP, {"XOP", "xop"}},
    {X86_GRP_F16C, {"F16C", "f16c"}},
    {X86_GRP_AES, {"AES", "aes"}},
    {X86_GRP_PCLMUL, {"PCLMULQDQ", "pclmulqdq"}},
    {X86_GRP_SHA, {"SHA", "sha_ni"}},
    {X86_GRP_ADX, {"ADX", "adx"}},
    {X86_GRP_TBM, {"TBM", "tbm"}},
    {X86_GRP_BMI2, {"BMI2", "bmi2"}},
    {X86_GRP_BMI, {"BMI1", "bmi1"}},
    {X86_GRP_RTM, {"RTM", "rtm"}},
    {X86_GRP_FSGSBASE, {"FSGSBASE", "fsgsbase"}},
    {X86_GRP_AVX2, {"AVX2", "avx2"}},
    {X86_GRP_AVX, {"AVX", "avx"}},
    {X86_GRP_SSE4A, {"SSE4A", "sse4a"}},
    {X86_GRP_SSE42, {"SSE4.2", "sse4_2"}},
    {X86_GRP_SSE41, {"SSE4.1", "sse4_1"}},
    {X86_GRP_SSSE3, {"SSSE3", "ssse3"}},
    {X86_GRP_SSE3, {"SSE3", "pni"}},
    {X86_GRP_3DNOW, {"3DNow!", "3dnow"}},
};

/* Extensions of a few instructions, which capstone puts in no group of their own. */
static const struct mnemonic_rule {
    unsigned id;
    instruction_set set;
} mnemonic_rules[] = {
    {X86_INS_POPCNT, {"POPCNT", "popcnt"}}, {X86_INS_MOVBE, {"MOVBE", "movbe"}},
    {X86_INS_RDRAND, {"RDRAND", "rdrand"}}, {X86_INS_RDSEED, {"RDSEED", "rdseed"}},
    {X86_INS_LZCNT, {"LZCNT", "abm"}},
};

static const instruction_set avx512 = {"AVX-512", "avx512f"};
static const instruction_set avx = {"AVX", "avx"};
static const instruction_set amx = {"AMX", "amx_tile"};

/* --- this CPU --- */

/* The kernel's flags, not CPUID's: it leaves out what the machine has but programs may not use. */
static bool cpu_has(const char *cpuinfo, const char *flag)
{
    const char *line = strstr(cpuinfo, "\nflags");
    if (!line)
        return false;
    const char *end = line + 1 + strcspn(line + 1, "\n");
    size_t n = strlen(flag);
    for (const char *at = line; (at = strstr(at, flag)) && at < end; at += n)
        if (at[-1] == ' ' && (at[n] == ' ' || at[n] == '\n' || at[n] == '\0'))
            return true;
    return false;
}

static void take_set(const instruction_set *set, const char *cpuinfo, pl_instruction *ret)
{
    snprintf(ret->set, sizeof ret->set, "%s", set->name);
    ret->cpu_has_set = cpu_has(cpuinfo, set->flag);
}

/* --- by prefix --- */

/* ud2, ud1 and ud0 under any prefix (clang's traps are a ud1 with an address-size prefix), int3. */
static bool is_deliberate(const uint8_t *bytes, size_t n)
{
    size_t at = 0;
    while (at < n && (bytes[at] == 0x66 || bytes[at] == 0x67 || (bytes[at] & 0xf0) == 0x40))
        at++;
    if (at < n && bytes[at] == 0xcc)
        return true;
    if (n - at < 2 || bytes[at] != 0x0f)
        return false;
    return bytes[at + 1] == 0x0b || bytes[at + 1] == 0xb9 || bytes[at + 1] == 0xff;
}

/* AMX lives in VEX map 2 with W = 0: 49 and 4B load, store and configure tiles; 5C, 5E and 6C
 * multiply them. */
static bool is_amx(const uint8_t *bytes, size_t n)
{
    if (n < 4 || bytes[0] != 0xc4 || (bytes[1] & 0x1f) != 2 || (bytes[2] & 0x80))
        return false;
    return strchr("\x49\x4b\x5c\x5e\x6c", bytes[3]) && bytes[3];
}

/* In 64-bit code these first bytes have one meaning: EVEX, and VEX of three or two bytes. */
static const instruction_set *family_of_prefix(const uint8_t *bytes, size_t n)
{
    if (is_amx(bytes, n))
        return &amx;
    if (bytes[0] == 0x62)
        return &avx512;
    return bytes[0] == 0xc4 || bytes[0] == 0xc5 ? &avx : NULL;
}

/* --- by capstone --- */

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

static bool is_in_group(const cs_insn *decoded, unsigned group)
{
    for (unsigned i = 0; i < decoded->detail->groups_count; i++)
        if (decoded->detail->groups[i] == group)
            return true;
    return false;
}

/* The first set that the CPU lacks; with none lacking, the first. */
static const instruction_set *needed_set(const cs_insn *decoded, const char *cpuinfo)
{
    const instruction_set *first = NULL;
    for (size_t i = 0; i < PL_COUNT_OF(group_rules); i++) {
        if (!is_in_group(decoded, group_rules[i].group))
            continue;
        if (!cpu_has(cpuinfo, group_rules[i].set.flag))
            return &group_rules[i].set;
        if (!first)
            first = &group_rules[i].set;
    }
    for (size_t i = 0; !first && i < PL_COUNT_OF(mnemonic_rules); i++)
        if (decoded->id == mnemonic_rules[i].id)
            first = &mnemonic_rules[i].set;
    return first;
}

/* capstone 4 writes "zmm0 , zmm1". */
static void write_text(const cs_insn *decoded, pl_instruction *ret)
{
    pl_text text = pl_text_begin(ret->text, sizeof ret->text);
    pl_text_add(&text, decoded->mnemonic);
    pl_text_add(&text, decoded->op_str[0] ? " " : "");
    for (const char *at = decoded->op_str; *at; at++)
        if (at[0] != ' ' || at[1] != ',')
            pl_text_add_n(&text, at, 1);
}

static const instruction_set *decode(const capstone *library, csh handle, const uint8_t *bytes,
                                     size_t n, const char *cpuinfo, pl_instruction *ret)
{
    cs_insn *decoded;
    library->option(handle, CS_OPT_DETAIL, CS_OPT_ON);
    if (library->disasm(handle, bytes, n, 0, 1, &decoded) != 1)
        return NULL;
    write_text(decoded, ret);
    const instruction_set *set = needed_set(decoded, cpuinfo);
    library->free(decoded, 1);
    return set;
}

static const instruction_set *disassemble(const uint8_t *bytes, size_t n, const char *cpuinfo,
                                          pl_instruction *ret)
{
    PL_CLEANUP(capstone_done) capstone library = {0};
    csh handle;
    if (!capstone_load(&library) || library.open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
        return NULL;
    const instruction_set *set = decode(&library, handle, bytes, n, cpuinfo, ret);
    library.close(&handle);
    return set;
}

int pl_inspect_instruction(const uint8_t *bytes, size_t n, pl_instruction *ret)
{
#if !defined(__x86_64__)
    return -ENOTSUP;
#endif
    if (n == 0)
        return -ENODATA;
    n = pl_min_u64(n, INSTRUCTION_BYTES_MAX);
    char cpuinfo[CPUINFO_BYTES]; /* of the first CPU: 1,181 bytes measured */
    if (pl_proc_read_file("/proc/cpuinfo", cpuinfo, sizeof cpuinfo) < 0)
        cpuinfo[0] = '\0';

    *ret = (pl_instruction){.deliberate = is_deliberate(bytes, n)};
    const instruction_set *set = disassemble(bytes, n, cpuinfo, ret);
    if (!set)
        set = family_of_prefix(bytes, n);
    if (set && !ret->deliberate)
        take_set(set, cpuinfo, ret);
    return 0;
}
