/* SPDX-License-Identifier: Apache-2.0 */
/* See plan.h. Infers shapes, chooses which nodes become values (choose.c), and makes the plan fit
 * (fit.c). Where it does not fit in memory, tries another order of steps (order.c). */
#include "plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "graph/infer.h"
#include "graph/op_region.h"
#include "plan/device_work.h"
#include "plan/order.h"
#include "tensor/memory.h"
#include "tensor/shape.h"

/* Drops all that choosing has added. */
static void drop_steps(pl_plan *plan)
{
    for (int i = 0; i < plan->n_steps; i++) {
        pl_program_done(&plan->steps[i].program);
        free(plan->steps[i].product);
        free(plan->steps[i].uses);
        pl_device_work_free(plan->steps[i].work);
    }
    free(PL_TAKE(plan->steps));
    free(PL_TAKE(plan->values));
    plan->n_steps = plan->n_values = 0;
}

void pl_plan_free(pl_plan *plan)
{
    if (!plan)
        return;
    drop_steps(plan);
    free(plan->value_of);
    free(plan->device_of);
    free(plan->fallbacks);
    free(plan->shapes);
    free(plan);
}

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "out of memory while planning");
}

/* Marks the nodes that the fetches need, down to the sources. */
static void mark_needed(const pl_plan_request *request, const bool *given, bool *needed)
{
    for (int i = 0; i < request->n_fetches; i++)
        needed[request->fetches[i].node->number] = true;
    for (int i = pl_graph_n_nodes(request->graph) - 1; i >= 0; i--) {
        const pl_node *node = pl_graph_node(request->graph, i);
        needed[i] = needed[i] && !given[i];
        for (int k = 0; needed[i] && k < node->n_inputs; k++)
            needed[node->inputs[k]->number] = true;
    }
}

/* Infers shapes from those of the sources; other nodes keep the shapes that they were made with. */
static int infer_shapes(pl_plan *plan, const pl_plan_request *request, pl_error *reterr)
{
    size_t n = (size_t)plan->n_nodes + 1;
    bool *needed = calloc(n, sizeof *needed), *given = calloc(n, sizeof *given);
    pl_feed_shape *feeds = calloc((size_t)request->n_sources + 1, sizeof *feeds);
    int n_feeds = 0, r = 0;
    if (!needed || !given || !feeds) {
        r = no_memory(reterr);
        goto out;
    }
    for (int i = 0; i < request->n_sources; i++) {
        const pl_plan_source *source = &request->sources[i];
        given[source->node->number] = true;
        if (source->node->op->id == PL_OP_placeholder || source->node->n_inputs > 0)
            feeds[n_feeds++] = (pl_feed_shape){source->node, source->shape};
    }
    mark_needed(request, given, needed);
    r = pl_graph_infer_given(request->graph, feeds, n_feeds, needed, plan->shapes, reterr);
out:
    free(needed);
    free(given);
    free(feeds);
    return r;
}

static uint64_t peak_of(const pl_plan *plan)
{
    uint64_t peak = plan->end_bytes;
    for (int i = 0; i < plan->n_steps; i++)
        peak = pl_max_u64(peak, plan->steps[i].peak_bytes);
    return peak;
}

static void sum_up(pl_plan *plan)
{
    plan->peak_bytes = plan->fitted_bytes = peak_of(plan);
    for (int i = 0; i < plan->n_steps; i++) {
        plan->disk_bytes = pl_max_u64(plan->disk_bytes, plan->steps[i].disk_bytes);
        plan->flops += plan->steps[i].flops;
    }
}

/* Subtracts the library's memory that is resident already from a plan that is chosen and fits, so
 * that it states what will be claimed. Memory that one step has filled is there for the next. */
static void leave_out_library(pl_plan *plan, uint64_t there_bytes)
{
    for (int i = 0; i < plan->n_steps; i++) {
        pl_step *step = &plan->steps[i];
        uint64_t missing = pl_sub_sat_u64(step->library_bytes, there_bytes);
        step->peak_bytes -= pl_memory_cost_bytes(step->library_bytes);
        step->peak_bytes += pl_memory_cost_bytes(missing);
        there_bytes = pl_max_u64(there_bytes, step->library_bytes);
    }
    plan->peak_bytes = peak_of(plan);
}

static pl_plan *plan_alloc(const pl_plan_request *request)
{
    pl_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return NULL;
    plan->n_nodes = pl_graph_n_nodes(request->graph);
    plan->budget_bytes = request->budget_bytes;
    plan->shapes = calloc((size_t)plan->n_nodes + 1, sizeof *plan->shapes);
    plan->value_of = calloc((size_t)plan->n_nodes + 1, sizeof *plan->value_of);
    if (plan->shapes && plan->value_of)
        return plan;
    pl_plan_free(plan);
    return NULL;
}

/* Chooses again while steps turn out to be too large for their devices; each time fewer nodes are
 * placed there. */
