# SPDX-License-Identifier: Apache-2.0
"""Conditions and loops. Eagerly they are Python's; in a graph or a function that is being traced
they are calls: each branch, condition and body is traced by itself, with all that it uses from
around it as inputs.

    >>> import plimsoll.tf as tf
    >>> @tf.function
    ... def collatz(n):
    ...     return tf.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1)
    >>> int(collatz(tf.constant(6))), int(collatz(tf.constant(3)))
    (3, 10)
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from plimsoll import _core
from plimsoll.errors import InvalidArgumentError
from plimsoll.tf import nest
from plimsoll.tf._graph import context as _context, graph as _graph, trace as _trace
from plimsoll.tf._values import types as _types
from plimsoll.tf._graph.graph import Tensor
from plimsoll.tf._values.types import TensorSpec

__all__ = ["case", "cond", "switch_case", "while_loop"]


def _is_known(value: Any) -> bool:
    """Can a value be computed here and now?"""
    if hasattr(value, "__plimsoll_tensor__"):
        value = value.__plimsoll_tensor__()
    if not isinstance(value, Tensor):
        return True
    return not value.is_symbolic and (value.graph is None or not value.is_pending)


class _Inputs:
    """The outer nodes that several traces use, as one list of inputs for all of them."""

    def __init__(self, traces: Sequence[Any]) -> None:
        self._traces = traces
        captures = {id(node): node for traced in traces for node in traced.captures}
        cells = {id(e.cell): e.cell for traced in traces for e in traced.entries}
        written = {id(e.cell) for traced in traces for e in traced.written}
        self.captures = list(captures.values())
        self.written = [cell for key, cell in cells.items() if key in written]
        self.read = [cell for key, cell in cells.items() if key not in written]

    def values(self) -> Tuple[List[Any], List[Any]]:
        """(cells that are written, all others), as they are around the traces."""
        written = [_trace.read_cell_to_write(cell) for cell in self.written]
        return written, self.captures + [_trace.read_cell(cell) for cell in self.read]

    def function(self, traced: Any, name: str, writes: bool = True) -> Any:
        """A trace over its own inputs, then the written cells, then the rest; the outputs too."""
        entries = {id(entry.cell): entry for entry in traced.entries}
        captured = dict(zip(map(id, traced.captures), traced.captured))
        with _context.entered(traced.graph):
            written = [_given(entries.get(id(cell)), cell) for cell in self.written]
            read = [_given(entries.get(id(cell)), cell) for cell in self.read]
            around = [
                captured[id(n)] if id(n) in captured else _placeholder(n) for n in self.captures
            ]
        outputs = list(traced.outputs)
        for cell, given in zip(self.written, written) if writes else ():
            outputs.append(entries[id(cell)].now if id(cell) in entries else given)
        return _core.Function(traced.inputs + written + around + read, outputs, name)

    def store(self, values: Sequence[Any]) -> List[Any]:
        """See _trace.write_cells()."""
        return _trace.write_cells(self.written, values)


def _given(entry: Any, cell: Any) -> Any:
    return _placeholder(cell) if entry is None else entry.given


def _placeholder(like: Any) -> Any:
    return _core.placeholder(like.dtype, like.shape, "captured")


# ---- cond ----


def cond(
    pred: Any,
    true_fn: Optional[Callable[[], Any]] = None,
    false_fn: Optional[Callable[[], Any]] = None,
    name: Optional[str] = None,
) -> Any:
    """The result of `true_fn` if `pred` is true, else that of `false_fn`; only that one is run.

    >>> import plimsoll.tf as tf
    >>> int(tf.cond(tf.constant(1) < 2, lambda: tf.constant(17), lambda: tf.constant(23)))
    17
    """
    if not callable(true_fn):
        raise TypeError("'true_fn' must be callable.")
    if not callable(false_fn):
        raise TypeError("'false_fn' must be callable.")
    if _is_known(pred):
        return _tensors_in_graph(true_fn() if bool(pred) else false_fn())
    pred = _core.convert(pred)
    if pred.dtype != _types.bool:
        pred = _core.binary("not_equal", pred, 0)
    if_true = _trace.trace(true_fn, [], "cond_true")
    if_false = _trace.trace(false_fn, [], "cond_false")
    _check_branches(if_true, if_false)
    return _call_cond(pred, if_true, if_false, name)


def _tensors_in_graph(made: Any) -> Any:
    """A branch's result; in a graph its numbers become tensors, as if it were run."""
    if _context.here.graph is None:
        return made
    plain = (bool, int, float, str, bytes)
    return nest.map_structure(
        lambda value: _core.convert(value) if isinstance(value, plain) else value, made
    )


