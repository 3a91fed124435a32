/* SPDX-License-Identifier: Apache-2.0 */
/* See body.h. Nodes are marked by a walk of its own, in which places are links. */
#include "python/program/body.h"

#include <limits.h>

#include "python/convert/types.h"
#include "python/module/streams.h"
#include "python/program/program.h"

/* Marks, while the body is looked for: of a node that is not own. */
enum { OTHER = INT_MIN };

typedef struct looking {
    body *self;
    uint64_t walk;
    node_list stack;
    const PyObject *graph;
} looking;

/* ---- looking ---- */

static bool hangs(const looking *l, const tensor *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i]->walk == l->walk && node->inputs[i]->place != OTHER)
            return true;
    return false;
}

static void count_stream(body *self, const tensor *node)
{
    uint64_t stream;
    if ((node->kind != TENSOR_OP && node->kind != TENSOR_CALL) || !walk_stream(node, &stream))
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

static bool is_of_graph(const looking *l, const tensor *node)
{
    return l->graph && node->graph == l->graph;
}

static bool ends_here(const looking *l, const tensor *node)
{
    if (node->value || node->n_inputs == 0)
        return true;
    return l->graph && node->graph != l->graph && (node->graph || !node->symbolic);
}

static int leave(looking *l, tensor *node)
{
    if (!hangs(l, node) && !(is_of_graph(l, node) && node->kind != TENSOR_GIVEN)) {
        node->place = OTHER;
        return 0;
    }
    node->place = l->self->own.n;
    count_stream(l->self, node);
    return nodes_add(&l->self->own, node);
}

static int meet(looking *l, tensor *node)
{
    if (node->walk == l->walk)
        return 0;
    node->walk = l->walk;
    node->place = 0;
    return ends_here(l, node) ? leave(l, node) : nodes_add(&l->stack, node);
}

static int look(looking *l, tensor *node)
{
    int r = meet(l, node);
    while (r == 0 && l->stack.n > 0) {
        tensor *top = l->stack.at[l->stack.n - 1];
        if (top->place < top->n_inputs) {
            r = meet(l, top->inputs[top->place++]);
        } else {
            l->stack.n--;
            r = leave(l, top);
        }
    }
    return r;
}

/* ---- links ---- */

/* Of what is used and stays. */
static int note_other(body *self, tensor *node)
{
    if (node->value)
        return 0;
    bool outside = node->symbolic || node->graph || node->kind == TENSOR_GIVEN;
    node_list *list = outside ? &self->outside : &self->eager;
    for (int i = 0; i < list->n; i++)
        if (list->at[i] == node)
            return 0;
    return nodes_add(list, node);
}

/* Inputs were marked by -2 and down. */
static int link_to(body *self, tensor *node, int *ret)
{
    if (node->place == OTHER) {
        *ret = -1;
        return note_other(self, node);
    }
    *ret = node->place >= 0 ? node->place : self->own.n + (-2 - node->place);
    return 0;
}

static int make_links(body *self)
{
    size_t n = (size_t)self->n_outputs + 1, at = 0;
    for (int i = 0; i < self->own.n; i++)
        n += (size_t)self->own.at[i]->n_inputs;
    self->links = PyMem_Malloc(n * sizeof *self->links);
    self->first = PyMem_Malloc(((size_t)self->own.n + 1) * sizeof *self->first);
    if (!self->links || !self->first) {
        PyErr_NoMemory();
        return -1;
    }
    int r = 0;
    for (int i = 0; r == 0 && i < self->own.n; i++) {
        self->first[i] = (int)at;
        for (int k = 0; r == 0 && k < self->own.at[i]->n_inputs; k++)
            r = link_to(self, self->own.at[i]->inputs[k], &self->links[at++]);
    }
    self->first[self->own.n] = (int)at;
    for (int i = 0; r == 0 && i < self->n_outputs; i++)
        r = link_to(self, self->outputs[i], &self->links[at++]);
    return r;
}

int body_make(body *self, tensor *const *inputs, int n_inputs, tensor *const *outputs,
              int n_outputs, const PyObject *graph)
{
    *self =
        (body){.inputs = inputs, .n_inputs = n_inputs, .outputs = outputs, .n_outputs = n_outputs};
    looking l = {.self = self, .walk = walk_next_number(), .graph = graph};
    for (int i = 0; i < n_inputs; i++) {
        inputs[i]->walk = l.walk;
        inputs[i]->place = -2 - i;
    }
    int r = 0;
    for (int i = 0; r == 0 && i < n_outputs; i++)
        r = look(&l, outputs[i]);
    PyMem_Free(l.stack.at);
    if (r == 0)
        r = make_links(self);
    if (r < 0)
        body_done(self);
    return r;
}

void body_done(body *self)
{
    PyMem_Free(self->own.at);
    PyMem_Free(self->outside.at);
    PyMem_Free(self->eager.at);
    PyMem_Free(self->links);
    PyMem_Free(self->first);
    *self = (body){0};
}

/* ---- substituting ---- */

typedef struct making {
    const body *body;
    tensor *const *given;
    PyObject **made; /* by own node: a tensor, or the list of a call's items */
    tensor **inputs; /* room for those of one node */
    int n_room;
    uint64_t stream; /* instead of the body's first */
} making;

static tensor *linked(const making *m, int link, tensor *same)
{
    if (link < 0)
        return same;
    return link < m->body->own.n ? (tensor *)m->made[link] : m->given[link - m->body->own.n];
}

static int gather(making *m, const tensor *node, const int *links)
{
    if (node->n_inputs > m->n_room) {
        tensor **more = PyMem_Realloc(m->inputs, (size_t)node->n_inputs * sizeof *more);
        if (!more) {
            PyErr_NoMemory();
            return -1;
        }
        m->inputs = more;
        m->n_room = node->n_inputs;
    }
    for (int i = 0; i < node->n_inputs; i++)
        m->inputs[i] = linked(m, links[i], node->inputs[i]);
    return 0;
}

/* It is where the traced one was, and was made there; what set_shape() said of it is true of it. */
static void inherit(tensor *copy, const tensor *node)
{
    copy->type.shape = types_meet(&copy->type.shape, &node->type.shape);
    if (node->device)
        Py_XSETREF(copy->device, Py_NewRef(node->device));
    if (node->code) {
        Py_XSETREF(copy->code, (PyCodeObject *)Py_NewRef((PyObject *)node->code));
        copy->instruction = node->instruction;
    }
}

static PyObject *copy_call(making *m, const tensor *node, bool draws, uint64_t stream)
{
    PyObject *items = tensor_call(call_ref(node->call), m->inputs, node->n_inputs, NULL);
    if (!items || PyList_GET_SIZE(items) == 0)
        return items;
    tensor *made = ((tensor *)PyList_GET_ITEM(items, 0))->inputs[0];
    inherit(made, node);
    if (draws && streams_give(made, stream) < 0)
        Py_CLEAR(items);
    return items;
}

static PyObject *copy_op(making *m, const tensor *node, bool draws, uint64_t stream)
{
    attributes *attrs =
        draws ? streams_put(node->op, node->attrs, stream) : attributes_ref(node->attrs);
    if (draws && !attrs)
        return NULL;
    tensor *made = tensor_op(node->op, m->inputs, node->n_inputs, attrs, NULL);
    if (made)
        inherit(made, node);
    return (PyObject *)made;
}

static PyObject *copy_item(const making *m, const tensor *node, int link)
{
    tensor *made = (tensor *)PyList_GET_ITEM(m->made[link], node->item);
    made->type.shape = types_meet(&made->type.shape, &node->type.shape);
    return Py_NewRef((PyObject *)made);
}

/* What is made may have had to be shortened, and have computed an eager node on the way. */
static PyObject *refuse_settled(const tensor *node)
{
    PyErr_Format(PyExc_RuntimeError, "'%s' got a value while others were put in its inputs' place",
                 tensor_label(node));
    return NULL;
}

static PyObject *copy(making *m, const tensor *node, const int *links)
{
    if (node->value && !node->graph)
        return refuse_settled(node);
    if (node->value) /* a constant of the trace: elsewhere it is a value like others */
        return (PyObject *)tensor_of_value(pl_tensor_ref(node->value), NULL);
    if (node->kind == TENSOR_ITEM)
        return copy_item(m, node, links[0]);
    uint64_t stream = 0;
    bool draws = walk_stream(node, &stream);
    stream += m->stream - m->body->first_stream;
    if (gather(m, node, links) < 0)
        return NULL;
    return node->kind == TENSOR_CALL ? copy_call(m, node, draws, stream)
                                     : copy_op(m, node, draws, stream);
}

static PyObject *outputs_of(const making *m, const int *links)
{
    const body *of = m->body;
    PyObject *list = PyList_New(of->n_outputs);
    for (int i = 0; list && i < of->n_outputs; i++)
        PyList_SET_ITEM(list, i, Py_NewRef((PyObject *)linked(m, links[i], of->outputs[i])));
    return list;
}

PyObject *body_substitute(const body *self, tensor *const *given)
{
    making m = {.body = self, .given = given};
    m.made = PyMem_Calloc((size_t)self->own.n + 1, sizeof(PyObject *));
    if (!m.made)
        return PyErr_NoMemory();
    m.stream = self->n_streams > 0 ? streams_take(self->n_streams) : 0;
    bool well = true;
    for (int i = 0; well && i < self->own.n; i++) {
        m.made[i] = copy(&m, self->own.at[i], self->links + self->first[i]);
        well = m.made[i] != NULL;
    }
    PyObject *list = well ? outputs_of(&m, self->links + self->first[self->own.n]) : NULL;
    for (int i = 0; i < self->own.n; i++)
        Py_XDECREF(m.made[i]);
    PyMem_Free(m.made);
    PyMem_Free(m.inputs);
    return list;
}
