# SPDX-License-Identifier: Apache-2.0
"""What changes in a session's run, and when: variables, iterators, random ops, Python functions."""
import contextlib
import sys

import numpy as np
import pytest

import plimsoll.tf as tf
from plimsoll.tf._graph import session as _session

v1 = tf.compat.v1


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as session:
        yield session


def variable(session, value=1):
    made = tf.Variable(value)
    session.run(made.initializer)
    return made


class Counter:
    """A Python function that counts its calls; `log` is shared by those that are made of it."""

    def __init__(self, log=None, name="f"):
        self.log, self.name = [] if log is None else log, name

    def node(self, *inputs):
        def call(*values):
            self.log.append(self.name)
            return len(self.log)

        return tf.py_function(call, list(inputs), tf.int32)


# ---- variables ----


def test_a_read_is_of_before_the_run_however_often_it_assigns(session):
    v = variable(session)
    y = v.read_value()
    a = v1.assign(v, 10)
    with tf.control_dependencies([a]):
        b = v1.assign(v, 20)
    assert session.run([y, b]) == [1, 20] and session.run(v) == 20
    session.run(v.initializer)
    assert session.run([b, y, a]) == [20, 1, 10] and session.run(v) == 20


def test_a_read_behind_an_assignment_sees_that_one_and_none_that_is_later(session):
    v = variable(session)
    a = v.assign(10)
    with tf.control_dependencies([a]):
        seen = v.read_value()
    with tf.control_dependencies([seen]):
        b = v.assign_add(1)
    with tf.control_dependencies([b]):
        last = v + 0
    assert session.run([v, seen, b, last]) == [1, 10, 11, 11]
    assert session.run([last, seen]) == [11, 10] and session.run(v) == 11


def test_assignments_that_do_not_wait_happen_as_they_were_made(session):
    v = variable(session, 3)
    double, ten, add = v.assign(v * 2), v.assign(10), v.assign_add(5)
    assert session.run([add, double]) == [11, 6]  # v * 2 is made of a read: of before the run
    assert session.run([add, ten, double]) == [15, 10, 22] and session.run(v) == 15
    assert session.run([add, add, add]) == [20, 20, 20]  # one op, run once


def test_updates_change_what_the_assignment_before_gave(session):
    v = variable(session, [1, 2, 3])
    more, part, less = v.assign_add([10, 10, 10]), v[1].assign(7), v.assign_sub([1, 1, 1])
    scattered = v.scatter_nd_add([[0]], [100])
    got = session.run([scattered, less, part, more])
    assert [g.tolist() for g in got] == [[110, 6, 12], [10, 6, 12], [11, 7, 13], [11, 12, 13]]
    assert session.run(v).tolist() == [110, 6, 12]


def test_an_update_waits_for_what_it_is_put_behind(session):
    v = variable(session)
    with tf.control_dependencies([v.assign(100)]):
        add = v.assign_add(1)
    assert session.run(add) == 101 and session.run(v) == 101


def test_an_update_behind_a_fed_assignment_changes_what_was_fed(session):
    v = variable(session)
    assign = v.assign(100)
    with tf.control_dependencies([assign]):
        add = v.assign_add(1)
    assert session.run(add, {assign: 7}) == 8 and session.run(v) == 8
    assert session.run(v.assign_add(1), {v: 50}) == 51


def test_an_update_in_the_run_of_the_initializer_needs_no_value_before(session):
    v = tf.Variable(1)
    init, add = v.initializer, v.assign_add(5)
    assert session.run([init, add]) == [None, 6] and session.run(v) == 6


def test_a_run_that_fails_leaves_every_variable_as_it_was(session):
    v, w = variable(session), variable(session)
    x = v1.placeholder(tf.int32, [])
    first, second = v.assign(5), w.assign_add(5)
    with tf.control_dependencies([tf.debugging.assert_positive(x)]):
        third = v.assign_add(x)
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run([first, second, third], {x: -1})
    assert session.run([v, w]) == [1, 1]
    assert session.run([first, second, third], {x: 1}) == [5, 6, 6]


