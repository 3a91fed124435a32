/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluations: a program, and the values that it starts from. See plimsoll/program.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "program/lazy_program.h"
#include "program/types.h"

/* Held exprs are computed along while they take at most this share of the free budget. Results
 * below HELD_BYTES are computed without asking the budget. */
enum { HELD_SHARE = 8 };
#define HELD_BYTES ((uint64_t)1 << 20)

/* Smaller results are not worth a look at the budget. */
#define CHECKED_BYTES ((uint64_t)1 << 20)

struct pl_evaluation {
    pl_evaluator *evaluator; /* a reference */
    pl_expr_list fetches;    /* references; of pending exprs, first those that were asked for */
    int n_asked;
    bool settles;       /* pending fetches get their values */
    bool keeps;         /* so do pending fetches of no trace, because nothing was fed */
    bool eager;         /* exprs of no trace draw */
    pl_tensor **leaves; /* references */
    int n_leaves;
    uint64_t stream;
    pl_lazy_program *program;
    pl_expr_list draws;  /* references */
    pl_expr_rest *rests; /* settled exprs no longer need these; pl_evaluation_free() drops them */
    int n_rests;
};

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "out of memory for an evaluation");
}

/* ---- life ---- */

static void unref_all(pl_expr_list *list)
{
    for (int i = 0; i < list->n; i++)
        pl_expr_unref(list->at[i]);
    free(list->at);
    *list = (pl_expr_list){0};
}

static void drop_leaves(pl_evaluation *self)
{
    for (int i = 0; i < self->n_leaves; i++)
        pl_tensor_unref(self->leaves[i]);
    free(self->leaves);
    self->leaves = NULL;
    self->n_leaves = 0;
}

void pl_evaluation_free(pl_evaluation *self)
{
    if (!self)
        return;
    drop_leaves(self);
    unref_all(&self->fetches);
    unref_all(&self->draws);
    for (int i = 0; i < self->n_rests; i++)
        pl_expr_rest_drop(&self->rests[i]);
    free(self->rests);
    pl_lazy_program_unref(self->program);
    pl_evaluator_unref(self->evaluator);
    free(self);
}

static pl_evaluation *evaluation_new(pl_evaluator *evaluator)
{
    pl_evaluation *self = calloc(1, sizeof *self);
    if (self)
        self->evaluator = pl_evaluator_ref(evaluator);
    return self;
}

pl_expr *const *pl_evaluation_draws(const pl_evaluation *self, int *ret_n)
{
    PL_NULL_GIVES(self, NULL);
    PL_NULL_GIVES(ret_n, NULL);
    *ret_n = self->draws.n;
    return self->draws.at;
}

bool pl_evaluation_is_impure(const pl_evaluation *self)
{
    PL_NULL_GIVES(self, false);
    return self->program && pl_lazy_program_is_impure(self->program);
}

/* ---- results that do not fit in the budget ---- */

static int check_size(const pl_evaluator *evaluator, pl_expr *const *fetches, int n_fetches,
                      const char *const *npy_paths, pl_error *reterr)
{
    uint64_t bytes = 0, largest = 0;
    const pl_expr *worst = NULL;
    for (int i = 0; i < n_fetches; i++) {
        if (pl_expr_has(fetches[i]) || (npy_paths && npy_paths[i]))
            continue;
        const pl_type type = pl_expr_made_type(fetches[i]);
        uint64_t more = pl_type_bytes(&type);
        bytes = pl_add_sat_u64(bytes, more);
        worst = more > largest ? fetches[i] : worst;
        largest = pl_max_u64(more, largest);
    }
    uint64_t left = bytes <= CHECKED_BYTES ? UINT64_MAX
                                           : pl_runtime_left_bytes(pl_evaluator_runtime(evaluator));
    if (bytes <= left)
        return 0;
    return pl_error_set(reterr, PL_EBUDGET,
                        "'%s' needs %s (%s in total), but only %s of the budget is free: give it "
                        "more",
                        pl_expr_label(worst), PL_SIZE(largest), PL_SIZE(bytes), PL_SIZE(left));
}

/* ---- pending exprs ---- */

static bool is_held(const pl_expr *expr)
{
    return atomic_load_explicit(&((pl_expr *)expr)->owner, memory_order_relaxed) &&
           expr->trace == 0 && pl_expr_is_pending(expr);
}

