/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions by their bytes, and the CPU's own word on whether it has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sanitized.h"
#include "supervise/inspect_instruction.h"

typedef struct sample {
    uint8_t bytes[16];
    const char *text;
    const char *set;
    bool deliberate;
} sample;

/* Assembled with GNU as 2.40. "" for text: capstone 4 and 5 do not know them. NULL: some do. */
static const sample x86_64_samples[] = {
    {{0x62, 0xf1, 0x74, 0x48, 0x58, 0xc2}, "vaddps zmm0, zmm1, zmm2", "AVX-512F", false},
    {{0x62, 0xf1, 0x75, 0x48, 0xfc, 0xc2}, "vpaddb zmm0, zmm1, zmm2", "AVX-512BW", false},
    {{0x62, 0xf2, 0xf5, 0x48, 0x40, 0xc2}, "vpmullq zmm0, zmm1, zmm2", "AVX-512DQ", false},
    {{0x62, 0xf2, 0x7d, 0x48, 0xc4, 0xc1}, "vpconflictd zmm0, zmm1", "AVX-512CD", false},
    {{0x62, 0xf2, 0x76, 0x48, 0x52, 0xc2}, NULL, "AVX-512 BF16", false},        /* vdpbf16ps */
    {{0x62, 0xf2, 0x77, 0x48, 0x72, 0xc2}, NULL, "AVX-512 BF16", false},        /* vcvtne2ps2bf16 */
    {{0x62, 0xf2, 0x7e, 0x48, 0x72, 0xc1}, NULL, "AVX-512 BF16", false},        /* vcvtneps2bf16 */
    {{0x62, 0xf2, 0x75, 0x48, 0x50, 0xc2}, NULL, "AVX-512 VNNI", false},        /* vpdpbusd */
    {{0x62, 0xf2, 0x75, 0x48, 0x53, 0xc2}, NULL, "AVX-512 VNNI", false},        /* vpdpwssds */
    {{0xc4, 0xe2, 0x75, 0x50, 0xc2}, NULL, "AVX-VNNI", false},                  /* {vex} vpdpbusd */
    {{0x62, 0xf2, 0x75, 0x48, 0x8d, 0xc2}, NULL, "AVX-512 VBMI", false},        /* vpermb */
    {{0x62, 0xf2, 0x75, 0x48, 0x75, 0xc2}, NULL, "AVX-512 VBMI", false},        /* vpermi2b */
    {{0x62, 0xf2, 0xf5, 0x48, 0x83, 0xc2}, NULL, "AVX-512 VBMI", false},        /* vpmultishiftqb */
    {{0x62, 0xf2, 0x7d, 0x48, 0x63, 0xc8}, NULL, "AVX-512 VBMI2", false},       /* vpcompressb */
    {{0x62, 0xf2, 0x75, 0x48, 0x71, 0xc2}, NULL, "AVX-512 VBMI2", false},       /* vpshldvd */
    {{0x62, 0xf3, 0xf5, 0x48, 0x72, 0xc2, 0x03}, NULL, "AVX-512 VBMI2", false}, /* vpshrdw */
    {{0x62, 0xf2, 0x7d, 0x48, 0x54, 0xc1}, NULL, "AVX-512 BITALG", false},      /* vpopcntb */
    {{0x62, 0xf2, 0x75, 0x48, 0x8f, 0xca}, NULL, "AVX-512 BITALG", false},      /* vpshufbitqmb */
    {{0x62, 0xf2, 0xfd, 0x48, 0x55, 0xc1}, NULL, "AVX-512 VPOPCNTDQ", false},   /* vpopcntq */
    {{0x62, 0xf2, 0xf5, 0x48, 0xb4, 0xc2}, NULL, "AVX-512 IFMA", false},        /* vpmadd52luq */
    {{0x62, 0xf5, 0x74, 0x48, 0x58, 0xc2}, NULL, "AVX-512 FP16", false},        /* vaddph */
    {{0x62, 0xf6, 0x75, 0x48, 0xb8, 0xc2}, NULL, "AVX-512 FP16", false},        /* vfmadd231ph */
    {{0x62, 0xf2, 0x75, 0x48, 0xdc, 0xc2}, NULL, "VAES", false},                /* vaesenc */
    {{0x62, 0xf3, 0x75, 0x48, 0x44, 0xc2, 0x01}, NULL, "VPCLMULQDQ", false},    /* vpclmulhqlqdq */
    {{0x62, 0xf2, 0x75, 0x48, 0xcf, 0xc2}, NULL, "GFNI", false},                /* vgf2p8mulb */
    {{0xc4, 0xe3, 0xf5, 0xce, 0xc2, 0x01}, NULL, "GFNI", false},                /* vgf2p8affineqb */
    {{0xc5, 0xf4, 0x58, 0xc2}, "vaddps ymm0, ymm1, ymm2", "AVX", false},
    {{0xc5, 0xf5, 0xfc, 0xc2}, "vpaddb ymm0, ymm1, ymm2", "AVX2", false},
    {{0xc4, 0xe2, 0x75, 0xb8, 0xc2}, "vfmadd231ps ymm0, ymm1, ymm2", "FMA", false},
    {{0xc4, 0xe2, 0xf5, 0xac, 0xc2}, "vfnmadd213pd ymm0, ymm1, ymm2", "FMA", false},
    {{0xc4, 0xe2, 0x7d, 0x1c, 0xc1}, "vpabsb ymm0, ymm1", "AVX2", false},
    {{0xc4, 0xe2, 0x79, 0x1c, 0xc1}, "vpabsb xmm0, xmm1", "AVX", false},
    {{0x62, 0xf2, 0xfd, 0x48, 0x44, 0xc1}, "vplzcntq zmm0, zmm1", "AVX-512CD", false},
    {{0x62, 0xf2, 0x7d, 0x48, 0xc8, 0xc1}, "vexp2ps zmm0, zmm1", "AVX-512ER", false},
    {{0xc4, 0xe2, 0x7d, 0x13, 0xc1}, "vcvtph2ps ymm0, xmm1", "F16C", false},
    {{0xc4, 0xe2, 0x70, 0xf2, 0xc2}, "andn eax, ecx, edx", "BMI1", false},
    {{0xc4, 0xe2, 0x73, 0xf5, 0xc2}, "pdep eax, ecx, edx", "BMI2", false},
    {{0xc4, 0xe2, 0x7b, 0x49, 0xc0}, "", "AMX", false}, /* tilezero tmm0 */
    {{0x66, 0x0f, 0x38, 0xdc, 0xc1}, "aesenc xmm0, xmm1", "AES", false},
    {{0x0f, 0x38, 0xc8, 0xc1}, "sha1nexte xmm0, xmm1", "SHA", false},
    {{0x66, 0x0f, 0x38, 0xf6, 0xc1}, "adcx eax, ecx", "ADX", false},
    {{0x66, 0x0f, 0x38, 0x00, 0xc1}, "pshufb xmm0, xmm1", "SSSE3", false},
    {{0x66, 0x0f, 0x38, 0x0b, 0xc1}, "pmulhrsw xmm0, xmm1", "SSSE3", false},
    {{0x66, 0x0f, 0x38, 0x40, 0xc1}, "pmulld xmm0, xmm1", "SSE4.1", false},
    {{0x66, 0x0f, 0x38, 0x41, 0xc1}, "phminposuw xmm0, xmm1", "SSE4.1", false},
    {{0x66, 0x0f, 0x3a, 0x62, 0xc1, 0x05}, "pcmpistrm xmm0, xmm1, 5", "SSE4.2", false},
    {{0xf2, 0x0f, 0x38, 0xf1, 0xc1}, "crc32 eax, ecx", "SSE4.2", false},
    {{0xf2, 0x0f, 0x7c, 0xc1}, "haddps xmm0, xmm1", "SSE3", false},
    {{0xf3, 0x0f, 0xb8, 0xc1}, "popcnt eax, ecx", "POPCNT", false},
    {{0x0f, 0xc7, 0xf0}, "rdrand eax", "RDRAND", false},
    {{0x8f, 0xe9, 0x78, 0x80, 0xc1}, "vfrczps xmm0, xmm1", "XOP", false},
    {{0x8f, 0xe8, 0x70, 0xa3, 0xc2, 0x30}, "vpperm xmm0, xmm1, xmm2, xmm3", "XOP", false},
    {{0x89, 0xc8}, "mov eax, ecx", "", false},
    {{0x0f, 0x58, 0xc1}, "addps xmm0, xmm1", "", false}, /* SSE: every 64-bit CPU has it */
    {{0x0f, 0x0b}, "ud2", "", true},
    {{0x67, 0x0f, 0xb9, 0x40, 0x0d}, NULL, "", true}, /* clang's ubsan trap */
    {{0xcc}, "int3", "", true},
    {{0x06}, "", "", false}, /* push es: gone in 64-bit code */
};

