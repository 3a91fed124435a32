/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the runtime and its contents: budget(), live(), devices(). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/convert/convert.h"
#include "python/module/failure.h"
#include "python/tensor/tensor.h"

/* ---- the budget ---- */

/* The library takes the budget as the command's option does. */
static const char *detail_of(const pl_budget_source *source, char *text, size_t room)
{
    if (strcmp(source->name, "request") != 0)
        return source->detail;
    snprintf(text, room,
             module_budget_is_ours() ? "configure(budget='%.60s')" : "PLIMSOLL_BUDGET=%.60s",
             module_budget_text());
    return text;
}

static PyObject *source_dict(const pl_budget_source *source)
{
    char text[96];
    return Py_BuildValue("{s:s,s:s,s:O,s:K,s:K}", "name", source->name, "detail",
                         detail_of(source, text, sizeof text), "present",
                         source->present ? Py_True : Py_False, "bytes",
                         (unsigned long long)source->bytes, "limit_bytes",
                         (unsigned long long)source->limit_bytes);
}

static PyObject *source_list(const pl_budget *budget)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < budget->n_sources; i++) {
        PyObject *entry = source_dict(&budget->sources[i]);
        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static PyObject *get_budget(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    pl_budget budget;
    pl_error error = {0};
    const pl_budget_options options = {.request_text = module_budget_text()};
    pl_runtime *runtime = module_runtime_if_any();
    if (pl_budget_discover(&options, &budget, &error) < 0)
        return module_refuse_budget(&error);
    /* The machine's free memory changes; the line does not, once it exists. */
    uint64_t cap = module_cap_bytes();
    uint64_t line = runtime ? pl_runtime_limit_bytes(runtime) : budget.line_bytes;
    PyObject *sources = source_list(&budget);
    if (!sources)
        return NULL;
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:s,s:N}", "line",
                         (unsigned long long)(cap > 0 && cap < line ? cap : line), "claimed",
                         (unsigned long long)(runtime ? pl_runtime_claimed_bytes(runtime) : 0),
                         "peak", (unsigned long long)(runtime ? pl_runtime_peak_bytes(runtime) : 0),
                         "true_limit", (unsigned long long)budget.true_limit_bytes, "reserve",
                         (unsigned long long)budget.reserve_bytes, "decided_by",
                         budget.decisive >= 0 ? budget.sources[budget.decisive].name : "",
                         "sources", sources);
}

/* ---- live tensors ---- */

static const char *kind_word(pl_live_kind kind)
{
    static const char *const words[] = {
        [PL_LIVE_VARIABLE] = "variable", [PL_LIVE_CONSTANT] = "constant",
        [PL_LIVE_TENSOR] = "tensor",     [PL_LIVE_SESSION] = "session",
        [PL_LIVE_RUN] = "run",
    };
    return words[kind];
}

static const char *where_word(pl_live_where where)
{
    static const char *const words[] = {
        [PL_LIVE_NOWHERE] = "",
        [PL_LIVE_MEMORY] = "memory",
        [PL_LIVE_SPILL] = "spill",
        [PL_LIVE_FILE] = "file",
    };
    return words[where];
}

/* Exprs with values, sorted by the values' addresses; references. */
typedef struct owners {
    pl_expr **exprs;
    size_t n, n_most;
} owners;

static int by_value(const void *a, const void *b)
{
    const pl_tensor *x = pl_expr_value(*(pl_expr *const *)a),
                    *y = pl_expr_value(*(pl_expr *const *)b);
    return x < y ? -1 : x > y;
}

static void owners_done(owners *self)
{
    for (size_t i = 0; i < self->n; i++)
        pl_expr_unref(self->exprs[i]);
    PyMem_Free(self->exprs);
}

/* Takes over the reference. */
static int owners_add(owners *self, pl_expr *expr)
{
    if (self->n == self->n_most) {
        size_t n_most = self->n_most ? 2 * self->n_most : 64;
        pl_expr **more = PyMem_Realloc(self->exprs, n_most * sizeof *more);
        if (!more) {
            pl_expr_unref(expr);
            PyErr_NoMemory();
            return -1;
        }
        self->exprs = more;
        self->n_most = n_most;
    }
    self->exprs[self->n++] = expr;
    return 0;
}

/* Lists the expr if it has a value; else the inputs that it waits for, each once. `seen` is a set
 * of addresses. Takes over the reference. */
static int collect(owners *values, owners *waiting, PyObject *seen, pl_expr *expr)
{
    PyObject *address = PyLong_FromVoidPtr(expr);
    int r = address ? PySet_Contains(seen, address) : -1;
    if (r == 0)
        r = PySet_Add(seen, address);
    else if (r > 0) {
        Py_DECREF(address);
        pl_expr_unref(expr);
        return 0;
    }
    Py_XDECREF(address);
    if (r < 0) {
        pl_expr_unref(expr);
        return -1;
    }
    return owners_add(pl_expr_value(expr) ? values : waiting, expr);
}

