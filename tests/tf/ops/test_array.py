# SPDX-License-Identifier: Apache-2.0
"""Array operations: values as NumPy has them, dtypes, shapes and errors as TensorFlow documents."""
import numpy as np
import pytest

import plimsoll.tf as tf
from plimsoll import _core
from plimsoll.tf import errors

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def same(tensor, array, dtype=None):
    """Elements, shape and dtype."""
    array = np.asarray(array)
    value = np.asarray(tensor.numpy())
    assert value.shape == array.shape
    assert tuple(tensor.shape.as_list()) == array.shape
    if dtype is not None:
        assert tensor.dtype == dtype
    if array.dtype.kind == "f":
        np.testing.assert_allclose(value, array, rtol=1e-6)
    else:
        assert value.tolist() == array.tolist()


def traced(function, *specs):
    """A call of `function`, traced over placeholders; fed by what it is called with."""
    inputs = [_core.placeholder(dtype, shape) for dtype, shape in specs]
    output = function(*inputs)

    def run(*values):
        return _core.run([output], list(zip(inputs, values)))[0].numpy()

    run.output = output
    return run


# ---- made ----


def test_constants_take_dtypes_as_tensorflow_says():
    same(tf.constant([1, 2, 3]), [1, 2, 3], tf.int32)
    same(tf.constant([1.0, 2.0]), [1.0, 2.0], tf.float32)
    same(tf.constant(np.array([1.0])), [1.0], tf.float64)
    same(tf.constant(0, shape=(2, 3)), np.zeros((2, 3)), tf.int32)
    same(tf.constant([1, 2, 3, 4, 5, 6], shape=[2, 3]), [[1, 2, 3], [4, 5, 6]])
    same(tf.constant([1, 2], dtype=tf.float64), [1.0, 2.0], tf.float64)
    assert tf.constant("abc").dtype == tf.string
    assert tf.constant([True]).dtype == tf.bool


def test_a_float_is_no_int32():
    with pytest.raises(TypeError):
        tf.constant(1.5, dtype=tf.int32)


def test_lists_of_tensors_become_one():
    same(tf.convert_to_tensor([tf.constant(1), tf.constant(2)]), [1, 2], tf.int32)
    x = tf.constant([1.0])
    assert tf.convert_to_tensor(x) is x


def test_a_tensor_of_another_dtype_is_not_converted():
    with pytest.raises(ValueError):
        tf.convert_to_tensor(tf.constant(1), dtype=tf.float32)


def test_zeros_ones_and_fill():
    same(tf.zeros([2, 3]), np.zeros((2, 3)), tf.float32)
    same(tf.zeros([], tf.bool), False, tf.bool)
    same(tf.zeros([2], tf.string), [b"", b""], tf.string)
    same(tf.ones([2], tf.uint8), [1, 1], tf.uint8)
    same(tf.fill([2, 2], 9), [[9, 9], [9, 9]], tf.int32)
    same(tf.fill([2], 0.5), [0.5, 0.5], tf.float32)
    same(tf.fill([1], tf.constant(3, tf.int64)), [3], tf.int64)
    same(tf.fill([2], "a"), [b"a", b"a"], tf.string)
    same(tf.zeros_like(tf.constant([[1, 2]])), [[0, 0]], tf.int32)
    same(tf.ones_like([1, 2], tf.float64), [1.0, 1.0], tf.float64)
    same(tf.zeros(tf.constant([2, 1])), [[0.0], [0.0]])
    same(tf.zeros(tf.shape(X)), np.zeros(X.shape))
    with pytest.raises(errors.InvalidArgumentError):
        tf.zeros([-1])


def test_eye_range_and_linspace():
    same(tf.eye(2), np.eye(2), tf.float32)
    same(tf.eye(2, 3, batch_shape=[2], dtype=tf.int32), np.stack([np.eye(2, 3)] * 2).astype(int))
    same(tf.range(5), [0, 1, 2, 3, 4], tf.int32)
    same(tf.range(3, 18, 3), [3, 6, 9, 12, 15], tf.int32)
    same(tf.range(3, 1, -0.5), [3.0, 2.5, 2.0, 1.5], tf.float32)
    same(tf.range(3, dtype=tf.int64), [0, 1, 2], tf.int64)
    same(tf.range(tf.constant(2, tf.int64)), [0, 1], tf.int64)
    same(tf.linspace(10.0, 12.0, 3), [10.0, 11.0, 12.0], tf.float32)
    same(tf.linspace([0.0, 5.0], [10.0, 40.0], 5, axis=-1),
         np.linspace([0, 5], [10, 40], 5, axis=-1))
    same(tf.linspace([0.0, 5.0], [10.0, 40.0], 3), np.linspace([0, 5], [10, 40], 3))
    with pytest.raises(errors.InvalidArgumentError):
        tf.range(5, 1)


