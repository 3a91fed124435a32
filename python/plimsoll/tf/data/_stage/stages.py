# SPDX-License-Identifier: Apache-2.0
"""Stages without a function: order, number, batches, caches."""
from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

from plimsoll import _core, errors

from plimsoll.tf.data._element import (
    structure as _structure,
    structure_file as _structure_file,
    specs as _specs,
)
from plimsoll.tf.data._seeds import stage_seed_of

if TYPE_CHECKING:
    from plimsoll.tf.data._dataset import Dataset

AUTOTUNE = -1
_N_SHARDS = 4  # files of a folder: as many as are written at once on a small machine
_ALL = (1 << 62) - 1


def number(value: Any, what: str) -> int:
    """An int, of an int, a NumPy number or a scalar tensor."""
    try:
        return operator.index(value)
    except errors.OperatorNotAllowedInGraphError:  # of a trace: it is to run in Python
        raise
    except TypeError:
        raise TypeError(f"`{what}` must be a whole number, this is {value!r}") from None


def parallel(num_parallel_calls: Any) -> int:
    """None is one call at a time."""
    n_calls = 1 if num_parallel_calls is None else number(num_parallel_calls, "num_parallel_calls")
    if n_calls != AUTOTUNE and n_calls < 1:
        raise errors.InvalidArgumentError(
            None, None, f"`num_parallel_calls` must be positive or tf.data.AUTOTUNE, it is {n_calls}"
        )
    return n_calls


def in_any_order(core: _core.Dataset, deterministic: Optional[bool], n_parallel: int = 2) -> Any:
    """The dataset, whose elements may come as they are ready if they need not be in order."""
    if deterministic is None or deterministic or n_parallel == 1:
        return core
    return _core.ds_options(core, nondeterministic=True)


