# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and reductions: values as NumPy has them, dtypes and errors as TensorFlow documents."""
import math

import numpy as np
import pytest

import plimsoll.tf as tf
from plimsoll.tf import errors
from test_array import same, traced

RNG = np.random.default_rng(1)
X = RNG.uniform(0.1, 0.9, (3, 4)).astype(np.float32)
Y = RNG.uniform(0.1, 0.9, (3, 4)).astype(np.float32)

UNARY = {
    "abs": np.abs, "negative": np.negative, "square": np.square, "sign": np.sign, "sqrt": np.sqrt,
    "exp": np.exp, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "atanh": np.arctanh, "floor": np.floor, "round": np.round,
    "math.rsqrt": lambda x: 1 / np.sqrt(x), "math.reciprocal": np.reciprocal,
    "math.expm1": np.expm1, "math.log": np.log, "math.log1p": np.log1p, "math.ceil": np.ceil,
    "math.rint": np.rint, "math.is_nan": np.isnan, "math.is_inf": np.isinf,
    "math.is_finite": np.isfinite, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "math.erf": np.vectorize(math.erf), "math.erfc": np.vectorize(math.erfc),
    "math.lgamma": np.vectorize(math.lgamma),
    "math.log_sigmoid": lambda x: np.log(1 / (1 + np.exp(-x))),
}
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "truediv": np.divide, "floordiv": np.floor_divide, "math.floormod": np.mod, "math.mod": np.mod,
    "truncatemod": np.fmod, "pow": np.power, "atan2": np.arctan2, "maximum": np.maximum,
    "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal, "less": np.less,
    "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "math.squared_difference": lambda x, y: (x - y) ** 2, "math.nextafter": np.nextafter,
    "math.xlogy": lambda x, y: x * np.log(y), "math.xlog1py": lambda x, y: x * np.log1p(y),
    "math.xdivy": np.divide, "math.divide_no_nan": np.divide, "math.multiply_no_nan": np.multiply,
}


def named(name):
    found = tf
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_are_numpys(name):
    out = named(name)(X, name="out")
    np.testing.assert_allclose(out.numpy(), UNARY[name](X), rtol=2e-6, atol=1e-7)
    assert out.shape.as_list() == [3, 4]


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_are_numpys_and_broadcast(name):
    out = named(name)(tf.constant(X), Y[:1], name="out")
    np.testing.assert_allclose(out.numpy(), BINARY[name](X, Y[:1]), rtol=2e-6)


def test_acosh():
    np.testing.assert_allclose(tf.acosh(1 + X).numpy(), np.arccosh(1 + X), rtol=1e-5)
    np.testing.assert_allclose(tf.asinh(-X).numpy(), np.arcsinh(-X), rtol=1e-5)


def test_dtypes_must_be_the_same():
    with pytest.raises(errors.InvalidArgumentError):
        tf.add(tf.constant(1), tf.constant(1.0))
    same(tf.add(tf.constant([1.5]), 1), [2.5], tf.float32)
    same(tf.add(1, tf.constant([1.5])), [2.5], tf.float32)
    same(tf.add(1, 2), 3, tf.int32)
    with pytest.raises(TypeError):
        tf.add(tf.constant(1), 1.5)


def test_integers_are_divided_as_tensorflow_divides():
    same(tf.constant([1, 3]) / 2, [0.5, 1.5], tf.float64)
    same(tf.truediv(tf.constant([1], tf.int16), tf.constant([2], tf.int16)), [0.5], tf.float32)
    same(tf.divide(7, 2), 3.5, tf.float64)
    same(tf.floordiv([-7, 7], 2), [-4, 3], tf.int32)
    same(tf.truncatediv([-7, 7], 2), [-3, 3], tf.int32)
    same(tf.math.floormod([-7, 7], 3), [2, 1], tf.int32)
    with pytest.raises(TypeError):
        tf.truediv(tf.constant(1), tf.constant(1.0))


