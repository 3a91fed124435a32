# SPDX-License-Identifier: Apache-2.0
"""Devices: what is placed on /GPU:0 gives what NumPy gives, within the device's budget, and what
cannot be there is computed on the CPU or refused. The device is PoCL, a CPU that counts as a GPU by
a setting."""

import itertools
import json
import math
import os
import subprocess

import numpy as np
import op_cases
import pytest
import unary_ops

from graph_tool import attr_text, shape_text

AMPLE = 1 << 30


@pytest.fixture(scope="session")
def tool(compile_tool, tmp_path_factory):
    """The program, and the environment that it runs in: one cache of compiled kernels for all."""
    program = compile_tool("device_tool")
    is_worker = "PYTEST_XDIST_WORKER" in os.environ  # all of them share what is compiled
    cache = tmp_path_factory.getbasetemp()
    cache = (cache.parent if is_worker else cache) / "pocl"
    cache.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PLIMSOLL_")}
    return program, kept | {"POCL_CACHE_DIR": str(cache), "POCL_DEVICES": "pthread"}


class Tool:
    """Lines for the program, and arrays in files."""

    def __init__(self, tool, folder):
        self.program, self.environment = tool
        self.folder, self.lines = folder, []
        self.names = itertools.count()
        self.environment = dict(self.environment)

    def say(self, *words):
        self.lines.append(" ".join(str(word) for word in words))

    def ask(self, *words):
        """The answer to one more line, after all that were said."""
        self.say(*words)
        return self.answers()[-1]

    def answers(self):
        done = subprocess.run([self.program], input="\n".join(self.lines) + "\n", text=True,
                              capture_output=True, env=self.environment, timeout=300)
        assert done.returncode == 0, done.stderr
        answers = done.stdout.splitlines()
        assert len(answers) == len(self.lines), done.stdout
        return answers

    def give(self, array, how="window"):
        name = f"n{next(self.names)}"
        array = np.asarray(array)
        path = self.folder / f"{name}.npy"
        np.save(path, array.T if how == "transposed" else array)
        self.say("add", "placeholder", name, "-", f"dtype=d:{array.dtype}",
                 f"shape=s:{shape_text(array.shape)}")
        self.say("give", name, how, path)
        return name

    def add(self, op, *inputs, **attrs):
        name = f"n{next(self.names)}"
        self.say("add", op, name, ",".join(inputs) or "-", attr_text(attrs))
        return name

    def path(self, name):
        return self.folder / f"out-{name}.npy"

    def run(self, *names, cap=AMPLE):
        """Arrays, after a run that went well and claimed no more than its plan stated; and what was
        told meanwhile."""
        said = self.ask("run", cap, *(f"{name}={self.path(name)}" for name in names))
        assert said.startswith("ok "), said
        numbers, *told = said.split("|")
        before, given, peak, stated = map(int, numbers.split()[1:])
        assert peak <= max(given, before + stated) and stated <= cap, said
        self.told = told
        return [np.load(self.path(name)) for name in names]

    def steps(self, *names):
        said = self.ask("explain", *names)
        self.lines.pop()
        assert said.startswith("ok {"), said
        return json.loads(said[3:])["steps"]


@pytest.fixture
def gpu(tool, tmp_path):
    """With /GPU:0, on which everything is placed from the start."""
    made = Tool(tool, tmp_path)
    made.say("set", "strict", "cpu=1")
    made.say("device", "/GPU:0")
    return made


@pytest.fixture
def bare(tool, tmp_path):
    return Tool(tool, tmp_path)


@pytest.fixture
def chance():
    return np.random.default_rng(11)


# ---- what there is, and names ----


def listed(said):
    words = said.split()
    assert words[0] == "ok", said
    return {name: tuple(map(int, numbers)) for name, *numbers in zip(*[iter(words[1:])] * 4)}


