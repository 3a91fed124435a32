# SPDX-License-Identifier: Apache-2.0
"""A function over the elements of tensors: map_fn, scan, foldl, foldr.

Where the number of elements is known the function is called for each, in a graph as well as
eagerly; where it is not, map_fn is a loop that appends.

    >>> import plimsoll.tf as tf
    >>> tf.map_fn(lambda x: x * x, tf.constant([1, 2, 3])).numpy().tolist()
    [1, 4, 9]
"""
from __future__ import annotations

from typing import Any, Callable, List, Optional

from plimsoll import _core
from plimsoll.tf import nest
from plimsoll.tf._graph import context as _context, control_flow as _control_flow
from plimsoll.tf._values import types as _types
from plimsoll.tf._graph.graph import Tensor
from plimsoll.tf._values.types import TensorSpec

__all__ = ["foldl", "foldr", "map_fn", "scan", "vectorized_map"]


def _tensors(elems: Any) -> List[Any]:
    flat = [_core.convert(elem) for elem in nest.flatten(elems)]
    if not flat:
        raise ValueError("elems must be a Tensor or (possibly nested) sequence of Tensors. Got none")
    for tensor in flat:
        if tensor.shape.rank == 0:
            raise ValueError("Elements in elems must be 1+ dimensional Tensors, not scalars")
    return flat


def _length(flat: List[Any]) -> Optional[int]:
    lengths = [t.shape[0] for t in flat if t.shape.rank is not None and t.shape[0] is not None]
    if lengths and min(lengths) != max(lengths):
        raise ValueError(f"elems have different lengths along their first axis: {lengths}")
    return lengths[0] if lengths else None


def _element(elems: Any, flat: List[Any], i: Any) -> Any:
    return nest.pack_sequence_as(elems, [tensor[i] for tensor in flat])


def _stacked(rows: List[Any], like: Any) -> Any:
    from plimsoll.tf._ops.concat_split import stack

    columns = zip(*(nest.flatten(row) for row in rows))
    return nest.pack_sequence_as(like, [stack(list(column)) for column in columns])


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: Optional[int] = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: Optional[str] = None,
    fn_output_signature: Any = None,
) -> Any:
    """`fn` of each element of `elems` along the first axis, stacked.

    >>> import plimsoll.tf as tf
    >>> elems = (tf.constant([1, 2]), tf.constant([3, 4]))
    >>> tf.map_fn(lambda x: x[0] * x[1], elems, fn_output_signature=tf.int32).numpy().tolist()
    [3, 8]
    """
    if not callable(fn):
        raise TypeError(f"The provided function must be callable, got fn={fn}")
    said = fn_output_signature if fn_output_signature is not None else dtype
    flat = _tensors(elems)
    n = _length(flat)
    if n is None:
        return _map_by_loop(fn, elems, flat, said)
    if n == 0:
        return _map_nothing(fn, elems, flat, said)
    rows = [_row(fn(_element(elems, flat, i)), said) for i in range(n)]
    return _stacked(rows, rows[0])


def _row(made: Any, said: Any) -> Any:
    row = nest.map_structure(_core.convert, made)
    if said is not None:
        specs = [spec if isinstance(spec, TensorSpec) else TensorSpec(None, spec)
                 for spec in nest.flatten(said)]
        for spec, tensor in zip(specs, nest.flatten(row)):
            if tensor.dtype != spec.dtype:
                raise TypeError(
                    f"map_fn: fn gives {tensor.dtype.name} where fn_output_signature says "
                    f"{spec.dtype.name}"
                )
    return row


def _map_nothing(fn: Callable[[Any], Any], elems: Any, flat: List[Any], said: Any) -> Any:
    """The result for no elements: fn is traced to learn its dtypes and shapes."""
    from plimsoll.tf._graph import trace as _trace

    specs = [TensorSpec(t.shape[1:], t.dtype) for t in flat]
    traced = _trace.trace(lambda *row: fn(nest.pack_sequence_as(elems, row)), specs)
    empty = [_no_rows_of(out) for out in traced.outputs]
    return traced.pack(empty)


def _no_rows_of(row: Any) -> Any:
    """A tensor of no such rows."""
    none = b"" if row.dtype == _types.string else False if row.dtype == _types.bool else 0
    return _core.constant(none, row.dtype, [0] + [d or 0 for d in row.shape.as_list()])


