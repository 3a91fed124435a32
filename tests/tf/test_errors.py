# SPDX-License-Identifier: Apache-2.0
"""Error classes, assertions, and names that are not implemented."""
import pickle
import traceback

import numpy as np
import pytest

import plimsoll
import plimsoll.tf as tf

PYTHONS_OWN = {
    "InvalidArgumentError": ValueError,
    "ResourceExhaustedError": MemoryError,
    "NotFoundError": FileNotFoundError,
    "AlreadyExistsError": FileExistsError,
    "PermissionDeniedError": PermissionError,
    "DeadlineExceededError": TimeoutError,
    "UnimplementedError": NotImplementedError,
    "OutOfRangeError": IndexError,
    "DataLossError": OSError,
    "FailedPreconditionError": RuntimeError,
    "InternalError": RuntimeError,
    "UnknownError": RuntimeError,
}


@pytest.mark.parametrize("name", PYTHONS_OWN)
def test_an_error_is_also_the_one_that_python_would_raise(name):
    cls = getattr(tf.errors, name)
    with pytest.raises(PYTHONS_OWN[name], match="what is wrong") as caught:
        raise cls(None, None, "what is wrong")
    assert isinstance(caught.value, tf.errors.OpError)
    assert caught.value.message == str(caught.value) == "what is wrong"
    assert caught.value.op is None and caught.value.node_def is None


def test_errors_have_tensorflows_codes():
    assert tf.errors.InvalidArgumentError(None, None, "").error_code == tf.errors.INVALID_ARGUMENT == 3
    assert tf.errors.ResourceExhaustedError(None, None, "").error_code == 8
    assert tf.errors.DATA_LOSS == 15 and tf.errors.DataLossError(None, None, "").error_code == 15


def test_an_error_survives_being_pickled():
    error = pickle.loads(pickle.dumps(tf.errors.NotFoundError(None, None, "no 'a'")))
    assert type(error) is tf.errors.NotFoundError and error.message == "no 'a'"


def test_shapes_that_do_not_fit_are_an_invalid_argument_at_once():
    with pytest.raises(tf.errors.InvalidArgumentError, match="broadcast"):
        tf.add(tf.zeros([10, 10]), tf.zeros([20, 20]))


def test_a_shape_that_cannot_be_counted_is_an_invalid_argument():
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 2"):
        tf.zeros([2**40, 2**40])


def test_what_does_not_fit_the_budget_is_exhausted_and_the_process_goes_on():
    big = tf.random.normal([10000, 10000, 10000])
    with pytest.raises(tf.errors.ResourceExhaustedError):
        big.numpy()
    with pytest.raises(MemoryError):
        tf.Variable(tf.zeros([10000, 10000, 10000]))
    assert (tf.constant([1.0]) + 1).numpy().tolist() == [2.0]


def test_the_module_of_errors_is_also_plimsolls_function():
    assert plimsoll.errors is tf.errors
    with pytest.raises(TypeError, match="takes a dataset"):
        plimsoll.errors(3)


# ---- what is not there ----


@pytest.mark.parametrize(
    "name", ["keras", "GradientTape", "distribute", "complex64", "RaggedTensor", "saved_model"]
)
def test_what_is_missing_is_said_when_it_is_named(name):
    with pytest.raises(NotImplementedError, match=f"tf.{name}"):
        getattr(tf, name)


def test_what_is_missing_in_a_module_is_named_with_it():
    with pytest.raises(NotImplementedError, match="tf.train.Checkpoint"):
        tf.train.Checkpoint
    with pytest.raises(NotImplementedError, match="enable_check_numerics"):
        tf.debugging.enable_check_numerics()
    with pytest.raises(NotImplementedError, match="tf.compat.v1.layers"):
        tf.compat.v1.layers
    with pytest.raises(NotImplementedError, match="tf.compat.v1.train.AdamOptimizer"):
        tf.compat.v1.train.AdamOptimizer
    assert tf.compat.v1.train.Example is tf.train.Example


def test_what_tensorflow_has_not_either_is_an_attribute_error():
    assert not hasattr(tf, "no_such_name") and not hasattr(tf, "__wrapped__")
    assert not hasattr(tf.compat.v1, "no_such_name")
    with pytest.raises(AttributeError, match="no_such_name"):
        tf.no_such_name


