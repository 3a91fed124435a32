# SPDX-License-Identifier: Apache-2.0
"""TensorProto, as far as serialize_tensor() and parse_tensor() need it: dtype, shape and elements
in one piece, or texts. Written as protobuf writes it; read with any order of fields."""
from __future__ import annotations

from typing import Any, Iterator

# types.proto's numbers.
_NUMBERS = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7,
            "int64": 9, "bool": 10, "bfloat16": 14, "uint16": 17, "float16": 19, "uint32": 22,
            "uint64": 23}
_NAMES = {number: name for name, number in _NUMBERS.items()}
_DTYPE, _SHAPE, _CONTENT, _TEXTS = 1, 2, 4, 8
# Fields that hold numbers one by one: other writers use them for short tensors.
_LISTS = {5: "float32", 6: "float64", 7: "int32", 10: "int64", 11: "bool", 16: "uint32",
          17: "uint64", 13: "float16"}
_FIXED = {"float32": ("<f4", 5, 4), "float64": ("<f8", 1, 8)}


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _piece(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def write(array: Any, dtype_name: str) -> bytes:
    """The bytes of a tensor."""
    sizes = b"".join(_piece(2, b"\x08" + _varint(n)) if n else _piece(2, b"") for n in array.shape)
    out = b"\x08" + _varint(_NUMBERS[dtype_name]) + _piece(_SHAPE, sizes)
    if dtype_name == "string":
        return out + b"".join(_piece(_TEXTS, text) for text in array.ravel().tolist())
    content = array.tobytes()
    return out + (_piece(_CONTENT, content) if content else b"")


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    n = shift = 0
    while True:
        byte = data[at]
        n |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return n, at
        if shift > 63:
            raise ValueError("a number is too long")


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """(field, wire type, value) of each."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _read_varint(data, at)
        elif kind in (1, 5):
            n = 8 if kind == 1 else 4
            value, at = data[at:at + n], at + n
        elif kind == 2:
            n, at = _read_varint(data, at)
            value, at = data[at:at + n], at + n
        else:
            raise ValueError(f"a field of wire type {kind}")
        if at > len(data):
            raise ValueError("it is cut off")
        yield key >> 3, kind, value


def _shape_of(data: bytes) -> list[int]:
    sizes = []
    for field, _, value in _fields(data):
        if field == 2:
            sizes.append(next((n for f, _, n in _fields(value) if f == 1), 0))
    return sizes


def _numbers(name: str, kind: int, value: Any) -> Any:
    import numpy as np

    if name in _FIXED:
        return np.frombuffer(value, _FIXED[name][0])
    if kind == 0:
        return np.array([value], np.uint64)
    numbers, at = [], 0
    while at < len(value):
        n, at = _read_varint(value, at)
        numbers.append(n)
    return np.array(numbers, np.uint64)


def read(data: bytes) -> tuple[str, Any]:
    """dtype's name and elements. ValueError if it is not a tensor."""
    import numpy as np

    name, shape, content, texts, lists = "", [], b"", [], []
    try:
        for field, kind, value in _fields(data):
            if field == _DTYPE:
                name = _NAMES.get(value, "")
            elif field == _SHAPE:
                shape = _shape_of(value)
            elif field == _CONTENT:
                content = value
            elif field == _TEXTS:
                texts.append(value)
            elif field in _LISTS:
                lists.append(_numbers(_LISTS[field], kind, value))
    except IndexError:
        raise ValueError("it is cut off") from None
    if not name:
        raise ValueError("its dtype is missing, or one that there is not here")
    n = int(np.prod(shape, dtype=np.int64))
    if name == "string":
        values = np.empty(n, object)
        values[:] = texts
        return name, values.reshape(shape)
    kind_of = "<u2" if name == "bfloat16" else np.dtype(name).newbyteorder("<")
    if content:
        return name, np.frombuffer(content, kind_of).reshape(shape)
    values = np.concatenate(lists) if lists else np.zeros(0)
    values = values.astype(np.uint16).view(np.float16) if name == "float16" else values
    values = values.astype(kind_of) if len(values) else np.zeros(n, kind_of)
    # The last one goes for all that are missing.
    return name, np.concatenate([values, np.repeat(values[-1:], n - len(values))]).reshape(shape)