/* As above. NULL for text: some capstones know them, some do not. */
static const struct {
    uint32_t word;
    const char *text;
    const char *set;
    const char *flag;
} arm64_samples[] = {
    {0x04a20020, NULL, "SVE", "sve"},                     /* add z0.s, z1.s, z2.s */
    {0x2518e3e0, NULL, "SVE", "sve"},                     /* ptrue p0.b */
    {0xa540a000, NULL, "SVE", "sve"},                     /* ld1w {z0.s}, p0/z, [x0] */
    {0x65620020, NULL, "SVE", "sve"},                     /* fmla z0.h, p0/m, z1.h, z2.h */
    {0x44820020, NULL, "SVE", "sve"},                     /* sdot z0.s, z1.b, z2.b */
    {0x44c20420, NULL, "SVE", "sve"},                     /* udot z0.d, z1.h, z2.h */
    {0x44aa0020, NULL, "SVE", "sve"},                     /* sdot z0.s, z1.b, z2.b[1] */
    {0x45029820, NULL, "SVE I8MM", "svei8mm"},            /* smmla z0.s, z1.b, z2.b */
    {0x45829820, NULL, "SVE I8MM", "svei8mm"},            /* usmmla z0.s, z1.b, z2.b */
    {0x44827820, NULL, "SVE I8MM", "svei8mm"},            /* usdot z0.s, z1.b, z2.b */
    {0x44aa1c20, NULL, "SVE I8MM", "svei8mm"},            /* sudot z0.s, z1.b, z2.b[1] */
    {0x64628020, NULL, "SVE BF16", "svebf16"},            /* bfdot z0.s, z1.h, z2.h */
    {0x6462e420, NULL, "SVE BF16", "svebf16"},            /* bfmmla z0.s, z1.h, z2.h */
    {0x44826020, NULL, "SVE2", "sve2"},                   /* sqdmlalb z0.s, z1.h, z2.h */
    {0x45420020, NULL, "SVE2", "sve2"},                   /* saddlb z0.h, z1.b, z2.b */
    {0xd503477f, NULL, "SME", "sme"},                     /* smstart */
    {0x80812000, NULL, "SME", "sme"},                     /* fmopa za0.s, p0/m, p1/m, z0.s, z1.s */
    {0xf8bfc020, NULL, "LRCPC", "lrcpc"},                 /* ldapr x0, [x1] */
    {0xd9408020, NULL, "LRCPC2", "ilrcpc"},               /* ldapur x0, [x1, #8] */
    {0xf8200041, NULL, "LSE atomics", "atomics"},         /* ldadd x0, x1, [x2] */
    {0xb820005f, NULL, "LSE atomics", "atomics"},         /* stadd w0, [x2] */
    {0xf8e08041, NULL, "LSE atomics", "atomics"},         /* swpal x0, x1, [x2] */
    {0x38a04041, NULL, "LSE atomics", "atomics"},         /* ldsmaxab w0, w1, [x2] */
    {0xc8e0fc41, NULL, "LSE atomics", "atomics"},         /* casal x0, x1, [x2] */
    {0x08a07c41, NULL, "LSE atomics", "atomics"},         /* casb w0, w1, [x2] */
    {0x4860fc82, NULL, "LSE atomics", "atomics"},         /* caspal x0, x1, x2, x3, [x4] */
    {0xc85f7c20, NULL, "", ""},                           /* ldxr x0, [x1] */
    {0xc800fc41, NULL, "", ""},                           /* stlxr w0, x1, [x2] */
    {0xc8dffc20, NULL, "", ""},                           /* ldar x0, [x1] */
    {0xf8200420, NULL, "pointer authentication", "paca"}, /* ldraa x0, [x1] */
    {0xd65f0bff, NULL, "pointer authentication", "paca"}, /* retaa */
    {0xd73f0801, NULL, "pointer authentication", "paca"}, /* blraa x0, x1 */
    {0xd61f081f, NULL, "pointer authentication", "paca"}, /* braaz x0 */
    {0xdac10020, NULL, "pointer authentication", "paca"}, /* pacia x0, x1 */
    {0xd503233f, NULL, "", ""},                           /* paciasp */
    {0x9ac23020, NULL, "pointer authentication", "pacg"}, /* pacga x0, x1, x2 */
    {0x9ac25c20, NULL, "CRC32", "crc32"},                 /* crc32cx w0, w1, x2 */
    {0x1ac24020, NULL, "CRC32", "crc32"},                 /* crc32b w0, w1, w2 */
    {0x4e284820, NULL, "AES", "aes"},                     /* aese v0.16b, v1.16b */
    {0x4e287820, NULL, "AES", "aes"},                     /* aesimc v0.16b, v1.16b */
    {0x5e020020, NULL, "SHA1", "sha1"},                   /* sha1c q0, s1, v2.4s */
    {0x5e280820, NULL, "SHA1", "sha1"},                   /* sha1h s0, s1 */
    {0x5e024020, NULL, "SHA2", "sha2"},                   /* sha256h q0, q1, v2.4s */
    {0x5e282820, NULL, "SHA2", "sha2"},                   /* sha256su0 v0.4s, v1.4s */
    {0x5e026020, NULL, "SHA2", "sha2"},                   /* sha256su1 v0.4s, v1.4s, v2.4s */
    {0xce628020, NULL, "SHA512", "sha512"},               /* sha512h q0, q1, v2.2d */
    {0xcec08020, NULL, "SHA512", "sha512"},               /* sha512su0 v0.2d, v1.2d */
    {0xce020c20, NULL, "SHA3", "sha3"},                   /* eor3 v0.16b, v1.16b, v2.16b, v3.16b */
    {0xce628c20, NULL, "SHA3", "sha3"},                   /* rax1 v0.2d, v1.2d, v2.2d */
    {0xce821420, NULL, "SHA3", "sha3"},                   /* xar v0.2d, v1.2d, v2.2d, #5 */
    {0xce220c20, NULL, "SHA3", "sha3"},                   /* bcax v0.16b, v1.16b, v2.16b, v3.16b */
    {0x0ee2e020, NULL, "PMULL", "pmull"},                 /* pmull v0.1q, v1.1d, v2.1d */
    {0x0e22e020, NULL, "", ""},                           /* pmull v0.8h, v1.8b, v2.8b */
    {0x4e829420, NULL, "dot products", "asimddp"},        /* sdot v0.4s, v1.16b, v2.16b */
    {0x2fa2e820, NULL, "dot products", "asimddp"},        /* udot v0.2s, v1.8b, v2.4b[3] */
    {0x4e82a420, NULL, "I8MM", "i8mm"},                   /* smmla v0.4s, v1.16b, v2.16b */
    {0x4e82ac20, NULL, "I8MM", "i8mm"},                   /* usmmla v0.4s, v1.16b, v2.16b */
    {0x6e82a420, NULL, "I8MM", "i8mm"},                   /* ummla v0.4s, v1.16b, v2.16b */
    {0x4e829c20, NULL, "I8MM", "i8mm"},                   /* usdot v0.4s, v1.16b, v2.16b */
    {0x4f22f020, NULL, "I8MM", "i8mm"},                   /* sudot v0.4s, v1.16b, v2.4b[1] */
    {0x4fa2f020, NULL, "I8MM", "i8mm"},                   /* usdot v0.4s, v1.16b, v2.4b[1] */
    {0x6e42fc20, NULL, "BF16", "bf16"},                   /* bfdot v0.4s, v1.8h, v2.8h */
    {0x4f62f020, NULL, "BF16", "bf16"},                   /* bfdot v0.4s, v1.8h, v2.2h[1] */
    {0x6e42ec20, NULL, "BF16", "bf16"},                   /* bfmmla v0.4s, v1.8h, v2.8h */
    {0x2ec2fc20, NULL, "BF16", "bf16"},                   /* bfmlalb v0.4s, v1.8h, v2.8h */
    {0x4ff2f020, NULL, "BF16", "bf16"},                   /* bfmlalt v0.4s, v1.8h, v2.h[3] */
    {0x0ea16820, NULL, "BF16", "bf16"},                   /* bfcvtn v0.4h, v1.4s */
    {0x1e634020, NULL, "BF16", "bf16"},                   /* bfcvt h0, s1 */
    {0x4e22ec20, NULL, "FHM", "asimdfhm"},                /* fmlal v0.4s, v1.4h, v2.4h */
    {0x6ea2cc20, NULL, "FHM", "asimdfhm"},                /* fmlsl2 v0.4s, v1.4h, v2.4h */
    {0x6e828420, NULL, "RDM", "asimdrdm"},                /* sqrdmlah v0.4s, v1.4s, v2.4s */
    {0x6e82cc20, NULL, "FCMA", "fcma"},                   /* fcmla v0.4s, v1.4s, v2.4s, #90 */
    {0x6e82e420, NULL, "FCMA", "fcma"},                   /* fcadd v0.4s, v1.4s, v2.4s, #90 */
    {0x1e7e0020, NULL, "JSCVT", "jscvt"},                 /* fjcvtzs w0, d1 */
    {0x1ee24020, NULL, "", ""},                           /* fcvt s0, h1 */
    {0x1ee2c020, NULL, "", ""},                           /* fcvt d0, h1 */
    {0x1e23c020, NULL, "", ""},                           /* fcvt h0, s1 */
    {0x1ee22820, NULL, "FP16", "fphp"},                   /* fadd h0, h1, h2 */
    {0x1ee12000, NULL, "FP16", "fphp"},                   /* fcmp h0, h1 */
    {0x1fc20c20, NULL, "FP16", "fphp"},                   /* fmadd h0, h1, h2, h3 */
    {0x1ee20020, NULL, "FP16", "fphp"},                   /* scvtf h0, w1 */
    {0x9ec2f020, NULL, "FP16", "fphp"},                   /* scvtf h0, x1, #4 */
    {0x1ef80020, NULL, "FP16", "fphp"},                   /* fcvtzs w0, h1 */
    {0x1eee1000, NULL, "FP16", "fphp"},                   /* fmov h0, #1.000000000000000000e+00 */
    {0x4e421420, NULL, "FP16 vectors", "asimdhp"},        /* fadd v0.8h, v1.8h, v2.8h */
    {0x4e420c20, NULL, "FP16 vectors", "asimdhp"},        /* fmla v0.8h, v1.8h, v2.8h */
    {0x4f329020, NULL, "FP16 vectors", "asimdhp"},        /* fmul v0.8h, v1.8h, v2.h[3] */
    {0x0f321820, NULL, "FP16 vectors", "asimdhp"},        /* fmla v0.4h, v1.4h, v2.h[7] */
    {0x7ec21420, NULL, "FP16 vectors", "asimdhp"},        /* fabd h0, h1, h2 */
    {0x6ef9f820, NULL, "FP16 vectors", "asimdhp"},        /* fsqrt v0.8h, v1.8h */
    {0x4ef8c820, NULL, "FP16 vectors", "asimdhp"},        /* fcmgt v0.8h, v1.8h, #0.0 */
    {0x5ef9d820, NULL, "FP16 vectors", "asimdhp"},        /* frecpe h0, h1 */
    {0x4e22d420, NULL, "", ""},                           /* fadd v0.4s, v1.4s, v2.4s */
    {0x4e62d420, NULL, "", ""},                           /* fadd v0.2d, v1.2d, v2.2d */
    {0x4fa21020, NULL, "", ""},                           /* fmla v0.4s, v1.4s, v2.s[1] */
    {0x4fc29820, NULL, "", ""},                           /* fmul v0.2d, v1.2d, v2.d[1] */
    {0x6ea1f820, NULL, "", ""},                           /* fsqrt v0.4s, v1.4s */
    {0x1e222820, NULL, "", ""},                           /* fadd s0, s1, s2 */
    {0x1f420c20, NULL, "", ""},                           /* fmadd d0, d1, d2, d3 */
    {0x4f728020, NULL, "", ""},                           /* mul v0.8h, v1.8h, v2.h[3] */
    {0x4e629420, NULL, "", ""},                           /* mla v0.8h, v1.8h, v2.8h */
    {0x0e628020, NULL, "", ""},                           /* smlal v0.4s, v1.4h, v2.4h */
    {0x4f135420, NULL, "", ""},                           /* shl v0.8h, v1.8h, #3 */
    {0x4f3d0420, NULL, "", ""},                           /* sshr v0.4s, v1.4s, #3 */
    {0x4e020020, NULL, "", ""},                           /* tbl v0.16b, {v1.16b}, v2.16b */
    {0x6e021820, NULL, "", ""},                           /* ext v0.16b, v1.16b, v2.16b, #3 */
    {0x4e020c20, NULL, "", ""},                           /* dup v0.8h, w1 */
    {0x4e061c20, NULL, "", ""},                           /* mov v0.h[1], w1 */
    {0x0e063c20, NULL, "", ""},                           /* umov w0, v1.h[1] */
    {0x4e423820, NULL, "", ""},                           /* zip1 v0.8h, v1.8h, v2.8h */
    {0x4f000420, NULL, "", ""},                           /* movi v0.4s, #0x1 */
    {0x4f03f600, NULL, "", ""}, /* fmov v0.4s, #1.000000000000000000e+00 */
    {0x9e660020, NULL, "", ""}, /* fmov x0, d1 */
    {0x9eaf0020, NULL, "", ""}, /* fmov v0.d[1], x1 */
    {0x4e21d820, NULL, "", ""}, /* scvtf v0.4s, v1.4s */
    {0x4e71b820, NULL, "", ""}, /* addv h0, v1.8h */
    {0x4e703820, NULL, "", ""}, /* saddlv s0, v1.8h */
    {0x6e30f820, NULL, "", ""}, /* fmaxv s0, v1.4s */
    {0x4e205820, NULL, "", ""}, /* cnt v0.16b, v1.16b */
    {0x4e200820, NULL, "", ""}, /* rev64 v0.16b, v1.16b */
    {0x4e609820, NULL, "", ""}, /* cmeq v0.8h, v1.8h, #0 */
    {0x4e62b420, NULL, "", ""}, /* sqdmulh v0.8h, v1.8h, v2.8h */
    {0x6ea2b420, NULL, "", ""}, /* sqrdmulh v0.4s, v1.4s, v2.4s */
    {0x5e62b420, NULL, "", ""}, /* sqdmulh h0, h1, h2 */
    {0x5e629020, NULL, "", ""}, /* sqdmlal s0, h1, h2 */
    {0x5ef1b820, NULL, "", ""}, /* addp d0, v1.2d */
    {0x7e30d820, NULL, "", ""}, /* faddp s0, v1.2s */
    {0x5e060420, NULL, "", ""}, /* mov h0, v1.h[1] */
    {0x6e221c20, NULL, "", ""}, /* eor v0.16b, v1.16b, v2.16b */
    {0x8b020020, NULL, "", ""}, /* add x0, x1, x2 */
    {0xd28000a0, NULL, "", ""}, /* mov x0, #0x5 */
    {0xf8626820, NULL, "", ""}, /* ldr x0, [x1, x2] */
    {0xf8408420, NULL, "", ""}, /* ldr x0, [x1], #8 */
    {0x3ce27820, NULL, "", ""}, /* ldr q0, [x1, x2, lsl #4] */
    {0x7d000420, NULL, "", ""}, /* str h0, [x1, #2] */
    {0xa8c17bfd, NULL, "", ""}, /* ldp x29, x30, [sp], #16 */
    {0x4c407800, NULL, "", ""}, /* ld1 {v0.4s}, [x0] */
    {0xf8404820, NULL, "", ""}, /* ldtr x0, [x1, #4] */
    {0xf85fc020, NULL, "", ""}, /* ldur x0, [x1, #-4] */
    {0x9ac20820, NULL, "", ""}, /* udiv x0, x1, x2 */
    {0xdac01020, NULL, "", ""}, /* clz x0, x1 */
    {0x9b020c20, NULL, "", ""}, /* madd x0, x1, x2, x3 */
    {0xd65f03c0, NULL, "", ""}, /* ret */
    {0xd61f0020, NULL, "", ""}, /* br x1 */
    {0xd63f0020, NULL, "", ""}, /* blr x1 */
    {0xd4000001, NULL, "", ""}, /* svc #0x0 */
    {0xd503201f, NULL, "", ""}, /* nop */
    {0x9a820020, NULL, "", ""}, /* csel x0, x1, x2, eq */
};

