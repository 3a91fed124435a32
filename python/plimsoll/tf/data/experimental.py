# SPDX-License-Identifier: Apache-2.0
"""tf.data.experimental: predecessors of Dataset's methods, as functions for apply(), and readers.

Names that are not implemented in Plimsoll raise NotImplementedError.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plimsoll import _core
from plimsoll.tf import _not_implemented
from plimsoll.tf._values.types import TensorSpec as TensorStructure
from plimsoll.tf._values.types import int64

from ._element import specs as _specs
from ._stage import python_stages as _python_stages
from ._source.make_csv import make_csv_dataset
from ._dataset import Dataset
from ._options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ThreadingOptions,
)
from ._source.readers import CsvDataset
from ._stage.stages import AUTOTUNE, number
from ._writer import TFRecordWriter

__all__ = [
    "AUTOTUNE",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "Counter",
    "CsvDataset",
    "DatasetStructure",
    "DistributeOptions",
    "ExternalStatePolicy",
    "INFINITE_CARDINALITY",
    "OptimizationOptions",
    "RandomDataset",
    "TFRecordWriter",
    "TensorStructure",
    "ThreadingOptions",
    "UNKNOWN_CARDINALITY",
    "assert_cardinality",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "enumerate_dataset",
    "from_list",
    "get_single_element",
    "get_structure",
    "group_by_window",
    "ignore_errors",
    "load",
    "make_csv_dataset",
    "map_and_batch",
    "parallel_interleave",
    "parse_example_dataset",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "scan",
    "shuffle_and_repeat",
    "snapshot",
    "take_while",
    "unbatch",
    "unique",
]

INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2
DatasetStructure = _specs.DatasetSpec
Transformation = Callable[[Dataset], Dataset]

__getattr__ = _not_implemented.getter("tf.data.experimental")


def _method(name: str) -> Callable[..., Transformation]:
    """A function that gives what Dataset.apply() takes: the method of that name."""

    def function(*args: Any, **kwargs: Any) -> Transformation:
        return lambda dataset: getattr(dataset, name)(*args, **kwargs)

    function.__name__ = name
    function.__doc__ = f"For apply(): as Dataset.{name}()."
    return function


bucket_by_sequence_length = _method("bucket_by_sequence_length")
group_by_window = _method("group_by_window")
ignore_errors = _method("ignore_errors")
rejection_resample = _method("rejection_resample")
scan = _method("scan")
snapshot = _method("snapshot")
take_while = _method("take_while")
unbatch = _method("unbatch")
unique = _method("unique")
enumerate_dataset = _method("enumerate")

choose_from_datasets = Dataset.choose_from_datasets
sample_from_datasets = Dataset.sample_from_datasets
load = Dataset.load
RandomDataset = Dataset.random


def Counter(start: int = 0, step: int = 1, dtype: Any = int64) -> Dataset:
    """start, start + step ... without end.

    >>> list(tf.data.experimental.Counter(3).take(2).as_numpy_iterator())
    [3, 4]
    """
    return Dataset.counter(start, step, dtype)


def cardinality(dataset: Dataset) -> _core.Tensor:
    """Like Dataset.cardinality().

    >>> tf.data.experimental.cardinality(tf.data.Dataset.range(3)).numpy()
    3
    """
    return dataset.cardinality()


def assert_cardinality(expected_cardinality: int) -> Transformation:
    """For apply(): the dataset has so many elements; a pass that finds otherwise fails.

    >>> ds = tf.data.Dataset.range(4).filter(lambda x: x < 2)
    >>> len(ds.apply(tf.data.experimental.assert_cardinality(2)))
    2
    """
    n_expected = number(expected_cardinality, "expected_cardinality")
    return lambda dataset: dataset._stage(
        _python_stages.assert_cardinality(dataset._core, n_expected), "AssertCardinality"
    )


def from_list(elements: Sequence, name: str | None = None) -> Dataset:
    """A dataset of elements that are in a list, each of the same structure.

    >>> ds = tf.data.experimental.from_list([(1, "a"), (2, "b")])
    >>> list(ds.as_numpy_iterator())
    [(1, b'a'), (2, b'b')]
    """
    if not isinstance(elements, list):
        raise TypeError("The argument to `from_list` should be a list.")
    if not elements:
        raise ValueError("The argument to `from_list` should not be empty.")
    spec = Dataset.from_tensors(elements[0]).element_spec
    dataset = Dataset.from_generator(lambda: iter(elements), output_signature=spec, name=name)
    return dataset.apply(assert_cardinality(len(elements)))


def get_single_element(dataset: Dataset) -> Any:
    """Like Dataset.get_single_element().

    >>> tf.data.experimental.get_single_element(tf.data.Dataset.from_tensors(7)).numpy()
    7
    """
    return dataset.get_single_element()


def get_structure(dataset_or_iterator: Any) -> Any:
    """The element_spec.

    >>> tf.data.experimental.get_structure(tf.data.Dataset.range(2))
    TensorSpec(shape=(), dtype=tf.int64, name=None)
    """
    return dataset_or_iterator.element_spec


def save(dataset: Dataset, path: Any, compression: Any = None, shard_func: Any = None) -> None:
    """Like Dataset.save()."""
    dataset.save(path, compression, shard_func)


def map_and_batch(
    map_func: Callable,
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """For apply(): map() and then batch().

    >>> ds = tf.data.Dataset.range(4)
    >>> ds = ds.apply(tf.data.experimental.map_and_batch(lambda x: x + 1, 2))
    >>> list(ds.as_numpy_iterator())
    [array([1, 2]), array([3, 4])]
    """
    calls = num_parallel_calls
    if calls is None and num_parallel_batches is not None:
        calls = number(num_parallel_batches, "num_parallel_batches") * number(batch_size, "batch_size")
    return lambda dataset: dataset.map(map_func, calls).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable,
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: bool | None = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """For apply(): interleave() with as many calls as the cycle is long.

    >>> ds = tf.data.Dataset.range(2).apply(tf.data.experimental.parallel_interleave(
    ...     lambda x: tf.data.Dataset.from_tensors(x).repeat(2), cycle_length=2))
    >>> list(ds.as_numpy_iterator())
    [0, 1, 0, 1]
    """
    return lambda dataset: dataset.interleave(
        map_func, cycle_length, block_length, cycle_length, deterministic=not sloppy
    )


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """For apply(): shuffle() and then repeat().

    >>> ds = tf.data.Dataset.range(2).apply(tf.data.experimental.shuffle_and_repeat(2, 2))
    >>> sorted(ds.as_numpy_iterator())
    [0, 0, 1, 1]
    """
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def parse_example_dataset(
    features: dict, num_parallel_calls: Any = 1, deterministic: bool | None = None
) -> Transformation:
    """For apply(): parses batches of serialized tf.train.Examples, as tf.io.parse_example()."""

    def transform(dataset: Dataset) -> Dataset:
        from plimsoll.tf import io

        return dataset.map(
            lambda records: io.parse_example(records, features), num_parallel_calls, deterministic
        )

    return transform
