# SPDX-License-Identifier: Apache-2.0
"""Tensors made from values, and from nothing."""
from __future__ import annotations

from typing import Any

from plimsoll import _core
from plimsoll.tf._values import types as _types
from plimsoll.tf._ops.reshape import cast, expand_dims, identity, reshape, shape
from plimsoll.tf._values.convert import (
    Dim, Tensor, invalid, known_shape, lender, numpy_call, one_int, pair, partial, rank_of, static,
    tensor,
)
from plimsoll.tf._ops.concat_split import concat

__all__ = [
    "as_string", "constant", "convert_to_tensor", "eye", "fill", "linspace", "newaxis", "one_hot",
    "ones", "ones_like", "range", "sequence_mask", "zeros", "zeros_like",
]

newaxis = None
_op = _core.op


def constant(value: Any, dtype: Any = None, shape: Any = None,
             name: str | None = "Const") -> Tensor:
    """A tensor that has this value, reshaped to `shape`, or one number everywhere in it.

    >>> tf.constant([[1, 2], [3, 4]])
    <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[1, 2],
           [3, 4]], dtype=int32)>
    >>> tf.constant(-1.0, shape=[2]).numpy().tolist()
    [-1.0, -1.0]
    """
    return _core.constant(value, dtype, shape, name)


def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None,
                      name: str | None = None) -> Tensor:
    """`value` as a tensor: an array, number, list or tensor, in which others may lie.

    >>> tf.convert_to_tensor([1.0, 2.0]).dtype
    tf.float32
    """
    if type(value) is Tensor and dtype is None:
        return value
    return _core.convert(value, dtype, dtype_hint, name)


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """`value` everywhere; its dtype is the result's.

    >>> tf.fill([2, 3], 9).numpy().tolist()
    [[9, 9, 9], [9, 9, 9]]
    """
    if isinstance(value, (int, float)):
        dtype = _core.convert(value).dtype if not isinstance(value, bool) else _types.bool
        return _filled(dims, dtype, value, name)
    x = tensor(value)
    if x.shape.rank not in (0, None):
        invalid(f"fill: one value is needed, and shape {x.shape} was given")
    shape = known_shape(dims)
    if shape is not None:
        return _op("broadcast_to", [x], {"shape": shape}, name)
    return _core.op("where", [ones_like(lender(dims), _types.bool), x, x], None, name)


def _filled(shape: Any, dtype: Any, value: Any, name: str | None) -> Tensor:
    known = known_shape(shape)
    if dtype == _types.string:
        text = _core.constant(b"" if not isinstance(value, (str, bytes)) else value)
        if known is None:
            return fill(shape, text, name)
        return _op("broadcast_to", [text], {"shape": known}, name)
    if known is not None:
        return _op("fill", (), {"dtype": dtype, "shape": known, "value": value}, name)
    return _op("fill", [lender(shape)], {"dtype": dtype, "value": value}, name)


def zeros(shape: Any, dtype: Any = _types.float32, name: str | None = None,
          layout: Any = None) -> Tensor:
    """Zeros (false, empty texts).

    >>> tf.zeros([2, 2], tf.int32).numpy().tolist()
    [[0, 0], [0, 0]]
    """
    return _filled(shape, _types.as_dtype(dtype), 0, name)


def ones(shape: Any, dtype: Any = _types.float32, name: str | None = None,
         layout: Any = None) -> Tensor:
    """Ones (true).

    >>> tf.ones([3]).numpy().tolist()
    [1.0, 1.0, 1.0]
    """
    return _filled(shape, _types.as_dtype(dtype), 1, name)


def _like(x: Any, dtype: Any, value: int, name: str | None) -> Tensor:
    x = tensor(x)
    dtype = x.dtype if dtype is None else _types.as_dtype(dtype)
    if dtype == _types.string:
        return _filled(shape(x), dtype, value, name)
    return _op("fill", [x], {"dtype": dtype, "value": value}, name)


def zeros_like(input: Any, dtype: Any = None, name: str | None = None,
               layout: Any = None) -> Tensor:
    """Zeros in the shape of another tensor.

    >>> tf.zeros_like([[1, 2]]).numpy().tolist()
    [[0, 0]]
    """
    return _like(input, dtype, 0, name)


def ones_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Tensor:
    """Ones in the shape of another tensor.

    >>> tf.ones_like([1.5, 2.5]).numpy().tolist()
    [1.0, 1.0]
    """
    return _like(input, dtype, 1, name)


