# SPDX-License-Identifier: Apache-2.0
"""tf.io: files, pictures, records. What is eager is read and decoded where it is called, so that it
fails there; in a function that is traced, when that is run."""
from __future__ import annotations

from typing import Any, Sequence

from plimsoll import _core
from plimsoll.tf import _not_implemented
from plimsoll.tf._values import types as _types
from plimsoll.tf._io import gfile  # noqa: F401
from plimsoll.tf._values.convert import (
    Tensor, dims, invalid, now, numpy_call, numpy_calls, static, tensor,
)
from plimsoll.tf._io.parse_example import (  # noqa: F401
    FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, parse_example, parse_single_example,
)
from plimsoll.tf.strings import _each

__all__ = [
    "FixedLenFeature", "FixedLenSequenceFeature", "TFRecordOptions", "TFRecordWriter",
    "VarLenFeature", "decode_base64", "decode_bmp", "decode_compressed", "decode_csv",
    "decode_image", "decode_jpeg", "decode_png", "decode_raw", "encode_base64", "encode_jpeg",
    "encode_png", "is_jpeg", "match_files", "matching_files", "parse_example",
    "parse_single_example", "parse_tensor", "read_file", "serialize_tensor", "write_file",
]

__getattr__ = _not_implemented.getter("tf.io")
_op = _core.op


# ---- files ----


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The bytes of a file.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     tf.io.read_file(file.name).numpy()
    b''
    """
    return now(_op("read_file", [tensor(filename)], None, name))


def write_file(filename: Any, contents: Any, name: str | None = None) -> Any:
    """Writes bytes into a file, whose folder is made if it has to be.

    >>> tf.io.write_file('/dev/null', 'abc')
    """
    def write(path: Any, data: Any) -> Any:
        import os

        import numpy as np

        target = os.fsdecode(path.item())
        with gfile.os_errors():
            if os.path.dirname(target):
                os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(data.item())
        return np.bool_(True)

    done = numpy_call(write, [tensor(filename), tensor(contents)], _types.bool, [], name)
    return None if done.graph is None and not done.is_symbolic else done


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """Paths that a pattern, or several, describe; in order.

    >>> tf.io.matching_files('/dev/nul[l]').numpy().tolist()
    [b'/dev/null']
    """
    def find(patterns: Any) -> Any:
        import numpy as np

        found = gfile.glob([bytes(text) for text in np.asarray(patterns).ravel().tolist()])
        out = np.empty(len(found), object)
        out[:] = [path.encode() for path in found]
        return out

    return numpy_call(find, [tensor(pattern)], _types.string, [None], name)


match_files = matching_files


class TFRecordOptions:
    """How records are packed: None, "ZLIB" or "GZIP".

    >>> tf.io.TFRecordOptions('GZIP').compression_type
    'GZIP'
    """

    def __init__(self, compression_type: str | None = None, flush_mode: Any = None,
                 input_buffer_size: Any = None, output_buffer_size: Any = None,
                 window_bits: Any = None, compression_level: Any = None,
                 compression_method: Any = None, mem_level: Any = None,
                 compression_strategy: Any = None) -> None:
        if compression_type not in (None, "", "ZLIB", "GZIP"):
            raise ValueError(f'Not a valid compression_type: "{compression_type}"')
        self.compression_type = compression_type or ""


class TFRecordWriter:
    """Writes records into a file.

    >>> with tf.io.TFRecordWriter('/dev/null') as writer:
    ...     writer.write(b'record')
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        if isinstance(options, str):
            options = TFRecordOptions(options)
        self._writer = _core.RecordWriter(gfile._path(path),
                                          options.compression_type if options else "")

    def write(self, record: Any) -> None:
        """Appends one."""
        record = record.numpy() if hasattr(record, "numpy") else record
        self._writer.write(record.encode() if isinstance(record, str) else bytes(record))

    def flush(self) -> None:
        """Passes buffered data to the system, so that others can read it."""
        self._writer.flush()

    def close(self) -> None:
        """Writes the remaining data."""
        self._writer.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


# ---- pictures ----


