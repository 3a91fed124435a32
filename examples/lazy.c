/* SPDX-License-Identifier: Apache-2.0 */
/* Lazy evaluation: values are described, and computed when they are asked for.
 *
 *     cc lazy.c $(pkg-config --cflags --libs plimsoll) -o lazy
 *     ./lazy 27
 *
 * prints how many steps the Collatz sequence of a number takes, and whether that is more than 100.
 * The loop and the condition are part of what is described; nothing is computed before
 * pl_evaluate(). */
#include <plimsoll/plimsoll.h>
#include <stdio.h>
#include <stdlib.h>

static const pl_type number = {.dtype = PL_I64, .shape = {.rank = 0}};

/* Each helper passes on a failure of the one before, so that the description reads as one. */
typedef struct maker {
    pl_runtime *runtime;
    int r;
    pl_error error;
    pl_expr *made[64]; /* everything that was described, to unref at the end */
    int n_made;
} maker;

static pl_expr *note(maker *m, pl_expr *expr)
{
    return m->r == 0 ? m->made[m->n_made++] = expr : NULL;
}

static pl_expr *value(maker *m, int64_t of)
{
    pl_tensor *tensor = NULL;
    pl_expr *expr = NULL;
    if (m->r == 0)
        m->r = pl_tensor_new(m->runtime, PL_I64, &number.shape, &of, NULL, &tensor, &m->error);
    if (m->r == 0)
        m->r = pl_expr_of_value(tensor, &expr, &m->error);
    pl_tensor_unref(tensor);
    return note(m, expr);
}

static pl_expr *given(maker *m, const char *name)
{
    pl_expr *expr = NULL;
    if (m->r == 0)
        m->r = pl_expr_placeholder(name, &number, &expr, &m->error);
    return note(m, expr);
}

static pl_expr *op(maker *m, const char *name, pl_expr *a, pl_expr *b)
{
    pl_expr *expr = NULL, *inputs[] = {a, b};
    if (m->r == 0)
        m->r = pl_expr_op(pl_op_find(name), NULL, inputs, 2, NULL, 0, &expr, &m->error);
    return note(m, expr);
}

/* A function of n and the steps so far, that gives one value or two. */
static pl_traced *traced(maker *m, pl_expr *n, pl_expr *steps, pl_expr *first, pl_expr *second)
{
    pl_traced *made = NULL;
    pl_expr *inputs[] = {n, steps}, *outputs[] = {first, second};
    if (m->r == 0)
        m->r = pl_traced_new(inputs, 2, outputs, second ? 2 : 1, 0, &made, &m->error);
    return made;
}

/* n is not 1 yet: then it becomes n / 2, or 3 n + 1 if it is odd. */
static void describe(maker *m, int64_t begin, pl_expr *results[2])
{
    pl_expr *n = given(m, "n"), *steps = given(m, "steps"), *one = value(m, 1), *two = value(m, 2);
    pl_expr *half = op(m, "floordiv", n, two);
    pl_expr *odd = op(m, "add", op(m, "mul", n, value(m, 3)), one);
    pl_traced *goes_on = traced(m, n, steps, op(m, "greater", n, one), NULL);
    pl_traced *if_odd = traced(m, n, steps, odd, NULL), *if_even = traced(m, n, steps, half, NULL);

    pl_expr *next = NULL, *inputs[] = {n, steps}, *items[2] = {NULL, NULL};
    pl_expr *is_odd = op(m, "equal", op(m, "mod", n, two), one);
    if (m->r == 0)
        m->r = pl_expr_cond(is_odd, if_odd, if_even, inputs, 2, 0, &next, &m->error);
    note(m, next);
    pl_traced *body = traced(m, n, steps, next, op(m, "add", steps, one));

    pl_expr *first[] = {value(m, begin), value(m, 0)};
    if (m->r == 0)
        m->r = pl_expr_while(goes_on, body, first, 2, -1, 0, items, &m->error);
    note(m, items[0]);
    results[0] = note(m, items[1]);
    results[1] = op(m, "greater", results[0], value(m, 100));
    pl_traced_unref(goes_on);
    pl_traced_unref(if_odd);
    pl_traced_unref(if_even);
    pl_traced_unref(body);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s NUMBER\n", argv[0]);
        return 2;
    }
    maker m = {0};
    pl_evaluator *evaluator = NULL;
    pl_expr *results[2] = {NULL, NULL};
    int64_t steps = 0;
    unsigned char is_long = 0;
    m.r = pl_runtime_new(NULL, &m.runtime, &m.error);
    if (m.r == 0)
        m.r = pl_evaluator_new(m.runtime, 0, &evaluator, &m.error);
    describe(&m, strtoll(argv[1], NULL, 10), results);
    if (m.r == 0)
        m.r = pl_evaluate(evaluator, results, 2, NULL, &m.error);
    if (m.r == 0)
        m.r = pl_tensor_read(pl_expr_value(results[0]), NULL, NULL, &steps, &m.error);
    if (m.r == 0)
        m.r = pl_tensor_read(pl_expr_value(results[1]), NULL, NULL, &is_long, &m.error);
    if (m.r == 0)
        printf("%lld steps, %s\n", (long long)steps, is_long ? "more than 100" : "at most 100");
    else
        fprintf(stderr, "%s\n", m.error.message);

    for (int i = 0; i < m.n_made; i++)
        pl_expr_unref(m.made[i]);
    pl_evaluator_unref(evaluator);
    pl_runtime_unref(m.runtime);
    return m.r < 0 ? 1 : 0;
}
