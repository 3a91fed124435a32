/* SPDX-License-Identifier: Apache-2.0 */
/* See walk.h. The signature consists of 4-byte words, and of texts after their lengths. Inputs are
 * written as places, because an expr's inputs come before it. */
#include "program/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "program/lazy_program.h"

enum {
    SIGN_LEAF = 1,
    SIGN_OP,
    SIGN_CALL,
    SIGN_ITEM,
    SIGN_FETCH,
    SIGN_NAMED = 1 << 8,
    SIGN_PLACED = 1 << 9,
    SIGN_STREAM = 1 << 10,
    SIGN_ATTRS = 1 << 11,
};

static uint64_t n_walks; /* the lock */

uint64_t pl_walk_next_number(void)
{
    return ++n_walks;
}

/* ---- room ---- */

static int grow(void **data, size_t item_bytes, size_t n_wanted, size_t *n_most, pl_error *reterr)
{
    size_t n = *n_most ? *n_most : 64;
    while (n < n_wanted)
        n *= 2;
    void *more = realloc(*data, n * item_bytes);
    if (!more)
        return pl_error_set(reterr, -ENOMEM, "out of memory for a program");
    *data = more;
    *n_most = n;
    return 0;
}

int pl_expr_list_add(pl_expr_list *self, pl_expr *node, pl_error *reterr)
{
    if (self->n == self->n_most) {
        size_t n_most = (size_t)self->n_most;
        if (grow((void **)&self->at, sizeof *self->at, (size_t)self->n + 1, &n_most, reterr) < 0)
            return -ENOMEM;
        self->n_most = (int)n_most;
    }
    self->at[self->n++] = node;
    return 0;
}

/* Returns room for the next `n` bytes; NULL without memory. */
static char *room(pl_walk *self, size_t n)
{
    pl_byte_list *list = &self->signature;
    if (list->n + n > list->n_most &&
        grow((void **)&list->data, 1, list->n + n, &list->n_most, self->reterr) < 0)
        return NULL;
    char *to = list->data + list->n;
    list->n += n;
    return to;
}

static int put_word(pl_walk *self, uint32_t word)
{
    char *to = room(self, sizeof word);
    if (!to)
        return -ENOMEM;
    memcpy(to, &word, sizeof word);
    return 0;
}

static int put_bytes(pl_walk *self, const void *data, size_t n)
{
    char *to = room(self, sizeof(uint32_t) + n);
    if (!to)
        return -ENOMEM;
    uint32_t length = (uint32_t)n;
    memcpy(to, &length, sizeof length);
    memcpy(to + sizeof length, data, n);
    return 0;
}

static int put_text(pl_walk *self, const char *text)
{
    return put_bytes(self, text, strlen(text));
}

/* ---- streams and attributes ---- */

static int put_stream(pl_walk *self, const pl_expr *node, uint64_t stream)
{
    if (!self->draws)
        self->first_stream = stream;
    self->draws = true;
    self->draws_eagerly = self->draws_eagerly || node->trace == 0;
    self->draws_in_trace = self->draws_in_trace || node->trace != 0;
    uint64_t distance = stream - self->first_stream;
    return put_bytes(self, &distance, sizeof distance);
}

static int put_attr(pl_walk *self, const pl_attr *attr)
{
    int r = put_bytes(self, attr->name, strlen(attr->name));
    if (r == 0)
        r = put_word(self, (uint32_t)attr->type);
    if (r < 0)
        return -ENOMEM;
    switch (attr->type) {
    case PL_ATTR_SHAPE:
    case PL_ATTR_INTS:
        return put_bytes(self, attr->value.values, (size_t)attr->n * sizeof(int64_t));
    case PL_ATTR_STRING:
        return put_bytes(self, attr->value.text, strlen(attr->value.text));
    case PL_ATTR_DTYPE:
        return put_word(self, attr->value.dtype);
    default:
        return put_bytes(self, &attr->value.i, sizeof attr->value.i);
    }
}

/* Signs an op that draws, all but its stream. */
static int put_other_attrs(pl_walk *self, const pl_attrs *attrs)
{
    int r = put_word(self, attrs ? (uint32_t)attrs->n_attrs : 0);
    for (int i = 0; r == 0 && attrs && i < attrs->n_attrs; i++)
        if (strcmp(attrs->attrs[i].name, "stream") != 0)
            r = put_attr(self, &attrs->attrs[i]);
    return r;
}

/* ---- exprs ---- */

static int put_type(pl_walk *self, const pl_type *type)
{
    size_t n_dims = type->shape.rank > 0 ? (size_t)type->shape.rank : 0;
    char *to = room(self, 2 * sizeof(uint32_t) + n_dims * sizeof(int64_t));
    if (!to)
        return -ENOMEM;
    uint32_t head[2] = {SIGN_LEAF | (uint32_t)type->dtype << 16, (uint32_t)type->shape.rank};
    memcpy(to, head, sizeof head);
    memcpy(to + sizeof head, type->shape.dims, n_dims * sizeof(int64_t));
    return 0;
}

static int add_leaf(pl_walk *self, pl_expr *node, const pl_type *type)
{
    node->walk = self->number;
    node->place = self->leaves.n;
    return put_type(self, type) < 0 ? -ENOMEM : pl_expr_list_add(&self->leaves, node, self->reterr);
}

