# SPDX-License-Identifier: Apache-2.0
"""Structures of components: the layout of an element, and its components in order.

    component  a tensor, or (of windows) a dataset
    tree       how components make an element, as _core.Structure takes it:
                 None                        one component
                 ("tuple", [tree ...])       ("dict", [key ...], [tree ...])
                 ("named", class, [tree ...])  a named tuple, or an object made of parts (sparse)
                 ("dataset", Nested)         one component that is a dataset
    leaves     the components, in the order of the tree

A list is not a structure here, as in TensorFlow's datasets: it becomes one tensor. Components of a
dict are in the order of its keys as they were given; two dicts match by their keys.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

Tree = Optional[tuple]


class Nested:
    """Makes a Dataset of a _core.Dataset that is an element's component."""

    make: Callable[[Any, Tree], Any]  # set where Dataset is

    __slots__ = ("tree",)

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def __call__(self, core: Any) -> Any:
        return Nested.make(core, self.tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nested) and same(self.tree, other.tree)

    __hash__ = object.__hash__


def is_named(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(type(value), "_fields")


def flatten(value: Any) -> tuple[Tree, list]:
    """The tree of a value, and its leaves: whatever is not a tuple, dict or sparse tensor.

    >>> flatten({"a": 1, "b": (2, [3, 4])})
    (('dict', ['a', 'b'], [None, ('tuple', [None, None])]), [1, 2, [3, 4]])
    """
    leaves: list = []
    return _flatten(value, leaves), leaves


def _flatten(value: Any, leaves: list) -> Tree:
    if isinstance(value, tuple):
        trees = [_flatten(part, leaves) for part in value]
        return ("named", type(value), trees) if is_named(value) else ("tuple", trees)
    if isinstance(value, Mapping):
        keys = list(value)
        return ("dict", keys, [_flatten(value[key], leaves) for key in keys])
    parts = getattr(value, "_composite_parts", None)  # a sparse tensor
    if parts is not None:
        return ("named", type(value), [_flatten(part, leaves) for part in parts()])
    nested = getattr(value, "_nested_tree", None)  # a Dataset, a DatasetSpec
    leaves.append(value)
    return None if nested is None else ("dataset", Nested(nested()))


def parts_of(tree: Tree) -> list:
    """The trees within one, in order."""
    if tree is None or tree[0] == "dataset":
        return []
    return tree[-1]


def n_leaves(tree: Tree) -> int:
    if tree is None or tree[0] == "dataset":
        return 1
    return sum(n_leaves(part) for part in parts_of(tree))


def pack(tree: Tree, leaves: Sequence) -> Any:
    """The value whose leaves these are; what stands for a dataset stays as it is.

    >>> pack(("dict", ["a", "b"], [None, ("tuple", [None, None])]), [1, 2, 3])
    {'a': 1, 'b': (2, 3)}
    """
    return _pack(tree, iter(leaves))


def _pack(tree: Tree, leaves: Any) -> Any:
    if tree is None or tree[0] == "dataset":
        return next(leaves)
    parts = [_pack(part, leaves) for part in parts_of(tree)]
    if tree[0] == "tuple":
        return tuple(parts)
    if tree[0] == "dict":
        return dict(zip(tree[1], parts))
    return tree[1](*parts)


def same(one: Tree, other: Tree) -> bool:
    """Alike: the same kinds, keys (in any order) and classes, all the way down."""
    if one is None or other is None:
        return one is other
    if one[0] != other[0]:
        return False
    if one[0] == "dataset":
        return one[1] == other[1]
    if one[0] == "dict":
        theirs = dict(zip(other[1], other[2]))
        return set(one[1]) == set(theirs) and all(
            same(tree, theirs[key]) for key, tree in zip(one[1], one[2])
        )
    if one[0] == "named" and one[1] is not other[1]:
        return False
    mine, their_parts = parts_of(one), parts_of(other)
    return len(mine) == len(their_parts) and all(map(same, mine, their_parts))


def flatten_as(tree: Tree, value: Any) -> list:
    """The leaves of a value that has this tree, in the tree's order; TypeError if it has not.

    >>> flatten_as(("dict", ["a", "b"], [None, None]), {"b": 2, "a": 1})
    [1, 2]
    """
    leaves: list = []
    _flatten_as(tree, value, leaves)
    return leaves


def _flatten_as(tree: Tree, value: Any, leaves: list) -> None:
    if tree is None or tree[0] == "dataset":
        leaves.append(value)  # a tuple as well: it becomes one tensor
        return
    for part, inner in zip(parts_of(tree), _inner(tree, value)):
        _flatten_as(part, inner, leaves)


def _inner(tree: tuple, value: Any) -> Sequence:
    kind, parts = tree[0], parts_of(tree)
    if kind == "dict":
        if not isinstance(value, Mapping) or set(value) != set(tree[1]):
            raise TypeError(f"a dict with the keys {tree[1]} was expected, this is {value!r}")
        return [value[key] for key in tree[1]]
    if kind == "named" and not isinstance(value, tuple):
        if type(value) is not tree[1]:
            raise TypeError(f"a {tree[1].__name__} was expected, this is {value!r}")
        return value._composite_parts()
    if not isinstance(value, tuple) or len(value) != len(parts):
        raise TypeError(f"a tuple of {len(parts)} was expected, this is {value!r}")
    return value


def broadcast_as(tree: Tree, value: Any) -> list:
    """Like flatten_as(), but one value stands for all leaves below it."""
    leaves: list = []
    _broadcast_as(tree, value, leaves)
    return leaves


def _broadcast_as(tree: Tree, value: Any, leaves: list) -> None:
    if not isinstance(value, (tuple, Mapping)):
        leaves.extend([value] * n_leaves(tree))
    elif tree is None or tree[0] == "dataset":
        raise TypeError(f"one component was expected, this is a structure: {value!r}")
    else:
        for part, inner in zip(parts_of(tree), _inner(tree, value)):
            _broadcast_as(part, inner, leaves)


def positions_as(tree: Tree, other: Tree) -> list[int]:
    """Where `other`, which is the same() but for the order of keys, has each leaf of `tree`."""
    return flatten_as(tree, _numbered(other, iter(range(n_leaves(other)))))


def _numbered(tree: Tree, numbers: Any) -> Any:
    """A value of this tree whose leaves are their own positions; composites as plain tuples."""
    if tree is None or tree[0] == "dataset":
        return next(numbers)
    parts = [_numbered(part, numbers) for part in parts_of(tree)]
    return dict(zip(tree[1], parts)) if tree[0] == "dict" else tuple(parts)


def has_datasets(tree: Tree) -> bool:
    if tree is None:
        return False
    return tree[0] == "dataset" or any(has_datasets(part) for part in parts_of(tree))


def has_composites(tree: Tree) -> bool:
    """Sparse tensors and such, which not every stage can treat component by component."""
    if tree is None or tree[0] == "dataset":
        return False
    if tree[0] == "named" and not hasattr(tree[1], "_fields"):
        return True
    return any(has_composites(part) for part in parts_of(tree))


def nest_components(tree: Tree) -> Tree:
    """Each component of the tree as a dataset of it: as in a window."""
    if tree is None or tree[0] == "dataset":
        return ("dataset", Nested(tree))
    parts = [nest_components(part) for part in parts_of(tree)]
    return (*tree[:-1], parts)


def map_leaves(function: Callable, tree: Tree, value: Any) -> Any:
    """The value with each leaf replaced by the function's result for it."""
    return pack(tree, [function(leaf) for leaf in flatten_as(tree, value)])