# ---- dtypes ----


def test_cast_cuts_fractions_off():
    same(tf.cast([1.8, -2.2], tf.int32), [1, -2], tf.int32)
    same(tf.cast([0, 2], tf.bool), [False, True], tf.bool)
    x = tf.constant(1.0)
    assert tf.cast(x, tf.float32) is x


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_saturate_cast_stops_at_the_ends(dtype):
    limits = np.iinfo(dtype)
    value = tf.saturate_cast(tf.constant([-1e30, 0.0, 1e30]), dtype).numpy().tolist()
    assert value[:2] == [limits.min, 0]
    assert limits.max - value[2] <= limits.max >> 23


def test_bitcast_keeps_the_bytes():
    same(tf.bitcast(tf.constant([1.0, -1.0]), tf.int32), np.float32([1, -1]).view(np.int32), tf.int32)


# ---- axes ----


def test_shape_size_and_rank():
    same(tf.shape(X), [2, 3, 4], tf.int32)
    same(tf.shape(1.0), np.zeros(0, np.int32), tf.int32)
    same(tf.shape(X, out_type=tf.int64), [2, 3, 4], tf.int64)
    same(tf.size(X), 24, tf.int32)
    same(tf.rank(X), 3, tf.int32)


def test_reshape():
    same(tf.reshape(X, [6, 4]), X.reshape(6, 4))
    same(tf.reshape(X, [-1]), X.ravel())
    same(tf.reshape(X, tf.constant([4, -1])), X.reshape(4, 6))
    same(tf.reshape([7], []), 7)
    same(tf.reshape(X, [tf.shape(X)[0], -1]), X.reshape(2, 12))
    with pytest.raises(errors.InvalidArgumentError):
        tf.reshape(X, [5, 5])
    for shape in ([-1, -1], [-2, -12], [2, -3, -1]):
        with pytest.raises(errors.InvalidArgumentError, match="reshape: "):
            tf.reshape(X, shape)


def test_reshape_of_dimensions_that_are_not_known_yet():
    run = traced(lambda x: tf.reshape(x, [tf.shape(x)[0], -1]), (tf.float32, [None, 3, 4]))
    assert run.output.shape.as_list() == [None, 12]
    np.testing.assert_array_equal(run(X), X.reshape(2, 12))
    run = traced(lambda x: tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[2], -1]),
                 (tf.float32, [None, None, None]))
    np.testing.assert_array_equal(run(X), X.reshape(2, 4, 3))


def test_reshape_of_arithmetic_on_dimensions_is_done_in_the_run():
    run = traced(lambda x: tf.reshape(x, [tf.shape(x)[0] * tf.shape(x)[1], 4]),
                 (tf.float32, [None, None, 4]))
    np.testing.assert_array_equal(run(X), X.reshape(6, 4))
    run = traced(lambda x, n: tf.reshape(x, n), (tf.float32, [None]), (tf.int32, [None]))
    np.testing.assert_array_equal(run(X.ravel(), np.int32([4, 6])), X.reshape(4, 6))


def test_known_dimensions_of_a_trace_are_constants():
    """h // 2 of a known shape can be used as a size."""
    x = _core.placeholder(tf.float32, [8, 6])
    half = tf.shape(x)[0] // 2
    assert tf.reshape(x, [half, -1]).shape.as_list() == [4, 12]


def test_dimensions_of_another_tensor():
    run = traced(lambda x: tf.zeros([tf.shape(x)[0], 2]), (tf.float32, [None, 3]))
    assert run.output.shape.as_list() == [None, 2]
    np.testing.assert_array_equal(run(np.ones((5, 3), np.float32)), np.zeros((5, 2)))
    run = traced(lambda x: tf.ones(tf.shape(x), tf.int32), (tf.float32, [None, None]))
    np.testing.assert_array_equal(run(np.ones((5, 3), np.float32)), np.ones((5, 3)))
    run = traced(lambda x: tf.fill(tf.shape(x)[::-1], 7), (tf.float32, [None, None]))
    np.testing.assert_array_equal(run(np.ones((5, 3), np.float32)), np.full((3, 5), 7))
    run = traced(lambda x: tf.broadcast_to([1.0, 2.0], tf.stack([tf.shape(x)[0], 2])),
                 (tf.float32, [None]))
    np.testing.assert_array_equal(run(np.ones(3, np.float32)), [[1, 2]] * 3)


