# SPDX-License-Identifier: Apache-2.0
"""What is computed when, once, and how large it may be: evaluate(), run(), explain(), save_npy()."""
import gc
import json
import threading

import numpy as np
import pytest
from plimsoll import _core, errors

from trace import Trace, traced

ONES = np.ones(4, np.float32)


def constant(value, dtype=np.float32):
    return _core.constant(np.asarray(value, dtype))


def random(seed, stream, shape=(4,)):
    return _core.op("random_normal", [], {"shape": shape, "seed": seed, "stream": stream})


# ---- evaluate ----


def test_a_value_is_computed_when_it_is_asked_for():
    x = constant([1, 2]) * 3.0
    assert x.is_pending
    assert x.numpy().tolist() == [3, 6]
    assert not x.is_pending


def test_what_somebody_holds_of_the_inputs_is_computed_along():
    x = constant([1, 2])
    held = x + 1.0
    y = (held * 2.0) - held
    y.numpy()
    assert not held.is_pending
    assert held.numpy().tolist() == [2, 3]


def test_what_nobody_holds_is_not_kept():
    x = constant(np.arange(1 << 18))
    before = _core.budget()["claimed"]
    y = x
    for _ in range(5):
        y = y + 1.0
    y.numpy()
    assert _core.budget()["claimed"] - before <= 2 << 20


def test_large_inputs_that_are_held_are_not_computed_along():
    x = _core.op("fill", [], {"shape": [8 << 20], "value": 1.0, "dtype": "float32"})
    held = [x + float(i) for i in range(16)]  # half a gigabyte together
    total = held[0]
    for part in held[1:]:
        total = total + part
    result = _core.op("sum", [total])
    assert float(result) == (8 << 20) * (16 + sum(range(16)))
    assert any(part.is_pending for part in held)


def test_several_tensors_are_computed_in_one_run():
    x = constant([1, 2])
    a, b = x + 1.0, x * 2.0
    _core.evaluate([a, b, x])
    assert not a.is_pending and not b.is_pending
    assert a.numpy().tolist() == [2, 3] and b.numpy().tolist() == [2, 4]


def test_a_chain_that_is_longer_than_any_stack_is_computed():
    x = constant(0.0)
    for _ in range(50_000):
        x = x + 1.0
    assert float(x) == 50_000


