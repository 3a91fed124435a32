/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: tensors, generators and files. */
#include <errno.h>
#include <string.h>

#include "python/convert/component.h"
#include "python/convert/convert.h"
#include "python/convert/features.h"
#include "python/dataset/dataset_maker.h"
#include "python/function/callback.h"

/* ---- tensors and generators ---- */

static int range(pl_runtime *runtime, const argument *a, pl_dataset **ret, pl_error *reterr)
{
    return pl_dataset_range(runtime, a[0].number, a[1].number, a[2].number, ret, reterr);
}

static int tensors(pl_runtime *runtime, const argument *a, pl_dataset **ret, pl_error *reterr)
{
    return pl_dataset_from_tensors(runtime, a[0].tensors, a[0].n, ret, reterr);
}

static int slices(pl_runtime *runtime, const argument *a, pl_dataset **ret, pl_error *reterr)
{
    return pl_dataset_from_slices(runtime, a[0].tensors, a[0].n, ret, reterr);
}

static int generator(pl_runtime *runtime, const argument *a, pl_dataset **ret, pl_error *reterr)
{
    const pl_generator made = callback_generator(a[0].kept, a[2].number);
    return pl_dataset_generator(runtime, &made, ret, reterr);
}

/* ---- files ---- */

static int paths(pl_runtime *runtime, const argument *a, pl_dataset **ret, pl_error *reterr)
{
    return pl_dataset_paths(runtime, a[0].texts, a[0].n, ret, reterr);
}

static pl_files_options files_options(const argument *a)
{
    return (pl_files_options){.shuffle = a[0].number != 0,
                              .seed = (uint64_t)a[1].number,
                              .same_each_pass = a[2].number != 0};
}

static int files(pl_runtime *runtime, const argument *a, pl_dataset **ret, pl_error *reterr)
{
    const pl_files_options options = files_options(a + 1);
    return pl_dataset_files(runtime, a[0].texts, a[0].n, &options, ret, reterr);
}

static int image_folder(pl_runtime *runtime, const argument *a, pl_dataset **ret, pl_error *reterr)
{
    const pl_files_options options = files_options(a + 1);
    return pl_dataset_image_folder(runtime, a[0].text, &options, ret, reterr);
}

static int lines(pl_runtime *runtime, const argument *a, pl_dataset **ret, pl_error *reterr)
{
    (void)runtime;
    pl_compression compression;
    int r = compression_of(a[1].text, &compression, reterr);
    return r < 0 ? r : pl_dataset_lines(a[0].dataset, compression, ret, reterr);
}

static int records(pl_runtime *runtime, const argument *a, pl_dataset **ret, pl_error *reterr)
{
    (void)runtime;
    pl_compression compression;
    int r = compression_of(a[1].text, &compression, reterr);
    return r < 0 ? r : pl_dataset_records(a[0].dataset, compression, ret, reterr);
}

static int fixed(pl_runtime *runtime, const argument *a, pl_dataset **ret, pl_error *reterr)
{
    (void)runtime;
    for (int i = 1; i < 4; i++)
        if (a[i].number < 0)
            return pl_error_set(reterr, -EINVAL, "fixed records: %lld bytes",
                                (long long)a[i].number);
    pl_compression compression;
    int r = compression_of(a[4].text, &compression, reterr);
    return r < 0 ? r
                 : pl_dataset_fixed_records(a[0].dataset, (uint64_t)a[1].number,
                                            (uint64_t)a[2].number, (uint64_t)a[3].number,
                                            compression, ret, reterr);
}

static int samples(pl_runtime *runtime, const argument *a, pl_dataset **ret, pl_error *reterr)
{
    (void)runtime;
    return pl_dataset_samples(a[0].dataset, a[1].texts, a[1].n, ret, reterr);
}

static int load(pl_runtime *runtime, const argument *a, pl_dataset **ret, pl_error *reterr)
{
    return pl_dataset_load(runtime, a[0].text, ret, reterr);
}

