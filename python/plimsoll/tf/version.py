# SPDX-License-Identifier: Apache-2.0
"""tf.version: which TensorFlow's names these are, and that the runtime is another."""
from __future__ import annotations

from . import __version__ as VERSION

GIT_VERSION = VERSION
COMPILER_VERSION = "C17"
GRAPH_DEF_VERSION = 0
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0

__all__ = ["COMPILER_VERSION", "GIT_VERSION", "VERSION"]
