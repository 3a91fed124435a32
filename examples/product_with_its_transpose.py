# SPDX-License-Identifier: Apache-2.0
"""Cause: operands and a result that fit one by one, and not together: 400 MB each.

The product is planned before it runs: what it takes at most is known, and stays below the line.
That a matrix is multiplied with itself is seen, and half of the work left out.
"""

import sys

import numpy as np

import plimsoll
import plimsoll.tf as tf

SIDE = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000

large = tf.random.uniform([SIDE, SIDE], seed=1)
result = tf.matmul(large, tf.transpose(large))
print(plimsoll.explain(result))

with tf.compat.v1.Session() as session:
    output = session.run(result)
part = output[:100, :100]
print("result:", output.shape, "symmetric:", np.allclose(part, part.T))
print(f"claimed at most: {plimsoll.budget().peak / 1e6:.0f} MB "
      f"of {plimsoll.budget().line / 1e6:.0f} MB")
