# SPDX-License-Identifier: Apache-2.0
"""NumPy is the oracle for inference: shapes, dtypes, what is refused; and for regions, by spoiling
all that an op says it does not need."""

import numpy as np
import pytest

import graph_tool
import op_cases

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of divisions by zero

N_CASES = 1500
CHUNK = 100  # cases in one graph


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return graph_tool.build(tmp_path_factory.mktemp("graph"), *graph_tool.SANITIZED)


def oracle(case):
    """NumPy's result, or None where it refuses."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(case.oracle(*case.inputs))
    except (ValueError, IndexError):  # AxisError is both
        return None


def placeholders(number, case, unknown=()):
    """The commands that make the inputs, and their names. `unknown`: (input, axis) not told."""
    names, commands = [], []
    for i, array in enumerate(case.inputs):
        dims = [None if (i, axis) in unknown else dim for axis, dim in enumerate(array.shape)]
        names.append(f"c{number}/in{i}")
        commands.append(f"add placeholder {names[-1]} - dtype=d:{array.dtype} "
                        f"shape=s:{graph_tool.shape_text(dims)}")
    return commands, names


def commands_of(number, case, unknown=()):
    commands, names = placeholders(number, case, unknown)
    attrs = graph_tool.attr_text(case.attrs)
    return [*commands, f"add {case.op} c{number} {','.join(names)} {attrs}"]


def last_answers(program, cases, unknowns=None):
    """The answer on each case's op."""
    answers = []
    for first in range(0, len(cases), CHUNK):
        commands, at = [], []
        for number in range(first, min(first + CHUNK, len(cases))):
            commands += commands_of(number, cases[number], unknowns[number] if unknowns else ())
            at.append(len(commands) - 1)
        told = graph_tool.ask(program, commands)
        answers += [told[i] for i in at]
    return answers


def test_shapes_dtypes_and_refusals_are_numpys(program):
    cases = op_cases.make(1, N_CASES)
    seen, n_refused = set(), 0
    for number, (case, ours) in enumerate(zip(cases, last_answers(program, cases))):
        theirs = oracle(case)
        about = (case.op, [(x.shape, x.dtype) for x in case.inputs], case.attrs, ours)
        if theirs is None:
            assert ours.startswith(f"refused EINVAL {case.op} 'c{number}': "), about
            n_refused += 1
        else:
            wanted = f"c{number} {theirs.dtype} {graph_tool.shape_text(theirs.shape)}"
            assert ours == wanted, about
            seen.add(case.op)
    assert n_refused > 50 and len(seen) > 80, (n_refused, sorted(seen))


def compatible(text, shape):
    """Is "[?,3]" what may become (2, 3)?"""
    dims = text.strip("[]").split(",") if text != "[]" else []
    return len(dims) == len(shape) and all(d in ("?", str(own)) for d, own in zip(dims, shape))


def test_what_is_unknown_fits_whatever_it_becomes(program):
    """Placeholders with some dimensions not told: the op is made, its shape is one that the true
    one fits, and is the true one once the placeholders are fed."""
    cases = [case for case in op_cases.make(2, N_CASES) if oracle(case) is not None]
    chance = op_cases.random.Random(3)
    unknowns = [{(i, axis) for i, array in enumerate(case.inputs) for axis in range(array.ndim)
                 if chance.random() < 0.4} for case in cases]  # fmt: skip
    n_unknown = 0
    for number, (case, ours) in enumerate(zip(cases, last_answers(program, cases, unknowns))):
        about = (case.op, [x.shape for x in case.inputs], unknowns[number], case.attrs, ours)
        name, _, shape = ours.split(" ")
        assert name == f"c{number}" and compatible(shape, oracle(case).shape), about
        n_unknown += "?" in shape
    assert n_unknown > 200
    for first in range(0, len(cases), 20):
        part = range(first, min(first + 20, len(cases)))
        commands = [line for number in part
                    for line in commands_of(number, cases[number], unknowns[number])]  # fmt: skip
        feeds = [f"c{number}/in{i}={graph_tool.shape_text(array.shape)}"
                 for number in part for i, array in enumerate(cases[number].inputs)]  # fmt: skip
        told = graph_tool.ask(program, [*commands, "infer " + " ".join(feeds)])[-1]
        shapes = dict(pair.split("=") for pair in told.split(" "))
        for number in part:
            wanted = graph_tool.shape_text(oracle(cases[number]).shape)
            assert shapes[f"c{number}"] == wanted, cases[number]


def test_a_feed_that_does_not_fit_is_refused_by_the_op_it_breaks(program):
    told = graph_tool.ask(program, [
        "add placeholder x - dtype=d:float32 shape=s:[?,3]",
        "add placeholder y - dtype=d:float32 shape=s:[?,3]",
        "add add sum x,y",
        "infer x=[2,3] y=[4,3]",
        "infer x=[2,4]",
        "infer sum=[2,3]",
        "infer x=[2,3] y=[1,3]",
    ])  # fmt: skip
    assert told[3] == "refused EINVAL add 'sum': shapes [2,3] and [4,3] do not broadcast: " \
        "axis 0 is 2 and 4 ('x' and 'y')"
    assert told[4].startswith("refused EINVAL feed of 'x': it takes [?,3]: ")
    assert told[5].startswith("refused EINVAL feed of 'sum': its op is add, not placeholder")
    assert told[6] == "x=[2,3] y=[1,3] sum=[2,3]"


