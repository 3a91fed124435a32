/* SPDX-License-Identifier: Apache-2.0 */
/* See walk.h. The signature is made of words of 4 bytes, and texts behind their lengths. Before a
 * node are those that it uses, so its inputs are told by their places. */
#include "python/program/walk.h"

#include <errno.h>
#include <string.h>

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

static uint64_t n_walks;

uint64_t walk_next_number(void)
{
    return ++n_walks;
}

/* ---- room ---- */

static int grow(void **data, size_t item_bytes, size_t n_wanted, size_t *n_most)
{
    size_t n = *n_most ? *n_most : 64;
    while (n < n_wanted)
        n *= 2;
    void *more = PyMem_Realloc(*data, n * item_bytes);
    if (!more) {
        PyErr_NoMemory();
        return -1;
    }
    *data = more;
    *n_most = n;
    return 0;
}

int nodes_add(node_list *self, tensor *node)
{
    if (self->n == self->n_most) {
        size_t n_most = (size_t)self->n_most;
        if (grow((void **)&self->at, sizeof *self->at, (size_t)self->n + 1, &n_most) < 0)
            return -1;
        self->n_most = (int)n_most;
    }
    self->at[self->n++] = node;
    return 0;
}

/* Where the next `n` bytes are to be written; NULL with MemoryError. */
static char *room(byte_list *self, size_t n)
{
    if (self->n + n > self->n_most && grow((void **)&self->data, 1, self->n + n, &self->n_most) < 0)
        return NULL;
    char *to = self->data + self->n;
    self->n += n;
    return to;
}

static int put_word(node_walk *self, uint32_t word)
{
    char *to = room(&self->signature, sizeof word);
    if (!to)
        return -1;
    memcpy(to, &word, sizeof word);
    return 0;
}

static int put_bytes(node_walk *self, const void *data, size_t n)
{
    char *to = room(&self->signature, sizeof(uint32_t) + n);
    if (!to)
        return -1;
    uint32_t length = (uint32_t)n;
    memcpy(to, &length, sizeof length);
    memcpy(to + sizeof length, data, n);
    return 0;
}

static int put_text(node_walk *self, PyObject *text)
{
    Py_ssize_t n;
    const char *data = PyUnicode_AsUTF8AndSize(text, &n);
    return data ? put_bytes(self, data, (size_t)n) : -1;
}

/* ---- streams ---- */

static const pl_attr *stream_of(const tensor *node)
{
    for (int i = 0; node->attrs && i < node->attrs->n_attrs; i++)
        if (strcmp(node->attrs->attrs[i].name, "stream") == 0)
            return &node->attrs->attrs[i];
    return NULL;
}

/* One byte for each op: does it draw? Found out once. */
static bool op_draws(int op)
{
    static char known[1024];
    if (op < 0 || op >= (int)sizeof known)
        return pl_op_attr_find(op, "stream") >= 0;
    if (!known[op])
        known[op] = pl_op_attr_find(op, "stream") >= 0 ? 1 : 2;
    return known[op] == 1;
}

bool walk_stream(const tensor *node, uint64_t *ret_stream)
{
    if (node->kind == TENSOR_CALL ? !node->call->class->draws : !op_draws(node->op))
        return false;
    const pl_attr *attr = stream_of(node);
    *ret_stream = attr ? (uint64_t)attr->value.i : 0;
    return true;
}

static int put_stream(node_walk *self, const tensor *node, uint64_t stream)
{
    if (!self->draws)
        self->first_stream = stream;
    self->draws = true;
    self->draws_eagerly = self->draws_eagerly || !node->graph;
    self->draws_in_graph = self->draws_in_graph || node->graph;
    uint64_t distance = stream - self->first_stream;
    return put_bytes(self, &distance, sizeof distance);
}

