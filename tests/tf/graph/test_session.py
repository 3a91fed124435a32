# SPDX-License-Identifier: Apache-2.0
"""Sessions: fetches, feeds, files, the default session; mixed with eager tensors."""
import collections

import numpy as np
import pytest

import plimsoll
import plimsoll.tf as tf

v1 = tf.compat.v1


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_fetches_come_back_in_their_form(graph):
    Pair = collections.namedtuple("Pair", ["a", "b"])
    a, b = tf.constant([10, 20]), tf.constant([1.0, 2.0])
    with v1.Session() as session:
        value = session.run(a)
        assert isinstance(value, np.ndarray) and value.tolist() == [10, 20]
        assert [v.tolist() for v in session.run([a, b])] == [[10, 20], [1.0, 2.0]]
        assert isinstance(session.run((a, b)), tuple)
        pair = session.run({"k1": Pair(a, b), "k2": [b, a]})
        assert isinstance(pair["k1"], Pair) and pair["k1"].a.tolist() == [10, 20]
        assert pair["k2"][0].tolist() == [1.0, 2.0]
        assert session.run([]) == [] and list(session.run({"z": a, "y": b})) == ["z", "y"]


def test_scalars_and_texts_come_back_as_such(graph):
    with v1.Session() as session:
        number = session.run(tf.constant(1.5))
        assert isinstance(number, np.float32) and number == 1.5
        assert session.run(tf.constant("text")) == b"text"
        assert session.run(tf.constant(["a", "b"])).tolist() == [b"a", b"b"]


def test_fetches_are_named(graph):
    x = tf.constant(3.0, name="x")
    with v1.Session() as session:
        assert session.run("x:0") == 3.0
        assert session.run(["x:0", "x"]) == [3.0, None]
        assert session.run(x.op) is None
        with pytest.raises(ValueError, match="cannot be interpreted as a Tensor"):
            session.run("y:0")


@pytest.mark.parametrize("wrong", [None, 3, [None], object()])
def test_what_cannot_be_fetched_is_a_type_error(graph, wrong):
    tf.constant(1)
    with v1.Session() as session, pytest.raises(TypeError):
        session.run(wrong)


