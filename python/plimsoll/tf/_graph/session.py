# SPDX-License-Identifier: Apache-2.0
"""Sessions, as TensorFlow 1 has them: a graph's nodes, run with some of them fed.
    fetch   a wanted result: a tensor, an operation, a variable, a name; in lists, tuples and dicts
    feed    a value for a tensor: a placeholder, or any other
    plan    for a set of fetches and feeds: which variables the run reads, which assignments
            and calls with effects it makes. Kept while the graph does not grow
    update  an assignment that depends on the variable's old value: assign_add(), scatter_*()

A run is one plan. Invariants:
    effects (Python functions, iterators, prints, checks) happen once in a run, if they are
    fetched, used, or waited for (tf.control_dependencies); random ops draw once, too
    effects and assignments happen in the order in which they were made in the graph, which is one
    of those that data and control dependencies allow
    a read sees the value from before the run; one that waits for assignments to the variable, or is
    made from one, sees the value that the last of these assigned
    an update starts from the value of the assignment before it in this run
    assignments take effect when the run has succeeded: all of them, or none if the run fails

    >>> import plimsoll.tf as tf
    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.placeholder(tf.float32, [None])
    ...     y = tf.reduce_sum(x)
    ...     with tf.compat.v1.Session() as session:
    ...         print(session.run(y, feed_dict={x: [1.0, 2.0]}))
    3.0
"""
from __future__ import annotations

import itertools
import math
import sys
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from plimsoll import _core
from plimsoll.errors import FailedPreconditionError, InvalidArgumentError
from plimsoll.tf import nest
from plimsoll.tf._graph import context as _context, graph as _graph
from plimsoll.tf._graph.graph import Graph, Operation, Tensor

__all__: List[str] = []


class ConfigProto:
    """Session(config=...): fields are taken as they are given; those without a use are ignored.

    >>> ConfigProto(allow_soft_placement=True).allow_soft_placement
    True
    """

    def __init__(self, **fields: Any) -> None:
        self.gpu_options = GPUOptions()
        self.graph_options = _Fields()
        self.__dict__.update(fields)


class _Fields:
    """A message that has every field."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = self.__dict__[name] = _Fields()
        return made


class GPUOptions(_Fields):
    """See ConfigProto."""


class RunOptions(_Fields):
    """Session.run(options=...): see ConfigProto."""


class RunMetadata(_Fields):
    """Session.run(run_metadata=...): nothing is written into it."""


class SparseTensorValue(tuple):
    """The value of a SparseTensor in a run: indices, values and dense_shape as arrays."""

    _fields = ("indices", "values", "dense_shape")

    def __new__(cls, indices: Any, values: Any, dense_shape: Any) -> "SparseTensorValue":
        return super().__new__(cls, (indices, values, dense_shape))

    indices = property(lambda self: self[0])
    values = property(lambda self: self[1])
    dense_shape = property(lambda self: self[2])


class _Plan:
    """See the top. Nodes are compared by identity."""

    def __init__(self, graph: Graph, elements: Sequence[Any], fed: Dict[int, Any]) -> None:
        self._fed = frozenset(fed)
        self.handles: Dict[int, Tuple[Any, Any]] = {}  # of variables that are read
        self.first: List[Any] = []  # passed to _core.run() under that name
        self.stores: Dict[int, Tuple[Any, Any]] = {}  # variable, the node of its last assignment
        met: Dict[str, Any] = {}
        self._walk(list(elements), met)
        for name in graph.in_order(met):
            self._arrange(graph, name, met[name])

    def _walk(self, stack: List[Any], met: Dict[str, Any]) -> None:
        seen = set()
        while stack:
            element = stack.pop()
            if isinstance(element, Operation):
                stack.extend(element.outputs)
                stack.extend(element._waits_for_all())
                continue
            if id(element) in seen or id(element) in self._fed or element.graph is None:
                continue
            seen.add(id(element))
            stack.extend(element.inputs)
            self._note(element, stack, met)

    def _note(self, node: Any, stack: List[Any], met: Dict[str, Any]) -> None:
        graph, name = node.graph, _graph.name_of(node)
        stack.extend(graph._waits_for.get(name, ()))
        if name in graph._handles:
            self.handles[id(node)] = node, graph._handles[name]
        if name in graph._reads:
            before = graph._reads[name][1]
            stack.extend(() if before is None else [before])
        if name in graph._defaults:
            stack.append(graph._defaults[name])
        if any(name in of for of in (graph._reads, graph._defaults, graph._effects, graph._assigns)):
            met[name] = node

    def _arrange(self, graph: Graph, name: str, node: Any) -> None:
        """Arranges one node; those that were made before it already are."""
        if name in graph._reads:
            self.first.append((node, self._read(*graph._reads[name])))
        if name in graph._defaults:
            self.first.append((node, graph._defaults[name]))
        if name in graph._effects:
            self.first.append(graph._effects[name])
        if name in graph._assigns:
            variable = graph._assigns[name]
            self.stores[id(variable)] = variable, node

    def _read(self, variable: Any, before: Any) -> Any:
        """The value that an update of the variable starts from."""
        if before is not None and id(before) in self._fed:
            return before
        if id(variable) in self.stores:
            return self.stores[id(variable)][1]
        handle = variable._handle
        if id(handle) not in self._fed:
            self.handles[id(handle)] = handle, variable
        return handle


_numbers = itertools.count(1)
_open: "weakref.WeakValueDictionary[int, BaseSession]" = weakref.WeakValueDictionary()


def _site() -> Optional[Tuple[str, int]]:
    """Where the user's code is, that called."""
    frame: Any = sys._getframe(2)
    while frame and frame.f_globals.get("__name__", "").startswith("plimsoll."):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else None


