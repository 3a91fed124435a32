/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the graphs of a program's steps. See lazy_program.h.
 *
 * Shapes are not inferred again: a node has the type that its expr was made with, unless it depends
 * on a leaf that is given a more precise type than its expr had. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/lazy_program.h"
#include "program/types.h"

/* Held while a graph is built. Forks wait for it, so that the child finds it free. */
static pthread_mutex_t building = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
    pthread_mutex_lock(&building);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&building);
}

__attribute__((constructor)) static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork);
}

static int no_memory(pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "out of memory for a graph");
}

typedef struct build {
    const pl_lazy_program *program;
    pl_runtime *runtime;
    pl_graph *graph;
    pl_node **at;    /* by slot */
    bool *refined;   /* by slot */
    pl_node **given; /* room for the inputs of one node */
    size_t n_given;
    uint64_t first_stream; /* added to the parts' streams */
} build;

/* isalnum() would ask the locale. */
static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A user's name may contain characters that the library's names may not; a name without a valid
 * first letter is left out. In TensorFlow, a final '/' means that the name before it is used as it
 * is. */
static const char *plain_name(const char *name, char *to, size_t n)
{
    if (!name || !(is_letter_or_digit(*name) || *name == '.'))
        return NULL;
    size_t i = 0;
    for (; name[i] && i + 1 < n; i++)
        to[i] = is_letter_or_digit(name[i]) || strchr("_.-/", name[i]) ? name[i] : '_';
    while (to[i - 1] == '/')
        i--;
    to[i] = 0;
    return to;
}

static int gather_inputs(build *b, const pl_program_part *p)
{
    if (b->n_given < (size_t)p->n_inputs) {
        pl_node **more = realloc(b->given, (size_t)p->n_inputs * sizeof(pl_node *));
        if (!more)
            return -ENOMEM;
        b->given = more;
        b->n_given = (size_t)p->n_inputs;
    }
    for (int i = 0; i < p->n_inputs; i++)
        b->given[i] = b->at[b->program->inputs[p->first + i]];
    return 0;
}

/* Streams count from the program's first, which each run adds. */
static int copy_attrs(const build *b, const pl_program_part *p, pl_attr *attrs)
{
    int n = 0;
    for (int i = 0; p->attrs && i < p->attrs->n_attrs; i++)
        if (!p->draws || strcmp(p->attrs->attrs[i].name, "stream") != 0)
            attrs[n++] = p->attrs->attrs[i];
    if (p->draws)
        attrs[n++] = pl_attr_int("stream", (int64_t)(b->first_stream + p->stream));
    return n;
}

/* The type that the part's op gives, if it is known before the run: no input is refined. */
static const pl_type *known_type(const build *b, const pl_program_part *p)
{
    for (int i = 0; i < p->n_inputs; i++)
        if (b->refined[b->program->inputs[p->first + i]])
            return NULL;
    return p->narrowed || p->type.shape.rank == PL_RANK_UNKNOWN ? NULL : &p->type;
}

static int add_op(build *b, const pl_program_part *p, pl_node **ret_node, pl_error *reterr)
{
    enum { ATTRS_MOST = 32 };
    pl_attr attrs[ATTRS_MOST];
    char name[256];
    if (gather_inputs(b, p) < 0)
        return no_memory(reterr);
    if (p->attrs && p->attrs->n_attrs >= ATTRS_MOST)
        return pl_error_set(reterr, -EINVAL, "%s: %d attributes are too many", pl_op_name(p->op),
                            p->attrs->n_attrs);
    bool copied = p->draws;
    int n_attrs = copied ? copy_attrs(b, p, attrs) : p->attrs ? p->attrs->n_attrs : 0;
    int r = p->device ? pl_graph_push_device(b->graph, p->device, reterr) : 0;
    if (r < 0)
        return r;
    r = pl_graph_add_known(b->graph, (pl_op_id)p->op, plain_name(p->name, name, sizeof name),
                           b->given, p->n_inputs, copied || !p->attrs ? attrs : p->attrs->attrs,
                           n_attrs, known_type(b, p), ret_node, reterr);
    if (p->device)
        pl_graph_pop_device(b->graph);
    return r;
}

static int add_parts(build *b, const pl_program_step *step, pl_error *reterr)
{
    int r = 0;
    for (int i = 0; r == 0 && i < step->n_parts; i++) {
        const pl_program_part *p = &b->program->parts[step->parts[i]];
        int slot = b->program->n_leaves + step->parts[i];
        r = add_op(b, p, &b->at[slot], reterr);
        b->refined[slot] = r == 0 && !pl_shape_equal(pl_node_shape(b->at[slot]), &p->type.shape);
    }
    return r;
}

