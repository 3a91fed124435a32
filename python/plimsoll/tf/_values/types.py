# SPDX-License-Identifier: Apache-2.0
"""The types of tensors: dtypes, shapes, and both as a spec.

NumPy is not imported here: a dtype finds NumPy's on request.

    >>> import plimsoll.tf as tf
    >>> tf.float32.size, tf.float32 == "float32", tf.TensorShape([None, 3]).rank
    (4, True, 2)
"""
from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional, Tuple, Type

from plimsoll import _core
from plimsoll.tf._values.shape import Dimension, TensorShape

__all__ = [
    "DType",
    "TensorShape",
    "TensorSpec",
    "TypeSpec",
    "as_dtype",
    "bfloat16",
    "bool",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int16",
    "int32",
    "int64",
    "int8",
    "string",
    "type_spec_from_value",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]

_python_bool = bool


class DType:
    """The type of an element. There is one object for each: compare with == or `is`.

    >>> import plimsoll.tf as tf
    >>> tf.int8.name, tf.int8.min, tf.int8.max, tf.int8.is_integer
    ('int8', -128, 127, True)
    >>> tf.int8 == "int8", tf.int8
    (True, tf.int8)
    """

    __slots__ = ("_number", "_enum", "_name", "_size", "_kind", "_limits")

    def __init__(self, number: int, enum: int, name: str, size: int, kind: str, limits: Any):
        self._number = number  # the library's: pl_dtype
        self._enum = enum  # TensorFlow's: DataType
        self._name = name
        self._size = size
        self._kind = kind  # b: bool, i and u: integers, f: floating-point, S: strings
        self._limits = limits

    @property
    def name(self) -> str:
        return self._name

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self._size

    @property
    def as_datatype_enum(self) -> int:
        return self._enum

    @property
    def as_numpy_dtype(self) -> Any:
        """NumPy's class for it, `numpy.float32`; of strings it is `numpy.object_`."""
        import numpy

        if self._kind == "S":
            return numpy.object_
        if self is bfloat16:
            try:
                import ml_dtypes

                return ml_dtypes.bfloat16
            except ImportError:
                return numpy.dtype("V2").type
        return numpy.dtype(self._name).type

    @property
    def base_dtype(self) -> "DType":
        return self

    @property
    def real_dtype(self) -> "DType":
        return self

    @property
    def is_floating(self) -> _python_bool:
        return self._kind == "f"

    @property
    def is_integer(self) -> _python_bool:
        return self._kind in "iu"

    @property
    def is_unsigned(self) -> _python_bool:
        return self._kind == "u"

    @property
    def is_bool(self) -> _python_bool:
        return self._kind == "b"

    @property
    def is_complex(self) -> _python_bool:
        return False

    @property
    def is_quantized(self) -> _python_bool:
        return False

    @property
    def is_numeric(self) -> _python_bool:
        return self._kind in "iuf"

    @property
    def is_numpy_compatible(self) -> _python_bool:
        return True

    @property
    def min(self) -> Any:
        """The smallest value. TypeError for strings."""
        return self._known_limits()[0]

    @property
    def max(self) -> Any:
        """The largest value. TypeError for strings."""
        return self._known_limits()[1]

    @property
    def limits(self) -> Tuple[Any, Any]:
        """From where to where images of this dtype go: (0, max) for integers, (0, 1) for floats."""
        self._known_limits()
        return (0, 1) if self._kind == "f" else (0, self._limits[1])

    def _known_limits(self) -> Tuple[Any, Any]:
        if self._limits is None:
            raise TypeError(f"Cannot find the limits of {self}: it has none")
        return self._limits

    def is_compatible_with(self, other: Any) -> _python_bool:
        return as_dtype(other) is self

    def is_subtype_of(self, other: "DType") -> _python_bool:
        return self is other

    def __eq__(self, other: Any) -> _python_bool:
        if other is self:
            return True
        if other is None or isinstance(other, DType):
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __ne__(self, other: Any) -> _python_bool:
        return not self == other

    def __hash__(self) -> int:
        return self._enum

    def __int__(self) -> int:
        return self._enum

    def __repr__(self) -> str:
        return "tf." + self._name

    def __str__(self) -> str:
        return f"<dtype: '{self._name}'>"

    def __reduce__(self) -> Tuple[Any, ...]:
        return as_dtype, (self._name,)

    def __copy__(self) -> "DType":
        return self

    def __deepcopy__(self, memo: Any) -> "DType":
        return self


