/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of arm64. capstone 4 knows only those of Armv8.0, and not their sets. But every
 * instruction is one word, and most extensions have a part of the encoding to themselves, so the
 * word alone decides. Patterns are those of the Arm Architecture Reference Manual, DDI 0487,
 * chapter C4; flags are the kernel's, Documentation/arch/arm64/elf_hwcaps.rst. */
#include <stdio.h>
#include <string.h>

#include "supervise/inspect_instruction.h"

enum { WORD_BYTES = 4 };

static const pl_instruction_set sve = {"SVE", "sve"}, sve2 = {"SVE2", "sve2"},
                                lse = {"LSE atomics", "atomics"}, fp16 = {"FP16", "fphp"},
                                fp16_vectors = {"FP16 vectors", "asimdhp"}, bf16 = {"BF16", "bf16"},
                                i8mm = {"I8MM", "i8mm"}, dot_products = {"dot products", "asimddp"},
                                fhm = {"FHM", "asimdfhm"}, sha3 = {"SHA3", "sha3"},
                                pauth = {"pointer authentication", "paca"},
                                sve_i8mm = {"SVE I8MM", "svei8mm"},
                                sve_bf16 = {"SVE BF16", "svebf16"}, sme = {"SME", "sme"},
                                lrcpc = {"LRCPC", "lrcpc"}, lrcpc2 = {"LRCPC2", "ilrcpc"},
                                pauth_generic = {"pointer authentication", "pacg"},
                                crc32 = {"CRC32", "crc32"}, aes = {"AES", "aes"},
                                sha2 = {"SHA2", "sha2"}, sha1 = {"SHA1", "sha1"},
                                sha512 = {"SHA512", "sha512"}, pmull = {"PMULL", "pmull"},
                                rdm = {"RDM", "asimdrdm"}, fcma = {"FCMA", "fcma"},
                                jscvt = {"JSCVT", "jscvt"};

