# SPDX-License-Identifier: Apache-2.0
"""Graphs at random, 5 to 40 nodes of mixed ops: values that several nodes use, views of views,
inputs from memory, files and views, several fetches, as tensors and as files. What NumPy gives, at
three budgets, and with any number of threads; each plan is held to its peak (checked.py).

Most values are whole numbers that every dtype holds, so that any order of additions gives the same
and results are compared to the bit. What is not exact is kept apart: it goes into what is smooth
only, and is compared with a tolerance.

PLIMSOLL_TEST_ROUNDS=20 makes so many times as many graphs."""

import dataclasses
import os
import random

import numpy as np
import oracle
import pytest
import unary_ops
import runtime
from checked import CAP, HOWS, MIB, Given, budgets, run_within, same_bits

ROUNDS = int(os.environ.get("PLIMSOLL_TEST_ROUNDS", "1"))
GRAPHS = 40 * ROUNDS
GROUPS = 8  # of graphs, so that they run side by side
EXACT = ("int32", "int64", "uint8", "float32", "float64")
BLAS_CAP = 64 * MIB
SMALL, LARGE = 300, 20000  # elements
WHOLE_MOST = 1 << 20  # products of two are exact in a double, and a thousand of those added up


@dataclasses.dataclass
class Value:
    node: runtime.Node
    array: np.ndarray
    near: bool = False  # not exact

    @property
    def is_float(self):
        return self.array.dtype.kind == "f"


