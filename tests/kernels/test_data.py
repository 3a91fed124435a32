# SPDX-License-Identifier: Apache-2.0
"""Strings, files and images in graphs: computed before what is planned, as Python's bytes, Pillow and
torch have them, and within the budget."""

import io
import json
import re

import numpy as np
import pytest
import torch
from PIL import Image
from test_images import picture, png, saved
from test_sessions import AMPLE, Graph, session_tool  # noqa: F401: a fixture

from graph_tool import shape_text


class DataGraph(Graph):
    def give(self, array, op="placeholder", shape=None):
        name = f"n{next(self.names)}"
        path = self.folder / f"{name}.npy"
        np.save(path, array)
        dtype = "string" if array.dtype.kind == "S" else array.dtype
        self.lines.append(
            f"add {op} {name} - dtype=d:{dtype} shape=s:{shape_text(shape or array.shape)}")
        self.lines.append(f"give {name} window {path}")
        self.values[name] = array
        return name

    def names_of(self, *files):
        return self.give(np.array([str(file).encode() for file in files]))

    def name_of(self, file):
        return self.give(np.array(str(file).encode()))

    def add(self, op, inputs, value=None, /, **attrs):
        return super().add(op, inputs, value, **attrs)

    def fetch(self, *names, cap=AMPLE):
        said, arrays = self.run(cap, *names)
        assert said.startswith("ok "), said
        return arrays[0] if len(arrays) == 1 else arrays

    def refused(self, *names, cap=AMPLE):
        said, _ = self.run(cap, *names)
        assert said.startswith("refused "), said
        return said

    def explain(self, *names, cap=AMPLE):
        said = self.ask(*([line] for line in self.lines), ["explain", cap, self.threads, *names])
        return json.loads(said[-1].removeprefix("ok "))


@pytest.fixture
def graph(session_tool, tmp_path):  # noqa: F811
    return DataGraph(session_tool, tmp_path)


def strings(*values):
    return np.array([value if isinstance(value, bytes) else value.encode() for value in values])


WORDS = strings("", "a", " two words\t", "\n\n", "x" * 300, "NaN", "-12", b"\xff\x01\xfe",
                "a,b,,c", "  12  ")  # fmt: skip


def each(function, array):
    flat = [function(bytes(element)) for element in array.ravel()]
    return np.array(flat).reshape(array.shape)


def same_strings(got, wanted):
    assert got.dtype.kind == "S" and got.shape == wanted.shape
    assert got.tolist() == wanted.tolist()


# ---- strings ----


@pytest.mark.parametrize("array", [WORDS, WORDS.reshape(5, 2), strings("one")[0], WORDS[:0],
                                   strings("", ""), np.asfortranarray(WORDS.reshape(2, 5))],
                         ids=lambda array: str(array.shape))  # fmt: skip
def test_strings_come_back_as_they_were_given(graph, array):
    array = np.asarray(array)
    same_strings(graph.fetch(graph.give(array)), array)
    same_strings(graph.fetch(graph.give(array, "constant")), array)
    same_strings(graph.fetch(graph.give(array, "variable")), array)
    same_strings(graph.fetch(graph.add("identity", [graph.give(array)])), array)


def test_a_file_of_strings_is_what_numpy_writes(graph, tmp_path):
    array = WORDS.reshape(2, 5)
    name = graph.add("identity", [graph.give(array)])
    paths = [f"{name}={tmp_path}/a.npy", f"{name}>{tmp_path}/b.npy"]
    for pair in paths:
        graph.ask(*([line] for line in graph.lines), ["run", AMPLE, 2, pair])
    written = io.BytesIO()
    np.save(written, array)
    assert (tmp_path / "a.npy").read_bytes() == written.getvalue()
    assert (tmp_path / "b.npy").read_bytes() == written.getvalue()


def test_a_string_that_ends_with_nul_cannot_be_written(graph, tmp_path):
    (tmp_path / "zeros").write_bytes(b"abc\0")
    data = graph.add("read_file", [graph.name_of(tmp_path / "zeros")])
    assert "string 0 ends with NUL, which an .npy file does not keep" in graph.refused(data)
    assert graph.fetch(graph.add("string_length", [data])) == 4


