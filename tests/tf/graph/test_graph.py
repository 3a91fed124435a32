# SPDX-License-Identifier: Apache-2.0
"""Graphs: names, scopes, devices, what waits for what, conditions and loops inside of them."""
import gc
import weakref

import pytest

import plimsoll.tf as tf

v1 = tf.compat.v1


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def names(graph):
    return [op.name for op in graph.get_operations()]


def test_ops_go_into_the_graph_that_is_entered():
    first, second = tf.Graph(), tf.Graph()
    with first.as_default():
        a = tf.constant(1)
        with second.as_default():
            b = tf.constant(2)
            assert v1.get_default_graph() is second
        c = tf.constant(3)
    assert a.graph is first and b.graph is second and c.graph is first
    assert tf.constant(4).graph is None and tf.executing_eagerly()


def test_names_are_made_unique(graph):
    assert tf.constant(1, name="x").name == "x:0"
    assert tf.constant(1, name="x").name == "x_1:0"
    assert tf.constant(1, name="X").name == "X_2:0"
    assert tf.constant(1, name="x_1").name == "x_1_1:0"
    assert v1.placeholder(tf.int32).name == "Placeholder:0"
    assert v1.placeholder(tf.int32).name == "Placeholder_1:0"


@pytest.mark.parametrize("name", ("/a", "", "_a", "a b", "\u00e4"))
def test_a_name_that_cannot_be_is_told_what_can(graph, name):
    with pytest.raises(ValueError, match=f"'{name}' is not a valid node name: it begins with a"):
        tf.constant(1, name=name)
    if name:
        with pytest.raises(ValueError, match=f"'{name}' is not a valid scope name: it begins"):
            with tf.name_scope(name):
                pass
    with tf.name_scope("s"), pytest.raises(ValueError, match="scope name: it has letters"):
        with tf.name_scope("a b"):
            pass
    assert tf.constant(1, name="a//b").name == "a//b:0"


@pytest.mark.parametrize("name", ("/a", "", "_a", "a b", "\u00e4", "a//b", "a/", "a//"))
def test_outside_of_graphs_any_name_will_do(name):
    """As TensorFlow has it: only graphs are asked for nodes by their names."""
    assert tf.identity(tf.constant([1.0]), name=name).numpy().tolist() == [1.0]
    assert tf.Variable([1.0], name=name).numpy().tolist() == [1.0]


def test_a_scope_comes_before_names_and_is_entered_once(graph):
    with tf.name_scope("outer") as outer:
        assert outer == "outer/"
        assert tf.constant(1, name="x").name == "outer/x:0"
        with tf.name_scope("inner") as inner:
            assert inner == "outer/inner/"
    with tf.name_scope("outer") as again:
        assert again == "outer_1/"
    with tf.name_scope(outer):
        assert tf.constant(1, name="x").name == "outer/x_1:0"
    with tf.name_scope("outer"), v1.name_scope(None):
        assert tf.constant(1, name="top").name == "top:0"


def test_eager_scopes_are_not_numbered():
    with tf.name_scope("s") as first:
        pass
    with tf.name_scope("s") as second:
        assert tf.Variable(1.0, name="v").name == "s/v:0"
    assert first == second == "s/"


@pytest.mark.parametrize("wrong", ["with blank", "_begins", "a?b"])
def test_a_name_that_cannot_be_one_is_refused(graph, wrong):
    with pytest.raises(ValueError, match="not a valid"):
        tf.constant(1, name=wrong)


def test_nodes_are_found_by_name(graph):
    x = tf.constant(1, name="x")
    y = tf.add(x, 2, name="y")
    assert graph.get_tensor_by_name("y:0") is y
    op = graph.get_operation_by_name("y")
    assert op.outputs == [y] or op.outputs[0] is y
    assert op.name == "y" and op.graph is graph and op.inputs[0] is x
    assert y.op == op and op.type == "AddV2"
    fed = v1.placeholder(tf.float32, name="fed")
    tf.Variable(1.0, name="v")
    types = {op.name: op.type for op in graph.get_operations()}
    assert types["x"] == "Const" and types["fed"] == "Placeholder" and types["v"] == "VarHandleOp"
    assert [name for name, kind in types.items() if kind == "Placeholder"] == [fed.op.name]
    with pytest.raises(KeyError, match="refers to an Operation not in the graph"):
        graph.get_operation_by_name("z")
    with pytest.raises(KeyError, match="does not exist"):
        graph.get_tensor_by_name("z:0")
    with pytest.raises(KeyError, match="only has 1 outputs"):
        graph.get_tensor_by_name("y:1")
    with pytest.raises(ValueError, match="looks like an .invalid. Operation name"):
        graph.get_tensor_by_name("y")
    with pytest.raises(TypeError):
        graph.get_tensor_by_name(3)


