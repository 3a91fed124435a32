/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a Python function between graphs: a foreign call of the library, whose callback takes the
 * GIL. Outside of graphs and traces it is called at once, because it is called for its effects. */
#include <errno.h>
#include <stdlib.h>

#include "python/convert/convert.h"
#include "python/function/call_make.h"
#include "python/module/failure.h"
#include "python/module/gil.h"
#include "python/tensor/evaluate.h"

typedef struct python {
    PyObject *callable;
    bool numpy; /* takes NumPy arrays */
    int n_inputs, n_outputs;
    pl_type outputs[];
} python;

/* ---- calling the function ---- */

static PyObject *argument_of(const python *self, pl_tensor *value)
{
    return self->numpy ? convert_to_numpy_value(value)
                       : (PyObject *)tensor_of_value(pl_tensor_ref(value), NULL);
}

static PyObject *call_it(const python *self, pl_tensor *const *inputs)
{
    PyObject *args = PyTuple_New(self->n_inputs);
    for (int i = 0; args && i < self->n_inputs; i++) {
        PyObject *arg = argument_of(self, inputs[i]);
        if (arg)
            PyTuple_SET_ITEM(args, i, arg);
        else
            Py_CLEAR(args);
    }
    PyObject *result = args ? PyObject_Call(self->callable, args, NULL) : NULL;
    Py_XDECREF(args);
    return result;
}

static int refuse(const char *format, int i, const char *is, const char *expected)
{
    pl_error error = {0};
    pl_error_set(&error, -EINVAL, format, i, is, expected);
    failure_raise(&error);
    return -1;
}

/* Numbers and lists are converted to the expected dtype, and so are arrays if they can be. A
 * tensor, or an array from a function of arrays, must have that dtype. */
static pl_tensor *value_of(const python *self, int i, PyObject *result)
{
    const pl_type *wanted = &self->outputs[i];
    bool is_said = self->numpy && PyObject_HasAttrString(result, "dtype");
    tensor *node = convert_to_node(result, PL_DTYPE_NONE, is_said ? PL_DTYPE_NONE : wanted->dtype);
    if (!node)
        return NULL;
    pl_tensor *value = NULL;
    if (node->dtype != wanted->dtype)
        refuse("py_function: value %d that it returned is %s, but %s is expected", i,
               convert_dtype_name(node->dtype), convert_dtype_name(wanted->dtype));
    else if (evaluate(&node, 1) == 0)
        value = pl_tensor_ref(tensor_has(node));
    Py_DECREF((PyObject *)node);
    return value;
}

/* Returns a sequence of the results; anything but a list or tuple is the only result. */
static int take_results(const python *self, PyObject *result, pl_tensor **outputs)
{
    int n = self->n_outputs, made = 0;
    if (n == 0)
        return 0;
    bool many = PyList_Check(result) || PyTuple_Check(result);
    Py_ssize_t n_given = many ? PySequence_Fast_GET_SIZE(result) : 1;
    if (n_given != n) {
        PyErr_Format(PyExc_ValueError, "py_function returned %zd values, and %d are expected",
                     n_given, n);
        return -1;
    }
    for (; made < n; made++) {
        PyObject *item = many ? PySequence_Fast_GET_ITEM(result, made) : result;
        outputs[made] = value_of(self, made, item);
        if (!outputs[made])
            break;
    }
    for (int i = 0; made < n && i < made; i++) {
        pl_tensor_unref(outputs[i]);
        outputs[i] = NULL;
    }
    return made == n ? 0 : -1;
}

static int run_in_python(const python *self, pl_tensor *const *inputs, pl_tensor **outputs)
{
    PyObject *result = call_it(self, inputs);
    int r = result ? take_results(self, result, outputs) : -1;
    Py_XDECREF(result);
    return r;
}

static int call_back(void *context, pl_tensor *const *inputs, int n_inputs, pl_tensor **outputs,
                     int n_outputs, const pl_run_options *options, pl_error *reterr)
{
    PyGILState_STATE gil;
    (void)n_inputs;
    (void)n_outputs;
    if (!gil_take(&gil))
        return pl_error_set(reterr, -ECANCELED, "Python is at its end: py_function is not called");
    const pl_run_options *outer = evaluate_within(options);
    int r = run_in_python(context, inputs, outputs);
    if (r < 0) {
        evaluate_note_raised();
        r = failure_take(reterr);
    }
    evaluate_within(outer);
    gil_give(gil);
    return r;
}

/* ---- life ---- */

static void python_free(python *self)
{
    Py_XDECREF(self->callable);
    PyMem_Free(self);
}

/* From any thread. When Python is ending, leaks it. */
static void release(void *context)
{
    PyGILState_STATE gil;
    if (!gil_take(&gil))
        return;
    python_free(context);
    gil_give(gil);
}