def live() -> List[Dict[str, Any]]:
    """Sessions that are open, as plimsoll.live() tells of them; the bytes are their variables'."""
    rest = {"scope": "", "where": "", "dtype": None, "shape": (), "shared": True, "pinned": False}
    return [
        {"kind": "session", "name": f"session {number}", "bytes": session._bytes(), **rest,
         "site": session._site}
        for number, session in sorted(_open.items())
        if not session._closed
    ]  # fmt: skip


class BaseSession:
    """The common base of Session and InteractiveSession."""

    def __init__(self, target: str = "", graph: Optional[Graph] = None, config: Any = None) -> None:
        if target:
            raise NotImplementedError(f"Session(target='{target}'): sessions run in this process")
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(
                f"Argument `graph` must be a tf.Graph, but got \"{type(graph).__name__}\""
            )
        self._graph = graph if graph is not None else _graph.get_default_graph()
        self._config = config
        self._closed = False
        # id -> variable, value. Never changed but replaced: a run reads the values of one moment
        self._values: Dict[int, Tuple[Any, Any]] = {}
        self._assigning = threading.RLock()
        self._plans: Dict[Any, _Plan] = {}
        self._plans_of = -1  # nodes that the graph had when they were made
        self._site = _site()
        _open[next(_numbers)] = self

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def graph_def(self) -> Any:
        return self._graph.as_graph_def()

    @property
    def sess_str(self) -> str:
        return ""

    def close(self) -> None:
        """Its variables are gone; from now on it cannot be used."""
        self._closed = True
        self._values = {}
        self._plans.clear()

    def _bytes(self) -> int:
        values = (value for _, value in self._values.values())
        return sum(value.dtype.size * math.prod(value.shape.as_list()) for value in values)

    def as_default(self) -> Any:
        """Inside of the `with`, eval() and Operation.run() use this session."""
        return _AsDefault(self)

    def list_devices(self) -> List[Any]:
        from plimsoll.tf import config

        return config.list_logical_devices()

    # ---- running ----

    def run(
        self,
        fetches: Any,
        feed_dict: Optional[Dict[Any, Any]] = None,
        options: Any = None,
        run_metadata: Any = None,
        out: Any = None,
    ) -> Any:
        """The values of `fetches`, in the form that they are given in; None for operations.

        `out` has that form as well, or is one path if there is one fetch: a value goes to that .npy
        file, piece by piece, and may be larger than the budget; None is returned for it.
        """
        self._check_open()
        flat = [self._element(fetch) for fetch in _flat_fetches(fetches)]
        feeds = self._feeds(feed_dict or {})
        values = self._run(flat, feeds, _paths(fetches, flat, out))
        return _packed(fetches, iter([_as_python(value) for value in values]))

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")

    def _element(self, fetch: Any) -> Any:
        """The Tensor or Operation that is meant; a tensor of no graph is as good as any."""
        try:
            if isinstance(fetch, Tensor) and fetch.graph is None:
                return fetch
            if getattr(fetch, "_graph", self) is None and hasattr(fetch, "__plimsoll_tensor__"):
                return fetch.__plimsoll_tensor__()  # a variable of no graph
            if not self._graph._nodes:
                raise RuntimeError(
                    "The Session graph is empty. Add operations to the graph before calling run()."
                )
            return self._graph.as_graph_element(fetch)
        except TypeError as error:
            raise TypeError(
                f"Argument `fetch` = {fetch} has invalid type \"{type(fetch).__name__}\" must be a "
                f"string or Tensor. ({error})"
            ) from None
        except KeyError as error:
            raise ValueError(
                f"Argument `fetch` = {fetch} cannot be interpreted as a Tensor. ({error})"
            ) from None

    def _feeds(self, feed_dict: Dict[Any, Any]) -> Dict[int, Tuple[Any, Any]]:
        feeds = {}
        for key, value in feed_dict.items():
            for node, part in self._feed_pairs(key, value):
                feeds[id(node)] = node, _fed(node, part)
        return feeds

    def _feed_pairs(self, key: Any, value: Any) -> Sequence[Tuple[Any, Any]]:
        if nest.is_nested(key) or nest._is_composite(key):
            parts = nest.flatten(key, expand_composites=True)
            return list(zip(parts, nest.flatten(value, expand_composites=True)))
        try:
            return [(self._graph.as_graph_element(key, allow_operation=False), value)]
        except (TypeError, ValueError, KeyError) as error:
            raise TypeError(f"Cannot interpret feed_dict key as Tensor: {error}") from None

    def _run(self, elements: List[Any], feeds: Dict[int, Any], paths: Any) -> List[Any]:
        plan = self._plan(elements, feeds)
        if not plan.stores:
            return self._run_planned(plan, elements, feeds, paths)
        with self._assigning:  # runs that assign wait for each other: none of them is lost
            return self._run_planned(plan, elements, feeds, paths)

    def _run_planned(
        self, plan: _Plan, elements: List[Any], feeds: Dict[int, Any], paths: Any
    ) -> List[Any]:
        wanted, places = _wanted([*elements, *(node for _, node in plan.stores.values())])
        by_place = {places[id(elements[i])]: path for i, path in paths.items()}
        out = [by_place.get(place) for place in range(len(wanted))] if paths else None
        values = self._compute(plan, wanted, feeds, out)
        stored = [(variable, values[places[id(n)]]) for variable, n in plan.stores.values()]
        for variable, value in stored:
            _check_shape(variable, value)
        if stored:
            self._store(stored)
        return [values[places[id(e)]] if isinstance(e, Tensor) else None for e in elements]

    def _compute(self, plan: _Plan, nodes: List[Any], feeds: Dict[int, Any], out: Any) -> List[Any]:
        if not nodes and not plan.first:
            return []
        given = list(feeds.values())
        held = self._values
        for handle, variable in plan.handles.values():
            given.append((handle, _value_of(variable, held)))
        return _core.run(nodes, given, out, first=plan.first)

    def _plan(self, elements: Sequence[Any], feeds: Dict[int, Any]) -> _Plan:
        if self._plans_of != self._graph.version:
            self._plans.clear()
            self._plans_of = self._graph.version
        key = tuple(map(_identity, elements)), frozenset(feeds)
        plan = self._plans.get(key)
        if plan is None:
            plan = _Plan(self._graph, elements, feeds)
            if all(element.graph is self._graph for element in elements):  # ids that stay
                self._plans[key] = plan
        return plan

    # ---- variables ----

    def _store(self, values: Sequence[Tuple[Any, Any]]) -> None:
        """All at once, also where a signal's handler raises something in between."""
        with self._assigning:
            new = {id(variable): (variable, value) for variable, value in values}
            self._values = {} if self._closed else {**self._values, **new}

    def set_variable(self, variable: Any, value: Any) -> None:
        self._check_open()
        self._store([(variable, _fed(variable._handle, value))])

    def has_variable(self, variable: Any) -> bool:
        return id(variable) in self._values

    # ---- other names of TensorFlow ----

    def make_callable(
        self, fetches: Any, feed_list: Any = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function that runs `fetches`, its arguments fed to `feed_list`."""
        keys = list(feed_list or ())

        def call(*values: Any) -> Any:
            return self.run(fetches, dict(zip(keys, values)) if keys else None)

        return call

    def partial_run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("Session.partial_run(): run what is needed at once")

    def partial_run_setup(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("Session.partial_run_setup(): run what is needed at once")


class Session(BaseSession):
    """Runs nodes of a graph; `with` makes it, and its graph, the default, and closes it at the end.

    >>> import plimsoll.tf as tf
    >>> with tf.Graph().as_default():
    ...     c = tf.constant(5.0) * tf.constant(6.0)
    ...     with tf.compat.v1.Session() as session:
    ...         print(session.run(c))
    30.0
    """

    _entered: Any = None

    def __enter__(self) -> "Session":
        if self._entered is not None:
            raise RuntimeError("Session context managers are not re-entrant.")
        self._check_open()
        self._entered = [_AsDefault(self), self._graph.as_default()]
        for context in self._entered:
            context.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        for context in reversed(self._entered):
            context.__exit__(None, None, None)
        self._entered = None
        self.close()

    @staticmethod
    def reset(target: str, containers: Any = None, config: Any = None) -> None:
        raise NotImplementedError("Session.reset(): sessions run in this process")


class InteractiveSession(BaseSession):
    """The default as soon as it is made, until it is closed.

    >>> import plimsoll.tf as tf
    >>> with tf.Graph().as_default():
    ...     session = tf.compat.v1.InteractiveSession()
    ...     print((tf.constant(5.0) * 2.0).eval())
    ...     session.close()
    10.0
    """

    def __init__(self, target: str = "", graph: Optional[Graph] = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        _context.here.sessions.append(self)
        self._in_graph = self._graph.as_default() if graph is not None else None
        if self._in_graph is not None:
            self._in_graph.__enter__()

    def close(self) -> None:
        if not self._closed:
            if self in _context.here.sessions:
                _context.here.sessions.remove(self)
            if self._in_graph is not None:
                self._in_graph.__exit__(None, None, None)
        super().close()


class _AsDefault:
    def __init__(self, session: Any) -> None:
        self._session = session

    def __enter__(self) -> Any:
        _context.here.sessions.append(self._session)
        return self._session

    def __exit__(self, *exception: Any) -> None:
        _context.here.sessions.remove(self._session)


def get_default_session() -> Optional[BaseSession]:
    sessions = _context.here.sessions
    return sessions[-1] if sessions else None


def session_for(graph: Any, session: Any, what: str) -> BaseSession:
    """The session that is given, or the default one. ValueError if there is none."""
    session = session if session is not None else get_default_session()
    if session is None:
        raise ValueError(
            f"Cannot {what} using `eval()`: No default session is registered. Use `with "
            "sess.as_default()` or pass an explicit session to `eval(session=sess)`"
        )
    if graph is not None and session.graph is not graph:
        raise ValueError(
            f"Cannot use the default session to {what}: the tensor's graph is different from the "
            "session's graph. Pass an explicit session to `eval(session=sess)`."
        )
    return session


# ---- fetches and feeds ----


def _identity(element: Any) -> Any:
    return element.name if isinstance(element, Operation) else id(element)


def _flat_fetches(fetches: Any) -> List[Any]:
    if fetches is None:
        raise TypeError("Argument `fetch` = None has invalid type \"NoneType\". Cannot be None")
    if nest.is_nested(fetches) or nest._is_composite(fetches):
        return [leaf for part in _fetch_children(fetches) for leaf in _flat_fetches(part)]
    return [fetches]


def _fetch_children(fetches: Any) -> List[Any]:
    if hasattr(fetches, "values") and hasattr(fetches, "keys"):
        return list(fetches.values())
    return list(nest._children(fetches))


def _packed(fetches: Any, values: Any) -> Any:
    if nest._is_composite(fetches):
        return SparseTensorValue(*(_packed(part, values) for part in fetches._composite_parts()))
    if not nest.is_nested(fetches):
        return next(values)
    children = [_packed(part, values) for part in _fetch_children(fetches)]
    if hasattr(fetches, "keys"):
        return type(fetches)(zip(fetches, children))
    return nest._like(fetches, children)


def _paths(fetches: Any, flat: List[Any], out: Any) -> Dict[int, str]:
    """By the place of the fetch."""
    if out is None:
        return {}
    paths = [out] if not nest.is_nested(out) else _flat_out(out)
    if len(paths) != len(flat):
        raise ValueError(f"out: {len(paths)} paths for {len(flat)} fetches: one for each, or None")
    import os

    named = {i: os.fspath(path) for i, path in enumerate(paths) if path is not None}
    for place in named:
        if not isinstance(flat[place], Tensor):
            raise ValueError(f"out: '{named[place]}' is for {flat[place]!r}, which has no value")
    return named


def _flat_out(out: Any) -> List[Any]:
    if not nest.is_nested(out):
        return [out]
    return [leaf for part in _fetch_children(out) for leaf in _flat_out(part)]


def _wanted(elements: Sequence[Any]) -> Tuple[List[Any], Dict[int, int]]:
    """Nodes to compute, each once, and where each is among them. Of an Operation nobody wants the
    value: it is computed to be assigned, which the plan knows, or for the errors in it."""
    wanted: List[Any] = []
    places: Dict[int, int] = {}
    for element in elements:
        is_operation = isinstance(element, Operation)
        if is_operation and element.name in element.graph._assigns:
            continue
        for node in element.outputs if is_operation else [element]:
            if id(node) not in places:
                places[id(node)] = len(wanted)
                wanted.append(node)
    return wanted, places


def _value_of(variable: Any, held: Dict[int, Tuple[Any, Any]]) -> Any:
    if id(variable) not in held:
        raise FailedPreconditionError(
            None,
            None,
            f"Attempting to use uninitialized value {variable.name[:-2]}: run its initializer, or "
            "tf.compat.v1.global_variables_initializer(), in this session first",
        )
    return held[id(variable)][1]


def _check_shape(variable: Any, value: Any) -> None:
    if not value.shape.is_compatible_with(variable.shape):
        raise InvalidArgumentError(
            None,
            None,
            f"Cannot assign value to variable '{variable.name}': Shape mismatch.The variable shape "
            f"{variable.shape}, and the assigned value shape {value.shape} are incompatible.",
        )


def _fed(node: Any, value: Any) -> Any:
    """The value as a tensor that the node can be. TypeError, ValueError."""
    if isinstance(value, Tensor) and (value.is_symbolic or value.graph is not None):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include "
            "Python scalars, strings, lists, numpy ndarrays, or TensorHandles. For reference, the "
            f"tensor object was {value} which was passed to the argument `feed_dict` with key {node}."
        )
    with _context.entered(None):
        tensor = _cast(value, node.dtype)
    if not tensor.shape.is_compatible_with(node.shape):
        raise ValueError(
            f"Cannot feed value of shape {tensor.shape} for Tensor {node.name}, which has shape "
            f"{node.shape}"
        )
    return tensor


def _cast(value: Any, dtype: Any) -> Any:
    """As numpy.asarray(value, dtype) does: feeds are cast where that is possible."""
    if isinstance(value, Tensor):
        return value if value.dtype == dtype else _core.op("cast", [value], {"dtype": dtype})
    try:
        return _core.convert(value, dtype=dtype)
    except TypeError:
        if dtype.name == "string":
            raise
        return _core.op("cast", [_core.convert(value)], {"dtype": dtype})


def _as_python(value: Any) -> Any:
    return None if value is None else value.numpy()