@pytest.mark.parametrize("name, hint", [
    ("Session", "TensorFlow 1 had it, and it is tf.compat.v1.Session here"),
    ("placeholder", "TensorFlow 1 had it, and it is tf.compat.v1.placeholder here"),
    ("global_variables_initializer", "tf.compat.v1.global_variables_initializer here"),
    ("constnat", "did you mean tf.constant?"),
    ("reduce_summ", "did you mean tf.reduce_sum?"),
])
def test_a_name_of_tensorflow_1_or_a_misspelt_one_is_pointed_to(name, hint):
    with pytest.raises(AttributeError, match=f"^module 'tf' has no attribute '{name}'.*{hint}"):
        getattr(tf, name)


def test_python_adds_no_guess_of_its_own_to_a_hint():
    """Its traceback would say "Did you mean: 'version'?" behind what is said of tf.Session."""
    for module, name in ((tf, "Session"), (tf, "reduce_summ"), (plimsoll, "budgte")):
        with pytest.raises(AttributeError, match="did you mean |TensorFlow 1 had it") as caught:
            getattr(module, name)
        shown = "".join(traceback.format_exception(None, caught.value, caught.tb))
        assert "Did you mean" not in shown.splitlines()[-1]


def test_misspelt_names_of_modules_are_pointed_to():
    with pytest.raises(AttributeError, match=r"did you mean tf\.nn\.softmax\?"):
        tf.nn.sofmtax
    with pytest.raises(AttributeError, match=r"did you mean tf\.compat\.v1\.Session\?"):
        tf.compat.v1.Sesion
    with pytest.raises(AttributeError, match=r"did you mean plimsoll\.budget\?"):
        plimsoll.budgte
    with pytest.raises(AttributeError, match="'no_such_name'$"):
        tf.no_such_name
    with pytest.raises(NotImplementedError, match=r"dir\(tf\.nn\) lists what is"):
        tf.nn.conv2d


def test_the_version_says_whose_names_and_whose_runtime():
    assert tf.__version__.startswith("2.15") and "plimsoll" in tf.__version__
    assert tf.version.VERSION == tf.__version__


def test_loggers_are_set_and_devices_asked_for():
    v1 = tf.compat.v1
    v1.logging.set_verbosity(v1.logging.ERROR)
    assert tf.get_logger().level == v1.logging.get_verbosity() == 40
    tf.get_logger().setLevel("NOTSET")
    assert tf.test.is_gpu_available() == bool(tf.config.list_logical_devices("GPU"))
    with pytest.raises(NotImplementedError, match="tf.test.TestCase"):
        tf.test.TestCase


def test_time_goes_on_in_traced_functions():
    now = tf.function(lambda: tf.timestamp())
    first, second = float(now()), float(now())
    assert second > first > 1.6e9 and now().dtype == tf.float64
    inside = tf.function(lambda: tf.constant(tf.inside_function()))
    assert bool(inside()) and not tf.inside_function()


# ---- assertions ----


def test_assertions_pass_eagerly_and_fail_with_the_values():
    tf.debugging.assert_equal(tf.constant([1, 2]), [1, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)my words.*\[1, 3\]"):
        tf.debugging.assert_equal(tf.constant([1, 3]), [1, 2], message="my words")


@pytest.mark.parametrize(
    "name, good, bad",
    [
        ("assert_less", ([1, 2], [2, 3]), ([1, 3], [2, 3])),
        ("assert_less_equal", ([1, 3], [2, 3]), ([1, 4], [2, 3])),
        ("assert_greater", ([2, 4], [1, 3]), ([2, 3], [1, 3])),
        ("assert_greater_equal", ([2, 3], [1, 3]), ([2, 2], [1, 3])),
        ("assert_none_equal", ([1, 2], [2, 1]), ([1, 2], [2, 2])),
        ("assert_positive", ([1, 2],), ([1, 0],)),
        ("assert_negative", ([-1],), ([0],)),
        ("assert_non_negative", ([0],), ([-1],)),
        ("assert_non_positive", ([0],), ([1],)),
        ("assert_near", ([1.0], [1.0 + 1e-7]), ([1.0], [1.1])),
    ],
)
def test_each_assertion_tells_good_from_bad(name, good, bad):
    check = getattr(tf.debugging, name)
    check(*map(tf.constant, good))
    with pytest.raises(tf.errors.InvalidArgumentError):
        check(*map(tf.constant, bad))


def test_assertions_in_traced_functions_happen_at_each_call():
    @tf.function
    def checked(x):
        tf.debugging.assert_positive(x)
        return x + 1

    assert int(checked(tf.constant(1))) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="x > 0"):
        checked(tf.constant(-1))
    assert int(checked(tf.constant(5))) == 6


