/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the library's errors to exceptions, and exceptions to errors.
 *
 * An exception that the user's code raised in a thread of ours travels as the payload of a
 * pl_error, with its traceback, and becomes the __cause__ of the exception that reaches the user.
 * Its frames lose their local variables, so that it keeps no tensors alive. Any thread may drop an
 * error: the exception is then released as soon as Python runs. plimsoll/errors.py defines the
 * classes, and the attributes that the error's fields become. */
#ifndef PL_PYTHON_MODULE_FAILURE_H
#define PL_PYTHON_MODULE_FAILURE_H

#include "python/module/module.h"

/* Raises the error, and takes it over: it is reset. Always NULL. A pending KeyboardInterrupt goes
 * first, and an attached exception that is not an Exception (SystemExit) is raised as it was. */
PyObject *failure_raise(pl_error *error);

/* Converts the exception that is set to an error, and clears it. The class gives the code:
 * ValueError and TypeError -EINVAL, MemoryError PL_EBUDGET, OSError its errno, StopIteration
 * -ERANGE, NotImplementedError -ENOTSUP, KeyboardInterrupt -ECANCELED, the library's own exceptions
 * the code that they had, others -EIO. */
int failure_take(pl_error *reterr);

/* Raises a class of plimsoll/errors.py by name. Always NULL. */
PyObject *failure_raise_class(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
