/* SPDX-License-Identifier: Apache-2.0 */
/* The basics that every file may use: attributes, ownership helpers, checked arithmetic. Nothing
 * here allocates, locks or calls the system. */
#ifndef PL_BASE_BASE_H
#define PL_BASE_BASE_H

#include <errno.h>
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

/* Moves a pointer out of a variable: gives its value and leaves NULL behind. */
#define PL_TAKE(pointer)                                                                           \
    ({                                                                                             \
        __typeof__(pointer) *taken_from_ = &(pointer);                                             \
        __typeof__(pointer) taken_ = *taken_from_;                                                 \
        *taken_from_ = NULL;                                                                       \
        taken_;                                                                                    \
    })

/* Goes at the start of a public function. A NULL argument that the function cannot do without is a
 * mistake of the caller, such as a pointer not checked after a failure: the call is refused with
 * the argument's name, and the pointer is never followed. `reterr` may be NULL; the conditions are
 * evaluated once. */
#define PL_NOT_NULL(pointer, reterr) PL_NOT_NULL_IF(true, pointer, reterr)
#define PL_NOT_NULL_IF(needed, pointer, reterr)                                                    \
    do {                                                                                           \
        if (PL_UNLIKELY((needed) && (pointer) == NULL))                                            \
            return pl_error_set((reterr), -EINVAL, "%s: '%s' is NULL", __func__, #pointer);        \
    } while (0)

/* Does the same for an array of `n` pointers, and for each of them. */
#define PL_NOT_NULLS(array, n, reterr)                                                             \
    do {                                                                                           \
        PL_NOT_NULL_IF((n) > 0, array, reterr);                                                    \
        for (int64_t at_ = 0; at_ < (int64_t)(n); at_++)                                           \
            if (PL_UNLIKELY((array)[at_] == NULL))                                                 \
                return pl_error_set((reterr), -EINVAL, "%s: '%s[%lld]' is NULL", __func__, #array, \
                                    (long long)at_);                                               \
    } while (0)

/* Does the same in a function that promises to call release() even if it fails. */
#define PL_NOT_NULL_OR_RELEASE(owner, pointer, reterr)                                             \
    do {                                                                                           \
        if (PL_UNLIKELY((pointer) == NULL)) {                                                      \
            if ((owner)->release)                                                                  \
                (owner)->release((owner)->context);                                                \
            return pl_error_set((reterr), -EINVAL, "%s: '%s' is NULL", __func__, #pointer);        \
        }                                                                                          \
    } while (0)

/* Does the same in a function that has no error code to return. */
#define PL_NULL_GIVES(pointer, value)                                                              \
    do {                                                                                           \
        if (PL_UNLIKELY((pointer) == NULL))                                                        \
            return (value);                                                                        \
    } while (0)
#define PL_NULL_DOES_NOTHING(pointer)                                                              \
    do {                                                                                           \
        if (PL_UNLIKELY((pointer) == NULL))                                                        \
            return;                                                                                \
    } while (0)

/* Copies a caller's options, which begin with a `size_t size`, into a struct of the library's own
 * size and zeroes the fields that the caller's struct is too short for. A size of 0 stands for
 * `first_bytes`, the size in the first release. -EINVAL; -E2BIG when the caller's struct is longer
 * and not all zero beyond the library's. */
PL_MUST_CHECK int pl_options_take(void *own, size_t own_bytes, size_t first_bytes,
                                  const void *given, pl_error *reterr);

/* Does the same at the start of a public function: from there on `options`, unless NULL, points to
 * such a copy. `last` is the field that was last in the first release; it never changes. */
#define PL_TAKE_OPTIONS(type, options, last, reterr)                                               \
    type own_##options;                                                                            \
    if (options) {                                                                                 \
        int taken_ =                                                                               \
            pl_options_take(&own_##options, sizeof own_##options,                                  \
                            offsetof(type, last) + sizeof((type *)0)->last, options, reterr);      \
        if (taken_ < 0)                                                                            \
            return taken_;                                                                         \
        options = &own_##options;                                                                  \
    }

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

/* Adds and subtracts, stopping at the ends of the range instead of wrapping. */
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