static void check_sample(const pl_instruction_machine *machine, const sample *expected)
{
    pl_instruction found;
    assert_int_equal(
        pl_instruction_tell(machine, expected->bytes, sizeof expected->bytes, "", &found), 0);
    if (expected->text)
        assert_string_equal(found.text, expected->text);
    assert_string_equal(found.set, expected->set);
    assert_int_equal(found.deliberate, expected->deliberate);
    assert_false(found.cpu_has_set);
}

static void sets_are_told_by_the_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(x86_64_samples); i++)
        check_sample(&pl_instructions_x86_64, &x86_64_samples[i]);
}

static void sets_of_arm64_are_told_by_the_word(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(arm64_samples); i++) {
        sample one = {.text = arm64_samples[i].text, .set = arm64_samples[i].set};
        memcpy(one.bytes, &arm64_samples[i].word, sizeof arm64_samples[i].word);
        check_sample(&pl_instructions_arm64, &one);

        char flags[64];
        pl_instruction found;
        snprintf(flags, sizeof flags, " fp x%s %s", arm64_samples[i].flag, arm64_samples[i].flag);
        assert_int_equal(pl_instruction_tell(&pl_instructions_arm64, one.bytes, 16, flags, &found),
                         0);
        assert_int_equal(found.cpu_has_set, one.set[0] != '\0');
        flags[strlen(flags) - 1] = '\0';
        assert_int_equal(pl_instruction_tell(&pl_instructions_arm64, one.bytes, 16, flags, &found),
                         0);
        assert_false(found.cpu_has_set);
    }
}

