# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, element by element: TensorFlow's names over the library's ops.

A name that is one op is one line of a table: unary() and binary() make the function. What is made
of several is written out below.
"""
from __future__ import annotations

import math as _numbers
from typing import Any, Callable, Sequence

from plimsoll import _core
from plimsoll.tf._values.convert import Tensor, booleans, floats, invalid, pair, tensor, tensors

__all__ = [
    "abs", "acos", "acosh", "add", "add_n", "asin", "asinh", "atan", "atan2", "atanh",
    "clip_by_global_norm", "clip_by_norm", "clip_by_value", "cos", "cosh", "divide", "equal", "exp",
    "floor", "floordiv", "greater", "greater_equal", "less", "less_equal", "logical_and",
    "logical_not", "logical_or", "maximum", "minimum", "multiply", "negative", "not_equal", "pow",
    "round", "scalar_mul", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "subtract", "tan",
    "tanh", "truediv", "truncatediv", "truncatemod",
]

Unary = Callable[..., Tensor]
Binary = Callable[..., Tensor]
_unary, _binary, _op = _core.unary, _core.binary, _core.op


def named(function: Any, name: str, doc: str, example: str, module: str = __name__) -> Any:
    """A function that a table made, with its name and what help() says. The example is what it
    shows and, behind "=>", what comes out."""
    question, _, answer = example.partition(" => ")
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = f"{doc}\n\n    >>> tf.{question}.numpy().tolist()\n    {answer}\n    "
    return function


def unary(name: str, op: str, doc: str, example: str, module: str = __name__) -> Unary:
    """tf's `name` of one tensor is the library's `op`."""

    def function(x: Any, name: str | None = None) -> Tensor:
        return _unary(op, x, name)

    return named(function, name, doc, example, module)


def binary(name: str, op: str, doc: str, example: str, module: str = __name__) -> Binary:
    """tf's `name` of two tensors is the library's `op`."""

    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        return _binary(op, x, y, name)

    return named(function, name, doc, example, module)


# ---- of one ----

abs = unary("abs", "abs", "Without the sign.", "abs([-1, 2]) => [1, 2]")
negative = unary("negative", "neg", "With the other sign.", "negative([1, -2]) => [-1, 2]")
square = unary("square", "square", "Times itself.", "square([-2, 3]) => [4, 9]")
sign = unary("sign", "sign", "-1, 0 or 1.", "sign([-3.0, 0.0, 2.0]) => [-1.0, 0.0, 1.0]")
sqrt = unary("sqrt", "sqrt", "Square root.", "sqrt([4.0, 9.0]) => [2.0, 3.0]")
rsqrt = unary("rsqrt", "rsqrt", "1 / sqrt(x).", "math.rsqrt([4.0]) => [0.5]")
reciprocal = unary("reciprocal", "reciprocal", "1 / x.", "math.reciprocal([4.0]) => [0.25]")
exp = unary("exp", "exp", "e to the power of x.", "exp([0.0]) => [1.0]")
expm1 = unary("expm1", "expm1", "exp(x) - 1, exact near 0.", "math.expm1([0.0]) => [0.0]")
log = unary("log", "log", "Natural logarithm.", "math.log([1.0]) => [0.0]")
log1p = unary("log1p", "log1p", "log(1 + x), exact near 0.", "math.log1p([0.0]) => [0.0]")
sin = unary("sin", "sin", "Sine.", "sin([0.0]) => [0.0]")
cos = unary("cos", "cos", "Cosine.", "cos([0.0]) => [1.0]")
tan = unary("tan", "tan", "Tangent.", "tan([0.0]) => [0.0]")
asin = unary("asin", "asin", "Arc sine.", "asin([0.0]) => [0.0]")
acos = unary("acos", "acos", "Arc cosine.", "acos([1.0]) => [0.0]")
atan = unary("atan", "atan", "Arc tangent.", "atan([0.0]) => [0.0]")
sinh = unary("sinh", "sinh", "Hyperbolic sine.", "sinh([0.0]) => [0.0]")
cosh = unary("cosh", "cosh", "Hyperbolic cosine.", "cosh([0.0]) => [1.0]")
tanh = unary("tanh", "tanh", "Hyperbolic tangent.", "tanh([0.0]) => [0.0]")
sigmoid = unary("sigmoid", "sigmoid", "1 / (1 + exp(-x)).", "sigmoid([0.0]) => [0.5]")
erf = unary("erf", "erf", "Error function.", "math.erf([0.0]) => [0.0]")
floor = unary("floor", "floor", "Towards minus infinity.", "floor([-1.5, 1.5]) => [-2.0, 1.0]")
ceil = unary("ceil", "ceil", "Towards infinity.", "math.ceil([-1.5, 1.5]) => [-1.0, 2.0]")
rint = unary("rint", "round", "To the nearest; halves to the even one.",
             "math.rint([0.5, 1.5]) => [0.0, 2.0]")
is_nan = unary("is_nan", "is_nan", "Is it not a number?",
               "math.is_nan([1.0, float('nan')]) => [False, True]")
is_inf = unary("is_inf", "is_inf", "Is it infinite?",
               "math.is_inf([1.0, float('inf')]) => [False, True]")
is_finite = unary("is_finite", "is_finite", "Is it a number that ends?",
                  "math.is_finite([1.0, float('inf')]) => [True, False]")

# ---- of two, that broadcast ----

add = binary("add", "add", "x + y.", "add([1, 2], 3) => [4, 5]")
subtract = binary("subtract", "sub", "x - y.", "subtract([5, 6], [1, 2]) => [4, 4]")
multiply = binary("multiply", "mul", "x * y.", "multiply([1, 2], [3, 4]) => [3, 8]")
floordiv = binary("floordiv", "floordiv", "x / y, towards minus infinity.",
                  "floordiv([-7, 7], 2) => [-4, 3]")
floormod = binary("floormod", "mod", "What floordiv leaves: the sign is that of y.",
                  "math.floormod([-7, 7], 3) => [2, 1]")
mod = binary("mod", "mod", "What floordiv leaves: the sign is that of y.",
             "math.mod([-7, 7], 3) => [2, 1]")
truncatemod = binary("truncatemod", "fmod", "What a division towards 0 leaves.",
                     "truncatemod([-7, 7], 3) => [-1, 1]")
pow = binary("pow", "pow", "x to the power of y.", "pow([2, 3], [3, 2]) => [8, 9]")
atan2 = binary("atan2", "atan2", "The angle of the point (y, x); the first argument is its height.",
               "atan2([0.0], [1.0]) => [0.0]")
maximum = binary("maximum", "maximum", "The larger of both.", "maximum([1, 5], [4, 2]) => [4, 5]")
minimum = binary("minimum", "minimum", "The smaller of both.", "minimum([1, 5], [4, 2]) => [1, 2]")
equal = binary("equal", "equal", "x == y.", "equal([1, 2], [1, 3]) => [True, False]")
not_equal = binary("not_equal", "not_equal", "x != y.",
                   "not_equal([1, 2], [1, 3]) => [False, True]")
less = binary("less", "less", "x < y.", "less([1, 2], 2) => [True, False]")
less_equal = binary("less_equal", "less_equal", "x <= y.", "less_equal([2, 3], 2) => [True, False]")
greater = binary("greater", "greater", "x > y.", "greater([1, 3], 2) => [False, True]")
greater_equal = binary("greater_equal", "greater_equal", "x >= y.",
                       "greater_equal([1, 2], 2) => [False, True]")


def _logical(name: str, op: str, doc: str, example: str) -> Binary:
    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        return _binary(op, booleans(x, op), booleans(y, op), name)

    return named(function, name, doc, example)


logical_and = _logical("logical_and", "logical_and", "Both.",
                       "logical_and([True, False], True) => [True, False]")
logical_or = _logical("logical_or", "logical_or", "Either, or both.",
                      "logical_or([True, False], False) => [True, False]")
logical_xor = _logical("logical_xor", "logical_xor", "One of them alone.",
                       "math.logical_xor([True, False], True) => [False, True]")


def logical_not(x: Any, name: str | None = None) -> Tensor:
    """The other one.

    >>> tf.logical_not([True, False]).numpy().tolist()
    [False, True]
    """
    return _unary("logical_not", booleans(x, "logical_not"), name)


# ---- division ----


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y; whole numbers become floating-point ones first: float64, of at most 16 bits float32.

    >>> tf.truediv([1, 3], 2).numpy().tolist()
    [0.5, 1.5]
    """
    return _core.truediv(x, y, name)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, as Python 3 divides.

    >>> tf.divide([6.0, 3.0], 2.0).numpy().tolist()
    [3.0, 1.5]
    """
    return _core.truediv(x, y, name)


def truncatediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y of whole numbers, towards 0.

    >>> tf.truncatediv([-7, 7], 2).numpy().tolist()
    [-3, 3]
    """
    a, b = pair(x, y)
    return _binary("floordiv", _binary("sub", a, _binary("fmod", a, b)), b, name)


