/* SPDX-License-Identifier: Apache-2.0 */
/* Traced functions: their life, their copies and their runs. See traced.h; traced_dataset.c makes
 * stage functions from them. */
#include "program/traced.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "program/types.h"

/* Captured pending exprs are computed ahead while they take no more than this share of the free
 * budget; below EAGER_BYTES they are computed without asking the budget. */
enum { EAGER_SHARE = 8 };
#define EAGER_BYTES ((uint64_t)1 << 20)

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "out of memory for a function");
}

/* ---- life ---- */

static void unref_exprs(pl_expr **exprs, int n)
{
    for (int i = 0; exprs && i < n; i++)
        pl_expr_unref(exprs[i]);
    free(exprs);
}

static pl_expr **ref_exprs(pl_expr *const *exprs, int n)
{
    pl_expr **copy = malloc(((size_t)n + 1) * sizeof *copy);
    for (int i = 0; copy && i < n; i++)
        copy[i] = pl_expr_ref(exprs[i]);
    return copy;
}

static void program_free(pl_traced_program *self)
{
    if (!self)
        return;
    pl_lazy_program_unref(self->program);
    for (int i = 0; i < self->n_values; i++)
        pl_tensor_unref(self->values[i]);
    free(self->values);
    free(self);
}

pl_traced *pl_traced_ref(pl_traced *self)
{
    PL_NULL_GIVES(self, NULL);
    atomic_fetch_add(&self->n_refs, 1);
    return self;
}

void pl_traced_unref(pl_traced *self)
{
    if (!self || atomic_fetch_sub(&self->n_refs, 1) > 1)
        return;
    program_free(atomic_load(&self->program));
    pl_body_done(&self->body);
    unref_exprs(self->inputs, self->n_inputs);
    unref_exprs(self->outputs, self->n_outputs);
    free(self);
}

static int check_inputs(pl_expr *const *inputs, int n, pl_error *reterr)
{
    for (int i = 0; i < n; i++) {
        if (inputs[i]->kind != PL_EXPR_GIVEN)
            return pl_error_set(reterr, -EINVAL, "input %d of a function is not a placeholder", i);
        for (int k = 0; k < i; k++)
            if (inputs[k] == inputs[i])
                return pl_error_set(reterr, -EINVAL,
                                    "inputs %d and %d of a function are one placeholder", k, i);
    }
    return 0;
}

int pl_traced_new(pl_expr *const *inputs, int n_inputs, pl_expr *const *outputs, int n_outputs,
                  uint64_t trace, pl_traced **ret_traced, pl_error *reterr)
{
    PL_NOT_NULLS(inputs, n_inputs, reterr);
    PL_NOT_NULLS(outputs, n_outputs, reterr);
    PL_NOT_NULL(ret_traced, reterr);
    int r = check_inputs(inputs, n_inputs, reterr);
    if (r < 0)
        return r;
    pl_traced *self = calloc(1, sizeof *self);
    if (!self)
        return no_memory(reterr);
    self->n_refs = 1;
    self->n_inputs = n_inputs;
    self->n_outputs = n_outputs;
    self->inputs = ref_exprs(inputs, n_inputs);
    self->outputs = ref_exprs(outputs, n_outputs);
    if (!self->inputs || !self->outputs)
        r = no_memory(reterr);
    if (r == 0)
        r = pl_body_init(&self->body, self->inputs, n_inputs, self->outputs, n_outputs, trace,
                         reterr);
    if (r < 0)
        pl_traced_unref(self);
    else
        *ret_traced = self;
    return r;
}

/* ---- getters ---- */

int pl_traced_n_inputs(const pl_traced *self)
{
    PL_NULL_GIVES(self, 0);
    return self->n_inputs;
}

int pl_traced_n_outputs(const pl_traced *self)
{
    PL_NULL_GIVES(self, 0);
    return self->n_outputs;
}

int pl_traced_n_captures(const pl_traced *self)
{
    PL_NULL_GIVES(self, 0);
    return self->body.outside.n;
}

pl_expr *pl_traced_input(const pl_traced *self, int i)
{
    PL_NULL_GIVES(self, NULL);
    return i >= 0 && i < self->n_inputs ? self->inputs[i] : NULL;
}

