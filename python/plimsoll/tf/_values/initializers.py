# SPDX-License-Identifier: Apache-2.0
"""Initializers make a variable's first value, from a shape.

    >>> import plimsoll.tf as tf
    >>> tf.zeros_initializer()([2], dtype=tf.int32).numpy().tolist()
    [0, 0]
"""
from __future__ import annotations

import math
from typing import Any, List, Optional

from plimsoll import _core
from plimsoll.tf._values import types as _types

__all__ = [
    "constant_initializer",
    "ones_initializer",
    "random_normal_initializer",
    "random_uniform_initializer",
    "zeros_initializer",
]


class _Initializer:
    """Called with a shape and a dtype."""

    _dtype: Any = None

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None, **more: Any) -> Any:
        dims = _types.TensorShape(shape).as_list()
        return self._make(dims, _types.as_dtype(dtype or self._dtype or _types.float32))

    def _make(self, shape: List[Any], dtype: Any) -> Any:
        raise NotImplementedError(type(self).__name__)

    def get_config(self) -> Any:
        return {name.lstrip("_"): value for name, value in vars(self).items()}

    @classmethod
    def from_config(cls, config: Any) -> Any:
        return cls(**config)


class Zeros(_Initializer):
    """All 0.

    >>> Zeros()([2]).numpy().tolist()
    [0.0, 0.0]
    """

    def __init__(self, dtype: Any = None) -> None:
        self._dtype = dtype

    def _make(self, shape: List[Any], dtype: Any) -> Any:
        return _core.op("fill", [], {"shape": shape, "dtype": dtype, "value": 0})


class Ones(Zeros):
    """All 1.

    >>> Ones()([2]).numpy().tolist()
    [1.0, 1.0]
    """

    def _make(self, shape: List[Any], dtype: Any) -> Any:
        return _core.op("fill", [], {"shape": shape, "dtype": dtype, "value": 1})


class Constant(_Initializer):
    """One value everywhere, or values in the requested shape.

    >>> Constant(3)([2]).numpy().tolist()
    [3.0, 3.0]
    """

    def __init__(self, value: Any = 0, dtype: Any = None, verify_shape: bool = False, **more: Any):
        self._value, self._dtype = value, dtype

    def _make(self, shape: List[Any], dtype: Any) -> Any:
        value = _core.convert(self._value, dtype=dtype)
        if value.shape.rank == 0:
            return _core.op("broadcast_to", [value], {"shape": shape})
        return _core.op("reshape", [value], {"shape": shape})


class RandomNormal(_Initializer):
    """Normal, with this mean and standard deviation.

    >>> RandomNormal(seed=1)([2]).shape
    TensorShape([2])
    """

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 0.05, seed: Optional[int] = None, dtype: Any = None
    ) -> None:
        self._mean, self._stddev, self._seed, self._dtype = mean, stddev, seed, dtype

    def _make(self, shape: List[Any], dtype: Any) -> Any:
        from plimsoll.tf import random

        return random.normal(shape, self._mean, self._stddev, dtype, self._seed)


class TruncatedNormal(RandomNormal):
    """The same, without values more than two deviations from the mean."""

    def _make(self, shape: List[Any], dtype: Any) -> Any:
        from plimsoll.tf import random

        return random.truncated_normal(shape, self._mean, self._stddev, dtype, self._seed)


class RandomUniform(_Initializer):
    """Uniform between two values.

    >>> abs(float(RandomUniform(seed=1)([]))) <= 0.05
    True
    """

    def __init__(
        self, minval: Any = -0.05, maxval: Any = 0.05, seed: Optional[int] = None, dtype: Any = None
    ) -> None:
        self._minval, self._maxval, self._seed, self._dtype = minval, maxval, seed, dtype

    def _make(self, shape: List[Any], dtype: Any) -> Any:
        from plimsoll.tf import random

        return random.uniform(shape, self._minval, self._maxval, dtype, self._seed)


class VarianceScaling(_Initializer):
    """Scaled by how many values a layer takes (fan in) and gives (fan out)."""

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: Optional[int] = None,
        dtype: Any = None,
    ) -> None:
        self._scale, self._mode, self._distribution = scale, mode, distribution
        self._seed, self._dtype = seed, dtype

    def _make(self, shape: List[Any], dtype: Any) -> Any:
        fan_in, fan_out = _fans(shape)
        by_mode = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
        scale = self._scale / max(1.0, by_mode[self._mode])
        if self._distribution == "uniform":
            limit = math.sqrt(3.0 * scale)
            return RandomUniform(-limit, limit, self._seed)(shape, dtype)
        if self._distribution == "untruncated_normal":
            return RandomNormal(0.0, math.sqrt(scale), self._seed)(shape, dtype)
        # The standard deviation of a normal distribution cut off at two deviations.
        stddev = math.sqrt(scale) / 0.87962566103423978
        return TruncatedNormal(0.0, stddev, self._seed)(shape, dtype)


class GlorotUniform(VarianceScaling):
    """Glorot's, uniform: TensorFlow 1's default for floating-point variables."""

    def __init__(self, seed: Optional[int] = None, dtype: Any = None) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)


class GlorotNormal(VarianceScaling):
    """Glorot's, normal."""

    def __init__(self, seed: Optional[int] = None, dtype: Any = None) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)


def _fans(shape: List[Any]) -> Any:
    if len(shape) < 1:
        return 1.0, 1.0
    if len(shape) == 1:
        return float(shape[0]), float(shape[0])
    field = math.prod(shape[:-2])
    return float(shape[-2] * field), float(shape[-1] * field)


zeros_initializer = Zeros
ones_initializer = Ones
constant_initializer = Constant
random_normal_initializer = RandomNormal
random_uniform_initializer = RandomUniform
