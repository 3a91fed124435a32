# SPDX-License-Identifier: Apache-2.0
"""tf.data's sources, after TensorFlow's documentation of each: elements, dtypes, shapes, errors."""
import collections

import numpy as np
import pytest

import plimsoll.tf as tf

Dataset = tf.data.Dataset
Point = collections.namedtuple("Point", ["x", "y"])


def elements(dataset):
    return list(dataset.as_numpy_iterator())


def test_slices_of_a_list_are_scalars():
    dataset = Dataset.from_tensor_slices([1, 2, 3])
    assert elements(dataset) == [1, 2, 3]
    assert dataset.element_spec == tf.TensorSpec(shape=(), dtype=tf.int32)


def test_slices_of_a_matrix_are_rows():
    dataset = Dataset.from_tensor_slices([[1, 2], [3, 4]])
    assert [row.tolist() for row in elements(dataset)] == [[1, 2], [3, 4]]
    assert dataset.element_spec == tf.TensorSpec(shape=(2,), dtype=tf.int32)


def test_slices_of_a_tuple_are_tuples():
    assert elements(Dataset.from_tensor_slices(([1, 2], [3, 4], [5, 6]))) == [(1, 3, 5), (2, 4, 6)]


def test_slices_of_a_dict_are_dicts_in_its_order():
    dataset = Dataset.from_tensor_slices({"b": [3, 4], "a": [1, 2]})
    assert elements(dataset) == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    assert list(next(iter(dataset))) == ["b", "a"]
    assert list(dataset.element_spec) == ["b", "a"]


def test_slices_of_a_named_tuple_are_named_tuples():
    (first, _) = elements(Dataset.from_tensor_slices(Point([1, 2], [3.0, 4.0])))
    assert type(first) is Point and first == Point(1, 3.0)


def test_structures_are_nested_as_they_were_given():
    features = (np.array([[1, 3], [2, 3]]), ({"c": np.array([["A"], ["B"]])}, np.array([1.0, 2.0])))
    dataset = Dataset.from_tensor_slices(features)
    assert dataset.element_spec == (
        tf.TensorSpec((2,), tf.int64),
        ({"c": tf.TensorSpec((1,), tf.string)}, tf.TensorSpec((), tf.float64)),
    )
    first = elements(dataset)[0]
    assert first[0].tolist() == [1, 3]
    assert first[1][0]["c"].tolist() == [b"A"]
    assert first[1][1] == 1.0


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float16", "float64", "bool"])
def test_slices_of_an_array_have_its_dtype(dtype):
    array = np.array([0, 1, 1], dtype)
    dataset = Dataset.from_tensor_slices(array)
    assert dataset.element_spec.dtype == dtype
    assert [value.dtype for value in dataset.as_numpy_iterator()] == [dtype] * 3


def test_slices_need_an_axis():
    with pytest.raises(ValueError, match="rank >= 1"):
        Dataset.from_tensor_slices(3)


def test_slices_are_equally_many():
    with pytest.raises(ValueError, match="Dimensions 2 and 3 are not compatible"):
        Dataset.from_tensor_slices(([1, 2], [1, 2, 3]))


def test_tensors_are_one_element():
    assert elements(Dataset.from_tensors([1, 2, 3]))[0].tolist() == [1, 2, 3]
    ((numbers, text),) = elements(Dataset.from_tensors(([1, 2, 3], "A")))
    assert (numbers.tolist(), text) == ([1, 2, 3], b"A")
    assert len(Dataset.from_tensors(0)) == 1


def test_datasets_are_components():
    dataset = Dataset.from_tensors((1, Dataset.range(3)))
    ((number, inner),) = dataset
    assert int(number) == 1 and elements(inner) == [0, 1, 2]
    assert dataset.element_spec[1] == tf.data.DatasetSpec(tf.TensorSpec((), tf.int64))
    assert elements(dataset.flat_map(lambda n, inner: inner)) == [0, 1, 2]
    with pytest.raises(NotImplementedError):
        Dataset.from_tensor_slices(([1], Dataset.range(1)))


