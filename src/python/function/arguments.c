/* SPDX-License-Identifier: Apache-2.0 */
#include "python/convert/convert.h"
#include "python/function/call_make.h"

void arguments_free(tensor **nodes, int n)
{
    for (int i = 0; nodes && i < n; i++)
        Py_XDECREF((PyObject *)nodes[i]);
    PyMem_Free(nodes);
}

int arguments_nodes(PyObject *sequence, const function *like, tensor ***ret_nodes, int *ret_n)
{
    PyObject *fast = PySequence_Fast(sequence, "a sequence of tensors is expected");
    if (!fast)
        return -1;
    int n = (int)PySequence_Fast_GET_SIZE(fast), made = 0;
    tensor **nodes = PyMem_Calloc((size_t)n + 1, sizeof(tensor *));
    if (!nodes)
        PyErr_NoMemory();
    for (; nodes && made < n; made++) {
        pl_dtype dtype = like && made < like->n_inputs ? like->inputs[made]->dtype : PL_DTYPE_NONE;
        nodes[made] = convert_to_node(PySequence_Fast_GET_ITEM(fast, made), dtype, PL_DTYPE_NONE);
        if (!nodes[made])
            break;
    }
    Py_DECREF(fast);
    if (nodes && made == n) {
        *ret_nodes = nodes;
        *ret_n = n;
        return 0;
    }
    arguments_free(nodes, made);
    return -1;
}

function *arguments_function(PyObject *object, const char *what, int n_inputs)
{
    if (!PyObject_TypeCheck(object, function_type)) {
        PyErr_Format(PyExc_TypeError, "%s is to be a Function, not %s", what,
                     Py_TYPE(object)->tp_name);
        return NULL;
    }
    function *found = (function *)object;
    if (found->n_inputs == n_inputs)
        return found;
    PyErr_Format(PyExc_TypeError, "%s takes %d inputs, and is given %d", what, found->n_inputs,
                 n_inputs);
    return NULL;
}

int arguments_name(PyObject *object, PyObject **ret_name)
{
    if (object && object != Py_None && !PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "a name is a str, not %s", Py_TYPE(object)->tp_name);
        return -1;
    }
    *ret_name = object == Py_None ? NULL : object;
    return 0;
}