def test_zeros_in_the_denominator():
    same(tf.math.divide_no_nan([3.0, 1.0], [0.0, 2.0]), [0.0, 0.5], tf.float32)
    same(tf.math.reciprocal_no_nan([2.0, 0.0]), [0.5, 0.0])
    same(tf.math.multiply_no_nan([np.nan, 2.0], [0.0, 2.0]), [0.0, 4.0])
    same(tf.math.xlogy([0.0, 1.0], [0.0, 1.0]), [0.0, 0.0])


def test_only_floating_point_numbers_have_roots():
    with pytest.raises(errors.InvalidArgumentError):
        tf.sqrt(4)


def test_logic_is_of_bool():
    same(tf.logical_and([True, True], [True, False]), [True, False], tf.bool)
    same(tf.logical_or([True, False], False), [True, False])
    same(tf.math.logical_xor([True, False], True), [False, True])
    same(tf.logical_not([True]), [False])
    with pytest.raises(errors.InvalidArgumentError):
        tf.logical_and(tf.constant([1]), tf.constant([2]))


def test_comparisons_of_texts():
    same(tf.equal(["a", "b"], "a"), [True, False], tf.bool)


def test_clipping():
    same(tf.clip_by_value([-5, 1, 9], 0, 3), [0, 1, 3], tf.int32)
    same(tf.clip_by_value([[1.0, 9.0]], [[2.0, 2.0]], 5.0), [[2.0, 5.0]])
    with pytest.raises(errors.InvalidArgumentError):
        tf.clip_by_value(tf.constant([1.0]), tf.constant(0), tf.constant(3))
    np.testing.assert_allclose(tf.clip_by_norm([[3.0, 4.0]], 1.0).numpy(), [[0.6, 0.8]], rtol=1e-6)
    same(tf.clip_by_norm([0.0, 0.0], 1.0), [0.0, 0.0])
    parts, norm = tf.clip_by_global_norm([[3.0], [4.0], None], 1.0)
    assert float(norm) == 5.0 and parts[2] is None
    np.testing.assert_allclose(parts[0].numpy(), [0.6], rtol=1e-6)


def test_sums_of_several():
    same(tf.add_n([[1, 2], [3, 4], [5, 6]]), [9, 12])
    same(tf.scalar_mul(2.0, [1.0, 3.0]), [2.0, 6.0])
    same(tf.math.polyval([2, 0, 1], 3), 19)
    with pytest.raises(ValueError):
        tf.add_n([])
    with pytest.raises(errors.InvalidArgumentError):
        tf.add_n([[1], [1, 2]])


# ---- reductions ----

REDUCTIONS = {"reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max,
              "reduce_min": np.min, "reduce_prod": np.prod, "math.reduce_std": np.std,
              "math.reduce_variance": np.var,
              "math.reduce_euclidean_norm": lambda x, axis, keepdims: np.sqrt(
                  np.sum(x * x, axis=axis, keepdims=keepdims)),
              "reduce_logsumexp": lambda x, axis, keepdims: np.log(
                  np.sum(np.exp(x), axis=axis, keepdims=keepdims))}


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_are_numpys(name, axis, keepdims):
    given = list(axis) if isinstance(axis, tuple) else axis
    out = named(name)(X, given, keepdims)
    np.testing.assert_allclose(out.numpy(), REDUCTIONS[name](X, axis=axis, keepdims=keepdims),
                               rtol=1e-5)
    assert out.dtype == tf.float32


