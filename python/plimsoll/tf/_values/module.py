# SPDX-License-Identifier: Apache-2.0
"""tf.Module: an object that knows the variables in its attributes.

    >>> import plimsoll.tf as tf
    >>> class Dense(tf.Module):
    ...     def __init__(self, n, name=None):
    ...         super().__init__(name)
    ...         with self.name_scope:
    ...             self.w = tf.Variable(tf.zeros([n]), name="w")
    >>> [v.name for v in Dense(2).variables]
    ['dense/w:0']
"""
from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from plimsoll.tf import nest
from plimsoll.tf._graph import graph as _graph
from plimsoll.tf._values.variable import Variable

__all__ = ["Module"]


class Module:
    """Variables and modules in attributes, and in lists, tuples and dicts of these, are found.

    >>> module = Module(name="mine")
    >>> module.held = [Variable(1.0), Variable(2.0)]
    >>> len(module.variables)
    2
    """

    def __init__(self, name: Optional[str] = None) -> None:
        if name is None:
            name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()
        elif not name.isidentifier():
            raise ValueError(f"{name!r} is not a valid module name. Module names must be identifiers")
        self._name = name
        self._name_scope = _graph.name_scope(name)

    @property
    def name(self) -> str:
        return self._name

    @property
    def name_scope(self) -> Any:
        return self._name_scope

    def _held(self) -> List[Tuple[str, Any]]:
        held = []
        for key in sorted(vars(self)):
            if not key.startswith("__"):
                held += [(key, leaf) for leaf in nest.flatten(vars(self)[key])]
        return held

    def _flatten(
        self,
        recursive: bool = True,
        predicate: Optional[Callable[[Any], bool]] = None,
        with_path: bool = False,
    ) -> Iterator[Any]:
        seen: Dict[int, Any] = {id(self): self}
        stack: List[Module] = [self]
        while stack:
            module = stack.pop(0)
            for key, leaf in module._held():
                if id(leaf) in seen:
                    continue
                seen[id(leaf)] = leaf
                if predicate is None or predicate(leaf):
                    yield ((key,), leaf) if with_path else leaf
                if recursive and isinstance(leaf, Module):
                    stack.append(leaf)

    @property
    def variables(self) -> Tuple[Any, ...]:
        return tuple(self._flatten(predicate=lambda leaf: isinstance(leaf, Variable)))

    @property
    def trainable_variables(self) -> Tuple[Any, ...]:
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def non_trainable_variables(self) -> Tuple[Any, ...]:
        return tuple(variable for variable in self.variables if not variable.trainable)

    @property
    def submodules(self) -> Tuple[Any, ...]:
        return tuple(self._flatten(predicate=lambda leaf: isinstance(leaf, Module)))

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method whose names begin with the module's."""
        import functools

        @functools.wraps(method)
        def in_scope(self: Any, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return in_scope
