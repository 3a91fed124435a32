/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ops (ops.def) as data: one row each, found by number or name.
 *   class     how an op treats its elements; the planner looks at it first
 *   set       attributes that several ops share; PL_ATTR_<set>_<name> is an attribute's place in
 *             its set and in a node's attributes
 *
 * Constant, and safe from any thread. */
#ifndef PL_GRAPH_OP_H
#define PL_GRAPH_OP_H

#include "base/base.h"
#include "plimsoll/graph.h"
#include "tensor/region.h"

/* The most inputs of concat and string_join: as many as a message can count. */
#define PL_INPUTS_MAX 1000000

/* The longest set in ops.def; the table's test counts. */
#define PL_ATTRS_MAX 6

typedef enum pl_op_class {
    PL_CLASS_SOURCE,      /* generated anywhere, or given from outside */
    PL_CLASS_ELEMENTWISE, /* an element of the output needs one of each input */
    PL_CLASS_VIEW,        /* no arithmetic: elements in another order or number */
    PL_CLASS_MOVE,        /* elements copied to where they belong */
    PL_CLASS_REDUCE,      /* whole axes folded into one element */
    PL_CLASS_ROW,         /* any element needs all of an axis */
    PL_CLASS_MATMUL,
    PL_CLASS_STATE, /* changes a variable */
    PL_CLASS_DATA,  /* ops that readers are made of */
} pl_op_class;

typedef enum pl_op_takes {
    PL_OP_TAKES_ANY,
    PL_OP_TAKES_UNTEXT,   /* all but strings */
    PL_OP_TAKES_NUMBERS,  /* integers and floats */
    PL_OP_TAKES_INTEGERS, /* signed or not */
    PL_OP_TAKES_BITS,     /* integers and bool */
    PL_OP_TAKES_FLOATS,
    PL_OP_TAKES_BOOLS,
    PL_OP_TAKES_STRINGS,
} pl_op_takes;

typedef enum pl_op_gives {
    PL_OP_GIVES_SAME,    /* as the first input */
    PL_OP_GIVES_SECOND,  /* as the second */
    PL_OP_GIVES_BOOL,    /* bool */
    PL_OP_GIVES_INDEX,   /* int64 */
    PL_OP_GIVES_SUM,     /* integers and bool become int64 or uint64, as in NumPy's sum */
    PL_OP_GIVES_MEAN,    /* integers and bool become float64 */
    PL_OP_GIVES_ATTR,    /* the attribute `dtype`; else as the first input, else float32 */
    PL_OP_GIVES_RESIZED, /* as the input if "nearest", else float32 */
} pl_op_gives;

/* Every op as PL_OP_<name>. */
typedef enum pl_op_id {
#define PL_OP(name, ...) PL_OP_##name,
#include "graph/ops.def"
    PL_N_OPS
} pl_op_id;

/* Places of attributes, as PL_ATTR_<set>_<name>. */
#define MUST(set, name, ...)  PL_ATTR_##set##_##name,
#define MAY                   MUST
#define HAS                   MUST
#define PL_OP_ATTRS(set, ...) enum { __VA_ARGS__ PL_N_ATTRS_##set };
#include "graph/ops.def"
#undef MUST
#undef MAY
#undef HAS

typedef struct pl_attr_spec {
    const char *name; /* NULL: past the last one */
    pl_attr_type type;
    bool required;
    pl_attr fallback; /* of type PL_ATTR_NONE: it has none */
    const char *doc;
} pl_attr_spec;

typedef struct pl_infer pl_infer;

typedef struct pl_op {
    pl_op_id id;
    const char *name;
    pl_op_class op_class;
    int min_inputs, max_inputs;
    const pl_attr_spec *attrs;
    int n_attrs;
    pl_op_takes takes;
    pl_op_gives gives;
    int (*infer)(pl_infer *in, pl_error *reterr);
    bool (*region)(const pl_node *node, const pl_shape *shapes, const pl_region *out, int i,
                   pl_region *ret_in);
    double (*cost)(const pl_node *node, const pl_shape *shapes, double weight);
    double weight;
    const char *doc;
} pl_op;

const pl_op *pl_op_of(pl_op_id id);

/* Returns NULL if there is no op of that name. */
const pl_op *pl_op_by_name(const char *name);

const char *pl_op_class_name(pl_op_class op_class);

bool pl_op_takes_dtype(pl_op_takes takes, pl_dtype dtype);

/* Returns "numbers", for messages and the manual. */
const char *pl_op_takes_name(pl_op_takes takes);
const char *pl_op_gives_name(pl_op_gives gives);

#endif
