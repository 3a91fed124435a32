# SPDX-License-Identifier: Apache-2.0
"""Cause: operators that are placed on a device that this machine has not.

By default they are computed on the CPU, and that is said once. Strict placement refuses, and lists
the devices that there are.
"""

import plimsoll.tf as tf

print("GPUs:", len(tf.config.list_physical_devices("GPU")))
with tf.device("/GPU:7"):
    a = tf.constant([1.0, 2.0, 3.0])
    b = tf.constant([4.0, 5.0, 6.0])
    total = a + b

with tf.compat.v1.Session() as session:
    print("on the CPU instead:", session.run(total))

tf.config.set_soft_device_placement(False)
try:
    with tf.device("/GPU:7"):
        print((a * b).numpy())
except tf.errors.InvalidArgumentError as error:
    print("refused:", error.message)
