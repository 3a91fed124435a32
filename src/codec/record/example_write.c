/* SPDX-License-Identifier: Apache-2.0 */
/* Writes Examples: see example.h. Every message is preceded by its length, so each kind of message
 * has one function for its size and one that writes it. Nested lengths are computed again at each
 * level, four deep: this costs little beside the values. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "codec/record/example.h"

#define MESSAGE_BYTES_MAX INT32_MAX

/* Writes the tag of any number up to 15, with the length type, and the length. */
static uint8_t *put_begin(uint8_t *to, unsigned number, uint64_t n_bytes)
{
    *to++ = (uint8_t)(number << 3 | PL_WIRE_BYTES);
    return pl_wire_put_varint(to, n_bytes);
}

static uint8_t *put_bytes(uint8_t *to, unsigned number, pl_string bytes)
{
    to = put_begin(to, number, bytes.n);
    if (bytes.n > 0)
        memcpy(to, bytes.data, bytes.n);
    return to + bytes.n;
}

/* Returns the size of a message with `n_bytes` inside, including its tag and length. */
static uint64_t whole_bytes(uint64_t n_bytes)
{
    return pl_add_sat_u64(n_bytes, 1 + pl_wire_varint_bytes(n_bytes));
}

/* ---- a feature ---- */

/* Returns the size of the values alone. */
static uint64_t packed_bytes(const pl_feature_values *values)
{
    uint64_t sum = 0;
    if (values->kind == PL_FEATURE_FLOATS)
        return __builtin_mul_overflow(values->n_values, sizeof(float), &sum) ? UINT64_MAX : sum;
    for (uint64_t i = 0; values->kind == PL_FEATURE_INT64S && i < values->n_values; i++)
        sum += pl_wire_varint_bytes((uint64_t)values->int64s[i]);
    return sum;
}

/* Returns the size of a BytesList, FloatList or Int64List. */
static uint64_t list_bytes(const pl_feature_values *values)
{
    uint64_t sum = 0;
    if (values->n_values == 0)
        return 0;
    if (values->kind != PL_FEATURE_BYTES)
        return whole_bytes(packed_bytes(values));
    for (uint64_t i = 0; i < values->n_values; i++)
        sum = pl_add_sat_u64(sum, whole_bytes(values->bytes[i].n));
    return sum;
}

static uint64_t feature_bytes(const pl_feature_values *values)
{
    return values->kind == PL_FEATURE_NONE ? 0 : whole_bytes(list_bytes(values));
}

static uint8_t *put_list(uint8_t *to, const pl_feature_values *values)
{
    if (values->n_values == 0)
        return to;
    if (values->kind == PL_FEATURE_BYTES) {
        for (uint64_t i = 0; i < values->n_values; i++)
            to = put_bytes(to, 1, values->bytes[i]);
        return to;
    }
    uint64_t n_bytes = packed_bytes(values);
    to = put_begin(to, 1, n_bytes);
    if (values->kind == PL_FEATURE_FLOATS) {
        memcpy(to, values->floats, n_bytes);
        return to + n_bytes;
    }
    for (uint64_t i = 0; i < values->n_values; i++)
        to = pl_wire_put_varint(to, (uint64_t)values->int64s[i]);
    return to;
}

static uint8_t *put_feature(uint8_t *to, const pl_feature_values *values)
{
    if (values->kind == PL_FEATURE_NONE)
        return to;
    return put_list(put_begin(to, values->kind, list_bytes(values)), values);
}

/* ---- entries of maps: a key, which is 1, and a value, which is 2 ---- */

static uint64_t entry_bytes(pl_string name, uint64_t value_bytes)
{
    return pl_add_sat_u64(whole_bytes(name.n), whole_bytes(value_bytes));
}

static uint8_t *put_entry(uint8_t *to, pl_string name, uint64_t value_bytes)
{
    to = put_begin(to, 1, entry_bytes(name, value_bytes));
    return put_begin(put_bytes(to, 1, name), 2, value_bytes);
}

static uint64_t features_bytes(const pl_example_values *values)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < values->n_features; i++) {
        const pl_feature_values *feature = &values->features[i];
        sum = pl_add_sat_u64(sum, whole_bytes(entry_bytes(feature->name, feature_bytes(feature))));
    }
    return sum;
}

static uint64_t steps_bytes(const pl_feature_steps *list)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < list->n_steps; i++)
        sum = pl_add_sat_u64(sum, whole_bytes(feature_bytes(&list->steps[i])));
    return sum;
}

static uint64_t lists_bytes(const pl_example_values *values)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < values->n_lists; i++) {
        const pl_feature_steps *list = &values->lists[i];
        sum = pl_add_sat_u64(sum, whole_bytes(entry_bytes(list->name, steps_bytes(list))));
    }
    return sum;
}

/* ---- the record ---- */

int pl_example_bytes(const pl_example_values *values, uint64_t *ret_bytes, pl_error *reterr)
{
    uint64_t sum = whole_bytes(features_bytes(values));
    if (values->is_sequence)
        sum = pl_add_sat_u64(sum, whole_bytes(lists_bytes(values)));
    if (sum > MESSAGE_BYTES_MAX)
        return pl_error_set(reterr, -EOVERFLOW,
                            "an Example of %" PRIu64 " bytes cannot be written: protobuf reads %d "
                            "at most; split it",
                            sum, MESSAGE_BYTES_MAX);
    *ret_bytes = sum;
    return 0;
}

uint8_t *pl_example_write(const pl_example_values *values, uint8_t *to)
{
    to = put_begin(to, PL_EXAMPLE_FEATURES, features_bytes(values));
    for (uint64_t i = 0; i < values->n_features; i++) {
        const pl_feature_values *feature = &values->features[i];
        to = put_feature(put_entry(to, feature->name, feature_bytes(feature)), feature);
    }
    if (!values->is_sequence)
        return to;
    to = put_begin(to, PL_EXAMPLE_LISTS, lists_bytes(values));
    for (uint64_t i = 0; i < values->n_lists; i++) {
        const pl_feature_steps *list = &values->lists[i];
        to = put_entry(to, list->name, steps_bytes(list));
        for (uint64_t k = 0; k < list->n_steps; k++) {
            to = put_begin(to, 1, feature_bytes(&list->steps[k]));
            to = put_feature(to, &list->steps[k]);
        }
    }
    return to;
}