def test_assertions_in_graphs_happen_when_they_are_run():
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.int32, [])
        check = tf.debugging.assert_less(x, 3)
        with tf.control_dependencies([check]):
            y = x + 1
        with tf.compat.v1.Session() as session:
            assert session.run(y, {x: 2}) == 3
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(y, {x: 3})
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(check, {x: 3})


def test_numbers_are_checked():
    x = tf.constant([1.0, 2.0])
    assert tf.debugging.check_numerics(x, "fine") is x
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad : Tensor had NaN and Inf"):
        tf.debugging.check_numerics(tf.constant([np.nan, np.inf]), "bad")
    traced = tf.function(lambda x: tf.debugging.check_numerics(1.0 / x, "zero"))
    assert float(traced(tf.constant(2.0))) == 0.5
    with pytest.raises(tf.errors.InvalidArgumentError, match="zero"):
        traced(tf.constant(0.0)).numpy()


def test_ranks_dtypes_and_shapes_are_asserted_at_once():
    x = tf.zeros([2, 3])
    tf.debugging.assert_rank(x, 2)
    tf.debugging.assert_rank_at_least(x, 1)
    tf.debugging.assert_rank_in(x, [1, 2])
    tf.debugging.assert_type(x, tf.float32)
    tf.debugging.assert_integer(tf.constant(1))
    tf.debugging.assert_scalar(tf.constant(1))
    tf.debugging.assert_shapes([(x, ("N", "Q")), (tf.zeros([3]), ("Q",))])
    for error, wrong in [
        (ValueError, lambda: tf.debugging.assert_rank(x, 1)),
        (ValueError, lambda: tf.debugging.assert_rank_at_least(x, 3)),
        (ValueError, lambda: tf.debugging.assert_rank_in(x, [1])),
        (TypeError, lambda: tf.debugging.assert_type(x, tf.int32)),
        (TypeError, lambda: tf.debugging.assert_integer(x)),
        (ValueError, lambda: tf.debugging.assert_scalar(x)),
        (ValueError, lambda: tf.debugging.assert_shapes([(x, ("N", "N"))])),
        (ValueError, lambda: tf.debugging.assert_shapes([(x, (2, 4))])),
        (TypeError, lambda: tf.debugging.assert_proper_iterable("text")),
        (ValueError, lambda: tf.debugging.assert_same_float_dtype([x, tf.zeros([], tf.float64)])),
    ]:
        with pytest.raises(error):
            wrong()


def test_assert_tells_its_data():
    assert tf.Assert is tf.debugging.Assert and tf.assert_equal is tf.debugging.assert_equal
    tf.debugging.Assert(tf.constant(True), [tf.constant(1)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="17"):
        tf.debugging.Assert(tf.constant(False), [tf.constant(17)])


# ---- examples ----


def test_an_example_goes_to_bytes_and_back():
    example = tf.train.Example(
        features=tf.train.Features(
            feature={
                "ints": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, -2, 2**62])),
                "floats": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5, 1.1])),
                "bytes": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a", b"\0\xff"])),
            }
        )
    )
    data = example.SerializeToString()
    again = tf.train.Example.FromString(data)
    assert again == example
    feature = again.features.feature
    assert list(feature["ints"].int64_list.value) == [1, -2, 2**62]
    assert list(feature["floats"].float_list.value) == [0.5, np.float32(1.1)]
    assert list(feature["bytes"].bytes_list.value) == [b"a", b"\0\xff"]
    assert feature["ints"].WhichOneof("kind") == "int64_list"
    other = tf.train.Example()
    assert other.ParseFromString(data) == len(data) and other == example


def test_the_bytes_of_an_example_are_those_of_protocol_buffers():
    # As TensorFlow's tutorial on TFRecord prints them.
    example = tf.train.Example(
        features=tf.train.Features(
            feature={
                "feature0": tf.train.Feature(int64_list=tf.train.Int64List(value=[0])),
                "feature1": tf.train.Feature(int64_list=tf.train.Int64List(value=[4])),
                "feature2": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"goat"])),
                "feature3": tf.train.Feature(float_list=tf.train.FloatList(value=[0.9876])),
            }
        )
    )
    expected = (
        b"\nR\n\x14\n\x08feature2\x12\x08\n\x06\n\x04goat\n\x14\n\x08feature3\x12\x08\x12\x06\n\x04"
        b"[\xd3|?\n\x11\n\x08feature0\x12\x05\x1a\x03\n\x01\x00\n\x11\n\x08feature1\x12\x05\x1a\x03"
        b"\n\x01\x04"
    )
    assert tf.train.Example.FromString(expected) == example
    assert len(example.SerializeToString()) == len(expected)
    assert tf.train.Feature(float_list=tf.train.FloatList(value=[2.718])).SerializeToString() == (
        b"\x12\x06\n\x04\xb6\xf3-@"
    )


