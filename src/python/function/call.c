/* SPDX-License-Identifier: Apache-2.0 */
#include "python/function/call.h"

#include <stdlib.h>

#include "python/function/call_make.h"
#include "python/module/streams.h"
#include "python/program/program_private.h"

call *call_ref(call *self)
{
    atomic_fetch_add_explicit(&self->n_refs, 1, memory_order_relaxed);
    return self;
}

/* Programs that are kept know a call by its address, so they go before it does. */
void call_unref(call *self)
{
    if (!self || atomic_fetch_sub_explicit(&self->n_refs, 1, memory_order_acq_rel) > 1)
        return;
    program_cache_forget(self);
    free(self->outputs);
    self->class->free(self);
}

int call_init(call *self, const call_class *class, int n_inputs, int n_outputs)
{
    *self = (call){.class = class, .n_refs = 1, .n_inputs = n_inputs, .n_outputs = n_outputs};
    self->impure = class->impure;
    self->outputs = calloc((size_t)n_outputs + 1, sizeof *self->outputs);
    if (!self->outputs)
        PyErr_NoMemory();
    return self->outputs ? 0 : -1;
}

PyObject *call_of_nodes(call *self, tensor *const *const *groups, const int *n_of, int n_groups,
                        PyObject *name)
{
    tensor **inputs = PyMem_Malloc(((size_t)self->n_inputs + 1) * sizeof(tensor *));
    if (!inputs) {
        call_unref(self);
        return PyErr_NoMemory();
    }
    int n = 0;
    for (int i = 0; i < n_groups; i++)
        for (int k = 0; k < n_of[i]; k++)
            inputs[n++] = groups[i][k];
    bool draws = self->class->draws;
    PyObject *made = tensor_call(self, inputs, n, name);
    PyMem_Free(inputs);
    if (made && draws && PyList_GET_SIZE(made) > 0 &&
        streams_give(((tensor *)PyList_GET_ITEM(made, 0))->inputs[0], streams_take(1)) < 0)
        Py_CLEAR(made);
    return made;
}

int call_read_bool(pl_tensor *value, const char *what, bool *ret_value, pl_error *reterr)
{
    uint8_t byte = 0;
    if (pl_tensor_dtype(value) != PL_BOOL || pl_tensor_shape(value)->rank != 0)
        return pl_error_set(reterr, -EINVAL, "%s: the condition is no scalar of dtype bool", what);
    int r = pl_tensor_read(value, NULL, NULL, &byte, reterr);
    *ret_value = byte != 0;
    return r;
}
