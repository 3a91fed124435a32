/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a plan fit its budget. All values begin in memory, and steps with the tiles that are best.
 * Where that is too much, tiles become smaller, down to what still pays; then the value whose next
 * use is furthest away goes to disk (Belady's rule), from its birth on; when there is none left,
 * tiles become as small as they can, and rows are cut that do not fit as a whole. What does not fit
 * then is refused, with what would. */
#include <errno.h>
#include <stdlib.h>

#include "base/size.h"
#include "plan/device_work.h"
#include "plan/long_rows.h"
#include "plan/plan.h"
#include "plan/product.h"
#include "tensor/dtype.h"
#include "tensor/memory.h"

/* A worker's scratch, unless tiles would become too small by it: what fits its second-level cache,
 * and for a step that reads from disk, what makes reads long. */
#define CACHE_BYTES       (256 * PL_KIB)
#define DISK_WORKER_BYTES (8 * PL_MIB)

/* From this level on tiles cost more time than a value on disk would; and reads are so short that
 * they should rather be longer than ahead. */
enum { LEVELS_THAT_PAY = 6, LEVELS_AHEAD = 3, LINE_BYTES = 64 };

/* Smaller values make no room. */
#define SPILL_BYTES (16 * PL_KIB)

typedef struct fitter {
    pl_plan *plan;
    const pl_plan_request *request;
    pl_error *reterr;    /* of whatever is not PL_EBUDGET */
    uint64_t *in_memory; /* values at each step */
    uint64_t slab_bytes; /* of small kept values */
    int first_small;     /* the step that makes the first of them */
    int *next;           /* use of each value, from some step on */
    int restart;         /* the first step that the last spill has changed */
} fitter;

static bool is_in_slab(const fitter *f, const pl_plan_value *value)
{
    return value->kept && !value->from_outside && f->request->slab_bytes > 0 &&
           value->bytes <= f->request->small_bytes;
}

static void count_slabs(fitter *f)
{
    uint64_t bytes = 0, slab = f->request->slab_bytes;
    bool any = false;
    for (int i = 0; i < f->plan->n_values; i++) {
        const pl_plan_value *value = &f->plan->values[i];
        if (is_in_slab(f, value) && value->place == PL_PLACE_MEMORY) {
            bytes = pl_add_sat_u64(bytes, pl_memory_cost_bytes(pl_max_u64(value->bytes, 1)));
            f->first_small = any && f->first_small < value->born ? f->first_small : value->born;
            any = true;
        }
    }
    /* A small value finds no place when less than its size is left: that much a slab loses. */
    uint64_t used = pl_sub_sat_u64(slab, f->request->small_bytes);
    f->slab_bytes = any && used > 0 ? (1 + bytes / used) * slab : 0;
}

static bool uses(const pl_step *step, int value)
{
    for (int i = 0; i < step->n_uses; i++)
        if (step->uses[i] == value)
            return true;
    return false;
}

/* The first step from `s` on that reads or makes the value; n_steps if none does. */
static int next_use(const pl_plan *plan, int value, int s)
{
    for (int at = s; at < plan->n_steps; at++)
        if (plan->values[value].born == at || uses(&plan->steps[at], value))
            return at;
    return plan->n_steps;
}

/* From outside, and there at a step that uses it; those that arrive are counted apart, and so is
 * the run's own. */
static bool is_pinned(const pl_plan_value *value)
{
    return value->from_outside && value->place == PL_PLACE_MEMORY && !pl_value_arrives(value) &&
           !value->own;
}

/* Is what holds it pinned by one of the step's first uses? */
static bool is_held(const pl_plan *plan, const pl_step *step, int n_first, const void *holder)
{
    for (int i = 0; i < n_first; i++) {
        const pl_plan_value *value = &plan->values[step->uses[i]];
        if (is_pinned(value) && value->holder == holder)
            return true;
    }
    return false;
}

/* By values from outside; what holds several is counted once. */
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

/* Widens [*first, *last] to the uses of all that arrive with the value, in the same holder. False
 * if one before it has done so. */
static bool span_of_holder(const pl_plan *plan, int value, int *first, int *last)
{
    for (int i = 0; i < plan->n_values; i++) {
        const pl_plan_value *other = &plan->values[i];
        if (!pl_value_arrives(other) || other->holder != plan->values[value].holder)
            continue;
        if (i < value)
            return false;
        int use = next_use(plan, i, 0);
        *first = use < *first ? use : *first;
        *last = other->last_use > *last ? other->last_use : *last;
    }
    return true;
}

/* What comes into memory for the run stays from its first use to its last. */
static void count_arrivals(fitter *f)
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

/* For itself: neither pinned by steps nor in a slab. */
static bool takes_memory(const fitter *f, const pl_plan_value *value)
{
    bool there = value->place == PL_PLACE_MEMORY || value->place == PL_PLACE_DEVICE;
    return there && !value->from_outside && !is_in_slab(f, value);
}

static uint64_t cost_bytes(const fitter *f, const pl_plan_value *value)
{
    if (value->place == PL_PLACE_MEMORY)
        return pl_memory_cost_bytes(value->bytes);
    uint64_t bytes = pl_stay_host_bytes(f->plan, f->request, value);
    return bytes > 0 ? pl_memory_cost_bytes(bytes) : 0;
}

/* What values take at each step. Those from outside are pinned only while they are used. */
static void count_values(fitter *f)
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

/* For each value the first step from `s` on that reads or makes it; n_steps if none does. */
static void set_next_uses(fitter *f, int s)
{
    const pl_plan *plan = f->plan;
    for (int i = 0; i < plan->n_values; i++)
        f->next[i] = plan->n_steps;
    for (int at = plan->n_steps - 1; at >= s; at--) {
        const pl_step *step = &plan->steps[at];
        for (int i = 0; i < step->n_uses; i++)
            f->next[step->uses[i]] = at;
        f->next[step->value] = at;
    }
}

static bool can_spill(const fitter *f, const pl_plan_value *value)
{
    return value->place == PL_PLACE_MEMORY && !value->scattered && !value->own &&
           value->bytes >= SPILL_BYTES && !is_in_slab(f, value);
}

/* Small ones from outside make room together, and cost no writing: they are read where they are. */
static bool is_small_source(const pl_plan_value *value)
{
    return value->from_outside && value->place == PL_PLACE_MEMORY && !value->scattered &&
           !value->own && value->bytes < SPILL_BYTES;
}

static bool is_live(const fitter *f, int value, int s)
{
    const pl_plan_value *v = &f->plan->values[value];
    if (pl_value_arrives(v))
        return next_use(f->plan, value, 0) <= s && s <= v->last_use;
    return v->from_outside ? f->next[value] == s : v->born <= s && s <= v->last_use;
}

static bool spill_small_sources(fitter *f, int s)
{
    bool any = false;
    for (int i = 0; i < f->plan->n_values; i++)
        if (is_small_source(&f->plan->values[i]) && is_live(f, i, s)) {
            f->plan->values[i].place = PL_PLACE_SPILL;
            any = true;
        }
    f->restart = 0;
    return any;
}

/* Puts a value that is in memory at step `s` on disk, or all small ones from outside; false if
 * there is none. */
static bool spill_one(fitter *f, int s)
{
    pl_plan *plan = f->plan;
    int best = -1;
    set_next_uses(f, s);
    for (int i = 0; i < plan->n_values; i++) {
        if (!can_spill(f, &plan->values[i]) || !is_live(f, i, s))
            continue;
        if (best < 0 || f->next[i] > f->next[best] ||
            (f->next[i] == f->next[best] && plan->values[i].bytes > plan->values[best].bytes))
            best = i;
    }
    if (best < 0)
        return spill_small_sources(f, s);
    plan->values[best].place = PL_PLACE_SPILL;
    f->restart = plan->values[best].born > 0 ? plan->values[best].born : 0;
    return true;
}

static bool reads_disk(const pl_plan *plan, const pl_step *step)
{
    for (int i = 0; i < step->n_uses; i++)
        if (plan->values[step->uses[i]].place != PL_PLACE_MEMORY)
            return true;
    return false;
}

/* Would smaller tiles have rows of less than a cache line? Each would be fetched several times. */
static bool is_thin(const pl_step *step)
{
    const pl_shape *shape = &step->program.boxes[0].shape;
    int last = shape->rank - 1;
    int64_t row_bytes =
        last < 0 ? 0 : step->extent[last] * pl_dtype_info_of(step->node->dtype)->item_bytes;
    return last >= 0 && step->extent[last] < shape->dims[last] && row_bytes <= 4 * LINE_BYTES;
}

/* Takes the first level, up to `last`, whose scratch fits `room`. 1: there is one; 0: none; an
 * error if it is not the room. */
static int find_level(fitter *f, pl_step *step, int last, pl_crew crew, uint64_t room)
{
    uint64_t cache = f->request->cache_bytes ? f->request->cache_bytes : CACHE_BYTES;
    uint64_t wanted = reads_disk(f->plan, step) ? DISK_WORKER_BYTES : cache;
    if (step->node->op->op_class == PL_CLASS_MATMUL || step->kind == PL_STEP_DEVICE)
        wanted = UINT64_MAX; /* the larger, the better */
    uint64_t bytes;
    if (pl_step_is_product(f->plan, step)) {
        int r = pl_step_plan_product(f->plan, step, f->request, crew.n_workers, room,
                                     last <= LEVELS_THAT_PAY, &bytes, f->reterr);
        if (r < 0)
            return r == PL_EBUDGET ? 0 : r;
        step->peak_bytes = bytes;
        return 1;
    }
    for (int level = 0; level <= last; level++) {
        int r = pl_step_tiles(f->plan, step, f->request, level, crew, &bytes, f->reterr);
        if (r <= 0)
            return r;
        bool pays = step->worker_bytes <= wanted || level >= LEVELS_THAT_PAY || is_thin(step);
        if (pays && bytes <= room) {
            step->peak_bytes = bytes;
            return 1;
        }
    }
    return 0;
}

static int smallest_scratch(fitter *f, pl_step *step, uint64_t *ret_bytes)
{
    uint64_t least = UINT64_MAX, bytes;
    const pl_crew alone = {1, false};
    int r = 1;
    for (int level = 0; r > 0; level++) {
        r = pl_step_tiles(f->plan, step, f->request, level, alone, &bytes, f->reterr);
        if (r > 0)
            least = pl_min_u64(least, bytes);
    }
    *ret_bytes = least;
    return r;
}

/* 1: its rows were whole, and are no more; 0: that cannot be; -ENOMEM. */
static int cut_rows(fitter *f, pl_step *step)
{
    uint64_t whole_bytes;
    int r = smallest_scratch(f, step, &whole_bytes);
    if (r == 0)
        r = pl_step_make_long_rows(f->plan, step, f->reterr);
    if (r > 0)
        step->whole_bytes = whole_bytes;
    return r;
}

/* Likewise, by the first of two crews that can. */
static int find_crew(fitter *f, int s, int last, pl_crew crew, int last_other, pl_crew other)
{
    pl_step *step = &f->plan->steps[s];
    uint64_t budget = f->request->budget_bytes;
    if (f->in_memory[s] > budget)
        return 0;
    int r = find_level(f, step, last, crew, budget - f->in_memory[s]);
    return r != 0 ? r : find_level(f, step, last_other, other, budget - f->in_memory[s]);
}

/* 1: it fits; 0: something was put on disk, or rows were cut, begin again; PL_EBUDGET, and other
 * errors. */
static int fit_step(fitter *f, int s)
{
    pl_step *step = &f->plan->steps[s];
    const pl_crew crew = {f->request->n_threads > 0 ? f->request->n_threads : 1, false};
    const pl_crew ahead = {crew.n_workers, true}, alone = {1, false};
    int r = find_crew(f, s, LEVELS_AHEAD, ahead, LEVELS_THAT_PAY, crew);
    if (r == 0) {
        if (pl_plan_bring_back(f->plan, s, &f->restart) || spill_one(f, s))
            return 0;
        r = find_crew(f, s, INT32_MAX, crew, INT32_MAX, alone);
        if (r == 0) {
            r = cut_rows(f, step);
            f->restart = s;
            return r == 0 ? PL_EBUDGET : r > 0 ? 0 : r;
        }
    }
    if (r < 0)
        return r;
    step->peak_bytes += f->in_memory[s];
    return 1;
}

/* What is kept, and the largest that is pinned once more, to be written. *ret_largest may be -1. */
static uint64_t count_end(fitter *f, int *ret_largest)
{
    const pl_plan *plan = f->plan;
    uint64_t bytes = pl_add_sat_u64(f->slab_bytes, f->request->own_bytes), largest = 0;
    *ret_largest = -1;
    for (int i = 0; i < plan->n_values; i++) {
        const pl_plan_value *value = &plan->values[i];
        if (value->kept && !value->from_outside && value->place == PL_PLACE_MEMORY &&
            !is_in_slab(f, value))
            bytes = pl_add_sat_u64(bytes, pl_memory_cost_bytes(value->bytes));
        if (value->saved && !value->own && value->holder_bytes > largest) {
            largest = value->holder_bytes;
            *ret_largest = i;
        }
    }
    return pl_add_sat_u64(bytes, largest);
}

/* Likewise, for what is written in the end. */
static int fit_end(fitter *f)
{
    pl_plan *plan = f->plan;
    int largest;
    plan->end_bytes = count_end(f, &largest);
    bool more = largest >= 0 || f->request->own_bytes > 0; /* than the last step had */
    if (!more || plan->end_bytes <= f->request->budget_bytes)
        return 1;
    for (int i = 0; i < plan->n_values; i++)
        if (plan->values[i].kept && !plan->values[i].from_outside &&
            can_spill(f, &plan->values[i])) {
            plan->values[i].place = PL_PLACE_SPILL;
            f->restart = 0;
            return 0;
        }
    return PL_EBUDGET;
}

/* The least that a step can do with, when all is on disk that may be. */
static uint64_t smallest_bytes(fitter *f, int s)
{
    pl_step *step = &f->plan->steps[s];
    if (pl_step_is_product(f->plan, step)) {
        pl_matmul_plan product = pl_step_least_product(f->plan, step);
        return pl_add_sat_u64(product.scratch_bytes + product.workspace_bytes, f->in_memory[s]);
    }
    uint64_t least;
    (void)cut_rows(f, step);
    (void)!smallest_scratch(f, step, &least); /* where memory is short it says less of it */
    if (step->kind == PL_STEP_LONG_ROWS)
        least = pl_min_u64(least, step->whole_bytes);
    return pl_add_sat_u64(least, f->in_memory[s]);
}

static int refuse_product(const fitter *f, int s, uint64_t bytes, pl_error *reterr)
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

static int count_disk(fitter *f, pl_error *reterr)
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
        if (step->disk_bytes > f->request->disk_bytes)
            return pl_error_set(reterr, -ENOSPC,
                                "%s '%s': %s must be spilled, and the disk has room for %s: set "
                                "PLIMSOLL_SPILL to a folder with more, or give a larger budget",
                                step->node->op->name, step->node->name, PL_SIZE(step->disk_bytes),
                                PL_SIZE(f->request->disk_bytes));
    }
    return 0;
}

