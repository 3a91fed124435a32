/* SPDX-License-Identifier: Apache-2.0 */
/* See routine.h. */
#include "program/routine.h"

#include <errno.h>
#include <stdlib.h>

#include "program/lazy_program.h"

pl_routine *pl_routine_ref(pl_routine *self)
{
    atomic_fetch_add_explicit(&self->n_refs, 1, memory_order_relaxed);
    return self;
}

/* Cached programs point to a routine without a reference, so they go first. */
void pl_routine_unref(pl_routine *self)
{
    if (!self || atomic_fetch_sub_explicit(&self->n_refs, 1, memory_order_acq_rel) > 1)
        return;
    pl_evaluators_forget(self);
    free(self->outputs);
    self->class->free(self);
}

int pl_routine_init(pl_routine *self, const pl_routine_class *class, const char *name, int n_inputs,
                    int n_outputs, pl_error *reterr)
{
    pl_type *outputs = self ? calloc((size_t)n_outputs + 1, sizeof *outputs) : NULL;
    if (!outputs) {
        free(self);
        return pl_error_set(reterr, -ENOMEM, "%s: out of memory for a call", name);
    }
    *self = (pl_routine){.class = class,
                         .name = name,
                         .n_refs = 1,
                         .n_inputs = n_inputs,
                         .n_outputs = n_outputs,
                         .outputs = outputs};
    return 0;
}

int pl_routine_read_bool(pl_tensor *value, const char *what, bool *ret_value, pl_error *reterr)
{
    uint8_t byte = 0;
    if (pl_tensor_dtype(value) != PL_BOOL || pl_tensor_shape(value)->rank != 0)
        return pl_error_set(reterr, -EINVAL, "%s: the condition is not a scalar of dtype bool",
                            what);
    int r = pl_tensor_read(value, NULL, NULL, &byte, reterr);
    *ret_value = byte != 0;
    return r;
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
uint64_t pl_stream_mix(uint64_t number)
{
    uint64_t z = (number + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}
