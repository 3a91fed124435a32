# SPDX-License-Identifier: Apache-2.0
"""What users get wrong, and what they are told, word for word. Each is refused when the node is
made or before the run allocates anything; and the graph and session go on."""

import resource

import numpy as np
import pytest
import runtime

MIB = 1 << 20


class Desk:
    """A graph with some nodes to make mistakes with, and a session."""

    def __init__(self, graph, own, session):
        self.graph, self.own, self.session, self.tensors = graph, own, session, []
        self.a = graph.placeholder("float32", (10, 20), "a")
        self.b = graph.placeholder("float32", (20, 20), "b")
        self.free = graph.placeholder("float32", (None, 20), "free")
        self.whole = graph.placeholder("int32", (10,), "whole")
        self.unsigned = graph.placeholder("uint64", (10,), "unsigned")
        self.flag = graph.placeholder("bool", (10, 20), "flag")
        self.v = graph.source("variable", "float32", (10, 20), "v")
        self.c = graph.source("constant", "float32", (3,), "c")

    def add(self, op, *inputs, **attrs):
        return self.graph.add(op, *inputs, name="y", **attrs)

    def tensor(self, shape, dtype="float32", value=0):
        self.tensors.append(self.own.tensor(np.full(shape, value, dtype)))
        return self.tensors[-1]

    def run(self, node, **feeds):
        given = {getattr(self, name): tensor for name, tensor in feeds.items()}
        return self.session.run([node], given)


@pytest.fixture
def desk(tmp_path):
    with runtime.Runtime(64 * MIB, spill=tmp_path) as own, runtime.Graph() as graph:
        with runtime.Session(graph, own) as session:
            made = Desk(graph, own, session)
            yield made
            for tensor in made.tensors:
                tensor.close()
            assert own.claimed_bytes == 0


