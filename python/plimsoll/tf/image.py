# SPDX-License-Identifier: Apache-2.0
"""tf.image: pictures are [height, width, channels], or several of them, [n, height, width,
channels]."""
from __future__ import annotations

from typing import Any, Callable

from plimsoll import _core
from plimsoll.tf import _not_implemented
from plimsoll.tf._values import types as _types
from plimsoll.tf import random as _random
from plimsoll.tf._ops.reshape import cast, saturate_cast, transpose as _transposed
from plimsoll.tf._values.convert import (
    Tensor, dims, eager_call, floats, invalid, one_int, static, tensor,
)
from plimsoll.tf._ops.elementwise import named
from plimsoll.tf._ops.concat_split import pad, tile
from plimsoll.tf._ops.image_resize import ResizeMethod, resize  # noqa: F401
from plimsoll.tf.io import (  # noqa: F401
    decode_bmp, decode_image, decode_jpeg, decode_png, encode_jpeg, encode_png, is_jpeg,
)

__all__ = [
    "ResizeMethod", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue",
    "adjust_saturation", "central_crop", "convert_image_dtype", "crop_to_bounding_box",
    "decode_bmp", "decode_image", "decode_jpeg", "decode_png", "encode_jpeg", "encode_png",
    "flip_left_right",
    "flip_up_down", "grayscale_to_rgb", "hsv_to_rgb", "is_jpeg", "pad_to_bounding_box",
    "per_image_standardization", "psnr", "random_brightness", "random_contrast", "random_crop",
    "random_flip_left_right", "random_flip_up_down", "random_hue", "random_saturation", "resize",
    "resize_with_crop_or_pad", "resize_with_pad", "rgb_to_grayscale", "rgb_to_hsv", "rot90",
    "stateless_random_brightness", "stateless_random_contrast", "stateless_random_crop",
    "stateless_random_flip_left_right", "stateless_random_flip_up_down", "stateless_random_hue",
    "stateless_random_saturation", "total_variation", "transpose",
]

__getattr__ = _not_implemented.getter("tf.image")
_op, _binary, _unary = _core.op, _core.binary, _core.unary
_WHOLE = (1 << 63) - 1


def _picture(image: Any, op: str) -> tuple[Tensor, tuple]:
    """It, and its dimensions; ValueError if it has not 3 or 4 axes."""
    x = tensor(image)
    known = dims(x)
    if known is None:
        raise NotImplementedError(f"tf.image.{op} of a tensor whose rank is not known while a "
                                  "function is traced: say its shape with set_shape()")
    if len(known) not in (3, 4):
        raise ValueError(f"'image' (shape {x.shape}) must have either 3 or 4 dimensions.")
    return x, known


def _late(function: Callable[..., Tensor], x: Tensor, numbers: tuple, shape: Any) -> Tensor | None:
    """What `function` makes of the picture and of whole numbers that only a run tells; None if all
    of them are known now."""
    if all(static(n) is not None for n in numbers):
        return None
    return eager_call(lambda p, *given: function(p, *(int(n) for n in given)), [x, *numbers],
                      x.dtype, shape)


# ---- dtypes and colours ----


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False,
                        name: str | None = None) -> Tensor:
    """Pixels of another dtype: whole numbers go up to their largest, others from 0 to 1.

    >>> tf.image.convert_image_dtype(tf.constant([0, 255], tf.uint8), tf.float32).numpy().tolist()
    [0.0, 1.0]
    """
    x, dtype = tensor(image), _types.as_dtype(dtype)
    if not (dtype.is_floating or dtype.is_integer):
        raise AttributeError("dtype must be either floating point or integer")
    if x.dtype == dtype:
        return _unary("identity", x, name)
    if x.dtype.is_floating and dtype.is_floating:
        return cast(x, dtype, name)
    if dtype.is_floating:
        return _binary("mul", cast(x, dtype), 1.0 / x.dtype.max, name)
    if x.dtype.is_floating:
        scaled = _binary("mul", x, dtype.max + 0.5)
        return saturate_cast(scaled, dtype, name) if saturate else cast(scaled, dtype, name)
    return _other_integers(x, dtype, saturate, name)


