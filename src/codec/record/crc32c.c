/* SPDX-License-Identifier: Apache-2.0 */
/* See crc32c.h. The instruction takes 8 bytes a cycle, but has a latency of three cycles: so three
 * pieces of the bytes are summed at a time, and their sums combined. With 512-bit carry-less
 * products (VPCLMULQDQ), 64 bytes at a time are folded to 16 that have the same sum, and the
 * instruction sums these. */
#include "codec/record/crc32c.h"

#include <assert.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are summed as they lie in memory");

static inline uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* ---- by table ---- */

/* Bit by bit, a byte's sum is the sum of its bits', so 8 numbers define a table of 256. The numbers
 * for the byte `k` bytes before the last are the 8 that follow those of k - 1: 64 steps of the
 * polynomial 0x82f63b78, each (c >> 1) ^ (c & 1 ? polynomial : 0). The first is for bit 7. */
#define SUM_OF(i, b7, b6, b5, b4, b3, b2, b1, b0)                                                  \
    (((i) >> 7 & 1) * b7 ^ ((i) >> 6 & 1) * b6 ^ ((i) >> 5 & 1) * b5 ^ ((i) >> 4 & 1) * b4 ^       \
     ((i) >> 3 & 1) * b3 ^ ((i) >> 2 & 1) * b2 ^ ((i) >> 1 & 1) * b1 ^ ((i) >> 0 & 1) * b0)
#define SUMS_4(i, ...)                                                                             \
    SUM_OF(i, __VA_ARGS__), SUM_OF((i) + 1u, __VA_ARGS__), SUM_OF((i) + 2u, __VA_ARGS__),          \
        SUM_OF((i) + 3u, __VA_ARGS__)
#define SUMS_16(i, ...)                                                                            \
    SUMS_4(i, __VA_ARGS__), SUMS_4((i) + 4u, __VA_ARGS__), SUMS_4((i) + 8u, __VA_ARGS__),          \
        SUMS_4((i) + 12u, __VA_ARGS__)
#define SUMS_64(i, ...)                                                                            \
    SUMS_16(i, __VA_ARGS__), SUMS_16((i) + 16u, __VA_ARGS__), SUMS_16((i) + 32u, __VA_ARGS__),     \
        SUMS_16((i) + 48u, __VA_ARGS__)
#define SUMS_256(...)                                                                              \
    SUMS_64(0u, __VA_ARGS__), SUMS_64(64u, __VA_ARGS__), SUMS_64(128u, __VA_ARGS__),               \
        SUMS_64(192u, __VA_ARGS__)

/* tables[k]: for a byte with k bytes after it. */
static const uint32_t tables[8][256] = {
    {SUMS_256(0x82f63b78, 0x417b1dbc, 0x20bd8ede, 0x105ec76f, 0x8ad958cf, 0xc79a971f, 0xe13b70f7,
              0xf26b8303)},
    {SUMS_256(0xfbc3faf9, 0xff17c604, 0x7f8be302, 0x3fc5f181, 0x9d14c3b8, 0x4e8a61dc, 0x274530ee,
              0x13a29877)},
    {SUMS_256(0x8b277743, 0xc76580d9, 0xe144fb14, 0x70a27d8a, 0x38513ec5, 0x9edea41a, 0x4f6f520d,
              0xa541927e)},
    {SUMS_256(0x52a0c93f, 0xaba65fe7, 0xd725148b, 0xe964b13d, 0xf64463e6, 0x7b2231f3, 0xbf672381,
              0xdd45aab8)},
    {SUMS_256(0x6ea2d55c, 0x37516aae, 0x1ba8b557, 0x8f2261d3, 0xc5670b91, 0xe045beb0, 0x7022df58,
              0x38116fac)},
    {SUMS_256(0x1c08b7d6, 0x0e045beb, 0x85f4168d, 0xc00c303e, 0x6006181f, 0xb2f53777, 0xdb8ca0c3,
              0xef306b19)},
    {SUMS_256(0xf56e0ef4, 0x7ab7077a, 0x3d5b83bd, 0x9c5bfaa6, 0x4e2dfd53, 0xa5e0c5d1, 0xd0065990,
              0x68032cc8)},
    {SUMS_256(0x34019664, 0x1a00cb32, 0x0d006599, 0x847609b4, 0x423b04da, 0x211d826d, 0x9278fa4e,
              0x493c7d27)},
};