class Stages:
    """Methods of Dataset."""

    _core: Any
    _tree: _structure.Tree
    _stage: Callable[..., Any]

    def batch(
        self,
        batch_size: Any,
        drop_remainder: Any = False,
        num_parallel_calls: Any = None,
        deterministic: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Elements behind each other along a new first axis.

        >>> list(tf.data.Dataset.range(5).batch(2).as_numpy_iterator())
        [array([0, 1]), array([2, 3]), array([4])]
        """
        self._must_be_dense("batch")
        size = _batch_size(batch_size)
        core = _core.ds_batch(self._core, size, bool(drop_remainder))
        return self._stage(core, "Batch", name=name, n=size)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: Any = False,
        name: Optional[str] = None,
    ) -> Dataset:
        """Like batch(), of elements whose shapes differ: each is filled up to the largest.

        >>> ds = tf.data.Dataset.range(1, 4).map(lambda n: tf.fill([n], n))
        >>> for batch in ds.padded_batch(3).as_numpy_iterator():
        ...     print(batch)
        [[1 0 0]
         [2 2 0]
         [3 3 3]]
        """
        self._must_be_dense("padded_batch")
        size = _batch_size(batch_size)
        shapes = self._padded_shapes(padded_shapes)
        values = self._padding_values(padding_values)
        core = _core.ds_padded_batch(self._core, size, shapes, values, bool(drop_remainder))
        return self._stage(core, "PaddedBatch", name=name, n=size)

    def _padded_shapes(self, padded_shapes: Any) -> list:
        if padded_shapes is None:
            for number_, (_, shape, _) in enumerate(self._core.specs):
                if shape is None:
                    raise ValueError(
                        "You must provide `padded_shapes` argument because component "
                        f"{number_} has unknown rank."
                    )
            return [shape for _, shape, _ in self._core.specs]
        shapes = [
            _specs.shape_tuple(shape) for shape in _specs.shapes_as(self._tree, padded_shapes)
        ]
        for shape, (_, own, _) in zip(shapes, self._core.specs):
            _check_padded(shape, own)
        return shapes

    def _padding_values(self, padding_values: Any) -> Any:
        if padding_values is None:
            return None
        values = _structure.broadcast_as(self._tree, padding_values)
        return [
            None if value is None else _padding(value, dtype)
            for value, (dtype, _, _) in zip(values, self._core.specs)
        ]

    def unbatch(self, name: Optional[str] = None) -> Dataset:
        """The slices of each element along its first axis.

        >>> ds = tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4]]).unbatch()
        >>> list(ds.as_numpy_iterator())
        [1, 2, 3, 4]
        """
        self._must_be_dense("unbatch")
        for _, shape, _ in self._core.specs:
            if shape == ():
                raise ValueError("Cannot unbatch an input with scalar components.")
        return self._stage(_core.ds_unbatch(self._core), "Unbatch", name=name)

    def rebatch(self, batch_size: Any, drop_remainder: Any = False, name: Optional[str] = None) -> Dataset:
        """Batches of another size.

        >>> list(tf.data.Dataset.range(6).batch(2).rebatch(3).as_numpy_iterator())
        [array([0, 1, 2]), array([3, 4, 5])]
        """
        if isinstance(batch_size, (list, tuple)):
            raise NotImplementedError("Dataset.rebatch() with several sizes in turn")
        return self.unbatch().batch(batch_size, drop_remainder, name=name)

    def window(
        self,
        size: Any,
        shift: Any = None,
        stride: Any = 1,
        drop_remainder: Any = False,
        name: Optional[str] = None,
    ) -> Dataset:
        """Datasets of `size` elements; the next begins `shift` elements behind.

        >>> for window in tf.data.Dataset.range(5).window(2, shift=1, drop_remainder=True):
        ...     print(list(window.as_numpy_iterator()))
        [0, 1]
        [1, 2]
        [2, 3]
        [3, 4]
        """
        size = number(size, "size")
        shift = size if shift is None else number(shift, "shift")
        core = _core.ds_window(
            self._core, size, shift, number(stride, "stride"), bool(drop_remainder)
        )
        return self._stage(core, "Window", tree=_structure.nest_components(self._tree), name=name, n=size)

    def shuffle(
        self,
        buffer_size: Any,
        seed: Any = None,
        reshuffle_each_iteration: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Random order: each element is drawn of the `buffer_size` that come next.

        >>> sorted(tf.data.Dataset.range(4).shuffle(4, seed=1).as_numpy_iterator())
        [0, 1, 2, 3]
        """
        size = number(buffer_size, "buffer_size")
        if size == -2:  # tf.data.UNKNOWN_CARDINALITY: all there is
            size = self._core.cardinality if self._core.cardinality > 0 else _ALL
        if size < 1:
            raise errors.InvalidArgumentError(
                None, None, f"buffer_size must be greater than zero, it is {size}"
            )
        again = reshuffle_each_iteration is None or bool(reshuffle_each_iteration)
        core = _core.ds_shuffle(self._core, size, stage_seed_of(seed), again)
        return self._stage(core, "Shuffle", name=name, n=size)

    def repeat(self, count: Any = None, name: Optional[str] = None) -> Dataset:
        """The dataset again and again, `count` times; None or -1: without end.

        >>> list(tf.data.Dataset.range(2).repeat(2).as_numpy_iterator())
        [0, 1, 0, 1]
        """
        n_times = -1 if count is None else number(count, "count")
        return self._stage(_core.ds_repeat(self._core, n_times), "Repeat", name=name, n=n_times)

    def take(self, count: Any, name: Optional[str] = None) -> Dataset:
        """The first elements; -1: all.

        >>> list(tf.data.Dataset.range(10).take(2).as_numpy_iterator())
        [0, 1]
        """
        n = number(count, "count")
        return self._stage(_core.ds_take(self._core, n), "Take", name=name, n=n)

    def skip(self, count: Any, name: Optional[str] = None) -> Dataset:
        """All but the first elements; -1: none.

        >>> list(tf.data.Dataset.range(10).skip(8).as_numpy_iterator())
        [8, 9]
        """
        n = number(count, "count")
        return self._stage(_core.ds_skip(self._core, n), "Skip", name=name, n=n)

    def shard(self, num_shards: Any, index: Any = None, name: Optional[str] = None) -> Dataset:
        """Every `num_shards`-th element from `index` on. `shard(tf.data.AUTOTUNE)` takes both from what
        started the process: torchrun, Open MPI, PMI or Slurm; all elements, if nothing did.

        >>> list(tf.data.Dataset.range(10).shard(num_shards=3, index=0).as_numpy_iterator())
        [0, 3, 6, 9]
        """
        n_shards = number(num_shards, "num_shards")
        if n_shards == AUTOTUNE and index is None:
            return self._stage(_core.ds_shard(self._core, AUTOTUNE, 0), "Shard", name=name)
        place = number(index, "index")
        if n_shards < 1:
            raise errors.InvalidArgumentError(
                None, None, f"`num_shards` must be >= 1; got {n_shards}."
            )
        if not 0 <= place < n_shards:
            raise errors.InvalidArgumentError(
                None, None, f"`index` must be in [0, {n_shards}); got {place}."
            )
        core = _core.ds_shard(self._core, n_shards, place)
        return self._stage(core, "Shard", name=name, n=n_shards)

    def enumerate(self, start: Any = 0, name: Optional[str] = None) -> Dataset:
        """Each element with its number before it.

        >>> list(tf.data.Dataset.from_tensor_slices([7, 8]).enumerate(5).as_numpy_iterator())
        [(5, 7), (6, 8)]
        """
        core = _core.ds_enumerate(self._core, number(start, "start"))
        return self._stage(core, "Enumerate", tree=("tuple", [None, self._tree]), name=name)

    def concatenate(self, dataset: Any, name: Optional[str] = None) -> Dataset:
        """All of this, then all of the other.

        >>> a, b = tf.data.Dataset.range(1, 3), tf.data.Dataset.range(7, 9)
        >>> list(a.concatenate(b).as_numpy_iterator())
        [1, 2, 7, 8]
        """
        other = _as(self, dataset)
        core = _core.ds_concatenate(self._core, other._core)
        return self._stage(core, "Concatenate", name=name, sources=(self, other))

    def prefetch(self, buffer_size: Any, name: Optional[str] = None) -> Dataset:
        """Makes up to `buffer_size` elements before they are needed; tf.data.AUTOTUNE: as many as
        help and fit.

        >>> list(tf.data.Dataset.range(3).prefetch(2).as_numpy_iterator())
        [0, 1, 2]
        """
        n = AUTOTUNE if buffer_size is None else number(buffer_size, "buffer_size")
        if n < AUTOTUNE:
            raise errors.InvalidArgumentError(None, None, f"buffer_size must be >= 0, it is {n}")
        if n == 0:
            return self._stage(self._core, "Prefetch", n=n)
        return self._stage(_core.ds_prefetch(self._core, n), "Prefetch", name=name, n=n)

    def cache(self, filename: Any = "", name: Optional[str] = None) -> Dataset:
        """Keeps the elements of the first pass that comes to its end, in memory or in a file.

        >>> ds = tf.data.Dataset.range(3).map(lambda x: x ** 2).cache()
        >>> list(ds.as_numpy_iterator()), list(ds.as_numpy_iterator())
        ([0, 1, 4], [0, 1, 4])
        """
        path = _path(filename)
        return self._stage(_core.ds_cache(self._core, path or None), "Cache", name=name)

    def snapshot(
        self,
        path: Any,
        compression: Optional[str] = "AUTO",
        reader_func: Optional[Callable] = None,
        shard_func: Optional[Callable] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Like cache(), in a folder that load() reads as well.

        >>> ds = tf.data.Dataset.range(3).snapshot("snapshot")
        >>> list(ds.as_numpy_iterator())
        [0, 1, 2]
        """
        if reader_func is not None or shard_func is not None:
            raise NotImplementedError(
                "Dataset.snapshot() with a reader_func or shard_func: elements are kept in order"
            )
        core = _core.ds_snapshot(self._core, _path(path), _N_SHARDS)
        _structure_file.write_tree(_path(path), self._tree)
        return self._stage(core, "Snapshot", name=name)

    def save(
        self,
        path: Any,
        compression: Optional[str] = None,
        shard_func: Optional[Callable] = None,
        checkpoint_args: Any = None,
    ) -> None:
        """Writes all elements to a folder, for load().

        >>> tf.data.Dataset.range(2).save("kept")
        >>> list(tf.data.Dataset.load("kept").as_numpy_iterator())
        [0, 1]
        """
        if shard_func is not None or checkpoint_args is not None:
            raise NotImplementedError("Dataset.save() with a shard_func or checkpoint_args")
        _structure_file.write_tree(_path(path), self._tree)
        _core.ds_save(self._core, _path(path), _N_SHARDS)

    def _must_be_dense(self, caller: str) -> None:
        if _structure.has_datasets(self._tree):
            raise NotImplementedError(
                f"Dataset.{caller}() of datasets: flat_map() makes tensors of windows"
            )
        if _structure.has_composites(self._tree):
            refusal = TypeError if caller == "padded_batch" else NotImplementedError
            raise refusal(
                f"Dataset.{caller}() of sparse tensors: tf.sparse.to_dense() in a map before it"
            )


def _batch_size(value: Any) -> int:
    size = number(value, "batch_size")
    if size < 1:
        raise errors.InvalidArgumentError(
            None, None, f"Batch size must be greater than zero, it is {size}."
        )
    return size


def _check_padded(padded: Optional[tuple], own: Optional[tuple]) -> None:
    if padded is None or own is None:
        return
    if len(padded) != len(own):
        raise ValueError(
            f"The padded shape {padded} is not compatible with the corresponding input component "
            f"shape {own}."
        )
    for wanted, have in zip(padded, own):
        if wanted is not None and have is not None and wanted < have:
            raise ValueError(
                f"The padded shape {padded} is not compatible with the corresponding input component "
                f"shape {own}."
            )


def _padding(value: Any, dtype: Any) -> Any:
    tensor = _core.convert(value, None, like=dtype)
    if tensor.dtype != dtype:
        raise TypeError(
            f"Mismatched type for padding value: it is {tensor.dtype.name}, the component is "
            f"{dtype.name}."
        )
    if tensor.ndim != 0:
        raise ValueError(f"Padding value should be a scalar tensor, its shape is {tensor.shape}.")
    return tensor


def _as(first: Any, other: Any) -> Any:
    """The other dataset, its components ordered as the first's; TypeError if the structures differ."""
    if not _structure.same(first._tree, other._tree) or any(
        mine[0] != theirs[0]
        for mine, theirs in zip(
            first._core.specs,
            [other._core.specs[i] for i in _structure.positions_as(first._tree, other._tree)],
        )
    ):
        raise TypeError(
            f"Incompatible dataset elements: {first.element_spec} and {other.element_spec}: their "
            "structures and dtypes must be the same"
        )
    positions = _structure.positions_as(first._tree, other._tree)
    if positions == list(range(len(positions))):
        return other
    return other.map(
        lambda *element: _structure.pack(
            first._tree,
            _structure.flatten_as(first._tree, element[0] if len(element) == 1 else element),
        )
    )


def _path(value: Any) -> str:
    if isinstance(value, _core.Tensor):
        value = value.numpy()
    return os.fsdecode(value)
