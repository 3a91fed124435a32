# SPDX-License-Identifier: Apache-2.0
"""Ops at their edges, in every style of program: nothing at all, lengths that only a run tells, the
ends of a dtype's range, and what is refused, with the class that TensorFlow refuses it with."""
import math

import numpy as np
import pytest
from random_programs import STYLES, dtype_of, run

import plimsoll.tf as tf
from plimsoll.tf import errors

M = np.arange(6, dtype=np.float32).reshape(2, 3)
SQUARE = np.eye(2, dtype=np.float32)
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
FLOATS = (np.float16, np.float32, np.float64)

pytestmark = pytest.mark.parametrize("style", STYLES)


def gives(style, function, arrays, wanted, rtol=0.0):
    got, wanted = run(function, arrays, style)[0], np.asarray(wanted)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    if wanted.dtype == object:
        assert got.tolist() == wanted.tolist()
    else:
        np.testing.assert_allclose(got, wanted, rtol=rtol)


def refuses(style, function, arrays):
    """As a kernel of TensorFlow does; a graph that is being built, with a ValueError."""
    with pytest.raises(errors.InvalidArgumentError) as caught:
        run(function, arrays, style)
    assert isinstance(caught.value, ValueError)


# ---- lengths that only a run tells ----


@pytest.mark.parametrize("length", (0, 1, 3))
@pytest.mark.parametrize("shift", (0, 1, 2, 3, 4, 7, -1, -4, -7, 2**40))
def test_a_roll_goes_round_as_often_as_it_takes(style, length, shift):
    x = np.arange(length * 2).reshape(length, 2)
    gives(style, lambda t: tf.roll(t, shift, 0), [x], np.roll(x, shift, 0))
    gives(style, lambda t: tf.roll(t, [shift, -shift], [0, 1]), [x],
          np.roll(x, [shift, -shift], [0, 1]))


def test_split_and_unstack_refuse_another_length(style):
    x = np.arange(4)
    assert [p.tolist() for p in run(lambda t: tf.split(t, [3, 1]), [x], style)] == [[0, 1, 2], [3]]
    for sizes in ([1, 1], [3, 3], [5, -1]):
        with pytest.raises((errors.InvalidArgumentError, NotImplementedError)):
            run(lambda t: tf.split(t, sizes), [x], style)
    assert len(run(lambda t: tf.unstack(t, 4), [x], style)) == 4
    for n in (3, 5):
        with pytest.raises(ValueError):
            run(lambda t: tf.unstack(t, n), [x], style)


@pytest.mark.parametrize("mode", ("REFLECT", "SYMMETRIC"))
def test_a_mirror_needs_only_the_axes_that_it_pads(style, mode):
    wanted = np.pad(M, [[0, 0], [1, 2]], mode.lower())
    gives(style, lambda t: tf.pad(t, [[0, 0], [1, 2]], mode), [M], wanted)
    gives(style, lambda t: tf.pad(tf.ensure_shape(t, [None, 3]), [[0, 0], [1, 2]], mode), [M], wanted)
    gives(style, lambda t: tf.pad(t, [[0, 0], [1, 2]], mode), [M[:0]], np.zeros((0, 6), M.dtype))
    for sides in ([[0, 0], [4, 0]], [[0, 3], [0, 0]]):
        refuses(style, lambda t: tf.pad(t, sides, mode), [M])


def test_a_reshape_to_what_was_computed_may_have_no_elements(style):
    def doubled(t):
        return tf.reshape(tf.concat([t, t], 0), [tf.shape(t)[0] * 2, 0])

    gives(style, doubled, [np.zeros((2, 0))], np.zeros((4, 0)))


# ---- products ----


@pytest.mark.parametrize("equation, shapes", [
    ("ab,ab->", [(2, 3), (2, 3)]), ("ab,cd->abcd", [(2, 3), (2, 3)]),
    ("abc,abc->c", [(2, 3, 4), (2, 3, 4)]), ("abc,abc->ac", [(2, 3, 4), (2, 3, 4)]),
    ("abc,cde->abde", [(2, 3, 4), (4, 3, 2)]), ("abcd,cdef->abef", [(2, 3, 4, 5), (4, 5, 2, 3)]),
    ("a,b->ba", [(2,), (3,)]), (",ab->ba", [(), (2, 3)]), ("ab,ab,ab->b", [(2, 3)] * 3),
    ("ab->", [(2, 3)]), ("abc,cde->abde", [(2, 0, 4), (4, 3, 2)]),
    ("abc,cde->abde", [(2, 3, 0), (0, 3, 2)]), ("abc,cd->abd", [(0, 2, 0), (0, 4)]),
    ("ab,cd->abcd", [(2, 0), (2, 3)]), ("ab,ab->", [(0, 3), (0, 3)]),
    ("abcd,cdef->abef", [(2, 0, 4, 5), (4, 5, 2, 0)]), ("ii->i", [(0, 0)]), ("ab->a", [(3, 0)]),
])
def test_einsum_is_numpys(style, equation, shapes):
    arrays = [np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
              for shape in shapes]
    gives(style, lambda *x: tf.einsum(equation, *x), arrays, np.einsum(equation, *arrays))


