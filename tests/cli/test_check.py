# SPDX-License-Identifier: Apache-2.0
"""`plimsoll check` on files of every format: what it says of the bad ones, and that it says nothing
of the good ones."""

import gzip
import io
import json
import os
import struct
import zipfile
import zlib

import numpy as np
import pytest

from check_tree import Tree, example, gzipped, npy, npz, picture, png_header, program, record, tar


@pytest.fixture
def tree(meson_build, tmp_path):
    return Tree(program(meson_build), tmp_path / "data")


def of(finding):
    return finding["severity"], finding["format"], finding["offset"]


# Arrays


@pytest.mark.parametrize("dtype", ["u1", "<i8", ">f4", "<f2", "?", "S5"])
def test_arrays_are_good(tree, dtype):
    assert tree.only("a.npy", npy(np.zeros((3, 4), dtype)), "--values") is None


def test_an_array_that_is_cut_off(tree):
    found = tree.only("a.npy", npy(np.arange(10.0))[:-4])
    assert of(found) == ("error", "npy", 0)
    assert found["reason"].startswith("it is truncated: 204 of 208 bytes")


def test_bytes_behind_an_array_are_a_warning(tree):
    found = tree.only("a.npy", npy(np.arange(10.0)) + b"xyz")
    assert of(found) == ("warning", "npy", 208) and "3 bytes behind the array" in found["reason"]


