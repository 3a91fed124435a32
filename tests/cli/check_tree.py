# SPDX-License-Identifier: Apache-2.0
"""Files, good and bad, for `plimsoll check`: made with other people's code where there is some."""

import gzip
import io
import json
import pathlib
import struct
import subprocess
import tarfile
import zlib

import numpy as np
from PIL import Image


def program(meson_build):
    return meson_build / "src/cli/plimsoll"


def crc32c(data):
    """The sum that TFRecord uses, by its definition."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def field(number, data):
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def example(**features):
    """tf.train.Example of lists of bytes, floats or integers (below 128)."""
    entries = b""
    for name, values in features.items():
        if isinstance(values[0], bytes):
            values = field(1, b"".join(field(1, value) for value in values))
        elif isinstance(values[0], float):
            values = field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
        else:
            values = field(3, field(1, bytes(values)))
        entries += field(1, field(1, name.encode()) + field(2, values))
    return field(1, entries)


def picture(format="JPEG", size=(32, 24), mode="RGB", seed=0):
    random = np.random.default_rng(seed)
    channels = {"RGB": (3,), "RGBA": (4,), "CMYK": (4,), "L": ()}[mode]
    pixels = random.integers(0, 256, size[::-1] + channels, np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels, mode).save(file, format)
    return file.getvalue()


def png_header(width, height):
    """A PNG that promises so many pixels, and has next to none."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + data


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(compressed=False, **arrays):
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


def tar(members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return file.getvalue()


class Tree:
    """A folder, and the check of it."""

    def __init__(self, tool, folder):
        self.tool = tool
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)

    def put(self, name, data):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def check(self, *options, **how):
        words = [str(word) for word in (self.tool, "check", self.folder, *options)]
        return subprocess.run(words, capture_output=True, text=True, timeout=300, **how)

    def findings(self, *options, notes=False):
        """{name: finding}, of files that are bad; with `notes`, of them only."""
        result = self.check("--jsonl", *options)
        assert result.stderr == "" and result.returncode in (0, 1), result
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        assert all((line["severity"] == "error") <= (result.returncode == 1) for line in lines)
        kept = [line for line in lines if (line["severity"] == "note") == notes]
        names = [str(pathlib.Path(line["path"]).relative_to(self.folder)) for line in kept]
        assert notes or len(set(names)) == len(names)
        return dict(zip(names, kept))

    def only(self, name, data, *options):
        """The finding about one file with this content; None if it is good."""
        self.put(name, data)
        found = self.findings(*options)
        assert set(found) <= {name}
        return found.get(name)


def gzipped(data):
    return gzip.compress(data if isinstance(data, bytes) else data.encode(), mtime=0)
