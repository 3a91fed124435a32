# SPDX-License-Identifier: Apache-2.0
"""Cause: a slow leak: 10,000 tensors of 80 KB that a list keeps, 800 MB in all.

Tensors that nobody computes with are moved out to disk when the line is near, also many small ones,
and come back when they are used.
"""

import numpy as np

import plimsoll
import plimsoll.tf as tf

numbers = np.random.default_rng(1)
kept, total = [], 0.0
for _ in range(10_000):
    array = numbers.random((100, 100))
    total += float(array.sum())
    kept.append(tf.constant(array))

with tf.compat.v1.Session() as session:
    again = sum(float(session.run(tensor).sum()) for tensor in kept)

print("all of them came back:", bool(np.isclose(total, again)))
held = plimsoll.live()
in_memory = sum(entry["bytes"] for entry in held if entry["where"] == "memory")
print(f"held: {held.bytes / 1e6:.0f} MB, of which in memory: {in_memory / 1e6:.0f} MB")
for site, n, n_bytes in held.by_site[:1]:
    print(f"{n} of them were made at {site}")
