# SPDX-License-Identifier: Apache-2.0
"""tf.lookup's tables, and the fingerprints that they put unknown words into buckets by."""
import pytest

import plimsoll.tf as tf
from plimsoll.tf._ops.string_fingerprint import fingerprint64

Given = tf.lookup.KeyValueTensorInitializer
INT64 = {"value_dtype": tf.int64}


@pytest.fixture
def animals():
    return tf.lookup.StaticHashTable(Given(["cat", "dog"], [0, 1], **INT64), default_value=-1)


def test_values_are_found_in_any_shape_and_the_others_are_the_default(animals):
    assert animals.lookup(tf.constant([["dog"], ["cow"]])).numpy().tolist() == [[1], [-1]]
    assert animals["cat"].numpy() == 0 and animals["cat"].shape == []
    assert animals.lookup(tf.constant([], tf.string)).shape == [0]
    assert animals.size().numpy() == 2 and animals.lookup(["cat"]).dtype == tf.int64
    keys, values = animals.export()
    assert dict(zip(keys.numpy().tolist(), values.numpy().tolist())) == {b"cat": 0, b"dog": 1}


def test_tables_work_in_datasets_functions_and_graphs(animals):
    dataset = tf.data.Dataset.from_tensor_slices(["dog", "cow", "cat"]).map(animals.lookup)
    assert dataset.element_spec == tf.TensorSpec([], tf.int64)
    assert list(dataset.as_numpy_iterator()) == [1, -1, 0]
    assert tf.function(lambda x: animals[x] + 1)(tf.constant(["dog"])).numpy().tolist() == [2]
    with tf.Graph().as_default():
        word = tf.compat.v1.placeholder(tf.string, [None])
        found = animals.lookup(word)
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.tables_initializer())
            assert session.run(found, {word: ["dog", "x"]}).tolist() == [1, -1]


def test_keys_may_be_numbers_and_values_texts():
    table = tf.lookup.StaticHashTable(Given([1, 2], ["one", "two"], key_dtype=tf.int64), "?")
    assert table.lookup(tf.constant([2, 3], tf.int64)).numpy().tolist() == [b"two", b"?"]


def test_what_does_not_fit_is_refused(animals):
    with pytest.raises(TypeError, match="Keys must be dtype"):
        animals.lookup(tf.constant([1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="twice"):
        tf.lookup.StaticHashTable(Given(["a", "a"], [1, 2]), -1)
    with pytest.raises(ValueError, match="one length"):
        Given(["a", "b"], [1])
    with pytest.raises(TypeError, match="expected tf.int64"):
        tf.lookup.StaticVocabularyTable(Given(["a"], [1]), 1)
    with pytest.raises(NotImplementedError, match="tf.lookup.experimental"):
        tf.lookup.experimental


def test_tables_come_from_files(tmp_path):
    path = tmp_path / "trio.txt"
    path.write_text("emerson 10\nlake 20\npalmer 30\n")

    def table(value_index, **more):
        lines = tf.lookup.TextFileInitializer(
            str(path), tf.string, 0, tf.int64, value_index, delimiter=" ", **more
        )
        return tf.lookup.StaticHashTable(lines, -1)

    assert table(1).lookup(["palmer", "lake", "x"]).numpy().tolist() == [30, 20, -1]
    number = tf.lookup.TextFileIndex.LINE_NUMBER
    assert table(number, value_index_offset=5).lookup(["lake"]).numpy().tolist() == [6]
    assert table(number, vocab_size=2).size().numpy() == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="line 1 of .*trio.txt.* column 3"):
        table(3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="3 lines"):
        table(1, vocab_size=4)
    path.unlink()
    with pytest.raises(tf.errors.NotFoundError, match="trio.txt"):
        table(1)


def test_words_that_are_not_in_the_vocabulary_have_buckets_behind_it():
    table = tf.lookup.StaticVocabularyTable(Given(["a", "b"], [0, 1], **INT64), 3)
    assert table.lookup(["b", "Hello", "TensorFlow"]).numpy().tolist() == [1, 2, 4]
    assert table.size().numpy() == 5


@pytest.mark.parametrize(
    "text, number",
    [
        ("", 0x9AE16A3B2F90404F),
        ("abc", 0x24A5B3A074E7F369),
        ("abcdefg", 0x3C40C92B1CCB7355),
        ("0123456789'01234", 0x4283D4EF43627F64),
        ("0123456789=012345", 0x46A7416ED4861E3B),
        ("C is as portable as Stonehedge!!", 0xB944F8A16261E414),
        ("Discard medicine more than two years old.", 0xE8F89AB6DF9BDD25),
        ("The days of the digital watch are numbered.  -Tom Stoppard", 0x2A578B80BB82147C),
        ("For every action there is an equal and opposite government program.", 0x55182F8859ECA4CE),
        ("The fugacity of a constituent in a mixture of gases at a given temperature is "
         "proportional to its mole fraction.  Lewis-Randall Rule", 0x98EFF6958C5E91A),
    ],
)  # fmt: skip
def test_fingerprints_are_farmhashs(text, number):
    assert fingerprint64(text.encode()) == number