def test_an_example_is_filled_in_place():
    example = tf.train.Example()
    example.features.feature["x"].int64_list.value.append(3)
    example.features.feature["x"].int64_list.value.extend([4, 5])
    again = tf.train.Example.FromString(example.SerializeToString())
    assert list(again.features.feature["x"].int64_list.value) == [3, 4, 5]


def test_values_of_the_wrong_kind_are_refused():
    with pytest.raises(TypeError, match="expected one of: bytes"):
        tf.train.BytesList(value=["text"])
    with pytest.raises(TypeError):
        tf.train.Int64List(value=[1.5])
    with pytest.raises(ValueError):
        tf.train.Int64List(value=[2**63])
    with pytest.raises(TypeError):
        tf.train.Features(feature={"x": 3})


@pytest.mark.parametrize("cut", [1, 5, 11])
def test_bytes_that_are_no_example_are_refused(cut):
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 300]))
    data = tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()
    with pytest.raises(ValueError):
        tf.train.Example.FromString(data[:cut])


def test_a_sequence_example_has_lists_by_name():
    step = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0]))
    example = tf.train.SequenceExample(
        feature_lists=tf.train.FeatureLists(
            feature_list={"steps": tf.train.FeatureList(feature=[step, step])}
        )
    )
    again = tf.train.SequenceExample.FromString(example.SerializeToString())
    assert len(again.feature_lists.feature_list["steps"].feature) == 2


# ---- sparse tensors ----


def test_a_sparse_tensor_becomes_dense_and_back():
    sparse = tf.sparse.SparseTensor([[0, 1], [2, 0]], [5, 6], [3, 2])
    assert sparse.shape == [3, 2] and sparse.dtype == tf.int32
    dense = tf.sparse.to_dense(sparse)
    assert dense.numpy().tolist() == [[0, 5], [0, 0], [6, 0]]
    assert tf.sparse.to_dense(sparse, default_value=-1).numpy()[1].tolist() == [-1, -1]
    again = tf.sparse.from_dense(dense)
    assert again.indices.numpy().tolist() == [[0, 1], [2, 0]]
    assert again.values.numpy().tolist() == [5, 6]
    texts = tf.sparse.SparseTensor([[1]], ["b"], [2])
    assert tf.sparse.to_dense(texts).numpy().tolist() == [b"", b"b"]


