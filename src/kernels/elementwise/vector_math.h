/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of floats that no instruction computes. Only this file knows where they come from:
 *   here     sin cos exp log tanh sigmoid of f32, where the machine has fused multiply-add
 *   SLEEF    all else on x86-64, the variants good to 1 unit in the last place (sleef.org)
 *   libm     all on other machines
 *
 * Ours are functions of one element without a branch; a loop over them is vectorized, and its tail
 * uses the same operations. They exist because SLEEF takes 1.2 (exp) to 4 times (sin) as long
 * (docs/kernels.md). */
#ifndef PL_KERNELS_ELEMENTWISE_VECTOR_MATH_H
#define PL_KERNELS_ELEMENTWISE_VECTOR_MATH_H

#include <math.h>
#include <string.h>

#include "kernels/strip.h"

/* Vectors, and the name of a function on them: PL_LIBRARY_F32(sin, u10). */
#if defined(__AVX512F__)
#include <immintrin.h>
#include <sleef.h>
typedef __m512 pl_lanes_F32;
typedef __m512d pl_lanes_F64;
#define PL_LIBRARY_F32(name, ulp) Sleef_##name##f16_##ulp##avx512f
#define PL_LIBRARY_F64(name, ulp) Sleef_##name##d8_##ulp##avx512f
#elif defined(__AVX2__)
#include <immintrin.h>
#include <sleef.h>
typedef __m256 pl_lanes_F32;
typedef __m256d pl_lanes_F64;
#define PL_LIBRARY_F32(name, ulp) Sleef_##name##f8_##ulp##avx2
#define PL_LIBRARY_F64(name, ulp) Sleef_##name##d4_##ulp##avx2
#elif defined(__x86_64__)
#include <emmintrin.h>
#include <sleef.h>
typedef __m128 pl_lanes_F32;
typedef __m128d pl_lanes_F64;
#define PL_LIBRARY_F32(name, ulp) Sleef_##name##f4_##ulp##sse2
#define PL_LIBRARY_F64(name, ulp) Sleef_##name##d2_##ulp##sse2
#else
typedef float pl_lanes_F32;
typedef double pl_lanes_F64;
#define PL_LIBRARY_F32(name, ulp) name##f
#define PL_LIBRARY_F64(name, ulp) name
#endif

enum {
    PL_N_LANES_F32 = sizeof(pl_lanes_F32) / sizeof(float),
    PL_N_LANES_F64 = sizeof(pl_lanes_F64) / sizeof(double),
};

#ifdef __FMA__

static inline float pl_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t pl_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float pl_fma(float x, float y, float z)
{
    return __builtin_fmaf(x, y, z);
}

/* x + 1.5 x 2^23 has no bits left for a fraction: the addition rounds to the nearest integer, and
 * leaves it in the lowest bits. For |x| < 2^22. */
#define PL_ROUNDER 0x1.8p23f

/* pi and log(2), each as a sum of floats. x - q * (sum) is done from the largest on, fused: the
 * first step is exact, because x and q * pi cancel. */
#define PL_PI_1  0x1.921fb6p+1f
#define PL_PI_2  -0x1.777a5cp-24f
#define PL_PI_3  -0x1.ee59dap-49f
#define PL_LN2_1 0x1.62e430p-1f
#define PL_LN2_2 -0x1.05c610p-29f

/* Above this the number of half turns is rounded too coarsely for the polynomial below. */
#define PL_TRIG_LIMIT 0x1p15f

static inline float pl_minus_turns(float x, float half_turns)
{
    float d = pl_fma(half_turns, -PL_PI_1, x);
    d = pl_fma(half_turns, -PL_PI_2, d);
    return pl_fma(half_turns, -PL_PI_3, d);
}

/* sin(d) for |d| <= 1.004 x pi / 2: d + d^3 p(d^2). Coefficients, here and below, by Lawson's
 * iteration on the relative error; off by 0.11 ulp before rounding. */
static inline float pl_sin_of_reduced(float d)
{
    float s = d * d;
    float p = pl_fma(0x1.5d94c4p-19f, s, -0x1.9f6d3cp-13f);
    p = pl_fma(p, s, 0x1.110ec6p-7f);
    p = pl_fma(p, s, -0x1.55554cp-3f);
    return pl_fma(p, s * d, d);
}

/* sin(x) = (-1)^k sin(x - k pi). */
static inline float pl_sin_easy(float x)
{
    float rounded = pl_fma(x, 0x1.45f306p-2f, PL_ROUNDER);
    float sine = pl_sin_of_reduced(pl_minus_turns(x, rounded - PL_ROUNDER));
    /* The polynomial's sum loses the sign of -0. */
    sine = x == 0 ? x : sine;
    return pl_float_of(pl_bits_of(sine) ^ pl_bits_of(rounded) << 31);
}

