# SPDX-License-Identifier: Apache-2.0
"""tf.lookup: tables of keys and values, that are filled once.

A lookup is a dict's, in Python, element by element; in a traced function it takes the GIL.

    >>> import plimsoll.tf as tf
    >>> classes = tf.lookup.KeyValueTensorInitializer(["cat", "dog"], [0, 1])
    >>> table = tf.lookup.StaticHashTable(classes, default_value=-1)
    >>> table.lookup(tf.constant(["dog", "cow"])).numpy().tolist()
    [1, -1]
"""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from plimsoll import _core
from plimsoll.tf import _not_implemented
from plimsoll.tf._graph import context as _context
from plimsoll.tf._values import types as _types
from plimsoll.tf._values.convert import Tensor, dims, invalid, numpy_call, tensor
from plimsoll.tf._ops.string_fingerprint import fingerprint64

__all__ = [
    "KeyValueTensorInitializer", "StaticHashTable", "StaticVocabularyTable", "TextFileIndex",
    "TextFileInitializer",
]

__getattr__ = _not_implemented.getter("tf.lookup")


class TextFileIndex:
    """Which part of a line is a key, or a value: a column's number, or one of these.

    >>> tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    (-2, -1)
    """

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class KeyValueTensorInitializer:
    """Keys and their values, as two vectors.

    >>> given = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2], value_dtype=tf.int64)
    >>> given.key_dtype, given.value_dtype
    (tf.string, tf.int64)
    """

    def __init__(self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None,
                 name: Optional[str] = None) -> None:
        with _context.entered(None):
            self._keys = _core.convert(keys, dtype=key_dtype)
            self._values = _core.convert(values, dtype=value_dtype)
        if self._keys.shape.rank != 1 or self._keys.shape != self._values.shape:
            raise ValueError(f"keys and values are vectors of one length, not of shapes "
                             f"{self._keys.shape} and {self._values.shape}")

    @property
    def key_dtype(self) -> Any:
        return self._keys.dtype

    @property
    def value_dtype(self) -> Any:
        return self._values.dtype

    def _pairs(self) -> List[Tuple[Any, Any]]:
        return list(zip(self._keys.numpy().tolist(), self._values.numpy().tolist()))


class TextFileInitializer:
    """Keys and values from the lines of a file.

    >>> import tempfile
    >>> words = tempfile.NamedTemporaryFile("w", suffix=".txt")
    >>> _ = words.write("cat\\ndog\\n"), words.flush()
    >>> lines = tf.lookup.TextFileInitializer(
    ...     words.name, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
    ...     tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
    >>> tf.lookup.StaticHashTable(lines, -1)[tf.constant("dog")].numpy()
    1
    """

    def __init__(self, filename: Any, key_dtype: Any, key_index: int, value_dtype: Any,
                 value_index: int, vocab_size: Optional[int] = None, delimiter: str = "\t",
                 name: Optional[str] = None, value_index_offset: int = 0) -> None:
        self.key_dtype, self.value_dtype = _types.as_dtype(key_dtype), _types.as_dtype(value_dtype)
        for index, dtype in ((key_index, self.key_dtype), (value_index, self.value_dtype)):
            if index < -2:
                raise ValueError(f"a column {index}: 0 or more, or one of TextFileIndex")
            if index == TextFileIndex.LINE_NUMBER and dtype != _types.int64:
                raise ValueError(f"a line's number is tf.int64, not {dtype!r}")
            if index == TextFileIndex.WHOLE_LINE and dtype != _types.string:
                raise ValueError(f"a whole line is tf.string, not {dtype!r}")
        with _context.entered(None):
            self._path = bytes(_core.convert(filename, dtype=_types.string).numpy())
        self._key, self._value = (key_index, 0), (value_index, value_index_offset)
        self._n, self._delimiter = vocab_size, delimiter.encode()

    def _pairs(self) -> List[Tuple[Any, Any]]:
        from plimsoll.tf.io import read_file

        with _context.entered(None):
            lines = read_file(self._path).numpy().splitlines()
        if self._n is not None and len(lines) < self._n:
            invalid(f"{self._path.decode(errors='replace')!r} has {len(lines)} lines, and "
                    f"vocab_size is {self._n}")
        return [(self._part(number, line, self._key, self.key_dtype),
                 self._part(number, line, self._value, self.value_dtype))
                for number, line in enumerate(lines[:self._n])]

    def _part(self, number: int, line: bytes, which: Tuple[int, int], dtype: Any) -> Any:
        index, offset = which
        if index == TextFileIndex.LINE_NUMBER:
            return number + offset
        if index == TextFileIndex.WHOLE_LINE:
            return line
        parts = line.split(self._delimiter)
        try:
            return parts[index] if dtype == _types.string else _number(parts[index], dtype)
        except (IndexError, ValueError):
            invalid(f"line {number + 1} of {self._path.decode(errors='replace')!r} has no "
                    f"{dtype.name} in column {index}: {line!r}")


def _number(text: bytes, dtype: Any) -> Any:
    return int(text) if dtype.is_integer else float(text)


