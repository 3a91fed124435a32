/* SPDX-License-Identifier: Apache-2.0 */
/* Lists live tensors, sessions and runs of a runtime. See plimsoll/live.h.
 *
 * Nothing stops meanwhile: lists are locked one after the other, never two at once, and only while
 * their members are copied. */
#include "exec/session/live.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/session/session_private.h"
#include "tensor/pool.h"
#include "tensor/runtime.h"
#include "tensor/tensor.h"

/* The buffers of entries, next to the entries while they are gathered. */
typedef struct gathering {
    pl_live *live;
    pl_buffer **buffers; /* by entry; NULL: none */
    const char *scope;
    int r;
} gathering;

/* ---- entries ---- */

/* Returns the length of a name's scope. Folders of a file are not scopes. */
static size_t scope_bytes(const char *name, const pl_buffer *buffer)
{
    bool is_path = name[0] == '/' || (buffer && buffer->chunk->window.fd >= 0);
    const char *end = is_path ? NULL : strrchr(name, '/');
    return end ? (size_t)(end - name) : 0;
}

static bool is_in_scope(const char *name, const char *scope)
{
    size_t n = strlen(scope);
    return n == 0 || (strncmp(name, scope, n) == 0 && name[n] == '/');
}

static int grow(gathering *g)
{
    pl_live *live = g->live;
    if (live->n_entries < live->n_places)
        return 0;
    size_t n = live->n_places > 0 ? 2 * (size_t)live->n_places : 64;
    pl_live_entry *entries = realloc(live->entries, n * sizeof *entries);
    if (entries)
        live->entries = entries;
    pl_buffer **buffers = realloc(g->buffers, n * sizeof(pl_buffer *));
    if (buffers)
        g->buffers = buffers;
    if (!entries || !buffers)
        return -ENOMEM;
    live->n_places = (int)n;
    return 0;
}

/* Copies the name, which is borrowed; holds a reference to the buffer, if any, from here on. */
static void add_entry(gathering *g, pl_live_entry entry, pl_buffer *buffer)
{
    size_t n_scope = scope_bytes(entry.name, buffer);
    if (g->r < 0 || !is_in_scope(n_scope > 0 ? entry.name : "", g->scope))
        return;
    g->r = grow(g);
    char *name = strdup(entry.name), *scope = strndup(entry.name, n_scope);
    if (g->r < 0 || !name || !scope) {
        g->r = -ENOMEM;
        free(name);
        free(scope);
        return;
    }
    entry.name = name;
    entry.scope = scope;
    g->buffers[g->live->n_entries] = buffer ? pl_buffer_ref(buffer) : NULL;
    g->live->entries[g->live->n_entries++] = entry;
}

static void add_tensor(gathering *g, pl_tensor *tensor)
{
    pl_live_entry entry = {.kind = (pl_live_kind)atomic_load(&tensor->kind),
                           .name = pl_tensor_label(tensor),
                           .session = tensor->session,
                           .dtype = tensor->dtype,
                           .shape = tensor->shape,
                           .bytes = pl_tensor_bytes(tensor),
                           .n_refs = atomic_load(&tensor->n_refs),
                           .tensor = tensor};
    if (entry.kind != PL_LIVE_VARIABLE)
        entry.session = 0;
    if (entry.n_refs > 0) /* else its last user is just releasing it */
        add_entry(g, entry, tensor->buffer);
}

static void gather_tensors(gathering *g, pl_pool *pool)
{
    for (pl_link *link = pl_links_lock(pool->tensors); link; link = link->after)
        add_tensor(g, (pl_tensor *)((char *)link - offsetof(pl_tensor, link)));
    pl_links_unlock(pool->tensors);
}

