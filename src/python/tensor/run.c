/* SPDX-License-Identifier: Apache-2.0 */
/* The module's run(), evaluate(), explain() and save_npy(). */
#include <stdlib.h>

#include "python/convert/convert.h"
#include "python/convert/types.h"
#include "python/function/call_make.h"
#include "python/module/failure.h"
#include "python/module/interrupt.h"
#include "python/module/progress.h"
#include "python/module/streams.h"
#include "python/tensor/evaluate.h"

/* ---- feeds ---- */

typedef struct feeds {
    tensor **nodes; /* references, like the values of the pairs */
    pl_expr_feed *pairs;
    int n;
} feeds;

static void drop_feeds(feeds *self)
{
    for (int i = 0; i < self->n; i++) {
        Py_XDECREF((PyObject *)self->nodes[i]);
        pl_tensor_unref(self->pairs[i].value);
    }
    PyMem_Free(self->nodes);
    PyMem_Free(self->pairs);
}

static int refuse_shape(const tensor *node, const pl_tensor *value)
{
    PyObject *is = convert_shape_tuple(pl_tensor_shape(value));
    const pl_shape shape = tensor_shape(node);
    PyObject *wanted = convert_shape_tuple(&shape);
    if (is && wanted)
        PyErr_Format(PyExc_ValueError,
                     "Cannot feed value of shape %R for Tensor '%s', which has shape '%R'", is,
                     tensor_label(node), wanted);
    Py_XDECREF(is);
    Py_XDECREF(wanted);
    return -1;
}

/* A tensor is fed unchanged, even a pending one. */
static pl_tensor *value_for(const tensor *node, PyObject *value)
{
    tensor *given = convert_to_node(value, node->dtype, PL_DTYPE_NONE);
    pl_tensor *found = NULL;
    if (given && evaluate(&given, 1) == 0)
        found = pl_tensor_ref(tensor_has(given));
    Py_XDECREF((PyObject *)given);
    return found;
}

static int add_feed(feeds *self, PyObject *pair)
{
    PyObject *node, *value;
    if (!PyArg_ParseTuple(pair, "O!O;a feed is (Tensor, value)", tensor_type, &node, &value))
        return -1;
    for (int i = 0; i < self->n; i++)
        if ((PyObject *)self->nodes[i] == node) {
            PyErr_Format(PyExc_ValueError, "'%s' is fed twice", tensor_label((tensor *)node));
            return -1;
        }
    pl_tensor *given = value_for((tensor *)node, value);
    if (!given)
        return -1;
    const pl_shape shape = tensor_shape((tensor *)node);
    self->pairs[self->n] = (pl_expr_feed){((tensor *)node)->expr, given};
    self->nodes[self->n++] = (tensor *)Py_NewRef(node);
    return types_agree(&shape, pl_tensor_shape(given)) ? 0 : refuse_shape((tensor *)node, given);
}

/* On failure, the caller drops the feeds taken so far. */
static int take_feeds(feeds *self, PyObject *pairs)
{
    *self = (feeds){0};
    if (!pairs || pairs == Py_None)
        return 0;
    PyObject *fast = PySequence_Fast(pairs, "feeds is a sequence of (Tensor, value)");
    if (!fast)
        return -1;
    size_t n = (size_t)PySequence_Fast_GET_SIZE(fast) + 1;
    self->nodes = PyMem_Calloc(n, sizeof *self->nodes);
    self->pairs = PyMem_Calloc(n, sizeof *self->pairs);
    int r = self->nodes && self->pairs ? 0 : -1;
    if (r < 0)
        PyErr_NoMemory();
    for (size_t i = 0; r == 0 && i + 1 < n; i++)
        r = add_feed(self, PySequence_Fast_GET_ITEM(fast, (Py_ssize_t)i));
    Py_DECREF(fast);
    return r;
}

/* ---- the arguments of a run ---- */

typedef struct task {
    tensor **fetches; /* references */
    int n_fetches;
    feeds feeds;
    tensor **first; /* references: a node and its target, or NULL, for each pair */
    pl_expr_first *pairs;
    int n_first;
    pl_evaluation *evaluation;
} task;

static void task_done(task *self)
{
    pl_evaluation_free(self->evaluation);
    for (int i = 0; i < 2 * self->n_first; i++)
        Py_XDECREF((PyObject *)self->first[i]);
    PyMem_Free(self->first);
    PyMem_Free(self->pairs);
    drop_feeds(&self->feeds);
    arguments_free(self->fetches, self->n_fetches);
}

/* A pair is a node and its target. */
static int add_first(task *self, PyObject *item)
{
    PyObject *node = item, *target = NULL;
    if (PyTuple_Check(item) &&
        !PyArg_ParseTuple(item, "OO;(node, target) is expected", &node, &target))
        return -1;
    if (!tensor_check(node) || (target && !tensor_check(target))) {
        PyErr_SetString(PyExc_TypeError, "first: a Tensor or a pair of them is expected");
        return -1;
    }
    self->pairs[self->n_first] =
        (pl_expr_first){((tensor *)node)->expr, target ? ((tensor *)target)->expr : NULL};
    self->first[2 * self->n_first] = (tensor *)Py_NewRef(node);
    self->first[2 * self->n_first++ + 1] = (tensor *)Py_XNewRef(target);
    return 0;
}

