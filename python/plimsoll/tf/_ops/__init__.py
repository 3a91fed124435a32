# SPDX-License-Identifier: Apache-2.0
"""Ops on tensors. tf's own are in here; tf.math, tf.nn and others take theirs from here, too."""
