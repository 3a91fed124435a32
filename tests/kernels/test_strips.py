# SPDX-License-Identifier: Apache-2.0
"""Chains of elementwise ops are run over strips of a few KiB. Where strips, rows and tiles end,
which operands repeat and how their elements lie must not show."""

import numpy as np
import pytest

# The fixtures are used by their names.
from test_sessions import AMPLE, Graph, chance, graph, session_tool  # noqa: F401

STRIP = 1024  # of float32; 512 of float64
FAR = 4 << 20  # bytes, from which on values are asked for ahead of time, and strips run in pieces


def close(got, wanted):
    """Floats within a few units of the largest: NumPy's sums and sines are others."""
    assert got.dtype == wanted.dtype
    if got.dtype.kind != "f" or got.size == 0:
        np.testing.assert_array_equal(got, wanted)
        return
    largest = max(1, np.abs(wanted).max())
    np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=2e-6 * largest)


def check_alone(graph, *names, caps=(AMPLE,)):
    """Each in a run of its own: what two of them want would be a value, and no strip of it folded."""
    for name in names:
        graph.check(name, compare=close, caps=caps)


def fused(graph, a, b):
    """a * b + sin(a), and its node."""
    x, y = graph.value(a), graph.value(b)
    product = graph.add("mul", [a, b], x * y)
    sine = graph.add("sin", [a], np.sin(x))
    return graph.add("add", [product, sine], x * y + np.sin(x))


@pytest.mark.parametrize("how", ("window", "memory"))
def test_lengths_around_a_strip(graph, chance, how):
    names = []
    for n in (0, 1, 7, 511, 512, 513, STRIP - 1, STRIP, STRIP + 1, 3 * STRIP + 5, 70001):
        a, b = (graph.give(chance.standard_normal(n, "f4"), how) for _ in range(2))
        chain = fused(graph, a, b)
        value = graph.value(chain)
        names += [chain, graph.add("sum", [chain], value.sum(dtype="f8").astype("f4"))]
    graph.check(*names, compare=close)
    check_alone(graph, *names)


@pytest.mark.parametrize("rows", (1, 300))
@pytest.mark.parametrize("columns", (1, 10, 255, 257, 1500))
def test_operands_that_repeat_along_rows_columns_or_everything(graph, chance, rows, columns):
    whole = graph.give(chance.standard_normal((rows, columns), "f4"), "memory")
    operands = [graph.give(chance.standard_normal(shape, "f4"), "memory")
                for shape in ((columns,), (rows, 1), (), (1, columns), (rows, columns))]
    names, folded = [], []
    for operand in operands:
        chain = fused(graph, whole, operand)
        turned = fused(graph, operand, whole)
        value = graph.value(chain)
        names += [chain, turned]
        folded.append(graph.add("sum", [chain], value.sum(1, "f8").astype("f4"), axes=[1]))
        folded.append(graph.add("argmax", [turned], graph.value(turned).argmax(1), axis=1))
    graph.check(*names, compare=close, caps=[AMPLE])
    check_alone(graph, *folded)


def test_an_operation_whose_operands_all_repeat(graph, chance):
    row, column = (graph.give(chance.standard_normal(shape, "f4"), "memory")
                   for shape in ((1, 700), (90, 1)))
    outer = graph.add("mul", [row, column], graph.value(row) * graph.value(column))
    wide = [graph.add("broadcast_to", [x], np.broadcast_to(graph.value(x), (90, 700)),
                      shape=(90, 700)) for x in (row, column, column)]
    negative = graph.add("neg", [wide[1]], -graph.value(wide[1]))
    both = graph.add("add", [wide[1], wide[2]], 2 * graph.value(wide[1]))
    total = graph.add("sum", [both], graph.value(both).sum(1, "f8").astype("f4"), axes=[1])
    check_alone(graph, outer, negative, both, total)


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64", "uint8", "int16", "int64"))
def test_dtypes_of_all_sizes_in_one_chain(graph, chance, dtype):
    array = chance.integers(0, 100, (37, 411)).astype(dtype)
    x = graph.give(array, "memory")
    flags = graph.add("greater", [x, graph.give(np.asarray(50, dtype), "memory")], array > 50)
    wide = graph.add("cast", [x], array.astype("f8"), dtype="d:float64")
    half = graph.give(np.float64(0.5), "memory")
    halved = graph.add("mul", [wide, half], array.astype("f8") * 0.5)
    chosen = graph.add("where", [flags, halved, wide],
                       np.where(array > 50, array * 0.5, array.astype("f8")))
    small = graph.add("cast", [chosen], graph.value(chosen).astype("f4"), dtype="d:float32")
    low, high = (graph.give(np.float32(limit), "memory") for limit in (7, 33))
    clipped = graph.add("clip", [small, low, high], np.clip(graph.value(small), 7, 33))
    value = graph.value(clipped)
    top = graph.add("max", [clipped], value.max(1), axes=[1])
    count = graph.add("any", [flags], (array > 50).any())
    graph.check(clipped, top, count, flags)
    check_alone(graph, clipped, top, count)


