/* SPDX-License-Identifier: Apache-2.0 */
/* A loop: while one function says so, another gives new values for the first inputs.
 *   inputs: what both take, what the condition has captured, what the body has */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/convert/types.h"
#include "python/function/call_make.h"
#include "python/module/streams.h"

typedef struct loop {
    call base;
    function *condition, *body;
    int n_given, n_carried;
    int64_t n_most; /* rounds; negative: any number */
} loop;

/* Of one run. */
typedef struct looping {
    const loop *self;
    pl_tensor **values; /* by input that is given; those that are carried are ours */
    pl_tensor **for_condition, **for_body; /* the same, and what was captured */
    pl_tensor **next;
    pl_error *reterr;
} looping;

static int goes_on(looping *l, const run_state *state)
{
    pl_tensor *answer;
    bool value = false;
    memcpy(l->for_condition, l->values, (size_t)l->self->n_given * sizeof(pl_tensor *));
    int r = function_run(l->self->condition, l->for_condition, state, &answer, l->reterr);
    if (r < 0)
        return r;
    r = call_read_bool(answer, "while_loop", &value, l->reterr);
    pl_tensor_unref(answer);
    return r < 0 ? r : value;
}

static int go_round(looping *l, const run_state *state)
{
    int n = l->self->n_carried;
    memcpy(l->for_body, l->values, (size_t)l->self->n_given * sizeof(pl_tensor *));
    int r = function_run(l->self->body, l->for_body, state, l->next, l->reterr);
    for (int i = 0; r == 0 && i < n; i++) {
        pl_tensor_unref(l->values[i]);
        l->values[i] = l->next[i];
    }
    return r;
}

static int go_on(looping *l, const run_state *state)
{
    run_state of_round = *state;
    int r = 1;
    for (int64_t i = 0; r > 0 && (l->self->n_most < 0 || i < l->self->n_most); i++) {
        if (state->cancel && __atomic_load_n(state->cancel, __ATOMIC_RELAXED) != 0)
            return pl_error_set(l->reterr, -ECANCELED, "while_loop was cancelled in round %lld",
                                (long long)i);
        of_round.random_stream = state->random_stream + streams_mix((uint64_t)i);
        r = goes_on(l, &of_round);
        if (r > 0) {
            int made = go_round(l, &of_round);
            r = made < 0 ? made : 1;
        }
    }
    return r < 0 ? r : 0;
}

static int run(call *base, pl_tensor *const *inputs, pl_tensor **outputs, const run_state *state,
               pl_error *reterr)
{
    const loop *self = (loop *)base;
    size_t n = (size_t)self->n_given, n_cond = (size_t)function_n_captures(self->condition),
           n_body = (size_t)function_n_captures(self->body);
    pl_tensor **room = calloc(3 * n + n_cond + n_body + (size_t)self->n_carried + 1, sizeof *room);
    if (!room)
        return pl_error_set(reterr, -ENOMEM, "no memory for a loop");
    looping l = {self,  room, room + n, room + 2 * n + n_cond, room + 3 * n + n_cond + n_body,
                 reterr};
    memcpy(l.values, inputs, n * sizeof *room);
    memcpy(l.for_condition + n, inputs + n, n_cond * sizeof *room);
    memcpy(l.for_body + n, inputs + n + n_cond, n_body * sizeof *room);
    for (int i = 0; i < self->n_carried; i++)
        pl_tensor_ref(l.values[i]);
    int r = go_on(&l, state);
    for (int i = 0; i < self->n_carried; i++)
        if (r == 0)
            outputs[i] = l.values[i];
        else
            pl_tensor_unref(l.values[i]);
    free(room);
    return r;
}

static void free_loop(call *base)
{
    loop *self = (loop *)base;
    Py_XDECREF(self->condition);
    Py_XDECREF(self->body);
    free(self);
}

static const call_class while_class = {
    .name = "while_loop", .run = run, .free = free_loop, .draws = true};

static int check_functions(const function *condition, const function *body, int n_given)
{
    const pl_type *type =
        function_n_outputs(condition) == 1 ? function_output_type(condition, 0) : NULL;
    if (!type || type->dtype != PL_BOOL) {
        PyErr_SetString(PyExc_TypeError, "the condition of while_loop is to give one bool");
        return -1;
    }
    if (function_n_outputs(body) > n_given) {
        PyErr_Format(PyExc_ValueError, "the body of while_loop gives %d values for %d inputs",
                     function_n_outputs(body), n_given);
        return -1;
    }
    for (int i = 0; i < function_n_outputs(body); i++)
        if (function_output_type(body, i)->dtype != function_input_type(body, i)->dtype) {
            PyErr_Format(PyExc_TypeError,
                         "input %d of while_loop has another dtype than what its body gives for it",
                         i);
            return -1;
        }
    return 0;
}

static loop *make(function *condition, function *body, tensor *const *given, int n_given,
                  int64_t n_most)
{
    loop *self = calloc(1, sizeof *self);
    int n_inputs = n_given + function_n_captures(condition) + function_n_captures(body);
    int n_carried = function_n_outputs(body);
    if (!self || call_init(&self->base, &while_class, n_inputs, n_carried) < 0) {
        free(self);
        return (loop *)PyErr_NoMemory();
    }
    self->n_given = n_given;
    self->base.impure = function_is_impure(condition) || function_is_impure(body);
    self->n_carried = n_carried;
    self->n_most = n_most;
    self->condition = (function *)Py_NewRef((PyObject *)condition);
    self->body = (function *)Py_NewRef((PyObject *)body);
    for (int i = 0; i < n_carried; i++)
        self->base.outputs[i] = types_join(&given[i]->type, function_output_type(body, i));
    return self;
}

/* None: any number. */
static int rounds_of(PyObject *object, int64_t *ret_n)
{
    *ret_n = -1;
    if (!object || object == Py_None)
        return 0;
    *ret_n = PyLong_AsLongLong(object);
    if (*ret_n < 0 && !PyErr_Occurred())
        *ret_n = 0;
    return PyErr_Occurred() ? -1 : 0;
}

const char call_while_doc[] =
    "while_loop(cond, body, inputs, maximum_iterations=None, name=None) -> list of tensors\n\n"
    "While `cond` is true of the inputs, `body` gives new values for the first of them.";

PyObject *call_while(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"cond", "body", "inputs", "maximum_iterations", "name", NULL};
    PyObject *condition, *body, *inputs, *most = NULL, *name = NULL, *items = NULL;
    tensor **nodes = NULL;
    int n = 0;
    int64_t n_most;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|OO:while_loop", names, &condition, &body,
                                     &inputs, &most, &name) ||
        rounds_of(most, &n_most) < 0 || arguments_name(name, &name) < 0 ||
        arguments_nodes(inputs, NULL, &nodes, &n) < 0)
        return NULL;
    function *test = arguments_function(condition, "while_loop's condition", n);
    function *rest = test ? arguments_function(body, "while_loop's body", n) : NULL;
    if (rest && check_functions(test, rest, n) == 0) {
        loop *self = make(test, rest, nodes, n, n_most);
        tensor *const *const groups[] = {nodes, function_captures(test), function_captures(rest)};
        const int n_of[] = {n, function_n_captures(test), function_n_captures(rest)};
        items = self ? call_of_nodes(&self->base, groups, n_of, 3, name) : NULL;
    }
    arguments_free(nodes, n);
    return items;
}