/* NULL: a leaf, or an expr without a name. */
static const char *giver_of(const pl_lazy_program *self, int slot)
{
    const pl_program_part *part =
        slot < self->n_leaves ? NULL : &self->parts[slot - self->n_leaves];
    if (!part || part->name || part->kind != PL_EXPR_ITEM)
        return part ? part->name : NULL;
    return self->parts[self->inputs[part->first] - self->n_leaves].routine->name;
}

/* An input is named after the expr that gives it. Messages show the name if the value has another
 * shape. */
static int add_placeholder(build *b, const pl_type *type, int slot, pl_error *reterr)
{
    const pl_type *own = pl_program_type(b->program, slot);
    b->refined[slot] = (slot < b->program->n_leaves && b->program->refined[slot]) ||
                       !pl_shape_equal(&type->shape, &own->shape);
    char name[32];
    const char *giver = giver_of(b->program, slot);
    snprintf(name, sizeof name, "input_%d", slot);
    return pl_graph_placeholder(b->graph, giver ? giver : name, type->dtype, &type->shape,
                                &b->at[slot], reterr);
}

/* The value of a number that a fill can be made of, bit by bit: a fill does not distinguish NaNs. */
static bool read_number(pl_tensor *value, pl_attr *ret_value)
{
    union {
        float f32;
        double f64;
        int32_t i32;
        int64_t i64;
    } number;
    pl_dtype dtype = pl_tensor_dtype(value);
    bool is_float = dtype == PL_F32 || dtype == PL_F64;
    if (!is_float && dtype != PL_I32 && dtype != PL_I64)
        return false;
    if (pl_tensor_read(value, NULL, NULL, &number, NULL) < 0)
        return false;
    double real = dtype == PL_F32 ? (double)number.f32 : number.f64;
    if (is_float)
        *ret_value = pl_attr_float("value", real);
    else
        *ret_value = pl_attr_int("value", dtype == PL_I32 ? number.i32 : number.i64);
    return !is_float || real == real;
}

/* Do only elementwise ops read the slot, and none of them on a device? */
static bool is_operand(const pl_lazy_program *self, int slot)
{
    for (int i = 0; i < self->n_outputs; i++)
        if (self->outputs[i] == slot)
            return false;
    for (int i = 0; i < self->n_parts; i++) {
        const pl_program_part *p = &self->parts[i];
        bool fits = p->kind == PL_EXPR_OP && !p->device && pl_op_is_elementwise(p->op);
        for (int k = 0; !fits && k < p->n_inputs; k++)
            if (self->inputs[p->first + k] == slot)
                return false;
    }
    return true;
}

/* A number in a computation is made where it is needed: as a constant it would be looked up,
 * described and pinned in each run, which takes as long as computing with it. */
static int add_number(build *b, pl_tensor *value, int slot, const char *name, pl_error *reterr)
{
    pl_attr attrs[3] = {pl_attr_dtype("dtype", pl_tensor_dtype(value)),
                        pl_attr_shape("shape", pl_tensor_shape(value))};
    if (pl_tensor_shape(value)->rank > 0 || !is_operand(b->program, slot) ||
        !read_number(value, &attrs[2]))
        return 0;
    int r = pl_graph_add(b->graph, "fill", name, NULL, 0, attrs, 3, &b->at[slot], reterr);
    return r < 0 ? r : 1;
}

static int add_constant(build *b, pl_tensor *value, int slot, pl_error *reterr)
{
    char name[32];
    b->refined[slot] = b->program->refined[slot];
    snprintf(name, sizeof name, "captured_%d", slot);
    int added = add_number(b, value, slot, name, reterr);
    if (added != 0)
        return added < 0 ? added : 0;
    int r = pl_graph_constant(b->graph, name, pl_tensor_dtype(value), pl_tensor_shape(value),
                              &b->at[slot], reterr);
    return r < 0 ? r : pl_constant_set(b->at[slot], value, reterr);
}

static int begin_build(build *b, const pl_lazy_program *of, pl_runtime *runtime, pl_error *reterr)
{
    size_t n = (size_t)pl_program_n_slots(of) + 1;
    *b = (build){.program = of, .runtime = runtime};
    b->at = calloc(n, sizeof(pl_node *));
    b->refined = calloc(n, sizeof *b->refined);
    return b->at && b->refined ? pl_graph_new(&b->graph, reterr) : no_memory(reterr);
}

static void end_build(build *b)
{
    free(b->at);
    free(b->refined);
    free(b->given);
    pl_graph_free(b->graph); /* NULL: already taken */
}

/* ---- variants ---- */

static pl_variant *variant_alloc(int n_inputs, int n_outputs)
{
    pl_variant *self = calloc(1, sizeof *self + (size_t)n_inputs + 1);
    if (!self)
        return NULL;
    self->inputs = calloc((size_t)n_inputs + 1, sizeof(pl_node *));
    self->outputs = calloc((size_t)n_outputs + 1, sizeof(pl_node *));
    if (self->inputs && self->outputs)
        return self;
    pl_variant_free(self);
    return NULL;
}

