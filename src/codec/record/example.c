/* SPDX-License-Identifier: Apache-2.0 */
/* See example.h. In protobuf's words:
 *
 *   message Example         { Features features = 1; }
 *   message SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
 *   message Features        { map<string, Feature> feature = 1; }
 *   message FeatureLists    { map<string, FeatureList> feature_list = 1; }
 *   message FeatureList     { repeated Feature feature = 1; }
 *   message Feature         { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2;
 *                                          Int64List int64_list = 3; } }
 *   message ...List         { repeated ... value = 1; }
 *
 * and a map is a repeated message { string key = 1; value = 2; }. Any message may come in several
 * parts, which count as if they were concatenated: so every walk here goes over parts of parts. In
 * nearly all records there is one of each. */
#include "codec/record/example.h"

#include <string.h>

enum { FEATURE = 1, KEY = 1, VALUE = 2, STEP = 1, ELEMENT = 1 };

const char *pl_feature_kind_name(pl_feature_kind kind)
{
    static const char *const names[] = {[PL_FEATURE_NONE] = "nothing",
                                        [PL_FEATURE_BYTES] = "bytes",
                                        [PL_FEATURE_FLOATS] = "floats",
                                        [PL_FEATURE_INT64S] = "int64s"};
    return names[kind];
}

/* Finds the next part with this number: 1, 0, or the error. */
static int next_part(pl_wire *outer, uint32_t number, const char *what, pl_wire *ret_part,
                     pl_error *reterr)
{
    pl_wire_field field;
    int r;
    while ((r = pl_wire_next(outer, &field, reterr)) > 0) {
        if (field.number != number)
            continue;
        r = pl_wire_expect(&field, PL_WIRE_BYTES, what, outer, reterr);
        if (r > 0)
            *ret_part = field.message;
        return r;
    }
    return r;
}

/* Does the same one level deeper: finds the next `number` in the rest of `inner`, and then in the
 * following parts of `outer`. */
static int next_within(pl_wire *outer, uint32_t outer_number, const char *outer_what,
                       pl_wire *inner, uint32_t number, const char *what, pl_wire *ret_part,
                       pl_error *reterr)
{
    for (;;) {
        int r = next_part(inner, number, what, ret_part, reterr);
        if (r != 0)
            return r;
        r = next_part(outer, outer_number, outer_what, inner, reterr);
        if (r <= 0)
            return r;
    }
}

static pl_wire nothing_of(const pl_wire *wire)
{
    return (pl_wire){wire->at, wire->at, wire->record};
}

/* ---- entries ---- */

pl_example pl_example_begin(const void *bytes, size_t n, pl_example_part part)
{
    static const uint8_t none;
    const uint8_t *at = n > 0 ? bytes : &none;
    pl_wire record = {at, at + n, at};
    return (pl_example){record, nothing_of(&record), part};
}

/* The last key counts. */
static int read_entry(const pl_wire *message, pl_example_entry *ret_entry, pl_error *reterr)
{
    pl_wire rest = *message, key = nothing_of(message);
    int r;
    do
        r = next_part(&rest, KEY, "a feature's name", &key, reterr);
    while (r > 0);
    if (r < 0)
        return r;
    *ret_entry = (pl_example_entry){
        .name = (const char *)key.at,
        .name_bytes = (size_t)(key.end - key.at),
        .rest = *message,
    };
    return 1;
}

int pl_example_next(pl_example *example, pl_example_entry *ret_entry, pl_error *reterr)
{
    pl_wire entry;
    const char *what = example->which == PL_EXAMPLE_FEATURES ? "the features" : "the feature lists";
    int r = next_within(&example->record, example->which, what, &example->part, FEATURE,
                        "an entry of the features", &entry, reterr);
    return r > 0 ? read_entry(&entry, ret_entry, reterr) : r;
}

/* The records of a file mostly have their entries in the same order: the search continues from the
 * last one found. Returns `n_names` if there is none. */
static size_t find_name(const pl_example_entry *entry, const pl_string *names, size_t n_names,
                        size_t begin)
{
    for (size_t i = 0; i < n_names; i++) {
        size_t k = begin + i < n_names ? begin + i : begin + i - n_names;
        if (names[k].n == entry->name_bytes &&
            (names[k].n == 0 || memcmp(names[k].data, entry->name, names[k].n) == 0))
            return k;
    }
    return n_names;
}

