/* SPDX-License-Identifier: Apache-2.0 */
/* Runs graphs on .npy files, for tests/kernels. One command a line on stdin, one answer a line on
 * stdout: "ok ..." or "refused CODE why".
 *   add OP NAME INPUTS [ATTRIBUTE=KIND:VALUE]...   as in graph_tool.c
 *   give NAME window|memory|transposed PATH       a placeholder, constant or variable is this file:
 *                                     where it is, copied to memory, or its axes the other way
 *   run CAP THREADS [NAME=PATH | NAME>PATH]...    in a runtime of its own: as a tensor, which is
 *                                     then saved, or straight to the file. Says what was claimed
 *                                     before, its peak before, its peak then, the peak that the
 *                                     plan stated, and what the plan spills
 *   explain CAP THREADS NAME...       the plan as JSON, twice, told from each other */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plimsoll/session.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

enum { WORDS = 64, GIVEN = 256 };

typedef struct given {
    pl_node *node;
    char how[16], path[512];
} given;

static pl_graph *graph;
static pl_error error;
static given givens[GIVEN];
static int n_givens, n_constants; /* constants belong to the graph, and outlive a run */
static char *words[WORDS];
static int n_words;

/* "1,2,-3", or a shape's "2,?]". */
static int read_ints(const char *text, int64_t *values, int max)
{
    int n = 0;
    while (*text && *text != ']' && n < max) {
        values[n++] = *text == '?' ? PL_UNKNOWN : strtoll(text, NULL, 10);
        text += strcspn(text, ",]");
        text += *text == ',';
    }
    return n;
}

static pl_attr read_attr(char *text, int64_t values[WORDS], pl_shape *shape)
{
    char *name = text, *kind = strchr(text, '='), *value = kind + 3;
    *kind++ = '\0';
    switch (*kind) {
    case 'i':
        return pl_attr_int(name, strtoll(value, NULL, 10));
    case 'f':
        return pl_attr_float(name, strtod(value, NULL));
    case 'b':
        return pl_attr_bool(name, *value == '1');
    case 'd':
        return pl_attr_dtype(name, pl_dtype_by_name(value));
    case 's':
        shape->rank = read_ints(value + 1, shape->dims, PL_RANK_MAX);
        return pl_attr_shape(name, shape);
    case 'l':
        return pl_attr_ints(name, values,
                            strcmp(value, "-") == 0 ? 0 : read_ints(value, values, WORDS));
    default:
        return pl_attr_string(name, value);
    }
}

static int do_add(void)
{
    static int64_t values[WORDS][WORDS];
    static pl_shape shapes[WORDS];
    pl_attr attrs[WORDS];
    pl_node *inputs[WORDS], *node;
    int n_inputs = 0, n_attrs = 0;
    if (strcmp(words[3], "-") != 0)
        for (char *at = words[3], *comma; at; at = comma) {
            comma = strchr(at, ',');
            if (comma)
                *comma++ = '\0';
            inputs[n_inputs++] = pl_graph_find(graph, at);
        }
    for (int i = 4; i < n_words; i++, n_attrs++)
        attrs[n_attrs] = read_attr(words[i], values[n_attrs], &shapes[n_attrs]);
    return pl_graph_add(graph, words[1], words[2], inputs, n_inputs, attrs, n_attrs, &node, &error);
}

static int do_give(void)
{
    given *g = &givens[n_givens++];
    g->node = pl_graph_find(graph, words[1]);
    n_constants += strcmp(pl_node_op(g->node), "constant") == 0;
    snprintf(g->how, sizeof g->how, "%s", words[2]);
    snprintf(g->path, sizeof g->path, "%s", words[3]);
    return 0;
}

static int copy_to_memory(pl_runtime *runtime, pl_tensor **tensor)
{
    pl_tensor *copy;
    int64_t begin[PL_RANK_MAX] = {0};
    const pl_shape *shape = pl_tensor_shape(*tensor);
    void *data = malloc(pl_tensor_bytes(*tensor) + 1);
    int r = pl_tensor_read(*tensor, begin, shape->dims, data, &error);
    if (r == 0)
        r = pl_tensor_new(runtime, pl_tensor_dtype(*tensor), shape, data, "given", &copy, &error);
    free(data);
    if (r == 0) {
        pl_tensor_unref(*tensor);
        *tensor = copy;
    }
    return r;
}

static int turn(pl_tensor **tensor)
{
    pl_tensor *view;
    int axes[PL_RANK_MAX], rank = pl_tensor_shape(*tensor)->rank;
    for (int i = 0; i < rank; i++)
        axes[i] = rank - 1 - i;
    int r = pl_tensor_transpose(*tensor, axes, &view, &error);
    if (r == 0) {
        pl_tensor_unref(*tensor);
        *tensor = view;
    }
    return r;
}

typedef struct situation {
    pl_runtime *runtime;
    pl_session *session;
    pl_feed feeds[GIVEN];
    int n_feeds;
} situation;

