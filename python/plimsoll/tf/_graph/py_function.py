# SPDX-License-Identifier: Apache-2.0
"""Python functions as ops: they run as they are and hold the interpreter's lock. tf.timestamp is one.

    >>> import plimsoll.tf as tf
    >>> def log_huber(x, m):
    ...     return x**2 if abs(float(x)) <= m else m**2 * (1 - 2 * tf.math.log(m) + tf.math.log(x**2))
    >>> float(tf.py_function(log_huber, [tf.constant(1.0), tf.constant(2.0)], tf.float32))
    1.0
"""
from __future__ import annotations

import time
from typing import Any, Callable, List, Optional, Sequence

from plimsoll import _core
from plimsoll.errors import InvalidArgumentError
from plimsoll.tf import nest
from plimsoll.tf._graph import context as _context, trace as _trace
from plimsoll.tf._graph.graph import Tensor
from plimsoll.tf._values.types import TensorSpec, float64

__all__ = ["numpy_function", "py_function", "timestamp"]


def py_function(
    func: Callable[..., Any], inp: Any, Tout: Any, name: Optional[str] = None
) -> Any:
    """`func` of eager tensors. `Tout` is the dtype (or spec) of its result, or a list of them.

    In a function that is traced, or a dataset's, it runs whenever that does; what it raises
    arrives with its own traceback.

    >>> import plimsoll.tf as tf
    >>> tf.py_function(lambda x: x + 1, [tf.constant(1)], tf.int32).numpy()
    2
    """
    return _call(func, inp, Tout, name or "EagerPyFunc", False)


def numpy_function(
    func: Optional[Callable[..., Any]] = None,
    inp: Any = None,
    Tout: Any = None,
    stateful: bool = True,
    name: Optional[str] = None,
) -> Any:
    """`func` of NumPy arrays.

    >>> import numpy as np
    >>> import plimsoll.tf as tf
    >>> tf.numpy_function(np.sinh, [tf.constant(0.0)], tf.float32).numpy()
    0.0
    """
    if func is None:
        return lambda wrapped: lambda *args: numpy_function(wrapped, args, Tout, stateful, name)
    return _call(func, inp, Tout, name or "PyFunc", True)


def _call(func: Callable[..., Any], inp: Any, Tout: Any, name: str, numpy: bool) -> Any:
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    inputs = [_core.convert(value) for value in _inputs(inp)]
    is_many = isinstance(Tout, (list, tuple))
    specs = [_spec(one) for one in (Tout if is_many else [] if Tout is None else [Tout])]
    label = getattr(func, "__name__", name)

    def call(*values: Any) -> List[Any]:
        return _checked(func(*values), specs, label, numpy)

    if _context.here.graph is None and not any(tensor.is_symbolic for tensor in inputs):
        made = call(*[tensor.numpy() for tensor in inputs] if numpy else inputs)
    else:
        outputs = [(spec.dtype, spec.shape) for spec in specs]
        made = _trace.effect(call, inputs, outputs, name, numpy)
        if not specs:
            return None if _context.trace_here() is not None else made[-1].op
        made = made[:-1]
    if not specs:
        return [] if is_many else None
    return made if is_many else made[0]


def _inputs(inp: Any) -> List[Any]:
    """A list in the list is one tensor; an object made of several tensors is that many."""
    values: List[Any] = []
    for value in inp if isinstance(inp, (list, tuple)) else [inp]:
        is_list = type(value) in (list, tuple)
        values += [value] if is_list else nest.flatten(value, expand_composites=True)
    return values


def _spec(one: Any) -> TensorSpec:
    return one if isinstance(one, TensorSpec) else TensorSpec(None, one)


def _checked(made: Any, specs: Sequence[TensorSpec], label: str, numpy: bool) -> List[Any]:
    """A function's result as tensors of the promised dtypes."""
    if not specs:
        return []
    values = _as_list(made, len(specs))
    if len(values) != len(specs):
        raise InvalidArgumentError(
            None, None, f"{label} returns {len(values)} values, but expects to see {len(specs)} values."
        )
    with _context.entered(None):
        return [
            _as_said(value, spec, f"{i}-th value returned by {label}", numpy)
            for i, (value, spec) in enumerate(zip(values, specs))
        ]


def _as_list(made: Any, n: int) -> List[Any]:
    if isinstance(made, (list, tuple)) and (n != 1 or len(made) == 1):
        return list(made)
    return [made]


def _as_said(value: Any, spec: TensorSpec, label: str, numpy: bool) -> Any:
    """Arrays of a numpy_function must have the promised dtype; those of a py_function are cast,
    where no kind of number is lost."""
    if value is None:
        raise InvalidArgumentError(None, None, f"{label} is None, but expects {spec.dtype.name}")
    if hasattr(value, "__plimsoll_tensor__"):
        value = value.__plimsoll_tensor__()
    has_dtype = isinstance(value, Tensor) or (numpy and type(value).__module__ == "numpy")
    try:
        tensor = _core.convert(value, dtype=None if has_dtype else spec.dtype)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            None, None, f"{label} does not become {spec.dtype.name}: {error}"
        ) from error
    if tensor.dtype != spec.dtype:
        raise InvalidArgumentError(
            None, None, f"{label} is {tensor.dtype.name}, but expects {spec.dtype.name}"
        )
    if not tensor.shape.is_compatible_with(spec.shape):
        raise InvalidArgumentError(
            None, None, f"{label} has shape {tensor.shape}, but expects {spec.shape}"
        )
    return tensor


def timestamp(name: Optional[str] = None) -> Any:
    """Seconds since 1970, as float64; in a traced function, of each call.

    >>> import plimsoll.tf as tf
    >>> float(tf.timestamp()) > 1e9
    True
    """
    if _context.here.graph is None:
        return _core.constant(time.time(), float64)

    def now() -> List[Any]:
        return [_core.constant(time.time(), float64)]

    return _trace.effect(now, [], [(float64, ())], name or "Timestamp")[0]
