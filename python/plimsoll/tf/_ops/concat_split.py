# SPDX-License-Identifier: Apache-2.0
"""Tensors put together and cut up."""
from __future__ import annotations

from builtins import range as span
from builtins import slice as cut
from typing import Any

from plimsoll import _core
from plimsoll.tf._values import types as _types
from plimsoll.tf._ops.reshape import broadcast_to, expand_dims, identity, reshape, size
from plimsoll.tf._values.convert import (
    Dim, Tensor, axis_in, dims, invalid, numpy_call, one_int, only_axes, partial, rank_of, remember,
    shape_tensor, static, tensor, tensors,
)

__all__ = [
    "concat", "meshgrid", "pad", "repeat", "reverse", "roll", "slice", "split", "stack",
    "strided_slice", "tile", "unstack",
]

_op = _core.op
_WHOLE = (1 << 63) - 1  # a slice's end: past every axis


def concat(values: Any, axis: Any, name: str | None = "concat") -> Tensor:
    """One behind the other along an axis.

    >>> tf.concat([[[1, 2]], [[3, 4]]], 0).numpy().tolist()
    [[1, 2], [3, 4]]
    """
    parts = tensors(values)
    out = _op("concat", parts, {"axis": one_int(axis, "concat: axis")}, name)
    known = [partial(p) if partial(p) is not None else None for p in parts]
    if any(k is not None for k in known):
        known = [k if k is not None else static(p) for k, p in zip(known, parts)]
        if all(isinstance(k, list) for k in known):
            remember(out, [dim for k in known for dim in k])
    return out


def stack(values: Any, axis: int = 0, name: str | None = "stack") -> Tensor:
    """Tensors of one shape, behind each other along a new axis.

    >>> tf.stack([[1, 2], [3, 4]], axis=1).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    known = [partial(value) for value in values] if isinstance(values, (list, tuple)) else []
    parts = tensors(values) if isinstance(values, (list, tuple)) else unstack(values)
    if not parts:
        raise ValueError("stack: there is nothing to stack")
    first = dims(parts[0])
    if first is not None and not -len(first) - 1 <= axis <= len(first):
        raise ValueError(f"Argument `axis` = {axis} not in range [{-len(first) - 1}, "
                         f"{len(first) + 1})")
    out = _op("concat", [expand_dims(part, axis) for part in parts], {"axis": axis}, name)
    if any(k is not None for k in known):
        known = [k if k is not None else static(p) for k, p in zip(known, parts)]
        if all(isinstance(k, (int, Dim)) for k in known):
            remember(out, known)
    return out


def unstack(value: Any, num: int | None = None, axis: int = 0,
            name: str | None = "unstack") -> list[Tensor]:
    """The parts along an axis, each without it.

    >>> [part.numpy().tolist() for part in tf.unstack([[1, 2], [3, 4]])]
    [[1, 2], [3, 4]]
    """
    x = tensor(value)
    known = dims(x)
    if known is None:
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {x.shape}")
        rank_of(x, "unstack")
    if not known:
        raise ValueError("unstack: a scalar has no axis to take parts along")
    if not -len(known) <= axis < len(known):
        raise ValueError(f"Argument `axis` = {axis} not in range [{-len(known)}, {len(known)})")
    n = known[axis] if num is None else num
    if n is None:
        raise ValueError(f"Cannot infer argument `num` from shape {x.shape}")
    if known[axis] is not None and n != known[axis]:
        raise ValueError(f"unstack: 'num' is {n}, and axis {axis} of {x.shape} is {known[axis]}")
    if known[axis] is None:
        x = _with_length(x, axis % len(known), n)
    before = (cut(None),) * (axis % len(known))
    return [x[before + (i,)] for i in span(n)]


def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None,
          name: str | None = "split") -> list[Tensor]:
    """Parts along an axis: so many equal ones, or these sizes (one may be -1: the rest).

    >>> [part.numpy().tolist() for part in tf.split([1, 2, 3, 4], [1, 3])]
    [[1], [2, 3, 4]]
    """
    x = tensor(value)
    n_axes = rank_of(x, "split")
    at = axis_in(axis, n_axes, "split")
    length = dims(x)[at]
    sizes = static(num_or_size_splits)
    if sizes is None:
        raise NotImplementedError("tf.split: sizes that are only known when it is run")
    if isinstance(sizes, int):
        if length is None:
            raise NotImplementedError("tf.split of an axis whose dimension is only known when it "
                                      "is run: give the sizes, or say its shape with set_shape()")
        if sizes < 1 or length % sizes:
            invalid(f"split: axis {at} of {x.shape} cannot be cut into {sizes} equal parts")
        sizes = [length // sizes] * sizes
    if -1 in sizes:
        if length is None:
            raise NotImplementedError("tf.split: the rest of an axis that is only known in the run")
        rest = length - sum(s for s in sizes if s >= 0)
        sizes = [rest if s == -1 else s for s in sizes]
    if min(sizes, default=0) < 0 or (length is not None and sum(sizes) != length):
        invalid(f"split: sizes {sizes} are not those of axis {at} of {x.shape}")
    if length is None:
        x = _with_length(x, at, sum(sizes))
    parts, start = [], 0
    for n in sizes:
        attrs = {"start": [0] * at + [start], "stop": [_WHOLE] * at + [start + n]}
        parts.append(_op("slice", [x], attrs))
        start += n
    return parts


def _with_length(x: Tensor, axis: int, n: int) -> Tensor:
    """x, refused in the run if this axis is another length."""
    said = [n if i == axis else -1 for i in span(len(dims(x)))]
    return _op("ensure_shape", [x], {"shape": said})


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Repeated so often along each axis.

    >>> tf.tile([1, 2], [2]).numpy().tolist()
    [1, 2, 1, 2]
    """
    x = tensor(input)
    known = static(multiples)
    if known is not None:
        return _op("tile", [x], {"multiples": known}, name)
    shape = None if dims(x) is None else [None] * len(dims(x))

    def repeated(array: Any, n: Any) -> Any:
        import numpy as np

        return np.tile(array, tuple(n))

    return numpy_call(repeated, [x, shape_tensor(multiples)], x.dtype, shape, name)


