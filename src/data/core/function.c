/* SPDX-License-Identifier: Apache-2.0 */
#include "data/core/function.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "data/core/counter_random.h"
#include "data/core/seeds.h"
#include "exec/session/session_private.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

struct pl_bound_function {
    _Atomic int n_refs;
    pl_function function; /* with its own arrays */
    pl_spec *specs;       /* of the outputs */
    bool trivial;
    int *handed_on; /* by output: 1 + the input that it returns; 0: it is computed */
    int n_computed; /* outputs that are computed */
};

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "out of memory for a function");
}

/* ---- making ---- */

/* Returns -1 if the output is not an input. */
static int input_of(const pl_function *function, const pl_node *output)
{
    for (int i = 0; i < function->n_inputs; i++)
        if (function->inputs[i] == output)
            return i;
    return -1;
}

static int check_placeholder(const pl_node *node, const pl_spec *spec, int i, const char *what,
                             pl_error *reterr)
{
    if (strcmp(pl_node_op(node), "placeholder") != 0)
        return pl_error_set(reterr, -EINVAL, "%s: input %d is %s '%s', not a placeholder", what, i,
                            pl_node_op(node), pl_node_name(node));
    if (spec->dtype != pl_node_dtype(node))
        return pl_error_set(reterr, -EINVAL, "%s: placeholder '%s' takes %s, component %d is %s",
                            what, pl_node_name(node), pl_dtype_info_of(pl_node_dtype(node))->name,
                            i, spec->dtype ? pl_dtype_info_of(spec->dtype)->name : "a dataset");
    if (spec->shape.rank != PL_RANK_UNKNOWN &&
        !pl_shape_compatible(&spec->shape, pl_node_shape(node)))
        return pl_error_set(reterr, -EINVAL, "%s: placeholder '%s' takes %s, component %d is %s",
                            what, pl_node_name(node), PL_SHAPE_TEXT(pl_node_shape(node)), i,
                            PL_SHAPE_TEXT(&spec->shape));
    return 0;
}

/* Reports errors that every call would have. */
static int check_nodes(const pl_function *function, const char *what, pl_error *reterr)
{
    int r = pl_session_check_nodes(function->session, function->inputs, function->n_inputs, what,
                                   "input", reterr);
    if (r == 0)
        r = pl_session_check_nodes(function->session, function->outputs, function->n_outputs, what,
                                   "output", reterr);
    return r;
}

static int check(const pl_function *function, const pl_spec *inputs, int n_inputs, const char *what,
                 pl_error *reterr)
{
    if (!function->session == !function->call)
        return pl_error_set(reterr, -EINVAL, "%s: a function is a graph or a callback", what);
    if (function->n_inputs != n_inputs)
        return pl_error_set(reterr, -EINVAL,
                            "%s: the function takes %d components, the elements have %d", what,
                            function->n_inputs, n_inputs);
    int r = function->session ? check_nodes(function, what, reterr) : 0;
    for (int i = 0; r == 0 && function->session && i < n_inputs; i++)
        r = check_placeholder(function->inputs[i], &inputs[i], i, what, reterr);
    return r;
}

static int copy_nodes(pl_node *const **nodes, int n)
{
    pl_node **copy = calloc((size_t)n + 1, sizeof(pl_node *));
    if (!copy)
        return -ENOMEM;
    memcpy(copy, *nodes, (size_t)n * sizeof(pl_node *));
    *nodes = copy;
    return 0;
}

/* The spec of a graph's output, as far as known before a run. */
static pl_spec spec_of(const pl_node *node, const pl_spec *handed_on)
{
    return handed_on ? *handed_on
                     : (pl_spec){.dtype = pl_node_dtype(node), .shape = *pl_node_shape(node)};
}

static int set_up(pl_bound_function *bound, const pl_spec *inputs)
{
    pl_function *own = &bound->function;
    pl_node *const *nodes[] = {own->inputs, own->outputs};
    const pl_spec *said = own->output_specs;
    own->inputs = own->outputs = NULL;
    own->output_specs = NULL;
    bound->specs = calloc((size_t)own->n_outputs + 1, sizeof *bound->specs);
    bound->handed_on = calloc((size_t)own->n_outputs + 1, sizeof *bound->handed_on);
    if (!bound->specs || !bound->handed_on)
        return -ENOMEM;
    if (own->session) {
        if (copy_nodes(&nodes[0], own->n_inputs) < 0)
            return -ENOMEM;
        own->inputs = nodes[0];
        if (copy_nodes(&nodes[1], own->n_outputs) < 0)
            return -ENOMEM;
        own->outputs = nodes[1];
    }
    int r = 0;
    for (int i = 0; r == 0 && i < own->n_outputs; i++) {
        int from = own->session ? input_of(own, own->outputs[i]) : -1;
        bound->handed_on[i] = from + 1;
        bound->n_computed += from < 0;
        pl_spec spec =
            own->session ? spec_of(own->outputs[i], from < 0 ? NULL : &inputs[from]) : said[i];
        r = pl_spec_copy(&bound->specs[i], &spec);
    }
    bound->trivial = own->session && bound->n_computed == 0;
    return r;
}