def eye(num_rows: Any, num_columns: Any = None, batch_shape: Any = None,
        dtype: Any = _types.float32, name: str | None = None) -> Tensor:
    """Ones on the diagonal, zeros elsewhere; `batch_shape` of such matrices.

    >>> tf.eye(2).numpy().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    columns = num_rows if num_columns is None else num_columns
    down = expand_dims(range(num_rows), 1)
    matrix = cast(_core.binary("equal", down, expand_dims(range(columns), 0)), dtype)
    if batch_shape is None:
        return identity(matrix, name) if name else matrix
    batch = known_shape(batch_shape)
    if batch is None:
        raise NotImplementedError("tf.eye: a 'batch_shape' that is only known when it is run")
    return _op("broadcast_to", [matrix],
               {"shape": batch + [one_int(num_rows, "eye"), one_int(columns, "eye")]}, name)


# range() of several dtypes takes the last of these.
_RANGES = ["int32", "int64", "float16", "bfloat16", "float32", "float64"]


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None,
          name: str | None = "range") -> Tensor:
    """Numbers from `start` to before `limit`; with one argument from 0.

    >>> tf.range(3, 18, 3).numpy().tolist()
    [3, 6, 9, 12, 15]
    >>> tf.range(5).dtype
    tf.int32
    """
    if limit is None:
        start, limit = 0, start
    ends = [start, limit, delta]
    if dtype is None:
        given = [_core.convert(end).dtype.name for end in ends]
        ranks = [_RANGES.index(n) if n in _RANGES else _RANGES.index("int32") for n in given]
        dtype = _RANGES[max(ranks)]
    dtype = _types.as_dtype(dtype)
    known = [static(end) for end in ends]
    if known[0] == 0 and known[2] == 1 and isinstance(partial(limit), Dim):
        ones_ = _op("fill", [lender([limit])], {"dtype": _types.int64, "value": 1})
        return cast(_op("cumsum", [ones_], {"axis": 0, "exclusive": True}), dtype, name)
    if any(end is None for end in known):
        def count(first: Any, stop: Any, step: Any) -> Any:
            import numpy as np

            return np.arange(first, stop, step)

        return numpy_call(count, [cast(end, dtype) for end in ends], dtype, [None], name)
    number = float if dtype.is_floating else int
    first, stop, step = (number(end) for end in known)
    if step == 0 or (stop - first) * step < 0:
        invalid(f"range: from {first} to {stop} by {step}: it never ends there")
    return _op("range", (), {"dtype": dtype, "start": first, "stop": stop, "step": step}, name)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """`num` values, equally far from each other, both ends among them.

    >>> tf.linspace(10.0, 12.0, 3).numpy().tolist()
    [10.0, 11.0, 12.0]
    """
    first, last = pair(start, stop)
    if first.dtype.is_integer:
        first, last = cast(first, _types.float64), cast(last, _types.float64)
    n = one_int(num, "linspace: num")
    if n < 1:
        raise ValueError(f"linspace: 'num' is {n}: at least one value is needed")
    where_ = axis if axis >= 0 else rank_of(first, "linspace") + 1 + axis
    first, last = expand_dims(first, where_), expand_dims(last, where_)
    if n == 1:
        return first
    inner = range(1, n - 1, dtype=first.dtype)
    inner = reshape(inner, [-1] + [1] * (rank_of(first, "linspace") - where_ - 1))
    return concat([first, first + (last - first) / float(n - 1) * inner, last], where_, name)


def one_hot(indices: Any, depth: Any, on_value: Any = None, off_value: Any = None,
            axis: Any = None, dtype: Any = None, name: str | None = None) -> Tensor:
    """A new axis: `on_value` (1) at the index and `off_value` (0) elsewhere.

    >>> tf.one_hot([0, 2], 3).numpy().tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    places = tensor(indices)
    length, at = one_int(depth, "one_hot: depth"), -1 if axis is None else axis
    given = [tensor(value) for value in (on_value, off_value) if value is not None]
    if dtype is None:
        dtype = given[0].dtype if given else _types.float32
    dtype = _types.as_dtype(dtype)
    if any(isinstance(v, Tensor) and v.dtype != dtype for v in (on_value, off_value)):
        raise TypeError(f"one_hot: 'on_value' and 'off_value' are of dtype {dtype.name}")
    on = 1 if on_value is None else static(on_value)
    off = 0 if off_value is None else static(off_value)
    if on is not None and off is not None and dtype not in (_types.string, _types.bool):
        return _op("one_hot", [places], {"dtype": dtype, "depth": length, "axis": at, "on": on,
                                         "off": off}, name)
    hot = _op("one_hot", [places], {"dtype": _types.uint8, "depth": length, "axis": at})
    hot = _core.binary("equal", hot, 1)
    if dtype == _types.bool and on in (True, 1) and off in (False, 0):
        return hot
    return _op("where", [hot, _core.convert(on_value if on_value is not None else on, dtype),
                         _core.convert(off_value if off_value is not None else off, dtype)],
               None, name)


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = _types.bool,
                  name: str | None = None) -> Tensor:
    """True for the first so many places of each row.

    >>> tf.sequence_mask([1, 3], 3).numpy().tolist()
    [[True, False, False], [True, True, True]]
    """
    counts = tensor(lengths)
    if maxlen is None:
        maxlen = _core.binary("maximum", _op("max", [counts], None), 0)  # of no lengths too
    places = range(_core.constant(0, counts.dtype), maxlen, dtype=counts.dtype)
    mask = _core.binary("less", places, expand_dims(counts, -1))
    return cast(mask, dtype, name)


def as_string(input: Any, precision: int = -1, scientific: bool = False, shortest: bool = False,
              width: int = -1, fill: str = "", name: str | None = None) -> Tensor:
    """Numbers as texts: tf.strings.as_string().

    >>> tf.as_string([1, 2]).numpy().tolist()
    [b'1', b'2']
    """
    from plimsoll.tf import strings

    return strings.as_string(input, precision, scientific, shortest, width, fill, name)