def test_no_components_are_refused():
    with pytest.raises(ValueError):
        Dataset.from_tensors(())


@pytest.mark.parametrize(
    "args, expected",
    [
        ((5,), [0, 1, 2, 3, 4]),
        ((2, 5), [2, 3, 4]),
        ((1, 5, 2), [1, 3]),
        ((1, 5, -2), []),
        ((5, 1), []),
        ((5, 1, -2), [5, 3]),
    ],
)
def test_ranges_are_pythons(args, expected):
    assert elements(Dataset.range(*args)) == expected
    assert Dataset.range(*args).element_spec == tf.TensorSpec((), tf.int64)


def test_a_range_has_the_dtype_that_is_asked_for():
    assert elements(Dataset.range(2, 5, output_type=tf.int32)) == [2, 3, 4]
    dataset = Dataset.range(1, 5, 2, output_type=tf.float32)
    assert elements(dataset) == [1.0, 3.0]
    assert dataset.element_spec.dtype == tf.float32
    assert len(dataset) == 2


def test_a_range_without_an_end_is_refused():
    with pytest.raises(ValueError):
        Dataset.range()


# ---- generators ----


def count(stop):
    for number in range(stop):
        yield number


def test_a_generator_yields_what_its_signature_says():
    def gen():
        yield 37, [1, 2, 3]
        yield 44, [4]

    dataset = Dataset.from_generator(
        gen,
        output_signature=(
            tf.TensorSpec(shape=(), dtype=tf.int32),
            tf.TensorSpec(shape=(None,), dtype=tf.float32),
        ),
    )
    found = elements(dataset)
    assert [number for number, _ in found] == [37, 44]
    assert [row.tolist() for _, row in found] == [[1.0, 2.0, 3.0], [4.0]]
    assert found[0][1].dtype == np.float32
    assert dataset.element_spec[1] == tf.TensorSpec((None,), tf.float32)
    assert int(dataset.cardinality()) == tf.data.UNKNOWN_CARDINALITY


def test_a_generator_begins_anew_in_each_pass():
    dataset = Dataset.from_generator(lambda: count(2), output_signature=tf.TensorSpec((), tf.int64))
    assert elements(dataset) == elements(dataset) == [0, 1]
    assert elements(dataset.repeat(2)) == [0, 1, 0, 1]


def test_a_generator_gets_its_arguments_as_arrays():
    seen = []

    def gen(stop, names):
        seen.append((type(stop), names.tolist()))
        yield from range(stop)

    dataset = Dataset.from_generator(
        gen, args=(3, ["a", "b"]), output_signature=tf.TensorSpec((), tf.int64)
    )
    assert elements(dataset) == [0, 1, 2]
    assert seen == [(np.int32, [b"a", b"b"])]


def test_output_types_and_shapes_still_work():
    dataset = Dataset.from_generator(
        lambda: iter([(1, [1]), (2, [1, 1])]), (tf.int64, tf.int64), (tf.TensorShape([]), [None])
    )
    assert dataset.element_spec == (tf.TensorSpec((), tf.int64), tf.TensorSpec((None,), tf.int64))
    assert elements(dataset)[1][1].tolist() == [1, 1]
    unknown = Dataset.from_generator(lambda: iter([1]), tf.int64)
    assert unknown.element_spec == tf.TensorSpec(None, tf.int64)
    assert elements(unknown) == [1]


def test_a_tuple_in_the_place_of_a_component_is_a_tensor():
    dataset = Dataset.from_generator(
        lambda: iter([(1, (2, 3))]),
        output_signature=(tf.TensorSpec((), tf.int64), tf.TensorSpec((2,), tf.int64)),
    )
    ((one, pair),) = elements(dataset)
    assert (one, pair.tolist()) == (1, [2, 3])


