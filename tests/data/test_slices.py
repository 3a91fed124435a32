# SPDX-License-Identifier: Apache-2.0
"""Slices of tensors and of .npy files: whole batches at once, and one by one, are the same."""

import ctypes

import numpy as np
import pytest

import keeping
import sources


def slices(runtime, *tensors):
    return sources.Dataset("from_slices", runtime, sources.base.pointers(tensors), len(tensors))


def expected_batches(arrays, n):
    return [tuple(array[i:i + n] for array in arrays) for i in range(0, len(arrays[0]), n)]


@pytest.mark.parametrize("n", [1, 7, 100, 1000])
def test_batches_of_slices_are_the_tensors_parts(runtime, tmp_path, n):
    arrays = [np.arange(100 * 6, dtype="f4").reshape(100, 2, 3), np.arange(100)]
    np.save(tmp_path / "a.npy", arrays[0])
    np.save(tmp_path / "f.npy", np.asfortranarray(arrays[0]))
    in_memory = [runtime.tensor(array) for array in arrays]
    for first in (in_memory[0], runtime.open(tmp_path / "a.npy"), runtime.open(tmp_path / "f.npy")):
        found = list(slices(runtime, first, in_memory[1]).batch(n))
        for got, wanted in zip(found, expected_batches(arrays, n), strict=True):
            for one, other in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(one, other)


def test_numbers_and_rows_come_one_by_one(runtime):
    tensor = runtime.tensor(np.arange(12, dtype="i2").reshape(4, 3))
    np.testing.assert_array_equal(list(slices(runtime, tensor)), np.arange(12).reshape(4, 3))
    assert list(slices(runtime, runtime.tensor(np.array([3, 1, 2], "u1")))) == [3, 1, 2]


def test_a_file_that_is_cut_off_gives_what_it_has_and_names_the_rest(runtime, tmp_path):
    path = tmp_path / "cut.npy"
    np.save(path, np.arange(10 * 512, dtype="f8").reshape(10, 512))
    tensor = runtime.open(path)
    dataset = slices(runtime, tensor).batch(4)
    skipping = iter(dataset.with_policy(sources.SKIP))
    with open(path, "r+b") as file:
        file.truncate(128 + 6 * 512 * 8 + 100)
    found = skipping.everything()
    assert [len(rows) for rows in found] == [4, 2]
    assert found[1][1][0] == 5 * 512
    assert skipping.bad_count == (4, 10)
    failing = dataset.__iter__().everything()
    assert [f if isinstance(f, sources.base.Refused) else len(f) for f in failing][0] == 4
    bad = [f for f in failing if isinstance(f, sources.base.Refused)]
    assert len(bad) == 4 and "cut.npy" in bad[0].message


def shuffled(dataset, buffer_size, seed=5):
    return sources.Dataset("shuffle", dataset, ctypes.c_int64(buffer_size), ctypes.c_int64(seed),
                           True)


@pytest.mark.parametrize("buffer_size", [1, 30, 1000, 5000])
@pytest.mark.parametrize("n", [1, 7, 600, 2000])
def test_shuffled_batches_are_what_comes_one_by_one(runtime, tmp_path, buffer_size, n):
    arrays = [np.arange(1500 * 6, dtype="f4").reshape(1500, 2, 3), np.arange(1500)]
    np.save(tmp_path / "a.npy", arrays[0])
    np.save(tmp_path / "f.npy", np.asfortranarray(arrays[0]))
    label = runtime.tensor(arrays[1])
    for rows in (runtime.tensor(arrays[0]), runtime.open(tmp_path / "a.npy"),
                 runtime.open(tmp_path / "f.npy")):
        order = [int(number) for _, number in shuffled(slices(runtime, rows, label), buffer_size)]
        batches = list(shuffled(slices(runtime, rows, label), buffer_size).batch(n))
        wanted = expected_batches([array[order] for array in arrays], n)
        for got, one in zip(batches, wanted, strict=True):
            np.testing.assert_array_equal(got[0], one[0])
            np.testing.assert_array_equal(got[1], one[1])


@pytest.mark.parametrize("buffer_size", [1, 40, 700, 5000])
def test_bad_rows_among_shuffled_ones_are_skipped_alone(runtime, tmp_path, buffer_size):
    path = tmp_path / "cut.npy"
    array = np.arange(1300 * 512, dtype="f8").reshape(1300, 512)
    np.save(path, array)
    rows = slices(runtime, runtime.open(path), runtime.tensor(np.arange(1300)))
    order = [int(number) for _, number in shuffled(rows, buffer_size)]
    iterator = iter(shuffled(rows, buffer_size).batch(100).with_policy(sources.SKIP))
    with open(path, "r+b") as file:
        file.truncate(128 + 1100 * 512 * 8 + 9)
    found = iterator.everything()
    good = [number for number in order if number < 1100]
    np.testing.assert_array_equal(np.concatenate([batch[1] for batch in found]), good)
    np.testing.assert_array_equal(np.concatenate([batch[0] for batch in found]), array[good])
    assert [len(batch[1]) for batch in found] == [100] * 11
    assert iterator.bad_count == (200, 1300)


@pytest.mark.parametrize("buffer_size", [40, 5000])
def test_a_pass_over_shuffled_batches_goes_on_from_a_checkpoint(runtime, tmp_path, buffer_size):
    rows = runtime.tensor(np.arange(900 * 3, dtype="i4").reshape(900, 3))
    iterator = iter(shuffled(slices(runtime, rows), buffer_size).batch(70))
    for _ in range(4):
        next(iterator)
    keeping.checkpoint(iterator, tmp_path / "checkpoint")
    same = shuffled(slices(runtime, rows), buffer_size).batch(70)
    restored = list(keeping.restored(same, tmp_path / "checkpoint"))
    for one, other in zip(iterator, restored, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [len(batch) for batch in restored] == [70] * 8 + [60]