pl_expr *pl_traced_output(const pl_traced *self, int i)
{
    PL_NULL_GIVES(self, NULL);
    return i >= 0 && i < self->n_outputs ? self->outputs[i] : NULL;
}

pl_expr *pl_traced_capture(const pl_traced *self, int i)
{
    PL_NULL_GIVES(self, NULL);
    return i >= 0 && i < self->body.outside.n ? self->body.outside.at[i] : NULL;
}

bool pl_traced_is_impure(const pl_traced *self)
{
    PL_NULL_GIVES(self, false);
    for (int i = 0; i < self->body.own.n; i++) {
        const pl_expr *expr = self->body.own.at[i];
        if (expr->kind == PL_EXPR_CALL && expr->routine->impure)
            return true;
    }
    return false;
}

uint64_t pl_traced_n_streams(const pl_traced *self)
{
    PL_NULL_GIVES(self, 0);
    return self->body.n_streams;
}

/* ---- copies ---- */

int pl_traced_call(const pl_traced *self, pl_expr *const *given, uint64_t first_stream,
                   const pl_traced_copied *copied, pl_expr **ret_outputs, pl_error *reterr)
{
    PL_NOT_NULL(self, reterr);
    PL_NOT_NULLS(given, self->n_inputs, reterr);
    PL_NOT_NULL_IF(self->n_outputs > 0, ret_outputs, reterr);
    for (int i = 0; i < self->n_inputs; i++) {
        const pl_type wanted = pl_expr_type(self->inputs[i]), type = pl_expr_type(given[i]);
        if (wanted.dtype != type.dtype || !pl_shapes_agree(&wanted.shape, &type.shape))
            return pl_error_set(reterr, -EINVAL,
                                "input %d of a function, '%s', is given another dtype or shape", i,
                                pl_expr_label(self->inputs[i]));
    }
    return pl_body_substitute(&self->body, given, first_stream, copied, ret_outputs, reterr);
}

int pl_exprs_substitute(pl_expr *const *outputs, int n_outputs, pl_expr *const *nodes,
                        pl_expr *const *given, int n, uint64_t (*take_streams)(uint64_t n),
                        const pl_traced_copied *copied, pl_expr **ret_outputs, pl_error *reterr)
{
    PL_NOT_NULLS(outputs, n_outputs, reterr);
    PL_NOT_NULLS(nodes, n, reterr);
    PL_NOT_NULLS(given, n, reterr);
    PL_NOT_NULL_IF(n_outputs > 0, ret_outputs, reterr);
    pl_body body;
    int r = pl_body_init(&body, nodes, n, outputs, n_outputs, 0, reterr);
    if (r < 0)
        return r;
    uint64_t first =
        body.n_streams > 0 && take_streams ? take_streams(body.n_streams) : body.first_stream;
    r = pl_body_substitute(&body, given, first, copied, ret_outputs, reterr);
    pl_body_done(&body);
    return r;
}

/* ---- runs ---- */

static int evaluate_captured(const pl_traced *self, pl_evaluator *evaluator, bool all,
                             const pl_run_options *options, pl_error *reterr)
{
    const pl_expr_list *eager = &self->body.eager;
    uint64_t bytes = 0;
    for (int i = 0; i < eager->n; i++) {
        const pl_type type = pl_expr_type(eager->at[i]);
        bytes = pl_add_sat_u64(bytes, pl_type_bytes(&type));
    }
    if (!all && bytes > EAGER_BYTES &&
        bytes > pl_runtime_left_bytes(pl_evaluator_runtime(evaluator)) / EAGER_SHARE)
        return 0;
    pl_run_options own = {.size = sizeof own};
    if (options)
        own.cancel = options->cancel;
    return pl_evaluate(evaluator, eager->at, eager->n, &own, reterr);
}

static pl_expr **leaves_of(const pl_traced *self)
{
    int n_captures = self->body.outside.n;
    pl_expr **leaves = malloc(((size_t)self->n_inputs + (size_t)n_captures + 1) * sizeof *leaves);
    for (int i = 0; leaves && i < self->n_inputs; i++)
        leaves[i] = self->inputs[i];
    for (int i = 0; leaves && i < n_captures; i++)
        leaves[self->n_inputs + i] = self->body.outside.at[i];
    return leaves;
}

