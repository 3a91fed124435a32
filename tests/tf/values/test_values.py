# SPDX-License-Identifier: Apache-2.0
"""Tensors from Python's values, and back: `plimsoll._core` by itself, NumPy as the oracle."""
import array
import decimal
import enum
import gc
import time
import tracemalloc
import weakref

import numpy as np
import pytest

from plimsoll import _core

NUMBERS = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
           "float16", "float32", "float64"]  # fmt: skip


def name_of(tensor):
    return getattr(tensor.dtype, "name", tensor.dtype)


def shape_of(tensor):
    return tuple(tensor.shape)


# From Python


@pytest.mark.parametrize(
    "value, dtype, shape",
    [
        (1, "int32", ()),
        (2**31, "int64", ()),
        (-(2**31), "int32", ()),
        (1.5, "float32", ()),
        (True, "bool", ()),
        ("é", "string", ()),
        (b"\0\xff", "string", ()),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        ([1, 2.5], "float32", (2,)),
        ([[1, 2], (3, 4)], "int32", (2, 2)),
        (range(3), "int32", (3,)),
        ([1, 2**40], "int64", (2,)),
        (["a", b"b"], "string", (2,)),
        (enum.IntEnum("Colour", "RED").RED, "int32", ()),
        ([np.float32(1), np.float32(2)], "float32", (2,)),
        ([np.float64(1), np.float64(2)], "float64", (2,)),
        ([np.ones(2, np.int8), np.zeros(2, np.int8)], "int8", (2, 2)),
        (np.float64(3), "float64", ()),
        (np.bool_(True), "bool", ()),
        (array.array("h", [1, 2]), "int16", (2,)),
        (memoryview(b"abc"), "uint8", (3,)),
    ],
)
def test_a_value_has_the_dtype_and_shape_that_tensorflow_gives_it(value, dtype, shape):
    tensor = _core.constant(value)
    assert (name_of(tensor), shape_of(tensor)) == (dtype, shape)


def test_texts_are_utf8_and_bytes_stay_as_they_are():
    tensor = _core.constant([["é", b"\0\xff"], ["", b"x" * 1000]])
    expected = [["é".encode(), b"\0\xff"], [b"", b"x" * 1000]]
    assert tensor.numpy().tolist() == expected
    assert _core.constant("é").numpy() == "é".encode()


@pytest.mark.parametrize("dtype", NUMBERS)
def test_arrays_come_and_go_unchanged_in_every_dtype_and_layout(dtype):
    base = (np.arange(24).reshape(2, 3, 4) % 2 if dtype == "bool" else
            np.arange(24).reshape(2, 3, 4)).astype(dtype)  # fmt: skip
    layouts = [base, base.T, base[:, ::-1], base[1:, ::2, ::3], base[0, 0, 0], base[:0],
               np.asfortranarray(base), np.broadcast_to(base[:1], (3, 3, 4))]  # fmt: skip
    for one in layouts:
        tensor = _core.constant(one)
        assert name_of(tensor) == dtype
        for back in (tensor.numpy(), np.asarray(tensor)):
            assert back.dtype == one.dtype
            np.testing.assert_array_equal(back, one)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_large_read_only_arrays_of_any_layout_are_shared(dtype):
    base = np.zeros((1200, 1100), dtype)
    base.flags.writeable = False
    for one in (base, base.T, base[::-1], base[:, ::-1]):
        if one.nbytes < 1 << 20:
            assert not np.shares_memory(np.asarray(_core.constant(one)), one)
        else:
            back = np.asarray(_core.constant(one))
            assert np.shares_memory(back, one)
            np.testing.assert_array_equal(back, one)


def test_an_array_that_is_changed_afterwards_changes_no_tensor():
    array = np.ones((1 << 10, 1 << 9), np.float32)
    tensor, pending = _core.constant(array), _core.constant(array[::-1]) + array
    array[:] = 7
    assert tensor.numpy().max() == 1 and pending.numpy().max() == 2


