# SPDX-License-Identifier: Apache-2.0
"""tf.dtypes: dtypes by name, and conversions between them."""
from __future__ import annotations

from typing import Any

from . import _not_implemented
from ._values import types as _types
from ._values.types import *  # noqa: F401,F403

_SHAPES = ("TensorShape", "TensorSpec", "TypeSpec", "type_spec_from_value")
_CASTS = ("cast", "saturate_cast")

__all__ = [name for name in _types.__all__ if name not in _SHAPES] + ["cast"]


def __getattr__(name: str) -> Any:
    from . import __dict__ as names

    if name in _CASTS and name in names:
        return names[name]
    if name in ("complex", "experimental", *_CASTS):
        raise NotImplementedError(f"tf.dtypes.{name}: not implemented in Plimsoll")
    raise _not_implemented.error("tf.dtypes", name)
