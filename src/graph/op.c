/* SPDX-License-Identifier: Apache-2.0 */
/* See op.h. */
#include "graph/op.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "graph/cost.h"
#include "graph/infer.h"
#include "graph/op_region.h"
#include "tensor/dtype.h"

#define MUST(set, id, kind, text)                                                                  \
    {.name = #id, .type = PL_ATTR_##kind, .required = true, .doc = text},
#define MAY(set, id, kind, text) {.name = #id, .type = PL_ATTR_##kind, .doc = text},
#define HAS(set, id, kind, stored, member, what, text)                                             \
    {.name = #id,                                                                                  \
     .type = PL_ATTR_##kind,                                                                       \
     .fallback = {.name = #id, .type = PL_ATTR_##stored, .value.member = what},                    \
     .doc = text},
#define PL_OP_ATTRS(set, ...) static const pl_attr_spec attrs_##set[] = {__VA_ARGS__{.name = NULL}};
#include "graph/ops.def"

static const pl_op ops[PL_N_OPS] = {
#define PL_OP(id_, class_, min, max, set, takes_, gives_, infer_, region_, cost_, weight_, text)   \
    {.id = PL_OP_##id_,                                                                            \
     .name = #id_,                                                                                 \
     .op_class = PL_CLASS_##class_,                                                                \
     .min_inputs = min,                                                                            \
     .max_inputs = max,                                                                            \
     .attrs = attrs_##set,                                                                         \
     .n_attrs = PL_COUNT_OF(attrs_##set) - 1,                                                      \
     .takes = PL_OP_TAKES_##takes_,                                                                \
     .gives = PL_OP_GIVES_##gives_,                                                                \
     .infer = pl_infer_##infer_,                                                                   \
     .region = pl_region_for_##region_,                                                            \
     .cost = pl_cost_##cost_,                                                                      \
     .weight = weight_,                                                                            \
     .doc = text},
#include "graph/ops.def"
};

/* Names are looked up for every new node: a hash table, twice as large as needed. */
enum { N_PLACES = 256 };
static_assert(2 * PL_N_OPS <= N_PLACES, "lookups by name would grow long");
static const pl_op *by_name[N_PLACES];
static pthread_once_t by_name_once = PTHREAD_ONCE_INIT;

static unsigned place_of(const char *name)
{
    unsigned hash = 5381;
    for (; *name; name++)
        hash = hash * 33 ^ (unsigned char)*name;
    return (hash ^ hash >> 8) % N_PLACES;
}

static void fill_by_name(void)
{
    for (size_t i = 0; i < PL_N_OPS; i++) {
        unsigned place = place_of(ops[i].name);
        while (by_name[place])
            place = (place + 1) % N_PLACES;
        by_name[place] = &ops[i];
    }
}

const pl_op *pl_op_of(pl_op_id id)
{
    return &ops[id];
}

const pl_op *pl_op_by_name(const char *name)
{
    pthread_once(&by_name_once, fill_by_name);
    unsigned place = place_of(name);
    while (by_name[place] && strcmp(by_name[place]->name, name) != 0)
        place = (place + 1) % N_PLACES;
    return by_name[place];
}

const char *pl_op_class_name(pl_op_class op_class)
{
    static const char *const names[] = {
        [PL_CLASS_SOURCE] = "source", [PL_CLASS_ELEMENTWISE] = "elementwise",
        [PL_CLASS_VIEW] = "view",     [PL_CLASS_MOVE] = "move",
        [PL_CLASS_REDUCE] = "reduce", [PL_CLASS_ROW] = "row",
        [PL_CLASS_MATMUL] = "matmul", [PL_CLASS_STATE] = "state",
        [PL_CLASS_DATA] = "data",
    };
    return names[op_class];
}

bool pl_op_takes_dtype(pl_op_takes takes, pl_dtype dtype)
{
    pl_kind kind = pl_dtype_info_of(dtype)->kind;
    bool is_integer = kind == PL_KIND_SIGNED || kind == PL_KIND_UNSIGNED;
    switch (takes) {
    case PL_OP_TAKES_ANY:
        return kind != PL_KIND_NONE;
    case PL_OP_TAKES_UNTEXT:
        return kind != PL_KIND_NONE && kind != PL_KIND_STRING;
    case PL_OP_TAKES_NUMBERS:
        return is_integer || kind == PL_KIND_FLOAT;
    case PL_OP_TAKES_INTEGERS:
        return is_integer;
    case PL_OP_TAKES_BITS:
        return is_integer || kind == PL_KIND_BOOL;
    case PL_OP_TAKES_FLOATS:
        return kind == PL_KIND_FLOAT;
    case PL_OP_TAKES_BOOLS:
        return kind == PL_KIND_BOOL;
    case PL_OP_TAKES_STRINGS:
        return kind == PL_KIND_STRING;
    }
    return false;
}

const char *pl_op_takes_name(pl_op_takes takes)
{
    static const char *const names[] = {
        [PL_OP_TAKES_ANY] = "any dtype",
        [PL_OP_TAKES_UNTEXT] = "numbers or bool",
        [PL_OP_TAKES_NUMBERS] = "numbers",
        [PL_OP_TAKES_INTEGERS] = "integers",
        [PL_OP_TAKES_BITS] = "integers or bool",
        [PL_OP_TAKES_FLOATS] = "floating-point numbers",
        [PL_OP_TAKES_BOOLS] = "bool",
        [PL_OP_TAKES_STRINGS] = "strings",
    };
    return names[takes];
}

const char *pl_op_gives_name(pl_op_gives gives)
{
    static const char *const names[] = {
        [PL_OP_GIVES_SAME] = "the same",
        [PL_OP_GIVES_SECOND] = "as the second",
        [PL_OP_GIVES_BOOL] = "bool",
        [PL_OP_GIVES_INDEX] = "int64",
        [PL_OP_GIVES_SUM] = "the same; of integers and bool int64 or uint64",
        [PL_OP_GIVES_MEAN] = "the same; of integers and bool float64",
        [PL_OP_GIVES_ATTR] = "`dtype`",
        [PL_OP_GIVES_RESIZED] = "float32; the same if nearest",
    };
    return names[gives];
}
