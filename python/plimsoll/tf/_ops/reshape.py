# SPDX-License-Identifier: Apache-2.0
"""Dtype, shape and axes: cast, shape, reshape, transpose, broadcast."""
from __future__ import annotations

from builtins import range as span
from typing import Any, Sequence

from plimsoll import _core
from plimsoll.tf._values import types as _types
from plimsoll.tf._values.convert import (
    Dim, Tensor, axis_in, constant_array, dims, invalid, known_shape, lender, numpy_call, one_int,
    only_axes, pair, partial, remember, shape_of, shape_tensor, static, tensor,
    with_the_rest,
)

__all__ = [
    "bitcast", "broadcast_dynamic_shape", "broadcast_static_shape", "broadcast_to", "cast",
    "ensure_shape", "expand_dims", "get_static_value", "guarantee_const", "identity", "identity_n",
    "rank", "reshape", "saturate_cast", "shape", "shape_n", "size", "squeeze", "stop_gradient",
    "transpose",
]

_op = _core.op


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """The elements as another dtype; fractions are cut off where it has none.

    >>> tf.cast([1.8, 2.2], tf.int32).numpy().tolist()
    [1, 2]
    """
    x = tensor(x)
    dtype = _types.as_dtype(dtype)
    if x.dtype == dtype:
        return x
    known = partial(x)
    out = _op("cast", [x], {"dtype": dtype}, name)
    return out if known is None else remember(out, known)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """The elements as another dtype; values outside of its range become its ends.

    >>> tf.saturate_cast([-1.0, 300.0], tf.uint8).numpy().tolist()
    [0, 255]
    """
    x, dtype = tensor(value), _types.as_dtype(dtype)
    low, high = max(x.dtype.min, dtype.min), min(x.dtype.max, dtype.max)
    if x.dtype.is_floating and high > 1 << 24 and dtype.is_integer:
        bits = {"float16": 11, "bfloat16": 8, "float32": 24}.get(x.dtype.name, 53)
        high = int(high) & ~((1 << max(int(high).bit_length() - bits, 0)) - 1)
    return cast(_op("clip", [x, _core.convert(low, x.dtype), _core.convert(high, x.dtype)]), dtype,
                name)


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """The same bytes, read as another dtype.

    >>> tf.bitcast(tf.constant(1.0), tf.int32).numpy()
    1065353216
    """
    x, dtype = tensor(input), _types.as_dtype(type)
    if x.dtype.size != dtype.size:
        raise NotImplementedError("tf.bitcast between dtypes of different sizes")
    return numpy_call(lambda array: array.view(dtype.as_numpy_dtype), [x], dtype, dims(x), name)


def identity(input: Any, name: str | None = None) -> Tensor:
    """The same tensor under another name.

    >>> tf.identity([1, 2]).numpy().tolist()
    [1, 2]
    """
    return _core.unary("identity", input, name)


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """Each of several tensors.

    >>> len(tf.identity_n([1, 2]))
    2
    """
    return [identity(x) for x in input]


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """The input: there are no gradients to stop.

    >>> tf.stop_gradient(3).numpy()
    3
    """
    return identity(input, name)


