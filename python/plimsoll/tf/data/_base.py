# SPDX-License-Identifier: Apache-2.0
"""The base of every dataset: a dataset of _core's, and the structure of its elements.

    core        the _core.Dataset, which has components only
    tree        how its components make an element: see _element/structure.py
    kind        the call that made it: "Map", "Batch" ...; its class in TensorFlow, without "Dataset"
    parameters  its arguments, for explain()
    sources     the datasets that it was made of

Datasets are never changed; the report of a pass (bad elements, times) is reported for the last one that
ended, or is under way.
"""
from __future__ import annotations

from typing import Any, Optional

from plimsoll import _core, errors
from plimsoll.tf._graph import context as _context

from ._element import structure as _structure, specs as _specs
from ._iterator import OwnedIterator

_KEEP: Any = object()


class Base:
    """The common part of datasets."""

    def __init__(
        self,
        core: _core.Dataset,
        tree: _structure.Tree,
        kind: str = "Variant",
        sources: tuple = (),
        parameters: Optional[dict] = None,
    ) -> None:
        self._core = core
        self._tree = tree
        self._kind = kind
        self._sources = sources
        self._parameters = parameters or {}
        self._structure: Optional[_core.Structure] = None
        self._spec: Any = None
        self._set_options: Any = None  # tf.data.Options that with_options() gave it
        self._pass: Any = None  # a weak reference to the last iterator
        self._past: Any = None  # the report of the last iterator at its end
        self._logs = False  # bad elements are reported on stderr when a pass ends

    def _stage(
        self,
        core: _core.Dataset,
        kind: str,
        tree: Any = _KEEP,
        name: Optional[str] = None,
        sources: Optional[tuple] = None,
        **parameters: Any,
    ) -> Any:
        """A dataset over this one."""
        tree = self._tree if tree is _KEEP else tree
        return make(core, tree, kind, (self,) if sources is None else sources, parameters, name)

    def _nested_tree(self) -> _structure.Tree:
        """For _structure.flatten(): a dataset is one component."""
        return self._tree

    def _pack(self) -> _core.Structure:
        if self._structure is None:
            self._structure = _core.Structure(self._tree)
        return self._structure

    @property
    def element_spec(self) -> Any:
        """The spec of an element: TensorSpecs in the structure of it.

        >>> tf.data.Dataset.from_tensor_slices([1, 2, 3]).element_spec
        TensorSpec(shape=(), dtype=tf.int32, name=None)
        """
        if self._spec is None:
            self._spec = _specs.from_core(self._tree, self._core.specs)
        return self._spec

    def __iter__(self) -> OwnedIterator:
        must_be_eager(_EAGER_ONLY)
        return OwnedIterator._begin(self)

    def __bool__(self) -> bool:
        return True  # as in TensorFlow: a dataset is something, however long it is

    __nonzero__ = __bool__

    def __len__(self) -> int:
        """The number of elements, where it is known: else TypeError.

        >>> len(tf.data.Dataset.range(42))
        42
        """
        must_be_eager(
            "`tf.data.Dataset` only supports `len` in eager mode. Use "
            "`tf.data.Dataset.cardinality()` instead."
        )
        n_elements = self._core.cardinality
        if n_elements == -1:
            raise TypeError("The dataset is infinite.")
        if n_elements < 0:
            raise TypeError("The dataset length is unknown.")
        return n_elements

    def __repr__(self) -> str:
        own = type(self).__name__
        name = f"_{self._kind}Dataset" if own == "Dataset" else own
        return f"<{name} element_spec={self.element_spec!r}>"

    __str__ = __repr__


_EAGER_ONLY = (
    "`tf.data.Dataset` only supports Python-style iteration in eager mode or within tf.function."
)


def must_be_eager(message: str) -> None:
    """Raises where elements are needed now and a function is being traced: it must run in Python."""
    if _context.trace_here() is not None:
        raise errors.OperatorNotAllowedInGraphError("the elements of a dataset are asked for")
    if _context.here.graph is not None:
        raise RuntimeError(message)


def make(
    core: _core.Dataset,
    tree: _structure.Tree,
    kind: str = "Variant",
    sources: tuple = (),
    parameters: Optional[dict] = None,
    name: Optional[str] = None,
) -> Any:
    """A Dataset."""
    from ._dataset import Dataset

    if name is not None:
        core.name = name
    return Dataset(core, tree, kind, sources, parameters)


_structure.Nested.make = staticmethod(make)  # type: ignore[assignment]
