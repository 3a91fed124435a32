/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the arguments of all ds_...() functions, by a signature.
 *
 * A signature names the arguments in their order, with a letter for each type:
 *   "input:D n:I drop_remainder:B="
 *     D  a Dataset                     L  a sequence of Datasets
 *     I  an integer                    N  one that fits an int
 *     B  true or false                 R  a real number
 *     P  a path or text, or None       S  a sequence of them, or one
 *     T  a sequence of values          V  a value for each component of D, or None; or None
 *     Z  a shape for each component of D, or None
 *     F  a Function or Callback: takes the values of T, if there are any, and an element of D
 *     G  a callable that starts a generator; the next argument has its specs
 *     O  anything: the function reads it itself
 * '=' after the letter: the argument may be left out, and is 0, false or None then. Arguments may
 * be given by name. */
#ifndef PL_PYTHON_DATASET_DATASET_ARGUMENTS_H
#define PL_PYTHON_DATASET_DATASET_ARGUMENTS_H

#include "python/module/module.h"

#define ARGUMENTS_MAX 10

typedef struct argument {
    char kind;
    PyObject *object;    /* the object, borrowed; NULL: not given */
    PyObject *kept;      /* owns the memory below; G: its Callback; NULL: none */
    int64_t number;      /* I, N, B */
    double real;         /* R */
    const char *text;    /* P; NULL: None */
    pl_dataset *dataset; /* D */
    int n;               /* of L, S, T, V and Z */
    pl_dataset **datasets;
    const char **texts;
    pl_tensor **tensors; /* T and V; V: None is NULL, here or as an item */
    pl_shape *shapes;    /* Z; NULL: None */
    pl_function function;
} argument;

typedef struct dataset_arguments {
    int n;
    argument each[ARGUMENTS_MAX];
    bool function_is_ours; /* the function's release() was not passed on yet */
} dataset_arguments;

/* Takes the arguments of a vectorcall. -1 with an exception, and then there is nothing to
 * release. */
int dataset_arguments_read(dataset_arguments *self, const char *function_name,
                           const char *signature, PyObject *const *given, Py_ssize_t n_given,
                           PyObject *names);
void dataset_arguments_done(dataset_arguments *self);

/* The caller has passed the pl_function on. */
void dataset_arguments_gave_function(dataset_arguments *self);

/* The Datasets among them, a tuple, and the F or G, borrowed; each NULL if there is none. */
int dataset_arguments_origins(const dataset_arguments *self, PyObject **ret_inputs,
                              PyObject **ret_function);

#endif
