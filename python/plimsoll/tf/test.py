# SPDX-License-Identifier: Apache-2.0
"""tf.test: questions about devices. TensorFlow's classes for tests are not here.

    >>> import plimsoll.tf as tf
    >>> tf.test.is_built_with_cuda()
    False
"""
from __future__ import annotations

from typing import Any

from . import config, _not_implemented

__all__ = [
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_built_with_xla",
    "is_gpu_available",
]


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Is there an OpenCL device? None of them is CUDA's.

    >>> is_gpu_available(cuda_only=True)
    False
    """
    return not cuda_only and bool(config.list_logical_devices("GPU"))


def gpu_device_name() -> str:
    """The first GPU's name, or an empty text.

    >>> gpu_device_name() in ("", "/device:GPU:0")
    True
    """
    found = config.list_logical_devices("GPU")
    return found[0].name if found else ""


def is_built_with_cuda() -> bool:
    """No.

    >>> is_built_with_cuda()
    False
    """
    return False


def is_built_with_rocm() -> bool:
    """No.

    >>> is_built_with_rocm()
    False
    """
    return False


def is_built_with_gpu_support() -> bool:
    """Yes: OpenCL devices are used where there are any.

    >>> is_built_with_gpu_support()
    True
    """
    return True


def is_built_with_xla() -> bool:
    """No.

    >>> is_built_with_xla()
    False
    """
    return False


__getattr__ = _not_implemented.getter("tf.test")
