/* SPDX-License-Identifier: Apache-2.0 */
#include "python/convert/specs.h"

#include "python/convert/convert.h"

void specs_free(pl_spec *specs, int n)
{
    for (int i = 0; specs && i < n; i++)
        specs_free((pl_spec *)specs[i].of, specs[i].n_of);
    PyMem_Free(specs);
}

static int spec_of(PyObject *given, pl_spec *ret_spec)
{
    PyObject *dtype, *shape = Py_None, *of = Py_None;
    if (!PyTuple_Check(given) ||
        !PyArg_ParseTuple(given, "O|OO;a spec is (dtype, shape, specs)", &dtype, &shape, &of)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "a spec is a tuple (dtype, shape, specs), not %.80s",
                         Py_TYPE(given)->tp_name);
        return -1;
    }
    ret_spec->shape.rank = PL_RANK_UNKNOWN;
    if (of != Py_None)
        return specs_of(of, (pl_spec **)&ret_spec->of, &ret_spec->n_of);
    int number = convert_dtype(dtype);
    if (number == PL_DTYPE_NONE)
        PyErr_SetString(PyExc_TypeError, "a spec needs a dtype, or the specs of a dataset");
    if (number <= PL_DTYPE_NONE)
        return -1;
    ret_spec->dtype = (pl_dtype)number;
    return shape == Py_None ? 0 : convert_shape(shape, &ret_spec->shape);
}

int specs_of(PyObject *sequence, pl_spec **ret_specs, int *ret_n)
{
    PyObject *fast = PySequence_Fast(sequence, "specs are a sequence of (dtype, shape, specs)");
    if (!fast)
        return -1;
    int n = (int)PySequence_Fast_GET_SIZE(fast), r = 0;
    pl_spec *specs = PyMem_Calloc((size_t)n + 1, sizeof *specs);
    if (!specs) {
        PyErr_NoMemory();
        r = -1;
    }
    for (int i = 0; r == 0 && i < n; i++)
        r = spec_of(PySequence_Fast_GET_ITEM(fast, i), &specs[i]);
    Py_DECREF(fast);
    if (r < 0) {
        specs_free(specs, n);
        return -1;
    }
    *ret_specs = specs;
    *ret_n = n;
    return 0;
}

static PyObject *spec_object(const pl_spec *spec)
{
    if (spec->dtype == PL_DTYPE_NONE)
        return Py_BuildValue("(OON)", Py_None, Py_None, specs_object(spec->of, spec->n_of));
    return Py_BuildValue("(NNO)", convert_dtype_object(spec->dtype),
                         convert_shape_tuple(&spec->shape), Py_None);
}

PyObject *specs_object(const pl_spec *specs, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *one = spec_object(&specs[i]);
        if (!one)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, one);
    }
    return list;
}
