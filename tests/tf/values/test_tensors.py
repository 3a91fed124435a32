# SPDX-License-Identifier: Apache-2.0
"""Nodes: operators, ops by name, attributes, names, graphs and call sites, and how they end."""
import gc
import operator
import sys
import weakref

import numpy as np
import pytest

from plimsoll import _core, errors

BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
COMPARE = ["lt", "le", "gt", "ge", "eq", "ne"]
BITS = ["and_", "or_", "xor"]


def name_of(tensor):
    return getattr(tensor.dtype, "name", tensor.dtype)


def constant(array, dtype=None):
    return _core.constant(array, dtype=dtype)


# Operators


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("name", BINARY + COMPARE)
def test_operators_compute_what_numpy_does(name, dtype):
    function = getattr(operator, name)
    x = np.array([[7, -7, 3], [1, 2, 5]], dtype)
    y = np.array([2, 3, 4], dtype)
    ours, theirs = function(constant(x), constant(y)), function(x, y)
    assert ours.is_pending
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)
    np.testing.assert_allclose(function(constant(x), 2).numpy(), function(x, x.dtype.type(2)))
    np.testing.assert_allclose(function(constant(x), y).numpy(), theirs, rtol=1e-6)
    np.testing.assert_allclose(function(constant(x), [2, 3, 4]).numpy(), theirs, rtol=1e-6)
    for reflected in (function(x, constant(y)), function(x.tolist(), constant(y))):
        assert isinstance(reflected, _core.Tensor)
        np.testing.assert_allclose(reflected.numpy(), theirs, rtol=1e-6)
    if name not in ("pow",):
        np.testing.assert_allclose(function(2, constant(y)).numpy(), function(y.dtype.type(2), y))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32"])
@pytest.mark.parametrize("name", BITS)
def test_bits_of_integers_and_truth_values(name, dtype):
    function = getattr(operator, name)
    x, y = np.array([0, 1, 1, 0], dtype), np.array([1, 1, 0, 0], dtype)
    ours = function(constant(x), constant(y))
    assert name_of(ours) == dtype
    np.testing.assert_array_equal(ours.numpy(), function(x, y))
    np.testing.assert_array_equal((~constant(x)).numpy(), ~x)


def test_operators_of_one_tensor():
    x = np.array([-1.5, 0, 2])
    for function in (operator.neg, operator.pos, abs):
        np.testing.assert_array_equal(function(constant(x)).numpy(), function(x))
    assert (constant([1, 2]) << constant([3, 4])).numpy().tolist() == [8, 32]
    assert (constant([8, -32]) >> 2).numpy().tolist() == [2, -8]


def test_matrices_are_multiplied():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose((constant(a) @ constant(b)).numpy(), a @ b)
    np.testing.assert_allclose((a @ constant(b)).numpy(), a @ b)


def test_integers_are_divided_as_floating_point_numbers():
    for dtype, result in (("int8", "float32"), ("uint16", "float32"), ("int32", "float64"),
                          ("int64", "float64"), ("float32", "float32")):  # fmt: skip
        quotient = constant([7], dtype) / constant([2], dtype)
        assert name_of(quotient) == result and quotient.numpy().tolist() == [3.5]
    with pytest.raises(TypeError, match="same dtype, got tf.int32 != tf.float32"):
        constant(1) / constant(1.0)


def test_tensors_of_two_dtypes_are_not_mixed():
    with pytest.raises(errors.InvalidArgumentError, match="to be a int32 tensor but is a float"):
        constant(1) + constant(1.0)
    with pytest.raises(TypeError, match="Cannot convert 1.5 to EagerTensor of dtype int32"):
        constant(1) + 1.5
    with pytest.raises(TypeError, match="Cannot convert .* to EagerTensor of dtype int32"):
        np.ones(2) * constant(1)
    assert name_of(constant(1.0) + np.ones(2)) == "float32"
    assert name_of(constant([1.0]) * 2) == "float32"
    assert name_of(2**40 + constant(1, "int64")) == "int64"


def test_equality_is_of_elements_but_for_what_cannot_be_compared():
    x = constant([1, 2, 3])
    assert (x == [1, 0, 3]).numpy().tolist() == [True, False, True]
    assert (x != 2).numpy().tolist() == [True, False, True]
    assert (x == None) is False and (x != None) is True  # noqa: E711
    assert (x == [1, 2]).numpy() == False and (x != [1, 2]).numpy() == True  # noqa: E712


