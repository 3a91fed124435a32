/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function of the caller between graphs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "program/expr.h"

typedef struct foreign_call {
    pl_routine base;
    pl_foreign own;
} foreign_call;

static int run(pl_routine *base, pl_evaluator *evaluator, pl_tensor *const *inputs,
               pl_tensor **outputs, const pl_run_options *options, pl_error *reterr)
{
    const foreign_call *self = (foreign_call *)base;
    (void)evaluator;
    return self->own.call(self->own.context, inputs, base->n_inputs, outputs, base->n_outputs,
                          options, reterr);
}

static void free_foreign(pl_routine *base)
{
    foreign_call *self = (foreign_call *)base;
    if (self->own.release)
        self->own.release(self->own.context);
    free(self);
}

static const pl_routine_class foreign_class = {.run = run, .free = free_foreign};

static int make(const pl_foreign *of, pl_expr *const *inputs, int n_inputs, pl_expr **ret_items,
                pl_error *reterr)
{
    PL_NOT_NULL(of->call, reterr);
    PL_NOT_NULL(of->name, reterr);
    PL_NOT_NULL_IF(of->n_outputs > 0, of->outputs, reterr);
    PL_NOT_NULLS(inputs, n_inputs, reterr);
    PL_NOT_NULL_IF(of->n_outputs > 0, ret_items, reterr);
    foreign_call *self = calloc(1, sizeof *self);
    int r = pl_routine_init(self ? &self->base : NULL, &foreign_class, of->name, n_inputs,
                            of->n_outputs, reterr);
    if (r < 0)
        return r;
    self->base.impure = !of->pure;
    self->own = *of;
    self->own.release = NULL; /* the caller owns it until the call is made */
    if (of->n_outputs > 0)
        memcpy(self->base.outputs, of->outputs, (size_t)of->n_outputs * sizeof *of->outputs);
    pl_routine_ref(&self->base);
    r = pl_expr_call(&self->base, inputs, n_inputs, 0, ret_items, reterr);
    if (r == 0)
        self->own.release = of->release;
    pl_routine_unref(&self->base);
    return r;
}

int pl_expr_foreign(const pl_foreign *foreign, pl_expr *const *inputs, int n_inputs,
                    pl_expr **ret_items, pl_error *reterr)
{
    PL_NOT_NULL(foreign, reterr);
    PL_TAKE_OPTIONS(pl_foreign, foreign, release, reterr);
    int r = make(foreign, inputs, n_inputs, ret_items, reterr);
    if (r < 0 && foreign->release)
        foreign->release(foreign->context);
    return r;
}
