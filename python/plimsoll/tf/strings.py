# SPDX-License-Identifier: Apache-2.0
"""tf.strings: texts are bytes. What the library has no op for is done by Python, element by
element."""
from __future__ import annotations

import re
from typing import Any, Callable, Sequence

from plimsoll import _core
from plimsoll.tf import _not_implemented
from plimsoll.tf._values import types as _types
from plimsoll.tf._values.convert import (
    Tensor, axes_of, axis_in, dims, invalid, now, numpy_call, static, tensor, tensors,
)
from plimsoll.tf._ops.elementwise import named
from plimsoll.tf._ops.string_unicode import (  # noqa: F401
    ngrams, unicode_decode, unicode_decode_with_offsets, unicode_encode, unicode_split,
    unicode_split_with_offsets, unicode_transcode, unsorted_segment_join,
)

__all__ = [
    "as_string", "bytes_split", "format", "join", "length", "lower", "ngrams", "reduce_join",
    "regex_full_match", "regex_replace", "split", "strip", "substr", "to_hash_bucket_fast",
    "to_number", "unicode_decode", "unicode_decode_with_offsets", "unicode_encode",
    "unicode_split", "unicode_split_with_offsets", "unicode_transcode", "unsorted_segment_join", "upper",
]

__getattr__ = _not_implemented.getter("tf.strings")
_op = _core.op


def _each(fn: Callable[[Any], Any], x: Any, name: str | None, dtype: Any = _types.string) -> Tensor:
    """`fn` of every element: bytes, or a number."""
    x = tensor(x)

    def run(array: Any) -> Any:
        import numpy as np

        array = np.asarray(array)
        kind = object if dtype == _types.string else dtype.as_numpy_dtype
        out = np.empty(array.shape, kind)
        for i, value in enumerate(array.ravel().tolist()):
            out.flat[i] = fn(value)
        return out

    return numpy_call(run, [x], dtype, dims(x), name)


def _unit(unit: str) -> bool:
    """Are characters counted, not bytes?"""
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise ValueError(f"unit is '{unit}': 'BYTE' or 'UTF8_CHAR'")
    return unit == "UTF8_CHAR"


def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """Bytes, or characters, of each; int32.

    >>> tf.strings.length(['Hello', 'TF']).numpy().tolist()
    [5, 2]
    """
    if _unit(unit):
        return _each(lambda text: len(text.decode("utf-8", "replace")), input, name, _types.int32)
    return _op("cast", [_op("string_length", [tensor(input)], None)], {"dtype": _types.int32}, name)


def join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Tensor:
    """The inputs' elements, one behind the other.

    >>> tf.strings.join(['abc', 'def'], separator=' ').numpy()
    b'abc def'
    """
    text = separator.decode() if isinstance(separator, bytes) else separator
    return _op("string_join", tensors(inputs), {"separator": text}, name)


def split(input: Any, sep: str | None = None, maxsplit: int = -1,
          name: str | None = None) -> Tensor:
    """The parts of one text, between blanks or `sep`.

    >>> tf.strings.split('a b  c').numpy().tolist()
    [b'a', b'b', b'c']
    """
    x = tensor(input)
    known = dims(x)
    if known is None or len(known) > 0:
        raise NotImplementedError("tf.strings.split of several texts gives a RaggedTensor, which "
                                  "plimsoll.tf has not: split them one by one, in a map")
    text = (sep.decode() if isinstance(sep, bytes) else sep) or ""
    if maxsplit < 0:
        return now(_op("string_split", [x], {"separator": text}, name))

    def parts(value: Any) -> Any:
        import numpy as np

        found = bytes(value.item()).split(text.encode() or None, maxsplit)
        out = np.empty(len(found), object)
        out[:] = found
        return out

    return numpy_call(parts, [x], _types.string, [None], name)


def bytes_split(input: Any, name: str | None = None) -> Tensor:
    """The bytes of one text.

    >>> tf.strings.bytes_split('abc').numpy().tolist()
    [b'a', b'b', b'c']
    """
    x = tensor(input)
    if dims(x) != ():
        raise NotImplementedError("tf.strings.bytes_split of several texts gives a RaggedTensor, "
                                  "which plimsoll.tf has not: split them one by one, in a map")

    def parts(value: Any) -> Any:
        import numpy as np

        text = bytes(value.item())
        out = np.empty(len(text), object)
        out[:] = [text[i:i + 1] for i in range(len(text))]
        return out

    return numpy_call(parts, [x], _types.string, [None], name)