def test_a_value_of_another_shape_is_not_assigned(session):
    v, w = variable(session, [1, 2]), variable(session)
    x = v1.placeholder(tf.int32, None)
    both = [w.assign(9), v.assign(x)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shape mismatch"):
        session.run(both, {x: [3, 4, 5]})
    assert session.run(v).tolist() == [1, 2] and session.run(w) == 1


def test_an_update_is_computed_in_parts_within_a_small_budget(run_python):
    text = """
import numpy as np, plimsoll.tf as tf
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    v = tf.Variable(tf.zeros([1 << 20]))
    adds = [v.assign_add(tf.fill([1 << 20], float(i))) for i in range(20)]
    session.run(v.initializer)
    print([int(total) for total in session.run([tf.reduce_sum(v), tf.reduce_sum(adds[3])])])
    session.run([add.op for add in adds])
    print(np.unique(session.run(v)))
"""
    out = run_python(text, PLIMSOLL_BUDGET="48M")
    assert out.splitlines() == ["[0, 3145728]", "[193.]"]


# ---- what is stateful ----


def test_a_python_function_runs_once_in_a_run_that_assigns_often(session):
    v, f = variable(session, 0), Counter()
    p = f.node()
    got = session.run([v.assign_add(p), v.assign_add(p), v.assign(p * 100), p])
    assert got == [1, 2, 100, 1] and len(f.log) == 1


def test_a_random_op_is_drawn_once_in_a_run_that_assigns_often(session):
    v, w = variable(session, 0.0), variable(session, 0.0)
    r = tf.random.uniform([])
    a, b, c, once = session.run([v.assign(r), v.assign_add(r), w.assign(r), r])
    assert a == c == once and b == once + once
    assert session.run(r) != once


def test_an_iterator_gives_one_element_in_a_run_that_assigns_often(session):
    v = variable(session, np.int64(0))
    iterator = v1.data.make_one_shot_iterator(tf.data.Dataset.range(1, 10))
    x = iterator.get_next()
    both = [v.assign_add(x), v.assign_add(x * 10)]
    assert session.run(both) == [1, 11] and session.run(both) == [13, 33]


def test_what_is_only_waited_for_happens(session):
    f = Counter()
    with tf.control_dependencies([f.node()]):
        c = tf.constant(7)
    iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(5, 9))
    with tf.control_dependencies([iterator.initializer]):
        x = iterator.get_next()
    with tf.control_dependencies([x]):
        d = tf.constant(8)
    assert session.run(c) == 7 and len(f.log) == 1
    assert session.run(x) == 5 and session.run(d) == 8  # each begins anew
    assert session.run(iterator.get_next()) == 6


def test_effects_happen_as_they_were_made_whatever_is_fetched_first(session):
    log = []
    a = Counter(log, "a").node()
    b = Counter(log, "b").node(a)
    with tf.control_dependencies([b]):
        c = Counter(log, "c").node()
    d = Counter(log, "d").node()
    session.run([d, c])
    assert log == ["a", "b", "c", "d"]
    log.clear()
    session.run([d, b, a])
    assert log == ["a", "b", "d"]


def test_effects_in_branches_are_in_that_order_too(session):
    log = []
    p = v1.placeholder(tf.bool, [])
    first = Counter(log, "first").node()
    first = Counter(log, "second").node(first)
    chosen = tf.cond(p, lambda: Counter(log, "yes").node(), lambda: Counter(log, "no").node())
    with tf.control_dependencies([chosen]):
        last = Counter(log, "last").node()
    session.run([last, first], {p: True})
    assert log == ["first", "second", "yes", "last"]
    session.run(last, {p: False})
    assert log[4:] == ["no", "last"]


def test_an_eager_random_tensor_is_one_value_and_a_graphs_is_drawn_anew():
    eager = tf.random.uniform([2])
    with tf.Graph().as_default(), v1.Session() as session:
        same, other = eager + 0, tf.random.uniform([2])
        one, two = session.run([same, other]), session.run([same, other])
    assert one[0].tolist() == two[0].tolist() == eager.numpy().tolist()
    assert one[1].tolist() != two[1].tolist()


def test_what_is_fed_may_hang_on_a_placeholder_with_a_default(session):
    x = v1.placeholder_with_default(1, [])
    y = x + 1
    assert session.run([y * 2, x], {y: 5}) == [10, 1]
    z = v1.placeholder_with_default(x * 3, [])
    assert session.run([z, x]) == [3, 1] and session.run([z, x], {x: 5}) == [15, 5]
    r = v1.placeholder_with_default(tf.random.uniform([]), [])
    one, same = session.run([r, r + 0])
    assert one == same


# ---- in branches, loops and functions ----


def test_a_branch_assigns_to_a_graphs_variable(session):
    v, p = variable(session), v1.placeholder(tf.bool, [])
    before = v.read_value()
    made = tf.cond(p, lambda: v.assign_add(5), lambda: v.assign(100))
    with tf.control_dependencies([made]):
        after = v.read_value()
    assert session.run([made, before, after], {p: True}) == [6, 1, 6]
    assert session.run([after, before], {p: False}) == [100, 6] and session.run(v) == 100


def test_a_branch_that_gives_nothing_is_an_operation(session):
    v, p, log = variable(session), v1.placeholder(tf.bool, []), []
    step = tf.cond(p, lambda: tf.group(v.assign_add(5)), lambda: tf.no_op())
    assert session.run(step, {p: True}) is None and session.run(v) == 6
    assert session.run(step, {p: False}) is None and session.run(v) == 6
    said = tf.cond(p, lambda: tf.group(Counter(log, "yes").node()), lambda: None)
    session.run(said, {p: True})
    session.run(said, {p: False})
    assert log == ["yes"]


def test_branches_change_what_the_assignment_before_them_gave(session):
    v, p = variable(session), v1.placeholder(tf.bool, [])
    first = v.assign_add(10)
    made = tf.cond(p, lambda: v.assign(v * 2), lambda: v.assign_add(1))
    last = v.assign_add(100)
    assert session.run([last, made, first], {p: True}) == [122, 22, 11]
    assert session.run([made, last], {p: False}) == [123, 223] and session.run(v) == 223


