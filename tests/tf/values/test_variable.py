# SPDX-License-Identifier: Apache-2.0
"""Variables: eager, in graphs with sessions, by name in scopes."""
import copy
import gc
import threading
import weakref

import numpy as np
import pytest

import plimsoll.tf as tf

v1 = tf.compat.v1


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


# ---- eager ----


def test_a_variable_has_a_value_that_is_assigned_to():
    v = tf.Variable([1.0, 2.0])
    assert v.numpy().tolist() == [1.0, 2.0] and v.shape == [2] and v.dtype == tf.float32
    assert v.assign([3.0, 4.0]) is v
    assert v.assign_add([1.0, 1.0]).numpy().tolist() == [4.0, 5.0]
    assert v.assign_sub([1.0, 2.0]).numpy().tolist() == [3.0, 3.0]


def test_a_value_that_was_read_stays_what_it_was():
    v = tf.Variable(1.0)
    before, lazy = v.value(), v * 10
    v.assign(2.0)
    assert float(before) == 1.0 and float(lazy) == 10.0 and float(v.read_value()) == 2.0


@pytest.mark.parametrize(
    "value, dtype",
    [(1, tf.int32), (1.0, tf.float32), (True, tf.bool), ("a", tf.string), (np.float64(1), tf.float64)],
)
def test_a_variable_takes_the_dtype_of_its_value(value, dtype):
    assert tf.Variable(value).dtype == dtype


def test_a_variable_takes_the_dtype_that_is_said():
    assert tf.Variable(1, dtype=tf.float32).dtype == tf.float32
    assert tf.Variable(tf.constant(1), dtype=tf.float64).numpy() == 1.0
    assert tf.Variable(lambda: tf.ones([2])).numpy().tolist() == [1.0, 1.0]


def test_a_variable_needs_an_initial_value():
    with pytest.raises(ValueError, match="initial_value"):
        tf.Variable()


def test_a_variable_keeps_its_shape_and_dtype():
    v = tf.Variable([1.0, 2.0], name="v")
    with pytest.raises(ValueError, match="Cannot assign value to variable 'v:0': Shape mismatch"):
        v.assign([1.0, 2.0, 3.0])
    with pytest.raises((TypeError, ValueError)):
        v.assign(tf.constant([1, 2]))
    assert v.numpy().tolist() == [1.0, 2.0]
    loose = tf.Variable([1.0], shape=tf.TensorShape(None))
    assert loose.assign([[1.0, 2.0]]).numpy().shape == (1, 2)
    with pytest.raises(ValueError, match="not compatible"):
        tf.Variable([1.0], shape=[2])


def test_variables_have_names_and_say_what_they_are():
    v = tf.Variable(1.0, name="weight", trainable=False)
    assert v.name == "weight:0" and not v.trainable and tf.Variable(0).name == "Variable:0"
    assert repr(v) == "<tf.Variable 'weight:0' shape=() dtype=float32, numpy=1.0>"
    assert repr(tf.Variable([1, 2])) == (
        "<tf.Variable 'Variable:0' shape=(2,) dtype=int32, numpy=array([1, 2], dtype=int32)>"
    )


