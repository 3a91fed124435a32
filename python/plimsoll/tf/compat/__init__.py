# SPDX-License-Identifier: Apache-2.0
"""tf.compat: TensorFlow 1's names (v1), and texts as bytes and back.

    >>> import plimsoll.tf as tf
    >>> tf.compat.as_bytes("text"), tf.compat.as_text(b"bytes")
    (b'text', 'bytes')
"""
from __future__ import annotations

import os
from typing import Any

__all__ = ["as_bytes", "as_str", "as_str_any", "as_text", "path_to_str", "v1", "v2"]

bytes_or_text_types = (bytes, str)
integral_types = (int,)
real_types = (float, int)
complex_types = (complex, float, int)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Text as bytes; bytes as they are.

    >>> as_bytes("a")
    b'a'
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Bytes as text; text as it is.

    >>> as_text(b"a")
    'a'
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text).decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Anything as text.

    >>> as_str_any(1)
    '1'
    """
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """A path as text.

    >>> path_to_str("a.npy")
    'a.npy'
    """
    return os.fspath(path) if hasattr(path, "__fspath__") else path


def forward_compatible(year: int, month: int, day: int) -> bool:
    return True


def __getattr__(name: str) -> Any:
    if name in ("v1", "v2"):
        import importlib

        value = importlib.import_module(__name__ + ".v1" if name == "v1" else "plimsoll.tf")
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tf.compat' has no attribute '{name}'")
