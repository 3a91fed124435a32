# SPDX-License-Identifier: Apache-2.0
"""Reductions, running sums and softmax give what NumPy gives, in tiles and without."""
import math
import warnings

import numpy as np
import pytest

from arrays import chance, numbers, reduce_tool, specials, tool  # noqa: F401: fixtures too

DTYPES = ("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8")
SHAPES = ((1, 1), (1, 7), (5, 31), (33, 64), (3, 1300), (70, 300), (9, 4100))
TILES = ((10**6, 10**6), (7, 33))
AXES = {"rows": 1, "columns": 0}


def reduced(tool, op, way, array, tile=TILES[0], ddof=0):
    return tool.run("reduce", op, way, *tile, ddof, array)[0]


def cases(chance, dtype, make=numbers):
    for shape in SHAPES:
        for way, axis in AXES.items():
            for tile in TILES:
                yield make(chance, dtype, shape), way, axis, tile


@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_reductions_are_numpys(tool, chance, dtype):
    names = ["max", "min", "any", "all", "argmax", "argmin"]
    names += ["sum", "prod"] if np.dtype(dtype).kind != "f" else []
    for make in (numbers, specials):
        for array, way, axis, tile in cases(chance, dtype, make):
            for op in names:
                wanted = getattr(np, op)(array, axis=axis)
                got = reduced(tool, op, way, array, tile)
                assert got.dtype == wanted.dtype, op
                np.testing.assert_array_equal(got, wanted, f"{op} {array.shape} {way} {tile}")


def exact_sum(array, axis):
    lines = array if axis == 1 else array.T
    return np.array([math.fsum(line) for line in lines.tolist()])


@pytest.mark.parametrize("dtype", ("f4", "f8"))
def test_sums_of_floats_err_no_more_than_numpys_bound(tool, chance, dtype):
    for array, way, axis, tile in cases(chance, dtype):
        got = reduced(tool, "sum", way, array, tile)
        assert got.dtype == array.dtype
        exact = exact_sum(array, axis)
        magnitudes = np.abs(array.astype("f8")).sum(axis)
        # The bound of reduce.h, and one rounding to the dtype.
        bound = 40 * 2.0**-53 * magnitudes + np.finfo(dtype).eps / 2 * np.abs(exact)
        assert (np.abs(got.astype("f8") - exact) <= bound).all(), f"{array.shape} {way} {tile}"


@pytest.mark.parametrize("dtype", ("f4", "f8"))
def test_the_tiles_of_a_sum_show_in_the_last_bits_at_most(tool, chance, dtype):
    array = numbers(chance, dtype, (40, 5000))
    for way, axis in AXES.items():
        whole = reduced(tool, "sum", way, array)
        tiled = reduced(tool, "sum", way, array, (3, 77))
        magnitudes = np.abs(array.astype("f8")).sum(axis)
        bound = 80 * 2.0**-53 * magnitudes + np.spacing(np.abs(whole))
        assert (np.abs(whole.astype("f8") - tiled) <= bound).all()


@pytest.mark.parametrize("dtype", ("u1", "i1", "u2", "i2"))
def test_many_rows_of_the_largest_integers_are_summed_exactly(tool, dtype):
    """More than their sums have room for in twice their width."""
    limits = np.iinfo(dtype)
    for n_rows in (255, 256, 257, 1100):
        for value in (limits.min, limits.max):
            array = np.full((n_rows, 41), value, dtype)
            np.testing.assert_array_equal(reduced(tool, "sum", "columns", array),
                                          array.sum(0, "u8" if dtype[0] == "u" else "i8"))
            np.testing.assert_array_equal(reduced(tool, "mean", "columns", array), array.mean(0))