def to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """The bucket of each text, by its FarmHash, as everywhere: int64.

    >>> tf.strings.to_hash_bucket_fast(["Hello", "TensorFlow", "2.x"], 3).numpy().tolist()
    [0, 2, 2]
    """
    if num_buckets < 1:
        invalid(f"num_buckets is {num_buckets}: at least 1")
    from plimsoll.tf._ops.string_fingerprint import fingerprint64

    return _each(lambda text: fingerprint64(text) % num_buckets, input, name, _types.int64)


def strip(input: Any, name: str | None = None) -> Tensor:
    """Without blanks at both ends.

    >>> tf.strings.strip([' a ']).numpy().tolist()
    [b'a']
    """
    return _op("string_strip", [tensor(input)], None, name)


def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """So many bytes, or characters, from `pos` on; a negative one counts from the end.

    >>> tf.strings.substr(['Hello', 'World'], 1, 3).numpy().tolist()
    [b'ell', b'orl']
    """
    x, chars = tensor(input), _unit(unit)
    if not chars and static(pos) == 0 and isinstance(static(len), int):
        return _op("string_substr", [x], {"start": 0, "length": max(static(len), 0)}, name)

    def part(text: Any, start: int, n: int) -> bytes:
        line = text.decode("utf-8", "replace") if chars else text
        size = line.__len__()
        first = start + size if start < 0 else start
        if not 0 <= first <= size:
            shown = text[:60].decode("utf-8", "replace")
            invalid(f"pos {start} out of range for string b'{shown}'")
        cut = line[first:first + max(n, 0)]
        return cut.encode() if chars else cut

    def run(texts: Any, starts: Any, counts: Any) -> Any:
        import numpy as np

        texts, starts, counts = np.broadcast_arrays(texts, starts, counts)
        out = np.empty(texts.shape, object)
        for i, (text, start, n) in enumerate(zip(texts.flat, starts.flat, counts.flat)):
            out.flat[i] = part(text, int(start), int(n))
        return out

    return numpy_call(run, [x, tensor(pos), tensor(len)], _types.string, dims(x), name)


def to_number(input: Any, out_type: Any = _types.float32, name: str | None = None) -> Tensor:
    """The numbers that the texts are.

    >>> tf.strings.to_number(['1.5', '2']).numpy().tolist()
    [1.5, 2.0]
    """
    return now(_op("string_to_number", [tensor(input)], {"dtype": _types.as_dtype(out_type)}, name))


def as_string(input: Any, precision: int = -1, scientific: bool = False, shortest: bool = False,
              width: int = -1, fill: str = "", name: str | None = None) -> Tensor:
    """Numbers as texts.

    >>> tf.strings.as_string([3, 2]).numpy().tolist()
    [b'3', b'2']
    >>> tf.strings.as_string(3.1415926, precision=2).numpy()
    b'3.14'
    """
    x = tensor(input)
    if x.dtype == _types.string:
        return x
    if fill not in ("", " ", "0", "-", "+"):
        raise ValueError(f"as_string: 'fill' is '{fill}': one character")
    real = x.dtype.is_floating
    if not real and (scientific or shortest or precision >= 0):
        invalid("as_string: precision, scientific and shortest are for floating-point numbers, "
                f"not {x.dtype.name}")
    letter = "e" if scientific else "g" if shortest else "f"
    layout = "%" + fill + (str(width) if width > -1 else "")
    layout += (f".{precision}" if precision > -1 else "") + (letter if real else "d")

    def text(value: Any) -> bytes:
        if x.dtype == _types.bool:
            return b"true" if value else b"false"
        return (layout % value).encode()

    return _each(text, x, name)


