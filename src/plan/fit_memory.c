/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the memory of values, step by step. See fit_private.h. */
#include "plan/device_work.h"
#include "plan/fit_private.h"
#include "tensor/buffer.h"

bool pl_fit_is_in_slab(const pl_fitter *f, const pl_plan_value *value)
{
    return value->kept && !value->from_outside && f->request->slab_bytes > 0 &&
           value->bytes <= f->request->small_bytes;
}

static void count_slabs(pl_fitter *f)
{
    uint64_t bytes = 0;
    bool any = false;
    for (int i = 0; i < f->plan->n_values; i++) {
        const pl_plan_value *value = &f->plan->values[i];
        if (pl_fit_is_in_slab(f, value) && value->place == PL_PLACE_MEMORY) {
            bytes = pl_add_sat_u64(bytes, pl_memory_cost_bytes(pl_max_u64(value->bytes, 1)));
            f->first_small = any && f->first_small < value->born ? f->first_small : value->born;
            any = true;
        }
    }
    f->slab_bytes = pl_slabs_bytes(f->request->slab_bytes, f->request->small_bytes, bytes);
}

static bool uses(const pl_step *step, int value)
{
    for (int i = 0; i < step->n_uses; i++)
        if (step->uses[i] == value)
            return true;
    return false;
}

/* Returns the first step from `s` on that reads or makes the value; n_steps if none does. */
int pl_fit_next_use(const pl_plan *plan, int value, int s)
{
    for (int at = s; at < plan->n_steps; at++)
        if (plan->values[value].born == at || uses(&plan->steps[at], value))
            return at;
    return plan->n_steps;
}

/* Returns whether a value from outside occupies memory at a step because the step uses it. Values
 * that arrive are counted separately, and so are the run's own. */
static bool is_pinned(const pl_plan_value *value)
{
    return value->from_outside && value->place == PL_PLACE_MEMORY && !pl_value_arrives(value) &&
           !value->own;
}

/* Returns whether one of the step's earlier uses already pins this value's holder. */
static bool is_held(const pl_plan *plan, const pl_step *step, int n_first, const void *holder)
{
    for (int i = 0; i < n_first; i++) {
        const pl_plan_value *value = &plan->values[step->uses[i]];
        if (is_pinned(value) && value->holder == holder)
            return true;
    }
    return false;
}

/* The bytes that values from outside pin; a holder of several values is counted once. */
static uint64_t pinned_bytes(const pl_plan *plan, const pl_step *step)
{
    uint64_t bytes = 0;
    for (int i = 0; i < step->n_uses; i++) {
        const pl_plan_value *value = &plan->values[step->uses[i]];
        if (is_pinned(value) && !is_held(plan, step, i, value->holder))
            bytes = pl_add_sat_u64(bytes, value->holder_bytes);
    }
    return bytes;
}

/* Widens [*first, *last] to the uses of all values that arrive in the same holder. Returns false if
 * an earlier value has done so. */
static bool span_of_holder(const pl_plan *plan, int value, int *first, int *last)
{
    for (int i = 0; i < plan->n_values; i++) {
        const pl_plan_value *other = &plan->values[i];
        if (!pl_value_arrives(other) || other->holder != plan->values[value].holder)
            continue;
        if (i < value)
            return false;
        int use = pl_fit_next_use(plan, i, 0);
        *first = use < *first ? use : *first;
        *last = other->last_use > *last ? other->last_use : *last;
    }
    return true;
}

/* Counts values that are brought into memory for the run; they stay from their first use to their
 * last. */
static void count_arrivals(pl_fitter *f)
{
    const pl_plan *plan = f->plan;
    for (int i = 0; i < plan->n_values; i++) {
        int first = plan->n_steps, last = -1;
        if (!pl_value_arrives(&plan->values[i]) || !span_of_holder(plan, i, &first, &last))
            continue;
        for (int s = first; s < plan->n_steps && s <= last; s++)
            f->in_memory[s] += plan->values[i].holder_bytes;
    }
}

/* Returns whether the value takes memory for itself: not pinned by steps, and not in a slab. */
static bool takes_memory(const pl_fitter *f, const pl_plan_value *value)
{
    bool there = value->place == PL_PLACE_MEMORY || value->place == PL_PLACE_DEVICE;
    return there && !value->from_outside && !pl_fit_is_in_slab(f, value);
}

static uint64_t cost_bytes(const pl_fitter *f, const pl_plan_value *value)
{
    if (value->place == PL_PLACE_MEMORY)
        return pl_memory_cost_bytes(value->bytes);
    uint64_t bytes = pl_stay_host_bytes(f->plan, f->request, value);
    return bytes > 0 ? pl_memory_cost_bytes(bytes) : 0;
}

/* Counts the memory of values at each step. Those from outside are pinned only while they are
 * used. */
void pl_fit_count_values(pl_fitter *f)
{
    pl_plan *plan = f->plan;
    count_slabs(f);
    for (int s = 0; s <= plan->n_steps; s++)
        f->in_memory[s] = 0;
    for (int i = 0; i < plan->n_values; i++) {
        const pl_plan_value *value = &plan->values[i];
        if (!takes_memory(f, value))
            continue;
        int end = value->last_use < plan->n_steps ? value->last_use : plan->n_steps - 1;
        uint64_t cost = cost_bytes(f, value);
        f->in_memory[value->born] += cost; /* differences, summed below */
        f->in_memory[end + 1] -= cost;
    }
    uint64_t sum = 0;
    for (int s = 0; s < plan->n_steps; s++) {
        sum += f->in_memory[s];
        f->in_memory[s] = sum + (s >= f->first_small ? f->slab_bytes : 0) + f->request->own_bytes;
    }
    for (int s = 0; s < plan->n_steps; s++)
        f->in_memory[s] += pinned_bytes(plan, &plan->steps[s]);
    count_arrivals(f);
}

/* Counts the memory of kept values, and of the largest one that must be pinned again to be written.
 * *ret_largest may be -1. */
uint64_t pl_fit_count_end(pl_fitter *f, int *ret_largest)
{
    const pl_plan *plan = f->plan;
    uint64_t bytes = pl_add_sat_u64(f->slab_bytes, f->request->own_bytes), largest = 0;
    *ret_largest = -1;
    for (int i = 0; i < plan->n_values; i++) {
        const pl_plan_value *value = &plan->values[i];
        if (value->kept && !value->from_outside && value->place == PL_PLACE_MEMORY &&
            !pl_fit_is_in_slab(f, value))
            bytes = pl_add_sat_u64(bytes, pl_memory_cost_bytes(value->bytes));
        if (value->saved && !value->own && value->holder_bytes > largest) {
            largest = value->holder_bytes;
            *ret_largest = i;
        }
    }
    return pl_add_sat_u64(bytes, largest);
}