def _signed(number: int, enum: int, n_bits: int) -> DType:
    limits = (-(1 << n_bits - 1), (1 << n_bits - 1) - 1)
    return DType(number, enum, f"int{n_bits}", n_bits // 8, "i", limits)


def _unsigned(number: int, enum: int, n_bits: int) -> DType:
    return DType(number, enum, f"uint{n_bits}", n_bits // 8, "u", (0, (1 << n_bits) - 1))


def _floating(number: int, enum: int, name: str, size: int, largest: float) -> DType:
    return DType(number, enum, name, size, "f", (-largest, largest))


# The first numbers are PL_DTYPE_TABLE's in plimsoll/tensor.h, the second TensorFlow's DataType.
bool = DType(1, 10, "bool", 1, "b", (False, True))
uint8 = _unsigned(2, 4, 8)
int8 = _signed(3, 6, 8)
uint16 = _unsigned(4, 17, 16)
int16 = _signed(5, 5, 16)
uint32 = _unsigned(6, 22, 32)
int32 = _signed(7, 3, 32)
uint64 = _unsigned(8, 23, 64)
int64 = _signed(9, 9, 64)
float16 = half = _floating(10, 19, "float16", 2, 65504.0)
bfloat16 = _floating(11, 14, "bfloat16", 2, 3.3895313892515355e38)
float32 = _floating(12, 1, "float32", 4, 3.4028234663852886e38)
float64 = double = _floating(13, 2, "float64", 8, sys.float_info.max)
string = DType(14, 7, "string", 8, "S", None)

_BY_NUMBER = [None, bool, uint8, int8, uint16, int16, uint32, int32, uint64, int64]
_BY_NUMBER += [float16, bfloat16, float32, float64, string]
_ALL: List[DType] = [dtype for dtype in _BY_NUMBER if dtype is not None]
_BY_NAME: Dict[str, DType] = {dtype._name: dtype for dtype in _ALL}
_BY_NAME.update({"half": float16, "float": float32, "double": float64, "str": string})
_BY_NAME.update({"bytes": string, "object": string, "bool_": bool})
_BY_ENUM: Dict[int, DType] = {dtype._enum: dtype for dtype in _ALL}
_BY_CLASS: Dict[Any, DType] = {
    float: float32,
    int: int64,
    _python_bool: bool,
    str: string,
    bytes: string,
    object: string,
}

_core.register(dtypes=_BY_NUMBER, tensor_shape=TensorShape)


def as_dtype(type_value: Any) -> DType:
    """The DType that a name, a NumPy dtype, a Python class or TensorFlow's number stands for.

    >>> import plimsoll.tf as tf
    >>> tf.as_dtype("float32"), tf.as_dtype(float), tf.as_dtype(3)
    (tf.float32, tf.float32, tf.int32)
    """
    if isinstance(type_value, DType):
        return type_value
    found = _find_dtype(type_value)
    if found is None:
        raise TypeError(f"Cannot convert the argument {type_value!r} to a TensorFlow DType.")
    return found


def _find_dtype(value: Any) -> Optional[DType]:
    if isinstance(value, str):
        return _BY_NAME.get(value) or _numpy_dtype(value)
    if isinstance(value, int) and not isinstance(value, _python_bool):
        return _BY_ENUM.get(value)
    try:
        if value in _BY_CLASS:
            return _BY_CLASS[value]
    except TypeError:  # not hashable
        pass
    return _numpy_dtype(value)


def _numpy_dtype(value: Any) -> Optional[DType]:
    """The dtype of a value of NumPy's; there is none if NumPy was not imported."""
    numpy = sys.modules.get("numpy")
    if numpy is None or value is None:
        return None
    if isinstance(value, type):
        if not issubclass(value, numpy.generic):
            return None
    else:
        value = getattr(value, "dtype", value)
    try:
        dtype = numpy.dtype(value)
    except TypeError:
        return None
    if dtype.kind in "SUO":
        return string
    return _BY_NAME.get(dtype.name)


class TypeSpec:
    """The type of a value: its dtype, its shape, its structure.

    >>> import plimsoll.tf as tf
    >>> isinstance(tf.TensorSpec([2]), tf.TypeSpec)
    True
    """

    __slots__ = ()

    @property
    def value_type(self) -> Type[Any]:
        raise NotImplementedError(f"{type(self).__name__}.value_type")

    def is_compatible_with(self, spec_or_value: Any) -> _python_bool:
        if not isinstance(spec_or_value, TypeSpec):
            spec_or_value = type_spec_from_value(spec_or_value)
        return self == spec_or_value


class TensorSpec(TypeSpec):
    """The dtype and the shape of a tensor, as far as they are known.

    >>> import plimsoll.tf as tf
    >>> spec = tf.TensorSpec([None, 3], tf.float32, name="x")
    >>> spec
    TensorSpec(shape=(None, 3), dtype=tf.float32, name='x')
    >>> spec.is_compatible_with(tf.constant([[1.0, 2.0, 3.0]]))
    True
    """

    __slots__ = ("_shape", "_dtype", "_name")

    def __init__(self, shape: Any, dtype: Any = float32, name: Optional[str] = None) -> None:
        self._shape = shape if isinstance(shape, TensorShape) else TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._name = name

    @classmethod
    def from_spec(cls, spec: "TensorSpec", name: Optional[str] = None) -> "TensorSpec":
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: Optional[str] = None) -> "TensorSpec":
        return cls(tensor.shape, tensor.dtype, name)

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def name(self) -> Optional[str]:
        return self._name

    @property
    def value_type(self) -> Type[Any]:
        return _core.Tensor

    def is_compatible_with(self, spec_or_tensor: Any) -> _python_bool:
        """Could a tensor of that spec be used where this one is required?"""
        dtype = getattr(spec_or_tensor, "dtype", None)
        if dtype is None:
            return False
        return self._dtype == dtype and self._shape.is_compatible_with(spec_or_tensor.shape)

    def is_subtype_of(self, other: Any) -> _python_bool:
        return (
            isinstance(other, TensorSpec)
            and self._dtype is other._dtype
            and self._shape.is_subtype_of(other._shape)
        )

    def most_specific_compatible_type(self, other: "TensorSpec") -> "TensorSpec":
        """The spec that covers both. ValueError if they differ in dtype."""
        if self._dtype is not other._dtype:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        shape = self._shape.most_specific_compatible_shape(other._shape)
        return TensorSpec(shape, self._dtype, self._name if self._name == other._name else None)

    def most_specific_common_supertype(self, others: Any) -> Optional["TensorSpec"]:
        spec = self
        for other in others:
            if not isinstance(other, TensorSpec) or other._dtype is not spec._dtype:
                return None
            spec = spec.most_specific_compatible_type(other)
        return spec

    def __eq__(self, other: Any) -> _python_bool:
        return (
            isinstance(other, TensorSpec)
            and self._dtype is other._dtype
            and self._shape == other._shape
            and self._name == other._name
        )

    def __ne__(self, other: Any) -> _python_bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"

    def __reduce__(self) -> Tuple[Any, ...]:
        return TensorSpec, (self._shape, self._dtype, self._name)


def type_spec_from_value(value: Any) -> TypeSpec:
    """The spec of a tensor, an array, a variable, or of an object that has one.

    >>> import plimsoll.tf as tf
    >>> tf.type_spec_from_value(tf.constant([1, 2]))
    TensorSpec(shape=(2,), dtype=tf.int32, name=None)
    """
    spec = getattr(value, "_type_spec", None) or getattr(value, "element_type_spec", None)
    if spec is not None:
        return spec
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        try:
            value = _core.convert(value)
        except (TypeError, ValueError) as error:
            name = type(value).__name__
            raise TypeError(f"Could not build a TypeSpec for {value!r} with type {name}") from error
    return TensorSpec(value.shape, value.dtype)


def value_repr(value: Any) -> str:
    """repr() of what numpy() gives. Of a number it is the number, as in TensorFlow, whatever the NumPy:
    since 2.0 its own is `np.float32(1.0)`."""
    is_number = not isinstance(value, bytes) and value.shape == ()
    return str(value) if is_number else repr(value)