def _map_by_loop(fn: Callable[[Any], Any], elems: Any, flat: List[Any], said: Any) -> Any:
    """The number of elements is known only when it is run: results are appended to each other."""
    from plimsoll.tf._graph import trace as _trace
    from plimsoll.tf._ops.reshape import expand_dims, shape
    from plimsoll.tf._ops.concat_split import concat

    specs = [TensorSpec(t.shape[1:], t.dtype) for t in flat]
    traced = _trace.trace(lambda *row: fn(nest.pack_sequence_as(elems, row)), specs)
    like = traced.pack(list(traced.outputs))
    start = [_empty_of(out) for out in traced.outputs]
    n = shape(flat[0])[0]

    def append(i: Any, made: Any) -> Any:
        row = nest.flatten(_row(fn(_element(elems, flat, i)), said))
        return i + 1, [concat([m, expand_dims(r, 0)], 0) for m, r in zip(made, row)]

    shapes = [_types.TensorShape([None]).concatenate(out.shape) for out in traced.outputs]
    _, made = _control_flow.while_loop(
        lambda i, made: i < n,
        append,
        (_core.constant(0, _types.int32), start),
        shape_invariants=(_types.TensorShape([]), shapes),
    )
    return nest.pack_sequence_as(like, made)


def _empty_of(out: Any) -> Any:
    if not out.shape.is_fully_defined():
        raise NotImplementedError(
            "tf.map_fn over a number of elements that is not known, of a function whose result's "
            f"shape is not known either ({out.shape}): say it with tf.ensure_shape"
        )
    return _no_rows_of(out)


def vectorized_map(
    fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """Like map_fn(): the same results, and no faster.

    >>> import plimsoll.tf as tf
    >>> tf.vectorized_map(lambda x: x + 1, tf.constant([1, 2])).numpy().tolist()
    [2, 3]
    """
    return map_fn(fn, elems)


def _known_length(what: str, flat: List[Any]) -> int:
    n = _length(flat)
    if n is None:
        raise NotImplementedError(f"tf.{what} over a number of elements that is not known")
    return n


def _folded(fn: Any, elems: Any, initializer: Any, reverse: bool, what: str) -> List[Any]:
    if not callable(fn):
        raise TypeError(f"{what}: fn must be callable, got {fn}")
    flat = _tensors(elems)
    order = list(range(_known_length(what, flat)))
    if reverse:
        order.reverse()
    if initializer is None:
        if not order:
            raise ValueError(f"{what}: no elements, and no initializer")
        values = [_element(elems, flat, order.pop(0))]
    else:
        values = [nest.map_structure(_core.convert, initializer)]
    n_given = len(values) if initializer is not None else 0
    for i in order:
        values.append(nest.map_structure(_core.convert, fn(values[-1], _element(elems, flat, i))))
        pending = [t for t in nest.flatten(values[-1]) if isinstance(t, Tensor) and t.is_pending]
        if pending and _context.here.graph is None and len(values) % 1000 == 0:
            _core.evaluate(pending)  # else it would be one long chain
    return values[n_given:] if what == "scan" else values


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: Optional[str] = None,
) -> Any:
    """`fn` of the results so far and the next element, from the first to the last.

    >>> import plimsoll.tf as tf
    >>> int(tf.foldl(lambda a, x: a + x, tf.constant([1, 2, 3])))
    6
    """
    return _folded(fn, elems, initializer, False, "foldl")[-1]


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: Optional[str] = None,
) -> Any:
    """The same from the last to the first.

    >>> import plimsoll.tf as tf
    >>> int(tf.foldr(lambda a, x: a - x, tf.constant([1, 2, 3])))
    0
    """
    return _folded(fn, elems, initializer, True, "foldr")[-1]


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: Optional[str] = None,
) -> Any:
    """All that foldl goes through, stacked.

    >>> import plimsoll.tf as tf
    >>> tf.scan(lambda a, x: a + x, tf.constant([1, 2, 3])).numpy().tolist()
    [1, 3, 6]
    """
    values = _folded(fn, elems, initializer, reverse, "scan")
    if not values:
        start = nest.map_structure(_core.convert, initializer)
        return nest.map_structure(_no_rows_of, start)
    if reverse:
        values.reverse()
    return _stacked(values, values[0])
