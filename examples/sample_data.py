# SPDX-License-Identifier: Apache-2.0
"""Files for the examples to read: made without any library, the same every time."""

import pathlib
import random
import struct
import zlib


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(seed: int, width: int = 96, height: int = 64) -> bytes:
    """A small picture of coloured stripes."""
    chance = random.Random(seed)
    colours = [bytes(chance.randrange(256) for _ in range(3)) for _ in range(8)]
    rows = b"".join(
        b"\0" + b"".join(colours[(x + y * (seed % 7)) // 12 % 8] for x in range(width))
        for y in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def pictures(folder: str, n: int) -> list[str]:
    """Paths of `n` pictures that are written there."""
    paths = []
    for i in range(n):
        path = pathlib.Path(folder, f"image_{i:04}.png")
        path.write_bytes(png(i))
        paths.append(str(path))
    return paths


def arrays(folder: str, n: int, rows: int, columns: int) -> list[str]:
    """Paths of `n` .npy files of float32 rows that are written there."""
    import numpy as np

    paths = []
    for i in range(n):
        path = str(pathlib.Path(folder, f"file{i}.npy"))
        np.save(path, np.random.default_rng(i).random((rows, columns), np.float32))
        paths.append(path)
    return paths
