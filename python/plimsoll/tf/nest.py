# SPDX-License-Identifier: Apache-2.0
"""tf.nest: values in tuples, lists, dicts and named tuples, and the same in one row.

Dicts are flattened in the order of their sorted keys; anything else is a leaf, a
NumPy array and a tensor as well.

    >>> import plimsoll.tf as tf
    >>> tf.nest.flatten({"b": [1, 2], "a": 3})
    [3, 1, 2]
    >>> tf.nest.map_structure(lambda x: x + 1, (1, [2, 3]))
    (2, [3, 4])
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Iterable, Iterator, List

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]


def is_nested(structure: Any) -> bool:
    """Is it a structure, rather than a leaf?

    >>> is_nested([1]), is_nested("text"), is_nested({})
    (True, False, True)
    """
    return isinstance(structure, (list, tuple)) or isinstance(structure, Mapping)


def _is_composite(value: Any) -> bool:
    """Something made of several tensors, as a SparseTensor is."""
    return hasattr(value, "_composite_parts") and not isinstance(value, type)


def _sorted_keys(mapping: Any) -> List[Any]:
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def _children(structure: Any) -> Iterable[Any]:
    if _is_composite(structure):
        return structure._composite_parts()
    if isinstance(structure, Mapping):
        return [structure[key] for key in _sorted_keys(structure)]
    return structure


def _like(structure: Any, children: List[Any]) -> Any:
    """A structure of the same kind, with these children."""
    if _is_composite(structure):
        return structure._composite_like(children)
    if isinstance(structure, Mapping):
        by_key = dict(zip(_sorted_keys(structure), children))
        in_order = {key: by_key[key] for key in structure}
        cls = type(structure)
        if cls is dict:
            return in_order
        if hasattr(structure, "default_factory"):  # collections.defaultdict
            return cls(structure.default_factory, in_order)  # type: ignore[call-arg]
        return cls(in_order)  # type: ignore[call-arg]
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*children)
    return type(structure)(children)


def _walk(structure: Any, composites: bool = False) -> Iterator[Any]:
    if is_nested(structure) or (composites and _is_composite(structure)):
        for child in _children(structure):
            yield from _walk(child, composites)
    else:
        yield structure


def flatten(structure: Any, expand_composites: bool = False) -> List[Any]:
    """Its leaves in one list.

    >>> flatten((1, [2, {"b": 4, "a": 3}]))
    [1, 2, 3, 4]
    """
    return list(_walk(structure, expand_composites))


def pack_sequence_as(
    structure: Any, flat_sequence: Any, expand_composites: bool = False
) -> Any:
    """`flat_sequence` in the form of `structure`: the reverse of flatten().

    >>> pack_sequence_as({"a": 0, "b": (0, 0)}, [1, 2, 3])
    {'a': 1, 'b': (2, 3)}
    """
    flat = list(flat_sequence)
    n = sum(1 for _ in _walk(structure, expand_composites))
    if n != len(flat):
        raise ValueError(
            f"Could not pack sequence. Structure had {n} atoms, but flat_sequence had "
            f"{len(flat)} items. Structure: {structure}, flat_sequence: {flat}."
        )
    leaves = iter(flat)

    def pack(part: Any) -> Any:
        if not (is_nested(part) or (expand_composites and _is_composite(part))):
            return next(leaves)
        return _like(part, [pack(child) for child in _children(part)])

    return pack(structure)


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """`func` of each leaf, or of the leaves at the same place in several structures.

    >>> map_structure(lambda a, b: a * b, [1, (2,)], [3, (4,)])
    [3, (8,)]
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types=kwargs.get("check_types", True))
    rows = zip(*map(flatten, structure))
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in rows])


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """ValueError if they differ in form, TypeError if in kind (a list and a tuple).

    >>> assert_same_structure([1, (2,)], [3, (4,)])
    """
    if is_nested(nest1) != is_nested(nest2):
        raise ValueError(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: {nest1}\n\nSecond structure: {nest2}"
        )
    if not is_nested(nest1):
        return
    if check_types and _kind(nest1) is not _kind(nest2):
        raise TypeError(
            f"The two structures don't have the same sequence type. First structure has type "
            f"{type(nest1).__name__}, while second structure has type {type(nest2).__name__}"
        )
    _assert_same_children(nest1, nest2, check_types)


def _kind(structure: Any) -> Any:
    return dict if isinstance(structure, Mapping) else type(structure)


def _assert_same_children(nest1: Any, nest2: Any, check_types: bool) -> None:
    if isinstance(nest1, Mapping) and isinstance(nest2, Mapping) and set(nest1) != set(nest2):
        raise ValueError(
            f"The two dictionaries don't have the same set of keys. First structure has keys "
            f"{list(nest1)}, while second structure has keys {list(nest2)}"
        )
    first, second = list(_children(nest1)), list(_children(nest2))
    if len(first) != len(second):
        raise ValueError(
            "The two structures don't have the same number of elements.\n\n"
            f"First structure ({len(first)} elements): {nest1}\n\n"
            f"Second structure ({len(second)} elements): {nest2}"
        )
    for one, other in zip(first, second):
        assert_same_structure(one, other, check_types)