guarantee_const = identity


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """The input, with this shape; InvalidArgumentError if its shape is another.

    >>> tf.ensure_shape([[1, 2]], [None, 2]).shape
    TensorShape([1, 2])
    """
    x = tensor(x)
    said = _types.TensorShape(shape)
    if said.rank is None:
        return identity(x, name)
    if not x.shape.is_compatible_with(said):
        invalid(f"ensure_shape: shape {x.shape} is not compatible with {said}")
    return _op("ensure_shape", [x], {"shape": [-1 if d is None else d for d in said.as_list()]},
               name)


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value as a NumPy array, if it is known without a run; else None.

    >>> tf.get_static_value(tf.constant([1, 2])).tolist()
    [1, 2]
    """
    return constant_array(tensor) if isinstance(tensor, Tensor) else None


def shape(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:
    """Its dimensions as a vector.

    >>> tf.shape([[1, 2, 3], [4, 5, 6]]).numpy().tolist()
    [2, 3]
    """
    x, dtype = tensor(input), _types.as_dtype(out_type or _types.int32)
    known = dims(x)
    if known is not None and None not in known:
        return _core.constant(list(known), dtype, [len(known)], name)
    if known is None:
        return numpy_call(lambda array: _shape_array(array, dtype), [x], dtype, [None], name)
    said = [Dim(x, i) if d is None else d for i, d in enumerate(known)]
    parts = [_op("reshape", [dim_tensor(d, dtype)], {"shape": [1]}) if isinstance(d, Dim)
             else _core.constant([d], dtype) for d in said]
    return remember(_op("concat", parts, {"axis": 0}, name), said)


def dim_tensor(dim: Dim, dtype: Any) -> Tensor:
    """A dimension as a scalar, by ops of the library: as many ones as there are, added up."""
    line = only_axes(dim.tensor, [dim.axis])
    count = _op("sum", [_op("fill", [line], {"dtype": _types.int64, "value": 1})])
    return remember(_op("cast", [count], {"dtype": dtype}), dim)


def _shape_array(array: Any, dtype: Any) -> Any:
    import numpy as np

    return np.array(np.shape(array), dtype.as_numpy_dtype)


def shape_n(input: Sequence[Any], out_type: Any = _types.int32,
            name: str | None = None) -> list[Tensor]:
    """The shape of each of several tensors.

    >>> [s.numpy().tolist() for s in tf.shape_n([[1, 2], [[3]]])]
    [[2], [1, 1]]
    """
    return [shape(x, out_type) for x in input]


def size(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:
    """How many elements it has.

    >>> tf.size([[1, 2], [3, 4]]).numpy()
    4
    """
    x, dtype = tensor(input), _types.as_dtype(out_type or _types.int32)
    known = dims(x)
    if known is not None and None not in known:
        n = 1
        for dim in known:
            n *= dim
        return _core.constant(n, dtype, None, name)
    return numpy_call(lambda array: dtype.as_numpy_dtype(array.size), [x], dtype, [], name)


def rank(input: Any, name: str | None = None) -> Tensor:
    """How many axes it has.

    >>> tf.rank([[1, 2], [3, 4]]).numpy()
    2
    """
    x = tensor(input)
    known = dims(x)
    if known is not None:
        return _core.constant(len(known), _types.int32, None, name)
    return numpy_call(lambda array: array.dtype.type and _int32(array.ndim), [x], _types.int32, [],
                      name)


def _int32(n: int) -> Any:
    import numpy as np

    return np.int32(n)


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The same elements in the same order; one dimension may be -1: the rest.

    >>> tf.reshape([1, 2, 3, 4, 5, 6], [2, -1]).numpy().tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    x = tensor if type(tensor) is Tensor else _core.convert(tensor)
    wanted = shape_of(shape)
    if wanted is None:
        wanted = with_the_rest(shape)
    if wanted is None or (0 in wanted and -1 in wanted and shape_of(shape) is None):
        return _reshape_in_run(x, shape, None, name)
    if any(dim.__class__ is Dim for dim in wanted):
        return _reshape_to_dims(x, shape, wanted, name)
    if any(dim < -1 for dim in wanted) or wanted.count(-1) > 1:
        invalid(f"reshape: {wanted}: a dimension is not negative, and at most one is -1")
    return _op("reshape", [x], {"shape": wanted}, name)


def _reshape_to_dims(x: Tensor, shape: Any, wanted: list, name: str | None) -> Tensor:
    """Axes of x itself are kept; one unknown dimension can be the rest."""
    keep = [dim.axis if isinstance(dim, Dim) and dim.tensor is x else -1 for dim in wanted]
    said = [-1 if isinstance(dim, Dim) else dim for dim in wanted]
    kept = [axis for axis in keep if axis >= 0]
    left = sum(1 for axis, dim in zip(keep, said) if axis < 0 and dim == -1)
    # With no elements the missing dimension is not determined.
    told = left == 0 or (left == 1 and 0 not in said)
    if len(set(kept)) == len(kept) and told and kept:
        return _op("reshape", [x], {"shape": said, "keep": keep}, name)
    if told and not kept:
        return _op("reshape", [x], {"shape": said}, name)
    return _reshape_in_run(x, shape, [None if d == -1 else d for d in said], name)


def _reshape_in_run(x: Tensor, shape: Any, known: Any, name: str | None) -> Tensor:
    to = shape_tensor(shape)
    if known is None and to.shape.rank == 1 and to.shape[0] is not None:
        known = [None] * to.shape[0]
    return numpy_call(lambda array, wanted: array.reshape(tuple(wanted)), [x, to], x.dtype, known,
                      name)


def expand_dims(input: Any, axis: Any, name: str | None = None) -> Tensor:
    """With an axis of 1 at this place of the result.

    >>> tf.expand_dims([1, 2], 0).shape
    TensorShape([1, 2])
    """
    x = tensor(input)
    known = dims(x)
    at = one_int(axis, "expand_dims: axis")
    if known is None:
        return numpy_call(lambda array: _expanded(array, at), [x], x.dtype, None, name)
    at = axis_in(at, len(known) + 1, "expand_dims")
    if None not in known:
        return _op("reshape", [x], {"shape": known[:at] + (1,) + known[at:]}, name)
    keep = list(span(at)) + [-1] + list(span(at, len(known)))
    return _op("reshape", [x], {"shape": [-1 if k >= 0 else 1 for k in keep], "keep": keep}, name)


def _expanded(array: Any, axis: int) -> Any:
    import numpy as np

    return np.expand_dims(array, axis)


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Without axes of 1: these, or all.

    >>> tf.squeeze([[[1], [2]]]).shape
    TensorShape([2])
    """
    x = tensor(input)
    known = dims(x)
    axes = None if axis is None else static(axis)
    axes = [axes] if isinstance(axes, int) else axes
    if known is None or (axes is None and None in known):
        chosen = None if not axes else tuple(axes)
        return numpy_call(lambda array: array.squeeze(chosen), [x], x.dtype, None, name)
    if not axes:
        gone = {i for i, dim in enumerate(known) if dim == 1}
    else:
        gone = {axis_in(i, len(known), "squeeze") for i in axes}
    for i in gone:
        if known[i] not in (1, None):
            invalid(f"squeeze: axis {i} of shape {list(known)} is {known[i]}, not 1")
    keep = [i for i in span(len(known)) if i not in gone]
    if None not in known:
        return _op("reshape", [x], {"shape": [known[i] for i in keep]}, name)
    return _op("reshape", [x], {"shape": [-1] * len(keep), "keep": keep}, name)


