# SPDX-License-Identifier: Apache-2.0
"""Shapes, as far as they are known: dimensions that are None, or no rank at all."""
from __future__ import annotations

from typing import Any, Iterator, List, Optional, Sequence, Tuple, Union

_NO_RANK = "of unknown rank"


class Dimension:
    """One dimension, as TensorFlow 1 has it; in TensorFlow 2 it is an int or None.

    >>> Dimension(3) == 3, Dimension(None).value
    (True, None)
    """

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = _dimension(value)

    @property
    def value(self) -> Optional[int]:
        return self._value

    def is_compatible_with(self, other: Any) -> bool:
        return _fits(self._value, _dimension(other))

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other: Any) -> "Dimension":
        self.assert_is_compatible_with(other)
        return Dimension(other if self._value is None else self._value)

    def __index__(self) -> Optional[int]:
        return self._value

    def __int__(self) -> Optional[int]:
        return self._value

    def __eq__(self, other: Any) -> Optional[bool]:  # type: ignore[override]
        try:
            other = _dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        return None if self._value is None or other is None else self._value == other

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)


class TensorShape:
    """The dimensions of a tensor, outermost first; None where they are not known.

    >>> import plimsoll.tf as tf
    >>> shape = tf.TensorShape([None, 3])
    >>> shape.as_list(), shape.rank, shape.num_elements(), shape[1]
    ([None, 3], 2, None, 3)
    >>> shape.is_compatible_with([2, 3]), shape.merge_with([2, None])
    (True, TensorShape([2, 3]))
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: Any) -> None:
        if type(dims) is tuple:
            for dim in dims:
                if type(dim) is not int or dim < 0:
                    dims = tuple(map(_dimension, dims))
                    break
            self._dims: Optional[Tuple[Optional[int], ...]] = dims
        else:
            self._dims = _dimensions(dims)

    # ---- properties ----

    @property
    def rank(self) -> Optional[int]:
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> Optional[int]:
        return self.rank

    @property
    def dims(self) -> Optional[List[Dimension]]:
        return None if self._dims is None else [Dimension(dim) for dim in self._dims]

    def as_list(self) -> List[Optional[int]]:
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def num_elements(self) -> Optional[int]:
        """None if a dimension is not known."""
        if not self.is_fully_defined():
            return None
        n = 1
        for dim in self._dims:  # type: ignore[union-attr]
            n *= dim  # type: ignore[operator]
        return n

    def is_fully_defined(self) -> bool:
        return self._dims is not None and None not in self._dims

    # ---- how it goes with others ----

    def is_compatible_with(self, other: Any) -> bool:
        """Could both be the shape of one tensor?"""
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return True
        return len(self._dims) == len(other._dims) and all(map(_fits, self._dims, other._dims))

    def is_subtype_of(self, other: Any) -> bool:
        """Is every shape that this may be one that the other may be, too?"""
        other = as_shape(other)
        if other._dims is None:
            return True
        if self._dims is None or len(self._dims) != len(other._dims):
            return False
        return all(of is None or of == dim for dim, of in zip(self._dims, other._dims))

    def merge_with(self, other: Any) -> "TensorShape":
        """The shape that agrees with both. ValueError if there is none."""
        other = as_shape(other)
        if self._dims is None:
            return other
        if other._dims is None:
            return self
        self.assert_is_compatible_with(other)
        return TensorShape(tuple(b if a is None else a for a, b in zip(self._dims, other._dims)))

    def concatenate(self, other: Any) -> "TensorShape":
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return TensorShape(None)
        return TensorShape(self._dims + other._dims)

    def most_specific_compatible_shape(self, other: Any) -> "TensorShape":
        """The one with the most dimensions known that both are cases of."""
        other = as_shape(other)
        if self._dims is None or other._dims is None or len(self._dims) != len(other._dims):
            return TensorShape(None)
        return TensorShape(tuple(a if a == b else None for a, b in zip(self._dims, other._dims)))

    def most_specific_common_supertype(self, others: Sequence[Any]) -> "TensorShape":
        shape = self
        for other in others:
            shape = shape.most_specific_compatible_shape(other)
        return shape

    def with_rank(self, rank: int) -> "TensorShape":
        try:
            return self.merge_with(unknown_shape(rank))
        except ValueError:
            raise ValueError(f"Shape {self} must have rank {rank}") from None

    def with_rank_at_least(self, rank: int) -> "TensorShape":
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> "TensorShape":
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    # ---- assertions: ValueError ----

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_shape(other)} are incompatible")

    def assert_is_fully_defined(self) -> None:
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def assert_has_rank(self, rank: Optional[int]) -> None:
        if rank is not None and self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        other = as_shape(other)
        if None not in (self.rank, other.rank) and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    # ---- as a sequence ----

    def _known(self, what: str) -> Tuple[Optional[int], ...]:
        if self._dims is None:
            raise ValueError(f"Cannot {what} a shape {_NO_RANK}.")
        return self._dims

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self) -> Iterator[Optional[int]]:
        return iter(self._known("iterate over"))

    def __getitem__(self, key: Union[int, slice]) -> Any:
        if self._dims is not None:
            got = self._dims[key]
            return TensorShape(got) if isinstance(key, slice) else got
        if not isinstance(key, slice):
            return None
        start, stop = key.start or 0, key.stop
        if key.step is not None or stop is None or start < 0 or stop < 0:
            return TensorShape(None)
        return unknown_shape(max(0, stop - start))

    def __add__(self, other: Any) -> "TensorShape":
        return self.concatenate(other)

    def __radd__(self, other: Any) -> "TensorShape":
        return as_shape(other).concatenate(self)

    def __eq__(self, other: Any) -> bool:
        try:
            return self._dims == as_shape(other)._dims
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return "TensorShape(None)" if self._dims is None else f"TensorShape({list(self._dims)})"

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else str(self._dims)

    def __reduce__(self) -> Tuple[Any, ...]:
        return TensorShape, (self._dims,)

    def __deepcopy__(self, memo: Any) -> "TensorShape":
        return self

    def __tf_tensor_shape__(self) -> Optional[Tuple[Optional[int], ...]]:
        return self._dims


def as_shape(shape: Any) -> TensorShape:
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(rank: Optional[int] = None) -> TensorShape:
    return TensorShape(None if rank is None else (None,) * rank)


def _fits(a: Optional[int], b: Optional[int]) -> bool:
    return a is None or b is None or a == b


def _dimension(value: Any) -> Optional[int]:
    if value is None:
        return None
    if isinstance(value, Dimension):
        return value.value
    try:
        dim = value.__index__()
    except (AttributeError, TypeError):
        name = type(value).__name__
        raise TypeError(
            f"Dimension value must be integer or None or have an __index__ method, got value "
            f"{value!r} with type {name!r}"
        ) from None
    if dim < 0:
        raise ValueError(f"Dimension {dim} must be >= 0")
    return dim


def _dimensions(dims: Any) -> Optional[Tuple[Optional[int], ...]]:
    if dims is None:
        return None
    if isinstance(dims, TensorShape):
        return dims._dims
    if isinstance(dims, str):
        raise TypeError(f"Expected a shape, a list of dimensions, got {dims!r}")
    try:
        every = iter(dims)
    except TypeError:
        return (_dimension(dims),)
    return tuple(map(_dimension, every))
