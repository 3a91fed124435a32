# SPDX-License-Identifier: Apache-2.0
"""tf.nn: activations, losses and normalisation, made of the library's ops."""
from __future__ import annotations

import math as _numbers
from typing import Any

from plimsoll import _core
from plimsoll.tf import _not_implemented
from plimsoll.tf._values import types as _types
from plimsoll.tf._ops.reshape import cast, identity, reshape
from plimsoll.tf._values.convert import (
    Tensor, axes_of, dims, floats, invalid, pair, rank_of, static, tensor,
)
from plimsoll.tf._ops.elementwise import sigmoid, tanh, unary  # noqa: F401
from plimsoll.tf._ops.concat_split import concat
from plimsoll.tf._ops.reduce import (  # noqa: F401
    in_top_k, norm, reduce_sum, top_k, widened,
)

__all__ = [
    "batch_normalization", "bias_add", "crelu", "dropout", "elu", "embedding_lookup", "gelu",
    "in_top_k", "l2_loss", "l2_normalize", "leaky_relu", "log_softmax", "moments",
    "relu", "relu6", "selu", "sigmoid", "sigmoid_cross_entropy_with_logits", "silu", "softmax",
    "softmax_cross_entropy_with_logits", "softplus", "softsign",
    "sparse_softmax_cross_entropy_with_logits", "swish", "tanh", "top_k",
    "weighted_cross_entropy_with_logits", "zero_fraction",
]

__getattr__ = _not_implemented.getter("tf.nn")
_unary, _binary, _op = _core.unary, _core.binary, _core.op

# ---- activations ----

def relu(features: Any, name: str | None = None) -> Tensor:
    """x, or 0 where it is negative.

    >>> tf.nn.relu([-2.0, 3.0]).numpy().tolist()
    [0.0, 3.0]
    """
    return _unary("relu", features, name)


def relu6(features: Any, name: str | None = None) -> Tensor:
    """Between 0 and 6.

    >>> tf.nn.relu6([-3.0, 6.0, 10.0]).numpy().tolist()
    [0.0, 6.0, 6.0]
    """
    x = tensor(features)
    return _op("clip", [x, _core.convert(0, x.dtype), _core.convert(6, x.dtype)], None, name)


def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Tensor:
    """x, or alpha * x where it is negative.

    >>> tf.nn.leaky_relu([-10.0, 3.0], alpha=0.5).numpy().tolist()
    [-5.0, 3.0]
    """
    x = tensor(features)
    x = cast(x, _types.float32) if x.dtype.is_integer else x
    return _op("where", [_binary("greater", x, 0), x, _binary("mul", x, alpha)], None, name)


def elu(features: Any, name: str | None = None) -> Tensor:
    """x, or exp(x) - 1 where it is negative.

    >>> tf.nn.elu([0.0, 3.0]).numpy().tolist()
    [0.0, 3.0]
    """
    x = floats(features)
    return _op("where", [_binary("greater", x, 0), x, _unary("expm1", x)], None, name)


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def selu(features: Any, name: str | None = None) -> Tensor:
    """Scaled elu: keeps mean 0 and variance 1.

    >>> tf.nn.selu([0.0]).numpy().tolist()
    [0.0]
    """
    x = floats(features)
    below = _binary("mul", _unary("expm1", x), _SELU_ALPHA * _SELU_SCALE)
    return _op("where", [_binary("greater", x, 0), _binary("mul", x, _SELU_SCALE), below], None,
               name)


def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """x times the normal distribution's share below x.

    >>> tf.nn.gelu([0.0]).numpy().tolist()
    [0.0]
    """
    x = floats(features)
    if approximate:
        cube = _binary("mul", _binary("mul", _unary("square", x), x), 0.044715)
        scale = _numbers.sqrt(2 / _numbers.pi)
        inner = _unary("tanh", _binary("mul", _binary("add", x, cube), scale))
    else:
        inner = _unary("erf", _binary("mul", x, _numbers.sqrt(0.5)))
    return _binary("mul", _binary("mul", x, 0.5), _binary("add", inner, 1), name)


