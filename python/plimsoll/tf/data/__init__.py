# SPDX-License-Identifier: Apache-2.0
"""tf.data: datasets, as TensorFlow has them, on Plimsoll's.

>>> ds = tf.data.Dataset.range(10).shuffle(10, seed=1).map(lambda x: x * x).batch(4)
>>> sum(int(tf.reduce_sum(batch)) for batch in ds.prefetch(tf.data.AUTOTUNE))
285
"""
from __future__ import annotations

import importlib
from typing import Any

from plimsoll.tf import _not_implemented

from ._dataset import Dataset
from ._iterator import IteratorSpec, NumpyIterator
from ._iterator import OwnedIterator as Iterator
from ._options import Options, ThreadingOptions
from ._source.readers import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from ._element.specs import DatasetSpec
from ._stage.stages import AUTOTUNE

__all__ = [
    "AUTOTUNE",
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "INFINITE_CARDINALITY",
    "Iterator",
    "IteratorSpec",
    "NumpyIterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "ThreadingOptions",
    "UNKNOWN_CARDINALITY",
    "experimental",
]

INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def __getattr__(name: str) -> Any:
    if name == "experimental":
        return importlib.import_module("." + name, __name__)
    raise _not_implemented.error("tf.data", name)
