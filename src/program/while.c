/* SPDX-License-Identifier: Apache-2.0 */
/* A loop: while one function returns true, another computes new values for the first inputs.
 *   inputs: the arguments of both, the condition's captures, the body's captures */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "program/expr.h"
#include "program/types.h"

typedef struct loop {
    pl_routine base;
    pl_traced *condition, *body; /* references */
    int n_given, n_carried;
    int64_t n_most; /* the most rounds; negative: any number */
} loop;

/* One run of the loop. */
typedef struct looping {
    const loop *self;
    pl_evaluator *evaluator;
    pl_tensor **values;                    /* by input; the loop owns those that it carries */
    pl_tensor **for_condition, **for_body; /* the values, then the captures */
    pl_tensor **next;
    pl_error *reterr;
} looping;

static int goes_on(const looping *l, const pl_run_options *options)
{
    pl_tensor *answer;
    bool value = false;
    memcpy(l->for_condition, l->values, (size_t)l->self->n_given * sizeof(pl_tensor *));
    int r = pl_traced_run(l->self->condition, l->evaluator, l->for_condition, options, &answer,
                          l->reterr);
    if (r < 0)
        return r;
    r = pl_routine_read_bool(answer, "while_loop", &value, l->reterr);
    pl_tensor_unref(answer);
    return r < 0 ? r : value;
}

static int go_round(const looping *l, const pl_run_options *options)
{
    int n = l->self->n_carried;
    memcpy(l->for_body, l->values, (size_t)l->self->n_given * sizeof(pl_tensor *));
    int r = pl_traced_run(l->self->body, l->evaluator, l->for_body, options, l->next, l->reterr);
    for (int i = 0; r == 0 && i < n; i++) {
        pl_tensor_unref(l->values[i]);
        l->values[i] = l->next[i];
    }
    return r;
}

static int go_on(const looping *l, const pl_run_options *options)
{
    pl_run_options of_round = *options;
    int r = 1;
    for (int64_t i = 0; r > 0 && (l->self->n_most < 0 || i < l->self->n_most); i++) {
        if (options->cancel && __atomic_load_n(options->cancel, __ATOMIC_RELAXED) != 0)
            return pl_error_set(l->reterr, -ECANCELED, "while_loop was cancelled in round %lld",
                                (long long)i);
        of_round.random_stream = options->random_stream + pl_stream_mix((uint64_t)i);
        r = goes_on(l, &of_round);
        if (r > 0) {
            int made = go_round(l, &of_round);
            r = made < 0 ? made : 1;
        }
    }
    return r < 0 ? r : 0;
}

static int run(pl_routine *base, pl_evaluator *evaluator, pl_tensor *const *inputs,
               pl_tensor **outputs, const pl_run_options *options, pl_error *reterr)
{
    const loop *self = (loop *)base;
    size_t n = (size_t)self->n_given, n_cond = (size_t)pl_traced_n_captures(self->condition),
           n_body = (size_t)pl_traced_n_captures(self->body);
    pl_tensor **room = calloc(3 * n + n_cond + n_body + (size_t)self->n_carried + 1, sizeof *room);
    if (!room)
        return pl_error_set(reterr, -ENOMEM, "out of memory for a loop");
    const looping l = {.self = self,
                       .evaluator = evaluator,
                       .values = room,
                       .for_condition = room + n,
                       .for_body = room + 2 * n + n_cond,
                       .next = room + 3 * n + n_cond + n_body,
                       .reterr = reterr};
    memcpy(l.values, inputs, n * sizeof *room);
    memcpy(l.for_condition + n, inputs + n, n_cond * sizeof *room);
    memcpy(l.for_body + n, inputs + n + n_cond, n_body * sizeof *room);
    for (int i = 0; i < self->n_carried; i++)
        pl_tensor_ref(l.values[i]);
    int r = go_on(&l, options);
    for (int i = 0; i < self->n_carried; i++)
        if (r == 0)
            outputs[i] = l.values[i];
        else
            pl_tensor_unref(l.values[i]);
    free(room);
    return r;
}