def test_axes_of_one():
    same(tf.expand_dims([1, 2], 0), [[1, 2]])
    same(tf.expand_dims([1, 2], -1), [[1], [2]])
    same(tf.squeeze(X[:, :1]), X[:, 0])
    same(tf.squeeze([[[1], [2]]], [0]), [[1], [2]])
    same(tf.squeeze([[[1], [2]]], -1), [[1, 2]])
    with pytest.raises(errors.InvalidArgumentError):
        tf.squeeze(X, 0)
    for op in (tf.squeeze, lambda x, axis: tf.split(x, 1, axis)):
        with pytest.raises(errors.InvalidArgumentError, match="axis 0 of a scalar, which has none"):
            op(tf.constant(1.0), 0)
    with pytest.raises(ValueError, match="a scalar has no axis"):
        tf.unstack(tf.constant(1.0))
    with pytest.raises(errors.InvalidArgumentError):
        tf.expand_dims([1], 5)
    run = traced(lambda x: tf.expand_dims(x, -1), (tf.float32, None))
    assert run(X).shape == (2, 3, 4, 1)


def test_transpose():
    same(tf.transpose(X), X.T)
    same(tf.transpose(X, [1, 0, 2]), X.transpose(1, 0, 2))
    with pytest.raises(errors.InvalidArgumentError):
        tf.transpose(X, [0, 1])


def test_broadcasts():
    same(tf.broadcast_to([1, 2], [3, 2]), [[1, 2]] * 3)
    assert tf.broadcast_static_shape(tf.TensorShape([1, 3]), tf.TensorShape([5, 1])).as_list() == \
        [5, 3]
    same(tf.broadcast_dynamic_shape([1, 3], [5, 1]), [5, 3])
    assert tf.broadcast_static_shape(tf.TensorShape([3]), tf.TensorShape([1, None])).as_list() == \
        [1, 3]
    with pytest.raises(ValueError):
        tf.broadcast_static_shape(tf.TensorShape([2]), tf.TensorShape([3]))


def test_ensure_shape():
    assert tf.ensure_shape(X, [2, None, 4]).shape.as_list() == [2, 3, 4]
    with pytest.raises(errors.InvalidArgumentError):
        tf.ensure_shape(X, [2, 3])
    run = traced(lambda x: tf.ensure_shape(x, [None, 3]), (tf.float32, [None, None]))
    assert run.output.shape.as_list() == [None, 3]
    with pytest.raises(errors.InvalidArgumentError):
        run(np.ones((2, 2), np.float32))


# ---- pieces ----


def test_concat_and_stack():
    same(tf.concat([[[1, 2]], [[3, 4]]], 0), [[1, 2], [3, 4]])
    same(tf.concat([X, X], -1), np.concatenate([X, X], -1))
    same(tf.stack([[1, 2], [3, 4]], axis=1), [[1, 3], [2, 4]])
    same(tf.stack([1.0, tf.constant(2.0, tf.float32)]), [1.0, 2.0])
    with pytest.raises(errors.InvalidArgumentError):
        tf.concat([[1], [[2]]], 0)
    with pytest.raises(ValueError):
        tf.stack([1, 2], axis=3)


def test_unstack_and_split():
    for part, expected in zip(tf.unstack(X, axis=1), np.moveaxis(X, 1, 0)):
        same(part, expected)
    assert len(tf.unstack(X, num=2)) == 2
    for part, expected in zip(tf.split(X, 2, axis=2), np.split(X, 2, axis=2)):
        same(part, expected)
    assert [p.shape.as_list() for p in tf.split(X, [1, -1], 1)] == [[2, 1, 4], [2, 2, 4]]
    with pytest.raises(ValueError):
        tf.unstack(X, num=3)
    with pytest.raises(errors.InvalidArgumentError):
        tf.split(X, 5)
    with pytest.raises(ValueError):
        tf.unstack(_core.placeholder(tf.float32, [None, 2]))


def test_tile_and_repeat():
    same(tf.tile([[1, 2]], [2, 2]), [[1, 2, 1, 2]] * 2)
    same(tf.repeat(["a", "b"], repeats=[2, 1]), [b"a", b"a", b"b"])
    same(tf.repeat(X, 2, axis=1), X.repeat(2, 1))
    same(tf.repeat([3, 4], [2]), [3, 3, 4, 4])
    same(tf.repeat([[1, 2], [3, 4]], repeats=2), [1, 1, 2, 2, 3, 3, 4, 4])


