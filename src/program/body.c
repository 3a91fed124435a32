/* SPDX-License-Identifier: Apache-2.0 */
/* See body.h. This walk marks exprs by itself: an expr's place is its link. */
#include "program/body.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "program/types.h"

/* Mark of an expr that is not own, while the body is collected. */
enum { OTHER = INT_MIN };

typedef struct looking {
    pl_body *self;
    uint64_t walk;
    pl_expr_list stack;
    uint64_t trace;
    pl_error *reterr;
} looking;

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "out of memory for a function");
}

/* ---- looking ---- */

static bool depends(const looking *l, const pl_expr *expr)
{
    for (int i = 0; i < expr->node.n_inputs; i++) {
        const pl_expr *input = pl_expr_at(expr, i);
        if (input->walk == l->walk && input->place != OTHER)
            return true;
    }
    return false;
}

static void count_stream(pl_body *self, const pl_expr *expr)
{
    uint64_t stream;
    if (!pl_expr_stream(expr, &stream))
        return;
    if (self->n_streams == 0) {
        self->first_stream = stream;
        self->n_streams = 1;
    } else if (stream < self->first_stream) {
        self->n_streams += self->first_stream - stream;
        self->first_stream = stream;
    } else if (stream - self->first_stream >= self->n_streams) {
        self->n_streams = stream - self->first_stream + 1;
    }
}

static bool is_of_trace(const looking *l, const pl_expr *expr)
{
    return l->trace != 0 && expr->trace == l->trace;
}

static bool ends_here(const looking *l, const pl_expr *expr)
{
    if (pl_expr_has(expr) || expr->node.n_inputs == 0)
        return true;
    return l->trace != 0 && expr->trace != l->trace && (expr->trace != 0 || !expr->symbolic);
}

static int leave(looking *l, pl_expr *expr)
{
    if (!depends(l, expr) && !(is_of_trace(l, expr) && expr->kind != PL_EXPR_GIVEN)) {
        expr->place = OTHER;
        return 0;
    }
    expr->place = l->self->own.n;
    count_stream(l->self, expr);
    return pl_expr_list_add(&l->self->own, expr, l->reterr);
}

static int meet(looking *l, pl_expr *expr)
{
    if (expr->walk == l->walk)
        return 0;
    expr->walk = l->walk;
    expr->place = 0;
    return ends_here(l, expr) ? leave(l, expr) : pl_expr_list_add(&l->stack, expr, l->reterr);
}

static int look(looking *l, pl_expr *expr)
{
    int r = meet(l, expr);
    while (r == 0 && l->stack.n > 0) {
        pl_expr *top = l->stack.at[l->stack.n - 1];
        if (top->place < top->node.n_inputs) {
            r = meet(l, pl_expr_at(top, top->place++));
        } else {
            l->stack.n--;
            r = leave(l, top);
        }
    }
    return r;
}

/* ---- links ---- */

/* Lists an expr that is used but not copied, as outside or eager. */
static int note_other(const looking *l, pl_expr *expr)
{
    if (pl_expr_has(expr))
        return 0;
    bool outside = expr->symbolic || expr->trace != 0 || expr->kind == PL_EXPR_GIVEN;
    pl_expr_list *list = outside ? &l->self->outside : &l->self->eager;
    for (int i = 0; i < list->n; i++)
        if (list->at[i] == expr)
            return 0;
    return pl_expr_list_add(list, expr, l->reterr);
}

/* Inputs have marks of -2 and below. */
static int link_to(const looking *l, pl_expr *expr, int *ret)
{
    if (expr->place == OTHER) {
        *ret = -1;
        return note_other(l, expr);
    }
    *ret = expr->place >= 0 ? expr->place : l->self->own.n + (-2 - expr->place);
    return 0;
}