def _call_cond(pred: Any, if_true: Any, if_false: Any, name: Optional[str]) -> Any:
    inputs = _Inputs([if_true, if_false])
    written, others = inputs.values()
    made = _core.cond(
        pred,
        inputs.function(if_true, "cond_true"),
        inputs.function(if_false, "cond_false"),
        written + others,
        name or "cond",
    )
    n = len(if_true.outputs)
    stored = inputs.store(made[n:])
    if if_true.gives_nothing:
        return _graph.group(*stored)  # TensorFlow gives an Operation too
    return if_true.pack(_trace.behind(stored, made[:n]))


def _check_branches(if_true: Any, if_false: Any) -> None:
    try:
        nest.assert_same_structure(if_true._structure, if_false._structure)
        if len(if_true.outputs) != len(if_false.outputs):
            raise ValueError("one gives None where the other gives a tensor")
    except (TypeError, ValueError) as error:
        raise type(error)(
            "true_fn and false_fn arguments to tf.cond must have the same number, type, and "
            f"overall structure of return values.\n\n{error}"
        ) from None
    for i, (yes, no) in enumerate(zip(if_true.outputs, if_false.outputs)):
        if yes.dtype != no.dtype:
            raise TypeError(
                "true_fn and false_fn arguments to tf.cond must have the same number, type, and "
                f"overall structure of return values: output {i} is {yes.dtype.name} and "
                f"{no.dtype.name}"
            )


def case(
    pred_fn_pairs: Any,
    default: Optional[Callable[[], Any]] = None,
    exclusive: bool = False,
    strict: bool = False,
    name: Optional[str] = None,
) -> Any:
    """The result of the function of the first condition that is true, else that of `default`.

    >>> import plimsoll.tf as tf
    >>> x = tf.constant(3)
    >>> int(tf.case([(x < 1, lambda: tf.constant(1)), (x < 5, lambda: tf.constant(5))],
    ...             default=lambda: tf.constant(0)))
    5
    """
    if isinstance(pred_fn_pairs, dict):
        raise TypeError("'pred_fn_pairs' must be a list or tuple of (condition, function)")
    pairs = list(pred_fn_pairs)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
            raise TypeError("Each entry in pred_fn_pairs must be a (condition, function) pair")
    if not exclusive:
        return _case(pairs, default, name)
    checks = _check_exclusive([condition for condition, _ in pairs])
    made = _case(pairs, default, name)
    if not checks:
        return made
    with _graph.control_dependencies(checks):
        return nest.map_structure(lambda value: _core.op("identity", [value]), made)


def _case(pairs: Any, default: Optional[Callable[[], Any]], name: Optional[str]) -> Any:
    if not pairs:
        if default is None:
            raise InvalidArgumentError(None, None, "None of the conditions evaluated as True.")
        return default()
    (pred, fn), rest = pairs[0], pairs[1:]
    if not rest and default is None and not _is_known(pred):
        return _checked_last(pred, fn)
    return cond(pred, fn, lambda: _case(rest, default, name), name)


def _checked_last(pred: Any, fn: Callable[[], Any]) -> Any:
    """The last case, if no other condition held: its own must hold."""
    from plimsoll.tf import debugging

    check = debugging.Assert(pred, ["None of the conditions evaluated as True."])
    with _graph.control_dependencies([] if check is None else [check]):
        return nest.map_structure(lambda value: _core.op("identity", [value]), fn())


