# SPDX-License-Identifier: Apache-2.0
"""SparseTensor: the result of VarLenFeature. Three tensors, and the conversion to a dense one."""
from __future__ import annotations

from typing import Any, List, Tuple

from plimsoll import _core
from plimsoll.tf._values import types as _types
from plimsoll.tf._values.types import TensorShape, TypeSpec

__all__ = ["SparseTensor", "SparseTensorSpec"]


class SparseTensorSpec(TypeSpec):
    """The dtype of a SparseTensor's values, and its dense shape.

    >>> SparseTensorSpec([None, 3], "int64")
    SparseTensorSpec(TensorShape([None, 3]), tf.int64)
    """

    __slots__ = ("_shape", "_dtype")

    def __init__(self, shape: Any = None, dtype: Any = _types.float32) -> None:
        self._shape = TensorShape(shape)
        self._dtype = _types.as_dtype(dtype)

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def value_type(self) -> Any:
        return SparseTensor

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        other = getattr(spec_or_value, "_type_spec", spec_or_value)
        return (
            isinstance(other, SparseTensorSpec)
            and self._dtype == other._dtype
            and self._shape.is_compatible_with(other._shape)
        )

    def _composite_parts(self) -> Tuple[Any, ...]:
        """Specs of indices, values and dense shape."""
        rank = self._shape.rank
        return (
            _types.TensorSpec([None, rank], _types.int64),
            _types.TensorSpec([None], self._dtype),
            _types.TensorSpec([rank], _types.int64),
        )

    def _composite_like(self, parts: Any) -> "SparseTensor":
        return SparseTensor._of(parts, self._shape)

    def __eq__(self, other: Any) -> bool:
        return (
            isinstance(other, SparseTensorSpec)
            and self._dtype is other._dtype
            and self._shape == other._shape
        )

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self._shape!r}, {self._dtype!r})"


class SparseTensor:
    """Values at places: `indices` [n, rank] (int64), `values` [n], `dense_shape` [rank] (int64).

    >>> import plimsoll.tf as tf
    >>> st = tf.sparse.SparseTensor(indices=[[0, 0], [1, 2]], values=[1, 2], dense_shape=[3, 4])
    >>> tf.sparse.to_dense(st).numpy().tolist()
    [[1, 0, 0, 0], [0, 0, 2, 0], [0, 0, 0, 0]]
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self._indices = _core.convert(indices, dtype=_types.int64)
        self._values = _core.convert(values)
        self._dense_shape = _core.convert(dense_shape, dtype=_types.int64)
        self._said_shape = TensorShape(None)
        self._check()

    @classmethod
    def _of(cls, parts: Any, shape: TensorShape) -> "SparseTensor":
        """Made from any parts, such as a trace's placeholders: nothing is checked."""
        made = cls.__new__(cls)
        made._indices, made._values, made._dense_shape = parts
        made._said_shape = shape
        return made

    def _check(self) -> None:
        self._indices.shape.assert_has_rank(2)
        self._values.shape.assert_has_rank(1)
        self._dense_shape.shape.assert_has_rank(1)
        n, rank = self._indices.shape[0], self._indices.shape[1]
        if not self._values.shape.is_compatible_with([n]):
            raise ValueError(
                f"SparseTensor: {n} indices and values of shape {self._values.shape} do not go together"
            )
        if not self._dense_shape.shape.is_compatible_with([rank]):
            raise ValueError(
                f"SparseTensor: indices of rank {rank} and a dense shape of shape "
                f"{self._dense_shape.shape} do not go together"
            )

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> "SparseTensor":
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        return cls(*sparse_tensor_value)

    @property
    def indices(self) -> Any:
        return self._indices

    @property
    def values(self) -> Any:
        return self._values

    @property
    def dense_shape(self) -> Any:
        return self._dense_shape

    @property
    def dtype(self) -> Any:
        return self._values.dtype

    @property
    def graph(self) -> Any:
        return self._values.graph

    @property
    def op(self) -> Any:
        return self._values.op

    @property
    def shape(self) -> TensorShape:
        """As far as it is known without a computation."""
        known = self._dense_shape
        if known.graph is None and not known.is_symbolic and not known.is_pending:
            return TensorShape([int(dim) for dim in known.numpy()])
        rank = known.shape[0] if known.shape.rank == 1 else None
        return self._said_shape if rank is None else TensorShape([None] * rank)

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def _type_spec(self) -> SparseTensorSpec:
        return SparseTensorSpec(self.shape, self.dtype)

    def _composite_parts(self) -> List[Any]:
        return [self._indices, self._values, self._dense_shape]

    def _composite_like(self, parts: Any) -> "SparseTensor":
        return SparseTensor._of(parts, self._said_shape)

    def with_values(self, new_values: Any) -> "SparseTensor":
        return SparseTensor(self._indices, new_values, self._dense_shape)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        from plimsoll.tf._graph import session as _session

        return _session.session_for(self.graph, session, "evaluate tensor").run(self, feed_dict)

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self._indices}, values={self._values}, "
            f"dense_shape={self._dense_shape})"
        )
