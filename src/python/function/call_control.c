/* SPDX-License-Identifier: Apache-2.0 */
/* cond() and while_loop(): see pl_expr_cond() and pl_expr_while(). */
#include <errno.h>

#include "python/function/call_make.h"
#include "python/module/failure.h"
#include "python/module/streams.h"

/* ---- items ---- */

/* Gathers the inputs of a call, captured nodes included: those also decide its graph. */
static tensor **gather(tensor *const *const *groups, const int *n_of, int n_groups, int *ret_n)
{
    int n = 0, made = 0;
    for (int i = 0; i < n_groups; i++)
        n += n_of[i];
    tensor **all = PyMem_New(tensor *, n + 1);
    if (!all)
        PyErr_NoMemory();
    for (int i = 0; all && i < n_groups; i++)
        for (int k = 0; k < n_of[i]; k++)
            all[made++] = groups[i][k];
    *ret_n = n;
    return all;
}

static PyObject *raise_call(pl_error *error)
{
    if (error->code != -EINVAL)
        return failure_raise(error);
    PyErr_SetString(PyExc_TypeError, error->message);
    return NULL;
}

PyObject *call_items(pl_expr **items, int n, int r, pl_error *error, tensor *const *const *groups,
                     const int *n_of, int n_groups, const char *label, PyObject *name)
{
    PyObject *list = NULL;
    int n_inputs = 0;
    tensor **inputs = NULL;
    if (r < 0)
        raise_call(error);
    else if ((inputs = gather(groups, n_of, n_groups, &n_inputs)))
        list = tensor_items(items, n, inputs, n_inputs, label, name);
    else
        for (int i = 0; i < n; i++)
            pl_expr_unref(items[i]);
    PyMem_Free(inputs);
    PyMem_Free(items);
    return list;
}

/* The objects of the nodes of other graphs that a function captures, and that keep these graphs
 * alive. Borrowed; NULL where there is none. In a PyMem array. */
static tensor **captures_of(const function *of, int *ret_n)
{
    int n = pl_traced_n_captures(of->traced);
    tensor **nodes = PyMem_New(tensor *, n + 1);
    if (!nodes)
        PyErr_NoMemory();
    for (int i = 0; nodes && i < n; i++)
        nodes[i] = pl_expr_owner(pl_traced_capture(of->traced, i));
    *ret_n = n;
    return nodes;
}

/* Makes a call of two functions with the same inputs; `make` is a function of the library. */
typedef struct pair {
    const function *one, *other;
    tensor *pred; /* NULL: none */
    tensor **nodes;
    int n;
    int64_t n_most;
} pair;

static int make_call(const pair *of, pl_expr *const *inputs, pl_expr **items, pl_error *reterr)
{
    uint64_t stream = streams_take(1);
    return of->pred ? pl_expr_cond(of->pred->expr, of->one->traced, of->other->traced, inputs,
                                   of->n, stream, items, reterr)
                    : pl_expr_while(of->one->traced, of->other->traced, inputs, of->n, of->n_most,
                                    stream, items, reterr);
}

static PyObject *call_pair(const pair *of, const char *label, PyObject *name)
{
    int n_of[4] = {of->pred ? 1 : 0, of->n};
    pl_error error = {0};
    pl_expr **inputs = tensor_exprs(of->nodes, of->n);
    pl_expr **items = PyMem_New(pl_expr *, of->other->n_outputs + 1);
    tensor **captured = captures_of(of->one, &n_of[2]);
    tensor **by_other = captured ? captures_of(of->other, &n_of[3]) : NULL;
    PyObject *list = NULL;
    if (inputs && items && by_other) {
        tensor *const *const groups[] = {&of->pred, of->nodes, captured, by_other};
        int r = make_call(of, inputs, items, &error);
        list = call_items(items, of->other->n_outputs, r, &error, groups, n_of, 4, label, name);
    } else {
        PyMem_Free(items);
        if (!PyErr_Occurred())
            PyErr_NoMemory();
    }
    PyMem_Free(inputs);
    PyMem_Free(captured);
    PyMem_Free(by_other);
    return list;
}

/* ---- cond() ---- */

const char call_cond_doc[] =
    "cond(pred, true, false, inputs, name=None) -> list of tensors\n\n"
    "What `true` or `false`, functions of the same inputs, gives, by what `pred` turns out to be.";

PyObject *call_cond(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"pred", "true", "false", "inputs", "name", NULL};
    PyObject *pred, *on_true, *on_false, *inputs, *name = NULL, *items = NULL;
    tensor **pred_node = NULL;
    int n_pred = 0;
    pair of = {0};
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO|O:cond", names, &pred, &on_true, &on_false,
                                     &inputs, &name) ||
        arguments_name(name, &name) < 0 || arguments_nodes(inputs, NULL, &of.nodes, &of.n) < 0)
        return NULL;
    of.one = arguments_function(on_true, "cond's first function", of.n);
    of.other = of.one ? arguments_function(on_false, "cond's second function", of.n) : NULL;
    PyObject *alone = of.other ? PyTuple_Pack(1, pred) : NULL;
    if (alone && arguments_nodes(alone, NULL, &pred_node, &n_pred) == 0) {
        of.pred = pred_node[0];
        items = call_pair(&of, "cond", name);
    }
    Py_XDECREF(alone);
    arguments_free(pred_node, n_pred);
    arguments_free(of.nodes, of.n);
    return items;
}

/* ---- while_loop() ---- */

/* None: any number of rounds. */
static int rounds_of(PyObject *object, int64_t *ret_n)
{
    *ret_n = -1;
    if (!object || object == Py_None)
        return 0;
    *ret_n = PyLong_AsLongLong(object);
    if (*ret_n < 0 && !PyErr_Occurred())
        *ret_n = 0;
    return PyErr_Occurred() ? -1 : 0;
}

/* Too many values raise ValueError, as in TensorFlow. */
static int check_body(const function *body, int n)
{
    if (body->n_outputs <= n)
        return 0;
    PyErr_Format(PyExc_ValueError, "the body of while_loop gives %d values for %d inputs",
                 body->n_outputs, n);
    return -1;
}

const char call_while_doc[] =
    "while_loop(cond, body, inputs, maximum_iterations=None, name=None) -> list of tensors\n\n"
    "While `cond` is true of the inputs, `body` gives new values for the first of them.";

PyObject *call_while(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"cond", "body", "inputs", "maximum_iterations", "name", NULL};
    PyObject *condition, *body, *inputs, *most = NULL, *name = NULL, *items = NULL;
    pair of = {0};
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|OO:while_loop", names, &condition, &body,
                                     &inputs, &most, &name) ||
        rounds_of(most, &of.n_most) < 0 || arguments_name(name, &name) < 0 ||
        arguments_nodes(inputs, NULL, &of.nodes, &of.n) < 0)
        return NULL;
    of.one = arguments_function(condition, "while_loop's condition", of.n);
    of.other = of.one ? arguments_function(body, "while_loop's body", of.n) : NULL;
    if (of.other && check_body(of.other, of.n) == 0)
        items = call_pair(&of, "while_loop", name);
    arguments_free(of.nodes, of.n);
    return items;
}