# name: what is done, and the message
MADE = {
    "shapes that do not broadcast": (
        lambda d: d.add("add", d.a, d.b),
        "add 'y': shapes [10,20] and [20,20] do not broadcast: axis 0 is 10 and 20 "
        "('a' and 'b')"),
    "shapes of another length": (
        lambda d: d.add("mul", d.a, d.whole),
        "mul 'y': float32 and int32: cast one of them ('a' and 'whole')"),
    "other dtypes": (
        lambda d: d.add("add", d.a, d.graph.placeholder("float64", (10, 20), "wide")),
        "add 'y': float32 and float64: cast one of them ('a' and 'wide')"),
    "an integer to divide": (
        lambda d: d.add("div", d.whole, d.whole),
        "div 'y': int32: it takes floating-point numbers: cast it ('whole' and "
        "'whole')"),
    "a sine of integers": (
        lambda d: d.add("sin", d.whole),
        "sin 'y': int32: it takes floating-point numbers: cast it ('whole')"),
    "bits of floats": (
        lambda d: d.add("bitwise_and", d.a, d.a),
        "bitwise_and 'y': float32: it takes integers or bool: cast it ('a' and 'a')"),
    "a sum of flags": (
        lambda d: d.add("add", d.flag, d.flag),
        "add 'y': bool: it takes numbers: cast it ('flag' and 'flag')"),
    "one input too few": (
        lambda d: d.add("add", d.a),
        "add 'y': inputs: 1 given, it takes 2"),
    "one input too many": (
        lambda d: d.add("sin", d.a, d.a),
        "sin 'y': inputs: 2 given, it takes 1"),
    "an op that there is not": (
        lambda d: d.add("convolve", d.a),
        "'convolve': there is no such op"),
    "an attribute that there is not": (
        lambda d: d.add("sum", d.a, axis=0),
        "sum 'y': there is no attribute 'axis': it takes axes, keepdims"),
    "an attribute of another type": (
        lambda d: d.add("sum", d.a, axes=1),
        "sum 'y': attribute 'axes' is an integer: it takes a list of integers"),
    "an attribute that is missing": (
        lambda d: d.add("cast", d.a),
        "cast 'y': attribute 'dtype' is missing: a dtype, to this one"),
    "an inner dimension of a product": (
        lambda d: d.add("matmul", d.a, d.a),
        "matmul 'y': inner dimensions differ: [10,20] x [10,20]: 20 and 10 ('a' and "
        "'a')"),
    "a product with a vector": (
        lambda d: d.add("matmul", d.a, d.c),
        "matmul 'y': [10,20] x [3]: both have at least two axes; add one of 1 ('a' "
        "and 'c')"),
    "batches of a product": (
        lambda d: d.add("matmul", d.graph.placeholder("float32", (2, 3, 4), "p"),
                        d.graph.placeholder("float32", (5, 4, 3), "q")),
        "matmul 'y': [2,3,4] x [5,4,3]: the batches' shapes [2] and [5] do not "
        "broadcast: axis 0 is 2 and 5 ('p' and 'q')"),
    "a transposed product": (
        lambda d: d.add("matmul", d.a, d.b, transpose_a=True),
        "matmul 'y': inner dimensions differ: [10,20] transposed x [20,20]: 10 and "
        "20 ('a' and 'b')"),
    "an axis that is not there": (
        lambda d: d.add("sum", d.a, axes=[2]),
        "sum 'y': axis 2 of shape [10,20]: its axes are -2 to 1 ('a')"),
    "an axis that is not there, from the end": (
        lambda d: d.add("argmax", d.a, axis=-3),
        "argmax 'y': axis -3 of shape [10,20]: its axes are -2 to 1 ('a')"),
    "an axis twice": (
        lambda d: d.add("max", d.a, axes=[0, -2]),
        "max 'y': axis 0 is named twice ('a')"),
    "where the largest of none is": (
        lambda d: d.add("argmax", d.graph.placeholder("float32", (0, 3), "none"), axis=0),
        "argmax 'y': shape [0,3]: axis 0 has no elements, so there is no argmax ('none')"),
    "a reshape to another number": (
        lambda d: d.add("reshape", d.a, shape=(7, 30)),
        "reshape 'y': [10,20] does not become [7,30]: the numbers of elements do not "
        "fit ('a')"),
    "a reshape that leaves a rest": (
        lambda d: d.add("reshape", d.a, shape=(None, 30)),
        "reshape 'y': [10,20] does not become [?,30]: the numbers of elements do not "
        "fit ('a')"),
    "a reshape with two unknown": (
        lambda d: d.add("reshape", d.a, shape=(None, None)),
        "reshape 'y': shape [?,?]: at most one dimension is -1 ('a')"),
    "a transpose with an axis twice": (
        lambda d: d.add("transpose", d.a, axes=[0, 0]),
        "transpose 'y': axis 0 is named twice ('a')"),
    "a transpose of too few axes": (
        lambda d: d.add("transpose", d.a, axes=[0]),
        "transpose 'y': 'axes' has 1 numbers for shape [10,20]: one for each axis "
        "('a')"),
    "a broadcast to another shape": (
        lambda d: d.add("broadcast_to", d.a, shape=(10, 30)),
        "broadcast_to 'y': shape [10,20] does not become [10,30]: axis 1 is 20 and "
        "30 ('a')"),
    "a shape that is not the one said": (
        lambda d: d.add("ensure_shape", d.a, shape=(11, None)),
        "ensure_shape 'y': shapes [10,20] and [11,?] differ: axis 0 is 10 and 11 "
        "('a')"),
    "a step of 0": (
        lambda d: d.add("slice", d.a, start=[0], stop=[5], step=[0]),
        "slice 'y': the step along axis 0 is 0 ('a')"),
    "a crop that is not inside": (
        lambda d: d.add("crop", d.a, start=[5, 0], size=[6, 20]),
        "crop 'y': shape [10,20]: axis 0 has no 6 elements from 5 on ('a')"),
    "parts to concatenate of other shapes": (
        lambda d: d.add("concat", d.a, d.b, axis=1),
        "concat 'y': input 1 is [20,20]: axis 0 is 20, and 10 before: all are the "
        "same but along axis 1 ('a' and 'b')"),
    "parts to concatenate of other ranks": (
        lambda d: d.add("concat", d.a, d.c, axis=0),
        "concat 'y': input 1 is [3], where those before are [10,20]: rank 1 and 2 "
        "('a' and 'c')"),
    "a padding that is negative": (
        lambda d: d.add("pad", d.a, before=[0, -1], after=[0, 0]),
        "pad 'y': axis 1 by -1 and 0: neither is negative; use slice to cut ('a')"),
    "a tile for too few axes": (
        lambda d: d.add("tile", d.a, multiples=[2]),
        "tile 'y': 'multiples' has 1 numbers for shape [10,20]: one for each axis "
        "('a')"),
    "indices that are no integers": (
        lambda d: d.add("gather", d.a, d.c),
        "gather 'y': the indices are float32: they are integers ('a' and 'c')"),
    "more than there are": (
        lambda d: d.add("top_k_values", d.a, k=21),
        "top_k_values 'y': shape [10,20]: the last axis has no 21 elements ('a')"),
    "a range without end": (
        lambda d: d.add("range", dtype="d:int32", stop=5, step=0),
        "range 'y': 'step' is 0"),
    "a random range with nothing in it": (
        lambda d: d.add("random_uniform", shape=(3,), low=2, high=2),
        "random_uniform 'y': 'low' is 2 and 'high' 2: nothing is between"),
    "a constant of unknown shape": (
        lambda d: d.graph.source("constant", "float32", (None, 3), "y"),
        "constant 'y': shape [?,3]: every dimension of a constant is known"),
    "a name that cannot be one": (
        lambda d: d.graph.add("neg", d.a, name="so nicht"),
        "neg 'so nicht': a name has letters (of ASCII), digits and '_', '.', '-' or '/'"),
    "an assignment to what is no variable": (
        lambda d: d.add("assign", d.a, d.a),
        "assign 'y': 'a' is made by placeholder: only a variable is assigned to ('a' "
        "and 'a')"),
    "an assignment of another shape": (
        lambda d: d.add("assign", d.v, d.b),
        "assign 'y': shapes [10,20] and [20,20] differ: axis 0 is 10 and 20 ('v' and "
        "'b')"),
    "more axes than there can be": (
        lambda d: d.add("reshape", d.a, shape=(1,) * 8 + (200,)),
        "reshape 'y': attribute 'shape': a shape has at most 8 dimensions"),
}  # fmt: skip