def test_reductions_of_integers_keep_their_dtype():
    x = tf.constant([[1, 2], [3, 5]])
    same(tf.reduce_sum(x), 11, tf.int32)
    same(tf.reduce_mean(x), 2, tf.int32)
    same(tf.reduce_mean([1, 0, 1, 0]), 0, tf.int32)
    same(tf.reduce_mean([-1, -2]), -1, tf.int32)
    same(tf.reduce_prod(x, 0), [3, 10], tf.int32)
    same(tf.reduce_max(tf.constant([1, 7], tf.uint8)), 7, tf.uint8)
    same(tf.reduce_sum(tf.constant([200, 100], tf.uint8)), 44, tf.uint8)
    same(tf.reduce_sum(x, []), [[1, 2], [3, 5]])
    same(tf.reduce_sum(x, tf.constant(1)), [3, 8])


def test_reductions_refuse_what_tensorflow_refuses():
    with pytest.raises(errors.InvalidArgumentError):
        tf.reduce_sum([True, False])
    with pytest.raises(errors.InvalidArgumentError):
        tf.reduce_any([1, 0])
    with pytest.raises(TypeError):
        tf.math.reduce_std([1, 2])
    with pytest.raises(errors.InvalidArgumentError):
        tf.reduce_sum([1, 2], 3)


def test_any_all_and_counts():
    x = [[True, False], [False, False]]
    same(tf.reduce_any(x, 1), [True, False], tf.bool)
    same(tf.reduce_all(x, keepdims=True), [[False]])
    same(tf.math.count_nonzero([[0, 1, 0], [1, 1, 0]], axis=1), [1, 2], tf.int64)
    same(tf.math.count_nonzero(["", "a"], dtype=tf.int32), 1, tf.int32)


def test_argmax_gives_int64():
    same(tf.argmax([[1, 9], [7, 3]]), [1, 0], tf.int64)
    same(tf.argmax([[1, 9], [7, 3]], axis=1, output_type=tf.int32), [1, 0], tf.int32)
    same(tf.argmin([3, 1, 1]), 1, tf.int64)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_and_products(exclusive, reverse):
    x = np.array([[1, 2, 3], [4, 5, 6]], np.int32)

    def expected(ufunc, start):
        line = x[:, ::-1] if reverse else x
        if exclusive:
            line = np.concatenate([np.full((2, 1), start), line[:, :-1]], 1)
        line = ufunc.accumulate(line, 1)
        return line[:, ::-1] if reverse else line

    same(tf.cumsum(x, 1, exclusive, reverse), expected(np.add, 0), tf.int32)
    same(tf.math.cumprod(x, 1, exclusive, reverse), expected(np.multiply, 1), tf.int32)


def test_order():
    same(tf.sort([1, 10, 26, 3, 7]), [1, 3, 7, 10, 26])
    same(tf.argsort([1, 10, 26, 3], direction="DESCENDING"), [2, 1, 3, 0], tf.int32)
    same(tf.sort(X, axis=0), np.sort(X, 0))
    values, indices = tf.math.top_k([[1, 9, 3], [7, 7, 8]], k=2)
    same(values, [[9, 3], [8, 7]], tf.int32)
    same(indices, [[1, 2], [2, 0]], tf.int32)
    same(tf.math.in_top_k([0, 1], [[0.1, 0.8, 0.1], [0.2, 0.3, 0.5]], 2), [True, True])
    same(tf.searchsorted([1, 3, 5, 7], [0, 3, 8], side="right"), [0, 2, 4], tf.int32)
    same(tf.searchsorted([[1, 3], [2, 4]], [[2], [5]]), [[1], [2]])
    with pytest.raises(ValueError):
        tf.sort([1], direction="DOWN")


# ---- products ----


def test_matmul():
    a, b = RNG.normal(size=(2, 3, 4)).astype(np.float32), RNG.normal(size=(4, 5)).astype(np.float32)
    np.testing.assert_allclose(tf.matmul(a, b).numpy(), a @ b, rtol=1e-5)
    np.testing.assert_allclose((tf.constant(a) @ b).numpy(), a @ b, rtol=1e-5)
    np.testing.assert_allclose(tf.matmul(b, a[0], transpose_a=True, transpose_b=True).numpy(),
                               b.T @ a[0].T, rtol=1e-5)
    same(tf.matmul([[1, 2]], [[3], [4]]), [[11]], tf.int32)
    same(tf.linalg.matvec([[1, 2], [3, 4]], [1, 1]), [3, 7])
    with pytest.raises(errors.InvalidArgumentError):
        tf.matmul([[1.0, 2.0]], [[1.0, 2.0]])
    with pytest.raises(ValueError):
        tf.matmul([[1.0]], [[1.0]], transpose_a=True, adjoint_a=True)


