/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a graph as told, for tests and for tools/write-ops-page. One command a line on stdin, one
 * answer a line on stdout: what was made ("NAME DTYPE SHAPE" of each node), or "refused CODE why".
 *   add OP NAME INPUTS [ATTRIBUTE=KIND:VALUE]...   as graph_words.h says; - for no name
 *   stack NAME INPUTS AXIS        expand_dims NAME INPUT AXES      einsum NAME INPUTS EQUATION
 *   split NAME INPUT AXIS PARTS   squeeze NAME INPUT AXES          squared_difference NAME INPUTS
 *   push NAME, pop                scopes
 *   infer [NAME=SHAPE]...         all shapes, with these fed: "NAME=SHAPE ..."
 *   region NAME BEGIN:EXTENT,...  after infer: what is needed of each input; - for nothing
 *   flops NAME                    after infer: for one element
 *   dump                          all nodes, a line each, then "end"
 *   attrs                         all nodes, as "OP NAME DTYPE SHAPE INPUTS ATTRIBUTE=VALUE ...";
 *                                 only integers, lists of them and bools
 *   ops                           the table, a row each between tabs, then "end"
 * With the argument "retry" a command that runs out of memory is given once more, and at the end it
 * is told what was not freed. With "time N" it builds and infers a graph of N nodes, and tells how
 * much processor time that took. */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <time.h>

#include "graph/cost.h"
#include "graph/node.h"
#include "graph/op_region.h"
#include "graph_words.h"

enum { NODES = 20000 };

static pl_shape shapes[NODES]; /* of the last infer */

static const char *word(int i)
{
    return i < n_words ? words[i] : "";
}

/* "-" is NULL. */
static const char *name_at(int i)
{
    return strcmp(word(i), "-") == 0 ? NULL : word(i);
}

/* ---- answering ---- */

static void say_node(const pl_node *node)
{
    printf("%s %s %s", node->name, pl_dtype_info_of(node->dtype)->name,
           PL_SHAPE_TEXT(&node->shape));
}

static int answer(int r, pl_node *const *nodes, int n)
{
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        printf("refused %s %s", pl_error_name(r), error.message);
    for (int i = 0; r == 0 && i < n; i++) {
        if (i > 0)
            putchar(' ');
        say_node(nodes[i]);
    }
    putchar('\n');
    return r;
}

/* ---- commands ---- */

static int do_add(void)
{
    pl_node *node;
    return answer(add_node(&node), &node, 1);
}

static int do_composite(void)
{
    pl_node *inputs[WORDS], *made[WORDS];
    int64_t axes[WORDS];
    const char *op = word(0), *name = name_at(1);
    int n = read_nodes(words[2], inputs, WORDS), n_made = 1, r;
    int n_axes = read_ints(word(3), axes, WORDS);
    bool all = strcmp(word(3), "-") == 0;
    if (strcmp(op, "stack") == 0)
        r = pl_graph_stack(graph, name, inputs, n, (int)axes[0], made, &error);
    else if (strcmp(op, "expand_dims") == 0)
        r = pl_graph_expand_dims(graph, name, inputs[0], axes, n_axes, made, &error);
    else if (strcmp(op, "squeeze") == 0)
        r = pl_graph_squeeze(graph, name, inputs[0], all ? NULL : axes, n_axes, made, &error);
    else if (strcmp(op, "einsum") == 0)
        r = pl_graph_einsum(graph, name, word(3), inputs, n, made, &error);
    else if (strcmp(op, "squared_difference") == 0)
        r = pl_graph_squared_difference(graph, name, inputs[0], inputs[1], made, &error);
    else
        r = pl_graph_split(graph, name, inputs[0], (int)axes[0], NULL, n_made = atoi(word(4)), made,
                           &error);
    return answer(r, made, n_made);
}

static int do_push(void)
{
    return answer(pl_graph_push_scope(graph, word(1), &error), NULL, 0);
}

static int do_pop(void)
{
    pl_graph_pop_scope(graph);
    return answer(0, NULL, 0);
}

