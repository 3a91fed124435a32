/* SPDX-License-Identifier: Apache-2.0 */
/* What a long run tells on its way: to a callable of the user's, from two seconds on, at most ten
 * times a second; fraction and the node's name. When the run is over it is called once more if it
 * was called before: with 1, or, when the run failed, with what it had come to and "" for a name.
 */
#ifndef PL_PYTHON_MODULE_PROGRESS_H
#define PL_PYTHON_MODULE_PROGRESS_H

#include "python/module/module.h"

typedef struct progress {
    int64_t begun_ns, told_ns; /* 0: not told */
    double fraction;
    bool ended;
} progress;

/* Sets what the state tells, if anybody wants to know. */
void progress_begin(progress *self, pl_run_options *options);

/* With the GIL; keeps the exception that is set. */
void progress_end(progress *self, bool well);

/* Of the module. */
PyObject *progress_set(PyObject *module, PyObject *callable);

extern const char progress_set_doc[];

#endif