def test_text_is_refused_with_what_to_do(graph, tmp_path):
    np.save(tmp_path / "text.npy", np.array(["ä", "b"]))
    graph.lines += ["add placeholder p - dtype=d:string shape=s:[2]",
                    f"give p window {tmp_path}/text.npy"]  # fmt: skip
    assert "save numpy.char.encode(a, 'utf-8')" in graph.refused("p")


def test_many_strings_are_read_and_written_in_pieces(graph):
    chance = np.random.default_rng(3)
    array = np.array([b"%d" % n for n in chance.integers(0, 10**9, 300_000)])
    same_strings(graph.fetch(graph.give(array)), array)
    wide = strings("y" * 300_000, "", "z" * 20_000)
    same_strings(graph.fetch(graph.give(wide)), wide)


def test_strings_that_do_not_fit_are_spilled(graph):
    array = np.array([b"%d" % n for n in range(300_000)])
    name = graph.give(array)
    cap = 5 << 20
    assert graph.values[name].nbytes + 8 * array.size < cap < 2 * array.nbytes + 16 * array.size
    other = graph.give(array[::-1])
    sums = [graph.add("sum", [graph.add("string_length", [n])]) for n in (name, other)]
    got = graph.fetch(sums[0], sums[1], cap=cap + (3 << 20))
    assert got[0] == got[1] == sum(len(text) for text in array.tolist())


ON_EACH = {
    "string_length": (len, {}),
    "string_strip": (bytes.strip, {}),
}


@pytest.mark.parametrize("op", ON_EACH)
def test_ops_on_each_string_are_those_of_bytes(graph, op):
    function, attrs = ON_EACH[op]
    array = WORDS.reshape(2, 5)
    got = graph.fetch(graph.add(op, [graph.give(array)], **attrs))
    wanted = each(function, array)
    assert got.tolist() == wanted.tolist() and got.shape == wanted.shape
    assert got.dtype == wanted.dtype or got.dtype.kind == "S"


@pytest.mark.parametrize("start", [0, 1, 5, 1000, -1, -3, -1000])
@pytest.mark.parametrize("length", [0, 1, 4, 1000])
def test_substr_is_a_slice(graph, start, length):
    got = graph.fetch(graph.add("string_substr", [graph.give(WORDS)], start=start, length=length))
    wanted = each(lambda text: text[start:][:length], WORDS)
    assert got.tolist() == wanted.tolist()


def test_substr_of_a_negative_length_is_refused(graph):
    name = graph.add("string_substr", [graph.give(WORDS)], start=0, length=-1)
    assert f"string_substr '{name}': 'length' is -1: it is 0 or more" in graph.refused(name)


@pytest.mark.parametrize("separator", ["", ",", "b,", "--"])
@pytest.mark.parametrize("text", ["", "a,b,,c", "  a \t b\n", ",", "--", "a--b----", "ab,ab,"])
def test_split_is_that_of_bytes(graph, separator, text):
    attrs = {"separator": separator} if separator else {}
    name = graph.add("string_split", [graph.give(np.array(text.encode()))], **attrs)
    wanted = text.encode().split(separator.encode() or None)
    assert graph.fetch(name).tolist() == wanted
    assert graph.fetch(graph.add("string_length", [name])).tolist() == [len(w) for w in wanted]


@pytest.mark.parametrize("separator", ["", "::"])
def test_join_broadcasts_its_inputs(graph, separator):
    a, b, c = WORDS[:4].reshape(4, 1), WORDS[5:8], strings("last")[0]
    attrs = {"separator": separator} if separator else {}
    name = graph.add("string_join", [graph.give(np.asarray(x)) for x in (a, b, c)], **attrs)
    parts = np.broadcast_arrays(a, b, c)
    wanted = [[separator.encode().join(map(bytes, group)) for group in zip(*rows)]
              for rows in zip(*(part.tolist() for part in parts))]
    assert graph.fetch(name).tolist() == wanted


