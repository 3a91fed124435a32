/* SPDX-License-Identifier: Apache-2.0 */
/* Calls Python from the library, in any thread: takes the GIL for the time of the call. The caller
 * holds none of our locks. */
#include "python/function/callback.h"

#include <errno.h>

#include "python/convert/component.h"
#include "python/convert/specs.h"
#include "python/dataset/dataset_type.h"
#include "python/module/failure.h"
#include "python/module/gil.h"
#include "python/tensor/evaluate.h"

typedef struct callback {
    PyObject ob_base;
    PyObject *callable; /* NULL: cleared by the collector */
    pl_spec *specs;
    int n_specs;
} callback;

PyTypeObject *callback_type;

/* Returns the callable, referenced for the length of a call. */
static PyObject *callable_of(callback *self)
{
    if (!self->callable)
        PyErr_SetString(PyExc_RuntimeError, "the function was collected with its dataset");
    return Py_XNewRef(self->callable);
}

/* Sets up Python for a call from the library: outside of every graph, with computations that are
 * cancelled with the pass, and random ops that draw by the element. */
typedef struct stay {
    PyGILState_STATE gil;
    tensor_context context;
    pl_run_options options;
    const pl_run_options *outer;
} stay;

static bool stay_begin(stay *self, pl_error *reterr)
{
    if (!gil_take(&self->gil)) {
        pl_error_set(reterr, -ECANCELED, "Python is ending: its functions are not called");
        return false;
    }
    self->options = (pl_run_options){.size = sizeof self->options,
                                     .cancel = pl_dataset_cancel(),
                                     .random_stream = pl_dataset_random_stream()};
    self->outer = evaluate_within(&self->options);
    self->context = tensor_in;
    tensor_in = (tensor_context){0};
    return true;
}

static void stay_end(stay *self)
{
    tensor_in = self->context;
    evaluate_within(self->outer);
    gil_give(self->gil);
}

/* ---- a function of an element ---- */

static PyObject *call_with(callback *self, const pl_value *inputs, int n)
{
    PyObject *few[9], *result = NULL; /* vectorcall may use the first place */
    PyObject **arguments = n < 9 ? few : PyMem_Malloc(((size_t)n + 1) * sizeof *arguments);
    PyObject *callable = callable_of(self);
    int made = 0;
    if (!arguments)
        PyErr_NoMemory();
    for (; callable && arguments && made < n; made++) {
        pl_value own = {inputs[made].tensor ? pl_tensor_ref(inputs[made].tensor) : NULL,
                        inputs[made].dataset ? pl_dataset_ref(inputs[made].dataset) : NULL};
        arguments[made + 1] = component_object(own);
        if (!arguments[made + 1])
            break;
    }
    if (callable && arguments && made == n)
        result = PyObject_Vectorcall(callable, arguments + 1,
                                     (size_t)n | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    for (int i = 0; i < made; i++)
        Py_DECREF(arguments[i + 1]);
    Py_XDECREF(callable);
    if (arguments != few)
        PyMem_Free(arguments);
    return result;
}

static int call_function(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                         int n_outputs, pl_error *reterr)
{
    stay in_python;
    if (!stay_begin(&in_python, reterr))
        return -ECANCELED;
    callback *self = context;
    PyObject *result = call_with(self, inputs, n_inputs);
    int r = result ? components_of(result, self->specs, n_outputs, outputs) : -1;
    Py_XDECREF(result);
    if (r < 0)
        r = failure_take(reterr);
    stay_end(&in_python);
    return r;
}

pl_function callback_function(PyObject *self, int n_inputs)
{
    const callback *own = (const callback *)self;
    return (pl_function){.call = call_function,
                         .output_specs = own->specs,
                         .n_inputs = n_inputs,
                         .n_outputs = own->n_specs,
                         .context = Py_NewRef(self),
                         .release = gil_decref};
}

/* ---- a generator: its state is the Python iterator and its callback ---- */

static int begin(void *context, void **ret_state, pl_error *reterr)
{
    stay in_python;
    if (!stay_begin(&in_python, reterr))
        return -ECANCELED;
    PyObject *callable = callable_of(context);
    PyObject *iterable = callable ? PyObject_CallNoArgs(callable) : NULL;
    PyObject *iterator = iterable ? PyObject_GetIter(iterable) : NULL;
    PyObject *state = iterator ? PyTuple_Pack(2, iterator, context) : NULL;
    Py_XDECREF(callable);
    Py_XDECREF(iterable);
    Py_XDECREF(iterator);
    int r = state ? 0 : failure_take(reterr);
    if (state)
        *ret_state = state;
    stay_end(&in_python);
    return r;
}

static int next(void *state, pl_value *ret_values, int n_values, pl_error *reterr)
{
    stay in_python;
    if (!stay_begin(&in_python, reterr))
        return -ECANCELED;
    const callback *of = (const callback *)PyTuple_GET_ITEM(state, 1);
    PyObject *element = PyIter_Next(PyTuple_GET_ITEM(state, 0));
    int r = element ? 1 : 0;
    if (element && components_of(element, of->specs, n_values, ret_values) < 0)
        r = -1;
    if (PyErr_Occurred())
        r = failure_take(reterr);
    Py_XDECREF(element);
    stay_end(&in_python);
    return r;
}

pl_generator callback_generator(PyObject *self, int64_t cardinality)
{
    const callback *own = (const callback *)self;
    return (pl_generator){.begin = begin,
                          .next = next,
                          .end = gil_decref,
                          .specs = own->specs,
                          .n_components = own->n_specs,
                          .cardinality = cardinality,
                          .context = Py_NewRef(self),
                          .release = gil_decref};
}

/* ---- the type ---- */

PyObject *callback_new(PyObject *callable, PyObject *specs)
{
    if (!PyCallable_Check(callable)) {
        PyErr_Format(PyExc_TypeError, "a function is expected, not %.80s",
                     Py_TYPE(callable)->tp_name);
        return NULL;
    }
    pl_spec *made;
    int n;
    if (specs_of(specs, &made, &n) < 0)
        return NULL;
    callback *self = PyObject_GC_New(callback, callback_type);
    if (!self) {
        specs_free(made, n);
        return NULL;
    }
    self->callable = Py_NewRef(callable);
    self->specs = made;
    self->n_specs = n;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    (void)type;
    static char *names[] = {"callable", "output_specs", NULL};
    PyObject *callable, *specs;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO:Callback", names, &callable, &specs))
        return NULL;
    return callback_new(callable, specs);
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((callback *)self)->callable);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(((callback *)self)->callable);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    specs_free(((callback *)self)->specs, ((callback *)self)->n_specs);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    {Py_tp_new, make},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc},
    {Py_tp_doc, "Callback(callable, output_specs): a Python function for elements of a dataset"},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "plimsoll._core.Callback",
    .basicsize = sizeof(callback),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

int module_add_callbacks(PyObject *module)
{
    callback_type = dataset_add_type(module, &spec);
    return callback_type ? 0 : -1;
}
