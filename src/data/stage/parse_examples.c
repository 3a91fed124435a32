/* SPDX-License-Identifier: Apache-2.0 */
/* Parses tf.train.Example records into components: a function that map calls.
 *
 * The input is one record, or a list of them: then every component has their number as its first
 * axis. The entries of a record are found in one pass; the size of a component is known before it is
 * made. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "codec/record/example.h"
#include "data/core/stage.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/strings.h"
#include "tensor/tensor.h"

typedef struct feature {
    pl_dtype dtype;
    pl_feature_kind kind;
    bool variable;
    pl_shape shape;
    int64_t n_values; /* of one record, unless it is variable */
    pl_tensor *fallback;
} feature;

typedef struct examples {
    pl_runtime *runtime;
    bool of_lists;
    pl_spec *specs; /* of the outputs */
    int n;
    feature *features;
    pl_string *names; /* by feature; their bytes are ours */
} examples;

/* One call. */
typedef struct parsing {
    const examples *what;
    pl_strings records;
    bool is_list;
    pl_feature *found; /* by record and feature; kind NONE: missing */
} parsing;

static void release(void *context)
{
    examples *own = context;
    for (int i = 0; i < own->n; i++) {
        pl_tensor_unref(own->features[i].fallback);
        free((char *)own->names[i].data);
    }
    free(own->features);
    free(own->specs);
    free(own->names);
    pl_runtime_unref(own->runtime);
    free(own);
}

/* ---- looking ---- */

static int check_feature(const examples *own, int i, const pl_feature *found, int64_t record,
                         pl_error *reterr)
{
    const feature *wanted = &own->features[i];
    const char *name = own->names[i].data;
    if (found->kind == PL_FEATURE_NONE) {
        if (wanted->fallback || wanted->variable)
            return 0;
        return pl_error_set(reterr, PL_EFORMAT,
                            "record %" PRId64 " has no feature '%s', which has no default", record,
                            name);
    }
    if (found->kind != wanted->kind)
        return pl_error_set(
            reterr, PL_EFORMAT, "feature '%s' of record %" PRId64 " has %s, where %s are asked for",
            name, record, pl_feature_kind_name(found->kind), pl_feature_kind_name(wanted->kind));
    if (!wanted->variable && found->n_values != (uint64_t)wanted->n_values)
        return pl_error_set(reterr, PL_EFORMAT,
                            "feature '%s' of record %" PRId64 " has %" PRIu64
                            " values, where shape %s has %" PRId64,
                            name, record, found->n_values, PL_SHAPE_TEXT(&wanted->shape),
                            wanted->n_values);
    return 0;
}

static int look_at(parsing *p, int64_t record, pl_example_entry *entries, pl_error *reterr)
{
    const examples *own = p->what;
    pl_string bytes = pl_strings_at(&p->records, record);
    int r = pl_example_find(bytes.data, bytes.n, PL_EXAMPLE_FEATURES, own->names, (size_t)own->n,
                            entries, reterr);
    for (int i = 0; r == 0 && i < own->n; i++) {
        pl_feature *found = &p->found[record * own->n + i];
        *found = (pl_feature){0};
        if (entries[i].name)
            r = pl_feature_of(&entries[i], found, reterr);
        if (r == 0)
            r = check_feature(own, i, found, record, reterr);
    }
    return r;
}

static int look(parsing *p, pl_error *reterr)
{
    size_t n = (size_t)p->what->n;
    pl_example_entry *entries = calloc(n, sizeof *entries);
    p->found = calloc(n * (size_t)p->records.n + 1, sizeof *p->found);
    int r = entries && p->found
                ? 0
                : pl_error_set(reterr, -ENOMEM, "out of memory for %zu features", n);
    for (int64_t i = 0; r == 0 && i < p->records.n; i++)
        r = look_at(p, i, entries, reterr);
    free(entries);
    return r;
}

/* ---- making ---- */

static const pl_feature *found_at(const parsing *p, int64_t record, int i)
{
    return &p->found[record * p->what->n + i];
}