int pl_example_find(const void *bytes, size_t n, pl_example_part part, const pl_string *names,
                    size_t n_names, pl_example_entry *ret_entries, pl_error *reterr)
{
    pl_example example = pl_example_begin(bytes, n, part);
    pl_example_entry entry;
    size_t next = 0;
    int r;
    for (size_t i = 0; i < n_names; i++)
        ret_entries[i] = (pl_example_entry){0};
    while ((r = pl_example_next(&example, &entry, reterr)) > 0) {
        size_t k = find_name(&entry, names, n_names, next);
        if (k == n_names)
            continue;
        ret_entries[k] = entry;
        next = k + 1 < n_names ? k + 1 : 0;
    }
    return r;
}

/* ---- the lists of a feature ---- */

static pl_feature_cursor cursor_of(const pl_wire *message, bool in_entry)
{
    return (pl_feature_cursor){
        .outer = *message,
        .feature = in_entry ? nothing_of(message) : *message,
        .list = nothing_of(message),
        .in_entry = in_entry,
    };
}

/* Finds the next list of values; its number is its kind. */
static int next_list(pl_feature_cursor *cursor, pl_wire_field *ret_list, pl_error *reterr)
{
    int r;
    for (;;) {
        while ((r = pl_wire_next(&cursor->feature, ret_list, reterr)) > 0)
            if (ret_list->number <= PL_FEATURE_INT64S)
                return pl_wire_expect(ret_list, PL_WIRE_BYTES, "a feature's list of values",
                                      &cursor->feature, reterr);
        if (r == 0 && cursor->in_entry)
            r = next_part(&cursor->outer, VALUE, "an entry's value", &cursor->feature, reterr);
        if (r <= 0 || !cursor->in_entry)
            return r;
    }
}

static int add_int64s(pl_feature *feature, const pl_wire_field *field, pl_error *reterr)
{
    const uint8_t *where;
    int64_t n = pl_wire_count_varints(&field->message, &where);
    if (n < 0)
        return pl_wire_refuse(&field->message, where, "an int64 does not end", reterr);
    feature->n_values += (uint64_t)n;
    feature->n_bytes += (uint64_t)n * sizeof(int64_t);
    return 1;
}

static int add_floats(pl_feature *feature, const pl_wire_field *field, pl_error *reterr)
{
    uint64_t n_bytes = (uint64_t)(field->message.end - field->message.at);
    if (n_bytes % sizeof(float) != 0)
        return pl_wire_refuse(&field->message, field->begin,
                              "packed floats are not a multiple of 4 bytes", reterr);
    feature->n_values += n_bytes / sizeof(float);
    feature->n_bytes += n_bytes;
    return 1;
}

/* Adds one field of a list: a value, or packed ones. */
static int add_values(pl_feature *feature, const pl_wire_field *field, pl_error *reterr)
{
    bool packed = field->type == PL_WIRE_BYTES;
    switch (feature->kind) {
    case PL_FEATURE_BYTES:
        feature->n_values++;
        feature->n_bytes += packed ? (uint64_t)(field->message.end - field->message.at) : 0;
        return pl_wire_expect(field, PL_WIRE_BYTES, "a value of bytes", &feature->message, reterr);
    case PL_FEATURE_FLOATS:
        if (packed)
            return add_floats(feature, field, reterr);
        feature->n_values++;
        feature->n_bytes += sizeof(float);
        return pl_wire_expect(field, PL_WIRE_FIXED32, "a float", &feature->message, reterr);
    default:
        if (packed)
            return add_int64s(feature, field, reterr);
        feature->n_values++;
        feature->n_bytes += sizeof(int64_t);
        return pl_wire_expect(field, PL_WIRE_VARINT, "an int64", &feature->message, reterr);
    }
}

static int add_list(pl_feature *feature, pl_wire list, pl_error *reterr)
{
    pl_wire_field field;
    int r;
    while ((r = pl_wire_next(&list, &field, reterr)) > 0)
        if (field.number == ELEMENT && (r = add_values(feature, &field, reterr)) < 0)
            break;
    return r;
}

