# SPDX-License-Identifier: Apache-2.0
"""tf.compat.v1.data: datasets in graphs and sessions.

    iterator  a pass that `session.run()` advances: what get_next() gives are nodes of the graph,
              which ask for the next element when they are run

An iterator of a graph has one place, whichever session runs it. One that is initializable begins
anew whenever its initializer is run, with what placeholders are fed then.
"""
from __future__ import annotations

import threading
from typing import Any, Optional

from plimsoll import _core, errors
from plimsoll.tf._graph import context as _context, graph as _graph, trace as _trace
from plimsoll.tf import bool as tf_bool
from plimsoll.tf._values.types import TensorSpec

from . import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ._element import structure as _structure, specs as _specs
from ._source import placeholders as _placeholders
from ._stage import tracing as _tracing
from . import experimental
from ._dataset import Dataset
from ._iterator import OwnedIterator, raw
from ._options import Options, ThreadingOptions
from ._source.readers import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset

__all__ = [
    "AUTOTUNE",
    "Dataset",
    "FixedLengthRecordDataset",
    "INFINITE_CARDINALITY",
    "Iterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "ThreadingOptions",
    "UNKNOWN_CARDINALITY",
    "experimental",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]


class _Place:
    """Where an iterator is. What a graph's nodes call: so nothing here leads to nodes, which hold what
    they call where the collector does not see it."""

    def __init__(self, tree: _structure.Tree) -> None:
        self._tree = tree
        self._lock = threading.Lock()  # of the pass: sessions may run in several threads
        self._pass: Any = None
        self.one_shot: Any = None  # the dataset of one that begins by itself

    def begin(self, dataset: Any) -> None:
        with self._lock:
            self._pass = self._steps(dataset)

    def _steps(self, dataset: Any) -> Any:
        """A pass, whose components are in the iterator's order. It goes on behind an error."""
        order = _structure.positions_as(self._tree, dataset._tree)
        with _tracing.eager():
            return map(lambda element: [element[i] for i in order], raw(dataset._core))

    def next(self) -> Any:
        with self._lock, _tracing.eager():
            if self._pass is None and self.one_shot is not None:
                self._pass = self._steps(self.one_shot)
            if self._pass is None:
                raise errors.FailedPreconditionError(
                    None,
                    None,
                    "GetNext() failed because the iterator has not been initialized. Ensure that you "
                    "have run the initializer operation for this iterator before getting the next "
                    "element.",
                )
            for element in self._pass:
                return element
        raise errors.OutOfRangeError(None, None, "End of sequence")


class Iterator:
    """An iterator of a graph.

    >>> with tf.Graph().as_default():
    ...     iterator = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(2))
    ...     element = iterator.get_next()
    ...     with tf.compat.v1.Session() as session:
    ...         print(session.run(element), session.run(element))
    0 1
    """

    def __init__(self, tree: _structure.Tree, specs: list) -> None:
        self._tree, self._specs = tree, specs
        self._place = _Place(tree)
        self._initializer: Any = None

    @property
    def initializer(self) -> Any:
        """An op that restarts the pass."""
        if self._initializer is None:
            raise ValueError("Iterator does not have an initializer.")
        return self._initializer

    def make_initializer(self, dataset: Any, name: Optional[str] = None) -> Any:
        """An op that begins a pass over the dataset, whose elements are like the iterator's.

        >>> with tf.Graph().as_default():
        ...     small, large = tf.data.Dataset.range(2), tf.data.Dataset.range(9)
        ...     iterator = tf.compat.v1.data.Iterator.from_structure(tf.int64, [])
        ...     begin, element = iterator.make_initializer(large), iterator.get_next()
        ...     with tf.compat.v1.Session() as session:
        ...         session.run(begin)
        ...         print(session.run(element))
        0
        """
        if not _structure.same(self._tree, dataset._tree):
            raise TypeError(
                "Expected output classes and structure of the iterator, "
                f"{self.element_spec!r}, but got dataset with {dataset.element_spec!r}."
            )
        other, order = dataset._core.specs, _structure.positions_as(self._tree, dataset._tree)
        for have, want in zip((other[i] for i in order), self._specs):
            if not TensorSpec(want[1], want[0]).is_compatible_with(TensorSpec(have[1], have[0])):
                raise TypeError(
                    f"Expected output types and shapes {self.element_spec!r} but got dataset with "
                    f"{dataset.element_spec!r}."
                )
        return self._made_initializer(dataset, name)

    def _made_initializer(self, dataset: Any, name: Optional[str] = None) -> Any:
        holders, place = _placeholders.holders_of(dataset), self._place

        def begin(*values: Any) -> list:
            left = list(values)
            for holder in holders:
                n_own = len(holder.tensors)
                holder.values, left = left[:n_own], left[n_own:]
            place.begin(dataset)
            return [True]

        tensors = [tensor for holder in holders for tensor in holder.tensors]
        done = _core.python_call(begin, tensors, [(tf_bool, ())], name or "MakeIterator")[0]
        _trace.note_effect(done)
        return _graph.operation_of(done)

    def get_next(self, name: Optional[str] = None) -> Any:
        """The next element, as nodes: run together they are of one element."""
        if _structure.has_datasets(self._tree):
            raise NotImplementedError("Iterator.get_next() in a graph, of elements that are datasets")
        outputs = [(dtype, shape) for dtype, shape, _ in self._specs]
        name = name or "IteratorGetNext"
        if _context.trace_here() is not None:
            return _structure.pack(self._tree, _trace.effect(self._place.next, [], outputs, name)[:-1])
        nodes = _core.python_call(self._place.next, [], outputs, name)
        for node in nodes[:1]:
            _trace.note_effect(node)
        return _structure.pack(self._tree, nodes)

    @property
    def element_spec(self) -> Any:
        return _specs.from_core(self._tree, self._specs)

    @property
    def output_types(self) -> Any:
        return get_output_types(self)

    @property
    def output_shapes(self) -> Any:
        return get_output_shapes(self)

    @property
    def output_classes(self) -> Any:
        return get_output_classes(self)

    @staticmethod
    def from_structure(
        output_types: Any,
        output_shapes: Any = None,
        shared_name: Optional[str] = None,
        output_classes: Any = None,
    ) -> Iterator:
        """An iterator for any dataset of such elements: see make_initializer()."""
        tree, leaves = _structure.flatten(_specs.from_types(output_types, output_shapes))
        return Iterator(tree, [_specs.to_core(leaf) for leaf in leaves])

    @staticmethod
    def from_string_handle(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "tf.compat.v1.data.Iterator.from_string_handle: not implemented in Plimsoll; "
            "from_structure() makes an iterator for several datasets"
        )


