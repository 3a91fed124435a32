/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting: converts numbers to keys and back, and handles values, places and zeros. The sorting
 * itself is in sort_records.inc. */
#include <assert.h>
#include <string.h>

#include "kernels/row/sort.h"
#include "tensor/dtype.h"

#define JOIN_(name, suffix) name##_##suffix
#define JOIN(name, suffix)  JOIN_(name, suffix)

#define N_INSERTED   16
#define COUNTS_BYTES (6 * 2048 * sizeof(uint64_t)) /* the most passes, times digits */

/* A key with its place. Below 2^32 places and keys of 32 bits, both are one word instead. */
typedef struct entry {
    uint64_t key;
    uint64_t index;
} entry;

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The point where merging and counting take equally long was measured for each type. */
#define RECORD     uint8_t
#define SUFFIX     u8
#define KEY(r)     (r)
#define DIGIT_BITS 8
#define MERGED_MAX 64
#include "kernels/row/sort_records.inc"
#define RECORD     uint16_t
#define SUFFIX     u16
#define KEY(r)     (r)
#define DIGIT_BITS 8
#define MERGED_MAX 128
#include "kernels/row/sort_records.inc"
#define RECORD     uint32_t
#define SUFFIX     u32
#define KEY(r)     (r)
#define DIGIT_BITS 11
#define MERGED_MAX 768
#include "kernels/row/sort_records.inc"
#define RECORD     uint64_t
#define SUFFIX     u64
#define KEY(r)     (r)
#define DIGIT_BITS 11
#define MERGED_MAX 2048
#include "kernels/row/sort_records.inc"
#define RECORD     entry
#define SUFFIX     entry
#define KEY(r)     ((r).key)
#define DIGIT_BITS 11
#define MERGED_MAX 2048
#include "kernels/row/sort_records.inc"

/* Keys */

#define SIGN_32 (UINT32_C(1) << 31)
#define SIGN_64 (UINT64_C(1) << 63)

/* Negative numbers sort in the reverse order of their bits; all NaNs come last. */
static inline uint32_t key_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? UINT32_MAX : bits ^ (bits & SIGN_32 ? UINT32_MAX : SIGN_32);
}

static inline float float_of_key(uint32_t key)
{
    uint32_t bits = key ^ (key & SIGN_32 ? SIGN_32 : UINT32_MAX);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t key_of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? UINT64_MAX : bits ^ (bits & SIGN_64 ? UINT64_MAX : SIGN_64);
}