@pytest.mark.parametrize("layout", ["rows", "columns", "strides"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_large_array_is_cast_without_a_copy_that_nobody_claimed(dtype, layout):
    array = np.random.default_rng(1).normal(size=(1000, 1500))
    array = {"rows": array, "columns": np.asfortranarray(array),
             "strides": np.repeat(array, 2, 0)[::2, ::-1]}[layout]  # fmt: skip
    tracemalloc.start()
    tensor = _core.constant(array, dtype=dtype)
    beside = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert beside < array.nbytes // 8, "NumPy's arrays are traced, the library's blocks are not"
    expected = array.astype("float16" if dtype == "float16" else "float32")
    array[:] = 0
    np.testing.assert_allclose(np.asarray(tensor), expected, rtol=2**-8 if dtype == "bfloat16" else 0)


def test_a_large_array_of_columns_is_copied_once():
    array = np.asfortranarray(np.arange(3.0e5).reshape(200, 300, 5))
    tracemalloc.start()
    tensor = _core.constant(array)
    beside = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert beside < array.nbytes // 8
    array[:] = 0
    np.testing.assert_array_equal(tensor.numpy(), np.arange(3.0e5).reshape(200, 300, 5))


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float32", "float64"])
def test_numbers_and_arrays_become_the_dtype_that_is_asked_for(dtype):
    for value in (3, [1, 2, 3], np.arange(5, dtype=np.int16)):
        tensor = _core.constant(value, dtype=dtype)
        assert name_of(tensor) == dtype
        np.testing.assert_array_equal(tensor.numpy(), np.asarray(value).astype(dtype))


def test_bfloat16_is_rounded_to_the_nearest_and_comes_back_as_float32():
    values = [1.0, 1.00390625, 1.01171875, -3.14159, 1e38, float("inf"), 0.0, 1e-40]
    import torch

    expected = torch.tensor(values, dtype=torch.bfloat16).float().numpy()
    tensor = _core.constant(values, dtype="bfloat16")
    back = tensor.numpy()
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, expected)
    assert float(_core.constant(1.00390625, dtype="bfloat16")) == expected[1]
    assert np.isnan(_core.constant([float("nan")], dtype="bfloat16").numpy()[0])


def test_float16_overflows_to_infinity_as_numpy_does():
    values = [65504.0, 65519.9, 65520.0, -70000.0, float("nan"), 1e-8]
    with np.errstate(over="ignore"):
        expected = np.array(values).astype(np.float16)
    np.testing.assert_array_equal(_core.constant(values, dtype="float16").numpy(), expected)


@pytest.mark.parametrize(
    "value, dtype",
    [
        (1.5, "int32"),
        (True, "int32"),
        (1, "bool"),
        (300, "uint8"),
        (-1, "uint8"),
        (-129, "int8"),
        (2**63, "int64"),
        (2**64, "uint64"),
        ("a", "float32"),
        (1, "string"),
        ([1.5, 2], "int64"),
        (np.array([1.5]), "int32"),
        (np.array([True]), "float32"),
        (2**70, None),
    ],
)
def test_a_value_that_does_not_fit_a_dtype_is_refused(value, dtype):
    with pytest.raises(TypeError, match="Cannot convert"):
        _core.constant(value, dtype=dtype)


@pytest.mark.parametrize(
    "value, words",
    [
        ([[1, 2], [3]], "non-rectangular"),
        ([1, [2]], "non-rectangular"),
        ([[1], 2], "non-rectangular"),
        ([1, "a"], "mixed types"),
        ([True, 1], "mixed types"),
        (object(), "unsupported type"),
        ({1: 2}, "unsupported type"),
        ({1, 2}, "unsupported type"),
        (None, "unsupported type"),
        ([1, None], "unsupported type"),
        (decimal.Decimal(1), "unsupported type"),
        (1j, "unsupported type"),
        ([[[[[[[[[1]]]]]]]]], "more than 8 deep"),
        (np.zeros((1,) * 9), "9 axes"),
        (np.zeros(2, np.longdouble), "Failed to convert a NumPy array"),
        (np.longdouble(1), "Failed to convert a NumPy array"),
        (np.zeros(2, np.complex64), "unsupported type"),
        (np.zeros(2, "M8[s]"), "unsupported type"),
        (np.array([np.zeros(2), None], dtype=object), "unsupported type"),
    ],
)
def test_what_cannot_be_a_tensor_is_refused_by_name(value, words):
    with pytest.raises(ValueError, match=words):
        _core.constant(value)


def test_an_array_of_texts_or_objects_becomes_strings():
    for made in (np.array(["a", "bü"]), np.array([b"a", "bü".encode()]),
                 np.array(["a", "bü"], dtype=object)):  # fmt: skip
        assert _core.constant(made).numpy().tolist() == [b"a", "bü".encode()]


def test_an_array_in_the_other_byte_order_is_turned_around():
    swapped = np.arange(5, dtype=">i4")
    tensor = _core.constant(swapped)
    assert name_of(tensor) == "int32"
    np.testing.assert_array_equal(tensor.numpy(), swapped)


def test_what_numpy_can_make_an_array_of_becomes_one():
    import pandas
    import PIL.Image

    np.testing.assert_array_equal(_core.constant(pandas.Series([1.5, 2.5])).numpy(), [1.5, 2.5])
    image = PIL.Image.new("RGB", (3, 2), (1, 2, 3))
    np.testing.assert_array_equal(_core.constant(image).numpy(), np.asarray(image))

    class Own:
        def __array__(self, dtype=None):
            return np.arange(3)

    np.testing.assert_array_equal(_core.constant(Own()).numpy(), [0, 1, 2])


def test_a_shape_is_given_to_the_elements_if_they_are_as_many():
    assert shape_of(_core.constant([1, 2, 3, 4], shape=[2, 2])) == (2, 2)
    assert shape_of(_core.constant(np.arange(6).reshape(2, 3).T, shape=(6,))) == (6,)
    np.testing.assert_array_equal(
        _core.constant(np.arange(6).reshape(2, 3).T, shape=(6,)).numpy(), [0, 3, 1, 4, 2, 5]
    )
    with pytest.raises(TypeError, match="4 elements"):
        _core.constant([1, 2, 3, 4], shape=[3])
    with pytest.raises(TypeError, match="1 elements"):
        _core.constant(1, shape=[2, None])


def test_one_element_fills_a_shape():
    for value in (7, [7], [[7]], np.int32(7), np.array([7], np.int32)):
        assert _core.constant(value, shape=[2, 3]).numpy().tolist() == [[7] * 3] * 2
    assert _core.constant("a", shape=[2]).numpy().tolist() == [b"a"] * 2
    assert shape_of(_core.constant([7], shape=[])) == ()


def test_tensors_are_copied_and_pickled_as_values():
    import copy
    import pickle

    for value in ([1.5, 2.5], "a", [b"\0", b""], np.zeros((0, 2)), True):
        tensor = _core.constant(value)
        back = pickle.loads(pickle.dumps(tensor))
        assert name_of(back) == name_of(tensor) and shape_of(back) == shape_of(tensor)
        np.testing.assert_array_equal(back.numpy(), tensor.numpy())
        assert copy.copy(tensor) is tensor and copy.deepcopy([tensor])[0] is tensor
    half = pickle.loads(pickle.dumps(_core.constant([1.5], dtype="bfloat16")))
    assert name_of(half) == "bfloat16" and float(half) == 1.5


def test_an_object_can_say_which_tensor_it_stands_for():
    inner = _core.constant(7)

    class Variable:
        def __plimsoll_tensor__(self):
            return inner

    assert _core.convert(Variable()) is inner
    with pytest.raises(ValueError, match="requested dtype float32"):
        _core.convert(Variable(), dtype="float32")


def test_a_number_takes_the_dtype_of_what_stands_beside_it_where_it_can():
    assert name_of(_core.convert(1, like="float64")) == "float64"
    assert name_of(_core.convert([1, 2], like="uint8")) == "uint8"
    assert name_of(_core.convert(1.5, like="int32")) == "float32"
    assert name_of(_core.convert(np.ones(2), like="float32")) == "float32"
    assert name_of(_core.convert(np.ones(2), like="int32")) == "float64"


# To Python


def test_scalars_are_numpys_and_python_numbers():
    tensor = _core.constant(2.5)
    assert isinstance(tensor.numpy(), np.float32)
    assert (float(tensor), int(tensor), bool(tensor)) == (2.5, 2, True)
    assert [10, 20, 30][_core.constant(1)] == 20
    assert float(_core.constant([[4]])) == 4.0
    assert bool(_core.constant(0)) is False and bool(_core.constant(b"")) is False
    assert int(_core.constant(2**64 - 1, dtype="uint64")) == 2**64 - 1


@pytest.mark.parametrize("convert", [float, int, bool, lambda x: [1, 2][x]])
def test_a_tensor_of_several_elements_is_no_scalar(convert):
    with pytest.raises(ValueError if convert is bool else TypeError, match="only"):
        convert(_core.constant([1, 2]))


def test_only_integers_index():
    with pytest.raises(TypeError, match="index"):
        [1, 2][_core.constant(1.0)]


def test_the_length_is_that_of_the_first_axis():
    assert len(_core.constant([[1], [2], [3]])) == 3
    with pytest.raises(TypeError, match="Scalar tensor has no"):
        len(_core.constant(1))
    with pytest.raises(TypeError, match="symbolic"):
        len(_core.placeholder("float32", [None, 2]))


def test_eager_tensors_are_no_keys_and_symbolic_ones_are():
    with pytest.raises(TypeError, match="unhashable.*ref"):
        hash(_core.constant(1))
    one, other = _core.placeholder("int32", []), _core.placeholder("int32", [])
    assert hash(one) == hash(one) and hash(one) != hash(other)


def test_a_small_result_can_be_written_to_and_a_large_one_shares_memory():
    small = _core.constant([1, 2, 3])
    small.numpy()[0] = 9
    assert small.numpy().tolist() == [1, 2, 3]
    large = _core.constant(np.zeros(1 << 20, np.float32))
    view = large.numpy()
    assert not view.flags.writeable and np.shares_memory(view, np.asarray(large))


def test_a_tensor_is_a_read_only_buffer():
    tensor = _core.constant([[1, 2], [3, 4]])
    view = memoryview(tensor)
    assert (view.format, view.shape, view.readonly) == ("i", (2, 2), True)
    assert view.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(BufferError, match="no buffer"):
        memoryview(_core.constant("a"))
    assert np.frombuffer(tensor, np.int32).tolist() == [1, 2, 3, 4]
    with pytest.raises((BufferError, ValueError, TypeError)):
        np.asarray(tensor)[0, 0] = 1


def test_who_wants_elements_in_order_is_refused_those_that_are_not():
    large = np.zeros((1024, 600), np.float32).T
    large.flags.writeable = False  # so that it is shared
    tensor = _core.constant(large)
    assert memoryview(tensor).strides == (4, 2400)
    with pytest.raises((BufferError, ValueError), match="one after the other|contiguous"):
        np.frombuffer(tensor, np.float32)


def test_a_symbolic_tensor_has_no_value():
    from plimsoll import errors

    x = _core.placeholder("float32", [2], name="x")
    for use in (bool, float, int, np.asarray, lambda t: t.numpy()):
        with pytest.raises(errors.OperatorNotAllowedInGraphError, match="'x'"):
            use(x)


# Lifetimes


def claimed():
    gc.collect()
    return _core.budget()["claimed"]


def two_mebibytes():
    """Made by us: not in a slab with others, nor borrowed."""
    return _core.op("fill", [], {"dtype": "float32", "shape": [1 << 19], "value": 7})


def test_a_view_outlives_its_tensor():
    before = claimed()
    tensor = two_mebibytes()
    views = [np.asarray(tensor), memoryview(tensor), tensor.__dlpack__()]
    del tensor
    assert views[0][-1] == views[1][-1] == 7
    assert claimed() > before
    del views
    assert claimed() == before


def test_a_shared_array_lives_as_long_as_the_tensor_and_no_longer():
    source = np.zeros(1 << 20, np.float32)
    source.flags.writeable = False
    gone = weakref.ref(source)
    tensor = _core.constant(source)
    del source
    assert gone() is not None and np.asarray(tensor).sum() == 0
    del tensor
    assert gone() is None


def test_an_array_that_a_thread_of_the_library_lets_go_of_is_given_back():
    source = np.zeros((1 << 10, 1 << 10), np.float32)
    source.flags.writeable = False
    gone = weakref.ref(source)
    rows = _core.ds_slices([_core.constant(source)])
    del source
    ahead = _core.ds_prefetch(rows, 4)
    passing = _core.Iterator(ahead)
    assert next(passing) is not None
    del rows, ahead, passing
    end = time.monotonic() + 60
    while gone() is not None and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    assert gone() is None


def test_tensors_can_be_referred_to_weakly_and_have_attributes():
    tensor = _core.constant(1)
    gone = weakref.ref(tensor)
    tensor.note = "mine"
    assert gone() is tensor and tensor.note == "mine"
    del tensor
    assert gone() is None


# DLPack


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "float16",
                                   "float32", "float64"])  # fmt: skip
