/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the progress of a long run to a callable of the user: from two seconds on, at most ten
 * times a second, with the fraction and the node's name. If it was called during the run, it is
 * called once more at the end: with 1, or, if the run failed, with the last fraction and "" as
 * name. */
#ifndef PL_PYTHON_MODULE_PROGRESS_H
#define PL_PYTHON_MODULE_PROGRESS_H

#include "python/module/module.h"

typedef struct progress {
    int64_t begun_ns, told_ns; /* 0: not called yet */
    double fraction;
    bool ended;
} progress;

/* Sets the progress callback of the options, if the user has set one. */
void progress_begin(progress *self, pl_run_options *options);

/* With the GIL; keeps the exception that is set. */
void progress_end(progress *self, bool well);

/* Methods of the module. */
PyObject *progress_set(PyObject *module, PyObject *callable);

extern const char progress_set_doc[];

#endif