@pytest.mark.parametrize("mode", ["constant", "reflect", "symmetric"])
def test_pad(mode):
    same(tf.pad(X, [[1, 0], [2, 1], [0, 3]], mode.upper()) if mode != "reflect" else
         tf.pad(X, [[1, 0], [2, 1], [0, 3]], "reflect"),
         np.pad(X, [[1, 0], [2, 1], [0, 3]], mode))


def test_pad_with_a_value_and_beyond():
    same(tf.pad([1], [[1, 1]], constant_values=9), [9, 1, 9])
    same(tf.pad(["a"], [[0, 1]], constant_values="z"), [b"a", b"z"])
    with pytest.raises(errors.InvalidArgumentError):
        tf.pad([1, 2], [[2, 0]], "REFLECT")
    with pytest.raises(ValueError):
        tf.pad([1], [[1, 1]], "EDGE")


def test_slices_by_function():
    same(tf.slice(X, [1, 0, 2], [1, 2, -1]), X[1:, :2, 2:])
    same(tf.strided_slice(X, [0, 0, 3], [2, 3, 0], [1, 2, -1]), X[0:2, 0:3:2, 3:0:-1])
    same(tf.strided_slice(X, [1, 0], [0, 0], begin_mask=0, end_mask=2, shrink_axis_mask=1), X[1])
    with pytest.raises(errors.InvalidArgumentError):
        tf.slice(X, [1, 0, 2], [2, 2, 1])
    run = traced(lambda x, n: tf.slice(x, [n, 0], [2, 2]), (tf.float32, [None, 4]), (tf.int32, []))
    np.testing.assert_array_equal(run(X[0], np.int32(1)), X[0, 1:3, :2])


def test_reverse_roll_and_meshgrid():
    same(tf.reverse(X, [0, -1]), X[::-1, :, ::-1])
    same(tf.roll(X, [1, -2], [0, 2]), np.roll(X, [1, -2], [0, 2]))
    same(tf.roll([0, 1, 2, 3, 4], 7, 0), [3, 4, 0, 1, 2])
    for part, expected in zip(tf.meshgrid([1, 2, 3], [4, 5]), np.meshgrid([1, 2, 3], [4, 5])):
        same(part, expected)
    for part, expected in zip(tf.meshgrid([1, 2], [4, 5, 6], [7], indexing="ij"),
                              np.meshgrid([1, 2], [4, 5, 6], [7], indexing="ij")):
        same(part, expected)


# ---- by index ----


def test_gather():
    same(tf.gather(X, [1, 0]), X[[1, 0]])
    same(tf.gather(X, [[2], [0]], axis=1), X[:, [[2], [0]]])
    same(tf.gather([[1, 2], [3, 4]], [[1], [0]], batch_dims=1), [[2], [3]])
    same(tf.gather(["a", "b"], 1), b"b")
    with pytest.raises(errors.InvalidArgumentError):
        tf.gather([1, 2], [5]).numpy()


def test_gather_nd():
    same(tf.gather_nd(X, [[0, 1], [1, 2]]), X[[0, 1], [1, 2]])
    same(tf.gather_nd(X, [[[0, 1, 2]], [[1, 2, 3]]]), [[X[0, 1, 2]], [X[1, 2, 3]]])
    same(tf.gather_nd([["a", "b"], ["c", "d"]], [[0, 0], [1, 1]]), [b"a", b"d"])
    with pytest.raises(errors.InvalidArgumentError):
        tf.gather_nd(X, [[0, 5]]).numpy()  # flat, it would be inside


def test_where():
    same(tf.where([True, False], [1, 2], [3, 4]), [1, 4])
    same(tf.where(X > 5, X, 0.0), np.where(X > 5, X, 0))
    same(tf.where([[True, False], [False, True]]), [[0, 0], [1, 1]], tf.int64)
    same(tf.where([0, 3]), [[1]], tf.int64)
    with pytest.raises(ValueError):
        tf.where([True], 1)
    run = traced(lambda x, sides: tf.pad(x, sides), (tf.float32, [None, 4]), (tf.int32, [2, 2]))
    assert run.output.shape.as_list() == [None, None]
    np.testing.assert_array_equal(run(X[0], np.int32([[1, 0], [0, 2]])), np.pad(X[0], [[1, 0], [0, 2]]))
    run = traced(tf.where, (tf.bool, [None]))
    assert run.output.shape.as_list() == [None, 1]
    assert run(np.array([False, True])).tolist() == [[1]]