static void look_at_buffers(gathering *g)
{
    static const pl_live_where where[] = {
        [PL_RESIDENT] = PL_LIVE_MEMORY, [PL_SPILLED] = PL_LIVE_SPILL, [PL_WINDOW] = PL_LIVE_FILE};
    for (int i = 0; i < g->live->n_entries; i++) {
        if (!g->buffers[i])
            continue;
        pl_buffer_info info = pl_buffer_look(g->buffers[i]);
        g->live->entries[i].where = where[info.where];
        g->live->entries[i].pinned = info.pinned;
    }
}

/* ---- sessions and runs ---- */

/* Call with the session's lock held. */
static void add_session(gathering *g, const pl_session *session)
{
    char name[32];
    snprintf(name, sizeof name, "session %llu", (unsigned long long)session->number);
    pl_live_entry entry = {
        .kind = PL_LIVE_SESSION, .name = name, .session = session->number, .n_refs = 1};
    for (int i = 0; i < session->n_nodes; i++)
        if (session->variables[i])
            entry.bytes += pl_tensor_bytes(session->variables[i]);
    add_entry(g, entry, NULL);
    for (const pl_run_mark *run = session->runs; run; run = run->after)
        add_entry(g,
                  (pl_live_entry){.kind = PL_LIVE_RUN,
                                  .name = run->name,
                                  .session = session->number,
                                  .bytes = atomic_load(&run->peak_bytes),
                                  .n_refs = 1},
                  NULL);
}

/* Returns the present sessions, each with a reference, in an array that ends with NULL; NULL if out
 * of memory. */
static pl_session **hold_sessions(pl_links *sessions)
{
    size_t n = 0;
    pl_link *first = pl_links_lock(sessions);
    for (pl_link *link = first; link; link = link->after)
        n++;
    pl_session **held = calloc(n + 1, sizeof(pl_session *));
    n = 0;
    for (pl_link *link = first; held && link; link = link->after) {
        pl_session *session = (pl_session *)((char *)link - offsetof(pl_session, in_runtime));
        if (pl_session_try_ref(session))
            held[n++] = session;
    }
    pl_links_unlock(sessions);
    return held;
}

static void gather_sessions(gathering *g, pl_runtime *runtime)
{
    pl_session **held = hold_sessions(runtime->sessions);
    if (!held)
        g->r = -ENOMEM;
    for (pl_session **at = held; at && *at; at++) {
        pl_session *session = *at;
        pthread_mutex_lock(&session->mu);
        if (session->state == PL_SESSION_OPEN)
            add_session(g, session);
        pthread_mutex_unlock(&session->mu);
        pl_session_unref(session);
    }
    free(held);
}

/* ---- totals ---- */

typedef struct row {
    pl_live_entry entry;
    const pl_buffer *buffer;
} row;

/* Among entries of one buffer the first kind counts; within a kind, the largest. */
static int by_buffer(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->buffer != y->buffer)
        return x->buffer < y->buffer ? -1 : 1;
    if (x->entry.kind != y->entry.kind)
        return x->entry.kind < y->entry.kind ? -1 : 1;
    return x->entry.bytes > y->entry.bytes ? -1 : x->entry.bytes < y->entry.bytes;
}

static int by_name(const void *a, const void *b)
{
    const pl_live_entry *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    int order = strcmp(x->scope, y->scope);
    if (order == 0)
        order = strcmp(x->name, y->name);
    return order != 0 ? order : x->session < y->session ? -1 : x->session > y->session;
}

