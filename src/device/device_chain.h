/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops that are computed together, as one kernel in OpenCL C.
 *   term      makes one element: loads it from an input, is a number, or computes it from terms
 *             before it. The last one is the result
 *   axis      of the result, outermost first; several that all inputs treat alike are one
 *   repeated  an axis that an input has only one element of
 *
 * The text has no sizes in it, so that it is compiled once for all tiles and shapes. What it
 * computes is what kernels/elementwise/elementwise.h and kernels/elementwise/cast.h say, to the bit for integers. Functions
 * that are not exact are the device's own. Pure; safe from any thread. */
#ifndef PL_DEVICE_DEVICE_CHAIN_H
#define PL_DEVICE_DEVICE_CHAIN_H

#include "kernels/elementwise/elementwise.h"

typedef enum pl_term_kind {
    PL_TERM_INPUT,
    PL_TERM_NUMBER,
    PL_TERM_OP,
    PL_TERM_CAST,
} pl_term_kind;

typedef struct pl_device_chain_term {
    pl_term_kind kind;
    pl_dtype dtype;    /* of what it makes */
    pl_elementwise op; /* OP */
    int operands[3];   /* OP, CAST: terms */
    uint64_t bits;     /* NUMBER: its bytes, the lowest first */
    uint32_t repeated; /* INPUT: a bit for each axis; bit 0 is the outermost */
} pl_device_chain_term;

/* 1 KiB of arguments is what every device takes: pointers of so many inputs, and sizes. */
enum { PL_DEVICE_CHAIN_OPS_MAX = 32, PL_DEVICE_CHAIN_INPUTS_MAX = 2 * PL_DEVICE_CHAIN_OPS_MAX + 1 };
enum { PL_DEVICE_CHAIN_TERMS_MAX = PL_DEVICE_CHAIN_OPS_MAX + PL_DEVICE_CHAIN_INPUTS_MAX };

typedef struct pl_device_chain {
    pl_device_chain_term terms[PL_DEVICE_CHAIN_TERMS_MAX];
    int n_terms;
    int rank; /* axes; at least 1 */
} pl_device_chain;

/* Is there such an op, or cast, for operands of this dtype? f64 is for the device to say. */
bool pl_device_chain_takes(pl_elementwise op, pl_dtype dtype);
bool pl_device_chain_casts(pl_dtype from, pl_dtype to);

/* The text of a kernel, to free(); NULL if out of memory. Arguments of "chain": the number of
 * elements, extents of all axes but the first, the inputs in their order, and the result. */
char *pl_device_chain_source(const pl_device_chain *chain);

#endif
