# SPDX-License-Identifier: Apache-2.0
"""Text, CSV and tar files that are packed with gzip are sources as they are; one that is cut off
costs what is behind the cut, and the next file is read."""

import gzip
import io
import tarfile
import zlib

import pytest

import sources
from sources import SKIP


def write(path, data):
    path.write_bytes(data)
    return path


def test_packed_and_plain_files_give_the_same(runtime, tmp_path):
    text = b"one,1\ntwo,2\n"
    names = [write(tmp_path / "a.csv", text), write(tmp_path / "b.csv.gz", gzip.compress(text))]
    assert list(sources.lines(sources.paths(runtime, *names))) == [b"one,1", b"two,2"] * 2
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo("x.txt")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"abc"))
    packed = write(tmp_path / "c.tar.gz", out.getvalue())
    assert list(sources.samples(sources.paths(runtime, packed), "txt")) == [(b"x", b"abc")]


def test_zlib_and_files_that_only_begin_as_packed_ones_have_to_be_told(runtime, tmp_path):
    none, packed_zlib = 1, 3
    path = write(tmp_path / "a.z", zlib.compress(b"one,1\ntwo,2\n"))
    assert list(sources.lines(sources.paths(runtime, path), packed_zlib)) == [b"one,1", b"two,2"]
    columns = [("string", None), ("int32", None)]
    found = sources.csv(sources.paths(runtime, path), columns, compression=packed_zlib)
    assert list(found) == [(b"one", 1), (b"two", 2)]
    assert list(sources.fixed_records(sources.paths(runtime, path), 6, compression=packed_zlib)) == [
        b"one,1\n", b"two,2\n"]
    plain = write(tmp_path / "plain", b"\x1f\x8babcd")
    assert list(sources.fixed_records(sources.paths(runtime, plain), 3, compression=none)) == [
        b"\x1f\x8ba", b"bcd"]
    assert list(sources.lines(sources.paths(runtime, plain), none)) == [b"\x1f\x8babcd"]
    with pytest.raises(sources.base.Refused, match="not a compression"):
        sources.lines(sources.paths(runtime, plain), 9)


def test_a_cut_costs_what_is_behind_it_once(runtime, tmp_path):
    text = b"".join(b"line %d\n" % i for i in range(50000))
    cut = write(tmp_path / "cut.gz", gzip.compress(text)[:-30])
    whole = write(tmp_path / "whole", b"last\n")
    iterator = iter(sources.lines(sources.paths(runtime, cut, whole)).with_policy(SKIP))
    found = list(iterator)
    assert found[0] == b"line 0" and found[-1] == b"last"
    assert 30000 < len(found) < 50001
    assert iterator.bad_count == (1, len(found) + 1)