class Builder:
    def __init__(self, graph, folder, seed):
        self.graph, self.folder = graph, folder
        self.chance, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.maker = oracle.Maker(seed, LARGE if self.chance.random() < 0.4 else SMALL)
        self.values, self.given, self.has_product = [], [], False

    def keep(self, node, array, near=False):
        array = np.asarray(array)
        assert (node.dtype, node.shape) == (array.dtype.name, array.shape), node.op
        self.values.append(Value(node, array, near))
        return self.values[-1]

    def give(self, array):
        one = Given(self.graph, self.folder, array, how=self.chance.choice(HOWS))
        self.given.append(one)
        return self.keep(one.node, array)

    def source(self):
        dtype, shape = self.chance.choice(EXACT), self.maker.shape()
        array = self.numbers.integers(0 if dtype == "uint8" else -9, 10, shape).astype(dtype)
        if self.chance.random() < 0.8:
            return self.give(array)
        if self.chance.random() < 0.5:
            node = self.graph.add("fill", dtype=f"d:{dtype}", shape=shape, value=3)
            return self.keep(node, np.full(shape, 3, dtype))
        count = self.chance.randint(0, 200)
        node = self.graph.add("range", dtype=f"d:{dtype}", start=0, stop=count, step=1)
        return self.keep(node, np.arange(count).astype(dtype))

    def pick(self, test=lambda value: True):
        """Later ones are likelier, so that graphs become deep."""
        some = [value for value in self.values if test(value)]
        if not some:
            return None
        return some[max(self.chance.randrange(len(some)), self.chance.randrange(len(some)))]

    def number(self, value):
        return value.array.dtype != bool

    # ---- ops: each returns a value, or None where nothing fits ----

    def unary(self):
        x = self.pick(self.number)
        if x is None:
            return None
        op, function = self.chance.choice((("neg", np.negative), ("abs", np.abs),
                                           ("relu", unary_ops.relu), ("square", np.square)))
        if op == "square" and x.is_float and np.abs(x.array).max(initial=0) > 1000:
            return None
        return self.keep(self.graph.add(op, x.node), function(x.array), x.near)

    def smooth(self):
        x = self.pick(lambda value: value.is_float)
        if x is None or (x.near and np.abs(x.array).max(initial=0) > 10):
            return None  # the sine of what is large and not exact is anything
        op, function = self.chance.choice((("tanh", np.tanh), ("sigmoid", None), ("sin", np.sin)))
        function = function or (lambda x: 1 / (1 + np.exp(-x)))
        wide = function(x.array.astype("f8")).astype(x.array.dtype)
        return self.keep(self.graph.add(op, x.node), wide, True)

    def pair(self):
        """One that fits to another: itself, one of its shape, or what broadcasts with it."""
        a = self.pick(self.number)
        if a is None:
            return None, None

        def fits(value):
            try:
                shape = np.broadcast_shapes(value.array.shape, a.array.shape)
            except ValueError:
                return False
            return value.array.dtype == a.array.dtype and np.prod(shape) <= 4 * LARGE
        return a, self.pick(fits)

    def binary(self):
        a, b = self.pair()
        if b is None:
            return None
        op, function = self.chance.choice((("add", np.add), ("sub", np.subtract),
                                           ("mul", np.multiply), ("maximum", np.maximum),
                                           ("minimum", np.minimum)))
        array = function(a.array, b.array)
        if array.dtype.kind == "f" and np.abs(array).max(initial=0) > WHOLE_MOST:
            return None
        return self.keep(self.graph.add(op, a.node, b.node), array, a.near or b.near)

    def compare(self):
        a, b = self.pair()
        if b is None or a.near or b.near:
            return None
        op, function = self.chance.choice((("less", np.less), ("equal", np.equal)))
        return self.keep(self.graph.add(op, a.node, b.node), function(a.array, b.array))

    def where(self):
        test = self.pick(lambda value: value.array.dtype == bool)
        a = test and self.pick(lambda value: value.array.shape == test.array.shape and
                               self.number(value))
        if not a:
            return None
        zero = self.graph.add("fill", dtype=f"d:{a.array.dtype.name}", shape=(), value=0)
        return self.keep(self.graph.add("where", test.node, a.node, zero),
                         np.where(test.array, a.array, a.array.dtype.type(0)), a.near)

    def cast(self):
        x = self.pick(lambda value: not value.near)
        if x is None or np.abs(x.array.astype("f8")).max(initial=0) > WHOLE_MOST:
            return None
        dtype = self.chance.choice(EXACT)
        if dtype == "uint8" and x.is_float:
            return None
        return self.keep(self.graph.add("cast", x.node, dtype=f"d:{dtype}"), x.array.astype(dtype))

    def view(self):
        x = self.pick()
        shape = x.array.shape
        which = self.chance.randrange(5)
        if which == 0:
            axes = self.chance.sample(range(len(shape)), len(shape))
            node, array = self.graph.add("transpose", x.node, axes=axes), x.array.transpose(axes)
        elif which == 1:
            dims = self.chance.choice((shape[::-1], (x.array.size,), (1, *shape)[:8],
                                       (x.array.size, 1)))
            if np.prod(dims) != x.array.size:
                return None
            node, array = self.graph.add("reshape", x.node, shape=tuple(dims)), \
                x.array.reshape(dims)
        elif which == 2:
            step = [self.chance.choice((1, -1, 2, -3)) for _ in shape]
            start = [0 if s > 0 else dim for s, dim in zip(step, shape)]
            stop = [dim if s > 0 else -2**62 for s, dim in zip(step, shape)]
            node = self.graph.add("slice", x.node, start=start, stop=stop, step=step)
            array = x.array[tuple(slice(*one) for one in zip(start, stop, step))]
        elif which == 3:
            if x.array.size > LARGE or len(shape) == 8:
                return None
            node = self.graph.add("broadcast_to", x.node, shape=(3, *shape))
            array = np.broadcast_to(x.array, (3, *shape))
        else:
            axes = [axis for axis in range(len(shape)) if self.chance.random() < 0.5]
            node, array = self.graph.add("reverse", x.node, axes=axes), np.flip(x.array, axes)
        return self.keep(node, array, x.near)

    def move(self):
        x = self.pick(lambda value: value.array.ndim > 0)
        if x is None or x.array.size > 2 * LARGE:
            return None
        axis, which = self.chance.randrange(x.array.ndim), self.chance.randrange(4)
        if which == 0:
            node = self.graph.add("concat", x.node, x.node, axis=axis)
            return self.keep(node, np.concatenate([x.array] * 2, axis), x.near)
        if which == 1:
            before = [self.chance.randrange(2) for _ in x.array.shape]
            node = self.graph.add("pad", x.node, before=before, after=[0] * x.array.ndim, value=1)
            return self.keep(node, np.pad(x.array, [(b, 0) for b in before], constant_values=1),
                             x.near)
        if which == 2:
            times = [2 if i == axis else 1 for i in range(x.array.ndim)]
            return self.keep(self.graph.add("tile", x.node, multiples=times),
                             np.tile(x.array, times), x.near)
        dim = x.array.shape[axis]
        if dim == 0:
            return None
        places = self.give(self.numbers.integers(-dim, dim, self.chance.randint(0, 9)))
        return self.keep(self.graph.add("gather", x.node, places.node, axis=axis),
                         np.take(x.array, places.array, axis), x.near)

    def reduce(self):
        x = self.pick(lambda value: self.number(value) and value.array.size > 0)
        if x is None:
            return None
        rank = x.array.ndim
        axes = sorted(self.chance.sample(range(rank), self.chance.randint(0, rank)))
        how = {"axis": tuple(axes), "keepdims": self.chance.random() < 0.5}
        op = self.chance.choice(("sum", "max", "min", "mean" if x.is_float else "sum"))
        array = getattr(np, op)(x.array.astype("f8") if x.is_float else x.array, **how)
        array = np.asarray(array).astype(x.array.dtype if x.is_float else array.dtype)
        if array.dtype.kind == "f" and np.abs(array).max(initial=0) > WHOLE_MOST:
            return None
        node = self.graph.add(op, x.node, axes=axes, keepdims=how["keepdims"])
        return self.keep(node, array, x.near or op == "mean")

    def row(self):
        x = self.pick(lambda value: value.array.ndim > 0 and self.number(value) and not value.near)
        if x is None:
            return None
        axis = self.chance.randrange(x.array.ndim)
        op = self.chance.choice(("sort", "argsort", "cumsum"))
        if op == "cumsum" and x.is_float and np.abs(x.array).sum() > WHOLE_MOST:
            return None
        more = {"kind": "stable"} if op == "argsort" else {}
        return self.keep(self.graph.add(op, x.node, axis=axis),
                         getattr(np, op)(x.array, axis=axis, **more))

    def product(self):
        a = self.pick(lambda value: value.array.ndim >= 2 and self.number(value))
        if a is None or a.array.shape[-2] > 300:
            return None
        largest = float(np.abs(a.array.astype("f8")).max(initial=0))
        if a.is_float and largest * largest * a.array.shape[-1] > WHOLE_MOST:
            return None
        self.has_product = True
        wide = a.array.astype("f8") if a.is_float else a.array
        array = (wide @ np.swapaxes(wide, -1, -2)).astype(a.array.dtype)
        return self.keep(self.graph.add("matmul", a.node, a.node, transpose_b=True), array, a.near)

    def build(self):
        self.source()
        ops = (self.source, self.unary, self.unary, self.binary, self.binary, self.binary,
               self.smooth, self.compare, self.where, self.cast, self.view, self.view, self.view,
               self.move, self.reduce, self.reduce, self.row, self.product)  # fmt: skip
        wanted = self.chance.randint(5, 40)
        while len(self.values) < wanted:
            self.chance.choice(ops)()
        return self

    def fetches(self):
        """The last, and some others; a third of them to files."""
        some = self.chance.sample(self.values, min(len(self.values), self.chance.randint(1, 6)))
        some.append(self.values[-1])
        for number, value in enumerate(some):
            to_file = self.chance.random() < 0.3
            yield value, (value.node, self.folder / f"out{number}.npy") if to_file else value.node


