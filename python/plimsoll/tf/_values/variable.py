# SPDX-License-Identifier: Apache-2.0
"""Variables: values that are assigned to.

Outside of graphs a variable has a value, which assigning replaces; in a function that is traced it
is a cell (see _graph/trace.py), read and assigned to when the function is called; in a graph it is a
node, whose value each session has for itself.

    >>> import plimsoll.tf as tf
    >>> v = tf.Variable([1.0, 2.0])
    >>> v.assign_add([1.0, 1.0]).numpy().tolist()
    [2.0, 3.0]
"""
from __future__ import annotations

import enum
from typing import Any, Callable, List, Optional

from plimsoll import _core
from plimsoll.errors import InaccessibleTensorError
from plimsoll.tf._graph import context as _context, graph as _graph, trace as _trace
from plimsoll.tf._values import variable_slices as _variable_slices, types as _types
from plimsoll.tf._graph.graph import Tensor

__all__ = ["Variable", "VariableAggregation", "VariableSynchronization"]


class VariableSynchronization(enum.Enum):
    """Accepted where TensorFlow takes it; there is one copy of a variable.

    >>> VariableSynchronization.AUTO.name
    'AUTO'
    """

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """Accepted where TensorFlow takes it; there is one copy of a variable.

    >>> VariableAggregation.NONE.name
    'NONE'
    """

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class Variable:
    """A value that can be assigned to, of one dtype and, unless `shape` says otherwise, one shape.

    >>> import plimsoll.tf as tf
    >>> v = tf.Variable(1.0, name="v")
    >>> v
    <tf.Variable 'v:0' shape=() dtype=float32, numpy=1.0>
    >>> (v + 1).numpy()
    2.0
    """

    __array_priority__ = 100

    def __init__(
        self,
        initial_value: Any = None,
        trainable: Optional[bool] = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: Optional[str] = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Optional[str] = None,
        constraint: Optional[Callable[[Any], Any]] = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
        collections: Any = None,
        use_resource: Optional[bool] = None,
    ) -> None:
        if initial_value is None:
            raise ValueError("The `initial_value` arg to `tf.Variable` must be specified.")
        self._trainable = True if trainable is None else bool(trainable)
        self._constraint = constraint
        self._synchronization, self._aggregation = synchronization, aggregation
        self._graph: Any = None
        self._value: Any = None
        trace = _context.trace_here()
        with _graph.init_scope():
            self._graph = _context.here.graph
            if self._graph is None:
                self._init_eager(initial_value, dtype, shape, name or "Variable")
            else:
                self._init_in_graph(initial_value, dtype, shape, name, collections)
        if trace is not None:
            trace.created.append(self)

    def _init_eager(self, initial_value: Any, dtype: Any, shape: Any, name: str) -> None:
        self._name = _context.scope_here() + name
        value = _initial(initial_value, dtype)
        if value.graph is not None:
            value = _value_of_node(value)
        self._take(value, shape)
        self._value = self._computed(value)

    def _init_in_graph(
        self, initial_value: Any, dtype: Any, shape: Any, name: Optional[str], collections: Any
    ) -> None:
        graph = self._graph
        with _graph.control_dependencies(None), _graph._scoped(name or "Variable") as scope:
            self._name = scope[:-1]
            value = _initial(initial_value, dtype)
            self._take(value, shape)
        with _context.scoped(""):
            graph._taken.pop(self._name.lower(), None)  # the scope's name is the variable's
            self._handle = _core.placeholder(self._dtype, self._shape, self._name)
            self._initial_value = value
            self._initializer = self._assign_node(value, self._name + "/Assign")
        graph._handles[_graph.name_of(self._handle)] = self
        keys = [_graph.GLOBAL_VARIABLES] if collections is None else list(collections)
        if self._trainable and _graph.TRAINABLE_VARIABLES not in keys:
            keys.append(_graph.TRAINABLE_VARIABLES)
        graph.add_to_collections(keys, self)

    def _take(self, value: Any, shape: Any) -> None:
        self._dtype = value.dtype
        self._shape = value.shape if shape is None else _types.TensorShape(shape)
        if not value.shape.is_compatible_with(self._shape):
            raise ValueError(
                f"The initial value's shape ({value.shape}) is not compatible with the explicitly "
                f"supplied `shape` argument ({self._shape})."
            )

    def _computed(self, value: Any) -> Any:
        """Computed, under this name: assignments in a loop must not pile up."""
        with _context.scoped(""):
            value = _core.op("identity", [value], None, self._name)
        _core.evaluate([value])
        return value

    # ---- as a cell ----

    @property
    def cell_name(self) -> str:
        return self._name.rsplit("/", 1)[-1]

    def read_outside(self) -> Any:
        if self._graph is None:
            return self._value
        assigned = self._assigned_before()
        return self._handle if assigned is None else assigned

    def read_to_write(self) -> Any:
        """In a graph only a run tells which assignment is before this one."""
        graph = self._graph
        if graph is None:
            return self._value
        with _context.entered(graph), _context.scoped(""):
            node = _core.placeholder(self._dtype, self._shape, self._name + "/Read")
        graph._reads[_graph.name_of(node)] = self, self._assigned_before()
        return node

    def write_outside(self, node: Any) -> Any:
        if self._graph is not None:
            return self._assign_node(node, self._name + "/Assign")
        self.put(self.settled(node))
        return None

    def settled(self, node: Any) -> Any:
        """A value for it that needs nothing more."""
        if _context.here.graph is not None:
            raise NotImplementedError(
                f"variable '{self._name}' was made outside of graphs: assign to it there, or make "
                "it in the graph"
            )
        return self._computed(node)

    def put(self, value: Any) -> None:
        if _context.here.trial is not None:
            _trace.note_in_trial(self, value)
        self._value = value

    # ---- properties ----

    @property
    def name(self) -> str:
        return self._name + ":0"

    @property
    def dtype(self) -> _types.DType:
        return self._dtype

    @property
    def shape(self) -> _types.TensorShape:
        return self._shape

    def get_shape(self) -> _types.TensorShape:
        return self._shape

    @property
    def ndim(self) -> Optional[int]:
        return self._shape.rank

    @property
    def trainable(self) -> bool:
        return self._trainable

    @property
    def constraint(self) -> Any:
        return self._constraint

    @property
    def synchronization(self) -> VariableSynchronization:
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        return self._aggregation

    @property
    def device(self) -> str:
        return self.read_outside().device

    @property
    def graph(self) -> Any:
        return self._graph

    @property
    def op(self) -> Any:
        return _graph.operation_of(self._as_graph_element())

    @property
    def initializer(self) -> Any:
        """In a graph, the Operation that gives it its initial value; else None."""
        return None if self._graph is None else self._initializer.op

    @property
    def initial_value(self) -> Any:
        if self._graph is None:
            raise RuntimeError("This property is not supported when eager execution is enabled.")
        return self._initial_value

    def initialized_value(self) -> Any:
        return self.value() if self._graph is None else self._initial_value

    def is_initialized(self, name: Optional[str] = None) -> Any:
        if self._graph is None:
            return _core.constant(True)
        raise NotImplementedError("Variable.is_initialized() in a graph: ask the session")

    def _as_graph_element(self) -> Any:
        if self._graph is None:
            raise AttributeError(f"variable '{self._name}' is in no graph")
        return self._handle

    # ---- reading ----

    def __plimsoll_tensor__(self) -> Any:
        """Its value here, as a tensor."""
        return _trace.read_cell(self)

    def _assigned_before(self) -> Any:
        """The value from an assignment that control_dependencies() put before this place."""
        graph = self._graph
        waits_for = graph._waiting[-1] if graph._waiting else ()
        if not waits_for or not graph._assigns:
            return None
        return _last_assigned(graph, self, waits_for)

    def value(self) -> Any:
        """Its value now, as a tensor; assigning later does not change that."""
        return self.__plimsoll_tensor__()

    def read_value(self) -> Any:
        return _core.op("identity", [self])

    def numpy(self) -> Any:
        """Its value now, as a NumPy array."""
        if self._graph is not None or _context.here.graph is not None:
            raise NotImplementedError("numpy() is only available when eager execution is enabled.")
        return self._value.numpy()

    def eval(self, session: Any = None) -> Any:
        """Its value in a session."""
        if self._graph is None:
            return self.numpy()
        from plimsoll.tf._graph import session as _session

        return _session.session_for(self._graph, session, "evaluate tensor").run(self)

    def load(self, value: Any, session: Any = None) -> None:
        """Gives it a value in a session, without an op."""
        from plimsoll.tf._graph import session as _session

        if self._graph is None:
            self.assign(value)
            return
        _session.session_for(self._graph, session, "load").set_variable(self, value)

    # ---- assigning ----

    def assign(
        self, value: Any, use_locking: Any = False, name: Optional[str] = None, read_value: bool = True
    ) -> Any:
        """It is `value` from now on. Gives the variable; in a graph, a tensor to run."""
        tensor = self._checked(_core.convert(value, dtype=self._dtype))
        return self._store(tensor, name or "Assign")

    def assign_add(
        self, delta: Any, use_locking: Any = False, name: Optional[str] = None, read_value: bool = True
    ) -> Any:
        """`delta` is added to it."""
        return self._change("add", delta, name or "AssignAdd")

    def assign_sub(
        self, delta: Any, use_locking: Any = False, name: Optional[str] = None, read_value: bool = True
    ) -> Any:
        """`delta` is taken from it."""
        return self._change("sub", delta, name or "AssignSub")

    def _change(self, op: str, delta: Any, name: str) -> Any:
        by = _core.convert(delta, dtype=self._dtype)
        return self.update(lambda now: _core.binary(op, now, by), name)

    def update(self, change: Callable[[Any], Any], name: str) -> Any:
        """Applies `change` to its value. Assignments of other threads meanwhile are not lost."""
        if self._graph is not None or _context.here.graph is not None:
            return self._store(self._checked(change(_trace.read_cell_to_write(self))), name)
        while True:
            was = self._value
            if _trace.swap([self], [was], [self._checked(change(was))]):
                return self

    def _checked(self, value: Any) -> Any:
        if not value.shape.is_compatible_with(self._shape):
            raise ValueError(
                f"Cannot assign value to variable '{self.name}': Shape mismatch.The variable shape "
                f"{self._shape}, and the assigned value shape {value.shape} are incompatible."
            )
        return value

    def _store(self, value: Any, name: str) -> Any:
        if self._graph is None or _context.trace_here() is not None:
            _trace.write_cell(self, value)
            return self
        return self._assign_node(value, name)

    def _assign_node(self, value: Any, name: str) -> Any:
        with _context.entered(self._graph):
            node = _core.op("identity", [value], None, name)
        self._graph._assigns[_graph.name_of(node)] = self
        return node

    # ---- as a value ----

    def ref(self) -> Any:
        """A hashable reference, to use as a key in a dict."""
        return _Reference(self)

    def experimental_ref(self) -> Any:
        return self.ref()

    def set_shape(self, shape: Any) -> None:
        self._shape = self._shape.merge_with(shape)

    def __array__(self, dtype: Any = None) -> Any:
        return self.__plimsoll_tensor__().__array__(dtype)

    def __hash__(self) -> int:
        if self._graph is None and _context.eager_by_default:
            raise TypeError("Variable is unhashable. Instead, use variable.ref() as the key.")
        return id(self)

    def __eq__(self, other: Any) -> Any:
        return _core.binary("equal", self, other)

    def __ne__(self, other: Any) -> Any:
        return _core.binary("not_equal", self, other)

    def __iter__(self) -> Any:
        return iter(self.__plimsoll_tensor__())

    def __getattr__(self, name: str) -> Any:
        if name in _ABSENT:
            raise NotImplementedError(f"tf.Variable.{name}(): Plimsoll has it not")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __copy__(self) -> "Variable":
        raise NotImplementedError("a variable is not copied: make another of its value")

    def __deepcopy__(self, memo: Any) -> "Variable":
        if self._graph is not None:
            raise NotImplementedError("__deepcopy__() is only available when eager.")
        copy = Variable(self._value, self._trainable, name=self.cell_name, shape=self._shape)
        memo[id(self)] = copy
        return copy

    def __repr__(self) -> str:
        start = f"<tf.Variable '{self.name}' shape={self._shape} dtype={self._dtype.name}"
        if self._graph is not None or _context.here.graph is not None:
            return start + ">"
        return f"{start}, numpy={_types.value_repr(self._value.numpy())}>"


