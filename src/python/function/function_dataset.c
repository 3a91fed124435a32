/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for stages of datasets: as graphs, in which what was captured is constant; or, if there
 * are calls in them or a rank is not known, as callbacks that take no GIL. */
#include <errno.h>

#include "python/function/function_private.h"
#include "python/module/failure.h"
#include "python/module/gil.h"
#include "python/program/program_private.h"

typedef struct staged {
    function *function; /* a reference */
    variant *graph;     /* NULL: a callback */
    pl_spec *specs;     /* of a callback's outputs */
} staged;

/* From any thread. At Python's end it is left as it is. */
static void release(void *context)
{
    staged *self = context;
    PyGILState_STATE gil;
    if (!gil_take(&gil))
        return;
    variant_free(self->graph);
    Py_XDECREF((PyObject *)self->function);
    gil_give(gil);
    free(self->specs);
    free(self);
}

/* ---- as a callback ---- */

static int call_back(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                     int n_outputs, pl_error *reterr)
{
    staged *self = context;
    size_t n = (size_t)n_inputs + (size_t)n_outputs + 1;
    pl_tensor **given = calloc(n, sizeof *given), **made = given + n_inputs;
    if (!given)
        return pl_error_set(reterr, -ENOMEM, "no memory to call a function");
    int r = 0;
    for (int i = 0; i < n_inputs; i++) {
        given[i] = inputs[i].tensor;
        if (!given[i])
            r = pl_error_set(reterr, -EINVAL,
                             "component %d is a dataset, where a tensor is expected", i);
    }
    const run_state state = {.cancel = pl_dataset_cancel(),
                             .random_stream = pl_dataset_random_stream()};
    if (r == 0)
        r = function_run(self->function, given, &state, made, reterr);
    for (int i = 0; r == 0 && i < n_outputs; i++)
        outputs[i] = (pl_value){.tensor = made[i]};
    free(given);
    return r;
}

static int as_callback(staged *self, pl_function *ret)
{
    int n = self->function->n_outputs;
    self->specs = calloc((size_t)n + 1, sizeof *self->specs);
    if (!self->specs) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < n; i++) {
        const pl_type *type = &self->function->outputs[i]->type;
        self->specs[i] = (pl_spec){.dtype = type->dtype, .shape = type->shape};
    }
    ret->call = call_back;
    ret->output_specs = self->specs;
    return 0;
}

/* ---- as a graph ---- */

/* What is known of an input, by the placeholder or by what will be given. */
static pl_type input_type(const pl_type *traced, const pl_spec *given)
{
    pl_type type = *traced;
    if (type.shape.rank == PL_RANK_UNKNOWN)
        type.shape = given->shape;
    for (int i = 0; i < type.shape.rank && given->shape.rank == type.shape.rank; i++)
        if (type.shape.dims[i] == PL_UNKNOWN)
            type.shape.dims[i] = given->shape.dims[i];
    return type;
}

static bool find_types(const function *self, const pl_spec *inputs, pl_type *types)
{
    for (int i = 0; i < self->n_inputs; i++) {
        types[i] = input_type(&self->inputs[i]->type, &inputs[i]);
        if (types[i].shape.rank == PL_RANK_UNKNOWN)
            return false;
    }
    return true;
}

static int as_graph(staged *self, const pl_type *types, pl_function *ret)
{
    function *f = self->function;
    pl_error error = {0};
    if (program_whole(f->program, types, f->values, f->n_values, f->stream, &self->graph, &error) <
        0) {
        failure_raise(&error);
        return -1;
    }
    ret->session = self->graph->session;
    ret->inputs = self->graph->inputs;
    ret->outputs = self->graph->outputs;
    return 0;
}

static int fill(staged *self, const pl_spec *inputs, int n_inputs, pl_function *ret)
{
    function *f = self->function;
    pl_type *types = calloc((size_t)f->n_inputs + 1, sizeof *types);
    if (!types) {
        PyErr_NoMemory();
        return -1;
    }
    bool known = n_inputs == f->n_inputs && find_types(f, inputs, types);
    int r =
        known && program_is_graph(f->program) ? as_graph(self, types, ret) : as_callback(self, ret);
    free(types);
    return r;
}

static int refuse_captures(const function *self)
{
    pl_error error = {0};
    pl_error_set(&error, -EINVAL,
                 "a function for a dataset hangs on '%s', which has a value only in a run of its "
                 "own graph",
                 tensor_label(self->body.outside.at[0]));
    failure_raise(&error);
    return -1;
}

int function_for_dataset(function *self, const pl_spec *inputs, int n_inputs, pl_function *ret)
{
    if (self->body.outside.n > 0)
        return refuse_captures(self);
    if (function_make_program(self) < 0)
        return -1;
    staged *made = calloc(1, sizeof *made);
    if (!made) {
        PyErr_NoMemory();
        return -1;
    }
    made->function = (function *)Py_NewRef((PyObject *)self);
    *ret = (pl_function){.n_inputs = self->n_inputs,
                         .n_outputs = self->n_outputs,
                         .context = made,
                         .release = release};
    if (fill(made, inputs, n_inputs, ret) == 0)
        return 0;
    release(made);
    return -1;
}
