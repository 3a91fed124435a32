/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by composite.c and einsum.c: making several nodes under one name. */
#ifndef PL_GRAPH_COMPOSITE_H
#define PL_GRAPH_COMPOSITE_H

#include "plimsoll/graph.h"

/* Enough for any name that people read; inner names below a longer one are cut. */
enum { PL_INNER_NAME_BYTES = 256 };

/* Writes the name of an inner node: "BASE/OP". Returns `text`. */
const char *pl_inner_name(const char *base, const char *op, char text[PL_INNER_NAME_BYTES]);

/* Adds a reshape where axis i of the result is the input's axis keep[i], or shape->dims[i] if that
 * is -1. */
PL_MUST_CHECK int pl_graph_reshape_keep(pl_graph *graph, const char *name, pl_node *x,
                                        const pl_shape *shape, const int64_t *keep,
                                        pl_node **ret_node, pl_error *reterr);

#endif
