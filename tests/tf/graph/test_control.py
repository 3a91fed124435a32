# SPDX-License-Identifier: Apache-2.0
"""What stands between graphs: conditions, loops, Python functions, parsers."""
import gc
import struct
import threading
import traceback

import numpy as np
import pytest
from plimsoll import _core, errors

from trace import Trace, traced


def constant(value, dtype=np.float32):
    return _core.constant(np.asarray(value, dtype))


F = ("float32", [])


# ---- cond ----


def choose(pred, x):
    yes = traced(lambda v: v * 2.0, ("float32", None))
    no = traced(lambda v: v - 1.0, ("float32", None))
    return _core.cond(pred, yes, no, [x])[0]


@pytest.mark.parametrize("value, result", [(True, 6), (False, 2)])
def test_one_of_two_functions_is_run(value, result):
    assert float(choose(constant(value, bool), constant(3.0))) == result


def test_only_the_one_that_is_chosen_is_run():
    called = []

    def note(name):
        return lambda v: called.append(name) or [v.numpy()]

    yes = traced(lambda v: _core.python_call(note("yes"), [v], [F]), F)
    no = traced(lambda v: _core.python_call(note("no"), [v], [F]), F)
    _core.cond(constant(False, bool), yes, no, [constant(1.0)])[0].numpy()
    assert called == ["no"]


def test_what_is_behind_and_before_a_condition_is_computed():
    with Trace():
        x = _core.placeholder("float32", [None])
        y = choose(_core.op("sum", [x]) > 3.0, x + 1.0)
        z = y * 10.0 + x
    assert _core.run([z], [(x, [1, 1])])[0].numpy().tolist() == [11, 11]
    assert _core.run([z], [(x, [2, 2])])[0].numpy().tolist() == [62, 62]


def test_branches_use_what_lies_around_them():
    with Trace():
        x = _core.placeholder("float32", [], name="x")
        y = x * 3.0

        def branch(make):
            with Trace():
                given = _core.placeholder("float32", [])
                made = make(given)
            return _core.Function([given], [made])

        z = _core.cond(x > 0.0, branch(lambda v: v + y), branch(lambda v: v - y), [x])[0]
    assert float(_core.run([z], [(x, 2.0)])[0]) == 8
    assert float(_core.run([z], [(x, -2.0)])[0]) == 4


def test_each_branch_has_captures_of_its_own():
    with Trace():
        x = _core.placeholder("float32", [])
        y, z = x * 3.0, x * 5.0

        def branch(make):
            with Trace():
                given = _core.placeholder("float32", [])
                made = make(given)
            return _core.Function([given], [made])

        chosen = _core.cond(x > 0.0, branch(lambda v: v + y), branch(lambda v: v + z), [x])[0]
    assert float(_core.run([chosen], [(x, 1.0)])[0]) == 4
    assert float(_core.run([chosen], [(x, -1.0)])[0]) == -6


def test_each_of_several_conditions_draws_by_itself():
    draw = traced(
        lambda v: _core.op("random_uniform", [], {"shape": [], "seed": 3, "stream": 0}), F)
    a, b = (_core.cond(constant(True, bool), draw, draw, [1.0])[0] for _ in range(2))
    assert float(a - b) != 0 and float(a) != float(b)


def test_shapes_of_both_branches_are_joined():
    yes = traced(lambda v: _core.op("concat", [v, v], {"axis": 0}), ("float32", [2]))
    no = traced(lambda v: v, ("float32", [2]))
    x = constant([1, 2])
    result = _core.cond(constant(True, bool), yes, no, [x])[0]
    assert list(result.shape) == [None]
    assert (result + 1.0).numpy().tolist() == [2, 3, 2, 3]


def test_branches_that_differ_in_dtype_or_number_are_refused():
    one = traced(lambda v: v, F)
    with pytest.raises(TypeError, match="another dtype"):
        _core.cond(True, one, traced(lambda v: v > 0.0, F), [1.0])
    with pytest.raises(TypeError, match="1 and 2 values"):
        _core.cond(True, one, traced(lambda v: [v, v], F), [1.0])
    with pytest.raises(TypeError, match="takes 1 inputs, and is given 2"):
        _core.cond(True, one, one, [1.0, 2.0])


def test_a_condition_is_one_bool():
    one = traced(lambda v: v, F)
    with pytest.raises(errors.InvalidArgumentError, match="not a scalar of dtype bool"):
        _core.cond(constant([True, False], bool), one, one, [1.0])[0].numpy()