static pl_shape shape_of(const parsing *p, int i)
{
    const feature *wanted = &p->what->features[i];
    const pl_feature *first = found_at(p, 0, i);
    if (wanted->variable && wanted->fallback && first->kind == PL_FEATURE_NONE)
        return *pl_tensor_shape(wanted->fallback);
    if (wanted->variable)
        return PL_SHAPE((int64_t)first->n_values);
    pl_shape shape = wanted->shape;
    if (!p->is_list)
        return shape;
    memmove(&shape.dims[1], &shape.dims[0], (size_t)shape.rank * sizeof shape.dims[0]);
    shape.dims[0] = p->records.n;
    shape.rank++;
    return shape;
}

static int read_default(pl_tensor *fallback, void *to, pl_error *reterr)
{
    return pl_item_read(&(pl_item){.tensor = fallback}, to, reterr);
}

static int fill_numbers(const parsing *p, int i, char *to, pl_error *reterr)
{
    const feature *wanted = &p->what->features[i];
    size_t step = (size_t)wanted->n_values * pl_dtype_info_of(wanted->dtype)->item_bytes;
    int r = 0;
    for (int64_t record = 0; r == 0 && record < p->records.n; record++, to += step) {
        const pl_feature *found = found_at(p, record, i);
        if (found->kind == PL_FEATURE_FLOATS)
            pl_feature_copy_floats(found, (float *)to);
        else if (found->kind == PL_FEATURE_INT64S)
            pl_feature_copy_int64s(found, (int64_t *)to);
        else if (wanted->fallback)
            r = read_default(wanted->fallback, to, reterr);
    }
    return r;
}

static int make_numbers(const parsing *p, int i, pl_tensor **ret_tensor, pl_error *reterr)
{
    const feature *wanted = &p->what->features[i];
    pl_shape shape = shape_of(p, i);
    pl_buffer *buffer;
    void *data;
    int64_t bytes;
    int r = pl_tensor_size(wanted->dtype, &shape, &bytes, reterr);
    if (r == 0)
        r = pl_buffer_new(p->what->runtime->pool, (uint64_t)bytes, p->what->names[i].data, &buffer,
                          &data, reterr);
    if (r < 0)
        return r;
    r = fill_numbers(p, i, data, reterr);
    pl_buffer_unpin(buffer);
    if (r == 0)
        return pl_tensor_wrap(buffer, wanted->dtype, &shape, NULL, 0, ret_tensor, reterr);
    pl_buffer_unref(buffer);
    return r;
}

/* Adds the strings of a record, or, with `maker` NULL, only their bytes. */
static void add_strings(const pl_feature *found, const pl_strings *fallback,
                        pl_strings_maker *maker, uint64_t *n_bytes)
{
    pl_string value;
    pl_feature_cursor cursor = pl_feature_begin(found);
    bool there = found->kind != PL_FEATURE_NONE;
    for (int64_t k = 0; there ? pl_feature_next_bytes(&cursor, &value) : k < fallback->n; k++) {
        if (!there)
            value = pl_strings_at(fallback, k);
        *n_bytes += value.n;
        if (maker)
            memcpy(pl_strings_add(maker, value.n), value.data, value.n);
    }
}

static int make_strings(const parsing *p, int i, pl_tensor **ret_tensor, pl_error *reterr)
{
    const feature *wanted = &p->what->features[i];
    pl_shape shape = shape_of(p, i);
    pl_strings fallback = {0};
    pl_strings_maker maker = {0};
    uint64_t n_bytes = 0;
    int r = wanted->fallback ? pl_strings_pin(&fallback, wanted->fallback, reterr) : 0;
    for (int64_t k = 0; r == 0 && k < p->records.n; k++)
        add_strings(found_at(p, k, i), &fallback, NULL, &n_bytes);
    if (r == 0)
        r = pl_strings_begin(&maker, p->what->runtime, &shape, n_bytes, p->what->names[i].data,
                             reterr);
    for (int64_t k = 0; r == 0 && k < p->records.n; k++)
        add_strings(found_at(p, k, i), &fallback, &maker, &n_bytes);
    if (r == 0)
        r = pl_strings_end(&maker, ret_tensor, reterr);
    pl_strings_unpin(&fallback);
    return r;
}

