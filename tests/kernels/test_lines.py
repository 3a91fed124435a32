# SPDX-License-Identifier: Apache-2.0
"""Text is split into lines as Python splits it, whatever the window; UTF-8 is what Python takes."""

import gzip
import random

import pytest

from text_files import CODES, Bad, Item, Reader


@pytest.fixture(scope="session")
def text_tool(build_tool):
    return build_tool("text_tool")


@pytest.fixture
def reader(text_tool, tmp_path):
    return Reader(text_tool, tmp_path)


def wanted_lines(data):
    """Offset, number and bytes of each line."""
    found, at = [], 0
    for number, piece in enumerate(data.split(b"\n"), 1):
        if at < len(data):
            found.append(Item(at, number, [piece.removesuffix(b"\r")]))
        at += len(piece) + 1
    return found


TEXTS = {
    "empty": b"",
    "one": b"a\n",
    "not ended": b"a\nb",
    "empty lines": b"\n\n\r\n\n",
    "returns": b"a\r\nb\rc\r\r\n\rd\r",
    "only a return": b"\r",
    "nul": b"a\0b\n\0\n",
    "not text": bytes(range(256)) * 3,
    "long": b"x" * 5000 + b"\n" + b"y" * 70000 + b"\r\nz",
}


@pytest.mark.parametrize("name", TEXTS)
def test_lines_are_those_of_python_in_windows_of_any_size(reader, name):
    data = TEXTS[name]
    for window in (1, 2, 3, 7, 64, 0):
        assert reader.lines(data, window) == wanted_lines(data), window


def test_random_texts_have_the_lines_that_python_finds(reader):
    chance = random.Random(1)
    commands, texts = [], []
    for i in range(150):
        data = bytes(chance.choices(b"ab\n\r\0,\xc3", k=chance.randrange(200)))
        path = reader.folder / f"text{i}"
        path.write_bytes(data)
        texts += [data] * 2
        commands += [["lines", window, 0, path] for window in (chance.randrange(1, 40), 0)]
    for data, found in zip(texts, reader.run_many(commands)):
        assert found == wanted_lines(data)


def test_a_line_past_the_limit_costs_that_line_and_is_told_with_its_place(reader):
    data = b"one\n" + b"x" * 300 + b"\r\nthree\n" + b"y" * 301 + b"\nfive"
    for window in (1, 16, 301, 0):  # 301: up to the carriage return
        found = reader.lines(data, window, 300)
        assert [item.values for item in found[:3]] == [[b"one"], [b"x" * 300], [b"three"]]
        bad, last = found[3:]
        assert isinstance(bad, Bad) and bad.code == CODES["too long"]
        assert "line 4, byte 312" in bad.message and "300 B" in bad.message
        assert last == Item(614, 5, [b"five"])


def test_a_file_that_is_not_there_is_named(reader):
    said = reader.run("lines", 0, 0, "/nowhere/at/all")
    assert said.startswith("refused -2 ") and "'/nowhere/at/all'" in said
    assert "not a regular file" in reader.run("lines", 0, 0, "/dev")


# ---- packed ----


def test_a_packed_file_is_read_as_if_it_were_not(reader):
    chance = random.Random(9)
    data = b"".join(chance.randbytes(chance.randrange(100)) + b"\n" for _ in range(3000))
    packed = gzip.compress(data[:70000]) + gzip.compress(data[70000:])
    for window in (1000, 0):
        assert reader.lines(packed, window) == wanted_lines(data)


def test_a_packed_file_that_is_cut_off_gives_whole_lines_and_is_told_once(reader):
    data = b"".join(b"line %d\n" % i for i in range(100))
    packed = gzip.compress(data)
    path = reader.write(packed)
    wanted = wanted_lines(data)
    commands = [["lines", 64, 0, f"{path}@{n}"] for n in range(20, len(packed))]
    for found in reader.run_many(commands):
        *good, bad = found
        assert isinstance(bad, Bad) and bad.code == CODES["corrupt"] and str(path) in bad.message
        assert good == wanted[: len(good)]
    assert len(good) == 100  # only the checksum was missing


# ---- UTF-8 ----


def wanted_utf8(data):
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start, error.reason == "unexpected end of data"
    return len(data), False


def utf8_texts():
    chance = random.Random(2)
    good = "aé€\U0001f600\U0010ffff\ud7ff\ue000\x7f"
    for lead in range(0x80, 0x100):
        for second in (None, 0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF):
            yield bytes([lead] if second is None else [lead, second])
            yield bytes([lead, second or 0x80, 0x80])
            yield bytes([lead, second or 0x80, 0xBF, 0x80, 0x41])
    for _ in range(400):
        data = bytearray("".join(chance.choices(good, k=chance.randrange(60))).encode())
        for _ in range(chance.randrange(3)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        yield bytes(data[: chance.randrange(len(data) + 1)])
        yield b"plain text, " * 3 + bytes(data)


def test_utf8_is_valid_up_to_the_byte_where_python_stops(text_tool, tmp_path):
    texts = list(utf8_texts())
    for i, data in enumerate(texts):
        (tmp_path / str(i)).write_bytes(data)
    said = text_tool(*(["utf8", tmp_path / str(i)] for i in range(len(texts))))
    for data, answer in zip(texts, said):
        start, cut = map(int, answer.split()[1:])
        assert (start, bool(cut)) == wanted_utf8(data), data
    assert {bool(int(answer[-1])) for answer in said} == {True, False}
