/* SPDX-License-Identifier: Apache-2.0 */
/* Queries ops without a graph: the inputs they take, and the types they return. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph/infer.h"

/* ---- the table ---- */

static const pl_op *op_of(int op)
{
    return op >= 0 && op < PL_N_OPS ? pl_op_of((pl_op_id)op) : NULL;
}

int pl_op_find(const char *name)
{
    PL_NULL_GIVES(name, -1);
    const pl_op *op = pl_op_by_name(name);
    return op ? (int)op->id : -1;
}

const char *pl_op_name(int op)
{
    const pl_op *found = op_of(op);
    return found ? found->name : NULL;
}

bool pl_op_is_elementwise(int op)
{
    const pl_op *found = op_of(op);
    return found && found->op_class == PL_CLASS_ELEMENTWISE;
}

int pl_op_n_attrs(int op)
{
    const pl_op *found = op_of(op);
    return found ? found->n_attrs : 0;
}

const char *pl_op_attr_name(int op, int place)
{
    return place >= 0 && place < pl_op_n_attrs(op) ? op_of(op)->attrs[place].name : NULL;
}

pl_attr_type pl_op_attr_type(int op, int place)
{
    return place >= 0 && place < pl_op_n_attrs(op) ? op_of(op)->attrs[place].type : PL_ATTR_NONE;
}

int pl_op_attr_find(int op, const char *name)
{
    PL_NULL_GIVES(name, -1);
    for (int place = 0; place < pl_op_n_attrs(op); place++)
        if (strcmp(op_of(op)->attrs[place].name, name) == 0)
            return place;
    return -1;
}

/* ---- inference ---- */

enum { FEW = 8 };

/* Stand-ins for nodes, for the duration of a call, for inference to look at. */
typedef struct stand_ins {
    pl_node few[FEW];
    pl_node *few_at[FEW];
    pl_node *nodes;
    pl_node **at;
} stand_ins;

static int stand_ins_init(stand_ins *s, int n)
{
    s->nodes = n <= FEW ? s->few : malloc((size_t)n * sizeof *s->nodes);
    s->at = n <= FEW ? s->few_at : malloc((size_t)n * sizeof(pl_node *));
    return s->nodes && s->at ? 0 : -ENOMEM;
}

static void stand_ins_done(stand_ins *s)
{
    if (s->nodes != s->few)
        free(s->nodes);
    if (s->at != s->few_at)
        free(s->at);
}

/* Returns whether all ranks are known. */
static bool stand_ins_fill(stand_ins *s, const pl_type *inputs, const char *const *names, int n)
{
    bool known = true;
    for (int i = 0; i < n; i++) {
        pl_node *node = &s->nodes[i];
        node->name = names && names[i] ? names[i] : "input";
        node->dtype = inputs[i].dtype;
        node->shape = inputs[i].shape;
        s->at[i] = node;
        known = known && inputs[i].shape.rank >= 0;
    }
    return known;
}

int pl_op_infer(int op, const char *name, const pl_type *inputs, const char *const *input_names,
                int n_inputs, const pl_attr *attrs, int n_attrs, pl_type *ret_type,
                pl_error *reterr)
{
    PL_NOT_NULL_IF(n_inputs > 0, inputs, reterr);
    PL_NOT_NULL_IF(n_attrs > 0, attrs, reterr);
    PL_NOT_NULL(ret_type, reterr);
    const pl_op *found = op_of(op);
    if (!found)
        return pl_error_set(reterr, -EINVAL, "op number %d: there is no such op", op);
    stand_ins s;
    pl_attr values[PL_ATTRS_MAX];
    pl_infer in = {.op = found, .name = name ? name : found->name, .attrs = values};
    int r = pl_infer_count(found, in.name, n_inputs, reterr);
    if (r == 0)
        r = pl_attrs_resolve(found, in.name, attrs, n_attrs, values, reterr);
    if (r < 0)
        return r;
    r = stand_ins_init(&s, n_inputs);
    if (r < 0) {
        r = pl_error_set(reterr, r, "%s '%.120s': no memory for %d inputs", found->name, in.name,
                         n_inputs);
    } else {
        bool known = stand_ins_fill(&s, inputs, input_names, n_inputs);
        in.inputs = s.at;
        in.n_inputs = n_inputs;
        r = known ? pl_infer_run(&in, reterr) : pl_infer_open(&in, reterr);
    }
    stand_ins_done(&s);
    if (r == 0)
        *ret_type = (pl_type){.dtype = in.dtype, .shape = in.shape};
    return r;
}