@pytest.mark.parametrize("op", ["equal", "not_equal"])
def test_strings_are_equal_if_all_of_their_bytes_are(graph, op):
    a, b = strings("a", "b", "", "ab").reshape(4, 1), strings("a", "ab", "abc", "", "B")
    got = graph.fetch(graph.add(op, [graph.give(a), graph.give(b)]))
    np.testing.assert_array_equal(got, getattr(np, op)(a, b))
    assert got.dtype == bool


NUMBERS = ["0", "-7", "+12", " 99\n", "127"]
FLOATS = ["1.5", "-2e3", "1e400", "inf", "-Infinity", "nan", ".5", "5.", "0.1", "3.4028236e38"]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                                   "uint64", "float16", "float32", "float64"])  # fmt: skip
def test_numbers_are_read_from_texts(graph, dtype):
    texts = [t for t in NUMBERS if not (dtype[0] == "u" and "-" in t)]
    texts += FLOATS if dtype[0] == "f" else [str(np.iinfo(dtype).max), str(np.iinfo(dtype).min)]
    name = graph.add("string_to_number", [graph.give(strings(*texts))], dtype=f"d:{dtype}")
    with np.errstate(over="ignore"):
        wanted = np.array([float(t) if dtype[0] == "f" else int(t) for t in texts], dtype)
    got = graph.fetch(name)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("text, dtype", [
    ("", "int32"), ("x", "float32"), ("1.5", "int32"), ("128", "int8"), ("-129", "int8"),
    ("256", "uint8"), ("-1", "uint64"), ("18446744073709551616", "uint64"), ("0x10", "float32"),
    ("9223372036854775808", "int64"), ("1 2", "float64"), ("--1", "int32"), ("1e", "float32"),
    ("nan(1)", "float32"), ("1" * 600, "float64"), ("1_0", "int32"), ("\u0661", "int32"),
])  # fmt: skip
def test_what_is_no_number_is_refused(graph, text, dtype):
    name = graph.add("string_to_number", [graph.give(strings("0", text))], dtype=f"d:{dtype}")
    said = graph.refused(name)
    assert f"string_to_number '{name}': string 1, '" in said and f"is no {dtype}" in said


MOVES = {
    "reshape": (dict(shape=(5, 2)), lambda a: a.reshape(5, 2)),
    "transpose": (dict(axes=[1, 0]), lambda a: a.T),
    "broadcast_to": (dict(shape=(3, 2, 5)), lambda a: np.broadcast_to(a, (3, 2, 5))),
    "slice": (dict(start=[0, 4], stop=[2, 0], step=[1, -2]), lambda a: a[0:2, 4:0:-2]),
    "crop": (dict(start=[1, 1], size=[1, 3]), lambda a: a[1:2, 1:4]),
    "reverse": (dict(axes=[0, 1]), lambda a: a[::-1, ::-1]),
    "tile": (dict(multiples=[2, 2]), lambda a: np.tile(a, (2, 2))),
    "ensure_shape": (dict(shape=(2, None)), lambda a: a),
}


@pytest.mark.parametrize("op", MOVES)
def test_strings_are_moved_as_numbers_are(graph, op):
    attrs, function = MOVES[op]
    array = WORDS.reshape(2, 5)
    name = graph.add(op, [graph.give(array, shape=(None, None))], **attrs)
    same_strings(graph.fetch(name), function(array))


def test_strings_are_put_together_and_picked(graph):
    a, b = WORDS.reshape(2, 5), WORDS[::-1].reshape(2, 5)
    first, second = graph.give(a), graph.give(b)
    same_strings(graph.fetch(graph.add("concat", [first, second, first], axis=1)),
                 np.concatenate([a, b, a], 1))
    indices = graph.give(np.array([[4, -5], [0, 2]]))
    same_strings(graph.fetch(graph.add("gather", [first, indices], axis=1)),
                 a[:, np.array([[4, -5], [0, 2]])])
    condition = graph.add("equal", [first, second])
    same_strings(graph.fetch(graph.add("where", [condition, first, second])),
                 np.where(a == b, a, b))