@pytest.mark.parametrize("how", ("window", "memory", "transposed"))
def test_views_are_read_where_they_lie_or_packed(graph, chance, how):
    x = graph.give(chance.standard_normal((60, 50, 330), "f4"), how)
    value = graph.value(x)
    begin, end = [3, 2, 5], [d - 1 for d in value.shape]
    names = []
    for step in ([1, 1, 1], [2, 1, 1], [1, 3, 1], [1, 1, 2]):
        cut = tuple(slice(*three) for three in zip(begin, end, step))
        part = graph.add("slice", [x], value[cut], start=begin, stop=end, step=step)
        half = graph.give(value[cut][0, 0] * 0.5, "memory")
        product = graph.add("mul", [part, half], value[cut] * graph.value(half))
        chain = graph.add("add", [product, part], value[cut] * graph.value(half) + value[cut])
        names += [chain, graph.add("sum", [chain], graph.value(chain).sum((1, 2), "f8")
                                   .astype("f4"), axes=[1, 2])]
    turned = graph.add("transpose", [x], value.transpose(2, 0, 1), axes=[2, 0, 1])
    names.append(graph.add("square", [turned], value.transpose(2, 0, 1) ** 2))
    graph.check(*names, compare=close)
    check_alone(graph, *names)


@pytest.mark.parametrize("of", ((37, 1), (5, 1, 37, 700)))
@pytest.mark.parametrize("axes", ([0], [1], [2], [3], [0, 2], [1, 3], [0, 1, 2, 3]))
def test_a_chain_is_folded_over_any_axes(graph, chance, axes, of):
    shape = (5, 1, 37, 700)
    a = graph.give(chance.integers(-3, 4, shape).astype("f4"), "memory")
    b = graph.give(chance.integers(-3, 4, of).astype("f4"), "memory")
    value = graph.value(a) * graph.value(b) + graph.value(a)
    product = graph.add("mul", [a, b], graph.value(a) * graph.value(b))
    chain = graph.add("add", [product, a], value)
    names = [graph.add(op, [chain], getattr(value, op)(tuple(axes)), axes=axes)
             for op in ("sum", "max", "all", "mean")]
    if len(axes) == 1:
        names += [graph.add(op, [chain], getattr(value, op)(axes[0]), axis=axes[0])
                  for op in ("argmax", "argmin")]
    check_alone(graph, *names)


def test_what_others_read_of_a_chain_is_whole(graph, chance):
    """The middle of a chain is wanted beside its end, and by an op that is not elementwise."""
    a, b = (graph.give(chance.standard_normal((200, 300), "f4"), "memory") for _ in range(2))
    chain = fused(graph, a, b)
    value = graph.value(chain)
    joined = graph.add("concat", [chain, a], np.concatenate([value, graph.value(a)], 1), axis=1)
    square = graph.add("square", [joined], graph.value(joined) ** 2)
    again = graph.add("mul", [chain, b], value * graph.value(b))
    total = graph.add("add", [again, chain], value * graph.value(b) + value)
    check_alone(graph, square, total)
    graph.check(square, total, compare=close)


def test_many_operands_in_one_chain(graph, chance):
    """More than a chain takes: it goes on in another."""
    given = [graph.give(chance.integers(-9, 9, 5000).astype("f4"), "memory") for _ in range(40)]
    total, value = given[0], graph.value(given[0])
    for name in given[1:]:
        value = value + graph.value(name)
        total = graph.add("add", [total, name], value)
    graph.check(total, graph.add("sum", [total], value.sum()))


