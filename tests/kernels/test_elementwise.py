# SPDX-License-Identifier: Apache-2.0
"""NumPy is the oracle for elementwise kernels and casts: every operation, dtype, form and
instruction set, on values that are chosen to be awkward. Functions that are not exact are held
against long doubles."""

import itertools
import pathlib

import numpy as np
import pytest
import unary_ops

INTEGERS = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8")
FLOATS = ("f4", "f8")
NUMBERS = INTEGERS + FLOATS
BOOL = ("?",)
WHOLES = BOOL + INTEGERS
ANY = BOOL + NUMBERS
FLAGS = pathlib.Path("/proc/cpuinfo").read_text()
ISAS = ["plain", *(isa for isa, flag in (("avx2", "avx2"), ("avx512", "avx512_vbmi2"))
                   if flag in FLAGS)]
N = 3001  # not a multiple of any vector

# name: operands, dtypes, what NumPy does
EXACT = {
    name: (1, unary_ops.dtypes_of(op, FLOATS), op.function)
    for name, op in unary_ops.OPS.items() if op.units == 0
}
EXACT |= {
    "add": (2, NUMBERS, np.add),
    "sub": (2, NUMBERS, np.subtract),
    "mul": (2, NUMBERS, np.multiply),
    "div": (2, FLOATS, np.divide),
    "floordiv": (2, NUMBERS, np.floor_divide),
    "mod": (2, NUMBERS, np.mod),
    "fmod": (2, NUMBERS, np.fmod),
    "maximum": (2, ANY, np.maximum),
    "minimum": (2, ANY, np.minimum),
    "squared_difference": (2, NUMBERS, lambda x, y: np.square(x - y)),
    "equal": (2, ANY, np.equal),
    "not_equal": (2, ANY, np.not_equal),
    "less": (2, ANY, np.less),
    "less_equal": (2, ANY, np.less_equal),
    "greater": (2, ANY, np.greater),
    "greater_equal": (2, ANY, np.greater_equal),
    "logical_and": (2, ANY, np.logical_and),
    "logical_or": (2, ANY, np.logical_or),
    "logical_xor": (2, ANY, np.logical_xor),
    "bitwise_and": (2, WHOLES, np.bitwise_and),
    "bitwise_or": (2, WHOLES, np.bitwise_or),
    "bitwise_xor": (2, WHOLES, np.bitwise_xor),
    "left_shift": (2, INTEGERS, np.left_shift),
    "right_shift": (2, INTEGERS, np.right_shift),
    "where": (3, ANY, np.where),
    "clip": (3, ANY, lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    "mul_add": (3, NUMBERS, lambda x, y, z: x * y + z),
}
# Which of -0 and 0 is the larger, nobody says.
ZEROS_ARE_ALIKE = {"relu", "maximum", "minimum", "clip"}



# name: what it is, of long doubles; an interval where it is interesting in f32, and in f64
FUNCTIONS = {
    name: (op.function, op.f32, op.f64) for name, op in unary_ops.OPS.items() if op.units > 0
}
FUNCTIONS_OF_TWO = {
    "pow": (np.power, (0, 20), (-30, 30)),
    "atan2": (np.arctan2, (-3, 3), (-3, 3)),
}


@pytest.fixture(scope="session")
def tool(build_tool):
    return build_tool("kernel_tool")


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def generator(*key):
    return np.random.default_rng([ord(letter) for letter in "".join(map(str, key))])


def edges(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        near = [0, 1, 2, 3, 7, 8 * dtype.itemsize - 1, 8 * dtype.itemsize, info.max, info.max - 1]
        near += [info.min, info.min + 1] + ([-1, -2, -3, -7] if dtype.kind == "i" else [])
        return np.array(near, dtype)
    info = np.finfo(dtype)
    near = [0, 0.5, 1, 1.5, 2, 2.5, 3, 1e-3, 10, 1e6, 2.0**23 + 1, 2.0**31, 2.0**62, info.max]
    near += [info.tiny, info.smallest_subnormal, np.inf, np.nan]
    return np.array(near + [-value for value in near], dtype)


def random_values(dtype, n, rng):
    """Half of them of any bits at all, half small."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(n) < 0.5
    bits = rng.integers(0, 256, n * dtype.itemsize, dtype="u1").view(dtype)
    small = rng.normal(0, 20, n).astype("i8" if dtype.kind in "iu" else dtype).astype(dtype)
    return np.where(rng.random(n) < 0.5, bits, small)


def operands(dtype, count, rng):
    """Every combination of two awkward values, then what is random, as `count` arrays of N."""
    first, second = (x.ravel() for x in np.meshgrid(edges(dtype), edges(dtype)))
    arrays = [first, second, rng.permutation(first)][:count]
    return [np.concatenate([array, random_values(dtype, N, rng)])[:N] for array in arrays]


def comparable(array):
    """Bits, with one NaN for all: which of two goes on is not promised."""
    if array.dtype.kind != "f":
        return array.tobytes()
    return np.where(np.isnan(array), array.dtype.type(np.nan), array).tobytes()


class Files:
    def __init__(self, folder, tool):
        self.folder, self.tool, self.commands, self.checks = folder, tool, [], []
        self.n_files = 0

    def save(self, array):
        path = self.folder / f"in-{self.n_files}.npy"
        self.n_files += 1
        np.save(path, array)
        return path

    def out(self):
        return self.folder / f"out-{len(self.commands)}.npy"

    def add(self, check, command, *words):
        """`check` gets the array that the command writes in place of OUT."""
        out = self.out()
        self.commands.append((command, *(out if word is OUT else word for word in words)))
        self.checks.append((check, out))

    def run(self):
        answers = self.tool(*self.commands)
        for answer, command, (check, out) in zip(answers, self.commands, self.checks):
            assert answer == "ok", (answer, command)
            check(np.load(out), command)


OUT = object()


@pytest.fixture
def files(tmp_path, tool):
    return Files(tmp_path, tool)


def same_as(wanted, zeros_are_alike=False):
    def check(got, command):
        assert got.dtype == wanted.dtype, command
        if zeros_are_alike and got.dtype.kind == "f":
            np.testing.assert_array_equal(got, wanted, str(command))
        elif comparable(got) != comparable(wanted):
            differ = ~((got == wanted) | (got != got) & (wanted != wanted))
            where = np.flatnonzero(differ)[:5]
            pytest.fail(f"{command}: at {where}: {got[where]}, wanted {wanted[where]}")

    return check


def forms_of(count):
    """Every choice of repeated operands but all of them."""
    return [form for form in itertools.product((False, True), repeat=count) if not all(form)]


def arrays_for(name, dtype):
    count = EXACT[name][0]
    arrays = operands(dtype, count, generator(name, dtype))
    if name == "where":
        arrays[0] = random_values("?", N, generator(dtype))
    return arrays


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_operation_gives_numpys_result_in_every_form(files, name):
    count, dtypes, oracle = EXACT[name]
    for dtype in dtypes:
        arrays = arrays_for(name, dtype)
        for form, element in itertools.product(forms_of(count), range(0, 40, 13)):
            if not any(form) and element > 0:
                continue
            chosen = [
                array[element] if repeated else array for array, repeated in zip(arrays, form)
            ]
            wide = [np.full(N, value) if np.ndim(value) == 0 else value for value in chosen]
            wanted = oracle(*wide)
            paths = [files.save(value) for value in chosen]
            for isa in ISAS:
                check = same_as(wanted, name in ZEROS_ARE_ALIKE)
                files.add(check, "op", isa, 1024, name, OUT, *paths)
    files.run()


def every_operation():
    for name, (count, dtypes, _) in EXACT.items():
        yield name, count, dtypes
    for name in FUNCTIONS:
        yield name, 1, FLOATS
    yield "pow", 2, NUMBERS
    yield "atan2", 2, FLOATS


@pytest.mark.parametrize("name, count, dtypes", every_operation())
def test_no_bit_depends_on_the_strip_or_the_form_or_on_being_in_place(files, name, count, dtypes):
    for dtype, isa in itertools.product(dtypes, ISAS):
        arrays = operands(dtype, count, generator(name, dtype))
        if name == "where":
            arrays[0] = random_values("?", N, generator(dtype))
        paths = [files.save(array) for array in arrays]
        whole = files.out()
        files.add(lambda got, command: None, "op", isa, N, name, OUT, *paths)

        def check(got, command, whole=whole):
            same_as(np.load(whole))(got, command)

        for strip in (1, 3, 17, 64, 1000):
            files.add(check, "op", isa, strip, name, OUT, *paths)
        if arrays[0].dtype == np.dtype(dtype) and name not in YIELD_BOOL:
            files.add(check, "in_place", isa, 1000, name, OUT, *paths)
        for form in forms_of(count)[1:]:
            same = [np.full(N, a[5]) if r else a for a, r in zip(arrays, form)]
            wide = files.out()
            files.add(lambda *_: None, "op", isa, N, name, OUT, *map(files.save, same))
            narrow = [files.save(a[5]) if r else p for a, p, r in zip(arrays, paths, form)]

            def check_form(got, command, wide=wide):
                same_as(np.load(wide))(got, command)

            files.add(check_form, "op", isa, 100, name, OUT, *narrow)
    files.run()


YIELD_BOOL = {
    name
    for name in EXACT
    if name.startswith(("logical", "is_")) or "equal" in name or name in ("less", "greater")
}


def units_off(got, wanted):
    """How far `got` is from the long doubles `wanted`, in units of its last place."""
    rounded = wanted.astype(got.dtype)
    unit = np.spacing(np.maximum(np.abs(rounded), np.finfo(got.dtype).tiny))
    off = np.abs(got.astype("g") - wanted) / unit.astype("g")
    alike = (np.isnan(got) & np.isnan(rounded)) | (got == rounded)
    return np.where(np.isfinite(off), off, np.where(alike, 0, np.inf))


def within(limit, arguments, wanted):
    def check(got, command):
        off = units_off(got, wanted)
        worst = np.argmax(off)
        assert off[worst] <= limit, (
            f"{command}: {off[worst]} units off at {[x[worst] for x in arguments]}: "
            f"{got[worst]}, wanted {wanted[worst]}"
        )

    return check


def spread(dtype, low, high, rng, n=40000):
    """Even over an interval, over magnitudes, over all bits; and the edges."""
    even = rng.uniform(low, high, n).astype(dtype)
    small = np.exp2(rng.uniform(-60, 1, n)).astype(dtype) * rng.choice([-1, 1], n).astype(dtype)
    return np.concatenate([even, small, random_values(dtype, n, rng), edges(dtype)])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_off_by_two_units_at_most(files, name):
    oracle, *intervals = FUNCTIONS[name]
    for dtype, interval in zip(FLOATS, intervals):
        values = spread(dtype, *interval, generator(name, dtype))
        path, wanted = files.save(values), oracle(values.astype("g"))
        for isa in ISAS:
            check = within(unary_ops.OPS[name].units, [values], wanted)
            files.add(check, "op", isa, 1024, name, OUT, path)
    files.run()


@pytest.mark.parametrize("name", FUNCTIONS_OF_TWO)
def test_a_function_of_two_is_off_by_two_units_at_most(files, name):
    oracle, first, second = FUNCTIONS_OF_TWO[name]
    for dtype in FLOATS:
        rng = generator(name, dtype)
        values = [spread(dtype, *first, rng), spread(dtype, *second, rng)]
        pairs = [x.ravel() for x in np.meshgrid(edges(dtype), edges(dtype))]
        values = [np.concatenate(both) for both in zip(values, pairs)]
        wanted = oracle(*(x.astype("g") for x in values))
        paths = [files.save(x) for x in values]
        for isa in ISAS:
            files.add(within(2, values, wanted), "op", isa, 1024, name, OUT, *paths)
    files.run()


@pytest.mark.parametrize("name", [*FUNCTIONS, *FUNCTIONS_OF_TWO])
def test_a_function_keeps_the_sign_of_zero(files, name):
    oracle = {**FUNCTIONS, **FUNCTIONS_OF_TWO}[name][0]
    n_operands = 2 if name in FUNCTIONS_OF_TWO else 1
    for dtype in FLOATS:
        values = [np.array([0, -0.0, 0, -0.0], dtype), np.array([1, 1, -1, 3], dtype)][:n_operands]
        wanted = oracle(*(x.astype("g") for x in values)).astype(dtype)
        paths = [files.save(x) for x in values]
        for isa in ISAS:
            files.add(same_as(wanted), "op", isa, 1024, name, OUT, *paths)
    files.run()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_an_integers_power_wraps_and_a_negative_one_drops_its_fraction(files, dtype):
    base, exponent = operands(dtype, 2, generator(dtype))

    def power(x, y):
        if y >= 0:
            return pow(x, y, 1 << 64)
        return 1 if x == 1 else (-1 if y % 2 else 1) if x == -1 else 0

    wanted = [power(int(x), int(y)) & (1 << 64) - 1 for x, y in zip(base, exponent)]
    paths = [files.save(base), files.save(exponent)]
    for isa in ISAS:
        check = same_as(np.array(wanted, "u8").astype(dtype))
        files.add(check, "op", isa, 1024, "pow", OUT, *paths)
    files.run()


def test_kernels_exist_for_the_dtypes_of_the_table_and_no_others(files):
    commands, wanted = [], []
    for name, count, dtypes in every_operation():
        for dtype in (*ANY, "f2"):
            array = np.zeros(3, dtype)
            arrays = [array] * count if name != "where" else [np.zeros(3, "?"), array, array]
            paths = [files.save(x) for x in arrays]
            commands.append(("op", "best", 3, name, files.folder / "x.npy", *paths))
            taken = np.dtype(dtype) in [np.dtype(one) for one in dtypes] or name == "where"
            wanted.append("ok" if taken else "not taken")
    assert files.tool(*commands) == wanted


def cast(values, dtype):
    """astype(), of elements one by one: NumPy's own vectors and the tails behind them differ for
    floats that are no u4, and ours do not."""
    if values.dtype.kind == "f" and np.dtype(dtype) == "u4":
        return values.astype("i8").astype("u4")
    return values.astype(dtype)


def test_every_cast_is_numpys(files):
    dtypes = (*ANY, "f2")
    for source, target in itertools.product(dtypes, dtypes):
        rng = generator(source, target)
        values = np.concatenate([edges(source), random_values(source, N, rng)])
        path, wanted = files.save(values), cast(values, target)
        name = np.dtype(target).name
        for isa, strip in itertools.product(ISAS, (1000, 7)):
            files.add(same_as(wanted), "cast", isa, strip, name, OUT, path)
    files.run()


def bfloat16(values):
    """The two upper bytes of a float32, to the nearest, ties to even."""
    bits = values.astype("f4").view("u4").astype("u8")
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), bits >> 16 | 0x40, rounded).astype("u2")


def test_casts_to_and_from_bfloat16_round_once(files):
    for dtype in ANY:
        values = random_values(dtype, N, generator(dtype))
        if dtype == "f8":  # exact in f32, or between two bfloat16 by less than an f32 can tell
            values = np.concatenate([values.astype("f4").astype("f8"), [1 + 2**-8 + 2**-40]])
            wanted = bfloat16(values)
            wanted[-1] = 0x3F81
        else:
            wanted = bfloat16(values)
        path = files.save(values)

        def check(got, command, wanted=wanted):
            same_as(wanted)(got.view("u2"), command)

        for isa in ISAS:
            files.add(check, "cast", isa, 1000, "bfloat16", OUT, path)

    halves = generator("bfloat16").integers(0, 1 << 16, N, dtype="u2")
    values = (halves.astype("u4") << 16).view("f4")
    path = files.save(halves.view("V2"))
    for dtype in (*ANY, "f2"):
        wanted = cast(values, dtype)
        files.add(same_as(wanted), "cast", "best", 1000, np.dtype(dtype).name, OUT, path)
    files.run()
