# SPDX-License-Identifier: Apache-2.0
"""tf.experimental: DLPack, by which tensors are shared with PyTorch and others without a copy."""
from __future__ import annotations

import types
from typing import Any

from plimsoll import _core
from plimsoll.tf import _not_implemented

__all__ = ["dlpack"]

__getattr__ = _not_implemented.getter("tf.experimental")


def _to_dlpack(tf_tensor: Any) -> Any:
    """A DLPack capsule over a tensor's memory: torch.from_dlpack(capsule).

    >>> type(tf.experimental.dlpack.to_dlpack(tf.constant([1, 2]))).__name__
    'PyCapsule'
    """
    return _core.convert(tf_tensor).__dlpack__()


def _from_dlpack(dlcapsule: Any) -> Any:
    """A tensor over the memory of a capsule, or of an object with __dlpack__(), which must not change.

    >>> capsule = tf.experimental.dlpack.to_dlpack(tf.constant([1, 2]))
    >>> tf.experimental.dlpack.from_dlpack(capsule).numpy().tolist()
    [1, 2]
    """
    return _core.from_dlpack(dlcapsule)


dlpack = types.SimpleNamespace(to_dlpack=_to_dlpack, from_dlpack=_from_dlpack)