@pytest.mark.parametrize("axes", (0, 1, 2, [[], []], [[0, 1], [0, 1]], [[1, 0], [0, 1]], [[0], [1]]))
def test_tensordot_is_numpys(style, axes):
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    gives(style, lambda a, b: tf.tensordot(a, b, axes), [x, x + 1], np.tensordot(x, x + 1, axes))


def test_tensordot_refuses_axes_that_are_not_there(style):
    for axes in ([[2], [0]], [[0, 0], [0, 1]]):
        refuses(style, lambda a, b: tf.tensordot(a, b, axes), [M, M])


# ---- nothing at all ----


@pytest.mark.parametrize("shape, axis", (((0,), None), ((2, 0), 1), ((0, 3), 0), ((0, 3), 1), ((0, 0), 0)))
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_reductions_of_nothing(style, dtype, shape, axis):
    x = np.zeros(shape, dtype)
    info = np.iinfo(dtype) if dtype in INTEGERS else None
    least, most = (info.min, info.max) if info else (-np.inf, np.inf)
    for op, start in (("reduce_min", most), ("reduce_max", least), ("reduce_sum", 0), ("reduce_prod", 1),
                      ("reduce_mean", 0 if info else np.nan)):
        wanted = np.full(np.sum(x, axis).shape, start, dtype)
        gives(style, lambda t: getattr(tf, op)(t, axis), [x], wanted)
    gives(style, lambda t: tf.reduce_max(t, axis, keepdims=True), [x],
          np.full(np.sum(x, axis, keepdims=True).shape, least, dtype))


def test_a_mean_of_integers_is_0_only_where_there_are_none(style):
    gives(style, tf.reduce_mean, [np.int32([7, 8])], np.int32(7))


def test_gather_in_batches_without_indices(style):
    gather = lambda x, i: tf.gather(x, i, batch_dims=1)  # noqa: E731
    gives(style, gather, [M, np.zeros((2, 0), np.int32)], np.zeros((2, 0), np.float32))
    gives(style, gather, [M[:0], np.zeros((0, 4), np.int32)], np.zeros((0, 4), np.float32))
    gives(style, gather, [M[:, :0], np.zeros((2, 0), np.int32)], np.zeros((2, 0), np.float32))
    refuses(style, gather, [M[:, :0], np.zeros((2, 1), np.int32)])
    refuses(style, gather, [M, np.zeros((3, 1), np.int32)])
    refuses(style, gather, [M, np.int32([[3], [0]])])


@pytest.mark.parametrize("shape", ((2, 3), (2, 0), (0, 3), (2, 0, 3), (0, 0, 2), (0,), (3,)))
@pytest.mark.parametrize("times", (0, 1, 2, [2]))
def test_repeat_of_and_by_nothing(style, shape, times):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    for axis in range(-len(shape), len(shape)):
        gives(style, lambda t: tf.repeat(t, times, axis), [x], np.repeat(x, times, axis))
    gives(style, lambda t: tf.repeat(t, times), [x], np.repeat(x, times))
    refuses(style, lambda t: tf.repeat(t, -1, 0), [x])


def test_segments_of_nothing(style):
    nothing, none = np.zeros((0, 0, 2), np.float32), np.zeros(0, np.int32)
    for name in ("sum", "prod", "max", "min", "mean"):
        gives(style, getattr(tf.math, f"segment_{name}"), [nothing, none], np.zeros((0, 0, 2), np.float32))
        gives(style, getattr(tf.math, f"segment_{name}"), [M[:, :0], np.int32([0, 2])],
              np.zeros((3, 0), np.float32))
    gives(style, lambda x, i: tf.math.unsorted_segment_sum(x, i, 2), [nothing, none], np.zeros((2, 0, 2), "f4"))
    refuses(style, lambda x, i: tf.math.unsorted_segment_sum(x, i, 2), [M, np.int32([0])])
    gives(style, lambda x, i: tf.strings.unsorted_segment_join(x, i, 1), [np.zeros((0, 2), object), none],
          np.array([[b"", b""]], object))


