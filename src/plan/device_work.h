/* SPDX-License-Identifier: Apache-2.0 */
/* Steps on a device beside the CPU: a chain of elementwise ops of one shape, or a product.
 *   term     an input, a number (fill), or an op on terms before it; the last is the step's node
 *   input    a value; each tile takes the part that it needs, packed
 *   staging  the host memory that transfers go through, in the step's scratch: the inputs in order,
 *            the result, the workspace, and room to transpose an input
 *   stays    said of a value that is on the device from the step that makes it to the last step
 *            that reads it: device_stay.c
 *
 * A value that crosses from one device to another lies in the host's memory or on its disk in
 * between. Pure, except that planning asks a device for the workspace of a product. */
#ifndef PL_PLAN_DEVICE_WORK_H
#define PL_PLAN_DEVICE_WORK_H

#include "plan/plan.h"

/* The most nodes in a step; the kernel of a chain takes no more (device/device_chain.h). */
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
    bool whole;               /* a single tile, because a value that it reads or makes stays */
    uint64_t stay_bytes;      /* of values that stay: they need no buffer in a tile */
    uint64_t claim_bytes;     /* for this step and those after it, up to one that releases it; 0: an
                               * earlier step has claimed for it */
    bool lets_go;             /* releases what was claimed there */
} pl_device_work;

void pl_device_work_free(pl_device_work *work);

/* The alignment of staging (device/device.h). */
enum { PL_DEVICE_ALIGN_BYTES = 128 };

/* The bytes of a buffer rounded up to where the next one begins, as pl_device_job_buffer_bytes()
 * does. */
static inline uint64_t pl_staging_bytes(uint64_t bytes)
{
    return pl_add_sat_u64(pl_max_u64(bytes, 1), PL_DEVICE_ALIGN_BYTES - 1) / PL_DEVICE_ALIGN_BYTES *
           PL_DEVICE_ALIGN_BYTES;
}

/* Returns false for sources, generators and views, which are available wherever they are used, and
 * for assignments. */
bool pl_node_computes(const pl_node *node);

/* Returns where a node is computed: 0 is the CPU. */
static inline int pl_device_of(const pl_plan *plan, const pl_node *node)
{
    return plan->device_of ? plan->device_of[node->number] : 0;
}

/* Decides where each node is computed: place.c. */
PL_MUST_CHECK int pl_plan_place(pl_plan *plan, const pl_plan_request *request, pl_error *reterr);

/* Moves the nodes of a step that does not fit its device to the CPU. The caller must choose again,
 * because the choices assumed the device. */
PL_MUST_CHECK int pl_plan_displace(pl_plan *plan, const pl_step *step, uint64_t needed_bytes,
                                   uint64_t budget_bytes, pl_error *reterr);

/* Places nodes as another plan of the same request did. */
PL_MUST_CHECK int pl_plan_place_as(pl_plan *plan, const pl_plan *other, pl_error *reterr);

/* Writes the fallback as a sentence to `text`, which has `n` bytes. */
void pl_fallback_format(const pl_fallback *fallback, char *text, size_t n);

/* Returns whether `input` must be a value because it is not computed in the same kernel as `node`.
 * `same`: their shapes are equal. */
bool pl_is_apart(const pl_plan *plan, const pl_node *node, const pl_node *input, bool same);

/* Displaces the step where not even the smallest tile fits the device. With strict placement it
 * fails with PL_EBUDGET and the numbers instead. */
PL_MUST_CHECK int pl_device_step_build(pl_plan *plan, pl_step *step, const pl_plan_request *request,
                                       const pl_program_context *context, pl_error *reterr);

/* The device memory used during the step. */
static inline uint64_t pl_device_step_bytes(const pl_step *step)
{
    return pl_add_sat_u64(step->work->device_bytes, step->work->stay_bytes);
}

/* Returns 1 if the step fits in its largest tiles, leaving out values that stay; 0 if not; or an
 * error of the device. */
PL_MUST_CHECK int pl_device_step_fits(const pl_plan *plan, pl_step *step,
                                      const pl_plan_device *device, pl_error *reterr);

/* Returns whether the value of this input stays on the device. The number after the last input is
 * the result. */
static inline bool pl_device_stays(const pl_plan *plan, const pl_step *step, int input)
{
    const pl_device_work *work = step->work;
    int value = input < work->n_inputs ? plan->value_of[work->inputs[input]] : step->value;
    return plan->values[value].place == PL_PLACE_DEVICE;
}

/* ---- device_stay.c ---- */

/* Lets values stay on the device where that makes no tile smaller. */
PL_MUST_CHECK int pl_plan_let_stay(pl_plan *plan, const pl_plan_request *request, pl_error *reterr);

/* Makes the values that would be on a device during step `s` host values again, so that its tiles
 * may be smaller. Returns false if there are none; else *ret_first is the first step that
 * changes. */
bool pl_plan_bring_back(pl_plan *plan, int s, int *ret_first);

/* The host memory of a value that stays, on a device whose memory is the host's. */
uint64_t pl_stay_host_bytes(const pl_plan *plan, const pl_plan_request *request,
                            const pl_plan_value *value);

/* The size of a block for the value, with room to align it. */
static inline uint64_t pl_stay_block_bytes(uint64_t bytes)
{
    return pl_add_sat_u64(pl_staging_bytes(bytes), PL_DEVICE_ALIGN_BYTES);
}

/* Decides which steps claim device memory, and how much, once all tiles are known. */
void pl_plan_claim_devices(pl_plan *plan);

/* pl_step_tiles() for a step on a device. */
PL_MUST_CHECK int pl_device_step_tiles(pl_plan *plan, pl_step *step, const pl_plan_request *request,
                                       int level, uint64_t *ret_bytes, pl_error *reterr);

/* The part of an input that the tile needs: packed, in the input's own shape. */
pl_region pl_device_input_region(const pl_plan *plan, const pl_step *step, int input,
                                 const pl_region *tile);

#endif
