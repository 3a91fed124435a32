/* SPDX-License-Identifier: Apache-2.0 */
/* Parses tf.train.Example records with the library, in a graph: see pl_expr_parse_examples(). */
#include "python/convert/convert.h"
#include "python/function/call_make.h"
#include "python/module/failure.h"
#include "python/tensor/evaluate.h"

/* Borrows the fallback from a node, which it evaluates. */
static int feature_of(PyObject *item, pl_feature_spec *feature)
{
    PyObject *shape, *dtype, *fallback;
    if (!PyArg_ParseTuple(item, "sOOO;a feature is (name, dtype, shape, default)", &feature->name,
                          &dtype, &shape, &fallback))
        return -1;
    int number = convert_dtype(dtype);
    if (number <= 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a feature has a dtype");
        return -1;
    }
    feature->dtype = (pl_dtype)number;
    feature->variable = shape == Py_None;
    if (!feature->variable && convert_shape(shape, &feature->shape) < 0)
        return -1;
    if (fallback == Py_None)
        return 0;
    if (!tensor_check(fallback)) {
        PyErr_SetString(PyExc_TypeError, "a feature's default is a Tensor");
        return -1;
    }
    tensor *node = (tensor *)fallback;
    if (evaluate(&node, 1) < 0)
        return -1;
    feature->fallback = tensor_has(node);
    return 0;
}

static PyObject *parse(tensor *records, const pl_feature_spec *features, int n, PyObject *name)
{
    pl_runtime *runtime = module_runtime();
    pl_expr **items = runtime ? PyMem_New(pl_expr *, n + 1) : NULL;
    PyObject *list = NULL;
    pl_error error = {0};
    if (!items)
        return runtime ? PyErr_NoMemory() : NULL;
    if (pl_expr_parse_examples(runtime, records->expr, features, n, items, &error) < 0)
        failure_raise(&error);
    else
        list = tensor_items(items, n, &records, 1, "parse_examples", name);
    PyMem_Free(items);
    return list;
}

const char call_parse_doc[] =
    "parse_examples(records, features, name=None) -> list of tensors\n\n"
    "One tensor for each feature, (name, dtype, shape, default), of tf.train.Example records: a\n"
    "scalar string, or a list of them. A shape of None: any number of values.";

PyObject *call_parse(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"records", "features", "name", NULL};
    PyObject *records, *list, *name = NULL, *items = NULL;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:parse_examples", names, &records, &list,
                                     &name) ||
        arguments_name(name, &name) < 0)
        return NULL;
    PyObject *specs = PySequence_Fast(list, "features is a sequence");
    int n = specs ? (int)PySequence_Fast_GET_SIZE(specs) : 0, r = specs ? 0 : -1;
    pl_feature_spec *features = PyMem_Calloc((size_t)n + 1, sizeof *features);
    tensor *node = r == 0 && features ? convert_to_node(records, PL_STRING, PL_STRING) : NULL;
    for (int i = 0; node && r == 0 && i < n; i++)
        r = feature_of(PySequence_Fast_GET_ITEM(specs, i), &features[i]);
    if (node && r == 0)
        items = parse(node, features, n, name);
    if (!features)
        PyErr_NoMemory();
    Py_XDECREF((PyObject *)node);
    PyMem_Free(features);
    Py_XDECREF(specs);
    return items;
}
