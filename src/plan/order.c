/* SPDX-License-Identifier: Apache-2.0 */
/* See order.h. */
#include "plan/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct input {
    int step; /* that makes it */
    uint64_t need, bytes;
} input;

typedef struct walk {
    const pl_plan *plan;
    uint64_t *needs; /* by step */
    bool *begun;     /* by step */
    input *inputs;   /* of one step: as many as the most that one uses */
    int *stack;      /* steps that are begun, and not yet put in order, and their next input */
    int *pending;    /* inputs of steps on the stack, in the order that they are to be made */
    int *first;      /* by step: where its pending ones begin */
} walk;

static int most_uses(const pl_plan *plan)
{
    int most = 0;
    for (int s = 0; s < plan->n_steps; s++)
        most = plan->steps[s].n_uses > most ? plan->steps[s].n_uses : most;
    return most;
}

static int all_uses(const pl_plan *plan)
{
    int n = 0;
    for (int s = 0; s < plan->n_steps; s++)
        n += plan->steps[s].n_uses;
    return n;
}

/* The bytes of a value while it lives. */
static uint64_t bytes_of(const pl_plan *plan, int value)
{
    return plan->values[value].place == PL_PLACE_FILE ? 0 : plan->values[value].bytes;
}

/* Puts the input first that needs most beyond what it leaves; equal ones stay as made. */
static int by_excess(const void *a, const void *b)
{
    const input *x = a, *y = b;
    uint64_t of_x = pl_sub_sat_u64(x->need, x->bytes), of_y = pl_sub_sat_u64(y->need, y->bytes);
    if (of_x != of_y)
        return of_x > of_y ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

/* Lists the steps that make a step's inputs, in the order that they should run. */
static int inputs_of(walk *w, int s, pl_order_kind kind)
{
    const pl_plan *plan = w->plan;
    const pl_step *step = &plan->steps[s];
    int n = 0;
    for (int i = 0; i < step->n_uses; i++) {
        int made_by = plan->values[step->uses[i]].born;
        if (made_by >= 0)
            w->inputs[n++] = (input){made_by, kind == PL_ORDER_HEAVY ? w->needs[made_by] : 0,
                                     bytes_of(plan, step->uses[i])};
    }
    if (n > 1)
        qsort(w->inputs, (size_t)n, sizeof *w->inputs, by_excess);
    return n;
}

/* Computes needs as if nothing were used twice: a bound, and exact for trees. */
static void set_needs(walk *w)
{
    for (int s = 0; s < w->plan->n_steps; s++) {
        int n = inputs_of(w, s, PL_ORDER_HEAVY);
        uint64_t made = 0, need = 0;
        for (int i = 0; i < n; i++) {
            need = pl_max_u64(need, pl_add_sat_u64(made, w->inputs[i].need));
            made = pl_add_sat_u64(made, w->inputs[i].bytes);
        }
        made = pl_add_sat_u64(made, bytes_of(w->plan, w->plan->steps[s].value));
        w->needs[s] = pl_max_u64(need, made);
    }
}

/* Puts a step on the stack, with its inputs pending. */
static void push(walk *w, int s, pl_order_kind kind, int *n_stack, int *n_pending)
{
    int n = inputs_of(w, s, kind);
    w->begun[s] = true;
    w->stack[(*n_stack)++] = s;
    w->first[s] = *n_pending;
    for (int i = n - 1; i >= 0; i--) /* the first on top */
        w->pending[(*n_pending)++] = w->inputs[i].step;
}

static void go_deep(walk *w, int root, pl_order_kind kind, int *nodes, int *n_nodes)
{
    int n_stack = 0, n_pending = 0;
    push(w, root, kind, &n_stack, &n_pending);
    while (n_stack > 0) {
        int s = w->stack[n_stack - 1];
        if (n_pending == w->first[s]) {
            nodes[(*n_nodes)++] = w->plan->steps[s].node->number;
            n_stack--;
        } else if (!w->begun[w->pending[--n_pending]]) {
            push(w, w->pending[n_pending], kind, &n_stack, &n_pending);
        }
    }
}

static int walk_init(walk *w, const pl_plan *plan)
{
    size_t n = (size_t)plan->n_steps + 1;
    *w = (walk){.plan = plan,
                .needs = calloc(n, sizeof *w->needs),
                .begun = calloc(n, sizeof *w->begun),
                .inputs = calloc((size_t)most_uses(plan) + 1, sizeof *w->inputs),
                .stack = calloc(n, sizeof *w->stack),
                .pending = calloc((size_t)all_uses(plan) + 1, sizeof *w->pending),
                .first = calloc(n, sizeof *w->first)};
    return w->needs && w->begun && w->inputs && w->stack && w->pending && w->first ? 0 : -ENOMEM;
}

static void walk_done(walk *w)
{
    free(w->needs);
    free(w->begun);
    free(w->inputs);
    free(w->stack);
    free(w->pending);
    free(w->first);
}

/* The roots are the kept values, in the order they were made; all other steps are used by one of
 * these. */
int pl_plan_order(const pl_plan *plan, pl_order_kind kind, int *nodes)
{
    walk w;
    int n_nodes = 0, r = walk_init(&w, plan);
    if (r == 0 && kind == PL_ORDER_HEAVY)
        set_needs(&w);
    for (int s = 0; r == 0 && s < plan->n_steps; s++)
        if (plan->values[plan->steps[s].value].kept && !w.begun[s])
            go_deep(&w, s, kind, nodes, &n_nodes);
    for (int s = 0; r == 0 && s < plan->n_steps; s++)
        if (!w.begun[s])
            go_deep(&w, s, kind, nodes, &n_nodes);
    walk_done(&w);
    return r;
}

/* ---- what an order takes ---- */

static int step_at(const pl_plan *plan, const int *nodes, int at)
{
    return nodes ? plan->values[plan->value_of[nodes[at]]].born : at;
}

uint64_t pl_plan_order_bytes(const pl_plan *plan, const int *nodes)
{
    int *last = calloc((size_t)plan->n_values + 1, sizeof *last);
    uint64_t now = 0, most = 0;
    if (!last)
        return UINT64_MAX;
    for (int at = 0; at < plan->n_steps; at++) {
        const pl_step *step = &plan->steps[step_at(plan, nodes, at)];
        for (int i = 0; i < step->n_uses; i++)
            last[step->uses[i]] = at;
    }
    for (int at = 0; at < plan->n_steps; at++) {
        const pl_step *step = &plan->steps[step_at(plan, nodes, at)];
        now = pl_add_sat_u64(now, bytes_of(plan, step->value));
        most = pl_max_u64(most, now);
        for (int i = 0; i < step->n_uses; i++) {
            const pl_plan_value *value = &plan->values[step->uses[i]];
            if (!value->from_outside && !value->kept && last[step->uses[i]] == at)
                now -= bytes_of(plan, step->uses[i]);
        }
    }
    free(last);
    return most;
}
