# SPDX-License-Identifier: Apache-2.0
"""Sources on files, against Python's own readers; bad files under each policy."""

import csv as pythons_csv
import ctypes
import gzip
import io
import os
import random
import struct
import tarfile
import zlib

import numpy as np
import pytest

import datasets
import examples
import sources
from sources import FAIL, SKIP, base

Refused = sources.base.Refused


def crc32c(data):
    table = crc32c.__dict__.setdefault("table", [])
    if not table:
        for n in range(256):
            for _ in range(8):
                n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
            table.append(n)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(*records):
    lengths = [struct.pack("<Q", len(record)) for record in records]
    return b"".join(length + masked(length) + record + masked(record)
                    for length, record in zip(lengths, records))


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


# ---- paths ----

@pytest.fixture
def tree(tmp_path):
    for name in ("b/2.txt", "a/1.txt", "a/x.dat", "a/deep/er/3.txt", ".hidden/4.txt", "a/.5.txt",
                 "top.txt"):
        write(tmp_path / "tree" / name, b"")
    (tmp_path / "tree/b/loop").symlink_to("..", target_is_directory=True)
    return tmp_path / "tree"


@pytest.mark.parametrize("pattern, expected", [
    ("*.txt", ["top.txt"]),
    ("*/*.txt", ["a/1.txt", "b/2.txt"]),
    ("?/[0-9].txt", ["a/1.txt", "b/2.txt"]),
    ("**/*.txt", ["a/1.txt", "a/deep/er/3.txt", "b/2.txt", "top.txt"]),
    ("**/er/*", ["a/deep/er/3.txt"]),
    ("a/**/3.txt", ["a/deep/er/3.txt"]),
    ("a/.*", ["a/.5.txt"]),
    (".hidden/*", [".hidden/4.txt"]),
    ("a/1.txt", ["a/1.txt"]),
    ("b/loop/a/1.txt", ["b/loop/a/1.txt"]),
])
def test_patterns_match_files_in_order(runtime, tree, pattern, expected):
    found = list(sources.files(runtime, tree / pattern))
    assert [os.path.relpath(path.decode(), tree) for path in found] == expected


def test_a_file_that_two_patterns_match_comes_once(runtime, tree):
    assert len(list(sources.files(runtime, tree / "a/*.txt", tree / "*/1.txt"))) == 1


def test_a_pattern_that_matches_nothing_is_refused_by_name(runtime, tree):
    with pytest.raises(Refused, match="no file matches '.*/nothing"):
        sources.files(runtime, tree / "top.txt", tree / "nothing*")


def test_shuffled_files_are_all_there_in_an_order_of_each_pass(runtime, tmp_path):
    names = [write(tmp_path / f"f/{i:03}", b"") for i in range(300)]
    expected = [os.fsencode(name) for name in names]
    dataset = sources.files(runtime, tmp_path / "f/*", shuffle=True, seed=7)
    first, second = list(dataset), list(dataset)
    assert sorted(first) == sorted(second) == expected
    assert first != second and first != expected
    again = sources.files(runtime, tmp_path / "f/*", shuffle=True, seed=7)
    assert list(again) == first
    fixed = sources.files(runtime, tmp_path / "f/*", shuffle=True, seed=7, same_each_pass=True)
    assert list(fixed) == list(fixed)


def test_many_paths_cost_little_more_than_their_bytes(tmp_path):
    names = [f"/data/train/class-{i % 1000:04}/picture-{i:09}-of-many-more-like-it.jpeg"
             for i in range(200_000)]
    n_bytes = sum(map(len, names))
    with sources.base.Runtime(cap_bytes=64 << 20, spill=tmp_path) as runtime:
        with sources.paths(runtime, *names) as dataset:
            assert runtime.peak_bytes <= 1.1 * n_bytes  # and 4 bytes each beside
            assert dataset.cardinality == len(names)
            assert [next(iter(dataset))] == [names[0].encode()]


