/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack, the protocol by which array libraries share memory: https://dmlc.github.io/dlpack
 *   managed   a description of elements, with a deleter to call when they are no longer needed
 *   capsule   Python's wrapper of one. Named "dltensor" until a consumer takes the contents; then
 *             "used_dltensor", and the consumer calls the deleter
 *
 * Only memory of the CPU is supported. Any thread may call a deleter, with the GIL or without. */
#include <stdlib.h>
#include <string.h>

#include "python/convert/convert.h"
#include "python/module/failure.h"
#include "python/tensor/tensor_slots.h"

/* The ABI of DLPack before version 1, which all its users speak. */
enum { DL_CPU = 1, DL_CPU_PINNED = 3 };
enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_BOOL = 6 };

typedef struct dl_tensor {
    void *data;
    struct {
        int32_t type, number;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major */
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

/* ---- giving out our tensors ---- */

typedef struct given_out {
    dl_managed managed;
    pl_tensor *value; /* pinned */
    int64_t shape[PL_RANK_MAX], strides[PL_RANK_MAX];
} given_out;

static void given_out_free(dl_managed *managed)
{
    given_out *self = (given_out *)managed;
    pl_tensor_unpin(self->value);
    pl_tensor_unref(self->value);
    free(self);
}

static void capsule_free(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor"))
        return; /* taken by the consumer */
    dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    managed->deleter(managed);
}

static int code_of(pl_dtype dtype)
{
    switch (convert_dtype_kind(dtype)) {
    case PL_KIND_BOOL:
        return DL_BOOL;
    case PL_KIND_UNSIGNED:
        return DL_UINT;
    case PL_KIND_SIGNED:
        return DL_INT;
    case PL_KIND_FLOAT:
        return dtype == PL_BF16 ? DL_BFLOAT : DL_FLOAT;
    default:
        return -1;
    }
}

static given_out *give_out(pl_tensor *value)
{
    const void *data;
    int64_t strides[PL_RANK_MAX];
    pl_error error;
    pl_error_init(&error);
    pl_dtype dtype = pl_tensor_dtype(value);
    const pl_shape *shape = pl_tensor_shape(value);
    given_out *self = calloc(1, sizeof *self);
    if (!self)
        return (given_out *)PyErr_NoMemory();
    if (pl_tensor_pin(value, &data, strides, &error) < 0) {
        free(self);
        return (given_out *)failure_raise(&error);
    }
    self->value = pl_tensor_ref(value);
    for (int i = 0; i < shape->rank; i++) {
        self->shape[i] = shape->dims[i];
        self->strides[i] = strides[i] / (int64_t)convert_dtype_bytes(dtype);
    }
    dl_tensor *said = &self->managed.tensor;
    said->data = (void *)data;
    said->device.type = DL_CPU;
    said->ndim = shape->rank;
    said->dtype.code = (uint8_t)code_of(dtype);
    said->dtype.bits = (uint8_t)(8 * convert_dtype_bytes(dtype));
    said->dtype.lanes = 1;
    said->shape = self->shape;
    said->strides = self->strides;
    self->managed.context = self;
    self->managed.deleter = given_out_free;
    return self;
}

PyObject *convert_method_dlpack(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *ignored[4] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OOOO:__dlpack__", names, &ignored[0],
                                     &ignored[1], &ignored[2], &ignored[3]))
        return NULL;
    tensor *node = (tensor *)self;
    if (code_of(node->dtype) < 0)
        return PyErr_Format(PyExc_BufferError, "%s has no DLPack: use .numpy()",
                            convert_dtype_name(node->dtype));
    pl_tensor *value = tensor_value(node, "a DLPack capsule");
    given_out *out = value ? give_out(value) : NULL;
    if (!out)
        return NULL;
    PyObject *capsule = PyCapsule_New(&out->managed, "dltensor", capsule_free);
    if (!capsule)
        given_out_free(&out->managed);
    return capsule;
}

PyObject *convert_method_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return Py_BuildValue("(ii)", DL_CPU, 0);
}

/* ---- taking others' tensors ---- */