/* Writes the places of the inputs: the sign distinguishes leaves from inner exprs. */
static int put_inputs(pl_walk *self, const pl_expr *node)
{
    char *to = room(self, (size_t)(node->node.n_inputs + 1) * sizeof(uint32_t));
    if (!to)
        return -ENOMEM;
    memcpy(to, &node->node.n_inputs, sizeof(uint32_t));
    for (int i = 0; i < node->node.n_inputs; i++)
        memcpy(to + (size_t)(i + 1) * sizeof(uint32_t), &pl_expr_at(node, i)->place,
               sizeof(uint32_t));
    return 0;
}

static uint32_t head_of(const pl_expr *node, bool streams)
{
    uint32_t kind = node->kind == PL_EXPR_OP     ? SIGN_OP
                    : node->kind == PL_EXPR_CALL ? SIGN_CALL
                                                 : SIGN_ITEM;
    uint32_t what = node->kind == PL_EXPR_OP ? (uint32_t)node->node.op->id : (uint32_t)node->item;
    uint32_t flags = (node->named ? SIGN_NAMED : 0) | (node->node.device ? SIGN_PLACED : 0);
    flags |= streams ? SIGN_STREAM : node->attrs ? SIGN_ATTRS : 0;
    return kind | flags | what << 16;
}

static int sign(pl_walk *self, const pl_expr *node)
{
    uint64_t stream;
    bool streams = node->has_stream && pl_expr_stream(node, &stream);
    int r = put_word(self, head_of(node, streams));
    if (r == 0)
        r = put_inputs(self, node);
    if (r == 0 && node->kind == PL_EXPR_CALL)
        r = put_bytes(self, &node->routine, sizeof node->routine);
    if (r == 0 && streams)
        r = put_stream(self, node, stream);
    if (r == 0 && streams)
        r = put_other_attrs(self, node->attrs);
    if (r == 0 && node->attrs && !streams)
        r = put_bytes(self, node->attrs->bytes, node->attrs->n_bytes);
    if (r == 0 && node->named)
        r = put_text(self, node->node.name);
    if (r == 0 && node->node.device)
        r = put_text(self, node->node.device);
    return r;
}

static int add_inner(pl_walk *self, pl_expr *node)
{
    if (sign(self, node) < 0)
        return -ENOMEM;
    node->place = ~self->inner.n;
    self->n_calls += node->kind == PL_EXPR_CALL;
    return pl_expr_list_add(&self->inner, node, self->reterr);
}

static int refuse_placeholder(pl_walk *self, const pl_expr *node)
{
    return pl_error_set(
        self->reterr, -EINVAL,
        "You must feed a value for placeholder tensor '%s': it has none where it is needed",
        pl_expr_label(node));
}

static PL_NOINLINE int add_value(pl_walk *self, pl_expr *node)
{
    const pl_type type = pl_expr_type(node);
    return add_leaf(self, node, &type);
}

/* An expr stays on the stack until all of its inputs have places; meanwhile `place` counts them. */
static inline int meet(pl_walk *self, pl_expr *node)
{
    if (pl_walk_has(self, node))
        return 0;
    if (pl_expr_has(node))
        return add_value(self, node);
    if (node->kind == PL_EXPR_GIVEN)
        return refuse_placeholder(self, node);
    node->walk = self->number;
    node->place = 0;
    return pl_expr_list_add(&self->stack, node, self->reterr);
}

int pl_walk_add(pl_walk *self, pl_expr *node)
{
    int r = meet(self, node);
    while (r == 0 && self->stack.n > 0) {
        pl_expr *top = self->stack.at[self->stack.n - 1];
        if (top->place < top->node.n_inputs) {
            r = meet(self, pl_expr_at(top, top->place++));
        } else {
            self->stack.n--;
            r = add_inner(self, top);
        }
    }
    return r;
}

int pl_walk_add_call(pl_walk *self, pl_expr *node)
{
    bool given = pl_walk_has(self, node); /* a fed item */
    return pl_walk_add(self, node->kind == PL_EXPR_ITEM && !given && !pl_expr_has(node)
                                 ? pl_expr_at(node, 0)
                                 : node);
}

int pl_walk_add_instead(pl_walk *self, pl_expr *node, pl_expr *target)
{
    if (pl_walk_has(self, node))
        return 0;
    int r = pl_walk_add(self, target);
    node->walk = self->number;
    node->place = target->place;
    return r;
}

int pl_walk_fetch(pl_walk *self, pl_expr *const *fetches, int n_fetches)
{
    int r = put_word(self, SIGN_FETCH);
    for (int i = 0; r == 0 && i < n_fetches; i++)
        r = put_word(self, (uint32_t)fetches[i]->place);
    return r;
}

int pl_walk_begin(pl_walk *self, pl_expr *const *given, int n_given, const pl_type *types,
                  pl_error *reterr)
{
    pl_exprs_lock();
    *self = (pl_walk){
        .number = pl_walk_next_number(), .n_given = n_given, .types = types, .reterr = reterr};
    int r = put_word(self, (uint32_t)n_given);
    for (int i = 0; r == 0 && i < n_given; i++) {
        const pl_type type = types ? types[i] : pl_expr_type(given[i]);
        r = add_leaf(self, given[i], &type);
    }
    return r;
}

void pl_walk_done(pl_walk *self)
{
    pl_exprs_unlock();
    if (self->dropped)
        pl_lazy_program_let_go(self->dropped);
    free(self->leaves.at);
    free(self->inner.at);
    free(self->stack.at);
    free(self->signature.data);
}