@pytest.mark.parametrize("axes", [1, 0, [[1], [0]], [[2, 0], [0, 1]]])
def test_tensordot(axes):
    a = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    b = {1: (4, 5), 0: (2,)}.get(axes if isinstance(axes, int) else None,
                                 (3, 2) if axes == [[1], [0]] else (4, 2, 3))
    b = RNG.normal(size=b).astype(np.float32)
    np.testing.assert_allclose(tf.tensordot(a, b, axes).numpy(), np.tensordot(a, b, axes), rtol=1e-4)


@pytest.mark.parametrize("equation, shapes", [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
    ("i,i->", [(3,), (3,)]), ("i,j->ij", [(3,), (4,)]), ("ij->ji", [(2, 3)]), ("ij->j", [(2, 3)]),
    ("ijk,kl,lm->mji", [(2, 3, 4), (4, 5), (5, 2)]), ("...ij,...jk->...ik", [(2, 5, 2, 3), (2, 5, 3, 4)]),
    ("ii->i", [(3, 3)]), ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("ij,ij->i", [(2, 3), (2, 3)]),
    ("abc,cd->adb", [(2, 3, 4), (4, 5)]), ("i,i", [(3,), (3,)]),
])
def test_einsum_is_numpys(equation, shapes):
    inputs = [RNG.normal(size=shape).astype(np.float32) for shape in shapes]
    out = tf.einsum(equation, *inputs)
    expected = np.einsum(equation, *inputs)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert tuple(out.shape.as_list()) == expected.shape


def test_einsum_of_a_batch_that_is_not_known_yet():
    a, b = RNG.normal(size=(5, 2, 3)).astype(np.float32), RNG.normal(size=(3, 4)).astype(np.float32)
    run = traced(lambda x, y: tf.einsum("bij,jk->bik", x, y), (tf.float32, [None, 2, 3]),
                 (tf.float32, [3, 4]))
    np.testing.assert_allclose(run(a, b), a @ b, rtol=1e-5)


def test_einsum_says_what_is_wrong():
    with pytest.raises(ValueError):
        tf.einsum("ij,jk->ik", [[1.0]])
    with pytest.raises(ValueError):
        tf.einsum("ij->ijk", [[1.0]])
    with pytest.raises(errors.InvalidArgumentError):
        tf.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((4, 5)))


@pytest.mark.parametrize("order, axis", [("euclidean", None), (1, None), (2, 0), (np.inf, 1), (3, 0),
                                         ("fro", [0, 1]), (1, [0, 1]), (np.inf, [0, 1]), (2, [0, 1])])
def test_norms(order, axis):
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    if axis is None:
        expected = np.linalg.norm(x.ravel(), 2 if order == "euclidean" else order)
    else:
        expected = np.linalg.norm(x, order, tuple(axis) if isinstance(axis, list) else axis)
    np.testing.assert_allclose(tf.norm(x, order, axis).numpy(), expected, rtol=1e-5)


# ---- counted ----


def test_bincount_and_confusion_matrix():
    same(tf.math.bincount([1, 1, 2, 3, 2, 4, 4, 5]), [0, 2, 2, 1, 2, 1], tf.int32)
    same(tf.math.bincount([1, 1, 2], weights=[0.5, 1.0, 2.0]), [0.0, 1.5, 2.0], tf.float32)
    same(tf.math.bincount([0, 5], minlength=2, maxlength=3), [1, 0, 0], tf.int32)
    same(tf.math.confusion_matrix([1, 2, 4], [2, 2, 4]),
         [[0, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]],
         tf.int32)


