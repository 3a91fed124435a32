# SPDX-License-Identifier: Apache-2.0
"""tf.data's readers of files, and what happens with files that are not as they should be."""
import gzip
import json
import threading
import weakref
import zlib

import numpy as np
import pytest
from PIL import Image

import plimsoll
import plimsoll.tf as tf

Dataset = tf.data.Dataset


def elements(dataset):
    return list(dataset.as_numpy_iterator())


def write_records(path, records, **options):
    with tf.io.TFRecordWriter(str(path), **options) as file:
        for record in records:
            file.write(record)
    return str(path)


def test_lines_of_several_files(tmp_path):
    (tmp_path / "0.txt").write_text("the cow\njumped over\nthe moon\n")
    (tmp_path / "1.txt").write_text("jack and jill\nwent up\nthe hill")
    names = [str(tmp_path / f"{number}.txt") for number in range(2)]
    expected = [b"the cow", b"jumped over", b"the moon", b"jack and jill", b"went up", b"the hill"]
    assert elements(tf.data.TextLineDataset(names)) == expected
    assert elements(tf.data.TextLineDataset(Dataset.from_tensor_slices(names))) == expected
    batches = Dataset.from_tensor_slices(names).batch(2)
    assert elements(tf.data.TextLineDataset(batches)) == expected
    assert tf.data.TextLineDataset(names).element_spec == tf.TensorSpec((), tf.string)
    in_turn = tf.data.TextLineDataset(names, num_parallel_reads=2)
    assert elements(in_turn)[:3] == [b"the cow", b"jack and jill", b"jumped over"]


def test_packed_lines(tmp_path):
    path = tmp_path / "packed.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    assert elements(tf.data.TextLineDataset(str(path), compression_type="GZIP")) == [b"one", b"two"]
    other = tmp_path / "packed.z"
    other.write_bytes(zlib.compress(b"one\ntwo\n"))
    assert elements(tf.data.TextLineDataset(str(other), compression_type="ZLIB")) == [b"one", b"two"]
    with pytest.raises(tf.errors.DataLossError, match="packed.z"):
        elements(tf.data.TextLineDataset(str(other), compression_type="GZIP"))
    with pytest.raises(ValueError, match="SNAPPY"):
        tf.data.TextLineDataset(str(other), compression_type="SNAPPY")


def test_lines_by_interleave(tmp_path):
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text(f"{number}a\n{number}b\n")
    files = Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)
    dataset = files.interleave(tf.data.TextLineDataset, cycle_length=2)
    assert elements(dataset) == [b"0a", b"1a", b"0b", b"1b", b"2a", b"3a", b"2b", b"3b"]
    assert dataset.element_spec == tf.TensorSpec((), tf.string)


def test_records(tmp_path):
    path = write_records(tmp_path / "a.tfrecord", [b"one", b"", b"three"])
    assert elements(tf.data.TFRecordDataset(path)) == [b"one", b"", b"three"]
    assert elements(tf.data.TFRecordDataset([path, path])) == [b"one", b"", b"three"] * 2
    many = tf.data.TFRecordDataset([path, path], num_parallel_reads=2)
    assert sorted(elements(many)) == sorted([b"one", b"", b"three"] * 2)


def test_records_of_examples_are_parsed(tmp_path):
    def example(number):
        return tf.train.Example(
            features=tf.train.Features(
                feature={
                    "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
                    "name": tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[str(number).encode()])
                    ),
                }
            )
        ).SerializeToString()

    path = write_records(tmp_path / "e.tfrecord", [example(number) for number in range(3)])
    features = {
        "id": tf.io.FixedLenFeature([], tf.int64),
        "name": tf.io.FixedLenFeature([], tf.string),
    }
    dataset = tf.data.TFRecordDataset(path).map(
        lambda record: tf.io.parse_single_example(record, features)
    )
    assert elements(dataset)[2] == {"id": 2, "name": b"2"}
    batched = tf.data.TFRecordDataset(path).batch(2).apply(
        tf.data.experimental.parse_example_dataset(features)
    )
    assert elements(batched)[0]["id"].tolist() == [0, 1]


def test_a_dataset_is_written_as_records(tmp_path):
    path = str(tmp_path / "w.tfrecord")
    tf.data.experimental.TFRecordWriter(path).write(Dataset.from_tensor_slices(["a", "b"]))
    assert elements(tf.data.TFRecordDataset(path)) == [b"a", b"b"]
    with pytest.raises(TypeError):
        tf.data.experimental.TFRecordWriter(path).write(Dataset.range(2))