@pytest.mark.parametrize("shape", ((0,), (0, 3), (2, 0, 3)))
def test_texts_and_halves_of_nothing_keep_their_shape(style, shape):
    for kind in (object, "S3", "U3"):
        value = tf.constant(np.zeros(shape, kind))
        assert value.dtype == tf.string and value.shape == shape
    assert tf.constant(np.zeros(shape, object), tf.float32).shape == shape
    assert tf.constant(np.zeros(shape), tf.bfloat16).shape == shape
    assert tf.constant(np.array([[1, 2.5]], object)).dtype == tf.float32
    gives(style, tf.transpose, [np.zeros(shape, object)], np.zeros(shape[::-1], object))


def test_ranks_are_known_where_numpy_computes(style):
    def stitched(x):
        out = tf.dynamic_stitch([[1, 0]], [x])
        assert out.shape.rank == 2
        return out

    gives(style, stitched, [M], M[::-1])
    assert run(lambda x: tf.constant(tf.unravel_index(x, [2, 3]).shape.rank), [np.array([4])], style) == [2]
    assert run(lambda x: tf.constant(tf.math.nextafter(x, 1.0).shape.rank), [M], style) == [2]
    assert run(lambda x: tf.constant(tf.norm(x, 2, [0, 1], True).shape.rank), [M], style) == [2]


def test_more_of_nothing(style):
    gives(style, lambda x: tf.repeat(x, [], 1), [M[:, :0]], M[:, :0])
    gives(style, tf.sequence_mask, [np.zeros(0, np.int32)], np.zeros((0, 0), bool))
    gives(style, tf.sequence_mask, [np.int32([-3])], np.zeros((1, 0), bool))
    gives(style, tf.linalg.matrix_rank, [np.zeros((3, 0, 2))], np.zeros(3, np.int32))
    texts = np.zeros((2, 0), object)
    gives(style, lambda x: tf.strings.ngrams(x, 2), [texts], texts)
    gives(style, lambda x: tf.strings.reduce_join(x, 1), [texts], np.array([b"", b""], object))


@pytest.mark.parametrize("reverse", (False, True))
def test_a_scan_of_nothing_is_as_its_start_is(style, reverse):
    if style == "session":
        pytest.skip("there the number of elements is to be known")

    def sums(x):
        start = (tf.constant([1.0, 2.0]), tf.constant(0, tf.int64))
        return tf.scan(lambda a, row: (a[0] + row, a[1] + 1), x, start, reverse=reverse)

    for got, wanted in zip(run(sums, [np.zeros((0, 2), "f4")], style),
                           (np.zeros((0, 2), "f4"), np.zeros(0, "i8"))):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)


@pytest.mark.parametrize("row", (np.array(b"a", object), np.array([True]), np.int64([1, 2]), np.float16(1)))
def test_rows_of_any_dtype_are_made_of_nothing(style, row):
    wanted = np.zeros((0, *row.shape), row.dtype)
    gives(style, lambda x: tf.map_fn(lambda _: tf.constant(row), x, fn_output_signature=dtype_of(row)),
          [np.zeros((0, 2))], wanted)
    gives(style, lambda x: tf.map_fn(lambda _: tf.constant(row), x, fn_output_signature=dtype_of(row)),
          [np.zeros((3, 2))], np.array([row] * 3, row.dtype))
    if style != "session":  # there the number of elements is to be known
        gives(style, lambda x: tf.scan(lambda a, _: a, x, tf.constant(row)), [np.zeros((0, 2))], wanted)


# ---- the ends of the range ----