def test_segments():
    x = [[1, 2, 3, 4], [4, 3, 2, 1], [5, 6, 7, 8]]
    same(tf.math.segment_sum(x, [0, 0, 1]), [[5, 5, 5, 5], [5, 6, 7, 8]], tf.int32)
    same(tf.math.segment_max(x, [0, 0, 2]), [[4, 3, 3, 4], [0, 0, 0, 0], [5, 6, 7, 8]])
    same(tf.math.segment_mean([1.0, 3.0, 5.0], [0, 0, 1]), [2.0, 5.0])
    same(tf.math.unsorted_segment_sum([1, 2, 3], [1, 0, 1], 3), [2, 4, 0])
    same(tf.math.unsorted_segment_sum([1, 2], [-1, 0], 1), [2])
    with pytest.raises(errors.InvalidArgumentError):
        tf.math.segment_sum([1, 2], [1, 0])


def test_permutations_and_order():
    same(tf.math.invert_permutation([3, 4, 0, 2, 1]), [2, 4, 3, 0, 1], tf.int32)
    assert bool(tf.math.is_non_decreasing([1, 1, 2]))
    assert not bool(tf.math.is_strictly_increasing([1, 1, 2]))


def test_bits():
    a, b = np.array([6, -3], np.int32), np.array([3, 5], np.int32)
    same(tf.bitwise.bitwise_and(a, b), a & b)
    same(tf.bitwise.bitwise_or(a, b), a | b)
    same(tf.bitwise.bitwise_xor(a, b), a ^ b)
    same(tf.bitwise.invert(a), ~a)
    same(tf.bitwise.left_shift(b, [1, 2]), b << [1, 2])
    same(tf.bitwise.right_shift(a, [1, 1]), a >> 1)


# ---- matrices ----


def test_diagonals():
    m = np.arange(12).reshape(3, 4)
    same(tf.linalg.diag_part(m), np.diag(m))
    for k in (-2, -1, 1, 2):
        same(tf.linalg.diag_part(m, k=k), np.diag(m, k))
        same(tf.linalg.diag([1, 2], k=k), np.diag([1, 2], k))
    same(tf.linalg.diag([[1, 2], [3, 4]]), [np.diag([1, 2]), np.diag([3, 4])])
    same(tf.linalg.set_diag(m, [9, 9, 9]), np.where(np.eye(3, 4, dtype=bool), 9, m))
    same(tf.linalg.trace(np.arange(9).reshape(3, 3)), 12)
    same(tf.linalg.band_part(m, 1, 0), np.tril(np.triu(m, -1)))
    same(tf.linalg.tensor_diag_part(tf.linalg.tensor_diag([[1, 2], [3, 4]])), [[1, 2], [3, 4]])
    same(tf.linalg.cross([1, 2, 3], [4, 5, 6]), np.cross([1, 2, 3], [4, 5, 6]))
    same(tf.linalg.matrix_transpose(np.arange(6).reshape(1, 2, 3)), [[[0, 3], [1, 4], [2, 5]]])


