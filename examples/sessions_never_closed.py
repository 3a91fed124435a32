# SPDX-License-Identifier: Apache-2.0
"""Cause: sessions that are opened and never closed, each with variables of its own.

Every session that is still open can be listed with its bytes. A graph that is forgotten takes its
sessions with it.
"""

import gc

import plimsoll
import plimsoll.tf as tf


def train_once(number):
    with tf.Graph().as_default():
        weights = tf.compat.v1.get_variable("weights", [1000, 1000])
        session = tf.compat.v1.Session()  # and nobody closes it
        session.run(tf.compat.v1.global_variables_initializer())
        return session, session.run(tf.reduce_sum(weights))


def open_sessions():
    return [entry for entry in plimsoll.live() if entry["kind"] == "session"]


opened = [train_once(i)[0] for i in range(20)]
print("sessions that are open:", len(open_sessions()))
print(f"the first was opened at line {open_sessions()[0]['site'][1]}")

opened.clear()
gc.collect()
print("after they were forgotten:", len(open_sessions()))

with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    print("closed at the end of its block:", session.run(tf.constant(42)))
