/* SPDX-License-Identifier: Apache-2.0 */
/* See eager_ops.h. */
#include "exec/eager/eager_ops.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/size.h"
#include "exec/eager/whole_ops.h"
#include "graph/infer.h"
#include "tensor/dtype.h"
#include "tensor/pool.h"
#include "tensor/shape.h"

/* A stage, or what stages wait for and no plan has. */
typedef struct uses {
    int n_left;      /* stages that still read it */
    bool made;       /* here, not given */
    bool kept;       /* the plan asks for it, or it becomes a variable's value */
    bool on_the_way; /* a picture that is made within the resize that alone reads it */
} uses;

/* As often a stage is tried again. */
enum { BROKEN_PROMISES_MAX = 4 };

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

/* The picture that is decoded within a resize; NULL: none. */
static const pl_node *decoded_within(const runner *r, const pl_node *node)
{
    return node->n_inputs > 0 && r->uses[node->inputs[0]->number].on_the_way ? node->inputs[0]
                                                                             : NULL;
}

/* Whose inputs a stage reads. */
static const pl_node *reader_of(const runner *r, const pl_node *node)
{
    const pl_node *decoded = decoded_within(r, node);
    return decoded ? decoded : node;
}

static bool makes_pictures(const pl_node *node)
{
    return node->op->id == PL_OP_decode_jpeg || node->op->id == PL_OP_decode_png ||
           node->op->id == PL_OP_decode_image;
}

/* Is it a picture that one resize reads, and nobody else? Then that takes it row by row, which stay
 * in the nearest cache. Where there are threads to share the rows it is made first. */
static bool is_on_the_way(const runner *r, const pl_node *node)
{
    const pl_stages *stages = r->stages;
    const uses *u = &r->uses[node->number];
    if (!makes_pictures(node) || u->n_left != 1 || u->kept ||
        pl_threads_count_here(stages->runtime->threads) > 1)
        return false;
    for (int i = node->number + 1; i < pl_graph_n_nodes(stages->graph); i++) {
        const pl_node *user = pl_graph_node(stages->graph, i);
        if (stages->needed[i] && user->n_inputs == 1 && user->inputs[0] == node)
            return !stages->of_node[i] && user->op->id == PL_OP_resize && pl_data_takes_rows(user);
    }
    return false;
}

static int run_once(runner *r, const pl_node *node, bool exactly, bool *ret_promised,
                    pl_error *reterr)
{
    const pl_stages *stages = r->stages;
    pl_data_call call = {.runtime = stages->runtime,
                         .node = node,
                         .decoded = decoded_within(r, node),
                         .inputs = r->inputs,
                         .promise = stages->promise,
                         .run_graph = stages->run_graph,
                         .context = stages->context};
    *ret_promised = false;
    if (stages->budget(stages->context, reader_of(r, node), exactly, &call.budget_bytes) < 0)
        return pl_error_set(reterr, -ENOMEM, "no memory to describe a run");
    int code = pl_data_run(&call, &stages->of_node[node->number], reterr);
    *ret_promised = stages->settle(stages->context);
    return code;
}

/* What is refused may fit in what is measured, when what idles is on disk, or when another run has
 * ended. And what was promised can be gone, to a user's tensor: then it is measured anew what there
 * is. */
static int run_in_turn(runner *r, const pl_node *node, pl_error *reterr)
{
    const pl_stages *stages = r->stages;
    int code, waited = 0, n_broken = 0;
    bool refused, exactly = false, made_room = false, promised;
    do {
        code = run_once(r, node, exactly, &promised, reterr);
        refused = code == PL_EBUDGET || code == -ENOSPC;
        if (refused && !exactly)
            exactly = true;
        else if (code == PL_EBUDGET && promised && n_broken < BROKEN_PROMISES_MAX)
            n_broken++;
        else if (refused && !made_room && stages->make_room(stages->context, reader_of(r, node)))
            made_room = true; /* once, for what shares its memory with an input comes back */
        else if (refused)
            waited = stages->wait(stages->context);
    } while (refused && waited == 0);
    stages->be_patient(stages->context);
    return waited == -ECANCELED ? cancelled(node, reterr) : code;
}

static int run_stage(runner *r, const pl_node *node, pl_error *reterr)
{
    const pl_stages *stages = r->stages;
    const pl_node *reader = reader_of(r, node);
    int code = stages->check(stages->context) < 0 ? cancelled(node, reterr) : 0;
    for (int k = 0; code == 0 && k < reader->n_inputs; k++)
        if (k > 0 || node->op->id != PL_OP_assign) /* the variable need not have a value */
            code = find_input(r, reader->inputs[k], &r->inputs[k], reterr);
        else
            r->inputs[k] = NULL;
    if (code == 0)
        code = infer_again(r, reader, reterr);
    if (code == 0)
        code = run_in_turn(r, node, reterr);
    if (code < 0)
        return code;
    r->uses[node->number].made = true;
    drop_inputs(r, reader);
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
            r.uses[i].on_the_way = is_on_the_way(&r, node);
        if (stages->needed[i] && !stages->of_node[i] && pl_data_takes(node) &&
            !r.uses[i].on_the_way)
            code = run_stage(&r, node, reterr);
    }
    free(r.uses);
    free(r.inputs);
    free(r.shapes);
    return code;
}

