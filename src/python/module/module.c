/* SPDX-License-Identifier: Apache-2.0 */
/* The module, and the one runtime of the process. Importing it makes no runtime or thread, and does
 * not import NumPy. */
#include "python/module/module.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "python/module/failure.h"
#include "python/module/site.h"

PyObject *module_refuse_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    PyErr_Format(PyExc_TypeError, "cannot create '%s' instances", type->tp_name);
    return NULL;
}

/* ---- the runtime ---- */

static _Atomic(pl_runtime *) the_runtime;
static pl_evaluator *the_evaluator; /* the GIL's */

/* The arguments of configure(); texts are malloc'ed. */
static struct {
    char *budget_text, *spill_directory;
    uint64_t cap_bytes;
    int n_threads;
} wanted;

/* A forked child makes a new runtime: the threads and the spill file belong to the parent. */
static void forget_runtime(void)
{
    atomic_store(&the_runtime, NULL);
    the_evaluator = NULL;
}

const char *module_budget_text(void)
{
    const char *text = wanted.budget_text ? wanted.budget_text : getenv("PLIMSOLL_BUDGET");
    return text && *text ? text : NULL;
}

bool module_budget_is_ours(void)
{
    return wanted.budget_text != NULL;
}

PyObject *module_refuse_budget(pl_error *error)
{
    pl_error named = {0};
    const char *text = module_budget_text();
    if (module_budget_is_ours() || !text)
        return failure_raise(error);
    pl_error_set(&named, error->code, "with PLIMSOLL_BUDGET=%.60s: %s", text, error->message);
    return failure_raise(&named);
}

uint64_t module_cap_bytes(void)
{
    return wanted.cap_bytes;
}

pl_runtime *module_runtime_if_any(void)
{
    return atomic_load_explicit(&the_runtime, memory_order_acquire);
}

pl_runtime *module_runtime(void)
{
    pl_runtime *runtime = module_runtime_if_any();
    if (runtime)
        return runtime;
    static bool watches_forks; /* the GIL's */
    if (!watches_forks && pthread_atfork(NULL, NULL, forget_runtime) != 0)
        return (pl_runtime *)PyErr_NoMemory();
    watches_forks = true;
    pl_error error = {0};
    const pl_runtime_options options = {.budget_text = module_budget_text(),
                                        .cap_bytes = wanted.cap_bytes,
                                        .spill_directory = wanted.spill_directory,
                                        .n_threads = wanted.n_threads};
    if (pl_runtime_new(&options, &runtime, &error) < 0)
        return (pl_runtime *)module_refuse_budget(&error);
    atomic_store_explicit(&the_runtime, runtime, memory_order_release);
    return runtime;
}

pl_evaluator *module_evaluator(void)
{
    if (the_evaluator)
        return the_evaluator;
    pl_runtime *runtime = module_runtime();
    pl_error error;
    pl_error_init(&error);
    if (!runtime)
        return NULL;
    if (pl_evaluator_new(runtime, 0, &the_evaluator, &error) < 0)
        return (pl_evaluator *)failure_raise(&error);
    pl_evaluator_set_advice(the_evaluator,
                            ", or write the result to a file: plimsoll.save(tensor, path), "
                            "run(..., out=path)");
    return the_evaluator;
}

/* ---- references to drop once the GIL is free ---- */

static _Atomic(later *) waiting;

static int run_waiting(void *unused)
{
    (void)unused;
    later *what = atomic_exchange(&waiting, NULL);
    while (what) {
        later *next = what->next;
        what->run(what);
        what = next;
    }
    return 0;
}

void module_later(later *what)
{
    if (PyGILState_Check()) {
        what->run(what);
        return;
    }
    later *first = atomic_load(&waiting);
    do
        what->next = first;
    while (!atomic_compare_exchange_weak(&waiting, &first, what));
    /* Fails when many calls are waiting: then the next one that gets through takes them all. */
    (void)!Py_AddPendingCall(run_waiting, NULL);
}

/* ---- configure() ---- */

/* Converts a size to text: an int, or the text itself; NULL for None. 0, or -1 with an
 * exception. */
static int take_size(PyObject *value, char **ret_text)
{
    PyObject *text = value == Py_None ? NULL : PyObject_Str(value);
    const char *bytes = text ? PyUnicode_AsUTF8(text) : NULL;
    *ret_text = bytes ? strdup(bytes) : NULL;
    Py_XDECREF(text);
    if (*ret_text || value == Py_None)
        return 0;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return -1;
}