def test_torch_shares_memory_with_tensors_both_ways(dtype):
    import torch

    tensor = _core.constant(np.arange(12).reshape(3, 4).astype(dtype))
    theirs = torch.from_dlpack(tensor)
    assert theirs.data_ptr() == np.asarray(tensor).__array_interface__["data"][0]
    np.testing.assert_array_equal(theirs.numpy(), np.asarray(tensor))

    source = torch.arange(12).reshape(3, 4).to(getattr(torch, dtype)).T
    ours = _core.from_dlpack(source)
    assert np.asarray(ours).__array_interface__["data"][0] == source.data_ptr()
    np.testing.assert_array_equal(ours.numpy(), source.numpy())


def test_torch_tensors_are_values_as_others_are():
    import torch

    assert name_of(_core.constant(torch.ones(3, dtype=torch.bfloat16))) == "bfloat16"
    for source in (torch.zeros(4), torch.zeros(1 << 20), torch.zeros(1000, 1000).t()[::2]):
        tensor, pending = _core.constant(source), _core.constant(source) + 1
        source[0] = 1
        assert tensor.numpy().max() == 0 and pending.numpy().max() == 1


def test_memory_is_shared_by_tensorflows_dlpack():
    import torch

    import plimsoll.tf as tf

    share = tf.experimental.dlpack
    source = torch.arange(1 << 20)
    for given in (source, torch.utils.dlpack.to_dlpack(source)):
        tensor = share.from_dlpack(given)
        assert np.asarray(tensor).__array_interface__["data"][0] == source.data_ptr()
    back = torch.from_dlpack(share.to_dlpack(tensor))
    assert back.data_ptr() == source.data_ptr()
    with pytest.raises(NotImplementedError, match="tf.experimental.numpy"):
        tf.experimental.numpy


