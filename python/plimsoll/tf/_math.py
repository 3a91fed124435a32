# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's arithmetic, in one place: see _elementwise.py and _reduce.py. What is a name of tf's
own is in __all__; tf.math has more."""
from plimsoll.tf import _elementwise, _reduce
from plimsoll.tf._elementwise import *  # noqa: F401,F403
from plimsoll.tf._reduce import *  # noqa: F401,F403

__all__ = [*_elementwise.__all__, *_reduce.__all__]
