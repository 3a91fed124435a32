/* SPDX-License-Identifier: Apache-2.0 */
/* Computes what is pending, when somebody asks for it: see program.h. What Python calls to run
 * things by itself is in run.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/convert/types.h"
#include "python/module/failure.h"
#include "python/program/program_private.h"
#include "python/tensor/run.h"

/* What somebody holds of the inputs is computed along if it takes no more than so much of what is
 * left of the budget, and without a look at that below so many bytes. */
enum { HELD_SHARE = 8 };
#define HELD_BYTES ((uint64_t)1 << 20)

/* ---- what to fetch ---- */

static bool is_pending(const tensor *node)
{
    return !node->value && (node->kind == TENSOR_OP || node->kind == TENSOR_ITEM);
}

/* Does anybody have it, beside the nodes that use it? What is of a graph keeps no value. */
static bool is_held(const tensor *node)
{
    return is_pending(node) && !node->graph && Py_REFCNT(node) > node->uses;
}

/* By place of inner nodes: which are fetched already. NULL with MemoryError. */
static bool *fetch_asked(const node_walk *w, tensor *const *asked, int n_asked, node_list *fetches)
{
    bool *fetched = PyMem_Calloc((size_t)w->inner.n + 1, sizeof *fetched);
    if (!fetched)
        return (bool *)PyErr_NoMemory();
    for (int i = 0; i < n_asked; i++) {
        if (!is_pending(asked[i]) || fetched[~asked[i]->place])
            continue;
        fetched[~asked[i]->place] = true;
        if (nodes_add(fetches, asked[i]) < 0) {
            PyMem_Free(fetched);
            return NULL;
        }
    }
    return fetched;
}

/* Sizes that are not known are those of files and records, which are made as a whole anyway. */
static int fetch_held(const node_walk *w, const bool *fetched, node_list *fetches)
{
    int n_asked = fetches->n;
    uint64_t n_bytes = 0;
    for (int i = 0; i < w->inner.n; i++) {
        tensor *node = w->inner.at[i];
        if (fetched[i] || !is_held(node))
            continue;
        uint64_t more = type_bytes(&node->type);
        n_bytes = more > UINT64_MAX - n_bytes ? UINT64_MAX : n_bytes + more;
        if (nodes_add(fetches, node) < 0)
            return -1;
    }
    pl_runtime *runtime = n_bytes > HELD_BYTES ? module_runtime_if_any() : NULL;
    if (n_bytes > HELD_BYTES && (!runtime || n_bytes > pl_runtime_left_bytes(runtime) / HELD_SHARE))
        fetches->n = n_asked;
    return 0;
}

static int find_fetches(node_walk *w, tensor *const *asked, int n_asked, bool with_held,
                        node_list *fetches)
{
    int r = 0;
    for (int i = 0; r == 0 && i < n_asked; i++)
        if (is_pending(asked[i]) || asked[i]->kind == TENSOR_GIVEN)
            r = walk_add(w, asked[i]);
    bool *fetched = r == 0 ? fetch_asked(w, asked, n_asked, fetches) : NULL;
    if (!fetched)
        return -1;
    if (with_held)
        r = fetch_held(w, fetched, fetches);
    PyMem_Free(fetched);
    return r;
}

/* ---- a run of it ---- */

typedef struct evaluation {
    node_list fetches;  /* referenced once they are all */
    pl_tensor **leaves; /* referenced */
    int n_leaves;
    uint64_t stream;
    program *program;
} evaluation;

static int take_leaves(evaluation *self, const node_walk *walk)
{
    self->leaves = PyMem_Malloc(((size_t)walk->leaves.n + 1) * sizeof(pl_tensor *));
    if (!self->leaves) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < walk->leaves.n; i++)
        self->leaves[self->n_leaves++] = pl_tensor_ref(walk->leaves.at[i]->value);
    for (int i = 0; i < self->fetches.n; i++)
        Py_INCREF((PyObject *)self->fetches.at[i]);
    return 0;
}

static int prepare(evaluation *self, tensor *const *asked, int n_asked, bool with_held)
{
    node_walk w;
    int r = walk_begin(&w, NULL, 0, NULL);
    *self = (evaluation){0};
    if (r == 0)
        r = find_fetches(&w, asked, n_asked, with_held, &self->fetches);
    if (r == 0)
        r = walk_fetch(&w, self->fetches.at, self->fetches.n);
    if (r == 0 && self->fetches.n > 0) {
        self->program = program_of_walk(&w, self->fetches.at, self->fetches.n);
        r = self->program ? take_leaves(self, &w) : -1;
    }
    if (!self->leaves)
        self->fetches.n = 0; /* they are not referenced */
    self->stream = w.first_stream;
    walk_done(&w);
    if (r < 0 && !PyErr_Occurred())
        failure_raise(&w.error);
    return r;
}

static void done(evaluation *self)
{
    for (int i = 0; i < self->n_leaves; i++)
        pl_tensor_unref(self->leaves[i]);
    for (int i = 0; i < self->fetches.n; i++)
        Py_DECREF((PyObject *)self->fetches.at[i]);
    PyMem_Free(self->leaves);
    PyMem_Free(self->fetches.at);
    program_unref(self->program);
}

/* Another thread may have been faster. */
static void settle(const evaluation *self, pl_tensor **values)
{
    for (int i = 0; i < self->fetches.n; i++)
        if (is_pending(self->fetches.at[i]))
            tensor_settle(self->fetches.at[i], values[i]);
        else
            pl_tensor_unref(values[i]);
}

static int run(const evaluation *self, pl_error *reterr)
{
    pl_tensor **values = PyMem_Calloc((size_t)self->fetches.n + 1, sizeof *values);
    if (!values) {
        PyErr_NoMemory();
        return -1;
    }
    run_state state = {.random_stream = self->stream};
    int r = run_program(self->program, self->leaves, NULL, &state, values, reterr);
    if (r == 0)
        settle(self, values);
    PyMem_Free(values);
    return r;
}

/* What is the same as a value that is there is that value: a variable's first one may be as large
 * as the budget, or spilled. */
static void settle_same(tensor *const *asked, int n_asked)
{
    static int op_identity;
    op_identity = op_identity ? op_identity : pl_op_find("identity");
    for (int i = 0; i < n_asked; i++) {
        tensor *node = asked[i];
        if (!node->value && node->kind == TENSOR_OP && node->op == op_identity && !node->graph &&
            !node->device && node->inputs[0]->value)
            tensor_settle(node, pl_tensor_ref(node->inputs[0]->value));
    }
}

int evaluate(tensor *const *asked, int n_asked)
{
    pl_error refused = {0};
    if (!module_runtime())
        return -1;
    settle_same(asked, n_asked);
    if (run_check(asked, n_asked, NULL, &refused) < 0) {
        run_raise(&refused, true);
        return -1;
    }
    for (int with_held = 1; with_held >= 0; with_held--) {
        evaluation e;
        pl_error error = {0};
        int r = prepare(&e, asked, n_asked, with_held);
        bool more = e.fetches.n > n_asked;
        if (r == 0 && e.fetches.n > 0)
            r = run(&e, &error);
        done(&e);
        if (r == 0)
            return 0;
        if (PyErr_Occurred())
            return -1;
        if (r != PL_EBUDGET || !more) { /* without what is held it may fit */
            run_raise(&error, true);
            return -1;
        }
    }
    return -1;
}
