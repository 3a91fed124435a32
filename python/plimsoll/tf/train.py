# SPDX-License-Identifier: Apache-2.0
"""tf.train: Example and its parts, as in TFRecord files.

    >>> import plimsoll.tf as tf
    >>> feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
    >>> data = example.SerializeToString()
    >>> list(tf.train.Example.FromString(data).features.feature["x"].int64_list.value)
    [1, 2]
"""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import _not_implemented
from ._io import protobuf as _protobuf

__all__ = [
    "BytesList",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
]


class _Message:
    """The base of all messages: serialization, comparison, printing."""

    _fields: Tuple[str, ...] = ()

    def SerializeToString(self, deterministic: Optional[bool] = None) -> bytes:
        raise NotImplementedError

    def MergeFromString(self, serialized: bytes) -> int:
        self._merge(bytes(serialized))
        return len(serialized)

    def ParseFromString(self, serialized: bytes) -> int:
        """Parses the bytes. _protobuf.DecodeError, a ValueError, if they are malformed."""
        self.Clear()
        return self.MergeFromString(serialized)

    @classmethod
    def FromString(cls, serialized: bytes) -> Any:
        message = cls()
        message.MergeFromString(serialized)
        return message

    def Clear(self) -> None:
        self.__init__()  # type: ignore[misc]

    def CopyFrom(self, other: Any) -> None:
        self.ParseFromString(other.SerializeToString())

    def MergeFrom(self, other: Any) -> None:
        self.MergeFromString(other.SerializeToString())

    def ByteSize(self) -> int:
        return len(self.SerializeToString())

    def IsInitialized(self) -> bool:
        return True

    def HasField(self, name: str) -> bool:
        if name not in self._fields:
            raise ValueError(f"Protocol message {type(self).__name__} has no field {name}.")
        return bool(getattr(self, name).ByteSize())

    def _merge(self, data: bytes) -> None:
        raise NotImplementedError

    def __eq__(self, other: Any) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.SerializeToString() == other.SerializeToString()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "\n".join(self._lines("")) + "\n"

    __str__ = __repr__

    def _lines(self, indent: str) -> Iterator[str]:
        raise NotImplementedError

    def __reduce__(self) -> Any:
        return type(self).FromString, (self.SerializeToString(),)


class _Values(list):
    """A repeated field: a list whose elements are checked."""

    def __init__(self, check: Callable[[Any], Any], values: Any = ()) -> None:
        self._check = check
        super().__init__(map(check, values))

    def append(self, value: Any) -> None:
        super().append(self._check(value))

    def extend(self, values: Any) -> None:
        super().extend(map(self._check, values))

    def __reduce__(self) -> Any:
        return list, (list(self),)


class _ValueList(_Message):
    """BytesList, FloatList, Int64List: `value`, in field 1."""

    def __init__(self, value: Any = None) -> None:
        self.value = _Values(self._check, () if value is None else value)

    @staticmethod
    def _check(value: Any) -> Any:
        raise NotImplementedError

    def _packed(self) -> bytes:
        raise NotImplementedError

    def SerializeToString(self, deterministic: Optional[bool] = None) -> bytes:
        return _protobuf.field(1, self._packed()) if self.value else b""

    def _merge(self, data: bytes) -> None:
        for number, kind, value in _protobuf.fields(data):
            if number == 1:
                list.extend(self.value, self._unpacked(kind, value))

    @staticmethod
    def _unpacked(kind: int, value: Any) -> List[Any]:
        raise NotImplementedError

    def _lines(self, indent: str) -> Iterator[str]:
        for value in self.value:
            yield f"{indent}value: {_shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return '"' + repr(value)[2:-1].replace('"', '\\"') + '"'
    return str(value)


class BytesList(_ValueList):
    """Texts, as bytes.

    >>> BytesList(value=[b"a", b"b"]).value[1]
    b'b'
    """

    @staticmethod
    def _check(value: Any) -> bytes:
        if hasattr(value, "numpy"):
            value = value.numpy()
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: bytes")

    def SerializeToString(self, deterministic: Optional[bool] = None) -> bytes:
        return b"".join(_protobuf.field(1, value) for value in self.value)

    @staticmethod
    def _unpacked(kind: int, value: Any) -> List[bytes]:
        return [value]


