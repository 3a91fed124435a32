# SPDX-License-Identifier: Apache-2.0
"""tf.data's stages with functions: how they are called, traced, and what they give."""
import collections
import copy
import threading

import numpy as np
import pytest

import plimsoll.tf as tf

Dataset = tf.data.Dataset
Point = collections.namedtuple("Point", ["x", "y"])


def elements(dataset):
    return list(dataset.as_numpy_iterator())


# ---- map: arguments and results ----


def test_map_calls_with_the_element():
    dataset = Dataset.range(1, 6).map(lambda x: x + 1)
    assert elements(dataset) == [2, 3, 4, 5, 6]
    assert dataset.element_spec == tf.TensorSpec((), tf.int64)
    assert len(dataset) == 5


def test_a_tuple_is_several_arguments():
    dataset = Dataset.from_tensor_slices(([1, 2], [10, 20]))
    assert elements(dataset.map(lambda x, y: x + y)) == [11, 22]
    assert elements(Dataset.from_tensor_slices(([1, 2],)).map(lambda x: x)) == [1, 2]


def test_a_nested_tuple_is_one_argument():
    dataset = Dataset.from_tensor_slices(({"a": [1, 2], "b": [3, 4]}, [5, 6]))
    assert elements(dataset.map(lambda d, y: d["a"] + d["b"] + y)) == [9, 12]


def test_a_dict_is_one_argument():
    assert elements(Dataset.from_tensor_slices({"a": [1, 2]}).map(lambda d: d["a"])) == [1, 2]


def test_a_named_tuple_is_one_argument():
    dataset = Dataset.from_tensor_slices(Point([1, 2], [3, 4]))
    assert elements(dataset.map(lambda point: point.x + point.y)) == [4, 6]


def test_results_are_structures():
    dataset = Dataset.range(3)
    assert elements(dataset.map(lambda x: (x, x + 1)))[2] == (2, 3)
    assert elements(dataset.map(lambda x: {"a": x, "b": (x, 1)}))[2] == {"a": 2, "b": (2, 1)}
    made = elements(dataset.map(lambda x: Point(x, -x)))[1]
    assert type(made) is Point and made == Point(1, -1)


def test_numbers_arrays_and_texts_become_tensors():
    dataset = Dataset.range(2).map(lambda x: (37.0, [b"Foo", b"Bar"], np.array([1.0, 2.0])))
    assert dataset.element_spec == (
        tf.TensorSpec((), tf.float32),
        tf.TensorSpec((2,), tf.string),
        tf.TensorSpec((2,), tf.float64),
    )
    number, texts, array = elements(dataset)[1]
    assert (number, texts.tolist(), array.tolist()) == (37.0, [b"Foo", b"Bar"], [1.0, 2.0])


def test_a_list_is_a_tuple_on_top_and_a_tensor_within():
    dataset = Dataset.range(2)
    assert elements(dataset.map(lambda x: [x, x * 2]))[1] == (1, 2)
    (inner, _) = elements(dataset.map(lambda x: ([x, x * 2], x)))[1]
    assert inner.tolist() == [1, 2]


def test_none_is_said_not_to_be_there():
    with pytest.raises(NotImplementedError, match="None"):
        Dataset.range(2).map(lambda x: None)


def test_what_is_no_tensor_is_a_type_error():
    with pytest.raises(TypeError, match="Unsupported return value.*map"):
        Dataset.range(2).map(lambda x: object())


# ---- map: traced ----


def test_a_function_is_traced_once():
    calls = []

    def double(x):
        calls.append(threading.get_ident())
        return x * 2

    dataset = Dataset.range(100).map(double)
    assert elements(dataset) == list(range(0, 200, 2))
    assert elements(dataset) == list(range(0, 200, 2))
    assert calls == [threading.get_ident()]


def test_shapes_and_dtypes_are_checked_when_it_is_traced():
    dataset = Dataset.from_tensor_slices(np.zeros((4, 2, 3), np.float32))
    with pytest.raises(ValueError):
        dataset.map(lambda x: tf.matmul(x, x))


def test_an_exception_of_the_function_is_raised_as_it_is():
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Dataset.range(3).map(fail)


def test_parallel_calls_keep_the_order():
    dataset = Dataset.range(1000)
    for n_calls in (1, 4, tf.data.AUTOTUNE):
        mapped = dataset.map(lambda x: x * x, num_parallel_calls=n_calls)
        assert elements(mapped) == [n * n for n in range(1000)]
    loose = dataset.map(lambda x: x, num_parallel_calls=4, deterministic=False)
    assert sorted(elements(loose)) == list(range(1000))
    with pytest.raises(tf.errors.InvalidArgumentError):
        dataset.map(lambda x: x, num_parallel_calls=0)


def test_constants_are_captured():
    table = tf.constant([10, 20, 30])
    assert elements(Dataset.range(3).map(lambda n: tf.gather(table, n))) == [10, 20, 30]


