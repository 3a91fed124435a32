/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of elements that change places: part of region_copy.c. All process 16 bytes at a time,
 * which every x86-64 supports, with `item_bytes` a constant of 1, 2, 4 or 8: they are inlined.
 *   interleave    a0 a1 .., b0 b1 .. -> a0 b0 a1 b1 ..
 *   deinterleave  the inverse */
#ifndef PL_TENSOR_REGION_VECTORS_H
#define PL_TENSOR_REGION_VECTORS_H

#include <stdint.h>
#include <string.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { VECTOR_BYTES = 16 };

typedef uint8_t vector __attribute__((vector_size(VECTOR_BYTES)));
typedef uint16_t vector_2 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t vector_4 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t vector_8 __attribute__((vector_size(VECTOR_BYTES)));

/* Interleave the first, or the last, elements of a and b: a0 b0 a1 b1 ... */
ALWAYS_INLINE vector first_halves(vector a, vector b, size_t item_bytes)
{
    if (item_bytes == 1)
        return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                                       23);
    if (item_bytes == 2)
        return (vector)__builtin_shufflevector((vector_2)a, (vector_2)b, 0, 8, 1, 9, 2, 10, 3, 11);
    if (item_bytes == 4)
        return (vector)__builtin_shufflevector((vector_4)a, (vector_4)b, 0, 4, 1, 5);
    return (vector)__builtin_shufflevector((vector_8)a, (vector_8)b, 0, 2);
}

ALWAYS_INLINE vector last_halves(vector a, vector b, size_t item_bytes)
{
    if (item_bytes == 1)
        return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
                                       15, 31);
    if (item_bytes == 2)
        return (vector)__builtin_shufflevector((vector_2)a, (vector_2)b, 4, 12, 5, 13, 6, 14, 7,
                                               15);
    if (item_bytes == 4)
        return (vector)__builtin_shufflevector((vector_4)a, (vector_4)b, 2, 6, 3, 7);
    return (vector)__builtin_shufflevector((vector_8)a, (vector_8)b, 1, 3);
}

/* n rows of n elements, a vector each: interleaving rows i and i + n/2 log2(n) times transposes
 * them. */
ALWAYS_INLINE void transpose_vectors(char *dst, int64_t dst_stride, const char *src,
                                     int64_t src_stride, size_t item_bytes)
{
    const size_t n = VECTOR_BYTES / item_bytes;
    vector rows[VECTOR_BYTES], next[VECTOR_BYTES];
    for (size_t i = 0; i < n; i++)
        memcpy(&rows[i], src + (int64_t)i * src_stride, VECTOR_BYTES);
    for (size_t done = 1; done < n; done *= 2) {
        for (size_t i = 0; i < n / 2; i++) {
            next[2 * i] = first_halves(rows[i], rows[i + n / 2], item_bytes);
            next[2 * i + 1] = last_halves(rows[i], rows[i + n / 2], item_bytes);
        }
        for (size_t i = 0; i < n; i++)
            rows[i] = next[i];
    }
    for (size_t i = 0; i < n; i++)
        memcpy(dst + (int64_t)i * dst_stride, &rows[i], VECTOR_BYTES);
}

ALWAYS_INLINE vector load_vector(const char *src)
{
    vector x;
    memcpy(&x, src, sizeof x);
    return x;
}

/* Words, then their halves, and so on: SSE2 has instructions for each of these, but none that moves
 * bytes freely. */
ALWAYS_INLINE vector reversed(vector x, size_t item_bytes)
{
    if (item_bytes == 8)
        return (vector)__builtin_shufflevector((vector_8)x, (vector_8)x, 1, 0);
    x = (vector)__builtin_shufflevector((vector_4)x, (vector_4)x, 3, 2, 1, 0);
    if (item_bytes <= 2)
        x = (vector)((vector_4)x << 16 | (vector_4)x >> 16);
    if (item_bytes == 1)
        x = (vector)((vector_2)x << 8 | (vector_2)x >> 8);
    return x;
}

/* Takes elements 0, 2, 4, ... of a and b. */
ALWAYS_INLINE vector evens(vector a, vector b, size_t item_bytes)
{
    if (item_bytes == 1)
        return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28,
                                       30);
    if (item_bytes == 2)
        return (vector)__builtin_shufflevector((vector_2)a, (vector_2)b, 0, 2, 4, 6, 8, 10, 12, 14);
    if (item_bytes == 4)
        return (vector)__builtin_shufflevector((vector_4)a, (vector_4)b, 0, 2, 4, 6);
    return (vector)__builtin_shufflevector((vector_8)a, (vector_8)b, 0, 2);
}

ALWAYS_INLINE vector high_half(vector x)
{
    return (vector)__builtin_shufflevector((vector_8)x, (vector_8)x, 1, 1);
}

/* Three channels, of which the vectors hold one after the other. Each round interleaves the first
 * half of all elements with the second, which takes element j to place 2 j modulo (3 n - 1), if a
 * vector has n; log2(n) of them take it to n j, and n x 3 is 1 there: element 3 k comes to k. */
ALWAYS_INLINE void deinterleave_3(vector x[3], size_t item_bytes)
{
    for (size_t done = 1; done < VECTOR_BYTES / item_bytes; done *= 2) {
        vector a = first_halves(x[0], high_half(x[1]), item_bytes);
        vector b = first_halves(high_half(x[0]), x[2], item_bytes);
        vector c = first_halves(x[1], high_half(x[2]), item_bytes);
        x[0] = a, x[1] = b, x[2] = c;
    }
}

#endif
