# SPDX-License-Identifier: Apache-2.0
"""tf.image.resize(). Bilinear and nearest are ops of the library; the other methods are two
products with matrices of weights, for each of them is linear along each axis."""
from __future__ import annotations

import math
from typing import Any, Callable

from plimsoll import _core
from plimsoll.tf._values import types as _types
from plimsoll.tf._ops.reshape import cast, reshape
from plimsoll.tf._values.convert import Tensor, dims, eager_call, invalid, static, tensor

_op = _core.op


class ResizeMethod:
    """How resize() makes pixels.

    >>> tf.image.ResizeMethod.BILINEAR
    'bilinear'
    """

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


def _lanczos(radius: float) -> Callable[[float], float]:
    def kernel(x: float) -> float:
        x = abs(x)
        if x > radius:
            return 0.0
        if x <= 1e-3:
            return 1.0
        return radius * math.sin(math.pi * x) * math.sin(math.pi * x / radius) / (math.pi * x) ** 2

    return kernel


def _cubic(x: float) -> float:
    """Keys' with a = -0.5."""
    x = abs(x)
    if x >= 2:
        return 0.0
    return ((1.5 * x - 2.5) * x) * x + 1 if x < 1 else ((-0.5 * x + 2.5) * x - 4) * x + 2


def _mitchell(x: float) -> float:
    x = abs(x)
    if x >= 2:
        return 0.0
    if x >= 1:
        return (((-7 / 18) * x + 2) * x - 10 / 3) * x + 16 / 9
    return (((7 / 6) * x - 2) * x) * x + 8 / 9


# Radius and kernel of each.
_KERNELS: dict[str, tuple[float, Callable[[float], float]]] = {
    "bilinear": (1.0, lambda x: max(1 - abs(x), 0.0)),
    "bicubic": (2.0, _cubic),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "gaussian": (1.5, lambda x: math.exp(-x * x / 0.5) if abs(x) < 1.5 else 0.0),
    "mitchellcubic": (2.0, _mitchell),
}


def _weights(n_from: int, n_to: int, method: str, antialias: bool) -> Any:
    """[n_to, n_from]: the weights of the pixels that each pixel is made of."""
    import numpy as np

    matrix = np.zeros((n_to, n_from), np.float64)
    scale = n_from / n_to
    if method == "area":
        for i in range(n_to):
            first, last = i * scale, (i + 1) * scale
            for j in range(int(first), min(math.ceil(last), n_from)):
                matrix[i, j] = (min(j + 1, last) - max(j, first)) / scale
        return matrix.astype(np.float32)
    radius, kernel = _KERNELS[method]
    stretch = max(scale, 1.0) if antialias else 1.0
    for i in range(n_to):
        centre = (i + 0.5) * scale
        first = max(math.ceil(centre - radius * stretch - 0.5), 0)
        last = min(math.floor(centre + radius * stretch - 0.5), n_from - 1)
        for j in range(first, last + 1):
            matrix[i, j] = kernel((j + 0.5 - centre) / stretch)
        total = matrix[i].sum()
        if abs(total) >= 1000 * np.finfo(np.float32).tiny:
            matrix[i] /= total
    return matrix.astype(np.float32)


def _by_weights(x: Tensor, size: list[int], method: str, antialias: bool) -> Tensor:
    *batch, height, width, channels = dims(x)
    n = math.prod(batch)
    rows = _core.constant(_weights(height, size[0], method, antialias))
    columns = _core.constant(_weights(width, size[1], method, antialias))
    x = reshape(cast(x, _types.float32), [n, height, width * channels])
    x = reshape(_op("matmul", [rows, x]), [n * size[0], width, channels])
    return reshape(_op("matmul", [columns, x]), [*batch, *size, channels])


def resize(images: Any, size: Any, method: Any = ResizeMethod.BILINEAR,
           preserve_aspect_ratio: bool = False, antialias: bool = False,
           name: str | None = None) -> Tensor:
    """Pictures in another size: float32, of nearest the dtype that they have.

    >>> tf.image.resize([[[0.0], [2.0]]], [1, 4], method='nearest').numpy().ravel().tolist()
    [0.0, 0.0, 2.0, 2.0]
    """
    x, how = tensor(images), str(method)
    known, wanted = dims(x), static(size)
    if how not in vars(ResizeMethod).values():
        raise ValueError(f"Resize method is not implemented: {method}")
    if known is not None and len(known) not in (3, 4):
        raise ValueError("'images' must have either 3 or 4 dimensions.")
    if wanted is not None and (not isinstance(wanted, list) or len(wanted) != 2):
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    if known is not None and wanted is not None:
        own = list(known[-3:-1])
        direct = how in ("bilinear", "nearest")
        if not (preserve_aspect_ratio and None in own) and (direct or None not in known):
            if preserve_aspect_ratio:
                wanted = _in_proportion(own, wanted)
            return _resized(x, [int(n) for n in wanted], how, antialias, name)
    return _resize_in_run(x, size, how, preserve_aspect_ratio, antialias, name)


def _resized(x: Tensor, size: list[int], how: str, antialias: bool, name: str | None) -> Tensor:
    if min(size) < 1:
        invalid(f"resize: output dimensions must be positive, and are {size}")
    known = dims(x)
    if how != "nearest" and list(known[-3:-1]) == size:
        return cast(x, _types.float32)
    if how in ("bilinear", "nearest"):
        return _op("resize", [x], {"size": size, "method": how, "antialias": antialias}, name)
    return _by_weights(x, size, how, antialias)


def _in_proportion(own: list[int], wanted: list[int]) -> list[int]:
    """The largest size within `wanted` that has the picture's proportion."""
    factor = min(wanted[0] / own[0], wanted[1] / own[1])
    return [max(int(math.floor(n * factor + 0.5)), 1) for n in own]


def _resize_in_run(x: Tensor, size: Any, how: str, keep: bool, antialias: bool,
                   name: str | None) -> Tensor:
    def run(picture: Tensor, wanted: Tensor) -> Tensor:
        return resize(picture, wanted, how, keep, antialias)

    dtype = x.dtype if how == "nearest" else _types.float32
    known, fixed = dims(x), None if keep else static(size)
    shape = None
    if known is not None:
        shape = (*known[:-3], *(fixed or (None, None)), known[-1])
    if not isinstance(size, Tensor):
        from plimsoll.tf._values.convert import shape_tensor

        size = shape_tensor(size) if static(size) is None else _core.convert(size)
    return eager_call(run, [x, size], dtype, shape, name)