def test_pictures_in_folders_have_the_labels_of_their_classes(runtime, tmp_path):
    for name in ("cat/2.jpg", "cat/1.PNG", "dog/sub/3.jpeg", "ant-eater/4.jpg", "cat/notes.txt"):
        write(tmp_path / "pictures" / name, b"")
    dataset = sources.image_folder(runtime, f"{tmp_path}/pictures/")
    found = [(os.path.relpath(path.decode(), tmp_path / "pictures"), label)
             for path, label in dataset]
    assert found == [("ant-eater/4.jpg", 0), ("cat/1.PNG", 1), ("cat/2.jpg", 1),
                     ("dog/sub/3.jpeg", 2)]
    for name in ("cat/3.gif", "rest/4.GIF", "rest/5.tiff"):
        write(tmp_path / "pictures" / name, b"")
    assert sources.image_folder(runtime, f"{tmp_path}/pictures/").cardinality == 4
    write(tmp_path / "gifs/a/1.gif", b"")
    with pytest.raises(Refused, match="1 pictures .* are GIF, WebP or TIFF"):
        sources.image_folder(runtime, f"{tmp_path}/gifs")
    name_of = sources.library().pl_dataset_class_name
    assert [name_of(dataset.pointer, i) for i in range(4)] == [b"ant-eater", b"cat", b"dog", None]


def test_a_folder_without_pictures_is_refused(runtime, tmp_path):
    with pytest.raises(Refused, match="no picture in the folders of"):
        sources.image_folder(runtime, tmp_path)


@pytest.mark.parametrize("spelled", ["{}/in", "{}/in/", "{}//in", "{}/in//", "{}/./in", "/{}/in"])
def test_classes_are_the_same_however_the_folder_is_spelled(runtime, tmp_path, spelled):
    for name in "bat", "cat":
        write(tmp_path / "in" / name / "1.jpg", b"")
    dataset = sources.image_folder(runtime, spelled.format(tmp_path))
    name_of = sources.library().pl_dataset_class_name
    assert [label for _path, label in dataset] == [0, 1]
    assert [name_of(dataset.pointer, i) for i in range(3)] == [b"bat", b"cat", None]


def test_a_folder_of_pictures_may_have_any_name(runtime, tmp_path):
    write(tmp_path / "run[1]*" / "a" / "1.png", b"")
    (found,) = sources.image_folder(runtime, tmp_path / "run[1]*")
    assert found == (os.fsencode(tmp_path / "run[1]*" / "a" / "1.png"), 0)
    with pytest.raises(Refused, match="the path is empty"):
        sources.image_folder(runtime, "")


def test_classes_are_in_the_order_of_their_names(runtime, tmp_path):
    names = ["tiger", "tiger cat", "tiger-shark", "tiger.1", "tiger0", "t"]
    for name in names:
        write(tmp_path / "in" / name / "x" / "1.jpg", b"")
        write(tmp_path / "in" / name / "1.jpg", b"")
    dataset = sources.image_folder(runtime, tmp_path / "in")
    found = [(path.decode().split("/in/")[1].split("/")[0], label) for path, label in dataset]
    assert found == [(name, i) for i, name in enumerate(sorted(names)) for _ in range(2)]


# ---- formats ----

def test_lines_of_several_files_follow_each_other(runtime, tmp_path):
    one = write(tmp_path / "1", b"a\r\n\nlast")
    two = write(tmp_path / "2", b"")
    three = write(tmp_path / "3", b"x" * 2_000_000 + b"\n")
    found = list(sources.lines(sources.paths(runtime, one, two, three)))
    assert found == [b"a", b"", b"last", b"x" * 2_000_000]


def test_csv_has_the_columns_that_are_asked_for(runtime, tmp_path):
    rng, text = random.Random(1), io.StringIO()
    rows = [(rng.randrange(-10**12, 10**12), rng.random(), rng.choice(["a", "b,c", 'd"e', "f\ng"]))
            for _ in range(500)]
    pythons_csv.writer(text, lineterminator="\n").writerows([("i", "x", "s"), *rows])
    path = write(tmp_path / "t.csv", text.getvalue().encode())
    columns = [("int64", None), ("float64", None), ("string", None)]
    found = list(sources.csv(sources.paths(runtime, path), columns, header=True))
    assert found == [(i, x, s.encode()) for i, x, s in rows]
    some = sources.csv(sources.paths(runtime, path), columns[2:], selected=[2], header=True)
    assert list(some) == [s.encode() for _, _, s in rows]


