# SPDX-License-Identifier: Apache-2.0
"""Random numbers have the distributions that they should, and any part can be made by itself.

Seeds are fixed: what passes once passes always.
"""
import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from arrays import reduce_tool, tool  # noqa: F401: fixtures

N = 1_000_000
DISTRIBUTIONS = ("uniform", "normal", "truncated")


def draw(tool, distribution, dtype="float32", seed=2024, stream=7, first=0, n=N, tile=10**9):
    return tool.run("random", distribution, dtype, seed, stream, first, n, tile)[0]


def philox_words(seed, stream, n_blocks):
    """The paper's algorithm, as it stands there, for blocks 0 .. n_blocks - 1."""
    mask = np.uint64(0xFFFFFFFF)
    c = [np.arange(n_blocks, dtype="u8"), np.zeros(n_blocks, "u8")]
    c += [np.full(n_blocks, stream & 0xFFFFFFFF, "u8"), np.full(n_blocks, stream >> 32, "u8")]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        left, right = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(right >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), right & mask,
             (left >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), left & mask]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, 1).ravel()


def test_uniform_numbers_are_the_upper_bits_of_philox(tool):
    seed, stream = 0x123456789ABCDEF0, 0xFEDCBA9876543210
    words = philox_words(seed, stream, 1000)
    f4 = draw(tool, "uniform", "float32", seed, stream, n=4000)
    np.testing.assert_array_equal(f4, ((words >> np.uint64(8)) * 2.0**-24).astype("f4"))
    pairs = words[0::2] | words[1::2] << np.uint64(32)
    f8 = draw(tool, "uniform", "float64", seed, stream, n=2000)
    np.testing.assert_array_equal(f8, (pairs >> np.uint64(11)) * 2.0**-53)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_any_part_is_the_same_as_in_the_whole(tool, distribution, dtype):
    whole = draw(tool, distribution, dtype, n=5000)
    np.testing.assert_array_equal(draw(tool, distribution, dtype, n=5000, tile=1), whole)
    np.testing.assert_array_equal(draw(tool, distribution, dtype, n=5000, tile=333), whole)
    part = draw(tool, distribution, dtype, first=1237, n=100)
    np.testing.assert_array_equal(part, whole[1237:1337])


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_bits_are_those_of_the_base_build(tool, distribution, dtype):
    here = draw(tool, distribution, dtype, n=100001)
    tool.isa = "plain"
    np.testing.assert_array_equal(draw(tool, distribution, dtype, n=100001), here)


def test_seeds_and_streams_have_nothing_in_common(tool):
    draws = [draw(tool, "normal", seed=seed, stream=stream) for seed, stream in
             ((1, 1), (1, 2), (2, 1), (1 + (1 << 32), 1), (1, 1 + (1 << 32)))]
    for i, a in enumerate(draws):
        for b in draws[:i]:
            assert abs(np.corrcoef(a, b)[0, 1]) < 4 / math.sqrt(N)


def phi(x):
    return ndtr(np.asarray(x, "f8"))


def distribution_function(distribution):
    low, high = phi(-2.0), phi(2.0)
    return {"uniform": lambda x: np.asarray(x, "f8"), "normal": phi,
            "truncated": lambda x: (phi(x) - low) / (high - low)}[distribution]


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_kolmogorov_and_smirnov_see_no_difference(tool, distribution, dtype):
    values = np.sort(draw(tool, distribution, dtype))
    ideal = distribution_function(distribution)(values)
    steps = np.arange(N + 1) / N
    distance = max((ideal - steps[:-1]).max(), (steps[1:] - ideal).max())
    assert distance * math.sqrt(N) < 1.628  # one of 100 ideal samples is further away


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("distribution, moments", (
    ("uniform", (1 / 2, 1 / 3, 1 / 4, 1 / 5)), ("normal", (0, 1, 0, 3)),
    ("truncated", (0, 0.7737413, 0, 1.4161890))))
def test_moments_are_right(tool, distribution, moments, dtype):
    values = draw(tool, distribution, dtype).astype("f8")
    for power, wanted in enumerate(moments, 1):
        raised = values**power
        assert abs(raised.mean() - wanted) < 4 * raised.std() / math.sqrt(N), power


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_normal_numbers_have_tails_and_no_infinity(tool, dtype):
    values = draw(tool, "normal", dtype)
    assert np.isfinite(values).all()
    for limit in (3, 4):
        expected = 2 * N * phi(-float(limit))
        assert abs((np.abs(values) > limit).sum() - expected) < 4 * math.sqrt(expected)
    truncated = draw(tool, "truncated", dtype)
    assert np.abs(truncated).max() <= 2 and np.abs(truncated).max() > 1.9999


@pytest.mark.parametrize("distribution", ("normal", "truncated"))
def test_normal_numbers_are_the_inverse_of_the_distribution(tool, distribution):
    """Each is compared with SciPy's inverse of the number that it was made from."""
    words = philox_words(5, 6, 5000)
    for dtype, bits, tolerance in (("float32", 31, 6e-7), ("float64", 63, 2e-15)):
        raw = words if bits == 31 else words[0::2] | words[1::2] << np.uint64(32)
        above = ((raw & np.uint64(2**bits - 1)).astype(np.longdouble) + 0.5) / 2.0 ** (bits + 1)
        if distribution == "truncated":
            above = phi(-2.0) + above * (1 - 2 * phi(-2.0))
        sign = np.where(raw >> np.uint64(bits), -1, 1)
        got = draw(tool, distribution, dtype, 5, 6, n=len(raw))
        np.testing.assert_allclose(got, -ndtri(above.astype("f8")) * sign, tolerance, tolerance)


def integers(tool, dtype, low, span, n=N, tile=10**9, first=0):
    return tool.run("integers", dtype, low, span, 3, 4, first, n, tile)[0]


@pytest.mark.parametrize("dtype", ("uint8", "int8", "int16", "uint32", "int32", "int64", "uint64"))
def test_integers_are_equally_likely(tool, dtype):
    low = -5 if dtype.startswith("i") else 3
    counts = np.bincount(integers(tool, dtype, low, 11).astype("i8") - low, minlength=11)
    assert len(counts) == 11
    expected = N / 11
    assert ((counts - expected) ** 2 / expected).sum() < 23.2  # chi squared of 10: one of 100


@pytest.mark.parametrize("dtype", ("int32", "int64"))
def test_any_part_of_integers_is_the_same(tool, dtype):
    whole = integers(tool, dtype, -7, 1000, 3000)
    np.testing.assert_array_equal(integers(tool, dtype, -7, 1000, 3000, 7), whole)
    np.testing.assert_array_equal(integers(tool, dtype, -7, 1000, 500, first=777), whole[777:1277])


def test_the_widest_range_is_used_in_full(tool):
    values = integers(tool, "int64", -(2**63), 0)
    assert abs(values.astype("f8").mean()) < 4 * 2**64 / math.sqrt(12 * N)
    assert values.min() < -(2**63) * 0.9999 and values.max() > 2**63 * 0.9999
