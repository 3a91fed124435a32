/* SPDX-License-Identifier: Apache-2.0 */
/* Explains the plans of a program's graphs before a run. Graphs behind a call can only be planned
 * after the call has run, so they are only named. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "program/lazy_program.h"

typedef struct telling {
    pl_lazy_program *program;
    pl_runtime *runtime;
    pl_tensor *const *leaves;
    const pl_run_options *options;
    bool as_json;
    FILE *out;
    int n_written;
    pl_run_cost cost;
    pl_error *reterr;
} telling;

static bool has_inputs(const telling *t, const pl_program_step *step)
{
    for (int i = 0; i < step->n_inputs; i++)
        if (step->inputs[i] >= t->program->n_leaves)
            return false;
    return true;
}

static void add_cost(telling *t, const pl_run_cost *cost)
{
    if (cost->peak_bytes > t->cost.peak_bytes)
        t->cost.peak_bytes = cost->peak_bytes;
    if (cost->disk_bytes > t->cost.disk_bytes)
        t->cost.disk_bytes = cost->disk_bytes;
    t->cost.flops += cost->flops;
    t->cost.n_unknown += cost->n_unknown;
}

static void put(telling *t, const char *text)
{
    if (t->n_written++ > 0)
        fputs(t->as_json ? "," : "\n", t->out);
    fputs(text, t->out);
}

static int explain_session(telling *t, const pl_program_step *step, const pl_variant *graph,
                           char **ret_text)
{
    pl_feed *feeds = calloc((size_t)step->n_inputs + 1, sizeof *feeds);
    pl_fetch *fetches = calloc((size_t)step->n_outputs + 1, sizeof *fetches);
    pl_run_cost cost = {0};
    int r =
        feeds && fetches ? 0 : pl_error_set(t->reterr, -ENOMEM, "out of memory to explain a run");
    for (int i = 0; r == 0 && i < step->n_inputs; i++)
        feeds[i] = (pl_feed){graph->inputs[i], t->leaves[step->inputs[i]]};
    for (int i = 0; r == 0 && i < step->n_outputs; i++)
        fetches[i] = (pl_fetch){graph->outputs[i], NULL};
    pl_run_options options = {.size = sizeof options,
                              .budget_bytes = t->options ? t->options->budget_bytes : 0};
    if (r == 0)
        r = pl_session_explain(graph->session, fetches, step->n_outputs, feeds, step->n_inputs,
                               &options, t->as_json, ret_text, &cost, t->reterr);
    if (r == 0)
        add_cost(t, &cost);
    free(feeds);
    free(fetches);
    return r;
}

static int explain_graph(telling *t, pl_program_step *step)
{
    pl_variant *graph;
    char *text = NULL;
    pl_type *types = calloc((size_t)step->n_inputs + 1, sizeof *types);
    int r = types ? 0 : pl_error_set(t->reterr, -ENOMEM, "out of memory to explain a run");
    for (int i = 0; r == 0 && i < step->n_inputs; i++) {
        const pl_tensor *leaf = t->leaves[step->inputs[i]];
        types[i] = (pl_type){pl_tensor_dtype(leaf), *pl_tensor_shape(leaf)};
    }
    if (r == 0)
        r = pl_program_variant(t->program, step, t->runtime, types, &graph, t->reterr);
    if (r == 0)
        r = explain_session(t, step, graph, &text);
    if (r == 0)
        put(t, text);
    free(text);
    free(types);
    return r;
}

/* Names calls, and the graphs that read their results. */
static void name_step(telling *t, const pl_program_step *step)
{
    char text[160];
    const char *what = step->call < 0 ? "" : t->program->parts[step->call].routine->name;
    int n = step->call < 0 ? step->n_parts : 1;
    t->cost.n_unknown += n;
    if (t->as_json)
        snprintf(text, sizeof text, "{\"%s\": \"%s\", \"n_nodes\": %d}",
                 step->call < 0 ? "later" : "call", what, n);
    else if (step->call < 0)
        snprintf(text, sizeof text,
                 "then %d nodes, planned when what they need has been computed\n", n);
    else
        snprintf(text, sizeof text, "then a call of %s: what it takes is known when it runs\n",
                 what);
    put(t, text);
}

static int explain_steps(telling *t)
{
    int r = 0;
    bool several = t->program->n_steps != 1;
    if (t->as_json && several)
        fputs("{\"steps\": [", t->out);
    for (int i = 0; r == 0 && i < t->program->n_steps; i++) {
        pl_program_step *step = &t->program->steps[i];
        if (step->call < 0 && has_inputs(t, step))
            r = explain_graph(t, step);
        else
            name_step(t, step);
    }
    if (t->program->n_steps == 0 && !t->as_json)
        fputs("nothing is to be computed\n", t->out);
    if (t->as_json && several)
        fputs("]}", t->out);
    return r;
}

int pl_lazy_program_explain(pl_lazy_program *self, pl_runtime *runtime, pl_tensor *const *leaves,
                            const pl_run_options *options, bool as_json, char **ret_text,
                            pl_run_cost *ret_cost, pl_error *reterr)
{
    char *text = NULL;
    size_t n_bytes = 0;
    telling t = {.program = self,
                 .runtime = runtime,
                 .leaves = leaves,
                 .options = options,
                 .as_json = as_json,
                 .out = open_memstream(&text, &n_bytes),
                 .reterr = reterr};
    if (!t.out)
        return pl_error_set(reterr, -ENOMEM, "out of memory to explain a run");
    int r = explain_steps(&t);
    if (fclose(t.out) != 0 && r == 0)
        r = pl_error_set(reterr, -ENOMEM, "out of memory to explain a run");
    if (r < 0) {
        free(text);
        return r;
    }
    *ret_text = text;
    *ret_cost = t.cost;
    return 0;
}
