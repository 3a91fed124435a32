/* SPDX-License-Identifier: Apache-2.0 */
/* See stages.h. */
#include "exec/stages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/size.h"
#include "exec/data.h"
#include "graph/infer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* A stage, or what stages wait for and no plan has. */
typedef struct uses {
    int n_left; /* stages that still read it */
    bool made;  /* here, not given */
    bool kept;  /* the plan asks for it, or it becomes a variable's value */
} uses;

typedef struct runner {
    const pl_stages *stages;
    uses *uses;         /* by number of the node */
    pl_tensor **inputs; /* of the stage */
    pl_shape *shapes;   /* by number of the node: of the stage's inputs */
} runner;

bool pl_stages_any(const pl_graph *graph, const bool *needed)
{
    for (int i = pl_graph_n_nodes(graph) - 1; i >= 0; i--)
        if (needed[i] && pl_data_takes(pl_graph_node(graph, i)))
            return true;
    return false;
}

bool pl_stages_asked(const pl_graph *graph, const bool *needed, const int *asked,
                     const pl_node *stage)
{
    for (int i = stage->number + 1; !asked[stage->number] && i < pl_graph_n_nodes(graph); i++) {
        const pl_node *node = pl_graph_node(graph, i);
        for (int k = 0; needed[i] && !pl_data_takes(node) && k < node->n_inputs; k++)
            if (node->inputs[k] == stage)
                return true;
    }
    return asked[stage->number];
}

static void count_uses(runner *r)
{
    const pl_stages *stages = r->stages;
    for (int i = 0; i < pl_graph_n_nodes(stages->graph); i++) {
        const pl_node *node = pl_graph_node(stages->graph, i);
        bool stage = pl_data_takes(node);
        if (!stages->needed[i])
            continue;
        r->uses[i].kept |= stages->asked[i] || node->op->op_class == PL_CLASS_STATE;
        for (int k = 0; k < node->n_inputs; k++) {
            uses *input = &r->uses[node->inputs[k]->number];
            input->n_left += stage;
            input->kept |= !stage;
        }
    }
}

static int cancelled(const pl_node *node, pl_error *reterr)
{
    return pl_error_set(reterr, -ECANCELED, "%s '%s': the run was cancelled", node->op->name,
                        node->name);
}

static bool has_a_value(const pl_node *node)
{
    return node->op->id != PL_OP_placeholder && node->op->id != PL_OP_constant &&
           node->op->id != PL_OP_variable && node->op->id != PL_OP_file;
}

static int find_input(runner *r, const pl_node *input, pl_tensor **ret_tensor, pl_error *reterr)
{
    const pl_stages *stages = r->stages;
    if (!stages->of_node[input->number]) {
        if (!has_a_value(input))
            return pl_error_set(
                reterr, -EINVAL, "%s '%s' has no value: %s", input->op->name, input->name,
                input->op->id == PL_OP_placeholder ? "feed it" : "give it one first");
        int code = stages->compute(stages->context, input, reterr);
        if (code < 0)
            return code;
        r->uses[input->number].made = true;
    }
    *ret_tensor = stages->of_node[input->number];
    return 0;
}

static void drop_inputs(runner *r, const pl_node *node)
{
    for (int k = 0; k < node->n_inputs; k++) {
        int number = node->inputs[k]->number;
        uses *input = &r->uses[number];
        if (--input->n_left == 0 && input->made && !input->kept)
            pl_tensor_unref(PL_TAKE(r->stages->of_node[number]));
    }
}

/* What was not known when the node was added may be refused now. */
static int infer_again(runner *r, const pl_node *node, pl_error *reterr)
{
    for (int k = 0; k < node->n_inputs; k++)
        r->shapes[node->inputs[k]->number] =
            r->inputs[k] ? r->inputs[k]->shape : node->inputs[k]->shape;
    pl_infer in = {.op = node->op,
                   .name = node->name,
                   .inputs = node->inputs,
                   .n_inputs = node->n_inputs,
                   .attrs = node->attrs,
                   .shapes = r->shapes};
    return pl_infer_run(&in, reterr);
}

/* What is refused may fit when another run has ended. */
static int run_in_turn(runner *r, const pl_node *node, pl_error *reterr)
{
    const pl_stages *stages = r->stages;
    int code, waited = 0;
    do {
        const pl_data_call call = {.runtime = stages->runtime,
                                   .node = node,
                                   .inputs = r->inputs,
                                   .budget_bytes = stages->budget(stages->context),
                                   .promise = stages->promise,
                                   .run_graph = stages->run_graph,
                                   .context = stages->context};
        code = pl_data_run(&call, &stages->of_node[node->number], reterr);
        stages->settle(stages->context);
        if (code == PL_EBUDGET || code == -ENOSPC)
            waited = stages->wait(stages->context);
    } while ((code == PL_EBUDGET || code == -ENOSPC) && waited == 0);
    stages->be_patient(stages->context);
    return waited == -ECANCELED ? cancelled(node, reterr) : code;
}

