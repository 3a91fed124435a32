/* SPDX-License-Identifier: Apache-2.0 */
/* Between Python's values and tensors.
 *
 * From: numbers, texts, bytes, nested lists of them, NumPy arrays and scalars, whatever has a
 * buffer, __dlpack__ or __array__. int is int32, or int64 if it does not fit; float is float32; an
 * array keeps its dtype. Arrays from CONVERT_BORROW_BYTES on are not copied: the tensor is their
 * memory, which nobody changes from then on. To: a buffer, NumPy array or DLPack capsule over the
 * tensor's own memory, which stays pinned as long. NumPy is imported when it is first needed, not
 * before, and only asked as Python code would ask it. */
#ifndef PL_PYTHON_CONVERT_CONVERT_H
#define PL_PYTHON_CONVERT_CONVERT_H

#include "python/tensor/tensor.h"

/* Below, a copy is cheaper than to wonder who has the memory. */
#define CONVERT_BORROW_BYTES ((Py_ssize_t)1 << 20)

/* ---- values ---- */

/* `dtype` PL_DTYPE_NONE: as the value has it. Numbers that do not fit a dtype are refused
 * (TypeError as TensorFlow has it), an array's elements are cast where that loses no kind. A new
 * reference, or NULL with an exception. `shape` may be NULL; else the elements are given it, as
 * convert_fit_shape() says. */
pl_tensor *convert_from(PyObject *value, pl_dtype dtype, const pl_shape *shape, const char *what);

/* A node: the object itself if it is one (of that dtype, if one is asked for), what its
 * __plimsoll_tensor__() gives (variables), else a value; lists with tensors in them are packed.
 * `like` may be PL_DTYPE_NONE: the dtype that a Python number, list or array becomes, where it can:
 * the other operand's. */
tensor *convert_to_node(PyObject *value, pl_dtype dtype, pl_dtype like);

/* Would convert_to_node() try? Nothing is computed. */
bool convert_is_possible(PyObject *value);

/* The one element of a tensor that has one: float, int, bool or bytes. */
PyObject *convert_to_scalar(pl_tensor *value);

/* A NumPy array over its memory, read-only; strings become an object array of bytes, bfloat16 a
 * copy in float32. Pins it. */
PyObject *convert_to_numpy(pl_tensor *value);

/* What .numpy() gives: a scalar of NumPy's (bytes for a string) for rank 0; a copy that can be
 * written to of what is small, else as above. */
PyObject *convert_to_numpy_value(pl_tensor *value);

/* ---- dtypes and shapes ---- */

/* DType object, NumPy dtype, Python type, name or number. PL_DTYPE_NONE for None; -1 (as int) with
 * TypeError. */
int convert_dtype(PyObject *value);
PyObject *convert_dtype_object(pl_dtype dtype); /* the DType, new reference */
const char *convert_dtype_name(pl_dtype dtype); /* "float32" */
pl_kind convert_dtype_kind(pl_dtype dtype);
size_t convert_dtype_bytes(pl_dtype dtype); /* of an element; 0: strings */

/* May elements of `from` become `to` unasked? Integers integers or floats, floats floats. */
bool convert_dtype_fits(pl_dtype from, pl_dtype to);

/* None, TensorShape, sequence of int or None, or an int. -1 with an exception. */
int convert_shape(PyObject *value, pl_shape *ret_shape);
PyObject *convert_shape_tuple(const pl_shape *shape); /* tuple of int or None; None: rank unknown */
PyObject *convert_shape_object(const pl_shape *shape); /* the TensorShape */

/* ---- for the files of this noun ---- */

/* Does the value's type have this attribute? Never sets an exception. */
bool convert_type_has(PyObject *value, PyObject *name);

/* Elements of a Python object that has a buffer, or that NumPy can make an array of. */
pl_tensor *convert_from_array(PyObject *value, pl_dtype dtype, const pl_shape *shape,
                              const char *what);

/* A copy of elements in this dtype and shape, on disk if memory has no room for it: without the GIL
 * where that takes long, until Ctrl-C. */
pl_tensor *convert_copy(const pl_elements *from, pl_dtype dtype, const pl_shape *shape,
                        const char *what);

/* What an array's tolist() gave: as convert_from(), but arrays among the items are refused. */
pl_tensor *convert_from_items(PyObject *items, pl_dtype dtype, const pl_shape *shape,
                              const char *what);

/* The dtype of its elements; 0 or less: not known, or none of ours. No exception. */
int convert_array_dtype(PyObject *value);

/* The shape asked for, if it has as many elements; one dimension may be unknown. One element for
 * more of them becomes a scalar, to be spread by the caller. Else TypeError. */
int convert_fit_shape(const pl_shape *wanted, int64_t n_elements, pl_shape *ret_shape);

/* An object with __dlpack__(), or its capsule. Never copied if `borrow`. */
pl_tensor *convert_from_dlpack(PyObject *value, bool borrow, const char *what);

/* Does it have its elements in a buffer, or a way to make an array of it? */
bool convert_is_array(PyObject *value);

/* numpy.NAME, borrowed for ever; NULL with an exception. */
PyObject *convert_numpy(const char *name);

int module_add_types(PyObject *module); /* convert_type.c's part of the module */

/* Puts a Python number into an element. TypeError if it does not fit. */
int convert_number(PyObject *value, pl_dtype dtype, void *element);

/* [a, b, ...] as one tensor: tensor_ops.c. */
tensor *tensor_pack(tensor *const *nodes, int n);

/* Gives back each, and the PyMem array. */
void convert_drop_nodes(tensor **nodes, int n);

#endif