/* ---- sources that read Python objects themselves ---- */

static int parse_examples(pl_runtime *runtime, const argument *a, pl_dataset **ret,
                          pl_error *reterr)
{
    (void)runtime;
    pl_feature_spec *features;
    int n;
    if (features_of(a[1].object, &features, &n) < 0)
        return -1;
    int r = pl_dataset_parse_examples(a[0].dataset, features, n, (int)a[2].number, ret, reterr);
    features_free(features, n);
    return r;
}

/* Reads field numbers in ascending order; NULL for None. */
static int selected_of(PyObject *given, int n_columns, int64_t **ret_selected)
{
    *ret_selected = NULL;
    if (!given || given == Py_None)
        return 0;
    PyObject *tuple = PySequence_Tuple(given);
    int64_t *selected = tuple ? PyMem_Calloc((size_t)n_columns + 1, sizeof *selected) : NULL;
    if (tuple && !selected)
        PyErr_NoMemory();
    if (selected && PyTuple_GET_SIZE(tuple) != n_columns)
        PyErr_Format(PyExc_ValueError, "%zd fields are selected for %d columns",
                     PyTuple_GET_SIZE(tuple), n_columns);
    for (int i = 0; !PyErr_Occurred() && i < n_columns; i++)
        selected[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
    Py_XDECREF(tuple);
    if (PyErr_Occurred()) {
        PyMem_Free(selected);
        return -1;
    }
    *ret_selected = selected;
    return 0;
}

static int csv(pl_runtime *runtime, const argument *a, pl_dataset **ret, pl_error *reterr)
{
    (void)runtime;
    pl_csv_default *columns;
    int64_t *selected;
    pl_compression compression;
    int n, r = compression_of(a[7].text, &compression, reterr);
    const char *delimiter = a[3].text ? a[3].text : ",", *na = a[6].text ? a[6].text : "";
    if (r < 0)
        return r;
    if (strlen(delimiter) != 1)
        return pl_error_set(reterr, -EINVAL, "csv: delimiter '%.40s' is not one byte", delimiter);
    if (columns_of(a[1].object, &columns, &n) < 0)
        return -1;
    r = selected_of(a[2].object, n, &selected);
    if (r == 0) {
        const pl_csv_layout layout = {
            .columns = columns,
            .n_columns = n,
            .selected = selected,
            .delimiter = delimiter[0],
            .plain_quotes = a[4].number != 0,
            .header = a[5].number != 0,
            .na_value = {na, strlen(na)},
            .compression = compression,
        };
        r = pl_dataset_csv(a[0].dataset, &layout, ret, reterr);
        PyMem_Free(selected);
    }
    columns_free(columns, n);
    return r;
}

#define FILES "shuffle:B= seed:I= same_each_pass:B="

const dataset_maker dataset_sources[] = {
    {"ds_range", "start:I stop:I step:I", range, false},
    {"ds_tensors", "tensors:T", tensors, false},
    {"ds_slices", "tensors:T", slices, false},
    {"ds_generator", "begin:G specs:O cardinality:I", generator, false},
    {"ds_paths", "paths:S", paths, false},
    {"ds_files", "patterns:S " FILES, files, true},
    {"ds_image_folder", "folder:P " FILES, image_folder, true},
    {"ds_lines", "paths:D compression:P=", lines, false},
    {"ds_records", "paths:D compression:P=", records, false},
    {"ds_fixed", "paths:D head:I record:I foot:I compression:P=", fixed, false},
    {"ds_csv",
     "paths:D columns:O selected:O= delimiter:P= plain_quotes:B= header:B= na_value:P= "
     "compression:P=",
     csv, false},
    {"ds_samples", "paths:D extensions:S", samples, false},
    {"ds_parse_examples", "input:D features:O n_parallel:N", parse_examples, false},
    {"ds_load", "path:P", load, true},
    {NULL},
};
