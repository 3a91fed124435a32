# SPDX-License-Identifier: Apache-2.0
"""tf.math: arithmetic, reductions, segments and counts."""
from __future__ import annotations

from typing import Any, Callable

from plimsoll import _core
from plimsoll.tf import _not_implemented
from plimsoll.tf._values import types as _types
from plimsoll.tf._ops.reshape import cast
from plimsoll.tf._values.convert import Tensor, dims, invalid, numpy_call, one_int, tensor
from plimsoll.tf._ops.elementwise import (  # noqa: F401
    abs, acos, acosh, add, add_n, asin, asinh, atan, atan2, atanh, ceil, cos, cosh, divide,
    divide_no_nan, equal, erf, erfc, exp, expm1, floor, floordiv, floormod, greater, greater_equal,
    is_finite, is_inf, is_nan, less, less_equal, lgamma, log, log1p, log_sigmoid, logical_and,
    logical_not, logical_or, logical_xor, maximum, minimum, mod, multiply, multiply_no_nan, named,
    negative, nextafter, not_equal, polyval, pow, reciprocal, reciprocal_no_nan, rint, round, rsqrt,
    scalar_mul, sigmoid, sign, sin, sinh, sqrt, square, squared_difference, subtract, tan, tanh,
    truediv, xdivy, xlog1py, xlogy,
)
from plimsoll.tf._ops.special import digamma, erfcinv, erfinv, lbeta, ndtri  # noqa: F401
from plimsoll.tf._ops.reduce import (  # noqa: F401
    argmax, argmin, count_nonzero, cumprod, cumsum, cumulative_logsumexp, in_top_k, reduce_all,
    reduce_any, reduce_euclidean_norm, reduce_logsumexp, reduce_max, reduce_mean, reduce_min,
    reduce_prod, reduce_std, reduce_sum, reduce_variance, top_k,
)
from plimsoll.tf.nn import (  # noqa: F401
    l2_normalize, log_softmax, softmax, softplus, softsign, zero_fraction,
)

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "argmax", "argmin", "asin", "asinh",
    "atan", "atan2", "atanh", "bincount", "ceil", "confusion_matrix", "conj", "cos", "cosh",
    "count_nonzero", "cumprod", "cumsum", "cumulative_logsumexp", "digamma", "divide",
    "divide_no_nan", "equal", "erf", "erfc", "erfcinv", "erfinv", "exp", "expm1", "floor",
    "floordiv", "floormod", "greater", "greater_equal", "in_top_k", "invert_permutation",
    "is_finite", "is_inf", "is_nan", "is_non_decreasing", "is_strictly_increasing", "l2_normalize",
    "lbeta", "less", "less_equal", "lgamma", "log", "log1p", "log_sigmoid", "log_softmax",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod",
    "multiply", "multiply_no_nan", "ndtri", "negative", "nextafter", "not_equal", "polyval", "pow",
    "real", "reciprocal", "reciprocal_no_nan", "reduce_all", "reduce_any", "reduce_euclidean_norm",
    "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_std",
    "reduce_sum", "reduce_variance", "rint", "round", "rsqrt", "scalar_mul", "segment_max",
    "segment_mean", "segment_min", "segment_prod", "segment_sum", "sigmoid", "sign", "sin", "sinh",
    "softmax", "softplus", "softsign", "sqrt", "square", "squared_difference", "subtract", "tan",
    "tanh", "top_k", "truediv", "unsorted_segment_max", "unsorted_segment_mean",
    "unsorted_segment_min", "unsorted_segment_prod", "unsorted_segment_sqrt_n",
    "unsorted_segment_sum", "xdivy", "xlog1py", "xlogy", "zero_fraction",
]

__getattr__ = _not_implemented.getter("tf.math")
def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None,
                 name: str | None = None) -> Tensor:
    """The sum of several tensors of one shape.

    >>> tf.math.accumulate_n([[1, 2], [3, 4]]).numpy().tolist()
    [4, 6]
    """
    out = add_n(inputs, name)
    if shape is not None:
        out.set_shape(shape)
    return out
_op = _core.op


def conj(x: Any, name: str | None = None) -> Tensor:
    """x: numbers are real here.

    >>> tf.math.conj([1.0]).numpy().tolist()
    [1.0]
    """
    return _core.unary("identity", x, name)


def real(input: Any, name: str | None = None) -> Tensor:
    """x: numbers are real here.

    >>> tf.math.real([1.0]).numpy().tolist()
    [1.0]
    """
    return _core.unary("identity", input, name)


# ---- counts ----


