# SPDX-License-Identifier: Apache-2.0
"""plimsoll._core's datasets: what tf.data is made of. Elements here are flat, and what a function
gives is a sequence of components."""

import collections
import csv
import gzip
import struct
import tarfile
import zlib

import numpy as np
import pytest
from plimsoll import _core, errors
from plimsoll.tf._values import types as _types

UNKNOWN, INFINITE = -2, -1


def spec(dtype="int64", shape=()):
    return (getattr(_types, dtype), shape, None)


def value(component):
    """A component for a comparison: a number, bytes, or lists; a dataset is a list of elements."""
    if isinstance(component, _core.Dataset):
        return elements(component)
    return np.asarray(component).tolist()


def elements(dataset):
    """All of one pass; those of one component by themselves."""
    found = []
    for element in _core.Iterator(dataset):
        found.append(tuple(map(value, element)) if isinstance(element, tuple) else value(element))
    return found


def numbers(*range_arguments):
    bounds = range(*range_arguments)
    return _core.ds_range(bounds.start, bounds.stop, bounds.step)


def python(function, *specs):
    return _core.Callback(function, list(specs) or [spec()])


# ---- what a dataset is ----


def test_a_dataset_tells_its_components_and_how_many_elements_it_has():
    dataset = _core.ds_batch(numbers(10), 4, True)
    assert dataset.n_components == 1
    assert dataset.specs == [(_types.int64, (4,), None)]
    assert dataset.cardinality == 2
    assert _core.ds_repeat(dataset, -1).cardinality == INFINITE
    assert _core.ds_filter(dataset, python(lambda x: [True], spec("bool"))).cardinality == UNKNOWN


def test_the_specs_of_a_window_are_those_of_a_dataset():
    window = _core.ds_window(numbers(10), 3, 3, 1, False)
    assert window.specs == [(None, None, [(_types.int64, (), None)])]
    assert elements(window) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_a_dataset_is_called_in_messages_what_it_is_named():
    dataset = _core.ds_map(numbers(3), python(lambda x: 1 / 0), 1)
    assert dataset.name == "map"
    dataset.name = "divide"
    with pytest.raises(errors.UnknownError, match="divide"):
        elements(dataset)


@pytest.mark.parametrize("arguments, named, what", [
    ((), {}, "is given too little"),
    ((1, 2, 3, 4), {}, "is given more than it takes"),
    ((1, 2, 3), {"step": 3}, "is given more than it takes"),
    ((1, 2), {"stride": 3}, "is given too little"),
])
def test_arguments_that_a_function_does_not_take_are_refused(arguments, named, what):
    with pytest.raises(TypeError, match=what):
        _core.ds_range(*arguments, **named)


def test_arguments_may_be_given_by_name():
    assert elements(_core.ds_range(1, step=2, stop=6)) == [1, 3, 5]


@pytest.mark.parametrize("make, error", [
    (lambda: _core.ds_range(0, 1, 0), ValueError),
    (lambda: _core.ds_range(0, "1", 1), TypeError),
    (lambda: _core.ds_range(0, 1 << 70, 1), OverflowError),
    (lambda: _core.ds_take("no dataset", 1), TypeError),
    (lambda: _core.ds_batch(numbers(3), 0), ValueError),
    (lambda: _core.ds_map(numbers(3), len, 1), TypeError),
    (lambda: _core.ds_map(numbers(3), python(len), 1 << 40), OverflowError),
    (lambda: _core.ds_zip([numbers(3), 3]), TypeError),
    (lambda: _core.ds_options(numbers(3), on_error="hope"), ValueError),
    (lambda: _core.ds_options(numbers(3), max_bad=-1), ValueError),
    (lambda: _core.ds_padded_batch(numbers(3), 2, [(), ()]), ValueError),
    (lambda: _core.ds_records(_core.ds_paths(["a"]), "LZ4"), ValueError),
    (lambda: _core.ds_load("/nowhere/at/all"), FileNotFoundError),
    (lambda: _core.Callback(3, []), TypeError),
    (lambda: _core.Callback(len, [("int64",), 3]), TypeError),
    (lambda: _core.Callback(len, [(None, ())]), TypeError),
    (lambda: _core.Iterator(3), TypeError),
    (lambda: _core.Iterator(numbers(3), 3), TypeError),
    (lambda: _core.Iterator(numbers(3), _core.Structure(("tuple", [None, None]))), ValueError),
    (lambda: _core.Dataset(), TypeError),
])  # fmt: skip
def test_what_cannot_be_is_refused_at_once(make, error):
    with pytest.raises(error):
        make()


