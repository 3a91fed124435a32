/* SPDX-License-Identifier: Apache-2.0 */
/* Runs graphs on .npy files, for tests/kernels. One command a line on stdin, one answer a line on
 * stdout: "ok ..." or "refused CODE why".
 *   add OP NAME INPUTS [ATTRIBUTE=KIND:VALUE]...   as graph_words.h says
 *   give NAME window|memory|transposed PATH       as given_files.h says
 *   run CAP THREADS [NAME=PATH | NAME>PATH]...    in a runtime of its own: as a tensor, which is
 *                                     then saved, or straight to the file. Says what was claimed
 *                                     before, its peak before, its peak then, the peak that the
 *                                     plan stated, and what the plan spills
 *   explain CAP THREADS NAME...       the plan as JSON, twice, told from each other */
#include <inttypes.h>

#include "given_files.h"

static int n_constants; /* they belong to the graph, and outlive a run */

static int do_add(void)
{
    pl_node *node;
    return add_node(&node);
}

static int do_give(void)
{
    n_constants += strcmp(pl_node_op(read_given()->node), "constant") == 0;
    return 0;
}

typedef struct situation {
    pl_runtime *runtime;
    pl_session *session;
    pl_feed feeds[GIVEN];
    int n_feeds;
} situation;

static int give(situation *s, const given *g)
{
    pl_tensor *tensor;
    int r = open_given(s->runtime, g, &tensor);
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
        r = give(s, &givens[i]);
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
        split_words(line);
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
