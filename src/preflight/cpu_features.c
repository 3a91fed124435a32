/* SPDX-License-Identifier: Apache-2.0 */
/* See cpu_features.h. */
#include "preflight/cpu_features.h"

#include <assert.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "preflight/sysroot.h"

/* Where cpuid reports each: leaf 1 ecx, leaf 7 ebx, leaf 0x80000001 ecx. */
enum { LEAF_1, LEAF_7, LEAF_EXTENDED, N_LEAVES, NOT_X86 };
enum { CPUINFO_BYTES = 16384 }; /* the first processor's part has about 1.5 KB */

static const struct feature {
    const char *name;
    const char *cpuinfo;
    int leaf, bit;
} features[] = {
    {"sse3", "pni", LEAF_1, 0},
    {"ssse3", "ssse3", LEAF_1, 9},
    {"cx16", "cx16", LEAF_1, 13},
    {"sse4.1", "sse4_1", LEAF_1, 19},
    {"sse4.2", "sse4_2", LEAF_1, 20},
    {"popcnt", "popcnt", LEAF_1, 23},
    {"lahf", "lahf_lm", LEAF_EXTENDED, 0},
    {"fma", "fma", LEAF_1, 12},
    {"movbe", "movbe", LEAF_1, 22},
    {"avx", "avx", LEAF_1, 28},
    {"f16c", "f16c", LEAF_1, 29},
    {"bmi1", "bmi1", LEAF_7, 3},
    {"avx2", "avx2", LEAF_7, 5},
    {"bmi2", "bmi2", LEAF_7, 8},
    {"lzcnt", "abm", LEAF_EXTENDED, 5},
    {"avx512f", "avx512f", LEAF_7, 16},
    {"avx512dq", "avx512dq", LEAF_7, 17},
    {"avx512cd", "avx512cd", LEAF_7, 28},
    {"avx512bw", "avx512bw", LEAF_7, 30},
    {"avx512vl", "avx512vl", LEAF_7, 31},
    {"lse", "atomics", NOT_X86, 8}, /* HWCAP_ATOMICS */
};

enum {
    V2_BITS = 0x7f,                                 /* the first seven of the table */
    V3_BITS = 0x7fff,                               /* and up to lzcnt */
    V4_BITS = 0xfffff,                              /* and AVX-512's */
    YMM_BITS = 1 << 7 | 1 << 9 | 1 << 10 | 1 << 12, /* useless unless the system saves registers */
    ZMM_BITS = 0xf8000,
};
static_assert(PL_COUNT_OF(features) == 21, "the levels above count the table's rows");

uint32_t pl_cpu_feature_bits(const char *name)
{
    static const struct {
        const char *name;
        uint32_t bits;
    } levels[] = {{"x86-64-v2", V2_BITS}, {"x86-64-v3", V3_BITS}, {"x86-64-v4", V4_BITS}};
    for (size_t i = 0; i < PL_COUNT_OF(levels); i++)
        if (strcmp(name, levels[i].name) == 0)
            return levels[i].bits;
    for (size_t i = 0; i < PL_COUNT_OF(features); i++)
        if (strcmp(name, features[i].name) == 0)
            return UINT32_C(1) << i;
    return 0;
}

const char *pl_cpu_features_missing(const pl_cpu_features *there, uint32_t bits, char *text,
                                    size_t n)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < PL_COUNT_OF(features); i++) {
        size_t length = strlen(features[i].name);
        if (!(bits & ~there->bits & UINT32_C(1) << i) || used + length + 2 > n)
            continue;
        if (used > 0)
            text[used++] = ' ';
        memcpy(text + used, features[i].name, length + 1);
        used += length;
    }
    return text;
}

/* Returns whether the line contains the whole word. */
static bool has_word(const char *line, size_t n, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = line; (at = memmem(at, (size_t)(line + n - at), word, length)); at++)
        if (at > line && (at[-1] == ' ' || at[-1] == '\t') &&
            (at + length == line + n || at[length] == ' '))
            return true;
    return false;
}

static const char *find_line(const char *text, const char *key)
{
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, strlen(key)) == 0)
            return line;
    }
    return NULL;
}

bool pl_cpu_features_parse(const char *cpuinfo, pl_cpu_features *ret_features)
{
    const char *x86 = find_line(cpuinfo, "flags"), *arm = find_line(cpuinfo, "Features");
    const char *line = x86 != NULL ? x86 : arm;
    if (line == NULL)
        return false;
    pl_cpu_features found = {0};
    strcpy(found.machine, x86 != NULL ? "x86_64" : "aarch64");
    for (size_t i = 0; i < PL_COUNT_OF(features); i++)
        if ((features[i].leaf != NOT_X86) == (x86 != NULL) &&
            has_word(line, strcspn(line, "\n"), features[i].cpuinfo))
            found.bits |= UINT32_C(1) << i;
    *ret_features = found;
    return true;
}

#if defined(__x86_64__)
/* XCR0: the registers that the kernel saves for each thread. */
static uint32_t saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static uint32_t ask_processor(void)
{
    enum { XSAVE_IN_USE = 1 << 27, YMM_SAVED = 0x6, ZMM_SAVED = 0xe6 };
    unsigned a, b, c, d, leaves[N_LEAVES] = {0};
    if (__get_cpuid(1, &a, &b, &c, &d))
        leaves[LEAF_1] = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
        leaves[LEAF_7] = b;
    if (__get_cpuid(0x80000001, &a, &b, &c, &d))
        leaves[LEAF_EXTENDED] = c;
    uint32_t bits = 0, saved = leaves[LEAF_1] & XSAVE_IN_USE ? saved_registers() : 0;
    for (size_t i = 0; i < PL_COUNT_OF(features); i++)
        if (features[i].leaf != NOT_X86 && leaves[features[i].leaf] >> features[i].bit & 1)
            bits |= UINT32_C(1) << i;
    if ((saved & YMM_SAVED) != YMM_SAVED)
        bits &= ~(uint32_t)YMM_BITS;
    if ((saved & ZMM_SAVED) != ZMM_SAVED)
        bits &= ~(uint32_t)ZMM_BITS;
    return bits;
}
#else
static uint32_t ask_processor(void)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < PL_COUNT_OF(features); i++)
        if (features[i].leaf == NOT_X86 && getauxval(AT_HWCAP) >> features[i].bit & 1)
            bits |= UINT32_C(1) << i;
    return bits;
}
#endif

void pl_cpu_features_read(const char *root, pl_cpu_features *ret_features)
{
    char text[CPUINFO_BYTES];
    if (root[0] != '\0' && pl_sysroot_read_proc(root, "/proc/cpuinfo", text, sizeof text) > 0 &&
        pl_cpu_features_parse(text, ret_features))
        return;
    pl_cpu_features found = {.bits = ask_processor()};
    struct utsname name;
    if (uname(&name) == 0)
        pl_format(found.machine, sizeof found.machine, "%s", name.machine);
    *ret_features = found;
}
