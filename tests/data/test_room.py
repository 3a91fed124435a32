# SPDX-License-Identifier: Apache-2.0
"""Sources in a budget that has room for one element, not for two: what does not fit beside the one
that the consumer has is read when that is gone, and nothing is lost."""

import ctypes
import io
import tarfile
import time

import pytest

import sources
from sources import base, FAIL, SKIP
from test_sources import framed, write

N_BYTES = 400_000
CAP_BYTES = 1152 << 10
ITEMS = [b"%03d" % i + b"x" * (N_BYTES - 3) for i in range(6)]


def as_lines(runtime, path):
    write(path, b"".join(item + b"\n" for item in ITEMS))
    return sources.lines(sources.paths(runtime, path))


def as_csv(runtime, path):
    write(path, b"text\n" + b"".join(item + b"\n" for item in ITEMS))
    return sources.csv(sources.paths(runtime, path), [("string", None)], header=True)


def as_records(runtime, path):
    write(path, framed(*ITEMS))
    return sources.records(sources.paths(runtime, path))


def as_fixed(runtime, path):
    write(path, b"head" + b"".join(ITEMS))
    return sources.fixed_records(sources.paths(runtime, path), N_BYTES, head=4)


def as_samples(runtime, path):
    with tarfile.open(path, "w") as tar:
        for i, item in enumerate(ITEMS):
            entry = tarfile.TarInfo(f"{i}.txt")
            entry.size = len(item)
            tar.addfile(entry, io.BytesIO(item))
    return sources.samples(sources.paths(runtime, path), "txt")


def as_files(runtime, path):
    """Each window alone takes more than is left beside an element."""
    paths = [write(path.parent / f"{i}.bin", item) for i, item in enumerate(ITEMS)]
    return sources.fixed_records(sources.paths(runtime, *paths), N_BYTES)


def pin(tensor):
    """It may have been spilled for one that is being tried, and comes back when that gave up."""
    for _ in range(500):
        try:
            base.call("pl_tensor_pin_string", tensor, None, ctypes.byref(sources.String()))
            return
        except base.Refused:
            time.sleep(0.01)
    raise AssertionError("there is no room for what the consumer has")


def take_slowly(dataset):
    """Elements, without a sample's key; each is held until the next one was tried beside it."""
    one_by_one, found = sources.Pass(dataset), []
    while True:
        values = (sources.Value * dataset.n_components)()
        if base.call("pl_iterator_next", one_by_one, values) == 0:
            return found, one_by_one.bad_count
        tensors = [base.Tensor(value.tensor, dataset.runtime) for value in values]
        pin(tensors[-1])  # so that it cannot be spilled
        time.sleep(0.05)
        found.append(tuple(sources.value_of(tensor) for tensor in tensors
                           if tensor.dtype != "string" or tensor is tensors[-1]))
        base.library().pl_tensor_unpin(tensors[-1])
        for tensor in tensors:
            tensor.close()


@pytest.fixture
def small(tmp_path):
    with base.Runtime(cap_bytes=CAP_BYTES, spill=tmp_path) as made:
        yield made


MAKERS = [as_lines, as_csv, as_records, as_fixed, as_samples, as_files]


@pytest.mark.parametrize("policy", [FAIL, SKIP])
@pytest.mark.parametrize("make", MAKERS)
def test_an_element_that_finds_no_room_ahead_is_read_later(small, tmp_path, make, policy):
    source = make(small, tmp_path / "data")
    found, count = take_slowly(source.prefetch(1).with_policy(policy))
    assert [element[-1] for element in found] == ITEMS
    assert count == (0, len(ITEMS))


def test_numbers_do_not_run_on_while_an_element_waits_for_room(small, tmp_path):
    source = as_lines(small, tmp_path / "data")
    numbered = sources.Dataset("enumerate", source, ctypes.c_int64(0)).prefetch(1)
    for policy in FAIL, SKIP:
        found, _ = take_slowly(numbered.with_policy(policy))
        assert found == list(enumerate(ITEMS))


def test_a_shard_has_its_own_elements_though_they_wait_for_room(small, tmp_path):
    source = as_lines(small, tmp_path / "data")
    shard = sources.Dataset("shard", source, ctypes.c_int64(2), ctypes.c_int64(1)).prefetch(1)
    found, _ = take_slowly(shard)
    assert [element for (element,) in found] == ITEMS[1::2]


@pytest.mark.parametrize("n_bytes, n_bad", [(1_500_000, 2), (2_000_000, 2), ((1 << 63) - 1, 1)])
def test_a_record_that_never_fits_costs_itself(small, tmp_path, n_bytes, n_bad):
    path = write(tmp_path / "large", b"a" * 3_000_000)
    source = sources.fixed_records(sources.paths(small, path, path), n_bytes)
    one_by_one = iter(source.with_policy(SKIP))
    assert list(one_by_one) == []
    assert one_by_one.bad_count == (2 * n_bad, 2 * n_bad)


def test_records_that_no_file_can_have_are_refused(small):
    for n_bytes in 0, 1 << 63:
        with pytest.raises(base.Refused, match=f"records of {n_bytes} bytes"):
            sources.fixed_records(sources.paths(small, "x"), n_bytes)