def test_boolean_mask():
    same(tf.boolean_mask(X, [True, False]), X[[True, False]])
    mask = X[:, :, 0] > 3
    same(tf.boolean_mask(X, mask), X[mask])
    same(tf.boolean_mask(X, [True, False, True], axis=1), X[:, [True, False, True]])
    with pytest.raises(ValueError):
        tf.boolean_mask([1, 2], [True])
    with pytest.raises(ValueError):
        tf.boolean_mask([1, 2], True)
    run = traced(lambda x: tf.boolean_mask(x, x > 1), (tf.int32, [None]))
    assert run(np.int32([1, 2, 3])).tolist() == [2, 3]


def test_one_hot():
    same(tf.one_hot([0, 1, 2], 3), np.eye(3), tf.float32)
    same(tf.one_hot([0, 2, -1, 1], 3, on_value=5.0, off_value=0.0, axis=-1),
         [[5, 0, 0], [0, 0, 5], [0, 0, 0], [0, 5, 0]], tf.float32)
    same(tf.one_hot([0, 2], 3, axis=0, dtype=tf.int32), [[1, 0], [0, 0], [0, 1]], tf.int32)
    same(tf.one_hot([1], 2, on_value=True, off_value=False), [[False, True]], tf.bool)
    same(tf.one_hot([1], 2, on_value=False, off_value=True), [[True, False]], tf.bool)
    same(tf.one_hot([1], 2, dtype=tf.bool), [[False, True]], tf.bool)
    same(tf.one_hot([1], 2, on_value="y", off_value="n"), [[b"n", b"y"]], tf.string)


def test_sequence_mask():
    same(tf.sequence_mask([1, 3, 2], 5), [[True] * n + [False] * (5 - n) for n in (1, 3, 2)])
    same(tf.sequence_mask([[1, 3], [2, 0]]), np.arange(3) < np.array([[1, 3], [2, 0]])[..., None])
    assert tf.sequence_mask([1], 2, dtype=tf.float32).dtype == tf.float32


def test_unique():
    y, idx = tf.unique([1, 1, 2, 4, 4, 4, 7, 8, 8])
    same(y, [1, 2, 4, 7, 8], tf.int32)
    same(idx, [0, 0, 1, 2, 2, 2, 3, 4, 4], tf.int32)
    y, idx, count = tf.unique_with_counts(["b", "a", "b"], out_idx=tf.int64)
    same(y, [b"b", b"a"], tf.string)
    same(idx, [0, 1, 0], tf.int64)
    same(count, [2, 1], tf.int64)
    with pytest.raises(errors.InvalidArgumentError):
        tf.unique([[1]])


def test_scattered():
    same(tf.scatter_nd([[4], [3], [1], [7]], [9, 10, 11, 12], [8]), [0, 11, 0, 10, 9, 0, 0, 12])
    same(tf.scatter_nd([[0], [0]], [[1.0], [2.0]], [2, 1]), [[3.0], [0.0]])
    same(tf.tensor_scatter_nd_update([0, 1, 2], [[1], [2]], [9, 8]), [0, 9, 8])
    same(tf.tensor_scatter_nd_max([5, 1], [[0], [1]], [3, 4]), [5, 4])
    same(tf.unravel_index([2, 5, 7], [3, 3]), [[0, 1, 2], [2, 2, 1]])
    with pytest.raises(errors.InvalidArgumentError):
        tf.scatter_nd([[8]], [1], [8])


# ---- x[...] ----


@pytest.mark.parametrize("index", [
    0, -1, slice(1, None), slice(None, None, -1), (0, 1, 2), (slice(None), 1), (..., 0),
    (0, ..., slice(1, 3)), (None, 0), (..., None), (slice(None), None, slice(None, None, 2)),
    (slice(None), slice(-2, None), slice(3, 0, -2)), (-1, slice(5, 1)), (),
    (slice(None, None, -1), slice(None, None, -2)), np.int64(1), (slice(-100, 100),), (1, None, ...),
])
def test_indices_are_as_in_numpy(index):
    same(tf.constant(X)[index], X[index])


@pytest.mark.parametrize("index", [0, slice(1, None), (slice(None), 1), (..., -1), (None, 0), (1, ...,
                                   None), (slice(None, None, -1), 2, slice(1, 3))])
