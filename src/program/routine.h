/* SPDX-License-Identifier: Apache-2.0 */
/* Routines, which are called between the graphs of a program: a condition, a loop, a parser, a
 * foreign function. Each class has a file of its own. Counted, atomically; constant once made. */
#ifndef PL_PROGRAM_ROUTINE_H
#define PL_PROGRAM_ROUTINE_H

#include <stdatomic.h>

#include "base/base.h"
#include "plimsoll/program.h"

typedef struct pl_routine pl_routine;

typedef struct pl_routine_class {
    /* Borrows the inputs; writes n_outputs new references into `outputs`. */
    int (*run)(pl_routine *self, pl_evaluator *evaluator, pl_tensor *const *inputs,
               pl_tensor **outputs, const pl_run_options *options, pl_error *reterr);
    void (*free)(pl_routine *self);
    bool draws; /* may contain random ops: its exprs then have a stream */
} pl_routine_class;

/* The first member of the struct of each class. */
struct pl_routine {
    const pl_routine_class *class;
    const char *name; /* in messages: "cond", "while_loop"; static */
    _Atomic int n_refs;
    int n_inputs, n_outputs;
    bool impure;      /* it or its callees have effects: programs keep the order of its calls */
    pl_type *outputs; /* as far as they are known in advance; malloc'ed, freed with the routine */
};

pl_routine *pl_routine_ref(pl_routine *self);

/* With the last reference, evaluators also drop the programs that contain the routine. NULL is
 * allowed. */
void pl_routine_unref(pl_routine *self);

/* Allocates a routine with calloc(): one reference; the caller fills in `outputs`. Frees `self` on
 * failure. */
PL_MUST_CHECK int pl_routine_init(pl_routine *self, const pl_routine_class *class, const char *name,
                                  int n_inputs, int n_outputs, pl_error *reterr);

/* -EINVAL if the value is not one bool. */
PL_MUST_CHECK int pl_routine_read_bool(pl_tensor *value, const char *what, bool *ret_value,
                                       pl_error *reterr);

#endif