def test_operations_are_listed_in_the_order_they_were_made(graph):
    tf.constant(1, name="b")
    tf.constant(1, name="a")
    assert names(graph) == ["b", "a"]


def test_a_finalized_graph_takes_nothing_more(graph):
    x = tf.constant(1)
    graph.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        x + 1
    assert graph.finalized


def test_a_tensor_of_another_graph_is_no_element(graph):
    with tf.Graph().as_default():
        foreign = v1.placeholder(tf.int32)
    with pytest.raises(ValueError, match="not an element of this graph"):
        graph.as_graph_element(foreign)
    with pytest.raises(TypeError):
        graph.as_graph_element(3)


def test_the_default_graph_is_reset():
    before = v1.get_default_graph()
    v1.reset_default_graph()
    assert v1.get_default_graph() is not before
    with tf.Graph().as_default():
        with pytest.raises(AssertionError, match="nested graphs"):
            v1.reset_default_graph()


def test_a_graph_that_nobody_has_is_freed():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [2])
        y = x * 2 + tf.constant([1.0, 2.0])
    gone = weakref.ref(graph)
    del graph, x, y
    gc.collect()
    assert gone() is None


def test_eager_tensors_have_no_op():
    with pytest.raises(AttributeError, match="eager"):
        tf.constant(1).op


def test_collections_hold_what_is_added(graph):
    v1.add_to_collection("mine", 1)
    v1.add_to_collection("mine", 2)
    assert v1.get_collection("mine") == [1, 2] == graph.get_collection("mine")
    v1.get_collection_ref("mine").append(3)
    assert v1.get_collection("mine") == [1, 2, 3]
    with tf.name_scope("s"):
        v = tf.Variable(1.0, name="v")
    tf.Variable(1.0, name="w", trainable=False)
    assert v1.get_collection(v1.GraphKeys.GLOBAL_VARIABLES, "s/") == [v]
    assert len(v1.global_variables()) == 2 and len(v1.trainable_variables()) == 1


# ---- devices ----


def test_devices_are_part_of_nodes():
    with tf.device("/CPU:0"):
        x = tf.constant([1.0]) + 1
        with tf.device(None):
            y = x + 1
        with tf.device("/device:GPU:0"):
            z = x + 1
    assert x.device == "/CPU:0" and y.device.endswith("CPU:0") and "GPU:0" in z.device
    assert z.numpy().tolist() == [3.0]


@pytest.mark.parametrize("wrong", ["/TPUX:0", "nonsense", 3])
def test_a_device_that_can_be_none_is_refused(wrong):
    with pytest.raises(ValueError, match="Malformed device"):
        tf.device(wrong)


def test_devices_are_listed():
    cpus = tf.config.list_physical_devices("CPU")
    assert cpus[0].name == "/physical_device:CPU:0" and cpus[0].device_type == "CPU"
    assert tf.config.list_logical_devices("CPU")[0].name == "/device:CPU:0"
    assert cpus[0] in tf.config.list_physical_devices()


def test_what_is_hidden_is_not_listed_any_more(run_python):
    told = run_python(
        "import plimsoll.tf as tf\n"
        "gpus = tf.config.list_physical_devices('GPU')\n"
        "print(len(gpus))\n"
        "tf.config.set_visible_devices([], 'GPU')\n"
        "print(tf.config.list_physical_devices('GPU') == gpus, tf.config.get_visible_devices('GPU'))\n"
        "print(tf.config.list_logical_devices('GPU'), tf.test.gpu_device_name())\n"
        "with tf.device('/GPU:0'):\n"
        "    x = tf.constant([1.0]) + 1\n"
        "print(x.numpy(), x.device == f'/GPU:{len(gpus)}' if gpus else True)\n"
        "tf.config.set_visible_devices(gpus, 'GPU')\n"
        "print(len(tf.config.list_logical_devices('GPU')) == len(gpus))\n",
        PLIMSOLL_OPENCL_CPU="1",
    )
    assert told.splitlines()[1:] == ["True []", "[] ", "[2.] True", "True"]


def test_strict_placement_refuses_what_cannot_be_placed(run_python):
    program = (
        "import plimsoll.tf as tf\n"
        "tf.config.set_soft_device_placement({})\n"
        "with tf.device('/GPU:7'):\n"
        "    x = tf.constant([1.0]) + 1\n"
        "try:\n"
        "    print(x.numpy(), tf.config.get_soft_device_placement())\n"
        "except tf.errors.OpError as error:\n"
        "    print(type(error).__name__)\n"
    )
    assert run_python(program.format(True)) == "[2.] True\n"
    assert run_python(program.format(False)) == "InvalidArgumentError\n"


