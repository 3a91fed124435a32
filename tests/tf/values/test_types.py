# SPDX-License-Identifier: Apache-2.0
"""Dtypes, shapes and specs, as TensorFlow documents them."""
import copy
import pickle

import numpy as np
import pytest

import plimsoll.tf as tf

NUMPY = {
    tf.bool: np.bool_,
    tf.uint8: np.uint8,
    tf.int8: np.int8,
    tf.uint16: np.uint16,
    tf.int16: np.int16,
    tf.uint32: np.uint32,
    tf.int32: np.int32,
    tf.uint64: np.uint64,
    tf.int64: np.int64,
    tf.float16: np.float16,
    tf.float32: np.float32,
    tf.float64: np.float64,
}


@pytest.mark.parametrize("dtype", NUMPY, ids=lambda dtype: dtype.name)
def test_a_dtype_is_equal_to_numpys_and_to_its_name(dtype):
    twin = NUMPY[dtype]
    assert dtype == twin and dtype == np.dtype(twin) and dtype == dtype.name
    assert twin == dtype.as_numpy_dtype
    assert tf.as_dtype(twin) is dtype and tf.as_dtype(np.dtype(twin)) is dtype
    assert tf.as_dtype(dtype.name) is dtype
    assert dtype.size == np.dtype(twin).itemsize
    assert not dtype == "float99"


@pytest.mark.parametrize("dtype", [d for d in NUMPY if d != tf.bool], ids=lambda d: d.name)
def test_a_dtype_knows_its_limits(dtype):
    info = np.finfo if dtype.is_floating else np.iinfo
    assert dtype.min == info(NUMPY[dtype]).min
    assert dtype.max == info(NUMPY[dtype]).max
    assert dtype.limits == ((0, 1) if dtype.is_floating else (0, dtype.max))


def test_strings_have_no_limits():
    with pytest.raises(TypeError):
        tf.string.max


def test_dtypes_know_what_they_are():
    assert tf.float16.is_floating and tf.bfloat16.is_floating and not tf.int8.is_floating
    assert tf.int8.is_integer and tf.uint8.is_integer and not tf.bool.is_integer
    assert tf.uint8.is_unsigned and not tf.int8.is_unsigned
    assert tf.bool.is_bool and not tf.float32.is_complex and not tf.int8.is_quantized


def test_dtypes_print_as_tensorflows_do():
    assert repr(tf.float32) == "tf.float32"
    assert str(tf.float32) == "<dtype: 'float32'>"


def test_pythons_classes_and_tensorflows_numbers_stand_for_dtypes():
    assert tf.as_dtype(float) is tf.float32
    assert tf.as_dtype(bool) is tf.bool
    assert tf.as_dtype(str) is tf.string
    assert tf.as_dtype(int) is tf.int64
    assert tf.as_dtype(1) is tf.float32
    assert tf.as_dtype("half") is tf.float16 and tf.half is tf.float16
    assert tf.as_dtype("double") is tf.float64 and tf.double is tf.float64
    assert tf.as_dtype(np.dtype("S3")) is tf.string


@pytest.mark.parametrize("wrong", ["float99", None, 99, [1], dict])
def test_what_is_no_dtype_is_a_type_error(wrong):
    with pytest.raises(TypeError, match="Cannot convert the argument"):
        tf.as_dtype(wrong)


def test_dtypes_are_keys_and_survive_copies():
    assert {tf.float32: 1}[tf.as_dtype("float32")] == 1
    assert pickle.loads(pickle.dumps(tf.int32)) is tf.int32
    assert copy.deepcopy(tf.int32) is tf.int32


def test_dtypes_are_in_tf_dtypes_too():
    assert tf.dtypes.float32 is tf.float32
    assert tf.dtypes.as_dtype("int32") is tf.int32


# ---- shapes ----


def test_a_shape_is_a_sequence_of_dimensions():
    shape = tf.TensorShape([None, 3])
    assert shape.as_list() == [None, 3] and list(shape) == [None, 3]
    assert len(shape) == shape.rank == shape.ndims == 2
    assert shape[1] == 3 and shape[0] is None and shape[-1] == 3
    assert shape[1:] == tf.TensorShape([3]) and isinstance(shape[1:], tf.TensorShape)
    assert [dim.value for dim in shape.dims] == [None, 3]


