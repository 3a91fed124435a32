# SPDX-License-Identifier: Apache-2.0
"""Speaks with tests/programs/text_tool.c: gives it files, and reads what it wrote."""

import dataclasses
import re
import struct


@dataclasses.dataclass
class Item:
    """What was read at a place (offset and line, or what the tool says instead of that)."""

    a: int
    b: int
    values: list


@dataclasses.dataclass
class Bad:
    code: int
    a: int
    b: int
    message: str


CODES = {"budget": -5001, "format": -5002, "corrupt": -5004, "too long": -90, "unsupported": -95}


def parse(path):
    """The items and errors in a file that the tool wrote."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        end = data.index(b"\n", at)
        kind, *rest = data[at:end].split(b" ", 1)
        at = end + 1
        if kind == b"item":
            found.append(Item(*map(int, rest[0].split()), []))
        elif kind == b"bits":
            found[-1].values.append(int(rest[0], 16))
        elif kind == b"bytes":
            n = int(rest[0])
            found[-1].values.append(data[at : at + n])
            at += n + 1
        else:
            code, a, b, message = rest[0].split(b" ", 3)
            found.append(Bad(int(code), int(a), int(b), message.decode()))
    return found


class Reader:
    """Runs the tool's commands on files in a folder of the test's."""

    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder
        self.path = folder / "file"

    def run_many(self, commands):
        """Each command is a list of words without OUT; returns what each read."""
        outs = [self.folder / f"out{i}" for i in range(len(commands))]
        said = self.tool(*([*words, out] for words, out in zip(commands, outs)))
        results = []
        for answer, out in zip(said, outs):
            if answer.startswith("refused"):
                results.append(answer)
                continue
            found = parse(out)
            assert len(found) == int(answer.split()[1]), (answer, found)
            results.append(found)
        return results

    def run(self, *words):
        (found,) = self.run_many([words])
        return found

    def write(self, data):
        self.path.write_bytes(data)
        return self.path

    def lines(self, data, window=0, limit=0):
        return self.run("lines", window, limit, self.write(data))

    def fields(self, data, window=0, limit=0, flags="-", delimiter=","):
        return self.run("fields", window, limit, flags, ord(delimiter), self.write(data))

    def csv(self, data, columns, **how):
        return self.run(*self.csv_words(self.write(data), columns, **how))

    @staticmethod
    def csv_words(path, columns, window=0, limit=0, flags="-", delimiter=",", na="", selected=()):
        return ("csv", window, limit, flags, ord(delimiter), na.encode().hex() or "-",
                ",".join(columns), ",".join(map(str, selected)) or "-", path)

    def tar(self, data, window=0):
        return self.run("tar", window, self.write(data))

    def samples(self, data, wanted="-"):
        return self.run("samples", wanted, self.write(data))


def column(kind, default=None):
    """A column as the tool wants it: i l f d s, and what stands for an empty field."""
    if default is None:
        return kind
    if kind == "s":
        return f"s:{default.encode().hex()}"
    packed = struct.pack({"i": "<i", "l": "<q", "f": "<f", "d": "<d"}[kind], default)
    return f"{kind}:{int.from_bytes(packed, 'little'):x}"


def number(kind, bits):
    """What the tool's bits mean."""
    form, n = {"i": ("<i", 4), "l": ("<q", 8), "f": ("<f", 4), "d": ("<d", 8)}[kind]
    assert bits >> 8 * n == 0
    return struct.unpack(form, bits.to_bytes(n, "little"))[0]


def numbers_in(message):
    return [int(word) for word in re.findall(r"\d+", message)]
