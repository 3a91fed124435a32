/* SPDX-License-Identifier: Apache-2.0 */
/* einsum, made of one matmul and of ops that bring its inputs into shape. Labels fall into groups:
 *   batch     in both inputs and in the result      kept in front, one axis each
 *   left      in the first and the result           merged into the rows
 *   inner     in both, not in the result            merged into what is summed over
 *   right     in the second and the result          merged into the columns
 *   lone      in one input only, not in the result  summed first
 * "..." stands for labels of its own, one for each axis that is not named, counted from the last.
 * Inputs already in such an order need no transpose; nor does [batch, inner, left], because matmul
 * has a flag for it. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/composite.h"
#include "graph/node.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* The labels of one input or of the result, one for each axis. */
typedef struct labels {
    char text[2 * PL_RANK_MAX + 1];
    int n;
} labels;

typedef struct einsum {
    pl_graph *graph;
    const char *name;
    const char *equation;
    pl_error *reterr;
    int n_inputs;
    pl_node *inputs[2]; /* as transformed so far */
    labels in[2];
    labels out;
    int n_dots;        /* axes that "..." stands for, at most */
    int64_t dims[128]; /* by label */
} einsum;

/* Fails with -EINVAL and "einsum 'name': 'ij,jk': ...". */
static int fail(const einsum *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(const einsum *e, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return pl_error_set(e->reterr, -EINVAL, "einsum '%.100s': '%.100s': %s", e->name, e->equation,
                        text);
}

static bool has(const labels *set, char label)
{
    return memchr(set->text, label, (size_t)set->n) != NULL;
}

static void append(labels *set, char label)
{
    set->text[set->n++] = label;
}

/* ---- reading ---- */

/* The last axis that "..." stands for is labelled '7', the one before it '6', and so on: not
 * letters. */
static void append_dots(labels *set, int n)
{
    for (int k = 0; k < n; k++)
        append(set, (char)('0' + PL_RANK_MAX - n + k));
}

/* Counts an input's axes that have no label of their own. */
static int count_dots(const char *at, const char *ends, int rank)
{
    for (; *at && !strchr(ends, *at); at++)
        rank -= isalpha((unsigned char)*at) != 0;
    return rank < 0 ? 0 : rank;
}

/* Reads labels up to one of `ends`, and moves *at there. `n_dots`: the axes that "..." stands
 * for. */
static int read_labels(const einsum *e, const char **at, const char *ends, int n_dots,
                       labels *ret_labels)
{
    labels read = {.n = 0};
    bool dots = false;
    for (; **at && !strchr(ends, **at); (*at)++) {
        char label = **at;
        if (label == ' ')
            continue;
        if (strncmp(*at, "...", 3) == 0 && !dots) {
            if (read.n + n_dots > PL_RANK_MAX)
                return fail(e, "more than %d labels in one place", PL_RANK_MAX);
            append_dots(&read, n_dots);
            dots = true;
            *at += 2;
            continue;
        }
        if (!isalpha((unsigned char)label))
            return fail(e, "'%c' is not a label: labels are letters", label);
        if (has(&read, label))
            return fail(e, "label '%c' is there twice in one place, which matmul cannot do", label);
        if (read.n == PL_RANK_MAX)
            return fail(e, "more than %d labels in one place", PL_RANK_MAX);
        append(&read, label);
    }
    *ret_labels = read;
    return 0;
}

/* Without "->": the labels that appear in only one input, in alphabetical order. */
static int implied_output(einsum *e)
{
    append_dots(&e->out, e->n_dots);
    for (int label = 'A'; label <= 'z'; label++) {
        int n = 0;
        for (int i = 0; i < e->n_inputs; i++)
            n += has(&e->in[i], (char)label);
        if (n != 1)
            continue;
        if (e->out.n == PL_RANK_MAX)
            return fail(e, "the result would have more than %d axes", PL_RANK_MAX);
        append(&e->out, (char)label);
    }
    return 0;
}

static int read_equation(einsum *e)
{
    const char *at = e->equation;
    for (int i = 0; i < e->n_inputs; i++) {
        int n_dots = count_dots(at, ",-", e->inputs[i]->shape.rank);
        const char *begin = at;
        int r = read_labels(e, &at, ",-", n_dots, &e->in[i]);
        if (r < 0)
            return r;
        if (memmem(begin, (size_t)(at - begin), "...", 3) && n_dots > e->n_dots)
            e->n_dots = n_dots;
        bool more = i + 1 < e->n_inputs;
        if (more != (*at == ','))
            return fail(e, "it does not have %d inputs, as the call does", e->n_inputs);
        at += more;
    }
    if (*at == '\0')
        return implied_output(e);
    if (strncmp(at, "->", 2) != 0)
        return fail(e, "before the result there is '->'");
    at += 2;
    if (e->n_dots > 0 && !strstr(at, "..."))
        return fail(e, "'...' of an input is not in the result");
    return read_labels(e, &at, "", e->n_dots, &e->out);
}

/* ---- checking ---- */

static int learn_dims(einsum *e, int i)
{
    const pl_node *node = e->inputs[i];
    if (node->shape.rank != e->in[i].n)
        return fail(e, "%d labels for %s ('%.80s')", e->in[i].n, PL_SHAPE_TEXT(&node->shape),
                    node->name);
    for (int k = 0; k < e->in[i].n; k++) {
        int64_t *dim = &e->dims[(int)e->in[i].text[k]], own = node->shape.dims[k];
        if (*dim != PL_UNKNOWN && own != PL_UNKNOWN && *dim != own)
            return fail(e, "%s '%.*s' is %" PRId64 " and %" PRId64 " ('%.60s' and '%.60s')",
                        isdigit(e->in[i].text[k]) ? "an axis of" : "label",
                        isdigit(e->in[i].text[k]) ? 3 : 1,
                        isdigit(e->in[i].text[k]) ? "..." : &e->in[i].text[k], *dim, own,
                        e->inputs[0]->name, node->name);
        if (own != PL_UNKNOWN)
            *dim = own;
    }
    return 0;
}

static int check(einsum *e)
{
    for (int i = 0; i < 128; i++)
        e->dims[i] = PL_UNKNOWN;
    for (int i = 0; i < e->n_inputs; i++) {
        int r = learn_dims(e, i);
        if (r < 0)
            return r;
        if (e->inputs[i]->dtype != e->inputs[0]->dtype ||
            !pl_op_takes_dtype(PL_OP_TAKES_NUMBERS, e->inputs[i]->dtype))
            return fail(e, "%s and %s: it takes numbers of one dtype: cast one of them",
                        pl_dtype_info_of(e->inputs[0]->dtype)->name,
                        pl_dtype_info_of(e->inputs[i]->dtype)->name);
    }
    for (int k = 0; k < e->out.n; k++)
        if (!has(&e->in[0], e->out.text[k]) && !has(&e->in[e->n_inputs - 1], e->out.text[k]))
            return fail(e, "label '%c' of the result is in no input", e->out.text[k]);
    return 0;
}

/* ---- groups ---- */

typedef struct groups {
    labels batch, left, inner, right;
} groups;

static groups make_groups(const einsum *e)
{
    groups g = {0};
    for (int k = 0; k < e->in[0].n; k++) {
        char label = e->in[0].text[k];
        bool both = has(&e->in[1], label), out = has(&e->out, label);
        if (both)
            append(out ? &g.batch : &g.inner, label);
        else if (out)
            append(&g.left, label);
    }
    for (int k = 0; k < e->in[1].n; k++) {
        char label = e->in[1].text[k];
        if (!has(&e->in[0], label) && has(&e->out, label))
            append(&g.right, label);
    }
    return g;
}

static labels join(const labels *a, const labels *b, const labels *c)
{
    labels all = {.n = a->n + b->n + c->n};
    memcpy(all.text, a->text, (size_t)a->n);
    memcpy(all.text + a->n, b->text, (size_t)b->n);
    memcpy(all.text + a->n + b->n, c->text, (size_t)c->n);
    return all;
}

static bool same(const labels *a, const labels *b)
{
    return a->n == b->n && memcmp(a->text, b->text, (size_t)a->n) == 0;
}

/* Counts the unknown dimensions of a group. */
static int n_unknown(const einsum *e, const labels *group)
{
    int n = 0;
    for (int k = 0; k < group->n; k++)
        n += e->dims[(int)group->text[k]] == PL_UNKNOWN;
    return n;
}

/* A group of one axis is kept as it is; one of several is merged, and split again if it is in the
 * result. A reshape can infer only one dimension. */
static int check_groups(const einsum *e, const groups *g)
{
    int left = g->left.n > 1 ? n_unknown(e, &g->left) : 0;
    int inner = g->inner.n > 1 ? n_unknown(e, &g->inner) : 0;
    int right = g->right.n > 1 ? n_unknown(e, &g->right) : 0;
    if (left + right > 1 || (inner > 0 && left + right > 0))
        return fail(e, "more than one dimension of those that are merged is not known");
    if (g->batch.n > PL_RANK_MAX - 2 || g->batch.n + g->left.n + g->right.n > PL_RANK_MAX)
        return fail(e, "it needs more than %d axes on the way", PL_RANK_MAX);
    return 0;
}

/* ---- making ---- */

static const char *name_of(const einsum *e, bool last, const char *op,
                           char text[PL_INNER_NAME_BYTES])
{
    return last ? e->name : pl_inner_name(e->name, op, text);
}

/* Sums over labels that appear nowhere else; integers keep their dtype, as in NumPy's einsum. */
static int sum_lone(einsum *e, int i, bool last)
{
    char text[PL_INNER_NAME_BYTES];
    int64_t axes[PL_RANK_MAX];
    int n_axes = 0;
    labels rest = {.n = 0};
    for (int k = 0; k < e->in[i].n; k++) {
        char label = e->in[i].text[k];
        bool wanted = has(&e->out, label) || (e->n_inputs == 2 && has(&e->in[1 - i], label));
        if (wanted)
            append(&rest, label);
        else
            axes[n_axes++] = k;
    }
    if (n_axes == 0)
        return 0;
    pl_dtype dtype = e->inputs[i]->dtype;
    bool widened =
        pl_op_takes_dtype(PL_OP_TAKES_INTEGERS, dtype) && dtype != PL_I64 && dtype != PL_U64;
    int r = pl_graph_reduce(e->graph, "sum", name_of(e, last && !widened, "sum", text),
                            e->inputs[i], axes, n_axes, false, &e->inputs[i], e->reterr);
    if (r == 0 && widened)
        r = pl_graph_cast(e->graph, name_of(e, last, "cast", text), e->inputs[i], dtype,
                          &e->inputs[i], e->reterr);
    e->in[i] = rest;
    return r;
}

static int permute(einsum *e, pl_node **node, const labels *from, const labels *to, bool last)
{
    char text[PL_INNER_NAME_BYTES];
    int64_t axes[PL_RANK_MAX];
    if (same(from, to))
        return last ? pl_graph_unary(e->graph, "identity", e->name, *node, node, e->reterr) : 0;
    for (int k = 0; k < to->n; k++)
        axes[k] = (const char *)memchr(from->text, to->text[k], (size_t)from->n) - from->text;
    const pl_attr attr = pl_attr_ints("axes", axes, to->n);
    return pl_graph_add(e->graph, "transpose", name_of(e, last, "transpose", text), node, 1, &attr,
                        1, node, e->reterr);
}

/* Adds a group to a reshape's result as one axis, which begins at the input's axis `at`. */
static void merge_group(const einsum *e, const labels *group, int at, pl_shape *shape,
                        int64_t *keep)
{
    int64_t product = 1;
    bool known = n_unknown(e, group) == 0;
    for (int k = 0; known && k < group->n; k++)
        if (__builtin_mul_overflow(product, e->dims[(int)group->text[k]], &product))
            known = false; /* the input's size decides, later */
    keep[shape->rank] = group->n == 1 ? at : -1;
    shape->dims[shape->rank++] = group->n == 1 || !known ? PL_UNKNOWN : product;
}

static void keep_batch(const groups *g, pl_shape *shape, int64_t *keep)
{
    for (int k = 0; k < g->batch.n; k++) {
        keep[shape->rank] = k;
        shape->dims[shape->rank++] = PL_UNKNOWN;
    }
}

/* Reshapes input i to [batch..., first, second]. */
static int merge(einsum *e, int i, const groups *g, const labels *first, const labels *second)
{
    char text[PL_INNER_NAME_BYTES];
    pl_shape shape = {0};
    int64_t keep[PL_RANK_MAX];
    if (first->n == 1 && second->n == 1)
        return 0;
    keep_batch(g, &shape, keep);
    merge_group(e, first, g->batch.n, &shape, keep);
    merge_group(e, second, g->batch.n + first->n, &shape, keep);
    return pl_graph_reshape_keep(e->graph, name_of(e, false, "reshape", text), e->inputs[i], &shape,
                                 keep, &e->inputs[i], e->reterr);
}

static void split_group(const einsum *e, const labels *group, int at, pl_shape *shape,
                        int64_t *keep)
{
    for (int k = 0; k < group->n; k++) {
        keep[shape->rank] = group->n == 1 ? at : -1;
        shape->dims[shape->rank++] = group->n == 1 ? PL_UNKNOWN : e->dims[(int)group->text[k]];
    }
}

/* Reshapes [batch..., rows, columns] to [batch..., left..., right...]. */
static int split(einsum *e, const groups *g, pl_node **node, bool last)
{
    char text[PL_INNER_NAME_BYTES];
    pl_shape shape = {0};
    int64_t keep[PL_RANK_MAX];
    if (g->left.n == 1 && g->right.n == 1)
        return 0;
    keep_batch(g, &shape, keep);
    split_group(e, &g->left, g->batch.n, &shape, keep);
    split_group(e, &g->right, g->batch.n + 1, &shape, keep);
    return pl_graph_reshape_keep(e->graph, name_of(e, last, "reshape", text), *node, &shape, keep,
                                 node, e->reterr);
}

/* Brings input i into the order [batch, first, second], or reports that it is [batch, second,
 * first], and merges. */
static int arrange(einsum *e, int i, const groups *g, const labels *first, const labels *second,
                   bool *ret_transposed)
{
    labels wanted = join(&g->batch, first, second), other = join(&g->batch, second, first);
    *ret_transposed = same(&e->in[i], &other) && !same(&wanted, &other);
    if (*ret_transposed)
        return merge(e, i, g, second, first);
    int r = permute(e, &e->inputs[i], &e->in[i], &wanted, false);
    return r < 0 ? r : merge(e, i, g, first, second);
}

static int make_product(einsum *e, const groups *g, pl_node **ret_node)
{
    char text[PL_INNER_NAME_BYTES];
    bool ta, tb;
    pl_node *node;
    labels made = join(&g->batch, &g->left, &g->right);
    bool ordered = same(&made, &e->out), whole = g->left.n == 1 && g->right.n == 1;
    int r = arrange(e, 0, g, &g->left, &g->inner, &ta);
    if (r == 0)
        r = arrange(e, 1, g, &g->inner, &g->right, &tb);
    if (r == 0)
        r = pl_graph_matmul(e->graph, name_of(e, ordered && whole, "matmul", text), e->inputs[0],
                            e->inputs[1], ta, tb, &node, e->reterr);
    if (r == 0)
        r = split(e, g, &node, ordered);
    if (r == 0 && !ordered)
        r = permute(e, &node, &made, &e->out, true);
    if (r == 0)
        *ret_node = node;
    return r;
}

static int of_one(einsum *e, pl_node **ret_node)
{
    bool sums = e->in[0].n > e->out.n;
    labels kept = {.n = 0};
    for (int k = 0; k < e->in[0].n; k++)
        if (has(&e->out, e->in[0].text[k]))
            append(&kept, e->in[0].text[k]);
    bool ordered = same(&kept, &e->out);
    int r = sum_lone(e, 0, ordered);
    if (r == 0 && !(sums && ordered))
        r = permute(e, &e->inputs[0], &kept, &e->out, true);
    if (r == 0)
        *ret_node = e->inputs[0];
    return r;
}

static int of_two(einsum *e, pl_node **ret_node)
{
    groups g = make_groups(e);
    int r = check_groups(e, &g);
    if (r == 0)
        r = sum_lone(e, 0, false);
    if (r == 0)
        r = sum_lone(e, 1, false);
    return r < 0 ? r : make_product(e, &g, ret_node);
}

int pl_graph_einsum(pl_graph *graph, const char *name, const char *equation, pl_node *const *inputs,
                    int n_inputs, pl_node **ret_node, pl_error *reterr)
{
    PL_NOT_NULL(graph, reterr);
    PL_NOT_NULL(equation, reterr);
    PL_NOT_NULLS(inputs, n_inputs, reterr);
    PL_NOT_NULL(ret_node, reterr);
    einsum e = {.graph = graph,
                .name = name ? name : "einsum",
                .equation = equation,
                .reterr = reterr,
                .n_inputs = n_inputs};
    if (n_inputs < 1 || n_inputs > 2)
        return fail(&e, "%d inputs: it takes one or two; combine more in several steps", n_inputs);
    memcpy(e.inputs, inputs, (size_t)n_inputs * sizeof *inputs);
    int r = read_equation(&e);
    if (r == 0)
        r = check(&e);
    if (r < 0)
        return r;
    return n_inputs == 1 ? of_one(&e, ret_node) : of_two(&e, ret_node);
}
