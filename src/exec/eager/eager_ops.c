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

/* Counts uses of an eager op, or of a node that eager ops read. */
typedef struct uses {
    int n_left;      /* eager ops that have yet to read it */
    bool made;       /* computed here, not gathered */
    bool kept;       /* the plan reads it, or it becomes a variable's value */
    bool on_the_way; /* a picture that is decoded within the resize that alone reads it */
} uses;

/* How often an op is tried again. */
enum { BROKEN_PROMISES_MAX = 4 };

typedef struct runner {
    const pl_eager_run *run;
    uses *uses;         /* by number of the node */
    pl_tensor **inputs; /* of the op */
    pl_shape *shapes;   /* by number of the node: of the op's inputs */
} runner;

static void count_uses(runner *r)
{
    const pl_eager_run *run = r->run;
    for (int i = 0; i < run->n_nodes; i++) {
        const pl_node *node = pl_graph_node(run->graph, i);
        bool eager = pl_is_eager(node);
        if (!run->needed[i])
            continue;
        r->uses[i].kept |= run->n_fetched[i] || node->op->op_class == PL_CLASS_STATE;
        for (int k = 0; k < node->n_inputs; k++) {
            uses *input = &r->uses[node->inputs[k]->number];
            input->n_left += eager;
            input->kept |= !eager;
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
    const pl_eager_run *run = r->run;
    if (!run->values[input->number]) {
        if (!has_a_value(input))
            return pl_error_set(
                reterr, -EINVAL, "%s '%s' has no value: %s", input->op->name, input->name,
                input->op->id == PL_OP_placeholder ? "feed it" : "give it one first");
        int code = run->compute(run->context, input, reterr);
        if (code < 0)
            return code;
        r->uses[input->number].made = true;
    }
    *ret_tensor = run->values[input->number];
    return 0;
}

static void drop_inputs(runner *r, const pl_node *node)
{
    for (int k = 0; k < node->n_inputs; k++) {
        int number = node->inputs[k]->number;
        uses *input = &r->uses[number];
        if (--input->n_left == 0 && input->made && !input->kept)
            pl_tensor_unref(PL_TAKE(r->run->values[number]));
    }
}

/* Infers again: shapes that were unknown when the node was added may be refused now. */
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

/* Returns the picture that is decoded within a resize; NULL: none. */
static const pl_node *decoded_within(const runner *r, const pl_node *node)
{
    return node->n_inputs > 0 && r->uses[node->inputs[0]->number].on_the_way ? node->inputs[0]
                                                                             : NULL;
}

/* Returns the node whose inputs are read. */
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

/* Returns whether it is a picture that only one resize reads. The resize then takes it row by row,
 * while rows are in the nearest cache. With several threads to share the rows, it is decoded
 * first. */
static bool is_on_the_way(const runner *r, const pl_node *node)
{
    const pl_eager_run *run = r->run;
    const uses *u = &r->uses[node->number];
    if (!makes_pictures(node) || u->n_left != 1 || u->kept ||
        pl_threads_count_here(run->runtime->threads) > 1)
        return false;
    for (int i = node->number + 1; i < run->n_nodes; i++) {
        const pl_node *user = pl_graph_node(run->graph, i);
        if (run->needed[i] && user->n_inputs == 1 && user->inputs[0] == node)
            return !run->values[i] && user->op->id == PL_OP_resize && pl_eager_takes_rows(user);
    }
    return false;
}

/* Values held for later count as the run's, too. Unless `exactly`, the result may be too small, but
 * needs no measuring. */
static int budget_bytes(const pl_eager_run *run, const pl_node *node, bool exactly,
                        uint64_t *ret_bytes, pl_error *reterr)
{
    uint64_t held = 0;
    if (run->held_bytes(run->context, node, &held) < 0)
        return pl_error_set(reterr, -ENOMEM, "out of memory while describing a run");
    *ret_bytes = pl_sub_sat_u64(exactly ? pl_admission_budget_bytes(run->admission)
                                        : pl_admission_sure_bytes(run->admission),
                                held);
    return 0;
}

static int run_once(runner *r, const pl_node *node, bool exactly, bool *ret_promised,
                    pl_error *reterr)
{
    const pl_eager_run *run = r->run;
    pl_eager_call call = {.runtime = run->runtime,
                          .node = node,
                          .decoded = decoded_within(r, node),
                          .inputs = r->inputs,
                          .admission = run->admission,
                          .run_graph = run->run_graph,
                          .context = run->context};
    *ret_promised = false;
    int code = budget_bytes(run, reader_of(r, node), exactly, &call.budget_bytes, reterr);
    if (code < 0)
        return code;
    code = pl_eager_op_run(&call, &run->values[node->number], reterr);
    *ret_promised = pl_admission_end(run->admission);
    return code;
}

/* A refused op may fit when memory is measured exactly, when held values are on disk, or when
 * another run has ended. Promised memory can also be gone, taken by a user's tensor: then it is
 * measured again. */
static int run_admitted(runner *r, const pl_node *node, pl_error *reterr)
{
    const pl_eager_run *run = r->run;
    int code, waited = 0, n_broken = 0;
    bool refused, exactly = false, made_room = false, promised;
    do {
        code = run_once(r, node, exactly, &promised, reterr);
        refused = code == PL_EBUDGET || code == -ENOSPC;
        if (refused && !exactly)
            exactly = true;
        else if (code == PL_EBUDGET && promised && n_broken < BROKEN_PROMISES_MAX)
            n_broken++;
        else if (refused && !made_room && run->evict(run->context, reader_of(r, node)))
            made_room = true; /* once, because memory shared with an input comes back */
        else if (refused)
            waited = pl_admission_wait(run->admission);
    } while (refused && waited == 0);
    pl_admission_done(run->admission);
    return waited == -ECANCELED ? cancelled(node, reterr) : code;
}

static int run_op(runner *r, const pl_node *node, pl_error *reterr)
{
    const pl_eager_run *run = r->run;
    const pl_node *reader = reader_of(r, node);
    int code = run->admission->check(run->admission->context) < 0 ? cancelled(node, reterr) : 0;
    for (int k = 0; code == 0 && k < reader->n_inputs; k++)
        if (k > 0 || node->op->id != PL_OP_assign) /* the variable need not have a value */
            code = find_input(r, reader->inputs[k], &r->inputs[k], reterr);
        else
            r->inputs[k] = NULL;
    if (code == 0)
        code = infer_again(r, reader, reterr);
    if (code == 0)
        code = run_admitted(r, node, reterr);
    if (code < 0)
        return code;
    r->uses[node->number].made = true;
    drop_inputs(r, reader);
    return 0;
}

static int most_inputs(const pl_eager_run *run)
{
    int most = 1;
    for (int i = 0; i < run->n_nodes; i++) {
        const pl_node *node = pl_graph_node(run->graph, i);
        if (run->needed[i] && node->n_inputs > most)
            most = node->n_inputs;
    }
    return most;
}

int pl_eager_run_all(const pl_eager_run *run, pl_error *reterr)
{
    int n = run->n_nodes, code = 0;
    runner r = {.run = run};
    r.uses = calloc((size_t)n + 1, sizeof *r.uses);
    r.inputs = calloc((size_t)most_inputs(run), sizeof(pl_tensor *));
    r.shapes = calloc((size_t)n + 1, sizeof *r.shapes);
    if (!r.uses || !r.inputs || !r.shapes)
        code = pl_error_set(reterr, -ENOMEM, "out of memory while describing a run");
    else
        count_uses(&r);
    for (int i = 0; code == 0 && i < n; i++) {
        const pl_node *node = pl_graph_node(run->graph, i);
        if (run->needed[i] && !run->values[i] && pl_is_eager(node))
            r.uses[i].on_the_way = is_on_the_way(&r, node);
        if (run->needed[i] && !run->values[i] && pl_is_eager(node) && !r.uses[i].on_the_way)
            code = run_op(&r, node, reterr);
    }
    free(r.uses);
    free(r.inputs);
    free(r.shapes);
    return code;
}

/* ---- costs known in advance ---- */

/* The size of strings and of unknown shapes is not known in advance. */
static bool bytes_of(const pl_node *node, const pl_shape *shape, uint64_t *ret_bytes)
{
    int64_t bytes;
    if (node->dtype == PL_STRING || !pl_shape_is_known(shape) ||
        pl_shape_bytes(shape, pl_dtype_info_of(node->dtype)->item_bytes, &bytes, NULL) < 0)
        return false;
    *ret_bytes = (uint64_t)bytes;
    return true;
}

/* Sets the bytes in memory of a value that exists or whose shape is known. Else returns false, and
 * 0 bytes. */
static bool know(const pl_eager_run *run, const pl_shape *shapes, const pl_node *node,
                 uint64_t *ret_bytes)
{
    uint64_t bytes = 0;
    const pl_tensor *value = run->values[node->number];
    bool known = true;
    if (value)
        bytes = pl_buffer_bytes(value->buffer);
    else
        known = bytes_of(node, &shapes[node->number], &bytes);
    *ret_bytes = bytes > 0 ? pl_memory_cost_bytes(bytes) : 0;
    return known;
}

/* Returns whether the sizes of inputs and output are known. Its scratch is then known too, except
 * for pictures. */
static bool is_known(const pl_eager_run *run, const pl_shape *shapes, const pl_node *node)
{
    bool known = node->op->id != PL_OP_decode_jpeg && node->op->id != PL_OP_decode_png &&
                 node->op->id != PL_OP_decode_image;
    uint64_t bytes;
    known = know(run, shapes, node, &bytes) && known;
    for (int k = 0; k < node->n_inputs; k++)
        known = know(run, shapes, node->inputs[k], &bytes) && known;
    return known;
}

/* Live bytes while eager ops are counted. */
typedef struct tally {
    runner r;
    const pl_shape *shapes;
    pl_eager_foresee *foresee;
    uint64_t large_bytes, small_bytes; /* made by ops and nested plans; small: in slabs */
    pl_eager_cost cost;
} tally;

static void raise_peak(tally *t, uint64_t bytes)
{
    t->cost.peak_bytes = pl_max_u64(t->cost.peak_bytes, bytes);
}

static uint64_t most_of_small(const tally *t)
{
    return t->r.run->runtime->pool->slab_bytes / PL_POOL_SMALL_SHARE;
}

static uint64_t live_bytes(const tally *t)
{
    uint64_t slab_bytes = t->r.run->runtime->pool->slab_bytes;
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
    bool known = know(t->r.run, t->shapes, node, &bytes);
    t->r.uses[node->number].made = true;
    *kind_of(t, bytes) = pl_add_sat_u64(*kind_of(t, bytes), bytes);
    return known;
}

/* Counts the inputs that are not eager, each by a nested plan. *ret_read is what the op reads of
 * gathered tensors. Returns 1; 0 if something is not known. */
static int count_inputs(tally *t, const pl_node *node, uint64_t *ret_read, pl_error *reterr)
{
    const pl_eager_run *run = t->r.run;
    uint64_t bytes;
    int known = 1;
    *ret_read = 0;
    for (int k = 0; k < node->n_inputs; k++) {
        const pl_node *input = node->inputs[k];
        if (run->values[input->number]) {
            (void)know(run, t->shapes, input, &bytes);
            *ret_read = pl_add_sat_u64(*ret_read, bytes);
        } else if (!t->r.uses[input->number].made && has_a_value(input)) {
            int code = t->foresee(run->context, input, t->shapes, live_bytes(t), &bytes, reterr);
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

static void count_dropped(tally *t, const pl_node *node)
{
    uint64_t bytes;
    for (int k = 0; k < node->n_inputs; k++) {
        uses *input = &t->r.uses[node->inputs[k]->number];
        if (--input->n_left > 0 || !input->made || input->kept)
            continue;
        (void)know(t->r.run, t->shapes, node->inputs[k], &bytes);
        *kind_of(t, bytes) = pl_sub_sat_u64(*kind_of(t, bytes), bytes);
    }
}

/* A lower bound: what the op reads, and what it makes. */
static uint64_t needed_bytes(tally *t, const pl_node *node, uint64_t read)
{
    uint64_t large = t->large_bytes, small = t->small_bytes, bytes;
    t->large_bytes = read;
    t->small_bytes = 0;
    (void)count_made(t, node);
    for (int k = 0; k < node->n_inputs; k++)
        if (t->r.uses[node->inputs[k]->number].made) {
            (void)know(t->r.run, t->shapes, node->inputs[k], &bytes);
            *kind_of(t, bytes) = pl_add_sat_u64(*kind_of(t, bytes), bytes);
        }
    uint64_t needed = live_bytes(t);
    t->large_bytes = large;
    t->small_bytes = small;
    return needed;
}

/* Counts as if values that do not fit beside the op were moved to disk, so that it has the whole
 * budget. */
static int count_peak(tally *t, const pl_node *node, uint64_t read, pl_error *reterr)
{
    const pl_eager_run *run = t->r.run;
    uint64_t peak = pl_add_sat_u64(live_bytes(t), read), budget = 0;
    int code = budget_bytes(run, node, true, &budget, reterr);
    if (code < 0)
        return code;
    uint64_t needed = peak <= budget ? peak : needed_bytes(t, node, read);
    if (needed > budget)
        return pl_error_set(reterr, PL_EBUDGET,
                            "%s '%s': what it reads and makes needs %s; the budget is %s: give at "
                            "least %s",
                            node->op->name, node->name, PL_SIZE(needed), PL_SIZE(budget),
                            PL_SIZE(needed));
    raise_peak(t, pl_min_u64(peak, budget));
    return 0;
}

static int count_op(tally *t, const pl_node *node, pl_error *reterr)
{
    uint64_t read;
    bool known = is_known(t->r.run, t->shapes, node);
    int code = count_inputs(t, node, &read, reterr);
    if (code < 0)
        return code;
    (void)count_made(t, node);
    if (known && node->op->id == PL_OP_resize)
        read =
            pl_add_sat_u64(read, pl_eager_resize_scratch_bytes(t->r.run->runtime, node,
                                                               &t->shapes[node->inputs[0]->number],
                                                               &t->shapes[node->number]));
    t->cost.n_unknown += !known || code == 0;
    code = count_peak(t, node, read, reterr);
    if (code == 0)
        count_dropped(t, node);
    return code;
}

/* Goes through the ops like pl_eager_run_all(), but computes nothing. */
int pl_eager_count(const pl_eager_run *run, const pl_shape *shapes, pl_eager_foresee *foresee,
                   pl_eager_cost *ret_cost, pl_error *reterr)
{
    int n = run->n_nodes, code = 0;
    tally t = {.r = {.run = run, .uses = calloc((size_t)n + 1, sizeof(uses))},
               .shapes = shapes,
               .foresee = foresee};
    if (!t.r.uses)
        return pl_error_set(reterr, -ENOMEM, "out of memory while describing a run");
    count_uses(&t.r);
    for (int i = 0; code == 0 && i < n; i++) {
        const pl_node *node = pl_graph_node(run->graph, i);
        if (run->needed[i] && !run->values[i] && pl_is_eager(node))
            code = count_op(&t, node, reterr);
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

static void write_json(const pl_eager_run *run, const pl_shape *shapes, const pl_node *node,
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
            is_known(run, shapes, node) ? "true" : "false");
}

static void write_text(const pl_eager_run *run, const pl_shape *shapes, int number,
                       const pl_node *node, FILE *to)
{
    const pl_shape *shape = &shapes[node->number];
    uint64_t bytes;
    char name[160];
    snprintf(name, sizeof name, "%s '%s'", node->op->name, node->name);
    fprintf(to, "  s%d  %-28s %-16s %10s %-6s  eager: %s%s\n", number, name, PL_SHAPE_TEXT(shape),
            bytes_of(node, shape, &bytes) ? PL_SIZE(bytes) : "?", "memory",
            node->op->op_class == PL_CLASS_DATA ? "data op" : "string op",
            is_known(run, shapes, node) ? "" : "; its cost is not known yet");
}

void pl_eager_explain(const pl_eager_run *run, const pl_shape *shapes, bool as_json, FILE *to)
{
    int n = 0;
    for (int i = 0; i < run->n_nodes; i++) {
        const pl_node *node = pl_graph_node(run->graph, i);
        if (!run->needed[i] || !pl_is_eager(node))
            continue;
        if (as_json && n > 0)
            fputc(',', to);
        if (as_json)
            write_json(run, shapes, node, to);
        else
            write_text(run, shapes, n, node, to);
        n++;
    }
}