def test_records_of_one_size(tmp_path):
    for number in range(2):
        (tmp_path / f"{number}.bin").write_bytes(b"HDR" + b"abcd" * 3 + b"FT")
    names = [str(tmp_path / f"{number}.bin") for number in range(2)]
    dataset = tf.data.FixedLengthRecordDataset(
        names, record_bytes=4, header_bytes=3, footer_bytes=2
    )
    assert elements(dataset) == [b"abcd"] * 6


@pytest.mark.parametrize("kind, pack", [("GZIP", gzip.compress), ("ZLIB", zlib.compress)])
def test_packed_records_of_one_size_and_packed_csv(tmp_path, kind, pack):
    path = tmp_path / "packed"
    path.write_bytes(pack(b"headaabbccft"))
    dataset = tf.data.FixedLengthRecordDataset(str(path), 2, 4, 2, compression_type=kind)
    assert elements(dataset) == [b"aa", b"bb", b"cc"]
    path.write_bytes(pack(b"1,2\n"))
    dataset = tf.data.experimental.CsvDataset(str(path), [tf.int32] * 2, compression_type=kind)
    assert elements(dataset) == [(1, 2)]


def test_records_of_one_size_that_begin_as_packed_ones_do(tmp_path):
    path = tmp_path / "plain"
    path.write_bytes(b"\x1f\x8babcd")
    assert elements(tf.data.FixedLengthRecordDataset(str(path), 2)) == [b"\x1f\x8b", b"ab", b"cd"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 bytes are left"):
        elements(tf.data.FixedLengthRecordDataset(str(path), 4))


def test_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("abcdefg,4.28E10,5.55E6,12\nhijklmn,-5.3E14,,2\n")
    dataset = tf.data.experimental.CsvDataset(
        str(path), [tf.float32, tf.constant([0.0], dtype=tf.float32), tf.int32],
        select_cols=[1, 2, 3],
    )
    assert dataset.element_spec == (
        tf.TensorSpec((), tf.float32),
        tf.TensorSpec((), tf.float32),
        tf.TensorSpec((), tf.int32),
    )
    assert [[float(x) for x in row] for row in elements(dataset)] == [
        [pytest.approx(4.28e10), pytest.approx(5.55e6), 12],
        [pytest.approx(-5.3e14), 0.0, 2],
    ]


def test_a_required_field_must_not_be_empty(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n,3\n")
    dataset = tf.data.experimental.CsvDataset(str(path), [tf.int32, 0], header=True)
    iterator = iter(dataset)
    assert [int(part) for part in next(iterator)] == [1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="a.csv"):
        next(iterator)


def test_names_of_files_are_strings():
    with pytest.raises(TypeError):
        tf.data.TFRecordDataset(Dataset.range(3))
    with pytest.raises(TypeError):
        tf.data.TextLineDataset([1, 2])


# ---- what is missing, empty or corrupt ----


def test_a_missing_file_is_not_found_by_name(tmp_path):
    for reader in (tf.data.TFRecordDataset, tf.data.TextLineDataset):
        with pytest.raises(tf.errors.NotFoundError, match="missing.bin"):
            elements(reader(str(tmp_path / "missing.bin")))


def test_a_corrupt_record_is_data_loss_by_name(tmp_path):
    path = write_records(tmp_path / "bad.tfrecord", [b"one", b"two", b"three"])
    content = bytearray((tmp_path / "bad.tfrecord").read_bytes())
    content[12 + 3 + 4 + 12] ^= 0xFF  # in the second record
    (tmp_path / "bad.tfrecord").write_bytes(content)
    iterator = iter(tf.data.TFRecordDataset(path))
    assert next(iterator).numpy() == b"one"
    with pytest.raises(tf.errors.DataLossError, match="bad.tfrecord"):
        next(iterator)
    assert next(iterator).numpy() == b"three"


def images(tmp_path):
    for number in range(4):
        Image.fromarray(np.full((4, 4, 3), number, np.uint8)).save(tmp_path / f"{number}.png")
    (tmp_path / "1.png").write_bytes(b"")
    (tmp_path / "2.png").write_bytes((tmp_path / "2.png").read_bytes()[:40])
    names = [str(tmp_path / f"{number}.png") for number in range(5)]

    def load(path):
        picture = tf.io.decode_png(tf.io.read_file(path), channels=3)
        return tf.reduce_max(picture)

    return Dataset.from_tensor_slices(names).map(load)


def test_bad_pictures_raise_by_name(tmp_path):
    iterator = iter(images(tmp_path))
    assert int(next(iterator)) == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="1.png"):
        next(iterator)
    with pytest.raises(tf.errors.InvalidArgumentError, match="2.png"):
        next(iterator)
    assert int(next(iterator)) == 3
    with pytest.raises(tf.errors.NotFoundError, match="4.png"):
        next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)