/* ---- what is known before ---- */

/* Of strings, and of what has no shape yet, nobody knows before. */
static bool bytes_of(const pl_node *node, const pl_shape *shape, uint64_t *ret_bytes)
{
    int64_t bytes;
    if (node->dtype == PL_STRING || !pl_shape_is_known(shape) ||
        pl_shape_bytes(shape, pl_dtype_info_of(node->dtype)->item_bytes, &bytes, NULL) < 0)
        return false;
    *ret_bytes = (uint64_t)bytes;
    return true;
}

/* In memory, of what is given or known. False if it is neither, and 0 bytes. */
static bool know(const pl_stages *stages, const pl_shape *shapes, const pl_node *node,
                 uint64_t *ret_bytes)
{
    uint64_t bytes = 0;
    const pl_tensor *given = stages->of_node[node->number];
    bool known = true;
    if (given)
        bytes = pl_buffer_bytes(given->buffer);
    else
        known = bytes_of(node, &shapes[node->number], &bytes);
    *ret_bytes = bytes > 0 ? pl_memory_cost_bytes(bytes) : 0;
    return known;
}

/* Is all known that it reads and makes? What else it claims is known too, but for pictures. */
static bool is_known(const pl_stages *stages, const pl_shape *shapes, const pl_node *stage)
{
    bool known = stage->op->id != PL_OP_decode_jpeg && stage->op->id != PL_OP_decode_png &&
                 stage->op->id != PL_OP_decode_image;
    uint64_t bytes;
    known = know(stages, shapes, stage, &bytes) && known;
    for (int k = 0; k < stage->n_inputs; k++)
        known = know(stages, shapes, stage->inputs[k], &bytes) && known;
    return known;
}

/* What is live while stages are counted. */
typedef struct tally {
    runner r;
    const pl_shape *shapes;
    pl_stages_foresee *foresee;
    uint64_t large_bytes, small_bytes; /* that stages and their plans have made; small: in slabs */
    pl_stages_cost cost;
} tally;

static void raise_peak(tally *t, uint64_t bytes)
{
    t->cost.peak_bytes = pl_max_u64(t->cost.peak_bytes, bytes);
}

static uint64_t most_of_small(const tally *t)
{
    return t->r.stages->runtime->pool->slab_bytes / PL_POOL_SMALL_SHARE;
}

static uint64_t live_bytes(const tally *t)
{
    uint64_t slab_bytes = t->r.stages->runtime->pool->slab_bytes;
    return pl_add_sat_u64(t->large_bytes,
                          pl_slabs_bytes(slab_bytes, most_of_small(t), t->small_bytes));
}

static uint64_t *kind_of(tally *t, uint64_t bytes)
{
    return bytes <= most_of_small(t) ? &t->small_bytes : &t->large_bytes;
}

/* Adds what a node leaves in memory; returns whether that is known. */
static bool count_made(tally *t, const pl_node *node)
{
    uint64_t bytes;
    bool known = know(t->r.stages, t->shapes, node, &bytes);
    t->r.uses[node->number].made = true;
    *kind_of(t, bytes) = pl_add_sat_u64(*kind_of(t, bytes), bytes);
    return known;
}

/* The inputs that are no stages, each by a plan of its own. *ret_read is what the stage reads that
 * is given. 1; 0 if not all is known. */
static int count_inputs(tally *t, const pl_node *stage, uint64_t *ret_read, pl_error *reterr)
{
    const pl_stages *stages = t->r.stages;
    uint64_t bytes;
    int known = 1;
    *ret_read = 0;
    for (int k = 0; k < stage->n_inputs; k++) {
        const pl_node *input = stage->inputs[k];
        if (stages->of_node[input->number]) {
            (void)know(stages, t->shapes, input, &bytes);
            *ret_read = pl_add_sat_u64(*ret_read, bytes);
        } else if (!t->r.uses[input->number].made && has_a_value(input)) {
            int code = t->foresee(stages->context, input, t->shapes, live_bytes(t), &bytes, reterr);
            if (code < 0)
                return code;
            if (code > 0)
                raise_peak(t, bytes);
            known &= code;
            known &= count_made(t, input);
        }
    }
    return known;
}

static void count_dropped(tally *t, const pl_node *stage)
{
    uint64_t bytes;
    for (int k = 0; k < stage->n_inputs; k++) {
        uses *input = &t->r.uses[stage->inputs[k]->number];
        if (--input->n_left > 0 || !input->made || input->kept)
            continue;
        (void)know(t->r.stages, t->shapes, stage->inputs[k], &bytes);
        *kind_of(t, bytes) = pl_sub_sat_u64(*kind_of(t, bytes), bytes);
    }
}

