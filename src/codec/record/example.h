/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tf.train.Example and tf.train.SequenceExample, named features in a record, in place.
 *   feature  a list of bytes, of floats or of int64s, or none of them: nothing was set
 *   entry    a name with a feature or, in a sequence, a list of features
 *   step     a feature of such a list
 *
 *   Example         = features { name: feature }
 *   SequenceExample = context { name: feature }, lists { name: [feature] }
 *
 * The size of a feature is known before anything is copied, and all work is copying: the record is
 * neither changed nor kept. It is read as protobuf reads it: numbers packed or not, unknown fields
 * skipped, repeated parts merged, and the last of several entries with the same name counts. Only a
 * known field with another type is refused, where protobuf would skip it. Names are bytes; they are
 * not checked for UTF-8. Errors within an entry are found when the entry is read.
 *
 * Messages say what is wrong and at which byte of the record. Nothing is recursive. Never
 * allocates; the structs are the caller's, and point into the record. Safe from any thread. */
#ifndef PL_CODEC_RECORD_EXAMPLE_H
#define PL_CODEC_RECORD_EXAMPLE_H

#include "codec/record/wire.h"
#include "plimsoll/tensor.h"

typedef enum pl_feature_kind {
    PL_FEATURE_NONE = 0,
    PL_FEATURE_BYTES = 1, /* numbered as in protobuf */
    PL_FEATURE_FLOATS = 2,
    PL_FEATURE_INT64S = 3,
} pl_feature_kind;

const char *pl_feature_kind_name(pl_feature_kind kind);

/* ---- entries ---- */

typedef enum pl_example_part {
    PL_EXAMPLE_FEATURES = 1, /* also the context of a SequenceExample */
    PL_EXAMPLE_LISTS = 2,
} pl_example_part;

typedef struct pl_example_entry {
    const char *name; /* not NUL-terminated; NULL: there is no such entry */
    size_t name_bytes;
    pl_wire rest; /* for example.c */
} pl_example_entry;

/* The entries that are left to iterate over. */
typedef struct pl_example {
    pl_wire record, part;
    pl_example_part which;
} pl_example;

pl_example pl_example_begin(const void *bytes, size_t n, pl_example_part part);

/* Finds the next entry: 1; 0 at the end; PL_ECORRUPT. Keeps the order of the record; a name may
 * come again. */
PL_MUST_CHECK int pl_example_next(pl_example *example, pl_example_entry *ret_entry,
                                  pl_error *reterr);

/* Finds the entries with these names, in one pass over the record; a missing one has a NULL name.
 * After PL_ECORRUPT they are undefined. */
PL_MUST_CHECK int pl_example_find(const void *bytes, size_t n, pl_example_part part,
                                  const pl_string *names, size_t n_names,
                                  pl_example_entry *ret_entries, pl_error *reterr);

/* ---- features ---- */

typedef struct pl_feature {
    pl_feature_kind kind;
    uint64_t n_values;
    uint64_t n_bytes; /* total of all values: in bytes, floats or int64s */
    /* For example.c: */
    pl_wire message;
    const uint8_t *first; /* the first part that counts: earlier ones had another kind */
    bool in_entry;
} pl_feature;

/* Checks the whole feature. PL_ECORRUPT. */
PL_MUST_CHECK int pl_feature_of(const pl_example_entry *entry, pl_feature *ret_feature,
                                pl_error *reterr);

/* Copies all values, into room for n_bytes. `feature` must be of that kind. */
void pl_feature_copy_floats(const pl_feature *feature, float *to);
void pl_feature_copy_int64s(const pl_feature *feature, int64_t *to);

/* Iterates over values of bytes, in place. */
typedef struct pl_feature_cursor {
    pl_wire outer, feature, list; /* for example.c */
    const uint8_t *first;
    bool in_entry;
} pl_feature_cursor;

pl_feature_cursor pl_feature_begin(const pl_feature *feature);

/* Returns false after the last one. */
bool pl_feature_next_bytes(pl_feature_cursor *cursor, pl_string *ret_value);

/* ---- lists of features ---- */

typedef struct pl_feature_list {
    uint64_t n_steps;
    pl_wire outer, list; /* for example.c */
} pl_feature_list;

/* Counts the steps without checking them. PL_ECORRUPT. */
PL_MUST_CHECK int pl_feature_list_of(const pl_example_entry *entry, pl_feature_list *ret_list,
                                     pl_error *reterr);

/* Gives the next step: 1; 0 after the last one; PL_ECORRUPT. Advances the list. */
PL_MUST_CHECK int pl_feature_list_next(pl_feature_list *list, pl_feature *ret_feature,
                                       pl_error *reterr);

/* ---- writing ---- */

typedef struct pl_feature_values {
    pl_string name; /* not used for a step */
    pl_feature_kind kind;
    uint64_t n_values;
    union {
        const pl_string *bytes;
        const float *floats;
        const int64_t *int64s;
    };
} pl_feature_values;

typedef struct pl_feature_steps {
    pl_string name;
    uint64_t n_steps;
    const pl_feature_values *steps;
} pl_feature_steps;

typedef struct pl_example_values {
    uint64_t n_features;
    const pl_feature_values *features; /* or the context */
    bool is_sequence;
    uint64_t n_lists; /* 0 unless it is a sequence */
    const pl_feature_steps *lists;
} pl_example_values;

/* Gives the size of the record that pl_example_write() writes. -EOVERFLOW over 2^31 - 1, which
 * protobuf cannot read. */
PL_MUST_CHECK int pl_example_bytes(const pl_example_values *values, uint64_t *ret_bytes,
                                   pl_error *reterr);

/* Writes the record as protobuf does, features in the given order. Returns the end. */
uint8_t *pl_example_write(const pl_example_values *values, uint8_t *to);

#endif
