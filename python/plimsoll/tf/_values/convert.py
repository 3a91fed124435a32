# SPDX-License-Identifier: Apache-2.0
"""Converts users' values for the extension: dtypes, axes, shapes, and values that are
known before anything runs.

A value is *static* if it is known now: a Python number, an eager tensor (which is computed for
it), a constant of a graph, or small arithmetic on those. A dimension that only a run tells is a
`Dim`: this axis of that tensor. Vectors of both are remembered for tensors that shape() and slices
of it give, so that reshape(x, [shape(x)[0], -1]) is one op of the library.

Without an op of the library, a function of NumPy runs: see numpy_call().
"""
from __future__ import annotations

from builtins import range as span
from typing import Any, Callable, NamedTuple, NoReturn, Sequence

from plimsoll import _core, errors
from plimsoll.tf._values import types as _types

__all__: list[str] = []

Tensor = _core.Tensor

# As operand of an op: more elements are not worth a run while a function is traced.
FOLDED_ELEMENTS = 1024
# Ops whose value is another one in the next run, or comes from outside.
_IMPURE = ("random_", "variable", "placeholder", "assign", "read_file", "file", "python", "py_",
           "cond", "while", "parse", "call", "numpy", "item")


class Dim(NamedTuple):
    """A dimension that only a run tells."""

    tensor: Any
    axis: int


# ---- errors ----


def invalid(message: str) -> NoReturn:
    """Raises InvalidArgumentError."""
    raise errors.InvalidArgumentError(None, None, message)


# ---- tensors ----


def tensor(value: Any, dtype: Any = None) -> Tensor:
    """`value` as a tensor; a tensor stays unchanged."""
    if type(value) is Tensor and dtype is None:
        return value
    return _core.convert(value, dtype)


