# SPDX-License-Identifier: Apache-2.0
"""Where elements come from: tensors, numbers, generators, names of files, other datasets."""
from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Optional

from plimsoll import _core, errors
from plimsoll.tf._values.types import as_dtype, int64

from plimsoll.tf.data._element import (
    structure as _structure,
    structure_file as _structure_file,
    specs as _specs,
)
from plimsoll.tf.data._source import (
    placeholders as _placeholders,
    from_generator as _from_generator,
)
from plimsoll.tf.data._stage import user_function as _user_function, tracing as _tracing
from plimsoll.tf.data._base import make
from plimsoll.tf.data._seeds import seed_of, stage_seed_of
from plimsoll.tf.data._stage.stages import number

if TYPE_CHECKING:
    from plimsoll.tf.data._dataset import Dataset

INFINITE, UNKNOWN = -1, -2


def tensors_of(value: Any) -> tuple[_structure.Tree, list]:
    """A structure of values, converted to tensors."""
    tree, leaves = _structure.flatten(value)
    if not leaves:
        raise ValueError("Invalid `tensors`: there is no component in it.")
    return tree, [leaf if hasattr(leaf, "_nested_tree") else _core.convert(leaf) for leaf in leaves]


class Sources:
    """Static methods of Dataset that make one of something else."""

    @staticmethod
    def from_tensors(tensors: Any, name: Optional[str] = None) -> Dataset:
        """A dataset of one element: these tensors.

        >>> list(tf.data.Dataset.from_tensors(([1, 2], "a")).as_numpy_iterator())
        [(array([1, 2], dtype=int32), b'a')]
        """
        tree, leaves = tensors_of(tensors)
        if _structure.has_datasets(tree):
            core = _user_function.dataset_of(*_with_datasets(leaves))
        else:
            core = _placeholders.source(_core.ds_tensors, leaves)
        return make(core, tree, "Tensor", (), {"n_elements": 1}, name)

    @staticmethod
    def from_tensor_slices(tensors: Any, name: Optional[str] = None) -> Dataset:
        """The slices of tensors along their first axis.

        >>> list(tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [3, 4]}).as_numpy_iterator())
        [{'a': 1, 'b': 3}, {'a': 2, 'b': 4}]
        """
        tree, leaves = tensors_of(tensors)
        if _structure.has_composites(tree) or _structure.has_datasets(tree):
            raise NotImplementedError(
                "Dataset.from_tensor_slices() of sparse tensors or datasets: of dense tensors only"
            )
        _check_first_axes(leaves)
        core = _placeholders.source(_core.ds_slices, leaves, sliced=True)
        return make(core, tree, "TensorSlice", (), {}, name)

    @staticmethod
    def from_generator(
        generator: Callable,
        output_types: Any = None,
        output_shapes: Any = None,
        args: Optional[Sequence] = None,
        output_signature: Any = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """The elements that a generator yields. It is called for each pass, with `args` as NumPy arrays.

        >>> def count(stop):
        ...     for number in range(stop):
        ...         yield number
        >>> ds = tf.data.Dataset.from_generator(
        ...     count, args=(3,), output_signature=tf.TensorSpec([], tf.int64))
        >>> list(ds.as_numpy_iterator())
        [0, 1, 2]
        """
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        signature = _from_generator.signature_of(output_types, output_shapes, output_signature)
        tree, leaves = _structure.flatten(signature)
        specs = [_specs.to_core(leaf) for leaf in leaves]
        if args is not None and not isinstance(args, (tuple, list)):
            raise TypeError(f"`args` must be a tuple of what the generator is called with. Got {args!r}.")
        values = [_core.convert(value) for value in args or ()]
        begin = _from_generator.yields(generator, values, signature, tree, specs)
        return make(_core.ds_generator(begin, specs, UNKNOWN), tree, "FlatMap", (), {}, name)

    @staticmethod
    def range(*args: Any, **kwargs: Any) -> Dataset:
        """Numbers: range(stop), range(start, stop) or range(start, stop, step).

        >>> list(tf.data.Dataset.range(5, 1, -2).as_numpy_iterator())
        [5, 3]
        """
        output_type = as_dtype(kwargs.pop("output_type", int64))
        name = kwargs.pop("name", None)
        if kwargs:
            raise TypeError(f"Dataset.range(): unexpected argument '{next(iter(kwargs))}'")
        if not 1 <= len(args) <= 3:
            raise ValueError(
                f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}."
            )
        numbers = [number(value, "range") for value in args]
        start, stop = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
        core = _core.ds_range(start, stop, numbers[2] if len(numbers) == 3 else 1)
        dataset = make(core, None, "Range", (), {}, name)
        return dataset if output_type == int64 else _cast(dataset, output_type)

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: Optional[str] = None) -> Dataset:
        """Elements of several datasets beside each other, until one of them ends.

        >>> a, b = tf.data.Dataset.range(1, 4), tf.data.Dataset.range(4, 7)
        >>> list(tf.data.Dataset.zip(a, b).as_numpy_iterator())
        [(1, 4), (2, 5), (3, 6)]
        """
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        if args and datasets is not None:
            raise TypeError("Both `*args` and `datasets` cannot be set.")
        if datasets is None:
            datasets = args[0] if len(args) == 1 else args
        inputs = _datasets_of(datasets)
        core = _core.ds_zip([dataset._core for dataset in inputs])
        return make(core, _zipped(datasets), "Zip", tuple(inputs), {}, name)

    @staticmethod
    def list_files(
        file_pattern: Any,
        shuffle: Optional[bool] = None,
        seed: Any = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """The names of files that match, in random order unless `shuffle` is False.

        >>> import pathlib
        >>> for name in ("b.txt", "a.txt"):
        ...     _ = pathlib.Path(name).write_text("")
        >>> list(tf.data.Dataset.list_files("*.txt", shuffle=False).as_numpy_iterator())
        [b'a.txt', b'b.txt']
        """
        patterns = _texts(file_pattern)
        is_shuffled = shuffle is None or bool(shuffle)
        try:
            core = _core.ds_files(patterns, is_shuffled, stage_seed_of(seed), False)
        except errors.NotFoundError as error:
            raise errors.InvalidArgumentError(
                None, None, f"No files matched pattern: {', '.join(patterns)}"
            ) from error
        return make(core, None, "Shuffle" if is_shuffled else "TensorSlice", (), {}, name)

    @staticmethod
    def random(
        seed: Any = None,
        rerandomize_each_iteration: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Random numbers without end: int64, from 0 to 2**32 - 1. All passes are alike, unless they
        are to be rerandomized.

        >>> ds = tf.data.Dataset.random(seed=4).take(3)
        >>> list(ds.as_numpy_iterator()) == list(ds.as_numpy_iterator())
        True
        """
        first = seed_of(seed)
        passes = iter(range(1 << 62))

        def begin() -> Any:
            drawn = random.Random(first + next(passes) if rerandomize_each_iteration else first)
            while True:
                yield (drawn.getrandbits(32),)

        core = _core.ds_generator(begin, [(int64, (), None)], INFINITE)
        return make(core, None, "Random", (), {}, name)

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = int64, name: Optional[str] = None) -> Dataset:
        """start, start + step ... without end.

        >>> list(tf.data.Dataset.counter(2, 5).take(3).as_numpy_iterator())
        [2, 7, 12]
        """
        once = make(_core.ds_tensors([_core.constant(0, int64)]), None)
        counted = once.repeat().enumerate()
        first, stride = number(start, "start"), number(step, "step")
        return counted.map(lambda number, _: number * stride + first).map(
            lambda number: _core.op("cast", [number], {"dtype": as_dtype(dtype)}), name=name
        )

    @staticmethod
    def load(
        path: Any,
        element_spec: Any = None,
        compression: Optional[str] = None,
        reader_func: Optional[Callable] = None,
        wait: bool = False,
    ) -> Dataset:
        """The elements that save() or snapshot() wrote to a folder.

        >>> tf.data.Dataset.range(3).save("saved")
        >>> list(tf.data.Dataset.load("saved").as_numpy_iterator())
        [0, 1, 2]
        """
        if reader_func is not None:
            raise NotImplementedError(
                "Dataset.load(reader_func=): shards are read one after the other here"
            )
        if wait:
            raise NotImplementedError("Dataset.load(wait=True): distributed snapshots are not here")
        return _structure_file.load(path, element_spec)


def _with_datasets(leaves: Sequence) -> tuple[list, list]:
    """One element that has datasets in it, and its specs."""
    specs = [
        (None, None, leaf._core.specs)
        if hasattr(leaf, "_nested_tree")
        else (leaf.dtype, _specs.shape_tuple(leaf.shape), None)
        for leaf in leaves
    ]
    return [tuple(getattr(leaf, "_core", leaf) for leaf in leaves)], specs


def _check_first_axes(leaves: Sequence) -> None:
    n_first = None
    for leaf in leaves:
        shape = _specs.shape_tuple(leaf.shape)
        if shape == ():
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        if shape is None or shape[0] is None:
            continue
        if n_first is not None and n_first != shape[0]:
            raise ValueError(f"Dimensions {n_first} and {shape[0]} are not compatible")
        n_first = shape[0]


def _cast(dataset: Any, dtype: Any) -> Any:
    return dataset.map(lambda number: _core.op("cast", [number], {"dtype": dtype}))


def _datasets_of(value: Any) -> list:
    _, leaves = _structure.flatten(value)
    for leaf in leaves:
        if isinstance(leaf, list):
            raise TypeError(
                "Invalid input to `zip`. Inputs are expected to be (nested) structures of "
                "`tf.data.Dataset` objects. Python `list` is not supported and you should use "
                "`tuple` instead."
            )
        if not hasattr(leaf, "_nested_tree"):
            raise TypeError(
                "Invalid input to `zip`. Inputs are expected to be (nested) structures of "
                f"`tf.data.Dataset` objects but encountered object of type {type(leaf)}."
            )
    return leaves


def _zipped(datasets: Any) -> _structure.Tree:
    """The tree of a structure of datasets: that of each in its place."""
    if isinstance(datasets, tuple):
        parts = [_zipped(part) for part in datasets]
        return ("named", type(datasets), parts) if _structure.is_named(datasets) else ("tuple", parts)
    if isinstance(datasets, dict):
        return ("dict", list(datasets), [_zipped(part) for part in datasets.values()])
    return datasets._tree


def _texts(value: Any) -> list[str]:
    """Names, of a str, a path, a tensor, or a list of these."""
    if isinstance(value, (str, bytes)) or hasattr(value, "__fspath__"):
        return [os.fsdecode(value)]
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in _texts(part)]
    with _tracing.eager():
        tensor = _core.convert(value)
    if tensor.dtype.name != "string":
        raise TypeError(f"names of files are strings, these are {tensor.dtype.name}")
    names = tensor.numpy()
    return [os.fsdecode(name) for name in ([names] if isinstance(names, bytes) else names.ravel())]
