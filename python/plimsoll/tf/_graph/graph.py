# SPDX-License-Identifier: Apache-2.0
"""Graphs: nodes with names, that sessions run and functions are traced into.

    >>> import plimsoll.tf as tf
    >>> with tf.Graph().as_default() as graph:
    ...     x = tf.constant(2.0, name="x")
    ...     y = tf.add(x, 1.0, name="y")
    >>> [op.name for op in graph.get_operations() if op.name in "xy"]
    ['x', 'y']
    >>> with tf.compat.v1.Session(graph=graph) as session:
    ...     print(session.run("y:0"))
    3.0
"""
from __future__ import annotations

import itertools
import re
import threading
from contextlib import contextmanager
from builtins import tuple as tuple_of
from typing import Any, ContextManager, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from plimsoll import _core
from plimsoll.tf._graph import context as _context

__all__ = [
    "Graph",
    "Operation",
    "Tensor",
    "control_dependencies",
    "device",
    "executing_eagerly",
    "get_current_name_scope",
    "group",
    "init_scope",
    "is_symbolic_tensor",
    "is_tensor",
    "name_scope",
    "no_op",
    "tuple",
]

Tensor = _core.Tensor

_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
_SCOPE = re.compile(r"[A-Za-z0-9_.\\/>-]*")
_SCOPE_RULE = r"it has letters (of ASCII), digits and any of _ . \ / > -"
_NAME_RULE = "it begins with a letter, a digit or '.', and " + _SCOPE_RULE[3:]

# Where TensorFlow's word for an op is not just the library's in another case.
_TYPES = {
    "add": "AddV2",
    "argmax": "ArgMax",
    "argmin": "ArgMin",
    "assign": "AssignVariableOp",
    "assign_add": "AssignAddVariableOp",
    "assign_sub": "AssignSubVariableOp",
    "bitwise_not": "Invert",
    "clip": "ClipByValue",
    "concat": "ConcatV2",
    "constant": "Const",
    "cond": "If",
    "crop": "StridedSlice",
    "div": "RealDiv",
    "floordiv": "FloorDiv",
    "fmod": "TruncateMod",
    "gather": "GatherV2",
    "matmul": "MatMul",
    "mod": "FloorMod",
    "pad": "PadV2",
    "py_function": "EagerPyFunc",
    "random_normal": "RandomStandardNormal",
    "random_truncated": "TruncatedNormal",
    "reverse": "ReverseV2",
    "slice": "StridedSlice",
    "string_substr": "Substr",
    "top_k_indices": "TopKV2",
    "top_k_values": "TopKV2",
    "where": "SelectV2",
    "while_loop": "While",
}

# TensorFlow's default names of nodes, where that is not the type.
_DEFAULT_NAMES = {
    "add": "add",
    "concat": "concat",
    "constant": "Const",
    "clip": "clip_by_value",
    "cond": "cond",
    "crop": "strided_slice",
    "div": "truediv",
    "floordiv": "floordiv",
    "mod": "mod",
    "mul": "mul",
    "one_hot": "one_hot",
    "pad": "Pad",
    "random_normal": "random_normal",
    "random_truncated": "truncated_normal",
    "random_uniform": "random_uniform",
    "range": "range",
    "slice": "strided_slice",
    "sub": "sub",
    "transpose": "transpose",
    "while_loop": "while",
}

GLOBAL_VARIABLES = "variables"
LOCAL_VARIABLES = "local_variables"
TRAINABLE_VARIABLES = "trainable_variables"


def _type_of(op: str) -> str:
    """TensorFlow's word for one of the library's ops."""
    return _TYPES.get(op) or "".join(part.capitalize() for part in op.split("_"))