def _decoded(op: str, contents: Any, channels: Any, dtype: Any, name: str | None,
             recover: bool = False) -> Tensor:
    dtype = _types.as_dtype(dtype)
    n = 0 if channels is None else int(channels)
    if n not in (0, 1, 3, 4):
        raise ValueError(f"channels must be in (None, 0, 1, 3, 4), and is {channels}")
    attrs: dict[str, Any] = {"channels": n}
    if dtype != _types.uint8:
        attrs["dtype"] = dtype
    if recover:
        attrs["try_recover_truncated"] = True
    return now(_op(op, [tensor(contents)], attrs, name))


def decode_image(contents: Any, channels: Any = None, dtype: Any = _types.uint8,
                 name: str | None = None, expand_animations: bool = True) -> Tensor:
    """The pixels of a JPEG, PNG or BMP: [height, width, channels]; uint8, uint16, or float32 from
    0 to 1.

    >>> tf.io.decode_image(tf.io.encode_png([[[1], [2]]])).numpy().tolist()
    [[[1], [2]]]
    >>> tf.io.decode_image(tf.io.encode_png([[[0], [255]]]), dtype=tf.float32).numpy().tolist()
    [[[0.0], [1.0]]]
    """
    return _decoded("decode_image", contents, channels, dtype, name)


def decode_jpeg(contents: Any, channels: Any = 0, ratio: int = 1, fancy_upscaling: bool = True,
                try_recover_truncated: bool = False, acceptable_fraction: float = 1,
                dct_method: str = "", name: str | None = None) -> Tensor:
    """The pixels of a JPEG (or another picture).

    >>> tf.io.decode_jpeg(tf.io.encode_png([[[1], [2]]])).shape
    TensorShape([1, 2, 1])
    """
    if ratio != 1:
        raise NotImplementedError("tf.io.decode_jpeg with a 'ratio': use tf.image.resize")
    recover = try_recover_truncated or acceptable_fraction < 1
    return _decoded("decode_jpeg", contents, channels, _types.uint8, name, recover)


def decode_png(contents: Any, channels: Any = 0, dtype: Any = _types.uint8,
               name: str | None = None) -> Tensor:
    """The pixels of a PNG (or another picture), uint8 or uint16.

    >>> tf.io.decode_png(tf.io.encode_png([[[1], [2]]]), channels=3).shape
    TensorShape([1, 2, 3])
    >>> tf.io.decode_png(tf.io.encode_png([[[1], [255]]]), dtype=tf.uint16).numpy().tolist()
    [[[257], [65535]]]
    """
    if _types.as_dtype(dtype) not in (_types.uint8, _types.uint16):
        invalid(f"decode_png: pixels are uint8 or uint16, and {_types.as_dtype(dtype).name} was "
                "asked for: decode_image makes float32")
    return _decoded("decode_png", contents, channels, dtype, name)