def test_indices_may_be_computed(graph):
    numbers = graph.give(np.array([3, 1, 2]))
    smaller = graph.add("sub", [numbers, graph.give(np.array([1]))])
    picked = graph.add("gather", [graph.give(WORDS), smaller])
    same_strings(graph.fetch(picked), WORDS[[2, 0, 1]])
    far = graph.add("add", [numbers, graph.give(np.array([100]))])
    name = graph.add("gather", [graph.give(WORDS), far])
    assert f"gather '{name}': " in graph.refused(name)


def test_lengths_go_on_into_the_plan(graph):
    lengths = graph.add("string_length", [graph.give(WORDS, shape=(None,))])
    total = graph.add("sum", [graph.add("mul", [lengths, lengths])])
    assert graph.fetch(total) == sum(len(text) ** 2 for text in WORDS.tolist())


def test_a_string_variable_is_assigned(graph):
    variable = graph.give(strings("old", "er"), "variable")
    new = graph.add("assign", [variable, graph.add("string_strip", [graph.give(
        strings(" new", "est "))])])
    old = graph.add("identity", [variable])
    got_new, got_old = graph.fetch(new, old)
    assert got_new.tolist() == [b"new", b"est"]
    assert got_old.tolist() == [b"old", b"er"]  # what it was before the run


# ---- files ----


def test_files_are_read(graph, tmp_path):
    contents = [b"hello\n", b"", bytes(range(1, 256)) * 1000]
    for number, content in enumerate(contents):
        (tmp_path / f"file{number}").write_bytes(content)
    names = graph.names_of(*(tmp_path / f"file{i}" for i in range(3)))
    data = graph.add("read_file", [names])
    got = graph.fetch(data)
    assert got.tolist() == contents


def test_what_cannot_be_read_is_told_with_node_and_path(graph, tmp_path):
    (tmp_path / "folder").mkdir()
    for path, why in ((tmp_path / "nothing", "ENOENT"), (tmp_path / "folder", "EINVAL"),
                      ("x" * 5000, "EINVAL")):  # fmt: skip
        name = graph.add("read_file", [graph.name_of(path)])
        said = graph.refused(name)
        assert said.startswith(f"refused {why} read_file '{name}': ")
    assert "cannot read" in graph.refused(graph.add("read_file", [graph.name_of(tmp_path / "folder")]))
    said = graph.refused(graph.add("read_file", [graph.name_of(tmp_path / "folder")]))
    assert f"'{tmp_path}/folder': it is not a regular file" in said


def test_a_huge_file_is_refused_before_it_is_read(graph, tmp_path):
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 40)
    name = graph.add("read_file", [graph.name_of(tmp_path / "huge")])
    said = graph.refused(name, cap=8 << 20)
    assert said.startswith(f"refused PL_EBUDGET read_file '{name}': '{tmp_path}/huge', which has "
                           "1.0 TiB, needs 1.0 TiB; the budget is ")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32", "float32", "float64"])
def test_raw_bytes_are_elements(graph, tmp_path, dtype):
    array = (np.arange(24).reshape(3, 8) % 7).astype(dtype)
    for i in range(3):
        (tmp_path / f"raw{i}").write_bytes(array[i].tobytes())
    data = graph.add("read_file", [graph.names_of(*(tmp_path / f"raw{i}" for i in range(3)))])
    got = graph.fetch(graph.add("decode_raw", [data], dtype=f"d:{dtype}"))
    np.testing.assert_array_equal(got, array)
    assert got.dtype == array.dtype


def test_raw_bytes_that_are_no_whole_elements_are_refused(graph):
    name = graph.add("decode_raw", [graph.give(strings("abc", "def"))], dtype="d:int16")
    assert "3 bytes are not a whole number of int16, which have 2" in graph.refused(name)
    name = graph.add("decode_raw", [graph.give(strings("ab", "cdef"))], dtype="d:int16")
    assert "string 1 has 4 bytes, and the first 2: all must have as many" in graph.refused(name)


# ---- images ----


def image_file(folder, data):
    path = folder / f"image{len(list(folder.glob('image*')))}"
    path.write_bytes(data)
    return path


