# SPDX-License-Identifier: Apache-2.0
"""Parts of a variable, read and assigned to by their indices.

The new value is made by tf.tensor_scatter_nd_*: in NumPy, over the whole value, and not planned.
"""
from __future__ import annotations

import functools
from typing import Any, Optional

from plimsoll import _core

__all__ = ["IndexedSlices"]


class IndexedSlices:
    """Rows, and which rows of a larger tensor they are.

    >>> rows = IndexedSlices(values=[[1.0], [2.0]], indices=[4, 0])
    >>> rows.indices.numpy().tolist()
    [4, 0]
    """

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values = _core.convert(values)
        self.indices = _core.convert(indices)
        self.dense_shape = None if dense_shape is None else _core.convert(dense_shape)

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def shape(self) -> Any:
        from plimsoll.tf._values import types as _types

        if self.dense_shape is None:
            return _types.TensorShape(None)
        return _types.TensorShape(self.dense_shape.numpy().tolist())

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self.indices!r}, values={self.values!r})"


def _rows(how: str) -> Any:
    """Slices along the first axis: each index is that of a row."""

    def method(
        self: Any, sparse_delta: Any, use_locking: bool = False, name: Optional[str] = None
    ) -> Any:
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(
                f"Argument `sparse_delta` must be a `tf.IndexedSlices`. "
                f"Received arg: {sparse_delta}"
            )
        places = _core.op("reshape", [sparse_delta.indices], {"shape": [-1, 1]})
        rows = _tensor_of_rows(sparse_delta)
        return _scattered(self, how, places, rows, name)

    return method


def _tensor_of_rows(delta: IndexedSlices) -> Any:
    """With one axis for the indices, however many they have."""
    from plimsoll.tf._ops.reshape import reshape

    n = delta.indices.shape.rank
    return delta.values if n == 1 else reshape(
        delta.values, [-1, *delta.values.shape.as_list()[n:]])


def _places(how: str) -> Any:
    def method(self: Any, indices: Any, updates: Any, name: Optional[str] = None) -> Any:
        return _scattered(self, how, indices, updates, name)

    return method


def _scattered(variable: Any, how: str, places: Any, values: Any, name: Optional[str]) -> Any:
    from plimsoll.tf._ops import gather_scatter as _gather_scatter

    if how == "floor_divide" and variable.dtype.is_floating:
        how = "divide"
    function = getattr(_gather_scatter, f"tensor_scatter_nd_{how}", None) or _gather_scatter._scatter(how)
    updates = _core.convert(values, variable.dtype)
    return variable.update(lambda now: function(now, places, updates), name or "Assign")


def gather_nd(self: Any, indices: Any, name: Optional[str] = None) -> Any:
    """Parts of its value: tf.gather_nd."""
    from plimsoll.tf._ops.gather_scatter import gather_nd as gather

    return gather(self, indices, name=name)


def sparse_read(self: Any, indices: Any, name: Optional[str] = None) -> Any:
    """Rows of its value: tf.gather."""
    from plimsoll.tf._ops.gather_scatter import gather

    return gather(self, indices, name=name)


def batch_scatter_update(
    self: Any, sparse_delta: Any, use_locking: bool = False, name: Optional[str] = None
) -> Any:
    """Rows of the last of the indices' axes; those before it are the same in both."""

    def placed(array: Any, places: Any, values: Any) -> Any:
        import numpy as np

        out = array.copy()
        grids = list(np.indices(places.shape, sparse=True)[:-1])
        out[(*grids, places)] = values
        return out

    from plimsoll.tf._values.convert import numpy_call

    rest, dims = [sparse_delta.indices, sparse_delta.values], self.shape.as_list()
    return self.update(
        lambda now: numpy_call(placed, [now, *rest], self.dtype, dims), name or "Assign"
    )


def part(self: Any, index: Any) -> Any:
    """Part of its value, as of a tensor's; it can be assigned to.

    >>> v = tf.Variable([1, 2, 3])
    >>> v[1:].assign([5, 6]).numpy().tolist()
    [1, 5, 6]
    """
    now = self.__plimsoll_tensor__()
    made = now[index]
    if made is now:  # attributes set on it must not reach the variable's own value
        made = _core.op("identity", [now])
    made.assign = functools.partial(_assign_part, self, index)
    return made


def _assign_part(
    variable: Any, index: Any, value: Any, use_locking: bool = False, name: Optional[str] = None
) -> Any:
    """The variable, of which this part is `value` from now on."""
    from plimsoll.tf._values.convert import numpy_call

    def placed(array: Any, given: Any) -> Any:
        out = array.copy()
        out[index] = given
        return out

    if any(hasattr(one, "__plimsoll_tensor__") or isinstance(one, _core.Tensor)
           for one in (index if isinstance(index, tuple) else (index,))):
        raise NotImplementedError(
            "Variable[index].assign() with a tensor for an index: use scatter_nd_update()"
        )
    given, dims = _core.convert(value, variable.dtype), variable.shape.as_list()
    return variable.update(
        lambda now: numpy_call(placed, [now, given], variable.dtype, dims), name or "Assign"
    )


_DOC = """Its value, {doc} where the indices say, is assigned to it.

    >>> v = tf.Variable([1, 2, 3])
    >>> v.{example}.numpy().tolist()
    {result}
    """
_HOW = {
    "add": ("add", "with the updates added", 12),
    "sub": ("sub", "with the updates taken away", -8),
    "update": ("update", "replaced by the updates", 10),
    "max": ("max", "the larger of both", 10),
    "min": ("min", "the smaller of both", 2),
    "mul": ("multiply", "times the updates", 20),
    "div": ("floor_divide", "divided by the updates", 0),
}


def attach(cls: Any) -> None:
    """Hangs them on tf.Variable."""
    for name, (how, doc, result) in _HOW.items():
        for prefix, make, example in (
            ("scatter_", _rows, "(tf.IndexedSlices([10], [1]))"),
            ("scatter_nd_", _places, "([[1]], [10])"),
        ):
            if prefix == "scatter_nd_" and name in ("mul", "div"):
                continue
            method = make(how)
            method.__name__ = prefix + name
            method.__qualname__ = f"Variable.{method.__name__}"
            method.__doc__ = _DOC.format(
                doc=doc, example=method.__name__ + example, result=[1, result, 3]
            )
            setattr(cls, method.__name__, method)
    cls.__getitem__ = part
    for function in (gather_nd, sparse_read, batch_scatter_update):
        setattr(cls, function.__name__, function)
