/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of random numbers. Compiled once per instruction set: see strip.h. Each computes both
 * branches of a choice, so that the compiler can vectorize it; it does not vectorize the
 * generator. */
#include <math.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/elementwise/random_loops.h"
#include "kernels/elementwise/scalar_math.h"
#include "kernels/strip.h"

#define PHILOX_M0 UINT32_C(0xd2511f53)
#define PHILOX_M1 UINT32_C(0xcd9e8d57)
#define PHILOX_W0 UINT32_C(0x9e3779b9)
#define PHILOX_W1 UINT32_C(0xbb67ae85)

#if defined(__AVX2__)

#define N_CHAINS 4 /* of four blocks: enough to hide the latency of a multiplication */

/* Words are the lower halves of lanes; the upper halves do not matter, because multiplications do
 * not read them. */
static inline void sixteen_blocks(pl_random random, uint64_t block, uint32_t *out)
{
    const __m256i m0 = _mm256_set1_epi64x(PHILOX_M0), m1 = _mm256_set1_epi64x(PHILOX_M1);
    const __m256i stream = _mm256_set1_epi64x((int64_t)random.stream);
    __m256i a[N_CHAINS], b[N_CHAINS], c[N_CHAINS], d[N_CHAINS];
    for (int i = 0; i < N_CHAINS; i++) {
        int64_t n = (int64_t)(block + 4 * (uint64_t)i);
        a[i] = _mm256_add_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
        b[i] = _mm256_srli_epi64(a[i], 32);
        c[i] = stream;
        d[i] = _mm256_srli_epi64(stream, 32);
    }
    uint32_t k0 = (uint32_t)random.seed, k1 = random.seed >> 32;
    for (int round = 0; round < 10; round++, k0 += PHILOX_W0, k1 += PHILOX_W1) {
        const __m256i key0 = _mm256_set1_epi64x(k0), key1 = _mm256_set1_epi64x(k1);
        for (int i = 0; i < N_CHAINS; i++) {
            __m256i left = _mm256_mul_epu32(a[i], m0), right = _mm256_mul_epu32(c[i], m1);
            a[i] = _mm256_srli_epi64(right, 32) ^ b[i] ^ key0;
            c[i] = _mm256_srli_epi64(left, 32) ^ d[i] ^ key1;
            b[i] = right;
            d[i] = left;
        }
    }
    for (int i = 0; i < N_CHAINS; i++, out += 16) {
        __m256i ab = _mm256_blend_epi32(a[i], _mm256_slli_epi64(b[i], 32), 0xaa);
        __m256i cd = _mm256_blend_epi32(c[i], _mm256_slli_epi64(d[i], 32), 0xaa);
        __m256i even = _mm256_unpacklo_epi64(ab, cd), odd = _mm256_unpackhi_epi64(ab, cd);
        _mm256_storeu_si256((__m256i *)out, _mm256_permute2x128_si256(even, odd, 0x20));
        _mm256_storeu_si256((__m256i *)(out + 8), _mm256_permute2x128_si256(even, odd, 0x31));
    }
}

static void blocks(pl_random random, uint64_t block, uint32_t *out)
{
    for (unsigned i = 0; i < PL_RANDOM_BLOCKS; i += 4 * N_CHAINS)
        sixteen_blocks(random, block + i, out + 4 * i);
}

#else

static void blocks(pl_random random, uint64_t block, uint32_t *restrict out)
{
    const uint32_t stream_low = (uint32_t)random.stream, stream_high = random.stream >> 32;
    for (int b = 0; b < PL_RANDOM_BLOCKS; b++) {
        uint64_t number = block + (uint64_t)b;
        uint32_t a = (uint32_t)number, c = stream_low, d = stream_high;
        uint32_t e = (uint32_t)(number >> 32), k0 = (uint32_t)random.seed, k1 = random.seed >> 32;
        for (int round = 0; round < 10; round++) {
            uint64_t left = (uint64_t)PHILOX_M0 * a, right = (uint64_t)PHILOX_M1 * c;
            a = (uint32_t)(right >> 32) ^ e ^ k0;
            e = (uint32_t)right;
            c = (uint32_t)(left >> 32) ^ d ^ k1;
            d = (uint32_t)left;
            k0 += PHILOX_W0;
            k1 += PHILOX_W1;
        }
        out[4 * b] = a;
        out[4 * b + 1] = e;
        out[4 * b + 2] = c;
        out[4 * b + 3] = d;
    }
}

#endif

static void uniform_f32(const uint32_t *words, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)(int32_t)(words[i] >> 8) * 0x1p-24f;
}

/* Converts 53 bits in two parts, each of which is exact as a double: AVX2 has no conversion from 64
 * bits. */
static void uniform_f64(const uint32_t *words, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        double high = (double)(int32_t)(words[2 * i + 1] >> 1);
        double low = (double)(int32_t)((words[2 * i + 1] & 1) << 21 | words[2 * i] >> 11);
        out[i] = high * 0x1p-31 + low * 0x1p-53;
    }
}

/* Wichura's PPND7: the x > 0 that has this much of the distribution above it: 0 < above <= 1/2. */
static inline float normal_above_f32(float above)
{
    float q = 0.5f - above, r = 0.180625f - q * q;
    float centre = q *
                   (((59.109374720f * r + 159.29113202f) * r + 50.434271938f) * r + 3.3871327179f) /
                   (((67.187563600f * r + 78.757757664f) * r + 17.895169469f) * r + 1.0f);
    float s = sqrtf(-log_f32(above)) - 1.6f;
    float tail = (((0.17023821103f * s + 1.3067284816f) * s + 2.7568153900f) * s + 1.4234372777f) /
                 ((0.12021132975f * s + 0.73700164250f) * s + 1.0f);
    return q <= 0.425f ? centre : tail;
}

