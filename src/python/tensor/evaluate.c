/* SPDX-License-Identifier: Apache-2.0 */
/* See evaluate.h. run.c has the runs that Python calls by itself. */
#include "python/tensor/evaluate.h"

#include <errno.h>

#include "python/module/failure.h"
#include "python/module/interrupt.h"
#include "python/module/progress.h"

/* The run that called the Python function in this thread; whether a function of the run that this
 * thread waits for has raised. */
static _Thread_local const pl_run_options *outer;
static _Thread_local bool raised;

const pl_run_options *evaluate_within(const pl_run_options *options)
{
    const pl_run_options *before = outer;
    outer = options;
    return before;
}

const pl_run_options *evaluate_outer(void)
{
    return outer;
}

void evaluate_note_raised(void)
{
    raised = true;
}

static void set_flag(void *context)
{
    __atomic_store_n((int *)context, 1, __ATOMIC_RELAXED);
}

static int run_once(pl_evaluation *what, const char *const *npy_paths, pl_run_options *options,
                    pl_tensor **outputs, pl_error *reterr)
{
    int cancel = 0, r;
    bool raised_before = raised;
    interrupt wait;
    progress bar;
    if (interrupt_begin(&wait, pl_evaluation_is_impure(what), set_flag, &cancel) < 0)
        return -ECANCELED;
    options->cancel = outer && outer->cancel ? outer->cancel : &cancel;
    raised = false;
    progress_begin(&bar, options);
    Py_BEGIN_ALLOW_THREADS;
    r = pl_evaluation_run(what, npy_paths, options, outputs, reterr);
    Py_END_ALLOW_THREADS;
    interrupt_end(&wait);
    progress_end(&bar, r == 0);
    bool cancelled = __atomic_load_n(&cancel, __ATOMIC_RELAXED) != 0 && !raised;
    raised = raised_before;
    return r == -ECANCELED && cancelled ? -EINTR : r;
}

/* A user's handler may have taken the signal without raising an exception. Then we run again,
 * unless Python functions were called, which would be called twice: a second signal ends such a
 * run. Exceptions from Python functions of the run are raised unchanged. */
int evaluate_run(pl_evaluation *what, const char *const *npy_paths, pl_run_options *options,
                 pl_tensor **outputs, pl_error *reterr)
{
    options->size = sizeof *options;
    for (;;) {
        int r = run_once(what, npy_paths, options, outputs, reterr);
        if (r < 0)
            interrupt_stay_away();
        if (r != -EINTR || PyErr_Occurred())
            return r;
        if (PyErr_CheckSignals() < 0 || (outer && outer->cancel && *outer->cancel))
            return -ECANCELED;
        if (pl_evaluation_is_impure(what))
            return pl_error_set(reterr, -ECANCELED, "the run was interrupted");
    }
}

int evaluate_exprs(pl_expr *const *exprs, int n)
{
    pl_evaluator *evaluator = module_evaluator();
    pl_evaluation *what = NULL;
    pl_error error;
    pl_error_init(&error);
    if (!evaluator)
        return -1;
    int r = pl_evaluation_of_pending(evaluator, exprs, n, &what, &error);
    if (r == 0 && what) {
        pl_run_options options = {0};
        r = evaluate_run(what, NULL, &options, NULL, &error);
    }
    tensor_let_go(NULL, what);
    if (r < 0 && !PyErr_Occurred())
        failure_raise(&error);
    pl_error_done(&error);
    return r < 0 ? -1 : 0;
}

int evaluate(tensor *const *nodes, int n)
{
    if (n == 1)
        return evaluate_exprs(&nodes[0]->expr, 1);
    pl_expr **exprs = tensor_exprs(nodes, n);
    int r = exprs ? evaluate_exprs(exprs, n) : -1;
    PyMem_Free(exprs);
    return r;
}