def test_indices_of_dimensions_that_are_not_known_yet(index):
    run = traced(lambda x: x[index], (tf.float32, [None, None, None]))
    np.testing.assert_array_equal(run(X), X[index])
    assert len(run.output.shape) == X[index].ndim
    run = traced(lambda x: x[index], (tf.float32, None))
    np.testing.assert_array_equal(run(X), X[index])


def test_tensors_as_indices():
    x = tf.constant(X)
    same(x[tf.constant(1)], X[1])
    same(x[tf.constant(0):tf.constant(1), 1], X[0:1, 1])
    run = traced(lambda x, i: x[i], (tf.float32, [2, 3, 4]), (tf.int32, []))
    np.testing.assert_array_equal(run(X, np.int32(1)), X[1])
    run = traced(lambda x, i: x[:, i, 1:], (tf.float32, [None, 3, 4]), (tf.int32, []))
    np.testing.assert_array_equal(run(X, np.int32(2)), X[:, 2, 1:])
    run = traced(lambda x, i: x[:, i:], (tf.float32, [None, 3, 4]), (tf.int32, []))
    np.testing.assert_array_equal(run(X, np.int32(2)), X[:, 2:])
    run = traced(lambda x, i, j: x[i, :, j], (tf.float32, [None, 3, 4]), (tf.int32, []), (tf.int32, []))
    np.testing.assert_array_equal(run(X, np.int32(1), np.int32(3)), X[1, :, 3])


@pytest.mark.parametrize("index", [[0, 1], "a", 1.0, tf.constant([0, 1]),
                                   np.array([0, 1]), True])
def test_other_indices_are_a_type_error(index):
    with pytest.raises(TypeError):
        tf.constant(X)[index]


def test_indices_out_of_bounds():
    with pytest.raises(errors.InvalidArgumentError):
        tf.constant(X)[2]
    with pytest.raises(errors.InvalidArgumentError):
        tf.constant(X)[0, 0, 0, 0]
    with pytest.raises(errors.InvalidArgumentError):
        tf.constant(X)[::0]
    run = traced(lambda x: x[5], (tf.float32, [None]))
    with pytest.raises(errors.InvalidArgumentError):
        run(np.ones(3, np.float32))


def test_iteration():
    assert [int(x) for x in tf.range(3)] == [0, 1, 2]
    for row, expected in zip(tf.constant(X), X):
        same(row, expected)
    a, b = tf.constant([1, 2])
    assert (int(a), int(b)) == (1, 2)
    with pytest.raises(TypeError):
        iter(tf.constant(1))
    with pytest.raises(errors.OperatorNotAllowedInGraphError):
        iter(_core.placeholder(tf.float32, [None]))
    assert len(list(_core.placeholder(tf.float32, [3]))) == 3


# ---- as text ----


def test_eager_tensors_are_printed_as_tensorflow_prints_them():
    x = tf.constant([[1, 2], [3, 4]])
    assert repr(x) == ("<tf.Tensor: shape=(2, 2), dtype=int32, numpy=\n"
                       "array([[1, 2],\n       [3, 4]], dtype=int32)>")
    assert str(x) == "tf.Tensor(\n[[1 2]\n [3 4]], shape=(2, 2), dtype=int32)"
    assert repr(tf.constant(1)) == "<tf.Tensor: shape=(), dtype=int32, numpy=1>"
    assert str(tf.constant(1.5)) == "tf.Tensor(1.5, shape=(), dtype=float32)"
    assert repr(tf.constant("a")) == "<tf.Tensor: shape=(), dtype=string, numpy=b'a'>"
    assert str(tf.constant([1, 2])) == "tf.Tensor([1 2], shape=(2,), dtype=int32)"
    assert f"{tf.constant(1.2345):.2f}" == "1.23"
    assert f"{tf.constant(3)}" == "tf.Tensor(3, shape=(), dtype=int32)"


def test_symbolic_tensors_are_printed_by_name():
    with tf.Graph().as_default():
        x = _core.placeholder(tf.float32, [None, 2], "x")
        assert repr(x) == "<tf.Tensor 'x:0' shape=(None, 2) dtype=float32>"
        assert str(x) == 'Tensor("x:0", shape=(None, 2), dtype=float32)'
        y = _core.placeholder(tf.int32, None, "y")
        assert repr(y) == "<tf.Tensor 'y:0' shape=<unknown> dtype=int32>"
        assert str(y) == 'Tensor("y:0", dtype=int32)'


