/* SPDX-License-Identifier: Apache-2.0 */
/* What lies between inputs and outputs, to be made anew with others in their place.
 *   own       a node that hangs on the inputs, or is of the same graph as they are
 *   outside   a node that is not own, as far as it is symbolic or of another graph
 *   eager     one that is not own, and pending
 *
 * Links are numbers: of an own node its place, below the number of own nodes; of an input that
 * number and its own; -1 of what stays as it is. Nothing is referenced but by inputs and outputs,
 * which are the caller's to hold. */
#ifndef PL_PYTHON_PROGRAM_BODY_H
#define PL_PYTHON_PROGRAM_BODY_H

#include "python/program/walk.h"

typedef struct body {
    tensor *const *inputs;
    int n_inputs;
    tensor *const *outputs;
    int n_outputs;
    node_list own;     /* inputs before users */
    node_list outside; /* that own nodes or outputs use, each once */
    node_list eager;
    int *links;            /* of the own nodes' inputs, one after the other; then of the outputs */
    int *first;            /* by own node: where its links begin; then the outputs' */
    uint64_t first_stream; /* of own nodes that draw: the lowest, and how many from there */
    uint64_t n_streams;
} body;

/* `graph` (may be NULL) is the inputs'. -1 with MemoryError. */
int body_make(body *self, tensor *const *inputs, int n_inputs, tensor *const *outputs,
              int n_outputs, const PyObject *graph);
void body_done(body *self);

/* The outputs, made of these inputs; a list. Random ops draw from new streams. */
PyObject *body_substitute(const body *self, tensor *const *given);

#endif