# ---- while_loop ----


def test_a_loop_goes_on_while_its_condition_is_true():
    test = traced(lambda i, x: i < 10.0, F, ("float32", [2]))
    body = traced(lambda i, x: [i + 1.0, x * 2.0], F, ("float32", [2]))
    i, x = _core.while_loop(test, body, [0.0, [1.0, 3.0]])
    assert float(i) == 10 and x.numpy().tolist() == [1024, 3072]


def test_a_loop_stops_at_its_maximum():
    test = traced(lambda i: i < 1e9, F)
    body = traced(lambda i: i + 1.0, F)
    assert float(_core.while_loop(test, body, [0.0], 7)[0]) == 7
    assert float(_core.while_loop(test, body, [5.0], maximum_iterations=0)[0]) == 5


def test_inputs_that_the_body_does_not_give_stay():
    test = traced(lambda i, step: i < 10.0, F, F)
    body = traced(lambda i, step: i + step, F, F)
    assert [float(t) for t in _core.while_loop(test, body, [0.0, 4.0])] == [12]


def test_loops_capture_what_lies_around_them():
    with Trace():
        step = _core.placeholder("float32", [])
        with Trace():
            i = _core.placeholder("float32", [])
            test = _core.Function([i], [i < 10.0 + step])
            body = _core.Function([i], [i + step])
        result = _core.while_loop(test, body, [0.0])[0]
    assert float(_core.run([result], [(step, 3.0)])[0]) == 15


def test_loops_in_loops():
    def inner(x):
        test = traced(lambda i, v: i < 3.0, F, F)
        body = traced(lambda i, v: [i + 1.0, v + i], F, F)
        return _core.while_loop(test, body, [0.0, x])[1]

    test = traced(lambda i, v: i < 2.0, F, F)
    body = traced(lambda i, v: [i + 1.0, inner(v)], F, F)
    assert float(_core.while_loop(test, body, [0.0, 0.0])[1]) == 6


def test_shapes_that_grow():
    spec = ("float32", [None])
    test = traced(lambda v: _core.op("sum", [v]) < 20.0, spec)
    body = traced(lambda v: _core.op("concat", [v, v], {"axis": 0}), spec)
    assert _core.while_loop(test, body, [[1.0, 2.0]])[0].numpy().tolist() == [1, 2] * 8


def test_each_round_draws_anew():
    def step(i, v):
        drawn = _core.op("random_uniform", [], {"shape": [1], "seed": 3, "stream": 0})
        return [i + 1.0, _core.op("concat", [v, drawn], {"axis": 0})]

    spec = ("float32", [None])
    test = traced(lambda i, v: i < 5.0, F, spec)
    body = traced(step, F, spec)
    drawn = _core.while_loop(test, body, [0.0, np.zeros(0, np.float32)])[1].numpy()
    assert len(set(drawn.tolist())) == 5


def test_a_body_of_another_dtype_is_refused():
    test = traced(lambda i: i < 1.0, F)
    with pytest.raises(TypeError, match="another dtype"):
        _core.while_loop(test, traced(lambda i: i < 1.0, F), [0.0])
    with pytest.raises(TypeError, match="one bool"):
        _core.while_loop(traced(lambda i: i, F), test, [0.0])


# ---- python_call ----


def test_a_python_function_is_called_at_once():
    called = []
    (y,) = _core.python_call(lambda x: called.append(1) or [x.numpy() * 2], [[1.0, 2.0]],
                             [("float32", [2])])
    assert called == [1] and y.numpy().tolist() == [2, 4]


def test_its_exceptions_are_what_they_are():
    def fail(x):
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        _core.python_call(fail, [1.0], [F])


def test_in_a_graph_it_is_called_in_each_run():
    called = []
    with Trace():
        x = _core.placeholder("float32", [2])
        y, n = _core.python_call(
            lambda v: called.append(1) or (v.numpy() * 2, len(called)), [x + 1.0],
            [("float32", [2]), ("int32", [])])
        z = y + 1.0
    assert called == []
    for round in (1, 2):
        values = _core.run([z, n], [(x, [1, 2])])
        assert values[0].numpy().tolist() == [5, 7] and int(values[1]) == round


def test_it_takes_arrays_if_it_is_asked_to():
    with Trace():
        x = _core.placeholder("float32", [2])
        (y,) = _core.python_call(lambda v: [v + np.float32(1)], [x], [("float32", [2])], numpy=True)
    assert _core.run([y], [(x, [1, 2])])[0].numpy().tolist() == [2, 3]


