/* SPDX-License-Identifier: Apache-2.0 */
/* Turns walks into programs: parts, levels, steps. lazy_graph.c builds their graphs. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "program/lazy_program.h"
#include "program/types.h"

/* ---- parts ---- */

static const char *copy_text(const char *text, char **at)
{
    if (!text)
        return NULL;
    size_t n = strlen(text) + 1;
    char *copy = memcpy(*at, text, n);
    *at += n;
    return copy;
}

static const char *name_of(const pl_expr *expr)
{
    return expr->named ? expr->node.name : NULL;
}

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static void describe(const pl_walk *walk, const pl_expr *expr, pl_program_part *part, char **texts)
{
    *part = (struct pl_program_part){.kind = expr->kind,
                                     .op = expr->node.op ? (int)expr->node.op->id : -1,
                                     .item = expr->item,
                                     .n_inputs = expr->node.n_inputs,
                                     .attrs = pl_attrs_ref(expr->attrs),
                                     .routine = expr->routine,
                                     .narrowed = expr->narrowed,
                                     .type = pl_expr_made_type(expr)};
    part->name = copy_text(name_of(expr), texts);
    part->device = copy_text(expr->node.device, texts);
    part->draws = pl_expr_stream(expr, &part->stream);
    part->stream -= walk->first_stream;
}

static int alloc_parts(pl_lazy_program *self, const pl_walk *walk)
{
    size_t n_inputs = 0, n_texts = 0;
    for (int i = 0; i < walk->inner.n; i++) {
        const pl_expr *node = walk->inner.at[i];
        n_inputs += (size_t)node->node.n_inputs;
        n_texts += text_bytes(name_of(node)) + text_bytes(node->node.device);
    }
    self->leaf_types = calloc((size_t)walk->leaves.n + 1, sizeof *self->leaf_types);
    self->refined = calloc((size_t)walk->leaves.n + 1, sizeof *self->refined);
    self->parts = calloc((size_t)walk->inner.n + 1, sizeof *self->parts);
    self->inputs = calloc(n_inputs + 1, sizeof *self->inputs);
    self->calls = calloc((size_t)walk->n_calls + 1, sizeof(pl_routine *));
    self->texts = malloc(n_texts + 1);
    return self->leaf_types && self->refined && self->parts && self->inputs && self->calls &&
                   self->texts
               ? 0
               : -1;
}

static int make_parts(pl_lazy_program *self, const pl_walk *walk)
{
    self->n_leaves = walk->leaves.n;
    self->n_given = walk->n_given;
    if (alloc_parts(self, walk) < 0)
        return -1;
    for (int i = 0; i < walk->leaves.n; i++) {
        const pl_type own = pl_expr_made_type(walk->leaves.at[i]);
        self->leaf_types[i] =
            i < walk->n_given && walk->types ? walk->types[i] : pl_expr_type(walk->leaves.at[i]);
        self->refined[i] = !pl_type_equal(&own, &self->leaf_types[i]);
    }
    char *texts = self->texts;
    int n_inputs = 0;
    for (int i = 0; i < walk->inner.n; i++) {
        const pl_expr *node = walk->inner.at[i];
        pl_program_part *part = &self->parts[i];
        describe(walk, node, part, &texts);
        self->n_parts++;
        part->first = n_inputs;
        for (int k = 0; k < node->node.n_inputs; k++)
            self->inputs[n_inputs++] = pl_walk_slot(walk, pl_expr_at(node, k));
        if (part->routine)
            self->calls[self->n_calls++] = pl_routine_ref(part->routine);
    }
    return 0;
}

static int make_outputs(pl_lazy_program *self, const pl_walk *walk, pl_expr *const *fetches,
                        int n_fetches)
{
    self->n_outputs = n_fetches;
    self->outputs = calloc((size_t)n_fetches + 1, sizeof *self->outputs);
    for (int i = 0; self->outputs && i < n_fetches; i++)
        self->outputs[i] = pl_walk_slot(walk, fetches[i]);
    return self->outputs ? 0 : -1;
}

/* ---- levels ---- */

static pl_program_part *part_at(const pl_lazy_program *self, int slot)
{
    return slot < self->n_leaves ? NULL : &self->parts[slot - self->n_leaves];
}