/* `fetched` is indexed by the place of inner exprs. */
static int fetch_asked(pl_evaluation *self, bool *fetched, pl_expr *const *asked, int n_asked,
                       pl_error *reterr)
{
    int r = 0;
    for (int i = 0; r == 0 && i < n_asked; i++) {
        if (!pl_expr_is_pending(asked[i]) || fetched[~asked[i]->place])
            continue;
        fetched[~asked[i]->place] = true;
        r = pl_expr_list_add(&self->fetches, asked[i], reterr);
    }
    return r;
}

/* Unknown sizes are those of files and records, which are made whole anyway. Returns 1 and fetches
 * none of the held exprs if they take more than `most_bytes`. */
static int fetch_held(pl_evaluation *self, const pl_walk *w, const bool *fetched,
                      uint64_t most_bytes, pl_error *reterr)
{
    int n_before = self->fetches.n;
    uint64_t n_bytes = 0;
    for (int i = 0; i < w->inner.n; i++) {
        pl_expr *expr = w->inner.at[i];
        if (fetched[i] || !is_held(expr))
            continue;
        const pl_type type = pl_expr_made_type(expr);
        n_bytes = pl_add_sat_u64(n_bytes, pl_type_bytes(&type));
        int r = pl_expr_list_add(&self->fetches, expr, reterr);
        if (r < 0)
            return r;
    }
    if (n_bytes <= most_bytes)
        return 0;
    self->fetches.n = n_before;
    return 1;
}

static int find_fetches(pl_evaluation *self, pl_walk *w, pl_expr *const *asked, int n_asked,
                        uint64_t held_bytes, pl_error *reterr)
{
    int r = 0;
    for (int i = 0; r == 0 && i < n_asked; i++)
        if (pl_expr_is_pending(asked[i]) || asked[i]->kind == PL_EXPR_GIVEN)
            r = pl_walk_add(w, asked[i]);
    if (r < 0)
        return r;
    bool *fetched = calloc((size_t)w->inner.n + 1, sizeof *fetched);
    if (!fetched)
        return no_memory(reterr);
    r = fetch_asked(self, fetched, asked, n_asked, reterr);
    self->n_asked = self->fetches.n;
    if (r == 0 && held_bytes > 0)
        r = fetch_held(self, w, fetched, held_bytes, reterr);
    free(fetched);
    return r;
}

/* Appends the values of the leaves that the walk met to those that were given. */
static int take_leaves(pl_evaluation *self, const pl_walk *w, pl_error *reterr)
{
    self->leaves = malloc(((size_t)w->leaves.n + 1) * sizeof(pl_tensor *));
    if (!self->leaves)
        return no_memory(reterr);
    self->n_leaves = w->leaves.n;
    for (int i = 0; i < w->leaves.n; i++)
        self->leaves[i] = i < w->n_given ? NULL : pl_tensor_ref(pl_expr_has(w->leaves.at[i]));
    for (int i = 0; i < self->fetches.n; i++)
        pl_expr_ref(self->fetches.at[i]);
    return 0;
}

/* Returns 1 if held exprs take more than `held_bytes`; 0 means that no held expr is wanted. */
static int prepare(pl_evaluation *self, pl_expr *const *asked, int n_asked, uint64_t held_bytes,
                   pl_error *reterr)
{
    pl_walk w;
    int r = pl_walk_begin(&w, NULL, 0, NULL, reterr);
    if (r == 0)
        r = find_fetches(self, &w, asked, n_asked, held_bytes, reterr);
    if (r == 0)
        r = pl_walk_fetch(&w, self->fetches.at, self->fetches.n);
    if (r == 0 && self->fetches.n > 0)
        r = pl_evaluator_program(self->evaluator, &w, self->fetches.at, self->fetches.n,
                                 &self->program);
    if (r == 0 && self->program)
        r = take_leaves(self, &w, reterr);
    if (!self->leaves)
        self->fetches.n = 0; /* they are not referenced */
    self->stream = w.first_stream;
    pl_walk_done(&w);
    return r;
}

/* An expr that equals an existing value shares it: a variable's first value may be as large as the
 * budget, or spilled. */
static void settle_same(pl_expr *const *asked, int n_asked)
{
    for (int i = 0; i < n_asked; i++) {
        pl_expr *expr = asked[i];
        if (expr->kind != PL_EXPR_OP || expr->node.op->id != PL_OP_identity || expr->trace != 0 ||
            expr->node.device)
            continue;
        pl_exprs_lock();
        const pl_expr *input = pl_expr_has(expr) ? NULL : pl_expr_at(expr, 0);
        pl_tensor *value = input ? pl_expr_has(input) : NULL;
        if (value)
            pl_tensor_ref(value);
        pl_exprs_unlock();
        if (value)
            pl_expr_settle(expr, value);
        pl_tensor_unref(value);
    }
}

