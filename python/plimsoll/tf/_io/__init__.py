# SPDX-License-Identifier: Apache-2.0
"""Formats that tf.io and tf.train read and write."""
