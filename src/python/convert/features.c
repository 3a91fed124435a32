/* SPDX-License-Identifier: Apache-2.0 */
#include "python/convert/features.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/convert/component.h"
#include "python/convert/convert.h"

/* Copies a sequence: `one` reads each item into a record of `bytes`. On failure, the records read
 * so far are kept for the caller to free. */
static int read_all(PyObject *sequence, size_t bytes, int (*one)(PyObject *item, void *record),
                    void **ret_records, int *ret_n)
{
    PyObject *tuple = PySequence_Tuple(sequence);
    if (!tuple)
        return -1;
    int n = (int)PyTuple_GET_SIZE(tuple), r = 0;
    char *records = PyMem_Calloc((size_t)n + 1, bytes);
    if (!records)
        r = (PyErr_NoMemory(), -1);
    *ret_records = records;
    *ret_n = records ? n : 0;
    for (int i = 0; r == 0 && i < n; i++)
        r = one(PyTuple_GET_ITEM(tuple, i), records + (size_t)i * bytes);
    Py_DECREF(tuple);
    return r;
}

/* Converts a value other than None to a tensor of the dtype. */
static int fallback_of(PyObject *value, pl_dtype dtype, pl_tensor **ret_tensor)
{
    PyObject *one = PyTuple_Pack(1, value);
    pl_tensor **made;
    int n;
    int r = one ? component_tensors(one, &dtype, 1, &made, &n) : -1;
    Py_XDECREF(one);
    if (r < 0)
        return -1;
    *ret_tensor = made[0];
    PyMem_Free(made);
    return 0;
}

static int dtype_of(PyObject *value, pl_dtype *ret_dtype)
{
    int number = convert_dtype(value);
    if (number == PL_DTYPE_NONE)
        PyErr_SetString(PyExc_TypeError, "a dtype is expected, not None");
    if (number <= PL_DTYPE_NONE)
        return -1;
    *ret_dtype = (pl_dtype)number;
    return 0;
}

/* ---- features of examples ---- */

static int feature_of(PyObject *item, void *record)
{
    pl_feature_spec *feature = record;
    const char *name;
    PyObject *dtype, *shape, *fallback;
    if (!PyArg_ParseTuple(item, "sOOO;a feature is (name, dtype, shape, default)", &name, &dtype,
                          &shape, &fallback))
        return -1;
    feature->variable = shape == Py_None;
    if (dtype_of(dtype, &feature->dtype) < 0 ||
        (!feature->variable && convert_shape(shape, &feature->shape) < 0) ||
        fallback_of(fallback, feature->dtype, &feature->fallback) < 0)
        return -1;
    feature->name = strdup(name);
    return feature->name ? 0 : (PyErr_NoMemory(), -1);
}

void features_free(pl_feature_spec *features, int n)
{
    for (int i = 0; i < n; i++) {
        free((char *)features[i].name);
        pl_tensor_unref(features[i].fallback);
    }
    PyMem_Free(features);
}

int features_of(PyObject *sequence, pl_feature_spec **ret_features, int *ret_n)
{
    void *features = NULL;
    int n = 0;
    if (read_all(sequence, sizeof(pl_feature_spec), feature_of, &features, &n) < 0) {
        features_free(features, n);
        return -1;
    }
    *ret_features = features;
    *ret_n = n;
    return 0;
}

/* ---- columns of CSV files ---- */

static int raise_error(const pl_error *error)
{
    PyErr_SetString(PyExc_ValueError, error->message);
    return -1;
}

/* Makes a tensor of one element, as the reader wants it. */
static int read_default(pl_tensor *value, pl_csv_default *column)
{
    static const int64_t nowhere[PL_RANK_MAX], one[PL_RANK_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
    pl_error error = {0};
    if (column->dtype != PL_STRING)
        return pl_tensor_read(value, nowhere, one, &column->bits, &error) < 0 ? raise_error(&error)
                                                                              : 0;
    pl_string text;
    if (pl_tensor_pin_string(value, nowhere, &text, &error) < 0)
        return raise_error(&error);
    void *copy = malloc(text.n + 1);
    if (copy && text.n > 0)
        memcpy(copy, text.data, text.n);
    pl_tensor_unpin(value);
    column->text = (pl_string){copy, text.n};
    return copy ? 0 : (PyErr_NoMemory(), -1);
}

static int column_of(PyObject *item, void *record)
{
    pl_csv_default *column = record;
    PyObject *dtype, *fallback;
    int required;
    pl_tensor *value = NULL;
    if (!PyArg_ParseTuple(item, "OpO;a column is (dtype, required, default)", &dtype, &required,
                          &fallback) ||
        dtype_of(dtype, &column->dtype) < 0)
        return -1;
    column->required = required;
    if (required)
        return 0;
    if (fallback_of(fallback, column->dtype, &value) < 0)
        return -1;
    int r = value ? read_default(value, column) : 0;
    pl_tensor_unref(value);
    return r;
}

void columns_free(pl_csv_default *columns, int n)
{
    for (int i = 0; i < n; i++)
        free((void *)columns[i].text.data);
    PyMem_Free(columns);
}

int columns_of(PyObject *sequence, pl_csv_default **ret_columns, int *ret_n)
{
    void *columns = NULL;
    int n = 0;
    if (read_all(sequence, sizeof(pl_csv_default), column_of, &columns, &n) < 0) {
        columns_free(columns, n);
        return -1;
    }
    *ret_columns = columns;
    *ret_n = n;
    return 0;
}

/* ---- compressions ---- */

int compression_of(const char *text, pl_compression *ret_compression, pl_error *reterr)
{
    static const struct {
        const char *name;
        pl_compression compression;
    } known[] = {
        {"", PL_COMPRESSION_NONE},     {"NONE", PL_COMPRESSION_NONE}, {"GZIP", PL_COMPRESSION_GZIP},
        {"ZLIB", PL_COMPRESSION_ZLIB}, {"AUTO", PL_COMPRESSION_AUTO},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(text ? text : "", known[i].name) == 0) {
            *ret_compression = known[i].compression;
            return 0;
        }
    return pl_error_set(reterr, -EINVAL,
                        "compression '%.40s' is not one of '', 'NONE', 'GZIP', 'ZLIB', 'AUTO'",
                        text);
}