/* The first match decides, so an exception stands before its rule. */
static const struct pattern {
    uint32_t mask;
    uint32_t bits;
    const pl_instruction_set *set; /* NULL: in every processor */
} patterns[] = {
    /* SVE2 took most of what SVE had left of these two bytes. Its other instructions lie between
     * SVE's, and are called SVE. */
    {0xff20fc00, 0x45009800, &sve_i8mm}, /* smmla and others */
    {0xffe0fc00, 0x44807800, &sve_i8mm}, /* usdot */
    {0xffe0f800, 0x44a01800, &sve_i8mm}, /* usdot, sudot with an index */
    {0xffa0f800, 0x44800000, &sve},      /* sdot, udot */
    {0xffa0f800, 0x44a00000, &sve},      /* with an index */
    {0xfe000000, 0x44000000, &sve2},
    {0xffe0fc00, 0x64608000, &sve_bf16}, /* bfdot */
    {0xffe0fc00, 0x6460e400, &sve_bf16}, /* bfmmla */
    {0x1e000000, 0x04000000, &sve},
    {0x9e000000, 0x80000000, &sme},
    {0xfffff0ff, 0xd503407f, &sme}, /* smstart, smstop */

    {0x3ffffc00, 0x38bfc000, &lrcpc}, /* ldapr */
    {0x3f200c00, 0x19000000, &lrcpc2},
    {0x3f208c00, 0x38200000, &lse},   /* ldadd and others */
    {0x3f20fc00, 0x38208000, &lse},   /* swp */
    {0x3fa07c00, 0x08a07c00, &lse},   /* cas */
    {0xbfa07c00, 0x08207c00, &lse},   /* casp */
    {0xff200400, 0xf8200400, &pauth}, /* ldraa, ldrab */
    {0xfffffbff, 0xd65f0bff, &pauth}, /* retaa, retab */
    {0xfedff800, 0xd61f0800, &pauth}, /* braa, blraa and others */
    {0xffff0000, 0xdac10000, &pauth}, /* pacia and others that are not hints */
    {0xffe0fc00, 0x9ac03000, &pauth_generic},

    {0x7fe0e000, 0x1ac04000, &crc32},
    {0xff3e0c00, 0x4e280800, &aes},
    {0xff20cc00, 0x5e004000, &sha2},
    {0xff208c00, 0x5e000000, &sha1},
    {0xff3efc00, 0x5e282800, &sha2}, /* sha256su0 */
    {0xff3e0c00, 0x5e280800, &sha1},
    {0xffe0fc00, 0xce608c00, &sha3}, /* rax1 */
    {0xffe0f000, 0xce608000, &sha512},
    {0xfffffc00, 0xcec08000, &sha512},
    {0xffc08000, 0xce000000, &sha3}, /* eor3, bcax */
    {0xffe00000, 0xce800000, &sha3}, /* xar */
    {0xbfe0fc00, 0x0ee0e000, &pmull},

    {0x9fe0fc00, 0x0e809400, &dot_products},
    {0x9fc0f400, 0x0f80e000, &dot_products},
    {0xdfe0f400, 0x4e80a400, &i8mm}, /* smmla and others */
    {0xbfe0fc00, 0x0e809c00, &i8mm}, /* usdot */
    {0xbf40f400, 0x0f00f000, &i8mm}, /* usdot, sudot with an index */
    {0xbfe0fc00, 0x2e40fc00, &bf16}, /* bfdot */
    {0xffe0fc00, 0x6e40ec00, &bf16}, /* bfmmla */
    {0xbfe0fc00, 0x2ec0fc00, &bf16}, /* bfmlalb, bfmlalt */
    {0xbf40f400, 0x0f40f000, &bf16}, /* the same with an index */
    {0xbffffc00, 0x0ea16800, &bf16}, /* bfcvtn */
    {0xfffffc00, 0x1e634000, &bf16}, /* bfcvt */

    {0xbf60fc00, 0x0e20ec00, &fhm}, /* fmlal, fmlsl */
    {0xbf60fc00, 0x2e20cc00, &fhm},
    {0xbf20f400, 0x2e008400, &rdm},  /* sqrdmlah, sqrdmlsh */
    {0xbf20e400, 0x2e00c400, &fcma}, /* fcmla */
    {0xbf20ec00, 0x2e00e400, &fcma}, /* fcadd */
    {0xfffffc00, 0x1e7e0000, &jscvt},
    {0xfffffc00, 0x1ee24000, NULL}, /* fcvt from half precision, which all have */
    {0xfffffc00, 0x1ee2c000, NULL},
    {0x5fc00000, 0x1ec00000, &fp16},         /* arithmetic, comparison, conversion */
    {0xffc00000, 0x1fc00000, &fp16},         /* fmadd and others */
    {0x9f60c400, 0x0e400400, &fp16_vectors}, /* of three registers, as vectors and as scalars */
    {0xdf60c400, 0x5e400400, &fp16_vectors},
    {0x9f7e0c00, 0x0e780800, &fp16_vectors}, /* of two */
    {0xdf7e0c00, 0x5e780800, &fp16_vectors},
    {0xbfc0b400, 0x0f001000, &fp16_vectors}, /* fmla, fmls with an index */
    {0x9fc0f400, 0x0f009000, &fp16_vectors}, /* fmul, fmulx */
};

static uint32_t word_at(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* udf, which clang and Rust end in, and brk. */
static bool is_deliberate(const uint8_t *bytes, size_t n)
{
    if (n < WORD_BYTES)
        return false;
    uint32_t word = word_at(bytes);
    return (word & 0xffff0000) == 0 || (word & 0xffe0001f) == 0xd4200000;
}

static const pl_instruction_set *needed_set(const cs_insn *decoded, const uint8_t *bytes, size_t n,
                                            const char *flags)
{
    (void)decoded, (void)flags;
    if (n < WORD_BYTES)
        return NULL;
    uint32_t word = word_at(bytes);
    for (size_t i = 0; i < PL_COUNT_OF(patterns); i++)
        if ((word & patterns[i].mask) == patterns[i].bits)
            return patterns[i].set;
    return NULL;
}

/* Written as objdump writes an instruction that it cannot decode. */
static void write_text(const uint8_t *bytes, size_t n, char *text, size_t text_bytes)
{
    if (n < WORD_BYTES)
        return;
    if ((word_at(bytes) & 0xffff0000) == 0)
        snprintf(text, text_bytes, "udf #%u", (unsigned)word_at(bytes));
    else
        snprintf(text, text_bytes, ".inst 0x%08x", (unsigned)word_at(bytes));
}

const pl_instruction_machine pl_instructions_arm64 = {
    .arch = CS_ARCH_ARM64,
    .mode = CS_MODE_LITTLE_ENDIAN,
    .bytes_max = WORD_BYTES,
    .is_deliberate = is_deliberate,
    .needed_set = needed_set,
    .write_text = write_text,
};