uint32_t pl_crc32c_by_table(uint32_t crc, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    crc = ~crc;
    for (; n >= 8; n -= 8, at += 8) {
        uint64_t word = word_at(at) ^ crc;
        crc = 0;
        for (int i = 0; i < 8; i++)
            crc ^= tables[7 - i][word >> 8 * i & 0xff];
    }
    for (; n > 0; n--, at++)
        crc = crc >> 8 ^ tables[0][(crc ^ *at) & 0xff];
    return ~crc;
}

/* ---- by instruction ---- */

#if defined(__x86_64__)

#define TARGET __attribute__((target("sse4.2,pclmul")))

/* Appending bytes to a sum means multiplying it by a power of x, modulo the polynomial: the product
 * of two 32-bit sums has 63 bits, which the instruction reduces and multiplies by x^33. So the
 * factor for n more bytes is x^(8 * n - 33), with its bits reversed. */
enum { WORD = 8, LONG_LANE_WORDS = 128, SHORT_LANE_WORDS = 16 };
enum { LONG_BYTES = 3 * LONG_LANE_WORDS * WORD, SHORT_BYTES = 3 * SHORT_LANE_WORDS * WORD };
#define BEHIND_LONG_1  0x170076fau
#define BEHIND_LONG_2  0xa51b6135u
#define BEHIND_SHORT_1 0x0d3b6092u
#define BEHIND_SHORT_2 0xb9e02b86u
/* Two short lanes and up to 23 more bytes; or FEW_BYTES. */
enum { FEW_BYTES = 320 };
static const uint32_t behind[FEW_BYTES + 1] = {
    0xa9cdda0d, 0xbf818109, 0x780d5a4d, 0xfe2b5c35, 0x05ec76f1, 0x01000000, 0x00010000, 0x00000100,
    0x00000001, 0xf26b8303, 0x13a29877, 0xa541927e, 0xdd45aab8, 0x38116fac, 0xef306b19, 0x68032cc8,
    0x493c7d27, 0xf43ed648, 0xcb567ba5, 0x9771f7c1, 0x3171d430, 0x30d23865, 0x54075546, 0x678efd01,
    0xf20c0dfe, 0x5fe4dc5f, 0x0f69022b, 0xb93b4ce7, 0x3743f7bd, 0x0d0a7ded, 0x5c15eeb4, 0x75d3f038,
    0xba4fc28e, 0x2e34cb9d, 0x2dae840f, 0x5e3e92a0, 0xa2158b34, 0xf7dbcb25, 0x15bb4109, 0x78a7608d,
    0x3da6d0cb, 0x5a392b2f, 0x7ef48bd1, 0x21c69623, 0x33ccbbbc, 0xff6571a2, 0x438fa020, 0x20fe017e,
    0xddc0152b, 0xb9e9e5f0, 0xf3d78690, 0x925b2b91, 0x6051243f, 0x6e9024b1, 0x401061ee, 0x4f08075c,
    0x1c291d04, 0xc786be02, 0xe1fcf649, 0x39283a86, 0xa46ef4aa, 0xc90df36a, 0x0aedb6a9, 0xdaf383dc,
    0x9e4addf8, 0x79297d67, 0xb575def4, 0x34418db4, 0x75bba45b, 0xc8d9ca4c, 0x0cf00ba6, 0x84e6a245,
    0x740eef02, 0xe14f7e18, 0x9a66d0de, 0x7f31385c, 0x1c19243b, 0xa976fbae, 0x0e9a7c7a, 0x1a74e649,
    0x39d3b296, 0xb430c84d, 0xfee761a7, 0x767f362c, 0x6d883e38, 0xba579940, 0x41c14a25, 0x150d5b88,
    0x083a6eec, 0xae7b5da4, 0x657f59e4, 0x24cf405c, 0x1c42da43, 0x5237ac92, 0x73c1bb4c, 0x0c4b13d7,
    0x0715ce53, 0x42723ce9, 0x9bc001ea, 0x88494023, 0x3365346a, 0x0a17de6e, 0xcdb43b9b, 0x0bece317,
    0xc49f4f67, 0xb5c868c6, 0xe5990944, 0x860413aa, 0xc92f998d, 0x3d175832, 0xd1e52e1e, 0xbcf79d66,
    0x47db8317, 0xc4d37807, 0xd40eb793, 0x812c0154, 0x963e61cd, 0x7c335476, 0x574580b1, 0x4029b44a,
    0x2ad91c30, 0x30c990ad, 0x1d5330e5, 0xd6dcef36, 0x169472b6, 0x94a20153, 0x42e18b26, 0x065e88bd,
    0x0d3b6092, 0x739eb780, 0x8285a5cf, 0x9d1c9f45, 0x7417153f, 0x6e846280, 0x8298bf1a, 0x7b3e77e8,
    0x6992cea2, 0x4319579f, 0xccf8d964, 0xa690fca4, 0x6577b245, 0x74ef7e12, 0xf11158e6, 0xc5605eaa,
    0xc96cfdc0, 0xc3444a39, 0x4892d637, 0xe461bf8c, 0xcf519517, 0xc45bf211, 0xe2f11f9e, 0x3e32b22f,
    0x7e908048, 0xcbdcd5f3, 0xe0f54054, 0x965fb88c, 0xcf23ab10, 0x1091e4c4, 0x0407203f, 0x6ef472b5,
    0x878a92a7, 0x76065bdf, 0x8db6dbd4, 0x14c4c06f, 0x3fc16b86, 0xa4681dfb, 0x6a43ac53, 0x421f6a8b,
    0x1b3d8f29, 0x5814689d, 0x2dd8a4ac, 0xef25a2d2, 0x3207b4fe, 0x5f24d7e6, 0xc5ce6b25, 0x158954a9,
    0xdaece73e, 0x9c411a71, 0x836f9614, 0xd7473fe6, 0xc54608cd, 0x7c602c1f, 0x4e319b67, 0xb542c612,
    0xf1d0f55e, 0xfdacb501, 0xf2962fb6, 0x9446030e, 0xacecf924, 0xe78bf538, 0xbadd9a8b, 0x1bc54dd9,
    0xab7aff2a, 0x4bf4dc19, 0x68a7e87f, 0x2fe3cfc1, 0x31c94608, 0x8ae89189, 0xface0825, 0x15b654ca,
    0xa87ab8a8, 0x283a97d1, 0x2190583f, 0x6ed1e5cd, 0x7ccbbbf2, 0x1229d439, 0x4843bba9, 0xdab12dd1,
    0x2162d385, 0xb7264db7, 0x6668306f, 0x3fb3c776, 0x57060022, 0xc1d1f829, 0x58ce84ea, 0x888a4ea6,
    0x8462d800, 0x008462d8, 0x590a3d06, 0x26f8edd5, 0xe6040d5a, 0x3a21f6e6, 0xc5ab6e04, 0xc75f3c71,
    0x83348832, 0xd15b0dce, 0x6f24c2ee, 0x4f2733ff, 0xad327462, 0x8050d1e1, 0x11db7bc8, 0x4945a570,
    0x71d111a8, 0x28e33c78, 0xfb69effe, 0x5fedb9bd, 0x0d62d3a3, 0xb1162481, 0x702cae5f, 0x0f46ca59,
    0x299847d5, 0xe60b6df0, 0xf3886418, 0x9a7417c4, 0x048dc5cc, 0x8eca64d1, 0x2136a8cc, 0x8eefdfbc,
    0xffd852c6, 0xe5d3197e, 0xdd053833, 0x236ebf7d, 0xce937661, 0x93638317, 0xc407c007, 0xd40e632b,
    0xb9e02b86, 0xa4ee3cbb, 0x2b3837ce, 0x6fdea1d4, 0x1426a815, 0x25bbf5db, 0x4a7ff165, 0x547df88f,
    0xdcb17aa4, 0x650d93c3, 0xd0b8d8a3, 0xb1cbfe8a, 0xe9a5d8be, 0x1e846836, 0x165c2a31, 0xc29e9698,
    0x18b33a4e, 0xed1b11a1, 0x50cd2db4, 0x75df28fb, 0x6a921b66, 0x470de691, 0x608472f2, 0x12359bf0,
    0xf37c5aee, 0x4fbb6b67, 0xb5434ce2, 0x02be9ba1, 0x5022883e, 0x9ccbd41e, 0xbcbab39c, 0xdf578974,
    0xb6dd949b, 0x0b978ab8, 0x38c7bd8c, 0xcf8d3315, 0x25605e40, 0x415e7de2, 0x024a8690, 0x92aab691,
    0x6051d5a2, 0x43109484, 0x452fbcf3, 0xe07bb33d, 0x8f2b7ed1, 0x213749d6, 0xf553310a, 0x6b177b09,
    0x78d9ccb7, 0x66a7cfee, 0x4f2eb0f2, 0x121a3132, 0xd1ca2377, 0xa583fac5, 0xf6d9b122, 0xc1702798,
    0x18b0d4ff, 0xad65e385, 0xb7aa4a87, 0x568bf5d9, 0xab37b192, 0x7338bb51, 0xa33d616b, 0xf8ec0538,
    0xbac2fd7b,
};

