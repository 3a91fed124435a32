# SPDX-License-Identifier: Apache-2.0
"""Iterators over datasets, eager and in sessions."""
import gc
import weakref

import numpy as np
import pytest

import plimsoll.tf as tf

Dataset = tf.data.Dataset
v1 = tf.compat.v1


def test_an_iterator_ends_as_it_is_asked():
    iterator = iter(Dataset.range(2))
    assert int(next(iterator)) == 0
    assert int(iterator.get_next()) == 1
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()
    with pytest.raises(StopIteration):
        next(iterator)
    assert isinstance(iterator, tf.data.Iterator)
    assert iterator.element_spec == tf.TensorSpec((), tf.int64)


def test_elements_are_tensors():
    for element in Dataset.from_tensor_slices({"a": [1.5]}):
        assert isinstance(element["a"], tf.Tensor) and element["a"].dtype == tf.float32


def test_several_passes_do_not_disturb_each_other():
    dataset = Dataset.range(3)
    one, other = iter(dataset), iter(dataset)
    assert [int(next(one)), int(next(one)), int(next(other))] == [0, 1, 0]


def test_an_optional_is_said_not_to_be_there():
    with pytest.raises(NotImplementedError, match="get_next_as_optional"):
        iter(Dataset.range(1)).get_next_as_optional()


def test_numpy_iterators_give_arrays():
    dataset = Dataset.from_tensor_slices({"a": ([1, 2], [3, 4]), "b": [5, 6]})
    assert list(dataset.as_numpy_iterator()) == [{"a": (1, 3), "b": 5}, {"a": (2, 4), "b": 6}]
    (window,) = Dataset.range(2).window(2).as_numpy_iterator()
    assert list(window) == [0, 1]


def test_a_pass_goes_on_where_it_was_saved(tmp_path):
    dataset = Dataset.range(20).shuffle(20, seed=3).batch(3)
    iterator = iter(dataset)
    for _ in range(2):
        next(iterator)
    iterator.save(str(tmp_path / "place"))
    expected = [batch.numpy().tolist() for batch in iterator]
    again = iter(dataset)
    again.restore(str(tmp_path / "place"))
    assert [batch.numpy().tolist() for batch in again] == expected


def test_a_pass_without_seeds_goes_on_in_another_process(tmp_path, run_python):
    for number in range(6):
        (tmp_path / f"{number}.txt").write_text("")
    text = '''
import sys, plimsoll.tf as tf
files = tf.data.Dataset.list_files(r"{folder}/*.txt").shuffle(3).repeat(3).batch(2)
iterator = iter(files)
if {saves}:
    next(iterator)
    iterator.save(r"{folder}/place")
else:
    iterator.restore(r"{folder}/place")
print([batch.numpy().tolist() for batch in iterator])
'''
    rest = run_python(text.format(folder=tmp_path, saves=True))
    assert rest.count("txt") == 16
    assert run_python(text.format(folder=tmp_path, saves=False)) == rest


def test_datasets_are_collected_with_what_they_hang_on():
    class Held:
        pass

    held = Held()
    gone = weakref.ref(held)

    def add(x, held=held):
        return x + 1

    dataset = Dataset.range(3).map(add)
    assert len(list(dataset)) == 3
    del dataset, add, held
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("how", ["one shot", "initializable", "structure", "in a branch"])
def test_graphs_with_iterators_are_collected(how):
    with tf.Graph().as_default() as graph, v1.Session() as session:
        dataset = Dataset.range(3)
        if how == "one shot":
            iterator = v1.data.make_one_shot_iterator(dataset)
        elif how == "structure":
            iterator = v1.data.Iterator.from_structure(tf.int64, [])
            session.run(iterator.make_initializer(dataset))
        else:
            iterator = v1.data.make_initializable_iterator(dataset)
            session.run(iterator.initializer)
        flag = v1.placeholder(tf.bool, [])
        element = iterator.get_next() if how != "in a branch" else tf.cond(
            flag, iterator.get_next, lambda: tf.constant(0, tf.int64))
        assert session.run(element, {flag: True}) == 0
    gone = weakref.ref(graph)
    del graph, session, dataset, iterator, element, flag
    gc.collect()
    assert gone() is None


def test_len_and_iteration_are_eager():
    with tf.Graph().as_default():
        with pytest.raises(RuntimeError):
            iter(Dataset.range(3))
        with pytest.raises(RuntimeError):
            len(Dataset.range(3))


# ---- in sessions ----


def test_a_one_shot_iterator_gives_an_element_a_run():
    with tf.Graph().as_default():
        element = v1.data.make_one_shot_iterator(Dataset.range(3)).get_next()
        with v1.Session() as session:
            assert [session.run(element) for _ in range(3)] == [0, 1, 2]
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(element)