# ---- regions ----


def random_box(chance, shape):
    """A part of it that is not empty."""
    box = []
    for dim in shape:
        begin = chance.randrange(dim)
        box.append((begin, chance.randint(1, dim - begin)))
    return box


def slices(box):
    return tuple(slice(begin, begin + extent) for begin, extent in box)


def box_text(box):
    return ",".join(f"{begin}:{extent}" for begin, extent in box) or "-"


def read_box(text):
    """None: nothing is needed."""
    if text == "-":
        return None
    return [tuple(map(int, pair.split(":"))) for pair in text.strip("[]").split(",") if pair]


def spoil(chance, case, i, box):
    """Other values wherever the op said it does not look."""
    array = case.inputs[i]
    bad = np.array(array)
    if case.op == "gather" and i == 1:
        dim = case.inputs[0].shape[case.attrs["axis"]]
        other = np.asarray(chance.integers(0, dim, array.shape)).astype(array.dtype)
    elif array.dtype == bool:
        other = ~array
    else:
        other = np.asarray(chance.integers(7, 99, array.shape)).astype(array.dtype)
    kept = np.zeros(array.shape, bool)
    if box is not None:
        kept[slices(box)] = True
    return np.where(kept, bad, other).astype(array.dtype)


def same(a, b):
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def test_no_op_looks_outside_of_the_regions_it_names(program):
    chance, numbers = op_cases.random.Random(5), np.random.default_rng(5)
    made = [(case, oracle(case)) for case in op_cases.make(4, N_CASES)]
    cases = [case for case, theirs in made if theirs is not None and theirs.size > 0]
    n_partial, seen = 0, set()
    for first in range(0, len(cases), CHUNK):
        part = cases[first : first + CHUNK]
        commands = [line for number, case in enumerate(part) for line in commands_of(number, case)]
        boxes = [random_box(chance, oracle(case).shape) for case in part]
        commands.append("infer")
        commands += [f"region c{number} {box_text(box)}" for number, box in enumerate(boxes)]
        told = graph_tool.ask(program, commands)[-len(part):]
        for case, box, text in zip(part, boxes, told):
            needed = [read_box(one) for one in text.split(" ")]
            spoilt = [spoil(numbers, case, i, one) for i, one in enumerate(needed)]
            with np.errstate(all="ignore"):
                got = np.asarray(case.oracle(*spoilt))
            assert same(got[slices(box)], oracle(case)[slices(box)]), (case, box, needed)
            partial = any(one is None or [extent for _, extent in one] != list(array.shape)
                          for one, array in zip(needed, case.inputs))  # fmt: skip
            n_partial += partial
            if partial:
                seen.add(case.op)
    # Whoever always asked for everything would pass, too.
    assert n_partial > len(cases) // 3 and len(seen) > 60, (n_partial, len(cases), sorted(seen))


# ---- composites ----


def labelled(shapes, dtype="float32"):
    """The commands that make placeholders x0, x1 ..., and their names."""
    commands = [f"add placeholder x{i} - dtype=d:{dtype} shape=s:{shape}"
                for i, shape in enumerate(shapes)]  # fmt: skip
    return commands, ",".join(f"x{i}" for i in range(len(shapes)))


