# SPDX-License-Identifier: Apache-2.0
"""tf.debugging: assertions. Eagerly they raise InvalidArgumentError at once; in a function that is
traced, and in a graph, when it is run. Shapes and dtypes are checked at once.

    >>> import plimsoll.tf as tf
    >>> tf.debugging.assert_equal(tf.constant([1, 2]), [1, 2])
    >>> tf.debugging.assert_positive(tf.constant([1, -2]))
    Traceback (most recent call last):
        ...
    plimsoll.errors.InvalidArgumentError: Condition x > 0 did not hold element-wise: x = [1, -2]
"""
from __future__ import annotations

import types
from typing import Any, Callable, List, Optional, Sequence

from .. import _core
from ..errors import InvalidArgumentError
from . import _not_implemented
from ._graph import context as _context, trace as _trace
from ._values import types as _types
from ._graph.graph import Tensor

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "check_numerics",
    "get_log_device_placement",
    "is_numeric_tensor",
    "set_log_device_placement",
]

_N_SHOWN = 20  # elements of a tensor in a message


def _is_eager(tensors: Sequence[Any]) -> bool:
    return _context.here.graph is None and not any(tensor.is_symbolic for tensor in tensors)


def _shown(tensor: Any, n_most: Optional[int]) -> str:
    n_most = _N_SHOWN if n_most is None else n_most
    values = tensor.numpy()
    if tensor.shape.rank == 0:
        return str(values)
    flat = values.reshape(-1)
    text = ", ".join(str(value) for value in flat[:n_most])
    return f"[{text}{', ...' if len(flat) > n_most else ''}]"


def _check(
    check: Callable[..., Optional[str]], tensors: List[Any], name: Optional[str]
) -> Any:
    """`check` of eager tensors returns the failure, or None. Runs now, or in each run."""

    def call(*values: Any) -> List[Any]:
        wrong = check(*values)
        if wrong is not None:
            raise InvalidArgumentError(None, None, wrong)
        return []

    if _is_eager(tensors):
        call(*tensors)
        return None
    made = _trace.effect(call, tensors, [], name or "Assert")
    return None if _context.trace_here() is not None else made[-1].op


def Assert(
    condition: Any, data: Any, summarize: Optional[int] = None, name: Optional[str] = None
) -> Any:
    """InvalidArgumentError with `data` in it unless `condition` is true.

    >>> import plimsoll.tf as tf
    >>> tf.debugging.Assert(tf.constant(True), ["never printed"])
    """
    condition = _core.convert(condition)
    tensors = [_core.convert(one) for one in data]
    what = condition.name

    def check(*values: Any) -> Optional[str]:
        if bool(values[0]):
            return None
        shown = "\n".join(_shown(value, summarize) for value in values[1:])
        return f"Expected '{what}' to be true. Summarized data: {shown}"

    return _check(check, [condition, *tensors], name)


def _compared(name: str, op: str, sign: str, example: str) -> Any:
    def compare(
        x: Any,
        y: Any,
        message: Optional[str] = None,
        summarize: Optional[int] = None,
        name: Optional[str] = None,
    ) -> Any:
        return _compare(op, sign, x, y, message, summarize, name)

    return _documented(compare, name, f"x {sign} y", example)


def _documented(compare: Any, name: str, condition: str, example: str) -> Any:
    compare.__name__ = compare.__qualname__ = name
    compare.__doc__ = f"""InvalidArgumentError unless {condition} for every element.

    >>> {name}({example})
    """
    return compare


def _compare(
    op: str, sign: str, x: Any, y: Any, message: Any, summarize: Any, name: Any
) -> Any:
    x = _core.convert(x)
    y = _core.convert(y, like=x.dtype)
    held = _all(_core.binary(op, x, y))

    def check(holds: Any, a: Any, b: Any) -> Optional[str]:
        if bool(holds):
            return None
        before = f"{message}\n" if message else ""
        return (
            f"{before}Condition x {sign} y did not hold.\n"
            f"x (shape={a.shape} dtype={a.dtype.name}) = {_shown(a, summarize)}\n"
            f"y (shape={b.shape} dtype={b.dtype.name}) = {_shown(b, summarize)}"
        )

    return _check(check, [held, x, y], name)


def _all(condition: Any) -> Any:
    return _core.op("all", [condition])


