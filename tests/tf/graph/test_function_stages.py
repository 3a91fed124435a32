# SPDX-License-Identifier: Apache-2.0
"""Functions in stages of datasets: as graphs with what they captured, or as callbacks."""
import numpy as np
import pytest
from plimsoll import _core, errors

from trace import Trace, traced

I64 = ("int64", [])


def numbers(n):
    return _core.ds_range(0, n, 1)


def mapped(dataset, function, n_parallel=2):
    return [x.numpy() for x in _core.Iterator(_core.ds_map(dataset, function, n_parallel))]


def test_a_traced_map_is_a_graph_with_what_it_captured():
    table = _core.constant(np.arange(100, dtype=np.int64)) * 2
    f = traced(lambda x: _core.op("gather", [table, x]), I64)
    assert mapped(numbers(50), f) == [2 * i for i in range(50)]
    assert not table.is_pending


def test_an_output_may_be_an_input_or_what_was_captured():
    seven = _core.constant(np.int64(7))
    f = traced(lambda x: [x, seven + 0], I64)
    elements = list(_core.Iterator(_core.ds_map(numbers(3), f, 1)))
    assert [[int(c) for c in element] for element in elements] == [[0, 7], [1, 7], [2, 7]]


def test_each_element_draws_anew():
    def draw(x):
        return _core.op("random_uniform", [], {"shape": [], "seed": 4, "stream": 0})

    f = traced(draw, I64)
    for n_parallel in (1, 2):
        assert len(set(map(float, mapped(numbers(30), f, n_parallel)))) == 30


def test_calls_in_a_function_are_run_without_a_graph():
    yes = traced(lambda v: v * 10, I64)
    no = traced(lambda v: v - 1, I64)
    f = traced(lambda x: _core.cond(x > 2, yes, no, [x])[0] + 1, I64)
    assert mapped(numbers(5), f) == [0, 1, 2, 31, 41]


def test_draws_behind_calls_differ_by_element_too():
    def draw(v):
        return _core.op("random_uniform", [], {"shape": [], "seed": 4, "stream": 0})

    branch = traced(draw, I64)
    f = traced(lambda x: _core.cond(x >= 0, branch, branch, [x])[0], I64)
    assert len(set(map(float, mapped(numbers(20), f)))) == 20


def test_a_rank_that_is_not_known_is_found_for_each_element():
    shape = ("float32", None)
    grown = _core.Callback(lambda i: [np.ones([2] * int(i), np.float32)], [(*shape, None)])
    f = traced(lambda x: x + 1.0, shape)
    values = mapped(_core.ds_map(numbers(4), grown, 1), f)
    assert [v.shape for v in values] == [(), (2,), (2, 2), (2, 2, 2)]
    assert all((v == 2).all() for v in values)


def test_python_functions_in_a_traced_map_are_called():
    f = traced(lambda x: _core.python_call(lambda v: [int(v) * 3], [x], [I64])[0], I64)
    assert mapped(numbers(4), f) == [0, 3, 6, 9]


def test_what_a_python_function_raises_there_is_the_cause():
    def fail(v):
        raise LookupError("nothing there")

    f = traced(lambda x: _core.python_call(fail, [x], [I64])[0], I64)
    with pytest.raises(errors.OpError, match="nothing there") as info:
        mapped(numbers(4), f)
    assert isinstance(info.value.__cause__, LookupError)


def test_a_function_that_hangs_on_another_graph_is_refused():
    with Trace():
        outer = _core.placeholder("int64", [], name="outer")
        with Trace():
            x = _core.placeholder("int64", [])
            f = _core.Function([x], [x + outer])
    with pytest.raises(errors.InvalidArgumentError, match="'outer'"):
        _core.ds_map(numbers(3), f, 1)
