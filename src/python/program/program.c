/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: their life, and their runs. See program.h. */
#include "python/program/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/module/failure.h"
#include "python/module/gil.h"
#include "python/program/program_private.h"

/* ---- life ---- */

program *program_ref(program *self)
{
    atomic_fetch_add(&self->n_refs, 1);
    for (int i = 0; i < self->n_calls; i++)
        call_ref(self->calls[i]);
    return self;
}

void program_let_go(program *self)
{
    if (atomic_fetch_sub(&self->n_refs, 1) == 1)
        program_free(self);
}

/* What calls hold may be anything, so they go last: after them the program may be gone. */
static void unref(program *self)
{
    int n = self->n_calls;
    call **calls = n > 0 ? PyMem_Malloc((size_t)n * sizeof(call *)) : NULL;
    if (calls)
        memcpy(calls, self->calls, (size_t)n * sizeof(call *));
    program_let_go(self);
    for (int i = 0; calls && i < n; i++)
        call_unref(calls[i]);
    PyMem_Free(calls);
}

void program_unref(program *self)
{
    PyGILState_STATE state;
    if (!self || !gil_take(&state))
        return;
    unref(self);
    gil_give(state);
}

bool program_is_graph(const program *self)
{
    return self->n_calls == 0;
}

bool program_is_impure(const program *self)
{
    for (int i = 0; i < self->n_calls; i++)
        if (self->calls[i]->impure)
            return true;
    return false;
}

/* ---- of nodes ---- */

program *program_of_walk(node_walk *walk, tensor *const *fetches, int n_fetches)
{
    program *found = program_cache_find(walk);
    if (found)
        return found;
    program *made = program_build(walk, fetches, n_fetches);
    if (made)
        program_cache_keep(made, walk);
    return made;
}

/* The values of leaves that were met. */
static int take_values(const node_walk *walk, pl_tensor ***ret_values, int *ret_n_values)
{
    int n = walk->leaves.n - walk->n_given;
    pl_tensor **values = PyMem_Malloc(((size_t)n + 1) * sizeof(pl_tensor *));
    if (!values) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < n; i++)
        values[i] = pl_tensor_ref(walk->leaves.at[walk->n_given + i]->value);
    *ret_values = values;
    *ret_n_values = n;
    return 0;
}

static bool is_eager_draw(const tensor *node)
{
    uint64_t stream;
    const tensor *drawing = node->kind == TENSOR_ITEM ? node->inputs[0] : node;
    return !node->graph && !node->symbolic && node->kind != TENSOR_CALL &&
           walk_stream(drawing, &stream);
}

/* Ends the walk. What is eager is drawn once, what is of a graph anew in each run: so those are
 * computed before. */
static int evaluate_eager_draws(node_walk *walk)
{
    node_list draws = {0};
    int r = 0;
    for (int i = 0; r == 0 && i < walk->inner.n; i++)
        if (is_eager_draw(walk->inner.at[i]))
            r = nodes_add(&draws, walk->inner.at[i]);
    for (int i = 0; i < draws.n; i++)
        Py_INCREF((PyObject *)draws.at[i]);
    walk_done(walk);
    if (r == 0)
        r = evaluate(draws.at, draws.n);
    for (int i = 0; i < draws.n; i++)
        Py_DECREF((PyObject *)draws.at[i]);
    PyMem_Free(draws.at);
    return r;
}

static int walk_all(node_walk *walk, const program_nodes *of)
{
    int r = walk_begin(walk, of->leaves, of->n_leaves, of->leaf_types);
    for (int i = 0; r == 0 && i < of->n_first; i++)
        r = of->first[i].target ? walk_add_instead(walk, of->first[i].node, of->first[i].target)
                                : walk_add_call(walk, of->first[i].node);
    for (int i = 0; r == 0 && i < of->n_fetches; i++)
        r = walk_add(walk, of->fetches[i]);
    if (r == 0)
        r = walk_fetch(walk, of->fetches, of->n_fetches);
    return r;
}

program *program_of(const program_nodes *of, pl_tensor ***ret_values, int *ret_n_values,
                    uint64_t *ret_stream, bool *ret_eager)
{
    node_walk w;
    program *made = NULL;
    int r = walk_all(&w, of);
    if (r == 0 && w.draws_eagerly && w.draws_in_graph) {
        if (evaluate_eager_draws(&w) < 0)
            return NULL;
        r = walk_all(&w, of);
    }
    if (r == 0)
        made = program_of_walk(&w, of->fetches, of->n_fetches);
    if (made && take_values(&w, ret_values, ret_n_values) < 0) {
        program_unref(made);
        made = NULL;
    }
    *ret_stream = w.first_stream;
    *ret_eager = w.draws_eagerly;
    walk_done(&w);
    if (!made && !PyErr_Occurred())
        failure_raise(&w.error);
    return made;
}

