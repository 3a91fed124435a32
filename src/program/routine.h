/* SPDX-License-Identifier: Apache-2.0 */
/* What is called between the graphs of a program: a condition, a loop, a parser, a foreign function.
 * Each is a class in a file of its own. Counted, atomically; constant once made. */
#ifndef PL_PROGRAM_ROUTINE_H
#define PL_PROGRAM_ROUTINE_H

#include <stdatomic.h>

#include "base/base.h"
#include "plimsoll/program.h"

typedef struct pl_routine pl_routine;

typedef struct pl_routine_class {
    /* The inputs are borrowed; n_outputs new references into `outputs`. */
    int (*run)(pl_routine *self, pl_evaluator *evaluator, pl_tensor *const *inputs,
               pl_tensor **outputs, const pl_run_options *options, pl_error *reterr);
    void (*free)(pl_routine *self);
    bool draws; /* random ops may be in it: its exprs have a stream, as theirs */
} pl_routine_class;

/* The first member of each class's own struct. */
struct pl_routine {
    const pl_routine_class *class;
    const char *name; /* in messages: "cond", "while_loop"; static */
    _Atomic int n_refs;
    int n_inputs, n_outputs;
    bool impure; /* it has effects, or calls what has: a program calls those in its own order */
    pl_type *outputs; /* as far as they are known before; malloc'ed, freed with it */
};

pl_routine *pl_routine_ref(pl_routine *self);

/* The last one takes the programs that evaluators keep of it along. NULL is allowed. */
void pl_routine_unref(pl_routine *self);

/* Made by calloc(); one reference; `outputs` are to be filled in. On failure `self` is freed. */
PL_MUST_CHECK int pl_routine_init(pl_routine *self, const pl_routine_class *class, const char *name,
                                  int n_inputs, int n_outputs, pl_error *reterr);

/* -EINVAL if it is not one bool. */
PL_MUST_CHECK int pl_routine_read_bool(pl_tensor *value, const char *what, bool *ret_value,
                                       pl_error *reterr);

#endif