static int choose(pl_plan *plan, const pl_plan_request *request, pl_error *reterr)
{
    int r;
    do {
        drop_steps(plan);
        plan->displaced = false;
        r = pl_plan_choose(plan, request, reterr);
    } while (r == 0 && plan->displaced);
    return r;
}

/* Makes steps in one order, not yet fitted; NULL: as made. `other` is a plan in another order, or
 * NULL. */
static int plan_in_order(const pl_plan_request *request, const int *order, const pl_plan *other,
                         pl_plan **ret_plan, pl_error *reterr)
{
    pl_plan *plan = plan_alloc(request);
    if (!plan)
        return no_memory(reterr);
    plan->order = order;
    int r = infer_shapes(plan, request, reterr);
    if (r == 0)
        r = other ? pl_plan_place_as(plan, other, reterr) : pl_plan_place(plan, request, reterr);
    if (r == 0)
        r = choose(plan, request, reterr);
    plan->order = NULL;
    if (r == 0 && plan->device_of)
        r = pl_plan_let_stay(plan, request, reterr);
    if (r < 0)
        pl_plan_free(plan);
    else
        *ret_plan = plan;
    return r;
}

/* ---- several orders ---- */

static uint64_t spilled_bytes(const pl_plan *plan)
{
    uint64_t bytes = 0;
    for (int i = 0; i < plan->n_values; i++)
        if (!plan->values[i].from_outside && plan->values[i].place == PL_PLACE_SPILL)
            bytes = pl_add_sat_u64(bytes, plan->values[i].bytes);
    return bytes;
}

/* Prefers less on disk, then less in memory. */
static bool is_better(const pl_plan *a, const pl_plan *b)
{
    uint64_t of_a = spilled_bytes(a), of_b = spilled_bytes(b);
    return of_a != of_b ? of_a < of_b : a->peak_bytes < b->peak_bytes;
}

/* Finds the order that takes least, if that is less than in the plan's own order. Returns 1 if
 * there is one. */
static int find_order(const pl_plan *plan, int *nodes)
{
    uint64_t least = pl_plan_order_bytes(plan, NULL);
    int *tried = calloc((size_t)plan->n_steps + 1, sizeof *tried);
    int r = tried ? 0 : -ENOMEM;
    for (int kind = 0; r >= 0 && kind < PL_N_ORDERS; kind++) {
        int tried_r = pl_plan_order(plan, (pl_order_kind)kind, tried);
        uint64_t bytes = tried_r < 0 ? UINT64_MAX : pl_plan_order_bytes(plan, tried);
        if (tried_r < 0)
            r = tried_r;
        else if (bytes < least) {
            least = bytes;
            memcpy(nodes, tried, (size_t)plan->n_steps * sizeof *nodes);
            r = 1;
        }
    }
    free(tried);
    return r;
}

/* One of the orders that a plan may use. */
typedef struct attempt {
    pl_plan *plan; /* NULL: there is none */
    int r;         /* of fitting it */
    pl_error error;
} attempt;

static void fit(attempt *a, const pl_plan_request *request)
{
    a->r = pl_plan_fit(a->plan, request, &a->error);
    if (a->r < 0)
        return;
    if (a->plan->device_of)
        pl_plan_claim_devices(a->plan);
    sum_up(a->plan);
}

static bool is_in_memory(const attempt *a)
{
    return a->plan && a->r == 0 && spilled_bytes(a->plan) == 0;
}

/* A plan that spills or does not fit may do better in another order. */
static bool is_worth_another(const attempt *a)
{
    return a->r == PL_EBUDGET || a->r == -ENOSPC || (a->r == 0 && spilled_bytes(a->plan) > 0);
}

static int make_another(const pl_plan_request *request, const pl_plan *plan, attempt *ret_another)
{
    int *order = calloc((size_t)plan->n_steps + 1, sizeof *order);
    int found = order ? find_order(plan, order) : -ENOMEM;
    if (found > 0)
        found = plan_in_order(request, order, plan, &ret_another->plan, &ret_another->error);
    free(order);
    if (ret_another->plan)
        fit(ret_another, request);
    return found < 0 ? found : 0;
}

/* Returns the order as made, unless another spills less; if both are refused, the one that asks for
 * less. */
static const attempt *better_of(const attempt *made, const attempt *another)
{
    if (!another->plan)
        return made;
    if (made->r == PL_EBUDGET && another->r == PL_EBUDGET)
        return another->plan->least_bytes < made->plan->least_bytes ? another : made;
    if (made->r < 0 || another->r < 0)
        return another->r == 0 ? another : made;
    return is_better(another->plan, made->plan) ? another : made;
}

/* Fitting a plan that spills much takes long, so where values alone exceed the budget, try another
 * order first. */
