# SPDX-License-Identifier: Apache-2.0
"""Rows that are longer than the budget: ops that need whole rows go along them in parts, and give
what NumPy gives, at an ample budget, a quarter and a sixteenth of what input and result take."""

import json

import numpy as np
import oracle
import pytest
import runtime
from checked import MIB, Given, run_within, same_bits

CAP = 8 * MIB
ELEMENTS = 150_000
# The op's axis is the inner, the outer, between others, and behind one of 1.
LAYOUTS = (((ELEMENTS,), 0), ((3, ELEMENTS // 3), 1), ((ELEMENTS // 3, 3), 0),
           ((2, ELEMENTS // 10, 5), 1), ((1, ELEMENTS, 1), 1))  # fmt: skip


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


class LongMaker(oracle.Maker):
    """Cases of the oracle's, of one dtype, shape and axis."""

    def __init__(self, seed, dtype, shape, axis):
        super().__init__(seed, ELEMENTS)
        self._dtype, self._shape, self._axis = dtype, shape, axis

    def dtype(self, _):
        return self._dtype

    def shape(self, *_, **__):
        return self._shape

    def axis(self, _):
        return self._axis


def item_bytes(case):
    return sum(oracle.item_bytes(dtype) for dtype in [*case.dtypes, case.dtype])


def plan_of(graph, fetch, given, budget):
    with runtime.Runtime(CAP) as own, runtime.Session(graph, own) as session:
        feeds = {}
        given.feed(own, session, feeds)
        return json.loads(session.explain([fetch], feeds, budget, as_json=True))["steps"]


def check(case, op, folder, how, to_file, least=1):
    """Budgets are those named; `least` is what the op needs at any."""
    rows = case.inputs[0].size * item_bytes(case)
    ways = []
    with runtime.Graph() as graph:
        given = Given(graph, folder, case.inputs[0], case.dtypes[0], how)
        node = graph.add(op, given.node, **case.attrs)
        fetch = (node, folder / "out.npy") if to_file else node
        first = None
        for budget in (CAP, max(rows // 4, least), max(rows // 16, least)):
            ((got,), enough) = run_within(graph, [fetch], [given], budget, cap_bytes=CAP)
            assert enough == budget, f"refused: {enough} for {budget}"
            case.check(got)
            assert first is None or not case.bits or same_bits(first, got)
            if case.zeros_alike and got.dtype.kind == "f":
                assert (np.signbit(first if first is not None else got) == np.signbit(got)).all()
            first = got if first is None else first
            (step,) = plan_of(graph, fetch, given, budget)
            ways.append("in parts" in step["why"])
        given.forget()
    return ways


FLOATS = ("float32", "float64", "float16", "bfloat16")
DTYPES = (*FLOATS, "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")


def dtypes_for(shape, axis):
    """All where there is one row, and a third of them in each of the other layouts."""
    first = LAYOUTS.index((shape, axis))
    return list(enumerate(DTYPES))[first % 3 if first else 0::3 if first else 1]


@pytest.mark.parametrize("shape, axis", LAYOUTS)
def test_sums_are_carried_along_rows_that_do_not_fit(shape, axis, tmp_path):
    for i, dtype in dtypes_for(shape, axis):
        case = LongMaker(i, dtype, shape, axis).cumsum()
        to_file = i % 2 == 0 and dtype != "bfloat16"
        ways = check(case, "cumsum", tmp_path, "window", to_file)
        assert ways[0] is False
        if len(shape) == 1:
            assert ways[2], f"{dtype}: a row of {shape[0]} was whole at a sixteenth"


@pytest.mark.parametrize("op", ("softmax", "log_softmax"))
@pytest.mark.parametrize("shape, axis", LAYOUTS)
def test_softmax_of_rows_that_do_not_fit(op, shape, axis, tmp_path):
    for i, dtype in enumerate(FLOATS):
        case = LongMaker(i, dtype, shape, axis).softmax(op)
        if dtype == "float64":
            case.bound = case.bound + 64 * 2.0**-53 * np.abs(case.wanted)  # of the sum: softmax.h
        ways = check(case, op, tmp_path, "window", i % 2 == 0)
        assert ways[0] is False
        if len(shape) == 1:
            assert ways[2], f"{dtype}: a row of {shape[0]} was whole at a sixteenth"


@pytest.mark.parametrize("exclusive", (False, True))
@pytest.mark.parametrize("reverse", (False, True))
def test_sums_go_either_way_and_may_leave_out_the_element(exclusive, reverse, tmp_path):
    for dtype, (shape, axis) in zip(("int32", "uint8", "int64", "float64"), LAYOUTS):
        x = np.random.default_rng(5).integers(0, 9, shape).astype(dtype)  # exact in any order
        turned = np.flip(x, axis) if reverse else x
        out = "float64" if dtype == "float64" else "uint64" if dtype == "uint8" else "int64"
        sums = turned.cumsum(axis, dtype=out) - (turned.astype(out) if exclusive else 0)
        attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
        wanted = np.flip(sums, axis) if reverse else sums
        case = oracle.Case("cumsum", [dtype], [x], attrs, out, wanted.astype(out))
        check(case, "cumsum", tmp_path, "window", False)


def with_specials(x, axis, places):
    """Puts a number that is none into some of the rows, far from their beginning."""
    x = np.moveaxis(x.copy(), axis, -1)
    flat = x.reshape(-1, x.shape[-1])
    for row, (where, what) in zip(flat, places):
        row[int(where * len(row))] = what
    return np.moveaxis(flat.reshape(x.shape), -1, axis)


SPECIALS = ((0.9, np.nan), (0.7, np.inf), (0.8, -np.inf))


@pytest.mark.parametrize("shape, axis", LAYOUTS)
@pytest.mark.parametrize("special", SPECIALS)
def test_what_is_no_number_reaches_as_far_as_in_whole_rows(shape, axis, special, tmp_path):
    x = np.random.default_rng(6).integers(0, 9, shape).astype("f4")
    x = with_specials(x, axis, (special, SPECIALS[0]))
    sums = oracle.Case("cumsum", ["float32"], [x], {"axis": axis}, "float32",
                       x.astype("f8").cumsum(axis).astype("f4"))
    check(sums, "cumsum", tmp_path, "window", True)
    top = x.astype("f8").max(axis, keepdims=True)
    powers = np.exp(x - top)
    shares = (powers / powers.sum(axis, keepdims=True)).astype("f4")
    soft = oracle.Case("softmax", ["float32"], [x], {"axis": axis}, "float32", shares,
                       bound=13 * oracle.unit_of(shares, "float32"), bits=False)
    check(soft, "softmax", tmp_path, "window", False)


@pytest.mark.parametrize("how", ("transposed window", "strided window", "file", "variable"))
def test_long_rows_of_whatever_is_given(how, tmp_path):
    for shape, axis in LAYOUTS[1:4]:
        x = np.random.default_rng(7).integers(-9, 9, shape).astype("i4")
        case = oracle.Case("cumsum", ["int32"], [x], {"axis": axis}, "int64",
                           x.cumsum(axis, dtype="i8"))
        check(case, "cumsum", tmp_path, how, False, 2_000_000 if "strided" in how else 1)


def test_long_rows_between_other_ops(tmp_path):
    """What is beneath is computed part by part, and what is above reads the result from disk."""
    x = np.random.default_rng(8).integers(-9, 9, ELEMENTS).astype("f8")
    with runtime.Graph() as graph:
        given = Given(graph, tmp_path, x)
        twice = graph.add("add", given.node, given.node)
        sums = graph.add("cumsum", graph.add("reverse", twice, axes=[0]), exclusive=True)
        top = graph.add("max", graph.add("sub", sums, twice))
        wanted = (2 * x)[::-1].cumsum() - (2 * x)[::-1]
        for budget in (CAP, x.nbytes // 4, x.nbytes // 16):
            got, most = run_within(graph, [(sums, tmp_path / "sums.npy"), top], [given], budget,
                                   cap_bytes=CAP)[0]
            np.testing.assert_array_equal(got, wanted)
            assert most == (wanted - 2 * x).max()


COUNTS = 120_000  # what digits are counted in
SORTED = 340_000  # what digits are counted in, and a slab for small results


@pytest.mark.parametrize("op", ("top_k_values", "top_k_indices"))
@pytest.mark.parametrize("k", (1, 40, 3000))
def test_the_best_of_rows_that_do_not_fit(op, k, tmp_path):
    """The oracle's elements are often equal, and some are no numbers: the first of equals counts."""
    for i, dtype in enumerate(DTYPES):
        shape = (2 * ELEMENTS,) if i % 2 else (2, ELEMENTS)
        maker = LongMaker(i, dtype, shape, -1)
        maker.chance.randint = lambda *_: k
        case = maker.top_k(op)
        ways = check(case, op, tmp_path, "window", dtype not in oracle.HALVES, SORTED + 110 * k)
        assert ways[0] is False
        if oracle.item_bytes(dtype) == 8:
            assert ways[2], f"{dtype}: a row of {shape[-1]} was whole"


@pytest.mark.parametrize("op", ("sort", "argsort"))
@pytest.mark.parametrize("shape, axis", LAYOUTS)
def test_rows_that_do_not_fit_are_sorted_on_disk(op, shape, axis, tmp_path):
    """The oracle's elements are often equal, and some are no numbers: equals stay in order."""
    for i, dtype in dtypes_for(shape, axis):
        case = LongMaker(i, dtype, shape, axis).sort(op)
        ways = check(case, op, tmp_path, "window", i % 2 == 0 and dtype != "bfloat16", COUNTS)
        if len(shape) == 1 and oracle.item_bytes(dtype) == 8:
            assert ways == [False, True, True], f"{dtype}: {ways}"


def test_zeros_of_both_signs_stay_in_order_on_disk(tmp_path):
    """They are equal, whatever runs they are in: as argsort has them, and as a row that fits."""
    x = np.random.default_rng(5).choice(np.array([-1, -0.0, 0.0, 1], "f8"), ELEMENTS)
    with runtime.Graph() as graph:
        given = Given(graph, tmp_path, x)
        for descending in (False, True):
            places = np.argsort(-x if descending else x, kind="stable")
            nodes = [graph.add(op, given.node, descending=descending) for op in ("sort", "argsort")]
            for budget in (CAP, max(x.nbytes // 16, COUNTS)):
                got = [run_within(graph, [node], [given], budget, cap_bytes=CAP)[0][0] for node in nodes]
                np.testing.assert_array_equal(got[1], places)
                assert got[0].tobytes() == x[places].tobytes()
        given.forget()


def test_long_rows_of_what_is_transposed(tmp_path):
    """Tiles are then as square as can be: rows lie before and behind the op's axis at once."""
    x = np.random.default_rng(9).integers(-99, 99, (5, ELEMENTS // 10, 4)).astype("i4")
    turned = x.transpose(2, 1, 0)
    with runtime.Graph() as graph:
        given = Given(graph, tmp_path, x)
        node = graph.add("transpose", given.node, axes=[2, 1, 0])
        for op, wanted in (("cumsum", turned.cumsum(1, dtype="i8")), ("sort", np.sort(turned, 1)),
                           ("argsort", np.argsort(turned, 1, "stable"))):  # fmt: skip
            rows = graph.add(op, node, axis=1)
            least = 1 if op == "cumsum" else COUNTS
            for budget in (CAP, max(x.nbytes // 4, least), max(x.nbytes // 16, least)):
                ((got,), enough) = run_within(graph, [rows], [given], budget, cap_bytes=CAP)
                assert enough == budget
                np.testing.assert_array_equal(got, wanted)
        given.forget()
