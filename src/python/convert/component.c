/* SPDX-License-Identifier: Apache-2.0 */
#include "python/convert/component.h"

#include <string.h>

#include "python/convert/convert.h"
#include "python/dataset/dataset_type.h"
#include "python/tensor/evaluate.h"

PyObject *component_object(pl_value value)
{
    if (value.tensor)
        return (PyObject *)tensor_of_value(value.tensor, NULL);
    return dataset_of(value.dataset, NULL, NULL);
}

static void drop_values(pl_value *values, int n)
{
    for (int i = 0; i < n; i++) {
        pl_tensor_unref(values[i].tensor);
        pl_dataset_unref(values[i].dataset);
        values[i] = (pl_value){0};
    }
}

/* ---- one item: its value, or a node that will have one ---- */

static int take_dataset(PyObject *item, pl_value *ret_value)
{
    if (!dataset_check(item)) {
        PyErr_Format(PyExc_TypeError, "%.80s is given where a dataset is expected",
                     Py_TYPE(item)->tp_name);
        return -1;
    }
    dataset_give((dataset *)item);
    ret_value->dataset = pl_dataset_ref(((dataset *)item)->set);
    return 0;
}

/* Casts an array to the dtype, as NumPy does. */
static pl_tensor *cast_array(PyObject *array, pl_dtype dtype)
{
    pl_tensor *value = convert_from(array, PL_DTYPE_NONE, NULL, "component");
    if (!value || dtype == PL_DTYPE_NONE || pl_tensor_dtype(value) == dtype)
        return value;
    pl_tensor_unref(value);
    PyObject *cast = PyObject_CallMethod(array, "astype", "s", convert_dtype_name(dtype));
    value = cast ? convert_from(cast, dtype, NULL, "component") : NULL;
    Py_XDECREF(cast);
    return value;
}

/* Numbers and arrays need no node. A tensor of another dtype is left as it is, and refused where it
 * is used. */
static int take_item(PyObject *item, pl_dtype dtype, tensor **ret_node, pl_value *ret_value)
{
    bool is_tensor = tensor_check(item);
    if (PyFloat_CheckExact(item) || PyLong_CheckExact(item) || PyBytes_CheckExact(item))
        ret_value->tensor = convert_from(item, dtype, NULL, "component");
    else if (!is_tensor && convert_is_array(item) && dtype != PL_STRING)
        ret_value->tensor = cast_array(item, dtype);
    else
        *ret_node = convert_to_node(item, is_tensor ? PL_DTYPE_NONE : dtype, PL_DTYPE_NONE);
    return *ret_node || ret_value->tensor ? 0 : -1;
}

/* ---- many items: pending ones are computed in one program, which computes shared nodes once
 * ---- */

static int settle(tensor **nodes, int n, pl_value *values)
{
    int n_waiting = 0, r = 0;
    tensor **waiting = nodes + n;
    for (int i = 0; i < n; i++)
        if (nodes[i] && !tensor_has(nodes[i]))
            waiting[n_waiting++] = nodes[i];
    if (n_waiting > 0)
        r = evaluate(waiting, n_waiting);
    for (int i = 0; r == 0 && i < n; i++)
        if (nodes[i])
            values[i].tensor = pl_tensor_ref(tensor_has(nodes[i]));
    return r;
}

typedef int take(PyObject *item, int i, const void *how, tensor **ret_node, pl_value *ret_value);

static int take_all(PyObject *tuple, take *one, const void *how, pl_value *values)
{
    tensor *few[16] = {NULL};
    int n = (int)PyTuple_GET_SIZE(tuple), r = 0;
    tensor **nodes = n <= 8 ? few : PyMem_Calloc((size_t)n * 2, sizeof *nodes);
    if (!nodes) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; r == 0 && i < n; i++)
        r = one(PyTuple_GET_ITEM(tuple, i), i, how, &nodes[i], &values[i]);
    if (r == 0)
        r = settle(nodes, n, values);
    for (int i = 0; i < n; i++)
        Py_XDECREF(nodes[i]);
    if (nodes != few)
        PyMem_Free(nodes);
    if (r < 0)
        drop_values(values, n);
    return r;
}

/* ---- results of a user's function ---- */

static int take_as_spec(PyObject *item, int i, const void *how, tensor **ret_node,
                        pl_value *ret_value)
{
    const pl_spec *spec = (const pl_spec *)how + i;
    return spec->dtype == PL_DTYPE_NONE ? take_dataset(item, ret_value)
                                        : take_item(item, spec->dtype, ret_node, ret_value);
}

int components_of(PyObject *sequence, const pl_spec *specs, int n, pl_value *ret_values)
{
    PyObject *tuple = PySequence_Tuple(sequence);
    if (!tuple)
        return -1;
    memset(ret_values, 0, (size_t)n * sizeof *ret_values);
    int r = -1;
    if (PyTuple_GET_SIZE(tuple) != n)
        PyErr_Format(PyExc_ValueError, "%zd components are given, not %d", PyTuple_GET_SIZE(tuple),
                     n);
    else
        r = take_all(tuple, take_as_spec, specs, ret_values);
    Py_DECREF(tuple);
    return r;
}

/* ---- single tensors ---- */

static int take_or_none(PyObject *item, int i, const void *how, tensor **ret_node,
                        pl_value *ret_value)
{
    const pl_dtype *dtypes = how;
    if (dtypes && item == Py_None)
        return 0;
    return take_item(item, dtypes ? dtypes[i] : PL_DTYPE_NONE, ret_node, ret_value);
}

void component_tensors_free(pl_tensor **tensors, int n)
{
    for (int i = 0; tensors && i < n; i++)
        pl_tensor_unref(tensors[i]);
    PyMem_Free(tensors);
}

int component_tensors(PyObject *sequence, const pl_dtype *dtypes, int n_dtypes,
                      pl_tensor ***ret_tensors, int *ret_n)
{
    PyObject *tuple = PySequence_Tuple(sequence);
    if (!tuple)
        return -1;
    int n = (int)PyTuple_GET_SIZE(tuple), r = -1;
    pl_tensor **tensors = PyMem_Calloc((size_t)n + 1, sizeof(pl_tensor *));
    pl_value *values = PyMem_Calloc((size_t)n + 1, sizeof *values);
    if (!tensors || !values)
        PyErr_NoMemory();
    else if (dtypes && n != n_dtypes)
        PyErr_Format(PyExc_ValueError, "%d values are given for %d components", n, n_dtypes);
    else
        r = take_all(tuple, take_or_none, dtypes, values);
    for (int i = 0; r == 0 && i < n; i++)
        tensors[i] = values[i].tensor;
    Py_DECREF(tuple);
    PyMem_Free(values);
    if (r < 0) {
        PyMem_Free(tensors);
        return -1;
    }
    *ret_tensors = tensors;
    *ret_n = n;
    return 0;
}