def test_types_and_shapes_may_be_dicts():
    dataset = Dataset.from_generator(
        lambda: iter([{"a": 1, "b": [2]}]), {"a": tf.int32, "b": tf.int64}, {"b": [None], "a": []}
    )
    assert dataset.element_spec == {
        "a": tf.TensorSpec((), tf.int32),
        "b": tf.TensorSpec((None,), tf.int64),
    }
    for shapes in ({"a": []}, {"a": [], "c": []}):
        with pytest.raises(TypeError, match="keys"):
            Dataset.from_generator(list, {"a": tf.int32, "b": tf.int64}, shapes)
    with pytest.raises(TypeError, match="2 shapes"):
        Dataset.from_generator(list, (tf.int32, tf.int64), ([],))


def test_dicts_are_yielded_in_any_order():
    signature = {"a": tf.TensorSpec((), tf.int32), "b": tf.TensorSpec((), tf.string)}
    dataset = Dataset.from_generator(lambda: iter([{"b": "x", "a": 1}]), output_signature=signature)
    assert elements(dataset) == [{"a": 1, "b": b"x"}]


@pytest.mark.parametrize(
    "yielded, signature, message",
    [
        ("x", tf.TensorSpec((), tf.int64), "could not be converted to the expected type"),
        ([1, 2], tf.TensorSpec((3,), tf.int64), r"shape \(2,\) where an element of shape \(3,\)"),
        (1, (tf.TensorSpec((), tf.int64),) * 2, "did not match the expected structure"),
    ],
)
def test_what_a_generator_yields_is_checked(yielded, signature, message):
    dataset = Dataset.from_generator(lambda: iter([yielded]), output_signature=signature)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        elements(dataset)


def test_a_generators_exception_is_the_cause():
    def gen():
        yield 1
        raise KeyError("lost")

    iterator = iter(Dataset.from_generator(gen, output_signature=tf.TensorSpec((), tf.int64)))
    assert int(next(iterator)) == 1
    with pytest.raises(tf.errors.UnknownError, match="KeyError.*lost") as caught:
        next(iterator)
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.__cause__.__traceback__.tb_frame is not None


class Retold:
    """Raises what a generator caught and handed on, and goes on behind it."""

    def __init__(self):
        self._steps = self._make()

    def _make(self):
        for number in range(3):
            try:
                if number == 1:
                    raise ValueError("one")
                yield number
            except ValueError as error:
                yield error

    def __iter__(self):
        return self

    def __next__(self):
        step = next(self._steps)
        if isinstance(step, ValueError):
            raise step
        return step


def test_a_generator_that_caught_an_exception_goes_on():
    dataset = Dataset.from_generator(Retold, output_signature=tf.TensorSpec((), tf.int64))
    assert elements(dataset.on_error("skip")) == [0, 2]


def test_a_generator_is_a_callable_with_a_signature():
    with pytest.raises(TypeError, match="`generator` must be a Python callable"):
        Dataset.from_generator([1, 2], output_signature=tf.TensorSpec((), tf.int64))
    with pytest.raises(TypeError, match="must be specified"):
        Dataset.from_generator(lambda: iter([1]))
    with pytest.raises(TypeError, match="can not be used together"):
        Dataset.from_generator(
            lambda: iter([1]), tf.int64, output_signature=tf.TensorSpec((), tf.int64)
        )


# ---- zip, files, random ----


def test_zip_keeps_the_structure():
    a, b = Dataset.range(1, 4), Dataset.range(4, 7)
    assert elements(Dataset.zip(a, b)) == [(1, 4), (2, 5), (3, 6)]
    assert elements(Dataset.zip((a, b))) == [(1, 4), (2, 5), (3, 6)]
    assert elements(Dataset.zip({"x": a, "y": (b, a)}))[0] == {"x": 1, "y": (4, 1)}
    c = Dataset.range(7, 13).batch(2)
    first = elements(Dataset.zip((a, b, c)))[0]
    assert first[:2] == (1, 4) and first[2].tolist() == [7, 8]
    assert len(Dataset.zip(a, Dataset.range(13, 15))) == 2