class Operation:
    """A view of a node: it makes a tensor or, without one, only waits for others.

    >>> import plimsoll.tf as tf
    >>> with tf.Graph().as_default():
    ...     y = tf.add(tf.constant(1), tf.constant(2), name="sum")
    >>> y.op.name, y.op.outputs[0] is y
    ('sum', True)
    """

    __slots__ = ("_graph", "_name", "_nodes", "_waits_for", "__weakref__")

    def __init__(self, graph: Any, name: str, nodes: Any = (), waits_for: Tuple[Any, ...] = ()):
        self._graph = graph
        self._name = name
        self._nodes = list(nodes)
        self._waits_for = waits_for

    @property
    def name(self) -> str:
        return self._name

    @property
    def type(self) -> str:
        """TensorFlow's name of its op."""
        if not self._nodes:
            return "NoOp"
        if self._name in self._graph._handles:
            return "VarHandleOp"
        if self._name in self._graph._reads:
            return "ReadVariableOp"
        return _type_of(self._nodes[0].op_name)

    @property
    def graph(self) -> Any:
        return self._graph

    @property
    def inputs(self) -> Tuple[Any, ...]:
        return tuple_of(self._nodes[0].inputs) if self._nodes else ()

    @property
    def outputs(self) -> List[Any]:
        return list(self._nodes)

    @property
    def control_inputs(self) -> List["Operation"]:
        return [operation_of(element) for element in self._waits_for_all()]

    @property
    def device(self) -> str:
        return self._nodes[0].device if self._nodes else ""

    def _waits_for_all(self) -> Tuple[Any, ...]:
        if not self._nodes:
            return self._waits_for
        return self._graph._waits_for.get(self._name, ())

    def values(self) -> Tuple[Any, ...]:
        return tuple_of(self.outputs)

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Runs it in the session that is given, or the default one."""
        from plimsoll.tf._graph import session as _session

        _session.session_for(self._graph, session, "run operation").run(self, feed_dict)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Operation):
            return NotImplemented
        return self._graph is other._graph and self._name == other._name

    def __hash__(self) -> int:
        return hash((id(self._graph), self._name))

    def __repr__(self) -> str:
        return f"<tf.Operation '{self._name}' type={self.type}>"


class Graph:
    """Nodes by name, in the order they were made.

    >>> import plimsoll.tf as tf
    >>> graph = tf.Graph()
    >>> with graph.as_default():
    ...     c = tf.constant(30.0)
    >>> c.graph is graph
    True
    """

    _is_trace = False

    def __init__(self) -> None:
        self._nodes: Dict[str, Any] = {}  # lists of an op's outputs, or Operations without any
        self._places: Dict[str, int] = {}  # of nodes, as far as they were requested
        self._taken: Dict[str, int] = {}  # names in lower case -> the number to try next
        self._scope = ""
        self._finalized = False
        self._collections: Dict[str, List[Any]] = {}
        self._waiting: List[Tuple[Any, ...]] = []  # of control_dependencies(), innermost last
        self._waits_for: Dict[str, Tuple[Any, ...]] = {}
        self._assigns: Dict[str, Any] = {}  # node that assigns -> variable
        # From the source of an update to its variable, and the assignment that it waits for, or None
        self._reads: Dict[str, Tuple[Any, Any]] = {}
        self._handles: Dict[str, Any] = {}  # node that is a variable's value -> variable
        self._effects: Dict[str, Any] = {}  # call of a Python function -> one of its outputs
        self._defaults: Dict[str, Any] = {}  # placeholder -> its value if it is not fed
        self._variable_store: Dict[str, Any] = {}
        self._variable_scope: Any = None
        self._lock = threading.RLock()
        self.seed: Optional[int] = None

    # ---- for the extension ----

    def _unique_name(self, name: str, is_op: bool = False) -> str:
        """The whole name of a new node, from its own name or its op's."""
        if is_op:
            name = _DEFAULT_NAMES.get(name) or _type_of(name)
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        if not _NAME.fullmatch(name):
            raise ValueError(f"'{name}' is not a valid node name: {_NAME_RULE}")
        return self.unique_name(name)

    def _add(self, node: Any) -> None:
        name = name_of(node)
        self._nodes.setdefault(name, []).append(node)
        if self._waiting and self._waiting[-1]:
            self._waits_for[name] = self._waiting[-1]

    def in_order(self, names: Iterable[str]) -> List[str]:
        """These nodes in the order they were made: inputs and control inputs come first."""
        with self._lock:
            for name in itertools.islice(self._nodes, len(self._places), None):
                self._places[name] = len(self._places)
        return sorted(names, key=self._places.__getitem__)

    # ---- names ----

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` in the current scope, with a number behind it if it is taken."""
        whole = self._scope + name[:-1] if name.endswith("/") else self._scope + name
        key = whole.lower()
        number = self._taken.get(key, 0)
        unique = whole
        if number:
            while unique.lower() in self._taken:
                unique = f"{whole}_{number}"
                number += 1
        if mark_as_used:
            self._taken[key] = max(number, 1)
            self._taken.setdefault(unique.lower(), 1)
        return unique

    def name_scope(self, name: Optional[str]) -> ContextManager[str]:
        return _context_in(self, lambda: _scoped(name))

    def get_name_scope(self) -> str:
        return self._scope[:-1]

    # ---- being the default ----

    def as_default(self) -> ContextManager["Graph"]:
        """Ops inside of the `with` go into this graph."""
        return _context.entered(self)

    def device(self, device_name_or_function: Any) -> ContextManager[None]:
        return device(device_name_or_function)

    def control_dependencies(self, control_inputs: Any) -> ContextManager[None]:
        return _context_in(self, lambda: control_dependencies(control_inputs))

    @property
    def building_function(self) -> bool:
        return self._is_trace

    def finalize(self) -> None:
        """From now on nothing can be added."""
        self._finalized = True

    @property
    def finalized(self) -> bool:
        return self._finalized

    def is_feedable(self, tensor: Any) -> bool:
        return True

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        return True

    @property
    def version(self) -> int:
        return len(self._nodes)

    # ---- finding nodes ----

    def get_operations(self) -> List[Operation]:
        return [self._operation(name) for name in self._nodes]

    def _operation(self, name: str) -> Operation:
        found = self._nodes[name]
        return found if isinstance(found, Operation) else Operation(self, name, found)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name. KeyError if there is none."""
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_tensor=False, allow_operation=True)

    def get_tensor_by_name(self, name: str) -> Any:
        """`name` is "op:0". KeyError if there is none, ValueError if it is not the name of a tensor."""
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_tensor=True, allow_operation=False)

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """The Tensor or Operation that an object of this graph, or a name, stands for."""
        if hasattr(obj, "_as_graph_element"):
            obj = obj._as_graph_element()
        if isinstance(obj, str):
            return self._element_named(obj, allow_tensor, allow_operation)
        if isinstance(obj, Tensor) and allow_tensor:
            if graph_of(obj) not in (None, self):
                raise ValueError(f"Tensor {obj} is not an element of this graph.")
            return obj
        if isinstance(obj, (Tensor, Operation)) and allow_operation:
            operation = operation_of(obj)
            if operation.graph is not self:
                raise ValueError(f"Operation {obj} is not an element of this graph.")
            return operation
        wanted = " or ".join(["Tensor"] * allow_tensor + ["Operation"] * allow_operation)
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {wanted}.")

    def _element_named(self, name: str, allow_tensor: bool, allow_operation: bool) -> Any:
        if ":" not in name:
            if not allow_operation:
                raise ValueError(
                    f"The name '{name}' looks like an (invalid) Operation name, not a Tensor. "
                    'Tensor names must be of the form "<op_name>:<output_index>".'
                )
            if name not in self._nodes:
                raise KeyError(
                    f"The name '{name}' refers to an Operation not in the graph."
                )
            return self._operation(name)
        op_name, _, number = name.rpartition(":")
        if not allow_tensor or not number.isdigit():
            raise ValueError(f"The name '{name}' is not a valid Operation name.")
        if op_name not in self._nodes:
            raise KeyError(
                f"The name '{name}' refers to a Tensor which does not exist. The operation, "
                f"'{op_name}', does not exist in the graph."
            )
        outputs = self._operation(op_name).outputs
        if int(number) >= len(outputs):
            raise KeyError(
                f"The name '{name}' refers to a Tensor which does not exist. The operation, "
                f"'{op_name}', exists but only has {len(outputs)} outputs."
            )
        return outputs[int(number)]

    # ---- collections ----

    def add_to_collection(self, name: str, value: Any) -> None:
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        for name in {names} if isinstance(names, str) else set(names):
            self.add_to_collection(name, value)

    def get_collection(self, name: str, scope: Optional[str] = None) -> List[Any]:
        """A copy of the values added under `name`; only items with a name that matches `scope`."""
        every = list(self._collections.get(name, ()))
        if scope is None:
            return every
        return [one for one in every if hasattr(one, "name") and re.match(scope, one.name)]

    def get_collection_ref(self, name: str) -> List[Any]:
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> List[str]:
        return [name for name, values in self._collections.items() if values]

    def clear_collection(self, name: str) -> None:
        self._collections.pop(name, None)

    def as_graph_def(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("Graph.as_graph_def(): Plimsoll has no GraphDef")


# ---- nodes and their graphs ----


name_of = vars(Tensor)["name"].__get__  # of the op that makes a node: "add", where the tensor's is "add:0"


def _tensor_name(self: Any) -> str:
    return f"{name_of(self)}:{self.item}" if self.graph is not None else name_of(self)


Tensor.name = property(_tensor_name)  # type: ignore[assignment]


def graph_of(node: Any) -> Optional[Graph]:
    return node.graph


def operation_of(element: Any) -> Operation:
    """The Operation of a node; Operations are their own."""
    if isinstance(element, Operation):
        return element
    if hasattr(element, "_as_graph_element"):
        element = element._as_graph_element()
    graph = element.graph
    if graph is None:
        raise AttributeError("Tensor.op is undefined when eager execution is enabled.")
    name = name_of(element)
    return graph._operation(name) if name in graph._nodes else Operation(graph, name, [element])


Tensor.op = property(operation_of, doc="The Operation that makes it, if it is of a graph.")


def is_tensor(x: Any) -> bool:
    """Is it a Tensor, a Variable or a SparseTensor?

    >>> import plimsoll.tf as tf
    >>> tf.is_tensor(tf.constant(1)), tf.is_tensor([1])
    (True, False)
    """
    return isinstance(x, Tensor) or hasattr(x, "__plimsoll_tensor__") or hasattr(x, "dense_shape")


def is_symbolic_tensor(tensor: Any) -> bool:
    """Has it no value until it is run?

    >>> import plimsoll.tf as tf
    >>> tf.is_symbolic_tensor(tf.constant(1))
    False
    """
    return isinstance(tensor, Tensor) and (tensor.is_symbolic or graph_of(tensor) is not None)


def executing_eagerly() -> bool:
    """Are ops made outside of any graph and traced function?

    >>> import plimsoll.tf as tf
    >>> tf.executing_eagerly()
    True
    """
    return _context.here.graph is None


# ---- the default graph ----

_default = Graph()  # for code that has not entered a graph


def get_default_graph() -> Graph:
    """The one that is entered, else the process's own."""
    return _context.here.graph if _context.here.graph is not None else _default


def reset_default_graph() -> None:
    """A new one in the place of the process's own."""
    global _default
    if _context.here.graph is not None and _context.here.graph is not _default:
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared "
            "graph, exit the nesting and create a new graph."
        )
    was_entered = _context.here.graph is _default
    _default = Graph()
    if was_entered:
        _context.set_graph(_default)


@contextmanager
def _context_in(graph: Graph, make: Any) -> Iterator[Any]:
    """A context of a graph that need not be the one that is entered."""
    with _context.entered(graph), make() as value:
        yield value


@contextmanager
def init_scope() -> Iterator[None]:
    """Out of all functions that are being traced.

    >>> import plimsoll.tf as tf
    >>> @tf.function
    ... def f():
    ...     with tf.init_scope():
    ...         return int(tf.constant(3) + 1)
    >>> int(f())
    4
    """
    graph = _context.here.graph
    while graph is not None and graph._is_trace:
        graph = graph.outer_graph
    with _context.entered(graph):
        yield


# ---- scopes ----


@contextmanager
def _scoped(name: Optional[str]) -> Iterator[str]:
    graph = _context.here.graph
    if not name:
        scope = ""
    elif name.endswith("/"):
        scope = name
    elif graph is not None:
        if not (_SCOPE if graph._scope else _NAME).fullmatch(name):
            rule = _SCOPE_RULE if graph._scope else _NAME_RULE
            raise ValueError(f"'{name}' is not a valid scope name: {rule}")
        scope = graph.unique_name(name) + "/"
    else:
        scope = _context.here.scope + name + "/"
    with _context.scoped(scope):
        yield scope


class name_scope:
    """Names of nodes made inside begin with `name/`; in a graph a name is taken once.

    >>> import plimsoll.tf as tf
    >>> with tf.name_scope("layer") as scope:
    ...     v = tf.Variable(1.0, name="w")
    >>> scope, v.name
    ('layer/', 'layer/w:0')
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        self._name = name
        self._contexts: List[Any] = []

    @property
    def name(self) -> str:
        return self._name

    def __enter__(self) -> str:
        context = _scoped(self._name)
        self._contexts.append(context)
        return context.__enter__()

    def __exit__(self, *exception: Any) -> None:
        self._contexts.pop().__exit__(*exception)


_DEVICE = re.compile(
    r"(/job:\w+)?(/replica:\d+)?(/task:\d+)?(/?(device:)?(cpu|gpu)(:(\d+|\*))?)?", re.IGNORECASE
)


def device(device_name: Any) -> ContextManager[None]:
    """Nodes made inside are computed there: "/CPU:0", "/GPU:0". None: wherever it is best.

    A device that is missing, or has no room, gives the work to the CPU, unless
    tf.config.set_soft_device_placement(False) was said.

    >>> import plimsoll.tf as tf
    >>> with tf.device("/CPU:0"):
    ...     x = tf.constant([1.0, 2.0])
    >>> float(x[1])
    2.0
    """
    if callable(device_name):
        raise NotImplementedError("tf.device() of a function: Plimsoll places by name only")
    name = getattr(device_name, "name", device_name)
    if name is None or name == "":
        return _context.placed(None)
    if not isinstance(name, str) or not _DEVICE.fullmatch(name):
        raise ValueError(f"Malformed device specification '{name}': write '/CPU:0' or '/GPU:0'")
    from plimsoll.tf._graph import devices as _devices

    return _context.placed(_devices.physical_name(name))


# ---- control dependencies ----


@contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """In a graph, nodes made inside run after `control_inputs`; None: after nothing.

    Elsewhere it says nothing: what is eager is done, and what has effects in a function is done in
    the order in which it is written.

    >>> import plimsoll.tf as tf
    >>> with tf.control_dependencies([tf.constant(1)]):
    ...     y = tf.constant(2)
    """
    graph = _context.here.graph
    if graph is None or graph._is_trace:
        if callable(control_inputs):
            control_inputs()
        yield
        return
    before = graph._waiting[-1] if graph._waiting else ()
    new = () if control_inputs is None else before + tuple_of(map(_waited_for, control_inputs))
    graph._waiting.append(new)
    try:
        yield
    finally:
        graph._waiting.pop()


def _waited_for(element: Any) -> Any:
    if hasattr(element, "_as_graph_element"):
        element = element._as_graph_element()
    if not isinstance(element, (Tensor, Operation)):
        raise TypeError(f"Control input must be Operation or Tensor, got {element!r}")
    return element


def make_operation(name: str, waits_for: Any) -> Operation:
    """An Operation without a tensor, in the graph that is entered."""
    graph = get_default_graph()
    waiting = graph._waiting[-1] if graph._waiting else ()
    operation = Operation(graph, graph._unique_name(name), (), tuple_of(waits_for) + waiting)
    graph._nodes[operation.name] = operation
    return operation


def group(*inputs: Any, name: Optional[str] = None) -> Optional[Operation]:
    """In a graph an Operation that runs all of `inputs`; elsewhere they are done already: None.

    >>> import plimsoll.tf as tf
    >>> with tf.Graph().as_default():
    ...     both = tf.group(tf.constant(1), tf.constant(2), name="both")
    >>> both.name
    'both'
    """
    from plimsoll.tf import nest

    if _context.here.graph is None or _context.here.graph._is_trace:
        return None
    elements = [_waited_for(one) for one in nest.flatten(inputs) if one is not None]
    return make_operation(name or "group_deps", elements)


def no_op(name: Optional[str] = None) -> Optional[Operation]:
    """An Operation that does nothing; eagerly, None.

    >>> import plimsoll.tf as tf
    >>> tf.no_op() is None
    True
    """
    if _context.here.graph is None or _context.here.graph._is_trace:
        return None
    return make_operation(name or "NoOp", ())


Element = Union[Any, Operation]


def get_current_name_scope() -> str:
    """The scope that names made here begin with, without its '/'.

    >>> import plimsoll.tf as tf
    >>> with tf.name_scope("a"), tf.name_scope("b"):
    ...     tf.get_current_name_scope()
    'a/b'
    """
    return _context.scope_here().rstrip("/")


def tuple(tensors: Any, control_inputs: Any = None, name: Optional[str] = None) -> List[Any]:
    """The tensors, each of which is there when all are.

    >>> import plimsoll.tf as tf
    >>> [int(x) for x in tf.tuple([tf.constant(1), tf.constant(2)])]
    [1, 2]
    """
    return [None if one is None else _core.convert(one) for one in tensors]