def decoded(graph, folder, data, op="decode_image", **attrs):
    file = graph.add("read_file", [graph.name_of(image_file(folder, data))])
    return graph.add(op, [file], **attrs)


@pytest.mark.parametrize("op, format", [("decode_jpeg", "JPEG"), ("decode_png", "PNG"),
                                        ("decode_image", "JPEG"), ("decode_image", "PNG"),
                                        ("decode_image", "BMP")])
def test_an_image_is_decoded_and_computed_with(graph, tmp_path, op, format):
    data = saved(Image.fromarray(picture(40, 60)), format)
    pixels = np.asarray(Image.open(io.BytesIO(data)))
    image = decoded(graph, tmp_path, data, op)
    np.testing.assert_array_equal(graph.fetch(image), pixels)
    half = graph.add("slice", [graph.add("reverse", [image], axes=[1])], start=[10], stop=[30])
    mean = graph.add("mean", [graph.add("cast", [half], dtype="d:float32")], axes=[0, 1])
    np.testing.assert_allclose(graph.fetch(mean),
                               pixels[:, ::-1][10:30].astype("f4").mean((0, 1)), rtol=1e-6)
    grey = decoded(graph, tmp_path, data, op, channels=1)
    assert graph.fetch(grey).shape == (40, 60, 1)


def test_a_batch_of_images_goes_through_one_run(graph, tmp_path):
    files = [saved(Image.fromarray(picture(30 + i, 50 - i, i)), "PNG" if i % 2 else "JPEG")
             for i in range(6)]
    resized = [graph.add("resize", [decoded(graph, tmp_path, data)], size=[16, 16])
               for data in files]
    rows = [graph.add("reshape", [image], shape=(1, 16, 16, 3)) for image in resized]
    got = graph.fetch(graph.add("concat", rows, axis=0))
    for image, data in zip(got, files):
        np.testing.assert_allclose(image, bilinear(np.asarray(Image.open(io.BytesIO(data))), 16, 16),
                                   rtol=1e-6, atol=1e-4)


def cmyk_jpeg(array):
    return saved(Image.fromarray(array).convert("CMYK"), "JPEG")


# With one thread a picture that only a resize reads is decoded within it, row by row.
PICTURES = {
    "JPEG": lambda array: saved(Image.fromarray(array), "JPEG", quality=90),
    "JPEG, progressive": lambda array: saved(Image.fromarray(array), "JPEG", progressive=True),
    "JPEG, 4:4:4": lambda array: saved(Image.fromarray(array), "JPEG", subsampling=0),
    "JPEG, CMYK": cmyk_jpeg,
    "JPEG, grey": lambda array: saved(Image.fromarray(array).convert("L"), "JPEG"),
    "PNG": lambda array: saved(Image.fromarray(array), "PNG"),
    "BMP": lambda array: saved(Image.fromarray(array), "BMP"),
}


@pytest.mark.parametrize("kind", PICTURES)
@pytest.mark.parametrize("channels", [0, 1, 3])
def test_what_is_decoded_on_the_way_is_the_same_to_the_bit(graph, tmp_path, kind, channels):
    for seen, made in (((75, 100), (32, 48)), ((9, 5), (31, 40)), ((64, 96), (64, 96)),
                       ((200, 3), (7, 11)), ((33, 300), (2, 1)), ((1, 1), (5, 5))):
        data = PICTURES[kind](picture(*seen))
        image = decoded(graph, tmp_path, data, channels=channels)
        name = graph.add("resize", [image], size=list(made))
        graph.threads = 1
        alone = graph.fetch(name)
        _, beside = graph.fetch(image, name)  # the picture is asked for, too: it is made whole
        graph.threads = 2
        np.testing.assert_array_equal(alone, graph.fetch(name))
        np.testing.assert_array_equal(alone, beside)