def test_a_run_behind_a_bad_element_gives_the_next():
    with tf.Graph().as_default():
        dataset = Dataset.from_tensor_slices(np.array([1.0, np.nan, 3.0], np.float32))
        dataset = dataset.map(lambda x: tf.debugging.check_numerics(x, "bad"))
        element = v1.data.make_one_shot_iterator(dataset).get_next()
        with v1.Session() as session:
            assert session.run(element) == 1.0
            with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
                session.run(element)
            assert session.run(element) == 3.0


def test_components_of_one_run_are_of_one_element():
    with tf.Graph().as_default():
        dataset = Dataset.from_tensor_slices({"a": [1, 2], "b": [10, 20]})
        element = v1.data.make_one_shot_iterator(dataset).get_next()
        doubled = element["a"] * 2
        with v1.Session() as session:
            assert session.run([element, doubled]) == [{"a": 1, "b": 10}, 2]
            assert session.run([element["b"], doubled]) == [20, 4]


def test_an_initializable_iterator_begins_anew():
    with tf.Graph().as_default():
        iterator = v1.data.make_initializable_iterator(Dataset.range(2))
        element = iterator.get_next()
        with v1.Session() as session:
            with pytest.raises(tf.errors.FailedPreconditionError, match="initialized"):
                session.run(element)
            for _ in range(2):
                assert session.run(iterator.initializer) is None
                assert [session.run(element) for _ in range(2)] == [0, 1]


def test_placeholders_are_fed_when_it_is_initialized():
    with tf.Graph().as_default():
        features = v1.placeholder(tf.float32, [None, 2])
        labels = v1.placeholder(tf.int64, [None])
        dataset = Dataset.from_tensor_slices((features, labels)).map(lambda x, y: (x * 2, y))
        iterator = v1.data.make_initializable_iterator(dataset)
        x, y = iterator.get_next()
        with v1.Session() as session:
            for n in (1, 2):
                feeds = {features: np.ones((n, 2)), labels: np.arange(n)}
                session.run(iterator.initializer, feed_dict=feeds)
                found = [session.run([x, y]) for _ in range(n)]
                assert [row.tolist() for row, _ in found] == [[2.0, 2.0]] * n
                assert [int(label) for _, label in found] == list(range(n))
                with pytest.raises(tf.errors.OutOfRangeError):
                    session.run(x)


def test_an_initializable_iterator_is_of_a_graph():
    with pytest.raises(RuntimeError, match="eager"):
        v1.data.make_initializable_iterator(Dataset.range(2))
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="initializer"):
            v1.data.make_one_shot_iterator(Dataset.range(2)).initializer
        fed = Dataset.from_tensor_slices(v1.placeholder(tf.int64, [None]))
        with pytest.raises(ValueError, match="placeholders"):
            v1.data.make_one_shot_iterator(fed)
        with pytest.raises(NotImplementedError):
            v1.data.make_one_shot_iterator(Dataset.range(4).window(2)).get_next()


def test_one_iterator_goes_through_several_datasets():
    with tf.Graph().as_default():
        train = Dataset.from_tensor_slices({"x": [1, 2], "y": [1.0, 2.0]})
        check = Dataset.from_tensor_slices({"y": [5.0], "x": [6]})
        iterator = v1.data.Iterator.from_structure({"x": tf.int32, "y": tf.float32}, {"x": [], "y": []})
        to_train, to_check = iterator.make_initializer(train), iterator.make_initializer(check)
        element = iterator.get_next()
        with v1.Session() as session:
            for _ in range(2):
                session.run(to_train)
                assert [session.run(element)["x"] for _ in range(2)] == [1, 2]
                session.run(to_check)
                assert session.run(element) == {"x": 6, "y": 5.0}
                with pytest.raises(tf.errors.OutOfRangeError):
                    session.run(element)
        for wrong in (Dataset.range(3), Dataset.from_tensor_slices({"x": [1.0], "y": [1.0]})):
            with pytest.raises(TypeError, match="Expected output"):
                iterator.make_initializer(wrong)
        with pytest.raises(ValueError, match="initializer"):
            iterator.initializer


def test_the_old_names_of_specs():
    dataset = Dataset.range(4).batch(2)
    assert v1.data.get_output_types(dataset) == tf.int64
    assert v1.data.get_output_shapes(dataset).as_list() == [None]
    assert v1.data.get_output_classes(dataset) is tf.Tensor
    assert int(v1.data.make_one_shot_iterator(Dataset.range(2)).get_next()) == 0
