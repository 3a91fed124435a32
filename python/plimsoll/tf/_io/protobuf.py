# SPDX-License-Identifier: Apache-2.0
"""Protocol buffers' wire format, as much of it as tf.train's messages need: varints, lengths,
and unknown fields, which are skipped."""
from __future__ import annotations

import struct
from typing import Any, Iterator, List, Tuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class DecodeError(ValueError):
    """The bytes are not a message."""


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1  # negative numbers are two's complement
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def field(number: int, data: bytes) -> bytes:
    """A field of bytes: a text, a message or a packed list."""
    return varint(number << 3 | BYTES) + varint(len(data)) + data


def packed_floats(values: List[float]) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def packed_ints(values: List[int]) -> bytes:
    return b"".join(map(varint, values))


def read_varint(data: bytes, at: int) -> Tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise DecodeError("Error parsing message: it is cut off, or no protocol buffer")
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number & (1 << 64) - 1, at


def fields(data: bytes) -> Iterator[Tuple[int, int, Any]]:
    """(number, kind, value) of each field: an int for varints, else bytes."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        kind = key & 7
        if kind == VARINT:
            value, at = read_varint(data, at)
            yield key >> 3, kind, value
            continue
        if kind == BYTES:
            n, at = read_varint(data, at)
        elif kind in (FIXED32, FIXED64):
            n = 4 if kind == FIXED32 else 8
        else:
            raise DecodeError(f"Error parsing message: wire type {kind} at byte {at}")
        if at + n > len(data):
            raise DecodeError("Error parsing message: it is cut off")
        yield key >> 3, kind, data[at : at + n]
        at += n


def ints_of(kind: int, value: Any) -> List[int]:
    """A value of a repeated field: one number, or a packed list."""
    if kind == VARINT:
        return [_signed(value)]
    found, at = [], 0
    while at < len(value):
        number, at = read_varint(value, at)
        found.append(_signed(number))
    return found


def floats_of(value: bytes) -> List[float]:
    if len(value) % 4:
        raise DecodeError("Error parsing message: a list of floats is cut off")
    return list(struct.unpack(f"<{len(value) // 4}f", value))


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