def test_a_picture_that_two_read_is_decoded_for_both(graph, tmp_path):
    graph.threads = 1
    image = decoded(graph, tmp_path, PICTURES["JPEG"](picture(75, 100)))
    small = [graph.add("resize", [image], size=[20, 30]) for _ in range(2)]
    nearest = graph.add("resize", [image], size=[20, 30], method="nearest")
    mean = graph.add("mean", [graph.add("cast", [image], dtype="d:float32")])
    got = graph.fetch(*small, nearest, mean)
    np.testing.assert_array_equal(got[0], got[1])
    np.testing.assert_array_equal(got[0], graph.fetch(small[0]))


def test_a_picture_that_would_not_fit_whole_is_refused_on_the_way_too(graph, tmp_path):
    pixels = picture(1500, 2000)
    image = decoded(graph, tmp_path, PICTURES["JPEG"](pixels), "decode_jpeg")
    name = graph.add("resize", [image], size=[16, 16])
    cap = 4 << 20
    assert cap < pixels.nbytes
    needed = set()
    for graph.threads in (1, 2):
        said = graph.refused(name, cap=cap)
        assert said.startswith(f"refused PL_EBUDGET decode_jpeg '{image}': a JPEG of 1500 x 2000 x 3 "
                               "pixels (8.6 MiB) in a file of ")
        needed.add(re.search(r"needs ([\d.]+ .iB)", said)[1])
    assert len(needed) == 1


def test_what_is_made_on_the_way_has_to_fit(graph, tmp_path):
    graph.threads = 1
    image = decoded(graph, tmp_path, PICTURES["JPEG"](picture(40, 60)), "decode_jpeg")
    large = graph.add("resize", [image], size=[2000, 2000])
    said = graph.refused(large, cap=8 << 20)
    assert said.startswith(f"refused PL_EBUDGET decode_jpeg '{image}': a JPEG of 40 x 60 x 3 pixels")
    assert graph.fetch(large).shape == (2000, 2000, 3)


def test_a_corrupt_image_on_the_way_is_told_with_its_node(graph, tmp_path):
    graph.threads = 1
    data = PICTURES["JPEG"](picture(40, 60))
    image = decoded(graph, tmp_path, data[:-300])
    name = graph.add("resize", [image], size=[16, 16])
    assert re.fullmatch(rf"refused PL_ECORRUPT decode_image '{image}': the JPEG is corrupt at byte "
                        rf"\d+ of {len(data) - 300}: .+", graph.refused(name))
    image = graph.add("decode_image", [graph.give(np.array(b"GIF89a"))])
    said = graph.refused(graph.add("resize", [image], size=[16, 16]))
    assert f"decode_image '{image}': it is a GIF file" in said
    image = decoded(graph, tmp_path, data[:-300], "decode_jpeg", try_recover_truncated=True)
    name = graph.add("resize", [image], size=[16, 16])
    alone = graph.fetch(name)
    np.testing.assert_array_equal(alone, graph.fetch(image, name)[1])


def test_a_corrupt_image_is_told_with_its_node(graph, tmp_path):
    data = saved(Image.fromarray(picture(40, 60)), "JPEG")
    name = decoded(graph, tmp_path, data[:-300])
    assert re.fullmatch(rf"refused PL_ECORRUPT decode_image '{name}': the JPEG is corrupt at byte "
                        rf"\d+ of {len(data) - 300}: .+", graph.refused(name))
    name = graph.add("decode_png", [graph.give(np.array(b"GIF89a"))])
    assert "it is a GIF file: JPEG, PNG and BMP are decoded; convert it" in graph.refused(name)


def test_a_bomb_is_refused_with_what_it_would_need(graph, tmp_path):
    name = decoded(graph, tmp_path, png(60000, 60000, 8, 6, b""))
    said = graph.refused(name)
    assert said.startswith(f"refused PL_EBUDGET decode_image '{name}': a PNG of 60000 x 60000 x 4 "
                           "pixels (13.4 GiB) in a file of 65 B, with all that is needed to decode "
                           "it, needs 26.8 GiB; the budget is "), said


