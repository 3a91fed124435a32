/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an Example or a SequenceExample: refused, or as many values are copied as were
 * counted, and what is written of them is read as the same. */
#include "codec/record/example.h"
#include "fuzz_records.h"

enum { RECORD_MAX = 4096, FEATURES_MAX = 64 };

/* Of a feature, in blocks that have not a byte to spare. */
typedef struct copy {
    pl_feature_values values;
    void *data;
} copy;

static copy copy_of(const pl_feature *feature, pl_string name)
{
    copy made = {.values = {.name = name, .kind = feature->kind, .n_values = feature->n_values}};
    uint64_t n_bytes = feature->kind == PL_FEATURE_BYTES ? feature->n_values * sizeof(pl_string)
                                                         : feature->n_bytes;
    REQUIRE(feature->n_values <= RECORD_MAX && n_bytes <= 16 * RECORD_MAX);
    made.data = malloc(n_bytes ? n_bytes : 1);
    REQUIRE(made.data != NULL);
    made.values.bytes = made.data; /* or floats, or int64s: a union */
    if (feature->kind == PL_FEATURE_FLOATS)
        pl_feature_copy_floats(feature, made.data);
    if (feature->kind == PL_FEATURE_INT64S)
        pl_feature_copy_int64s(feature, made.data);
    if (feature->kind == PL_FEATURE_BYTES) {
        pl_feature_cursor cursor = pl_feature_begin(feature);
        pl_string *to = made.data, more;
        uint64_t sum = 0;
        for (uint64_t i = 0; i < feature->n_values; i++) {
            REQUIRE(pl_feature_next_bytes(&cursor, &to[i]));
            sum += to[i].n;
        }
        REQUIRE(!pl_feature_next_bytes(&cursor, &more) && sum == feature->n_bytes);
    }
    return made;
}

static bool same_values(const pl_feature_values *a, const pl_feature_values *b)
{
    if (a->kind != b->kind || a->n_values != b->n_values)
        return false;
    if (a->n_values == 0)
        return true;
    if (a->kind == PL_FEATURE_FLOATS)
        return memcmp(a->floats, b->floats, a->n_values * sizeof(float)) == 0;
    if (a->kind == PL_FEATURE_INT64S)
        return memcmp(a->int64s, b->int64s, a->n_values * sizeof(int64_t)) == 0;
    for (uint64_t i = 0; i < a->n_values; i++)
        if (a->bytes[i].n != b->bytes[i].n ||
            memcmp(a->bytes[i].data, b->bytes[i].data, a->bytes[i].n) != 0)
            return false;
    return true;
}

/* Copies of all features, in order, but for those that are too many. */
static int copy_all(const uint8_t *record, size_t n, copy *copies, size_t *ret_n)
{
    pl_example example = pl_example_begin(record, n, PL_EXAMPLE_FEATURES);
    pl_example_entry entry;
    pl_error error = {0};
    int r;
    *ret_n = 0;
    while ((r = pl_example_next(&example, &entry, &error)) > 0 && *ret_n < FEATURES_MAX) {
        pl_feature feature;
        REQUIRE(entry.name != NULL);
        r = pl_feature_of(&entry, &feature, &error);
        if (r < 0)
            break;
        copies[(*ret_n)++] = copy_of(&feature, (pl_string){entry.name, entry.name_bytes});
    }
    check_outcome(r, &error);
    return r < 0 ? r : 0;
}

static void free_copies(copy *copies, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(copies[i].data);
}

/* Written once more, it is read as the same. */
static void check_written(const copy *copies, size_t n)
{
    static copy again[FEATURES_MAX];
    pl_feature_values features[FEATURES_MAX];
    pl_example_values values = {.n_features = n, .features = features};
    uint64_t n_bytes;
    size_t n_again;
    for (size_t i = 0; i < n; i++)
        features[i] = copies[i].values;
    REQUIRE(pl_example_bytes(&values, &n_bytes, NULL) == 0);
    uint8_t *record = malloc(n_bytes);
    REQUIRE(record && pl_example_write(&values, record) == record + n_bytes);
    REQUIRE(copy_all(record, n_bytes, again, &n_again) == 0 && n_again == n);
    for (size_t i = 0; i < n; i++)
        REQUIRE(same_values(&copies[i].values, &again[i].values));
    free_copies(again, n_again);
    free(record);
}

static void check_lists(const uint8_t *record, size_t n)
{
    pl_example example = pl_example_begin(record, n, PL_EXAMPLE_LISTS);
    pl_example_entry entry;
    pl_feature_list list;
    pl_feature feature;
    pl_error error = {0};
    int r;
    while ((r = pl_example_next(&example, &entry, &error)) > 0) {
        if ((r = pl_feature_list_of(&entry, &list, &error)) < 0)
            break;
        uint64_t n_steps = list.n_steps;
        while ((r = pl_feature_list_next(&list, &feature, &error)) > 0)
            n_steps--;
        if (r < 0)
            break;
        REQUIRE(n_steps == 0);
    }
    check_outcome(r, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static copy copies[FEATURES_MAX];
    size_t n_copies;
    if (n > RECORD_MAX)
        return 0;
    uint8_t *record = malloc(n ? n : 1);
    REQUIRE(record != NULL);
    if (n > 0)
        memcpy(record, data, n);
    if (copy_all(record, n, copies, &n_copies) == 0)
        check_written(copies, n_copies);
    free_copies(copies, n_copies);
    check_lists(record, n);
    free(record);
    return 0;
}

#ifndef PL_LIBFUZZER

static const float floats[] = {1, 2.5f, -3};
static const int64_t ints[] = {0, 1, -1, 300, INT64_MIN};
static const pl_string strings[] = {{"some", 4}, {"", 0}, {"bytes and more", 14}};

static pl_feature_values random_feature(void)
{
    static const pl_string names[] = {{"a", 1}, {"label", 5}, {"", 0}, {"image/encoded", 13}};
    pl_feature_values values = {.name = names[random() % 4],
                                .kind = (pl_feature_kind)(random() % 4)};
    values.n_values = (uint64_t)random() % (values.kind == PL_FEATURE_INT64S ? 6 : 4);
    if (values.kind == PL_FEATURE_FLOATS)
        values.floats = floats;
    else if (values.kind == PL_FEATURE_INT64S)
        values.int64s = ints;
    else
        values.bytes = strings;
    return values;
}

static size_t make_example(uint8_t *to)
{
    pl_feature_values features[8];
    pl_feature_steps lists[] = {{{"steps", 5}, (uint64_t)random() % 5, features},
                                {{"x", 1}, (uint64_t)random() % 5, features + 3}};
    for (int i = 0; i < 8; i++)
        features[i] = random_feature();
    pl_example_values values = {.n_features = (uint64_t)random() % 5,
                                .features = features,
                                .is_sequence = random() % 2,
                                .n_lists = (uint64_t)random() % 3,
                                .lists = lists};
    return (size_t)(pl_example_write(&values, to) - to);
}

static void no_bytes_harm_whoever_reads_them(void **state)
{
    (void)state;
    static uint8_t input[RECORD_MAX];
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        size_t n = make_example(input);
        if (random() % 4)
            n = damage(input, n);
        try_input(input, n);
    }
    assert_true(n_tries < 1000 || n_taken > n_tries / 5);
    assert_true(n_tries < 1000 || n_refused > n_tries / 5);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 100000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_harm_whoever_reads_them),
    };
    return cmocka_run_group_tests_name("fuzz_example", tests, NULL, NULL);
}

#endif