def test_a_result_of_another_dtype_is_refused():
    with Trace():
        (y,) = _core.python_call(lambda: [np.zeros(2, np.int64)], [], [("float32", [2])], numpy=True)
    with pytest.raises(errors.InvalidArgumentError, match="int64, but float32 is expected"):
        _core.run([y])


def test_another_number_of_results_is_refused():
    with Trace():
        (y,) = _core.python_call(lambda: [1.0, 2.0], [], [F])
    with pytest.raises(ValueError, match="returned 2 values, and 1 are expected"):
        _core.run([y])


def fails_inside(v):
    raise KeyError("gone")


def test_exceptions_in_a_run_keep_their_tracebacks():
    with Trace():
        x = _core.placeholder("float32", [])
        (y,) = _core.python_call(fails_inside, [x], [F])
    with pytest.raises(errors.UnknownError, match="KeyError: 'gone'") as info:
        _core.run([y], [(x, 1.0)])
    cause = info.value.__cause__
    assert isinstance(cause, KeyError)
    assert "fails_inside" in "".join(traceback.format_tb(cause.__traceback__))


def test_python_functions_run_in_python_functions():
    def outer(v):
        assert threading.current_thread()
        return [(constant(2.0) * v).numpy()]

    with Trace():
        x = _core.placeholder("float32", [])
        (y,) = _core.python_call(outer, [x], [F])
    assert float(_core.run([y], [(x, 4.0)])[0]) == 8


def test_what_a_python_function_gives_may_have_any_rank():
    with Trace():
        n = _core.placeholder("int32", [])
        (y,) = _core.python_call(lambda v: [np.ones([2] * int(v), np.float32)], [n],
                                 [("float32", None)])
        z = _core.op("sum", [y * 2.0])
    for rank in (0, 3, 1):
        assert float(_core.run([z], [(n, rank)])[0]) == 2 * 2**rank


def test_a_function_that_is_gone_is_let_go_of():
    import weakref

    class Held:
        def __call__(self, v):
            return [v.numpy()]

    held = Held()
    ref = weakref.ref(held)
    with Trace() as trace:
        x = _core.placeholder("float32", [])
        (y,) = _core.python_call(held, [x], [F])
    _core.run([y], [(x, 1.0)])
    del held, x, y, trace
    gc.collect()
    assert ref() is None


def test_a_call_is_not_taken_for_one_that_was_there_before():
    for rank in (1, 2) * 20:  # where the other was in memory, most likely
        with Trace():
            (y,) = _core.python_call(lambda: [np.ones([2] * rank, np.float32)], [],
                                     [("float32", [2] * rank)])
            total = _core.op("sum", [y + 1.0])
        assert float(_core.run([total])[0]) == 2 * 2**rank
        del y, total
        gc.collect()


# ---- parse_examples ----


def example(**features):
    """tf.train.Example of lists of floats, by hand."""

    def field(number, data):
        assert len(data) < 128
        return bytes([number << 3 | 2, len(data)]) + data

    entries = b""
    for name, values in features.items():
        floats = field(1, struct.pack(f"<{len(values)}f", *values))
        entries += field(1, field(1, name.encode()) + field(2, field(2, floats)))
    return field(1, entries)


def test_records_are_parsed():
    records = _core.constant([example(a=[1, 2], b=[5]), example(a=[3, 4])])
    a, b = _core.parse_examples(
        records, [("a", "float32", [2], None), ("b", "float32", [], constant(9.0))])
    assert list(a.shape) == [2, 2]
    assert a.numpy().tolist() == [[1, 2], [3, 4]] and b.numpy().tolist() == [5, 9]


def test_one_record_is_parsed_in_a_graph():
    with Trace():
        record = _core.placeholder("string", [])
        a, b = _core.parse_examples(
            record, [("a", "float32", [2], None), ("b", "float32", None, None)])
        total = _core.op("sum", [a])
    values = _core.run([total, b], [(record, example(a=[1, 2], b=[7, 8, 9]))])
    assert float(values[0]) == 3 and values[1].numpy().tolist() == [7, 8, 9]


def test_a_record_that_lacks_a_feature_is_refused():
    with pytest.raises(errors.InvalidArgumentError, match="has no feature 'b'"):
        _core.parse_examples(example(a=[1]), [("b", "float32", [], None)])[0].numpy()