/* The values of the leaves that the walk met. */
static int take_values(pl_traced_program *to, const pl_walk *walk)
{
    int n = walk->leaves.n - walk->n_given;
    to->values = malloc(((size_t)n + 1) * sizeof *to->values);
    if (!to->values)
        return no_memory(walk->reterr);
    for (int i = 0; i < n; i++)
        to->values[i] = pl_tensor_ref(pl_expr_has(walk->leaves.at[walk->n_given + i]));
    to->n_values = n;
    return 0;
}

/* Returns 1 if captured exprs draw beside exprs of a trace, unless `mixed` allows it: the captured
 * ones draw once, the others in each run, so the captured ones must be computed first. */
static int make_program(const pl_traced *self, pl_evaluator *evaluator, pl_expr *const *leaves,
                        bool mixed, pl_traced_program *to, pl_error *reterr)
{
    pl_walk w;
    int n = self->n_inputs + self->body.outside.n;
    int r = pl_walk_begin(&w, leaves, n, NULL, reterr);
    for (int i = 0; r == 0 && i < self->n_outputs; i++)
        r = pl_walk_add(&w, self->outputs[i]);
    if (r == 0)
        r = pl_walk_fetch(&w, self->outputs, self->n_outputs);
    if (r == 0 && w.draws_eagerly && w.draws_in_trace && !mixed)
        r = 1;
    if (r == 0)
        r = pl_evaluator_program(evaluator, &w, self->outputs, self->n_outputs, &to->program);
    if (r == 0)
        r = take_values(to, &w);
    to->stream = w.first_stream;
    pl_walk_done(&w);
    return r;
}

/* Another thread may make the program at the same time; then one of the two is dropped. */
int pl_traced_prepare(pl_traced *self, pl_evaluator *evaluator, const pl_run_options *options,
                      pl_error *reterr)
{
    if (atomic_load_explicit(&self->program, memory_order_acquire))
        return 0;
    bool captures = self->body.eager.n > 0;
    int r = captures ? evaluate_captured(self, evaluator, false, options, reterr) : 0;
    if (r < 0)
        return r;
    pl_expr **leaves = leaves_of(self);
    pl_traced_program *made = calloc(1, sizeof *made), *nobody = NULL;
    r = leaves && made ? make_program(self, evaluator, leaves, !captures, made, reterr)
                       : no_memory(reterr);
    if (r > 0)
        r = evaluate_captured(self, evaluator, true, options, reterr);
    if (r == 0 && !made->program)
        r = make_program(self, evaluator, leaves, true, made, reterr);
    free(leaves);
    if (r < 0 || !atomic_compare_exchange_strong(&self->program, &nobody, made))
        program_free(made);
    return r;
}

int pl_traced_run(pl_traced *self, pl_evaluator *evaluator, pl_tensor *const *inputs,
                  const pl_run_options *options, pl_tensor **ret_outputs, pl_error *reterr)
{
    PL_NOT_NULL(self, reterr);
    PL_NOT_NULL(evaluator, reterr);
    PL_NOT_NULLS(inputs, self->n_inputs + self->body.outside.n, reterr);
    PL_NOT_NULL_IF(self->n_outputs > 0, ret_outputs, reterr);
    static const pl_run_options none = {0};
    if (!options)
        options = &none;
    PL_TAKE_OPTIONS(pl_run_options, options, random_stream, reterr);
    int r = pl_traced_prepare(self, evaluator, options, reterr);
    if (r < 0)
        return r;
    enum { FEW = 32 };
    const pl_traced_program *of = atomic_load_explicit(&self->program, memory_order_acquire);
    int n = self->n_inputs + self->body.outside.n;
    pl_tensor *few[FEW], **leaves = few;
    if (n + of->n_values > FEW)
        leaves = malloc((size_t)(n + of->n_values) * sizeof *leaves);
    if (!leaves)
        return pl_error_set(reterr, -ENOMEM, "out of memory to call a function");
    if (n > 0)
        memcpy(leaves, inputs, (size_t)n * sizeof *leaves);
    if (of->n_values > 0)
        memcpy(leaves + n, of->values, (size_t)of->n_values * sizeof *leaves);
    own_options.size = sizeof own_options;
    own_options.random_stream += of->stream;
    r = pl_lazy_program_run(of->program, evaluator, leaves, NULL, options, ret_outputs, reterr);
    if (leaves != few)
        free(leaves);
    return r;
}