# ---- sources ----


def test_slices_of_arrays_and_lists_go_side_by_side():
    dataset = _core.ds_slices([np.arange(6.0).reshape(3, 2), [1, 2, 3], ["a", b"b", "c"]])
    assert dataset.specs[0] == (_types.float64, (2,), None)
    assert elements(dataset) == [([0, 1], 1, b"a"), ([2, 3], 2, b"b"), ([4, 5], 3, b"c")]


def test_tensors_are_one_element():
    assert elements(_core.ds_tensors([[1, 2], 3.5])) == [([1, 2], 3.5)]


def test_a_generator_begins_anew_in_each_pass():
    begun = []

    def begin():
        begun.append(len(begun))
        for i in range(3):
            yield i, [i] * i

    dataset = _core.ds_generator(begin, [spec(), spec("float32", (None,))], 3)
    assert dataset.cardinality == 3
    assert begun == []
    expected = [(0, []), (1, [1]), (2, [2, 2])]
    assert elements(dataset) == expected
    assert elements(dataset) == expected
    assert begun == [0, 1]


def test_a_generator_may_give_datasets():
    dataset = _core.ds_generator(lambda: ([numbers(n)] for n in (2, 3)), [(None, None, [spec()])], 2)
    assert elements(dataset) == [[0, 1], [0, 1, 2]]


@pytest.mark.parametrize("element, what", [
    ((1, 2), "2 components are given, not 1"),
    (("text",), ""),
    (([1, 2],), r"\[2\]|\(2,?\)|2"),
    (3, "iterable"),
])  # fmt: skip
def test_what_a_generator_gives_otherwise_than_it_said_is_its_error(element, what):
    one = _core.Iterator(_core.ds_generator(lambda: iter([element, (7,)]), [spec()], UNKNOWN))
    with pytest.raises(errors.InvalidArgumentError, match=what):
        next(one)
    assert value(next(one)) == 7


def test_lines_of_files_that_patterns_match(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"{name}1\n{name}2\n")
    files = _core.ds_files([tmp_path / "*.txt"])
    assert elements(files) == [bytes(tmp_path / "a.txt"), bytes(tmp_path / "b.txt")]
    assert elements(_core.ds_lines(files)) == [b"a1", b"a2", b"b1", b"b2"]
    shuffled = _core.ds_files(str(tmp_path / "*.txt"), shuffle=True, seed=1, same_each_pass=True)
    assert elements(shuffled) == elements(shuffled)
    with pytest.raises(FileNotFoundError):
        _core.ds_files([str(tmp_path / "*.png")])