static int make_links(const looking *l)
{
    pl_body *self = l->self;
    size_t n = (size_t)self->n_outputs + 1, at = 0;
    for (int i = 0; i < self->own.n; i++)
        n += (size_t)self->own.at[i]->node.n_inputs;
    self->links = malloc(n * sizeof *self->links);
    self->first = malloc(((size_t)self->own.n + 1) * sizeof *self->first);
    if (!self->links || !self->first)
        return no_memory(l->reterr);
    int r = 0;
    for (int i = 0; r == 0 && i < self->own.n; i++) {
        self->first[i] = (int)at;
        for (int k = 0; r == 0 && k < self->own.at[i]->node.n_inputs; k++)
            r = link_to(l, pl_expr_at(self->own.at[i], k), &self->links[at++]);
    }
    self->first[self->own.n] = (int)at;
    for (int i = 0; r == 0 && i < self->n_outputs; i++)
        r = link_to(l, self->outputs[i], &self->links[at++]);
    return r;
}

int pl_body_init(pl_body *self, pl_expr *const *inputs, int n_inputs, pl_expr *const *outputs,
                 int n_outputs, uint64_t trace, pl_error *reterr)
{
    *self = (pl_body){
        .inputs = inputs, .n_inputs = n_inputs, .outputs = outputs, .n_outputs = n_outputs};
    pl_exprs_lock();
    looking l = {.self = self, .walk = pl_walk_next_number(), .trace = trace, .reterr = reterr};
    for (int i = 0; i < n_inputs; i++) {
        inputs[i]->walk = l.walk;
        inputs[i]->place = -2 - i;
    }
    int r = 0;
    for (int i = 0; r == 0 && i < n_outputs; i++)
        r = look(&l, outputs[i]);
    if (r == 0)
        r = make_links(&l);
    pl_exprs_unlock();
    free(l.stack.at);
    if (r < 0)
        pl_body_done(self);
    return r;
}

void pl_body_done(pl_body *self)
{
    free(self->own.at);
    free(self->outside.at);
    free(self->eager.at);
    free(self->links);
    free(self->first);
    *self = (pl_body){0};
}

/* ---- substituting ----
 * No other thread settles own exprs meanwhile: they depend on placeholders or belong to a trace.
 * Inputs can be any exprs, though, and may be settled; then the copy is refused. */

/* The copy of an own expr, or of a call's items. */
typedef struct copy {
    pl_expr *expr;
    pl_expr **items;
    int n_items;
} copy;

typedef struct making {
    const pl_body *body;
    pl_expr *const *given;
    copy *made;       /* by own expr */
    pl_expr **inputs; /* room for the items of one expr */
    int n_room;
    uint64_t stream; /* replace the body's first */
    const pl_traced_copied *copied;
    pl_error *reterr;
} making;

static pl_expr *linked(const making *m, int link, pl_expr *same)
{
    if (link < 0)
        return same;
    int n_own = m->body->own.n;
    return link < n_own ? m->made[link].expr : m->given[link - n_own];
}

static int gather(making *m, const pl_expr *expr, const int *links)
{
    int n = expr->node.n_inputs;
    if (n > m->n_room) {
        pl_expr **more = realloc(m->inputs, (size_t)n * sizeof *more);
        if (!more)
            return no_memory(m->reterr);
        m->inputs = more;
        m->n_room = n;
    }
    for (int i = 0; i < n; i++)
        m->inputs[i] = linked(m, links[i], pl_expr_at(expr, i));
    return 0;
}

/* The copy is used where the original was, so what is known of the original's shape holds for
 * it. */
static int inherit(const making *m, pl_expr *made, const pl_expr *of)
{
    int r = of->node.device ? pl_expr_set_device(made, of->node.device, m->reterr) : 0;
    if (of->narrowed && pl_shapes_agree(&made->node.shape, &of->node.shape)) {
        pl_shape shape = of->node.shape;
        r = r == 0 ? pl_expr_narrow(made, &shape, m->reterr) : r;
    }
    if (r == 0 && m->copied && m->copied->made)
        r = m->copied->made(m->copied->context, made, of, m->reterr);
    return r;
}

