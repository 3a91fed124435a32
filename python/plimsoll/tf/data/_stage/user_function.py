# SPDX-License-Identifier: Apache-2.0
"""The functions of users that stages call for each element, traced or called.

    traced    called once, with placeholders; what it made of them is a _core.Function, which C
              threads run without Python
    called    in Python, with values, for each element: a _core.Callback. So are functions that look
              at a value (`if x > 0:`), that get or make datasets
    example   an element to call such a function with, to see what it gives: the dataset's first
              one, or one of zeros

TensorFlow traces all of them, and rewrites Python's `if` and `while`. Here a function that needs
them works, at Python's speed, and it is said once which one it is.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

from plimsoll import _core, errors
from plimsoll.tf._graph.trace import trial

from plimsoll.tf.data._element import structure as _structure, specs as _specs
from plimsoll.tf.data._stage import tracing as _tracing
from plimsoll.tf.data._iterator import raw


class NeedsPython(Exception):
    """It cannot be traced: it makes a dataset, say."""


class Called(NamedTuple):
    """A function, ready for a stage."""

    function: Any  # a _core.Function or _core.Callback
    tree: _structure.Tree  # of its result
    given: list  # specs of its result
    reads: tuple = ()  # variables, whose values it takes behind the components
    python: Optional[Callable] = None  # of a Callback: the function that it calls, with components

    @property
    def is_traced(self) -> bool:
        return self.python is None

    def over(self, core: _core.Dataset) -> _core.Dataset:
        """The input of the stage: with the variables' values, read anew when a pass begins."""
        return _core.ds_zip([core, _values_of(self.reads)]) if self.reads else core


def _values_of(variables: tuple) -> _core.Dataset:
    def begin() -> Any:
        with _tracing.eager():
            values = tuple(variable.read_outside() for variable in variables)
            _core.evaluate(values)
        while True:
            yield values

    specs = [(variable.dtype, _specs.shape_tuple(variable.shape), None) for variable in variables]
    return _core.ds_generator(begin, specs, -1)


# ---- calls of users' functions, and their results ----


def spread(function: Callable, element: Any) -> Any:
    """Calls it as map() does: a tuple's parts are arguments, all else is one."""
    return function(*element) if type(element) is tuple else function(element)


def leaves_of(value: Any, caller: str) -> tuple[_structure.Tree, list]:
    """A function's result as components. A list is taken for a tuple, as in TensorFlow."""
    tree, leaves = _structure.flatten(tuple(value) if isinstance(value, list) else value)
    for leaf in leaves:
        if leaf is None:
            raise NotImplementedError(
                f"Dataset.{caller}(): a function that returns None, or a structure with None in it: "
                "such elements are not implemented in Plimsoll"
            )
    return tree, [_component(leaf, value, caller) for leaf in leaves]


def _component(leaf: Any, value: Any, caller: str) -> Any:
    if hasattr(leaf, "_nested_tree"):
        return leaf
    try:
        return _core.convert(leaf)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Unsupported return value from function passed to Dataset.{caller}(): {value!r}: "
            f"{error}"
        ) from error


def call(
    function: Callable,
    dataset: Any,
    caller: str,
    before: Sequence[tuple] = (),
    before_tree: _structure.Tree = None,
) -> Called:
    """The function for a stage over the dataset: traced if that can be.

    `before` are specs of components that it gets before the element's (a state), in the structure
    `before_tree`; it is then called with the state and the element.
    """
    arguments = _Arguments(function, dataset, caller, tuple(before), before_tree)
    why = None
    if not arguments.have_datasets():
        try:
            return _trace(arguments)
        except _tracing.NOT_TRACEABLE as error:
            why = str(error)
        except NeedsPython:
            pass
    called = _call_in_python(arguments)
    if why is not None:
        _say_once(function, caller, why)
    return called


class _Arguments:
    """A function, and its arguments: specs, and how components make its arguments."""

    def __init__(
        self,
        function: Callable,
        dataset: Any,
        caller: str,
        before: tuple = (),
        before_tree: _structure.Tree = None,
    ) -> None:
        if not callable(function):
            raise TypeError(f"Dataset.{caller}(): a function was expected, this is {function!r}")
        self.function, self.caller = function, caller
        self.core, self.before = dataset._core, before
        self.specs = [*before, *dataset._core.specs]
        self._element: Any = dataset._pack()
        self._state: Any = _core.Structure(before_tree) if before else None

    def have_datasets(self) -> bool:
        return any(spec[0] is None for spec in self.specs)

    def are_known(self) -> bool:
        return all(map(_specs.is_known, self.specs))

    def give(self, components: Sequence) -> Any:
        """Calls the function with these arguments."""
        n_before = len(self.before)
        element = self._element.pack(components[n_before:])
        if not n_before:
            return spread(self.function, element)
        return self.function(self._state.pack(components[:n_before]), element)

    def give_eagerly(self, components: Sequence) -> Any:
        with _tracing.eager():
            return self.give(components)


# ---- traced ----


def _trace(arguments: _Arguments) -> Called:
    trees: list = []

    def body(placeholders: list) -> list:
        tree, leaves = leaves_of(arguments.give(placeholders), arguments.caller)
        if _structure.has_datasets(tree):
            raise NeedsPython
        trees.append(tree)
        return leaves

    traced, reads = _tracing.record(body, arguments.specs, _label(arguments.function))
    given = [(node.dtype, _specs.shape_tuple(node.shape), None) for node in traced.outputs]
    return Called(traced, trees[-1], given, reads)