@pytest.mark.parametrize("equation, shapes", [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("ij,kj->ik", [(2, 3), (4, 3)]),
    ("ji,jk->ki", [(3, 2), (3, 4)]), ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
    ("bijc,bkjc->bki", [(2, 3, 4, 5), (2, 6, 4, 5)]), ("i,i->", [(7,), (7,)]),
    ("i,j->ij", [(2,), (3,)]), ("i,j->ji", [(2,), (3,)]), ("abc,cd->abd", [(2, 3, 4), (4, 5)]),
    ("abc,dbe->aedc", [(2, 3, 4), (5, 3, 6)]), ("ijx,jk->ik", [(2, 3, 4), (3, 5)]),
    ("ij->ji", [(2, 3)]), ("ij->j", [(2, 3)]), ("ij->", [(2, 3)]), ("ij", [(2, 3)]),
    ("ba", [(2, 3)]), ("ij,ij->ij", [(2, 3), (2, 3)]), ("ij,ij->", [(2, 3), (2, 3)]),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_einsum_is_numpys(program, equation, shapes, dtype):
    """Run node by node, in NumPy, with what the graph is made of."""
    numbers = np.random.default_rng(6)
    arrays = [numbers.integers(0, 5, shape).astype(dtype) for shape in shapes]
    commands, names = labelled([graph_tool.shape_text(array.shape) for array in arrays], dtype)
    told = graph_tool.ask(program, [*commands, f"einsum result {names} {equation}", "attrs"])
    wanted = np.einsum(equation, *arrays)
    assert told[len(arrays)] == f"result {dtype} {graph_tool.shape_text(wanted.shape)}"
    values = {f"x{i}": array for i, array in enumerate(arrays)}
    for line in told[len(arrays) + 1 : -1]:
        run_node(line, values)
    assert values["result"].dtype == wanted.dtype and np.array_equal(values["result"], wanted)


def run_node(line, values):
    """Computes one node of those that einsum makes; `line` is of the tool's `attrs`."""
    op, name, dtype, shape, inputs, *attrs = line.split(" ")
    given = dict(pair.split("=") for pair in attrs)
    ints = lambda text: [int(number) for number in text.split(",") if number]
    if op == "placeholder":
        return
    x = [values[one] for one in inputs.split(",")]
    if op == "matmul":
        a = np.swapaxes(x[0], -1, -2) if given["transpose_a"] == "1" else x[0]
        b = np.swapaxes(x[1], -1, -2) if given["transpose_b"] == "1" else x[1]
        values[name] = a @ b
    elif op == "transpose":
        values[name] = np.transpose(x[0], ints(given["axes"]))
    elif op == "reshape":
        values[name] = np.reshape(x[0], ints(shape.strip("[]")))
    elif op == "sum":
        values[name] = np.sum(x[0], axis=tuple(ints(given["axes"])))
    elif op == "cast":
        values[name] = x[0].astype(dtype)
    else:
        assert op == "identity", line
        values[name] = x[0]


@pytest.mark.parametrize("equation, shapes, why", [
    ("ii->i", ["[2,2]"], "label 'i' is there twice in one place"),
    ("ij,jk->il", ["[2,3]", "[3,4]"], "label 'l' of the result is in no input"),
    ("ij,jk->ik", ["[2,3]", "[4,5]"], "label 'j' is 3 and 4 ('x0' and 'x1')"),
    ("ij->ik", ["[2,3]", "[4,5]"], "it does not have 2 inputs"),
    ("i,j,k", ["[2]", "[3]"], "it does not have 2 inputs"),
    ("i1->i", ["[2,2]"], "'1' is not a label"),
    ("ij-ji", ["[2,2]"], "before the result there is '->'"),
    ("ijk->i", ["[2,2]"], "3 labels for [2,2] ('x0')"),
    ("ab,cd->abcd", ["[?,2]", "[?,3]"], "more than one dimension of those that are merged is not"),
])  # fmt: skip
def test_an_einsum_that_is_no_matmul_is_refused_and_leaves_nothing(program, equation, shapes, why):
    commands, names = labelled(shapes)
    told = graph_tool.ask(program, [*commands, f"einsum e {names} {equation}", "dump"])
    answer, dump = told[len(shapes)], told[len(shapes) + 1 :]
    assert answer.startswith(f"refused EINVAL einsum 'e': '{equation}': ") and why in answer
    assert len(dump) == len(shapes) + 1


def test_einsum_goes_on_with_what_is_unknown(program):
    told = graph_tool.ask(program, [
        "add placeholder a - dtype=d:float32 shape=s:[?,?,4]",
        "add placeholder b - dtype=d:float32 shape=s:[?,4,5,6]",
        "einsum c a,b bij,bjkl->blki",
        "infer a=[2,3,4] b=[2,4,5,6]",
    ])  # fmt: skip
    assert told[2] == "c float32 [?,6,5,?]"
    assert "c=[2,6,5,3]" in told[3].split(" ")


def test_stack_split_squeeze_and_expand_dims_are_numpys(program):
    x = np.zeros((2, 1, 6, 1))
    start = ["add placeholder x - dtype=d:float64 shape=s:[2,1,6,1]"]
    for axis in range(-5, 5):
        commands = [f"stack s x,x,x {axis}", f"expand_dims e x {axis}"]
        told = graph_tool.ask(program, start + commands)
        assert told[1] == f"s float64 {graph_tool.shape_text(np.stack([x] * 3, axis).shape)}"
        assert told[2] == f"e float64 {graph_tool.shape_text(np.expand_dims(x, axis).shape)}"
    told = graph_tool.ask(program, start + [
        "squeeze q x -", "squeeze q x 1,-1", "squeeze q x 0", "split p x 2 3", "split p x 2 4",
        "stack s x,x 5", "squeeze q x 7", "expand_dims e x 0,1,2,3,4"])  # fmt: skip
    assert told[1:3] == ["q float64 [2,6]", "q_1 float64 [2,6]"]
    assert "axis 0 is 2, not 1" in told[3]
    assert told[4] == "p float64 [2,1,2,1] p_1 float64 [2,1,2,1] p_2 float64 [2,1,2,1]"
    assert "axis 2 is 6, which is not a multiple of 4" in told[5]
    assert all("refused EINVAL" in line for line in told[6:])
