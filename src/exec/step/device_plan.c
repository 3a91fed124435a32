/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a runtime's devices to the planner. See device_step.h. */
#include <errno.h>
#include <stdlib.h>

#include "device/clblast.h"
#include "device/devices.h"
#include "exec/step/device_step.h"
#include "plan/device_work.h"
#include "tensor/dtype.h"

/* The dtype of its operands; the condition of `where` comes first, and is bool. */
static pl_dtype operand_dtype(const pl_node *node)
{
    return node->inputs[node->n_inputs - 1]->dtype;
}

static bool takes(const void *context, const pl_node *node)
{
    const pl_device *device = context;
    pl_dtype dtype = operand_dtype(node);
    if (!device->has_f64 && (dtype == PL_F64 || node->dtype == PL_F64))
        return false;
    if (node->op->op_class == PL_CLASS_MATMUL)
        return (dtype == PL_F32 || dtype == PL_F64) && pl_clblast_is_there();
    if (node->op->id == PL_OP_cast)
        return pl_device_chain_casts(dtype, node->dtype);
    return pl_device_chain_takes(pl_elementwise_by_name(node->op->name), dtype);
}

static int workspace(const void *context, const pl_node *node, int64_t m, int64_t n, int64_t k,
                     uint64_t *ret_bytes, pl_error *reterr)
{
    pl_device *device = (pl_device *)context; /* which this may open */
    const pl_device_product product = {node->dtype,
                                       m,
                                       n,
                                       k,
                                       node->attrs[PL_ATTR_matmul_transpose_a].value.i != 0,
                                       node->attrs[PL_ATTR_matmul_transpose_b].value.i != 0};
    return pl_clblast_workspace(device, &product, ret_bytes, reterr);
}

static void describe(const pl_device *device, pl_plan_device *ret)
{
    *ret = (pl_plan_device){.name = device->name,
                            .budget_bytes = device->room.limit_bytes,
                            .largest_bytes = device->largest_bytes,
                            .unified = device->unified,
                            .takes = takes,
                            .workspace = workspace,
                            .context = device};
}

int pl_request_devices(pl_runtime *runtime, pl_plan_request *request, pl_plan_device **ret_devices,
                       pl_error *reterr)
{
    *ret_devices = NULL;
    if (!pl_graph_places(request->graph))
        return 0;
    pl_devices *devices = pl_devices_of(runtime);
    int n = devices ? pl_devices_count(devices) : 0;
    pl_plan_device *list = calloc((size_t)n + 1, sizeof *list);
    if (!devices || !list) {
        free(list);
        return pl_error_set(reterr, -ENOMEM, "out of memory while listing devices");
    }
    for (int i = 0; i < n; i++)
        describe(pl_devices_at(devices, i), &list[i]);
    request->devices = *ret_devices = list;
    request->n_devices = n;
    request->strict = pl_devices_are_strict(devices);
    return 0;
}

void pl_plan_tell_fallbacks(pl_runtime *runtime, const pl_plan *plan)
{
    char text[256];
    for (int i = 0; i < plan->n_fallbacks; i++) {
        pl_fallback_format(&plan->fallbacks[i], text, sizeof text);
        pl_devices_say(pl_devices_of(runtime), text);
    }
}