static int take_folder(PyObject *value, char **ret_text)
{
    PyObject *path;
    *ret_text = NULL;
    if (value == Py_None)
        return 0;
    if (!PyUnicode_FSConverter(value, &path))
        return -1;
    *ret_text = strdup(PyBytes_AS_STRING(path));
    Py_DECREF(path);
    if (!*ret_text)
        PyErr_NoMemory();
    return *ret_text ? 0 : -1;
}

/* Reports an invalid budget here, not when the first tensor is made. */
static int check_budget(const char *text)
{
    pl_budget budget;
    pl_error error = {0};
    const pl_budget_options options = {.request_text = text};
    if (!text || pl_budget_discover(&options, &budget, &error) == 0)
        return 0;
    failure_raise(&error);
    return -1;
}

static PyObject *configure(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"budget", "spill_directory", "threads", "cap_bytes", NULL};
    PyObject *budget = Py_None, *spill = Py_None;
    int threads = 0;
    unsigned long long cap_bytes = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OOiK:configure", names, &budget, &spill,
                                     &threads, &cap_bytes))
        return NULL;
    if (module_runtime_if_any())
        return PyErr_Format(PyExc_RuntimeError,
                            "configure(): the runtime is in use already: call it before the first "
                            "tensor is made");
    char *budget_text, *folder;
    if (take_size(budget, &budget_text) < 0)
        return NULL;
    if (check_budget(budget_text) < 0 || take_folder(spill, &folder) < 0) {
        free(budget_text);
        return NULL;
    }
    free(wanted.budget_text);
    free(wanted.spill_directory);
    wanted.budget_text = budget_text;
    wanted.spill_directory = folder;
    wanted.n_threads = threads;
    wanted.cap_bytes = cap_bytes;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"configure", (PyCFunction)(void (*)(void))configure, METH_VARARGS | METH_KEYWORDS,
     "configure(budget=None, spill_directory=None, threads=0, cap_bytes=0)\n--\n\nHow the runtime "
     "is "
     "made, before it is first used."},
    {NULL, NULL, 0, NULL},
};

/* ---- the module ---- */

static int add_package(void)
{
    PyObject *package = PyImport_ImportModule("plimsoll");
    PyObject *folders = package ? PyObject_GetAttrString(package, "__path__") : NULL;
    PyObject *folder = folders ? PySequence_GetItem(folders, 0) : NULL;
    int r = folder && PyUnicode_Check(folder) ? site_set_package(folder) : -1;
    if (r < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_ImportError, "plimsoll has no folder");
    Py_XDECREF(folder);
    Py_XDECREF(folders);
    Py_XDECREF(package);
    return r;
}

static int add_all(PyObject *module)
{
    int (*const parts[])(PyObject *) = {
        module_add_tensor,   module_add_ops,       module_add_convert,
        module_add_runs,     module_add_functions, module_add_runtime,
        module_add_datasets, module_add_pictures,  module_add_numpy,
    };
    if (add_package() < 0 || PyModule_AddFunctions(module, functions) < 0)
        return -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i](module) < 0)
            return -1;
    return PyModule_AddStringConstant(module, "__version__", PL_VERSION);
}

/* Types, tensors and the runtime belong to the process, and our threads call Python by the main
 * interpreter's GIL state. Another interpreter (mod_wsgi has some) would share objects with it, and
 * deadlock. A second import by the main interpreter returns the same module. */
static PyObject *module_of_process;

static PyObject *create(PyObject *spec, PyModuleDef *definition)
{
    (void)definition;
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        return PyErr_Format(PyExc_ImportError,
                            "plimsoll works in a process's main interpreter only; under mod_wsgi: "
                            "WSGIApplicationGroup %%{GLOBAL}");
    if (module_of_process)
        return Py_NewRef(module_of_process);
    PyObject *name = PyObject_GetAttrString(spec, "name");
    PyObject *module = name ? PyModule_NewObject(name) : NULL;
    Py_XDECREF(name);
    return module;
}

static int fill(PyObject *module)
{
    if (module == module_of_process)
        return 0;
    if (add_all(module) < 0)
        return -1;
    module_of_process = Py_NewRef(module);
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_create, (void *)create},
    {Py_mod_exec, (void *)fill},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "plimsoll._core",
    .m_doc = "The runtime: lazy tensors, programs, functions and datasets. For plimsoll.tf.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
