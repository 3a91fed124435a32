/* SPDX-License-Identifier: Apache-2.0 */
/* exp() and log() of one element, without branches or calls: the compiler vectorizes a loop over
 * them, and the elements at its end get the same bits as those in the middle. The polynomials are
 * those of Cephes (S. L. Moshier); tests/unit/kernels/test_scan.c finds them within 1.6 ULP (exp)
 * and 0.9 ULP (log) of the truth. For *_loops.c only. */
#ifndef PL_KERNELS_ELEMENTWISE_SCALAR_MATH_H
#define PL_KERNELS_ELEMENTWISE_SCALAR_MATH_H

#include <stdint.h>
#include <string.h>

static inline float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double double_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t bits_from_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* For x <= 0 (as differences from a maximum are), or NaN; 0 where the result would be subnormal. */
static inline float exp_f32(float x)
{
    const float magic = 0x1.8p23f; /* added, it leaves the nearest integer in the lowest bits */
    float clamped = x < -87.0f ? -87.0f : x;
    float shifted = clamped * 1.44269504088896341f + magic, n = shifted - magic;
    float r = clamped - n * 0.693359375f - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    float power = float_from_bits((bits_from_float(shifted) - bits_from_float(magic) + 127) << 23);
    return x < -87.0f ? 0.0f : (p * (r * r) + r + 1.0f) * power;
}

static inline double exp_f64(double x)
{
    const double magic = 0x1.8p52;
    double clamped = x < -708.0 ? -708.0 : x;
    double shifted = clamped * 1.4426950408889634073599 + magic, n = shifted - magic;
    double r = clamped - n * 6.93145751953125e-1 - n * 1.42860682030941723212e-6, rr = r * r;
    double p = 1.26177193074810590878e-4;
    p = p * rr + 3.02994407707441961300e-2;
    p = (p * rr + 9.99999999999999999910e-1) * r;
    double q = 3.00198505138664455042e-6;
    q = q * rr + 2.52448340349684104192e-3;
    q = q * rr + 2.27265548208155028766e-1;
    q = q * rr + 2.00000000000000000005e0;
    double power =
        double_from_bits((bits_from_double(shifted) - bits_from_double(magic) + 1023) << 52);
    return x < -708.0 ? 0.0 : (1.0 + 2.0 * (p / (q - p))) * power;
}

/* For positive normal numbers only, which is all that random.c needs. */
static inline float log_f32(float x)
{
    /* x = m * 2^e with m in [sqrt(1/2), sqrt(2)) */
    uint32_t bits = bits_from_float(x) - 0x3f3504f3;
    float e = (float)((int32_t)bits >> 23);
    float m = float_from_bits((bits & 0x7fffff) + 0x3f3504f3) - 1.0f, z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    float y = p * m * z + e * -2.12194440e-4f - 0.5f * z;
    return m + y + e * 0.693359375f;
}

static inline double log_f64(double x)
{
    const uint64_t root_half = UINT64_C(0x3fe6a09e667f3bcd);
    uint64_t bits = bits_from_double(x) - root_half;
    double e = (double)((int32_t)(bits >> 32) >> 20);
    double m = double_from_bits((bits & 0xfffffffffffff) + root_half) - 1.0, z = m * m;
    double p = 1.01875663804580931796e-4;
    p = p * m + 4.97494994976747001425e-1;
    p = p * m + 4.70579119878881725854e0;
    p = p * m + 1.44989225341610930846e1;
    p = p * m + 1.79368678507819816313e1;
    p = p * m + 7.70838733755885391666e0;
    double q = m + 1.12873587189167450590e1;
    q = q * m + 4.52279145837532221105e1;
    q = q * m + 8.29875266912776603211e1;
    q = q * m + 7.11544750618563894466e1;
    q = q * m + 2.31251620126765340583e1;
    double y = m * (z * p / q) - e * 2.121944400546905827679e-4 - 0.5 * z;
    return m + y + e * 0.693359375;
}

#endif
