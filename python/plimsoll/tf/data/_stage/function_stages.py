# SPDX-License-Identifier: Apache-2.0
"""Stages that call a function of the user's for each element."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

from plimsoll import _core, errors

from plimsoll.tf.data._element import structure as _structure, specs as _specs
from plimsoll.tf.data._stage import (
    user_function as _user_function,
    scan_reduce as _scan_reduce,
    tracing as _tracing,
)
from plimsoll.tf.data._stage.stages import AUTOTUNE, in_any_order, number, parallel

if TYPE_CHECKING:
    from plimsoll.tf.data._dataset import Dataset


class Functional:
    """Methods of Dataset."""

    _core: Any
    _tree: _structure.Tree
    _stage: Callable[..., Any]

    def map(
        self,
        map_func: Callable,
        num_parallel_calls: Any = None,
        deterministic: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Applies a function to each element. It is traced once, and then runs without Python.

        >>> list(tf.data.Dataset.range(1, 4).map(lambda x: x * 2).as_numpy_iterator())
        [2, 4, 6]
        """
        called = _user_function.call(map_func, self, "map")
        n_calls = parallel(num_parallel_calls)
        core = _core.ds_map(called.over(self._core), called.function, n_calls)
        core.name = name or _name_of(map_func)
        core = in_any_order(core, deterministic, n_calls)
        kind = "Map" if n_calls == 1 else "ParallelMap"
        return self._stage(core, kind, tree=called.tree, n_parallel=n_calls)

    def filter(self, predicate: Callable, name: Optional[str] = None) -> Dataset:
        """The elements for which the function is true.

        >>> list(tf.data.Dataset.range(5).filter(lambda x: x % 2 == 0).as_numpy_iterator())
        [0, 2, 4]
        """
        called = _predicate(predicate, self, "filter")
        core = _core.ds_filter(called.over(self._core), called.function)
        core = _without(core, len(called.reads), len(self._core.specs))
        return self._stage(core, "Filter", name=name)

    def flat_map(self, map_func: Callable, name: Optional[str] = None) -> Dataset:
        """The elements of the datasets that a function makes of each element, one after the other.

        >>> ds = tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4]])
        >>> list(ds.flat_map(tf.data.Dataset.from_tensor_slices).as_numpy_iterator())
        [1, 2, 3, 4]
        """
        called = _user_function.dataset_call(map_func, self, "flat_map")
        core = _core.ds_flat_map(self._core, called.function)
        return self._stage(core, "FlatMap", tree=called.tree, name=name)

    def interleave(
        self,
        map_func: Callable,
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Like flat_map(), of `cycle_length` datasets in turn, `block_length` elements of each.

        >>> ds = tf.data.Dataset.range(1, 4)
        >>> ds = ds.interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(3),
        ...                    cycle_length=2, block_length=2)
        >>> list(ds.as_numpy_iterator())
        [1, 1, 2, 2, 1, 2, 3, 3, 3]
        """
        cycle = _positive(cycle_length, "cycle_length", AUTOTUNE)
        block = _positive(block_length, "block_length", 1)
        n_calls = parallel(num_parallel_calls)
        called = _user_function.dataset_call(map_func, self, "interleave")
        core = _core.ds_interleave(self._core, called.function, cycle, block, n_calls)
        core = in_any_order(core, deterministic, n_calls)
        return self._stage(core, "Interleave", tree=called.tree, name=name, n_parallel=n_calls)

    def scan(self, initial_state: Any, scan_func: Callable, name: Optional[str] = None) -> Dataset:
        """Applies a function to a state and each element: (state, element) -> (state, output).

        >>> ds = tf.data.Dataset.range(5).scan(
        ...     tf.constant(0, tf.int64), lambda state, x: (state + x, state + x))
        >>> list(ds.as_numpy_iterator())
        [0, 1, 3, 6, 10]
        """
        state = _scan_reduce.State(initial_state)
        called = _scan_reduce.call(scan_func, self, state, "scan", gives_output=True)
        core = _core.ds_scan(called.over(self._core), state.tensors, called.function)
        return self._stage(core, "Scan", tree=called.tree, name=name)

    def reduce(self, initial_state: Any, reduce_func: Callable, name: Optional[str] = None) -> Any:
        """Goes through all elements: the last state of (state, element) -> state.

        >>> tf.data.Dataset.range(5).reduce(np.int64(0), lambda total, x: total + x).numpy()
        10
        """
        state = _scan_reduce.State(initial_state)
        called = _scan_reduce.call(reduce_func, self, state, "reduce", gives_output=False)
        return _structure.pack(state.tree, _scan_reduce.reduced(self, state, called))

    def apply(self, transformation_func: Callable) -> Dataset:
        """Applies a function to this dataset, and returns its result.

        >>> ds = tf.data.Dataset.range(4)
        >>> list(ds.apply(lambda ds: ds.filter(lambda x: x < 2)).as_numpy_iterator())
        [0, 1]
        """
        dataset = transformation_func(self)
        if not hasattr(dataset, "_nested_tree"):
            raise TypeError(
                f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(dataset)}."
            )
        return dataset


def _name_of(function: Callable) -> str:
    """The stage's name in messages: the function's name, if it has one."""
    name = getattr(function, "__name__", "map")
    return "map" if name == "<lambda>" else name


def _positive(value: Any, what: str, default: int) -> int:
    if value is None:
        return default
    n = number(value, what)
    if n < 1 and n != AUTOTUNE:
        raise errors.InvalidArgumentError(None, None, f"`{what}` must be > 0, it is {n}")
    return n


def _predicate(function: Callable, dataset: Any, caller: str) -> _user_function.Called:
    """A function that gives one bool."""
    called = _user_function.call(function, dataset, caller)
    specs = called.given
    if called.tree is not None or specs[0][0].name != "bool" or specs[0][1] not in ((), None):
        given = _specs.from_core(called.tree, specs)
        raise ValueError(
            f"`predicate` return type must be convertible to a scalar boolean tensor. Was {given}."
        )
    return called


def _without(core: _core.Dataset, n_behind: int, n_kept: int) -> _core.Dataset:
    """The dataset without its last components: the values of variables."""
    if not n_behind:
        return core
    first, _ = _tracing.record(lambda inputs: inputs[:n_kept], core.specs, "first")
    return _core.ds_map(core, first, 1)
