# SPDX-License-Identifier: Apache-2.0
"""tf.io.parse_example() and the descriptions of features."""
from __future__ import annotations

from typing import Any, NamedTuple

from plimsoll import _core
from plimsoll.tf._values import types as _types
from plimsoll.tf._ops.reshape import expand_dims, reshape, shape
from plimsoll.tf._values.convert import Tensor, dims, is_eager, numpy_calls, tensor


class FixedLenFeature(NamedTuple):
    """So many values in each example; `default_value` for one that has none.

    >>> tf.io.FixedLenFeature([], tf.int64, default_value=0).dtype
    tf.int64
    """

    shape: Any
    dtype: Any
    default_value: Any = None

    def __repr__(self) -> str:
        return (f"FixedLenFeature(shape={self.shape}, dtype={self.dtype!r}, "
                f"default_value={self.default_value})")


class VarLenFeature(NamedTuple):
    """Any number of values: a SparseTensor.

    >>> tf.io.VarLenFeature(tf.string)
    VarLenFeature(dtype=tf.string)
    """

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """Any number of values along a first axis; shorter examples of a batch are filled up.

    >>> tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True).allow_missing
    True
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


def _sizes(feature: Any) -> list[int]:
    sizes = _types.TensorShape(feature.shape).as_list()
    if None in sizes:
        raise ValueError(f"First dimension of shape for feature is not known: {feature.shape}")
    return sizes


def _spec(name: str, feature: Any) -> tuple[str, Any, Any, Any]:
    """(name, dtype, shape or None, default), as the extension takes it."""
    if isinstance(feature, (VarLenFeature, FixedLenSequenceFeature)):
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise ValueError(f"Unsupported: FixedLenSequenceFeature requires allow_missing to be "
                             f"True. Received: {feature}")
        return name, _types.as_dtype(feature.dtype), None, None
    if not isinstance(feature, FixedLenFeature):
        raise NotImplementedError(f"feature '{name}' is a {type(feature).__name__}: plimsoll.tf "
                                  "has FixedLenFeature, FixedLenSequenceFeature and VarLenFeature")
    dtype, sizes = _types.as_dtype(feature.dtype), _sizes(feature)
    if dtype.name not in ("float32", "int64", "string"):
        raise ValueError(f"feature '{name}': {dtype!r}: examples have float32, int64 and string")
    default = feature.default_value
    if default is not None:
        default = _core.constant(default, dtype, sizes)
    return name, dtype, sizes, default


def _checked(features: Any) -> list[tuple[str, Any]]:
    if not features:
        raise ValueError("Argument `features` cannot be None or empty.")
    return sorted(features.items())


def parse_single_example(serialized: Any, features: dict[str, Any], example_names: Any = None,
                         name: str | None = None) -> dict[str, Any]:
    """The features of one tf.train.Example.

    >>> record = tf.train.Example(features=tf.train.Features(feature={
    ...     'n': tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))})).SerializeToString()
    >>> tf.io.parse_single_example(record, {'n': tf.io.FixedLenFeature([], tf.int64)})['n'].numpy()
    7
    """
    record, wanted = tensor(serialized, None), _checked(features)
    if dims(record) not in ((), None):
        raise ValueError(f"Input serialized must be a scalar, and has shape {record.shape}")
    parsed = _parsed(record, wanted, name)
    out: dict[str, Any] = {}
    for (key, feature), value in zip(wanted, parsed):
        if isinstance(feature, VarLenFeature):
            value = _sparse_line(value)
        elif isinstance(feature, FixedLenSequenceFeature) and _sizes(feature):
            value = reshape(value, [-1, *_sizes(feature)])
        out[key] = value
    return out


def _parsed(records: Tensor, wanted: list[tuple[str, Any]], name: str | None) -> list[Tensor]:
    made = _core.parse_examples(records, [_spec(key, feature) for key, feature in wanted], name)
    if made and is_eager(made[0]):
        _core.evaluate(made)
    return made


def _sparse_line(values: Tensor) -> Any:
    """A vector as the SparseTensor that a VarLenFeature of one example is."""
    from plimsoll.tf.sparse import SparseTensor

    (n,) = dims(values)
    ones = _core.op("fill", [values], {"dtype": _types.int64, "value": 1}) if n is None else None
    places = (_core.op("range", (), {"dtype": _types.int64, "stop": n}) if n is not None
              else _core.op("cumsum", [ones], {"axis": 0, "exclusive": True}))
    return SparseTensor(expand_dims(places, 1), values, shape(values, _types.int64))


def parse_example(serialized: Any, features: dict[str, Any], example_names: Any = None,
                  name: str | None = None) -> dict[str, Any]:
    """The features of several examples: one axis more, in front.

    >>> record = tf.train.Example(features=tf.train.Features(feature={
    ...     'n': tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))})).SerializeToString()
    >>> wanted = {'n': tf.io.FixedLenFeature([], tf.int64)}
    >>> tf.io.parse_example([record, record], wanted)['n'].numpy().tolist()
    [7, 7]
    """
    records, wanted = tensor(serialized), _checked(features)
    if dims(records) == ():
        return parse_single_example(records, features, example_names, name)
    fixed = [(key, feature) for key, feature in wanted if isinstance(feature, FixedLenFeature)]
    out: dict[str, Any] = dict(zip([key for key, _ in fixed],
                                   _parsed(records, fixed, name) if fixed else []))
    for key, feature in wanted:
        if isinstance(feature, VarLenFeature):
            out[key] = _sparse_batch(records, key, feature)
        elif isinstance(feature, FixedLenSequenceFeature):
            out[key] = _padded_batch(records, key, feature)
        else:
            _spec(key, feature)
    return {key: out[key] for key, _ in wanted}


def _lines(records: Any, key: str, dtype: Any) -> list[Any]:
    """The values of each record, as arrays."""
    import numpy as np

    spec = [(key, dtype, None, None)]
    made = [_core.parse_examples(_core.constant(record, _types.string), spec)[0]
            for record in np.asarray(records).ravel().tolist()]
    _core.evaluate(made)
    return [np.asarray(value) for value in made]


def _sparse_batch(records: Tensor, key: str, feature: VarLenFeature) -> Any:
    from plimsoll.tf.sparse import SparseTensor

    dtype = _types.as_dtype(feature.dtype)

    def run(array: Any) -> Any:
        import numpy as np

        lines = _lines(array, key, dtype)
        places = [(row, i) for row, line in enumerate(lines) for i in range(len(line))]
        values = np.concatenate(lines) if lines else np.zeros(0, dtype.as_numpy_dtype)
        size = np.array([len(lines), max(map(len, lines), default=0)], np.int64)
        return np.array(places, np.int64).reshape(-1, 2), values, size

    return SparseTensor(*_in_eager(run, records, [(_types.int64, [None, 2]), (dtype, [None]),
                                                  (_types.int64, [2])]))


def _padded_batch(records: Tensor, key: str, feature: FixedLenSequenceFeature) -> Tensor:
    _, dtype, _, _ = _spec(key, feature)
    sizes = _sizes(feature)

    def run(array: Any) -> Any:
        import numpy as np

        lines = [line.reshape([-1, *sizes]) for line in _lines(array, key, dtype)]
        default = feature.default_value
        if default is None:
            default = b"" if dtype == _types.string else 0
        kind = object if dtype == _types.string else dtype.as_numpy_dtype
        out = np.full([len(lines), max(map(len, lines), default=0), *sizes], default, kind)
        for row, line in enumerate(lines):
            out[row, :len(line)] = line
        return (out,)

    return _in_eager(run, records, [(dtype, [None, None, *sizes])])[0]


def _in_eager(run: Any, records: Tensor, outputs: Any) -> list[Tensor]:
    """numpy_calls() whose function makes tensors itself: outside of any graph."""
    from plimsoll.tf._graph import context as _context

    def outside(array: Any) -> Any:
        with _context.entered(None):
            return run(array)

    return numpy_calls(outside, [records], outputs)