static int take_first(task *self, PyObject *first)
{
    if (!first || first == Py_None)
        return 0;
    PyObject *fast = PySequence_Fast(first, "first is a sequence of Tensors and pairs of them");
    if (!fast)
        return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    self->first = PyMem_Calloc(2 * (size_t)n + 1, sizeof *self->first);
    self->pairs = PyMem_Calloc((size_t)n + 1, sizeof *self->pairs);
    int r = self->first && self->pairs ? 0 : -1;
    if (r < 0)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; r == 0 && i < n; i++)
        r = add_first(self, PySequence_Fast_GET_ITEM(fast, i));
    Py_DECREF(fast);
    return r;
}

/* Computes exprs that draw once before the run, in which the others draw anew. */
static int make_evaluation(task *self, pl_evaluator *evaluator)
{
    pl_expr **fetches = tensor_exprs(self->fetches, self->n_fetches);
    if (!fetches)
        return -1;
    const pl_evaluation_request request = {.size = sizeof request,
                                           .fetches = fetches,
                                           .n_fetches = self->n_fetches,
                                           .feeds = self->feeds.pairs,
                                           .n_feeds = self->feeds.n,
                                           .first = self->pairs,
                                           .n_first = self->n_first};
    pl_error error;
    pl_error_init(&error);
    int r = pl_evaluation_new(evaluator, &request, &self->evaluation, &error);
    if (r > 0) {
        int n;
        pl_evaluation *before = self->evaluation;
        pl_expr *const *draws = pl_evaluation_draws(before, &n);
        self->evaluation = NULL;
        bool drawn = evaluate_exprs(draws, n) == 0;
        pl_evaluation_free(before);
        r = drawn ? pl_evaluation_new(evaluator, &request, &self->evaluation, &error) : -1;
    }
    PyMem_Free(fetches);
    if (r < 0 && !PyErr_Occurred())
        failure_raise(&error);
    pl_error_done(&error);
    return r;
}

static int task_make(task *self, PyObject *fetches, PyObject *pairs, PyObject *first)
{
    *self = (task){0};
    pl_evaluator *evaluator = module_evaluator();
    if (!evaluator || arguments_nodes(fetches, NULL, &self->fetches, &self->n_fetches) < 0)
        return -1;
    if (take_feeds(&self->feeds, pairs) == 0 && take_first(self, first) == 0 &&
        make_evaluation(self, evaluator) == 0)
        return 0;
    task_done(self);
    return -1;
}

/* ---- run() ---- */

/* The caller's texts; NULL in *ret if no file is wanted. */
static int take_paths(PyObject *out, int n, PyObject ***ret_held, const char ***ret_paths)
{
    *ret_held = NULL;
    *ret_paths = NULL;
    if (!out || out == Py_None)
        return 0;
    PyObject *fast = PySequence_Fast(out, "out is a sequence of paths and None");
    if (!fast)
        return -1;
    int r = PySequence_Fast_GET_SIZE(fast) == n ? 0 : -1;
    if (r < 0)
        PyErr_Format(PyExc_ValueError, "out has %zd paths for %d fetches",
                     PySequence_Fast_GET_SIZE(fast), n);
    *ret_held = PyMem_Calloc((size_t)n + 1, sizeof(PyObject *));
    *ret_paths = PyMem_Calloc((size_t)n + 1, sizeof(char *));
    if (r == 0 && (!*ret_held || !*ret_paths)) {
        PyErr_NoMemory();
        r = -1;
    }
    for (int i = 0; r == 0 && i < n; i++) {
        PyObject *path = PySequence_Fast_GET_ITEM(fast, i);
        if (path == Py_None)
            continue;
        r = PyUnicode_FSConverter(path, &(*ret_held)[i]) ? 0 : -1;
        if (r == 0)
            (*ret_paths)[i] = PyBytes_AS_STRING((*ret_held)[i]);
    }
    Py_DECREF(fast);
    return r;
}

static void drop_paths(PyObject **held, const char **paths, int n)
{
    for (int i = 0; held && i < n; i++)
        Py_XDECREF(held[i]);
    PyMem_Free(held);
    PyMem_Free(paths);
}

