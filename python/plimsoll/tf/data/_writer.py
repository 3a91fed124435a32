# SPDX-License-Identifier: Apache-2.0
"""tf.data.experimental.TFRecordWriter: a dataset of strings as a TFRecord file."""
from __future__ import annotations

import os
from typing import Any, Optional

from plimsoll import _core
from plimsoll.tf._values.types import string

from ._iterator import raw


class TFRecordWriter:
    """Writes the elements of a dataset, which are strings, to a TFRecord file.

    >>> tf.data.experimental.TFRecordWriter("written.tfrecord").write(
    ...     tf.data.Dataset.from_tensor_slices(["a", "b"]))
    >>> list(tf.data.TFRecordDataset("written.tfrecord").as_numpy_iterator())
    [b'a', b'b']
    """

    def __init__(self, filename: Any, compression_type: Optional[str] = None) -> None:
        self._path = os.fspath(filename)
        self._compression = compression_type or "NONE"

    def write(self, dataset: Any) -> None:
        if not hasattr(dataset, "_nested_tree"):
            raise TypeError(f"Invalid `dataset.` Expected a `tf.data.Dataset` object but got {dataset}.")
        specs = dataset._core.specs
        if len(specs) != 1 or specs[0][0] != string or specs[0][1] not in ((), None):
            raise TypeError(
                "Invalid `dataset`. Expected a`dataset` that produces scalar `tf.string` elements, but "
                f"got a dataset which produces elements with {dataset.element_spec}."
            )
        with _core.RecordWriter(self._path, self._compression) as file:
            for (record,) in raw(dataset._core):
                file.write(record.numpy())
