/* SPDX-License-Identifier: Apache-2.0 */
/* Examples are read as protobuf reads them, in whichever way they are written; against protobuf
 * itself they are held by tests/kernels/test_records.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/record/example.h"

#define TEXT(text) ((pl_string){text, sizeof(text) - 1})

/* ---- messages by hand ---- */

typedef struct message {
    uint8_t bytes[512];
    size_t n;
} message;

static void add(message *m, const void *bytes, size_t n)
{
    assert_true(m->n + n <= sizeof m->bytes);
    if (n > 0)
        memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

static void add_tag(message *m, unsigned number, unsigned type)
{
    m->n = (size_t)(pl_wire_put_varint(m->bytes + m->n, number << 3 | type) - m->bytes);
}

static message field(unsigned number, const void *bytes, size_t n)
{
    message m = {0};
    add_tag(&m, number, PL_WIRE_BYTES);
    m.n = (size_t)(pl_wire_put_varint(m.bytes + m.n, n) - m.bytes);
    add(&m, bytes, n);
    return m;
}

static message within(unsigned number, message inner)
{
    return field(number, inner.bytes, inner.n);
}

static message both(message a, message b)
{
    add(&a, b.bytes, b.n);
    return a;
}

static message text(unsigned number, const char *value)
{
    return field(number, value, strlen(value));
}

static message number(unsigned field_number, uint64_t value)
{
    message m = {0};
    add_tag(&m, field_number, PL_WIRE_VARINT);
    m.n = (size_t)(pl_wire_put_varint(m.bytes + m.n, value) - m.bytes);
    return m;
}

static message packed_ints(const uint64_t *values, size_t n)
{
    message m = {0};
    for (size_t i = 0; i < n; i++)
        m.n = (size_t)(pl_wire_put_varint(m.bytes + m.n, values[i]) - m.bytes);
    return within(1, m);
}

static message entry(const char *name, message feature)
{
    return within(1, both(text(1, name), within(2, feature)));
}

static message example(message entries)
{
    return within(1, entries);
}

/* ---- reading ---- */

static pl_example_entry found(const message *record, pl_string name)
{
    pl_example_entry entry;
    pl_error error = {0};
    if (pl_example_find(record->bytes, record->n, PL_EXAMPLE_FEATURES, &name, 1, &entry, &error))
        fail_msg("%s", error.message);
    return entry;
}

static pl_feature feature_of(const message *record, const char *name)
{
    pl_feature feature;
    pl_error error = {0};
    pl_example_entry entry = found(record, (pl_string){name, strlen(name)});
    assert_non_null(entry.name);
    if (pl_feature_of(&entry, &feature, &error) < 0)
        fail_msg("%s", error.message);
    return feature;
}

static void assert_ints(const message *record, const char *name, const int64_t *wanted, size_t n)
{
    int64_t values[16];
    pl_feature feature = feature_of(record, name);
    assert_int_equal(feature.kind, PL_FEATURE_INT64S);
    assert_int_equal(feature.n_values, n);
    assert_int_equal(feature.n_bytes, n * sizeof(int64_t));
    pl_feature_copy_int64s(&feature, values);
    assert_memory_equal(values, wanted, n * sizeof *wanted);
}

static void assert_floats(const message *record, const char *name, const float *wanted, size_t n)
{
    float values[16];
    pl_feature feature = feature_of(record, name);
    assert_int_equal(feature.kind, PL_FEATURE_FLOATS);
    assert_int_equal(feature.n_values, n);
    assert_int_equal(feature.n_bytes, n * sizeof(float));
    pl_feature_copy_floats(&feature, values);
    assert_memory_equal(values, wanted, n * sizeof *wanted);
}

static void assert_texts(const message *record, const char *name, const char *const *wanted,
                         size_t n)
{
    pl_feature feature = feature_of(record, name);
    pl_feature_cursor cursor = pl_feature_begin(&feature);
    pl_string value;
    size_t n_bytes = 0;
    assert_int_equal(feature.kind, PL_FEATURE_BYTES);
    assert_int_equal(feature.n_values, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(pl_feature_next_bytes(&cursor, &value));
        assert_int_equal(value.n, strlen(wanted[i]));
        assert_memory_equal(value.data, wanted[i], value.n);
        n_bytes += value.n;
    }
    assert_false(pl_feature_next_bytes(&cursor, &value));
    assert_int_equal(feature.n_bytes, n_bytes);
}

static message float_list(const float *values, size_t n, bool packed)
{
    message m = {0};
    if (packed)
        return field(1, values, n * sizeof *values);
    for (size_t i = 0; i < n; i++) {
        add_tag(&m, 1, PL_WIRE_FIXED32);
        add(&m, &values[i], sizeof values[i]);
    }
    return m;
}

static void values_of_each_kind_are_counted_and_copied(void **state)
{
    (void)state;
    const float floats[] = {1.5f, -0.0f, 3e38f};
    const uint64_t ints[] = {0, 127, 128, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN};
    const char *const texts[] = {"one", "", "three"};
    message bytes = both(text(1, "one"), both(text(1, ""), text(1, "three")));
    message record = example(
        both(both(entry("b", within(1, bytes)), entry("f", within(2, float_list(floats, 3, true)))),
             entry("i", within(3, packed_ints(ints, 6)))));
    assert_texts(&record, "b", texts, 3);
    assert_floats(&record, "f", floats, 3);
    assert_ints(&record, "i", (const int64_t *)ints, 6);
    assert_null(found(&record, TEXT("none")).name);
    assert_null(found(&record, TEXT("")).name);
}

static void numbers_may_be_packed_or_not_or_both(void **state)
{
    (void)state;
    const float floats[] = {1, 2, 3, 4};
    const uint64_t ints[] = {1, 2};
    const int64_t all[] = {-7, 1, 2, 9, 1, 2};
    message list = both(both(number(1, (uint64_t)-7), packed_ints(ints, 2)),
                        both(number(1, 9), packed_ints(ints, 2)));
    message record = example(both(
        entry("f", within(2, both(float_list(floats, 2, false), float_list(floats + 2, 2, true)))),
        entry("i", within(3, list))));
    assert_floats(&record, "f", floats, 4);
    assert_ints(&record, "i", all, 6);
}

static void of_entries_with_one_name_the_last_counts(void **state)
{
    (void)state;
    const uint64_t first[] = {1, 1}, last[] = {5};
    const int64_t wanted[] = {5};
    message a = entry("x", within(3, packed_ints(first, 2)));
    message b = entry("x", within(3, packed_ints(last, 1)));
    message record = example(both(a, b));
    assert_ints(&record, "x", wanted, 1);
    record = both(example(a), both(example((message){0}), example(b))); /* in parts */
    assert_ints(&record, "x", wanted, 1);
}

static void parts_of_a_feature_are_merged_and_another_kind_replaces_them(void **state)
{
    (void)state;
    const uint64_t ints[] = {1, 2}, more[] = {3};
    const int64_t both_lists[] = {1, 2, 3};
    const float one[] = {9};
    message i = within(3, packed_ints(ints, 2)), k = within(3, packed_ints(more, 1));
    message f = within(2, float_list(one, 1, true));
    message record = example(entry("x", both(i, k)));
    assert_ints(&record, "x", both_lists, 3);
    record = example(within(1, both(text(1, "x"), both(within(2, i), within(2, k)))));
    assert_ints(&record, "x", both_lists, 3);
    record = example(entry("x", both(i, both(f, k))));
    assert_ints(&record, "x", both_lists + 2, 1);
    record = example(within(1, both(text(1, "x"), both(within(2, both(i, f)), within(2, k)))));
    assert_ints(&record, "x", both_lists + 2, 1);
    record = example(entry("x", both(k, f)));
    assert_floats(&record, "x", one, 1);
}

static void keys_may_come_late_twice_or_not_at_all(void **state)
{
    (void)state;
    const uint64_t ints[] = {4};
    const int64_t wanted[] = {4};
    message value = within(2, within(3, packed_ints(ints, 1)));
    message record = example(within(1, both(value, both(text(1, "old"), text(1, "new")))));
    assert_ints(&record, "new", wanted, 1);
    assert_null(found(&record, TEXT("old")).name);
    record = example(within(1, value));
    assert_ints(&record, "", wanted, 1);
    record = example(within(1, text(1, "x")));
    assert_int_equal(feature_of(&record, "x").kind, PL_FEATURE_NONE);
    record = example(entry("x", within(3, (message){0})));
    assert_ints(&record, "x", wanted, 0);
}

static message group(unsigned number_of, message inner)
{
    message m = {0};
    add_tag(&m, number_of, PL_WIRE_GROUP);
    add(&m, inner.bytes, inner.n);
    add_tag(&m, number_of, PL_WIRE_GROUP_END);
    return m;
}

static void unknown_fields_are_skipped_wherever_they_are(void **state)
{
    (void)state;
    const uint64_t ints[] = {4};
    const int64_t wanted[] = {4};
    message fixed = {0};
    add_tag(&fixed, 9, PL_WIRE_FIXED64);
    add(&fixed, "12345678", 8);
    message junk = both(both(text(77, "more"), number(536870911, 5)),
                        both(fixed, group(8, both(number(3, 1), group(9, text(4, "deep"))))));
    message list = both(junk, packed_ints(ints, 1));
    message feature = both(junk, within(3, list));
    message one = within(1, both(both(text(1, "x"), junk), within(2, feature)));
    message record = both(junk, within(1, both(junk, one)));
    assert_ints(&record, "x", wanted, 1);
}

/* Looks into everything. The first failure, or 0. */
static int read_all(const uint8_t *bytes, size_t n, pl_error *reterr)
{
    int r = 0;
    for (pl_example_part part = PL_EXAMPLE_FEATURES; r == 0 && part <= PL_EXAMPLE_LISTS; part++) {
        pl_example example = pl_example_begin(bytes, n, part);
        pl_example_entry entry;
        pl_feature feature;
        while ((r = pl_example_next(&example, &entry, reterr)) > 0) {
            pl_feature_list list = {0};
            r = part == PL_EXAMPLE_FEATURES ? pl_feature_of(&entry, &feature, reterr)
                                            : pl_feature_list_of(&entry, &list, reterr);
            while (r == 0 && list.n_steps-- > 0)
                r = pl_feature_list_next(&list, &feature, reterr) < 0 ? PL_ECORRUPT : 0;
            if (r < 0)
                break;
        }
    }
    return r;
}

static void assert_refused(message record, const char *why)
{
    pl_error error = {0};
    uint8_t *exact = malloc(record.n ? record.n : 1); /* without a byte to spare */
    assert_non_null(exact);
    memcpy(exact, record.bytes, record.n);
    assert_int_equal(read_all(exact, record.n, &error), PL_ECORRUPT);
    free(exact);
    if (!strstr(error.message, why))
        fail_msg("'%s' is not in '%s'", why, error.message);
}

static message raw(const char *bytes, size_t n)
{
    message m = {0};
    add(&m, bytes, n);
    return m;
}

#define RAW(bytes) raw(bytes, sizeof(bytes) - 1)

static void known_fields_of_another_type_are_refused_with_their_byte(void **state)
{
    (void)state;
    message fixed = {0};
    add_tag(&fixed, 1, PL_WIRE_FIXED64);
    add(&fixed, "12345678", 8);
    assert_refused(number(1, 5), "the features has wire type 0, not 2, at byte 0");
    assert_refused(number(2, 5), "the feature lists has wire type 0, not 2, at byte 0");
    assert_refused(example(number(1, 5)), "an entry of the features has wire type 0");
    assert_refused(example(within(1, number(1, 5))), "a feature's name has wire type 0, not 2, at "
                                                     "byte 4");
    assert_refused(example(within(1, number(2, 5))), "an entry's value has wire type 0");
    assert_refused(example(entry("x", number(2, 5))), "a feature's list of values has wire type 0");
    assert_refused(example(entry("x", within(1, number(1, 5)))),
                   "a value of bytes has wire type 0");
    assert_refused(example(entry("x", within(2, number(1, 5)))), "a float has wire type 0, not 5");
    assert_refused(example(entry("x", within(3, fixed))), "an int64 has wire type 1, not 0");
    assert_refused(within(2, within(1, within(2, number(1, 5)))), "a step of a feature list has");
}

static void malformed_messages_are_refused_with_their_byte(void **state)
{
    (void)state;
    message deep = {0};
    for (int i = 0; i < 101; i++)
        add_tag(&deep, 9, PL_WIRE_GROUP);
    assert_refused(deep, "groups are nested too deep, at byte 100");
    deep.n = 100;
    assert_refused(deep, "a group does not end, at byte 0");
    assert_refused(RAW("\x0a\x05zz"), "a length is more than what is left, at byte 0");
    assert_refused(RAW("\x4a\x01"), "a length is more than what is left, at byte 0");
    assert_refused(RAW("\x0a"), "a length does not end");
    assert_refused(RAW("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "a length is more than");
    assert_refused(RAW("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                   "a length does not end");
    assert_refused(RAW("\x00\x05"), "a field has a number that there is not, at byte 0");
    assert_refused(RAW("\x80\x80\x80\x80\x10\x05"), "a field has a number that there is not");
    assert_refused(RAW("\xff"), "a field's number does not end");
    assert_refused(RAW("\x4e"), "a field has a type that there is not");
    assert_refused(RAW("\x4c"), "a field has a type that there is not"); /* a group's end */
    assert_refused(RAW("\x48\xff"), "a number does not end");
    assert_refused(RAW("\x4d\1\2\3"), "a number is cut off");
    assert_refused(RAW("\x49\1\2\3\4\5\6\7"), "a number is cut off");
    assert_refused(RAW("\x4b\x54"), "another group ends, at byte 1");
    assert_refused(example(entry("x", within(2, field(1, "12345", 5)))),
                   "packed floats are not a multiple of 4 bytes, at byte 11");
    assert_refused(example(entry("x", within(3, field(1, "\x05\xff", 2)))),
                   "an int64 does not end, at byte 14");
    assert_refused(
        example(entry("x", within(3, field(1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11)))),
        "an int64 does not end, at byte 13");
}

/* ---- writing ---- */

static const float floats[] = {0.5f, -2};
static const int64_t ints[] = {-1, 300, 5};
static const pl_string strings[] = {{"ab", 2}, {"", 0}, {"\0x", 2}};

static const pl_feature_values features[] = {
    {.name = {"f", 1}, .kind = PL_FEATURE_FLOATS, .n_values = 2, .floats = floats},
    {.name = {"i", 1}, .kind = PL_FEATURE_INT64S, .n_values = 3, .int64s = ints},
    {.name = {"b", 1}, .kind = PL_FEATURE_BYTES, .n_values = 3, .bytes = strings},
    {.name = {"none", 4}},
    {.name = {"empty", 5}, .kind = PL_FEATURE_INT64S},
};
static const pl_feature_steps lists[] = {
    {.name = {"steps", 5}, .n_steps = 5, .steps = features},
    {.name = {"no steps", 8}},
};

static message written(const pl_example_values *values)
{
    message m;
    uint64_t n;
    assert_int_equal(pl_example_bytes(values, &n, NULL), 0);
    assert_true(n <= sizeof m.bytes);
    uint8_t *exact = malloc(n);
    assert_non_null(exact);
    assert_ptr_equal(pl_example_write(values, exact), exact + n);
    memcpy(m.bytes, exact, n);
    m.n = n;
    free(exact);
    return m;
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    const pl_example_values values = {.n_features = 5, .features = features};
    message record = written(&values);
    assert_floats(&record, "f", floats, 2);
    assert_ints(&record, "i", ints, 3);
    assert_int_equal(feature_of(&record, "none").kind, PL_FEATURE_NONE);
    assert_ints(&record, "empty", ints, 0);
    pl_feature feature = feature_of(&record, "b");
    pl_feature_cursor cursor = pl_feature_begin(&feature);
    pl_string value;
    for (int i = 0; i < 3; i++) {
        assert_true(pl_feature_next_bytes(&cursor, &value));
        assert_int_equal(value.n, strings[i].n);
        assert_memory_equal(value.data, strings[i].data, value.n);
    }
    message nothing = written(&(pl_example_values){0});
    assert_int_equal(read_all(nothing.bytes, nothing.n, NULL), 0);
}

static void a_sequence_has_lists_of_features(void **state)
{
    (void)state;
    const pl_example_values values = {
        .n_features = 2, .features = features, .is_sequence = true, .n_lists = 2, .lists = lists};
    message record = written(&values);
    assert_floats(&record, "f", floats, 2);
    pl_string names[] = {TEXT("no steps"), TEXT("steps"), TEXT("absent")};
    pl_example_entry entries[3];
    pl_feature_list list;
    pl_feature feature;
    assert_int_equal(
        pl_example_find(record.bytes, record.n, PL_EXAMPLE_LISTS, names, 3, entries, NULL), 0);
    assert_null(entries[2].name);
    assert_int_equal(pl_feature_list_of(&entries[0], &list, NULL), 0);
    assert_int_equal(list.n_steps, 0);
    assert_int_equal(pl_feature_list_next(&list, &feature, NULL), 0);
    assert_int_equal(pl_feature_list_of(&entries[1], &list, NULL), 0);
    assert_int_equal(list.n_steps, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(pl_feature_list_next(&list, &feature, NULL), 1);
        assert_int_equal(feature.kind, features[i].kind);
        assert_int_equal(feature.n_values, features[i].n_values);
    }
    assert_int_equal(pl_feature_list_next(&list, &feature, NULL), 0);
}

static void steps_in_parts_are_one_list(void **state)
{
    (void)state;
    const uint64_t one[] = {1};
    message step = within(1, within(3, packed_ints(one, 1)));
    message record = within(
        2, within(1, both(text(1, "x"), both(within(2, both(step, step)), within(2, step)))));
    pl_string name = TEXT("x");
    pl_example_entry entry;
    pl_feature_list list;
    assert_int_equal(
        pl_example_find(record.bytes, record.n, PL_EXAMPLE_LISTS, &name, 1, &entry, NULL), 0);
    assert_int_equal(pl_feature_list_of(&entry, &list, NULL), 0);
    assert_int_equal(list.n_steps, 3);
    for (int i = 0; i < 3; i++) {
        pl_feature feature;
        int64_t value = 0;
        assert_int_equal(pl_feature_list_next(&list, &feature, NULL), 1);
        pl_feature_copy_int64s(&feature, &value);
        assert_int_equal(value, 1);
    }
}

static void an_example_cut_off_or_flipped_anywhere_does_no_harm(void **state)
{
    (void)state;
    const pl_example_values values = {
        .n_features = 5, .features = features, .is_sequence = true, .n_lists = 2, .lists = lists};
    message record = written(&values);
    size_t context_end = 2 + record.bytes[1], n_good = 0;
    for (size_t n = 0; n < record.n; n++) {
        uint8_t *exact = malloc(n ? n : 1);
        assert_non_null(exact);
        memcpy(exact, record.bytes, n);
        int r = read_all(exact, n, NULL);
        assert_int_equal(r, n == 0 || n == context_end ? 0 : PL_ECORRUPT);
        free(exact);
    }
    for (size_t bit = 0; bit < 8 * record.n; bit++) {
        uint8_t *exact = malloc(record.n);
        pl_error error = {0};
        assert_non_null(exact);
        memcpy(exact, record.bytes, record.n);
        exact[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int r = read_all(exact, record.n, &error);
        assert_true(r == 0 || (r == PL_ECORRUPT && strstr(error.message, " at byte ")));
        n_good += r == 0;
        free(exact);
    }
    assert_true(n_good > 0 && n_good < 8 * record.n); /* values may be any */
}

static void an_example_that_protobuf_cannot_read_is_not_written(void **state)
{
    (void)state;
    pl_string huge = {NULL, INT32_MAX};
    pl_feature_values feature = {
        .name = TEXT("x"), .kind = PL_FEATURE_BYTES, .n_values = 1, .bytes = &huge};
    pl_example_values values = {.n_features = 1, .features = &feature};
    uint64_t n = 7;
    pl_error error = {0};
    assert_int_equal(pl_example_bytes(&values, &n, &error), -EOVERFLOW);
    huge.n = SIZE_MAX - 3;
    assert_int_equal(pl_example_bytes(&values, &n, &error), -EOVERFLOW);
    feature.kind = PL_FEATURE_FLOATS;
    feature.n_values = UINT64_MAX / 2;
    assert_int_equal(pl_example_bytes(&values, &n, &error), -EOVERFLOW);
    assert_int_equal(n, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_each_kind_are_counted_and_copied),
        cmocka_unit_test(numbers_may_be_packed_or_not_or_both),
        cmocka_unit_test(of_entries_with_one_name_the_last_counts),
        cmocka_unit_test(parts_of_a_feature_are_merged_and_another_kind_replaces_them),
        cmocka_unit_test(keys_may_come_late_twice_or_not_at_all),
        cmocka_unit_test(unknown_fields_are_skipped_wherever_they_are),
        cmocka_unit_test(known_fields_of_another_type_are_refused_with_their_byte),
        cmocka_unit_test(malformed_messages_are_refused_with_their_byte),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_sequence_has_lists_of_features),
        cmocka_unit_test(steps_in_parts_are_one_list),
        cmocka_unit_test(an_example_cut_off_or_flipped_anywhere_does_no_harm),
        cmocka_unit_test(an_example_that_protobuf_cannot_read_is_not_written),
    };
    return cmocka_run_group_tests_name("example", tests, NULL, NULL);
}