assert_equal = _compared("assert_equal", "equal", "==", "[1, 2], [1, 2]")


def assert_none_equal(
    x: Any,
    y: Any,
    summarize: Optional[int] = None,
    message: Optional[str] = None,
    name: Optional[str] = None,
) -> Any:
    """InvalidArgumentError unless x != y for every element.

    >>> assert_none_equal([1, 2], [2, 1])
    """
    return _compare("not_equal", "!=", x, y, message, summarize, name)


assert_less = _compared("assert_less", "less", "<", "[1, 2], 3")
assert_less_equal = _compared("assert_less_equal", "less_equal", "<=", "[1, 3], 3")
assert_greater = _compared("assert_greater", "greater", ">", "[4, 5], 3")
assert_greater_equal = _compared("assert_greater_equal", "greater_equal", ">=", "[3, 5], 3")


def _against_zero(name: str, op: str, sign: str, example: str) -> Any:
    def compare(
        x: Any,
        message: Optional[str] = None,
        summarize: Optional[int] = None,
        name: Optional[str] = None,
    ) -> Any:
        x = _core.convert(x)
        held = _all(_core.binary(op, x, 0))

        def check(holds: Any, value: Any) -> Optional[str]:
            if bool(holds):
                return None
            before = f"{message}\n" if message else ""
            shown = _shown(value, summarize)
            return f"{before}Condition x {sign} 0 did not hold element-wise: x = {shown}"

        return _check(check, [held, x], name)

    return _documented(compare, name, f"x {sign} 0", example)


assert_positive = _against_zero("assert_positive", "greater", ">", "[1, 2]")
assert_negative = _against_zero("assert_negative", "less", "<", "[-1, -2]")
assert_non_negative = _against_zero("assert_non_negative", "greater_equal", ">=", "[0, 2]")
assert_non_positive = _against_zero("assert_non_positive", "less_equal", "<=", "[0, -2]")


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: Optional[str] = None,
    summarize: Optional[int] = None,
    name: Optional[str] = None,
) -> Any:
    """InvalidArgumentError unless |x - y| <= atol + rtol * |y|; both are ten times the dtype's
    smallest difference from 1 unless they are said.

    >>> import plimsoll.tf as tf
    >>> tf.debugging.assert_near(tf.constant(1.0), 1.0000001)
    """
    x = _core.convert(x)
    y = _core.convert(y, like=x.dtype)
    # numpy.finfo(dtype).eps, which NumPy need not be imported for.
    smallest = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}
    eps = 10 * smallest.get(x.dtype.name, 2.0**-52)
    rtol, atol = (eps if rtol is None else rtol), (eps if atol is None else atol)
    bound = _core.binary("add", _core.binary("mul", _core.unary("abs", y), rtol), atol)
    apart = _core.unary("abs", _core.binary("sub", x, y))
    held = _all(_core.binary("less_equal", apart, bound))

    def check(holds: Any, a: Any, b: Any) -> Optional[str]:
        if bool(holds):
            return None
        return (
            f"{message or ''}\nx and y not equal to tolerance rtol = {rtol}, atol = {atol}\n"
            f"x = {_shown(a, summarize)}\ny = {_shown(b, summarize)}"
        ).lstrip("\n")

    return _check(check, [held, x, y], name)


# ---- checks of dtypes and shapes ----


def assert_integer(x: Any, message: Optional[str] = None, name: Optional[str] = None) -> None:
    """TypeError unless it is of integers.

    >>> import plimsoll.tf as tf
    >>> tf.debugging.assert_integer(tf.constant([1]))
    """
    x = _core.convert(x)
    if not x.dtype.is_integer:
        raise TypeError(f"{message or ''}  Expected 'x' to be integer type. Found: {x.dtype}")


def assert_type(
    tensor: Any, tf_type: Any, message: Optional[str] = None, name: Optional[str] = None
) -> None:
    """TypeError unless it is of that dtype.

    >>> import plimsoll.tf as tf
    >>> tf.debugging.assert_type(tf.constant([1]), tf.int32)
    """
    found = _core.convert(tensor).dtype
    if found != _types.as_dtype(tf_type):
        raise TypeError(f"{message or ''}  tensor must be of type {tf_type!r}; got {found!r}")


