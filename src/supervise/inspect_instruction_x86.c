/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of x86-64. capstone puts most into groups that say which set they need. For those
 * that it does not know, the prefix still gives the family. Flags are those of
 * arch/x86/include/asm/cpufeatures.h. */
#include <string.h>

#include "supervise/inspect_instruction.h"

/* Most specific first: where an instruction is in several groups and the CPU has them all, the
 * first says most. */
static const struct group_rule {
    unsigned group;
    pl_instruction_set set;
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
    pl_instruction_set set;
} mnemonic_rules[] = {
    {X86_INS_POPCNT, {"POPCNT", "popcnt"}}, {X86_INS_MOVBE, {"MOVBE", "movbe"}},
    {X86_INS_RDRAND, {"RDRAND", "rdrand"}}, {X86_INS_RDSEED, {"RDSEED", "rdseed"}},
    {X86_INS_LZCNT, {"LZCNT", "abm"}},
};

/* capstone 5 leaves the groups of many instructions empty that capstone 4 has; found by comparing
 * the two over every opcode. The missing groups are found by the name, among instructions of the
 * same encoding: the first byte of EVEX, VEX (0xc5 is counted as 0xc4) and XOP, 0 for the rest. */
static const struct name_rule {
    uint8_t encoding;
    const char *beginning;
    const char *operand; /* NULL: whatever it works on */
    pl_instruction_set set;
} name_rules[] = {
    {0x62, "vpconflict", NULL, {"AVX-512CD", "avx512cd"}},
    {0x62, "vplzcnt", NULL, {"AVX-512CD", "avx512cd"}},
    {0x62, "vexp2", NULL, {"AVX-512ER", "avx512er"}},
    {0x62, "vrcp28", NULL, {"AVX-512ER", "avx512er"}},
    {0x62, "vrsqrt28", NULL, {"AVX-512ER", "avx512er"}},
    {0xc4, "vfmadd", NULL, {"FMA", "fma"}},
    {0xc4, "vfmsub", NULL, {"FMA", "fma"}},
    {0xc4, "vfnmadd", NULL, {"FMA", "fma"}},
    {0xc4, "vfnmsub", NULL, {"FMA", "fma"}},
    {0xc4, "vpabs", "ymm", {"AVX2", "avx2"}},
    {0xc4, "vpalignr", "ymm", {"AVX2", "avx2"}},
    {0xc4, "vph", "ymm", {"AVX2", "avx2"}}, /* vphaddsw, vphsubsw */
    {0xc4, "vpmaddubsw", "ymm", {"AVX2", "avx2"}},
    {0xc4, "vpmulhrsw", "ymm", {"AVX2", "avx2"}},
    {0x8f, "vpcmov", NULL, {"XOP", "xop"}},
    {0x8f, "vpperm", NULL, {"XOP", "xop"}},
    {0, "pabs", NULL, {"SSSE3", "ssse3"}},
    {0, "palignr", NULL, {"SSSE3", "ssse3"}},
    {0, "phaddsw", NULL, {"SSSE3", "ssse3"}},
    {0, "phsubsw", NULL, {"SSSE3", "ssse3"}},
    {0, "pmaddubsw", NULL, {"SSSE3", "ssse3"}},
    {0, "pmulhrsw", NULL, {"SSSE3", "ssse3"}},
    {0, "phminposuw", NULL, {"SSE4.1", "sse4_1"}},
    {0, "pcmpestr", NULL, {"SSE4.2", "sse4_2"}},
    {0, "pcmpistr", NULL, {"SSE4.2", "sse4_2"}},
};

/* Extensions that no capstone has a group for, by their encoding (Intel's manual, volume 2, and the
 * tables of its instruction set extensions). A build for a newer processor dies of these on one
 * that has the rest of AVX-512: oneDNN chooses by VNNI and BF16. */