static int open_given(situation *s, const given *g)
{
    pl_tensor *tensor = NULL;
    int r = pl_tensor_open_npy(s->runtime, g->path, &tensor, &error);
    if (r == 0 && strcmp(g->how, "memory") == 0)
        r = copy_to_memory(s->runtime, &tensor);
    if (r == 0 && strcmp(g->how, "transposed") == 0)
        r = turn(&tensor);
    if (r == 0 && strcmp(pl_node_op(g->node), "placeholder") == 0) {
        s->feeds[s->n_feeds++] = (pl_feed){g->node, tensor};
        return 0;
    }
    if (r == 0)
        r = strcmp(pl_node_op(g->node), "constant") == 0
                ? pl_constant_set(g->node, tensor, &error)
                : pl_session_set(s->session, g->node, tensor, &error);
    pl_tensor_unref(tensor);
    return r;
}

static int begin(situation *s)
{
    const pl_runtime_options options = {.cap_bytes = strtoull(words[1], NULL, 10),
                                        .n_threads = atoi(words[2])};
    *s = (situation){0};
    int r = pl_runtime_new(&options, &s->runtime, &error);
    if (r == 0)
        r = pl_session_new(graph, s->runtime, &s->session, &error);
    for (int i = 0; r == 0 && i < n_givens; i++)
        r = open_given(s, &givens[i]);
    return r;
}

static void end(situation *s)
{
    pl_session_free(s->session);
    for (int i = 0; i < s->n_feeds; i++)
        pl_tensor_unref(s->feeds[i].tensor);
    if (s->runtime && n_constants == 0 && pl_runtime_claimed_bytes(s->runtime) != 0) {
        fprintf(stderr, "session_tool: %" PRIu64 " bytes are still claimed\n",
                pl_runtime_claimed_bytes(s->runtime));
        exit(1);
    }
    pl_runtime_unref(s->runtime);
}

static int do_run(void)
{
    situation s;
    pl_fetch fetches[WORDS];
    const char *paths[WORDS];
    pl_tensor *tensors[WORDS] = {0};
    pl_run_cost cost = {0};
    int n = 0, r = begin(&s);
    for (int i = 3; i < n_words; i++, n++) {
        char *sign = words[i] + strcspn(words[i], "=>");
        bool straight = *sign == '>';
        *sign = '\0';
        paths[n] = sign + 1;
        fetches[n] = (pl_fetch){pl_graph_find(graph, words[i]), straight ? sign + 1 : NULL};
    }
    uint64_t before = r == 0 ? pl_runtime_claimed_bytes(s.runtime) : 0, peak = 0;
    uint64_t given_peak = r == 0 ? pl_runtime_peak_bytes(s.runtime) : 0;
    if (r == 0)
        r = pl_session_explain(s.session, fetches, n, s.feeds, s.n_feeds, NULL, true, NULL, &cost,
                               &error);
    if (r == 0)
        r = pl_session_run(s.session, fetches, n, s.feeds, s.n_feeds, NULL, tensors, &error);
    if (r == 0)
        peak = pl_runtime_peak_bytes(s.runtime);
    for (int i = 0; i < n; i++) {
        if (r == 0 && tensors[i])
            r = pl_tensor_save_npy(tensors[i], paths[i], &error);
        pl_tensor_unref(tensors[i]);
    }
    end(&s);
    if (r == 0)
        printf("ok %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, before, given_peak,
               peak, cost.peak_bytes, cost.disk_bytes);
    return r;
}

static int do_explain(void)
{
    situation s;
    pl_fetch fetches[WORDS];
    char *texts[2] = {0};
    int n = 0, r = begin(&s);
    for (int i = 3; i < n_words; i++)
        fetches[n++] = (pl_fetch){pl_graph_find(graph, words[i]), NULL};
    for (int i = 0; r == 0 && i < 2; i++)
        r = pl_session_explain(s.session, fetches, n, s.feeds, s.n_feeds, NULL, true, &texts[i],
                               NULL, &error);
    if (r == 0 && strcmp(texts[0], texts[1]) != 0)
        printf("two plans");
    else if (r == 0)
        printf("ok %.*s", (int)strcspn(texts[0], "\n"), texts[0]);
    free(texts[0]);
    free(texts[1]);
    end(&s);
    return r;
}

int main(void)
{
    static char line[1 << 16];
    if (pl_graph_new(&graph, &error) < 0)
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        n_words = 0;
        for (char *next = strtok(line, " \n"); next && n_words < WORDS; next = strtok(NULL, " \n"))
            words[n_words++] = next;
        int r = strcmp(words[0], "add") == 0    ? do_add()
                : strcmp(words[0], "give") == 0 ? do_give()
                : strcmp(words[0], "run") == 0  ? do_run()
                                                : do_explain();
        if (r < 0)
            printf("refused %s %s", pl_error_name(r), error.message);
        else if (strcmp(words[0], "add") == 0 || strcmp(words[0], "give") == 0)
            printf("ok");
        putchar('\n');
        fflush(stdout);
    }
    pl_graph_free(graph);
    return 0;
}