def test_numpys_scalars_beside_a_tensor_take_its_dtype():
    x = constant([1.0, 2.0])
    for made in (np.float64(2) * x, x * np.float64(2), np.int8(2) * x, x * np.array(2)):
        assert isinstance(made, _core.Tensor) and name_of(made) == "float32"
        assert made.numpy().tolist() == [2, 4]


def test_what_knows_tensors_is_asked_before_it_is_converted():
    class Other:
        def __radd__(self, other):
            return "mine"

        def __rtruediv__(self, other):
            return "mine too"

    assert constant(1) + Other() == "mine"
    assert constant(1) / Other() == "mine too"
    with pytest.raises(TypeError, match="unsupported operand"):
        constant(1) + object()


def test_shapes_that_do_not_fit_are_refused_when_the_node_is_made():
    with pytest.raises(errors.InvalidArgumentError, match=r"\[2\] and \[3\] do not broadcast"):
        constant([1, 2]) + constant([1, 2, 3])
    with pytest.raises(ValueError, match="matmul 'product'.*'left' and 'right'"):
        _core.binary(
            "matmul", _core.constant(np.ones((2, 3)), name="left"),
            _core.constant(np.ones((2, 3)), name="right"), name="product",
        )  # fmt: skip


def test_lists_with_tensors_in_them_are_packed():
    x = constant([1.0, 2.0])
    assert _core.convert([x, [3, 4]]).numpy().tolist() == [[1, 2], [3, 4]]
    assert _core.convert([[constant(1.0), 2], (x)]).numpy().tolist() == [[1, 2], [1, 2]]
    assert _core.constant([constant(1), 2, constant(3)]).numpy().tolist() == [1, 2, 3]


def test_four_terabytes_of_one_value_are_refused_without_being_touched():
    huge = _core.constant(1.0, shape=[1 << 20, 1 << 20])
    with pytest.raises(errors.ResourceExhaustedError):
        (huge + 1.0).numpy()
    with pytest.raises(MemoryError):
        np.asarray(huge)


# Ops by name


def test_an_op_takes_attributes_as_python_has_them():
    x = constant(np.arange(6.0).reshape(2, 3))
    total = _core.op("sum", [x], {"axes": (0,), "keepdims": True})
    assert total.numpy().tolist() == [[3, 5, 7]]
    assert _core.op("sum", [x], {"axes": None}).numpy() == 15
    assert _core.op("sum", [x], {"axes": 1}).numpy().tolist() == [3, 12]
    assert name_of(_core.op("cast", [x], {"dtype": np.int8})) == "int8"
    assert _core.op("reshape", [x], {"shape": [-1, 2]}).numpy().shape == (3, 2)
    assert _core.op("fill", [], {"dtype": "int32", "shape": [2], "value": 3}).numpy().tolist() == [3, 3]
    assert _core.op("concat", [[1], [2], [3], [4], [5]], {"axis": 0}).numpy().tolist() == [1, 2, 3, 4, 5]
    assert _core.op("concat", [constant([i]) for i in range(20)], {"axis": 0}).numpy()[19] == 19


@pytest.mark.parametrize(
    "attrs, words",
    [
        ({"axis": 0}, "sum has no attribute 'axis'"),
        ({"axes": "zero"}, "'axes' is 'zero': it takes a list of integers"),
        ({"axes": [0.5]}, "it takes a list of integers"),
        ([0], "attributes are a dict"),
    ],
)
def test_attributes_of_another_kind_are_refused(attrs, words):
    with pytest.raises(TypeError, match=words):
        _core.op("sum", [constant([1.0])], attrs)


def test_what_an_op_does_not_take_is_told_with_its_name():
    with pytest.raises(ValueError, match="there is no op 'summe'"):
        _core.op("summe", [constant([1.0])])
    with pytest.raises(errors.InvalidArgumentError, match="axis 3 of shape"):
        _core.op("sum", [constant([1.0])], {"axes": [3]})
    with pytest.raises(errors.InvalidArgumentError, match="attribute 'shape' is missing"):
        _core.op("reshape", [constant([1.0])])
    for wrong in ((), ("add",), ("add", 1, 2, "n", 4)):
        with pytest.raises(TypeError, match="takes 3 arguments"):
            _core.binary(*wrong)
    with pytest.raises(TypeError, match="name is 5"):
        _core.binary("add", 1, 2, name=5)