def test_a_cpu_counts_as_a_gpu_only_if_it_is_told_to(bare):
    assert list(listed(bare.ask("devices"))) == ["/CPU:0"]
    bare.environment["PLIMSOLL_OPENCL_CPU"] = "1"
    assert list(listed(bare.ask("devices"))) == ["/CPU:0", "/GPU:0"]
    bare.say("set", "cpu=-1")
    assert list(listed(bare.ask("devices"))) == ["/CPU:0"]
    bare.say("set", "cpu=1")
    bare.environment["PLIMSOLL_OPENCL_CPU"] = "0"
    assert list(listed(bare.ask("devices"))) == ["/CPU:0", "/GPU:0"]


def test_a_machine_without_opencl_has_a_cpu(bare, tmp_path):
    (tmp_path / "libOpenCL.so.1").write_text("not a library")
    bare.environment["LD_LIBRARY_PATH"] = str(tmp_path)
    bare.say("set", "cpu=1")
    assert list(listed(bare.ask("devices"))) == ["/CPU:0"]


def test_opencl_is_not_touched_before_a_device_is_asked_for(bare, tmp_path):
    (tmp_path / "end.c").write_text("__attribute__((constructor)) void end(void) { __builtin_trap(); }")
    subprocess.run(["gcc", "-shared", "-fPIC", tmp_path / "end.c", "-o", tmp_path / "libOpenCL.so.1"],
                   check=True)
    bare.environment |= {"LD_LIBRARY_PATH": str(tmp_path), "PLIMSOLL_OPENCL_CPU": "1"}
    bare.say("device", "/CPU:0")
    x = bare.give(np.arange(3.0))
    bare.ask("run", AMPLE, f"{bare.add('neg', x)}={tmp_path}/x.npy")
    with pytest.raises(AssertionError):
        bare.ask("devices")


def test_two_devices_are_numbered_and_can_be_hidden(bare):
    bare.environment["POCL_DEVICES"] = "pthread pthread"
    bare.say("set", "cpu=1", "limit=gpu:1=4096", "limit=/device:GPU:0=8192")
    there = listed(bare.ask("devices"))
    assert list(there) == ["/CPU:0", "/GPU:0", "/GPU:1"]
    assert there["/GPU:0"][0] == 8192 and there["/GPU:1"][0] == 4096
    bare.say("set", "cpu=1", "hide=GPU:0")
    assert list(listed(bare.ask("devices"))) == ["/CPU:0", "/GPU:0"]
    bare.say("set", "cpu=1", "hide=GPU")
    assert list(listed(bare.ask("devices"))) == ["/CPU:0"]
    assert bare.ask("set", "hide=TPU:0").startswith("refused EINVAL 'TPU:0' is not a GPU")


def test_each_of_two_devices_computes_what_is_placed_on_it(bare, chance):
    bare.environment["POCL_DEVICES"] = "pthread pthread"
    bare.say("set", "strict", "cpu=1")
    a = chance.standard_normal((50, 60)).astype("f4")
    x = bare.give(a)
    bare.say("device", "/GPU:0")
    first = bare.add("neg", bare.add("square", x))
    bare.say("device", "/job:localhost/replica:0/task:0/device:GPU:1")
    second = bare.add("mul", first, x)
    bare.say("device", "-")
    third = bare.add("add", second, first)
    steps = bare.steps(third)
    assert [step["device"] for step in steps] == ["/GPU:0", "/GPU:1", "/CPU:0"]
    (got,) = bare.run(third)
    np.testing.assert_array_equal(got, -(a * a) * a + -(a * a))


# ---- placement ----


def test_a_missing_device_is_the_cpu_and_told_once(bare, chance):
    bare.say("set", "cpu=1")
    a = chance.standard_normal(100)
    x = bare.give(a)
    bare.say("device", "/GPU:7")
    doubled = bare.add("add", x, x)
    halved = bare.add("sum", doubled)
    assert bare.steps(doubled)[0]["placed"] == "/GPU:7"
    assert "on /CPU:0, not on /GPU:7" in bare.ask("text", doubled)
    got, total = bare.run(doubled, halved)
    np.testing.assert_array_equal(got, a + a)
    assert bare.told == ["there is no /GPU:7: what is placed on it is computed on /CPU:0"]