/* ---- a run ---- */

/* Of a run: values by slot; those of leaves are borrowed. */
typedef struct running {
    program *program;
    pl_tensor **slots;
    const char *const *npy_paths; /* by output; may be NULL */
    const run_state *state;
    int step;
    pl_error *reterr;
} running;

/* Steps count alike. */
static void tell(void *context, double fraction, const char *name)
{
    const running *run = context;
    double done = (run->step + fraction) / run->program->n_steps;
    if (fraction < 1 || run->step == run->program->n_steps - 1)
        run->state->progress(run->state->progress_context, done, name);
}

static pl_run_options options_of(running *run)
{
    const run_state *state = run->state;
    bool wrapped = state->progress && run->program->n_steps > 1;
    return (pl_run_options){.budget_bytes = state->budget_bytes,
                            .cancel = state->cancel,
                            .progress = wrapped ? tell : state->progress,
                            .progress_context = wrapped ? run : state->progress_context,
                            .random_stream = state->random_stream};
}

/* Is the slot wanted as a tensor: by another step, or by the caller? */
static bool stays(const running *run, int slot)
{
    const program *whole = run->program;
    if (!run->npy_paths || whole->last_use[slot] < whole->n_steps)
        return true;
    bool read_later = false, asked = false;
    for (int s = run->step + 1; s < whole->n_steps && !read_later; s++)
        for (int i = 0; i < whole->steps[s].n_inputs; i++)
            read_later |= whole->steps[s].inputs[i] == slot;
    for (int i = 0; i < whole->n_outputs; i++)
        asked |= whole->outputs[i] == slot && !run->npy_paths[i];
    return read_later || asked;
}

/* What a graph is asked for: tensors first, then files. */
typedef struct request {
    pl_feed *feeds;
    pl_fetch *fetches;
    pl_tensor **tensors;
    int *slots; /* of the fetches; -1: a file */
    int n_fetches;
    variant *variant;
    void *many; /* NULL: `few` were enough */
    _Alignas(16) char few[2048];
} request;

static int request_room(request *q, const running *run, const program_step *step)
{
    size_t n_fetches =
        (size_t)step->n_outputs + (run->npy_paths ? (size_t)run->program->n_outputs : 0);
    size_t bytes = (size_t)step->n_inputs * sizeof(pl_feed) +
                   n_fetches * (sizeof(pl_fetch) + sizeof(pl_tensor *) + sizeof(int));
    q->many = bytes > sizeof q->few ? malloc(bytes) : NULL;
    char *at = q->many ? q->many : q->few;
    if (bytes > sizeof q->few && !q->many)
        return pl_error_set(run->reterr, -ENOMEM, "no memory for a run");
    q->feeds = (pl_feed *)at;
    q->fetches = (pl_fetch *)(q->feeds + step->n_inputs);
    q->tensors = (pl_tensor **)(q->fetches + n_fetches);
    q->slots = (int *)(q->tensors + n_fetches);
    q->n_fetches = 0;
    return 0;
}

static void ask(request *q, pl_node *node, const char *path, int slot)
{
    q->fetches[q->n_fetches] = (pl_fetch){node, path};
    q->tensors[q->n_fetches] = NULL;
    q->slots[q->n_fetches++] = path ? -1 : slot;
}

static int find_graph(request *q, const running *run, program_step *step)
{
    variant *known =
        step->open ? NULL : atomic_load_explicit(&step->variants, memory_order_acquire);
    if (known && known->runtime == module_runtime_if_any()) {
        q->variant = known;
        return 0;
    }
    pl_type *types = calloc((size_t)step->n_inputs + 1, sizeof *types);
    if (!types)
        return pl_error_set(run->reterr, -ENOMEM, "no memory for a run");
    for (int i = 0; i < step->n_inputs; i++) {
        const pl_tensor *input = run->slots[step->inputs[i]];
        types[i] = (pl_type){pl_tensor_dtype(input), *pl_tensor_shape(input)};
    }
    int r = program_variant(run->program, step, types, &q->variant, run->reterr);
    free(types);
    return r;
}

static int make_request(request *q, const running *run, program_step *step)
{
    const program *whole = run->program;
    q->many = NULL;
    int r = find_graph(q, run, step);
    if (r == 0)
        r = request_room(q, run, step);
    if (r < 0)
        return r;
    for (int i = 0; i < step->n_inputs; i++)
        q->feeds[i] = (pl_feed){q->variant->inputs[i], run->slots[step->inputs[i]]};
    for (int i = 0; i < step->n_outputs; i++)
        if (stays(run, step->outputs[i]))
            ask(q, q->variant->outputs[i], NULL, step->outputs[i]);
    for (int i = 0; run->npy_paths && i < step->n_outputs; i++)
        for (int k = 0; k < whole->n_outputs; k++)
            if (whole->outputs[k] == step->outputs[i] && run->npy_paths[k])
                ask(q, q->variant->outputs[i], run->npy_paths[k], -1);
    return 0;
}