# What is known of a node


def here():
    return sys._getframe(1).f_lineno


def test_a_node_knows_the_line_that_made_it():
    x = _core.constant([1.0]); line = here()  # noqa: E702
    assert x.site == (__file__, line)
    y = (
        x
        + 1
    ); last = here()  # noqa: E702
    assert y.site[0] == __file__ and last - 3 <= y.site[1] <= last
    results = list(map(operator.neg, [x])); line = here()  # noqa: E702
    assert results[0].site == (__file__, line)


def test_names_have_their_scope():
    before = _core.context(None, "layer/inner", "/GPU:0")
    x = _core.constant(1, name="x")
    assert (x.name, x.device) == ("layer/inner/x", "/GPU:0")
    assert _core.context(*before) == (None, "layer/inner", "/GPU:0")
    assert _core.unary("neg", constant(1.0)).name == "neg"
    assert _core.constant(1, name="y").name == "y"


def test_attributes_of_nodes():
    x = _core.placeholder("float32", [None, 3], name="x")
    y = x * 2
    assert (y.op_name, y.ndim, y.is_symbolic, y.is_pending) == ("mul", 2, True, True)
    assert y.inputs[0] is x and x.inputs == [] and x.op_name == "placeholder"
    assert tuple(x.shape) == (None, 3)
    assert _core.placeholder("int8", None).ndim is None
    z = constant(1)
    assert (z.op_name, z.is_symbolic, z.is_pending, z.graph) == ("constant", False, False, None)


def test_what_is_known_of_a_shape_from_elsewhere_can_be_said():
    x = _core.placeholder("float32", None)
    x.set_shape([None, 3])
    assert tuple(x.shape) == (None, 3)
    x.set_shape([2, None])
    assert tuple(x.shape) == (2, 3)
    with pytest.raises(ValueError, match="not compatible"):
        x.set_shape([4, 3])
    with pytest.raises(ValueError, match="not compatible"):
        x.set_shape([2, 3, 1])


def test_nodes_of_unknown_rank_are_made_and_their_dtypes_checked():
    x = _core.placeholder("float32", None)
    assert (x + 1).ndim is None
    with pytest.raises((errors.InvalidArgumentError, TypeError)):
        x + constant(1)


def test_types_are_told_by_any_of_their_names():
    for value in ("float32", "float", np.float32, np.dtype("f4"), float):
        assert _core.dtype_number(value) == 12
    for value in (str, bytes, "string", np.dtype("S3"), np.dtype("U3"), np.object_):
        assert _core.dtype_number(value) == 14
    assert _core.dtype_number(bool) == _core.dtype_number(np.bool_) == 1
    assert _core.dtype_number(None) == 0
    for wrong in ("complex64", complex, np.dtype("M8[s]"), object(), 99):
        with pytest.raises(TypeError, match="to a TensorFlow DType"):
            _core.dtype_number(wrong)


# Graphs


class Graph:
    def __init__(self):
        self.nodes, self.names = [], []

    def _unique_name(self, name, is_op=False):
        self.names.append(name)
        return f"{name}_{len(self.names)}"

    def _add(self, node):
        self.nodes.append(node)


@pytest.fixture
def graph():
    made = Graph()
    _core.context(made, "", None)
    yield made
    _core.context(None, "", None)


def test_a_graph_names_and_has_its_nodes(graph):
    x = _core.placeholder("float32", [2])
    y = _core.binary("add", x, 1.0, name="sum")
    assert graph.names == ["Placeholder", "Const", "sum"]
    assert graph.nodes == [x, y.inputs[1], y] and y.graph is graph
    assert [node.name.split(":")[0] for node in (x, y)] == ["Placeholder_1", "sum_3"]
    _core.context(None, "", None)
    outside = y * y
    assert outside.graph is graph and graph.nodes[-1] is outside


def test_nodes_of_a_graph_have_no_value_but_constants(graph):
    x = _core.constant([1.0, 2.0])
    assert x.numpy().tolist() == [1.0, 2.0]
    with pytest.raises(errors.OperatorNotAllowedInGraphError, match="part of a graph"):
        (x + 1).numpy()
    with pytest.raises(TypeError):
        bool(x[0] if hasattr(x, "__getitem__") else x + 1)