static int prepare_with_held(pl_evaluation *self, pl_expr *const *asked, int n_asked,
                             pl_error *reterr)
{
    int r = prepare(self, asked, n_asked, HELD_BYTES, reterr);
    if (r <= 0)
        return r;
    uint64_t most = pl_runtime_left_bytes(pl_evaluator_runtime(self->evaluator)) / HELD_SHARE;
    r = most > HELD_BYTES ? prepare(self, asked, n_asked, most, reterr) : 1;
    return r > 0 ? prepare(self, asked, n_asked, 0, reterr) : r;
}

int pl_evaluation_of_pending(pl_evaluator *evaluator, pl_expr *const *exprs, int n_exprs,
                             pl_evaluation **ret_evaluation, pl_error *reterr)
{
    PL_NOT_NULL(evaluator, reterr);
    PL_NOT_NULL(ret_evaluation, reterr);
    PL_NOT_NULLS(exprs, n_exprs, reterr);
    settle_same(exprs, n_exprs);
    int r = check_size(evaluator, exprs, n_exprs, NULL, reterr);
    if (r < 0)
        return pl_evaluator_advise(evaluator, r, reterr);
    pl_evaluation *self = evaluation_new(evaluator);
    if (!self)
        return no_memory(reterr);
    self->settles = true;
    r = prepare_with_held(self, exprs, n_exprs, reterr);
    if (r < 0 || !self->program)
        pl_evaluation_free(PL_TAKE(self));
    if (r == 0)
        *ret_evaluation = self;
    return r;
}

/* ---- evaluations of any exprs ---- */

static bool is_eager_draw(const pl_expr *expr)
{
    uint64_t stream;
    const pl_expr *drawing = expr->kind == PL_EXPR_ITEM ? pl_expr_at(expr, 0) : expr;
    return expr->trace == 0 && !expr->symbolic && expr->kind != PL_EXPR_CALL &&
           pl_expr_stream(drawing, &stream);
}

static int find_draws(pl_evaluation *self, const pl_walk *walk)
{
    int r = 0;
    for (int i = 0; r == 0 && i < walk->inner.n; i++)
        if (is_eager_draw(walk->inner.at[i])) {
            r = pl_expr_list_add(&self->draws, walk->inner.at[i], walk->reterr);
            if (r == 0)
                pl_expr_ref(walk->inner.at[i]);
        }
    return r < 0 ? r : 1;
}

/* The leaves that were given, with their types. Behind the exprs there is room for the types. */
typedef struct given {
    pl_expr **exprs;
    pl_type *types;
} given;

static int given_init(given *self, const pl_evaluation_request *of, pl_error *reterr)
{
    size_t n = (size_t)of->n_feeds + 1;
    self->exprs = malloc(n * sizeof *self->exprs);
    self->types = malloc(n * sizeof *self->types);
    if (!self->exprs || !self->types)
        return no_memory(reterr);
    for (int i = 0; i < of->n_feeds; i++) {
        pl_tensor *value = of->feeds[i].value;
        self->exprs[i] = of->feeds[i].expr;
        self->types[i] = (pl_type){pl_tensor_dtype(value), *pl_tensor_shape(value)};
    }
    return 0;
}

static void given_done(given *self)
{
    free(self->exprs);
    free(self->types);
}

static int walk_all(pl_walk *walk, const pl_evaluation_request *of)
{
    int r = 0;
    for (int i = 0; r == 0 && i < of->n_first; i++)
        r = of->first[i].target ? pl_walk_add_instead(walk, of->first[i].expr, of->first[i].target)
                                : pl_walk_add_call(walk, of->first[i].expr);
    for (int i = 0; r == 0 && i < of->n_fetches; i++)
        r = pl_walk_add(walk, of->fetches[i]);
    return r == 0 ? pl_walk_fetch(walk, of->fetches, of->n_fetches) : r;
}

