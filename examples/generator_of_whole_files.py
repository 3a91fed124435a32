# SPDX-License-Identifier: Apache-2.0
"""Cause: a generator that loads whole files, one large array at a time.

It runs: each array is one element, and the next is made when there is room for it. What the files
hold need not be loaded to be iterated over: slices of an .npy file are read as they are needed.
"""

import sys
import tempfile

import numpy as np
import sample_data

import plimsoll
import plimsoll.tf as tf

N_ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000  # of 1000 numbers: 200 MB a file


def whole_files(paths):
    for path in paths:
        yield np.load(path)


with tempfile.TemporaryDirectory() as folder:
    paths = sample_data.arrays(folder, 3, N_ROWS, 1000)
    whole = tf.data.Dataset.from_generator(whole_files, args=[paths], output_types=tf.float32)
    print("whole files:", [tuple(array.shape) for array in whole])

    rows = tf.data.Dataset.from_tensor_slices(plimsoll.open(paths[0]))
    for path in paths[1:]:
        rows = rows.concatenate(tf.data.Dataset.from_tensor_slices(plimsoll.open(path)))
    print("the same by rows:", sum(batch.shape[0] for batch in rows.batch(256)))
    print(f"claimed at most: {plimsoll.budget().peak / 1e6:.0f} MB")