def test_a_sparse_tensor_that_does_not_fit_itself_is_refused():
    with pytest.raises(ValueError):
        tf.sparse.SparseTensor([[0, 1]], [1, 2], [3, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
        tf.sparse.to_dense(tf.sparse.SparseTensor([[3]], [1], [3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of order"):
        tf.sparse.to_dense(tf.sparse.SparseTensor([[2], [1]], [1, 2], [3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="repeated"):
        tf.sparse.to_dense(tf.sparse.SparseTensor([[1], [1]], [1, 2], [3]))


def test_sparse_tensors_go_through_functions_and_sessions():
    sparse = tf.sparse.SparseTensor([[1]], [2.0], [3])
    doubled = tf.function(lambda s: s.with_values(s.values * 2))(sparse)
    assert tf.sparse.to_dense(doubled).numpy().tolist() == [0, 4, 0]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        value = session.run(tf.sparse.SparseTensor([[1]], [2.0], [3]))
    assert value.values.tolist() == [2.0] and value.dense_shape.tolist() == [3]


def test_lists_take_tensors_of_one_number():
    """As TensorFlow's tutorial writes records, in a py_function."""
    ints = tf.train.Int64List(value=[tf.constant(True), tf.constant(3, tf.int64), np.bool_(False)])
    assert ints.value == [1, 3, 0]
    assert tf.train.FloatList(value=[tf.constant(0.5, tf.float64)]).value == [0.5]
    assert tf.train.BytesList(value=[tf.constant("a")]).value == [b"a"]
    with pytest.raises(TypeError, match="expected one of: int"):
        tf.train.Int64List(value=[tf.constant(1.5)])


# ---- what an error is about ----


@pytest.fixture
def pictures(tmp_path):
    """Five JPEGs, of which number 3 ends too early."""
    paths = []
    for i in range(5):
        path = tmp_path / f"{i}.jpg"
        noise = np.random.default_rng(i).integers(0, 255, (40, 30, 3), "u1")
        path.write_bytes(tf.io.encode_jpeg(noise).numpy())
        paths.append(str(path))
    whole = (tmp_path / "3.jpg").read_bytes()
    (tmp_path / "3.jpg").write_bytes(whole[:-30])
    return paths


def decoded(paths):
    files = tf.data.Dataset.from_tensor_slices(paths)
    return files.map(lambda path: tf.io.decode_jpeg(tf.io.read_file(path)))


def test_an_exception_has_as_attributes_what_it_is_about(pictures):
    iterator = iter(decoded(pictures))
    for _ in range(3):
        next(iterator)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        next(iterator)
    error = caught.value
    size = len(open(pictures[3], "rb").read())
    assert (error.stage, error.element, error.path) == ("map", 3, pictures[3])
    assert error.op in ("decode_jpeg", "decode_image") and 0 < error.offset <= size
    assert f"at byte {error.offset} of {size}" in str(error)
    assert error.node_def is None and error.__cause__ is None
    again = pickle.loads(pickle.dumps(error))
    for name in ("stage", "element", "path", "offset", "op", "message"):
        assert getattr(again, name) == getattr(error, name)


def test_skipped_elements_have_the_same_fields(pictures, tmp_path):
    import json

    lines = tmp_path / "bad.jsonl"
    dataset = decoded(pictures).on_error("quarantine", quarantine=str(lines))
    assert len(list(dataset)) == 4
    (bad,) = plimsoll.errors(dataset)
    size = len(open(pictures[3], "rb").read())
    assert (bad["stage"], bad["index"], bad["path"]) == ("map", 3, pictures[3])
    assert bad["op"] in ("decode_jpeg", "decode_image") and 0 < bad["offset"] <= size
    assert bad["reason"].startswith(bad["op"]) and bad["reason"] in bad["message"]
    written = json.loads(lines.read_text())
    for name in ("stage", "index", "path", "offset", "op", "code", "reason"):
        assert written[name] == bad[name]


def test_what_is_not_known_is_none():
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])).numpy()
    error = caught.value
    assert error.op == "matmul"
    assert error.path is error.offset is error.element is error.stage is None
    made = tf.errors.DataLossError(None, None, "mine")
    assert made.path is made.offset is made.element is made.stage is made.op is None


def test_records_and_lines_have_their_offset(tmp_path):
    path = str(tmp_path / "a.csv")
    with open(path, "w") as file:
        file.write("1,2\n3,x\n")
    dataset = tf.data.experimental.CsvDataset(path, [tf.int32, tf.int32])
    iterator = iter(dataset)
    next(iterator)
    with pytest.raises(tf.errors.InvalidArgumentError, match="line 2, byte 6, column 2") as caught:
        next(iterator)
    assert (caught.value.path, caught.value.offset, caught.value.element) == (path, 6, 1)


class Counted(Exception):
    n_alive = 0

    def __init__(self, number):
        super().__init__(number)
        self.number = number
        Counted.n_alive += 1

    def __del__(self):
        Counted.n_alive -= 1


def failing(x):
    raise Counted(int(x))


def counted(n, n_parallel):
    numbers = tf.data.Dataset.range(n)
    return numbers.map(lambda x: tf.py_function(failing, [x], tf.int64), n_parallel)


def all_released():
    import gc
    import time

    for _ in range(200):
        gc.collect()
        if Counted.n_alive == 0:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("n_parallel", [1, 4])
def test_every_exception_is_the_cause_of_its_own_error(n_parallel):
    iterator = iter(counted(300, n_parallel).prefetch(200))
    caught = []
    for i in range(300):
        with pytest.raises(tf.errors.UnknownError) as info:
            next(iterator)
        caught.append(info.value)
        del info
    with pytest.raises(StopIteration):
        next(iterator)
    for i, error in enumerate(caught):
        assert isinstance(error.__cause__, Counted) and error.__cause__.number == i == error.element
    assert Counted.n_alive == 300
    del caught, error, iterator
    assert all_released()


def test_exceptions_of_dropped_errors_are_released():
    iterator = iter(counted(500, 4).prefetch(300))
    with pytest.raises(tf.errors.UnknownError):
        next(iterator)
    del iterator
    assert all_released()
    assert list(counted(500, 4).on_error("skip")) == []
    assert all_released()