@pytest.mark.parametrize("dtype", ("f4", "f8"))
def test_the_same_sum_in_every_build(tool, chance, dtype):
    """Which is made of 32 lanes in any case: the plain build's bits are the other's."""
    array = numbers(chance, dtype, (20, 3001))
    ways = [(op, way) for op in ("sum", "variance", "logsumexp") for way in AXES]
    here = [reduced(tool, op, way, array) for op, way in ways]
    tool.isa = "plain"
    for (op, way), values in zip(ways, here):
        np.testing.assert_array_equal(values, reduced(tool, op, way, array), f"{op} {way}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_means_and_variances_are_numpys_in_double_precision(tool, chance, dtype):
    kind, eps = np.dtype(dtype).kind, np.finfo(dtype if dtype in ("f4", "f8") else "f8").eps
    for array, way, axis, tile in cases(chance, dtype):
        wide = array.astype("f8") if dtype != "f8" else array.astype(np.longdouble)
        magnitudes = np.abs(wide).mean(axis)
        mean = reduced(tool, "mean", way, array, tile)
        assert mean.dtype == (dtype if kind == "f" else "f8")
        bound = (eps + 1e-15) * magnitudes
        assert (np.abs(mean - wide.mean(axis)) <= bound).all(), f"{array.shape} {way}"
        for ddof in (0, 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy's, that there is nothing to divide by
                wanted = wide.var(axis, ddof=ddof).astype("f8")
            got = reduced(tool, "variance", way, array, tile, ddof)
            nearly_0 = np.square(magnitudes).max() * 1e-30
            np.testing.assert_allclose(got, wanted, 3 * eps + 1e-13, nearly_0)
        np.testing.assert_allclose(tool.run("means", way, array)[0], wide.mean(axis).astype("f8"),
                                   0, bound.max())


def test_a_variance_far_from_zero_keeps_its_digits(tool, chance):
    array = (chance.standard_normal((4, 9000)) + 1e6).astype("f8")
    wanted = np.var(array.astype(np.longdouble), axis=1).astype("f8")
    # The squares themselves have 12 digits before those of the variance.
    np.testing.assert_allclose(reduced(tool, "variance", "rows", array, (1, 100)), wanted, 1e-10)
    np.testing.assert_allclose(
        reduced(tool, "variance", "columns", np.ascontiguousarray(array.T), (5, 2)), wanted, 1e-10)


@pytest.mark.parametrize("dtype", ("f4", "f8"))
@pytest.mark.parametrize("op", ("sum", "mean", "prod", "variance"))
def test_nan_and_infinity_go_the_way_of_numpys(tool, chance, dtype, op):
    for array, way, axis, tile in cases(chance, dtype, specials):
        with np.errstate(all="ignore"):
            wanted = getattr(np, {"variance": "var"}.get(op, op))(array.astype("f8"), axis=axis)
        got = reduced(tool, op, way, array, tile)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
        some = np.isfinite(wanted)
        np.testing.assert_array_equal(np.isfinite(got), some)
        np.testing.assert_allclose(got[some], wanted[some], 1e-6)
        np.testing.assert_array_equal(got[np.isinf(wanted)], wanted[np.isinf(wanted)])


@pytest.mark.parametrize("dtype", ("f4", "f8"))
def test_products_are_numpys_in_double_precision(tool, chance, dtype):
    for shape in SHAPES:
        array = (1 + chance.standard_normal(shape) / 100).astype(dtype)
        for way, axis in AXES.items():
            got = reduced(tool, "prod", way, array, (7, 33))
            wanted = np.prod(array.astype(np.longdouble), axis=axis).astype("f8")
            np.testing.assert_allclose(got, wanted, np.finfo(dtype).eps + 1e-12)


def logsumexp(array, axis):
    with np.errstate(all="ignore"):
        return np.logaddexp.reduce(array.astype(np.longdouble), axis=axis).astype("f8")


@pytest.mark.parametrize("dtype", ("f4", "f8"))
def test_logsumexp_is_what_adding_logarithms_gives(tool, chance, dtype):
    eps = np.finfo(dtype).eps
    for array, way, axis, tile in cases(chance, dtype):
        got = reduced(tool, "logsumexp", way, array, tile)
        wanted = logsumexp(array, axis)
        np.testing.assert_allclose(got, wanted, 2 * eps, 4 * eps, err_msg=f"{array.shape} {way}")
    for array, way, axis, tile in cases(chance, dtype, specials):
        with np.errstate(all="ignore"):
            wanted = np.log(np.exp(array.astype("f8")).sum(axis))
        np.testing.assert_allclose(reduced(tool, "logsumexp", way, array, tile), wanted, 1e-6)


def test_logsumexp_of_large_numbers_does_not_overflow(tool):
    array = np.array([[1e4, 1e4], [-1e4, -1e4 - 1]], "f4")
    np.testing.assert_allclose(reduced(tool, "logsumexp", "rows", array),
                               [1e4 + math.log(2), -1e4 + math.log1p(math.exp(-1))], 1e-7)


@pytest.mark.parametrize("dtype", ("f4", "f8"))
@pytest.mark.parametrize("log", (0, 1))
def test_softmax_is_numpys_in_double_precision(tool, chance, dtype, log):
    eps = np.finfo(dtype).eps
    for shape in SHAPES:
        array = (chance.standard_normal(shape) * 5).astype(dtype)
        for how in ("whole", "rows", "columns"):
            axis = 0 if how == "columns" else 1
            wide = array.astype(np.longdouble)
            wanted = wide - np.logaddexp.reduce(wide, axis=axis, keepdims=True)
            wanted = (wanted if log else np.exp(wanted)).astype("f8")
            got = tool.run("softmax", log, how, 37, array)
            assert got.dtype == array.dtype
            distance = array.max(axis=axis, keepdims=True) - array
            bound = eps * (5 + distance / 2) * wanted
            if log:
                bound = 2 * eps * (4 + np.abs(wanted) + distance)
            assert (np.abs(got - wanted) <= bound).all(), (shape, how)


def test_softmax_of_what_is_no_number_is_nan(tool):
    rows = [[1, np.nan, 2], [1, np.inf, 2], [-np.inf] * 3, [-np.inf, 0, 0], [1e30, 1, -1e30]]
    array = np.array(rows, "f4")
    wanted = [[np.nan] * 3] * 3 + [[0, 0.5, 0.5], [1, 0, 0]]
    for how in ("whole", "rows"):
        np.testing.assert_array_equal(tool.run("softmax", 0, how, 2, array), np.array(wanted, "f4"))
    transposed = np.ascontiguousarray(array.T)
    np.testing.assert_array_equal(tool.run("softmax", 0, "columns", 2, transposed).T,
                                  np.array(wanted, "f4"))


def cumsum(array, axis, exclusive, reverse):
    """NumPy's, in double precision for floats, with what it has no option for."""
    wide = array.astype("f8") if array.dtype == "f4" else array
    wide = np.flip(wide, axis) if reverse else wide
    sums = np.cumsum(wide, axis=axis)
    if exclusive:
        sums = np.roll(sums, 1, axis)
        sums[(slice(None),) * axis + (0,)] = 0
    return np.flip(sums, axis) if reverse else sums


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exclusive", (0, 1))
@pytest.mark.parametrize("reverse", (0, 1))
def test_running_sums_are_numpys(tool, chance, dtype, exclusive, reverse):
    for shape in ((1, 1), (3, 5), (5, 1031), (64, 33)):
        array = numbers(chance, dtype, shape)
        for way, axis in AXES.items():
            wanted = cumsum(array, axis, exclusive, reverse)
            for tile in (10**6, 7):
                got = tool.run("scan", way, exclusive, reverse, tile, array)
                if array.dtype.kind != "f":
                    assert got.dtype == wanted.dtype
                    np.testing.assert_array_equal(got, wanted)
                    continue
                assert got.dtype == array.dtype
                magnitude = np.abs(array.astype("f8")).sum()
                # Both sides round: ours is compared with another sum of doubles.
                bound = np.finfo(dtype).eps / 2 * np.abs(wanted) + 2**-50 * magnitude
                assert (np.abs(got - wanted) <= bound).all()