RUN = {
    "a placeholder that is not fed": (
        lambda d: d.run(d.add("neg", d.a)),
        "placeholder 'a' has no value: feed it"),
    "a feed of another dtype": (
        lambda d: d.run(d.add("neg", d.a), a=d.tensor((10, 20), "float64")),
        "placeholder 'a' is float32 [10,20], and cannot be float64 [10,20]"),
    "a feed of another shape": (
        lambda d: d.run(d.add("neg", d.a), a=d.tensor((20, 10))),
        "placeholder 'a' is float32 [10,20], and cannot be float32 [20,10]"),
    "a feed whose rest does not fit": (
        lambda d: d.run(d.add("neg", d.free), free=d.tensor((7, 21))),
        "placeholder 'free' is float32 [?,20], and cannot be float32 [7,21]"),
    "shapes that only the feed tells": (
        lambda d: d.run(d.add("add", d.free, d.a), free=d.tensor((7, 20)),
                        a=d.tensor((10, 20))),
        "add 'y': shapes [7,20] and [10,20] do not broadcast: axis 0 is 7 and 10 "
        "('free' and 'a')"),
    "a feed for a node that is not a placeholder": (
        lambda d: d.run(d.add("neg", d.v), v=d.tensor((10, 20))),
        "variable 'v' is not a placeholder of this graph"),
    "a variable without a value": (
        lambda d: d.run(d.add("neg", d.v)),
        "variable 'v' has no value: give it one first"),
    "a constant without a value": (
        lambda d: d.run(d.add("neg", d.c)),
        "constant 'c' has no value: give it one first"),
    "an index out of range": (
        lambda d: d.run(d.add("gather", d.a, d.whole), a=d.tensor((10, 20)),
                        whole=d.tensor((10,), "int32", 10)),
        "gather 'y': index 10 is not in axis 0, which has 10 elements"),
    "an index that no number with a sign can be": (
        lambda d: d.run(d.add("gather", d.a, d.unsigned), a=d.tensor((10, 20)),
                        unsigned=d.tensor((10,), "uint64", 2**64 - 1)),
        "gather 'y': index 18446744073709551615 is not in axis 0, which has 10 elements"),
    "a variable of another shape": (
        lambda d: d.session.set(d.v, d.tensor((10, 21))),
        "variable 'v' is float32 [10,20], and cannot be float32 [10,21]"),
    "a constant of another dtype": (
        lambda d: runtime.call("pl_constant_set", d.c, d.tensor((3,), "int8")),
        "constant 'c' is float32 [3], and cannot be int8 [3]"),
    "a value for a node that is not a variable": (
        lambda d: d.session.set(d.a, d.tensor((10, 20))),
        "placeholder 'a' is not a variable of this session's graph"),
    "a value for a node that is not a constant": (
        lambda d: runtime.call("pl_constant_set", d.a, d.tensor((10, 20))),
        "placeholder 'a' is not a constant"),
}  # fmt: skip


