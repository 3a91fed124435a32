/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats its input, which is opened again for each round. */
#include <inttypes.h>
#include <stdatomic.h>

#include "data/core/stage.h"
#include "data/persist/state.h"

typedef struct repeat_dataset {
    pl_dataset base;
    int64_t n; /* negative: without end */
} repeat_dataset;

typedef struct repeat_stage {
    pl_stage base;
    int64_t n_rounds; /* that have ended */
    bool empty;       /* this one gave nothing so far */
    bool behind;      /* this one has ended, and the next is still to be opened */
} repeat_stage;

static int64_t n_of(const pl_stage *stage)
{
    return ((const repeat_dataset *)stage->dataset)->n;
}

static int open_repeat(pl_stage *stage, pl_error *reterr)
{
    (void)reterr;
    ((repeat_stage *)stage)->empty = true;
    return 0;
}

static void copy(_Atomic uint64_t *to, _Atomic uint64_t *from)
{
    atomic_store_explicit(to, atomic_load_explicit(from, memory_order_relaxed),
                          memory_order_relaxed);
}

/* Profiles add up over all rounds. */
static void carry_on(pl_stage *to, pl_stage *from)
{
    copy(&to->profile.n_elements, &from->profile.n_elements);
    copy(&to->profile.bytes, &from->profile.bytes);
    copy(&to->profile.inside_ns, &from->profile.inside_ns);
    copy(&to->profile.busy_ns, &from->profile.busy_ns);
    copy(&to->profile.waiting_ns, &from->profile.waiting_ns);
    copy(&to->profile.n_bad, &from->profile.n_bad);
    copy(&to->profile.n_held, &from->profile.n_held);
    for (int i = 0; i < to->dataset->n_inputs; i++)
        if (to->inputs[i] && from->inputs[i]) /* a cache need not open its */
            carry_on(to->inputs[i], from->inputs[i]);
}

static int open_again(pl_stage *stage, pl_error *reterr)
{
    pl_stage *fresh = NULL;
    uint64_t number = (uint64_t)((repeat_stage *)stage)->n_rounds;
    int r = number == 0
                ? pl_stage_open(stage->dataset->inputs[0], stage, &fresh, reterr)
                : pl_stage_open_round(stage->dataset->inputs[0], stage, number, &fresh, reterr);
    if (r < 0)
        return r == PL_REPORTED ? r : pl_pass_end(stage->pass, reterr);
    if (stage->inputs[0])
        carry_on(fresh, stage->inputs[0]);
    pl_stage_set_input(stage, 0, fresh);
    return 0;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    repeat_stage *own = (repeat_stage *)stage;
    int64_t n = n_of(stage);
    while (n < 0 || own->n_rounds < n) {
        if (own->behind) {
            int r = open_again(stage, reterr);
            if (r < 0)
                return r;
            own->behind = false;
            own->empty = true;
        }
        int r = pl_stage_next(stage->inputs[0], ret_element, reterr);
        if (r != 0) {
            own->empty &= r < 0 && reterr->code == PL_CHECK_LIMIT;
            return r;
        }
        if (own->empty && n < 0)
            return 0; /* every round would be empty */
        own->behind = true;
        own->n_rounds++;
    }
    return 0;
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    const repeat_stage *own = (const repeat_stage *)stage;
    int r = pl_save_int(saver, own->n_rounds, reterr);
    if (r == 0)
        r = pl_save_int(saver, own->behind, reterr);
    return r < 0 ? r : pl_save_int(saver, own->empty, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    repeat_stage *own = (repeat_stage *)stage;
    int64_t behind = 0, empty = 0;
    int r = pl_load_int(loader, 0, n_of(stage) < 0 ? PL_COUNT_MOST : n_of(stage), &own->n_rounds,
                        reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &behind, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &empty, reterr);
    own->behind = behind;
    own->empty = empty;
    return r == 0 && own->n_rounds > 0 && !own->behind ? open_again(stage, reterr) : r;
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    fprintf(to, "n=%" PRId64, ((const repeat_dataset *)dataset)->n);
}

static const pl_dataset_class repeat_class = {
    .name = "repeat",
    .dataset_bytes = sizeof(repeat_dataset),
    .stage_bytes = sizeof(repeat_stage),
    .open = open_repeat,
    .next = next,
    .save = save,
    .restore = restore,
    .describe = describe,
};

static int64_t cardinality_of(int64_t n_input, int64_t n)
{
    int64_t all;
    if (n == 0 || n_input == 0)
        return 0;
    if (n < 0)
        return PL_CARDINALITY_INFINITE;
    if (n_input < 0)
        return n_input;
    return __builtin_mul_overflow(n_input, n, &all) ? INT64_MAX : all;
}

int pl_dataset_repeat(pl_dataset *input, int64_t n, pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    int r = pl_dataset_make_over(&repeat_class, input, ret_dataset, reterr);
    if (r < 0)
        return r;
    ((repeat_dataset *)*ret_dataset)->n = n < 0 ? -1 : n;
    (*ret_dataset)->cardinality = cardinality_of(input->cardinality, n);
    return 0;
}
