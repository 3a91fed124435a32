# SPDX-License-Identifier: Apache-2.0
"""Cause: variables that are made in a loop, and that something keeps.

300 variables of 4 MB pass the budget. Those that nobody computes with are moved out to disk, and
come back when they are used: nothing is lost, and live() tells who holds what, by scope.
"""

import plimsoll
import plimsoll.tf as tf

kept = []
for i in range(300):
    with tf.name_scope("experiment"):
        kept.append(tf.Variable(tf.random.normal([1000, 1000], seed=i), name=f"weights_{i}"))

total = tf.add_n([tf.reduce_sum(variable) for variable in kept])
print("sum over all variables:", float(total))

held = plimsoll.live("experiment")
print(f"{len(held)} variables are held, {held.bytes / 1e9:.1f} GB, under a line of "
      f"{plimsoll.budget().line / 1e9:.1f} GB")
kept.clear()
print("after they were let go of:", len(plimsoll.live("experiment")))
