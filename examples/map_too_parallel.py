# SPDX-License-Identifier: Apache-2.0
"""Cause: a costly map that is called by more threads than the machine can bear.

10,000 maps make 1 MB each. As many run at once as there are processors, and room for what they make
and what waits behind them.
"""

import sys

import plimsoll
import plimsoll.tf as tf

N_ELEMENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000


def costly(_):
    return tf.random.normal(shape=(512, 512))


dataset = tf.data.Dataset.range(N_ELEMENTS)
dataset = dataset.map(costly, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(32).prefetch(tf.data.AUTOTUNE)

n = sum(batch.shape[0] for batch in dataset)
print("maps:", n)
print(plimsoll.explain(dataset))
print(f"claimed at most: {plimsoll.budget().peak / 1e6:.0f} MB "
      f"of {plimsoll.budget().line / 1e6:.0f} MB")
