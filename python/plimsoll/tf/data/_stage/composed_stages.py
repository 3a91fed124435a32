# SPDX-License-Identifier: Apache-2.0
"""Methods made of others, or in Python: groups, choices, samples, unique elements."""
from __future__ import annotations

import bisect
import functools
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional

from plimsoll import _core, errors
from plimsoll.tf._values.types import TensorShape, int64

from plimsoll.tf.data._element import structure as _structure, specs as _specs
from plimsoll.tf.data._stage import (
    user_function as _user_function,
    python_stages as _python_stages,
    tracing as _tracing,
)
from plimsoll.tf.data._base import make
from plimsoll.tf.data._stage.function_stages import _predicate
from plimsoll.tf.data._seeds import seed_of
from plimsoll.tf.data._stage.stages import _as, number

if TYPE_CHECKING:
    from plimsoll.tf.data._dataset import Dataset

INFINITE, UNKNOWN = -1, -2


class Derived:
    """Methods of Dataset."""

    _core: Any
    _tree: _structure.Tree
    _stage: Callable[..., Any]
    element_spec: Any
    map: Callable[..., Any]

    def take_while(self, predicate: Callable, name: Optional[str] = None) -> Dataset:
        """The elements before the first for which the function is false.

        >>> list(tf.data.Dataset.range(10).take_while(lambda x: x < 3).as_numpy_iterator())
        [0, 1, 2]
        """
        called = _predicate(predicate, self, "take_while")
        core = _python_stages.take_while(self._core, _beside(self, called))
        return self._stage(core, "TakeWhile", name=name)

    def unique(self, name: Optional[str] = None) -> Dataset:
        """Each element once.

        >>> ds = tf.data.Dataset.from_tensor_slices([1, 37, 2, 37, 2, 1]).unique()
        >>> list(ds.as_numpy_iterator())
        [1, 37, 2]
        """
        dtypes = [spec[0].name if spec[0] is not None else "dataset" for spec in self._core.specs]
        if len(dtypes) != 1 or dtypes[0] not in ("int32", "int64", "string"):
            raise TypeError(
                "`tf.data.Dataset.unique` expects inputs of one component of dtype tf.int32, tf.int64 "
                f"or tf.string; these have {', '.join(dtypes)}."
            )
        return self._stage(_python_stages.unique(self._core), "Unique", name=name)

    def group_by_window(
        self,
        key_func: Callable,
        reduce_func: Callable,
        window_size: Any = None,
        window_size_func: Optional[Callable] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Gathers elements by key; of `window_size` of one key `reduce_func` makes a dataset.

        >>> ds = tf.data.Dataset.range(6).group_by_window(
        ...     lambda x: x % 2, lambda key, window: window.batch(3), window_size=3)
        >>> list(ds.as_numpy_iterator())
        [array([0, 2, 4]), array([1, 3, 5])]
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError(
                "Either the `window_size` argument or the `window_size_func` argument must be "
                "specified, and not both."
            )
        called = _user_function.call(_keys(key_func), self, "group_by_window")
        if not _is_scalar(called, int64):
            raise ValueError(
                "`key_func` must return a single `tf.int64` scalar tensor; it gives "
                f"{_specs.from_core(called.tree, called.given)}."
            )
        size_of = _sizes(window_size, window_size_func)
        keyed = _beside(self, called, first=True)
        return _grouped(self, keyed, size_of, reduce_func, (0, 1), name)

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable,
        bucket_boundaries: Sequence,
        bucket_batch_sizes: Sequence,
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: Optional[str] = None,
    ) -> Dataset:
        """Batches of elements that are about as long, padded to the longest of them.

        >>> ds = tf.data.Dataset.from_generator(
        ...     lambda: [[0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11]],
        ...     output_signature=tf.TensorSpec([None], tf.int64))
        >>> for batch in ds.bucket_by_sequence_length(
        ...         lambda x: tf.shape(x)[0], bucket_boundaries=[3, 5],
        ...         bucket_batch_sizes=[2, 2, 2]).as_numpy_iterator():
        ...     print(batch)
        [[1 2 3 4]
         [5 6 7 0]]
        [[0]]
        [[ 7  8  9 10 11]]
        """
        boundaries = [int(boundary) for boundary in bucket_boundaries]
        sizes = [int(size) for size in bucket_batch_sizes]
        if len(sizes) != len(boundaries) + 1:
            raise ValueError(
                "`len(bucket_batch_sizes)` must be equal to `len(bucket_boundaries) + 1` but "
                f"`len(bucket_batch_sizes)={len(sizes)}` and "
                f"`len(bucket_boundaries)={len(boundaries)}`."
            )
        called = _user_function.call(element_length_func, self, "bucket_by_sequence_length")
        buckets = _bucketed(_beside(self, called, first=True), boundaries)

        def batch(key: Any, window: Any) -> Any:
            bucket = int(key)
            if no_padding:
                return window.batch(sizes[bucket], drop_remainder)
            shapes = padded_shapes
            if pad_to_bucket_boundary:
                shapes = _padded_to(window, padded_shapes, boundaries, bucket)
            return window.padded_batch(sizes[bucket], shapes, padding_values, drop_remainder)

        n_buckets = len(boundaries) if pad_to_bucket_boundary else len(sizes)
        return _grouped(self, buckets, lambda key: sizes[key], batch, range(n_buckets), name)

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence,
        weights: Any = None,
        seed: Any = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: Optional[bool] = None,
    ) -> Dataset:
        """Elements of several datasets, each drawn of one of them at random.

        >>> a, b = tf.data.Dataset.range(0, 3), tf.data.Dataset.range(100, 103)
        >>> ds = tf.data.Dataset.sample_from_datasets([a, b], weights=[0.5, 0.5])
        >>> sorted(ds.as_numpy_iterator())
        [0, 1, 2, 100, 101, 102]
        """
        inputs = _alike(datasets, "sample_from_datasets")
        drawn = _draws(len(inputs), weights, seed_of(seed), bool(rerandomize_each_iteration))
        n = UNKNOWN if stop_on_empty_dataset else _sum([this._core.cardinality for this in inputs])
        return _choosing(inputs, drawn, stop_on_empty_dataset, n)

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence, choice_dataset: Any, stop_on_empty_dataset: bool = True
    ) -> Dataset:
        """Elements of several datasets; another dataset chooses.

        >>> letters = [tf.data.Dataset.from_tensors(letter).repeat() for letter in "ab"]
        >>> choices = tf.data.Dataset.from_tensor_slices(np.int64([0, 1, 1]))
        >>> list(tf.data.Dataset.choose_from_datasets(letters, choices).as_numpy_iterator())
        [b'a', b'b', b'b']
        """
        inputs = _alike(datasets, "choose_from_datasets")
        if choice_dataset._tree is not None or choice_dataset._core.specs[0][:2] != (int64, ()):
            raise TypeError(
                "`choice_dataset` elements must be scalar `tf.int64` tensors but are "
                f"{choice_dataset.element_spec}."
            )

        def choices(alive: list) -> Iterator:
            for step in _python_stages.steps(choice_dataset._core):
                yield step if isinstance(step, _python_stages.Failed) else _place(step[0], len(inputs))

        return _choosing(inputs, choices, stop_on_empty_dataset, UNKNOWN)

    def rejection_resample(
        self,
        class_func: Callable,
        target_dist: Any,
        initial_dist: Any = None,
        seed: Any = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Leaves elements out so that classes are distributed as `target_dist` says. Elements are
        pairs: the class, and the element. Without an `initial_dist` it is counted on the way.

        >>> ds = tf.data.Dataset.range(100).rejection_resample(
        ...     lambda x: tf.cast(x % 2, tf.int32), target_dist=[1.0, 0.0], seed=1)
        >>> {int(label) for label, _ in ds}
        {0}
        """
        target = _distribution(target_dist, "target_dist")
        initial = None if initial_dist is None else _distribution(initial_dist, "initial_dist")
        if initial is not None and len(initial) != len(target):
            raise ValueError("`initial_dist` and `target_dist` must be of the same length.")
        called = _user_function.call(class_func, self, "rejection_resample")
        marked = _beside(self, called, first=True)
        first_seed = seed_of(seed)

        def begin() -> Iterator:
            return _resampled(marked, target, initial, random.Random(first_seed))

        core = _python_stages.stage(begin, marked.specs, UNKNOWN)
        return self._stage(core, "Filter", tree=("tuple", [None, self._tree]), name=name)

    def get_single_element(self, name: Optional[str] = None) -> Any:
        """The only element; InvalidArgumentError if there is none, or more.

        >>> tf.data.Dataset.from_tensors(7).get_single_element().numpy()
        7
        """
        found = list(itertools.islice(iter(self.take(2)), 2))  # type: ignore[attr-defined]
        if len(found) != 1:
            raise errors.InvalidArgumentError(
                None, None, "Dataset was empty." if not found else "Dataset had more than one element."
            )
        return found[0]


# ---- shared helpers ----


def _is_scalar(called: _user_function.Called, dtype: Any) -> bool:
    """Does it give one scalar of that dtype, as far as that is known?"""
    found = called.given[0]
    return called.tree is None and found[0] == dtype and found[1] in ((), None)


def _beside(dataset: Any, called: _user_function.Called, first: bool = False) -> _core.Dataset:
    """Each element with the function's result, after its components or before them."""
    n_own = len(dataset._core.specs)
    if called.python is not None:
        function = called.python
        specs = [*called.given, *dataset._core.specs] if first else [
            *dataset._core.specs,
            *called.given,
        ]

        def both(*components: Any) -> list:
            given = function(*components)
            return [*given, *components] if first else [*components, *given]

        return _core.ds_map(dataset._core, _core.Callback(both, specs), 1)

    def body(inputs: list) -> list:
        given = called.function(*inputs)
        own = inputs[:n_own]
        return [*given, *own] if first else [*own, *given]

    over = called.over(dataset._core)
    joined, _ = _tracing.record(body, over.specs, "beside")
    return _core.ds_map(over, joined, 1)


def _grouped(
    dataset: Any,
    keyed: _core.Dataset,
    size_of: Callable,
    reduce_func: Callable,
    keys: Sequence[int],
    name: Optional[str],
) -> Any:
    """`keys` are some that may be met: to see what the function makes of windows."""

    def reduced(key: Any, window: _core.Dataset) -> Any:
        with _tracing.eager():
            value = reduce_func(key, make(window, dataset._tree, "Group"))
        if not hasattr(value, "_nested_tree"):
            raise TypeError(f"`reduce_func` must return a `Dataset` object. Got {type(value)}.")
        return value

    specs = dataset._core.specs
    tree, given = _made_of_windows(reduced, dataset, keys)
    core = _python_stages.group_by_window(
        keyed, specs, size_of, lambda key, window: reduced(key, window)._core, given
    )
    return dataset._stage(core, "GroupByWindow", tree=tree, name=name)


def _made_of_windows(reduced: Callable, dataset: Any, keys: Sequence[int]) -> tuple:
    """Tree and specs of the results for windows: found with windows of one element."""
    tree: Any = None
    given: Any = None
    for key, element in itertools.product(keys, _user_function.examples(dataset)):
        with _tracing.eager():
            number_ = _core.constant(key, int64)
        try:
            made = reduced(number_, _user_function.dataset_of([element], dataset._core.specs))
        except Exception:
            if given is None:
                raise
            continue  # a key that is never met need not be one
        tree, own = made._tree, made._core.specs
        given = own if given is None else [_specs.relax(*pair) for pair in zip(given, own)]
    return tree, given


def _sizes(window_size: Any, window_size_func: Optional[Callable]) -> Callable[[int], int]:
    if window_size_func is None:
        size = _window_size(number(window_size, "window_size"))
        return lambda key: size

    return functools.partial(_size_of, window_size_func)


def _size_of(function: Callable, key: int) -> int:
    with _tracing.eager():
        return _window_size(int(function(_core.constant(key, int64))))


def _window_size(size: int) -> int:
    if size < 1:
        raise errors.InvalidArgumentError(
            None, None, f"Window size must be greater than zero, but got {size}."
        )
    return size


def _keys(function: Callable) -> Callable:
    """Its numbers as int64, which TensorFlow makes of Python's; a tensor stays what it is."""
    if not callable(function):
        return function

    @functools.wraps(function)
    def key(*element: Any) -> Any:
        value = function(*element)
        return value if isinstance(value, _core.Tensor) else _core.convert(value, int64)

    return key


def _bucketed(measured: _core.Dataset, boundaries: list) -> _core.Dataset:
    """The length, the first component, as the number of its bucket."""

    def begin() -> Iterator:
        for step in _python_stages.steps(measured):
            if isinstance(step, _python_stages.Failed):
                yield step
            else:
                bucket = bisect.bisect_right(boundaries, _python_stages.scalar(step[0]))
                yield (bucket, *step[1:])

    return _python_stages.stage(begin, [(int64, (), None), *measured.specs[1:]], measured.cardinality)


def _padded_to(window: Any, padded_shapes: Any, boundaries: list, bucket: int) -> Any:
    if bucket >= len(boundaries):
        raise errors.InvalidArgumentError(
            None,
            None,
            "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries).",
        )
    longest = boundaries[bucket] - 1
    shapes = (
        [_specs.shape_tuple(spec[1]) for spec in window._core.specs]
        if padded_shapes is None
        else [_specs.shape_tuple(s) for s in _specs.shapes_as(window._tree, padded_shapes)]
    )
    padded = [
        None if shape is None else [longest if dim is None else dim for dim in shape]
        for shape in shapes
    ]
    return _structure.pack(window._tree, [TensorShape(shape) for shape in padded])


def _alike(datasets: Any, caller: str) -> list:
    inputs = list(datasets)
    if not inputs:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    return [inputs[0], *(_as(inputs[0], other) for other in inputs[1:])]


def _choosing(inputs: list, choices: Callable, stop_on_empty: bool, cardinality: int) -> Any:
    specs = inputs[0]._core.specs
    for other in inputs[1:]:
        specs = [_specs.relax(*pair) for pair in zip(specs, other._core.specs)]
    cores = [this._core for this in inputs]
    core = _python_stages.chosen(cores, specs, choices, stop_on_empty, cardinality)
    return inputs[0]._stage(core, "DirectedInterleave", sources=tuple(inputs))


def _place(component: Any, n_inputs: int) -> Any:
    choice = _python_stages.scalar(component)
    if 0 <= choice < n_inputs:
        return choice
    return _python_stages.Failed(
        errors.InvalidArgumentError(
            None, None, f"Selector index out of range: {choice} >= {n_inputs}"
        )
    )


def _sum(cardinalities: list) -> int:
    if INFINITE in cardinalities:
        return INFINITE
    return UNKNOWN if UNKNOWN in cardinalities else sum(cardinalities)


def _draws(n_inputs: int, weights: Any, seed: int, anew: bool) -> Callable:
    """Endless draws of numbers below n_inputs, of those that are alive."""
    if hasattr(weights, "_nested_tree"):
        return lambda alive: _drawn_by(weights, alive, random.Random(seed))
    fixed = [1.0] * n_inputs if weights is None else [float(weight) for weight in _values(weights)]
    if len(fixed) != n_inputs:
        raise ValueError(
            "Invalid `weights`. The shape of `weights` should be compatible with "
            f"`[len(datasets)]` but is {[len(fixed)]}."
        )
    passes = itertools.count()

    def draws(alive: list) -> Iterator:
        drawn = random.Random(seed + next(passes) if anew else seed)
        places = range(n_inputs)
        left = _of_alive(fixed, alive)
        while any(left):  # an input without weight is never drawn: do not go on for it
            yield drawn.choices(places, left)[0]
            left = _of_alive(fixed, alive)

    return draws


def _drawn_by(weights: Any, alive: list, drawn: random.Random) -> Iterator:
    for step in _python_stages.steps(weights._core):
        if isinstance(step, _python_stages.Failed):
            yield step
        else:
            left = _of_alive(_values(step[0]), alive)
            if any(left):
                yield drawn.choices(range(len(alive)), left)[0]


def _of_alive(weights: Sequence, alive: list) -> list:
    """A dataset that has ended is drawn no more."""
    return [float(weight) * is_alive for weight, is_alive in zip(weights, alive)]


def _values(value: Any) -> list:
    return value.numpy().tolist() if hasattr(value, "numpy") else list(value)


def _distribution(value: Any, what: str) -> list:
    shares = [float(share) for share in _values(value)]
    if not shares or min(shares) < 0 or sum(shares) <= 0:
        raise ValueError(f"`{what}` must be shares of classes, none negative; it is {shares}")
    return [share / sum(shares) for share in shares]


def _resampled(
    marked: _core.Dataset, target: list, initial: Optional[list], drawn: random.Random
) -> Iterator:
    """Keeps an element with a probability of target / initial of its class, the largest being 1."""
    counts = [1.0] * len(target)  # of a distribution that is not known: each class once
    for step in _python_stages.steps(marked):
        if isinstance(step, _python_stages.Failed):
            yield step
            continue
        label = _place(step[0], len(target))
        if isinstance(label, _python_stages.Failed):
            yield label
            continue
        counts[label] += 1
        found = initial or [count / sum(counts) for count in counts]
        ratios = [want / max(have, 1e-12) for want, have in zip(target, found)]
        if drawn.random() < ratios[label] / max(ratios):
            yield step