def _folded(name: str, method: str, doc: str, example: str) -> Callable[..., Tensor]:
    def function(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
        if encoding not in ("", "utf-8"):
            raise ValueError(f"encoding is '{encoding}': '' (ASCII) or 'utf-8'")
        if encoding:
            return _each(lambda text: getattr(text.decode("utf-8", "replace"), method)().encode(),
                         input, name)
        return _each(lambda text: getattr(text, method)(), input, name)

    return named(function, name, doc, example, __name__)


lower = _folded("lower", "lower", "With small letters.", "strings.lower(['ABC']) => [b'abc']")
upper = _folded("upper", "upper", "With capital letters.", "strings.upper(['abc']) => [b'ABC']")


def _pattern(pattern: Any, what: str) -> re.Pattern[bytes]:
    known = static(pattern)
    if known is None:
        raise NotImplementedError(f"tf.strings.{what}: a pattern that is only known when it is run")
    known = known.encode() if isinstance(known, str) else known
    try:
        return re.compile(known)
    except re.error as error:
        invalid(f"Invalid pattern: {known.decode('utf-8', 'replace')}, error: {error}")


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Does the pattern match the whole text?

    >>> tf.strings.regex_full_match(['TF lib', 'lib TF'], '.*lib$').numpy().tolist()
    [True, False]
    """
    found = _pattern(pattern, "regex_full_match")
    return _each(lambda text: found.fullmatch(text) is not None, input, name, _types.bool)


def regex_replace(input: Any, pattern: Any, rewrite: Any, replace_global: bool = True,
                  name: str | None = None) -> Tensor:
    r"""Replaces each match of the pattern; \1 is its first group, \0 all of it.

    >>> tf.strings.regex_replace('Text <b>bold</b>', '<[^>]+>', ' ').numpy()
    b'Text  bold '
    """
    found, new = _pattern(pattern, "regex_replace"), static(rewrite)
    new = new.encode() if isinstance(new, str) else new
    new = re.sub(rb"\\(\d)", rb"\\g<\1>", new)
    count = 0 if replace_global else 1
    return _each(lambda text: found.sub(new, text, count), input, name)


def _axes_among(axes: list[int] | None, n: int) -> list[int]:
    if axes is None:
        return list(range(n))
    chosen = [axis_in(axis, n, "strings.reduce_join") for axis in axes]
    if len(set(chosen)) != len(chosen):
        invalid(f"strings.reduce_join: axes {axes}: each is named once")
    return chosen


def reduce_join(inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "",
                name: str | None = None) -> Tensor:
    """The elements along some axes as one text.

    >>> tf.strings.reduce_join([['abc', '123'], ['def', '456']], axis=1).numpy().tolist()
    [b'abc123', b'def456']
    """
    x, axes = tensor(inputs), axes_of(axis, "strings.reduce_join")
    between = separator.encode() if isinstance(separator, str) else separator

    def run(array: Any) -> Any:
        import numpy as np

        array = np.asarray(array)
        chosen = _axes_among(axes, array.ndim)
        left = [i for i in range(array.ndim) if i not in chosen]
        rows = array.transpose(left + chosen)
        n = int(np.prod([array.shape[i] for i in chosen], dtype=np.int64))
        rows = rows.reshape([array.shape[i] for i in left] + [n])
        out = np.empty(rows.shape[:-1], object)
        for place in np.ndindex(out.shape):
            out[place] = between.join(rows[place].tolist())
        if keepdims:
            out = out.reshape([1 if i in chosen else array.shape[i] for i in range(array.ndim)])
        return out

    known, shape = dims(x), None
    if known is not None:
        chosen = _axes_among(axes, len(known))
        shape = [1 if i in chosen else d for i, d in enumerate(known)
                 if keepdims or i not in chosen]
    return numpy_call(run, [x], _types.string, shape, name)


def format(template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3,
           name: str | None = None) -> Tensor:
    """A text with tensors in it; of each axis the first and last `summarize` elements.

    >>> tf.strings.format('x is {}', tf.constant([1, 2])).numpy()
    b'x is [1 2]'
    """
    values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    pieces = template.split(placeholder)
    if len(pieces) != len(values) + 1:
        raise ValueError(f"{len(pieces) - 1} placeholder(s) in template does not match "
                         f"{len(values)} tensor(s) provided as input")

    def run(*arrays: Any) -> Any:
        import numpy as np

        out = pieces[0]
        for array, piece in zip(arrays, pieces[1:]):
            out += _summary(np.asarray(array), summarize) + piece
        return np.array(out.encode(), object)

    return numpy_call(run, [tensor(value) for value in values], _types.string, [], name)


def _summary(array: Any, most: int) -> str:
    if isinstance(array, bytes):
        return f'"{array.decode("utf-8", "replace")}"'
    if array.ndim == 0:
        return _summary(array.item(), most) if array.dtype == object else _number(array)
    rows = list(array)
    if most >= 0 and len(rows) > 2 * most:
        parts = [_summary(row, most) for row in rows[:most]] + ["..."]
        parts += [_summary(row, most) for row in rows[-most:]]
    else:
        parts = [_summary(row, most) for row in rows]
    return "[" + ("\n " if array.ndim > 1 else " ").join(parts) + "]"


def _number(array: Any) -> str:
    """The text as C++ streams write it: 1 for 1.0 and for True."""
    if array.dtype == bool:
        return str(int(array))
    return f"{array.item():g}" if array.dtype.kind == "f" else str(array.item())