static PyObject *results_of(pl_tensor **values, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; i < n; i++) {
        if (!list) {
            pl_tensor_unref(values[i]);
            continue;
        }
        PyObject *result =
            values[i] ? (PyObject *)tensor_of_value(values[i], NULL) : Py_NewRef(Py_None);
        if (result)
            PyList_SET_ITEM(list, i, result);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *run_task(task *self, const char *const *paths, uint64_t budget, uint64_t stream)
{
    PyObject *list = NULL;
    pl_tensor **values = PyMem_Calloc((size_t)self->n_fetches + 1, sizeof *values);
    if (!values)
        return PyErr_NoMemory();
    pl_run_options options = {.budget_bytes = budget, .random_stream = stream};
    pl_error error = {0};
    int r = evaluate_run(self->evaluation, paths, &options, values, &error);
    if (r == 0)
        list = results_of(values, self->n_fetches);
    else if (!PyErr_Occurred())
        failure_raise(&error);
    pl_error_done(&error);
    PyMem_Free(values);
    return list;
}

/* Each run of a graph draws anew, unless it is given a stream. */
static int take_stream(PyObject *object, uint64_t *ret_stream)
{
    if (!object || object == Py_None) {
        *ret_stream = pl_stream_mix(streams_take(1));
        return 0;
    }
    *ret_stream = PyLong_AsUnsignedLongLongMask(object);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *run(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"fetches", "feeds", "out", "budget", "stream", "first", NULL};
    PyObject *fetches, *pairs = NULL, *out = NULL, *stream_object = NULL, *first = NULL;
    PyObject *list = NULL;
    unsigned long long budget = 0;
    uint64_t stream;
    task t;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOKOO:run", names, &fetches, &pairs, &out,
                                     &budget, &stream_object, &first) ||
        take_stream(stream_object, &stream) < 0 || task_make(&t, fetches, pairs, first) < 0)
        return NULL;
    PyObject **held;
    const char **paths;
    if (take_paths(out, t.n_fetches, &held, &paths) == 0)
        list = run_task(&t, paths, budget, stream);
    drop_paths(held, paths, t.n_fetches);
    task_done(&t);
    return list;
}

static PyObject *evaluate_method(PyObject *module, PyObject *tensors)
{
    tensor **asked;
    int n;
    (void)module;
    if (arguments_nodes(tensors, NULL, &asked, &n) < 0)
        return NULL;
    int r = evaluate(asked, n);
    arguments_free(asked, n);
    if (r < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- explain() ---- */

static PyObject *explain(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tensors", "feeds", "json", "budget", NULL};
    PyObject *fetches, *pairs = NULL, *told = NULL;
    unsigned long long budget = 0;
    int as_json = 0, r;
    task t;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OpK:explain", names, &fetches, &pairs,
                                     &as_json, &budget) ||
        task_make(&t, fetches, pairs, NULL) < 0)
        return NULL;
    char *text = NULL;
    pl_run_cost cost;
    pl_error error = {0};
    const pl_run_options options = {.size = sizeof options, .budget_bytes = budget};
    Py_BEGIN_ALLOW_THREADS;
    r = pl_evaluation_explain(t.evaluation, &options, as_json != 0, &text, &cost, &error);
    Py_END_ALLOW_THREADS;
    if (r < 0)
        failure_raise(&error);
    else
        told = Py_BuildValue("s{sKsKsdsi}", text, "peak_bytes", (unsigned long long)cost.peak_bytes,
                             "disk_bytes", (unsigned long long)cost.disk_bytes, "flops", cost.flops,
                             "n_unknown", cost.n_unknown);
    free(text);
    task_done(&t);
    return told;
}

/* ---- save_npy() ---- */

static PyObject *save_npy(PyObject *module, PyObject *args)
{
    PyObject *value, *path, *done = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:save_npy", &value, &path))
        return NULL;
    PyObject *held = NULL, *fetches = PyTuple_Pack(1, value);
    task t;
    if (fetches && PyUnicode_FSConverter(path, &held) && task_make(&t, fetches, NULL, NULL) == 0) {
        const char *paths[] = {PyBytes_AS_STRING(held)};
        PyObject *list = run_task(&t, paths, 0, pl_stream_mix(streams_take(1)));
        done = list ? Py_NewRef(Py_None) : NULL;
        Py_XDECREF(list);
        task_done(&t);
    }
    Py_XDECREF(held);
    Py_XDECREF(fetches);
    return done;
}

/* ---- the methods of the module ---- */

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_VARARGS | METH_KEYWORDS,
     "run(fetches, feeds=[], out=None, budget=0, stream=None, first=[]) -> list\n\n"
     "The values of tensors, with others fed: [(Tensor, value)]. `out`: for each a path, where it\n"
     "is written as .npy file, whatever its size, and then None in the list; or None. `stream`:\n"
     "what random ops of graphs draw from; else another for each run. `first`, in this order: a\n"
     "Tensor of a Python function that is to be called whether or not its value is wanted, or\n"
     "(Tensor, other): wherever the one is used, the other is meant."},
    {"evaluate", evaluate_method, METH_O,
     "evaluate(tensors) -> None\n\nComputes what is pending in them, in one run."},
    {"explain", (PyCFunction)(void (*)(void))explain, METH_VARARGS | METH_KEYWORDS,
     "explain(tensors, feeds=[], json=False, budget=0) -> (text, cost)\n\n"
     "The plan that a run of them would have: a table or JSON, and what it takes."},
    {"save_npy", save_npy, METH_VARARGS,
     "save_npy(tensor, path) -> None\n\nWrites it piece by piece, larger than the budget too."},
    {"set_progress", progress_set, METH_O, progress_set_doc},
    {0}};

int module_add_runs(PyObject *module)
{
    if (interrupt_add() < 0)
        return -1;
    return PyModule_AddFunctions(module, methods);
}