def test_a_shape_of_unknown_rank_says_so():
    shape = tf.TensorShape(None)
    assert shape.rank is None and shape.dims is None and not shape
    for use in (shape.as_list, shape.__len__, shape.__iter__):
        with pytest.raises(ValueError):
            use()
    assert str(shape) == "<unknown>" and repr(shape) == "TensorShape(None)"
    assert shape[0] is None
    assert shape[1:3] == tf.TensorShape([None, None])


def test_shapes_print_as_tensorflows_do():
    assert repr(tf.TensorShape([2, None])) == "TensorShape([2, None])"
    assert str(tf.TensorShape([2, None])) == "(2, None)"
    assert str(tf.TensorShape([3])) == "(3,)" and str(tf.TensorShape([])) == "()"


def test_shapes_are_equal_to_lists_and_tuples():
    assert tf.TensorShape([2, 3]) == [2, 3] and (2, 3) == tf.TensorShape([2, 3])
    assert tf.TensorShape([2, None]) == tf.TensorShape([2, None])
    assert tf.TensorShape([2]) != tf.TensorShape([3])
    assert tf.TensorShape(None) != tf.TensorShape([])
    assert not tf.TensorShape([2]) == "text"
    assert {tf.TensorShape([2, 3]): 1}[tf.TensorShape((2, 3))] == 1


def test_a_number_is_a_shape_of_one_dimension():
    assert tf.TensorShape(5) == [5]
    assert tf.TensorShape(np.array([2, 3])) == [2, 3]


@pytest.mark.parametrize("wrong, error", [([-1], ValueError), ([1.5], TypeError), ("23", TypeError)])
def test_what_is_no_dimension_is_refused(wrong, error):
    with pytest.raises(error):
        tf.TensorShape(wrong)


def test_num_elements_is_known_when_all_dimensions_are():
    assert tf.TensorShape([2, 3, 4]).num_elements() == 24
    assert tf.TensorShape([]).num_elements() == 1
    assert tf.TensorShape([2, None]).num_elements() is None
    assert tf.TensorShape(None).num_elements() is None


@pytest.mark.parametrize(
    "a, b, fits",
    [
        (None, [1, 2], True),
        ([None, None], [2, 3], True),
        ([32, None], [None, 784], True),
        ([32, 784], [32, 784], True),
        ([32, 784], [32], False),
        ([2, None], [3, None], False),
        ([], [1], False),
    ],
)
def test_compatible_shapes_could_be_the_same(a, b, fits):
    a, b = tf.TensorShape(a), tf.TensorShape(b)
    assert a.is_compatible_with(b) is fits and b.is_compatible_with(a) is fits
    if fits:
        a.assert_is_compatible_with(b)
    else:
        with pytest.raises(ValueError, match="are incompatible"):
            a.assert_is_compatible_with(b)
        with pytest.raises(ValueError):
            a.merge_with(b)


def test_shapes_merge_and_concatenate():
    assert tf.TensorShape([None, 3]).merge_with([2, None]) == [2, 3]
    assert tf.TensorShape(None).merge_with([2]) == [2]
    assert tf.TensorShape([1]).concatenate([2, None]) == [1, 2, None]
    assert tf.TensorShape([1]) + [2] == [1, 2] and [1] + tf.TensorShape([2]) == [1, 2]
    assert tf.TensorShape([1]).concatenate(None) == tf.TensorShape(None)
    both = tf.TensorShape([1, 2]).most_specific_compatible_shape([1, 3])
    assert both == [1, None]