def _in_graph() -> bool:
    return _context.here.graph is not None


def make_one_shot_iterator(dataset: Any) -> Any:
    """An iterator that needs no initializer. Eagerly it is iter(dataset)."""
    if not _in_graph():
        return OwnedIterator._begin(dataset)
    if _placeholders.holders_of(dataset):
        raise ValueError(
            "a one-shot iterator over placeholders: make_initializable_iterator() takes their values "
            "when its initializer is run"
        )
    iterator = Iterator(dataset._tree, dataset._core.specs)
    iterator._place.one_shot = dataset
    return iterator


def make_initializable_iterator(dataset: Any, shared_name: Optional[str] = None) -> Any:
    """An iterator that begins when its initializer is run, and anew each time.

    >>> with tf.Graph().as_default():
    ...     limit = tf.compat.v1.placeholder(tf.int64, [None])
    ...     dataset = tf.data.Dataset.from_tensor_slices(limit)
    ...     iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
    ...     element = iterator.get_next()
    ...     with tf.compat.v1.Session() as session:
    ...         session.run(iterator.initializer, feed_dict={limit: [7, 8]})
    ...         print(session.run(element))
    7
    """
    if not _in_graph():
        raise RuntimeError(
            "dataset.make_initializable_iterator is not supported when eager execution is enabled. "
            "Use `for element in dataset` instead."
        )
    iterator = Iterator(dataset._tree, dataset._core.specs)
    iterator._initializer = iterator._made_initializer(dataset)
    return iterator


def _legacy(dataset_or_iterator: Any, of_leaf: Any) -> Any:
    spec = dataset_or_iterator.element_spec
    tree, leaves = _structure.flatten(spec)
    return _structure.pack(tree, [of_leaf(leaf) for leaf in leaves])


def get_output_types(dataset_or_iterator: Any) -> Any:
    """The dtypes of an element's components.

    >>> tf.compat.v1.data.get_output_types(tf.data.Dataset.range(2))
    tf.int64
    """
    return _legacy(dataset_or_iterator, lambda spec: spec.dtype)


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """The shapes of an element's components.

    >>> tf.compat.v1.data.get_output_shapes(tf.data.Dataset.range(4).batch(2))
    TensorShape([None])
    """
    return _legacy(dataset_or_iterator, lambda spec: spec.shape)


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """The classes of an element's components.

    >>> tf.compat.v1.data.get_output_classes(tf.data.Dataset.range(2)) is tf.Tensor
    True
    """
    return _legacy(dataset_or_iterator, lambda spec: spec.value_type)


def _attach() -> None:
    """The functions that were methods in TensorFlow 1."""
    Dataset.make_one_shot_iterator = make_one_shot_iterator  # type: ignore[attr-defined]
    Dataset.make_initializable_iterator = make_initializable_iterator  # type: ignore[attr-defined]
    Dataset.output_types = property(get_output_types)  # type: ignore[attr-defined]
    Dataset.output_shapes = property(get_output_shapes)  # type: ignore[attr-defined]
    Dataset.output_classes = property(get_output_classes)  # type: ignore[attr-defined]


_attach()