def transpose(a: Any, perm: Any = None, conjugate: bool = False,
              name: str | None = "transpose") -> Tensor:
    """Axes in another order; reversed by default.

    >>> tf.transpose([[1, 2, 3], [4, 5, 6]]).numpy().tolist()
    [[1, 4], [2, 5], [3, 6]]
    """
    x = tensor(a)
    if perm is None:
        return _op("transpose", [x], None, name)
    axes = static(perm)
    if axes is None:
        raise NotImplementedError("tf.transpose: 'perm' is only known when it is run")
    return _op("transpose", [x], {"axes": axes}, name)


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Repeated along axes that are 1 or missing.

    >>> tf.broadcast_to([1, 2], [2, 2]).numpy().tolist()
    [[1, 2], [1, 2]]
    """
    x = tensor(input)
    known = known_shape(shape)
    if known is not None:
        return _op("broadcast_to", [x], {"shape": known}, name)
    return _op("where", [_op("fill", [lender(shape)], {"dtype": _types.bool, "value": 1}), x, x],
               None, name)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> _types.TensorShape:
    """The shape that two shapes have together.

    >>> tf.broadcast_static_shape(tf.TensorShape([1, 3]), tf.TensorShape([5, 1]))
    TensorShape([5, 3])
    """
    x, y = list(_types.TensorShape(shape_x).as_list()), list(_types.TensorShape(shape_y).as_list())
    n_axes = max(len(x), len(y))
    x, y = [1] * (n_axes - len(x)) + x, [1] * (n_axes - len(y)) + y
    both = []
    for a, b in zip(x, y):
        if a is not None and b is not None and a != b and 1 not in (a, b):
            raise ValueError(f"Incompatible shapes for broadcasting: {shape_x} and {shape_y}")
        known = [d for d in (a, b) if d not in (1, None)]
        both.append(known[0] if known else (1 if a == b == 1 else None))
    return _types.TensorShape(both)


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The same for shapes that are tensors.

    >>> tf.broadcast_dynamic_shape([1, 3], [5, 1]).numpy().tolist()
    [5, 3]
    """
    def both(x: Any, y: Any) -> Any:
        import numpy as np

        return np.array(np.broadcast_shapes(tuple(x), tuple(y)), x.dtype)

    x, y = pair(shape_x, shape_y)
    return numpy_call(both, [x, y], x.dtype, [None])
