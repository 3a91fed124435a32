/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the library as exceptions, and exceptions as errors of the library.
 *
 * An exception that the user's code raised in a thread of ours travels as the payload of a pl_error,
 * with its traceback, and becomes the __cause__ of the exception that reaches the user. The local
 * variables of its frames are dropped, so that it keeps no tensors alive. Errors may be dropped on
 * any thread: the exception is then released as soon as Python runs. The classes, and the
 * attributes that the error's fields become, are those of plimsoll/errors.py. */
#ifndef PL_PYTHON_MODULE_FAILURE_H
#define PL_PYTHON_MODULE_FAILURE_H

#include "python/module/module.h"

/* Raises the error, and takes it over: it is as new then. Always NULL. A pending KeyboardInterrupt
 * goes first, and an attached exception that is not an Exception (SystemExit) is raised as it was. */
PyObject *failure_raise(pl_error *error);

/* The exception that is set, as an error; clears it. The code is by its class: ValueError and
 * TypeError -EINVAL, MemoryError PL_EBUDGET, OSError its errno, StopIteration -ERANGE,
 * NotImplementedError -ENOTSUP, KeyboardInterrupt -ECANCELED, the library's own exceptions the code
 * that they had, others -EIO. */
int failure_take(pl_error *reterr);

/* Raises a class of plimsoll/errors.py by its name. Always NULL. */
PyObject *failure_raise_class(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