TARGET static inline __m128i times(uint64_t crc, uint32_t factor)
{
    return _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc),
                                _mm_cvtsi64_si128((long long)factor), 0);
}

TARGET static inline uint64_t sum_lanes(uint64_t crc, const uint8_t *at, size_t lane_words,
                                        uint32_t behind_2, uint32_t behind_1)
{
    uint64_t a = crc, b = 0, c = 0;
    const uint8_t *end = at + lane_words * WORD;
    for (const uint8_t *word = at; word < end; word += WORD) {
        a = _mm_crc32_u64(a, word_at(word));
        b = _mm_crc32_u64(b, word_at(word + lane_words * WORD));
        c = _mm_crc32_u64(c, word_at(word + 2 * lane_words * WORD));
    }
    __m128i before_c = _mm_xor_si128(times(a, behind_2), times(b, behind_1));
    return c ^ _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(before_c));
}

/* Sums the last n < 24 of at least 24 bytes that end at `end`, starting from 0. Has no branches: n
 * is practically random, and a mispredicted branch takes longer than the whole function. The bytes
 * before them are replaced by zeros, which do not change a sum of 0. */
TARGET static inline uint64_t sum_rest(const uint8_t *end, size_t n)
{
    static const uint64_t masks[6] = {0, 0, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    const uint8_t *at = end - 3 * WORD, *mask = (const uint8_t *)masks + n;
    uint64_t crc = _mm_crc32_u64(0, word_at(at) & word_at(mask));
    crc = _mm_crc32_u64(crc, word_at(at + WORD) & word_at(mask + WORD));
    return _mm_crc32_u64(crc, word_at(at + 2 * WORD) & word_at(mask + 2 * WORD));
}

TARGET static inline uint64_t sum_few(uint64_t crc, const uint8_t *at, size_t n)
{
    for (; n >= WORD; n -= WORD, at += WORD)
        crc = _mm_crc32_u64(crc, word_at(at));
    for (; n > 0; n--, at++)
        crc = _mm_crc32_u8((uint32_t)crc, *at);
    return crc;
}

/* Sums at least three words, in lanes as long as possible. The remaining bytes are summed beside
 * them, and everything is combined at once: so consecutive records overlap in the processor. */
TARGET static inline uint64_t sum_short(uint64_t crc, const uint8_t *at, size_t n)
{
    size_t lane = n / (3 * WORD) * WORD, n_rest = n - 3 * lane;
    uint64_t a = crc, b = 0, c = 0, rest = sum_rest(at + n, n_rest);
    for (const uint8_t *end = at + lane; at < end; at += WORD) {
        a = _mm_crc32_u64(a, word_at(at));
        b = _mm_crc32_u64(b, word_at(at + lane));
        c = _mm_crc32_u64(c, word_at(at + 2 * lane));
    }
    __m128i before_c =
        _mm_xor_si128(times(a, behind[2 * lane + n_rest]), times(b, behind[lane + n_rest]));
    __m128i before_rest = _mm_xor_si128(before_c, times(c, behind[n_rest]));
    return rest ^ _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(before_rest));
}

