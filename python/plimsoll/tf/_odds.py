# SPDX-License-Identifier: Apache-2.0
"""Small names of tf's own that belong to no other part."""
from __future__ import annotations

import time
from typing import Any, List, Optional

from .. import _core
from . import _context, _trace, _types

__all__ = ["get_current_name_scope", "get_logger", "inside_function", "timestamp", "tuple"]


def get_current_name_scope() -> str:
    """The scope that names made here begin with, without its '/'.

    >>> import plimsoll.tf as tf
    >>> with tf.name_scope("a"), tf.name_scope("b"):
    ...     tf.get_current_name_scope()
    'a/b'
    """
    return _context.scope_here().rstrip("/")


def get_logger() -> Any:
    """Python's logger "tensorflow", whose level programs set; nothing is written to it.

    >>> import plimsoll.tf as tf
    >>> tf.get_logger().name
    'tensorflow'
    """
    import logging

    return logging.getLogger("tensorflow")


def inside_function() -> bool:
    """Is a function being traced?

    >>> import plimsoll.tf as tf
    >>> tf.inside_function()
    False
    """
    return _context.trace_here() is not None


def timestamp(name: Optional[str] = None) -> Any:
    """Seconds since 1970, as float64; in a traced function, of each call.

    >>> import plimsoll.tf as tf
    >>> float(tf.timestamp()) > 1e9
    True
    """
    if _context.here.graph is None:
        return _core.constant(time.time(), _types.float64)

    def now() -> List[Any]:
        return [_core.constant(time.time(), _types.float64)]

    return _trace.effect(now, [], [(_types.float64, ())], name or "Timestamp")[0]


def tuple(tensors: Any, control_inputs: Any = None, name: Optional[str] = None) -> List[Any]:
    """The tensors, each of which is there when all are.

    >>> import plimsoll.tf as tf
    >>> [int(x) for x in tf.tuple([tf.constant(1), tf.constant(2)])]
    [1, 2]
    """
    return [None if one is None else _core.convert(one) for one in tensors]