def test_budgets_of_devices_are_taken(run_python):
    assert run_python(
        "import plimsoll.tf as tf\n"
        "gpu = tf.config.PhysicalDevice('/physical_device:GPU:0', 'GPU')\n"
        "limit = tf.config.LogicalDeviceConfiguration(memory_limit=64)\n"
        "tf.config.set_logical_device_configuration(gpu, [limit])\n"
        "print(tf.config.get_logical_device_configuration(gpu) == [limit])\n"
        "tf.config.list_physical_devices()\n"
        "try:\n"
        "    tf.config.set_logical_device_configuration(gpu, [limit])\n"
        "except RuntimeError as error:\n"
        "    print('after being initialized' in str(error))\n"
    ) == "True\nTrue\n"


def test_unknown_devices_cannot_be_made_visible():
    with pytest.raises(ValueError, match="Unrecognized device"):
        tf.config.set_visible_devices(tf.config.PhysicalDevice("/physical_device:GPU:99", "GPU"))


def test_memory_of_the_cpu_is_what_is_claimed_of_the_budget():
    x = tf.zeros([1 << 20]) + 1
    x.numpy()
    info = tf.config.get_memory_info("CPU:0")
    assert info["peak"] >= info["current"] >= 4 << 20
    with pytest.raises(ValueError, match="No matching devices"):
        tf.config.get_memory_info("GPU:99")


# ---- what waits for what ----


def test_what_waits_for_an_assignment_reads_what_was_assigned(graph):
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign(5.0)]):
        after = v.read_value()
        doubled = v * 2
    with v1.Session() as session:
        session.run(v.initializer)
        assert session.run(after) == 5.0
        session.run(v.initializer)
        assert session.run([doubled, v]) == [10.0, 1.0]
        assert session.run(v) == 5.0


def test_a_group_runs_all_of_its_members(graph):
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    both = tf.group(a.assign(10.0), b.assign(20.0))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(both) is None
        assert session.run([a, b]) == [10.0, 20.0]


def test_a_python_function_that_is_waited_for_is_called(graph):
    calls = []
    x = v1.placeholder(tf.float32, [])
    noted = tf.py_function(lambda v: calls.append(float(v)), [x], [])
    with tf.control_dependencies([noted]):
        y = x + 1
    with v1.Session() as session:
        assert session.run(y, {x: 3.0}) == 4.0
        assert session.run(x + 5, {x: 3.0}) == 8.0
    assert calls == [3.0]


def test_eagerly_nothing_has_to_wait():
    with tf.control_dependencies([tf.constant(1)]):
        assert int(tf.constant(2)) == 2
    assert tf.group(tf.constant(1)) is None and tf.no_op() is None


# ---- conditions and loops ----


def test_a_condition_is_decided_when_it_is_run(graph):
    x = v1.placeholder(tf.int32, [])
    y = tf.cond(x > 0, lambda: x * 2, lambda: x - 1)
    with v1.Session() as session:
        assert session.run(y, {x: 3}) == 6 and session.run(y, {x: -3}) == -4


def test_a_loop_runs_as_often_as_its_condition_says(graph):
    n = v1.placeholder(tf.int32, [])
    i, total = tf.while_loop(
        lambda i, total: i < n, lambda i, total: (i + 1, total + i), (tf.constant(0), tf.constant(0))
    )
    with v1.Session() as session:
        assert session.run([i, total], {n: 5}) == [5, 10]
        assert session.run([i, total], {n: 0}) == [0, 0]


def test_cases_and_switches_in_a_graph(graph):
    x = v1.placeholder(tf.int32, [])
    y = tf.case(
        [(x < 0, lambda: tf.constant(-1)), (x < 10, lambda: tf.constant(1))],
        default=lambda: tf.constant(10),
    )
    z = tf.switch_case(x, {0: lambda: x + 100, 3: lambda: x + 300}, default=lambda: x)
    with v1.Session() as session:
        assert [int(session.run(y, {x: v})) for v in (-5, 5, 50)] == [-1, 1, 10]
        assert [int(session.run(z, {x: v})) for v in (0, 3, 7)] == [100, 303, 7]


