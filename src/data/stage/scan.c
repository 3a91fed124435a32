/* SPDX-License-Identifier: Apache-2.0 */
/* Carries a state from element to element: a function makes the next state from the previous one
 * and an element, and for scan also a new element. reduce yields only the last state.
 *
 * An element for which the function fails is bad, and the state stays as it was. */
#include <errno.h>
#include <string.h>

#include "data/core/function.h"
#include "data/persist/state.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

typedef struct scan_dataset {
    pl_dataset base;
    pl_bound_function *function;
    pl_dataset *state; /* has the specs of states */
    pl_element first;
} scan_dataset;

typedef struct scan_stage {
    pl_stage base;
    pl_element state;
    pl_element starved; /* the function had no room for it */
    bool done;          /* of reduce: its element was given out */
} scan_stage;

/* Only describes: no pass goes over it. */
static const pl_dataset_class state_class = {.name = "state", .dataset_bytes = sizeof(pl_dataset)};

static const scan_dataset *dataset_of(const pl_stage *stage)
{
    return (const scan_dataset *)stage->dataset;
}

static void free_scan(pl_dataset *dataset)
{
    scan_dataset *own = (scan_dataset *)dataset;
    pl_bound_function_unref(own->function);
    pl_dataset_unref(own->state);
    pl_element_clear(&own->first);
}

static int open_scan(pl_stage *stage, pl_error *reterr)
{
    int r = pl_element_share(&dataset_of(stage)->first, &((scan_stage *)stage)->state);
    return r < 0 ? pl_error_set(reterr, r, "out of memory for a state") : 0;
}

static void close_scan(pl_stage *stage)
{
    pl_element_clear(&((scan_stage *)stage)->state);
    pl_element_clear(&((scan_stage *)stage)->starved);
}

/* ---- one step ---- */

static void share_items(pl_item *to, const pl_item *from, int n)
{
    for (int i = 0; i < n; i++) {
        to[i] = from[i];
        if (to[i].tensor)
            pl_tensor_ref(to[i].tensor);
        if (to[i].dataset)
            pl_dataset_ref(to[i].dataset);
    }
}

static void move_items(pl_item *to, pl_item *from, int n)
{
    memcpy(to, from, (size_t)n * sizeof *to);
    memset(from, 0, (size_t)n * sizeof *from);
}

/* State and element, one behind the other. */
static int call(pl_stage *stage, const pl_element *element, pl_element *ret_made, pl_error *reterr)
{
    const pl_element *state = &((scan_stage *)stage)->state;
    pl_element given;
    int r = pl_element_init(&given, state->n + element->n);
    if (r < 0)
        return pl_pass_fail(stage->pass, r, reterr, "out of memory for an element");
    share_items(pl_element_items(&given), pl_element_peek(state), state->n);
    share_items(pl_element_items(&given) + state->n, pl_element_peek(element), element->n);
    r = pl_bound_function_run(dataset_of(stage)->function, stage, &given, ret_made, reterr);
    pl_element_clear(&given);
    if (r < 0)
        return r;
    const pl_item *made = pl_element_peek(ret_made);
    for (int i = 0; r > 0 && i < state->n; i++) {
        int bad = pl_spec_check(&dataset_of(stage)->state->spec[i], &made[i], i, reterr);
        r = bad < 0 ? bad : r;
    }
    return r;
}

/* Takes the new state out of what the function made, and leaves the rest. */
static int split(pl_stage *stage, pl_element *made, pl_element *ret_rest)
{
    pl_element *state = &((scan_stage *)stage)->state;
    int n = state->n;
    pl_element rest;
    int r = pl_element_init(&rest, made->n - n);
    if (r < 0)
        return r;
    for (int i = 0; i < n; i++)
        pl_item_clear(&pl_element_items(state)[i]);
    move_items(pl_element_items(state), pl_element_items(made), n);
    move_items(pl_element_items(&rest), pl_element_items(made) + n, made->n - n);
    pl_element_clear(made);
    *ret_rest = rest;
    return 0;
}

