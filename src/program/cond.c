/* SPDX-License-Identifier: Apache-2.0 */
/* Calls one of two functions, chosen by a bool that a run computes.
 *   inputs: the bool, the arguments of both, the first one's captures, the second one's captures */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "program/expr.h"
#include "program/types.h"

typedef struct cond {
    pl_routine base;
    pl_traced *either[2]; /* false, true; references */
    int n_given;
} cond;

static int run(pl_routine *base, pl_evaluator *evaluator, pl_tensor *const *inputs,
               pl_tensor **outputs, const pl_run_options *options, pl_error *reterr)
{
    const cond *self = (cond *)base;
    bool value;
    int r = pl_routine_read_bool(inputs[0], "cond", &value, reterr);
    if (r < 0)
        return r;
    pl_traced *chosen = self->either[value];
    int n_captured = pl_traced_n_captures(chosen);
    int skipped = value ? 0 : pl_traced_n_captures(self->either[1]);
    pl_tensor **given = malloc(((size_t)self->n_given + (size_t)n_captured + 1) * sizeof *given);
    if (!given)
        return pl_error_set(reterr, -ENOMEM, "out of memory for a condition");
    memcpy(given, inputs + 1, (size_t)self->n_given * sizeof *given);
    memcpy(given + self->n_given, inputs + 1 + self->n_given + skipped,
           (size_t)n_captured * sizeof *given);
    r = pl_traced_run(chosen, evaluator, given, options, outputs, reterr);
    free(given);
    return r;
}

static void free_cond(pl_routine *base)
{
    cond *self = (cond *)base;
    pl_traced_unref(self->either[0]);
    pl_traced_unref(self->either[1]);
    free(self);
}

static const pl_routine_class cond_class = {.run = run, .free = free_cond, .draws = true};

static int check(const pl_traced *one, const pl_traced *other, int n_inputs, pl_error *reterr)
{
    int n = pl_traced_n_outputs(one);
    if (pl_traced_n_inputs(one) != n_inputs || pl_traced_n_inputs(other) != n_inputs)
        return pl_error_set(reterr, -EINVAL, "the branches of cond take %d and %d inputs, not %d",
                            pl_traced_n_inputs(one), pl_traced_n_inputs(other), n_inputs);
    if (n != pl_traced_n_outputs(other))
        return pl_error_set(reterr, -EINVAL, "the branches of cond give %d and %d values", n,
                            pl_traced_n_outputs(other));
    for (int i = 0; i < n; i++)
        if (pl_expr_dtype(pl_traced_output(one, i)) != pl_expr_dtype(pl_traced_output(other, i)))
            return pl_error_set(reterr, -EINVAL,
                                "value %d of cond has another dtype in each branch", i);
    return 0;
}

static int make(pl_traced *on_true, pl_traced *on_false, int n_given, cond **ret, pl_error *reterr)
{
    int n_captures = pl_traced_n_captures(on_true) + pl_traced_n_captures(on_false);
    int n_outputs = pl_traced_n_outputs(on_true);
    cond *self = calloc(1, sizeof *self);
    int r = pl_routine_init(self ? &self->base : NULL, &cond_class, "cond",
                            1 + n_given + n_captures, n_outputs, reterr);
    if (r < 0)
        return r;
    self->n_given = n_given;
    self->base.impure = pl_traced_is_impure(on_true) || pl_traced_is_impure(on_false);
    self->either[0] = pl_traced_ref(on_false);
    self->either[1] = pl_traced_ref(on_true);
    for (int i = 0; i < n_outputs; i++) {
        const pl_type a = pl_expr_type(pl_traced_output(on_true, i)),
                      b = pl_expr_type(pl_traced_output(on_false, i));
        self->base.outputs[i] = pl_types_join(&a, &b);
    }
    *ret = self;
    return 0;
}

int pl_expr_cond(pl_expr *pred, pl_traced *on_true, pl_traced *on_false, pl_expr *const *inputs,
                 int n_inputs, uint64_t stream, pl_expr **ret_items, pl_error *reterr)
{
    PL_NOT_NULL(pred, reterr);
    PL_NOT_NULL(on_true, reterr);
    PL_NOT_NULL(on_false, reterr);
    PL_NOT_NULLS(inputs, n_inputs, reterr);
    PL_NOT_NULL_IF(pl_traced_n_outputs(on_true) > 0, ret_items, reterr);
    cond *self = NULL;
    int r = check(on_true, on_false, n_inputs, reterr);
    if (r == 0)
        r = make(on_true, on_false, n_inputs, &self, reterr);
    if (r < 0)
        return r;
    int n = 0;
    pl_expr **all = malloc((size_t)self->base.n_inputs * sizeof *all);
    if (!all) {
        pl_routine_unref(&self->base);
        return pl_error_set(reterr, -ENOMEM, "out of memory for a condition");
    }
    all[n++] = pred;
    for (int i = 0; i < n_inputs; i++)
        all[n++] = inputs[i];
    for (int k = 1; k >= 0; k--)
        for (int i = 0; i < pl_traced_n_captures(self->either[k]); i++)
            all[n++] = pl_traced_capture(self->either[k], i);
    r = pl_expr_call(&self->base, all, n, stream, ret_items, reterr);
    free(all);
    return r;
}