def test_bad_pictures_are_skipped_and_told_by_name(tmp_path):
    dataset = images(tmp_path).on_error("skip")
    assert elements(dataset) == [0, 3]
    assert [bad["path"][-5:] for bad in dataset.errors()] == ["1.png", "2.png", "4.png"]
    assert dataset.error_count() == (3, 5)
    assert "1.png" in str(plimsoll.errors(dataset))


def test_ignore_errors_is_the_same(tmp_path, capfd):
    dataset = images(tmp_path).ignore_errors(log_warning=True)
    assert elements(dataset) == [0, 3]
    assert len(dataset.errors()) == 3
    assert "3 of 5 elements were left out" in capfd.readouterr().err
    assert elements(images(tmp_path).apply(tf.data.experimental.ignore_errors())) == [0, 3]


def test_bad_pictures_are_quarantined(tmp_path):
    dataset = images(tmp_path).on_error("quarantine", quarantine=tmp_path / "bad.jsonl")
    assert elements(dataset) == [0, 3]
    lines = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [line["path"][-5:] for line in lines] == ["1.png", "2.png", "4.png"]


def test_too_many_bad_pictures_are_an_error(tmp_path):
    assert elements(images(tmp_path).on_error("skip", max_bad=3)) == [0, 3]
    with pytest.raises(tf.errors.DataLossError):
        elements(images(tmp_path).on_error("skip", max_bad=2))


def test_a_policy_is_one_of_three():
    with pytest.raises(ValueError, match="'fail', 'skip' or 'quarantine'"):
        Dataset.range(3).on_error("ignore")
    with pytest.raises(ValueError, match="path"):
        Dataset.range(3).on_error("quarantine")


def test_failures_pass_through_what_is_made_in_python():
    def odd_is_bad(x):
        if x % 2:
            raise ValueError("odd")
        return x

    numbers = Dataset.range(6).map(lambda x: tf.py_function(odd_is_bad, [x], tf.int64))
    numbers = numbers.map(lambda x: tf.ensure_shape(x, []))
    for dataset in (
        numbers.take_while(lambda x: x < 10),
        numbers.unique(),
        Dataset.choose_from_datasets([numbers], Dataset.from_tensors(np.int64(0)).repeat()),
    ):
        assert elements(dataset.on_error("skip")) == [0, 2, 4]
        iterator = iter(dataset)
        assert int(next(iterator)) == 0
        with pytest.raises(tf.errors.InvalidArgumentError, match="odd"):
            next(iterator)
        assert int(next(iterator)) == 2


def test_a_watchdog_names_what_hangs():
    hang = threading.Event()

    def wait(x):
        if x == 2:
            hang.wait(20)
        return x

    dataset = Dataset.range(5).map(lambda x: tf.py_function(wait, [x], tf.int64)).watchdog(0.3)
    iterator = iter(dataset)
    assert [int(next(iterator)), int(next(iterator))] == [0, 1]
    with pytest.raises(tf.errors.DeadlineExceededError, match="no progress"):
        next(iterator)
    hang.set()
    with pytest.raises(ValueError):
        Dataset.range(3).watchdog(0)


# ---- what it will cost ----


def test_a_plan_says_what_fits():
    row = Dataset.from_tensors(tf.zeros([1024, 1024])).repeat(8)
    small = row.batch(4).prefetch(2)._explain(json=True)
    assert small["element_bytes"] == 4 * 4 << 20
    assert small["fits"] and small["batch_size"] == 4
    assert small["needed_bytes"] == 3 * (16 << 20)
    large = row.batch(1024, drop_remainder=True)._explain(json=True)
    assert not large["fits"]
    assert 0 < large["largest_batch"] < 1024
    assert "does not fit" in row.batch(1024, drop_remainder=True)._explain()
    open_ended = row.repeat().batch(1024).prefetch(1)._explain(json=True)
    assert open_ended["element_bytes"] == 4 << 30 and not open_ended["fits"]


