# SPDX-License-Identifier: Apache-2.0
"""Cause: a tensor, or an operator's result, that no memory could hold.

Two tensors of 4 TB and their product are described, which costs nothing. Running them is refused
before one byte is allocated, with an error that can be caught; a part of the same product runs.
"""

import time

import plimsoll.tf as tf

with tf.Graph().as_default():
    a = tf.random.normal([10_000, 10_000, 10_000], seed=1)
    b = tf.random.normal([10_000, 10_000, 10_000], seed=2)
    product = tf.matmul(a, b)
    first = tf.matmul(a[0, :500], b[0])

    with tf.compat.v1.Session() as session:
        begun = time.perf_counter()
        try:
            session.run(product)
        except tf.errors.ResourceExhaustedError as error:
            print(f"refused after {1000 * (time.perf_counter() - begun):.0f} ms: {error.message}")
        print("500 rows of the first of its matrices:", session.run(first).shape)