int pl_bound_function_new(const pl_function *function, const pl_spec *inputs, int n_inputs,
                          const char *what, pl_bound_function **ret_bound, pl_error *reterr)
{
    int r = check(function, inputs, n_inputs, what, reterr);
    pl_bound_function *bound = r == 0 ? calloc(1, sizeof *bound) : NULL;
    if (!bound) {
        if (function->release)
            function->release(function->context);
        return r < 0 ? r : no_memory(reterr);
    }
    atomic_init(&bound->n_refs, 1);
    bound->function = *function;
    if (set_up(bound, inputs) < 0) {
        pl_bound_function_unref(bound);
        return no_memory(reterr);
    }
    *ret_bound = bound;
    return 0;
}

pl_bound_function *pl_bound_function_ref(pl_bound_function *bound)
{
    atomic_fetch_add_explicit(&bound->n_refs, 1, memory_order_relaxed);
    return bound;
}

void pl_bound_function_unref(pl_bound_function *bound)
{
    if (!bound || atomic_fetch_sub_explicit(&bound->n_refs, 1, memory_order_acq_rel) > 1)
        return;
    for (int i = 0; bound->specs && i < bound->function.n_outputs; i++)
        pl_spec_clear(&bound->specs[i]);
    free(bound->specs);
    free(bound->handed_on);
    free((pl_node **)bound->function.inputs);
    free((pl_node **)bound->function.outputs);
    if (bound->function.release)
        bound->function.release(bound->function.context);
    free(bound);
}

int pl_bound_function_n_outputs(const pl_bound_function *bound)
{
    return bound->function.n_outputs;
}

const pl_spec *pl_bound_function_spec(const pl_bound_function *bound, int output)
{
    return &bound->specs[output];
}

bool pl_bound_function_is_trivial(const pl_bound_function *bound)
{
    return bound->trivial;
}

/* ---- calling ---- */

static void hand_on(const pl_bound_function *bound, const pl_item *inputs, pl_item *outputs)
{
    for (int i = 0; i < bound->function.n_outputs; i++)
        if (bound->handed_on[i] > 0) {
            outputs[i] = inputs[bound->handed_on[i] - 1];
            if (outputs[i].tensor)
                pl_tensor_ref(outputs[i].tensor);
            if (outputs[i].dataset)
                pl_dataset_ref(outputs[i].dataset);
        }
}

/* Arrays for one call: on the stack, if they are small. */
typedef struct scratch {
    void *many; /* otherwise */
    _Alignas(16) char few[1024];
} scratch;

static void *scratch_take(scratch *s, size_t bytes)
{
    s->many = bytes <= sizeof s->few ? NULL : malloc(bytes);
    void *room = bytes <= sizeof s->few ? s->few : s->many;
    if (room)
        memset(room, 0, bytes);
    return room;
}

static int run_graph(const pl_bound_function *bound, pl_pass *pass, uint64_t draw,
                     const pl_item *inputs, pl_item *outputs, pl_error *reterr)
{
    const pl_function *function = &bound->function;
    struct {
        pl_feed feed;
        pl_fetch fetch;
        pl_tensor *tensor;
    } each;
    size_t n_most = (size_t)(function->n_inputs + bound->n_computed);
    scratch s;
    pl_feed *feeds = scratch_take(&s, n_most * sizeof each);
    if (!feeds)
        return no_memory(reterr);
    pl_fetch *fetches = (pl_fetch *)(feeds + function->n_inputs);
    pl_tensor **tensors = (pl_tensor **)(fetches + bound->n_computed);
    int n = 0;
    for (int i = 0; i < function->n_inputs; i++)
        feeds[i] = (pl_feed){function->inputs[i], inputs[i].tensor};
    for (int i = 0; i < function->n_outputs; i++)
        if (bound->handed_on[i] == 0)
            fetches[n++] = (pl_fetch){function->outputs[i], NULL};
    pl_run_options options = {.cancel = &pass->over, .random_stream = draw};
    int r = n == 0 ? 0
                   : pl_session_run(function->session, fetches, n, feeds, function->n_inputs,
                                    &options, tensors, reterr);
    n = 0;
    for (int i = 0; r == 0 && i < function->n_outputs; i++)
        if (bound->handed_on[i] == 0)
            outputs[i] = (pl_item){.tensor = tensors[n++]};
    if (r == 0)
        hand_on(bound, inputs, outputs);
    free(s.many);
    return r;
}

