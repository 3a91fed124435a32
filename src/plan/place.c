/* SPDX-License-Identifier: Apache-2.0 */
/* Decides where nodes are computed: where they were placed, or on the CPU. See
 * plimsoll/device.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/device_work.h"
#include "tensor/dtype.h"

bool pl_node_computes(const pl_node *node)
{
    return node->op->op_class != PL_CLASS_SOURCE && node->op->op_class != PL_CLASS_VIEW &&
           node->op->id != PL_OP_assign;
}

static bool can_be_elsewhere(const pl_node *node)
{
    return node->op->op_class == PL_CLASS_ELEMENTWISE || node->op->op_class == PL_CLASS_MATMUL;
}

/* Writes "/CPU:0, /GPU:0", truncated if too long. */
static void list_devices(const pl_plan_request *request, char *text, size_t n)
{
    size_t at = (size_t)snprintf(text, n, "/CPU:0");
    for (int i = 0; i < request->n_devices && at < n; i++)
        at += (size_t)snprintf(text + at, n - at, ", %s", request->devices[i].name);
}

static int refuse(const pl_plan_request *request, const pl_node *node, bool missing,
                  pl_error *reterr)
{
    char devices[160];
    list_devices(request, devices, sizeof devices);
    if (missing)
        return pl_error_set(reterr, -ENODEV,
                            "%s '%s' is placed on %s, which is not there: there are %s; or allow "
                            "soft placement",
                            node->op->name, node->name, node->device, devices);
    return pl_error_set(reterr, -ENOTSUP,
                        "%s '%s' is placed on %s, which cannot run this op of %s: place it on "
                        "/CPU:0 (there are %s), or allow soft placement",
                        node->op->name, node->name, node->device,
                        pl_dtype_info_of(node->dtype)->name, devices);
}

static bool is_alike(const pl_fallback *a, const pl_fallback *b)
{
    return a->why == b->why && strcmp(a->node->device, b->node->device) == 0 &&
           (a->why == PL_FALLBACK_MISSING ||
            (a->node->op == b->node->op && a->node->dtype == b->node->dtype));
}

static int fall_back(pl_plan *plan, pl_fallback fallback, pl_error *reterr)
{
    for (int i = 0; i < plan->n_fallbacks; i++)
        if (is_alike(&plan->fallbacks[i], &fallback)) {
            plan->fallbacks[i].n_nodes++;
            return 0;
        }
    pl_fallback *grown = realloc(plan->fallbacks, ((size_t)plan->n_fallbacks + 1) * sizeof *grown);
    if (!grown)
        return pl_error_set(reterr, -ENOMEM, "out of memory while planning");
    plan->fallbacks = grown;
    grown[plan->n_fallbacks++] = fallback;
    return 0;
}

/* Runs in the middle of choosing: users of these nodes were chosen with them on the device. */
int pl_plan_displace(pl_plan *plan, const pl_step *step, uint64_t needed_bytes,
                     uint64_t budget_bytes, pl_error *reterr)
{
    int r = 0;
    for (int i = 0; r == 0 && i < step->work->n_terms; i++) {
        const pl_node *node = step->work->terms[i].node;
        if (step->work->terms[i].input >= 0 || pl_device_of(plan, node) == 0)
            continue;
        plan->device_of[node->number] = 0;
        r = fall_back(plan, (pl_fallback){node, 1, PL_FALLBACK_ROOM, needed_bytes, budget_bytes},
                      reterr);
    }
    plan->displaced = true;
    return r;
}

