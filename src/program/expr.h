/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of exprs. See plimsoll/program.h.
 *   node     what inference looks at: op, label, inputs, dtype and shape, as a graph's node has them.
 *            It belongs to no graph. The label is never NULL
 *   attrs    the attributes as they were given, in one piece: compared and hashed as bytes
 *   mark     the walk that last met the expr, and the place that it gave it
 *
 *   kind CALL: never given out;  ITEM: inputs[0] is the CALL
 *   value != NULL: no inputs, no attributes
 *
 * Constant once made, but for what the lock guards: value, inputs and attributes when a value
 * comes, and the marks. The value is read without it. */
#ifndef PL_PROGRAM_EXPR_H
#define PL_PROGRAM_EXPR_H

#include <stdatomic.h>

#include "graph/node.h"
#include "plimsoll/program.h"
#include "program/routine.h"

typedef enum pl_expr_kind {
    PL_EXPR_VALUE,
    PL_EXPR_GIVEN,
    PL_EXPR_OP,
    PL_EXPR_CALL,
    PL_EXPR_ITEM,
} pl_expr_kind;

typedef struct pl_attrs {
    _Atomic int n_refs;
    int n_attrs;
    size_t n_bytes;    /* in the order of the op's places; lists and texts lie in it */
    const char *bytes; /* behind the attrs */
    pl_attr attrs[];
} pl_attrs;

struct pl_expr {
    pl_node node; /* the first member, so that an expr's inputs are exprs as a node's are nodes */
    _Atomic int n_refs;
    pl_expr_kind kind;
    bool symbolic;
    bool named;    /* the label is a name, and ours to free */
    bool known;    /* all dimensions are known */
    bool narrowed; /* more is known of the shape than inference found */
    bool has_stream;
    int item;
    uint32_t depth;
    uint64_t trace;
    uint64_t stream; /* of a CALL that draws */
    _Atomic(pl_tensor *) value;
    pl_attrs *attrs;     /* of an OP; NULL: none */
    pl_routine *routine; /* of a CALL */
    _Atomic(void *) owner;
    void *site;
    int64_t site_at;
    void (*release_site)(void *site);
    pl_expr *next; /* among those about to be freed, or that were */
    uint64_t walk;
    int place;
    pl_node *few[2]; /* the inputs, if they are few enough */
};

static inline pl_expr *pl_expr_at(const pl_expr *self, int i)
{
    return (pl_expr *)self->node.inputs[i];
}

static inline pl_tensor *pl_expr_has(const pl_expr *self)
{
    return atomic_load_explicit(&self->value, memory_order_acquire);
}

static inline pl_type pl_expr_made_type(const pl_expr *self)
{
    return (pl_type){self->node.dtype, self->node.shape};
}

/* Takes over the routine, also on failure; `stream` is used if the routine draws. Returns the items
 * in ret_items; a routine without outputs has none. */
PL_MUST_CHECK int pl_expr_call(pl_routine *routine, pl_expr *const *inputs, int n_inputs,
                               uint64_t stream, pl_expr **ret_items, pl_error *reterr);

/* Like pl_expr_op(), but with packed attributes (NULL: none): takes over the reference to them,
 * also on failure. */
PL_MUST_CHECK int pl_expr_op_packed(int op, const char *name, pl_expr *const *inputs, int n_inputs,
                                    pl_attrs *attrs, pl_expr **ret_expr, pl_error *reterr);

/* The stream of an op or a call that draws. */
bool pl_expr_stream(const pl_expr *self, uint64_t *ret_stream);

/* Guards marks, the setting of values, and evaluators' programs. A leaf lock: nothing is called or
 * freed under it. Forks wait for it. */
void pl_exprs_lock(void);
void pl_exprs_unlock(void);

/* Needs the lock. Sets the value unless there is one, and takes out the references that the expr no
 * longer needs; drop them without the lock. Takes over the reference to the value. */
typedef struct pl_expr_rest {
    pl_node **inputs, *few[2];
    int n_inputs;
    pl_attrs *attrs;
    pl_tensor *value; /* the expr had a value */
} pl_expr_rest;
void pl_expr_settle_locked(pl_expr *self, pl_tensor *value, pl_expr_rest *ret_rest);
void pl_expr_rest_drop(pl_expr_rest *rest);

/* ---- attrs.c ---- */

/* Sets *ret to NULL for no attributes. -EINVAL for an attribute that the op does not have, or that
 * is given twice. */
PL_MUST_CHECK int pl_attrs_pack(int op, const char *name, const pl_attr *attrs, int n_attrs,
                                pl_attrs **ret, pl_error *reterr);

/* The same attributes with another stream; `attrs` may be NULL. */
PL_MUST_CHECK int pl_attrs_with_stream(int op, const pl_attrs *attrs, uint64_t stream,
                                       pl_attrs **ret, pl_error *reterr);
pl_attrs *pl_attrs_ref(pl_attrs *attrs); /* NULL is allowed */
void pl_attrs_unref(pl_attrs *attrs);    /* NULL is allowed */

#endif
