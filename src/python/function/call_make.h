/* SPDX-License-Identifier: Apache-2.0 */
/* Makes calls from Python: conditions, loops, Python functions, parsers. */
#ifndef PL_PYTHON_FUNCTION_CALL_MAKE_H
#define PL_PYTHON_FUNCTION_CALL_MAKE_H

#include "python/function/function.h"
#include "python/tensor/tensor.h"

/* Methods of the module. */
PyObject *call_cond(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *call_while(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *call_python(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *call_parse(PyObject *module, PyObject *args, PyObject *kwargs);

extern const char call_cond_doc[], call_while_doc[], call_python_doc[], call_parse_doc[];

/* Returns the objects of a call's items: a list, or NULL with an exception. `r` is the result of
 * making the call: a failure is raised, -EINVAL as a TypeError. The inputs lie in several groups.
 * Takes over `items`, a PyMem array, and the references in it if `r` is 0. */
PyObject *call_items(pl_expr **items, int n, int r, pl_error *error, tensor *const *const *groups,
                     const int *n_of, int n_groups, const char *label, PyObject *name);

/* ---- arguments ---- */

/* Converts a sequence to nodes, new references in a PyMem array; `like` (may be NULL) are
 * functions' inputs, whose dtypes the nodes take. -1 with an exception. */
int arguments_nodes(PyObject *sequence, const function *like, tensor ***ret_nodes, int *ret_n);
void arguments_free(tensor **nodes, int n);

/* Like "O!", with the checks that it lacks: returns a function with this many inputs. NULL with
 * TypeError. */
function *arguments_function(PyObject *object, const char *what, int n_inputs);

/* Reads None or a str. -1 with TypeError. */
int arguments_name(PyObject *object, PyObject **ret_name);

#endif