@pytest.mark.parametrize("dtype, value", [
    ("int64", 2**62 + 1), ("int64", -2**63), ("int32", 2**31 - 1), ("int32", -7), ("uint8", 255),
    ("float32", 0.1), ("float32", -0.0), ("float32", 1e-45), ("float32", np.inf),
    ("float32", np.nan), ("float64", 0.1), ("float64", 5e-324), ("float64", -np.inf),
    ("float16", 0.1)])
def test_numbers_that_are_captured_are_the_same_to_the_bit(dtype, value):
    number = np.array(value, dtype)
    ones = np.ones(3, dtype)
    dataset = Dataset.from_tensors(ones)
    (product, added), = dataset.map(lambda x: (x * number, x * 0 + number))
    (again, itself), = dataset.map(lambda x: (x * number, number))
    for found, wanted in ((product, ones * number), (added, ones * 0 + number),
                          (again, ones * number), (itself, number)):
        found = np.asarray(found)
        assert found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes()


def test_a_captured_number_may_be_an_operand_and_an_index():
    number = tf.constant(2)
    made = Dataset.from_tensors([5, 6, 7, 8]).map(lambda x: (x + number, tf.gather(x, number)))
    (added, chosen), = made
    assert added.numpy().tolist() == [7, 8, 9, 10] and int(chosen) == 7


def test_a_variable_is_read_when_a_pass_begins():
    scale = tf.Variable(2, dtype=tf.int64)
    dataset = Dataset.range(3).map(lambda x: x * scale)
    assert elements(dataset) == [0, 2, 4]
    scale.assign(5)
    assert elements(dataset) == [0, 5, 10]
    assert len(dataset) == 3


def test_a_variable_is_read_by_a_filter_as_well():
    limit = tf.Variable(1, dtype=tf.int64)
    dataset = Dataset.range(4).filter(lambda x: x > limit)
    assert elements(dataset) == [2, 3]
    limit.assign(2)
    assert elements(dataset) == [3]
    assert dataset.element_spec == tf.TensorSpec((), tf.int64)


def test_a_tf_function_is_mapped():
    @tf.function
    def square(x):
        return x * x

    assert elements(Dataset.range(4).map(square)) == [0, 1, 4, 9]


def test_random_ops_draw_anew_for_each_element_and_pass():
    dataset = Dataset.range(50).map(lambda x: tf.random.uniform([]))
    first, second = elements(dataset), elements(dataset)
    assert len(set(first)) > 40
    assert all(0 <= value < 1 for value in first)
    assert first != second or len(set(first)) > 40


def test_elements_of_unknown_shape_are_mapped():
    dataset = Dataset.from_generator(lambda: iter([[1], [1, 2]]), tf.float32)
    assert elements(dataset.map(lambda x: tf.reduce_sum(x))) == [1.0, 3.0]


# ---- map: in Python ----


def test_a_function_that_looks_at_values_runs_in_python(capfd):
    def halve_the_even(x):
        if x % 2 == 0:
            return x // 2
        return x

    dataset = Dataset.range(5).map(halve_the_even)
    assert elements(dataset) == [0, 1, 1, 3, 2]
    assert dataset.element_spec.dtype == tf.int64
    said = capfd.readouterr().err
    assert "halve_the_even" in said and "runs in Python" in said


def counting(v):
    return lambda x: v.assign_add(1) + 0 * x


COUNTED = {
    "map": (lambda d, v: d.map(counting(v)), [1, 2, 3, 4], 4),
    "map of map": (lambda d, v: d.map(counting(v)).map(lambda x: x + int(x)), [2, 4, 6, 8], 4),
    "filter": (lambda d, v: d.filter(lambda x: v.assign_add(1) % 2 == 0), [1, 3], 4),
    "flat_map": (lambda d, v: d.flat_map(lambda x: tf.data.Dataset.from_tensors(v.assign_add(1) + 0)),
                 [1, 2, 3, 4], 4),
    "scan": (lambda d, v: d.scan(np.int64(0), lambda s, x: (s, v.assign_add(1) + 0)), [1, 2, 3, 4], 4),
    "take_while": (lambda d, v: d.take_while(lambda x: v.assign_add(1) < 3), [0, 1], 3),
    "part": (lambda d, v: d.map(lambda x: v.scatter_nd_update([[]], [x + 7]) + 0), [7, 8, 9, 10], 10),
}  # fmt: skip


@pytest.mark.parametrize("make, wanted, after", COUNTED.values(), ids=list(COUNTED))
def test_the_look_at_what_it_gives_assigns_to_no_variable(make, wanted, after):
    v = tf.Variable(0, dtype=tf.int64)
    made = make(tf.data.Dataset.range(4), v)
    assert int(v) == 0
    assert [int(x) for x in made] == wanted
    assert int(v) == after


