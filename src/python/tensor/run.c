/* SPDX-License-Identifier: Apache-2.0 */
/* run(), evaluate(), explain() and save_npy() of the module. See run.h. */
#include "python/tensor/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/convert/convert.h"
#include "python/convert/types.h"
#include "python/function/call_make.h"
#include "python/module/failure.h"
#include "python/module/interrupt.h"
#include "python/module/progress.h"
#include "python/module/streams.h"
#include "python/program/program_private.h"

/* ---- a run that Python waits for ---- */

/* Of the Python function that this thread is in. */
static _Thread_local const run_state *outer;

const run_state *evaluate_within(const run_state *state)
{
    const run_state *before = outer;
    outer = state;
    return before;
}

static void set_flag(void *context)
{
    __atomic_store_n((int *)context, 1, __ATOMIC_RELAXED);
}

const run_state *evaluate_outer(void)
{
    return outer;
}

static int run_once(program *what, pl_tensor *const *leaves, const char *const *npy_paths,
                    run_state *state, pl_tensor **outputs, pl_error *reterr)
{
    int cancel = 0, r;
    bool raised = false;
    interrupt wait;
    progress bar;
    if (interrupt_begin(&wait, program_is_impure(what), set_flag, &cancel) < 0)
        return -ECANCELED;
    state->cancel = outer && outer->cancel ? outer->cancel : &cancel;
    state->raised = &raised;
    progress_begin(&bar, state);
    Py_BEGIN_ALLOW_THREADS;
    r = program_run(what, leaves, npy_paths, state, outputs, reterr);
    Py_END_ALLOW_THREADS;
    interrupt_end(&wait);
    progress_end(&bar, r == 0);
    bool cancelled = __atomic_load_n(&cancel, __ATOMIC_RELAXED) != 0;
    return r == -ECANCELED && cancelled && !raised ? -EINTR : r;
}

/* A handler of the user's may have taken the signal without raising anything: then it is run again,
 * unless Python functions were called, which would be called twice: such a run is left alone, until
 * a second signal ends it. What Python functions of the run raised is told as it is. */
int run_program(program *what, pl_tensor *const *leaves, const char *const *npy_paths,
                run_state *state, pl_tensor **outputs, pl_error *reterr)
{
    for (;;) {
        int r = run_once(what, leaves, npy_paths, state, outputs, reterr);
        if (r < 0)
            interrupt_stay_away();
        if (r != -EINTR || PyErr_Occurred())
            return r;
        if (PyErr_CheckSignals() < 0 || (outer && outer->cancel && *outer->cancel))
            return -ECANCELED;
        if (program_is_impure(what))
            return pl_error_set(reterr, -ECANCELED, "the run was interrupted");
    }
}

/* Small ones are not worth a look at the budget. */
#define CHECKED_BYTES ((uint64_t)1 << 20)

typedef struct size_text {
    char text[24];
} size_text;

/* "3.6 TiB" */
static size_text size_of(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_text size;
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 6; unit++)
        value /= 1024;
    snprintf(size.text, sizeof size.text, "%.*f %s", unit > 0, value, units[unit]);
    return size;
}

int run_check(tensor *const *fetches, int n_fetches, const char *const *npy_paths, pl_error *reterr)
{
    uint64_t bytes = 0, largest = 0;
    const tensor *worst = NULL;
    for (int i = 0; i < n_fetches; i++) {
        uint64_t more =
            fetches[i]->value || (npy_paths && npy_paths[i]) ? 0 : type_bytes(&fetches[i]->type);
        bytes = more > UINT64_MAX - bytes ? UINT64_MAX : bytes + more;
        worst = more > largest ? fetches[i] : worst;
        largest = more > largest ? more : largest;
    }
    pl_runtime *runtime = module_runtime_if_any();
    uint64_t left =
        bytes <= CHECKED_BYTES || !runtime ? UINT64_MAX : pl_runtime_left_bytes(runtime);
    if (bytes <= left)
        return 0;
    return pl_error_set(
        reterr, PL_EBUDGET,
        "'%s' takes %s, all that is asked for %s, and %s are left of the budget: give it more",
        tensor_label(worst), size_of(largest).text, size_of(bytes).text, size_of(left).text);
}

