/* SPDX-License-Identifier: Apache-2.0 */
/* Converts f16 and bf16 to f32 and back: see dtype.h. Integer arithmetic on the bits, so that
 * neither the rounding mode nor flush-to-zero, which other libraries in the process can set,
 * changes a result. */
#include <string.h>

#include "tensor/dtype.h"

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* value / 2^shift, to the nearest, ties to even. */
static uint32_t shift_rounded(uint32_t value, unsigned shift)
{
    return (value + (UINT32_C(1) << (shift - 1)) - 1 + (value >> shift & 1)) >> shift;
}

static uint16_t half_of(float value)
{
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    uint32_t exponent = size >> 23, half;
    if (size > 0x7f800000) /* NaN */
        half = 0x7e00 | (size >> 13 & 0x3ff);
    else if (size >= 0x47800000) /* 65536, over the largest half 65504; less rounds below */
        half = 0x7c00;
    else if (exponent >= 113) /* 2^-14, the smallest normal half: the exponents' biases differ */
        half = shift_rounded(size - (UINT32_C(112) << 23), 13);
    else if (exponent >= 102) /* 2^-25, half of the smallest subnormal, 2^-24 */
        half = shift_rounded((size & 0x7fffff) | 0x800000, 126 - exponent);
    else
        half = 0;
    return (uint16_t)(sign | half);
}

static float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f;
    uint32_t fraction = half & 0x3ff;
    if (exponent == 31)
        return float_of(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0));
    if (exponent != 0)
        return float_of(sign | (exponent + 112) << 23 | fraction << 13);
    if (fraction == 0)
        return float_of(sign);
    /* Subnormal, fraction x 2^-24: its first bit becomes the one that a normal float implies. */
    unsigned shift = (unsigned)__builtin_clz(fraction) - 21;
    return float_of(sign | (113 - shift) << 23 | (fraction << shift & 0x3ff) << 13);
}

void pl_f32_to_f16_portable(const float *from, uint16_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = half_of(from[i]);
}

void pl_f16_to_f32_portable(const uint16_t *from, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = float_of_half(from[i]);
}

/* The upper half of the float's bits, rounded. A NaN could round to infinity, or lose its payload:
 * it is cut and made quiet instead. Without a branch, for the vectorizer. */
void pl_f32_to_bf16(const float *from, uint16_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(from[i]);
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        uint32_t quiet = bits >> 16 | 0x40;
        to[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
    }
}

/* Exact. A signalling NaN is made quiet, as a conversion in hardware does. */
void pl_bf16_to_f32(const uint16_t *from, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)from[i] << 16;
        to[i] = float_of(bits | ((bits & 0x7fffffff) > 0x7f800000 ? 0x400000 : 0));
    }
}

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

/* Asked with cpuid, because clang 14 does not know "f16c" in __builtin_cpu_supports(); "avx" there
 * means that the kernel saves the wide registers. Two threads that ask at once write the same
 * answer. */
static bool has_f16c(void)
{
    static int answer; /* 0: not asked yet; 1: no; 2: yes */
    int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
    if (known == 0) {
        unsigned a, b, c, d;
        bool yes =
            __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
        known = yes ? 2 : 1;
        __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
    }
    return known == 2;
}

__attribute__((target("avx,f16c"))) static size_t f32_to_f16_f16c(const float *from, uint16_t *to,
                                                                  size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

__attribute__((target("avx,f16c"))) static size_t f16_to_f32_f16c(const uint16_t *from, float *to,
                                                                  size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
    return i;
}

void pl_f32_to_f16(const float *from, uint16_t *to, size_t n)
{
    size_t done = has_f16c() ? f32_to_f16_f16c(from, to, n) : 0;
    pl_f32_to_f16_portable(from + done, to + done, n - done);
}

void pl_f16_to_f32(const uint16_t *from, float *to, size_t n)
{
    size_t done = has_f16c() ? f16_to_f32_f16c(from, to, n) : 0;
    pl_f16_to_f32_portable(from + done, to + done, n - done);
}

#else

void pl_f32_to_f16(const float *from, uint16_t *to, size_t n)
{
    pl_f32_to_f16_portable(from, to, n);
}

void pl_f16_to_f32(const uint16_t *from, float *to, size_t n)
{
    pl_f16_to_f32_portable(from, to, n);
}

#endif