static int try_orders(const pl_plan_request *request, attempt *made, attempt *another)
{
    bool tight = pl_plan_order_bytes(made->plan, NULL) > request->budget_bytes;
    if (!tight)
        fit(made, request);
    int r = tight || is_worth_another(made) ? make_another(request, made->plan, another) : 0;
    if (tight && !is_in_memory(another))
        fit(made, request);
    return tight && is_in_memory(another) ? 1 : r;
}

/* Why planning failed. */
typedef struct refusal {
    pl_error error;
    uint64_t least_bytes; /* see pl_plan */
    const pl_node *node;
    int n_steps;
} refusal;

static int plan_once(const pl_plan_request *request, pl_plan **ret_plan, refusal *ret_why)
{
    attempt made = {0}, another = {0};
    int r = plan_in_order(request, NULL, NULL, &made.plan, &ret_why->error);
    if (r < 0)
        return r;
    int tried = try_orders(request, &made, &another);
    const attempt *best = tried > 0 ? &another : better_of(&made, &another);
    r = tried < 0 ? tried : best->r;
    if (r == 0) {
        leave_out_library(best->plan, request->library_there_bytes);
        *ret_plan = best->plan;
    } else {
        pl_error_set(&ret_why->error, r, "%s",
                     tried < 0 ? "out of memory while planning" : best->error.message);
        ret_why->least_bytes = best->plan->least_bytes;
        ret_why->node = best->plan->refused;
        ret_why->n_steps = best->plan->n_steps;
    }
    for (attempt *a = &made; a; a = a == &made ? &another : NULL)
        if (r < 0 || a != best)
            pl_plan_free(a->plan);
    return r;
}

/* ---- which budget would do ---- */

/* Budgets are searched up to this one, to a 64th of the smallest that would do. Fitting takes time
 * in proportion to steps times spilled values. Up to this many steps a refusal takes a tenth or two
 * of a second; with ten times as many it would take several seconds, so it then reports only what
 * one plan knows. */
enum { MOST_BITS = 50, PART = 64, LOOKED_STEPS_MOST = 1000 };

/* `why` is left unchanged if it fits. */
static bool fits(const pl_plan_request *request, uint64_t budget_bytes, refusal *why)
{
    pl_plan_request with = *request;
    pl_plan *plan = NULL;
    refusal other = {0};
    with.budget_bytes = budget_bytes;
    int r = plan_once(&with, &plan, &other);
    pl_plan_free(plan);
    if (r < 0)
        *why = other;
    return r == 0;
}

/* Finds approximately the smallest budget that a plan fits, disk included; 0 if none is found.
 * `guess` is usually right, and then the search costs two plans. `why` is set for the largest
 * budget that did not do. */
static uint64_t find_budget(const pl_plan_request *request, uint64_t guess, refusal *why)
{
    uint64_t low = request->budget_bytes, high = pl_max_u64(guess, pl_add_sat_u64(low, 1));
    for (; !fits(request, high, why); high *= 2) {
        if (high >= UINT64_C(1) << MOST_BITS)
            return 0;
        low = high;
    }
    uint64_t probe = high - high / PART;
    while (high - low > pl_max_u64(high / PART, 1)) {
        *(fits(request, probe, why) ? &high : &low) = probe;
        probe = low + (high - low) / 2;
    }
    return high;
}

static int refuse_disk(const pl_plan_request *request, const refusal *first, pl_error *reterr)
{
    refusal why = *first;
    uint64_t enough = find_budget(request, 2 * pl_max_u64(request->budget_bytes, PL_MIB), &why);
    const pl_error *error = &first->error;
    if (enough == 0)
        return pl_error_set(reterr, error->code, "%s", error->message);
    return pl_error_set(reterr, error->code, "%s, or give at least %s", error->message,
                        PL_SIZE_UP(enough));
}

/* One plan knows what would do if all values lay on disk. Some need less, because values that may
 * stay in memory need not be read in parts; only further plans can find that. */
static int refuse_budget(const pl_plan_request *request, const refusal *first, pl_error *reterr)
{
    refusal why = *first;
    bool looks = first->n_steps <= LOOKED_STEPS_MOST;
    uint64_t enough = looks ? find_budget(request, first->least_bytes, &why) : 0;
    if (enough == 0 || enough == first->least_bytes || !why.node)
        return pl_error_set(reterr, PL_EBUDGET, "%s", first->error.message);
    return pl_error_set(
        reterr, PL_EBUDGET, "%s '%s': no plan for it fits the budget of %s: give at least %s",
        why.node->op->name, why.node->name, PL_SIZE(request->budget_bytes), PL_SIZE_UP(enough));
}

int pl_plan_new(const pl_plan_request *request, pl_plan **ret_plan, pl_error *reterr)
{
    refusal why = {0};
    int r = plan_once(request, ret_plan, &why);
    if (r == 0 || !reterr)
        return r;
    if (r == -ENOSPC)
        return refuse_disk(request, &why, reterr);
    if (r == PL_EBUDGET)
        return refuse_budget(request, &why, reterr);
    return pl_error_set(reterr, r, "%s", why.error.message);
}