_ABSENT = frozenset("count_up_to from_proto to_proto".split())

_variable_slices.attach(Variable)


_FORWARDED = (
    "abs add and bool float floordiv format ge gt index int invert le len lshift lt matmul "
    "mod mul neg or pos pow radd rand rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rshift "
    "rsub rtruediv rxor sub truediv xor dlpack dlpack_device"
)


def _forward(name: str) -> None:
    """An operator of tensors, on the variable's value; found when it is used, for some are hung on
    tensors later than this is imported."""

    def method(self: Variable, *args: Any) -> Any:
        return getattr(self.__plimsoll_tensor__(), name)(*args)

    method.__name__ = name
    setattr(Variable, name, method)


for _name in _FORWARDED.split():
    _forward(f"__{_name}__")
del _name


class _Reference:
    """A variable as a key: the same variable is the same key."""

    __slots__ = ("_of",)

    def __init__(self, of: Any) -> None:
        self._of = of

    def deref(self) -> Any:
        return self._of

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Reference) and other._of is self._of

    def __hash__(self) -> int:
        return id(self._of)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._of!r}>"


def _initial(initial_value: Any, dtype: Any) -> Any:
    value = initial_value() if callable(initial_value) else initial_value
    dtype = None if dtype is None else _types.as_dtype(dtype)
    if isinstance(value, Tensor) and dtype is not None and value.dtype != dtype:
        return _core.op("cast", [value], {"dtype": dtype})
    return _core.convert(value, dtype=dtype)