static inline double double_of_key(uint64_t key)
{
    uint64_t bits = key ^ (key & SIGN_64 ? SIGN_64 : UINT64_MAX);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define SAME(x)         (x)
#define KEY_OF_I8(x)    ((uint8_t)((uint8_t)(x) ^ 0x80))
#define I8_OF_KEY(key)  ((int8_t)((key) ^ 0x80))
#define KEY_OF_I16(x)   ((uint16_t)((uint16_t)(x) ^ 0x8000))
#define I16_OF_KEY(key) ((int16_t)((key) ^ 0x8000))
#define KEY_OF_I32(x)   ((uint32_t)(x) ^ SIGN_32)
#define I32_OF_KEY(key) ((int32_t)((key) ^ SIGN_32))
#define KEY_OF_I64(x)   ((uint64_t)(x) ^ SIGN_64)
#define I64_OF_KEY(key) ((int64_t)((key) ^ SIGN_64))

/* dtype, type of an element, type of its key, name of that, element to key, key to element */
#define FOR_ALL(X)                                                                                 \
    X(PL_BOOL, uint8_t, uint8_t, u8, SAME, SAME)                                                   \
    X(PL_U8, uint8_t, uint8_t, u8, SAME, SAME)                                                     \
    X(PL_I8, int8_t, uint8_t, u8, KEY_OF_I8, I8_OF_KEY)                                            \
    X(PL_U16, uint16_t, uint16_t, u16, SAME, SAME)                                                 \
    X(PL_I16, int16_t, uint16_t, u16, KEY_OF_I16, I16_OF_KEY)                                      \
    X(PL_U32, uint32_t, uint32_t, u32, SAME, SAME)                                                 \
    X(PL_I32, int32_t, uint32_t, u32, KEY_OF_I32, I32_OF_KEY)                                      \
    X(PL_U64, uint64_t, uint64_t, u64, SAME, SAME)                                                 \
    X(PL_I64, int64_t, uint64_t, u64, KEY_OF_I64, I64_OF_KEY)                                      \
    X(PL_F32, float, uint32_t, u32, key_of_float, float_of_key)                                    \
    X(PL_F64, double, uint64_t, u64, key_of_double, double_of_key)

/* dtype, type of an element, type of its bits, its sign bit */
#define FOR_FLOATS(X)                                                                              \
    X(PL_F32, float, uint32_t, SIGN_32)                                                            \
    X(PL_F64, double, uint64_t, SIGN_64)

static int64_t item_bytes_of(pl_dtype dtype)
{
    return pl_dtype_info_of(dtype)->item_bytes;
}

/* Does a key leave room for its place in one word? */
static bool is_packed(pl_dtype dtype, int64_t n)
{
    return item_bytes_of(dtype) <= 4 && n <= UINT32_MAX;
}

/* The counts come before the arrays in the scratch. */
static void *behind_counts(void *scratch)
{
    return (char *)scratch + COUNTS_BYTES;
}

/* Values */

/* A bit for each zero of a row. */
static uint64_t signs_bytes(pl_dtype dtype, int64_t n)
{
    return pl_dtype_info_of(dtype)->kind == PL_KIND_FLOAT ? ((uint64_t)n + 63) / 64 * 8 : 0;
}

static uint64_t keys_bytes(pl_dtype dtype, int64_t n)
{
    return ((uint64_t)(n * item_bytes_of(dtype)) + 7) / 8 * 8;
}

uint64_t pl_sort_scratch_bytes(pl_dtype dtype, int64_t n)
{
    return COUNTS_BYTES + keys_bytes(dtype, n) + signs_bytes(dtype, n);
}

/* -0 and 0 are equal, but have different keys. Rows with both are rare: for them, the signs of
 * zeros are kept in order, and put back after sorting, when the zeros are adjacent. */

/* Returns how many zeros there are, with the sign of the first in the first bit of `signs`; also 0
 * if all have the same sign. */
static int64_t keep_signs(pl_dtype dtype, const void *in, int64_t n, uint64_t *signs)
{
    int64_t n_zeros = 0;
    switch (dtype) {
#define CASE(constant, T, K, SIGN)                                                                 \
    case constant: {                                                                               \
        const K *bits = in;                                                                        \
        K below = 0, above = 0;                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                          \
            below |= bits[i] == (SIGN);                                                            \
            above |= bits[i] == 0;                                                                 \
        }                                                                                          \
        for (int64_t i = 0; below && above && i < n; i++) {                                        \
            if ((bits[i] & ~(SIGN)) != 0)                                                          \
                continue;                                                                          \
            uint64_t mask = UINT64_C(1) << n_zeros % 64, *word = &signs[n_zeros / 64];             \
            *word = (n_zeros % 64 ? *word : 0) | (bits[i] ? mask : 0);                             \
            n_zeros++;                                                                             \
        }                                                                                          \
        break;                                                                                     \
    }
        FOR_FLOATS(CASE)
#undef CASE
    default:
        break;
    }
    return n_zeros;
}

/* `sorted` begins with the first zero. */
static void give_signs(pl_dtype dtype, const uint64_t *signs, int64_t n_zeros, void *sorted)
{
    switch (dtype) {
#define CASE(constant, T, K, SIGN)                                                                 \
    case constant:                                                                                 \
        for (int64_t i = 0; i < n_zeros; i++)                                                      \
            ((T *)sorted)[i] = signs[i / 64] >> i % 64 & 1 ? -(T)0 : (T)0;                         \
        break;
        FOR_FLOATS(CASE)
#undef CASE
    default:
        break;
    }
}

