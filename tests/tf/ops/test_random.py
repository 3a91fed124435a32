# SPDX-License-Identifier: Apache-2.0
"""Random numbers: distributions, and seeds as TensorFlow describes them."""
import numpy as np
import pytest

import plimsoll.tf as tf
from plimsoll import _core
from test_array import traced


@pytest.fixture(autouse=True)
def unseeded():
    yield
    from plimsoll.tf import random

    random._state.reset(None)


def drawn(n=4, **arguments):
    return tf.random.uniform([n], **arguments).numpy().tolist()


def test_distributions():
    u = tf.random.uniform([20000], 2, 5).numpy()
    assert u.dtype == np.float32 and 2 <= u.min() < 2.01 and 4.99 < u.max() < 5
    assert abs(u.mean() - 3.5) < 0.05
    n = tf.random.normal([20000], 3.0, 2.0, tf.float64).numpy()
    assert n.dtype == np.float64 and abs(n.mean() - 3) < 0.1 and abs(n.std() - 2) < 0.1
    t = tf.random.truncated_normal([20000], 1.0, 0.5).numpy()
    assert abs(t - 1).max() <= 1 and abs(t.mean() - 1) < 0.05
    i = tf.random.uniform([20000], -3, 4, tf.int32).numpy()
    assert i.dtype == np.int32 and set(i.tolist()) == set(range(-3, 4))


def test_limits_may_be_tensors():
    u = tf.random.uniform([100, 2], tf.constant([0.0, 10.0]), tf.constant([1.0, 20.0])).numpy()
    assert (u[:, 0] < 1).all() and (u[:, 1] >= 10).all() and (u[:, 1] < 20).all()
    n = tf.random.normal([1000, 2], mean=[0.0, 100.0]).numpy()
    assert abs(n[:, 1].mean() - 100) < 1
    run = traced(lambda n: tf.random.uniform([200], 2, n, tf.int32), (tf.int32, []))
    assert set(run(np.int32(5)).tolist()) == {2, 3, 4}
    with pytest.raises(ValueError):
        tf.random.uniform([1], dtype=tf.int32)


def test_without_seeds_each_call_gives_others():
    assert drawn() != drawn()


def test_the_global_seed_starts_again():
    tf.random.set_seed(1234)
    first = [drawn(), drawn()]
    assert first[0] != first[1]
    tf.random.set_seed(1234)
    assert [drawn(), drawn()] == first
    tf.random.set_seed(1235)
    assert drawn() != first[0]


def test_the_seed_of_an_op_is_its_own():
    tf.random.set_seed(1)
    a1, a2 = drawn(seed=7), drawn(seed=7)
    assert a1 != a2
    tf.random.set_seed(1)
    drawn()
    assert [drawn(seed=7), drawn(seed=7)] == [a1, a2]
    assert drawn(seed=8) != a1
    tf.random.set_seed(2)
    assert drawn(seed=7) != a1


def test_programs_with_a_seed_can_be_repeated(run_python):
    text = """
import plimsoll.tf as tf
print(tf.random.normal([3], seed=5).numpy().tolist())
tf.random.set_seed(3)
print(tf.random.normal([3]).numpy().tolist(), tf.random.shuffle(tf.range(9)).numpy().tolist())
"""
    assert run_python(text) == run_python(text)


def test_kinds_of_ops_do_not_draw_the_same():
    tf.random.set_seed(1)
    a = tf.random.uniform([4]).numpy()
    tf.random.set_seed(1)
    b = tf.random.uniform([2, 2]).numpy().ravel()
    assert (a == b).all()


def test_shuffle_is_a_permutation():
    x = np.arange(20).reshape(10, 2)
    y = tf.random.shuffle(x).numpy()
    assert sorted(y.tolist()) == x.tolist() and y.tolist() != x.tolist()
    run = traced(tf.random.shuffle, (tf.int64, [None, 2]))
    assert sorted(run(x).tolist()) == x.tolist()


def test_categorical_follows_its_logits():
    out = tf.random.categorical(np.log([[0.7, 0.3, 1e-30]]).astype(np.float32), 5000)
    assert out.dtype == tf.int64 and out.shape.as_list() == [1, 5000]
    share = np.bincount(out.numpy()[0], minlength=3) / 5000
    assert abs(share[0] - 0.7) < 0.05 and share[2] == 0


def test_shapes_that_are_not_known_yet():
    run = traced(lambda x: tf.random.normal(tf.shape(x)), (tf.float32, [None, 3]))
    assert run.output.shape.as_list() == [None, 3]
    assert run(np.ones((5, 3), np.float32)).shape == (5, 3)
    run = traced(lambda x: tf.random.uniform([tf.shape(x)[0], 2]), (tf.float32, [None, 3]))
    assert run(np.ones((5, 3), np.float32)).shape == (5, 2)