enum { ANY = 0xff };
enum { MAP_0F38 = 2, MAP_0F3A = 3, MAP_5 = 5, MAP_6 = 6 };
enum { PP_66 = 1, PP_F3 = 2, PP_F2 = 3 };
static const struct opcode_rule {
    uint8_t encoding; /* 0x62: EVEX, 0xc4: VEX of three bytes */
    uint8_t map, pp, w;
    uint8_t first, last; /* opcodes */
    pl_instruction_set set;
} opcode_rules[] = {
    {0x62, MAP_0F38, PP_66, 0, 0x50, 0x53, {"AVX-512 VNNI", "avx512_vnni"}},
    {0xc4, MAP_0F38, PP_66, 0, 0x50, 0x53, {"AVX-VNNI", "avx_vnni"}},
    {0x62, MAP_0F38, PP_F3, 0, 0x52, 0x52, {"AVX-512 BF16", "avx512_bf16"}},
    {0x62, MAP_0F38, PP_F3, 0, 0x72, 0x72, {"AVX-512 BF16", "avx512_bf16"}},
    {0x62, MAP_0F38, PP_F2, 0, 0x72, 0x72, {"AVX-512 BF16", "avx512_bf16"}},
    {0x62, MAP_0F38, PP_66, 0, 0x75, 0x75, {"AVX-512 VBMI", "avx512vbmi"}},
    {0x62, MAP_0F38, PP_66, 0, 0x7d, 0x7d, {"AVX-512 VBMI", "avx512vbmi"}},
    {0x62, MAP_0F38, PP_66, 0, 0x8d, 0x8d, {"AVX-512 VBMI", "avx512vbmi"}},
    {0x62, MAP_0F38, PP_66, 1, 0x83, 0x83, {"AVX-512 VBMI", "avx512vbmi"}},
    {0x62, MAP_0F38, PP_66, ANY, 0x62, 0x63, {"AVX-512 VBMI2", "avx512_vbmi2"}},
    {0x62, MAP_0F38, PP_66, ANY, 0x70, 0x73, {"AVX-512 VBMI2", "avx512_vbmi2"}},
    {0x62, MAP_0F3A, PP_66, ANY, 0x70, 0x73, {"AVX-512 VBMI2", "avx512_vbmi2"}},
    {0x62, MAP_0F38, PP_66, ANY, 0x54, 0x54, {"AVX-512 BITALG", "avx512_bitalg"}},
    {0x62, MAP_0F38, PP_66, 0, 0x8f, 0x8f, {"AVX-512 BITALG", "avx512_bitalg"}},
    {0x62, MAP_0F38, PP_66, ANY, 0x55, 0x55, {"AVX-512 VPOPCNTDQ", "avx512_vpopcntdq"}},
    {0x62, MAP_0F38, PP_66, 1, 0xb4, 0xb5, {"AVX-512 IFMA", "avx512ifma"}},
    {0xc4, MAP_0F38, PP_66, 1, 0xb4, 0xb5, {"AVX-IFMA", "avx_ifma"}},
    {0x62, MAP_5, ANY, ANY, 0x00, 0xff, {"AVX-512 FP16", "avx512_fp16"}},
    {0x62, MAP_6, ANY, ANY, 0x00, 0xff, {"AVX-512 FP16", "avx512_fp16"}},
    {0x62, MAP_0F38, PP_66, ANY, 0xdc, 0xdf, {"VAES", "vaes"}},
    {0x62, MAP_0F3A, PP_66, ANY, 0x44, 0x44, {"VPCLMULQDQ", "vpclmulqdq"}},
    {0x62, MAP_0F38, PP_66, 0, 0xcf, 0xcf, {"GFNI", "gfni"}},
    {0xc4, MAP_0F38, PP_66, 0, 0xcf, 0xcf, {"GFNI", "gfni"}},
    {0x62, MAP_0F3A, PP_66, 1, 0xce, 0xcf, {"GFNI", "gfni"}},
    {0xc4, MAP_0F3A, PP_66, 1, 0xce, 0xcf, {"GFNI", "gfni"}},
};

static const pl_instruction_set avx512 = {"AVX-512", "avx512f"};
static const pl_instruction_set avx = {"AVX", "avx"};
static const pl_instruction_set amx = {"AMX", "amx_tile"};

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
static const pl_instruction_set *family_of_prefix(const uint8_t *bytes, size_t n)
{
    if (is_amx(bytes, n))
        return &amx;
    if (bytes[0] == 0x62)
        return &avx512;
    return bytes[0] == 0xc4 || bytes[0] == 0xc5 ? &avx : NULL;
}