static int do_infer(void)
{
    pl_feed_shape feeds[WORDS];
    int n_feeds = 0;
    for (int i = 1; i < n_words; i++) {
        char *equals = strchr(words[i], '=');
        *equals = '\0';
        feeds[n_feeds].shape = read_shape(equals + 1);
        feeds[n_feeds++].placeholder = pl_graph_find(graph, words[i]);
    }
    int r = pl_graph_infer(graph, feeds, n_feeds, NULL, shapes, &error);
    for (int i = 0; r == 0 && i < pl_graph_n_nodes(graph); i++)
        printf("%s%s=%s", i > 0 ? " " : "", pl_node_name(pl_graph_node(graph, i)),
               PL_SHAPE_TEXT(&shapes[i]));
    return answer(r, NULL, 0);
}

static int do_region(void)
{
    const pl_node *node = pl_graph_find(graph, word(1));
    int64_t numbers[2 * PL_RANK_MAX];
    pl_region out = {.rank = read_ints(word(2), numbers, 2 * PL_RANK_MAX) / 2}, in;
    for (int k = 0; k < out.rank; k++) {
        out.begin[k] = numbers[2 * k];
        out.extent[k] = numbers[2 * k + 1];
    }
    for (int i = 0; i < node->n_inputs; i++) {
        printf("%s", i > 0 ? " " : "");
        if (!pl_op_region(node, shapes, &out, i, &in)) {
            printf("-");
            continue;
        }
        printf("[");
        for (int k = 0; k < in.rank; k++)
            printf("%s%" PRId64 ":%" PRId64, k > 0 ? "," : "", in.begin[k], in.extent[k]);
        printf("]");
    }
    return answer(0, NULL, 0);
}

static int do_flops(void)
{
    printf("%g", pl_node_flops_per_element(pl_graph_find(graph, word(1)), shapes));
    return answer(0, NULL, 0);
}

static int do_dump(void)
{
    for (int i = 0; i < pl_graph_n_nodes(graph); i++) {
        const pl_node *node = pl_graph_node(graph, i);
        printf("%s: ", node->op->name);
        say_node(node);
        for (int k = 0; k < node->n_inputs; k++)
            printf(" %s", node->inputs[k]->name);
        putchar('\n');
    }
    puts("end");
    return 0;
}

static void say_attr(const pl_attr *attr)
{
    if (attr->type == PL_ATTR_INT || attr->type == PL_ATTR_BOOL)
        printf(" %s=%" PRId64, attr->name, attr->value.i);
    if (attr->type != PL_ATTR_INTS)
        return;
    printf(" %s=", attr->name);
    for (int k = 0; k < attr->n; k++)
        printf("%s%" PRId64, k > 0 ? "," : "", attr->value.values[k]);
}

static int do_attrs(void)
{
    for (int i = 0; i < pl_graph_n_nodes(graph); i++) {
        const pl_node *node = pl_graph_node(graph, i);
        printf("%s ", node->op->name);
        say_node(node);
        putchar(' ');
        for (int k = 0; k < node->n_inputs; k++)
            printf("%s%s", k > 0 ? "," : "", node->inputs[k]->name);
        for (int k = 0; k < node->op->n_attrs; k++)
            say_attr(&node->attrs[k]);
        putchar('\n');
    }
    puts("end");
    return 0;
}

static void say_default(const pl_attr *value)
{
    switch (value->type) {
    case PL_ATTR_NONE:
        break;
    case PL_ATTR_FLOAT:
        printf("%g", value->value.f);
        break;
    case PL_ATTR_BOOL:
        printf("%s", value->value.i ? "true" : "false");
        break;
    case PL_ATTR_DTYPE:
        printf("%s", pl_dtype_info_of(value->value.dtype)->name);
        break;
    case PL_ATTR_STRING:
        printf("\"%s\"", value->value.text);
        break;
    default:
        printf("%" PRId64, value->value.i);
    }
}

/* op, class, min, max, takes, gives, doc, then for each attribute: name, type, required, default,
 * doc. */