def check(value, got):
    assert got.dtype == value.array.dtype and got.shape == value.array.shape
    if value.near:
        scale = np.abs(value.array).max(initial=1)
        tolerance = {2: 4e-3, 4: 4e-6, 8: 1e-12}[got.dtype.itemsize] * 30 * scale
        np.testing.assert_allclose(got, value.array, rtol=0, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, value.array)


def check_graph(seed, folder):
    with runtime.Graph() as graph:
        built = Builder(graph, folder, seed).build()
        pairs = list(built.fetches())
        cap = BLAS_CAP if built.has_product else 2 * CAP
        working = sum(value.array.nbytes for value in built.values)
        first = None
        for budget in budgets(working, cap):
            got, _ = run_within(graph, [fetch for _, fetch in pairs], built.given, budget,
                                cap_bytes=cap)
            for (value, _), array in zip(pairs, got):
                check(value, array)
            first = first or got
        got, _ = run_within(graph, [fetch for _, fetch in pairs], built.given, cap, threads=5,
                            cap_bytes=cap)
        for (value, _), one, other in zip(pairs, first, got):
            assert same_bits(one, other) or (built.has_product and value.near), "with 5 threads"
        for one in built.given:
            one.forget()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("group", range(GROUPS))
def test_a_graph_gives_what_numpy_gives_at_any_budget(group, tmp_path):
    for seed in range(group, GRAPHS, GROUPS):
        try:
            check_graph(seed, tmp_path)
        except (AssertionError, runtime.Refused) as failure:
            raise AssertionError(f"graph {seed}: {failure}") from failure
