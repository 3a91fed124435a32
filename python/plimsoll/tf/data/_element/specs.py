# SPDX-License-Identifier: Apache-2.0
"""Specs of elements: as users see them (TensorSpec, DatasetSpec) and as _core has them.

A spec of _core is a tuple: (dtype, shape or None, None) of a tensor, whose shape is a tuple of int
and None; (None, None, [spec ...]) of a dataset.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from plimsoll.tf._values.types import TensorShape, TensorSpec, TypeSpec, as_dtype

from plimsoll.tf.data._element import structure as _structure


class DatasetSpec(TypeSpec):
    """The spec of a dataset: the specs of its elements.

    >>> tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))
    DatasetSpec(TensorSpec(shape=(), dtype=tf.int64, name=None), TensorShape([]))
    """

    __slots__ = ("_element_spec", "_dataset_shape")

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self._element_spec = element_spec
        self._dataset_shape = TensorShape(dataset_shape)

    @property
    def value_type(self) -> type:
        from plimsoll.tf.data._dataset import Dataset

        return Dataset

    @property
    def element_spec(self) -> Any:
        """The spec of an element: TensorSpecs in the structure of it."""
        return self._element_spec

    @classmethod
    def from_value(cls, value: Any) -> DatasetSpec:
        """The spec of a dataset."""
        return cls(value.element_spec)

    def is_compatible_with(self, other: Any) -> bool:
        spec = other if isinstance(other, DatasetSpec) else DatasetSpec.from_value(other)
        tree, mine = _structure.flatten(self._element_spec)
        others_tree, _ = _structure.flatten(spec._element_spec)
        if not _structure.same(tree, others_tree):
            return False
        theirs = _structure.flatten_as(tree, spec._element_spec)
        return all(one.is_compatible_with(two) for one, two in zip(mine, theirs))

    def _nested_tree(self) -> _structure.Tree:
        return _structure.flatten(self._element_spec)[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetSpec) and self._element_spec == other._element_spec

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(map(hash, _structure.flatten(self._element_spec)[1])))

    def __repr__(self) -> str:
        return f"DatasetSpec({self._element_spec!r}, {self._dataset_shape!r})"


def shape_tuple(shape: Any) -> Optional[tuple]:
    """A shape as _core has it: None of an unknown rank.

    >>> shape_tuple(tf.TensorShape([None, 3]))
    (None, 3)
    """
    shape = TensorShape(shape)
    return None if shape.rank is None else tuple(shape.as_list())


def to_core(spec: Any) -> tuple:
    """One component's spec, for _core."""
    if isinstance(spec, DatasetSpec):
        return (None, None, [to_core(leaf) for leaf in _structure.flatten(spec.element_spec)[1]])
    if isinstance(spec, TypeSpec) and not isinstance(spec, TensorSpec):
        raise NotImplementedError(f"a dataset of {spec!r} by its spec: elements of dense tensors are")
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"a tf.TensorSpec or tf.data.DatasetSpec was expected, this is {spec!r}")
    return (spec.dtype, shape_tuple(spec.shape), None)


def from_core(tree: _structure.Tree, specs: Sequence[tuple]) -> Any:
    """The specs of components, in the structure of an element."""
    return _from_core(tree, iter(specs))


def _from_core(tree: _structure.Tree, specs: Any) -> Any:
    if tree is None:
        dtype, shape, _ = next(specs)
        return TensorSpec(shape, dtype)
    if tree[0] == "dataset":
        return DatasetSpec(from_core(tree[1].tree, next(specs)[2]))
    parts = [_from_core(part, specs) for part in _structure.parts_of(tree)]
    if tree[0] == "tuple":
        return tuple(parts)
    if tree[0] == "dict":
        return dict(zip(tree[1], parts))
    return tree[1](*parts) if hasattr(tree[1], "_fields") else _composite_spec(tree[1], parts)


def _composite_spec(cls: type, parts: list) -> Any:
    """The specs of a sparse tensor's indices, values and shape; the rank is known."""
    from plimsoll.tf._values.sparse_tensor import SparseTensorSpec

    _, values, dense_shape = parts
    rank = dense_shape.shape[0] if dense_shape.shape.rank == 1 else None
    return SparseTensorSpec(None if rank is None else [None] * rank, values.dtype)


def relax(one: tuple, other: tuple) -> tuple:
    """The most specific spec that both fit; TypeError if none does.

    >>> relax((tf.int32, (2, 3), None), (tf.int32, (2, 4), None))
    (tf.int32, (2, None), None)
    """
    if (one[0] is None) != (other[0] is None) or one[0] != other[0]:
        raise TypeError(f"dtypes differ: {one[0]} and {other[0]}")
    if one[0] is None:
        if len(one[2]) != len(other[2]):
            raise TypeError(f"datasets of {len(one[2])} and of {len(other[2])} components")
        return (None, None, [relax(*pair) for pair in zip(one[2], other[2])])
    if one[1] is None or other[1] is None or len(one[1]) != len(other[1]):
        return (one[0], None, None)
    dims = (mine if mine == theirs else None for mine, theirs in zip(one[1], other[1]))
    return (one[0], tuple(dims), None)


def is_known(spec: tuple) -> bool:
    """Nothing is left to be seen in an element."""
    if spec[0] is None:
        return all(map(is_known, spec[2]))
    return spec[1] is not None and None not in spec[1]


def has_rank(spec: tuple) -> bool:
    return all(map(has_rank, spec[2])) if spec[0] is None else spec[1] is not None


def from_types(types: Any, shapes: Any) -> Any:
    """TensorSpecs of what from_generator() was given before it took an output_signature."""
    tree, dtypes = _structure.flatten(types)
    if shapes is None:
        sides: list = [None] * len(dtypes)
    else:
        sides = shapes_as(tree, shapes)
    return _structure.pack(
        tree, [TensorSpec(shape, as_dtype(dtype)) for dtype, shape in zip(dtypes, sides)]
    )


def shapes_as(tree: _structure.Tree, shapes: Any) -> list:
    """Shapes by component. A tuple is a shape where the tree has one component, else a structure."""
    leaves: list = []
    _shapes_as(tree, shapes, leaves)
    return leaves


def _shapes_as(tree: _structure.Tree, shapes: Any, leaves: list) -> None:
    if tree is None or tree[0] == "dataset":
        leaves.append(_shape(shapes))
        return
    if tree[0] == "dict":
        if set(shapes) != set(tree[1]):
            raise TypeError(f"shapes of the keys {tree[1]} were expected, these are {shapes!r}")
        inner: Sequence = [shapes[key] for key in tree[1]]
    else:
        inner = tuple(shapes)
    parts = _structure.parts_of(tree)
    if len(inner) != len(parts):
        raise TypeError(f"{len(parts)} shapes were expected, these are {len(inner)}: {shapes!r}")
    for part, shape in zip(parts, inner):
        _shapes_as(part, shape, leaves)


def _shape(value: Any) -> TensorShape:
    """-1 is a dimension that is not known as well; a tensor is its values."""
    if isinstance(value, TensorShape) or value is None:
        return TensorShape(value)
    if hasattr(value, "numpy"):
        value = value.numpy()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        if any(isinstance(dim, (list, tuple)) for dim in value):
            raise ValueError(
                f"Padded shape {value!r} must be a 1-D tensor of tf.int64 values, but its shape was not."
            )
        if any(isinstance(dim, float) for dim in value):
            raise TypeError(
                f"Padded shape {value!r} must be a 1-D tensor of tf.int64 values, but its element type "
                "was float."
            )
        value = [None if dim == -1 else dim for dim in value]
    return TensorShape(value)