class FloatList(_ValueList):
    """float32 numbers.

    >>> FloatList(value=[0.5, 1]).value
    [0.5, 1.0]
    """

    @staticmethod
    def _check(value: Any) -> float:
        if isinstance(value, (str, bytes)):
            raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: float")
        number = float(value)
        try:
            return _protobuf.floats_of(_protobuf.packed_floats([number]))[0]
        except OverflowError:
            return float("inf") if number > 0 else float("-inf")

    def _packed(self) -> bytes:
        return _protobuf.packed_floats(self.value)

    @staticmethod
    def _unpacked(kind: int, value: Any) -> List[float]:
        return _protobuf.floats_of(value)


class Int64List(_ValueList):
    """int64 numbers; tensors of one, and bools, are taken for such.

    >>> Int64List(value=[1, -2]).value
    [1, -2]
    """

    @staticmethod
    def _check(value: Any) -> int:
        if getattr(getattr(value, "dtype", None), "name", None) == "bool":
            value = bool(value)  # of a tensor or an array, which cannot be an index
        try:
            number = value.__index__()
        except (AttributeError, TypeError):
            name = type(value).__name__
            raise TypeError(f"{value!r} has type {name}, but expected one of: int") from None
        if not -(1 << 63) <= number < 1 << 63:
            raise ValueError(f"Value out of range: {number}")
        return number

    def _packed(self) -> bytes:
        return _protobuf.packed_ints(self.value)

    @staticmethod
    def _unpacked(kind: int, value: Any) -> List[int]:
        return _protobuf.ints_of(kind, value)


class Feature(_Message):
    """One of bytes_list, float_list and int64_list: the last one set.

    >>> Feature(float_list=FloatList(value=[1.5])).WhichOneof("kind")
    'float_list'
    """

    _fields = ("bytes_list", "float_list", "int64_list")
    _kinds = (BytesList, FloatList, Int64List)

    def __init__(
        self,
        bytes_list: Optional[BytesList] = None,
        float_list: Optional[FloatList] = None,
        int64_list: Optional[Int64List] = None,
    ) -> None:
        self._kind: Optional[str] = None
        self._lists = {name: kind() for name, kind in zip(self._fields, self._kinds)}
        for name, given in zip(self._fields, (bytes_list, float_list, int64_list)):
            if given is not None:
                self._lists[name] = given
                self._kind = name

    bytes_list = property(lambda self: self._lists["bytes_list"])
    float_list = property(lambda self: self._lists["float_list"])
    int64_list = property(lambda self: self._lists["int64_list"])

    def WhichOneof(self, oneof_group: str = "kind") -> Optional[str]:
        filled = [name for name in self._fields if self._lists[name].value]
        return filled[-1] if filled and self._kind not in filled else self._kind

    def HasField(self, name: str) -> bool:
        if name not in self._fields:
            raise ValueError(f"Protocol message Feature has no field {name}.")
        return self.WhichOneof() == name

    def SerializeToString(self, deterministic: Optional[bool] = None) -> bytes:
        kind = self.WhichOneof()
        if kind is None:
            return b""
        return _protobuf.field(self._fields.index(kind) + 1, self._lists[kind].SerializeToString())

    def _merge(self, data: bytes) -> None:
        for number, _, value in _protobuf.fields(data):
            if 1 <= number <= len(self._fields):
                self._kind = self._fields[number - 1]
                self._lists[self._kind].MergeFromString(value)

    def _lines(self, indent: str) -> Iterator[str]:
        kind = self.WhichOneof()
        if kind is not None:
            yield f"{indent}{kind} {{"
            yield from self._lists[kind]._lines(indent + "  ")
            yield f"{indent}}}"