@pytest.mark.parametrize("dtype", FLOATS)
def test_inverse_hyperbolics_keep_the_whole_range(style, dtype):
    info = np.finfo(dtype)
    ends = [0.0, info.tiny, 1e-4, 0.5, 1, 2, 255, 256, 6e4, info.max, np.inf]
    x = np.array([*ends, *(-np.array(ends)), np.nan, 1 + info.eps, 1 - info.epsneg], dtype)
    if dtype != np.float16:
        x = np.append(x, dtype([1e18, 1e20, 3e38]))
    for op, oracle in ((tf.asinh, np.arcsinh), (tf.acosh, np.arccosh), (tf.atanh, np.arctanh)):
        with np.errstate(all="ignore"):
            wanted = oracle(x.astype("g")).astype(dtype)
        gives(style, op, [x], wanted, rtol=2 * info.eps)
        got = run(op, [x], style)[0]
        np.testing.assert_array_equal(np.signbit(got[x == 0]), np.signbit(wanted[x == 0]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_erfc_is_exact_where_it_is_small(style, dtype):
    x = np.array([-np.inf, -3, -0.0, 1e-4, 0.5, 2, 3, 5, 9, 10, 20, 26, 27, np.inf, np.nan], dtype)
    wanted = np.array([math.erfc(v) for v in x.astype("f8")]).astype(dtype)
    got = run(tf.math.erfc, [x], style)[0]
    np.testing.assert_allclose(got, wanted, rtol=3 * np.finfo(dtype).eps,
                               atol=2 * np.finfo(dtype).smallest_subnormal)


def test_norms_of_float16_do_not_overflow(style):
    x, tiny = np.float16([300, 400]), np.float16([3e-5, 4e-5])
    for norm in (tf.norm, tf.math.reduce_euclidean_norm, lambda t: tf.linalg.global_norm([t])):
        gives(style, norm, [x], np.float16(500))
        gives(style, norm, [tiny], np.float16(5e-5), rtol=0.01)
    gives(style, lambda t: tf.norm(t, 3), [x], np.float16((300.0**3 + 400.0**3) ** (1 / 3)), rtol=0.002)
    gives(style, lambda t: tf.clip_by_norm(t, 50.0), [x], np.float16([30, 40]), rtol=0.002)
    gives(style, lambda t: tf.math.l2_normalize(t), [x], np.float16([0.6, 0.8]), rtol=0.002)


def test_lgamma_past_the_range_is_infinite(style):
    gives(style, tf.math.lgamma, [np.float64([1e308, -np.inf, 0.0, 3.0])],
          np.float64([np.inf, np.inf, np.inf, np.log(2)]), rtol=1e-12)


# ---- counts ----


@pytest.mark.parametrize("numbers, least, most, wanted", [
    ([1, 9], None, 5, [0, 1, 0, 0, 0]), ([1, 1, 2], None, 5, [0, 2, 1]), ([1, 9], 7, 5, [0, 1, 0, 0, 0]),
    ([1], 4, None, [0, 1, 0, 0]), ([], None, 5, []), ([], 3, 5, [0, 0, 0]), ([9], None, 0, []),
])
def test_bincount_is_as_long_as_its_largest_number_and_limits_say(style, numbers, least, most, wanted):
    x = np.array(numbers, np.int32)

    def count(t, **how):
        return tf.math.bincount(t, minlength=least, maxlength=most, **how)

    gives(style, count, [x], np.int32(wanted))
    gives(style, lambda t: count(t, axis=0), [x], np.int32(wanted))
    gives(style, lambda t: count(t, axis=-1), [x[None]], np.int32([wanted]))
    gives(style, lambda t: count(t, weights=tf.ones_like(t)), [x], np.int32(wanted))
    refuses(style, tf.math.bincount, [np.int32([-1])])


# ---- what is refused ----


@pytest.mark.parametrize("name, function, arrays", [
    ("slogdet", tf.linalg.slogdet, [M]), ("slogdet of a vector", tf.linalg.slogdet, [M[0]]),
    ("qr of a vector", tf.linalg.qr, [M[0]]), ("svd of a vector", tf.linalg.svd, [M[0]]),
    ("eigh", tf.linalg.eigh, [M]), ("eigh that does not converge", tf.linalg.inv, [0 * SQUARE]),
    ("solve", tf.linalg.solve, [SQUARE, M[:1]]),
    ("reduce_join", lambda t: tf.strings.reduce_join(t, axis=5), [np.array([[b"a"]], object)]),
    ("reduce_join twice", lambda t: tf.strings.reduce_join(t, axis=[0, 0]), [np.array([[b"a"]], object)]),
    ("reduce_join of a scalar", lambda t: tf.strings.reduce_join(t, axis=0), [np.array(b"a", object)]),
    ("set_diag", tf.linalg.set_diag, [M, np.ones(3, "f4")]),
    ("set_diag too short", tf.linalg.set_diag, [M, np.ones(1, "f4")]),
    ("set_diag of more batches", tf.linalg.set_diag, [M, np.ones((2, 2), "f4")]),
    ("set_diag of a vector", tf.linalg.set_diag, [M[0], np.ones(2, "f4")]),
    ("set_diag far away", lambda m, d: tf.linalg.set_diag(m, d, k=7), [M, np.ones(2, "f4")]),
    ("gather_nd", tf.gather_nd, [M, np.array([[5, 0]])]),
    ("gather_nd of one number", tf.gather_nd, [M, np.array([[7]])]),
    ("gather_nd of negative ones", tf.gather_nd, [M, np.array([[-1, 0]])]),
    ("gather_nd of a negative one", tf.gather_nd, [M, np.array([[-1]])]),
    ("gather_nd of too many", tf.gather_nd, [M, np.array([[0, 0, 0]])]),
    ("gather_nd by a scalar", tf.gather_nd, [M, np.array(1)]),
    ("gather_nd by fractions", tf.gather_nd, [M, np.array([[0.0]])]),
    ("gather_nd in batches", lambda x, i: tf.gather_nd(x, i, 5), [M, np.array([[0], [0]])]),
    ("unravel_index", lambda i: tf.unravel_index(i, [2, 2]), [np.array([9])]),
    ("searchsorted", tf.searchsorted, [M, np.ones((3, 2), "f4")]),
    ("reverse_sequence", lambda x, n: tf.reverse_sequence(x, n, 1, 0), [M, np.array([1])]),
    ("histogram", lambda x: tf.histogram_fixed_width(x, [0.0, 0.0]), [M]),
    ("repeat", lambda x, n: tf.repeat(x, n, 0), [M, np.array([1, 2, 3])]),
    ("scatter", lambda x, i: tf.tensor_scatter_nd_update(x, i, [1.0, 2.0]), [M[0], np.array([[1]])]),
    ("segment ids", tf.math.segment_sum, [M, np.array([0])]),
    ("cumprod", lambda x: tf.math.cumprod(x, 4), [M]),
    ("norm", lambda x: tf.norm(x, 1, axis=[0, 5]), [M]),
    ("argmax of none", tf.argmax, [M[:0]]),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_what_does_not_fit_is_an_invalid_argument(style, name, function, arrays):
    refuses(style, function, arrays)


# ---- matrices whose size only a run tells ----


def test_diagonals_of_any_matrix(style):
    x = np.arange(12.0).reshape(3, 4)
    gives(style, tf.linalg.diag_part, [x], np.diagonal(x))
    gives(style, lambda m: tf.linalg.diag_part(m, k=1), [x], np.diagonal(x, 1))
    gives(style, tf.linalg.diag, [x[0]], np.diag(x[0]))
    gives(style, tf.linalg.trace, [x], np.trace(x))
    gives(style, tf.linalg.trace, [x[:0, :0]], np.float64(0))
    gives(style, lambda m: tf.linalg.band_part(m, 0, -1), [x], np.triu(x))
    changed = x.copy()
    changed[[0, 1, 2], [0, 1, 2]] = [7, 8, 9]
    gives(style, tf.linalg.set_diag, [x, np.float64([7, 8, 9])], changed)
    gives(style, lambda m: tf.linalg.qr(m)[1], [np.eye(2)], np.linalg.qr(np.eye(2))[1])
    gives(style, lambda m: tf.linalg.svd(m, compute_uv=False), [x], np.linalg.svd(x)[1], rtol=1e-9)
    gives(style, tf.linalg.tensor_diag, [x[0]], np.diag(x[0]))
    gives(style, tf.linalg.tensor_diag_part, [np.diag(x[0])], x[0])


def test_diagonals_of_bools(style):
    x = np.array([[True, False], [True, True]])
    gives(style, tf.linalg.diag, [x[0]], np.diag(x[0]))
    gives(style, lambda m: tf.linalg.band_part(m, 0, 0), [x], np.eye(2, dtype=bool))
    gives(style, tf.linalg.set_diag, [x, np.array([False, False])], np.array([[False, False], [True, False]]))


@pytest.mark.parametrize("depth", (0, 1, 2))
def test_gather_nd_of_any_shape(style, depth):
    index = np.array([[1, 2], [0, 0]])[:, :depth]
    wanted = np.stack([M[tuple(row)] for row in index])
    gives(style, tf.gather_nd, [M, index], wanted)
    gives(style, tf.gather_nd, [M, index[:0]], wanted[:0])