def test_what_wide_pixels_need_is_told_before(graph, tmp_path):
    name = decoded(graph, tmp_path, png(60000, 60000, 16, 2, b""), dtype="d:uint16")
    assert "60000 x 60000 x 3 pixels (20.1 GiB)" in graph.refused(name)
    name = decoded(graph, tmp_path, png(60000, 60000, 8, 6, b""), dtype="d:float32")
    assert "60000 x 60000 x 4 pixels (53.6 GiB)" in graph.refused(name)


def test_pixels_that_do_not_fit_together_are_spilled(graph, tmp_path):
    """Eight images of which four fit, and a sum over all of them."""
    pixels = [picture(300, 400, i) for i in range(8)]
    images = [decoded(graph, tmp_path, saved(Image.fromarray(p), "PNG"), channels=3)
              for p in pixels]
    largest = images[0]
    for image in images[1:]:
        largest = graph.add("maximum", [largest, image])
    total = graph.add("sum", [graph.add("cast", [largest], dtype="d:int64")])
    cap = 4 * 300 * 400 * 3 + (300 << 10)
    assert graph.fetch(total, cap=cap) == np.maximum.reduce(pixels).sum(dtype="i8")


def test_what_is_known_before_is_explained(graph, tmp_path):
    data = saved(Image.fromarray(picture(40, 60)), "PNG")
    image = decoded(graph, tmp_path, data, channels=3)
    small = graph.add("resize", [image], size=[8, 8])
    told = graph.explain(graph.add("sum", [small]))
    assert [(s["op"], s["shape"], s["bytes"]) for s in told["stages"]] == [
        ("read_file", [], None), ("decode_image", [None, None, 3], None),
        ("resize", [8, 8, 3], 8 * 8 * 3 * 4)]  # fmt: skip
    assert [step["op"] for step in told["steps"]] == ["sum"]
    assert [s["known"] for s in told["stages"]] == [False, False, False] and told["n_unknown"] == 3
    assert told["stages_peak_bytes"] >= 8 * 8 * 3 * 4
    told = graph.explain(graph.add("sum", [graph.add("cast", [image], dtype="d:int64")]))
    assert told["steps"] is None and told["waits_for"] == image


# ---- resize ----


def taps(n_in, n_out):
    """TensorFlow's formula: half-pixel centres, in float32."""
    at = (np.arange(n_out, dtype="f4") + np.float32(0.5)) * (
        np.float32(n_in) / np.float32(n_out)) - np.float32(0.5)
    lower = np.clip(np.floor(at).astype(int), 0, n_in - 1)
    upper = np.clip(np.ceil(at).astype(int), 0, n_in - 1)
    return lower, upper, (at - np.floor(at)).astype("f4")


def bilinear(image, height, width):
    rows = image.astype("f4")
    y_low, y_high, y = taps(image.shape[-3], height)
    x_low, x_high, x = taps(image.shape[-2], width)
    wide = rows[..., x_low, :] + (rows[..., x_high, :] - rows[..., x_low, :]) * x[:, None]
    top, bottom = wide[..., y_low, :, :], wide[..., y_high, :, :]
    return top + (bottom - top) * y[:, None, None]


def torch_resize(image, height, width, mode, **how):
    batch = torch.from_numpy(np.moveaxis(image.astype("f8"), -1, -3))
    batch = batch if batch.ndim == 4 else batch[None]
    if mode == "bilinear":
        how["align_corners"] = False
    made = torch.nn.functional.interpolate(batch, (height, width), mode=mode, **how).numpy()
    return np.moveaxis(made if image.ndim == 4 else made[0], -3, -1)


SIZES = [((8, 8), (4, 4)), ((5, 7), (13, 11)), ((375, 500), (256, 256)), ((1, 1), (3, 5)),
         ((2, 300), (300, 2)), ((16, 16), (16, 16)), ((9, 4), (1, 1)), ((130, 3), (201, 64))]
DTYPES = ["uint8", "int8", "uint16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("size, to", SIZES, ids=str)
def test_bilinear_is_tensorflows_formula_to_the_bit(graph, size, to, channels):
    image = np.random.default_rng(channels).integers(0, 256, (*size, channels), dtype="uint8")
    for array in (image, (image / 3).astype("f4")):
        got = graph.fetch(graph.add("resize", [graph.give(array)], size=list(to)))
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, bilinear(array, *to))
        np.testing.assert_allclose(got, torch_resize(array, *to, "bilinear"), rtol=1e-4, atol=2e-2)


