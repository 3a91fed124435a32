# SPDX-License-Identifier: Apache-2.0
"""What tests of whole programs share: one function of tensors run in every style that the package has.

    eager     each op as it is written
    known     a tf.function whose dimensions are all said
    unknown   a tf.function whose ranks alone are said
    session   a graph of compat.v1 with placeholders whose ranks alone are said
"""
import os

import numpy as np

import plimsoll.tf as tf

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
STYLES = ("eager", "known", "unknown", "session")
# So many times as many programs: PLIMSOLL_TEST_ROUNDS=20 pytest tests/tf/graph/test_random_graphs.py
ROUNDS = int(os.environ.get("PLIMSOLL_TEST_ROUNDS", "1"))
SEED = int(os.environ.get("PLIMSOLL_TEST_SEED", "0"))


def dtype_of(array):
    return tf.string if array.dtype == object else tf.as_dtype(array.dtype)


def run(function, arrays, style):
    """What `function` makes of tensors of these arrays, as a list of arrays."""
    arrays = [np.asarray(array) for array in arrays]
    if style == "session":
        return _in_session(function, arrays)
    tensors = [tf.constant(array) for array in arrays]
    if style != "eager":
        specs = [tf.TensorSpec(a.shape if style == "known" else [None] * a.ndim, dtype_of(a))
                 for a in arrays]
        function = tf.function(function, input_signature=specs)
    return [as_array(one.numpy()) for one in as_list(function(*tensors))]


def _in_session(function, arrays):
    with tf.Graph().as_default():
        fed = [tf.compat.v1.placeholder(dtype_of(a), [None] * a.ndim) for a in arrays]
        fetches = as_list(function(*fed))
        with tf.compat.v1.Session() as session:
            return [as_array(one) for one in session.run(fetches, dict(zip(fed, arrays)))]


def as_array(value):
    """A text alone is bytes."""
    return np.array(value, object) if isinstance(value, bytes) else np.asarray(value)


def as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


# ---- makers of steps ----

OPS = {}


class Unfit(Exception):
    """No value is there that the op takes."""


def op(maker):
    """Adds a maker: of a program, it makes a step's text, its function of tensors, the values that it
    takes, the array that NumPy makes of these, and whether that is rounded."""
    OPS[maker.__name__] = maker
    return maker