def _value_of_node(node: Any) -> Any:
    """The error for a node that was made while a function was traced."""
    if node.is_symbolic:
        raise InaccessibleTensorError(
            "the initial value of a tf.Variable hangs on an argument of the tf.function that makes "
            "it: give a value, or a function that makes one"
        )
    return _core.run([node])[0] if node.is_pending else _core.convert(node)


def _last_assigned(graph: Any, variable: Variable, elements: Any) -> Any:
    """The node that assigns to the variable and was made last, of all that these wait for."""
    last, seen, stack = None, set(), list(elements)
    order = {name: number for number, name in enumerate(graph._assigns)}
    while stack:
        element = stack.pop()
        name = element.name if isinstance(element, _graph.Operation) else _graph.name_of(element)
        if name in seen or element.graph is not graph:  # eager: a constant
            continue
        seen.add(name)
        operation = graph._operation(name)
        stack.extend(operation.inputs)
        stack.extend(operation._waits_for_all())
        stack.extend([graph._defaults[name]] if name in graph._defaults else [])
        if graph._assigns.get(name) is variable and (last is None or order[name] > order[last]):
            last = name
    return None if last is None else graph._nodes[last][0]


def variables_in(collection: str, scope: Optional[str] = None) -> List[Any]:
    return _graph.get_default_graph().get_collection(collection, scope)
