# SPDX-License-Identifier: Apache-2.0
"""Tracing: a Python function is called once, with placeholders, and its nodes are kept.
    trace    the graph that this makes
    capture  a node of the graph outside that the function uses: given to it as one more input
    cell     state that outlives a call: a variable, or the effects (prints, assertions, calls of Python
             functions) so far. A trace reads a cell by one more input, and writes it by one
             more output, which the caller stores. So a trace has no effects of its own,
             and those that it stands for happen in the order in which they are written
    traced   inputs, outputs, captures and cells: the parts of a _core.Function
"""
from __future__ import annotations

import sys
import threading
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from plimsoll import _core
from plimsoll.errors import OperatorNotAllowedInGraphError
from plimsoll.tf import nest
from plimsoll.tf._graph import context as _context
from plimsoll.tf._values import types as _types
from plimsoll.tf._graph.graph import Graph, Tensor, control_dependencies, name_of

__all__: List[str] = []


class _Entry:
    """A cell in a trace: the placeholder that it is read by, and its value now."""

    __slots__ = ("cell", "given", "now")

    def __init__(self, cell: Any, given: Any) -> None:
        self.cell, self.given, self.now = cell, given, given

    @property
    def is_written(self) -> bool:
        return self.now is not self.given


class Trace(Graph):
    """The graph that a function is traced into. It keeps no nodes: needed nodes hold each other."""

    _is_trace = True

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.outer_graph = _context.here.graph
        self.created: List[Any] = []  # variables
        self.effects: List[List[Any]] = []  # the result of each of them
        self._entries: Dict[int, _Entry] = {}

    def close(self) -> None:
        """Tracing is over. Calls hold functions where the collector does not see it, these have
        nodes, and nodes have their graph: that must not lead back to the calls."""
        self._entries = {}
        self.effects = []
        self.outer_graph = None

    def _add(self, node: Any) -> None:
        pass

    def _entry(self, cell: Any) -> _Entry:
        entry = self._entries.get(id(cell))
        if entry is None:
            with _context.entered(self):
                given = _core.placeholder(cell.dtype, cell.shape, cell.cell_name)
            entry = self._entries[id(cell)] = _Entry(cell, given)
        return entry

    def read(self, cell: Any) -> Any:
        return self._entry(cell).now

    def write(self, cell: Any, node: Any) -> None:
        self._entry(cell).now = node


def read_cell(cell: Any) -> Any:
    """Its value here: as far as it is traced, or as it is."""
    trace = _context.trace_here()
    return cell.read_outside() if trace is None else trace.read(cell)


def read_cell_to_write(cell: Any) -> Any:
    """Its value for a coming assignment: in a graph only the run knows the assignments before."""
    trace = _context.trace_here()
    return cell.read_to_write() if trace is None else trace.read(cell)


def write_cell(cell: Any, node: Any) -> Any:
    """In a graph, the node by which it happens; else None."""
    trace = _context.trace_here()
    return cell.write_outside(node) if trace is None else trace.write(cell, node)


def write_cells(cells: Sequence[Any], nodes: Sequence[Any]) -> List[Any]:
    """In a graph, the nodes to wait for so that they are written."""
    written = [write_cell(cell, node) for cell, node in zip(cells, nodes)]
    return [node for node in written if node is not None]


def behind(written: Sequence[Any], nodes: Sequence[Any]) -> List[Any]:
    """The same nodes, in a graph: running one of them performs all writes."""
    if not written:
        return list(nodes)
    with control_dependencies(written):
        return [_core.op("identity", [node]) for node in nodes]


_swapping = threading.RLock()  # reentrant: a signal handler may assign as well


def swap(cells: Sequence[Any], were: Sequence[Any], values: Sequence[Any]) -> bool:
    """Gives cells their values, outside of traces, unless one of them has changed.

    So an update is never lost: the slower thread makes it again. Nothing of a user's runs
    meanwhile, and no lock is held while values are computed.
    """
    settled = [cell.settled(value) for cell, value in zip(cells, values)]
    with _swapping:
        if any(cell.read_outside() is not was for cell, was in zip(cells, were)):
            return False
        for cell, value in zip(cells, settled):
            cell.put(value)
    return True


