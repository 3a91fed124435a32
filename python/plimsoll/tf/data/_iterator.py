# SPDX-License-Identifier: Apache-2.0
"""Passes over datasets, as Python sees them.

An iterator is _core's own, so that a loop over it costs no call in Python; here it learns
TensorFlow's other names, and to leave a report when it ends.
"""
from __future__ import annotations

import sys
import weakref
from typing import Any, Callable

from plimsoll import _core, errors

from ._element import structure as _structure


_N_TOLD = 64  # bad elements of a pass, as the library's


class Skipped:
    """The elements that passes below a Python stage skipped. The library counts in each pass alone,
    and these are passes of their own."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.n_bad = 0
        self.bads: list = []

    def add(self, n_bad: int, bads: list) -> None:
        self.n_bad += n_bad
        self.bads += bads[: _N_TOLD - len(self.bads)]


skipped_in: Any = weakref.WeakKeyDictionary()  # Skipped, by the stage's _core.Dataset


def _chain(dataset: Any) -> list:
    """The dataset and all that it was made of, each once."""
    found, waiting = {id(dataset): dataset}, [dataset]
    while waiting:
        for source in waiting.pop()._sources:
            if id(source) not in found:
                found[id(source)] = source
                waiting.append(source)
    return list(found.values())


class OwnedIterator(_core.Iterator):
    """One pass over a dataset. `tf.data.Iterator` is its class.

    >>> iterator = iter(tf.data.Dataset.range(2))
    >>> int(next(iterator)), int(iterator.get_next())
    (0, 1)
    >>> iterator.get_next()
    Traceback (most recent call last):
        ...
    plimsoll.errors.OutOfRangeError: End of sequence
    """

    _of: Any

    @classmethod
    def _begin(cls, dataset: Any) -> OwnedIterator:
        self = cls(dataset._core, dataset._pack())
        self._of = dataset
        own = weakref.ref(self)
        for part in _chain(dataset):
            part._pass = own
            if part._core in skipped_in:
                skipped_in[part._core].clear()
        return self

    def get_next(self, name: Any = None) -> Any:
        """The next element; OutOfRangeError at the end, where next() raises StopIteration."""
        try:
            return next(self)
        except StopIteration:
            raise errors.OutOfRangeError(None, None, "End of sequence") from None

    def get_next_as_optional(self) -> Any:
        """Not implemented."""
        raise NotImplementedError(
            "tf.data.Iterator.get_next_as_optional: not implemented in Plimsoll; "
            "next(iterator, None) says whether there is another element"
        )

    @property
    def element_spec(self) -> Any:
        """As the dataset's."""
        return self._of.element_spec

    def _told(self) -> dict:
        """The pass's statistics, which are kept when it ends."""
        n_bad, n_items = self.bad_count()
        bads = self.bads() if n_bad else []
        below = [skipped_in.get(part._core) for part in _chain(self._of)]
        for skipped in filter(None, below):
            n_bad, n_items = n_bad + skipped.n_bad, n_items + skipped.n_bad
            bads = (skipped.bads + bads)[:_N_TOLD]
        return {
            "n_bad": n_bad,
            "n_items": n_items,
            "bads": bads,
            "explain": {as_json: self.explain(json=as_json) for as_json in (False, True)},
        }

    def __del__(self) -> None:
        dataset = getattr(self, "_of", None)
        if dataset is None or sys.is_finalizing():
            return
        try:
            told = self._told()
        except Exception:  # of an iterator that could not be made, or was cancelled: nothing to tell
            return
        parts = _chain(dataset)
        for part in parts:
            part._past = told
        if told["n_bad"] and any(part._logs for part in parts):
            _log(told)


def _log(told: dict) -> None:
    first = told["bads"][0]["message"] if told["bads"] else "?"
    print(
        f"plimsoll: {told['n_bad']} of {told['n_items']} elements were left out; the first: {first}",
        file=sys.stderr,
    )


class IteratorSpec:
    """The spec of an iterator: the specs of its elements.

    >>> tf.data.IteratorSpec(tf.TensorSpec([], tf.int64)).element_spec
    TensorSpec(shape=(), dtype=tf.int64, name=None)
    """

    value_type = OwnedIterator

    def __init__(self, element_spec: Any) -> None:
        self.element_spec = element_spec

    @classmethod
    def from_value(cls, value: OwnedIterator) -> IteratorSpec:
        return cls(value.element_spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IteratorSpec) and self.element_spec == other.element_spec

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"IteratorSpec({self.element_spec!r})"


class NumpyIterator:
    """The iterator of as_numpy_iterator(): elements whose tensors are arrays.

    >>> next(tf.data.Dataset.from_tensors({"a": [1, 2]}).as_numpy_iterator())
    {'a': array([1, 2], dtype=int32)}
    """

    __slots__ = ("_iterator", "_convert")

    def __init__(self, dataset: Any) -> None:
        self._iterator = iter(dataset)
        self._convert = _to_numpy(dataset._tree)

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        return self._convert(next(self._iterator))


def _to_numpy(tree: _structure.Tree) -> Callable[[Any], Any]:
    if tree is None:
        return _core.Tensor.numpy
    if _structure.has_composites(tree):
        raise TypeError(
            "`tf.data.Dataset.as_numpy_iterator()` is not supported for datasets that produce "
            "sparse tensors: tf.sparse.to_dense() in a map makes them dense"
        )

    def leaf(component: Any) -> Any:
        return component.numpy() if isinstance(component, _core.Tensor) else NumpyIterator(component)

    return lambda element: _structure.map_leaves(leaf, tree, element)


def raw(core: _core.Dataset) -> _core.Iterator:
    """A pass whose elements are tuples of components, without a structure."""
    return _core.Iterator(core, _core.Structure(("tuple", [_leaf(spec) for spec in core.specs])))


def _leaf(spec: tuple) -> _structure.Tree:
    return None if spec[0] is not None else ("dataset", _as_it_is)


def _as_it_is(core: _core.Dataset) -> _core.Dataset:
    return core
