# SPDX-License-Identifier: Apache-2.0
"""Where this thread makes its nodes: in which graph (None: eager), scope and device.

The extension has the same three, for it makes the nodes; they are changed here only, together.
"""
from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional, Tuple

from plimsoll import _core


class _Here(threading.local):
    def __init__(self) -> None:
        self.graph: Any = None
        self.scope = ""  # of eager tensors; a graph has its own. Ends with '/', or is empty
        self.device: Optional[str] = None
        self.sessions: List[Any] = []
        self.trial: Optional[Dict[int, Any]] = None  # see _trace.trial()


here = _Here()
eager_by_default = True  # until disable_eager_execution()
functions_run_eagerly = False  # tf.config.run_functions_eagerly()


def _tell_core() -> None:
    graph = here.graph
    _core.context(graph, here.scope if graph is None else graph._scope, here.device)


@contextmanager
def entered(graph: Any) -> Iterator[Any]:
    """New nodes go there; None: they are eager."""
    before, here.graph = here.graph, graph
    _tell_core()
    try:
        yield graph
    finally:
        here.graph = before
        _tell_core()


def set_graph(graph: Any) -> None:
    """Switches eager execution off for good: disable_eager_execution()."""
    here.graph = graph
    _tell_core()


@contextmanager
def scoped(scope: str) -> Iterator[str]:
    """Names made inside begin with `scope`, which ends with '/' or is empty."""
    owner = here if here.graph is None else here.graph
    attribute = "scope" if owner is here else "_scope"
    before = getattr(owner, attribute)
    setattr(owner, attribute, scope)
    _tell_core()
    try:
        yield scope
    finally:
        setattr(owner, attribute, before)
        _tell_core()


@contextmanager
def placed(device: Optional[str]) -> Iterator[None]:
    before, here.device = here.device, device
    _tell_core()
    try:
        yield
    finally:
        here.device = before
        _tell_core()


def scope_here() -> str:
    return here.scope if here.graph is None else here.graph._scope


def trace_here() -> Any:
    """The function that is being traced, or None."""
    graph = here.graph
    return graph if graph is not None and graph._is_trace else None


def state() -> Tuple[Any, str, Optional[str]]:
    return here.graph, scope_here(), here.device