def test_stateless_ops_depend_on_their_seed_alone():
    def draw(seed):
        return tf.random.stateless_uniform([4], seed).numpy().tolist()

    first = draw([1, 2])
    tf.random.set_seed(9)
    assert draw([1, 2]) == first
    assert draw([2, 1]) != first and draw([1, 3]) != first
    assert draw(tf.constant([1, 2])) == first
    assert tf.random.stateless_normal([2, 2], [1, 2]).shape.as_list() == [2, 2]
    with pytest.raises(ValueError):
        draw([1])


def test_stateless_ops_in_functions():
    eager = tf.random.stateless_uniform([3], [1, 2]).numpy()

    @tf.function
    def constant_seed():
        return tf.random.stateless_uniform([3], [1, 2])

    @tf.function
    def given_seed(seed):
        return tf.random.stateless_uniform([3], seed)

    assert (constant_seed().numpy() == eager).all() and (constant_seed().numpy() == eager).all()
    assert (given_seed(tf.constant([1, 2])).numpy() == eager).all()


def test_functions_draw_anew_at_each_call():
    @tf.function
    def f():
        return tf.random.uniform([4])

    assert f().numpy().tolist() != f().numpy().tolist()


def test_generators():
    a, b = tf.random.Generator.from_seed(5), tf.random.Generator.from_seed(5)
    x, y = a.normal([3]).numpy(), a.normal([3]).numpy()
    assert (b.normal([3]).numpy() == x).all() and (x != y).any()
    assert (b.normal([3]).numpy() == y).all()
    assert a.uniform([3], 1, 5, tf.int32).dtype == tf.int32
    kept = tf.random.Generator.from_state(a.state)
    assert (kept.normal([2]).numpy() == a.normal([2]).numpy()).all()
    one, two = a.split(2)
    assert (one.normal([3]).numpy() != two.normal([3]).numpy()).any()
    other = tf.random.Generator.from_non_deterministic_state()
    assert (other.normal([3]).numpy() != x).any()
    assert a.uniform_full_int([3], tf.uint32).dtype == tf.uint32
    a.reset_from_key_counter(5, [3, 0])
    there = tf.random.Generator.from_key_counter(5, [0, 0])
    there.skip(3)
    assert (there.normal([3]).numpy() == a.normal([3]).numpy()).all()
    a.reset_from_seed(5)
    assert (a.normal([3]).numpy() == x).all()


def test_the_global_generator_follows_the_global_seed():
    tf.random.set_seed(4)
    first = tf.random.get_global_generator().normal([2]).numpy()
    tf.random.set_seed(4)
    assert (tf.random.get_global_generator().normal([2]).numpy() == first).all()


def test_seeds_made_of_seeds():
    seeds = tf.random.split([1, 2], 3)
    assert seeds.shape.as_list() == [3, 2] and len({tuple(s) for s in seeds.numpy().tolist()}) == 3
    assert tf.random.fold_in([1, 2], 5).numpy().tolist() != tf.random.fold_in([1, 2], 6).numpy().tolist()


def test_huge_tensors_are_described_without_memory():
    x = tf.random.normal([1000000, 1000000])
    assert x.shape.as_list() == [1000000, 1000000]
    assert isinstance(x, _core.Tensor)


# ---- the examples of tf.random.set_seed()'s documentation ----


def test_functions_follow_the_global_seed():
    def drawn_by_functions():
        tf.random.set_seed(1234)

        @tf.function
        def f():
            return tf.random.uniform([1]), tf.random.uniform([1])

        return [float(x) for x in (*f(), *f())]

    first = drawn_by_functions()
    assert len(set(first)) == 4 and drawn_by_functions() == first


def test_ops_with_one_seed_in_a_function_are_alike():
    @tf.function
    def foo():
        return tf.random.uniform([1], seed=1), tf.random.uniform([1], seed=1)

    a, b = [float(x) for x in foo()]
    c, d = [float(x) for x in foo()]
    assert a == b and c == d and a != c


def test_the_global_seed_starts_functions_again():
    @tf.function
    def f():
        return tf.random.uniform([2])

    tf.random.set_seed(3)
    f()

    @tf.function
    def g():
        return tf.random.uniform([2])

    tf.random.set_seed(3)
    first = g().numpy().tolist()

    @tf.function
    def h():
        return tf.random.uniform([2])

    tf.random.set_seed(3)
    assert h().numpy().tolist() == first