def silu(features: Any, beta: Any = 1.0) -> Tensor:
    """x * sigmoid(beta * x).

    >>> tf.nn.silu([0.0]).numpy().tolist()
    [0.0]
    """
    x = floats(features)
    return _binary("mul", x, _unary("sigmoid", _binary("mul", x, beta)))


swish = silu


def softplus(features: Any, name: str | None = None) -> Tensor:
    """log(exp(x) + 1), without overflow.

    >>> tf.nn.softplus([1000.0]).numpy().tolist()
    [1000.0]
    """
    x = floats(features)
    more = _unary("log1p", _unary("exp", _unary("neg", _unary("abs", x))))
    return _binary("add", _unary("relu", x), more, name)


def softsign(features: Any, name: str | None = None) -> Tensor:
    """x / (abs(x) + 1).

    >>> tf.nn.softsign([1.0, -1.0]).numpy().tolist()
    [0.5, -0.5]
    """
    x = floats(features)
    return _binary("div", x, _binary("add", _unary("abs", x), 1), name)


def crelu(features: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """relu of x, and behind it relu of -x.

    >>> tf.nn.crelu([-2.0, 3.0]).numpy().tolist()
    [0.0, 3.0, 2.0, 0.0]
    """
    x = floats(features)
    return _unary("relu", concat([x, _unary("neg", x)], axis), name)


def softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis (the last).

    >>> tf.nn.softmax([0.0, 0.0]).numpy().tolist()
    [0.5, 0.5]
    """
    return _op("softmax", [tensor(logits)], {"axis": -1 if axis is None else axis}, name)


def log_softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """log(softmax(x)), without overflow.

    >>> tf.nn.log_softmax([1000.0, 0.0]).numpy().tolist()
    [0.0, -1000.0]
    """
    return _op("log_softmax", [tensor(logits)], {"axis": -1 if axis is None else axis}, name)


# ---- losses ----


def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = -1,
                                      name: str | None = None) -> Tensor:
    """Between a distribution of classes and softmax(logits).

    >>> tf.nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], [[0.0, 1000.0]]).numpy().tolist()
    [1000.0]
    """
    scores = floats(logits)
    share = cast(labels, scores.dtype) if isinstance(labels, Tensor) else \
        _core.convert(labels, scores.dtype)
    weighted = _binary("mul", share, log_softmax(scores, axis))
    return _unary("neg", _op("sum", [weighted], {"axes": [axis]}), name)


def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any,
                                             name: str | None = None) -> Tensor:
    """The same for labels that are one class each.

    >>> tf.nn.sparse_softmax_cross_entropy_with_logits([0], [[0.0, 1000.0]]).numpy().tolist()
    [1000.0]
    """
    scores, classes = floats(logits), tensor(labels)
    known, wanted = dims(scores), dims(classes)
    if known is None or known[-1] is None:
        raise NotImplementedError("tf.nn.sparse_softmax_cross_entropy_with_logits of a number of "
                                  "classes that is only known when it is run: say it with "
                                  "set_shape()")
    if wanted is not None and len(wanted) != len(known) - 1:
        raise ValueError(f"`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: "
                         f"labels.shape={classes.shape} and logits.shape={scores.shape}")
    n, classes = known[-1], cast(classes, _types.int64)
    inside = _binary("logical_and", _binary("greater_equal", classes, 0),
                     _binary("less", classes, n))
    flat = reshape(log_softmax(scores), [-1])
    if len(known) != 2:
        classes, inside = reshape(classes, [-1]), reshape(inside, [-1])
    row = _row_numbers(classes)
    # A label that is not a class becomes an index that gather refuses.
    place = _op("where", [inside, _binary("add", _binary("mul", row, n), classes),
                          _core.constant(1 << 62, _types.int64)])
    loss = _unary("neg", _op("gather", [flat, place], {"axis": 0}), name)
    if len(known) == 2:
        return loss
    return reshape(loss, [-1 if d is None else d for d in known[:-1]])


def _row_numbers(x: Tensor) -> Tensor:
    """0, 1, 2 ... in the shape of a vector."""
    (n,) = dims(x)
    if n is not None:
        return _op("range", (), {"dtype": _types.int64, "stop": n})
    ones = _op("fill", [x], {"dtype": _types.int64, "value": 1})
    return _op("cumsum", [ones], {"axis": 0, "exclusive": True})


def _with_logits(labels: Any, logits: Any) -> tuple[Tensor, Tensor]:
    x = floats(logits)
    z = labels if isinstance(labels, Tensor) else _core.convert(labels, x.dtype)
    if not z.shape.is_compatible_with(x.shape):
        raise ValueError(f"`logits` and `labels` must have the same shape, received ({x.shape} vs "
                         f"{z.shape}).")
    return z, x


def sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None,
                                      name: str | None = None) -> Tensor:
    """Between labels and sigmoid(logits), each class by itself.

    >>> tf.nn.sigmoid_cross_entropy_with_logits([1.0], [1000.0]).numpy().tolist()
    [0.0]
    """
    z, x = _with_logits(labels, logits)
    more = _unary("log1p", _unary("exp", _unary("neg", _unary("abs", x))))
    return _binary("add", _binary("sub", _unary("relu", x), _binary("mul", x, z)), more, name)


def weighted_cross_entropy_with_logits(labels: Any, logits: Any, pos_weight: Any,
                                       name: str | None = None) -> Tensor:
    """The same, with positive labels counted `pos_weight` times.

    >>> tf.nn.weighted_cross_entropy_with_logits([1.0], [1000.0], 2.0).numpy().tolist()
    [0.0]
    """
    z, x = _with_logits(labels, logits)
    extra = _binary("sub", pos_weight, _core.convert(1, x.dtype))
    weight = _binary("add", _binary("mul", z, extra), 1)
    more = _unary("log1p", _unary("exp", _unary("neg", _unary("abs", x))))
    more = _binary("mul", weight, _binary("add", more, _unary("relu", _unary("neg", x))))
    return _binary("add", _binary("mul", _binary("sub", 1, z), x), more, name)


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half of the sum of squares.

    >>> tf.nn.l2_loss([3.0, 4.0]).numpy().tolist()
    12.5
    """
    return _binary("mul", _op("sum", [_unary("square", floats(t))], None), 0.5, name)


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The share of zeros.

    >>> tf.nn.zero_fraction([0.0, 1.0, 0.0, 2.0]).numpy().tolist()
    0.5
    """
    x = tensor(value)
    none = cast(_binary("equal", x, _core.convert(0, x.dtype)), _types.float32)
    return _op("mean", [none], None, name)


# ---- normalisation ----


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None,
                 dim: Any = None) -> Tensor:
    """Divided by its norm along some axes.

    >>> tf.nn.l2_normalize([3.0, 4.0]).numpy().round(3).tolist()
    [0.6000000238418579, 0.800000011920929]
    """
    x = floats(x)
    wide = widened(x)
    squares = reduce_sum(_unary("square", wide), axis if dim is None else dim, keepdims=True)
    scaled = _binary("mul", wide, _unary("rsqrt", _binary("maximum", squares, epsilon)))
    return cast(scaled, x.dtype, name) if scaled.dtype != x.dtype else identity(scaled, name)


def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None,
              name: str | None = None) -> tuple[Tensor, Tensor]:
    """Divided by its norm; and the norm.

    >>> tf.linalg.normalize([3.0, 4.0])[1].numpy().tolist()
    [5.0]
    """
    x = floats(tensor)
    length = norm(x, ord, axis, keepdims=True)
    return _binary("div", x, length, name), length


def moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False,
            name: str | None = None) -> tuple[Tensor, Tensor]:
    """Mean and variance over some axes.

    >>> mean, variance = tf.nn.moments([1.0, 3.0], axes=[0])
    >>> mean.numpy().tolist(), variance.numpy().tolist()
    (2.0, 1.0)
    """
    x = floats(x)
    attrs = {"axes": axes_of(axes, "moments"), "keepdims": keepdims}
    return _op("mean", [x], attrs, name), _op("variance", [x], attrs)


def batch_normalization(x: Any, mean: Any, variance: Any, offset: Any, scale: Any,
                        variance_epsilon: float, name: str | None = None) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset.

    >>> tf.nn.batch_normalization([3.0], [1.0], [4.0], None, None, 0.0).numpy().tolist()
    [1.0]
    """
    x = floats(x)
    factor = _unary("rsqrt", _binary("add", _core.convert(variance, x.dtype), variance_epsilon))
    if scale is not None:
        factor = _binary("mul", factor, scale)
    shift = _binary("mul", _unary("neg", _core.convert(mean, x.dtype)), factor)
    if offset is not None:
        shift = _binary("add", shift, offset)
    return _binary("add", _binary("mul", x, factor), shift, name)


