# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1's variables by name: get_variable() in variable_scope().

    >>> import plimsoll.tf as tf
    >>> v1 = tf.compat.v1
    >>> with tf.Graph().as_default():
    ...     with v1.variable_scope("a"):
    ...         x = v1.get_variable("x", [1])
    ...     with v1.variable_scope("a", reuse=True):
    ...         print(v1.get_variable("x", [1]) is x)
    True
"""
from __future__ import annotations

import enum
from typing import Any, List, Optional

from plimsoll.tf._graph import context as _context, graph as _graph
from plimsoll.tf._values import types as _types
from plimsoll.tf._values.initializers import GlorotUniform, Zeros
from plimsoll.tf._values.variable import Variable


class _Reuse(enum.Enum):
    """Reuse a variable that exists, else make it."""

    AUTO_REUSE = 1


AUTO_REUSE = _Reuse.AUTO_REUSE


class VariableScope:
    """Names begin with `name`; whether variables that are there are taken, is `reuse`."""

    def __init__(self, reuse: Any, name: str = "", initializer: Any = None, dtype: Any = None):
        self._reuse = reuse
        self._name = name
        self.initializer = initializer
        self.dtype = dtype or _types.float32

    @property
    def name(self) -> str:
        return self._name

    @property
    def reuse(self) -> Any:
        return self._reuse

    @property
    def original_name_scope(self) -> str:
        return self._name + "/" if self._name else ""

    def reuse_variables(self) -> None:
        self._reuse = True

    def set_initializer(self, initializer: Any) -> None:
        self.initializer = initializer

    def global_variables(self) -> List[Any]:
        return _graph.get_default_graph().get_collection(_graph.GLOBAL_VARIABLES, self._name)

    def trainable_variables(self) -> List[Any]:
        return _graph.get_default_graph().get_collection(_graph.TRAINABLE_VARIABLES, self._name)

    def get_variable(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return get_variable(name, *args, **kwargs)


def get_variable_scope() -> VariableScope:
    """The one that is entered."""
    graph = _graph.get_default_graph()
    if graph._variable_scope is None:
        graph._variable_scope = VariableScope(False)
    return graph._variable_scope


class variable_scope:
    """get_variable() inside of the `with` names its variables `name_or_scope/...`."""

    def __init__(
        self,
        name_or_scope: Any,
        default_name: Optional[str] = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: Optional[bool] = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if custom_getter is not None or partitioner is not None:
            raise NotImplementedError("variable_scope: custom_getter and partitioner")
        if name_or_scope is None and default_name is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        self._named, self._default_name = name_or_scope, default_name
        self._initializer, self._reuse, self._dtype = initializer, reuse, dtype
        self._with_names = auxiliary_name_scope
        self._entered: List[Any] = []

    def __enter__(self) -> VariableScope:
        graph, before = _graph.get_default_graph(), get_variable_scope()
        scope = self._scope(before)
        names = _graph._scoped(scope.name.rsplit("/", 1)[-1]) if self._with_names else None
        if names is not None:
            names.__enter__()
        self._entered.append((graph, before, names))
        graph._variable_scope = scope
        return scope

    def __exit__(self, *exception: Any) -> None:
        graph, before, names = self._entered.pop()
        graph._variable_scope = before
        if names is not None:
            names.__exit__(*exception)

    def _scope(self, before: VariableScope) -> VariableScope:
        if isinstance(self._named, VariableScope):
            base, name = self._named, self._named.name
        else:
            base = before
            own = self._named if self._named is not None else self._unique(before)
            name = f"{before.name}/{own}" if before.name else own
        reuse = self._reuse if self._reuse is not None else base.reuse
        initializer = base.initializer if self._initializer is None else self._initializer
        return VariableScope(reuse, name, initializer, self._dtype or base.dtype)

    def _unique(self, before: VariableScope) -> str:
        """A scope of that default name that no variable's scope has yet."""
        graph = _graph.get_default_graph()
        prefix = before.name + "/" if before.name else ""
        taken = graph.get_collection_ref("variable_scopes")
        name, number = self._default_name, 0
        while prefix + str(name) in taken:
            number += 1
            name = f"{self._default_name}_{number}"
        taken.append(prefix + str(name))
        return str(name)


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: Optional[bool] = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: Optional[bool] = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """The variable of that name in the scope: made, or, where the scope reuses, found."""
    graph, scope = _graph.get_default_graph(), get_variable_scope()
    whole = f"{scope.name}/{name}" if scope.name else name
    found = graph._variable_store.get(whole) if _context.here.graph is not None else None
    if found is not None:
        return _found(found, whole, shape, dtype, scope)
    if scope.reuse is True:
        raise ValueError(
            f"Variable {whole} does not exist, or was not created with tf.get_variable(). Did you "
            "mean to set reuse=tf.AUTO_REUSE in VarScope?"
        )
    initializer = scope.initializer if initializer is None else initializer
    made = _made(whole, shape, dtype or scope.dtype, initializer, trainable, collections)
    graph._variable_store[whole] = made
    return made


def _found(found: Any, whole: str, shape: Any, dtype: Any, scope: VariableScope) -> Any:
    if not scope.reuse:
        raise ValueError(
            f"Variable {whole} already exists, disallowed. Did you mean to set reuse=True or "
            "reuse=tf.AUTO_REUSE in VarScope?"
        )
    if shape is not None and not found.shape.is_compatible_with(shape):
        raise ValueError(
            f"Trying to share variable {whole}, but specified shape {_types.TensorShape(shape)} and "
            f"found shape {found.shape}."
        )
    if dtype is not None and _types.as_dtype(dtype) != found.dtype:
        raise ValueError(
            f"Trying to share variable {whole}, but specified dtype {_types.as_dtype(dtype).name} "
            f"and found dtype {found.dtype.name}."
        )
    return found


def _made(
    whole: str, shape: Any, dtype: Any, initializer: Any, trainable: Any, collections: Any
) -> Any:
    dtype = _types.as_dtype(dtype)
    if initializer is None:
        initializer = GlorotUniform() if dtype.is_floating else Zeros()
    if isinstance(initializer, type):
        initializer = initializer()
    if callable(initializer):
        if shape is None or not _types.TensorShape(shape).is_fully_defined():
            raise ValueError(
                f"The shape of a new variable ({whole}) must be fully defined, but instead was "
                f"{_types.TensorShape(shape)}."
            )
        make = initializer

        def value() -> Any:
            return make(shape, dtype)

    else:
        given = initializer

        def value() -> Any:
            return given

        dtype = None if shape is None and hasattr(given, "dtype") else dtype
    with _context.scoped(""):
        return Variable(value, trainable, name=whole, dtype=dtype, collections=collections)
