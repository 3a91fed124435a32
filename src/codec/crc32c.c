/* SPDX-License-Identifier: Apache-2.0 */
/* See crc32c.h. The instruction takes 8 bytes a cycle, but gives its sum only three cycles later:
 * so three pieces of the bytes are summed at a time, and their sums put together. */
#include "codec/crc32c.h"

#include <assert.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are summed as they lie in memory");

static inline uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* ---- by table ---- */

/* Bit by bit, a byte's sum is the sum of its bits', so 8 numbers make a table of 256. Those of the
 * byte that is `k` bytes before the last are the 8 that follow those of k - 1: 64 steps of the
 * polynomial 0x82f63b78, each (c >> 1) ^ (c & 1 ? polynomial : 0). The first is of bit 7. */
#define SUM_OF(i, b7, b6, b5, b4, b3, b2, b1, b0)                                                  \
    (((i) >> 7 & 1) * b7 ^ ((i) >> 6 & 1) * b6 ^ ((i) >> 5 & 1) * b5 ^ ((i) >> 4 & 1) * b4 ^       \
     ((i) >> 3 & 1) * b3 ^ ((i) >> 2 & 1) * b2 ^ ((i) >> 1 & 1) * b1 ^ ((i)&1) * b0)
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
    {                                                                                              \
        SUMS_64(0u, __VA_ARGS__), SUMS_64(64u, __VA_ARGS__), SUMS_64(128u, __VA_ARGS__),           \
            SUMS_64(192u, __VA_ARGS__)                                                             \
    }

/* tables[k]: of a byte with k bytes behind it. */
static const uint32_t tables[8][256] = {
    SUMS_256(0x82f63b78, 0x417b1dbc, 0x20bd8ede, 0x105ec76f, 0x8ad958cf, 0xc79a971f, 0xe13b70f7,
             0xf26b8303),
    SUMS_256(0xfbc3faf9, 0xff17c604, 0x7f8be302, 0x3fc5f181, 0x9d14c3b8, 0x4e8a61dc, 0x274530ee,
             0x13a29877),
    SUMS_256(0x8b277743, 0xc76580d9, 0xe144fb14, 0x70a27d8a, 0x38513ec5, 0x9edea41a, 0x4f6f520d,
             0xa541927e),
    SUMS_256(0x52a0c93f, 0xaba65fe7, 0xd725148b, 0xe964b13d, 0xf64463e6, 0x7b2231f3, 0xbf672381,
             0xdd45aab8),
    SUMS_256(0x6ea2d55c, 0x37516aae, 0x1ba8b557, 0x8f2261d3, 0xc5670b91, 0xe045beb0, 0x7022df58,
             0x38116fac),
    SUMS_256(0x1c08b7d6, 0x0e045beb, 0x85f4168d, 0xc00c303e, 0x6006181f, 0xb2f53777, 0xdb8ca0c3,
             0xef306b19),
    SUMS_256(0xf56e0ef4, 0x7ab7077a, 0x3d5b83bd, 0x9c5bfaa6, 0x4e2dfd53, 0xa5e0c5d1, 0xd0065990,
             0x68032cc8),
    SUMS_256(0x34019664, 0x1a00cb32, 0x0d006599, 0x847609b4, 0x423b04da, 0x211d826d, 0x9278fa4e,
             0x493c7d27),
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

/* Of two lengths, so that records of a few hundred bytes have lanes as well. To put bytes behind a
 * sum is to multiply it by a power of x, modulo the polynomial: the product of two 32-bit sums has
 * 63 bits, which the instruction reduces, and multiplies by x^33 on the way. Hence `behind_1` is
 * x^(8 * lane_bytes - 33), and `behind_2` the same for two lanes, bits in reverse. */
enum { LONG_LANE_BYTES = 1024, SHORT_LANE_BYTES = 128 };
#define LONG_BEHIND_2  0xa51b6135u
#define LONG_BEHIND_1  0x170076fau
#define SHORT_BEHIND_2 0xb9e02b86u
#define SHORT_BEHIND_1 0x0d3b6092u

TARGET static inline __m128i times(uint64_t crc, uint32_t factor)
{
    return _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc),
                                _mm_cvtsi64_si128((long long)factor), 0);
}

TARGET static inline uint64_t sum_lanes(uint64_t crc, const uint8_t *at, size_t lane_bytes,
                                        uint32_t behind_2, uint32_t behind_1)
{
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < lane_bytes; i += 8) {
        a = _mm_crc32_u64(a, word_at(at + i));
        b = _mm_crc32_u64(b, word_at(at + lane_bytes + i));
        c = _mm_crc32_u64(c, word_at(at + 2 * lane_bytes + i));
    }
    __m128i before_c = _mm_xor_si128(times(a, behind_2), times(b, behind_1));
    return c ^ _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(before_c));
}

TARGET static uint32_t by_instruction(uint32_t begin, const uint8_t *at, size_t n)
{
    uint64_t crc = ~begin;
    for (; n >= 3 * LONG_LANE_BYTES; n -= 3 * LONG_LANE_BYTES, at += 3 * LONG_LANE_BYTES)
        crc = sum_lanes(crc, at, LONG_LANE_BYTES, LONG_BEHIND_2, LONG_BEHIND_1);
    for (; n >= 3 * SHORT_LANE_BYTES; n -= 3 * SHORT_LANE_BYTES, at += 3 * SHORT_LANE_BYTES)
        crc = sum_lanes(crc, at, SHORT_LANE_BYTES, SHORT_BEHIND_2, SHORT_BEHIND_1);
    for (; n >= 8; n -= 8, at += 8)
        crc = _mm_crc32_u64(crc, word_at(at));
    for (; n > 0; n--, at++)
        crc = _mm_crc32_u8((uint32_t)crc, *at);
    return ~(uint32_t)crc;
}

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

#elif defined(__ARM_FEATURE_CRC32)

static uint32_t by_instruction(uint32_t begin, const uint8_t *at, size_t n)
{
    uint32_t crc = ~begin;
    for (; n >= 8; n -= 8, at += 8)
        crc = __crc32cd(crc, word_at(at));
    for (; n > 0; n--, at++)
        crc = __crc32cb(crc, *at);
    return ~crc;
}

static bool has_instruction(void)
{
    return true;
}

#else

#define by_instruction pl_crc32c_by_table

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