static int dtype_of(const dl_tensor *said)
{
    if (said->dtype.lanes != 1)
        return -1;
    for (int dtype = PL_BOOL; dtype < PL_STRING; dtype++)
        if (code_of((pl_dtype)dtype) == said->dtype.code &&
            8 * convert_dtype_bytes((pl_dtype)dtype) == said->dtype.bits)
            return dtype;
    return -1;
}

static int check(const dl_tensor *said)
{
    const char *problem = NULL;
    if (said->device.type != DL_CPU && said->device.type != DL_CPU_PINNED)
        problem = "it is not in the CPU's memory: move it there first";
    else if (dtype_of(said) < 0)
        problem = "there is no such dtype here";
    else if (said->ndim < 0 || said->ndim > PL_RANK_MAX)
        problem = "it has more than 8 axes";
    if (!problem)
        return 0;
    PyErr_Format(PyExc_BufferError,
                 "a DLPack tensor of %d axes, dtype code %d of %d bits, device %d: %s", said->ndim,
                 said->dtype.code, said->dtype.bits, said->device.type, problem);
    return -1;
}

static void layout_of(const dl_tensor *said, pl_shape *shape, int64_t *strides)
{
    int64_t item_bytes = said->dtype.bits / 8, in_order = item_bytes;
    shape->rank = said->ndim;
    for (int i = said->ndim - 1; i >= 0; i--) {
        shape->dims[i] = said->shape[i];
        strides[i] = said->strides ? said->strides[i] * item_bytes : in_order;
        in_order *= said->shape[i];
    }
}

typedef struct taken {
    later base;
    dl_managed *managed;
} taken;

static void give_back(later *self)
{
    dl_managed *managed = ((taken *)self)->managed;
    if (managed->deleter)
        managed->deleter(managed);
    free(self);
}

static void release_taken(void *context)
{
    module_later(context);
}

/* Takes over `managed`, also on failure. */
static pl_tensor *take(dl_managed *managed, const char *what)
{
    taken *self = malloc(sizeof *self);
    pl_runtime *runtime = self ? module_runtime() : (pl_runtime *)PyErr_NoMemory();
    if (!runtime) {
        free(self);
        if (managed->deleter)
            managed->deleter(managed);
        return NULL;
    }
    *self = (taken){.base = {.run = give_back}, .managed = managed};
    const dl_tensor *said = &managed->tensor;
    pl_shape shape;
    int64_t strides[PL_RANK_MAX];
    layout_of(said, &shape, strides);
    pl_tensor *made;
    pl_error error;
    pl_error_init(&error);
    int r = pl_tensor_borrow(runtime, (pl_dtype)dtype_of(said), &shape, strides,
                             (char *)said->data + said->byte_offset, release_taken, self, what,
                             &made, &error);
    return r < 0 ? (pl_tensor *)failure_raise(&error) : made;
}

/* Copies the elements to memory of our own, in row-major order. */
static pl_tensor *copied(pl_tensor *value, const char *what)
{
    int64_t strides[PL_RANK_MAX];
    pl_elements from = {
        .dtype = pl_tensor_dtype(value), .shape = *pl_tensor_shape(value), .strides = strides};
    pl_error error;
    pl_error_init(&error);
    if (pl_tensor_pin(value, &from.data, strides, &error) < 0)
        return (pl_tensor *)failure_raise(&error);
    pl_tensor *made = convert_copy(&from, from.dtype, &from.shape, what);
    pl_tensor_unpin(value);
    return made;
}

pl_tensor *convert_from_dlpack(PyObject *value, bool borrow, const char *what)
{
    PyObject *capsule = PyCapsule_CheckExact(value)
                            ? Py_NewRef(value)
                            : PyObject_CallMethod(value, "__dlpack__", NULL);
    if (!capsule)
        return NULL;
    dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    pl_tensor *made = NULL;
    if (managed && check(&managed->tensor) == 0 &&
        PyCapsule_SetName(capsule, "used_dltensor") == 0) {
        PyCapsule_SetDestructor(capsule, NULL);
        made = take(managed, what);
    }
    Py_DECREF(capsule);
    if (!made || borrow)
        return made;
    pl_tensor *own = copied(made, what);
    pl_tensor_unref(made);
    return own;
}
