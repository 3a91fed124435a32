# SPDX-License-Identifier: Apache-2.0
"""Cause: decoded pictures that pile up, because prefetch and parallel map know no bound.

100,000 pictures are decoded, resized and batched. How many are on their way at a time follows from
the bytes that the budget can give, from the processors, and from what is gained.
"""

import sys
import tempfile

import sample_data

import plimsoll
import plimsoll.tf as tf

N_PICTURES = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000


def load(path):
    image = tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)
    return tf.cast(tf.image.resize(image, [256, 256]), tf.float32) / 255.0


with tempfile.TemporaryDirectory() as folder:
    paths = sample_data.pictures(folder, 300)
    dataset = tf.data.Dataset.from_tensor_slices([paths[i % 300] for i in range(N_PICTURES)])
    dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.batch(32).prefetch(tf.data.AUTOTUNE)

    n = sum(batch.shape[0] for batch in dataset)

print("pictures:", n)
print(f"claimed at most: {plimsoll.budget().peak / 1e6:.0f} MB "
      f"of {plimsoll.budget().line / 1e6:.0f} MB")