def test_a_loop_assigns_to_a_graphs_variable(session):
    v, n = variable(session), v1.placeholder(tf.int32, [])

    def body(i):
        v.assign_add(i)
        return tf.cond(v > 3, lambda: i + 2, lambda: i + 1)

    last = tf.while_loop(lambda i: i < n, body, [tf.constant(0)])[0]
    assert session.run(last, {n: 6}) == 6 and session.run(v) == 1 + 0 + 1 + 2 + 4
    assert session.run(last, {n: 0}) == 0 and session.run(v) == 8


def test_a_function_assigns_to_the_variables_of_the_graph_that_it_is_called_in(session):
    v = variable(session)

    @tf.function
    def f(x):
        v.assign_add(x)
        return v * 2

    one, two = f(tf.constant(3)), f(tf.constant(10))
    assert session.run(two) == 22 and session.run(v) == 11
    assert session.run([two, one]) == [48, 28] and session.run(v) == 24
    with tf.control_dependencies([v.assign(0)]):
        three = f(tf.constant(1))
    assert session.run(three) == 2 and f.experimental_get_tracing_count() == 1


def test_what_a_function_passes_on_assigns_nothing_by_itself(session):
    v, x = variable(session), v1.placeholder(tf.int32, [])

    @tf.function
    def f(x):
        v.assign_add(x)
        return x

    made = f(x)
    assert session.run(x, {x: 5}) == 5 and session.run(v) == 1
    assert session.run(made, {x: 5}) == 5 and session.run(v) == 6


def test_a_read_waits_for_a_function_that_has_constants(session):
    v = variable(session)
    made = tf.function(lambda x: x + np.int32(5))(tf.constant(1))
    with tf.control_dependencies([made]):
        read = v.read_value()
    assert session.run([read, made]) == [1, 6]


def test_a_read_waits_for_the_default_of_a_placeholder(session):
    v = variable(session)
    default = v1.placeholder_with_default(v.assign(10), [])
    with tf.control_dependencies([default]):
        read = v.read_value()
    assert session.run(read) == 10


def test_a_branch_uses_a_constant_that_waits(session):
    f = Counter()
    with tf.control_dependencies([f.node()]):
        c = tf.constant(5)
    made = tf.cond(v1.placeholder_with_default(True, []), lambda: c + 1, lambda: c)
    assert session.run(made) == 6 and len(f.log) == 1


def test_a_constant_that_a_branch_uses_can_be_fed(session):
    c, p = tf.constant(5), v1.placeholder_with_default(True, [])
    made = tf.cond(p, lambda: tf.cond(p, lambda: c + 1, lambda: c), lambda: c)
    assert session.run([made, tf.function(lambda: c * 2)()], {c: 7}) == [8, 14]
    assert session.run(made) == 6


def test_what_a_function_makes_nothing_of_is_run_too(session):
    v, f = variable(session), Counter()
    made = tf.function(lambda x, y, z: y + 1)(v.assign(5), tf.constant(2), f.node())
    assert session.run(made) == 3 and session.run(v) == 5 and len(f.log) == 1


@contextlib.contextmanager
def at_each_line(act):
    """Calls `act` wherever another thread could come in between, in the code of sessions."""

    def look(frame, event, _):
        if event == "line":
            act()
        return look if frame.f_code.co_filename == _session.__file__ else None

    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(None)


def test_a_run_sees_all_that_another_assigned_or_nothing(session):
    variables = [variable(session, 0) for _ in range(3)]
    step, seen = tf.group(*[v.assign_add(1) for v in variables]), []
    with at_each_line(lambda: session.run(step)):
        seen.append(session.run(variables))
    with at_each_line(lambda: seen.append(session.run(variables))):
        session.run(step)
    assert len(seen) > 10 and all(len(set(values)) == 1 for values in seen), seen


def test_a_run_that_ends_after_its_session_was_closed_keeps_nothing(session):
    v = variable(session)
    closing = tf.py_function(lambda: session.close() or 5, [], tf.int32)
    assert session.run(v.assign(closing)) == 5
    assert not session.has_variable(v)


def iterator_over(*limits):
    return v1.data.make_one_shot_iterator(tf.data.Dataset.range(*limits))


def test_branches_and_functions_take_elements_in_order_wanted_or_not(session):
    p, one, other = v1.placeholder(tf.bool, []), iterator_over(0, 10), iterator_over(10, 20)

    def second(iterator):
        iterator.get_next()
        return iterator.get_next()

    chosen = tf.cond(p, lambda: second(one), lambda: other.get_next())
    with tf.control_dependencies([chosen]):
        waited = tf.constant(7)
    assert session.run(chosen, {p: True}) == 1 and session.run(chosen, {p: False}) == 10
    assert session.run(waited, {p: True}) == 7 and session.run(waited, {p: False}) == 7
    both = tf.function(lambda: (second(one), other.get_next()))()
    assert session.run(both) == (5, 12)