static int parse(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                 int n_outputs, pl_error *reterr)
{
    (void)n_inputs;
    parsing p = {.what = context, .is_list = ((const examples *)context)->of_lists};
    const pl_shape *shape = pl_tensor_shape(inputs[0].tensor);
    if (pl_tensor_dtype(inputs[0].tensor) != PL_STRING || shape->rank != (int32_t)p.is_list)
        return pl_error_set(reterr, -EINVAL, "parse_examples: %s%s, where %s was expected",
                            pl_dtype_info_of(pl_tensor_dtype(inputs[0].tensor))->name,
                            PL_SHAPE_TEXT(shape), p.is_list ? "a list of strings" : "one string");
    int r = pl_strings_pin(&p.records, inputs[0].tensor, reterr);
    if (r < 0)
        return r;
    r = look(&p, reterr);
    for (int i = 0; r == 0 && i < n_outputs; i++)
        r = p.what->features[i].dtype == PL_STRING
                ? make_strings(&p, i, &outputs[i].tensor, reterr)
                : make_numbers(&p, i, &outputs[i].tensor, reterr);
    free(p.found);
    pl_strings_unpin(&p.records);
    return r;
}

/* ---- the function ---- */

static pl_feature_kind kind_of(pl_dtype dtype)
{
    return dtype == PL_STRING ? PL_FEATURE_BYTES
           : dtype == PL_F32  ? PL_FEATURE_FLOATS
           : dtype == PL_I64  ? PL_FEATURE_INT64S
                              : PL_FEATURE_NONE;
}

static int check(const pl_feature_spec *spec, pl_error *reterr)
{
    if (kind_of(spec->dtype) == PL_FEATURE_NONE)
        return pl_error_set(reterr, -EINVAL,
                            "feature '%s': an Example has float32, int64 and string, no %s",
                            spec->name, pl_dtype_info_of(spec->dtype)->name);
    if (!spec->variable && !pl_shape_is_known(&spec->shape))
        return pl_error_set(reterr, -EINVAL, "feature '%s': shape %s is not known", spec->name,
                            PL_SHAPE_TEXT(&spec->shape));
    if (spec->variable && spec->fallback &&
        (pl_tensor_dtype(spec->fallback) != spec->dtype ||
         pl_tensor_shape(spec->fallback)->rank != 1))
        return pl_error_set(reterr, -EINVAL, "feature '%s': its default is %s%s, not a list of %s",
                            spec->name, pl_dtype_info_of(pl_tensor_dtype(spec->fallback))->name,
                            PL_SHAPE_TEXT(pl_tensor_shape(spec->fallback)),
                            pl_dtype_info_of(spec->dtype)->name);
    if (!spec->variable && spec->fallback &&
        (pl_tensor_dtype(spec->fallback) != spec->dtype ||
         !pl_shape_equal(pl_tensor_shape(spec->fallback), &spec->shape)))
        return pl_error_set(reterr, -EINVAL, "feature '%s': its default is %s%s, not %s%s",
                            spec->name, pl_dtype_info_of(pl_tensor_dtype(spec->fallback))->name,
                            PL_SHAPE_TEXT(pl_tensor_shape(spec->fallback)),
                            pl_dtype_info_of(spec->dtype)->name, PL_SHAPE_TEXT(&spec->shape));
    return 0;
}

static int add_feature(examples *own, const pl_feature_spec *spec, pl_error *reterr)
{
    feature made = {.dtype = spec->dtype,
                    .kind = kind_of(spec->dtype),
                    .variable = spec->variable,
                    .shape = spec->shape};
    int r = check(spec, reterr);
    for (int i = 0; r == 0 && i < own->n; i++) /* a record's entry is found for one of them */
        if (strcmp(own->names[i].data, spec->name) == 0)
            r = pl_error_set(reterr, -EINVAL, "feature '%s' is asked for twice", spec->name);
    if (r == 0 && !spec->variable)
        r = pl_shape_count(&spec->shape, &made.n_values, reterr);
    if (r < 0)
        return r;
    char *name = strdup(spec->name);
    if (!name)
        return pl_error_set(reterr, -ENOMEM, "out of memory for features");
    made.fallback = spec->fallback ? pl_tensor_ref(spec->fallback) : NULL;
    own->names[own->n] = (pl_string){name, strlen(name)};
    own->features[own->n++] = made;
    return 0;
}