def test_a_wide_sum_is_computed():
    parts = [constant(float(i)) * 2.0 for i in range(3000)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert float(total) == 2 * sum(range(3000))


def test_one_program_serves_other_values_of_the_same_shape():
    for n in range(5):
        assert (constant([n, 1]) * 2.0 + 1.0).numpy().tolist() == [2 * n + 1, 3]
    assert (constant([[5]]) * 2.0 + 1.0).numpy().tolist() == [[11]]


def test_programs_that_differ_in_an_attribute_alone_differ():
    x = constant(np.arange(6).reshape(2, 3))
    for axis in (0, 1, 0):
        total = _core.op("sum", [x], {"axes": [axis]})
        assert total.numpy().tolist() == np.arange(6).reshape(2, 3).sum(axis).tolist()


def test_more_programs_than_are_kept_are_run():
    for n in range(1, 300):
        assert (constant(np.zeros(n)) + 1.0).numpy().tolist() == [1.0] * n


def test_threads_that_want_the_same_value_get_it():
    for _ in range(20):
        x = constant(np.arange(1000)) * 2.0
        results = []
        threads = [threading.Thread(target=lambda: results.append(x.numpy())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all((r == np.arange(1000) * 2).all() for r in results) and len(results) == 4


def test_a_result_that_does_not_fit_says_how_it_does():
    x = _core.op("fill", [], {"shape": [1 << 30], "value": 1.0, "dtype": "float32"}) + 1.0
    with pytest.raises(errors.ResourceExhaustedError) as info:
        x.numpy()
    assert "'add' needs 4.0 GiB" in str(info.value)
    assert str(info.value).endswith("plimsoll.save(tensor, path), run(..., out=path)")
    with pytest.raises(errors.ResourceExhaustedError):
        _core.run([x])


def test_four_terabytes_are_refused_at_once():
    x = _core.op("fill", [], {"shape": [1 << 20, 1 << 20], "value": 1.0, "dtype": "float32"})
    peak = _core.budget()["peak"]
    with pytest.raises(errors.ResourceExhaustedError):
        (x + x).numpy()
    assert _core.budget()["peak"] == peak


def test_an_error_of_a_run_names_the_op_and_leaves_the_rest_usable():
    x = constant([1, 2, 3])
    bad = _core.op("gather", [x, _core.constant(np.asarray([7], np.int64))])
    with pytest.raises(errors.InvalidArgumentError, match="gather"):
        bad.numpy()
    assert (x + 1.0).numpy().tolist() == [2, 3, 4]


def test_a_placeholder_has_no_value():
    x = _core.placeholder("float32", [2], name="x")
    with pytest.raises(errors.InvalidArgumentError, match="'x'"):
        _core.evaluate([x])
    with pytest.raises(errors.InvalidArgumentError, match="feed a value for placeholder.*'x'"):
        _core.run([x + 1.0])


def test_nothing_stays_claimed():
    gc.collect()
    before = _core.budget()["claimed"]
    for n in range(50):
        x = constant(np.arange(100_000)) + float(n)
        y = x * 2.0
        y.numpy()
    del x, y
    gc.collect()
    assert _core.budget()["claimed"] <= before + (4 << 20)


# ---- random ----


def test_draws_do_not_depend_on_what_they_are_computed_with():
    alone = [random(7, stream).numpy() for stream in range(3)]
    together = [random(7, stream) for stream in range(3)]
    total = together[0] + together[1] + together[2]
    total.numpy()
    for one, other in zip(alone, together):
        assert (one == other.numpy()).all()
    assert np.allclose(total.numpy(), sum(alone))
    assert not (alone[0] == alone[1]).all()


def test_programs_that_differ_in_a_stream_alone_differ():
    for other in (1, 5, 1):
        total = random(7, 0) + random(7, other)
        assert np.allclose(total.numpy(), random(7, 0).numpy() + random(7, other).numpy())


def test_a_sum_of_draws_is_the_same_in_any_order():
    a, b = random(3, 10), random(3, 400)
    assert ((b + a) - b).numpy() == pytest.approx(random(3, 10).numpy(), abs=1e-5)


# ---- run ----


def test_any_tensor_can_be_fed():
    with Trace():
        x = _core.placeholder("float32", [2], name="x")
        y = x + 1.0
        z = y * 2.0
    assert _core.run([z], [(x, [1, 2])])[0].numpy().tolist() == [4, 6]
    assert _core.run([z, y], [(y, [1, 2])])[0].numpy().tolist() == [2, 4]


def test_what_is_fed_is_given_back():
    x = _core.placeholder("float32", [2])
    assert _core.run([x, x], [(x, ONES[:2])])[1].numpy().tolist() == [1, 1]


def test_dimensions_that_are_not_known_are_what_is_fed():
    x = _core.placeholder("float32", [None, 2])
    y = _core.op("sum", [x * 2.0], {"axes": [0]})
    for n in (1, 5, 2):
        assert _core.run([y], [(x, np.ones((n, 2)))])[0].numpy().tolist() == [2 * n, 2 * n]


def test_a_rank_that_is_not_known_is_that_of_what_is_fed():
    x = _core.placeholder("float32", None)
    y = x * 2.0
    assert _core.run([y], [(x, 3.0)])[0].numpy() == 6
    assert _core.run([y], [(x, [[1.0]])])[0].numpy().tolist() == [[2]]


def test_a_feed_of_another_shape_is_refused():
    x = _core.placeholder("float32", [2], name="x")
    with pytest.raises(ValueError, match=r"Cannot feed value of shape \(3,\) for Tensor 'x'"):
        _core.run([x + 1.0], [(x, [1, 2, 3])])


def test_a_feed_twice_is_refused():
    x = _core.placeholder("float32", [2], name="x")
    with pytest.raises(ValueError, match="'x' is fed twice"):
        _core.run([x + 1.0], [(x, [1, 2]), (x, [1, 2])])


def test_runs_of_a_graph_draw_anew_and_those_of_one_stream_the_same():
    with Trace():
        x = random(5, 0)
        y = random(5, 1)
    first, second = _core.run([x, y]), _core.run([x, y])
    assert not (first[0].numpy() == second[0].numpy()).all()
    assert not (first[0].numpy() == first[1].numpy()).all()
    again = [_core.run([x], stream=3)[0].numpy() for _ in range(2)]
    assert (again[0] == again[1]).all()


def test_eager_tensors_that_are_run_keep_their_values():
    x = constant([1, 2]) + 1.0
    assert _core.run([x])[0].numpy().tolist() == [2, 3]
    assert not x.is_pending


def test_eager_draws_are_the_same_in_a_run():
    x = random(5, 9)
    value = _core.run([x])[0].numpy()
    assert (random(5, 9).numpy() == value).all()


def test_results_are_written_to_files(tmp_path):
    x = constant([[1, 2], [3, 4]])
    y, z = x * 2.0, x + 1.0
    results = _core.run([y, z, y], out=[tmp_path / "y.npy", None, None])
    assert results[0] is None
    assert results[1].numpy().tolist() == [[2, 3], [4, 5]]
    assert results[2].numpy().tolist() == [[2, 4], [6, 8]]
    assert np.load(tmp_path / "y.npy").tolist() == [[2, 4], [6, 8]]


def test_a_result_that_is_larger_than_the_budget_is_written(tmp_path, run_python):
    path = tmp_path / "large.npy"
    run_python(
        f"""
from plimsoll import _core
x = _core.op("fill", [], {{"shape": [50 << 20], "value": 1, "dtype": "int16"}}) * 3
_core.save_npy(x, {str(path)!r})
assert x.is_pending and _core.budget()["peak"] < 60 << 20
""",
        PLIMSOLL_BUDGET="64M",
    )
    written = np.load(path, mmap_mode="r")
    assert written.shape == (50 << 20,) and written[0] == 3 and written[-1] == 3


def test_values_and_what_calls_give_are_written(tmp_path):
    _core.save_npy(constant([1, 2]), tmp_path / "a.npy")
    assert np.load(tmp_path / "a.npy").tolist() == [1, 2]
    with Trace():
        (x,) = _core.python_call(lambda: [ONES], [], [("float32", [4])])
    _core.run([x], out=[str(tmp_path / "b.npy")])
    assert np.load(tmp_path / "b.npy").tolist() == [1] * 4


def test_paths_and_fetches_are_equally_many():
    with pytest.raises(ValueError, match="2 paths for 1 fetches"):
        _core.run([constant(1.0)], out=[None, None])


def test_a_budget_of_its_own_bounds_a_run():
    x = constant(np.ones(1 << 20)) + 1.0
    peak = _core.explain([x], budget=2 << 20)[1]["peak_bytes"]
    assert peak <= 2 << 20 < _core.explain([x])[1]["peak_bytes"]
    assert _core.run([x], budget=2 << 20)[0].numpy().tolist() == [2] * (1 << 20)


# ---- explain ----


def test_a_plan_is_told_before_the_run():
    x = constant(np.ones((100, 100)))
    text, cost = _core.explain([_core.op("matmul", [x, x])])
    assert "matmul" in text and cost["flops"] == 2 * 100**3
    assert cost["peak_bytes"] >= 40_000 and cost["n_unknown"] == 0
    text, _ = _core.explain([_core.op("matmul", [x, x])], json=True)
    assert json.loads(text)


def test_what_lies_behind_a_call_is_named():
    with Trace():
        (x,) = _core.python_call(lambda: [ONES], [], [("float32", [4])])
        y = x + 1.0
    text, cost = _core.explain([y])
    assert "py_function" in text and cost["n_unknown"] == 2
    told = json.loads(_core.explain([y], json=True)[0])
    assert [list(step)[0] for step in told["steps"]] == ["call", "later"]


# ---- progress ----


def test_progress_is_told_of_long_runs_only(run_python):
    out = run_python(
        """
from plimsoll import _core
told = []
_core.set_progress(lambda fraction, name: told.append((fraction, name)))
x = _core.op("fill", [], {"shape": [1000], "value": 1.0, "dtype": "float32"})
(x + 1.0).numpy()
print(len(told))
n = 1 << 26
while not told:
    n *= 2
    x = _core.op("random_normal", [], {"shape": [n], "seed": 1, "stream": 0})
    _core.op("sum", [x]).numpy()
fractions = [fraction for fraction, _ in told]
print(fractions == sorted(fractions), fractions[-1], all(0 < f <= 1 for f in fractions))
"""
    )
    assert out.split() == ["0", "True", "1.0", "True"]
