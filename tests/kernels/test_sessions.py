# SPDX-License-Identifier: Apache-2.0
"""Sessions give what NumPy gives, whatever the budget: ample, a quarter and a sixteenth of what all
values would take together. What a run claims is never more than its plan stated, and not much
less."""

import itertools
import json
import math
import re

import numpy as np
import op_cases
import pytest

from graph_tool import attr_text, shape_text

AMPLE = 1 << 30
# BLAS, slabs for small results and a row of whatever is computed are needed at any budget.
LEAST = 200 << 10


@pytest.fixture(scope="session")
def session_tool(build_tool):
    return build_tool("session_tool")


@pytest.fixture
def chance():
    return np.random.default_rng(7)


class Graph:
    """Nodes as the tool takes them, with what NumPy makes of each."""

    def __init__(self, ask, folder, threads=2):
        self.ask, self.folder, self.threads = ask, folder, threads
        self.lines, self.values, self.names = [], {}, itertools.count()
        self.in_memory = 0

    def give(self, array, how="window", op="placeholder"):
        name = f"n{next(self.names)}"
        path = self.folder / f"{name}.npy"
        np.save(path, array)
        shape = array.shape[::-1] if how == "transposed" else array.shape
        self.lines.append(f"add {op} {name} - dtype=d:{array.dtype} shape=s:{shape_text(shape)}")
        self.lines.append(f"give {name} {how} {path}")
        self.values[name] = array.T if how == "transposed" else array
        self.in_memory = max(self.in_memory, array.nbytes if how == "memory" else 0)
        return name

    def add(self, op, inputs, value, /, **attrs):
        name = f"n{next(self.names)}"
        self.lines.append(f"add {op} {name} {','.join(inputs) or '-'} {attr_text(attrs)}")
        self.values[name] = value
        return name

    def value(self, name):
        return self.values[name]

    def run(self, cap, *names, straight=False):
        """What the tool says to the run, and the arrays."""
        paths = [self.folder / f"out-{name}.npy" for name in names]
        sign = ">" if straight else "="
        pairs = [f"{name}{sign}{path}" for name, path in zip(names, paths)]
        said = self.ask(*([line] for line in self.lines), ["run", cap, self.threads, *pairs])
        assert set(said[:-1]) == {"ok"}, said
        arrays = [np.load(path) for path in paths if path.exists()]
        for path in paths:
            path.unlink(missing_ok=True)
        return said[-1], arrays

    def caps(self):
        total = sum(np.asarray(value).nbytes for value in self.values.values())
        least = max(LEAST, self.in_memory + (64 << 10))  # what is given in memory has to be there
        return AMPLE, max(total // 4, least), max(total // 16, least)

    def check(self, *names, compare=None, caps=None, straight=False):
        compare = compare or same
        for cap in caps or self.caps():
            said, arrays = self.run(cap, *names, straight=straight)
            assert said.startswith("ok "), said
            before, given, peak, stated, _ = map(int, said.split()[1:])
            assert peak <= max(given, before + stated), f"{said} at {cap}"
            assert stated <= cap
            for name, array in zip(names, arrays):
                compare(array, np.asarray(self.values[name]))


def same(got, wanted):
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


def close(got, wanted):
    assert got.dtype == wanted.dtype
    tolerance = {2: 2e-3, 4: 2e-6, 8: 1e-13}[got.dtype.itemsize]
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.fixture
def graph(session_tool, tmp_path):
    return Graph(session_tool, tmp_path)


HOWS = ("window", "memory", "transposed")


@pytest.mark.parametrize("how", HOWS)
def test_a_chain_with_reductions_over_any_axes(graph, chance, how):
    a = graph.give(chance.standard_normal((70, 50, 90)), how)
    b = graph.give(chance.standard_normal((50, 1)), "memory")
    product = graph.add("mul", [a, b], graph.value(a) * graph.value(b))
    sine = graph.add("sin", [a], np.sin(graph.value(a)))
    chain = graph.add("add", [product, sine], graph.value(product) + graph.value(sine))
    value = graph.value(chain)
    sums = [graph.add("sum", [chain], value.sum())]
    for axes in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
        axes_of = tuple(axes)
        sums.append(graph.add("sum", [chain], value.sum(axes_of), axes=axes))
        sums.append(graph.add("mean", [chain], value.mean(axes_of, keepdims=True), axes=axes,
                              keepdims=True))
    graph.check(*sums, compare=close)
    graph.check(chain, *sums, compare=close)


MOVED = (((700, 611), (1, 0)), ((60001, 5), (1, 0)), ((5, 60001), (1, 0)),
         ((3, 130, 120, 7), (0, 3, 1, 2)), ((2, 33, 97, 65), (0, 2, 3, 1)), ((70, 69, 68), (2, 0, 1)), ((1, 530, 1, 520), (3, 2, 1, 0)))


@pytest.mark.parametrize("dtype", ("u1", "f4", "f8"))
@pytest.mark.parametrize("shape, axes", MOVED)
def test_what_only_moves_in_memory_lands_where_it_belongs(graph, chance, dtype, shape, axes):
    x = chance.integers(0, 200, shape).astype(dtype)
    name = graph.give(x, "memory")
    turned = graph.add("transpose", [name], x.transpose(axes), axes=list(axes))
    back = graph.add("reverse", [turned], graph.value(turned)[..., ::-1], axes=[len(shape) - 1])
    step = [1] * (len(shape) - 1) + [2]
    start = [0] * (len(shape) - 1) + [1]
    part = graph.add("slice", [back], graph.value(back)[..., 1::2], start=start,
                     stop=[2**62] * len(shape), step=step)
    twice = (2, *graph.value(part).shape)
    wide = graph.add("broadcast_to", [part], np.broadcast_to(graph.value(part), twice), shape=twice)
    for fetched in (turned, part, wide):
        graph.check(fetched, caps=[AMPLE])


def test_reductions_of_every_kind(graph, chance):
    array = chance.integers(-3, 4, (37, 41, 29)).astype("f4")
    array[3, 4, 5] = np.nan
    x = graph.give(array)
    names = []
    for axis in range(3):
        names.append(graph.add("max", [x], array.max(axis), axes=[axis]))
        names.append(graph.add("min", [x], array.min(axis), axes=[axis]))
        names.append(graph.add("argmax", [x], array.argmax(axis), axis=axis))
        names.append(graph.add("argmin", [x], array.argmin(axis), axis=axis))
        names.append(graph.add("any", [x], array.any(axis), axes=[axis]))
        names.append(graph.add("all", [x], array.all(axis), axes=[axis]))
    graph.check(*names)
    clean = np.nan_to_num(array)
    y = graph.give(clean)
    var = graph.add("variance", [y], clean.var((0, 2), ddof=1), axes=[0, 2], ddof=1)
    top = clean.max(1, keepdims=True)
    log = graph.add("logsumexp", [y], np.log(np.exp(clean - top).sum(1)) + top[:, 0], axes=[1])
    graph.check(var, log, compare=close)


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("ddof", (-3, 2.5, 29, 30, math.nan, math.inf, -math.inf))
def test_variances_are_numpys_whatever_is_taken_from_the_count(graph, chance, ddof):
    x = chance.integers(-3, 4, (4, 29)).astype("f8")
    x[2] = 7
    var = graph.add("variance", [graph.give(x)], x.var(1, ddof=ddof), axes=[1], ddof=ddof)
    graph.check(var, compare=close)


def test_small_integers_add_up_in_64_bits_and_halves_in_32(graph, chance):
    bytes_ = graph.give(chance.integers(0, 256, (300, 77)).astype("u1"))
    value = graph.value(bytes_)
    names = [graph.add("sum", [bytes_], value.sum(axis), axes=[axis]) for axis in (0, 1)]
    graph.check(*names)
    half = graph.give(chance.standard_normal((300, 77)).astype("f2"))
    wide = graph.value(half).astype("f4")
    names = [
        graph.add("sum", [half], wide.sum(0).astype("f2"), axes=[0]),
        graph.add("exp", [half], np.exp(wide).astype("f2")),
        graph.add("max", [half], graph.value(half).max(1), axes=[1]),
        graph.add("sort", [half], np.sort(graph.value(half))),
    ]
    graph.check(*names, compare=close)
    other = graph.give(chance.standard_normal(77).astype("f2"))
    less = graph.add("less", [half, other], graph.value(half) < graph.value(other))
    graph.check(less)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("inlined", (False, True))
def test_views_and_moves(graph, chance, how, inlined):
    """Of a value that is given, and of one that is computed on the way."""
    x = graph.give(chance.integers(-99, 99, (24, 36, 45)).astype("i4"), how)
    if inlined:
        x = graph.add("neg", [x], -graph.value(x))
    v = graph.value(x)
    d0, d1, d2 = v.shape
    index = graph.give(chance.integers(-d1, d1, (5, 3)).astype("i8"))
    i = graph.value(index)
    names = [
        graph.add("transpose", [x], v.T),
        graph.add("transpose", [x], v.transpose(1, 2, 0), axes=[1, 2, 0]),
        graph.add("reshape", [x], v.reshape(d1 * d0, d2), shape=(d1 * d0, d2)),
        graph.add("reshape", [x], v.reshape(d2, d0, d1), shape=(d2, d0, d1)),
        graph.add("slice", [x], v[20:2:-3, 1:-1, ::7], start=[20, 1, 0], stop=[2, -1, 99],
                  step=[-3, 1, 7]),
        graph.add("crop", [x], v[2:7, 3:, :9], start=[2, 3, 0], size=[5, -1, 9]),
        graph.add("reverse", [x], v[::-1, :, ::-1], axes=[0, 2]),
        graph.add("pad", [x], np.pad(v, ((2, 0), (0, 3), (1, 1)), constant_values=7),
                  before=[2, 0, 1], after=[0, 3, 1], value=7),
        graph.add("tile", [x], np.tile(v, (2, 1, 3)), multiples=[2, 1, 3]),
        graph.add("gather", [x, index], np.take(v, i, 1), axis=1),
        graph.add("concat", [x, x, x], np.concatenate([v, v, v], 1), axis=1),
        graph.add("one_hot", [index], (i[:, None] == np.arange(8)[:, None]).astype("f4"), depth=8,
                  axis=1),
        graph.add("one_hot", [index], (i[..., None] == np.arange(8)).astype("f4"), depth=8),
    ]  # fmt: skip
    turned = graph.add("transpose", [x], v.transpose(0, 2, 1), axes=[0, 2, 1])
    back = graph.add("transpose", [turned], v, axes=[0, 2, 1])
    names.append(graph.add("add", [x, back], v + v))
    graph.check(*names)
    for name in names:
        quarter = np.asarray(graph.value(name)).nbytes // 4
        graph.check(name, caps=[AMPLE, max(quarter, LEAST, graph.in_memory)])


@pytest.mark.parametrize("how", HOWS)
def test_moves_of_what_does_not_lie_in_order(graph, chance, how):
    """Which is read where it lies, with its strides."""
    x = graph.give(chance.integers(-99, 99, (24, 36, 45)).astype("i4"), how)
    v = graph.value(x)
    d0, d1, d2 = v.shape
    index = graph.give(chance.integers(-10, 10, (5, 3)).astype("i8"))
    i = graph.value(index)
    names = []
    for view, w in ((graph.add("transpose", [x], v.T), v.T),
                    (graph.add("slice", [x], v[::-1, 2:, ::2], start=[d0 - 1, 2, 0],
                               stop=[-99, d1, d2], step=[-1, 1, 2]), v[::-1, 2:, ::2])):  # fmt: skip
        names += [graph.add("gather", [view, index], np.take(w, i, axis), axis=axis)
                  for axis in (0, 1, 2)]  # fmt: skip
        names.append(graph.add("concat", [view, view], np.concatenate([w, w], 1), axis=1))
        names.append(graph.add("tile", [view], np.tile(w, (1, 2, 2)), multiples=[1, 2, 2]))
        names.append(graph.add("pad", [view], np.pad(w, ((1, 2), (0, 1), (3, 0))),
                               before=[1, 0, 3], after=[2, 1, 0]))  # fmt: skip
    graph.check(*names)
    for name in names:
        quarter = np.asarray(graph.value(name)).nbytes // 4
        graph.check(name, caps=[AMPLE, max(quarter, LEAST, graph.in_memory)])


@pytest.mark.parametrize("dtype", ("u1", "i2", "f4", "f8"))
def test_two_arrays_are_stacked_along_any_axis(graph, chance, dtype):
    v, w = (chance.integers(0, 99, (2, 50, 60)).astype(dtype) for _ in range(2))
    x, y = graph.give(v), graph.give(w)
    names = []
    for axis in range(4):
        shape = list(v.shape)
        shape.insert(axis, 1)
        pair = [graph.add("reshape", [one], graph.value(one).reshape(shape), shape=tuple(shape))
                for one in (x, y)]  # fmt: skip
        names.append(graph.add("concat", pair, np.stack([v, w], axis), axis=axis))
        names.append(graph.add("concat", pair[::-1], np.stack([w, v], axis), axis=axis))
    graph.check(*names)


def test_rows(graph, chance):
    v = chance.standard_normal((30, 40, 50)).astype("f4")
    x = graph.give(v)
    names, near = [], []
    for axis in (0, 1, 2):
        names.append(graph.add("sort", [x], np.sort(v, axis), axis=axis))
        names.append(graph.add("argsort", [x], np.argsort(v, axis, "stable"), axis=axis))
        wide = np.exp(v.astype("f8"))
        soft = wide / wide.sum(axis, keepdims=True)
        near.append(graph.add("softmax", [x], soft.astype("f4"), axis=axis))
        near.append(graph.add("log_softmax", [x], np.log(soft).astype("f4"), axis=axis))
        near.append(graph.add("cumsum", [x], v.astype("f8").cumsum(axis).astype("f4"), axis=axis))
    order = np.argsort(-v, -1, "stable")[..., :7]
    names.append(graph.add("top_k_values", [x], np.take_along_axis(v, order, -1), k=7))
    names.append(graph.add("top_k_indices", [x], order, k=7))
    graph.check(*names)
    graph.check(*near, compare=close)


MEBIBYTES_OF_BLAS = 8 << 20


@pytest.mark.parametrize("dtype", ("f4", "f8", "i4"))
def test_products_of_matrices(graph, chance, dtype):
    def numbers(*shape):
        return chance.integers(-4, 5, shape).astype(dtype)  # exact in any order of additions

    a, b = graph.give(numbers(200, 300)), graph.give(numbers(300, 250), "memory")
    batch, one = graph.give(numbers(3, 1, 20, 30)), graph.give(numbers(4, 30, 10))
    va, vb, vbatch, vone = map(graph.value, (a, b, batch, one))
    twice = graph.add("add", [a, a], va + va)
    names = [
        graph.add("matmul", [a, b], va @ vb),
        graph.add("matmul", [twice, b], (va + va) @ vb),
        graph.add("matmul", [a, a], va @ va.T, transpose_b=True),
        graph.add("matmul", [a, a], va.T @ va, transpose_a=True),
        graph.add("matmul", [batch, one], vbatch @ vone),
    ]
    caps = [AMPLE, MEBIBYTES_OF_BLAS, MEBIBYTES_OF_BLAS // 2]
    graph.check(*names, caps=caps)
    for name in names:
        graph.check(name, caps=caps, straight=True)


def test_what_is_made_from_nothing_is_the_same_at_any_budget(graph):
    size = (300, 400)
    fill = graph.add("fill", [], np.full(size, 3, "i2"), dtype="d:int16", shape=size, value=3)
    run = graph.add("range", [], np.arange(5, 90000, 3, "i4"), dtype="d:int32", start=5,
                    stop=90000, step=3)  # fmt: skip
    graph.check(fill, run)
    randoms = [
        graph.add("random_uniform", [], np.zeros(size, "f4"), shape=size, seed=3, low=-2, high=5),
        graph.add("random_normal", [], np.zeros(size), dtype="d:float64", shape=size, seed=4),
        graph.add("random_uniform", [], np.zeros(size, "i4"), dtype="d:int32", shape=size, low=-9,
                  high=10),
        graph.add("random_truncated", [], np.zeros(size, "f2"), dtype="d:float16", shape=size),
    ]  # fmt: skip
    _, first = graph.run(AMPLE, *randoms)
    for cap in graph.caps()[1:]:
        for got, wanted in zip(graph.run(cap, *randoms)[1], first):
            same(got, wanted)
    uniform, normal, integers, truncated = first
    assert uniform.min() >= -2 and uniform.max() < 5 and abs(uniform.mean() - 1.5) < 0.05
    assert abs(normal.mean()) < 0.02 and abs(normal.std() - 1) < 0.02
    assert set(np.unique(integers)) == set(range(-9, 10))
    assert np.abs(truncated).max() <= 2 and truncated.astype("f4").std() > 0.8


def test_nothing_at_all_and_single_elements(graph):
    none = graph.give(np.zeros((3, 0, 5), "f4"))
    one = graph.give(np.array(2.5))
    v = graph.value(none)
    names = [
        graph.add("neg", [none], -v),
        graph.add("sum", [none], v.sum(1), axes=[1]),
        graph.add("sum", [none], v.sum(0), axes=[0]),
        graph.add("prod", [none], v.prod()),
        graph.add("transpose", [none], v.T),
        graph.add("reshape", [none], v.reshape(0, 7), shape=(0, 7)),
        graph.add("sort", [none], v),
        graph.add("softmax", [none], v, axis=0),
        graph.add("concat", [none, none], np.concatenate([v, v], 2), axis=2),
        graph.add("matmul", [none, none], np.zeros((3, 0, 0), "f4"), transpose_b=True),
        graph.add("matmul", [none, none], np.zeros((3, 5, 5), "f4"), transpose_a=True),
        graph.add("pad", [none], np.ones((3, 2, 5), "f4"), before=[0, 1, 0], after=[0, 1, 0],
                  value=1),
        graph.add("square", [one], np.array(6.25)),
        graph.add("sum", [one], np.array(2.5)),
        graph.add("reshape", [one], np.full((1, 1), 2.5), shape=(1, 1)),
    ]  # fmt: skip
    for name in names:
        graph.check(name, caps=[64 << 20])
    graph.check(*names, caps=[64 << 20])


# NumPy has no such function; or it rounds halves on the way, where we do in the end.
NO_ORACLE = ("logsumexp",)
OTHER_IN_HALVES = ("prod", "pow", "cumsum", "softmax", "log_softmax", "variance", "mean")
GROUP = 25


def good_cases(count):
    """Cases at random that NumPy does not refuse, with its results."""
    with np.errstate(all="ignore"):
        for case in op_cases.make(11, count):
            halves = case.inputs[-1].dtype == "float16"
            if case.op in NO_ORACLE or (halves and case.op in OTHER_IN_HALVES):
                continue
            try:
                yield case, np.asarray(case.oracle(*case.inputs))
            except (ValueError, IndexError, ZeroDivisionError):
                pass


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("cap", (AMPLE, 4 << 20))
def test_any_op_on_any_shape(session_tool, tmp_path, cap):
    """Of what is given, and of what is computed on the way: the inputs are also views of views."""
    cases = list(good_cases(700))
    assert len(cases) > 600 and {case.op for case, _ in cases} >= set(op_cases.BINARY)
    for begin in range(0, len(cases), GROUP):
        graph, names, ops = Graph(session_tool, tmp_path), [], []
        for case, wanted in cases[begin:begin + GROUP]:
            given = [graph.give(array) for array in case.inputs]
            turned = [graph.add("transpose", [name], graph.value(name).T) for name in given]
            back = [graph.add("transpose", [name], graph.value(name).T) for name in turned]
            inputs = back if len(names) % 2 else given
            names.append(graph.add(case.op, inputs, wanted, **case.attrs))
            ops.append(case.op)
        said, arrays = graph.run(cap, *names)
        assert said.startswith("ok "), said
        for op, name, got in zip(ops, names, arrays):
            wanted = graph.value(name)
            assert got.dtype == wanted.dtype and got.shape == wanted.shape, op
            tolerance = {"f": {2: 4e-3, 4: 4e-6, 8: 1e-12}}.get(got.dtype.kind, {})
            np.testing.assert_allclose(got, wanted, rtol=tolerance.get(got.dtype.itemsize, 0),
                                       atol=1e-7 if tolerance else 0, err_msg=f"{op} {name}")


def test_values_of_several_uses_are_computed_once_and_spilled_when_they_must(graph, chance):
    x = graph.give(chance.standard_normal((512, 400)))
    v = graph.value(x)
    shared = graph.add("tanh", [x], np.tanh(v))
    first = graph.add("sum", [shared], np.tanh(v).sum(0, keepdims=True), axes=[0], keepdims=True)
    apart = graph.add("sub", [shared, first], np.tanh(v) - graph.value(first))
    last = graph.add("max", [apart], graph.value(apart).max(1), axes=[1])
    graph.check(last, compare=close)
    said, _ = graph.run(v.nbytes // 4, last)
    assert int(said.split()[5]) > 0, "nothing was spilled"
    said, _ = graph.run(AMPLE, last)
    assert int(said.split()[5]) == 0


def test_a_plan_states_what_is_used_and_not_much_more(graph, chance):
    x = graph.give(chance.standard_normal((1000, 700)).astype("f4"))
    v = graph.value(x)
    names = [
        graph.add("exp", [x], np.exp(v)),
        graph.add("sum", [x], v.sum(0), axes=[0]),
        graph.add("sort", [x], np.sort(v)),
        graph.add("transpose", [x], v.T),
    ]
    for cap in graph.caps():
        for some in ([name] for name in names):
            said, _ = graph.run(cap, *some)
            _, _, peak, stated, _ = map(int, said.split()[1:])
            assert peak <= stated <= 1.25 * peak, f"{some} at {cap}: {said}"


def test_a_plan_is_the_same_twice_and_says_where_values_are(graph, chance):
    x = graph.give(chance.standard_normal((512, 400)))
    shared = graph.add("tanh", [x], None)
    total = graph.add("sum", [shared], None, axes=[0])
    apart = graph.add("sub", [shared, total], None)
    said = graph.ask(*([line] for line in graph.lines), ["explain", 600000, 2, apart])[-1]
    assert said.startswith("ok "), said
    plan = json.loads(said[3:])
    assert [step["op"] for step in plan["steps"]] == ["tanh", "sum", "sub"]
    assert plan["steps"][0]["where"] == "spill" and plan["steps"][1]["where"] == "memory"
    assert plan["peak_bytes"] == max(step["peak_bytes"] for step in plan["steps"])
    assert plan["peak_bytes"] <= 600000


def test_what_cannot_fit_is_refused_with_what_would_do(graph, chance):
    x = graph.give(chance.standard_normal((4, 100000)))
    best = -np.sort(-graph.value(x))[:, :50000]
    name = graph.add("top_k_values", [x], best, k=50000)
    said, _ = graph.run(300000, name)
    code, why = said.split(" ", 2)[1:]
    assert code == "PL_EBUDGET" and why.startswith(f"top_k_values '{name}': its smallest ")
    enough = re.search(r"the budget is 293.0 KiB: give at least ([0-9.]+) MiB", why)
    graph.check(name, caps=[int((float(enough[1]) + 0.05) * (1 << 20))])


def test_an_index_out_of_range_is_told_with_its_node(graph):
    x, index = graph.give(np.arange(5.0)), graph.give(np.array([1, -6], "i2"))
    name = graph.add("gather", [x, index], None)
    said, _ = graph.run(AMPLE, name)
    assert said == (f"refused EINVAL gather '{name}': index -6 is not in axis 0, which has 5 "
                    "elements")


def test_one_thread_and_five_give_the_same_bits(session_tool, tmp_path, chance):
    array = chance.standard_normal((700, 900)).astype("f4")
    results = []
    for threads in (1, 5):
        graph = Graph(session_tool, tmp_path, threads)
        x = graph.give(array)
        names = [graph.add("sum", [x], None), graph.add("mean", [x], None, axes=[0])]
        names.append(graph.add("variance", [x], None, axes=[1]))
        results.append(graph.run(AMPLE, *names)[1])
    for one, five in zip(*results):
        same(one, five)