int pl_plan_place_as(pl_plan *plan, const pl_plan *other, pl_error *reterr)
{
    if (!other->device_of)
        return 0;
    size_t n = (size_t)plan->n_nodes + 1, n_fallbacks = (size_t)other->n_fallbacks;
    plan->device_of = calloc(n, sizeof *plan->device_of);
    plan->fallbacks = calloc(n_fallbacks + 1, sizeof *plan->fallbacks);
    if (!plan->device_of || !plan->fallbacks)
        return pl_error_set(reterr, -ENOMEM, "out of memory while planning");
    memcpy(plan->device_of, other->device_of, n * sizeof *plan->device_of);
    if (n_fallbacks > 0)
        memcpy(plan->fallbacks, other->fallbacks, n_fallbacks * sizeof *plan->fallbacks);
    plan->n_fallbacks = other->n_fallbacks;
    return 0;
}

static int place(pl_plan *plan, const pl_plan_request *request, const pl_node *node,
                 pl_error *reterr)
{
    if (!node->device || !pl_node_computes(node) || strcmp(node->device, "/CPU:0") == 0)
        return 0;
    int at = 0;
    while (at < request->n_devices && strcmp(request->devices[at].name, node->device) != 0)
        at++;
    bool missing = at == request->n_devices;
    if (!missing && can_be_elsewhere(node) &&
        request->devices[at].takes(request->devices[at].context, node)) {
        plan->device_of[node->number] = (uint8_t)(1 + at);
        return 0;
    }
    pl_fallback_why why = missing ? PL_FALLBACK_MISSING : PL_FALLBACK_OP;
    return request->strict ? refuse(request, node, missing, reterr)
                           : fall_back(plan, (pl_fallback){node, 1, why, 0, 0}, reterr);
}

static void mark_needed(const pl_plan_request *request, pl_node **fetches, bool *needed)
{
    for (int i = 0; i < request->n_fetches; i++)
        fetches[i] = pl_graph_node(request->graph, request->fetches[i].node->number);
    pl_graph_mark_needed(request->graph, fetches, request->n_fetches, needed);
}

int pl_plan_place(pl_plan *plan, const pl_plan_request *request, pl_error *reterr)
{
    int r = 0;
    if (!pl_graph_places(request->graph))
        return 0;
    bool *needed = calloc((size_t)plan->n_nodes + 1, sizeof *needed);
    pl_node **fetches = calloc((size_t)request->n_fetches + 1, sizeof(pl_node *));
    plan->device_of = calloc((size_t)plan->n_nodes + 1, sizeof *plan->device_of);
    if (needed && fetches && plan->device_of)
        mark_needed(request, fetches, needed);
    else
        r = pl_error_set(reterr, -ENOMEM, "out of memory while planning");
    for (int i = 0; r == 0 && i < plan->n_nodes; i++)
        if (needed[i])
            r = place(plan, request, pl_graph_node(request->graph, i), reterr);
    free(needed);
    free(fetches);
    return r;
}

void pl_fallback_format(const pl_fallback *fallback, char *text, size_t n)
{
    const pl_node *node = fallback->node;
    const char *dtype = pl_dtype_info_of(node->dtype)->name;
    switch (fallback->why) {
    case PL_FALLBACK_MISSING:
        snprintf(text, n, "there is no %s: what is placed on it is computed on /CPU:0",
                 node->device);
        break;
    case PL_FALLBACK_OP:
        snprintf(text, n, "%s cannot run %s of %s: it is computed on /CPU:0", node->device,
                 node->op->name, dtype);
        break;
    case PL_FALLBACK_ROOM:
        snprintf(text, n,
                 "%s, with a budget of %s, has no room for %s of %s: it is computed on "
                 "/CPU:0",
                 node->device, PL_SIZE(fallback->budget_bytes), node->op->name, dtype);
    }
}

bool pl_is_apart(const pl_plan *plan, const pl_node *node, const pl_node *input, bool same)
{
    if (!plan->device_of)
        return false;
    int here = pl_device_of(plan, node), there = pl_device_of(plan, input);
    if (here == 0)
        return there > 0;
    if (input->op->id == PL_OP_fill)
        return false; /* a number in the kernel */
    return here != there || !same || input->op->op_class != PL_CLASS_ELEMENTWISE;
}
