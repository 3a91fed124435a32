# SPDX-License-Identifier: Apache-2.0
"""Baseline JPEGs of pixels, by NumPy: libjpeg's quantization and the standard's Huffman codes.

The library only decodes. One pair of code tables, that for brightness, serves all components: the
file is some percent larger than it might be, and any decoder reads it.
"""
from __future__ import annotations

import functools
import struct
from typing import Any, Dict, List, Tuple

_BRIGHTNESS = (
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
    14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113,
    92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
)
_COLOUR = (
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99,
    47, 66, 99, 99, 99, 99, 99, 99, *([99] * 32),
)
_ZIGZAG = sorted(range(64), key=lambda i: (
    i // 8 + i % 8, i // 8 if (i // 8 + i % 8) % 2 else i % 8))
# How many codes there are of each length from 1 to 16, and what they stand for.
_DC_COUNTS = bytes.fromhex("00010501010101010100000000000000")
_DC_VALUES = bytes(range(12))
_AC_COUNTS = bytes.fromhex("0002010303020403050504040000017d")
_AC_VALUES = bytes.fromhex(
    "01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728"
    "292a3435363738393a434445464748494a535455565758595a636465666768696a737475767778797a83848586878889"
    "8a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2"
    "e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa"
)
_DENSITIES = {"in": 1, "cm": 2}


def jpeg_of(pixels: Any, quality: int, halves_colour: bool, density: Tuple[str, int, int],
            xmp: bytes) -> bytes:
    """The file for uint8 pixels, [height, width, 1 or 3 channels].

    >>> import numpy as np
    >>> from plimsoll.tf._jpeg_write import jpeg_of
    >>> jpeg_of(np.zeros([8, 8, 1], np.uint8), 95, True, ("in", 300, 300), b"")[:2].hex()
    'ffd8'
    """
    height, width, n_channels = pixels.shape
    by = 2 if halves_colour and n_channels == 3 else 1
    tables = [_scaled(_BRIGHTNESS, quality), _scaled(_COLOUR, quality)]
    planes = _planes(pixels, by)
    unit, x_density, y_density = density
    head = [_segment(0xE0, struct.pack(">5sHBHHBB", b"JFIF\0", 0x101, _DENSITIES[unit], x_density,
                                       y_density, 0, 0))]
    if xmp:
        head.append(_segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp))
    for number in range(1 if n_channels == 1 else 2):
        head.append(_segment(0xDB, bytes([number, *(tables[number][i] for i in _ZIGZAG)])))
    frame = b"".join(bytes([i + 1, (by << 4 | by) if i == 0 else 0x11, min(i, 1)])
                     for i in range(n_channels))
    head.append(_segment(0xC0, struct.pack(">BHHB", 8, height, width, n_channels) + frame))
    head.append(_segment(0xC4, b"\0" + _DC_COUNTS + _DC_VALUES))
    head.append(_segment(0xC4, b"\x10" + _AC_COUNTS + _AC_VALUES))
    scan = b"".join(bytes([i + 1, 0]) for i in range(n_channels))
    head.append(_segment(0xDA, bytes([n_channels]) + scan + b"\0\x3f\0"))
    blocks = [_quantized(plane, tables[min(i, 1)], by if i == 0 else 1)
              for i, plane in enumerate(planes)]
    return b"\xff\xd8" + b"".join(head) + _coded(blocks, by * by) + b"\xff\xd9"


def _segment(mark: int, data: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, mark, len(data) + 2) + data


def _scaled(table: Tuple[int, ...], quality: int) -> List[int]:
    """As libjpeg's jpeg_set_quality() does."""
    quality = min(max(quality, 1), 100)
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    return [min(max((value * percent + 50) // 100, 1), 255) for value in table]


def _planes(pixels: Any, by: int) -> List[Any]:
    """Brightness, and colours by halves, in whole blocks: the edge is repeated."""
    import numpy as np

    size = 8 * by
    height, width, n_channels = pixels.shape
    margins = [(0, -height % size), (0, -width % size), (0, 0)]
    x = np.pad(pixels, margins, "edge").astype(np.float32)
    if n_channels == 1:
        return [x[..., 0] - 128]
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    planes = [0.299 * red + 0.587 * green + 0.114 * blue - 128,
              -0.168735892 * red - 0.331264108 * green + 0.5 * blue,
              0.5 * red - 0.418687589 * green - 0.081312411 * blue]
    if by == 2:
        planes[1:] = [p.reshape(p.shape[0] // 2, 2, -1, 2).mean((1, 3)) for p in planes[1:]]
    return planes


def _quantized(plane: Any, table: List[int], by: int) -> Any:
    """[blocks, 64] numbers in the order of the file, by x by blocks of a unit side by side."""
    import numpy as np

    rows, columns = plane.shape[0] // 8 // by, plane.shape[1] // 8 // by
    blocks = plane.reshape(rows, by, 8, columns, by, 8).transpose(0, 3, 1, 4, 2, 5)
    k, n = np.arange(8)[:, None], np.arange(8)[None]
    turn = np.cos((2 * n + 1) * k * np.pi / 16) * np.where(k == 0, np.sqrt(1 / 8), 1 / 2)
    waves = turn.astype(np.float32) @ blocks.reshape(-1, 8, 8) @ turn.T.astype(np.float32)
    steps = np.asarray(table, np.float32).reshape(8, 8)
    most = 1023  # what the codes can say
    numbers = np.clip(np.rint(waves / steps), -most, most).astype(np.int32)
    return numbers.reshape(-1, 64)[:, _ZIGZAG]


@functools.lru_cache(maxsize=None)
def _codes(counts: bytes, values: bytes) -> Dict[int, str]:
    codes, code, at = {}, 0, 0
    for length, count in enumerate(counts, 1):
        for _ in range(count):
            codes[values[at]] = format(code, f"0{length}b")
            code += 1
            at += 1
        code <<= 1
    return codes


def _bits(value: int) -> Tuple[int, str]:
    """How many bits it takes, and these: those of a negative number are turned around."""
    n = abs(value).bit_length()
    return n, format(value if value > 0 else value + (1 << n) - 1, f"0{n}b") if n else ""


def _coded(planes: List[Any], n_first: int) -> bytes:
    """The units one after the other: n_first blocks of the first plane, one of each other."""
    before = [0] * len(planes)
    parts: List[str] = []
    n_units = len(planes[0]) // n_first
    lists = [plane.tolist() for plane in planes]
    for unit in range(n_units):
        for i, blocks in enumerate(lists):
            n = n_first if i == 0 else 1
            for block in blocks[unit * n : unit * n + n]:
                _add_block(parts, block, before[i])
                before[i] = block[0]
    bits = "".join(parts)
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")


def _add_block(parts: List[str], block: List[int], before: int) -> None:
    dc, ac = _codes(_DC_COUNTS, _DC_VALUES), _codes(_AC_COUNTS, _AC_VALUES)
    n, bits = _bits(block[0] - before)
    parts += (dc[n], bits)
    n_zeros = 0
    for value in block[1:]:
        if value == 0:
            n_zeros += 1
            continue
        for _ in range(n_zeros // 16):
            parts.append(ac[0xF0])
        n, bits = _bits(value)
        parts += (ac[n_zeros % 16 << 4 | n], bits)
        n_zeros = 0
    if n_zeros:
        parts.append(ac[0])