def test_zip_of_a_list_is_refused():
    with pytest.raises(TypeError, match="Python `list` is not supported"):
        Dataset.zip([Dataset.range(1), Dataset.range(2)])
    with pytest.raises(TypeError):
        Dataset.zip((Dataset.range(1), 3))
    with pytest.raises(TypeError):
        Dataset.zip()


def test_files_are_listed(tmp_path):
    for name in ("a.txt", "b.txt", "c.py"):
        (tmp_path / name).write_text(name)
    expected = [str(tmp_path / name).encode() for name in ("a.txt", "b.txt")]
    assert elements(Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)) == expected
    shuffled = Dataset.list_files(str(tmp_path / "*.txt"))
    assert sorted(elements(shuffled)) == expected
    both = Dataset.list_files([str(tmp_path / "a*"), str(tmp_path / "c*")], shuffle=False)
    assert [name[-4:] for name in elements(both)] == [b".txt", b"c.py"[-4:]]
    assert len(both) == 2


def test_a_seed_lists_files_in_the_same_order(tmp_path):
    for number in range(20):
        (tmp_path / f"{number:02}.txt").write_text("")
    pattern = str(tmp_path / "*.txt")
    assert elements(Dataset.list_files(pattern, seed=3)) == elements(
        Dataset.list_files(pattern, seed=3)
    )
    assert elements(Dataset.list_files(pattern, seed=3)) != sorted(
        elements(Dataset.list_files(pattern, seed=3))
    )


def test_no_file_is_an_invalid_argument(tmp_path):
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched pattern"):
        Dataset.list_files(str(tmp_path / "*.txt"))


def test_random_numbers_are_the_same_in_each_pass():
    dataset = Dataset.random(seed=4).take(10)
    assert elements(dataset) == elements(dataset)
    assert len(set(elements(dataset))) > 5
    assert int(Dataset.random().cardinality()) == tf.data.INFINITE_CARDINALITY
    anew = Dataset.random(seed=4, rerandomize_each_iteration=True).take(10)
    assert elements(anew) != elements(anew)


def test_a_counter_has_no_end():
    assert elements(Dataset.counter().take(3)) == [0, 1, 2]
    assert elements(Dataset.counter(start=10, step=-1).take(3)) == [10, 9, 8]
    assert Dataset.counter(dtype=tf.int32).element_spec.dtype == tf.int32
    assert int(Dataset.counter().cardinality()) == tf.data.INFINITE_CARDINALITY


def test_users_make_datasets_by_a_class_of_their_own():
    class Counted(Dataset):
        def __new__(cls, stop):
            return Dataset.from_generator(
                count, output_signature=tf.TensorSpec((), tf.int64), args=(stop,)
            )

    dataset = Counted(2)
    assert isinstance(dataset, Dataset) and elements(dataset) == [0, 1]


def test_nothing_is_an_empty_dataset():
    assert elements(Dataset.from_tensor_slices([])) == []
    assert elements(tf.data.TextLineDataset([])) == []
    assert elements(tf.data.TFRecordDataset([])) == []


def test_a_name_is_what_messages_call_it(tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match="'mine'"):
        elements(tf.data.TextLineDataset(str(tmp_path / "missing"), name="mine"))
    dataset = Dataset.range(3)
    dataset.prefetch(0, name="other")
    assert dataset._core.name != "other"


def test_a_generator_may_use_its_array_again():
    def counting():
        array = np.zeros((1 << 9, 1 << 10), np.float32)
        for i in range(4):
            array[:] = i
            yield array

    dataset = Dataset.from_generator(counting, output_types=tf.float32).prefetch(4)
    assert [float(one[0, 0]) for one in list(dataset)] == [0, 1, 2, 3]
