/* SPDX-License-Identifier: Apache-2.0 */
/* Getters and setters of exprs. Call the setters before the expr is shared. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "program/expr.h"
#include "program/types.h"

/* ---- getters ---- */

pl_type pl_expr_type(const pl_expr *self)
{
    PL_NULL_GIVES(self, (pl_type){0});
    const pl_tensor *value = self->known ? NULL : pl_expr_has(self);
    return value ? (pl_type){pl_tensor_dtype(value), *pl_tensor_shape(value)}
                 : pl_expr_made_type(self);
}

pl_dtype pl_expr_dtype(const pl_expr *self)
{
    PL_NULL_GIVES(self, PL_DTYPE_NONE);
    return self->node.dtype;
}

pl_tensor *pl_expr_value(const pl_expr *self)
{
    PL_NULL_GIVES(self, NULL);
    return pl_expr_has(self);
}

bool pl_expr_is_placeholder(const pl_expr *self)
{
    PL_NULL_GIVES(self, false);
    return self->kind == PL_EXPR_GIVEN;
}

bool pl_expr_is_pending(const pl_expr *self)
{
    PL_NULL_GIVES(self, false);
    return (self->kind == PL_EXPR_OP || self->kind == PL_EXPR_ITEM) && !pl_expr_has(self);
}

bool pl_expr_is_symbolic(const pl_expr *self)
{
    PL_NULL_GIVES(self, false);
    return self->symbolic;
}

uint64_t pl_expr_trace(const pl_expr *self)
{
    PL_NULL_GIVES(self, 0);
    return self->trace;
}

const char *pl_expr_label(const pl_expr *self)
{
    PL_NULL_GIVES(self, "");
    return self->node.name;
}

const char *pl_expr_name(const pl_expr *self)
{
    PL_NULL_GIVES(self, NULL);
    return self->named ? self->node.name : NULL;
}

static pl_expr *call_of(const pl_expr *self)
{
    return self->kind == PL_EXPR_ITEM && self->node.n_inputs > 0 ? pl_expr_at(self, 0) : NULL;
}

const char *pl_expr_op_name(const pl_expr *self)
{
    PL_NULL_GIVES(self, NULL);
    const char *name = "constant";
    pl_exprs_lock();
    const pl_expr *call = call_of(self);
    if (self->kind == PL_EXPR_GIVEN)
        name = "placeholder";
    else if (!pl_expr_has(self))
        name = self->kind == PL_EXPR_OP ? self->node.op->name : call->routine->name;
    pl_exprs_unlock();
    return name;
}

int pl_expr_item(const pl_expr *self)
{
    PL_NULL_GIVES(self, 0);
    return self->item;
}

const char *pl_expr_device(const pl_expr *self)
{
    PL_NULL_GIVES(self, NULL);
    return self->node.device;
}

pl_expr *pl_expr_input(const pl_expr *self, int i)
{
    PL_NULL_GIVES(self, NULL);
    pl_exprs_lock();
    const pl_expr *call = call_of(self);
    const pl_expr *of = call ? call : self;
    pl_expr *input = i >= 0 && i < of->node.n_inputs ? pl_expr_ref(pl_expr_at(of, i)) : NULL;
    pl_exprs_unlock();
    return input;
}

uint32_t pl_expr_depth(const pl_expr *self)
{
    PL_NULL_GIVES(self, 0);
    return pl_expr_has(self) ? 0 : self->depth;
}

void *pl_expr_site(const pl_expr *self, int64_t *ret_at)
{
    PL_NULL_GIVES(self, NULL);
    if (ret_at)
        *ret_at = self->site_at;
    return self->site;
}

void *pl_expr_owner(const pl_expr *self)
{
    PL_NULL_GIVES(self, NULL);
    return atomic_load_explicit(&((pl_expr *)self)->owner, memory_order_relaxed);
}

/* ---- setters ---- */

static int set_text(const char **place, const char *text, bool is_ours, pl_error *reterr)
{
    char *copy = strdup(text);
    if (!copy)
        return pl_error_set(reterr, -ENOMEM, "'%.120s': out of memory for a name", text);
    if (is_ours)
        free((char *)*place);
    *place = copy;
    return 0;
}

int pl_expr_set_name(pl_expr *self, const char *name, pl_error *reterr)
{
    PL_NOT_NULL(self, reterr);
    PL_NOT_NULL(name, reterr);
    int r = set_text(&self->node.name, name, self->named, reterr);
    if (r < 0)
        return r;
    self->named = true;
    pl_expr *call = call_of(self);
    return call ? pl_expr_set_name(call, name, reterr) : 0;
}

int pl_expr_set_device(pl_expr *self, const char *device, pl_error *reterr)
{
    PL_NOT_NULL(self, reterr);
    PL_NOT_NULL(device, reterr);
    int r = set_text(&self->node.device, device, true, reterr);
    pl_expr *call = call_of(self);
    return r == 0 && call ? pl_expr_set_device(call, device, reterr) : r;
}

void pl_expr_set_trace(pl_expr *self, uint64_t trace)
{
    PL_NULL_DOES_NOTHING(self);
    self->trace = trace;
    pl_expr *call = call_of(self);
    if (call)
        call->trace = trace;
}

int pl_expr_narrow(pl_expr *self, const pl_shape *shape, pl_error *reterr)
{
    PL_NOT_NULL(self, reterr);
    PL_NOT_NULL(shape, reterr);
    const pl_type type = pl_expr_type(self);
    if (!pl_shapes_agree(&type.shape, shape))
        return pl_error_set(reterr, -EINVAL, "'%.120s': the shape is not compatible with its own",
                            pl_expr_label(self));
    self->node.shape = pl_shapes_meet(&self->node.shape, shape);
    self->narrowed = true;
    const pl_type now = pl_expr_made_type(self);
    self->known = pl_type_is_known(&now);
    return 0;
}

void pl_expr_set_site(pl_expr *self, void *source, int64_t at, void (*release)(void *source))
{
    PL_NULL_DOES_NOTHING(self);
    if (self->site && self->release_site)
        self->release_site(self->site);
    self->site = source;
    self->site_at = at;
    self->release_site = release;
}

void pl_expr_set_owner(pl_expr *self, void *owner)
{
    PL_NULL_DOES_NOTHING(self);
    atomic_store_explicit(&self->owner, owner, memory_order_relaxed);
}

uint64_t pl_trace_next(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}