def test_an_op_that_the_device_cannot_run_is_the_cpus(bare, chance):
    bare.say("set", "cpu=1")
    a = chance.standard_normal((20, 30)).astype("f4")
    x = bare.give(a)
    half = bare.give(a.astype("f2"))
    bare.say("device", "gpu")
    total = bare.add("sum", bare.add("square", x))
    sums = bare.add("add", half, half)
    devices = {step["op"]: step["device"] for step in bare.steps(total, sums)}
    assert devices == {"square": "/GPU:0", "sum": "/CPU:0", "add": "/CPU:0"}
    got, _ = bare.run(total, sums)
    np.testing.assert_allclose(got, (a * a).sum(dtype="f8"), rtol=1e-6)
    assert bare.told == ["/GPU:0 cannot run sum of float32: it is computed on /CPU:0",
                         "/GPU:0 cannot run add of float16: it is computed on /CPU:0"]


def test_strict_placement_refuses_and_lists_what_there_is(gpu, chance):
    x = gpu.give(chance.standard_normal((4, 4)).astype("f4"))
    ordered = gpu.add("sort", x)
    gpu.say("device", "/GPU:1")
    elsewhere = gpu.add("neg", x)
    fine = gpu.add("transpose", x)
    refused = gpu.ask("run", AMPLE, f"{ordered}=x.npy")
    assert refused == (f"refused EOPNOTSUPP sort '{ordered}' is placed on /GPU:0, which cannot run this "
                       "op of float32: place it on /CPU:0 (there are /CPU:0, /GPU:0), or allow soft "
                       "placement")
    refused = gpu.ask("run", AMPLE, f"{elsewhere}=x.npy")
    assert refused == (f"refused ENODEV neg '{elsewhere}' is placed on /GPU:1, which is not there: "
                       "there are /CPU:0, /GPU:0; or allow soft placement")
    gpu.run(fine)  # computes nothing


def test_what_is_not_needed_is_not_placed(gpu):
    x = gpu.give(np.arange(4.0))
    gpu.add("sort", x)
    (got,) = gpu.run(gpu.add("neg", x))
    np.testing.assert_array_equal(got, -np.arange(4.0))


def test_only_what_is_computed_together_is_one_step(gpu, chance):
    """A chain of one shape is; what has another shape, or is used by the CPU, is not."""
    a, b = chance.standard_normal((30, 5)), chance.standard_normal(5)
    x, row = gpu.give(a), gpu.give(b)
    two = gpu.add("fill", dtype="d:float64", shape=(), value=2.0)
    scaled = gpu.add("mul", gpu.add("sin", row), two)
    chain = gpu.add("exp", gpu.add("add", x, scaled))
    turned = gpu.add("transpose", chain)
    last = gpu.add("sub", turned, turned)
    steps = [(step["op"], step["device"], step["n_ops"]) for step in gpu.steps(last)]
    assert steps == [("mul", "/GPU:0", 3), ("exp", "/GPU:0", 2), ("transpose", "/CPU:0", 1),
                     ("sub", "/GPU:0", 1)]
    got, zero = gpu.run(chain, last)
    np.testing.assert_allclose(got, np.exp(a + np.sin(b) * 2), rtol=1e-14)
    assert zero.shape == (5, 30) and not zero.any()


def test_a_long_chain_is_several_steps(gpu):
    x = gpu.give(np.arange(5, dtype="i4"))
    one = gpu.add("fill", dtype="d:int32", shape=(), value=1)
    last = x
    for _ in range(40):
        last = gpu.add("add", last, one)
    assert [step["n_ops"] for step in gpu.steps(last)] == [9, 33]
    (got,) = gpu.run(last)
    np.testing.assert_array_equal(got, np.arange(5) + 40)


def test_numbers_alone_make_a_kernel(gpu):
    three = gpu.add("fill", dtype="d:float32", shape=(2, 3), value=3.5)
    largest = gpu.add("fill", dtype="d:int64", shape=(), value=-(2**63))
    got, least = gpu.run(gpu.add("neg", three), gpu.add("abs", largest))
    np.testing.assert_array_equal(got, np.full((2, 3), -3.5, "f4"))
    assert least.shape == () and least == -(2**63)


