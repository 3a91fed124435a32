/* SPDX-License-Identifier: Apache-2.0 */
/* The life of exprs: making, settling and freeing them. See expr.h. */
#include "program/expr.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "graph/infer.h"
#include "program/types.h"

/* ---- the lock ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void pl_exprs_lock(void)
{
    pthread_mutex_lock(&lock);
}

void pl_exprs_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* The child of a fork finds the lock free and the data under it consistent. */
__attribute__((constructor)) static void watch_forks(void)
{
    (void)pthread_atfork(pl_exprs_lock, pl_exprs_unlock, pl_exprs_unlock);
}

/* ---- memory ----
 * Exprs come and go by the thousand, so each thread keeps some that it freed. */

enum { SPARE_MAX = 512 };

/* Initial-exec, like the guard's: the general model costs a call at each access. */
static _Thread_local struct {
    pl_expr *spare;
    int n_spare;
    bool has_key;
    bool freeing;
    pl_expr *doomed;
} mine __attribute__((tls_model("initial-exec")));

static pthread_key_t key; /* its destructor frees a thread's spare exprs */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool keeps; /* set by `once` */

static void free_spare(void *unused)
{
    (void)unused;
    while (mine.spare) {
        pl_expr *self = mine.spare;
        mine.spare = self->next;
        free(self);
    }
    mine.n_spare = SPARE_MAX; /* the thread is ending: it keeps no more exprs */
}

static void make_key(void)
{
    keeps = pthread_key_create(&key, free_spare) == 0;
}

static bool keep(pl_expr *self)
{
    if (mine.n_spare >= SPARE_MAX)
        return false;
    if (!mine.has_key) {
        pthread_once(&once, make_key);
        if (!keeps || pthread_setspecific(key, &mine) != 0)
            return false;
        mine.has_key = true;
    }
    self->next = mine.spare;
    mine.spare = self;
    mine.n_spare++;
    return true;
}

static pl_expr *expr_new(pl_expr_kind kind, const char *label)
{
    pl_expr *self = mine.spare;
    if (self) {
        mine.spare = self->next;
        mine.n_spare--;
    } else {
        self = malloc(sizeof *self);
        if (!self)
            return NULL;
    }
    memset(self, 0, sizeof *self);
    self->n_refs = 1;
    self->kind = kind;
    self->node.name = label;
    self->node.inputs = self->few;
    return self;
}

static int no_memory(const char *label, pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "%.120s: out of memory for an expression", label);
}

/* ---- inputs ---- */

static int set_inputs(pl_expr *self, pl_expr *const *inputs, int n_inputs)
{
    pl_node **to = self->few;
    if (n_inputs > (int)PL_COUNT_OF(self->few)) {
        to = malloc((size_t)n_inputs * sizeof(pl_node *));
        if (!to)
            return -ENOMEM;
        self->node.inputs = to;
    }
    uint32_t depth = 0;
    for (int i = 0; i < n_inputs; i++) {
        atomic_fetch_add_explicit(&inputs[i]->n_refs, 1, memory_order_relaxed);
        to[i] = &inputs[i]->node;
        self->symbolic |= inputs[i]->symbolic;
        if (depth < inputs[i]->depth)
            depth = pl_expr_has(inputs[i]) ? depth : inputs[i]->depth;
    }
    self->node.n_inputs = n_inputs;
    self->depth = depth + 1;
    return 0;
}