def test_numpy_takes_a_capsule_and_gives_one():
    tensor = _core.constant([1.0, 2.0])
    assert np.from_dlpack(tensor).tolist() == [1.0, 2.0]
    assert tensor.__dlpack_device__() == (1, 0)
    source = np.arange(3.0)
    assert np.shares_memory(np.asarray(_core.from_dlpack(source)), source)


def test_a_capsule_is_taken_once():
    capsule = _core.constant([1, 2]).__dlpack__()
    assert _core.from_dlpack(capsule).numpy().tolist() == [1, 2]
    assert "used_dltensor" in repr(capsule)
    with pytest.raises(ValueError):
        _core.from_dlpack(capsule)


def test_a_capsule_that_nobody_takes_gives_back_its_memory():
    before = claimed()
    capsule = two_mebibytes().__dlpack__()
    assert claimed() > before
    del capsule
    assert claimed() == before


def test_strings_have_no_capsule():
    with pytest.raises(BufferError, match="string has no DLPack"):
        _core.constant("a").__dlpack__()


# ---- lists that are no tensors ----


def test_lists_that_hold_themselves_are_refused():
    numbers = [1]
    numbers.append(numbers)
    with pytest.raises(ValueError, match="non-rectangular"):
        _core.constant(numbers)
    tensors = [_core.constant(1)]
    tensors.append(tensors)
    with pytest.raises(RecursionError):
        _core.constant(tensors)
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="more than 8 deep"):
        _core.constant(1) + deep


@pytest.mark.parametrize("method", ["__index__", "__plimsoll_tensor__"])
def test_a_list_that_is_emptied_while_it_is_converted(method):
    items = []

    def convert(self):
        items.clear()
        return 1 if method == "__index__" else _core.constant(1)

    items += [type("Item", (), {method: convert})() for _ in range(1000)]
    with pytest.raises(RuntimeError, match="changed its size"):
        _core.constant(items, "int32")


def test_what_dlpack_refuses_is_asked_for_an_array():
    class Bools:
        """As a PyTorch that has no bool there."""

        def __dlpack__(self, stream=None):
            raise RuntimeError("Bool type is not supported by dlpack")

        def __array__(self, dtype=None):
            return np.array([True, False])

    assert _core.convert(Bools()).numpy().tolist() == [True, False]

    class Nothing:
        def __dlpack__(self, stream=None):
            raise RuntimeError("nor is this")

    with pytest.raises(RuntimeError, match="nor is this"):
        _core.convert(Nothing())


def test_arrays_of_records_are_refused():
    with pytest.raises(ValueError, match="have fields: make a tensor of each"):
        _core.constant(np.zeros(3, [("a", "i4"), ("b", "f4")]))
