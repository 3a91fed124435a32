/* SPDX-License-Identifier: Apache-2.0 */
/* Turns traced functions into functions of dataset stages: into graphs, in which captured values
 * are constants; or into callbacks, if they contain calls or a rank is unknown. */
#include <errno.h>
#include <stdlib.h>

#include "program/traced.h"

typedef struct staged {
    pl_traced *traced; /* references */
    pl_evaluator *evaluator;
    pl_variant *graph; /* NULL: a callback */
    pl_spec *specs;    /* of a callback's outputs */
} staged;

static void release(void *context)
{
    staged *self = context;
    pl_variant_free(self->graph);
    pl_traced_unref(self->traced);
    pl_evaluator_unref(self->evaluator);
    free(self->specs);
    free(self);
}

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "out of memory for a function");
}

/* ---- as a callback ---- */

static int call_back(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                     int n_outputs, pl_error *reterr)
{
    staged *self = context;
    size_t n = (size_t)n_inputs + (size_t)n_outputs + 1;
    pl_tensor **given = calloc(n, sizeof *given), **made = given + n_inputs;
    if (!given)
        return no_memory(reterr);
    int r = 0;
    for (int i = 0; i < n_inputs; i++) {
        given[i] = inputs[i].tensor;
        if (!given[i])
            r = pl_error_set(reterr, -EINVAL,
                             "component %d is a dataset, where a tensor is expected", i);
    }
    const pl_run_options options = {.size = sizeof options,
                                    .cancel = pl_dataset_cancel(),
                                    .random_stream = pl_dataset_random_stream()};
    if (r == 0)
        r = pl_traced_run(self->traced, self->evaluator, given, &options, made, reterr);
    for (int i = 0; r == 0 && i < n_outputs; i++)
        outputs[i] = (pl_value){.tensor = made[i]};
    free(given);
    return r;
}

static int as_callback(staged *self, pl_function *ret, pl_error *reterr)
{
    int n = self->traced->n_outputs;
    self->specs = calloc((size_t)n + 1, sizeof *self->specs);
    if (!self->specs)
        return no_memory(reterr);
    for (int i = 0; i < n; i++) {
        const pl_type type = pl_expr_type(self->traced->outputs[i]);
        self->specs[i] = (pl_spec){.dtype = type.dtype, .shape = type.shape};
    }
    ret->call = call_back;
    ret->output_specs = self->specs;
    return 0;
}

/* ---- as a graph ---- */

/* The type of an input, as the placeholder or the dataset knows it. */
static pl_type input_type(const pl_expr *input, const pl_spec *given)
{
    pl_type type = pl_expr_made_type(input);
    if (type.shape.rank == PL_RANK_UNKNOWN)
        type.shape = given->shape;
    for (int i = 0; i < type.shape.rank && given->shape.rank == type.shape.rank; i++)
        if (type.shape.dims[i] == PL_UNKNOWN)
            type.shape.dims[i] = given->shape.dims[i];
    return type;
}

static bool find_types(const pl_traced *traced, const pl_spec *inputs, pl_type *types)
{
    for (int i = 0; i < traced->n_inputs; i++) {
        types[i] = input_type(traced->inputs[i], &inputs[i]);
        if (types[i].shape.rank == PL_RANK_UNKNOWN)
            return false;
    }
    return true;
}

static int as_graph(staged *self, const pl_type *types, pl_function *ret, pl_error *reterr)
{
    const pl_traced_program *of = atomic_load(&self->traced->program);
    int r = pl_program_whole(of->program, pl_evaluator_runtime(self->evaluator), types, of->values,
                             of->n_values, of->stream, &self->graph, reterr);
    if (r < 0)
        return r;
    ret->session = self->graph->session;
    ret->inputs = self->graph->inputs;
    ret->outputs = self->graph->outputs;
    return 0;
}

static int fill(staged *self, const pl_spec *inputs, int n_inputs, pl_function *ret,
                pl_error *reterr)
{
    const pl_traced *traced = self->traced;
    pl_type *types = calloc((size_t)traced->n_inputs + 1, sizeof *types);
    if (!types)
        return no_memory(reterr);
    bool known = n_inputs == traced->n_inputs && find_types(traced, inputs, types);
    bool is_graph = atomic_load(&traced->program)->program->n_calls == 0;
    int r = known && is_graph ? as_graph(self, types, ret, reterr) : as_callback(self, ret, reterr);
    free(types);
    return r;
}

int pl_traced_function(pl_traced *traced, pl_evaluator *evaluator, const pl_spec *inputs,
                       int n_inputs, pl_function *ret_function, pl_error *reterr)
{
    PL_NOT_NULL(traced, reterr);
    PL_NOT_NULL(evaluator, reterr);
    PL_NOT_NULL_IF(n_inputs > 0, inputs, reterr);
    PL_NOT_NULL(ret_function, reterr);
    if (traced->body.outside.n > 0)
        return pl_error_set(reterr, -EINVAL,
                            "a function for a dataset hangs on '%s', which has a value only in a "
                            "run of its own graph",
                            pl_expr_label(traced->body.outside.at[0]));
    int r = pl_traced_prepare(traced, evaluator, NULL, reterr);
    if (r < 0)
        return r;
    staged *made = calloc(1, sizeof *made);
    if (!made)
        return no_memory(reterr);
    made->traced = pl_traced_ref(traced);
    made->evaluator = pl_evaluator_ref(evaluator);
    pl_function function = {.n_inputs = traced->n_inputs,
                            .n_outputs = traced->n_outputs,
                            .context = made,
                            .release = release};
    r = fill(made, inputs, n_inputs, &function, reterr);
    if (r < 0)
        release(made);
    else
        *ret_function = function;
    return r;
}