static int take_specs(python *self, PyObject *specs)
{
    for (int i = 0; i < self->n_outputs; i++) {
        PyObject *pair = PySequence_Fast(PySequence_Fast_GET_ITEM(specs, i), "(dtype, shape)");
        if (!pair)
            return -1;
        int dtype = PySequence_Fast_GET_SIZE(pair) == 2
                        ? convert_dtype(PySequence_Fast_GET_ITEM(pair, 0))
                        : -1;
        if (dtype <= 0 && !PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "an output must be (dtype, shape or None)");
        pl_type *type = &self->outputs[i];
        type->dtype = (pl_dtype)dtype;
        int r = dtype <= 0 ? -1 : convert_shape(PySequence_Fast_GET_ITEM(pair, 1), &type->shape);
        Py_DECREF(pair);
        if (r < 0)
            return -1;
    }
    return 0;
}

static python *make(PyObject *callable, PyObject *specs, int n_inputs, bool numpy)
{
    int n_outputs = (int)PySequence_Fast_GET_SIZE(specs);
    python *self = PyMem_Calloc(1, sizeof *self + (size_t)n_outputs * sizeof *self->outputs);
    if (!self)
        return (python *)PyErr_NoMemory();
    self->callable = Py_NewRef(callable);
    self->numpy = numpy;
    self->n_inputs = n_inputs;
    self->n_outputs = n_outputs;
    if (take_specs(self, specs) == 0)
        return self;
    python_free(self);
    return NULL;
}

/* Takes it over. */
static PyObject *call_later(python *self, tensor *const *nodes, PyObject *name)
{
    int n = self->n_inputs, n_outputs = self->n_outputs;
    PyObject *list = NULL;
    pl_error error = {0};
    pl_expr **inputs = tensor_exprs(nodes, n);
    pl_expr **items = inputs ? PyMem_New(pl_expr *, n_outputs + 1) : NULL;
    const pl_foreign foreign = {.size = sizeof foreign,
                                .name = "py_function",
                                .call = call_back,
                                .outputs = self->outputs,
                                .n_outputs = n_outputs,
                                .context = self,
                                .release = release};
    if (!items) {
        python_free(self);
        PyErr_NoMemory();
    } else if (pl_expr_foreign(&foreign, inputs, n, items, &error) < 0) {
        failure_raise(&error);
    } else {
        list = tensor_items(items, n_outputs, nodes, n, "py_function", name);
    }
    PyMem_Free(items);
    PyMem_Free(inputs);
    return list;
}

/* ---- calling it at once ---- */

static bool waits(tensor *const *nodes, int n)
{
    for (int i = 0; i < n; i++)
        if (pl_expr_is_symbolic(nodes[i]->expr) || nodes[i]->graph)
            return true;
    return tensor_in.graph != NULL;
}

static PyObject *list_of_values(pl_tensor **values, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; i < n; i++) {
        PyObject *node = list ? (PyObject *)tensor_of_value(values[i], NULL) : NULL;
        if (!list)
            pl_tensor_unref(values[i]);
        else if (node)
            PyList_SET_ITEM(list, i, node);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* Exceptions reach the caller unchanged. */
static PyObject *call_now(python *self, tensor *const *nodes, int n)
{
    PyObject *list = NULL;
    int n_outputs = self->n_outputs;
    pl_tensor **inputs = PyMem_Calloc((size_t)n + (size_t)n_outputs + 1, sizeof *inputs);
    if (!inputs)
        PyErr_NoMemory();
    else if (evaluate(nodes, n) == 0) {
        for (int i = 0; i < n; i++)
            inputs[i] = tensor_has(nodes[i]);
        if (run_in_python(self, inputs, inputs + n) == 0)
            list = list_of_values(inputs + n, n_outputs);
    }
    PyMem_Free(inputs);
    python_free(self);
    return list;
}

const char call_python_doc[] =
    "python_call(fn, inputs, outputs, name=None, numpy=False) -> list of tensors\n\n"
    "What fn(*inputs) returns: a sequence of as many values as `outputs` says, [(dtype, shape)].\n"
    "In a graph or trace it is called in each run; else at once.";

PyObject *call_python(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"fn", "inputs", "outputs", "name", "numpy", NULL};
    PyObject *callable, *inputs, *outputs, *name = NULL, *items = NULL;
    int numpy = 0, n = 0;
    tensor **nodes = NULL;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|Op:python_call", names, &callable, &inputs,
                                     &outputs, &name, &numpy) ||
        arguments_name(name, &name) < 0)
        return NULL;
    PyObject *specs = PySequence_Fast(outputs, "outputs is a sequence of (dtype, shape)");
    if (specs && arguments_nodes(inputs, NULL, &nodes, &n) == 0) {
        python *self = make(callable, specs, n, numpy != 0);
        if (self)
            items = waits(nodes, n) ? call_later(self, nodes, name) : call_now(self, nodes, n);
    }
    arguments_free(nodes, n);
    Py_XDECREF(specs);
    return items;
}
