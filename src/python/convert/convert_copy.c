/* SPDX-License-Identifier: Apache-2.0 */
/* Copies elements of foreign memory through the library: see convert.h. */
#include <errno.h>

#include "python/convert/convert.h"
#include "python/module/failure.h"
#include "python/module/interrupt.h"
#include "python/tensor/evaluate.h"

static void set_flag(void *context)
{
    __atomic_store_n((int *)context, 1, __ATOMIC_RELAXED);
}

typedef struct copying {
    pl_runtime *runtime;
    const pl_elements *from;
    pl_dtype dtype;
    const pl_shape *shape;
    const char *what;
    const pl_run_options *outer; /* the run that calls this function; NULL: none */
} copying;

/* A stage that calls a function makes room for the result itself, and limits waiting elements by
 * their bytes in memory: the result must not go to disk. */
static int make(const copying *c, const int *cancel, pl_tensor **ret_tensor, pl_error *reterr)
{
    const pl_copy_options options = {.cancel = cancel, .never_spilled = c->outer != NULL};
    return pl_tensor_new_from(c->runtime, c->dtype, c->shape, c->from, &options, c->what,
                              ret_tensor, reterr);
}

/* Without the GIL: the copy may go to disk. -ECANCELED at Ctrl-C, or when Python is ending. */
static int make_once(const copying *c, pl_tensor **ret_tensor, pl_error *reterr)
{
    int cancel = 0, r;
    interrupt wait;
    if (interrupt_begin(&wait, false, set_flag, &cancel) < 0)
        return -ECANCELED;
    const int *flag = c->outer && c->outer->cancel ? c->outer->cancel : &cancel;
    Py_BEGIN_ALLOW_THREADS;
    r = make(c, flag, ret_tensor, reterr);
    Py_END_ALLOW_THREADS;
    interrupt_end(&wait);
    return r == -ECANCELED && flag == &cancel ? -EINTR : r;
}

/* A user's handler may have taken the signal without raising an exception: see run.c. */
static int make_large(const copying *c, pl_tensor **ret_tensor, pl_error *reterr)
{
    for (;;) {
        int r = make_once(c, ret_tensor, reterr);
        if (r < 0)
            interrupt_stay_away();
        if (r != -EINTR || PyErr_Occurred() || PyErr_CheckSignals() < 0)
            return r;
    }
}

static bool is_large(const pl_elements *from)
{
    int64_t bytes = (int64_t)convert_dtype_bytes(from->dtype);
    for (int i = 0; i < from->shape.rank; i++)
        if (from->shape.dims[i] == 0)
            return false;
    for (int i = 0; i < from->shape.rank && bytes < CONVERT_BORROW_BYTES; i++)
        bytes *= from->shape.dims[i];
    return bytes >= CONVERT_BORROW_BYTES;
}

pl_tensor *convert_copy(const pl_elements *from, pl_dtype dtype, const pl_shape *shape,
                        const char *what)
{
    copying c = {.runtime = module_runtime(),
                 .from = from,
                 .dtype = dtype,
                 .shape = shape,
                 .what = what,
                 .outer = evaluate_outer()};
    pl_tensor *made;
    pl_error error = {0};
    if (!c.runtime)
        return NULL;
    int r = is_large(from) ? make_large(&c, &made, &error) : make(&c, NULL, &made, &error);
    if (r < 0)
        return PyErr_Occurred() ? NULL : (pl_tensor *)failure_raise(&error);
    return made;
}