def test_references_are_keys():
    x, y = tf.constant(5), tf.constant(5)
    table = {x.ref(): "x", y.ref(): "y"}
    assert table[x.ref()] == "x" and table[y.ref()] == "y"
    assert x.ref().deref() is x


def test_set_shape():
    x = _core.placeholder(tf.float32, None)
    x.set_shape([None, 3])
    assert x.shape.as_list() == [None, 3]
    x.set_shape([2, None])
    assert x.shape.as_list() == [2, 3]
    with pytest.raises(ValueError):
        x.set_shape([4, 3])
    with pytest.raises(ValueError):
        tf.constant([1]).set_shape([2])
    assert x.get_shape() == x.shape


# ---- what a trace becomes ----


def ops_of(tensor):
    """The names of all ops that it is made of."""
    seen, waiting = set(), [tensor]
    while waiting:
        node = waiting.pop()
        seen.add(node.op_name)
        waiting += node.inputs
    return seen


@pytest.mark.parametrize("make", [
    lambda x: tf.reshape(x, [tf.shape(x)[0], -1]), lambda x: tf.zeros([tf.shape(x)[0], 10]),
    lambda x: tf.random.normal(tf.shape(x)), lambda x: x[:, 0], lambda x: x[..., ::-1, None],
    lambda x: tf.einsum("nij,jk->nik", x, tf.ones([4, 2])), lambda x: tf.expand_dims(x, 1),
    lambda x: tf.tensordot(x, tf.ones([4, 2]), 1), lambda x: tf.image.resize(x[..., None], [2, 2]),
    lambda x: tf.cast(tf.shape(x)[0], tf.float32) * tf.reduce_mean(x), tf.shape,
    lambda x: tf.range(tf.shape(x)[0]), lambda x: tf.shape(x)[1:],
    lambda x: tf.reshape(x, tf.concat([tf.shape(x)[:1], [2, 6]], 0)),
    lambda x: tf.reshape(x, [tf.shape(x)[0] * tf.shape(x)[1], 4]),
    lambda x: tf.unstack(x, axis=1)[0], lambda x: tf.roll(x, 1, 0), lambda x: tf.ones_like(x),
    lambda x: tf.image.random_flip_left_right(x), lambda x: tf.nn.dropout(x, 0.5),
    lambda x: tf.stack([x, x], 1), lambda x: tf.nn.softmax_cross_entropy_with_logits(x, x),
])
def test_no_python_runs_in_what_the_library_can_do(make):
    x = _core.placeholder(tf.float32, [None, 3, 4])
    assert not any(name.startswith(("py", "numpy")) for name in ops_of(make(x)))


@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 3, 4), (5, 0, 4), (5, 1, 0), (0, 0, 0)])
def test_shapes_are_told_by_the_run(shape):
    value = np.zeros(shape, np.float32)
    run = traced(tf.shape, (tf.float32, [None, None, None]))
    assert run.output.dtype == tf.int32 and run(value).tolist() == list(shape)
    run = traced(lambda x: tf.shape(x, tf.int64)[1], (tf.float32, [None, None, None]))
    assert run.output.dtype == tf.int64 and run(value).tolist() == shape[1]
    run = traced(lambda x: tf.shape(x)[::-1], (tf.float32, [None, shape[1], None]))
    assert run(value).tolist() == list(shape[::-1])
    run = traced(lambda x: tf.shape(tf.as_string(x))[-2:], (tf.float32, [None, None, None]))
    assert run(value).tolist() == list(shape[1:])
    run = traced(lambda x: tf.zeros([2, tf.shape(x)[1]]), (tf.float32, [None, None, None]))
    assert run(value).shape == (2, shape[1])
    run = traced(lambda x: tf.range(tf.shape(x)[0]), (tf.float32, [None, None, None]))
    assert run(value).tolist() == list(range(shape[0]))