/* 1 and what the function made beside the state; else as next(). */
static int step(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    scan_stage *own = (scan_stage *)stage;
    pl_element element = own->starved, made = {0}, rest;
    own->starved = (pl_element){0};
    int r = element.n > 0 ? 1 : pl_stage_next(stage->inputs[0], &element, reterr);
    if (r <= 0)
        return r;
    r = call(stage, &element, &made, reterr);
    if (r > 0 && split(stage, &made, &rest) < 0)
        r = pl_pass_fail(stage->pass, -ENOMEM, reterr, "out of memory for an element");
    pl_element_clear(&made);
    if (pl_pass_later(stage->pass, r)) {
        own->starved = element;
        return PL_RETRY_ALONE;
    }
    if (r == PL_REPORTED)
        pl_stage_dropped(stage, &element);
    if (r < 0)
        return r == PL_REPORTED ? r : pl_stage_spoil(stage, &element, ret_element, r);
    rest.n_items = 0;
    pl_element_pass_on(&element, &rest);
    pl_element_clear(&element);
    *ret_element = rest;
    return 1;
}

static int next_reduced(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    scan_stage *own = (scan_stage *)stage;
    int r = own->done ? 0 : 1;
    while (r > 0) {
        pl_element nothing = {0};
        r = step(stage, &nothing, reterr);
        if (r > 0)
            pl_stage_dropped(stage, &nothing);
        else
            *ret_element = nothing; /* of a bad one: what it was read from */
    }
    if (r < 0 || own->done)
        return r;
    own->done = true;
    r = pl_element_share(&own->state, ret_element);
    return r < 0 ? pl_pass_fail(stage->pass, r, reterr, "out of memory for an element") : 1;
}

/* ---- state ---- */

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    const scan_stage *own = (const scan_stage *)stage;
    int r = pl_save_int(saver, own->done, reterr);
    if (r == 0)
        r = pl_save_waiting(saver, &own->starved, reterr);
    return r < 0 ? r : pl_save_element(saver, &own->state, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    scan_stage *own = (scan_stage *)stage;
    int64_t done = 0;
    pl_element state = {0};
    int r = pl_load_int(loader, 0, 1, &done, reterr);
    if (r == 0)
        r = pl_load_waiting(loader, stage->dataset->inputs[0], &own->starved, reterr);
    if (r == 0)
        r = pl_load_element(loader, dataset_of(stage)->state, &state, reterr);
    if (r < 0)
        return r;
    own->done = done;
    pl_element_clear(&own->state);
    own->state = state;
    return 0;
}

static const pl_dataset_class scan_class = {
    .name = "scan",
    .dataset_bytes = sizeof(scan_dataset),
    .stage_bytes = sizeof(scan_stage),
    .free = free_scan,
    .open = open_scan,
    .next = step,
    .close = close_scan,
    .save = save,
    .restore = restore,
};

static const pl_dataset_class reduce_class = {
    .name = "reduce",
    .dataset_bytes = sizeof(scan_dataset),
    .stage_bytes = sizeof(scan_stage),
    .free = free_scan,
    .open = open_scan,
    .next = next_reduced,
    .close = close_scan,
    .save = save,
    .restore = restore,
    .of_all = true,
};

/* ---- making ---- */

/* Specs of the first state, as far as the function's output agrees. */
static int set_state(scan_dataset *own, pl_tensor *const *initial, int n, pl_error *reterr)
{
    int r = pl_dataset_make(&state_class, own->base.runtime, NULL, 0, n, &own->state, reterr);
    if (r == 0)
        r = pl_element_init(&own->first, n);
    for (int i = 0; r == 0 && i < n; i++) {
        pl_element_items(&own->first)[i].tensor = pl_tensor_ref(initial[i]);
        const pl_spec *later = pl_bound_function_spec(own->function, i);
        pl_spec *spec = &own->state->spec[i];
        *spec = (pl_spec){.dtype = initial[i]->dtype, .shape = initial[i]->shape};
        if (later->dtype != spec->dtype)
            r = pl_error_set(reterr, -EINVAL, "%s: state %d is %s, and then %s",
                             own->base.class->name, i, pl_dtype_info_of(spec->dtype)->name,
                             later->dtype ? pl_dtype_info_of(later->dtype)->name : "a dataset");
        if (later->shape.rank != spec->shape.rank)
            spec->shape.rank = PL_RANK_UNKNOWN;
        for (int k = 0; k < spec->shape.rank; k++)
            if (later->shape.dims[k] != spec->shape.dims[k])
                spec->shape.dims[k] = PL_UNKNOWN;
    }
    return r;
}

static int copy_specs(pl_dataset *dataset, const scan_dataset *own, int n_skipped)
{
    for (int i = 0; i < dataset->n_components; i++)
        if (pl_spec_copy(&dataset->spec[i], pl_bound_function_spec(own->function, i + n_skipped)) <
            0)
            return -ENOMEM;
    return 0;
}