/* The holder of the only reference needs no atomic exchange to see that it is the last. */
static inline bool unref_was_last(pl_expr *self)
{
    return atomic_load_explicit(&self->n_refs, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(&self->n_refs, 1, memory_order_acq_rel) == 1;
}

static inline void doom(pl_expr *self)
{
    self->next = mine.doomed;
    mine.doomed = self;
}

/* ---- freeing ----
 * Freeing an expr may free its inputs, and theirs, thousands deep. They wait in a list, so that the
 * stack does not grow. */

static void end(pl_expr *self)
{
    pl_tensor *value = pl_expr_has(self);
    if (value)
        pl_tensor_unref(value);
    for (int i = 0; i < self->node.n_inputs; i++)
        if (unref_was_last(pl_expr_at(self, i)))
            doom(pl_expr_at(self, i));
    if (self->node.inputs != self->few)
        free((void *)self->node.inputs);
    if (self->attrs)
        pl_attrs_unref(self->attrs);
    if (self->routine)
        pl_routine_unref(self->routine);
    if (self->named)
        free((char *)self->node.name);
    if (self->node.device)
        free((char *)self->node.device);
    if (self->site && self->release_site)
        self->release_site(self->site);
    if (!keep(self))
        free(self);
}

pl_expr *pl_expr_ref(pl_expr *self)
{
    PL_NULL_GIVES(self, NULL);
    atomic_fetch_add_explicit(&self->n_refs, 1, memory_order_relaxed);
    return self;
}

void pl_expr_unref(pl_expr *self)
{
    if (!self || !unref_was_last(self))
        return;
    doom(self);
    if (mine.freeing)
        return;
    mine.freeing = true;
    while ((self = mine.doomed)) {
        mine.doomed = self->next;
        end(self);
    }
    mine.freeing = false;
}

/* ---- values ---- */

int pl_expr_of_value(pl_tensor *value, pl_expr **ret_expr, pl_error *reterr)
{
    PL_NOT_NULL(value, reterr);
    PL_NOT_NULL(ret_expr, reterr);
    pl_expr *self = expr_new(PL_EXPR_VALUE, "value");
    if (!self)
        return no_memory("value", reterr);
    self->node.dtype = pl_tensor_dtype(value);
    self->node.shape = *pl_tensor_shape(value);
    self->known = true;
    atomic_init(&self->value, pl_tensor_ref(value));
    *ret_expr = self;
    return 0;
}

int pl_expr_placeholder(const char *name, const pl_type *type, pl_expr **ret_expr, pl_error *reterr)
{
    PL_NOT_NULL(type, reterr);
    PL_NOT_NULL(ret_expr, reterr);
    pl_expr *self = expr_new(PL_EXPR_GIVEN, "placeholder");
    if (!self)
        return no_memory("placeholder", reterr);
    self->node.dtype = type->dtype;
    self->node.shape = type->shape;
    self->known = pl_type_is_known(type);
    self->symbolic = true;
    int r = name ? pl_expr_set_name(self, name, reterr) : 0;
    if (r < 0)
        pl_expr_unref(self);
    else
        *ret_expr = self;
    return r;
}

void pl_expr_settle_locked(pl_expr *self, pl_tensor *value, pl_expr_rest *rest)
{
    *rest = (pl_expr_rest){0};
    if (pl_expr_has(self)) {
        rest->value = value;
        return;
    }
    memcpy(rest->few, self->few, sizeof rest->few);
    rest->inputs = self->node.inputs == self->few ? NULL : (pl_node **)self->node.inputs;
    rest->n_inputs = self->node.n_inputs;
    rest->attrs = self->attrs;
    self->node.inputs = self->few;
    self->node.n_inputs = 0;
    self->attrs = NULL;
    atomic_store_explicit(&self->value, value, memory_order_release);
}

void pl_expr_rest_drop(pl_expr_rest *rest)
{
    pl_node *const *inputs = rest->inputs ? rest->inputs : rest->few;
    for (int i = 0; i < rest->n_inputs; i++)
        pl_expr_unref((pl_expr *)inputs[i]);
    free(rest->inputs);
    pl_attrs_unref(rest->attrs);
    pl_tensor_unref(rest->value);
}

void pl_expr_settle(pl_expr *self, pl_tensor *value)
{
    PL_NULL_DOES_NOTHING(self);
    PL_NULL_DOES_NOTHING(value);
    pl_expr_rest rest;
    pl_tensor_ref(value);
    pl_exprs_lock();
    pl_expr_settle_locked(self, value, &rest);
    pl_exprs_unlock();
    pl_expr_rest_drop(&rest);
}

/* ---- ops ---- */

static int infer_from(pl_expr *self, pl_infer *in, const pl_attrs *attrs, pl_error *reterr)
{
    pl_attr values[PL_ATTRS_MAX];
    bool known = true;
    int r = pl_infer_count(in->op, in->name, in->n_inputs, reterr);
    if (r == 0)
        r = pl_attrs_resolve(in->op, in->name, attrs ? attrs->attrs : NULL,
                             attrs ? attrs->n_attrs : 0, values, reterr);
    if (r < 0)
        return r;
    for (int i = 0; known && i < in->n_inputs; i++)
        known = in->inputs[i]->shape.rank >= 0;
    in->attrs = values;
    r = known ? pl_infer_run(in, reterr) : pl_infer_open(in, reterr);
    if (r < 0)
        return r;
    self->node.dtype = in->dtype;
    self->node.shape = in->shape;
    const pl_type type = {in->dtype, in->shape};
    self->known = pl_type_is_known(&type);
    return 0;
}

/* Infers with the types of the inputs' values, which are known in full even if the inputs' own
 * types were not. */
static int infer_with_values(pl_expr *self, pl_infer *in, const pl_attrs *attrs, pl_error *reterr)
{
    size_t n = (size_t)in->n_inputs;
    pl_node *nodes = malloc(n * (sizeof *nodes + sizeof(pl_node *)));
    if (!nodes)
        return no_memory(in->name, reterr);
    pl_node **at = (pl_node **)(nodes + n);
    for (size_t i = 0; i < n; i++) {
        const pl_type type = pl_expr_type((const pl_expr *)in->inputs[i]);
        nodes[i] = (pl_node){.name = in->inputs[i]->name, .dtype = type.dtype, .shape = type.shape};
        at[i] = &nodes[i];
    }
    in->inputs = at;
    int r = infer_from(self, in, attrs, reterr);
    free(nodes);
    return r;
}

static int infer(pl_expr *self, const char *name, const pl_attrs *attrs, pl_error *reterr)
{
    pl_infer in = {.op = self->node.op,
                   .name = name ? name : self->node.name,
                   .inputs = self->node.inputs,
                   .n_inputs = self->node.n_inputs};
    for (int i = 0; i < in.n_inputs; i++) {
        const pl_expr *input = pl_expr_at(self, i);
        if (!input->known && pl_expr_has(input))
            return infer_with_values(self, &in, attrs, reterr);
    }
    return infer_from(self, &in, attrs, reterr);
}

/* For each op, whether it draws random numbers. Computed once. */
static bool op_draws(const pl_op *op)
{
    static _Atomic char known[PL_N_OPS];
    char draws = atomic_load_explicit(&known[op->id], memory_order_relaxed);
    if (!draws) {
        draws = pl_op_attr_find((int)op->id, "stream") >= 0 ? 1 : 2;
        atomic_store_explicit(&known[op->id], draws, memory_order_relaxed);
    }
    return draws == 1;
}

int pl_expr_op_packed(int op, const char *name, pl_expr *const *inputs, int n_inputs,
                      pl_attrs *attrs, pl_expr **ret_expr, pl_error *reterr)
{
    const pl_op *found = pl_op_of((pl_op_id)op);
    pl_expr *self = expr_new(PL_EXPR_OP, found->name);
    if (!self) {
        pl_attrs_unref(attrs);
        return no_memory(found->name, reterr);
    }
    self->node.op = found;
    self->attrs = attrs;
    self->has_stream = op_draws(found);
    int r = set_inputs(self, inputs, n_inputs);
    if (r < 0)
        r = no_memory(found->name, reterr);
    if (r == 0)
        r = infer(self, name, attrs, reterr);
    if (r < 0)
        pl_expr_unref(self);
    else
        *ret_expr = self;
    return r;
}

int pl_expr_op(int op, const char *name, pl_expr *const *inputs, int n_inputs, const pl_attr *attrs,
               int n_attrs, pl_expr **ret_expr, pl_error *reterr)
{
    PL_NOT_NULL_IF(n_attrs > 0, attrs, reterr);
    PL_NOT_NULL(ret_expr, reterr);
    PL_NOT_NULLS(inputs, n_inputs, reterr);
    if (op < 0 || op >= PL_N_OPS)
        return pl_error_set(reterr, -EINVAL, "op number %d does not exist", op);
    pl_attrs *packed = NULL;
    int r = n_attrs > 0 ? pl_attrs_pack(op, name, attrs, n_attrs, &packed, reterr) : 0;
    return r < 0 ? r : pl_expr_op_packed(op, name, inputs, n_inputs, packed, ret_expr, reterr);
}

bool pl_expr_stream(const pl_expr *self, uint64_t *ret_stream)
{
    if (!self->has_stream)
        return false;
    *ret_stream = self->stream;
    for (int i = 0; self->attrs && i < self->attrs->n_attrs; i++)
        if (strcmp(self->attrs->attrs[i].name, "stream") == 0)
            *ret_stream = (uint64_t)self->attrs->attrs[i].value.i;
    return true;
}

/* ---- calls ---- */

static int make_item(pl_expr *call, int item, pl_expr **ret_expr)
{
    pl_expr *self = expr_new(PL_EXPR_ITEM, call->node.name);
    if (!self)
        return -ENOMEM;
    const pl_type *type = &call->routine->outputs[item];
    self->item = item;
    self->node.dtype = type->dtype;
    self->node.shape = type->shape;
    self->known = pl_type_is_known(type);
    int r = set_inputs(self, &call, 1);
    if (r < 0)
        pl_expr_unref(self);
    else
        *ret_expr = self;
    return r;
}

int pl_expr_call(pl_routine *routine, pl_expr *const *inputs, int n_inputs, uint64_t stream,
                 pl_expr **ret_items, pl_error *reterr)
{
    pl_expr *self = expr_new(PL_EXPR_CALL, routine->name);
    if (!self) {
        int r = no_memory(routine->name, reterr);
        pl_routine_unref(routine);
        return r;
    }
    self->routine = routine;
    self->has_stream = routine->class->draws;
    self->stream = stream;
    int made = 0, r = set_inputs(self, inputs, n_inputs);
    for (; r == 0 && made < routine->n_outputs; made += r == 0)
        r = make_item(self, made, &ret_items[made]);
    if (r < 0)
        r = no_memory(routine->name, reterr);
    for (int i = 0; r < 0 && i < made; i++)
        pl_expr_unref(PL_TAKE(ret_items[i]));
    pl_expr_unref(self);
    return r;
}