def test_a_file_that_is_no_array_though_its_name_says_so(tree):
    assert "does not begin" in tree.only("a.npy", b"\0garbage\xff")["reason"]


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8", ">f8"])
@pytest.mark.parametrize("n", [5, 300_001])
def test_values_that_are_none_are_counted_on_request(tree, dtype, n):
    array = np.zeros(n, dtype)
    array[[0, n // 2]] = np.nan
    array[[1, n - 1]] = np.inf, -np.inf
    assert tree.only("a.npy", npy(array)) is None
    found = tree.only("a.npy", npy(array), "--values")
    assert of(found)[0] == "warning"
    assert found["reason"] == f"2 of {n} values are NaN, 2 are infinite"
    (tree.folder / "a.npy").unlink()
    found = tree.only("a.npz", npz(compressed=True, x=array), "--values")
    assert found["reason"] == f"'x.npy': 2 of {n} values are NaN, 2 are infinite"


# Archives of arrays


@pytest.mark.parametrize("compressed", [False, True])
def test_archives_of_arrays_are_good(tree, compressed):
    random = np.random.default_rng(1)
    arrays = dict(noise=random.random(50_000), none=np.zeros((0, 3)), one=np.ones(1, "u1"))
    assert tree.only("a.npz", npz(compressed, **arrays)) is None


def test_an_archive_with_numbers_of_64_bits_is_good(tree):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        with archive.open("a.npy", "w", force_zip64=True) as member:
            member.write(npy(np.arange(10)))
    assert tree.only("a.npz", file.getvalue()) is None


@pytest.mark.parametrize("compressed", [False, True])
def test_every_flipped_byte_of_an_archives_data_is_found(tree, compressed):
    good = npz(compressed, a=np.arange(100.0))
    for at in range(60, len(good) - 120, 37):
        bad = bytearray(good)
        bad[at] ^= 4
        found = tree.only("a.npz", bytes(bad))
        assert found and found["severity"] == "error" and "'a.npy'" in found["reason"], at


def test_an_archive_that_is_cut_off(tree):
    found = tree.only("a.npz", npz(a=np.arange(10.0))[:-30])
    assert found["severity"] == "error" and "cut off" in found["reason"]


def zip_of(members):
    """A zip by hand: (name, packed, unpacked size, crc, where its local header shall be, or None)."""
    body, directory = b"", b""
    for name, packed, size, crc, at in members:
        numbers = struct.pack("<HHHHHIII", 20, 0, 8, 0, 0, crc, len(packed), size)
        names = struct.pack("<HH", len(name), 0)
        offset = len(body) if at is None else at
        if at is None:
            body += b"PK\3\4" + numbers + names + name + packed
        directory += (b"PK\1\2" + struct.pack("<H", 20) + numbers + names
                      + struct.pack("<HHHII", 0, 0, 0, 0, offset) + name)
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    return body + directory + b"PK\5\6" + end


def packed_by_zip(data):
    work = zlib.compressobj(9, zlib.DEFLATED, -15)
    return work.compress(data) + work.flush()


def test_files_of_a_zip_that_share_bytes_are_not_unpacked(tree):
    """A bomb: one member, named by the directory a thousand times. 128 KiB would become 64 GiB."""
    data = bytes(64 << 20)
    member = (packed_by_zip(data), len(data), zlib.crc32(data))
    good = zip_of([(b"a", *member, None)])
    assert tree.only("a.zip", good, "--format", "npz") is None
    bomb = zip_of([(b"a", *member, None)] + [(b"b%d" % i, *member, 0) for i in range(1000)])
    found = tree.only("a.zip", bomb, "--format", "npz")
    assert found["severity"] == "error" and "share bytes" in found["reason"]
    assert "n_more" not in found, "each of them was looked into"


def test_a_member_that_begins_within_another_is_not_unpacked(tree):
    data = npy(np.arange(1000))
    inner = (packed_by_zip(data), len(data), zlib.crc32(data))
    local = zip_of([(b"b.npy", *inner, None)])[:30 + 5 + len(inner[0])]
    outer = (b"\1" + struct.pack("<HH", len(local), len(local) ^ 0xffff) + local, len(local),
             zlib.crc32(local))
    found = tree.only("a.npz", zip_of([(b"a", *outer, None), (b"b.npy", *inner, 30 + 1 + 5)]))
    assert found["severity"] == "error" and "bytes 0 and 36 of the zip share bytes" in found["reason"]


def test_a_member_that_reaches_into_the_directory_is_not_unpacked(tree):
    data = npy(np.arange(10))
    bad = bytearray(zip_of([(b"a.npy", packed_by_zip(data), len(data), zlib.crc32(data), None)]))
    at = bad.index(b"PK\1\2") + 20
    bad[at:at + 4] = struct.pack("<I", len(packed_by_zip(data)) + 6)
    found = tree.only("a.npz", bytes(bad))
    assert found["severity"] == "error" and "into its directory" in found["reason"]


def test_no_more_of_a_member_is_unpacked_than_the_directory_promises(tree):
    data = bytes(64 << 20)
    found = tree.only("a.zip", zip_of([(b"a", packed_by_zip(data), 100, zlib.crc32(data), None)]),
                      "--format", "npz")
    assert found["severity"] == "error" and "more bytes than the directory promises" in found["reason"]


# Records


def records(n):
    return [record(example(label=[i], name=[b"x"])) for i in range(n)]


def test_records_are_good_packed_or_not_and_whatever_is_in_them(tree):
    tree.put("a.tfrecord", b"".join(records(5)))
    tree.put("b.tfrecord.gz", gzipped(b"".join(records(5))))
    tree.put("c.tfrecord", record(b"no example") + record(b""))
    tree.put("named-otherwise", record(example(label=[1], name=[b"y"]) * 1) * 3)
    assert tree.findings() == {}


def test_a_records_flipped_byte_is_found_with_the_record(tree):
    parts = records(4)
    bad = bytearray(b"".join(parts))
    bad[len(parts[0]) + 20] ^= 1
    found = tree.only("a.tfrecord", bytes(bad))
    assert of(found) == ("error", "tfrecord", len(parts[0]))
    assert found["reason"].startswith("record 1: ") and "checksum" in found["reason"]
    assert "more)" not in found["reason"]


def test_all_bad_records_are_counted(tree):
    parts = [bytearray(part) for part in records(5)]
    for part in parts[1:4]:
        part[-1] ^= 1
    assert tree.only("a.tfrecord", b"".join(parts))["reason"].endswith("(and 2 more)")


@pytest.mark.parametrize("packed", [False, True])
def test_records_that_are_cut_off(tree, packed):
    data = b"".join(records(3))
    data, name = (gzipped(data)[:-9], "a.tfrecord.gz") if packed else (data[:-3], "a.tfrecord")
    found = tree.only(name, data)
    assert found["severity"] == "error" and "cut off" in found["reason"]


def test_records_past_the_first_window_are_checked_too(tree):
    data = bytearray(b"".join(records(1)) * 20_000)
    assert tree.only("a.tfrecord", bytes(data)) is None
    data[len(data) // 2 + 20] ^= 1
    assert tree.only("a.tfrecord", bytes(data))["severity"] == "error"


def test_a_record_with_other_features_is_named(tree):
    parts = records(3)
    before = len(b"".join(parts))
    found = tree.only("a.tfrecord", b"".join(parts) + record(example(label=[1.0], name=[b"x"])))
    assert of(found) == ("error", "tfrecord", before)
    assert found["reason"] == (
        "record 3: feature 'label' has floats, in the first one it has int64s"
    )
    found = tree.only("a.tfrecord", b"".join(parts) + record(example(label=[1])))
    assert of(found) == ("warning", "tfrecord", before) and "'name' (bytes)" in found["reason"]
    more = record(example(label=[1], name=[b"x"], extra=[b"y"]))
    found = tree.only("a.tfrecord", b"".join(parts) + more)
    assert of(found) == ("warning", "tfrecord", before) and "'extra' (bytes)" in found["reason"]
    other_order = record(example(name=[b"x"], label=[1]))
    assert tree.only("a.tfrecord", b"".join(parts) + other_order) is None


def test_a_record_that_is_no_example_among_examples_is_named(tree):
    found = tree.only("a.tfrecord", b"".join(records(2)) + record(b"\x0a\xffnothing"))
    assert found["severity"] == "error" and "record 2: it is no Example" in found["reason"]


def test_features_are_the_same_in_all_files(tree):
    tree.put("a.tfrecord", b"".join(records(2)))
    tree.put("b.tfrecord", b"".join(records(2)))
    tree.put("c.tfrecord", record(example(label=[1.5], name=[b"x"])))
    for jobs in "1", "4":
        found = tree.findings("--jobs", jobs)
        assert set(found) == {"c.tfrecord"} and found["c.tfrecord"]["severity"] == "error"
        assert "a.tfrecord" in found["c.tfrecord"]["reason"]


# Images


@pytest.mark.parametrize("format, name", [("JPEG", "a.jpg"), ("JPEG", "a.JPEG"), ("PNG", "a.png"),
                                          ("BMP", "a.bmp")])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_images_are_good(tree, format, name, mode):
    assert tree.only(name, picture(format, mode=mode)) is None


def test_an_image_larger_than_what_is_read_at_first_is_decoded_whole(tree):
    data = picture("PNG", (700, 500))
    assert len(data) > 300_000
    assert tree.only("a.png", data) is None
    bad = bytearray(data)
    bad[-2000] ^= 1
    assert tree.only("a.png", bytes(bad))["severity"] == "error"


@pytest.mark.parametrize("format", ["JPEG", "PNG", "BMP"])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.95])
def test_an_image_that_is_cut_off(tree, format, part):
    data = picture(format)
    name = "a.jpg" if format == "JPEG" else f"a.{format.lower()}"
    found = tree.only(name, data[: int(len(data) * part)])
    assert of(found)[:2] == ("error", format.lower())


def test_an_image_by_another_images_name_is_a_warning(tree):
    found = tree.only("a.jpg", picture("PNG"))
    assert of(found)[:2] == ("warning", "png")
    assert found["reason"] == "its content is png, its name promises jpeg"


@pytest.mark.parametrize("format", ["GIF", "WebP", "TIFF"])
def test_a_picture_that_is_not_decoded_is_told_so_and_left_alone(tree, tmp_path, format):
    """It may be as good as any: a note is all that can be said, and nothing goes to quarantine."""
    says = f"it is a {format} file: JPEG, PNG and BMP are decoded; convert it"
    for name in ("a.gif", "noname"):
        tree.put(name, picture(format))
        result = tree.check("--quarantine", tmp_path / "away", "--strict", "--json")
        answer = json.loads(result.stdout)
        assert result.returncode == 0 and (tree.folder / name).exists()
        assert (answer["n_errors"], answer["n_warnings"], answer["n_notes"]) == (0, 0, 1)
        found = tree.findings(notes=True)[name]
        assert of(found)[:2] == ("note", "picture") and found["reason"] == says
        assert "0 errors, 0 warnings, 1 note\n" in tree.check().stdout
        (tree.folder / name).unlink()
    found = tree.only("a.jpg", picture(format))
    assert of(found)[:2] == ("warning", "picture")
    assert found["reason"] == "its content is an image of another kind, its name promises jpeg (and 1 more)"
    found = tree.only("a.jpg", picture(format), "--format", "jpeg")
    assert found["severity"] == "error" and found["reason"] == says


def test_two_letters_are_no_bmp(tree):
    assert tree.only("notes", "BM is what this text begins with, and more of it") is None


def test_files_of_a_folder_come_before_those_of_its_folders(tree):
    names = ["z.txt", "b.txt", "a/2.txt", "a/10.txt", "a-b/1.txt", "a/sub/1.txt", "c/1.txt"]
    for name in names:
        tree.put(name, b"\xff")
    assert list(tree.findings("--jobs", "1")) == ["b.txt", "z.txt", "a/10.txt", "a/2.txt",
                                                  "a/sub/1.txt", "a-b/1.txt", "c/1.txt"]


def test_a_text_by_an_images_name_is_an_error(tree):
    assert of(tree.only("a.jpg", "<html>404</html>"))[:2] == ("error", "text")


def test_cmyk_is_a_warning(tree):
    found = tree.only("a.jpg", picture(mode="CMYK"))
    assert of(found)[:2] == ("warning", "jpeg") and "CMYK" in found["reason"]


def test_a_bomb_is_refused_by_its_header(tree):
    found = tree.only("a.png", png_header(60_000, 60_000))
    assert found["severity"] == "error" and "bomb" in found["reason"]


@pytest.mark.parametrize("name", ["a.jpg", "a.txt", "a.tfrecord", "a.npy", "a"])
def test_an_empty_file_is_an_error(tree, name):
    found = tree.only(name, b"")
    assert of(found)[0] == "error" and found["reason"] == "it is empty: 0 bytes"


# Text, CSV, JSON


def test_the_first_bad_sequence_of_a_text_is_told_by_line_and_byte(tree):
    found = tree.only("a.txt", b"one\ntwo\nth\xffree\xff\n")
    assert of(found) == ("error", "text", 10)
    assert found["reason"].startswith("line 3, byte 3 of it: 0xff")


@pytest.mark.parametrize("at", [5, 262_143, 262_144, 700_001])
@pytest.mark.parametrize("packed", [False, True])
def test_bad_sequences_are_found_wherever_they_are(tree, at, packed):
    text = bytearray(("grün und\n" * 90_000).encode())
    text[at] = 0xFF
    with pytest.raises(UnicodeDecodeError) as python:
        text.decode()
    data, name = (gzipped(bytes(text)), "a.txt.gz") if packed else (bytes(text), "a.txt")
    found = tree.only(name, data)
    assert found["offset"] == python.value.start
    assert f"line {text[: python.value.start].count(10) + 1}, " in found["reason"]


def test_a_character_across_pieces_is_good(tree):
    for shift in range(3):
        assert tree.only("a.txt", b"x" * shift + "€".encode() * 200_000) is None


def test_utf_16_is_told_to_be_that(tree):
    assert "iconv -f UTF-16" in tree.only("a.txt", "hello".encode("utf-16"))["reason"]


def test_csv_has_as_many_fields_in_each_record(tree):
    good = 'a,b,c\r\n1,"x, ""y""\nz",3\r\n'
    assert tree.only("a.csv", good) is None
    found = tree.only("a.csv", good + "1,2\r\n1,2,3,4\r\n")
    assert of(found) == ("error", "csv", len(good))
    assert found["reason"] == "line 4: 2 fields, the first record has 3 (and 1 more)"
    assert "line 4" in tree.only("a.csv", gzipped(good + "1,2\r\n"))["reason"]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_csv_may_have_other_delimiters(tree, delimiter):
    text = "a,b,c\n1,2,3\n".replace(",", delimiter)
    assert tree.only("a.csv", text) is None
    assert tree.only("a.csv", text + "1\n")["severity"] == "error"


def test_a_quote_that_nothing_closes(tree):
    assert tree.only("a.csv", 'a,b\n1,"2\n3,4\n')["severity"] == "error"


def test_a_record_of_csv_that_is_too_long_is_told_so(tree):
    data = 'a,b\n1,"' + "x" * (9 << 20) + '"\n3,4\n'
    assert tree.only("a.csv", data, "--jobs", "1") is None
    found = tree.only("a.csv", data, "--jobs", "2")
    assert of(found) == ("error", "csv", 4)
    assert found["reason"].startswith("line 2: the record does not end within 8.0 MiB")


@pytest.mark.parametrize("at", [1, 2, 30, 62])
@pytest.mark.parametrize("n", [40, 63, 64, 500])
def test_a_stray_word_among_the_first_numbers_is_a_warning(tree, at, n):
    rows = [f"{i},{i * 0.5},name{i}" for i in range(n)]
    at = min(at, n - 2)
    rows[at] = f"{at},oops,name"
    found = tree.only("a.csv", "a,b,c\n" + "\n".join(rows) + "\n")
    n_seen = min(n, 63)
    assert found["severity"] == "warning"
    assert found["reason"] == (f"line {at + 2}: field 2 is 'oops', where {n_seen - 1} of {n_seen} "
                               "records have numbers")
    rows[n - 1] = f"{n - 1},again,name"
    found = tree.only("a.csv", "a,b,c\n" + "\n".join(rows) + "\n")
    assert found["severity"] == "warning" and "'oops'" in found["reason"]


@pytest.mark.parametrize("words", [8, 16, 50])
def test_a_column_of_words_and_numbers_has_no_strays(tree, words):
    rows = [f"{i},{'w' if i < words else ''}{i}" for i in range(60)]
    assert tree.only("a.csv", "a,b\n" + "\n".join(rows) + "\n") is None


def test_a_column_of_numbers_stays_one(tree):
    lines = ["id,name"] + [f"{i},x" for i in range(80)]
    assert tree.only("a.csv", "\n".join(lines)) is None
    found = tree.only("a.csv", "\n".join(lines + ["oops,x"]))
    assert found["severity"] == "warning" and "line 82: field 1 is 'oops'" in found["reason"]


def test_csv_is_utf_8(tree):
    assert "line 2: field 2 is not UTF-8" in tree.only("a.csv", b"a,b\n1,\xff\n")["reason"]


GOOD_JSON = [
    "{}", "[]", "0", "-1.5e+3", '"\\ud800 \\n"', ' [1, {"a": [true, false, null]}] \n', "\ufeff{}",
]  # fmt: skip
BAD_JSON = [
    "{", "[1,]", "{,}", '{"a" 1}', "[01]", "[1.]", "[-]", "tru", '"\n"', '"\\x"', "[}", "{}]", "[NaN]",
    "{} {}", '{"a":}', '["\\u12"]', "[1e]",
]  # fmt: skip


@pytest.mark.parametrize("text", GOOD_JSON)
def test_json_is_good(tree, text):
    json.loads(text.lstrip("\ufeff"))
    assert tree.only("a.json", text) is None


@pytest.mark.parametrize("text", BAD_JSON)
def test_json_is_bad(tree, text):
    found = tree.only("a.json", text)
    assert of(found)[:2] == ("error", "json") and "line" in found["reason"]


def test_json_is_recognised_and_large_json_read_to_its_end(tree):
    value = [{"a": "é" * 50, "b": i} for i in range(20_000)]
    text = json.dumps(value, ensure_ascii=False, indent=1)
    assert tree.only("annotations", text) is None
    found = tree.only("annotations", text[:-3])
    assert of(found) == ("error", "json", len(text[:-3].encode()))


def test_json_lines(tree):
    assert tree.only("a.jsonl", '{"a": 1}\n{"a": 2}\n') is None
    found = tree.only("a.jsonl", '{"a": 1}\n{"a": 2\n')
    assert of(found) == ("error", "json", 16)
    assert found["reason"] == "line 2: the line ends within a value"
    assert "of this line" in tree.only("a.jsonl", "{} {}\n")["reason"]
    (tree.folder / "a.jsonl").unlink()
    assert tree.only("a.tar", tar([("a.jsonl", b"{}\n{}\n"), ("b.jsonl", b"{}\n")])) is None


# Tar


def shard(*names, jpeg=None):
    return tar([(name, (jpeg or picture()) if name.endswith("jpg") else b"7") for name in names])


def test_shards_are_good(tree):
    tree.put("a.tar", shard("a.jpg", "a.cls", "b.jpg", "b.cls"))
    tree.put("b.tar.gz", gzipped(shard("a.jpg", "a.cls")))
    assert tree.findings() == {}


def test_keys_that_are_twice_or_apart(tree):
    found = tree.only("a.tar", shard("a.jpg", "a.cls", "b.jpg", "b.cls", "a.jpg", "a.cls"))
    assert of(found)[:2] == ("error", "tar") and "sample 'a' was there before" in found["reason"]


def test_a_sample_with_other_files_than_the_first_is_a_warning(tree):
    found = tree.only("a.tar", shard("a.jpg", "a.cls", "b.jpg"))
    assert of(found)[0] == "warning" and "sample 'b' has no 'cls'" in found["reason"]


def test_images_and_arrays_in_a_shard_are_decoded(tree):
    found = tree.only("a.tar", shard("a.jpg", "a.cls", jpeg=picture()[:-100]))
    assert found["severity"] == "error" and found["reason"].startswith("'a.jpg': the JPEG")
    found = tree.only("a.tar", tar([("x.npy", npy(np.arange(9))[:-1]), ("x.json", b"{}")]))
    assert found["severity"] == "error" and "x.npy" in found["reason"]
    found = tree.only("a.tar", tar([("x.json", b"{")]))
    assert found["severity"] == "error" and "x.json" in found["reason"]


@pytest.mark.parametrize(
    "name, data, severity, says",
    [
        ("a.jpg", b"", "error", "'a.jpg': it is empty: 0 bytes"),
        ("a.json", b"", "error", "'a.json': it is empty: 0 bytes"),
        ("a.jpg", b"<html>", "error", "'a.jpg': its content is text, its name promises jpeg"),
        ("a.seg.png", picture(), "warning", "'a.seg.png': its content is jpeg, its name promises png"),
        ("a.txt", b"", None, None),
        ("a.cls", b"", None, None),
    ],
)
def test_a_file_in_a_shard_is_what_its_name_promises(tree, name, data, severity, says):
    found = tree.only("a.tar", tar([(name, data)]))
    assert found is None if severity is None else (found["severity"], found["reason"]) == (severity, says)


def test_a_shard_that_is_cut_off(tree):
    assert tree.only("a.tar", shard("a.jpg", "a.cls")[:1000])["severity"] == "error"


# What is packed, unknown or unreadable


def test_packed_files_are_unpacked_whatever_is_in_them(tree):
    data = gzip.compress(os.urandom(100_000))
    assert tree.only("a.bin.gz", data) is None
    bad = bytearray(data)
    bad[-6] ^= 1
    assert of(tree.only("a.bin.gz", bytes(bad)))[:2] == ("error", "gzip")


def test_what_is_unknown_is_counted_and_not_looked_into(tree):
    tree.put("a.bin", b"\0\1\2\3")
    result = tree.check("--json")
    assert result.returncode == 0 and json.loads(result.stdout)["n_unknown"] == 1


def test_a_link_that_leads_nowhere(tree):
    tree.put("a.txt", "x")
    (tree.folder / "b.txt").symlink_to("nowhere")
    assert "cannot be read: No such file" in tree.findings()["b.txt"]["reason"]


# Notes


def test_copies_are_noted(tree):
    for name, size in ("small", 100), ("large", 600_000):
        data = os.urandom(size)
        tree.put(f"{name}1.bin", data)
        tree.put(f"{name}2.bin", data)
        tree.put(f"{name}3.bin", data[:-1] + bytes([data[-1] ^ 1]))
    notes = tree.findings(notes=True)
    assert set(notes) == {"large2.bin", "small2.bin"}
    assert notes["large2.bin"]["reason"] == f"a copy of '{tree.folder}/large1.bin'"


def test_copies_are_found_among_files_that_begin_alike(tree):
    head = bytes(300_000)
    for name, tail in ("a", b"1"), ("b", b"2"), ("c", b"2"), ("d", b"3"), ("e", b"1"), ("f", b"2"):
        tree.put(f"{name}.bin", head + tail)
    notes = {name: note["reason"][-6:-1] for name, note in tree.findings(notes=True).items()}
    assert notes == {"c.bin": "b.bin", "e.bin": "a.bin", "f.bin": "b.bin"}


def test_a_file_is_no_copy_of_itself(tree):
    tree.put("a.txt", "a")
    tree.put("b.txt", "b" * 600_000)
    (tree.folder / "c.txt").symlink_to("a.txt")
    (tree.folder / "d.txt").hardlink_to(tree.folder / "b.txt")
    assert tree.findings(tree.folder, notes=True) == {}


def test_images_of_other_sizes_are_noted_once(tree):
    for i in range(5):
        tree.put(f"{i}.jpg", picture(seed=i))
    assert tree.findings(notes=True) == {}
    tree.put("3.jpg", picture(size=(10, 20)))
    notes = tree.findings(notes=True)
    assert set(notes) == {"3.jpg"}
    assert notes["3.jpg"]["reason"].startswith("10 x 20 pixels; of 5 images 4 have 32 x 24")


def test_images_of_other_channels_than_most_are_noted_each(tree):
    for i in range(5):
        tree.put(f"{i}.png", picture("PNG", seed=i))
    assert tree.findings(notes=True) == {}
    tree.put("1.png", picture("PNG", mode="RGBA", seed=1))
    tree.put("2.png", picture("PNG", mode="L", seed=2))
    notes = tree.findings(notes=True)
    assert set(notes) == {"1.png", "2.png"}
    assert notes["1.png"]["reason"].startswith("its pixels are RGBA; of 5 images 3 are RGB")
    assert notes["2.png"]["reason"].startswith("its pixels are grey; of 5 images 3 are RGB")


def test_uneven_folders_are_noted(tree):
    for label, n in ("cat", 9), ("dog", 3), ("eel", 4):
        for i in range(n):
            tree.put(f"train/{label}/{i}.txt", f"{label} {i}")
    notes = tree.findings(notes=True)
    assert set(notes) == {"train"} and "'cat' has 9 files, 'dog' 3" in notes["train"]["reason"]
    (tree.folder / "train/cat/8.txt").unlink()
    assert tree.findings(notes=True) == {}


def test_uneven_folders_are_noted_however_many_and_whatever_is_in_them(tree):
    for i in range(4200):
        tree.put(f"train/{i:04}/{i}.txt", f"{i}")
        if i == 7:
            for j in range(3):
                tree.put(f"train/{i:04}/{j}x.txt", f"x {j}")
            tree.put(f"train/{i:04}/more/{i}.txt", f"more {i}")
    notes = tree.findings(notes=True)
    assert set(notes) == {"train"}
    assert notes["train"]["reason"].startswith("4200 folders, if they are labels, are uneven: '0007'")
