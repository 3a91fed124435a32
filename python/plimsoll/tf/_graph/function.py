# SPDX-License-Identifier: Apache-2.0
"""tf.function: a Python function, traced once for each signature that it is called with.

    >>> import plimsoll.tf as tf
    >>> @tf.function
    ... def double(x):
    ...     print("tracing", x.dtype.name)
    ...     return x + x
    >>> int(double(tf.constant(2))), int(double(tf.constant(3)))
    tracing int32
    (4, 6)

A function that asks for a value while it is traced (`if x > 0:`) cannot be: it then runs in Python,
eagerly, each time that it is called, and a message on stderr says so once.
"""
from __future__ import annotations

import functools
import operator
import sys
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from plimsoll import _core
from plimsoll.errors import OperatorNotAllowedInGraphError
from plimsoll.tf import nest
from plimsoll.tf._graph import context as _context, trace as _trace
from plimsoll.tf._graph.graph import Tensor
from plimsoll.tf._values.types import TensorSpec

__all__ = ["function", "inside_function"]

_NOT_TRACEABLE = (OperatorNotAllowedInGraphError, NotImplementedError)


class ConcreteFunction:
    """One trace of a function: the specs of its arguments are known.

    >>> import plimsoll.tf as tf
    >>> square = tf.function(lambda x: x * x).get_concrete_function(tf.TensorSpec([], tf.float32))
    >>> float(square(tf.constant(3.0)))
    9.0
    """

    def __init__(self, name: str, signature: "_Signature", traced: Any) -> None:
        self.name = name
        self._signature = signature
        self._traced = traced
        self._core = traced.function(name)
        self._cells = [entry.cell for entry in traced.entries]
        self._written = [entry.cell for entry in traced.written]
        by_effects = [i for i, cell in enumerate(self._written) if cell is _trace.effects]
        self._effects = by_effects[0] if by_effects else None  # their places among the written cells

    @property
    def graph(self) -> Any:
        return self._traced.graph

    @property
    def inputs(self) -> List[Any]:
        return list(self._traced.inputs)

    @property
    def outputs(self) -> List[Any]:
        return list(self._traced.outputs)

    @property
    def captured_inputs(self) -> List[Any]:
        return list(self._traced.captures)

    @property
    def is_of_a_graph(self) -> bool:
        """Is it good in the function or graph around it alone?"""
        return bool(self._traced.captures) or any(one.graph is not None for one in self.variables)

    @property
    def variables(self) -> Tuple[Any, ...]:
        return tuple(cell for cell in self._cells if cell is not _trace.effects)

    @property
    def trainable_variables(self) -> Tuple[Any, ...]:
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def structured_input_signature(self) -> Tuple[Any, Any]:
        return self._signature.structure()

    @property
    def structured_outputs(self) -> Any:
        return self._traced.pack([TensorSpec.from_tensor(out) for out in self._traced.outputs])

    @property
    def output_shapes(self) -> Any:
        return self._traced.pack([out.shape for out in self._traced.outputs])

    @property
    def output_dtypes(self) -> Any:
        return self._traced.pack([out.dtype for out in self._traced.outputs])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(self._signature.tensors_of(args, kwargs))

    def _call(self, tensors: Any) -> Any:
        n = len(self._traced.outputs)
        while True:
            cells = [self._read(cell) for cell in self._cells]
            made = self._core(*tensors, *self._traced.captures, *cells)
            if _context.here.graph is not None:
                return self._traced.pack(self._in_graph(made, n, tensors))
            if not self._written:
                break
            _core.evaluate(made)
            if self._store(cells, made[n:]):
                break
        return self._traced.pack(made[:n])

    def _store(self, read: List[Any], written: List[Any]) -> bool:
        """False if another thread assigned to one of the variables meanwhile: then it is to be
        called again, as if it had been called later. A function with effects is not."""
        if self._effects is not None:
            for cell, value in zip(self._written, written):
                cell.write_outside(value)
            return True
        before = {id(cell): value for cell, value in zip(self._cells, read)}
        return _trace.swap(self._written, [before[id(cell)] for cell in self._written], written)

    def _read(self, cell: Any) -> Any:
        is_written = any(cell is one for one in self._written)
        return _trace.read_cell_to_write(cell) if is_written else _trace.read_cell(cell)

    def _in_graph(self, made: List[Any], n: int, tensors: Sequence[Any]) -> List[Any]:
        """In a graph, or a trace: the function's results, after its assignments. In a
        graph the call is one op: arguments that it makes nothing of are run as well."""
        waited = _trace.write_cells(self._written, made[n:])
        if _context.trace_here() is None:
            waited += [tensors[i] for i in self._unused if tensors[i].graph is not None]
        return _trace.behind(waited, made[:n])

    @functools.cached_property
    def _unused(self) -> List[int]:
        """The arguments that nothing depends on."""
        used = {id(node) for node in _trace.ancestors(self._core.outputs, self.graph)}
        return [i for i, node in enumerate(self.inputs) if id(node) not in used]

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.name} at {id(self):#x}>"


class _Leaf:
    """In a signature, where a tensor goes."""

    __slots__ = ("spec",)

    def __init__(self, spec: TensorSpec) -> None:
        self.spec = spec


class _Signature:
    """The signature of a call: a key, specs of its tensors, and Python values."""

    def __init__(self, of: "Function", args: Any, kwargs: Any) -> None:
        self._bind_some = of._bind_some
        self.tensors: List[Any] = []
        self._keys: List[Any] = []
        self.template = self._describe(of._bind(args, kwargs))
        self.key = tuple(self._keys)

    def _describe(self, value: Any) -> Any:
        if nest.is_nested(value):
            return self._describe_nested(value)
        if isinstance(value, TensorSpec):
            return self._add_tensor(value, value)
        tensor = _as_tensor(value)
        if tensor is not None:
            return self._add_tensor(tensor, TensorSpec(tensor.shape, tensor.dtype))
        if nest._is_composite(value):
            self._keys.append(("composite", type(value)))
            parts = [self._describe(part) for part in value._composite_parts()]
            return value._composite_like(parts)
        self._keys.append(_key_of_value(value))
        return value

    def _describe_nested(self, value: Any) -> Any:
        children = list(nest._children(value))
        keys = tuple(nest._sorted_keys(value)) if hasattr(value, "keys") else ()
        self._keys.append((type(value), len(children), keys))
        return nest._like(value, [self._describe(child) for child in children])

    def _add_tensor(self, tensor: Any, spec: TensorSpec) -> _Leaf:
        self.tensors.append(tensor)
        self._keys.append((spec.dtype._number, spec.shape._dims))
        return _Leaf(spec)

    def leaves(self) -> List[_Leaf]:
        flat = nest.flatten(self.template, expand_composites=True)
        return [leaf for leaf in flat if isinstance(leaf, _Leaf)]

    @property
    def specs(self) -> List[TensorSpec]:
        return [leaf.spec for leaf in self.leaves()]

    def fill(self, tensors: Any) -> Tuple[Any, Any]:
        """Arguments to call the function with: these where tensors go."""
        values = iter(tensors)
        flat = nest.flatten(self.template, expand_composites=True)
        leaves = [next(values) if isinstance(leaf, _Leaf) else leaf for leaf in flat]
        return nest.pack_sequence_as(self.template, leaves, expand_composites=True)

    def structure(self) -> Tuple[Any, Any]:
        return self.fill(self.specs)

    def tensors_of(self, args: Any, kwargs: Any) -> List[Any]:
        """The tensors of a call; TypeError if they do not fit."""
        wanted = self.leaves()
        every = nest.flatten(self._bind_some(args, kwargs), expand_composites=True)
        template = nest.flatten(self.template, expand_composites=True)
        if len(every) == len(wanted) < len(template):
            given = every  # Python values were bound: only the tensors are given
        elif len(every) == len(template):
            given = [one for one, leaf in zip(every, template) if isinstance(leaf, _Leaf)]
        else:
            raise TypeError(f"expected {len(wanted)} tensors, got {len(every)} arguments")
        return [_fitted(value, leaf.spec) for value, leaf in zip(given, wanted)]

    def relax(self, other: "_Signature") -> None:
        """Dimensions in which the two differ become unknown."""
        for leaf, theirs in zip(self.leaves(), other.leaves()):
            leaf.spec = leaf.spec.most_specific_compatible_type(theirs.spec)

    def is_like(self, other: "_Signature") -> bool:
        """Do they differ in dimensions alone?"""
        ranks = [leaf.spec.shape.rank for leaf in self.leaves()]
        return self._without_dims() == other._without_dims() and ranks == [
            leaf.spec.shape.rank for leaf in other.leaves()
        ]

    def _without_dims(self) -> List[Any]:
        return [
            key[0] if len(key) == 2 and isinstance(key[0], int) else key for key in self._keys
        ]

    def takes(self, other: "_Signature") -> bool:
        """Could a trace for this spec be called with the other one?"""
        return self.is_like(other) and all(
            theirs.spec.shape.is_subtype_of(leaf.spec.shape)
            for leaf, theirs in zip(self.leaves(), other.leaves())
        )


def _key_of_tensors(args: Any) -> Any:
    """The key of arguments that are all tensors: the fast path to their trace."""
    for arg in args:
        if type(arg) is not Tensor:
            return None
    return tuple([(id(arg.dtype), arg.shape._dims) for arg in args])


def _as_tensor(value: Any) -> Any:
    """Tensors, and arrays as tensors; None for a Python value, variables included."""
    if isinstance(value, Tensor):
        return value
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _core.convert(value)
    return None


def _key_of_value(value: Any) -> Any:
    if isinstance(value, (int, float, str, bytes, bool, type(None))):
        return ("value", type(value), value)
    try:
        hash(value)
    except TypeError:
        return ("object", id(value), None)
    if type(value).__eq__ is object.__eq__ or hasattr(value, "__plimsoll_tensor__"):
        return ("object", id(value), None)
    return ("value", type(value), value)


def _fitted(value: Any, spec: TensorSpec) -> Any:
    try:
        tensor = _core.convert(value, dtype=spec.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Binding inputs to tf.function failed due to `Can not cast {value!r} to {spec}`"
        ) from error
    if not tensor.shape.is_compatible_with(spec.shape):
        raise TypeError(
            "Binding inputs to tf.function failed due to `Can not cast TensorSpec("
            f"shape={tensor.shape}, dtype={tensor.dtype!r}, name=None) to {spec}`"
        )
    return tensor


class Function:
    """The result of tf.function(); see there."""

    def __init__(
        self,
        python_function: Callable[..., Any],
        input_signature: Any = None,
        reduce_retracing: bool = False,
    ) -> None:
        self._python_function = python_function
        self._input_signature = _checked_signature(input_signature)
        self._reduce_retracing = reduce_retracing
        self._concrete: Dict[Any, Any] = {}  # None: it runs in Python
        self._relaxed: List[ConcreteFunction] = []
        self._by_tensors: Dict[Any, ConcreteFunction] = {}  # of calls with tensors alone
        self._n_traces = 0
        self._lock = threading.RLock()
        self._of_instance: Dict[int, Tuple[Any, "Function"]] = {}
        self._parameters: Any = None
        functools.update_wrapper(self, python_function)

    @property
    def python_function(self) -> Callable[..., Any]:
        return self._python_function

    @property
    def input_signature(self) -> Any:
        return self._input_signature

    @property
    def name(self) -> str:
        return getattr(self._python_function, "__name__", type(self._python_function).__name__)

    def experimental_get_tracing_count(self) -> int:
        """How often it was traced."""
        return self._n_traces

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        names = [f"{self.name}{c.structured_input_signature[0]}" for c in self._every_concrete()]
        return "\n\n".join(names)

    def _every_concrete(self) -> List[ConcreteFunction]:
        return [one for one in [*self._concrete.values(), *self._relaxed] if one is not None]

    def __get__(self, instance: Any, owner: Any) -> Any:
        """As a method: each object has traces of its own."""
        if instance is None:
            return self
        key = id(instance)
        if key not in self._of_instance:
            forget = functools.partial(self._forget, key)
            try:
                of = weakref.ref(instance, forget)
            except TypeError:  # it cannot be referred to weakly: it stays
                of = functools.partial(lambda kept: kept, instance)  # type: ignore[assignment]
            self._of_instance.setdefault(key, (of, self._bound_to(of)))
        return self._of_instance[key][1]

    def _forget(self, key: int, reference: Any) -> None:
        self._of_instance.pop(key, None)

    def _bound_to(self, of: Callable[[], Any]) -> "Function":
        python_function = self._python_function

        @functools.wraps(python_function)
        def method(*args: Any, **kwargs: Any) -> Any:
            return python_function(of(), *args, **kwargs)

        method.__signature__ = _without_first(python_function)  # type: ignore[attr-defined]
        return Function(method, self._input_signature, self._reduce_retracing)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _context.functions_run_eagerly:
            return self._python_function(*args, **kwargs)
        key = None if kwargs else _key_of_tensors(args)
        concrete = self._by_tensors.get(key) if key is not None else None
        if concrete is not None:
            return concrete._call(args)
        signature = self._signature(args, kwargs)
        concrete = self._find(signature)
        if concrete is None:
            return self._run_in_python(args, kwargs)
        if key is not None and self._is_plain(concrete, signature, args):
            self._by_tensors[key] = concrete
        return concrete._call(signature.tensors)

    def _is_plain(self, concrete: ConcreteFunction, signature: _Signature, args: Any) -> bool:
        """Do the kinds of these tensors alone identify the trace?"""
        as_given = len(args) == len(signature.tensors) and all(map(operator.is_, args, signature.tensors))
        return as_given and not concrete.is_of_a_graph

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for such arguments: tensors, TensorSpecs or Python values."""
        if not args and not kwargs and self._input_signature is not None:
            args = tuple(self._input_signature)
        concrete = self._find(self._signature(args, kwargs), must_trace=True)
        assert concrete is not None
        return concrete

    # ---- arguments ----

    def _bind(self, args: Any, kwargs: Any) -> Tuple[Any, Any]:
        bound = self._described().bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _bind_some(self, args: Any, kwargs: Any) -> List[Any]:
        """In the order of the parameters; those that are missing are not there."""
        return list(self._described().bind_partial(*args, **kwargs).arguments.values())

    def _described(self) -> Any:
        if self._parameters is None:
            import inspect  # it takes longer than all of this package

            self._parameters = inspect.signature(self._python_function)
        return self._parameters

    def _signature(self, args: Any, kwargs: Any) -> _Signature:
        if self._input_signature is None:
            return _Signature(self, args, kwargs)
        return self._declared(args, kwargs)

    def _declared(self, args: Any, kwargs: Any) -> _Signature:
        """As input_signature has it; the tensors are the call's, converted."""
        bound, named = self._bind(args, kwargs)
        n = len(self._input_signature)
        if n > len(bound):
            raise TypeError(f"{self.name}: input_signature has {n} arguments, got {len(bound)}")
        declared = _Signature(self, (*self._input_signature, *bound[n:]), named)
        given = _given_for(self._input_signature, bound[:n])
        declared.tensors[: len(given)] = [
            value if isinstance(value, TensorSpec) else _fitted(value, spec)
            for spec, value in given
        ]
        return declared

    # ---- traces ----

    def _find(self, signature: _Signature, must_trace: bool = False) -> Any:
        outer = id(_context.here.graph)
        found = self._traced_before(signature, outer, must_trace)
        if found is not self:
            return found
        with self._lock:
            found = self._traced_before(signature, outer, must_trace)
            if found is not self:  # by another thread, meanwhile
                return found
            for concrete in self._relaxed:
                if concrete._signature.takes(signature):
                    return concrete
            return self._add(signature, outer, must_trace)

    def _traced_before(self, signature: _Signature, outer: int, must_trace: bool) -> Any:
        """The trace, or None where it runs in Python; itself if there is none yet."""
        for key in (signature.key, (signature.key, outer)):
            found = self._concrete.get(key, self)
            if found is None and must_trace:
                break
            if found is not self:
                return found
        return self

    def _add(self, signature: _Signature, outer: int, must_trace: bool) -> Any:
        if self._reduce_retracing:
            self._generalize(signature)
        try:
            concrete: Any = self._trace(signature)
        except _NOT_TRACEABLE as error:
            if must_trace or _context.trace_here() is not None:
                raise
            concrete = None
            self._tell(error)
        if concrete is None or not concrete.is_of_a_graph:
            self._concrete[signature.key] = concrete
        else:
            self._concrete[signature.key, outer] = concrete
        if self._reduce_retracing and concrete is not None and not concrete.is_of_a_graph:
            self._relaxed.append(concrete)
        return concrete

    def _generalize(self, signature: _Signature) -> None:
        for concrete in self._relaxed:
            if concrete._signature.is_like(signature):
                signature.relax(concrete._signature)

    def _trace(self, signature: _Signature) -> ConcreteFunction:
        traced = self._trace_once(signature)
        if traced.graph.created:
            traced = self._trace_once(signature)  # again, now that they are there
            if traced.graph.created:
                raise ValueError(
                    "tf.function only supports singleton tf.Variables created on the first call. "
                    "Make sure the tf.Variable is only created once or created outside tf.function."
                )
        return ConcreteFunction(self.name, signature, traced)

    def _trace_once(self, signature: _Signature) -> Any:
        self._n_traces += 1

        def call(*tensors: Any) -> Any:
            args, kwargs = signature.fill(tensors)
            return self._python_function(*args, **kwargs)

        return _trace.trace(call, signature.specs, self.name)

    def _run_in_python(self, args: Any, kwargs: Any) -> Any:
        bound, named = self._bind(args, kwargs)
        bound, named = nest.map_structure(_array_as_tensor, (bound, named))
        return nest.map_structure(_number_as_tensor, self._python_function(*bound, **named))

    def _tell(self, error: Exception) -> None:
        _trace.tell_once(
            self, f"tf.function '{self.name}' runs in Python at each call: it cannot be traced: {error}"
        )

    def __deepcopy__(self, memo: Any) -> "Function":
        """A function that was not traced yet: the copy of its closure is another object."""
        from copy import deepcopy

        function = deepcopy(self._python_function, memo)
        memo[id(self)] = made = Function(function, self._input_signature, self._reduce_retracing)
        return made

    def __repr__(self) -> str:
        return f"<tf.function '{self.name}'>"


def _given_for(specs: Any, values: Any) -> List[Tuple[TensorSpec, Any]]:
    """Each spec with the value in its place: a list there is one tensor."""
    if isinstance(specs, TensorSpec):
        return [(specs, values)]
    if not nest.is_nested(values) or len(specs) != len(values):
        raise TypeError(f"{values!r} does not have the structure of the input_signature {specs}")
    pairs = zip(nest._children(specs), nest._children(values))
    return [pair for spec, value in pairs for pair in _given_for(spec, value)]


def _array_as_tensor(value: Any) -> Any:
    tensor = _as_tensor(value)
    return value if tensor is None else tensor


def _number_as_tensor(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str, bytes)):
        return _core.convert(value)
    return _array_as_tensor(value)


