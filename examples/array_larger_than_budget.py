# SPDX-License-Identifier: Apache-2.0
"""Cause: arrays of 1.2 GB each, loaded whole, and an operator whose shapes do not fit.

The array stays in its file; what computes with it reads it in pieces. The product that was meant
as an example of a large one has shapes that cannot be multiplied: that is said where it is written,
with both of them. With one operand turned around its result would have 4 TB: refused as well.
"""

import os
import tempfile

import numpy as np

import plimsoll
import plimsoll.tf as tf

SHAPE = (10_000, 10_000, 3)

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "large.npy")
    array = np.lib.format.open_memmap(path, "w+", np.float32, SHAPE)
    for row in range(0, SHAPE[0], 500):
        array[row : row + 500] = np.random.default_rng(row).random((500, *SHAPE[1:]), np.float32)
        array.flush()
    del array

    large = plimsoll.open(path)
    print("mean of 1.2 GB:", round(float(tf.reduce_mean(large)), 3))
    try:
        tf.matmul(large, large)
    except tf.errors.InvalidArgumentError as error:
        print("refused:", error.message)
    try:
        tf.matmul(large, large, transpose_b=True).numpy()
    except tf.errors.ResourceExhaustedError as error:
        print("refused:", error.message)