/* The reason may be cut, the advice not. */
void run_raise(pl_error *error, bool as_tensors)
{
    static const char ways[] = ", or write the result to a file: plimsoll.save(tensor, path), "
                               "run(..., out=path)";
    int most = PL_ERROR_MESSAGE_BYTES - (int)sizeof ways - error->reason_at;
    if (error->code == PL_EBUDGET && as_tensors)
        pl_error_reword(error, "%.*s%s", most > 0 ? most : 0, pl_error_reason(error), ways);
    failure_raise(error);
}

/* ---- feeds ---- */

typedef struct feeds {
    tensor **nodes;
    pl_tensor **values;
    pl_type *types;
    int n;
} feeds;

static void drop_feeds(feeds *self)
{
    for (int i = 0; i < self->n; i++) {
        Py_XDECREF((PyObject *)self->nodes[i]);
        pl_tensor_unref(self->values[i]);
    }
    PyMem_Free(self->nodes);
    PyMem_Free(self->values);
    PyMem_Free(self->types);
}

static int refuse_shape(const tensor *node, const pl_tensor *value)
{
    PyObject *is = convert_shape_tuple(pl_tensor_shape(value));
    PyObject *wanted = convert_shape_tuple(&node->type.shape);
    if (is && wanted)
        PyErr_Format(PyExc_ValueError,
                     "Cannot feed value of shape %R for Tensor '%s', which has shape '%R'", is,
                     tensor_label(node), wanted);
    Py_XDECREF(is);
    Py_XDECREF(wanted);
    return -1;
}

/* A tensor is fed as it is, also one that is pending. */
static pl_tensor *value_for(const tensor *node, PyObject *value)
{
    tensor *given = convert_to_node(value, node->type.dtype, PL_DTYPE_NONE);
    pl_tensor *found = NULL;
    if (given && evaluate(&given, 1) == 0)
        found = pl_tensor_ref(given->value);
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
    self->values[self->n] = given;
    self->nodes[self->n] = (tensor *)Py_NewRef(node);
    self->types[self->n++] = (pl_type){pl_tensor_dtype(given), *pl_tensor_shape(given)};
    return types_agree(&((tensor *)node)->type.shape, pl_tensor_shape(given))
               ? 0
               : refuse_shape((tensor *)node, given);
}

/* What it has taken until it failed is the caller's to drop. */
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
    self->values = PyMem_Calloc(n, sizeof *self->values);
    self->types = PyMem_Calloc(n, sizeof *self->types);
    int r = self->nodes && self->values && self->types ? 0 : -1;
    if (r < 0)
        PyErr_NoMemory();
    for (size_t i = 0; r == 0 && i + 1 < n; i++)
        r = add_feed(self, PySequence_Fast_GET_ITEM(fast, (Py_ssize_t)i));
    Py_DECREF(fast);
    return r;
}

/* ---- what a run is given ---- */

typedef struct task {
    tensor **fetches; /* references */
    int n_fetches;
    feeds feeds;
    program_first *first;
    int n_first;
    program *program;
    pl_tensor **leaves; /* those of feeds first, which are the feeds' */
    pl_tensor **values; /* the others: PyMem, references */
    int n_values;
    uint64_t stream; /* of eager draws */
    bool eager;      /* there are such */
} task;

static void task_done(task *self)
{
    for (int i = 0; i < self->n_values; i++)
        pl_tensor_unref(self->values[i]);
    PyMem_Free(self->values);
    PyMem_Free(self->leaves);
    program_unref(self->program);
    for (int i = 0; i < self->n_first; i++) {
        Py_XDECREF((PyObject *)self->first[i].node);
        Py_XDECREF((PyObject *)self->first[i].target);
    }
    PyMem_Free(self->first);
    drop_feeds(&self->feeds);
    arguments_free(self->fetches, self->n_fetches);
}

