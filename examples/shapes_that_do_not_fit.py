# SPDX-License-Identifier: Apache-2.0
"""Cause: operands whose shapes do not fit, found deep in a run.

They are refused where the operator is written, with both shapes and the axis.
"""

import numpy as np

import plimsoll.tf as tf

a = tf.constant(np.random.rand(10, 10))
b = tf.constant(np.random.rand(20, 20))
try:
    tf.add(a, b)
except tf.errors.InvalidArgumentError as error:
    print("refused:", error.message)

total = tf.add(a, b[:10, :10])
with tf.compat.v1.Session() as session:
    print("what fits:", session.run(total).shape)