/* A list of another kind replaces the earlier one; a list of the same kind continues it. */
static int look(const pl_wire *message, bool in_entry, pl_feature *ret_feature, pl_error *reterr)
{
    pl_feature feature = {.message = *message, .in_entry = in_entry};
    pl_feature_cursor cursor = cursor_of(message, in_entry);
    pl_wire_field list;
    int r;
    while ((r = next_list(&cursor, &list, reterr)) > 0) {
        if (feature.kind != (pl_feature_kind)list.number) {
            feature.kind = (pl_feature_kind)list.number;
            feature.n_values = feature.n_bytes = 0;
            feature.first = list.begin;
        }
        r = add_list(&feature, list.message, reterr);
        if (r < 0)
            break;
    }
    if (r == 0)
        *ret_feature = feature;
    return r;
}

int pl_feature_of(const pl_example_entry *entry, pl_feature *ret_feature, pl_error *reterr)
{
    return look(&entry->rest, true, ret_feature, reterr);
}

/* ---- values; the feature was checked, so there are no errors ---- */

pl_feature_cursor pl_feature_begin(const pl_feature *feature)
{
    pl_feature_cursor cursor = cursor_of(&feature->message, feature->in_entry);
    cursor.first = feature->first;
    return cursor;
}

/* Finds the next field of a list that counts. */
static bool next_values(pl_feature_cursor *cursor, pl_wire_field *ret_field)
{
    pl_wire_field list;
    for (;;) {
        while (pl_wire_next(&cursor->list, ret_field, NULL) > 0)
            if (ret_field->number == ELEMENT)
                return true;
        do
            if (next_list(cursor, &list, NULL) <= 0)
                return false;
        while (list.begin < cursor->first);
        cursor->list = list.message;
    }
}

bool pl_feature_next_bytes(pl_feature_cursor *cursor, pl_string *ret_value)
{
    pl_wire_field field;
    if (!next_values(cursor, &field))
        return false;
    ret_value->data = field.message.at;
    ret_value->n = (size_t)(field.message.end - field.message.at);
    return true;
}

void pl_feature_copy_floats(const pl_feature *feature, float *to)
{
    pl_feature_cursor cursor = pl_feature_begin(feature);
    pl_wire_field field;
    while (next_values(&cursor, &field)) {
        bool packed = field.type == PL_WIRE_BYTES;
        size_t n_bytes = packed ? (size_t)(field.message.end - field.message.at) : sizeof *to;
        memcpy(to, packed ? (const void *)field.message.at : &field.value, n_bytes);
        to += n_bytes / sizeof *to;
    }
}

static int64_t *copy_varints(pl_wire *packed, int64_t *to)
{
    uint64_t value;
    while (packed->at < packed->end) {
        if (*packed->at < 0x80) /* most values are small */
            *to++ = *packed->at++;
        else if (pl_wire_varint(packed, &value))
            *to++ = (int64_t)value;
        else
            break; /* cannot happen: they were counted */
    }
    return to;
}

void pl_feature_copy_int64s(const pl_feature *feature, int64_t *to)
{
    pl_feature_cursor cursor = pl_feature_begin(feature);
    pl_wire_field field;
    while (next_values(&cursor, &field)) {
        if (field.type == PL_WIRE_BYTES)
            to = copy_varints(&field.message, to);
        else
            *to++ = (int64_t)field.value;
    }
}

/* ---- lists of features ---- */

static int next_step(pl_feature_list *list, pl_wire *ret_step, pl_error *reterr)
{
    return next_within(&list->outer, VALUE, "an entry's value", &list->list, STEP,
                       "a step of a feature list", ret_step, reterr);
}

int pl_feature_list_of(const pl_example_entry *entry, pl_feature_list *ret_list, pl_error *reterr)
{
    pl_feature_list list = {.outer = entry->rest, .list = nothing_of(&entry->rest)};
    pl_feature_list walk = list;
    pl_wire step;
    int r;
    while ((r = next_step(&walk, &step, reterr)) > 0)
        list.n_steps++;
    if (r == 0)
        *ret_list = list;
    return r;
}

int pl_feature_list_next(pl_feature_list *list, pl_feature *ret_feature, pl_error *reterr)
{
    pl_wire step;
    int r = next_step(list, &step, reterr);
    if (r > 0)
        r = look(&step, false, ret_feature, reterr) < 0 ? PL_ECORRUPT : 1;
    return r;
}
