# SPDX-License-Identifier: Apache-2.0
"""Sorting, top_k and choosing by index give what NumPy gives."""
import numpy as np
import pytest

from arrays import chance, numbers, reduce_tool, specials, tool  # noqa: F401: fixtures too

DTYPES = ("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8")
# On both sides of where merging ends and counting begins.
LENGTHS = (1, 2, 15, 16, 17, 33, 63, 65, 200, 800, 2047, 2100, 5001)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", (numbers, specials))
def test_rows_are_sorted_as_numpy_does(tool, chance, dtype, make):
    for n in LENGTHS:
        array = make(chance, dtype, (2, n))
        np.testing.assert_array_equal(tool.run("sort", 0, array), np.sort(array, axis=1))
        falling = np.flip(np.sort(array, axis=1), 1)
        np.testing.assert_array_equal(tool.run("sort", 1, array), falling)


def stable_descending(array):
    """NumPy has no descending sort: of the reversed row, from its end, equals are in order."""
    places = np.argsort(array[:, ::-1], axis=1, kind="stable")[:, ::-1]
    return array.shape[1] - 1 - places


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", (numbers, specials))
def test_places_are_those_of_a_stable_sort(tool, chance, dtype, make):
    for n in LENGTHS:
        array = make(chance, dtype, (2, n))
        wanted = np.argsort(array, axis=1, kind="stable")
        np.testing.assert_array_equal(tool.run("argsort", 0, array), wanted)
        np.testing.assert_array_equal(tool.run("argsort", 1, array), stable_descending(array))


@pytest.mark.parametrize("dtype", ("f4", "f8"))
def test_zeros_of_both_signs_are_equal_and_stay_in_order(tool, chance, dtype):
    for n in LENGTHS:
        array = specials(chance, dtype, (2, n))
        for falling in (0, 1):
            places = stable_descending(array) if falling else np.argsort(array, 1, "stable")
            got, wanted = tool.run("sort", falling, array), np.take_along_axis(array, places, 1)
            np.testing.assert_array_equal(got, wanted)
            zeros = wanted == 0
            np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(wanted[zeros]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", (numbers, specials))
def test_top_k_is_the_beginning_of_a_stable_sort(tool, chance, dtype, make):
    for n in (1, 17, 900, 5001):
        array = make(chance, dtype, (2, n))
        for k in {1, min(n, 3), n // 2, n}:
            for descending in (0, 1):
                places = stable_descending(array) if descending else np.argsort(array, 1, "stable")
                values, got = tool.run("top_k", descending, k, array, n_outputs=2)
                np.testing.assert_array_equal(got, places[:, :k])
                np.testing.assert_array_equal(values, np.take_along_axis(array, places[:, :k], 1))


def test_sorted_and_reversed_rows_are_sorted(tool):
    for n in (100, 10000):
        array = np.arange(n, dtype="f4")[None, :] - n / 2
        np.testing.assert_array_equal(tool.run("sort", 0, array), array)
        falling = np.ascontiguousarray(array[:, ::-1])
        np.testing.assert_array_equal(tool.run("sort", 0, falling), array)


@pytest.mark.parametrize("start, step", ((0, 1), (3, -2), (0.1, 0.1), (-1e6, 0.3), (2.5, 1e-7)))
@pytest.mark.parametrize("dtype", ("u1", "i4", "i8", "f4", "f8"))
def test_ranges_are_numpys_bit_for_bit(tool, dtype, start, step):
    if dtype[0] in "ui":
        start, step = int(start), int(step) or 7
    if dtype == "u1":
        start, step = 5, 2
    values = np.array([start, step], dtype)
    n = 120 if dtype == "u1" else 1001
    wanted = np.arange(values[0], values[0] + values[1] * (n + 0.5), values[1], dtype)
    if dtype[0] in "ui":
        wanted = (int(start) + np.arange(n + 1) * int(step)).astype(dtype)
    got = tool.run("range", np.dtype(dtype).name, values, 3, n - 3, 17)[0]
    np.testing.assert_array_equal(got, wanted[3:n])


@pytest.mark.parametrize("mode", ("edge", "reflect", "symmetric", "tile"))
def test_axes_are_continued_as_numpys_pad_does(tool, chance, mode):
    for rows in (1, 2, 5):
        array = numbers(chance, "i4", (rows, 3))
        for before, after in ((0, 0), (1, 3), (13, 4)):
            if mode == "tile":  # NumPy's "wrap" begins anew at each repetition before 1.25
                wanted = array[np.arange(-before, rows + after) % rows]
            else:
                wanted = np.pad(array, ((before, after), (0, 0)), mode)
            got = tool.run("axis", mode, before, before + rows + after, array)
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("width", (1, 2, 3, 4, 8, 16, 100))
@pytest.mark.parametrize("dtype", ("i1", "u2", "i4", "u8", "i8"))
def test_rows_are_gathered_as_numpys_take_does(tool, chance, width, dtype):
    array = numbers(chance, "u1", (50, width))
    indices = chance.integers(0 if dtype[0] == "u" else -50, 50, 200).astype(dtype)
    np.testing.assert_array_equal(tool.run("gather", indices, array), array[indices.astype("i8")])


@pytest.mark.parametrize("index", (50, -51, 2**62, -2**63))
def test_an_index_out_of_range_is_named(tool, chance, index):
    tool.run("gather", np.array([1, 49, index, 50]), numbers(chance, "u1", (50, 4)))
    assert tool.said == "out of range 2"