static int run_stage(runner *r, const pl_node *node, pl_error *reterr)
{
    const pl_stages *stages = r->stages;
    int code = stages->check(stages->context) < 0 ? cancelled(node, reterr) : 0;
    for (int k = 0; code == 0 && k < node->n_inputs; k++)
        if (k > 0 || node->op->id != PL_OP_assign) /* the variable need not have a value */
            code = find_input(r, node->inputs[k], &r->inputs[k], reterr);
        else
            r->inputs[k] = NULL;
    if (code == 0)
        code = infer_again(r, node, reterr);
    if (code == 0)
        code = run_in_turn(r, node, reterr);
    if (code < 0)
        return code;
    r->uses[node->number].made = true;
    drop_inputs(r, node);
    return 0;
}

static int most_inputs(const pl_stages *stages)
{
    int most = 1;
    for (int i = 0; i < pl_graph_n_nodes(stages->graph); i++) {
        const pl_node *node = pl_graph_node(stages->graph, i);
        if (stages->needed[i] && node->n_inputs > most)
            most = node->n_inputs;
    }
    return most;
}

int pl_stages_run(const pl_stages *stages, pl_error *reterr)
{
    int n = pl_graph_n_nodes(stages->graph), code = 0;
    runner r = {.stages = stages};
    r.uses = calloc((size_t)n + 1, sizeof *r.uses);
    r.inputs = calloc((size_t)most_inputs(stages), sizeof(pl_tensor *));
    r.shapes = calloc((size_t)n + 1, sizeof *r.shapes);
    if (!r.uses || !r.inputs || !r.shapes)
        code = pl_error_set(reterr, -ENOMEM, "no memory to describe a run");
    else
        count_uses(&r);
    for (int i = 0; code == 0 && i < n; i++) {
        const pl_node *node = pl_graph_node(stages->graph, i);
        if (stages->needed[i] && !stages->of_node[i] && pl_data_takes(node))
            code = run_stage(&r, node, reterr);
    }
    free(r.uses);
    free(r.inputs);
    free(r.shapes);
    return code;
}

/* ---- for people ---- */

/* "12.0 KiB", or "?": of strings, and of what is not known, nobody knows before. */
static bool bytes_of(const pl_node *node, const pl_shape *shape, uint64_t *ret_bytes)
{
    int64_t bytes;
    if (node->dtype == PL_STRING || !pl_shape_is_known(shape) ||
        pl_shape_bytes(shape, pl_dtype_info_of(node->dtype)->item_bytes, &bytes, NULL) < 0)
        return false;
    *ret_bytes = (uint64_t)bytes;
    return true;
}

static void write_shape(const pl_shape *shape, FILE *to)
{
    fputc('[', to);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] == PL_UNKNOWN)
            fprintf(to, "%snull", i > 0 ? "," : "");
        else
            fprintf(to, "%s%" PRId64, i > 0 ? "," : "", shape->dims[i]);
    fputc(']', to);
}

static void write_json(const pl_node *node, const pl_shape *shape, FILE *to)
{
    uint64_t bytes;
    fprintf(to, "{\"op\":\"%s\",\"name\":\"%s\",\"dtype\":\"%s\",\"shape\":", node->op->name,
            node->name, pl_dtype_info_of(node->dtype)->name);
    write_shape(shape, to);
    if (bytes_of(node, shape, &bytes))
        fprintf(to, ",\"bytes\":%" PRIu64, bytes);
    else
        fputs(",\"bytes\":null", to);
    fputs(",\"where\":\"memory\"}", to);
}

static void write_text(int number, const pl_node *node, const pl_shape *shape, FILE *to)
{
    uint64_t bytes;
    char name[160];
    snprintf(name, sizeof name, "%s '%s'", node->op->name, node->name);
    fprintf(to, "  s%d  %-28s %-16s %10s %-6s  before the plan: %s\n", number, name,
            PL_SHAPE_TEXT(shape), bytes_of(node, shape, &bytes) ? PL_SIZE(bytes) : "?", "memory",
            node->op->op_class == PL_CLASS_DATA ? "is data" : "has to do with strings");
}

void pl_stages_explain(const pl_stages *stages, const pl_shape *shapes, bool as_json, FILE *to)
{
    int n = 0;
    for (int i = 0; i < pl_graph_n_nodes(stages->graph); i++) {
        const pl_node *node = pl_graph_node(stages->graph, i);
        if (!stages->needed[i] || !pl_data_takes(node))
            continue;
        if (as_json && n > 0)
            fputc(',', to);
        if (as_json)
            write_json(node, &shapes[i], to);
        else
            write_text(n, node, &shapes[i], to);
        n++;
    }
}
