/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of sessions and constants of graphs. See plimsoll/session.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exec/session/session_private.h"
#include "graph/node.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

int pl_session_check(const pl_node *node, const pl_tensor *tensor, pl_error *reterr)
{
    if (tensor->dtype != node->dtype || !pl_shape_compatible(&tensor->shape, &node->shape))
        return pl_error_set(reterr, -EINVAL, "%s '%s' is %s %s, and cannot be %s %s",
                            node->op->name, node->name, pl_dtype_info_of(node->dtype)->name,
                            PL_SHAPE_TEXT(&node->shape), pl_dtype_info_of(tensor->dtype)->name,
                            PL_SHAPE_TEXT(&tensor->shape));
    return 0;
}

int pl_session_check_nodes(pl_session *session, pl_node *const *nodes, int n, const char *whose,
                           const char *what, pl_error *reterr)
{
    int r = pl_session_enter(session, NULL, reterr);
    if (r < 0)
        return r;
    for (int i = 0; r == 0 && i < n; i++)
        if (!nodes[i])
            r = pl_error_set(reterr, -EINVAL, "%s: %s %d is NULL", whose, what, i);
        else if (nodes[i]->graph != session->graph)
            r = pl_error_set(reterr, -EINVAL,
                             "%s: %s %d, %s '%.120s', is of another graph than the session: make "
                             "it in the session's",
                             whose, what, i, nodes[i]->op->name, nodes[i]->name);
    pl_session_leave(session, NULL);
    return r;
}

static void free_constant(void *payload)
{
    pl_tensor_let_go(payload);
}

int pl_constant_set(pl_node *constant, pl_tensor *tensor, pl_error *reterr)
{
    PL_NOT_NULL(constant, reterr);
    PL_NOT_NULL(tensor, reterr);
    if (constant->op->id != PL_OP_constant)
        return pl_error_set(reterr, -EINVAL, "%s '%s' is not a constant", constant->op->name,
                            constant->name);
    pl_tensor *held;
    int r = pl_session_check(constant, tensor, reterr);
    if (r == 0)
        r = pl_tensor_hold(tensor, PL_LIVE_CONSTANT, constant->name, 0, &held, reterr);
    if (r == 0)
        pl_node_set_payload(constant, held, free_constant);
    return r;
}

/* ---- variables ---- */

/* Makes room for nodes added since. Call with the lock held. */
static int grow_variables(pl_session *session, int number)
{
    if (number < session->n_nodes)
        return 0;
    int n = pl_graph_n_nodes(session->graph);
    pl_tensor **grown = realloc(session->variables, (size_t)n * sizeof(pl_tensor *));
    if (!grown)
        return -ENOMEM;
    memset(grown + session->n_nodes, 0, (size_t)(n - session->n_nodes) * sizeof(pl_tensor *));
    session->variables = grown;
    session->n_nodes = n;
    return 0;
}

static int check_variable(const pl_session *session, const pl_node *node, pl_error *reterr)
{
    if (node->op->id == PL_OP_variable && node->graph == session->graph)
        return 0;
    return pl_error_set(reterr, -EINVAL, "%s '%s' is not a variable of this session's graph",
                        node->op->name, node->name);
}

int pl_session_hold(pl_session *session, const pl_node *variable, pl_tensor *tensor,
                    pl_tensor **ret_held, pl_error *reterr)
{
    pl_tensor *held;
    int r =
        pl_tensor_hold(tensor, PL_LIVE_VARIABLE, variable->name, session->number, &held, reterr);
    if (r < 0)
        return r;
    pthread_mutex_lock(&session->mu);
    r = grow_variables(session, variable->number);
    pthread_mutex_unlock(&session->mu);
    if (r < 0) {
        pl_tensor_let_go(held);
        return pl_error_set(reterr, r, "out of memory for variable '%s'", variable->name);
    }
    *ret_held = held;
    return 0;
}

void pl_session_put(pl_session *session, const pl_node *variable, pl_tensor *held)
{
    pthread_mutex_lock(&session->mu);
    pl_tensor *before = session->variables[variable->number];
    session->variables[variable->number] = held;
    pthread_mutex_unlock(&session->mu);
    pl_tensor_let_go(before);
}

int pl_session_set(pl_session *session, const pl_node *variable, pl_tensor *tensor,
                   pl_error *reterr)
{
    PL_NOT_NULL(session, reterr);
    PL_NOT_NULL(variable, reterr);
    PL_NOT_NULL(tensor, reterr);
    int r = pl_session_enter(session, NULL, reterr);
    if (r < 0)
        return r;
    r = check_variable(session, variable, reterr);
    if (r == 0)
        r = pl_session_check(variable, tensor, reterr);
    pl_tensor *held;
    if (r == 0)
        r = pl_session_hold(session, variable, tensor, &held, reterr);
    if (r == 0)
        pl_session_put(session, variable, held);
    pl_session_leave(session, NULL);
    return r;
}

pl_tensor *pl_session_variable(pl_session *session, const pl_node *node)
{
    pl_tensor *tensor = NULL;
    pthread_mutex_lock(&session->mu);
    if (node->number < session->n_nodes && session->variables[node->number])
        tensor = pl_tensor_ref(session->variables[node->number]);
    pthread_mutex_unlock(&session->mu);
    return tensor;
}

int pl_session_get(pl_session *session, const pl_node *variable, pl_tensor **ret_tensor,
                   pl_error *reterr)
{
    PL_NOT_NULL(session, reterr);
    PL_NOT_NULL(variable, reterr);
    PL_NOT_NULL(ret_tensor, reterr);
    int r = pl_session_enter(session, NULL, reterr);
    if (r < 0)
        return r;
    r = check_variable(session, variable, reterr);
    if (r == 0)
        *ret_tensor = pl_session_variable(session, variable);
    pl_session_leave(session, NULL);
    return r;
}