def test_a_folder_of_classes_has_their_names(tmp_path):
    for name in ("dogs", "cats"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jpg").write_bytes(b"")
    dataset = _core.ds_image_folder(tmp_path)
    assert dataset.class_names == ["cats", "dogs"]
    assert [label for _, label in elements(dataset)] == [0, 1]
    assert numbers(3).class_names == []


def test_a_folder_of_classes_that_is_none_is_told_from_one_without_pictures(tmp_path):
    (tmp_path / "text").write_text("")
    (tmp_path / "empty").mkdir()
    for name, why in (
        ("missing", "cannot read '.*missing': No such file"),
        ("text", "'.*text' is not a folder"),
        ("empty", "no picture in the folders of '.*empty'"),
    ):
        with pytest.raises(FileNotFoundError, match=why):
            _core.ds_image_folder(tmp_path / name)


def test_records_of_one_size(tmp_path):
    (tmp_path / "a").write_bytes(b"headAABBCCfoot")
    dataset = _core.ds_fixed(_core.ds_paths([tmp_path / "a"]), 4, 2, 4)
    assert elements(dataset) == [b"AA", b"BB", b"CC"]


def test_columns_of_a_csv_file(tmp_path):
    rows = [["x", "y", "z", "word"], [1, "", 2.5, 'quoted "one"'], ["", 7, "NA", ""]]
    with open(tmp_path / "a.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    columns = [(_types.int32, False, -1), (_types.float32, False, 0.5), (_types.string, False, "?")]
    dataset = _core.ds_csv(_core.ds_paths([tmp_path / "a.csv"]), columns, selected=[0, 2, 3],
                           delimiter=";", header=True, na_value="NA")  # fmt: skip
    assert elements(dataset) == [(1, 2.5, b'quoted "one"'), (-1, 0.5, b"?")]
    required = _core.ds_csv(_core.ds_paths([tmp_path / "a.csv"]), [(_types.int32, True, None)],
                            [0], ";", False, True)  # fmt: skip
    one = _core.Iterator(required)
    assert value(next(one)) == 1
    with pytest.raises(errors.InvalidArgumentError, match="a.csv"):
        next(one)


def test_samples_of_a_tar_file(tmp_path):
    for name in ("1.txt", "1.cls", "2.txt", "2.cls"):
        (tmp_path / name).write_text(name)
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name in ("1.txt", "1.cls", "2.txt", "2.cls"):
            tar.add(tmp_path / name, name)
    dataset = _core.ds_samples(_core.ds_paths([tmp_path / "a.tar"]), ["cls", "txt"])
    assert elements(dataset) == [(b"1", b"1.cls", b"1.txt"), (b"2", b"2.cls", b"2.txt")]


# ---- stages ----


def doubled(dataset, n_parallel=1):
    return _core.ds_map(dataset, python(lambda x: [int(x) * 2]), n_parallel)


@pytest.mark.parametrize("make, expected", [
    (lambda: doubled(numbers(4)), [0, 2, 4, 6]),
    (lambda: doubled(numbers(100), 4), list(range(0, 200, 2))),
    (lambda: _core.ds_map(numbers(2), python(lambda x: (x, [x, x]), spec(), spec("int64", (2,))), 1),
     [(0, [0, 0]), (1, [1, 1])]),
    (lambda: _core.ds_filter(numbers(6), python(lambda x: [int(x) % 2 == 0], spec("bool"))),
     [0, 2, 4]),
    (lambda: _core.ds_flat_map(numbers(4), python(lambda n: [numbers(int(n))],
                                                  (None, None, [spec()]))),
     [0, 0, 1, 0, 1, 2]),
    (lambda: _core.ds_interleave(numbers(1, 4), python(
        lambda n: [_core.ds_repeat(_core.ds_tensors([n]), 3)], (None, None, [spec()])), 2, 1, 1),
     [1, 2, 1, 2, 1, 2, 3, 3, 3]),
    (lambda: _core.ds_zip([numbers(3), numbers(5, 9)]), [(0, 5), (1, 6), (2, 7)]),
    (lambda: _core.ds_concatenate(numbers(2), numbers(5, 7)), [0, 1, 5, 6]),
    (lambda: _core.ds_batch(numbers(5), 2), [[0, 1], [2, 3], [4]]),
    (lambda: _core.ds_batch(numbers(5), n=2, drop_remainder=True), [[0, 1], [2, 3]]),
    (lambda: _core.ds_unbatch(_core.ds_tensors([[4, 5, 6]])), [4, 5, 6]),
    (lambda: _core.ds_window(numbers(5), 3, 1, 2, True), [[0, 2, 4]]),
    (lambda: _core.ds_repeat(numbers(2), 2), [0, 1, 0, 1]),
    (lambda: _core.ds_take(numbers(9), 2), [0, 1]),
    (lambda: _core.ds_skip(numbers(4), 2), [2, 3]),
    (lambda: _core.ds_shard(numbers(7), 3, 1), [1, 4]),
    (lambda: _core.ds_enumerate(numbers(5, 7), 3), [(3, 5), (4, 6)]),
    (lambda: _core.ds_scan(numbers(4), [np.int64(10)], python(lambda s, x: (s + x, s), spec(), spec())),
     [10, 10, 11, 13]),
    (lambda: _core.ds_cache(numbers(3)), [0, 1, 2]),
    (lambda: _core.ds_prefetch(numbers(3), -1), [0, 1, 2]),
])  # fmt: skip
def test_each_stage_gives_its_elements(make, expected):
    dataset = make()
    assert elements(dataset) == expected
    assert elements(dataset) == expected


def traced(function, *dtypes):
    inputs = [_core.placeholder(getattr(_types, dtype), ()) for dtype in dtypes or ["int64"]]
    return _core.Function(inputs, function(*inputs))


def test_a_traced_function_is_as_good_as_a_python_one():
    def double(x):
        return [_core.binary("mul", x, 2)]

    assert elements(_core.ds_map(numbers(100), traced(double), -1)) == list(range(0, 200, 2))
    few = _core.ds_filter(numbers(9), traced(lambda x: [_core.binary("less", x, 3)]))
    assert elements(few) == [0, 1, 2]
    add = traced(lambda s, x: [_core.binary("add", s, x)], "int64", "int64")
    assert value(_core.ds_reduce(numbers(5), [np.int64(7)], add)[0]) == 17
    with pytest.raises(errors.InvalidArgumentError, match="takes int64, component 0 is float32"):
        _core.ds_map(_core.ds_tensors([1.5]), traced(double), 1)


def test_python_functions_are_outside_of_the_graph_that_is_built_meanwhile():
    class Graph:
        added = 0

        def _unique_name(self, name, is_op=False):
            return name

        def _add(self, node):
            self.added += 1

    graph = Graph()
    dataset = _core.ds_map(numbers(3), python(lambda x: [_core.binary("add", x, 1)]), 1)
    before = _core.context(graph, "", None)
    found = [element for element in _core.Iterator(dataset)]
    _core.context(*before)
    assert (list(map(value, found)), graph.added) == ([1, 2, 3], 0)


def ragged():
    return _core.ds_generator(lambda: ([list(range(n)), n] for n in (1, 3)),
                              [spec("int32", (None,)), spec("float32")], UNKNOWN)  # fmt: skip


@pytest.mark.parametrize("arguments, expected", [
    ({}, [[0, 0, 0], [0, 1, 2]]),
    ({"values": [9, None]}, [[0, 9, 9], [0, 1, 2]]),
    ({"shapes": [(4,), ()], "values": [7, 0]}, [[0, 7, 7, 7], [0, 1, 2, 7]]),
])
def test_padded_batches_are_filled_up(arguments, expected):
    assert elements(_core.ds_padded_batch(ragged(), 2, **arguments)) == [(expected, [1, 3])]


def test_a_shuffle_draws_by_its_seed():
    shuffled = _core.ds_shuffle(numbers(100), 100, 42, False)
    found = elements(shuffled)
    assert found == elements(shuffled) and found != sorted(found)
    assert sorted(found) == list(range(100))


def test_reduce_gives_the_last_state():
    total, n = _core.ds_reduce(numbers(10), [np.int64(0), np.int64(0)],
                               python(lambda t, n, x: (t + x, n + 1), spec(), spec()))
    assert (value(total), value(n)) == (45, 10)
    with pytest.raises(ValueError, match="state"):
        _core.ds_reduce(numbers(3), [np.int64(0)], python(lambda t, x: (t, x), spec(), spec()))
    with pytest.raises(errors.InvalidArgumentError, match="no luck"):
        _core.ds_reduce(numbers(3), [np.int64(0)], python(raising(ValueError("no luck"))))


def test_what_is_saved_can_be_loaded(tmp_path):
    dataset = _core.ds_zip([numbers(5), _core.ds_slices([["a", "b", "c", "d", "e"]])])
    assert _core.ds_save(dataset, tmp_path / "saved", 2) is None
    assert elements(_core.ds_load(tmp_path / "saved")) == elements(dataset)
    kept = _core.ds_snapshot(dataset, str(tmp_path / "kept"), 1)
    assert elements(kept) == elements(dataset)
    assert elements(_core.ds_load(str(tmp_path / "kept"))) == elements(dataset)
    with pytest.raises(ValueError, match="no end"):
        _core.ds_save(_core.ds_repeat(dataset, -1), tmp_path / "endless", 1)


# ---- structures ----

Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize("tree, expected", [
    (("tuple", [None, None, None]), (1, 2, 3)),
    (("list", [None, None, None]), [1, 2, 3]),
    (("dict", ["b", "a"], [None, ("tuple", [None, None])]), {"b": 1, "a": (2, 3)}),
    (("tuple", [("named", Point, [None, None]), ("tuple", []), None]), (Point(1, 2), (), 3)),
    (("tuple", [("dataset", lambda x: -x), None, None]), (-1, 2, 3)),
])  # fmt: skip
def test_components_are_packed_as_their_structure_says(tree, expected):
    structure = _core.Structure(tree)
    assert structure.n_components == 3
    packed = structure.pack([1, 2, 3])
    assert packed == expected and type(packed) is type(expected)
    assert str(packed) == str(expected)  # the order of keys
    with pytest.raises(ValueError, match="3 components, not 2"):
        structure.pack([1, 2])


@pytest.mark.parametrize("tree", [3, (), ("tuple",), ("set", []), ("dict", ["a"], []),
                                  ("tuple", [None, 3]), ("tuple", 3)])  # fmt: skip
def test_a_tree_that_is_no_structure_is_refused(tree):
    with pytest.raises(TypeError):
        _core.Structure(tree)


def test_what_packing_raises_reaches_the_caller():
    structure = _core.Structure(("tuple", [None, ("named", int, [None, None]), None]))
    with pytest.raises(TypeError):
        structure.pack([1, 2, 3, 4])


def test_a_pass_packs_its_elements():
    structure = _core.Structure(("dict", ["a", "b"], [None, None]))
    one = _core.Iterator(_core.ds_zip([numbers(2), numbers(5, 7)]), structure)
    assert [{k: value(v) for k, v in found.items()} for found in one] == [
        {"a": 0, "b": 5}, {"a": 1, "b": 6}]  # fmt: skip


def test_many_components_are_as_good_as_few():
    dataset = _core.ds_zip([numbers(i, i + 2) for i in range(40)])
    assert elements(dataset) == [tuple(range(40)), tuple(range(1, 41))]
    mapped = _core.ds_map(dataset, python(lambda *all: all[::-1], *[spec()] * 40), 1)
    assert elements(mapped)[0] == tuple(range(39, -1, -1))


# ---- passes ----


def test_a_pass_ends_and_stays_ended():
    one = _core.Iterator(numbers(1))
    assert iter(one) is one
    assert value(next(one)) == 0
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(one)


def test_a_pass_goes_on_where_it_was_saved(tmp_path):
    dataset = _core.ds_shuffle(numbers(50), 20, 7, True)
    one = _core.Iterator(dataset)
    for _ in range(13):
        next(one)
    one.save(tmp_path / "pass")
    rest = list(map(value, one))
    other = _core.Iterator(dataset)
    other.restore(str(tmp_path / "pass"))
    assert list(map(value, other)) == rest and len(rest) == 37
    with pytest.raises(errors.OpError):
        _core.Iterator(numbers(3)).restore(tmp_path / "pass")


def test_a_pass_tells_what_its_stages_did():
    one = _core.Iterator(_core.ds_batch(numbers(10), 2))
    list(one)
    assert "batch" in one.explain()
    assert one.explain(json=True).startswith("{")


def test_bad_elements_are_skipped_counted_and_told(tmp_path):
    def fussy(x):
        if int(x) % 3 == 0:
            raise ValueError(f"not {int(x)}")
        return [x]

    mapped = _core.ds_map(numbers(9), python(fussy), 2)
    skipping = _core.ds_options(mapped, on_error="skip")
    one = _core.Iterator(skipping)
    assert list(map(value, one)) == [1, 2, 4, 5, 7, 8]
    assert one.bad_count() == (3, 9)
    bads = one.bads()
    assert [bad["index"] for bad in bads] == [0, 3, 6]
    assert bads[1]["stage"] == "map" and bads[1]["path"] is None and bads[1]["offset"] is None
    assert bads[1]["code"] == "EINVAL" and "not 3" in bads[1]["reason"] in bads[1]["message"]
    quarantine = tmp_path / "bad.jsonl"
    elements(_core.ds_options(mapped, "quarantine", quarantine_path=quarantine))
    assert len(quarantine.read_text().splitlines()) == 3
    with pytest.raises(errors.DataLossError):
        elements(_core.ds_options(mapped, "skip", max_bad=1))


# ---- exceptions ----


def raising(exception):
    def function(*_):
        raise exception

    return function


@pytest.mark.parametrize("exception, error", [
    (ValueError("no luck"), errors.InvalidArgumentError),
    (TypeError("no luck"), errors.InvalidArgumentError),
    (MemoryError("no luck"), errors.ResourceExhaustedError),
    (NotImplementedError("no luck"), errors.UnimplementedError),
    (FileNotFoundError(2, "no luck"), errors.NotFoundError),
    (ZeroDivisionError("no luck"), errors.UnknownError),
])  # fmt: skip
@pytest.mark.parametrize("n_parallel", [1, 3])
def test_what_a_function_raises_is_the_cause_of_what_a_pass_raises(exception, error, n_parallel):
    dataset = _core.ds_map(numbers(4), python(raising(exception)), n_parallel)
    one = _core.Iterator(dataset)
    with pytest.raises(error, match=r"element 0.*no luck.*test_core_datasets\.py:\d+") as caught:
        next(one)
    assert caught.value.__cause__ is exception
    frame = exception.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
    assert frame.tb_frame.f_code.co_name == "function"


def test_an_exception_is_one_elements_and_the_pass_goes_on():
    def fussy(x):
        return [1 // int(x)]

    one = _core.Iterator(_core.ds_map(numbers(-1, 2), python(fussy), 1))
    assert value(next(one)) == -1
    with pytest.raises(errors.UnknownError) as caught:
        next(one)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert value(next(one)) == 1


def test_what_a_generator_raises_is_an_elements_error_or_ends_the_pass():
    def failing():
        yield [1]
        raise LookupError("lost")

    one = _core.Iterator(_core.ds_generator(failing, [spec()], UNKNOWN))
    assert value(next(one)) == 1
    with pytest.raises(errors.UnknownError, match="lost"):
        next(one)
    with pytest.raises(StopIteration):
        next(one)
    never = _core.Iterator(_core.ds_generator(raising(LookupError("lost")), [spec()], UNKNOWN))
    for _ in range(2):
        with pytest.raises(errors.UnknownError, match="did not begin.*lost"):
            next(never)


def test_a_function_that_gives_something_else_is_refused():
    for result, what in ((None, "iterable"), ([1, 2], "2 components"), ([np.zeros(3)], "3"),
                         ([numbers(3)], "")):  # fmt: skip
        with pytest.raises(errors.InvalidArgumentError, match=what):
            elements(_core.ds_map(numbers(1), python(lambda _, result=result: result), 1))
    nested = (None, None, [spec()])
    with pytest.raises(errors.InvalidArgumentError, match="where a dataset is expected"):
        elements(_core.ds_flat_map(numbers(1), python(lambda _: [3], nested)))


# ---- records ----


def unframed(data):
    """The records in the bytes of a file, without a look at the checksums."""
    records = []
    while data:
        (n,) = struct.unpack("<Q", data[:8])
        records.append(data[12 : 12 + n])
        data = data[12 + n + 4 :]
    return records


@pytest.mark.parametrize("compression, unpack", [
    (None, bytes), ("", bytes), ("NONE", bytes), ("GZIP", gzip.decompress), ("ZLIB", zlib.decompress),
])  # fmt: skip
def test_records_that_are_written_are_read_again(tmp_path, compression, unpack):
    records = [b"", b"one", bytes(range(256)) * 1000]
    with _core.RecordWriter(tmp_path / "a", compression) as writer:
        for record in records:
            writer.write(record)
        writer.flush()
    assert unframed(unpack((tmp_path / "a").read_bytes())) == records
    dataset = _core.ds_records(_core.ds_paths([tmp_path / "a"]), compression)
    assert elements(dataset) == records
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"late")
    writer.close()


def test_a_writer_says_what_it_cannot_write(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        _core.RecordWriter(tmp_path / "nowhere" / "a")
    with pytest.raises(ValueError, match="LZ4"):
        _core.RecordWriter(tmp_path / "a", "LZ4")
    with pytest.raises(TypeError):
        _core.RecordWriter(tmp_path / "a").write("text")
    writer = _core.RecordWriter("/dev/full")
    writer.write(bytes(100))
    with pytest.raises(errors.ResourceExhaustedError, match="/dev/full"):
        writer.close()


def varint(number):
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def example(**features):
    """tf.train.Example by hand: int64 lists and bytes."""
    entries = b""
    for name, found in features.items():
        if isinstance(found, bytes):
            feature = field(1, field(1, found))
        else:
            feature = field(3, field(1, b"".join(map(varint, found))))
        entries += field(1, field(1, name.encode()) + field(2, feature))
    return field(1, entries)


def test_examples_are_parsed(tmp_path):
    with _core.RecordWriter(tmp_path / "a") as writer:
        writer.write(example(pair=[1, 2], text=b"x", many=[]))
        writer.write(example(pair=[3, 300], many=[7, 8, 9]))
    features = [("pair", _types.int64, (2,), None), ("text", _types.string, (), "none"),
                ("many", _types.int64, None, None)]  # fmt: skip
    records = _core.ds_records(_core.ds_paths([str(tmp_path / "a")]))
    parsed = _core.ds_parse_examples(records, features, 1)
    assert elements(parsed) == [([1, 2], b"x", []), ([3, 300], b"none", [7, 8, 9])]
    strict = _core.ds_parse_examples(records, [("text", _types.string, (), None)], 1)
    one = _core.Iterator(strict)
    assert value(next(one)) == b"x"
    with pytest.raises(errors.InvalidArgumentError, match="text"):
        next(one)