# ---- ops ----

# How far a device's own functions may be off: the OpenCL specification's limits, and a little more
# where there is none. Others have as many units as in unary_ops.py, and 2 more.
UNITS = {"pow": 16, "erf": 16, "erfc": 16, "tan": 5, "exp": 4, "sigmoid": 5, "asin": 4, "acos": 4, "sinh": 4, "cosh": 4,
         "asinh": 4, "acosh": 4, "atanh": 5, "tanh": 5, "expm1": 4, "log": 4, "log1p": 4, "sin": 4, "cos": 4, "atan": 5, "atan2": 6,
         "rsqrt": 2}  # fmt: skip
OPS_AT_ONCE = 7


def special_values(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        return [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -3, 7.25, 100, -100, np.inf, -np.inf,
                np.nan, limits.max, limits.tiny, limits.tiny / 4, 1e-3]
    if dtype.kind == "b":
        return [False, True]
    limits = np.iinfo(dtype)
    return [0, 1, 2, 3, 7, 31, 100, limits.max, limits.min] + ([-1, -2, -7] if limits.min else [])


def pairs(dtype):
    """Every special value with every other, and some at random."""
    values = np.array(special_values(dtype), dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    chance = np.random.default_rng(5)
    if np.dtype(dtype).kind == "f":
        more = chance.standard_normal((2, 200)) * 10
    else:
        more = chance.integers(0, 2 if np.dtype(dtype).kind == "b" else 100, (2, 200))
    return (np.concatenate([x, more[0].astype(dtype)]), np.concatenate([y, more[1].astype(dtype)]))


def oracles(dtype):
    """Names of ops that take the dtype, with NumPy's function of x and y."""
    for name, (function, dtypes) in op_cases.UNARY.items():
        if dtype in dtypes and name not in ("identity", "erf"):
            yield name, 1, function
    for name, (function, dtypes) in op_cases.BINARY.items():
        if dtype in dtypes:
            yield name, 2, function


def compare(name, got, wanted):
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted, err_msg=name)
        return
    units = UNITS.get(name)
    if units is None:
        own = unary_ops.OPS[name].units if name in unary_ops.OPS else 0
        units = own + 2 if own else 0
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(got[~finite], wanted[~finite], err_msg=name)
    far = np.abs(got[finite] - wanted[finite]) > units * np.spacing(np.abs(wanted[finite]))
    assert not far.any(), (name, got[finite][far][:5], wanted[finite][far][:5])


def select(gpu, rows, results):
    """One kernel for several results: row i has the i-th."""
    chosen = results[0]
    for i, result in enumerate(results[1:], 1):
        here = gpu.add("equal", rows, gpu.add("fill", dtype="d:int32", shape=(), value=i))
        chosen = gpu.add("where", here, result, chosen)
    return chosen


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_elementwise_ops_give_what_numpy_gives(gpu, dtype):
    x, y = pairs(dtype)
    ops = list(oracles(dtype))
    groups = [ops[i : i + OPS_AT_ONCE] for i in range(0, len(ops), OPS_AT_ONCE)]
    tall = (OPS_AT_ONCE, len(x))
    a, b = (gpu.give(np.broadcast_to(part, tall)) for part in (x, y))
    rows = gpu.give(np.broadcast_to(np.arange(OPS_AT_ONCE, dtype="i4")[:, None], tall))
    fetched = []
    for group in groups:
        results = [gpu.add(name, *(a, b)[:arity]) for name, arity, _ in group]
        results = [gpu.add("cast", result, dtype=f"d:{dtype}") for result in results]
        fetched.append(select(gpu, rows, results))
    with np.errstate(all="ignore"):
        for got, group in zip(gpu.run(*fetched), groups):
            for row, (name, arity, function) in zip(got, group):
                compare(name, row, function(*(x, y)[:arity]).astype(dtype))


def test_erf_and_integer_powers_clip_and_where(gpu):
    import math

    a = np.linspace(-4, 4, 300)
    x = gpu.give(a)
    erf = gpu.add("erf", x)
    low, high = (gpu.add("fill", dtype="d:float64", shape=(), value=value) for value in (-1.0, 2.0))
    b = np.array([np.nan, -5, 0, 9, np.inf])
    clipped = gpu.add("clip", gpu.give(b), low, high)
    base, power = np.array([0, 1, -1, 2, -3, 7], "i4"), np.array([[0], [1], [5], [31], [-1], [-2]], "i4")
    powers = gpu.add("pow", gpu.give(base), gpu.give(power))
    got, clip, integers = gpu.run(erf, clipped, powers)
    compare("erf", got, np.array([math.erf(value) for value in a]))
    np.testing.assert_array_equal(clip, np.clip(b, -1, 2))
    wanted = [[1] * 6, base, [pow(int(value), 5) for value in base],
              [(pow(int(value), 31) + 2**31) % 2**32 - 2**31 for value in base],
              [0, 1, -1, 0, 0, 0], [0, 1, 1, 0, 0, 0]]
    np.testing.assert_array_equal(integers, np.array(wanted))


CASTED = ("bool", "uint8", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64")


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_casts_are_the_cpus(gpu, source):
    values = [0, -0.0, 0.5, -1.5, 255.9, 256, 65536, -1, 2.0**31, -(2.0**31), 2.0**32, 2.0**63,
              -(2.0**63), 1.5 * 2**63, 2.0**64, 1e30, np.inf, -np.inf, np.nan]
    tall = (len(CASTED), len(values))
    x = gpu.give(np.broadcast_to(np.array(values, source), tall))
    rows = gpu.give(np.broadcast_to(np.arange(len(CASTED), dtype="i4")[:, None], tall))
    both = []
    for device, wide in itertools.product(("/GPU:0", "/CPU:0"), ("int64", "float64")):
        gpu.say("device", device)
        casted = [gpu.add("cast", x, dtype=f"d:{dtype}") for dtype in CASTED]
        # Back from what was an integer to another loses nothing; so from a float to a longer one.
        both.append(select(gpu, rows, [gpu.add("cast", one, dtype=f"d:{wide}") for one in casted]))
    integers, floats, *wanted = gpu.run(*both)
    np.testing.assert_array_equal(integers, wanted[0])
    np.testing.assert_array_equal(floats, wanted[1])


@pytest.mark.parametrize("how", ["memory", "transposed"])
def test_operands_repeat_along_any_axes(gpu, chance, how):
    shapes = [(4, 5, 6), (6,), (5, 1), (4, 1, 6), (1, 5, 6), (1, 1, 1), ()]
    arrays = [chance.integers(-9, 9, shape) for shape in shapes]
    names = [gpu.give(array, how) for array in arrays]
    total, wanted = names[0], arrays[0]
    for name, array in zip(names[1:], arrays[1:]):
        total, wanted = gpu.add("sub", gpu.add("mul", total, total), name), wanted * wanted - array
    outer = gpu.add("add", names[2], names[1])
    empty = gpu.add("add", gpu.give(np.zeros((3, 0))), gpu.give(np.zeros((3, 1))))
    got, table, nothing = gpu.run(total, outer, empty)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(table, arrays[2] + arrays[1])
    assert nothing.shape == (3, 0)


# ---- products ----


def close(got, wanted):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    tolerance = 1e-4 if got.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def test_products_in_all_forms(gpu, chance):
    """In one test, because CLBlast's kernel for small ones takes PoCL 12 s to compile."""

    def array(*shape):
        return chance.standard_normal(shape).astype("f4")

    wanted, names = [], []
    for turn_a, turn_b in itertools.product((False, True), repeat=2):
        a, b = array(*((33, 70) if turn_a else (70, 33))), array(*((41, 33) if turn_b else (33, 41)))
        names.append(gpu.add("matmul", gpu.give(a), gpu.give(b, "transposed"), transpose_a=turn_a,
                             transpose_b=turn_b))
        wanted.append((a.T if turn_a else a) @ (b.T if turn_b else b))
    square = array(20, 20)
    same = gpu.give(square)
    names.append(gpu.add("matmul", same, same))
    wanted.append(square @ square)
    names.append(gpu.add("matmul", gpu.give(array(3, 0)), gpu.give(array(0, 4))))
    wanted.append(np.zeros((3, 4), "f4"))
    a, b = array(2, 1, 5, 6), array(3, 6, 4)
    names.append(gpu.add("matmul", gpu.give(a), gpu.give(b)))
    wanted.append(a @ b)
    a, b = array(9, 8).astype("f8"), array(8, 7).astype("f8")
    names.append(gpu.add("matmul", gpu.give(a), gpu.give(b)))
    wanted.append(a @ b)
    for limit in (1 << 30, 8 << 10):
        gpu.say("set", "strict", "cpu=1", f"limit=/GPU:0={limit}")
        steps = {step["name"]: step for step in gpu.steps(*names)}
        assert all((steps[name]["n_tiles"] > 1) == (limit < 1 << 30) for name in names[:4])
        for got, oracle in zip(gpu.run(*names), wanted):
            close(got, oracle)
        assert listed(gpu.ask("devices"))["/GPU:0"][2] <= limit


def padded_size(gpu):
    """The rows from which on CLBlast pads: 1.5 does so for 900, 1.6 only for more."""
    for n in range(900, 2000, 100):
        x = gpu.give(np.zeros((n, n), "f4"))
        (step,) = gpu.steps(gpu.add("matmul", x, x, transpose_b=True))
        if step["device_bytes"] > 3 * 4 * n * n + 1000:
            return n
    pytest.fail("CLBlast wants no workspace for products of up to 1900 x 1900")


def test_a_large_product_has_a_workspace_within_the_budget(gpu, chance):
    """CLBlast pads large matrices; it is asked how much that takes before."""
    n = padded_size(gpu)
    a, b = (chance.standard_normal(shape).astype("f4") for shape in ((n, n + 30), (n + 30, n + 10)))
    result = gpu.add("matmul", gpu.give(a), gpu.give(np.ascontiguousarray(b.T)), transpose_b=True)
    (step,) = gpu.steps(result)
    wanted = a @ b
    assert step["n_tiles"] == 1
    assert step["device_bytes"] > a.nbytes + b.nbytes + wanted.nbytes + 1000
    (got,) = gpu.run(result)
    close(got, wanted)
    assert listed(gpu.ask("devices"))["/GPU:0"][2] == step["device_bytes"]


# ---- budgets ----


def test_a_chain_is_cut_into_tiles_that_fit_the_device(gpu, chance):
    a, b = chance.standard_normal((100, 50, 20)), chance.standard_normal((50, 1))
    x, y = gpu.give(a), gpu.give(b)
    result = gpu.add("mul", gpu.add("add", x, y), x)
    limit = 64 << 10
    gpu.say("set", "strict", "cpu=1", f"limit=/GPU:0={limit}")
    (step,) = gpu.steps(result)
    assert step["n_tiles"] >= a.nbytes * 2 // limit and step["device_bytes"] <= limit
    (got,) = gpu.run(result)
    np.testing.assert_array_equal(got, (a + b) * a)
    budget, in_use, peak = listed(gpu.ask("devices"))["/GPU:0"]
    assert budget == limit and in_use == 0 and peak == step["device_bytes"]


def test_what_no_tile_fits_is_refused_with_the_numbers(gpu):
    x = gpu.give(np.zeros((2, 1000), "f4"))
    result = gpu.add("matmul", x, x, transpose_b=True)
    chain = gpu.add("neg", x)
    gpu.say("set", "strict", "cpu=1", "limit=/GPU:0=4096")
    said = gpu.ask("run", AMPLE, f"{result}=x.npy")
    assert said.startswith(f"refused PL_EBUDGET matmul '{result}': its smallest tile needs ")
    assert "on /GPU:0, whose budget is 4.0 KiB: give at least " in said
    gpu.run(chain)
    gpu.say("set", "strict", "cpu=1", "limit=/GPU:0=255")
    said = gpu.ask("run", AMPLE, f"{chain}=x.npy")
    assert "its smallest tile needs 256 B on /GPU:0, whose budget is 255 B" in said


def test_what_no_tile_fits_is_the_cpus_unless_placement_is_strict(gpu, chance):
    a = chance.standard_normal((4, 1000)).astype("f4")
    x = gpu.give(a)
    result = gpu.add("neg", gpu.add("matmul", gpu.add("square", x), x, transpose_b=True))
    gpu.say("set", "cpu=1", "limit=/GPU:0=4096")
    steps = [(step["op"], step["device"], step["placed"]) for step in gpu.steps(result)]
    assert steps == [("square", "/GPU:0", ""), ("matmul", "/CPU:0", "/GPU:0"), ("neg", "/GPU:0", "")]
    gpu.run(result)
    (got,) = gpu.run(result)
    np.testing.assert_allclose(got, -(a * a) @ a.T, rtol=1e-4, atol=1e-4)
    assert gpu.told == ["/GPU:0, with a budget of 4.0 KiB, has no room for matmul of float32: it is "
                        "computed on /CPU:0"]


@pytest.mark.parametrize("how", ["window", "transposed"])
def test_the_hosts_budget_holds_too(gpu, chance, how):
    a = chance.standard_normal((512, 512))
    x = gpu.give(a, how)
    chain = gpu.add("neg", gpu.add("add", x, x))
    result = gpu.add("mul", gpu.add("transpose", chain), x)
    for cap in (AMPLE, 400 << 10):
        (got,) = gpu.run(result, cap=cap)
        np.testing.assert_array_equal(got, -(a + a).T * a)
        gpu.lines.pop()


def test_runs_at_once_share_the_devices_budget(gpu, chance):
    a = chance.standard_normal((200, 100))
    x = gpu.give(a)
    result = gpu.add("add", gpu.add("square", x), x)
    gpu.say("set", "strict", "cpu=1", "limit=/GPU:0=50000")
    assert gpu.ask("both", 4, AMPLE, f"{result}={gpu.path(result)}") == "ok"
    for i in range(4):
        np.testing.assert_array_equal(np.load(f"{gpu.path(result)}.{i}"), a * a + a)
    assert listed(gpu.ask("devices"))["/GPU:0"][2] <= 50000


@pytest.mark.parametrize("how", ["window", "transposed"])
def test_a_device_with_memory_of_its_own_gives_the_same(gpu, chance, how):
    """PoCL's is the host's; told that it is not, it is sent to and fetched from."""
    n = padded_size(gpu)
    limit = 37 * n * n
    a = chance.standard_normal((n, n)).astype("f4")
    x = gpu.give(a, how)
    chain = gpu.add("add", gpu.add("square", x), x)
    product = gpu.add("matmul", x, x, transpose_b=True)
    gpu.say("discrete")
    gpu.say("set", "strict", "cpu=1", f"limit=/GPU:0={limit}")
    large = gpu.steps(product)[0]
    assert large["scratch_bytes"] < large["device_bytes"] - 1000  # the workspace is the device's
    got, square = gpu.run(chain, product)
    np.testing.assert_array_equal(got, a * a + a)
    close(square, a @ a.T)
    assert listed(gpu.ask("devices"))["/GPU:0"][2] <= limit
    gpu.say("fail", "clEnqueueReadBuffer", -5, 1)
    assert gpu.ask("run", AMPLE, f"{chain}=x.npy") == (
        f"refused ENOMEM add '{chain}': /GPU:0: clEnqueueReadBuffer: CL_OUT_OF_RESOURCES")


# ---- what stays ----


def three_steps(gpu, chance):
    """A row, then a table, then its product: each stays for the next."""
    a, b = chance.standard_normal((300, 200)).astype("f4"), chance.standard_normal(200).astype("f4")
    x, y = gpu.give(a), gpu.give(b)
    table = gpu.add("add", x, gpu.add("square", y))
    result = gpu.add("matmul", table, table, transpose_b=True)
    summed = a + b * b
    return result, summed @ summed.T


@pytest.mark.parametrize("discrete", [False, True])
def test_what_the_next_step_reads_stays_on_the_device(gpu, chance, discrete):
    result, wanted = three_steps(gpu, chance)
    if discrete:
        gpu.say("discrete")
        gpu.say("fail", "clEnqueueReadBuffer", -5, 2)  # only the last result is fetched
    steps = gpu.steps(result)
    assert [step["where"] for step in steps] == ["device", "device", "memory"]
    (got,) = gpu.run(result)
    close(got, wanted)
    budget, in_use, peak = listed(gpu.ask("devices"))["/GPU:0"]
    assert in_use == 0 and peak == max(step["device_bytes"] for step in steps)


def test_what_stays_gives_the_same_as_what_does_not(gpu, chance):
    result, wanted = three_steps(gpu, chance)
    got = []
    for limit in (1 << 30, 500 << 10):
        gpu.say("set", "strict", "cpu=1", f"limit=/GPU:0={limit}")
        wheres = [step["where"] for step in gpu.steps(result)]
        assert (wheres[1] == "device") == (limit == 1 << 30)
        got += gpu.run(result)
        assert listed(gpu.ask("devices"))["/GPU:0"][2] <= limit
    close(got[0], wanted)
    close(got[1], wanted)


def test_runs_at_once_wait_for_what_stays(gpu, chance):
    result, wanted = three_steps(gpu, chance)
    most = max(step["device_bytes"] for step in gpu.steps(result))
    gpu.say("set", "strict", "cpu=1", f"limit=/GPU:0={most * 3 // 2}")
    assert gpu.ask("both", 4, AMPLE, f"{result}={gpu.path(result)}") == "ok"
    for i in range(4):
        close(np.load(f"{gpu.path(result)}.{i}"), wanted)


def test_a_failure_while_something_stays_leaves_nothing_there(gpu, chance):
    """Every buffer in turn; the program looks whether something is left."""
    result, wanted = three_steps(gpu, chance)
    gpu.say("discrete")
    for number in range(1, 7):
        gpu.say("fail", "clCreateBuffer", -4, number)
        gpu.say("run", AMPLE, f"{result}={gpu.path(result)}")
    said = gpu.answers()[-11::2]
    assert [words.startswith("refused ENOMEM ") for words in said] == [True] * 5 + [False], said
    close(np.load(gpu.path(result)), wanted)


# ---- failures ----


@pytest.mark.parametrize("function, code, number, said", [
    ("clCreateContext", -5, 1, "refused ENOMEM {}: /GPU:0: clCreateContext: CL_OUT_OF_RESOURCES"),
    ("clCreateBuffer", -4, 2,
     "refused ENOMEM {}: /GPU:0: clCreateBuffer of 896 B: CL_MEM_OBJECT_ALLOCATION_FAILURE"),
    ("clBuildProgram", -11, 1, "refused EIO {}: /GPU:0: clBuildProgram: CL_BUILD_PROGRAM_FAILURE: "),
    ("clEnqueueMapBuffer", -12, 1, "refused ENOMEM {}: /GPU:0: clEnqueueMapBuffer: CL_MAP_FAILURE"),
    ("clEnqueueMapBuffer", -9999, 2, "refused EIO {}: /GPU:0: clEnqueueMapBuffer: error -9999"),
    ("clEnqueueNDRangeKernel", -6, 1,
     "refused ENOMEM {}: /GPU:0: clEnqueueNDRangeKernel: CL_OUT_OF_HOST_MEMORY"),
])
def test_a_failure_of_the_device_is_an_error_with_its_name(gpu, function, code, number, said):
    """Nothing stays claimed (the program looks), and the next run goes well."""
    x = gpu.give(np.arange(100.0))
    result = gpu.add("neg", x)
    gpu.say("fail", function, code, number)
    assert gpu.ask("run", AMPLE, f"{result}=x.npy") == said.format(f"neg '{result}'")
    gpu.say("fail", function, 0, 0)
    (got,) = gpu.run(result)
    np.testing.assert_array_equal(got, -np.arange(100.0))
