/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: reference counts and runs. See lazy_program.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "program/lazy_program.h"

/* ---- references ---- */

pl_lazy_program *pl_lazy_program_ref(pl_lazy_program *self)
{
    atomic_fetch_add(&self->n_refs, 1);
    for (int i = 0; i < self->n_calls; i++)
        pl_routine_ref(self->calls[i]);
    return self;
}

void pl_lazy_program_let_go(pl_lazy_program *self)
{
    while (self) {
        pl_lazy_program *next = self->kept ? NULL : PL_TAKE(self->next);
        if (atomic_fetch_sub(&self->n_refs, 1) == 1)
            pl_lazy_program_free(self);
        self = next;
    }
}

/* The calls go first: freeing the last reference to a call also drops the evaluators' references.
 * Nobody runs the program any more, because that takes a reference. */
void pl_lazy_program_unref(pl_lazy_program *self)
{
    if (!self)
        return;
    for (int i = 0; i < self->n_calls; i++)
        pl_routine_unref(self->calls[i]);
    if (atomic_fetch_sub(&self->n_refs, 1) == 1)
        pl_lazy_program_free(self);
}

bool pl_lazy_program_is_impure(const pl_lazy_program *self)
{
    for (int i = 0; i < self->n_calls; i++)
        if (self->calls[i]->impure)
            return true;
    return false;
}

/* ---- a run ---- */

/* A run: values by slot; those of leaves are borrowed. */
typedef struct running {
    pl_lazy_program *program;
    pl_evaluator *evaluator;
    pl_tensor **slots;
    const char *const *npy_paths;  /* by output; may be NULL */
    const pl_run_options *options; /* the struct's size in the library */
    int step;
    pl_error *reterr;
} running;

/* All steps have the same weight. */
static void tell(void *context, double fraction, const char *name)
{
    const running *run = context;
    double done = (run->step + fraction) / run->program->n_steps;
    if (fraction < 1 || run->step == run->program->n_steps - 1)
        run->options->progress(run->options->progress_context, done, name);
}

static pl_run_options options_of(running *run)
{
    pl_run_options options = *run->options;
    if (options.progress && run->program->n_steps > 1) {
        options.progress = tell;
        options.progress_context = run;
    }
    return options;
}

