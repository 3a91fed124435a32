# SPDX-License-Identifier: Apache-2.0
"""Tar files are read as Python's tarfile reads them; samples as WebDataset lays them out. What is cut
off or was changed is told, and never read past."""

import gzip
import io
import random
import tarfile

import pytest

from text_files import CODES, Bad, Item, Reader


@pytest.fixture(scope="session")
def text_tool(build_tool):
    return build_tool("text_tool")


@pytest.fixture
def reader(text_tool, tmp_path):
    return Reader(text_tool, tmp_path)


FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def make(entries, format=tarfile.GNU_FORMAT, **how):
    """A tar of (name, data) or TarInfo."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format, **how) as tar:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                tar.addfile(entry)
                continue
            info = tarfile.TarInfo(entry[0])
            info.size = len(entry[1])
            tar.addfile(info, io.BytesIO(entry[1]))
    return out.getvalue()


def wanted_entries(data):
    """What tarfile finds: names, and the data of those that the tool reads."""
    found = []
    with tarfile.open(fileobj=io.BytesIO(data), encoding="utf-8", errors="surrogateescape") as tar:
        for n, info in enumerate(tar):
            name = info.name.encode("utf-8", "surrogateescape")
            values = [name + b"/"] if info.isdir() else [name]
            if info.isreg() and n % 4 != 3:
                values.append(tar.extractfile(info).read())
            found.append(values)
    return found


def values_of(found):
    assert all(isinstance(item, Item) for item in found), found
    return [item.values for item in found]


def header(name, size=b"00000000000", type=b"0", magic=b"ustar\x0000", **at):
    """512 bytes with a right checksum; `at_N` puts bytes at N."""
    block = bytearray(512)
    block[: len(name)] = name
    block[100:136] = b"0000644\0" b"0000000\0" b"0000000\0" + size + b"\0"
    block[136:148] = b"00000000000\0"
    block[156:157] = type
    block[257 : 257 + len(magic)] = magic
    for where, data in at.items():
        offset = int(where[3:])
        block[offset : offset + len(data)] = data
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def padded(data):
    return data + bytes(-len(data) % 512)


END = bytes(1024)


# ---- entries ----


@pytest.mark.parametrize("format", FORMATS)
def test_entries_are_those_of_tarfile_in_windows_of_any_size(reader, format):
    chance = random.Random(7)
    folder = tarfile.TarInfo("folder")
    folder.type = tarfile.DIRTYPE
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "a/" * 40 + "target"
    entries = [("a.txt", b"hello"), ("empty", b""), folder, link, ("x" * 100, b"1" * 512),
               ("p" * 90 + "/" + "n" * 90, b"2" * 513), ("b/c.d.e", chance.randbytes(3000))]
    if format != "ustar":
        entries += [("long/" * 300 + "name", b"3" * 7), ("z\u00e9\u20ac.txt", b"4"), ("last", b"5")]
    data = make(entries, FORMATS[format])
    for window in (1, 100, 512, 0):
        assert values_of(reader.tar(data, window)) == wanted_entries(data), window


def test_the_first_block_of_zeros_is_the_end(reader):
    one = make([("a", b"1")])
    assert len(reader.tar(one + make([("b", b"2")]))) == 1
    assert len(reader.tar(header(b"a") + bytes(512))) == 1
    assert reader.tar(END) == []


def test_old_archives_and_odd_numbers_are_read(reader):
    data = (header(b"old", b"     3    \0", b"\0", magic=b"") + padded(b"abc")
            + header(b"dir/", type=b"\0", magic=b"")
            + header(b"binary", at_124=b"\x80" + bytes(9) + b"\x02\x01") + padded(b"x" * 513)
            + header(b"piece", b"00000000002", b"7") + padded(b"yz") + END)
    found = reader.tar(data)
    assert [item.values for item in found] == [[b"old", b"abc"], [b"dir/"],
                                               [b"binary", b"x" * 513], [b"piece"]]
    assert [chr(item.b) for item in found] == ["0", "5", "0", "0"]


def test_where_gnu_has_times_there_is_no_prefix(reader):
    data = header(b"name", magic=b"ustar  \0", at_345=b"14000000000") + END
    assert values_of(reader.tar(data)) == [[b"name", b""]]
    data = header(b"name", at_345=b"14000000000") + END
    assert values_of(reader.tar(data)) == [[b"14000000000/name", b""]]


def record(key, value):
    rest = b" " + key + b"=" + value + b"\n"
    n = next(n for n in range(1, 99) if n == len(rest) + len(str(n)))
    return str(n).encode() + rest


def pax(records, type=b"x"):
    text = b"".join(records)
    return header(b"PaxHeader", b"%011o" % len(text), type) + padded(text)


def test_pax_gives_names_and_sizes(reader):
    data = (pax([record(b"path", b"abc"), record(b"size", b"3"), record(b"comment", b"a\nb=c")])
            + header(b"other", b"00000000001") + padded(b"xyz") + header(b"next", b"00000000001") + padded(b"1") + END)
    assert values_of(reader.tar(data)) == [[b"abc", b"xyz"], [b"next", b"1"]]
    data = pax([record(b"comment", b"global")], b"g") + header(b"a") + END
    assert values_of(reader.tar(data)) == [[b"a", b""]]


@pytest.mark.parametrize("records, what", [
    ([b"5 path=abc\n"], "malformed"), ([b"99 path=abc\n"], "malformed"), ([b"path=abc\n"], "malformed"),
    ([b"12 path=abcd"], "malformed"), ([b"9 pathabc\n"], "malformed"), ([b"-1 path=abc\n"], "malformed"),
    ([record(b"size", b"-1")], "not a number"), ([record(b"size", b"")], "not a number"),
    ([record(b"size", b"9" * 20)], "not a number"), ([record(b"path", b"")], "a name of 0 bytes"),
    ([record(b"path", b"a\0b")], "NUL"), ([record(b"size", b"1" * 18)], "by its header"),
])  # fmt: skip
def test_attributes_that_are_malformed_are_told(reader, records, what):
    found = reader.tar(header(b"first") + pax(records) + header(b"a") + END)
    good, bad = found
    assert bad.code == CODES["corrupt"] and what in bad.message, bad
    assert "byte 512:" in bad.message or "byte 1536:" in bad.message


def test_an_attribute_does_not_reach_behind_the_others(reader):
    text = b"99 path=abc\n" + b"x" * 86 + b"\n"
    (bad,) = reader.tar(header(b"PaxHeader", b"%011o" % 12, b"x") + padded(text) + header(b"a") + END)
    assert bad.code == CODES["corrupt"] and "malformed" in bad.message


@pytest.mark.parametrize("name, block, what", [
    ("sum", lambda: header(b"a")[:148] + b"0000000\0" + header(b"a")[156:], "wrong checksum: 0 is written"),
    ("text", lambda: b"no tar at all, but text " * 30, "no checksum"),
    ("size", lambda: header(b"a", b"0000000009x"), "not a number"),
    ("below", lambda: header(b"a", at_124=b"\xff" * 12), "not a number"),
    ("large", lambda: header(b"a", at_124=b"\x80" + b"\xff" * 11), "not a number"),
    ("lies", lambda: header(b"some/name", b"77777777777"), "'some/name' has 8589934591 bytes"),
    ("name", lambda: header(b"x", b"%011o" % 5000, b"L") + padded(b"n" * 5000), "a name of 5000 bytes"),
    ("meta", lambda: header(b"x", b"%011o" % 70000, b"x") + padded(b"n" * 70000), "at most 65536"),
    ("global", lambda: pax([record(b"path", b"abc")], b"g"), "of all entries"),
])  # fmt: skip
def test_a_header_that_is_wrong_ends_the_archive_and_is_told(reader, name, block, what):
    for window in (512, 0):
        good, bad = reader.tar(header(b"first", b"00000000001") + padded(b"1") + block() + END, window)
        assert good.values == [b"first", b"1"]
        assert bad.code == CODES["corrupt"] and "byte 1024: " in bad.message and what in bad.message


def test_names_in_messages_obey_no_terminal(reader):
    (bad,) = reader.tar(header(b"\x1b[31mred\xff" + b"y" * 80, b"77777777777") + END)
    assert "'?[31mred?yyy" in bad.message and "..." in bad.message


def test_a_sparse_file_costs_itself(reader):
    old = header(b"hole", b"00000000003", b"S", magic=b"ustar  \0", at_482=b"\x01")
    data = (old + bytes(504) + b"\x01" + bytes(7) + bytes(512) + padded(b"abc")
            + header(b"next", b"00000000001") + padded(b"1")
            + pax([record(b"GNU.sparse.major", b"1"), record(b"path", b"abc")]) + header(b"hole2", b"00000000002")
            + padded(b"xy") + header(b"last") + END)
    for window in (512, 1024, 0):
        bad, good, also, last = reader.tar(data, window)
        assert bad.code == also.code == CODES["unsupported"]
        assert "'hole' is stored as a sparse file" in bad.message and "byte 0:" in bad.message
        assert "'abc' is stored as a sparse" in also.message
        assert (good.values, last.values[0]) == ([b"next", b"1"], b"last")


def test_a_file_cut_off_at_any_byte_is_told_and_gives_whole_entries_only(reader):
    data = make([("a.txt", b"hello" * 200), ("y" * 150, b"x" * 30), ("b", b"")])[: 512 * 8]
    wanted = wanted_entries(data + END)
    path = reader.write(data)
    lengths = [*range(0, len(data) + 1, 37), *range(0, len(data) + 1, 512), 511, 513, 1536]
    for n, found in zip(lengths, reader.run_many([["tar", 600, f"{path}@{n}"] for n in lengths])):
        *good, bad = found
        assert isinstance(bad, Bad) and bad.code == CODES["corrupt"], n
        assert values_of(good) == wanted[: len(good)]
    assert len(good) > 0


def test_random_archives_are_those_of_tarfile(reader):
    chance = random.Random(8)
    commands, wanted = [], []
    for i in range(30):
        entries = [("".join(chance.choices("ab/.é", k=chance.choice([1, 20, 98, 101, 200, 300]))).strip("/") or "x",
                    chance.randbytes(chance.choice([0, 1, 511, 512, 513, 5000]))) for _ in range(12)]
        data = make(entries, chance.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]))
        path = reader.folder / f"tar{i}"
        path.write_bytes(data)
        commands.append(["tar", chance.choice([512, 700, 4096, 0]), path])
        wanted.append(wanted_entries(data))
    for found, entries in zip(reader.run_many(commands), wanted):
        assert values_of(found) == entries


def test_a_packed_archive_is_read_as_if_it_were_not(reader):
    chance = random.Random(9)
    data = make([(f"{i}.bin", chance.randbytes(chance.randrange(9000))) for i in range(100)])
    packed = gzip.compress(data)
    assert values_of(reader.tar(packed, 600)) == wanted_entries(data)
    assert values_of(reader.samples(packed)) == values_of(reader.samples(data))
    *_, bad = reader.tar(packed[: len(packed) // 2])
    assert bad.code == CODES["corrupt"]
    (bad,) = reader.tar(gzip.compress(header(b"lies", b"77777777777") + END))
    assert "'lies' has 8589934591 bytes" in bad.message


# ---- samples ----


def parts_of(item):
    key, *rest = item.values
    return key, dict(zip(rest[::2], rest[1::2]))


def test_files_of_one_key_are_one_sample(reader):
    data = make([("dir.x/1.jpg", b"a"), ("dir.x/1.seg.PNG", b"b"), ("README", b"-"), ("__meta__/x.y", b"-"),
                 ("dir.x/1.cls", b""), ("dir.x/.hidden", b"-"), ("2.jpg", b"c" * 3000), ("dir/2.jpg", b"d"),
                 ("2x.jpg", b"e")])  # fmt: skip
    found = reader.samples(data)
    assert [parts_of(item) for item in found] == [
        (b"dir.x/1", {b"jpg": b"a", b"seg.png": b"b", b"cls": b""}), (b"2", {b"jpg": b"c" * 3000}),
        (b"dir/2", {b"jpg": b"d"}), (b"2x", {b"jpg": b"e"})]
    assert [item.a for item in found][:2] == [0, 512 * 11]


def test_wanted_parts_come_in_the_order_asked_for(reader):
    data = make([("1.cls", b"7"), ("1.big", b"x" * 100000), ("1.jpeg", b"j"), ("2.png", b"p"),
                 ("2.CLS", b"8"), ("3.cls", b"9"), ("4.jpg", b"q"), ("4.cls", b"1")])  # fmt: skip
    one, two, bad, four = reader.samples(data, "jpg;jpeg;png,cls")
    assert one.values == [b"1", b"jpeg", b"j", b"cls", b"7"]
    assert two.values == [b"2", b"png", b"p", b"cls", b"8"]
    assert four.values == [b"4", b"jpg", b"q", b"cls", b"1"]
    assert bad.code == CODES["format"] and "sample '3' has no 'jpg;jpeg;png'" in bad.message
    assert f"byte {bad.a}:" in bad.message


def test_an_extension_twice_costs_its_sample(reader):
    data = make([("1.jpg", b"a"), ("1.JPG", b"b"), ("1.cls", b"c"), ("2.jpg", b"d")])
    bad, good = reader.samples(data)
    assert "sample '1' has 'jpg' twice, again at byte 1024" in bad.message
    assert bad.code == CODES["format"] and bad.a == 0
    assert parts_of(good) == (b"2", {b"jpg": b"d"})


def test_a_key_that_comes_again_is_told(reader):
    names = [f"{i}.{e}" for i in range(3000) for e in ("a", "b")]
    names += ["17.c", "17.d", "last.a", "0.a"]
    found = reader.samples(make([(name, b"") for name in names]))
    assert len(found) == 3003
    again, last, first = found[3000:]
    assert "sample '17' was there before" in again.message and again.code == CODES["format"]
    assert parts_of(last) == (b"last", {b"a": b""})
    assert "sample '0' was there before" in first.message


def test_what_cannot_be_read_costs_the_sample_that_it_is_in(reader):
    whole = make([("1.jpg", b"a"), ("2.jpg", b"b"), ("2.cls", b"c")])
    good, bad = reader.samples(whole[: 512 * 6])
    assert parts_of(good) == (b"1", {b"jpg": b"a"}) and bad.code == CODES["corrupt"]
    sparse = header(b"2.hole", b"00000000000", b"S", magic=b"ustar  \0")
    one, bad, three = reader.samples(
        whole[: 512 * 4] + sparse + header(b"2.txt") + header(b"3.txt") + END)
    assert parts_of(one)[0] == b"1" and bad.code == CODES["unsupported"]
    assert parts_of(three)[0] == b"3"
    twice, lost = reader.samples(make([("1.a", b""), ("1.a", b"")])[:1024] + header(b"1.b") + b"x" * 512)
    assert twice.code == CODES["format"] and lost.code == CODES["corrupt"]


def test_too_many_parts_and_too_long_extensions_are_told(reader):
    many, good = reader.samples(make([(f"1.{i}", b"") for i in range(65)] + [("2.a", b"")]))
    assert "more than 64 files" in many.message and parts_of(good)[0] == b"2"
    long, good = reader.samples(make([("1." + "e" * 64, b""), ("2.a", b"")]))
    assert "too long an extension" in long.message and parts_of(good)[0] == b"2"
    found = reader.samples(make([("1." + "e" * 64, b""), ("1.a", b"")]), "a")
    assert found[0].values == [b"1", b"a", b""]


def test_a_sample_larger_than_the_budget_is_refused_with_what_it_needs(reader):
    (bad,) = reader.samples(make([("1.a", bytes(70 << 20))]))
    assert bad.code == CODES["budget"] and "70.0 MiB" in bad.message
