/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a plan fit its budget.
 *
 * At first all values are in memory, and steps have their best tiles. If that is too much, tiles
 * shrink, as far as it still pays. Then values go to disk from birth on, the one whose next use is
 * furthest away first (Belady's rule). When none is left, tiles shrink to their minimum, and rows
 * that do not fit whole are cut. A plan that still does not fit is refused, with the budget that
 * would do. */
#include <errno.h>
#include <stdlib.h>

#include "base/size.h"
#include "plan/device_work.h"
#include "plan/fit_private.h"
#include "plan/long_rows.h"
#include "plan/product.h"
#include "tensor/dtype.h"

/* The size of a worker's scratch, unless tiles would become too small: what fits the second-level
 * cache, and for a step that reads from disk, what keeps reads long. */
#define CACHE_BYTES       (256 * PL_KIB)
#define DISK_WORKER_BYTES (8 * PL_MIB)

/* From this level on, smaller tiles cost more time than putting a value on disk; and reads are so
 * short that making them longer helps more than reading ahead. */
enum { LEVELS_THAT_PAY = 6, LEVELS_AHEAD = 3, LINE_BYTES = 64 };

/* Spilling smaller values does not make enough room to matter. */
#define SPILL_BYTES (16 * PL_KIB)

/* Sets, for each value, the first step from `s` on that reads or makes it; n_steps if none does. */
static void set_next_uses(pl_fitter *f, int s)
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

bool pl_fit_can_spill(const pl_fitter *f, const pl_plan_value *value)
{
    return value->place == PL_PLACE_MEMORY && !value->scattered && !value->own &&
           value->bytes >= SPILL_BYTES && !pl_fit_is_in_slab(f, value);
}

/* Small values from outside make room only together. Spilling them costs no writing: they are read
 * where they are. */
bool pl_fit_is_small_source(const pl_plan_value *value)
{
    return value->from_outside && value->place == PL_PLACE_MEMORY && !value->scattered &&
           !value->own && value->bytes < SPILL_BYTES;
}

static bool is_live(const pl_fitter *f, int value, int s)
{
    const pl_plan_value *v = &f->plan->values[value];
    if (pl_value_arrives(v))
        return pl_fit_next_use(f->plan, value, 0) <= s && s <= v->last_use;
    return v->from_outside ? f->next[value] == s : v->born <= s && s <= v->last_use;
}

static bool spill_small_sources(pl_fitter *f, int s)
{
    bool any = false;
    for (int i = 0; i < f->plan->n_values; i++)
        if (pl_fit_is_small_source(&f->plan->values[i]) && is_live(f, i, s)) {
            f->plan->values[i].place = PL_PLACE_SPILL;
            any = true;
        }
    f->restart = 0;
    return any;
}

/* Puts one value that is in memory at step `s` on disk, or all small ones from outside. Returns
 * false if there is none. */
static bool spill_one(pl_fitter *f, int s)
{
    pl_plan *plan = f->plan;
    int best = -1;
    set_next_uses(f, s);
    for (int i = 0; i < plan->n_values; i++) {
        if (!pl_fit_can_spill(f, &plan->values[i]) || !is_live(f, i, s))
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

/* Returns whether smaller tiles would have rows shorter than a cache line, so that each line would
 * be fetched several times. */
static bool is_thin(const pl_step *step)
{
    const pl_shape *shape = &step->program.boxes[0].shape;
    int last = shape->rank - 1;
    int64_t row_bytes =
        last < 0 ? 0 : step->extent[last] * pl_dtype_info_of(step->node->dtype)->item_bytes;
    return last >= 0 && step->extent[last] < shape->dims[last] && row_bytes <= 4 * LINE_BYTES;
}

/* Takes the first level, up to `last`, whose scratch fits `room`. Returns 1 if there is one, 0 if
 * not, or an error that has another cause. */
static int find_level(pl_fitter *f, pl_step *step, int last, pl_step_workers workers, uint64_t room)
{
    uint64_t cache = f->request->cache_bytes ? f->request->cache_bytes : CACHE_BYTES;
    uint64_t wanted = reads_disk(f->plan, step) ? DISK_WORKER_BYTES : cache;
    if (step->node->op->op_class == PL_CLASS_MATMUL || step->kind == PL_STEP_DEVICE)
        wanted = UINT64_MAX; /* the larger, the better */
    uint64_t bytes;
    if (pl_step_is_product(f->plan, step)) {
        int r = pl_step_plan_product(f->plan, step, f->request, workers.n_workers, room,
                                     last <= LEVELS_THAT_PAY, &bytes, f->reterr);
        if (r < 0)
            return r == PL_EBUDGET ? 0 : r;
        step->peak_bytes = bytes;
        return 1;
    }
    for (int level = 0; level <= last; level++) {
        int r = pl_step_tiles(f->plan, step, f->request, level, workers, &bytes, f->reterr);
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

int pl_fit_smallest_scratch(pl_fitter *f, pl_step *step, uint64_t *ret_bytes)
{
    uint64_t least = UINT64_MAX, bytes;
    const pl_step_workers alone = {1, false};
    int r = 1;
    for (int level = 0; r > 0; level++) {
        r = pl_step_tiles(f->plan, step, f->request, level, alone, &bytes, f->reterr);
        if (r > 0)
            least = pl_min_u64(least, bytes);
    }
    *ret_bytes = least;
    return r;
}

/* Cuts rows that were whole until now. Returns 1, or 0 if they cannot be cut, or -ENOMEM. */
int pl_fit_cut_rows(pl_fitter *f, pl_step *step)
{
    uint64_t whole_bytes;
    int r = pl_fit_smallest_scratch(f, step, &whole_bytes);
    if (r == 0)
        r = pl_step_make_long_rows(f->plan, step, f->reterr);
    if (r > 0)
        step->whole_bytes = whole_bytes;
    return r;
}

/* find_level() for the first of two crews that fits. */
static int find_workers(pl_fitter *f, int s, int last, pl_step_workers workers, int last_other,
                        pl_step_workers other)
{
    pl_step *step = &f->plan->steps[s];
    uint64_t budget = f->request->budget_bytes;
    if (f->in_memory[s] > budget)
        return 0;
    int r = find_level(f, step, last, workers, budget - f->in_memory[s]);
    return r != 0 ? r : find_level(f, step, last_other, other, budget - f->in_memory[s]);
}

/* Returns 1 if the step fits; 0 if something was put on disk or rows were cut, so that the caller
 * must begin again; PL_EBUDGET, or another error. */
static int fit_step(pl_fitter *f, int s)
{
    pl_step *step = &f->plan->steps[s];
    const pl_step_workers workers = {f->request->n_threads > 0 ? f->request->n_threads : 1, false};
    const pl_step_workers ahead = {workers.n_workers, true}, alone = {1, false};
    int r = find_workers(f, s, LEVELS_AHEAD, ahead, LEVELS_THAT_PAY, workers);
    if (r == 0) {
        if (pl_plan_bring_back(f->plan, s, &f->restart) || spill_one(f, s))
            return 0;
        r = find_workers(f, s, INT32_MAX, workers, INT32_MAX, alone);
        if (r == 0) {
            r = pl_fit_cut_rows(f, step);
            f->restart = s;
            return r == 0 ? PL_EBUDGET : r > 0 ? 0 : r;
        }
    }
    if (r < 0)
        return r;
    step->peak_bytes += f->in_memory[s];
    return 1;
}

/* fit_step() for results that are written at the end. */
static int fit_end(pl_fitter *f)
{
    pl_plan *plan = f->plan;
    int largest;
    plan->end_bytes = pl_fit_count_end(f, &largest);
    bool more = largest >= 0 || f->request->own_bytes > 0; /* than the last step had */
    if (!more || plan->end_bytes <= f->request->budget_bytes)
        return 1;
    for (int i = 0; i < plan->n_values; i++)
        if (plan->values[i].kept && !plan->values[i].from_outside &&
            pl_fit_can_spill(f, &plan->values[i])) {
            plan->values[i].place = PL_PLACE_SPILL;
            f->restart = 0;
            return 0;
        }
    return PL_EBUDGET;
}

int pl_plan_fit(pl_plan *plan, const pl_plan_request *request, pl_error *reterr)
{
    pl_fitter f = {.plan = plan, .request = request, .reterr = reterr};
    f.in_memory = calloc((size_t)plan->n_steps + 2, sizeof *f.in_memory);
    f.next = calloc((size_t)plan->n_values + 1, sizeof *f.next);
    if (!f.in_memory || !f.next) {
        free(f.in_memory);
        free(f.next);
        return pl_error_set(reterr, -ENOMEM, "out of memory while planning");
    }
    int r = 0;
    pl_fit_count_values(&f);
    for (int s = 0; s <= plan->n_steps && r >= 0; s++) {
        r = s < plan->n_steps ? fit_step(&f, s) : fit_end(&f);
        if (r == 0) {
            pl_fit_count_values(&f);
            s = f.restart - 1;
        }
    }
    if (r == PL_EBUDGET)
        r = pl_fit_refuse(&f, reterr);
    else if (r >= 0)
        r = pl_fit_count_disk(&f, reterr);
    free(f.in_memory);
    free(f.next);
    return r;
}
