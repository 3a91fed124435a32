# SPDX-License-Identifier: Apache-2.0
"""tf.autograph: the accepted part of it. Python's own `if` and `while` over tensors are not turned
into graphs here: a function that uses them runs in Python (see tf.function)."""
from __future__ import annotations

import types
from typing import Any, Callable, Optional

from . import _not_implemented

__all__ = ["experimental", "set_verbosity"]


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Accepted, without effect.

    >>> set_verbosity(0)
    """


def _do_not_convert(func: Optional[Callable[..., Any]] = None) -> Any:
    """The function itself: nothing is converted.

    >>> _do_not_convert(abs) is abs
    True
    """
    return (lambda wrapped: wrapped) if func is None else func


def _set_loop_options(*args: Any, **kwargs: Any) -> None:
    """Accepted; loops in Python have no options."""


experimental = types.SimpleNamespace(
    do_not_convert=_do_not_convert, set_loop_options=_set_loop_options
)

__getattr__ = _not_implemented.getter("tf.autograph")