def bincount(arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None,
             dtype: Any = _types.int32, name: str | None = None, axis: Any = None,
             binary_output: bool = False) -> Tensor:
    """How often each number is there, from 0 on; with axis=-1, in each row.

    >>> tf.math.bincount([1, 1, 2, 3, 2, 4, 4, 5]).numpy().tolist()
    [0, 2, 2, 1, 2, 1]
    >>> tf.math.bincount([[1, 2], [2, 2]], axis=-1).numpy().tolist()
    [[0, 1, 1], [0, 0, 2]]
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently "
                         "supported.")
    least = 0 if minlength is None else one_int(minlength, "math.bincount: minlength")
    most = None if maxlength is None else one_int(maxlength, "math.bincount: maxlength")

    if weights is not None and binary_output:
        raise ValueError("Arguments `binary_output` and `weights` are mutually exclusive. Please "
                         "specify only one.")

    def counted(numbers: Any, *heavy: Any) -> Any:
        import numpy as np

        flat = numbers.astype(np.int64).ravel()
        if flat.size and flat.min() < 0:
            invalid("bincount: numbers are not negative")
        # As long as the largest number requires, even if that one is not counted.
        n = max(least, int(flat.max(initial=-1)) + 1)
        n = n if most is None else min(n, most)
        inside = flat < n
        weight = heavy[0].ravel()[inside] if heavy else None
        if axis == -1 and numbers.ndim > 1:
            rows = numbers.shape[0]
            row = np.repeat(np.arange(rows), flat.size // max(rows, 1))[inside]
            counts = np.bincount(row * n + flat[inside], weight, rows * n).reshape((rows, n))
        else:
            counts = np.bincount(flat[inside], weight, n)
        return np.minimum(counts, 1) if binary_output else counts

    given = [] if weights is None else [tensor(weights)]
    out = given[0].dtype if given else _types.as_dtype(dtype)
    x = tensor(arr)
    if not x.dtype.is_integer:
        x = cast(x, _types.int32)
    shape = None if dims(x) is None else [dims(x)[0], None] if axis == -1 and len(dims(x)) > 1 \
        else [None]
    return numpy_call(lambda *a: counted(*a).astype(out.as_numpy_dtype), [x, *given], out, shape,
                      name)


def confusion_matrix(labels: Any, predictions: Any, num_classes: Any = None, weights: Any = None,
                     dtype: Any = _types.int32, name: str | None = None) -> Tensor:
    """How often each label (row) was taken for each class (column).

    >>> tf.math.confusion_matrix([1, 2, 4], [2, 2, 4]).numpy().tolist()
    [[0, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    """
    n = None if num_classes is None else one_int(num_classes, "math.confusion_matrix: num_classes")
    out = _types.as_dtype(dtype)

    def counted(truth: Any, guess: Any, *heavy: Any) -> Any:
        import numpy as np

        truth, guess = truth.ravel(), guess.ravel()
        size = n if n is not None else int(max(truth.max(initial=-1), guess.max(initial=-1))) + 1
        both = np.concatenate([truth, guess])
        if both.size and (both.min() < 0 or both.max() >= size):
            invalid(f"confusion_matrix: a label or prediction is not one of {size} classes")
        matrix = np.zeros((size, size), out.as_numpy_dtype)
        np.add.at(matrix, (truth, guess), heavy[0].ravel() if heavy else 1)
        return matrix

    given = [] if weights is None else [cast(weights, out)]
    inputs = [cast(labels, _types.int64), cast(predictions, _types.int64), *given]
    return numpy_call(counted, inputs, out, [n, n], name)


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """Where each number stands.

    >>> tf.math.invert_permutation([3, 4, 0, 2, 1]).numpy().tolist()
    [2, 4, 3, 0, 1]
    """
    x = tensor(x)
    return cast(_op("argsort", [x], None, name), x.dtype)


def _ordered(name: str, op: str, doc: str, example: str) -> Callable[..., Tensor]:
    def function(x: Any, name: str | None = None) -> Tensor:
        from plimsoll.tf._ops.reshape import reshape

        line = reshape(x, [-1])
        return _op("all", [_core.binary(op, line[1:], line[:-1])], None, name)

    return named(function, name, doc, example, __name__)


is_non_decreasing = _ordered("is_non_decreasing", "greater_equal",
                             "Is no element smaller than the one before it?",
                             "math.is_non_decreasing([1, 1, 2]) => True")
is_strictly_increasing = _ordered("is_strictly_increasing", "greater",
                                  "Is each element larger than the one before it?",
                                  "math.is_strictly_increasing([1, 1, 2]) => False")


# ---- segments ----

_START = {"add": 0, "multiply": 1}


def _limit(dtype: Any, how: str) -> Any:
    """The largest or smallest of no elements: the dtype's limit, as in TensorFlow."""
    import numpy as np

    info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return info.min if how == "maximum" else info.max


def _folded(data: Any, ids: Any, n: int, how: str, empty: Any) -> Any:
    """Parts of `data` with the same id, folded; a negative id is left out."""
    import numpy as np

    if data.shape[:ids.ndim] != ids.shape:
        invalid(f"segment ids of shape {list(ids.shape)} for data of {list(data.shape)}")
    flat = data.reshape((ids.size,) + data.shape[ids.ndim:])  # not -1: there may be no elements
    ids = ids.ravel()
    if ids.size and ids.max() >= n:
        invalid(f"segment id {ids.max()} is not one of {n}")
    chosen = ids >= 0
    ids, flat = ids[chosen], flat[chosen]
    counts = np.bincount(ids, minlength=n).reshape((n,) + (1,) * (flat.ndim - 1))
    if how in ("mean", "sqrt_n"):
        out = np.zeros((n,) + flat.shape[1:], data.dtype)
        np.add.at(out, ids, flat)
        by = np.maximum(counts, 1)
        return (out / (by if how == "mean" else np.sqrt(by))).astype(data.dtype)
    start = _START[how] if how in _START else _limit(data.dtype, how)
    out = np.full((n,) + flat.shape[1:], start, data.dtype)
    getattr(np, how).at(out, ids, flat)
    return out if empty is None else np.where(counts > 0, out, np.array(empty, data.dtype))


def _segment(name: str, how: str, example: str) -> Callable[..., Tensor]:
    def function(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
        x = tensor(data)
        known = dims(x)

        def fold(values: Any, ids: Any) -> Any:
            if ids.ndim != 1 or (ids.size and (ids[1:] < ids[:-1]).any()):
                invalid("segment ids are not in order, or no vector")
            empty = 1 if how == "multiply" else 0
            return _folded(values, ids, int(ids[-1]) + 1 if ids.size else 0, how, empty)

        shape = None if known is None else (None,) + known[1:]
        return numpy_call(fold, [x, tensor(segment_ids)], x.dtype, shape, name)

    return named(function, name, "Parts along the first axis that have the same id, folded into "
                 "one; ids are in order.", example, __name__)


def _unsorted(name: str, how: str, example: str) -> Callable[..., Tensor]:
    def function(data: Any, segment_ids: Any, num_segments: Any,
                 name: str | None = None) -> Tensor:
        x, ids = tensor(data), tensor(segment_ids)
        n = one_int(num_segments, "math.unsorted_segment: num_segments")
        shape = None
        if dims(x) is not None and dims(ids) is not None:
            shape = (n,) + dims(x)[len(dims(ids)):]
        return numpy_call(lambda values, which: _folded(values, which, n, how, None), [x, ids],
                          x.dtype, shape, name)

    return named(function, name, "Parts that have the same id, folded into one of `num_segments`; "
                 "a negative id is left out.", example, __name__)


segment_sum = _segment("segment_sum", "add", "math.segment_sum([1, 2, 3], [0, 0, 1]) => [3, 3]")
segment_mean = _segment("segment_mean", "mean",
                        "math.segment_mean([1.0, 3.0, 5.0], [0, 0, 1]) => [2.0, 5.0]")
segment_prod = _segment("segment_prod", "multiply",
                        "math.segment_prod([2, 3, 4], [0, 0, 1]) => [6, 4]")
segment_max = _segment("segment_max", "maximum", "math.segment_max([1, 5, 4], [0, 0, 1]) => [5, 4]")
segment_min = _segment("segment_min", "minimum", "math.segment_min([1, 5, 4], [0, 0, 1]) => [1, 4]")
unsorted_segment_sum = _unsorted("unsorted_segment_sum", "add",
                                 "math.unsorted_segment_sum([1, 2, 3], [1, 0, 1], 2) => [2, 4]")
unsorted_segment_mean = _unsorted(
    "unsorted_segment_mean", "mean",
    "math.unsorted_segment_mean([1.0, 2.0, 3.0], [1, 0, 1], 2) => [2.0, 2.0]")
unsorted_segment_prod = _unsorted("unsorted_segment_prod", "multiply",
                                  "math.unsorted_segment_prod([1, 2, 3], [1, 0, 1], 2) => [2, 3]")
unsorted_segment_max = _unsorted("unsorted_segment_max", "maximum",
                                 "math.unsorted_segment_max([1, 2, 3], [1, 0, 1], 2) => [2, 3]")
unsorted_segment_min = _unsorted("unsorted_segment_min", "minimum",
                                 "math.unsorted_segment_min([1, 2, 3], [1, 0, 1], 2) => [2, 1]")
unsorted_segment_sqrt_n = _unsorted(
    "unsorted_segment_sqrt_n", "sqrt_n",
    "math.unsorted_segment_sqrt_n([1.0, 2.0], [1, 0], 2) => [2.0, 1.0]")