def test_the_look_of_a_reduction_assigns_to_no_variable():
    v = tf.Variable(0, dtype=tf.int64)
    total = tf.data.Dataset.range(4).reduce(np.int64(0), lambda s, x: s + v.assign_add(1))
    assert (int(total), int(v)) == (10, 4)


def test_what_another_thread_assigns_during_the_look_stays():
    mine, other = tf.Variable(0, dtype=tf.int64), tf.Variable(0, dtype=tf.int64)

    def look(x):
        if not int(other):
            thread = threading.Thread(target=lambda: (other.assign(5), mine.assign(7)))
            mine.assign(1)
            thread.start()
            thread.join()
        return x

    tf.data.Dataset.range(4).map(look)
    assert (int(mine), int(other)) == (7, 5)


def test_of_an_empty_dataset_zeros_show_what_it_gives():
    def sign(x):
        return 1.0 if x > 0 else -1.0

    dataset = Dataset.range(0).map(sign)
    assert elements(dataset) == [] and dataset.element_spec == tf.TensorSpec((), tf.float32)
    unknown = Dataset.from_generator(lambda: iter([]), tf.int64)
    with pytest.raises(ValueError, match="empty"):
        unknown.map(sign)


def test_bad_elements_before_the_first_good_one_are_passed_over():
    def not_zero(x):
        if x == 0:
            raise ValueError("zero")
        return x

    numbers = Dataset.range(3).map(lambda x: tf.py_function(not_zero, [x], tf.int64))
    halved = numbers.map(lambda x: x // 2 if x % 2 == 0 else x).on_error("skip")
    assert elements(halved) == [1, 1]


def test_loops_over_values_run_in_python():
    def sum_below(x):
        total = tf.constant(0, tf.int64)
        for number in range(int(x)):
            total += number
        return total

    assert elements(Dataset.range(5).map(sum_below)) == [0, 0, 1, 3, 6]


def test_py_function_and_numpy_function():
    def double(x):
        return x.numpy() * 2

    dataset = Dataset.range(3).map(lambda x: tf.py_function(double, [x], tf.int64))
    assert elements(dataset) == [0, 2, 4]
    upper = Dataset.from_tensor_slices(["hello", "world"]).map(
        lambda text: tf.numpy_function(lambda b: b.upper(), [text], tf.string)
    )
    assert elements(upper) == [b"HELLO", b"WORLD"]


def test_an_exception_in_python_keeps_its_traceback():
    def at_two(x):
        if x == 2:
            raise ZeroDivisionError("two")
        return x

    iterator = iter(Dataset.range(4).map(lambda x: tf.py_function(at_two, [x], tf.int64)))
    assert [int(next(iterator)), int(next(iterator))] == [0, 1]
    with pytest.raises(tf.errors.UnknownError, match="ZeroDivisionError") as caught:
        next(iterator)
    frames = []
    trace = caught.value.__cause__.__traceback__
    while trace:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "at_two" in frames
    assert int(next(iterator)) == 3


# ---- filter, flat_map, interleave ----


def test_filter():
    dataset = Dataset.from_tensor_slices([1, 2, 3])
    assert elements(dataset.filter(lambda x: x < 3)) == [1, 2]
    assert elements(dataset.filter(lambda x: tf.math.equal(x, 1))) == [1]
    pairs = Dataset.from_tensor_slices(([1, 2], [True, False]))
    assert elements(pairs.filter(lambda x, keep: keep)) == [(1, True)]


def test_a_predicate_is_one_bool():
    for predicate in (lambda x: x, lambda x: (x > 1, x > 1), lambda x: [x > 1, x > 1]):
        with pytest.raises(ValueError, match="scalar boolean"):
            Dataset.range(3).filter(predicate)


def test_flat_map():
    dataset = Dataset.from_tensor_slices([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    assert elements(dataset.flat_map(Dataset.from_tensor_slices)) == list(range(1, 10))
    counted = Dataset.range(4).flat_map(lambda n: Dataset.from_tensors(n).repeat(n))
    assert elements(counted) == [1, 2, 2, 3, 3, 3]
    assert counted.element_spec == tf.TensorSpec((), tf.int64)


def test_what_a_flat_map_makes_need_not_be_as_long():
    dataset = Dataset.from_generator(
        lambda: iter([[1], [1, 2]]), output_signature=tf.TensorSpec((None,), tf.int32)
    ).flat_map(Dataset.from_tensors)
    assert dataset.element_spec == tf.TensorSpec((None,), tf.int32)
    assert [row.tolist() for row in elements(dataset)] == [[1], [1, 2]]


def test_flat_map_needs_a_dataset():
    with pytest.raises(TypeError, match="must return a `Dataset`"):
        Dataset.range(3).flat_map(lambda x: x)


def test_interleave():
    dataset = Dataset.range(1, 6).interleave(
        lambda x: Dataset.from_tensors(x).repeat(6), cycle_length=2, block_length=4
    )
    assert elements(dataset) == [
        *[1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2],
        *[3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4],
        *[5, 5, 5, 5, 5, 5],
    ]


def test_a_parallel_interleave_has_the_same_order():
    def repeated(x):
        return Dataset.from_tensors(x).repeat(3)

    expected = elements(Dataset.range(20).interleave(repeated, cycle_length=4, block_length=2))
    for n_calls in (2, tf.data.AUTOTUNE):
        dataset = Dataset.range(20).interleave(
            repeated, cycle_length=4, block_length=2, num_parallel_calls=n_calls
        )
        assert elements(dataset) == expected


def test_interleave_refuses_an_empty_cycle():
    with pytest.raises(tf.errors.InvalidArgumentError):
        Dataset.range(3).interleave(Dataset.from_tensors, cycle_length=0)
    with pytest.raises(tf.errors.InvalidArgumentError):
        Dataset.range(3).interleave(Dataset.from_tensors, cycle_length=2, block_length=0)


def test_map_may_make_datasets():
    dataset = Dataset.range(1, 4).map(lambda x: Dataset.range(x))
    assert [elements(inner) for inner in dataset] == [[0], [0, 1], [0, 1, 2]]
    assert dataset.element_spec == tf.data.DatasetSpec(tf.TensorSpec((), tf.int64))


def test_map_may_make_datasets_beside_tensors():
    dataset = Dataset.range(1, 3).map(lambda x: {"n": x, "up_to": (Dataset.range(5), x)})
    first = next(iter(dataset))
    assert int(first["n"]) == 1 and elements(first["up_to"][0]) == [0, 1, 2, 3, 4]


# ---- states ----


def test_reduce():
    assert Dataset.range(5).reduce(np.int64(0), lambda x, _: x + 1).numpy() == 5
    assert Dataset.range(5).reduce(np.int64(0), lambda x, y: x + y).numpy() == 10


def test_a_state_is_a_structure():
    total, n = Dataset.range(1, 5).reduce(
        (tf.constant(0, tf.int64), 0), lambda state, x: (state[0] + x, state[1] + 1)
    )
    assert (total.numpy(), n.numpy(), n.dtype) == (10, 4, tf.int32)
    named = Dataset.range(3).reduce(
        {"sum": np.int64(0)}, lambda state, x: {"sum": state["sum"] + x}
    )
    assert named["sum"].numpy() == 3


def test_an_element_of_several_parts_is_one_argument():
    pairs = Dataset.from_tensor_slices(([1, 2, 3], [10, 20, 30]))
    assert pairs.reduce(0, lambda state, pair: state + pair[0] * pair[1]).numpy() == 140


def test_a_state_keeps_its_dtype():
    with pytest.raises(TypeError, match="new state must match the initial state"):
        Dataset.range(3).reduce(0, lambda state, x: x)


def test_a_state_keeps_its_structure():
    for initial, wrong in ((0, (0, 0)), ((0, 0), 0), ({"a": 0}, {"b": 0}), ((0, 0), (0, 0, 0))):
        with pytest.raises(TypeError, match="must match the initial state"):
            Dataset.range(3).reduce(initial, lambda state, x, wrong=wrong: wrong)
    pair = Dataset.range(3).reduce((0, 1), lambda state, x: [state[1], state[0]])
    assert [int(part) for part in pair] == [1, 0]


def test_a_state_may_grow():
    grown = Dataset.range(3).reduce(
        tf.zeros([0], tf.int64), lambda state, x: tf.concat([state, [x]], 0)
    )
    assert grown.numpy().tolist() == [0, 1, 2]


def test_scan():
    dataset = Dataset.range(10).scan(
        initial_state=tf.constant(0, dtype=tf.int64),
        scan_func=lambda state, i: (state + i, state + i),
    )
    assert elements(dataset) == [0, 1, 3, 6, 10, 15, 21, 28, 36, 45]
    assert elements(dataset) == [0, 1, 3, 6, 10, 15, 21, 28, 36, 45]


def test_scan_gives_structures():
    dataset = Dataset.range(3).scan(
        np.int64(1), lambda state, x: (state * 2, {"state": state, "x": x})
    )
    assert elements(dataset) == [
        {"state": 1, "x": 0},
        {"state": 2, "x": 1},
        {"state": 4, "x": 2},
    ]
    with pytest.raises(TypeError, match="pair"):
        Dataset.range(3).scan(np.int64(1), lambda state, x: state)


def test_reduce_in_a_graph_goes_through_it_when_it_is_run():
    with tf.Graph().as_default():
        total = Dataset.range(5).reduce(np.int64(0), lambda x, y: x + y)
        with tf.compat.v1.Session() as session:
            assert session.run(total) == session.run(total) == 10


def test_a_traced_function_that_goes_through_a_dataset_runs_in_python():
    @tf.function
    def total(dataset):
        found = tf.constant(0, tf.int64)
        for x in dataset:
            found += x
        return found + dataset.reduce(np.int64(0), lambda x, y: x + y)

    assert int(total(Dataset.range(5))) == 20
    inner = Dataset.range(3)
    mapped = Dataset.range(2).map(lambda x: x + inner.reduce(np.int64(0), lambda a, b: a + b))
    assert elements(mapped) == [3, 4]


# ---- what is made of others ----


def test_apply():
    assert elements(Dataset.range(5).apply(lambda ds: ds.filter(lambda x: x < 2))) == [0, 1]
    with pytest.raises(TypeError):
        Dataset.range(5).apply(lambda ds: 3)


def test_take_while():
    assert elements(Dataset.range(10).take_while(lambda x: x < 5)) == [0, 1, 2, 3, 4]
    pairs = Dataset.range(10).map(lambda x: (x, x)).take_while(lambda x, y: x + y < 4)
    assert elements(pairs) == [(0, 0), (1, 1)]


def test_unique():
    assert elements(Dataset.from_tensor_slices([1, 37, 2, 37, 2, 1]).unique()) == [1, 37, 2]
    assert elements(Dataset.from_tensor_slices(["a", "b", "a"]).unique()) == [b"a", b"b"]
    with pytest.raises(TypeError):
        Dataset.from_tensor_slices([1.0, 2.0]).unique()


def test_group_by_window():
    dataset = Dataset.range(10).group_by_window(
        key_func=lambda x: x % 2,
        reduce_func=lambda key, window: window.batch(5),
        window_size=5,
    )
    assert [row.tolist() for row in elements(dataset)] == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert dataset.element_spec == tf.TensorSpec((None,), tf.int64)


def test_a_key_may_be_a_number_of_pythons():
    dataset = Dataset.range(4).group_by_window(lambda x: 0, lambda key, window: window.batch(4), 4)
    assert [batch.tolist() for batch in elements(dataset)] == [[0, 1, 2, 3]]
    with pytest.raises(ValueError, match="key_func"):
        Dataset.range(4).group_by_window(
            lambda x: tf.cast(x, tf.int32), lambda key, window: window.batch(4), 4
        )


def test_windows_have_at_least_one_element():
    with pytest.raises(tf.errors.InvalidArgumentError, match="greater than zero, but got 0"):
        Dataset.range(4).group_by_window(lambda x: 0, lambda key, window: window, window_size=0)
    dataset = Dataset.range(4).group_by_window(
        lambda x: 0, lambda key, window: window, window_size_func=lambda key: 0
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="greater than zero, but got 0"):
        elements(dataset)


@pytest.mark.parametrize("error", [StopIteration, lambda: tf.errors.OutOfRangeError(None, None, "out")])
def test_a_function_that_runs_out_is_not_the_end_of_the_dataset(error):
    def fail(x):
        raise error()

    dataset = Dataset.range(2).map(lambda x: tf.py_function(fail, [x], tf.int64))
    iterator = iter(dataset)
    with pytest.raises(tf.errors.InvalidArgumentError, match="element 0"):
        iterator.get_next()
    with pytest.raises(tf.errors.InvalidArgumentError, match="element 1"):
        next(iterator)
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()


def test_groups_that_are_left_come_in_the_order_of_their_keys():
    dataset = Dataset.from_tensor_slices(np.int64([3, 1, 3, 2, 3])).group_by_window(
        lambda x: x, lambda key, window: window.batch(2).map(lambda x: (key, x)), window_size=2
    )
    found = [(int(key), row.tolist()) for key, row in elements(dataset)]
    assert found == [(3, [3, 3]), (1, [1]), (2, [2]), (3, [3])]


def test_a_window_may_be_as_large_as_its_key_says():
    dataset = Dataset.range(6).group_by_window(
        lambda x: x % 2,
        lambda key, window: window.batch(10),
        window_size_func=lambda key: key + 1,
    )
    assert [row.tolist() for row in elements(dataset)] == [[0], [2], [1, 3], [4], [5]]
    with pytest.raises(ValueError):
        Dataset.range(6).group_by_window(lambda x: x, lambda key, window: window)


def sequences():
    return Dataset.from_generator(
        lambda: iter([[0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [13, 14, 15, 16, 19, 20],
                      [21, 22]]),
        tf.int64,
        [None],
    )


def test_buckets():
    dataset = sequences().bucket_by_sequence_length(
        element_length_func=lambda element: tf.shape(element)[0],
        bucket_boundaries=[3, 5],
        bucket_batch_sizes=[2, 2, 2],
    )
    assert [batch.tolist() for batch in elements(dataset)] == [
        [[1, 2, 3, 4], [5, 6, 7, 0]],
        [[7, 8, 9, 10, 11, 0], [13, 14, 15, 16, 19, 20]],
        [[0, 0], [21, 22]],
    ]
    assert dataset.element_spec == tf.TensorSpec((None, None), tf.int64)


def test_buckets_padded_to_their_boundary():
    short = sequences().filter(lambda x: tf.shape(x)[0] < 5)
    dataset = short.bucket_by_sequence_length(
        lambda element: tf.shape(element)[0],
        bucket_boundaries=[3, 6],
        bucket_batch_sizes=[2, 2, 2],
        pad_to_bucket_boundary=True,
    )
    assert [batch.tolist() for batch in elements(dataset)] == [
        [[1, 2, 3, 4, 0], [5, 6, 7, 0, 0]],
        [[0, 0], [21, 22]],
    ]
    with pytest.raises(ValueError, match="bucket_batch_sizes"):
        sequences().bucket_by_sequence_length(lambda x: 1, [3, 5], [2, 2])


def test_too_long_for_the_last_bucket():
    dataset = sequences().bucket_by_sequence_length(
        lambda element: tf.shape(element)[0], [3, 5], [1, 1, 1], pad_to_bucket_boundary=True
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="max\\(bucket_boundaries\\)"):
        elements(dataset)


def test_choices():
    words = [Dataset.from_tensors(word).repeat() for word in ("foo", "bar", "baz")]
    choices = Dataset.range(3).repeat(2)
    chosen = Dataset.choose_from_datasets(words, choices)
    assert elements(chosen) == [b"foo", b"bar", b"baz"] * 2


def test_choices_of_what_has_ended():
    one, other = Dataset.range(2), Dataset.range(10, 14)
    choices = Dataset.from_tensor_slices(np.int64([0, 0, 0, 1, 1]))
    assert elements(Dataset.choose_from_datasets([one, other], choices)) == [0, 1]
    loose = Dataset.choose_from_datasets([one, other], choices, stop_on_empty_dataset=False)
    assert elements(loose) == [0, 1, 10, 11]
    with pytest.raises(TypeError, match="choice_dataset"):
        Dataset.choose_from_datasets([one, other], Dataset.from_tensor_slices([0, 1]))


def test_samples():
    one, other = Dataset.range(0, 10), Dataset.range(100, 110)
    dataset = Dataset.sample_from_datasets([one, other], weights=[0.5, 0.5], seed=1)
    found = elements(dataset)
    assert sorted(found) == [*range(10), *range(100, 110)]
    assert [n for n in found if n < 100] == list(range(10))
    assert found == elements(dataset) and len(dataset) == 20
    only = Dataset.sample_from_datasets([one.repeat(), other], weights=[0.0, 1.0])
    assert elements(only.take(5)) == list(range(100, 105))
    assert elements(only) == list(range(100, 110))  # and not the other, which has no weight, for ever
    none = Dataset.sample_from_datasets([one, other], weights=[0.0, 0.0])
    assert elements(none) == []
    weights = Dataset.from_tensors([0.0, 1.0]).repeat(30)
    assert elements(Dataset.sample_from_datasets([one, other], weights)) == list(range(100, 110))
    with pytest.raises(ValueError, match="weights"):
        Dataset.sample_from_datasets([one, other], weights=[1.0])
    with pytest.raises(ValueError, match="empty"):
        Dataset.sample_from_datasets([])


def test_rejection_resample():
    classes = np.array([0] * 900 + [1] * 100, np.int32)
    np.random.default_rng(0).shuffle(classes)
    dataset = Dataset.from_tensor_slices(classes).rejection_resample(
        class_func=lambda label: label,
        target_dist=[0.5, 0.5],
        initial_dist=[0.9, 0.1],
        seed=5,
    )
    found = [(label, element) for label, element in elements(dataset)]
    assert all(label == element for label, element in found)
    share = np.mean([label for label, _ in found])
    assert 0.35 < share < 0.65
    assert sum(label for label, _ in found) == 100


def test_a_single_element():
    assert Dataset.range(1).get_single_element().numpy() == 0
    for wrong in (Dataset.range(0), Dataset.range(2)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            wrong.get_single_element()


def test_experimental_functions_are_for_apply():
    experimental = tf.data.experimental
    dataset = Dataset.range(4)
    assert elements(dataset.apply(experimental.take_while(lambda x: x < 2))) == [0, 1]
    assert elements(dataset.apply(experimental.enumerate_dataset(7)))[0] == (7, 0)
    assert elements(dataset.batch(2).apply(experimental.unbatch())) == [0, 1, 2, 3]
    assert [row.tolist() for row in elements(
        dataset.apply(experimental.map_and_batch(lambda x: x + 1, 2))
    )] == [[1, 2], [3, 4]]
    with pytest.raises(NotImplementedError, match="group_by_reducer"):
        experimental.group_by_reducer
    with pytest.raises(AttributeError):
        experimental.nothing_of_the_kind


def test_a_list_of_elements():
    dataset = tf.data.experimental.from_list([(1, "a"), (2, "b")])
    assert elements(dataset) == [(1, b"a"), (2, b"b")] and len(dataset) == 2
    with pytest.raises(ValueError, match="empty"):
        tf.data.experimental.from_list([])
    with pytest.raises(TypeError, match="list"):
        tf.data.experimental.from_list((1, 2))


def test_a_cardinality_is_asserted():
    dataset = Dataset.range(42).filter(lambda x: x >= 0)
    asserted = dataset.apply(tf.data.experimental.assert_cardinality(42))
    assert len(asserted) == 42 and elements(asserted) == list(range(42))
    for wrong in (41, 43):
        with pytest.raises(tf.errors.FailedPreconditionError, match=f"{wrong}"):
            elements(dataset.apply(tf.data.experimental.assert_cardinality(wrong)))


# ---- sparse tensors ----


def sparse(x):
    return tf.SparseTensor(indices=[[0, 1]], values=[x], dense_shape=[1, 3])


def test_sparse_tensors_are_elements():
    dataset = Dataset.range(2).map(sparse)
    assert isinstance(dataset.element_spec, tf.SparseTensorSpec)
    assert dataset.element_spec.dtype == tf.int64 and dataset.element_spec.shape.rank == 2
    found = [tf.sparse.to_dense(element).numpy().tolist() for element in dataset]
    assert found == [[[0, 0, 0]], [[0, 1, 0]]]
    dense = dataset.map(tf.sparse.to_dense)
    assert [row.tolist() for row in elements(dense)] == found


def test_sparse_tensors_are_not_batched():
    with pytest.raises(NotImplementedError, match="to_dense"):
        Dataset.range(2).map(sparse).batch(2)
    with pytest.raises(TypeError):
        Dataset.range(2).map(sparse).as_numpy_iterator()


# ---- how often, and with what, functions are called while a stage is made ----


def test_a_function_that_makes_datasets_is_called_with_zeros_first():
    seen = []

    def make(x):
        seen.append(x.numpy().tolist())
        return Dataset.from_tensors(x)

    dataset = Dataset.from_tensor_slices([[1, 2], [3, 4]]).flat_map(make)
    assert seen == [[0, 0]]
    assert dataset.element_spec == tf.TensorSpec((2,), tf.int32)
    assert [row.tolist() for row in elements(dataset)] == [[1, 2], [3, 4]]
    assert seen == [[0, 0], [1, 2], [3, 4]]


def test_of_known_shapes_one_example_is_enough():
    for dataset, n_calls in (
        (Dataset.range(4).window(2), 1),
        (Dataset.from_generator(list, output_signature=tf.TensorSpec((None,), tf.int32)).window(2), 2),
    ):
        seen = []
        dataset.flat_map(lambda window, seen=seen: seen.append(1) or window.batch(2))
        assert len(seen) == n_calls


def test_one_that_fails_with_zeros_is_called_with_the_first_element():
    def make(x):
        if x[0] == 0:
            raise ValueError("zeros")
        return Dataset.from_tensors(x)

    known = Dataset.from_tensor_slices([[1, 2], [3, 4]]).flat_map(make)
    assert known.element_spec == tf.TensorSpec((2,), tf.int32)
    ragged = Dataset.from_generator(
        lambda: iter([[1], [2, 3]]), output_signature=tf.TensorSpec((None,), tf.int32)
    ).flat_map(make)
    assert ragged.element_spec == tf.TensorSpec((None,), tf.int32)
    assert [row.tolist() for row in elements(ragged)] == [[1], [2, 3]]
    with pytest.raises(TypeError, match="function was expected"):
        Dataset.range(2).flat_map(3)
    with pytest.raises(TypeError, match="function was expected"):
        Dataset.range(2).map("double")


# ---- as TensorFlow's own tests of map have it ----


@pytest.mark.parametrize("n_calls", [None, 2])
def test_the_pass_goes_on_behind_an_error(n_calls):
    components = np.array([1.0, 2.0, 3.0, np.nan, 5.0], np.float32)
    dataset = Dataset.from_tensor_slices(components).map(
        lambda x: tf.debugging.check_numerics(x, "message"), num_parallel_calls=n_calls
    )
    iterator = iter(dataset.prefetch(2))
    assert [float(next(iterator)) for _ in range(3)] == [1.0, 2.0, 3.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="message"):
        next(iterator)
    assert float(next(iterator)) == 5.0
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()


def test_constants_captures_and_swaps():
    captured = tf.constant(42)
    pairs = Dataset.zip(Dataset.range(2), Dataset.range(2, 4))
    assert elements(Dataset.range(2).map(lambda x: 37)) == [37, 37]
    assert elements(Dataset.range(2).map(lambda x: captured)) == [42, 42]
    assert elements(pairs.map(lambda x, y: (y, x))) == [(2, 0), (3, 1)]
    assert elements(pairs.map(lambda x, y: (x, x))) == [(0, 0), (1, 1)]
    assert elements(pairs.map(lambda *both: both[1])) == [2, 3]


def test_a_dict_may_be_changed_in_place():
    def add(d):
        d["c"] = d.pop("a") + d["b"]
        return d

    dataset = Dataset.from_tensor_slices({"a": [1, 2], "b": [3, 4]})
    assert elements(dataset.map(add)) == [{"b": 3, "c": 4}, {"b": 4, "c": 6}]
    assert elements(dataset) == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]


def test_conditions_and_loops_are_traced():
    def collatz(x):
        return tf.cond(x % 2 == 0, lambda: x // 2, lambda: 3 * x + 1)

    assert elements(Dataset.range(1, 5).map(collatz)) == [4, 1, 10, 2]
    powers = Dataset.range(4).map(
        lambda n: tf.while_loop(
            lambda i, total: i < n, lambda i, total: (i + 1, total * 2), (np.int64(0), np.int64(1))
        )[1]
    )
    assert elements(powers) == [1, 2, 4, 8]


def test_nested_lists_are_tensors():
    dataset = Dataset.from_tensors([0, 1, 2]).repeat(2).map(lambda a: ([a[1], a[0] + a[2]], a[1]))
    assert [(pair.tolist(), int(one)) for pair, one in elements(dataset)] == [([1, 2], 1)] * 2


def test_functions_of_every_kind_are_called():
    import functools

    class Adder:
        def __call__(self, x):
            return x + 10

        def method(self, x):
            return x + 20

    add = functools.partial(lambda a, x: x + a, 30)
    for function, expected in ((Adder(), 10), (Adder().method, 20), (add, 30), (tf.negative, 0)):
        assert elements(Dataset.range(1).map(function)) == [expected]


# ---- shapes of what Python gives ----


def _any_rank(x):
    return tf.py_function(lambda y: y, [x], tf.int64)


@pytest.mark.parametrize(
    "tell, shape",
    [
        (lambda y: tf.reshape(y, ()), []),
        (lambda y: tf.reshape(y, [-1, 1]), [None, 1]),
        (lambda y: tf.ensure_shape(y, []), []),
        (lambda y: y.set_shape([]) or y, []),
        (lambda y: y.set_shape([]) or y + 1, []),
        (tf.reduce_sum, []),
    ],
)
def test_what_is_told_of_a_shape_is_the_elements(tell, shape):
    dataset = Dataset.range(3).map(lambda x: tell(_any_rank(x)))
    assert dataset.element_spec.shape.as_list() == shape
    assert dataset.batch(3).element_spec.shape.as_list() == [None, *shape]
    assert len(elements(dataset)) == 3


def test_rows_of_any_length_that_python_gives_are_padded():
    def row(x):
        y = tf.numpy_function(lambda n: np.ones(n, np.float32), [x], tf.float32)
        y.set_shape([None])
        return y

    assert elements(Dataset.range(3).map(row).padded_batch(3))[0].tolist() == [[0, 0], [1, 0], [1, 1]]


def test_a_shape_that_is_not_the_one_that_was_told_is_refused():
    def lie(x):
        y = tf.numpy_function(lambda _: np.ones(3, np.float32), [x], tf.float32)
        y.set_shape([2])
        return y

    for dataset in (Dataset.range(1).map(lie), Dataset.range(1).map(lambda x: lie(x) + 1)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2\]"):
            elements(dataset)


# ---- where an error was made ----


def test_an_error_names_the_line_that_the_user_wrote():
    def fails(x):
        return tf.py_function(lambda y: tf.reshape(tf.ones([3]), [2, 2]), [x], tf.float32)

    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        elements(Dataset.range(1).map(fails))
    assert "does not become [2,2]" in caught.value.message
    assert caught.value.message.count("Error") == 0
    assert "test_data_functions.py" in caught.value.message


def test_an_error_of_no_line_of_the_users_names_none():
    dataset = Dataset.from_generator(lambda: [[1, 2, 3]], output_signature=tf.TensorSpec([2], tf.int32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape") as caught:
        elements(dataset)
    assert ".py" not in caught.value.message


def test_copies_of_a_dataset_are_the_dataset():
    dataset = Dataset.range(3)
    assert copy.copy(dataset) is dataset and copy.deepcopy({"a": dataset})["a"] is dataset


def test_an_exception_may_come_from_one_without_a_traceback():
    def fails(x):
        raise ValueError("outer") from KeyError("inner").with_traceback(None)

    dataset = Dataset.range(1).map(lambda x: tf.py_function(fails, [x], tf.int64))
    for _ in range(3):
        with pytest.raises(tf.errors.InvalidArgumentError, match="outer") as caught:
            elements(dataset)
        assert caught.value.__cause__.__cause__.args == ("inner",)