#define DEFINE_SORT(constant, T, K, suffix, TO_KEY, FROM_KEY)                                      \
    static bool sort_values_##constant(const pl_sort *sort, const T *in, int64_t n, T *out,        \
                                       void *scratch)                                              \
    {                                                                                              \
        K *keys = (K *)out, flip = sort->descending ? (K) ~(K)0 : 0;                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            K key = (K)(TO_KEY(in[i]) ^ flip);                                                     \
            memcpy(&keys[i], &key, sizeof key);                                                    \
        }                                                                                          \
        K *sorted =                                                                                \
            sort_##suffix(sort, keys, behind_counts(scratch), n, 0, 8 * sizeof(K), scratch);       \
        for (int64_t i = 0; sorted && i < n; i++) {                                                \
            K key = (K)(sorted[i] ^ flip);                                                         \
            out[i] = FROM_KEY(key);                                                                \
        }                                                                                          \
        return sorted != NULL;                                                                     \
    }
FOR_ALL(DEFINE_SORT)
#undef DEFINE_SORT

/* Returns false if it was stopped. */
static bool sort_values(const pl_sort *sort, const void *in, int64_t n, void *out, void *scratch)
{
    switch (sort->dtype) {
#define CASE(constant, T, K, suffix, TO_KEY, FROM_KEY)                                             \
    case constant:                                                                                 \
        return sort_values_##constant(sort, in, n, out, scratch);
        FOR_ALL(CASE)
#undef CASE
    default:
        assert(!"a dtype that is not sorted");
        return false;
    }
}

void pl_sort_row(pl_sort sort, const void *in, int64_t n, void *out, void *scratch)
{
    void *signs = (char *)behind_counts(scratch) + keys_bytes(sort.dtype, n);
    int64_t n_zeros = keep_signs(sort.dtype, in, n, signs);
    if (!sort_values(&sort, in, n, out, scratch) || n_zeros == 0)
        return;
    const double zero = 0; /* all of its bits are 0, for a float as well */
    int64_t first = pl_sort_count(sort, out, n, &zero, false);
    give_signs(sort.dtype, signs, n_zeros, (char *)out + first * item_bytes_of(sort.dtype));
}

/* Packs places; + 0 turns -0 into 0 so that they are equal, and changes nothing else. */

static void pack(pl_sort sort, const void *in, int64_t n, uint64_t *words)
{
    switch (sort.dtype) {
#define CASE(constant, T, K, suffix, TO_KEY, FROM_KEY)                                             \
    case constant:                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                          \
            K flip = sort.descending ? (K) ~(K)0 : 0;                                              \
            K key = (K)(TO_KEY((T)(((const T *)in)[i] + (T)0)) ^ flip);                            \
            words[i] = (uint64_t)key << 32 | (uint64_t)i;                                          \
        }                                                                                          \
        break;
        FOR_ALL(CASE)
#undef CASE
    default:
        assert(!"a dtype that is not sorted");
    }
}

int64_t pl_sort_count(pl_sort sort, const void *sorted, int64_t n, const void *bound,
                      bool with_equals)
{
    int64_t low = 0, high = n;
    switch (sort.dtype) {
#define CASE(constant, T, K, suffix, TO_KEY, FROM_KEY)                                             \
    case constant: {                                                                               \
        const T *row = sorted, x = *(const T *)bound;                                              \
        const K flip = sort.descending ? (K) ~(K)0 : 0;                                            \
        const K key = (K)(TO_KEY((T)(x + (T)0)) ^ flip);                                           \
        while (low < high) {                                                                       \
            int64_t middle = low + (high - low) / 2;                                               \
            K other = (K)(TO_KEY((T)(row[middle] + (T)0)) ^ flip);                                 \
            if (other < key || (with_equals && other == key))                                      \
                low = middle + 1;                                                                  \
            else                                                                                   \
                high = middle;                                                                     \
        }                                                                                          \
        break;                                                                                     \
    }
        FOR_ALL(CASE)
#undef CASE
    default:
        assert(!"a dtype that is not sorted");
    }
    return low;
}

/* Adds records of [from, n) whose key is at most `most` to the *count there are, while there is
 * room. Returns where it stopped. */