static int take_fetches(pl_evaluation *self, const pl_walk *walk, const pl_evaluation_request *of)
{
    int r = 0;
    for (int i = 0; r == 0 && i < of->n_fetches; i++)
        r = pl_expr_list_add(&self->fetches, of->fetches[i], walk->reterr);
    if (r == 0)
        r = take_leaves(self, walk, walk->reterr);
    if (r < 0)
        self->fetches.n = 0; /* they are not referenced */
    for (int i = 0; r == 0 && i < of->n_feeds; i++)
        self->leaves[i] = pl_tensor_ref(of->feeds[i].value);
    return r;
}

static int prepare_request(pl_evaluation *self, const pl_evaluation_request *of,
                           const given *leaves, pl_error *reterr)
{
    pl_walk w;
    int r = pl_walk_begin(&w, leaves->exprs, of->n_feeds, of->n_feeds > 0 ? leaves->types : NULL,
                          reterr);
    if (r == 0)
        r = walk_all(&w, of);
    if (r == 0 && w.draws_eagerly && w.draws_in_trace)
        r = find_draws(self, &w);
    if (r == 0)
        r = pl_evaluator_program(self->evaluator, &w, of->fetches, of->n_fetches, &self->program);
    if (r == 0)
        r = take_fetches(self, &w, of);
    self->stream = w.first_stream;
    self->eager = w.draws_eagerly;
    self->keeps = of->n_feeds == 0;
    pl_walk_done(&w);
    return r;
}

static int check_request(const pl_evaluation_request *of, pl_error *reterr)
{
    PL_NOT_NULLS(of->fetches, of->n_fetches, reterr);
    PL_NOT_NULL_IF(of->n_feeds > 0, of->feeds, reterr);
    PL_NOT_NULL_IF(of->n_first > 0, of->first, reterr);
    for (int i = 0; i < of->n_feeds; i++) {
        PL_NOT_NULL(of->feeds[i].expr, reterr);
        PL_NOT_NULL(of->feeds[i].value, reterr);
        const pl_type type = pl_expr_type(of->feeds[i].expr);
        if (type.dtype != pl_tensor_dtype(of->feeds[i].value) ||
            !pl_shapes_agree(&type.shape, pl_tensor_shape(of->feeds[i].value)))
            return pl_error_set(reterr, -EINVAL,
                                "'%s' is fed a value of another dtype or shape than it has",
                                pl_expr_label(of->feeds[i].expr));
        for (int k = 0; k < i; k++)
            if (of->feeds[k].expr == of->feeds[i].expr)
                return pl_error_set(reterr, -EINVAL, "'%s' is fed twice",
                                    pl_expr_label(of->feeds[i].expr));
    }
    return 0;
}

int pl_evaluation_new(pl_evaluator *evaluator, const pl_evaluation_request *request,
                      pl_evaluation **ret_evaluation, pl_error *reterr)
{
    PL_NOT_NULL(evaluator, reterr);
    PL_NOT_NULL(request, reterr);
    PL_NOT_NULL(ret_evaluation, reterr);
    PL_TAKE_OPTIONS(pl_evaluation_request, request, n_first, reterr);
    int r = check_request(request, reterr);
    if (r < 0)
        return r;
    given leaves;
    pl_evaluation *self = evaluation_new(evaluator);
    r = given_init(&leaves, request, reterr);
    if (r == 0)
        r = self ? prepare_request(self, request, &leaves, reterr) : no_memory(reterr);
    given_done(&leaves);
    if (r < 0)
        pl_evaluation_free(self);
    else
        *ret_evaluation = self;
    return r;
}

/* ---- running ---- */

/* Room for the references that the fetches drop. */
static int make_rests(pl_evaluation *self, pl_error *reterr)
{
    if (!self->rests)
        self->rests = malloc(((size_t)self->fetches.n + 1) * sizeof *self->rests);
    return self->rests ? 0 : no_memory(reterr);
}

/* Settles an expr, unless another thread has done so. Takes over the reference. */
static void settle(pl_evaluation *self, pl_expr *expr, pl_tensor *value)
{
    pl_exprs_lock();
    pl_expr_settle_locked(expr, value, &self->rests[self->n_rests++]);
    pl_exprs_unlock();
}

static int run_and_settle(pl_evaluation *self, const pl_run_options *options, pl_error *reterr)
{
    pl_tensor **values = calloc((size_t)self->fetches.n + 1, sizeof *values);
    int r = values ? make_rests(self, reterr) : no_memory(reterr);
    if (r == 0)
        r = pl_lazy_program_run(self->program, self->evaluator, self->leaves, NULL, options, values,
                                reterr);
    for (int i = 0; r == 0 && i < self->fetches.n; i++)
        settle(self, self->fetches.at[i], values[i]);
    free(values);
    return r;
}

