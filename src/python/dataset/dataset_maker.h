/* SPDX-License-Identifier: Apache-2.0 */
/* The ds_...() functions: a table of functions that make datasets, with their arguments. One
 * function reads these (see dataset_arguments.h), calls, and raises or wraps the result.
 *   make    returns 0 and a dataset, or a negative code with *reterr or with an exception set
 *   waits   it reads files, and is called without the GIL: it may not touch Python objects */
#ifndef PL_PYTHON_DATASET_DATASET_MAKER_H
#define PL_PYTHON_DATASET_DATASET_MAKER_H

#include "python/dataset/dataset_arguments.h"

typedef struct dataset_maker {
    const char *name, *signature;
    int (*make)(pl_runtime *runtime, const argument *a, pl_dataset **ret_dataset, pl_error *reterr);
    bool waits;
} dataset_maker;

/* Adds the functions of a table, which ends with one without a name. 0, or -1 with an exception. */
int dataset_makers_add(PyObject *module, const dataset_maker *table);

extern const dataset_maker dataset_sources[], dataset_stages[];

#endif
