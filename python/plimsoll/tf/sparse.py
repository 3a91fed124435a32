# SPDX-License-Identifier: Apache-2.0
"""tf.sparse: SparseTensor, to a dense tensor and from one.

    >>> import plimsoll.tf as tf
    >>> st = tf.sparse.from_dense([[0, 5], [0, 0]])
    >>> st.indices.numpy().tolist(), st.values.numpy().tolist()
    ([[0, 1]], [5])
"""
from __future__ import annotations

from typing import Any, List, Optional

from .. import _core
from ..errors import InvalidArgumentError
from . import _not_implemented
from ._graph import py_function as _py_function
from ._values import types as _types
from ._values.sparse_tensor import SparseTensor
from ._values.types import TensorSpec

__all__ = ["SparseTensor", "from_dense", "reorder", "to_dense"]


def to_dense(
    sp_input: Any,
    default_value: Any = None,
    validate_indices: bool = True,
    name: Optional[str] = None,
) -> Any:
    """A tensor with the values at their places, and `default_value` (0, or "") elsewhere.

    >>> import plimsoll.tf as tf
    >>> st = tf.sparse.SparseTensor([[1]], [7], [3])
    >>> tf.sparse.to_dense(st, default_value=-1).numpy().tolist()
    [-1, 7, -1]
    """
    if not isinstance(sp_input, SparseTensor):
        raise TypeError(f"Input must be a SparseTensor, got {type(sp_input).__name__}")
    if default_value is None:
        default_value = b"" if sp_input.dtype == _types.string else 0
    default = _core.convert(default_value, dtype=sp_input.dtype)

    def scatter(indices: Any, values: Any, shape: Any, fill: Any) -> Any:
        return _scatter(indices, values, shape, fill, validate_indices)

    inputs = [sp_input.indices, sp_input.values, sp_input.dense_shape, default]
    spec = TensorSpec(sp_input.shape, sp_input.dtype)
    return _py_function.numpy_function(scatter, inputs, spec, name=name or "SparseToDense")


def _scatter(indices: Any, values: Any, shape: Any, fill: Any, validate: bool) -> Any:
    import numpy

    values = numpy.asarray(values)
    dense = numpy.full(tuple(int(dim) for dim in shape), fill, dtype=values.dtype)
    if validate and len(indices):
        _validate(indices, shape)
    dense[tuple(numpy.asarray(indices).T)] = values
    return dense


def _validate(indices: Any, shape: Any) -> None:
    """In the dense shape, in order, none twice; as TensorFlow says it."""
    import numpy

    outside = numpy.nonzero(((indices < 0) | (indices >= shape)).any(axis=1))[0]
    if len(outside):
        at = int(outside[0])
        raise InvalidArgumentError(
            None,
            None,
            f"indices[{at}] = {indices[at].tolist()} is out of bounds: need 0 <= index < "
            f"{numpy.asarray(shape).tolist()}",
        )
    before = None
    for at, row in enumerate(indices.tolist()):
        if before is not None and row <= before:
            what = "repeated" if row == before else "out of order"
            raise InvalidArgumentError(None, None, f"indices[{at}] = {row} is {what}")
        before = row


def from_dense(tensor: Any, name: Optional[str] = None) -> SparseTensor:
    """The elements of a tensor that are not 0 (or "").

    >>> from_dense([0, 3, 0]).values.numpy().tolist()
    [3]
    """
    tensor = _core.convert(tensor)
    rank = tensor.shape.rank

    def gather(dense: Any) -> List[Any]:
        import numpy

        dense = numpy.asarray(dense)
        there = dense != (b"" if dense.dtype.kind in "SO" else 0)
        shape = numpy.array(dense.shape, dtype=numpy.int64)
        return [numpy.argwhere(there).astype(numpy.int64), dense[there], shape]

    specs = [
        TensorSpec([None, rank], _types.int64),
        TensorSpec([None], tensor.dtype),
        TensorSpec([rank], _types.int64),
    ]
    return SparseTensor(*_py_function.numpy_function(gather, [tensor], specs, name=name))


def reorder(sp_input: SparseTensor, name: Optional[str] = None) -> SparseTensor:
    """The same in the order of its indices.

    >>> reorder(SparseTensor([[2], [0]], [1, 2], [3])).values.numpy().tolist()
    [2, 1]
    """

    def sort(indices: Any, values: Any) -> List[Any]:
        import numpy

        order = numpy.lexsort(numpy.asarray(indices).T[::-1])
        return [indices[order], values[order]]

    specs = [
        TensorSpec(sp_input.indices.shape, _types.int64),
        TensorSpec(sp_input.values.shape, sp_input.dtype),
    ]
    given = [sp_input.indices, sp_input.values]
    indices, values = _py_function.numpy_function(sort, given, specs, name=name)
    return SparseTensor(indices, values, sp_input.dense_shape)


__getattr__ = _not_implemented.getter("tf.sparse")
