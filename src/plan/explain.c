/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a plan for people or programs to read. Names of nodes need no quoting: see graph.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/device_work.h"
#include "plan/plan.h"
#include "plan/product.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "util/text.h"

static const char *place_name(pl_place place)
{
    static const char *const names[] = {[PL_PLACE_MEMORY] = "memory",
                                        [PL_PLACE_SPILL] = "spill",
                                        [PL_PLACE_FILE] = "file",
                                        [PL_PLACE_DEVICE] = "device"};
    return names[place];
}

static int n_computed(const pl_step *step)
{
    int n = step->kind == PL_STEP_REDUCE || step->kind == PL_STEP_LONG_ROWS;
    for (int i = 0; step->work && i < step->work->n_terms; i++)
        n += step->work->terms[i].input < 0;
    for (int i = 0; i < step->program.n_instrs; i++)
        n += step->program.instrs[i].kind != PL_INSTR_LOAD &&
             step->program.instrs[i].kind != PL_INSTR_PACK;
    return n;
}

/* How a product is computed. */
static const char *tiling_of(const pl_step *step)
{
    return step->product->as_batch ? "batch"
                                   : pl_matmul_strategy_name(step->product->plan.strategy);
}

static const char *device_name(const pl_step *step)
{
    return step->work ? step->work->device_name : "/CPU:0";
}

/* Checks the step's own node only; the list below the table covers the nodes inside the step. */
static bool fell_back(const pl_plan *plan, const pl_step *step)
{
    const char *asked = plan->device_of ? step->node->device : NULL;
    return asked && pl_node_computes(step->node) && strcmp(asked, device_name(step)) != 0;
}

static void write_text(const pl_plan *plan, FILE *to)
{
    fprintf(to, "peak %s of %s, disk %s, %.3g flops, %d steps\n", PL_SIZE(plan->peak_bytes),
            PL_SIZE(plan->budget_bytes), PL_SIZE(plan->disk_bytes), plan->flops, plan->n_steps);
    if (plan->n_steps > 0)
        fprintf(to, "%4s  %-28s %-16s %10s %-6s %10s %10s %9s  %s\n", "step", "value", "shape",
                "bytes", "where", "peak", "disk", "flops", "why");
    for (int i = 0; i < plan->n_steps; i++) {
        const pl_step *step = &plan->steps[i];
        const pl_plan_value *value = &plan->values[step->value];
        char name[160];
        snprintf(name, sizeof name, "%s '%s'", step->node->op->name, step->node->name);
        fprintf(to, "%4d  %-28s %-16s %10s %-6s %10s %10s %9.3g  %s", i, name,
                PL_SHAPE_TEXT(&plan->shapes[step->node->number]), PL_SIZE(value->bytes),
                place_name(value->place), PL_SIZE(step->peak_bytes), PL_SIZE(step->disk_bytes),
                step->flops, step->why);
        if (step->why_node)
            fprintf(to, " '%s'", step->why_node->name);
        if (step->kind == PL_STEP_MATMUL)
            fprintf(to, "; %s, %" PRId64, tiling_of(step), step->n_tiles);
        else
            fprintf(to, "; %d ops in %" PRId64 " tiles", n_computed(step), step->n_tiles);
        if (step->work)
            fprintf(to, " on %s, with %s there", device_name(step),
                    PL_SIZE(pl_device_step_bytes(step)));
        if (value->place == PL_PLACE_DEVICE)
            fputs(", where it stays", to);
        if (fell_back(plan, step))
            fprintf(to, " on /CPU:0, not on %s", step->node->device);
        fputc('\n', to);
    }
    for (int i = 0; i < plan->n_fallbacks; i++) {
        char text[256];
        pl_fallback_format(&plan->fallbacks[i], text, sizeof text);
        fprintf(to, "%s ('%s'%s", text, plan->fallbacks[i].node->name,
                plan->fallbacks[i].n_nodes > 1 ? " and others" : "");
        if (plan->fallbacks[i].why == PL_FALLBACK_ROOM)
            fprintf(to, ", which needs at least %s there",
                    PL_SIZE(plan->fallbacks[i].needed_bytes));
        fputs(")\n", to);
    }
}

static void write_json_step(const pl_plan *plan, const pl_step *step, FILE *to)
{
    const pl_plan_value *value = &plan->values[step->value];
    bool is_product = step->kind == PL_STEP_MATMUL;
    fprintf(
        to,
        "{\"op\":\"%s\",%s%s%s\"name\":\"%s\",\"dtype\":\"%s\",\"shape\":%s,\"bytes\":%" PRIu64
        ",\"where\":\"%s\",\"why\":\"%s%s%s\",\"n_ops\":%d,\"n_tiles\":%" PRId64
        ",\"n_workers\":%d,\"n_ahead\":%d,\"scratch_bytes\":%" PRIu64 ",\"peak_bytes\":%" PRIu64
        ",\"disk_bytes\":%" PRIu64 ",\"flops\":%.17g,\"device\":\"%s\",\"device_bytes\":%" PRIu64
        ",\"placed\":\"%s\"}",
        step->node->op->name, is_product ? "\"tiling\":\"" : "", is_product ? tiling_of(step) : "",
        is_product ? "\"," : "", step->node->name, pl_dtype_info_of(step->node->dtype)->name,
        PL_SHAPE_TEXT(&plan->shapes[step->node->number]), value->bytes, place_name(value->place),
        step->why, step->why_node ? " " : "", step->why_node ? step->why_node->name : "",
        n_computed(step), step->n_tiles, step->n_workers, step->n_ahead,
        step->worker_bytes * (uint64_t)pl_step_n_frames(step) + step->shared_bytes,
        step->peak_bytes, step->disk_bytes, step->flops, device_name(step),
        step->work ? pl_device_step_bytes(step) : 0,
        fell_back(plan, step) ? step->node->device : "");
}

static void write_json(const pl_plan *plan, FILE *to)
{
    fprintf(to,
            "{\"schema\":1,\"budget_bytes\":%" PRIu64 ",\"peak_bytes\":%" PRIu64
            ",\"disk_bytes\":%" PRIu64 ",\"flops\":%.17g,\"steps\":[",
            plan->budget_bytes, plan->peak_bytes, plan->disk_bytes, plan->flops);
    for (int i = 0; i < plan->n_steps; i++) {
        if (i > 0)
            fputc(',', to);
        write_json_step(plan, &plan->steps[i], to);
    }
    fputs("]}\n", to);
}

char *pl_plan_explain(const pl_plan *plan, bool as_json)
{
    pl_text text;
    if (!pl_text_open(&text))
        return NULL;
    (as_json ? write_json : write_text)(plan, text.to);
    return pl_text_close(&text);
}
