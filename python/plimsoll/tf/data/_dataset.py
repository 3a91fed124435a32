# SPDX-License-Identifier: Apache-2.0
"""tf.data.Dataset."""
from __future__ import annotations

from typing import Any, Optional

from plimsoll import _core
from plimsoll.tf._values.types import int64

from ._base import Base
from ._stage.composed_stages import Derived
from ._stage.function_stages import Functional
from ._iterator import NumpyIterator
from ._options import Options
from ._introspection import Own
from ._source.sources import Sources
from ._stage.stages import Stages

_ABSENT = {
    "ragged_batch": "RaggedTensor is not here: padded_batch() makes batches of what differs in length",
    "sparse_batch": "SparseTensor batches are not here: padded_batch() makes dense ones",
    "fingerprint": "element_spec and cardinality() tell datasets apart",
}


class _Named(type):
    """The metaclass that reports methods that are not implemented, as instances do."""

    def __getattr__(cls, name: str) -> Any:
        _tell_absent(name)
        raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")


def _tell_absent(name: str) -> None:
    if name in _ABSENT:
        raise NotImplementedError(
            f"tf.data.Dataset.{name}: not implemented in Plimsoll; {_ABSENT[name]}"
        )


class Dataset(Sources, Stages, Functional, Derived, Own, Base, metaclass=_Named):
    """Elements in order, made on demand, within the budget.

    >>> ds = tf.data.Dataset.from_tensor_slices([8, 3, 0, 8, 2, 1])
    >>> ds = ds.filter(lambda x: x > 0).map(lambda x: x * 10).batch(2)
    >>> for batch in ds:
    ...     print(batch.numpy())
    [80 30]
    [80 20]
    [10]
    """

    def __copy__(self) -> "Dataset":
        return self  # it is never changed

    def __deepcopy__(self, memo: Any) -> "Dataset":
        return self

    def as_numpy_iterator(self) -> NumpyIterator:
        """Elements whose tensors are NumPy arrays.

        >>> list(tf.data.Dataset.from_tensor_slices([1, 2]).as_numpy_iterator())
        [1, 2]
        """
        return NumpyIterator(self)

    def cardinality(self, name: Optional[str] = None) -> _core.Tensor:
        """The number of elements, or tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY.

        >>> tf.data.Dataset.range(42).cardinality().numpy()
        42
        >>> bool(tf.data.Dataset.range(42).repeat().cardinality() == tf.data.INFINITE_CARDINALITY)
        True
        """
        return _core.constant(self._core.cardinality, int64)

    def options(self) -> Options:
        """The options that with_options() set on this dataset and on its sources."""
        found = Options()
        for source in self._sources:
            found = found.merge(source.options())
        return found if self._set_options is None else found.merge(self._set_options)

    def with_options(self, options: Options, name: Optional[str] = None) -> Dataset:
        """The same elements, under other options.

        >>> options = tf.data.Options()
        >>> options.threading.private_threadpool_size = 2
        >>> list(tf.data.Dataset.range(2).with_options(options).as_numpy_iterator())
        [0, 1]
        """
        if not isinstance(options, Options):
            raise TypeError(f"a tf.data.Options was expected, this is {options!r}")
        fields = options._fields()
        core = _core.ds_options(self._core, **fields) if fields else self._core
        dataset = self._stage(core, "Options", name=name if fields else None)
        dataset._set_options = Options().merge(options)
        dataset._logs = self._logs
        return dataset

    def __getattr__(self, name: str) -> Any:
        _tell_absent(name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
