# SPDX-License-Identifier: Apache-2.0
"""Products of matrices in sessions are NumPy's, wherever operands and result are and whatever the
budget; what is claimed is what the plan stated, and hardly less."""

import json
import re

import numpy as np
import pytest

from test_sessions import AMPLE, Graph, chance, graph, same, session_tool  # noqa: F401

MIB = 1 << 20
LEAST = 3 * MIB + MIB // 2  # BLAS wants 2 MiB for itself, and reading ahead takes 1/2
TURNED = {False: "window", True: "transposed"}


def numbers(chance, dtype, *shape):
    return chance.integers(-4, 5, shape).astype(dtype)  # exact in any order of additions


def swapped(array):
    return np.ascontiguousarray(np.swapaxes(array, -1, -2))


def caps(graph, *names):
    """Ample, a quarter and a sixteenth of what all takes together."""
    total = sum(np.asarray(graph.value(name)).nbytes for name in names)
    return AMPLE, *(max(total // part, LEAST + graph.in_memory) for part in (4, 16))


def check(graph, cap, *names, straight=False):
    """The right results, and a peak as stated."""
    said, arrays = graph.run(cap, *names, straight=straight)
    assert said.startswith("ok "), said
    before, given, peak, stated, _ = map(int, said.split()[1:])
    assert stated <= cap
    assert peak <= max(given, before + stated), said
    slack = MIB if before else 0  # a slab that was there already
    assert stated <= 1.25 * max(peak, given) + slack, said
    assert len(arrays) == len(names)
    for name, array in zip(names, arrays):
        same(array, graph.value(name))


def explain(graph, cap, *names):
    said = graph.ask(*([line] for line in graph.lines), ["explain", cap, graph.threads, *names])[-1]
    assert said.startswith("ok "), said
    return json.loads(said[3:])["steps"]


@pytest.mark.parametrize("dtype", ("f4", "f8", "i4"))
def test_products_of_files_at_every_budget(graph, chance, dtype):
    """Stored as they are and the other way, by flag and by the order of the file."""
    for ta, tb, how_a, how_b in ((0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (1, 1, 1, 0), (0, 1, 1, 1)):
        m, n, k = (700, 820, 610) if dtype != "i4" else (300, 320, 210)
        a, b = numbers(chance, dtype, m, k), numbers(chance, dtype, k, n)
        name_a = graph.give(a.T.copy() if ta ^ how_a else a, TURNED[bool(how_a)])
        name_b = graph.give(b.T.copy() if tb ^ how_b else b, TURNED[bool(how_b)])
        c = graph.add("matmul", [name_a, name_b], a @ b, transpose_a=bool(ta), transpose_b=bool(tb))
        for cap in caps(graph, name_a, name_b, c):
            check(graph, cap, c)
        check(graph, cap, c, straight=True)


def test_a_transpose_beneath_a_product_is_no_step(graph, chance):
    a, b = graph.give(numbers(chance, "f4", 300, 400)), graph.give(numbers(chance, "f4", 300, 200))
    turned = graph.add("transpose", [a], graph.value(a).T)
    again = graph.add("transpose", [turned], graph.value(a))
    same_again = graph.add("identity", [turned], graph.value(a).T)
    products = [
        graph.add("matmul", [turned, b], graph.value(a).T @ graph.value(b)),
        graph.add("matmul", [turned, a], graph.value(a).T @ graph.value(a)),
        graph.add("matmul", [same_again, again], graph.value(a).T @ graph.value(a)),
        graph.add("matmul", [turned, turned], graph.value(a).T @ graph.value(a), transpose_b=True),
        graph.add("matmul", [b, again], graph.value(b).T @ graph.value(a), transpose_a=True),
        graph.add("matmul", [b, turned], (graph.value(a).T @ graph.value(b)).T, transpose_a=True,
                  transpose_b=True),
    ]  # fmt: skip
    assert [step["op"] for step in explain(graph, AMPLE, *products)] == ["matmul"] * 6
    for cap in (AMPLE, 8 * MIB):
        check(graph, cap, *products)
    check(graph, AMPLE, turned, *products)


@pytest.mark.parametrize("how", ("window", "memory", "transposed"))
@pytest.mark.parametrize("dtype", ("f4", "f8", "i8"))
def test_a_matrix_times_itself_is_half_the_work(graph, chance, how, dtype):
    a = graph.give(numbers(chance, dtype, 500, 300), how)
    v = graph.value(a)
    other = graph.give(v.copy())
    turned = graph.add("transpose", [a], v.T)
    names = [
        graph.add("matmul", [a, a], v @ v.T, transpose_b=True),
        graph.add("matmul", [a, a], v.T @ v, transpose_a=True),
        graph.add("matmul", [a, turned], v @ v.T),
        graph.add("matmul", [a, other], v @ v.T, transpose_b=True),
    ]
    steps = explain(graph, AMPLE, *names)
    plain = 2 * v.size * v.shape[0]
    assert [step["flops"] for step in steps] == [plain / 2, 2 * v.size * v.shape[1] / 2, plain / 2, plain]
    for cap in (AMPLE, LEAST + graph.in_memory):
        check(graph, cap, *names)
        check(graph, cap, names[0], straight=True)


@pytest.mark.parametrize("flag", ("transpose_a", "transpose_b"))
@pytest.mark.parametrize("how", ("window", "transposed"))
def test_a_matrix_times_itself_out_of_memory_is_half_the_work_too(graph, chance, flag, how):
    a = graph.give(numbers(chance, "f4", 1310, 1270), how)
    v = graph.value(a)
    square = graph.add("matmul", [a, a], v.T @ v if flag == "transpose_a" else v @ v.T, **{flag: True})
    plain = 2 * v.size * graph.value(square).shape[0]
    [step] = explain(graph, 6 * MIB, square)
    assert step["tiling"] == "tiles" and step["flops"] <= 0.7 * plain
    for straight in (False, True):
        check(graph, 6 * MIB, square, straight=straight)
    resident = graph.add("matmul", [a, a], graph.value(square), **{flag: True})
    check(graph, 24 * MIB, resident)
    check(graph, 24 * MIB, resident, straight=True)


def test_a_long_matrix_times_itself_has_its_result_in_memory(graph, chance):
    a = graph.give(numbers(chance, "f4", 900, 2100))
    square = graph.add("matmul", [a, a], graph.value(a) @ graph.value(a).T, transpose_b=True)
    [step] = explain(graph, 12 * MIB, square)
    assert step["tiling"] == "tiles" and step["where"] == "memory"
    check(graph, 12 * MIB, square)


BATCHES = {
    "one right for all": ((5, 120, 130), (130, 140)),
    "each its own": ((3, 4, 120, 130), (3, 4, 130, 110)),
    "either repeats": ((3, 1, 120, 130), (1, 4, 130, 110)),
    "left repeats": ((120, 130), (6, 130, 110)),
    "large": ((2, 600, 500), (2, 500, 560)),
    "one": ((1, 1, 300, 200), (1, 200, 100)),
}


@pytest.mark.parametrize("shapes", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("dtype", ("f4", "u2"))
def test_batches_at_every_budget(graph, chance, shapes, dtype):
    a, b = (numbers(chance, dtype, *shape) for shape in shapes)
    plain = [graph.give(a), graph.give(b, "memory")]
    turned = [graph.give(swapped(a)), graph.give(swapped(b))]
    names = [
        graph.add("matmul", plain, a @ b),
        graph.add("matmul", [turned[0], plain[1]], a @ b, transpose_a=True),
        graph.add("matmul", [plain[0], turned[1]], a @ b, transpose_b=True),
    ]
    for cap in caps(graph, *plain, *names):
        check(graph, cap, *names)
    for name in names:
        check(graph, cap, name, straight=True)


def test_a_batch_times_itself(graph, chance):
    v = numbers(chance, "f4", 4, 130, 90)
    a = graph.give(v, "memory")
    squares = graph.add("matmul", [a, a], v @ np.swapaxes(v, 1, 2), transpose_b=True)
    assert explain(graph, AMPLE, squares)[0]["flops"] == v.size * 130
    check(graph, AMPLE, squares)


def test_operands_that_are_views_or_computed(graph, chance):
    v = numbers(chance, "f4", 6, 240, 250)
    a, b = graph.give(v), graph.give(numbers(chance, "f4", 250, 180), "memory")
    vb = graph.value(b)
    flat = graph.add("reshape", [a], v.reshape(1440, 250), shape=(1440, 250))
    part = graph.add("slice", [a], v[1:4, ::2], start=[1, 0, 0], stop=[4, 240, 250], step=[1, 2, 1])
    moved = graph.add("transpose", [a], v.transpose(1, 0, 2), axes=[1, 0, 2])
    wide = graph.add("broadcast_to", [b], np.broadcast_to(vb, (6, 250, 180)), shape=(6, 250, 180))
    again = graph.add("broadcast_to", [wide], np.broadcast_to(vb, (2, 6, 250, 180)), shape=(2, 6, 250, 180))
    twice = graph.add("add", [a, a], v + v)
    names = [
        graph.add("matmul", [again, b], np.broadcast_to(vb.T @ vb, (2, 6, 180, 180)), transpose_a=True),
        graph.add("matmul", [again, b], np.broadcast_to(vb @ vb.T, (2, 6, 250, 250)), transpose_b=True),
        graph.add("matmul", [flat, b], v.reshape(1440, 250) @ vb),
        graph.add("matmul", [part, b], v[1:4, ::2] @ vb),
        graph.add("matmul", [moved, b], v.transpose(1, 0, 2) @ vb),
        graph.add("matmul", [a, wide], v @ vb),
        graph.add("matmul", [twice, b], (v + v) @ vb),
    ]
    steps = sorted(step["op"] for step in explain(graph, AMPLE, *names))
    assert steps == ["add", *["matmul"] * 7, "slice", "transpose"]
    total = graph.add("sum", [names[-1]], np.asarray(((v + v) @ vb).sum((0, 1))), axes=[0, 1])
    for cap in caps(graph, a, b, twice, *names):
        check(graph, cap, *names, total)
    check(graph, cap, total)


def test_products_of_products_are_spilled_between(graph, chance):
    a, b, c = (graph.give(numbers(chance, "f4", 1000, 1000)) for _ in range(3))
    first = graph.add("matmul", [a, b], graph.value(a) @ graph.value(b))
    last = graph.add("matmul", [first, c], graph.value(first) @ graph.value(c), transpose_a=True)
    graph.values[last] = graph.value(first).T @ graph.value(c)
    cap = 7 * MIB
    places = [step["where"] for step in explain(graph, cap, last)]
    assert places == ["spill", "spill"]
    for straight in (False, True):
        check(graph, cap, last, straight=straight)
    check(graph, cap, first, last, straight=True)


@pytest.mark.parametrize("dtype", ("f2", "f4"))
def test_halves_are_multiplied_in_32_bits(graph, chance, dtype):
    a, b = numbers(chance, dtype, 150, 160), numbers(chance, dtype, 160, 140)
    wanted = (a.astype("f4") @ b.astype("f4")).astype(dtype)
    c = graph.add("matmul", [graph.give(a), graph.give(b)], wanted)
    for cap in (AMPLE, LEAST):
        check(graph, cap, c)


def test_a_file_of_rank_3_in_fortrans_order(graph, chance):
    a, b = numbers(chance, "f4", 130, 120, 10), numbers(chance, "f4", 130, 90)
    name_a, name_b = graph.give(a, "transposed"), graph.give(b)
    c = graph.add("matmul", [name_a, name_b], a.T @ b)
    for cap in caps(graph, name_a, name_b, c):
        check(graph, cap, c)


@pytest.mark.parametrize("m, n, k", ((2000, 1, 1000), (1, 2000, 1000), (1200, 1100, 1), (1, 1, 100_000)))
def test_vectors(graph, chance, m, n, k):
    a, b = numbers(chance, "f8", m, k), numbers(chance, "f8", k, n)
    name_a, name_b = graph.give(a), graph.give(b)
    c = graph.add("matmul", [name_a, name_b], a @ b)
    for cap in caps(graph, name_a, name_b, c):
        check(graph, cap, c)
        check(graph, cap, c, straight=True)


def test_a_plan_says_how_a_product_is_done(graph, chance):
    a, b = graph.give(numbers(chance, "f4", 900, 900)), graph.give(numbers(chance, "f4", 900, 900), "memory")
    batch = graph.give(numbers(chance, "f4", 64, 64, 64), "memory")
    square = graph.add("matmul", [b, b], None)
    strips = graph.add("matmul", [a, b], None)
    tiles = graph.add("matmul", [a, b], None, transpose_a=True)
    many = graph.add("matmul", [batch, batch], None)
    small = graph.add("matmul", [graph.give(np.eye(9)), graph.give(np.eye(9))], None)
    steps = explain(graph, AMPLE, square, strips, tiles, many, small)
    assert [step.get("tiling") for step in steps] == ["whole", "strips", "tiles", "batch", None]


def test_what_cannot_fit_is_refused_with_its_parts(graph, chance):
    a, b = (graph.give(numbers(chance, "f4", 700, 900)) for _ in range(2))
    c = graph.add("matmul", [a, b], None, transpose_b=True)
    said, _ = graph.run(MIB, c)
    size = r"[0-9.]+ [KM]iB"
    found = re.fullmatch(
        rf"refused PL_EBUDGET matmul '{c}': the smallest tiling needs ([0-9.]+) MiB \(A {size} \+ B "
        rf"{size} \+ C {size} \+ reading ahead {size} \+ workspace {size}\); the budget is 1.0 MiB: "
        r"give at least \1 MiB", said)
    assert found, said
    graph.values[c] = graph.value(a) @ graph.value(b).T
    check(graph, int((float(found[1]) + 0.05) * MIB), c)