def _without_first(python_function: Callable[..., Any]) -> Any:
    import inspect

    signature = inspect.signature(python_function)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def _checked_signature(input_signature: Any) -> Any:
    if input_signature is None:
        return None
    if not isinstance(input_signature, (list, tuple)):
        raise TypeError(
            "input_signature must be either a tuple or a list, got "
            f"{type(input_signature).__name__}"
        )
    for spec in nest.flatten(input_signature):
        if not isinstance(spec, TensorSpec):
            raise TypeError(f"input_signature must be a nest of TensorSpecs, got {spec!r}")
    return tuple(input_signature)


def function(
    func: Optional[Callable[..., Any]] = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: Optional[bool] = None,
    reduce_retracing: bool = False,
    experimental_implements: Optional[str] = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: Optional[bool] = None,
    experimental_compile: Optional[bool] = None,
    experimental_follow_type_hints: Optional[bool] = None,
) -> Any:
    """Traces `func` once per signature: dtypes and shapes of tensors, values of the rest.

    Also as a decorator, with or without arguments. Its effects in Python (prints, lists) happen
    while it is traced only; tf.print, variables and tf.py_function happen at each call.

    >>> import plimsoll.tf as tf
    >>> @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    ... def mean(x):
    ...     return tf.reduce_mean(x)
    >>> float(mean([1.0, 3.0])), float(mean([1.0, 2.0, 6.0])), mean.experimental_get_tracing_count()
    (2.0, 3.0, 1)
    """
    relaxed = bool(reduce_retracing or experimental_relax_shapes)
    if func is None:
        return lambda wrapped: Function(wrapped, input_signature, relaxed)
    if isinstance(func, Function):
        func = func.python_function
    return Function(func, input_signature, relaxed)


def inside_function() -> bool:
    """Is a function being traced?

    >>> import plimsoll.tf as tf
    >>> tf.inside_function()
    False
    """
    return _context.trace_here() is not None
