# SPDX-License-Identifier: Apache-2.0
"""Ops at random, each with arrays and what NumPy makes of them: good ones and mistaken ones."""

import dataclasses
import random
import typing

import numpy as np
import unary_ops

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
NUMBERS = FLOATS + INTEGERS
ANY = NUMBERS + ("bool",)


@dataclasses.dataclass
class Case:
    op: str
    inputs: list  # arrays
    attrs: dict
    oracle: typing.Callable  # of the arrays


UNARY = {
    name: (unary_ops.of_its_dtype(op), unary_ops.dtypes_of(op, FLOATS))
    for name, op in unary_ops.OPS.items()
}
UNARY["identity"] = (np.array, ANY)
BINARY = {
    "add": (np.add, NUMBERS), "sub": (np.subtract, NUMBERS), "mul": (np.multiply, NUMBERS),
    "div": (np.true_divide, FLOATS), "floordiv": (np.floor_divide, NUMBERS),
    "mod": (np.mod, NUMBERS), "fmod": (np.fmod, NUMBERS), "pow": (np.power, FLOATS),
    "atan2": (np.arctan2, FLOATS), "maximum": (np.maximum, ANY),
    "minimum": (np.minimum, ANY), "equal": (np.equal, ANY), "not_equal": (np.not_equal, ANY),
    "less": (np.less, ANY), "less_equal": (np.less_equal, ANY),
    "greater": (np.greater, ANY), "greater_equal": (np.greater_equal, ANY),
    "logical_and": (np.logical_and, ANY), "logical_or": (np.logical_or, ANY),
    "logical_xor": (np.logical_xor, ANY),
    "bitwise_and": (np.bitwise_and, INTEGERS + ("bool",)),
    "bitwise_or": (np.bitwise_or, INTEGERS + ("bool",)),
    "bitwise_xor": (np.bitwise_xor, INTEGERS + ("bool",)),
    "left_shift": (np.left_shift, INTEGERS), "right_shift": (np.right_shift, INTEGERS),
}  # fmt: skip


def least_of(dtype):
    return False if dtype == bool else -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def most_of(dtype):
    return True if dtype == bool else np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def largest(x, **how):
    """Nothing has one too."""
    return np.max(x, initial=least_of(x.dtype), **how)


def smallest(x, **how):
    return np.min(x, initial=most_of(x.dtype), **how)


REDUCTIONS = {
    "sum": (np.sum, ANY), "mean": (np.mean, ANY), "prod": (np.prod, ANY),
    "max": (largest, ANY), "min": (smallest, ANY), "any": (np.any, ANY),
    "all": (np.all, ANY), "variance": (np.var, ANY), "logsumexp": (largest, FLOATS),
}  # fmt: skip