/* Sums lanes of two fixed lengths, and the remaining bytes. Not inlined, so that short sums need no
 * stack. */
TARGET static __attribute__((noinline)) uint64_t sum_long(uint64_t crc, const uint8_t *at, size_t n)
{
    for (; n >= LONG_BYTES; n -= LONG_BYTES, at += LONG_BYTES)
        crc = sum_lanes(crc, at, LONG_LANE_WORDS, BEHIND_LONG_2, BEHIND_LONG_1);
    for (; n >= SHORT_BYTES; n -= SHORT_BYTES, at += SHORT_BYTES)
        crc = sum_lanes(crc, at, SHORT_LANE_WORDS, BEHIND_SHORT_2, BEHIND_SHORT_1);
    return n < 3 * WORD ? sum_few(crc, at, n) : sum_short(crc, at, n);
}

TARGET static uint32_t by_lanes(uint32_t begin, const uint8_t *at, size_t n)
{
    uint64_t crc = ~begin;
    if (PL_LIKELY(n >= 3 * WORD && n < SHORT_BYTES))
        crc = sum_short(crc, at, n);
    else
        crc = n < 3 * WORD ? sum_few(crc, at, n) : sum_long(crc, at, n);
    return ~(uint32_t)crc;
}

TARGET static uint32_t word_by_instruction(uint64_t word)
{
    return ~(uint32_t)_mm_crc32_u64(UINT32_MAX, word);
}

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

