# SPDX-License-Identifier: Apache-2.0
"""Cause: a corrupt, empty or missing file that is met in a background thread.

By default the loop gets an error that names the file, in its place. With the skip policy the good files
are read, and the bad ones are reported by name.
"""

import os
import tempfile

import sample_data

import plimsoll
import plimsoll.tf as tf


def load(path):
    return tf.io.decode_png(tf.io.read_file(path), channels=3)


with tempfile.TemporaryDirectory() as folder:
    paths = sample_data.pictures(folder, 200)
    with open(paths[50], "rb+") as cut_off:
        cut_off.truncate(100)
    with open(paths[100], "wb"):
        pass
    os.unlink(paths[150])

    dataset = tf.data.Dataset.from_tensor_slices(paths)
    dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    try:
        for _ in dataset.batch(32).prefetch(tf.data.AUTOTUNE):
            pass
    except tf.errors.OpError as error:
        print(f"{type(error).__name__}: {error.message}".replace(folder + os.sep, ""))

    careful = dataset.on_error("skip").batch(32).prefetch(tf.data.AUTOTUNE)
    print("pictures that could be read:", sum(batch.shape[0] for batch in careful))
    print(str(plimsoll.errors(careful)).replace(folder + os.sep, ""))