@pytest.mark.parametrize("channels", [1, 3, 4, 5])
@pytest.mark.parametrize("size, to", SIZES, ids=str)
def test_antialiased_is_made_of_all_that_a_pixel_covers(graph, size, to, channels):
    image = np.random.default_rng(channels).integers(0, 256, (*size, channels), dtype="uint8")
    for array in (image, (image / 3).astype("f4"), image.astype("i4")):
        node = graph.add("resize", [graph.give(array)], size=list(to), antialias=True)
        expected = torch_resize(array, *to, "bilinear", antialias=True)
        np.testing.assert_allclose(graph.fetch(node), expected, rtol=1e-4, atol=2e-2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 3])
def test_any_numbers_are_resized(graph, dtype, n):
    image = (np.random.default_rng(n).integers(0, 100, (n, 20, 30, 3))).astype(dtype)
    given = graph.give(image)
    got = graph.fetch(graph.add("resize", [given], size=[33, 17]))
    np.testing.assert_array_equal(got, bilinear(image, 33, 17))
    got = graph.fetch(graph.add("resize", [given], size=[33, 17], method="nearest"))
    assert got.dtype == image.dtype
    np.testing.assert_array_equal(got, torch_resize(image, 33, 17, "nearest-exact"))


@pytest.mark.parametrize("size, to", SIZES, ids=str)
def test_nearest_takes_whole_pixels(graph, size, to):
    image = np.random.default_rng(1).integers(0, 256, (*size, 3), dtype="uint8")
    got = graph.fetch(graph.add("resize", [graph.give(image)], size=list(to), method="nearest"))
    np.testing.assert_array_equal(got, torch_resize(image, *to, "nearest-exact"))


def test_what_is_computed_can_be_resized(graph):
    image = np.random.default_rng(1).random((20, 30, 3)).astype("f4")
    turned = graph.add("transpose", [graph.give(image)], axes=[1, 0, 2])
    double = graph.add("add", [turned, turned])
    for node, value in ((turned, image.transpose(1, 0, 2)), (double, 2 * image.transpose(1, 0, 2))):
        got = graph.fetch(graph.add("resize", [node], size=[7, 9]))
        np.testing.assert_array_equal(got, bilinear(value, 7, 9))


def test_a_file_in_another_order_is_resized(graph):
    image = np.asfortranarray(np.random.default_rng(1).random((20, 30, 3)).astype("f4"))
    got = graph.fetch(graph.add("resize", [graph.give(image)], size=[7, 9]))
    np.testing.assert_array_equal(got, bilinear(image, 7, 9))


def test_an_empty_size_or_batch_is_empty(graph):
    image = graph.give(np.zeros((4, 4, 3), "u1"))
    assert graph.fetch(graph.add("resize", [image], size=[0, 5])).shape == (0, 5, 3)
    none = graph.give(np.zeros((0, 4, 4, 3), "u1"))
    assert graph.fetch(graph.add("resize", [none], size=[2, 5])).shape == (0, 2, 5, 3)


def test_an_assignment_beneath_a_stage_is_made_once(graph):
    variable = graph.give(np.full((4, 4, 1), 3, "f4"), "variable")
    more = graph.add("assign_add", [variable, graph.give(np.ones((4, 4, 1), "f4"))])
    small = graph.add("resize", [more], size=[2, 2])
    got_small, got_more, before = graph.fetch(small, more, graph.add("identity", [variable]))
    assert (got_small == 4).all() and (got_more == 4).all() and (before == 3).all()


def test_a_large_resize_is_refused_with_what_it_needs(graph):
    image = graph.give(np.zeros((10, 10, 3), "u1"))
    name = graph.add("resize", [image], size=[4000, 4000])
    said = graph.refused(name, cap=32 << 20)
    assert said.startswith(f"refused PL_EBUDGET resize '{name}': what it reads and makes needs ")