static int mark_shared(gathering *g)
{
    pl_live *live = g->live;
    row *rows = calloc((size_t)live->n_entries + 1, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    for (int i = 0; i < live->n_entries; i++)
        rows[i] = (row){live->entries[i], g->buffers[i]};
    qsort(rows, (size_t)live->n_entries, sizeof *rows, by_buffer);
    for (int i = 0; i < live->n_entries; i++) {
        live->entries[i] = rows[i].entry;
        live->entries[i].shared = i > 0 && rows[i].buffer && rows[i].buffer == rows[i - 1].buffer;
    }
    free(rows);
    return 0;
}

static int compare_scopes(const void *a, const void *b)
{
    return strcmp(((const pl_live_total *)a)->scope, ((const pl_live_total *)b)->scope);
}

static void add_up(pl_live_total *to, const pl_live_total *more)
{
    to->n += more->n;
    to->memory_bytes += more->memory_bytes;
    to->spill_bytes += more->spill_bytes;
    to->file_bytes += more->file_bytes;
}

/* Makes a row for each entry, then adds up those of one scope. */
static int sum_up(pl_live *live)
{
    live->totals = calloc((size_t)live->n_entries + 1, sizeof *live->totals);
    if (!live->totals)
        return -ENOMEM;
    int n = 0;
    for (int i = 0; i < live->n_entries; i++) {
        const pl_live_entry *entry = &live->entries[i];
        if (entry->where == PL_LIVE_NOWHERE || entry->shared)
            continue;
        live->totals[n++] = (pl_live_total){
            .scope = entry->scope,
            .n = 1,
            .memory_bytes = entry->where == PL_LIVE_MEMORY ? entry->bytes : 0,
            .spill_bytes = entry->where == PL_LIVE_SPILL ? entry->bytes : 0,
            .file_bytes = entry->where == PL_LIVE_FILE ? entry->bytes : 0,
        };
    }
    qsort(live->totals, (size_t)n, sizeof *live->totals, compare_scopes);
    for (int i = 0; i < n; i++) {
        pl_live_total *last = live->n_totals > 0 ? &live->totals[live->n_totals - 1] : NULL;
        if (last && strcmp(last->scope, live->totals[i].scope) == 0)
            add_up(last, &live->totals[i]);
        else
            live->totals[live->n_totals++] = live->totals[i];
    }
    return 0;
}

static int arrange(gathering *g)
{
    int r = g->r;
    if (r == 0)
        r = mark_shared(g);
    if (r < 0)
        return r;
    if (g->live->n_entries > 1)
        qsort(g->live->entries, (size_t)g->live->n_entries, sizeof *g->live->entries, by_name);
    return sum_up(g->live);
}

int pl_live_new(pl_runtime *runtime, const char *scope, pl_live **ret_live, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(ret_live, reterr);
    int r = pl_pool_enter(runtime->pool, reterr);
    if (r < 0)
        return r;
    gathering g = {.live = calloc(1, sizeof(pl_live)), .scope = scope ? scope : ""};
    if (!g.live)
        return pl_error_set(reterr, -ENOMEM, "out of memory while listing live values");
    gather_tensors(&g, runtime->pool);
    gather_sessions(&g, runtime);
    int n_held = g.live->n_entries;
    if (g.r == 0)
        look_at_buffers(&g);
    r = arrange(&g);
    for (int i = 0; i < n_held; i++)
        pl_buffer_unref(g.buffers[i]);
    free(g.buffers);
    if (r < 0) {
        pl_live_free(g.live);
        return pl_error_set(reterr, r, "out of memory while listing live values");
    }
    *ret_live = g.live;
    return 0;
}

void pl_live_free(pl_live *live)
{
    if (!live)
        return;
    for (int i = 0; i < live->n_entries; i++) {
        free((char *)live->entries[i].name);
        free((char *)live->entries[i].scope);
    }
    free(live->entries);
    free(live->totals);
    free(live);
}

int pl_live_n_entries(const pl_live *live)
{
    PL_NULL_GIVES(live, 0);
    return live->n_entries;
}

const pl_live_entry *pl_live_entry_at(const pl_live *live, int i)
{
    PL_NULL_GIVES(live, NULL);
    return i >= 0 && i < live->n_entries ? &live->entries[i] : NULL;
}

int pl_live_n_totals(const pl_live *live)
{
    PL_NULL_GIVES(live, 0);
    return live->n_totals;
}

const pl_live_total *pl_live_total_at(const pl_live *live, int i)
{
    PL_NULL_GIVES(live, NULL);
    return i >= 0 && i < live->n_totals ? &live->totals[i] : NULL;
}