/* Products whose smallest tiling fits the memory, but not the disk, which blocks are copied to. */
static int refuse_disk(fitter *f, pl_error *reterr)
{
    for (int s = 0; s < f->plan->n_steps; s++) {
        pl_step *step = &f->plan->steps[s];
        if (step->kind == PL_STEP_MATMUL)
            step->product->plan = pl_step_least_product(f->plan, step);
    }
    return count_disk(f, reterr);
}

/* What was counted would fit, and still no tiling was found. */
static int refuse_unfound(fitter *f, int s, pl_error *reterr)
{
    const pl_node *node = f->plan->steps[s].node;
    f->plan->least_bytes = pl_add_sat_u64(f->request->budget_bytes, 1);
    return pl_error_set(reterr, PL_EBUDGET,
                        "%s '%s': no tiling was found for a budget of %s: give more",
                        node->op->name, node->name, PL_SIZE(f->request->budget_bytes));
}

static int refuse(fitter *f, pl_error *reterr)
{
    pl_plan *plan = f->plan;
    uint64_t most = 0;
    int worst = 0, first;
    for (int s = 0; s < plan->n_steps; s++)
        (void)pl_plan_bring_back(plan, s, &first);
    for (int i = 0; i < plan->n_values; i++)
        if (can_spill(f, &plan->values[i]) || is_small_source(&plan->values[i]))
            plan->values[i].place = PL_PLACE_SPILL;
    count_values(f);
    for (int s = 0; s < plan->n_steps; s++) {
        uint64_t bytes = smallest_bytes(f, s);
        if (bytes > most) {
            most = bytes;
            worst = s;
        }
    }
    int largest;
    uint64_t at_end = count_end(f, &largest);
    if (plan->n_steps == 0) {
        plan->least_bytes = at_end;
        return pl_error_set(reterr, PL_EBUDGET,
                            "what was made before the plan, and is kept, takes %s; the budget is "
                            "%s: give at least %s",
                            PL_SIZE_UP(at_end), PL_SIZE(f->request->budget_bytes),
                            PL_SIZE_UP(at_end));
    }
    if (at_end > pl_max_u64(most, f->request->budget_bytes) && largest >= 0) {
        const pl_node *saved = plan->values[largest].node;
        plan->least_bytes = at_end;
        return pl_error_set(reterr, PL_EBUDGET,
                            "%s '%s': its elements do not lie in order, and have to be in memory "
                            "to be written: %s with all that is kept; the budget is %s: give at "
                            "least %s",
                            saved->op->name, saved->name, PL_SIZE_UP(at_end),
                            PL_SIZE(f->request->budget_bytes), PL_SIZE_UP(at_end));
    }
    if (most <= f->request->budget_bytes) {
        int r = refuse_disk(f, reterr);
        return r < 0 ? r : refuse_unfound(f, worst, reterr);
    }
    const pl_node *node = plan->steps[worst].node;
    plan->least_bytes = most;
    if (plan->steps[worst].kind == PL_STEP_MATMUL)
        return refuse_product(f, worst, most, reterr);
    return pl_error_set(reterr, PL_EBUDGET,
                        "%s '%s': its smallest tiles need %s (%s of values, the rest scratch); the "
                        "budget is %s: give at least %s",
                        node->op->name, node->name, PL_SIZE_UP(most), PL_SIZE(f->in_memory[worst]),
                        PL_SIZE(f->request->budget_bytes), PL_SIZE_UP(most));
}

int pl_plan_fit(pl_plan *plan, const pl_plan_request *request, pl_error *reterr)
{
    fitter f = {.plan = plan, .request = request, .reterr = reterr};
    f.in_memory = calloc((size_t)plan->n_steps + 2, sizeof *f.in_memory);
    f.next = calloc((size_t)plan->n_values + 1, sizeof *f.next);
    if (!f.in_memory || !f.next) {
        free(f.in_memory);
        free(f.next);
        return pl_error_set(reterr, -ENOMEM, "no memory for a plan");
    }
    int r = 0;
    count_values(&f);
    for (int s = 0; s <= plan->n_steps && r >= 0; s++) {
        r = s < plan->n_steps ? fit_step(&f, s) : fit_end(&f);
        if (r == 0) {
            count_values(&f);
            s = f.restart - 1;
        }
    }
    if (r == PL_EBUDGET)
        r = refuse(&f, reterr);
    else if (r >= 0)
        r = count_disk(&f, reterr);
    free(f.in_memory);
    free(f.next);
    return r;
}
