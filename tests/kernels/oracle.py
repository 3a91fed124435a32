# SPDX-License-Identifier: Apache-2.0
"""Every op of src/graph/ops.def but those of class DATA, at random: shapes of rank 0 to 8 with
axes of 0 and 1, all dtypes that the op takes, NaN, infinities, denormals and extremes, and what
NumPy makes of them. bfloat16 is float32 here whose lower halves are 0 (see runtime.py).

An answer is right if it is as far from `wanted` as `bound` at most, everywhere; a bound of 0 also
wants the signs of zeros, unless `zeros_alike`. `bits` says that no budget changes a bit."""

import dataclasses
import math
import random
import re

import numpy as np
import runtime
import unary_ops

HALVES = ("float16", "bfloat16")
FLOATS = HALVES + ("float32", "float64")
INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
NUMBERS = FLOATS + INTEGERS
WHOLES = INTEGERS + ("bool",)
ANY = NUMBERS + ("bool",)


@dataclasses.dataclass
class Case:
    op: str
    dtypes: list  # of the inputs
    inputs: list  # arrays
    attrs: dict
    dtype: str  # of the output
    wanted: np.ndarray
    bound: object = 0  # an array, or a number
    bits: bool = True
    zeros_alike: bool = False

    def check(self, got):
        assert got.shape == self.wanted.shape, f"{got.shape} for {self.wanted.shape}"
        differ = is_off(got, self.wanted, self.bound, self.zeros_alike)
        if differ.any():
            at = tuple(int(i) for i in np.argwhere(differ)[0])
            raise AssertionError(f"{self.op} {self.dtypes} {self.attrs}: {int(differ.sum())} are "
                                 f"off, at {at}: {got[at]!r} for {self.wanted[at]!r}")


def is_off(got, wanted, bound, zeros_alike):
    if got.dtype.kind not in "f":
        return got != wanted
    with np.errstate(all="ignore"):
        far = np.abs(got.astype("g") - wanted.astype("g")) > bound
    both_nan = np.isnan(got) & np.isnan(wanted)
    differ = np.where(np.isfinite(wanted) & np.isfinite(got), far, got != wanted) & ~both_nan
    if np.isscalar(bound) and bound == 0 and not zeros_alike:
        differ |= (np.signbit(got) != np.signbit(wanted)) & ~both_nan
    return differ


# ---- dtypes ----


def stored(dtype):
    """NumPy's, on this side."""
    return "float32" if dtype == "bfloat16" else dtype


def item_bytes(dtype):
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


def kind(dtype):
    return "f" if dtype == "bfloat16" else np.dtype(dtype).kind


def narrow(values, dtype):
    """Rounded to the dtype."""
    with np.errstate(all="ignore"):
        if dtype != "bfloat16":
            return np.asarray(values).astype(dtype)
        return runtime.from_bfloat16(runtime.to_bfloat16(np.asarray(values).astype("f4")))


def wide(array, dtype):
    """What is computed with: halves as float32."""
    return array.astype("f4") if dtype in HALVES else array


def unit_of(values, dtype):
    """Of the last place of each, where it is finite."""
    values = np.asarray(values)
    finite = np.where(np.isfinite(values), values, 0)
    if dtype == "bfloat16":
        return np.maximum(np.abs(np.spacing(finite.astype("f4"))) * 65536, 2.0**-133).astype("g")
    return np.abs(np.spacing(np.abs(finite).astype(dtype))).astype("g")


# ---- functions ----