def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0.

    >>> tf.math.divide_no_nan([3.0, 1.0], [0.0, 2.0]).numpy().tolist()
    [0.0, 0.5]
    """
    a, b = pair(floats(x), y)
    quotient = truediv(a, b)
    none = _binary("equal", b, 0)
    return _op("where", [none, _core.convert(0, quotient.dtype), quotient], None, name)


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x * y, and 0 where y is 0, whatever x is.

    >>> tf.math.multiply_no_nan([float('inf')], [0.0]).numpy().tolist()
    [0.0]
    """
    a, b = pair(floats(x), y)
    return _op("where", [_binary("equal", b, 0), _core.convert(0, a.dtype), _binary("mul", a, b)],
               None, name)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0.

    >>> tf.math.reciprocal_no_nan([2.0, 0.0]).numpy().tolist()
    [0.5, 0.0]
    """
    b = floats(x)
    return divide_no_nan(_core.convert(1, b.dtype), b, name)


def _zero_where_x_is(name: str, of_y: Callable[[Tensor, Tensor], Tensor], doc: str,
                     example: str) -> Binary:
    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        a, b = pair(floats(x), y)
        return _op("where", [_binary("equal", a, 0), _core.convert(0, a.dtype), of_y(a, b)], None,
                   name)

    return named(function, name, doc, example)


xlogy = _zero_where_x_is("xlogy", lambda x, y: _binary("mul", x, log(y)),
                         "x * log(y), and 0 where x is 0.", "math.xlogy([0.0], [0.0]) => [0.0]")
xlog1py = _zero_where_x_is("xlog1py", lambda x, y: _binary("mul", x, log1p(y)),
                           "x * log(1 + y), and 0 where x is 0.",
                           "math.xlog1py([0.0], [-1.0]) => [0.0]")
xdivy = _zero_where_x_is("xdivy", lambda x, y: _binary("div", x, y),
                         "x / y, and 0 where x is 0.", "math.xdivy([0.0], [0.0]) => [0.0]")


# ---- made of several ----


def round(x: Any, name: str | None = None) -> Tensor:
    """To the nearest; halves to the even one. Integers stay unchanged.

    >>> tf.round([0.5, 1.5, -0.6]).numpy().tolist()
    [0.0, 2.0, -1.0]
    """
    x = tensor(x)
    return _unary("identity" if x.dtype.is_integer else "round", x, name)


def asinh(x: Any, name: str | None = None) -> Tensor:
    """Inverse of sinh.

    >>> tf.asinh([0.0]).numpy().tolist()
    [0.0]
    """
    return _unary("asinh", floats(x), name)


def acosh(x: Any, name: str | None = None) -> Tensor:
    """Inverse of cosh.

    >>> tf.acosh([1.0]).numpy().tolist()
    [0.0]
    """
    return _unary("acosh", floats(x), name)


def atanh(x: Any, name: str | None = None) -> Tensor:
    """Inverse of tanh.

    >>> tf.atanh([0.0]).numpy().tolist()
    [0.0]
    """
    return _unary("atanh", floats(x), name)


def erfc(x: Any, name: str | None = None) -> Tensor:
    """1 - erf(x).

    >>> tf.math.erfc([0.0]).numpy().tolist()
    [1.0]
    """
    return _unary("erfc", floats(x), name)


def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """(x - y) * (x - y).

    >>> tf.math.squared_difference([5, 1], 3).numpy().tolist()
    [4, 4]
    """
    return _unary("square", _binary("sub", x, y), name)


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(sigmoid(x)), without overflow.

    >>> tf.math.log_sigmoid([1000.0]).numpy().tolist()
    [0.0]
    """
    x = floats(x)
    below = _binary("minimum", x, 0)
    return _binary("sub", below, _unary("log1p", _unary("exp", -_unary("abs", x))), name)


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Tensor:
    """A tensor times a number.

    >>> tf.scalar_mul(2, [1, 3]).numpy().tolist()
    [2, 6]
    """
    x = tensor(x)
    scalar = _core.convert(scalar, x.dtype)
    if scalar.shape.rank not in (0, None):
        raise ValueError(f"The input scalar must be a 0-D value. Received shape {scalar.shape}.")
    return _binary("mul", scalar, x, name)


