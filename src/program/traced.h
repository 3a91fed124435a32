/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of traced functions: see plimsoll/program.h. A run calls the function as a program,
 * which is made when it is first needed; from then on only the reference counts change. */
#ifndef PL_PROGRAM_TRACED_H
#define PL_PROGRAM_TRACED_H

#include "program/body.h"
#include "program/lazy_program.h"

typedef struct pl_traced_program {
    pl_lazy_program *program;
    pl_tensor **values; /* captures; leaves after the inputs and other captures */
    int n_values;
    uint64_t stream; /* the first stream of the program */
} pl_traced_program;

struct pl_traced {
    _Atomic int n_refs;
    int n_inputs, n_outputs;
    pl_expr **inputs, **outputs; /* references */
    pl_body body;
    _Atomic(pl_traced_program *) program; /* set once */
};

PL_MUST_CHECK int pl_traced_prepare(pl_traced *self, pl_evaluator *evaluator,
                                    const pl_run_options *options, pl_error *reterr);

#endif
