# SPDX-License-Identifier: Apache-2.0
"""Dataset.from_generator(): values that Python yields, checked against their spec.

Messages are TensorFlow's. The exception of a generator is an error of its element; what is yielded
behind it is asked for if the pass goes on, which a Python generator does not.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from plimsoll import _core

from plimsoll.tf.data._element import structure as _structure, specs as _specs
from plimsoll.tf.data._stage import tracing as _tracing


def signature_of(output_types: Any, output_shapes: Any, output_signature: Any) -> Any:
    """TensorSpecs in the structure of an element."""
    if (output_types is not None or output_shapes is not None) and output_signature is not None:
        raise TypeError(
            "The `output_types` and `output_shapes` arguments can not be used together with the "
            "`output_signature` argument."
        )
    if output_signature is None and output_types is None:
        raise TypeError(
            "Either the `output_types` argument or the `output_signature` argument must be specified."
        )
    if output_signature is None:
        return _specs.from_types(output_types, output_shapes)
    for spec in _structure.flatten(output_signature)[1]:
        if not hasattr(spec, "dtype") and not isinstance(spec, _specs.DatasetSpec):
            raise TypeError(
                "`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found "
                f"{type(spec)} which is not."
            )
    return output_signature


def yields(
    generator: Callable, args: Sequence, signature: Any, tree: _structure.Tree, specs: Sequence[tuple]
) -> Callable[[], Iterator]:
    """A function that begins a pass."""

    def begin() -> Iterator:
        with _tracing.eager():
            elements = iter(generator(*(arg.numpy() for arg in args)))
        return _Yielded(elements, signature, tree, specs)

    return begin


class _Yielded:
    """The elements of one pass, as components."""

    def __init__(
        self, elements: Iterator, signature: Any, tree: _structure.Tree, specs: Sequence[tuple]
    ) -> None:
        self._elements, self._signature, self._tree = elements, signature, tree
        self._specs = specs

    def __iter__(self) -> _Yielded:
        return self

    def __next__(self) -> list:
        with _tracing.eager():
            element = next(self._elements)
            return [
                _checked(value, spec) for value, spec in zip(self._leaves(element), self._specs)
            ]

    def _leaves(self, element: Any) -> list:
        if self._tree is None:
            return [element]
        try:
            return _structure.flatten_as(self._tree, element)
        except TypeError as error:
            types = _structure.pack(self._tree, [spec[0] for spec in self._specs])
            raise TypeError(
                "`generator` yielded an element that did not match the expected structure. The "
                f"expected structure was {types}, but the yielded element was {element}."
            ) from error


def _checked(value: Any, spec: tuple) -> Any:
    dtype, shape, _ = spec
    if dtype is None:
        return value._core
    try:
        tensor = _converted(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(
            "`generator` yielded an element that could not be converted to the expected type. The "
            f"expected type was {dtype.name}, but the yielded element was {value}."
        ) from error
    if shape is not None and not _fits(_specs.shape_tuple(tensor.shape), shape):
        raise TypeError(
            f"`generator` yielded an element of shape {tuple(tensor.shape)} where an element of shape "
            f"{shape} was expected."
        )
    return tensor


def _converted(value: Any, dtype: Any) -> Any:
    """Converts by NumPy, as TensorFlow does: 1.5 is 1 as an int64, an array is cast."""
    try:
        return _core.convert(value, dtype)
    except (TypeError, ValueError, OverflowError):
        if dtype.name == "string":
            raise
        import numpy

        return _core.convert(numpy.asarray(value, dtype.as_numpy_dtype))


def _fits(actual: Any, expected: tuple) -> bool:
    return actual is None or (
        len(actual) == len(expected)
        and all(want is None or have is None or want == have for have, want in zip(actual, expected))
    )