def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Each element so often, behind itself.

    >>> tf.repeat([1, 2], [2, 1]).numpy().tolist()
    [1, 1, 2]
    """
    x = tensor(input)
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    at = axis_in(axis, rank_of(x, "repeat"), "repeat")

    def repeated(array: Any, n: Any) -> Any:
        import numpy as np

        return np.repeat(array, n, at)

    known = list(dims(x))
    times = static(repeats)
    if isinstance(times, list) and len(times) == 1:
        times = times[0]
    if isinstance(times, int):
        if times < 0:
            invalid(f"repeat: {times} times: it is not negative")
        wide = tile(expand_dims(x, at + 1), [1] * (at + 1) + [times] + [1] * (len(known) - at - 1))
        keep = list(span(at)) + [-1] + list(span(at + 2, len(known) + 1))
        return _op("reshape", [wide], {"shape": [-1] * len(known), "keep": keep}, name)
    known[at] = None
    counts = _core.convert(repeats, None, _types.int32)  # of no numbers too
    return numpy_call(repeated, [x, counts], x.dtype, known, name)


def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0,
        name: str | None = None) -> Tensor:
    """With elements around it: a value, or what is inside, mirrored (REFLECT, SYMMETRIC).

    >>> tf.pad([[1]], [[1, 0], [0, 2]]).numpy().tolist()
    [[0, 0, 0], [1, 0, 0]]
    """
    x = _core.convert(tensor)
    sides, value, how = static(paddings), static(constant_values), mode.upper()
    if how not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ValueError(f"pad: unknown mode '{mode}': CONSTANT, REFLECT or SYMMETRIC")
    if sides is None or value is None or x.dtype == _types.string:
        return _pad_by_numpy(x, paddings, how, constant_values, name)
    before, after = [side[0] for side in sides], [side[1] for side in sides]
    if how == "CONSTANT":
        return _op("pad", [x], {"before": before, "after": after, "value": value}, name)
    known = dims(x)
    if known is None or any(d is None and (b or a) for d, b, a in zip(known, before, after)):
        return _pad_by_numpy(x, paddings, how, 0, name)
    return _mirrored(x, known, before, after, int(how == "REFLECT"), name)


def _mirrored(x: Tensor, known: Any, before: list, after: list, skip: int,
              name: str | None) -> Tensor:
    """`skip`: the outermost element is not among those that are mirrored."""
    for axis, (n, left, right) in enumerate(zip(known, before, after)):
        if left or right:
            _check_mirror(axis, n, left, right, skip)
            places = list(span(left - 1 + skip, skip - 1, -1)) + list(span(n))
            places += list(span(n - 1 - skip, n - 1 - skip - right, -1))
            x = _op("gather", [x, _core.constant(places, _types.int64)], {"axis": axis})
    return identity(x, name)


def _check_mirror(axis: int, n: int, left: int, right: int, skip: int) -> None:
    if min(left, right) < 0:
        invalid(f"pad: axis {axis} by {left} and {right}: neither is negative")
    if max(left, right) > n - skip:
        invalid(f"pad: {max(left, right)} elements beside axis {axis}, which has {n}: at most "
                f"{max(n - skip, 0)} can be mirrored")


def _pad_by_numpy(x: Tensor, paddings: Any, how: str, value: Any, name: str | None) -> Tensor:
    def padded(array: Any, sides: Any, fill_with: Any) -> Any:
        import numpy as np

        if how == "CONSTANT":
            return np.pad(array, sides, constant_values=fill_with)
        for axis, (n, (left, right)) in enumerate(zip(array.shape, sides)):
            if left or right:
                _check_mirror(axis, n, left, right, int(how == "REFLECT"))
        return np.pad(array, sides, "reflect" if how == "REFLECT" else "symmetric")

    if x.dtype == _types.string and value == 0:
        value = b""
    shape = None if dims(x) is None else [None] * len(dims(x))
    sides = _core.convert(paddings)
    return numpy_call(padded, [x, sides, _core.convert(value, None, x.dtype)], x.dtype, shape, name)


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """A box of so many elements from `begin` on; a size of -1: to the end.

    >>> tf.slice([[1, 2, 3], [4, 5, 6]], [1, 0], [1, 2]).numpy().tolist()
    [[4, 5]]
    """
    x = tensor(input_)
    start, count = static(begin), static(size)
    if start is not None and count is not None:
        return _op("crop", [x], {"start": start, "size": count}, name)

    def box(array: Any, first: Any, n: Any) -> Any:
        ends = [None if k < 0 else f + k for f, k in zip(first, n)]
        return array[tuple(cut(f, end) for f, end in zip(first, ends))]

    shape = None if dims(x) is None else [None] * len(dims(x))
    if shape is not None and count is not None:
        shape = [None if n < 0 else n for n in count]
    return numpy_call(box, [x, shape_tensor(begin), shape_tensor(size)], x.dtype, shape, name)


def strided_slice(input_: Any, begin: Any, end: Any, strides: Any = None, begin_mask: int = 0,
                  end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0,
                  shrink_axis_mask: int = 0, var: Any = None, name: str | None = None) -> Tensor:
    """x[begin:end:strides, ...], as in Python.

    >>> tf.strided_slice([1, 2, 3, 4], [1], [4], [2]).numpy().tolist()
    [2, 4]
    """
    first, last = static(begin), static(end)
    if first is None or last is None:
        raise NotImplementedError("tf.strided_slice: ends that are only known when it is run")
    steps = static(strides) if strides is not None else [1] * len(first)
    index: list[Any] = []
    for i, (a, b, step) in enumerate(zip(first, last, steps)):
        bit = 1 << i
        if ellipsis_mask & bit:
            index.append(...)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            index.append(a)
        else:
            index.append(cut(None if begin_mask & bit else a, None if end_mask & bit else b, step))
    return tensor(input_)[tuple(index)]


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Some axes backwards.

    >>> tf.reverse([1, 2, 3], [0]).numpy().tolist()
    [3, 2, 1]
    """
    axes = static(axis)
    if axes is None:
        raise NotImplementedError("tf.reverse: 'axis' is only known when it is run")
    axes = axes if isinstance(axes, list) else [axes]
    return _op("reverse", [_core.convert(tensor)], {"axes": axes}, name)


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Elements move along an axis; those past its end come in again at the other.

    >>> tf.roll([0, 1, 2, 3, 4], shift=2, axis=0).numpy().tolist()
    [3, 4, 0, 1, 2]
    """
    x = tensor(input)
    by, along = static(shift), static(axis)
    known = dims(x)
    if by is None or along is None or known is None:
        def rolled(array: Any, n: Any, axes: Any) -> Any:
            import numpy as np

            return np.roll(array, n, tuple(axes) if axes.ndim else int(axes))

        return numpy_call(rolled, [x, shift, axis], x.dtype, known, name)
    by = by if isinstance(by, list) else [by]
    along = along if isinstance(along, list) else [along]
    for n, at in zip(by, [axis_in(a, len(known), "roll") for a in along]):
        if known[at] is None and n:
            x = _op("gather", [x, _rolled_places(x, at, n)], {"axis": at})
            continue
        n = n % max(known[at] or 0, 1)
        if n:  # the last n elements first
            head = {"start": [0] * at + [-n], "stop": [_WHOLE] * (at + 1)}
            tail = {"start": [0] * (at + 1), "stop": [_WHOLE] * at + [-n]}
            x = _op("concat", [_op("slice", [x], head), _op("slice", [x], tail)], {"axis": at})
    return identity(x, name)


def _rolled_places(x: Tensor, at: int, n: int) -> Tensor:
    """Where the elements come from that n steps bring along an axis whose length a run tells."""
    line = _op("fill", [only_axes(x, [at])], {"dtype": _types.int64, "value": 1})
    counted = _op("cumsum", [line], {"exclusive": True})
    return _core.binary("mod", _core.binary("sub", counted, n), _op("sum", [line]))


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """Coordinates of a grid, one tensor for each axis.

    >>> [part.numpy().tolist() for part in tf.meshgrid([1, 2], [3, 4])]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: 'indexing' is '{indexing}': 'xy' or 'ij'")
    flat = [reshape(x, [-1]) for x in args]
    n = len(flat)
    order = list(span(n))
    if indexing == "xy" and n > 1:
        order[0], order[1] = 1, 0
    lengths = [0] * n
    for x, place in zip(flat, order):
        lengths[place] = one_int(size(x), "meshgrid: the length of each input")
    return [broadcast_to(reshape(x, [-1 if i == place else 1 for i in span(n)]), lengths)
            for x, place in zip(flat, order)]