static int64_t collect(pl_sort sort, const void *in, int64_t from, int64_t n, uint64_t most,
                       entry *records, int64_t room, int64_t *count)
{
    int64_t i = from, have = *count;
    switch (sort.dtype) {
#define CASE(constant, T, K, suffix, TO_KEY, FROM_KEY)                                             \
    case constant:                                                                                 \
        for (; i < n && have < room; i++) {                                                        \
            K flip = sort.descending ? (K) ~(K)0 : 0;                                              \
            K key = (K)(TO_KEY((T)(((const T *)in)[i] + (T)0)) ^ flip);                            \
            records[have] = (entry){key, (uint64_t)i};                                             \
            have += key <= most;                                                                   \
        }                                                                                          \
        break;
        FOR_ALL(CASE)
#undef CASE
    default:
        assert(!"a dtype that is not sorted");
    }
    *count = have;
    return i;
}

uint64_t pl_argsort_scratch_bytes(pl_dtype dtype, int64_t n)
{
    uint64_t bytes = is_packed(dtype, n) ? sizeof(uint64_t) : 2 * sizeof(entry);
    return COUNTS_BYTES + (uint64_t)n * bytes;
}

void pl_argsort_row(pl_sort sort, const void *in, int64_t n, int64_t *out, void *scratch)
{
    if (is_packed(sort.dtype, n)) {
        uint64_t *words = (uint64_t *)out;
        pack(sort, in, n, words);
        uint64_t *sorted = sort_u64(&sort, words, behind_counts(scratch), n, 32,
                                    8 * (int)item_bytes_of(sort.dtype), scratch);
        for (int64_t i = 0; sorted && i < n; i++)
            out[i] = (int64_t)(sorted[i] & UINT32_MAX);
        return;
    }
    entry *records = behind_counts(scratch);
    int64_t n_records = 0;
    (void)collect(sort, in, 0, n, UINT64_MAX, records, n, &n_records);
    entry *sorted =
        sort_entry(&sort, records, records + n, n, 0, 8 * (int)item_bytes_of(sort.dtype), scratch);
    for (int64_t i = 0; sorted && i < n; i++)
        out[i] = (int64_t)sorted[i].index;
}

/* Room for the best so far and as many again; when it is full, those not better than the k-th are
 * dropped. */
static int64_t top_k_room(int64_t n, int64_t k)
{
    return smaller(n, k + (k > 1024 ? k : 1024));
}

uint64_t pl_top_k_scratch_bytes(pl_dtype dtype, int64_t n, int64_t k)
{
    (void)dtype;
    return COUNTS_BYTES + 2 * sizeof(entry) * (uint64_t)top_k_room(n, k);
}

static void copy_items(int64_t item_bytes, const void *in, const entry *records, int64_t n,
                       void *out)
{
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)out + i * item_bytes,
               (const char *)in + (int64_t)records[i].index * item_bytes, (size_t)item_bytes);
}

void pl_top_k_row(pl_sort sort, const void *in, int64_t n, int64_t k, int64_t first_index,
                  void *ret_values, int64_t *ret_indices, void *scratch)
{
    int64_t room = top_k_room(n, k), count = 0, at = 0;
    int n_bits = 8 * (int)item_bytes_of(sort.dtype);
    entry *best = behind_counts(scratch), *other = best + room;
    uint64_t most = UINT64_MAX;
    assert(k <= n);
    while (at < n && k > 0) {
        at = collect(sort, in, at, n, most, best, room, &count);
        entry *sorted = sort_entry(&sort, best, other, count, 0, n_bits, scratch);
        if (!sorted)
            return;
        other = sorted == best ? other : best;
        best = sorted;
        count = smaller(count, k);
        if (count == k && best[k - 1].key == 0)
            break; /* nothing that comes later is better */
        if (count == k)
            most = best[k - 1].key - 1;
    }
    copy_items(item_bytes_of(sort.dtype), in, best, k, ret_values);
    for (int64_t i = 0; i < k; i++)
        ret_indices[i] = first_index + (int64_t)best[i].index;
}