# ---- called in Python ----


def _call_in_python(arguments: _Arguments) -> Called:
    def seen(*components: Any) -> tuple[_structure.Tree, list]:
        with _tracing.eager():
            tree, leaves = leaves_of(arguments.give(components), arguments.caller)
            return tree, [_loose(_spec_of(leaf)) for leaf in leaves]

    (tree, specs), *others = _attempts(arguments, seen, first=True)
    for _, other in others:
        specs = [_specs.relax(*pair) for pair in zip(specs, other)]

    def called(*components: Any) -> list:
        return _outputs(tree, arguments.give_eagerly(components))

    return Called(_core.Callback(called, specs), tree, specs, python=called)


def _outputs(tree: _structure.Tree, value: Any) -> list:
    value = tuple(value) if isinstance(value, list) else value
    return [
        leaf._core if hasattr(leaf, "_nested_tree") else leaf
        for leaf in _structure.flatten_as(tree, value)
    ]


def _spec_of(leaf: Any) -> tuple:
    if hasattr(leaf, "_nested_tree"):
        return (None, None, leaf._core.specs)
    return (leaf.dtype, _specs.shape_tuple(leaf.shape), None)


def _loose(spec: tuple) -> tuple:
    """Keeps dtype and rank of a spec that was seen once: other elements may be longer."""
    if spec[0] is None:
        return (None, None, [_loose(inner) for inner in spec[2]])
    return (spec[0], None if spec[1] is None else (None,) * len(spec[1]), None)


def dataset_call(function: Callable, dataset: Any, caller: str) -> Called:
    """A function that makes a dataset of each element; the tree is that of the dataset's."""
    arguments = _Arguments(function, dataset, caller)

    def made(*components: Any) -> Any:
        value = arguments.give_eagerly(components)
        if not hasattr(value, "_nested_tree"):
            raise TypeError(
                f"`map_func` must return a `Dataset` object. Got {type(value)!r} in "
                f"Dataset.{caller}()."
            )
        return value

    examples = _attempts(arguments, made)
    spec = _spec_of(examples[0])
    for example in examples[1:]:
        spec = _specs.relax(spec, _spec_of(example))
    if len(examples) == 1 and not arguments.are_known():
        spec = _loose(spec)
    callback = _core.Callback(lambda *components: [made(*components)._core], [spec])
    return Called(callback, examples[0]._tree, [spec], python=made)


# ---- examples ----

_N_TRIED = 8  # bad elements before the first good one


def _attempts(arguments: _Arguments, attempt: Callable, first: bool = False) -> list:
    """Calls attempt() with examples: elements of zeros, two if they differ in what is not
    known; or, if it fails with these or they cannot be made, or it is to see a true one (`first`),
    of one of the dataset's. Its assignments to variables are undone."""
    with trial():
        return _tried(arguments, attempt, first)


def _tried(arguments: _Arguments, attempt: Callable, first: bool) -> list:
    have_ranks = all(map(_specs.has_rank, arguments.specs))
    if not first and have_ranks:
        try:
            return [attempt(*example) for example in _zeros(arguments.specs)]
        except Exception:  # its results for zeros need not be sensible
            pass
    found = _first(arguments)
    if found is not None:
        return [attempt(*found)]
    if not have_ranks:
        raise ValueError(
            f"Dataset.{arguments.caller}(): the function cannot be traced, and the dataset is empty: "
            "there is nothing to see what it gives"
        )
    return [attempt(*example) for example in _zeros(arguments.specs)]


def examples(dataset: Any) -> list:
    """Elements that look like the dataset's, as components."""
    arguments = _Arguments(lambda *element: None, dataset, "group_by_window")
    return _attempts(arguments, lambda *components: components)


def _first(arguments: _Arguments) -> Optional[tuple]:
    failure = None
    iterator = raw(arguments.core)
    for _ in range(_N_TRIED):
        try:
            element = next(iterator)
        except StopIteration:
            return None
        except errors.OpError as error:
            failure = failure or error
            continue
        return (*_zeros(arguments.before)[0], *element)
    raise failure  # type: ignore[misc]


def _zeros(specs: Sequence[tuple]) -> list[tuple]:
    """One example if all shapes are known, else two that differ in the unknown dimensions."""
    known = all(map(_specs.is_known, specs))
    return [tuple(_zero(spec, side) for spec in specs) for side in ((1,) if known else (1, 2))]


def dataset_of(elements: list, specs: list) -> _core.Dataset:
    """A dataset of elements that are there, as components."""
    return _core.ds_generator(lambda: iter(elements), specs, len(elements))


def _zero(spec: tuple, side: int) -> Any:
    dtype, shape, of = spec
    if dtype is None:
        return dataset_of([tuple(_zero(inner, side) for inner in of)], of)
    dims = [side if dim is None else dim for dim in shape]
    with _tracing.eager():
        value = b"" if dtype.name == "string" else False if dtype.name == "bool" else 0
        return _core.constant(value, dtype, dims)


# ---- messages ----

_told: set = set()


def _label(function: Callable) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _say_once(function: Callable, caller: str, why: str) -> None:
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    place = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
    if (place, caller) in _told:
        return
    _told.add((place, caller))
    print(
        f"plimsoll: Dataset.{caller}(): '{_label(function)}' ({place}) runs in Python for each "
        f"element, because it needs a value while it is traced: {why}",
        file=sys.stderr,
    )