class StaticHashTable:
    """A table that is filled when it is made.

    >>> words = tf.lookup.KeyValueTensorInitializer(["a", "b", "c"], [0, 1, 2])
    >>> table = tf.lookup.StaticHashTable(words, default_value=-1)
    >>> table.lookup(tf.constant([["c", "z"]])).numpy().tolist()
    [[2, -1]]
    """

    def __init__(self, initializer: Any, default_value: Any, name: Optional[str] = None,
                 experimental_is_anonymous: bool = False) -> None:
        self._name = name or "hash_table"
        self.key_dtype, self.value_dtype = initializer.key_dtype, initializer.value_dtype
        with _context.entered(None):
            default = _core.convert(default_value, dtype=self.value_dtype)
            if default.shape.rank != 0:
                raise ValueError(f"default_value is a scalar, not of shape {default.shape}")
            self._default = default.numpy().tolist() if default.dtype != _types.string else (
                bytes(default.numpy()))
        self._of = _filled(initializer._pairs())

    @property
    def name(self) -> str:
        return self._name

    @property
    def default_value(self) -> Any:
        return _core.constant(self._default, self.value_dtype)

    def size(self, name: Optional[str] = None) -> Tensor:
        """How many keys there are; int64."""
        return _core.constant(len(self._of), _types.int64)

    def lookup(self, keys: Any, name: Optional[str] = None) -> Tensor:
        """The value of each key, or the default."""
        of, default = self._of, self._default
        return _looked_up(self, keys, lambda key: of.get(key, default), name)

    def __getitem__(self, keys: Any) -> Tensor:
        return self.lookup(keys)

    def export(self, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
        """All keys, and their values, in the same order."""
        keys, values = list(self._of), list(self._of.values())
        return _core.constant(keys, self.key_dtype), _core.constant(values, self.value_dtype)


def _filled(pairs: List[Tuple[Any, Any]]) -> Dict[Any, Any]:
    of: Dict[Any, Any] = {}
    for key, value in pairs:
        if of.setdefault(key, value) != value:
            invalid(f"the table has {key!r} twice, with {of[key]!r} and {value!r}")
    return of


def _looked_up(table: Any, keys: Any, find: Any, name: Optional[str]) -> Tensor:
    x = tensor(keys) if isinstance(keys, Tensor) else _core.convert(keys, dtype=table.key_dtype)
    if x.dtype != table.key_dtype:
        raise TypeError(f"Signature mismatch. Keys must be dtype {table.key_dtype!r}, got "
                        f"{x.dtype!r}.")
    dtype = table.value_dtype

    def run(array: Any) -> Any:
        import numpy as np

        array = np.asarray(array)
        out = np.empty(array.shape, object if dtype == _types.string else dtype.as_numpy_dtype)
        out.flat[:] = [find(key) for key in array.ravel().tolist()]
        return out

    return numpy_call(run, [x], dtype, dims(x), name)


class StaticVocabularyTable:
    """Ids of words: those of the table, and behind them buckets for all others.

    A word that is not in the table has the id `size of the table + fingerprint % num_oov_buckets`.

    >>> words = tf.lookup.KeyValueTensorInitializer(["a", "b"], [0, 1], value_dtype=tf.int64)
    >>> table = tf.lookup.StaticVocabularyTable(words, num_oov_buckets=1)
    >>> table.lookup(tf.constant(["b", "z"])).numpy().tolist(), table.size().numpy()
    ([1, 2], 3)
    """

    def __init__(self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None,
                 name: Optional[str] = None, experimental_is_anonymous: bool = False) -> None:
        if num_oov_buckets <= 0:
            raise ValueError("`num_oov_buckets` must be > 0; without buckets: StaticHashTable")
        self._name = name or "string_to_index"
        self._n_buckets = num_oov_buckets
        self._of: Dict[Any, Any] = {}
        own = None
        if initializer is not None:
            if initializer.value_dtype != _types.int64:
                raise TypeError("Invalid `value_dtype`, expected tf.int64 but got "
                                f"{initializer.value_dtype!r}.")
            self._of, own = _filled(initializer._pairs()), initializer.key_dtype
        wanted = None if lookup_key_dtype is None else _types.as_dtype(lookup_key_dtype)
        self.key_dtype = wanted or own or _types.string
        self.value_dtype = _types.int64
        if self.key_dtype not in (_types.string, _types.int64, _types.int32):
            raise TypeError(f"keys are texts or integers, not {self.key_dtype!r}")

    @property
    def name(self) -> str:
        return self._name

    def size(self, name: Optional[str] = None) -> Tensor:
        """How many ids there are; int64."""
        return _core.constant(len(self._of) + self._n_buckets, _types.int64)

    def lookup(self, keys: Any, name: Optional[str] = None) -> Tensor:
        """The id of each key; int64."""
        of, n_buckets = self._of, self._n_buckets

        def find(key: Any) -> int:
            found = of.get(key)
            if found is not None:
                return found
            text = key if isinstance(key, bytes) else str(key).encode()
            return len(of) + fingerprint64(text) % n_buckets

        return _looked_up(self, keys, find, name)

    def __getitem__(self, keys: Any) -> Tensor:
        return self.lookup(keys)