def test_placeholders_are_fed(graph):
    x = v1.placeholder(tf.float32, [None, 2], name="x")
    y = tf.reduce_sum(x * x)
    with v1.Session() as session:
        assert session.run(y, {x: [[1, 2]]}) == 5.0
        assert session.run(y, feed_dict={"x:0": np.ones([3, 2])}) == 6.0
        assert session.run(y, {x: np.ones([1, 2], np.int64)}) == 2.0
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            session.run(y, {x: [1.0, 2.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="x"):
            session.run(y)
        with pytest.raises(TypeError, match="feed_dict key"):
            session.run(y, {"nothing:0": 1})
        with pytest.raises(TypeError, match="The value of a feed cannot be a tf.Tensor"):
            session.run(y, {x: tf.ones([1, 2]) + 1})


def test_any_tensor_can_be_fed(graph):
    a = tf.constant(2.0)
    b = a * 3
    c = b + 1
    with v1.Session() as session:
        assert session.run(c) == 7.0
        assert session.run(c, {b: 10.0}) == 11.0
        assert session.run(c, {a: 0.0}) == 1.0
        assert session.run([b, c], {b: 10.0}) == [10.0, 11.0]


def test_a_placeholder_may_have_a_default(graph):
    x = v1.placeholder_with_default([1.0, 2.0], [None])
    y = tf.reduce_sum(x)
    with v1.Session() as session:
        assert session.run(y) == 3.0
        assert session.run(y, {x: [1.0, 2.0, 3.0]}) == 6.0


def test_placeholders_are_not_eager():
    with pytest.raises(RuntimeError, match="not compatible with eager execution"):
        v1.placeholder(tf.float32)


def test_a_closed_session_is_not_used(graph):
    x = tf.constant(1)
    session = v1.Session()
    session.close()
    with pytest.raises(RuntimeError, match="Attempted to use a closed Session."):
        session.run(x)
    with v1.Session() as session:
        pass
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(x)


def test_a_session_of_an_empty_graph_says_so(graph):
    with v1.Session() as session, pytest.raises(RuntimeError, match="graph is empty"):
        session.run("x:0")


def test_the_default_session_evaluates(graph):
    x = tf.constant(2.0)
    with v1.Session() as session:
        assert v1.get_default_session() is session
        assert x.eval() == 2.0
    assert v1.get_default_session() is None
    with pytest.raises(ValueError, match="No default session"):
        (x + 1).eval()
    session = v1.Session()
    with session.as_default():
        assert (x + 1).eval() == 3.0
    assert session.run(x) == 2.0
    assert (x * 2).eval(session=session) == 4.0


def test_an_interactive_session_is_the_default_until_it_is_closed(graph):
    session = v1.InteractiveSession()
    assert (tf.constant(1.0) + 1).eval() == 2.0
    session.close()
    assert v1.get_default_session() is None


def test_a_session_enters_its_graph():
    graph = tf.Graph()
    with graph.as_default():
        tf.constant(1)
    with v1.Session(graph=graph) as session:
        x = tf.constant(4.0)
        assert x.graph is graph and session.run(x) == 4.0
    assert tf.executing_eagerly()
    with pytest.raises(TypeError, match="must be a tf.Graph"):
        v1.Session(graph=3)
    with pytest.raises(NotImplementedError):
        v1.Session("grpc://somewhere")


def test_a_tensor_of_another_graph_is_refused(graph):
    tf.constant(1)
    with tf.Graph().as_default():
        foreign = v1.placeholder(tf.int32, []) + 1
    with v1.Session() as session, pytest.raises(ValueError, match="not an element of this graph"):
        session.run(foreign)


def test_eager_tensors_run_in_sessions():
    a = tf.constant([1.0, 2.0, 3.0])
    b = tf.constant([4.0, 5.0, 6.0])
    c = a + b
    v = tf.Variable(3.0)
    with v1.Session() as session:
        assert session.run(c).tolist() == [5.0, 7.0, 9.0]
        assert session.run([c, v * 2])[1] == 6.0 and session.run(v) == 3.0


def test_eager_tensors_are_used_in_graphs():
    a = tf.constant([1.0, 2.0])
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [2])
        y = x * a
        with v1.Session() as session:
            assert session.run(y, {x: [3.0, 4.0]}).tolist() == [3.0, 8.0]


def test_results_are_written_to_files(graph, tmp_path):
    x = tf.reshape(tf.range(6), [2, 3])
    y = tf.cast(x, tf.float32) * 0.5
    with v1.Session() as session:
        assert session.run(x, out=str(tmp_path / "x.npy")) is None
        values = session.run([x, y], out=[None, tmp_path / "y.npy"])
    assert np.load(tmp_path / "x.npy").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert values[0].tolist() == [[0, 1, 2], [3, 4, 5]] and values[1] is None
    assert np.load(tmp_path / "y.npy").tolist() == [[0, 0.5, 1], [1.5, 2, 2.5]]


def test_paths_have_to_be_as_many_as_fetches(graph, tmp_path):
    x = tf.constant(1)
    with v1.Session() as session:
        with pytest.raises(ValueError, match="1 fetches"):
            session.run(x, out=["a.npy", "b.npy"])
        with pytest.raises(ValueError, match="no value"):
            session.run(x.op, out=str(tmp_path / "a.npy"))


def test_a_result_larger_than_the_budget_goes_to_a_file(run_python, tmp_path):
    path = tmp_path / "big.npy"
    program = (
        "import plimsoll.tf as tf\n"
        "with tf.Graph().as_default():\n"
        "    x = tf.ones([6500, 1]) * tf.ones([1, 6500])\n"  # 169 MB
        "    with tf.compat.v1.Session() as session:\n"
        "        try:\n"
        "            session.run(x)\n"
        "        except tf.errors.ResourceExhaustedError as error:\n"
        "            print('refused')\n"
        f"        print(session.run(x, out={str(path)!r}))\n"
    )
    assert run_python(program, PLIMSOLL_BUDGET="128M") == "refused\nNone\n"
    big = np.load(path, mmap_mode="r")
    assert big.shape == (6500, 6500) and big[0, 0] == big[-1, -1] == 1


def test_random_ops_draw_anew_in_each_run(graph):
    x = tf.random.normal([4])
    with v1.Session() as session:
        first, second = session.run(x), session.run(x)
        assert first.tolist() != second.tolist()
        one, other = session.run([x, x * 1.0])
        assert one.tolist() == other.tolist()


def test_a_session_makes_callables(graph):
    x = v1.placeholder(tf.float32, [])
    with v1.Session() as session:
        double = session.make_callable(x * 2, [x])
        assert double(4.0) == 8.0
        with pytest.raises(NotImplementedError):
            session.partial_run(None, x)


def test_config_protos_are_accepted(graph):
    config = v1.ConfigProto(allow_soft_placement=True, log_device_placement=True)
    config.gpu_options.allow_growth = True
    config.gpu_options.per_process_gpu_memory_fraction = 0.5
    with v1.Session(config=config) as session:
        assert session.run(tf.constant(1)) == 1


def test_eager_execution_is_disabled_for_good(run_python):
    assert run_python(
        "import plimsoll.tf.compat.v1 as tf\n"
        "tf.disable_v2_behavior()\n"
        "x = tf.placeholder(tf.float32, [None])\n"
        "w = tf.get_variable('w', [1], initializer=tf.ones_initializer())\n"
        "y = tf.reduce_sum(x * w)\n"
        "with tf.Session() as session:\n"
        "    session.run(tf.global_variables_initializer())\n"
        "    print(session.run(y, {x: [1, 2]}), tf.executing_eagerly())\n"
        "tf.reset_default_graph()\n"
        "print(len(tf.get_default_graph().get_operations()), tf.constant(1).name)\n"
    ) == "3.0 False\n0 Const:0\n"


def test_explaining_a_tensor_of_a_graph_runs_nothing(graph):
    x = v1.placeholder(tf.float32, [1000, 1000])
    y = tf.matmul(x, x)
    told = plimsoll.explain(y, {x: np.zeros([1000, 1000], np.float32)})
    assert told.peak_bytes >= 4 * 1000 * 1000 and "matmul" in str(told)


def test_names_of_tensorflow_1_that_moved(tmp_path):
    assert v1.div(7, 2).numpy() == 3 and v1.div(7.0, 2.0).numpy() == 3.5
    assert v1.matrix_inverse([[2.0]]).numpy().tolist() == [[0.5]]
    assert v1.squared_difference(5, 3).numpy() == 4 and v1.floor_div(7, 2).numpy() == 3
    assert v1.string_join(["a", "b"]).numpy() == b"ab"
    assert v1.gfile.Exists(str(tmp_path)) and v1.gfile.IsDirectory(str(tmp_path))
    with v1.gfile.Open(str(tmp_path / "x"), "w") as file:
        file.write("abc")
    with v1.python_io.TFRecordWriter(str(tmp_path / "y")) as writer:
        writer.write(b"record")
    assert v1.VERSION == tf.__version__
    for name in ("fft", "sparse_split", "colocate_with", "GraphOptions"):
        with pytest.raises(NotImplementedError, match=name):
            getattr(v1, name)
    with pytest.raises(AttributeError):
        v1.nothing_of_the_kind


def test_print_in_a_graph(capfd):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.int32, [])
        y = v1.Print(x + 1, [x, x * 2], "seen: ")
        assert capfd.readouterr().err == ""
        assert session.run(y, {x: 4}) == 5
    assert "seen:  4 8" in capfd.readouterr().err


