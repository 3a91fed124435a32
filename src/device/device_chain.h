/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles elementwise ops that are computed together into one kernel in OpenCL C.
 *   term      one element: loaded from an input, a number, or computed from earlier terms. The last
 *             term is the result
 *   axis      an axis of the result, outermost first; axes that all inputs treat alike are merged
 *   repeated  said of an axis along which an input has only one element
 *
 * The text contains no sizes, so it is compiled once for all tiles and shapes. It computes what
 * kernels/elementwise/elementwise.h and kernels/elementwise/cast.h specify, bit for bit for
 * integers. Inexact functions are the device's own. Pure; safe from any thread. */
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
    uint64_t bits;     /* NUMBER: its bytes, lowest first */
    uint32_t repeated; /* INPUT: a bit for each axis; bit 0 is the outermost */
} pl_device_chain_term;

/* Every device takes 1 KiB of arguments: pointers of this many inputs, and sizes. */
enum { PL_DEVICE_CHAIN_OPS_MAX = 32, PL_DEVICE_CHAIN_INPUTS_MAX = 2 * PL_DEVICE_CHAIN_OPS_MAX + 1 };
enum { PL_DEVICE_CHAIN_TERMS_MAX = PL_DEVICE_CHAIN_OPS_MAX + PL_DEVICE_CHAIN_INPUTS_MAX };

typedef struct pl_device_chain {
    pl_device_chain_term terms[PL_DEVICE_CHAIN_TERMS_MAX];
    int n_terms;
    int rank; /* axes; at least 1 */
} pl_device_chain;

/* Returns whether the op, or cast, exists for operands of this dtype. Whether f64 works depends on
 * the device. */
bool pl_device_chain_takes(pl_elementwise op, pl_dtype dtype);
bool pl_device_chain_casts(pl_dtype from, pl_dtype to);

/* Returns the text of a kernel, which the caller frees with free(); NULL if out of memory.
 * Arguments of "chain": the number of elements, the extents of all axes but the first, the inputs
 * in order, and the result. */
char *pl_device_chain_source(const pl_device_chain *chain);

#endif