def test_decompositions():
    a = RNG.normal(size=(2, 3, 3)).astype(np.float32)
    p = a @ a.swapaxes(-1, -2) + np.eye(3, dtype=np.float32)
    np.testing.assert_allclose(tf.linalg.inv(p).numpy() @ p, [np.eye(3)] * 2, atol=1e-4)
    np.testing.assert_allclose(tf.linalg.det(p).numpy(), np.linalg.det(p), rtol=1e-4)
    lower = tf.linalg.cholesky(p).numpy()
    np.testing.assert_allclose(lower @ lower.swapaxes(-1, -2), p, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(tf.linalg.logdet(p).numpy(), np.log(np.linalg.det(p)), rtol=1e-4)
    np.testing.assert_allclose(p @ tf.linalg.solve(p, a).numpy(), a, atol=1e-4)
    q, r = (t.numpy() for t in tf.linalg.qr(a))
    np.testing.assert_allclose(q @ r, a, atol=1e-5)
    s, u, v = (t.numpy() for t in tf.linalg.svd(a))
    np.testing.assert_allclose(u * s[..., None, :] @ v.swapaxes(-1, -2), a, atol=1e-5)
    np.testing.assert_allclose(tf.linalg.svd(a, compute_uv=False).numpy(), s, rtol=1e-5)
    assert [t.shape.as_list() for t in tf.linalg.svd(a[:, :2], full_matrices=True)] == [
        [2, 2], [2, 2, 2], [2, 3, 3]]
    assert tf.linalg.matrix_rank(np.stack([np.eye(3), np.ones((3, 3))])).numpy().tolist() == [3, 1]
    values, vectors = (t.numpy() for t in tf.linalg.eigh(p))
    np.testing.assert_allclose(p @ vectors, vectors * values[:, None], atol=1e-4)
    full = a[0, :, :2]
    np.testing.assert_allclose(tf.linalg.lstsq(full, a[0, :, 2:]).numpy(),
                               np.linalg.lstsq(full, a[0, :, 2:], rcond=None)[0], atol=1e-3)
    np.testing.assert_allclose(tf.linalg.pinv(full).numpy(), np.linalg.pinv(full), atol=1e-4)
    np.testing.assert_allclose(tf.linalg.triangular_solve(p, a, lower=False).numpy(),
                               np.linalg.solve(np.triu(p), a), atol=1e-3)
    np.testing.assert_allclose(tf.linalg.eigvalsh(p).numpy(), np.linalg.eigvalsh(p), rtol=1e-4)
    with pytest.raises(errors.InvalidArgumentError):
        tf.linalg.inv(np.zeros((2, 2), np.float32))


@pytest.mark.parametrize("name", ["math.betainc", "math.igamma", "linalg.expm", "nn.conv2d",
                                  "image.ssim", "strings.unicode_script"])
def test_what_is_not_there_says_so_at_once(name):
    with pytest.raises(NotImplementedError, match=name.split(".")[-1]):
        named(name)


def test_the_largest_of_nothing_is_the_smallest_that_there_is():
    empty = tf.zeros([0, 3])
    same(tf.reduce_max(empty), -np.inf, tf.float32)
    same(tf.reduce_min(empty, 0), [np.inf] * 3, tf.float32)
    same(tf.reduce_max(tf.zeros([0], tf.int32), keepdims=True), [np.iinfo("i4").min], tf.int32)
    assert tf.reduce_max(empty, 1).shape.as_list() == [0]


def test_bincount_in_rows():
    same(tf.math.bincount([[1, 1, 2], [3, 0, 0]], axis=-1), [[0, 2, 1, 0], [2, 0, 0, 1]], tf.int32)
    same(tf.math.bincount([[1, 1], [0, 1]], axis=-1, binary_output=True), [[0, 1], [1, 1]])
    same(tf.math.bincount([[1, 1], [0, 1]], [[0.5, 1.0], [2.0, 3.0]], axis=-1),
         [[0.0, 1.5], [2.0, 3.0]], tf.float32)
    same(tf.math.bincount([[1, 9]], maxlength=3, minlength=3, axis=-1), [[0, 1, 0]])
    with pytest.raises(ValueError):
        tf.math.bincount([[1]], axis=1)


def test_segments_that_have_nothing():
    same(tf.math.unsorted_segment_max([5.0, 6.0], [0, 0], 2), [6, np.finfo("f4").min], tf.float32)
    same(tf.math.unsorted_segment_min([5, 6], [0, 0], 2), [5, np.iinfo("i4").max], tf.int32)


def test_inverses_have_tensorflows_arguments():
    a = np.array([[4.0, 1.0], [2.0, 3.0]])
    np.testing.assert_allclose(tf.linalg.inv(a, adjoint=True), np.linalg.inv(a.T))
    np.testing.assert_allclose(tf.linalg.pinv(a=a, rcond=1e-9), np.linalg.inv(a))
    nearly = np.diag([1.0, 1e-6]).astype("f4")  # below what float32 tells apart: counts as 0
    np.testing.assert_allclose(tf.linalg.pinv(nearly), np.diag([1.0, 0.0]))
    sign, log = tf.linalg.slogdet([[[0.0, 2.0], [1.0, 0.0]], [[3.0, 0.0], [0.0, 1.0]]])
    np.testing.assert_allclose(sign, [-1, 1])
    np.testing.assert_allclose(log, np.log([2, 3]), rtol=1e-6)


def test_inverses_of_the_error_function():
    x = np.array([-0.999999, -0.5, -1e-9, 0.0, 0.3, 0.9, 0.99999999])
    back = np.vectorize(math.erf)(tf.math.erfinv(x).numpy())
    np.testing.assert_allclose(back, x, rtol=1e-12)
    small = np.array([1e-300, 1e-9, 0.5, 1.0, 1.5, 1.999])
    np.testing.assert_allclose(np.vectorize(math.erfc)(tf.math.erfcinv(small).numpy()), small,
                               rtol=1e-12)
    np.testing.assert_allclose(tf.math.ndtri([0.975, 0.5, 0.025]), [1.959964, 0, -1.959964],
                               rtol=1e-6)
    assert math.isnan(tf.math.erfinv(1.5).numpy()) and math.isnan(tf.math.ndtri(-0.1).numpy())


def test_digamma_is_the_slope_of_lgamma():
    x = np.array([-2.5, -0.3, 1e-3, 0.5, 1.0, 3.7, 9.99, 10.0, 1e6])
    step = 1e-6 * np.maximum(1e-3, np.abs(x))
    slope = np.vectorize(math.lgamma)(x + step) - np.vectorize(math.lgamma)(x - step)
    np.testing.assert_allclose(tf.math.digamma(x), slope / (2 * step), rtol=1e-5)
    np.testing.assert_allclose(tf.math.digamma(np.array([1.0, 0.5])),
                               [-0.5772156649015329, -1.9635100260214235], rtol=1e-14)
    assert np.isnan(tf.math.digamma([0.0, -3.0]).numpy()).all()
    np.testing.assert_allclose(tf.math.lbeta([2.0, 3.0]), math.log(1 / 12), rtol=1e-6)


@pytest.mark.parametrize("name", [
    "math.lgamma", "math.digamma", "nn.gelu", "nn.elu", "nn.l2_loss", "math.softplus", "norm",
    "math.l2_normalize", "math.log_sigmoid", "math.erfc", "math.atanh", "linalg.inv", "linalg.det",
    "linalg.cholesky", "linalg.pinv", "linalg.eigvalsh", "linalg.logdet", "image.rgb_to_hsv",
])  # fmt: skip
def test_arrays_keep_their_dtype(name):
    function = tf
    for part in name.split("."):
        function = getattr(function, part)
    array = np.eye(3)[None] * 0.5
    assert function(array).dtype == tf.float64
    assert function(array.tolist()).dtype == tf.float32


def test_an_op_of_the_library_is_found_by_tensorflows_name(monkeypatch):
    """Here one whose own line is taken away."""
    own = tf.math.erf([0.5]).numpy()
    monkeypatch.delattr(tf.math, "erf")
    found = tf.math.erf
    assert found.__name__ == "erf" and found.__module__ == "plimsoll.tf.math" and found.__doc__
    np.testing.assert_array_equal(found([0.5]).numpy(), own)
    with pytest.raises(NotImplementedError, match="tf.math.bessel_i0: not implemented in Plimsoll"):
        tf.math.bessel_i0