static int copy_call(making *m, const pl_expr *of, uint64_t stream, copy *to)
{
    int n = of->routine->n_outputs;
    to->items = calloc((size_t)n + 1, sizeof *to->items);
    if (!to->items)
        return no_memory(m->reterr);
    int r = pl_expr_call(pl_routine_ref(of->routine), m->inputs, of->node.n_inputs, stream,
                         to->items, m->reterr);
    if (r < 0)
        return r;
    to->n_items = n;
    for (int i = 0; r == 0 && i < n; i++)
        r = inherit(m, to->items[i], of);
    return r;
}

static int copy_op(making *m, const pl_expr *of, uint64_t stream, copy *to)
{
    int op = (int)of->node.op->id, r = 0;
    pl_attrs *attrs = NULL;
    if (of->has_stream)
        r = pl_attrs_with_stream(op, of->attrs, stream, &attrs, m->reterr);
    else
        attrs = pl_attrs_ref(of->attrs);
    if (r == 0)
        r = pl_expr_op_packed(op, NULL, m->inputs, of->node.n_inputs, attrs, &to->expr, m->reterr);
    return r == 0 ? inherit(m, to->expr, of) : r;
}

/* The item that was made with the call's copy. */
static int copy_item(const making *m, const pl_expr *of, int link, copy *to)
{
    to->expr = pl_expr_ref(m->made[link].items[of->item]);
    if (of->narrowed && pl_shapes_agree(&to->expr->node.shape, &of->node.shape))
        return pl_expr_narrow(to->expr, &of->node.shape, m->reterr);
    return 0;
}

static int copy_one(making *m, const pl_expr *of, const int *links, copy *to)
{
    pl_tensor *value = pl_expr_has(of);
    if (value && of->trace == 0)
        return pl_error_set(m->reterr, -EBUSY,
                            "'%s' got a value while others were put in its inputs' place",
                            pl_expr_label(of));
    if (value) /* a constant of the trace: elsewhere it is an ordinary value */
        return pl_expr_of_value(value, &to->expr, m->reterr);
    if (of->kind == PL_EXPR_ITEM)
        return copy_item(m, of, links[0], to);
    uint64_t stream = 0;
    (void)pl_expr_stream(of, &stream);
    stream += m->stream - m->body->first_stream;
    int r = gather(m, of, links);
    if (r < 0)
        return r;
    return of->kind == PL_EXPR_CALL ? copy_call(m, of, stream, to) : copy_op(m, of, stream, to);
}

static void drop_copies(const making *m)
{
    for (int i = 0; i < m->body->own.n; i++) {
        pl_expr_unref(m->made[i].expr);
        for (int k = 0; k < m->made[i].n_items; k++)
            pl_expr_unref(m->made[i].items[k]);
        free(m->made[i].items);
    }
    free(m->made);
    free(m->inputs);
}

int pl_body_substitute(const pl_body *self, pl_expr *const *given, uint64_t first_stream,
                       const pl_traced_copied *copied, pl_expr **ret_outputs, pl_error *reterr)
{
    making m = {.body = self,
                .given = given,
                .made = calloc((size_t)self->own.n + 1, sizeof(copy)),
                .stream = first_stream,
                .copied = copied,
                .reterr = reterr};
    if (!m.made)
        return no_memory(reterr);
    int r = 0;
    for (int i = 0; r == 0 && i < self->own.n; i++)
        r = copy_one(&m, self->own.at[i], self->links + self->first[i], &m.made[i]);
    const int *links = self->links + self->first[self->own.n];
    for (int i = 0; r == 0 && i < self->n_outputs; i++)
        ret_outputs[i] = pl_expr_ref(linked(&m, links[i], self->outputs[i]));
    drop_copies(&m);
    return r;
}