/* The graph's session is freed with it, but we hold one more reference to it. */
void pl_variant_free(pl_variant *self)
{
    if (!self)
        return;
    pl_session_free(self->session);
    pl_graph_free(self->graph);
    free(self->inputs);
    free(self->outputs);
    free(self);
}

/* Takes the graph out of the build. */
static int open_session(build *b, pl_variant *self, pl_error *reterr)
{
    self->runtime = b->runtime;
    self->graph = PL_TAKE(b->graph);
    return pl_session_new(self->graph, b->runtime, &self->session, reterr);
}

/* Ends the build with the result `r`: gives out `made`, or frees it. */
static int finish(build *b, pl_variant *made, int r, pl_variant **ret, pl_error *reterr)
{
    if (r == 0)
        r = open_session(b, made, reterr);
    end_build(b);
    if (r < 0)
        pl_variant_free(made);
    else
        *ret = made;
    return r;
}

/* An input's type, with its rank. */
static pl_type input_type(const pl_type *said, const pl_type *given)
{
    pl_type type = *said;
    if (type.shape.rank != PL_RANK_UNKNOWN)
        return type;
    type.shape.rank = given->shape.rank;
    for (int i = 0; i < type.shape.rank; i++)
        type.shape.dims[i] = PL_UNKNOWN;
    return type;
}

static int build_variant(pl_lazy_program *self, const pl_program_step *step, pl_runtime *runtime,
                         const pl_type *types, pl_variant **ret, pl_error *reterr)
{
    build b;
    pl_variant *made = variant_alloc(step->n_inputs, step->n_outputs);
    int r = begin_build(&b, self, runtime, reterr);
    if (r == 0 && !made)
        r = no_memory(reterr);
    for (int i = 0; r == 0 && i < step->n_inputs; i++) {
        pl_type type = input_type(pl_program_type(self, step->inputs[i]), &types[i]);
        r = add_placeholder(&b, &type, step->inputs[i], reterr);
        made->inputs[i] = b.at[step->inputs[i]];
        made->ranks[i] = (signed char)type.shape.rank;
    }
    if (r == 0)
        r = add_parts(&b, step, reterr);
    for (int i = 0; r == 0 && i < step->n_outputs; i++)
        made->outputs[i] = b.at[step->outputs[i]];
    return finish(&b, made, r, ret, reterr);
}

/* A forked child cannot use its parent's variants: their sessions do not exist in it. */
static pl_variant *find_variant(pl_program_step *step, const pl_runtime *runtime,
                                const pl_type *types)
{
    pl_variant *v = atomic_load_explicit(&step->variants, memory_order_acquire);
    for (; v; v = v->next) {
        int i = step->open ? 0 : step->n_inputs;
        while (i < step->n_inputs && v->ranks[i] == types[i].shape.rank)
            i++;
        if (i == step->n_inputs && v->runtime == runtime)
            return v;
    }
    return NULL;
}

int pl_program_variant(pl_lazy_program *self, pl_program_step *step, pl_runtime *runtime,
                       const pl_type *types, pl_variant **ret, pl_error *reterr)
{
    *ret = find_variant(step, runtime, types);
    if (*ret)
        return 0;
    int r = 0;
    pthread_mutex_lock(&building);
    *ret = find_variant(step, runtime, types); /* another thread may have built it meanwhile */
    if (!*ret) {
        r = build_variant(self, step, runtime, types, ret, reterr);
        if (r == 0) {
            (*ret)->next = atomic_load(&step->variants);
            atomic_store_explicit(&step->variants, *ret, memory_order_release);
        }
    }
    pthread_mutex_unlock(&building);
    return r;
}

/* All leaves become inputs, used or not; all outputs are those of the program. */
int pl_program_whole(pl_lazy_program *self, pl_runtime *runtime, const pl_type *types,
                     pl_tensor *const *captured, int n_captured, uint64_t stream, pl_variant **ret,
                     pl_error *reterr)
{
    build b;
    int n_inputs = self->n_leaves - n_captured;
    pl_variant *made = variant_alloc(n_inputs, self->n_outputs);
    int r = begin_build(&b, self, runtime, reterr);
    b.first_stream = stream;
    if (r == 0 && !made)
        r = no_memory(reterr);
    for (int i = 0; r == 0 && i < n_inputs; i++) {
        r = add_placeholder(&b, &types[i], i, reterr);
        made->inputs[i] = b.at[i];
    }
    for (int i = 0; r == 0 && i < n_captured; i++)
        r = add_constant(&b, captured[i], n_inputs + i, reterr);
    for (int i = 0; r == 0 && i < self->n_steps; i++)
        r = add_parts(&b, &self->steps[i], reterr);
    for (int i = 0; r == 0 && i < self->n_outputs; i++)
        made->outputs[i] = b.at[self->outputs[i]];
    return finish(&b, made, r, ret, reterr);
}
