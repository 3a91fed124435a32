# SPDX-License-Identifier: Apache-2.0
"""Cause: a generator over files of which one is missing and one is no .npy file.

An exception in a generator reaches the loop with its class, file and line, and its own traceback as
the cause; a generator that catches it goes on with the next file, as in any Python.
"""

import os
import tempfile

import numpy as np
import sample_data

import plimsoll.tf as tf


def strict(paths):
    for path in paths:
        yield from np.load(path)


def careful(paths):
    for path in paths:
        try:
            array = np.load(path)
        except (OSError, ValueError) as error:
            print(f"{os.path.basename(path.decode())} is skipped: {type(error).__name__}")
            continue
        yield from array


with tempfile.TemporaryDirectory() as folder:
    paths = sample_data.arrays(folder, 3, 1000, 100)
    with open(paths[1], "wb") as text:
        text.write(b"this is not an array")
    paths.append(os.path.join(folder, "nonexistent_file.npy"))

    for generator in (strict, careful):
        rows = tf.data.Dataset.from_generator(generator, args=[paths], output_types=tf.float32)
        n_rows = 0
        try:
            for batch in rows.batch(32).prefetch(tf.data.AUTOTUNE):
                n_rows += batch.shape[0]
        except tf.errors.OpError as error:
            print(f"{type(error).__name__} after {n_rows} rows, of {error.__cause__!r}"[:150])
        else:
            print("rows of the good files:", n_rows)
