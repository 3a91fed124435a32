/* SPDX-License-Identifier: Apache-2.0 */
/* What the classes of calls have in common, and how Python makes them. */
#ifndef PL_PYTHON_FUNCTION_CALL_MAKE_H
#define PL_PYTHON_FUNCTION_CALL_MAKE_H

#include "python/function/call.h"
#include "python/function/function.h"
#include "python/tensor/tensor.h"

/* One reference; `outputs` are to be filled in. -1 with MemoryError: then nothing is to be undone.
 */
int call_init(call *self, const call_class *class, int n_inputs, int n_outputs);

/* Its items, of inputs that lie in several groups; a list, or NULL with an exception. Takes over
 * the call. */
PyObject *call_of_nodes(call *self, tensor *const *const *groups, const int *n_of, int n_groups,
                        PyObject *name);

/* No GIL. -EINVAL if it is not one bool. */
int call_read_bool(pl_tensor *value, const char *what, bool *ret_value, pl_error *reterr);

/* Methods of the module. */
PyObject *call_cond(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *call_while(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *call_python(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *call_parse(PyObject *module, PyObject *args, PyObject *kwargs);

extern const char call_cond_doc[], call_while_doc[], call_python_doc[], call_parse_doc[];

/* ---- arguments ---- */

/* Nodes of a sequence, new references in a PyMem array; `like` (may be NULL) are functions' inputs,
 * whose dtypes they take. -1 with an exception. */
int arguments_nodes(PyObject *sequence, const function *like, tensor ***ret_nodes, int *ret_n);
void arguments_free(tensor **nodes, int n);

/* "O!" with the checks that it lacks: a function of so many inputs. NULL with TypeError. */
function *arguments_function(PyObject *object, const char *what, int n_inputs);

/* None, or a str. -1 with TypeError. */
int arguments_name(PyObject *object, PyObject **ret_name);

#endif