@contextmanager
def trial() -> Iterator[None]:
    """A function is called to find its results, and will be called again when it counts: what this
    thread assigns to variables meanwhile is undone, but for what another assigned since."""
    around, _context.here.trial = _context.here.trial, {}
    try:
        yield
    finally:
        changed, _context.here.trial = _context.here.trial, around
        with _swapping:
            for variable, was, given in changed.values():
                if variable.read_outside() is given:
                    variable.put(was)


def note_in_trial(variable: Any, value: Any) -> None:
    changed = _context.here.trial
    was = changed[id(variable)][1] if id(variable) in changed else variable.read_outside()
    changed[id(variable)] = variable, was, value


class _Effects:
    """The effects so far, as a number that each effect takes and returns."""

    dtype = _types.int32
    shape = _types.TensorShape(())
    cell_name = "effects"

    def read_outside(self) -> Any:
        return _core.constant(0, _types.int32)

    read_to_write = read_outside

    def write_outside(self, node: Any) -> Any:
        return note_effect(node)


effects = _Effects()


class Traced:
    """A function once it is traced; see above."""

    def __init__(self, graph: Trace, inputs: List[Any], result: Any) -> None:
        self.graph = graph
        self.inputs = inputs
        flat = nest.flatten(result, expand_composites=True)
        self._structure = nest.pack_sequence_as(
            result, [leaf is not None for leaf in flat], expand_composites=True
        )
        leaves = [_as_output(leaf) for leaf in flat if leaf is not None]
        self.entries = list(graph._entries.values())
        self._effects = graph.effects
        in_graph = graph.outer_graph is not None
        graph.close()
        nodes = leaves + [entry.now for entry in self.entries]
        self.captures, placeholders, nodes = _capture(graph, nodes, in_graph)
        self.captured = placeholders
        self.outputs = nodes[: len(leaves)]
        for entry, now in zip(self.entries, nodes[len(leaves) :]):
            entry.now = now

    @property
    def written(self) -> List[_Entry]:
        return [entry for entry in self.entries if entry.is_written]

    @property
    def gives_nothing(self) -> bool:
        """Did the function return None?"""
        return self._structure is False

    def pack(self, flat: Sequence[Any]) -> Any:
        """Outputs as the function returned them."""
        if self._structure is True:
            return flat[0]
        values = iter(flat)
        there = nest.flatten(self._structure, expand_composites=True)
        leaves = [next(values) if is_there else None for is_there in there]
        return nest.pack_sequence_as(self._structure, leaves, expand_composites=True)

    def function(self, name: str) -> Any:
        """All of it as a _core.Function: inputs, captures and cells; outputs and assignments."""
        given = self.inputs + self.captured + [entry.given for entry in self.entries]
        return _core.Function(given, self.outputs + [e.now for e in self.written], name)

    def bound(self, name: str = "function") -> Any:
        """As a _core.Function of its inputs alone, as a dataset's stage wants it.

        Variables are read now. OperatorNotAllowedInGraphError if it assigns to one, or depends on a
        function that is still being traced: then it is to be run in Python.
        """
        if self.captures or any(entry.cell is not effects for entry in self.written):
            raise OperatorNotAllowedInGraphError(
                f"'{name}' assigns to a variable, or uses a tensor of a function around it: "
                "it runs in Python"
            )
        outputs = self.outputs_after_effects()
        with _context.entered(self.graph):
            known = [(entry.given, entry.cell.read_outside()) for entry in self.entries]
            if any(value.graph is not None and value.is_symbolic for _, value in known):
                raise OperatorNotAllowedInGraphError(f"'{name}' uses a variable of a graph")
            if known:
                outputs = _core.substitute(outputs, known)
        return _core.Function(self.inputs, outputs, name)

    def outputs_after_effects(self) -> List[Any]:
        """The outputs, which depend on every effect: for callers that ignore cells."""
        if not self._has_loose_effects():
            return self.outputs
        done = next(entry.now for entry in self.entries if entry.cell is effects)
        with _context.entered(self.graph):
            return after(done, self.outputs)

    def _has_loose_effects(self) -> bool:
        """Is there an effect that no output depends on?"""
        if not self._effects:
            return False
        met = {id(node) for node in ancestors(self.outputs, self.graph)}
        return any(not any(id(n) in met for n in made) for made in self._effects)