static int collect_inputs(owners *values, owners *waiting, PyObject *seen)
{
    int r = 0;
    for (size_t at = 0; r == 0 && at < waiting->n; at++)
        for (int i = 0; r == 0; i++) {
            pl_expr *input = pl_expr_input(waiting->exprs[at], i);
            if (!input)
                break;
            r = collect(values, waiting, seen, input);
        }
    return r;
}

static int owners_find_all(owners *ret)
{
    owners waiting = {0};
    *ret = (owners){0};
    PyObject *seen = PySet_New(NULL);
    int r = seen ? 0 : -1;
    for (const tensor *node = tensor_first(); r == 0 && node; node = node->next)
        r = collect(ret, &waiting, seen, pl_expr_ref(node->expr));
    if (r == 0)
        r = collect_inputs(ret, &waiting, seen);
    owners_done(&waiting);
    Py_XDECREF(seen);
    if (r == 0)
        qsort(ret->exprs, ret->n, sizeof *ret->exprs, by_value);
    return r;
}

/* The expr with this value; NULL: Python has none. */
static const pl_expr *owner_of(const owners *all, const pl_live_entry *entry)
{
    size_t low = 0, high = entry->tensor ? all->n : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const pl_tensor *value = pl_expr_value(all->exprs[middle]);
        if (value == entry->tensor)
            return all->exprs[middle];
        if ((uintptr_t)value < (uintptr_t)entry->tensor)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static PyObject *entry_dict(const owners *all, const pl_live_entry *entry)
{
    const pl_expr *expr = owner_of(all, entry);
    const char *own = expr ? pl_expr_name(expr) : NULL;
    PyObject *file = NULL, *site;
    int line;
    if (expr && tensor_site(expr, &file, &line))
        site = Py_BuildValue("(Oi)", file, line);
    else
        site = Py_NewRef(Py_None);
    const char *name = own ? own : entry->name;
    PyObject *shape = convert_shape_tuple(&entry->shape);
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:N,s:N,s:K,s:O,s:O,s:i,s:N}", "kind",
                         kind_word(entry->kind), "name", name, "scope", entry->scope, "where",
                         where_word(entry->where), "dtype", convert_dtype_object(entry->dtype),
                         "shape", shape, "bytes", (unsigned long long)entry->bytes, "shared",
                         entry->shared ? Py_True : Py_False, "pinned",
                         entry->pinned ? Py_True : Py_False, "refs", entry->n_refs, "site", site);
}

/* Frees no node in between: the garbage collector would, if objects were made here. */
static PyObject *entry_list(const pl_live *live)
{
    owners all;
    bool collects = PyGC_Disable();
    PyObject *list = owners_find_all(&all) < 0 ? NULL : PyList_New(0);
    for (int i = 0; list && i < pl_live_n_entries(live); i++) {
        PyObject *entry = entry_dict(&all, pl_live_entry_at(live, i));
        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    owners_done(&all);
    if (collects)
        PyGC_Enable();
    return list;
}

static PyObject *get_live(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"scope", "json", NULL};
    const char *scope = "";
    int as_json = 0;
    pl_live *live;
    pl_error error = {0};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|sp:live", names, &scope, &as_json))
        return NULL;
    pl_runtime *runtime = module_runtime();
    if (!runtime)
        return NULL;
    if (pl_live_new(runtime, scope, &live, &error) < 0)
        return failure_raise(&error);
    PyObject *list = entry_list(live);
    char *text = list ? pl_live_text(live, as_json) : NULL;
    pl_live_free(live);
    if (list && !text) {
        Py_DECREF(list);
        return PyErr_NoMemory();
    }
    PyObject *made = list ? Py_BuildValue("(Ns)", list, text) : NULL;
    free(text);
    return made;
}

/* ---- devices ---- */

static PyObject *device_dict(const pl_device_info *info)
{
    return Py_BuildValue("{s:s,s:s,s:s,s:K,s:K,s:K,s:K}", "name", info->name, "kind",
                         info->kind == PL_DEVICE_GPU ? "GPU" : "CPU", "description",
                         info->description, "memory_bytes", (unsigned long long)info->memory_bytes,
                         "budget_bytes", (unsigned long long)info->budget_bytes, "in_use_bytes",
                         (unsigned long long)info->in_use_bytes, "peak_bytes",
                         (unsigned long long)info->peak_bytes);
}

