/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between Python's values and tensors.
 *
 * From Python: numbers, texts, bytes, nested lists of them, NumPy arrays and scalars, and any
 * object with a buffer, __dlpack__ or __array__. An int becomes int32, or int64 if it does not fit;
 * a float becomes float32; an array keeps its dtype. Arrays of CONVERT_BORROW_BYTES or more are not
 * copied: the tensor uses their memory, which nobody may change from then on.
 *
 * To Python: a buffer, NumPy array or DLPack capsule over the tensor's own memory, which stays
 * pinned as long as it exists. NumPy is imported when it is first needed, and only called as Python
 * code would call it. */
#ifndef PL_PYTHON_CONVERT_CONVERT_H
#define PL_PYTHON_CONVERT_CONVERT_H

#include "python/tensor/tensor.h"

/* Below this, a copy is cheaper than finding out who owns the memory. */
#define CONVERT_BORROW_BYTES ((Py_ssize_t)1 << 20)

/* ---- values ---- */

/* `dtype` PL_DTYPE_NONE: the value's own. Refuses numbers that do not fit the dtype (TypeError, as
 * TensorFlow does); casts an array's elements if that keeps their kind. A new reference, or NULL
 * with an exception. `shape` may be NULL; else the elements get it by the rules of
 * convert_fit_shape(). */
pl_tensor *convert_from(PyObject *value, pl_dtype dtype, const pl_shape *shape, const char *what);

/* A node: the object itself if it is one (of that dtype, if the caller wants one), the result of
 * its __plimsoll_tensor__() (variables), else a value; packs lists with tensors in them. `like` may
 * be PL_DTYPE_NONE: the other operand's dtype, which a Python number, list or array takes if it
 * can. */
tensor *convert_to_node(PyObject *value, pl_dtype dtype, pl_dtype like);

/* Would convert_to_node() try? Computes nothing. */
bool convert_is_possible(PyObject *value);

/* The only element of a tensor with one element: float, int, bool or bytes. */
PyObject *convert_to_scalar(pl_tensor *value);

/* A read-only NumPy array over the tensor's memory, which it pins; strings become an object array
 * of bytes, bfloat16 becomes a float32 copy. */
PyObject *convert_to_numpy(pl_tensor *value);

/* The result of .numpy(): for rank 0 a NumPy scalar (bytes for a string); for a small tensor a copy
 * that can be written to; else as above. */
PyObject *convert_to_numpy_value(pl_tensor *value);

/* ---- dtypes and shapes ---- */

/* Reads a DType object, NumPy dtype, Python type, name or number. PL_DTYPE_NONE for None; -1 (as
 * int) with TypeError. */
int convert_dtype(PyObject *value);
PyObject *convert_dtype_object(pl_dtype dtype); /* the DType, new reference */
const char *convert_dtype_name(pl_dtype dtype); /* "float32" */
pl_kind convert_dtype_kind(pl_dtype dtype);
size_t convert_dtype_bytes(pl_dtype dtype); /* of an element; 0: strings */

/* May elements of `from` be converted to `to` without a request? Integers to integers or floats,
 * floats to floats. */
bool convert_dtype_fits(pl_dtype from, pl_dtype to);

/* Reads None, a TensorShape, a sequence of int or None, or an int. -1 with an exception. */
int convert_shape(PyObject *value, pl_shape *ret_shape);
PyObject *convert_shape_tuple(const pl_shape *shape); /* tuple of int or None; None: rank unknown */
PyObject *convert_shape_object(const pl_shape *shape); /* the TensorShape */

/* ---- for the files of this folder ---- */

/* Does the value's type have this attribute? Never sets an exception. */
bool convert_type_has(PyObject *value, PyObject *name);

/* Converts a Python object that has a buffer, or from which NumPy can make an array. */
pl_tensor *convert_from_array(PyObject *value, pl_dtype dtype, const pl_shape *shape,
                              const char *what);

/* Copies elements to this dtype and shape; to disk if memory has no room. Releases the GIL for long
 * copies, which Ctrl-C ends. */
pl_tensor *convert_copy(const pl_elements *from, pl_dtype dtype, const pl_shape *shape,
                        const char *what);

/* Converts the result of an array's tolist(): like convert_from(), but refuses arrays among the
 * items. */
pl_tensor *convert_from_items(PyObject *items, pl_dtype dtype, const pl_shape *shape,
                              const char *what);

/* The dtype of its elements; 0 or less: unknown or not supported. Sets no exception. */
int convert_array_dtype(PyObject *value);

/* Returns the requested shape if it has as many elements; one dimension may be unknown. A single
 * element for a larger shape becomes a scalar, which the caller broadcasts. Else TypeError. */
int convert_fit_shape(const pl_shape *wanted, int64_t n_elements, pl_shape *ret_shape);

/* Converts an object with __dlpack__(), or its capsule. Never copies if `borrow`. */
pl_tensor *convert_from_dlpack(PyObject *value, bool borrow, const char *what);

/* Does it have a buffer, or a way to make an array of it? */
bool convert_is_array(PyObject *value);

/* numpy.NAME, borrowed and never freed; NULL with an exception. */
PyObject *convert_numpy(const char *name);

int module_add_types(PyObject *module); /* adds the methods of convert_type.c */

/* Writes a Python number into an element. TypeError if it does not fit. */
int convert_number(PyObject *value, pl_dtype dtype, void *element);

/* Stacks [a, b, ...] into one tensor: tensor_ops.c. */
tensor *tensor_pack(tensor *const *nodes, int n);

/* Drops each reference, and frees the PyMem array. */
void convert_drop_nodes(tensor **nodes, int n);

#endif