def test_the_largest_batch_leaves_room_for_what_is_held_before_it():
    rows = Dataset.range(1000).map(lambda x: tf.zeros([1024, 256]))  # 1 MiB each
    plan = rows.shuffle(100).batch(10).prefetch(1)._explain(json=True)
    assert plan["needed_bytes"] == (100 + 2 * 10) << 20
    assert plan["largest_batch"] == (plan["budget_bytes"] - (100 << 20)) // (2 << 20)
    tight = rows.shuffle(10**6).batch(10)._explain(json=True)
    assert not tight["fits"] and tight["largest_batch"] == 0
    assert "not even batches of one" in rows.shuffle(10**6).batch(10)._explain()


def test_a_plan_measures_what_specs_leave_open():
    dataset = Dataset.from_generator(
        lambda: iter([[1, 2, 3]]), output_signature=tf.TensorSpec((None,), tf.int64)
    )
    plan = dataset._explain(json=True)
    assert plan["element_bytes"] == 24 and plan["stages"][-1]["is_measured"]
    windows = dataset.window(2)._explain(json=True)
    assert windows["element_bytes"] == 0  # its elements are counted where they were made
    doubled = dataset.map(lambda x: tf.concat([x, x], 0)).take(3)._explain(json=True)
    assert doubled["element_bytes"] == 48 and doubled["stages"][-1]["is_measured"]


def test_a_shuffle_of_places_is_cheap_and_one_of_rows_is_not():
    rows = Dataset.from_tensor_slices(tf.zeros([100, 1000]))
    assert rows.shuffle(100)._explain(json=True)["stages"][-1]["held_bytes"] == 400
    mapped = rows.map(lambda x: x + 1)
    assert mapped.shuffle(100)._explain(json=True)["stages"][-1]["held_bytes"] == 400_000


def test_the_last_pass_is_explained():
    dataset = Dataset.range(10).map(lambda x: x, num_parallel_calls=2, name="same")
    assert dataset._explain(json=True)["last_pass"] is None
    assert len(list(dataset)) == 10
    assert "same" in dataset._explain()
    assert "same" in str(dataset._explain(json=True)["last_pass"])


def test_what_does_not_fit_the_budget_is_refused_by_name():
    huge = Dataset.from_tensors(tf.zeros([1 << 20])).repeat(1000).batch(1000)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="batch"):
        next(iter(huge))


def test_names_may_be_paths(tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    path = tmp_path / "a.txt"
    for names in (path, [path], (path, str(path)), tf.constant([str(path)]), np.array(str(path))):
        assert set(elements(tf.data.TextLineDataset(names))) == {b"a"}


def reciprocals():
    values = Dataset.from_tensor_slices([1.0, 0.0, 2.0])
    return values.map(lambda x: tf.debugging.check_numerics(1 / x, "no number"))


def test_what_was_left_out_does_not_hold_the_pass():
    """What the consumer's own thread called has the consumer's frames behind it, and they the iterator."""

    def go_through():
        iterator = iter(reciprocals().on_error("skip"))
        assert len(list(iterator)) == 2
        return weakref.ref(iterator)

    assert go_through()() is None


def test_what_is_left_out_is_told_by_whatever_the_pass_was_made_of(capfd):
    numbers = reciprocals().ignore_errors(log_warning=True)
    batches = numbers.batch(2).prefetch(1)
    assert [batch.tolist() for batch in elements(batches)] == [[1.0, 0.5]]
    assert numbers.errors() == batches.errors() and len(numbers.errors()) == 1
    assert numbers.error_count() == (1, 3)
    assert numbers.errors()[0]["message"].startswith("map 'map': element 1, no number")
    assert "1 of 3 elements were left out" in capfd.readouterr().err


@pytest.mark.parametrize(
    "above",
    [
        lambda ds: ds.unique(),
        lambda ds: ds.take_while(lambda x: True).unique(),
        lambda ds: ds.group_by_window(lambda x: 0, lambda key, window: window.batch(2), 2),
        lambda ds: ds.map(lambda x: tf.fill([x], x)).bucket_by_sequence_length(
            lambda x: tf.shape(x)[0], [100], [2, 2]
        ),
        lambda ds: Dataset.sample_from_datasets([ds, ds]),
    ],
)
def test_what_is_left_out_below_python_is_told(above):
    numbers = reciprocals().on_error("skip").map(lambda x: tf.cast(x * 10, tf.int64))
    dataset = above(numbers).batch(1).prefetch(1)
    for _ in range(2):  # of the last pass alone
        list(dataset)
        n_bad = 2 if len(dataset._sources[0]._sources[0]._sources) == 2 else 1
        assert len(dataset.errors()) == n_bad and dataset.error_count()[0] == n_bad
        assert dataset.errors()[0]["index"] == 1