static PyObject *get_devices(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    pl_runtime *runtime = module_runtime();
    if (!runtime)
        return NULL;
    int n;
    Py_BEGIN_ALLOW_THREADS /* loads OpenCL */
        n = pl_runtime_n_devices(runtime);
    Py_END_ALLOW_THREADS PyObject *list = PyList_New(0);
    for (int i = 0; list && i < n; i++) {
        pl_device_info info;
        pl_error error = {0};
        PyObject *entry = pl_runtime_device(runtime, i, &info, &error) < 0 ? failure_raise(&error)
                                                                           : device_dict(&info);
        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

/* The library calls this when a node is computed on another device than its own. No GIL. */
static void say(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "plimsoll: %s\n", text);
}

/* Names as UTF-8, borrowed from the list, in a PyMem array. */
static const char **texts_of(PyObject *list, int *ret_n)
{
    PyObject *items = PySequence_Fast(list, "hidden: a list of device names");
    if (!items)
        return NULL;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    const char **texts = PyMem_New(const char *, n + 1);
    for (Py_ssize_t i = 0; texts && i < n; i++) {
        texts[i] = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(items, i));
        if (!texts[i]) {
            PyMem_Free(texts);
            texts = NULL;
        }
    }
    Py_DECREF(items); /* the list still owns its items */
    *ret_n = (int)n;
    if (!texts && !PyErr_Occurred())
        PyErr_NoMemory();
    return texts;
}

static pl_device_limit *limits_of(PyObject *dict, int *ret_n)
{
    pl_device_limit *limits = PyMem_New(pl_device_limit, PyDict_Size(dict) + 1);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    int n = 0;
    while (limits && PyDict_Next(dict, &at, &key, &value)) {
        limits[n].device = PyUnicode_AsUTF8(key);
        limits[n].bytes = limits[n].device ? PyLong_AsUnsignedLongLong(value) : 0;
        n++;
        if (PyErr_Occurred()) {
            PyMem_Free(limits);
            return NULL;
        }
    }
    *ret_n = n;
    return limits ? limits : (pl_device_limit *)PyErr_NoMemory();
}

static PyObject *set_devices(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"strict", "hidden", "limits", "opencl_cpu", NULL};
    int strict = 0;
    PyObject *hidden = NULL, *limits = NULL, *opencl_cpu = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|pOO!O:set_devices", names, &strict,
                                     &hidden, &PyDict_Type, &limits, &opencl_cpu))
        return NULL;
    pl_device_options options = {.strict = strict, .message = say};
    if (opencl_cpu != Py_None)
        options.opencl_cpu = PyObject_IsTrue(opencl_cpu) == 1 ? 1 : -1;
    PyObject *done = NULL;
    pl_error error = {0};
    pl_runtime *runtime = module_runtime();
    const char **texts = hidden && runtime ? texts_of(hidden, &options.n_hidden) : NULL;
    pl_device_limit *bytes = limits && runtime ? limits_of(limits, &options.n_limits) : NULL;
    options.hidden = texts;
    options.limits = bytes;
    if (runtime && !PyErr_Occurred())
        done = pl_runtime_set_devices(runtime, &options, &error) < 0 ? failure_raise(&error)
                                                                     : Py_NewRef(Py_None);
    PyMem_Free(texts);
    PyMem_Free(bytes);
    return done;
}

static PyObject *set_strict(PyObject *module, PyObject *wanted)
{
    (void)module;
    pl_error error = {0};
    int strict = PyObject_IsTrue(wanted);
    pl_runtime *runtime = strict < 0 ? NULL : module_runtime();
    if (!runtime)
        return NULL;
    if (pl_runtime_set_strict(runtime, strict, &error) < 0)
        return failure_raise(&error);
    pl_evaluator_forget(module_evaluator());
    Py_RETURN_NONE;
}

/* ---- files ---- */

static PyObject *open_npy(PyObject *module, PyObject *path)
{
    (void)module;
    PyObject *bytes;
    pl_tensor *made;
    pl_error error = {0};
    int r;
    pl_runtime *runtime = module_runtime();
    if (!runtime || !PyUnicode_FSConverter(path, &bytes))
        return NULL;
    Py_BEGIN_ALLOW_THREADS r = pl_tensor_open_npy(runtime, PyBytes_AS_STRING(bytes), &made, &error);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    return r < 0 ? failure_raise(&error) : (PyObject *)tensor_constant(made, NULL);
}

static PyMethodDef functions[] = {
    {"budget", get_budget, METH_NOARGS,
     "budget()\n--\n\nThe line, what is claimed, and who sets it, as a dict."},
    {"live", (PyCFunction)(void (*)(void))get_live, METH_VARARGS | METH_KEYWORDS,
     "live(scope='', json=False)\n--\n\n(list of what is held, the same as text)."},
    {"devices", get_devices, METH_NOARGS, "devices()\n--\n\nA dict for each device."},
    {"set_devices", (PyCFunction)(void (*)(void))set_devices, METH_VARARGS | METH_KEYWORDS,
     "set_devices(strict=False, hidden=(), limits={}, opencl_cpu=None)\n--\n\nHow devices are "
     "used; "
     "before they are."},
    {"set_strict", set_strict, METH_O,
     "set_strict(strict)\n--\n\nWhether placement is strict from now on."},
    {"open_npy", open_npy, METH_O,
     "open_npy(path)\n--\n\nA Tensor over an .npy file, read as it is needed."},
    {NULL, NULL, 0, NULL},
};

int module_add_runtime(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