/* Drops the held exprs, with which the run may not fit. */
static int forget_held(pl_evaluation *self, pl_error *reterr)
{
    pl_expr_list before = self->fetches;
    int n_asked = self->n_asked;
    self->fetches = (pl_expr_list){0};
    drop_leaves(self);
    free(PL_TAKE(self->rests)); /* nothing was settled */
    pl_lazy_program_unref(PL_TAKE(self->program));
    int r = prepare(self, before.at, n_asked, 0, reterr);
    unref_all(&before);
    return r;
}

static int run_pending(pl_evaluation *self, const pl_run_options *options, pl_error *reterr)
{
    pl_run_options own = *options;
    own.random_stream += self->stream;
    if (self->n_rests > 0) /* it was run before */
        return 0;
    int r = run_and_settle(self, &own, reterr);
    if (r != PL_EBUDGET || self->fetches.n == self->n_asked)
        return r;
    r = forget_held(self, reterr);
    own.random_stream = options->random_stream + self->stream;
    return r == 0 && self->program ? run_and_settle(self, &own, reterr) : r;
}

static int run_request(pl_evaluation *self, const char *const *npy_paths,
                       const pl_run_options *options, pl_tensor **ret_tensors, pl_error *reterr)
{
    pl_run_options own = *options;
    own.random_stream = self->stream + (self->eager ? 0 : options->random_stream);
    int r = check_size(self->evaluator, self->fetches.at, self->fetches.n, npy_paths, reterr);
    if (r == 0 && self->keeps && self->n_rests == 0)
        r = make_rests(self, reterr);
    if (r == 0)
        r = pl_lazy_program_run(self->program, self->evaluator, self->leaves, npy_paths, &own,
                                ret_tensors, reterr);
    for (int i = 0; r == 0 && self->keeps && i < self->fetches.n; i++) {
        pl_expr *expr = self->fetches.at[i];
        if (ret_tensors[i] && expr->trace == 0 && !expr->symbolic && pl_expr_is_pending(expr) &&
            self->n_rests < self->fetches.n)
            settle(self, expr, pl_tensor_ref(ret_tensors[i]));
    }
    return r;
}

int pl_evaluation_run(pl_evaluation *self, const char *const *npy_paths,
                      const pl_run_options *options, pl_tensor **ret_tensors, pl_error *reterr)
{
    PL_NOT_NULL(self, reterr);
    PL_NOT_NULL_IF(!self->settles && self->fetches.n > 0, ret_tensors, reterr);
    static const pl_run_options none = {0};
    if (!options)
        options = &none;
    PL_TAKE_OPTIONS(pl_run_options, options, random_stream, reterr);
    own_options.size = sizeof own_options;
    if (!self->program)
        return pl_error_set(reterr, -EINVAL, "the evaluation has draws to be evaluated first");
    int r = self->settles ? run_pending(self, options, reterr)
                          : run_request(self, npy_paths, options, ret_tensors, reterr);
    return pl_evaluator_advise(self->evaluator, r, reterr);
}

int pl_evaluation_explain(pl_evaluation *self, const pl_run_options *options, bool as_json,
                          char **ret_text, pl_run_cost *ret_cost, pl_error *reterr)
{
    PL_NOT_NULL(self, reterr);
    PL_NOT_NULL(ret_text, reterr);
    PL_NOT_NULL(ret_cost, reterr);
    PL_TAKE_OPTIONS(pl_run_options, options, random_stream, reterr);
    if (!self->program)
        return pl_error_set(reterr, -EINVAL, "the evaluation has draws to be evaluated first");
    return pl_lazy_program_explain(self->program, pl_evaluator_runtime(self->evaluator),
                                   self->leaves, options, as_json, ret_text, ret_cost, reterr);
}

int pl_evaluate(pl_evaluator *evaluator, pl_expr *const *exprs, int n_exprs,
                const pl_run_options *options, pl_error *reterr)
{
    pl_evaluation *evaluation = NULL;
    int r = pl_evaluation_of_pending(evaluator, exprs, n_exprs, &evaluation, reterr);
    if (r == 0 && evaluation)
        r = pl_evaluation_run(evaluation, NULL, options, NULL, reterr);
    pl_evaluation_free(evaluation);
    return r;
}