/* EVEX: 62, map in the lowest three bits, W and pp, a byte of masks, the opcode. VEX: c4, map in
 * the lowest five, W and pp, the opcode. */
static const pl_instruction_set *set_of_opcode(const uint8_t *bytes, size_t n)
{
    bool evex = bytes[0] == 0x62;
    if (n < (evex ? 5 : 4) || (!evex && bytes[0] != 0xc4))
        return NULL;
    uint8_t map = bytes[1] & (evex ? 0x07 : 0x1f), w = bytes[2] >> 7, pp = bytes[2] & 3;
    uint8_t opcode = bytes[evex ? 4 : 3];
    for (size_t i = 0; i < PL_COUNT_OF(opcode_rules); i++) {
        const struct opcode_rule *rule = &opcode_rules[i];
        if (rule->encoding == bytes[0] && rule->map == map && (rule->pp == pp || rule->pp == ANY) &&
            (rule->w == w || rule->w == ANY) && rule->first <= opcode && opcode <= rule->last)
            return &rule->set;
    }
    return NULL;
}

static bool is_in_group(const cs_insn *decoded, unsigned group)
{
    for (unsigned i = 0; i < decoded->detail->groups_count; i++)
        if (decoded->detail->groups[i] == group)
            return true;
    return false;
}

static uint8_t encoding_of(const cs_insn *decoded)
{
    uint8_t first = decoded->bytes[0];
    if (first == 0xc4 || first == 0xc5)
        return 0xc4;
    return first == 0x62 || first == 0x8f ? first : 0;
}

static const pl_instruction_set *set_of_name(const cs_insn *decoded)
{
    uint8_t encoding = encoding_of(decoded);
    for (size_t i = 0; i < PL_COUNT_OF(name_rules); i++) {
        const struct name_rule *rule = &name_rules[i];
        if (rule->encoding == encoding &&
            strncmp(decoded->mnemonic, rule->beginning, strlen(rule->beginning)) == 0 &&
            (!rule->operand || strstr(decoded->op_str, rule->operand)))
            return &rule->set;
    }
    return NULL;
}

/* Returns the first set that the CPU lacks; with none lacking, the first. */
static const pl_instruction_set *set_of_decoded(const cs_insn *decoded, const char *flags)
{
    const pl_instruction_set *first = NULL;
    for (size_t i = 0; i < PL_COUNT_OF(group_rules); i++) {
        if (!is_in_group(decoded, group_rules[i].group))
            continue;
        if (!pl_flags_have(flags, group_rules[i].set.flag))
            return &group_rules[i].set;
        if (!first)
            first = &group_rules[i].set;
    }
    for (size_t i = 0; !first && i < PL_COUNT_OF(mnemonic_rules); i++)
        if (decoded->id == mnemonic_rules[i].id)
            first = &mnemonic_rules[i].set;
    return first ? first : set_of_name(decoded);
}

static const pl_instruction_set *needed_set(const cs_insn *decoded, const uint8_t *bytes, size_t n,
                                            const char *flags)
{
    const pl_instruction_set *special = set_of_opcode(bytes, n);
    if (special && !pl_flags_have(flags, special->flag))
        return special;
    const pl_instruction_set *set = decoded ? set_of_decoded(decoded, flags) : NULL;
    if (special && (!set || pl_flags_have(flags, set->flag)))
        return special;
    return set ? set : family_of_prefix(bytes, n);
}

static void write_nothing(const uint8_t *bytes, size_t n, char *text, size_t text_bytes)
{
    (void)bytes, (void)n, (void)text, (void)text_bytes;
}

const pl_instruction_machine pl_instructions_x86_64 = {
    .arch = CS_ARCH_X86,
    .mode = CS_MODE_64,
    .bytes_max = 15,
    .is_deliberate = is_deliberate,
    .needed_set = needed_set,
    .write_text = write_nothing,
};