/* Is the slot wanted as a tensor, by another step or by the caller? */
static bool stays(const running *run, int slot)
{
    const pl_lazy_program *whole = run->program;
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

/* The fetches of a graph: tensors first, then files. */
typedef struct request {
    pl_feed *feeds;
    pl_fetch *fetches;
    pl_tensor **tensors;
    int *slots; /* place of the fetch; -1: a file */
    int n_fetches;
    pl_variant *variant;
    void *many; /* NULL: `few` had room */
    _Alignas(16) char few[2048];
} request;

static int request_room(request *q, const running *run, const pl_program_step *step)
{
    size_t n_fetches =
        (size_t)step->n_outputs + (run->npy_paths ? (size_t)run->program->n_outputs : 0);
    size_t bytes = (size_t)step->n_inputs * sizeof(pl_feed) +
                   n_fetches * (sizeof(pl_fetch) + sizeof(pl_tensor *) + sizeof(int));
    q->many = bytes > sizeof q->few ? malloc(bytes) : NULL;
    char *at = q->many ? q->many : q->few;
    if (bytes > sizeof q->few && !q->many)
        return pl_error_set(run->reterr, -ENOMEM, "out of memory for a run");
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

static int find_graph(request *q, const running *run, pl_program_step *step)
{
    pl_variant *known =
        step->open ? NULL : atomic_load_explicit(&step->variants, memory_order_acquire);
    pl_runtime *runtime = pl_evaluator_runtime(run->evaluator);
    if (known && known->runtime == runtime) {
        q->variant = known;
        return 0;
    }
    pl_type *types = calloc((size_t)step->n_inputs + 1, sizeof *types);
    if (!types)
        return pl_error_set(run->reterr, -ENOMEM, "out of memory for a run");
    for (int i = 0; i < step->n_inputs; i++) {
        const pl_tensor *input = run->slots[step->inputs[i]];
        types[i] = (pl_type){pl_tensor_dtype(input), *pl_tensor_shape(input)};
    }
    int r = pl_program_variant(run->program, step, runtime, types, &q->variant, run->reterr);
    free(types);
    return r;
}

static int make_request(request *q, const running *run, pl_program_step *step)
{
    const pl_lazy_program *whole = run->program;
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

static int run_graph(running *run, pl_program_step *step)
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

static int run_call(running *run, const pl_program_step *step)
{
    pl_lazy_program *whole = run->program;
    const pl_program_part *part = &whole->parts[step->call];
    pl_routine *what = part->routine;
    size_t n = (size_t)what->n_inputs + (size_t)what->n_outputs + 1;
    pl_tensor **inputs = calloc(n, sizeof(pl_tensor *));
    if (!inputs)
        return pl_error_set(run->reterr, -ENOMEM, "out of memory for a call of %s", what->name);
    pl_tensor **outputs = inputs + what->n_inputs;
    for (int i = 0; i < what->n_inputs; i++)
        inputs[i] = run->slots[whole->inputs[part->first + i]];
    pl_run_options options = *run->options;
    options.random_stream += part->stream;
    options.progress = NULL;
    int r = what->class->run(what, run->evaluator, inputs, outputs, &options, run->reterr);
    for (int i = 0; r == 0 && i < step->n_outputs; i++) {
        int item = whole->parts[step->outputs[i] - whole->n_leaves].item;
        run->slots[step->outputs[i]] = pl_tensor_ref(outputs[item]);
    }
    for (int i = 0; i < what->n_outputs; i++)
        pl_tensor_unref(outputs[i]);
    free(inputs);
    return r;
}

static int check_cancel(const pl_run_options *options, pl_error *reterr)
{
    bool cancelled = options->cancel && __atomic_load_n(options->cancel, __ATOMIC_RELAXED) != 0;
    return cancelled ? pl_error_set(reterr, -ECANCELED, "the run was cancelled") : 0;
}

static void drop_read(const running *run, const pl_program_step *step)
{
    const pl_lazy_program *whole = run->program;
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
    pl_lazy_program *whole = run->program;
    int r = 0;
    for (run->step = 0; r == 0 && run->step < whole->n_steps; run->step++) {
        pl_program_step *step = &whole->steps[run->step];
        r = whole->n_steps > 1 ? check_cancel(run->options, run->reterr) : 0;
        if (r == 0)
            r = step->call < 0 ? run_graph(run, step) : run_call(run, step);
        if (r == 0 && whole->n_steps > 1)
            drop_read(run, step);
    }
    return r;
}

/* Fetches that no graph computes: leaves, and results of calls. */
static int save_rest(const running *run)
{
    const pl_lazy_program *whole = run->program;
    int r = 0;
    for (int i = 0; r == 0 && run->npy_paths && i < whole->n_outputs; i++) {
        int slot = whole->outputs[i];
        bool in_graph =
            slot >= whole->n_leaves && whole->parts[slot - whole->n_leaves].kind == PL_EXPR_OP;
        if (run->npy_paths[i] && !in_graph)
            r = pl_tensor_save_npy(run->slots[slot], run->npy_paths[i], run->reterr);
    }
    return r;
}

int pl_lazy_program_run(pl_lazy_program *self, pl_evaluator *evaluator, pl_tensor *const *leaves,
                        const char *const *npy_paths, const pl_run_options *options,
                        pl_tensor **outputs, pl_error *reterr)
{
    running run = {.program = self,
                   .evaluator = evaluator,
                   .npy_paths = npy_paths,
                   .options = options,
                   .reterr = reterr};
    run.slots = calloc((size_t)pl_program_n_slots(self) + 1, sizeof(pl_tensor *));
    if (!run.slots)
        return pl_error_set(reterr, -ENOMEM, "out of memory for a run");
    if (self->n_leaves > 0)
        memcpy(run.slots, leaves, (size_t)self->n_leaves * sizeof(pl_tensor *));
    int r = run_steps(&run);
    if (r == 0)
        r = save_rest(&run);
    for (int i = 0; r == 0 && i < self->n_outputs; i++) {
        pl_tensor *value = run.slots[self->outputs[i]];
        outputs[i] = npy_paths && npy_paths[i] ? NULL : pl_tensor_ref(value);
    }
    for (int i = self->n_leaves; i < pl_program_n_slots(self); i++)
        if (run.slots[i])
            pl_tensor_unref(run.slots[i]);
    free(run.slots);
    return r;
}