/* The draw of the callback that this thread is in. */
static _Thread_local uint64_t current_draw;
static _Thread_local const int *current_over;

uint64_t pl_dataset_random_stream(void)
{
    return current_draw;
}

const int *pl_dataset_cancel(void)
{
    return current_over;
}

uint64_t pl_bound_function_draw(pl_stage *stage)
{
    const pl_stage *input = stage->dataset->n_inputs > 0 ? stage->inputs[0] : NULL;
    uint64_t place = (uint64_t)(input ? input->n_next : stage->n_next);
    uint64_t draw = pl_draw(pl_draw(pl_seed_pass_number(stage->pass), stage->round), place);
    return draw ? draw : 1;
}

static int check_outputs(const pl_bound_function *bound, const pl_item *outputs, pl_error *reterr)
{
    int r = 0;
    for (int i = 0; r == 0 && i < bound->function.n_outputs; i++)
        r = outputs[i].tensor || outputs[i].dataset
                ? pl_spec_check(&bound->specs[i], &outputs[i], i, reterr)
                : pl_error_set(reterr, -EINVAL, "the callback made no component %d", i);
    return r;
}

static int run_callback(const pl_bound_function *bound, const pl_pass *pass, uint64_t draw,
                        const pl_item *inputs, pl_item *outputs, pl_error *reterr)
{
    const pl_function *function = &bound->function;
    scratch s;
    pl_value *given =
        scratch_take(&s, (size_t)(function->n_inputs + function->n_outputs) * sizeof *given);
    if (!given)
        return no_memory(reterr);
    pl_value *made = given + function->n_inputs;
    for (int i = 0; i < function->n_inputs; i++)
        given[i] = (pl_value){inputs[i].tensor, inputs[i].dataset};
    uint64_t outer_draw = current_draw;
    const int *outer_over = current_over;
    current_draw = draw;
    current_over = &pass->over;
    int r = function->call(function->context, given, function->n_inputs, made, function->n_outputs,
                           reterr);
    current_draw = outer_draw;
    current_over = outer_over;
    for (int i = 0; i < function->n_outputs; i++)
        outputs[i] = (pl_item){.tensor = made[i].tensor, .dataset = made[i].dataset};
    free(s.many);
    return r < 0 ? r : check_outputs(bound, outputs, reterr);
}

static int run(pl_bound_function *bound, pl_stage *stage, pl_element *input, pl_element *output,
               pl_error *reterr)
{
    pl_item *inputs = pl_element_items(input);
    int r = 0;
    for (int i = 0; r == 0 && !bound->trivial && i < input->n; i++)
        r = pl_item_settle(&inputs[i], stage->pass->runtime, reterr);
    if (r < 0)
        return r;
    uint64_t draw = input->draw ? input->draw : pl_bound_function_draw(stage);
    pl_item *outputs = pl_element_items(output);
    return bound->function.session
               ? run_graph(bound, stage->pass, draw, inputs, outputs, reterr)
               : run_callback(bound, stage->pass, draw, inputs, outputs, reterr);
}

int pl_bound_function_run(pl_bound_function *bound, pl_stage *stage, pl_element *input,
                          pl_element *ret_output, pl_error *reterr)
{
    pl_element output;
    int r = pl_element_init(&output, bound->function.n_outputs);
    if (r < 0)
        return pl_pass_fail(stage->pass, r, reterr, "out of memory for an element");
    output.n_items = 0;
    uint64_t begun_ns = bound->trivial ? 0 : pl_clock_monotonic_ns();
    atomic_fetch_add_explicit(&stage->profile.n_inside, 1, memory_order_relaxed);
    r = run(bound, stage, input, &output, reterr);
    atomic_fetch_sub_explicit(&stage->profile.n_inside, 1, memory_order_relaxed);
    if (begun_ns)
        atomic_fetch_add_explicit(&stage->profile.busy_ns, pl_clock_monotonic_ns() - begun_ns,
                                  memory_order_relaxed);
    if (r < 0) {
        pl_element_clear(&output);
        return pl_stage_fail_as(ret_output, input, r);
    }
    pl_element_pass_on(input, &output);
    *ret_output = output;
    return 1;
}

int pl_bound_function_map(pl_bound_function *bound, pl_stage *stage, pl_element *input,
                          pl_element *ret_output, pl_error *reterr)
{
    int r = pl_bound_function_run(bound, stage, input, ret_output, reterr);
    if (pl_pass_later(stage->pass, r)) {
        pl_element_clear(ret_output);
        return PL_RETRY_ALONE;
    }
    if (r < 0 && r != PL_REPORTED) {
        input->n_items -= input->n_items > 0; /* the element itself counts as a bad one */
        pl_element_pass_on(input, ret_output);
    }
    pl_element_clear(input);
    return r;
}