def _other_integers(x: Tensor, dtype: Any, saturate: bool, name: str | None) -> Tensor:
    """Bits are dropped, or added below."""
    have, want = x.dtype.max, dtype.max
    to = saturate_cast if saturate else cast
    if have > want:
        return to(_binary("floordiv", x, (have + 1) // (want + 1)), dtype, name)
    wide = to(x, dtype)
    return _binary("mul", wide, (want + 1) // (have + 1), name) if want > have else wide


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """One channel of three: 0.2989 red, 0.587 green, 0.114 blue.

    >>> tf.image.rgb_to_grayscale(tf.constant([[[255, 255, 255]]], tf.uint8)).numpy().tolist()
    [[[255]]]
    """
    x = tensor(images)
    weights = _core.constant([0.2989, 0.5870, 0.1140], _types.float32)
    real = convert_image_dtype(x, _types.float32)
    grey = _op("sum", [_binary("mul", real, weights)], {"axes": [-1], "keepdims": True})
    return convert_image_dtype(grey, x.dtype, name=name)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Three channels, all the same.

    >>> tf.image.grayscale_to_rgb([[[1.0]]]).numpy().tolist()
    [[[1.0, 1.0, 1.0]]]
    """
    x = tensor(images)
    known = dims(x)
    if known is None or known[-1] not in (1, None):
        raise ValueError(f"Last dimension of a grayscale image should be size 1, and shape is "
                         f"{x.shape}")
    return tile(x, [1] * (len(known) - 1) + [3], name)


def _changed(image: Any, change: Callable[[Tensor], Tensor], name: str | None) -> Tensor:
    """As floating-point numbers, then in its own dtype."""
    x = tensor(image)
    if x.dtype in (_types.float16, _types.float32):
        return _unary("identity", change(x), name)
    real = change(convert_image_dtype(x, _types.float32))
    return convert_image_dtype(real, x.dtype, saturate=True, name=name)


def adjust_brightness(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """`delta` more everywhere, where pixels go from 0 to 1.

    >>> tf.image.adjust_brightness([[[0.25]]], 0.5).numpy().tolist()
    [[[0.75]]]
    """
    return _changed(image, lambda x: _binary("add", x, _core.convert(delta, x.dtype)), name)


def adjust_contrast(images: Any, contrast_factor: Any, name: str | None = None) -> Tensor:
    """Each channel's distance from its mean times a factor.

    >>> tf.image.adjust_contrast([[[1.0], [3.0]]], 2.0).numpy().tolist()
    [[[0.0], [4.0]]]
    """
    def change(x: Tensor) -> Tensor:
        mean = _op("mean", [x], {"axes": [-3, -2], "keepdims": True})
        apart = _binary("mul", _binary("sub", x, mean), _core.convert(contrast_factor, x.dtype))
        return _binary("add", apart, mean)

    return _changed(images, change, name)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """gain * x to the power of gamma.

    >>> tf.image.adjust_gamma([[[0.5]]], 2.0).numpy().tolist()
    [[[0.25]]]
    """
    if isinstance(gamma, (int, float)) and gamma < 0:
        raise ValueError("Gamma should be a non-negative real number.")

    def change(x: Tensor) -> Tensor:
        power = _binary("pow", x, _core.convert(gamma, x.dtype))
        return _binary("mul", power, _core.convert(gain, x.dtype))

    return _changed(image, change, None)


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Hue, saturation and value, all from 0 to 1.

    >>> tf.image.rgb_to_hsv([[[1.0, 0.0, 0.0]]]).numpy().tolist()
    [[[0.0, 1.0, 1.0]]]
    """
    x = floats(images)
    red, green, blue = (x[..., i:i + 1] for i in range(3))
    value = _op("max", [x], {"axes": [-1], "keepdims": True})
    spread = _binary("sub", value, _op("min", [x], {"axes": [-1], "keepdims": True}))
    none = _binary("equal", spread, 0)
    zero, one = _core.convert(0, x.dtype), _core.convert(1, x.dtype)
    safe = _op("where", [none, one, spread])
    sixth = 1.0 / 6.0
    of_red = _binary("mul", _binary("div", _binary("sub", green, blue), safe), sixth)
    of_green = _binary("mul", _binary("div", _binary("sub", blue, red), safe), sixth) + 2 * sixth
    of_blue = _binary("mul", _binary("div", _binary("sub", red, green), safe), sixth) + 4 * sixth
    hue = _op("where", [_binary("equal", green, value), of_green, of_blue])
    hue = _op("where", [_binary("equal", red, value), of_red, hue])
    hue = _op("where", [_binary("less", hue, 0), hue + 1, hue])
    black = _binary("equal", value, 0)
    saturation = _binary("div", spread, _op("where", [black, one, value]))
    hue = _op("where", [none, zero, hue])
    return _op("concat", [hue, _op("where", [black, zero, saturation]), value], {"axis": -1}, name)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Its inverse.

    >>> tf.image.hsv_to_rgb([[[0.0, 1.0, 1.0]]]).numpy().tolist()
    [[[1.0, 0.0, 0.0]]]
    """
    x = floats(images)
    hue, saturation, value = (x[..., i:i + 1] for i in range(3))
    h6 = hue * 6
    ends = [_core.convert(0, x.dtype), _core.convert(1, x.dtype)]
    parts = [_op("clip", [abs(h6 - 3) - 1, *ends]), _op("clip", [2 - abs(h6 - 2), *ends]),
             _op("clip", [2 - abs(h6 - 4), *ends])]
    mixed = [_binary("mul", 1 - saturation + saturation * part, value) for part in parts]
    return _op("concat", mixed, {"axis": -1}, name)


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Colours stronger, or paler.

    >>> tf.image.adjust_saturation([[[1.0, 0.5, 0.5]]], 0.0).numpy().tolist()
    [[[1.0, 1.0, 1.0]]]
    """
    def change(x: Tensor) -> Tensor:
        hsv = rgb_to_hsv(x)
        ends = [_core.convert(0, x.dtype), _core.convert(1, x.dtype)]
        stronger = _op("clip", [hsv[..., 1:2] * _core.convert(saturation_factor, x.dtype), *ends])
        return hsv_to_rgb(_op("concat", [hsv[..., :1], stronger, hsv[..., 2:]], {"axis": -1}))

    return _changed(image, change, name)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Colours `delta` (-1 to 1) further around the wheel.

    >>> tf.image.adjust_hue([[[1.0, 0.0, 0.0]]], 0.5).numpy().round(3).tolist()
    [[[0.0, 1.0, 1.0]]]
    """
    def change(x: Tensor) -> Tensor:
        hsv = rgb_to_hsv(x)
        hue = _binary("mod", hsv[..., :1] + _core.convert(delta, x.dtype),
                      _core.convert(1, x.dtype))
        return hsv_to_rgb(_op("concat", [hue, hsv[..., 1:]], {"axis": -1}))

    return _changed(image, change, name)


def per_image_standardization(image: Any) -> Tensor:
    """Each picture with mean 0 and variance 1.

    >>> tf.image.per_image_standardization([[[1.0], [3.0]]]).numpy().tolist()
    [[[-1.0], [1.0]]]
    """
    x, _ = _picture(image, "per_image_standardization")
    x = x if x.dtype in (_types.float16, _types.float32) else cast(x, _types.float32)
    axes = {"axes": [-3, -2, -1], "keepdims": True}
    mean = _op("mean", [x], axes)
    deviation = _unary("sqrt", _op("variance", [x], axes))
    count = _op("sum", [_op("fill", [x], {"dtype": x.dtype, "value": 1})], axes)
    least = _unary("rsqrt", count)
    return _binary("div", _binary("sub", x, mean), _binary("maximum", deviation, least))


# ---- turned and flipped ----


def _flip(name: str, axis: int, doc: str, example: str) -> Callable[..., Tensor]:
    def function(image: Any) -> Tensor:
        x, known = _picture(image, name)
        return _op("reverse", [x], {"axes": [len(known) + axis]})

    return named(function, name, doc, example, __name__)


flip_left_right = _flip("flip_left_right", -2, "Right is left.",
                        "image.flip_left_right([[[1], [2]]]) => [[[2], [1]]]")
flip_up_down = _flip("flip_up_down", -3, "Up is down.",
                     "image.flip_up_down([[[1]], [[2]]]) => [[[2]], [[1]]]")


def _random_flip(name: str, axis: int, stateless: bool) -> Callable[..., Tensor]:
    def flipped(image: Any, draw: Callable[[Any], Tensor]) -> Tensor:
        x, known = _picture(image, name)
        turned = _op("reverse", [x], {"axes": [len(known) + axis]})
        if len(known) == 3:
            chance = draw([])
        elif known[0] is not None:
            chance = draw([known[0], 1, 1, 1])
        else:
            part = _op("slice", [x], {"start": [0, 0, 0, 0], "stop": [_WHOLE, 1, 1, 1]})
            chance = draw(_op("fill", [part], {"dtype": _types.float32, "value": 0}))
        return _op("where", [_binary("less", chance, 0.5), turned, x])

    def function(image: Any, seed: Any = None) -> Tensor:
        return flipped(image, lambda shape: _random.draw("random_uniform", shape,
                                                         {"dtype": _types.float32}, seed, None))

    def repeatable(image: Any, seed: Any) -> Tensor:
        by_seed = _random._stateless(seed)
        return flipped(image, lambda shape: by_seed("random_uniform", shape,
                                                    {"dtype": _types.float32}, None))

    size = [[[1, 2]]] if axis == -1 else [[[1]], [[1]]]
    argument = ", seed=[1, 2]" if stateless else ""
    return named(repeatable if stateless else function, name,
                 "Flipped, or not, by chance: each picture by itself.",
                 f"image.{name}({size}{argument}) => {size}", __name__)


random_flip_left_right = _random_flip("random_flip_left_right", -2, False)
random_flip_up_down = _random_flip("random_flip_up_down", -3, False)
stateless_random_flip_left_right = _random_flip("stateless_random_flip_left_right", -2, True)
stateless_random_flip_up_down = _random_flip("stateless_random_flip_up_down", -3, True)


def transpose(image: Any, name: str | None = None) -> Tensor:
    """Rows are columns.

    >>> tf.image.transpose([[[1], [2]]]).numpy().tolist()
    [[[1]], [[2]]]
    """
    x, known = _picture(image, "transpose")
    return _transposed(x, [1, 0, 2] if len(known) == 3 else [0, 2, 1, 3], name=name)


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """Turned by 90 degrees to the left, k times.

    >>> tf.image.rot90([[[1], [2]]]).numpy().tolist()
    [[[2]], [[1]]]
    """
    x, known = _picture(image, "rot90")
    late = _late(rot90, x, (k,), (*known[:-3], None, None, known[-1]))
    if late is not None:
        return late
    rows, columns = len(known) - 3, len(known) - 2
    turn = int(static(k)) % 4
    if turn == 0:
        return _unary("identity", x, name)
    if turn == 2:
        return _op("reverse", [x], {"axes": [rows, columns]}, name)
    axes = [columns] if turn == 1 else [rows]
    # To the left: the last column becomes the first row.
    return transpose(_op("reverse", [x], {"axes": axes}), name)


# ---- cut and padded ----


def crop_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any,
                         target_width: Any) -> Tensor:
    """A box of each picture.

    >>> tf.image.crop_to_bounding_box([[[1], [2], [3]]], 0, 1, 1, 2).numpy().tolist()
    [[[2], [3]]]
    """
    x, known = _picture(image, "crop_to_bounding_box")
    late = _late(crop_to_bounding_box, x,
                 (offset_height, offset_width, target_height, target_width),
                 (*known[:-3], static(target_height), static(target_width), known[-1]))
    if late is not None:
        return late
    box = [one_int(n, "image.crop_to_bounding_box: the box") for n in
           (offset_height, offset_width, target_height, target_width)]
    top, left, height, width = box
    if min(top, left) < 0 or min(height, width) < 1:
        raise ValueError(f"crop_to_bounding_box: offsets are not negative and sizes positive: "
                         f"{box}")
    for offset, size, n, what in ((top, height, known[-3], "height"), (left, width, known[-2],
                                                                       "width")):
        if n is not None and offset + size > n:
            raise ValueError(f"{what} must be >= target + offset.")
    ahead = [0] * (len(known) - 3)
    return _op("crop", [x], {"start": [*ahead, top, left, 0],
                             "size": [*(-1 for _ in ahead), height, width, -1]})


def pad_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any,
                        target_width: Any) -> Tensor:
    """With zeros around it: so many above and on the left, the rest on the other sides.

    >>> tf.image.pad_to_bounding_box([[[1]]], 0, 1, 1, 3).numpy().tolist()
    [[[0], [1], [0]]]
    """
    x, known = _picture(image, "pad_to_bounding_box")
    late = _late(pad_to_bounding_box, x,
                 (offset_height, offset_width, target_height, target_width),
                 (*known[:-3], static(target_height), static(target_width), known[-1]))
    if late is not None:
        return late
    top, left, height, width = (one_int(n, "image.pad_to_bounding_box: the box") for n in
                                (offset_height, offset_width, target_height, target_width))
    if None in known[-3:-1]:
        return eager_call(lambda p: pad_to_bounding_box(p, top, left, height, width), [x], x.dtype,
                          (*known[:-3], height, width, known[-1]))
    bottom, right = height - top - known[-3], width - left - known[-2]
    if min(top, left) < 0:
        raise ValueError("offset must be >= 0.")
    if min(bottom, right) < 0:
        raise ValueError("target must be >= image + offset.")
    ahead = [[0, 0]] * (len(known) - 3)
    return pad(x, [*ahead, [top, bottom], [left, right], [0, 0]])


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Crops an axis that is too large on both sides, pads one that is too small.

    >>> tf.image.resize_with_crop_or_pad([[[1], [2], [3]]], 3, 1).numpy().tolist()
    [[[0]], [[2]], [[0]]]
    """
    x, known = _picture(image, "resize_with_crop_or_pad")
    late = _late(resize_with_crop_or_pad, x, (target_height, target_width),
                 (*known[:-3], static(target_height), static(target_width), known[-1]))
    if late is not None:
        return late
    height, width = (one_int(n, "image.resize_with_crop_or_pad: the size") for n in
                     (target_height, target_width))
    if min(height, width) < 1:
        raise ValueError("target_height and target_width must be > 0.")
    if None in known[-3:-1]:
        return eager_call(lambda p: resize_with_crop_or_pad(p, height, width), [x], x.dtype,
                          (*known[:-3], height, width, known[-1]))
    rows, columns = known[-3], known[-2]
    cut = crop_to_bounding_box(x, max((rows - height) // 2, 0), max((columns - width) // 2, 0),
                               min(rows, height), min(columns, width))
    return pad_to_bounding_box(cut, max((height - rows) // 2, 0), max((width - columns) // 2, 0),
                               height, width)


def resize_with_pad(image: Any, target_height: Any, target_width: Any,
                    method: Any = ResizeMethod.BILINEAR, antialias: bool = False) -> Tensor:
    """Resized in its proportion, and padded where that leaves room.

    >>> tf.image.resize_with_pad([[[1.0], [1.0]]], 2, 2).shape
    TensorShape([2, 2, 1])
    """
    x, known = _picture(image, "resize_with_pad")
    height, width = (one_int(n, "image.resize_with_pad: the size") for n in
                     (target_height, target_width))
    if min(height, width) < 1:
        raise ValueError("target_height and target_width must be > 0.")
    dtype = x.dtype if method == ResizeMethod.NEAREST_NEIGHBOR else _types.float32
    if None in known[-3:-1]:
        return eager_call(lambda p: resize_with_pad(p, height, width, method, antialias), [x],
                          dtype, (*known[:-3], height, width, known[-1]))
    ratio = max(known[-2] / width, known[-3] / height)
    rows, columns = max(int(known[-3] / ratio), 1), max(int(known[-2] / ratio), 1)
    small = resize(x, [rows, columns], method, antialias=antialias)
    return pad_to_bounding_box(small, max(int((height - known[-3] / ratio) / 2), 0),
                               max(int((width - known[-2] / ratio) / 2), 0), height, width)


def central_crop(image: Any, central_fraction: Any) -> Tensor:
    """The middle: this share of height and width.

    >>> tf.image.central_crop([[[1], [2], [3], [4]]], 0.5).shape
    TensorShape([1, 2, 1])
    """
    x, known = _picture(image, "central_crop")
    share = static(central_fraction)
    if share is None or not 0.0 < share <= 1.0:
        raise ValueError("central_fraction must be within (0, 1]")
    if share == 1.0:
        return x
    if None in known[-3:-1]:
        return eager_call(lambda p: central_crop(p, share), [x], x.dtype,
                          (*known[:-3], None, None, known[-1]))
    top, left = (int((n - n * share) / 2) for n in known[-3:-1])
    return crop_to_bounding_box(x, top, left, known[-3] - 2 * top, known[-2] - 2 * left)


def _cropped(value: Any, size: Any, draw: Callable[[Any], Tensor]) -> Tensor:
    """A box at offsets that are drawn: index by index, so that it can be traced."""
    x, wanted = tensor(value), static(size)
    known = dims(x)
    if wanted is None or known is None or None in known or len(wanted) != len(known):
        if wanted is None or known is None or len(wanted) != len(known):
            raise ValueError("random_crop: 'size' has one number for each axis of 'value'")
        chance = draw([len(known)])
        return eager_call(lambda p, c: _boxed(p, wanted, c), [x, chance], x.dtype, wanted)
    return _boxed(x, wanted, draw([len(known)]))


def _boxed(x: Tensor, size: list[int], chance: Tensor) -> Tensor:
    known = dims(x)
    if any(n > have for n, have in zip(size, known)):
        invalid(f"Need value.shape >= size, got {list(known)} and {size}")
    for axis, (n, have) in enumerate(zip(size, known)):
        if n < have:
            start = cast(_binary("mul", chance[axis], float(have - n + 1)), _types.int64)
            start = _binary("minimum", start, have - n)
            places = _binary("add", _op("range", (), {"dtype": _types.int64, "stop": n}), start)
            x = _op("gather", [x, places], {"axis": axis})
    return x


def random_crop(value: Any, size: Any, seed: Any = None, name: str | None = None) -> Tensor:
    """A box of this size, somewhere.

    >>> tf.image.random_crop([[1, 2], [3, 4]], [1, 2]).shape
    TensorShape([1, 2])
    """
    return _cropped(value, size, lambda shape: _random.draw(
        "random_uniform", shape, {"dtype": _types.float64}, seed, None))


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Tensor:
    """random_crop(), always the same for a seed of two numbers.

    >>> tf.image.stateless_random_crop([[1, 2], [3, 4]], [1, 2], [1, 2]).shape
    TensorShape([1, 2])
    """
    by_seed = _random._stateless(seed)
    return _cropped(value, size, lambda shape: by_seed("random_uniform", shape,
                                                       {"dtype": _types.float64}, None))


# ---- changed by chance ----


def _by_chance(name: str, change: Callable[[Any, Any], Tensor], stateless: bool, one_limit: bool,
               least: float, doc: str) -> Callable[..., Tensor]:
    """random_brightness() and its like: one number within limits, then `change`."""

    def limits(lower: Any, upper: Any) -> tuple[float, float]:
        if one_limit:
            lower, upper = -lower, lower
            if upper < 0:
                raise ValueError("max_delta must be non-negative.")
        elif upper <= lower:
            raise ValueError("upper must be > lower.")
        elif lower < least:
            raise ValueError("lower must be non-negative.")
        return float(lower), float(upper)

    def changed(image: Any, ends: tuple[float, float], draw: Any) -> Tensor:
        if ends[0] == ends[1]:
            return change(image, ends[0])
        return change(image, draw("random_uniform", [], {"dtype": _types.float32, "low": ends[0],
                                                         "high": ends[1]}, None))

    def one(image: Any, max_delta: float, seed: Any = None) -> Tensor:
        return changed(image, limits(max_delta, None), _random._seeded(seed))

    def two(image: Any, lower: float, upper: float, seed: Any = None) -> Tensor:
        return changed(image, limits(lower, upper), _random._seeded(seed))

    def one_repeatable(image: Any, max_delta: float, seed: Any) -> Tensor:
        return changed(image, limits(max_delta, None), _random._stateless(seed))

    def two_repeatable(image: Any, lower: float, upper: float, seed: Any) -> Tensor:
        return changed(image, limits(lower, upper), _random._stateless(seed))

    made = ((one_repeatable if stateless else one) if one_limit else
            (two_repeatable if stateless else two))
    ends = "0.0" if one_limit else "1.0, 1.5"
    seed = ", seed=[1, 2]" if stateless else ""
    grey = "[[[0.5, 0.5, 0.5]]]"
    if "contrast" in name or "saturation" in name or one_limit:
        return named(made, name, doc, f"image.{name}({grey}, {ends}{seed}) => {grey}", __name__)
    return named(made, name, doc, "constant(0) => 0", __name__)


def _both(what: str, change: Callable[[Any, Any], Tensor], one_limit: bool, doc: str) -> list[Any]:
    return [_by_chance(prefix + what, change, bool(prefix[:1] == "s"), one_limit, 0.0, doc)
            for prefix in ("random_", "stateless_random_")]


random_brightness, stateless_random_brightness = _both(
    "brightness", adjust_brightness, True, "adjust_brightness() by chance, up to `max_delta`.")
random_contrast, stateless_random_contrast = _both(
    "contrast", adjust_contrast, False, "adjust_contrast() by chance, within limits.")
random_hue, stateless_random_hue = _both(
    "hue", adjust_hue, True, "adjust_hue() by chance, up to `max_delta`.")
random_saturation, stateless_random_saturation = _both(
    "saturation", adjust_saturation, False, "adjust_saturation() by chance, within limits.")


# ---- measured ----


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of differences between neighbours: how noisy a picture is.

    >>> tf.image.total_variation([[[1.0], [3.0]]]).numpy().tolist()
    2.0
    """
    x, _ = _picture(images, "total_variation")
    down = _unary("abs", _binary("sub", x[..., 1:, :, :], x[..., :-1, :, :]))
    across = _unary("abs", _binary("sub", x[..., 1:, :], x[..., :-1, :]))
    axes = {"axes": [-3, -2, -1]}
    return _binary("add", cast(_op("sum", [down], axes), x.dtype),
                   cast(_op("sum", [across], axes), x.dtype), name)


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """Peak signal to noise ratio of two pictures, in decibels.

    >>> tf.image.psnr([[[0.0]]], [[[1.0]]], max_val=1.0).numpy().tolist()
    0.0
    """
    import math

    x, y = tensor(a), tensor(b)
    top = convert_image_dtype(_core.convert(max_val, x.dtype), _types.float32)
    x, y = (convert_image_dtype(p, _types.float32) for p in (x, y))
    error = _op("mean", [_unary("square", _binary("sub", x, y))], {"axes": [-3, -2, -1]})
    decibels = 10 / math.log(10)
    signal = _binary("mul", _unary("log", top), 2 * decibels)
    return _binary("sub", signal, _binary("mul", _unary("log", error), decibels), name)
