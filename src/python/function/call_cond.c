/* SPDX-License-Identifier: Apache-2.0 */
/* One of two functions, by a bool that a run computes.
 *   inputs: the bool, what both take, what the one has captured, what the other has */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/convert/types.h"
#include "python/function/call_make.h"

typedef struct cond {
    call base;
    function *either[2]; /* false, true */
    int n_given;
} cond;

static int run(call *base, pl_tensor *const *inputs, pl_tensor **outputs, const run_state *state,
               pl_error *reterr)
{
    const cond *self = (cond *)base;
    bool value;
    int r = call_read_bool(inputs[0], "cond", &value, reterr);
    if (r < 0)
        return r;
    function *chosen = self->either[value];
    int n_captured = function_n_captures(chosen);
    int skipped = value ? 0 : function_n_captures(self->either[1]);
    pl_tensor **given = malloc(((size_t)self->n_given + (size_t)n_captured + 1) * sizeof *given);
    if (!given)
        return pl_error_set(reterr, -ENOMEM, "no memory for a condition");
    memcpy(given, inputs + 1, (size_t)self->n_given * sizeof *given);
    memcpy(given + self->n_given, inputs + 1 + self->n_given + skipped,
           (size_t)n_captured * sizeof *given);
    r = function_run(chosen, given, state, outputs, reterr);
    free(given);
    return r;
}

static void free_cond(call *base)
{
    cond *self = (cond *)base;
    Py_XDECREF(self->either[0]);
    Py_XDECREF(self->either[1]);
    free(self);
}

static const call_class cond_class = {.name = "cond", .run = run, .free = free_cond, .draws = true};

static int check_outputs(const function *one, const function *other)
{
    int n = function_n_outputs(one);
    if (n != function_n_outputs(other)) {
        PyErr_Format(PyExc_TypeError, "the branches of cond give %d and %d values", n,
                     function_n_outputs(other));
        return -1;
    }
    for (int i = 0; i < n; i++)
        if (function_output_type(one, i)->dtype != function_output_type(other, i)->dtype) {
            PyErr_Format(PyExc_TypeError, "value %d of cond has another dtype in each branch", i);
            return -1;
        }
    return 0;
}

static cond *make(function *on_true, function *on_false, int n_given)
{
    cond *self = calloc(1, sizeof *self);
    int n_inputs = 1 + n_given + function_n_captures(on_true) + function_n_captures(on_false);
    int n_outputs = function_n_outputs(on_true);
    if (!self || call_init(&self->base, &cond_class, n_inputs, n_outputs) < 0) {
        free(self);
        return (cond *)PyErr_NoMemory();
    }
    self->n_given = n_given;
    self->base.impure = function_is_impure(on_true) || function_is_impure(on_false);
    self->either[0] = (function *)Py_NewRef((PyObject *)on_false);
    self->either[1] = (function *)Py_NewRef((PyObject *)on_true);
    for (int i = 0; i < n_outputs; i++)
        self->base.outputs[i] =
            types_join(function_output_type(on_true, i), function_output_type(on_false, i));
    return self;
}

const char call_cond_doc[] =
    "cond(pred, true, false, inputs, name=None) -> list of tensors\n\n"
    "What `true` or `false`, functions of the same inputs, gives, by what `pred` turns out to be.";

PyObject *call_cond(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"pred", "true", "false", "inputs", "name", NULL};
    PyObject *pred, *on_true, *on_false, *inputs, *name = NULL, *items = NULL;
    tensor **nodes = NULL, **pred_node = NULL;
    int n = 0, n_pred = 0;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO|O:cond", names, &pred, &on_true, &on_false,
                                     &inputs, &name) ||
        arguments_name(name, &name) < 0 || arguments_nodes(inputs, NULL, &nodes, &n) < 0)
        return NULL;
    function *yes = arguments_function(on_true, "cond's first function", n);
    function *no = yes ? arguments_function(on_false, "cond's second function", n) : NULL;
    PyObject *alone = no && check_outputs(yes, no) == 0 ? PyTuple_Pack(1, pred) : NULL;
    if (alone && arguments_nodes(alone, NULL, &pred_node, &n_pred) == 0) {
        cond *self = make(yes, no, n);
        tensor *const *const groups[] = {pred_node, nodes, function_captures(yes),
                                         function_captures(no)};
        const int n_of[] = {1, n, function_n_captures(yes), function_n_captures(no)};
        items = self ? call_of_nodes(&self->base, groups, n_of, 4, name) : NULL;
    }
    Py_XDECREF(alone);
    arguments_free(pred_node, n_pred);
    arguments_free(nodes, n);
    return items;
}
