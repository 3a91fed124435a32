/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the library as exceptions, and exceptions as errors of the library.
 *
 * An exception that the user's code raised in a thread of ours travels as a pl_error whose message
 * has its number ("python exception 17: ValueError: ..."), and is kept until it is raised again,
 * with its traceback, as the __cause__ of what reaches the user. At most FAILURE_KEPT are kept:
 * elements that are skipped leave theirs behind. Their frames' local variables are let go of, so
 * that they hold no tensors. The classes are those of plimsoll/errors.py. */
#ifndef PL_PYTHON_MODULE_FAILURE_H
#define PL_PYTHON_MODULE_FAILURE_H

#include "python/module/module.h"

#define FAILURE_KEPT 64

/* Raises what `error` says; always NULL. A pending KeyboardInterrupt goes first, and one that was
 * taken (as SystemExit) is raised as it was. */
PyObject *failure_raise(const pl_error *error);

/* A message as failure_raise() would say it, without exceptions' numbers: a str. */
PyObject *failure_words(const char *text);

/* The exception that is set, as an error; clears it. The code is by its class: ValueError and
 * TypeError -EINVAL, MemoryError PL_EBUDGET, OSError its errno, StopIteration -ERANGE,
 * NotImplementedError -ENOTSUP, KeyboardInterrupt -ECANCELED, what failure_raise() raised the code
 * it had, others -EIO. */
int failure_take(pl_error *reterr);

/* Raises a class of plimsoll/errors.py by its name, with what it takes besides a message left out;
 * always NULL. */
PyObject *failure_raise_class(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
