/* SPDX-License-Identifier: Apache-2.0 */
/* Operators and conversions, of which tensor_type.c makes the type. */
#ifndef PL_PYTHON_TENSOR_TENSOR_SLOTS_H
#define PL_PYTHON_TENSOR_TENSOR_SLOTS_H

#include "python/module/module.h"

/* tensor_ops.c */
PyObject *tensor_add(PyObject *a, PyObject *b);
PyObject *tensor_subtract(PyObject *a, PyObject *b);
PyObject *tensor_multiply(PyObject *a, PyObject *b);
PyObject *tensor_true_divide(PyObject *a, PyObject *b);
PyObject *tensor_floor_divide(PyObject *a, PyObject *b);
PyObject *tensor_remainder(PyObject *a, PyObject *b);
PyObject *tensor_power(PyObject *a, PyObject *b, PyObject *modulus);
PyObject *tensor_matmul(PyObject *a, PyObject *b);
PyObject *tensor_and(PyObject *a, PyObject *b);
PyObject *tensor_or(PyObject *a, PyObject *b);
PyObject *tensor_xor(PyObject *a, PyObject *b);
PyObject *tensor_shift_left(PyObject *a, PyObject *b);
PyObject *tensor_shift_right(PyObject *a, PyObject *b);
PyObject *tensor_negative(PyObject *x);
PyObject *tensor_positive(PyObject *x);
PyObject *tensor_absolute(PyObject *x);
PyObject *tensor_invert(PyObject *x);
PyObject *tensor_compare(PyObject *a, PyObject *b, int how);

#define TENSOR_OPERATOR_SLOTS                                                                      \
    {Py_nb_add, tensor_add}, {Py_nb_subtract, tensor_subtract}, {Py_nb_multiply, tensor_multiply}, \
        {Py_nb_true_divide, tensor_true_divide}, {Py_nb_floor_divide, tensor_floor_divide},        \
        {Py_nb_remainder, tensor_remainder}, {Py_nb_power, tensor_power},                          \
        {Py_nb_matrix_multiply, tensor_matmul}, {Py_nb_and, tensor_and}, {Py_nb_or, tensor_or},    \
        {Py_nb_xor, tensor_xor}, {Py_nb_lshift, tensor_shift_left},                                \
        {Py_nb_rshift, tensor_shift_right}, {Py_nb_negative, tensor_negative},                     \
        {Py_nb_positive, tensor_positive}, {Py_nb_absolute, tensor_absolute},                      \
        {Py_nb_invert, tensor_invert},                                                             \
    {                                                                                              \
        Py_tp_richcompare, tensor_compare                                                          \
    }

/* convert_numpy.c */
PyObject *convert_method_numpy(PyObject *self, PyObject *unused);
PyObject *convert_method_array(PyObject *self, PyObject *arguments, PyObject *keywords);
int convert_get_buffer(PyObject *self, Py_buffer *view, int flags);
void convert_release_buffer(PyObject *self, Py_buffer *view);

/* dlpack.c */
PyObject *convert_method_dlpack(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *convert_method_dlpack_device(PyObject *self, PyObject *unused);

#endif