def decode_bmp(contents: Any, channels: Any = 0, name: str | None = None) -> Tensor:
    """The pixels of a BMP (or another picture).

    >>> head = b'BM' + bytes([58, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,
    ...                       1, 0, 24]) + bytes(25)
    >>> tf.io.decode_bmp(head + bytes([3, 2, 1, 0])).numpy().tolist()
    [[[1, 2, 3]]]
    """
    return _decoded("decode_image", contents, channels, _types.uint8, name)


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Does it begin as a JPEG does?

    >>> bool(tf.io.is_jpeg(b'GIF89a'))
    False
    """
    start = _op("string_substr", [tensor(contents)], {"start": 0, "length": 3})
    return _core.binary("equal", start, _core.constant(b"\xff\xd8\xff"), name)


_CHANNELS = {1: 0, 2: 4, 3: 2, 4: 6}  # PNG's numbers of its colour types


def encode_jpeg(image: Any, format: str = "", quality: int = 95, progressive: bool = False,
                optimize_size: bool = False, chroma_downsampling: bool = True,
                density_unit: str = "in", x_density: int = 300, y_density: int = 300,
                xmp_metadata: Any = "", name: str | None = None) -> Tensor:
    """A JPEG of pixels: uint8, [height, width, 1 or 3 channels].

    >>> pixels = tf.io.decode_jpeg(tf.io.encode_jpeg(tf.fill([8, 8, 1], tf.constant(7, tf.uint8))))
    >>> pixels.shape, int(pixels[0, 0, 0])
    (TensorShape([8, 8, 1]), 7)
    """
    from plimsoll.tf._ops.reshape import cast

    wanted = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}.get(format)
    if wanted is None:
        invalid(f"encode_jpeg: format is '{format}': '', 'grayscale' or 'rgb'")
    if not 0 <= quality <= 100:
        invalid(f"encode_jpeg: quality must be in [0,100], got {quality}")
    if density_unit not in ("in", "cm"):
        invalid(f"encode_jpeg: density_unit is '{density_unit}': 'in' or 'cm'")
    x = image if isinstance(image, Tensor) else cast(image, _types.uint8)
    if x.dtype != _types.uint8:
        invalid(f"encode_jpeg: uint8 is needed, and {x.dtype.name} was given")
    xmp = xmp_metadata.encode() if isinstance(xmp_metadata, str) else bytes(xmp_metadata)

    def encode(array: Any) -> Any:
        import numpy as np

        if array.ndim != 3 or array.shape[2] not in wanted:
            invalid(f"encode_jpeg: [height, width, {' or '.join(map(str, wanted))} channels] is "
                    f"needed, and {array.shape} was given")
        made = _core.encode_jpeg(
            np.ascontiguousarray(array), quality, progressive, optimize_size,
            not chroma_downsampling, density_unit == "cm", x_density, y_density, xmp)
        return np.array(made, object)

    return numpy_call(encode, [x], _types.string, [], name)


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """A PNG of pixels: uint8, [height, width, channels].

    >>> tf.io.encode_png([[[1], [2]]]).numpy()[1:4]
    b'PNG'
    """
    from plimsoll.tf._ops.reshape import cast

    x = image if isinstance(image, Tensor) else cast(image, _types.uint8)
    if x.dtype not in (_types.uint8, _types.uint16):
        invalid(f"encode_png: uint8 or uint16 is needed, and {x.dtype.name} was given")

    def encode(array: Any) -> Any:
        import numpy as np

        if array.ndim != 3 or array.shape[2] not in _CHANNELS or 0 in array.shape:
            invalid(f"encode_png: [height, width, 1 to 4 channels] is needed, and {array.shape} "
                    "was given")
        return np.array(_png(array, compression), object)

    return numpy_call(encode, [x], _types.string, [], name)


def _png(array: Any, level: int) -> bytes:
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    height, width, channels = array.shape
    head = struct.pack(">IIBBBBB", width, height, 8 * array.itemsize, _CHANNELS[channels], 0, 0, 0)
    rows = array.astype(array.dtype.newbyteorder(">")).reshape(height, -1)
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    pixels = chunk(b"IDAT", zlib.compress(lines, level))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + pixels + chunk(b"IEND", b"")


# ---- bytes ----


def decode_raw(input_bytes: Any, out_type: Any, little_endian: bool = True,
               fixed_length: Any = None, name: str | None = None) -> Tensor:
    """Bytes as numbers: a new last axis.

    >>> tf.io.decode_raw(b'abc', tf.uint8).numpy().tolist()
    [97, 98, 99]
    """
    if fixed_length is not None:
        raise NotImplementedError("tf.io.decode_raw with 'fixed_length'")
    dtype = _types.as_dtype(out_type)
    out = now(_op("decode_raw", [tensor(input_bytes)], {"dtype": dtype}, name))
    if little_endian or dtype.size == 1:
        return out
    return numpy_call(lambda array: array.byteswap(), [out], dtype, dims(out))


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """Decodes web-safe base64.

    >>> tf.io.decode_base64('YWI').numpy()
    b'ab'
    """
    import base64

    def decode(text: bytes) -> bytes:
        try:
            return base64.b64decode(text + b"=" * (-len(text) % 4), b"-_", True)
        except ValueError:
            invalid("Invalid character found in base64.")

    return _each(decode, input, name)


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Web-safe base64.

    >>> tf.io.encode_base64('ab').numpy()
    b'YWI'
    """
    import base64

    gone = b"" if pad else b"="
    return _each(lambda text: base64.urlsafe_b64encode(text).rstrip(gone), input, name)


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Unpacks compressed data: "", "ZLIB" or "GZIP".

    >>> tf.io.decode_compressed('abc').numpy()
    b'abc'
    """
    import zlib

    bits = {"": None, "ZLIB": 15, "GZIP": 31}
    if compression_type not in bits:
        raise ValueError(f"compression_type is '{compression_type}': '', 'ZLIB' or 'GZIP'")

    def unpack(data: Any) -> Any:
        if bits[compression_type] is None:
            return data
        try:
            return zlib.decompress(data, bits[compression_type])
        except zlib.error as error:
            invalid(f"decode_compressed: {error}")

    return _each(unpack, bytes, name)


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor as bytes: TensorFlow's TensorProto.

    >>> tf.io.parse_tensor(tf.io.serialize_tensor([1, 2]), tf.int32).numpy().tolist()
    [1, 2]
    """
    from plimsoll.tf._io import tensor_proto as _tensor_proto

    x = _core.convert(tensor)

    def write(array: Any) -> Any:
        import numpy as np

        return np.array(_tensor_proto.write(np.asarray(array), x.dtype.name), object)

    return numpy_call(write, [x], _types.string, [], name)


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """Its inverse; InvalidArgumentError if it is of another dtype.

    >>> tf.io.parse_tensor(tf.io.serialize_tensor('a'), tf.string).numpy()
    b'a'
    """
    from plimsoll.tf._io import tensor_proto as _tensor_proto

    dtype = _types.as_dtype(out_type)

    def parse(data: Any) -> Any:
        try:
            found, array = _tensor_proto.read(data.item())
        except ValueError as error:
            invalid(f"Could not parse `serialized` as TensorProto: {error}")
        if found != dtype.name:
            invalid(f"Type mismatch between parsed tensor ({found}) and dtype ({dtype.name})")
        return array

    return numpy_call(parse, [tensor(serialized)], dtype, None, name)