static int make_leaves(task *self)
{
    int n = self->feeds.n;
    self->leaves = PyMem_Malloc(((size_t)n + (size_t)self->n_values + 1) * sizeof(pl_tensor *));
    if (!self->leaves) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < n; i++)
        self->leaves[i] = self->feeds.values[i];
    for (int i = 0; i < self->n_values; i++)
        self->leaves[n + i] = self->values[i];
    return 0;
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
    self->first[self->n_first++] =
        (program_first){(tensor *)Py_NewRef(node), (tensor *)Py_XNewRef(target)};
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
    self->first = PyMem_Calloc((size_t)n + 1, sizeof *self->first);
    int r = self->first ? 0 : -1;
    if (r < 0)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; r == 0 && i < n; i++)
        r = add_first(self, PySequence_Fast_GET_ITEM(fast, i));
    Py_DECREF(fast);
    return r;
}

static int task_make(task *self, PyObject *fetches, PyObject *pairs, PyObject *first)
{
    *self = (task){0};
    if (!module_runtime() || arguments_nodes(fetches, NULL, &self->fetches, &self->n_fetches) < 0)
        return -1;
    if (take_feeds(&self->feeds, pairs) == 0 && take_first(self, first) == 0) {
        const program_nodes of = {self->fetches, self->feeds.nodes, self->feeds.types,
                                  self->first,   self->n_fetches,   self->feeds.n,
                                  self->n_first};
        self->program =
            program_of(&of, &self->values, &self->n_values, &self->stream, &self->eager);
        if (self->program && make_leaves(self) == 0)
            return 0;
    }
    task_done(self);
    return -1;
}

/* ---- run() ---- */

/* The caller's texts; NULL in *ret where no file is wanted at all. */
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

/* An eager node that was waiting keeps what it has become. */
static PyObject *result_of(tensor *node, pl_tensor *value)
{
    if (!value)
        Py_RETURN_NONE;
    bool waits = !node->value && !node->symbolic && !node->graph &&
                 (node->kind == TENSOR_OP || node->kind == TENSOR_ITEM);
    if (waits)
        tensor_settle(node, pl_tensor_ref(value));
    return (PyObject *)tensor_of_value(value, NULL);
}

static PyObject *results_of(const task *self, pl_tensor **values, bool settles)
{
    PyObject *list = PyList_New(self->n_fetches);
    for (int i = 0; i < self->n_fetches; i++) {
        if (!list) {
            pl_tensor_unref(values[i]);
            continue;
        }
        PyObject *result = settles     ? result_of(self->fetches[i], values[i])
                           : values[i] ? (PyObject *)tensor_of_value(values[i], NULL)
                                       : Py_NewRef(Py_None);
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
    run_state state = {.budget_bytes = budget, .random_stream = self->stream};
    if (!self->eager)
        state.random_stream += stream;
    pl_error error = {0};
    int r = run_check(self->fetches, self->n_fetches, paths, &error);
    if (r == 0)
        r = run_program(self->program, self->leaves, paths, &state, values, &error);
    if (r == 0)
        list = results_of(self, values, self->feeds.n == 0);
    else if (!PyErr_Occurred())
        run_raise(&error, true);
    PyMem_Free(values);
    return list;
}

/* Runs of a graph draw anew each time, unless it is said what they are to draw from. */
static int take_stream(PyObject *object, uint64_t *ret_stream)
{
    if (!object || object == Py_None) {
        *ret_stream = streams_mix(streams_take(1));
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
    const run_state state = {.budget_bytes = budget};
    Py_BEGIN_ALLOW_THREADS;
    r = program_explain(t.program, t.leaves, &state, as_json != 0, &text, &cost, &error);
    Py_END_ALLOW_THREADS;
    if (r < 0)
        run_raise(&error, true);
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
        PyObject *list = run_task(&t, paths, 0, streams_mix(streams_take(1)));
        done = list ? Py_NewRef(Py_None) : NULL;
        Py_XDECREF(list);
        task_done(&t);
    }
    Py_XDECREF(held);
    Py_XDECREF(fetches);
    return done;
}

/* ---- the module's part ---- */

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
    if (interrupt_add() < 0 || program_build_add() < 0)
        return -1;
    return PyModule_AddFunctions(module, methods);
}