def add_n(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape.

    >>> tf.add_n([[1, 2], [3, 4], [5, 6]]).numpy().tolist()
    [9, 12]
    """
    if isinstance(inputs, Tensor):
        return _unary("identity", inputs, name)
    parts = tensors(inputs)
    if not parts:
        raise ValueError("Inputs must be an iterable of at least one Tensor with the same dtype "
                         "and shape.")
    total = parts[0]
    for part in parts[1:]:
        if not part.shape.is_compatible_with(total.shape):
            invalid(f"add_n: shapes {total.shape} and {part.shape} are not the same")
        total = _binary("add", total, part)
    return _unary("identity", total, name)


def polyval(coeffs: Sequence[Any], x: Any, name: str | None = None) -> Tensor:
    """A polynomial at x: the highest power's factor comes first.

    >>> tf.math.polyval([2, 0, 1], 3).numpy().tolist()
    19
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    x = tensor(x)
    if not coeffs:
        return _op("fill", [x], {"value": 0}, name)
    value = _core.convert(coeffs[0], None, x.dtype)
    for factor in coeffs[1:]:
        value = _binary("add", _binary("mul", value, x), factor)
    return _unary("identity", value, name)


# ---- within limits ----


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any,
                  name: str | None = None) -> Tensor:
    """At least the one, at most the other.

    >>> tf.clip_by_value([-5, 1, 9], 0, 3).numpy().tolist()
    [0, 1, 3]
    """
    x = tensor(t)
    ends = [value if isinstance(value, Tensor) else _core.convert(value, x.dtype)
            for value in (clip_value_min, clip_value_max)]
    for end in ends:
        if end.dtype != x.dtype:
            invalid(f"clip_by_value: {x.dtype.name} and {end.dtype.name}: cast one of them")
    return _op("clip", [x, *ends], None, name)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Scaled down so that its norm is at most `clip_norm`.

    >>> tf.clip_by_norm([[3.0, 4.0]], 1.0).numpy().round(3).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    from plimsoll.tf._ops.reshape import cast
    from plimsoll.tf._ops.reduce import root_of_squares, widened

    x = floats(t)
    wide = widened(x)
    length, limit = root_of_squares(wide, axes, keepdims=True), cast(clip_norm, wide.dtype)
    out = _binary("div", _binary("mul", wide, limit), _binary("maximum", length, limit), name)
    return cast(out, x.dtype)


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The norm of all elements of several tensors together.

    >>> tf.linalg.global_norm([[3.0], [4.0]]).numpy().tolist()
    5.0
    """
    from plimsoll.tf._ops.reshape import cast
    from plimsoll.tf._ops.reduce import widened

    parts = [floats(t) for t in t_list if t is not None]
    squares = [_op("sum", [_unary("square", widened(t))], None) for t in parts]
    root = _unary("sqrt", add_n(squares), name)
    return cast(root, parts[0].dtype) if root.dtype != parts[0].dtype else root


def clip_by_global_norm(t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None,
                        name: str | None = None) -> tuple[list[Tensor | None], Tensor]:
    """Scaled down together so that their norm is at most `clip_norm`; and the norm before.

    >>> parts, norm = tf.clip_by_global_norm([[3.0], [4.0]], 10.0)
    >>> norm.numpy().tolist(), parts[0].numpy().tolist()
    (5.0, [3.0])
    """
    norm = global_norm(t_list) if use_norm is None else floats(use_norm)
    limit = _core.convert(clip_norm, norm.dtype)
    factor = _binary("div", limit, _binary("maximum", norm, limit))
    return [None if t is None else _binary("mul", floats(t), factor) for t in t_list], norm


def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """The next number from x1 on, towards x2.

    >>> tf.math.nextafter([1.0], [2.0]).numpy().tolist()
    [1.0000001192092896]
    """
    import numpy as np

    from plimsoll.tf._values.convert import dims, numpy_call

    a, b = pair(floats(x1), x2)
    both = None if None in (dims(a), dims(b)) else [None] * max(len(dims(a)), len(dims(b)))
    return numpy_call(np.nextafter, [a, b], a.dtype, both, name)


def _lgamma(x: float) -> float:
    """Python's refuses its poles, and arguments outside of its range."""
    if _numbers.isinf(x) or (x <= 0 and x == _numbers.floor(x)):
        return _numbers.inf
    try:
        return _numbers.lgamma(x)
    except OverflowError:
        return _numbers.inf


def lgamma(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the gamma function's absolute value.

    >>> tf.math.lgamma([1.0, 2.0]).numpy().tolist()
    [0.0, 0.0]
    """
    from plimsoll.tf._values.convert import dims, numpy_call

    def each(array: Any) -> Any:
        import numpy as np

        values = [_lgamma(v) for v in array.ravel().tolist()]
        with np.errstate(over="ignore"):  # of a narrower dtype
            return np.array(values, array.dtype).reshape(array.shape)

    x = floats(x)
    return numpy_call(each, [x], x.dtype, dims(x), name)
