/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the disk space that a plan takes; for a plan that does not fit, finds the budget that
 * would do and the op that decides it. See fit_private.h. */
#include <errno.h>

#include "base/size.h"
#include "plan/device_work.h"
#include "plan/fit_private.h"
#include "plan/product.h"

/* The least that a step needs when all values that may be on disk are there. */
static uint64_t smallest_bytes(pl_fitter *f, int s)
{
    pl_step *step = &f->plan->steps[s];
    if (pl_step_is_product(f->plan, step)) {
        pl_matmul_plan product = pl_step_least_product(f->plan, step);
        return pl_add_sat_u64(product.scratch_bytes + product.workspace_bytes, f->in_memory[s]);
    }
    uint64_t least;
    (void)!pl_fit_cut_rows(f, step);
    (void)!pl_fit_smallest_scratch(f, step, &least); /* if short of memory: less detail */
    if (step->kind == PL_STEP_LONG_ROWS)
        least = pl_min_u64(least, step->whole_bytes);
    return pl_add_sat_u64(least, f->in_memory[s]);
}

static int refuse_product(const pl_fitter *f, int s, uint64_t bytes, pl_error *reterr)
{
    const pl_step *step = &f->plan->steps[s];
    pl_matmul_plan least = pl_step_least_product(f->plan, step);
    char parts[PL_MATMUL_PARTS_BYTES];
    pl_matmul_plan_parts(&least, f->in_memory[s], parts);
    return pl_error_set(reterr, PL_EBUDGET,
                        "%s '%s': the smallest tiling needs %s (%s); the budget is %s: give at "
                        "least %s",
                        step->node->op->name, step->node->name, PL_SIZE_UP(bytes), parts,
                        PL_SIZE(f->request->budget_bytes), PL_SIZE_UP(bytes));
}

int pl_fit_count_disk(pl_fitter *f, pl_error *reterr)
{
    pl_plan *plan = f->plan;
    for (int i = 0; i < plan->n_values; i++) {
        const pl_plan_value *value = &plan->values[i];
        if (value->from_outside || value->place != PL_PLACE_SPILL)
            continue;
        for (int s = value->born; s < plan->n_steps && s <= value->last_use; s++)
            plan->steps[s].disk_bytes += (value->bytes + 4095) / 4096 * 4096;
    }
    for (int s = 0; s < plan->n_steps; s++) {
        pl_step *step = &plan->steps[s];
        if (step->kind == PL_STEP_MATMUL)
            step->disk_bytes += step->product->plan.scratch_disk_bytes;
        if (step->kind == PL_STEP_LONG_ROWS)
            step->disk_bytes += step->stash_bytes * (uint64_t)pl_step_n_frames(step);
        if (step->disk_bytes > f->request->disk.bytes)
            return pl_error_set(reterr, -ENOSPC, "%s '%s': %s must be spilled, and %s",
                                step->node->op->name, step->node->name,
                                PL_SIZE_UP(step->disk_bytes),
                                PL_SPILL_ROOM_TEXT(&f->request->disk));
    }
    return 0;
}

/* Refuses products whose smallest tiling fits the memory but not the disk, to which blocks are
 * copied. */
static int refuse_disk(pl_fitter *f, pl_error *reterr)
{
    for (int s = 0; s < f->plan->n_steps; s++) {
        pl_step *step = &f->plan->steps[s];
        if (step->kind == PL_STEP_MATMUL)
            step->product->plan = pl_step_least_product(f->plan, step);
    }
    return pl_fit_count_disk(f, reterr);
}

/* The count fits, but no tiling was found. */
static int refuse_unfound(pl_fitter *f, int s, pl_error *reterr)
{
    const pl_node *node = f->plan->steps[s].node;
    f->plan->least_bytes = pl_add_sat_u64(f->request->budget_bytes, 1);
    f->plan->refused = node;
    return pl_error_set(reterr, PL_EBUDGET,
                        "%s '%s': no tiling was found for a budget of %s: give more",
                        node->op->name, node->name, PL_SIZE(f->request->budget_bytes));
}

/* Without steps, the plan has only values of eager ops. */
static int refuse_own(const pl_fitter *f, uint64_t bytes, pl_error *reterr)
{
    f->plan->least_bytes = bytes;
    return pl_error_set(reterr, PL_EBUDGET,
                        "values of eager ops that are kept take %s; the budget is %s: "
                        "give at least %s",
                        PL_SIZE_UP(bytes), PL_SIZE(f->request->budget_bytes), PL_SIZE_UP(bytes));
}

/* The end of the run needs most, because a value from outside is pinned again to be written. */
static int refuse_end(const pl_fitter *f, const pl_node *saved, uint64_t bytes, pl_error *reterr)
{
    f->plan->least_bytes = bytes;
    f->plan->refused = saved;
    return pl_error_set(reterr, PL_EBUDGET,
                        "%s '%s': its elements do not lie in order, and have to be in memory to be "
                        "written: %s with all that is kept; the budget is %s: give at least %s",
                        saved->op->name, saved->name, PL_SIZE_UP(bytes),
                        PL_SIZE(f->request->budget_bytes), PL_SIZE_UP(bytes));
}

static int refuse_step(const pl_fitter *f, int s, uint64_t bytes, pl_error *reterr)
{
    const pl_step *step = &f->plan->steps[s];
    f->plan->least_bytes = bytes;
    f->plan->refused = step->node;
    if (step->kind == PL_STEP_MATMUL)
        return refuse_product(f, s, bytes, reterr);
    return pl_error_set(reterr, PL_EBUDGET,
                        "%s '%s': its smallest tiles need %s (%s of values, the rest scratch); the "
                        "budget is %s: give at least %s",
                        step->node->op->name, step->node->name, PL_SIZE_UP(bytes),
                        PL_SIZE(f->in_memory[s]), PL_SIZE(f->request->budget_bytes),
                        PL_SIZE_UP(bytes));
}

/* Puts all values on disk that may be there, and takes all values off devices. */
static void put_all_out(pl_fitter *f)
{
    pl_plan *plan = f->plan;
    int first;
    for (int s = 0; s < plan->n_steps; s++)
        (void)pl_plan_bring_back(plan, s, &first);
    for (int i = 0; i < plan->n_values; i++)
        if (pl_fit_can_spill(f, &plan->values[i]) || pl_fit_is_small_source(&plan->values[i]))
            plan->values[i].place = PL_PLACE_SPILL;
    pl_fit_count_values(f);
}

/* Finds the step that then needs most, and how much. */
static int find_worst(pl_fitter *f, uint64_t *ret_bytes)
{
    int worst = 0;
    *ret_bytes = 0;
    for (int s = 0; s < f->plan->n_steps; s++) {
        uint64_t bytes = smallest_bytes(f, s);
        if (bytes > *ret_bytes) {
            *ret_bytes = bytes;
            worst = s;
        }
    }
    return worst;
}

int pl_fit_refuse(pl_fitter *f, pl_error *reterr)
{
    const pl_plan *plan = f->plan;
    uint64_t budget = f->request->budget_bytes, most;
    int largest;
    put_all_out(f);
    int worst = find_worst(f, &most);
    uint64_t at_end = pl_fit_count_end(f, &largest);
    if (plan->n_steps == 0)
        return refuse_own(f, at_end, reterr);
    if (at_end > pl_max_u64(most, budget) && largest >= 0)
        return refuse_end(f, plan->values[largest].node, at_end, reterr);
    if (most > budget)
        return refuse_step(f, worst, most, reterr);
    int r = refuse_disk(f, reterr);
    return r < 0 ? r : refuse_unfound(f, worst, reterr);
}
