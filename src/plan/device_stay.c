/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which values stay on the device that makes them: those whose readers all follow soon, on
 * the same device. See device_work.h.
 *   span   the steps from a value's birth to its last use
 *   group  steps whose values' spans overlap: they claim device memory once, together, so that no
 *          run waits for a device while it holds part of it
 *
 * Steps that read or make such a value use a single tile, whose buffer is the value itself. */
#include "plan/device_work.h"

/* A value with a longer span would occupy the device for too long. */
enum { SPAN_STEPS_MAX = 64 };

static bool touches(const pl_step *step, int value)
{
    for (int i = 0; i < step->n_uses; i++)
        if (step->uses[i] == value)
            return true;
    return step->value == value;
}

/* Products of several pairs are computed pair by pair; empty ones are computed on the host. */
static bool can_be_whole(const pl_plan *plan, const pl_step *step)
{
    if (step->node->op->op_class != PL_CLASS_MATMUL)
        return true;
    const pl_shape *shape = &plan->shapes[step->node->number];
    for (int i = 0; i < shape->rank - 2; i++)
        if (shape->dims[i] != 1)
            return false;
    for (int i = 0; i < step->work->n_inputs; i++)
        if (plan->values[plan->value_of[step->work->inputs[i]]].bytes == 0)
            return false;
    return true;
}

static bool could_stay(const pl_plan *plan, int number)
{
    const pl_plan_value *value = &plan->values[number];
    if (value->from_outside || value->kept || value->place != PL_PLACE_MEMORY ||
        value->bytes == 0 || value->last_use - value->born > SPAN_STEPS_MAX)
        return false;
    const pl_step *maker = &plan->steps[value->born];
    for (int s = value->born; s <= value->last_use; s++) {
        const pl_step *step = &plan->steps[s];
        if (step->kind != PL_STEP_DEVICE || step->work->device != maker->work->device ||
            (touches(step, number) && !can_be_whole(plan, step)))
            return false;
    }
    return value->last_use > value->born;
}

static bool touches_what_stays(const pl_plan *plan, const pl_step *step)
{
    bool any = plan->values[step->value].place == PL_PLACE_DEVICE;
    for (int i = 0; i < step->n_uses; i++)
        any = any || plan->values[step->uses[i]].place == PL_PLACE_DEVICE;
    return any;
}

static void set_place(pl_plan *plan, int number, pl_place place)
{
    pl_plan_value *value = &plan->values[number];
    uint64_t bytes = pl_staging_bytes(value->bytes);
    value->place = place;
    for (int s = value->born; s <= value->last_use; s++) {
        pl_step *step = &plan->steps[s];
        step->work->whole = touches_what_stays(plan, step);
        if (place == PL_PLACE_DEVICE)
            step->work->stay_bytes = pl_add_sat_u64(step->work->stay_bytes, bytes);
        else
            step->work->stay_bytes -= bytes;
    }
}

/* Returns 1 if all steps of the value's span still fit the device, with their present tiles, while
 * the value stays there; else 0. */
static int try_to_stay(pl_plan *plan, const pl_plan_request *request, int number, pl_error *reterr)
{
    const pl_plan_value *value = &plan->values[number];
    const pl_plan_device *device = &request->devices[plan->steps[value->born].work->device];
    int r = pl_staging_bytes(value->bytes) <= device->largest_bytes;
    set_place(plan, number, PL_PLACE_DEVICE);
    for (int s = value->born; r > 0 && s <= value->last_use; s++)
        r = pl_device_step_fits(plan, &plan->steps[s], device, reterr);
    if (r <= 0)
        set_place(plan, number, PL_PLACE_MEMORY);
    return r;
}

int pl_plan_let_stay(pl_plan *plan, const pl_plan_request *request, pl_error *reterr)
{
    int r = 0;
    for (int s = 0; plan->device_of && r >= 0 && s < plan->n_steps; s++)
        if (could_stay(plan, plan->steps[s].value))
            r = try_to_stay(plan, request, plan->steps[s].value, reterr);
    return r < 0 ? r : 0;
}

bool pl_plan_bring_back(pl_plan *plan, int s, int *ret_first)
{
    bool any = false;
    for (int i = s > SPAN_STEPS_MAX ? s - SPAN_STEPS_MAX : 0; i <= s; i++) {
        int number = plan->steps[i].value;
        if (plan->values[number].place != PL_PLACE_DEVICE || plan->values[number].last_use < s)
            continue;
        set_place(plan, number, PL_PLACE_MEMORY);
        if (!any)
            *ret_first = i;
        any = true;
    }
    return any;
}

uint64_t pl_stay_host_bytes(const pl_plan *plan, const pl_plan_request *request,
                            const pl_plan_value *value)
{
    const pl_device_work *work = plan->steps[value->born].work;
    return request->devices[work->device].unified ? pl_stay_block_bytes(value->bytes) : 0;
}

void pl_plan_claim_devices(pl_plan *plan)
{
    for (int s = 0, end; s < plan->n_steps; s = end + 1) {
        uint64_t bytes = 0;
        end = s;
        if (plan->steps[s].kind != PL_STEP_DEVICE)
            continue;
        for (int i = s; i <= end; i++) {
            const pl_step *step = &plan->steps[i];
            const pl_plan_value *value = &plan->values[step->value];
            bytes = pl_max_u64(bytes, pl_device_step_bytes(step));
            if (value->place == PL_PLACE_DEVICE && value->last_use > end)
                end = value->last_use;
        }
        plan->steps[s].work->claim_bytes = bytes;
        plan->steps[end].work->lets_go = true;
    }
}
