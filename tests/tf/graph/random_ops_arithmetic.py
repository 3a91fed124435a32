# SPDX-License-Identifier: Apache-2.0
"""Makers of steps that compute: elementwise, reductions, order, products. See random_graphs.py."""
import math

import numpy as np
from random_programs import FLOATS, INTEGERS, Unfit, op

import plimsoll.tf as tf

EXACT_OF_ONE = {
    "abs": (tf.abs, np.abs, "if"), "negative": (tf.negative, np.negative, "if"),
    "square": (tf.square, np.square, "iuf"), "sign": (tf.sign, np.sign, "if"),
    "relu": (tf.nn.relu, lambda x: np.maximum(x, x.dtype.type(0)), "if"),
    "floor": (tf.floor, np.floor, "f"), "ceil": (tf.math.ceil, np.ceil, "f"),
    "round": (tf.round, np.rint, "f"), "is_nan": (tf.math.is_nan, np.isnan, "f"),
    "is_inf": (tf.math.is_inf, np.isinf, "f"), "is_finite": (tf.math.is_finite, np.isfinite, "f"),
    "logical_not": (tf.logical_not, np.logical_not, "b"), "invert": (tf.bitwise.invert, np.invert, "iu"),
    "zeros_like": (tf.zeros_like, np.zeros_like, "iufb"), "identity": (tf.identity, np.array, "iufb"),
    "ones_like": (tf.ones_like, np.ones_like, "iuf"),
}  # fmt: skip
SMOOTH = {
    "tanh": (tf.tanh, np.tanh), "sin": (tf.sin, np.sin), "cos": (tf.cos, np.cos),
    "sigmoid": (tf.sigmoid, lambda x: 1 / (1 + np.exp(-x))), "atan": (tf.atan, np.arctan),
    "asinh": (tf.asinh, np.arcsinh), "softsign": (tf.nn.softsign, lambda x: x / (1 + np.abs(x))),
    "sqrt": (lambda x: tf.sqrt(tf.abs(x) + 1), lambda x: np.sqrt(np.abs(x) + 1)),
    "log1p": (lambda x: tf.math.log1p(tf.abs(x)), lambda x: np.log1p(np.abs(x))),
    "exp": (lambda x: tf.exp(tf.clip_by_value(x, -4, 4)), lambda x: np.exp(np.clip(x, -4, 4))),
    "acosh": (lambda x: tf.acosh(tf.abs(x) + 2), lambda x: np.arccosh(np.abs(x) + 2)),
    "softplus": (tf.math.softplus, lambda x: np.logaddexp(0, x)),
    "erf": (tf.math.erf, np.vectorize(math.erf, "d")), "erfc": (tf.math.erfc, np.vectorize(math.erfc, "d")),
    "atanh": (lambda x: tf.atanh(x / (tf.abs(x) + 1)), lambda x: np.arctanh(x / (np.abs(x) + 1))),
    "expm1": (lambda x: tf.math.expm1(tf.clip_by_value(x, -4, 4)), lambda x: np.expm1(np.clip(x, -4, 4))),
    "log_sigmoid": (tf.math.log_sigmoid, lambda x: -np.logaddexp(0, -x)),
    "elu": (tf.nn.elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "rsqrt": (lambda x: tf.math.rsqrt(tf.abs(x) + 1), lambda x: 1 / np.sqrt(np.abs(x) + 1)),
}  # fmt: skip
EXACT_OF_TWO = {
    "add": (tf.add, np.add, "iuf"), "subtract": (tf.subtract, np.subtract, "iuf"),
    "multiply": (tf.multiply, np.multiply, "iuf"), "maximum": (tf.maximum, np.maximum, "iuf"),
    "minimum": (tf.minimum, np.minimum, "iuf"),
    "squared_difference": (tf.math.squared_difference, lambda a, b: np.square(a - b), "iuf"),
    "equal": (tf.equal, np.equal, "iufb"), "not_equal": (tf.not_equal, np.not_equal, "iufb"),
    "less": (tf.less, np.less, "iuf"), "greater_equal": (tf.greater_equal, np.greater_equal, "iuf"),
    "logical_and": (tf.logical_and, np.logical_and, "b"), "logical_or": (tf.logical_or, np.logical_or, "b"),
    "bitwise_and": (tf.bitwise.bitwise_and, np.bitwise_and, "iu"),
    "bitwise_xor": (tf.bitwise.bitwise_xor, np.bitwise_xor, "iu"),
    "floordiv": (tf.math.floordiv, np.floor_divide, "iuf"), "mod": (tf.math.floormod, np.mod, "iuf"),
    "truncatemod": (tf.truncatemod, np.fmod, "iuf"),
    "left_shift": (lambda a, b: tf.bitwise.left_shift(a, b & 7), lambda a, b: a << (b & b.dtype.type(7)), "iu"),
    "right_shift": (lambda a, b: tf.bitwise.right_shift(a, b & 7), lambda a, b: a >> (b & b.dtype.type(7)), "iu"),
}  # fmt: skip


@op
def exact_of_one(p):
    name = p.chance.choice(list(EXACT_OF_ONE))
    function, oracle, kinds = EXACT_OF_ONE[name]
    x = p.numeric(kinds=kinds, finite=False)
    return name, function, [x], oracle(x.array)


@op
def smooth(p):
    name = p.chance.choice(list(SMOOTH))
    function, oracle = SMOOTH[name]
    x = p.numeric(kinds="f", exact=False)
    if x.near and x.scale > 20:
        raise Unfit  # the sine of what is large and rounded is anything
    return name, function, [x], oracle(x.array.astype("f8")).astype(x.array.dtype), True


@op
def exact_of_two(p):
    name = p.chance.choice(list(EXACT_OF_TWO))
    function, oracle, kinds = EXACT_OF_TWO[name]
    a = p.numeric(kinds=kinds, finite=False)
    b = p.partner(a, finite=False)
    return name, function, [a, b], oracle(a.array, b.array)


@op
def rounded_of_two(p):
    name, function, oracle = p.chance.choice((
        ("add", tf.add, np.add), ("subtract", tf.subtract, np.subtract), ("multiply", tf.multiply, np.multiply),
        ("divide", lambda a, b: a / (tf.abs(b) + 1), lambda a, b: a / (np.abs(b) + 1))))
    a = p.numeric(kinds="f", exact=False)
    b = p.partner(a, exact=False)
    if a.scale > 100 or b.scale > 100:
        raise Unfit
    return name, function, [a, b], oracle(a.array, b.array).astype(a.array.dtype), True


@op
def with_a_number(p):
    x = p.numeric(finite=False)
    n = p.chance.randint(0, 3)
    name, function, oracle = p.chance.choice((
        ("x + n", lambda t: t + n, lambda a: a + a.dtype.type(n)),
        ("n - x", lambda t: n - t, lambda a: a.dtype.type(n) - a),
        ("x * n", lambda t: t * n, lambda a: a * a.dtype.type(n)),
        ("x > n", lambda t: t > n, lambda a: a > n),
        ("maximum(x, n)", lambda t: tf.maximum(t, n), lambda a: np.maximum(a, a.dtype.type(n)))))
    return f"{name}, n = {n}", function, [x], oracle(x.array)


@op
def clip(p):
    x = p.numeric(exact=False, finite=False)
    return "clip_by_value(0, 5)", lambda t: tf.clip_by_value(t, 0, 5), [x], \
        np.clip(x.array, 0, 5).astype(x.array.dtype)


@op
def where(p):
    condition = p.numeric(kinds="b")
    x = p.pick(lambda v: v.array.shape == condition.array.shape, False, False)
    y = p.partner(x, False, False)
    return "where", tf.where, [condition, x, y], np.where(condition.array, x.array, y.array)


@op
def cast(p):
    x = p.numeric(kinds="iufb")
    dtype = p.chance.choice(INTEGERS + FLOATS + ("bool",))
    if x.kind == "f" and x.array.size and np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        if x.array.min() < info.min or x.array.max() > info.max:
            raise Unfit
    return f"cast to {dtype}", lambda t: tf.cast(t, dtype), [x], x.array.astype(dtype)


# ---- reductions ----


def plain_sum(array, axes, keep):
    return np.sum(array, axes, array.dtype if array.dtype.kind in "iu" else None, keepdims=keep)


def largest(function, low):
    def of_some(array, axes, keep):
        if array.dtype.kind == "f":
            start = -np.inf if low else np.inf
        else:
            start = np.iinfo(array.dtype).min if low else np.iinfo(array.dtype).max
        return function(array, axes, keepdims=keep, initial=start)

    return of_some


REDUCTIONS = {
    "reduce_sum": (tf.reduce_sum, plain_sum, "iuf", False),
    "reduce_max": (tf.reduce_max, largest(np.max, True), "iuf", True),
    "reduce_min": (tf.reduce_min, largest(np.min, False), "iuf", True),
    "reduce_any": (tf.reduce_any, lambda a, axes, keep: np.any(a, axes, keepdims=keep), "b", True),
    "reduce_all": (tf.reduce_all, lambda a, axes, keep: np.all(a, axes, keepdims=keep), "b", True),
    "count_nonzero": (tf.math.count_nonzero,
                      lambda a, axes, keep: np.sum(a != 0, axes, np.int64, keepdims=keep), "iub", True),
}  # fmt: skip


@op
def reduction(p):
    name = p.chance.choice(list(REDUCTIONS))
    function, oracle, kinds, any_bits = REDUCTIONS[name]
    x, keep = p.numeric(kinds=kinds, finite=not any_bits), p.chance.random() < 0.4
    axes = p.axes(x)
    wanted = oracle(x.array, None if axes is None else tuple(axes), keep)
    return f"{name}({axes}, {keep})", lambda t: function(t, axes, keep), [x], wanted


@op
def rounded_reduction(p):
    name, function, oracle = p.chance.choice((
        ("reduce_mean", tf.reduce_mean, np.mean), ("reduce_variance", tf.math.reduce_variance, np.var),
        ("reduce_std", tf.math.reduce_std, np.std),
        ("norm", tf.norm, lambda a, axes, keepdims: np.sqrt(np.sum(a * a, axes, keepdims=keepdims))),
        ("logsumexp", tf.reduce_logsumexp, lambda a, axes, keepdims: np.log(
            np.sum(np.exp(a), axes, keepdims=keepdims)))))
    x, keep = p.numeric(kinds="f", exact=False), p.chance.random() < 0.4
    if x.scale > 30:
        raise Unfit
    axes = p.axes(x)
    if name == "norm" and axes is not None:
        axes = axes[0]
    wanted = oracle(x.array.astype("f8"), tuple(axes) if isinstance(axes, list) else axes, keepdims=keep)
    if name in ("reduce_std", "norm") and not (wanted > 0.1).all():
        raise Unfit  # the root of what is rounded near 0 is anything
    return f"{name}({axes}, {keep})", lambda t: function(t, axis=axes, keepdims=keep), [x], \
        wanted.astype(x.array.dtype), True


@op
def mean_of_integers(p):
    x = p.numeric(kinds="iu")
    axes = p.axes(x)
    if x.array.size and np.abs(x.array.astype("f8")).max() > 1e6:
        raise Unfit
    wanted = np.mean(x.array, None if axes is None else tuple(axes))
    wanted = np.trunc(np.nan_to_num(wanted)).astype(x.array.dtype)
    return f"reduce_mean({axes})", lambda t: tf.reduce_mean(t, axes), [x], wanted


@op
def place(p):
    x = p.numeric(1, finite=False)
    axis = p.axis(x)
    if x.array.shape[axis] == 0:
        raise Unfit
    function, oracle = p.chance.choice(((tf.argmax, np.argmax), (tf.argmin, np.argmin)))
    return f"{oracle.__name__}({axis})", lambda t: function(t, axis), [x], oracle(x.array, axis)


@op
def running(p):
    x = p.numeric(1)
    axis, exclusive, reverse = p.axis(x), p.chance.random() < 0.3, p.chance.random() < 0.3
    name = p.chance.choice(("cumsum", "cumsum", "cumprod"))
    function = tf.cumsum if name == "cumsum" else tf.math.cumprod
    if name == "cumprod" and x.kind == "f":
        raise Unfit
    line = np.flip(x.array, axis) if reverse else x.array
    wanted = getattr(np, name)(line, axis, x.array.dtype)
    if exclusive and wanted.shape[axis]:
        start = np.full_like(np.take(wanted, [0], axis), name == "cumprod")
        wanted = np.concatenate([start, np.delete(wanted, -1, axis)], axis)
    wanted = np.flip(wanted, axis) if reverse else wanted
    return f"{name}({axis}, {exclusive}, {reverse})", \
        lambda t: function(t, axis, exclusive, reverse), [x], wanted


# ---- order ----


def order_of(array, axis, descending):
    if not descending:
        return np.argsort(array, axis, "stable")
    back = np.argsort(np.flip(array, axis), axis, "stable")
    return array.shape[axis] - 1 - np.flip(back, axis)


@op
def order(p):
    x, down = p.numeric(1, finite=False), p.chance.random() < 0.5
    axis, direction = p.axis(x), "DESCENDING" if down else "ASCENDING"
    if down and not x.is_finite:
        raise Unfit
    places = order_of(x.array, axis, down)
    if p.chance.random() < 0.5:
        return f"argsort({axis}, {direction})", lambda t: tf.argsort(t, axis, direction), [x], \
            places.astype("i4")
    return f"sort({axis}, {direction})", lambda t: tf.sort(t, axis, direction), [x], \
        np.take_along_axis(x.array, places, axis)


@op
def top_k(p):
    x = p.numeric(1)
    k = p.chance.randint(0, min(x.array.shape[-1], 5))
    places = order_of(x.array, -1, True)[..., :k]
    if p.chance.random() < 0.5:
        return f"top_k({k}).indices", lambda t: tf.math.top_k(t, k).indices, [x], places.astype("i4")
    return f"top_k({k}).values", lambda t: tf.math.top_k(t, k).values, [x], \
        np.take_along_axis(x.array, places, -1)


@op
def softmax(p):
    x = p.numeric(1, kinds="f", exact=False)
    axis = p.axis(x)
    if x.scale > 50:
        raise Unfit
    power = np.exp(x.array.astype("f8"))
    with np.errstate(all="ignore"):
        wanted = power / power.sum(axis, keepdims=True)
    if p.chance.random() < 0.5:
        return f"softmax({axis})", lambda t: tf.nn.softmax(t, axis), [x], wanted.astype(x.array.dtype), True
    return f"log_softmax({axis})", lambda t: tf.nn.log_softmax(t, axis), [x], \
        np.log(wanted).astype(x.array.dtype), True


# ---- products ----


def product_of(equation, *arrays):
    """In the arrays' dtype, as exact as whole numbers are."""
    if arrays[0].dtype.kind == "f":
        return np.einsum(equation, *(a.astype("f8") for a in arrays)).astype(arrays[0].dtype)
    return np.einsum(equation, *arrays)


@op
def matmul(p):
    a = p.numeric(2, exact=False)
    swap_a, swap_b = p.chance.random() < 0.3, p.chance.random() < 0.3
    left = np.swapaxes(a.array, -1, -2) if swap_a else a.array
    inner = left.shape[-1]
    b = p.pick(lambda v: v.array.dtype == a.array.dtype and v.array.ndim >= 2 and
               v.array.shape[-1 if swap_b else -2] == inner and _broadcast(v.array, a.array), True, False)
    right = np.swapaxes(b.array, -1, -2) if swap_b else b.array
    if (a.near or b.near) and max(a.scale, b.scale) > 30:
        raise Unfit
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    if np.prod([float(n) for n in (*batch, left.shape[-2], right.shape[-1])]) > 4 * p.most:
        raise Unfit
    wide = "f8" if a.kind == "f" else a.array.dtype
    wanted = np.matmul(left.astype(wide), right.astype(wide)).astype(a.array.dtype)
    return f"matmul({swap_a}, {swap_b})", lambda x, y: tf.matmul(x, y, swap_a, swap_b), [a, b], wanted


def _broadcast(a, b):
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        return False
    return True


@op
def einsum(p):
    """Labels for two values: those of equal dimensions may be one; any of them may stay, in any order."""
    a = p.numeric(kinds="iuf", exact=True)
    b = p.pick(lambda v: v.array.dtype == a.array.dtype)
    if a.array.ndim + b.array.ndim > 6:
        raise Unfit
    letters = iter("abcdefghij")
    of_a = [next(letters) for _ in a.array.shape]
    of_b, free = [], list(zip(of_a, a.array.shape))
    for n in b.array.shape:
        shared = [pair for pair in free if pair[1] == n]
        if shared and p.chance.random() < 0.6:
            pair = p.chance.choice(shared)
            free.remove(pair)
            of_b.append(pair[0])
        else:
            of_b.append(next(letters))
    every = sorted(set(of_a + of_b))
    kept = p.chance.sample(every, p.chance.randint(0, len(every)))
    sizes = dict(zip(of_a + of_b, a.array.shape + b.array.shape))
    if np.prod([float(sizes[c]) for c in kept]) > 4 * p.most or np.prod(
            [float(n) for n in sizes.values()]) > 2e6:
        raise Unfit
    equation = f"{''.join(of_a)},{''.join(of_b)}->{''.join(kept)}"
    return f"einsum('{equation}')", lambda x, y: tf.einsum(equation, x, y), [a, b], \
        product_of(equation, a.array, b.array)


@op
def tensordot(p):
    a = p.numeric()
    b = p.pick(lambda v: v.array.dtype == a.array.dtype)
    most = min(a.array.ndim, b.array.ndim)
    fitting = [n for n in range(most + 1)
               if a.array.shape[a.array.ndim - n:] == b.array.shape[:n]]
    n = p.chance.choice(fitting)
    if a.array.ndim + b.array.ndim - 2 * n > 6 or float(a.array.size) * b.array.size > 2e6:
        raise Unfit
    wide = "f8" if a.kind == "f" else a.array.dtype
    wanted = np.tensordot(a.array.astype(wide), b.array.astype(wide), n).astype(a.array.dtype)
    return f"tensordot({n})", lambda x, y: tf.tensordot(x, y, n), [a, b], wanted
