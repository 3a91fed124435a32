# SPDX-License-Identifier: Apache-2.0
"""Functions that carry a state from element to element: scan() and reduce().

The state's structure and dtypes stay; its shape may change, where the first trace shows that it
does: it is then traced again with what the shapes have in common, until they stay, as in
TensorFlow.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plimsoll import _core, errors
from plimsoll.tf._graph import context as _context

from plimsoll.tf.data._element import structure as _structure, specs as _specs
from plimsoll.tf.data._stage import user_function as _user_function, tracing as _tracing


class State:
    """The state that a pass begins with."""

    def __init__(self, initial: Any) -> None:
        self.tree, leaves = _structure.flatten(initial)
        self.tensors = [_core.convert(leaf) for leaf in leaves]
        self.specs: list[tuple] = [
            (tensor.dtype, _specs.shape_tuple(tensor.shape), None) for tensor in self.tensors
        ]


def call(
    function: Callable, dataset: Any, state: State, caller: str, gives_output: bool
) -> _user_function.Called:
    """The function, which gives the state's components and then, if it does, the output's. The tree
    is the output's."""
    while True:
        trees: list = []
        stepped = _step(function, state, caller, gives_output, trees)
        called = _user_function.call(
            stepped, dataset, caller, before=state.specs, before_tree=state.tree
        )
        specs = called.given[: len(state.specs)]
        _check_dtypes(state, specs, caller)
        wider = [_specs.relax(*pair) for pair in zip(state.specs, specs)]
        if wider == state.specs or not called.is_traced:
            return called._replace(tree=trees[-1])
        state.specs = wider


def reduced(dataset: Any, state: State, called: _user_function.Called) -> list:
    """The last state; in a graph, nodes that go through the dataset when they are run."""

    def run() -> list:
        with _tracing.eager():
            return _core.ds_reduce(called.over(dataset._core), state.tensors, called.function)

    if _context.here.graph is None:
        return run()
    if _context.trace_here() is not None:
        raise errors.OperatorNotAllowedInGraphError("the elements of a dataset are asked for")
    return _core.python_call(run, [], [(spec[0], spec[1]) for spec in state.specs], "ReduceDataset")


def _step(
    function: Callable, state: State, caller: str, gives_output: bool, trees: list
) -> Callable:
    """The function as _functions wants it: one flat tuple, the state's components first."""

    def step(before: Any, element: Any) -> tuple:
        value = function(before, element)
        output: Any = ()
        if gives_output:
            if not isinstance(value, (tuple, list)) or len(value) != 2:
                raise TypeError(
                    "`scan_func` should return a pair consisting of new state and the output value. "
                    f"Got {value!r}."
                )
            value, output = value
        return (*_state_leaves(state, value, caller), *_output_leaves(output, trees))

    step.__name__ = getattr(function, "__name__", caller)
    return step


def _state_leaves(state: State, value: Any, caller: str) -> list:
    value = tuple(value) if isinstance(value, list) and state.tree is not None else value
    if not _structure.same(_structure.flatten(value)[0], state.tree):
        raise TypeError(
            "The element classes for the new state must match the initial state, in "
            f"Dataset.{caller}(): it was {_structure.pack(state.tree, state.tensors)!r}, and is {value!r}"
        )
    leaves = _structure.flatten_as(state.tree, value)
    return [_core.convert(leaf, None, like=spec[0]) for leaf, spec in zip(leaves, state.specs)]


def _output_leaves(output: Any, trees: list) -> list:
    tree, leaves = _structure.flatten(tuple(output) if isinstance(output, list) else output)
    trees.append(tree)
    return leaves


def _check_dtypes(state: State, specs: list, caller: str) -> None:
    for before, after in zip(state.specs, specs):
        if before[0] != after[0]:
            raise TypeError(
                "The element types for the new state must match the initial state. Expected "
                f"{before[0].name}; got {after[0].name}, in Dataset.{caller}()."
            )