def bias_add(value: Any, bias: Any, data_format: str | None = None,
             name: str | None = None) -> Tensor:
    """A vector added along the channels: the last axis, or the second ("NC...").

    >>> tf.nn.bias_add([[1.0, 2.0]], [10.0, 20.0]).numpy().tolist()
    [[11.0, 22.0]]
    """
    x, b = pair(value, bias)
    if data_format not in (None, "N...C", "NC...", "NHWC", "NCHW", "NWC", "NCW", "NDHWC", "NCDHW"):
        raise ValueError(f"`data_format` must be of the form `N...C` or `NC...`. Received: "
                         f"data_format={data_format}")
    if b.shape.rank not in (1, None):
        raise ValueError(f"bias_add: 'bias' is a vector, and has shape {b.shape}")
    if data_format is not None and data_format.startswith("NC"):
        b = reshape(b, [-1] + [1] * (rank_of(x, "nn.bias_add") - 2))
    elif x.shape.rank and b.shape.rank and None not in (x.shape[-1], b.shape[0]) and \
            x.shape[-1] != b.shape[0]:
        invalid(f"bias_add: bias {b.shape} has not the last dimension of {x.shape}")
    return _binary("add", x, b, name)


def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None,
            name: str | None = None) -> Tensor:
    """A random share of the elements 0, the others made larger so that the sum stays.

    >>> tf.nn.dropout([1.0, 2.0], rate=0.0).numpy().tolist()
    [1.0, 2.0]
    """
    from plimsoll.tf import random

    x = tensor(x)
    if not x.dtype.is_floating:
        raise ValueError(f"`x.dtype` must be a floating point tensor as `x` will be scaled. "
                         f"Received: x_dtype={x.dtype!r}")
    share = static(rate)
    if share is not None and not 0 <= share < 1:
        raise ValueError("`rate` must be a scalar tensor or a float in the range [0, 1). "
                         f"Received: rate={rate}")
    if share == 0:
        return _unary("identity", x, name)
    if noise_shape is not None:
        known = dims(x)
        noise_shape = [d if d is not None else (known[i] if known else None)
                       for i, d in enumerate(noise_shape)]
        drawn = random.uniform(noise_shape, dtype=x.dtype, seed=seed)
    else:
        drawn = random.draw("random_uniform", x, {"dtype": x.dtype}, seed, None)
    keep = _binary("greater_equal", drawn, _core.convert(rate, x.dtype))
    scaled = _binary("div", x, _binary("sub", 1, _core.convert(rate, x.dtype)))
    return _op("where", [keep, scaled, _core.convert(0, x.dtype)], None, name)


def embedding_lookup(params: Any, ids: Any, max_norm: float | None = None,
                     name: str | None = None) -> Tensor:
    """Rows of a matrix.

    >>> tf.nn.embedding_lookup([[1.0], [2.0]], [1, 0]).numpy().tolist()
    [[2.0], [1.0]]
    """
    from plimsoll.tf._ops.elementwise import clip_by_norm

    if isinstance(params, (list, tuple)) and params and hasattr(params[0], "dtype"):
        if len(params) > 1:
            raise NotImplementedError("tf.nn.embedding_lookup of several parts")
        params = params[0]
    x = tensor(params)
    rows = _op("gather", [x, tensor(ids)], {"axis": 0}, name)
    if max_norm is None:
        return rows
    return clip_by_norm(rows, max_norm, [-1] if rank_of(x, "nn.embedding_lookup") == 2 else None)