def test_dtypes_are_not_mixed_in_a_graph_either(graph):
    with pytest.raises(TypeError, match="has type float32 that does not match type int32"):
        _core.constant(1) + _core.constant(1.0)


def test_a_graph_that_refuses_a_node_is_told_and_nothing_is_left(graph):
    graph._add = lambda node: 1 / 0
    with pytest.raises(ZeroDivisionError):
        _core.constant(1)
    graph._add, graph._unique_name = graph.nodes.append, lambda name, is_op=False: 5
    with pytest.raises(TypeError, match="a name is text"):
        _core.constant(1)


def test_a_graph_that_nobody_has_is_collected_with_its_nodes():
    graph = Graph()
    before = _core.context(graph, "", None)
    x = _core.placeholder("float32", [2])
    for _ in range(50):
        x = x + _core.constant([1.0, 2.0])
    gone = weakref.ref(graph), weakref.ref(x)
    _core.context(*before)
    del graph, x
    gc.collect()
    assert gone[0]() is None and gone[1]() is None


# How nodes end


def test_long_chains_end_without_deep_recursion():
    x = _core.placeholder("float32", [2])
    for _ in range(200_000):
        x = -x
    gone = weakref.ref(x)
    del x
    assert gone() is None


def test_a_chain_that_grows_for_ever_is_computed_now_and_then():
    x = constant(np.zeros(3))
    for _ in range(10_000):
        x = x + 1
    assert x.numpy().tolist() == [10_000] * 3


def test_a_node_with_a_value_lets_go_of_what_it_was_made_of():
    def live():
        return [entry for entry in _core.live()[0] if entry["shape"] == (100, 103)]

    x = constant(np.ones((100, 103)))
    site = x.site
    y = _core.op("sum", [x], {})
    del x
    assert [entry["site"] for entry in live()] == [site] and y.is_pending
    assert y.numpy() == 10300
    assert live() == [] and y.inputs == [] and not y.is_pending


def test_nothing_stays_claimed():
    gc.collect()
    before = _core.budget()["claimed"]
    for _ in range(3):
        x = constant(np.ones((100, 100)))
        y = (x @ x + 1).numpy()
        assert y[0, 0] == 101
    del x, y
    gc.collect()
    assert _core.budget()["claimed"] == before


# The runtime


def test_importing_makes_no_runtime_and_loads_no_numpy(run_python):
    said = run_python(
        "import sys, threading, plimsoll._core as core\n"
        "print('numpy' in sys.modules, core.budget()['claimed'])\n"
        "core.configure(budget='64M', threads=1)\n"
        "print(core.budget()['line'] >> 20)\n"
        "core.constant(1)\n"
        "try: core.configure(budget='128M')\n"
        "except RuntimeError as error: print(error)\n",
        PLIMSOLL_BUDGET="",
    )
    assert said.splitlines()[:2] == ["False 0", "64"]
    assert "in use already" in said


def test_a_budget_that_is_none_is_told_at_once(run_python):
    said = run_python(
        "import plimsoll._core as core\n"
        "for text in ('lots', 5):\n"
        "    try: core.configure(budget=text)\n"
        "    except (ValueError, MemoryError) as error: print(error)\n"
    )
    assert len(said.splitlines()) == 2 and "lots" in said


def test_the_environment_says_the_budget(run_python):
    text = "import plimsoll._core as c; b = c.budget(); print(b['line'] >> 20, b['decided_by'])"
    assert run_python(text, PLIMSOLL_BUDGET="100M").split() == ["100", "request"]


def test_what_is_live_has_its_site():
    x = _core.constant(np.zeros(1000), name="weights/w"); line = here()  # noqa: E702
    entries, text = _core.live()
    mine = [entry for entry in entries if entry["name"] == "weights/w"]
    assert [entry["site"] for entry in mine] == [(__file__, line)]
    assert mine[0]["bytes"] == 8000 and mine[0]["shape"] == (1000,) and "weights" in text
    del x
    assert not [entry for entry in _core.live()[0] if entry["name"] == "weights/w"]