def test_conditions_eagerly_run_one_branch():
    ran = []
    assert int(tf.cond(tf.constant(True), lambda: ran.append("t") or tf.constant(1), lambda: 1 / 0)) == 1
    assert ran == ["t"]
    with pytest.raises(TypeError, match="must be callable"):
        tf.cond(tf.constant(True), 1, 2)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.case([(tf.constant(False), lambda: 1)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="exclusive"):
        tf.case([(tf.constant(True), lambda: 1), (tf.constant(True), lambda: 2)], exclusive=True)


def test_branches_have_to_give_the_same(graph):
    x = v1.placeholder(tf.int32, [])
    with pytest.raises(TypeError, match="same number, type"):
        tf.cond(x > 0, lambda: tf.constant(1), lambda: tf.constant(1.0))
    with pytest.raises((TypeError, ValueError), match="same number, type"):
        tf.cond(x > 0, lambda: [x, x], lambda: [x])


def test_a_loop_variable_keeps_its_shape_unless_that_is_said(graph):
    # As tf.while_loop's documentation has it.
    i0, m0 = tf.constant(0), tf.ones([2, 2])

    def condition(i, m):
        return i < 10

    def body(i, m):
        return [i + 1, tf.concat([m, m], axis=0)]

    with pytest.raises(ValueError, match="shape_invariants"):
        tf.while_loop(condition, body, loop_vars=[i0, m0])
    made = tf.while_loop(
        condition,
        body,
        loop_vars=[i0, m0],
        shape_invariants=[i0.get_shape(), tf.TensorShape([None, 2])],
    )
    with v1.Session() as session:
        assert session.run(made)[1].shape == (2048, 2)


def test_a_loop_eagerly_takes_no_more_than_it_may():
    made = tf.while_loop(lambda i: i < 10, lambda i: [i + 1], [tf.constant(0)], maximum_iterations=3)
    assert int(made[0]) == 3


def test_what_a_loops_condition_does_is_done_each_time(graph):
    seen = []

    def condition(i):
        tf.py_function(lambda i: seen.append(int(i)), [i], [])
        return i < 3

    made = tf.while_loop(condition, lambda i: [i + 1], [tf.constant(0)])
    with v1.Session() as session:
        assert session.run(made) == [3]
    assert seen == [0, 1, 2, 3]


def test_structures_go_through_loops(graph):
    start = (tf.constant(0), {"a": tf.constant(1), "b": [tf.constant(2)]})

    def body(i, s):
        return i + 1, {"a": s["a"] * 2, "b": [s["b"][0] + 1]}

    made = tf.while_loop(lambda i, s: i < 3, body, start)
    with v1.Session() as session:
        assert session.run(made) == (3, {"a": 8, "b": [5]})


def test_nodes_that_nobody_named_are_named_as_in_tensorflow():
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2, 2])
        named = {
            tf.matmul(x, x): "MatMul", tf.nn.relu(x): "Relu", tf.nn.softmax(x): "Softmax",
            tf.reduce_sum(x): "Sum", tf.reduce_mean(x): "Mean", tf.identity(x): "Identity",
            x + x: "add", x * x: "mul", x - x: "sub", x / x: "truediv", tf.transpose(x): "transpose",
            tf.reshape(x, [4]): "Reshape", tf.cast(x, tf.int32): "Cast", tf.sqrt(x): "Sqrt",
            tf.concat([x, x], 0): "concat", x[:1]: "strided_slice", tf.argmax(x): "ArgMax",
        }  # fmt: skip
        for node, name in named.items():
            assert node.name in (f"{name}:0", f"{name}_1:0"), (node.name, name)
        assert graph.get_tensor_by_name("MatMul:0") in named
        assert tf.identity(x, name="sum").name == "sum_1:0", "names differ by more than their case"
        assert x[:1].op.type == "StridedSlice" and tf.argmax(x).op.type == "ArgMax"


def test_nothing_is_made_of_two_graphs():
    nodes = []
    for value in (1, 2):
        with tf.Graph().as_default():
            nodes += [tf.constant(value), v1.placeholder(tf.int32, [])]
    for a, b in ((0, 2), (1, 3), (0, 3), (3, 0)):
        with pytest.raises(ValueError, match="same graph"):
            nodes[a] + nodes[b]
    assert (nodes[0] + 1).numpy() == 2


def test_constants_that_functions_give_belong_to_no_graph():
    one, two = tf.function(lambda: tf.constant(1)), tf.function(lambda: tf.constant(2))
    assert (one() + two()).numpy() == 3


def test_an_eager_tensor_says_where_it_is():
    assert tf.constant(1).device.endswith("CPU:0")
    with tf.Graph().as_default():
        assert tf.constant(1).device == ""