# ---- CSV ----


def decode_csv(records: Any, record_defaults: Sequence[Any], field_delim: str = ",",
               use_quote_delim: bool = True, na_value: str = "", select_cols: Any = None,
               name: str | None = None) -> list[Tensor]:
    """Fields of lines, one tensor for each; an empty field is its default.

    >>> [field.numpy().tolist() for field in tf.io.decode_csv(['1,a', ',b'], [[7], ['']])]
    [[1, 7], [b'a', b'b']]
    """
    defaults = [_default(value) for value in record_defaults]
    x, columns = tensor(records), None if select_cols is None else static(select_cols)
    if columns is not None and len(columns) != len(defaults):
        raise ValueError(f"{len(columns)} columns are selected, and {len(defaults)} have defaults")

    def decode(lines: Any) -> Any:
        import numpy as np

        lines = np.asarray(lines)
        rows = [_row(line, field_delim, use_quote_delim, columns, len(defaults), i)
                for i, line in enumerate(lines.ravel().tolist())]
        out = []
        for at, (dtype, default) in enumerate(defaults):
            kind = object if dtype == _types.string else dtype.as_numpy_dtype
            array = np.empty(len(rows), kind)
            for i, row in enumerate(rows):
                array[i] = _field(row[at], dtype, default, na_value, at, i)
            out.append(array.reshape(lines.shape))
        return out

    return numpy_calls(decode, [x], [(dtype, dims(x)) for dtype, _ in defaults], name)


def _default(value: Any) -> tuple[Any, Any]:
    """dtype and default, None if the field must be there."""
    if isinstance(value, _types.DType) or (isinstance(value, type)):
        return _types.as_dtype(value), None
    x = tensor(value)
    known = static(x)
    if isinstance(known, list):
        known = known[0] if known else None
    return x.dtype, known


def _row(line: bytes, delimiter: str, quotes: bool, columns: Any, n: int, number: int) -> list[str]:
    import csv

    text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
    how = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    fields = next(csv.reader([text], delimiter=delimiter, quoting=how, strict=quotes), [""])
    if columns is None and len(fields) != n:
        invalid(f"Expect {n} fields but have {len(fields)} in record {number}")
    if columns is None:
        return fields
    if max(columns) >= len(fields):
        invalid(f"Expect more than {max(columns)} fields but have {len(fields)} in record {number}")
    return [fields[i] for i in columns]


def _field(text: str, dtype: Any, default: Any, na_value: str, at: int, number: int) -> Any:
    if text in ("", na_value):
        if default is None:
            invalid(f"Field {at} is required but missing in record {number}!")
        return default
    if dtype == _types.string:
        return text.encode("utf-8", "surrogateescape")
    try:
        return float(text) if dtype.is_floating else int(text)
    except ValueError:
        invalid(f"Field {at} in record {number} is not a valid {dtype.name}: {text}")