static int run_graph(running *run, program_step *step)
{
    request q;
    int r = make_request(&q, run, step);
    if (r < 0)
        return r;
    const pl_run_options options = options_of(run);
    r = pl_session_run(q.variant->session, q.fetches, q.n_fetches, q.feeds, step->n_inputs,
                       &options, q.tensors, run->reterr);
    for (int i = 0; r == 0 && i < q.n_fetches; i++)
        if (q.slots[i] >= 0)
            run->slots[q.slots[i]] = q.tensors[i];
    free(q.many);
    return r;
}

static int run_call(running *run, const program_step *step)
{
    program *whole = run->program;
    const program_part *part = &whole->parts[step->call];
    call *what = part->call;
    size_t n = (size_t)what->n_inputs + (size_t)what->n_outputs + 1;
    pl_tensor **inputs = calloc(n, sizeof(pl_tensor *));
    if (!inputs)
        return pl_error_set(run->reterr, -ENOMEM, "no memory for a call of %s", what->class->name);
    pl_tensor **outputs = inputs + what->n_inputs;
    for (int i = 0; i < what->n_inputs; i++)
        inputs[i] = run->slots[whole->inputs[part->first + i]];
    run_state state = *run->state;
    state.random_stream += part->stream;
    state.progress = NULL;
    int r = what->class->run(what, inputs, outputs, &state, run->reterr);
    for (int i = 0; r == 0 && i < step->n_outputs; i++) {
        int item = whole->parts[step->outputs[i] - whole->n_leaves].item;
        run->slots[step->outputs[i]] = pl_tensor_ref(outputs[item]);
    }
    for (int i = 0; i < what->n_outputs; i++)
        pl_tensor_unref(outputs[i]);
    free(inputs);
    return r;
}

static int check_cancel(const run_state *state, pl_error *reterr)
{
    bool cancelled = state->cancel && __atomic_load_n(state->cancel, __ATOMIC_RELAXED) != 0;
    return cancelled ? pl_error_set(reterr, -ECANCELED, "the run was cancelled") : 0;
}

static void drop_read(const running *run, const program_step *step)
{
    const program *whole = run->program;
    for (int i = 0; i < step->n_inputs; i++) {
        int slot = step->inputs[i];
        if (slot >= whole->n_leaves && whole->last_use[slot] == run->step) {
            pl_tensor_unref(run->slots[slot]);
            run->slots[slot] = NULL;
        }
    }
}

static int run_steps(running *run)
{
    program *whole = run->program;
    int r = 0;
    for (run->step = 0; r == 0 && run->step < whole->n_steps; run->step++) {
        program_step *step = &whole->steps[run->step];
        r = whole->n_steps > 1 ? check_cancel(run->state, run->reterr) : 0;
        if (r == 0)
            r = step->call < 0 ? run_graph(run, step) : run_call(run, step);
        if (r == 0 && whole->n_steps > 1)
            drop_read(run, step);
    }
    return r;
}

/* What no graph wrote: leaves, and what calls gave. */
static int save_rest(const running *run)
{
    const program *whole = run->program;
    int r = 0;
    for (int i = 0; r == 0 && run->npy_paths && i < whole->n_outputs; i++) {
        int slot = whole->outputs[i];
        bool in_graph =
            slot >= whole->n_leaves && whole->parts[slot - whole->n_leaves].kind == TENSOR_OP;
        if (run->npy_paths[i] && !in_graph)
            r = pl_tensor_save_npy(run->slots[slot], run->npy_paths[i], run->reterr);
    }
    return r;
}

int program_run(program *self, pl_tensor *const *leaves, const char *const *npy_paths,
                const run_state *state, pl_tensor **outputs, pl_error *reterr)
{
    running run = {.program = self, .npy_paths = npy_paths, .state = state, .reterr = reterr};
    run.slots = calloc((size_t)program_n_slots(self) + 1, sizeof(pl_tensor *));
    if (!run.slots)
        return pl_error_set(reterr, -ENOMEM, "no memory for a run");
    if (self->n_leaves > 0)
        memcpy(run.slots, leaves, (size_t)self->n_leaves * sizeof(pl_tensor *));
    int r = run_steps(&run);
    if (r == 0)
        r = save_rest(&run);
    for (int i = 0; r == 0 && i < self->n_outputs; i++) {
        pl_tensor *value = run.slots[self->outputs[i]];
        outputs[i] = npy_paths && npy_paths[i] ? NULL : pl_tensor_ref(value);
    }
    for (int i = self->n_leaves; i < program_n_slots(self); i++)
        if (run.slots[i])
            pl_tensor_unref(run.slots[i]);
    free(run.slots);
    return r;
}
