# SPDX-License-Identifier: Apache-2.0
"""`import plimsoll.tf as tf`: TensorFlow's names on the Plimsoll runtime.

Tensors are lazy: an op checks dtypes and shapes at once, and is computed when its value is needed,
within the budget. Names, signatures, defaults, dtypes and errors are those of TensorFlow 2.15; what
TensorFlow has and Plimsoll has not raises NotImplementedError when it is named.

    >>> import plimsoll.tf as tf
    >>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> float(tf.reduce_sum(tf.matmul(x, x)))
    54.0

A part is a module with an __all__: whatever it lists is a name of tf's. Modules under a name of
their own (tf.math, tf.data ...) are imported when they are first used.
"""
from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any, List as _List

from .. import _core, _numpy, errors
from . import _absent

# In this order: a later one may use those before it. What one lists in its __all__ is ours.
from . import _types, _graph, _convert, _tensor, _array, _math, _trace, _variable
from . import _initializers, _function, _control, _python, _print, _module, _functional, _sparse
from . import _odds
from ._types import *
from ._graph import *
from ._convert import *
from ._tensor import *
from ._array import *
from ._math import *
from ._variable import *
from ._scatter import *
from ._initializers import *
from ._function import *
from ._control import *
from ._python import *
from ._print import *
from ._module import *
from ._functional import *
from ._sparse import *
from ._odds import *

_numpy.watch()

__version__ = "2.15.0-plimsoll"
__git_version__ = __version__

_MODULES = frozenset(
    "autograph bitwise compat config data debugging dtypes experimental image io linalg lookup math "
    "nest nn random sparse strings test train version".split()
)
_OF_DEBUGGING = ("Assert", "assert_equal", "assert_greater", "assert_less", "assert_rank")

__all__ = ["errors"]
__all__ += _types.__all__ + _graph.__all__ + _convert.__all__ + _tensor.__all__ + _array.__all__
__all__ += _math.__all__ + _variable.__all__ + _initializers.__all__ + _function.__all__
__all__ += _control.__all__ + _python.__all__ + _print.__all__ + _module.__all__
__all__ += _functional.__all__ + _sparse.__all__ + _odds.__all__ + _scatter.__all__


def _show_progress(fraction: _Any, name: _Any) -> None:
    from .._progress import show

    show(fraction, name)


_core.set_progress(_show_progress)


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        value = _importlib.import_module("." + name, __name__)
        globals()[name] = value
        return value
    if name in _OF_DEBUGGING:
        return getattr(__getattr__("debugging"), name)
    raise _absent.error("tf", name)


def __dir__() -> _List[str]:
    return sorted({*__all__, *_MODULES, *_OF_DEBUGGING, "__version__"})