/* cos(x) = (-1)^(k+1) sin(x - (k + 1/2) pi). */
static inline float pl_cos_easy(float x)
{
    float rounded = pl_fma(x, 0x1.45f306p-2f, -0.5f) + PL_ROUNDER;
    float sine = pl_sin_of_reduced(pl_minus_turns(x, rounded - PL_ROUNDER + 0.5f));
    return pl_float_of(pl_bits_of(sine) ^ ~pl_bits_of(rounded) << 31);
}

/* e^x = 2^k e^r, |r| <= log(2) / 2, and e^r = 1 + r + r^2 p(r), off by 0.05 ulp. 2^k in two
 * factors: it may lie outside of the normal floats where the result does not. Beyond [-104, 89] the
 * result is 0 or infinity. */
static inline float pl_exp(float x)
{
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    float rounded = pl_fma(x, 0x1.715476p+0f, PL_ROUNDER), k = rounded - PL_ROUNDER;
    float r = pl_fma(k, -PL_LN2_2, pl_fma(k, -PL_LN2_1, x));
    float p = pl_fma(0x1.6a1f62p-10f, r, 0x1.123ccap-7f);
    p = pl_fma(p, r, 0x1.555904p-5f);
    p = pl_fma(p, r, 0x1.55548ep-3f);
    p = pl_fma(p, r, 0x1.fffffcp-2f);
    float power = 1.0f + pl_fma(p, r * r, r);
    int32_t exponent = (int32_t)(pl_bits_of(rounded) - pl_bits_of(PL_ROUNDER));
    int32_t half = exponent >> 1;
    return power * pl_float_of((uint32_t)(half + 127) << 23) *
           pl_float_of((uint32_t)(exponent - half + 127) << 23);
}

/* log(2^e m) = e log(2) + log(1 + f), sqrt(1/2) <= m < sqrt(2), and
 * log(1 + f) = f - f^2/2 + f^3 p(f), off by 0.10 ulp. Subnormals are scaled first. */
static inline float pl_log(float x)
{
    bool is_tiny = x < 0x1p-126f;
    uint32_t bits = pl_bits_of(is_tiny ? x * 0x1p23f : x);
    int32_t exponent = (int32_t)(bits - 0x3f3504f3) >> 23; /* sqrt(1/2) */
    float e = (float)exponent - (is_tiny ? 23.0f : 0.0f);
    float f = pl_float_of(bits - ((uint32_t)exponent << 23)) - 1.0f, s = f * f;
    float p = pl_fma(-0x1.38b576p-4f, f, 0x1.055b68p-3f);
    p = pl_fma(p, f, -0x1.0d8542p-3f);
    p = pl_fma(p, f, 0x1.22da1ep-3f);
    p = pl_fma(p, f, -0x1.547244p-3f);
    p = pl_fma(p, f, 0x1.99a008p-3f);
    p = pl_fma(p, f, -0x1.000226p-2f);
    p = pl_fma(p, f, 0x1.555554p-2f);
    float rest = pl_fma(p * f, s, e * PL_LN2_2);
    float value = pl_fma(e, PL_LN2_1, pl_fma(-0.5f, s, rest) + f);
    float special = x == 0 ? -__builtin_inff() : x < 0 ? __builtin_nanf("") : x;
    return ((x > 0) & (x < __builtin_inff())) ? value : special;
}

/* Near 0, x + x^3 p(x^2), off by 0.08 ulp; beyond, 1 - 2 / (e^2x + 1). */
static inline float pl_tanh(float x)
{
    float size = __builtin_fabsf(x), s = x * x;
    float p = pl_fma(-0x1.73641ap-8f, s, 0x1.519c92p-6f);
    p = pl_fma(p, s, -0x1.b827fep-5f);
    p = pl_fma(p, s, 0x1.110692p-3f);
    p = pl_fma(p, s, -0x1.555530p-2f);
    float near = pl_fma(p * s, size, size);
    float far = 1.0f - 2.0f / (pl_exp(2.0f * size) + 1.0f);
    return __builtin_copysignf(size < 0.625f ? near : far, x);
}

/* 1 / (1 + e^-x), from a power that does not overflow. */
static inline float pl_sigmoid(float x)
{
    float power = pl_exp(-__builtin_fabsf(x));
    return (x >= 0 ? 1.0f : power) / (1.0f + power);
}

#endif /* __FMA__ */
#endif