/* ---- by products of 512 bits ---- */

#define TARGET_WIDE                                                                                \
    __attribute__((target("sse4.2,pclmul,bmi2,avx512f,avx512bw,avx512vl,vpclmulqdq")))

enum { WIDE = 64 };

/* The factors for the halves of 16 bytes with d bytes after them, so that both align at the end:
 * behind[d + 12] and behind[d + 4], in the upper half of a word, where the bits of a product fall
 * into place. For WIDE bytes, d of the first 16 is 48 more than d of the last. */
#define FACTOR(b) (UINT64_C(b) << 32)
static const uint64_t factors[FEW_BYTES / WIDE][WIDE / WORD] __attribute__((aligned(WIDE))) = {
    {FACTOR(0xab37b192), FACTOR(0xd1ca2377), FACTOR(0x8f2b7ed1), FACTOR(0x25605e40),
     FACTOR(0x5022883e), FACTOR(0x6a921b66), FACTOR(0xe9a5d8be), FACTOR(0x1426a815)},
    {FACTOR(0xce937661), FACTOR(0x048dc5cc), FACTOR(0x0d62d3a3), FACTOR(0xad327462),
     FACTOR(0xe6040d5a), FACTOR(0x57060022), FACTOR(0x7ccbbbf2), FACTOR(0x31c94608)},
    {FACTOR(0xacecf924), FACTOR(0xc54608cd), FACTOR(0x3207b4fe), FACTOR(0x3fc16b86),
     FACTOR(0xcf23ab10), FACTOR(0xcf519517), FACTOR(0x6577b245), FACTOR(0x7417153f)},
    {FACTOR(0x169472b6), FACTOR(0x963e61cd), FACTOR(0xc92f998d), FACTOR(0x3365346a),
     FACTOR(0x1c42da43), FACTOR(0x6d883e38), FACTOR(0x1c19243b), FACTOR(0x75bba45b)},
    {FACTOR(0xa46ef4aa), FACTOR(0x6051243f), FACTOR(0x33ccbbbc), FACTOR(0xa2158b34),
     FACTOR(0x3743f7bd), FACTOR(0x3171d430), FACTOR(0xdd45aab8), FACTOR(0x05ec76f1)},
};
/* The same with 4 * WIDE bytes after them; the upper half first. */
#define FACTORS_4 (long long)FACTOR(0x1426a815), (long long)FACTOR(0xe9a5d8be)

TARGET_WIDE static inline __m512i folded(__m512i bytes, __m512i factor)
{
    return _mm512_xor_si512(_mm512_clmulepi64_epi128(bytes, factor, 0x00),
                            _mm512_clmulepi64_epi128(bytes, factor, 0x11));
}

/* Sums 4 * 16 bytes that all have the same place; `more` is XORed into the last 8 of them. */
TARGET_WIDE static inline uint32_t sum_folded(__m512i all, uint64_t more)
{
    __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    __m128i one = _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    uint64_t crc = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(one));
    return (uint32_t)_mm_crc32_u64(crc, (uint64_t)_mm_extract_epi64(one, 1) ^ more);
}

/* Returns those of the last n <= FEW_BYTES bytes before `end` that are among the WIDE bytes that
 * end `before` bytes earlier; zeros for the others, which are not read. */
TARGET_WIDE static inline __m512i wide_before(const uint8_t *end, int64_t before, int64_t n)
{
    int64_t zeros = before + WIDE - n;
    zeros = zeros < 0 ? 0 : zeros > WIDE ? WIDE : zeros;
    __mmask64 there = ~_bzhi_u64(UINT64_MAX, (unsigned)zeros);
    /* An integer address, because it may lie before the start of the buffer. */
    return _mm512_maskz_loadu_epi8(there, (const void *)((uintptr_t)end - (size_t)before - WIDE));
}