static void traps_of_arm64_are_deliberate(void **state)
{
    (void)state;
    check_sample(&pl_instructions_arm64, &(sample){{0x01, 0x00, 0x00, 0x00}, "udf #1", "", true});
    check_sample(&pl_instructions_arm64,
                 &(sample){{0x00, 0x7d, 0x20, 0xd4}, "brk #0x3e8", "", true});
}

/* What runs on this machine: code, and what to return with. */
#if defined(__x86_64__)
static const uint8_t return_code[] = {0xc3};
#else
static const uint8_t return_code[] = {0xc0, 0x03, 0x5f, 0xd6};
#endif

static const struct {
    uint8_t bytes[8];
    size_t n;
} executable_codes[] = {
#if defined(__x86_64__)
    /* No CPU has both of the first two: Intel never made XOP, AMD dropped it before it got AVX-512.
     * The others are in every CPU of the last ten years. */
    {{0x62, 0xf1, 0x74, 0x48, 0x58, 0xc2}, 6}, /* vaddps zmm */
    {{0x8f, 0xe9, 0x78, 0x80, 0xc1}, 5},       /* vfrczps */
    {{0xc5, 0xf5, 0xfc, 0xc2}, 4},             /* vpaddb ymm */
    {{0xc4, 0xe2, 0x75, 0xb8, 0xc2}, 5},       /* vfmadd231ps */
    {{0x66, 0x0f, 0x38, 0x40, 0xc1}, 5},       /* pmulld */
#else
    {{0x20, 0x00, 0xa2, 0x04}, 4}, /* add z0.s */
    {{0x20, 0x00, 0x42, 0x45}, 4}, /* saddlb z0.h, of SVE2 */
    {{0x20, 0x14, 0x42, 0x4e}, 4}, /* fadd v0.8h */
    {{0x20, 0x28, 0xe2, 0x1e}, 4}, /* fadd h0 */
    {{0x20, 0xa4, 0x82, 0x4e}, 4}, /* smmla */
    {{0x20, 0xec, 0x42, 0x6e}, 4}, /* bfmmla */
    {{0x20, 0x94, 0x82, 0x4e}, 4}, /* sdot */
    {{0x20, 0x84, 0x82, 0x6e}, 4}, /* sqrdmlah */
    {{0x20, 0xcc, 0x82, 0x6e}, 4}, /* fcmla */
    {{0x20, 0x80, 0x62, 0xce}, 4}, /* sha512h */
    {{0x20, 0x0c, 0x02, 0xce}, 4}, /* eor3 */
    {{0x20, 0x5c, 0xc2, 0x9a}, 4}, /* crc32cx */
    {{0x20, 0x48, 0x28, 0x4e}, 4}, /* aese */
    {{0x20, 0xe0, 0xe2, 0x0e}, 4}, /* pmull */
#endif
};