static void free_loop(pl_routine *base)
{
    loop *self = (loop *)base;
    pl_traced_unref(self->condition);
    pl_traced_unref(self->body);
    free(self);
}

static const pl_routine_class while_class = {.run = run, .free = free_loop, .draws = true};

static int check(const pl_traced *condition, const pl_traced *body, int n_given, pl_error *reterr)
{
    if (pl_traced_n_inputs(condition) != n_given || pl_traced_n_inputs(body) != n_given)
        return pl_error_set(reterr, -EINVAL,
                            "the functions of while_loop take %d and %d inputs, not %d",
                            pl_traced_n_inputs(condition), pl_traced_n_inputs(body), n_given);
    if (pl_traced_n_outputs(condition) != 1 ||
        pl_expr_dtype(pl_traced_output(condition, 0)) != PL_BOOL)
        return pl_error_set(reterr, -EINVAL, "the condition of while_loop is to give one bool");
    if (pl_traced_n_outputs(body) > n_given)
        return pl_error_set(reterr, -EINVAL, "the body of while_loop gives %d values for %d inputs",
                            pl_traced_n_outputs(body), n_given);
    for (int i = 0; i < pl_traced_n_outputs(body); i++)
        if (pl_expr_dtype(pl_traced_output(body, i)) != pl_expr_dtype(pl_traced_input(body, i)))
            return pl_error_set(
                reterr, -EINVAL,
                "input %d of while_loop has another dtype than what its body gives for it", i);
    return 0;
}

static int make(pl_traced *condition, pl_traced *body, pl_expr *const *given, int n_given,
                int64_t n_most, loop **ret, pl_error *reterr)
{
    int n_inputs = n_given + pl_traced_n_captures(condition) + pl_traced_n_captures(body);
    int n_carried = pl_traced_n_outputs(body);
    loop *self = calloc(1, sizeof *self);
    int r = pl_routine_init(self ? &self->base : NULL, &while_class, "while_loop", n_inputs,
                            n_carried, reterr);
    if (r < 0)
        return r;
    self->n_given = n_given;
    self->base.impure = pl_traced_is_impure(condition) || pl_traced_is_impure(body);
    self->n_carried = n_carried;
    self->n_most = n_most;
    self->condition = pl_traced_ref(condition);
    self->body = pl_traced_ref(body);
    for (int i = 0; i < n_carried; i++) {
        const pl_type a = pl_expr_type(given[i]), b = pl_expr_type(pl_traced_output(body, i));
        self->base.outputs[i] = pl_types_join(&a, &b);
    }
    *ret = self;
    return 0;
}

int pl_expr_while(pl_traced *condition, pl_traced *body, pl_expr *const *inputs, int n_inputs,
                  int64_t n_most, uint64_t stream, pl_expr **ret_items, pl_error *reterr)
{
    PL_NOT_NULL(condition, reterr);
    PL_NOT_NULL(body, reterr);
    PL_NOT_NULLS(inputs, n_inputs, reterr);
    PL_NOT_NULL_IF(pl_traced_n_outputs(body) > 0, ret_items, reterr);
    loop *self = NULL;
    int r = check(condition, body, n_inputs, reterr);
    if (r == 0)
        r = make(condition, body, inputs, n_inputs, n_most, &self, reterr);
    if (r < 0)
        return r;
    int n = 0;
    pl_expr **all = malloc(((size_t)self->base.n_inputs + 1) * sizeof *all);
    if (!all) {
        pl_routine_unref(&self->base);
        return pl_error_set(reterr, -ENOMEM, "out of memory for a loop");
    }
    for (int i = 0; i < n_inputs; i++)
        all[n++] = inputs[i];
    for (int i = 0; i < pl_traced_n_captures(condition); i++)
        all[n++] = pl_traced_capture(condition, i);
    for (int i = 0; i < pl_traced_n_captures(body); i++)
        all[n++] = pl_traced_capture(body, i);
    r = pl_expr_call(&self->base, all, n, stream, ret_items, reterr);
    free(all);
    return r;
}
