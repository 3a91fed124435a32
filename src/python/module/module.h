/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core: the runtime in Python. Shared declarations of this folder.
 *
 * We include only public headers of the library: a C program can do all that Python can. We use the
 * full C API of CPython, not the limited one: call sites need frames (PyFrame_GetBack()), and
 * operators vectorcall.
 *
 * Thread rule: unless a function says otherwise, it is called with the GIL held. Code that computes
 * or waits (runs, passes, reading files) runs without it. The library's threads never hold it; a
 * function that they may call says "no GIL", and takes it only to call the user's code. */
#ifndef PL_PYTHON_MODULE_MODULE_H
#define PL_PYTHON_MODULE_MODULE_H

#include "python/module/backport.h" /* and Python.h, which must be the first */

#include <stdbool.h>
#include <stdint.h>

#include "plimsoll/plimsoll.h"

/* The one runtime of the process, made when it is first needed, with the arguments of configure().
 * NULL with an exception. Borrowed: it lives as long as the process. */
pl_runtime *module_runtime(void);

/* The same without the GIL, if it exists; else NULL. */
pl_runtime *module_runtime_if_any(void);

/* The evaluator of the runtime, made with it; borrowed too. */
pl_evaluator *module_evaluator(void);

/* The budget that configure() or the environment asked for; NULL and 0: none. */
const char *module_budget_text(void);
bool module_budget_is_ours(void); /* by configure(), not by PLIMSOLL_BUDGET */
uint64_t module_cap_bytes(void);

/* Raises the error that the text caused, and names the variable that it is from. Always NULL. */
PyObject *module_refuse_budget(pl_error *error);

/* Runs a job that needs the GIL: at once if this thread has it, else soon. `run` is called once,
 * and frees the struct that contains the job. */
typedef struct later {
    struct later *next;
    void (*run)(struct later *self);
} later;
void module_later(later *what);

/* A type's tp_new if only functions of ours make objects: TypeError. (3.9 has no flag for it.) */
PyObject *module_refuse_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);

/* Each adds one file's part to the module. 0, or -1 with an exception. */
int module_add_tensor(PyObject *module);
int module_add_ops(PyObject *module);
int module_add_convert(PyObject *module);
int module_add_runs(PyObject *module);
int module_add_functions(PyObject *module);
int module_add_runtime(PyObject *module);
int module_add_datasets(PyObject *module);
int module_add_pictures(PyObject *module);
int module_add_numpy(PyObject *module);

#endif
