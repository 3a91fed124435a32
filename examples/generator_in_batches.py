# SPDX-License-Identifier: Apache-2.0
"""Cause: a generator over datasets of its own, with a prefetch behind it.

What runs ahead is bounded by the budget, whatever the generator makes.
"""

import sys
import tempfile

import numpy as np
import sample_data

import plimsoll
import plimsoll.tf as tf

N_ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000


def batches(paths, batch_size):
    for path in paths:
        yield from tf.data.Dataset.from_tensor_slices(np.load(path)).batch(batch_size)


with tempfile.TemporaryDirectory() as folder:
    paths = sample_data.arrays(folder, 3, N_ROWS, 1000)
    dataset = tf.data.Dataset.from_generator(batches, args=[paths, 32], output_types=tf.float32)
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    print("rows:", sum(batch.shape[0] for batch in dataset))
    print(f"claimed at most: {plimsoll.budget().peak / 1e6:.0f} MB "
          f"of {plimsoll.budget().line / 1e6:.0f} MB")