def assert_scalar(tensor: Any, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """ValueError unless it is of no axes; gives the tensor.

    >>> import plimsoll.tf as tf
    >>> int(tf.debugging.assert_scalar(tf.constant(3)))
    3
    """
    tensor = _core.convert(tensor)
    if tensor.shape.rank not in (None, 0):
        raise ValueError(
            f"{message or ''}Expected scalar shape for {tensor.name}, saw shape: {tensor.shape}."
        )
    return tensor


def _rank_check(fits: Callable[[int], bool], wanted: str, x: Any, message: Any, name: Any) -> Any:
    x = _core.convert(x)
    before = f"{message}. " if message else ""
    if x.shape.rank is None:

        def check(value: Any) -> Optional[str]:
            rank = value.shape.rank
            return None if fits(rank) else f"{before}Tensor must have rank {wanted}. Received {rank}"

        return _check(check, [x], name)
    if not fits(x.shape.rank):
        raise ValueError(
            f"{before}Tensor {x.name} must have rank {wanted}.  Received rank {x.shape.rank}, "
            f"shape {x.shape}"
        )
    return None


def assert_rank(
    x: Any, rank: Any, message: Optional[str] = None, name: Optional[str] = None
) -> Any:
    """ValueError unless it has that many axes.

    >>> import plimsoll.tf as tf
    >>> tf.debugging.assert_rank(tf.constant([1]), 1)
    """
    rank = int(rank)
    return _rank_check(lambda found: found == rank, str(rank), x, message, name)


def assert_rank_at_least(
    x: Any, rank: Any, message: Optional[str] = None, name: Optional[str] = None
) -> Any:
    """ValueError if it has fewer axes.

    >>> import plimsoll.tf as tf
    >>> tf.debugging.assert_rank_at_least(tf.constant([1]), 0)
    """
    rank = int(rank)
    return _rank_check(lambda found: found >= rank, f"at least {rank}", x, message, name)


def assert_rank_in(
    x: Any, ranks: Any, message: Optional[str] = None, name: Optional[str] = None
) -> Any:
    """ValueError unless the number of its axes is one of these.

    >>> import plimsoll.tf as tf
    >>> tf.debugging.assert_rank_in(tf.constant([1]), (1, 2))
    """
    allowed = [int(rank) for rank in ranks]
    return _rank_check(lambda found: found in allowed, f"in {tuple(allowed)}", x, message, name)


def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> Any:
    """ValueError unless all are of one floating-point dtype, which is given back.

    >>> import plimsoll.tf as tf
    >>> tf.debugging.assert_same_float_dtype([tf.constant(1.0)])
    tf.float32
    """
    found = None if dtype is None else _types.as_dtype(dtype)
    for tensor in tensors or ():
        tensor = _core.convert(tensor)
        if found is not None and tensor.dtype != found:
            raise ValueError(f"Expected {found!r}, got {tensor.dtype!r} of '{tensor.name}'.")
        found = tensor.dtype
    found = found or _types.float32
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found!r}.")
    return found


def assert_proper_iterable(values: Any) -> None:
    """TypeError for a tensor, an array or a text, which are iterable but not meant to be.

    >>> assert_proper_iterable([1, 2])
    """
    if isinstance(values, (Tensor, str, bytes)) or hasattr(values, "__array__"):
        raise TypeError(
            "Expected argument \"values\" to be a \"proper\" iterable.  Found: "
            f"{type(values).__name__}"
        )
    if not hasattr(values, "__iter__"):
        raise TypeError(f"Expected argument \"values\" to be iterable.  Found: {type(values)}")


def assert_shapes(
    shapes: Any,
    data: Any = None,
    summarize: Optional[int] = None,
    message: Optional[str] = None,
    name: Optional[str] = None,
) -> None:
    """ValueError unless each tensor has its shape; the same letter is the same dimension.

    >>> import plimsoll.tf as tf
    >>> x, y = tf.zeros([2, 3]), tf.zeros([3])
    >>> tf.debugging.assert_shapes([(x, ("N", "Q")), (y, ("Q",))])
    """
    sizes: Any = {}
    for tensor, wanted in shapes.items() if isinstance(shapes, dict) else shapes:
        tensor = _core.convert(tensor)
        _assert_shape(tensor, wanted, sizes, f"{message}. " if message else "")