/* Wichura's PPND16. */
static inline double normal_above_f64(double above)
{
    double q = 0.5 - above, r = 0.180625 - q * q;
    double p = 2.5090809287301226727e+3, d = 5.2264952788528545610e+3;
    p = p * r + 3.3430575583588128105e+4, d = d * r + 2.8729085735721942674e+4;
    p = p * r + 6.7265770927008700853e+4, d = d * r + 3.9307895800092710610e+4;
    p = p * r + 4.5921953931549871457e+4, d = d * r + 2.1213794301586595867e+4;
    p = p * r + 1.3731693765509461125e+4, d = d * r + 5.3941960214247511077e+3;
    p = p * r + 1.9715909503065514427e+3, d = d * r + 6.8718700749205790830e+2;
    p = p * r + 1.3314166789178437745e+2, d = d * r + 4.2313330701600911252e+1;
    p = p * r + 3.3871328727963666080e+0, d = d * r + 1.0;
    double centre = q * p / d;

    double root = sqrt(-log_f64(above)), s = root - 1.6, t = root - 5.0;
    p = 7.74545014278341407640e-4, d = 1.05075007164441684324e-9;
    p = p * s + 2.27238449892691845833e-2, d = d * s + 5.47593808499534494600e-4;
    p = p * s + 2.41780725177450611770e-1, d = d * s + 1.51986665636164571966e-2;
    p = p * s + 1.27045825245236838258e+0, d = d * s + 1.48103976427480074590e-1;
    p = p * s + 3.64784832476320460504e+0, d = d * s + 6.89767334985100004550e-1;
    p = p * s + 5.76949722146069140550e+0, d = d * s + 1.67638483018380384940e+0;
    p = p * s + 4.63033784615654529590e+0, d = d * s + 2.05319162663775882187e+0;
    p = p * s + 1.42343711074968357734e+0, d = d * s + 1.0;
    double tail = p / d;

    p = 2.01033439929228813265e-7, d = 2.04426310338993978564e-15;
    p = p * t + 2.71155556874348757815e-5, d = d * t + 1.42151175831644588870e-7;
    p = p * t + 1.24266094738807843860e-3, d = d * t + 1.84631831751005468180e-5;
    p = p * t + 2.65321895265761230930e-2, d = d * t + 7.86869131145613259100e-4;
    p = p * t + 2.96560571828504891230e-1, d = d * t + 1.48753612908506148525e-2;
    p = p * t + 1.78482653991729133580e+0, d = d * t + 1.36929880922735805310e-1;
    p = p * t + 5.46378491116411436990e+0, d = d * t + 5.99832206555887937690e-1;
    p = p * t + 6.65790464350110377720e+0, d = d * t + 1.0;
    double far = p / d;
    return q <= 0.425 ? centre : root <= 5.0 ? tail : far;
}

/* The highest bit is the sign; the others say how much lies above: (bits + 1/2) / 2^32, so that
 * both halves are alike and 0 does not occur. Rounding to 1/2 gives 0. */
static inline float above_f32(uint32_t word)
{
    return ((float)(int32_t)(word & 0x7fffffff) + 0.5f) * 0x1p-32f;
}

static inline double above_f64(uint32_t low, uint32_t high)
{
    double upper = (double)(int32_t)(high & 0x7fffffff);
    double lower = (double)(int32_t)(low >> 1) * 0x1p-31 + 0x1p-33;
    return (upper + lower) * 0x1p-32;
}

static inline float signed_f32(float size, uint32_t word)
{
    return float_from_bits(bits_from_float(size) | (word & 0x80000000));
}

static inline double signed_f64(double size, uint32_t high)
{
    return double_from_bits(bits_from_double(size) | (uint64_t)(high & 0x80000000) << 32);
}

static void normal_f32(const uint32_t *words, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = signed_f32(normal_above_f32(above_f32(words[i])), words[i]);
}

static void normal_f64(const uint32_t *words, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = signed_f64(normal_above_f64(above_f64(words[2 * i], words[2 * i + 1])),
                            words[2 * i + 1]);
}

/* The probability above 2, and that between 0 and 2. */
#define ABOVE_TWO   0.022750131948179207
#define ZERO_TO_TWO 0.477249868051820793

static void truncated_f32(const uint32_t *words, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) {
        float above = (float)ABOVE_TWO + above_f32(words[i]) * (float)(2 * ZERO_TO_TWO);
        float size = normal_above_f32(above);
        out[i] = signed_f32(size < 2.0f ? size : 2.0f, words[i]);
    }
}

static void truncated_f64(const uint32_t *words, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t low = words[2 * i], high = words[2 * i + 1];
        double size = normal_above_f64(ABOVE_TWO + above_f64(low, high) * (2 * ZERO_TO_TWO));
        out[i] = signed_f64(size < 2.0 ? size : 2.0, high);
    }
}

const pl_random_loops PL_OF_ISA(pl_random_loops) = {
    .blocks = blocks,
    .f32 = {uniform_f32, normal_f32, truncated_f32},
    .f64 = {uniform_f64, normal_f64, truncated_f64},
};