static int make(pl_runtime *runtime, const pl_feature_spec *specs, int n, examples **ret_examples,
                pl_error *reterr)
{
    examples *own = calloc(1, sizeof *own);
    if (!own)
        return pl_error_set(reterr, -ENOMEM, "out of memory for features");
    own->runtime = pl_runtime_ref(runtime);
    own->features = calloc((size_t)n + 1, sizeof *own->features);
    own->specs = calloc((size_t)n + 1, sizeof *own->specs);
    own->names = calloc((size_t)n + 1, sizeof *own->names);
    int r = own->features && own->specs && own->names
                ? 0
                : pl_error_set(reterr, -ENOMEM, "out of memory for features");
    for (int i = 0; r == 0 && i < n; i++)
        r = add_feature(own, &specs[i], reterr);
    if (r < 0)
        release(own);
    else
        *ret_examples = own;
    return r;
}

/* The spec of a component, given the input's. */
static int spec_of(const pl_feature_spec *wanted, bool of_lists, int64_t n_records,
                   pl_spec *ret_spec, pl_error *reterr)
{
    pl_spec spec = {.dtype = wanted->dtype, .shape = wanted->shape};
    if (wanted->variable)
        spec.shape = PL_SHAPE(PL_UNKNOWN);
    if (of_lists && wanted->variable)
        return pl_error_set(reterr, -EINVAL,
                            "feature '%s' is of any length: parse records one by one, and batch "
                            "them with padded_batch",
                            wanted->name);
    if (of_lists && spec.shape.rank == PL_RANK_MAX)
        return pl_error_set(reterr, -EINVAL, "feature '%s' has too many axes for a batch",
                            wanted->name);
    if (of_lists) {
        memmove(&spec.shape.dims[1], &spec.shape.dims[0],
                (size_t)spec.shape.rank++ * sizeof spec.shape.dims[0]);
        spec.shape.dims[0] = n_records;
    }
    *ret_spec = spec;
    return 0;
}

static int make_function(pl_runtime *runtime, const pl_feature_spec *features, int n_features,
                         bool of_lists, int64_t n_records, pl_function *ret_function,
                         pl_error *reterr)
{
    examples *own;
    if (n_features < 1)
        return pl_error_set(reterr, -EINVAL, "parse_examples: no feature is asked for");
    int r = make(runtime, features, n_features, &own, reterr);
    if (r < 0)
        return r;
    own->of_lists = of_lists;
    for (int i = 0; r == 0 && i < n_features; i++)
        r = spec_of(&features[i], of_lists, n_records, &own->specs[i], reterr);
    if (r < 0) {
        release(own);
        return r;
    }
    *ret_function = (pl_function){.call = parse,
                                  .output_specs = own->specs,
                                  .n_inputs = 1,
                                  .n_outputs = n_features,
                                  .context = own,
                                  .release = release};
    return 0;
}

int pl_examples_function(pl_runtime *runtime, const pl_feature_spec *features, int n_features,
                         bool of_lists, pl_function *ret_function, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL_IF(n_features > 0, features, reterr);
    PL_NOT_NULL(ret_function, reterr);
    return make_function(runtime, features, n_features, of_lists, PL_UNKNOWN, ret_function, reterr);
}

int pl_dataset_parse_examples(pl_dataset *input, const pl_feature_spec *features, int n_features,
                              int n_parallel, pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL_IF(n_features > 0, features, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    const pl_spec *given = &input->spec[0];
    if (input->n_components != 1 || given->dtype != PL_STRING || given->shape.rank > 1 ||
        given->shape.rank < 0)
        return pl_error_set(reterr, -EINVAL,
                            "parse_examples: takes one component, a string or a list of them");
    pl_function function;
    bool of_lists = given->shape.rank == 1;
    int r = make_function(input->runtime, features, n_features, of_lists,
                          of_lists ? given->shape.dims[0] : 1, &function, reterr);
    return r < 0 ? r : pl_dataset_map(input, &function, n_parallel, ret_dataset, reterr);
}