static int do_ops(void)
{
    static const char *const types[] = {
        [PL_ATTR_INT] = "integer",   [PL_ATTR_FLOAT] = "float",   [PL_ATTR_BOOL] = "bool",
        [PL_ATTR_DTYPE] = "dtype",   [PL_ATTR_SHAPE] = "shape",   [PL_ATTR_INTS] = "integers",
        [PL_ATTR_STRING] = "string", [PL_ATTR_NUMBER] = "number",
    };
    for (int id = 0; id < PL_N_OPS; id++) {
        const pl_op *op = pl_op_of((pl_op_id)id);
        printf("%s\t%s\t%d\t%d\t%s\t%s\t%s", op->name, pl_op_class_name(op->op_class),
               op->min_inputs, op->max_inputs, pl_op_takes_name(op->takes),
               pl_op_gives_name(op->gives), op->doc);
        for (int k = 0; k < op->n_attrs; k++) {
            const pl_attr_spec *spec = &op->attrs[k];
            printf("\t%s\t%s\t%d\t", spec->name, types[spec->type], spec->required);
            say_default(&spec->fallback);
            printf("\t%s", spec->doc);
        }
        putchar('\n');
    }
    puts("end");
    return 0;
}

static int run(void)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } commands[] = {
        {"add", do_add},     {"push", do_push},     {"pop", do_pop},
        {"infer", do_infer}, {"region", do_region}, {"flops", do_flops},
        {"dump", do_dump},   {"ops", do_ops},       {"attrs", do_attrs},
    };
    for (size_t i = 0; i < PL_COUNT_OF(commands); i++)
        if (strcmp(word(0), commands[i].name) == 0)
            return commands[i].run();
    return do_composite();
}

/* ---- how long it takes ---- */

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* A chain with attributes and broadcasting, and another value to mix in. */
static int build_chain(int n)
{
    pl_node *x, *row;
    int r = pl_graph_placeholder(graph, "x", PL_F32, &PL_SHAPE(PL_UNKNOWN, 64), &x, &error);
    if (r == 0)
        r = pl_graph_placeholder(graph, "row", PL_F32, &PL_SHAPE(64), &row, &error);
    while (r == 0 && pl_graph_n_nodes(graph) < n) {
        int turn = pl_graph_n_nodes(graph) % 4;
        if (turn == 0)
            r = pl_graph_binary(graph, "add", NULL, x, row, &x, &error);
        else if (turn == 1)
            r = pl_graph_unary(graph, "relu", NULL, x, &x, &error);
        else if (turn == 2)
            r = pl_graph_binary(graph, "mul", NULL, x, x, &x, &error);
        else
            r = pl_graph_reduce(graph, "mean", NULL, x, (int64_t[]){1}, 1, true, &x, &error);
    }
    return r;
}

static int tell_time(int n)
{
    double start = now_ms();
    if (n > NODES || pl_graph_new(&graph, &error) < 0 || build_chain(n) < 0)
        return 1;
    double built = now_ms();
    pl_feed_shape fed = {.placeholder = pl_graph_find(graph, "x"), .shape = PL_SHAPE(32, 64)};
    int r = pl_graph_infer(graph, &fed, 1, NULL, shapes, &error);
    double inferred = now_ms();
    pl_graph_free(graph);
    printf("%d nodes: built in %.2f ms, inferred again in %.2f ms, freed in %.2f ms\n", n,
           built - start, inferred - built, now_ms() - inferred);
    return r < 0;
}

int main(int argc, char **argv)
{
    static char line[1 << 16], copy[1 << 16], in[1 << 16], out[1 << 16];
    bool retry = argc > 1 && strcmp(argv[1], "retry") == 0;
    if (argc > 2)
        return tell_time(atoi(argv[2]));
    setvbuf(stdin, in, _IOFBF, sizeof in); /* stdio is not to allocate: it is counted what does */
    setvbuf(stdout, out, _IOFBF, sizeof out);
    if (pl_graph_new(&graph, &error) == 0) /* the first allocation has libc's own with it */
        pl_graph_free(PL_TAKE(graph));
    size_t before = mallinfo2().uordblks;
    int r = pl_graph_new(&graph, &error);
    if (r == -ENOMEM && retry)
        r = pl_graph_new(&graph, &error);
    while (r != -ENOMEM && fgets(line, sizeof line, stdin)) {
        for (int tries = 0; tries <= retry; tries++) {
            strcpy(copy, line);
            split_words(copy);
            r = n_words > 0 ? run() : 0;
            if (r != -ENOMEM)
                break;
        }
    }
    if (r == -ENOMEM)
        printf("no memory: %s\n", error.message);
    pl_graph_free(PL_TAKE(graph));
    if (retry)
        printf("%zu bytes are left\n", mallinfo2().uordblks - before);
    return 0;
}
