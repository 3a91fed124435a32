# SPDX-License-Identifier: Apache-2.0
"""Where users' functions run: in a trace, or eagerly; in whatever context a stage is made or run."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plimsoll import _core, errors
from plimsoll.tf._graph import context as _context, trace as _trace
from plimsoll.tf._values.types import TensorSpec

# Raised by a function that cannot be traced, but may well run in Python.
NOT_TRACEABLE = (errors.OperatorNotAllowedInGraphError, NotImplementedError)


class eager:
    """Nodes that are made inside are eager, also while a graph is built around it.

    A class, not a generator: it is entered for each element.
    """

    __slots__ = ("_entered",)

    def __enter__(self) -> None:
        self._entered = None
        if _context.here.graph is not None:
            self._entered = _context.entered(None)
            self._entered.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self._entered is not None:
            self._entered.__exit__(*error)


def record(
    body: Callable[[list], list], specs: Sequence[tuple], name: str
) -> tuple[_core.Function, tuple]:
    """Traces body() with a placeholder for each spec; also returns the variables that it reads, whose
    values are further inputs."""
    wanted = [TensorSpec(shape, dtype) for dtype, shape, _ in specs]
    with eager():
        traced = _trace.trace(lambda *inputs: body(list(inputs)), wanted, name)
    reads = [entry for entry in traced.entries if entry.cell is not _trace.effects]
    if any(entry.is_written or entry.cell.graph is not None for entry in reads):
        raise errors.OperatorNotAllowedInGraphError(
            f"'{name}' assigns to a variable, or reads one of a graph"
        )
    traced.inputs = [*traced.inputs, *(entry.given for entry in reads)]
    traced.entries = [entry for entry in traced.entries if entry.cell is _trace.effects]
    return traced.bound(name), tuple(entry.cell for entry in reads)