def refused(do, desk):
    with pytest.raises(runtime.Refused) as refusal:
        do(desk)
    return refusal.value


@pytest.mark.parametrize("what", MADE)
def test_a_node_that_does_not_fit_is_refused_when_it_is_made(desk, what):
    do, message = MADE[what]
    refusal = refused(do, desk)
    assert (refusal.code, refusal.message) == ("EINVAL", message)
    assert desk.add("neg", desk.a).name == "y"  # the name is still free, and the graph goes on


@pytest.mark.parametrize("what", RUN)
def test_a_run_that_does_not_fit_is_refused_and_the_session_goes_on(desk, what):
    do, message = RUN[what]
    refusal = refused(do, desk)
    assert (refusal.code, refusal.message) == ("EINVAL", message)
    (array,) = desk.run(desk.graph.add("neg", desk.a), a=desk.tensor((10, 20)))
    assert array.shape == (10, 20)


def test_a_node_of_another_graph_is_refused(desk):
    with runtime.Graph() as other:
        stranger = other.placeholder("float32", (10, 20), "stranger")
        with pytest.raises(runtime.Refused) as refusal:
            desk.add("add", desk.a, stranger)
        assert refusal.value.message == "add 'y': input 1, 'stranger', belongs to another graph"
        with pytest.raises(runtime.Refused) as refusal:
            desk.run(stranger)
        assert refusal.value.message == "placeholder 'stranger' is of another graph"


TERA = 1 << 20  # squared, and 4 bytes each: 4 TiB
HUGE = {
    "as it is": lambda d, x: x,
    "computed": lambda d, x: d.add("sin", x),
    "transposed": lambda d, x: d.add("transpose", x),
    "sorted": lambda d, x: d.add("sort", x),
    "sorted across": lambda d, x: d.add("sort", x, axis=0),
    "added up so far": lambda d, x: d.add("cumsum", x),
    "repeated": lambda d, x: d.add("tile", x, multiples=[3, 3]),
    "behind itself": lambda d, x: d.add("concat", x, x, axis=0),
    "multiplied": lambda d, x: d.add(
        "matmul", x, d.graph.add("fill", dtype="d:float32", shape=(TERA, 1 << 10), value=1)),
    "reshaped to one row, and sorted": lambda d, x: d.add(
        "sort", d.graph.add("reshape", x, shape=(TERA * TERA,))),
}


@pytest.mark.parametrize("what", HUGE)
def test_terabytes_are_refused_without_touching_memory(desk, what):
    x = desk.graph.add("fill", dtype="d:float32", shape=(TERA, TERA), value=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refusal = refused(lambda d: d.run(HUGE[what](d, x)), desk)
    assert refusal.code in ("PL_EBUDGET", "ENOSPC"), refusal
    assert "TiB" in refusal.message and "'" in refusal.message, refusal
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB
    assert desk.own.peak_bytes == 0


def test_a_product_that_nobody_could_finish_is_not_a_matter_of_the_budget(desk):
    x = desk.graph.add("fill", dtype="d:float32", shape=(TERA, TERA), value=1)
    refusal = refused(lambda d: d.run(d.add("matmul", x, x)), desk)
    assert refusal.code == "EOVERFLOW", refusal
    assert "matmul 'y': 1.15e+18 products are too many" in refusal.message, refusal


def test_a_tensor_of_terabytes_is_refused_before_its_elements_are_read(desk):
    shape, pointer = runtime.Shape.of((TERA, TERA)), runtime.ctypes.c_void_p()
    with pytest.raises(runtime.Refused) as refusal:
        runtime.call("pl_tensor_new", desk.own, runtime.NUMBER_OF["float32"],
                     runtime.ctypes.byref(shape), runtime.ctypes.c_void_p(8), b"all",
                     runtime.ctypes.byref(pointer))  # at 8 is nothing that could be read
    assert refusal.value.code == "PL_EBUDGET"
    assert refusal.value.message == ("no room for 4.0 TiB for 'all': tensors already use 0 B of "
                                     "their 64.0 MiB limit")


@pytest.mark.parametrize("shape", [(2**62, 2), (2**40, 2**40), (2**31, 2**31, 2**31)])
def test_what_cannot_be_counted_is_refused(desk, shape):
    def run(d):
        return d.run(d.graph.add("fill", dtype="d:float32", shape=shape, value=1))
    refusal = refused(run, desk)
    assert refusal.code in ("EINVAL", "PL_EBUDGET", "EOVERFLOW"), refusal
    assert desk.own.peak_bytes == 0
