# SPDX-License-Identifier: Apache-2.0
"""tf.data.experimental.make_csv_dataset: names, dtypes and batches of CSV files."""
import gzip

import pytest

import plimsoll.tf as tf

make = tf.data.experimental.make_csv_dataset


@pytest.fixture
def ships(tmp_path):
    (tmp_path / "0.csv").write_text('name,length,crew,tons\n"Samuel, S.",12.5,3,5000000000\nAda,9,2,7\n')
    (tmp_path / "1.csv").write_text("name,length,crew,tons\nEve,,4,1e40\n")
    return str(tmp_path / "*.csv")


def only(dataset):
    (element,) = dataset.as_numpy_iterator()
    return element


def test_columns_have_the_names_and_dtypes_of_the_files(ships):
    dataset = make(ships, 3, num_epochs=1, shuffle=False)
    columns = only(dataset)
    assert list(columns) == ["name", "length", "crew", "tons"]
    assert columns["name"].tolist() == [b"Samuel, S.", b"Ada", b"Eve"]
    assert columns["length"].tolist() == [12.5, 9.0, 0.0]
    assert columns["crew"].tolist() == [3, 2, 4]
    dtypes = {name: spec.dtype for name, spec in dataset.element_spec.items()}
    assert dtypes == {
        "name": tf.string,
        "length": tf.float32,
        "crew": tf.int32,
        "tons": tf.float64,
    }


def test_an_int64_is_found_by_its_size(ships):
    dataset = make(ships.replace("*", "0"), 2, num_epochs=1, shuffle=False)
    assert dataset.element_spec["tons"].dtype == tf.int64


def test_only_the_first_rows_are_looked_at(ships):
    dataset = make(ships, 2, num_epochs=1, num_rows_for_inference=2)
    assert dataset.element_spec["tons"].dtype == tf.int64


def test_a_label_is_apart(ships):
    features, label = only(make(ships, 3, label_name="crew", num_epochs=1, shuffle=False))
    assert label.tolist() == [3, 2, 4] and list(features) == ["name", "length", "tons"]
    with pytest.raises(ValueError, match="label_name"):
        make(ships, 3, label_name="captain")


def test_columns_are_selected_by_name_or_place(ships):
    for selected in (["crew", "name"], [0, 2]):
        columns = only(make(ships, 3, select_columns=selected, num_epochs=1, shuffle=False))
        assert list(columns) == ["name", "crew"] and columns["crew"].tolist() == [3, 2, 4]
    with pytest.raises(ValueError, match="captain"):
        make(ships, 3, select_columns=["captain"])
    with pytest.raises(ValueError, match="same length"):
        make(ships, 3, select_columns=[0, 1], column_defaults=[tf.string])


def test_names_and_defaults_may_be_said(tmp_path):
    (tmp_path / "bare.csv").write_text("1;x\n;y\n")
    dataset = make(
        str(tmp_path / "bare.csv"),
        2,
        column_names=["a", "b"],
        column_defaults=[-1, tf.string],
        header=False,
        field_delim=";",
        num_epochs=1,
        shuffle=False,
    )
    columns = only(dataset)
    assert columns["a"].tolist() == [1, -1] and columns["b"].tolist() == [b"x", b"y"]
    with pytest.raises(ValueError, match="header"):
        make(str(tmp_path / "bare.csv"), 2, header=False)
    with pytest.raises(ValueError, match="duplicate"):
        make(str(tmp_path / "bare.csv"), 2, column_names=["a", "a"])


def test_without_epochs_it_has_no_end_and_whole_batches(ships):
    dataset = make(ships, 2, shuffle_seed=1)
    assert [len(batch["crew"]) for batch in dataset.take(5).as_numpy_iterator()] == [2] * 5
    assert dataset.element_spec["crew"].shape == [2]
    twice = make(ships, 10, num_epochs=2)
    assert sorted(only(twice)["crew"].tolist()) == [2, 2, 3, 3, 4, 4]


def test_packed_files_are_unpacked(tmp_path):
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(b"a\n1\n2\n"))
    dataset = make(
        str(tmp_path / "p.csv.gz"), 2, num_epochs=1, shuffle=False, compression_type="GZIP"
    )
    assert only(dataset)["a"].tolist() == [1, 2]


def test_files_that_do_not_go_together_are_refused(ships, tmp_path):
    (tmp_path / "2.csv").write_text("name,length,crew\nEve,1,2\n")
    with pytest.raises(ValueError, match="2.csv"):
        make(ships, 2)
    with pytest.raises(ValueError, match="No files"):
        make(str(tmp_path / "*.tsv"), 2)


def test_bad_rows_are_left_out_if_that_is_said(tmp_path):
    (tmp_path / "bad.csv").write_text("a,b\n1,2\nx,3\n4,5\n")
    path = str(tmp_path / "bad.csv")
    good = make(
        path, 3, column_defaults=[0, 0], num_epochs=1, shuffle=False, ignore_errors=True
    )
    assert only(good)["a"].tolist() == [1, 4]
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad.csv"):
        list(make(path, 3, column_defaults=[0, 0], num_epochs=1, shuffle=False))
