# SPDX-License-Identifier: Apache-2.0
"""tf.function, conditions and loops while tracing, Python functions as ops."""
import collections
import copy
import gc
import threading
import time
import weakref

import numpy as np
import pytest

import plimsoll.tf as tf
from plimsoll import _core
from plimsoll.tf._graph import trace as _trace


def test_a_function_is_traced_once_for_each_signature():
    traces = []

    @tf.function
    def double(x):
        traces.append((x.dtype.name, x.shape.as_list()))
        return x + x

    assert int(double(tf.constant(1))) == 2 and int(double(tf.constant(5))) == 10
    assert double(tf.constant([1.0])).numpy().tolist() == [2.0]
    assert double(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    assert double(tf.constant([3.0])).numpy().tolist() == [6.0]
    assert traces == [("int32", []), ("float32", [1]), ("float32", [2])]
    assert double.experimental_get_tracing_count() == 3


def test_tensors_and_other_arguments_are_told_apart():
    @tf.function
    def f(a, b=1, *more):
        return a + b + sum(more)

    one, two = tf.constant(1), tf.constant(2)
    for _ in range(2):
        assert int(f(one)) == 2 and int(f(one, two)) == 3 and int(f(one, 5)) == 6
        assert int(f(one, two, two)) == 5 and int(f(b=one, a=two)) == 3
    assert f.experimental_get_tracing_count() == 4

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def g(x):
        return x * 2

    for _ in range(2):
        assert g(tf.constant([1.0])).numpy().tolist() == [2.0]
        with pytest.raises(TypeError):
            g(tf.constant([1]))


def test_python_values_are_part_of_the_signature():
    traces = []

    @tf.function
    def scale(x, by, flag=True):
        traces.append((by, flag))
        return x * by if flag else x

    x = tf.constant(2)
    assert int(scale(x, 3)) == 6 and int(scale(x, 3)) == 6 and int(scale(x, by=3)) == 6
    assert int(scale(x, 4)) == 8 and int(scale(x, 4, False)) == 2
    assert int(scale(x, 4, 1)) == 8
    assert traces == [(3, True), (4, True), (4, False), (4, 1)]


def test_arrays_are_tensors_and_do_not_trace_anew():
    traces = []

    @tf.function
    def f(x):
        traces.append(x)
        return x * 2

    assert f(np.array([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    assert f(np.array([3.0, 4.0])).numpy().tolist() == [6.0, 8.0]
    assert len(traces) == 1 and f(np.float32(2)).dtype == tf.float32


def test_structures_go_in_and_out():
    Pair = collections.namedtuple("Pair", ["a", "b"])

    @tf.function
    def f(tree, *more, **named):
        return Pair(tree["x"] + more[0], {"y": [named["z"] * 2, None]}), 7

    pair, seven = f({"x": tf.constant(1)}, tf.constant(10), z=tf.constant(3))
    assert isinstance(pair, Pair) and int(pair.a) == 11 and int(pair.b["y"][0]) == 6
    assert pair.b["y"][1] is None and isinstance(seven, tf.Tensor) and int(seven) == 7


def test_a_function_may_give_nothing():
    assert tf.function(lambda: None)() is None
    with pytest.raises(TypeError, match="zero or more Tensors"):
        tf.function(lambda: object())()


def test_a_function_may_give_its_argument_and_what_is_around_it():
    around = tf.constant([1.0, 2.0])
    f = tf.function(lambda x: (x, around, around + x))
    x = tf.constant(1.0)
    given, same, added = f(x)
    assert float(given) == 1.0 and same.numpy().tolist() == [1.0, 2.0]
    assert added.numpy().tolist() == [2.0, 3.0]


def test_methods_are_traced_for_each_object():
    class Scale:
        def __init__(self, by):
            self.by, self.traces = by, 0

        @tf.function
        def __call__(self, x):
            self.traces += 1
            return x * self.by

    two, three = Scale(2), Scale(3)
    assert int(two(tf.constant(5))) == 10 and int(three(tf.constant(5))) == 15
    assert int(two(tf.constant(6))) == 12 and two.traces == three.traces == 1
    gone = weakref.ref(two)
    del two
    gc.collect()
    assert gone() is None


def test_an_input_signature_is_one_trace_for_all_that_fits():
    traces = []

    @tf.function(input_signature=(tf.TensorSpec(shape=[None], dtype=tf.int32),))
    def next_collatz(x):
        traces.append(x)
        return tf.where(x % 2 == 0, x // 2, 3 * x + 1)

    assert next_collatz(tf.constant([1, 2])).numpy().tolist() == [4, 1]
    assert next_collatz([3]).numpy().tolist() == [10] and len(traces) == 1
    with pytest.raises(TypeError):
        next_collatz(tf.constant([[1, 2], [3, 4]]))
    with pytest.raises(TypeError):
        next_collatz(tf.constant([1.0, 2.0]))
    assert len(traces) == 1
    with pytest.raises(TypeError, match="input_signature"):
        tf.function(lambda x: x, input_signature=tf.TensorSpec([]))


def test_a_concrete_function_is_one_trace():
    @tf.function
    def add(a, b):
        return a + b

    concrete = add.get_concrete_function(
        tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.float32, name="b")
    )
    assert concrete(tf.constant([1.0, 2.0]), tf.constant(1.0)).numpy().tolist() == [2.0, 3.0]
    assert concrete.structured_outputs == tf.TensorSpec([None], tf.float32)
    assert len(concrete.inputs) == 2 and concrete.structured_input_signature[1] == {}
    with pytest.raises(TypeError):
        concrete(tf.constant([1, 2]), tf.constant(1.0))
    assert add.experimental_get_tracing_count() == 1


def test_python_values_are_bound_in_concrete_functions():
    @tf.function
    def power(a, b):
        return a**b

    square = power.get_concrete_function(a=tf.TensorSpec(None, tf.float32), b=2)
    assert float(square(tf.constant(10.0))) == 100.0


def test_retracing_is_reduced_where_that_is_asked_for():
    traces = []

    @tf.function(reduce_retracing=True)
    def f(x):
        traces.append(x.shape.as_list())
        return tf.reduce_sum(x)

    for n in (1, 2, 3, 4):
        assert float(f(tf.ones([n]))) == n
    assert traces == [[1], [None]]


def test_functions_run_in_python_where_that_is_said():
    calls = []

    @tf.function
    def f(x):
        calls.append(x.numpy())
        return x

    tf.config.run_functions_eagerly(True)
    try:
        f(tf.constant(1)), f(tf.constant(2))
    finally:
        tf.config.run_functions_eagerly(False)
    assert calls == [1, 2] and not tf.config.functions_run_eagerly()


def test_a_function_that_needs_values_runs_in_python_and_says_so_once(capfd):
    @tf.function
    def absolute(x):
        if x < 0:
            return -x
        return x

    assert [int(absolute(tf.constant(v))) for v in (-3, 3, -4)] == [3, 3, 4]
    told = capfd.readouterr().err
    assert told.count("runs in Python") == 1 and "absolute" in told


def test_a_function_that_asks_for_elements_gets_others_each_time(capfd):
    iterator = iter(tf.data.Dataset.range(5))

    @tf.function
    def ten_times(iterator):
        return next(iterator) * 10

    assert [int(ten_times(iterator)) for _ in range(3)] == [0, 10, 20]
    assert "runs in Python" in capfd.readouterr().err


def test_random_ops_draw_anew_at_each_call():
    draw = tf.function(lambda: tf.random.normal([4]))
    assert draw().numpy().tolist() != draw().numpy().tolist()


def test_functions_call_functions():
    inner = tf.function(lambda x: x * 2)
    outer = tf.function(lambda x: inner(x) + inner(x + 1))
    assert int(outer(tf.constant(3))) == 14


def test_a_function_made_inside_of_another_sees_its_tensors():
    @tf.function
    def outer(x):
        return tf.function(lambda y: x * y)(tf.constant(10))

    assert int(outer(tf.constant(3))) == 30 and int(outer(tf.constant(4))) == 40


def test_a_traced_function_in_a_graph_is_part_of_it():
    double = tf.function(lambda x: x * 2)
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [])
        y = double(x) + 1
        with tf.compat.v1.Session() as session:
            assert session.run(y, {x: 3.0}) == 7.0


def test_a_function_sees_the_variables_of_the_graph_that_it_is_called_in():
    held = {}
    double = tf.function(lambda: held["v"] * 2)
    for start in (1.0, 10.0):
        with tf.Graph().as_default():
            held["v"] = tf.Variable(start)
            y = double()
            with tf.compat.v1.Session() as session:
                session.run(held["v"].initializer)
                assert session.run(y) == 2 * start


def test_errors_while_tracing_are_the_users_own():
    @tf.function
    def wrong(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        wrong(tf.constant(1))
    with pytest.raises(TypeError, match="missing"):
        tf.function(lambda a, b: a)(tf.constant(1))


def test_a_function_that_nobody_has_is_freed():
    f = tf.function(lambda x: x * tf.constant([1.0]))
    f(tf.constant([2.0])).numpy()
    graph = weakref.ref(f.get_concrete_function(tf.constant([2.0])).graph)
    del f
    gc.collect()
    assert graph() is None


def test_a_function_with_effects_that_nobody_has_is_freed(capfd):
    v = tf.Variable([1.0])

    @tf.function
    def f(x):
        tf.print("x", x, {"v": v})
        tf.debugging.assert_positive(x)
        tf.debugging.assert_less(x, 10.0)
        tf.debugging.Assert(tf.reduce_all(x < 10.0), [x])
        tf.py_function(lambda value: None, [x], [])
        return tf.debugging.check_numerics(v.assign_add(x) + 0, "bad")

    f(tf.constant([2.0])).numpy()
    graph = weakref.ref(f.get_concrete_function(tf.constant([2.0])).graph)
    del f
    gc.collect()
    assert graph() is None and "x [2] {'v': [1]}" in capfd.readouterr().err


# ---- variables ----


def test_variables_are_read_and_assigned_to_at_each_call():
    v = tf.Variable(1.0)

    @tf.function
    def step(x):
        v.assign_add(x)
        v.assign(v * 2)
        return v + 0

    assert float(step(tf.constant(1.0))) == 4.0 and float(v) == 4.0
    v.assign(10.0)
    assert float(step(tf.constant(1.0))) == 22.0 and float(v) == 22.0
    assert step.experimental_get_tracing_count() == 1


def test_a_variable_that_is_made_in_a_function_is_made_once():
    class Count(tf.Module):
        def __init__(self):
            super().__init__()
            self.n = None

        @tf.function
        def __call__(self):
            if self.n is None:
                self.n = tf.Variable(0)
            return self.n.assign_add(1)

    count = Count()
    assert [int(count()) for _ in range(3)] == [1, 2, 3]
    with pytest.raises(ValueError, match="singleton"):
        tf.function(lambda x: tf.Variable(1.0) + x)(tf.constant(1.0))


def test_variables_are_arguments_by_identity():
    traces = []

    @tf.function
    def bump(v):
        traces.append(v)
        return v.assign_add(1.0) + 0

    a, b = tf.Variable(1.0), tf.Variable(10.0)
    assert [float(bump(v)) for v in (a, b, a)] == [2.0, 11.0, 3.0] and len(traces) == 2


def test_variables_are_assigned_in_branches_and_loops():
    v = tf.Variable(0)

    @tf.function
    def f(n):
        tf.cond(n > 0, lambda: v.assign_add(100), lambda: v.assign(-1))
        tf.while_loop(lambda i: i < n, lambda i: (v.assign_add(1), i + 1)[1:], [tf.constant(0)])
        return v + 0

    assert int(f(tf.constant(3))) == 103 and int(v) == 103
    assert int(f(tf.constant(-3))) == -1


# ---- conditions and loops ----


def test_a_condition_runs_one_branch():
    ran = []

    @tf.function
    def f(x):
        note = lambda what: tf.py_function(lambda: ran.append(what), [], [])
        return tf.cond(x > 0, lambda: (note("yes"), x * 2)[1], lambda: (note("no"), x - 1)[1])

    assert int(f(tf.constant(2))) == 4 and int(f(tf.constant(-2))) == -3
    assert ran == ["yes", "no"]


def test_branches_see_what_is_around_them_and_nest():
    @tf.function
    def sign(x, y):
        scale = y * 10
        return tf.cond(
            x > 0,
            lambda: scale,
            lambda: tf.cond(x < 0, lambda: -scale, lambda: tf.zeros_like(scale)),
        )

    y = tf.constant(2)
    assert [int(sign(tf.constant(v), y)) for v in (5, -5, 0)] == [20, -20, 0]


def test_a_loop_sums_while_it_is_traced():
    @tf.function
    def total(n, step):
        _, s = tf.while_loop(
            lambda i, s: i < n, lambda i, s: (i + 1, s + i * step), (tf.constant(0), tf.constant(0))
        )
        return s

    assert int(total(tf.constant(5), tf.constant(2))) == 20
    assert int(total(tf.constant(0), tf.constant(2))) == 0


def test_a_traced_loop_takes_no_more_than_it_may():
    f = tf.function(
        lambda n: tf.while_loop(lambda i: i < n, lambda i: [i + 1], [n * 0], maximum_iterations=4)
    )
    assert int(f(tf.constant(100))[0]) == 4 and int(f(tf.constant(2))[0]) == 2


def test_map_fn_over_known_and_unknown_lengths():
    assert tf.map_fn(lambda x: x * x, tf.constant([1, 2, 3])).numpy().tolist() == [1, 4, 9]
    pairs = tf.map_fn(
        lambda p: (p[0] + p[1], p[0] * 2), (tf.constant([1, 2]), tf.constant([3, 4]))
    )
    assert [p.numpy().tolist() for p in pairs] == [[4, 6], [2, 4]]

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def sums(x):
        return tf.map_fn(lambda row: tf.reduce_sum(row), x)

    assert sums(tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).numpy().tolist() == [3, 7, 11]
    with pytest.raises(TypeError, match="fn_output_signature"):
        tf.map_fn(lambda x: x * 2.0, tf.constant([1.0]), fn_output_signature=tf.int32)
    with pytest.raises(ValueError, match="1. dimensional"):
        tf.map_fn(lambda x: x, tf.constant(1))


def test_folds_and_scans():
    x = tf.constant([1, 2, 3, 4])
    assert int(tf.foldl(lambda a, b: a * 10 + b, x)) == 1234
    assert int(tf.foldr(lambda a, b: a * 10 + b, x)) == 4321
    assert int(tf.foldl(lambda a, b: a + b, x, initializer=100)) == 110
    assert tf.scan(lambda a, b: a + b, x).numpy().tolist() == [1, 3, 6, 10]
    assert tf.scan(lambda a, b: a + b, x, initializer=100).numpy().tolist() == [101, 103, 106, 110]
    assert tf.scan(lambda a, b: a + b, x, reverse=True).numpy().tolist() == [10, 9, 7, 4]


# ---- Python functions ----


def test_a_python_function_gets_eager_tensors():
    def log(x):
        assert isinstance(x, tf.Tensor) and x.graph is None
        return tf.constant(float(np.log(x.numpy())), tf.float32)

    x = tf.constant(np.e)
    assert abs(float(tf.py_function(log, [x], tf.float32)) - 1) < 1e-6
    traced = tf.function(lambda x: tf.py_function(log, [x], tf.float32))
    assert abs(float(traced(x)) - 1) < 1e-6


def test_a_numpy_function_gets_arrays():
    def f(x, y):
        assert type(x) is np.ndarray
        return x + y, np.float32(x.sum())

    x = tf.constant([1.0, 2.0])
    total, one = tf.numpy_function(f, [x, x], [tf.float32, tf.float32])
    assert total.numpy().tolist() == [2.0, 4.0] and float(one) == 3.0
    traced = tf.function(lambda x: tf.numpy_function(f, [x, x], [tf.float32, tf.float32]))
    assert traced(x)[0].numpy().tolist() == [2.0, 4.0]


@pytest.mark.parametrize("traced", [False, True])
def test_a_python_function_has_to_give_what_it_said(traced):
    def run(fn, said):
        call = lambda x: tf.py_function(fn, [x], said)
        made = (tf.function(call) if traced else call)(tf.constant(1))
        return [t.numpy() for t in tf.nest.flatten(made)]

    assert run(lambda x: 2, tf.float32) == [2.0]
    assert run(lambda x: [1, 2.5], [tf.int32, tf.float32]) == [1, 2.5]
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(lambda x: tf.constant(1.0), tf.int32)
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        run(lambda x: [1, 2, 3], [tf.int32, tf.int32])


def test_what_a_python_function_raises_arrives_with_its_traceback():
    def fails(x):
        raise ValueError("too large")

    with pytest.raises(ValueError, match="too large"):
        tf.py_function(fails, [tf.constant(1)], tf.int32)
    traced = tf.function(lambda x: tf.py_function(fails, [x], tf.int32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="too large") as caught:
        traced(tf.constant(1)).numpy()
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError) and cause.__traceback__ is not None


def test_effects_happen_in_their_order_at_each_call():
    done = []

    @tf.function
    def f(x):
        for i in range(5):
            tf.py_function(lambda v, i=i: done.append((i, int(v))), [x], [])
        return x

    f(tf.constant(1)), f(tf.constant(2))
    assert done == [(i, x) for x in (1, 2) for i in range(5)]


def test_printing(capfd):
    x = tf.constant([[1.5, 2.0], [3.0, 4.0]])
    tf.print("x:", x, tf.constant("text"), {"a": tf.constant(1)}, sep="|")
    tf.print(tf.range(10), summarize=2)
    tf.print(tf.range(4), summarize=-1, end="!\n")
    tf.print(tf.constant(["a", "b"]), tf.constant(True))
    assert capfd.readouterr().err == (
        "x:|[[1.5 2]\n [3 4]]|text|{'a': 1}\n[0 1 ... 8 9]\n[0 1 2 3]!\n[\"a\" \"b\"] 1\n"
    )
    traced = tf.function(lambda x: tf.print("sum", tf.reduce_sum(x)))
    traced(x), traced(x * 2)
    assert capfd.readouterr().err == "sum 10.5\nsum 21\n"
    with pytest.raises(ValueError):
        tf.print("x", output_stream="nowhere")
    with pytest.raises(ValueError):
        tf.print("x", colour="red")


# ---- for datasets ----


def test_a_trace_becomes_a_function_of_its_inputs():
    v = tf.Variable(2)
    traced = _trace.trace(lambda x: {"y": x * v}, [tf.TensorSpec([], tf.int32)])
    assert int(traced.bound()(tf.constant(5))[0]) == 10
    v.assign(3)
    assert int(traced.bound()(tf.constant(5))[0]) == 15
    assert list(traced.pack([7])) == ["y"]


def test_effects_that_no_output_hangs_on_happen_too():
    seen = []

    def noting(x):
        tf.py_function(lambda v: seen.append(int(v)), [x], [])
        return x + 1, x * 2

    bound = _trace.trace(noting, [tf.TensorSpec([], tf.int32)]).bound()
    made = bound(tf.constant(4))
    _core.evaluate(made)
    assert [int(t) for t in made] == [5, 8] and seen == [4]


def test_a_trace_that_assigns_is_not_for_datasets():
    v = tf.Variable(1)
    traced = _trace.trace(lambda x: v.assign_add(x) + 0, [tf.TensorSpec([], tf.int32)])
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        traced.bound()



def test_a_list_among_the_inputs_of_a_python_function_is_one_tensor():
    shapes = tf.numpy_function(lambda a, b: np.array([a.size, b.size]), [[1.0, 2.0], 3.0], tf.int64)
    assert shapes.numpy().tolist() == [2, 1]
    seen = []
    tf.py_function(lambda *values: seen.extend(v.shape.as_list() for v in values), [[1, 2], [[3]]], [])
    assert seen == [[2], [1, 1]]


def test_a_branch_that_is_known_gives_tensors_in_a_graph():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = tf.cond(tf.constant(False), lambda: 1, lambda: 2)
        chosen = tf.switch_case(tf.constant(1), [lambda: (1, "a"), lambda: (2, "b")])
        assert session.run(made) == 2 and session.run(chosen) == (2, b"b")


@pytest.mark.parametrize("default", [None, lambda: tf.constant(-1)])
def test_a_case_in_which_nothing_holds(default):
    @tf.function
    def choose(x):
        pairs = [(x < 0, lambda: tf.constant(0)), (x > 10, lambda: tf.constant(1))]
        return tf.case(pairs, default=default)

    assert choose(tf.constant(-3)).numpy() == 0 and choose(tf.constant(30)).numpy() == 1
    if default:
        assert choose(tf.constant(3)).numpy() == -1
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match="None of the conditions"):
            choose(tf.constant(3)).numpy()


def test_a_case_in_which_two_hold():
    def choose(x, exclusive):
        pairs = [(x > 0, lambda: tf.constant(0)), (x > 10, lambda: tf.constant(1))]
        return tf.case(pairs, default=lambda: tf.constant(-1), exclusive=exclusive)

    run = tf.function(choose)
    assert run(tf.constant(5), True).numpy() == 0 and run(tf.constant(20), False).numpy() == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="More than one"):
        run(tf.constant(20), True).numpy()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.int32, [])
        chosen = choose(x, True)
        assert session.run(chosen, {x: 5}) == 0
        with pytest.raises(tf.errors.InvalidArgumentError, match="More than one"):
            session.run(chosen, {x: 20})


def test_threads_that_call_at_once_trace_once():
    begun = threading.Barrier(8)

    @tf.function
    def slow(x):
        time.sleep(0.05)
        return x + 1

    results = []

    def work():
        begun.wait()
        results.append(int(slow(tf.constant(1))))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [2] * 8 and slow.experimental_get_tracing_count() == 1


def test_a_deep_copy_is_a_function_of_its_own():
    class Scaled(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(2.0)
            self.run = tf.function(self._run)

        def _run(self, x):
            return x * self.v

    first = Scaled()
    assert float(first.run(tf.constant(3.0))) == 6.0
    second = copy.deepcopy(first)
    second.v.assign(10.0)
    assert float(second.run(tf.constant(3.0))) == 30.0 and float(first.run(tf.constant(3.0))) == 6.0


@pytest.mark.parametrize("call", [tf.py_function, tf.numpy_function])
def test_set_shape_tells_the_shape_of_what_python_gives(call):
    @tf.function
    def picture(x):
        y = call(lambda a: np.ones([4, 6, 3], np.float32) * np.float32(a), [x], tf.float32)
        assert y.shape.rank is None
        y.set_shape([None, None, 3])
        return tf.image.resize(y, [2, 2])

    assert picture.get_concrete_function(tf.TensorSpec([], tf.float32)).output_shapes == [2, 2, 3]
    assert picture(tf.constant(2.0)).numpy().tolist() == np.full([2, 2, 3], 2.0).tolist()


def test_a_py_function_may_give_arrays_of_another_dtype_of_its_kind():
    twice = tf.function(lambda x: tf.py_function(lambda y: y.numpy() * np.int64(2), [x], tf.int32))
    assert twice(tf.constant(3)).numpy() == 6 and twice(tf.constant(3)).dtype == tf.int32
    assert tf.py_function(lambda: np.array([0.5]), [], tf.float32).dtype == tf.float32
    with pytest.raises(tf.errors.InvalidArgumentError, match="0-th value returned by .* int32"):
        tf.py_function(lambda: np.array([0.5]), [], tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is int64, but expects int32"):
        tf.numpy_function(lambda: np.array([1]), [], tf.int32)


def test_a_failed_assertion_says_what_failed_and_no_more():
    checked = tf.function(lambda x: tf.debugging.assert_positive(x) or x)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        checked(tf.constant([-1]))
    assert caught.value.message == "Condition x > 0 did not hold element-wise: x = [-1]"


def test_a_shape_that_was_told_wrong_is_told_with_who_gave_it():
    @tf.function
    def wrong(x):
        y = tf.numpy_function(lambda _: np.ones(3, np.float32), [x], tf.float32)
        y.set_shape([2])
        return y + 1.0

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'py_function' is .*\[2\].*\[3\]"):
        wrong(tf.constant(1.0))