def test_arguments_of_tensorflow_1(capfd):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2])
        logits = v1.nn.xw_plus_b(x, tf.ones([2, 3]), [0.0, 1.0, 2.0])
        loss = v1.nn.softmax_cross_entropy_with_logits_v2(labels=[[0.0, 0.0, 1.0]], logits=logits)
        sparse = v1.nn.sparse_softmax_cross_entropy_with_logits(labels=[2], logits=logits)
        a, b, kept = session.run([loss, sparse, v1.nn.dropout(x, keep_prob=1.0)], {x: [[1, 2]]})
        np.testing.assert_allclose(a, b, rtol=1e-6)
        assert kept.tolist() == [[1, 2]]
        turns = v1.while_loop(lambda i: i < 10, lambda i: i + 1, [tf.constant(0)], name="turns")
        assert session.run(turns) == 10
        assert session.run(v1.cond(tf.constant(False), fn1=lambda: 1, fn2=lambda: 2)) == 2
        assert session.run(v1.transpose(x, [1, 0], "turned"), {x: [[1, 2]]}).tolist() == [[1], [2]]
    with pytest.raises(ValueError, match="keep_prob"):
        v1.nn.dropout([1.0])
    with pytest.raises(NotImplementedError, match="conv2d"):
        v1.nn.conv2d