/* What a stage cannot do without: what it reads, and what it makes. */
static uint64_t needed_bytes(tally *t, const pl_node *stage, uint64_t read)
{
    uint64_t large = t->large_bytes, small = t->small_bytes, bytes;
    t->large_bytes = read;
    t->small_bytes = 0;
    (void)count_made(t, stage);
    for (int k = 0; k < stage->n_inputs; k++)
        if (t->r.uses[stage->inputs[k]->number].made) {
            (void)know(t->r.stages, t->shapes, stage->inputs[k], &bytes);
            *kind_of(t, bytes) = pl_add_sat_u64(*kind_of(t, bytes), bytes);
        }
    uint64_t needed = live_bytes(t);
    t->large_bytes = large;
    t->small_bytes = small;
    return needed;
}

/* Where what idles is too much beside a stage, it is put on disk, and the stage has the budget. */
static int count_peak(tally *t, const pl_node *stage, uint64_t read, pl_error *reterr)
{
    const pl_stages *stages = t->r.stages;
    uint64_t peak = pl_add_sat_u64(live_bytes(t), read), budget;
    if (stages->budget(stages->context, stage, true, &budget) < 0)
        return pl_error_set(reterr, -ENOMEM, "no memory to describe a run");
    uint64_t needed = peak <= budget ? peak : needed_bytes(t, stage, read);
    if (needed > budget)
        return pl_error_set(reterr, PL_EBUDGET,
                            "%s '%s': what it reads and makes needs %s; the budget is %s: give at "
                            "least %s",
                            stage->op->name, stage->name, PL_SIZE(needed), PL_SIZE(budget),
                            PL_SIZE(needed));
    raise_peak(t, pl_min_u64(peak, budget));
    return 0;
}

static int count_stage(tally *t, const pl_node *stage, pl_error *reterr)
{
    uint64_t read;
    bool known = is_known(t->r.stages, t->shapes, stage);
    int code = count_inputs(t, stage, &read, reterr);
    if (code < 0)
        return code;
    (void)count_made(t, stage);
    if (known && stage->op->id == PL_OP_resize)
        read =
            pl_add_sat_u64(read, pl_data_resize_scratch_bytes(t->r.stages->runtime, stage,
                                                              &t->shapes[stage->inputs[0]->number],
                                                              &t->shapes[stage->number]));
    t->cost.n_unknown += !known || code == 0;
    code = count_peak(t, stage, read, reterr);
    if (code == 0)
        count_dropped(t, stage);
    return code;
}

/* As pl_stages_run(), but that nothing is made. */
int pl_stages_count(const pl_stages *stages, const pl_shape *shapes, pl_stages_foresee *foresee,
                    pl_stages_cost *ret_cost, pl_error *reterr)
{
    int n = pl_graph_n_nodes(stages->graph), code = 0;
    tally t = {.r = {.stages = stages, .uses = calloc((size_t)n + 1, sizeof(uses))},
               .shapes = shapes,
               .foresee = foresee};
    if (!t.r.uses)
        return pl_error_set(reterr, -ENOMEM, "no memory to describe a run");
    count_uses(&t.r);
    for (int i = 0; code == 0 && i < n; i++) {
        const pl_node *node = pl_graph_node(stages->graph, i);
        if (stages->needed[i] && !stages->of_node[i] && pl_data_takes(node))
            code = count_stage(&t, node, reterr);
    }
    t.cost.left_bytes = live_bytes(&t);
    free(t.r.uses);
    if (code == 0)
        *ret_cost = t.cost;
    return code;
}

/* ---- for people ---- */

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

static void write_json(const pl_stages *stages, const pl_shape *shapes, const pl_node *node,
                       FILE *to)
{
    const pl_shape *shape = &shapes[node->number];
    uint64_t bytes;
    fprintf(to, "{\"op\":\"%s\",\"name\":\"%s\",\"dtype\":\"%s\",\"shape\":", node->op->name,
            node->name, pl_dtype_info_of(node->dtype)->name);
    write_shape(shape, to);
    if (bytes_of(node, shape, &bytes))
        fprintf(to, ",\"bytes\":%" PRIu64, bytes);
    else
        fputs(",\"bytes\":null", to);
    fprintf(to, ",\"known\":%s,\"where\":\"memory\"}",
            is_known(stages, shapes, node) ? "true" : "false");
}

static void write_text(const pl_stages *stages, const pl_shape *shapes, int number,
                       const pl_node *node, FILE *to)
{
    const pl_shape *shape = &shapes[node->number];
    uint64_t bytes;
    char name[160];
    snprintf(name, sizeof name, "%s '%s'", node->op->name, node->name);
    fprintf(to, "  s%d  %-28s %-16s %10s %-6s  before the plan: %s%s\n", number, name,
            PL_SHAPE_TEXT(shape), bytes_of(node, shape, &bytes) ? PL_SIZE(bytes) : "?", "memory",
            node->op->op_class == PL_CLASS_DATA ? "is data" : "has to do with strings",
            is_known(stages, shapes, node) ? "" : "; not all that it claims is known yet");
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
            write_json(stages, shapes, node, to);
        else
            write_text(stages, shapes, n, node, to);
        n++;
    }
}
