# SPDX-License-Identifier: Apache-2.0
"""tf.print, which in a traced function prints at each call; and tf.get_logger.

    >>> import sys
    >>> import plimsoll.tf as tf
    >>> tf.print("sum:", tf.constant([1, 2, 3, 4, 5, 6, 7]), output_stream=sys.stdout)
    sum: [1 2 3 ... 5 6 7]
"""
from __future__ import annotations

import sys
from typing import Any, List, Optional

from plimsoll import _core
from plimsoll.tf import nest
from plimsoll.tf._graph import context as _context, trace as _trace
from plimsoll.tf._graph.graph import Tensor, is_tensor

__all__ = ["get_logger", "print"]

_HERE = object()  # the place of a tensor in the output


def print(*inputs: Any, **kwargs: Any) -> Any:
    """Prints to stderr, or `output_stream` (sys.stdout, sys.stderr, "file:///path"), with `sep` and
    `end` as Python's; of each axis `summarize` elements at both ends (-1: all).

    >>> import sys
    >>> tensor = _core.constant([[1.5, 2.0], [3.0, 4.0]])
    >>> print(tensor, output_stream=sys.stdout)
    [[1.5 2]
     [3 4]]
    """
    stream = kwargs.pop("output_stream", sys.stderr)
    summarize, sep, end = kwargs.pop("summarize", 3), kwargs.pop("sep", " "), kwargs.pop("end", "\n")
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {sorted(kwargs)}")
    _check_stream(stream)
    leaves = [leaf for leaf in nest.flatten(inputs) if is_tensor(leaf)]
    tensors = [_core.convert(leaf) for leaf in leaves]
    form = nest.map_structure(lambda leaf: _HERE if is_tensor(leaf) else leaf, list(inputs))

    def write(*values: Any) -> List[Any]:
        known = iter(values)
        filled = nest.map_structure(lambda leaf: next(known) if leaf is _HERE else leaf, form)
        _write(sep.join(_text(one, summarize) for one in filled) + end, stream)
        return []

    if _context.here.graph is None and not any(tensor.is_symbolic for tensor in tensors):
        write(*tensors)
        return None
    made = _trace.effect(write, tensors, [], name or "PrintV2")
    return None if _context.trace_here() is not None else made[-1].op


def _check_stream(stream: Any) -> None:
    if hasattr(stream, "write"):
        return
    if not isinstance(stream, str) or not stream.startswith("file://"):
        raise ValueError(
            f"Unknown output stream {stream!r}: sys.stdout, sys.stderr or 'file:///path'"
        )


def _write(text: str, stream: Any) -> None:
    if hasattr(stream, "write"):
        stream.write(text)
        stream.flush()
    else:
        with open(stream[len("file://") :], "a") as file:
            file.write(text)


def _text(value: Any, summarize: Optional[int]) -> str:
    if isinstance(value, Tensor):
        return _tensor_text(value.numpy(), summarize)
    if nest.is_nested(value):
        return str(nest.map_structure(lambda leaf: _Bare(_text(leaf, summarize)), value))
    return str(value)


class _Bare(str):
    """A text that containers show as it is."""

    def __repr__(self) -> str:
        return str(self)


def _tensor_text(array: Any, summarize: Optional[int]) -> str:
    if getattr(array, "ndim", 0) == 0:
        return _scalar_text(array, quoted=False)
    return _rows_text(array, -1 if summarize is None else summarize, 1)


def _rows_text(array: Any, summarize: int, indent: int) -> str:
    n = len(array)
    if 0 <= summarize and 2 * summarize < n:
        places = [*range(summarize), None, *range(n - summarize, n)]
    else:
        places = list(range(n))
    if array.ndim == 1:
        parts = ["..." if i is None else _scalar_text(array[i], quoted=True) for i in places]
        return "[" + " ".join(parts) + "]"
    parts = [
        "..." if i is None else _rows_text(array[i], summarize, indent + 1) for i in places
    ]
    between = "\n" * (array.ndim - 1) + " " * indent
    return "[" + between.join(parts) + "]"


def _scalar_text(value: Any, quoted: bool) -> str:
    if hasattr(value, "item"):
        kind = value.dtype.kind
        if kind == "b":
            return "1" if value else "0"
        if kind == "f":
            return f"{value.item():.9g}" if value.dtype.itemsize > 4 else _short(value)
        value = value.item()
    if isinstance(value, bytes):
        text = value.decode("utf-8", "backslashreplace")
        return f'"{text}"' if quoted else text
    return str(value)


def _short(value: Any) -> str:
    """The fewest digits that are the same float32, without a zero behind the point."""
    text = str(value)
    return text[:-2] if text.endswith(".0") else text


def get_logger() -> Any:
    """Python's logger "tensorflow", whose level programs set; nothing is written to it.

    >>> import plimsoll.tf as tf
    >>> tf.get_logger().name
    'tensorflow'
    """
    import logging

    return logging.getLogger("tensorflow")