/* No branch depends on the length, which no processor could predict: see sum_rest(). */
TARGET_WIDE static inline uint32_t sum_few_wide(uint32_t crc, const uint8_t *at, size_t n)
{
    __m512i all = _mm512_setzero_si512();
    for (int i = 0; i < FEW_BYTES / WIDE; i++) {
        __m512i bytes = wide_before(at + n, FEW_BYTES - WIDE * (i + 1), (int64_t)n);
        all = _mm512_xor_si512(all, folded(bytes, _mm512_load_si512(factors[i])));
    }
    return sum_folded(all, (uint64_t)_mm_cvtsi128_si64(times(crc, behind[n])));
}

/* Sums more than FEW_BYTES, and leaves the last of them to the function above. */
TARGET_WIDE static __attribute__((noinline)) uint32_t sum_many_wide(uint32_t crc, const uint8_t *at,
                                                                    size_t n)
{
    const __m512i ahead = _mm512_broadcast_i32x4(_mm_set_epi64x(FACTORS_4));
    __m512i sums[4];
    for (int i = 0; i < 4; i++)
        sums[i] = _mm512_loadu_si512(at + WIDE * i);
    sums[0] = _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    for (at += 4 * WIDE, n -= 4 * WIDE; n > FEW_BYTES; at += 4 * WIDE, n -= 4 * WIDE)
        for (int i = 0; i < 4; i++)
            sums[i] = _mm512_xor_si512(folded(sums[i], ahead), _mm512_loadu_si512(at + WIDE * i));
    __m512i all = _mm512_setzero_si512();
    for (int i = 0; i < 4; i++)
        all = _mm512_xor_si512(all, folded(sums[i], _mm512_load_si512(factors[i + 1])));
    return sum_few_wide(sum_folded(all, 0), at, n);
}

TARGET_WIDE static uint32_t by_wide(uint32_t begin, const uint8_t *at, size_t n)
{
    return ~(PL_LIKELY(n <= FEW_BYTES) ? sum_few_wide(~begin, at, n)
                                       : sum_many_wide(~begin, at, n));
}

static bool has_wide(void)
{
    return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}

/* The wide sum of a few bytes takes as long as that of FEW_BYTES. */
static inline uint32_t by_instruction(uint32_t crc, const uint8_t *at, size_t n)
{
    return n >= WIDE && has_wide() ? by_wide(crc, at, n) : by_lanes(crc, at, n);
}

#elif defined(__aarch64__)

/* In assembler, because compilers differ in how to enable an extension for a function. */
static inline uint32_t add_word(uint32_t crc, uint64_t word)
{
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    return crc;
}

static inline uint32_t add_byte(uint32_t crc, uint8_t byte)
{
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)byte));
    return crc;
}

static uint32_t by_instruction(uint32_t begin, const uint8_t *at, size_t n)
{
    uint32_t crc = ~begin;
    for (; n >= 8; n -= 8, at += 8)
        crc = add_word(crc, word_at(at));
    for (; n > 0; n--, at++)
        crc = add_byte(crc, *at);
    return ~crc;
}

static uint32_t word_by_instruction(uint64_t word)
{
    return ~add_word(UINT32_MAX, word);
}

static bool has_instruction(void)
{
    return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

#define by_lanes by_instruction

#else

#define by_instruction pl_crc32c_by_table
#define by_lanes       pl_crc32c_by_table

static uint32_t word_by_instruction(uint64_t word)
{
    return pl_crc32c_by_table(0, &word, sizeof word);
}

static bool has_instruction(void)
{
    return false;
}

#endif

uint32_t pl_crc32c(uint32_t crc, const void *bytes, size_t n)
{
    return PL_LIKELY(has_instruction()) ? by_instruction(crc, bytes, n)
                                        : pl_crc32c_by_table(crc, bytes, n);
}

uint32_t pl_crc32c_by_lanes(uint32_t crc, const void *bytes, size_t n)
{
    return has_instruction() ? by_lanes(crc, bytes, n) : pl_crc32c_by_table(crc, bytes, n);
}

uint32_t pl_crc32c_word(uint64_t word)
{
    return PL_LIKELY(has_instruction()) ? word_by_instruction(word)
                                        : pl_crc32c_by_table(0, &word, sizeof word);
}