def test_a_forked_child_has_a_runtime_of_its_own(run_python):
    said = run_python(
        "import os, plimsoll._core as core\n"
        "x = core.constant([1.0, 2.0]); (x + 1).numpy()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    print((core.constant([1.0, 2.0]) * 3).numpy().tolist(), flush=True)\n"
        "    os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "print((x * 2).numpy().tolist())\n"
    )
    assert said.splitlines() == ["[3.0, 6.0]", "[2.0, 4.0]"]


def test_a_forked_child_computes_what_its_parent_has_computed_before(run_python):
    """Programs are kept, and those of the parent run in a session that the child has not."""
    said = run_python(
        "import multiprocessing, plimsoll.tf as tf\n"
        "def total(n):\n"
        "    return float(tf.reduce_sum(tf.ones([10, n]) * 2.0))\n"
        "loop = tf.function(lambda n: tf.while_loop(lambda i: i < n, lambda i: [i + 1], [n - 3])[0])\n"
        "def count(n):\n"
        "    return int(tf.function(loop.python_function)(tf.constant(n)))\n"
        "total(1), count(1)\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    print(pool.map(total, [1, 2, 3]), pool.map(count, [1, 2]))\n"
        "print(total(1))\n"
    )
    assert said.splitlines() == ["[20.0, 40.0, 60.0] [1, 2]", "20.0"]


def test_the_cpu_is_a_device():
    assert _core.devices()[0]["name"] == "/CPU:0"


# Failures


def run_python_call(function):
    """In a run: eager ones are called at once, and raise what they raise."""
    x = _core.placeholder("int32", [])
    (out,) = _core.python_call(function, [x], [("int32", [])])
    _core.run([out], feeds=[(x, 1)])


def test_an_exception_in_a_python_function_is_the_cause_of_the_error():
    def bad(x):
        raise KeyError("not there")

    with pytest.raises(errors.OpError) as caught:
        run_python_call(bad)
    cause = caught.value.__cause__
    assert isinstance(cause, KeyError) and cause.args == ("not there",)
    assert "KeyError" in str(caught.value) and __file__ in str(caught.value)
    names = []
    trace = cause.__traceback__
    while trace:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "bad" in names


def test_an_exception_that_is_kept_holds_none_of_the_functions_values():
    def bad(x):
        large = (x + np.zeros(1 << 19, np.float32)).numpy()
        try:
            raise KeyError(str(large.shape))
        except KeyError:
            raise ValueError("two mebibytes")

    gc.collect()
    before = _core.budget()["claimed"]
    x = _core.placeholder("float32", [])
    (out,) = _core.python_call(bad, [x], [("float32", [])])
    try:
        _core.run([out], feeds=[(x, 1.0)])
    except errors.InvalidArgumentError as error:
        cause = error.__cause__
    assert isinstance(cause, ValueError) and isinstance(cause.__context__, KeyError)
    assert cause.__traceback__.tb_lineno > 0
    assert _core.budget()["claimed"] - before < 2 << 20


@pytest.mark.parametrize(
    "raised, expected",
    [
        (ValueError, errors.InvalidArgumentError),
        (TypeError, errors.InvalidArgumentError),
        (StopIteration, errors.OutOfRangeError),
        (MemoryError, errors.ResourceExhaustedError),
        (NotImplementedError, errors.UnimplementedError),
        (FileNotFoundError(2, "gone"), errors.NotFoundError),
        (RuntimeError, errors.UnknownError),
        (errors.DataLossError(None, None, "lost"), errors.DataLossError),
    ],
)
def test_errors_have_the_class_that_tensorflow_gives_them(raised, expected):
    def bad(x):
        raise raised

    with pytest.raises(expected):
        run_python_call(bad)


def test_ctrl_c_reaches_numpy_that_asks_for_an_array(run_python):
    """NumPy passes over what a buffer's owner raises, and asks again otherwise."""
    said = run_python(
        "import os, signal, threading, numpy as np, plimsoll._core as core\n"
        "x = core.op('random_normal', [], {'dtype': 'float32', 'shape': [3000, 3000]})\n"
        "for _ in range(200): x = x @ x\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try: np.asarray(x)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    assert said == "interrupted\n"


def test_frames_of_the_package_are_no_sites():
    import plimsoll.tf as tf

    x = tf.add(tf.constant([1.0]), 2.0); line = here()  # noqa: E702
    assert x.site == x.inputs[0].site == (__file__, line)
