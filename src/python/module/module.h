/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core: the runtime in Python. What all files of this folder have in common.
 *
 * Only public headers of the library are used here: what Python can do, a C program can. The full C
 * API of CPython, not the limited one: call sites need frames (PyFrame_GetBack()), and operators
 * vectorcall.
 *
 * Thread rule: unless a function says otherwise, it is called with the GIL held. What computes or
 * waits (runs, passes, reading files) is called without. The library's threads never have it; a
 * function that they may call says "no GIL", and takes it only to call what the user wrote. */
#ifndef PL_PYTHON_MODULE_MODULE_H
#define PL_PYTHON_MODULE_MODULE_H

#include "python/module/backport.h" /* and Python.h, which must be the first */

#include <stdbool.h>
#include <stdint.h>

#include "plimsoll/plimsoll.h"

/* The one runtime of the process, made when it is first needed, as configure() said. NULL with an
 * exception. Borrowed: it lives as long as the process. */
pl_runtime *module_runtime(void);

/* The same without the GIL, once there is one; else NULL. */
pl_runtime *module_runtime_if_any(void);

/* What computes in it, made with it: as the runtime. */
pl_evaluator *module_evaluator(void);

/* What configure() or the environment asked for; NULL and 0: nothing. */
const char *module_budget_text(void);
bool module_budget_is_ours(void); /* by configure(), and not by PLIMSOLL_BUDGET */
uint64_t module_cap_bytes(void);

/* failure_raise() of what came of that text; names the variable that it is from. Always NULL. */
PyObject *module_refuse_budget(pl_error *error);

/* What is to be done with the GIL, by whoever calls this: at once if this thread has it, else soon.
 * `run` is called once, and frees what it is part of. */
typedef struct later {
    struct later *next;
    void (*run)(struct later *self);
} later;
void module_later(later *what);

/* A type's tp_new where only functions of ours make objects: TypeError. (3.9 has no flag for it.)
 */
PyObject *module_refuse_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);

/* Each file's own part of the module. 0, or -1 with an exception. */
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
