# SPDX-License-Identifier: Apache-2.0
"""tf.strings' functions for characters and substrings, in Python. Several texts
would give a RaggedTensor where TensorFlow's functions give one row for each: that is refused."""
from __future__ import annotations

import codecs
from typing import Any, NamedTuple

from plimsoll.tf._values import types as _types
from plimsoll.tf._values.convert import Tensor, dims, invalid, numpy_call, numpy_calls, one_int, tensor

__all__ = [
    "ngrams", "unicode_decode", "unicode_decode_with_offsets", "unicode_encode", "unicode_split",
    "unicode_split_with_offsets", "unicode_transcode", "unsorted_segment_join",
]

_CONTROLS = set(range(0x20)) | set(range(0x7F, 0xA0))


def _codec(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise ValueError(f"encoding '{encoding}' is not known") from None


def _handler(errors: str, replacement_char: int) -> str:
    """The name of the handler that Python calls for bytes that are not a text."""
    if errors not in ("replace", "strict", "ignore"):
        raise ValueError(f"errors is '{errors}': 'strict', 'replace' or 'ignore'")
    if errors != "replace":
        return errors
    name = f"plimsoll.{replacement_char}"
    codecs.register_error(name, lambda error: (chr(replacement_char), error.end))
    return name


def _decoder(encoding: str, errors: str, replacement_char: int, replace_controls: bool) -> Any:
    codec, handler = _codec(encoding), _handler(errors, replacement_char)

    def decode(data: bytes) -> str:
        try:
            text = data.decode(codec, handler)
        except UnicodeDecodeError as error:
            invalid(f"Invalid formatting on input string: {error}")
        if replace_controls:
            text = "".join(chr(replacement_char) if ord(c) in _CONTROLS else c for c in text)
        return text

    return decode


def _objects(values: Any) -> Any:
    import numpy as np

    out = np.empty(len(values), object)
    out[:] = values
    return out


def _one_text(name: str, input: Any) -> Tensor:
    x = tensor(input)
    if dims(x) != ():
        raise NotImplementedError(f"tf.strings.{name} of several texts gives a RaggedTensor, which "
                                  "plimsoll.tf has not: take them one by one, in a map")
    return x


class _Decoded(NamedTuple):
    values: Any
    offsets: Any


def _pieces(name: str, input: Any, encoding: str, errors: str, replacement_char: int,
            replace_controls: bool, as_numbers: bool, label: str | None) -> _Decoded:
    """Characters as numbers or as texts, and the bytes that they begin at."""
    decode = _decoder(encoding, errors, replacement_char, replace_controls)
    codec = _codec(encoding)

    def run(array: Any) -> Any:
        import numpy as np

        text = decode(bytes(array.item()))
        parts = [character.encode(codec, "surrogatepass") for character in text]
        starts = np.cumsum([0] + [len(part) for part in parts])[:-1].astype(np.int64)
        values = np.array([ord(c) for c in text], np.int32) if as_numbers else _objects(parts)
        return [values, starts]

    dtype = _types.int32 if as_numbers else _types.string
    return _Decoded(*numpy_calls(run, [_one_text(name, input)],
                                 [(dtype, [None]), (_types.int64, [None])], label))


def unicode_decode(input: Any, input_encoding: str, errors: str = "replace",
                   replacement_char: int = 65533, replace_control_characters: bool = False,
                   name: str | None = None) -> Tensor:
    """The numbers of a text's characters.

    >>> tf.strings.unicode_decode('h\\u00e9', 'UTF-8').numpy().tolist()
    [104, 233]
    """
    return _pieces("unicode_decode", input, input_encoding, errors, replacement_char,
                   replace_control_characters, True, name).values


def unicode_decode_with_offsets(input: Any, input_encoding: str, errors: str = "replace",
                                replacement_char: int = 65533,
                                replace_control_characters: bool = False,
                                name: str | None = None) -> Any:
    """The same, and the byte at which each begins.

    >>> numbers, starts = tf.strings.unicode_decode_with_offsets('\\u00e9h', 'UTF-8')
    >>> starts.numpy().tolist()
    [0, 2]
    """
    return tuple(_pieces("unicode_decode_with_offsets", input, input_encoding, errors,
                         replacement_char, replace_control_characters, True, name))


def unicode_split(input: Any, input_encoding: str, errors: str = "replace",
                  replacement_char: int = 65533, name: str | None = None) -> Tensor:
    """A text's characters.

    >>> tf.strings.unicode_split('abc', 'UTF-8').numpy().tolist()
    [b'a', b'b', b'c']
    """
    return _pieces("unicode_split", input, input_encoding, errors, replacement_char, False, False,
                   name).values


def unicode_split_with_offsets(input: Any, input_encoding: str, errors: str = "replace",
                               replacement_char: int = 65533, name: str | None = None) -> Any:
    """The same, and the byte at which each begins.

    >>> characters, starts = tf.strings.unicode_split_with_offsets('abc', 'UTF-8')
    >>> starts.numpy().tolist()
    [0, 1, 2]
    """
    return tuple(_pieces("unicode_split_with_offsets", input, input_encoding, errors,
                         replacement_char, False, False, name))


def _encode(text: str, encoding: str, errors: str, replacement_char: int) -> bytes:
    codec = _codec(encoding)
    try:
        return text.encode(codec)
    except UnicodeEncodeError as error:
        if errors == "strict":
            invalid(f"a character cannot be encoded: {error}")
        instead = chr(replacement_char) if errors == "replace" else ""
        return "".join(instead if 0xD800 <= ord(c) < 0xE000 else c for c in text).encode(codec)


def unicode_encode(input: Any, output_encoding: str, errors: str = "replace",
                   replacement_char: int = 65533, name: str | None = None) -> Tensor:
    """Numbers of characters, along the last axis, as texts.

    >>> tf.strings.unicode_encode([72, 105], 'UTF-8').numpy()
    b'Hi'
    """
    _handler(errors, replacement_char)
    x = tensor(input)

    def character(number: int) -> str:
        if 0 <= number < 0x110000 and not 0xD800 <= number < 0xE000:
            return chr(number)
        if errors == "strict":
            invalid(f"{number} is not a character")
        return chr(replacement_char) if errors == "replace" else ""

    def run(array: Any) -> Any:
        import numpy as np

        out = np.empty(array.shape[:-1], object)
        for place in np.ndindex(out.shape):
            text = "".join(map(character, array[place].tolist()))
            out[place] = _encode(text, output_encoding, errors, replacement_char)
        return out

    known = dims(x)
    if known == ():
        raise ValueError("input_tensor's rank must be at least 1.")
    return numpy_call(run, [x], _types.string, None if known is None else known[:-1], name)


def unicode_transcode(input: Any, input_encoding: str, output_encoding: str,
                      errors: str = "replace", replacement_char: int = 65533,
                      replace_control_characters: bool = False, name: str | None = None) -> Tensor:
    """Texts in another encoding.

    >>> tf.strings.unicode_transcode(['a'], 'UTF-8', 'UTF-16-BE').numpy().tolist()
    [b'\\x00a']
    """
    from plimsoll.tf.strings import _each

    decode = _decoder(input_encoding, errors, replacement_char, replace_control_characters)
    _codec(output_encoding)
    return _each(lambda data: _encode(decode(data), output_encoding, errors, replacement_char),
                 input, name)


def ngrams(data: Any, ngram_width: Any, separator: str = " ", pad_values: Any = None,
           padding_width: int | None = None, preserve_short_sequences: bool = False,
           name: str | None = None) -> Tensor:
    """Neighbours along the last axis, so many at a time, as one text each.

    >>> tf.strings.ngrams(['A', 'B', 'C'], 2).numpy().tolist()
    [b'A B', b'B C']
    """
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    if any(width < 1 for width in widths):
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    pads = (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) else pad_values
    left, right = (p.encode() if isinstance(p, str) else p for p in pads or (b"", b""))
    between = separator.encode() if isinstance(separator, str) else separator

    def of_row(row: list) -> list:
        found = []
        for width in widths:
            most = width - 1
            pad = 0 if pads is None else most if padding_width is None else min(padding_width, most)
            padded = [left] * pad + row + [right] * pad
            found += [between.join(padded[i:i + width]) for i in range(len(padded) - width + 1)]
        return found or ([between.join(row)] if preserve_short_sequences and row else [])

    def run(array: Any) -> Any:
        import numpy as np

        n_rows = int(np.prod(array.shape[:-1], dtype=np.int64))  # not -1: there may be no elements
        rows = [of_row(row.tolist()) for row in array.reshape(n_rows, array.shape[-1])]
        out = np.empty((len(rows), len(rows[0]) if rows else 0), object)
        for i, row in enumerate(rows):
            out[i, :] = row
        return out.reshape(array.shape[:-1] + out.shape[1:])

    x = tensor(data)
    known = dims(x)
    if known == ():
        invalid("ngrams: a vector is needed, and a scalar was given")
    return numpy_call(run, [x], _types.string, None if known is None else (*known[:-1], None), name)


def unsorted_segment_join(inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "",
                          name: str | None = None) -> Tensor:
    """Texts that have the same id, joined to one of `num_segments`; a negative id is left out.

    >>> tf.strings.unsorted_segment_join(['a', 'b', 'c'], [1, 0, 1], 2).numpy().tolist()
    [b'b', b'ac']
    """
    x, ids = tensor(inputs), tensor(segment_ids)
    n = one_int(num_segments, "strings.unsorted_segment_join: num_segments")
    between = separator.encode() if isinstance(separator, str) else separator

    def run(array: Any, which: Any) -> Any:
        import numpy as np

        if array.shape[:which.ndim] != which.shape:
            invalid(f"segment ids of shape {list(which.shape)} for {list(array.shape)}")
        if which.size and which.max() >= n:
            invalid(f"segment id {which.max()} is not one of {n}")
        rest = array.shape[which.ndim:]
        rows = array.reshape((which.size, int(np.prod(rest, dtype=np.int64))))
        out = np.empty((n, rows.shape[1]), object)
        for i in range(n):
            for k in range(rows.shape[1]):
                out[i, k] = between.join(rows[which.ravel() == i, k].tolist())
        return out.reshape((n, *array.shape[which.ndim:]))

    shape = None
    if dims(x) is not None and dims(ids) is not None:
        shape = (n, *dims(x)[len(dims(ids)):])
    return numpy_call(run, [x, ids], _types.string, shape, name)