def test_a_bad_csv_record_costs_that_record(runtime, tmp_path):
    path = write(tmp_path / "t.csv", b"1,2\n3\n,5\nx,6\n7,8\n")
    columns = [("int32", -1), ("float32", None)]
    found = sources.csv(sources.paths(runtime, path), columns).__iter__().everything()
    assert [f for f in found if not isinstance(f, Refused)] == [(1, 2), (-1, 5), (7, 8)]
    messages = [f.message for f in found if isinstance(f, Refused)]
    assert len(messages) == 2
    assert messages[0].startswith("csv: element 1,") and "t.csv" in messages[0]
    assert "x" in messages[1] and messages[1].startswith("csv: element 3,")


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zlib.compress])
def test_records_are_read_whole(runtime, tmp_path, pack):
    contents = [b"", b"one", bytes(range(256)) * 3000, b"x" * 3_000_000, b"end"]
    path = write(tmp_path / "r", pack(framed(*contents)))
    assert list(sources.records(sources.paths(runtime, path))) == contents


def test_a_bad_record_costs_one_record_and_a_bad_length_the_rest(runtime, tmp_path):
    data = bytearray(framed(b"first", b"second", b"third", b"fourth"))
    data[16 + 5 + 12] ^= 1  # in the data of the second
    data[2 * 16 + 5 + 6 + 16 + 5] ^= 1  # in the length of the fourth
    path = write(tmp_path / "r", bytes(data))
    after = write(tmp_path / "s", framed(b"after"))
    found = sources.records(sources.paths(runtime, path, after)).__iter__().everything()
    assert [f if isinstance(f, bytes) else f.code for f in found] == [
        b"first", "PL_ECORRUPT", b"third", "PL_ECORRUPT", b"after"]
    assert f"'{path}'" in found[1].message and "records: element 1" in found[1].message
    assert "at byte 21" in found[1].message


def test_fixed_records_lie_between_head_and_foot(runtime, tmp_path):
    path = write(tmp_path / "f", b"head" + b"".join(bytes([i] * 10) for i in range(100)) + b"ft")
    found = list(sources.fixed_records(sources.paths(runtime, path), 10, head=4, foot=2))
    assert found == [bytes([i] * 10) for i in range(100)]
    bad = sources.fixed_records(sources.paths(runtime, path), 7, head=4, foot=2)
    found = bad.__iter__().everything()
    assert len(found) == 143 and "8 bytes are left, which are not a record of 7" in found[-1].message


@pytest.mark.parametrize("size", [10, 2_000_000])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_fixed_records_of_any_size_are_packed_or_not(runtime, tmp_path, size, pack):
    contents = [bytes([i]) * size for i in range(5)]
    path = write(tmp_path / "f", pack(b"head" + b"".join(contents) + b"ft"))
    assert list(sources.fixed_records(sources.paths(runtime, path), size, head=4, foot=2)) == contents
    cut = write(tmp_path / "cut", pack(b"head" + b"".join(contents) + b"f"))
    found = sources.fixed_records(sources.paths(runtime, cut), size, head=4, foot=2)
    *whole, bad = found.__iter__().everything()
    assert whole == contents[:4]
    assert bad.code == "PL_ECORRUPT" and "cut" in bad.message


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_short_large_record_takes_nothing_of_the_foot(runtime, tmp_path, pack):
    size = 2_000_000
    path = write(tmp_path / "f", pack(bytes(size) + b"r" * (size - 60) + b"f" * 100))
    found = sources.fixed_records(sources.paths(runtime, path), size, foot=100)
    whole, bad = found.__iter__().everything()
    assert whole == bytes(size)
    assert f"{size + 40} bytes are left, which are not a record of {size}" in bad.message