/* The status of a child that executes the bytes and returns. UBSan since clang 17 would look for a
 * function's type before the first byte, where nothing is mapped. */
UNWATCHED static int execute(const uint8_t *bytes, size_t n)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        uint8_t *code =
            mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(code, bytes, n);
        memcpy(code + n, return_code, sizeof return_code);
        __builtin___clear_cache((char *)code, (char *)code + n + sizeof return_code);
        mprotect(code, 4096, PROT_READ | PROT_EXEC);
        void (*function)(void);
        *(void **)&function = code;
        signal(SIGILL, SIG_DFL);
        function();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void the_cpu_agrees_that_it_has_a_set(void **state)
{
    (void)state;
    int n_illegal = 0, n = PL_COUNT_OF(executable_codes);
    for (int i = 0; i < n; i++) {
        pl_instruction found;
        const uint8_t *bytes = executable_codes[i].bytes;
        assert_int_equal(pl_inspect_instruction(bytes, executable_codes[i].n, &found), 0);
        int status = execute(bytes, executable_codes[i].n);
        bool illegal = WIFSIGNALED(status) && WTERMSIG(status) == SIGILL;
        assert_true(illegal || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
        assert_int_equal(found.cpu_has_set, !illegal);
        n_illegal += illegal;
    }
#if defined(__x86_64__)
    assert_true(n_illegal > 0);
#endif
    assert_true(n_illegal < n);
}

static void any_bytes_of_any_length_are_bounded(void **state)
{
    (void)state;
    static const pl_instruction_machine *const machines[] = {&pl_instructions_x86_64,
                                                             &pl_instructions_arm64};
    static const size_t lengths[] = {1, 3, 4, 15, 64};
    pl_instruction found;
    assert_int_equal(pl_inspect_instruction((const uint8_t *)"", 0, &found), -ENODATA);
    for (unsigned first = 0; first < 256; first++) {
        uint8_t bytes[64];
        memset(bytes, (int)(first * 7 + 3), sizeof bytes);
        bytes[0] = (uint8_t)first;
        for (size_t i = 0; i < PL_COUNT_OF(lengths); i++) {
            const pl_instruction_machine *machine = machines[first % PL_COUNT_OF(machines)];
            assert_int_equal(pl_inspect_instruction(bytes, lengths[i], &found), 0);
            assert_true(strlen(found.text) < sizeof found.text);
            assert_int_equal(pl_instruction_tell(machine, bytes, lengths[i], "", &found), 0);
            assert_true(strlen(found.text) < sizeof found.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_are_told_by_the_bytes),
        cmocka_unit_test(sets_of_arm64_are_told_by_the_word),
        cmocka_unit_test(traps_of_arm64_are_deliberate),
        cmocka_unit_test(the_cpu_agrees_that_it_has_a_set),
        cmocka_unit_test(any_bytes_of_any_length_are_bounded),
    };
    return cmocka_run_group_tests_name("inspect_instruction", tests, NULL, NULL);
}
