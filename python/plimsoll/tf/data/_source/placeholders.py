# SPDX-License-Identifier: Apache-2.0
"""Sources over tensors that have no value yet: placeholders of a graph, and nodes that depend on them.

    holder  such tensors, and the values that an iterator's initializer was last run with

A dataset over placeholders is made once; each pass takes the holder's values when it begins.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

from plimsoll import _core, errors

from plimsoll.tf.data._element import specs as _specs
from plimsoll.tf.data._stage import tracing as _tracing

_holders: Any = weakref.WeakKeyDictionary()  # by _core.Dataset


class Holder:
    def __init__(self, tensors: Sequence) -> None:
        self.tensors = list(tensors)
        self.values: Optional[list] = None

    def begin(self) -> Iterator:
        if self.values is None:
            raise errors.FailedPreconditionError(
                None,
                None,
                "the dataset hangs on placeholders: run the initializer of an iterator over it first, "
                "with a feed_dict that has their values",
            )
        return iter([tuple(self.values)])


def source(make: Callable, leaves: Sequence, sliced: bool = False) -> _core.Dataset:
    """make(leaves), now or, if one of them has no value yet, in each pass."""
    if not any(leaf.is_symbolic for leaf in leaves):
        with _tracing.eager():
            return make(_computed(leaves))
    holder = Holder(leaves)
    specs = [(leaf.dtype, _specs.shape_tuple(leaf.shape), None) for leaf in leaves]
    of = [(dtype, _sliced(shape), None) for dtype, shape, _ in specs] if sliced else specs
    made = _core.Callback(lambda *values: [make(list(values))], [(None, None, of)])
    core = _core.ds_flat_map(_core.ds_generator(holder.begin, specs, 1), made)
    _holders[core] = holder
    return core


def _computed(leaves: Sequence) -> list:
    """Those of a graph keep no value: they are run."""
    if all(leaf.graph is None for leaf in leaves):
        return list(leaves)
    return list(_core.run(list(leaves)))


def _sliced(shape: Optional[tuple]) -> Optional[tuple]:
    return None if shape is None else shape[1:]


def holders_of(dataset: Any) -> list[Holder]:
    """All nodes that the dataset depends on, each once."""
    found: dict = {}
    waiting = [dataset]
    while waiting:
        this = waiting.pop()
        holder = _holders.get(this._core)
        if holder is not None:
            found[id(holder)] = holder
        waiting.extend(this._sources)
    return list(found.values())