def add_member(tar, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def test_samples_of_a_tar_file_have_their_parts(runtime, tmp_path):
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        for i in range(20):
            add_member(tar, f"d/{i:04}.cls", str(i).encode())
            add_member(tar, f"d/{i:04}.jpg" if i % 2 else f"d/{i:04}.png", bytes([i]) * 1000)
            add_member(tar, f"d/{i:04}.extra", b"?")
    found = list(sources.samples(sources.paths(runtime, tmp_path / "t.tar"), "jpg;png", "cls"))
    assert found == [(f"d/{i:04}".encode(), bytes([i]) * 1000, str(i).encode()) for i in range(20)]


@pytest.mark.parametrize("fault", ["no end", "corrupt header", "cut header"])
def test_a_fault_behind_a_sample_leaves_it_whole(runtime, tmp_path, fault):
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        for i in range(3):
            add_member(tar, f"{i}.txt", bytes([i]) * 100)
    data = bytearray((tmp_path / "t.tar").read_bytes()[:6 * 512])
    if fault == "corrupt header":
        data[4 * 512] ^= 1
    if fault == "cut header":
        del data[5 * 512 - 12:]
    n_good = 3 if fault == "no end" else 2
    paths = sources.paths(runtime, write(tmp_path / "t.tar", data))
    *good, refused = iter(sources.samples(paths, "txt")).everything()
    assert good == [(str(i).encode(), bytes([i]) * 100) for i in range(n_good)]
    assert f"element {n_good}," in str(refused) and "t.tar" in str(refused)
    one_by_one = iter(sources.samples(paths, "txt").with_policy(SKIP))
    assert list(one_by_one) == good and one_by_one.bad_count == (1, n_good + 1)


# ---- Examples ----

def example(**features):
    made = examples.Example()
    for name, values in features.items():
        kind = {bytes: "bytes_list", float: "float_list", int: "int64_list"}[type(values[0])]
        getattr(made.features.feature[name], kind).value.extend(values)
    return made.SerializeToString()


def string_records(runtime, tmp_path, *contents):
    return sources.records(sources.paths(runtime, write(tmp_path / "r", framed(*contents))))


def test_examples_become_components(runtime, tmp_path):
    contents = [example(label=[i], pixels=[i + 0.5] * 6, name=[b"n%d" % i] * (i % 3 + 1))
                for i in range(10)]
    dataset = sources.parse_examples(
        string_records(runtime, tmp_path, *contents), ("label", "int64", (), None),
        ("pixels", "float32", (2, 3), None), ("name", "string", None, None), n_parallel=2)
    found = list(dataset)
    assert len(found) == 10
    for i, (label, pixels, names) in enumerate(found):
        assert label == i
        np.testing.assert_array_equal(pixels, np.full((2, 3), i + 0.5, "f4"))
        assert names == [b"n%d" % i] * (i % 3 + 1)


def test_a_list_of_examples_becomes_components_of_that_many(runtime, tmp_path):
    contents = [example(label=[i], name=[b"x" * i]) for i in range(7)]
    batches = string_records(runtime, tmp_path, *contents).batch(4)
    dataset = sources.parse_examples(batches, ("label", "int64", (1,), None),
                                     ("name", "string", (), None))
    (first, names), (second, _) = list(dataset)
    np.testing.assert_array_equal(first, [[0], [1], [2], [3]])
    np.testing.assert_array_equal(second, [[4], [5], [6]])
    assert names == [b"", b"x", b"xx", b"xxx"]


def test_a_feature_that_is_missing_has_its_default_or_is_named(runtime, tmp_path):
    contents = [example(a=[1]), example(b=[2]), example(a=[3], b=[4])]
    default = runtime.tensor(np.array(-1, "i8"))
    dataset = string_records(runtime, tmp_path, *contents)
    both = sources.parse_examples(dataset, ("a", "int64", (), default), ("b", "int64", (), default))
    assert list(both) == [(1, -1), (-1, 2), (3, 4)]
    found = sources.parse_examples(dataset, ("a", "int64", (), None)).__iter__().everything()
    assert (found[0], found[2]) == (1, 3)
    assert "has no feature 'a', which has no default" in found[1].message
    assert f"'{tmp_path}/r', byte {16 + len(contents[0])}: " in found[1].message


def test_a_feature_of_any_length_that_is_missing_has_its_default_or_no_values(runtime, tmp_path):
    dataset = string_records(runtime, tmp_path, example(a=[1, 2, 3]), example(b=[2]))
    numbers = runtime.tensor(np.array([7, 8], "i8"))
    given, other = list(sources.parse_examples(dataset, ("a", "int64", None, numbers)))
    np.testing.assert_array_equal(given, [1, 2, 3])
    np.testing.assert_array_equal(other, [7, 8])
    assert [len(found) for found in sources.parse_examples(dataset, ("a", "int64", None, None))
            ] == [3, 0]
    texts = datasets.tensor_of(runtime, np.array([b"x", b"yy"], object))
    assert list(sources.parse_examples(dataset, ("s", "string", None, texts))) == [[b"x", b"yy"]] * 2
    with pytest.raises(Refused, match=r"feature 'a': its default is int64\[\], not a list of int64"):
        sources.parse_examples(dataset, ("a", "int64", None, runtime.tensor(np.array(1))))
    with pytest.raises(Refused, match="feature 'a' is asked for twice"):
        sources.parse_examples(dataset, ("a", "int64", None, None), ("a", "int64", (3,), None))


def test_a_list_of_examples_with_features_of_any_length_is_refused_with_what_to_do(
        runtime, tmp_path):
    with pytest.raises(Refused, match="parse records one by one, and batch them with padded_batch"):
        sources.parse_examples(string_records(runtime, tmp_path, example(a=[1])).batch(2),
                               ("a", "int64", None, None))


def test_a_function_of_one_example_takes_no_list(runtime):
    runtime.kept = []
    contents = [example(a=[1]), example(a=[1, 2, 3, 4])]
    given = datasets.from_generator(runtime, lambda: [np.array(contents, object), contents[0]],
                                    [("string", None)])
    function = datasets.Function()
    features = (sources.FeatureSpec * 1)(
        sources.FeatureSpec(b"a", base.NUMBER_OF["int64"], base.Shape(), True, None))
    base.call("pl_examples_function", runtime, features, 1, False, ctypes.byref(function))
    mapped = datasets.Stage("map", given, ctypes.byref(function), 1)
    refused, good = datasets.everything(mapped)
    assert "parse_examples: string[2], where one string was expected" in refused.message
    np.testing.assert_array_equal(good, [1])


@pytest.mark.parametrize("feature, expected", [
    (("a", "float32", (), None), "has int64s, where floats are asked for"),
    (("a", "int64", (2,), None), "has 1 values, where shape [2] has 2"),
])
def test_a_feature_of_another_kind_is_told(runtime, tmp_path, feature, expected):
    dataset = sources.parse_examples(string_records(runtime, tmp_path, example(a=[1])), feature)
    with pytest.raises(Refused) as refused:
        list(dataset)
    assert f"feature 'a' of record 0 {expected}" in refused.value.message


# ---- files that are not as they should be ----

READERS = {
    "lines": (sources.lines, b"good\n", [b"good"]),
    "records": (sources.records, framed(b"good"), [b"good"]),
    "csv": (lambda paths: sources.csv(paths, [("string", None)]), b"good\n", [b"good"]),
    "fixed": (lambda paths: sources.fixed_records(paths, 4), b"good", [b"good"]),
}


@pytest.mark.parametrize("name", READERS)
def test_a_missing_file_costs_itself_and_is_named(runtime, tmp_path, name):
    reader, good, expected = READERS[name]
    one, two = write(tmp_path / "1", good), write(tmp_path / "2", good)
    dataset = reader(sources.paths(runtime, one, tmp_path / "missing", two))
    found = dataset.with_policy(FAIL).__iter__().everything()
    assert [found[0], found[2]] == expected * 2
    assert found[1].code == "ENOENT" and "/missing" in found[1].message
    skipping = iter(dataset.with_policy(SKIP))
    assert list(skipping) == expected * 2
    assert skipping.bad_count == (1, 3)
    with pytest.raises(Refused, match="2 elements are bad, and 1 may be"):
        gone = reader(sources.paths(runtime, one, tmp_path / "x", tmp_path / "y", two))
        list(gone.with_policy(SKIP, max_bad=1))


def test_truncated_records_at_every_byte_give_the_whole_ones_before(runtime, tmp_path):
    contents = [b"first", b"", b"third record"]
    data = framed(*contents)
    ends = [0]
    for content in contents:
        ends.append(ends[-1] + 16 + len(content))
    for n in range(len(data)):
        path = write(tmp_path / "cut", data[:n])
        found = sources.records(sources.paths(runtime, path), 1).__iter__().everything()
        whole = [content for content, end in zip(contents, ends[1:]) if end <= n]
        assert found[:len(whole)] == whole
        assert [f.code for f in found[len(whole):]] == ([] if n in ends else ["PL_ECORRUPT"])


def test_a_folder_given_as_a_file_is_told(runtime, tmp_path):
    for reader, _, _ in READERS.values():
        (found,) = reader(sources.paths(runtime, tmp_path)).__iter__().everything()
        assert str(tmp_path) in found.message