def test_arithmetic_on_known_shapes_is_folded_in_functions():
    shapes = []

    @tf.function
    def f(x):
        half = tf.reshape(x, [tf.shape(x)[0] // 2, tf.shape(x)[1] * 2])
        shapes.append(half.shape.as_list())
        return half

    assert f(tf.ones([4, 3])).shape.as_list() == [2, 6] and shapes == [[2, 6]]


def test_what_is_drawn_in_a_graph_is_not_folded():
    with tf.Graph().as_default():
        n = tf.random.uniform([], 1, 5, tf.int32)
        with pytest.raises(NotImplementedError):
            tf.one_hot([1], n)
        assert tf.get_static_value(n) is None
        assert tf.get_static_value(tf.constant(2) + 1) == 3


def test_eval_is_for_graphs():
    with pytest.raises(NotImplementedError):
        tf.constant(1).eval()
    with tf.Graph().as_default():
        x = tf.constant(1) + 1
        with pytest.raises(ValueError):
            x.eval()
        with tf.compat.v1.Session() as session:
            assert x.eval() == 2 and x.eval(session=session) == 2


def test_more_of_shapes_that_are_not_known_yet():
    run = traced(lambda x: tf.gather_nd(x, [[1]]), (tf.float32, [2, None, 4]))
    np.testing.assert_array_equal(run(X), X[[1]])
    run = traced(lambda x: tf.gather_nd(x, [[1, 1]]), (tf.float32, [2, None, None]))
    np.testing.assert_array_equal(run(X), X[1, 1][None])
    run = traced(lambda x: tf.gather_nd(x, [[1, 2], [0, 1]]), (tf.float32, [2, 3, None]))
    np.testing.assert_array_equal(run(X), X[[1, 0], [2, 1]])
    run = traced(lambda x, i: tf.gather(x, i, batch_dims=1), (tf.float32, [None, 3, 4]),
                 (tf.int32, [None, 2]))
    assert run.output.shape.as_list() == [None, 2, 4]
    index = np.int32([[2, 0], [1, 1]])
    np.testing.assert_array_equal(run(X, index), np.take_along_axis(X, index[..., None], 1))
    run = traced(lambda x: tf.repeat(x, 2, axis=0), (tf.float32, [None, 3]))
    assert run.output.shape.as_list() == [None, 3]
    np.testing.assert_array_equal(run(X[0, :, :3]), X[0, :, :3].repeat(2, 0))
    run = traced(lambda x, s: tf.reshape(x, s), (tf.float32, [None]), (tf.int32, [2]))
    assert run.output.shape.as_list() == [None, None]
    assert tf.zeros_like(["a"]).numpy().tolist() == [b""]
    with pytest.raises(errors.InvalidArgumentError):
        tf.split([1, 2, 3], [1, 1])


def test_parts_by_number():
    zero, one = tf.dynamic_partition([[1, 2], [3, 4], [5, 6]], [1, 0, 1], 2)
    same(zero, [[3, 4]])
    same(one, [[1, 2], [5, 6]])
    same(tf.dynamic_stitch([[1], [0, 2]], [[[2, 2]], [[1, 1], [3, 3]]]), [[1, 1], [2, 2], [3, 3]])
    x = np.arange(24).reshape(2, 3, 4)
    expected = x.copy()
    expected[:, 0, :2], expected[:, 1, :3] = x[:, 0, 1::-1], x[:, 1, 2::-1]
    same(tf.reverse_sequence(x, [2, 3, 0], seq_axis=2, batch_axis=1), expected)
    same(tf.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], 5), [2, 1, 1, 0, 2])
    with pytest.raises(errors.InvalidArgumentError):
        tf.dynamic_partition([1], [2], 2)


def test_a_mask_is_an_index():
    x = np.arange(12).reshape(3, 4)
    t = tf.constant(x)
    same(t[t > 5], x[x > 5])
    same(t[tf.constant([True, False, True])], x[[0, 2]])
    same(t[np.array([True, False, True])], x[[0, 2]])
    same(tf.Variable(x)[x > 5], x[x > 5])
    run = traced(lambda a: a[a > 5], (tf.int64, [3, 4]))
    np.testing.assert_array_equal(run(x), x[x > 5])
    with pytest.raises(ValueError):
        t[tf.constant([True, False])]


def test_gather_nd_in_batches():
    x = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    same(tf.gather_nd([[["a", "b"], ["c", "d"]], [["e", "f"], ["g", "h"]]], [[1], [0]], 1),
         [[b"c", b"d"], [b"e", b"f"]])
    places = np.array([[[0, 1], [2, 3]], [[1, 1], [0, 0]]])
    same(tf.gather_nd(x, places, batch_dims=1), [[1, 11], [17, 12]])
    same(tf.gather_nd(x, np.array([[[1], [2], [3]]] * 2), batch_dims=2), [[1, 6, 11], [13, 18, 23]])
    with pytest.raises(errors.InvalidArgumentError, match="outside"):
        tf.gather_nd(x, [[5], [0]], batch_dims=1)