def pair(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Two operands: an operand that is not a tensor yet takes the dtype of the other one."""
    if not isinstance(x, Tensor):
        if not isinstance(y, Tensor) and hasattr(y, "__plimsoll_tensor__"):
            y = _core.convert(y)
        x = _core.convert(x, None, y.dtype if isinstance(y, Tensor) else None)
    return x, y if isinstance(y, Tensor) else _core.convert(y, None, x.dtype)


def floats(value: Any) -> Tensor:
    """`value` as a tensor; whole Python numbers become float32, arrays keep their dtype."""
    if isinstance(value, Tensor):
        return value
    x = tensor(value)
    if x.dtype.is_integer and not hasattr(value, "dtype"):
        return _core.convert(value, None, _types.float32)
    return x


def booleans(value: Any, op: str) -> Tensor:
    """`value` as a tensor of bool; InvalidArgumentError for one of another dtype."""
    x = tensor(value)
    if x.dtype != _types.bool:
        invalid(f"{op}: bool is needed, and {x.dtype.name} was given")
    return x


def tensors(values: Any) -> list[Tensor]:
    """A list of tensors of one dtype: that of the first tensor among them."""
    if isinstance(values, Tensor):
        return [values]
    values = list(values)
    for value in values:
        if isinstance(value, Tensor):
            return [v if isinstance(v, Tensor) else _core.convert(v, None, value.dtype)
                    for v in values]
    if not values:
        return []
    first = _core.convert(values[0])
    return [first] + [_core.convert(v, None, first.dtype) for v in values[1:]]


def is_eager(x: Tensor) -> bool:
    """Has it a value, or can have one now?"""
    return x.graph is None and not x.is_symbolic


def dims(x: Tensor) -> tuple[int | None, ...] | None:
    """Its dimensions, None for one that only a run tells; None if not even the rank is known. An
    eager tensor is computed if it has to be."""
    known = x.shape._dims
    if (known is None or None in known) and is_eager(x):
        _core.evaluate([x])
        known = x.shape._dims
    return known


def rank_of(x: Tensor, op: str) -> int:
    """Its rank; an op that has to know it says so."""
    known = dims(x)
    if known is None:
        raise NotImplementedError(
            f"tf.{op} of a tensor whose rank is not known while a function is traced: say its shape"
            " with set_shape() or tf.ensure_shape()"
        )
    return len(known)


def axis_in(axis: Any, rank: int, op: str) -> int:
    """`axis` counted from the front; InvalidArgumentError if there is no such axis."""
    number = one_int(axis, f"{op}: axis")
    if rank == 0:
        invalid(f"{op}: axis {number} of a scalar, which has none")
    if not -rank <= number < rank:
        invalid(f"{op}: axis {number} of a tensor of rank {rank}: it is in [{-rank}, {rank})")
    return number % rank


def axes_of(axis: Any, op: str) -> list[int] | None:
    """The axes of a reduction; None: all."""
    if axis is None or isinstance(axis, int):
        return None if axis is None else [axis]
    known = static(axis)
    if known is None:
        raise NotImplementedError(f"{op}: 'axis' is only known when it is run")
    return [int(n) for n in known] if isinstance(known, (list, tuple)) else [int(known)]


# ---- values that are known now ----


def static(value: Any) -> Any:
    """Numbers, or nested lists of them, that `value` is; None if only a run tells."""
    if isinstance(value, (int, float, bool, str, bytes)):
        return value
    if isinstance(value, _types.TensorShape):
        return value.as_list()
    if isinstance(value, (list, tuple)):
        items = [static(item) for item in value]
        return None if any(item is None for item in items) else items
    if hasattr(value, "__plimsoll_tensor__"):
        value = _core.convert(value)
    if isinstance(value, Tensor):
        array = constant_array(value)
        return None if array is None else array.tolist()
    if hasattr(value, "tolist"):
        return value.tolist()
    return int(value) if hasattr(value, "__index__") else None


def one_int(value: Any, what: str) -> int:
    """A whole number that has to be known now."""
    if type(value) is int:
        return value
    known = static(value)
    if known is None:
        raise NotImplementedError(f"tf.{what} is only known when it is run: it has to be before")
    return int(known[0] if isinstance(known, list) and len(known) == 1 else known)


def constant_array(x: Tensor) -> Any:
    """The value of a tensor as a NumPy array; None if only a run tells."""
    if is_eager(x) or (not x.is_symbolic and not x.is_pending):
        return x.__array__()
    if x.is_symbolic or not _is_folded(x, 0):
        return None
    return _core.run([x])[0].__array__()


def _is_folded(x: Tensor, depth: int) -> bool:
    """Is it small arithmetic on constants?"""
    if is_eager(x) or (not x.is_symbolic and not x.is_pending):
        return True
    shape = x.shape
    if depth > 16 or x.is_symbolic or not shape.is_fully_defined():
        return False
    if shape.num_elements() > FOLDED_ELEMENTS or str(x.op_name).startswith(_IMPURE):
        return False
    inputs = x.inputs
    return bool(inputs) and all(_is_folded(item, depth + 1) for item in inputs)


# ---- shapes, and facts about them ----


def remember(x: Tensor, known: Any) -> Tensor:
    """Notes that x is this number or Dim, or a vector of them."""
    x._known = known
    return x


def partial(x: Any) -> Any:
    """The value that remember() kept for this tensor, or None."""
    return getattr(x, "_known", None)


def shape_of(value: Any) -> list[int | Dim] | None:
    """A shape that a user gives, -1 and Dims in it; None if not even its length is known."""
    if isinstance(value, (list, tuple)):
        if all(type(item) is int for item in value):
            return list(value)
        items = [_dimension(item) for item in value]
        return None if any(item is None for item in items) else items
    if isinstance(value, Tensor):
        known = partial(value)
        if known is None:
            known = static(value)
        if isinstance(known, (int, Dim)):
            return [known]
        return None if known is None else list(known)
    known = static(value)
    if known is None:
        return None
    return [int(n) for n in known] if isinstance(known, list) else [int(known)]


def _dimension(item: Any) -> int | Dim | None:
    if type(item) is int:
        return item
    if item is None:
        return -1
    known = partial(item)
    if known is None:
        known = static(item)
    if isinstance(known, (list, tuple)) and not isinstance(known, Dim) and len(known) == 1:
        known = known[0]
    if isinstance(known, float):
        raise TypeError(f"a dimension is a whole number, and {known} is not")
    return known if known is None or isinstance(known, Dim) else int(known)


def with_the_rest(value: Any) -> list[int | Dim] | None:
    """A shape to reshape to, with one dimension that only the run knows: the rest."""
    if not isinstance(value, (list, tuple)):
        return None
    items = [_dimension(item) for item in value]
    if items.count(None) != 1 or -1 in [item for item in items if type(item) is int]:
        return None
    return [-1 if item is None else item for item in items]


def known_shape(value: Any) -> list[int] | None:
    """A shape all of whose dimensions are known now; else None."""
    shape = shape_of(value)
    if shape is None or any(isinstance(dim, Dim) for dim in shape):
        return None
    if any(dim < 0 for dim in shape):
        invalid(f"shape {shape}: a dimension is not negative")
    return shape


def shape_tensor(value: Any) -> Tensor:
    """A shape with tensors in it, as one vector of int64, for a run."""
    if isinstance(value, Tensor):
        return value
    parts = [tensor(item) for item in value]
    parts = [_core.op("cast", [p], {"dtype": _types.int64}) for p in parts]
    parts = [_core.op("reshape", [p], {"shape": [1]}) for p in parts]
    return _core.op("concat", parts, {"axis": 0})


def lender(shape: Any) -> Tensor:
    """A tensor that has the shape, where dimensions are known only when it is run: what fill and
    random ops take theirs from."""
    dimensions = shape_of(shape)
    if dimensions is not None:
        lent = _lent(dimensions)
        if lent is not None:
            return lent

    def make(wanted: Any) -> Any:
        import numpy as np

        return np.broadcast_to(np.zeros((), bool), tuple(wanted))

    wanted = shape_tensor(shape)
    known = None
    if dimensions is not None:
        known = [None if isinstance(dim, Dim) else dim for dim in dimensions]
    elif wanted.shape.rank == 1 and wanted.shape[0] is not None:
        known = [None] * wanted.shape[0]  # as many as there are numbers
    return numpy_call(make, [wanted], _types.bool, known)


def _lent(dimensions: list[int | Dim]) -> Tensor | None:
    """A tensor that lends its shape: that whose axes these are, in order, with new ones between."""
    said = [dim for dim in dimensions if isinstance(dim, Dim)]
    axes = [dim.axis for dim in said]
    if not said or any(dim.tensor is not said[0].tensor for dim in said):
        return None
    if axes != sorted(set(axes)):
        return None
    x = said[0].tensor
    n_axes = len(dims(x) or ())
    if axes == list(span(n_axes)) and len(said) == len(dimensions):
        return x
    part = only_axes(x, axes)
    places = iter(span(len(axes)))
    keep = [next(places) if isinstance(dim, Dim) else -1 for dim in dimensions]
    part = _core.op("reshape", [part],
                    {"shape": [-1 if k >= 0 else 1 for k in keep], "keep": keep})
    wanted = [-1 if isinstance(dim, Dim) else dim for dim in dimensions]
    return _core.op("broadcast_to", [part], {"shape": wanted})


def only_axes(x: Tensor, axes: Sequence[int]) -> Tensor:
    """Zeros along these axes of x. The others are cut to at most one element and folded: a reshape
    would not do, for they may have none."""
    n_axes = len(x.shape)
    others = [i for i in span(n_axes) if i not in axes]
    if not others:
        return x
    ends = [1 if i in others else (1 << 63) - 1 for i in span(n_axes)]
    part = _core.op("slice", [x], {"start": [0] * n_axes, "stop": ends})
    zeros = _core.op("fill", [part], {"dtype": _types.int64, "value": 0})
    return _core.op("sum", [zeros], {"axes": others})


# ---- calls of NumPy ----


def numpy_call(fn: Callable[..., Any], inputs: Sequence[Any], dtype: Any,
               shape: Sequence[int | None] | None, name: str | None = None) -> Tensor:
    """`fn` of the inputs as arrays: at once if they are eager, else in the run. `shape`
    is what is known of the result's."""
    return numpy_calls(lambda *arrays: (fn(*arrays),), inputs, [(dtype, shape)], name)[0]


def numpy_calls(fn: Callable[..., Sequence[Any]], inputs: Sequence[Any],
                outputs: Sequence[tuple[Any, Any]], name: str | None = None) -> list[Tensor]:
    """The same for functions of several results."""
    inputs = [tensor(value) for value in inputs]
    fn = _refusing(fn, name)
    if all(is_eager(x) for x in inputs):
        _core.evaluate(inputs)
        results = fn(*[x.__array__() for x in inputs])
        return [_core.constant(value, dtype) for value, (dtype, _) in zip(results, outputs)]
    typed = _typed(fn, [dtype for dtype, _ in outputs])
    return _core.python_call(typed, inputs, list(outputs), name, True)


def _refusing(fn: Callable[..., Any], name: str | None) -> Callable[..., Any]:
    """`fn`, whose refusals are InvalidArgumentErrors in every style, as TensorFlow's kernels'."""

    def run(*arrays: Any) -> Any:
        try:
            return fn(*arrays)
        except errors.OpError:
            raise
        except Exception as error:
            kinds = (ValueError, IndexError, TypeError, ArithmeticError)
            if not isinstance(error, kinds) and type(error).__name__ != "LinAlgError":
                raise
            invalid(f"{name}: {error}" if name else str(error))

    return run


def _typed(fn: Callable[..., Sequence[Any]], dtypes: Sequence[Any]) -> Callable[..., Sequence[Any]]:
    """`fn` as a run calls it: a text comes as an array too, and results have their dtypes."""

    from plimsoll.tf._graph import context as _context

    def run(*given: Any) -> list[Any]:
        import numpy as np

        arrays = [np.array(v, object) if isinstance(v, bytes) else v for v in given]
        results = []
        for value, dtype in zip(fn(*arrays), dtypes):
            if dtype != _types.string:
                value = np.asarray(value, dtype.as_numpy_dtype)
            elif np.size(value) == 0:  # an empty object array would not be recognized as strings
                with _context.entered(None):
                    value = _core.constant([], dtype, np.shape(value))
            results.append(value)
        return results

    return run


def eager_call(fn: Callable[..., Tensor], inputs: Sequence[Any], dtype: Any,
               shape: Sequence[int | None] | None, name: str | None = None) -> Tensor:
    """`fn` of tensors whose values it can read: at once if they are eager, else in the run,
    where it is called with those that are there then."""
    from plimsoll.tf._graph import context as _context

    inputs = [tensor(value) for value in inputs]
    if all(is_eager(x) for x in inputs):
        return fn(*inputs)

    def run(*given: Tensor) -> list[Tensor]:
        with _context.entered(None):
            value = fn(*given)
            _core.evaluate([value])
        return [value]

    return _core.python_call(run, inputs, [(dtype, shape)], name)[0]


def now(x: Tensor) -> Tensor:
    """Computed at once if it is eager: ops that read or decode fail where they are called."""
    if is_eager(x):
        _core.evaluate([x])
    return x
