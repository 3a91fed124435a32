# SPDX-License-Identifier: Apache-2.0
"""Products of matrices are NumPy's, wherever operands and result are and whatever the budget."""

import itertools

import numpy as np
import pytest

MIB = 1 << 20
# What BLAS wants for itself with two threads, and something for buffers.
BUDGETS = {"ample": 64 * MIB, "small": 7 * MIB, "tiny": 11 * MIB // 2}
DTYPES = ("f4", "f8", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8")


@pytest.fixture(scope="session")
def matmul_tool(build_tool):
    return build_tool("matmul_tool")


@pytest.fixture
def chance():
    return np.random.default_rng(11)


@pytest.fixture
def multiply(matmul_tool, tmp_path, monkeypatch):
    """multiply(a, b) -> the product; `multiply.plan` is then the strategy, what was planned to be
    claimed, and what was."""
    monkeypatch.chdir(tmp_path)  # for scratch

    def run(a, b, budget="ample", where="rrr", ta=False, tb=False):
        np.save("a.npy", a)
        np.save("b.npy", b)
        size = BUDGETS.get(budget, budget)
        command = ("matmul", size, int(ta), int(tb), where, "a.npy", "b.npy", "c.npy")
        strategy, planned, claimed, _ = matmul_tool(command)[0].split()
        run.plan = strategy, int(planned), int(claimed)
        return np.load("c.npy")

    return run


def values(chance, dtype, shape):
    if np.dtype(dtype).kind == "f":
        return chance.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return chance.integers(info.min, info.max, shape, dtype, endpoint=True)


def assert_product(c, a, b):
    """Floats within k * epsilon * |a||b| of the exact sums, which any order of summing up keeps, as
    NumPy's own float64 ones do; integers exactly."""
    assert c.dtype == a.dtype
    if a.dtype.kind != "f":
        np.testing.assert_array_equal(c, a @ b)
        return
    a, b = a.astype("f8"), b.astype("f8")
    slack = (a.shape[1] + 1) * (np.finfo(c.dtype).eps + np.finfo("f8").eps)
    assert np.all(np.abs(c - a @ b) <= slack * (np.abs(a) @ np.abs(b)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_all_shapes_are_numpys(multiply, chance, dtype):
    for m, n, k in itertools.product((0, 1, 5, 64, 129), (1, 7, 130), (0, 1, 33, 300)):
        a, b = values(chance, dtype, (m, k)), values(chance, dtype, (k, n))
        assert_product(multiply(a, b), a, b)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("ta", (False, True))
@pytest.mark.parametrize("tb", (False, True))
def test_a_product_from_files_is_numpys_at_every_budget(multiply, chance, budget, ta, tb):
    for dtype in ("f4", "f8", "i4"):
        a, b = values(chance, dtype, (430, 270)), values(chance, dtype, (270, 510))
        stored = a.T.copy() if ta else a, b.T.copy() if tb else b
        c = multiply(*stored, budget=budget, where="fff", ta=ta, tb=tb)
        assert_product(c, a, b)
        strategy, planned, claimed = multiply.plan
        assert strategy == "tiles" if ta else strategy in ("strips", "tiles")
        assert claimed <= planned <= BUDGETS[budget]


@pytest.mark.parametrize("where", list(map("".join, itertools.product("rf", repeat=3))))
def test_operands_and_result_may_be_anywhere(multiply, chance, where):
    a, b = values(chance, "f4", (900, 300)), values(chance, "f4", (300, 700))
    assert_product(multiply(a, b, budget="tiny", where=where), a, b)


def test_the_same_plan_gives_the_same_bits(multiply, chance):
    a, b = values(chance, "f4", (500, 600)), values(chance, "f4", (600, 400))
    first = multiply(a, b, budget="tiny", where="fff")
    assert first.tobytes() == multiply(a, b, budget="tiny", where="fff").tobytes()


def test_not_a_number_and_infinity_go_where_numpy_lets_them_go(multiply, chance):
    a, b = values(chance, "f4", (60, 40)), values(chance, "f4", (40, 50))
    a[3, 5], a[7, 2], b[9, 8] = np.nan, np.inf, -np.inf
    for where in ("rrr", "fff"):
        c = multiply(a, b, budget="tiny", where=where)
        with np.errstate(invalid="ignore"):
            expected = a @ b
        np.testing.assert_array_equal(np.isnan(c), np.isnan(expected))
        np.testing.assert_array_equal(np.isposinf(c), np.isposinf(expected))
        np.testing.assert_array_equal(np.isneginf(c), np.isneginf(expected))


@pytest.mark.parametrize("dtype", ("f4", "f8", "i8"))
@pytest.mark.parametrize("ta", (False, True))
def test_a_matrix_times_its_transposed_is_symmetric(matmul_tool, tmp_path, chance, dtype, ta):
    a = values(chance, dtype, (333, 150))
    np.save(tmp_path / "a.npy", a)
    path, result = tmp_path / "a.npy", tmp_path / "c.npy"
    matmul_tool(("matmul", 64 * MIB, int(ta), int(not ta), "rrr", path, path, result))
    c = np.load(result)
    assert_product(c, *((a.T, a) if ta else (a, a.T)))
    np.testing.assert_array_equal(c, c.T)


@pytest.mark.parametrize("one_right", (False, True))
def test_batches_are_numpys(matmul_tool, tmp_path, chance, one_right):
    for m, n, k in ((1, 1, 1), (16, 8, 24), (64, 64, 64), (270, 260, 250)):
        for dtype in ("f4", "f8", "i4"):
            a, b = values(chance, dtype, (9, m, k)), values(chance, dtype, (1 if one_right else 9, k, n))
            np.save(tmp_path / "a.npy", a)
            np.save(tmp_path / "b.npy", b)
            matmul_tool(("batch", *(tmp_path / name for name in ("a.npy", "b.npy", "c.npy"))))
            c = np.load(tmp_path / "c.npy")
            for i in range(9):
                assert_product(c[i], a[i], b[0 if one_right else i])