def test_ranks_are_asserted():
    shape = tf.TensorShape([2, 3])
    assert shape.with_rank(2) == shape and tf.TensorShape(None).with_rank(2) == [None, None]
    assert shape.with_rank_at_least(1) == shape and shape.with_rank_at_most(3) == shape
    shape.assert_has_rank(2)
    shape.assert_same_rank([None, None])
    for wrong in (
        lambda: shape.with_rank(3),
        lambda: shape.with_rank_at_least(3),
        lambda: shape.with_rank_at_most(1),
        lambda: shape.assert_has_rank(1),
        lambda: shape.assert_same_rank([1]),
        lambda: tf.TensorShape([None]).assert_is_fully_defined(),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_a_subtype_is_never_something_that_its_supertype_is_not():
    assert tf.TensorShape([2, 3]).is_subtype_of([None, 3])
    assert not tf.TensorShape([None, 3]).is_subtype_of([2, 3])
    assert tf.TensorShape([2]).is_subtype_of(None) and not tf.TensorShape(None).is_subtype_of([2])


# ---- specs ----


def test_a_spec_prints_as_tensorflows_does():
    assert (
        repr(tf.TensorSpec([None, 3], tf.float32))
        == "TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)"
    )
    assert tf.TensorSpec([2]).dtype == tf.float32


def test_specs_are_equal_by_shape_dtype_and_name():
    assert tf.TensorSpec([2], tf.int32) == tf.TensorSpec([2], tf.int32)
    assert tf.TensorSpec([2], tf.int32) != tf.TensorSpec([2], tf.int64)
    assert tf.TensorSpec([2], tf.int32, "a") != tf.TensorSpec([2], tf.int32, "b")
    assert len({tf.TensorSpec([2], tf.int32), tf.TensorSpec([2], tf.int32)}) == 1
    assert pickle.loads(pickle.dumps(tf.TensorSpec([2], name="x"))) == tf.TensorSpec([2], name="x")


def test_a_spec_is_compatible_with_what_fits():
    spec = tf.TensorSpec([None, 2], tf.float32)
    assert spec.is_compatible_with(tf.constant([[1.0, 2.0]]))
    assert not spec.is_compatible_with(tf.constant([[1, 2]]))
    assert not spec.is_compatible_with(tf.constant([1.0, 2.0]))
    assert spec.is_compatible_with(tf.TensorSpec([3, None], tf.float32))


def test_specs_are_made_of_tensors_and_specs():
    assert tf.TensorSpec.from_tensor(tf.constant([1, 2])) == tf.TensorSpec([2], tf.int32)
    assert tf.TensorSpec.from_spec(tf.TensorSpec([2]), "x").name == "x"
    assert tf.type_spec_from_value(np.zeros([2, 3])) == tf.TensorSpec([2, 3], tf.float64)
    both = tf.TensorSpec([1, 2]).most_specific_compatible_type(tf.TensorSpec([1, 3]))
    assert both == tf.TensorSpec([1, None])


def test_a_tensors_shape_is_a_tensor_shape():
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    assert isinstance(x.shape, tf.TensorShape) and x.shape == [2, 3]
    assert x.dtype is tf.int32


# ---- structures ----


def test_structures_are_flattened_in_the_order_of_sorted_keys():
    assert tf.nest.flatten({"b": 1, "a": [2, (3,)]}) == [2, 3, 1]
    assert tf.nest.flatten(5) == [5]
    packed = tf.nest.pack_sequence_as({"b": 0, "a": [0, (0,)]}, [1, 2, 3])
    assert packed == {"b": 3, "a": [1, (2,)]} and list(packed) == ["b", "a"]


def test_structures_that_differ_are_told_apart():
    with pytest.raises(TypeError):
        tf.nest.assert_same_structure([1, 2], (1, 2))
    tf.nest.assert_same_structure([1, 2], (1, 2), check_types=False)
    with pytest.raises(ValueError):
        tf.nest.assert_same_structure([1, 2], [1])
    with pytest.raises(ValueError):
        tf.nest.assert_same_structure({"a": 1}, {"b": 1})
    with pytest.raises(ValueError):
        tf.nest.map_structure(lambda a, b: a, [1], [1, 2])
    with pytest.raises(ValueError, match="Could not pack"):
        tf.nest.pack_sequence_as([0, 0], [1])


def test_arrays_are_leaves():
    array = np.zeros(2)
    assert tf.nest.flatten([array])[0] is array and not tf.nest.is_nested(array)