EXACT_OF_ONE = {
    name: (op.function, unary_ops.dtypes_of(op, FLOATS))
    for name, op in unary_ops.OPS.items() if op.units == 0
}
EXACT_OF_ONE["identity"] = (np.array, ANY)
# Of long doubles; at most so many units off.
NEAR_OF_ONE = {name: (op.function, op.units) for name, op in unary_ops.OPS.items() if op.units > 0}
EXACT_OF_TWO = {
    "add": (np.add, NUMBERS), "sub": (np.subtract, NUMBERS), "mul": (np.multiply, NUMBERS),
    "div": (np.true_divide, FLOATS), "floordiv": (np.floor_divide, NUMBERS),
    "mod": (np.mod, NUMBERS), "fmod": (np.fmod, NUMBERS), "maximum": (np.maximum, ANY),
    "minimum": (np.minimum, ANY), "equal": (np.equal, ANY), "not_equal": (np.not_equal, ANY),
    "less": (np.less, ANY), "less_equal": (np.less_equal, ANY), "greater": (np.greater, ANY),
    "greater_equal": (np.greater_equal, ANY), "logical_and": (np.logical_and, ANY),
    "logical_or": (np.logical_or, ANY), "logical_xor": (np.logical_xor, ANY),
    "bitwise_and": (np.bitwise_and, WHOLES), "bitwise_or": (np.bitwise_or, WHOLES),
    "bitwise_xor": (np.bitwise_xor, WHOLES), "left_shift": (np.left_shift, INTEGERS),
    "right_shift": (np.right_shift, INTEGERS),
}  # fmt: skip
NEAR_OF_TWO = {"pow": (np.power, 2), "atan2": (np.arctan2, 2)}
# What is rounded from a little less or a little more may come to lie a unit away.
ROUNDED = 1.01
ZEROS_ARE_ALIKE = ("relu", "maximum", "minimum", "clip", "max", "min", "sort", "top_k_values")


def of_none(op, dtype):
    """The largest or smallest of nothing."""
    if dtype.kind == "b":
        return op == "min"
    if dtype.kind == "f":
        return -np.inf if op == "max" else np.inf
    return np.iinfo(dtype).min if op == "max" else np.iinfo(dtype).max


# ---- cases ----


