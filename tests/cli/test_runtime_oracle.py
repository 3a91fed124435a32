# SPDX-License-Identifier: Apache-2.0
"""NumPy is the oracle for what the runtime does with bytes: .npy headers, halves, copies."""

import itertools
import random
import subprocess

import numpy as np
import pytest

SOURCES = (
    "tests/programs/runtime_oracle.c",
    "src/tensor/convert.c",
    "src/tensor/dtype.c",
    "src/tensor/region.c",
    "src/tensor/region_copy.c",
    "src/tensor/shape.c",
    "src/codec/npy/npy.c",
    "src/codec/npy/npy_header.c",
    "src/base/error.c",
)
FLAGS = (
    "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-g", "-fno-strict-aliasing", "-Wall", "-Wextra",
    "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
)  # fmt: skip
DTYPES = ("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "S1", "S13")
SHAPES = ((), (0,), (1,), (7,), (2, 3), (3, 0, 4), (5, 1, 2, 1), (1, 2, 1, 2, 1, 2, 1, 2), (10007,))


@pytest.fixture(scope="session")
def ask(root, tmp_path_factory):
    """Gives commands to runtime_oracle.c; returns an answer each."""
    program = tmp_path_factory.mktemp("oracle") / "runtime_oracle"
    sources = [str(root / source) for source in SOURCES]
    includes = (f"-I{root}/include", f"-I{root}/src")
    subprocess.run(["gcc", *FLAGS, *includes, *sources, "-o", str(program)], check=True)

    def run(*commands):
        lines = "".join(" ".join(str(word) for word in command) + "\n" for command in commands)
        done = subprocess.run(
            [str(program)], input=lines, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        answers = done.stdout.splitlines()
        assert len(answers) == len(commands), done.stdout
        return answers

    return run


def name_of(dtype):
    return {"S": "string", "V": "bfloat16"}.get(dtype.kind, dtype.name)


def describe(path, array):
    """What runtime_oracle.c should say of a file that holds `array`."""
    swap = array.dtype.byteorder == ">"
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    offset = path.stat().st_size - array.nbytes
    shape = "[" + ",".join(str(dim) for dim in array.shape) + "]"
    dtype = array.dtype
    return f"{name_of(dtype)} {dtype.itemsize} {swap:d} {fortran:d} {offset} {array.nbytes} {shape}"


def test_every_file_that_numpy_writes_is_understood(ask, tmp_path):
    paths, wanted = [], []
    for number, (name, shape) in enumerate(itertools.product(DTYPES, SHAPES)):
        for order, version, byteorder in (("C", None, "<"), ("F", (2, 0), ">"), ("F", (3, 0), "<")):
            array = np.zeros(shape, np.dtype(name).newbyteorder(byteorder), order)
            path = tmp_path / f"{number}-{order}-{byteorder[0] == '>'}.npy"
            with path.open("wb") as out:
                np.lib.format.write_array(out, array, version)
            paths.append(("npy", path))
            wanted.append(describe(path, array))
            if len(paths) % 30 == 0:  # the disk is not what is tested
                assert ask(*paths) == wanted
                for _, path in paths:
                    path.unlink()
                paths, wanted = [], []
    assert ask(*paths) == wanted


def test_headers_are_written_byte_for_byte_as_numpy_does(ask, tmp_path):
    shapes = SHAPES + ((10**9, 3), (2**52 + 5, 0), tuple(range(10**5, 10**5 + 3)), (12345678,) * 2)
    commands, wanted = [], []
    for number, (name, shape) in enumerate(itertools.product(DTYPES + ("V2",), shapes)):
        dtype = np.dtype(name)
        path, theirs = tmp_path / f"{number}.npy", tmp_path / "theirs.npy"
        # ml_dtypes' bfloat16 calls itself "<V2", where NumPy's own two raw bytes are "|V2".
        descr = "<V2" if name == "V2" else np.lib.format.dtype_to_descr(dtype)
        with theirs.open("wb") as out:
            about = {"descr": descr, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(out, about)
        commands.append(("header", name_of(dtype), dtype.itemsize, path, *shape))
        wanted.append((path, theirs.read_bytes()))
    ask(*commands)
    for path, theirs in wanted:
        assert path.read_bytes() == theirs


def mutations(count):
    """Headers near good ones: what is taken must be what NumPy takes, and mean the same."""
    chance = random.Random(4)
    words = ["(3,)", "(2, 3)", "()", "'<f4'", "'>i2'", "'|S3'", "True", "False", ",", ":", "(", ")",
             "{", "}", "'", '"', " ", "L", "0", "1", "12", "-", "'shape'", "'descr'", "\n",
             "u"]  # fmt: skip
    good = (
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{'shape': (3,), 'fortran_order': True, \"descr\": '>i2'}  \n",
        "{'descr': '|S3', 'fortran_order': False, 'shape': (), }\n",
    )
    for _ in range(count):
        text = chance.choice(good)
        for _ in range(chance.randrange(3)):
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice(words) + text[at + chance.randrange(6):]
        yield text


def numpy_says(path):
    """NumPy's description, or None where it refuses."""
    with path.open("rb") as file:
        try:
            read_header = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[np.lib.format.read_magic(file)]
            shape, fortran, dtype = read_header(file)
        except Exception:  # also SyntaxError, TokenError and what else tokenize() raises
            return None
        text = "[" + ",".join(str(dim) for dim in shape) + "]"
        swap = dtype.byteorder == ">"
        n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        where = f"{file.tell()} {n_bytes} {text}"
        return f"{name_of(dtype)} {dtype.itemsize} {swap:d} {fortran:d} {where}"


def test_nothing_is_taken_that_numpy_refuses(ask, tmp_path):
    paths = []
    for number, text in enumerate(mutations(3000)):
        path = tmp_path / f"{number}.npy"
        body = text.encode()
        path.write_bytes(b"\x93NUMPY\1\0" + len(body).to_bytes(2, "little") + body + bytes(4096))
        paths.append(path)
    n_taken = 0
    for path, ours in zip(paths, ask(*(("npy", path) for path in paths))):
        if not ours.startswith("refused"):
            n_taken += 1
            assert ours == numpy_says(path), path.read_bytes()[:200]
    assert 300 < n_taken < 2900


def convert(ask, tmp_path, values, to):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(values.tobytes())
    target.write_bytes(bytes(values.size * np.dtype(to).itemsize))
    kinds = {2: "float16", 4: "float32"}
    ask(("convert", kinds[values.itemsize], kinds[np.dtype(to).itemsize], source, target))
    return np.fromfile(target, to)


def assert_same_floats(ours, theirs, bits):
    """The same bits, but for NaNs, whose payload NumPy keeps in another way."""
    assert np.array_equal(np.isnan(ours), np.isnan(theirs))
    numbers = ~np.isnan(ours)
    assert np.array_equal(ours.view(bits)[numbers], theirs.view(bits)[numbers])
    assert np.array_equal(np.signbit(ours), np.signbit(theirs))


def test_every_half_is_the_float_that_numpy_makes_of_it(ask, tmp_path):
    halves = np.arange(65536, dtype="u2").view("f2")
    assert_same_floats(convert(ask, tmp_path, halves, "f4"), halves.astype("f4"), "u4")


def test_floats_become_the_halves_that_numpy_makes_of_them(ask, tmp_path):
    # Around every half and every point between two of them, and a dense grid over all bits.
    halves = np.arange(0x7c01, dtype="u2").view("f2").astype("f4")
    halves[-1] = 65536
    middles = (halves[:-1] + halves[1:]) / 2
    near = np.concatenate([halves, middles]).view("u4")
    bits = np.concatenate([near - 1, near, near + 1, np.arange(0, 2**32, 4099, dtype="u4")])
    floats = np.concatenate([bits, bits | 0x80000000]).astype("u4").view("f4")
    with np.errstate(all="ignore"):
        theirs = floats.astype("f2")
    assert_same_floats(convert(ask, tmp_path, floats, "f2"), theirs, "u2")


def random_view(chance, array):
    """Some view: sliced, reversed, transposed, repeated."""
    slices = []
    for dim in array.shape:
        step = chance.choice((1, 1, 1, 2, 3, -1, -2))
        stepped = chance.random() < 0.5
        slices.append(slice(None, None, step) if stepped else slice(chance.randrange(dim), None))
    view = array[tuple(slices)]
    view = view.transpose(chance.sample(range(view.ndim), view.ndim))
    if chance.random() < 0.2 and view.ndim < 6:
        view = np.broadcast_to(view[..., None], (*view.shape, 3))
    return view


def test_copies_of_any_view_are_those_of_numpy(ask, tmp_path):
    chance = random.Random(5)
    commands, wanted = [], []
    for number in range(150):
        shape = [chance.choice((1, 2, 3, 5, 16, 33)) for _ in range(chance.randrange(1, 5))]
        dtype = chance.choice(("u1", "u2", "u4", "u8", "c16", "S3", "S12"))
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        array = np.frombuffer(chance.randbytes(n_bytes), dtype).reshape(shape)
        view = random_view(chance, array)
        first = view.__array_interface__["data"][0] - array.__array_interface__["data"][0]
        copied = np.ascontiguousarray(view).reshape(view.shape)
        source, target = tmp_path / f"{number}.src", tmp_path / f"{number}.dst"
        source.write_bytes(array.tobytes())
        target.write_bytes(b"\0" * copied.nbytes)
        commands.append(("copy", array.itemsize, target, 0, source, first, view.ndim, *view.shape,
                         *copied.strides, *view.strides))  # fmt: skip
        wanted.append((target, copied.tobytes()))
    ask(*commands)
    for (target, theirs), command in zip(wanted, commands):
        assert target.read_bytes() == theirs, command