/* First, every part runs as soon as its inputs exist. Parts with effects keep their order. */
static void find_levels(pl_lazy_program *self)
{
    int latest = 0;
    for (int i = 0; i < self->n_parts; i++) {
        pl_program_part *p = &self->parts[i];
        for (int k = 0; k < p->n_inputs; k++) {
            const pl_program_part *input = part_at(self, self->inputs[p->first + k]);
            if (input && input->level > p->level)
                p->level = input->level;
        }
        p->level += p->kind == PL_EXPR_ITEM;
        if (p->kind == PL_EXPR_CALL && p->routine->impure)
            latest = p->level = p->level > latest ? p->level : latest;
    }
}

/* Then ops move to the level of their first user, from the last part to the first. */
static int delay_ops(pl_lazy_program *self)
{
    int *latest = malloc(((size_t)self->n_parts + 1) * sizeof *latest);
    if (!latest)
        return -1;
    for (int i = 0; i < self->n_parts; i++)
        latest[i] = INT_MAX;
    for (int i = self->n_parts - 1; i >= 0; i--) {
        pl_program_part *p = &self->parts[i];
        if (p->kind == PL_EXPR_OP && latest[i] != INT_MAX)
            p->level = latest[i];
        for (int k = 0; p->kind != PL_EXPR_ITEM && k < p->n_inputs; k++) {
            int at = self->inputs[p->first + k] - self->n_leaves;
            if (at >= 0 && p->level < latest[at])
                latest[at] = p->level;
        }
    }
    free(latest);
    return 0;
}

/* ---- steps ---- */

typedef struct planning {
    pl_lazy_program *self;
    int *step_of; /* by slot; -1: a leaf */
    bool *wanted; /* by slot: used outside of its step */
    int *seen;    /* by slot: the last step that has it as input, plus 1 */
} planning;

static bool in_graph(const pl_program_part *p, int level)
{
    return p->kind == PL_EXPR_OP && p->level == level;
}

static int add_graph(planning *plan, int level)
{
    pl_lazy_program *self = plan->self;
    pl_program_step *s = &self->steps[self->n_steps];
    int n = 0;
    for (int i = 0; i < self->n_parts; i++)
        n += in_graph(&self->parts[i], level);
    if (n == 0)
        return 0;
    *s = (pl_program_step){.call = -1, .parts = malloc((size_t)n * sizeof(int))};
    if (!s->parts)
        return -1;
    for (int i = 0; i < self->n_parts; i++)
        if (in_graph(&self->parts[i], level)) {
            plan->step_of[self->n_leaves + i] = self->n_steps;
            s->parts[s->n_parts++] = i;
        }
    self->n_steps++;
    return 0;
}

static void add_calls(planning *plan, int level)
{
    pl_lazy_program *self = plan->self;
    for (int i = 0; i < self->n_parts; i++) {
        const pl_program_part *p = &self->parts[i];
        if (p->kind == PL_EXPR_CALL && p->level == level) {
            self->steps[self->n_steps] = (pl_program_step){.call = i};
            plan->step_of[self->n_leaves + i] = self->n_steps++;
        }
    }
}

/* Items belong to their call's step. */
static int add_steps(planning *plan)
{
    pl_lazy_program *self = plan->self;
    int n_levels = 1;
    for (int i = 0; i < self->n_parts; i++)
        if (self->parts[i].level >= n_levels)
            n_levels = self->parts[i].level + 1;
    self->steps = calloc((size_t)n_levels + (size_t)self->n_calls + 1, sizeof *self->steps);
    if (!self->steps)
        return -1;
    for (int level = 0; level < n_levels; level++) {
        if (add_graph(plan, level) < 0)
            return -1;
        if (self->n_calls > 0)
            add_calls(plan, level);
    }
    for (int i = 0; i < self->n_parts; i++)
        if (self->parts[i].kind == PL_EXPR_ITEM)
            plan->step_of[self->n_leaves + i] = plan->step_of[self->inputs[self->parts[i].first]];
    return 0;
}

/* Finds the slots that step `s` reads through part `p`. Counts them, or stores them if there is
 * room. */
static void read_inputs(planning *plan, int s, const pl_program_part *p)
{
    pl_lazy_program *self = plan->self;
    pl_program_step *step = &self->steps[s];
    for (int k = 0; k < p->n_inputs; k++) {
        int slot = self->inputs[p->first + k];
        if (plan->step_of[slot] == s)
            continue;
        plan->wanted[slot] = true;
        self->last_use[slot] = s;
        if (step->call < 0 && plan->seen[slot] == s + 1)
            continue;
        plan->seen[slot] = s + 1;
        step->inputs[step->n_inputs++] = slot;
        step->open = step->open || pl_program_type(self, slot)->shape.rank == PL_RANK_UNKNOWN;
    }
}