def trace(fn: Callable[..., Any], specs: Sequence[Any], name: str = "function") -> Traced:
    """Calls `fn` with a placeholder for each spec (dtype, shape, name).

    >>> import plimsoll.tf as tf
    >>> traced = trace(lambda x: x + 1, [tf.TensorSpec([], tf.int32)])
    >>> int(traced.bound()(tf.constant(2))[0])
    3
    """
    graph = Trace(name)
    with _context.entered(graph):
        inputs = [
            _core.placeholder(spec.dtype, spec.shape, getattr(spec, "name", None))
            for spec in specs
        ]
        return Traced(graph, inputs, fn(*inputs))


def _as_output(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf
    try:
        return _core.convert(leaf)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "To be compatible with tf.function, Python functions must return zero or more Tensors "
            f"or None values; found return value of type {type(leaf).__name__}, which is not one"
        ) from error


def ancestors(nodes: Sequence[Any], graph: Trace) -> List[Any]:
    """These and all that they are made of, down to nodes outside of this graph."""
    seen, found, stack = set(), [], list(nodes)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            found.append(node)
            if node.graph is graph:
                stack.extend(node.inputs)
    return found


def _capture(
    graph: Trace, nodes: List[Any], in_graph: bool
) -> Tuple[List[Any], List[Any], List[Any]]:
    """Nodes outside that they hang on, placeholders for these, and the nodes over those."""
    outside = [node for node in ancestors(nodes, graph) if node.graph is not graph]
    captures = [node for node in outside if _is_captured(node, in_graph)]
    if not captures:
        return [], [], nodes
    placeholders = [_core.placeholder(node.dtype, node.shape, "captured") for node in captures]
    return captures, placeholders, _core.substitute(nodes, list(zip(captures, placeholders)))


def _is_captured(node: Any, in_graph: bool) -> bool:
    """Is its value known in a run alone? Of a graph also a constant may be fed, or wait for others."""
    if node.is_symbolic or node.graph is None:
        return node.is_symbolic
    return node.is_pending or (in_graph and not node.graph._is_trace)


# ---- effects ----


def after(done: Any, nodes: Sequence[Any]) -> List[Any]:
    """The same nodes, that have values only when `done` has one."""
    nodes = list(nodes)
    if not nodes:
        return nodes
    givens = [_core.placeholder(node.dtype, node.shape, "value") for node in nodes]
    same = _core.Function(givens, givens, "after")
    return _core.cond(_core.binary("greater_equal", done, 0), same, same, nodes, "after")


def effect(
    fn: Callable[..., Any],
    inputs: Sequence[Any],
    outputs: Sequence[Tuple[Any, Any]],
    name: Optional[str] = None,
    numpy: bool = False,
) -> List[Any]:
    """A call of `fn` that happens whether or not its outputs are used; `fn` gives a sequence.

    In a trace it comes after the effects before it. In a graph it happens when what it gives is
    run: there the last of what is returned is for those who use none of the others.
    """
    done_spec = (_types.int32, ())
    n = len(inputs)

    # The callback must not refer to nodes: they refer to it, where the collector does not see it.
    def call(*values: Any) -> List[Any]:
        with _context.entered(None):  # the thread may be in the middle of something else
            return [*fn(*values[:n]), 0]

    trace_now = _context.trace_here()
    before = [] if trace_now is None else [trace_now.read(effects)]
    made = _core.python_call(call, [*inputs, *before], [*outputs, done_spec], name, numpy)
    if trace_now is not None:
        trace_now.write(effects, made[-1])
        trace_now.effects.append(made)
    else:
        note_effect(made[-1])
    return made


def note_effect(node: Any) -> Any:
    """In a graph: what gives the node happens also where it is only waited for. The node, there."""
    graph = _context.here.graph
    if graph is None:
        return None
    graph._effects[name_of(node)] = node
    return node


_told: Any = weakref.WeakSet()


def tell_once(what: Any, text: str) -> None:
    """On stderr, the first time for this object."""
    if what not in _told:
        _told.add(what)
        print(f"plimsoll: {text}", file=sys.stderr)