_TWO = "More than one condition evaluated as True but exclusive=True."


def _check_exclusive(conditions: Sequence[Any]) -> List[Any]:
    """Returns the assertions that must run before anything else."""
    if all(map(_is_known, conditions)):
        if sum(map(bool, conditions)) > 1:
            raise InvalidArgumentError(None, None, _TWO)
        return []
    from plimsoll.tf import debugging

    ones = [_core.op("cast", [_core.convert(one)], {"dtype": _types.int32}) for one in conditions]
    total = ones[0]
    for one in ones[1:]:
        total = _core.binary("add", total, one)
    check = debugging.Assert(_core.binary("less_equal", total, 1), [_TWO])
    return [] if check is None else [check]


def switch_case(
    branch_index: Any,
    branch_fns: Any,
    default: Optional[Callable[[], Any]] = None,
    name: Optional[str] = None,
) -> Any:
    """The result of the function of that number, else of `default`, or of the last of them.

    >>> import plimsoll.tf as tf
    >>> fns = [lambda: tf.constant(10), lambda: tf.constant(11)]
    >>> int(tf.switch_case(tf.constant(1), fns)), int(tf.switch_case(tf.constant(7), fns))
    (11, 11)
    """
    by_index = _indexed(branch_fns)
    last = default if default is not None else by_index[max(by_index)]
    if _is_known(branch_index):
        return _tensors_in_graph(by_index.get(int(branch_index), last)())
    index = _core.convert(branch_index)
    pairs = [(_core.binary("equal", index, key), fn) for key, fn in by_index.items()]
    return _case(pairs, last, name)


def _indexed(branch_fns: Any) -> Dict[int, Callable[[], Any]]:
    if isinstance(branch_fns, dict):
        pairs = list(branch_fns.items())
    elif not isinstance(branch_fns, (list, tuple)):
        raise TypeError("'branch_fns' must be a list, a dict, or a list of (index, function)")
    elif all(map(callable, branch_fns)):
        pairs = list(enumerate(branch_fns))
    else:
        pairs = list(branch_fns)
    if not pairs:
        raise ValueError("Must provide at least one item in branch_fns")
    for key, fn in pairs:
        if not isinstance(key, int) or not callable(fn):
            raise TypeError(f"branch_fns: {key!r}: {fn!r} is not an int and a function")
    return dict(sorted(pairs))


# ---- while_loop ----


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: Optional[str] = None,
) -> Any:
    """`body` of the variables, again and again, as long as `cond` of them is true.

    >>> import plimsoll.tf as tf
    >>> i = tf.while_loop(lambda i: i < 10, lambda i: [i + 3], [tf.constant(0)])
    >>> int(i[0])
    12
    """
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if not nest.is_nested(loop_vars):
        loop_vars = [loop_vars]
    if not nest.flatten(loop_vars):
        raise ValueError("'loop_vars' must be provided and non-empty")
    if _context.here.graph is None:
        return _loop_in_python(cond, body, loop_vars, maximum_iterations)
    return _loop_traced(cond, body, loop_vars, shape_invariants, maximum_iterations, name)


def _as_vars(made: Any, loop_vars: Any) -> Any:
    """A body's result in the form of the variables: a list may stand for a tuple."""
    if not isinstance(made, (list, tuple)) or (
        len(loop_vars) == 1 and len(made) != 1 and nest.is_nested(loop_vars[0])
    ):
        made = [made]
    nest.assert_same_structure(list(loop_vars), list(made), check_types=False)
    return made


def _loop_in_python(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, maximum: Any
) -> Any:
    most = None if maximum is None else int(maximum)
    form, variables, n = loop_vars, loop_vars, 0
    while (most is None or n < most) and bool(cond(*variables)):
        variables = _as_vars(body(*variables), form)
        n += 1
        pending = [v for v in nest.flatten(variables) if isinstance(v, Tensor) and v.is_pending]
        if pending:  # else a long loop would be one long chain
            _core.evaluate(pending)
    flat = nest.flatten(variables, expand_composites=True)
    flat = [v if isinstance(v, Tensor) else _core.convert(v) for v in flat]
    return nest.pack_sequence_as(form, flat, expand_composites=True)