static int put_attr(node_walk *self, const pl_attr *attr)
{
    int r = put_bytes(self, attr->name, strlen(attr->name));
    if (r == 0)
        r = put_word(self, (uint32_t)attr->type);
    if (r < 0)
        return -1;
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

/* Of an op that draws, all but its stream. */
static int put_other_attrs(node_walk *self, const attributes *attrs)
{
    int r = put_word(self, attrs ? (uint32_t)attrs->n_attrs : 0);
    for (int i = 0; r == 0 && attrs && i < attrs->n_attrs; i++)
        if (strcmp(attrs->attrs[i].name, "stream") != 0)
            r = put_attr(self, &attrs->attrs[i]);
    return r;
}

/* ---- nodes ---- */

static int put_type(node_walk *self, const pl_type *type)
{
    size_t n_dims = type->shape.rank > 0 ? (size_t)type->shape.rank : 0;
    char *to = room(&self->signature, 2 * sizeof(uint32_t) + n_dims * sizeof(int64_t));
    if (!to)
        return -1;
    uint32_t head[2] = {SIGN_LEAF | (uint32_t)type->dtype << 16, (uint32_t)type->shape.rank};
    memcpy(to, head, sizeof head);
    memcpy(to + sizeof head, type->shape.dims, n_dims * sizeof(int64_t));
    return 0;
}

static int add_leaf(node_walk *self, tensor *node, const pl_type *type)
{
    node->walk = self->number;
    node->place = self->leaves.n;
    return put_type(self, type) < 0 ? -1 : nodes_add(&self->leaves, node);
}

/* Inputs by their places: those of leaves and of inner nodes are told apart by the sign. */
static int put_inputs(node_walk *self, const tensor *node)
{
    char *to = room(&self->signature, (size_t)(node->n_inputs + 1) * sizeof(uint32_t));
    if (!to)
        return -1;
    memcpy(to, &node->n_inputs, sizeof(uint32_t));
    for (int i = 0; i < node->n_inputs; i++)
        memcpy(to + (size_t)(i + 1) * sizeof(uint32_t), &node->inputs[i]->place, sizeof(uint32_t));
    return 0;
}

static uint32_t head_of(const tensor *node, bool streams)
{
    uint32_t kind = node->kind == TENSOR_OP     ? SIGN_OP
                    : node->kind == TENSOR_CALL ? SIGN_CALL
                                                : SIGN_ITEM;
    uint32_t what = node->kind == TENSOR_OP ? (uint32_t)node->op : (uint32_t)node->item;
    uint32_t flags = (node->name ? SIGN_NAMED : 0) | (node->device ? SIGN_PLACED : 0);
    flags |= streams ? SIGN_STREAM : node->attrs ? SIGN_ATTRS : 0;
    return kind | flags | what << 16;
}

static int sign(node_walk *self, const tensor *node)
{
    uint64_t stream;
    bool streams = node->kind != TENSOR_ITEM && walk_stream(node, &stream);
    int r = put_word(self, head_of(node, streams));
    if (r == 0)
        r = put_inputs(self, node);
    if (r == 0 && node->kind == TENSOR_CALL)
        r = put_bytes(self, &node->call, sizeof node->call);
    if (r == 0 && streams)
        r = put_stream(self, node, stream);
    if (r == 0 && streams)
        r = put_other_attrs(self, node->attrs);
    if (r == 0 && node->attrs && !streams)
        r = put_bytes(self, node->attrs->bytes, node->attrs->n_bytes);
    if (r == 0 && node->name)
        r = put_text(self, node->name);
    if (r == 0 && node->device)
        r = put_text(self, node->device);
    return r;
}

static int add_inner(node_walk *self, tensor *node)
{
    if (sign(self, node) < 0)
        return -1;
    node->place = ~self->inner.n;
    self->n_calls += node->kind == TENSOR_CALL;
    return nodes_add(&self->inner, node);
}

static int refuse_placeholder(node_walk *self, const tensor *node)
{
    pl_error_set(
        &self->error, -EINVAL,
        "You must feed a value for placeholder tensor '%s': it has none where it is needed",
        tensor_label(node));
    return -1;
}

/* A node is on the stack until all of its inputs have places: `place` counts them meanwhile. */
static int meet(node_walk *self, tensor *node)
{
    if (walk_has(self, node))
        return 0;
    if (node->value)
        return add_leaf(self, node, &node->type);
    if (node->kind == TENSOR_GIVEN)
        return refuse_placeholder(self, node);
    node->walk = self->number;
    node->place = 0;
    return nodes_add(&self->stack, node);
}

int walk_add(node_walk *self, tensor *node)
{
    int r = meet(self, node);
    while (r == 0 && self->stack.n > 0) {
        tensor *top = self->stack.at[self->stack.n - 1];
        if (top->place < top->n_inputs) {
            r = meet(self, top->inputs[top->place++]);
        } else {
            self->stack.n--;
            r = add_inner(self, top);
        }
    }
    return r;
}

int walk_add_call(node_walk *self, tensor *node)
{
    bool given = walk_has(self, node); /* an item that is fed */
    return walk_add(self, node->kind == TENSOR_ITEM && !given ? node->inputs[0] : node);
}

int walk_add_instead(node_walk *self, tensor *node, tensor *target)
{
    if (walk_has(self, node))
        return 0;
    int r = walk_add(self, target);
    node->walk = self->number;
    node->place = target->place;
    return r;
}

int walk_fetch(node_walk *self, tensor *const *fetches, int n_fetches)
{
    int r = put_word(self, SIGN_FETCH);
    for (int i = 0; r == 0 && i < n_fetches; i++)
        r = put_word(self, (uint32_t)fetches[i]->place);
    return r;
}

int walk_begin(node_walk *self, tensor *const *given, int n_given, const pl_type *types)
{
    *self = (node_walk){.number = walk_next_number(), .n_given = n_given, .types = types};
    int r = put_word(self, (uint32_t)n_given);
    for (int i = 0; r == 0 && i < n_given; i++)
        r = add_leaf(self, given[i], types ? &types[i] : &given[i]->type);
    return r;
}

void walk_done(node_walk *self)
{
    PyMem_Free(self->leaves.at);
    PyMem_Free(self->inner.at);
    PyMem_Free(self->stack.at);
    PyMem_Free(self->signature.data);
}
