/* SPDX-License-Identifier: Apache-2.0 */
/* What every file may use: attributes, ownership helpers, checked arithmetic.
 * Nothing here allocates, locks or calls the system. */
#ifndef PL_BASE_BASE_H
#define PL_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/error.h"

#define PL_LIKELY(x)   __builtin_expect(!!(x), 1)
#define PL_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define PL_NOINLINE    __attribute__((noinline))
#define PL_COLD        __attribute__((cold, noinline))

/* Runs `function(&variable)` when the variable leaves scope. */
#define PL_CLEANUP(function) __attribute__((cleanup(function)))

/* Moves a pointer out of a variable: its value, with NULL left behind. */
#define PL_TAKE(pointer)                                                                           \
    ({                                                                                             \
        __typeof__(pointer) *taken_from_ = &(pointer);                                             \
        __typeof__(pointer) taken_ = *taken_from_;                                                 \
        *taken_from_ = NULL;                                                                       \
        taken_;                                                                                    \
    })

#define PL_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define PL_KIB (UINT64_C(1) << 10)
#define PL_MIB (UINT64_C(1) << 20)
#define PL_GIB (UINT64_C(1) << 30)

#define PL_NS_PER_MS  UINT64_C(1000000)
#define PL_NS_PER_SEC UINT64_C(1000000000)

static inline uint64_t pl_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t pl_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t pl_clamp_u64(uint64_t x, uint64_t low, uint64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* a + b and a - b that stop at the ends of the range instead of wrapping. */
static inline uint64_t pl_add_sat_u64(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t pl_sub_sat_u64(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

#endif