class _Map(dict):
    """A map whose missing values are made when they are first read."""

    def __init__(self, kind: Any, values: Any = None) -> None:
        super().__init__(values or {})
        self._kind = kind
        for key, value in self.items():
            if not isinstance(key, (str, bytes)) or not isinstance(value, kind):
                raise TypeError(
                    f"{key!r}: {value!r}: it takes texts and {kind.__name__} messages"
                )

    def __missing__(self, key: str) -> Any:
        made = self[key] = self._kind()
        return made

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class _Entries(_Message):
    """Messages by name, in field 1: a key in its field 1, a message in its field 2."""

    _member = ""
    _kind: Any = None

    def _map(self) -> Dict[str, Any]:
        return getattr(self, self._member)

    def SerializeToString(self, deterministic: Optional[bool] = None) -> bytes:
        parts = []
        for key in sorted(self._map()):
            name = key.encode() if isinstance(key, str) else key
            message = self._map()[key].SerializeToString()
            parts.append(_protobuf.field(1, _protobuf.field(1, name) + _protobuf.field(2, message)))
        return b"".join(parts)

    def _merge(self, data: bytes) -> None:
        for number, _, value in _protobuf.fields(data):
            if number == 1:
                entry = {part: content for part, _, content in _protobuf.fields(value)}
                name = bytes(entry.get(1, b"")).decode()
                self._map()[name] = self._kind.FromString(entry.get(2, b""))

    def _lines(self, indent: str) -> Iterator[str]:
        for key in sorted(self._map()):
            yield f"{indent}{self._member} {{"
            yield f'{indent}  key: "{key}"'
            yield f"{indent}  value {{"
            yield from self._map()[key]._lines(indent + "    ")
            yield f"{indent}  }}"
            yield f"{indent}}}"


class Features(_Entries):
    """Features by name.

    >>> Features(feature={"x": Feature()}).feature["x"].WhichOneof("kind")
    """

    _member, _kind = "feature", Feature

    def __init__(self, feature: Optional[Dict[str, Feature]] = None) -> None:
        self.feature = _Map(Feature, feature)


class FeatureList(_Message):
    """Features in a row.

    >>> len(FeatureList(feature=[Feature(), Feature()]).feature)
    2
    """

    def __init__(self, feature: Any = None) -> None:
        self.feature = list(feature or ())

    def SerializeToString(self, deterministic: Optional[bool] = None) -> bytes:
        return b"".join(_protobuf.field(1, one.SerializeToString()) for one in self.feature)

    def _merge(self, data: bytes) -> None:
        for number, _, value in _protobuf.fields(data):
            if number == 1:
                self.feature.append(Feature.FromString(value))

    def _lines(self, indent: str) -> Iterator[str]:
        for one in self.feature:
            yield f"{indent}feature {{"
            yield from one._lines(indent + "  ")
            yield f"{indent}}}"


class FeatureLists(_Entries):
    """FeatureLists by name.

    >>> len(FeatureLists().feature_list)
    0
    """

    _member, _kind = "feature_list", FeatureList

    def __init__(self, feature_list: Optional[Dict[str, FeatureList]] = None) -> None:
        self.feature_list = _Map(FeatureList, feature_list)


class _Parts(_Message):
    """Messages in fields 1, 2 ..., by name."""

    _kinds: Tuple[Any, ...] = ()

    def SerializeToString(self, deterministic: Optional[bool] = None) -> bytes:
        parts = []
        for number, name in enumerate(self._fields, 1):
            data = getattr(self, name).SerializeToString()
            if data:
                parts.append(_protobuf.field(number, data))
        return b"".join(parts)

    def _merge(self, data: bytes) -> None:
        for number, _, value in _protobuf.fields(data):
            if 1 <= number <= len(self._fields):
                getattr(self, self._fields[number - 1]).MergeFromString(value)

    def _lines(self, indent: str) -> Iterator[str]:
        for name in self._fields:
            if getattr(self, name).ByteSize():
                yield f"{indent}{name} {{"
                yield from getattr(self, name)._lines(indent + "  ")
                yield f"{indent}}}"


class Example(_Parts):
    """A record: features by name.

    >>> Example().SerializeToString()
    b''
    """

    _fields, _kinds = ("features",), (Features,)

    def __init__(self, features: Optional[Features] = None) -> None:
        self.features = Features() if features is None else features


class SequenceExample(_Parts):
    """A record: features by name, and lists of features by name.

    >>> SequenceExample().context.feature
    {}
    """

    _fields, _kinds = ("context", "feature_lists"), (Features, FeatureLists)

    def __init__(
        self, context: Optional[Features] = None, feature_lists: Optional[FeatureLists] = None
    ) -> None:
        self.context = Features() if context is None else context
        self.feature_lists = FeatureLists() if feature_lists is None else feature_lists


__getattr__ = _not_implemented.getter("tf.train")