def test_one_thread_and_several_give_the_same_bits_from_files(session_tool, tmp_path, chance):
    arrays = [chance.standard_normal(3_000_001, "f4") for _ in range(2)]
    sums = set()
    for threads in (1, 2, 5):
        one = Graph(session_tool, tmp_path, threads)
        a, b = (one.give(array) for array in arrays)
        chain = fused(one, a, b)
        value = arrays[0].astype("f8")
        wanted = (value * arrays[1] + np.sin(value)).sum().astype("f4")
        total = one.add("sum", [chain], wanted)
        said, (got,) = one.run(AMPLE, total)
        assert said.startswith("ok ")
        assert abs(got - wanted) <= 1e-5 * abs(wanted) + 1e-3
        sums.add(got.tobytes())
    assert len(sums) == 1


@pytest.mark.parametrize("n", (1, 1000, 65537, 400_003))
def test_results_straight_to_a_file_with_any_length(graph, chance, n):
    a, b = (graph.give(chance.standard_normal((3, n), "f4")) for _ in range(2))
    chain = fused(graph, a, b)
    graph.check(chain, compare=close, straight=True, caps=[AMPLE, 6 << 20, 1 << 20])


def test_views_straight_to_a_file(graph, chance):
    x = graph.give(chance.standard_normal((300, 700), "f4"))
    value = graph.value(x)
    turned = graph.add("transpose", [x], value.T)
    part = graph.add("slice", [x], value[1:299, 3::2], start=[1, 3], stop=[299, 700], step=[1, 2])
    for name in (turned, part):
        graph.check(name, compare=close, straight=True, caps=[AMPLE, 3 << 20, 1 << 20])


def bits(array):
    return array.view(f"u{array.itemsize}")


@pytest.mark.parametrize("dtype", ("float32", "float64", "int16", "uint8"))
def test_values_beyond_the_caches_give_the_same_bits(graph, chance, dtype):
    """A part of each is small, and computed as a value of its own, in whole strips."""
    n, part = FAR // np.dtype(dtype).itemsize + 77, slice(1000, 31007)
    arrays = [chance.integers(-90, 90, n).astype(dtype) for _ in range(2)]
    a, b, c, d = (graph.give(array[cut], "memory") for cut in (slice(None), part) for array in arrays)
    seven = graph.give(np.asarray(7, dtype), "memory")
    ends, sums = [], []
    for x, y in ((a, b), (c, d)):
        left, right = graph.value(x), graph.value(y)
        product = graph.add("mul", [x, y], left * right)
        both = graph.add("add", [product, seven], (left * right + np.asarray(7, dtype)).astype(dtype))
        flags = graph.add("less", [x, y], left < right)
        ends.append(graph.add("where", [flags, both, x],
                              np.where(left < right, graph.value(both), left)))
        sums.append(graph.add("max", [ends[-1]], graph.value(ends[-1]).max()))
    check_alone(graph, *ends, *sums, caps=(AMPLE, 40 << 20))
    _, (whole, small) = graph.run(AMPLE, *ends)
    np.testing.assert_array_equal(bits(whole)[part], bits(small))


@pytest.mark.parametrize("shape", ((1031, 1100), (3500, 300), (5, 220_000)))
def test_rows_beyond_the_caches(graph, chance, shape):
    a = graph.give(chance.standard_normal(shape, "f4"), "memory")
    row, column = (graph.give(chance.standard_normal(of, "f4"), "memory")
                   for of in (shape[1:], (shape[0], 1)))
    for operand in (row, column):
        chain = fused(graph, a, operand)
        value = graph.value(chain)
        check_alone(graph, chain, graph.add("sum", [chain], value.sum(1, "f8").astype("f4"), axes=[1]),
                    graph.add("sum", [chain], value.sum(0, "f8").astype("f4"), axes=[0]))
    cut = (slice(1, None), slice(3, -2))
    part = graph.add("slice", [a], graph.value(a)[cut], start=[1, 3],
                     stop=[shape[0], shape[1] - 2], step=[1, 1])
    check_alone(graph, fused(graph, part, graph.give(graph.value(row)[3:-2], "memory")))
