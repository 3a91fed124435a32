/* SPDX-License-Identifier: Apache-2.0 */
/* Steps on a device beside the CPU: a chain of elementwise ops of one shape, or a product.
 *   term     an input, a number (fill), or an op on terms before it; the last is the step's node
 *   input    a value, of which each tile takes the part that it needs, packed
 *   staging  where that lies on the host, and then the result: in the step's scratch, in the order
 *            of the inputs; behind them the result, the workspace, and a place to turn an input's
 *            axes
 *   stays    a value that is on the device from the step that makes it to the last that reads it:
 *            device_stay.c
 *
 * Whatever crosses from one device to another is a value in the host's memory, or on its disk.
 * Pure, but that a device is asked for the workspace of a product. */
#ifndef PL_PLAN_DEVICE_WORK_H
#define PL_PLAN_DEVICE_WORK_H

#include "plan/plan.h"

/* Of a step; the kernel of a chain takes no more (device/device_chain.h). */
enum { PL_DEVICE_NODES_MAX = 32 };

typedef struct pl_device_term {
    const pl_node *node;
    int input;       /* number of the input; -1: a number or an op */
    int operands[3]; /* of an op: terms */
} pl_device_term;

typedef struct pl_device_work {
    int device; /* from 0: the request's */
    const char *device_name;
    pl_device_term *terms;
    int n_terms;
    int *inputs; /* numbers of nodes whose values they are */
    int n_inputs;
    int first_level;          /* of tiles that fit the device */
    uint64_t *buffer_bytes;   /* of a tile: of each input, then of the result */
    uint64_t workspace_bytes; /* of a product */
    uint64_t turn_bytes;      /* for inputs whose axes lie in another order */
    uint64_t device_bytes;    /* on the device, of all that */
    bool whole;               /* one tile, because a value stays that it reads or makes */
    uint64_t stay_bytes;      /* of values that stay; they have no buffer of a tile */
    uint64_t claim_bytes;     /* of this step, and those behind it up to one that lets go; 0: one
                                 before it has claimed for it */
    bool lets_go;             /* of what was claimed there */
} pl_device_work;

void pl_device_work_free(pl_device_work *work);

/* The alignment of staging (device/device.h). */
enum { PL_DEVICE_ALIGN_BYTES = 128 };

/* Bytes of a buffer, and where the next one begins: as pl_device_job_buffer_bytes(). */
static inline uint64_t pl_staging_bytes(uint64_t bytes)
{
    return pl_add_sat_u64(pl_max_u64(bytes, 1), PL_DEVICE_ALIGN_BYTES - 1) / PL_DEVICE_ALIGN_BYTES *
           PL_DEVICE_ALIGN_BYTES;
}

/* What is had from outside, made from nothing or only looked at does not, and is wherever it is
 * used; nor does what only gives a variable its value. */
bool pl_node_computes(const pl_node *node);

/* Where a node is computed: 0 is the CPU. */
static inline int pl_device_of(const pl_plan *plan, const pl_node *node)
{
    return plan->device_of ? plan->device_of[node->number] : 0;
}

/* Decides where each node is computed: place.c. */
PL_MUST_CHECK int pl_plan_place(pl_plan *plan, const pl_plan_request *request, pl_error *reterr);

/* A step that its device has no room for: its nodes are computed on the CPU. What was chosen on
 * another premise is to be chosen again. */
PL_MUST_CHECK int pl_plan_displace(pl_plan *plan, const pl_step *step, uint64_t needed_bytes,
                                   uint64_t budget_bytes, pl_error *reterr);

/* As another plan of the same request has placed them. */
PL_MUST_CHECK int pl_plan_place_as(pl_plan *plan, const pl_plan *other, pl_error *reterr);

/* The fallback as a sentence; *ret_text has `n` bytes. */
void pl_fallback_format(const pl_fallback *fallback, char *text, size_t n);

/* Must `input` be a value, because it is not computed in the same kernel as `node`? `same`: their
 * shapes are. */
bool pl_is_apart(const pl_plan *plan, const pl_node *node, const pl_node *input, bool same);

/* Where not even the smallest tile fits the device, the step is displaced; with strict placement it
 * is refused: PL_EBUDGET, with the numbers. */
PL_MUST_CHECK int pl_device_step_build(pl_plan *plan, pl_step *step, const pl_plan_request *request,
                                       const pl_program_context *context, pl_error *reterr);

/* Memory on the device during it. */
static inline uint64_t pl_device_step_bytes(const pl_step *step)
{
    return pl_add_sat_u64(step->work->device_bytes, step->work->stay_bytes);
}

/* Does it, in its largest tiles that do without what stays? 1, 0, or an error of the device. */
PL_MUST_CHECK int pl_device_step_fits(const pl_plan *plan, pl_step *step,
                                      const pl_plan_device *device, pl_error *reterr);

/* Is the value of this input one that stays? The result is the one behind them. */
static inline bool pl_device_stays(const pl_plan *plan, const pl_step *step, int input)
{
    const pl_device_work *work = step->work;
    int value = input < work->n_inputs ? plan->value_of[work->inputs[input]] : step->value;
    return plan->values[value].place == PL_PLACE_DEVICE;
}

/* ---- device_stay.c ---- */

/* Lets values stay where that makes no tile smaller. */
PL_MUST_CHECK int pl_plan_let_stay(pl_plan *plan, const pl_plan_request *request, pl_error *reterr);

/* Those that would be on a device at a step are values on the host again, so that its tiles may be
 * smaller. False if there are none; else *ret_first is the first step that this changes. */
bool pl_plan_bring_back(pl_plan *plan, int s, int *ret_first);

/* The host memory of such a value, where that is the device's as well. */
uint64_t pl_stay_host_bytes(const pl_plan *plan, const pl_plan_request *request,
                            const pl_plan_value *value);

/* A block for it, to be aligned in. */
static inline uint64_t pl_stay_block_bytes(uint64_t bytes)
{
    return pl_add_sat_u64(pl_staging_bytes(bytes), PL_DEVICE_ALIGN_BYTES);
}

/* When all tiles are known: who claims, and how much. */
void pl_plan_claim_devices(pl_plan *plan);

/* pl_step_tiles() of such a step. */
PL_MUST_CHECK int pl_device_step_tiles(pl_plan *plan, pl_step *step, const pl_plan_request *request,
                                       int level, uint64_t *ret_bytes, pl_error *reterr);

/* The tile's part of an input: packed, in the input's own shape. */
pl_region pl_device_input_region(const pl_plan *plan, const pl_step *step, int input,
                                 const pl_region *tile);

#endif