class Maker:
    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def shape(self, low=0, high=4):
        rank = self.chance.randint(low, high)
        return [self.chance.choice((0, 1, 2, 3, 3, 4, 5)) for _ in range(rank)]

    def full_shape(self, low=0, high=4):
        return [max(dim, 1) for dim in self.shape(low, high)]

    def array(self, shape, dtype):
        """Few values, so that ties are common."""
        return self.numbers.integers(0, 2 if dtype == "bool" else 7, shape).astype(dtype)

    def axis(self, rank):
        """Now and then one that is not there."""
        return self.chance.randint(-rank - 1, rank) if self.chance.random() < 0.1 else \
            self.chance.randrange(-rank, rank) if rank else 0

    def broadcastable(self, shape):
        """One that fits, mostly."""
        other = [1 if self.chance.random() < 0.3 else dim for dim in shape]
        if other and self.chance.random() < 0.1:
            other[self.chance.randrange(len(other))] = 7
        return other[self.chance.randrange(len(other) + 1) if other else 0:]

    # ---- elementwise ----

    def unary(self, op=None):
        op = op or self.chance.choice(list(UNARY))
        function, dtypes = UNARY[op]
        return Case(op, [self.array(self.shape(), self.chance.choice(dtypes))], {}, function)

    def binary(self, op=None):
        op = op or self.chance.choice(list(BINARY))
        function, dtypes = BINARY[op]
        dtype, shape = self.chance.choice(dtypes), self.shape()
        pair = [self.array(shape, dtype), self.array(self.broadcastable(shape), dtype)]
        self.chance.shuffle(pair)
        return Case(op, pair, {}, function)

    def where(self):
        shape, dtype = self.shape(), self.chance.choice(ANY)
        parts = [self.array(self.broadcastable(shape), kind) for kind in ("bool", dtype, dtype)]
        return Case("where", parts, {}, np.where)

    def clip(self):
        shape, dtype = self.shape(), self.chance.choice(ANY)
        parts = [self.array(self.broadcastable(shape), dtype) for _ in range(3)]
        return Case("clip", parts, {}, lambda x, low, high: np.minimum(np.maximum(x, low), high))

    def cast(self):
        dtype = self.chance.choice(ANY)
        x = self.array(self.shape(), self.chance.choice(ANY))
        return Case("cast", [x], {"dtype": f"d:{dtype}"}, lambda x: x.astype(dtype))

    # ---- views ----

    def reshape(self):
        x = self.array(self.shape(), "float64")
        dims = [int(dim) for dim in self.chance.choice([
            x.shape[::-1], (x.size,), (1, x.size, 1), (x.shape[0] if x.ndim else 1, -1), (-1, 2),
            (x.size // 2, 2), (-1, *x.shape[1:]), (2, -1, 3), (*x.shape, 1)])]  # fmt: skip
        return Case("reshape", [x], {"shape": tuple(None if dim == -1 else dim for dim in dims)},
                    lambda x: np.reshape(x, dims))

    def transpose(self):
        x = self.array(self.shape(), self.chance.choice(ANY))
        axes = self.chance.sample(range(x.ndim), x.ndim)
        if axes and self.chance.random() < 0.1:
            axes[0] = axes[-1]
        axes = [axis - x.ndim if self.chance.random() < 0.3 else axis for axis in axes]
        if self.chance.random() < 0.2:
            return Case("transpose", [x], {}, np.transpose)
        return Case("transpose", [x], {"axes": axes}, lambda x: np.transpose(x, axes))

    def broadcast_to(self):
        shape = self.shape()
        x = self.array(self.broadcastable(shape), "int32")
        return Case("broadcast_to", [x], {"shape": tuple(shape)},
                    lambda x: np.broadcast_to(x, shape))

    def slice(self):
        x = self.array(self.shape(), "float32")
        n = self.chance.randint(0, x.ndim)
        ends = (0, 1, 2, -1, -2, 3, 9, -9, 2**63 - 1, -2**63)
        steps = (1, 1, 2, 3, -1, -2, 2**62) + (0,) * (self.chance.random() < 0.1)
        start, stop, step = (self.chance.choices(some, k=n) for some in (ends, ends, steps))
        return Case("slice", [x], {"start": start, "stop": stop, "step": step},
                    lambda x: x[tuple(slice(*one) for one in zip(start, stop, step))])

    def crop(self):
        x = self.array(self.shape(), "int16")
        start = [self.chance.randint(0, dim) for dim in x.shape]
        size = [self.chance.choice((-1, self.chance.randint(0, dim))) for dim in x.shape]

        def cut(x):
            ends = [dim if n == -1 else first + n for dim, first, n in zip(x.shape, start, size)]
            if any(end > dim for end, dim in zip(ends, x.shape)):
                raise ValueError("outside")
            return x[tuple(slice(first, end) for first, end in zip(start, ends))]

        return Case("crop", [x], {"start": start, "size": size}, cut)

    def reverse(self):
        x = self.array(self.shape(1), "uint8")
        axes = [self.axis(x.ndim) for _ in range(self.chance.randint(1, 2))]

        def flip(x):
            if len({axis % x.ndim for axis in axes}) < len(axes):
                raise ValueError("twice")
            return np.flip(x, axes)

        return Case("reverse", [x], {"axes": axes}, flip)

    # ---- moves ----

    def concat(self):
        shape, axis = self.shape(1), None
        axis = self.axis(len(shape))
        parts = []
        for _ in range(self.chance.randint(1, 4)):
            own = list(shape)
            own[axis % len(shape)] = self.chance.randrange(4)
            if self.chance.random() < 0.05:
                own[self.chance.randrange(len(own))] += 1
            parts.append(self.array(own, "float32"))
        return Case("concat", parts, {"axis": axis}, lambda *parts: np.concatenate(parts, axis))

    def pad(self):
        x = self.array(self.shape(), "int32")
        before = [self.chance.randrange(3) for _ in x.shape]
        after = [self.chance.randrange(3) for _ in x.shape]
        widths = list(zip(before, after))
        return Case("pad", [x], {"before": before, "after": after, "value": 9},
                    lambda x: np.pad(x, widths, constant_values=9) if x.ndim else x)

    def tile(self):
        x = self.array(self.shape(), "int32")
        multiples = [self.chance.randrange(4) for _ in x.shape]
        return Case("tile", [x], {"multiples": multiples}, lambda x: np.tile(x, multiples))

    def gather(self):
        x = self.array(self.full_shape(1, 3), "float64")
        axis = self.axis(x.ndim)
        dim = x.shape[axis % x.ndim]
        indices = self.numbers.integers(0, dim, self.shape(0, 2))
        indices = indices.astype(self.chance.choice(INTEGERS))
        return Case("gather", [x, indices], {"axis": axis},
                    lambda x, indices: np.take(x, indices.astype("int64"), axis))

    def one_hot(self):
        indices = self.array(self.shape(0, 3), "int32")
        depth = self.chance.randrange(6)
        axis = self.chance.randrange(-indices.ndim - 1, indices.ndim + 1)

        def oracle(indices):
            hot = np.arange(depth) == indices[..., None]
            return np.moveaxis(hot, -1, axis).astype("float32")

        return Case("one_hot", [indices], {"depth": depth, "axis": axis}, oracle)

    # ---- what needs whole axes ----

    def reduction(self):
        op = self.chance.choice(list(REDUCTIONS))
        function, dtypes = REDUCTIONS[op]
        shape = self.shape() if op != "logsumexp" else self.full_shape()
        x = self.array(shape, self.chance.choice(dtypes))
        keepdims = self.chance.random() < 0.5
        if self.chance.random() < 0.2:
            return Case(op, [x], {"keepdims": keepdims}, lambda x: function(x, keepdims=keepdims))
        n_axes = self.chance.randint(0, 3) if x.ndim else 0
        axes = sorted({self.axis(x.ndim) for _ in range(n_axes)})
        return Case(op, [x], {"axes": axes, "keepdims": keepdims},
                    lambda x: function(x, axis=tuple(axes), keepdims=keepdims))

    def arg(self):
        op, function = self.chance.choice((("argmax", np.argmax), ("argmin", np.argmin)))
        x = self.array(self.full_shape(1), self.chance.choice(ANY))
        axis, keepdims = self.axis(x.ndim), self.chance.random() < 0.5
        return Case(op, [x], {"axis": axis, "keepdims": keepdims},
                    lambda x: function(x, axis=axis, keepdims=keepdims))

    def row(self):
        x = self.array(self.shape(1), self.chance.choice(ANY))
        axis = self.axis(x.ndim)
        functions = {"cumsum": np.cumsum, "sort": np.sort, "argsort": np.argsort}
        op = self.chance.choice(list(functions))
        how = {"kind": "stable"} if op == "argsort" else {}
        return Case(op, [x], {"axis": axis}, lambda x: functions[op](x, axis=axis, **how))

    def softmax(self):
        x = self.array(self.full_shape(1), self.chance.choice(FLOATS))
        axis = self.axis(x.ndim)
        share = lambda x: np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)
        if self.chance.random() < 0.5:
            return Case("log_softmax", [x], {"axis": axis}, lambda x: np.log(share(x)))
        return Case("softmax", [x], {"axis": axis}, share)

    def top_k(self):
        x = self.array(self.shape(1), self.chance.choice(ANY))
        k = self.chance.randint(0, x.shape[-1] + 1 if self.chance.random() < 0.1 else x.shape[-1])

        def values(x):
            if k > x.shape[-1]:
                raise ValueError("too many")
            return np.flip(np.sort(x, -1), -1)[..., :k]

        return Case("top_k_values", [x], {"k": k}, values)

    def matmul(self):
        batch = self.shape(0, 2)
        rows, inner, columns = (self.chance.randint(0, 4) for _ in range(3))
        ta, tb = self.chance.random() < 0.5, self.chance.random() < 0.5
        other = inner + (self.chance.random() < 0.1)
        dtype = self.chance.choice(NUMBERS)
        last_a = (inner, rows) if ta else (rows, inner)
        last_b = (columns, other) if tb else (other, columns)
        a = self.array([*self.broadcastable(batch), *last_a], dtype)
        b = self.array([*self.broadcastable(batch), *last_b], dtype)
        turn = lambda x, yes: np.swapaxes(x, -1, -2) if yes else x
        return Case("matmul", [a, b], {"transpose_a": ta, "transpose_b": tb},
                    lambda a, b: np.matmul(turn(a, ta), turn(b, tb)))

    def any(self):
        kinds = (self.unary, self.binary, self.binary, self.where, self.clip, self.cast,
                 self.reshape, self.reshape, self.transpose, self.broadcast_to, self.slice,
                 self.slice, self.crop, self.reverse, self.concat, self.pad, self.tile, self.gather,
                 self.one_hot, self.reduction, self.reduction, self.arg, self.row, self.softmax,
                 self.top_k, self.matmul)  # fmt: skip
        return self.chance.choice(kinds)()


def make(seed, count):
    """So many at random, after one of each that is not likely enough to be among them."""
    maker = Maker(seed)
    cases = [maker.unary(op) for op in UNARY] + [maker.binary(op) for op in BINARY]
    return cases + [maker.any() for _ in range(count)]