def test_operators_are_those_of_tensors():
    v = tf.Variable([4.0, 9.0])
    assert (v + 1).numpy().tolist() == [5.0, 10.0] and (1 + v).numpy().tolist() == [5.0, 10.0]
    assert (v - [1.0, 2.0]).numpy().tolist() == [3.0, 7.0] and (10 - v).numpy().tolist() == [6.0, 1.0]
    assert (v * v).numpy().tolist() == [16.0, 81.0] and (v / 2).numpy().tolist() == [2.0, 4.5]
    assert (v**2).numpy().tolist() == [16.0, 81.0] and (-v).numpy().tolist() == [-4.0, -9.0]
    assert (v // 2).numpy().tolist() == [2.0, 4.0] and (v % 5).numpy().tolist() == [4.0, 4.0]
    assert (v > 5).numpy().tolist() == [False, True] and (v == [4.0, 0.0]).numpy().tolist() == [True, False]
    assert float(v[1]) == 9.0 and v[:1].numpy().tolist() == [4.0] and len(v) == 2
    assert [float(x) for x in v] == [4.0, 9.0]
    assert (tf.constant([1.0, 1.0]) + v).numpy().tolist() == [5.0, 10.0]
    assert tf.reduce_sum(v).numpy() == 13.0 and np.asarray(v).tolist() == [4.0, 9.0]
    m = tf.Variable([[1.0, 2.0]])
    assert (m @ [[1.0], [1.0]]).numpy().tolist() == [[3.0]]
    assert abs(tf.Variable(-2)).numpy() == 2 and float(tf.Variable(2.5)) == 2.5 and int(tf.Variable(3)) == 3
    assert bool(tf.Variable(True)) and f"{tf.Variable(2.5):.2f}" == "2.50"


def test_a_variable_is_a_key_by_reference_only():
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    with pytest.raises(TypeError, match="unhashable"):
        hash(v)
    assert {v.ref(): 1}[v.ref()] == 1 and v.ref() != w.ref() and v.ref().deref() is v


def test_a_variable_is_a_tensor_for_those_who_ask():
    v = tf.Variable([1.0])
    assert tf.is_tensor(v) and not isinstance(v, tf.Tensor)
    assert tf.convert_to_tensor(v).numpy().tolist() == [1.0]


def test_a_deep_copy_is_another_variable():
    v = tf.Variable([1.0], name="v")
    twin = copy.deepcopy(v)
    twin.assign([2.0])
    assert v.numpy().tolist() == [1.0] and twin.numpy().tolist() == [2.0]


def test_what_variables_have_not_is_named():
    with pytest.raises(NotImplementedError, match="to_proto"):
        tf.Variable([1.0]).to_proto()
    assert not hasattr(tf.Variable(1.0), "no_such_method")


def test_assigning_in_a_loop_does_not_pile_up():
    v = tf.Variable(tf.zeros([1000]))
    for _ in range(3000):
        v.assign_add(tf.ones([1000]))
    assert not v.value().is_pending and float(v[0]) == 3000.0


# ---- in graphs ----


def test_a_variable_has_a_value_for_each_session(graph):
    v = tf.Variable(1.0, name="v")
    assert v.name == "v:0" and v.initializer.name == "v/Assign"
    add = v.assign_add(1.0)
    with v1.Session() as first:
        with v1.Session() as second:
            first.run(v.initializer)
            second.run(v1.global_variables_initializer())
            assert first.run(add) == 2.0 and first.run(add) == 3.0
            assert second.run(v) == 1.0 and first.run(v) == 3.0
            assert v.eval(first) == 3.0


def test_what_is_not_initialized_is_a_failed_precondition(graph):
    v = tf.Variable(1.0, name="v")
    with v1.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
            session.run(v + 1)
        session.run(v.initializer)
        assert session.run(v + 1) == 2.0


def test_all_read_a_variable_as_it_was_before_the_run(graph):
    v = tf.Variable(1.0)
    assign, read = v.assign(v * 10), v + 0
    with v1.Session() as session:
        session.run(v.initializer)
        assert session.run([assign, read]) == [10.0, 1.0]
        assert session.run(read) == 10.0


def test_two_assignments_in_one_run_both_happen(graph):
    v = tf.Variable(1.0)
    one, ten = v.assign_add(1.0), v.assign_add(10.0)
    with v1.Session() as session:
        session.run(v.initializer)
        session.run([one, ten])
        assert session.run(v) == 12.0


def test_no_assignment_of_several_threads_is_lost(graph):
    v = tf.Variable(0)
    add = v.assign_add(1)
    with v1.Session() as session:
        session.run(v.initializer)

        def work():
            for _ in range(50):
                session.run(add)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert session.run(v) == 200


def test_a_run_that_fails_assigns_nothing(graph):
    v = tf.Variable(1.0)
    x = v1.placeholder(tf.float32, [])
    assign = v.assign(x)
    check = tf.debugging.assert_positive(x)
    with v1.Session() as session:
        session.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run([assign, check], {x: -5.0})
        assert session.run(v) == 1.0


def test_initial_values_may_hang_on_each_other(graph):
    a = tf.Variable(2.0)
    b = tf.Variable(a.initialized_value() * 3)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run([a, b]) == [2.0, 6.0]


def test_variables_are_fed_and_loaded(graph):
    v = tf.Variable(1.0)
    with v1.Session() as session:
        session.run(v.initializer)
        assert session.run(v * 2, {v: 5.0}) == 10.0 and session.run(v) == 1.0
        v.load(7.0, session)
        assert session.run(v) == 7.0


def test_random_initial_values_are_drawn_once(graph):
    v = tf.Variable(tf.random.normal([3]))
    with v1.Session() as session:
        session.run(v.initializer)
        assert session.run(v).tolist() == session.run(v).tolist()


def test_assigning_by_function(graph):
    v = v1.Variable(1.0)
    with v1.Session() as session:
        session.run(v.initializer)
        assert session.run(v1.assign(v, 4.0)) == 4.0
        assert session.run(v1.assign_add(v, 1.0)) == 5.0
        assert session.run(v1.assign_sub(v, 2.0)) == 3.0


# ---- by name ----


def test_get_variable_makes_a_variable_in_its_scope(graph):
    with v1.variable_scope("layer"):
        w = v1.get_variable("w", [2, 3])
        assert v1.get_variable_scope().name == "layer"
        x = tf.constant(1.0, name="x")
    assert w.name == "layer/w:0" and w.shape == [2, 3] and w.dtype == tf.float32
    assert x.name == "layer/x:0"
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        limit = np.sqrt(6 / 5)
        value = session.run(w)
        assert np.abs(value).max() <= limit and np.unique(value).size == 6


def test_a_name_is_made_once_and_shared_where_that_is_said(graph):
    with v1.variable_scope("s"):
        v = v1.get_variable("v", [1])
        with pytest.raises(ValueError, match="already exists"):
            v1.get_variable("v", [1])
    with v1.variable_scope("s", reuse=True):
        assert v1.get_variable("v", [1]) is v
        with pytest.raises(ValueError, match="does not exist"):
            v1.get_variable("other", [1])
        with pytest.raises(ValueError, match="specified shape"):
            v1.get_variable("v", [2])
        with pytest.raises(ValueError, match="specified dtype"):
            v1.get_variable("v", [1], dtype=tf.int32)
    with v1.variable_scope("s", reuse=v1.AUTO_REUSE) as scope:
        assert v1.get_variable("v", [1]) is v
        new = v1.get_variable("new", [1])
    with v1.variable_scope(scope):
        assert v1.get_variable("new", [1]) is new


def test_scopes_nest_and_number_their_default_names(graph):
    with v1.variable_scope("a"), v1.variable_scope("b"):
        assert v1.get_variable("v", []).name == "a/b/v:0"
    made = []
    for _ in range(2):
        with v1.variable_scope(None, default_name="block"):
            made.append(v1.get_variable("v", []).name)
    assert made == ["block/v:0", "block_1/v:0"]


@pytest.mark.parametrize(
    "initializer, expected",
    [
        (v1.zeros_initializer(), [0.0, 0.0]),
        (v1.ones_initializer, [1.0, 1.0]),
        (v1.constant_initializer(3.0), [3.0, 3.0]),
        (v1.constant_initializer([1.0, 2.0]), [1.0, 2.0]),
        (tf.constant([5.0, 6.0]), [5.0, 6.0]),
    ],
)
def test_initializers_make_first_values(initializer, expected):
    with tf.Graph().as_default():
        shape = None if isinstance(initializer, tf.Tensor) else [2]
        v = v1.get_variable("v", shape, initializer=initializer)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            assert session.run(v).tolist() == expected


def test_a_new_variable_needs_a_whole_shape(graph):
    with pytest.raises(ValueError, match="must be fully defined"):
        v1.get_variable("v", [None, 2])


def test_random_initializers_keep_to_their_distribution():
    normal = tf.random_normal_initializer(mean=5.0, stddev=0.1, seed=1)([1000]).numpy()
    assert abs(normal.mean() - 5) < 0.05 and 0.05 < normal.std() < 0.2
    uniform = tf.random_uniform_initializer(2.0, 3.0)([1000]).numpy()
    assert uniform.min() >= 2 and uniform.max() < 3


# ---- modules ----


def test_a_module_finds_its_variables():
    class Dense(tf.Module):
        def __init__(self, n, name=None):
            super().__init__(name=name)
            self.w = tf.Variable(tf.zeros([n]), name="w")
            self.frozen = tf.Variable(1.0, trainable=False)

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.layers = [Dense(1), Dense(2)]
            self.by_name = {"last": Dense(3)}

    net = Net()
    assert len(net.variables) == 6 and len(net.trainable_variables) == 3
    assert len(net.submodules) == 3 and net.name == "net"


SCATTERS = {"add": np.add, "sub": np.subtract, "max": np.maximum, "min": np.minimum,
            "mul": np.multiply, "div": np.divide}  # fmt: skip


@pytest.mark.parametrize("how", ["update", *SCATTERS])
def test_rows_are_assigned_to_by_their_indices(how):
    start = np.arange(1.0, 13.0).reshape(6, 2)
    v = tf.Variable(start)
    rows, new = np.array([4, 1]), np.array([[2.0, 3.0], [5.0, 0.5]])
    expected = start.copy()
    expected[rows] = new if how == "update" else SCATTERS[how](start[rows], new)
    got = getattr(v, f"scatter_{how}")(tf.IndexedSlices(new, rows))
    np.testing.assert_allclose(got.numpy(), expected)
    np.testing.assert_allclose(v.numpy(), expected)
    if how in ("mul", "div"):
        return
    v.assign(start)
    getattr(v, f"scatter_nd_{how}")(rows[:, None], new)
    np.testing.assert_allclose(v.numpy(), expected)


def test_parts_of_a_variable_are_assigned_to_in_functions_and_sessions():
    v = tf.Variable([1, 2, 3, 4])

    @tf.function
    def step(at):
        v.scatter_nd_add([[at]], [10])
        return v.sparse_read([at, 0])

    assert step(tf.constant(2)).numpy().tolist() == [13, 1]
    assert step(tf.constant(2)).numpy().tolist() == [23, 1]
    with tf.Graph().as_default(), v1.Session() as session:
        w = tf.Variable([1, 2, 3])
        change = w.scatter_nd_update([[1]], [7])
        session.run(v1.global_variables_initializer())
        assert session.run(change).tolist() == [1, 7, 3] and session.run(w).tolist() == [1, 7, 3]


def test_batches_of_a_variable_are_assigned_to():
    v = tf.Variable([[1, 2, 3], [4, 5, 6]])
    v.batch_scatter_update(tf.IndexedSlices([[9, 8], [7, 6]], [[0, 2], [1, 0]]))
    assert v.numpy().tolist() == [[9, 2, 8], [6, 7, 6]]
    assert v.gather_nd([[0, 2], [1, 1]]).numpy().tolist() == [8, 7]
    with pytest.raises(TypeError, match="IndexedSlices"):
        v.scatter_add([1])


# ---- threads ----


def in_threads(work, n=8):
    threads = [threading.Thread(target=work) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_no_update_is_lost_between_threads():
    added, taken, rows = tf.Variable(0), tf.Variable(0), tf.Variable([0, 0])

    def work():
        for _ in range(200):
            added.assign_add(1)
            taken.assign_sub(1)
            rows.scatter_add(tf.IndexedSlices([1], [1]))

    in_threads(work)
    assert added.numpy() == 1600 and taken.numpy() == -1600 and rows.numpy().tolist() == [0, 1600]


def test_no_update_of_a_function_is_lost_between_threads():
    first, second = tf.Variable(0), tf.Variable(0)

    @tf.function
    def step(x):
        first.assign_add(x)
        second.assign(first * 2)
        return first.read_value()

    seen = []
    in_threads(lambda: seen.extend(int(step(tf.constant(1))) for _ in range(200)))
    assert first.numpy() == 1600 and second.numpy() == 3200
    assert sorted(seen) == list(range(1, 1601))


def test_an_update_of_another_shape_changes_nothing():
    v = tf.Variable([1.0])
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign_add([1.0, 2.0])
    assert v.numpy().tolist() == [1.0]


# ---- parts ----


def test_a_part_can_be_assigned_to():
    v = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert v[:2, :2].assign([[7.0, 7.0], [8.0, 8.0]]) is v
    assert v.numpy().tolist() == [[7, 7, 3], [8, 8, 6]]
    v[0, 0].assign(22.0)
    v[..., 1].assign([0.0, 1.0])
    assert v.numpy().tolist() == [[22, 0, 3], [8, 1, 6]]
    tf.function(lambda x: v[1].assign(x))(tf.constant([9.0, 9.0, 9.0]))
    assert v[1].numpy().tolist() == [9, 9, 9] and v[:].assign(tf.zeros([2, 3])).numpy().sum() == 0
    with pytest.raises(ValueError, match="shape"):
        v[0].assign([1.0, 2.0])
    with pytest.raises(NotImplementedError, match="scatter_nd_update"):
        v[tf.constant(0)].assign([1.0, 2.0, 3.0])


def test_a_part_of_a_graphs_variable_is_assigned_to_in_a_run(graph):
    v = v1.get_variable("v", [3], initializer=tf.zeros_initializer())
    put = v[1].assign(5.0)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(put)
        assert session.run(v).tolist() == [0, 5, 0]


def test_a_part_holds_its_variable_no_longer_than_it_lives():
    v = tf.Variable(tf.zeros([4]))
    kept = weakref.ref(v)
    parts = [v[:], v[1], v[1:3]]
    del v
    assert kept() is not None
    del parts
    gc.collect()
    assert kept() is None
