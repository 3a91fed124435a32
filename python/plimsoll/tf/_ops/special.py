# SPDX-License-Identifier: Apache-2.0
"""Functions of tf.math that the library has no op for and NumPy has not: in Python, in memory, and
not planned."""
from __future__ import annotations

import math
from typing import Any, Callable

from plimsoll import _core
from plimsoll.tf._values.convert import Tensor, dims, floats, numpy_call
from plimsoll.tf._ops.elementwise import lgamma
from plimsoll.tf._ops.reduce import reduce_sum

__all__ = ["digamma", "erfcinv", "erfinv", "lbeta", "ndtri"]


def _each(fn: Callable[[float], float], value: Any, name: str | None) -> Tensor:
    def run(array: Any) -> Any:
        import numpy as np

        return np.array([fn(v) for v in array.ravel().tolist()], array.dtype).reshape(array.shape)

    x = floats(value)
    return numpy_call(run, [x], x.dtype, dims(x), name)


def _quantile(share: float) -> float:
    """Where the normal distribution has so much of itself below."""
    from statistics import NormalDist

    if not 0 < share < 1:
        return -math.inf if share == 0 else math.inf if share == 1 else math.nan
    return NormalDist().inv_cdf(share)


def ndtri(x: Any, name: str | None = None) -> Tensor:
    """The quantiles of the normal distribution.

    >>> tf.math.ndtri([0.5, 0.0, 1.0]).numpy().tolist()
    [0.0, -inf, inf]
    """
    return _each(_quantile, x, name)


def erfinv(x: Any, name: str | None = None) -> Tensor:
    """The inverse of the error function.

    >>> tf.math.erfinv([0.0, 1.0, -1.0]).numpy().tolist()
    [0.0, inf, -inf]
    """
    def inverse(v: float) -> float:
        # By the smaller tail; around 0 that has lost digits, which a step of Newton's gives back.
        y = -_quantile((1 - abs(v)) / 2) / math.sqrt(2)
        if abs(v) < 0.5:
            y -= (math.erf(y) - abs(v)) * math.sqrt(math.pi) / 2 * math.exp(y * y)
        return math.copysign(y, v)

    return _each(inverse, x, name)


def erfcinv(x: Any, name: str | None = None) -> Tensor:
    """The inverse of the complementary error function.

    >>> tf.math.erfcinv([1.0, 0.0, 2.0]).numpy().tolist()
    [0.0, inf, -inf]
    """
    return _each(lambda v: 0.0 - _quantile(v / 2) / math.sqrt(2), x, name)


def _psi(x: float) -> float:
    if math.isnan(x) or x == -math.inf or (x <= 0 and x == math.floor(x)):
        return math.nan
    if x < 0:
        return _psi(1 - x) - math.pi / math.tan(math.pi * x)
    below = 0.0
    while x < 10:  # where the series' eighth term is below 1e-16 of the sum
        below += 1 / x
        x += 1
    square = 1 / (x * x)
    series = 0.0
    for b in (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = (series + b) * square
    return math.log(x) - 0.5 / x - series - below


def digamma(x: Any, name: str | None = None) -> Tensor:
    """The derivative of lgamma.

    >>> abs(float(tf.math.digamma(1.0)) + 0.5772157) < 1e-6
    True
    """
    return _each(_psi, x, name)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the beta function of the last axis.

    >>> tf.math.lbeta([[1.0, 1.0]]).numpy().tolist()
    [0.0]
    """
    x = floats(x)
    return _core.binary("sub", reduce_sum(lgamma(x), [-1]), lgamma(reduce_sum(x, [-1])), name)