def _loop_traced(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    invariants: Any,
    maximum: Any,
    name: Optional[str],
) -> Any:
    start = [_core.convert(v) for v in nest.flatten(loop_vars, expand_composites=True)]
    specs = [TensorSpec(shape, v.dtype) for shape, v in zip(_shapes(start, invariants), start)]

    def unflat(flat: Sequence[Any]) -> Any:
        return nest.pack_sequence_as(loop_vars, flat, expand_composites=True)

    traced_cond = _trace.trace(lambda *flat: cond(*unflat(flat)), specs, "while_cond")
    if any(entry.cell is not _trace.effects for entry in traced_cond.written):
        raise NotImplementedError("tf.while_loop: a condition that assigns: assign in the body")
    traced_cond.outputs = traced_cond.outputs_after_effects()
    traced_body = _trace.trace(lambda *flat: _as_vars(body(*unflat(flat)), loop_vars), specs,
                               "while_body")
    _check_body(specs, traced_body.outputs)
    inputs = _Inputs([traced_cond, traced_body])
    written, others = inputs.values()
    made = _core.while_loop(
        inputs.function(traced_cond, "while_cond", writes=False),
        inputs.function(traced_body, "while_body"),
        start + written + others,
        _maximum(maximum),
        name or "while",
    )
    stored = inputs.store(made[len(start) : len(start) + len(written)])
    return unflat(_trace.behind(stored, made[: len(start)]))


def _maximum(maximum: Any) -> Optional[int]:
    if maximum is None:
        return None
    if not _is_known(maximum):
        raise NotImplementedError(
            "tf.while_loop: maximum_iterations that hangs on a tensor: count in loop_vars instead"
        )
    return int(maximum)


def _shapes(start: List[Any], invariants: Any) -> List[Any]:
    if invariants is None:
        return [value.shape for value in start]
    flat = [
        leaf.shape if isinstance(leaf, TensorSpec) else _types.TensorShape(leaf)
        for leaf in _flat_shapes(invariants)
    ]
    if len(flat) != len(start):
        raise ValueError(f"shape_invariants has {len(flat)} shapes for {len(start)} variables")
    for value, shape in zip(start, flat):
        if not value.shape.is_subtype_of(shape):
            raise ValueError(
                f"The shape invariant specified for {value.name} is not compatible with the "
                f"initial shape of the loop variable. It enters the loop with shape {value.shape}, "
                f"but the specified shape invariant is {shape}."
            )
    return flat


def _flat_shapes(invariants: Any) -> List[Any]:
    """TensorShapes and specs are leaves; so is a list of dimensions."""
    if isinstance(invariants, (_types.TensorShape, TensorSpec)) or invariants is None:
        return [invariants]
    if isinstance(invariants, dict):
        return [leaf for key in sorted(invariants) for leaf in _flat_shapes(invariants[key])]
    if all(dim is None or isinstance(dim, int) for dim in invariants) and invariants:
        return [invariants]
    return [leaf for part in invariants for leaf in _flat_shapes(part)]


def _check_body(specs: List[TensorSpec], outputs: List[Any]) -> None:
    for spec, output in zip(specs, outputs):
        if output.dtype != spec.dtype:
            raise TypeError(
                f"a loop variable enters the loop with dtype {spec.dtype.name}, but has dtype "
                f"{output.dtype.name} after one iteration: cast it in the body"
            )
        if not output.shape.is_compatible_with(spec.shape):
            raise ValueError(
                f"a loop variable enters the loop with shape {spec.shape}, but has shape "
                f"{output.shape} after one iteration. To allow the shape to vary across iterations, "
                "use the `shape_invariants` argument of tf.while_loop to specify a less-specific "
                "shape."
            )