/* The function's inputs: states, then components. */
static int bind_function(pl_dataset *input, pl_tensor *const *initial, int n_state,
                         const pl_function *function, const char *what,
                         pl_bound_function **ret_function, pl_error *reterr)
{
    enum { MOST = 256 };
    pl_spec specs[MOST];
    int n = n_state + input->n_components;
    if (n_state < 1 || n > MOST) {
        if (function->release)
            function->release(function->context);
        return pl_error_set(reterr, -EINVAL,
                            "%s: a state of %d tensors, and elements of %d: at least 1, and %d "
                            "together at most",
                            what, n_state, input->n_components, MOST);
    }
    for (int i = 0; i < n_state; i++) /* a later one may have another shape */
        specs[i] = (pl_spec){.dtype = initial[i]->dtype, .shape = initial[i]->shape};
    memcpy(&specs[n_state], input->spec, (size_t)input->n_components * sizeof specs[0]);
    return pl_bound_function_new(function, specs, n, what, ret_function, reterr);
}

static int make(const pl_dataset_class *class, pl_dataset *input, pl_tensor *const *initial,
                int n_state, const pl_function *function, pl_dataset **ret_dataset,
                pl_error *reterr)
{
    bool reduces = class == &reduce_class;
    pl_bound_function *bound;
    int r = bind_function(input, initial, n_state, function, class->name, &bound, reterr);
    if (r < 0)
        return r;
    int n_more = pl_bound_function_n_outputs(bound) - n_state;
    pl_dataset *dataset = NULL;
    if (reduces ? n_more != 0 : n_more < 1)
        r = pl_error_set(reterr, -EINVAL,
                         "%s: the function has %d outputs: %d are the next state, %s", class->name,
                         n_more + n_state, n_state, reduces ? "no more" : "and an element follows");
    if (r == 0)
        r = pl_dataset_make(class, input->runtime, &input, 1, reduces ? n_state : n_more, &dataset,
                            reterr);
    if (r < 0) {
        pl_bound_function_unref(bound);
        return r;
    }
    scan_dataset *own = (scan_dataset *)dataset;
    own->function = bound;
    r = set_state(own, initial, n_state, reterr);
    if (r == 0 && copy_specs(dataset, own, reduces ? 0 : n_state) < 0)
        r = pl_error_set(reterr, -ENOMEM, "out of memory for a dataset");
    if (r < 0) {
        pl_dataset_unref(dataset);
        return r;
    }
    dataset->cardinality = reduces ? 1 : input->cardinality;
    *ret_dataset = dataset;
    return 0;
}

int pl_dataset_scan(pl_dataset *input, pl_tensor *const *initial, int n_state,
                    const pl_function *function, pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(function, reterr);
    PL_NOT_NULL_OR_RELEASE(function, input, reterr);
    for (int i = 0; i < n_state; i++)
        PL_NOT_NULL_OR_RELEASE(function, initial ? initial[i] : NULL, reterr);
    PL_NOT_NULL_OR_RELEASE(function, ret_dataset, reterr);
    return make(&scan_class, input, initial, n_state, function, ret_dataset, reterr);
}

int pl_dataset_reduction(pl_dataset *input, pl_tensor *const *initial, int n_state,
                         const pl_function *function, pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(function, reterr);
    PL_NOT_NULL_OR_RELEASE(function, input, reterr);
    for (int i = 0; i < n_state; i++)
        PL_NOT_NULL_OR_RELEASE(function, initial ? initial[i] : NULL, reterr);
    PL_NOT_NULL_OR_RELEASE(function, ret_dataset, reterr);
    return make(&reduce_class, input, initial, n_state, function, ret_dataset, reterr);
}

int pl_dataset_reduce(pl_dataset *input, pl_tensor *const *initial, int n_state,
                      const pl_function *function, pl_value *ret_values, pl_error *reterr)
{
    PL_NOT_NULL(function, reterr);
    PL_NOT_NULL_OR_RELEASE(function, input, reterr);
    for (int i = 0; i < n_state; i++)
        PL_NOT_NULL_OR_RELEASE(function, initial ? initial[i] : NULL, reterr);
    PL_NOT_NULL_OR_RELEASE(function, ret_values, reterr);
    pl_dataset *dataset;
    pl_iterator *iterator = NULL;
    int r = pl_dataset_reduction(input, initial, n_state, function, &dataset, reterr);
    if (r < 0)
        return r;
    r = pl_iterator_new(dataset, &iterator, reterr);
    pl_dataset_unref(dataset);
    if (r == 0)
        r = pl_iterator_next(iterator, ret_values, reterr);
    pl_iterator_free(iterator);
    return r < 0 ? r : 0;
}