class Maker:
    """`most`: elements of an input, about. Large ones have few axes that are 0 or 1."""

    def __init__(self, seed, most=400):
        self.chance, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.most = most

    def shape(self, low=0, high=8, empty=True):
        """Any rank, often small; seldom with no elements at all."""
        large = self.most > 10000
        rank = self.chance.choice([rank for rank in (0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8)
                                   if max(low, large) <= rank <= high])
        dims, left = [], self.most
        for i in range(rank):
            odd = self.chance.random()
            if odd < 0.15 and not large or left <= 1:
                dims.append(1)
            elif odd < 0.18 and empty and not large:
                dims.append(0)
            else:
                share = self.chance.uniform(0.6, 1.3) / (rank - i)
                dims.append(min(left, max(1, round(left**share))))
            left //= max(dims[-1], 1)
        self.chance.shuffle(dims)
        return tuple(dims)

    def broadcastable(self, shape):
        other = tuple(1 if self.chance.random() < 0.25 else dim for dim in shape)
        return other[self.chance.choice((0, 0, 0, self.chance.randint(0, len(other)))):]

    def array(self, dtype, shape, calm=False):
        """Of any bits, of small numbers, and of those at the edges; calm ones are small only."""
        count = math.prod(shape)
        if kind(dtype) == "b":
            return self.numbers.integers(0, 2, shape).astype(bool)
        if kind(dtype) in "iu":
            info = np.iinfo(dtype)
            low = 0 if kind(dtype) == "u" else -9
            small = self.numbers.integers(low, 10, count).astype(dtype)
            any_bits = self.numbers.integers(info.min, info.max, count, dtype, endpoint=True)
            edges = np.array([0, 1, info.max, info.min, info.max - 1], dtype)
        else:
            small = narrow(self.numbers.normal(0, 3, count), dtype)
            any_bits = narrow(self.numbers.normal(0, 1, count) *
                              np.exp(self.numbers.normal(0, 9, count)), dtype)
            info = np.finfo(stored(dtype))
            edges = narrow([0, -0.0, np.nan, np.inf, -np.inf, 1, -1, float(info.max) * 0.99,
                            float(info.tiny), float(info.smallest_subnormal) * 3, 0.5, 2.5], dtype)
        some = self.numbers.random(count)
        if calm:
            return small.reshape(shape)
        mixed = np.where(some < 0.5, small, np.where(some < 0.9, any_bits,
                                                     self.numbers.choice(edges, count)))
        return mixed.astype(stored(dtype)).reshape(shape)

    def axis(self, rank):
        return self.chance.randrange(-rank, rank)

    def dtype(self, dtypes):
        return self.chance.choice(dtypes)

    def case(self, op, dtypes, inputs, attrs, wanted, dtype, **more):
        return Case(op, dtypes, inputs, attrs, dtype, np.asarray(wanted), **more)

    # ---- elementwise ----

    def exact(self, op, function, dtypes, n_inputs):
        dtype, shape = self.dtype(dtypes), self.shape()
        inputs = [self.array(dtype, shape)]
        inputs += [self.array(dtype, self.broadcastable(shape)) for _ in range(n_inputs - 1)]
        self.chance.shuffle(inputs)
        wanted = function(*(wide(array, dtype) for array in inputs))
        if wanted.dtype == bool and op != "identity":
            dtype_out = "bool"
        else:
            dtype_out, wanted = dtype, narrow(wanted, dtype)
        return self.case(op, [dtype] * n_inputs, inputs, {}, wanted, dtype_out,
                         zeros_alike=op in ZEROS_ARE_ALIKE)

    def near(self, op, function, units, n_inputs):
        dtype, shape = self.dtype(FLOATS), self.shape()
        inputs = [self.array(dtype, shape)]
        inputs += [self.array(dtype, self.broadcastable(shape)) for _ in range(n_inputs - 1)]
        self.chance.shuffle(inputs)
        true = function(*(array.astype("g") for array in inputs))
        wanted = narrow(true, dtype) if dtype not in HALVES else narrow(true.astype("f4"), dtype)
        # Halves are rounded once more; what is rounded here is half a unit.
        bound = (units if dtype not in HALVES else 1) * unit_of(wanted, dtype) * 1.5
        return self.case(op, [dtype] * n_inputs, inputs, {}, wanted, dtype, bound=bound)

    def whole_power(self):
        """NumPy has no negative powers of integers."""
        dtype, shape = self.dtype(INTEGERS), self.shape()
        inputs = [self.array(dtype, shape),
                  self.numbers.integers(0, 20, self.broadcastable(shape)).astype(dtype)]
        return self.case("pow", [dtype] * 2, inputs, {}, np.power(*inputs), dtype)

    def cast(self):
        source, dtype = self.dtype(ANY), self.dtype(ANY)
        calm = kind(source) == "f" and kind(dtype) in "iu"  # what does not fit is not the same
        x = self.array(source, self.shape(), calm)  # everywhere in NumPy
        if calm and kind(dtype) == "u":
            x = np.abs(x)
        through = wide(x, source)
        if kind(source) in "iu" and dtype in HALVES:
            through = through.astype("f4")
        wanted = narrow(through, dtype)
        bound = unit_of(wanted, dtype) if (source, dtype) == ("float64", "bfloat16") else 0
        return self.case("cast", [source], [x], {"dtype": f"d:{dtype}"}, wanted, dtype,
                         bound=bound)

    def where(self):
        dtype, shape = self.dtype(ANY), self.shape()
        dtypes = ["bool", dtype, dtype]
        inputs = [self.array(one, self.broadcastable(shape)) for one in dtypes]
        return self.case("where", dtypes, inputs, {}, np.where(*inputs), dtype)

    def clip(self):
        dtype, shape = self.dtype(ANY), self.shape()
        inputs = [self.array(dtype, shape)]
        inputs += [self.array(dtype, self.broadcastable(shape)) for _ in range(2)]
        wanted = np.minimum(np.maximum(inputs[0], inputs[1]), inputs[2])
        return self.case("clip", [dtype] * 3, inputs, {}, wanted, dtype, zeros_alike=True)

    # ---- views ----

    def view(self, op, attrs, function, x=None, dtype=None):
        if x is None:
            dtype = self.dtype(ANY)
            x = self.array(dtype, self.shape())
        return self.case(op, [dtype], [x], attrs, function(x), dtype)

    def ensure_shape(self):
        dtype, shape = self.dtype(ANY), self.shape()
        said = tuple(None if self.chance.random() < 0.5 else dim for dim in shape)
        return self.view("ensure_shape", {"shape": said}, np.array, self.array(dtype, shape), dtype)

    def reshape(self):
        dtype, x = self.dtype(ANY), None
        shape = self.shape()
        x = self.array(dtype, shape)
        primes, left = [], x.size
        while left > 1 and len(primes) < 7:
            factor = next(f for f in (2, 3, 5, 7, left) if left % f == 0)
            primes.append(factor)
            left //= factor
        primes += [left] * (left != 1) + [1] * self.chance.randint(0, 8 - len(primes) - (left != 1))
        self.chance.shuffle(primes)
        while len(primes) > 1 and self.chance.random() < 0.6:
            i = self.chance.randrange(len(primes) - 1)
            primes[i:i + 2] = [primes[i] * primes[i + 1]]
        said = [int(dim) for dim in primes]
        if said and x.size and self.chance.random() < 0.3:
            said[self.chance.randrange(len(said))] = None
        attrs = {"shape": tuple(said)}
        return self.view("reshape", attrs, lambda x: x.reshape(primes), x, dtype)

    def transpose(self):
        dtype, shape = self.dtype(ANY), self.shape()
        axes = self.chance.sample(range(len(shape)), len(shape))
        attrs = {"axes": [axis - len(shape) * (self.chance.random() < 0.3) for axis in axes]}
        if self.chance.random() < 0.2:
            attrs, axes = {}, None
        return self.view("transpose", attrs, lambda x: x.transpose(axes), self.array(dtype, shape),
                         dtype)

    def broadcast_to(self):
        dtype, shape = self.dtype(ANY), self.shape()
        x = self.array(dtype, self.broadcastable(shape))
        return self.view("broadcast_to", {"shape": shape}, lambda x: np.broadcast_to(x, shape), x,
                         dtype)

    def slice(self):
        dtype, shape = self.dtype(ANY), self.shape()
        n = self.chance.randint(0, len(shape))
        start, stop, step = [], [], []
        for dim in shape[:n]:
            ends = (0, dim, -1, 1, dim // 2, -dim, dim + 3, 2**63 - 1, -2**63, dim // 3)
            start.append(self.chance.choice(ends))
            stop.append(self.chance.choice(ends))
            step.append(self.chance.choice((1, 1, 2, 3, -1, -1, -2, 2**62, -2**62)))
            if self.chance.random() < 0.5:  # most of it
                start[-1], stop[-1] = (0, dim) if step[-1] > 0 else (dim, -2**63)
        attrs = {"start": start, "stop": stop, "step": step}
        parts = tuple(slice(*one) for one in zip(start, stop, step))
        return self.view("slice", attrs, lambda x: x[parts], self.array(dtype, shape), dtype)

    def crop(self):
        dtype, shape = self.dtype(ANY), self.shape()
        start = [self.chance.randint(0, dim // 2) for dim in shape]
        size = [self.chance.choice((-1, self.chance.randint(0, dim - first)))
                for dim, first in zip(shape, start)]
        parts = tuple(slice(first, None if n == -1 else first + n)
                      for first, n in zip(start, size))
        return self.view("crop", {"start": start, "size": size}, lambda x: x[parts],
                         self.array(dtype, shape), dtype)

    def reverse(self):
        dtype, shape = self.dtype(ANY), self.shape()
        axes = self.chance.sample(range(len(shape)), self.chance.randint(0, len(shape)))
        attrs = {"axes": [axis - len(shape) * (self.chance.random() < 0.3) for axis in axes]}
        return self.view("reverse", attrs, lambda x: np.flip(x, axes), self.array(dtype, shape),
                         dtype)

    # ---- moves ----

    def concat(self):
        dtype, shape = self.dtype(ANY), self.shape(1)
        axis, parts = self.axis(len(shape)), []
        for _ in range(self.chance.randint(1, 5)):
            own = list(shape)
            own[axis] = self.chance.randint(0, shape[axis])
            parts.append(self.array(dtype, own))
        return self.case("concat", [dtype] * len(parts), parts, {"axis": axis},
                         np.concatenate(parts, axis), dtype)

    def pad(self):
        dtype, shape = self.dtype(ANY), self.shape()
        room = 2 if len(shape) > 4 else 4
        before = [self.chance.randrange(room) for _ in shape]
        after = [self.chance.randrange(room) for _ in shape]
        value = self.chance.choice((0, 1))
        x = self.array(dtype, shape)
        wanted = np.full([b + dim + a for b, dim, a in zip(before, shape, after)], value, x.dtype)
        wanted[tuple(slice(b, b + dim) for b, dim in zip(before, shape))] = x
        return self.case("pad", [dtype], [x], {"before": before, "after": after, "value": value},
                         wanted, dtype)

    def tile(self):
        dtype, shape = self.dtype(ANY), self.shape()
        multiples = [self.chance.choice((0, 1, 1, 1, 1, 2, 3)) for _ in shape]
        x = self.array(dtype, shape)
        return self.case("tile", [dtype], [x], {"multiples": multiples}, np.tile(x, multiples),
                         dtype)

    def gather(self):
        dtype, index = self.dtype(ANY), self.dtype(INTEGERS)
        shape = self.shape(1, 5, empty=False)
        axis = self.axis(len(shape))
        indices = self.shape(0, 3) if self.most <= 10000 else (self.chance.randint(1, 40),)
        most = min(shape[axis], np.iinfo(index).max + 1)
        low = -min(shape[axis], -int(np.iinfo(index).min)) if kind(index) == "i" else 0
        places = self.numbers.integers(low, most, indices).astype(index)
        if math.prod(indices) * math.prod(shape) > 40 * self.most:
            places = places.ravel()[:3]
        x = self.array(dtype, shape)
        return self.case("gather", [dtype, index], [x, places], {"axis": axis},
                         np.take(x, places.astype("i8"), axis), dtype)

    def one_hot(self):
        index, dtype = self.dtype(INTEGERS), self.dtype(ANY)
        indices = self.array(index, self.shape(0, 7), calm=True)
        depth = self.chance.randrange(12)
        axis = self.chance.randrange(-indices.ndim - 1, indices.ndim + 1)
        attrs = {"depth": depth, "axis": axis, "dtype": f"d:{dtype}", "on": 1, "off": 0}
        hot = np.arange(depth) == indices[..., None].astype("i8")
        return self.case("one_hot", [index], [indices], attrs,
                         np.moveaxis(hot, -1, axis).astype(stored(dtype)), dtype)

    # ---- reductions ----

    def axes(self, rank):
        """None, some or all; and as attributes."""
        if self.chance.random() < 0.2:
            return None, {}
        axes = tuple(self.chance.sample(range(rank), self.chance.randint(0, rank)))
        return axes, {"axes": [axis - rank * (self.chance.random() < 0.3) for axis in axes]}

    def sum_dtype(self, dtype):
        return {"b": "int64", "i": "int64", "u": "uint64"}.get(kind(dtype), dtype)

    def reduction(self, op, dtypes, function, calm=True):
        some_needed = op == "logsumexp"
        dtype, shape = self.dtype(dtypes), self.shape(empty=not some_needed)
        axes, attrs = self.axes(len(shape))
        attrs["keepdims"] = keepdims = self.chance.random() < 0.5
        x = self.array(dtype, shape, calm)
        how = {"axis": axes, "keepdims": keepdims}
        wanted, bound, out = function(x, dtype, how)
        return self.case(op, [dtype], [x], attrs, wanted, out, bound=bound,
                         bits=op in ("max", "min", "any", "all") or
                         (op in ("sum", "prod") and kind(dtype) != "f"),
                         zeros_alike=op in ZEROS_ARE_ALIKE)

    def float_bound(self, wanted, dtype, magnitude):
        """So much of the sum of magnitudes in double precision, rounded to the dtype."""
        return 64 * 2.0**-53 * magnitude + ROUNDED * unit_of(wanted, dtype)

    def sum(self):
        def function(x, dtype, how):
            out = self.sum_dtype(dtype)
            if kind(dtype) != "f":
                return x.sum(dtype=out, **how), 0, out
            wanted = narrow(x.astype("g").sum(**how), out)
            return wanted, self.float_bound(wanted, out, np.abs(x.astype("g")).sum(**how)), out
        return self.reduction("sum", ANY, function)

    def mean(self):
        def function(x, dtype, how):
            out = dtype if kind(dtype) == "f" else "float64"
            wanted = narrow(x.astype("g").mean(**how), out)
            return wanted, self.float_bound(wanted, out, np.abs(x.astype("g")).mean(**how)), out
        return self.reduction("mean", ANY, function)

    def prod(self):
        def function(x, dtype, how):
            out = self.sum_dtype(dtype)
            if kind(dtype) != "f":
                return x.prod(dtype=out, **how), 0, out
            # In double precision, which the products of many small numbers pass: keep them near 1.
            wide_x = np.exp(np.asarray(x, "f8") / (4 * max(x.size, 1) ** 0.5))
            x[...] = narrow(wide_x, dtype)
            true = x.astype("g").prod(**how)
            wanted = narrow(true, out)
            return wanted, (x.size + 8) * 2.0**-52 * np.abs(true) + ROUNDED * unit_of(wanted, out), out
        return self.reduction("prod", ANY, function)

    def extreme(self, op, function):
        def of_some(x, dtype, how):
            return function(x, initial=of_none(op, x.dtype), **how), 0, dtype

        return self.reduction(op, ANY, of_some, calm=False)

    def logical(self, op, function):
        return self.reduction(op, ANY, lambda x, dtype, how: (function(x, **how), 0, "bool"),
                              calm=False)

    def variance(self):
        ddof = self.chance.choice((0, 0, 1))

        def function(x, dtype, how):
            out = dtype if kind(dtype) == "f" else "float64"
            true = x.astype("g").var(ddof=ddof, **how)
            wanted = narrow(true, out)
            square = (x.astype("g") ** 2).mean(**how)
            return wanted, 512 * 2.0**-53 * (np.abs(true) + square) + \
                ROUNDED * unit_of(wanted, out), out
        case = self.reduction("variance", ANY, function)
        case.attrs["ddof"] = ddof
        return case

    def logsumexp(self):
        def function(x, dtype, how):
            big = x.astype("g")
            true = np.log(np.exp(big).sum(**how))
            wanted = narrow(true, dtype)
            return wanted, 2.5 * unit_of(wanted, dtype) + \
                4 * unit_of(np.abs(big).max(initial=1), dtype), dtype
        return self.reduction("logsumexp", FLOATS, function)

    def arg(self, op, function):
        dtype, shape = self.dtype(ANY), self.shape(1, empty=False)
        axis, keepdims = self.axis(len(shape)), self.chance.random() < 0.5
        x = self.array(dtype, shape)
        return self.case(op, [dtype], [x], {"axis": axis, "keepdims": keepdims},
                         function(x, axis, keepdims=keepdims), "int64")

    # ---- rows ----

    def cumsum(self):
        dtype, shape = self.dtype(ANY), self.shape(1)
        axis, exclusive = self.axis(len(shape)), self.chance.random() < 0.4
        reverse, out = self.chance.random() < 0.4, self.sum_dtype(dtype)
        x = self.array(dtype, shape, calm=True)
        turned = np.flip(x, axis) if reverse else x
        summed = turned.astype("g" if kind(dtype) == "f" else out)
        sums = summed.cumsum(axis)
        if exclusive:
            sums = sums - summed
        sums = np.flip(sums, axis) if reverse else sums
        wanted = narrow(sums, out)
        bound = 0
        if kind(dtype) == "f":
            total = np.abs(x.astype("g")).sum(axis, keepdims=True)
            bound = (shape[axis] + 4) * 2.0**-53 * total + ROUNDED * unit_of(wanted, out)
        attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
        return self.case("cumsum", [dtype], [x], attrs, wanted, out, bound=bound,
                         bits=kind(dtype) != "f")

    def softmax(self, op):
        dtype, shape = self.dtype(FLOATS), self.shape(1)
        axis = self.axis(len(shape))
        x = self.array(dtype, shape, calm=True)
        big = x.astype("g")
        top = big.max(axis, keepdims=True, initial=-np.inf)
        parts = np.exp(big - top)
        below, total = big - top, parts.sum(axis, keepdims=True)
        true = below - np.log(total) if op == "log_softmax" else parts / total
        wanted = narrow(true, dtype)
        own = "float32" if dtype in HALVES else dtype
        units = unit_of(wanted, own) if op == "softmax" else unit_of(np.abs(true) + 1, own)
        bound = (5 + np.abs(below)) * units + \
            ROUNDED * unit_of(wanted, dtype)
        return self.case(op, [dtype], [x], {"axis": axis}, wanted, dtype, bound=bound, bits=False)

    def order(self, x, axis, descending):
        """Places of a stable sort; NaN is the largest."""
        if not descending:
            return np.argsort(x, axis, "stable")
        last_first = np.flip(np.argsort(np.flip(x, axis), axis, "stable"), axis)
        return x.shape[axis] - 1 - last_first

    def sort(self, op):
        dtype, shape = self.dtype(ANY), self.shape(1)
        axis, descending = self.axis(len(shape)), self.chance.random() < 0.5
        x = self.array(dtype, shape)
        order = self.order(x, axis, descending)
        values = op == "sort"
        wanted = np.take_along_axis(x, order, axis) if values else order
        return self.case(op, [dtype], [x], {"axis": axis, "descending": descending}, wanted,
                         dtype if values else "int64", zeros_alike=values)

    def top_k(self, op):
        dtype, shape = self.dtype(ANY), self.shape(1)
        k = self.chance.randint(0, shape[-1])
        x = self.array(dtype, shape)
        order = self.order(x, -1, True)[..., :k]
        values = op == "top_k_values"
        wanted = np.take_along_axis(x, order, -1) if values else order
        return self.case(op, [dtype], [x], {"k": k}, wanted, dtype if values else "int64",
                         zeros_alike=values)

    def matmul(self):
        dtype = self.dtype(NUMBERS)
        batch = self.shape(0, 6) if self.most <= 10000 else (self.chance.randint(1, 3),)
        side = max(1, int((self.most / max(math.prod(batch), 1)) ** 0.5))
        rows, inner, columns = (self.chance.choice((1, side, self.chance.randint(0, 2 * side)))
                                for _ in range(3))
        ta, tb = self.chance.random() < 0.5, self.chance.random() < 0.5
        a = self.array(dtype, (*self.broadcastable(batch), rows, inner), calm=True)
        b = self.array(dtype, (*self.broadcastable(batch), inner, columns), calm=True)
        if kind(dtype) == "f":
            true = np.matmul(a.astype("f8"), b.astype("f8"))
            wanted = narrow(true, dtype)
            size = np.matmul(np.abs(a).astype("f8"), np.abs(b).astype("f8"))
            own = np.finfo("f4" if dtype in HALVES else dtype).eps
            bound = (inner + 1) * own * size + ROUNDED * unit_of(wanted, dtype)
        else:
            wanted, bound = np.matmul(a, b), 0
        inputs = [np.swapaxes(x, -1, -2).copy() if turned else x
                  for x, turned in ((a, ta), (b, tb))]
        return self.case("matmul", [dtype] * 2, inputs, {"transpose_a": ta, "transpose_b": tb},
                         wanted, dtype, bound=bound, bits=kind(dtype) != "f")

    # ---- from nothing ----

    def fill(self):
        dtype, shape = self.dtype(ANY), self.shape()
        value = self.chance.choice((0, 1, 7, 100)) if kind(dtype) != "b" else 1
        wanted = np.full(shape, value, stored(dtype))
        if self.chance.random() < 0.5:
            other = self.dtype(ANY)
            return self.case("fill", [other], [self.array(other, shape)],
                             {"value": value, "dtype": f"d:{dtype}"}, wanted, dtype)
        return self.case("fill", [], [], {"value": value, "dtype": f"d:{dtype}", "shape": shape},
                         wanted, dtype)

    def range(self):
        dtype = self.dtype(("int64", "int32", "uint8", "float64", "float32", "float16"))
        count = self.chance.randint(0, min(self.most, 100 if item_bytes(dtype) < 4 else 10**6))
        step = self.chance.choice((1, 2, 3)) if dtype == "uint8" else self.chance.choice((1, -3, 7))
        stop = 5 + count * step if dtype != "uint8" else 5 + min(count, 80) * step
        wanted = np.arange(5, stop, step).astype(dtype)
        return self.case("range", [], [], {"start": 5, "stop": stop, "step": step,
                                           "dtype": f"d:{dtype}"}, wanted, dtype)


def makers():
    """By op: what makes a case of it with a Maker."""
    table = {}
    for op, (function, dtypes) in EXACT_OF_ONE.items():
        table[op] = lambda m, o=op, f=function, d=dtypes: m.exact(o, f, d, 1)
    for op, (function, dtypes) in EXACT_OF_TWO.items():
        table[op] = lambda m, o=op, f=function, d=dtypes: m.exact(o, f, d, 2)
    for op, (function, units) in NEAR_OF_ONE.items():
        table[op] = lambda m, o=op, f=function, u=units: m.near(o, f, u, 1)
    for op, (function, units) in NEAR_OF_TWO.items():
        table[op] = lambda m, o=op, f=function, u=units: m.near(o, f, u, 2)
    power = table["pow"]
    table["pow"] = lambda m: m.whole_power() if m.chance.random() < 0.4 else power(m)
    for op in ("cast", "where", "clip", "ensure_shape", "reshape", "transpose", "broadcast_to",
               "slice", "crop", "reverse", "concat", "pad", "tile", "gather", "one_hot", "sum",
               "mean", "prod", "variance", "logsumexp", "cumsum", "matmul", "fill", "range"):
        table[op] = getattr(Maker, op)
    for op, function in (("max", np.max), ("min", np.min)):
        table[op] = lambda m, o=op, f=function: m.extreme(o, f)
    for op, function in (("any", np.any), ("all", np.all)):
        table[op] = lambda m, o=op, f=function: m.logical(o, f)
    for op, function in (("argmax", np.argmax), ("argmin", np.argmin)):
        table[op] = lambda m, o=op, f=function: m.arg(o, f)
    for op in ("softmax", "log_softmax"):
        table[op] = lambda m, o=op: m.softmax(o)
    for op in ("sort", "argsort"):
        table[op] = lambda m, o=op: m.sort(o)
    for op in ("top_k_values", "top_k_indices"):
        table[op] = lambda m, o=op: m.top_k(o)
    return table


def ops_of(*classes):
    """As ops.def has them."""
    text = (runtime.ROOT / "src/graph/ops.def").read_text()
    return {name for name, op_class in re.findall(r"^PL_OP\((\w+), (\w+),", text, re.M)
            if op_class in classes}