def _assert_shape(tensor: Any, wanted: Any, sizes: Any, before: str) -> None:
    symbols = list(wanted) if isinstance(wanted, (list, tuple, str)) else [wanted]
    if isinstance(wanted, _types.TensorShape):
        symbols = wanted.as_list()
    dims = tensor.shape.as_list() if tensor.shape.rank is not None else None
    if dims is None:
        return
    if symbols and symbols[0] in (Ellipsis, "..."):
        symbols = symbols[1:]
        dims = dims[len(dims) - len(symbols) :] if len(dims) >= len(symbols) else dims
    if len(dims) != len(symbols):
        raise ValueError(
            f"{before}Tensor {tensor.name} must have rank {len(symbols)}. Received rank "
            f"{len(dims)}, shape {tensor.shape}"
        )
    for axis, (dim, symbol) in enumerate(zip(dims, symbols)):
        if symbol is None or symbol in (".", "*") or dim is None:
            continue
        is_number = isinstance(symbol, int) or str(symbol).isdigit()
        size = int(symbol) if is_number else sizes.setdefault(symbol, dim)
        if size != dim:
            raise ValueError(
                f"{before}Tensor {tensor.name} dimension {axis} must have size {size}. Received "
                f"size {dim}, shape {tensor.shape}"
            )


def is_numeric_tensor(tensor: Any) -> bool:
    """Is it a tensor of numbers?

    >>> import plimsoll.tf as tf
    >>> is_numeric_tensor(tf.constant(1)), is_numeric_tensor(tf.constant("a")), is_numeric_tensor(1)
    (True, False, False)
    """
    return isinstance(tensor, Tensor) and tensor.dtype.is_numeric


# ---- numbers that are not finite ----


def check_numerics(tensor: Any, message: str, name: Optional[str] = None) -> Any:
    """The tensor; InvalidArgumentError with `message` if there is a NaN or an infinity in it.

    >>> import plimsoll.tf as tf
    >>> tf.debugging.check_numerics(tf.constant([1.0, float("nan")]), "bad")
    Traceback (most recent call last):
        ...
    plimsoll.errors.InvalidArgumentError: bad : Tensor had NaN values
    """
    tensor = _core.convert(tensor)
    if not tensor.dtype.is_floating:
        raise TypeError(f"check_numerics: '{tensor.name}' is {tensor.dtype.name}, not floating-point")
    nans = _core.op("any", [_core.unary("is_nan", tensor)])
    infs = _core.op("any", [_core.unary("is_inf", tensor)])

    def wrong(has_nan: Any, has_inf: Any) -> Optional[str]:
        found = ["NaN"] * bool(has_nan) + ["Inf"] * bool(has_inf)
        return f"{message} : Tensor had {' and '.join(found)} values" if found else None

    if _is_eager([tensor]):
        _check(wrong, [nans, infs], name)
        return tensor

    def call(has_nan: Any, has_inf: Any) -> List[Any]:
        text = wrong(has_nan, has_inf)
        if text is not None:
            raise InvalidArgumentError(None, None, text)
        return []

    done = _trace.effect(call, [nans, infs], [], name or "CheckNumerics")[-1]
    return _trace.after(done, [tensor])[0]


def assert_all_finite(x: Any, message: str, name: Optional[str] = None) -> Any:
    """check_numerics().

    >>> import plimsoll.tf as tf
    >>> float(tf.debugging.assert_all_finite(tf.constant(1.0), "not finite"))
    1.0
    """
    return check_numerics(x, message, name)


_log_placement = [False]


def set_log_device_placement(enabled: bool) -> None:
    """Accepted; `plimsoll.explain()` says where things are computed.

    >>> set_log_device_placement(False)
    """
    _log_placement[0] = bool(enabled)


def get_log_device_placement() -> bool:
    """See set_log_device_placement().

    >>> get_log_device_placement()
    False
    """
    return _log_placement[0]


def _dump(*args: Any, **kwargs: Any) -> None:
    raise NotImplementedError("tf.debugging.experimental.enable_dump_debug_info: Plimsoll has it not")


experimental = types.SimpleNamespace(
    disable_dump_debug_info=lambda: None, enable_dump_debug_info=_dump
)

__getattr__ = _not_implemented.getter("tf.debugging")