static int find_inputs(planning *plan)
{
    pl_lazy_program *self = plan->self;
    for (int s = 0; s < self->n_steps; s++) {
        pl_program_step *step = &self->steps[s];
        size_t n_most = 1;
        for (int i = 0; i < step->n_parts; i++)
            n_most += (size_t)self->parts[step->parts[i]].n_inputs;
        if (step->call >= 0)
            n_most += (size_t)self->parts[step->call].n_inputs;
        step->inputs = malloc(n_most * sizeof *step->inputs);
        if (!step->inputs)
            return -1;
        for (int i = 0; i < step->n_parts; i++)
            read_inputs(plan, s, &self->parts[step->parts[i]]);
        if (step->call >= 0)
            read_inputs(plan, s, &self->parts[step->call]);
    }
    return 0;
}

/* For a graph, the slots that others read. For a call, all items that are parts: the walk met them
 * only because they are wanted. */
static bool is_output(const planning *plan, int s, int i)
{
    const pl_lazy_program *self = plan->self;
    int slot = self->n_leaves + i;
    return plan->step_of[slot] == s && (self->parts[i].kind == PL_EXPR_ITEM ||
                                        (self->parts[i].kind == PL_EXPR_OP && plan->wanted[slot]));
}

static int find_outputs(planning *plan)
{
    pl_lazy_program *self = plan->self;
    for (int i = 0; i < self->n_outputs; i++) {
        plan->wanted[self->outputs[i]] = true;
        self->last_use[self->outputs[i]] = self->n_steps;
    }
    for (int s = 0; s < self->n_steps; s++) {
        pl_program_step *step = &self->steps[s];
        int n = 0;
        for (int i = 0; i < self->n_parts; i++)
            n += is_output(plan, s, i);
        step->outputs = malloc(((size_t)n + 1) * sizeof *step->outputs);
        if (!step->outputs)
            return -1;
        for (int i = 0; i < self->n_parts; i++)
            if (is_output(plan, s, i))
                step->outputs[step->n_outputs++] = self->n_leaves + i;
    }
    return 0;
}

static int make_steps(pl_lazy_program *self)
{
    size_t n = (size_t)pl_program_n_slots(self) + 1;
    planning plan = {.self = self,
                     .step_of = malloc(n * sizeof(int)),
                     .wanted = calloc(n, sizeof(bool)),
                     .seen = calloc(n, sizeof(int))};
    self->last_use = calloc(n, sizeof *self->last_use);
    int r = plan.step_of && plan.wanted && plan.seen && self->last_use ? 0 : -1;
    if (r == 0)
        memset(plan.step_of, -1, n * sizeof(int));
    if (r == 0 && self->n_calls > 0) {
        find_levels(self);
        r = delay_ops(self);
    }
    if (r == 0)
        r = add_steps(&plan);
    if (r == 0)
        r = find_inputs(&plan);
    if (r == 0)
        r = find_outputs(&plan);
    free(plan.step_of);
    free(plan.wanted);
    free(plan.seen);
    return r;
}

/* ---- life ---- */

int pl_lazy_program_build(const pl_walk *walk, pl_expr *const *fetches, int n_fetches,
                          pl_lazy_program **ret, pl_error *reterr)
{
    pl_lazy_program *self = calloc(1, sizeof *self);
    if (self)
        self->n_refs = 1;
    if (self && make_parts(self, walk) == 0 && make_outputs(self, walk, fetches, n_fetches) == 0 &&
        make_steps(self) == 0) {
        *ret = self;
        return 0;
    }
    /* The walk's exprs hold the calls, so none of them is freed here, under the lock. */
    if (self)
        pl_lazy_program_unref(self);
    return pl_error_set(reterr, -ENOMEM, "out of memory for a program");
}

static void free_step(pl_program_step *step)
{
    for (pl_variant *v = atomic_load(&step->variants), *next; v; v = next) {
        next = v->next;
        pl_variant_free(v);
    }
    free(step->parts);
    free(step->inputs);
    free(step->outputs);
}

void pl_lazy_program_free(pl_lazy_program *self)
{
    for (int i = 0; i < self->n_steps; i++)
        free_step(&self->steps[i]);
    for (int i = 0; i < self->n_parts; i++)
        pl_attrs_unref(self->parts[i].attrs);
    free(self->leaf_types);
    free(self->refined);
    free(self->parts);
    free(self->inputs);
    free(self->outputs);
    free(self->steps);
    free(self->last_use);
    free(self->calls);
    free(self->texts);
    free(self->signature);
    free(self);
}
