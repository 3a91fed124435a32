# SPDX-License-Identifier: Apache-2.0
"""Functions of the extension: traced once, called by substitution, or run as programs."""
import numpy as np
import pytest
from plimsoll import _core, errors

from trace import Trace, traced


def constant(value, dtype=np.float32):
    return _core.constant(np.asarray(value, dtype))


def draw(stream=0, shape=(4,)):
    return _core.op("random_normal", [], {"shape": shape, "seed": 11, "stream": stream})


def test_a_call_gives_new_nodes_that_are_pending():
    f = traced(lambda x: x * 2.0 + 1.0, ("float32", [None]))
    (y,) = f([1, 2])
    assert y.is_pending and y.numpy().tolist() == [3, 5]
    (z,) = f(f(y)[0])
    assert z.numpy().tolist() == [15, 23]


def test_an_output_may_be_an_input_or_a_value():
    f = traced(lambda x: [x, constant([7]), x + 1.0], ("float32", [1]))
    a, b, c = f([3])
    assert (float(a), float(b), float(c)) == (3, 7, 4)


def test_shapes_are_what_the_call_makes_of_them():
    f = traced(lambda x: x + 1.0, ("float32", None))
    assert tuple(f(np.ones((2, 3)))[0].shape) == (2, 3)


def test_what_does_not_fit_is_refused():
    f = traced(lambda x, y: x + y, ("float32", [2]), ("float32", [2]))
    with pytest.raises(TypeError, match="takes 2 tensors, and was given 1"):
        f([1, 2])
    with pytest.raises(ValueError, match=r"input 1 has shape \(3,\), which is not \(2,\)"):
        f([1, 2], [1, 2, 3])
    with pytest.raises(TypeError, match="not a placeholder"):
        _core.Function([constant(1.0)], [])


def test_values_are_captured():
    table = constant(np.arange(1000))
    pending = table + 1.0
    f = traced(lambda x: x + pending, ("float32", []))
    assert f(1.0)[0].numpy()[10] == 12


def test_each_call_draws_anew_and_can_be_repeated():
    f = traced(lambda x: [x + draw(0), x + draw(1)], ("float32", []))
    _core.set_streams(0)
    first = [t.numpy() for t in f(0.0) + f(0.0)]
    _core.set_streams(0)
    again = [t.numpy() for t in f(0.0) + f(0.0)]
    for i, one in enumerate(first):
        assert (one == again[i]).all()
        assert all(not (one == other).all() for other in first[i + 1 :])


def test_functions_call_functions():
    inner = traced(lambda x: x * x, ("float32", [None]))
    outer = traced(lambda x: inner(x)[0] + inner(x + 1.0)[0], ("float32", [None]))
    assert outer([1, 2])[0].numpy().tolist() == [5, 13]


def test_what_is_not_its_own_stays_what_it_is():
    with Trace():
        outer = _core.placeholder("float32", [], name="outer")
        shared = draw()
        with Trace():
            x = _core.placeholder("float32", [])
            y = x + outer + shared
        f = _core.Function([x], [y])
        assert f.captures == [y.inputs[0].inputs[1], shared] or len(f.captures) == 2
        z = f(2.0)[0] - f(1.0)[0]
    assert _core.run([z], [(outer, 5.0)])[0].numpy() == pytest.approx(np.ones(4))


def test_nodes_are_replaced():
    x = constant([1, 2])
    y = x + 1.0
    z = y * 2.0 + x
    (other,) = _core.substitute([z], [(y, constant([10, 10]))])
    assert other.numpy().tolist() == [21, 22]
    assert z.numpy().tolist() == [5, 8]
    assert _core.substitute([x], [(y, x)])[0] is x


def test_a_call_is_made_anew_with_what_it_takes():
    f = traced(
        lambda x: _core.python_call(lambda v: [v.numpy() + 1], [x * 2.0], [("float32", [2])])[0] - x,
        ("float32", [2]),
    )
    assert f([1, 2])[0].numpy().tolist() == [2, 3]
    assert f([3, 4])[0].numpy().tolist() == [4, 5]


def test_inputs_are_each_there_once():
    x = _core.placeholder("float32", [])
    with pytest.raises(ValueError, match="are one placeholder"):
        _core.Function([x, x], [x])


def test_a_placeholder_of_no_one_is_told_when_it_is_run():
    other = _core.placeholder("float32", [], name="other")
    x = _core.placeholder("float32", [])
    f = _core.Function([x], [x + other])
    with pytest.raises(errors.InvalidArgumentError, match="'other'"):
        _core.run([f(1.0)[0]])
